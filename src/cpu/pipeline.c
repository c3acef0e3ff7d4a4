/* pipeline.c: a pipeline over the pool: morsels, vectors, workers, sinks.
 *
 * The source is cut into morsels (runs of rows within one tablet or chunk). A worker makes its
 * frames when it meets its first morsel and keeps them until the pipeline ends. Zone maps skip
 * whole zones of a morsel. The first error stops everybody; faults stop nobody. With a limited
 * sink, morsels behind the first ones that together give enough rows are skipped, so that LIMIT
 * returns the same rows on any number of threads. */
#include "cpu/agg_parts.h"
#include "cpu/cut.h"

#include "codes/control.h"

#include <stdlib.h>

void tasks_run(struct exec *x, i64 count, void (*task)(void *arg, i64 i, i32 worker), void *arg) {
    if (x->pool && count > 1) {
        pool_run(x->pool, count, task, arg);
        return;
    }
    for (i64 i = 0; i < count; i++) {
        task(arg, i, 0);
    }
}

/* The same, but none from *end on, which tasks may lower. */
static void tasks_run_until(struct exec *x, i64 count, const _Atomic i64 *end,
                            void (*task)(void *arg, i64 i, i32 worker), void *arg) {
    if (x->pool && count > 1) {
        pool_run_until(x->pool, count, end, task, arg);
        return;
    }
    for (i64 i = 0; i < MIN_OF(count, atomic_load_explicit(end, memory_order_relaxed)); i++) {
        task(arg, i, 0);
    }
}

/* Chunks of a source that is a variable, blocks of one that is a partition of rows. */
static i64 source_pieces(const struct pipe_run *run) {
    u32 ref = run->pipe.pipe->source.ref;
    return ref != NO_VAR ? run->x->vars[ref].chunks.count : run->rows ? run->rows->count : 0;
}

static i64 part_rows(const struct pipe_run *run, i64 part) {
    const struct source *source = &run->pipe.pipe->source;
    switch (source->kind) {
    case SOURCE_TABLE:
        return run->x->versions[source->ref]->tablet_rows[part];
    case SOURCE_VAR:
        return run->rows ? run->rows->blocks[part].rows
                         : run->x->vars[source->ref].chunks.items[part]->rows;
    case SOURCE_DICT:
        return run->x->dict_lens[source->ref];
    case SOURCE_SERIES:
        return run->series_rows;
    default:
        return 1;
    }
}

/* How many numbers the series has; none when one of its bounds is NULL. */
static FALLIBLE open_series(struct pipe_run *run) {
    struct exec *x = run->x;
    const struct source *source = &run->pipe.pipe->source;
    if (source->kind != SOURCE_SERIES) {
        return ERR_OK;
    }
    TRY(variable_flatten(x, source->ref));
    const struct chunk *chunk = x->vars[source->ref].chunks.items[0];
    i64 bounds[3];
    for (u32 i = 0; i < 3; i++) {
        if (chunk->rows == 0 || (chunk->cols[i].nulls && chunk->cols[i].nulls[0])) {
            return ERR_OK;
        }
        bounds[i] = ((const i64 *)chunk->cols[i].data)[0];
    }
    if (bounds[2] == 0) {
        FAIL(x->err, INVALID_PARAMETER, "step size cannot equal zero");
    }
    run->series_start = bounds[0];
    run->series_step = bounds[2];
    i128 span = bounds[2] > 0 ? (i128)bounds[1] - bounds[0] : (i128)bounds[0] - bounds[1];
    i128 step = bounds[2] > 0 ? (i128)bounds[2] : -(i128)bounds[2];
    if (span >= 0) {
        run->series_rows = (i64)MIN_OF(span / step + 1, (i128)I64_MAX / 2);
    }
    return ERR_OK;
}

