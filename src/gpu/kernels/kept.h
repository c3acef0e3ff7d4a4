/* kept.h: the rows of a tile that are kept, side by side.
 *
 * A warp's part of a tile is contiguous: KEPT_GROUPS times 128 rows, four neighbours a lane. How
 * many rows of each group a lane keeps are bytes of one word, so that one scan over the warp gives
 * all places; the warps' totals meet in shared memory. What is kept is put together there, too, and
 * leaves in vectors at the output's own alignment. The text before this defines
 *   KEPT_THREADS
 *   KEPT_GROUPS   1, 2, 4 or 8 */
#ifndef WF_KEPT_H
#define WF_KEPT_H

#include "rows4.h"
#include "sums.h"

#define KEPT_WARPS (KEPT_THREADS / 32)
#define KEPT_ROWS ((i64)KEPT_THREADS * 4 * KEPT_GROUPS) /* of a tile */

/* --- places --- */

#if KEPT_GROUPS == 8
typedef u64 kept_counts;
#define w_counts_upto w_sum_upto_u64
#define w_from_counts w_from_u64
#else
typedef u32 kept_counts;
#define w_counts_upto w_sum_upto_u32
#define w_from_counts w_from_u32
#endif

struct kept {
    i64 first;          /* row of this thread's first group */
    u32 bits;           /* kept rows, four bits a group */
    kept_counts before; /* those of lower lanes, a byte a group */
    kept_counts warp;   /* those of the warp */
    u32 at;             /* the warp's first within the tile */
    u32 total;          /* rows of the tile */
};

FN i64 kept_first(i64 tile_first) {
    return tile_first + (i64)(((t_id() & ~31u) * KEPT_GROUPS + t_lane()) * 4u);
}
#define KEPT_GROUP_ROW(first, g) ((first) + (i64)((g)*128u))

FN u32 kept_bits(const struct kept *k, u32 g) {
    return k->bits >> (4 * g) & 15u;
}

/* From `first` and `bits` the rest. s_counts: a word a warp. One barrier. */
FN void b_kept_places(struct kept *k, u32 *s_counts) {
    kept_counts mine = 0;
    UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
        mine |= (kept_counts)bits_set_u32(kept_bits(k, g)) << (8 * g);
    }
    kept_counts upto = w_counts_upto(mine);
    k->before = upto - mine;
    k->warp = w_from_counts(upto, 31);
    if (t_lane() == 0) {
        u32 total = 0;
        UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
            total += (u32)(k->warp >> (8 * g)) & 255u;
        }
        s_counts[t_id() >> 5] = total;
    }
    b_sync();
    k->at = k->total = 0;
    UNROLL for (u32 w = 0; w < KEPT_WARPS; w++) {
        u32 count = s_counts[w];
        k->at += w < t_id() >> 5 ? count : 0u;
        k->total += count;
    }
}

/* Where the kept rows of group g go within the tile. */
FN u32 kept_at(const struct kept *k, u32 g) {
    u32 at = k->at + ((u32)(k->before >> (8 * g)) & 255u);
    UNROLL for (u32 lower = 0; lower < g; lower++) {
        at += (u32)(k->warp >> (8 * lower)) & 255u;
    }
    return at;
}

/* The same, for one more column: 32 tests of bits and as many places are found again there, which
 * costs less than to hold them. Held, they do not fit the registers, and ptxas 13.0 takes one of
 * them for another: it unpacks neighbouring bits together (R2P), and lost two of 32 on an H200. */
FN struct kept kept_anew(const struct kept *k) {
    struct kept again = *k;
    again.bits = anew_u32(k->bits);
    again.at = anew_u32(k->at);
    return again;
}

/* --- elements --- */

/* Kept elements of a group to the tile's list from `at` on. */
#define KEPT_STAGE(name, words)                                               \
    FN void kept_stage##name(u32 *s_list, const u32 *raw, u32 bits, u32 at) { \
        UNROLL for (u32 j = 0; j < 4; j++) {                                  \
            if (bits >> j & 1u) {                                             \
                UNROLL for (u32 w = 0; w < (words); w++) {                    \
                    s_list[at * (words) + w] = raw[j * (words) + w];          \
                }                                                             \
                at++;                                                         \
            }                                                                 \
        }                                                                     \
    }
