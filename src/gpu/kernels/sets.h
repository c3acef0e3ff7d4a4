/* sets.h: union, intersection, difference and symmetric difference of ascending arrays in one pass.
 *
 * k_set_cuts parts both arrays into tiles along the balanced path (path.h), so that the k-th of
 * equal elements of a and the k-th of b are in one tile. A tile is brought into shared memory, each
 * thread walks its part, again cut along the balanced path, and keeps what the operation keeps;
 * what is kept is packed in shared memory and goes to the place that looking back at earlier tiles
 * gives. Elements pass once from memory and once to it. The text defines PATH_ITEMS, SET_OP and
 * SET_DISTINCT: keep only the first of equal elements of its array. */
#include "path.h"
#include "lookback.h"

#define SET_OP_UNION 0
#define SET_OP_INTERSECTION 1
#define SET_OP_DIFFERENCE 2
#define SET_OP_SYMMETRIC 3
#define KEEP_A (SET_OP != SET_OP_INTERSECTION)
#define KEEP_B (SET_OP == SET_OP_UNION || SET_OP == SET_OP_SYMMETRIC)
#define KEEP_BOTH (SET_OP == SET_OP_UNION || SET_OP == SET_OP_INTERSECTION)
#define SET_STEPS (PATH_ITEMS + 1) /* a star may add one */

KERNEL(k_set_cuts, struct kset, PATH_THREADS) {
    i64 total = args.a_count + args.b_count;
    i64 tile = (i64)t_block() * t_count() + t_id();
    i64 diagonal = tile * PATH_TILE;
    if (diagonal < total) {
        args.cuts[tile] = balanced_far((const K *)args.a, args.a_count, (const K *)args.b,
                                       args.b_count, diagonal, &args.order);
    } else if (diagonal < total + PATH_TILE) {
        args.cuts[tile] = args.a_count * 2;
    }
}

/* Walks from (i, j) to (i_end, j_end) in shared memory; bit k of the result: step k kept key[k]. */
FN u32 set_walk(K *key, const K *s_a, const K *s_b, u32 i, u32 j, u32 i_end, u32 j_end,
                u32 a_before, u32 b_before, const struct korder *o) {
    u32 kept = 0;
    K x = 0; /* what comes next of a, and of b */
    K y = 0;
    if (i < i_end) {
        x = s_a[i];
    }
    if (j < j_end) {
        y = s_b[j];
    }
    UNROLL for (u32 k = 0; k < SET_STEPS; k++) {
        u32 has_a = i < i_end;
        u32 has_b = j < j_end;
        u32 a_goes = has_a && (!has_b || !key_less(y, x, o));
        u32 b_goes = has_b && (!has_a || !key_less(x, y, o));
        u32 keep = a_goes ? (b_goes ? KEEP_BOTH : KEEP_A) : b_goes ? KEEP_B : 0;
        key[k] = a_goes ? x : y;
#if SET_DISTINCT
        if (keep && a_goes && (i || a_before)) {
            keep = !key_same(s_a[(i32)i - 1], x, o);
        } else if (keep && !a_goes && (j || b_before)) {
            keep = !key_same(s_b[(i32)j - 1], y, o);
        }
#endif
        kept |= keep << k;
        if (a_goes) {
            i++;
            if (i < i_end) {
                x = s_a[i];
            }
        }
        if (b_goes) {
            j++;
            if (j < j_end) {
                y = s_b[j];
            }
        }
    }
    return kept;
}

KERNEL(k_set, struct kset, PATH_THREADS) {
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_before, 1);
    SHARED(u32, s_cuts, PATH_THREADS + 1);
    SHARED(K, s_keys, PATH_TILE + 4); /* a's, with one before them, b's likewise */
    i64 total = args.a_count + args.b_count;
    i64 tiles = (total + PATH_TILE - 1) / PATH_TILE;
    for (i64 tile = b_ticket(args.ticket, s_ticket); tile < tiles;
         tile = b_ticket(args.ticket, s_ticket)) {
        i64 cut = args.cuts[tile];
        i64 next = args.cuts[tile + 1];
        i64 next_diagonal = (tile + 1) * PATH_TILE < total ? (tile + 1) * PATH_TILE : total;
        i64 i = cut >> 1;
        i64 j = tile * PATH_TILE - i + (cut & 1);
        u32 a_rows = (u32)((next >> 1) - i);
        u32 b_rows = (u32)(next_diagonal - (next >> 1) + (next & 1) - j);
        const K *a = (const K *)args.a + i;
        const K *b = (const K *)args.b + j;
        K *s_a = s_keys + 1;
        K *s_b = s_keys + a_rows + 2;
        for (u32 k = t_id(); k < a_rows + b_rows; k += PATH_THREADS) {
            if (k < a_rows) {
                s_a[k] = a[k];
            } else {
                s_b[k - a_rows] = b[k - a_rows];
            }
        }
#if SET_DISTINCT
        if (t_id() == 0 && i > 0) {
            s_keys[0] = a[-1];
        }
        if (t_id() == 32u && j > 0) {
            s_b[-1] = b[-1];
        }
#endif
        b_sync();
        u32 rows = a_rows + b_rows;
        u32 diagonal = t_id() * PATH_ITEMS < rows ? t_id() * PATH_ITEMS : rows;
        u32 mine =
            (u32)balanced_near(s_a, (i32)a_rows, s_b, (i32)b_rows, (i32)diagonal, &args.order);
        u32 at_a = mine >> 1;
        u32 at_b = diagonal - at_a + (mine & 1u);
        s_cuts[t_id()] = at_a << 16 | at_b;
        if (t_id() == 0) {
            s_cuts[PATH_THREADS] = a_rows << 16 | b_rows;
        }
        b_sync();
        u32 end = s_cuts[t_id() + 1u];
        K key[SET_STEPS];
        u32 kept =
            set_walk(key, s_a, s_b, at_a, at_b, end >> 16, end & 65535u, i > 0, j > 0, &args.order);
        u32 all;
        u32 to = b_sum_before(bits_set_u32(kept), s_sums, &all);
        UNROLL for (u32 k = 0; k < SET_STEPS; k++) {
            if (kept >> k & 1u) {
                s_keys[to] = key[k];
                to++;
            }
        }
        u64 before = b_look_back(args.state, tile, all, s_before);
        for (u32 k = t_id(); k < all; k += PATH_THREADS) {
            if ((i64)before + k < args.room) {
                ((K *)args.out)[(i64)before + k] = s_keys[k];
            }
        }
        if (tile == tiles - 1 && t_id() == 0) {
            *args.total = before + all;
        }
    }
}
