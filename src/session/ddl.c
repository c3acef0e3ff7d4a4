/* ddl.c: definitions: CREATE and DROP of schemas, tables, views, sequences and indexes; comments.
 *
 * Each is a set of edits of the transaction's edition, made in one step, so it succeeds or changes
 * nothing and rolls back like everything else. Dropping first collects everything that would go
 * with the object: without CASCADE, what the user did not make as part of it is 2BP01. */
#include "session/constraint_int.h"

#include "session/read_file.h"
#include "io/io.h"

#include <stdio.h>

static u32 tablet_shift(i64 tablet_rows) { /* the setting accepts powers of two only */
    u32 shift = 0;
    while (1LL << shift < tablet_rows) {
        shift++;
    }
    return shift;
}

static FALLIBLE refused(struct wf_connection *conn, i64 bytes) {
    return memory_refused(&conn->db->mem, &conn->err, bytes);
}

/* Makes one object part of the transaction; takes it. NULL: it was refused. */
FALLIBLE ddl_put(struct wf_connection *conn, struct object *object, struct table_version *version) {
    if (!object) {
        return refused(conn, (i64)sizeof *object);
    }
    struct edit edit = {object->oid, object, version};
    wf_status status = tx_apply(conn, &edit, 1);
    object_release(object);
    return status;
}

/* The connection's own schema for temporary objects. */
static FALLIBLE temp_schema(struct wf_connection *conn, u32 *out) {
    if (conn->temp_schema && edition_find_oid(conn->tx.mine, conn->temp_schema)) {
        *out = conn->temp_schema;
        return ERR_OK;
    }
    u32 oid = catalog_new_oid(conn->db->catalog);
    char name[40];
    snprintf(name, sizeof name, "pg_temp_%u", oid);
    struct object like = {.kind = OBJECT_SCHEMA, .oid = oid, .name = name, .hidden = 1, .temp = 1};
    TRY(ddl_put(conn, object_new(&conn->db->mem, &like), NULL));
    *out = conn->temp_schema = oid;
    return ERR_OK;
}

/* Where a new object goes. */
static FALLIBLE target_schema(struct wf_connection *conn, struct rowset *rows,
                              const struct statement *st, u32 *out) {
    if (st->create.temp) {
        return temp_schema(conn, out);
    }
    struct sv schema = st->create.schema ? sv_from(st->create.schema) : (struct sv){NULL, 0};
    TRY(snapshot_target(&rows->snap, schema, st->position, out, &conn->err));
    if (*out == OID_PG_CATALOG || *out == OID_INFORMATION) {
        FAIL_AT(&conn->err, PRIVILEGE, st->position, "cannot create anything in a system schema");
    }
    return ERR_OK;
}

/* *out_skip: the name is taken and the statement does not mind. */
static FALLIBLE check_free(struct wf_connection *conn, const struct statement *st, u32 schema,
                           const char *name, bool *out_skip) {
    *out_skip = false;
    if (!edition_name_holder(conn->tx.mine, schema, sv_from(name))) {
        return ERR_OK;
    }
    if (st->create.if_not_exists) {
        notice(conn, "NOTICE", "relation \"%s\" already exists, skipping", name);
        *out_skip = true;
        return ERR_OK;
    }
    FAIL_AT(&conn->err, DUPLICATE_TABLE, st->position, "relation \"%.100s\" already exists", name);
}

FALLIBLE run_create_schema(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "CREATE SCHEMA";
    if (edition_find(conn->tx.mine, 0, sv_from(st->name))) {
        if (st->create.if_not_exists) {
            notice(conn, "NOTICE", "schema \"%s\" already exists, skipping", st->name);
            return ERR_OK;
        }
        FAIL_AT(&conn->err, DUPLICATE_SCHEMA, st->position, "schema \"%.100s\" already exists",
                st->name);
    }
    if (strncmp(st->name, "pg_", 3) == 0) {
        FAIL_AT(&conn->err, RESERVED_NAME, st->position, "unacceptable schema name \"%.100s\"",
                st->name);
    }
    struct object like = {
        .kind = OBJECT_SCHEMA, .oid = catalog_new_oid(conn->db->catalog), .name = st->name};
    return ddl_put(conn, object_new(&conn->db->mem, &like), NULL);
}

/* Sequences */

static FALLIBLE sequence_name(struct wf_connection *conn, struct arena *arena, u32 schema,
                              const struct table_def *def, const struct ddl_seq *seq,
                              const char **out) {
    *out = seq->name;
    for (i32 n = 1; edition_name_holder(conn->tx.mine, schema, sv_from(*out)); n++) {
        if (seq->named) {
            FAIL(&conn->err, DUPLICATE_TABLE, "relation \"%.100s\" already exists", *out);
        }
        *out = sql_object_name(arena, def->name, def->cols[seq->col].name, "seq", n);
    }
    return ERR_OK;
}

