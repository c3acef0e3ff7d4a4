/* bind_from.c: FROM: tables, derived tables, WITH names and joins; and the names they make visible.
 *
 * Part of binding. A scope lists its tables, for qualified names, and its columns in the order of
 * `*`, for bare ones; JOIN USING and NATURAL merge two columns into one of the second list only.
 * Every occurrence of a table makes fresh plan columns, so a WITH query that is used twice is
 * simply bound twice. Joins leave here with all conditions in `conds`; the optimiser finds the
 * keys. */
#include "sql/sql_int.h"

u32 bind_col_new(struct bind *b, const char *table, const char *name, struct type type,
                 bool nullable) {
    struct origin origin = {table, name};
    while (b->origins.count < b->plan->cols.count) {
        VEC_PUSH(b->arena, &b->origins, ((struct origin){NULL, ""}));
    }
    VEC_PUSH(b->arena, &b->origins, origin);
    return plan_col_new(b->plan, name, type, nullable);
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
    const struct table_version *version = found->version;
    struct rel *scan = rel_new(b->plan, REL_SCAN, NULL, NULL);
    scan->position = position;
    scan->table_id = table->id;
    scan->table_name = arena_sv(b->arena, sv_from(table->name)).ptr;
    scan->alias = alias;
    scan->table_rows = version->rows;
    scan->rows = version->rows;
    for (u32 i = 0; i < table->col_count; i++) {
        const struct column_stats *stats = &version->stats[i];
        bool no_nulls = stats->null_count == 0;
        const char *name = arena_sv(b->arena, sv_from(table->cols[i].name)).ptr;
        u32 col = bind_col_new(b, alias, name, table->cols[i].type,
                               !no_nulls && !table->cols[i].not_null);
        struct scan_col scan_col = {.col = col,
                                    .table_col = i,
                                    .range = stats->range,
                                    .no_nulls = no_nulls,
                                    .all_dict = stats->all_dict,
                                    .unique = stats->unique,
                                    .distinct = stats->distinct};
        if (stats->all_dict) { /* what is known of text is how many codes it has */
            scan_col.range = range_of_value(0);
            scan_col.range.hi = stats->dict_len - 1;
        }
        VEC_PUSH(b->arena, &scan->scan_cols, scan_col);
        VEC_PUSH(b->arena, &scan->out, col);
        cols[i] = (struct scope_col){name, col};
    }
    return scan;
}

/* A derived table or WITH query under a name. */
static FALLIBLE from_select(struct bind *b, const struct json *select, const struct cte *ctes,
                            const char *name, const struct json *inner_names,
                            const struct json *alias, i32 position, struct scope *out) {
    struct select_out result;
    TRY(bind_select(b, select, ctes, NULL, 0, &result));
    i64 count = result.rel->out.count;
    struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, count + 1);
    const char *table = alias ? keep(b, json_text(alias, "aliasname")) : name;
    for (i64 i = 0; i < count; i++) {
        cols[i] = (struct scope_col){result.names[i], result.rel->out.items[i]};
        b->origins.items[cols[i].col] = (struct origin){table, cols[i].name};
    }
    if (json_count(inner_names) > count) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "table \"%.100s\" has %lld columns available but %d columns specified", name, count,
                (int)json_count(inner_names));
    }
    i64 i = 0;
    JSON_EACH(inner, inner_names) {
        cols[i++].name = keep(b, node_string(inner));
    }
    if (alias) {
        TRY(rename_columns(b, alias, table, cols, count, position));
    }
    out->rel = result.rel;
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

static FALLIBLE from_table(struct bind *b, const struct json *body, const struct cte *ctes,
                           struct scope *out) {
    const char *name = "";
    i32 position = json_position(body);
    TRY(bind_table_name(b, body, &name));
    const struct json *alias = json_get(body, "alias");
    const struct cte *cte = json_text(body, "schemaname") ? NULL : find_cte(ctes, name);
    if (cte) {
        *cte->used = 1;
        const struct json *query = node_body(json_get(cte->body, "ctequery"));
        return from_select(b, query, cte->outer, name, json_get(cte->body, "aliascolnames"), alias,
                           position, out);
    }
    if (ends_with(name, ".parquet")) {
        return unsupported(b, position, "reading Parquet files (%.100s)", name);
    }
    struct snapshot_table found;
    TRY(snapshot_find(b->snap, sv_from(name), position, &found, b->err));
    const char *shown = alias ? keep(b, json_text(alias, "aliasname")) : name;
    i64 count = found.table->col_count;
    struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, count + 1);
    out->rel = scan_rel(b, &found, shown, position, cols);
    if (alias) {
        TRY(rename_columns(b, alias, shown, cols, count, position));
    }
    scope_add_table(b, out, shown, cols, count);
    return ERR_OK;
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

