/* build_rows.h: rows of kernels that are not pipelines: who takes which, and counters that several rows want.
 *
 * A module is as much as one kind of step calls: where nothing was compiled ahead of time a statement waits for
 * the compiler, and modules are compiled side by side. */
#ifndef WF_BUILD_ROWS_H
#define WF_BUILD_ROWS_H

#include "block.h"

#define BUILD_ROWS(i, count) \
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < (count); i += (i64)t_blocks() * t_count())

/* The same in rounds that all lanes of a warp come to; `i` may be past the end. */
#define BUILD_ROUNDS(i, from, count)                                                                    \
    for (i64 i = (from) + (i64)t_block() * t_count() + t_id(); i - (i64)t_lane() < (count);             \
         i += (i64)t_blocks() * t_count())

/* Adds `by` to a counter for every lane that is `there`, and says what it was before, as if they came one after
 * the other. Lanes that mean the same counter go there once: the card performs what is done to one address one by
 * one, so that a key with very many rows would keep everybody waiting (decision 0055). All lanes come. */
FN u32 w_count_at(u32 *counters, u64 at, u32 there, u32 by) {
    const u64 place = there ? at : ~0ULL;
    u32 mates = w_match((u32)place);
    if (w_ballot((i32)(place >> 32 != 0))) {
        mates &= w_match((u32)(place >> 32));
    }
    const u32 below = bits_set_u32(mates & ((1u << t_lane()) - 1u));
    u32 before = 0;
    if (there && !below) {
        before = atom_add_u32(&counters[at], bits_set_u32(mates) * by);
    }
    return w_from_u32(before, bits_set_u32((mates & (0u - mates)) - 1u)) + below * by;
}

/* The rows that are indexed: as many as the host knows of, or as a step before this one gave. */
#define BUILD_COUNT(args) ((args).rows_at ? *(args).rows_at : (args).row_count)

#endif
