/* sort.h: the steps of sorting a variable that come before the library's: bounds of keys, keys as words. What
 * becomes of rows that are selected or sorted is in sort_first.h. */
#include "sort_word.h"

/* --- bounds --- */

/* Blocks take turns with the parts, one per key. Of text: the least common start with the first
 * row's, and the greatest length. No value: the least is greater than the greatest. */
KERNEL(k_sort_bounds, struct ksort, SORT_THREADS) {
    SHARED(u64, s_words, SORT_BOUND_WORDS * SORT_THREADS);
    u32 key = t_block() % args.part_count;
    const struct ksort_part *p = &args.parts[key];
    u128 lo = ~(u128)0;
    u128 hi = 0;
    struct sort_chars first = {(const u8 *)0, 0, 0};
    b8 no_first = 1;
    if (p->value == SORT_STR) {
        no_first = sort_is_null(p, 0);
        first = no_first ? first : sort_text(p, 0, args.texts);
    }
    i64 step = (i64)(t_blocks() / args.part_count) * SORT_THREADS;
    for (i64 i = (i64)(t_block() / args.part_count) * SORT_THREADS + t_id(); i < args.rows;
         i += step) {
        if (sort_is_null(p, i)) {
            continue;
        }
        if (p->value == SORT_STR) {
            struct sort_chars s = sort_text(p, i, args.texts);
            u32 most = s.len < first.len ? s.len : first.len;
            u32 same = 0;
            most = no_first ? 0u : (u128)most < lo ? most : (u32)lo;
            while (same < most && s.at[same ^ s.flip] == first.at[same ^ first.flip]) {
                same++;
            }
            lo = same < lo ? (u128)same : lo;
            hi = s.len > hi ? (u128)s.len : hi;
        } else {
            u128 v = sort_number(p, i);
            lo = v < lo ? v : lo;
            hi = v > hi ? v : hi;
        }
    }
    u64 *mine = s_words + SORT_BOUND_WORDS * t_id();
    mine[0] = (u64)lo;
    mine[1] = (u64)(lo >> 64);
    mine[2] = (u64)hi;
    mine[3] = (u64)(hi >> 64);
    for (u32 half = SORT_THREADS / 2; half > 0; half /= 2) {
        b_sync();
        if (t_id() < half) {
            const u64 *other = mine + SORT_BOUND_WORDS * half;
            u128 other_lo = (u128)other[1] << 64 | other[0];
            u128 other_hi = (u128)other[3] << 64 | other[2];
            lo = other_lo < lo ? other_lo : lo;
            hi = other_hi > hi ? other_hi : hi;
            mine[0] = (u64)lo;
            mine[1] = (u64)(lo >> 64);
            mine[2] = (u64)hi;
            mine[3] = (u64)(hi >> 64);
        }
    }
    if (t_id() == 0) {
        for (u32 k = 0; k < SORT_BOUND_WORDS; k++) {
            args.words[SORT_BOUND_WORDS * t_block() + k] = mine[k];
        }
    }
}

/* --- keys --- */

/* The word of the one level there is. Behind the rows that there are nothing is less. */
KERNEL(k_sort_words, struct ksort, SORT_THREADS) {
    i64 known = sort_known(args.rows, args.rows_at);
    u32 misfits = 0;
    SORT_ROWS(i, args.rows) {
        i64 row = i < known && args.order ? (i64)args.order[i] : i;
        args.words[i] = i < known ? sort_word(&args, args.levels, row) : ~0ULL;
        misfits |= i < known && args.keys ? sort_misfits(&args, row) : 0u;
        if (args.out_rows) {
            args.out_rows[i] = (u32)row;
        }
    }
    if (misfits) {
        atom_or_u64(args.report, 1);
    }
}

/* Whether rows that are neighbours agree in what was looked at of a text, but not in all of it. */
KERNEL(k_sort_unsettled, struct ksort, SORT_THREADS) {
    u32 unsettled = 0;
    SORT_ROWS(i, sort_known(args.rows, args.rows_at) - 1) {
        i64 a = (i64)args.order[i];
        i64 b = (i64)args.order[i + 1];
        b8 same = 1;
        for (u32 k = 0; k < args.part_count && same; k++) {
            const struct ksort_part *p = &args.parts[k];
            same = (b8)(sort_part_value(p, a, args.texts) == sort_part_value(p, b, args.texts));
            if (same && p->form == SORT_PIECE && p->cut && !sort_is_null(p, a)) {
                same = sort_same_text(p, a, b, args.texts);
                unsettled |= !same;
            }
        }
    }
    if (unsettled) {
        atom_or_u64(args.report, 1);
    }
}
