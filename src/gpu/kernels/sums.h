/* sums.h: sums over lanes and over threads.
 *
 * A warp sums by doubling steps; the warps' totals meet in shared memory, where every thread adds
 * those of lower warps: a block has at most 32, and one barrier is all it takes. `threads` is the
 * block's, written as a constant where it is one, so that the last loop unrolls. */
#ifndef WF_SUMS_H
#define WF_SUMS_H

#include "prelude.h"

/* w_sum_upto: the sum over lower lanes and this one.
 * b_sum_before: the sum over lower threads; *out_all: over the block. s_sums: a word per warp, free
 * again after the caller's next barrier. One barrier. */
#define SUM_WORDS(type)                                                                \
    FN type w_sum_upto_##type(type mine) {                                             \
        type upto = mine;                                                              \
        UNROLL for (u32 by = 1; by < 32; by *= 2) {                                    \
            type other = w_up_##type(upto, by);                                        \
            upto += t_lane() >= by ? other : 0u;                                       \
        }                                                                              \
        return upto;                                                                   \
    }                                                                                  \
    FN type b_sum_before_##type(type mine, u32 threads, type *s_sums, type *out_all) { \
        type upto = w_sum_upto_##type(mine);                                           \
        u32 warp = t_id() >> 5;                                                        \
        if (t_lane() == 31u) {                                                         \
            s_sums[warp] = upto;                                                       \
        }                                                                              \
        b_sync();                                                                      \
        type before = upto - mine;                                                     \
        type all = 0;                                                                  \
        UNROLL for (u32 w = 0; w < threads / 32; w++) {                                \
            type sum = s_sums[w];                                                      \
            before += w < warp ? sum : 0u;                                             \
            all += sum;                                                                \
        }                                                                              \
        *out_all = all;                                                                \
        return before;                                                                 \
    }
SUM_WORDS(u32)
SUM_WORDS(u64)
#undef SUM_WORDS

#endif
