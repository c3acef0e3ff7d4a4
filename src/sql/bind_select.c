/* bind_select.c: SELECT and VALUES, clause by clause, to a tree of operators.
 *
 * Part of binding. The shape is always FROM, FILTER (where), AGG, FILTER (having), PROJECT, AGG
 * (distinct), SORT, LIMIT, and each is there only if the query asks for it. Expressions are bound
 * over the columns of FROM; if there are groups, all that stands above the AGG is rewritten at the
 * end (bind_agg.c). An ORDER BY expression that is no output column rides along as an extra column,
 * which a last PROJECT drops. */
#include "sql/sql_int.h"

struct order_item {
    i64 target; /* index into exprs: a select item, or an extra one behind them */
    b8 descending;
    b8 nulls_first;
};

struct select {
    const struct json *body;
    struct query query;
    struct scope scope;
    struct rel *rel;
    struct expr *where;
    struct expr *having;
    VEC(struct expr *) exprs; /* select list, then extra sort expressions */
    VEC(const char *) names;
    i64 shown; /* of exprs, the select list */
    VEC(struct expr *) keys;
    VEC(struct order_item) order;
    b8 distinct;
};

struct rel *bind_project(struct bind *b, struct rel *rel, struct expr **exprs, const char **names,
                         i64 count) {
    struct rel *project = rel_new(b->plan, REL_PROJECT, rel, NULL);
    for (i64 i = 0; i < count; i++) {
        u32 col = bind_col_new(b, NULL, names[i], exprs[i]->type, expr_nullable(b->plan, exprs[i]));
        VEC_PUSH(b->arena, &project->exprs, exprs[i]);
        VEC_PUSH(b->arena, &project->out, col);
    }
    project->rows = rel->rows;
    return project;
}

static void add_target(struct bind *b, struct select *s, struct expr *expr, const char *name) {
    VEC_PUSH(b->arena, &s->exprs, expr);
    VEC_PUSH(b->arena, &s->names, name);
}

static FALLIBLE bind_target(struct bind *b, struct select *s, const struct json *target,
                            const struct column_def *targets, u32 target_count) {
    i32 position = json_position(target);
    TRY(bind_only(b, target, "name val location", position));
    const struct json *val = json_get(target, "val");
    const struct scope_col *cols = NULL;
    i64 count = -1;
    TRY(bind_star(b, &s->query, val, &cols, &count));
    for (i64 i = 0; i < count; i++) {
        add_target(b, s, expr_col(b->plan, cols[i].col, position), cols[i].name);
    }
    if (count >= 0) {
        return ERR_OK;
    }
    struct expr *expr = NULL;
    TRY(bind_expr(b, &s->query, val, &expr));
    const char *alias = json_text(target, "name");
    i64 at = s->exprs.count;
    if (is_unknown(expr) && at < target_count) {
        TRY(coerce_assign(b, expr, &targets[at], &expr));
    } else {
        TRY(coerce_unknown(b, expr, type_of(TYPE_TEXT), &expr));
    }
    add_target(b, s, expr, keep(b, alias ? alias : output_name(val)));
    return ERR_OK;
}

static FALLIBLE bind_targets(struct bind *b, struct select *s, const struct column_def *targets,
                             u32 target_count) {
    s->query.clause = "SELECT";
    s->query.aggs_allowed = 1;
    JSON_EACH(node, json_get(s->body, "targetList")) {
        TRY(bind_target(b, s, node_body(node), targets, target_count));
    }
    s->query.aggs_allowed = 0;
    s->shown = s->exprs.count;
    if (s->shown == 0) {
        return unsupported(b, node_position(s->body), "SELECT without columns");
    }
    if (s->shown > COLUMNS_MAX + 64) {
        FAIL(b->err, TOO_MANY_COLUMNS, "a SELECT can have at most %d columns",
             (int)COLUMNS_MAX + 64);
    }
    return ERR_OK;
}

