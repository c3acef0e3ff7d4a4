/* fetch.c: STEP_FETCH: columns of a table for rows that are in their final order.
 *
 * A sort of wide rows carries its keys and the rows' numbers. Everything else is read once, here,
 * by number, straight from the tablets. So nothing wide is written before it is known where it
 * goes, and an answer that is read piece by piece never exists as a whole.
 *
 * A task makes one chunk. It finds the tablet of every row, puts the rows of a tablet together, and
 * then takes a column from one segment after the other. So what an encoding means is asked once per
 * segment, not once per row. Tablets are on the host whatever device sorted, so no device is
 * involved. */
#include "run/run_int.h"

enum {
    FETCH_ROWS = 1 << 15, /* of one chunk */
    GUIDE_BITS_MAX = 12
};

struct fetcher {
    struct exec *x;
    const struct step *step;
    const struct table_version *version;
    /* row >> guide_shift to the first tablet that may hold it */
    u32 *guide;
    i32 guide_shift;
    u32 step_no;
    i64 first, end; /* rows of src to take */
    _Atomic i32 refused;
    wf_status status; /* of a column that could not be read, and why; under the execution's lock */
    struct error err;
};

/* The rows of one task by tablet: runs[t] .. runs[t + 1] are those of tablet t. */
struct places {
    u32 *pos;    /* in the tablet */
    u32 *to;     /* in the chunk */
    u32 *tablet; /* of each row, before they are put together */
    i64 *runs;
    void *memory;
    i64 bytes;
};

wf_status fetch_open(struct exec *x, const struct step *step, u32 step_no, struct fetcher **out) {
    struct fetcher *f = NEW(x->arena, struct fetcher);
    f->x = x;
    f->step = step;
    f->step_no = step_no;
    f->version = x->versions[step->table];
    *out = f;
    i64 rows = MAX_OF(f->version->rows, 1);
    while (rows >> f->guide_shift >= 1 << GUIDE_BITS_MAX) {
        f->guide_shift++;
    }
    i64 count = (rows >> f->guide_shift) + 1;
    f->guide = NEW_ARRAY(x->arena, u32, count);
    u32 t = 0;
    for (i64 g = 0; g < count; g++) {
        i64 row = g << f->guide_shift;
        while (t + 1 < f->version->tablet_count && f->version->row_starts[t + 1] <= row) {
            t++;
        }
        f->guide[g] = t;
    }
    return arena_check(x->arena, x->err);
}

static bool places_open(const struct fetcher *f, i64 n, struct places *out) {
    i64 tablets = f->version->tablet_count;
    out->bytes = (tablets + 2) * (i64)sizeof(i64) + 3 * n * (i64)sizeof(u32);
    out->memory = mem_alloc(f->x->mem, out->bytes);
    out->runs = out->memory;
    if (out->memory) {
        memset(out->runs, 0, (size_t)(tablets + 2) * sizeof(i64));
        out->pos = (u32 *)(void *)(out->runs + tablets + 2);
        out->to = out->pos + n;
        out->tablet = out->to + n;
    }
    return out->memory != NULL;
}

static void find_places(const struct fetcher *f, const i64 *row, i64 n, struct places *p) {
    const i64 *starts = f->version->row_starts;
    i64 last = f->version->tablet_count - 1;
    for (i64 i = 0; i < n; i++) {
        ASSERT(row[i] >= 0 && row[i] < f->version->rows);
        u32 t = f->guide[row[i] >> f->guide_shift];
        while (t < last && starts[t + 1] <= row[i]) {
            t++;
        }
        p->tablet[i] = t;
        p->runs[t + 2]++;
    }
    for (i64 t = 0; t <= last; t++) { /* runs[t + 1]: where the next row of tablet t goes */
        p->runs[t + 2] += p->runs[t + 1];
    }
    for (i64 i = 0; i < n; i++) {
        u32 t = p->tablet[i];
        i64 at = p->runs[t + 1]++;
        p->pos[at] = (u32)(row[i] - starts[t]);
        p->to[at] = (u32)i;
    }
}

static bool column_nulls(struct exec *x, struct chunk *chunk, u32 c) {
    struct buffer *nulls = buffer_new(x->mem, MAX_OF(chunk->rows, 1));
    chunk->buffers[2 * c + 1] = nulls;
    chunk->cols[c].nulls = nulls ? nulls->data : NULL;
    if (nulls) {
        memset(nulls->data, 0, (size_t)chunk->rows);
    }
    return nulls != NULL;
}

/* Makes a segment readable until segment_drop; text stays as long as the execution. */
static bool segment_hold(struct fetcher *f, const struct tablet *tablet, u32 col) {
    struct error err;
    error_reset(&err);
    bool text = tablet->cols[col].encoding == ENC_STR;
    wf_status status = text ? exec_hold(f->x, tablet, col, true, &err) : column_hold(tablet, col, HOLD_SHORT, &err);
    if (status) {
        mutex_lock(&f->x->lock);
        f->err = f->status ? f->err : err;
        f->status = f->status ? f->status : status;
        mutex_unlock(&f->x->lock);
    }
    return !status;
}

static void segment_drop(const struct tablet *tablet, u32 col) {
    if (tablet->cols[col].encoding != ENC_STR) {
        column_drop(tablet, col);
    }
}

static void take_nulls(const struct segment *seg, const struct places *p, i64 first, i64 n,
                       struct column *to) {
    for (i64 i = first; i < first + n; i++) {
        to->nulls[p->to[i]] = segment_is_null(seg, p->pos[i]);
    }
}

/* A column of the table for the rows of a chunk; false when it cannot be read, or memory is
 * refused. */
