/* class_texts.c: texts of rows that lie by class: they go with their rows.
 *
 * An index of which memory holds a class at a time has its rows by class in temporary space
 * (index_classes.c). Texts that lie there, too, would be read in no order by whoever shows those of the rows
 * that are found. So they are put side by side as the rows are, class by class, and a class comes to memory with its
 * texts. They go when the next class comes: sinks copy them (cpu_pipe.made). See decision 0076. */
#include "cpu/index_int.h"
#include "cpu/texts.h"

enum {
    AT_ONCE = 1024,       /* rows that are read at once */
    SOME_TEXTS = 64,      /* of a chunk, that tell how long they are */
    WINDOW_SHARE = 64,    /* of the memory that is left: rows and texts that a worker puts in order at once */
#ifdef WF_HARD
    WINDOW_LEAST = 1 << 10,
#else
    WINDOW_LEAST = 1 << 16,
#endif
    WINDOW_MOST = 4 << 20
};

struct class_texts {
    struct buffer *heap; /* the variable's; NULL: texts of the column stay where they are */
    i64 *starts;         /* in it, of every class, and where the last one ends */
    struct buffer *here; /* those of the class that is open */
};

static bool column_aside(const struct exec *x, const struct variable *v, u32 c) {
    bool aside = false;
    for (i64 k = 0; k < v->chunks.count && !aside; k++) {
        aside = texts_lie_aside(x->mem, v->chunks.items[k], c);
    }
    return aside;
}

i64 class_texts_width(const struct exec *x, u32 rows_var) {
    const struct variable *v = &x->vars[rows_var];
    i64 width = 0;
    for (u32 c = 0; c < x->program->vars[rows_var].col_count; c++) {
        i64 bytes = 0, rows = 0;
        for (i64 k = 0; k < v->chunks.count && column_aside(x, v, c); k++) {
            const struct column *col = &v->chunks.items[k]->cols[c];
            i64 n = MIN_OF(v->chunks.items[k]->rows, (i64)SOME_TEXTS);
            bytes += texts_bytes(col->data, col->nulls, n);
            rows += n;
        }
        width += rows ? bytes / rows + 1 : 0;
    }
    return width;
}

/* counting */

struct text_counts {
    const struct build *b;
    u32 col;
    i64 classes;
    i64 *bytes;       /* per chunk and class: of its texts */
    i64 *texts_place; /* ... and where they go */
    const i64 *rows_place;
    struct chunk *out;
    u8 *heap;
    i64 window_bytes;
    _Atomic i32 refused;
};

static void count_texts(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    const struct text_counts *t = arg;
    const struct chunk *chunk = t->b->chunks[c];
    const struct column *col = &chunk->cols[t->col];
    const b8 *ignored;
    const i64 *key = build_keys(t->b, c, &ignored);
    i64 *bytes = t->bytes + c * t->classes;
    for (i64 at = 0; at < chunk->rows; at += AT_ONCE) {
        str text[AT_ONCE];
        i64 n = MIN_OF(chunk->rows - at, (i64)AT_ONCE);
        mem_copy(t->b->x->mem, text, (const str *)col->data + at, n * (i64)sizeof *text);
        for (i64 i = 0; i < n; i++) {
            i64 len = col->nulls && col->nulls[at + i] ? 0 : text[i].len;
            bytes[index_class_of(t->b->index, key[at + i])] += len;
        }
    }
    chunk_pass(chunk, 0, chunk->rows);
}

/* putting in order */

struct window {
    str *text, *sorted; /* of its rows; those by class */
    u8 *some, *by_class; /* bytes of the texts; those by class */
    i64 rows, bytes;     /* that there is room for */
};

static bool window_open(struct memory *mem, i64 rows, i64 bytes, struct window *out) {
    *out = (struct window){.rows = MAX_OF(rows, 1), .bytes = MAX_OF(bytes, 1)};
    out->text = mem_alloc(mem, 2 * out->rows * (i64)sizeof(str));
    out->some = mem_alloc(mem, 2 * out->bytes);
    out->sorted = out->text ? out->text + out->rows : NULL;
    out->by_class = out->some ? out->some + out->bytes : NULL;
    return out->text && out->some;
}

static void window_close(struct memory *mem, struct window *w) {
    mem_free(mem, w->text, 2 * w->rows * (i64)sizeof(str));
    mem_free(mem, w->some, 2 * w->bytes);
}

