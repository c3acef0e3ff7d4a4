/* constraint.c: CHECK and REFERENCES, when a statement has changed a table.
 *
 * Both look only at what changed: the rows a version has that its base had not, and those it has no
 * more. CHECK is a SELECT over the new rows, compiled like any other. A new row's reference is
 * looked up in the key of the table it refers to; the keys of rows that are gone are put into a
 * set, and the tables that refer to them are searched for rows in that set, for which ON DELETE
 * says what happens. The tables are those of the transaction as the statement leaves it, so a row
 * may refer to another one of the same statement, or to itself. */
#include "api/api_int.h"

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

static FALLIBLE run_checks(struct wf_connection *conn, struct table *table,
                           struct table_version *delta) {
    for (u32 i = 0; i < table->check_count; i++) {
        const struct table_check *check = &table->checks[i];
        struct check_arg arg = {table, check->text};
        struct inner_select select = {.text = sv_from(check->text),
                                      .bind = bind_check,
                                      .arg = &arg,
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

/* The values of some columns of one row. */
struct values {
    union lit v[32];
    const void *at[32];
};

static bool read_values(const struct table *table, const struct tablet *tablet, i64 pos, u32 count,
                        const u32 *cols, struct values *out) {
    for (u32 i = 0; i < count; i++) {
        out->at[i] = &out->v[i];
        if (!segment_get(&tablet->cols[cols[i]], table->dicts[cols[i]], table->cols[cols[i]].type,
                         pos, &out->v[i])) {
            return false;
        }
    }
    return true;
}

static bool is_live(const struct table_version *version, i64 t, i64 pos) {
    const u64 *gone = version_deleted(version, t);
    return !(gone && gone[pos >> 6] >> (pos & 63) & 1);
}

/* The key of `parent` that a reference names, with its columns in the key's order. */
static FALLIBLE find_key(const struct table *parent, const struct table_foreign *fk, u32 *out_key,
                         u32 order[32], struct error *err) {
    for (u32 k = 0; k < parent->key_count; k++) {
        const struct table_key *key = &parent->keys[k];
        u32 found = 0;
        for (u32 i = 0; i < key->col_count && key->col_count == fk->col_count; i++) {
            for (u32 c = 0; c < fk->col_count; c++) {
                if (fk->ref_cols[c] == key->cols[i]) {
                    order[i] = c;
                    found++;
                }
            }
        }
        if (found == fk->col_count) {
            *out_key = k;
            return ERR_OK;
        }
    }
    FAIL(err, INTERNAL, "the key that \"%s\" refers to is gone", fk->name);
}

static FALLIBLE missing_parent(const struct table *table, const struct table_foreign *fk,
                               const struct table *parent, struct error *err) {
    error_set(err, ERR_FOREIGN_KEY, -1,
              "insert or update on table \"%s\" violates foreign key constraint \"%s\"",
              table->name, fk->name);
    error_hint(err, "The key is not present in table \"%s\".", parent->name);
    return ERR_FOREIGN_KEY;
}

/* Every row of delta refers to a row of the parent. */
static FALLIBLE check_reference(const struct table *table, const struct table_foreign *fk,
                                const struct table_version *delta, struct table *parent,
                                struct table_version *parent_rows, struct error *err) {
    u32 key = 0, order[32];
    TRY(find_key(parent, fk, &key, order, err));
    for (i64 t = 0; t < delta->tablet_count; t++) {
        for (i64 pos = 0; pos < delta->tablet_rows[t]; pos++) {
            struct values values;
            if (!is_live(delta, t, pos) ||
                !read_values(table, delta->tablets[t], pos, fk->col_count, fk->cols, &values)) {
                continue;
            }
            const void *in_order[32];
            for (u32 i = 0; i < fk->col_count; i++) {
                in_order[i] = values.at[order[i]];
            }
            bool found = false;
            TRY(version_key_exists(parent, parent_rows, key, in_order, &found, err));
            if (!found) {
                return missing_parent(table, fk, parent, err);
            }
        }
    }
    return ERR_OK;
}

static const struct edition_entry *parent_of(const struct edition *edition, u32 own_oid,
                                             const struct table_foreign *fk) {
    return edition_find_oid(edition, fk->ref_oid ? fk->ref_oid : own_oid);
}

/* Keys as bytes, for the set of those that are gone. */
static struct sv key_bytes(struct text *out, const struct table *table, u32 count, const u32 *cols,
                           const struct values *values) {
    out->len = 0;
    for (u32 i = 0; i < count; i++) {
        enum kind kind = type_kind(table->cols[cols[i]].type);
        if (kind == KIND_STR) {
            struct sv s = sv_of(values->v[i].str);
            text_append(out, (struct sv){(const char *)&s.len, (i64)sizeof s.len});
            text_append(out, s);
        } else {
            text_append(out, (struct sv){(const char *)&values->v[i], kind_bytes[kind]});
        }
    }
    return (struct sv){out->ptr, out->len};
}

/* The keys that `fk` refers to of rows that `removed` shows and the parent has no more. */
static FALLIBLE gone_keys(struct arena *arena, struct table *parent, const struct table_foreign *fk,
                          const struct table_version *removed, struct table_version *now,
                          struct map *out, struct error *err) {
    u32 key = 0, order[32];
    struct text bytes;
    text_init(&bytes, arena);
    map_init(out, arena);
    TRY(find_key(parent, fk, &key, order, err));
    for (i64 t = 0; t < removed->tablet_count; t++) {
        for (i64 pos = 0; pos < removed->tablet_rows[t]; pos++) {
            struct values values;
            if (!is_live(removed, t, pos) || !read_values(parent, removed->tablets[t], pos,
                                                          fk->col_count, fk->ref_cols, &values)) {
                continue;
            }
            const void *in_order[32];
            for (u32 i = 0; i < fk->col_count; i++) {
                in_order[i] = values.at[order[i]];
            }
            bool still = false;
            TRY(version_key_exists(parent, now, key, in_order, &still, err));
            if (!still) {
                struct sv k = key_bytes(&bytes, parent, fk->col_count, fk->ref_cols, &values);
                map_set(out, arena_sv(arena, k), out);
            }
        }
    }
    return arena_check(arena, err);
}

/* Numbers of the live rows whose reference is in the set. */
struct row_list {
    VEC(i64) rows;
};

static void find_referring(struct arena *arena, const struct table *child,
                           const struct table_foreign *fk, const struct table_version *rows,
                           const struct map *gone, struct row_list *out) {
    struct text bytes;
    text_init(&bytes, arena);
    for (i64 t = 0; t < rows->tablet_count; t++) {
        for (i64 pos = 0; pos < rows->tablet_rows[t]; pos++) {
            struct values values;
            if (is_live(rows, t, pos) &&
                read_values(child, rows->tablets[t], pos, fk->col_count, fk->cols, &values) &&
                map_find(gone, key_bytes(&bytes, child, fk->col_count, fk->cols, &values))) {
                VEC_PUSH(arena, &out->rows, rows->row_starts[t] + pos);
            }
        }
    }
}

static FALLIBLE still_referred(const struct table *parent, const struct table *child,
                               const struct table_foreign *fk, struct error *err) {
    error_set(err, ERR_FOREIGN_KEY, -1,
              "update or delete on table \"%s\" violates foreign key constraint \"%s\" on table "
              "\"%s\"",
              parent->name, fk->name, child->name);
    error_hint(err, "The key is still referenced from table \"%s\".", child->name);
    return ERR_FOREIGN_KEY;
}

/* The listed rows again, with NULL for the reference. */
static FALLIBLE append_nulled(struct wf_connection *conn, struct arena *arena, struct table *child,
                              const struct table_foreign *fk, const struct table_version *base,
                              const struct row_list *list, struct table_version *less,
                              struct table_version **out) {
    i64 count = list->rows.count;
    struct input_col *cols = NEW_ARRAY(arena, struct input_col, child->col_count);
    for (u32 c = 0; c < child->col_count; c++) {
        i64 width = kind_bytes[type_kind(child->cols[c].type)], t = 0;
        u8 *data = arena_alloc(arena, MAX_OF(count, 1) * width);
        b8 *nulls = NEW_ARRAY(arena, b8, MAX_OF(count, 1));
        bool cleared = false;
        for (u32 i = 0; i < fk->col_count; i++) {
            cleared = cleared || fk->cols[i] == c;
        }
        for (i64 i = 0; i < count; i++) {
            while (list->rows.items[i] >= base->row_starts[t] + base->tablet_rows[t]) {
                t++;
            }
            i64 pos = list->rows.items[i] - base->row_starts[t];
            nulls[i] = cleared || !segment_get(&base->tablets[t]->cols[c], child->dicts[c],
                                               child->cols[c].type, pos, data + i * width);
        }
        cols[c] = (struct input_col){data, nulls};
    }
    TRY(arena_check(arena, &conn->err));
    return version_append_unchecked(child, less, count, cols, out, &conn->err);
}

/* ON DELETE CASCADE, SET NULL: the rows of the list go, or lose their reference. */
static FALLIBLE act(struct wf_connection *conn, struct arena *arena, struct table *child,
                    const struct table_foreign *fk, struct table_version *base,
                    const struct row_list *list) {
    struct table_version *less, *mine;
    i64 deleted;
    TRY(version_delete(child, base, list->rows.count, list->rows.items, &less, NULL, &deleted,
                       &conn->err));
    wf_status status = ERR_OK;
    mine = less;
    if (fk->on_delete == FK_SET_NULL) {
        status = append_nulled(conn, arena, child, fk, base, list, less, &mine);
    }
    if (!status) {
        status = change_install(conn, child, base, mine, fk->on_delete == FK_SET_NULL);
        if (mine != less) {
            version_release(mine);
        }
    }
    version_release(less);
    return status;
}

static FALLIBLE referrer_after(struct wf_connection *conn, struct arena *arena,
                               struct table *parent, const struct table_version *removed,
                               struct table_version *now, struct table *child,
                               const struct table_foreign *fk, bool is_update) {
    struct map gone;
    struct row_list list = {0};
    struct table_version *base;
    TRY(gone_keys(arena, parent, fk, removed, now, &gone, &conn->err));
    if (gone.entries.count == 0) {
        return ERR_OK;
    }
    TRY(change_base(conn, child, &base));
    find_referring(arena, child, fk, base, &gone, &list);
    TRY(arena_check(arena, &conn->err));
    if (list.rows.count == 0) {
        return ERR_OK;
    }
    if (is_update || (fk->on_delete != FK_CASCADE && fk->on_delete != FK_SET_NULL)) {
        return still_referred(parent, child, fk, &conn->err);
    }
    base = version_retain(base);
    wf_status status = act(conn, arena, child, fk, base, &list);
    version_release(base);
    return status;
}

/* Tables that refer to this one. Their list is made first: acting on them changes the edition. */
static FALLIBLE referrers_after(struct wf_connection *conn, u32 oid, struct table *table,
                                struct table_version *base, struct table_version *mine,
                                bool is_update) {
    struct edition *edition = edition_retain(conn->tx.mine);
    struct table_version *removed = NULL;
    struct arena arena;
    arena_init(&arena, &conn->db->mem);
    wf_status status = ERR_OK;
    for (i64 i = 0; i < edition->count && !status; i++) {
        struct table *child = edition->entries[i].object->table;
        u32 child_oid = edition->entries[i].object->oid;
        for (u32 f = 0; child && f < child->foreign_count && !status; f++) {
            const struct table_foreign *fk = &child->foreigns[f];
            if ((fk->ref_oid ? fk->ref_oid : child_oid) != oid) {
                continue;
            }
            if (!removed) {
                status = version_removed(table, base, mine, &removed, &conn->err);
            }
            if (!status && removed->live_rows > 0) {
                status = referrer_after(conn, &arena, table, removed, mine, child, fk, is_update);
            }
        }
    }
    version_release(removed);
    arena_fini(&arena);
    edition_release(edition);
    return status;
}

static FALLIBLE new_rows_after(struct wf_connection *conn, u32 oid, struct table *table,
                               struct table_version *delta) {
    TRY(run_checks(conn, table, delta));
    for (u32 f = 0; f < table->foreign_count; f++) {
        const struct edition_entry *parent = parent_of(conn->tx.mine, oid, &table->foreigns[f]);
        if (parent) {
            TRY(check_reference(table, &table->foreigns[f], delta, parent->object->table,
                                parent->version, &conn->err));
        }
    }
    return ERR_OK;
}

FALLIBLE constraints_after(struct wf_connection *conn, struct table *table,
                           struct table_version *base, struct table_version *mine, bool is_update) {
    const struct edition_entry *entry = edition_find_table(conn->tx.mine, table->id);
    u32 oid = entry ? entry->object->oid : 0;
    if (table->check_count || table->foreign_count) {
        struct table_version *delta;
        TRY(version_delta(table, base, mine, &delta, &conn->err));
        wf_status status = delta->live_rows ? new_rows_after(conn, oid, table, delta) : ERR_OK;
        version_release(delta);
        TRY(status);
    }
    return table->key_count ? referrers_after(conn, oid, table, base, mine, is_update) : ERR_OK;
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
    struct row_list list = {0};
    TRY(version_removed(mine->object->table, base->version, mine->version, &removed, err));
    arena_init(&arena, mem);
    wf_status status = gone_keys(&arena, mine->object->table, fk, removed, now, &gone, err);
    if (!status && gone.entries.count > 0) {
        find_referring(&arena, child->object->table, fk, child->version, &gone, &list);
        status = arena_check(&arena, err);
        if (!status && list.rows.count > 0) {
            status = still_referred(mine->object->table, child->object->table, fk, err);
        }
    }
    arena_fini(&arena);
    version_release(removed);
    return status;
}

static FALLIBLE recheck_parent(const struct edition_entry *base, const struct edition_entry *mine,
                               const struct edition *all_mine, const struct edition *merged,
                               struct memory *mem, struct error *err) {
    for (i64 i = 0; i < merged->count; i++) {
        const struct edition_entry *child = &merged->entries[i];
        const struct table *table = child->object->table;
        const struct edition_entry *before = edition_find_oid(all_mine, child->object->oid);
        for (u32 f = 0; table && f < table->foreign_count; f++) {
            const struct table_foreign *fk = &table->foreigns[f];
            bool refers = (fk->ref_oid ? fk->ref_oid : child->object->oid) == mine->object->oid;
            const struct edition_entry *now = edition_find_oid(merged, mine->object->oid);
            if (refers && now && !(before && before->version == child->version)) {
                TRY(recheck_referrer(base, mine, child, fk, mem, now->version, err));
            }
        }
    }
    return ERR_OK;
}

wf_status constraints_recheck(void *arg, const struct edition *base, const struct edition *mine,
                              const struct edition *merged, struct error *err) {
    struct wf_connection *conn = arg;
    for (i64 i = 0; i < mine->count; i++) {
        const struct edition_entry *entry = &mine->entries[i];
        const struct edition_entry *before = edition_find_oid(base, entry->object->oid);
        if (!entry->version || !before || before->version == entry->version ||
            before->object->table != entry->object->table) {
            continue;
        }
        TRY(recheck_child(before, entry, mine, merged, err));
        TRY(recheck_parent(before, entry, mine, merged, &conn->db->mem, err));
    }
    return ERR_OK;
}
