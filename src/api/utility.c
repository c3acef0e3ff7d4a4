/* utility.c: statements without a plan: CREATE, DROP, COPY, SET, SHOW, CALL.
 *
 * Each does its work in one step that succeeds or changes nothing, and leaves a command tag as
 * PostgreSQL words it. SHOW makes its rows here. */
#include "api/api_int.h"

#include "gpu/gpu.h"
#include "io/io.h"

static u32 tablet_shift(i64 tablet_rows) { /* the setting accepts powers of two only */
    u32 shift = 0;
    while (1LL << shift < tablet_rows) {
        shift++;
    }
    return shift;
}

/* Whether the name is a table's; its absence is no error. */
static bool table_exists(struct rowset *rows, const char *name) {
    struct error ignored;
    error_reset(&ignored);
    struct snapshot_table found;
    return snapshot_find(&rows->snap, sv_from(name), -1, &found, &ignored) == ERR_OK;
}

FALLIBLE run_create_table(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "CREATE TABLE";
    if (st->if_exists && table_exists(rows, st->table_name)) {
        return ERR_OK;
    }
    if (st->or_replace) {
        TRY(catalog_drop_tables(conn->db->catalog, 1, &st->table_name, &st->position, true,
                                &conn->err));
    }
    wf_status status = catalog_create_table(
        conn->db->catalog, sv_from(st->table_name), st->col_count, st->cols,
        tablet_shift(conn->settings.tablet_rows), !conn->settings.narrow, st->position, &conn->err);
    if (status == ERR_DUPLICATE_TABLE && st->if_exists) { /* somebody was faster */
        error_reset(&conn->err);
        status = ERR_OK;
    }
    rows->took_effect = !status;
    return status;
}

FALLIBLE run_drop_table(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "DROP TABLE";
    TRY(catalog_drop_tables(conn->db->catalog, st->name_count, st->names, st->positions,
                            st->if_exists, &conn->err));
    rows->took_effect = 1;
    return ERR_OK;
}

static bool is_parquet(const char *path) {
    i64 len = (i64)strlen(path);
    return len >= 8 && sv_eq_nocase((struct sv){path + len - 8, 8}, SV(".parquet"));
}

FALLIBLE run_copy(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct copy_options *copy = &st->copy;
    if (is_parquet(copy->path)) {
        error_set(&conn->err, ERR_NOT_SUPPORTED, -1,
                  "COPY from Parquet is not supported yet: \"%.300s\"", copy->path);
        error_hint(&conn->err, "COPY reads CSV and TBL text.");
        return conn->err.code;
    }
    struct snapshot_table target;
    if (!snapshot_find_id(&rows->snap, st->table_id, &target)) {
        TRY(snapshot_find(&rows->snap, sv_from(st->table_name), st->position, &target, &conn->err));
    }
    struct csv_options options = {
        .delimiter = copy->delimiter,
        .quote = copy->quote,
        .escape = copy->escape,
        .header = copy->header,
        .trailing_delimiter = copy->trailing_delimiter,
        .null_text = copy->null_text,
        .col_count = copy->col_count,
        .cols = copy->cols,
    };
    struct load_progress progress = {.cancel = &conn->cancel, .deadline_ns = conn->deadline_ns};
    watch_load(&conn->watch, &progress);
    wf_status status = csv_load(target.table, copy->path, &options, conn->db->pool, &rows->mem,
                                &progress, &rows->rows_affected, &conn->err);
    watch_load(&conn->watch, NULL);
    TRY(status);
    rows->took_effect = 1;
    rows->tag = arena_printf(&rows->arena, "COPY %lld", rows->rows_affected);
    return ERR_OK;
}

FALLIBLE run_set(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = st->value ? "SET" : "RESET";
    rows->took_effect = 1;
    if (st->value) {
        return setting_set(&conn->settings, sv_from(st->setting), sv_from(st->value), false,
                           &conn->err);
    }
    if (sv_eq_nocase(sv_from(st->setting), SV("all"))) {
        conn->settings = conn->db->defaults;
        return ERR_OK;
    }
    i32 i = setting_find(sv_from(st->setting));
    char value[100] = "";
    if (i >= 0) {
        setting_print(&conn->db->defaults, i, value, (i32)sizeof value);
    }
    return setting_set(&conn->settings, sv_from(st->setting), sv_from(value), false, &conn->err);
}

