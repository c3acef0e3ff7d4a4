/* gpu_sink.c: where a pipeline's rows go: columns on the card, chunks on the host, or an
 * aggregation.
 *
 * Rows stay on the card unless the placement moves data over the bus anyway and only the host wants
 * them. Then every batch writes to its slot's block on the card. Once its count is known its rows
 * are copied into a chunk, while other batches are read and computed: the bus carries both
 * directions at once.
 *
 * Room for output on the card is an upper bound where that is affordable. A kernel that runs out of
 * it counts on, and the step runs once more with exact room. Rows that do not fit the card at all,
 * and that only the host wants, go in batches, too. A batch is cut smaller where its rows multiply
 * beyond a slot's share. Groups are gpu_agg.c's. */
#include "gpu/gpu_job.h"

#include "codes/control.h"

static const struct sink *job_sink(const struct job *j) {
    return j->plan.sink;
}

/* True when every reader of the variable is a step that only the host runs, or, `may`, that it may
 * run where the card has no room. */
static bool feeds_host(const struct program *program, u32 var, bool may) {
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            const struct step *step = &program->blocks[b].steps[s];
            bool here = step->kind == STEP_BUILD || (step_orders(step) && !may);
            if (here && step->src == var) {
                return false;
            }
            const struct pipeline *pipe = step->kind == STEP_PIPELINE ? step->pipeline : NULL;
            if (pipe && pipe->source.kind == SOURCE_VAR && pipe->source.ref == var) {
                return false;
            }
            for (u32 i = 0; pipe && i < pipe->op_count; i++) {
                const struct op *op = &pipe->ops[i];
                if ((op->code == OP_LOADV || op->code == OP_LOADVN) && op->b == var) {
                    return false;
                }
            }
        }
    }
    return true;
}

i64 gpu_job_col_bytes(const struct job *j, u32 c) {
    return kind_bytes[j->pipe->regs[job_sink(j)->cols[c].reg].kind];
}

static i64 sink_bytes(const struct job *j, const struct sink *sink) {
    i64 bytes = 0;
    for (u32 c = 0; c < sink->col_count; c++) {
        bytes += kind_bytes[j->pipe->regs[sink->cols[c].reg].kind] + (sink->cols[c].null_reg != NO_REG);
    }
    return bytes;
}

i64 gpu_job_row_bytes(const struct job *j) {
    i64 bytes = 0;
    for (u32 k = 0; k < j->plan.rows_count; k++) {
        bytes += sink_bytes(j, j->plan.rows[k]);
    }
    return bytes;
}

i64 gpu_job_out_count(const struct job *j) {
    const struct sink *sink = job_sink(j);
    bool in_runs = sink->kind == SINK_AGG && j->aggs[0].shape.run_rows;
    u32 last = j->plan.rows_count ? j->plan.rows_count - 1 : 0;
    return j->plan.rows_count ? j->plan.rows_at[last] + j->plan.rows[last]->col_count
           : in_runs          ? 1 + sink->word_count
                              : 0;
}

i64 gpu_job_out_places(const struct job *j) {
    return gpu_job_out_count(j) + j->mark_count + (j->set != NULL);
}

/* --- marks --- */

/* One byte a row of another variable, zero at first. */
static FALLIBLE marks_begin(struct job *j) {
    struct gpu *g = j->g;
    struct exec *x = j->x;
    struct error *err = x->err;
    j->marks = NEW_ARRAY(x->arena, struct gpu_var *, j->pipe->sink_count + 1);
    j->mark_count = 0;
    for (u32 s = 0; s < j->pipe->sink_count; s++) {
        const struct sink *sink = &j->pipe->sinks[s];
        if (sink->kind != SINK_MARK) {
            continue;
        }
        struct gpu_var *gv = NULL;
        i64 rows = x->vars[sink->rows_var].rows;
        variable_reset(&x->vars[sink->var]);
        TRY(gpu_var_new(g, x, sink->var, 1, &gv));
        TRY(gpu_alloc(g, MAX_OF(rows, 1), &gv->cols[0].data, err));
        gv->cols[0].addr = gv->cols[0].data->addr;
        CU(g->api->set_bytes(gv->cols[0].addr, 0, (size_t)MAX_OF(rows, 1), g->streams[0]));
        gv->rows = x->vars[sink->var].rows = rows;
        j->marks[j->mark_count++] = gv;
    }
    return ERR_OK;
}

