/* bind_from.c: FROM: tables, derived tables, WITH names and joins; and the names they make visible.
 *
 * Part of binding. A scope lists its tables, for qualified names, and its columns in the order of
 * `*`, for bare ones; JOIN USING and NATURAL merge two columns into one of the second list only.
 * Every occurrence of a table makes fresh plan columns. Joins leave here with all conditions in
 * `conds`; the optimiser finds the keys. RIGHT is LEFT with its sides changed. The merged column of
 * a FULL join is computed by a projection above it, which gives every column a new number.
 *
 * A LATERAL item sees the columns of what stands left of it, as if it were a subquery of a query
 * over that; its join is dependent. So does the right side of an outer join whose condition
 * contains subqueries: the condition is then a filter on that side. */
#include "sql/select_int.h"
#include "codes/func.h"

/* Where an item of FROM stands. */
struct place {
    const struct cte *ctes;
    struct query *outer;   /* the query around */
    struct query *lateral; /* what LATERAL sees: items to the left, then the query around */
};

void bind_origins(struct bind *b) {
    while (b->origins.count < b->plan->cols.count) {
        VEC_PUSH(b->arena, &b->origins, ((struct origin){NULL, ""}));
    }
}

u32 bind_col_new(struct bind *b, const char *table, const char *name, struct type type,
                 bool nullable) {
    u32 col = plan_col_new(b->plan, name, type, nullable);
    bind_origins(b);
    b->origins.items[col] = (struct origin){table, name};
    return col;
}

static void scope_add_table(struct bind *b, struct scope *scope, const char *alias,
                            struct scope_col *cols, i64 count) {
    struct scope_table table = {alias, count, cols};
    VEC_PUSH(b->arena, &scope->tables, table);
    for (i64 i = 0; i < count; i++) {
        VEC_PUSH(b->arena, &scope->cols, cols[i]);
    }
}

/* Applies AS alias (a, b, …). */
static FALLIBLE rename_columns(struct bind *b, const struct json *alias, const char *table,
                               struct scope_col *cols, i64 count, i32 position) {
    TRY(bind_only(b, alias, "aliasname colnames", position));
    const struct json *names = json_get(alias, "colnames");
    if (json_count(names) > count) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "table \"%.100s\" has %lld columns available but %d columns specified", table,
                count, (int)json_count(names));
    }
    i64 i = 0;
    JSON_EACH(name, names) {
        cols[i].name = keep(b, node_string(name));
        b->origins.items[cols[i].col].name = cols[i].name;
        i++;
    }
    return ERR_OK;
}

static struct rel *scan_rel(struct bind *b, const struct snapshot_table *found, const char *alias,
                            i32 position, struct scope_col *cols) {
    const struct table *table = found->table;
    struct rel *scan = scan_new(b->plan, found, alias, position);
    bind_origins(b);
    for (u32 i = 0; i < table->col_count; i++) {
        u32 col = scan->out.items[i];
        cols[i] = (struct scope_col){b->plan->cols.items[col].name, col};
        b->origins.items[col] = (struct origin){alias, cols[i].name};
    }
    for (u32 i = 0; i < table->key_count; i++) {
        const struct table_key *key = &table->keys[i];
        if (key->primary && !key->deferrable) {
            struct scan_key known = {cols[0].col, table->col_count, key->col_count, NULL};
            u32 *numbers = NEW_ARRAY(b->arena, u32, key->col_count + 1);
            memcpy(numbers, key->cols, sizeof(u32) * key->col_count);
            known.keys = numbers;
            VEC_PUSH(b->arena, &b->scan_keys, known);
        }
    }
    return scan;
}

/* A view reads the columns that there were when it was made: those that came later are left out.
 * The object's OID, 0 = it is none. Returns how many are left. */
static i64 known_columns(const struct bind *b, u32 oid, struct scope_col *cols, i64 count) {
    const struct column_names *known = NULL;
    for (u32 i = 0; b->view && oid && i < b->view->dep_count; i++) {
        known = b->view->deps[i] == oid ? &b->view->dep_cols[i] : known;
    }
    if (!known) {
        return count;
    }
    i64 left = 0;
    for (i64 i = 0; i < count; i++) {
        bool there = false;
        for (u32 k = 0; k < known->count && !there; k++) {
            there = strcmp(known->names[k], cols[i].name) == 0;
        }
        cols[left] = cols[i];
        left += there;
    }
    return left;
}

/* A derived table, WITH query or view (oid) under a name, without the last `unseen` columns.
 * Many because a name has all of these. */
static FALLIBLE from_result(struct bind *b, const struct select_out *result, const char *name,
                            u32 oid, const struct json *alias, i32 position, i64 unseen,
                            struct scope *out) {
    i64 count = result->rel->out.count - unseen;
    struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, count + 1);
    const char *table = alias ? keep(b, json_text(alias, "aliasname")) : name;
    for (i64 i = 0; i < count; i++) {
        cols[i] = (struct scope_col){result->names[i], result->rel->out.items[i]};
        b->origins.items[cols[i].col] = (struct origin){table, cols[i].name};
    }
    count = known_columns(b, oid, cols, count);
    if (alias) {
        TRY(rename_columns(b, alias, table, cols, count, position));
    }
    out->rel = result->rel;
    scope_add_table(b, out, table, cols, count);
    return ERR_OK;
}

