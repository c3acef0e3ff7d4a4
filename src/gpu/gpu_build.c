/* gpu_build.c: STEP_BUILD on the card: an index over the rows of a variable.
 *
 * The form follows from what is known when the rows are there: direct addressing when the key range
 * is small against the rows, else open addressing at most half full, in slots of 4 + 4 bytes where the
 * range allows it. One launch assumes unique keys; when it meets a duplicate the index is built as
 * runs of row numbers: count, exclusive sums (the library's scan, as a job inside the step),
 * scatter. Before the table stands a bitmap of its keys, or of one column of them, where the range
 * allows it: most keys that pipelines ask for are not there. */
#include "gpu/gpu_int.h"
#include "prim/move.h"

#define DIRECT_LEAST_SLOTS (1LL << 16)
#define BITS_LEAST_SLOTS (1LL << 20)
#define BITS_PER_ROW 256
/* A filter is worth its place when it is at most this part of the budget, and has a bit for at most
 * this part of the keys set. */
#define FILTER_BUDGET_PART 16
#define FILTER_MOST_SET(count) ((count) / 4 * 3)

struct build {
    struct gpu *g;
    struct exec *x;
    struct gpu_var *gv;
    struct kbuild args;
    i64 rows;
    i64 blocks;
    struct gpu_block *temps[3]; /* slot_of, cursor, the scan's workspace */
    struct kfilter filter;
    i64 set_count; /* bits of the filter */
    i64 most_matches;
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

static FALLIBLE choose_form(struct build *b, const struct step *step) {
    struct range range = step->key_range;
    i128 span = range.hi - range.lo + 1;
    bool known = span > 0 && range.lo >= I64_MIN;
    i64 most = b->args.set ? MAX_OF(BITS_PER_ROW * b->rows, BITS_LEAST_SLOTS)
                           : MAX_OF(4 * b->rows, DIRECT_LEAST_SLOTS);
    b->args.key_lo = known ? (i64)range.lo : 0;
    if (known && span <= most) {
        b->args.form = b->args.set ? KINDEX_BITS : KINDEX_DIRECT;
        b->args.slot_count = (u64)span;
        return ERR_OK;
    }
    b->args.form = known && span <= (i128)1 << 32 ? KINDEX_PAIRS : KINDEX_RUNS;
    b->args.slot_count = 64;
    while (b->args.slot_count < 2 * (u64)b->rows) {
        b->args.slot_count *= 2;
    }
    if (b->args.slot_count > 1LL << 32) { /* slots are numbered by 32 bits */
        FAIL(b->x->err, NOT_SUPPORTED, "an index over %lld rows", b->rows);
    }
    return ERR_OK;
}

/* Whether a direct array is worth a filter: it is sparse, and a cache holds little of it. */
static bool is_sparse(const struct build *b) {
#ifdef WF_HARD
    i64 cached = 0;
#else
    i64 cached = 2 * (i64)b->g->card->l2_bytes;
#endif
    return 2 * (u64)b->rows <= b->args.slot_count && (i64)b->args.slot_count * 4 > cached;
}

/* What there may be a bitmap of: all of the key, else the column of it that has most values. */
static void choose_filter(struct build *b, const struct step *step) {
    i128 most = MAX_OF(BITS_PER_ROW * b->rows, BITS_LEAST_SLOTS);
    i128 span = step->key_range.hi - step->key_range.lo + 1;
    if (b->args.form == KINDEX_BITS || (b->args.form == KINDEX_DIRECT && !is_sparse(b))) {
        return;
    }
    if (span > 0 && span <= most && step->key_range.lo >= I64_MIN) {
        b->filter = (struct kfilter){.lo = b->args.key_lo, .count = (u64)span, .mask = ~0ULL};
        return;
    }
    for (u32 i = 0; i < step->field_count; i++) {
        const struct packed_field *field = &step->fields[i];
        u64 values = field->bits < 63 ? 1ULL << field->bits : ~0ULL;
        if (values > b->filter.count && values <= (u64)most) {
            b->filter =
                (struct kfilter){.count = values, .mask = values - 1, .shift = field->shift};
        }
    }
}

/* Room for the filter; without it, or with too little, the index does without. */
static FALLIBLE filter_alloc(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    i64 bytes = (i64)(b->filter.count / 32 + 1) * 4;
    if (!b->filter.count || bytes > g->card->heap.budget_bytes / FILTER_BUDGET_PART) {
        return ERR_OK;
    }
    b->gv->filter = gpu_alloc_try(g, bytes);
    if (!b->gv->filter) {
        return g->card->broken ? gpu_alloc(g, bytes, &b->gv->filter, err) : ERR_OK;
    }
    b->filter.bits = DEV(u32 *, b->gv->filter->addr);
    CU(g->api->set_bytes(b->gv->filter->addr, 0, (size_t)bytes, g->streams[0]));
    return ERR_OK;
}

/* A bit a key: of a set that is nothing else, or of a filter, whose bits are counted. */
static FALLIBLE build_bits(struct build *b) {
    struct kbits bits = {.key = b->args.key,
                         .nulls = b->args.nulls,
                         .row_count = b->rows,
                         .to = b->filter,
                         .report = b->args.report};
    if (b->args.form == KINDEX_BITS) {
        bits.to = (struct kfilter){.bits = b->args.heads,
                                   .lo = b->args.key_lo,
                                   .count = b->args.slot_count,
                                   .mask = ~0ULL};
        return start(b, KERNEL_BUILD_BITS, b->blocks, &bits);
    }
    TRY(filter_alloc(b));
    bits.to.bits = b->filter.bits;
    if (!b->filter.bits) {
        return ERR_OK;
    }
    TRY(start(b, KERNEL_BUILD_BITS, b->blocks, &bits));
    i64 words = (i64)(b->filter.count / 32 + 1);
    i64 blocks = MIN_OF((words + BLOCK_THREADS - 1) / BLOCK_THREADS, b->g->card->sm_count * 8LL);
    return start(b, KERNEL_BITS_COUNT, blocks, &bits);
}

/* The one wait for all that was started. */
static FALLIBLE read_report(struct build *b, u64 report[REPORT_WORDS]) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    void *last = NULL;
    TRY(gpu_event(g, 1, &last, err));
    CU(g->api->event_record(last, g->streams[0]));
    TRY(gpu_pinned_reserve(g, &g->reports, REPORT_WORDS * 8, err));
    CU(g->api->copy_to_host(g->reports.host, (u64)(size_t)b->args.report, REPORT_WORDS * 8,
                            g->streams[0]));
    CU(g->api->stream_synchronize(g->streams[0]));
    memcpy(report, g->reports.host, REPORT_WORDS * 8);
    return ERR_OK;
}

