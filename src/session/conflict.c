/* conflict.c: INSERT … ON CONFLICT.
 *
 * Every row to insert is looked up in the key the clause names (or in all keys) among the rows of
 * the table and those this statement inserts. DO NOTHING leaves those that are found out. For DO
 * UPDATE they become a small table `excluded`, whose last column is the number of the row in
 * conflict, and the SET clause runs as an ordinary UPDATE of the target from it. What it changes
 * and what is simply inserted make one new version. */
#include "session/session_int.h"

struct conflict {
    struct wf_connection *conn;
    struct rowset *rows;
    struct table *table;
    struct table_version *base;
    const struct gathered *all;
    i32 key; /* -1 = any */
    bool update;
    b8 *insert;  /* by row: no conflict */
    i64 *target; /* by row: the row in conflict, -1 = none */
    i64 inserted, updated;
    struct row_pairs pairs; /* of the updated rows */
    struct map *seen;       /* by key: those of rows this statement inserts */
};

static bool key_values(const struct conflict *c, const struct table_key *key, i64 row,
                       const void **out) {
    for (u32 i = 0; i < key->col_count; i++) {
        const struct input_col *col = &c->all->cols[key->cols[i]];
        i64 width = kind_bytes[type_kind(c->table->cols[key->cols[i]].type)];
        if (col->nulls && col->nulls[row]) {
            return false;
        }
        out[i] = (const u8 *)col->data + row * width;
    }
    return true;
}

static struct sv key_text(struct arena *arena, const struct table *table,
                          const struct table_key *key, const void *const *values) {
    struct text out;
    text_init(&out, arena);
    for (u32 i = 0; i < key->col_count; i++) {
        struct type type = table->cols[key->cols[i]].type;
        union lit v;
        memcpy(&v, values[i], kind_bytes[type_kind(type)]);
        key_append(&out, type, &v);
    }
    return (struct sv){out.ptr, out.len};
}

static FALLIBLE twice(struct wf_connection *conn) {
    error_set(&conn->err, ERR_CARDINALITY, -1,
              "ON CONFLICT DO UPDATE command cannot affect row a second time");
    error_hint(&conn->err, "Ensure that no rows proposed for insertion within the same command "
                           "have duplicate constrained values.");
    return ERR_CARDINALITY;
}

/* Whether the row meets another one in key k. */
static FALLIBLE look_up(struct conflict *c, u32 k, i64 row, bool *out_taken) {
    const struct table_key *key = &c->table->keys[k];
    const void *values[32];
    *out_taken = false;
    if (!key_values(c, key, row, values)) {
        return ERR_OK;
    }
    struct arena *arena = &c->rows->arena;
    struct sv text = key_text(arena, c->table, key, values);
    bool own = map_find(&c->seen[k], text) != NULL;
    if (own && c->update) {
        return twice(c->conn);
    }
    i64 found = -1;
    TRY(version_key_row(c->table, c->base, k, values, &found, &c->conn->err));
    *out_taken = own || found >= 0;
    c->target[row] = found;
    if (!*out_taken || c->update) {
        map_set(&c->seen[k], text, c);
    }
    return ERR_OK;
}

static FALLIBLE sort_rows(struct conflict *c) {
    struct arena *arena = &c->rows->arena;
    i64 count = c->all->rows;
    c->insert = NEW_ARRAY(arena, b8, count + 1);
    c->target = NEW_ARRAY(arena, i64, count + 1);
    c->seen = NEW_ARRAY(arena, struct map, c->table->key_count + 1);
    for (u32 k = 0; k < c->table->key_count; k++) {
        map_init(&c->seen[k], arena);
    }
    for (u32 k = 0; k < c->table->key_count && count > 0; k++) {
        if (c->table->keys[k].deferrable && (c->key < 0 || (u32)c->key == k)) {
            FAIL(&c->conn->err, WRONG_STATE,
                 "ON CONFLICT does not support deferrable unique constraints as arbiters");
        }
    }
    for (i64 i = 0; i < count; i++) {
        bool taken = false;
        c->target[i] = -1;
        for (u32 k = 0; k < c->table->key_count && !taken; k++) {
            if (c->key < 0 || (u32)c->key == k) {
                TRY(look_up(c, k, i, &taken));
            }
        }
        c->insert[i] = !taken;
        c->inserted += !taken;
        c->updated += taken && c->target[i] >= 0;
    }
    return arena_check(arena, &c->conn->err);
}

/* The rows that `pick` marks, or those in conflict, as columns of their own. */
static struct input_col *pick_rows(struct conflict *c, bool inserted, i64 count) {
    struct arena *arena = &c->rows->arena;
    const struct table *table = c->table;
    struct input_col *cols = NEW_ARRAY(arena, struct input_col, table->col_count + 1);
    for (u32 col = 0; col < table->col_count; col++) {
        i64 width = kind_bytes[type_kind(table->cols[col].type)], at = 0;
        const struct input_col *from = &c->all->cols[col];
        u8 *data = arena_alloc(arena, MAX_OF(count, 1) * width);
        b8 *nulls = NEW_ARRAY(arena, b8, MAX_OF(count, 1));
        for (i64 i = 0; i < c->all->rows; i++) {
            if (inserted ? c->insert[i] : !c->insert[i] && c->target[i] >= 0) {
                memcpy(data + at * width, (const u8 *)from->data + i * width, (size_t)width);
                nulls[at++] = from->nulls && from->nulls[i];
            }
        }
        cols[col] = (struct input_col){data, nulls};
    }
    if (!inserted) {
        i64 *numbers = NEW_ARRAY(arena, i64, MAX_OF(count, 1)), at = 0;
        for (i64 i = 0; i < c->all->rows; i++) {
            if (!c->insert[i] && c->target[i] >= 0) {
                numbers[at++] = c->target[i];
            }
        }
        cols[table->col_count] = (struct input_col){numbers, NULL};
    }
    return cols;
}

