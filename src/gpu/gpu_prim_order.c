/* gpu_prim_order.c: splits and radix sort on the card (kernels/split.h).
 *
 * A split by up to 2^SPLIT_PASS_BITS partitions is one pass over the elements after one that
 * counts; more bits are passes from the lowest on, which is right because each is stable. A sort of
 * words is a split by all bits of what orders them. Rows are launched in portions, so that thirty
 * bits of a tile's state hold any count.
 *
 * WARPFOX_SPLIT=threads,items,blocks,bits overrides the shape of the kernel, for measuring. */
#include "gpu/gpu_prim_order.h"
#include "gpu/gpu_cub.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SPLIT_PASS_BITS = 8,
#ifdef WF_HARD
    TRIVIAL_ROWS = 1 << 11,
    PORTION_ROWS = 1 << 16
#else
    TRIVIAL_ROWS = 1 << 18, /* from here on it pays to ask which passes do nothing */
    PORTION_ROWS = 1 << 29
#endif
};

struct korder korder_of(const struct order *o, const struct prim_array *keys) {
    return (struct korder){o->flip_low, o->flip_high, keys->bytes, 0, o->descending};
}

i32 order_text(const struct order *o, char *out, i32 cap) {
    return snprintf(out, (size_t)cap, "#define KEY_BYTES %d\n%s", o->bytes,
                    o->is_float  ? "#define KEY_FLOAT 1\n"
                    : o->is_text ? "#define KEY_TEXT 1\n"
                                 : "");
}

struct prim_array order_take(struct prim_job *job, enum elem type, i64 count) {
    return (struct prim_array){
        .type = (u8)type, .data = prim_take(job, count * elem_bytes[type]), .count = count};
}

wf_status order_check_text(struct prim_job *job, struct prim_array text) {
    if (elem_kinds[text.type] != 'T' || text.count == 0) {
        return ERR_OK;
    }
    i64 mark = prim_mark(job);
    u32 *flag = prim_take(job, 4);
    u32 bad = 0;
    struct kspans args = {.spans = text.data,
                          .count = text.count,
                          .bytes = text.bytes,
                          .byte_count = (u64)text.byte_count,
                          .flag = flag};
    struct gpu_template code = {"spans", "k_text_check", ""};
    TRY(gpu_prim_fill(job, flag, 0, 4));
    TRY(gpu_prim_launch(job, &code, text.count / TEXT_PREFIX_THREADS + 1, TEXT_PREFIX_THREADS, 0,
                        &args));
    TRY(gpu_prim_fetch(job, &bad, flag, 4));
    prim_back(job, mark);
    if (bad) {
        FAIL(job->x->err, INVALID_PARAMETER, "a text lies outside the bytes of its array");
    }
    return ERR_OK;
}

/* --- a split in passes --- */

struct shape {
    i32 threads, items, blocks, bits; /* blocks: that a multiprocessor should hold */
};

struct split_run {
    struct prim_job *job;
    u8 by;
    i32 shift, bits;
    struct kparts parts;
    struct order order;
    struct shape shape;
    i32 passes, radix_bits;
    i32 pass_shift[SPLIT_PASSES], pass_bits[SPLIT_PASSES];
    b8 skip[SPLIT_PASSES];
    i32 arrays; /* keys and payload */
    i64 count;
    i32 bytes[1 + ORDER_PAYLOADS];
    const void *in[1 + ORDER_PAYLOADS];
    void *out[1 + ORDER_PAYLOADS], *temp[1 + ORDER_PAYLOADS];
    u64 *counts;
    u32 *state;
    i64 state_bytes;
    u64 *bins[2];
    char defines[ORDER_DEFINES];
};

const char gpu_split_ahead[] =
    "#define KEY_BYTES 8\n#define RADIX_BITS 8\n#define SPLIT_THREADS 384\n#define SPLIT_ITEMS 12\n"
    "#define PAYLOAD1 4\n#define PAYLOAD2 0\n#define WF_MIN_BLOCKS 2\n";

static i32 bits_for(i64 parts) {
    i32 bits = 0;
    while (1LL << bits < parts) {
        bits++;
    }
    return bits;
}