/* The select item with that name; -1 when none; ambiguity between different expressions is an
 * error. */
static FALLIBLE target_named(struct bind *b, struct select *s, const char *name, const char *clause,
                             i32 position, i64 *out) {
    *out = -1;
    for (i64 i = 0; i < s->shown; i++) {
        if (strcmp(s->names.items[i], name) != 0) {
            continue;
        }
        if (*out >= 0 && !expr_equal(s->exprs.items[*out], s->exprs.items[i])) {
            FAIL_AT(b->err, AMBIGUOUS_COLUMN, position, "%s \"%.100s\" is ambiguous", clause, name);
        }
        *out = *out >= 0 ? *out : i;
    }
    return ERR_OK;
}

/* The one name of a bare column reference, or NULL. */
static const char *bare_name(const struct json *node) {
    const struct json *fields = json_get(node_body(node), "fields");
    if (!node_is(node, "ColumnRef") || json_count(fields) != 1 ||
        !node_is(json_first(fields), "String")) {
        return NULL;
    }
    return node_string(json_first(fields));
}

/* A constant stands for a position in GROUP BY and ORDER BY; -1 when the node is no constant. */
static FALLIBLE target_numbered(struct bind *b, struct select *s, const struct json *node,
                                const char *clause, i64 *out) {
    *out = -1;
    if (!node_is(node, "A_Const")) {
        return ERR_OK;
    }
    const struct json *body = node_body(node);
    i32 position = json_position(body);
    const struct json *integer = json_get(body, "ival");
    if (!integer) {
        FAIL_AT(b->err, SYNTAX, position, "non-integer constant in %s", clause);
    }
    const struct json *value = json_get(integer, "ival");
    i64 number = value ? value->number : lex_integer(b->parsed->script, position);
    if (number < 1 || number > s->shown) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "%s position %lld is not in select list", clause, number);
    }
    *out = number - 1;
    return ERR_OK;
}

static bool visit_no_agg(const struct expr *expr, void *arg) {
    const struct query *q = arg;
    for (i64 i = 0; expr->kind == EXPR_COL && i < q->calls.count; i++) {
        if (q->calls.items[i].col == expr->col) {
            return false;
        }
    }
    return true;
}

static FALLIBLE bind_group_key(struct bind *b, struct select *s, const struct json *node) {
    i64 target = -1;
    const char *name = bare_name(node);
    bool in_scope = name && scope_find(&s->scope, name) != NULL;
    if (node_is(node, "GroupingSet")) {
        return unsupported(b, node_position(node), "ROLLUP, CUBE and GROUPING SETS");
    }
    TRY(target_numbered(b, s, node, "GROUP BY", &target));
    if (name && !in_scope) { /* a column of FROM comes before an alias */
        TRY(target_named(b, s, name, "GROUP BY", node_position(node), &target));
    }
    struct expr *key = NULL;
    if (target >= 0) {
        key = s->exprs.items[target];
        if (!expr_walk(key, visit_no_agg, &s->query)) {
            FAIL_AT(b->err, GROUPING, key->position,
                    "aggregate functions are not allowed in GROUP BY");
        }
    } else {
        TRY(bind_expr(b, &s->query, node, &key));
        TRY(coerce_unknown(b, key, type_of(TYPE_TEXT), &key));
    }
    for (i64 i = 0; i < s->keys.count; i++) {
        if (expr_equal(s->keys.items[i], key)) {
            return ERR_OK;
        }
    }
    VEC_PUSH(b->arena, &s->keys, key);
    return ERR_OK;
}

