/* window_fn.c: the columns a window step computes.
 *
 * Words of aggregates, for any frame: sums are differences of running sums, which wrap around and
 * come out right. Least and greatest keep the candidates of a sliding frame in a queue, which each
 * row enters and leaves once. With an exclusion they ask a tree of partial results, as bits always
 * do. Functions that pick a row copy its value. string_agg writes the partition's texts one after
 * the other once; the text of a frame is a part of that, since a frame is a run of rows. */
#include "cpu/window_int.h"

#include "cpu/groups.h"

enum { ROWS_PER_CHECK = STOP_EVERY(1 << 14) };

struct column_job {
    struct windowing *w;
    const struct window_fn *fn;
    const struct column *args[3];
    struct column *out;
    struct frame_walk walk;
    struct error *err;
    i64 ticks;
};

static FALLIBLE check_now(struct column_job *j) {
    return ++j->ticks % ROWS_PER_CHECK == 0 ? exec_check(j->w->x) : ERR_OK;
}

static void *scratch(struct column_job *j, i64 count, i64 bytes) {
    return mem_alloc(j->w->x->mem, MAX_OF(count, 1) * bytes);
}

static void scratch_free(struct column_job *j, void *ptr, i64 count, i64 bytes) {
    mem_free(j->w->x->mem, ptr, MAX_OF(count, 1) * bytes);
}

static wf_status refused(struct column_job *j, i64 bytes) {
    return memory_refused(j->w->x->mem, j->err, bytes);
}

/* words */

static FALLIBLE sum_word(struct column_job *j, i64 first, i64 end) {
    const i64 *in = j->args[0]->data;
    i64 *out = j->out->data;
    i64 n = end - first + 1;
    u64 *before = scratch(j, n, 8);
    if (!before) {
        return refused(j, n * 8);
    }
    before[0] = 0;
    for (i64 r = first; r < end; r++) {
        before[r - first + 1] = before[r - first] + (u64)in[r];
    }
    struct frame_walk *f = &j->walk;
    frame_begin(f, first, end);
    wf_status status = ERR_OK;
    for (i64 r = first; r < end && !status; r++) {
        frame_next(f);
        u64 sum = 0;
        for (i32 k = 0; k < f->run_count; k++) {
            sum += before[f->runs[k].hi - first] - before[f->runs[k].lo - first];
        }
        out[r] = (i64)sum;
        status = check_now(j);
    }
    scratch_free(j, before, n, 8);
    return status;
}

/* A queue of rows whose inputs get worse from front to back; the front is the frame's best. */
static FALLIBLE slide_word(struct column_job *j, i64 first, i64 end) {
    const i64 *in = j->args[0]->data;
    i64 *out = j->out->data;
    i64 n = end - first;
    i64 *queue = scratch(j, n, 8);
    if (!queue) {
        return refused(j, n * 8);
    }
    i64 head = 0;
    i64 tail = 0;
    i64 next = first;
    u8 op = j->fn->func;
    struct frame_walk *f = &j->walk;
    frame_begin(f, first, end);
    wf_status status = ERR_OK;
    for (i64 r = first; r < end && !status; r++) {
        frame_next(f);
        for (; next < f->hi; next++) {
            while (tail > head && word_apply(op, in[queue[tail - 1]], in[next]) == in[next]) {
                tail--;
            }
            queue[tail++] = next;
        }
        while (head < tail && queue[head] < f->lo) {
            head++;
        }
        out[r] = head < tail && f->lo < f->hi ? in[queue[head]] : word_identity(op);
        status = check_now(j);
    }
    scratch_free(j, queue, n, 8);
    return status;
}

static i64 tree_range(const i64 *tree, i64 size, u8 op, i64 lo, i64 hi) {
    i64 best = word_identity(op);
    for (lo += size, hi += size; lo < hi; lo /= 2, hi /= 2) {
        if (lo & 1) {
            best = word_apply(op, best, tree[lo++]);
        }
        if (hi & 1) {
            best = word_apply(op, best, tree[--hi]);
        }
    }
    return best;
}