static FALLIBLE put_sequence(struct wf_connection *conn, const struct ddl_seq *def, u32 schema,
                             const char *name, u32 oid, u32 owner, bool temp) {
    struct sequence *seq = sequence_open(&conn->db->mem, &def->like);
    if (!seq) {
        return refused(conn, (i64)sizeof *seq);
    }
    struct object like = {.kind = OBJECT_SEQUENCE,
                          .oid = oid,
                          .schema = schema,
                          .name = name,
                          .sequence = seq,
                          .owner = owner,
                          .owner_col = owner ? def->col + 1 : 0,
                          .temp = temp};
    struct object *object = object_new(&conn->db->mem, &like);
    sequence_close(seq);
    return ddl_put(conn, object, NULL);
}

FALLIBLE run_create_sequence(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    u32 schema = 0;
    bool skip;
    rows->tag = "CREATE SEQUENCE";
    TRY(target_schema(conn, rows, st, &schema));
    TRY(check_free(conn, st, schema, st->name, &skip));
    return skip ? ERR_OK
                : put_sequence(conn, st->create.sequence, schema, st->name,
                               catalog_new_oid(conn->db->catalog), st->create.sequence->owner,
                               st->create.temp);
}

FALLIBLE ddl_change_sequence(struct wf_connection *conn, u32 oid, const struct ddl_seq *def) {
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, oid);
    if (!entry) {
        FAIL(&conn->err, UNDEFINED_TABLE, "the sequence is gone");
    }
    struct sequence like = def->like, *now = entry->object->sequence;
    mutex_lock(&now->lock);
    like.last = def->restart ? def->restart_at : now->last;
    like.called = def->restart ? 0 : now->called;
    mutex_unlock(&now->lock);
    if (like.last < like.min || like.last > like.max) {
        FAIL(&conn->err, INVALID_PARAMETER, "RESTART value (%lld) cannot be %s (%lld)", like.last,
             like.last < like.min ? "less than MINVALUE" : "greater than MAXVALUE",
             like.last < like.min ? like.min : like.max);
    }
    struct sequence *seq = sequence_open(&conn->db->mem, &like);
    if (!seq) {
        return refused(conn, (i64)sizeof *seq);
    }
    struct object object = object_view(entry->object);
    object.sequence = seq;
    if (def->owner || def->disowned) {
        object.owner = def->owner;
        object.owner_col = def->owner ? def->col + 1 : 0;
    }
    struct object *made = object_new(&conn->db->mem, &object);
    sequence_close(seq);
    return ddl_put(conn, made, NULL);
}

FALLIBLE run_alter_sequence(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    rows->tag = "ALTER SEQUENCE";
    return ddl_change_sequence(conn, st->sequence.oid, st->sequence.def);
}

/* Tables */

static bool is_referred(const struct table_key *key, const struct table_foreign *fk) {
    u32 found = 0;
    for (u32 i = 0; i < key->col_count; i++) {
        for (u32 c = 0; c < fk->col_count; c++) {
            found += fk->ref_cols[c] == key->cols[i];
        }
    }
    return found == key->col_count && found == fk->col_count && !key->deferrable;
}

void ddl_give_oids(struct catalog *catalog, struct table_def *def) {
    for (u32 i = 0; i < def->key_count; i++) {
        struct table_key *key = &def->keys[i];
        key->oid = key->oid ? key->oid : catalog_new_oid(catalog);
    }
    for (u32 i = 0; i < def->check_count; i++) {
        struct table_check *check = &def->checks[i];
        check->oid = check->oid ? check->oid : catalog_new_oid(catalog);
    }
    for (u32 i = 0; i < def->foreign_count; i++) {
        struct table_foreign *fk = &def->foreigns[i];
        fk->oid = fk->oid ? fk->oid : catalog_new_oid(catalog);
        for (u32 k = 0; k < def->key_count && !fk->ref_key; k++) { /* of the same statement */
            fk->ref_key = is_referred(&def->keys[k], fk) ? def->keys[k].oid : 0;
        }
    }
}

FALLIBLE ddl_put_sequences(struct wf_connection *conn, struct rowset *rows,
                           const struct new_table *table, bool temp, struct table_def *def,
                           u32 schema, u32 oid) {
    for (i32 i = 0; i < table->seq_count; i++) {
        const struct ddl_seq *seq = &table->seqs[i];
        u32 seq_oid = catalog_new_oid(conn->db->catalog);
        const char *name = NULL;
        TRY(sequence_name(conn, &rows->arena, schema, def, seq, &name));
        TRY(put_sequence(conn, seq, schema, name, seq_oid, oid, temp));
        struct column_def *col = &def->cols[seq->col];
        col->sequence = seq_oid;
        if (!col->identity) {
            col->default_text = define_nextval(&rows->arena, NULL, name);
        }
    }
    return ERR_OK;
}

FALLIBLE ddl_check_keys(struct wf_connection *conn, const struct table_def *def, u32 schema,
                        u32 oid, i32 position) {
    for (u32 i = 0; i < def->key_count; i++) {
        const char *name = def->keys[i].name;
        const struct object *holder = edition_name_holder(conn->tx.mine, schema, sv_from(name));
        bool own = holder && holder->oid == oid; /* it is a key's already */
        if (!def->keys[i].index && ((holder && !own) || strcmp(name, def->name) == 0)) {
            FAIL_AT(&conn->err, DUPLICATE_TABLE, position, "relation \"%.100s\" already exists",
                    name);
        }
    }
    return ERR_OK;
}

