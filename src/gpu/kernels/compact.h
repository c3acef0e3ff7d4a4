/* compact.h: the rows of columns that are kept, side by side; a tile a block.
 *
 * A tile is COMPACT_THREADS x GROUPS groups of four rows; groups of one number are a block's width
 * apart. Their counts, at most 2,048 each, travel through one scan packed into a 64-bit word. What
 * is kept is put together in shared memory and leaves in vectors at the output's own alignment.
 * Where rows go is found by looking back (ORDERED) or by one addition a tile; counts are published
 * before rows are put together, and looked up after. The text before this defines
 *   COMPACT_THREADS, WF_MIN_BLOCKS
 *   KEEP         1 flags, 2 range of words, 3 heads of runs
 *   KEY_BYTES    width of what rows are kept by, KEY_FLOAT whether it is a float
 *   GROUPS       1, 2 or 4
 *   ORDERED
 *   COLUMNS      how many; COLUMN_n_BYTES their widths, 0 = row numbers of 4 bytes, -8 of 8;
 *   COLUMN_0_KEY column 0 is the key itself */
#include "lookback.h"
#include "rows4.h"

#include "defs/kprim.h"

#define COMPACT_WARPS (COMPACT_THREADS / 32)
#define TILE_ROWS ((i64)COMPACT_THREADS * 4 * GROUPS)
#define KEY_WORDS (KEY_BYTES == 1 ? 1 : KEY_BYTES)
#define PASTE(x, y) x##y
#define READ(bytes) PASTE(rows4_read, bytes)
#define STAGE_KEY(bytes) PASTE(stage, bytes)

/* --- which rows --- */

#if KEY_BYTES == 16
typedef u128 word;
#elif KEY_BYTES == 8
typedef u64 word;
#else
typedef u32 word;
#endif

/* Element j of a group as a word that orders like it; raw bits for heads of integers. */
FN word key_word(const u32 *raw, u32 j, u64 flip) {
#if KEY_BYTES == 16
    UNUSED_WORD(flip);
    return (u128)raw_u64(raw, 2 * j + 1) << 64 | raw_u64(raw, 2 * j);
#elif KEY_BYTES == 8
    u64 x = raw_u64(raw, j);
#if KEY_FLOAT
    UNUSED_WORD(flip);
    x = (x << 1) > 0xffe0000000000000ULL ? (u64)I64_MAX : (x << 1) == 0u ? 0u : x;
    return x >> 63 ? ~x : x | 1ULL << 63;
#else
    return x ^ flip;
#endif
#elif KEY_BYTES == 4
    u32 x = raw[j];
#if KEY_FLOAT
    UNUSED_WORD(flip);
    x = (x << 1) > 0xff000000u ? 0x7fffffffu : (x << 1) == 0u ? 0u : x;
    return x >> 31 ? ~x : x | 1u << 31;
#else
    return x ^ (u32)flip;
#endif
#else
    UNUSED_WORD(flip);
    return (raw[0] >> (8 * j) & 255u) != 0u;
#endif
}

FN word wide_word(const u64 *w) {
#if KEY_BYTES == 16
    return (u128)w[1] << 64 | w[0];
#else
    return (word)w[0];
#endif
}

/* The element before `row`, as a word. */
FN word word_before(const void *by, i64 row, u64 flip) {
    u32 raw[4];
    const u8 *p = (const u8 *)by + (row - 1) * KEY_BYTES;
#if KEY_BYTES == 1
    raw[0] = *p;
#else
    UNROLL for (u32 j = 0; j < KEY_BYTES / 4; j++) {
        raw[j] = ((const u32 *)p)[j];
    }
#endif
    return key_word(raw, 0, flip);
}

/* Four bits: the rows of the group at `row` that are kept. */
FN u32 keep_bits(const struct kcompact *args, const u32 *raw, i64 row, u32 whole) {
    u32 bits = 0;
    u32 there = 15u;
    if (!whole) { /* the last tile */
        i64 left = args->count - row;
        there = left >= 4 ? 15u : left <= 0 ? 0u : (1u << left) - 1u;
    }
#if KEEP == 1
    UNROLL for (u32 j = 0; j < 4; j++) {
        bits |= (u32)key_word(raw, j, 0) << j;
    }
#elif KEEP == 2
    word lo = wide_word(args->lo);
    word span = wide_word(args->hi) - lo;
    UNROLL for (u32 j = 0; j < 4; j++) {
        bits |= (u32)((word)(key_word(raw, j, args->flip) - lo) <= span) << j;
    }
    bits ^= args->negate ? 15u : 0u;
#else
    word last = 0;
    if (there && row > 0) {
        last = word_before(args->by, row, args->flip);
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        word x = key_word(raw, j, args->flip);
        bits |= (u32)(x != last) << j;
        last = x;
    }
    bits |= row == 0 ? 1u : 0u;
#endif
    return bits & there;
}

