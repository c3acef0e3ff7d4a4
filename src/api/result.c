/* result.c: reading rows: results, batches and single values.
 *
 * A batch is a window on one chunk of the answer; making one costs nothing, whatever its size,
 * because values are handed out where they lie. Text is the exception: a column may hold codes of a
 * dictionary, so text is asked for value by value. When the rows at hand are read, the next ones
 * are computed (rowset_more) and take their place. */
#include "api/api_int.h"

struct wf_result *result_take(struct rowset *rows) {
    struct wf_result *result = rows->result;
    rows->result = NULL;
    memset(result, 0, sizeof *result);
    result->rows = rows;
    return result;
}

void wf_result_close(wf_result *result) {
    if (result) {
        struct rowset *rows = result->rows;
        mem_free(&rows->db->mem, result, (i64)sizeof *result);
        rowset_release(rows);
    }
}

int32_t wf_result_column_count(const wf_result *result) {
    return result ? (int32_t)result->rows->col_count : 0;
}

const char *wf_result_name(const wf_result *result, int32_t column) {
    if (!result || column < 0 || column >= (i32)result->rows->col_count) {
        return NULL;
    }
    return result->rows->cols[column].name;
}

void type_info(struct type type, wf_type_info *out) {
    memset(out, 0, sizeof *out);
    out->type = (wf_type)type.id;
    out->precision = type.id == TYPE_DECIMAL ? type.precision
                     : type.precision        ? type.precision - 1
                                             : 0;
    out->scale = type.id == TYPE_DECIMAL ? type.scale : 0;
    out->oid = type_oid(type);
    type_print(type, out->text);
}

_Static_assert((int)WF_TYPE_UNKNOWN == TYPE_UNKNOWN && (int)WF_TYPE_BOOLEAN == TYPE_BOOLEAN &&
                   (int)WF_TYPE_SMALLINT == TYPE_SMALLINT && (int)WF_TYPE_INTEGER == TYPE_INTEGER &&
                   (int)WF_TYPE_BIGINT == TYPE_BIGINT && (int)WF_TYPE_DECIMAL == TYPE_DECIMAL &&
                   (int)WF_TYPE_REAL == TYPE_REAL && (int)WF_TYPE_DOUBLE == TYPE_DOUBLE &&
                   (int)WF_TYPE_DATE == TYPE_DATE && (int)WF_TYPE_TEXT == TYPE_TEXT &&
                   (int)WF_TYPE_CHAR == TYPE_CHAR && (int)WF_TYPE_TIMESTAMP == TYPE_TIMESTAMP &&
                   (int)WF_TYPE_TIMESTAMPTZ == TYPE_TIMESTAMPTZ && (int)WF_TYPE_TIME == TYPE_TIME &&
                   (int)WF_TYPE_INTERVAL == TYPE_INTERVAL && (int)WF_TYPE_BLOB == TYPE_BLOB &&
                   (int)WF_TYPE_UUID == TYPE_UUID && (int)WF_TYPE_UUID + 1 == TYPE_COUNT,
               "wf_type lists the types of type.def in their order");

wf_status wf_result_type(const wf_result *result, int32_t column, wf_type_info *out) {
    if (!result || !out || column < 0 || column >= (i32)result->rows->col_count) {
        return WF_MISUSE;
    }
    type_info(result->rows->cols[column].type, out);
    return WF_OK;
}

int64_t wf_result_row_count(const wf_result *result) {
    if (!result) {
        return 0;
    }
    const struct rowset *rows = result->rows;
    return rows->more ? -1 : (int64_t)(rows->answer_first + rows->answer.rows);
}

const wf_error *wf_result_error(const wf_result *result) {
    return result ? &result->rows->failure : NULL;
}

int64_t wf_result_rows_affected(const wf_result *result) {
    return result ? (int64_t)result->rows->rows_affected : 0;
}

const char *wf_result_tag(const wf_result *result) {
    return result ? result->rows->tag : "";
}

const char *wf_result_devices(const wf_result *result) {
    return result ? result->rows->devices : "";
}

int64_t wf_result_time_ns(const wf_result *result) {
    return result ? (int64_t)result->rows->ns : 0;
}

int64_t wf_result_metric(const wf_result *result, const char *name) {
#define X(A, metric, how, text) #metric,
    static const char *const names[] = {WF_METRICS(X, )};
#undef X
    for (i32 i = 0; result && name && i < METRIC_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return result->rows->metrics[i];
        }
    }
    return -1;
}

wf_status wf_result_next_batch(wf_result *result, const wf_batch **out_batch) {
    if (!result || !out_batch) {
        return WF_MISUSE;
    }
    *out_batch = NULL;
    wf_status status = rowset_read(result->rows, BATCH_ROWS, &result->batch);
    if (!status && result->batch.row_count > 0) {
        *out_batch = &result->batch;
    }
    return status;
}

