/* append.c: wf_append: a client's arrays checked, then appended like the rows of a statement.
 *
 * What a column cannot hold does not get in; the arrays are read where they lie. */
#include "api/api_int.h"

#include "host/chars.h"

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
