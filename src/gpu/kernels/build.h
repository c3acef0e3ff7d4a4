/* build.h: kernels that are not pipelines: building an index over rows, setting up and reading out
 * an aggregation.
 *
 * A build first assumes unique keys and one launch; the first duplicate asks for the general form,
 * runs of row numbers: count per slot, exclusive sums (scan.h), scatter. A hash slot is claimed through its
 * row number, and the claimant's key is read from the rows themselves, so nobody waits for a key to
 * be written. */
#include "block.h"
#include "intern.h"

#define BUILD_ROWS(i, count) \
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < (count); i += (i64)t_blocks() * t_count())

/* Claims a slot for row i's key. Row + 1 that had claimed it before; 0: it is new. */
FN u32 build_claim(const struct kbuild *b, i64 i) {
    i64 key = b->key[i];
    u64 slot = hash_64((u64)key) & (b->slot_count - 1);
    u32 held = atom_cas_u32(&b->heads[slot], 0, (u32)i + 1u);
    TABLE_WALK(slot, b->slot_count - 1, held, atom_cas_u32(&b->heads[slot], 0, (u32)i + 1u),
               held && b->key[held - 1u] != key)
    if (!held) {
        b->keys[slot] = key;
    }
    return held;
}

/* The slot of a key that has one: those before it are taken, so that all keys met were written. */
FN u64 build_slot(const struct kbuild *b, i64 key) {
    u64 slot = (u64)key - (u64)b->key_lo;
    if (b->hashed) {
        slot = hash_64((u64)key) & (b->slot_count - 1);
        i64 held = b->keys[slot];
        TABLE_WALK(slot, b->slot_count - 1, held, b->keys[slot], held != key)
    }
    return slot;
}

KERNEL(k_build_unique, struct kbuild, 256) {
    u32 duplicate = 0;
    BUILD_ROWS(i, args.row_count) {
        if (!args.nulls || !args.nulls[i]) {
            u32 held = 0;
            if (args.bits) {
                u64 slot = (u64)args.key[i] - (u64)args.key_lo;
                atom_or_u32(&args.heads[slot >> 5], 1u << (slot & 31u));
            } else if (args.hashed) {
                held = build_claim(&args, i);
            } else {
                u64 slot = (u64)args.key[i] - (u64)args.key_lo;
                held = atom_cas_u32(&args.heads[slot], 0, (u32)i + 1u);
            }
            duplicate |= held;
        }
    }
    if (duplicate && !args.set) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_DUPLICATE);
    }
}

/* cursor[slot] counts the rows of a slot; all keys have one since k_build_unique. */
KERNEL(k_build_count, struct kbuild, 256) {
    BUILD_ROWS(i, args.row_count) {
        u32 slot_of = 0xffffffffu;
        if (!args.nulls || !args.nulls[i]) {
            u64 slot = build_slot(&args, args.key[i]);
            atom_add_u32(&args.cursor[slot], 1);
            slot_of = (u32)slot;
        }
        args.slot_of[i] = slot_of;
    }
}

/* cursor holds exclusive sums, slot_count + 1 of them: writes the starts (DIRECT) or start and end
 * (HASH). */
KERNEL(k_build_starts, struct kbuild, 256) {
    i64 slots = (i64)args.slot_count;
    BUILD_ROWS(i, slots + 1) {
        if (!args.hashed) {
            args.heads[i] = args.cursor[i];
        } else if (i < slots) {
            args.heads[2 * i] = args.cursor[i];
            args.heads[2 * i + 1] = args.cursor[i + 1];
        }
    }
}

KERNEL(k_build_scatter, struct kbuild, 256) {
    BUILD_ROWS(i, args.row_count) {
        u32 slot = args.slot_of[i];
        if (slot != 0xffffffffu) {
            args.rows[atom_add_u32(&args.cursor[slot], 1)] = (u32)i;
        }
    }
}

/* --- aggregation state ----------------------------------------------------------------------- */

KERNEL(k_agg_init, struct kagg_step, 256) {
    u64 stride = args.agg.head + args.agg.word_count;
    i64 words = (i64)((args.agg.slot_count + 1) * stride);
    BUILD_ROWS(i, words) {
        u32 word = (u32)((u64)i % stride);
        u64 slot = (u64)i / stride;
        if (word >= args.agg.head) {
            args.agg.state[i] = (u64)word_identity(args.agg.word_ops[word - args.agg.head]);
        } else {
            args.agg.state[i] =
                args.agg.form == AGG_HASH && slot < args.agg.slot_count ? AGG_EMPTY : 0u;
        }
    }
}

FN i32 agg_in_use(const struct kagg *agg, u32 one, u64 slot) {
    u64 mark = agg->state[slot * (agg->head + agg->word_count) + agg->touch];
    if (one) {
        return slot == 0;
    }
    if (agg->form == AGG_HASH) {
        return slot < agg->slot_count ? mark != AGG_EMPTY : mark == AGG_EMPTY;
    }
    return slot < agg->slot_count && mark != 0;
}

/* Occupied slots to columns; REPORT_ROWS counts them from zero. */
KERNEL(k_agg_extract, struct kagg_step, 256) {
    SHARED(u32, s_sums, 32);
    SHARED(u64, s_base, 1);
    u64 stride = args.agg.head + args.agg.word_count;
    u64 slots = args.agg.slot_count + 1;
    for (u64 first = (u64)t_block() * t_count(); first < slots;
         first += (u64)t_blocks() * t_count()) {
        u64 slot = first + t_id();
        u32 used = slot < slots && agg_in_use(&args.agg, args.one, slot);
        struct b_place place = b_reserve(used, s_sums, s_base, &args.report[REPORT_ROWS]);
        if (used) {
            const u64 *row = args.agg.state + slot * stride;
            u64 to = place.base + place.first;
            u64 key = args.agg.form == AGG_HASH ? row[0] : (u64)args.agg.key_lo + slot;
            args.cols[0][to] = args.one ? 0u : key;
            for (u32 w = 0; w < args.agg.word_count; w++) {
                args.cols[1u + w][to] = row[args.agg.head + w];
            }
        }
    }
}

/* --- interners ------------------------------------------------------------------------------- */

/* Entries are distinct, so that nothing is compared. Text from the host has no hash yet. */
KERNEL(k_intern_fill, struct kintern_fill, 256) {
    u64 mask = args.intern.slot_count - 1;
    BUILD_ROWS(i, args.count) {
        u64 *entry = args.intern.entries + (u64)i * INTERN_WORDS;
        u64 hash = 0;
        if (args.is_text) {
            const u64 *words = (const u64 *)(args.intern.heap + entry[2]);
            hash = entry[1];
            for (u32 w = 0; w < ((u32)entry[1] + 7u) >> 3; w++) {
                hash = (hash ^ words[w]) * 0x9e3779b97f4a7c15ULL;
                hash ^= hash >> 29;
            }
            hash = hash_64(hash);
        } else {
            hash = intern_hash_pair((i64)entry[1], (i64)entry[2]);
        }
        entry[0] = hash;
        u64 slot = hash & mask;
        u32 held = atom_cas_u32(&args.intern.slots[slot], 0, (u32)i + 1u);
        TABLE_WALK(slot, mask, held, atom_cas_u32(&args.intern.slots[slot], 0, (u32)i + 1u), held)
    }
}