static const struct cte *find_cte(const struct cte *ctes, const char *name) {
    for (; ctes; ctes = ctes->outer) {
        if (strcmp(ctes->name, name) == 0) {
            return ctes;
        }
    }
    return NULL;
}

static bool ends_with(const char *name, const char *end) {
    size_t len = strlen(name);
    size_t end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

static FALLIBLE from_found(struct bind *b, const struct snapshot_table *found, const char *name,
                           u32 oid, const struct json *alias, i32 position, struct scope *out) {
    const char *shown = alias ? keep(b, json_text(alias, "aliasname")) : name;
    i64 count = found->table->col_count;
    struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, count + 1);
    out->rel = scan_rel(b, found, shown, position, cols);
    count = known_columns(b, oid, cols, count);
    if (alias) {
        TRY(rename_columns(b, alias, shown, cols, count, position));
    }
    scope_add_table(b, out, shown, cols, count);
    return ERR_OK;
}

FALLIBLE bind_table_scope(struct bind *b, const struct snapshot_table *found, const char *alias,
                          i32 position, struct scope *out) {
    i64 count = found->table->col_count;
    struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, count + 1);
    out->rel = scan_rel(b, found, alias, position, cols);
    scope_add_table(b, out, alias, cols, count);
    return ERR_OK;
}

/* The query of a view, whose text is SQL. */
static FALLIBLE view_select(struct bind *b, const struct object *view, struct select_out *out) {
    const struct parsed *outer = b->parsed;
    struct parsed_list list;
    const char *text = arena_sv(b->arena, sv_from(view->text)).ptr;
    TRY(sql_parse(b->arena, sv_from(text), &list, b->err));
    b->parsed = list.items.items[0];
    wf_status status = bind_select(b, node_body(b->parsed->node), NULL, NULL, 0, out);
    b->parsed = outer;
    return status;
}

FALLIBLE bind_view_query(struct bind *b, const struct object *view, i32 position,
                         struct select_out *out) {
    const struct object *outer_view = b->view;
    const char *path = b->snap->path;
    struct rule_request rules = {.view = view};
    i64 checks = b->plan->checks.count;
    TRY(bind_enter(b, NEST_VIEW, position));
    b->snap->path = view->path && *view->path ? view->path : NULL;
    b->view = view;
    wf_status status =
        view->logical ? bind_rules(b, &rules, -1, position, out) : view_select(b, view, out);
    b->snap->path = path;
    b->view = outer_view;
    if (status) { /* positions are those of the view's text */
        b->err->position = position;
        return status;
    }
    bind_leave(b, NEST_VIEW);
    bind_checks_place(b, checks, position);
    rel_place(b->arena, out->rel, position);
    for (u32 i = 0; i < view->col_count && i < out->rel->out.count; i++) {
        out->names[i] = keep(b, view->col_names[i]);
    }
    return ERR_OK;
}

/* A view: its text bound as a subquery, under the search path it was made under. */
static FALLIBLE from_view(struct bind *b, const struct object *view, const struct json *alias,
                          i32 position, struct scope *out) {
    struct select_out result;
    TRY(bind_view_query(b, view, position, &result));
    return from_result(b, &result, keep(b, view->name), view->oid, alias, position, 0, out);
}

static FALLIBLE from_table(struct bind *b, const struct json *body, const struct place *place,
                           struct scope *out) {
    const char *name = "";
    i32 position = json_position(body);
    TRY(bind_table_name(b, body, &name));
    const struct json *alias = json_get(body, "alias");
    const struct cte *cte = json_text(body, "schemaname") ? NULL : find_cte(place->ctes, name);
    if (cte) {
        struct select_out result;
        i64 unseen = cte->result->draft ? cte->result->added : 0;
        TRY(bind_cte_use(b, cte, &result));
        return from_result(b, &result, name, 0, alias, position, unseen, out);
    }
    if (ends_with(name, ".parquet")) {
        return unsupported(b, position, "reading Parquet files (%.100s)", name);
    }
    bool system = false;
    struct select_out listed;
    TRY(bind_system(b, json_text(body, "schemaname"), name, &system, &listed));
    if (system) {
        return from_result(b, &listed, name, 0, alias, position, 0, out);
    }
    const struct edition_entry *entry = NULL;
    TRY(bind_relation(b, body, &entry));
    if (entry->object->kind == OBJECT_VIEW) {
        return from_view(b, entry->object, alias, position, out);
    }
    if (entry->object->kind == OBJECT_SEQUENCE) {
        bind_sequence_row(b, entry->object, &listed);
        return from_result(b, &listed, name, 0, alias, position, 0, out);
    }
    if (entry->object->kind != OBJECT_TABLE) {
        FAIL_AT(b->err, WRONG_OBJECT, position, "\"%.100s\" is not a table or view", name);
    }
    struct snapshot_table found = snapshot_of(b->snap, entry);
    return from_found(b, &found, name, entry->object->oid, alias, position, out);
}

