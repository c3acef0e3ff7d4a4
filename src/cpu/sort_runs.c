/* sort_runs.c: sorts more rows than memory has room for: in runs, which are merged.
 *
 * A run is as many rows as can be sorted in the memory at hand. Its rows are copied there, as their
 * order is read in all directions, and go back to temporary space sorted; what they were copied from
 * is given back. Words (sort_key.h) are made with the bounds of all rows, so that those of different
 * runs compare. Then all runs are merged at once, each read from its beginning to its end: a heap
 * of runs by their first row's word; where words tie, by the rest of the keys, and then by the
 * number of the run, since ties keep the order of the input. Of each run a window is in memory.
 * Texts that lie in temporary space go with their rows: they are copied to memory with the run, lie behind
 * its rows in their order, come to memory with the window, and are a heap of each piece of the result. So they
 * are never read in another order than they lie in.
 * Workers merge parts of the order side by side, between rows of one run that are looked up in the
 * others. */
#include "cpu/sort_int.h"

enum {
    WORD_BYTES = 2 * (i32)sizeof(struct prim_pair), /* of a row while it is sorted */
    MERGE_BATCH = 1024,
    PIECE_ROWS = 1 << 16, /* rows of a chunk of the result */
    PARTS_PER_WORKER = 2,
    WINDOW_SHARE = 3, /* of the memory that is left, for windows of all workers */
#ifdef WF_HARD
    WINDOW_LEAST = 64,
    WINDOW_MOST = 64,
    PIECE_TEXTS = 64 << 10,
    RUN_LEAST = 256,
    RUN_MOST = 4096,
    PARALLEL_ROWS = 512
#else
    WINDOW_LEAST = 64,
    WINDOW_MOST = 1 << 14,
    PIECE_TEXTS = 2 << 20, /* bytes of them in a chunk of the result */
    RUN_LEAST = 4096,
    RUN_MOST = 1 << 30,
    PARALLEL_ROWS = 1 << 16
#endif
};

struct runs {
    struct sort *s;
    VEC(struct chunk *) list;
    i64 row_bytes;
    i64 *text_bytes; /* by column: of all runs */
};

/* one run */

static FALLIBLE copy_column(struct exec *x, struct chunk *to, u32 c, bool nulls, i64 rows) {
    i64 bytes = MAX_OF(rows, 1) * kind_bytes[to->cols[c].kind];
    to->buffers[2 * c] = buffer_new_at(x->mem, bytes, BUFFER_WORK);
    to->buffers[2 * c + 1] = nulls ? buffer_new_at(x->mem, MAX_OF(rows, 1), BUFFER_WORK) : NULL;
    if (!to->buffers[2 * c] || (nulls && !to->buffers[2 * c + 1])) {
        return memory_refused(x->mem, x->err, bytes);
    }
    to->cols[c].data = to->buffers[2 * c]->data;
    to->cols[c].nulls = nulls ? to->buffers[2 * c + 1]->data : NULL;
    return ERR_OK;
}

/* Rows from..from + n of a chunk behind the first `at` rows. */
static void copy_rows(const struct chunk *to, i64 at, const struct chunk *chunk, i64 from, i64 n) {
    for (u32 c = 0; c < to->col_count; c++) {
        const struct column *col = &chunk->cols[c];
        i64 width = kind_bytes[col->kind];
        if (to->cols[c].kind == col->kind) { /* or it is a code, of which the text is wanted */
            mem_copy(chunk->mem, (u8 *)to->cols[c].data + at * width,
                     (const u8 *)col->data + from * width, n * width);
        }
        if (to->cols[c].nulls && col->nulls) {
            memcpy(to->cols[c].nulls + at, col->nulls + from, (size_t)n);
        } else if (to->cols[c].nulls) {
            memset(to->cols[c].nulls + at, 0, (size_t)n);
        }
    }
}

