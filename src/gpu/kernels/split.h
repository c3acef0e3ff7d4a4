/* split.h: split by partition number, one pass per digit of it, stable; radix sort is the same.
 *
 * One read counts the digits of all passes. A pass then handles every element once: a block takes a
 * tile by ticket, ranks its elements among those of the same digit (a warp at a time, lanes with
 * equal digits find each other), publishes the tile's counts, looks back at earlier tiles digit by
 * digit (a thread each), sorts the tile in shared memory and writes it out in runs. A tile's state
 * is a word per digit: two bits that tell what the other thirty count.
 *
 * Beside what order.h wants the text defines RADIX_BITS, SPLIT_THREADS, SPLIT_ITEMS (elements per
 * thread), PAYLOAD1 and PAYLOAD2 (bytes, 0 = none), and RANK: how lanes meet:
 * 0 by one ballot per bit, 1 by the match instruction, 2 by bits set in shared memory. */
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

/* Lanes with my digit. */
FN u32 w_same(u32 digit, u32 *s_bits) {
#if RANK == 0
    u32 same = 0xffffffffu;
    UNROLL for (u32 b = 0; b < RADIX_BITS; b++) {
        u32 set = w_ballot((i32)(digit >> b & 1u));
        same &= digit >> b & 1u ? set : ~set;
    }
    return same;
#elif RANK == 1
    return w_match(digit);
#else
    atom_or_u32(&s_bits[digit], 1u << t_lane());
    w_sync();
    u32 same = read_u32(&s_bits[digit]);
    w_sync();
    if (t_lane() == first_set_u32(same)) {
        atom_exch_u32(&s_bits[digit], 0);
    }
    w_sync();
    return same;
#endif
}

/* Among the warp's elements of the same digit; counts are added to s_counts[digit]. */
FN u32 w_rank(u32 digit, u32 *s_counts, u32 *s_bits) {
    u32 same = w_same(digit, s_bits);
    u32 first = first_set_u32(same);
    u32 before = 0;
    if (t_lane() == first) {
        before = atom_add_u32(&s_counts[digit], bits_set_u32(same));
    }
    before = w_from_u32(before, first);
    return before + bits_set_u32(same & ((1u << t_lane()) - 1u));
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

/* The tile's counts per warp become what lower warps have; s_first[digit] becomes where the digit
 * starts in the tile, s_base[digit] what is added to a place in the tile to have its place in the
 * output. */
FN void b_place_digits(const struct ksplit *a, i64 tile, i64 tiles, u32 *s_counts, u32 *s_sums,
                       u32 *s_first, i64 *s_base) {
    u32 own[SPLIT_OWN];
    u32 all = 0;
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        own[j] = 0;
        if (d < RADIX) {
            UNROLL for (u32 w = 0; w < SPLIT_WARPS; w++) {
                u32 n = s_counts[w * RADIX + d];
                s_counts[w * RADIX + d] = own[j];
                own[j] += n;
            }
            write_u32(&a->state[tile * (i64)RADIX + d], own[j] | (tile ? LOOK_OWN : LOOK_UPTO)
                                                                     << 30);
        }
        all += own[j];
    }
    u32 total;
    u32 at = b_sum_before_u32(all, SPLIT_THREADS, s_sums, &total);
    UNROLL for (u32 j = 0; j < SPLIT_OWN; j++) {
        u32 d = t_id() * SPLIT_OWN + j;
        if (d < RADIX) {
            u32 before = digit_before(a->state, tile, d);
            if (tile) {
                write_u32(&a->state[tile * (i64)RADIX + d], (before + own[j]) | LOOK_UPTO << 30);
            }
            u64 base = a->bins[d] + before;
            s_first[d] = at;
            s_base[d] = (i64)base - (i64)at;
            if (a->next_bins && tile == tiles - 1) {
                a->next_bins[d] = base + own[j];
            }
        }
        at += own[j];
    }
    b_sync();
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

KERNEL(k_split, struct ksplit, SPLIT_THREADS) {
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_sums, 32);
    SHARED(u32, s_first, RADIX);
    SHARED(i64, s_base, RADIX);
    SHARED_BYTES(s_room); /* counts [warp][digit] (and bits of lanes), then elements */
    u32 *s_counts = (u32 *)(void *)s_room;
    K *s_keys = (K *)(void *)s_room;
    const K *keys = (const K *)args.keys;
    K *out_keys = (K *)args.out_keys;
    u32 warp = t_id() >> 5;
    u32 mine = warp * 32u * SPLIT_ITEMS + t_lane(); /* my first element; others 32 apart */
    i64 tiles = (args.count + SPLIT_TILE - 1) / SPLIT_TILE;
    for (i64 tile = b_ticket(args.ticket, s_ticket); tile < tiles;
         tile = b_ticket(args.ticket, s_ticket)) {
        i64 first = tile * SPLIT_TILE;
        u32 rows = args.count - first < SPLIT_TILE ? (u32)(args.count - first) : SPLIT_TILE;
        K key[SPLIT_ITEMS];
        u32 place[SPLIT_ITEMS];
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            key[i] = mine + i * 32u < rows ? keys[first + mine + i * 32u] : (K)0;
        }
        for (u32 i = t_id(); i < SPLIT_WARPS * RADIX * (RANK == 2 ? 2u : 1u); i += SPLIT_THREADS) {
            s_counts[i] = 0;
        }
        b_sync();
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) { /* what is not there goes last */
            u32 digit = key_part(key[i], &args.parts, args.shift) & args.mask;
            digit = mine + i * 32u < rows ? digit : RADIX - 1u;
            place[i] =
                w_rank(digit, s_counts + warp * RADIX, s_counts + (SPLIT_WARPS + warp) * RADIX);
        }
#if PAYLOAD1
        READ_PAYLOAD(WORD_OF(PAYLOAD1), args.payload1, held1)
#endif
        b_sync();
        b_place_digits(&args, tile, tiles, s_counts, s_sums, s_first, s_base);
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            u32 digit = key_part(key[i], &args.parts, args.shift) & args.mask;
            digit = mine + i * 32u < rows ? digit : RADIX - 1u;
            place[i] += s_first[digit] + s_counts[warp * RADIX + digit];
        }
        b_sync();
        UNROLL for (u32 i = 0; i < SPLIT_ITEMS; i++) {
            s_keys[place[i]] = key[i];
        }
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
}