/* The select item equal to an ORDER BY expression, added behind them when there is none. */
static FALLIBLE order_target(struct bind *b, struct select *s, const struct json *node, i64 *out) {
    const char *name = bare_name(node);
    TRY(target_numbered(b, s, node, "ORDER BY", out));
    if (name && *out < 0) {
        TRY(target_named(b, s, name, "ORDER BY", node_position(node), out));
    }
    if (*out >= 0) {
        return ERR_OK;
    }
    struct expr *expr = NULL;
    TRY(bind_expr(b, &s->query, node, &expr));
    TRY(coerce_unknown(b, expr, type_of(TYPE_TEXT), &expr));
    for (i64 i = 0; i < s->exprs.count; i++) {
        if (expr_equal(s->exprs.items[i], expr)) {
            *out = i;
            return ERR_OK;
        }
    }
    if (s->distinct) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, node_position(node),
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list");
    }
    *out = s->exprs.count;
    add_target(b, s, expr, expr->kind == EXPR_COL ? b->plan->cols.items[expr->col].name : "sort");
    return ERR_OK;
}

static FALLIBLE bind_order(struct bind *b, struct select *s) {
    s->query.clause = "ORDER BY";
    s->query.aggs_allowed = 1;
    JSON_EACH(node, json_get(s->body, "sortClause")) {
        const struct json *sort = node_body(node);
        struct order_item item = {0};
        TRY(bind_only(b, sort, "node sortby_dir sortby_nulls location",
                      node_position(json_get(sort, "node"))));
        if (json_is(sort, "sortby_dir", "SORTBY_USING")) {
            return unsupported(b, node_position(json_get(sort, "node")), "ORDER BY ... USING");
        }
        item.descending = json_is(sort, "sortby_dir", "SORTBY_DESC");
        item.nulls_first = item.descending;
        if (!json_is(sort, "sortby_nulls", "SORTBY_NULLS_DEFAULT")) {
            item.nulls_first = json_is(sort, "sortby_nulls", "SORTBY_NULLS_FIRST");
        }
        TRY(order_target(b, s, json_get(sort, "node"), &item.target));
        VEC_PUSH(b->arena, &s->order, item);
    }
    s->query.aggs_allowed = 0;
    return ERR_OK;
}

/* DISTINCT is an array with one empty node; DISTINCT ON has expressions. */
static FALLIBLE bind_distinct_clause(struct bind *b, struct select *s) {
    const struct json *clause = json_get(s->body, "distinctClause");
    JSON_EACH(node, clause) {
        if (node_body(node)) {
            return unsupported(b, node_position(node), "DISTINCT ON");
        }
    }
    s->distinct = clause != NULL;
    return ERR_OK;
}

static FALLIBLE bind_clauses(struct bind *b, struct select *s, const struct column_def *targets,
                             u32 target_count) {
    const struct json *where = json_get(s->body, "whereClause");
    const struct json *having = json_get(s->body, "havingClause");
    if (where) {
        s->query.clause = "WHERE";
        TRY(bind_condition(b, &s->query, where, "WHERE", &s->where));
    }
    TRY(bind_distinct_clause(b, s));
    TRY(bind_targets(b, s, targets, target_count));
    s->query.clause = "GROUP BY";
    JSON_EACH(node, json_get(s->body, "groupClause")) {
        TRY(bind_group_key(b, s, node));
    }
    if (having) {
        s->query.clause = "HAVING";
        s->query.aggs_allowed = 1;
        TRY(bind_condition(b, &s->query, having, "HAVING", &s->having));
        s->query.aggs_allowed = 0;
    }
    return bind_order(b, s);
}

static FALLIBLE build_groups(struct bind *b, struct select *s) {
    if (s->keys.count == 0 && s->query.calls.count == 0) {
        if (!s->having) {
            return ERR_OK;
        }
        bind_count_star(b, &s->query); /* HAVING alone makes one group, which must have a column */
    }
    s->rel = bind_agg_rel(b, &s->query, s->rel, s->keys.items, s->keys.count);
    const struct rel *agg = s->rel;
    for (i64 i = 0; i < s->exprs.count; i++) {
        TRY(bind_grouped(b, agg, s->exprs.items[i], &s->exprs.items[i]));
    }
    if (s->having) {
        TRY(bind_grouped(b, agg, s->having, &s->having));
        s->rel = bind_filter(b, s->rel, s->having);
    }
    return ERR_OK;
}

