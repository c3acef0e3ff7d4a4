/* split_loose.h: split by partition number where the order within a partition is free.
 *
 * A block ranks its tile's elements by adding to their digits' counters in shared memory, takes
 * room for each digit by one addition to the digit's cursor, sorts the tile in shared memory and
 * writes it out in runs. No tile waits for another, and tiles are as large as shared memory allows,
 * so that runs are long. Up to 11 bits are one pass. More are two, the upper bits first: the second
 * pass works within the parts of the first, each cut into tiles of its own, after a read that
 * counts their digits. Where most of a warp meets in one counter lanes find each other first.
 *
 * Beside what order.h wants the text defines RADIX_BITS, SPLIT_THREADS, SPLIT_ITEMS (elements per
 * thread, a multiple of 4), PAYLOAD1 and PAYLOAD2 (bytes, 0 = none), and PLACE_BYTES (4 where all
 * places are below 2^32, else 8). */
#include "split_count.h"

#define SPLIT_TILE (SPLIT_THREADS * SPLIT_ITEMS)
/* Digits of one thread. */
#define SPLIT_OWN ((RADIX + SPLIT_THREADS - 1u) / SPLIT_THREADS)
#define LOOSE_LOOKS 4   /* elements of a thread looked at for skew */
#define LOOSE_ALIKE 24u /* lanes that met at these looks: more is skew */
#define COUNT_AHEAD 8

typedef WORD_OF(PLACE_BYTES) place_word;

/* --- places --- */

/* A block per part of the pass before, or one: counts become cursors. */
KERNEL(k_loose_bins, struct kloose_bins, SPLIT_COUNT_THREADS) {
    SHARED(u64, s_sums, SPLIT_COUNT_THREADS / 32);
    SHARED(u64, s_tiles, SPLIT_COUNT_THREADS / 32);
    u64 *counts = args.counts + (i64)t_block() * args.digits;
    u32 own = (args.digits + SPLIT_COUNT_THREADS - 1u) / SPLIT_COUNT_THREADS;
    u64 sum = 0;
    u64 tiles = 0;
    for (u32 j = 0; j < own; j++) {
        u32 d = t_id() * own + j;
        u64 n = d < args.digits ? counts[d] : 0;
        sum += n;
        tiles += (n + args.tile_rows - 1) / args.tile_rows;
    }
    u64 all;
    u64 at = b_sum_before_u64(sum, SPLIT_COUNT_THREADS, s_sums, &all);
    u64 tile = b_sum_before_u64(tiles, SPLIT_COUNT_THREADS, s_tiles, &all);
    at += args.coarse ? args.coarse[t_block()] : 0;
    for (u32 j = 0; j < own; j++) {
        u32 d = t_id() * own + j;
        i64 part = (i64)t_block() * args.digits + d;
        if (d < args.digits) {
            u64 n = counts[d];
            counts[d] = at;
            if (args.starts && part <= args.parts) {
                args.starts[part] = at;
            }
            if (args.tiles) {
                args.tiles[d] = tile;
            }
            at += n;
            tile += (n + args.tile_rows - 1) / args.tile_rows;
            u32 last = d == args.digits - 1u;
            if (last && args.tiles) {
                args.tiles[args.digits] = tile;
            }
            if (last && t_block() == t_blocks() - 1u && args.starts && part + 1 == args.parts) {
                args.starts[part + 1] = at;
            }
        }
    }
}

/* Counts of fine digits added up to those of the coarse ones; a warp each. */
KERNEL(k_loose_fold, struct kloose_fold, SPLIT_COUNT_THREADS) {
    i64 part = ((i64)t_block() * SPLIT_COUNT_THREADS + t_id()) >> 5;
    u64 sum = 0;
    for (u32 d = t_lane(); part < args.parts && d < args.digits; d += 32) {
        sum += args.counts[part * args.digits + d];
    }
    UNROLL for (u32 mask = 16; mask; mask >>= 1) {
        sum += w_xor_u64(sum, mask);
    }
    if (part < args.parts && t_lane() == 0) {
        args.out[part] = sum;
    }
}

/* --- tiles of the second pass --- */

struct loose_tile {
    i64 first, part;
    u32 rows;
};

