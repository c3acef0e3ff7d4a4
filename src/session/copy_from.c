/* copy_from.c: COPY … FROM a file.
 *
 * The file goes straight into tablets of the table, in parallel. Columns it has not are the same
 * for all rows, or come from sequences whose values are reserved for all rows at once. Where their
 * defaults differ from row to row in another way (random(), nextval('s') * 2, one sequence for two
 * columns) the file is read into a table of its own first, and the rows are computed from that. */
#include "session/session_int.h"

#include "session/read_file.h"
#include "io/input.h"
#include "io/pack.h"

static bool is_parquet(const char *path) {
    i64 len = (i64)strlen(path);
    return len >= 8 && sv_eq_nocase((struct sv){path + len - 8, 8}, SV(".parquet"));
}

struct copy_arg {
    struct wf_connection *conn;
    const u32 *sequences;
};

static wf_status reserve_values(void *arg, u32 col, i64 rows, i64 *out_first, i64 *out_step,
                                struct error *err) {
    const struct copy_arg *copy = arg;
    const struct edition_entry *entry = edition_find_oid(copy->conn->tx.mine, copy->sequences[col]);
    if (!entry || !entry->object->sequence) {
        FAIL(err, UNDEFINED_OBJECT, "the sequence of column %u is gone", col + 1);
    }
    *out_step = entry->object->sequence->increment;
    TRY(sequence_next(entry->object->sequence, entry->object->name, rows, out_first, err));
    return session_note_value(copy->conn, copy->sequences[col], *out_first + (rows - 1) * *out_step,
                              true);
}

static bool is_listed(const struct copy_options *copy, u32 col) {
    for (i32 i = 0; i < copy->col_count; i++) {
        if (copy->cols[i] == col) {
            return true;
        }
    }
    return copy->col_count == 0;
}

/* Columns that the file has not: from sequences, or one value for all rows. */
static FALLIBLE copy_defaults(struct wf_connection *conn, struct rowset *rows,
                              const struct table *table, struct csv_options *options) {
    const struct statement *st = &rows->compiled->stmt;
    const void **values = NEW_ARRAY(&rows->arena, const void *, table->col_count + 1);
    u32 *sequences = NEW_ARRAY(&rows->arena, u32, table->col_count + 1);
    for (u32 c = 0; c < table->col_count; c++) {
        const struct expr *value = st->copy.defaults ? st->copy.defaults[c] : NULL;
        if (is_listed(&st->copy.options, c)) {
            continue;
        }
        sequences[c] = table->cols[c].sequence;
        values[c] = value && !value->is_null ? (const void *)&value->value : NULL;
        if (value && value->kind != EXPR_CONST) {
            union lit *made = NEW(&rows->arena, union lit);
            b8 null = 1;
            TRY(arena_check(&rows->arena, &conn->err));
            TRY(default_value(conn, &rows->arena, table, c, made, &null));
            values[c] = null ? NULL : made;
        }
    }
    options->defaults = values;
    options->sequences = sequences;
    return arena_check(&rows->arena, &conn->err);
}

/* The file's rows into the table, watched. */
static FALLIBLE load_rows(struct wf_connection *conn, struct rowset *rows, struct table *table,
                          struct csv_options *options) {
    const struct copy_options *copy = &rows->compiled->stmt.copy.options;
    struct load_progress progress = {.stop = &conn->stop};
    enum packing packing = copy->compression ? packing_named(copy->compression) : PACKING_BY_NAME;
    struct input in;
    i64 ignored = 0;
    options->out_ignored = &ignored;
    watch_load(&conn->watch, &progress);
    wf_status status =
        input_open(&in, copy->path, packing, true, &rows->mem, &progress, &conn->err);
    if (!status) {
        struct load_means means = {conn->db->pool, &rows->mem, &progress};
        status = csv_load(table, &in, options, &means, &rows->rows_affected, &conn->err);
        input_close(&in);
    }
    watch_load(&conn->watch, NULL);
    notice_ignored(conn, copy->path, ignored);
    return status;
}

static FALLIBLE copy_file(struct wf_connection *conn, struct rowset *rows, struct table *table,
                          struct csv_options *options) {
    struct copy_arg arg = {conn, options->sequences};
    struct table_version *mine = NULL;
    options->reserve = reserve_values;
    options->reserve_arg = &arg;
    options->out_version = &mine;
    wf_status status = load_rows(conn, rows, table, options);
    if (!status && mine) {
        status = change_install(conn, table, options->base, mine, NULL);
    }
    if (status && mine) {
        version_discard(mine);
    } else {
        version_release(mine);
    }
    return status;
}

/* Rows whose defaults differ: the file becomes a table of its own, the plan of an INSERT from it
 * makes the rest. */

struct copied_arg {
    const struct statement *st;
    const struct table *file;
};