static FALLIBLE build_unique(struct build *b, bool *out_duplicate) {
    i64 slots = (i64)b->args.slot_count;
    u64 report[REPORT_WORDS];
    bool array = b->args.form == KINDEX_DIRECT || b->args.form == KINDEX_BITS;
    i64 bytes = b->args.form == KINDEX_BITS    ? (slots / 32 + 1) * 4
                : b->args.form == KINDEX_DIRECT ? (slots + 1) * 4
                : b->args.form == KINDEX_PAIRS  ? (slots + 1) * 8
                                                : 2 * slots * 8;
    struct gpu_block **block = array ? &b->gv->heads : &b->gv->slots;
    bytes = ALIGN_UP(bytes, 256); /* behind them the report, zeroed with them */
    TRY(zeroed(b, bytes + REPORT_WORDS * 8, block));
    b->args.report = DEV(u64 *, (*block)->addr + (u64)bytes);
    b->args.heads = array ? DEV(u32 *, (*block)->addr) : NULL;
    b->args.slots = array ? NULL : DEV(u64 *, (*block)->addr);
    if (b->args.form != KINDEX_BITS) {
        TRY(start(b, KERNEL_BUILD_UNIQUE, b->blocks, &b->args));
    }
    TRY(build_bits(b));
    TRY(read_report(b, report));
    *out_duplicate = (report[REPORT_RETRY] & RETRY_DUPLICATE) != 0;
    if (b->filter.bits && report[REPORT_ROWS] > FILTER_MOST_SET(b->filter.count)) {
        gpu_heap_free(b->g->card, b->gv->filter);
        b->gv->filter = NULL;
        b->filter.bits = NULL;
    }
    b->set_count = (i64)report[REPORT_ROWS];
    return ERR_OK;
}