static FALLIBLE check_aliases(struct bind *b, const struct scope *left, const struct scope *right,
                              i32 position) {
    for (i64 i = 0; i < left->tables.count; i++) {
        for (i64 k = 0; k < right->tables.count; k++) {
            if (strcmp(left->tables.items[i].alias, right->tables.items[k].alias) == 0) {
                FAIL_AT(b->err, DUPLICATE_ALIAS, position,
                        "table name \"%.100s\" specified more than once",
                        left->tables.items[i].alias);
            }
        }
    }
    return ERR_OK;
}

void bind_nullable(struct bind *b, const struct rel *rel) {
    for (i64 i = 0; i < rel->out.count; i++) {
        b->plan->cols.items[rel->out.items[i]].nullable = 1;
    }
}

/* Both sides in one scope, joined; columns of `*` are added by the caller. */
static FALLIBLE join_tables(struct bind *b, const struct scope *left, const struct scope *right,
                            enum join_kind kind, i32 position, struct scope *out) {
    TRY(check_aliases(b, left, right, position));
    bool swapped = out->swapped;
    out->rel =
        rel_join(b->plan, kind, swapped ? right->rel : left->rel, swapped ? left->rel : right->rel);
    out->rel->position = position;
    i128 rows = (i128)left->rel->rows * right->rel->rows;
    out->rel->rows = rows > I64_MAX ? I64_MAX : (i64)rows;
    for (i64 i = 0; i < left->tables.count; i++) {
        VEC_PUSH(b->arena, &out->tables, left->tables.items[i]);
    }
    for (i64 i = 0; i < right->tables.count; i++) {
        VEC_PUSH(b->arena, &out->tables, right->tables.items[i]);
    }
    return ERR_OK;
}

void bind_add_conds(struct bind *b, struct rel *rel, struct expr *cond) {
    expr_split_and(b->arena, rel_conds(rel), cond);
}

struct rel *bind_filter(struct bind *b, struct rel *rel, struct expr *cond) {
    struct rel *filter = rel_new(b->plan, REL_FILTER, rel, NULL);
    bind_add_conds(b, filter, cond);
    filter->rows = MAX_OF(rel->rows / 3, 1);
    filter->position = cond->position;
    return filter;
}

static i64 count_named(const struct scope *scope, const char *name, const struct scope_col **out) {
    i64 count = 0;
    for (i64 i = 0; i < scope->cols.count; i++) {
        if (strcmp(scope->cols.items[i].name, name) == 0) {
            *out = &scope->cols.items[i];
            count++;
        }
    }
    return count;
}

const struct scope_col *scope_find(const struct scope *scope, const char *name) {
    const struct scope_col *found = NULL;
    (void)count_named(scope, name, &found);
    return found;
}

static FALLIBLE using_column(struct bind *b, const struct scope *side, const char *name,
                             const char *which, i32 position, struct expr **out) {
    const struct scope_col *found = NULL;
    i64 count = count_named(side, name, &found);
    if (count == 0) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, position,
                "column \"%.100s\" specified in USING clause does not exist in %s table", name,
                which);
    }
    if (count > 1) {
        FAIL_AT(b->err, AMBIGUOUS_COLUMN, position,
                "common column name \"%.100s\" appears more than once in %s table", name, which);
    }
    *out = expr_col(b->plan, found->col, position);
    return ERR_OK;
}

