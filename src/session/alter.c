/* alter.c: ALTER TABLE, RENAME, SET SCHEMA.
 *
 * The binder hands over the new definition and where each column comes from. Most of the time the
 * rows are reshaped: new tablets over the old column data (store/reshape.c). When values have to be
 * computed, for another type or a default that is not constant, the table is read through a plan
 * and filled anew. Either way the object keeps its OID and gets another table, on which all
 * constraints are then looked at as if every row were new. */
#include "session/session_int.h"
#include "session/constraint_int.h"

/* Puts a table in the place of the object's; takes nothing. */
static FALLIBLE replace_table(struct wf_connection *conn, u32 oid, struct table *table,
                              struct table_version *version) {
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, oid);
    struct object like = object_view(entry->object);
    like.table = table;
    struct object *object = object_new(&conn->db->mem, &like);
    if (!object) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *object);
    }
    struct edit edit = {oid, object, version};
    wf_status status = tx_apply(conn, &edit, 1);
    object_release(object);
    return status;
}

static struct table *open_like(struct wf_connection *conn, const struct table *old,
                               const struct table_def *def, const i32 *from) {
    i64 bytes = (i64)def->col_count * (i64)sizeof(struct dict *);
    struct dict **dicts = mem_alloc(&conn->db->mem, bytes);
    if (!dicts) {
        return NULL;
    }
    for (u32 i = 0; i < def->col_count; i++) {
        i32 at = from ? from[i] : (i32)i;
        dicts[i] = at >= 0 && type_kind(old->cols[at].type) == type_kind(def->cols[i].type)
                       ? old->dicts[at]
                       : NULL;
    }
    struct table *table = table_open_def(&conn->db->mem, catalog_new_id(conn->db->catalog), def,
                                         dicts, old->tablet_shift, old->plain);
    mem_free(&conn->db->mem, dicts, bytes);
    if (table) {
        table_set_file(table, table_file(old));
    }
    return table;
}

/* Every live row is new to the constraints. */
static FALLIBLE check_all(struct wf_connection *conn, u32 oid, struct table *table,
                          struct table_version *version) {
    for (u32 c = 0; c < table->col_count; c++) {
        if (!table->cols[c].not_null || version->stats[c].null_count == 0) {
            continue;
        }
        for (i64 t = 0; t < version->tablet_count; t++) {
            const u64 *gone = version_deleted(version, t);
            const struct segment *seg = &version->tablets[t]->cols[c];
            bool found = false;
            TRY(column_hold(version->tablets[t], c, HOLD_SHORT, &conn->err));
            for (i64 i = 0; seg->valid && i < version->tablet_rows[t] && !found; i++) {
                bool live = !(gone && gone[i >> 6] >> (i & 63) & 1);
                found = live && segment_is_null(seg, i);
            }
            column_drop(version->tablets[t], c);
            if (found) {
                FAIL(&conn->err, NOT_NULL,
                     "column \"%.100s\" of relation \"%.100s\" contains null values",
                     table->cols[c].name, table->name);
            }
        }
    }
    struct table_version *empty = table_snapshot(table);
    wf_status status = constraints_of_new(conn, oid, table, empty, true);
    version_release(empty);
    return status;
}

FALLIBLE ddl_redefine(struct wf_connection *conn, u32 oid, const struct table_def *def,
                      const i32 *from, const void *const *values) {
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, oid);
    struct table *old = entry->object->table;
    struct table *table = open_like(conn, old, def, from);
    if (!table) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *table);
    }
    i64 bytes = (i64)def->col_count * (i64)sizeof(i32);
    i32 *same = mem_alloc(&conn->db->mem, bytes);
    wf_status status = same ? ERR_OK : memory_refused(&conn->db->mem, &conn->err, bytes);
    for (u32 i = 0; same && i < def->col_count; i++) {
        same[i] = from ? from[i] : (i32)i;
    }
    struct table_version *version = NULL;
    if (!status) {
        status = version_reshape(table, old, entry->version, same, values, &version, &conn->err);
    }
    if (!status) {
        status = replace_table(conn, oid, table, version);
    }
    if (!status) {
        status = check_all(conn, oid, table, version);
    }
    mem_free(&conn->db->mem, same, bytes);
    version_release(version);
    table_close(table);
    return status;
}

/* The table filled from the statement's plan, whose execution is open. */
/* With values of sequences, which need all rows at once. */
static FALLIBLE refill_filled(struct wf_connection *conn, struct rowset *rows, struct table *table,
                              const struct table_def *def, struct table_version *empty,
                              struct table_version **out) {
    const struct statement *st = &rows->compiled->stmt;
    struct gathered all = {0};
    wf_status status = gather(rows, table, 0, NULL, rows->answer.rows, &all, &conn->err);
    for (i32 i = 0; i < st->alter.fill_count && !status; i++) {
        struct fill fill = {st->alter.fills[i].col, def->cols[st->alter.fills[i].col].sequence};
        status = fill_from_sequence(conn, rows, table, &fill, &all);
    }
    if (!status) {
        status = append_rows(conn, table, empty, rows->answer.rows, all.cols, out);
    }
    gather_free(table, &all);
    return status;
}