static void find_parts(struct pipe_run *run) {
    const struct source *source = &run->pipe.pipe->source;
    struct arena *arena = run->x->arena;
    run->part_count = run->provider                  ? 0
                      : source->kind == SOURCE_TABLE ? run->x->versions[source->ref]->tablet_count
                      : source->kind == SOURCE_VAR   ? source_pieces(run)
                                                     : 1;
    if (!run->part_morsels || run->part_count > run->part_room) { /* or those of the partition before serve */
        run->part_room = run->part_count;
        run->part_morsels = NEW_ARRAY(arena, i64, run->part_count + 1);
        run->part_starts = NEW_ARRAY(arena, i64, run->part_count + 1);
        run->part_firsts = NEW_ARRAY(arena, i64, run->part_count + 1);
        run->part_ends = NEW_ARRAY(arena, i64, run->part_count + 1);
    }
    for (i64 p = 0; p < run->part_count; p++) {
        run->part_starts[p + 1] = run->part_starts[p] + part_rows(run, p);
    }
    run->rows_end = run->part_starts[run->part_count];
    if (source->kind == SOURCE_TABLE && !run->provider) {
        exec_row_range(run->x, run->pipe.pipe, &run->rows_first, &run->rows_end);
    }
}

static void cut_morsels(struct pipe_run *run) {
    if (run->provider) {
        scan_window(run);
        return;
    }
    for (i64 p = 0; p < run->part_count; p++) {
        i64 start = run->part_starts[p];
        i64 rows = run->part_starts[p + 1] - start;
        i64 first = MIN_OF(MAX_OF(MAX_OF(run->window_first, run->rows_first) - start, 0), rows);
        i64 end = MAX_OF(MIN_OF(MIN_OF(run->window_end, run->rows_end) - start, rows), first);
        run->part_firsts[p] = first;
        run->part_ends[p] = end;
        i64 morsels = (end - first + run->morsel_rows - 1) / run->morsel_rows;
        run->part_morsels[p + 1] = run->part_morsels[p] + morsels;
    }
    run->morsel_count = run->part_morsels[run->part_count];
}

static void run_fail(struct pipe_run *run, struct worker *w, wf_status status) {
    struct exec *x = run->x;
    mutex_lock(&x->lock);
    if (!atomic_load_explicit(&run->failed, memory_order_relaxed)) {
        run->status = status;
        if (x->err->code == ERR_OK && w) {
            *x->err = w->err;
        }
        atomic_store_explicit(&run->failed, 1, memory_order_release);
        atomic_store_explicit(&run->stop_from, 0, memory_order_relaxed);
    }
    mutex_unlock(&x->lock);
}

/* Temporaries of one vector, in one block. */
static bool worker_temps(struct worker *w) {
    i64 n = ALIGN_UP(w->run->vector_rows + 64, 64);
    w->temp_bytes = n * (1 + 1 + 8 + 8 + 8 + 8 + 4);
    u8 *at = mem_alloc(w->run->x->mem, w->temp_bytes);
    w->temp_memory = at;
    if (!at) {
        return false;
    }
    memset(at, 0, (size_t)w->temp_bytes);
    w->hash = (u64 *)(void *)at;
    w->keys = (i64 *)(void *)(at + 8 * n);
    w->rows = (i64 *)(void *)(at + 16 * n);
    w->passed = (i64 *)(void *)(at + 24 * n);
    w->group = (u32 *)(void *)(at + 32 * n);
    w->fault = at + 36 * n;
    w->found = at + 37 * n;
    return true;
}

/* A vector per constant, for loops that take no scalar. */
static bool worker_consts(struct worker *w) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    i64 n = w->run->vector_rows;
    w->const_data = NEW_ARRAY(&w->arena, void *, pipe->pipe->reg_count + 1);
    for (u32 r = 0; r < pipe->pipe->reg_count; r++) {
        w->const_bytes += pipe->is_const[r] ? ALIGN_UP((n << pipe->width[r]) + 64, 64) : 0;
    }
    u8 *at = mem_alloc(w->run->x->mem, w->const_bytes);
    w->const_memory = at;
    for (u32 r = 0; at && r < pipe->pipe->reg_count; r++) {
        if (!pipe->is_const[r]) {
            continue;
        }
        i64 bytes = 1LL << pipe->width[r];
        for (i64 i = 0; i < n; i++) {
            memcpy(at + i * bytes, pipe->const_value[r], (size_t)bytes);
        }
        w->const_data[r] = at;
        at += ALIGN_UP(n * bytes + 64, 64);
    }
    return w->const_memory != NULL;
}

