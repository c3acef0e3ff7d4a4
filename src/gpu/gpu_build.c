/* gpu_build.c: STEP_BUILD on the card: an index over the rows of a variable.
 *
 * The form follows from what is known when the rows are there: direct addressing when the key range
 * is small against the rows; a bitmap with counts, which numbers the keys, up to 256 keys a row; else
 * open addressing at most half full, in slots of 4 + 4 bytes where the range allows it. One launch
 * assumes unique keys, unless those of this step were repeated when the program ran before; when it
 * meets a duplicate, of which a bitmap knows before, the index is built as runs of row numbers: count,
 * exclusive sums (the library's scan, as a job inside the step), scatter. Before a hash table stands a
 * bitmap of one column of its key, where its range allows it: most keys that pipelines ask for are not
 * there. */
#include "gpu/gpu_int.h"
#include "prim/move.h"

#include "codes/loop.h"

#define DIRECT_LEAST_SLOTS (1LL << 16)
#define BITS_LEAST_SLOTS (1LL << 20)
#define BITS_PER_ROW 256
/* A filter is worth its place when it is at most this part of the budget, and has a bit for at most
 * this part of the keys set. */
#define FILTER_BUDGET_PART 16
#define RANK_BUDGET_PART 4
#define FILTER_MOST_SET(count) ((count) / 4 * 3)
/* A filter of which keys share bits: bits a row, fewer where it would take more than this part of
 * the cache, no fewer than the least. A small one lies in the cache of the multiprocessor. */
#define FOLDED_BITS 64
#define FOLDED_BITS_LEAST 8
#define FOLDED_CACHE_PART 4
#define FOLDED_LEAST_SLOTS (1LL << 16)
/* One before a direct array is worth its launches for so many lookups, of which few find anything. */
#ifdef WF_HARD
#define DIRECT_FILTER_ASKED 4
#else
#define DIRECT_FILTER_ASKED 1000000
#endif
static const f64 DIRECT_FILTER_SHARE = 0.25;
/* Of so many rows keys leave enough of the bits for shared memory unset. */
#define NEAR_MOST_ROWS (NEAR_BITS / 5 * 3)
/* Who asks in the order of keys reads it from end to end, whatever its size: it has bits enough for
 * most tiles to find none of theirs set. */
#define FOLDED_ORDER_SLOTS (1LL << 26)

struct build_note { /* what a build found when it ran last: a program that runs again most likely finds it so */
    i64 set_count;  /* bits of a bitmap */
    i64 most_matches;
    b8 known, guessed;
    b8 repeats, filter; /* keys are repeated; a bitmap before the table was worth it */
};

struct build {
    struct gpu *g;
    struct exec *x;
    struct gpu_var *gv;
    struct kbuild args;
    i64 rows;
    i64 blocks;
    struct gpu_block *temps[8]; /* report, slot_of, cursor, the scan's workspace, bits, their sums,
                                 * the workspace of a scan before, what is packed */
    struct gpu_pack pack; /* of columns, in place of row numbers; count 0: none are */
    u64 span;      /* DIRECT, BITS, RANK: of the keys */
    struct kfilter filter;
    struct weave_field field; /* that it is of */
    i64 set_count; /* bits of the filter */
    b8 folded;     /* keys share bits of it */
    struct build_note before; /* what it found when it ran last: where keys were repeated, it is not tried without */
    i64 most_matches;
    b8 twins; /* rows in the order of their key: some have column 1 in common, too */
    i64 launches;
    b8 waited; /* for all that was started */
    b8 queued; /* nobody waits: all is taken to be as before */
    b8 duplicate;
    i64 event_base;
    struct step_metric *metric;
    const struct step *step;
    u32 step_no;
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
    TRY(gpu_kernel(b->g->card, kernel, b->x, &function, b->x->err));
    b->launches++;
    b->waited = 0;
    return gpu_launch(b->g, function, (struct gpu_grid){blocks, BLOCK_THREADS, 0}, b->g->streams[0],
                      args, b->x->err);
}

/* Whether a direct array is better numbered: it is sparse, and a cache holds little of it. */
static bool is_sparse(const struct build *b, i128 span) {
#ifdef WF_HARD
    i64 cached = 0;
#else
    i64 cached = 2 * (i64)b->g->card->l2_bytes;
#endif
    return 2 * (i128)b->rows <= span && span * 4 > cached;
}

/* Room for the words of a bitmap with counts, and to make it; without it the keys are hashed. */
static bool rank_room(struct build *b, i128 span) {
    i64 words = (i64)(span / 32) + 1;
    if (words * 16 > b->g->card->heap.budget_bytes / RANK_BUDGET_PART) {
        return false;
    }
    b->gv->slots = gpu_alloc_try(b->g, words * 8);
    b->temps[4] = b->gv->slots ? gpu_alloc_try(b->g, words * 4) : NULL;
    b->temps[5] = b->temps[4] ? gpu_alloc_try(b->g, (words / RANK_WORDS + 2) * 4) : NULL;
    if (!b->temps[5]) {
        gpu_heap_free(b->g->card, b->gv->slots);
        b->gv->slots = NULL;
    }
    return b->temps[5] != NULL;
}

