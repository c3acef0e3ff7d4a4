/* append.c: rows on their way into a table: INSERT and wf_append.
 *
 * Both end in append_rows: a small number of rows goes to the table's tail, many become sealed
 * tablets made by all workers. Either way the outcome is a version of the transaction's own, so all
 * rows appear or none. INSERT first lays its answer out as one array a column, which costs a copy
 * only where the answer has several chunks or holds codes. */
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
        cols[c] =
            (struct input_col){.data = (const u8 *)job->cols[c].data + first * width,
                               .nulls = job->cols[c].nulls ? job->cols[c].nulls + first : NULL};
    }
    if (load_tablet(job->load, i, rows, cols, &err)) {
        mutex_lock(&job->lock);
        if (!job->err.code) {
            job->err = err;
        }
        mutex_unlock(&job->lock);
    }
}

static FALLIBLE append_parallel(struct wf_connection *conn, struct table *table,
                                struct table_version *base, i64 row_count,
                                const struct input_col *cols, struct table_version **out) {
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
    return load_finish(job.load, base, out, &conn->err);
}

FALLIBLE append_rows(struct wf_connection *conn, struct table *table, struct table_version *base,
                     i64 row_count, const struct input_col *cols, struct table_version **out) {
    if (row_count >= PARALLEL_ROWS && row_count >> table->tablet_shift >= 2 &&
        table->col_count <= 1600) {
        return append_parallel(conn, table, base, row_count, cols, out);
    }
    return version_append_unchecked(table, base, row_count, cols, out, &conn->err);
}

/* One column of the answer on its way into an array. */
struct copying {
    const struct rowset_col *meta;
    enum kind kind;
    u8 *to;
    b8 *nulls;
    const b8 *keep; /* by answer row; NULL = all */
    i64 at;
};

/* Copies rows [from, from + count) of a chunk's column, the first of them answer row `row`. */
static void copy_values(struct copying *c, const struct column *col, i64 from, i64 count, i64 row) {
    i64 width = kind_bytes[c->kind];
    if (!c->keep && col->kind == c->kind) {
        memcpy(c->to + c->at * width, (const u8 *)col->data + from * width,
               (size_t)(count * width));
        if (c->nulls && col->nulls) {
            memcpy(c->nulls + c->at, col->nulls + from, (size_t)count);
        } else if (c->nulls) {
            memset(c->nulls + c->at, 0, (size_t)count);
        }
        c->at += count;
        return;
    }
    const i32 *codes = col->data;
    for (i64 i = 0; i < count; i++) {
        if (c->keep && !c->keep[row + i]) {
            continue;
        }
        bool is_null = col->nulls && col->nulls[from + i];
        if (col->kind == c->kind) {
            memcpy(c->to + c->at * width, (const u8 *)col->data + (from + i) * width,
                   (size_t)width);
        } else {
            str view = str_from(is_null ? SV("") : dict_get(c->meta->dict, codes[from + i]));
            memcpy(c->to + c->at * width, &view, sizeof view);
        }
        if (c->nulls) {
            c->nulls[c->at] = is_null;
        }
        c->at++;
    }
}

static FALLIBLE gather_column(struct rowset *rows, u32 source, u32 c, enum kind kind,
                              const b8 *keep, struct gathered *out, struct error *err) {
    const struct answer *answer = &rows->answer;
    struct copying copying = {.meta = &rows->cols[source], .kind = kind, .keep = keep};
    bool has_nulls = false;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct column *col = &answer->slices[s].chunk->cols[source];
        has_nulls = has_nulls || col->nulls != NULL;
        if (col->kind != kind && !(kind == KIND_STR && copying.meta->dict)) {
            FAIL(err, INTERNAL, "column %u of the rows to insert has the wrong kind", c + 1);
        }
    }
    i64 bytes = MAX_OF(out->rows, 1) * kind_bytes[kind];
    struct buffer *data = out->buffers[2 * c] = buffer_new(&rows->mem, bytes);
    if (!data) {
        return memory_refused(&rows->mem, err, bytes);
    }
    out->cols[c].data = copying.to = data->data;
    if (has_nulls) {
        struct buffer *buf = out->buffers[2 * c + 1] = buffer_new(&rows->mem, MAX_OF(out->rows, 1));
        if (!buf) {
            return memory_refused(&rows->mem, err, out->rows);
        }
        out->cols[c].nulls = copying.nulls = buf->data;
    }
    i64 row = 0;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        if (slice->rows > 0) {
            copy_values(&copying, &slice->chunk->cols[source], slice->first, slice->rows, row);
            row += slice->rows;
        }
    }
    return ERR_OK;
}

FALLIBLE gather(struct rowset *rows, const struct table *table, u32 first, const b8 *keep, i64 kept,
                struct gathered *out, struct error *err) {
    *out = (struct gathered){NEW_ARRAY(&rows->arena, struct buffer *, 2 * table->col_count),
                             NEW_ARRAY(&rows->arena, struct input_col, table->col_count), kept};
    for (u32 c = 0; c < table->col_count; c++) {
        enum kind kind = type_kind(table->cols[c].type);
        const struct slice *only = rows->answer.slices;
        const struct column *col = rows->answer.slice_count ? &only->chunk->cols[first + c] : NULL;
        if (!keep && rows->answer.slice_count == 1 && col->kind == kind) {
            out->cols[c].data = (const u8 *)col->data + only->first * kind_bytes[kind];
            out->cols[c].nulls = col->nulls ? col->nulls + only->first : NULL;
        } else {
            TRY(gather_column(rows, first + c, c, kind, keep, out, err));
        }
    }
    return arena_check(&rows->arena, err);
}

void gather_free(const struct table *table, struct gathered *all) {
    for (u32 i = 0; all->buffers && i < 2 * table->col_count; i++) {
        buffer_release(all->buffers[i]);
    }
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
    return change_append(conn, table, count, cols);
}

static FALLIBLE append_named(struct wf_connection *conn, struct rowset *rows, const char *name,
                             i64 count, i32 column_count, const wf_input *in) {
    struct snapshot_table target;
    connection_snapshot(conn, &rows->snap);
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

static FALLIBLE append_inside(struct wf_connection *conn, const char *name, i64 count,
                              i32 column_count, const wf_input *in) {
    if (conn->tx.failed) {
        return tx_refuse(conn);
    }
    struct rowset *scratch; /* for its snapshot and budget */
    struct tx_mark mark;
    TRY(rowset_new(conn, &scratch));
    wf_status status = tx_enter(conn, &mark);
    if (!status) {
        status = append_named(conn, scratch, name, count, column_count, in);
        status = tx_leave(conn, &mark, status);
    }
    rowset_release(scratch);
    return status;
}

wf_status wf_append(wf_connection *conn, const char *table, int64_t rows, int32_t column_count,
                    const wf_input *columns) {
    if (!table || !columns || rows < 0 || connection_enter(conn)) {
        return WF_MISUSE;
    }
    wf_status status = append_inside(conn, table, rows, column_count, columns);
    return connection_leave(conn, status, (struct sv){NULL, 0});
}
