/* prepare.c: prepared statements: parameters, and the compiled statement they keep.
 *
 * wf_prepare parses and binds at once, so that errors come early and parameter types are known; the
 * program is kept and used by every execution that it still fits (compiled_fits, then the guards in
 * exec_open). What does not fit is compiled again and replaces it; results still open keep the old
 * one alive. */
#include "api/api_int.h"

#include "host/chars.h"

static FALLIBLE prepare(struct wf_connection *conn, const char *sql, struct wf_statement *st) {
    TRY(script_new_for(conn, sql, &st->script));
    if (st->script->list.items.count != 1) {
        FAIL(&conn->err, SYNTAX, "one statement is prepared at a time, not %lld",
             st->script->list.items.count);
    }
    const struct parsed *parsed = st->script->list.items.items[0];
    st->param_count = parsed_param_count(parsed);
    struct rowset *rows; /* for its snapshot only */
    TRY(rowset_new(conn, &rows));
    connection_snapshot(conn, &rows->snap);
    struct param_facts params = {.count = st->param_count};
    wf_status status = compile(conn, st->script, parsed, &rows->snap, &params, false, &st->compiled);
    rowset_release(rows);
    TRY(status);
    st->compile_count = 1;
    struct arena *arena = &st->script->arena;
    st->params = NEW_ARRAY(arena, struct param, st->param_count + 1);
    st->param_types = NEW_ARRAY(arena, struct type, st->param_count + 1);
    memcpy(st->param_types, st->compiled->param_types,
           sizeof(struct type) * (size_t)st->param_count);
    return arena_check(arena, &conn->err);
}

static FALLIBLE prepare_new(struct wf_connection *conn, const char *sql, wf_statement **out) {
    struct wf_database *db = conn->db;
    struct wf_statement *st = mem_alloc(&db->mem, (i64)sizeof *st);
    if (!st) {
        return memory_refused(&db->mem, &conn->err, (i64)sizeof *st);
    }
    memset(st, 0, sizeof *st);
    st->conn = conn;
    atomic_fetch_add(&conn->refs, 1);
    wf_status status = prepare(conn, sql, st);
    if (status) {
        wf_statement_close(st);
        return status;
    }
    *out = st;
    return ERR_OK;
}

wf_status wf_prepare(wf_connection *conn, const char *sql, wf_statement **out_statement) {
    if (!out_statement || connection_enter(conn)) {
        return WF_MISUSE;
    }
    *out_statement = NULL;
    atomic_store(&conn->cancel, 0);
    connection_start(conn);
    wf_status status = prepare_new(conn, sql, out_statement);
    tx_fail(conn, status);
    return connection_leave(conn, status, sql ? sv_from(sql) : (struct sv){NULL, 0});
}

static void param_drop_text(struct wf_statement *st, struct param *param) {
    mem_free(&st->conn->db->mem, param->text_copy, param->text_cap);
    param->text_copy = NULL;
    param->text_cap = 0;
}

void wf_statement_close(wf_statement *st) {
    if (!st) {
        return;
    }
    struct wf_connection *conn = st->conn;
    for (i32 i = 0; st->params && i < st->param_count; i++) {
        param_drop_text(st, &st->params[i]);
    }
    compiled_release(st->compiled);
    script_release(st->script);
    mem_free(&conn->db->mem, st, (i64)sizeof *st);
    connection_release(conn);
}

int32_t wf_statement_param_count(const wf_statement *st) {
    return st ? st->param_count : 0;
}

int64_t wf_statement_compile_count(const wf_statement *st) {
    return st ? st->compile_count : 0;
}

wf_status wf_statement_param_type(const wf_statement *st, int32_t param, wf_type_info *out) {
    if (!st || !out || param < 1 || param > st->param_count) {
        return WF_MISUSE;
    }
    type_info(st->param_types[param - 1], out);
    return WF_OK;
}

static wf_status bind_value(wf_statement *st, int32_t param, struct param value) {
    if (!st || connection_enter(st->conn)) {
        return WF_MISUSE;
    }
    wf_status status = ERR_OK;
    if (param < 1 || param > st->param_count) {
        status =
            error_set(&st->conn->err, ERR_UNDEFINED_PARAMETER, -1,
                      "there is no parameter $%d: the statement has %d", param, st->param_count);
    } else {
        struct param *p = &st->params[param - 1];
        param_drop_text(st, p);
        *p = value;
    }
    return connection_leave(st->conn, status, (struct sv){NULL, 0});
}

