/* connection.c: connections: the error slot, who is inside, cancelling, settings and names.
 *
 * A connection belongs to one thread at a time. `busy` makes a breach of that visible as WF_MISUSE
 * rather than as damage. Every public call on a connection runs between connection_enter and
 * connection_leave, which reset the error slot and publish it. */
#include "api/api_int.h"

#include <stdlib.h>

#include <stdarg.h>
#include <stdio.h>

wf_status public_status(wf_status internal) {
    switch (internal) {
    case ERR_OK:
        return WF_OK;
    case ERR_MISUSE:
        return WF_MISUSE;
    case ERR_OUT_OF_MEMORY:
    case ERR_DEVICE_MEMORY:
        return WF_NO_MEMORY;
    case ERR_CANCELLED:
        return WF_CANCELLED;
    default:
        return WF_ERROR;
    }
}

void public_error(wf_error *out, const struct error *err, struct sv text) {
    memset(out, 0, sizeof *out);
    out->status = public_status(err->code);
    snprintf(out->sqlstate, sizeof out->sqlstate, "%s", error_sqlstate(err->code));
    out->position = -1;
    if (!err->code) {
        return;
    }
    memcpy(out->message, err->message, sizeof out->message);
    memcpy(out->hint, err->hint, sizeof out->hint);
    if (err->position < 0 || !text.ptr || err->position > text.len) {
        return;
    }
    out->position = err->position;
    out->line = 1;
    out->column = 1;
    for (i64 i = 0; i < err->position; i++) {
        if (text.ptr[i] == '\n') {
            out->line++;
            out->column = 1;
        } else if (((u8)text.ptr[i] & 0xc0) != 0x80) {
            out->column++;
        }
    }
}

_Static_assert(sizeof(((wf_error *)0)->message) == sizeof(((struct error *)0)->message), "message");
_Static_assert(sizeof(((wf_error *)0)->hint) == sizeof(((struct error *)0)->hint), "hint");

wf_status connection_enter(struct wf_connection *conn) {
    i32 expected = 0;
    if (!conn || !atomic_compare_exchange_strong(&conn->busy, &expected, 1)) {
        return WF_MISUSE;
    }
    error_reset(&conn->err);
    conn->outer = stop_enter(NULL);
    return WF_OK;
}

wf_status connection_leave(struct wf_connection *conn, wf_status internal, struct sv text) {
    ASSERT(atomic_load(&conn->busy) == 1); /* one statement is in flight */
    ASSERT((internal == ERR_OK) == (conn->err.code == ERR_OK));
    if (internal) {
        public_error(&conn->last, &conn->err, text);
    } else if (conn->last.status) {
        error_reset(&conn->err);
        public_error(&conn->last, &conn->err, text);
    }
    stop_enter(conn->outer);
    atomic_store(&conn->busy, 0);
    return public_status(internal);
}

void connection_start(struct wf_connection *conn) {
    i64 timeout_ms = conn->settings.statement_timeout;
    conn->statement_us = clock_real_us();
    conn->deadline_ns = timeout_ms ? clock_ns() + timeout_ms * 1000000 : 0;
    conn->stop = (struct stop){&conn->cancel, 0, conn->deadline_ns};
    stop_enter(&conn->stop);
}

FALLIBLE connection_check(struct wf_connection *conn) {
    return stop_check_of(&conn->stop, &conn->err);
}

wf_status wf_connect(wf_database *db, wf_connection **out_conn) {
    if (!db || !out_conn) {
        return WF_MISUSE;
    }
    *out_conn = NULL;
    struct wf_connection *conn = mem_alloc(&db->mem, (i64)sizeof *conn);
    if (!conn) {
        return WF_NO_MEMORY;
    }
    memset(conn, 0, sizeof *conn);
    conn->db = database_retain(db);
    conn->settings = db->defaults;
    atomic_init(&conn->refs, 1);
    atomic_init(&conn->busy, 0);
    atomic_init(&conn->cancel, 0);
    atomic_init(&conn->cancel_count, 0);
    error_reset(&conn->err);
    public_error(&conn->last, &conn->err, (struct sv){NULL, 0});
    watch_init(&conn->watch);
    *out_conn = conn;
    return WF_OK;
}