static FALLIBLE worker_open(struct pipe_run *run, i32 number, struct worker **out) {
    struct worker *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    *out = w;
    w->run = run;
    w->number = number;
    error_reset(&w->err);
    arena_init(&w->arena, run->x->mem);
    w->heap.mem = run->x->mem;
    w->sinks = NEW_ARRAY(&w->arena, void *, run->sink_count + 1);
    w->counts = NEW_ARRAY(&w->arena, struct lookup_count, run->pipe.op_count + 1);
    w->marks = NEW_ARRAY(&w->arena, i64, run->pipe.pipe->mark_count + 1);
    w->frames = NEW_ARRAY(&w->arena, struct frame, run->pipe.level_count);
    if (!worker_temps(w) || !worker_consts(w)) {
        return memory_refused(run->x->mem, &w->err, w->temp_bytes + w->const_bytes);
    }
    for (u32 level = 0; level < run->pipe.level_count; level++) {
        TRY(frame_open(w, &w->frames[level], level));
    }
    return ERR_OK;
}

static void worker_close(struct worker *w) {
    struct memory *mem = w->run->x->mem;
    for (u32 level = 0; level < w->run->pipe.level_count; level++) {
        frame_close(w, &w->frames[level]);
    }
    hold_end(w);
    mem_free(mem, w->const_memory, w->const_bytes);
    mem_free(mem, w->temp_memory, w->temp_bytes);
    row_room_fini(&w->block, mem);
    heap_fini(&w->heap);
    best_close(w);
    meet_close(w);
    arena_fini(&w->arena);
    free(w);
}

static bool zone_excluded(const struct pipe_run *run, const struct tablet *tablet, i64 zone) {
    const struct pipeline *pipe = run->pipe.pipe;
    for (u32 i = 0; i < pipe->prune_count; i++) {
        const struct prune *p = &pipe->prunes[i];
        const struct segment *seg = &tablet->cols[pipe->source.cols[p->col]];
        if (exec_zone_excluded(run->x, seg, p, zone)) {
            return true;
        }
    }
    return false;
}

static bool zone_pruned(const struct worker *w, i64 zone) {
    return zone_excluded(w->run, w->tablet, zone) || (top_zones(w->run) && top_excludes(w, zone));
}

bool tablet_pruned(const struct pipe_run *run, const struct tablet *tablet) {
    bool all = run->pipe.pipe->prune_count > 0;
    for (i64 zone = 0; zone << ZONE_SHIFT < tablet->rows && all; zone++) {
        all = zone_excluded(run, tablet, zone);
    }
    return all;
}

enum { VECTORS_PER_CHECK = STOP_EVERY(8), OUTS_LEAST = 16 };

/* The rows of the vector that are not deleted; false when there are none. */
static bool select_live(struct worker *w, struct frame *fr) {
    const u64 *gone = w->deleted;
    i64 m = 0;
    for (i64 i = 0; i < fr->n; i++) {
        i64 pos = fr->first + i;
        fr->sel_mem[m] = (u32)i;
        m += !(gone[pos >> 6] >> (pos & 63) & 1);
    }
    fr->m = m;
    fr->sel = m < fr->n ? fr->sel_mem : NULL;
    return m > 0;
}

wf_status run_vectors(struct worker *w, i64 first, i64 end) {
    struct frame *fr = &w->frames[0];
    if (first < end) {
        TRY(hold_begin(w));
    }
    w->rows_in += end - first;
    for (i64 at = first; at < end && !w->enough; at += w->run->vector_rows) {
        fr->first = at;
        fr->n = MIN_OF(w->run->vector_rows, end - at);
        fr->m = fr->n;
        fr->sel = NULL;
        fr->pos = NULL;
        fr->mask_valid = 0;
        memset(fr->lag, 0, w->run->pipe.pipe->reg_count);
        if (w->run->pipe.keeps_faults) {
            memset(fr->kept, 0, (size_t)fr->n);
        }
        heap_reset(&w->heap);
        if (++w->ticks % VECTORS_PER_CHECK == 0) { /* interning makes a morsel slow */
            TRY(exec_check(w->run->x));
        }
        if (!w->deleted || select_live(w, fr)) {
            TRY(ops_run(w, fr, 0));
        }
    }
    return ERR_OK;
}

