/* connection.c: connections: who is inside, the error slot and its public form, notices.
 *
 * A connection belongs to one thread at a time. `busy` makes a breach of that visible as WF_MISUSE
 * rather than as damage: connection_enter and connection_leave stand around all that is done with
 * it. */
#include "session/session_int.h"

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

void further_drop(struct wf_connection *conn) {
    if (conn->further) {
        mem_free(&conn->db->mem, conn->further, conn->further_count * (i64)sizeof *conn->further);
    }
    conn->further = NULL;
    conn->further_count = 0;
}

void further_open(struct wf_connection *conn, i64 count) {
    further_drop(conn);
    i64 bytes = count * (i64)sizeof *conn->further;
    conn->further = count > 0 ? mem_alloc(&conn->db->mem, bytes) : NULL;
    if (conn->further) {
        memset(conn->further, 0, (size_t)bytes);
        conn->further_count = (i32)count;
    }
}

wf_status connection_enter(struct wf_connection *conn) {
    i32 expected = 0;
    if (!conn || !atomic_compare_exchange_strong(&conn->busy, &expected, 1)) {
        return WF_MISUSE;
    }
    error_reset(&conn->err);
    further_drop(conn);
    conn->outer = stop_enter(NULL);
    return WF_OK;
}

wf_status connection_leave(struct wf_connection *conn, wf_status internal, struct sv text) {
    ASSERT(atomic_load(&conn->busy) == 1); /* one statement is in flight */
    ASSERT((internal == ERR_OK) == (conn->err.code == ERR_OK));
    for (i32 i = 0; internal && i < conn->further_count; i++) {
        public_error(&conn->further[i].shown, &conn->further[i].err, text);
    }
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

struct wf_connection *connection_open(struct wf_database *db) {
    struct wf_connection *conn = mem_alloc(&db->mem, (i64)sizeof *conn);
    if (!conn) {
        return NULL;
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
    return conn;
}

void connection_release(struct wf_connection *conn) {
    if (atomic_fetch_sub(&conn->refs, 1) == 1) {
        struct wf_database *db = conn->db;
        session_close(conn);
        further_drop(conn);
        watch_fini(&conn->watch);
        mem_free(&db->mem, conn, (i64)sizeof *conn);
        database_release(db);
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
