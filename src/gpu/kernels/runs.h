/* runs.h: runs of equal neighbours of text in one pass: first elements are kept, in order; and the
 * lengths of runs of anything. Runs of words are a compaction (compact.h).
 *
 * A tile's first elements are counted warp by warp, what earlier tiles have is found by looking
 * back, and each goes straight to its place: neighbours go to neighbouring places. The text defines
 * PATH_ITEMS. */
#include "order.h"
#include "lookback.h"

#define RUNS_TILE (PATH_THREADS * PATH_ITEMS)
#define RUNS_WARPS (PATH_THREADS / 32)

FN void put_index(void *p, i64 at, u64 x, u32 is_wide) {
    if (is_wide) {
        ((u64 *)p)[at] = x;
    } else {
        ((u32 *)p)[at] = (u32)x;
    }
}

KERNEL(k_runs, struct kruns, PATH_THREADS) {
    SHARED(u32, s_ticket, 1);
    SHARED(u32, s_heads, PATH_ITEMS * RUNS_WARPS);
    SHARED(u64, s_before, 1);
    const K *keys = (const K *)args.keys;
    i64 tiles = (args.count + RUNS_TILE - 1) / RUNS_TILE;
    i64 tile = b_ticket(args.ticket, s_ticket);
    i64 first = tile * RUNS_TILE + (i64)t_id();
    K key[PATH_ITEMS];
    u32 heads[PATH_ITEMS];
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        i64 at = first + (i64)k * PATH_THREADS;
        u32 is_head = 0;
        if (at < args.count) {
            key[k] = keys[at];
            is_head = at == 0 || !key_same(keys[at - 1], key[k], &args.order);
        }
        heads[k] = w_ballot((i32)is_head);
        if (t_lane() == 0) {
            s_heads[k * RUNS_WARPS + (t_id() >> 5)] = bits_set_u32(heads[k]);
        }
    }
    b_sync();
    if (t_id() < 32u) {
        u32 all = 0;
        for (u32 k = 0; k < PATH_ITEMS * RUNS_WARPS; k += 32u) {
            u32 n = k + t_lane() < PATH_ITEMS * RUNS_WARPS ? s_heads[k + t_lane()] : 0u;
            u32 upto = w_sum_upto_u32(n);
            if (k + t_lane() < PATH_ITEMS * RUNS_WARPS) {
                s_heads[k + t_lane()] = all + upto - n;
            }
            all += w_from_u32(upto, 31);
        }
        u64 before = w_look_back(args.state, tile, all);
        if (t_id() == 0) {
            *s_before = before;
            if (tile == tiles - 1) {
                *args.total = before + all;
            }
        }
    }
    b_sync();
    UNROLL for (u32 k = 0; k < PATH_ITEMS; k++) {
        i64 at = first + (i64)k * PATH_THREADS;
        u32 lower = heads[k] & ((1u << t_lane()) - 1u);
        i64 to = (i64)*s_before + s_heads[k * RUNS_WARPS + (t_id() >> 5)] + bits_set_u32(lower);
        if ((heads[k] >> t_lane() & 1u) && to < args.room) {
            if (args.out_keys) {
                ((K *)args.out_keys)[to] = key[k];
            }
            if (args.out_starts) {
                put_index(args.out_starts, to, (u64)at, args.starts_wide);
            }
        }
    }
}

/* Lengths of runs, from where they start. */
KERNEL(k_run_counts, struct kruns, PATH_THREADS) {
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < args.runs;
         i += (i64)t_blocks() * t_count()) {
        u64 start = args.starts_wide ? ((const u64 *)args.out_starts)[i]
                                     : ((const u32 *)args.out_starts)[i];
        u64 end = (u64)args.count;
        if (i + 1 < args.runs) {
            end = args.starts_wide ? ((const u64 *)args.out_starts)[i + 1]
                                   : ((const u32 *)args.out_starts)[i + 1];
        }
        put_index(args.out_counts, i, end - start, args.counts_wide);
    }
}