/* Sorts the rows of `in`, and takes it. */
static FALLIBLE sort_run_rows(struct runs *r, struct chunk *in) {
    struct sort one = {.x = r->s->x};
    bool refused;
    sort_list(&one, &in, 1);
    one.parts = r->s->parts;
    one.part_count = r->s->part_count;
    one.levels = r->s->levels;
    one.level_count = r->s->level_count;
    one.want = MIN_OF(r->s->want, one.n);
    one.col_count = in->col_count; /* the merge needs all keys */
    one.beside = r->s->beside;
    wf_status status = sort_chunks(&one, BUFFER_ASIDE, false, &refused);
    chunk_release(in);
    if (!status) {
        VEC_PUSH(r->s->x->arena, &r->list, one.out);
    }
    return status;
}

/* Where the rows that no run has yet begin. */
struct run_from {
    struct variable *v;
    i64 chunk, row, left;
};

/* Bytes of the texts of rows at..at + n of a chunk, as far as they are to lie beside them. */
static i64 texts_of(const struct runs *r, const struct chunk *chunk, i64 at, i64 n) {
    str text[MERGE_BATCH];
    b8 nulls[MERGE_BATCH];
    i64 bytes = 0;
    for (u32 c = 0; c < chunk->col_count; c++) {
        const struct column *col = &chunk->cols[c];
        if (!r->s->beside[c]) {
            continue;
        }
        recode_views(r->s, chunk, c, at, n, text);
        if (col->nulls) {
            mem_copy(chunk->mem, nulls, col->nulls + at, n);
        }
        i64 more = texts_bytes(text, col->nulls ? nulls : NULL, n);
        r->text_bytes[c] += more;
        bytes += more;
    }
    return bytes;
}

/* How many rows the next run has; *out_texts: with so many bytes of texts. */
static i64 rows_ahead(const struct runs *r, const struct run_from *from, i64 *out_texts) {
    i64 room = memory_left(r->s->x->mem) / 4 * 3, row_bytes = WORD_BYTES + r->row_bytes;
    i64 most = MAX_OF(MIN_OF(room / row_bytes, (i64)RUN_MOST), (i64)RUN_LEAST);
    most = MIN_OF(most, from->left);
    *out_texts = 0;
    if (!r->s->beside) {
        return most;
    }
    i64 rows = 0, chunk = from->chunk, row = from->row;
    while (rows < most && (rows == 0 || rows * row_bytes + *out_texts < room)) {
        const struct chunk *at = from->v->chunks.items[chunk];
        i64 n = MIN_OF(MIN_OF(at->rows - row, most - rows), (i64)MERGE_BATCH);
        *out_texts += texts_of(r, at, row, n);
        rows += n;
        row += n;
        chunk += row == at->rows;
        row = row == at->rows ? 0 : row;
    }
    return rows;
}

/* Rows of the variable; chunks that have been read are given back. */
static FALLIBLE take_run(const struct runs *r, struct run_from *from, const struct chunk *in,
                         u8 *texts) {
    for (i64 at = 0; at < in->rows;) {
        struct chunk *chunk = from->v->chunks.items[from->chunk];
        i64 n = MIN_OF(chunk->rows - from->row, in->rows - at);
        n = r->s->decoded ? MIN_OF(n, (i64)MERGE_BATCH) : n;
        copy_rows(in, at, chunk, from->row, n);
        for (u32 c = 0; r->s->beside && c < in->col_count; c++) {
            const struct column *col = &in->cols[c];
            if (r->s->decoded && r->s->decoded[c]) {
                recode_views(r->s, chunk, c, from->row, n, (str *)col->data + at);
            }
            if (r->s->beside[c]) {
                texts += texts_bring(in->mem, (str *)col->data + at,
                                     col->nulls ? col->nulls + at : NULL, n, texts);
            }
        }
        at += n;
        from->row += n;
        if (from->row == chunk->rows) {
            from->v->chunks.items[from->chunk++] = NULL;
            chunk_release(chunk);
            from->row = 0;
        }
        TRY(exec_check(r->s->x));
    }
    from->left -= in->rows;
    return ERR_OK;
}

