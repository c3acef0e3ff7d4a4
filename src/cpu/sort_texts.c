/* sort_texts.c: texts of rows that are sorted in runs: they go with their rows.
 *
 * A row has a view of its text. Where texts lie in temporary space, following the views of sorted rows would
 * read that in no order, a page for each. So texts are copied with the rows of a run, lie in the order
 * of its rows behind them, and whoever reads the rows reads them one after the other. Texts that lie in
 * memory stay where they are. See decision 0065. */
#include "cpu/sort_int.h"

enum {
    TOGETHER = 16 << 10, /* bytes that are written at once */
    AT_ONCE = 1024       /* rows that are read at once */
};

static void copy_bytes(const struct memory *mem, u8 *to, const u8 *from, i64 bytes) {
    if (bytes) {
        mem_copy(mem, to, from, bytes);
    }
}

const b8 *texts_aside(const struct sort *s) {
    u32 cols = s->chunk_count ? s->chunks[0]->col_count : 0;
    b8 *out = NEW_ARRAY(s->x->arena, b8, cols + 1);
    bool any = false;
    for (u32 c = 0; c < cols && s->decoded; c++) {
        out[c] = s->decoded[c] != NULL;
        any = true;
    }
    for (i64 k = 0; k < s->chunk_count && s->x->mem->temp; k++) {
        for (u32 c = 0; c < cols; c++) {
            out[c] = out[c] || texts_lie_aside(s->x->mem, s->chunks[k], c);
            any = any || out[c];
        }
    }
    return any ? out : NULL;
}

u32 texts_common_aside(const struct sort *s, const struct chunk *chunk, u32 c, u32 most) {
    const struct column *col = &chunk->cols[c];
    struct memory *mem = s->x->mem;
    for (i64 at = 0; at < chunk->rows && most; at += AT_ONCE) {
        str text[AT_ONCE];
        i64 n = MIN_OF(chunk->rows - at, (i64)AT_ONCE);
        const b8 *nulls = col->nulls ? col->nulls + at : NULL;
        mem_copy(mem, text, (const str *)col->data + at, n * (i64)sizeof *text);
        i64 bytes = MAX_OF(texts_bytes(text, nulls, n), 1);
        u8 *some = mem_alloc(mem, bytes);
        if (!some) {
            return 0; /* as good, only slower */
        }
        (void)texts_bring(mem, text, nulls, n, some);
        most = texts_common(text, nulls, n, s->sample, most);
        mem_free(mem, some, bytes);
    }
    return most;
}

/* of a run that is put in order */

static i64 task_count(const struct sort *s) {
    return (s->want + GATHER_ROWS - 1) / GATHER_ROWS;
}

static i64 *starts_of(const struct sort *s, u32 col) {
    return s->text_starts + col * (task_count(s) + 1);
}

static i64 starts_bytes(const struct sort *s) {
    return s->col_count * (task_count(s) + 1) * (i64)sizeof(i64);
}

static void measure_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct sort *s = arg;
    i64 end = MIN_OF((t + 1) * GATHER_ROWS, s->want);
    for (u32 c = 0; c < s->col_count; c++) {
        i64 bytes = 0;
        for (i64 row = t * GATHER_ROWS; row < end && s->beside[c]; row++) {
            i64 i;
            const struct column *col = sort_column(s, c, sort_place(s, row), &i);
            bytes += ((const str *)col->data)[i].len;
        }
        starts_of(s, c)[t + 1] = bytes;
    }
}

wf_status texts_measure(struct sort *s) {
    if (!s->beside) {
        return ERR_OK;
    }
    s->text_starts = mem_alloc(s->x->mem, starts_bytes(s));
    if (!s->text_starts) {
        return memory_refused(s->x->mem, s->x->err, starts_bytes(s));
    }
    tasks_run(s->x, task_count(s), measure_task, s);
    for (u32 c = 0; c < s->col_count; c++) {
        i64 *starts = starts_of(s, c);
        starts[0] = 0;
        for (i64 t = 0; t < task_count(s); t++) {
            starts[t + 1] += starts[t];
        }
    }
    return ERR_OK;
}

i64 texts_total(const struct sort *s, u32 col) {
    return starts_of(s, col)[task_count(s)];
}

void texts_measured(struct sort *s) {
    if (s->text_starts) {
        mem_free(s->x->mem, s->text_starts, starts_bytes(s));
        s->text_starts = NULL;
    }
}

void texts_put(const struct sort *s, u32 col, i64 task, str *text, i64 n) {
    struct memory *mem = s->x->mem;
    u8 together[TOGETHER];
    i64 *at = &starts_of(s, col)[task], held = 0; /* nobody else asks where the task began */
    u8 *texts = s->out->buffers[2 * col]->data + texts_offset(s->want);
    for (i64 i = 0; i < n; i++) {
        const void *from = (const void *)(size_t)text[i].addr;
        i64 len = text[i].len;
        if (held + len > TOGETHER) {
            copy_bytes(mem, texts + *at, together, held);
            *at += held;
            held = 0;
        }
        text[i].addr = (u64)(size_t)(texts + *at + held);
        if (len > TOGETHER) {
            mem_copy(mem, texts + *at, from, len);
            *at += len;
        } else if (len) {
            memcpy(together + held, from, (size_t)len);
            held += len;
        }
    }
    copy_bytes(mem, texts + *at, together, held);
    *at += held;
}