/* Where the rows and the texts of every class go next. */
struct class_places {
    i64 rows[(1 << CLASS_BITS_MOST) + 1];
    i64 bytes[(1 << CLASS_BITS_MOST) + 1];
};

/* n rows of the window, whose texts are in memory, to their classes. */
static void put_window(const struct text_counts *t, struct window *w, const i64 *key, i64 n,
                       struct class_places *places) {
    struct memory *mem = t->b->x->mem;
    i64 ends[(1 << CLASS_BITS_MOST) + 1] = {0}, first = 0;
    for (i64 i = 0; i < n; i++) {
        ends[index_class_of(t->b->index, key[i]) + 1]++;
    }
    for (i64 class = 0; class < t->classes; class++) {
        ends[class + 1] += ends[class];
    }
    for (i64 i = 0; i < n; i++) {
        w->sorted[ends[index_class_of(t->b->index, key[i])]++] = w->text[i];
    }
    for (i64 class = 0; class < t->classes; class++) {
        u8 *to = t->heap + places->bytes[class];
        i64 rows = ends[class] - first, bytes = 0;
        for (i64 i = first; i < ends[class]; i++) {
            str *s = &w->sorted[i];
            memcpy(w->by_class + bytes, (const void *)(size_t)s->addr, s->len);
            s->addr = (u64)(size_t)(to + bytes);
            bytes += s->len;
        }
        if (rows > 0) {
            str *views = (str *)t->out->cols[t->col].data + places->rows[class];
            mem_copy(mem, views, w->sorted + first, rows * (i64)sizeof(str));
        }
        if (bytes > 0) {
            mem_copy(mem, to, w->by_class, bytes);
        }
        places->rows[class] += rows;
        places->bytes[class] += bytes;
        first = ends[class];
    }
}

/* Rows from `at` on that a window has room for are put; *out_rows: how many. One whose text is longer has a window of
 * its own. */
static bool put_some(const struct text_counts *t, struct window *w, i64 c, i64 at,
                     struct class_places *places, i64 *out_rows) {
    struct memory *mem = t->b->x->mem;
    const struct chunk *chunk = t->b->chunks[c];
    const struct column *col = &chunk->cols[t->col];
    const b8 *nulls = col->nulls ? col->nulls + at : NULL;
    const b8 *ignored;
    i64 n = MIN_OF(chunk->rows - at, w->rows);
    mem_copy(mem, w->text, (const str *)col->data + at, n * (i64)sizeof(str));
    for (i64 i = 0; i < n && nulls; i++) {
        w->text[i] = nulls[i] ? (str){0, 0, 0} : w->text[i];
    }
    n = texts_window(w->text, n, w->bytes);
    struct window own = *w;
    bool longer = n == 1 && w->text[0].len > w->bytes;
    if (longer) {
        if (!window_open(mem, 1, w->text[0].len, &own)) {
            window_close(mem, &own);
            return false;
        }
        own.text[0] = w->text[0];
    }
    (void)texts_bring(mem, own.text, NULL, n, own.some);
    put_window(t, &own, build_keys(t->b, c, &ignored) + at, n, places);
    if (longer) {
        window_close(mem, &own);
    }
    *out_rows = n;
    return true;
}

static void put_texts(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct text_counts *t = arg;
    struct memory *mem = t->b->x->mem;
    const struct chunk *chunk = t->b->chunks[c];
    struct class_places places;
    struct window w;
    bool fine = window_open(mem, t->window_bytes / (i64)sizeof(str), t->window_bytes, &w);
    memcpy(places.rows, t->rows_place + c * t->classes, (size_t)t->classes * sizeof(i64));
    memcpy(places.bytes, t->texts_place + c * t->classes, (size_t)t->classes * sizeof(i64));
    for (i64 at = 0; at < chunk->rows && fine && !exec_check(t->b->x);) {
        i64 n = 0;
        fine = put_some(t, &w, c, at, &places, &n);
        at += n;
    }
    window_close(mem, &w);
    chunk_pass(chunk, 0, chunk->rows);
    if (!fine) {
        atomic_store(&t->refused, 1);
    }
}

static FALLIBLE refused(const struct text_counts *t, i64 bytes) {
    return memory_refused(t->b->x->mem, t->b->x->err, bytes);
}