static FALLIBLE refill_flowing(struct wf_connection *conn, struct rowset *rows, struct table *table,
                               struct table_version *empty, struct table_version **out) {
    i64 count;
    TRY(append_answer(conn, rows, table, empty, &count, out));
    *out = *out ? *out : version_retain(empty);
    return ERR_OK;
}

static FALLIBLE refill(struct wf_connection *conn, struct rowset *rows,
                       const struct table_def *def) {
    const struct statement *st = &rows->compiled->stmt;
    bool fills = st->alter.fill_count > 0;
    TRY(fills ? rowset_run_exec(conn, rows) : rowset_start_exec(conn, rows));
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, st->alter.oid);
    i32 *from = NEW_ARRAY(&rows->arena, i32, def->col_count + 1);
    for (u32 i = 0; i < def->col_count; i++) {
        from[i] = st->alter.from[i].old;
    }
    struct table *table = open_like(conn, entry->object->table, def, from);
    if (!table) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *table);
    }
    struct table_version *empty = table_snapshot(table), *version = NULL;
    wf_status status = fills ? refill_filled(conn, rows, table, def, empty, &version)
                             : refill_flowing(conn, rows, table, empty, &version);
    if (!status) {
        status = version_check_keys(table, empty, version, NULL, &conn->err);
    }
    if (!status) {
        status = replace_table(conn, st->alter.oid, table, version);
    }
    if (!status) {
        status = check_all(conn, st->alter.oid, table, version);
    }
    version_release(version);
    version_release(empty);
    table_close(table);
    return status;
}

/* Where a column of the old table is now; -1 = nowhere. */
static i32 column_now(const struct statement *st, u32 old) {
    for (u32 k = 0; k < st->alter.table.def.col_count; k++) {
        if (st->alter.from[k].old == (i32)old) {
            return (i32)k;
        }
    }
    return -1;
}

/* A reference to the altered table, by its columns' new numbers; false when it has no key there any
 * more, which CASCADE allows. */
static bool renumber_reference(struct wf_connection *conn, struct arena *arena,
                               const struct statement *st, struct table_foreign *fk,
                               bool *changed) {
    const struct table *parent = edition_find_oid(conn->tx.mine, st->alter.oid)->object->table;
    u32 *cols = NEW_ARRAY(arena, u32, fk->col_count + 1), key = 0, order[32];
    struct error none = {0};
    for (u32 c = 0; c < fk->col_count; c++) {
        i32 now = column_now(st, fk->ref_cols[c]);
        if (now < 0) {
            return false;
        }
        cols[c] = (u32)now;
        *changed = *changed || cols[c] != fk->ref_cols[c];
    }
    fk->ref_cols = cols;
    return !st->alter.cascade || !reference_key(parent, fk, &key, order, &none);
}

/* A reference from another table names the columns of this one by number. */
static FALLIBLE renumber_referrer(struct wf_connection *conn, struct arena *arena,
                                  const struct statement *st, const struct object *object) {
    bool changed = false;
    if (!object->table || object->oid == st->alter.oid) {
        return ERR_OK;
    }
    struct table_def def = table_def_view(object->table), copy = ddl_copy_def(arena, &def);
    u32 kept = 0;
    for (u32 f = 0; f < copy.foreign_count; f++) {
        struct table_foreign fk = copy.foreigns[f];
        if (fk.ref_oid != st->alter.oid || renumber_reference(conn, arena, st, &fk, &changed)) {
            copy.foreigns[kept++] = fk;
        }
    }
    changed = changed || kept < copy.foreign_count;
    copy.foreign_count = kept;
    return changed ? ddl_redefine(conn, object->oid, &copy, NULL, NULL) : ERR_OK;
}

/* A sequence of a column of the table goes with it, or follows it. */
static FALLIBLE move_sequence(struct wf_connection *conn, struct arena *arena,
                              const struct statement *st, const struct object *object) {
    if (!object->sequence || object->owner != st->alter.oid || !object->owner_col ||
        edition_find_oid(conn->tx.mine, object->oid) == NULL) {
        return ERR_OK;
    }
    i32 now = column_now(st, object->owner_col - 1);
    bool made = false; /* by this statement, for a column that has its new number already */
    for (u32 c = 0; c < st->alter.table.def.col_count; c++) {
        made = made || (st->alter.from[c].old < 0 && (u32)c + 1 == object->owner_col);
    }
    if (now < 0 && !made) {
        return ddl_drop(conn, arena, object->oid);
    }
    if (made || (u32)now + 1 == object->owner_col) {
        return ERR_OK;
    }
    struct object like = object_view(object);
    like.owner_col = (u32)now + 1;
    struct object *moved = object_new(&conn->db->mem, &like);
    struct edit edit = {object->oid, moved, NULL};
    wf_status status = moved ? tx_apply(conn, &edit, 1)
                             : memory_refused(&conn->db->mem, &conn->err, (i64)sizeof like);
    object_release(moved);
    return status;
}

