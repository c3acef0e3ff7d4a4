/* gpu_agg.c: groups: which form an aggregation's table takes, how it is set up and read out.
 *
 * A key whose values are few, or not much fewer than the groups, is its own slot (DENSE); otherwise
 * a hash table starts at twice the estimated groups and grows when it gets too full: the step runs
 * again. Small dense tables live in shared memory while a kernel runs: in cells of every thread's
 * own (gpu_cells.c) or in as many copies per block as fit. */
#include "gpu/gpu_job.h"

#define AGG_DENSE_SLOTS (1LL << 16) /* dense whatever the groups */
#define AGG_DENSE_TIMES 4           /* slots for every group expected */
#define AGG_LEAST_SLOTS 1024
#define AGG_SHARED_BYTES (64LL << 10)
#define AGG_OWN_BYTES (100LL << 10) /* two blocks a multiprocessor at least */
#define AGG_OWN_ROWS 4096           /* of a thread, before its cells are added up */
#define AGG_OWN_ROWS_SIMT 32

static const struct sink *job_sink(const struct job *j) {
    return j->plan.sink;
}

/* --- forms --- */

static u32 stride_of(const struct kagg *agg) {
    return agg->head + agg->word_count;
}

/* Whether keys are slots, and how many there are. */
static bool is_dense(const struct agg_room *room, const struct gpu_plan *plan, struct range key) {
    i128 span = key.hi - key.lo + 1;
    i128 bytes = span * (i128)(plan->sink->word_count + 1) * 8;
    i64 groups = MIN_OF(plan->sink->groups, room->rows);
    return span <= AGG_DENSE_SLOTS ||
           (span <= (i128)AGG_DENSE_TIMES * groups && bytes <= room->memory_bytes / 2);
}

void gpu_agg_shape(const struct exec *x, const struct gpu_plan *plan, const struct agg_room *room,
                   struct agg_shape *out) {
    const struct sink *sink = plan->sink;
    struct kagg *agg = &out->agg;
    *out =
        (struct agg_shape){.agg = {.word_count = sink->word_count, .has_key = sink->key != NO_REG}};
    if (sink->key == NO_REG) {
        agg->slot_count = 1;
        return;
    }
    struct range key = gpu_key_range(x, plan);
    agg->key = plan->places[sink->key];
    if (!is_dense(room, plan, key)) {
        i64 groups = MAX_OF(room->groups, MIN_OF(sink->groups, room->rows));
        agg->form = AGG_HASH;
        agg->head = 1;
        agg->slot_count = AGG_LEAST_SLOTS;
        while (agg->slot_count < 2 * (u64)groups) {
            agg->slot_count *= 2;
        }
        agg->group_limit = agg->slot_count / 4 * 3;
        return;
    }
    i32 touch = gpu_touch_word(plan);
    agg->head = touch < 0;
    agg->touch = touch < 0 ? 0 : (u32)touch;
    agg->key_lo = (i64)key.lo;
    agg->slot_count = (u64)(key.hi - key.lo + 1);
    i64 most = MIN_OF(AGG_OWN_BYTES, room->shared_max - 2048);
    i64 rows = room->is_simt ? AGG_OWN_ROWS_SIMT : AGG_OWN_ROWS;
    if (gpu_agg_cells(plan, agg->head, rows, &out->cells)) {
        i64 bytes = gpu_agg_cell_bytes(&out->cells);
        out->own_bytes = (i64)agg->slot_count <= most / bytes ? (i64)agg->slot_count * bytes : 0;
    }
    i64 table = (i64)(agg->slot_count * stride_of(agg)) * 8;
    out->copies = !out->own_bytes && table <= MIN_OF(AGG_SHARED_BYTES, room->shared_max - 2048);
}

i64 gpu_agg_shared(const struct job *j, u32 threads, i64 other_bytes, u32 *out_copies) {
    const struct kagg *agg = &j->shape.agg;
    i64 table = (i64)(agg->slot_count * stride_of(agg)) * 8;
    i64 most = MIN_OF(AGG_SHARED_BYTES, j->g->card->shared_max - other_bytes - 2048);
    *out_copies = 0;
    if (job_sink(j)->kind != SINK_AGG || agg->form != AGG_DENSE) {
        return 0;
    }
    if (j->shape.own_bytes && threads == WOVEN_BLOCK) {
        return j->shape.own_bytes;
    }
    for (u32 copies = threads; copies > 0; copies /= 2) {
        if (table * copies <= most) {
            *out_copies = copies;
            return table * copies;
        }
    }
    return 0;
}

