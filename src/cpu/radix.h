/* radix.h: stable parallel radix sort of words, and of words with a number alongside. */
#ifndef WF_CPU_RADIX_H
#define WF_CPU_RADIX_H

#include "prim/prim.h"

/* Sorts data[0..n) by bits [low, high) of the key, stably, with `temp` as room for as many; only
 * the first `want` elements need to be in place afterwards. Words compare by all their bits at
 * last, so what lies below `low` must ascend with the position. Runs on the pool when n is large;
 * not to be called from a task then. ERR_CANCELLED is all that can happen. */
FALLIBLE radix_sort_words(struct exec *x, u64 *data, u64 *temp, i64 n, i32 low, i32 high, i64 want);
/* *out_valid: how many elements are in place, `want` or a few more; what follows them is not data.
 */
FALLIBLE radix_sort_pairs(struct exec *x, struct prim_pair *data, struct prim_pair *temp, i64 n,
                          i32 high, i64 want, i64 *out_valid);
/* Scatters by `bits` bits from `shift` on, stably; starts has 2^bits + 1 places. */
FALLIBLE radix_split(struct exec *x, struct prim_pair *out, const struct prim_pair *in, i64 n,
                     i32 shift, i32 bits, i64 *starts);
/* The same for few elements, on the calling thread. */
void radix_sort_few(struct prim_pair *data, struct prim_pair *temp, i64 n, i32 high);

#endif