void connection_release(struct wf_connection *conn) {
    if (atomic_fetch_sub(&conn->refs, 1) == 1) {
        struct wf_database *db = conn->db;
        session_close(conn);
        watch_fini(&conn->watch);
        mem_free(&db->mem, conn, (i64)sizeof *conn);
        database_release(db);
    }
}

void wf_disconnect(wf_connection *conn) {
    if (conn) {
        if (connection_enter(conn) == WF_OK) { /* statements may keep it; its transaction ends */
            session_close(conn);
            atomic_store(&conn->busy, 0);
        }
        connection_release(conn);
    }
}

void notice(struct wf_connection *conn, const char *severity, const char *format, ...) {
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (conn->notice) {
        conn->notice(conn->notice_arg, severity, text);
    }
}

wf_status wf_set_notice(wf_connection *conn, wf_notice report, void *arg) {
    if (connection_enter(conn)) {
        return WF_MISUSE;
    }
    conn->notice = report;
    conn->notice_arg = arg;
    return connection_leave(conn, ERR_OK, (struct sv){NULL, 0});
}

const wf_error *wf_connection_error(const wf_connection *conn) {
    return conn ? &conn->last : NULL;
}

void wf_cancel(wf_connection *conn) {
    if (conn) {
        atomic_store_explicit(&conn->cancel, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&conn->cancel_count, 1, memory_order_relaxed);
    }
}

static FALLIBLE set_setting(struct wf_connection *conn, const char *name, const char *value) {
    if (!name || !value) {
        FAIL(&conn->err, MISUSE, "wf_set needs a name and a value");
    }
    return setting_set(&conn->settings, sv_from(name), sv_from(value), false, &conn->err);
}