wf_status wf_bind_null(wf_statement *st, int32_t param) {
    return bind_value(st, param, (struct param){.form = PARAM_NULL});
}

wf_status wf_bind_bool(wf_statement *st, int32_t param, int value) {
    return bind_value(st, param, (struct param){.form = PARAM_BOOL, .value.b8 = value != 0});
}

wf_status wf_bind_int64(wf_statement *st, int32_t param, int64_t value) {
    return bind_value(st, param, (struct param){.form = PARAM_EXACT, .value.i128 = value});
}

wf_status wf_bind_double(wf_statement *st, int32_t param, double value) {
    return bind_value(st, param, (struct param){.form = PARAM_DOUBLE, .value.f64 = value});
}

wf_status wf_bind_decimal(wf_statement *st, int32_t param, wf_int128 value, int32_t scale) {
    if (scale < 0 || scale > 38) {
        return WF_MISUSE;
    }
    i128 exact = (i128)((u128)(u64)value.high << 64 | value.low);
    return bind_value(st, param,
                      (struct param){.form = PARAM_EXACT, .scale = scale, .value.i128 = exact});
}

wf_status wf_bind_date(wf_statement *st, int32_t param, int32_t days_since_1970) {
    return bind_value(st, param, (struct param){.form = PARAM_DATE, .value.i32 = days_since_1970});
}

static FALLIBLE bind_text(struct wf_statement *st, int32_t param, struct sv text) {
    struct error *err = &st->conn->err;
    if (param < 1 || param > st->param_count) {
        FAIL(err, UNDEFINED_PARAMETER, "there is no parameter $%d: the statement has %d", param,
             st->param_count);
    }
    if (text.len >= 1LL << 32 || !utf8_valid(text.ptr, text.len, NULL)) {
        FAIL(err, INVALID_ENCODING, "the text for parameter $%d is not valid UTF-8", param);
    }
    struct memory *mem = &st->conn->db->mem;
    char *copy = mem_alloc(mem, text.len + 1);
    if (!copy) {
        return memory_refused(mem, err, text.len + 1);
    }
    memcpy(copy, text.ptr, (size_t)text.len);
    struct param *p = &st->params[param - 1];
    param_drop_text(st, p);
    *p = (struct param){.form = PARAM_TEXT,
                        .value.str = str_from((struct sv){copy, text.len}),
                        .text_copy = copy,
                        .text_cap = text.len + 1};
    return ERR_OK;
}

wf_status wf_bind_text(wf_statement *st, int32_t param, const char *text, int64_t len) {
    if (!text) {
        return wf_bind_null(st, param);
    }
    if (!st || connection_enter(st->conn)) {
        return WF_MISUSE;
    }
    struct sv view = {text, len < 0 ? (i64)strlen(text) : (i64)len};
    return connection_leave(st->conn, bind_text(st, param, view), (struct sv){NULL, 0});
}

wf_status wf_bind_reset(wf_statement *st) {
    if (!st) {
        return WF_MISUSE;
    }
    for (i32 i = 1; i <= st->param_count; i++) {
        wf_status status = wf_bind_null(st, i);
        if (status) {
            return status;
        }
    }
    return WF_OK;
}

static FALLIBLE execute(struct wf_statement *st, wf_result **out_result) {
    struct wf_connection *conn = st->conn;
    struct run_request request = {
        .script = st->script,
        .parsed = st->script->list.items.items[0],
        .param_count = st->param_count,
        .params = st->params,
        .cache = &st->compiled,
        .compile_count = &st->compile_count,
    };
    struct rowset *rows;
    TRY(statement_run(conn, &request, &rows));
    if (!out_result) {
        wf_status status = rowset_finish(conn, rows);
        rowset_release(rows);
        return status;
    }
    *out_result = result_take(rows);
    return ERR_OK;
}

wf_status wf_execute(wf_statement *st, wf_result **out_result) {
    if (out_result) {
        *out_result = NULL;
    }
    if (!st || connection_enter(st->conn)) {
        return WF_MISUSE;
    }
    struct wf_connection *conn = st->conn;
    atomic_store(&conn->cancel, 0);
    connection_start(conn);
    watch_begin(&conn->watch);
    wf_status status = execute(st, out_result);
    watch_end(&conn->watch);
    script_place_all(st->script, conn);
    return connection_leave(conn, status, st->script->text);
}