/* --- where they go --- */

/* Packed counts before this thread's, per group; *out_all: the tile's. One barrier. */
FN u64 b_scan_counts(u64 mine, u64 *s_counts, u64 *out_all) {
    u64 upto = mine;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        u64 other = w_up_u64(upto, by);
        upto += t_lane() >= by ? other : 0u;
    }
    if (t_lane() == 31u) {
        s_counts[t_id() >> 5] = upto;
    }
    b_sync();
    u64 before = upto - mine;
    u64 all = 0;
    UNROLL for (u32 w = 0; w < COMPACT_WARPS; w++) {
        u64 count = s_counts[w];
        before += w < t_id() >> 5 ? count : 0u;
        all += count;
    }
    *out_all = all;
    return before;
}

/* Kept elements of a group to the tile's list from `at` on. */
#define STAGE(name, words)                                               \
    FN void stage##name(u32 *s_list, const u32 *raw, u32 bits, u32 at) { \
        UNROLL for (u32 j = 0; j < 4; j++) {                             \
            if (bits >> j & 1u) {                                        \
                UNROLL for (u32 k = 0; k < (words); k++) {               \
                    s_list[at * (words) + k] = raw[j * (words) + k];     \
                }                                                        \
                at++;                                                    \
            }                                                            \
        }                                                                \
    }
STAGE(4, 1)
STAGE(8, 2)
STAGE(16, 4)
#undef STAGE
FN void stage1(u32 *s_list, const u32 *raw, u32 bits, u32 at) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (bits >> j & 1u) {
            ((u8 *)s_list)[at] = (u8)(raw[0] >> (8 * j));
            at++;
        }
    }
}

/* The list to the output, as much as there is room for: whole vectors but at the ends. */
#define WRITE_LIST(bytes, type)                                                               \
    FN void b_write##bytes(const type *s_list, type *out, u64 base, u32 total, i64 room) {    \
        i64 left = room - (i64)base;                                                          \
        u32 fits = left >= (i64)total ? total : left > 0 ? (u32)left : 0u;                    \
        u32 skew = (u32)base & (16u / (bytes)-1u);                                            \
        u32 end = fits + skew;                                                                \
        type *to = out + (base - skew);                                                       \
        for (u32 at = t_id() * (16u / (bytes)); at < end;                                     \
             at += COMPACT_THREADS * (16u / (bytes))) {                                       \
            if (at >= skew && at + 16u / (bytes) <= end) {                                    \
                vec16 v;                                                                      \
                UNROLL for (u32 k = 0; k < 4; k++) {                                          \
                    v.w[k] = list_word##bytes(s_list, at - skew, k);                          \
                }                                                                             \
                store_once16(to + at, v);                                                     \
            } else {                                                                          \
                for (u32 i = at < skew ? skew : at; i < at + 16u / (bytes) && i < end; i++) { \
                    to[i] = s_list[i - skew];                                                 \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
    }
/* Word k of the vector that starts with element i. */
FN u32 list_word4(const u32 *s_list, u32 i, u32 k) {
    return s_list[i + k];
}
FN u32 list_word8(const u64 *s_list, u32 i, u32 k) {
    return ((const u32 *)s_list)[2u * i + k];
}
FN u32 list_word1(const u8 *s_list, u32 i, u32 k) {
    const u8 *p = s_list + i + 4u * k;
    return p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}
WRITE_LIST(1, u8)
WRITE_LIST(4, u32)
WRITE_LIST(8, u64)
#undef WRITE_LIST
FN void b_write_list(const u32 *s_list, void *out, u64 base, u32 total, i64 room, u32 bytes) {
    if (bytes == 1u) {
        b_write1((const u8 *)s_list, (u8 *)out, base, total, room);
    } else if (bytes == 4u) {
        b_write4(s_list, (u32 *)out, base, total, room);
    } else if (bytes == 8u) {
        b_write8((const u64 *)s_list, (u64 *)out, base, total, room);
    } else {
        i64 left = room - (i64)base;
        u32 fits = left >= (i64)total ? total : left > 0 ? (u32)left : 0u;
        for (u32 i = t_id(); i < fits; i += COMPACT_THREADS) {
            store16((u8 *)out + (base + i) * 16u, load16(s_list + 4u * i));
        }
    }
}

struct tile_rows {
    i64 first;        /* row of this thread's first group */
    u32 bits[GROUPS]; /* kept rows of each group */
    u32 at[GROUPS];   /* where they go within the tile */
    u32 total;
    u64 base;
};

#define GROUP_ROW(t, g) ((t)->first + (i64)(g)*COMPACT_THREADS * 4)

/* A column of 4 * words bytes that is not the key. Starts and ends with a barrier. */
#define COLUMN(bytes)                                                                            \
    FN void b_column##bytes(const struct kcompact *args, const struct tile_rows *t, u32 *s_list, \
                            const void *in, void *out) {                                         \
        u32 raw[GROUPS][(bytes) == 1 ? 1 : (bytes)];                                             \
        UNROLL for (u32 g = 0; g < GROUPS; g++) {                                                \
            if (t->bits[g]) {                                                                    \
                rows4_read##bytes(raw[g], in, GROUP_ROW(t, g), args->count);                     \
            }                                                                                    \
        }                                                                                        \
        b_sync();                                                                                \
        UNROLL for (u32 g = 0; g < GROUPS; g++) {                                                \
            if (t->bits[g]) {                                                                    \
                stage##bytes(s_list, raw[g], t->bits[g], t->at[g]);                              \
            }                                                                                    \
        }                                                                                        \
        b_sync();                                                                                \
        b_write_list(s_list, out, t->base, t->total, args->room, bytes);                         \
    }
COLUMN(1)
COLUMN(4)
COLUMN(8)
COLUMN(16)
#undef COLUMN

/* Row numbers. */
FN void b_numbers(const struct kcompact *args, const struct tile_rows *t, u32 *s_list, void *out,
                  u32 bytes) {
    b_sync();
    UNROLL for (u32 g = 0; g < GROUPS; g++) {
        u32 at = t->at[g];
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (t->bits[g] >> j & 1u) {
                u64 row = (u64)(GROUP_ROW(t, g) + (i64)j);
                if (bytes == 8u) {
                    ((u64 *)s_list)[at] = row;
                } else {
                    s_list[at] = (u32)row;
                }
                at++;
            }
        }
    }
    b_sync();
    b_write_list(s_list, out, t->base, t->total, args->room, bytes);
}

