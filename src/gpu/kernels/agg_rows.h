/* agg_rows.h: groups that were put aside and come back: the edges of runs, parts of the keys, tables that grow. */
#include "agg_slots.h"

/* Bounds of a stretch of tiles: some, first, last. The next ones behind those before. */
FN u32 bounds_join(u64 *all, const u64 *next) {
    u32 descends = next[0] && all[0] && (i64)next[1] < (i64)all[2];
    if (next[0]) {
        all[1] = all[0] ? all[1] : next[1];
        all[2] = next[2];
        all[0] = 1;
    }
    return descends;
}

/* The bounds that the threads of a block have, in their order: each compares its own with those before
 * that are some. The first thread gets all of them together. */
FN u32 bounds_join_all(const u64 *s_bounds, u32 count, u64 *all) {
    const u64 *mine = s_bounds + 3u * t_id();
    u32 before = t_id();
    while (t_id() < count && before > 0 && !s_bounds[3u * (before - 1u)]) {
        before--;
    }
    u32 compares = t_id() < count && mine[0] && before > 0;
    u32 descends = compares && (i64)mine[1] < (i64)s_bounds[3u * (before - 1u) + 2u];
    if (t_id() == 0) {
        u32 first = 0;
        u32 end = count;
        while (first < count && !s_bounds[3u * first]) {
            first++;
        }
        while (end > 0 && !s_bounds[3u * (end - 1u)]) {
            end--;
        }
        all[0] = end > 0;
        all[1] = end > 0 ? s_bounds[3u * first + 1u] : 0u;
        all[2] = end > 0 ? s_bounds[3u * (end - 1u) + 2u] : 0u;
    }
    return descends;
}

KERNEL(k_agg_order, struct kagg_edges, 256) {
    SHARED(u64, s_bounds, 768);
    SHARED(u32, s_last, 1);
    u64 each = (args.count + (u64)t_blocks() * t_count() - 1) / ((u64)t_blocks() * t_count());
    u64 first = ((u64)t_block() * t_count() + t_id()) * each;
    u64 *mine = s_bounds + 3u * t_id();
    u64 all[3];
    u32 descends = 0;
    mine[0] = 0;
    for (u64 t = first; t < first + each && t < args.count; t++) {
        const u64 *edges = args.agg.bounds + AGG_BOUNDS(args.agg.word_count) * t;
        const u64 bounds[3] = {edges[0], edges[1], edges[2u + args.agg.word_count]};
        descends |= bounds_join(mine, bounds);
    }
    b_sync();
    descends |= bounds_join_all(s_bounds, t_count(), all);
    if (t_id() == 0) {
        for (u32 k = 0; k < 3u; k++) {
            args.parts[3u * t_block() + k] = all[k];
        }
        mem_fence();
        *s_last = atom_add_u64(&args.parts[3u * t_blocks()], 1) + 1u == t_blocks();
        mem_fence();
    }
    b_sync();
    if (*s_last) { /* at most as many blocks as threads */
        for (u32 k = 0; k < 3u; k++) {
            mine[k] = t_id() < t_blocks() ? read_u64(&args.parts[3u * t_id() + k]) : 0u;
        }
        b_sync();
        descends |= bounds_join_all(s_bounds, t_blocks(), all);
    }
    if (descends) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_ORDER);
    }
}

/* The first and the last run of every tile, to the table. */
KERNEL(k_agg_edges, struct kagg_edges, 256) {
    u32 fresh = 0;
    BUILD_ROWS(i, 2 * (i64)args.count) {
        const u64 *edges = args.agg.bounds + AGG_BOUNDS(args.agg.word_count) * (u64)(i / 2);
        const u64 *run = edges + 1u + (u64)(i % 2) * (1u + args.agg.word_count);
        if (edges[0] > (u64)(i % 2)) {
            u64 *at = agg_find(&args.agg, args.agg.word_count, (i64)run[0], args.report, &fresh);
            for (u32 w = 0; at && w < args.agg.word_count; w++) {
                word_atom(args.agg.word_ops[w], at + 1u + w, (i64)run[1u + w]);
            }
        }
    }
    w_agg_count(&args.agg, fresh, args.report);
}

/* Groups of a hash table, of one part of the keys, to rows. */
KERNEL(k_agg_pack, struct kagg_rows, 256) {
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    u64 words = 1u + args.agg.word_count;
    u64 slots = args.agg.slot_count + 1;
    for (u64 first = (u64)t_block() * t_count(); first < slots;
         first += (u64)t_blocks() * t_count()) {
        u64 slot = first + t_id();
        const u64 *row = args.agg.state + slot * words;
        u32 used = slot < slots && agg_in_use(&args.agg, 0, slot) && agg_is_of_part(&args.agg, row[0]);
        struct b_place place = b_reserve(used, s_sums, s_base, args.counter);
        for (u64 w = 0; used && w < words; w++) {
            args.rows[w * args.stride + place.base + place.first] = row[w];
        }
    }
}

/* Adds a group to a table: what its words hold is at[w * stride]. */
FN void agg_merge(const struct kagg *agg, u64 key, const u64 *words, u64 stride, u64 *report,
                  u32 *fresh) {
    u64 *at = agg_find(agg, agg->word_count, (i64)key, report, fresh);
    for (u32 w = 0; at && w < agg->word_count; w++) {
        word_atom(agg->word_ops[w], at + 1u + w, (i64)words[w * stride]);
    }
}

KERNEL(k_agg_merge, struct kagg_rows, 256) {
    u32 fresh = 0;
    BUILD_ROWS(i, (i64)args.count) {
        agg_merge(&args.agg, args.rows[i], args.rows + args.stride + i, args.stride, args.report,
                  &fresh);
    }
    agg_count(&args.agg, fresh, args.report);
}

KERNEL(k_agg_move, struct kagg_move, 256) {
    u64 words = 1u + args.from.word_count;
    u32 fresh = 0;
    BUILD_ROWS(i, (i64)args.from.slot_count + 1) {
        const u64 *row = args.from.state + (u64)i * words;
        if (agg_in_use(&args.from, 0, (u64)i)) {
            agg_merge(&args.agg, row[0], row + 1, 1, args.report, &fresh);
        }
    }
    agg_count(&args.agg, fresh, args.report);
}