void gpu_agg_weave(const struct agg_shape *shape, struct weave *out) {
    out->agg_form = shape->agg.form;
    out->agg_head = shape->agg.head;
    out->agg_copies = shape->copies || !shape->agg.has_key;
    out->cells = shape->own_bytes ? &shape->cells : NULL;
}

static const char *form_name(const struct agg_shape *shape, bool woven) {
    const struct kagg *agg = &shape->agg;
    return !agg->has_key                       ? NULL
           : agg->form == AGG_HASH             ? "groups in a hash table"
           : woven && shape->own_bytes         ? "groups in each thread's cells"
           : shape->own_bytes || shape->copies ? "groups in each block's tables"
                                               : "groups in a table by key";
}

/* --- the life of a table --- */

static FALLIBLE agg_start(struct job *j, enum kernel_no kernel, const struct kagg_step *args) {
    struct gpu *g = j->g;
    void *function = NULL;
    TRY(gpu_kernel(g->card, kernel, &function, j->x->err));
    i64 blocks = (i64)((args->agg.slot_count + 256) / 256 * (kernel == KERNEL_AGG_INIT ? 4 : 1));
    blocks = MAX_OF(MIN_OF(blocks, g->card->sm_count * 8LL), 1);
    j->metric->launches++;
    return gpu_launch(g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0}, g->streams[0], args,
                      j->x->err);
}

wf_status gpu_agg_begin(struct job *j) {
    struct agg_room room = {.rows = j->source_rows,
                            .groups = j->groups_wanted,
                            .memory_bytes = gpu_heap_available(j->g->card),
                            .shared_max = j->g->card->shared_max,
                            .is_simt = j->g->api->is_simt != 0};
    gpu_agg_shape(j->x, &j->plan, &room, &j->shape);
    struct kagg *agg = &j->shape.agg;
    i64 bytes = (i64)((agg->slot_count + 1) * MAX_OF(stride_of(agg), 1u)) * 8;
    TRY(gpu_alloc(j->g, bytes, &j->state, j->x->err));
    agg->state = DEV(u64 *, j->state->addr);
    return ERR_OK;
}

static FALLIBLE agg_extract(struct job *j, i64 groups) {
    struct gpu *g = j->g;
    struct error *err = j->x->err;
    const struct sink *sink = job_sink(j);
    u32 col_count = 1 + sink->word_count;
    TRY(gpu_var_new(g, j->x, sink->var, col_count, &j->out));
    /* The argument block's first page is free again: it carries the columns' addresses. */
    u64 *cols = (u64 *)(void *)g->args.host;
    for (u32 c = 0; c < col_count; c++) {
        struct gpu_col *col = &j->out->cols[c];
        TRY(gpu_alloc(g, MAX_OF(groups, 1) * 8, &col->data, err));
        col->addr = col->data->addr;
        cols[c] = col->addr;
    }
    u64 cols_addr = j->g->args_block->addr;
    u64 report = j->g->args_block->addr + (u64)j->reports_at;
    CU(g->api->copy_to_device(cols_addr, cols, col_count * 8, g->streams[0]));
    CU(g->api->set_bytes(report, 0, REPORT_WORDS * 8, g->streams[0]));
    struct kagg_step args = {.agg = j->shape.agg,
                             .cols = DEV(u64 *const *, cols_addr),
                             .report = DEV(u64 *, report),
                             .one = sink->key == NO_REG};
    TRY(agg_start(j, KERNEL_AGG_EXTRACT, &args));
    CU(g->api->copy_to_host(g->reports.host, report, REPORT_WORDS * 8, g->streams[0]));
    CU(g->api->stream_synchronize(g->streams[0]));
    u64 words[REPORT_WORDS];
    memcpy(words, g->reports.host, sizeof words);
    j->out->rows = (i64)words[REPORT_ROWS];
    j->x->vars[sink->var].rows = j->out->rows;
    return ERR_OK;
}

wf_status gpu_agg_end(struct job *j, const u64 *report, bool *out_again) {
    const struct kagg *agg = &j->shape.agg;
    if (report[REPORT_RETRY] & RETRY_TABLE) {
        j->groups_wanted = MAX_OF((i64)report[REPORT_ROWS], (i64)agg->slot_count) * 2;
        *out_again = true;
        return ERR_OK;
    }
    j->metric->how = form_name(&j->shape, j->used_woven);
    return agg_extract(j, agg->form == AGG_HASH ? (i64)report[REPORT_ROWS] : (i64)agg->slot_count);
}
