/* rows.c: reading the rows of an execution: windows on chunks of its answer.
 *
 * A window costs nothing, whatever its size: values stay where they lie. When the rows at hand are
 * read, the next ones are computed (rowset_more) and take their place. */
#include "session/session_int.h"

/* The rows from next_row on that lie in one chunk of the answer at hand. */
static bool read_slice(struct rowset *rows, i64 most, struct wf_batch *out) {
    i64 row = rows->next_row - rows->answer_first;
    if (row < rows->slice_start) {
        rows->slice = 0;
        rows->slice_start = 0;
    }
    for (; rows->slice < rows->answer.slice_count; rows->slice++) {
        const struct slice *s = &rows->answer.slices[rows->slice];
        i64 within = row - rows->slice_start;
        if (within < s->rows) {
            *out = (struct wf_batch){rows, s->chunk, s->first + within,
                                     MIN_OF(s->rows - within, most)};
            return true;
        }
        rows->slice_start += s->rows;
    }
    return false;
}

wf_status rowset_read(struct rowset *rows, i64 most, struct wf_batch *out) {
    memset(out, 0, sizeof *out);
    while (!read_slice(rows, most, out)) {
        if (!rows->more) {
            return rows->failure.status;
        }
        wf_status status = rowset_more(rows);
        if (status) {
            return status;
        }
    }
    rows->next_row += out->row_count;
    return WF_OK;
}

struct sv batch_text(const struct wf_batch *batch, i32 column, i64 row) {
    const struct column *col = &batch->chunk->cols[column];
    i64 at = batch->first + row;
    if (col->kind == KIND_STR) {
        return sv_of(((const str *)col->data)[at]);
    }
    return dict_get(batch->rows->cols[column].dict, ((const i32 *)col->data)[at]);
}

bool batch_is_null(const struct wf_batch *batch, i32 column, i64 row) {
    const b8 *nulls = batch->chunk->cols[column].nulls;
    return nulls && nulls[batch->first + row];
}
