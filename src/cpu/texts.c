/* texts.c: texts that lie beside the rows that have views of them, moved with calls, in the order of the rows. */
#include "cpu/texts.h"

static bool is_aside(const struct memory *mem, const struct chunk *chunk, u32 c, i64 i) {
    const struct column *col = &chunk->cols[c];
    const str *text = (const str *)col->data + i;
    bool has = chunk->rows > 0 && !(col->nulls && col->nulls[i]) && text->len > 0;
    return has && mem_in_temp(mem, (const void *)(size_t)text->addr);
}

/* Some rows of a chunk tell: its texts came to their heaps one after the other. */
bool texts_lie_aside(const struct memory *mem, const struct chunk *chunk, u32 c) {
    i64 last = chunk->rows - 1;
    return chunk->cols[c].kind == KIND_STR && chunk->cols[c].data &&
           (is_aside(mem, chunk, c, 0) || is_aside(mem, chunk, c, last / 2) ||
            is_aside(mem, chunk, c, last));
}

i64 texts_bytes(const str *text, const b8 *nulls, i64 n) {
    i64 bytes = 0;
    for (i64 i = 0; i < n; i++) {
        bytes += nulls && nulls[i] ? 0 : text[i].len;
    }
    return bytes;
}

i64 texts_bring(const struct memory *mem, str *text, const b8 *nulls, i64 n, u8 *to) {
    u8 *at = to;
    const u8 *from = NULL; /* what is to be copied there: texts that follow each other */
    i64 bytes = 0;
    for (i64 i = 0; i < n; i++) {
        if (nulls && nulls[i]) {
            text[i] = (str){0, 0, 0};
        }
        const u8 *next = (const u8 *)(size_t)text[i].addr;
        if (text[i].len && next != from + bytes) {
            if (bytes) {
                mem_copy(mem, at, from, bytes);
            }
            at += bytes;
            from = next;
            bytes = 0;
        }
        text[i].addr = (u64)(size_t)(at + bytes);
        bytes += text[i].len;
    }
    if (bytes) {
        mem_copy(mem, at, from, bytes);
    }
    return at + bytes - to;
}

i64 texts_window(const str *text, i64 n, i64 cap) {
    i64 bytes = n > 0 ? text[0].len : 0, rows = MIN_OF(n, 1);
    while (rows < n && bytes + text[rows].len <= cap) {
        bytes += text[rows++].len;
    }
    return rows;
}
