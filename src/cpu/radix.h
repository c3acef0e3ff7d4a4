/* radix.h: stable parallel radix sort of words, and of words with a number alongside. */
#ifndef WF_CPU_RADIX_H
#define WF_CPU_RADIX_H

#include "prim/prim.h"

struct prim_pair {
    u64 key;
    u64 row;
};

/* Sorts data[0..n) by bits [low, high) of the key, stably, with `temp` as room for as many; only
 * the first `want` elements need to be in place afterwards. Words compare by all their bits at
 * last, so what lies below `low` must ascend with the position. Runs on the pool when n is large;
 * not to be called from a task then. ERR_CANCELLED is all that can happen. */
FALLIBLE radix_sort_words(struct exec *x, u64 *data, u64 *temp, i64 n, i32 low, i32 high, i64 want);
/* *out_valid: how many elements are in place, `want` or a few more; what follows them is not data.
 */
FALLIBLE radix_sort_pairs(struct exec *x, struct prim_pair *data, struct prim_pair *temp, i64 n,
                          i32 high, i64 want, i64 *out_valid);
/* Elements of plain arrays: all bits, all elements. */
struct radix_half {
    u32 key, row;
};
struct radix_item {
    u64 low, high, row;
};
FALLIBLE radix_sort_halves(struct exec *x, u32 *data, u32 *temp, i64 n);
FALLIBLE radix_sort_half_pairs(struct exec *x, struct radix_half *data, struct radix_half *temp,
                               i64 n);
FALLIBLE radix_sort_items(struct exec *x, struct radix_item *data, struct radix_item *temp, i64 n);
/* Few pairs, on the calling thread. */
void radix_sort_few(struct prim_pair *data, struct prim_pair *temp, i64 n, i32 high);
/* Few words of `high` bits; the result is in `out`, and `data` holds anything. */
void radix_sort_words_few(u64 *data, u64 *out, i64 n, i32 high);
void radix_sort_halves_few(u32 *data, u32 *out, i64 n, i32 high);

#endif
