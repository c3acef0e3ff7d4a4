/* utility.c: statements without a plan: CREATE, DROP, SET, SHOW, CALL.
 *
 * Each does its work in one step that succeeds or changes nothing, and leaves a command tag as
 * PostgreSQL words it. SHOW makes its rows here. */
#include "session/session_int.h"

#include "gpu/gpu.h"
#include "io/io.h"

#include <stdio.h>

/* SET and RESET of these settings and this path (of the same size as the connection's). */
static FALLIBLE apply_set(struct wf_connection *conn, const struct set_statement *set,
                          struct settings *settings, char *search_path) {
    if (sv_eq_nocase(sv_from(set->name), SV("search_path"))) {
        const char *path = set->value ? set->value : "";
        if (strlen(path) >= sizeof conn->search_path) {
            FAIL(&conn->err, INVALID_PARAMETER, "the search path is too long");
        }
        snprintf(search_path, sizeof conn->search_path, "%s", path);
        return ERR_OK;
    }
    if (fixed_value(sv_from(set->name))) {
        return fixed_set(sv_from(set->name), set->value, &conn->err);
    }
    if (set->value) {
        return setting_set(settings, sv_from(set->name), sv_from(set->value), false, &conn->err);
    }
    if (sv_eq_nocase(sv_from(set->name), SV("all"))) {
        *settings = conn->db->defaults;
        search_path[0] = 0;
        return ERR_OK;
    }
    i32 i = setting_find(sv_from(set->name));
    char value[SETTING_VALUE_CAP] = "";
    if (i >= 0) {
        setting_print(&conn->db->defaults, i, value, (i32)sizeof value);
    }
    return setting_set(settings, sv_from(set->name), sv_from(value), false, &conn->err);
}

static const b8 *tx_mode(const struct tx *tx, struct sv name) {
    return sv_eq_nocase(name, SV("transaction_read_only"))    ? &tx->read_only
           : sv_eq_nocase(name, SV("transaction_deferrable")) ? &tx->deferrable
                                                              : NULL;
}

/* SET TRANSACTION: its isolation is always the same. Without BEGIN the transaction is this statement. */
static FALLIBLE set_modes(struct wf_connection *conn, struct tx_modes modes, i32 position) {
    struct tx *tx = &conn->tx;
    if (modes.access == ACCESS_WRITE && tx->open && tx->read_only && tx->asked) {
        FAIL_AT(&conn->err, ACTIVE_TRANSACTION, position,
                "a transaction that has read something stays read-only");
    }
    if (modes.defer && tx->open && tx->asked) {
        FAIL_AT(&conn->err, ACTIVE_TRANSACTION, position,
                "DEFERRABLE has to be said before the first query");
    }
    if (modes.access && tx->open) {
        tx->read_only = modes.access == ACCESS_READ;
    }
    if (modes.defer && tx->open) {
        tx->deferrable = modes.defer == DEFER_YES;
    }
    return ERR_OK;
}

/* SET transaction_read_only = on, RESET; the same of transaction_deferrable. */
static FALLIBLE set_mode(struct wf_connection *conn, const struct set_statement *set) {
    b8 on = 0;
    if (set->value && value_parse_bool(sv_from(set->value), &on)) {
        FAIL(&conn->err, INVALID_PARAMETER, "parameter \"%s\" requires a Boolean value", set->name);
    }
    bool access = tx_mode(&conn->tx, sv_from(set->name)) == &conn->tx.read_only;
    struct tx_modes modes = {.access = on ? ACCESS_READ : ACCESS_WRITE};
    return set_modes(conn, access ? modes : (struct tx_modes){.defer = on ? DEFER_YES : DEFER_NO}, -1);
}

static FALLIBLE set_here(struct wf_connection *conn, const struct set_statement *set) {
    struct tx *tx = &conn->tx;
    if (tx_mode(tx, sv_from(set->name))) {
        return set_mode(conn, set);
    }
    if (set->local && !tx->open) {
        notice(conn, "WARNING", "SET LOCAL can only be used in transaction blocks");
        struct session_state ignored = {.settings = conn->settings};
        return apply_set(conn, set, &ignored.settings, ignored.search_path);
    }
    TRY(apply_set(conn, set, &conn->settings, conn->search_path));
    return tx->open && !set->local
               ? apply_set(conn, set, &tx->after.settings, tx->after.search_path)
               : ERR_OK;
}

FALLIBLE setting_change(struct wf_connection *conn, const char *name, const char *value,
                        bool local) {
    struct set_statement set = {.name = name, .value = value, .local = local};
    return set_here(conn, &set);
}

