/* call_tpch.c: CALL tpch(sf => 1): creates the eight TPC-H tables and fills them.
 *
 * The tables are created as anybody would, by CREATE TABLE statements made from the generator's
 * description, referenced ones first; then the generator fills all of them in parallel (io/). All
 * of it is one transaction, so that a CALL leaves all eight tables or none. */
#include "session/session_int.h"

#include "io/generate.h"

struct tpch_call {
    struct wf_connection *conn;
    struct rowset *rows;
    i64 millionths;
    b8 queries_only; /* columns => 'queries' */
    enum tpch_text text;
    const char *schema; /* NULL: where CREATE TABLE puts it */
    const struct gen_table *tables;
    i32 table_count;
    i32 first_made; /* tables from here on exist */
};

static FALLIBLE bad_call(struct wf_connection *conn, i32 position) {
    error_set(&conn->err, ERR_UNDEFINED_FUNCTION, position,
              "tpch takes sf, a number, and optionally columns, schema and text");
    error_hint(&conn->err,
               "As in CALL tpch(sf => 1) or CALL tpch(sf => 10, columns => 'queries').");
    return conn->err.code;
}

static FALLIBLE bad_scale(struct wf_connection *conn, i32 position) {
    FAIL_AT(&conn->err, INVALID_PARAMETER, position,
            "the scale factor must be a number from 0.001 to 1000 with at most six decimals");
}

/* The scale factor in millionths. */
static FALLIBLE read_scale(struct wf_connection *conn, const struct expr *arg, i64 *out) {
    i128 value = 0;
    i32 scale = arg->type.id == TYPE_DECIMAL ? arg->type.scale : 0;
    if (type_is_float(arg->type)) {
        f64 x = arg->type.id == TYPE_REAL ? arg->value.f32 : arg->value.f64;
        if (!(x >= 0.001 && x <= 1000)) {
            return bad_scale(conn, arg->position);
        }
        *out = (i64)(x * 1e6 + 0.5);
        return ERR_OK;
    }
    switch (type_kind(arg->type)) {
    case KIND_I32:
        value = arg->value.i32;
        break;
    case KIND_I64:
        value = arg->value.i64;
        break;
    default:
        value = arg->value.i128;
    }
    for (; scale > 6; scale--, value /= 10) {
        if (value % 10) {
            return bad_scale(conn, arg->position);
        }
    }
    if (arg->is_null || value <= 0 || value > 1000 * pow10_i128(scale)) {
        return bad_scale(conn, arg->position);
    }
    value *= pow10_i128(6 - scale);
    *out = (i64)value;
    return value < TPCH_SCALE_MIN ? bad_scale(conn, arg->position) : ERR_OK;
}

/* One of two words; *out is 1 for the second. Absent: the first. */
static FALLIBLE read_choice(struct wf_connection *conn, const struct expr *arg, const char *name,
                            const char *first, const char *second, b8 *out) {
    *out = 0;
    if (!arg) {
        return ERR_OK;
    }
    struct sv text = arg->is_null ? SV("") : sv_of(arg->value.str);
    *out = sv_eq_nocase(text, sv_from(second));
    if (!*out && !sv_eq_nocase(text, sv_from(first))) {
        FAIL_AT(&conn->err, INVALID_PARAMETER, arg->position, "%s must be '%s' or '%s', not '%.*s'",
                name, first, second, (int)MIN_OF(text.len, 60), text.ptr);
    }
    return ERR_OK;
}

static FALLIBLE read_arguments(struct tpch_call *call) {
    static const char *const names[] = {"sf", "columns", "schema", "text"};
    struct wf_connection *conn = call->conn;
    const struct statement *st = &call->rows->compiled->stmt;
    const struct expr *args[COUNT_OF(names)] = {NULL};
    for (i32 i = 0; i < st->call.count; i++) {
        i32 k = 0;
        const char *name = st->call.names[i];
        while (k < COUNT_OF(names) && (name ? strcmp(names[k], name) != 0 : k != i)) {
            k++;
        }
        if (k == COUNT_OF(names) || args[k]) {
            return bad_call(conn, st->call.args[i]->position);
        }
        args[k] = st->call.args[i];
    }
    if (!args[0] || !(args[0]->is_null || type_is_numeric(args[0]->type))) {
        return bad_call(conn, args[0] ? args[0]->position : st->position);
    }
    for (i32 k = 1; k < COUNT_OF(names); k++) {
        if (args[k] && !args[k]->is_null && type_kind(args[k]->type) != KIND_STR) {
            return bad_call(conn, args[k]->position);
        }
    }
    TRY(read_scale(conn, args[0], &call->millionths));
    if (args[2] && !args[2]->is_null) {
        call->schema = arena_sv(&call->rows->arena, sv_of(args[2]->value.str)).ptr;
    }
    b8 duckdb_text;
    TRY(read_choice(conn, args[1], "columns", "all", "queries", &call->queries_only));
    TRY(read_choice(conn, args[3], "text", "dbgen", "duckdb", &duckdb_text));
    call->text = duckdb_text ? TPCH_TEXT_DUCKDB : TPCH_TEXT_DBGEN;
    return ERR_OK;
}