/* A hash table for all rows. */
static FALLIBLE hash_form(struct build *b, const struct step *step) {
    struct range range = step->key_range;
    i128 span = range.hi - range.lo + 1;
    bool known = span > 0 && range.lo >= I64_MIN;
    b->args.key_lo = known ? (i64)range.lo : 0;
    b->args.form = known && span <= (i128)1 << 32 ? KINDEX_PAIRS : KINDEX_RUNS;
    b->args.slot_count = 64;
    while (b->args.slot_count < 2 * (u64)b->rows) {
        b->args.slot_count *= 2;
    }
    if (b->args.slot_count > 1LL << 32) { /* slots are numbered by 32 bits */
        FAIL(b->x->err, DEVICE_MEMORY, "no GPU has a hash table of %lld rows", b->rows);
    }
    return ERR_OK;
}

static FALLIBLE choose_form(struct build *b, const struct step *step) {
    struct range range = step->key_range;
    i128 span = range.hi - range.lo + 1;
    bool known = span > 0 && range.lo >= I64_MIN;
    i64 most_bits = MAX_OF(BITS_PER_ROW * b->rows, BITS_LEAST_SLOTS);
    i64 most = b->args.set ? most_bits : MAX_OF(4 * b->rows, DIRECT_LEAST_SLOTS);
    bool direct = known && span <= most && (b->args.set || !is_sparse(b, span));
    b->args.key_lo = known ? (i64)range.lo : 0;
    b->span = known && span <= I64_MAX ? (u64)span : 0;
    b->args.slot_count = b->span;
    if (direct) {
        b->args.form = b->args.set ? KINDEX_BITS : KINDEX_DIRECT;
        return ERR_OK;
    }
    if (known && span <= most_bits && rank_room(b, span)) {
        b->args.form = KINDEX_RANK;
        return ERR_OK;
    }
    return hash_form(b, step);
}

static f64 expected_share(const struct build *b, u32 index) {
    f64 bits = b->args.form == KINDEX_RANK   ? (f64)b->set_count / (f64)b->span
               : b->args.form == KINDEX_BITS ? (f64)b->rows / (f64)b->span
               : b->filter.bits              ? (f64)b->set_count / (f64)b->filter.count
                                             : 1.0;
    return gpu_var_share(b->x, index, b->rows, bits);
}

/* The opcode that makes what a register holds, whatever its width. */
static const struct op *maker_of(const struct pipeline *pipe, u16 reg) {
    for (u32 i = pipe->op_count; i-- > 0;) {
        const struct op *op = &pipe->ops[i];
        if (op_writes(op) && op->dst == reg) {
            return op->code == OP_I64_I32 ? maker_of(pipe, op->a) : op;
        }
    }
    return NULL;
}

/* The column of the source that it is; -1: none. */
static i64 column_of(const struct pipeline *pipe, u16 reg) {
    const struct op *op = maker_of(pipe, reg);
    return op && op->code == OP_LOAD ? (i64)op->imm : -1;
}

/* The row of a variable whose column it is; NO_REG: none. */
static u16 row_of(const struct pipeline *pipe, u16 reg) {
    const struct op *op = maker_of(pipe, reg);
    return op && op->code == OP_LOADV ? op->a : (u16)NO_REG;
}

/* Whether a pipeline looks keys up here by what its rows come in the order of: a column of its source,
 * or one that is equal to it, of the row found. */
static bool asks_in_order(const struct pipeline *pipe, u32 index) {
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        i64 sorted = -1;
        u16 row = NO_REG;
        if (sink->kind == SINK_AGG && sink->in_runs) {
            sorted = column_of(pipe, sink->key);
            row = row_of(pipe, sink->key);
        }
        for (u32 i = 0; i < pipe->op_count; i++) {
            const struct op *op = &pipe->ops[i];
            bool looks = (op->code == OP_PROBE || op->code == OP_MATCH) && op->imm == index;
            if (looks && ((row != NO_REG && op->dst == row) ||
                          (sorted >= 0 && column_of(pipe, op->a) == sorted))) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a pipeline walks runs of it, whose rows are in the order of their key then. */
static bool walks_runs(const struct pipeline *pipe, u32 index) {
    bool walks = false;
    for (u32 i = 0; i < pipe->op_count; i++) {
        walks = walks || (pipe->ops[i].code == OP_RUN && pipe->ops[i].imm == index);
    }
    return walks;
}

static bool some_pipeline(const struct program *program, u32 index,
                          bool (*does)(const struct pipeline *, u32)) {
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            const struct step *step = &program->blocks[b].steps[s];
            if (step->kind == STEP_PIPELINE && does(step->pipeline, index)) {
                return true;
            }
        }
    }
    return false;
}

/* A bitmap of the lowest bits of the key, or of one column of it: neighbours have neighbouring bits,
 * whatever the span. */
