/* split.h: split by partition number, one pass per digit of it, stable; radix sort is the same.
 *
 * One read counts the digits of all passes. A pass then handles every element once. A block takes a
 * tile by ticket, counts its digits and publishes the counts. Only then it ranks its elements among
 * those of the same digit and sorts the tile in shared memory: when it looks back at earlier tiles,
 * those have published, too. Ranking goes a warp at a time: lanes with equal digits find each other
 * by bits they set in shared memory. Looking back goes digit by digit, a thread each. The tile
 * leaves in runs. A tile's state is a word per digit: two bits that tell what the other thirty
 * count.
 *
 * Beside what order.h wants the text defines RADIX_BITS, SPLIT_THREADS, SPLIT_ITEMS (elements per
 * thread), PAYLOAD1 and PAYLOAD2 (bytes, 0 = none). See decision 0018. */
#include "split_count.h"
#include "lookback.h"

#define SPLIT_TILE (SPLIT_THREADS * SPLIT_ITEMS)
#define SPLIT_WARPS (SPLIT_THREADS / 32)
/* Digits of one thread. */
#define SPLIT_OWN ((RADIX + SPLIT_THREADS - 1u) / SPLIT_THREADS)
#define STATE_COUNT 0x3fffffffu
#define STATE_AHEAD 4 /* states asked for at once */

/* --- places --- */

/* A block per pass: counts become places. */
KERNEL(k_split_bins, struct ksplit_bins, SPLIT_COUNT_THREADS) {
    SHARED(u64, s_sums, SPLIT_COUNT_THREADS / 32);
    u64 *counts = args.counts + (i64)t_block() * RADIX;
    u32 own = (RADIX + SPLIT_COUNT_THREADS - 1u) / SPLIT_COUNT_THREADS;
    u64 sum = 0;
    for (u32 j = 0; j < own; j++) {
        u32 d = t_id() * own + j;
        sum += d < RADIX ? counts[d] : 0;
    }
    u64 all;
    u64 at = b_sum_before_u64(sum, SPLIT_COUNT_THREADS, s_sums, &all);
    for (u32 j = 0; j < own; j++) {
        u32 d = t_id() * own + j;
        u64 n = d < RADIX ? counts[d] : 0;
        if (d < RADIX) {
            counts[d] = at;
        }
        if (args.starts && (i64)d <= args.parts && d < RADIX) {
            args.starts[d] = at;
        }
        at += n;
        if (args.starts && d == RADIX - 1u && args.parts == (i64)RADIX) {
            args.starts[RADIX] = at;
        }
    }
}

/* Where each partition starts in the result: a search each. */
KERNEL(k_split_starts, struct ksplit_starts, SPLIT_COUNT_THREADS) {
    const K *keys = (const K *)args.keys;
    i64 p = (i64)t_block() * t_count() + t_id();
    if (p <= args.part_count) {
        i64 low = 0;
        i64 high = args.count;
        while (low < high) {
            i64 mid = (low + high) >> 1;
            u32 part = key_part(keys[mid], &args.parts, args.shift) & args.mask;
            if ((i64)part < p) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        args.starts[p] = (u64)low;
    }
}

/* --- one pass --- */

/* The place of an element whose digit's next one is in s_next, lower lanes first. */
FN u32 w_rank(u32 digit, u32 *s_next, u32 *s_bits) {
    u32 same = w_match_bits(digit, s_bits);
    u32 first = first_set_u32(same);
    u32 place = 0;
    if (t_lane() == first) {
        place = atom_add_u32(&s_next[digit], bits_set_u32(same));
    }
    place = w_from_u32(place, first);
    return place + bits_set_u32(same & ((1u << t_lane()) - 1u));
}

/* How many elements of a digit earlier tiles have. */
FN u32 digit_before(const u32 *state, i64 tile, u32 digit) {
    u32 before = 0;
    for (i64 at = tile - 1; at >= 0; at -= STATE_AHEAD) {
        u32 word[STATE_AHEAD];
        UNROLL for (u32 j = 0; j < STATE_AHEAD; j++) {
            i64 from = at - (i64)j;
            word[j] = from >= 0 ? read_u32(&state[from * (i64)RADIX + digit]) : LOOK_UPTO << 30;
        }
        UNROLL for (u32 j = 0; j < STATE_AHEAD; j++) {
            while (word[j] >> 30 == 0) {
                spin_wait();
                word[j] = read_u32(&state[(at - (i64)j) * (i64)RADIX + digit]);
            }
            before += word[j] & STATE_COUNT;
            if (word[j] >> 30 == LOOK_UPTO) {
                return before;
            }
        }
    }
    return before;
}

/* A thread's digits in a tile. */
struct own_digits {
    u32 rows[SPLIT_OWN];
    u32 first[SPLIT_OWN]; /* where they start in the tile */
};

/* Publishes the tile's counts; counts per warp become where the warp's first element of a digit
 * goes within the tile. */
FN void b_tell_digits(const struct ksplit *a, i64 tile, u32 *s_counts, u32 *s_sums,
                      struct own_digits *own) {
    u32 all = 0;
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        own->rows[j] = 0;
        if (d < RADIX) {
            UNROLL for (u32 w = 0; w < SPLIT_WARPS; w++) {
                own->rows[j] += s_counts[w * RADIX + d];
            }
            write_u32(&a->state[tile * (i64)RADIX + d], own->rows[j] | (tile ? LOOK_OWN : LOOK_UPTO)
                                                                           << 30);
        }
        all += own->rows[j];
    }
    u32 total;
    u32 at = b_sum_before_u32(all, SPLIT_THREADS, s_sums, &total);
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        own->first[j] = at;
        if (d < RADIX) {
            UNROLL for (u32 w = 0; w < SPLIT_WARPS; w++) {
                u32 n = s_counts[w * RADIX + d];
                s_counts[w * RADIX + d] = at;
                at += n;
            }
        }
    }
    b_sync();
}

