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

#include "defs/fn_table.h"

#include "defs/fn_order.h"
#include "defs/kprim.h"

#define PASTE(x, y) x##y
#define PASTED(x, y) PASTE(x, y)
#define OF_KEY(name) PASTED(name, KEY_BYTES) /* the one for the key's width */
typedef u32 key_raw[KEPT_WORDS(KEY_BYTES)];

/* --- which rows --- */

/* Element j of a group as a word that orders like it; of flags 0 or 1. */
typedef u32 word1;
typedef u32 word4;
typedef u64 word8;
typedef u128 word16;
FN word1 key_word1(const u32 *raw, u32 j, u64 flip) {
    UNUSED_WORD(flip);
    return (raw[0] >> (8 * j) & 255u) != 0u;
}
FN word4 key_word4(const u32 *raw, u32 j, u64 flip) {
    return KEY_FLOAT ? order_f32(raw[j]) : raw[j] ^ (u32)flip;
}
FN word8 key_word8(const u32 *raw, u32 j, u64 flip) {
    return KEY_FLOAT ? order_f64(raw_u64(raw, j)) : raw_u64(raw, j) ^ flip;
}
FN word16 key_word16(const u32 *raw, u32 j, u64 flip) {
    UNUSED_WORD(flip);
    return (u128)raw_u64(raw, 2 * j + 1) << 64 | raw_u64(raw, 2 * j);
}
typedef OF_KEY(word) word;
#define key_word OF_KEY(key_word)

/* A bound, as two words. */
FN word bound_word(const u64 *w) {
    return (word)(KEY_BYTES == 16 ? (u128)w[1] << 64 | w[0] : (u128)w[0]);
}

/* The element before `row`, as a word. */
FN word word_before(const void *by, i64 row, u64 flip) {
    u32 raw[4];
    const u8 *p = (const u8 *)by + (row - 1) * KEY_BYTES;
    raw[0] = *p;
    UNROLL for (u32 j = 0; j < KEY_BYTES / 4; j++) {
        raw[j] = ((const u32 *)p)[j];
    }
    return key_word(raw, 0, flip);
}

/* Four bits each: the rows of the group at `row` whose flag is set; whose word lies in the range,
 * or does not; that differ from the one before them, the first row among them. */
FN u32 keep_flags(const u32 *raw) {
    u32 bits = 0;
    UNROLL for (u32 j = 0; j < 4; j++) {
        bits |= (u32)key_word(raw, j, 0) << j;
    }
    return bits;
}
FN u32 keep_range(const struct kcompact *args, const u32 *raw) {
    u32 bits = 0;
    word lo = bound_word(args->lo);
    word span = bound_word(args->hi) - lo;
    UNROLL for (u32 j = 0; j < 4; j++) {
        bits |= (u32)((word)(key_word(raw, j, args->flip) - lo) <= span) << j;
    }
    return bits ^ (args->negate ? 15u : 0u);
}
FN u32 keep_heads(const struct kcompact *args, const u32 *raw, i64 row, u32 there) {
    u32 bits = row == 0 ? 1u : 0u;
    word last = there && row > 0 ? word_before(args->by, row, args->flip) : (word)0;
    UNROLL for (u32 j = 0; j < 4; j++) {
        word x = key_word(raw, j, args->flip);
        bits |= (u32)(x != last) << j;
        last = x;
    }
    return bits;
}

FN u32 keep_bits(const struct kcompact *args, const u32 *raw, i64 row, u32 whole) {
    u32 there = 15u;
    if (!whole) { /* the last tile */
        i64 left = args->count - row;
        there = left >= 4 ? 15u : left <= 0 ? 0u : (1u << left) - 1u;
    }
    return there & (KEEP == 1   ? keep_flags(raw)
                    : KEEP == 2 ? keep_range(args, raw)
                                : keep_heads(args, raw, row, there));
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
        struct kept k = kept_anew(&t->kept);                                                     \
        UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {                                           \
            if (kept_bits(&k, g)) {                                                              \
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
    struct kept k = kept_anew(&t->kept);
    b_sync();
    UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
        u32 at = kept_at(&k, g);
        UNROLL for (u32 j = 0; j < 4; j++) {
            if (kept_bits(&k, g) >> j & 1u) {
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

/* Where the tile's rows go: tiles before it are asked, or rows are taken from a counter. By all,
 * between barriers. */
FN void look_for_place(const struct kcompact *args, i64 tile, u32 total, u64 *s_base) {
    if (ORDERED && t_id() < 32u) {
        u64 base = w_look_up(args->state, tile, total);
        if (t_id() == 0) {
            *s_base = base;
            if (tile == (args->count - 1) / KEPT_ROWS) {
                *args->total = base + total;
            }
        }
    }
}
FN void tell_total(const struct kcompact *args, i64 tile, u32 total, u64 *s_base) {
    if (ORDERED) {
        look_tell(args->state, tile, total);
    } else {
        *s_base = total ? atom_add_u64(args->total, total) : 0u;
    }
}

KERNEL(k_compact, struct kcompact, KEPT_THREADS) {
    SHARED_BYTES(s_bytes);
    SHARED(u32, s_counts, KEPT_WARPS);
    SHARED(u64, s_base, 1);
    SHARED(u32, s_ticket, 1);
    u32 *s_list = (u32 *)s_bytes;
    key_raw raw[KEPT_GROUPS];
    struct tile_rows t;
    i64 tile = ORDERED ? b_ticket(args.ticket, s_ticket) : t_block();
    u32 whole = (tile + 1) * KEPT_ROWS <= args.count;
    t.kept.first = kept_first(tile * KEPT_ROWS);
    OF_KEY(kept_read)(raw, args.by, t.kept.first, args.count, whole);
    t.kept.bits = 0;
    UNROLL for (u32 g = 0; g < KEPT_GROUPS; g++) {
        i64 row = KEPT_GROUP_ROW(t.kept.first, g);
        t.kept.bits |= keep_bits(&args, raw[g], row, whole) << (4 * g);
    }
    b_kept_places(&t.kept, s_counts);
    if (t_id() == 0) {
        tell_total(&args, tile, t.kept.total, s_base);
    }
    if (COLUMN_0_KEY) {
        OF_KEY(kept_list)(s_list, &t.kept, (const key_raw *)raw);
    }
    look_for_place(&args, tile, t.kept.total, s_base);
    b_sync();
    t.base = *s_base;
    if (COLUMN_0_KEY) {
        b_kept_write(s_list, args.out[0], t.base, t.kept.total, args.room, KEY_BYTES);
    }
    COLUMNS
}
