/* reduce.h: the fold of an array, in one launch.
 *
 * Blocks fold vectors a grid apart and leave one word each; the block that finishes last folds the
 * words. All operators of fold.def commute, so it does not matter who folds what. */
#include "fold.h"

#include "defs/kprim.h"

#define REDUCE_WARPS (REDUCE_THREADS / 32)

/* The fold over the block, right in thread 0. s_words: one per warp. A barrier before s_words is
 * used again is the caller's. */
FN T b_fold(T x, T *s_words) {
    UNROLL for (u32 mask = 16; mask; mask >>= 1) {
        T other = t_of(W_XOR(t_bits(x), mask)); /* FOLD may name its operands twice */
        x = FOLD(x, other);
    }
    if (t_lane() == 0) {
        s_words[t_id() >> 5] = x;
    }
    b_sync();
    if (t_id() == 0) {
        for (u32 w = 1; w < REDUCE_WARPS; w++) {
            x = FOLD(x, s_words[w]);
        }
    }
    return x;
}

KERNEL(k_reduce, struct kreduce, REDUCE_THREADS) {
    SHARED(T, s_words, REDUCE_WARPS);
    SHARED(u32, s_last, 1);
    const T *in = (const T *)args.in;
    T all = FOLD_IDENTITY;
    i64 stride = (i64)t_blocks() * REDUCE_THREADS * T_VEC;
    i64 start = ((i64)t_block() * REDUCE_THREADS + t_id()) * T_VEC;
    for (i64 first = start; first < args.count; first += stride * REDUCE_VECS) {
        vec16 v[REDUCE_VECS];
        UNROLL for (u32 k = 0; k < REDUCE_VECS; k++) {
            v[k] = vec_read(in, first + (i64)k * stride, args.count, FOLD_IDENTITY);
        }
        UNROLL for (u32 k = 0; k < REDUCE_VECS; k++) {
            UNROLL for (u32 j = 0; j < T_VEC; j++) {
                all = FOLD(all, vec_elem(v[k], j));
            }
        }
    }
    all = b_fold(all, s_words);
    if (t_id() == 0) {
        atom_exch_u64(&args.parts[t_block()], (u64)t_bits(all));
        mem_fence();
        *s_last = atom_add_u32(args.finished, 1) == t_blocks() - 1u;
    }
    b_sync();
    u32 last = *s_last;
    if (last) {
        mem_fence();
    }
    T rest = FOLD_IDENTITY;
    for (u32 b = t_id(); last && b < t_blocks(); b += REDUCE_THREADS) {
        T part = t_of((W)read_u64(&args.parts[b]));
        rest = FOLD(rest, part);
    }
    rest = b_fold(rest, s_words);
    if (last && t_id() == 0) {
        *(T *)args.out = rest;
    }
}
