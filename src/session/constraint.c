/* constraint.c: CHECK and REFERENCES, when a statement has changed a table.
 *
 * Both look only at what changed: the rows a version has that its base had not, and those it has no
 * more. CHECK is a SELECT over the new rows, compiled like any other. A new row's reference is
 * looked up in the key of the table it refers to, or those of many by a join (orphans.c); what
 * becomes of those who refer to rows that are gone is in cascade.c. The tables are those of the
 * transaction as the statement leaves it, so a row may refer to another one of the same statement,
 * or to itself. A deferred reference or key waits until the transaction ends, and is then looked at
 * from where that began to what it made. */
#include "session/constraint_int.h"

struct check_arg {
    const struct table *table;
    const char *condition;
};

static wf_status bind_check(void *arg, struct arena *arena, struct snapshot *snap,
                            struct type *param_types, struct statement *out, struct error *err) {
    const struct check_arg *check = arg;
    UNUSED(param_types);
    return sql_bind_violations(arena, check->table, check->condition, snap, out, err);
}

/* `old`: the rows were there before, and constraints that are NOT VALID do not look at them. */
static FALLIBLE run_checks(struct wf_connection *conn, struct table *table,
                           struct table_version *delta, bool old) {
    for (u32 i = 0; i < table->check_count; i++) {
        const struct table_check *check = &table->checks[i];
        if (old && check->unvalidated) {
            continue;
        }
        struct check_arg arg = {table, check->text};
        struct inner_select select = {.binding.text = sv_from(check->text),
                                      .binding.bind = bind_check,
                                      .binding.arg = &arg,
                                      .table = table,
                                      .version = delta};
        struct rowset *found;
        TRY(inner_run(conn, &select, &found));
        bool violated = found->answer.rows > 0;
        rowset_release(found);
        if (violated) {
            FAIL(&conn->err, CHECK, "new row for relation \"%s\" violates check constraint \"%s\"",
                 table->name, check->name);
        }
    }
    return ERR_OK;
}

bool read_values(struct row_reader *reader, const struct tablet *tablet, i64 pos,
                 struct values *out) {
    const struct table *table = reader->table;
    for (u32 i = 0; i < reader->count; i++) {
        u32 col = reader->cols[i];
        out->at[i] = &out->v[i];
        if (!pins_need(&reader->pins, tablet, col) ||
            !segment_get(&tablet->cols[col], table->dicts[col], table->cols[col].type, pos,
                         &out->v[i])) {
            return false;
        }
    }
    return true;
}

FALLIBLE reference_key(const struct table *parent, const struct table_foreign *fk, u32 *out_key,
                       u32 order[32], struct error *err) {
    for (u32 k = 0; k < parent->key_count; k++) {
        const struct table_key *key = &parent->keys[k];
        for (u32 i = 0; i < key->col_count && key->oid == fk->ref_key; i++) {
            for (u32 c = 0; c < fk->col_count; c++) {
                order[i] = fk->ref_cols[c] == key->cols[i] ? c : order[i];
            }
        }
        if (key->oid == fk->ref_key) {
            *out_key = k;
            return ERR_OK;
        }
    }
    FAIL(err, INTERNAL, "the key that \"%s\" refers to is gone", fk->name);
}

static FALLIBLE missing_parent(const struct table *table, const struct table_foreign *fk,
                               const struct table *parent, const struct shown_key *key,
                               struct error *err) {
    error_set(err, ERR_FOREIGN_KEY, -1,
              "insert or update on table \"%s\" violates foreign key constraint \"%s\"",
              table->name, fk->name);
    error_hint(err, "Key (%s)=(%s) is not present in table \"%s\".", key->cols, key->values,
               parent->name);
    return ERR_FOREIGN_KEY;
}

/* MATCH FULL: where one of the columns is NULL, all are. */
static FALLIBLE check_full(struct row_reader *reader, const struct table_foreign *fk,
                           const struct tablet *tablet, i64 pos, struct error *err) {
    const struct table *table = reader->table;
    for (u32 i = 0; i < fk->col_count; i++) {
        if (pins_need(&reader->pins, tablet, fk->cols[i]) &&
            !segment_is_null(&tablet->cols[fk->cols[i]], pos)) {
            error_set(err, ERR_FOREIGN_KEY, -1,
                      "insert or update on table \"%s\" violates foreign key constraint \"%s\"",
                      table->name, fk->name);
            error_hint(err, "MATCH FULL does not allow mixing of null and nonnull key values.");
            return ERR_FOREIGN_KEY;
        }
    }
    return ERR_OK;
}