KEPT_STAGE(4, 1)
KEPT_STAGE(8, 2)
KEPT_STAGE(16, 4)
#undef KEPT_STAGE
FN void kept_stage1(u32 *s_list, const u32 *raw, u32 bits, u32 at) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (bits >> j & 1u) {
            ((u8 *)s_list)[at] = (u8)(raw[0] >> (8 * j));
            at++;
        }
    }
}

#define KEPT_WORDS(bytes) ((bytes) == 1 ? 1 : (bytes)) /* of a group */

/* The groups of a thread's part of a tile of `in`, read without looking at bounds where the tile is
 * `whole`; and those that are kept to the list. */
#define KEPT_COLUMN(bytes)                                                                       \
    FN void kept_read##bytes(u32(*raw)[KEPT_WORDS(bytes)], const void *in, i64 first, i64 count, \
                             u32 whole) {                                                        \
        if (whole) {                                                                             \
            const u8 *p = (const u8 *)in + first * (bytes);                                      \
            UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {                                       \
                rows4_read##bytes(raw[g], p + g * 128u * (bytes), 0, 4);                         \
            }                                                                                    \
        } else {                                                                                 \
            UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {                                       \
                rows4_read##bytes(raw[g], in, KEPT_GROUP_ROW(first, g), count);                  \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    FN void kept_list##bytes(u32 *s_list, const struct kept *of,                                 \
                             const u32(*raw)[KEPT_WORDS(bytes)]) {                               \
        struct kept k = kept_anew(of);                                                           \
        UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {                                           \
            kept_stage##bytes(s_list, raw[g], kept_bits(&k, g), kept_at(&k, g));                 \
        }                                                                                        \
    }
KEPT_COLUMN(1)
KEPT_COLUMN(4)
KEPT_COLUMN(8)
KEPT_COLUMN(16)
#undef KEPT_COLUMN

/* The list to the output, as much as there is room for: whole vectors but at the ends. */
#define KEPT_WRITE(bytes, type)                                                                   \
    FN void b_kept_write##bytes(const type *s_list, type *out, u64 base, u32 rows) {              \
        u32 skew = (u32)base & (16u / (bytes)-1u);                                                \
        u32 end = rows + skew;                                                                    \
        type *to = out + (base - skew);                                                           \
        for (u32 at = t_id() * (16u / (bytes)); at < end; at += KEPT_THREADS * (16u / (bytes))) { \
            if (at >= skew && at + 16u / (bytes) <= end) {                                        \
                vec16 v;                                                                          \
                UNROLL for (u32 w = 0; w < 4; w++) {                                              \
                    v.w[w] = list_word##bytes(s_list, at - skew, w);                              \
                }                                                                                 \
                store_once16(to + at, v);                                                         \
            } else {                                                                              \
                for (u32 i = at < skew ? skew : at; i < at + 16u / (bytes) && i < end; i++) {     \
                    to[i] = s_list[i - skew];                                                     \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }
/* Word w of the vector that starts with element i. */
FN u32 list_word4(const u32 *s_list, u32 i, u32 w) {
    return s_list[i + w];
}
FN u32 list_word8(const u64 *s_list, u32 i, u32 w) {
    return ((const u32 *)s_list)[2u * i + w];
}
FN u32 list_word1(const u8 *s_list, u32 i, u32 w) {
    const u8 *p = s_list + i + 4u * w;
    return p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}
KEPT_WRITE(1, u8)
KEPT_WRITE(4, u32)
KEPT_WRITE(8, u64)
#undef KEPT_WRITE
FN void b_kept_write(const u32 *s_list, void *out, u64 base, u32 total, i64 room, u32 bytes) {
    i64 left = room - (i64)base;
    u32 rows = left >= (i64)total ? total : left > 0 ? (u32)left : 0u;
    if (bytes == 1u) {
        b_kept_write1((const u8 *)s_list, (u8 *)out, base, rows);
    } else if (bytes == 4u) {
        b_kept_write4(s_list, (u32 *)out, base, rows);
    } else if (bytes == 8u) {
        b_kept_write8((const u64 *)s_list, (u64 *)out, base, rows);
    } else {
        for (u32 i = t_id(); i < rows; i += KEPT_THREADS) {
            store_once16((u8 *)out + (base + i) * 16u, load16(s_list + 4u * i));
        }
    }
}

#endif