static void choose_shape(struct split_run *r) {
    i32 widest = r->bytes[0];
    for (i32 i = 1; i < r->arrays; i++) {
        widest = MAX_OF(widest, r->bytes[i]);
    }
    struct shape *s = &r->shape;
    *s = (struct shape){384,
                        widest == 4   ? 20
                        : widest == 8 ? 12
                                      : 6,
                        r->arrays == 1 ? 3 : 2, SPLIT_PASS_BITS};
    const char *given = getenv("WARPFOX_SPLIT");
    if (given) {
        (void)sscanf(given, "%d,%d,%d,%d", &s->threads, &s->items, &s->blocks, &s->bits);
        s->threads = MIN_OF(MAX_OF(s->threads, 32), 1024) / 32 * 32;
        s->items = MIN_OF(MAX_OF(s->items, 1), 64);
        s->bits = MIN_OF(MAX_OF(s->bits, 2), 11);
    }
}

static void plan_passes(struct split_run *r) {
    i32 most = MAX_OF(r->shape.bits, (r->bits + SPLIT_PASSES - 1) / SPLIT_PASSES);
    r->passes = MAX_OF((r->bits + most - 1) / most, 1);
    i32 at = 0;
    i32 widest = 0;
    for (i32 p = 0; p < r->passes; p++) {
        i32 bits = (r->bits - at + r->passes - p - 1) / (r->passes - p);
        r->pass_shift[p] = r->shift + at;
        r->pass_bits[p] = bits;
        widest = MAX_OF(widest, bits);
        at += bits;
    }
    r->radix_bits = widest <= 4 ? 4 : widest <= 6 ? 6 : widest <= 8 ? 8 : 11;
}

static u32 mask_of(i32 bits) {
    return bits < 32 ? (1u << bits) - 1 : ~0u;
}

static i64 tile_rows(const struct split_run *r) {
    return (i64)r->shape.threads * r->shape.items;
}

static i64 portion_rows(const struct split_run *r) {
    return PORTION_ROWS / tile_rows(r) * tile_rows(r);
}

static void take_room(struct split_run *r) {
    struct prim_job *job = r->job;
    i64 radix = 1LL << r->radix_bits;
    i64 portion = MIN_OF(portion_rows(r), r->count);
    i64 tiles = (portion + tile_rows(r) - 1) / tile_rows(r);
    r->counts = prim_take(job, r->passes * radix * 8);
    r->bins[0] = prim_take(job, radix * 8);
    r->bins[1] = prim_take(job, radix * 8);
    r->state_bytes = tiles * radix * 4 + 16;
    r->state = prim_take(job, r->state_bytes);
    for (i32 i = 0; i < r->arrays && r->passes > 1; i++) {
        r->temp[i] = prim_take(job, r->count * r->bytes[i]);
    }
}

const char *split_text(enum split_by by) {
    return by == SPLIT_HASH    ? "#define PART_HASH 1\n"
           : by == SPLIT_RANGE ? "#define PART_RANGE 1\n"
                               : "";
}

static void write_defines(struct split_run *r) {
    i32 used = order_text(&r->order, r->defines, ORDER_DEFINES);
    snprintf(r->defines + used, (size_t)(ORDER_DEFINES - used),
             "#define RADIX_BITS %d\n#define SPLIT_THREADS %d\n#define SPLIT_ITEMS %d\n"
             "#define PAYLOAD1 %d\n#define PAYLOAD2 %d\n#define WF_MIN_BLOCKS %d\n%s",
             r->radix_bits, r->shape.threads, r->shape.items, r->arrays > 1 ? r->bytes[1] : 0,
             r->arrays > 2 ? r->bytes[2] : 0, r->shape.blocks, split_text((enum split_by)r->by));
}

/* Counts of all passes, made places. */
static FALLIBLE count_digits(struct split_run *r, struct prim_array starts, i64 parts) {
    struct prim_job *job = r->job;
    i64 bytes = (i64)r->passes * 8 << r->radix_bits;
    struct ksplit_count args = {
        .parts = r->parts, .keys = r->in[0], .count = r->count, .counts = r->counts};
    args.passes = (u32)r->passes;
    for (i32 p = 0; p < r->passes; p++) {
        args.shifts[p] = (u32)r->pass_shift[p];
        args.masks[p] = mask_of(r->pass_bits[p]);
    }
    i64 round = SPLIT_COUNT_THREADS * SPLIT_COUNT_VECS * 16 / r->bytes[0];
    struct gpu_template count = {"split", "k_split_count", r->defines};
    struct gpu_template bins = {"split", "k_split_bins", r->defines};
    struct ksplit_bins places = {r->counts, r->passes == 1 ? starts.data : NULL, parts};
    TRY(gpu_prim_fill(job, r->counts, 0, bytes));
    TRY(gpu_prim_launch(job, &count, r->count / round + 1, SPLIT_COUNT_THREADS, bytes / 2, &args));
    return gpu_prim_launch_all(job, &bins, r->passes, SPLIT_COUNT_THREADS, 0, &places);
}

