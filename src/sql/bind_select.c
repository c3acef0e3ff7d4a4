/* bind_select.c: SELECT and VALUES, clause by clause, to a tree of operators.
 *
 * Part of binding. The shape is always FROM, FILTER (where), AGG, FILTER (having), WINDOW, PROJECT,
 * AGG (distinct), SORT, LIMIT, and each is there only if the query asks for it; joins with
 * subqueries stand below the operator whose expressions contain them. Expressions are bound over
 * the columns of FROM; if there are groups, all that stands above the AGG is rewritten at the end
 * (bind_group.c). */
#include "sql/ddl_int.h"
#include "sql/select_int.h"

struct rel *bind_project(struct bind *b, struct rel *rel, struct expr **exprs, const char **names,
                         i64 count) {
    struct rel *project = rel_new(b->plan, REL_PROJECT, rel, NULL);
    for (i64 i = 0; i < count; i++) {
        u32 col = bind_col_new(b, NULL, names[i], exprs[i]->type, expr_nullable(b->plan, exprs[i]));
        VEC_PUSH(b->arena, &project->project.exprs, exprs[i]);
        VEC_PUSH(b->arena, &project->out, col);
    }
    project->rows = rel->rows;
    return project;
}

void select_add_target(struct bind *b, struct select *s, struct expr *expr, const char *name) {
    VEC_PUSH(b->arena, &s->exprs, expr);
    VEC_PUSH(b->arena, &s->names, name);
    VEC_PUSH(b->arena, &s->seen, s->query.seen);
    s->query.seen = (struct seen){0, 0};
}

static FALLIBLE bind_target(struct bind *b, struct select *s, const struct json *target,
                            const struct column_def *targets, u32 target_count) {
    i32 position = json_position(target);
    TRY(bind_only(b, target, "name val location", position));
    const struct json *val = json_get(target, "val");
    const struct scope_col *cols = NULL;
    i64 count = -1;
    bool done = false;
    s->query.seen = (struct seen){0, 0};
    TRY(bind_star_but(b, s, val, &done));
    if (done) {
        return ERR_OK;
    }
    TRY(bind_star(b, &s->query, val, &cols, &count));
    for (i64 i = 0; i < count; i++) {
        select_add_target(b, s, expr_col(b->plan, cols[i].col, position), cols[i].name);
    }
    if (count >= 0) {
        return ERR_OK;
    }
    const char *alias = json_text(target, "name");
    struct expr *expr = NULL;
    TRY(bind_expr(b, &s->query, val, &expr));
    i64 at = s->exprs.count;
    if (is_unknown(expr) && at < target_count) {
        TRY(bind_assign(b, expr, &targets[at], &expr));
    } else if (!s->keep_unknown || expr->kind != EXPR_CONST) {
        TRY(coerce_unknown(b->t, expr, type_of(TYPE_TEXT), &expr));
    }
    select_add_target(b, s, expr, keep(b, alias ? alias : output_name(val)));
    return ERR_OK;
}

static FALLIBLE bind_targets(struct bind *b, struct select *s, const struct column_def *targets,
                             u32 target_count) {
    bool plain = !s->query.no_sets; /* or RETURNING, of rows one by one */
    s->query.clause = plain ? "SELECT" : "RETURNING";
    s->query.aggs_allowed = plain;
    s->query.windows_allowed = plain;
    s->query.sets_allowed = 1;
    JSON_EACH(node, json_get(s->body, "targetList")) {
        TRY(bind_target(b, s, node_body(node), targets, target_count));
    }
    s->query.aggs_allowed = 0;
    s->query.windows_allowed = 0;
    s->query.sets_allowed = 0;
    if (s->exprs.count == 0 && s->for_exists) {
        select_add_target(b, s, expr_bool(b->t, true, -1), "exists");
    }
    s->shown = s->exprs.count;
    if (s->shown > COLUMNS_MAX + 64) {
        FAIL(b->err, TOO_MANY_COLUMNS, "a SELECT can have at most %d columns",
             (int)COLUMNS_MAX + 64);
    }
    return ERR_OK;
}

