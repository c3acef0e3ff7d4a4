/* agg_runs.h: groups of rows that come in the order of their key: every run is a group.
 *
 * For woven kernels; R, rows a thread, and RUN_KEY, the type of keys, are defined before. A thread has
 * R neighbours, a warp those of 32 threads: a stretch. A row that begins a run ends the one before it.
 * What a thread has of that run is joined with what lower threads have: those of the warp by a scan
 * that ends part, stretches before it by looking back as far as the run goes. So a run's total is
 * known where it ends, and no place is written for it. Rows that are not active get the key of one
 * beside them, so that they part no run. The tile's first run and the last may go on in the tiles
 * beside it.
 *
 * Stretches tell each other by words in shared memory, of which there are two for each, taken in turn
 * from tile to tile: one barrier is enough. */
#ifndef WF_AGG_RUNS_H
#define WF_AGG_RUNS_H

#include "run_words.h"

#define RUN_ALL ((1u << R) - 1u) /* rows of a thread */

FN RUN_KEY w_run_key(RUN_KEY x, u32 lane) {
    return sizeof x == 4 ? (RUN_KEY)(i32)w_from_u32((u32)x, lane)
                         : (RUN_KEY)(i64)w_from_u64((u64)x, lane);
}

FN u32 run_below(u32 lanes) {
    return lanes & ((1u << t_lane()) - 1u);
}

/* What a stretch tells the others. */
struct run_words {
    RUN_KEY *first, *last; /* keys */
    u32 *some;             /* lanes with rows, */
    u32 *ends;             /* and with rows that end a run */
};

struct t_runs {
    RUN_KEY key[R];
    RUN_KEY open;  /* the key of the run that goes on with the first row, or ends there */
    u32 ends;      /* rows that begin a run behind another one, which they end */
    u32 lanes;     /* of the warp that have such rows, the first row of the first apart */
    u32 descends;  /* a key is less than the one before it */
    u32 from;      /* the first stretch that has a part of the run that is open before this one */
    u32 goes_on;   /* it goes on in this one */
    RUN_KEY first; /* of the tile */
};

/* Rows that are not active get the key of the one before, those before the warp's first that one's. */
FN void w_run_fill(RUN_KEY *key, u32 act, u32 some) {
    RUN_KEY first = key[R - 1];
    RUN_KEY last = key[0];
    UNROLL for (u32 i = 0; i < R; i++) {
        first = act >> (R - 1u - i) & 1u ? key[R - 1u - i] : first;
        last = act >> i & 1u ? key[i] : last;
    }
    u32 below = run_below(some);
    RUN_KEY before = w_run_key(last, below ? 63u - zeros_above_u64(below) : 0u);
    RUN_KEY begin = w_run_key(first, some ? first_set_u32(some) : 0u);
    before = below ? before : begin;
    UNROLL for (u32 i = 0; i < R; i++) {
        key[i] = before = act >> i & 1u ? key[i] : before;
    }
}

/* Runs within the stretch, which tells of itself. What it learns of others comes behind a barrier. */
FN struct t_runs w_runs(const RUN_KEY *keys, u32 act, struct run_words s, u32 stretch) {
    struct t_runs runs;
    u32 some = w_ballot(act != 0);
    UNROLL for (u32 i = 0; i < R; i++) {
        runs.key[i] = keys[i];
    }
    if (w_ballot(act != RUN_ALL)) {
        w_run_fill(runs.key, act, some);
    }
    RUN_KEY before = w_run_key(runs.key[R - 1], (t_lane() - 1u) & 31u);
    runs.open = t_lane() ? before : runs.key[0];
    runs.ends = runs.key[0] != runs.open;
    runs.descends = runs.key[0] < runs.open;
    UNROLL for (u32 i = 1; i < R; i++) {
        runs.ends |= (u32)(runs.key[i] != runs.key[i - 1]) << i;
        runs.descends |= (u32)(runs.key[i] < runs.key[i - 1]);
    }
    runs.lanes = w_ballot(runs.ends != 0);
    if (t_lane() == 0) {
        s.first[stretch] = runs.key[0];
        s.some[stretch] = some;
        s.ends[stretch] = runs.lanes;
    }
    if (t_lane() == 31u) {
        s.last[stretch] = runs.key[R - 1];
    }
    return runs;
}

