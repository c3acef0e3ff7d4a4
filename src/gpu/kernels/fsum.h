/* fsum.h: the exact sum of floats, as limbs (see prim/move.h): it does not depend on the order.
 *
 * A thread adds into a window of 128 bits in registers, whose lowest bit is that of some limb:
 * values of similar size all fall into it. What lies below, or is no number, goes straight to the
 * block's limbs in shared memory; a value above, or many below in a row, move the window. Windows
 * are emptied into the block's limbs, of which groups of warps have a copy each, and those, as
 * halves so that no number of blocks overflows, into the result's. The text that includes this
 * defines T, T_F32 or T_F64, T_BYTES. */
#include "fold.h"

#include "defs/kprim.h"

#define LIMBS 68u
#define FSUM_WORDS 71u
#define STRIDE 72u /* of copies, in words */
#define COPIES 8u
#define WINDOW_SHIFT 47u /* a value's lowest bit is at most so far up the window */
#define WINDOW_BELOW 16u /* where a new window puts it, at least */
#define MISSES_MOST 8u

struct window {
    u128 sum;   /* two's complement */
    u32 base;   /* of its lowest bit, above 2^-1074; a multiple of 32 */
    u32 misses; /* in a row */
};

FN void limb_add(u64 *s_words, u32 at, i64 x) {
    if (x) {
        atom_add_u64(&s_words[at], (u64)x);
    }
}

FN void window_empty(struct window *w, u64 *s_words) {
    u32 at = w->base >> 5;
    u64 low = (u64)w->sum;
    u64 high = (u64)(w->sum >> 64);
    limb_add(s_words, at, (i64)(low & 0xffffffffu));
    limb_add(s_words, at + 1u, (i64)(low >> 32));
    limb_add(s_words, at + 2u, (i64)(high & 0xffffffffu));
    limb_add(s_words, at + 3u, (i64)high >> 32);
    w->sum = 0;
    w->misses = 0;
}

/* A finite value outside the window; the window may move for those after it. */
FN_SLOW struct window window_miss(struct window w, u64 mantissa, u32 low, u32 negative,
                                  u64 *s_words) {
    u32 shift = low & 31u;
    u64 left = mantissa << shift;
    i64 sign = negative ? -1 : 1;
    limb_add(s_words, low >> 5, sign * (i64)(left & 0xffffffffu));
    limb_add(s_words, (low >> 5) + 1u, sign * (i64)(left >> 32));
    limb_add(s_words, (low >> 5) + 2u, sign * (i64)(shift ? mantissa >> (64u - shift) : 0u));
    w.misses++;
    if (low > w.base || w.misses > MISSES_MOST) {
        window_empty(&w, s_words);
        w.base = low > WINDOW_BELOW ? (low - WINDOW_BELOW) & ~31u : 0u;
    }
    return w;
}

FN void window_add(struct window *w, f64 x, u64 *s_words) {
    u64 bits = f64_bits(x);
    u32 biased = (u32)(bits >> 52) & 2047u;
    u32 negative = (u32)(bits >> 63);
    u64 mantissa = (bits & 0xfffffffffffffULL) | (u64)(biased != 0u) << 52;
    u32 low = biased ? biased - 1u : 0u;
    u32 up = low - w->base;
    if (biased == 2047u) {
        atom_add_u64(&s_words[x != x ? LIMBS : LIMBS + 1u + negative], 1);
    } else if (up <= WINDOW_SHIFT) {
        u64 flip = (u64)0 - negative;
        u64 first = mantissa << up ^ flip;
        u64 second = mantissa >> 1 >> (63u - up) ^ flip;
        w->sum += ((u128)second << 64 | first) + negative;
        w->misses = 0;
    } else if (mantissa) {
        *w = window_miss(*w, mantissa, low, negative, s_words);
    }
}

KERNEL(k_fsum, struct kreduce, REDUCE_THREADS) {
    SHARED(u64, s_all, STRIDE * COPIES);
    const T *in = (const T *)args.in;
    u64 *s_words = s_all + (t_id() >> 5) % COPIES * STRIDE;
    for (u32 i = t_id(); i < STRIDE * COPIES; i += REDUCE_THREADS) {
        s_all[i] = 0;
    }
    b_sync();
    struct window w;
    w.sum = 0;
    w.base = 0;
    w.misses = 0;
    i64 stride = (i64)t_blocks() * REDUCE_THREADS * T_VEC;
    i64 start = ((i64)t_block() * REDUCE_THREADS + t_id()) * T_VEC;
    for (i64 first = start; first < args.count; first += stride * REDUCE_VECS) {
        vec16 v[REDUCE_VECS];
        UNROLL for (u32 k = 0; k < REDUCE_VECS; k++) {
            v[k] = vec_read(in, first + (i64)k * stride, args.count, (T)0);
        }
        UNROLL for (u32 k = 0; k < REDUCE_VECS; k++) {
            UNROLL for (u32 j = 0; j < T_VEC; j++) {
                window_add(&w, (f64)vec_elem(v[k], j), s_words);
            }
        }
    }
    window_empty(&w, s_words);
    b_sync();
    for (u32 i = t_id(); i < FSUM_WORDS; i += REDUCE_THREADS) {
        u64 word = 0;
        for (u32 c = 0; c < COPIES; c++) {
            word += s_all[c * STRIDE + i];
        }
        b8 halves = (b8)(i < LIMBS - 1u);
        u64 low = halves ? word & 0xffffffffu : word;
        u64 high = halves ? (u64)((i64)word >> 32) : 0u;
        if (low) {
            atom_add_u64(&args.parts[i], low);
        }
        if (high) {
            atom_add_u64(&args.parts[i + 1u], high);
        }
    }
}
