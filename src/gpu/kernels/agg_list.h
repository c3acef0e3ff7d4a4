/* agg_list.h: groups as runs of the sorted key, of rows that go on as a list: one a thread.
 *
 * For woven kernels. A block lists the rows of its tile that are left in the order of rows, and
 * takes 256 of them at a time. Runs that begin among these get slots in shared memory; a run that
 * began before has slot 0. A warp adds up the rows of a run that it has, so that few threads meet at
 * a slot. All runs but the last have ended then; the last is moved to slot 0 and may go on with the
 * next rows. The first and the last run of the tile may go on in the tiles beside it. */
#ifndef WF_AGG_LIST_H
#define WF_AGG_LIST_H

#include "run_words.h"

/* The block's active rows in their order, each as its distance from the tile's first; how many. A thread
 * has four neighbours in each of up to four bands. s_sums: a word for each warp. Two barriers. */
FN u32 b_list_in_order(u32 act, u32 rows, u32 span, u16 *s_list, u64 *s_sums) {
    u64 mine = 0;
    u64 all = 0;
    UNROLL for (u32 i = 0; i < rows; i += 4) {
        mine |= (u64)bits_set_u32(act >> i & 15u) << (4 * i);
    }
    u64 before = b_sum_before_u64(mine, t_count(), s_sums, &all);
    u32 from = 0;
    UNROLL for (u32 i = 0; i < rows; i += 4) {
        u32 at = from + ((u32)(before >> (4 * i)) & 65535u);
        UNROLL for (u32 k = 0; k < 4; k++) {
            if (act >> (i + k) & 1u) {
                s_list[at] = (u16)(t_id() * 4u + i / 4u * span + k);
            }
            at += act >> (i + k) & 1u;
        }
        from += (u32)(all >> (4 * i)) & 65535u;
    }
    b_sync();
    return from;
}

struct b_listed {
    u32 heads;   /* lanes of the warp whose rows begin a run */
    u32 slot;    /* of this row's run */
    u32 goes_on; /* the slot of the run that rows before the first head go on with; ~0: no rows */
    u32 total;   /* slots in use */
};

/* Numbers the runs of up to 256 rows. `before`: slot 0 is in use, of keys[0]. s_last: a word for
 * each warp, s_some: two. Sets *descends where a key is less than the one before it. Two barriers. */
FN struct b_listed b_listed_runs(i64 key, u32 act, u32 before, const u64 *keys, i64 *s_last,
                                 u32 *s_some, u32 *descends) {
    struct b_listed runs;
    u32 *s_heads = s_some + t_count() / 32u;
    u32 warp = t_id() / 32u;
    u32 lanes = w_ballot((i32)act);
    u32 below = lanes & ((1u << t_lane()) - 1u);
    i64 prev = (i64)w_from_u64((u64)key, below ? 63u - zeros_above_u64(below) : 0u);
    if (act && lanes >> t_lane() == 1u) { /* the last lane with a row */
        s_last[warp] = key;
    }
    if (t_lane() == 0) {
        s_some[warp] = lanes;
    }
    b_sync();
    u32 there = below != 0;
    NO_UNROLL for (u32 v = warp; act && !there && v > 0; v--) {
        there = s_some[v - 1u] != 0;
        prev = there ? s_last[v - 1u] : prev;
    }
    if (!there && before) {
        there = 1;
        prev = (i64)keys[0];
    }
    runs.heads = w_ballot(act && (!there || key != prev));
    *descends |= act && there && key < prev;
    if (t_lane() == 0) {
        s_heads[warp] = bits_set_u32(runs.heads);
    }
    b_sync();
    u32 first = before;
    runs.total = before;
    UNROLL for (u32 v = 0; v < t_count() / 32u; v++) {
        u32 begun = s_heads[v];
        first += v < warp ? begun : 0u;
        runs.total += begun;
    }
    u32 upto = runs.heads & (below | 1u << t_lane());
    u32 leading = runs.heads ? (1u << first_set_u32(runs.heads)) - 1u : ~0u;
    runs.slot = first + bits_set_u32(upto) - 1u;
    runs.goes_on = lanes & leading ? first - 1u : ~0u;
    return runs;
}

/* Whether the row `by` lanes above is of another run, or there is none: what rows of the warp give to
 * each run is joined by doubling steps in the lane that begins it, or in the first for the run that
 * goes on. Lanes without a row have nothing to add. */
FN u32 listed_apart(u32 heads, u32 by) {
    return t_lane() + by > 31u || ((heads >> t_lane()) >> 1 & ((1u << by) - 1u));
}
FN i32 w_listed_i32(u32 op, u32 apart, i32 x, u32 by) {
    i32 other = (i32)w_from_u32((u32)x, (t_lane() + by) & 31u);
    return apart ? x : run_merge_i32(op, x, other);
}
FN i64 w_listed_i64(u32 op, u32 apart, i64 x, u32 by) {
    i64 other = (i64)w_from_u64((u64)x, (t_lane() + by) & 31u);
    return apart ? x : run_merge_i64(op, x, other);
}

#endif
