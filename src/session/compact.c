/* compact.c: after a commit, tables of whose tablets little is left; VACUUM.
 *
 * Runs on the thread of the connection that deleted the rows, when its transaction has ended, as a
 * change of its own. The tables are written anew outside of every lock. The outcome takes the place
 * of what it was made from unless somebody was faster. A transaction that is in progress meanwhile
 * may delete rows that move: the version remembers where they went, a number of compactions long.
 * Nothing here is an error: what cannot be done now is looked at again after the next commit. */
#include "session/session_int.h"

void compact_note(const struct edition *base, const struct edition *mine, struct to_compact *out) {
    struct edition_diff diff = edition_diff(base, mine);
    while (out->count < COUNT_OF(out->oids) && edition_diff_step(&diff)) {
        const struct edition_entry *entry = diff.after, *before = diff.before;
        bool changed = entry && entry->version && !(before && before->version == entry->version);
        if (changed && version_wants_compaction(entry->object->table, entry->version)) {
            out->oids[out->count++] = entry->object->oid;
        }
    }
}

static FALLIBLE compact_table(struct wf_connection *conn, u32 oid, struct error *err) {
    struct edition *now;
    struct table_version *made = NULL;
    TRY(catalog_edition(conn->db->catalog, &now, err));
    const struct edition_entry *entry = edition_find_oid(now, oid);
    wf_status status = ERR_OK;
    if (entry && entry->version && version_wants_compaction(entry->object->table, entry->version)) {
        bool alone = atomic_load(&conn->db->tx_count) == 0;
        if (alone || version_may_move(entry->version)) {
            status = version_compact(entry->object->table, entry->version, false, !alone, &made, err);
        }
        if (!status && made) {
            status = catalog_replace(conn->db->catalog, oid, entry->version, made, err);
        }
    }
    version_release(made);
    edition_release(now);
    return status;
}

void compact_tables(struct wf_connection *conn, const struct to_compact *what) {
    for (i32 i = 0; i < what->count; i++) {
        struct error ignored;
        error_reset(&ignored);
        if (compact_table(conn, what->oids[i], &ignored)) {
            return; /* of memory, most likely */
        }
    }
}

enum { VACUUM_TRIES = 8 }; /* a table that others keep changing stays as it is */

static FALLIBLE vacuum_table(struct wf_connection *conn, u32 oid) {
    struct error *err = &conn->err;
    bool done = false;
    for (i32 i = 0; i < VACUUM_TRIES && !done; i++) {
        struct edition *now;
        struct table_version *made = NULL;
        TRY(catalog_edition(conn->db->catalog, &now, err));
        const struct edition_entry *entry = edition_find_oid(now, oid);
        struct table *table = entry ? entry->object->table : NULL;
        done = !table || !entry->version || !version_wants_vacuum(table, entry->version) ||
               !version_may_move(entry->version);
        wf_status status = ERR_OK;
        if (!done) {
            status = version_compact(table, entry->version, true, true, &made, err);
            status = status ? status
                            : catalog_replace(conn->db->catalog, oid, entry->version, made, err);
        }
        version_release(made);
        edition_release(now);
        TRY(status);
        TRY(stop_check(err));
    }
    return ERR_OK;
}

FALLIBLE vacuum_tables(struct wf_connection *conn, const u32 *oids, i32 count) {
    for (i32 i = 0; i < count; i++) {
        TRY(vacuum_table(conn, oids[i]));
    }
    if (count) {
        return ERR_OK;
    }
    struct edition *now;
    TRY(catalog_edition(conn->db->catalog, &now, &conn->err));
    wf_status status = ERR_OK;
    for (struct edition_walk at = edition_walk(now); edition_step(&at) && !status;) {
        const struct object *object = at.entry->object;
        if (object->table && !object->temp) {
            status = vacuum_table(conn, object->oid);
        }
    }
    edition_release(now);
    return status;
}
