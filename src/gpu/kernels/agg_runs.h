/* agg_runs.h: groups of rows that come in the order of their key: every run is a group.
 *
 * For woven kernels; R, rows a thread, and RUN_KEY, the type of keys, are defined before. A tile's
 * rows lie in R / 4 bands: a thread has four neighbours of each, and a warp those of 32 threads: a
 * stretch. Rows that are not active do not part a run. A row that begins a run ends the one before
 * it. What a thread has of that run is joined with what lower threads have: those of the warp by a
 * scan that ends part, stretches before it by looking back as far as the last that has an end. So a
 * run's total is known where it ends, and no place is written for it. The tile's first run and the
 * last may go on in the tiles beside it. */
#ifndef WF_AGG_RUNS_H
#define WF_AGG_RUNS_H

#include "block.h"

#define BANDS (R / 4)

FN RUN_KEY w_run_key(RUN_KEY x, u32 lane) {
    return sizeof x == 4 ? (RUN_KEY)(i32)w_from_u32((u32)x, lane)
                         : (RUN_KEY)(i64)w_from_u64((u64)x, lane);
}

/* The stretch of this thread's rows in a band. */
FN u32 run_stretch(u32 band) {
    return band * (t_count() / 32u) + t_id() / 32u;
}

struct t_runs {
    u32 ends;            /* rows that begin a run behind another one, which they end */
    u32 descends;        /* a key is less than the one before it */
    RUN_KEY before[R];   /* the key of the row before each */
    RUN_KEY open[BANDS]; /* of the run that goes on with the first of four rows, or begins there */
};

/* The first of four keys that is a row's; the last, where it is `last`. */
FN RUN_KEY run_end(const RUN_KEY *key, u32 rows, u32 last) {
    RUN_KEY x = key[last ? 0 : 3];
    UNROLL for (u32 j = 1; j < 4; j++) {
        u32 at = last ? j : 3u - j;
        x = rows >> at & 1u ? key[at] : x;
    }
    return x;
}

/* s_last and s_some: a word for each stretch. *s_first, the tile's first key, is set behind the next
 * barrier. One barrier. */
FN struct t_runs b_run_heads(const RUN_KEY *key, u32 act, RUN_KEY *s_last, u32 *s_some,
                             RUN_KEY *s_first) {
    struct t_runs runs;
    u32 has = 0;
    runs.ends = runs.descends = 0;
    UNROLL for (u32 g = 0; g < BANDS; g++) {
        u32 rows = act >> (4 * g) & 15u;
        RUN_KEY last = run_end(key + 4 * g, rows, 1);
        u32 lanes = w_ballot(rows != 0);
        u32 below = lanes & ((1u << t_lane()) - 1u);
        runs.open[g] = w_run_key(last, below ? 63u - zeros_above_u64(below) : 0u);
        has |= (u32)(below != 0) << g;
        if (rows && lanes >> t_lane() == 1u) { /* the last lane with rows */
            s_last[run_stretch(g)] = last;
        }
        if (t_lane() == 0) {
            s_some[run_stretch(g)] = lanes;
        }
    }
    b_sync();
    UNROLL for (u32 g = 0; g < BANDS; g++) {
        u32 rows = act >> (4 * g) & 15u;
        if (rows && !(has >> g & 1u)) {
            u32 there = 0;
            NO_UNROLL for (u32 v = run_stretch(g); !there && v > 0; v--) {
                there = s_some[v - 1u] != 0;
                runs.open[g] = there ? s_last[v - 1u] : 0;
            }
            if (!there) {
                *s_first = runs.open[g] = run_end(key + 4 * g, rows, 0);
            }
        }
        RUN_KEY prev = runs.open[g];
        UNROLL for (u32 i = 4 * g; i < 4 * g + 4; i++) {
            u32 is_row = act >> i & 1u;
            runs.before[i] = prev;
            runs.ends |= (is_row && key[i] != prev) ? 1u << i : 0u;
            runs.descends |= is_row && key[i] < prev;
            prev = is_row ? key[i] : prev;
        }
    }
    return runs;
}

/* Words of 32 bits where those of a tile's rows and their sums are proven to fit. */
FN i32 run_merge_i32(u32 op, i32 a, i32 b) {
    return op == WORD_ADD ? a + b : (op == WORD_MIN) == (a < b) ? a : b;
}
FN i32 run_identity_i32(u32 op) {
    return op == WORD_ADD ? 0 : op == WORD_MIN ? I32_MAX : I32_MIN;
}
FN i64 run_merge_i64(u32 op, i64 a, i64 b) {
    return word_merge(op, a, b);
}
FN i64 run_identity_i64(u32 op) {
    return word_identity(op);
}

/* A bound of 64 bits for words of 32. */
FN i32 run_bound_i32(i64 x) {
    return x > I32_MAX ? I32_MAX : x < I32_MIN ? I32_MIN : (i32)x;
}
FN i64 run_bound_i64(i64 x) {
    return x;
}

/* w_run_upto: what lanes from the last one with an end up to this one have; `lanes` have ends.
 * run_back: what stretches before this one have of the run that goes on in it. */
#define RUN_WORDS(type, bits)                                                                  \
    FN type w_run_upto_##type(u32 op, type x, u32 lanes) {                                     \
        u32 upto = lanes & (0xffffffffu >> (31u - t_lane()));                                  \
        u32 first = upto ? 63u - zeros_above_u64(upto) : 0u;                                   \
        UNROLL for (u32 by = 1; by < 32; by *= 2) {                                            \
            type other = (type)w_up_##bits((bits)x, by);                                       \
            x = t_lane() >= first + by ? run_merge_##type(op, x, other) : x;                   \
        }                                                                                      \
        return x;                                                                              \
    }                                                                                          \
    FN type run_back_##type(u32 op, const type *s_tail, const u32 *s_ends, u32 stretch) {     \
        type x = run_identity_##type(op);                                                      \
        u32 found = 0;                                                                         \
        NO_UNROLL for (u32 v = stretch; v > 0 && !found; v--) {                                \
            x = run_merge_##type(op, x, s_tail[v - 1u]);                                       \
            found = s_ends[v - 1u];                                                           \
        }                                                                                      \
        return x;                                                                              \
    }
RUN_WORDS(i32, u32)
RUN_WORDS(i64, u64)
#undef RUN_WORDS

#endif
