/* gpu_prim_loose.c: the unstable split on the card (kernels/split_loose.h).
 *
 * Up to 2^LOOSE_PASS_BITS partitions take one pass after one read that counts. More take two: the
 * upper bits first, then the lower ones within each part; the digits of both are counted by the one
 * read up to 2^LOOSE_COUNT_BITS partitions, beyond by another between the passes. The shapes of
 * tiles are those that measured best: large ones where a pass writes to many places, smaller ones
 * where it stays within a part. */
#include "gpu/gpu_prim_order.h"

#include <stdio.h>

enum {
    LOOSE_PASS_BITS = 11,
    LOOSE_LEAST_BITS = 6, /* fewer share a kernel */
    LOOSE_THREADS = 512,
    LOOSE_WIDE_THREADS = 1024, /* where a block's counters fill a multiprocessor */
#ifdef WF_HARD
    LOOSE_COUNT_BITS = 13,
    LOOSE_NARROW_ROWS = 1 << 12
#else
    LOOSE_COUNT_BITS = 15,         /* counters of shared memory */
    LOOSE_NARROW_ROWS = 0x7fffffff /* places of so many rows are words of 32 bits */
#endif
};

struct loose {
    struct prim_job *job;
    const struct split_plan *plan;
    i64 count;
    i32 arrays, row_bytes;
    i32 bytes[1 + ORDER_PAYLOADS];
    const void *in[1 + ORDER_PAYLOADS];
    void *out[1 + ORDER_PAYLOADS];
};

/* One pass. */
struct pass {
    i32 shift, bits, radix_bits;
    i32 threads, items;
    i64 blocks, shared;
    char defines[ORDER_DEFINES];
};

bool gpu_loose_takes(const struct split_plan *plan, const struct prim_payload *payload) {
    bool narrow = plan->order.bytes <= 8;
    for (i32 i = 0; i < payload->count; i++) {
        narrow &= elem_bytes[payload->in[i].type] <= 8;
    }
    return narrow && plan->bits <= 2 * LOOSE_PASS_BITS;
}

/* Whether two blocks share a multiprocessor: its shared memory, and its registers, of which a
 * thread needs some twenty beside its elements and their ranks. */
static bool two_fit(const struct loose *l, const struct pass *p) {
    i32 words = p->items * l->row_bytes / 4 + p->items / 2;
    return p->shared <= 110 << 10 && (words + 24) * p->threads <= 1 << 15;
}

static void plan_pass(const struct loose *l, struct pass *p, i32 shift, i32 bits, bool local) {
    p->shift = shift;
    p->bits = bits;
    p->radix_bits = MAX_OF(bits, LOOSE_LEAST_BITS);
    p->threads = p->radix_bits == LOOSE_LEAST_BITS ? LOOSE_THREADS / 2 : LOOSE_THREADS;
    bool small = local && p->threads == LOOSE_THREADS;
    i32 most = small ? 16 : 32;
    p->items = MIN_OF(most, most * 8 / l->row_bytes / 4 * 4);
    i64 tile = (i64)p->threads * p->items;
    i64 radix = 1LL << p->radix_bits;
    i32 place_bytes = l->count <= LOOSE_NARROW_ROWS ? 4 : 8;
    p->blocks = (l->count + tile - 1) / tile;
    p->shared = tile * l->row_bytes + radix * place_bytes + (radix + 1) * 4;
    i32 used = order_text(&l->plan->order, p->defines, ORDER_DEFINES);
    snprintf(p->defines + used, (size_t)(ORDER_DEFINES - used),
             "#define RADIX_BITS %d\n#define SPLIT_THREADS %d\n#define SPLIT_ITEMS %d\n"
             "#define PAYLOAD1 %d\n#define PAYLOAD2 %d\n#define PLACE_BYTES %d\n"
             "#define WF_MIN_BLOCKS %d\n%s",
             p->radix_bits, p->threads, p->items, l->bytes[1], l->bytes[2], place_bytes,
             two_fit(l, p) ? 2 : 1, split_text((enum split_by)l->plan->by));
}

