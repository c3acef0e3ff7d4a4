/* top_text.h: the first rows of an order in which a text decides; the text half of sink_top.c. */
#ifndef WF_CPU_TOP_TEXT_H
#define WF_CPU_TOP_TEXT_H

#include "cpu/cpu_int.h"

/* As fn_str_cmp, by the library's words, which know the processor. */
static inline i32 compare_texts(str a, str b) {
    if (a.prefix != b.prefix) {
        return a.prefix < b.prefix ? -1 : 1;
    }
    const void *p = (const void *)(size_t)a.addr;
    const void *q = (const void *)(size_t)b.addr;
    u64 shared = MIN_OF(a.len, b.len); /* an empty text may lie nowhere */
    i32 order = shared ? memcmp(p, q, (size_t)shared) : 0;
    order = (order > 0) - (order < 0);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

struct text_top;  /* what the workers of a pipeline share */
struct text_heap; /* a worker's k least rows */

/* For the first k rows by a word, then a text. `last`: no further key tells rows apart. */
struct text_top *text_top_new(struct arena *arena, i64 k, b8 descending, b8 last);

/* Rows by their keys: word (NULL: equal in all rows), then text, which is empty where nulls (or
 * NULL) says so. */
struct text_rows {
    const u64 *word;
    const str *text;
    const b8 *nulls;
    i64 count;
};

/* Writes the numbers of those of the rows that may be among the first k to `out`, ascending, and
 * takes them into account; returns how many. *io_heap is NULL at a worker's first call. */
i64 text_top_select(struct worker *w, struct text_top *top, struct text_heap **io_heap,
                    const struct text_rows *rows, u32 *out);

/* The greatest word that is still of use. */
u64 text_top_word(const struct text_top *top, const struct text_heap *heap);

#endif