/* `order` has the reference's columns as the key has them, which the finder looks for. */
static FALLIBLE check_rows(struct row_reader *reader, const struct table_foreign *fk,
                           const struct table_version *delta, struct key_finder *finder,
                           const u32 *order, struct error *err) {
    const struct table *table = reader->table, *parent = finder->table;
    for (i64 t = 0; t < delta->tablet_count; t++) {
        for (i64 pos = 0; pos < delta->tablet_rows[t]; pos++) {
            struct values values;
            if (!is_live(delta, t, pos)) {
                continue;
            }
            if (!read_values(reader, delta->tablets[t], pos, &values)) {
                TRY(fk->match_full ? check_full(reader, fk, delta->tablets[t], pos, err) : ERR_OK);
                continue;
            }
            const void *in_order[32];
            bool found = true;
            for (u32 i = 0; i < fk->col_count && found; i++) {
                found = reference_convert(parent->cols[fk->ref_cols[i]].type,
                                          table->cols[fk->cols[i]].type, &values.v[i]);
            }
            for (u32 i = 0; i < fk->col_count; i++) {
                in_order[i] = values.at[order[i]];
            }
            i64 row = -1;
            TRY(found ? key_finder_row(finder, in_order, &row, err) : ERR_OK);
            if (row < 0) {
                struct shown_key key;
                key_show(table, fk->cols, fk->col_count, delta->tablets[t], pos, &key);
                return missing_parent(table, fk, parent, &key, err);
            }
        }
    }
    return pins_check(&reader->pins, err);
}

/* Every row of delta refers to a row of the parent. */
static FALLIBLE check_reference(const struct table *table, const struct table_foreign *fk,
                                const struct table_version *delta, struct table *parent,
                                struct table_version *parent_rows, struct error *err) {
    struct row_reader reader = {.table = table, .count = fk->col_count, .cols = fk->cols};
    struct key_finder finder;
    u32 key = 0, order[32];
    TRY(reference_key(parent, fk, &key, order, err));
    pins_init(&reader.pins, table->mem);
    key_finder_open(&finder, parent, parent_rows, key);
    wf_status status = check_rows(&reader, fk, delta, &finder, order, err);
    key_finder_close(&finder);
    pins_fini(&reader.pins);
    return status;
}

/* The same; where there are many, by a join. */
static FALLIBLE check_parents(struct wf_connection *conn, u32 oid, struct table *table,
                              const struct table_foreign *fk, struct table_version *delta,
                              const struct edition_entry *parent) {
    const struct edition_entry *child = edition_find_oid(conn->tx.mine, oid);
    if (!child || child->object->table != table ||
        !orphans_by_join(table, fk, delta, parent->object->table)) {
        return check_reference(table, fk, delta, parent->object->table, parent->version, &conn->err);
    }
    bool any = false;
    struct shown_key key;
    TRY(orphans_find(conn, child->object, fk, delta, parent, &any, &key));
    return any ? missing_parent(table, fk, parent->object->table, &key, &conn->err) : ERR_OK;
}

static FALLIBLE check_references(struct wf_connection *conn, u32 oid, struct table *table,
                                 struct table_version *delta, bool old) {
    for (u32 f = 0; f < table->foreign_count; f++) {
        const struct edition_entry *parent = parent_of(conn->tx.mine, oid, &table->foreigns[f]);
        bool looks = !(old && table->foreigns[f].unvalidated);
        if (parent && looks && !reference_is_deferred(conn, &table->foreigns[f])) {
            TRY(check_parents(conn, oid, table, &table->foreigns[f], delta, parent));
        }
    }
    return ERR_OK;
}

/* What the table has now and `base` had not, against its checks or its references. */
static FALLIBLE look_at_new(struct wf_connection *conn, u32 oid, struct table *table,
                            struct table_version *base, bool references, bool old) {
    struct table_version *now, *delta;
    TRY(change_base(conn, table, &now));
    TRY(version_delta(table, base, now, &delta, &conn->err));
    wf_status status = ERR_OK;
    if (delta->live_rows) {
        status = references ? check_references(conn, oid, table, delta, old)
                            : run_checks(conn, table, delta, old);
    }
    version_release(delta);
    return status;
}

FALLIBLE checks_between(struct wf_connection *conn, struct table *table, struct table_version *base,
                        struct table_version *now) {
    struct table_version *delta;
    TRY(version_delta(table, base, now, &delta, &conn->err));
    wf_status status = run_checks(conn, table, delta, false);
    version_release(delta);
    return status;
}