/* Exclusive sums, in place, by the library. */
static FALLIBLE scan(struct build *b, u32 *data, i64 count) {
    struct prim_array sums = {.type = ELEM_U32, .data = data, .count = count};
    struct prim_job job = prim_job_inside(b->x, &b->g->device);
    TRY(prim_scan_array(&job, FOLD_ADD, false, sums, sums));
    TRY(gpu_alloc(b->g, job.work_peak, &b->temps[2], b->x->err));
    prim_job_go(&job, DEV(void *, b->temps[2]->addr));
    TRY(prim_scan_array(&job, FOLD_ADD, false, sums, sums));
    b->launches += job.launches;
    return ERR_OK;
}

static FALLIBLE build_runs(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    i64 slots = (i64)b->args.slot_count;
    u64 report[REPORT_WORDS];
    TRY(gpu_alloc(g, b->rows * 4, &b->gv->index_rows, err));
    TRY(gpu_alloc(g, b->rows * 4, &b->temps[0], err));
    TRY(zeroed(b, (slots + 1) * 4, &b->temps[1]));
    CU(g->api->set_bytes((u64)(size_t)b->args.report, 0, REPORT_WORDS * 8, g->streams[0]));
    b->args.rows = DEV(u32 *, b->gv->index_rows->addr);
    b->args.slot_of = DEV(u32 *, b->temps[0]->addr);
    b->args.cursor = DEV(u32 *, b->temps[1]->addr);
    TRY(start(b, KERNEL_BUILD_COUNT, b->blocks, &b->args));
    TRY(scan(b, b->args.cursor, slots + 1));
    TRY(start(b, KERNEL_BUILD_STARTS, b->blocks, &b->args));
    TRY(start(b, KERNEL_BUILD_SCATTER, b->blocks, &b->args));
    TRY(read_report(b, report));
    b->most_matches = MAX_OF((i64)report[REPORT_ROWS], 1);
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
    b->most_matches = 1;
    TRY(choose_form(b, step));
    choose_filter(b, step);
    void *first = NULL;
    TRY(gpu_event(g, 0, &first, err));
    CU(g->api->event_record(first, g->streams[0]));
    bool duplicate = false;
    TRY(build_unique(b, &duplicate));
    if (duplicate) {
        TRY(build_runs(b));
    }
    float ms = 0;
    CU(g->api->event_elapsed(&ms, first, g->events[1]));
    metric->device_ns += (i64)((f64)ms * 1e6);
    b->gv->rows = b->rows;
    b->gv->most_matches = b->most_matches;
    b->gv->filter_share = b->filter.bits ? (f64)b->set_count / (f64)b->filter.count : 1.0;
    b->gv->index = (struct kindex){.form = b->args.form,
                                   .unique = !duplicate,
                                   .key_lo = b->args.key_lo,
                                   .slot_count = b->args.slot_count,
                                   .slots = b->args.slots,
                                   .heads = b->args.heads,
                                   .rows = b->args.rows};
    if (b->filter.bits) {
        b->gv->index.filter = b->filter;
    }
    return ERR_OK;
}

/* How it was done, for EXPLAIN ANALYZE. */
static const char *build_name(const struct build *b) {
    static const char *const names[][2] = {
        [KINDEX_DIRECT] = {"gpu direct", "gpu direct+bitmap"},
        [KINDEX_BITS] = {"gpu bitmap", "gpu bitmap"},
        [KINDEX_PAIRS] = {"gpu hash", "gpu hash+bitmap"},
        [KINDEX_RUNS] = {"gpu wide hash", "gpu wide hash+bitmap"}};
    return names[b->args.form][b->filter.bits != NULL];
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
    metric->device = build_name(&b);
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