/* --- rows --- */

static FALLIBLE rows_on_host(struct job *j) {
    const struct sink *sink = job_sink(j);
    j->capacity = j->wanted;
    j->wanted = 0;
    for (i64 b = 0; b < j->batch_count; b++) {
        j->capacity = MAX_OF(j->capacity, j->batches[b].rows);
    }
    j->out_at = NEW_ARRAY(j->x->arena, u64, sink->col_count + 1);
    j->out_nulls_at = NEW_ARRAY(j->x->arena, u64, sink->col_count + 1);
    j->fetch = NEW_ARRAY(j->x->arena, struct fetch_col, sink->col_count + 1);
    i64 at = 0;
    for (u32 c = 0; c < sink->col_count; c++) {
        j->out_at[c] = (u64)at;
        at = ALIGN_UP(at + j->capacity * gpu_job_col_bytes(j, c), 256);
        j->out_nulls_at[c] = (u64)at;
        at += sink->cols[c].null_reg != NO_REG ? ALIGN_UP(j->capacity, 256) : 0;
    }
    return gpu_job_slots(j, j->g->rows, MAX_OF(at, 1));
}

/* An append keeps what the variable holds: on the card, until the new columns have it. A second try
 * finds it kept already. */
static FALLIBLE take_old(struct job *j) {
    struct exec *x = j->x;
    struct variable *v = &x->vars[job_sink(j)->var];
    if (j->old || v->rows == 0) {
        return ERR_OK;
    }
    for (u32 c = 0; c < job_sink(j)->col_count; c++) {
        struct kcol col;
        TRY(gpu_var_col(j->g, x, job_sink(j)->var, c, &col, &j->metric->bytes_moved));
    }
    /* The rows on the host are about to go: nothing may still be copying them. */
    int code = gpu_sync(j->g, j->g->streams[0]);
    TRY(gpu_check(j->g->card, code, "stream_synchronize", x->err));
    j->old = v->copy;
    j->old_rows = j->first_rows = v->rows;
    v->copy = NULL;
    return ERR_OK;
}

/* Which of the sinks of variable `number` give NULL flags for a column. */
struct flags {
    bool some, all;
};
static struct flags flags_of(const struct job *j, u32 number, u32 col) {
    struct flags flags = {false, true};
    for (u32 k = 0; k < j->plan.rows_count; k++) {
        bool gives = j->plan.rows[k]->cols[col].null_reg != NO_REG;
        bool counts = j->plan.rows_into[k] == number;
        flags.some = flags.some || (counts && gives);
        flags.all = flags.all && (!counts || gives);
    }
    return flags;
}

/* Whether what the variable holds has room for `capacity` rows, so that it can stay where it is. Text
 * comes with lists of what it points to. */
static bool has_room(const struct job *j) {
    const struct sink *sink = job_sink(j);
    bool room = j->old && j->old->capacity >= j->capacity && !j->plan.has_text;
    for (u32 c = 0; room && c < sink->col_count; c++) {
        room = !flags_of(j, 0, c).some || j->old->cols[c].nulls_addr;
    }
    return room;
}

static FALLIBLE stay(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct variable *v = &j->x->vars[job_sink(j)->var];
    j->in_place = 1;
    j->out = j->old;
    j->capacity = j->old->capacity;
    v->copy = j->old;
    v->copy_release = gpu_var_release;
    v->copy_space = g->device.space;
    for (u32 c = 0; c < job_sink(j)->col_count; c++) {
        const struct gpu_col *col = &j->old->cols[c];
        if (col->nulls_addr && !flags_of(j, 0, c).all) {
            CU(g->api->set_bytes(col->nulls_addr + (u64)j->old_rows, 0,
                                 (size_t)(j->capacity - j->old_rows), g->streams[0]));
        }
    }
    return ERR_OK;
}

static FALLIBLE copy_old(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    size_t rows = (size_t)j->old_rows;
    for (u32 c = 0; c < job_sink(j)->col_count; c++) {
        const struct gpu_col *from = &j->old->cols[c];
        const struct gpu_col *to = &j->out->cols[c];
        CU(g->api->copy_device(to->addr, from->addr, rows * (size_t)gpu_job_col_bytes(j, c),
                               g->streams[0]));
        if (to->nulls_addr && from->nulls_addr) {
            CU(g->api->copy_device(to->nulls_addr, from->nulls_addr, rows, g->streams[0]));
        } else if (to->nulls_addr) {
            CU(g->api->set_bytes(to->nulls_addr, 0, rows, g->streams[0]));
        }
    }
    return ERR_OK;
}