FALLIBLE run_set(struct wf_connection *conn, struct rowset *rows) {
    const struct set_statement *set = &rows->compiled->stmt.set;
    rows->tag = set->value ? "SET" : "RESET";
    rows->took_effect = 1;
    if (!set->name) {
        rows->tag = "SET";
        if (set->local) { /* SESSION CHARACTERISTICS: of the transactions that follow, as they are anyway */
            return ERR_OK;
        }
        if (!conn->tx.open) {
            notice(conn, "WARNING", "SET TRANSACTION can only be used in transaction blocks");
        }
        return set_modes(conn, set->modes, rows->compiled->stmt.position);
    }
    return set_here(conn, set);
}

static FALLIBLE outside_transaction(struct wf_connection *conn, const struct statement *st,
                                    const char *what) {
    if (conn->tx.open) {
        FAIL_AT(&conn->err, ACTIVE_TRANSACTION, st->position,
                "%s cannot run inside a transaction block", what);
    }
    return ERR_OK;
}

/* VACUUM, ANALYZE, CHECKPOINT: statistics are kept with the rows, and much of compaction follows every
 * commit; what is left is to do the rest of it, and to save the database file. */
FALLIBLE run_vacuum(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    static const char *const tags[] = {"ANALYZE", "VACUUM", "CHECKPOINT"};
    rows->tag = tags[st->vacuum.what];
    if (st->vacuum.what != 1) {
        return st->vacuum.what ? catalog_checkpoint(conn->db->catalog, &conn->err) : ERR_OK;
    }
    TRY(outside_transaction(conn, st, "VACUUM"));
    TRY(vacuum_tables(conn, st->vacuum.oids, st->vacuum.count));
    return catalog_shrink(conn->db->catalog, &conn->err);
}

/* The one argument of a procedure that takes a name. */
static FALLIBLE call_text(struct wf_connection *conn, const struct statement *st, const char *what,
                          struct arena *arena, const char **out) {
    const struct expr *arg = st->call.count == 1 ? st->call.args[0] : NULL;
    if (!arg || arg->kind != EXPR_CONST || arg->is_null ||
        (arg->type.id != TYPE_TEXT && arg->type.id != TYPE_UNKNOWN)) {
        FAIL_AT(&conn->err, UNDEFINED_FUNCTION, st->position, "%s takes a name, as in CALL %s('name')",
                st->call.procedure, st->call.procedure);
    }
    *out = arena_sv(arena, sv_of(arg->value.str)).ptr;
    if (!(*out)[0]) {
        FAIL_AT(&conn->err, INVALID_PARAMETER, st->position, "%s is empty", what);
    }
    return arena_check(arena, &conn->err);
}

static FALLIBLE call_export(struct wf_connection *conn, struct rowset *rows) {
    const char *folder = NULL;
    rows->tag = "EXPORT DATABASE";
    TRY(call_text(conn, &rows->compiled->stmt, "the name of the folder", &rows->arena, &folder));
    return export_database(conn, &rows->arena, folder);
}

static FALLIBLE call_import(struct wf_connection *conn, struct rowset *rows) {
    const char *folder = NULL;
    rows->tag = "IMPORT DATABASE";
    TRY(call_text(conn, &rows->compiled->stmt, "the name of the folder", &rows->arena, &folder));
    return import_database(conn, &rows->arena, folder);
}

/* VACUUM INTO 'file' */
static FALLIBLE call_vacuum_into(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const char *path = NULL;
    rows->tag = "VACUUM";
    TRY(call_text(conn, st, "the name of the copy", &rows->arena, &path));
    TRY(outside_transaction(conn, st, "VACUUM"));
    return catalog_copy(conn->db->catalog, path, &conn->err);
}

static FALLIBLE call_check(struct wf_connection *conn, struct rowset *rows) {
    static const char *const names[] = {"table", "extents", "bytes", "state"};
    const struct statement *st = &rows->compiled->stmt;
    struct arena *arena = &rows->arena;
    struct checked *found = NULL;
    i64 count = 0;
    if (st->call.count) {
        FAIL_AT(&conn->err, UNDEFINED_FUNCTION, st->position, "check_database takes no arguments");
    }
    TRY(catalog_check(conn->db->catalog, arena, &found, &count, &conn->err));
    struct sv *values = NEW_ARRAY(arena, struct sv, 4 * count + 1);
    for (i64 i = 0; i < count; i++) {
        const struct checked *one = &found[i];
        values[4 * i] = sv_from(one->name[0] ? one->name : "(the catalog)");
        values[4 * i + 1] = sv_from(arena_printf(arena, "%lld", (long long)one->extents));
        values[4 * i + 2] = sv_from(arena_printf(arena, "%lld", (long long)one->bytes));
        values[4 * i + 3] = sv_from(one->fault);
    }
    rowset_set_texts(rows, 4, names, count, values);
    return ERR_OK;
}