/* Both sides in one scope, joined; columns of `*` are added by the caller. */
static FALLIBLE join_tables(struct bind *b, const struct scope *left, const struct scope *right,
                            i32 position, struct scope *out) {
    TRY(check_aliases(b, left, right, position));
    out->rel = rel_new(b->plan, REL_JOIN, left->rel, right->rel);
    out->rel->join = JOIN_CROSS;
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

static void add_conds(struct bind *b, struct rel *rel, struct expr *cond) {
    if (cond->kind != EXPR_AND) {
        VEC_PUSH(b->arena, &rel->conds, cond);
        return;
    }
    for (i32 i = 0; i < cond->arg_count; i++) {
        add_conds(b, rel, cond->args[i]);
    }
}

struct rel *bind_filter(struct bind *b, struct rel *rel, struct expr *cond) {
    struct rel *filter = rel_new(b->plan, REL_FILTER, rel, NULL);
    add_conds(b, filter, cond);
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

/* Joins on equality of the named columns and merges them. */
static FALLIBLE join_using(struct bind *b, const struct scope *left, const struct scope *right,
                           const char *const *names, i64 count, i32 position, struct scope *out) {
    for (i64 i = 0; i < count; i++) {
        struct expr *l = NULL;
        struct expr *r = NULL;
        struct expr *equal = NULL;
        TRY(using_column(b, left, names[i], "left", position, &l));
        TRY(using_column(b, right, names[i], "right", position, &r));
        TRY(bind_compare(b, FUNC_EQ, l, r, position, &equal));
        add_conds(b, out->rel, equal);
        bool take_right = equal->args[0] != l && equal->args[1] == r && l->type.id != r->type.id;
        struct scope_col merged = {keep(b, names[i]), take_right ? r->col : l->col};
        VEC_PUSH(b->arena, &out->cols, merged);
    }
    const struct scope *sides[2] = {left, right};
    for (i32 side = 0; side < 2; side++) {
        for (i64 i = 0; i < sides[side]->cols.count; i++) {
            if (!is_merged(names, count, sides[side]->cols.items[i].name)) {
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

static FALLIBLE from_item(struct bind *b, const struct json *node, const struct cte *ctes,
                          struct scope *out);

static FALLIBLE join_condition(struct bind *b, const struct json *body, const struct scope *left,
                               const struct scope *right, const struct cte *ctes, i32 position,
                               struct scope *out) {
    const struct json *using = json_get(body, "usingClause");
    const char **names = NULL;
    i64 count = 0;
    if (json_flag(body, "isNatural")) {
        count = natural_names(b, left, right, &names);
    } else if (using) {
        names = NEW_ARRAY(b->arena, const char *, json_count(using) + 1);
        JSON_EACH(name, using) {
            const char *text = node_string(name);
            if (is_merged(names, count, text)) {
                FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                        "column name \"%.100s\" appears more than once in USING clause", text);
            }
            names[count++] = text;
        }
    }
    TRY(join_using(b, left, right, names, count, position, out));
    if (json_get(body, "quals")) {
        struct query q = {.scope = out, .clause = "JOIN conditions", .ctes = ctes};
        struct expr *cond = NULL;
        TRY(bind_condition(b, &q, json_get(body, "quals"), "JOIN/ON", &cond));
        add_conds(b, out->rel, cond);
    }
    if (out->rel->conds.count > 0) {
        out->rel->join = JOIN_INNER;
        out->rel->rows = MAX_OF(left->rel->rows, right->rel->rows);
    }
    return ERR_OK;
}

static FALLIBLE from_join(struct bind *b, const struct json *body, const struct cte *ctes,
                          struct scope *out) {
    i32 position = node_position(json_get(body, "rarg"));
    TRY(bind_only(b, body, "jointype isNatural larg rarg usingClause quals rtindex", position));
    if (!json_is(body, "jointype", "JOIN_INNER")) {
        const char *type = json_text(body, "jointype");
        return unsupported(b, position, "%s JOIN",
                           type && strncmp(type, "JOIN_", 5) == 0 ? type + 5 : "this kind of");
    }
    struct scope left = {0};
    struct scope right = {0};
    TRY(bind_enter(b, JOIN_DEPTH_COST, position));
    TRY(from_item(b, json_get(body, "larg"), ctes, &left));
    TRY(from_item(b, json_get(body, "rarg"), ctes, &right));
    b->depth -= JOIN_DEPTH_COST;
    TRY(join_tables(b, &left, &right, position, out));
    return join_condition(b, body, &left, &right, ctes, position, out);
}

static FALLIBLE from_item(struct bind *b, const struct json *node, const struct cte *ctes,
                          struct scope *out) {
    const struct json *body = node_body(node);
    i32 position = node_position(node);
    if (++b->from_items > FROM_ITEMS_MAX) {
        FAIL_AT(b->err, TOO_COMPLEX, position,
                "statement too complex: more than %d tables and subqueries in FROM",
                (int)FROM_ITEMS_MAX);
    }
    if (node_is(node, "RangeVar")) {
        return from_table(b, body, ctes, out);
    }
    if (node_is(node, "JoinExpr")) {
        return from_join(b, body, ctes, out);
    }
    if (node_is(node, "RangeSubselect")) {
        TRY(bind_only(b, body, "subquery alias", position));
        const struct json *query = json_get(body, "subquery");
        if (!node_is(query, "SelectStmt")) {
            return unsupported(b, position, "%s in FROM", node_type(query));
        }
        return from_select(b, node_body(query), ctes, "", NULL, json_get(body, "alias"), position,
                           out);
    }
    if (node_is(node, "RangeFunction")) {
        return unsupported(b, position, "a function in FROM");
    }
    if (node_is(node, "RangeTableSample")) {
        return unsupported(b, position, "TABLESAMPLE");
    }
    return unsupported(b, position, "%s in FROM", node_type(node));
}

FALLIBLE bind_from(struct bind *b, const struct json *from_clause, const struct cte *ctes,
                   struct scope *out) {
    JSON_EACH(node, from_clause) {
        struct scope item = {0};
        TRY(from_item(b, node, ctes, &item));
        if (!out->rel) {
            *out = item;
            continue;
        }
        struct scope both = {0};
        TRY(join_tables(b, out, &item, node_position(node), &both));
        TRY(join_using(b, out, &item, NULL, 0, -1, &both));
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

static FALLIBLE bare_column(struct bind *b, struct query *q, const char *name, i32 position,
                            struct expr **out) {
    const struct scope_col *found = NULL;
    i64 count = q->scope ? count_named(q->scope, name, &found) : 0;
    if (count > 1) {
        FAIL_AT(b->err, AMBIGUOUS_COLUMN, position, "column reference \"%.100s\" is ambiguous",
                name);
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
    *out = find_table(q->scope, alias);
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
    if (count > 3) {
        return unsupported(b, position, "a name of more than three parts");
    }
    i32 i = 0;
    JSON_EACH(field, fields) {
        names[i++] = node_is(field, "A_Star") ? NULL : node_string(field);
    }
    if (count == 3 && strcmp(names[0] ? names[0] : "", "main") != 0) {
        FAIL_AT(b->err, UNDEFINED_TABLE, position, "missing FROM-clause entry for table \"%.100s\"",
                names[1] ? names[1] : "");
    }
    *out_count = count;
    return ERR_OK;
}

FALLIBLE bind_column(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    const char *names[3] = {NULL, NULL, NULL};
    i32 count = 0;
    i32 position = json_position(body);
    TRY(bind_only(b, body, "fields location", position));
    TRY(column_names(b, body, names, &count));
    if (strcmp(q->clause, "LIMIT") == 0 || strcmp(q->clause, "OFFSET") == 0) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "argument of %s must not contain variables", q->clause);
    }
    if (count < 1 || !names[count - 1]) {
        return unsupported(b, position, "* as a value");
    }
    return count == 1 ? bare_column(b, q, names[0], position, out)
                      : table_column(b, q, names[count - 2], names[count - 1], position, out);
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
