/* fold.h: elements of type T in kernel text: their order, their bits, and the operator FOLD.
 *
 * The text that includes this defines T (u32, i32, f32, u64, i64 or f64), one of T_WORDS, T_INTS,
 * T_F32 and T_F64, and, where it folds, FOLD(a, b) and FOLD_IDENTITY (see prim/fold.c). W is the
 * word as wide as T. */
#ifndef WF_FOLD_H
#define WF_FOLD_H

#include "prelude.h"

#ifdef T_F32
typedef u32 W;
FN W t_bits(T x) {
    return f32_bits(x);
}
FN T t_of(W x) {
    return bits_f32(x);
}
FN i32 t_order(T x) {
    i32 bits = x != x ? 0x7fffffff : (i32)f32_bits(x);
    return bits ^ (bits >> 31 & 0x7fffffff);
}
#define T_LESS(x, y) (t_order(x) < t_order(y))
#define T_LEAST bits_f32(0xff800000u)
#define T_GREATEST bits_f32(0x7fc00000u)
#elif defined T_F64
typedef u64 W;
FN W t_bits(T x) {
    return f64_bits(x);
}
FN T t_of(W x) {
    return bits_f64(x);
}
FN i64 t_order(T x) {
    i64 bits = x != x ? I64_MAX : (i64)f64_bits(x);
    return bits ^ (bits >> 63 & I64_MAX);
}
#define T_LESS(x, y) (t_order(x) < t_order(y))
#define T_LEAST bits_f64(0xfff0000000000000ULL)
#define T_GREATEST bits_f64(0x7ff8000000000000ULL)
#else
#if T_BYTES == 8
typedef u64 W;
#else
typedef u32 W;
#endif
FN W t_bits(T x) {
    return (W)x;
}
FN T t_of(W x) {
    return (T)x;
}
#define T_LESS(x, y) ((x) < (y))
#ifdef T_INTS
#define T_LEAST ((T)((W)1 << (8 * T_BYTES - 1)))
#define T_GREATEST ((T)(((W)1 << (8 * T_BYTES - 1)) - 1))
#else
#define T_LEAST ((T)0)
#define T_GREATEST ((T) ~(T)0)
#endif
#endif

#if T_BYTES == 8
#define W_UP(x, by) w_up_u64(x, by)
#define W_FROM(x, lane) w_from_u64(x, lane)
#define W_XOR(x, mask) w_xor_u64(x, mask)
#else
#define W_UP(x, by) w_up_u32(x, by)
#define W_FROM(x, lane) w_from_u32(x, lane)
#define W_XOR(x, mask) w_xor_u32(x, mask)
#endif

/* Elements of one 16-byte vector. */
#define T_VEC (16 / T_BYTES)
FN T vec_elem(vec16 v, u32 j) {
#if T_BYTES == 8
    return t_of((u64)v.w[2 * j + 1] << 32 | v.w[2 * j]);
#else
    return t_of(v.w[j]);
#endif
}
FN void vec_set(vec16 *v, u32 j, T x) {
#if T_BYTES == 8
    v->w[2 * j] = (u32)t_bits(x);
    v->w[2 * j + 1] = (u32)(t_bits(x) >> 32);
#else
    v->w[j] = t_bits(x);
#endif
}
/* Where vector v lies in shared memory, so that neither those who write vectors in order nor those
 * who read two or four neighbours each meet in a bank. */
FN u32 vec_place(u32 v) {
    return 16u * (v ^ (v >> 3 & 7u));
}
/* The vector of elements i and following; those from n on are `rest`. */
FN vec16 vec_read(const T *p, i64 i, i64 n, T rest) {
    if (i + T_VEC <= n) {
        return load16(p + i);
    }
    vec16 v;
    UNROLL for (u32 j = 0; j < T_VEC; j++) {
        vec_set(&v, j, i + (i64)j < n ? p[i + j] : rest);
    }
    return v;
}
FN void vec_write(T *p, i64 i, i64 n, vec16 v) {
    if (i + T_VEC <= n) {
        store16(p + i, v);
    } else {
        UNROLL for (u32 j = 0; j < T_VEC; j++) {
            if (i + (i64)j < n) {
                p[i + j] = vec_elem(v, j);
            }
        }
    }
}

#endif
