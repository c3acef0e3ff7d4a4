/* copy_out.c: COPY … TO: an answer to a file or to standard output, as it is computed.
 *
 * Rows are formatted into one buffer, which is written out when it is full; what is not computed
 * yet is computed in between, so memory does not grow with the answer. A regular file appears under
 * its name when all is written, or not at all. */
#include "session/session_int.h"

#include "base/file.h"
#include "defs/value.h"
#include "io/io.h"
#include "io/pack.h"
#include "io/trie_file.h"

enum { WRITE_COST = 100 }; /* of a row, in the units of run/work.c */
enum { BUFFER_BYTES = 1 << 18 };

struct copy_out {
    struct wf_connection *conn;
    struct rowset *rows;
    const struct copy_options *copy;
    struct csv_options csv;
    struct file_out file;
    struct pack pack;
    struct csv_out out;
    i64 cap;
    i64 row_count;
};

static FALLIBLE flush(struct copy_out *c) {
    TRY(pack_write(&c->pack, c->out.buf, c->out.len, &c->conn->err));
    c->out.len = 0;
    return ERR_OK;
}

/* Room for a value of so many bytes and the end of a line. */
static FALLIBLE make_room(struct copy_out *c, i64 bytes) {
    i64 most = csv_put_most(bytes) + (i64)strlen(c->csv.null_text) + 8;
    if (c->out.len + most <= c->cap) {
        return ERR_OK;
    }
    TRY(flush(c));
    if (most > c->cap) {
        struct memory *mem = &c->rows->mem;
        char *buf = mem_alloc(mem, most);
        if (!buf) {
            return memory_refused(mem, &c->conn->err, most);
        }
        mem_free(mem, c->out.buf, c->cap);
        c->out.buf = buf;
        c->cap = most;
    }
    return ERR_OK;
}

static struct sv value_text(const struct wf_batch *batch, u32 col, i64 row, char *scratch) {
    const struct column *column = &batch->chunk->cols[col];
    struct type type = batch->rows->cols[col].type;
    if (type_kind(type) == KIND_STR) {
        return batch_text(batch, (i32)col, row);
    }
    const u8 *value = (const u8 *)column->data + (batch->first + row) * kind_bytes[column->kind];
    if (type.id == TYPE_BOOLEAN) {
        return *value ? SV("t") : SV("f"); /* as PostgreSQL copies it */
    }
    i32 zone = (i32)batch->rows->settings.timezone;
    i32 len = value_print_zone(type, (enum kind)column->kind, value, zone, scratch);
    return (struct sv){scratch, len};
}

/* Bytes as \x and hexadecimal digits. */
static FALLIBLE write_bytes(struct copy_out *c, struct sv bytes, bool first, bool quoted) {
    struct memory *mem = &c->conn->db->mem;
    i64 len = 2 + 2 * bytes.len;
    char *text = mem_alloc(mem, len);
    if (!text) {
        return memory_refused(mem, &c->conn->err, len);
    }
    value_format_bytes(bytes, text);
    wf_status status = make_room(c, len);
    if (!status) {
        struct sv value = {text, len};
        status = csv_put(&c->out, &c->csv, first, false, value, quoted, &c->conn->err);
    }
    mem_free(mem, text, len);
    return status;
}

static FALLIBLE write_row(struct copy_out *c, const struct wf_batch *batch, i64 row) {
    char scratch[128];
    for (u32 col = 0; col < c->rows->col_count; col++) {
        bool is_null = batch_is_null(batch, (i32)col, row);
        struct sv value = is_null ? SV("") : value_text(batch, col, row, scratch);
        TRY(make_room(c, value.len));
        bool quoted = c->copy->quote_cols && c->copy->quote_cols[col];
        if (!is_null && c->rows->cols[col].type.id == TYPE_BLOB) {
            TRY(write_bytes(c, value, col == 0, quoted));
            continue;
        }
        TRY(csv_put(&c->out, &c->csv, col == 0, is_null, value, quoted, &c->conn->err));
    }
    csv_put_end(&c->out, &c->csv);
    return ERR_OK;
}

static FALLIBLE write_header(struct copy_out *c) {
    for (u32 col = 0; c->csv.header && col < c->rows->col_count; col++) {
        struct sv name = sv_from(c->rows->cols[col].name);
        TRY(make_room(c, name.len));
        TRY(csv_put(&c->out, &c->csv, col == 0, false, name, false, &c->conn->err));
    }
    if (c->csv.header) {
        csv_put_end(&c->out, &c->csv);
    }
    return ERR_OK;
}

static FALLIBLE write_answer(struct copy_out *c) {
    const struct answer *answer = &c->rows->answer;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        struct wf_batch batch = {c->rows, slice->chunk, slice->first, slice->rows};
        for (i64 row = 0; row < slice->rows; row++) {
            TRY(write_row(c, &batch, row));
        }
        watch_rows(&c->conn->watch, slice->rows);
        TRY(connection_check(c->conn));
    }
    c->row_count += answer->rows;
    return ERR_OK;
}