static FALLIBLE next_run(struct runs *r, struct run_from *from) {
    struct exec *x = r->s->x;
    const struct chunk *like = r->s->chunks[0];
    i64 text_bytes;
    i64 rows = rows_ahead(r, from, &text_bytes);
    struct chunk *in = chunk_view_new(x, like->col_count);
    u8 *texts = in ? mem_alloc(x->mem, MAX_OF(text_bytes, 1)) : NULL;
    if (!texts) {
        chunk_release(in);
        return memory_refused(x->mem, x->err, 256 + text_bytes);
    }
    in->rows = rows;
    wf_status status = ERR_OK;
    for (u32 c = 0; c < in->col_count && !status; c++) {
        in->cols[c].kind = like->cols[c].kind;
        status = copy_column(x, in, c, r->s->nulls[c], rows);
    }
    status = status ? status : take_run(r, from, in, texts);
    if (status) {
        chunk_release(in);
    } else {
        status = sort_run_rows(r, in);
    }
    mem_free(x->mem, texts, MAX_OF(text_bytes, 1));
    return status;
}

/* the merge */

struct merge_part {
    i64 *at;  /* per run: the first row, then the one to come */
    i64 *end; /* per run */
    i64 rows;
    struct sort s;  /* its chunks are windows of the runs, in memory */
    i64 *first;     /* per run: the row that its window begins with */
    i64 window_rows;
    u8 *memory;     /* of the windows */
    i64 bytes;
    u8 *texts;      /* ... behind all else: those of a column lie side by side, run by run */
    VEC(struct chunk *) out;
    VEC(struct buffer *) heaps;
};

/* A chunk of the result in the making. */
struct piece {
    struct chunk *out;
    u8 *texts;
    i64 used, cap;
};

struct merge {
    struct sort s; /* its chunks are the runs */
    const b8 *nulls;
    u32 col_count;
    i64 piece_rows;
    i64 *text_row; /* by column: bytes of texts that a row is given room for in a window; 0 = they are not beside */
    struct merge_part *parts;
    _Atomic i32 failed;
};

static int text_order(const struct sort *s, const struct sort_part *part, u64 a, u64 b) {
    i64 ia, ib;
    const struct column *ca = sort_column(s, part->col, a, &ia);
    const struct column *cb = sort_column(s, part->col, b, &ib);
    int order = sv_cmp(sv_of(((const str *)ca->data)[ia]), sv_of(((const str *)cb->data)[ib]));
    return part->descending ? -order : order;
}

/* Which of two rows comes first, by their keys alone. */
static int row_order(const struct sort *s, u64 a, u64 b) {
    for (u32 l = 0; l < s->level_count; l++) {
        const struct level *level = &s->levels[l];
        u64 wa = sort_word(s, level, a);
        u64 wb = sort_word(s, level, b);
        if (wa != wb) {
            return wa < wb ? -1 : 1;
        }
        if (level->text && piece_goes_on(wa, level->text->descending)) {
            int order = text_order(s, level->text, a, b);
            if (order) {
                return order;
            }
        }
    }
    return 0;
}

struct heap_item {
    u64 word; /* of the first level */
    u64 row;  /* its place: run << idx_bits | row */
};

static bool comes_first(const struct sort *s, const struct heap_item *a, const struct heap_item *b) {
    if (a->word != b->word) {
        return a->word < b->word;
    }
    bool settled = s->level_count == 1 && !s->levels[0].text;
    int order = settled ? 0 : row_order(s, a->row, b->row);
    return order ? order < 0 : a->row < b->row;
}