static bool is_merged(const char *const *names, i64 count, const char *name) {
    for (i64 i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The columns of USING, and what becomes of them. */
struct using {
    const char **names;
    i64 count;
    struct expr **equals; /* the comparisons */
};

/* Joins on equality of the named columns and merges them. */
static FALLIBLE join_using(struct bind *b, const struct scope *left, const struct scope *right,
                           const struct using *using, i32 position, struct scope *out) {
    const char **names = using->names;
    struct expr **equals = using->equals;
    for (i64 i = 0; i < using->count; i++) {
        struct expr *l = NULL;
        struct expr *r = NULL;
        TRY(using_column(b, left, names[i], "left", position, &l));
        TRY(using_column(b, right, names[i], "right", position, &r));
        TRY(operator_compare(b->t, FUNC_EQ, l, r, position, &equals[i]));
        bind_add_conds(b, out->rel, equals[i]);
        bool wider = equals[i]->args[0] != l && equals[i]->args[1] == r && l->type.id != r->type.id;
        bool take_right = out->swapped || (wider && out->rel->join.kind != JOIN_LEFT);
        struct scope_col merged = {keep(b, names[i]), take_right ? r->col : l->col};
        VEC_PUSH(b->arena, &out->cols, merged);
    }
    const struct scope *sides[2] = {left, right};
    for (i32 side = 0; side < 2; side++) {
        for (i64 i = 0; i < sides[side]->cols.count; i++) {
            if (!is_merged(names, using->count, sides[side]->cols.items[i].name)) {
                VEC_PUSH(b->arena, &out->cols, sides[side]->cols.items[i]);
            }
        }
    }
    return ERR_OK;
}

/* Names both sides have, in the order of the left. */
static i64 natural_names(struct bind *b, const struct scope *left, const struct scope *right,
                         const char ***out) {
    VEC(const char *) names = {0};
    for (i64 i = 0; i < left->cols.count; i++) {
        const struct scope_col *found = NULL;
        const char *name = left->cols.items[i].name;
        bool seen = is_merged(names.items, names.count, name);
        if (!seen && count_named(right, name, &found) > 0) {
            VEC_PUSH(b->arena, &names, name);
        }
    }
    *out = names.items;
    return names.count;
}

static FALLIBLE from_item(struct bind *b, const struct json *node, const struct place *place,
                          struct scope *out);

static FALLIBLE using_names(struct bind *b, const struct json *body, const struct scope *left,
                            const struct scope *right, i32 position, struct using *out) {
    const struct json *list = json_get(body, "usingClause");
    i64 count = 0;
    if (json_flag(body, "isNatural")) {
        count = natural_names(b, left, right, &out->names);
    } else if (list) {
        const char **names = NEW_ARRAY(b->arena, const char *, json_count(list) + 1);
        JSON_EACH(name, list) {
            const char *text = node_string(name);
            if (is_merged(names, count, text)) {
                FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                        "column name \"%.100s\" appears more than once in USING clause", text);
            }
            names[count++] = text;
        }
        out->names = names;
    }
    out->count = count;
    return ERR_OK;
}

/* The ON condition. Where it contains subqueries, an inner join becomes a product below them and a
 * filter; the right side of a left join is filtered for each row of the left. For FULL JOIN see
 * bind_full.c. */
static FALLIBLE join_on(struct bind *b, const struct json *quals, const struct place *place,
                        struct scope *out) {
    struct query *q = NEW(b->arena, struct query);
    struct rel *join = out->rel;
    *q = (struct query){.scope = out,
                        .outer = place->outer,
                        .clause = "JOIN conditions",
                        .subqueries_allowed = 1,
                        .ctes = place->ctes};
    struct expr *cond = NULL;
    TRY(bind_condition(b, q, quals, "JOIN/ON", &cond));
    if (q->pending.count == 0) {
        bind_add_conds(b, join, cond);
    } else if (bind_has_serials(&q->pending)) {
        return bind_join_serials(b, join, cond, &q->pending, node_position(quals), &out->rel);
    } else if (join->join.kind == JOIN_CROSS) {
        out->rel = bind_filter(b, bind_attach(b, join, &q->pending), cond);
    } else if (join->join.kind == JOIN_LEFT) {
        struct rel *right = bind_attach(b, rel_right(join), &q->pending);
        rel_set_right(join, bind_filter(b, right, cond));
        join->join.dependent = bind_depends(b, rel_left(join), rel_right(join));
    } else {
        bind_full_on(b, &q->pending, cond, out);
    }
    return ERR_OK;
}

static FALLIBLE join_condition(struct bind *b, const struct json *body, const struct scope *left,
                               const struct scope *right, const struct place *place, i32 position,
                               struct scope *out) {
    struct using using = {0};
    struct rel *join = out->rel;
    TRY(using_names(b, body, left, right, position, &using));
    using.equals = NEW_ARRAY(b->arena, struct expr *, using.count + 1);
    TRY(join_using(b, left, right, &using, position, out));
    if (json_get(body, "quals")) {
        TRY(join_on(b, json_get(body, "quals"), place, out));
    }
    if (join->join.conds.count > 0) {
        join->join.kind = join->join.kind == JOIN_CROSS ? JOIN_INNER : join->join.kind;
        join->rows = MAX_OF(left->rel->rows, right->rel->rows);
    }
    if (join->join.kind == JOIN_LEFT || join->join.kind == JOIN_FULL) {
        bind_nullable(b, rel_right(join));
    }
    if (join->join.kind == JOIN_FULL) {
        bind_nullable(b, rel_left(join));
        if (using.count > 0) {
            bind_full_using(b, out, using.equals, using.count);
        }
    }
    return ERR_OK;
}

static FALLIBLE join_kind_of(struct bind *b, const struct json *body, i32 position,
                             enum join_kind *out, b8 *out_swapped) {
    *out_swapped = json_is(body, "jointype", "JOIN_RIGHT");
    if (json_is(body, "jointype", "JOIN_INNER")) {
        *out = JOIN_CROSS; /* until it has a condition */
    } else if (json_is(body, "jointype", "JOIN_LEFT") || *out_swapped) {
        *out = JOIN_LEFT;
    } else if (json_is(body, "jointype", "JOIN_FULL")) {
        *out = JOIN_FULL;
    } else {
        return unsupported(b, position, "this kind of JOIN");
    }
    return ERR_OK;
}

/* An alias of a whole join hides the names inside. */
static FALLIBLE alias_join(struct bind *b, const struct json *alias, i32 position,
                           struct scope *io) {
    i64 count = io->cols.count;
    struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, count + 1);
    const char *name = keep(b, json_text(alias, "aliasname"));
    for (i64 i = 0; i < count; i++) {
        cols[i] = io->cols.items[i];
    }
    TRY(rename_columns(b, alias, name, cols, count, position));
    io->tables.count = 0;
    io->cols.count = 0;
    scope_add_table(b, io, name, cols, count);
    return ERR_OK;
}

