/* gpu_cub.h: NVIDIA's CUB where its module is there and was measured to be faster.
 *
 * A body asks gpu_cub_picks first; when that says yes the call below takes its place, workspace
 * included. Without the module, under the simt driver, or with gpu_cub = off it always says no. */
#ifndef WF_GPU_GPU_CUB_H
#define WF_GPU_GPU_CUB_H

#include "gpu/gpu_prim.h"
#include "prim/move.h"
#include "prim/order.h"

enum cub_op {
    CUB_SORT_KEYS,
    CUB_SORT_PAIRS,
    CUB_SCAN,
    CUB_REDUCE,
    CUB_COMPACT,
    CUB_COMPACT_UNORDERED,
    CUB_HISTOGRAM,
    CUB_SET,
    CUB_MERGE,
    CUB_OP_COUNT
};

/* Whether CUB is to do this operation over n elements of `width` bytes. */
bool gpu_cub_picks(const struct prim_job *job, enum cub_op op, i32 width, i64 n);

/* Unsigned keys, ascending by bits low .. high - 1; values.data NULL: none. */
FALLIBLE gpu_cub_sort(struct prim_job *job, struct prim_array out_keys, struct prim_array keys,
                      struct prim_array out_values, struct prim_array values, i32 low, i32 high);
FALLIBLE gpu_cub_scan(struct prim_job *job, bool inclusive, struct prim_array out,
                      struct prim_array in); /* ADD */
bool gpu_cub_folds(enum fold fold, enum elem type);
FALLIBLE gpu_cub_reduce(struct prim_job *job, enum fold fold, struct prim_array out,
                        struct prim_array in);
/* One column, which is the key where rows are kept by comparison, with room for all its rows. */
bool gpu_cub_compacts(const struct prim_compact *c);
FALLIBLE gpu_cub_compact(struct prim_job *job, const struct prim_compact *c);
bool gpu_cub_bins(const struct prim_bins *bins);
FALLIBLE gpu_cub_histogram(struct prim_job *job, const struct prim_bins *bins);
/* Thrust's, for comparison: they allocate on their own. Unsigned elements of 4 or 8 bytes, outputs
 * with room for whatever may come. */
bool gpu_cub_sets(struct prim_set how, struct prim_array out, struct prim_array a,
                  struct prim_array b);
FALLIBLE gpu_cub_set(struct prim_job *job, struct prim_set how, struct prim_array out,
                     struct prim_array a, struct prim_array b, i64 *out_count);
FALLIBLE gpu_cub_merge(struct prim_job *job, struct prim_array out, struct prim_array a,
                       struct prim_array b);

#endif
