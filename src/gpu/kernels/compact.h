/* compact.h: the rows of columns that are kept, side by side; a tile a block (kept.h).
 *
 * Where a tile's rows go is found by looking back (ORDERED) or by one addition; counts are
 * published before rows are put together, and looked up after. The text before this defines
 *   KEPT_THREADS, KEPT_GROUPS, WF_MIN_BLOCKS
 *   KEEP         1 flags, 2 range of words, 3 heads of runs
 *   KEY_BYTES    width of what rows are kept by, KEY_FLOAT whether it is a float
 *   ORDERED
 *   COLUMNS      what is written beside the key: COLUMN_AT or NUMBERS_AT (number, bytes) of each
 *   COLUMN_0_KEY column 0 is the key itself */
#include "kept.h"
#include "lookback.h"

#include "defs/kprim.h"

#define PASTE(x, y) x##y
#define READ_KEY(bytes) PASTE(kept_read, bytes)
#define LIST_KEY(bytes) PASTE(kept_list, bytes)
typedef u32 key_raw[KEPT_WORDS(KEY_BYTES)];

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

/* --- columns --- */

struct tile_rows {
    struct kept kept;
    u64 base; /* of the tile in the output */
};

/* A column that is not the key. Starts and ends with a barrier. */
#define COLUMN(bytes)                                                                            \
    FN void b_column##bytes(const struct kcompact *args, const struct tile_rows *t, u32 *s_list, \
                            const void *in, void *out) {                                         \
        u32 raw[KEPT_GROUPS][KEPT_WORDS(bytes)];                                                 \
        UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {                                           \
            if (kept_bits(&t->kept, g)) {                                                        \
                rows4_read##bytes(raw[g], in, KEPT_GROUP_ROW(t->kept.first, g), args->count);    \
            }                                                                                    \
        }                                                                                        \
        b_sync();                                                                                \
        kept_list##bytes(s_list, &t->kept, (const u32(*)[KEPT_WORDS(bytes)])raw);                \
        b_sync();                                                                                \
        b_kept_write(s_list, out, t->base, t->kept.total, args->room, bytes);                    \
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
    UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
        u32 at = kept_at(&t->kept, g);
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (kept_bits(&t->kept, g) >> j & 1u) {
                u64 row = (u64)(KEPT_GROUP_ROW(t->kept.first, g) + (i64)j);
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
    b_kept_write(s_list, out, t->base, t->kept.total, args->room, bytes);
}

#define COLUMN_AT(no, bytes) b_column##bytes(&args, &t, s_list, args.in[no], args.out[no]);
#define NUMBERS_AT(no, bytes) b_numbers(&args, &t, s_list, args.out[no], bytes);

KERNEL(k_compact, struct kcompact, KEPT_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_counts, KEPT_WARPS);
    SHARED(u64, s_base, 1);
    u32 *s_list = (u32 *)s_bytes;
    key_raw raw[KEPT_GROUPS];
    struct tile_rows t;
#if ORDERED
    SHARED(u32, s_ticket, 1);
    i64 tile = b_ticket(args.ticket, s_ticket);
#else
    i64 tile = t_block();
#endif
    u32 whole = (tile + 1) * KEPT_ROWS <= args.count;
    t.kept.first = kept_first(tile * KEPT_ROWS);
    READ_KEY(KEY_BYTES)(raw, args.by, t.kept.first, args.count, whole);
    t.kept.bits = 0;
    UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
        i64 row = KEPT_GROUP_ROW(t.kept.first, g);
        t.kept.bits |= keep_bits(&args, raw[g], row, whole) << (4 * g);
    }
    b_kept_places(&t.kept, s_counts);
    if (t_id() == 0) {
#if ORDERED
        look_tell(args.state, tile, t.kept.total);
#else
        *s_base = t.kept.total ? atom_add_u64(args.total, t.kept.total) : 0u;
#endif
    }
#if COLUMN_0_KEY
    LIST_KEY(KEY_BYTES)(s_list, &t.kept, (const key_raw *)raw);
#endif
#if ORDERED
    if (t_id() < 32u) {
        u64 base = w_look_up(args.state, tile, t.kept.total);
        if (t_id() == 0) {
            *s_base = base;
            if (tile == (args.count - 1) / KEPT_ROWS) {
                *args.total = base + t.kept.total;
            }
        }
    }
#endif
    b_sync();
    t.base = *s_base;
#if COLUMN_0_KEY
    b_kept_write(s_list, args.out[0], t.base, t.kept.total, args.room, KEY_BYTES);
#endif
    COLUMNS
}