static FALLIBLE tree_word(struct column_job *j, i64 first, i64 end) {
    const i64 *in = j->args[0]->data;
    i64 *out = j->out->data;
    i64 n = end - first;
    i64 *tree = scratch(j, 2 * n, 8);
    if (!tree) {
        return refused(j, 16 * n);
    }
    u8 op = j->fn->func;
    memcpy(tree + n, in + first, (size_t)n * 8);
    for (i64 i = n - 1; i > 0; i--) {
        tree[i] = word_apply(op, tree[2 * i], tree[2 * i + 1]);
    }
    struct frame_walk *f = &j->walk;
    frame_begin(f, first, end);
    wf_status status = ERR_OK;
    for (i64 r = first; r < end && !status; r++) {
        frame_next(f);
        i64 best = word_identity(op);
        for (i32 k = 0; k < f->run_count; k++) {
            i64 part = tree_range(tree, n, op, f->runs[k].lo - first, f->runs[k].hi - first);
            best = word_apply(op, best, part);
        }
        out[r] = best;
        status = check_now(j);
    }
    scratch_free(j, tree, 2 * n, 8);
    return status;
}

static FALLIBLE word_column(struct column_job *j, i64 first, i64 end) {
    if (j->fn->func == WORD_ADD) {
        return sum_word(j, first, end);
    }
    bool extreme = j->fn->func == WORD_MIN || j->fn->func == WORD_MAX;
    bool slides = extreme && j->fn->exclude == EXCLUDE_NONE;
    return slides ? slide_word(j, first, end) : tree_word(j, first, end);
}

/* functions that pick a row */

static void take(struct column_job *j, const struct column *from, i64 row, i64 to) {
    i64 bytes = kind_bytes[j->out->kind];
    bool missing = row < 0 || (from->nulls && from->nulls[row]);
    u8 *dst = (u8 *)j->out->data + to * bytes;
    j->out->nulls[to] = missing;
    if (missing) {
        memset(dst, 0, (size_t)bytes);
    } else {
        memcpy(dst, (const u8 *)from->data + row * bytes, (size_t)bytes);
    }
}

static bool is_null(const struct column *col, i64 row) {
    return col->nulls && col->nulls[row];
}

static void take_neighbour(struct column_job *j, i64 r) {
    const struct frame_walk *f = &j->walk;
    i64 off = 1;
    if (j->args[1]) {
        if (is_null(j->args[1], r)) {
            take(j, j->args[0], -1, r);
            return;
        }
        off = ((const i64 *)j->args[1]->data)[r];
    }
    off = j->fn->func == WINDOW_LAG ? (off == I64_MIN ? I64_MAX : -off) : off;
    bool inside = off >= f->first - r && off < f->end - r;
    if (inside) {
        take(j, j->args[0], r + off, r);
    } else {
        take(j, j->args[2] ? j->args[2] : j->args[0], j->args[2] ? r : -1, r);
    }
}

static i64 nth_row(const struct frame_walk *f, i64 n) { /* from 0; -1 when there are not so many */
    for (i32 k = 0; k < f->run_count; k++) {
        i64 rows = f->runs[k].hi - f->runs[k].lo;
        if (n < rows) {
            return f->runs[k].lo + n;
        }
        n -= rows;
    }
    return -1;
}

static FALLIBLE take_nth(struct column_job *j, i64 r) {
    if (is_null(j->args[1], r)) {
        take(j, j->args[0], -1, r);
        return ERR_OK;
    }
    i64 n = ((const i64 *)j->args[1]->data)[r];
    if (n <= 0) {
        return error_set(j->err, ERR_NTH_VALUE, j->fn->position,
                         "argument of nth_value must be greater than zero");
    }
    take(j, j->args[0], nth_row(&j->walk, n - 1), r);
    return ERR_OK;
}