/* JOIN … USING (…) AS x: the merged columns, which come first, by another name. */
static FALLIBLE alias_merged(struct bind *b, const struct json *alias, i64 count, i32 position,
                             struct scope *io) {
    struct scope_table merged = {.alias = keep(b, json_text(alias, "aliasname")),
                                 .col_count = count,
                                 .cols = NEW_ARRAY(b->arena, struct scope_col, count + 1)};
    struct scope one = {0};
    VEC_PUSH(b->arena, &one.tables, merged);
    TRY(check_aliases(b, io, &one, position));
    for (i64 i = 0; i < count; i++) {
        merged.cols[i] = io->cols.items[i];
    }
    VEC_PUSH(b->arena, &io->tables, merged);
    return ERR_OK;
}

static FALLIBLE from_join(struct bind *b, const struct json *body, const struct place *place,
                          struct scope *out) {
    i32 position = node_position(json_get(body, "rarg"));
    enum join_kind kind = JOIN_CROSS;
    TRY(bind_only(b, body,
                  "jointype isNatural larg rarg usingClause join_using_alias quals alias rtindex",
                  position));
    TRY(join_kind_of(b, body, position, &kind, &out->swapped));
    struct scope *left = NEW(b->arena, struct scope);
    struct scope right = {0};
    TRY(bind_enter(b, NEST_JOIN, position));
    TRY(from_item(b, json_get(body, "larg"), place, left));
    struct query *seen = NEW(b->arena, struct query);
    *seen = (struct query){.scope = left, .outer = place->lateral, .clause = "FROM"};
    struct place inner = {place->ctes, place->outer, seen};
    TRY(from_item(b, json_get(body, "rarg"), &inner, &right));
    bind_leave(b, NEST_JOIN);
    TRY(join_tables(b, left, &right, kind, position, out));
    if (right.lateral && bind_depends(b, left->rel, right.rel)) {
        if (out->swapped || kind == JOIN_FULL) {
            FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                    "invalid reference to FROM-clause entry: the combining JOIN type must be INNER "
                    "or LEFT for a LATERAL reference");
        }
        out->rel->join.dependent = 1;
    }
    out->lateral = left->lateral || right.lateral;
    TRY(join_condition(b, body, left, &right, place, position, out));
    const struct json *merged = json_get(body, "join_using_alias");
    const struct json *alias = json_get(body, "alias");
    if (merged) {
        i64 count = json_count(json_get(body, "usingClause"));
        TRY(alias_merged(b, merged, count, position, out));
    }
    return alias ? alias_join(b, alias, position, out) : ERR_OK;
}

/* The call of one item of ROWS FROM. */
static const struct json *rows_item(const struct json *item) {
    return json_first(json_get(node_body(item), "items"));
}

/* ROWS FROM (a, b) and WITH ORDINALITY: the functions' rows side by side, and their number. */
static FALLIBLE from_rows(struct bind *b, const struct json *body, const struct place *place,
                          struct scope *out) {
    i32 position = node_position(body);
    const struct json *functions = json_get(body, "functions");
    const struct json *alias = json_get(body, "alias");
    i64 count = json_count(functions);
    struct rel **rels = NEW_ARRAY(b->arena, struct rel *, count + 1);
    struct select_out result;
    result.names = NEW_ARRAY(b->arena, const char *, count + 2);
    i64 i = 0;
    JSON_EACH(item, functions) {
        const struct json *call = rows_item(item);
        TRY(bind_table_func(b, place->lateral, place->ctes, call, true, &rels[i],
                            &result.names[i]));
        i++;
    }
    const char *table = result.names[0];
    if (alias && count == 1) {
        result.names[0] = keep(b, json_text(alias, "aliasname"));
    }
    result.names[count] = "ordinality";
    TRY(bind_lockstep(b, rels, count, &result.rel));
    if (!json_get(body, "ordinality")) {
        struct expr **values = NEW_ARRAY(b->arena, struct expr *, count + 1);
        for (i64 k = 0; k < count; k++) {
            values[k] = expr_col(b->plan, result.rel->out.items[k], -1);
        }
        result.rel = bind_project(b, result.rel, values, result.names, count);
    }
    out->lateral = 1;
    return from_result(b, &result, table, 0, alias, position, 0, out);
}

