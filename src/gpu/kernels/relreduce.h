/* relreduce.h: reduction of a field over groups of equal keys of sorted tuples, in one pass.
 *
 * A tile is staged in shared memory, a thread takes neighbours. A group is closed where the next
 * one starts or at the tile's end; what a thread needs to know of lower threads is the reduction
 * since their last start, found by a segmented scan. Numbers of groups come from looking back. What
 * of a tile belongs to a group that an earlier tile started is set aside and joined by
 * k_reduce_parts. The text before defines REDUCE, one of enum rel_reduce_op. */
#include "tuple.h"
#include "lookback.h"

#define TILE_ROWS (REDUCE_THREADS * TUPLE_VT)
#define REDUCE_WARPS (REDUCE_THREADS / 32)

#if REDUCE == 2
#define IDENTITY 0xffffffffffffffffULL
#define JOIN(a, b) ((b) < (a) ? (b) : (a))
#elif REDUCE == 3
#define IDENTITY 0ULL
#define JOIN(a, b) ((a) < (b) ? (b) : (a))
#else
#define IDENTITY 0ULL
#define JOIN(a, b) ((a) + (b))
#endif

FN u64 word_value(const struct krel_reduce *a, IN_W x) {
#if REDUCE == 0
    return 1u;
#else
    return (u64)(x >> a->field_shift) & a->field_mask;
#endif
}

/* The reduction since the last start of lower threads; mine: since my last one (started), or of all
 * I have. Ends with a barrier after which s_values and s_flags may be used again once another one
 * has passed. */
FN u64 b_since_start(u64 mine, u32 started, u64 *s_values, u32 *s_flags) {
    u64 upto = mine;
    u32 flag = started;
    UNROLL for (u32 by = 1; by < 32; by *= 2) {
        u64 other = w_up_u64(upto, by);
        u32 other_flag = w_up_u32(flag, by);
        if (t_lane() >= by) {
            upto = flag ? upto : JOIN(other, upto);
            flag |= other_flag;
        }
    }
    u32 warp = t_id() >> 5;
    if (t_lane() == 31u) {
        s_values[warp] = upto;
        s_flags[warp] = flag;
    }
    u64 before = w_up_u64(upto, 1);
    u32 before_flag = w_up_u32(flag, 1);
    before = t_lane() ? before : IDENTITY;
    before_flag = t_lane() ? before_flag : 0u;
    b_sync();
    u64 warps = IDENTITY;
    for (u32 w = 0; w < warp; w++) {
        u64 value = s_values[w];
        warps = s_flags[w] ? value : JOIN(warps, value);
    }
    return before_flag ? before : JOIN(warps, before);
}

/* The tile and the word before it. Ends with a barrier. */
FN void b_load_tile(const IN_W *in, i64 first, u32 rows, IN_W *s_in) {
    UNROLL for (u32 k = 0; k <= TUPLE_VT; k++) {
        u32 i = k * REDUCE_THREADS + t_id();
        if (i <= rows) {
            s_in[i] = first + (i64)i > 0 ? in[first + (i64)i - 1] : (IN_W)0;
        }
    }
    b_sync();
}

KERNEL(k_reduce, struct krel_reduce, REDUCE_THREADS) {
    SHARED(IN_W, s_in, TILE_ROWS + 1); /* [0]: the word before the tile */
    SHARED(u64, s_out, TILE_ROWS + 1); /* [0]: of the group before the tile */
    SHARED(u64, s_sums, REDUCE_WARPS);
    SHARED(u64, s_values, REDUCE_WARPS);
    SHARED(u32, s_flags, REDUCE_WARPS);
    SHARED(u64, s_before, 1);
    SHARED(u32, s_ticket, 1);
    const IN_W *in = (const IN_W *)args.in;
    IN_W *out = (IN_W *)args.out;
    u32 *ticket = (u32 *)&args.counters[REL_TICKET];
    i64 tiles = (args.count + TILE_ROWS - 1) / TILE_ROWS;
    i64 tile = b_ticket(ticket, s_ticket);
    i64 first = tile * TILE_ROWS;
    i64 left = args.count - first;
    u32 rows = left < TILE_ROWS ? (u32)left : (u32)TILE_ROWS;
    b_load_tile(in, first, rows, s_in);
    u32 at = t_id() * TUPLE_VT;
    u32 starts = 0;
    u64 since = IDENTITY;
    IN_W key[TUPLE_VT];
    u64 value[TUPLE_VT];
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 i = at + k;
        u32 here = i < rows;
        IN_W word = here ? s_in[i + 1] : (IN_W)0;
        IN_W last = here ? s_in[i] : (IN_W)0;
        u32 start =
            here && ((first == 0 && i == 0) || word >> args.key_shift != last >> args.key_shift);
        key[k] = word >> args.key_shift;
        value[k] = here ? word_value(&args, word) : IDENTITY;
        since = start ? value[k] : JOIN(since, value[k]);
        starts |= start << k;
    }
    u64 own;
    u32 group = (u32)b_sum_before_u64(bits_set_u32(starts), REDUCE_THREADS, s_sums, &own);
    u64 acc = b_since_start(since, starts != 0, s_values, s_flags);
    /* all have read s_in: its places take the keys of groups */
    UNROLL for (u32 k = 0; k < TUPLE_VT; k++) {
        u32 i = at + k;
        if (starts >> k & 1u) {
            s_out[group++] = acc;
            s_in[group] = (IN_W)(key[k] << args.key_shift);
            acc = value[k];
        } else {
            acc = JOIN(acc, value[k]);
        }
        if (i + 1 == rows) {
            s_out[group] = acc;
        }
    }
    i64 before = (i64)b_look_back(args.state, tile, own, s_before);
    if (t_id() == 0) {
        args.parts[tile] = s_out[0];
        args.group[tile] = before - 1; /* that of the first word, if it starts none */
        if (tile == tiles - 1) {
            args.counters[REL_TOTAL] = (u64)before + own;
        }
    }
    for (u32 g = t_id(); g < (u32)own; g += REDUCE_THREADS) {
        if (before + (i64)g < args.room) {
            out[before + (i64)g] = s_in[g + 1];
            args.values[before + (i64)g] = s_out[g + 1];
        }
    }
}

KERNEL(k_reduce_parts, struct krel_reduce, REDUCE_THREADS) {
    i64 tiles = (args.count + TILE_ROWS - 1) / TILE_ROWS;
    i64 step = (i64)t_blocks() * REDUCE_THREADS;
    for (i64 t = (i64)t_block() * REDUCE_THREADS + t_id(); t < tiles; t += step) {
        i64 group = args.group[t];
        u64 part = args.parts[t];
        if (group < 0 || group >= args.room || part == IDENTITY) {
            continue;
        }
#if REDUCE == 2
        atom_min_u64(&args.values[group], part);
#elif REDUCE == 3
        atom_max_u64(&args.values[group], part);
#else
        atom_add_u64(&args.values[group], part);
#endif
    }
}
