/* bind_order.c: DISTINCT, DISTINCT ON, ORDER BY, LIMIT and FETCH.
 *
 * Part of binding. ORDER BY names an output column by position or name, or is an expression, which
 * rides along behind the select list until a last PROJECT drops it. DISTINCT ON and WITH TIES are
 * conditions on the row_number and the rank of a row within its group; so are a LIMIT and an OFFSET
 * that must be computed. */
#include "sql/select_int.h"

#include "codes/scalar.h"

FALLIBLE bind_sort_options(struct bind *b, const struct json *sort, b8 *out_descending,
                           b8 *out_nulls_first) {
    i32 position = node_position(json_get(sort, "node"));
    TRY(bind_only(b, sort, "node sortby_dir sortby_nulls useOp location", position));
    *out_descending = json_is(sort, "sortby_dir", "SORTBY_DESC");
    if (json_is(sort, "sortby_dir", "SORTBY_USING")) {
        const char *op = "";
        JSON_EACH(part, json_get(sort, "useOp")) {
            op = node_string(part);
        }
        if (strcmp(op, "<") != 0 && strcmp(op, ">") != 0) {
            FAIL_AT(b->err, WRONG_OBJECT, position,
                    "operator %.20s is not a valid ordering operator", op);
        }
        *out_descending = op[0] == '>';
    }
    *out_nulls_first = *out_descending;
    if (!json_is(sort, "sortby_nulls", "SORTBY_NULLS_DEFAULT")) {
        *out_nulls_first = json_is(sort, "sortby_nulls", "SORTBY_NULLS_FIRST");
    }
    return ERR_OK;
}

/* The select item equal to an ORDER BY or ON expression, added behind them when there is none. */
static FALLIBLE find_target(struct bind *b, struct select *s, const struct json *node,
                            const char *clause, i64 *out) {
    const char *name = bare_name(node);
    TRY(select_numbered(b, s, node, clause, out));
    if (name && *out < 0) {
        TRY(select_named(b, s, name, clause, node_position(node), out));
    }
    if (*out >= 0) {
        return ERR_OK;
    }
    struct expr *expr = NULL;
    TRY(bind_expr(b, &s->query, node, &expr));
    TRY(coerce_unknown(b->t, expr, type_of(TYPE_TEXT), &expr));
    *out = expr_find(b->arena, &s->expr_hashes, s->exprs.items, s->exprs.count, expr);
    if (*out >= 0) {
        return ERR_OK;
    }
    if (s->distinct) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, node_position(node),
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list");
    }
    if (s->fixed) {
        FAIL_AT(b->err, NOT_SUPPORTED, node_position(node),
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
    }
    *out = s->exprs.count;
    select_add_target(b, s, expr,
                      expr->kind == EXPR_COL ? b->plan->cols.items[expr->col].name : "sort");
    return ERR_OK;
}

FALLIBLE bind_order(struct bind *b, struct select *s) {
    s->query.clause = "ORDER BY";
    s->expr_hashes.count = 0;
    s->query.aggs_allowed = 1;
    s->query.windows_allowed = 1;
    s->query.sets_allowed = !s->fixed;
    s->query.outputs = s;
    JSON_EACH(node, json_get(s->body, "sortClause")) {
        const struct json *sort = node_body(node);
        struct order_item item = {0};
        TRY(bind_sort_options(b, sort, &item.descending, &item.nulls_first));
        bool all = bind_is_all(json_get(sort, "node"));
        for (; all && item.target < s->shown; item.target++) {
            VEC_PUSH(b->arena, &s->order, item);
        }
        if (!all) {
            TRY(find_target(b, s, json_get(sort, "node"), "ORDER BY", &item.target));
            VEC_PUSH(b->arena, &s->order, item);
        }
    }
    s->query.aggs_allowed = 0;
    s->query.windows_allowed = 0;
    s->query.sets_allowed = 0;
    s->query.outputs = NULL;
    return ERR_OK;
}

static bool is_on(const struct select *s, i64 target) {
    for (i64 i = 0; i < s->on.count; i++) {
        if (s->on.items[i] == target) {
            return true;
        }
    }
    return false;
}

