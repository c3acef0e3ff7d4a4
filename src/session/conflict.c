/* conflict.c: INSERT … ON CONFLICT.
 *
 * Every row to insert is looked up in the key the clause names (or in all keys) among the rows of
 * the table and those this statement inserts. DO NOTHING leaves those that are found out. For DO
 * UPDATE they become a small table `excluded`, whose last columns are where they come in the source
 * and the number of the row in conflict, and the SET clause runs as an ordinary UPDATE of the target
 * from it. What it changes and what is simply inserted make one new version, in the order of the
 * source. What several keys leave out of very many rows: see decision 0095. */
#include "session/session_int.h"

#include <stdlib.h>

enum {
    EXCLUDED_MORE = 2, /* columns of `excluded` that are not the table's */
#ifdef WF_HARD
    MANY = 16 /* rows that are looked up together */
#else
    MANY = 1 << 16
#endif
};

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
    struct key_finder *finders; /* by key */
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

/* Whether the row meets another one in key k. The key's text, nothing where it has a NULL. */
static FALLIBLE look_up(struct conflict *c, u32 k, i64 row, bool *out_taken, struct sv *out_text) {
    const struct table_key *key = &c->table->keys[k];
    const void *values[32];
    *out_taken = false;
    *out_text = (struct sv){NULL, 0};
    if (!key_values(c, key, row, values)) {
        return ERR_OK;
    }
    struct arena *arena = &c->rows->arena;
    *out_text = key_text(arena, c->table, key, values);
    bool own = map_find(&c->seen[k], *out_text) != NULL;
    if (own && c->update) {
        return twice(c->conn);
    }
    i64 found = -1;
    TRY(key_finder_row(&c->finders[k], values, &found, &c->conn->err));
    *out_taken = own || found >= 0;
    c->target[row] = found;
    return ERR_OK;
}

static bool is_arbiter(const struct conflict *c, u32 k) {
    return c->key < 0 || (u32)c->key == k;
}

/* A row that is left out takes no key from those behind it. */
static FALLIBLE look_at_row(struct conflict *c, i64 row, struct sv *texts) {
    bool taken = false;
    c->target[row] = -1;
    for (u32 k = 0; k < c->table->key_count && !taken; k++) {
        TRY(is_arbiter(c, k) ? look_up(c, k, row, &taken, &texts[k]) : ERR_OK);
    }
    for (u32 k = 0; k < c->table->key_count && (!taken || c->update); k++) {
        if (is_arbiter(c, k) && texts[k].ptr) {
            map_set(&c->seen[k], texts[k], c);
        }
    }
    c->insert[row] = !taken;
    c->inserted += !taken;
    c->updated += taken && c->target[row] >= 0;
    return ERR_OK;
}

/* The one key that rows are looked up in, where there is one; the number of keys where there are several. */
static u32 only_arbiter(const struct conflict *c) {
    u32 found = c->table->key_count, count = 0;
    for (u32 k = 0; k < c->table->key_count; k++) {
        found = is_arbiter(c, k) ? k : found;
        count += is_arbiter(c, k);
    }
    return count == 1 ? found : c->table->key_count;
}

/* Very many rows are looked up together. Of those that have one key the first decides: whether it is left out or not,
 * the others are. */
static FALLIBLE meet_rows(struct conflict *c, u32 key) {
    b8 *twin = c->insert; /* until it is what its name says */
    struct key_meets met = {.twin = twin, .row = c->target};
    TRY(version_meet(c->table, key, c->base, &c->rows->mem, c->all->rows, c->all->cols, &met,
                     &c->conn->err));
    for (i64 row = 0; row < c->all->rows; row++) {
        if (twin[row] && c->update) {
            return twice(c->conn);
        }
        c->insert[row] = !twin[row] && c->target[row] < 0;
        c->inserted += c->insert[row];
        c->updated += c->target[row] >= 0;
    }
    return ERR_OK;
}

/* The rows that are given with one key share a bit: whether a row that is there has it, or one of them is inserted. */
struct claims {
    i64 *first; /* by row: whose bit it is; -1 = nobody's */
    u64 *taken;
};