static FALLIBLE run_range(struct worker *w, i64 first, i64 end) {
    bool learns = top_zones(w->run); /* what a zone gave may exclude the next */
    if (!w->tablet || (w->run->pipe.pipe->prune_count == 0 && !learns)) {
        return run_vectors(w, first, end);
    }
    i64 at = first;
    while (at < end) {
        i64 stop = at;
        while (stop < end && !zone_pruned(w, stop >> ZONE_SHIFT) && !(learns && stop > at)) {
            stop = MIN_OF(((stop >> ZONE_SHIFT) + 1) << ZONE_SHIFT, end);
        }
        TRY(run_vectors(w, at, stop));
        i64 skip = stop;
        while (skip < end && zone_pruned(w, skip >> ZONE_SHIFT)) {
            skip = MIN_OF(((skip >> ZONE_SHIFT) + 1) << ZONE_SHIFT, end);
        }
        w->rows_pruned += skip - stop;
        at = skip;
    }
    return ERR_OK;
}

static void set_source(struct worker *w, i64 part, i64 first) {
    struct exec *x = w->run->x;
    const struct source *source = &w->run->pipe.pipe->source;
    w->part = part;
    w->tablet = NULL;
    w->deleted = NULL;
    w->chunk = NULL;
    w->row_start = 0;
    if (source->kind == SOURCE_TABLE) {
        w->tablet = x->versions[source->ref]->tablets[part];
        w->deleted = version_deleted(x->versions[source->ref], part);
        w->row_start = x->versions[source->ref]->row_starts[part];
    } else if (source->kind == SOURCE_VAR) {
        w->chunk = w->run->rows ? &w->block.chunk : x->vars[source->ref].chunks.items[part];
        w->chunk_first = first;
        w->row_start = w->run->part_starts[part] + first;
    }
}

/* Room for the outputs of the morsels from the prefix up to this one: those before it are done
 * with, so that a source of any length needs little. Under the lock. */
static FALLIBLE reserve_outs(struct pipe_run *run, i64 morsel) {
    struct memory *mem = run->x->mem;
    i64 used = run->outs_end - run->prefix;
    if (morsel - run->outs_first >= run->outs_cap) {
        i64 cap = 2 * MAX_OF(morsel + 1 - run->prefix, OUTS_LEAST);
        i64 *outs = mem_alloc(mem, cap * (i64)sizeof *outs);
        if (!outs) {
            return memory_refused(mem, run->x->err, cap * (i64)sizeof *outs);
        }
        if (used > 0) {
            memcpy(outs, run->outs + (run->prefix - run->outs_first), (size_t)used * sizeof *outs);
        }
        mem_free(mem, run->outs, run->outs_cap * (i64)sizeof *outs);
        run->outs = outs;
        run->outs_cap = cap;
        run->outs_first = run->prefix;
    }
    while (run->outs_end <= morsel) {
        run->outs[run->outs_end++ - run->outs_first] = -1;
    }
    return ERR_OK;
}

/* Morsels that end in order add up to a prefix; once that suffices, later ones are not needed. */
wf_status note_output(struct pipe_run *run, const struct worker *w, i64 morsel) {
    mutex_lock(&run->x->lock);
    wf_status status = reserve_outs(run, morsel);
    if (!status) {
        run->outs[morsel - run->outs_first] = w->morsel_out;
    }
    while (run->prefix < run->outs_end && run->prefix <= run->bad_morsel &&
           run->outs[run->prefix - run->outs_first] >= 0 && run->prefix_rows < run->limit) {
        run->prefix_rows += run->outs[run->prefix++ - run->outs_first];
    }
    bool failed = atomic_load_explicit(&run->failed, memory_order_relaxed);
    if (run->prefix_rows >= run->limit && !failed) {
        atomic_store_explicit(&run->stop_from, run->prefix, memory_order_relaxed);
    }
    mutex_unlock(&run->x->lock);
    return status;
}