/* ON's expressions must come first in ORDER BY, in any order. */
static FALLIBLE check_on(struct bind *b, struct select *s, i32 position) {
    i64 leading = 0;
    while (leading < s->order.count && is_on(s, s->order.items[leading].target)) {
        leading++;
    }
    i64 covered = 0;
    for (i64 i = 0; i < s->on.count; i++) {
        bool found = false;
        for (i64 k = 0; k < leading; k++) {
            found = found || s->order.items[k].target == s->on.items[i];
        }
        covered += found;
    }
    if (leading < s->order.count && covered < s->on.count) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions");
    }
    return ERR_OK;
}

/* DISTINCT is an array with one empty node; DISTINCT ON has expressions. Comes after ORDER BY. */
FALLIBLE bind_distinct_clause(struct bind *b, struct select *s) {
    const struct json *clause = json_get(s->body, "distinctClause");
    i32 position = -1;
    s->query.clause = "DISTINCT ON";
    s->query.aggs_allowed = 1;
    s->query.windows_allowed = 1;
    s->query.sets_allowed = 1;
    JSON_EACH(node, clause) {
        i64 target = -1;
        if (!node_body(node)) {
            continue;
        }
        position = node_position(node);
        TRY(find_target(b, s, node, "DISTINCT ON", &target));
        if (!is_on(s, target)) {
            VEC_PUSH(b->arena, &s->on, target);
        }
    }
    s->query.aggs_allowed = 0;
    s->query.windows_allowed = 0;
    s->query.sets_allowed = 0;
    return check_on(b, s, position);
}

static struct expr *big(struct bind *b, i64 value) {
    struct expr *expr = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
    expr->value.i64 = value;
    return expr;
}

struct rel *bind_distinct_rel(struct bind *b, struct rel *rel) {
    if (rel->out.count == 0) { /* all rows without columns are equal */
        struct rel *first = rel_new(b->plan, REL_LIMIT, rel, NULL);
        first->limit.count = big(b, 1);
        first->rows = 1;
        return first;
    }
    struct rel *agg = rel_new(b->plan, REL_AGG, rel, NULL);
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 from = rel->out.items[i];
        struct plan_col col = b->plan->cols.items[from];
        VEC_PUSH(b->arena, &agg->agg.keys, expr_col(b->plan, from, -1));
        u32 to = bind_col_new(b, NULL, col.name, col.type, col.nullable);
        VEC_PUSH(b->arena, &agg->out, to);
    }
    agg->rows = MAX_OF(rel->rows / 10, 1);
    return agg;
}

static struct expr *target_expr(struct bind *b, const struct select *s, i64 target,
                                bool projected) {
    return projected ? expr_col(b->plan, s->rel->out.items[target], -1) : s->exprs.items[target];
}

static struct order_key sort_key(struct bind *b, const struct rel *rel,
                                 const struct order_item *item) {
    struct expr *expr = expr_col(b->plan, rel->out.items[item->target], -1);
    return (struct order_key){expr, item->descending, item->nulls_first};
}

/* Adds the function's result over all rows in the query's order; partitioned by DISTINCT ON. Of the
 * projected rows, or of those the select list is computed from. */
static struct rel *number_rows(struct bind *b, struct select *s, enum window_func func, bool by_on,
                               bool projected) {
    struct rel *window = rel_new(b->plan, REL_WINDOW, s->rel, NULL);
    struct window_call call = {.func = (u8)func, .position = -1};
    call.frame =
        (struct frame){.mode = FRAME_RANGE, .from = BOUND_UNBOUNDED_BEFORE, .to = BOUND_CURRENT};
    call.col = bind_col_new(b, NULL, window_names[func], type_of(TYPE_BIGINT), false);
    for (i64 i = 0; by_on && i < s->on.count; i++) {
        VEC_PUSH(b->arena, &window->window.keys, target_expr(b, s, s->on.items[i], projected));
    }
    for (i64 i = 0; i < s->order.count; i++) {
        const struct order_item *item = &s->order.items[i];
        if (!by_on || !is_on(s, item->target)) {
            struct order_key key = {target_expr(b, s, item->target, projected), item->descending,
                                    item->nulls_first};
            VEC_PUSH(b->arena, &window->window.order, key);
        }
    }
    VEC_PUSH(b->arena, &window->window.calls, call);
    VEC_PUSH(b->arena, &window->out, call.col);
    window->rows = s->rel->rows;
    return window;
}

