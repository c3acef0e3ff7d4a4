/* split_rows.h: rows of a variable brought together by key, before a table that no cache holds is
 * visited in the order of its places.
 *
 * A row's part is the upper bits of the place that its key has in the table: of the key itself where
 * keys are places, else of its hash. One read counts the rows of each part; then a block ranks a
 * tile's rows by adding to its parts' counters in shared memory, takes room for each by one addition
 * to the part's cursor, and brings column after column through shared memory, so that rows of a part
 * are written side by side. The order within a part is free. */
#define WF_MIN_BLOCKS 2
#include "sums.h"

#include "defs/fn_table.h"

#include "defs/ksort.h"

#define PARTS_OWN (SPLIT_PARTS_MOST / SPLIT_ROWS_THREADS)
#define PARTS_ALIKE 16u /* lanes with the part of the first: they count together */

FN u32 part_of(const struct ksplit_rows *a, i64 key) {
    u64 number = (u64)key - (u64)a->key_lo;
    u64 place = a->by == SPLIT_BY_KEY    ? number
                : a->by == SPLIT_BY_PAIR ? hash_32((u32)number)
                                         : hash_64((u64)key);
    return (u32)(place >> a->shift) & a->mask;
}

/* A row more of its part; what the part had before it. Of keys that are mostly the same those of a
 * warp add up first. All lanes come here. */
FN u32 w_count_part(u32 *s_counts, u32 part, u32 there) {
    u32 first = w_from_u32(part, 0);
    u32 same = w_ballot(there && part == first);
    if (bits_set_u32(same) < PARTS_ALIKE || !(same & 1u)) {
        return there ? atom_add_u32(&s_counts[part], 1) : 0u;
    }
    u32 before = 0;
    if (t_lane() == 0) {
        before = atom_add_u32(&s_counts[part], bits_set_u32(same));
    }
    before = w_from_u32(before, 0) + bits_set_u32(same & ((1u << t_lane()) - 1u));
    if (there && !(same >> t_lane() & 1u)) {
        before = atom_add_u32(&s_counts[part], 1);
    }
    return before;
}

KERNEL(k_split_rows_count, struct ksplit_rows, SPLIT_ROWS_THREADS) {
    SHARED(u32, s_counts, SPLIT_PARTS_MOST);
    for (u32 d = t_id(); d < SPLIT_PARTS_MOST; d += SPLIT_ROWS_THREADS) {
        s_counts[d] = 0;
    }
    b_sync();
    for (i64 first = (i64)t_block() * SPLIT_ROWS_TILE; first < args.rows;
         first += (i64)t_blocks() * SPLIT_ROWS_TILE) {
        i64 key[SPLIT_ROWS_ITEMS];
        UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {
            i64 row = first + i * SPLIT_ROWS_THREADS + t_id();
            key[i] = row < args.rows ? args.key[row] : 0;
        }
        UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {
            i64 row = first + i * SPLIT_ROWS_THREADS + t_id();
            (void)w_count_part(s_counts, part_of(&args, key[i]), row < args.rows);
        }
    }
    b_sync();
    for (u32 d = t_id(); d <= args.mask; d += SPLIT_ROWS_THREADS) {
        if (s_counts[d]) {
            atom_add_u64(&args.cursors[d], s_counts[d]);
        }
    }
}

/* One block: counts become the parts' first places. */
KERNEL(k_split_rows_places, struct ksplit_rows, SPLIT_ROWS_THREADS) {
    SHARED(u64, s_sums, SPLIT_ROWS_THREADS / 32);
    u64 own[PARTS_OWN];
    u64 sum = 0;
    UNROLL for (u32 j = 0; j < PARTS_OWN; j++) {
        own[j] = args.cursors[t_id() * PARTS_OWN + j];
        sum += own[j];
    }
    u64 all;
    u64 at = b_sum_before_u64(sum, SPLIT_ROWS_THREADS, s_sums, &all);
    UNROLL for (u32 j = 0; j < PARTS_OWN; j++) {
        args.cursors[t_id() * PARTS_OWN + j] = at;
        at += own[j];
    }
}