static FALLIBLE run_morsel(struct worker *w, i64 morsel) {
    struct pipe_run *run = w->run;
    i64 part = starts_find(run->part_morsels, run->part_count, morsel);
    i64 first = run->part_firsts[part] + (morsel - run->part_morsels[part]) * run->morsel_rows;
    i64 rows = MIN_OF(run->morsel_rows, run->part_ends[part] - first);
    if (run->rows) {
        TRY(row_block_load(run->from, &run->rows->blocks[part], &w->block, &w->err));
    }
    set_source(w, part, first);
    w->morsel = run->morsel_base + morsel;
    w->morsel_out = 0;
    w->enough = run->limit == 0;
    i64 base = run->pipe.pipe->source.kind == SOURCE_VAR ? 0 : first;
    TRY(run_range(w, base, base + rows));
    if (w->chunk) {
        chunk_pass(w->chunk, first, rows);
    }
    if (run->limit >= 0) {
        TRY(note_output(run, w, w->morsel));
    }
    work_rows(run->x, rows);
    return ERR_OK;
}

static struct worker *get_worker(struct pipe_run *run, i32 number) {
    struct worker *w = run->workers[number];
    if (!w) {
        wf_status status = worker_open(run, number, &run->workers[number]);
        w = run->workers[number];
        if (status) {
            run_fail(run, w, status);
        }
    }
    return w;
}

/* Memory has no room for the columns of another tablet: the morsel waits for the end of those that have
 * theirs. */
static void put_off(struct pipe_run *run, struct worker *w, i64 morsel) {
    error_reset(&w->err);
    w->put_off = 0;
    atomic_store_explicit(&run->narrow, 1, memory_order_relaxed);
    mutex_lock(&run->x->lock);
    VEC_PUSH(run->x->arena, &run->late, morsel);
    mutex_unlock(&run->x->lock);
}

static void morsel_task(void *arg, i64 i, i32 number) {
    struct pipe_run *run = arg;
    if (atomic_load_explicit(&run->failed, memory_order_relaxed) ||
        run->morsel_base + i >= atomic_load_explicit(&run->stop_from, memory_order_relaxed)) {
        return;
    }
    struct worker *w = get_worker(run, number);
    wf_status status = exec_check(run->x);
    if (!status && !atomic_load_explicit(&run->failed, memory_order_relaxed)) {
        bool waits = atomic_load_explicit(&run->narrow, memory_order_relaxed) && !run->alone && !w->held;
        status = run->provider ? scan_morsel(w) : waits ? ERR_OK : run_morsel(w, i);
        if (waits || w->put_off) {
            put_off(run, w, i);
            return;
        }
    }
    if (status) {
        run_fail(run, w, status);
    }
}

static void finish_task(void *arg, i64 i, i32 number) {
    struct pipe_run *run = arg;
    if (atomic_load_explicit(&run->failed, memory_order_relaxed)) {
        return;
    }
    struct worker *w = get_worker(run, number);
    if (atomic_load_explicit(&run->failed, memory_order_relaxed)) {
        return;
    }
    wf_status status = exec_check(run->x);
    status = status ? status : run->sinks[run->finishing].class->finish(w, run->finishing, i);
    if (status) {
        run_fail(run, w, status);
    }
}

static FALLIBLE end_sinks(struct pipe_run *run) {
    for (u32 s = 0; s < run->sink_count; s++) {
        if (!run->sinks[s].class->combine) {
            continue;
        }
        TRY(run->sinks[s].class->combine(run, s));
        run->finishing = s;
        tasks_run(run->x, run->sinks[s].partitions, finish_task, run);
        if (atomic_load(&run->failed)) {
            return run->status;
        }
    }
    return ERR_OK;
}

static FALLIBLE begin_sinks(struct pipe_run *run) {
    static const struct sink_class *const classes[] = {[SINK_ROWS] = &sink_rows,
                                                       [SINK_AGG] = &sink_agg,
                                                       [SINK_LUT] = &sink_lut,
                                                       [SINK_MARK] = &sink_mark};
    const struct pipeline *pipe = run->pipe.pipe;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        run->sinks[s] = (struct sink_run){0};
        run->sinks[s].sink = &pipe->sinks[s];
        run->sinks[s].class = run->into ? &sink_parts : classes[pipe->sinks[s].kind];
        run->sink_count = s + 1;
        TRY(run->sinks[s].class->begin(run, &run->sinks[s]));
    }
    return ERR_OK;
}

