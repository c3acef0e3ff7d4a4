/* build_bits.h: bitmaps of keys: which keys there are, before their table is made, and the keys' numbers by rank. */
#include "build_rows.h"

/* Adds what the lanes of a warp counted. */
FN void w_report(u64 *report, u32 word, u32 count) {
    NO_UNROLL for (u32 mask = 16; mask > 0; mask >>= 1) {
        count += w_xor_u32(count, mask);
    }
    if (t_lane() == 0 && count) {
        atom_add_u64(&report[word], count);
    }
}

/* Neighbours mostly share a word: they are put together first. Lanes hand on what those before them
 * have of the same word, and the last one of a word sets it. */
KERNEL(k_build_bits, struct kbits, 256) {
    const i64 row_count = BUILD_COUNT(args);
    u32 rows = 0;
    for (i64 first = (i64)t_block() * t_count(); first < row_count;
         first += (i64)t_blocks() * t_count()) {
        i64 i = first + t_id();
        u64 bit = ~0ULL;
        if (i < row_count && (!args.nulls || !args.nulls[i])) {
            bit = ((u64)args.key[i] >> args.to.shift & args.to.mask) - (u64)args.to.lo;
        }
        u32 there = bit < args.to.count;
        rows += there;
        u32 bits = there ? 1u << (bit & 31u) : 0u;
        u32 word = there ? (u32)(bit >> 5) : ~0u; /* no card has 2^32 of them */
        UNROLL for (u32 by = 1; by < 32; by *= 2) {
            u32 their_word = w_up_u32(word, by);
            u32 their_bits = w_up_u32(bits, by);
            bits |= t_lane() >= by && their_word == word ? their_bits : 0u;
        }
        u32 next = w_from_u32(word, (t_lane() + 1u) & 31u);
        if (bits && (t_lane() == 31u || next != word) &&
            (read_u32(&args.to.bits[word]) & bits) != bits) {
            atom_or_u32(&args.to.bits[word], bits);
        }
    }
    if (args.report) {
        w_report(args.report, REPORT_COUNTS, rows);
    }
}

KERNEL(k_bits_count, struct kbits, 256) {
    u32 count = 0;
    BUILD_ROWS(i, (i64)(args.to.count >> 5) + 1) {
        count += bits_set_u32(args.to.bits[i]);
    }
    w_report(args.report, REPORT_ROWS, count);
}

/* The same, and for every RANK_WORDS words: exclusive sums of those begin the keys' numbers. */
KERNEL(k_rank_count, struct kbits, 256) {
    SHARED(u32, s_sums, 32);
    u64 words = (args.to.count >> 5) + 1u;
    u32 count = 0;
    for (u64 part = t_block(); part * RANK_WORDS < words; part += t_blocks()) {
        u32 set = 0;
        UNROLL for (u32 k = 0; k < RANK_WORDS / 256u; k++) {
            u64 at = part * RANK_WORDS + k * 256u + t_id();
            set += at < words ? bits_set_u32(args.to.bits[at]) : 0u;
        }
        u32 all = 0;
        b_sum_before_u32(set, 256, s_sums, &all);
        b_sync();
        if (t_id() == 0) {
            args.before[part] = all;
        }
        count += set;
    }
    w_report(args.report, REPORT_ROWS, count);
}

KERNEL(k_rank_words, struct kbits, 256) {
    SHARED(u32, s_sums, 32);
    u64 words = (args.to.count >> 5) + 1u;
    for (u64 part = t_block(); part * RANK_WORDS < words; part += t_blocks()) {
        u64 first = part * RANK_WORDS + t_id() * (RANK_WORDS / 256u);
        u32 bits[RANK_WORDS / 256u];
        u32 set = 0;
        UNROLL for (u32 k = 0; k < RANK_WORDS / 256u; k++) {
            bits[k] = first + k < words ? args.to.bits[first + k] : 0u;
            set += bits_set_u32(bits[k]);
        }
        u32 all = 0;
        u32 before = args.before[part] + b_sum_before_u32(set, 256, s_sums, &all);
        b_sync();
        UNROLL for (u32 k = 0; k < RANK_WORDS / 256u; k++) {
            if (first + k < words) {
                args.words[first + k] = (u64)before << 32 | bits[k];
            }
            before += bits_set_u32(bits[k]);
        }
    }
}
