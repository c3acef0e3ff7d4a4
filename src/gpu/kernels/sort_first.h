/* sort_first.h: selection of the first rows, a block's own sort of few rows, rows in their new order. */
#include "sort_word.h"

KERNEL(k_sort_count, struct ksort_select, SORT_THREADS) {
    SHARED(u32, s_counts, 1 << SORT_DIGIT_BITS);
    for (u32 d = t_id(); d < 1u << SORT_DIGIT_BITS; d += t_count()) {
        s_counts[d] = 0;
    }
    b_sync();
    u32 mask = (1u << args.digit_bits) - 1u;
    SORT_ROWS(i, args.rows) {
        u64 top = args.words[i] >> args.shift;
        if (top >> args.digit_bits == args.bound) {
            atom_add_u32(&s_counts[(u32)top & mask], 1);
        }
    }
    b_sync();
    for (u32 d = t_id(); d < 1u << SORT_DIGIT_BITS; d += t_count()) {
        if (s_counts[d]) {
            atom_add_u64(&args.counts[d], s_counts[d]);
        }
    }
}

/* The warp's rows that `taken` names, behind those of others. */
FN void sort_append(u32 *out, u64 *count, i32 taken, u32 row) {
    u32 all = w_ballot(taken);
    u64 at = 0;
    if (t_lane() == 0 && all) {
        at = atom_add_u64(count, bits_set_u32(all));
    }
    at = w_from_u64(at, 0);
    if (taken) {
        out[at + bits_set_u32(all & ((1u << t_lane()) - 1u))] = row;
    }
}

/* In any order: row numbers are part of the keys that follow. */
KERNEL(k_sort_take, struct ksort_select, SORT_THREADS) {
    i64 step = (i64)t_blocks() * t_count();
    for (i64 base = (i64)t_block() * t_count(); base < args.rows; base += step) {
        i64 i = base + t_id();
        u64 word = i < args.rows ? args.words[i] : 0u;
        u64 top = word >> args.shift;
        i32 wanted = i < args.rows && word >= args.least;
        u32 row = i < args.rows && args.order ? args.order[i] : (u32)i;
        if (args.less) {
            sort_append(args.less, args.counts + 1, wanted && top < args.bound, row);
            sort_append(args.out_rows, args.counts, wanted && top == args.bound, row);
        } else {
            sort_append(args.out_rows, args.counts, wanted && top <= args.bound, row);
        }
    }
}

/* Whether a row lies up to the words that the last of the first rows is expected to have. */
FN_SLOW b8 sort_within(const struct ksort *a, i64 row) {
    for (u32 l = 0; l < a->cut_count; l++) {
        u64 word = sort_word(a, &a->levels[l], row) >> (l + 1u == a->cut_count ? a->cut_shift : 0u);
        if (word != a->cuts[l]) {
            return (b8)(word < a->cuts[l]);
        }
    }
    return 1;
}

/* The rows up to a place that was expected to have enough of them, and all where there is room. */
KERNEL(k_sort_first, struct ksort, SORT_THREADS) {
    i64 known = sort_known(args.rows, args.rows_at);
    i64 step = (i64)t_blocks() * t_count();
    u32 misfits = 0;
    for (i64 base = (i64)t_block() * t_count(); base < known; base += step) {
        i64 i = base + t_id();
        i32 wanted = 0;
        if (i < known) {
            misfits |= sort_misfits(&args, i);
            wanted = known <= args.room || sort_within(&args, i);
        }
        u32 all = w_ballot(wanted);
        u64 at = 0;
        if (t_lane() == 0 && all) {
            at = atom_add_u64(args.count, bits_set_u32(all));
        }
        at = w_from_u64(at, 0) + bits_set_u32(all & ((1u << t_lane()) - 1u));
        if (wanted && at < (u64)args.room) {
            args.out_rows[at] = (u32)i;
        }
    }
    if (misfits) {
        atom_or_u64(args.report, 1);
    }
}

