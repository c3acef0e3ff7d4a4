/* append.c: rows on their way into a table: INSERT and wf_append.
 *
 * Both end in append_rows: a small number of rows goes to the table's tail, many become sealed
 * tablets made by all workers and published together. Either way all rows appear or none. INSERT
 * first lays its answer out as one array a column, which costs a copy only where the answer has
 * several chunks or holds codes. */
#include "api/api_int.h"

enum { PARALLEL_ROWS = 1 << 18 }; /* fewer rows are not worth waking the workers */

struct tablet_job {
    struct load *load;
    const struct table *table;
    i64 row_count;
    i64 tablet_rows;
    const struct input_col *cols;
    struct mutex lock;
    struct error err; /* the first one met */
};

static void load_one_tablet(void *arg, i64 i, i32 worker) {
    struct tablet_job *job = arg;
    UNUSED(worker);
    i64 first = i * job->tablet_rows;
    i64 rows = MIN_OF(job->tablet_rows, job->row_count - first);
    struct input_col cols[1600];
    struct error err;
    error_reset(&err);
    for (u32 c = 0; c < job->table->col_count; c++) {
        i64 width = kind_bytes[type_kind(job->table->cols[c].type)];
        cols[c].data = (const u8 *)job->cols[c].data + first * width;
        cols[c].nulls = job->cols[c].nulls ? job->cols[c].nulls + first : NULL;
    }
    if (load_tablet(job->load, i, rows, cols, &err)) {
        mutex_lock(&job->lock);
        if (!job->err.code) {
            job->err = err;
        }
        mutex_unlock(&job->lock);
    }
}

static FALLIBLE append_parallel(struct wf_connection *conn, struct table *table, i64 row_count,
                                const struct input_col *cols) {
    struct tablet_job job = {.table = table,
                             .row_count = row_count,
                             .tablet_rows = 1LL << table->tablet_shift,
                             .cols = cols};
    error_reset(&job.err);
    TRY(load_open(&job.load, table, &conn->err));
    mutex_init(&job.lock);
    pool_run(conn->db->pool, (row_count + job.tablet_rows - 1) / job.tablet_rows, load_one_tablet,
             &job);
    mutex_fini(&job.lock);
    if (job.err.code) {
        load_abort(job.load);
        conn->err = job.err;
        return job.err.code;
    }
    return load_commit(job.load, &conn->err);
}

FALLIBLE append_rows(struct wf_connection *conn, struct table *table, i64 row_count,
                     const struct input_col *cols) {
    if (row_count >= PARALLEL_ROWS && row_count >> table->tablet_shift >= 2 &&
        table->col_count <= 1600) {
        return append_parallel(conn, table, row_count, cols);
    }
    return row_count ? table_append(table, row_count, cols, &conn->err) : ERR_OK;
}

/* Copies one slice of a column to out, as elements of `kind`. */
static void copy_values(const struct rowset_col *meta, const struct column *col, i64 first,
                        i64 count, enum kind kind, u8 *out) {
    i64 width = kind_bytes[kind];
    if (col->kind == kind) {
        memcpy(out, (const u8 *)col->data + first * width, (size_t)(count * width));
        return;
    }
    const i32 *codes = (const i32 *)col->data + first;
    for (i64 i = 0; i < count; i++) {
        bool is_null = col->nulls && col->nulls[first + i];
        str view = str_from(is_null ? SV("") : dict_get(meta->dict, codes[i]));
        memcpy(out + i * width, &view, sizeof view);
    }
}

struct gathered {
    struct buffer **buffers; /* 2 per column; some NULL */
    struct input_col *cols;
};

