/* transaction.c: a connection's transaction: editions, savepoints, statements that fail.
 *
 * Every statement runs in a transaction: the one BEGIN opened, or one of its own. A transaction is
 * two editions: the one it started from and the one it has made so far; what a statement changes
 * becomes another edition, and going back, for a failed statement, ROLLBACK or ROLLBACK TO, means
 * taking up an older one. Reading inside is reading the transaction's own edition, so one sees
 * one's own writes and nobody else's. Isolation is PostgreSQL's REPEATABLE READ at every level
 * asked for but SERIALIZABLE, which is refused. See decision 0012. */
#include "session/session_int.h"

struct savepoint {
    struct savepoint *next;          /* older */
    struct session_state now, after; /* settings */
    struct edition *edition;
    i64 bytes;
    b8 read_only;
    char name[];
};

static void session_keep(const struct wf_connection *conn, struct session_state *out) {
    out->settings = conn->settings;
    memcpy(out->search_path, conn->search_path, sizeof out->search_path);
}

static void session_restore(struct wf_connection *conn, const struct session_state *from) {
    conn->settings = from->settings;
    memcpy(conn->search_path, from->search_path, sizeof conn->search_path);
}

/* Takes up another edition, which is the caller's to give. */
static void tx_move(struct wf_connection *conn, struct edition *edition) {
    struct tx *tx = &conn->tx;
    struct edition *old = tx->mine;
    tx->mine = edition;
    if (old && edition) {
        bool redefined = old->definitions != edition->definitions;
        keep_forget(conn); /* it may follow from what is gone */
        edition_discard(old, edition);
        if (redefined) {
            keep_sweep(conn->db, false);
        }
    } else {
        edition_release(old);
    }
}

static void drop_savepoints(struct wf_connection *conn, struct savepoint *until) {
    struct tx *tx = &conn->tx;
    while (tx->savepoints != until) {
        struct savepoint *gone = tx->savepoints;
        tx->savepoints = gone->next;
        edition_release(gone->edition);
        mem_free(&conn->db->mem, gone, gone->bytes);
    }
}

static void drop_deferrals(struct wf_connection *conn) {
    while (conn->tx.deferrals) {
        struct set_constraints *gone = conn->tx.deferrals;
        conn->tx.deferrals = gone->next;
        mem_free(&conn->db->mem, gone, (i64)sizeof *gone);
    }
}

static FALLIBLE put_deferral(struct wf_connection *conn, u32 oid, bool deferred) {
    struct set_constraints *d = mem_alloc(&conn->db->mem, (i64)sizeof *d);
    if (!d) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *d);
    }
    *d = (struct set_constraints){conn->tx.deferrals, oid, deferred};
    conn->tx.deferrals = d;
    return ERR_OK;
}

FALLIBLE run_set_constraints(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "SET CONSTRAINTS";
    if (!conn->tx.open) {
        notice(conn, "WARNING", "SET CONSTRAINTS can only be used in transaction blocks");
        return ERR_OK;
    }
    if (st->constraints.all) { /* what was said before does not count any more */
        TRY(st->constraints.deferred ? ERR_OK : constraints_deferred(conn, 0));
        drop_deferrals(conn);
        return put_deferral(conn, 0, st->constraints.deferred);
    }
    for (i32 i = 0; i < st->constraints.count; i++) {
        TRY(st->constraints.deferred ? ERR_OK
                                     : constraints_deferred(conn, st->constraints.oids[i]));
        TRY(put_deferral(conn, st->constraints.oids[i], st->constraints.deferred));
    }
    return ERR_OK;
}

void tx_close(struct wf_connection *conn) {
    struct tx *tx = &conn->tx;
    drop_savepoints(conn, NULL);
    drop_deferrals(conn);
    keep_forget(conn);
    if (tx->base) {
        tx_move(conn, edition_retain(tx->base));
        atomic_fetch_sub(&conn->db->tx_count, 1);
    }
    edition_release(tx->mine);
    edition_release(tx->base);
    *tx = (struct tx){0};
    catalog_tidy(conn->db->catalog);
}

FALLIBLE tx_enter(struct wf_connection *conn, struct tx_mark *mark) {
    struct tx *tx = &conn->tx;
    *mark = (struct tx_mark){NULL};
    if (!tx->base) {
        atomic_fetch_add(&conn->db->tx_count, 1); /* before: a compaction counts who may be older */
        if (catalog_edition(conn->db->catalog, &tx->base, &conn->err)) {
            atomic_fetch_sub(&conn->db->tx_count, 1);
            return conn->err.code;
        }
        tx->mine = edition_retain(tx->base);
    }
    if (!tx->open && tx->depth == 0) {
        tx->start_us = conn->statement_us;
    }
    mark->edition = edition_retain(tx->mine);
    tx->depth++;
    return ERR_OK;
}

void tx_undo(struct wf_connection *conn, const struct tx_mark *mark) {
    if (mark->edition && conn->tx.mine != mark->edition) {
        tx_move(conn, edition_retain(mark->edition));
    }
}

