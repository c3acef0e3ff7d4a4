/* query.c: scripts: text in, one result per statement out.
 *
 * A script is parsed as a whole, then its statements run one after the other, each with its own
 * snapshot, so that a statement sees what those before it did. A script of one statement that comes
 * again is found with its program (session/texts.c). */
#include "api/api_int.h"

/* `keep`: the rows are handed out; else they are computed for their errors only. */
static FALLIBLE run_item(struct wf_connection *conn, struct script *script, i64 i, bool keep,
                         struct kept_text *kept, struct wf_result **out) {
    const struct parsed *parsed = script->list.items.items[i];
    bool prepare = parsed_is_prepare(parsed);
    if (parsed_param_count(parsed) > 0 && !prepare) {
        error_set(&conn->err, ERR_UNDEFINED_PARAMETER, parsed_param_position(parsed),
                  "there is no parameter $%d", parsed_param_count(parsed));
        error_hint(&conn->err, "Parameters need a prepared statement (wf_prepare, wf_bind_…).");
        return conn->err.code;
    }
    if (i > 0) { /* the first one's time began with the parsing */
        connection_start(conn);
    }
    struct run_request request = {.script = script, .parsed = parsed};
    if (prepare) { /* its parameters have types but no values */
        request.param_count = parsed_param_count(parsed);
        request.params = NEW_ARRAY(&script->arena, struct param, request.param_count + 1);
        TRY(arena_check(&script->arena, &conn->err));
    }
    struct rowset *rows;
    if (kept) {
        texts_request(kept, &request);
    }
    wf_status ran = statement_run(conn, &request, &rows);
    if (kept) {
        texts_settle(conn, kept);
    }
    TRY(ran);
    rows->ns += i == 0 && !kept ? script->parse_ns : 0;
    if (keep) {
        *out = result_take(rows);
        return ERR_OK;
    }
    wf_status status = rowset_finish(conn, rows);
    rowset_release(rows);
    return status;
}

/* Who receives the results; `last` NULL and `each` NULL: nobody. */
struct receiver {
    wf_each_result each;
    void *arg;
    struct wf_result **last; /* of the last statement only */
};

/* A script that is a transaction of its own has statements for its beginning and its end, which
 * hand out nothing; within another transaction they do not run. */
static FALLIBLE run_all(struct wf_connection *conn, struct script *script, struct kept_text *kept,
                        const struct receiver *to) {
    i64 count = script->list.items.count;
    bool framed = script->is_whole && !conn->tx.open;
    for (i64 i = 0; i < count; i++) {
        struct wf_result *result = NULL;
        bool frame = script->is_whole && (i == 0 || i == count - 1);
        bool is_last = i == count - 1 - script->is_whole && !frame;
        bool keep = !frame && (to->each || (to->last && is_last));
        if (frame && !framed) {
            continue;
        }
        wf_status status = run_item(conn, script, i, keep, kept, &result);
        if (status) {
            i64 part = i - script->is_whole;
            bool nowhere = script->logical && conn->err.position < 0;
            if (nowhere && part >= 0 && part < script->parts.count) {
                conn->err.position = (i32)script->parts.items[part].sql_start;
            }
            return status;
        }
        if (keep && to->each && to->each(to->arg, result)) {
            if (framed) {
                tx_abandon(conn);
            }
            return ERR_OK;
        }
        if (to->last && is_last) {
            *to->last = result;
        }
    }
    return ERR_OK;
}

/* All of a script that is a transaction, or nothing. */
static FALLIBLE run_script(struct wf_connection *conn, struct script *script,
                           struct kept_text *kept, const struct receiver *to) {
    bool inside = conn->tx.open;
    wf_status status = run_all(conn, script, kept, to);
    if (status && script->is_whole && !inside) {
        if (to->last && *to->last) {
            wf_result_close(*to->last);
            *to->last = NULL;
        }
        tx_abandon(conn);
    }
    return status;
}

static wf_status query(wf_connection *conn, const char *sql, const struct receiver *to) {
    if (connection_enter(conn)) {
        return WF_MISUSE;
    }
    atomic_store(&conn->cancel, 0);
    connection_start(conn);
    watch_begin(&conn->watch);
    struct kept_text *kept = texts_find(conn, sql);
    struct script *script = kept ? texts_script(kept) : NULL;
    wf_status status = kept ? ERR_OK : script_new_for(conn, sql, &script);
    if (!status) {
        kept = kept ? kept : texts_keep(conn, script);
        status = run_script(conn, script, kept, to);
    }
    watch_end(&conn->watch);
    script_place_all(script, conn);
    tx_fail(conn, status);
    status = connection_leave(conn, status, sql ? sv_from(sql) : (struct sv){NULL, 0});
    script_release(script);
    return status;
}

wf_status wf_query_each(wf_connection *conn, const char *sql, wf_each_result each, void *arg) {
    return each ? query(conn, sql, &(struct receiver){.each = each, .arg = arg}) : WF_MISUSE;
}

wf_status wf_query(wf_connection *conn, const char *sql, wf_result **out_result) {
    if (out_result) {
        *out_result = NULL;
    }
    return query(conn, sql, &(struct receiver){.last = out_result});
}
