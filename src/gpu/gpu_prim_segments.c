/* gpu_prim_segments.c: the card's segmented reductions; sums of floats among them.
 *
 * A sum of floats is taken limb by limb (kernels/fsegments.h): how many limbs there are depends on
 * the values, so the workspace, which may not, holds FLIMBS_ROOM words a segment, and where limbs
 * are more, segments are taken in several groups. */
#include "gpu/gpu_prim_move.h"

#include <stdio.h>

#include "defs/kprim.h"
#include "gpu/gpu_prim.h"
#include "prim/fold.h"

enum { LIMB_BITS_MOST = 48 };

static i64 parts_of(i64 count, i64 size) {
    return (count + size - 1) / size;
}

/* One reduction of `args`' elements, of in_bytes, to values of value_bytes. */
struct pass {
    const char *module, *defines;
    i32 in_bytes, value_bytes;
    b8 checks; /* asks whether the offsets were fine */
};

static FALLIBLE run_pass(struct prim_job *job, const struct pass *pass, struct ksegments args) {
    i64 slots = SEGMENT_THREADS * SEGMENT_VECS * (16 / pass->in_bytes);
    i64 tiles = parts_of(args.count + args.segment_count, slots - 16 / pass->in_bytes);
    i64 state_bytes = tiles * 2 * pass->value_bytes;
    i64 mark = prim_mark(job);
    args.splits = prim_take(job, (tiles + 1) * 8);
    u8 *state = prim_take(job, state_bytes + 16);
    args.state = (u64 *)(void *)state;
    args.ticket = (u32 *)(void *)(state + state_bytes);
    args.bad = (u32 *)(void *)(state + state_bytes + 8);
    struct gpu_template split = {pass->module, "k_segment_split", pass->defines};
    struct gpu_template run = {pass->module, "k_segments", pass->defines};
    u32 bad = 0;
    TRY(gpu_prim_fill(job, state, 0, state_bytes + 16));
    TRY(gpu_prim_launch(job, &split, parts_of(tiles + 1, SEGMENT_THREADS), SEGMENT_THREADS, 0,
                        &args));
    TRY(gpu_prim_launch(job, &run, tiles, SEGMENT_THREADS, slots * pass->in_bytes, &args));
    if (pass->checks) {
        TRY(gpu_prim_fetch(job, &bad, args.bad, 4));
    }
    prim_back(job, mark);
    if (bad) {
        FAIL(job->x->err, INVALID_PARAMETER,
             "offsets of segments must ascend and stay within %lld elements", args.count);
    }
    return ERR_OK;
}

/* --- sums of floats --- */

struct limbs {
    i32 low, bits; /* of the first, of each */
    i64 count;
    b8 special;
};

static struct limbs limbs_of(const u64 *range, i64 elements) {
    struct limbs l = {.bits = LIMB_BITS_MOST, .special = range[FRANGE_SPECIAL] != 0, .count = 1};
    while (l.bits > 1 && elements >> (62 - l.bits)) { /* their sum fits 63 bits */
        l.bits--;
    }
    if (range[FRANGE_TOP]) {
        l.low = FRANGE_LOWEST - (i32)range[FRANGE_LOW];
        l.count = parts_of((i64)range[FRANGE_TOP] - l.low, l.bits);
    }
    return l;
}

