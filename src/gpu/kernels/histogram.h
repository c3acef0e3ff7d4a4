/* histogram.h: how many elements fall into each bin.
 *
 * Blocks count in shared memory where the bins fit, in as many copies as there is room for. Bin b
 * of copy c lies at b * copies + c: lanes use different copies, so that equal elements of a warp
 * meet neither in one word nor in one bank. A thread adds neighbouring elements of one bin at once.
 * Where there is no table in shared memory a warp does: whatever bin its first lane has is added
 * once for all that share it. The text before this defines WORD_BYTES (4 or 8), IN_SHARED, NARROW
 * and COMBINE: whether neighbours of one bin are added at once, which pays where lanes share
 * copies. */
#include "rows4.h"

#include "defs/kprim.h"

#define PASTE(x, y) x##y
#define READ(bytes) PASTE(rows4_read, bytes)
#if WORD_BYTES == 4
typedef u32 word;
#else
typedef u64 word;
#endif

/* The bin, from args.bins on when there is none. NARROW: all figures fit 32 bits. */
FN u64 bin_of(const struct khistogram *args, word raw) {
    word x = raw ^ (word)args->flip;
#if NARROW
    u32 start = (u32)args->start;
    u32 far = x - start;
    far = args->shift < 32u ? far >> args->shift : far / (u32)args->width;
    far = far < (u32)args->bins ? (u32)args->base + far : (u32)args->bins;
    return x < start ? (u32)args->low : far;
#else
    u64 bin;
    if ((u64)x < args->start) {
        bin = args->low;
    } else {
        u64 far = (u64)x - args->start;
        far = args->shift < 64u ? far >> args->shift : far / args->width;
        bin = far < args->bins ? args->base + far : args->bins;
    }
    return bin;
#endif
}

FN word raw_word(const u32 *raw, u32 j) {
#if WORD_BYTES == 4
    return raw[j];
#else
    return raw_u64(raw, j);
#endif
}

#if IN_SHARED
FN void add(const struct khistogram *args, u32 *s_table, u64 bin, u32 count) {
    if (bin < args->bins) {
        atom_add_u32(&s_table[(u32)bin * args->copies + (t_id() & (args->copies - 1u))], count);
    }
}
#else
/* All lanes. */
FN void w_add(const struct khistogram *args, u64 bin, u32 count) {
    u64 leader = w_from_u64(bin, 0);
    u32 same = bin == leader;
    u32 together = same ? count : 0u;
    UNROLL for (u32 mask = 16; mask; mask >>= 1) {
        together += w_xor_u32(together, mask);
    }
    u32 amount = t_lane() == 0 ? together : same ? 0u : count;
    if (amount && bin < args->bins) {
        atom_add_u64(&args->out[bin], amount);
    }
}
#endif

KERNEL(k_histogram, struct khistogram, HISTOGRAM_THREADS) {
#if IN_SHARED
    SHARED_BYTES(s_bytes);
    u32 *s_table = (u32 *)s_bytes;
    u32 words = (u32)args.bins * args.copies;
    for (u32 i = t_id(); i < words; i += HISTOGRAM_THREADS) {
        s_table[i] = 0;
    }
    b_sync();
#endif
    i64 stride = (i64)t_blocks() * HISTOGRAM_THREADS * 4;
    i64 base = (i64)t_block() * HISTOGRAM_THREADS * 4;
    for (i64 tile = base; tile < args.count; tile += stride * HISTOGRAM_VECS) {
        u32 raw[HISTOGRAM_VECS][WORD_BYTES];
        UNROLL for (u32 k = 0; k < HISTOGRAM_VECS; k++) {
            READ(WORD_BYTES)
            (raw[k], args.in, tile + (i64)k * stride + (i64)t_id() * 4, args.count);
        }
        UNROLL for (u32 k = 0; k < HISTOGRAM_VECS; k++) {
            i64 left = args.count - (tile + (i64)k * stride + (i64)t_id() * 4);
            u64 last = ~0ULL;
            u32 run = 0;
            UNROLL for (u32 j = 0; j < 4; j++) {
                u64 bin = (i64)j < left ? bin_of(&args, raw_word(raw[k], j)) : ~0ULL;
#if IN_SHARED
                if (bin != last || !COMBINE) {
                    add(&args, s_table, last, run);
                    run = 0;
                }
#else
                w_add(&args, last, bin != last ? run : 0u);
                run = bin != last ? 0u : run;
#endif
                last = bin;
                run++;
            }
#if IN_SHARED
            add(&args, s_table, last, run);
#else
            w_add(&args, last, run);
#endif
        }
    }
#if IN_SHARED
    b_sync();
    for (u32 b = t_id(); b < (u32)args.bins; b += HISTOGRAM_THREADS) {
        u64 sum = 0;
        for (u32 c = 0; c < args.copies; c++) {
            sum += s_table[b * args.copies + ((c + t_id()) & (args.copies - 1u))];
        }
        if (sum) {
            atom_add_u64(&args.out[b], sum);
        }
    }
#endif
}