static void claim(struct claims *claims, i64 row) {
    i64 at = claims->first[row];
    if (at >= 0) {
        claims->taken[at >> 6] |= 1ULL << (at & 63);
    }
}

static bool is_claimed(const struct claims *claims, i64 row) {
    i64 at = claims->first[row];
    return at >= 0 && claims->taken[at >> 6] >> (at & 63) & 1;
}

/* DO NOTHING for several keys: a row that is left out by one of them takes none of the others. What each key meets,
 * and which rows have it together, is found key by key; then rows are dealt with in their order. */
static FALLIBLE meet_keys(struct conflict *c) {
    struct arena *arena = &c->rows->arena;
    u32 keys = c->table->key_count;
    i64 count = c->all->rows;
    struct claims *claims = NEW_ARRAY(arena, struct claims, keys);
    ASSERT(!c->update);
    for (u32 k = 0; k < keys; k++) {
        claims[k].first = NEW_ARRAY(arena, i64, count);
        claims[k].taken = NEW_ARRAY(arena, u64, count / 64 + 1);
    }
    TRY(arena_check(arena, &c->conn->err));
    for (u32 k = 0; k < keys; k++) {
        struct key_meets met = {.twin = c->insert, .row = c->target, .first = claims[k].first};
        TRY(version_meet(c->table, k, c->base, &c->rows->mem, count, c->all->cols, &met,
                         &c->conn->err));
        for (i64 row = 0; row < count; row++) {
            if (c->target[row] >= 0) {
                claim(&claims[k], row);
            }
        }
    }
    for (i64 row = 0; row < count; row++) {
        bool taken = false;
        for (u32 k = 0; k < keys; k++) {
            taken = taken || is_claimed(&claims[k], row);
        }
        for (u32 k = 0; k < keys && !taken; k++) {
            claim(&claims[k], row);
        }
        c->insert[row] = !taken;
        c->inserted += !taken;
        c->target[row] = -1;
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
        if (c->table->keys[k].deferrable && is_arbiter(c, k)) {
            FAIL(&c->conn->err, WRONG_STATE,
                 "ON CONFLICT does not support deferrable unique constraints as arbiters");
        }
    }
    TRY(check_not_null(c->table, count, c->all->cols, &c->conn->err)); /* also what is left out */
    u32 only = only_arbiter(c);
    if (count >= MANY && only < c->table->key_count) {
        TRY(arena_check(arena, &c->conn->err));
        return meet_rows(c, only);
    }
    if (count >= MANY && !c->update && c->table->key_count > 1) {
        TRY(arena_check(arena, &c->conn->err));
        return meet_keys(c);
    }
    struct sv *texts = NEW_ARRAY(arena, struct sv, c->table->key_count + 1);
    c->finders = NEW_ARRAY(arena, struct key_finder, c->table->key_count + 1);
    TRY(arena_check(arena, &c->conn->err));
    for (u32 k = 0; k < c->table->key_count; k++) {
        key_finder_open(&c->finders[k], c->table, c->base, k);
    }
    wf_status status = ERR_OK;
    for (i64 i = 0; i < count && !status; i++) {
        status = look_at_row(c, i, texts);
    }
    for (u32 k = 0; k < c->table->key_count; k++) {
        key_finder_close(&c->finders[k]);
    }
    return status ? status : arena_check(arena, &c->conn->err);
}

static bool is_updated(const struct conflict *c, i64 row) {
    return !c->insert[row] && c->target[row] >= 0;
}

/* The rows in conflict as columns of `excluded`: their values, then where they come in the source
 * and the row they meet. */