/* The sums of a group of segments. */
static FALLIBLE sum_group(struct prim_job *job, struct ksegments args, const struct limbs *l,
                          i32 bytes, u64 *words, u32 *fault) {
    char sums[400];
    char flags[400];
    fold_text(FOLD_ADD, ELEM_U64, sums, sizeof sums - 60);
    fold_text(FOLD_OR, ELEM_U64, flags, sizeof flags - 60);
    size_t at = strlen(sums);
    snprintf(sums + at, sizeof sums - at, "#define IN_BYTES %d\n#define SPECIALS 0\n", bytes);
    at = strlen(flags);
    snprintf(flags + at, sizeof flags - at, "#define IN_BYTES %d\n#define SPECIALS 1\n", bytes);
    struct pass pass = {"fsegments", sums, bytes, 8, 1};
    void *out = args.out;
    args.bits = l->bits;
    for (i64 c = 0; c < l->count; c++, pass.checks = 0) {
        args.low = l->low + (i32)c * l->bits;
        args.out = job->measuring ? NULL : words + c * args.segment_count;
        TRY(run_pass(job, &pass, args));
    }
    if (l->special) {
        pass.defines = flags;
        args.out = words + l->count * args.segment_count;
        TRY(run_pass(job, &pass, args));
    }
    struct kfsums round = {.words = words,
                           .out = out,
                           .count = args.segment_count,
                           .fault = fault,
                           .low = l->low,
                           .bits = l->bits,
                           .limbs = (u32)l->count,
                           .special = l->special};
    struct gpu_template code = {"fsegments", "k_fsums", sums};
    return gpu_prim_launch(job, &code, parts_of(args.segment_count, SEGMENT_THREADS),
                           SEGMENT_THREADS, 0, &round);
}

static FALLIBLE find_range(struct prim_job *job, struct prim_array in, u64 *out) {
    u64 *range = prim_take(job, FRANGE_WORDS * 8);
    struct kfrange args = {.in = in.data, .count = in.count, .range = range};
    char defines[400];
    fold_text(FOLD_ADD, ELEM_U64, defines, sizeof defines - 60);
    size_t at = strlen(defines);
    snprintf(defines + at, sizeof defines - at, "#define IN_BYTES %d\n#define SPECIALS 0\n",
             elem_bytes[in.type]);
    struct gpu_template code = {"fsegments", "k_frange", defines};
    TRY(gpu_prim_fill(job, range, 0, FRANGE_WORDS * 8));
    if (in.count) {
        TRY(gpu_prim_launch(job, &code,
                            parts_of(in.count * elem_bytes[in.type], SEGMENT_THREADS * 64),
                            SEGMENT_THREADS, 0, &args));
    }
    return gpu_prim_fetch(job, out, range, FRANGE_WORDS * 8);
}

static FALLIBLE float_sums(struct prim_job *job, const struct prim_segments *s) {
    i32 bytes = elem_bytes[s->in.type];
    i64 room = MAX_OF(FLIMBS_ROOM * s->segment_count, FLIMBS_MOST + 1);
    u64 *words = prim_take(job, room * 8);
    u32 *fault = prim_take(job, 4);
    u64 range[FRANGE_WORDS] = {0};
    u32 met = 0;
    TRY(find_range(job, s->in, range));
    struct limbs l = limbs_of(range, s->in.count);
    i64 step = job->measuring ? s->segment_count : room / (l.count + l.special);
    TRY(gpu_prim_fill(job, fault, 0, 4));
    for (i64 first = 0; first < s->segment_count; first += step) {
        struct ksegments args = {.in = s->in.data,
                                 .out = (u8 *)s->out.data + first * bytes,
                                 .offsets = s->offsets + first,
                                 .count = s->in.count,
                                 .segment_count = MIN_OF(step, s->segment_count - first)};
        TRY(sum_group(job, args, &l, bytes, words, fault));
    }
    TRY(gpu_prim_fetch(job, &met, fault, 4));
    return prim_fsum_fault(job, (u8)met);
}

wf_status gpu_segments(struct prim_job *job, const struct prim_segments *s) {
    if (!s->segment_count) {
        return ERR_OK;
    }
    if (!fold_has(s->fold, s->in.type)) {
        return float_sums(job, s);
    }
    char defines[400];
    fold_text(s->fold, s->in.type, defines, sizeof defines);
    i32 bytes = elem_bytes[s->in.type];
    struct pass pass = {"segments", defines, bytes, bytes, 1};
    struct ksegments args = {.in = s->in.data,
                             .out = s->out.data,
                             .offsets = s->offsets,
                             .count = s->in.count,
                             .segment_count = s->segment_count};
    return run_pass(job, &pass, args);
}
