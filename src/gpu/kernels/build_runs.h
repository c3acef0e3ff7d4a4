/* build_runs.h: an index whose keys have several rows: runs of row numbers. Count per slot, exclusive sums
 * (scan.h), scatter. */
#include "build_rows.h"

/* The slot of a key that has one: those before it are taken, so that all keys met were written. */
FN u64 build_slot(const struct kbuild *b, i64 key) {
    u64 mask = b->slot_count - 1;
    u64 number = (u64)key - (u64)b->key_lo;
    if (b->form == KINDEX_DIRECT) {
        return number;
    }
    if (b->form == KINDEX_RANK) {
        return rank_of(b->slots[number >> 5], number);
    }
    if (b->form == KINDEX_PAIRS) {
        u64 slot = hash_32((u32)number) & mask;
        u64 held = b->slots[slot];
        TABLE_WALK(slot, mask, held, b->slots[slot], (u32)held != (u32)number)
        return slot;
    }
    u64 slot = hash_64((u64)key) & mask;
    u64 held = b->slots[2 * slot];
    TABLE_WALK(slot, mask, held, b->slots[2 * slot], held != (u64)key)
    return slot;
}

/* Slots that a key's number names: what is counted in them become the heads. */
FN u32 build_is_plain(const struct kbuild *b) {
    return b->form == KINDEX_DIRECT || b->form == KINDEX_RANK;
}

/* Of rows in the order of their key: whether the one before has the same. */
FN u32 build_follows(const struct kbuild *b, i64 i) {
    return i > 0 && b->key[i] == b->key[i - 1];
}

/* cursor[slot] counts the rows of a slot; all keys have one since k_build_unique. A row keeps its slot,
 * or, where that is found at once, how many came before it. */
KERNEL(k_build_count, struct kbuild, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 longest = 0;
    u32 twins = 0;
    BUILD_ROUNDS(i, 0, row_count) {
        const u32 here = i < row_count;
        const u32 there = here && (!args.nulls || !args.nulls[i]);
        const u64 slot = there ? build_slot(&args, args.key[i]) : 0u;
        const u32 before = w_count_at(args.cursor, slot, there, 1);
        if (there) {
            longest = before >= longest ? before + 1u : longest;
        }
        if (here) {
            args.slot_of[i] = !there ? 0xffffffffu : build_is_plain(&args) ? before : (u32)slot;
            twins += args.values && build_follows(&args, i) && args.values[i] == args.values[i - 1];
        }
    }
    if (twins) {
        atom_add_u64(&args.report[REPORT_GROUPS], twins);
    }
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        u32 other = w_xor_u32(longest, mask);
        longest = other > longest ? other : longest;
    }
    if (t_lane() == 0 && longest > 1) {
        atom_max_u64(&args.report[REPORT_ROWS], longest);
    }
}

/* cursor holds exclusive sums, slot_count + 1 of them: writes the starts, or starts and ends, to the
 * slots of a hash table. */
KERNEL(k_build_starts, struct kbuild, 256) {
    i64 slots = (i64)args.slot_count;
    BUILD_ROWS(i, slots + 1) {
        u32 from = args.cursor[i];
        u32 to = i < slots ? args.cursor[i + 1] : from;
        if (args.form == KINDEX_PAIRS) {
            args.slots[i] = (u64)from << 32 | (i < slots ? (u32)args.slots[i] : 0u);
        } else if (i < slots) {
            args.slots[2 * i + 1] = from != to ? (u64)to << 32 | from : 0u;
        }
    }
}

/* Rows in the order of their key stay in it: what a slot's cursor holds is from here on the distance of
 * its rows' places from their numbers. */
KERNEL(k_build_firsts, struct kbuild, 256) {
    BUILD_ROWS(i, args.row_count) {
        if (!build_follows(&args, i)) {
            args.cursor[args.slot_of[i]] -= (u32)i;
        }
    }
}

KERNEL(k_build_scatter, struct kbuild, 256) {
    const i64 row_count = BUILD_COUNT(args);
    const u32 counts = !args.values && !build_is_plain(&args);
    BUILD_ROUNDS(i, 0, row_count) {
        const u32 slot_of = i < row_count ? args.slot_of[i] : 0xffffffffu;
        const u32 there = slot_of != 0xffffffffu;
        const u32 place = counts ? w_count_at(args.cursor, slot_of, there, 1) : 0u;
        if (!there) {
            continue;
        }
        if (args.values) {
            args.rows[build_is_plain(&args) ? (u32)i : args.cursor[slot_of] + (u32)i] = (u32)i;
        } else {
            args.rows[counts ? place : args.cursor[build_slot(&args, args.key[i])] + slot_of] = (u32)i;
        }
    }
}
