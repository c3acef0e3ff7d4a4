/* grow.h: indexes that grow.
 *
 * Rows are added by three kernels: their keys get slots and are counted there, runs without room for what
 * is counted move to where they have it, the rows' numbers are put behind those of their runs. A run of n
 * rows has room for the next power of two, so that all additions together copy each row number about
 * once. Without room the report says so, and what the index then is nobody knows. */
#include "build_rows.h"

#define GROW_FULL(args) (read_u64(&(args).report[REPORT_RETRY]) != 0)

/* The slot of row i's key, which it may make. ~0: there is none left. */
FN u64 grow_slot(const struct kgrow *g, i64 i) {
    const i64 key = g->key[i];
    const u64 mask = g->slot_count - 1;
    u64 slot = hash_64((u64)key) & mask;
    for (;;) {
        u32 owner = read_u32(&g->owners[slot]);
        if (!owner) {
            if (read_u64(&g->words[GROW_KEYS]) >= g->key_limit) {
                return ~0ULL;
            }
            owner = atom_cas_u32(&g->owners[slot], 0, (u32)i + 1u);
            if (!owner) {
                g->slots[2 * slot] = (u64)key;
                atom_take_u64(&g->words[GROW_KEYS], 1);
                return slot;
            }
        }
        if (g->key[owner - 1u] == key) {
            return slot;
        }
        slot = (slot + 1) & mask;
    }
}

KERNEL(k_grow_count, struct kgrow, 256) {
    const i64 end = args.range->end;
    u32 full = 0;
    BUILD_ROUNDS(i, args.range->first, end) {
        const u32 asks = !full && i < end && !(args.nulls && args.nulls[i]);
        const u64 slot = asks ? grow_slot(&args, i) : 0u;
        full |= slot == ~0ULL;
        const u32 there = asks && !full;
        const u32 before = w_count_at(args.more, slot, there, 1);
        if (there && !before) {
            args.touched[atom_take_u64(&args.report[REPORT_GROUPS], 1)] = (u32)slot;
        }
    }
    if (full) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_TABLE);
    }
}

/* The least power of two that is no less. */
FN u64 grow_room(u64 rows) {
    u64 room = rows ? 1u : 0u;
    while (room < rows) {
        room *= 2;
    }
    return room;
}

/* A warp a run. */
KERNEL(k_grow_place, struct kgrow, 256) {
    if (GROW_FULL(args)) {
        return;
    }
    const u64 count = args.report[REPORT_GROUPS];
    const u64 warps = (u64)t_blocks() * (t_count() / 32u);
    for (u64 n = (u64)t_block() * (t_count() / 32u) + t_id() / 32u; n < count; n += warps) {
        const u32 slot = args.touched[n];
        const u64 run = args.slots[2u * (u64)slot + 1u];
        const u64 from = (u32)run;
        const u64 had = (run >> 32) - from;
        const u64 has = had + args.more[slot];
        const u64 room = grow_room(has);
        const u32 moves = has > grow_room(had);
        u64 to = moves && t_lane() == 0 ? atom_add_u64(&args.words[GROW_USED], room) : 0u;
        to = moves ? w_from_u64(to, 0) : from;
        const u32 fits = !moves || to + room <= args.row_room;
        for (u64 k = t_lane(); moves && fits && k < had; k += 32u) {
            args.rows[to + k] = args.rows[from + k];
        }
        w_sync();
        if (t_lane() == 0 && fits) {
            args.slots[2u * (u64)slot + 1u] = (to + has) << 32 | to;
            atom_max_u64(&args.report[REPORT_COUNTS], has);
        }
        if (t_lane() == 0 && !fits) {
            atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_OUTPUT);
        }
    }
}

KERNEL(k_grow_rows, struct kgrow, 256) {
    const u64 mask = args.slot_count - 1;
    if (GROW_FULL(args)) {
        return;
    }
    const i64 end = args.range->end;
    BUILD_ROUNDS(i, args.range->first, end) {
        const u32 there = i < end && !(args.nulls && args.nulls[i]);
        const i64 key = there ? args.key[i] : 0;
        u64 slot = hash_64((u64)key) & mask;
        if (there) {
            u64 held = args.slots[2 * slot];
            TABLE_WALK(slot, mask, held, args.slots[2 * slot], held != (u64)key)
        }
        const u32 left = w_count_at(args.more, slot, there, ~0u);
        if (there) {
            args.rows[(args.slots[2 * slot + 1] >> 32) - left] = (u32)i;
        }
    }
    if (t_block() == 0 && t_id() == 0 && args.range->end > args.range->first) {
        args.report[REPORT_ROWS] = (u64)args.range->end;
    }
}