/* Does so to each object that rests on the table, as the edition has them before the first. */
static FALLIBLE change_users(struct wf_connection *conn, struct arena *arena,
                             const struct statement *st,
                             wf_status (*change)(struct wf_connection *, struct arena *,
                                                 const struct statement *, const struct object *)) {
    struct edition *edition = edition_retain(conn->tx.mine);
    wf_status status = ERR_OK;
    struct edition_walk at = edition_walk_users(edition, st->alter.oid);
    while (!status && edition_step(&at)) {
        status = change(conn, arena, st, at.entry->object);
    }
    edition_release(edition);
    return status;
}

static FALLIBLE rename_in_index(struct wf_connection *conn, const struct renamed_index *now) {
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, now->oid);
    if (!entry) {
        return ERR_OK;
    }
    struct object like = object_view(entry->object);
    like.text = now->text;
    like.col_names = now->names;
    return ddl_put(conn, object_new(&conn->db->mem, &like), NULL);
}

/* What ALTER does beside the table: views that CASCADE names, sequences, references. */
static FALLIBLE alter_others(struct wf_connection *conn, struct arena *arena,
                             const struct statement *st, bool moved) {
    if (st->alter.identity) {
        TRY(ddl_change_sequence(conn, st->alter.identity_oid, st->alter.identity));
    }
    if (st->alter.dropped_seq) {
        TRY(ddl_drop(conn, arena, st->alter.dropped_seq));
    }
    for (i32 i = 0; i < st->alter.drop_count; i++) {
        if (edition_find_oid(conn->tx.mine, st->alter.drops[i])) { /* two columns may name it */
            TRY(ddl_drop(conn, arena, st->alter.drops[i]));
        }
    }
    for (i32 i = 0; i < st->alter.index_count; i++) {
        TRY(rename_in_index(conn, &st->alter.indexes[i]));
    }
    if (moved) {
        TRY(change_users(conn, arena, st, move_sequence));
    }
    return moved || st->alter.cascade ? change_users(conn, arena, st, renumber_referrer) : ERR_OK;
}

FALLIBLE run_alter(struct wf_connection *conn, const struct run_request *request,
                   struct rowset *rows) {
    rows->tag = "ALTER TABLE";
    if (!rows->compiled->stmt.alter.oid) {
        notice(conn, "NOTICE", "relation does not exist, skipping");
        return ERR_OK;
    }
    if (rows->compiled->stmt.plan) { /* before all else: it may be compiled again for that */
        TRY(rowset_open_exec(conn, request, rows));
    }
    const struct statement *st = &rows->compiled->stmt;
    struct table_def def = ddl_copy_def(&rows->arena, &st->alter.table.def);
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, st->alter.oid);
    i32 *from = NEW_ARRAY(&rows->arena, i32, def.col_count + 1);
    const void **values = NEW_ARRAY(&rows->arena, const void *, def.col_count + 1);
    bool moved = def.col_count != entry->object->table->col_count;
    TRY(arena_check(&rows->arena, &conn->err));
    ddl_give_oids(conn->db->catalog, &def);
    for (u32 i = 0; i < def.col_count; i++) {
        const struct alter_col *col = &st->alter.from[i];
        from[i] = col->old;
        moved = moved || col->old != (i32)i;
        if (col->old < 0 && col->value && !col->value->is_null) {
            values[i] = &col->value->value;
        }
    }
    TRY(ddl_put_sequences(conn, rows, &st->alter.table, st->alter.temp, &def, entry->object->schema,
                          st->alter.oid));
    TRY(ddl_check_keys(conn, &def, entry->object->schema, st->alter.oid, st->position));
    TRY(st->plan ? refill(conn, rows, &def)
                 : ddl_redefine(conn, st->alter.oid, &def, from, values));
    rows->col_count = 0;
    rows->answer = (struct answer){0, 0, NULL};
    return alter_others(conn, &rows->arena, st, moved);
}

