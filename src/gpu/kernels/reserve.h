/* reserve.h: room in an output whose size is not known before: threads say how many rows they have,
 * the block takes that many places from a counter, every thread learns its first. Rows of different
 * blocks so come in any order. */
#ifndef WF_RESERVE_H
#define WF_RESERVE_H

#include "sums.h"

struct b_place {
    u64 base;  /* first output row of the block */
    u32 first; /* this thread's first row, counted from base */
    u32 total; /* rows of the block */
};

/* Reserves `mine` rows for every thread. s_sums holds 32 words, s_base one. Two barriers. */
FN struct b_place b_reserve(u32 mine, u32 *s_sums, u64 *s_base, u64 *counter) {
    struct b_place place;
    place.first = b_sum_before_u32(mine, t_count(), s_sums, &place.total);
    if (t_id() == 0 && place.total) {
        *s_base = atom_add_u64(counter, place.total);
    }
    b_sync();
    place.base = place.total ? *s_base : 0;
    return place;
}

/* A row for every lane that wants one. */
FN u64 w_reserve(u32 wants, u64 *counter) {
    u32 lanes = w_ballot((i32)wants);
    u64 row = 0;
    if (lanes) {
        if (t_lane() == 0) {
            row = atom_add_u64(counter, bits_set_u32(lanes));
        }
        row = w_from_u64(row, 0) + bits_set_u32(lanes & ((1u << t_lane()) - 1u));
    }
    return row;
}

/* Reserves rows warp by warp: `rows` of each; the warp's first place. s_sums: a word a warp. Three
 * barriers. */
FN u64 b_reserve_warps(u32 rows, u32 *s_sums, u64 *s_base, u64 *counter) {
    u32 warps = t_count() >> 5;
    b_sync();
    if (t_lane() == 0) {
        s_sums[t_id() >> 5] = rows;
    }
    b_sync();
    if (t_id() < 32u) {
        u32 mine = t_lane() < warps ? s_sums[t_lane()] : 0u;
        u32 upto = w_sum_upto_u32(mine);
        if (t_lane() < warps) {
            s_sums[t_lane()] = upto - mine;
        }
        if (t_lane() == 31u) {
            *s_base = upto ? atom_add_u64(counter, upto) : 0u;
        }
    }
    b_sync();
    return *s_base + s_sums[t_id() >> 5];
}

#endif