wf_status wf_result_seek(wf_result *result, int64_t row) {
    if (!result || row < result->rows->answer_first) {
        return WF_MISUSE;
    }
    struct rowset *rows = result->rows;
    while (row > rows->answer_first + rows->answer.rows && rows->more) {
        wf_status status = rowset_more(rows);
        if (status) {
            return status;
        }
    }
    if (row > rows->answer_first + rows->answer.rows) {
        return WF_MISUSE;
    }
    rows->next_row = row;
    return WF_OK;
}

int64_t wf_batch_rows(const wf_batch *batch) {
    return batch ? (int64_t)batch->row_count : 0;
}

static const struct column *batch_column(const wf_batch *batch, int32_t column) {
    if (!batch || column < 0 || column >= (i32)batch->rows->col_count) {
        return NULL;
    }
    return &batch->chunk->cols[column];
}

const uint8_t *wf_batch_nulls(const wf_batch *batch, int32_t column) {
    const struct column *col = batch_column(batch, column);
    return col && col->nulls ? col->nulls + batch->first : NULL;
}

int wf_batch_is_null(const wf_batch *batch, int32_t column, int64_t row) {
    const uint8_t *nulls = wf_batch_nulls(batch, column);
    return nulls && nulls[row];
}

/* The values, when the column is held in `kind`; codes of text are nobody's business. */
static const void *values_of(const wf_batch *batch, int32_t column, enum kind kind) {
    const struct column *col = batch_column(batch, column);
    if (!col || col->kind != kind || !col->data ||
        type_kind(batch->rows->cols[column].type) == KIND_STR) {
        return NULL;
    }
    return (const u8 *)col->data + batch->first * kind_bytes[kind];
}

const uint8_t *wf_batch_bool(const wf_batch *batch, int32_t column) {
    return values_of(batch, column, KIND_B8);
}

const int32_t *wf_batch_int32(const wf_batch *batch, int32_t column) {
    return values_of(batch, column, KIND_I32);
}

const int64_t *wf_batch_int64(const wf_batch *batch, int32_t column) {
    return values_of(batch, column, KIND_I64);
}

const wf_int128 *wf_batch_int128(const wf_batch *batch, int32_t column) {
    return values_of(batch, column, KIND_I128);
}

const float *wf_batch_float(const wf_batch *batch, int32_t column) {
    return values_of(batch, column, KIND_F32);
}

const double *wf_batch_double(const wf_batch *batch, int32_t column) {
    return values_of(batch, column, KIND_F64);
}

static bool is_text(const wf_batch *batch, int32_t column) {
    return type_kind(batch->rows->cols[column].type) == KIND_STR;
}

wf_text wf_batch_text(const wf_batch *batch, int32_t column, int64_t row) {
    wf_text none = {NULL, 0};
    if (!batch_column(batch, column) || !is_text(batch, column) ||
        wf_batch_is_null(batch, column, row)) {
        return none;
    }
    struct sv text = batch_text(batch, column, row);
    return (wf_text){text.len ? text.ptr : "", text.len};
}

/* \\x and hexadecimal digits, as many as fit. */
static size_t bytes_text(struct sv bytes, char *buf, size_t cap) {
    static const char digits[] = "0123456789abcdef";
    size_t need = 2 + 2 * (size_t)bytes.len;
    for (size_t i = 0; cap > 0 && i < need && i < cap - 1; i++) {
        u8 byte = i < 2 ? 0 : (u8)bytes.ptr[(i - 2) / 2];
        buf[i] = i == 0 ? '\\' : i == 1 ? 'x' : digits[i & 1 ? byte & 15 : byte >> 4];
    }
    if (cap > 0) {
        buf[MIN_OF(need, cap - 1)] = 0;
    }
    return need;
}

size_t wf_value_text(const wf_batch *batch, int32_t column, int64_t row, char *buf, size_t cap) {
    const struct column *col = batch_column(batch, column);
    char number[96];
    struct sv text = {"", 0};
    if (col && !wf_batch_is_null(batch, column, row) &&
        batch->rows->cols[column].type.id == TYPE_BLOB) {
        return bytes_text(batch_text(batch, column, row), buf, cap);
    }
    if (col && !wf_batch_is_null(batch, column, row)) {
        if (is_text(batch, column)) {
            text = batch_text(batch, column, row);
        } else {
            const u8 *value = (const u8 *)col->data + (batch->first + row) * kind_bytes[col->kind];
            i32 len = value_print_zone(batch->rows->cols[column].type, (enum kind)col->kind, value,
                                       (i32)batch->rows->settings.timezone, number);
            text = (struct sv){number, len};
        }
    }
    if (cap > 0) {
        size_t copied = MIN_OF((size_t)text.len, cap - 1);
        if (copied) {
            memcpy(buf, text.ptr, copied);
        }
        buf[copied] = 0;
    }
    return (size_t)text.len;
}