/* A copy of the definition that may be changed: a compiled statement is used more than once. */
struct table_def ddl_copy_def(struct arena *arena, const struct table_def *def) {
    struct table_def copy = *def;
    copy.cols = NEW_ARRAY(arena, struct column_def, def->col_count + 1);
    copy.keys = NEW_ARRAY(arena, struct table_key, def->key_count + 1);
    copy.checks = NEW_ARRAY(arena, struct table_check, def->check_count + 1);
    copy.foreigns = NEW_ARRAY(arena, struct table_foreign, def->foreign_count + 1);
    memcpy(copy.cols, def->cols, def->col_count * sizeof *copy.cols);
    if (def->key_count) {
        memcpy(copy.keys, def->keys, def->key_count * sizeof *copy.keys);
    }
    if (def->check_count) {
        memcpy(copy.checks, def->checks, def->check_count * sizeof *copy.checks);
    }
    if (def->foreign_count) {
        memcpy(copy.foreigns, def->foreigns, def->foreign_count * sizeof *copy.foreigns);
    }
    return copy;
}

/* `dicts`, by column, may be NULL: as table_open_def has it. */
static FALLIBLE put_table(struct wf_connection *conn, struct rowset *rows,
                          const struct statement *st, u32 schema, struct dict *const *dicts,
                          struct table **out) {
    struct catalog *catalog = conn->db->catalog;
    struct table_def def = ddl_copy_def(&rows->arena, &st->create.table.table.def);
    u32 oid = catalog_new_oid(catalog);
    TRY(arena_check(&rows->arena, &conn->err));
    ddl_give_oids(catalog, &def);
    TRY(ddl_put_sequences(conn, rows, &st->create.table.table, st->create.temp, &def, schema, oid));
    TRY(ddl_check_keys(conn, &def, schema, oid, st->position));
    struct table *table =
        table_open_def(&conn->db->mem, catalog_new_id(catalog), &def, dicts,
                       tablet_shift(conn->settings.tablet_rows), !conn->settings.narrow);
    if (!table) {
        return refused(conn, (i64)sizeof *table);
    }
    table_set_file(table, st->create.temp ? NULL : catalog_file(catalog));
    struct table_version *version = table_snapshot(table);
    struct object like = {.kind = OBJECT_TABLE,
                          .oid = oid,
                          .schema = schema,
                          .name = st->name,
                          .table = table,
                          .temp = st->create.temp};
    wf_status status = ddl_put(conn, object_new(&conn->db->mem, &like), version);
    version_release(version);
    if (status) {
        table_close(table);
    } else if (out) {
        *out = table;
    } else {
        table_close(table);
    }
    return status;
}

static FALLIBLE drop_old(struct wf_connection *conn, struct rowset *rows,
                         const struct statement *st, u32 schema);

FALLIBLE run_create_table(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    u32 schema = 0;
    bool skip;
    rows->tag = "CREATE TABLE";
    TRY(target_schema(conn, rows, st, &schema));
    TRY(st->create.or_replace ? drop_old(conn, rows, st, schema) : ERR_OK);
    TRY(check_free(conn, st, schema, st->name, &skip));
    return skip ? ERR_OK : put_table(conn, rows, st, schema, NULL, NULL);
}

/* CREATE TABLE AS of columns of a file, and nothing else: the file is loaded as COPY loads it, and
 * its tablets become the new table's. */

struct adopted {
    struct table *file;
    i32 *cols; /* by column of the new table: the file's */
    struct dict **dicts;
};

/* The columns of the plan's answer, by number, traced to those of the operator below. */
static bool trace_columns(const struct rel *project, u32 *cols, u32 count) {
    for (u32 i = 0; i < count; i++) {
        i64 at = 0;
        while (at < project->out.count && project->out.items[at] != cols[i]) {
            at++;
        }
        if (at >= project->project.exprs.count ||
            project->project.exprs.items[at]->kind != EXPR_COL) {
            return false;
        }
        cols[i] = project->project.exprs.items[at]->col;
    }
    return true;
}

static bool find_adopted(struct wf_connection *conn, struct rowset *rows,
                         const struct statement *st, struct adopted *out) {
    const struct rel *rel = rows->compiled->plan->root;
    u32 count = st->create.table.table.def.col_count;
    u32 *cols = NEW_ARRAY(&rows->arena, u32, count + 1);
    out->cols = NEW_ARRAY(&rows->arena, i32, count + 1);
    out->dicts = NEW_ARRAY(&rows->arena, struct dict *, count + 1);
    if (st->create.table.no_data || count == 0 || rel->out.count != (i64)count) {
        return false;
    }
    if (count) {
        memcpy(cols, rel->out.items, count * sizeof *cols);
    }
    for (; rel->kind == REL_PROJECT; rel = rel_input(rel)) {
        if (!trace_columns(rel, cols, count)) {
            return false;
        }
    }
    struct snapshot_table found = {0};
    bool scans = rel->kind == REL_SCAN && snapshot_find_id(&rows->snap, rel->scan.table_id, &found);
    out->file = found.table;
    if (!scans || !is_file_table(out->file) || !csv_file_is(out->file) ||
        out->file->tablet_shift != tablet_shift(conn->settings.tablet_rows) ||
        out->file->plain != !conn->settings.narrow) {
        return false;
    }
    b8 *used = NEW_ARRAY(&rows->arena, b8, out->file->col_count + 1);
    for (u32 i = 0; i < count; i++) {
        i64 at = 0;
        while (at < rel->scan.cols.count && rel->scan.cols.items[at].col != cols[i]) {
            at++;
        }
        u32 col = at < rel->scan.cols.count ? rel->scan.cols.items[at].table_col : 0;
        if (at == rel->scan.cols.count || used[col] ||
            !type_eq(out->file->cols[col].type, st->create.table.table.def.cols[i].type)) {
            return false;
        }
        used[col] = 1;
        out->cols[i] = (i32)col;
        out->dicts[i] = out->file->dicts[col];
    }
    return true;
}