static void sift_down(const struct sort *s, struct heap_item *heap, i64 count, i64 i) {
    struct heap_item item = heap[i];
    for (;;) {
        i64 child = 2 * i + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && comes_first(s, &heap[child + 1], &heap[child])) {
            child++;
        }
        if (!comes_first(s, &heap[child], &item)) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

/* The next chunk of the result. */
static struct chunk *open_piece(const struct merge *m, i64 rows) {
    struct exec *x = m->s.x;
    const struct chunk *like = m->s.chunks[0];
    struct chunk *out = chunk_view_new(x, like->col_count);
    bool fine = out != NULL;
    for (u32 c = 0; fine && c < like->col_count; c++) {
        i64 n = c < m->col_count ? rows : 0;
        bool flags = n > 0 && m->nulls[c];
        out->cols[c].kind = like->cols[c].kind;
        struct buffer *data =
            buffer_new_at(x->mem, MAX_OF(n, 1) * kind_bytes[like->cols[c].kind], BUFFER_WORK);
        struct buffer *nulls = flags ? buffer_new_at(x->mem, n, BUFFER_WORK) : NULL;
        out->buffers[2 * c] = data;
        out->buffers[2 * c + 1] = nulls;
        out->cols[c].data = data ? data->data : NULL;
        out->cols[c].nulls = nulls ? nulls->data : NULL;
        fine = data && (nulls || !flags);
    }
    if (!fine) {
        chunk_release(out);
        return NULL;
    }
    out->rows = rows;
    return out;
}

#define PUT_ROWS(type)                                                         \
    do {                                                                       \
        for (i64 i = 0; i < n; i++) {                                          \
            i64 at;                                                            \
            const struct column *col = sort_column(&part->s, c, row[i], &at);  \
            ((type *)to)[first + i] = ((const type *)col->data)[at];           \
        }                                                                      \
    } while (0)

/* Texts of a column of the piece leave the windows. */
static bool put_texts(const struct merge *m, struct piece *piece, u32 c, i64 first, i64 n) {
    struct memory *mem = m->s.x->mem;
    const struct column *col = &piece->out->cols[c];
    str *text = (str *)col->data + first;
    const b8 *nulls = col->nulls ? col->nulls + first : NULL;
    i64 bytes = texts_bytes(text, nulls, n);
    if (piece->used + bytes > piece->cap) {
        i64 cap = MAX_OF(piece->used + bytes, 2 * piece->cap);
        u8 *grown = mem_alloc(mem, cap);
        if (!grown) {
            return false;
        }
        if (piece->used) {
            memcpy(grown, piece->texts, (size_t)piece->used);
        }
        for (u32 k = 0; k < m->col_count; k++) { /* those that are there move */
            str *moved = piece->out->cols[k].data;
            i64 rows = m->text_row[k] == 0 ? 0 : k < c ? first + n : first;
            for (i64 i = 0; i < rows; i++) {
                moved[i].addr += (u64)(size_t)grown - (u64)(size_t)piece->texts;
            }
        }
        mem_free(mem, piece->texts, piece->cap);
        piece->texts = grown;
        piece->cap = cap;
    }
    piece->used += texts_bring(mem, text, nulls, n, piece->texts + piece->used);
    return true;
}

static bool put_rows(const struct merge *m, const struct merge_part *part, struct piece *piece,
                     i64 first, const u64 *row, i64 n) {
    const struct chunk *out = piece->out;
    for (u32 c = 0; c < m->col_count; c++) {
        void *to = out->cols[c].data;
        switch (kind_bytes[out->cols[c].kind]) {
        case 1:
            PUT_ROWS(u8);
            break;
        case 4:
            PUT_ROWS(u32);
            break;
        case 8:
            PUT_ROWS(u64);
            break;
        default:
            PUT_ROWS(str);
            break;
        }
        for (i64 i = 0; i < n && out->cols[c].nulls; i++) {
            i64 at;
            const struct column *col = sort_column(&part->s, c, row[i], &at);
            out->cols[c].nulls[first + i] = col->nulls ? col->nulls[at] : 0;
        }
        if (m->text_row[c] && !put_texts(m, piece, c, first, n)) {
            return false;
        }
    }
    return true;
}
#undef PUT_ROWS

static i64 texts_room(const struct merge *m, const struct merge_part *part, u32 c) {
    return m->text_row[c] * part->window_rows;
}

/* Texts of the window come, too: it ends where there is no room for more of them. */
static void window_texts(const struct merge *m, struct merge_part *part, i64 run) {
    struct chunk *to = part->s.chunks[run];
    u8 *area = part->texts;
    for (u32 c = 0; c < to->col_count; c++) {
        if (m->text_row[c]) {
            to->rows = texts_window(to->cols[c].data, to->rows, texts_room(m, part, c));
        }
    }
    for (u32 c = 0; c < to->col_count; c++) {
        i64 room = texts_room(m, part, c);
        const str *text = to->cols[c].data;
        if (room && !(to->rows == 1 && text->len > room)) { /* a longer one stays aside */
            (void)texts_bring(to->mem, to->cols[c].data, NULL, to->rows, area + run * room);
        }
        area += m->s.chunk_count * room;
    }
}

/* The window of a run begins with the row to come. */
static void window_move(const struct merge *m, struct merge_part *part, i64 run) {
    const struct chunk *from = m->s.chunks[run];
    struct chunk *to = part->s.chunks[run];
    i64 at = part->at[run];
    part->first[run] = at;
    to->rows = MIN_OF(part->window_rows, part->end[run] - at);
    for (u32 c = 0; c < from->col_count; c++) {
        i64 width = kind_bytes[from->cols[c].kind];
        mem_copy(m->s.x->mem, to->cols[c].data, (const u8 *)from->cols[c].data + at * width,
                 to->rows * width);
        if (from->cols[c].nulls) {
            mem_copy(m->s.x->mem, to->cols[c].nulls, from->cols[c].nulls + at, to->rows);
        }
    }
    window_texts(m, part, run);
}

/* Windows of all runs, in as much memory as there is for each worker; false when refused. */
static bool windows_open(const struct merge *m, struct merge_part *part) {
    struct exec *x = m->s.x;
    i64 runs = m->s.chunk_count, row_bytes = 0;
    u32 cols = m->s.chunks[0]->col_count;
    for (u32 c = 0; c < cols; c++) {
        row_bytes += kind_bytes[m->s.chunks[0]->cols[c].kind] + 1 + m->text_row[c];
    }
    i64 workers = x->pool ? pool_worker_count(x->pool) : 1;
    i64 most = memory_left(x->mem) / WINDOW_SHARE / workers / (runs * row_bytes);
    part->window_rows = ALIGN_UP(MAX_OF(MIN_OF(most, (i64)WINDOW_MOST), (i64)WINDOW_LEAST), 64);
    part->bytes = runs * (part->window_rows * row_bytes +
                          (i64)sizeof(struct chunk) + (i64)cols * (i64)sizeof(struct column) +
                          (i64)sizeof(struct chunk *) + (i64)sizeof(i64));
    u8 *at = part->memory = mem_alloc(x->mem, part->bytes);
    if (!at) {
        return false;
    }
    part->s = m->s;
    for (i64 r = 0; r < runs * cols; r++) { /* wide values first: each begins where it may */
        at += part->window_rows * kind_bytes[m->s.chunks[0]->cols[r % cols].kind];
    }
    part->first = (i64 *)(void *)at;
    part->s.chunks = (struct chunk **)(void *)(part->first + runs);
    struct chunk *chunks = (struct chunk *)(void *)(part->s.chunks + runs);
    struct column *columns = (struct column *)(void *)(chunks + runs);
    u8 *flags = (u8 *)(columns + runs * cols);
    at = part->memory;
    for (i64 r = 0; r < runs; r++) {
        chunks[r] = (struct chunk){.cols = columns + r * cols, .col_count = cols, .mem = x->mem};
        part->s.chunks[r] = &chunks[r];
        for (u32 c = 0; c < cols; c++) {
            const struct column *like = &m->s.chunks[r]->cols[c];
            chunks[r].cols[c] = (struct column){like->kind, at, like->nulls ? flags : NULL};
            at += part->window_rows * kind_bytes[like->kind];
            flags += part->window_rows;
        }
    }
    part->texts = flags;
    return true;
}

/* The row to come of a run, by its place in the window. */
static struct heap_item item_of(const struct merge_part *part, i64 run) {
    u64 place = (u64)run << part->s.idx_bits | (u64)(part->at[run] - part->first[run]);
    return (struct heap_item){sort_word(&part->s, &part->s.levels[0], place), place};
}

/* The next n rows of the order, n at most what the heap has left; fewer where a window ends: *out_dry,
 * -1 = none, is the run, which stays the heap's first. Returns how many. */
static i64 take_rows(struct merge_part *part, struct heap_item *heap, i64 *io_count, u64 *row, i64 n,
                     i64 *out_dry) {
    *out_dry = -1;
    for (i64 i = 0; i < n; i++) {
        row[i] = heap[0].row;
        i64 run = (i64)(heap[0].row >> part->s.idx_bits);
        if (++part->at[run] == part->end[run]) {
            heap[0] = heap[--*io_count];
        } else if (part->at[run] == part->first[run] + part->s.chunks[run]->rows) {
            *out_dry = run;
            return i + 1;
        } else {
            heap[0] = item_of(part, run);
        }
        sift_down(&part->s, heap, *io_count, 0);
    }
    return n;
}

/* The rows of a piece of the result, fewer than there is room for where their texts are long. */
static bool merge_piece(const struct merge *m, struct merge_part *part, struct heap_item *heap,
                        i64 *io_count, struct piece *piece) {
    u64 row[MERGE_BATCH];
    i64 at = 0;
    while (at < piece->out->rows && piece->used < PIECE_TEXTS && !exec_check(m->s.x)) {
        i64 dry;
        i64 n = MIN_OF(piece->out->rows - at, (i64)MERGE_BATCH);
        n = take_rows(part, heap, io_count, row, n, &dry);
        if (!put_rows(m, part, piece, at, row, n)) {
            return false;
        }
        if (dry >= 0) {
            window_move(m, part, dry);
            heap[0] = item_of(part, dry);
            sift_down(&part->s, heap, *io_count, 0);
        }
        work_rows(m->s.x, 2 * n);
        at += n;
    }
    piece->out->rows = at;
    return true;
}

/* Texts of a piece become a heap, which their views lead to then. */
static bool rest_texts(const struct merge *m, struct merge_part *part, const struct piece *piece) {
    struct exec *x = m->s.x;
    struct buffer *heap = buffer_new_at(x->mem, MAX_OF(piece->used, 1), BUFFER_REST);
    if (!heap) {
        return false;
    }
    mem_copy(x->mem, heap->data, piece->texts, piece->used);
    for (u32 c = 0; c < m->col_count; c++) {
        str *text = piece->out->cols[c].data;
        for (i64 i = 0; i < piece->out->rows && m->text_row[c]; i++) {
            text[i].addr += (u64)(size_t)heap->data - (u64)(size_t)piece->texts;
        }
    }
    mutex_lock(&x->lock);
    VEC_PUSH(x->arena, &part->heaps, heap);
    mutex_unlock(&x->lock);
    return true;
}

/* It waits for who reads the result. */
static void rest_piece(const struct chunk *out) {
    for (u32 c = 0; c < out->col_count; c++) {
        buffer_rest(out->buffers[2 * c]);
        buffer_rest(out->buffers[2 * c + 1]);
        out->cols[c].data = out->buffers[2 * c]->data;
        out->cols[c].nulls = out->buffers[2 * c + 1] ? out->buffers[2 * c + 1]->data : NULL;
    }
}

/* The heap of runs by their next rows. */
static i64 heap_fill(const struct merge *m, struct merge_part *part, struct heap_item *heap) {
    i64 count = 0;
    for (i64 r = 0; r < m->s.chunk_count; r++) {
        if (part->at[r] < part->end[r]) {
            window_move(m, part, r);
            heap[count++] = item_of(part, r);
        }
    }
    for (i64 i = count / 2; i-- > 0;) {
        sift_down(&part->s, heap, count, i);
    }
    return count;
}

static bool merge_part(const struct merge *m, struct merge_part *part, struct heap_item *heap) {
    struct exec *x = m->s.x;
    if (!windows_open(m, part)) {
        return false;
    }
    i64 count = heap_fill(m, part, heap);
    for (i64 done = 0; done < part->rows && !exec_check(x);) { /* whoever waits finds out */
        struct piece piece = {.out = open_piece(m, MIN_OF(part->rows - done, m->piece_rows))};
        if (!piece.out) {
            return false;
        }
        mutex_lock(&x->lock);
        VEC_PUSH(x->arena, &part->out, piece.out);
        mutex_unlock(&x->lock);
        bool fine = merge_piece(m, part, heap, &count, &piece);
        fine = fine && (!piece.texts || rest_texts(m, part, &piece));
        mem_free(x->mem, piece.texts, piece.cap);
        if (!fine) {
            return false;
        }
        rest_piece(piece.out);
        done += piece.out->rows;
    }
    return true;
}

static void merge_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct merge *m = arg;
    i64 bytes = m->s.chunk_count * (i64)sizeof(struct heap_item);
    struct heap_item *heap = mem_alloc(m->s.x->mem, bytes);
    if (!heap || !merge_part(m, &m->parts[i], heap)) {
        atomic_store(&m->failed, 1);
    }
    mem_free(m->s.x->mem, m->parts[i].memory, m->parts[i].bytes);
    mem_free(m->s.x->mem, heap, bytes);
}

