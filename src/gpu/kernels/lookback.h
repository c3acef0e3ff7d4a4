/* lookback.h: what lies before a tile, found by looking back at what earlier tiles have published.
 *
 * Tiles are handed out by a ticket counter, so that a block waits only for tiles that blocks
 * already run work on. A tile publishes its own count at once and, when it knows, the count of
 * everything up to its end; a warp looks at 32 earlier tiles at a time until one of them knows. A
 * state word is count * 4 + flag; the host clears words and counter before the launch.
 * See decision 0016. */
#ifndef WF_LOOKBACK_H
#define WF_LOOKBACK_H

#include "prelude.h"

#define LOOK_OWN 1u  /* the tile's own */
#define LOOK_UPTO 2u /* everything up to its end */

/* The next tile. s_word: one word of shared memory. Two barriers. */
FN u32 b_ticket(u32 *counter, u32 *s_word) {
    b_sync();
    if (t_id() == 0) {
        *s_word = atom_add_u32(counter, 1);
    }
    b_sync();
    return *s_word;
}

/* By one thread: the tile's own count, as soon as it is known. */
FN void look_tell(u64 *state, i64 tile, u64 own) {
    write_u64(&state[tile], own << 2 | (tile == 0 ? LOOK_UPTO : LOOK_OWN));
}

FN u64 look_read(const u64 *state, i64 tile) {
    return tile >= 0 ? read_u64(&state[tile]) : (u64)LOOK_UPTO;
}

/* The sum over all earlier tiles, for a tile that has published. */
FN u64 w_look_up(u64 *state, i64 tile, u64 own) {
    u64 before = 0;
    i64 from = tile - 1 - (i64)t_lane();
    u32 known = tile == 0;
    while (!known) {
        u64 word = look_read(state, from);
        while (w_ballot((word & 3u) == 0)) {
            spin_wait();
            word = look_read(state, from);
        }
        known = w_ballot((word & 3u) == LOOK_UPTO);
        u32 last = known ? first_set_u32(known) : 31u;
        before += t_lane() <= last ? word >> 2 : 0u;
        from -= 32;
    }
    UNROLL for (u32 mask = 16; mask; mask >>= 1) {
        before += w_xor_u64(before, mask);
    }
    if (t_lane() == 0 && tile > 0) {
        write_u64(&state[tile], (before + own) << 2 | LOOK_UPTO);
    }
    return before;
}

/* Both: the sum over all earlier tiles, which this warp publishes with `own` added. */
FN u64 w_look_back(u64 *state, i64 tile, u64 own) {
    if (t_lane() == 0) {
        look_tell(state, tile, own);
    }
    return w_look_up(state, tile, own);
}

/* The same for the block: `own` as thread 0 has it; s_before: one word. One barrier, after which
 * all have the answer; another before s_before is used again is the caller's. */
FN u64 b_look_back(u64 *state, i64 tile, u64 own, u64 *s_before) {
    if (t_id() < 32u) {
        u64 before = w_look_back(state, tile, w_from_u64(own, 0));
        if (t_id() == 0) {
            *s_before = before;
        }
    }
    b_sync();
    return *s_before;
}

/* The same where a thread has told already. */
FN u64 b_look_up(u64 *state, i64 tile, u64 own, u64 *s_before) {
    if (t_id() < 32u) {
        u64 before = w_look_up(state, tile, w_from_u64(own, 0));
        if (t_id() == 0) {
            *s_before = before;
        }
    }
    b_sync();
    return *s_before;
}

#endif