static FALLIBLE rows_on_card(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    const struct sink *sink = job_sink(j);
    i64 width = MAX_OF(gpu_job_row_bytes(j), 1);
    if (j->queued) { /* more would not be as expected */
        j->capacity = MAX_OF(exec_expects(j->x, sink->var), 1);
    } else if (!j->capacity) {
        i64 bound = (j->plan.has_match ? 2 : 1) * j->source_rows;
        i64 room = MAX_OF(gpu_heap_available(g->card), 0) / 4 / width;
        j->capacity = j->old_rows + MAX_OF(MIN_OF(bound, room), 1);
        if (!has_room(j)) { /* all appends together copy as much as one */
            j->capacity = MAX_OF(j->capacity, j->old_rows + MIN_OF(j->old_rows, room));
        }
    }
    if (has_room(j)) {
        return stay(j);
    }
    if (sink->limit >= 0) {
        j->capacity = MAX_OF(MIN_OF(j->capacity, sink->limit), 1);
    }
    TRY(gpu_var_new(g, j->x, sink->var, sink->col_count, &j->out));
    j->out->capacity = j->capacity;
    for (u32 c = 0; c < sink->col_count; c++) {
        struct gpu_col *col = &j->out->cols[c];
        TRY(gpu_alloc(g, j->capacity * gpu_job_col_bytes(j, c), &col->data, j->x->err));
        col->addr = col->data->addr;
        bool had_nulls = j->old && j->old->cols[c].nulls_addr;
        struct flags flags = flags_of(j, 0, c);
        if (flags.some || had_nulls) {
            TRY(gpu_alloc(g, j->capacity, &col->nulls, j->x->err));
            col->nulls_addr = col->nulls->addr;
            if (!flags.all) { /* who gives none says nothing */
                CU(g->api->set_bytes(col->nulls_addr, 0, (size_t)j->capacity, g->streams[0]));
            }
        }
    }
    return j->old_rows ? copy_old(j) : ERR_OK;
}

/* The columns of a variable behind the first, which begins anew. */
static FALLIBLE more_on_card(struct job *j, u32 number) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    struct job_rows *more = &j->more[number];
    const struct sink *sink = gpu_job_maker(j, number);
    i64 room = MAX_OF(gpu_heap_available(g->card), 0) / 4 / MAX_OF(gpu_job_row_bytes(j), 1);
    more->capacity = j->queued        ? MAX_OF(exec_expects(j->x, sink->var), 1)
                     : more->capacity ? more->capacity
                                      : MAX_OF(MIN_OF(j->source_rows, room), 1);
    variable_reset(&j->x->vars[sink->var]);
    TRY(gpu_var_new(g, j->x, sink->var, sink->col_count, &more->out));
    more->out->capacity = more->capacity;
    for (u32 c = 0; c < sink->col_count; c++) {
        struct gpu_col *col = &more->out->cols[c];
        i64 bytes = kind_bytes[j->pipe->regs[sink->cols[c].reg].kind];
        struct flags flags = flags_of(j, number, c);
        TRY(gpu_alloc(g, more->capacity * bytes, &col->data, err));
        col->addr = col->data->addr;
        if (flags.some) {
            TRY(gpu_alloc(g, more->capacity, &col->nulls, err));
            col->nulls_addr = col->nulls->addr;
        }
        if (flags.some && !flags.all) {
            CU(g->api->set_bytes(col->nulls_addr, 0, (size_t)more->capacity, g->streams[0]));
        }
    }
    return j->plan.has_text ? gpu_job_texts_pass_on(j, sink->var, more->out) : ERR_OK;
}

void gpu_job_sinks(const struct job *j, struct ksink *out) {
    for (u32 k = 0; k < j->plan.rows_count; k++) {
        u32 number = j->plan.rows_into[k];
        out[k] = (struct ksink){.capacity = gpu_job_room(j, number),
                                .first = j->plan.rows_at[k],
                                .count = j->plan.rows[k]->col_count,
                                .report = number};
    }
}