/* s_base[digit] becomes what is added to a place in the tile to have its place in the output. */
FN void look_digits(const struct ksplit *a, i64 tile, i64 tiles, const struct own_digits *own,
                    i64 *s_base) {
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        if (d < RADIX) {
            u32 before = digit_before(a->state, tile, d);
            if (tile) {
                write_u32(&a->state[tile * (i64)RADIX + d],
                          (before + own->rows[j]) | LOOK_UPTO << 30);
            }
            u64 base = a->bins[d] + before;
            s_base[d] = (i64)base - (i64)own->first[j];
            if (a->next_bins && tile == tiles - 1) {
                a->next_bins[d] = base + own->rows[j];
            }
        }
    }
}

/* Moves one payload: through the tile's order in shared memory to its place. */
#define MOVE_PAYLOAD(P, from, to, held)                                 \
    {                                                                   \
        P *s_stage = (P *)(void *)s_room;                               \
        b_sync();                                                       \
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {                  \
            s_stage[place[i]] = held[i];                                \
        }                                                               \
        b_sync();                                                       \
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {                  \
            u32 at = i * SPLIT_THREADS + t_id();                        \
            if (at < rows) {                                            \
                ((P *)(to))[s_base[digits[i]] + (i64)at] = s_stage[at]; \
            }                                                           \
        }                                                               \
    }
#define READ_PAYLOAD(P, from, held)                                                           \
    P held[SPLIT_ITEMS];                                                                      \
    UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {                                            \
        held[i] = mine + i * 32u < rows ? ((const P *)(from))[first + mine + i * 32u] : (P)0; \
    }

/* The digit of element i; what is not there goes last. */
FN u32 split_digit(const struct ksplit *a, K key, u32 at, u32 rows) {
    u32 digit = key_part(key, &a->parts, a->shift) & a->mask;
    return at < rows ? digit : RADIX - 1u;
}

KERNEL(k_split, struct ksplit, SPLIT_THREADS) {
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_sums, 32);
    SHARED(i64, s_base, RADIX);
    SHARED_BYTES(s_room); /* counts [warp][digit] and bits of lanes, then elements */
    u32 *s_counts = (u32 *)(void *)s_room;
    K *s_keys = (K *)(void *)s_room;
    const K *keys = (const K *)args.keys;
    K *out_keys = (K *)args.out_keys;
    u32 warp = t_id() >> 5;
    u32 mine = warp * 32u * SPLIT_ITEMS + t_lane(); /* my first element; others 32 apart */
    i64 tiles = (args.count + SPLIT_TILE - 1) / SPLIT_TILE;
    i64 tile = b_ticket(args.ticket, s_ticket);
    i64 first = tile * SPLIT_TILE;
    u32 rows = args.count - first < SPLIT_TILE ? (u32)(args.count - first) : SPLIT_TILE;
    K key[SPLIT_ITEMS];
    u32 place[SPLIT_ITEMS];
    struct own_digits own;
    UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
        key[i] = mine + i * 32u < rows ? keys[first + mine + i * 32u] : (K)0;
    }
    for (u32 i = t_id(); i < 2u * SPLIT_WARPS * RADIX; i += SPLIT_THREADS) {
        s_counts[i] = 0;
    }
    b_sync();
    UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
        u32 digit = split_digit(&args, key[i], mine + i * 32u, rows);
        atom_add_u32(&s_counts[warp * RADIX + digit], 1);
    }
#if PAYLOAD1
    READ_PAYLOAD(WORD_OF(PAYLOAD1), args.payload1, held1)
#endif
    b_sync();
    b_tell_digits(&args, tile, s_counts, s_sums, &own);
    UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
        u32 digit = split_digit(&args, key[i], mine + i * 32u, rows);
        place[i] = w_rank(digit, s_counts + warp * RADIX, s_counts + (SPLIT_WARPS + warp) * RADIX);
    }
    b_sync();
    UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
        s_keys[place[i]] = key[i];
    }
    look_digits(&args, tile, tiles, &own, s_base);
    b_sync();
    u32 digits[SPLIT_ITEMS];
    UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
        u32 at = i * SPLIT_THREADS + t_id();
        K next = s_keys[at];
        digits[i] = key_part(next, &args.parts, args.shift) & args.mask;
        if (at < rows) {
            out_keys[s_base[digits[i]] + (i64)at] = next;
        }
    }
#if PAYLOAD1
    MOVE_PAYLOAD(WORD_OF(PAYLOAD1), args.payload1, args.out_payload1, held1)
#endif
#if PAYLOAD2
    READ_PAYLOAD(WORD_OF(PAYLOAD2), args.payload2, held2)
    MOVE_PAYLOAD(WORD_OF(PAYLOAD2), args.payload2, args.out_payload2, held2)
#endif
}