/* A pass whose keys all have one digit does nothing. Asking takes as long as a pass over a million
 * rows, so short keys are not asked. */
static FALLIBLE find_trivial(struct split_run *r, i32 *out_active) {
    *out_active = r->passes;
    if (r->passes < 5 || r->radix_bits > 8 || r->count < TRIVIAL_ROWS || r->job->measuring) {
        return ERR_OK;
    }
    u64 bins[SPLIT_PASSES << 8];
    i64 radix = 1LL << r->radix_bits;
    TRY(gpu_prim_fetch(r->job, bins, r->counts, r->passes * radix * 8));
    for (i32 p = 0; p < r->passes; p++) {
        const u64 *at = bins + p * radix;
        u64 last = 0; /* the greatest place below the count: a digit that has all starts at 0 */
        for (i64 d = 0; d < radix; d++) {
            last = at[d] < (u64)r->count ? at[d] : last;
        }
        r->skip[p] = last == 0;
        *out_active -= r->skip[p];
    }
    return ERR_OK;
}

static FALLIBLE run_pass(struct split_run *r, i32 p, const void *const *from, void *const *to) {
    struct prim_job *job = r->job;
    i64 tile = tile_rows(r);
    i64 radix = 1LL << r->radix_bits;
    i64 shared = (i64)(r->shape.threads / 32) * radix * 8;
    for (i32 i = 0; i < r->arrays; i++) {
        shared = MAX_OF(shared, tile * r->bytes[i]);
    }
    struct gpu_template code = {"split", "k_split", r->defines};
    for (i64 first = 0, no = 0; first < r->count; first += portion_rows(r), no++) {
        i64 rows = MIN_OF(portion_rows(r), r->count - first);
        struct ksplit args = {.parts = r->parts,
                              .count = rows,
                              .bins = no ? r->bins[no & 1] : r->counts + p * radix,
                              .next_bins = first + rows < r->count ? r->bins[~no & 1] : NULL,
                              .state = r->state,
                              .shift = (u32)r->pass_shift[p],
                              .mask = mask_of(r->pass_bits[p])};
        args.ticket = (u32 *)(void *)((u8 *)r->state + r->state_bytes - 16);
        args.keys = (const u8 *)from[0] + first * r->bytes[0];
        args.out_keys = to[0];
        args.payload1 = r->arrays > 1 ? (const u8 *)from[1] + first * r->bytes[1] : NULL;
        args.out_payload1 = to[1];
        args.payload2 = r->arrays > 2 ? (const u8 *)from[2] + first * r->bytes[2] : NULL;
        args.out_payload2 = to[2];
        TRY(gpu_prim_fill(job, r->state, 0, r->state_bytes));
        TRY(gpu_prim_launch_all(job, &code, (rows + tile - 1) / tile, (u32)r->shape.threads, shared,
                                &args));
    }
    return ERR_OK;
}

static FALLIBLE run_passes(struct split_run *r) {
    i32 left = 0;
    const void *from[1 + ORDER_PAYLOADS];
    memcpy(from, r->in, sizeof from);
    TRY(find_trivial(r, &left));
    for (i32 i = 0; i < r->arrays && left == 0; i++) {
        TRY(gpu_prim_move(r->job, r->out[i], r->in[i], r->count * r->bytes[i]));
    }
    for (i32 p = 0; p < r->passes; p++) {
        if (r->skip[p]) {
            continue;
        }
        left--;
        void *const *to = left % 2 ? r->temp : r->out;
        TRY(run_pass(r, p, from, to));
        for (i32 i = 0; i < r->arrays; i++) {
            from[i] = to[i];
        }
    }
    return ERR_OK;
}

static FALLIBLE find_starts(struct split_run *r, struct prim_array starts, i64 parts) {
    if (r->passes == 1 || (!starts.data && !r->job->measuring)) {
        return ERR_OK;
    }
    struct ksplit_starts args = {.parts = r->parts,
                                 .keys = r->out[0],
                                 .count = r->count,
                                 .starts = starts.data,
                                 .part_count = parts,
                                 .shift = (u32)r->shift,
                                 .mask = mask_of(r->bits)};
    struct gpu_template code = {"split", "k_split_starts", r->defines};
    return gpu_prim_launch_all(r->job, &code, parts / SPLIT_COUNT_THREADS + 1, SPLIT_COUNT_THREADS,
                               0, &args);
}

