/* sort_word.h: keys of a sort as words.
 *
 * Numbers order as on the CPU: floats with one zero and NaN the greatest, codes by the rank of
 * their text, text by bytes. A piece of text is up to seven bytes and a count of those that are the
 * text's: equal pieces are equal texts unless the count says that there is more. */
#ifndef WF_SORT_WORD_H
#define WF_SORT_WORD_H

#include "sort_value.h"

/* `bytes` bytes from `skip` on, the first highest, and their number. */
FN u64 sort_piece(const struct ksort_part *p, struct sort_chars s) {
    u32 left = s.len > p->skip ? s.len - p->skip : 0u;
    u64 piece = 0;
    for (u32 k = 0; k < p->bytes; k++) {
        piece = piece << 8 | (k < left ? s.at[(p->skip + k) ^ s.flip] : 0u);
    }
    piece = piece << SORT_LEN_BITS | (left > p->bytes ? (u32)SORT_MORE : left);
    u64 all = ~0ULL >> (64u - p->bits);
    return p->descending ? ~piece & all : piece;
}

FN_SLOW u64 sort_part_value(const struct ksort_part *p, i64 row, struct ktexts texts) {
    b8 is_null = sort_is_null(p, row);
    if (p->form == SORT_ROW) {
        return (u64)row;
    }
    if (p->form == SORT_NULLS) {
        return (u64)(is_null ? !p->nulls_first : p->nulls_first);
    }
    if (is_null) {
        return p->form == SORT_WHOLE && p->with_nulls ? p->null_number : 0u;
    }
    if (p->form == SORT_PIECE) {
        return sort_piece(p, sort_text(p, row, texts));
    }
    u128 v = sort_number(p, row);
    if (p->form == SORT_WHOLE) {
        u128 lo = (u128)p->lo[1] << 64 | p->lo[0];
        u128 hi = (u128)p->hi[1] << 64 | p->hi[0];
        return (u64)(p->descending ? hi - v : v - lo) + (u64)(p->with_nulls && p->nulls_first);
    }
    u64 half = p->form == SORT_HIGH ? (u64)(v >> 64) : (u64)v;
    return p->descending ? ~half : half;
}

FN u64 sort_word(const struct ksort *a, const struct ksort_level *level, i64 row) {
    u64 word = 0;
    for (u32 k = 0; k < level->count; k++) {
        const struct ksort_part *p = &a->parts[level->first + k];
        word = p->bits == 64u ? 0u : word << p->bits;
        word |= sort_part_value(p, row, a->texts);
    }
    return word;
}

/* Whether the words of a row that was not measured can be wrong: a text has to begin like that of row 0. */
FN_TAIL u32 sort_misfits(const struct ksort *a, i64 row) {
    u32 misfits = 0;
    for (u32 k = 0; k < a->key_count; k++) {
        const struct ksort_part *p = &a->keys[k];
        if (sort_is_null(p, row)) {
            continue;
        }
        if (p->value == SORT_STR) {
            struct sort_chars s = sort_text(p, row, a->texts);
            struct sort_chars first = {(const u8 *)0, 0, 0};
            if (p->skip && !sort_is_null(p, 0)) {
                first = sort_text(p, 0, a->texts);
            }
            u32 same = 0;
            u32 most = first.len < s.len ? first.len : s.len;
            while (same < p->skip && same < most && s.at[same ^ s.flip] == first.at[same ^ first.flip]) {
                same++;
            }
            misfits |= same < p->skip || s.len - p->skip > p->bytes;
        } else {
            u128 v = sort_number(p, row);
            u128 lo = (u128)p->lo[1] << 64 | p->lo[0];
            u128 hi = (u128)p->hi[1] << 64 | p->hi[0];
            misfits |= v < lo || v > hi;
        }
    }
    return misfits;
}

#endif