/* Variables that LOADV and MEET read must be in one piece. */
static FALLIBLE flatten_inputs(struct exec *x, const struct pipeline *pipe) {
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (op_infos[pipe->ops[i].code].roles[OPERAND_B] == ROLE_rows) {
            TRY(variable_flatten(x, pipe->ops[i].b));
        } else if (pipe->ops[i].code == OP_RUN) {
            TRY(variable_flatten(x, x->program->vars[pipe->ops[i].imm].rows_var));
            TRY(meet_prepare(x, pipe->ops[i].imm));
        }
    }
    return ERR_OK;
}

/* Hands the workers' counts over. */
static void fill_metric(struct pipe_run *run, u32 step_no) {
    struct step_metric *metric = &run->x->metrics[step_no];
    for (i32 i = 0; i < run->worker_count; i++) {
        struct worker *w = run->workers[i];
        if (w) {
            metric->bytes_read += w->bytes_read;
            metric->bytes_written += w->bytes_written;
            metric->probes += w->probes;
            metric->op_cost += w->op_cost;
            for (u32 m = 0; m < run->pipe.pipe->mark_count; m++) {
                i64 *mark = &metric->marks[run->mark_first + m];
                *mark = MAX_OF(*mark, 0) + w->marks[m];
                w->marks[m] = 0;
            }
            metric->rows_in += run->later ? 0 : w->rows_in;
            metric->rows_out += w->rows_out;
            metric->tablets_pruned_rows += w->rows_pruned;
            w->bytes_read = w->bytes_written = w->probes = w->op_cost = 0;
            w->rows_in = w->rows_out = w->rows_pruned = 0;
        }
    }
}

/* The indexes that memory holds a class at a time, and the passes that they make. */
void pipe_classes(struct pipe_run *run) {
    const struct pipeline *pipe = run->pipe.pipe;
    run->classed_count = 0;
    run->pass_count = 1;
    run->classed = NEW_ARRAY(run->x->arena, struct classed, pipe->op_count + 1);
    for (u32 i = 0; i < pipe->op_count && exec_passes(run->x, pipe); i++) {
        u32 var = op_variable(&pipe->ops[i]);
        bool index = var != NO_VAR && run->x->program->vars[var].kind == VAR_INDEX;
        bool known = !index || !run->x->vars[var].index->class_bits || var + 1 == run->opened;
        for (u32 k = 0; k < run->classed_count; k++) {
            known = known || run->classed[k].var == var;
        }
        if (!known) {
            run->classed[run->classed_count++] = (struct classed){var, i};
            run->pass_count <<= run->x->vars[var].index->class_bits;
        }
    }
}

/* The classes of a pass, in the place of those of the pass before. */
static FALLIBLE open_pass(struct pipe_run *run, i64 pass) {
    i64 left = pass;
    for (u32 k = run->classed_count; k-- > 0;) {
        const struct index *index = run->x->vars[run->classed[k].var].index;
        u32 class = (u32)(left & ((1LL << index->class_bits) - 1));
        left >>= index->class_bits;
        if (!index->class_all || index->class_no != class) {
            TRY(class_open(run->x, run->classed[k].var, class));
        }
    }
    run->morsel_base = run->morsel_first + pass * run->morsel_count;
    return ERR_OK;
}

/* Rows that come by in several passes count once: a mark's count changes only while all indexes
 * that stand behind it have their first class. */
static void keep_marks(struct pipe_run *run, i64 *before, bool restore) {
    const struct pipeline *pipe = run->pipe.pipe;
    for (u32 m = 0; m < pipe->mark_count; m++) {
        bool again = false;
        for (u32 k = 0; k < run->classed_count; k++) {
            const struct index *index = run->x->vars[run->classed[k].var].index;
            again = again || (run->classed[k].op >= pipe->marks[m].op && index->class_no > 0);
        }
        for (i32 i = 0; i < run->worker_count && again; i++) {
            i64 *kept = &before[(u32)i * pipe->mark_count + m];
            i64 *count = run->workers[i] ? &run->workers[i]->marks[m] : NULL;
            if (count && restore) {
                *count = *kept;
            } else {
                *kept = count ? *count : 0;
            }
        }
    }
}

