/* gpu_build.c: STEP_BUILD on the card: an index over the rows of a variable.
 *
 * The form follows from what is known when the rows are there: direct addressing when the key range
 * is small against the rows, else open addressing at most half full. One launch assumes unique
 * keys; when it meets a duplicate the index is built as runs of row numbers: count, exclusive sums
 * (the library's scan, as a job inside the step), scatter. */
#include "gpu/gpu_int.h"
#include "prim/move.h"

#define DIRECT_LEAST_SLOTS (1LL << 16)
#define BITS_LEAST_SLOTS (1LL << 20)
#define BITS_PER_ROW 256

struct build {
    struct gpu *g;
    struct exec *x;
    struct gpu_var *gv;
    struct kbuild args;
    i64 rows;
    i64 blocks;
    struct gpu_block *temps[4]; /* report, slot_of, cursor, the scan's workspace */
    i64 launches;
};

static FALLIBLE zeroed(struct build *b, i64 bytes, struct gpu_block **out) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    TRY(gpu_alloc(g, bytes, out, err));
    CU(g->api->set_bytes((*out)->addr, 0, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

static FALLIBLE start(struct build *b, enum kernel_no kernel, i64 blocks, const void *args) {
    void *function = NULL;
    TRY(gpu_kernel(b->g->card, kernel, &function, b->x->err));
    b->launches++;
    return gpu_launch(b->g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0}, b->g->streams[0],
                      args, b->x->err);
}

static void choose_form(struct build *b, const struct step *step) {
    i128 span = step->key_range.hi - step->key_range.lo + 1;
    i64 most = MAX_OF(4 * b->rows, DIRECT_LEAST_SLOTS);
    if (!b->args.set && span > 0 && span <= most && step->key_range.lo >= I64_MIN) {
        b->args.key_lo = (i64)step->key_range.lo;
        b->args.slot_count = (u64)span;
        return;
    }
    if (b->args.set && span > 0 && span <= MAX_OF(BITS_PER_ROW * b->rows, BITS_LEAST_SLOTS) &&
        step->key_range.lo >= I64_MIN) {
        b->args.key_lo = (i64)step->key_range.lo;
        b->args.slot_count = (u64)span;
        b->args.bits = 1;
        return;
    }
    b->args.hashed = 1;
    b->args.slot_count = 64;
    while (b->args.slot_count < 2 * (u64)b->rows) {
        b->args.slot_count *= 2;
    }
}

static FALLIBLE build_unique(struct build *b, bool *out_duplicate) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    i64 slots = (i64)b->args.slot_count;
    TRY(zeroed(b, REPORT_WORDS * 8, &b->temps[0]));
    TRY(zeroed(b, (b->args.bits ? slots / 32 + 1 : slots) * 4, &b->gv->heads));
    if (b->args.hashed) {
        TRY(gpu_alloc(g, slots * 8, &b->gv->keys, err));
        b->args.keys = DEV(i64 *, b->gv->keys->addr);
    }
    b->args.heads = DEV(u32 *, b->gv->heads->addr);
    b->args.report = DEV(u64 *, b->temps[0]->addr);
    TRY(start(b, KERNEL_BUILD_UNIQUE, b->blocks, &b->args));
    TRY(gpu_pinned_reserve(g, &g->reports, REPORT_WORDS * 8, err));
    CU(g->api->copy_to_host(g->reports.host, b->temps[0]->addr, REPORT_WORDS * 8, g->streams[0]));
    CU(g->api->stream_synchronize(g->streams[0]));
    u64 report[REPORT_WORDS];
    memcpy(report, g->reports.host, sizeof report);
    *out_duplicate = (report[REPORT_RETRY] & RETRY_DUPLICATE) != 0;
    return ERR_OK;
}

/* Exclusive sums, in place, by the library. */
static FALLIBLE scan(struct build *b, u32 *data, i64 count) {
    struct prim_array sums = {.type = ELEM_U32, .data = data, .count = count};
    struct prim_job job = prim_job_inside(b->x, &b->g->device);
    TRY(prim_scan_array(&job, FOLD_ADD, false, sums, sums));
    TRY(gpu_alloc(b->g, job.work_peak, &b->temps[3], b->x->err));
    prim_job_go(&job, DEV(void *, b->temps[3]->addr));
    TRY(prim_scan_array(&job, FOLD_ADD, false, sums, sums));
    b->launches += job.launches;
    return ERR_OK;
}