/* The function's one column goes by the alias, if it has no name of its own. */
static FALLIBLE from_function(struct bind *b, const struct json *body, const struct place *place,
                              struct scope *out) {
    i32 position = node_position(body);
    TRY(bind_only(b, body, "functions alias lateral ordinality is_rowsfrom", position));
    const struct json *call = rows_item(json_first(json_get(body, "functions")));
    if (json_get(body, "ordinality") || json_count(json_get(body, "functions")) != 1) {
        return from_rows(b, body, place, out);
    }
    struct select_out result;
    const char *name = "";
    bool is_about = false;
    if (node_is(call, "FuncCall")) {
        TRY(bind_about(b, node_body(call), place->ctes, place->outer, &result, &is_about));
        JSON_EACH(part, json_get(node_body(call), "funcname")) {
            name = node_string(part);
        }
    }
    if (is_about) {
        return from_result(b, &result, "", 0, json_get(body, "alias"), position, 0, out);
    }
    if (strcmp(name, "read_csv") == 0 || strcmp(name, "read_csv_auto") == 0) {
        struct snapshot_table found;
        TRY(bind_file(b, node_body(call), &found));
        return from_found(b, &found, keep(b, name), 0, json_get(body, "alias"), position, out);
    }
    if (strcmp(name, "read_trie") == 0) {
        struct snapshot_table found;
        TRY(bind_trie_file(b, node_body(call), &found));
        return from_found(b, &found, keep(b, name), 0, json_get(body, "alias"), position, out);
    }
    if (strcmp(name, "logiql") == 0) {
        TRY(bind_rules_call(b, node_body(call), &result));
        return from_result(b, &result, keep(b, name), 0, json_get(body, "alias"), position, 0,
                           out);
    }
    TRY(bind_table_func(b, place->lateral, place->ctes, call, false, &result.rel, &name));
    out->lateral = 1; /* said or not, it may use what stands before it */
    const struct json *alias = json_get(body, "alias");
    const char *shown = alias ? keep(b, json_text(alias, "aliasname")) : name;
    result.names = NEW_ARRAY(b->arena, const char *, result.rel->out.count + 1);
    for (i64 i = 0; i < result.rel->out.count; i++) {
        u32 col = result.rel->out.items[i];
        result.names[i] = result.rel->out.count == 1 ? shown : b->plan->cols.items[col].name;
    }
    return from_result(b, &result, name, 0, alias, position, 0, out);
}

static FALLIBLE from_subselect(struct bind *b, const struct json *body, const struct place *place,
                               i32 position, struct scope *out) {
    TRY(bind_only(b, body, "subquery alias lateral", position));
    const struct json *query = json_get(body, "subquery");
    if (!node_is(query, "SelectStmt")) {
        return unsupported(b, position, "%s in FROM", node_type(query));
    }
    struct select_out result;
    out->lateral = json_flag(body, "lateral");
    struct query *outer = out->lateral ? place->lateral : place->outer;
    TRY(bind_subselect(b, node_body(query), place->ctes, outer, false, &result));
    return from_result(b, &result, "", 0, json_get(body, "alias"), position, 0, out);
}

static FALLIBLE from_item(struct bind *b, const struct json *node, const struct place *place,
                          struct scope *out) {
    const struct json *body = node_body(node);
    i32 position = node_position(node);
    if (++b->from_items > FROM_ITEMS_MAX) {
        FAIL_AT(b->err, TOO_COMPLEX, position,
                "statement too complex: more than %d tables and subqueries in FROM",
                (int)FROM_ITEMS_MAX);
    }
    if (node_is(node, "RangeVar")) {
        return from_table(b, body, place, out);
    }
    if (node_is(node, "JoinExpr")) {
        return from_join(b, body, place, out);
    }
    if (node_is(node, "RangeSubselect")) {
        return from_subselect(b, body, place, position, out);
    }
    if (node_is(node, "RangeFunction")) {
        return from_function(b, body, place, out);
    }
    if (node_is(node, "RangeTableSample")) {
        TRY(from_item(b, json_get(body, "relation"), place, out));
        return bind_tablesample(b, body, place->ctes, place->outer, &out->rel);
    }
    return unsupported(b, position, "%s in FROM", node_type(node));
}

/* A list that is too long alone says how long it is. */
static FALLIBLE check_length(struct bind *b, const struct json *from_clause) {
    i64 count = 0;
    i32 position = -1;
    JSON_EACH(node, from_clause) {
        position = count++ == FROM_ITEMS_MAX ? node_position(node) : position;
    }
    if (count > FROM_ITEMS_MAX) {
        FAIL_AT(b->err, TOO_COMPLEX, position,
                "statement too complex: %lld tables and subqueries in FROM, more than %d", count,
                (int)FROM_ITEMS_MAX);
    }
    return ERR_OK;
}

FALLIBLE bind_from(struct bind *b, const struct json *from_clause, const struct cte *ctes,
                   struct query *outer, struct scope *out) {
    TRY(check_length(b, from_clause));
    JSON_EACH(node, from_clause) {
        struct scope item = {0};
        struct scope *seen = NEW(b->arena, struct scope);
        struct query *left = NEW(b->arena, struct query);
        *seen = *out;
        *left = (struct query){.scope = seen, .outer = outer, .clause = "FROM"};
        struct place place = {ctes, outer, left};
        TRY(from_item(b, node, &place, &item));
        if (!out->rel) {
            *out = item;
            continue;
        }
        struct scope both = {0};
        TRY(join_tables(b, out, &item, JOIN_CROSS, node_position(node), &both));
        both.rel->join.dependent = item.lateral && bind_depends(b, out->rel, item.rel);
        both.lateral = out->lateral || item.lateral;
        TRY(join_using(b, out, &item, &(struct using){0}, -1, &both));
        *out = both;
    }
    return ERR_OK;
}

