/* scan.h: scan of an array in one pass.
 *
 * A thread holds SCAN_VECS vectors of 16 bytes, a block's width apart, so that every access is
 * whole sectors; the vectors of one number form a row of the tile. Rows are scanned side by side:
 * within the thread, the warp, the rows' warps, then what lies before the tile is found by looking
 * back. While that goes on the vectors of the block's next tile are on their way: its ticket is
 * drawn one tile ahead. Shared memory comes in two sets that take turns, so that two barriers a
 * tile are enough. */
#ifndef WF_MIN_BLOCKS /* registers for two blocks a multiprocessor; wide looks would spill */
#define WF_MIN_BLOCKS 2
#endif
#if T_BYTES == 8 && !defined LOOK_WIDE
#define LOOK_WIDE 2
#endif
#include "foldback.h"

#include "defs/kprim.h"

#ifndef AHEAD /* 0: tiles are read when their turn comes */
#define AHEAD 1
#endif
#define SCAN_WARPS (SCAN_THREADS / 32)

/* Exclusive over the warp; *out_all is the whole. */
FN T w_scan(T x, T *out_all) {
    T upto = x;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        T other = t_of(W_UP(t_bits(upto), by));
        upto = t_lane() >= by ? FOLD(other, upto) : upto;
    }
    *out_all = t_of(W_FROM(t_bits(upto), 31));
    T before = t_of(W_UP(t_bits(upto), 1));
    return t_lane() ? before : FOLD_IDENTITY;
}

FN T vec_fold(vec16 v) {
    T all = vec_elem(v, 0);
    UNROLL for (u32 j = 1; j < T_VEC; j++) {
        all = FOLD(all, vec_elem(v, j));
    }
    return all;
}

/* By the first warp: the folds of rows' warps to what comes before each within the tile. */
FN T w_scan_rows(T *s_rows) {
    T carry = FOLD_IDENTITY;
    UNROLL for (u32 first = 0; first < SCAN_VECS * SCAN_WARPS; first += 32) {
        T all;
        T before = w_scan(s_rows[first + t_lane()], &all);
        s_rows[first + t_lane()] = FOLD(carry, before);
        carry = FOLD(carry, all);
    }
    return carry;
}

FN void tile_read(vec16 *v, const T *in, i64 tile, i64 count) {
    i64 first = (tile * SCAN_VECS * SCAN_THREADS + t_id()) * T_VEC;
    UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
        v[k] = vec_read(in, first + (i64)k * SCAN_THREADS * T_VEC, count, FOLD_IDENTITY);
    }
}

FN vec16 vec_scan(vec16 v, T upto, u32 inclusive) {
    vec16 to;
    UNROLL for (u32 j = 0; j < T_VEC; j++) {
        T next = FOLD(upto, vec_elem(v, j));
        vec_set(&to, j, inclusive ? next : upto);
        upto = next;
    }
    return to;
}

KERNEL(k_scan, struct kscan_array, SCAN_THREADS) {
    SHARED(u32, s_ticket, 2);
    SHARED(T, s_rows, 2 * SCAN_VECS * SCAN_WARPS);
    SHARED(T, s_before, 2);
    const T *in = (const T *)args.in;
    T *out = (T *)args.out;
    i64 tile_rows = (i64)SCAN_THREADS * SCAN_VECS * T_VEC;
    i64 tiles = (args.count + tile_rows - 1) / tile_rows;
    u32 turn = 0;
    vec16 v[SCAN_VECS];
    i64 tile = b_ticket(args.ticket, s_ticket + 1);
#if AHEAD
    tile_read(v, in, tile, args.count);
#endif
    while (tile < tiles) {
        T *s_mine = s_rows + turn * SCAN_VECS * SCAN_WARPS;
        T before[SCAN_VECS];
#if !AHEAD
        tile_read(v, in, tile, args.count);
#endif
        if (t_id() == 0) {
            s_ticket[turn] = atom_add_u32(args.ticket, 1);
        }
        UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
            T all;
            before[k] = w_scan(vec_fold(v[k]), &all);
            if (t_lane() == 0) {
                s_mine[k * SCAN_WARPS + (t_id() >> 5)] = all;
            }
        }
        b_sync();
        i64 next = s_ticket[turn];
#if AHEAD
        vec16 ahead[SCAN_VECS];
        tile_read(ahead, in, next, args.count);
#endif
        if (t_id() < 32u) {
            T all = w_scan_rows(s_mine);
            T earlier = w_fold_back(args.state, tile, all, 0);
            if (t_id() == 0) {
                s_before[turn] = earlier;
            }
        }
        b_sync();
        i64 first = tile * tile_rows + (i64)t_id() * T_VEC;
        UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
            T upto = FOLD(FOLD(s_before[turn], s_mine[k * SCAN_WARPS + (t_id() >> 5)]), before[k]);
            vec_write(out, first + (i64)k * SCAN_THREADS * T_VEC, args.count,
                      vec_scan(v[k], upto, args.inclusive));
        }
#if AHEAD
        UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
            v[k] = ahead[k];
        }
#endif
        tile = next;
        turn ^= 1u;
    }
}