static FALLIBLE write_all(struct copy_out *c) {
    TRY(rowset_start_exec(c->conn, c->rows));
    TRY(write_header(c));
    watch_exec(&c->conn->watch, c->rows->more ? NULL : &c->rows->exec);
    wf_status status = write_answer(c);
    watch_exec(&c->conn->watch, NULL);
    TRY(status);
    while (c->rows->more) {
        TRY(rowset_step(c->conn, c->rows));
        TRY(write_answer(c));
    }
    TRY(flush(c));
    return pack_end(&c->pack, &c->conn->err);
}

/* --- tries --- */

/* The columns of a batch from its first row on. */
static void batch_cols(const struct copy_out *c, const struct wf_batch *batch, struct input_col *out) {
    for (u32 col = 0; col < c->rows->col_count; col++) {
        const struct column *column = &batch->chunk->cols[col];
        out[col].data = (const u8 *)column->data + batch->first * kind_bytes[column->kind];
        out[col].nulls = column->nulls ? column->nulls + batch->first : NULL;
    }
}

static FALLIBLE add_answer(struct copy_out *c, struct trie_writer *writer, struct input_col *cols) {
    const struct answer *answer = &c->rows->answer;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        struct wf_batch batch = {c->rows, slice->chunk, slice->first, slice->rows};
        batch_cols(c, &batch, cols);
        TRY(trie_writer_add(writer, slice->rows, cols, &c->conn->err));
        watch_rows(&c->conn->watch, slice->rows);
        TRY(connection_check(c->conn));
    }
    c->row_count += answer->rows;
    return ERR_OK;
}

static FALLIBLE add_all(struct copy_out *c, struct trie_writer *writer) {
    struct input_col *cols = NEW_ARRAY(&c->rows->arena, struct input_col, c->rows->col_count);
    TRY(arena_check(&c->rows->arena, &c->conn->err));
    watch_exec(&c->conn->watch, c->rows->more ? NULL : &c->rows->exec);
    wf_status status = add_answer(c, writer, cols);
    watch_exec(&c->conn->watch, NULL);
    TRY(status);
    while (c->rows->more) {
        TRY(rowset_step(c->conn, c->rows));
        TRY(add_answer(c, writer, cols));
    }
    return ERR_OK;
}

static FALLIBLE write_trie(struct copy_out *c) {
    struct trie_writer *writer = NULL;
    TRY(rowset_start_exec(c->conn, c->rows)); /* its columns are known then */
    struct column_def *cols = NEW_ARRAY(&c->rows->arena, struct column_def, c->rows->col_count);
    TRY(arena_check(&c->rows->arena, &c->conn->err));
    for (u32 i = 0; i < c->rows->col_count; i++) {
        cols[i] = (struct column_def){.name = c->rows->cols[i].name, .type = c->rows->cols[i].type};
    }
    TRY(trie_writer_open(&c->rows->mem, c->rows->col_count, cols, &writer, &c->conn->err));
    wf_status status = add_all(c, writer);
    status = status ? status : trie_writer_finish(writer, &c->file, &c->conn->err);
    trie_writer_close(writer);
    return status;
}

/* --- all of it --- */

static FALLIBLE write_text(struct copy_out *c, enum packing packing) {
    c->out.buf = mem_alloc(&c->rows->mem, c->cap);
    if (!c->out.buf) {
        return memory_refused(&c->rows->mem, &c->conn->err, c->cap);
    }
    wf_status status = pack_open(&c->pack, packing, &c->file, &c->rows->mem, &c->conn->err);
    status = status ? status : write_all(c);
    pack_close(&c->pack);
    mem_free(&c->rows->mem, c->out.buf, c->cap);
    return status;
}

static wf_status check_connection(void *arg, struct error *err) {
    UNUSED(err); /* it is the connection's own */
    return connection_check(arg);
}

FALLIBLE run_copy_to(struct wf_connection *conn, const struct run_request *request,
                     struct rowset *rows) {
    TRY(rowset_open_exec(conn, request, rows)); /* the statement may be compiled again */
    const struct copy_options *copy = &rows->compiled->stmt.copy.options;
    struct copy_out c = {.conn = conn, .rows = rows, .copy = copy, .cap = BUFFER_BYTES};
    c.csv = (struct csv_options){.delimiter = copy->delimiter,
                                 .quote = copy->quote,
                                 .escape = copy->escape,
                                 .header = copy->header,
                                 .trailing_delimiter = copy->trailing_delimiter,
                                 .null_text = copy->null_text};
    rows->exec.work.answer_cost = WRITE_COST;
    struct file_wait wait = {check_connection, conn};
    enum packing packing = copy->compression ? packing_named(copy->compression)
                           : copy->path      ? packing_of(copy->path)
                                             : PACKING_NONE;
    TRY(file_out_open(&c.file, copy->path, wait, &conn->err));
    wf_status status = copy->trie ? write_trie(&c) : write_text(&c, packing);
    wf_status closed = file_out_close(&c.file, !status, &conn->err);
    TRY(status ? status : closed);
    rows->took_effect = 1;
    rows->rows_affected = c.row_count;
    rows->col_count = 0;
    rows->answer = (struct answer){0, 0, NULL};
    rows->answer_first = 0;
    rows->tag = arena_printf(&rows->arena, "COPY %lld", c.row_count);
    return ERR_OK;
}