/* The key of a unique index has its name. */
static FALLIBLE rename_index(struct wf_connection *conn, struct rowset *rows,
                             const struct object *index) {
    const struct edition_entry *owner = edition_find_oid(conn->tx.mine, index->owner);
    struct table *table = owner ? owner->object->table : NULL;
    for (u32 k = 0; table && k < table->key_count; k++) {
        if (table->keys[k].index && table->keys[k].oid == index->oid) {
            struct table_def old = table_def_view(table), def = ddl_copy_def(&rows->arena, &old);
            def.keys[k].name = index->name;
            TRY(arena_check(&rows->arena, &conn->err));
            return ddl_redefine(conn, index->owner, &def, NULL, NULL);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_renamed(struct wf_connection *conn, const struct statement *st,
                              const struct object *like) {
    if (!edition_name_holder(conn->tx.mine, like->schema, sv_from(like->name))) {
        return ERR_OK;
    }
    bool schema = like->kind == OBJECT_SCHEMA, moves = st->rename.schema != NULL;
    return error_set(&conn->err, schema ? ERR_DUPLICATE_SCHEMA : ERR_DUPLICATE_TABLE, st->position,
                     "%s \"%.100s\" already exists%s%.100s%s", schema ? "schema" : "relation",
                     like->name, moves ? " in schema \"" : "", moves ? st->rename.schema : "",
                     moves ? "\"" : "");
}

/* What belongs to a table goes to its new schema with it: indexes, sequences, the names of keys. */
static FALLIBLE move_owned(struct wf_connection *conn, const struct statement *st,
                           const struct object *table) {
    struct edition *edition = edition_retain(conn->tx.mine);
    struct edition_walk at = edition_walk_users(edition, table->oid);
    wf_status status = ERR_OK;
    for (u32 i = 0; table->table && i < table->table->key_count && !status; i++) {
        struct object key = {.schema = table->schema, .kind = OBJECT_INDEX};
        key.name = table->table->keys[i].name;
        status = table->table->keys[i].index ? ERR_OK : check_renamed(conn, st, &key);
    }
    while (!status && edition_step(&at)) {
        if (at.entry->object->owner != table->oid) {
            continue;
        }
        struct object like = object_view(at.entry->object);
        like.schema = table->schema;
        status = check_renamed(conn, st, &like);
        struct object *moved = status ? NULL : object_new(&conn->db->mem, &like);
        struct edit edit = {like.oid, moved, NULL};
        if (!status) {
            status = moved ? tx_apply(conn, &edit, 1)
                           : memory_refused(&conn->db->mem, &conn->err, (i64)sizeof like);
        }
        object_release(moved);
    }
    edition_release(edition);
    return status;
}

FALLIBLE run_rename(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, st->rename.oid);
    rows->tag = "ALTER TABLE";
    if (!entry) {
        FAIL(&conn->err, UNDEFINED_TABLE, "the object is gone");
    }
    struct object like = object_view(entry->object);
    if (like.kind == OBJECT_VIEW && like.logical) {
        FAIL_AT(&conn->err, NOT_SUPPORTED, st->position,
                "not supported yet: %s \"%.100s\", which rules of LogiQL name",
                st->rename.schema ? "moving" : "renaming", like.name);
    }
    like.name = st->name;
    if (like.kind == OBJECT_SCHEMA && strncmp(like.name, "pg_", 3) == 0) {
        FAIL_AT(&conn->err, RESERVED_NAME, st->position, "unacceptable schema name \"%.100s\"",
                like.name);
    }
    if (st->rename.schema) {
        TRY(snapshot_target(&rows->snap, sv_from(st->rename.schema), st->position, &like.schema,
                            &conn->err));
        if (like.schema == entry->object->schema) { /* where it is already */
            return ERR_OK;
        }
    }
    if (st->rename.view_cols) { /* a view's column */
        like.col_names = st->rename.view_cols;
    } else {
        TRY(check_renamed(conn, st, &like));
    }
    for (struct edition_walk at = edition_walk_users(conn->tx.mine, st->rename.oid);
         edition_step(&at);) {
        if (at.entry->object->kind == OBJECT_VIEW) {
            FAIL_AT(&conn->err, NOT_SUPPORTED, st->position,
                    "not supported yet: renaming what view \"%.100s\" reads",
                    at.entry->object->name);
        }
    }
    TRY(st->rename.schema ? move_owned(conn, st, &like) : ERR_OK);
    entry = edition_find_oid(conn->tx.mine, st->rename.oid);
    struct object *object = object_new(&conn->db->mem, &like);
    if (!object) {
        return memory_refused(&conn->db->mem, &conn->err, (i64)sizeof *object);
    }
    struct edit edit = {st->rename.oid, object, entry->version};
    wf_status status = tx_apply(conn, &edit, 1);
    object_release(object);
    TRY(status);
    if (like.kind == OBJECT_INDEX) {
        return rename_index(conn, rows, &like);
    }
    if (like.table && strcmp(like.table->name, like.name) != 0) { /* errors name it */
        struct table_def def = table_def_view(like.table);
        def.name = st->name;
        return ddl_redefine(conn, st->rename.oid, &def, NULL, NULL);
    }
    return ERR_OK;
}