static struct rel *distinct_rel(struct bind *b, struct rel *rel) {
    struct rel *agg = rel_new(b->plan, REL_AGG, rel, NULL);
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 from = rel->out.items[i];
        struct plan_col col = b->plan->cols.items[from];
        VEC_PUSH(b->arena, &agg->exprs, expr_col(b->plan, from, -1));
        u32 to = bind_col_new(b, NULL, col.name, col.type, col.nullable);
        VEC_PUSH(b->arena, &agg->out, to);
    }
    agg->rows = MAX_OF(rel->rows / 10, 1);
    return agg;
}

static struct rel *sort_rel(struct bind *b, struct select *s, struct rel *rel) {
    struct rel *sort = rel_new(b->plan, REL_SORT, rel, NULL);
    for (i64 i = 0; i < s->order.count; i++) {
        const struct order_item *item = &s->order.items[i];
        u32 col = rel->out.items[item->target];
        struct order_key key = {expr_col(b->plan, col, -1), item->descending, item->nulls_first};
        VEC_PUSH(b->arena, &sort->order, key);
    }
    sort->rows = rel->rows;
    return sort;
}

/* LIMIT or OFFSET: a constant or a parameter, as bigint; NULL means none. */
static FALLIBLE bind_bound(struct bind *b, const struct json *node, const char *clause,
                           struct expr **out) {
    struct query q = {.clause = clause};
    struct expr *expr = NULL;
    *out = NULL;
    if (!node) {
        return ERR_OK;
    }
    TRY(bind_expr(b, &q, node, &expr));
    TRY(coerce_unknown(b, expr, type_of(TYPE_BIGINT), &expr));
    if (!coerce_allowed(expr->type, type_of(TYPE_BIGINT), COERCE_ASSIGN)) {
        char name[32];
        FAIL_AT(b->err, DATATYPE_MISMATCH, expr->position,
                "argument of %s must be type bigint, not type %s", clause,
                type_print(expr->type, name));
    }
    TRY(coerce_to(b, expr, type_of(TYPE_BIGINT), &expr));
    if (expr->kind != EXPR_CONST && expr->kind != EXPR_PARAM) {
        return unsupported(b, node_position(node), "an expression in %s", clause);
    }
    if (expr->kind == EXPR_CONST && !expr->is_null && expr->value.i64 < 0) {
        bool limit = strcmp(clause, "LIMIT") == 0;
        return error_set(b->err, limit ? ERR_INVALID_LIMIT : ERR_INVALID_OFFSET, expr->position,
                         "%s must not be negative", clause);
    }
    *out = expr->is_null ? NULL : expr;
    return ERR_OK;
}

static FALLIBLE bind_limit(struct bind *b, const struct json *body, struct rel **io_rel) {
    struct expr *limit = NULL;
    struct expr *offset = NULL;
    if (json_is(body, "limitOption", "LIMIT_OPTION_WITH_TIES")) {
        return unsupported(b, node_position(json_get(body, "limitCount")), "WITH TIES");
    }
    TRY(bind_bound(b, json_get(body, "limitCount"), "LIMIT", &limit));
    TRY(bind_bound(b, json_get(body, "limitOffset"), "OFFSET", &offset));
    if (!limit && !offset) {
        return ERR_OK;
    }
    struct rel *rel = rel_new(b->plan, REL_LIMIT, *io_rel, NULL);
    rel->limit = limit;
    rel->offset = offset;
    rel->rows = (*io_rel)->rows;
    if (limit && limit->kind == EXPR_CONST) {
        rel->rows = MIN_OF(rel->rows, limit->value.i64);
    }
    *io_rel = rel;
    return ERR_OK;
}

