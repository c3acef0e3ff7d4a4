/* arrow.c: results as streams of the Arrow C data interface.
 *
 * A stream, each schema and each array own a holder, which counts on the rowset: the rows live as
 * long as anything exported does. Children count on their parent's holder too, because a consumer
 * may move a child out of its parent and release it last. Columns whose layout is Arrow's (32- and
 * 64-bit integers, floats, dates, 128-bit decimals) are handed out where they lie, the holder
 * counting on their buffers; the others are converted into buffers of the holder. Rows are computed
 * as the consumer asks for them; a batch ends early where its texts would need offsets of 64 bits.
 */
#include "api/api_int.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"

#include <errno.h>
#include <stdio.h>

enum { ARROW_ROWS = 1 << 20, TEXTS_AHEAD = 16 };

struct holder {
    _Atomic i32 refs;
    struct rowset *rows;
    struct arena arena;
    VEC(struct buffer *) buffers;
};

struct stream {
    struct rowset *rows;
    char error[sizeof(((wf_error *)0)->message) + 20];
};

static struct holder *holder_new(struct rowset *rows) {
    struct holder *holder = mem_alloc(&rows->db->mem, (i64)sizeof *holder);
    if (holder) {
        memset(holder, 0, sizeof *holder);
        atomic_init(&holder->refs, 1);
        holder->rows = rowset_retain(rows);
        arena_init(&holder->arena, &rows->db->mem);
    }
    return holder;
}

static void holder_release(struct holder *holder) {
    if (atomic_fetch_sub(&holder->refs, 1) != 1) {
        return;
    }
    struct rowset *rows = holder->rows;
    for (i64 i = 0; i < holder->buffers.count; i++) {
        buffer_release(holder->buffers.items[i]);
    }
    arena_fini(&holder->arena);
    mem_free(&rows->db->mem, holder, (i64)sizeof *holder);
    rowset_release(rows);
}

static void release_schema(struct ArrowSchema *schema) {
    for (i64 i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release) {
            schema->children[i]->release(schema->children[i]);
        }
    }
    schema->release = NULL;
    holder_release(schema->private_data);
}

static void release_array(struct ArrowArray *array) {
    for (i64 i = 0; i < array->n_children; i++) {
        if (array->children[i]->release) {
            array->children[i]->release(array->children[i]);
        }
    }
    array->release = NULL;
    holder_release(array->private_data);
}

static const char *format_of(struct holder *holder, struct type type) {
#define X(A, name, text, oid, kind, arrow, category) arrow,
    static const char *const formats[] = {WF_TYPES(X, )};
#undef X
    if (type.id == TYPE_DECIMAL) {
        return arena_printf(&holder->arena, "d:%d,%d", type.precision, type.scale);
    }
    return formats[type.id];
}

static bool column_is_text(const struct rowset *rows, u32 c) {
    return type_kind(rows->cols[c].type) == KIND_STR;
}

/* The texts of a batch's column. */
struct texts {
    const struct column *col;
    const struct dict *dict; /* of codes */
    const b8 *nulls;         /* or NULL */
    i64 first;
};

static struct texts texts_view(const struct wf_batch *batch, u32 c) {
    const struct column *col = &batch->chunk->cols[c];
    return (struct texts){col, batch->rows->cols[c].dict, wf_batch_nulls(batch, (i32)c),
                          batch->first};
}

static inline struct sv text_at(const struct texts *texts, i64 i) {
    if (texts->nulls && texts->nulls[i]) {
        return SV("");
    }
    const void *data = texts->col->data;
    i64 at = texts->first + i;
    return texts->col->kind == KIND_STR ? sv_of(((const str *)data)[at])
                                        : dict_get(texts->dict, ((const i32 *)data)[at]);
}

/* As many rows of the batch as 32-bit offsets allow, the same for all columns; 0 when a single text
 * is too long. */
static i64 fitting_rows(const struct wf_batch *batch) {
    i64 rows = batch->row_count;
    for (u32 c = 0; c < batch->rows->col_count; c++) {
        i64 bytes = 0;
        if (!column_is_text(batch->rows, c)) {
            continue;
        }
        struct texts texts = texts_view(batch, c);
        for (i64 i = 0; i < rows; i++) {
            bytes += text_at(&texts, i).len;
            rows = bytes > I32_MAX ? i : rows;
        }
    }
    return rows;
}

