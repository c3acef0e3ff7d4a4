/* fsum.h: the exact sum of floats, as limbs (see prim/move.h): it does not depend on the order.
 *
 * A thread adds into a window of four limbs in registers, and moves the window when a value lies
 * outside: values of similar size never leave it. Windows are emptied into the block's limbs in
 * shared memory, and those, as halves so that no number of blocks overflows, into the result's. The
 * text that includes this defines T, T_F32 or T_F64, T_BYTES. */
#include "fold.h"

#include "defs/kprim.h"

#define LIMBS 68u
#define FSUM_WORDS 71u
#define WINDOW 4u

struct window {
    i64 limb[WINDOW];
    u32 at; /* the first one's number */
};

FN void window_empty(struct window *w, u64 *s_words) {
    UNROLL for (u32 i = 0; i < WINDOW; i++) {
        if (w->limb[i]) {
            atom_add_u64(&s_words[w->at + i], (u64)w->limb[i]);
        }
        w->limb[i] = 0;
    }
}

FN void window_add(struct window *w, f64 x, u64 *s_words) {
    u64 bits = f64_bits(x);
    u32 biased = (u32)(bits >> 52) & 2047u;
    u32 negative = (u32)(bits >> 63);
    if (biased == 2047u) {
        atom_add_u64(&s_words[x != x ? LIMBS : LIMBS + 1u + negative], 1);
    } else {
        u64 mantissa = (bits & 0xfffffffffffffULL) | (u64)(biased != 0u) << 52;
        u32 low = biased ? biased - 1u : 0u;
        u32 shift = low & 31u;
        u32 first = low >> 5;
        if (mantissa != 0u && first - w->at > 1u) {
            window_empty(w, s_words);
            w->at = first;
        }
        u64 left = mantissa << shift;
        i64 part[3];
        part[0] = (i64)(left & 0xffffffffu);
        part[1] = (i64)(left >> 32);
        part[2] = (i64)(shift ? mantissa >> (64u - shift) : 0u);
        UNROLL for (u32 i = 0; i < 3; i++) {
            part[i] = negative ? -part[i] : part[i];
        }
        u32 up = first != w->at;
        w->limb[0] += up ? 0 : part[0];
        w->limb[1] += up ? part[0] : part[1];
        w->limb[2] += up ? part[1] : part[2];
        w->limb[3] += up ? part[2] : 0;
    }
}

KERNEL(k_fsum, struct kreduce, REDUCE_THREADS) {
    SHARED(u64, s_words, FSUM_WORDS + WINDOW);
    const T *in = (const T *)args.in;
    for (u32 i = t_id(); i < FSUM_WORDS + WINDOW; i += REDUCE_THREADS) {
        s_words[i] = 0;
    }
    b_sync();
    struct window w;
    UNROLL for (u32 i = 0; i < WINDOW; i++) {
        w.limb[i] = 0;
    }
    w.at = 0;
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
        u64 word = s_words[i];
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