/* Everything above FROM, in the order of the file's head. */
static FALLIBLE build(struct bind *b, struct select *s, struct select_out *out) {
    if (s->where) {
        s->rel = bind_filter(b, s->rel, s->where);
    }
    TRY(build_groups(b, s));
    s->rel = bind_project(b, s->rel, s->exprs.items, s->names.items, s->exprs.count);
    if (s->distinct) {
        s->rel = distinct_rel(b, s->rel);
    }
    if (s->order.count > 0) {
        s->rel = sort_rel(b, s, s->rel);
    }
    TRY(bind_limit(b, s->body, &s->rel));
    if (s->exprs.count > s->shown) {
        struct expr **shown = NEW_ARRAY(b->arena, struct expr *, s->shown);
        for (i64 i = 0; i < s->shown; i++) {
            shown[i] = expr_col(b->plan, s->rel->out.items[i], -1);
        }
        s->rel = bind_project(b, s->rel, shown, s->names.items, s->shown);
    }
    out->rel = s->rel;
    out->names = s->names.items;
    return ERR_OK;
}

/* One row without columns: what SELECT without FROM selects from. */
static struct rel *one_row(struct bind *b) {
    struct rel *rel = rel_new(b->plan, REL_VALUES, NULL, NULL);
    rel->rows = 1;
    return rel;
}

static FALLIBLE values_columns(struct bind *b, struct expr **exprs, i64 rows, i64 width,
                               struct rel *rel) {
    struct expr **column = NEW_ARRAY(b->arena, struct expr *, rows);
    for (i64 c = 0; c < width; c++) {
        struct type type;
        bool nullable = false;
        for (i64 r = 0; r < rows; r++) {
            column[r] = exprs[r * width + c];
        }
        TRY(coerce_common(b, column, (i32)rows, "VALUES", &type));
        for (i64 r = 0; r < rows; r++) {
            exprs[r * width + c] = column[r];
            nullable = nullable || expr_nullable(b->plan, column[r]);
        }
        const char *name = arena_printf(b->arena, "column%lld", c + 1);
        u32 col = bind_col_new(b, NULL, name, type, nullable);
        VEC_PUSH(b->arena, &rel->out, col);
    }
    return ERR_OK;
}

FALLIBLE bind_values_rel(struct bind *b, const struct json *lists, const struct cte *ctes,
                         struct rel **out) {
    i64 rows = json_count(lists);
    i64 width = json_count(json_get(node_body(json_first(lists)), "items"));
    struct rel *rel = one_row(b);
    struct query q = {.clause = "VALUES", .ctes = ctes};
    rel->rows = rows;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, rows * width + 1);
    i64 at = 0;
    JSON_EACH(list, lists) {
        const struct json *items = json_get(node_body(list), "items");
        if (json_count(items) != width) {
            FAIL_AT(b->err, SYNTAX, node_position(items),
                    "VALUES lists must all be the same length");
        }
        JSON_EACH(item, items) {
            TRY(bind_expr(b, &q, item, &exprs[at++]));
        }
    }
    TRY(values_columns(b, exprs, rows, width, rel));
    rel->exprs.items = exprs;
    rel->exprs.count = rows * width;
    rel->exprs.cap = rows * width;
    *out = rel;
    return ERR_OK;
}

/* VALUES as a query: its columns are the select list, so that ORDER BY and LIMIT work as ever. */
static FALLIBLE bind_values(struct bind *b, struct select *s, struct select_out *out) {
    TRY(bind_values_rel(b, json_get(s->body, "valuesLists"), s->query.ctes, &s->rel));
    for (i64 i = 0; i < s->rel->out.count; i++) {
        u32 col = s->rel->out.items[i];
        struct scope_col visible = {b->plan->cols.items[col].name, col};
        VEC_PUSH(b->arena, &s->scope.cols, visible);
        add_target(b, s, expr_col(b->plan, col, -1), visible.name);
    }
    s->shown = s->exprs.count;
    out->rel = s->rel;
    out->names = s->names.items;
    bool plain = !json_get(s->body, "sortClause") && !json_get(s->body, "limitCount") &&
                 !json_get(s->body, "limitOffset");
    if (plain) {
        return ERR_OK;
    }
    TRY(bind_order(b, s));
    return build(b, s, out);
}