static FALLIBLE adopt(struct wf_connection *conn, const struct rowset *rows, struct table *table,
                      const struct adopted *adopted, i64 *out_count) {
    struct table_version *base = NULL, *mine = NULL, *loaded = NULL;
    struct load_progress progress = {.stop = &conn->stop};
    TRY(change_base(conn, table, &base));
    watch_load(&conn->watch, &progress);
    wf_status status = csv_file_load(adopted->file, conn->db->pool, &progress, &loaded, &conn->err);
    watch_load(&conn->watch, NULL);
    TRY(status);
    notice_files(conn, &rows->snap);
    base = version_retain(base);
    status = version_reshape(table, adopted->file, loaded, adopted->cols, NULL, &mine, &conn->err);
    if (!status) {
        *out_count = mine->live_rows;
        status = change_install(conn, table, base, mine, NULL);
        version_release(mine);
    }
    version_release(loaded);
    version_release(base);
    return status;
}

/* Where the table of CREATE TABLE AS goes; *out_skip: it is there, and the statement does not mind. */
static FALLIBLE as_target(struct wf_connection *conn, struct rowset *rows,
                          const struct statement *st, u32 *out_schema, bool *out_skip) {
    *out_skip = false;
    TRY(target_schema(conn, rows, st, out_schema));
    return st->create.or_replace ? ERR_OK : check_free(conn, st, *out_schema, st->name, out_skip);
}

/* The table, with the rows of the answer, or of a file whose tablets it takes. */
static FALLIBLE make_as(struct wf_connection *conn, struct rowset *rows, const struct statement *st,
                        u32 schema, const struct adopted *adopted, i64 *out_count) {
    struct table *table = NULL;
    *out_count = 0;
    TRY(st->create.or_replace ? drop_old(conn, rows, st, schema) : ERR_OK);
    TRY(put_table(conn, rows, st, schema, adopted ? adopted->dicts : NULL, &table));
    wf_status status = adopted                    ? adopt(conn, rows, table, adopted, out_count)
                       : st->create.table.no_data ? ERR_OK
                                                  : change_answer(conn, rows, table, out_count);
    table_close(table);
    return status;
}

FALLIBLE run_create_as(struct wf_connection *conn, const struct run_request *request,
                       struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    u32 schema = 0;
    bool skip;
    rows->tag = "CREATE TABLE AS";
    TRY(as_target(conn, rows, st, &schema, &skip));
    if (skip) {
        return ERR_OK;
    }
    struct adopted adopted = {0};
    bool adopts = find_adopted(conn, rows, st, &adopted);
    if (!st->create.table.no_data && !adopts) {
        TRY(rowset_open_exec(conn, request, rows));
        st = &rows->compiled->stmt; /* may have been compiled again */
        change_expect_answer(rows);
        TRY(rowset_start_exec(conn, rows));
    }
    i64 count = 0;
    TRY(make_as(conn, rows, st, schema, adopts ? &adopted : NULL, &count));
    rows->rows_affected = count;
    rows->tag = st->create.table.no_data ? "CREATE TABLE AS"
                                         : arena_printf(&rows->arena, "SELECT %lld", count);
    rows->col_count = 0;
    rows->answer = (struct answer){0, 0, NULL};
    return ERR_OK;
}

FALLIBLE create_check(struct wf_connection *conn, struct rowset *rows, bool *out_skip) {
    const struct statement *st = rowset_statement(rows);
    u32 schema = 0;
    *out_skip = false;
    bool none = st->create.temp &&
                !(conn->temp_schema && edition_find_oid(conn->tx.mine, conn->temp_schema));
    return none ? ERR_OK : as_target(conn, rows, st, &schema, out_skip);
}

FALLIBLE create_answer(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = rowset_statement(rows);
    u32 schema = 0;
    bool skip;
    i64 count;
    TRY(as_target(conn, rows, st, &schema, &skip));
    return skip ? ERR_OK : make_as(conn, rows, st, schema, NULL, &count);
}

/* Views, indexes, comments */

