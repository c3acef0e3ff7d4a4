/* scan.h: scan of an array in one pass, a tile a block.
 *
 * A thread holds SCAN_VECS vectors of 16 bytes, a block's width apart, so that every access is
 * whole sectors; the vectors of one number form a row of the tile. Rows are scanned side by side:
 * within the thread, the warp, the rows' warps, then what lies before the tile is found by looking
 * back. Blocks that stay and take tile after tile, with the next one's vectors on their way, were
 * slower than blocks that come and go: those leave it to the card to have enough on the way. */
#include "foldback.h"

#include "defs/kprim.h"

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
    SHARED(u32, s_ticket, 1);
    SHARED(T, s_rows, SCAN_VECS * SCAN_WARPS);
    SHARED(T, s_before, 1);
    i64 tile = b_ticket(args.ticket, s_ticket);
    vec16 v[SCAN_VECS];
    T before[SCAN_VECS];
    tile_read(v, (const T *)args.in, tile, args.count);
    UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
        T all;
        before[k] = w_scan(vec_fold(v[k]), &all);
        if (t_lane() == 0) {
            s_rows[k * SCAN_WARPS + (t_id() >> 5)] = all;
        }
    }
    b_sync();
    if (t_id() < 32u) {
        T all = w_scan_rows(s_rows);
        T earlier = w_fold_back(args.state, tile, all, 0);
        if (t_id() == 0) {
            *s_before = earlier;
        }
    }
    b_sync();
    i64 first = (tile * SCAN_VECS * SCAN_THREADS + t_id()) * T_VEC;
    UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
        T upto = FOLD(FOLD(*s_before, s_rows[k * SCAN_WARPS + (t_id() >> 5)]), before[k]);
        vec_write((T *)args.out, first + (i64)k * SCAN_THREADS * T_VEC, args.count,
                  vec_scan(v[k], upto, args.inclusive));
    }
}