/* The first of the stretches before `end` that have a part of the run of this key; `end`: none. */
FN u32 run_from(struct run_words s, u32 end, RUN_KEY key) {
    u32 from = end;
    u32 goes_on = 1;
    NO_UNROLL for (u32 v = end; v > 0 && goes_on; v--) {
        if (s.some[v - 1u]) {
            u32 same = s.last[v - 1u] == key;
            from = same ? v - 1u : from;
            goes_on = same && !s.ends[v - 1u];
        }
    }
    return from;
}

/* What other stretches say. */
FN void run_look_back(struct t_runs *runs, struct run_words s, u32 stretch) {
    u32 before = stretch;
    u32 first = 0;
    NO_UNROLL while (before > 0 && !s.some[before - 1u]) {
        before--;
    }
    NO_UNROLL while (first < t_count() / 32u - 1u && !s.some[first]) {
        first++;
    }
    runs->first = s.first[first];
    RUN_KEY begin = s.first[stretch];
    RUN_KEY open = before && s.some[stretch] ? s.last[before - 1u] : begin;
    runs->from = run_from(s, stretch, open);
    runs->goes_on = open == begin;
    runs->descends |= begin < open;
    if (t_lane() == 0) {
        runs->open = open;
        runs->ends |= (u32)(open != begin);
    }
}

/* A bound of 64 bits for words of 32. */
FN i32 run_bound_i32(i64 x) {
    return x > I32_MAX ? I32_MAX : x < I32_MIN ? I32_MIN : (i32)x;
}
FN i64 run_bound_i64(i64 x) {
    return x;
}

/* w_run_upto: what lanes from the last one with an end up to this one have behind their last ends;
 * `lanes` have ends. run_join: what stretches from `from` on have, up to `end`. run_open: what rows
 * before this thread's have of the run that is open there; `upto` is w_run_upto's. */
#define RUN_WORDS(type, bits)                                                                   \
    FN type w_run_upto_##type(u32 op, type x, u32 lanes) {                                      \
        u32 upto = lanes & (0xffffffffu >> (31u - t_lane()));                                   \
        u32 first = upto ? 63u - zeros_above_u64(upto) : 0u;                                    \
        UNROLL for (u32 by = 1; by < 32; by *= 2) {                                             \
            type other = (type)w_up_##bits((bits)x, by);                                        \
            x = t_lane() >= first + by ? run_merge_##type(op, x, other) : x;                    \
        }                                                                                       \
        return x;                                                                               \
    }                                                                                           \
    FN type run_join_##type(u32 op, const type *s_tail, u32 from, u32 end) {                    \
        type x = run_identity_##type(op);                                                       \
        NO_UNROLL for (u32 v = from; v < end; v++) {                                            \
            x = run_merge_##type(op, x, s_tail[v]);                                             \
        }                                                                                       \
        return x;                                                                               \
    }                                                                                           \
    FN type w_run_open_##type(u32 op, type upto, const struct t_runs *runs, const type *s_tail, \
                              u32 stretch) {                                                    \
        type x = (type)w_up_##bits((bits)upto, 1);                                              \
        x = t_lane() ? x : run_identity_##type(op);                                             \
        if (!run_below(runs->lanes) && (runs->goes_on || t_lane() == 0)) {                      \
            x = run_merge_##type(op, x, run_join_##type(op, s_tail, runs->from, stretch));      \
        }                                                                                       \
        return x;                                                                               \
    }
RUN_WORDS(i32, u32)
RUN_WORDS(i64, u64)
#undef RUN_WORDS

/* Reserves `mine` rows for every lane; the lane's first. */
FN u64 w_reserve_rows(u32 mine, u64 *counter) {
    u32 upto = w_sum_upto_u32(mine);
    u64 row = t_lane() == 31u ? atom_add_u64(counter, upto) : 0u;
    return w_from_u64(row, 31) + upto - mine;
}

#endif