wf_status wf_set(wf_connection *conn, const char *name, const char *value) {
    if (connection_enter(conn)) {
        return WF_MISUSE;
    }
    return connection_leave(conn, set_setting(conn, name, value), (struct sv){NULL, 0});
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those the search path leads to by their names, others with their schemas; in two runs, each in
 * order. */
static FALLIBLE table_names(struct wf_connection *conn, struct snapshot *snap, const char ***out,
                            i64 *out_count) {
    TRY(snapshot_open(snap, &conn->err));
    VEC(const char *) names[2] = {0};
    struct edition_walk at = edition_walk(snap->edition);
    while (edition_step(&at)) {
        const struct object *object = at.entry->object;
        if (object->kind != OBJECT_TABLE || object->hidden) {
            continue;
        }
        const struct edition_entry *seen =
            snapshot_lookup(snap, (struct sv){NULL, 0}, sv_from(object->name));
        const struct edition_entry *schema = edition_find_oid(snap->edition, object->schema);
        bool bare = !schema || (seen && seen->object->oid == object->oid);
        const char *name =
            bare ? object->name
                 : arena_printf(snap->arena, "%s.%s", schema->object->name, object->name);
        VEC_PUSH(snap->arena, &names[!bare], name);
    }
    *out_count = 0;
    *out = NEW_ARRAY(snap->arena, const char *, names[0].count + names[1].count + 1);
    TRY(arena_check(snap->arena, &conn->err));
    for (i32 run = 0; run < 2; run++) {
        if (names[run].count > 0) {
            qsort(names[run].items, (size_t)names[run].count, sizeof(char *), by_text);
            memcpy(*out + *out_count, names[run].items, sizeof(char *) * (size_t)names[run].count);
            *out_count += names[run].count;
        }
    }
    return ERR_OK;
}

static FALLIBLE each_table(struct wf_connection *conn, wf_each_table each, void *arg) {
    struct arena arena;
    struct snapshot snap;
    const char **names = NULL;
    i64 count = 0;
    arena_init(&arena, &conn->db->mem);
    snapshot_init(&snap, conn->db->catalog, &arena);
    connection_snapshot(conn, &snap);
    wf_status status = table_names(conn, &snap, &names, &count);
    for (i64 i = 0; i < count && !status; i++) {
        if (each(arg, names[i])) {
            break;
        }
    }
    snapshot_fini(&snap);
    arena_fini(&arena);
    return status;
}

wf_status wf_tables(wf_connection *conn, wf_each_table each, void *arg) {
    if (!each || connection_enter(conn)) {
        return WF_MISUSE;
    }
    return connection_leave(conn, each_table(conn, each, arg), (struct sv){NULL, 0});
}

static FALLIBLE each_column(struct wf_connection *conn, const char *table, wf_each_column each,
                            void *arg) {
    struct arena arena;
    arena_init(&arena, &conn->db->mem);
    struct snapshot snap;
    snapshot_init(&snap, conn->db->catalog, &arena);
    connection_snapshot(conn, &snap);
    const char *dot = strchr(table, '.');
    struct sv schema = {table, dot ? dot - table : 0}, rest = sv_from(dot ? dot + 1 : table);
    wf_status status = snapshot_open(&snap, &conn->err);
    const struct edition_entry *entry =
        status ? NULL : snapshot_lookup(&snap, (struct sv){NULL, 0}, sv_from(table));
    entry = entry || status || !dot ? entry : snapshot_lookup(&snap, schema, rest);
    if (!status && (!entry || entry->object->kind != OBJECT_TABLE)) {
        status = snapshot_missing(&snap, schema, rest, -1, &conn->err);
    }
    const struct table *found = status ? NULL : snapshot_of(&snap, entry).table;
    for (u32 i = 0; !status && i < found->col_count; i++) {
        const struct column_def *col = &found->cols[i];
        char type[32];
        if (each(arg, col->name, type_print(col->type, type), col->not_null)) {
            break;
        }
    }
    snapshot_fini(&snap);
    arena_fini(&arena);
    return status;
}

wf_status wf_columns(wf_connection *conn, const char *table, wf_each_column each, void *arg) {
    if (!table || !each || connection_enter(conn)) {
        return WF_MISUSE;
    }
    return connection_leave(conn, each_column(conn, table, each, arg), (struct sv){NULL, 0});
}

_Static_assert((i32)WF_COMPLETION_FILE == (i32)COMPLETE_FILE &&
                   (i32)WF_COMPLETION_SETTING == (i32)COMPLETE_SETTING,
               "kinds of completions have one number");

struct completing {
    wf_each_completion each;
    void *arg;
};

static int complete_one(void *arg, const char *text, enum completion_kind kind) {
    const struct completing *to = arg;
    return to->each(to->arg, text, (wf_completion)kind);
}

static FALLIBLE complete_text(struct wf_connection *conn, struct sv text, i64 cursor,
                              struct completing *to, i64 *out_start) {
    struct arena arena;
    arena_init(&arena, &conn->db->mem);
    struct snapshot snap;
    snapshot_init(&snap, conn->db->catalog, &arena);
    connection_snapshot(conn, &snap);
    wf_status status = sql_complete(&snap, text, cursor, complete_one, to, out_start, &conn->err);
    snapshot_fini(&snap);
    arena_fini(&arena);
    return status;
}

wf_status wf_complete(wf_connection *conn, const char *text, size_t len, size_t cursor,
                      wf_each_completion each, void *arg, size_t *out_start) {
    if (!text || !each || !out_start || cursor > len || connection_enter(conn)) {
        return WF_MISUSE;
    }
    struct completing to = {each, arg};
    i64 start = (i64)cursor;
    wf_status status = complete_text(conn, (struct sv){text, (i64)len}, (i64)cursor, &to, &start);
    *out_start = (size_t)start;
    return connection_leave(conn, status, (struct sv){NULL, 0});
}

const char *wf_keyword(int32_t i) {
    return i < 0 ? NULL : sql_keywords[i];
}

wf_status wf_function(int32_t i, wf_function_info *out) {
    struct sql_function found;
    if (!out || !sql_function(i, &found)) {
        return WF_MISUSE;
    }
    *out = (wf_function_info){found.name, found.kind, found.synopsis};
    return WF_OK;
}

wf_transaction wf_transaction_state(const wf_connection *conn) {
    return !conn || !conn->tx.open ? WF_TRANSACTION_NONE
           : conn->tx.failed       ? WF_TRANSACTION_FAILED
                                   : WF_TRANSACTION_OPEN;
}

const char *wf_version(void) {
    return WF_VERSION_TEXT;
}