static FALLIBLE tx_commit(struct wf_connection *conn, struct to_compact *later) {
    struct tx *tx = &conn->tx;
    if (!tx->base || tx->base == tx->mine) {
        return catalog_keep_sequences(conn->db->catalog, &conn->err);
    }
    TRY(catalog_commit_as(conn->db->catalog, tx->base, tx->mine,
                          conn->settings.durability == DURABILITY_LAZY, constraints_recheck, conn,
                          &conn->err));
    compact_note(tx->base, tx->mine, later);
    keep_commit(conn);
    if (tx->base->definitions != tx->mine->definitions) {
        keep_sweep(conn->db, false);
    }
    return ERR_OK;
}

FALLIBLE tx_leave(struct wf_connection *conn, struct tx_mark *mark, wf_status status) {
    struct tx *tx = &conn->tx;
    if (!status && tx->depth == 1 && tx->mine != mark->edition) {
        status = logiql_constraints(conn, mark->edition);
    }
    bool whole = --tx->depth == 0;
    struct to_compact later = {0};
    if (!status && !tx->open && whole) {
        status = constraints_deferred(conn, 0);
    }
    if (!status && !tx->open && whole) {
        status = tx_commit(conn, &later);
        if (status == ERR_UNIQUE || status == ERR_FOREIGN_KEY || status == ERR_CHECK ||
            status == ERR_DUPLICATE_TABLE || status == ERR_DUPLICATE_SCHEMA) {
            /* Somebody was faster: run again, the statement meets it on its own terms. */
            error_reset(&conn->err);
            status = error_set(&conn->err, ERR_SERIALIZATION, -1,
                               "could not serialize access due to concurrent update");
        }
        if (!status) { /* what was made is everybody's now */
            edition_release(tx->base);
            tx->base = edition_retain(tx->mine);
        }
    }
    if (status) {
        tx_undo(conn, mark);
        catalog_tidy(conn->db->catalog);
        tx->failed = tx->open;
    }
    edition_release(mark->edition);
    mark->edition = NULL;
    if (!tx->open && whole) {
        tx_close(conn);
    }
    compact_tables(conn, &later);
    return status;
}

void tx_fail(struct wf_connection *conn, wf_status status) {
    if (status && status != ERR_MISUSE && conn->tx.open) {
        conn->tx.failed = 1;
    }
}

FALLIBLE tx_apply(struct wf_connection *conn, const struct edit *edits, i64 count) {
    struct tx *tx = &conn->tx;
    if (tx->read_only) {
        FAIL(&conn->err, READ_ONLY, "cannot change anything in a read-only transaction");
    }
    struct edition *next;
    TRY(edition_change(conn->db->catalog, tx->mine, edits, count, &next, &conn->err));
    edition_release(tx->mine);
    tx->mine = next;
    return ERR_OK;
}

FALLIBLE tx_set_version(struct wf_connection *conn, const struct table *table,
                        struct table_version *version) {
    const struct edition_entry *entry = edition_find_table(conn->tx.mine, table->id);
    ASSERT(entry != NULL);
    struct edit edit = {entry->object->oid, entry->object, version};
    return tx_apply(conn, &edit, 1);
}

bool tx_allows(const struct wf_connection *conn, const struct statement *st) {
    return !conn->tx.failed || (st->kind == STATEMENT_TRANSACTION && st->tx.kind != TX_BEGIN &&
                                st->tx.kind != TX_SAVEPOINT && st->tx.kind != TX_RELEASE);
}

void tx_note(struct wf_connection *conn, const struct statement *st) {
    bool begins = st->kind == STATEMENT_TRANSACTION && st->tx.kind == TX_BEGIN;
    conn->tx.asked = conn->tx.asked || (st->kind != STATEMENT_SET && !begins);
}

FALLIBLE tx_refuse(struct wf_connection *conn) {
    FAIL(&conn->err, FAILED_TRANSACTION,
         "current transaction is aborted, commands ignored until end of transaction block");
}

static struct savepoint *find_savepoint(struct tx *tx, const char *name) {
    struct savepoint *at = tx->savepoints;
    while (at && strcmp(at->name, name) != 0) {
        at = at->next;
    }
    return at;
}

static FALLIBLE tx_savepoint(struct wf_connection *conn, const char *name) {
    struct tx *tx = &conn->tx;
    struct tx_mark mark; /* for its snapshot */
    TRY(tx_enter(conn, &mark));
    tx->depth--;
    edition_release(mark.edition);
    i64 bytes = (i64)sizeof(struct savepoint) + (i64)strlen(name) + 1;
    struct savepoint *made = mem_alloc(&conn->db->mem, bytes);
    if (!made) {
        return memory_refused(&conn->db->mem, &conn->err, bytes);
    }
    made->next = tx->savepoints;
    made->edition = edition_retain(tx->mine);
    made->bytes = bytes;
    made->read_only = tx->read_only;
    memcpy(made->name, name, strlen(name) + 1);
    session_keep(conn, &made->now);
    made->after = tx->after;
    tx->savepoints = made;
    return ERR_OK;
}

