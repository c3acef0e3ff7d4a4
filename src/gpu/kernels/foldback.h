/* foldback.h: what lies before a tile, for values of type T and the operator FOLD: the look-back of
 * lookback.h for more than counts.
 *
 * Unlike counts, values need all their bits. A state is a flag and a value. It is one word where
 * the value has 32 bits, else two words that hold a half of the value and the flag each. Those are
 * written one by one and read by one access, and belong together when their flags agree. */
#ifndef WF_FOLDBACK_H
#define WF_FOLDBACK_H

#include "fold.h"
#include "lookback.h"

FN void state_put(u64 *state, i64 tile, u32 flag, T value) {
#if T_BYTES == 8
    write_u64(&state[2 * tile], (u64)flag << 32 | (u32)t_bits(value));
    write_u64(&state[2 * tile + 1], (u64)flag << 32 | (u32)(t_bits(value) >> 32));
#else
    write_u64(&state[tile], (u64)flag << 32 | t_bits(value));
#endif
}
/* The flag; 0 when nothing is there yet. */
FN u32 state_get(const u64 *state, i64 tile, T *out) {
    u32 flag = LOOK_UPTO;
    *out = FOLD_IDENTITY;
    if (tile >= 0) {
#if T_BYTES == 8
        u64 low;
        u64 high;
        read_pair(&state[2 * tile], &low, &high);
        flag = low >> 32 == high >> 32 ? (u32)(low >> 32) : 0u;
        *out = t_of(high << 32 | (u32)low);
#else
        u64 word = read_u64(&state[tile]);
        flag = (u32)(word >> 32);
        *out = t_of((u32)word);
#endif
    }
    return flag;
}

/* The fold of all earlier tiles. `whole`: nothing before this tile counts for later ones, which
 * need not look further back. Operators commute, so lanes keep what they meet until the end. */
FN T w_fold_back(u64 *state, i64 tile, T own, u32 whole) {
    whole |= tile == 0;
    if (t_lane() == 0) {
        state_put(state, tile, whole ? LOOK_UPTO : LOOK_OWN, own);
    }
    T before = FOLD_IDENTITY;
    i64 from = tile - 1 - (i64)t_lane();
    u32 known = tile == 0;
    while (!known) {
        T value;
        u32 flag = state_get(state, from, &value);
        while (w_ballot(flag == 0)) {
            spin_wait();
            flag = state_get(state, from, &value);
        }
        known = w_ballot(flag == LOOK_UPTO);
        u32 last = known ? first_set_u32(known) : 31u;
        before = t_lane() <= last ? FOLD(before, value) : before;
        from -= 32;
    }
    UNROLL for (u32 mask = 1; mask < 32; mask *= 2) {
        T other = t_of(W_XOR(t_bits(before), mask));
        before = FOLD(before, other);
    }
    if (t_lane() == 0 && !whole) {
        state_put(state, tile, LOOK_UPTO, FOLD(before, own));
    }
    return before;
}

#endif