static void rows_outs(struct job *j, i32 slot, u32 k, struct kout *outs) {
    const struct sink *sink = j->plan.rows[k];
    const struct gpu_var *out = j->plan.rows_into[k] ? j->more[j->plan.rows_into[k]].out : j->out;
    for (u32 c = 0; c < sink->col_count; c++) {
        const struct sink_col *col = &sink->cols[c];
        u64 data = j->to_host ? 0 : out->cols[c].addr;
        bool with_nulls = col->null_reg != NO_REG && !j->to_host;
        u64 nulls = with_nulls ? out->cols[c].nulls_addr : 0;
        if (j->to_host) {
            u64 base = j->g->rows[slot]->addr;
            data = base + j->out_at[c];
            nulls = col->null_reg != NO_REG ? base + j->out_nulls_at[c] : 0;
        }
        outs[c] = (struct kout){.data = DEV(u8 *, data),
                                .nulls = DEV(b8 *, nulls),
                                .reg = j->plan.places[col->reg],
                                .bytes = kind_bytes[j->pipe->regs[col->reg].kind]};
        outs[c].is_text = j->pipe->regs[col->reg].kind == KIND_STR &&
                          (!j->plan.host_text[col->reg] || (outs[c].reg & KOP_ASIDE));
        outs[c].null_reg = col->null_reg != NO_REG ? j->plan.places[col->null_reg] : 0;
    }
}

void gpu_job_sink_outs(struct job *j, i32 slot, struct kout *outs) {
    const struct sink *sink = job_sink(j);
    for (u32 k = 0; k < j->plan.rows_count; k++) {
        rows_outs(j, slot, k, outs + j->plan.rows_at[k]);
    }
    for (i64 c = 0; sink->kind == SINK_AGG && c < gpu_job_out_count(j); c++) {
        outs[c] = (struct kout){.data = DEV(u8 *, j->aggs[0].out->cols[c].addr), .bytes = 8};
    }
    for (u32 m = 0; m < j->mark_count; m++) {
        outs[gpu_job_out_count(j) + m] =
            (struct kout){.data = DEV(u8 *, j->marks[m]->cols[0].addr), .bytes = 1};
    }
    if (j->set) {
        struct kout *set = &outs[gpu_job_out_places(j) - 1];
        *set = (struct kout){
            .data = DEV(u8 *, j->set->heads->addr), .reg = j->plan.places[sink->key], .bytes = 8};
        if (sink->word_count > 0) {
            set->nulls = set->data + key_set_bytes(sink->key_bits, false);
            set->null_reg = j->plan.places[sink->word_regs[0]];
            set->turn = sink->words[0] == WORD_MIN ? 0 : ~0ULL;
        } else if (j->set->set_places) {
            set->turn = (u64)j->set->set_places - 1;
        }
    }
}

static void take_fault(struct job *j, u64 key) {
    if (key == ELSEWHERE_WORD) {
        atomic_store(&j->kept->elsewhere, 1);
        j->elsewhere = 1;
    } else if (key != ~0ULL) {
        exec_fault(j->x, key);
    }
}

/* The rows of a computed batch, by their count, to a chunk of their own. */
static FALLIBLE send_rows(struct job *j, i64 batch, i32 slot) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    const struct sink *sink = job_sink(j);
    u64 report[REPORT_WORDS];
    memcpy(report, g->reports.host + batch * (i64)sizeof report, sizeof report);
    take_fault(j, report[REPORT_FAULT]);
    i64 rows = (i64)report[REPORT_ROWS];
    if (report[REPORT_RETRY] & RETRY_OUTPUT) {
        j->wanted_batch = rows > j->wanted ? batch : j->wanted_batch;
        j->wanted = MAX_OF(j->wanted, rows);
    }
    if (j->wanted) { /* all of it runs again */
        return ERR_OK;
    }
    if (sink->limit >= 0) {
        rows = MIN_OF(rows, sink->limit - j->x->vars[sink->var].rows);
    }
    if (rows <= 0) {
        return ERR_OK;
    }
    for (u32 c = 0; c < sink->col_count; c++) {
        bool nulls = sink->cols[c].null_reg != NO_REG;
        j->fetch[c].data = g->rows[slot]->addr + j->out_at[c];
        j->fetch[c].nulls = nulls ? g->rows[slot]->addr + j->out_nulls_at[c] : 0;
    }
    i64 fetched = 0;
    struct row_fetch fetch = {sink->var, rows, batch, j->fetch, g->down};
    TRY(gpu_rows_to_chunk(g, j->x, &fetch, &fetched));
    gpu_job_fetched(j, fetched);
    CU(g->api->event_record(g->slot_down[slot], g->down));
    return ERR_OK;
}

