/* call_generate.c: CALL tpch(sf => 1) and CALL ssb(sf => 1): creates the tables of a benchmark and
 * fills them.
 *
 * The tables are created as anybody would, by CREATE TABLE statements made from the generator's
 * description, referenced ones first; then the generator fills all of them in parallel (io/). All
 * of it is one transaction, so that a CALL leaves all tables or none. Of the columns all are made,
 * those the benchmark's queries read, or those of a list; a table without columns is not made, and
 * neither is a key of which a column is missing on either side. */
#include "session/session_int.h"

#include "io/generate.h"

struct call {
    struct wf_connection *conn;
    struct rowset *rows;
    const struct gen_suite *suite;
    i64 millionths;
    enum tpch_text text;
    const char *schema; /* NULL: where CREATE TABLE puts it */
    b8 **wanted;        /* per table and column */
};

static FALLIBLE bad_call(const struct call *call, i32 position) {
    struct error *err = &call->conn->err;
    const char *name = call->suite->name;
    error_set(err, ERR_UNDEFINED_FUNCTION, position,
              "%s takes sf, a number, and optionally columns%s", name,
              call->suite->has_text ? ", schema and text" : " and schema");
    error_hint(err, "As in CALL %s(sf => 1) or CALL %s(sf => 10, columns => 'queries').", name,
               name);
    return err->code;
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
    return value < GEN_SCALE_MIN ? bad_scale(conn, arg->position) : ERR_OK;
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

/* --- which columns ----------------------------------------------------------------------------- */

static void want_table(const struct call *call, i32 table, bool read_only) {
    const struct gen_table *plan = &call->suite->tables[table];
    for (u32 c = 0; c < plan->col_count; c++) {
        call->wanted[table][c] = !(read_only && plan->cols[c].unread);
    }
}

/* A name of the list: of a column, or of a table, which is all its columns. */
static bool want_name(const struct call *call, struct sv name) {
    bool found = false;
    for (i32 t = 0; t < call->suite->table_count; t++) {
        const struct gen_table *plan = &call->suite->tables[t];
        if (sv_eq_nocase(name, sv_from(plan->name))) {
            want_table(call, t, false);
            found = true;
        }
        for (u32 c = 0; c < plan->col_count; c++) {
            if (sv_eq_nocase(name, sv_from(plan->cols[c].name))) {
                call->wanted[t][c] = 1;
                found = true;
            }
        }
    }
    return found;
}

static struct sv trimmed(struct sv s) {
    while (s.len > 0 && strchr(" \t\r\n", s.ptr[0])) {
        s = (struct sv){s.ptr + 1, s.len - 1};
    }
    while (s.len > 0 && strchr(" \t\r\n", s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

static FALLIBLE want_list(const struct call *call, struct sv list, i32 position) {
    struct error *err = &call->conn->err;
    for (i64 at = 0; at <= list.len;) {
        i64 end = at;
        while (end < list.len && list.ptr[end] != ',') {
            end++;
        }
        struct sv name = trimmed((struct sv){list.ptr + at, end - at});
        if (!want_name(call, name)) {
            error_set(err, ERR_INVALID_PARAMETER, position,
                      "columns must be 'all', 'queries' or a list of columns and tables of %s, "
                      "which has no \"%.*s\"",
                      call->suite->name, (int)MIN_OF(name.len, 60), name.ptr);
            error_hint(err, "As in columns => '%s, %s'.", call->suite->tables[0].cols[0].name,
                       call->suite->tables[1].name);
            return err->code;
        }
        at = end + 1;
    }
    return ERR_OK;
}

static FALLIBLE read_columns(struct call *call, const struct expr *arg) {
    const struct gen_suite *suite = call->suite;
    struct arena *arena = &call->rows->arena;
    struct sv text = !arg ? SV("all") : arg->is_null ? SV("") : sv_of(arg->value.str);
    bool all = sv_eq_nocase(text, SV("all")), read_only = sv_eq_nocase(text, SV("queries"));
    call->wanted = NEW_ARRAY(arena, b8 *, suite->table_count);
    for (i32 t = 0; t < suite->table_count; t++) {
        call->wanted[t] = NEW_ARRAY(arena, b8, suite->tables[t].col_count);
    }
    TRY(arena_check(arena, &call->conn->err));
    for (i32 t = 0; t < suite->table_count && (all || read_only); t++) {
        want_table(call, t, read_only);
    }
    return all || read_only ? ERR_OK : want_list(call, text, arg->position);
}

static bool table_wanted(const struct call *call, i32 table) {
    for (u32 c = 0; c < call->suite->tables[table].col_count; c++) {
        if (call->wanted[table][c]) {
            return true;
        }
    }
    return false;
}

static bool pool_wanted(const struct call *call) {
    for (i32 t = 0; t < call->suite->table_count; t++) {
        const struct gen_table *plan = &call->suite->tables[t];
        for (u32 c = 0; c < plan->col_count; c++) {
            if (call->wanted[t][c] && plan->cols[c].pooled) {
                return true;
            }
        }
    }
    return false;
}

/* Whether all of the columns, named with ", " between, are made. */
static bool columns_wanted(const struct call *call, i32 table, const char *names) {
    const struct gen_table *plan = &call->suite->tables[table];
    while (*names) {
        i64 len = (i64)strcspn(names, ",");
        u32 c = 0;
        while (c < plan->col_count &&
               !sv_eq(sv_from(plan->cols[c].name), (struct sv){names, len})) {
            c++;
        }
        CHECK(c < plan->col_count);
        if (!call->wanted[table][c]) {
            return false;
        }
        names += len;
        names += strspn(names, ", ");
    }
    return true;
}

/* Whether the table, by its name, is made with a primary key. */
static bool primary_wanted(const struct call *call, const char *name) {
    i32 t = 0;
    while (strcmp(call->suite->tables[t].name, name) != 0) {
        t++;
        CHECK(t < call->suite->table_count);
    }
    const struct gen_key *primary = call->suite->keys(t, call->millionths);
    return primary->cols && !primary->table && columns_wanted(call, t, primary->cols);
}

/* --- arguments --------------------------------------------------------------------------------- */

enum { ARG_SF, ARG_COLUMNS, ARG_SCHEMA, ARG_TEXT, ARGS };

static FALLIBLE find_arguments(const struct call *call, const struct expr *args[ARGS]) {
    static const char *const names[ARGS] = {"sf", "columns", "schema", "text"};
    const struct statement *st = &call->rows->compiled->stmt;
    i32 count = call->suite->has_text ? ARGS : ARG_TEXT;
    for (i32 i = 0; i < st->call.count; i++) {
        i32 k = 0;
        const char *name = st->call.names[i];
        while (k < count && (name ? strcmp(names[k], name) != 0 : k != i)) {
            k++;
        }
        if (k == count || args[k]) {
            return bad_call(call, st->call.args[i]->position);
        }
        args[k] = st->call.args[i];
    }
    if (!args[ARG_SF] || !(args[ARG_SF]->is_null || type_is_numeric(args[ARG_SF]->type))) {
        return bad_call(call, args[ARG_SF] ? args[ARG_SF]->position : st->position);
    }
    for (i32 k = ARG_COLUMNS; k < count; k++) {
        if (args[k] && !args[k]->is_null && type_kind(args[k]->type) != KIND_STR) {
            return bad_call(call, args[k]->position);
        }
    }
    return ERR_OK;
}

static FALLIBLE read_arguments(struct call *call) {
    const struct expr *args[ARGS] = {NULL};
    TRY(find_arguments(call, args));
    TRY(read_scale(call->conn, args[ARG_SF], &call->millionths));
    const struct expr *schema = args[ARG_SCHEMA];
    if (schema && !schema->is_null) {
        call->schema = arena_sv(&call->rows->arena, sv_of(schema->value.str)).ptr;
    }
    b8 duckdb_text;
    TRY(read_choice(call->conn, args[ARG_TEXT], "text", "dbgen", "duckdb", &duckdb_text));
    call->text = duckdb_text ? TPCH_TEXT_DUCKDB : TPCH_TEXT_DBGEN;
    return read_columns(call, args[ARG_COLUMNS]);
}

/* --- tables ------------------------------------------------------------------------------------ */

static void print_schema(struct text *out, const struct call *call) {
    if (call->schema) {
        print_sql_name(out, call->schema);
        text_print(out, ".");
    }
}

/* The constraints: the tables they refer to are in the same schema. */
static void print_keys(struct text *out, const struct call *call, i32 table) {
    const struct gen_key *key = call->suite->keys(table, call->millionths);
    for (; key->cols; key++) {
        if (!columns_wanted(call, table, key->cols)) {
            continue;
        }
        if (!key->table) {
            text_print(out, ", primary key (%s)", key->cols);
        } else if (primary_wanted(call, key->table)) {
            text_print(out, ", foreign key (%s) references ", key->cols);
            print_schema(out, call);
            text_print(out, "%s", key->table);
        }
    }
}

static const char *create_text(const struct call *call, i32 table) {
    const struct gen_table *plan = &call->suite->tables[table];
    const char *before = "";
    struct text out;
    text_init(&out, &call->rows->arena);
    text_print(&out, "create table ");
    print_schema(&out, call);
    text_print(&out, "%s (", plan->name);
    for (u32 c = 0; c < plan->col_count; c++) {
        if (call->wanted[table][c]) {
            text_print(&out, "%s%s %s not null", before, plan->cols[c].name, plan->cols[c].type);
            before = ", ";
        }
    }
    print_keys(&out, call, table);
    text_print(&out, ")");
    return out.ptr;
}

static FALLIBLE create_tables(struct call *call) {
    for (i32 t = call->suite->table_count - 1; t >= 0; t--) {
        wf_status status =
            table_wanted(call, t) ? session_run_text(call->conn, create_text(call, t)) : ERR_OK;
        if (status) {
            call->conn->err.position = call->rows->compiled->stmt.position;
            return status;
        }
    }
    return ERR_OK;
}

static FALLIBLE find_tables(struct call *call, struct table **tables) {
    struct rowset *rows = call->rows;
    struct sv schema = call->schema ? sv_from(call->schema) : (struct sv){NULL, 0};
    snapshot_fini(&rows->snap); /* it was taken before the tables were there */
    connection_snapshot(call->conn, &rows->snap);
    for (i32 t = 0; t < call->suite->table_count; t++) {
        if (table_wanted(call, t)) {
            const struct edition_entry *entry =
                snapshot_lookup(&rows->snap, schema, sv_from(call->suite->tables[t].name));
            ASSERT(entry && entry->object->table);
            tables[t] = entry->object->table;
        }
    }
    return arena_check(&rows->arena, &call->conn->err);
}

static FALLIBLE fill_tables(struct call *call, struct load_progress *progress) {
    struct wf_connection *conn = call->conn;
    struct rowset *rows = call->rows;
    i32 count = call->suite->table_count;
    struct table **tables = NEW_ARRAY(&rows->arena, struct table *, count);
    TRY(find_tables(call, tables));
    struct gen_request request = {call->millionths, call->text, !pool_wanted(call),
                                  conn->db->pool,   &rows->mem, progress};
    struct generator *gen;
    TRY(call->suite->open(&gen, &request, &conn->err));
    gen->is_last = true;
    wf_status status = generate_load(gen, tables, request.pool, &rows->mem, progress,
                                     &rows->rows_affected, &conn->err);
    gen->close(gen);
    for (i32 t = 0; t < count && !status; t++) {
        if (tables[t]) {
            struct table_version *filled = table_snapshot(tables[t]);
            status = tx_set_version(conn, tables[t], filled);
            version_release(filled);
        }
    }
    return status;
}

const struct gen_suite *generate_find(const char *procedure) {
    static const struct gen_suite *const suites[] = {&tpch_suite, &ssb_suite};
    for (i32 i = 0; i < COUNT_OF(suites); i++) {
        if (sv_eq_nocase(sv_from(procedure), sv_from(suites[i]->name))) {
            return suites[i];
        }
    }
    return NULL;
}

FALLIBLE call_generate(struct wf_connection *conn, struct rowset *rows,
                       const struct gen_suite *suite) {
    struct call call = {.conn = conn, .rows = rows, .suite = suite};
    struct load_progress progress = {.stop = &conn->stop};
    TRY(read_arguments(&call));
    wf_status status = create_tables(&call);
    if (!status) {
        watch_load(&conn->watch, &progress);
        status = fill_tables(&call, &progress);
        watch_load(&conn->watch, NULL);
    }
    return status;
}