FALLIBLE select_named(struct bind *b, struct select *s, const char *name, const char *clause,
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

const char *bare_name(const struct json *node) {
    const struct json *fields = json_get(node_body(node), "fields");
    if (!node_is(node, "ColumnRef") || json_count(fields) != 1 ||
        !node_is(json_first(fields), "String")) {
        return NULL;
    }
    return node_string(json_first(fields));
}

FALLIBLE select_numbered(struct bind *b, struct select *s, const struct json *node,
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

static FALLIBLE bind_having(struct bind *b, struct select *s, const struct json *having) {
    struct query *q = &s->query;
    i64 before = q->pending.count;
    q->clause = "HAVING";
    q->aggs_allowed = 1;
    TRY(bind_condition(b, q, having, "HAVING", &s->having));
    q->aggs_allowed = 0;
    for (i64 i = before; i < q->pending.count; i++) {
        VEC_PUSH(b->arena, &s->having_pending, q->pending.items[i]);
    }
    q->pending.count = before;
    return ERR_OK;
}

static bool is_distinct_on(const struct json *clause) {
    return node_body(json_first(clause)) != NULL;
}

static FALLIBLE bind_clauses(struct bind *b, struct select *s, const struct column_def *targets,
                             u32 target_count) {
    const struct json *where = json_get(s->body, "whereClause");
    const struct json *having = json_get(s->body, "havingClause");
    const struct json *distinct = json_get(s->body, "distinctClause");
    if (where) {
        s->query.clause = "WHERE";
        TRY(bind_where(b, &s->query, where, "WHERE", &s->rel));
    }
    s->distinct = distinct && !is_distinct_on(distinct);
    TRY(bind_targets(b, s, targets, target_count));
    TRY(bind_groups(b, s));
    if (having) {
        TRY(bind_having(b, s, having));
    }
    TRY(bind_order(b, s));
    return bind_distinct_clause(b, s);
}

/* Everything above WHERE, in the order of the file's head. */
static FALLIBLE build(struct bind *b, struct select *s, struct select_out *out) {
    pending_list serials = {0};
    bool done = false;
    bind_set_stages(s);
    TRY(build_groups(b, s));
    bind_take_serials(b, &s->query, &s->query.pending, false, &serials);
    s->rel = bind_attach(b, s->rel, &s->query.pending);
    TRY(build_sets(b, s, SET_BELOW_WINDOWS));
    TRY(build_windows(b, s));
    build_distinct_early(b, s);
    TRY(build_sets(b, s, SET_ABOVE));
    if (serials.count > 0) {
        TRY(build_serials(b, s, &serials, &done));
    }
    if (!done) {
        s->rel = bind_project(b, s->rel, s->exprs.items, s->names.items, s->exprs.count);
        TRY(build_order(b, s));
    }
    out->rel = s->rel;
    out->names = s->names.items;
    return ERR_OK;
}

struct rel *bind_one_row(struct bind *b) {
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
        TRY(coerce_common(b->t, column, (i32)rows, "VALUES", &type));
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

struct rel *bind_values_union(struct bind *b, const struct rel *values, pending_list *pending_of,
                              i64 rows, i64 width) {
    struct rel *all = NULL;
    const char **names = NEW_ARRAY(b->arena, const char *, width + 1);
    for (i64 c = 0; c < width; c++) {
        names[c] = b->plan->cols.items[values->out.items[c]].name;
    }
    b8 before = b->draw_in_turn;
    b->draw_in_turn = 1;
    for (i64 r = 0; r < rows; r++) {
        struct rel *row = bind_attach(b, bind_one_row(b), &pending_of[r]);
        row = bind_project(b, row, values->values.exprs.items + r * width, names, width);
        all = all ? bind_union_rel(b, all, row) : row;
    }
    b->draw_in_turn = before;
    return all;
}

FALLIBLE bind_values_rel(struct bind *b, const struct json *lists, const struct cte *ctes,
                         struct query *outer, struct rel **out) {
    i64 rows = json_count(lists);
    i64 width = json_count(json_get(node_body(json_first(lists)), "items"));
    struct rel *rel = bind_one_row(b);
    struct query *q = NEW(b->arena, struct query);
    *q = (struct query){.clause = "VALUES", .ctes = ctes, .outer = outer, .subqueries_allowed = 1};
    rel->rows = rows;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, rows * width + 1);
    pending_list *pending_of = NEW_ARRAY(b->arena, pending_list, rows + 1);
    bool plain = true;
    i64 at = 0;
    i64 row = 0;
    JSON_EACH(list, lists) {
        const struct json *items = json_get(node_body(list), "items");
        if (json_count(items) != width) {
            FAIL_AT(b->err, SYNTAX, node_position(items),
                    "VALUES lists must all be the same length");
        }
        JSON_EACH(item, items) {
            TRY(bind_expr(b, q, item, &exprs[at++]));
        }
        pending_of[row++] = q->pending;
        plain = plain && bind_values_late(b, &q->pending);
        memset(&q->pending, 0, sizeof q->pending);
    }
    TRY(values_columns(b, exprs, rows, width, rel));
    rel->values.exprs.items = exprs;
    rel->values.exprs.count = rows * width;
    rel->values.exprs.cap = rows * width;
    for (i64 r = 0; plain && r < rows; r++) {
        bind_values_params(b, &pending_of[r], exprs + r * width, width);
    }
    *out = plain ? rel : bind_values_union(b, rel, pending_of, rows, width);
    return ERR_OK;
}

/* The columns are the select list, so that ORDER BY and LIMIT work as ever. */
FALLIBLE bind_ordered(struct bind *b, const struct json *body, struct rel *rel, const char **names,
                      bool fixed, struct select_out *out) {
    struct select *s = NEW(b->arena, struct select);
    s->body = body;
    s->rel = rel;
    s->fixed = fixed;
    s->query = (struct query){.scope = &s->scope, .subqueries_allowed = 1};
    *out = (struct select_out){.rel = rel, .names = names};
    if (!json_get(body, "sortClause") && !json_get(body, "limitCount") &&
        !json_get(body, "limitOffset")) {
        return ERR_OK;
    }
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 col = rel->out.items[i];
        struct scope_col visible = {names[i], col};
        VEC_PUSH(b->arena, &s->scope.cols, visible);
        select_add_target(b, s, expr_col(b->plan, col, -1), names[i]);
    }
    s->shown = s->exprs.count;
    TRY(bind_order(b, s));
    return build(b, s, out);
}

static FALLIBLE bind_values(struct bind *b, struct select *s, struct select_out *out) {
    struct rel *rel = NULL;
    TRY(bind_values_rel(b, json_get(s->body, "valuesLists"), s->query.ctes, s->query.outer, &rel));
    const char **names = NEW_ARRAY(b->arena, const char *, rel->out.count + 1);
    for (i64 i = 0; i < rel->out.count; i++) {
        names[i] = b->plan->cols.items[rel->out.items[i]].name;
    }
    return bind_ordered(b, s->body, rel, names, false, out);
}

static FALLIBLE bind_select_core(struct bind *b, struct select *s, const struct column_def *targets,
                                 u32 target_count, struct select_out *out) {
    if (json_get(s->body, "valuesLists")) {
        return bind_values(b, s, out);
    }
    TRY(bind_from(b, json_get(s->body, "fromClause"), s->query.ctes, s->query.outer, &s->scope));
    s->rel = s->scope.rel ? s->scope.rel : bind_one_row(b);
    TRY(bind_clauses(b, s, targets, target_count));
    return build(b, s, out);
}

struct select_env {
    const struct cte *ctes;
    struct query *outer;
    const struct column_def *targets;
    u32 target_count;
    b8 keep_unknown;
};

static bool has_grouping_sets(const struct json *body) {
    bool found = false;
    JSON_EACH(node, json_get(body, "groupClause")) {
        found = found || node_is(node, "GroupingSet");
    }
    return found;
}

static FALLIBLE bind_any_select(struct bind *b, const struct json *body,
                                const struct select_env *env, struct select_out *out) {
    i32 position = node_position(body);
    bool setop = !json_is(body, "op", "SETOP_NONE");
    b8 for_exists = env->outer && env->outer->exists_next;
    if (for_exists) {
        env->outer->exists_next = 0;
    }
    const char *no_sets = b->no_sets;
    b->no_sets = NULL;
    if (json_get(body, "intoClause")) {
        FAIL_AT(b->err, SYNTAX, json_position(json_get(json_get(body, "intoClause"), "rel")),
                "SELECT ... INTO is not allowed here");
    }
    TRY(bind_only(
        b, body,
        "distinctClause targetList fromClause whereClause groupClause groupDistinct havingClause "
        "windowClause valuesLists sortClause limitOffset limitCount limitOption "
        "withClause op all larg rarg",
        position));
    TRY(bind_enter(b, NEST_SELECT, position));
    const struct cte *inner = env->ctes;
    TRY(bind_with(b, json_get(body, "withClause"), env->outer, &inner));
    if (setop) {
        b8 before = b->draw_in_turn;
        b->draw_in_turn = 1;
        TRY(bind_setop(b, body, inner, env->outer, out));
        b->draw_in_turn = before;
    } else {
        struct select *s = NEW(b->arena, struct select);
        s->body = body;
        s->for_exists = for_exists;
        s->keep_unknown = env->keep_unknown && !json_get(body, "distinctClause") &&
                          !json_get(body, "sortClause") && !json_get(body, "limitCount") &&
                          !json_get(body, "limitOffset");
        s->query = (struct query){.scope = &s->scope,
                                  .outer = env->outer,
                                  .clause = "SELECT",
                                  .no_sets = no_sets,
                                  .subqueries_allowed = 1,
                                  .window_clause = json_get(body, "windowClause"),
                                  .ctes = inner};
        bool sets = has_grouping_sets(body);
        b->t->any_null += sets;
        TRY(bind_select_core(b, s, env->targets, env->target_count, out));
        b->t->any_null -= sets;
    }
    TRY(bind_with_unused(b, inner, env->ctes));
    bind_leave(b, NEST_SELECT);
    return ERR_OK;
}

FALLIBLE bind_select(struct bind *b, const struct json *body, const struct cte *ctes,
                     const struct column_def *targets, u32 target_count, struct select_out *out) {
    struct select_env env = {.ctes = ctes, .targets = targets, .target_count = target_count};
    return bind_any_select(b, body, &env, out);
}

FALLIBLE bind_subselect(struct bind *b, const struct json *body, const struct cte *ctes,
                        struct query *outer, bool keep_unknown, struct select_out *out) {
    struct select_env env = {.ctes = ctes, .outer = outer, .keep_unknown = keep_unknown};
    b8 before = b->draw_in_turn;
    b->draw_in_turn = before || outer; /* it may be asked once for every row of the outer query */
    TRY(bind_any_select(b, body, &env, out));
    b->draw_in_turn = before;
    return ERR_OK;
}