static int by_number(const void *a, const void *b) {
    i64 x = *(const i64 *)a, y = *(const i64 *)b;
    return x < y ? -1 : x > y;
}

/* Morsels that were put off, by one worker, while nobody else holds columns. */
static void run_late(struct pipe_run *run) {
    if (run->late.count == 0) {
        return;
    }
    for (i32 k = 0; k < run->worker_count; k++) {
        if (run->workers[k]) {
            hold_end(run->workers[k]);
        }
    }
    qsort(run->late.items, (size_t)run->late.count, sizeof *run->late.items, by_number);
    run->alone = 1;
    for (i64 i = 0; i < run->late.count; i++) {
        morsel_task(run, run->late.items[i], 0);
    }
    hold_end(run->workers[0]);
    run->alone = 0;
    run->late.count = 0;
    atomic_store_explicit(&run->narrow, 0, memory_order_relaxed);
}

static FALLIBLE run_passes(struct pipe_run *run) {
    i64 marks = (i64)run->worker_count * run->pipe.pipe->mark_count;
    i64 *before = NEW_ARRAY(run->x->arena, i64, marks + 1);
    wf_status status = ERR_OK;
    for (i64 pass = 0; pass < run->pass_count && !status; pass++) {
        status = open_pass(run, pass);
        if (!status) {
            keep_marks(run, before, false);
            tasks_run_until(run->x, run->morsel_count, &run->stop_from, morsel_task, run);
            run_late(run);
            keep_marks(run, before, true);
        }
        status = !status && atomic_load(&run->failed) ? run->status : status;
    }
    for (u32 k = 0; k < run->classed_count; k++) {
        class_close(run->x, run->classed[k].var);
    }
    return status;
}

/* What had to be done since memory was short. */
static void note_spilling(struct pipe_run *run, u32 step_no) {
    struct exec *x = run->x;
    if (run->pass_count > 1) {
        x->metrics[step_no].how =
            arena_printf(exec_arena(x), "looked up in %lld passes", run->pass_count);
    }
    if (!atomic_load(&run->groups_parted) && !atomic_load(&run->groups_shared)) {
        return;
    }
    i64 shared = atomic_load(&run->groups_shared);
    const char *again =
        shared ? arena_printf(exec_arena(x), ", %lld times divided again", (long long)shared) : "";
    x->metrics[step_no].how =
        arena_printf(exec_arena(x), "groups in %d partitions%s", AGG_PARTS, again);
}

static FALLIBLE run_all(struct pipe_run *run) {
    cut_morsels(run);
    TRY(begin_sinks(run));
    TRY(run_passes(run));
    TRY(scan_check(run));
    for (i32 i = 0; i < run->worker_count; i++) {
        if (run->workers[i]) {
            TRY(arena_check(&run->workers[i]->arena, run->x->err));
        }
    }
    return end_sinks(run);
}

wf_status pipe_open(struct device *dev, struct exec *x, const struct step *step,
                    struct pipe_run *run) {
    *run = (struct pipe_run){.x = x, .limit = -1, .bad_morsel = I64_MAX};
    run->vector_rows = MAX_OF(MIN_OF(x->settings->vector_rows, 4096), 1);
    run->morsel_rows = MAX_OF(x->settings->morsel_rows, 1);
    run->worker_count = x->pool ? pool_worker_count(x->pool) : 1;
    run->workers = NEW_ARRAY(x->arena, struct worker *, run->worker_count);
    run->sinks = NEW_ARRAY(x->arena, struct sink_run, step->pipeline->sink_count + 1);
    atomic_init(&run->stop_from, I64_MAX);
    atomic_init(&run->failed, 0);
    TRY(pipe_prepare(x, step->pipeline, ((struct cpu_device *)dev->self)->vec, &run->pipe));
    TRY(flatten_inputs(x, step->pipeline));
    TRY(open_series(run));
    run->provider = exec_provider(x, step->pipeline);
    hold_open(run);
    run->position = step->position;
    find_parts(run);
    if (step->pipeline->source.kind == SOURCE_ONE && run->pipe.level_count == 1) {
        run->vector_rows = 1; /* constants fill vectors, which would be most of the work */
    }
    pipe_classes(run);
    TRY(arena_check(x->arena, x->err));
    return scan_begin(run);
}

