/* connection.c: connections: opening, errors, cancelling, reports, settings, names and completion.
 *
 * Every public call on a connection runs between connection_enter and connection_leave, which reset
 * the error slot and publish it. */
#include "api/api_int.h"

#include <stdlib.h>

wf_status wf_connect(wf_database *db, wf_connection **out_conn) {
    if (!db || !out_conn) {
        return WF_MISUSE;
    }
    *out_conn = connection_open(db);
    return *out_conn ? WF_OK : WF_NO_MEMORY;
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

wf_status wf_set_notice(wf_connection *conn, wf_notice report, void *arg) {
    if (connection_enter(conn)) {
        return WF_MISUSE;
    }
    conn->notice = report;
    conn->notice_arg = arg;
    return connection_leave(conn, ERR_OK, (struct sv){NULL, 0});
}

wf_status wf_set_progress(wf_connection *conn, wf_progress report, void *arg, int32_t interval_ms) {
    if (connection_enter(conn)) {
        return WF_MISUSE;
    }
    wf_status status = watch_set(&conn->watch, report, arg, interval_ms, &conn->err);
    return connection_leave(conn, status, (struct sv){NULL, 0});
}

const wf_error *wf_connection_further_error(const wf_connection *conn, int32_t number) {
    bool known = conn && conn->last.status && number >= 0 && number < conn->further_count;
    return known ? &conn->further[number].shown : NULL;
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