FALLIBLE constraints_of_new(struct wf_connection *conn, u32 oid, struct table *table,
                            struct table_version *base, bool old) {
    TRY(table->check_count ? look_at_new(conn, oid, table, base, false, old) : ERR_OK);
    return table->foreign_count ? look_at_new(conn, oid, table, base, true, old) : ERR_OK;
}

/* References come last: a cascade may have brought them where they belong. */
FALLIBLE constraints_after(struct wf_connection *conn, struct table *table,
                           struct table_version *base, const struct row_pairs *pairs) {
    const struct edition_entry *entry = edition_find_table(conn->tx.mine, table->id);
    u32 oid = entry ? entry->object->oid : 0;
    TRY(table->check_count ? look_at_new(conn, oid, table, base, false, false) : ERR_OK);
    TRY(table->key_count ? referrers_after(conn, oid, base, pairs) : ERR_OK);
    return table->foreign_count ? look_at_new(conn, oid, table, base, true, false) : ERR_OK;
}

/* At commit, when others have committed since the transaction began: new references to rows that
 * somebody else deleted, and keys that went while somebody else referred to them. */
static FALLIBLE recheck_child(const struct edition_entry *base, const struct edition_entry *mine,
                              const struct edition *all_mine, const struct edition *merged,
                              struct error *err) {
    struct table *table = mine->object->table;
    for (u32 f = 0; f < table->foreign_count; f++) {
        const struct table_foreign *fk = &table->foreigns[f];
        const struct edition_entry *before = parent_of(all_mine, mine->object->oid, fk);
        const struct edition_entry *after = parent_of(merged, mine->object->oid, fk);
        if (before && after && before->version == after->version) {
            continue;
        }
        if (!after) {
            FAIL(err, SERIALIZATION,
                 "could not serialize access: a table that \"%s\" refers to is "
                 "gone",
                 table->name);
        }
        struct table_version *delta;
        TRY(version_delta(table, base->version, mine->version, &delta, err));
        wf_status status =
            check_reference(table, fk, delta, after->object->table, after->version, err);
        version_release(delta);
        TRY(status);
    }
    return ERR_OK;
}

static FALLIBLE recheck_referrer(const struct edition_entry *base, const struct edition_entry *mine,
                                 const struct edition_entry *child, const struct table_foreign *fk,
                                 struct memory *mem, struct table_version *now, struct error *err) {
    struct table_version *removed;
    struct arena arena;
    struct map gone;
    TRY(version_removed(mine->object->table, base->version, mine->version, &removed, err));
    arena_init(&arena, mem);
    wf_status status = gone_keys(&arena, mine->object->table, fk, removed, now, &gone, err);
    if (!status && gone.entries.count > 0) {
        status = find_referring(&arena, mine->object->table, child->object->table, fk,
                                child->version, &gone, err);
        status = status ? status : arena_check(&arena, err);
    }
    arena_fini(&arena);
    version_release(removed);
    return status;
}

/* References of one table to the one whose keys went. */
static FALLIBLE recheck_users(const struct edition_entry *base, const struct edition_entry *mine,
                              const struct edition_entry *child, const struct edition *all_mine,
                              const struct edition *merged, struct memory *mem, struct error *err) {
    const struct edition_entry *now = edition_find_oid(merged, mine->object->oid);
    const struct table *table = child ? child->object->table : NULL;
    const struct edition_entry *before =
        child ? edition_find_oid(all_mine, child->object->oid) : NULL;
    for (u32 f = 0; table && f < table->foreign_count; f++) {
        const struct table_foreign *fk = &table->foreigns[f];
        bool refers = (fk->ref_oid ? fk->ref_oid : child->object->oid) == mine->object->oid;
        if (refers && now && !(before && before->version == child->version)) {
            TRY(recheck_referrer(base, mine, child, fk, mem, now->version, err));
        }
    }
    return ERR_OK;
}

static FALLIBLE recheck_parent(const struct edition_entry *base, const struct edition_entry *mine,
                               const struct edition *all_mine, const struct edition *merged,
                               struct memory *mem, struct error *err) {
    TRY(recheck_users(base, mine, edition_find_oid(merged, mine->object->oid), all_mine, merged,
                      mem, err));
    struct edition_walk at = edition_walk_users(merged, mine->object->oid);
    while (edition_step(&at)) {
        TRY(recheck_users(base, mine, at.entry, all_mine, merged, mem, err));
    }
    return ERR_OK;
}