/* The part a tile lies in. */
FN i64 part_of_tile(const struct kloose *a, i64 tile) {
    i64 low = 0;
    i64 high = a->coarse_parts;
    while (low + 1 < high) { /* tiles[low] <= tile < tiles[high] */
        i64 mid = (low + high) >> 1;
        if (a->tiles[mid] <= (u64)tile) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

FN struct loose_tile tile_at(const struct kloose *a, i64 tile) {
    struct loose_tile t;
    i64 end = a->count;
    t.part = 0;
    t.first = tile * SPLIT_TILE;
    if (a->coarse) {
        t.part = part_of_tile(a, tile);
        t.first = (i64)a->coarse[t.part] + (tile - (i64)a->tiles[t.part]) * SPLIT_TILE;
        end = (i64)a->coarse[t.part + 1];
    }
    t.rows = end - t.first < SPLIT_TILE ? (u32)(end - t.first) : SPLIT_TILE;
    return t;
}

FN void b_add_counts(const struct kloose *a, i64 part, u32 *s_counts) {
    u64 *counts = a->cursors + part * (i64)(a->mask + 1u);
    b_sync();
    for (u32 d = t_id(); d <= a->mask; d += t_count()) {
        u32 n = s_counts[d];
        s_counts[d] = 0;
        if (n) {
            atom_add_u64(&counts[d], n);
        }
    }
    b_sync();
}

/* Counts digits within the parts of the first pass: a block takes tiles that follow each other, and
 * adds up its counts when it leaves a part. */
KERNEL(k_loose_count, struct kloose, SPLIT_COUNT_THREADS) {
    SHARED(u32, s_counts, RADIX);
    const K *keys = (const K *)args.keys;
    i64 tiles = (i64)args.tiles[args.coarse_parts];
    i64 per = (tiles + t_blocks() - 1) / t_blocks();
    i64 end = (t_block() + 1) * per < tiles ? (t_block() + 1) * per : tiles;
    i64 part = -1;
    for (u32 d = t_id(); d < RADIX; d += t_count()) {
        s_counts[d] = 0;
    }
    b_sync();
    for (i64 tile = t_block() * per; tile < end; tile++) {
        struct loose_tile t = tile_at(&args, tile);
        if (part >= 0 && part != t.part) {
            b_add_counts(&args, part, s_counts);
        }
        part = t.part;
        for (u32 from = t_id(); from < t.rows; from += COUNT_AHEAD * SPLIT_COUNT_THREADS) {
            K key[COUNT_AHEAD];
            u32 digit = 0;
            u32 n = 0;
            UNROLL for (u32 j = 0; j < COUNT_AHEAD; j++) {
                u32 at = from + j * SPLIT_COUNT_THREADS;
                key[j] = at < t.rows ? keys[t.first + at] : (K)0;
            }
            UNROLL for (u32 j = 0; j < COUNT_AHEAD;
                        j++) { /* neighbours together, as in count_vecs */
                if (from + j * SPLIT_COUNT_THREADS < t.rows) {
                    u32 next = key_part(key[j], &args.parts, args.shift) & args.mask;
                    if (n && next != digit) {
                        atom_add_u32(&s_counts[digit], n);
                        n = 0;
                    }
                    digit = next;
                    n++;
                }
            }
            atom_add_u32(&s_counts[digit], n);
        }
    }
    if (part >= 0) {
        b_add_counts(&args, part, s_counts);
    }
}

/* --- a pass --- */

FN u32 vec_4(vec16 v, u32 j) {
    return v.w[j];
}
FN u64 vec_8(vec16 v, u32 j) {
    return (u64)v.w[2 * j + 1] << 32 | v.w[2 * j];
}
#define VEC_OF(bytes) ORDER_PASTE(vec_, bytes)

/* A thread's elements of an array; which ones does not matter as long as arrays agree, and arrays
 * of different widths do where all read four neighbours at a time. */
#define READ_LOOSE(bytes, from, held)                                       \
    WORD_OF(bytes) held[SPLIT_ITEMS];                                       \
    {                                                                       \
        const WORD_OF(bytes) *p = (const WORD_OF(bytes) *)(from) + t.first; \
        if (whole) {                                                        \
            UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i += 16 / bytes) {      \
                u32 at = (i / 4 * SPLIT_THREADS + t_id()) * 4u + i % 4;     \
                vec16 v = load16(p + at);                                   \
                UNROLL for (u32 j = 0; j < 16 / bytes; j++) {               \
                    held[i + j] = VEC_OF(bytes)(v, j);                      \
                }                                                           \
            }                                                               \
        } else {                                                            \
            UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {                  \
                u32 at = i * SPLIT_THREADS + t_id();                        \
                held[i] = at < t.rows ? p[at] : (WORD_OF(bytes))0;          \
            }                                                               \
        }                                                                   \
    }

/* The digit of element i; one that is not there has RADIX. */
FN u32 loose_digit(const struct kloose *a, K key, u32 i, u32 rows) {
    u32 digit = key_part(key, &a->parts, a->shift) & a->mask;
    return rows == SPLIT_TILE || i * SPLIT_THREADS + t_id() < rows ? digit : RADIX;
}

/* By lanes that find each other, a ballot per bit. */
FN u32 w_rank_alike(u32 digit, u32 *s_counts) {
    u32 same = 0xffffffffu;
    UNROLL for (u32 b = 0; b <= RADIX_BITS; b++) {
        u32 set = w_ballot((i32)(digit >> b & 1u));
        same &= digit >> b & 1u ? set : ~set;
    }
    u32 first = first_set_u32(same);
    u32 before = 0;
    if (t_lane() == first) {
        before = atom_add_u32(&s_counts[digit], bits_set_u32(same));
    }
    before = w_from_u32(before, first);
    return before + bits_set_u32(same & ((1u << t_lane()) - 1u));
}

/* Ranks among the tile's elements of a digit, two to a word. */
FN void w_rank_all(const struct kloose *a, const K *key, u32 *place, u32 rows, u32 *s_counts) {
    u32 alike = 0;
    UNROLL for (u32 i = 0; i < LOOSE_LOOKS; i++) {
        u32 digit = loose_digit(a, key[i], i, rows);
        alike += bits_set_u32(w_ballot(digit == w_from_u32(digit, 0)));
    }
    if (alike > LOOSE_ALIKE) {
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            u32 rank = w_rank_alike(loose_digit(a, key[i], i, rows), s_counts);
            place[i / 2] = i % 2 ? place[i / 2] | rank << 16 : rank;
        }
    } else {
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            u32 rank = atom_add_u32(&s_counts[loose_digit(a, key[i], i, rows)], 1);
            place[i / 2] = i % 2 ? place[i / 2] | rank << 16 : rank;
        }
    }
}