static FALLIBLE split_all(struct split_run *r, struct prim_array starts, i64 parts) {
    i64 mark = prim_mark(r->job);
    choose_shape(r);
    plan_passes(r);
    take_room(r);
    if (r->count == 0) {
        TRY(gpu_prim_fill(r->job, starts.data, 0, starts.data ? (parts + 1) * 8 : 0));
    } else {
        write_defines(r);
        TRY(count_digits(r, starts, parts));
        TRY(run_passes(r));
        TRY(find_starts(r, starts, parts));
    }
    prim_back(r->job, mark);
    return ERR_OK;
}

static void set_arrays(struct split_run *r, struct prim_array out_keys, struct prim_array keys,
                       const struct prim_payload *payload) {
    r->count = keys.count;
    r->arrays = 1 + payload->count;
    r->bytes[0] = elem_bytes[keys.type];
    r->in[0] = keys.data;
    r->out[0] = out_keys.data;
    for (i32 i = 0; i < payload->count; i++) {
        r->bytes[i + 1] = elem_bytes[payload->in[i].type];
        r->in[i + 1] = payload->in[i].data;
        r->out[i + 1] = payload->out[i].data;
    }
}

wf_status gpu_split(struct prim_job *job, const struct prim_split *how, struct prim_array out_keys,
                    struct prim_array out_starts, struct prim_array keys,
                    const struct prim_payload *payload) {
    struct split_plan plan = {
        .by = how->by, .shift = how->shift, .bits = how->bits, .part_count = split_parts(how)};
    plan.order = order_of(keys.type, how->descending);
    if (how->by == SPLIT_RANGE) {
        plan.shift = 0;
        plan.bits = bits_for(plan.part_count);
        plan.parts.splitters = how->splitters.data;
        plan.parts.splitter_count = how->splitters.count;
    } else { /* bits as they lie */
        plan.order = (struct order){.type = keys.type, .bytes = elem_bytes[keys.type]};
    }
    plan.parts.order = korder_of(&plan.order, &keys);
    if (how->unstable && gpu_loose_takes(&plan, payload)) {
        return gpu_loose_split(job, &plan, out_keys, out_starts, keys, payload);
    }
    struct split_run r = {.job = job,
                          .by = plan.by,
                          .shift = plan.shift,
                          .bits = plan.bits,
                          .parts = plan.parts,
                          .order = plan.order};
    set_arrays(&r, out_keys, keys, payload);
    return split_all(&r, out_starts, plan.part_count);
}

/* By the bits that order the keys. */
static FALLIBLE radix_sort(struct prim_job *job, const struct prim_sort *how,
                           struct prim_array out_keys, struct prim_array keys,
                           const struct prim_payload *payload) {
    struct split_run r = {.job = job, .by = SPLIT_RADIX, .shift = how->low_bit};
    r.order = order_of(keys.type, how->descending);
    r.bits = (how->high_bit ? how->high_bit : 8 * r.order.bytes) - how->low_bit;
    r.parts.order = korder_of(&r.order, &keys);
    set_arrays(&r, out_keys, keys, payload);
    return split_all(&r, (struct prim_array){.type = ELEM_U64}, 0);
}

wf_status gpu_radix_sort(struct prim_job *job, const struct prim_sort *how,
                         struct prim_array out_keys, struct prim_array keys,
                         const struct prim_payload *payload) {
    struct prim_array none = {.type = ELEM_U32};
    i32 width = elem_bytes[keys.type];
    bool narrow = payload->count == 0 || elem_bytes[payload->in[0].type] < 16;
    if (elem_kinds[keys.type] == 'U' && !how->descending && payload->count < 2 && narrow &&
        gpu_cub_picks(job, payload->count ? CUB_SORT_PAIRS : CUB_SORT_KEYS, width, keys.count)) {
        return gpu_cub_sort(job, out_keys, keys, payload->count ? payload->out[0] : none,
                            payload->count ? payload->in[0] : none, how->low_bit,
                            how->high_bit ? how->high_bit : 8 * width);
    }
    return radix_sort(job, how, out_keys, keys, payload);
}