static struct kloose args_of(const struct loose *l, const struct pass *p, const void *const *from,
                             void *const *to, u64 *cursors) {
    return (struct kloose){.parts = l->plan->parts,
                           .keys = from[0],
                           .payload1 = from[1],
                           .payload2 = from[2],
                           .out_keys = to[0],
                           .out_payload1 = to[1],
                           .out_payload2 = to[2],
                           .count = l->count,
                           .cursors = cursors,
                           .shift = (u32)p->shift,
                           .mask = (1u << p->bits) - 1};
}

/* One read: how many rows have each digit of `bits` bits from `shift` on. */
static FALLIBLE count_digits(const struct loose *l, i32 shift, i32 bits, u64 *counts) {
    struct prim_job *job = l->job;
    i32 threads = bits > LOOSE_PASS_BITS ? LOOSE_WIDE_THREADS : SPLIT_COUNT_THREADS;
    i64 round = (i64)threads * SPLIT_COUNT_VECS * 16 / l->bytes[0];
    struct ksplit_count args = {
        .parts = l->plan->parts, .keys = l->in[0], .count = l->count, .counts = counts};
    args.passes = 1;
    args.shifts[0] = (u32)shift;
    args.masks[0] = (1u << bits) - 1;
    char defines[ORDER_DEFINES];
    i32 used = order_text(&l->plan->order, defines, ORDER_DEFINES);
    snprintf(defines + used, (size_t)(ORDER_DEFINES - used),
             "#define RADIX_BITS %d\n#define COUNT_THREADS %d\n%s", bits, threads,
             split_text((enum split_by)l->plan->by));
    struct gpu_template code = {"split_count", "k_split_count", defines};
    TRY(gpu_prim_fill(job, counts, 0, 8LL << bits));
    return gpu_prim_launch(job, &code, l->count / round + 1, (u32)threads, 4LL << bits, &args);
}

/* Counts become cursors, and places; then all rows move. */
static FALLIBLE move_rows(const struct loose *l, const struct pass *p, const struct kloose *move,
                          const struct kloose_bins *bins, i64 coarse_parts) {
    struct gpu_template bins_code = {"split_loose", "k_loose_bins", p->defines};
    struct gpu_template move_code = {"split_loose", "k_loose", p->defines};
    i64 blocks = p->blocks + (move->coarse ? coarse_parts : 0); /* a part's last tile is short */
    TRY(gpu_prim_launch_all(l->job, &bins_code, coarse_parts, SPLIT_COUNT_THREADS, 0, bins));
    return gpu_prim_launch_all(l->job, &move_code, blocks, (u32)p->threads, p->shared, move);
}

static FALLIBLE one_pass(const struct loose *l, struct prim_array starts) {
    struct pass p;
    plan_pass(l, &p, l->plan->shift, l->plan->bits, false);
    u64 *cursors = prim_take(l->job, 8LL << p.bits);
    struct kloose_bins bins = {.counts = cursors,
                               .starts = starts.data,
                               .parts = l->plan->part_count,
                               .digits = 1u << p.bits,
                               .tile_rows = (u32)(p.threads * p.items)};
    struct kloose move = args_of(l, &p, l->in, l->out, cursors);
    TRY(count_digits(l, p.shift, p.bits, cursors));
    return move_rows(l, &p, &move, &bins, 1);
}

/* Digits of the lower bits within each part of the first pass: by a read of their own, where they
 * were not counted with the upper ones. */
static FALLIBLE count_again(const struct loose *l, const struct pass *p,
                            const struct kloose *move) {
    struct gpu_template code = {"split_loose", "k_loose_count", p->defines};
    TRY(gpu_prim_fill(l->job, move->cursors, 0, move->coarse_parts << p->bits << 3));
    return gpu_prim_launch(l->job, &code, p->blocks + move->coarse_parts, SPLIT_COUNT_THREADS, 0,
                           move);
}