static const struct scope_table *find_table(const struct scope *scope, const char *alias) {
    for (i64 i = 0; scope && i < scope->tables.count; i++) {
        if (strcmp(scope->tables.items[i].alias, alias) == 0) {
            return &scope->tables.items[i];
        }
    }
    return NULL;
}

struct candidates {
    const struct scope_col *cols;
    i64 count;
};

static struct sv next_column(void *arg, i64 i) {
    const struct candidates *list = arg;
    return i < list->count ? sv_from(list->cols[i].name) : (struct sv){NULL, 0};
}

static wf_status no_column(struct bind *b, const char *table, const char *name,
                           struct candidates list, i32 position) {
    if (table) {
        error_set(b->err, ERR_UNDEFINED_COLUMN, position, "column %.100s.%.100s does not exist",
                  table, name);
    } else {
        error_set(b->err, ERR_UNDEFINED_COLUMN, position, "column \"%.100s\" does not exist", name);
    }
    const char *near = nearest_name(b->arena, sv_from(name), next_column, &list);
    for (i64 i = 0; near && i < list.count; i++) {
        if (strcmp(list.cols[i].name, near) == 0) {
            const struct origin *origin = &b->origins.items[list.cols[i].col];
            error_hint(b->err, "Perhaps you meant \"%s%s%s\".", origin->table ? origin->table : "",
                       origin->table ? "." : "", near);
            break;
        }
    }
    return ERR_UNDEFINED_COLUMN;
}

/* An output column within an expression of ORDER BY, where no table has a column of that name. PostgreSQL knows
 * them only as whole expressions. */
static FALLIBLE output_column(struct bind *b, const struct query *q, const char *name, i32 position,
                              struct expr **out) {
    i64 found = -1;
    *out = NULL;
    if (q->outputs && !q->in_agg && !q->in_window) {
        TRY(select_named(b, q->outputs, name, q->clause, position, &found));
    }
    if (found >= 0 && !expr_is_volatile(q->outputs->exprs.items[found])) { /* it would be asked twice */
        *out = q->outputs->exprs.items[found];
    }
    return ERR_OK;
}

static FALLIBLE bare_column(struct bind *b, struct query *q, const char *name, i32 position,
                            struct expr **out) {
    const struct scope_col *found = NULL;
    i64 count = 0;
    for (const struct query *at = q; at && count == 0; at = at->outer) {
        count = at->scope ? count_named(at->scope, name, &found) : 0;
    }
    if (count > 1) {
        FAIL_AT(b->err, AMBIGUOUS_COLUMN, position, "column reference \"%.100s\" is ambiguous",
                name);
    }
    if (count == 0) {
        TRY(output_column(b, q, name, position, out));
    }
    if (count == 0 && *out) {
        return ERR_OK;
    }
    if (count == 0) {
        struct candidates list = {NULL, 0};
        if (q->scope) {
            list = (struct candidates){q->scope->cols.items, q->scope->cols.count};
        }
        if (find_table(q->scope, name)) {
            return unsupported(b, position, "a whole row (\"%.60s\") as a value", name);
        }
        return no_column(b, NULL, name, list, position);
    }
    *out = expr_col(b->plan, found->col, position);
    return ERR_OK;
}

static FALLIBLE need_table(struct bind *b, struct query *q, const char *alias, i32 position,
                           const struct scope_table **out) {
    *out = NULL;
    for (const struct query *at = q; at && !*out; at = at->outer) {
        *out = find_table(at->scope, alias);
    }
    if (!*out) {
        FAIL_AT(b->err, UNDEFINED_TABLE, position, "missing FROM-clause entry for table \"%.100s\"",
                alias);
    }
    return ERR_OK;
}

static FALLIBLE table_column(struct bind *b, struct query *q, const char *alias, const char *name,
                             i32 position, struct expr **out) {
    const struct scope_table *table = NULL;
    TRY(need_table(b, q, alias, position, &table));
    const struct scope_col *found = NULL;
    for (i64 i = 0; i < table->col_count; i++) {
        if (strcmp(table->cols[i].name, name) != 0) {
            continue;
        }
        if (found) {
            FAIL_AT(b->err, AMBIGUOUS_COLUMN, position, "column reference \"%.100s\" is ambiguous",
                    name);
        }
        found = &table->cols[i];
    }
    if (!found) {
        struct candidates list = {table->cols, table->col_count};
        return no_column(b, alias, name, list, position);
    }
    *out = expr_col(b->plan, found->col, position);
    return ERR_OK;
}

/* a, t.a or main.t.a: the names of a ColumnRef. The star, where allowed, is the last, as NULL. */
static FALLIBLE column_names(struct bind *b, const struct json *body, const char *names[3],
                             i32 *out_count) {
    const struct json *fields = json_get(body, "fields");
    i32 position = json_position(body);
    i32 count = json_count(fields);
    if (count > 4) {
        FAIL_AT(b->err, SYNTAX, position, "improper qualified name (too many dotted names)");
    }
    if (count > 3) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "cross-database references are not implemented");
    }
    i32 i = 0;
    JSON_EACH(field, fields) {
        names[i++] = node_is(field, "A_Star") ? NULL : node_string(field);
    }
    if (count == 3) { /* tables in scope do not remember their schema; it must at least exist */
        TRY(snapshot_open(b->snap, b->err));
        if (!names[0] || !edition_find_schema(b->snap->edition, sv_from(names[0]))) {
            FAIL_AT(b->err, UNDEFINED_TABLE, position,
                    "missing FROM-clause entry for table \"%.100s\"", names[1] ? names[1] : "");
        }
    }
    *out_count = count;
    return ERR_OK;
}