static FALLIBLE gather_column(struct rowset *rows, u32 c, enum kind kind, struct gathered *out,
                              struct error *err) {
    const struct rowset_col *meta = &rows->cols[c];
    const struct answer *answer = &rows->answer;
    bool has_nulls = false;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct column *col = &answer->slices[s].chunk->cols[c];
        has_nulls = has_nulls || col->nulls != NULL;
        if (col->kind != kind && !(kind == KIND_STR && meta->dict)) {
            FAIL(err, INTERNAL, "column %u of the rows to insert has the wrong kind", c + 1);
        }
    }
    i64 bytes = answer->rows * kind_bytes[kind];
    struct buffer *data = out->buffers[2 * c] = buffer_new(&rows->mem, bytes);
    if (!data) {
        return memory_refused(&rows->mem, err, bytes);
    }
    out->cols[c].data = data->data;
    b8 *nulls = NULL;
    if (has_nulls) {
        struct buffer *buf = out->buffers[2 * c + 1] = buffer_new(&rows->mem, answer->rows);
        if (!buf) {
            return memory_refused(&rows->mem, err, answer->rows);
        }
        nulls = buf->data;
        out->cols[c].nulls = nulls;
    }
    i64 at = 0;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        const struct column *col = &slice->chunk->cols[c];
        if (slice->rows == 0) {
            continue;
        }
        copy_values(meta, col, slice->first, slice->rows, kind, data->data + at * kind_bytes[kind]);
        if (nulls && col->nulls) {
            memcpy(nulls + at, col->nulls + slice->first, (size_t)slice->rows);
        } else if (nulls) {
            memset(nulls + at, 0, (size_t)slice->rows);
        }
        at += slice->rows;
    }
    return ERR_OK;
}

/* One array a column: where the answer lies in one piece, that piece itself. */
static FALLIBLE gather(struct rowset *rows, const struct table *table, struct gathered *out,
                       struct error *err) {
    for (u32 c = 0; c < table->col_count; c++) {
        enum kind kind = type_kind(table->cols[c].type);
        const struct slice *only = rows->answer.slices;
        const struct column *col = &only->chunk->cols[c];
        if (rows->answer.slice_count == 1 && col->kind == kind) {
            out->cols[c].data = (const u8 *)col->data + only->first * kind_bytes[kind];
            out->cols[c].nulls = col->nulls ? col->nulls + only->first : NULL;
        } else {
            TRY(gather_column(rows, c, kind, out, err));
        }
    }
    return ERR_OK;
}

FALLIBLE insert_answer(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    st = st->kind == STATEMENT_EXPLAIN ? st->inner : st;
    struct snapshot_table target;
    if (!snapshot_find_id(&rows->snap, st->table_id, &target)) {
        TRY(snapshot_find(&rows->snap, sv_from(st->table_name), st->position, &target, &conn->err));
    }
    struct table *table = target.table;
    if (rows->col_count != table->col_count) {
        FAIL(&conn->err, INTERNAL, "%u columns to insert, %u in the table", rows->col_count,
             table->col_count);
    }
    i64 count = rows->answer.rows;
    if (count > 0) {
        struct gathered all = {NEW_ARRAY(&rows->arena, struct buffer *, 2 * table->col_count),
                               NEW_ARRAY(&rows->arena, struct input_col, table->col_count)};
        wf_status status = gather(rows, table, &all, &conn->err);
        if (!status) {
            status = arena_check(&rows->arena, &conn->err);
        }
        if (!status) {
            status = append_rows(conn, table, count, all.cols);
            rows->took_effect = !status;
        }
        for (u32 i = 0; i < 2 * table->col_count; i++) {
            buffer_release(all.buffers[i]);
        }
        TRY(status);
    }
    rows->rows_affected = count;
    rows->tag = arena_printf(&rows->arena, "INSERT 0 %lld", count);
    rows->col_count = 0;
    rows->answer = (struct answer){0, 0, NULL};
    return ERR_OK;
}

FALLIBLE run_insert(struct wf_connection *conn, const struct run_request *request,
                    struct rowset *rows) {
    TRY(rowset_open_exec(conn, request, rows));
    TRY(rowset_run_exec(conn, rows));
    return insert_answer(conn, rows);
}

static FALLIBLE value_refused(const struct column_def *col, i64 row, struct error *err) {
    char type[32];
    FAIL(err, OUT_OF_RANGE, "row %lld: the value of column \"%s\" is out of range for type %s",
         row + 1, col->name, type_print(col->type, type));
}

