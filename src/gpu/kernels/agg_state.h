/* agg_state.h: setting up and reading out an aggregation. */
#include "agg_slots.h"

KERNEL(k_agg_init, struct kagg_step, 256) {
    u64 stride = args.agg.head + args.agg.word_count;
    i64 words = (i64)((args.agg.slot_count + 1) * stride);
    BUILD_ROWS(i, words) {
        u32 word = (u32)((u64)i % stride);
        u64 slot = (u64)i / stride;
        if (args.agg.narrow) {
            ((u32 *)args.agg.state)[i] = 0;
        } else if (word >= args.agg.head) {
            args.agg.state[i] = (u64)word_identity(args.agg.word_ops[word - args.agg.head]);
        } else {
            args.agg.state[i] =
                args.agg.form == AGG_HASH && slot < args.agg.slot_count ? AGG_EMPTY : 0u;
        }
    }
}

/* Of a group whose words begin at `at`. */
FN i32 agg_is_kept(const struct kagg *agg, u64 key, u64 at) {
    i32 kept = 1;
    for (u32 k = 0; k < agg->keep_count; k++) {
        struct kkeep keep = agg->keeps[k];
        i64 x = (i64)(keep.col ? agg_held(agg, at + keep.col - 1u) : key);
        kept = kept && x >= keep.lo && x <= keep.hi;
    }
    return kept;
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
        u64 words = slot * stride + args.agg.head;
        u64 key = 0;
        if (used) {
            key = args.one                     ? 0u
                  : args.agg.form == AGG_HASH ? args.agg.state[slot * stride]
                                              : (u64)args.agg.key_lo + slot;
            used = (u32)agg_is_kept(&args.agg, key, words);
        }
        struct b_place place = b_reserve(used, s_sums, s_base, &args.report[REPORT_ROWS]);
        u64 to = place.base + place.first;
        if (used && (!args.capacity || to < args.capacity)) {
            args.cols[0][to] = key;
            for (u32 w = 0; w < args.agg.word_count; w++) {
                args.cols[1u + w][to] = agg_held(&args.agg, words + w);
            }
        }
    }
}
