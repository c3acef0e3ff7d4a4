/* words.h: the words of a group's sum, which lie in columns that follow each other. */
#ifndef WF_WORDS_H
#define WF_WORDS_H

#include "block.h"

FN i64 seg_word(const struct kseg *seg, i64 row) {
    switch (seg->form) {
    case SEG_U8:
        return (i64)(seg->base + seg->data[row]);
    case SEG_U16:
        return (i64)(seg->base + ((const u16 *)seg->data)[row]);
    case SEG_U32:
        return (i64)(seg->base + ((const u32 *)seg->data)[row]);
    case SEG_U64:
        return (i64)(seg->base + ((const u64 *)seg->data)[row]);
    case SEG_I32:
        return ((const i32 *)seg->data)[row];
    case SEG_I64:
        return ((const i64 *)seg->data)[row];
    case SEG_SERIES:
        return (i64)(seg->base + (u64)row * seg->base_high);
    default:
        return (i64)seg->base;
    }
}

/* Of `count` columns, their segments `stride` apart. */
FN_SLOW void load_words(i64 *out, const struct kseg *segs, u64 stride, u32 count, i64 row) {
    NO_UNROLL
    for (u32 i = 0; i < count; i++) {
        out[i] = seg_word(segs + i * stride, row);
    }
}

#endif
