/* radix.h: stable parallel radix sort of words, and of words with a number alongside. */
#ifndef WF_CPU_RADIX_H
#define WF_CPU_RADIX_H

#include "run/device.h"

struct sort_pair {
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
FALLIBLE radix_sort_pairs(struct exec *x, struct sort_pair *data, struct sort_pair *temp, i64 n,
                          i32 high, i64 want, i64 *out_valid);
/* The same for few elements, on the calling thread. */
void radix_sort_few(struct sort_pair *data, struct sort_pair *temp, i64 n, i32 high);

#endif