static wf_status bind_copied(void *arg, struct arena *arena, struct snapshot *snap,
                             struct type *param_types, struct statement *out, struct error *err) {
    const struct copied_arg *own = arg;
    UNUSED(param_types);
    return sql_bind_copied(arena, own->st, own->file, snap, out, err);
}

static FALLIBLE open_file_table(struct wf_connection *conn, struct rowset *rows,
                                const struct table *table, struct table **out) {
    const struct copy_options *copy = &rows->compiled->stmt.copy.options;
    struct column_def *cols = NEW_ARRAY(&rows->arena, struct column_def, copy->col_count + 1);
    TRY(arena_check(&rows->arena, &conn->err));
    for (i32 i = 0; i < copy->col_count; i++) {
        const struct column_def *from = &table->cols[copy->cols[i]];
        cols[i] = (struct column_def){.name = from->name, .type = from->type};
    }
    *out = table_open(&conn->db->mem, catalog_new_id(conn->db->catalog), "file",
                      (u32)copy->col_count, cols, table->tablet_shift, table->plain);
    return *out ? ERR_OK : memory_refused(&conn->db->mem, &conn->err, (i64)sizeof **out);
}

static FALLIBLE append_copied(struct wf_connection *conn, struct rowset *rows, struct table *table,
                              struct table *file, struct table_version *version) {
    struct copied_arg arg = {&rows->compiled->stmt, file};
    struct inner_select select = {.binding.text = SV("COPY"),
                                  .binding.bind = bind_copied,
                                  .binding.arg = &arg,
                                  .table = file,
                                  .version = version,
                                  .in_order = 1};
    struct rowset *found;
    struct gathered all = {0};
    TRY(inner_run(conn, &select, &found));
    wf_status status = gather(found, table, 0, NULL, found->answer.rows, &all, &conn->err);
    status = status ? status : change_append(conn, table, all.rows, all.cols);
    rows->rows_affected = found->answer.rows;
    gather_free(table, &all);
    rowset_release(found);
    return status;
}

/* A flag for each column of the table as one for each of the file's. */
static const b8 *by_file(struct rowset *rows, const b8 *flags) {
    const struct copy_options *copy = &rows->compiled->stmt.copy.options;
    b8 *own = flags ? NEW_ARRAY(&rows->arena, b8, copy->col_count + 1) : NULL;
    for (i32 i = 0; own && i < copy->col_count; i++) {
        own[i] = flags[copy->cols[i]];
    }
    return own;
}

static FALLIBLE copy_by_row(struct wf_connection *conn, struct rowset *rows, struct table *table,
                            struct csv_options *options) {
    struct table *file;
    TRY(open_file_table(conn, rows, table, &file));
    options->force_not_null = by_file(rows, options->force_not_null);
    options->force_null = by_file(rows, options->force_null);
    options->col_count = 0;
    options->cols = NULL;
    options->base = NULL;
    wf_status status = load_rows(conn, rows, file, options);
    if (!status && rows->rows_affected > 0) {
        struct table_version *version = table_snapshot(file);
        status = append_copied(conn, rows, table, file, version);
        version_release(version);
    }
    table_close(file);
    return status;
}

FALLIBLE run_copy(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct copy_options *copy = &st->copy.options;
    if (is_parquet(copy->path)) {
        error_set(&conn->err, ERR_NOT_SUPPORTED, -1,
                  "COPY from Parquet is not supported yet: \"%.300s\"", copy->path);
        error_hint(&conn->err, "COPY reads CSV and TBL text.");
        return conn->err.code;
    }
    struct snapshot_table target;
    if (!snapshot_find_id(&rows->snap, st->copy.table_id, &target)) {
        FAIL(&conn->err, UNDEFINED_TABLE, "table \"%s\" is gone", st->name);
    }
    struct csv_options options = {
        .when = {(i32)rows->settings.timezone, conn->tx.start_us},
        .delimiter = copy->delimiter,
        .quote = copy->quote,
        .escape = copy->escape,
        .comment = copy->comment,
        .header = copy->header,
        .null_padding = copy->null_padding,
        .ignore_errors = copy->ignore_errors,
        .skip = copy->skip,
        .trailing_delimiter = copy->trailing_delimiter,
        .null_text = copy->null_text,
        .col_count = copy->col_count,
        .cols = copy->cols,
        .force_not_null = copy->force_not_null,
        .force_null = copy->force_null,
        .base = target.version,
    };
    if (copy->by_row) {
        TRY(copy_by_row(conn, rows, target.table, &options));
    } else {
        TRY(copy_defaults(conn, rows, target.table, &options));
        TRY(copy_file(conn, rows, target.table, &options));
    }
    rows->tag = arena_printf(&rows->arena, "COPY %lld", rows->rows_affected);
    return ERR_OK;
}