static struct expr *compare_big(struct bind *b, u16 func, u32 col, struct expr *with) {
    return expr_call(b->arena, func, type_of(TYPE_BOOLEAN), -1, 2, expr_col(b->plan, col, -1),
                     with);
}

static u32 last_out(const struct rel *rel) {
    return rel->out.items[rel->out.count - 1];
}

static void build_distinct_on(struct bind *b, struct select *s, bool projected) {
    s->rel = number_rows(b, s, WINDOW_ROW_NUMBER, true, projected);
    s->rel = bind_filter(b, s->rel, compare_big(b, FUNC_EQ, last_out(s->rel), big(b, 1)));
}

static bool visit_no_set(const struct expr *expr, void *arg) {
    const struct query *q = arg;
    for (i64 i = 0; expr->kind == EXPR_COL && i < q->set_calls.count; i++) {
        const struct set_call *call = &q->set_calls.items[i];
        if (call->col == expr->col && call->stage == SET_ABOVE) {
            return false;
        }
    }
    return true;
}

void build_distinct_early(struct bind *b, struct select *s) {
    bool early = s->on.count > 0 && s->order.count > 0 && s->query.set_calls.count > 0;
    for (i64 i = 0; early && i < s->on.count; i++) {
        early = expr_walk(s->exprs.items[s->on.items[i]], visit_no_set, &s->query);
    }
    for (i64 i = 0; early && i < s->order.count; i++) {
        early = expr_walk(s->exprs.items[s->order.items[i].target], visit_no_set, &s->query);
    }
    if (early) {
        build_distinct_on(b, s, false);
        s->on.count = 0;
    }
}

static bool is_known(const struct expr *bound) {
    return !bound || bound->kind == EXPR_CONST || bound->kind == EXPR_PARAM;
}

/* LIMIT or OFFSET as bigint; NULL means none. */
static FALLIBLE bind_bound(struct bind *b, struct query *q, const struct json *node,
                           const char *clause, struct expr **out) {
    struct expr *expr = NULL;
    *out = NULL;
    if (!node) {
        return ERR_OK;
    }
    q->clause = clause;
    TRY(bind_expr(b, q, node, &expr));
    TRY(coerce_unknown(b->t, expr, type_of(TYPE_BIGINT), &expr));
    if (!coerce_allowed(expr->type, type_of(TYPE_BIGINT), COERCE_ASSIGN)) {
        char name[32];
        FAIL_AT(b->err, DATATYPE_MISMATCH, expr->position,
                "argument of %s must be type bigint, not type %s", clause,
                type_print(expr->type, name));
    }
    TRY(coerce_to(b->t, expr, type_of(TYPE_BIGINT), &expr));
    expr = expr_fold(b->plan, expr);
    if (expr->kind == EXPR_CONST && !expr->is_null && expr->value.i64 < 0) {
        bool limit = strcmp(clause, "LIMIT") == 0;
        return error_set(b->err, limit ? ERR_INVALID_LIMIT : ERR_INVALID_OFFSET, expr->position,
                         "%s must not be negative", clause);
    }
    *out = is_known(expr) && expr->is_null ? NULL : expr;
    return ERR_OK;
}

/* What bounds draw from sequences is drawn once, not for every row: they become a row of their own.
 */
