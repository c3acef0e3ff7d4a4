/* sort_key.h: sort keys as 64-bit words that order like the columns. */
#ifndef WF_CPU_SORT_KEY_H
#define WF_CPU_SORT_KEY_H

#include "run/device.h"

/* A text part holds 7 bytes or fewer, then how many of them are the string's: MORE = it goes on. */
enum { TEXT_LEN_BITS = 4, TEXT_MORE = 8, TEXT_BYTES = 7 };

enum part_form { PART_WHOLE, PART_NULLS, PART_HIGH, PART_LOW, PART_TEXT };

/* One run of bits of a word: a column, its NULL flags, or half of an i128. Numbers become their
 * distance from lo (descending: from hi); with `nulls` NULL has a number of its own at the end that
 * nulls_first names. */
struct sort_part {
    u32 col;
    u8 form; /* enum part_form */
    u8 kind;
    u8 bits;
    u8 text_bytes; /* TEXT: how many bytes of the string; the first `skip` are equal in all rows */
    b8 nulls, nulls_first, descending;
    u32 skip;
    const i32 *rank; /* I32: codes are ordered by this */
    u128 lo, hi;     /* of the order numbers */
};

/* The number that orders like a value: bias away the sign, floats by their bits, codes by rank. */
u128 order_number(u8 kind, const i32 *rank, const void *data, i64 i);
/* Bounds of the order numbers of n values that are not NULL; *out_lo > *out_hi when there are none.
 */
void order_bounds(u8 kind, const i32 *rank, const void *data, const b8 *nulls, i64 n, u128 *io_lo,
                  u128 *io_hi);
/* Sets bits, given form, lo, hi and nulls. More than 64: the number does not fit a word. */
void part_measure(struct sort_part *part);
/* out[i] = out[i] << bits | the part's number, for n rows. */
void part_fill(const struct sort_part *part, const void *data, const b8 *nulls, i64 n, u64 *out);
/* The same for one row. */
u64 part_value(const struct sort_part *part, const void *data, const b8 *nulls, i64 i);
/* `bytes` bytes of s from `skip` on, and their number, flipped when descending. */
u64 text_piece(str s, u32 skip, u32 bytes, b8 descending);

static inline bool piece_goes_on(u64 piece, b8 descending) {
    return ((descending ? ~piece : piece) & ((1u << TEXT_LEN_BITS) - 1)) == TEXT_MORE;
}

#endif