wf_status gpu_job_harvest(struct job *j, i64 batch) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i32 slot = (i32)(batch % j->slot_count);
    CU(gpu_sync_event(g, g->slot_done[slot]));
    gpu_room_look(j, slot);
    if (j->to_host) {
        TRY(send_rows(j, batch, slot));
    }
    if (j->to_host && j->place == PLACE_SERIAL) {
        CU(gpu_sync(g, g->down));
    }
    return ERR_OK;
}

/* --- both --- */

bool gpu_job_can_send(const struct job *j) {
    const struct sink *sink = job_sink(j);
    return j->plan.rows_count == 1 && !j->plan.adds_interns && !j->plan.makes && !sink->append &&
           j->pipe->source.kind == SOURCE_TABLE && j->x->settings->gpu_result == RESULT_HOST &&
           feeds_host(j->x->program, sink->var, true);
}

/* --- sets of keys --- */

static i64 set_bytes_of(const struct job *j) {
    const struct sink *sink = job_sink(j);
    bool table = j->set && j->set->set_places;
    return table ? gpu_keys_bytes(j->set->set_places)
                 : key_set_bytes(sink->key_bits, sink->word_count > 0);
}

/* Whether keys are so sparse that the set is a table. */
static bool set_is_table(const struct job *j) {
    return !job_sink(j)->set_small && job_sink(j)->word_count == 0;
}

/* Without keys; the words behind are the worst. */
static FALLIBLE set_empty(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    u64 at = j->set->heads->addr;
    i64 bytes = set_bytes_of(j);
    i64 bits = j->set->set_places ? bytes : key_set_bytes(job_sink(j)->key_bits, false);
    CU(g->api->set_bytes(at, 0, (size_t)bits, g->streams[0]));
    if (bytes > bits) {
        CU(g->api->set_bytes(at + (u64)bits, 0xff, (size_t)(bytes - bits), g->streams[0]));
    }
    return ERR_OK;
}

/* An empty one, or what the host has of it. */
static FALLIBLE set_new(struct job *j, struct variable *v) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    if (set_is_table(j)) {
        TRY(gpu_var_new(g, j->x, job_sink(j)->set_var - 1, 0, &j->set));
        j->set->set_bits = job_sink(j)->key_bits;
        return gpu_keys_new(g, j->x, j->set, v->keys, &j->metric->bytes_moved);
    }
    i64 bytes = set_bytes_of(j);
    const void *words = v->keys ? key_set_bits(v->keys) : NULL;
    if (v->keys && !words) {
        return memory_refused(j->x->mem, err, bytes);
    }
    TRY(gpu_var_new(g, j->x, job_sink(j)->set_var - 1, 0, &j->set));
    TRY(gpu_alloc(g, bytes, &j->set->heads, err));
    j->set->set_bits = job_sink(j)->key_bits;
    j->set->set_best = (u8)sink_best(job_sink(j));
    if (words) {
        TRY(gpu_upload(g, j->set->heads->addr, words, bytes, NULL, g->streams[0], err));
        CU(gpu_sync(g, g->streams[0]));
        j->metric->bytes_moved += bytes;
        return ERR_OK;
    }
    return set_empty(j);
}

/* Rows that have no room take their keys out of the set again, so that a step can go on with what it
 * has written. Not where rows may have come of texts or numbers that were not made. */
static bool set_keeps(const struct job *j) {
    return j->set && job_sink(j)->append && !j->plan.adds_interns && !j->plan.makes;
}