/* The texts of all classes, one class behind the other. */
static FALLIBLE open_heap(struct text_counts *t, struct class_texts *texts) {
    struct exec *x = t->b->x;
    i64 at = 0;
    texts->starts = NEW_ARRAY(exec_arena(x), i64, t->classes + 1);
    for (i64 class = 0; class < t->classes; class++) {
        texts->starts[class] = at;
        for (i64 c = 0; c < t->b->chunk_count; c++) {
            t->texts_place[c * t->classes + class] = at;
            at += t->bytes[c * t->classes + class];
        }
    }
    texts->starts[t->classes] = at;
    texts->heap = buffer_new_at(x->mem, MAX_OF(at, 1), BUFFER_ASIDE);
    t->heap = texts->heap ? texts->heap->data : NULL;
    return texts->heap ? ERR_OK : refused(t, at);
}

static FALLIBLE move_texts(struct text_counts *t, struct class_texts *texts) {
    struct exec *x = t->b->x;
    i64 counts = MAX_OF(t->b->chunk_count, 1) * t->classes;
    memset(t->bytes, 0, (size_t)counts * sizeof(i64));
    tasks_run(x, t->b->chunk_count, count_texts, t);
    TRY(open_heap(t, texts));
    i64 room = memory_left(x->mem) / WINDOW_SHARE;
    t->window_bytes = MAX_OF(MIN_OF(room, WINDOW_MOST), WINDOW_LEAST);
    tasks_run(x, t->b->chunk_count, put_texts, t);
    return atomic_load(&t->refused) ? refused(t, t->window_bytes) : exec_check(x);
}

wf_status class_texts_put(const struct build *b, u32 rows_var, u32 col, const i64 *rows_place,
                          struct chunk *out) {
    struct exec *x = b->x;
    struct index *index = b->index;
    u32 cols = x->program->vars[rows_var].col_count;
    if (!index->class_texts) {
        index->class_texts = NEW_ARRAY(exec_arena(x), struct class_texts, cols + 1);
    }
    struct text_counts t = {.b = b, .col = col, .classes = 1LL << index->class_bits, .out = out};
    i64 bytes = 2 * MAX_OF(b->chunk_count, 1) * t.classes * (i64)sizeof(i64);
    t.rows_place = rows_place;
    t.bytes = mem_alloc(x->mem, bytes);
    if (!t.bytes) {
        return refused(&t, bytes);
    }
    t.texts_place = t.bytes + MAX_OF(b->chunk_count, 1) * t.classes;
    struct class_texts *texts = &index->class_texts[col];
    wf_status status = move_texts(&t, texts);
    mem_free(x->mem, t.bytes, bytes);
    if (texts->heap) {
        variable_keep_heap(x, rows_var, texts->heap);
    }
    return status;
}

bool class_texts_aside(const struct exec *x, u32 rows_var, u32 col) {
    return x->mem->temp && column_aside(x, &x->vars[rows_var], col);
}

/* one class */

wf_status class_texts_open(struct exec *x, struct index *index, struct chunk *mine, u32 col) {
    struct class_texts *texts = index->class_texts ? &index->class_texts[col] : NULL;
    if (!texts || !texts->heap) {
        return ERR_OK;
    }
    i64 start = texts->starts[index->class_no];
    i64 bytes = texts->starts[index->class_no + 1] - start;
    texts->here = buffer_new_at(x->mem, MAX_OF(bytes, 1), BUFFER_WORK);
    if (!texts->here) {
        return memory_refused(x->mem, x->err, bytes);
    }
    if (bytes > 0) {
        mem_copy(x->mem, texts->here->data, texts->heap->data + start, bytes);
    }
    u64 from = (u64)(size_t)(texts->heap->data + start);
    str *text = mine->cols[col].data;
    for (i64 i = 0; i < mine->rows; i++) {
        text[i].addr = (u64)(size_t)texts->here->data + (text[i].len ? text[i].addr - from : 0);
    }
    return ERR_OK;
}

void class_texts_close(struct index *index, u32 col_count) {
    for (u32 c = 0; index->class_texts && c < col_count; c++) {
        buffer_release(index->class_texts[c].here);
        index->class_texts[c].here = NULL;
    }
}

bool class_texts_pass(const struct exec *x, u32 rows_var, u32 col) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        bool index = x->program->vars[v].kind == VAR_INDEX && x->program->vars[v].rows_var == rows_var;
        const struct class_texts *texts = index && x->vars[v].index ? x->vars[v].index->class_texts : NULL;
        if (texts && texts[col].heap) {
            return true;
        }
    }
    return false;
}
