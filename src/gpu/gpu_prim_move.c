/* gpu_prim_move.c: the card's primitives that compute or move elements: series, reductions, scan,
 * gather and scatter, histogram. Maps, compactions and segments have files of their own. */
#include "gpu/gpu_prim_move.h"

#include <stdio.h>

#include "defs/kprim.h"
#include "gpu/gpu_cub.h"
#include "gpu/gpu_prim.h"
#include "prim/fold.h"

static i64 parts_of(i64 count, i64 size) {
    return (count + size - 1) / size;
}

/* --- series --- */

static FALLIBLE series(struct prim_job *job, const struct prim_series *s) {
    i32 width = elem_bytes[s->out.type];
    char defines[60];
    snprintf(defines, sizeof defines, "#define SERIES_BYTES %d\n", width);
    struct gpu_template code = {"series", "k_series", defines};
    struct kseries args = {s->out.data, s->out.count, s->first, s->wide, s->step};
    if (!s->out.count) {
        return ERR_OK;
    }
    i64 blocks = parts_of(s->out.count * width, SERIES_THREADS * SERIES_VECS * 16);
    return gpu_prim_launch(job, &code, blocks, SERIES_THREADS, 0, &args);
}

/* --- reduction --- */

static FALLIBLE reduce_floats(struct prim_job *job, struct prim_array out, struct prim_array in) {
    i64 words[FSUM_WORDS] = {0};
    u64 value = 0;
    u64 *parts = prim_take(job, sizeof words);
    struct kreduce args = {.in = in.data, .count = in.count, .parts = parts};
    struct gpu_template code = {"fsum", "k_fsum",
                                in.type == ELEM_F64
                                    ? "#define T f64\n#define T_BYTES 8\n#define T_F64 1\n"
                                    : "#define T f32\n#define T_BYTES 4\n#define T_F32 1\n"};
    i64 blocks = parts_of(in.count * elem_bytes[in.type], REDUCE_THREADS * REDUCE_VECS * 16);
    TRY(gpu_prim_fill(job, parts, 0, sizeof words));
    if (in.count) {
        TRY(gpu_prim_launch(job, &code, blocks, REDUCE_THREADS, 0, &args));
    }
    TRY(gpu_prim_fetch(job, words, parts, sizeof words));
    TRY(prim_fsum_fault(job, prim_fsum_round(words, in.type, &value)));
    return gpu_prim_send(job, out.data, &value, elem_bytes[in.type]);
}

static FALLIBLE reduce(struct prim_job *job, enum fold fold, struct prim_array out,
                       struct prim_array in) {
    if (!fold_has(fold, in.type)) {
        return reduce_floats(job, out, in);
    }
    if (gpu_cub_folds(fold, in.type) &&
        gpu_cub_picks(job, CUB_REDUCE, elem_bytes[in.type], in.count)) {
        return gpu_cub_reduce(job, fold, out, in);
    }
    i64 blocks = parts_of(in.count * elem_bytes[in.type], REDUCE_THREADS * REDUCE_VECS * 16);
    i64 parts_bytes = MAX_OF(blocks, 1) * 8;
    u8 *parts = prim_take(job, parts_bytes + 16);
    char defines[400];
    fold_text(fold, in.type, defines, sizeof defines);
    struct gpu_template code = {"reduce", "k_reduce", defines};
    struct kreduce args = {.in = in.data,
                           .out = out.data,
                           .count = in.count,
                           .parts = (u64 *)(void *)parts,
                           .finished = (u32 *)(void *)(parts + parts_bytes)};
    TRY(gpu_prim_fill(job, parts, 0, parts_bytes + 16)); /* to checkers an exchange is no write */
    return gpu_prim_launch(job, &code, MAX_OF(blocks, 1), REDUCE_THREADS, 0, &args);
}

/* --- scan --- */

static FALLIBLE scan_array(struct prim_job *job, enum fold fold, bool inclusive,
                           struct prim_array out, struct prim_array in) {
    i32 width = elem_bytes[in.type];
    if (fold == FOLD_ADD && gpu_cub_picks(job, CUB_SCAN, width, in.count)) {
        return gpu_cub_scan(job, inclusive, out, in);
    }
    i64 tiles = parts_of(in.count, SCAN_THREADS * SCAN_VECS * 16 / width);
    i64 state_bytes = tiles * 2 * width;
    u8 *state = prim_take(job, state_bytes + 16);
    if (!in.count) {
        return ERR_OK;
    }
    char defines[400];
    fold_text(fold, in.type, defines, sizeof defines);
    struct gpu_template code = {"scan", "k_scan", defines};
    TRY(gpu_prim_fill(job, state, 0, state_bytes + 16));
    struct kscan_array args = {.in = in.data,
                               .out = out.data,
                               .count = in.count,
                               .state = (u64 *)(void *)state,
                               .ticket = (u32 *)(void *)(state + state_bytes),
                               .inclusive = inclusive};
    if (fold == FOLD_ADD && elem_kinds[in.type] != 'F') { /* what builds and windows ask for */
        return gpu_prim_launch_fixed(job, width == 4 ? KERNEL_SCAN_U32 : KERNEL_SCAN_U64, &code,
                                     tiles, SCAN_THREADS, &args);
    }
    return gpu_prim_launch_all(job, &code, tiles, SCAN_THREADS, 0, &args);
}

/* --- gather and scatter --- */