#define COLUMN_AT(no, bytes) b_column##bytes(&args, &t, s_list, args.in[no], args.out[no]);
#define NUMBERS_AT(no, bytes) b_numbers(&args, &t, s_list, args.out[no], bytes);

FN void key_read(u32 (*raw)[KEY_WORDS], const struct kcompact *args, i64 tile) {
    i64 first = tile * TILE_ROWS + (i64)t_id() * 4;
    UNROLL for (u32 g = 0; g < GROUPS; g++) {
        i64 row = first + (i64)g * COMPACT_THREADS * 4;
        READ(KEY_BYTES)(raw[g], args->by, row, args->count);
    }
}

/* Which rows of the tile are kept and where they go within it. One barrier. */
FN void b_place_rows(struct tile_rows *t, const struct kcompact *args, const u32 (*raw)[KEY_WORDS],
                     i64 tile, u64 *s_counts) {
    u64 counts = 0;
    u64 all = 0;
    u32 whole = (tile + 1) * TILE_ROWS <= args->count;
    t->first = tile * TILE_ROWS + (i64)t_id() * 4;
    UNROLL for (u32 g = 0; g < GROUPS; g++) {
        t->bits[g] = keep_bits(args, raw[g], GROUP_ROW(t, g), whole);
        counts |= (u64)bits_set_u32(t->bits[g]) << (16 * g);
    }
    u64 before = b_scan_counts(counts, s_counts, &all);
    t->total = 0;
    UNROLL for (u32 g = 0; g < GROUPS; g++) {
        t->at[g] = t->total + ((u32)(before >> (16 * g)) & 65535u);
        t->total += (u32)(all >> (16 * g)) & 65535u;
    }
}

KERNEL(k_compact, struct kcompact, COMPACT_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u64, s_counts, COMPACT_WARPS);
    SHARED(u64, s_base, 1);
    u32 *s_list = (u32 *)s_bytes;
    u32 raw[GROUPS][KEY_WORDS];
    struct tile_rows t;
#if ORDERED
    SHARED(u32, s_ticket, 1);
    i64 tile = b_ticket(args.ticket, s_ticket);
#else
    i64 tile = t_block();
#endif
    key_read(raw, &args, tile);
    b_place_rows(&t, &args, (const u32(*)[KEY_WORDS])raw, tile, s_counts);
    if (t_id() == 0) {
#if ORDERED
        look_tell(args.state, tile, t.total);
#else
        *s_base = t.total ? atom_add_u64(args.total, t.total) : 0u;
#endif
    }
#if COLUMN_0_KEY
    UNROLL for (u32 g = 0; g < GROUPS; g++) {
        STAGE_KEY(KEY_BYTES)(s_list, raw[g], t.bits[g], t.at[g]);
    }
#endif
#if ORDERED
    if (t_id() < 32u) {
        u64 base = w_look_up(args.state, tile, t.total);
        if (t_id() == 0) {
            *s_base = base;
            if (tile == (args.count - 1) / TILE_ROWS) {
                *args.total = base + t.total;
            }
        }
    }
#endif
    b_sync();
    t.base = *s_base;
#if COLUMN_0_KEY
    b_write_list(s_list, args.out[0], t.base, t.total, args.room, KEY_BYTES);
#endif
    COLUMNS
}