static int stream_failed(struct stream *stream, int code, const char *message) {
    snprintf(stream->error, sizeof stream->error, "%s", message);
    return code;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out) {
    struct stream *stream = self->private_data;
    memset(out, 0, sizeof *out);
    struct holder *holder = holder_new(stream->rows);
    if (!holder) {
        return stream_failed(stream, ENOMEM, "out of memory");
    }
    u32 count = stream->rows->col_count;
    struct ArrowSchema *cols = NEW_ARRAY(&holder->arena, struct ArrowSchema, count + 1);
    out->children = NEW_ARRAY(&holder->arena, struct ArrowSchema *, count + 1);
    for (u32 c = 0; c < count; c++) {
        const struct rowset_col *col = &stream->rows->cols[c];
        cols[c] = (struct ArrowSchema){
            .format = format_of(holder, col->type),
            .name = col->name,
            .flags = ARROW_FLAG_NULLABLE,
            .release = release_schema,
            .private_data = holder,
        };
        out->children[c] = &cols[c];
        atomic_fetch_add(&holder->refs, 1);
    }
    out->format = "+s";
    out->name = "";
    out->n_children = count;
    out->release = release_schema;
    out->private_data = holder;
    return 0;
}

static struct buffer *holder_buffer(struct holder *holder, i64 bytes) {
    struct buffer *buf = buffer_new(&holder->rows->db->mem, MAX_OF(bytes, 1));
    if (buf) {
        VEC_PUSH(&holder->arena, &holder->buffers, buf);
    }
    return buf;
}

/* Bit i of out is (flags[i] != 0) != inverted. Returns how many bits are 0. */
static i64 pack_bits(u8 *out, const b8 *flags, i64 count, bool inverted) {
    i64 zeros = 0;
    memset(out, 0, (size_t)((count + 7) / 8));
    for (i64 i = 0; i < count; i++) {
        bool bit = (flags[i] != 0) != inverted;
        out[i >> 3] = (u8)(out[i >> 3] | (u8)bit << (i & 7));
        zeros += !bit;
    }
    return zeros;
}

/* Texts lie wherever their rows came from: those to come are asked for early. */
static void copy_texts(const struct texts *texts, i64 rows, u8 *to) {
    const str *ahead = texts->col->kind == KIND_STR ? texts->col->data : NULL;
    for (i64 i = 0; i < rows; i++) {
        if (ahead && i + TEXTS_AHEAD < rows) {
            str next = ahead[texts->first + i + TEXTS_AHEAD];
            __builtin_prefetch((const void *)(size_t)next.addr);
            __builtin_prefetch((const void *)(size_t)(next.addr + next.len));
        }
        struct sv text = text_at(texts, i);
        if (text.len) {
            memcpy(to, text.ptr, (size_t)text.len);
        }
        to += text.len;
    }
}

static bool fill_text(struct holder *holder, const struct wf_batch *batch, u32 c,
                      struct ArrowArray *out) {
    i64 rows = batch->row_count;
    struct texts texts = texts_view(batch, c);
    struct buffer *offsets = holder_buffer(holder, (rows + 1) * (i64)sizeof(i32));
    if (!offsets) {
        return false;
    }
    i32 *end = (i32 *)(void *)offsets->data;
    end[0] = 0;
    for (i64 i = 0; i < rows; i++) {
        end[i + 1] = end[i] + (i32)text_at(&texts, i).len;
    }
    struct buffer *bytes = holder_buffer(holder, end[rows]);
    if (!bytes) {
        return false;
    }
    copy_texts(&texts, rows, bytes->data);
    out->n_buffers = 3;
    out->buffers[1] = offsets->data;
    out->buffers[2] = bytes->data;
    return true;
}

/* Arrow's interval: months, days, nanoseconds; those beyond its range stop at its ends. */
struct arrow_interval {
    i32 months, days;
    i64 ns;
};

static void put_value(struct type type, const void *values, i64 i, void *out) {
    switch (type.id) {
    case TYPE_SMALLINT:
        ((i16 *)out)[i] = (i16)((const i32 *)values)[i];
        break;
    case TYPE_INTERVAL: {
        fn_span x = fn_iv_parts(((const i128 *)values)[i]);
        i64 most = I64_MAX / 1000;
        i64 us = MAX_OF(MIN_OF(x.us, most), -most);
        ((struct arrow_interval *)out)[i] = (struct arrow_interval){x.months, x.days, us * 1000};
        break;
    }
    case TYPE_UUID: {
        u128 bits = (u128)((const i128 *)values)[i] ^ (u128)1 << 127;
        for (i32 k = 0; k < 16; k++) {
            ((u8 *)out)[16 * i + k] = (u8)(bits >> (120 - 8 * k));
        }
        break;
    }
    default:
        ((i128 *)out)[i] = ((const i64 *)values)[i];
        break;
    }
}

/* Types whose values Arrow holds otherwise: bits, 16-bit and 128-bit integers, intervals, UUIDs. */
static bool is_converted(struct type type, u8 kind) {
    return type.id == TYPE_BOOLEAN || type.id == TYPE_SMALLINT || type.id == TYPE_INTERVAL ||
           type.id == TYPE_UUID || (type.id == TYPE_DECIMAL && kind == KIND_I64);
}

