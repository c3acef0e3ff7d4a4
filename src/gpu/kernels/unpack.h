/* unpack.h: a column's numbers as they lie on the disk, to what other kernels read.
 *
 * A block of threads takes a block of numbers, four neighbours a thread. Numbers that are differences
 * are summed over the block. Codes of a dictionary that cannot be become 0, and are noted. */
#include "rows4.h"

#include "sums.h"

#include "defs/kpack.h"

FN u64 packed_number(const u64 *words, u32 row, u32 bits) {
    u32 at = row * bits;
    u32 shift = at & 63u;
    u64 low = words[at >> 6] >> shift;
    u64 high = shift + bits > 64u ? words[(at >> 6) + 1] << (64u - shift) : 0;
    return (low | high) & (~0ULL >> (64u - bits));
}

/* Four numbers to rows of the output. */
FN void unpacked_write(const struct kunpack *a, const u64 *value, i64 row) {
    u32 raw[8];
    if (a->width == 8) {
        UNROLL for (u32 j = 0; j < 4; j++) {
            raw[2 * j] = (u32)value[j];
            raw[2 * j + 1] = (u32)(value[j] >> 32);
        }
        rows4_write8(raw, a->data, row, a->rows);
    } else if (a->width == 4) {
        UNROLL for (u32 j = 0; j < 4; j++) {
            raw[j] = (u32)value[j];
        }
        rows4_write4(raw, a->data, row, a->rows);
    } else if (a->width == 2) {
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (row + (i64)j < a->rows) {
                ((u16 *)a->data)[row + (i64)j] = (u16)value[j];
            }
        }
    } else {
        raw[0] = (u32)value[0] | (u32)value[1] << 8 | (u32)value[2] << 16 | (u32)value[3] << 24;
        rows4_write1(raw, a->data, row, a->rows);
    }
}

KERNEL(k_unpack, struct kunpack, UNPACK_THREADS) {
    SHARED(u64, s_sums, UNPACK_THREADS / 32);
    u64 mask = ~0ULL >> (64u - 8u * args.width);
    for (i64 b = t_block(); b < args.blocks; b += t_blocks()) {
        const u64 *block = (const u64 *)(args.packed + args.starts[b]);
        u64 form = block[0];
        u64 least = form & ((1ULL << PACK_LEAST_BITS) - 1);
        u32 bits = (u32)(form >> PACK_LEAST_BITS) & 127u;
        i64 first = b * PACK_ROWS;
        u32 rows = args.rows - first < PACK_ROWS ? (u32)(args.rows - first) : (u32)PACK_ROWS;
        u64 value[4];
        UNROLL for (u32 j = 0; j < 4; j++) {
            u32 row = t_id() * 4 + j;
            value[j] = bits && row < rows ? packed_number(block + 2, row, bits) : 0;
        }
        if (form >> PACK_DIFFERS_BIT) {
            u64 all;
            UNROLL for (u32 j = 0; j < 4; j++) {
                value[j] += least - PACK_BIAS + (j ? value[j - 1] : 0);
            }
            least = block[1] + b_sum_before_u64(value[3], UNPACK_THREADS, s_sums, &all);
            b_sync(); /* the sums' words are free again */
        }
        UNROLL for (u32 j = 0; j < 4; j++) {
            value[j] = (value[j] + least) & mask;
            if (args.below && value[j] >= args.below) {
                if (t_id() * 4 + j < rows) {
                    *args.bad = 1;
                }
                value[j] = 0;
            }
        }
        if (t_id() * 4 < rows) {
            unpacked_write(&args, value, first + (i64)t_id() * 4);
        }
    }
    i64 stride = (i64)t_blocks() * UNPACK_THREADS;
    for (i64 w = (i64)t_block() * UNPACK_THREADS + t_id(); w < args.valid_words; w += stride) {
        args.valid[w] = args.valid_from[w];
    }
}