wf_status constraints_recheck(void *arg, const struct meeting *m, struct error *err) {
    struct wf_connection *conn = arg;
    for (struct edition_diff diff = edition_diff(m->base, m->mine); edition_diff_step(&diff);) {
        const struct edition_entry *entry = diff.after, *before = diff.before;
        if (!entry || !entry->version || !before || before->version == entry->version ||
            before->object->table != entry->object->table) {
            continue;
        }
        TRY(recheck_child(before, entry, m->mine, m->merged, err));
        TRY(recheck_parent(before, entry, m->mine, m->merged, &conn->db->mem, err));
    }
    return logiql_recheck(conn, m);
}

/* Deferred references and keys, of which `only` (0 = all) are looked at: what the transaction added
 * and what it took, from where it began to what it is now. */

static FALLIBLE check_deferred(struct wf_connection *conn, const struct edition_entry *child,
                               const struct table_foreign *fk) {
    const struct tx *tx = &conn->tx;
    struct table *table = child->object->table;
    const struct edition_entry *parent = parent_of(tx->mine, child->object->oid, fk);
    const struct edition_entry *before = edition_find_oid(tx->base, child->object->oid);
    const struct edition_entry *parent_before = parent_of(tx->base, child->object->oid, fk);
    if (!parent) {
        return ERR_OK;
    }
    bool same = before && before->object->table == table;
    bool same_parent = parent_before && parent_before->object->table == parent->object->table;
    if (!same || !same_parent) { /* made or altered since: every row counts */
        return check_reference(table, fk, child->version, parent->object->table, parent->version,
                               &conn->err);
    }
    if (before->version != child->version) {
        struct table_version *delta;
        TRY(version_delta(table, before->version, child->version, &delta, &conn->err));
        wf_status status =
            check_reference(table, fk, delta, parent->object->table, parent->version, &conn->err);
        version_release(delta);
        TRY(status);
    }
    return parent_before->version == parent->version
               ? ERR_OK
               : recheck_referrer(parent_before, parent, child, fk, &conn->db->mem, parent->version,
                                  &conn->err);
}

static FALLIBLE check_waiting_keys(struct wf_connection *conn, const struct edition_entry *entry,
                                   u32 only) {
    struct table *table = entry->object->table;
    const struct edition_entry *before = edition_find_oid(conn->tx.base, entry->object->oid);
    bool same = before && before->object->table == table;
    for (u32 k = 0; k < table->key_count; k++) {
        const struct table_key *key = &table->keys[k];
        if (key->deferrable && (!only || key->oid == only)) {
            TRY(version_check_key(table, k, same ? before->version : NULL, entry->version,
                                  &conn->err));
        }
    }
    return ERR_OK;
}

static FALLIBLE check_waiting_references(struct wf_connection *conn,
                                         const struct edition_entry *child, u32 only) {
    const struct table *table = child->object->table;
    for (u32 f = 0; table && f < table->foreign_count; f++) {
        const struct table_foreign *fk = &table->foreigns[f];
        if (fk->deferrable && (!only || fk->oid == only)) {
            TRY(check_deferred(conn, child, fk));
        }
    }
    return ERR_OK;
}

FALLIBLE constraints_deferred(struct wf_connection *conn, u32 only) {
    const struct tx *tx = &conn->tx;
    if (!tx->base || tx->base == tx->mine) {
        return ERR_OK;
    }
    for (struct edition_diff diff = edition_diff(tx->base, tx->mine); edition_diff_step(&diff);) {
        if (!diff.after || !diff.after->object->table) {
            continue;
        }
        TRY(check_waiting_keys(conn, diff.after, only));
        TRY(check_waiting_references(conn, diff.after, only));
        struct edition_walk at = edition_walk_users(tx->mine, diff.after->object->oid);
        while (edition_step(&at)) { /* those that changed themselves have their own turn */
            const struct edition_entry *before = edition_find_oid(tx->base, at.entry->object->oid);
            if (before && before->version == at.entry->version) {
                TRY(check_waiting_references(conn, at.entry, only));
            }
        }
    }
    return ERR_OK;
}

static bool is_deferred(const struct wf_connection *conn, u32 oid, bool initially) {
    for (const struct set_constraints *d = conn->tx.deferrals; d; d = d->next) {
        if (d->oid == 0 || d->oid == oid) { /* the latest counts */
            return d->deferred;
        }
    }
    return initially;
}

bool reference_is_deferred(const struct wf_connection *conn, const struct table_foreign *fk) {
    return fk->deferrable && is_deferred(conn, fk->oid, fk->deferred);
}

bool key_is_deferred(const struct wf_connection *conn, const struct table_key *key) {
    return key->deferrable && is_deferred(conn, key->oid, key->deferred);
}