/* CREATE OR REPLACE VIEW may only add columns at the end. */
static FALLIBLE check_replaced(struct wf_connection *conn, const struct statement *st,
                               const struct object *old) {
    if (old->kind != OBJECT_VIEW || old->logical) {
        FAIL_AT(&conn->err, WRONG_OBJECT, st->position, "\"%.100s\" is not a view%s", old->name,
                old->logical ? ": rules of LogiQL derive it" : "");
    }
    if ((u32)st->create.view.col_count < old->col_count) {
        FAIL_AT(&conn->err, INVALID_DEFINITION, st->position, "cannot drop columns from view");
    }
    for (u32 i = 0; i < old->col_count; i++) {
        if (strcmp(old->col_names[i], st->create.view.names[i]) != 0) {
            FAIL_AT(&conn->err, INVALID_DEFINITION, st->position,
                    "cannot change name of view column \"%.100s\" to \"%.100s\"", old->col_names[i],
                    st->create.view.names[i]);
        }
    }
    return ERR_OK;
}

/* The columns of what a view reads, as they are now. */
static FALLIBLE columns_of_deps(struct wf_connection *conn, struct arena *arena,
                                const struct statement *st, struct column_names **out) {
    *out = NEW_ARRAY(arena, struct column_names, st->create.view.dep_count + 1);
    for (i32 i = 0; i < st->create.view.dep_count; i++) {
        const struct edition_entry *entry =
            edition_find_oid(conn->tx.mine, st->create.view.deps[i]);
        const struct table *table = entry ? entry->object->table : NULL;
        u32 count = table ? table->col_count : entry ? entry->object->col_count : 0;
        (*out)[i] = (struct column_names){count, NEW_ARRAY(arena, const char *, count + 1)};
        for (u32 c = 0; c < count; c++) {
            (*out)[i].names[c] = table ? table->cols[c].name : entry->object->col_names[c];
        }
    }
    return arena_check(arena, &conn->err);
}

FALLIBLE run_create_view(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    u32 schema = 0;
    rows->tag = "CREATE VIEW";
    TRY(target_schema(conn, rows, st, &schema));
    const struct edition_entry *old = edition_find(conn->tx.mine, schema, sv_from(st->name));
    if (!old && st->create.or_replace &&
        edition_name_holder(conn->tx.mine, schema, sv_from(st->name))) {
        FAIL_AT(&conn->err, WRONG_OBJECT, st->position, "\"%.100s\" is not a view", st->name);
    }
    if (old && st->create.or_replace) {
        TRY(check_replaced(conn, st, old->object));
        for (i32 i = 0; i < st->create.view.dep_count; i++) {
            if (st->create.view.deps[i] == old->object->oid) {
                FAIL_AT(&conn->err, INVALID_DEFINITION, st->position,
                        "view \"%.100s\" cannot read itself", st->name);
            }
        }
    } else {
        bool skip; /* views have no IF NOT EXISTS */
        TRY(check_free(conn, st, schema, st->name, &skip));
    }
    if (st->create.view.turned_temp) {
        notice(conn, "NOTICE", "view \"%s\" will be a temporary view", st->name);
    }
    struct column_names *dep_cols;
    TRY(columns_of_deps(conn, &rows->arena, st, &dep_cols));
    struct object like = {.kind = OBJECT_VIEW,
                          .oid = old ? old->object->oid : catalog_new_oid(conn->db->catalog),
                          .schema = schema,
                          .name = st->name,
                          .text = st->create.view.text,
                          .path = conn->search_path,
                          .col_count = (u32)st->create.view.col_count,
                          .col_names = st->create.view.names,
                          .col_types = st->create.view.types,
                          .dep_count = (u32)st->create.view.dep_count,
                          .deps = st->create.view.deps,
                          .dep_cols = dep_cols,
                          .temp = st->create.temp};
    return ddl_put(conn, object_new(&conn->db->mem, &like), NULL);
}

FALLIBLE run_create_index(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct edition_entry *table =
        edition_find_table(conn->tx.mine, st->create.index.table_id);
    bool skip;
    rows->tag = "CREATE INDEX";
    if (!table) {
        FAIL(&conn->err, UNDEFINED_TABLE, "the table is gone");
    }
    TRY(check_free(conn, st, table->object->schema, st->name, &skip));
    if (skip) {
        return ERR_OK;
    }
    struct object like = {.kind = OBJECT_INDEX,
                          .oid = catalog_new_oid(conn->db->catalog),
                          .schema = table->object->schema,
                          .name = st->name,
                          .owner = table->object->oid,
                          .text = st->create.index.text,
                          .col_count = (u32)st->create.index.col_count,
                          .col_names = st->create.index.names,
                          .temp = table->object->temp};
    if (!st->create.index.key) {
        notice(conn, "NOTICE", "index \"%s\" is recorded but not built: scans need none", st->name);
    }
    u32 owner = table->object->oid;
    struct table_def old = table_def_view(table->object->table);
    TRY(ddl_put(conn, object_new(&conn->db->mem, &like), NULL));
    if (!st->create.index.key) {
        return ERR_OK;
    }
    struct table_def def = ddl_copy_def(&rows->arena, &old); /* UNIQUE: a key of the table */
    def.keys[def.key_count] = *st->create.index.key;
    def.keys[def.key_count++].oid = like.oid;
    TRY(arena_check(&rows->arena, &conn->err));
    wf_status status = ddl_redefine(conn, owner, &def, NULL, NULL);
    if (status == ERR_UNIQUE) {
        error_reset(&conn->err);
        FAIL(&conn->err, UNIQUE, "could not create unique index \"%.100s\"", st->name);
    }
    return status;
}

