/* agg_runs.h: groups of rows that come in the order of their key: every run is a group.
 *
 * For woven kernels; R, rows a thread, is defined before. A tile's rows lie in R / 4 bands: a
 * thread has four neighbours of each. Rows that are not active do not part a run. The block numbers
 * the runs that begin in its tile; the thread that has a run's first row writes what its rows give,
 * threads that go on with it add theirs. Runs that end in the tile are groups; the first and the
 * last may go on in the tiles beside it. */
#ifndef WF_AGG_RUNS_H
#define WF_AGG_RUNS_H

#include "block.h"

#define BANDS (R / 4)

/* The rows that begin a run, by bit. s_last and s_some: a word for each warp of each band. Sets
 * *descends where a key is less than the one before it. One barrier. */
FN u32 b_run_heads(const i64 *key, u32 act, i64 *s_last, u32 *s_some, u32 *descends) {
    u32 warps = t_count() / 32u;
    u32 heads = 0;
    i64 prev[BANDS];
    u32 has = 0;
    UNROLL for (u32 g = 0; g < BANDS; g++) {
        u32 rows = act >> (4 * g) & 15u;
        i64 last = 0;
        UNROLL for (u32 j = 0; j < 4; j++) {
            last = rows >> j & 1u ? key[4 * g + j] : last;
        }
        u32 lanes = w_ballot(rows != 0);
        u32 below = lanes & ((1u << t_lane()) - 1u);
        prev[g] = (i64)w_from_u64((u64)last, below ? 63u - zeros_above_u64(below) : 0u);
        has |= (u32)(below != 0) << g;
        if (rows && lanes >> t_lane() == 1u) { /* the last lane with rows */
            s_last[g * warps + t_id() / 32u] = last;
        }
        if (t_lane() == 0) {
            s_some[g * warps + t_id() / 32u] = lanes;
        }
    }
    b_sync();
    UNROLL for (u32 g = 0; g < BANDS; g++) {
        u32 rows = act >> (4 * g) & 15u;
        u32 there = has >> g & 1u;
        for (u32 v = g * warps + t_id() / 32u; rows && !there && v > 0; v--) {
            there = s_some[v - 1u] != 0;
            prev[g] = there ? s_last[v - 1u] : 0;
        }
        UNROLL for (u32 j = 0; j < 4; j++) {
            i64 x = key[4 * g + j];
            if (rows >> j & 1u) {
                heads |= (u32)(!there || x != prev[g]) << (4 * g + j);
                *descends |= (u32)(there && x < prev[g]);
                there = 1;
                prev[g] = x;
            }
        }
    }
    return heads;
}

struct b_runs {
    u32 first[BANDS];     /* the number of the first run that this thread begins in each band */
    struct b_place inner; /* the runs without the first and the last of the tile */
    u32 total;
};

/* Numbers runs in the order of rows, and reserves rows for those that end in the tile: while the
 * counter answers, their sums are made. No counter: they may not all be wanted. */
FN struct b_runs b_run_places(u32 heads, u32 *s_sums, u64 *s_base, u64 *counter) {
    struct b_runs runs;
    u32 mine = 0;
    u32 sums;
    UNROLL for (u32 g = 0; g < BANDS; g++) {
        mine |= bits_set_u32(heads >> (4 * g) & 15u) << (16 * g);
    }
    u32 before = b_sum_before_u32(mine, t_count(), s_sums, &sums);
    runs.total = 0;
    UNROLL for (u32 g = 0; g < BANDS; g++) {
        runs.first[g] = runs.total + (before >> (16 * g) & 65535u);
        runs.total += sums >> (16 * g) & 65535u;
    }
    runs.inner.total = runs.total > 2u ? runs.total - 2u : 0u;
    runs.inner.first = 0;
    if (counter && t_id() == 0 && runs.inner.total) {
        *s_base = atom_add_u64(counter, runs.inner.total);
    }
    runs.inner.base = 0; /* in *s_base, behind the next barrier */
    return runs;
}

/* The run in which row i begins one. */
FN u32 run_of_head(const struct b_runs *runs, u32 heads, u32 i) {
    u32 band = heads >> (i / 4u * 4u) & 15u;
    return runs->first[i / 4u] + bits_set_u32(band & ((1u << i % 4u) - 1u));
}

/* Adds what a thread's rows before its first head give to the run that they go on with. A warp
 * without heads is within one run. */
FN void w_run_go_on(u32 op, u64 *sums, u32 first, u32 rows, u32 heads, i64 x) {
    u32 goes_on = rows & (0u - rows) & ~heads;
    if (!w_ballot(heads != 0)) {
        x = w_word_merge(op, x);
        u32 lanes = w_ballot(rows != 0);
        if (lanes && t_lane() == 0) {
            near_add(op, sums + first - 1u, x);
        }
    } else if (goes_on) {
        near_add(op, sums + first - 1u, x);
    }
}

#endif