/* As it is before the step. */
static FALLIBLE set_remember(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    i64 bytes = set_bytes_of(j);
    TRY(gpu_alloc(g, bytes, &j->set_was, err));
    CU(g->api->copy_device(j->set_was->addr, j->set->heads->addr, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

/* The bitmap that kernels add to. A step that runs again goes on, or begins with what it was. */
wf_status gpu_job_set_begin(struct job *j) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    const struct sink *sink = job_sink(j);
    struct variable *v = &j->x->vars[sink->set_var - 1];
    if (j->set && j->set_was) {
        CU(g->api->copy_device(j->set->heads->addr, j->set_was->addr, (size_t)set_bytes_of(j),
                               g->streams[0]));
        return ERR_OK;
    }
    if (j->set) {
        return set_keeps(j) ? ERR_OK : set_empty(j);
    }
    if (!sink->append) {
        variable_reset(v);
    }
    j->set = sink->append && v->copy ? v->copy : NULL;
    if (j->set && j->set->epoch != g->card->epoch) {
        FAIL(err, GPU, "a set of keys was lost when the GPU was reset");
    }
    TRY(j->set ? ERR_OK : set_new(j, v));
    return sink->append && !set_keeps(j) ? set_remember(j) : ERR_OK;
}

wf_status gpu_job_set_room(struct job *j) {
    i64 places = j->set && j->set->set_places ? gpu_keys_places(j->g, j->capacity) : 0;
    if (places <= (j->set ? j->set->set_places : 0)) {
        return ERR_OK;
    }
    i64 had = j->set->set_places;
    if (j->set_was) {
        TRY(gpu_keys_grow(j->g, j->x, &j->set_was, had, places));
    }
    wf_status status = gpu_keys_grow(j->g, j->x, &j->set->heads, had, places);
    if (status && j->set_was) { /* it is of another size: what was begun cannot be undone */
        variable_drop_copy(&j->x->vars[job_sink(j)->set_var - 1]);
        j->set = NULL;
    }
    TRY(status);
    j->set->set_places = places;
    return ERR_OK;
}

/* What was written stays, since the set has it: those are the variable's rows from now on. */
static void keep_written(struct job *j, i64 rows) {
    if (j->old && j->old != j->out) {
        gpu_var_release(j->old);
    }
    j->x->vars[job_sink(j)->var].copy = NULL;
    j->in_place = 0;
    j->old = j->out;
    j->old_rows = j->old->rows = rows;
    j->out = NULL;
}

/* How many rows launches of a step that failed wrote; 0: it cannot be known. */
static i64 written_rows(struct job *j) {
    struct gpu *g = j->g;
    u64 rows = 0;
    u64 at = g->args_block->addr + (u64)j->reports_at + 8 * REPORT_ROWS;
    return g->api->copy_to_host(&rows, at, sizeof rows, g->streams[0]) ||
                   gpu_sync(g, g->streams[0])
               ? 0
               : MIN_OF((i64)rows, j->capacity);
}

void gpu_job_set_restore(struct job *j) {
    struct gpu *g = j->g;
    struct variable *v = &j->x->vars[job_sink(j)->set_var - 1];
    bool lost = j->set->epoch != g->card->epoch || !job_sink(j)->append;
    i64 rows = set_keeps(j) && !lost && j->out && j->launched ? written_rows(j) : 0;
    if (rows > j->old_rows) {
        keep_written(j, rows);
        gpu_job_set_end(j);
    } else if (v->on_host || lost) { /* the host has it, or it begins anew */
        variable_drop_copy(v);
    } else if (!j->set_was) { /* nothing was added yet */
        j->set = NULL;
    } else if (g->api->copy_device(j->set->heads->addr, j->set_was->addr,
                                   (size_t)set_bytes_of(j), g->streams[0]) ||
               gpu_sync(g, g->streams[0])) {
        variable_drop_copy(v); /* the context is lost, and the statement with it */
    }
    j->set = NULL;
}

void gpu_job_set_end(struct job *j) {
    struct variable *v = &j->x->vars[job_sink(j)->set_var - 1];
    key_set_close(v->keys);
    v->keys = NULL;
    v->on_host = 0;
}

wf_status gpu_job_sink_begin(struct job *j) {
    const struct sink *sink = job_sink(j);
    TRY(marks_begin(j));
    if (sink->append) {
        TRY(take_old(j));
    }
    if (sink->set_var) {
        TRY(gpu_job_set_begin(j));
    }
    if (j->in_place) { /* it was too small after all */
        j->x->vars[sink->var].copy = NULL;
        j->in_place = 0;
    }
    for (u32 k = 0; j->pass == 0 && k < j->plan.agg_count; k++) { /* else of the passes before */
        variable_reset(&j->x->vars[j->plan.aggs[k]->var]);
    }
    if (j->plan.agg_count) {
        return gpu_agg_begin(j);
    }
    variable_reset(&j->x->vars[sink->var]);
    bool crosses = j->place != PLACE_CACHED && !j->plan.has_match &&
                   feeds_host(j->x->program, sink->var, false);
    j->to_host = (j->sends || crosses) && gpu_job_can_send(j);
    if (j->to_host) {
        j->x->vars[sink->var].on_host = 1;
        TRY(rows_on_host(j));
    } else {
        TRY(rows_on_card(j));
    }
    TRY(gpu_job_set_room(j));
    if (j->plan.has_text) {
        TRY(gpu_job_texts_pass_on(j, sink->var, j->to_host ? NULL : j->out));
    }
    for (u32 n = 1; n < j->plan.into_count; n++) {
        TRY(more_on_card(j, n));
    }
    return ERR_OK;
}

#define SET_GROWTH 4

static FALLIBLE rows_end(struct job *j, const u64 *report, bool *out_again) {
    const struct sink *sink = job_sink(j);
    i64 rows = (i64)report[REPORT_ROWS];
    if (report[REPORT_RETRY] & RETRY_OUTPUT) {
        i64 had = j->capacity;
        bool keeps = set_keeps(j);
        /* Rows that are found several times were counted as often. */
        if (j->set && j->set->set_places) { /* those that a table had no place for were not counted */
            rows = MAX_OF(rows, 2 * had);
        }
        j->capacity = j->g->known.capacity = keeps ? MIN_OF(rows, had * SET_GROWTH) : rows;
        if (keeps) {
            keep_written(j, had);
        }
        *out_again = true;
        return ERR_OK;
    }
    rows = sink->limit >= 0 ? MIN_OF(rows, sink->limit) : rows;
    j->out->rows = rows;
    j->x->vars[sink->var].rows = rows;
    return ERR_OK;
}

static void more_end(struct job *j, u32 number, bool *out_again) {
    u64 report[REPORT_WORDS];
    memcpy(report, j->g->reports.host + number * sizeof report, sizeof report);
    i64 rows = (i64)report[REPORT_ROWS];
    if (report[REPORT_RETRY] & RETRY_OUTPUT) {
        j->more[number].capacity = rows;
        *out_again = true;
    }
    j->more[number].out->rows = j->x->vars[gpu_job_maker(j, number)->var].rows = rows;
}

static void count_out(struct job *j) {
    i64 rows = j->x->vars[job_sink(j)->var].rows - j->first_rows;
    i64 bytes = j->plan.rows_count ? rows * sink_bytes(j, job_sink(j)) : 0;
    for (u32 n = 1; n < gpu_job_made_count(j); n++) {
        i64 more = j->x->vars[gpu_job_maker(j, n)->var].rows;
        rows += more;
        bytes += j->plan.rows_count ? more * sink_bytes(j, gpu_job_maker(j, n)) : 0;
    }
    j->metric->rows_out += rows;
    j->metric->bytes_written += bytes;
}

wf_status gpu_job_sink_end(struct job *j, bool *out_again) {
    const struct sink *sink = job_sink(j);
    *out_again = false;
    if (j->to_host && j->wanted) {
        *out_again = true;
        return ERR_OK;
    }
    if (j->to_host) {
        count_out(j);
        return ERR_OK;
    }
    u64 report[REPORT_WORDS];
    memcpy(report, j->g->reports.host, sizeof report);
    take_fault(j, report[REPORT_FAULT]);
    if (report[REPORT_FAULT] != ~0ULL) {
        return ERR_OK; /* the runtime raises it; the rows do not matter */
    }
    if (report[REPORT_RETRY] & RETRY_INTERN) {
        j->interns_full = j->g->known.interns_full = 1;
        *out_again = true;
    } else if (sink->kind == SINK_ROWS) {
        TRY(rows_end(j, report, out_again));
        for (u32 n = 1; n < j->plan.into_count; n++) {
            more_end(j, n, out_again);
        }
    } else {
        TRY(gpu_agg_end(j, out_again));
    }
    if (!*out_again) {
        count_out(j);
    }
    if (!*out_again && j->set) {
        gpu_job_set_end(j);
    }
    return ERR_OK;
}

wf_status gpu_job_sink_settle(struct job *j, const i64 *rows) {
    if (j->plan.agg_count) {
        TRY(gpu_agg_settle(j, rows));
    } else {
        j->out->rows = j->x->vars[job_sink(j)->var].rows = rows[0];
    }
    for (u32 n = 1; n < j->plan.into_count; n++) {
        j->more[n].out->rows = j->x->vars[gpu_job_maker(j, n)->var].rows = rows[n];
    }
    count_out(j);
    return ERR_OK;
}

void gpu_job_sink_drop(struct job *j) {
    gpu_agg_drop(j);
}