bool scope_has(const struct scope *scope, u32 col) {
    for (i64 t = 0; scope && t < scope->tables.count; t++) {
        for (i64 i = 0; i < scope->tables.items[t].col_count; i++) {
            if (scope->tables.items[t].cols[i].col == col) {
                return true;
            }
        }
    }
    for (i64 i = 0; scope && i < scope->cols.count; i++) {
        if (scope->cols.items[i].col == col) {
            return true;
        }
    }
    return false;
}

/* The table that a ColumnRef names as a whole: t or t.*; NULL when it is something else. */
static FALLIBLE whole_table(struct bind *b, struct query *q, const struct json *node,
                            const char **out_alias, const struct scope_table **out) {
    const char *names[3] = {NULL, NULL, NULL};
    const struct scope_col *col = NULL;
    i32 count = 0;
    *out = NULL;
    if (!node_is(node, "ColumnRef")) {
        return ERR_OK;
    }
    TRY(column_names(b, node_body(node), names, &count));
    if (count > 1 && !names[count - 1] && names[count - 2]) {
        *out_alias = names[count - 2];
        return need_table(b, q, names[count - 2], node_position(node), out);
    }
    for (const struct query *at = q; at && count == 1 && names[0] && !col && !*out;
         at = at->outer) {
        (void)(at->scope && count_named(at->scope, names[0], &col));
        *out = col ? NULL : find_table(at->scope, names[0]);
    }
    *out_alias = names[0];
    return ERR_OK;
}

FALLIBLE bind_whole_row(struct bind *b, struct query *q, const struct json *node,
                        struct expr ***out, i32 *out_count) {
    const struct scope_table *table = NULL;
    const char *alias = NULL;
    *out = NULL;
    *out_count = 0;
    TRY(whole_table(b, q, node, &alias, &table));
    if (table) {
        *out = NEW_ARRAY(b->arena, struct expr *, table->col_count + 1);
        for (i64 i = 0; i < table->col_count; i++) {
            (*out)[(*out_count)++] = expr_col(b->plan, table->cols[i].col, node_position(node));
        }
    }
    return ERR_OK;
}

/* (t).a is t.a. */
FALLIBLE bind_indirection(struct bind *b, struct query *q, const struct json *body,
                          struct expr **out) {
    const struct json *arg = json_get(body, "arg"), *parts = json_get(body, "indirection");
    const struct scope_table *table = NULL;
    const char *alias = NULL;
    i32 position = node_position(arg);
    TRY(whole_table(b, q, arg, &alias, &table));
    if (!table || json_count(parts) != 1 || !node_is(json_first(parts), "String")) {
        return unsupported(b, position, "an array subscript or a field of a value");
    }
    return table_column(b, q, alias, node_string(json_first(parts)), position, out);
}

FALLIBLE bind_column(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    const char *names[3] = {NULL, NULL, NULL};
    i32 count = 0;
    i32 position = json_position(body);
    TRY(bind_only(b, body, "fields location", position));
    TRY(column_names(b, body, names, &count));
    if (count < 1 || !names[count - 1]) {
        return unsupported(b, position, "* as a value");
    }
    TRY(count == 1 ? bare_column(b, q, names[0], position, out)
                   : table_column(b, q, names[count - 2], names[count - 1], position, out));
    bool bounds = strcmp(q->clause, "LIMIT") == 0 || strcmp(q->clause, "OFFSET") == 0;
    if (bounds && scope_has(q->scope, (*out)->col)) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "argument of %s must not contain variables", q->clause);
    }
    return ERR_OK;
}

FALLIBLE bind_star(struct bind *b, struct query *q, const struct json *node,
                   const struct scope_col **out_cols, i64 *out_count) {
    *out_count = -1;
    if (!node_is(node, "ColumnRef")) {
        return ERR_OK;
    }
    const struct json *body = node_body(node);
    const char *names[3] = {NULL, NULL, NULL};
    i32 count = 0;
    TRY(column_names(b, body, names, &count));
    if (count < 1 || names[count - 1]) {
        return ERR_OK;
    }
    i32 position = json_position(body);
    if (count > 1) {
        const struct scope_table *table = NULL;
        TRY(need_table(b, q, names[count - 2], position, &table));
        *out_cols = table->cols;
        *out_count = table->col_count;
        return ERR_OK;
    }
    if (q->scope->tables.count == 0) {
        FAIL_AT(b->err, SYNTAX, position, "SELECT * with no tables specified is not valid");
    }
    *out_cols = q->scope->cols.items;
    *out_count = q->scope->cols.count;
    return ERR_OK;
}