/* SAVEPOINT, RELEASE, ROLLBACK TO. */
static FALLIBLE run_savepoint(struct wf_connection *conn, const struct statement *st) {
    struct tx *tx = &conn->tx;
    static const char *const words[] = {
        [TX_SAVEPOINT] = "SAVEPOINT",
        [TX_RELEASE] = "RELEASE SAVEPOINT",
        [TX_ROLLBACK_TO] = "ROLLBACK TO SAVEPOINT",
    };
    if (!tx->open) {
        FAIL_AT(&conn->err, NO_TRANSACTION, st->position,
                "%s can only be used in transaction blocks", words[st->tx.kind]);
    }
    if (st->tx.kind == TX_SAVEPOINT) {
        return tx_savepoint(conn, st->name);
    }
    struct savepoint *found = find_savepoint(tx, st->name);
    if (!found) {
        FAIL_AT(&conn->err, NO_SAVEPOINT, st->position, "savepoint \"%.100s\" does not exist",
                st->name);
    }
    tx->read_only = found->read_only; /* what SET TRANSACTION said since ends here */
    if (st->tx.kind == TX_RELEASE) {
        drop_savepoints(conn, found->next);
        return ERR_OK;
    }
    drop_savepoints(conn, found);
    tx_move(conn, edition_retain(found->edition));
    session_restore(conn, &found->now);
    tx->after = found->after;
    tx->failed = 0;
    return ERR_OK;
}

static FALLIBLE run_begin(struct wf_connection *conn, const struct statement *st) {
    struct tx *tx = &conn->tx;
    if (tx->open) {
        notice(conn, "WARNING", "there is already a transaction in progress");
        return ERR_OK;
    }
    tx->open = 1;
    tx->start_us = conn->statement_us;
    session_keep(conn, &tx->before);
    tx->after = tx->before;
    tx->read_only = st->tx.modes.access == ACCESS_READ;
    tx->deferrable = st->tx.modes.defer == DEFER_YES;
    tx->asked = 0;
    /* The snapshot is taken by the first statement that reads. */
    if (tx->base) {
        atomic_fetch_sub(&conn->db->tx_count, 1);
    }
    keep_forget(conn);
    edition_release(tx->mine);
    edition_release(tx->base);
    tx->mine = tx->base = NULL;
    return ERR_OK;
}

static FALLIBLE run_end(struct wf_connection *conn, const struct statement *st,
                        struct rowset *rows) {
    struct tx *tx = &conn->tx;
    bool commit = st->tx.kind == TX_COMMIT && !tx->failed;
    rows->tag = commit ? "COMMIT" : "ROLLBACK";
    if (!tx->open && st->tx.chain) {
        FAIL_AT(&conn->err, NO_TRANSACTION, st->position,
                "%s AND CHAIN can only be used in transaction blocks",
                st->tx.kind == TX_COMMIT ? "COMMIT" : "ROLLBACK");
    }
    if (!tx->open) {
        notice(conn, "WARNING", "there is no transaction in progress");
        return ERR_OK;
    }
    struct to_compact later = {0};
    wf_status status = commit ? constraints_deferred(conn, 0) : ERR_OK;
    status = commit && !status ? tx_commit(conn, &later) : status;
    if (commit && !status) {
        edition_release(tx->base);
        tx->base = edition_retain(tx->mine);
    }
    bool chain = st->tx.chain, read_only = tx->read_only, deferrable = tx->deferrable;
    session_restore(conn, commit && !status ? &tx->after : &tx->before);
    tx_close(conn);
    session_keep(conn, &tx->before);
    tx->after = tx->before;
    tx->open = chain;
    tx->start_us = conn->statement_us;
    tx->read_only = chain && read_only;
    tx->deferrable = chain && deferrable;
    tx->asked = 0;
    rows->took_effect = 1;
    compact_tables(conn, &later);
    return status;
}

void tx_abandon(struct wf_connection *conn) {
    if (conn->tx.open) {
        session_restore(conn, &conn->tx.before);
        tx_close(conn);
        session_keep(conn, &conn->tx.before);
        conn->tx.after = conn->tx.before;
    }
}

FALLIBLE run_transaction(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    static const char *const tags[] = {
        [TX_BEGIN] = "BEGIN",         [TX_COMMIT] = "COMMIT",   [TX_ROLLBACK] = "ROLLBACK",
        [TX_SAVEPOINT] = "SAVEPOINT", [TX_RELEASE] = "RELEASE", [TX_ROLLBACK_TO] = "ROLLBACK",
    };
    rows->tag = tags[st->tx.kind];
    switch ((enum tx_kind)st->tx.kind) {
    case TX_BEGIN:
        return run_begin(conn, st);
    case TX_COMMIT:
    case TX_ROLLBACK:
        return run_end(conn, st, rows);
    default:
        return run_savepoint(conn, st);
    }
}

void connection_snapshot(struct wf_connection *conn, struct snapshot *snap) {
    if (!snap->edition) {
        snap->edition = edition_retain(conn->tx.mine);
    }
    snap->path = conn->search_path[0] ? conn->search_path : NULL;
    snap->temp_schema = conn->temp_schema;
    snap->when = (struct when){(i32)conn->settings.timezone, conn->tx.start_us};
}