/* The first rows of a partition go to buckets that have one row more. */
static FALLIBLE bucket(struct column_job *j, i64 r) {
    const struct frame_walk *f = &j->walk;
    i32 *out = j->out->data;
    out[r] = 0;
    j->out->nulls[r] = (b8)is_null(j->args[0], f->first);
    if (j->out->nulls[r]) {
        return ERR_OK;
    }
    i64 buckets = ((const i64 *)j->args[0]->data)[f->first];
    if (buckets <= 0) {
        return error_set(j->err, ERR_NTILE, j->fn->position,
                         "argument of ntile must be greater than zero");
    }
    i64 rows = f->end - f->first;
    i64 at = r - f->first;
    i64 small = rows / buckets;
    i64 large = rows % buckets;
    i64 in_large = large * (small + 1);
    out[r] =
        (i32)(at < in_large ? at / (small + 1) : large + (at - in_large) / MAX_OF(small, 1)) + 1;
    return ERR_OK;
}

static FALLIBLE func_row(struct column_job *j, i64 r) {
    const struct frame_walk *f = &j->walk;
    i64 rows = f->end - f->first;
    i64 *counts = j->out->data;
    f64 *shares = j->out->data;
    switch (j->fn->func) {
    case WINDOW_ROW_NUMBER:
        counts[r] = r - f->first + 1;
        return ERR_OK;
    case WINDOW_RANK:
        counts[r] = f->peer - f->first + 1;
        return ERR_OK;
    case WINDOW_DENSE_RANK:
        counts[r] = f->peer_no + 1;
        return ERR_OK;
    case WINDOW_PERCENT_RANK:
        shares[r] = rows > 1 ? (f64)(f->peer - f->first) / (f64)(rows - 1) : 0;
        return ERR_OK;
    case WINDOW_CUME_DIST:
        shares[r] = (f64)(f->peer_end - f->first) / (f64)rows;
        return ERR_OK;
    case WINDOW_NTILE:
        return bucket(j, r);
    case WINDOW_LAG:
    case WINDOW_LEAD:
        take_neighbour(j, r);
        return ERR_OK;
    case WINDOW_FIRST_VALUE:
        take(j, j->args[0], nth_row(f, 0), r);
        return ERR_OK;
    case WINDOW_LAST_VALUE:
        take(j, j->args[0], f->run_count ? f->runs[f->run_count - 1].hi - 1 : -1, r);
        return ERR_OK;
    default:
        return take_nth(j, r);
    }
}

static FALLIBLE func_column(struct column_job *j, i64 first, i64 end) {
    frame_begin(&j->walk, first, end);
    for (i64 r = first; r < end; r++) {
        frame_next(&j->walk);
        TRY(func_row(j, r));
        TRY(check_now(j));
    }
    return ERR_OK;
}

/* string_agg */

struct text_run {
    i64 *start; /* per row of the partition: where its text starts, behind its delimiter */
    i64 *end;   /* where the texts up to this row end */
    i64 *count; /* texts before this row */
    u8 *bytes;
};

static i64 text_sizes(struct column_job *j, i64 first, i64 end, struct text_run *t) {
    i64 at = 0;
    i64 count = 0;
    for (i64 r = first; r < end; r++) {
        const str *s = &((const str *)j->args[0]->data)[r];
        t->count[r - first] = count;
        t->start[r - first] = at;
        if (!is_null(j->args[0], r)) {
            bool comma = j->args[1] && !is_null(j->args[1], r);
            at += comma ? (i64)((const str *)j->args[1]->data)[r].len : 0;
            t->start[r - first] = at;
            at += s->len;
            count++;
        }
        t->end[r - first] = at;
    }
    t->count[end - first] = count;
    return at;
}

static void text_write(struct column_job *j, i64 first, i64 end, const struct text_run *t) {
    i64 at = 0;
    for (i64 r = first; r < end; r++) {
        if (is_null(j->args[0], r)) {
            continue;
        }
        const str *s = &((const str *)j->args[0]->data)[r];
        if (t->start[r - first] > at) {
            const str *comma = &((const str *)j->args[1]->data)[r];
            memcpy(t->bytes + at, (const void *)(size_t)comma->addr, comma->len);
        }
        if (s->len) {
            memcpy(t->bytes + t->start[r - first], (const void *)(size_t)s->addr, s->len);
        }
        at = t->end[r - first];
    }
}