static void bounds_apart(struct bind *b, struct query *q, struct expr **io_limit,
                         struct expr **io_offset) {
    struct expr *exprs[2];
    const char *names[2] = {"limit", "offset"};
    struct expr **bounds[2] = {io_limit, io_offset};
    i64 count = 0;
    for (i64 i = 0; i < 2; i++) {
        if (!is_known(*bounds[i])) {
            bounds[count] = bounds[i];
            exprs[count++] = *bounds[i];
        }
    }
    struct rel *row = bind_attach(b, bind_one_row(b), &q->pending);
    struct pending p = {.rel = bind_project(b, row, exprs, names, count), .join = JOIN_SINGLE};
    for (i64 i = 0; i < count; i++) {
        *bounds[i] = expr_col(b->plan, p.rel->out.items[i], exprs[i]->position);
    }
    p.rel->position = exprs[0]->position;
    bind_nullable(b, p.rel);
    VEC_PUSH(b->arena, &q->pending, p);
}

static bool draws(const struct query *q) {
    bool any = false;
    for (i64 i = 0; i < q->pending.count; i++) {
        any = any || q->pending.items[i].serial;
    }
    return any;
}

/* Bounds that must be computed are conditions on the row's number. */
static FALLIBLE build_bounds(struct bind *b, struct select *s, struct query *q, struct expr *limit,
                             struct expr *offset) {
    struct type big_type = type_of(TYPE_BIGINT);
    s->rel = number_rows(b, s, WINDOW_ROW_NUMBER, false, true);
    struct expr *number = expr_col(b->plan, last_out(s->rel), -1);
    if (draws(q)) {
        bounds_apart(b, q, &limit, &offset);
    }
    s->rel = bind_attach(b, s->rel, &q->pending);
    if (offset) {
        struct expr *args[2] = {scalar_call(b->t, FUNC_OFFSET_OF, offset->position, 1, offset),
                                big(b, 0)};
        struct expr *skip = expr_many(b->t, EXPR_CALL, big_type, offset->position, 2, args);
        struct expr *past = NULL;
        skip->func = FUNC_COALESCE;
        TRY(operator_arithmetic(b->t, FUNC_SUB, number, skip, offset->position, &number));
        TRY(operator_compare(b->t, FUNC_GT, number, big(b, 0), offset->position, &past));
        s->rel = bind_filter(b, s->rel, past);
    }
    if (limit) {
        struct expr *most = scalar_call(b->t, FUNC_LIMIT_OF, limit->position, 1, limit);
        struct expr *args[2] = {expr_one(b->t, EXPR_IS_NULL, limit, limit->position), NULL};
        TRY(operator_compare(b->t, FUNC_LE, number, most, limit->position, &args[1]));
        s->rel = bind_filter(
            b, s->rel, expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), limit->position, 2, args));
    }
    return ERR_OK;
}

/* Rows behind the offset that are among the first, or tie with the last of those. */
static FALLIBLE build_ties(struct bind *b, struct select *s, struct expr *limit,
                           struct expr *offset) {
    i32 position = node_position(json_get(s->body, "limitCount"));
    if (s->order.count == 0) {
        FAIL_AT(b->err, SYNTAX, position, "WITH TIES cannot be specified without ORDER BY clause");
    }
    bool known = limit && limit->kind == EXPR_CONST && (!offset || offset->kind == EXPR_CONST);
    i64 skip = offset && known ? offset->value.i64 : 0;
    i64 last = 0;
    if (!known) {
        return unsupported(b, position, "WITH TIES of a count that is not constant");
    }
    if (__builtin_add_overflow(skip, limit->value.i64, &last)) {
        last = I64_MAX;
    }
    if (skip > 0) {
        s->rel = number_rows(b, s, WINDOW_ROW_NUMBER, false, true);
        u32 number = last_out(s->rel);
        s->rel = number_rows(b, s, WINDOW_RANK, false, true);
        s->rel = bind_filter(b, s->rel, compare_big(b, FUNC_GT, number, big(b, skip)));
        s->rel = bind_filter(b, s->rel, compare_big(b, FUNC_LE, last_out(s->rel), big(b, last)));
        return ERR_OK;
    }
    s->rel = number_rows(b, s, WINDOW_RANK, false, true);
    s->rel = bind_filter(b, s->rel, compare_big(b, FUNC_LE, last_out(s->rel), big(b, last)));
    return ERR_OK;
}

