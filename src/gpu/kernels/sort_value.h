/* sort_value.h: values of sorted columns as numbers that order like them, the same on every device:
 * floats with one zero and NaN the greatest, codes by the rank of their text. Text is a column of
 * its own or an interner's, whose words have the first byte highest. */
#ifndef WF_SORT_VALUE_H
#define WF_SORT_VALUE_H

#include "text.h"

#include "defs/fn_table.h"

#include "defs/fn_order.h"
#include "defs/ksort.h"

#define SORT_ROWS(i, count) \
    for (i64 i = (i64)t_block() * t_count() + t_id(); i < (count); i += (i64)t_blocks() * t_count())

/* How many rows there are, of `most`. */
FN i64 sort_known(i64 most, const i64 *rows_at) {
    i64 known = rows_at ? *rows_at : most;
    return known < most ? known : most;
}

FN b8 sort_is_null(const struct ksort_part *p, i64 row) {
    return (b8)(p->nulls && p->nulls[row]);
}

/* Byte i of a text is at[i ^ flip]. */
struct sort_chars {
    const u8 *at;
    u32 len, flip;
};

FN str sort_str(const struct ksort_part *p, i64 row, struct ktexts texts) {
    return text_moved(texts.items, texts.count, vec_str(load16(p->data + 16 * row)));
}

FN struct sort_chars sort_text(const struct ksort_part *p, i64 row, struct ktexts texts) {
    struct sort_chars c;
    if (p->entries) {
        const u64 *entry = p->entries + (i64)((const i32 *)p->data)[row] * INTERN_WORDS;
        c.at = p->heap + entry[2];
        c.len = (u32)entry[1];
        c.flip = 7;
    } else {
        str s = sort_str(p, row, texts);
        c.at = fn_str_ptr(s);
        c.len = s.len;
        c.flip = 0;
    }
    return c;
}

FN b8 sort_same_text(const struct ksort_part *p, i64 a, i64 b, struct ktexts texts) {
    if (p->entries) {
        return (b8)(((const i32 *)p->data)[a] == ((const i32 *)p->data)[b]);
    }
    return fn_str_eq(sort_str(p, a, texts), sort_str(p, b, texts));
}

/* The number that orders like a value that is not NULL. */
FN u128 sort_number(const struct ksort_part *p, i64 row) {
    u128 high_bit = (u128)1 << 127;
    switch (p->value) {
    case SORT_B8:
        return p->data[row];
    case SORT_I32: {
        i32 x = ((const i32 *)p->data)[row];
        return (u32)(p->rank ? p->rank[x] : x) ^ 0x80000000u;
    }
    case SORT_I64:
        return ((const u64 *)p->data)[row] ^ 0x8000000000000000ULL;
    case SORT_I128: {
        vec16 v = load16(p->data + 16 * row);
        return ((u128)vec_high(v) << 64 | vec_low(v)) ^ high_bit;
    }
    case SORT_F32:
        return order_f32(((const u32 *)p->data)[row]);
    default:
        return order_f64(((const u64 *)p->data)[row]);
    }
}

#endif
