/* window.c: STEP_WINDOW: window functions over sorted rows.
 *
 * Rows come sorted by partition and order, in one chunk. One pass marks where partitions and groups
 * of peers start; then every (function, run of partitions) is a task of the pool. The result is a
 * variable that shares the source's buffers and has a column more for each function.
 *
 * Calls of sequences come in steps of their own: they are made in the order of the rows. */
#include "cpu/window_int.h"

#include "base/temp.h"

enum { TASKS_PER_WORKER = 4, MARK_ROWS = 64 << 10 };

static bool same_float(f64 a, f64 b) {
    return a == b || (a != a && b != b);
}

bool column_same(const struct column *col, i64 a, i64 b) {
    bool null_a = col->nulls && col->nulls[a];
    bool null_b = col->nulls && col->nulls[b];
    if (null_a || null_b) {
        return null_a && null_b;
    }
    switch (col->kind) {
    case KIND_B8:
        return ((const b8 *)col->data)[a] == ((const b8 *)col->data)[b];
    case KIND_I32:
        return ((const i32 *)col->data)[a] == ((const i32 *)col->data)[b];
    case KIND_I64:
        return ((const i64 *)col->data)[a] == ((const i64 *)col->data)[b];
    case KIND_I128:
        return ((const i128 *)col->data)[a] == ((const i128 *)col->data)[b];
    case KIND_F32:
        return same_float((f64)((const f32 *)col->data)[a], (f64)((const f32 *)col->data)[b]);
    case KIND_F64:
        return same_float(((const f64 *)col->data)[a], ((const f64 *)col->data)[b]);
    default:
        return sv_eq(sv_of(((const str *)col->data)[a]), sv_of(((const str *)col->data)[b]));
    }
}

static void mark_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct windowing *w = arg;
    i64 end = MIN_OF((i + 1) * MARK_ROWS, w->rows);
    if (w->x->mem->temp) {
        temp_cool(w->x->mem->temp);
    }
    for (i64 r = i * MARK_ROWS; r < end; r++) {
        b8 mark = r == 0 ? WINDOW_PART | WINDOW_PEER : 0;
        for (u32 k = 0; k < w->step->key_count && mark != (WINDOW_PART | WINDOW_PEER); k++) {
            bool is_part = k < w->step->part_count;
            if ((is_part || !mark) &&
                !column_same(&w->chunk->cols[w->step->keys[k].col], r - 1, r)) {
                mark = (b8)(mark | (is_part ? WINDOW_PART | WINDOW_PEER : WINDOW_PEER));
            }
        }
        w->starts[r] = mark;
    }
}

static FALLIBLE find_parts(struct windowing *w) {
    tasks_run(w->x, (w->rows + MARK_ROWS - 1) / MARK_ROWS, mark_task, w);
    for (i64 r = 0; r < w->rows; r++) {
        w->part_count += w->starts[r] & WINDOW_PART;
    }
    i64 bytes = (w->part_count + 1) * (i64)sizeof(i64);
    w->parts = mem_alloc(w->x->mem, bytes);
    if (!w->parts) {
        return memory_refused(w->x->mem, w->x->err, bytes);
    }
    i64 at = 0;
    for (i64 r = 0; r < w->rows; r++) {
        if (w->starts[r] & WINDOW_PART) {
            w->parts[at++] = r;
        }
    }
    w->parts[at] = w->rows;
    return exec_check(w->x);
}

/* The source's columns by reference, the new ones empty. */
static FALLIBLE open_out(struct windowing *w) {
    struct exec *x = w->x;
    const struct var *def = &x->program->vars[w->step->dst];
    u32 old = w->chunk->col_count;
    struct chunk *out = chunk_view_new(x, def->col_count);
    if (!out) {
        return memory_refused(x->mem, x->err, 256);
    }
    w->out = out;
    out->rows = w->rows;
    for (u32 c = 0; c < old; c++) {
        out->cols[c] = w->chunk->cols[c];
        out->buffers[2 * c] = buffer_retain(w->chunk->buffers[2 * c]);
        struct buffer *nulls = w->chunk->buffers[2 * c + 1];
        out->buffers[2 * c + 1] = nulls ? buffer_retain(nulls) : NULL;
    }
    for (u32 c = old; c < def->col_count; c++) {
        i64 bytes = MAX_OF(w->rows, 1) * kind_bytes[def->kinds[c]];
        const struct window_fn *fn = &w->step->windows[c - old];
        bool nullable =
            fn->form == WINDOW_SERIAL
                ? fn->args[0] != NO_VAR || fn->func >= SERIAL_SET
                : fn->form != WINDOW_WORD && (fn->form == WINDOW_TEXT || fn->func >= WINDOW_NTILE);
        out->cols[c].kind = def->kinds[c];
        out->buffers[2 * c] = buffer_new(x->mem, bytes);
        out->buffers[2 * c + 1] = nullable ? buffer_new(x->mem, MAX_OF(w->rows, 1)) : NULL;
        if (!out->buffers[2 * c] || (nullable && !out->buffers[2 * c + 1])) {
            return memory_refused(x->mem, x->err, bytes);
        }
        out->cols[c].data = out->buffers[2 * c]->data;
        out->cols[c].nulls = nullable ? out->buffers[2 * c + 1]->data : NULL;
    }
    return ERR_OK;
}