static bool take_column(struct fetcher *f, u32 c, const struct places *p,
                        struct chunk *chunk) {
    u32 col = f->step->fetches[c].col;
    const struct dict *dict = f->x->tables[f->step->table]->dicts[col];
    struct column *to = &chunk->cols[c];
    for (i64 t = 0; t < f->version->tablet_count; t++) {
        const struct segment *seg = &f->version->tablets[t]->cols[col];
        i64 first = p->runs[t];
        i64 n = p->runs[t + 1] - first;
        if (n == 0) {
            continue;
        }
        if (!segment_hold(f, f->version->tablets[t], col)) {
            return false;
        }
        segment_take(seg, dict, to->kind, p->pos + first, p->to + first, n, to->data);
        bool fine = !seg->valid || to->nulls || column_nulls(f->x, chunk, c);
        if (seg->valid && fine) {
            take_nulls(seg, p, first, n, to);
        }
        segment_drop(f->version->tablets[t], col);
        if (!fine) {
            return false;
        }
    }
    return true;
}

/* A column that came along. */
static bool copy_column(const struct fetcher *f, u32 c, const struct column *from, i64 first,
                        struct chunk *chunk) {
    struct column *to = &chunk->cols[c];
    i64 width = kind_bytes[to->kind];
    memcpy(to->data, (const u8 *)from->data + first * width, (size_t)(chunk->rows * width));
    if (!from->nulls) {
        return true;
    }
    if (!column_nulls(f->x, chunk, c)) {
        return false;
    }
    memcpy(to->nulls, from->nulls + first, (size_t)chunk->rows);
    return true;
}

static bool fetch_chunk(struct fetcher *f, const struct chunk *src, i64 first, i64 n,
                        i64 order) {
    struct exec *x = f->x;
    const struct step *step = f->step;
    struct places places = {0};
    struct chunk *chunk = chunk_new(x, &x->program->vars[step->dst], n, false);
    bool fine = chunk && places_open(f, n, &places);
    if (fine) {
        find_places(f, (const i64 *)src->cols[step->col].data + first, n, &places);
    }
    for (u32 c = 0; fine && c < chunk->col_count; c++) {
        const struct fetched_col *fetch = &step->fetches[c];
        fine = fetch->from_table ? take_column(f, c, &places, chunk)
                                 : copy_column(f, c, &src->cols[fetch->col], first, chunk);
    }
    mem_free(x->mem, places.memory, places.bytes);
    if (!fine) {
        chunk_release(chunk);
        return false;
    }
    chunk->order = order;
    variable_append(x, step->dst, chunk);
    return true;
}

/* Task i: rows [i * FETCH_ROWS, (i + 1) * FETCH_ROWS) of those wanted, as far as they lie in one
 * chunk of the source each. */
static void fetch_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct fetcher *f = arg;
    const struct variable *src = &f->x->vars[f->step->src];
    i64 at = f->first + i * FETCH_ROWS;
    i64 end = MIN_OF(at + FETCH_ROWS, f->end);
    i64 start = 0;
    if (exec_check(f->x)) {
        return;
    }
    for (i64 c = 0; c < src->chunks.count && at < end; c++) {
        const struct chunk *chunk = src->chunks.items[c];
        i64 stop = MIN_OF(end, start + chunk->rows);
        if (at < stop) {
            if (!fetch_chunk(f, chunk, at - start, stop - at, at)) {
                atomic_store(&f->refused, 1);
                return;
            }
            at = stop;
        }
        start += chunk->rows;
    }
}

static i64 row_bytes(const struct exec *x, u32 var) {
    i64 bytes = 1;
    for (u32 c = 0; c < x->program->vars[var].col_count; c++) {
        bytes += kind_bytes[x->program->vars[var].kinds[c]];
    }
    return bytes;
}

/* Rows [first, end) of src replace those of dst. */
static FALLIBLE fetch_window(struct fetcher *f, i64 first, i64 end) {
    struct exec *x = f->x;
    struct variable *dst = &x->vars[f->step->dst];
    f->first = first;
    f->end = end;
    variable_reset(dst);
    dst->on_host = 1;
    i64 tasks = (end - first + FETCH_ROWS - 1) / FETCH_ROWS;
    if (x->pool && tasks > 1) {
        pool_run(x->pool, tasks, fetch_task, f);
    } else {
        for (i64 i = 0; i < tasks; i++) {
            fetch_task(f, i, 0);
        }
    }
    TRY(exec_check(x));
    i64 bytes = (end - first) * row_bytes(x, f->step->dst);
    if (f->status) {
        *x->err = f->err;
        return f->status;
    }
    if (atomic_load(&f->refused)) {
        return memory_refused(x->mem, x->err, bytes);
    }
    variable_order(x, f->step->dst);
    variable_keep_heaps(x, f->step->dst, f->step->src);
    struct step_metric *metric = &x->metrics[f->step_no];
    work_rows(x, end - first);
    metric->rows_in += end - first;
    metric->rows_out += end - first;
    metric->bytes_read += bytes;
    return ERR_OK;
}

wf_status fetch_run(struct exec *x, const struct step *step, u32 step_no) {
    struct fetcher *f;
    TRY(fetch_open(x, step, step_no, &f));
    return fetch_window(f, 0, x->vars[step->src].rows);
}

wf_status fetch_next(struct fetcher *f, i64 want_bytes, i64 limit, bool *out_end) {
    i64 rows = f->x->vars[f->step->src].rows;
    i64 want = MAX_OF(want_bytes / row_bytes(f->x, f->step->dst), 1);
    want = limit < 0 ? want : MIN_OF(want, MAX_OF(limit, 1));
    TRY(fetch_window(f, f->end, f->end + MIN_OF(want, rows - f->end)));
    *out_end = f->end == rows;
    return ERR_OK;
}
