/* script.c: the text of a script and its syntax trees, in an arena of their own.
 *
 * It is counted, because plans may borrow from it. */
#include "session/session_int.h"

FALLIBLE script_make(struct wf_connection *conn, const char *text,
                     wf_status (*fill)(struct wf_connection *conn, struct script *script),
                     struct script **out) {
    *out = NULL;
    if (!text) {
        FAIL(&conn->err, MISUSE, "no statement given");
    }
    struct wf_database *db = conn->db;
    struct script *script = mem_alloc(&db->mem, (i64)sizeof *script);
    if (!script) {
        return memory_refused(&db->mem, &conn->err, (i64)sizeof *script);
    }
    memset(script, 0, sizeof *script);
    atomic_init(&script->refs, 1);
    script->db = database_retain(db);
    arena_init(&script->arena, &db->mem);
    script->text = arena_sv(&script->arena, sv_from(text));
    i64 start_ns = clock_ns();
    wf_status status = arena_check(&script->arena, &conn->err);
    if (!status) {
        status = fill(conn, script);
    }
    if (!status) {
        status = arena_check(&script->arena, &conn->err);
    }
    if (status) {
        script_release(script);
        return status;
    }
    script->parse_ns = clock_ns() - start_ns;
    *out = script;
    return ERR_OK;
}

static wf_status fill_sql(struct wf_connection *conn, struct script *script) {
    script->sql = script->text;
    return sql_parse(&script->arena, script->sql, &script->list, &conn->err);
}

FALLIBLE script_new(struct wf_connection *conn, const char *text, struct script **out) {
    return script_make(conn, text, fill_sql, out);
}

FALLIBLE script_new_for(struct wf_connection *conn, const char *text, struct script **out) {
    return conn->settings.language == LANGUAGE_LOGIQL ? script_new_logiql(conn, text, out)
                                                      : script_new(conn, text, out);
}

struct script *script_retain(struct script *script) {
    atomic_fetch_add(&script->refs, 1);
    return script;
}

void script_release(struct script *script) {
    if (script && atomic_fetch_sub(&script->refs, 1) == 1) {
        struct wf_database *db = script->db;
        arena_fini(&script->arena);
        mem_free(&db->mem, script, (i64)sizeof *script);
        database_release(db);
    }
}