FALLIBLE bind_with(struct bind *b, const struct json *with, const struct cte **io_ctes) {
    if (!with) {
        return ERR_OK;
    }
    const struct cte *outside = *io_ctes;
    TRY(bind_only(b, with, "ctes location", json_position(with)));
    JSON_EACH(node, json_get(with, "ctes")) {
        const struct json *body = node_body(node);
        i32 position = json_position(body);
        TRY(bind_only(b, body,
                      "ctename aliascolnames ctematerialized ctequery location cterecursive",
                      position));
        const struct json *query = json_get(body, "ctequery");
        if (!node_is(query, "SelectStmt")) {
            return unsupported(b, position, "WITH of anything but SELECT");
        }
        const char *name = json_text(body, "ctename");
        name = name ? name : "";
        for (const struct cte *seen = *io_ctes; seen != outside; seen = seen->outer) {
            if (strcmp(seen->name, name) == 0) {
                FAIL_AT(b->err, DUPLICATE_ALIAS, position,
                        "WITH query name \"%.100s\" specified more than once", name);
            }
        }
        struct cte *cte = NEW(b->arena, struct cte);
        *cte = (struct cte){name, body, *io_ctes, NEW(b->arena, b8)};
        *io_ctes = cte;
    }
    return ERR_OK;
}

/* A WITH query that nobody uses is still checked. */
FALLIBLE bind_with_unused(struct bind *b, const struct cte *ctes, const struct cte *until) {
    for (; ctes != until; ctes = ctes->outer) {
        struct select_out ignored;
        if (!*ctes->used) {
            TRY(bind_select(b, node_body(json_get(ctes->body, "ctequery")), ctes->outer, NULL, 0,
                            &ignored));
        }
    }
    return ERR_OK;
}

static FALLIBLE bind_select_core(struct bind *b, struct select *s, const struct column_def *targets,
                                 u32 target_count, struct select_out *out) {
    if (json_get(s->body, "valuesLists")) {
        return bind_values(b, s, out);
    }
    TRY(bind_from(b, json_get(s->body, "fromClause"), s->query.ctes, &s->scope));
    s->rel = s->scope.rel ? s->scope.rel : one_row(b);
    TRY(bind_clauses(b, s, targets, target_count));
    return build(b, s, out);
}

FALLIBLE bind_select(struct bind *b, const struct json *body, const struct cte *ctes,
                     const struct column_def *targets, u32 target_count, struct select_out *out) {
    i32 position = node_position(body);
    if (!json_is(body, "op", "SETOP_NONE")) {
        const char *op = json_text(body, "op");
        return unsupported(b, position, "%s",
                           op && strncmp(op, "SETOP_", 6) == 0 ? op + 6 : "a set operation");
    }
    TRY(bind_only(b, body,
                  "distinctClause targetList fromClause whereClause groupClause havingClause "
                  "valuesLists sortClause limitOffset limitCount limitOption withClause op",
                  position));
    TRY(bind_enter(b, SELECT_DEPTH_COST, position));
    struct select *s = NEW(b->arena, struct select);
    s->body = body;
    const struct cte *inner = ctes;
    TRY(bind_with(b, json_get(body, "withClause"), &inner));
    s->query = (struct query){.scope = &s->scope, .clause = "SELECT", .ctes = inner};
    TRY(bind_select_core(b, s, targets, target_count, out));
    TRY(bind_with_unused(b, inner, ctes));
    b->depth -= SELECT_DEPTH_COST;
    return ERR_OK;
}