/* The frame's texts are neighbours: from the first one's start to the last one's end. With an
 * exclusion they are put together anew. */
static FALLIBLE text_of_frame(struct column_job *j, i64 first, const struct text_run *t, i64 r) {
    const struct frame_walk *f = &j->walk;
    str *out = j->out->data;
    struct buffer *heap = NULL;
    i64 bytes = 0;
    i64 texts = 0;
    struct sv parts[3];
    for (i32 k = 0; k < f->run_count; k++) {
        i64 lo = f->runs[k].lo;
        while (lo < f->runs[k].hi && is_null(j->args[0], lo)) {
            lo++;
        }
        if (lo == f->runs[k].hi) {
            continue;
        }
        i64 start = texts ? (lo > first ? t->end[lo - first - 1] : 0) : t->start[lo - first];
        parts[texts++] =
            (struct sv){(const char *)t->bytes + start, t->end[f->runs[k].hi - first - 1] - start};
        bytes += parts[texts - 1].len;
    }
    j->out->nulls[r] = texts == 0;
    out[r] = str_from(texts ? parts[0] : SV(""));
    if (texts <= 1) {
        return ERR_OK;
    }
    heap = buffer_new(j->w->x->mem, MAX_OF(bytes, 1));
    if (!heap) {
        return refused(j, bytes);
    }
    i64 at = 0;
    for (i64 k = 0; k < texts; k++) {
        memcpy(heap->data + at, parts[k].ptr, (size_t)parts[k].len);
        at += parts[k].len;
    }
    out[r] = str_from((struct sv){(const char *)heap->data, bytes});
    variable_keep_heap(j->w->x, j->w->step->dst, heap);
    return ERR_OK;
}

static FALLIBLE text_rows(struct column_job *j, i64 first, i64 end, struct text_run *t) {
    i64 bytes = text_sizes(j, first, end, t);
    struct buffer *heap = buffer_new(j->w->x->mem, MAX_OF(bytes, 1));
    if (!heap) {
        return refused(j, bytes);
    }
    t->bytes = heap->data;
    variable_keep_heap(j->w->x, j->w->step->dst, heap);
    text_write(j, first, end, t);
    frame_begin(&j->walk, first, end);
    for (i64 r = first; r < end; r++) {
        frame_next(&j->walk);
        TRY(text_of_frame(j, first, t, r));
        TRY(check_now(j));
    }
    return ERR_OK;
}

static FALLIBLE text_column(struct column_job *j, i64 first, i64 end) {
    i64 n = end - first + 1;
    i64 *numbers = scratch(j, 3 * n, 8);
    if (!numbers) {
        return refused(j, 24 * n);
    }
    struct text_run t = {numbers, numbers + n, numbers + 2 * n, NULL};
    wf_status status = text_rows(j, first, end, &t);
    scratch_free(j, numbers, 3 * n, 8);
    return status;
}

wf_status window_column(struct windowing *w, u32 fn_no, i64 from, i64 to, struct error *err) {
    const struct window_fn *fn = &w->step->windows[fn_no];
    struct column_job j = {.w = w, .fn = fn, .err = err};
    j.out = &w->out->cols[w->chunk->col_count + fn_no];
    for (i32 a = 0; a < 3; a++) {
        j.args[a] = fn->args[a] == NO_VAR ? NULL : &w->chunk->cols[fn->args[a]];
    }
    j.walk = (struct frame_walk){.w = w, .fn = fn};
    TRY(frame_offsets(w->x, fn, &j.walk, err));
    for (i64 p = from; p < to; p++) {
        i64 first = w->parts[p];
        i64 end = w->parts[p + 1];
        TRY(fn->form == WINDOW_WORD   ? word_column(&j, first, end)
            : fn->form == WINDOW_TEXT ? text_column(&j, first, end)
                                      : func_column(&j, first, end));
    }
    return ERR_OK;
}
