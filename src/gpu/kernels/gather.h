/* gather.h: elements moved by index: out[i] = in[index[i]], or with SCATTER out[index[i]] = in[i].
 *
 * A thread takes groups of four rows and asks for all their elements before it writes any. The text
 * before this defines ELEM_BYTES, INDEX_BYTES (4 or 8), SCATTER and RANGED: only the indexes from
 * lo up to hi are served by this launch. */
#include "rows4.h"

#include "defs/kprim.h"

#define PASTE(x, y) x##y
#define READ(bytes) PASTE(rows4_read, bytes)
#define WRITE(bytes) PASTE(rows4_write, bytes)
#define WORDS (ELEM_BYTES / 4)

FN u64 index_of(const u32 *raw, u32 j) {
#if INDEX_BYTES == 4
    return raw[j];
#else
    return raw_u64(raw, j);
#endif
}

/* One element into words of a thread's own. */
FN void elem_fetch(u32 *to, const u32 *from) {
#if ELEM_BYTES == 4
    to[0] = *from;
#elif ELEM_BYTES == 8
    u64 x = *(const u64 *)from;
    to[0] = (u32)x;
    to[1] = (u32)(x >> 32);
#else
    vec16 v = load16(from);
    UNROLL for (u32 k = 0; k < 4; k++) {
        to[k] = v.w[k];
    }
#endif
}

FN void elem_store(u32 *to, const u32 *from) {
#if ELEM_BYTES == 4
    *to = from[0];
#elif ELEM_BYTES == 8
    *(u64 *)to = (u64)from[1] << 32 | from[0];
#else
    vec16 v;
    UNROLL for (u32 k = 0; k < 4; k++) {
        v.w[k] = from[k];
    }
    store16(to, v);
#endif
}

/* Whether this launch serves the index; one out of bounds is noted. */
FN u32 served(const struct kgather *args, u64 index, i64 row) {
    u32 fits = index < args->limit;
    if (!fits && row < args->count) {
        atom_min_u64(args->bad, (u64)row);
    }
#if RANGED
    fits &= index - args->lo < args->hi - args->lo;
#endif
    return fits && row < args->count;
}

KERNEL(k_gather, struct kgather, GATHER_THREADS) {
    i64 stride = (i64)t_blocks() * GATHER_THREADS * 4;
    i64 start = ((i64)t_block() * GATHER_THREADS + t_id()) * 4;
    for (i64 first = start; first < args.count; first += stride * GATHER_GROUPS) {
        u32 index[GATHER_GROUPS][INDEX_BYTES];
        u32 elem[GATHER_GROUPS][ELEM_BYTES];
        u32 bits[GATHER_GROUPS];
        UNROLL for (u32 g = 0; g < GATHER_GROUPS; g++) {
            READ(INDEX_BYTES)(index[g], args.index, first + (i64)g * stride, args.count);
        }
        UNROLL for (u32 g = 0; g < GATHER_GROUPS; g++) {
            i64 row = first + (i64)g * stride;
            bits[g] = 0;
            UNROLL for (u32 j = 0; j < 4; j++) {
                u64 at = index_of(index[g], j);
                if (served(&args, at, row + (i64)j)) {
                    bits[g] |= 1u << j;
#if !SCATTER
                    elem_fetch(elem[g] + j * WORDS, (const u32 *)args.in + at * WORDS);
#endif
                }
            }
#if SCATTER
            if (bits[g]) {
                READ(ELEM_BYTES)(elem[g], args.in, row, args.count);
            }
#endif
        }
        UNROLL for (u32 g = 0; g < GATHER_GROUPS; g++) {
            i64 row = first + (i64)g * stride;
#if !SCATTER
            if (bits[g] == 15u) {
                WRITE(ELEM_BYTES)(elem[g], args.out, row, args.count);
            }
            u32 single = bits[g] == 15u ? 0u : bits[g];
#else
            u32 single = bits[g];
#endif
            UNROLL for (u32 j = 0; j < 4; j++) {
                if (single >> j & 1u) {
#if SCATTER
                    u64 at = index_of(index[g], j);
#else
                    i64 at = row + (i64)j;
#endif
                    elem_store((u32 *)args.out + at * WORDS, elem[g] + j * WORDS);
                }
            }
        }
    }
}