FALLIBLE run_comment(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    const struct edition_entry *entry = edition_find_oid(conn->tx.mine, st->comment.oid);
    rows->tag = "COMMENT";
    if (!entry) {
        return ERR_OK;
    }
    struct object like = object_view(entry->object);
    like.comment = st->comment.text;
    return ddl_put(conn, object_new(&conn->db->mem, &like), entry->version);
}

/* DROP */

/* OIDs in the order found. */
struct oid_set {
    VEC(u32) oids;
    struct map has;
};
struct dropping {
    struct wf_connection *conn;
    struct arena *arena;
    bool cascade;
    i32 position;           /* for errors */
    struct oid_set gone;    /* to go */
    struct oid_set touched; /* tables that use some of it */
};

static void dropping_init(struct dropping *d, struct wf_connection *conn, struct arena *arena,
                          bool cascade, i32 position) {
    *d = (struct dropping){.conn = conn, .arena = arena, .cascade = cascade, .position = position};
    map_init(&d->gone.has, arena);
    map_init(&d->touched.has, arena);
}

static bool oid_in(const struct oid_set *set, u32 oid) {
    return map_find(&set->has, (struct sv){(const char *)&oid, (i64)sizeof oid}) != NULL;
}

static void oid_add(struct arena *arena, struct oid_set *set, u32 oid) {
    if (!oid_in(set, oid)) {
        u32 *key = NEW(arena, u32);
        *key = oid;
        map_set(&set->has, (struct sv){(const char *)key, (i64)sizeof *key}, key);
        VEC_PUSH(arena, &set->oids, oid);
    }
}

static bool going(const struct dropping *d, u32 oid) {
    return oid_in(&d->gone, oid);
}

static void let_go(struct dropping *d, u32 oid) {
    oid_add(d->arena, &d->gone, oid);
}

static FALLIBLE depends(struct dropping *d, const struct object *on, const struct object *other,
                        const char *how) {
    if (d->cascade) {
        notice(d->conn, "NOTICE", "drop cascades to %s %s", object_words[other->kind], other->name);
        return ERR_OK;
    }
    error_set(&d->conn->err, ERR_DEPENDENT_OBJECTS, d->position,
              "cannot drop %s %.100s because other objects depend on it", object_words[on->kind],
              on->name);
    error_hint(&d->conn->err, "%s \"%.60s\" %s it; use DROP … CASCADE to drop that too.",
               object_words[other->kind], other->name, how);
    return ERR_DEPENDENT_OBJECTS;
}

static bool refers_to(const struct object *object, u32 oid) {
    for (u32 f = 0; object->table && f < object->table->foreign_count; f++) {
        if (object->table->foreigns[f].ref_oid == oid) {
            return true;
        }
    }
    return false;
}

/* Whether a reference of the object rests on this unique index. */
static bool needs_index(const struct edition *edition, const struct object *object,
                        const struct object *index) {
    const struct edition_entry *owner = edition_find_oid(edition, index->owner);
    const struct table *parent = owner ? owner->object->table : NULL;
    for (u32 f = 0; parent && object->table && f < object->table->foreign_count; f++) {
        const struct table_foreign *fk = &object->table->foreigns[f];
        u32 key = 0, order[32];
        struct error none = {0};
        if ((fk->ref_oid ? fk->ref_oid : object->oid) == index->owner &&
            !reference_key(parent, fk, &key, order, &none) && parent->keys[key].oid == index->oid) {
            return true;
        }
    }
    return false;
}

static bool uses_sequence(const struct object *object, u32 oid) {
    for (u32 c = 0; object->table && c < object->table->col_count; c++) {
        if (object->table->cols[c].sequence == oid) {
            return true;
        }
    }
    return false;
}

/* A constraint of rules that reads one predicate goes with it. */
static bool is_own_constraint(const struct object *object) {
    return logiql_is_constraint(object) && object->dep_count == 1;
}

/* What `other` has to do with what goes. */
static FALLIBLE collect_user(struct dropping *d, const struct object *gone,
                             const struct object *other) {
    bool reads = false;
    for (u32 k = 0; k < other->dep_count; k++) {
        reads = reads || other->deps[k] == gone->oid;
    }
    if (other->table) {
        oid_add(d->arena, &d->touched, other->oid);
    }
    if (going(d, other->oid)) {
        return ERR_OK;
    }
    if (reads && is_own_constraint(other)) {
        let_go(d, other->oid);
    } else if (reads) {
        TRY(depends(d, gone, other, "reads"));
        let_go(d, other->oid);
    } else if (gone->kind == OBJECT_TABLE && other->owner == gone->oid) {
        let_go(d, other->oid);
    } else if (gone->kind == OBJECT_TABLE && refers_to(other, gone->oid)) {
        TRY(depends(d, gone, other, "refers to"));
    } else if (gone->kind == OBJECT_INDEX && needs_index(d->conn->tx.mine, other, gone)) {
        TRY(depends(d, gone, other, "refers to the columns of"));
    } else if (gone->kind == OBJECT_SEQUENCE && uses_sequence(other, gone->oid)) {
        TRY(depends(d, gone, other, "takes values from"));
    }
    return ERR_OK;
}