void pipe_note_skipped(struct pipe_run *run, u32 step_no) {
    struct row_span span = exec_span(run->x, run->part_starts[run->part_count]);
    run->x->metrics[step_no].tablets_pruned_rows +=
        span.end - span.first - (run->rows_end - run->rows_first);
}

static void close_sinks(struct pipe_run *run) {
    for (u32 s = 0; s < run->sink_count; s++) {
        if (run->sinks[s].class->close) {
            run->sinks[s].class->close(run, s);
        }
    }
    run->sink_count = 0;
    mem_free(run->x->mem, run->outs, run->outs_cap * (i64)sizeof *run->outs);
    run->outs = NULL;
    run->outs_cap = run->outs_first = run->outs_end = 0;
}

/* Rows that the variables of its sinks hold, groups among them; before it begins, only those that it
 * appends to keep any, and none where slices are taken away. */
static i64 rows_held(const struct pipe_run *run, bool begun) {
    const struct pipeline *pipe = run->pipe.pipe;
    i64 rows = 0;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        bool holds = sink->var != NO_VAR && (sink->kind == SINK_ROWS || sink->kind == SINK_AGG);
        bool kept = begun || (sink->append && !run->sliced);
        for (u32 before = 0; before < s; before++) { /* branches of one union */
            holds = holds && pipe->sinks[before].var != sink->var;
        }
        rows += holds && kept ? run->x->vars[sink->var].rows : 0;
    }
    return rows;
}

wf_status pipe_window(struct pipe_run *run, u32 step_no, i64 first, i64 end, i64 limit) {
    i64 held = rows_held(run, false);
    run->window_first = first;
    run->window_end = end;
    run->limit = limit;
    run->prefix = 0;
    run->prefix_rows = 0;
    run->made_bytes = 0;
    run->bad_morsel = I64_MAX;
    atomic_store_explicit(&run->stop_from, I64_MAX, memory_order_relaxed);
    wf_status status = run_all(run);
    fill_metric(run, step_no);
    note_spilling(run, step_no);
    run->x->metrics[step_no].rows_out += status ? 0 : rows_held(run, true) - held;
    close_sinks(run);
    return status;
}

void pipe_close(struct pipe_run *run) {
    close_sinks(run);
    scan_end(run);
    for (i32 i = 0; i < run->worker_count; i++) {
        if (run->workers[i]) {
            worker_close(run->workers[i]);
            run->workers[i] = NULL;
        }
    }
}

wf_status pipe_begin(struct pipe_run *run) {
    run->window_first = 0;
    run->window_end = I64_MAX;
    return begin_sinks(run);
}

wf_status pipe_part(struct pipe_run *run) {
    find_parts(run);
    cut_morsels(run);
    TRY(run_passes(run));
    run->morsel_first += run->pass_count * run->morsel_count;
    return ERR_OK;
}

wf_status pipe_turn(struct pipe_run *run) {
    TRY(end_sinks(run));
    for (u32 s = 0; s < run->sink_count; s++) {
        agg_turn(run, s);
    }
    return ERR_OK;
}

wf_status pipe_end(struct pipe_run *run) {
    for (i32 i = 0; i < run->worker_count; i++) {
        if (run->workers[i]) {
            TRY(arena_check(&run->workers[i]->arena, run->x->err));
        }
    }
    return end_sinks(run);
}

void pipe_metric(struct pipe_run *run, u32 step_no, bool fine) {
    fill_metric(run, step_no);
    note_spilling(run, step_no);
    run->x->metrics[step_no].rows_out += fine ? rows_held(run, true) : 0;
    close_sinks(run);
}