static void show_all(struct wf_connection *conn, struct rowset *rows) {
    static const char *const names[] = {"name", "setting", "description"};
    i32 count = setting_count();
    struct sv *values = NEW_ARRAY(&rows->arena, struct sv, 3 * count);
    for (i32 i = 0; i < count; i++) {
        char value[100];
        setting_print(&conn->settings, i, value, (i32)sizeof value);
        values[3 * i] = sv_from(setting_name(i));
        values[3 * i + 1] = arena_sv(&rows->arena, sv_from(value));
        values[3 * i + 2] = sv_from(setting_text(i));
    }
    rowset_set_texts(rows, 3, names, count, values);
}

static void show_tables(struct wf_connection *conn, struct rowset *rows) {
    static const char *const names[] = {"name"};
    struct sv *tables = NULL;
    i64 count = catalog_table_names(conn->db->catalog, &rows->arena, &tables);
    rowset_set_texts(rows, 1, names, count, tables);
}

FALLIBLE run_show(struct wf_connection *conn, struct rowset *rows) {
    struct sv setting = sv_from(rows->compiled->stmt.setting);
    rows->tag = "SHOW";
    if (sv_eq_nocase(setting, SV("all"))) {
        show_all(conn, rows);
        return ERR_OK;
    }
    if (sv_eq_nocase(setting, SV("tables"))) {
        show_tables(conn, rows);
        return ERR_OK;
    }
    i32 i = setting_find(setting);
    if (i < 0) { /* setting_set knows how to say so, with the nearest name */
        struct settings scratch = conn->settings;
        TRY(setting_set(&scratch, setting, SV(""), false, &conn->err));
        FAIL(&conn->err, UNDEFINED_OBJECT, "there is no setting \"%.*s\"", (int)setting.len,
             setting.ptr);
    }
    const char *name = setting_name(i);
    char *value = arena_alloc(&rows->arena, 100);
    setting_print(&conn->settings, i, value, 100);
    struct sv view = sv_from(value);
    rowset_set_texts(rows, 1, &name, 1, &view);
    return ERR_OK;
}

static FALLIBLE call_gpu_cache(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct expr *arg = st->arg_count == 1 ? st->args[0] : NULL;
    if (!arg || arg->kind != EXPR_CONST || arg->is_null ||
        (arg->type.id != TYPE_TEXT && arg->type.id != TYPE_UNKNOWN)) {
        FAIL_AT(&conn->err, UNDEFINED_FUNCTION, st->position,
                "gpu_cache takes the name of one table, as in CALL gpu_cache('t')");
    }
    struct snapshot_table found;
    TRY(snapshot_find(&rows->snap, sv_of(arg->value.str), arg->position, &found, &conn->err));
    struct device *gpu = database_gpu(conn->db);
    if (!gpu) {
        FAIL(&conn->err, NO_GPU, "gpu_cache needs a GPU: %s", conn->db->no_gpu);
    }
    TRY(gpu_cache_table(gpu, found.table, found.version, &conn->err));
    rows->devices = "gpu";
    return ERR_OK;
}

FALLIBLE run_call(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "CALL";
    if (sv_eq_nocase(sv_from(st->procedure), SV("gpu_cache"))) {
        return call_gpu_cache(conn, rows);
    }
    if (sv_eq_nocase(sv_from(st->procedure), SV("tpch"))) {
        return call_tpch(conn, rows);
    }
    error_set(&conn->err, ERR_UNDEFINED_FUNCTION, st->position,
              "procedure \"%.100s\" does not exist", st->procedure);
    error_hint(&conn->err, "There are gpu_cache('table') and tpch(sf => 1).");
    return conn->err.code;
}