static void show_all(struct wf_connection *conn, struct rowset *rows) {
    static const char *const names[] = {"name", "setting", "description"};
    i32 count = setting_count();
    struct sv *values = NEW_ARRAY(&rows->arena, struct sv, 3 * count);
    for (i32 i = 0; i < count; i++) {
        char value[SETTING_VALUE_CAP];
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
    i64 count = edition_table_names(conn->tx.mine, OBJECT_TABLE, &rows->arena, &tables);
    rowset_set_texts(rows, 1, names, count, tables);
}

FALLIBLE setting_shown(struct wf_connection *conn, struct arena *arena, struct sv name,
                       bool missing_ok, const char **out) {
    i32 i = setting_find(name);
    const b8 *mode = tx_mode(&conn->tx, name);
    *out = mode ? *mode ? "on" : "off" : fixed_value(name);
    if (*out) {
        return ERR_OK;
    }
    if (sv_eq_nocase(name, SV("search_path"))) {
        *out = arena_printf(arena, "%s", conn->search_path[0] ? conn->search_path : "public");
        return ERR_OK;
    }
    if (i < 0 && missing_ok) {
        return ERR_OK;
    }
    if (i < 0) { /* setting_set knows how to say so, with the nearest name */
        struct settings scratch = conn->settings;
        TRY(setting_set(&scratch, name, SV(""), false, &conn->err));
        FAIL(&conn->err, UNDEFINED_OBJECT, "there is no setting \"%.*s\"", (int)name.len, name.ptr);
    }
    char *value = arena_alloc(arena, SETTING_VALUE_CAP);
    setting_print(&conn->settings, i, value, SETTING_VALUE_CAP);
    *out = value;
    return ERR_OK;
}

FALLIBLE run_show(struct wf_connection *conn, struct rowset *rows) {
    struct sv setting = sv_from(rows->compiled->stmt.set.name);
    rows->tag = "SHOW";
    if (sv_eq_nocase(setting, SV("all"))) {
        show_all(conn, rows);
        return ERR_OK;
    }
    if (sv_eq_nocase(setting, SV("tables"))) {
        show_tables(conn, rows);
        return ERR_OK;
    }
    const char *name = rows->compiled->stmt.set.name, *value = NULL;
    i32 i = setting_find(setting);
    TRY(setting_shown(conn, &rows->arena, setting, false, &value));
    name = i >= 0 ? setting_name(i) : name;
    struct sv view = sv_from(value);
    rowset_set_texts(rows, 1, &name, 1, &view);
    return ERR_OK;
}

static FALLIBLE call_gpu_cache(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct expr *arg = st->call.count == 1 ? st->call.args[0] : NULL;
    if (!arg || arg->kind != EXPR_CONST || arg->is_null ||
        (arg->type.id != TYPE_TEXT && arg->type.id != TYPE_UNKNOWN)) {
        FAIL_AT(&conn->err, UNDEFINED_FUNCTION, st->position,
                "gpu_cache takes the name of one table, as in CALL gpu_cache('t')");
    }
    struct snapshot_table found;
    TRY(snapshot_find(&rows->snap, sv_of(arg->value.str), arg->position, &found, &conn->err));
    struct device *gpu = database_gpu(conn->db);
    if (!gpu) {
        FAIL(&conn->err, NO_DEVICE, "gpu_cache needs a GPU: %s", conn->db->no_gpu);
    }
    TRY(gpu_cache_table(gpu, found.table, found.version, &conn->err));
    rows->devices = "gpu";
    return ERR_OK;
}

FALLIBLE run_call(struct wf_connection *conn, struct rowset *rows) {
    static const struct {
        const char *name;
        wf_status (*call)(struct wf_connection *conn, struct rowset *rows);
    } procedures[] = {{"gpu_cache", call_gpu_cache},
                      {"logiql", call_logiql},
                      {"logiql_rules", call_logiql_rules},
                      {"logiql_restore", call_logiql_restore},
                      {"check_database", call_check},
                      {"vacuum_into", call_vacuum_into},
                      {"export_database", call_export},
                      {"import_database", call_import}};
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "CALL";
    for (i64 i = 0; i < COUNT_OF(procedures); i++) {
        if (sv_eq_nocase(sv_from(st->call.procedure), sv_from(procedures[i].name))) {
            return procedures[i].call(conn, rows);
        }
    }
    const struct gen_suite *suite = generate_find(st->call.procedure);
    if (suite) {
        return call_generate(conn, rows, suite);
    }
    error_set(&conn->err, ERR_UNDEFINED_FUNCTION, st->position,
              "procedure \"%.100s\" does not exist", st->call.procedure);
    error_hint(&conn->err, "There are check_database(), vacuum_into('file'), export_database('folder'), "
                           "import_database('folder'), gpu_cache('table'), logiql('clauses'), logiql_rules(), "
                           "tpch(sf => 1) and ssb(sf => 1).");
    return conn->err.code;
}