static void column_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct windowing *w = arg;
    struct error err;
    error_reset(&err);
    i64 from = i % w->tasks * w->task_parts;
    i64 to = MIN_OF(from + w->task_parts, w->part_count);
    wf_status status = exec_check(w->x);
    status = status ? status : window_column(w, (u32)(i / w->tasks), from, to, &err);
    if (status) {
        mutex_lock(&w->lock);
        if (!w->status) {
            w->status = status;
            w->err = err;
        }
        mutex_unlock(&w->lock);
    }
}

static FALLIBLE compute(struct windowing *w) {
    i32 workers = w->x->pool ? pool_worker_count(w->x->pool) : 1;
    i64 tasks = MAX_OF(MIN_OF(w->part_count, (i64)workers * TASKS_PER_WORKER), 1);
    w->task_parts = (w->part_count + tasks - 1) / tasks;
    w->tasks = MAX_OF((w->part_count + w->task_parts - 1) / MAX_OF(w->task_parts, 1), 1);
    mutex_init(&w->lock);
    tasks_run(w->x, w->tasks * w->step->window_count, column_task, w);
    mutex_fini(&w->lock);
    if (w->status && w->x->err->code == ERR_OK) {
        *w->x->err = w->err;
    }
    return w->status;
}

static bool is_null_at(const struct windowing *w, u32 col, i64 row) {
    const struct column *c = &w->chunk->cols[col];
    return c->nulls && c->nulls[row];
}

/* One call of a sequence for one row: into column `col` of the result. */
static FALLIBLE serial_call(struct windowing *w, const struct window_fn *fn, i64 row,
                            struct column *col) {
    const struct column *cols = w->chunk->cols;
    i64 value = 0;
    bool called = true, none = false;
    if (fn->args[0] != NO_VAR) {
        none = is_null_at(w, fn->args[0], row) || !((const b8 *)cols[fn->args[0]].data)[row];
    }
    if (fn->args[1] != NO_VAR) {
        none = none || is_null_at(w, fn->args[1], row);
        value = ((const i64 *)cols[fn->args[1]].data)[row];
    }
    if (fn->args[2] != NO_VAR) {
        none = none || is_null_at(w, fn->args[2], row);
        called = ((const b8 *)cols[fn->args[2]].data)[row];
    }
    i64 *out = (i64 *)col->data + row;
    *out = 0;
    if (col->nulls) {
        col->nulls[row] = none;
    }
    struct exec *x = w->x;
    return none ? ERR_OK : x->serial(x->serial_arg, fn, value, called, out, x->err);
}

/* Calls have effects that later ones see: one row after the other, on one thread. */
static FALLIBLE serial_all(struct windowing *w) {
    TRY(open_out(w));
    struct column *cols = w->out->cols + w->chunk->col_count;
    for (i64 row = 0; row < w->rows; row++) {
        for (u32 i = 0; i < w->step->window_count; i++) {
            TRY(serial_call(w, &w->step->windows[i], row, &cols[i]));
        }
        if (row % MARK_ROWS == 0) {
            TRY(exec_check(w->x));
        }
    }
    return ERR_OK;
}

static FALLIBLE window_all(struct windowing *w) {
    w->starts = mem_alloc(w->x->mem, MAX_OF(w->rows, 1));
    if (!w->starts) {
        return memory_refused(w->x->mem, w->x->err, w->rows);
    }
    TRY(find_parts(w));
    TRY(open_out(w));
    return compute(w);
}

wf_status window_run(struct exec *x, const struct step *step) {
    TRY(variable_flatten(x, step->src));
    ASSERT(x->vars[step->src].chunks.count == 1); /* it was sorted */
    struct windowing w = {.x = x, .step = step, .chunk = x->vars[step->src].chunks.items[0]};
    w.rows = w.chunk->rows;
    variable_reset(&x->vars[step->dst]);
    bool serial = step->window_count > 0 && step->windows[0].form == WINDOW_SERIAL;
    wf_status status = serial ? serial_all(&w) : window_all(&w);
    mem_free(x->mem, w.starts, MAX_OF(w.rows, 1));
    mem_free(x->mem, w.parts, w.parts ? (w.part_count + 1) * (i64)sizeof(i64) : 0);
    if (status) {
        chunk_release(w.out);
        return status;
    }
    variable_append(x, step->dst, w.out);
    variable_keep_heaps(x, step->dst, step->src);
    return ERR_OK;
}