static struct input_col *pick_rows(struct conflict *c, i64 count) {
    struct arena *arena = &c->rows->arena;
    const struct table *table = c->table;
    struct input_col *cols = NEW_ARRAY(arena, struct input_col, table->col_count + EXCLUDED_MORE);
    i64 *numbers = NEW_ARRAY(arena, i64, MAX_OF(count, 1)), *rows = NULL, at = 0;
    for (u32 col = 0; col < table->col_count; col++) {
        i64 width = kind_bytes[type_kind(table->cols[col].type)];
        const struct input_col *from = &c->all->cols[col];
        u8 *data = arena_alloc(arena, MAX_OF(count, 1) * width);
        b8 *nulls = NEW_ARRAY(arena, b8, MAX_OF(count, 1));
        at = 0;
        for (i64 i = 0; i < c->all->rows; i++) {
            if (is_updated(c, i)) {
                memcpy(data + at * width, (const u8 *)from->data + i * width, (size_t)width);
                nulls[at++] = from->nulls && from->nulls[i];
            }
        }
        cols[col] = (struct input_col){data, nulls};
    }
    rows = NEW_ARRAY(arena, i64, MAX_OF(count, 1));
    at = 0;
    for (i64 i = 0; i < c->all->rows; i++) {
        if (is_updated(c, i)) {
            numbers[at] = i;
            rows[at++] = c->target[i];
        }
    }
    cols[table->col_count] = (struct input_col){numbers, NULL};
    cols[table->col_count + 1] = (struct input_col){rows, NULL};
    return cols;
}

/* What is new, in the order of the source: rows as they were given, or as `changed` has them, in
 * which the row of source row i is number place[i], or -1. */
static struct input_col *new_rows(struct conflict *c, const struct gathered *changed,
                                  const i64 *place, i64 count) {
    struct arena *arena = &c->rows->arena;
    const struct table *table = c->table;
    struct input_col *cols = NEW_ARRAY(arena, struct input_col, table->col_count + 1);
    for (u32 col = 0; col < table->col_count; col++) {
        i64 width = kind_bytes[type_kind(table->cols[col].type)], at = 0;
        u8 *data = arena_alloc(arena, MAX_OF(count, 1) * width);
        b8 *nulls = NEW_ARRAY(arena, b8, MAX_OF(count, 1));
        for (i64 i = 0; i < c->all->rows; i++) {
            if (!c->insert[i] && place[i] < 0) {
                continue;
            }
            const struct input_col *from = c->insert[i] ? &c->all->cols[col] : &changed->cols[col];
            i64 row = c->insert[i] ? i : place[i];
            memcpy(data + at * width, (const u8 *)from->data + row * width, (size_t)width);
            nulls[at++] = from->nulls && from->nulls[row];
        }
        cols[col] = (struct input_col){data, nulls};
    }
    return cols;
}

static FALLIBLE open_excluded(struct conflict *c, struct table **out) {
    const struct table *table = c->table;
    struct column_def *cols =
        NEW_ARRAY(&c->rows->arena, struct column_def, table->col_count + EXCLUDED_MORE);
    for (u32 i = 0; i < table->col_count; i++) {
        cols[i] = (struct column_def){.name = table->cols[i].name, .type = table->cols[i].type};
    }
    for (u32 i = 0; i < EXCLUDED_MORE; i++) {
        cols[table->col_count + i] = (struct column_def){
            .name = i == 0 ? "number" : "row", .type = type_of(TYPE_BIGINT), .not_null = 1};
    }
    TRY(arena_check(&c->rows->arena, &c->conn->err));
    *out = table_open(&c->conn->db->mem, catalog_new_id(c->conn->db->catalog), "excluded",
                      table->col_count + EXCLUDED_MORE, cols, table->tablet_shift, table->plain);
    if (!*out) {
        return memory_refused(&c->conn->db->mem, &c->conn->err, (i64)sizeof **out);
    }
    table_set_file(*out, table_file(table)); /* very many rows lie there until it is closed */
    return ERR_OK;
}

/* The rows in conflict as a version of `excluded`. */
static FALLIBLE fill_excluded(struct conflict *c, struct table *excluded, struct table_version **out) {
    struct table_version *none = table_snapshot(excluded);
    const struct input_col *cols = pick_rows(c, c->updated);
    wf_status status = arena_check(&c->rows->arena, &c->conn->err);
    status = status ? status : append_rows(c->conn, excluded, none, c->updated, cols, out);
    version_release(none);
    return status;
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
    wf_status status = fill_excluded(c, excluded, &rows);
    if (!status) {
        struct conflict_arg arg = {request->parsed, excluded};
        struct inner_select select = {.binding.script = request->script,
                                      .binding.text = parsed_text(request->parsed),
                                      .binding.bind = bind_conflict,
                                      .binding.arg = &arg,
                                      .table = excluded,
                                      .version = rows,
                                      .request = request};
        status = inner_run(c->conn, &select, out);
    }
    version_release(rows);
    table_close(excluded);
    return status;
}