/* The first row of the run that does not come before `row`. */
static i64 lower_bound(const struct merge *m, i64 run, u64 row) {
    i64 lo = 0;
    i64 hi = m->s.chunks[run]->rows;
    while (lo < hi) {
        i64 mid = lo + (hi - lo) / 2;
        if (row_order(&m->s, (u64)run << m->s.idx_bits | (u64)mid, row) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Parts of the order, cut at rows of the longest run. */
static i64 cut_parts(struct merge *m, i64 want) {
    struct exec *x = m->s.x;
    i64 runs = m->s.chunk_count;
    i64 count = 1;
    i64 longest = 0;
    if (x->pool && m->s.n >= PARALLEL_ROWS && want == m->s.n) {
        count = (i64)pool_worker_count(x->pool) * PARTS_PER_WORKER;
    }
    for (i64 r = 0; r < runs; r++) {
        longest = m->s.chunks[r]->rows > m->s.chunks[longest]->rows ? r : longest;
    }
    m->parts = NEW_ARRAY(x->arena, struct merge_part, count);
    for (i64 p = 0; p < count; p++) {
        struct merge_part *part = &m->parts[p];
        part->at = NEW_ARRAY(x->arena, i64, runs);
        part->end = NEW_ARRAY(x->arena, i64, runs);
        u64 cut = (u64)longest << m->s.idx_bits |
                  (u64)(m->s.chunks[longest]->rows * (p + 1) / count);
        for (i64 r = 0; r < runs; r++) {
            part->at[r] = p ? m->parts[p - 1].end[r] : 0;
            part->end[r] = p + 1 < count ? lower_bound(m, r, cut) : m->s.chunks[r]->rows;
            part->rows += part->end[r] - part->at[r];
            chunk_pass(m->s.chunks[r], 0, m->s.chunks[r]->rows); /* it was looked at here and there */
        }
        part->rows = MIN_OF(part->rows, want);
    }
    return count;
}

/* The pieces of all parts, in their order, are the variable's rows; their texts are its heaps. */
static void take_pieces(const struct merge *m, i64 count, struct variable *v) {
    struct exec *x = m->s.x;
    v->chunks.count = 0;
    for (i64 p = 0; p < count; p++) {
        for (i64 i = 0; i < m->parts[p].out.count; i++) {
            m->parts[p].out.items[i]->order = v->chunks.count;
            VEC_PUSH(exec_arena(x), &v->chunks, m->parts[p].out.items[i]);
        }
        for (i64 i = 0; i < m->parts[p].heaps.count; i++) {
            VEC_PUSH(exec_arena(x), &v->heaps, m->parts[p].heaps.items[i]);
        }
    }
}

static FALLIBLE merge_runs(struct runs *r, struct variable *v) {
    struct sort *s = r->s;
    struct exec *x = s->x;
    struct merge m = {.s = {.x = x}, .nulls = s->nulls, .col_count = s->col_count};
    u32 cols = s->chunks[0]->col_count;
    sort_list(&m.s, r->list.items, r->list.count);
    m.s.parts = s->parts;
    m.s.levels = s->levels;
    m.s.level_count = s->level_count;
    m.text_row = NEW_ARRAY(x->arena, i64, cols + 1);
    i64 texts = 1;
    for (u32 c = 0; c < cols; c++) {
        i64 each = r->text_bytes[c] / s->n;
        m.text_row[c] = s->beside && s->beside[c] ? each + each / 4 + 1 : 0;
        texts += c < m.col_count ? each : 0;
    }
    m.piece_rows = MAX_OF(MIN_OF((i64)PIECE_ROWS, PIECE_TEXTS / texts), 64);
    i64 count = cut_parts(&m, s->want);
    tasks_run(x, count, merge_task, &m);
    v->rows = s->want;
    take_pieces(&m, count, v);
    TRY(exec_check(x));
    return atomic_load(&m.failed) ? memory_refused(x->mem, x->err, PIECE_ROWS * 8) : ERR_OK;
}

/* Views of the variable's heaps are gone where all texts went with the rows. */
static void drop_heaps(const struct sort *s, struct variable *v) {
    bool all = s->beside != NULL;
    for (u32 c = 0; c < s->chunks[0]->col_count && all; c++) {
        all = s->chunks[0]->cols[c].kind != KIND_STR || s->beside[c];
    }
    for (i64 i = 0; all && i < v->heaps.count; i++) {
        buffer_release(v->heaps.items[i]);
    }
    v->heaps.count = all ? 0 : v->heaps.count;
}

wf_status sort_in_runs(struct sort *s, struct variable *v, i64 *out_runs) {
    struct exec *x = s->x;
    struct runs r = {.s = s};
    u32 cols = s->chunks[0]->col_count;
    s->nulls = NEW_ARRAY(x->arena, b8, cols);
    s->beside = v->view_of && !s->decoded ? NULL : texts_aside(s);
    r.text_bytes = NEW_ARRAY(x->arena, i64, cols + 1);
    for (u32 c = 0; c < cols; c++) {
        s->nulls[c] = sort_has_nulls(s, c);
        r.row_bytes += kind_bytes[s->chunks[0]->cols[c].kind] + s->nulls[c];
        r.row_bytes += s->decoded && s->decoded[c] ? (i64)(sizeof(str) - sizeof(i32)) : 0;
    }
    struct chunk like = {.cols = NEW_ARRAY(x->arena, struct column, cols), .col_count = cols};
    memcpy(like.cols, s->chunks[0]->cols, sizeof *like.cols * cols);
    for (u32 c = 0; c < cols && s->decoded; c++) {
        like.cols[c].kind = s->decoded[c] ? KIND_STR : like.cols[c].kind;
    }
    s->chunks[0] = &like; /* its kinds are asked for when it has been given back */
    work_expect(x, 9 * s->n); /* 4 to sort, 2 to gather, 1 for words; 2 to merge */
    struct run_from from = {.v = v, .left = s->n};
    wf_status status = ERR_OK;
    while (from.left > 0 && !status) {
        status = next_run(&r, &from);
    }
    if (!status) {
        drop_heaps(s, v);
        status = merge_runs(&r, v);
    }
    for (i64 i = 0; i < r.list.count; i++) {
        chunk_release(r.list.items[i]);
    }
    *out_runs = r.list.count;
    return status;
}