static void build_sort(struct bind *b, struct select *s) {
    struct rel *sort = rel_new(b->plan, REL_SORT, s->rel, NULL);
    for (i64 i = 0; i < s->order.count; i++) {
        VEC_PUSH(b->arena, &sort->sort.order, sort_key(b, s->rel, &s->order.items[i]));
    }
    sort->rows = s->rel->rows;
    s->rel = sort;
}

static void build_limit(struct bind *b, struct select *s, struct expr *limit, struct expr *offset) {
    struct rel *rel = rel_new(b->plan, REL_LIMIT, s->rel, NULL);
    rel->limit.count = limit;
    rel->limit.offset = offset;
    rel->rows = s->rel->rows;
    if (limit && limit->kind == EXPR_CONST) {
        rel->rows = MIN_OF(rel->rows, limit->value.i64);
    }
    s->rel = rel;
}

/* The scope is there to tell columns of the query itself, which bounds cannot have, from those of
 * outer ones. */
static FALLIBLE bind_bounds(struct bind *b, const struct select *s, struct query *q,
                            struct expr **out_limit, struct expr **out_offset) {
    bool selects = s->scope.tables.count > 0; /* of a set operation nothing is visible */
    *q = (struct query){.scope = selects ? s->query.scope : NULL,
                        .ctes = s->query.ctes,
                        .outer = s->query.outer,
                        .subqueries_allowed = 1};
    TRY(bind_bound(b, q, json_get(s->body, "limitOffset"), "OFFSET", out_offset));
    TRY(bind_bound(b, q, json_get(s->body, "limitCount"), "LIMIT", out_limit));
    for (i64 i = 0; i < q->pending.count; i++) {
        u8 *is_free = NEW_ARRAY(b->arena, u8, b->plan->cols.count + 1);
        i64 count = q->pending.items[i].rel ? b->plan->cols.count : 0;
        if (count > 0 && rel_free_cols(b->plan, q->pending.items[i].rel, is_free) == 0) {
            continue;
        }
        for (i64 col = 0; col < count; col++) {
            if (is_free[col] && scope_has(q->scope, (u32)col)) {
                FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, q->pending.items[i].rel->position,
                        "argument of LIMIT must not contain variables");
            }
        }
    }
    return ERR_OK;
}

FALLIBLE select_bounds(struct bind *b, const struct select *s, struct expr **out_limit,
                       struct expr **out_offset) {
    struct query *q = NEW(b->arena, struct query);
    TRY(bind_bounds(b, s, q, out_limit, out_offset));
    if (!is_known(*out_limit) || !is_known(*out_offset)) {
        return unsupported(b, node_position(s->body),
                           "calls of sequences beside a LIMIT that must be computed");
    }
    return ERR_OK;
}

FALLIBLE build_order(struct bind *b, struct select *s) {
    struct expr *limit = NULL;
    struct expr *offset = NULL;
    struct query *q = NEW(b->arena, struct query);
    TRY(bind_bounds(b, s, q, &limit, &offset));
    bool ties = json_is(s->body, "limitOption", "LIMIT_OPTION_WITH_TIES");
    if (s->distinct) {
        s->rel = bind_distinct_rel(b, s->rel);
    } else if (s->on.count > 0) {
        build_distinct_on(b, s, true);
    }
    if (ties) {
        TRY(build_ties(b, s, limit, offset));
    }
    bool computed = !ties && (!is_known(limit) || !is_known(offset));
    if (computed) {
        TRY(build_bounds(b, s, q, limit, offset));
    }
    if (s->order.count > 0) {
        build_sort(b, s);
    }
    if (!ties && !computed && (limit || offset)) {
        build_limit(b, s, limit, offset);
    }
    if (s->rel->out.count > s->shown) {
        struct expr **shown = NEW_ARRAY(b->arena, struct expr *, s->shown);
        for (i64 i = 0; i < s->shown; i++) {
            shown[i] = expr_col(b->plan, s->rel->out.items[i], -1);
        }
        s->rel = bind_project(b, s->rel, shown, s->names.items, s->shown);
    }
    return ERR_OK;
}