static FALLIBLE build_runs(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    i64 slots = (i64)b->args.slot_count;
    gpu_heap_free(g->card, b->gv->heads);
    b->gv->heads = NULL;
    i64 heads = b->args.hashed ? 2 * slots : slots + 1;
    TRY(gpu_alloc(g, heads * 4, &b->gv->heads, err));
    TRY(gpu_alloc(g, b->rows * 4, &b->gv->index_rows, err));
    TRY(gpu_alloc(g, b->rows * 4, &b->temps[1], err));
    TRY(zeroed(b, (slots + 1) * 4, &b->temps[2]));
    b->args.heads = DEV(u32 *, b->gv->heads->addr);
    b->args.rows = DEV(u32 *, b->gv->index_rows->addr);
    b->args.slot_of = DEV(u32 *, b->temps[1]->addr);
    b->args.cursor = DEV(u32 *, b->temps[2]->addr);
    TRY(start(b, KERNEL_BUILD_COUNT, b->blocks, &b->args));
    TRY(scan(b, b->args.cursor, slots + 1));
    TRY(start(b, KERNEL_BUILD_STARTS, b->blocks, &b->args));
    TRY(start(b, KERNEL_BUILD_SCATTER, b->blocks, &b->args));
    CU(g->api->stream_synchronize(g->streams[0]));
    return ERR_OK;
}

static FALLIBLE build_all(struct build *b, const struct step *step, struct step_metric *metric) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    struct kcol key;
    TRY(gpu_var_col(g, b->x, step->src, step->col, &key, &metric->bytes_moved));
    TRY(gpu_var_new(g, b->x, step->dst, 0, &b->gv));
    b->args.key = (const i64 *)(const void *)key.data;
    b->args.nulls = key.nulls;
    b->args.row_count = b->rows;
    b->args.set = b->x->program->vars[step->dst].set;
    b->blocks =
        MAX_OF(MIN_OF((b->rows + BLOCK_THREADS - 1) / BLOCK_THREADS, g->card->sm_count * 8LL), 1);
    choose_form(b, step);
    void *first = NULL;
    void *last = NULL;
    TRY(gpu_event(g, 0, &first, err));
    TRY(gpu_event(g, 1, &last, err));
    CU(g->api->event_record(first, g->streams[0]));
    bool duplicate = false;
    TRY(build_unique(b, &duplicate));
    if (duplicate) {
        TRY(build_runs(b));
    }
    CU(g->api->event_record(last, g->streams[0]));
    CU(g->api->event_synchronize(last));
    float ms = 0;
    CU(g->api->event_elapsed(&ms, first, last));
    metric->device_ns += (i64)((f64)ms * 1e6);
    b->gv->rows = b->rows;
    b->gv->index = (struct kindex){.hashed = b->args.hashed,
                                   .unique = !duplicate,
                                   .bits = b->args.bits,
                                   .key_lo = b->args.key_lo,
                                   .slot_count = b->args.slot_count,
                                   .keys = b->args.keys,
                                   .heads = b->args.heads,
                                   .rows = b->args.rows};
    return ERR_OK;
}

wf_status gpu_run_build(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct step_metric *metric = &x->metrics[step_no];
    struct build b = {.g = g, .x = x, .rows = x->vars[step->src].rows};
    if (b.rows >= 0xffffffffLL) {
        FAIL(x->err, NOT_SUPPORTED, "an index over %lld rows", b.rows);
    }
    variable_reset(&x->vars[step->dst]); /* in a loop the host may have the last round's index */
    wf_status status = build_all(&b, step, metric);
    if (status) { /* nothing may still be writing what is freed below */
        gpu_wait(g);
    }
    for (i32 i = 0; i < COUNT_OF(b.temps); i++) {
        gpu_heap_free(g->card, b.temps[i]);
    }
    metric->device = "gpu";
    metric->rows_in += b.rows;
    metric->rows_out += b.rows;
    metric->bytes_read += b.rows * 8;
    metric->probes += !status && gpu_index_bytes(b.gv) > g->card->l2_bytes ? b.rows : 0;
    metric->launches += b.launches;
    if (!status) {
        x->vars[step->dst].rows = b.rows;
        x->vars[step->dst].on_host = 0;
    }
    return status;
}
