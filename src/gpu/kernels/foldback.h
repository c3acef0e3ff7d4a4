/* foldback.h: what lies before a tile, for values of type T and the operator FOLD: the look-back of
 * lookback.h for more than counts.
 *
 * Unlike counts, values need all their bits: a state is a flag and a value, in one word where the
 * value has 32 bits, else in a word each of two, the value written before its flag. */
#ifndef WF_FOLDBACK_H
#define WF_FOLDBACK_H

#include "fold.h"
#include "lookback.h"

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

/* The fold of all earlier tiles; lanes further up hold earlier tiles. `whole`: nothing before this
 * tile counts for later ones, which need not look further back. */
FN T w_fold_back(u64 *state, i64 tile, T own, u32 whole) {
    whole |= tile == 0;
    if (t_lane() == 0) {
        state_put(state, tile, whole ? LOOK_UPTO : LOOK_OWN, own);
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
    if (t_lane() == 0 && !whole) {
        state_put(state, tile, LOOK_UPTO, FOLD(before, own));
    }
    return before;
}

#endif