/* Counts become the digits' first places in the tile; s_base[digit] what is added to a place in the
 * tile to have its place in the output. */
FN void b_take_places(u64 *cursors, u32 mask, u32 *s_counts, u32 *s_sums, place_word *s_base) {
    u32 own[SPLIT_OWN];
    u32 all = 0;
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        own[j] = d <= mask ? s_counts[d] : 0;
        all += own[j];
    }
    u32 total;
    u32 at = b_sum_before_u32(all, SPLIT_THREADS, s_sums, &total);
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        if (d <= mask) {
            u64 base = own[j] ? atom_add_u64(&cursors[d], own[j]) : 0;
            s_counts[d] = at;
            s_base[d] = (place_word)(base - at);
        }
        at += own[j];
    }
    if (t_id() == 0) {
        s_counts[RADIX] = total; /* what is not there goes last */
    }
    b_sync();
}

KERNEL(k_loose, struct kloose, SPLIT_THREADS) {
    SHARED(u32, s_sums, 32);
    SHARED_BYTES(s_room); /* elements, array by array; bases; counts */
    K *s_keys = (K *)(void *)s_room;
    u8 *s_rest = s_room + (u32)(SPLIT_TILE * (KEY_BYTES + PAYLOAD1 + PAYLOAD2));
    place_word *s_base = (place_word *)(void *)s_rest;
    u32 *s_counts = (u32 *)(void *)(s_rest + RADIX * PLACE_BYTES);
    if (!args.tiles || t_block() < args.tiles[args.coarse_parts]) {
        struct loose_tile t = tile_at(&args, t_block());
        u64 *cursors = args.cursors + t.part * (i64)(args.mask + 1u);
        u32 whole = t.rows == SPLIT_TILE && t.first % 4 == 0;
        for (u32 d = t_id(); d <= RADIX; d += SPLIT_THREADS) {
            s_counts[d] = 0;
        }
        READ_LOOSE(KEY_BYTES, args.keys, key)
#if PAYLOAD1
        READ_LOOSE(PAYLOAD1, args.payload1, held1)
        WORD_OF(PAYLOAD1) *s_held1 = (WORD_OF(PAYLOAD1) *)(void *)(s_room + SPLIT_TILE * KEY_BYTES);
        WORD_OF(PAYLOAD1) *out1 = (WORD_OF(PAYLOAD1) *)args.out_payload1;
#endif
#if PAYLOAD2
        READ_LOOSE(PAYLOAD2, args.payload2, held2)
        WORD_OF(PAYLOAD2) *s_held2 =
            (WORD_OF(PAYLOAD2) *)(void *)(s_room + SPLIT_TILE * (KEY_BYTES + PAYLOAD1));
        WORD_OF(PAYLOAD2) *out2 = (WORD_OF(PAYLOAD2) *)args.out_payload2;
#endif
        u32 place[SPLIT_ITEMS / 2];
        b_sync();
        w_rank_all(&args, key, place, t.rows, s_counts);
        b_sync();
        b_take_places(cursors, args.mask, s_counts, s_sums, s_base);
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            u32 rank = place[i / 2] >> i % 2 * 16 & 0xffffu;
            u32 to = s_counts[loose_digit(&args, key[i], i, t.rows)] + rank;
            s_keys[to] = key[i];
#if PAYLOAD1
            s_held1[to] = held1[i];
#endif
#if PAYLOAD2
            s_held2[to] = held2[i];
#endif
        }
        b_sync();
        K *out_keys = (K *)args.out_keys;
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            u32 at = i * SPLIT_THREADS + t_id();
            if (at < t.rows) {
                K next = s_keys[at];
                place_word to = s_base[key_part(next, &args.parts, args.shift) & args.mask] + at;
                out_keys[to] = next;
#if PAYLOAD1
                out1[to] = s_held1[at];
#endif
#if PAYLOAD2
                out2[to] = s_held2[at];
#endif
            }
        }
    }
}