static void fold_filter(struct build *b, u8 shift, bool in_order) {
    u64 count = in_order && !b->g->api->is_simt ? FOLDED_ORDER_SLOTS : FOLDED_LEAST_SLOTS;
    u64 cached = (u64)b->g->card->l2_bytes / FOLDED_CACHE_PART * 8;
    while (count < FOLDED_BITS * (u64)b->rows) {
        count *= 2;
    }
    while (count > cached) {
        count /= 2;
    }
    if (count >= FOLDED_BITS_LEAST * (u64)b->rows) {
        b->folded = 1;
        b->filter = (struct kfilter){.count = count, .mask = count - 1, .shift = shift};
    }
}

/* A direct array that has few of the keys that it is asked for has a bitmap of all. */
static void filter_direct(struct build *b, u32 index) {
    bool few = gpu_var_share(b->x, index, b->rows, 1.0) <= DIRECT_FILTER_SHARE;
    if (few && b->x->program->vars[index].asked >= DIRECT_FILTER_ASKED &&
        2 * (u64)b->rows <= b->span) {
        b->filter = (struct kfilter){.count = b->span, .lo = b->args.key_lo, .mask = ~0ULL};
    }
}

/* Of which column of its key a hash table has a bitmap: the one that has most values. */
static void choose_filter(struct build *b, const struct step *step) {
    u64 most = (u64)MAX_OF(BITS_PER_ROW * b->rows, BITS_LEAST_SLOTS);
    if (b->args.form == KINDEX_DIRECT) {
        filter_direct(b, step->dst);
        return;
    }
    bool hashed = b->args.form == KINDEX_PAIRS || b->args.form == KINDEX_RUNS;
    u32 chosen = 0;
    u32 widest = 0;
    for (u32 i = 0; hashed && i < step->field_count; i++) {
        const struct packed_field *field = &step->fields[i];
        widest = field->bits > step->fields[widest].bits ? i : widest;
        u64 values = field->bits < 63 ? 1ULL << field->bits : ~0ULL;
        if (values > b->filter.count && values <= most) {
            b->filter =
                (struct kfilter){.count = values, .mask = values - 1, .shift = field->shift};
            chosen = i;
        }
    }
    if (hashed && b->filter.count < 2 * (u64)b->rows) { /* most of its bits would be set */
        fold_filter(b, step->field_count ? step->fields[widest].shift : 0,
                    some_pipeline(b->x->program, step->dst, asks_in_order));
        chosen = b->folded ? widest : chosen;
    }
    /* Its lowest bits, if they are more than the column has, are the next one's, too. */
    bool top = chosen + 1 == step->field_count;
    bool alone = top || (step->field_count && (step->fields[chosen].bits >= 63 ||
                                              b->filter.count <= 1ULL << step->fields[chosen].bits));
    if (b->filter.count && alone) { /* a key has at most as many fields as bits */
        b->field = (struct weave_field){(u8)step->field_count, (u8)chosen, (u8)b->filter.shift};
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

static i64 word_blocks(const struct build *b, u64 bits) {
    i64 words = (i64)(bits / 32 + 1);
    return MIN_OF((words + BLOCK_THREADS - 1) / BLOCK_THREADS, b->g->card->sm_count * 8LL);
}

static struct kbits bits_of(const struct build *b, struct kfilter to) {
    return (struct kbits){.key = b->args.key,
                          .nulls = b->args.nulls,
                          .row_count = b->rows,
                          .to = to,
                          .report = b->args.report,
                          .rows_at = b->args.rows_at};
}

/* A bit a key: of a set that is nothing else, or of a filter, whose bits are counted. */
static FALLIBLE build_bits(struct build *b) {
    if (b->args.form == KINDEX_BITS) {
        struct kbits bits = bits_of(
            b, (struct kfilter){
                   .bits = b->args.heads, .lo = b->args.key_lo, .count = b->span, .mask = ~0ULL});
        return start(b, KERNEL_BUILD_BITS, b->blocks, &bits);
    }
    TRY(filter_alloc(b));
    if (!b->filter.bits) {
        return ERR_OK;
    }
    struct kbits bits = bits_of(b, b->filter);
    TRY(start(b, KERNEL_BUILD_BITS, b->blocks, &bits));
    return start(b, KERNEL_BITS_COUNT, word_blocks(b, b->filter.count), &bits);
}

/* Bits for shared memory: lookups of keys in no order are bound by the places that a multiprocessor
 * asks its cache for, of which it has one a cycle, and 32 of shared memory. */
static FALLIBLE build_near(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    bool whole = b->args.form == KINDEX_RANK || b->args.form == KINDEX_BITS;
    if (b->rows < 1 || b->rows > NEAR_MOST_ROWS || !(whole || b->filter.count)) {
        return ERR_OK;
    }
    b->gv->near = gpu_alloc_try(g, NEAR_BITS / 8);
    if (!b->gv->near) {
        return g->card->broken ? gpu_alloc(g, NEAR_BITS / 8, &b->gv->near, err) : ERR_OK;
    }
    CU(g->api->set_bytes(b->gv->near->addr, 0, NEAR_BITS / 8, g->streams[0]));
    struct kbits bits = bits_of(b, (struct kfilter){.bits = DEV(u32 *, b->gv->near->addr),
                                                    .count = NEAR_BITS,
                                                    .mask = whole ? NEAR_BITS - 1
                                                                  : b->filter.mask & (NEAR_BITS - 1),
                                                    .shift = b->filter.shift});
    bits.report = NULL;
    return start(b, KERNEL_BUILD_BITS, b->blocks, &bits);
}

static FALLIBLE record_end(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    void *last = NULL;
    TRY(gpu_event(g, b->event_base + 1, &last, err));
    CU(g->api->event_record(last, g->streams[0]));
    return ERR_OK;
}

static FALLIBLE read_report(struct build *b, u64 report[REPORT_WORDS]) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    TRY(gpu_pinned_reserve(g, &g->reports, REPORT_WORDS * 8, err));
    TRY(record_end(b));
    CU(g->api->copy_to_host(g->reports.host, b->temps[0]->addr, REPORT_WORDS * 8, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    memcpy(report, g->reports.host, REPORT_WORDS * 8);
    b->waited = 1;
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

/* --- columns in place of row numbers --- */

/* Picoseconds: of a place that the second-level cache has, of one that it has not, of a launch (decisions 0036,
 * 0056). */
enum { NEAR_PS = 5, FAR_PS = 24, LAUNCH_PS = 4000000, BYTES_PER_PS = 3 };

/* Whether what lookups save is more than what it takes: a pass over the columns, and a launch. */
static bool pack_pays(const struct build *b) {
    const struct var *var = &b->x->program->vars[b->step->dst];
    i64 rows = b->rows;
    bool wide = b->args.form == KINDEX_RUNS; /* rows are swapped for what they have, slot by slot */
    i64 bytes = wide ? 4 + 32 * (i64)b->args.slot_count / MAX_OF(rows, 1) : 4;
    f64 saved = 0;
    for (u32 i = 0; i < b->pack.count; i++) {
        const struct pack_field *field = &b->pack.fields[i];
        i64 width = field->loaded ? kind_bytes[b->x->program->vars[b->step->src].kinds[field->col]] : 0;
        bool far = rows * width > (i64)b->g->card->l2_bytes / 2;
        bytes += width + field->nulls;
        saved += (far ? FAR_PS : NEAR_PS) * (1.0 + field->nulls);
    }
    f64 found = (f64)var->asked * MIN_OF(gpu_var_share(b->x, b->step->dst, rows, 1.0), 1.0);
    f64 swaps = wide ? LAUNCH_PS + (f64)rows * (rows * 4 > (i64)b->g->card->l2_bytes / 2 ? FAR_PS : NEAR_PS) : 0;
    return found * saved > LAUNCH_PS + swaps + 2.0 * (f64)rows * (f64)bytes / BYTES_PER_PS;
}

/* Whether lookups may get columns instead of row numbers. */
static void choose_pack(struct build *b) {
    i64 setting = b->x->settings->gpu_payload;
    bool may = setting != PAYLOAD_OFF && !b->args.set && !b->before.repeats;
#ifdef WF_HARD
    setting = PAYLOAD_ON;
#endif
    if (!may || !gpu_pack_find(b->x->program, b->step->dst, &b->pack) ||
        (setting == PAYLOAD_AUTO && !pack_pays(b))) {
        b->pack.count = 0;
    }
}

/* Every row's, if there is room. */
static FALLIBLE pack_rows(struct build *b) {
    struct gpu *g = b->g;
    struct kbuild_pack args = {.row_count = b->rows,
                               .rows_at = b->args.rows_at,
                               .report = b->args.report,
                               .count = b->pack.count};
    if (!b->pack.count) {
        return ERR_OK;
    }
    for (u32 i = 0; i < b->pack.count; i++) {
        const struct pack_field *field = &b->pack.fields[i];
        struct kcol col;
        TRY(gpu_var_col(g, b->x, b->step->src, field->col, &col, &b->metric->bytes_moved));
        u32 bytes = kind_bytes[b->x->program->vars[b->step->src].kinds[field->col]];
        args.fields[i] = (struct kpack_field){.data = col.data,
                                              .nulls = field->nulls ? col.nulls : NULL,
                                              .lo = (i64)field->lo,
                                              .bytes = field->loaded ? bytes : 0,
                                              .shift = field->shift,
                                              .bits = field->bits,
                                              .null_bit = field->nulls ? 1u + field->null_shift : 0};
        b->metric->bytes_read += b->rows * args.fields[i].bytes;
    }
    b->temps[7] = gpu_alloc_try(g, MAX_OF(b->rows, 1) * 4);
    if (!b->temps[7]) {
        return g->card->broken ? gpu_alloc(g, MAX_OF(b->rows, 1) * 4, &b->temps[7], b->x->err) : ERR_OK;
    }
    args.out = DEV(u32 *, b->temps[7]->addr);
    b->args.packed = args.out;
    return start(b, KERNEL_BUILD_PACK, b->blocks, &args);
}

/* Keys of two words are told apart by the rows that have them, until all are there. */
static FALLIBLE swap_rows(struct build *b) {
    bool swaps = b->args.packed && b->args.form == KINDEX_RUNS;
    i64 blocks = MIN_OF((i64)b->args.slot_count / BLOCK_THREADS + 1, b->g->card->sm_count * 8LL);
    return swaps ? start(b, KERNEL_BUILD_SWAP, blocks, &b->args) : ERR_OK;
}

static FALLIBLE start_unique(struct build *b) {
    TRY(pack_rows(b));
    return start(b, KERNEL_BUILD_UNIQUE, b->blocks, &b->args);
}

/* A bitmap with counts, and whether keys are repeated: then it has fewer bits than there are rows. */
static FALLIBLE build_ranks(struct build *b, bool *out_duplicate) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    u64 report[REPORT_WORDS];
    i64 words = (i64)(b->span / 32) + 1;
    b->args.slots = DEV(u64 *, b->gv->slots->addr);
    struct kbits bits = bits_of(b, (struct kfilter){.bits = DEV(u32 *, b->temps[4]->addr),
                                                    .lo = b->args.key_lo,
                                                    .count = b->span,
                                                    .mask = ~0ULL});
    bits.before = DEV(u32 *, b->temps[5]->addr);
    bits.words = b->args.slots;
    CU(g->api->set_bytes(b->temps[4]->addr, 0, (size_t)words * 4, g->streams[0]));
    TRY(start(b, KERNEL_BUILD_BITS, b->blocks, &bits));
    i64 parts = (words + RANK_WORDS - 1) / RANK_WORDS;
    i64 blocks = MIN_OF(parts, g->card->sm_count * 8LL);
    TRY(start(b, KERNEL_RANK_COUNT, blocks, &bits));
    TRY(scan(b, bits.before, parts));
    TRY(start(b, KERNEL_RANK_WORDS, blocks, &bits));
    if (b->queued) { /* there are no more keys than rows */
        b->set_count = b->before.set_count;
        *out_duplicate = b->before.repeats;
        b->args.slot_count = (u64)b->rows;
    } else {
        TRY(read_report(b, report));
        b->set_count = (i64)report[REPORT_ROWS];
        *out_duplicate = report[REPORT_ROWS] != report[REPORT_COUNTS];
        b->args.slot_count = (u64)b->set_count;
    }
    TRY(gpu_alloc(g, ((i64)b->args.slot_count + 1) * 4, &b->gv->heads, err));
    b->args.heads = DEV(u32 *, b->gv->heads->addr);
    b->temps[6] = b->temps[3]; /* the scan may still be using it */
    b->temps[3] = NULL;
    return *out_duplicate ? ERR_OK : start_unique(b);
}

static FALLIBLE build_unique(struct build *b, bool *out_duplicate) {
    i64 slots = (i64)b->args.slot_count;
    u64 report[REPORT_WORDS];
    TRY(zeroed(b, REPORT_WORDS * 8, &b->temps[0]));
    b->args.report = DEV(u64 *, b->temps[0]->addr);
    TRY(build_near(b));
    if (b->args.form == KINDEX_RANK) {
        return build_ranks(b, out_duplicate);
    }
    if (b->args.form == KINDEX_DIRECT || b->args.form == KINDEX_BITS) {
        bool bits = b->args.form == KINDEX_BITS;
        TRY(zeroed(b, (bits ? slots / 32 + 1 : slots + 1) * 4, &b->gv->heads));
        b->args.heads = DEV(u32 *, b->gv->heads->addr);
    } else {
        TRY(zeroed(b, (b->args.form == KINDEX_PAIRS ? slots + 1 : 2 * slots) * 8, &b->gv->slots));
        b->args.slots = DEV(u64 *, b->gv->slots->addr);
    }
    if (b->before.repeats && b->args.form == KINDEX_DIRECT) { /* there is no filter either */
        *out_duplicate = true;
        return ERR_OK;
    }
    if (b->args.form != KINDEX_BITS) {
        TRY(start_unique(b));
    }
    TRY(build_bits(b));
    if (b->queued) {
        b->set_count = b->before.set_count;
        *out_duplicate = b->before.repeats;
        return *out_duplicate ? ERR_OK : swap_rows(b);
    }
    TRY(read_report(b, report));
    *out_duplicate = (report[REPORT_RETRY] & RETRY_DUPLICATE) != 0;
    if (report[REPORT_RETRY] & RETRY_TABLE) {
        FAIL(b->x->err, INTERNAL, "a column of variable %u is out of its range", b->step->src);
    }
    bool full = report[REPORT_ROWS] > FILTER_MOST_SET(b->filter.count);
    bool alike = b->folded && !*out_duplicate && (i64)report[REPORT_ROWS] < b->rows / 4;
    if (b->filter.bits && (full || alike)) {
        gpu_heap_free(b->g->card, b->gv->filter);
        b->gv->filter = NULL;
        b->filter.bits = NULL;
    }
    b->set_count = (i64)report[REPORT_ROWS];
    return *out_duplicate ? ERR_OK : swap_rows(b);
}

static FALLIBLE build_runs(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    i64 slots = (i64)b->args.slot_count;
    bool plain = b->args.form == KINDEX_DIRECT || b->args.form == KINDEX_RANK;
    u64 report[REPORT_WORDS];
    TRY(gpu_alloc(g, b->rows * 4, &b->gv->index_rows, err));
    TRY(gpu_alloc(g, b->rows * 4, &b->temps[1], err));
    if (plain) { /* sums of what is counted are the heads */
        CU(g->api->set_bytes(b->gv->heads->addr, 0, (size_t)(slots + 1) * 4, g->streams[0]));
    } else {
        TRY(zeroed(b, (slots + 1) * 4, &b->temps[2]));
    }
    CU(g->api->set_bytes(b->temps[0]->addr, 0, REPORT_WORDS * 8, g->streams[0]));
    b->args.rows = DEV(u32 *, b->gv->index_rows->addr);
    b->args.slot_of = DEV(u32 *, b->temps[1]->addr);
    b->args.cursor = plain ? b->args.heads : DEV(u32 *, b->temps[2]->addr);
    TRY(start(b, KERNEL_BUILD_COUNT, b->blocks, &b->args));
    TRY(scan(b, b->args.cursor, slots + 1));
    if (!plain) {
        TRY(start(b, KERNEL_BUILD_STARTS, b->blocks, &b->args));
    }
    if (!plain && b->args.values) {
        TRY(start(b, KERNEL_BUILD_FIRSTS, b->blocks, &b->args));
    }
    TRY(start(b, KERNEL_BUILD_SCATTER, b->blocks, &b->args));
    if (b->queued) {
        b->most_matches = b->before.most_matches;
        return ERR_OK;
    }
    TRY(read_report(b, report));
    b->most_matches = MAX_OF((i64)report[REPORT_ROWS], 1);
    b->twins = report[REPORT_GROUPS] != 0;
    return ERR_OK;
}

enum { NOTE_REPEATS = 1, NOTE_FILTER = 2, NOTE_COUNT = 3 };

/* What there is of a build that ran before. One that the host made, of keys each of which was there once, is expected
 * to be as simple here. */
static void find_note(struct build *b) {
    u64 words[NOTE_WORDS];
    struct build_note *before = &b->before;
    if (exec_recall(b->x, b->step_no, words) == NOTE_COUNT) {
        *before = (struct build_note){.known = 1,
                                      .set_count = (i64)words[0],
                                      .most_matches = (i64)words[1],
                                      .repeats = (words[2] & NOTE_REPEATS) != 0,
                                      .filter = (words[2] & NOTE_FILTER) != 0};
    } else if (exec_expects_unique(b->x, b->step->dst)) {
        *before = (struct build_note){
            .known = 1, .guessed = 1, .set_count = b->rows, .most_matches = 1, .filter = 1};
    }
}

static void leave_note(const struct build *b) {
    bool repeats = b->most_matches > 1;
    u64 words[NOTE_COUNT] = {(u64)b->set_count, (u64)b->most_matches,
                             (repeats ? NOTE_REPEATS : 0u) | (b->filter.bits ? NOTE_FILTER : 0u)};
    exec_remember(b->x, b->step_no, words, NOTE_COUNT);
}

/* The index as kernels find it. */
static void describe_index(struct build *b) {
    b->gv->packed = b->args.packed && !b->duplicate;
    if (b->gv->packed) {
        b->metric->how = arena_printf(b->x->arena, "%u bits of columns in place of rows", b->pack.bits);
    }
    b->gv->rows = b->rows;
    b->gv->most_matches = b->most_matches;
    b->gv->share = expected_share(b, b->step->dst);
    b->gv->index =
        (struct kindex){.form = b->args.form,
                        .unique = !b->duplicate,
                        .key_lo = b->args.key_lo,
                        .slot_count = b->args.form == KINDEX_RANK ? b->span : b->args.slot_count,
                        .slots = b->args.slots,
                        .heads = b->args.heads,
                        .rows = b->args.rows,
                        .near = b->gv->near ? DEV(const u32 *, b->gv->near->addr) : NULL,
                        .apart = b->args.values && !b->twins};
    if (b->filter.bits) {
        b->gv->index.filter = b->filter;
        b->gv->field = b->field;
    }
}

static FALLIBLE add_time(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    float ms = 0;
    void **events = g->events + b->event_base;
    CU(g->api->event_elapsed(&ms, events[0], events[1]));
    b->metric->device_ns += (i64)((f64)ms * 1e6);
    return ERR_OK;
}

/* Whether runs of it are walked: what their rows have in common is looked at. */
static bool walked(const struct build *b, const struct step *step) {
    return some_pipeline(b->x->program, step->dst, walks_runs);
}

static void set_size(struct build *b) {
    b->args.row_count = b->rows;
    b->args.set = b->x->program->vars[b->step->dst].set;
    b->blocks =
        MAX_OF(MIN_OF((b->rows + BLOCK_THREADS - 1) / BLOCK_THREADS, b->g->card->sm_count * 8LL), 1);
    b->most_matches = 1;
}

/* All kernels, with as many looks at what they found as it takes. */
static FALLIBLE build_all(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    const struct step *step = b->step;
    struct kcol key;
    TRY(gpu_var_col(g, b->x, step->src, step->col, &key, &b->metric->bytes_moved));
    TRY(gpu_var_new(g, b->x, step->dst, 0, &b->gv));
    const struct gpu_var *from = b->x->vars[step->src].copy;
    b->args.key = (const i64 *)(const void *)key.data;
    b->args.nulls = key.nulls;
    if (walked(b, step)) {
        struct kcol values;
        TRY(gpu_var_col(g, b->x, step->src, 1, &values, &b->metric->bytes_moved));
        b->args.values = (const i64 *)(const void *)values.data;
    }
    b->args.rows_at = b->queued && from->count_at ? DEV(const i64 *, from->count_at) : NULL;
    set_size(b);
    TRY(choose_form(b, step));
    choose_pack(b);
    choose_filter(b, step);
    if (b->queued && !b->before.filter) {
        b->filter.count = 0;
        b->folded = 0;
    }
    void *first = NULL;
    TRY(gpu_event(g, b->event_base, &first, err));
    CU(g->api->event_record(first, g->streams[0]));
    bool duplicate = false;
    TRY(build_unique(b, &duplicate));
    b->duplicate = duplicate;
    if (duplicate) {
        TRY(build_runs(b));
    }
    if (!b->waited) {
        TRY(record_end(b));
    }
    describe_index(b);
    return ERR_OK;
}

static FALLIBLE build_and_wait(struct build *b) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    TRY(build_all(b));
    leave_note(b);
    if (!b->waited) {
        CU(gpu_sync(g, g->streams[0]));
    }
    return add_time(b);
}

/* How it was done, for EXPLAIN ANALYZE. */
static const char *build_name(const struct build *b) {
    static const char *const names[][2] = {
        [KINDEX_DIRECT] = {"gpu direct", "gpu direct+bitmap"},
        [KINDEX_BITS] = {"gpu bitmap"},
        [KINDEX_RANK] = {"gpu numbered"},
        [KINDEX_PAIRS] = {"gpu hash", "gpu hash+bitmap"},
        [KINDEX_RUNS] = {"gpu wide hash", "gpu wide hash+bitmap"}};
    return names[b->args.form][b->filter.bits != NULL];
}

static FALLIBLE build_open(struct gpu *g, struct exec *x, struct step_metric *metric, u32 step_no,
                           const struct step *step, struct build *out) {
    *out = (struct build){.g = g,
                          .x = x,
                          .rows = x->vars[step->src].rows,
                          .metric = metric,
                          .step = step,
                          .step_no = step_no};
    if (out->rows > DEVICE_INDEX_ROWS_MOST) {
        FAIL(x->err, DEVICE_MEMORY, "no GPU has an index over %lld rows", out->rows);
    }
    variable_reset(&x->vars[step->dst]); /* in a loop the host may have the last round's index */
    find_note(out);
    return ERR_OK;
}

void gpu_build_close(struct build *b, wf_status status) {
    struct gpu *g = b->g;
    struct step_metric *metric = b->metric;
    if (status) { /* nothing may still be writing what is freed below */
        gpu_wait(g);
    }
    for (i32 i = 0; i < COUNT_OF(b->temps); i++) {
        gpu_heap_free(g->card, b->temps[i]);
    }
    metric->device = build_name(b);
    metric->rows_in += b->rows;
    metric->rows_out += b->rows;
    metric->bytes_read += b->rows * 8;
    metric->probes += !status && gpu_index_bytes(b->gv) > g->card->l2_bytes ? b->rows : 0;
    metric->launches += b->launches;
    if (!status) {
        b->x->vars[b->step->dst].rows = b->rows;
        b->x->vars[b->step->dst].on_host = 0;
    }
}

static FALLIBLE build_now(struct gpu *g, struct exec *x, struct step_metric *metric, u32 step_no,
                          const struct step *step) {
    struct build b;
    TRY(build_open(g, x, metric, step_no, step, &b));
    wf_status status = build_and_wait(&b);
    gpu_build_close(&b, status);
    return status;
}

/* --- in parts --- */

/* Of rows that lie in parts; 0: they do not. */
static u32 part_count(const struct gpu *g, const struct exec *x, const struct step *step) {
    const struct variable *v = &x->vars[step->src];
    const struct gpu_var *from = v->copy;
    bool here = from && v->copy_space == g->device.space && from->epoch == g->card->epoch;
    return here && from->parts.index == NO_VAR ? from->parts.count : 0;
}

/* An index without a table: each part's is made when its rows are looked up. */
static FALLIBLE build_later(struct gpu *g, struct exec *x, struct step_metric *metric, u32 step_no,
                            const struct step *step) {
    struct build b;
    TRY(build_open(g, x, metric, step_no, step, &b));
    const struct gpu_parts parts = ((const struct gpu_var *)x->vars[step->src].copy)->parts;
    i64 most = 1;
    for (u32 p = 0; p < parts.count; p++) {
        most = MAX_OF(most, (i64)(parts.starts[p + 1] - parts.starts[p]));
    }
    TRY(gpu_var_new(g, x, step->dst, 0, &b.gv));
    set_size(&b);
    TRY(hash_form(&b, step));
    b.duplicate = !b.args.set;
    b.most_matches = most;
    describe_index(&b);
    b.gv->parts = parts;
    metric->device = "gpu";
    metric->how = arena_printf(x->arena, "%u parts, each made when it is looked up", parts.count);
    metric->rows_in += b.rows;
    metric->rows_out += b.rows;
    x->vars[step->dst].rows = b.rows;
    x->vars[step->dst].on_host = 0;
    return ERR_OK;
}

wf_status gpu_run_build(struct gpu *g, struct exec *x, u32 step_no, const struct step *step) {
    struct step_metric *metric = &x->metrics[step_no];
    if (step->grow) {
        return gpu_run_grow(g, x, step_no, step);
    }
    return part_count(g, x, step) ? build_later(g, x, metric, step_no, step)
                                  : build_now(g, x, metric, step_no, step);
}

/* All parts have a table of the same form, whatever their keys: one kernel serves all. */
static FALLIBLE build_part(struct build *b, i64 first) {
    struct gpu *g = b->g;
    struct error *err = b->x->err;
    struct kcol key;
    void *begin = NULL;
    bool duplicate = false;
    TRY(gpu_var_col(g, b->x, b->step->src, b->step->col, &key, &b->metric->bytes_moved));
    b->args.key = (const i64 *)(const void *)key.data + first;
    b->args.nulls = key.nulls ? key.nulls + first : NULL;
    set_size(b);
    TRY(hash_form(b, b->step));
    TRY(gpu_event(g, b->event_base, &begin, err));
    CU(g->api->event_record(begin, g->streams[0]));
    TRY(build_unique(b, &duplicate));
    b->duplicate = !b->args.set;
    if (b->duplicate) {
        TRY(build_runs(b));
    }
    describe_index(b);
    return add_time(b);
}

wf_status gpu_build_part(struct gpu *g, struct exec *x, const struct build_part *of,
                         struct gpu_var **out) {
    const struct gpu_var *from = x->vars[of->step->src].copy;
    i64 first = (i64)from->parts.starts[of->part];
    struct build b = {.g = g,
                      .x = x,
                      .rows = (i64)from->parts.starts[of->part + 1] - first,
                      .metric = of->metric,
                      .event_base = of->event_base,
                      .step = of->step};
    TRY(gpu_var_loose(g, x, 0, &b.gv));
    wf_status status = build_part(&b, first);
    if (status) {
        gpu_wait(g);
    }
    for (i32 i = 0; i < COUNT_OF(b.temps); i++) {
        gpu_heap_free(g->card, b.temps[i]);
    }
    of->metric->launches += b.launches;
    of->metric->bytes_read += b.rows * 8;
    if (status) {
        gpu_var_release(b.gv);
        return status;
    }
    *out = b.gv;
    return ERR_OK;
}

wf_status gpu_build_whole(struct gpu *g, struct exec *x, u32 index, i64 *moved) {
    u32 step_no = 0;
    const struct step *step = program_build(x->program, index, &step_no);
    struct step_metric metric = {0};
    if (!step) {
        FAIL(x->err, INTERNAL, "variable %u has no index", index);
    }
    TRY(build_now(g, x, &metric, step_no, step));
    *moved += metric.bytes_moved;
    return ERR_OK;
}

/* --- of a queue --- */

wf_status gpu_build_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                          struct build **out) {
    struct build *b = NEW(x->arena, struct build);
    *out = NULL;
    TRY(arena_check(x->arena, x->err));
    TRY(build_open(g, x, &x->metrics[step_no], step_no, step, b));
    if (!b->before.known || step->grow || walked(b, step) ||
        part_count(g, x, step)) {
        /* it may be otherwise than one would think */
        return ERR_OK;
    }
    b->queued = 1;
    b->event_base = g->queue.event_count;
    wf_status status = build_all(b);
    if (status) {
        gpu_build_close(b, status);
        return status;
    }
    x->vars[step->dst].rows = b->rows;
    x->vars[step->dst].on_host = 0;
    *out = b;
    return ERR_OK;
}

struct krelay gpu_build_relay(const struct build *b) {
    bool numbered = b->args.form == KINDEX_RANK;
    return (struct krelay){.report = b->args.report,
                           .retry = b->duplicate ? 0 : RETRY_DUPLICATE | RETRY_TABLE,
                           .distinct = numbered && !b->duplicate};
}

wf_status gpu_build_settle(struct build *b) {
    b->rows = b->args.rows_at ? b->x->vars[b->step->src].rows : b->rows;
    b->gv->rows = b->rows;
    if (b->before.guessed) {
        leave_note(b);
    }
    return add_time(b);
}