/* What goes, or must be asked about, when `gone` goes. */
static FALLIBLE collect_dependents(struct dropping *d, const struct object *gone) {
    const struct edition *edition = d->conn->tx.mine;
    if (gone->kind == OBJECT_SCHEMA) {
        struct edition_walk in = edition_walk_schema(edition, gone->oid);
        while (edition_step(&in)) {
            if (!going(d, in.entry->object->oid)) {
                TRY(depends(d, gone, in.entry->object, "is in"));
                let_go(d, in.entry->object->oid);
            }
        }
    }
    struct edition_walk at = edition_walk_users(edition, gone->oid);
    while (edition_step(&at)) {
        TRY(collect_user(d, gone, at.entry->object));
    }
    if (gone->kind == OBJECT_INDEX) { /* references rest on it, but name its table */
        const struct edition_entry *owner = edition_find_oid(edition, gone->owner);
        TRY(owner ? collect_user(d, gone, owner->object) : ERR_OK);
        at = edition_walk_users(edition, gone->owner);
        while (edition_step(&at)) {
            TRY(collect_user(d, gone, at.entry->object));
        }
    }
    return ERR_OK;
}

static FALLIBLE missing(struct wf_connection *conn, struct rowset *rows, i32 i) {
    const struct statement *st = &rows->compiled->stmt;
    const char *word = object_words[st->drop.object_kind];
    if (st->drop.if_exists) {
        notice(conn, "NOTICE", "%s \"%s\" does not exist, skipping", word, st->drop.names[i]);
        return ERR_OK;
    }
    if (st->drop.object_kind != OBJECT_SCHEMA && *st->drop.schemas[i] &&
        !edition_find_schema(conn->tx.mine, sv_from(st->drop.schemas[i]))) {
        FAIL_AT(&conn->err, UNDEFINED_SCHEMA, st->drop.positions[i],
                "schema \"%.100s\" does not exist", st->drop.schemas[i]);
    }
    wf_status code = st->drop.object_kind == OBJECT_SCHEMA  ? ERR_UNDEFINED_SCHEMA
                     : st->drop.object_kind == OBJECT_INDEX ? ERR_UNDEFINED_OBJECT
                                                            : ERR_UNDEFINED_TABLE;
    error_set(&conn->err, code, st->drop.positions[i], "%s \"%.100s\" does not exist", word,
              st->drop.names[i]);
    snapshot_hint(&rows->snap, sv_from(st->drop.names[i]), &conn->err);
    return code;
}

static FALLIBLE wrong_kind(struct dropping *d, const struct drop_statement *drop, i32 i,
                           enum object_kind kind) {
    error_set(&d->conn->err, ERR_WRONG_OBJECT, drop->positions[i], "\"%.100s\" is not a%s %s",
              drop->names[i], drop->object_kind == OBJECT_INDEX ? "n" : "",
              object_words[drop->object_kind]);
    error_hint(&d->conn->err, "Use DROP %s to remove it.", object_words[kind]);
    return ERR_WRONG_OBJECT;
}

/* The index of a key goes with its constraint only. */
static FALLIBLE check_key(struct dropping *d, struct rowset *rows, i32 i) {
    const struct drop_statement *drop = &rows->compiled->stmt.drop;
    const struct object *table =
        snapshot_key_table(&rows->snap, sv_from(drop->schemas[i]), sv_from(drop->names[i]));
    if (drop->object_kind == OBJECT_SCHEMA || !table) {
        return ERR_OK;
    }
    if (drop->object_kind != OBJECT_INDEX) {
        return wrong_kind(d, drop, i, OBJECT_INDEX);
    }
    error_set(&d->conn->err, ERR_DEPENDENT_OBJECTS, drop->positions[i],
              "cannot drop index %.100s because constraint %.100s on table %.100s requires it",
              drop->names[i], drop->names[i], table->name);
    error_hint(&d->conn->err, "You can drop constraint %.60s on table %.60s instead.",
               drop->names[i], table->name);
    return ERR_DEPENDENT_OBJECTS;
}

static FALLIBLE collect_named(struct dropping *d, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    for (i32 i = 0; i < st->drop.count; i++) {
        const struct edition_entry *entry =
            st->drop.object_kind == OBJECT_SCHEMA
                ? edition_find(d->conn->tx.mine, 0, sv_from(st->drop.names[i]))
                : snapshot_lookup(&rows->snap, sv_from(st->drop.schemas[i]),
                                  sv_from(st->drop.names[i]));
        if (!entry) {
            TRY(check_key(d, rows, i));
            TRY(missing(d->conn, rows, i));
            continue;
        }
        if (entry->object->kind != st->drop.object_kind) {
            return wrong_kind(d, &st->drop, i, (enum object_kind)entry->object->kind);
        }
        if (entry->object->hidden) {
            FAIL_AT(&d->conn->err, DEPENDENT_OBJECTS, st->drop.positions[i],
                    "cannot drop %s %.100s because it is required by the database system",
                    object_words[entry->object->kind], st->drop.names[i]);
        }
        let_go(d, entry->object->oid);
    }
    return ERR_OK;
}

