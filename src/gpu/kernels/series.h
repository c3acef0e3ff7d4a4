/* series.h: the elements first + i * step; SERIES_BYTES is their width. A vector of 16 bytes per
 * store, a thread's vectors a grid apart. */
#include "prelude.h"

#include "defs/kprim.h"

#define PER_VEC (16 / SERIES_BYTES)

KERNEL(k_series, struct kseries, SERIES_THREADS) {
    i64 stride = (i64)t_blocks() * SERIES_THREADS * PER_VEC;
    i64 start = ((i64)t_block() * SERIES_THREADS + t_id()) * PER_VEC;
    for (i64 i = start; i < args.count; i += stride) {
        vec16 v;
        UNROLL for (u32 j = 0; j < 4; j++) {
#if SERIES_BYTES == 1
            v.w[j] = (u32)(args.first != 0) * 0x01010101u;
#elif SERIES_BYTES == 4
            v.w[j] = (u32)args.first + (u32)(i + (i64)j) * (u32)args.step;
#elif SERIES_BYTES == 8
            u64 x = args.first + (u64)(i + (i64)(j / 2u)) * args.step;
            v.w[j] = (u32)(x >> (32u * (j & 1u)));
#else
            v.w[j] = (u32)((j < 2u ? args.first : args.wide) >> (32u * (j & 1u)));
#endif
        }
        u8 *to = (u8 *)args.out + i * SERIES_BYTES;
        if (i + PER_VEC <= args.count) {
            store16(to, v);
        } else {
#if SERIES_BYTES < 4
            for (i64 j = 0; i + j < args.count; j++) {
                to[j] = (u8)v.w[0];
            }
#else
            u32 words = (u32)(args.count - i) * (SERIES_BYTES / 4);
            UNROLL for (u32 j = 0; j < 4; j++) {
                if (j < words) {
                    ((u32 *)to)[j] = v.w[j];
                }
            }
#endif
        }
    }
}