static FALLIBLE open_excluded(struct conflict *c, struct table **out) {
    const struct table *table = c->table;
    struct column_def *cols = NEW_ARRAY(&c->rows->arena, struct column_def, table->col_count + 1);
    for (u32 i = 0; i < table->col_count; i++) {
        cols[i] = (struct column_def){.name = table->cols[i].name, .type = table->cols[i].type};
    }
    cols[table->col_count] =
        (struct column_def){.name = "row", .type = type_of(TYPE_BIGINT), .not_null = 1};
    TRY(arena_check(&c->rows->arena, &c->conn->err));
    *out = table_open(&c->conn->db->mem, catalog_new_id(c->conn->db->catalog), "excluded",
                      table->col_count + 1, cols, table->tablet_shift, table->plain);
    return *out ? ERR_OK : memory_refused(&c->conn->db->mem, &c->conn->err, (i64)sizeof **out);
}

struct conflict_arg {
    const struct parsed *parsed;
    const struct table *excluded;
};

static wf_status bind_conflict(void *arg, struct arena *arena, struct snapshot *snap,
                               struct type *param_types, struct statement *out, struct error *err) {
    const struct conflict_arg *own = arg;
    return sql_bind_conflict(arena, own->parsed, snap, own->excluded, param_types, out, err);
}

/* The rows of the target that DO UPDATE changes, as an answer. */
static FALLIBLE run_updates(struct conflict *c, const struct run_request *request,
                            struct rowset **out) {
    struct table *excluded = NULL;
    TRY(open_excluded(c, &excluded));
    struct table_version *rows = NULL;
    wf_status status =
        table_append(excluded, c->updated, pick_rows(c, false, c->updated), &c->conn->err);
    if (!status) {
        status = arena_check(&c->rows->arena, &c->conn->err);
    }
    if (!status) {
        rows = table_snapshot(excluded);
        struct conflict_arg arg = {request->parsed, excluded};
        struct inner_select select = {.script = request->script,
                                      .text = parsed_text(request->parsed),
                                      .bind = bind_conflict,
                                      .arg = &arg,
                                      .table = excluded,
                                      .version = rows,
                                      .request = request};
        status = inner_run(c->conn, &select, out);
    }
    version_release(rows);
    table_close(excluded);
    return status;
}

/* The base with the updated rows changed. */
static FALLIBLE apply_updates(struct conflict *c, struct rowset *changed,
                              struct table_version **out) {
    struct error *err = &c->conn->err;
    i64 *ids = NULL, deleted = 0;
    struct table_version *less = NULL;
    struct gathered all = {0};
    TRY(change_row_numbers(changed, &ids, err));
    TRY(version_delete(c->table, c->base, changed->answer.rows, ids, &less, NULL, &deleted, err));
    c->updated = changed->answer.rows;
    i64 *kept = NEW_ARRAY(&c->rows->arena, i64, c->updated + 1);
    memcpy(kept, ids, (size_t)c->updated * sizeof *kept);
    c->pairs = (struct row_pairs){c->updated, kept};
    wf_status status = gather(changed, c->table, 1, NULL, changed->answer.rows, &all, err);
    if (!status) {
        status = append_rows(c->conn, c->table, less, changed->answer.rows, all.cols, out);
    }
    gather_free(c->table, &all);
    version_release(less);
    return status;
}

static FALLIBLE make_version(struct conflict *c, const struct run_request *request,
                             struct table_version **out) {
    struct table_version *mine = version_retain(c->base);
    if (c->update && c->updated > 0) {
        struct rowset *changed = NULL;
        struct table_version *next = NULL;
        wf_status status = run_updates(c, request, &changed);
        if (!status && changed->answer.rows > 0) {
            status = apply_updates(c, changed, &next);
        } else if (!status) {
            c->updated = 0;
        }
        rowset_release(changed);
        if (next) {
            version_release(mine);
            mine = next;
        }
        if (status) {
            version_release(mine);
            return status;
        }
    }
    if (c->inserted > 0) {
        struct table_version *next = NULL;
        struct input_col *cols = pick_rows(c, true, c->inserted);
        wf_status status = arena_check(&c->rows->arena, &c->conn->err);
        if (!status) {
            status = append_rows(c->conn, c->table, mine, c->inserted, cols, &next);
        }
        version_release(mine);
        TRY(status);
        mine = next;
    }
    *out = mine;
    return ERR_OK;
}

FALLIBLE change_conflict(struct wf_connection *conn, const struct run_request *request,
                         struct rowset *rows, struct table *table, const struct gathered *all,
                         i64 *out_count) {
    const struct statement *st = &rows->compiled->stmt;
    st = st->kind == STATEMENT_EXPLAIN ? st->explain.inner : st;
    struct conflict c = {.conn = conn,
                         .rows = rows,
                         .table = table,
                         .all = all,
                         .key = st->change.conflict_key,
                         .update = st->change.conflict == 'u'};
    struct table_version *mine = NULL;
    TRY(change_base(conn, table, &c.base));
    c.base = version_retain(c.base);
    wf_status status = sort_rows(&c);
    if (!status) {
        status = make_version(&c, request, &mine);
    }
    if (!status && mine != c.base) {
        status = change_install(conn, table, c.base, mine, c.pairs.count ? &c.pairs : NULL);
    }
    version_release(mine);
    version_release(c.base);
    *out_count = c.inserted + (c.update ? c.updated : 0);
    return status;
}