/* Counts of all digits, where shared memory has room for them, added up to those of the upper. */
static FALLIBLE count_once(const struct loose *l, const struct pass *lower, u64 *all, u64 *upper,
                           i64 coarse_parts) {
    struct kloose_fold fold = {all, upper, coarse_parts, 1u << lower->bits, 0};
    struct gpu_template code = {"split_loose", "k_loose_fold", lower->defines};
    TRY(count_digits(l, l->plan->shift, l->plan->bits, all));
    return gpu_prim_launch_all(l->job, &code, coarse_parts * 32 / SPLIT_COUNT_THREADS + 1,
                               SPLIT_COUNT_THREADS, 0, &fold);
}

/* The upper bits into workspace, then the lower ones within each part. */
static FALLIBLE two_passes(const struct loose *l, struct prim_array starts) {
    struct prim_job *job = l->job;
    const struct split_plan *plan = l->plan;
    i32 upper = plan->bits / 2;
    i32 lower = plan->bits - upper;
    i64 parts = 1LL << upper;
    bool once =
        plan->bits <= LOOSE_COUNT_BITS && (4LL << plan->bits) <= gpu_of(job)->card->shared_max;
    struct pass first;
    struct pass second;
    plan_pass(l, &first, plan->shift + lower, upper, upper < 8);
    plan_pass(l, &second, plan->shift, lower, true);
    i64 tile = (i64)second.threads * second.items;
    void *temp[1 + ORDER_PAYLOADS] = {NULL};
    for (i32 i = 0; i < l->arrays; i++) {
        temp[i] = prim_take(job, l->count * l->bytes[i]);
    }
    u64 *coarse = prim_take(job, (parts + 1) * 8);
    u64 *tiles = prim_take(job, (parts + 1) * 8);
    u64 *upper_cursors = prim_take(job, parts * 8);
    u64 *cursors = prim_take(job, 8LL << plan->bits);
    struct kloose_bins bins = {.counts = upper_cursors,
                               .starts = coarse,
                               .tiles = tiles,
                               .parts = parts,
                               .digits = (u32)parts,
                               .tile_rows = (u32)tile};
    struct kloose move = args_of(l, &first, l->in, temp, upper_cursors);
    TRY(once ? count_once(l, &second, cursors, upper_cursors, parts)
             : count_digits(l, first.shift, upper, upper_cursors));
    TRY(move_rows(l, &first, &move, &bins, 1));
    const void *from[1 + ORDER_PAYLOADS] = {temp[0], temp[1], temp[2]};
    move = args_of(l, &second, from, l->out, cursors);
    move.coarse = coarse;
    move.tiles = tiles;
    move.coarse_parts = parts;
    bins = (struct kloose_bins){.counts = cursors,
                                .coarse = coarse,
                                .starts = starts.data,
                                .parts = plan->part_count,
                                .digits = 1u << lower,
                                .tile_rows = (u32)tile};
    TRY(once ? ERR_OK : count_again(l, &second, &move));
    return move_rows(l, &second, &move, &bins, parts);
}

wf_status gpu_loose_split(struct prim_job *job, const struct split_plan *plan,
                          struct prim_array out_keys, struct prim_array out_starts,
                          struct prim_array keys, const struct prim_payload *payload) {
    struct loose l = {.job = job, .plan = plan, .count = keys.count, .arrays = 1 + payload->count};
    l.bytes[0] = l.row_bytes = plan->order.bytes;
    l.in[0] = keys.data;
    l.out[0] = out_keys.data;
    for (i32 i = 0; i < payload->count; i++) {
        l.bytes[i + 1] = elem_bytes[payload->in[i].type];
        l.row_bytes += l.bytes[i + 1];
        l.in[i + 1] = payload->in[i].data;
        l.out[i + 1] = payload->out[i].data;
    }
    if (l.count == 0) {
        return gpu_prim_fill(job, out_starts.data, 0,
                             out_starts.data ? (plan->part_count + 1) * 8 : 0);
    }
    i64 mark = prim_mark(job);
    TRY(plan->bits > LOOSE_PASS_BITS ? two_passes(&l, out_starts) : one_pass(&l, out_starts));
    prim_back(job, mark);
    return ERR_OK;
}