/* Whether what a reference rests on is a unique index that goes, or has gone. */
static bool loses_key(const struct dropping *d, u32 own, const struct table_foreign *fk) {
    const struct edition_entry *parent =
        edition_find_oid(d->conn->tx.mine, fk->ref_oid ? fk->ref_oid : own);
    u32 key = 0, order[32];
    struct error none = {0};
    if (!parent || reference_key(parent->object->table, fk, &key, order, &none)) {
        return true;
    }
    return parent->object->table->keys[key].index && going(d, parent->object->table->keys[key].oid);
}

/* A table that stays loses the keys of unique indexes that go; after CASCADE its references to
 * these and to tables that go, and its columns the defaults of sequences that go, too. */
static FALLIBLE loosen(struct dropping *d, const struct edition_entry *entry) {
    struct table *table = entry->object->table;
    struct table_def def = table_def_view(table), less = ddl_copy_def(d->arena, &def);
    less.foreign_count = 0;
    bool changed = false;
    for (u32 f = 0; f < def.foreign_count; f++) {
        if (going(d, def.foreigns[f].ref_oid) ||
            loses_key(d, entry->object->oid, &def.foreigns[f])) {
            changed = true;
        } else {
            less.foreigns[less.foreign_count++] = def.foreigns[f];
        }
    }
    for (u32 c = 0; c < def.col_count; c++) {
        if (def.cols[c].sequence && going(d, def.cols[c].sequence)) {
            less.cols[c].sequence = 0;
            less.cols[c].default_text = NULL;
            changed = true;
        }
    }
    less.key_count = 0;
    for (u32 k = 0; k < def.key_count; k++) {
        if (def.keys[k].index && going(d, def.keys[k].oid)) {
            changed = true;
        } else {
            less.keys[less.key_count++] = def.keys[k];
        }
    }
    return changed ? ddl_redefine(d->conn, entry->object->oid, &less, NULL, NULL) : ERR_OK;
}

static FALLIBLE drop_collected(struct dropping *d);

/* CREATE OR REPLACE TABLE. */
static FALLIBLE drop_old(struct wf_connection *conn, struct rowset *rows,
                         const struct statement *st, u32 schema) {
    const struct edition_entry *old = edition_find(conn->tx.mine, schema, sv_from(st->name));
    struct dropping d;
    dropping_init(&d, conn, &rows->arena, false, st->position);
    if (!old) {
        return ERR_OK;
    }
    if (old->object->kind != OBJECT_TABLE) {
        FAIL_AT(&conn->err, WRONG_OBJECT, st->position, "\"%.100s\" is not a table", st->name);
    }
    let_go(&d, old->object->oid);
    return drop_collected(&d);
}

FALLIBLE ddl_drop(struct wf_connection *conn, struct arena *arena, u32 oid) {
    struct dropping d;
    dropping_init(&d, conn, arena, true, -1);
    if (!edition_find_oid(conn->tx.mine, oid)) {
        return ERR_OK;
    }
    let_go(&d, oid);
    return drop_collected(&d);
}

FALLIBLE run_drop(struct wf_connection *conn, struct rowset *rows) {
    const struct statement *st = &rows->compiled->stmt;
    static const char *const tags[] = {"DROP SCHEMA", "DROP TABLE", "DROP VIEW", "DROP SEQUENCE",
                                       "DROP INDEX"};
    struct dropping d;
    dropping_init(&d, conn, &rows->arena, st->drop.cascade, st->position);
    rows->tag = tags[st->drop.object_kind];
    TRY(collect_named(&d, rows));
    return drop_collected(&d);
}

static FALLIBLE drop_collected(struct dropping *d) {
    struct wf_connection *conn = d->conn;
    for (i64 i = 0; i < d->gone.oids.count; i++) {
        const struct edition_entry *entry = edition_find_oid(conn->tx.mine, d->gone.oids.items[i]);
        TRY(connection_check(conn));
        TRY(collect_dependents(d, entry->object));
    }
    struct edition *edition = edition_retain(conn->tx.mine);
    wf_status status = ERR_OK;
    for (i64 i = 0; i < d->touched.oids.count && !status; i++) {
        u32 oid = d->touched.oids.items[i];
        status = going(d, oid) ? ERR_OK : loosen(d, edition_find_oid(edition, oid));
    }
    edition_release(edition);
    TRY(status);
    i64 count = d->gone.oids.count;
    struct edit *edits = NEW_ARRAY(d->arena, struct edit, count + 1);
    TRY(arena_check(d->arena, &conn->err)); /* of the lists, too */
    for (i64 i = 0; i < count; i++) {
        edits[i].oid = d->gone.oids.items[i];
    }
    return count ? tx_apply(conn, edits, count) : ERR_OK;
}