static bool fill_converted(struct holder *holder, struct type type, const void *values, i64 rows,
                           struct ArrowArray *out) {
    i64 bytes =
        type.id == TYPE_BOOLEAN ? (rows + 7) / 8 : rows * (type.id == TYPE_SMALLINT ? 2 : 16);
    struct buffer *data = holder_buffer(holder, bytes);
    if (!data) {
        return false;
    }
    if (type.id == TYPE_BOOLEAN) {
        pack_bits(data->data, values, rows, false);
    }
    for (i64 i = 0; type.id != TYPE_BOOLEAN && i < rows; i++) {
        put_value(type, values, i, data->data);
    }
    out->buffers[1] = data->data;
    return true;
}

static bool fill_column(struct holder *holder, const struct wf_batch *batch, u32 c,
                        struct ArrowArray *out) {
    const struct rowset *rows = batch->rows;
    const struct column *col = &batch->chunk->cols[c];
    out->length = batch->row_count;
    out->n_buffers = 2;
    out->buffers = (const void **)NEW_ARRAY(&holder->arena, void *, 3);
    out->release = release_array;
    out->private_data = holder;
    atomic_fetch_add(&holder->refs, 1);
    const uint8_t *nulls = wf_batch_nulls(batch, (i32)c);
    if (nulls) {
        struct buffer *valid = holder_buffer(holder, (batch->row_count + 7) / 8);
        if (!valid) {
            return false;
        }
        out->null_count = pack_bits(valid->data, nulls, batch->row_count, true);
        out->buffers[0] = valid->data;
    }
    if (column_is_text(rows, c)) {
        return fill_text(holder, batch, c, out);
    }
    struct type type = rows->cols[c].type;
    const void *values = (const u8 *)col->data + batch->first * kind_bytes[col->kind];
    if (is_converted(type, col->kind)) {
        return fill_converted(holder, type, values, batch->row_count, out);
    }
    out->buffers[1] = values;
    struct buffer *shared = batch->chunk->buffers ? batch->chunk->buffers[2 * c] : NULL;
    if (shared) { /* the result moves on, the array stays */
        VEC_PUSH(&holder->arena, &holder->buffers, buffer_retain(shared));
    }
    return true;
}

/* The next rows; none at the end. */
static int next_rows(struct stream *stream, struct wf_batch *batch) {
    struct rowset *rows = stream->rows;
    wf_status status = rowset_read(rows, ARROW_ROWS, batch);
    if (status) {
        snprintf(stream->error, sizeof stream->error, "%s: %s", rows->failure.sqlstate,
                 rows->failure.message);
        return status == WF_NO_MEMORY ? ENOMEM : status == WF_CANCELLED ? ECANCELED : EIO;
    }
    if (batch->row_count == 0) {
        return 0;
    }
    i64 fit = fitting_rows(batch);
    if (fit == 0) {
        return stream_failed(stream, EOVERFLOW, "a text exceeds the 2 GiB an Arrow array can hold");
    }
    rows->next_row -= batch->row_count - fit;
    batch->row_count = fit;
    return 0;
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out) {
    struct stream *stream = self->private_data;
    struct rowset *rows = stream->rows;
    struct wf_batch batch;
    memset(out, 0, sizeof *out);
    int failed = next_rows(stream, &batch);
    if (failed || batch.row_count == 0) {
        return failed;
    }
    struct holder *holder = holder_new(rows);
    if (!holder) {
        return stream_failed(stream, ENOMEM, "out of memory");
    }
    struct ArrowArray *cols = NEW_ARRAY(&holder->arena, struct ArrowArray, rows->col_count + 1);
    out->children = NEW_ARRAY(&holder->arena, struct ArrowArray *, rows->col_count + 1);
    out->buffers = (const void **)NEW_ARRAY(&holder->arena, void *, 1);
    out->length = batch.row_count;
    out->n_buffers = 1;
    out->release = release_array;
    out->private_data = holder;
    for (u32 c = 0; c < rows->col_count; c++) {
        out->children[c] = &cols[c];
        out->n_children = c + 1;
        if (!fill_column(holder, &batch, c, &cols[c])) {
            release_array(out);
            return stream_failed(stream, ENOMEM, "the memory budget refused a converted column");
        }
    }
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *self) {
    struct stream *stream = self->private_data;
    return stream->error[0] ? stream->error : NULL;
}

static void release_stream(struct ArrowArrayStream *self) {
    struct stream *stream = self->private_data;
    struct rowset *rows = stream->rows;
    self->release = NULL;
    mem_free(&rows->db->mem, stream, (i64)sizeof *stream);
    rowset_release(rows);
}

wf_status wf_result_arrow_stream(wf_result *result, struct ArrowArrayStream *out) {
    if (!result || !out) {
        return WF_MISUSE;
    }
    memset(out, 0, sizeof *out);
    struct rowset *rows = result->rows;
    struct stream *stream = mem_alloc(&rows->db->mem, (i64)sizeof *stream);
    if (!stream) {
        return WF_NO_MEMORY;
    }
    memset(stream, 0, sizeof *stream);
    stream->rows = rowset_retain(rows);
    *out = (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_stream, stream};
    return WF_OK;
}