struct met { /* a row of the table that a source row is in conflict with */
    i64 target, row;
};

static int by_target(const void *x, const void *y) {
    const struct met *a = x, *b = y;
    return (a->target > b->target) - (a->target < b->target);
}

/* Where the rows with these numbers come in the source. */
static FALLIBLE find_places(struct conflict *c, const i64 *ids, i64 count, i64 *place) {
    i64 met_count = 0;
    struct met *met = NEW_ARRAY(&c->rows->arena, struct met, c->all->rows + 1);
    TRY(arena_check(&c->rows->arena, &c->conn->err));
    for (i64 i = 0; i < c->all->rows; i++) {
        if (is_updated(c, i)) {
            met[met_count++] = (struct met){c->target[i], i};
        }
    }
    qsort(met, (size_t)met_count, sizeof *met, by_target);
    for (i64 i = 0; i < count; i++) {
        const struct met key = {.target = ids[i]};
        const struct met *found = bsearch(&key, met, (size_t)met_count, sizeof *met, by_target);
        CHECK(found);
        place[found->row] = i;
    }
    return ERR_OK;
}

/* A version of the base without the rows that change, and with all that is new. */
static FALLIBLE apply_rows(struct conflict *c, struct rowset *changed, struct table_version **out) {
    struct error *err = &c->conn->err;
    struct arena *arena = &c->rows->arena;
    i64 count = c->inserted + c->updated, at = 0, *ids = NULL;
    i64 *place = NEW_ARRAY(arena, i64, c->all->rows + 1);
    i64 *old = NEW_ARRAY(arena, i64, count + 1);
    struct table_version *less = version_retain(c->base);
    struct gathered all = {0};
    wf_status status = arena_check(arena, err);
    for (i64 i = 0; i < c->all->rows && !status; i++) {
        place[i] = -1;
    }
    if (!status && c->updated > 0) {
        struct table_version *next = NULL;
        status = change_row_numbers(changed, &ids, err);
        status = status ? status : find_places(c, ids, c->updated, place);
        struct deletion gone = {.count = c->updated, .rows = ids};
        status = status ? status : version_delete(c->table, less, &gone, &next, err);
        status = status ? status : gather(changed, c->table, 1, NULL, c->updated, &all, err);
        if (next) {
            version_release(less);
            less = next;
        }
    }
    for (i64 i = 0; i < c->all->rows && !status; i++) {
        if (c->insert[i] || place[i] >= 0) {
            old[at++] = c->insert[i] ? -1 : c->target[i];
        }
    }
    if (!status) {
        c->pairs = (struct row_pairs){c->updated ? count : 0, old};
        const struct input_col *cols = new_rows(c, &all, place, count);
        status = arena_check(arena, err);
        status = status ? status : append_rows(c->conn, c->table, less, count, cols, out);
    }
    gather_free(c->table, &all);
    version_release(less);
    return status;
}

/* Rows that are left out, or change others, obey the table's checks all the same: they are looked at in a version that
 * nobody sees. Those that are inserted are looked at when they are. */
static FALLIBLE check_proposed(struct conflict *c) {
    if (!c->table->check_count || c->inserted == c->all->rows) {
        return ERR_OK;
    }
    struct table_version *proposed = NULL;
    TRY(append_rows(c->conn, c->table, c->base, c->all->rows, c->all->cols, &proposed));
    wf_status status = checks_between(c->conn, c->table, c->base, proposed);
    version_discard(proposed);
    return status;
}

static FALLIBLE make_version(struct conflict *c, const struct run_request *request,
                             struct table_version **out) {
    struct rowset *changed = NULL;
    wf_status status = ERR_OK;
    if (c->update && c->updated > 0) {
        status = run_updates(c, request, &changed);
    }
    c->updated = !status && changed ? changed->answer.rows : 0;
    *out = NULL;
    if (!status && c->inserted + c->updated > 0) {
        status = apply_rows(c, changed, out);
    } else if (!status) {
        *out = version_retain(c->base);
    }
    rowset_release(changed);
    return status;
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
    status = status ? status : check_proposed(&c);
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