/* A column of words of this type, `step` of them a row, of which the one at `at` moves. */
#define MOVE_COLUMN(type, step, at)                                                            \
    {                                                                                          \
        const type *from = (const type *)(const void *)col.from + (at);                        \
        type *to = (type *)(void *)col.to + (at);                                              \
        type *s_words = (type *)(void *)s_room;                                                \
        type held[SPLIT_ROWS_ITEMS];                                                           \
        UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {                                    \
            u32 row = i * SPLIT_ROWS_THREADS + t_id();                                         \
            held[i] = row < rows ? from[(first + row) * (step)] : (type)0;                     \
        }                                                                                      \
        UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {                                    \
            if (i * SPLIT_ROWS_THREADS + t_id() < rows) {                                      \
                s_words[place[i]] = held[i];                                                   \
            }                                                                                  \
        }                                                                                      \
        b_sync();                                                                              \
        UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {                                    \
            u32 row = i * SPLIT_ROWS_THREADS + t_id();                                         \
            if (row < rows) {                                                                  \
                to[(i64)(s_base[s_part[row]] + row) * (step)] = s_words[row];                  \
            }                                                                                  \
        }                                                                                      \
        b_sync();                                                                              \
    }

KERNEL(k_split_rows, struct ksplit_rows, SPLIT_ROWS_THREADS) {
    SHARED(u32, s_counts, SPLIT_PARTS_MOST);
    SHARED(u64, s_base, SPLIT_PARTS_MOST); /* added to a place in the tile: its place in the output */
    SHARED(u64, s_room, SPLIT_ROWS_TILE);
    SHARED(u16, s_part, SPLIT_ROWS_TILE); /* of the row that comes to a place */
    SHARED(u32, s_sums, SPLIT_ROWS_THREADS / 32);
    i64 first = (i64)t_block() * SPLIT_ROWS_TILE;
    u32 rows = args.rows - first < SPLIT_ROWS_TILE ? (u32)(args.rows - first) : SPLIT_ROWS_TILE;
    u32 place[SPLIT_ROWS_ITEMS];
    for (u32 d = t_id(); d < SPLIT_PARTS_MOST; d += SPLIT_ROWS_THREADS) {
        s_counts[d] = 0;
    }
    b_sync();
    i64 key[SPLIT_ROWS_ITEMS];
    UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {
        u32 row = i * SPLIT_ROWS_THREADS + t_id();
        key[i] = row < rows ? args.key[first + row] : 0;
    }
    UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {
        u32 there = i * SPLIT_ROWS_THREADS + t_id() < rows;
        u32 part = part_of(&args, key[i]);
        place[i] = part << 16 | w_count_part(s_counts, part, there);
    }
    b_sync();
    u32 own[PARTS_OWN];
    u32 sum = 0;
    UNROLL for (u32 j = 0; j < PARTS_OWN; j++) {
        own[j] = s_counts[t_id() * PARTS_OWN + j];
        sum += own[j];
    }
    u32 all;
    u32 at = b_sum_before_u32(sum, SPLIT_ROWS_THREADS, s_sums, &all);
    UNROLL for (u32 j = 0; j < PARTS_OWN; j++) {
        u32 part = t_id() * PARTS_OWN + j;
        u64 base = own[j] ? atom_add_u64(&args.cursors[part], own[j]) : 0u;
        s_counts[part] = at;
        s_base[part] = base - at;
        at += own[j];
    }
    b_sync();
    UNROLL for (u32 i = 0; i < SPLIT_ROWS_ITEMS; i++) {
        u32 part = place[i] >> 16;
        place[i] = s_counts[part] + (place[i] & 0xffffu);
        if (i * SPLIT_ROWS_THREADS + t_id() < rows) {
            s_part[place[i]] = (u16)part;
        }
    }
    b_sync();
    NO_UNROLL for (u32 c = 0; c < args.col_count; c++) {
        const struct ksplit_col col = args.cols[c];
        if (col.width == 8u) {
            MOVE_COLUMN(u64, 1, 0)
        } else if (col.width == 4u) {
            MOVE_COLUMN(u32, 1, 0)
        } else if (col.width == 1u) {
            MOVE_COLUMN(u8, 1, 0)
        } else {
            MOVE_COLUMN(u64, 2, 0)
            MOVE_COLUMN(u64, 2, 1)
        }
    }
}