/* Whether they were enough, and not too many: then all is to be done again. */
KERNEL(k_sort_enough, struct ksort, 32) {
    if (t_id() == 0) {
        i64 known = sort_known(args.rows, args.rows_at);
        i64 count = (i64)*args.count;
        if (count > args.room || count < (args.want < known ? args.want : known)) {
            *args.report |= 1u;
            *args.count = 0;
        }
    }
}

/* --- few rows --- */

/* Whether the row at place x comes after that at y; places are told apart last. */
FN b8 sort_after(const struct ksort *a, const u64 *s_first, u32 x, u32 y) {
    if (s_first[x] != s_first[y]) {
        return (b8)(s_first[x] > s_first[y]);
    }
    for (u32 l = 1; l < a->level_count; l++) {
        const u64 *words = a->words + (i64)l * a->rows;
        if (words[x] != words[y]) {
            return (b8)(words[x] > words[y]);
        }
    }
    return (b8)(x > y);
}

/* One block. `words` has room for every level. */
KERNEL(k_sort_few, struct ksort, SORT_FEW_THREADS) {
    SHARED(u64, s_first, SORT_FEW);
    SHARED(u32, s_place, SORT_FEW);
    u32 rows = (u32)sort_known(args.rows, args.rows_at);
    u32 misfits = 0;
    u32 size = 1;
    while (size < rows) {
        size *= 2u;
    }
    for (u32 i = t_id(); i < size; i += t_count()) {
        s_place[i] = i;
        if (i < rows) {
            i64 row = args.order ? (i64)args.order[i] : (i64)i;
            s_first[i] = sort_word(&args, args.levels, row);
            misfits |= args.keys ? sort_misfits(&args, row) : 0u;
            for (u32 l = 1; l < args.level_count; l++) {
                args.words[(i64)l * args.rows + i] = sort_word(&args, args.levels + l, row);
            }
        }
    }
    b_sync();
    for (u32 run = 2; run <= size; run *= 2u) {
        for (u32 by = run / 2u; by > 0; by /= 2u) {
            for (u32 k = t_id(); k < size / 2u; k += t_count()) {
                u32 i = 2u * k - (k & (by - 1u));
                u32 x = s_place[i];
                u32 y = s_place[i + by];
                /* what is beyond the rows comes last */
                b8 after = (b8)(y >= rows ? 0 : x >= rows ? 1 : sort_after(&args, s_first, x, y));
                b8 down = (b8)((i & run) != 0);
                if (x != y && after != down) {
                    s_place[i] = y;
                    s_place[i + by] = x;
                }
            }
            b_sync();
        }
    }
    for (u32 i = t_id(); i < rows; i += t_count()) {
        u32 x = s_place[i];
        args.out_rows[i] = args.order ? args.order[x] : x;
    }
    if (misfits) {
        atom_or_u64(args.report, 1);
    }
}

/* --- rows in their order --- */

KERNEL(k_sort_gather, struct ksort_gather, SORT_THREADS) {
    i64 rows = sort_known(args.rows, args.rows_at);
    for (u32 c = 0; c < args.col_count; c++) {
        const struct ksort_col *col = &args.cols[c];
        SORT_ROWS(i, rows) {
            i64 row = (i64)args.order[i];
            switch (col->bytes) {
            case 1:
                col->out[i] = col->in[row];
                break;
            case 4:
                ((u32 *)col->out)[i] = ((const u32 *)col->in)[row];
                break;
            case 8:
                ((u64 *)col->out)[i] = ((const u64 *)col->in)[row];
                break;
            default:
                store16(col->out + 16 * i, load16(col->in + 16 * row));
                break;
            }
        }
    }
}

KERNEL(k_sort_number, struct ksort_number, SORT_THREADS) {
    SORT_ROWS(i, args.rows) {
        args.out[args.order ? (i64)args.order[i] : i] = (u32)i;
    }
}