/* Runs statements of our own within this one. */
static FALLIBLE run_text(struct wf_connection *conn, const char *text) {
    struct script *script;
    TRY(script_new(conn, text, &script));
    wf_status status = ERR_OK;
    for (i64 i = 0; !status && i < script->list.items.count; i++) {
        struct run_request request = {.script = script, .parsed = script->list.items.items[i]};
        struct rowset *rows = NULL;
        status = statement_run(conn, &request, &rows);
        rowset_release(rows);
    }
    script_release(script);
    return status;
}

static void print_name(struct text *out, const char *name) {
    text_print(out, "\"");
    for (; *name; name++) {
        text_print(out, *name == '"' ? "\"\"" : "%c", *name);
    }
    text_print(out, "\"");
}

static void print_schema(struct text *out, const struct tpch_call *call) {
    if (call->schema) {
        print_name(out, call->schema);
        text_print(out, ".");
    }
}

/* The constraints: the tables they refer to are in the same schema. */
static void print_keys(struct text *out, const struct tpch_call *call, const char *keys) {
    for (const char *at = keys; *at; at++) {
        if (*at == '@') {
            print_schema(out, call);
        } else {
            text_print(out, "%c", *at);
        }
    }
}

static const char *create_text(const struct tpch_call *call, const struct gen_table *table) {
    struct text out;
    text_init(&out, &call->rows->arena);
    text_print(&out, "create table ");
    print_schema(&out, call);
    text_print(&out, "%s (", table->name);
    for (u32 i = 0; i < table->col_count; i++) {
        const struct gen_column *col = &table->cols[i];
        if (!(call->queries_only && col->unread)) {
            text_print(&out, "%s %s not null, ", col->name, col->type);
        }
    }
    print_keys(&out, call, tpch_keys((i32)(table - call->tables), call->millionths));
    text_print(&out, ")");
    return out.ptr;
}

static FALLIBLE create_tables(struct tpch_call *call) {
    struct error *err = &call->conn->err;
    while (call->first_made > 0) {
        const struct gen_table *table = &call->tables[call->first_made - 1];
        wf_status status = run_text(call->conn, create_text(call, table));
        if (status) {
            err->position = call->rows->compiled->stmt.position;
            return status;
        }
        call->first_made--;
    }
    return ERR_OK;
}

static FALLIBLE fill_tables(struct tpch_call *call, struct load_progress *progress) {
    struct wf_connection *conn = call->conn;
    struct rowset *rows = call->rows;
    struct table **tables = NEW_ARRAY(&rows->arena, struct table *, call->table_count);
    snapshot_fini(&rows->snap); /* it was taken before the tables were there */
    connection_snapshot(conn, &rows->snap);
    for (i32 i = 0; i < call->table_count; i++) {
        struct sv schema = call->schema ? sv_from(call->schema) : (struct sv){NULL, 0};
        const struct edition_entry *entry =
            snapshot_lookup(&rows->snap, schema, sv_from(call->tables[i].name));
        ASSERT(entry && entry->object->table);
        tables[i] = entry->object->table;
    }
    TRY(arena_check(&rows->arena, &conn->err));
    struct generator *gen;
    struct pool *pool = conn->db->pool;
    TRY(tpch_open(&gen, call->millionths, call->text, pool, &rows->mem, progress, &conn->err));
    wf_status status =
        generate_load(gen, tables, pool, &rows->mem, progress, &rows->rows_affected, &conn->err);
    tpch_close(gen);
    for (i32 i = 0; i < call->table_count && !status; i++) {
        struct table_version *filled = table_snapshot(tables[i]);
        status = tx_set_version(conn, tables[i], filled);
        version_release(filled);
    }
    return status;
}

FALLIBLE call_tpch(struct wf_connection *conn, struct rowset *rows) {
    struct tpch_call call = {.conn = conn, .rows = rows};
    struct load_progress progress = {.stop = &conn->stop};
    call.tables = tpch_tables(&call.table_count);
    call.first_made = call.table_count;
    TRY(read_arguments(&call));
    wf_status status = create_tables(&call);
    if (!status) {
        watch_load(&conn->watch, &progress);
        status = fill_tables(&call, &progress);
        watch_load(&conn->watch, NULL);
    }
    return status;
}
