/* build.h: building an index over rows.
 *
 * A build first assumes unique keys and one launch; the first duplicate asks for the general form,
 * runs of row numbers (build_runs.h). A slot of two words is claimed through its row number, and the
 * claimant's key is read from the rows themselves, so nobody waits for a key to be written. */
#include "build_rows.h"

/* Whether a lane before this one has its key. All lanes come. */
FN_SLOW u32 w_key_mates(u64 key, u32 there) {
    const u32 mates = w_match(there ? (u32)key ^ (u32)(key >> 32) : ~t_lane());
    const u32 first = bits_set_u32((mates & (0u - mates)) - 1u);
    const u64 theirs = w_from_u64(key, first);
    const u32 they = w_from_u32(there, first);
    return there && they && first < t_lane() && theirs == key;
}

/* The same; not all that do are found where keys are mixed. Most keys have one row, so that neighbours are looked
 * at first. */
FN u32 w_key_repeats(u64 key, u32 there) {
    const u32 mix = there ? (u32)key ^ (u32)(key >> 32) : t_lane();
    const u32 before = w_up_u32(mix, 1);
    const u32 near = there && t_lane() && before == mix;
    return w_ballot((i32)near) ? w_key_mates(key, there) : 0u;
}

/* Claims a slot of two words for row i's key; whether the key was there. */
FN u32 build_claim(const struct kbuild *b, i64 i) {
    i64 key = b->key[i];
    u64 run = (u64)(i + 1) << 32 | (u64)i;
    u64 mask = b->slot_count - 1;
    u64 slot = hash_64((u64)key) & mask;
    u64 held = atom_cas_u64(&b->slots[2 * slot + 1], 0, run);
    TABLE_WALK(slot, mask, held, atom_cas_u64(&b->slots[2 * slot + 1], 0, run),
               held && b->key[(held >> 32) - 1] != key)
    if (!held) {
        b->slots[2 * slot] = (u64)key;
    }
    return held != 0;
}

FN u64 pack_field(const struct kpack_field *f, i64 i, u32 *bad) {
    const i64 value = f->bytes == 8   ? ((const i64 *)f->data)[i]
                      : f->bytes == 4 ? ((const i32 *)f->data)[i]
                      : f->bytes      ? f->data[i]
                                      : f->lo;
    const u64 above = (u64)value - (u64)f->lo;
    const u64 null = f->null_bit && f->nulls && f->nulls[i];
    *bad |= above >> f->bits != 0 && !null;
    return (above & ((1ULL << f->bits) - 1u)) << f->shift | (f->null_bit ? null << (f->null_bit - 1u) : 0u);
}

KERNEL(k_build_pack, struct kbuild_pack, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 bad = 0;
    BUILD_ROWS(i, row_count) {
        u64 packed = 0;
        for (u32 k = 0; k < args.count; k++) {
            packed |= pack_field(&args.fields[k], i, &bad);
        }
        args.out[i] = (u32)packed;
    }
    if (bad) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_TABLE);
    }
}

/* What the index says of row i. */
FN u32 build_value(const struct kbuild *b, i64 i) {
    return b->packed ? b->packed[i] : (u32)i;
}

/* Direct addressing, four rows a thread: all their keys, then all their places are on the way at once.
 * Whether a key was there. */
FN u32 build_direct(const struct kbuild *b, i64 row_count) {
    u32 duplicate = 0;
    const i64 step = (i64)t_count();
    for (i64 first = (i64)t_block() * step * 4 + t_id(); first - (i64)t_lane() < row_count;
         first += (i64)t_blocks() * step * 4) {
        u64 number[4];
        u32 there = 0;
        UNROLL for (u32 k = 0; k < 4; k++) {
            i64 i = first + (i64)k * step;
            u32 has = i < row_count && (!b->nulls || !b->nulls[i]);
            number[k] = has ? (u64)b->key[i] - (u64)b->key_lo : 0u;
            there |= has << k;
        }
        UNROLL for (u32 k = 0; k < 4; k++) {
            const u32 repeats = w_key_repeats(number[k], there >> k & 1u);
            duplicate |= repeats;
            if (there >> k & 1u && !repeats) {
                const u32 value = build_value(b, first + (i64)k * step);
                duplicate |= atom_cas_u32(&b->heads[number[k]], 0, value + 1u);
            }
        }
    }
    return duplicate;
}

/* Lookups of memory by as many threads as there may be. */
#undef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS 8
KERNEL(k_build_unique, struct kbuild, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 duplicate = 0;
    const u32 direct = args.form == KINDEX_DIRECT;
    if (direct) {
        duplicate = build_direct(&args, row_count);
    }
    BUILD_ROUNDS(i, 0, direct ? 0 : row_count) {
        const u32 there = i < row_count && (!args.nulls || !args.nulls[i]);
        const u32 repeats = w_key_repeats(there ? (u64)args.key[i] : 0u, there);
        duplicate |= repeats;
        if (there && !repeats) {
            u64 number = (u64)args.key[i] - (u64)args.key_lo;
            if (args.form == KINDEX_PAIRS) {
                u64 slot = hash_32((u32)number) & (args.slot_count - 1);
                duplicate |= pair_put_4(args.slots, args.slot_count - 1, 0, (u32)number,
                                        args.set ? 1u : build_value(&args, i) + 1u, args.set, slot);
            } else if (args.form == KINDEX_RUNS) {
                duplicate |= build_claim(&args, i);
            } else { /* RANK: that keys are unique is known */
                args.heads[rank_of(args.slots[number >> 5], number)] = build_value(&args, i);
            }
        }
    }
    if (duplicate && !args.set) {
        atom_or_u32((u32 *)&args.report[REPORT_RETRY], RETRY_DUPLICATE);
    }
}

#undef WF_MIN_BLOCKS
#define WF_MIN_BLOCKS 1

/* Slots of two words, whose rows have told keys apart, get what the index says of these. */
KERNEL(k_build_swap, struct kbuild, 256) {
    BUILD_ROWS(slot, (i64)args.slot_count) {
        const u64 run = args.slots[2 * slot + 1];
        if (run) {
            const u32 value = args.packed[(u32)run];
            args.slots[2 * slot + 1] = (u64)(value + 1u) << 32 | value;
        }
    }
}
