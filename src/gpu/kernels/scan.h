/* scan.h: scan of an array in one pass.
 *
 * A thread holds SCAN_VECS vectors of 16 bytes, a block's width apart, so that every access is
 * whole sectors; the vectors of one number form a row of the tile. Rows are scanned side by side:
 * within the thread, the warp, the rows' warps, then what lies before the tile is found by looking
 * back. Unlike counts, values need all their bits: a state is a flag and a value, in one word where
 * the value has 32 bits, else in a word each of two, the value written before its flag. */
#include "fold.h"
#include "lookback.h"

#include "defs/kprim.h"

#define SCAN_WARPS (SCAN_THREADS / 32)

FN void state_put(u64 *state, i64 tile, u32 flag, T value) {
#if T_BYTES == 8
    atom_exch_u64(&state[4 * tile + flag], t_bits(value));
    mem_fence();
    atom_exch_u64(&state[4 * tile], flag);
#else
    atom_exch_u64(&state[tile], (u64)flag << 32 | t_bits(value));
#endif
}
/* The flag; 0 when nothing is there yet. */
FN u32 state_get(const u64 *state, i64 tile, T *out) {
    if (tile < 0) {
        *out = FOLD_IDENTITY;
        return LOOK_UPTO;
    }
#if T_BYTES == 8
    u32 flag = (u32)read_u64(&state[4 * tile]);
    mem_fence();
    *out = flag ? t_of(read_u64(&state[4 * tile + flag])) : FOLD_IDENTITY;
    return flag;
#else
    u64 word = read_u64(&state[tile]);
    *out = t_of((u32)word);
    return (u32)(word >> 32);
#endif
}

/* The fold of all earlier tiles; lanes further up hold earlier tiles. */
FN T w_fold_back(u64 *state, i64 tile, T own) {
    if (t_lane() == 0) {
        state_put(state, tile, tile == 0 ? LOOK_UPTO : LOOK_OWN, own);
    }
    T before = FOLD_IDENTITY;
    i64 from = tile - 1;
    u32 known = tile == 0;
    while (!known) {
        T value;
        u32 flag = state_get(state, from - (i64)t_lane(), &value);
        while (w_ballot(flag == 0)) {
            spin_wait();
            flag = state_get(state, from - (i64)t_lane(), &value);
        }
        known = w_ballot(flag == LOOK_UPTO);
        u32 last = known ? first_set_u32(known) : 31u;
        value = t_lane() <= last ? value : FOLD_IDENTITY;
        UNROLL for (u32 mask = 1; mask < 32; mask *= 2) {
            T other = t_of(W_XOR(t_bits(value), mask));
            value = t_lane() & mask ? FOLD(value, other) : FOLD(other, value);
        }
        before = FOLD(value, before);
        from -= 32;
    }
    if (t_lane() == 0 && tile > 0) {
        state_put(state, tile, LOOK_UPTO, FOLD(before, own));
    }
    return before;
}

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

KERNEL(k_scan, struct kscan_array, SCAN_THREADS) {
    SHARED(u32, s_ticket, 1);
    SHARED(T, s_rows, SCAN_VECS * SCAN_WARPS);
    SHARED(T, s_before, 1);
    const T *in = (const T *)args.in;
    T *out = (T *)args.out;
    i64 tile_rows = (i64)SCAN_THREADS * SCAN_VECS * T_VEC;
    i64 tiles = (args.count + tile_rows - 1) / tile_rows;
    for (i64 tile = b_ticket(args.ticket, s_ticket); tile < tiles;
         tile = b_ticket(args.ticket, s_ticket)) {
        i64 first = tile * tile_rows + (i64)t_id() * T_VEC;
        vec16 v[SCAN_VECS];
        T before[SCAN_VECS];
        UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
            v[k] = vec_read(in, first + (i64)k * SCAN_THREADS * T_VEC, args.count, FOLD_IDENTITY);
        }
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
            T earlier = w_fold_back(args.state, tile, all);
            if (t_id() == 0) {
                *s_before = earlier;
            }
        }
        b_sync();
        UNROLL for (u32 k = 0; k < SCAN_VECS; k++) {
            T upto = FOLD(FOLD(*s_before, s_rows[k * SCAN_WARPS + (t_id() >> 5)]), before[k]);
            vec16 to;
            UNROLL for (u32 j = 0; j < T_VEC; j++) {
                T next = FOLD(upto, vec_elem(v[k], j));
                vec_set(&to, j, args.inclusive ? next : upto);
                upto = next;
            }
            vec_write(out, first + (i64)k * SCAN_THREADS * T_VEC, args.count, to);
        }
    }
}