/* Values a column of this type cannot hold must not get in: statistics and kernels rely on it. */
static FALLIBLE check_values(const struct column_def *col, i64 rows, const wf_input *in,
                             struct error *err) {
    struct range range = range_of_type(col->type);
    enum kind kind = type_kind(col->type);
    for (i64 i = 0; i < rows; i++) {
        i128 value = 0;
        switch (kind) {
        case KIND_B8:
            value = ((const u8 *)in->values)[i];
            break;
        case KIND_I32:
            value = ((const i32 *)in->values)[i];
            break;
        case KIND_I64:
            value = ((const i64 *)in->values)[i];
            break;
        case KIND_I128:
            memcpy(&value, (const u8 *)in->values + i * 16, sizeof value);
            break;
        default:
            return ERR_OK;
        }
        if ((value < range.lo || value > range.hi) && !(in->nulls && in->nulls[i])) {
            return value_refused(col, i, err);
        }
    }
    return ERR_OK;
}

static FALLIBLE text_views(struct rowset *rows, const struct column_def *col, i64 count,
                           const wf_input *in, struct buffer **out, struct error *err) {
    *out = buffer_new(&rows->mem, count * (i64)sizeof(str));
    if (!*out) {
        return memory_refused(&rows->mem, err, count * (i64)sizeof(str));
    }
    const wf_text *texts = in->values;
    for (i64 i = 0; i < count; i++) {
        struct sv text = {texts[i].ptr, (i64)texts[i].len};
        if (in->nulls && in->nulls[i]) {
            text = SV("");
        } else if (text.len < 0 || text.len >= 1LL << 32 || (text.len && !text.ptr) ||
                   !utf8_valid(text.ptr, text.len, NULL)) {
            FAIL(err, INVALID_ENCODING, "row %lld: the text of column \"%s\" is not valid UTF-8",
                 i + 1, col->name);
        }
        str view = str_from(text);
        memcpy((*out)->data + i * (i64)sizeof view, &view, sizeof view);
    }
    return ERR_OK;
}

static FALLIBLE append_input(struct wf_connection *conn, struct rowset *rows, struct table *table,
                             i64 count, const wf_input *in, struct buffer **buffers) {
    struct input_col *cols = NEW_ARRAY(&rows->arena, struct input_col, table->col_count);
    for (u32 c = 0; c < table->col_count; c++) {
        const struct column_def *col = &table->cols[c];
        if (!in[c].values && count > 0) {
            FAIL(&conn->err, MISUSE, "column \"%s\" has no values", col->name);
        }
        cols[c] = (struct input_col){.data = in[c].values, .nulls = in[c].nulls};
        if (type_kind(col->type) == KIND_STR) {
            TRY(text_views(rows, col, count, &in[c], &buffers[c], &conn->err));
            cols[c].data = buffers[c]->data;
        } else {
            TRY(check_values(col, count, &in[c], &conn->err));
        }
    }
    TRY(arena_check(&rows->arena, &conn->err));
    return append_rows(conn, table, count, cols);
}

static FALLIBLE append_named(struct wf_connection *conn, struct rowset *rows, const char *name,
                             i64 count, i32 column_count, const wf_input *in) {
    struct snapshot_table target;
    TRY(snapshot_find(&rows->snap, sv_from(name), -1, &target, &conn->err));
    if (column_count != (i32)target.table->col_count) {
        FAIL(&conn->err, MISUSE, "table \"%s\" has %u columns, %d were given", name,
             target.table->col_count, column_count);
    }
    struct buffer **buffers = NEW_ARRAY(&rows->arena, struct buffer *, column_count);
    wf_status status = append_input(conn, rows, target.table, count, in, buffers);
    for (i32 c = 0; c < column_count; c++) {
        buffer_release(buffers[c]);
    }
    return status;
}

wf_status wf_append(wf_connection *conn, const char *table, int64_t rows, int32_t column_count,
                    const wf_input *columns) {
    if (!table || !columns || rows < 0 || connection_enter(conn)) {
        return WF_MISUSE;
    }
    struct rowset *scratch; /* for its snapshot and budget */
    wf_status status = rowset_new(conn, &scratch);
    if (!status) {
        status = append_named(conn, scratch, table, rows, column_count, columns);
        rowset_release(scratch);
    }
    return connection_leave(conn, status, (struct sv){NULL, 0});
}