/* What is visited at random pays in a few passes over parts that fit the cache, where it just
 * exceeds it and is visited often enough; elsewhere reading the index again costs more than the
 * misses it saves. Measured on an H200, whose cache has 60 MB, with 4-byte elements, ms:
 *
 *   scatter   one pass   several        gather   one pass   several
 *     64 MB       0.80   0.41 (3)        48 MB       0.22   0.21 (4)
 *     96 MB       1.38   0.68 (4)        64 MB       0.34   0.28 (4)
 *    128 MB       1.93   1.05 (8)       128 MB       0.83   0.79 (4)
 *    256 MB       4.05   3.47 (16)      192 MB       best
 *      1 GB       best */
static i32 choose_passes(const struct prim_job *job, struct prim_array visited, i64 visits,
                         bool scatter) {
    i64 l2 = gpu_of(job)->card->l2_bytes;
    i64 bytes = visited.count * elem_bytes[visited.type];
    i64 most = scatter ? 9 * l2 / 2 : 9 * l2 / 4;
    if (bytes <= 7 * l2 / 10 || bytes > most || visits < visited.count / 2) {
        return 1;
    }
    return scatter ? (i32)(3 * bytes / l2) + 1 : 4; /* parts of a third of the cache */
}

static FALLIBLE indexed(struct prim_job *job, struct prim_array out, struct prim_array in,
                        struct prim_array index, i32 passes, bool scatter) {
    u64 *bad = prim_take(job, 8);
    u64 first_bad = 0;
    if (!index.count) {
        return ERR_OK;
    }
    passes = passes ? passes : choose_passes(job, scatter ? out : in, index.count, scatter);
    char defines[200];
    snprintf(
        defines, sizeof defines,
        "#define ELEM_BYTES %d\n#define INDEX_BYTES %d\n#define SCATTER %d\n#define RANGED %d\n",
        elem_bytes[in.type], elem_bytes[index.type], scatter, passes > 1);
    struct gpu_template code = {"gather", "k_gather", defines};
    struct kgather args = {.in = in.data,
                           .out = out.data,
                           .index = index.data,
                           .count = index.count,
                           .limit = (u64)(scatter ? out.count : in.count),
                           .bad = bad};
    i64 blocks = parts_of(index.count, GATHER_THREADS * GATHER_GROUPS * 4);
    u64 step = args.limit / (u64)passes + 1;
    TRY(gpu_prim_fill(job, bad, 255, 8));
    for (i32 p = 0; p < passes && (p == 0 || (u64)p * step < args.limit); p++) {
        args.lo = (u64)p * step;
        args.hi = MIN_OF(args.lo + step, args.limit);
        TRY(gpu_prim_launch(job, &code, blocks, GATHER_THREADS, 0, &args));
    }
    TRY(gpu_prim_fetch(job, &first_bad, bad, 8));
    return job->measuring || first_bad == ~0ULL
               ? ERR_OK
               : prim_bad_index(job, (i64)first_bad, (i64)args.limit);
}

static FALLIBLE gather(struct prim_job *job, struct prim_array out, struct prim_array in,
                       struct prim_array index, i32 passes) {
    return indexed(job, out, in, index, passes, false);
}

static FALLIBLE scatter(struct prim_job *job, struct prim_array out, struct prim_array in,
                        struct prim_array index, i32 passes) {
    return indexed(job, out, in, index, passes, true);
}

/* --- histogram --- */

enum { TABLE_BYTES = 32 << 10, TABLE_MOST_BYTES = 192 << 10, COPIES_MOST = 32 };

static FALLIBLE histogram(struct prim_job *job, const struct prim_bins *bins) {
    i64 count = bins->out.count;
    i32 width = elem_bytes[bins->in.type];
    bool in_shared = count * 4 <= TABLE_MOST_BYTES;
    if (gpu_cub_bins(bins) && gpu_cub_picks(job, CUB_HISTOGRAM, width, bins->in.count)) {
        return gpu_cub_histogram(job, bins);
    }
    struct prim_binning by = prim_binning(bins);
    struct khistogram args = {.in = bins->in.data,
                              .count = bins->in.count,
                              .flip = prim_order_flip(bins->in.type),
                              .start = by.start,
                              .width = by.width,
                              .low = by.low,
                              .base = by.base,
                              .bins = (u64)count,
                              .out = bins->out.data,
                              .copies = 1,
                              .shift = 64};
    while (args.copies < COPIES_MOST && (i64)args.copies * 2 * count * 4 <= TABLE_BYTES) {
        args.copies *= 2;
    }
    if ((by.width & (by.width - 1)) == 0) {
        args.shift = (u32)__builtin_ctzll(by.width);
    }
    bool narrow = width == 4 && args.start >> 32 == 0 && args.width >> 32 == 0 &&
                  args.bins >> 31 == 0 && args.base >> 31 == 0;
    char defines[140];
    snprintf(defines, sizeof defines,
             "#define WORD_BYTES %d\n#define IN_SHARED %d\n#define NARROW %d\n#define COMBINE %d\n",
             width, in_shared, narrow, args.copies < COPIES_MOST);
    struct gpu_template code = {"histogram", "k_histogram", defines};
    TRY(gpu_prim_fill(job, bins->out.data, 0, count * 8));
    if (!count || !bins->in.count) {
        return ERR_OK;
    }
    return gpu_prim_launch(job, &code,
                           parts_of(bins->in.count, HISTOGRAM_THREADS * HISTOGRAM_VECS * 4),
                           HISTOGRAM_THREADS, in_shared ? count * 4 * args.copies : 0, &args);
}

const struct prim_move gpu_prim_move_class = {.map = gpu_map,
                                              .series = series,
                                              .reduce = reduce,
                                              .segments = gpu_segments,
                                              .scan = scan_array,
                                              .compact = gpu_compact,
                                              .gather = gather,
                                              .scatter = scatter,
                                              .histogram = histogram};
