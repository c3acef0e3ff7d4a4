/* subquery.c: subqueries in expressions: EXISTS, IN, ANY, ALL and scalar ones, as joins.
 *
 * Part of binding. An expression with a subquery becomes an expression over the column of a join,
 * which stands below the operator that computes it: SINGLE for a scalar subquery (a second row
 * raises 21000), MARK for whether there is a match. The joins wait in the query's list of pending
 * ones until that operator is built; one whose right side uses columns of the left is dependent,
 * and the optimiser takes the dependence away.
 *
 * Marks are true or false. x op ANY (q) also has an unknown, which comes from further marks:
 *     CASE WHEN m1 THEN true WHEN m2 OR (x IS NULL AND m3) THEN NULL ELSE false END
 * with m1: a row where x op y; m2: a row whose y is NULL; m3: any row at all. Where x or y cannot
 * be NULL the marks for it are left out. If the subquery depends on outer columns, m2 and m3 would
 * need it again for each row; there the second mark is simply a row where x op y is NULL. ALL is
 * NOT ANY of the negated operator. A conjunct of WHERE needs no third value: it becomes a semi or
 * anti join at once. See decision 0011. */
#include "sql/sql_int.h"

#include "codes/func.h"

bool bind_depends(struct bind *b, struct rel *left, struct rel *right) {
    u8 *free_cols = NEW_ARRAY(b->arena, u8, b->plan->cols.count + 1);
    if (rel_free_cols(b->plan, right, free_cols) == 0) {
        return false;
    }
    for (i64 i = 0; i < left->out.count; i++) {
        if (free_cols[left->out.items[i]]) {
            return true;
        }
    }
    return false;
}

static struct rel *join_on(struct bind *b, enum join_kind kind, struct rel *left,
                           struct rel *right) {
    struct rel *join = rel_join(b->plan, kind, left, right);
    join->join.dependent = bind_depends(b, left, right);
    join->rows = left->rows;
    join->position = right->position;
    bind_origins(b);
    return join;
}

struct rel *bind_attach(struct bind *b, struct rel *rel, pending_list *list) {
    pending_list before = {0}, after = {0};
    bind_take_serials(b, NULL, list, true, &before);
    bind_take_serials(b, NULL, list, false, &after);
    rel = bind_attach_serials(b, rel, &before);
    for (i64 i = 0; i < list->count; i++) {
        const struct pending *p = &list->items[i];
        struct rel *join = join_on(b, (enum join_kind)p->join, rel, p->rel);
        if (p->join == JOIN_MARK) {
            join->join.mark_col = p->mark_col;
            join->out.items[join->out.count - 1] = p->mark_col;
        }
        for (i64 k = 0; k < p->conds.count; k++) {
            VEC_PUSH(b->arena, &join->join.conds, p->conds.items[k]);
        }
        rel = join;
    }
    list->count = 0;
    return bind_attach_serials(b, rel, &after);
}

/* The subquery of a SubLink, as a plan of its own. */
static FALLIBLE bind_inner(struct bind *b, struct query *q, const struct json *body,
                           struct rel **out) {
    const struct json *select = json_get(body, "subselect");
    i32 position = json_position(body);
    if (!node_is(select, "SelectStmt")) {
        return unsupported(b, position, "%s as a subquery", node_type(select));
    }
    if (!q->subqueries_allowed) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "cannot use subquery in %s", q->clause);
    }
    struct select_out result;
    q->exists_next = json_is(body, "subLinkType", "EXISTS_SUBLINK");
    TRY(bind_subselect(b, node_body(select), q->ctes, q, false, &result));
    *out = result.rel;
    (*out)->position = position;
    return ERR_OK;
}

static struct expr *add_mark(struct bind *b, struct query *q, struct rel *rel, struct expr *cond,
                             i32 position) {
    struct pending p = {.rel = rel, .join = JOIN_MARK};
    p.mark_col = bind_col_new(b, NULL, "mark", type_of(TYPE_BOOLEAN), false);
    if (cond) {
        VEC_PUSH(b->arena, &p.conds, cond);
    }
    VEC_PUSH(b->arena, &q->pending, p);
    return expr_col(b->plan, p.mark_col, position);
}

static FALLIBLE bind_scalar_sublink(struct bind *b, struct query *q, const struct json *body,
                                    struct expr **out) {
    struct rel *rel = NULL;
    i32 position = json_position(body);
    TRY(bind_inner(b, q, body, &rel));
    if (rel->out.count != 1) {
        FAIL_AT(b->err, SYNTAX, position, "subquery must return only one column");
    }
    struct pending p = {.rel = rel, .join = JOIN_SINGLE};
    bind_nullable(b, rel);
    VEC_PUSH(b->arena, &q->pending, p);
    *out = expr_col(b->plan, rel->out.items[0], position);
    return ERR_OK;
}

FALLIBLE bind_row_subquery(struct bind *b, struct query *q, const struct json *body,
                           struct expr ***out, i32 *out_count) {
    struct rel *rel = NULL;
    TRY(bind_inner(b, q, body, &rel));
    struct pending p = {.rel = rel, .join = JOIN_SINGLE};
    bind_nullable(b, rel);
    VEC_PUSH(b->arena, &q->pending, p);
    *out_count = (i32)rel->out.count;
    *out = NEW_ARRAY(b->arena, struct expr *, rel->out.count + 1);
    for (i64 i = 0; i < rel->out.count; i++) {
        (*out)[i] = expr_col(b->plan, rel->out.items[i], json_position(body));
    }
    return ERR_OK;
}

static bool one_row(const struct rel *rel) {
    while (rel->kind == REL_PROJECT || rel->kind == REL_FILTER) {
        rel = rel_input(rel);
    }
    return (rel->kind == REL_AGG && rel->agg.keys.count == 0) ||
           (rel->kind == REL_VALUES && rel->rows <= 1) ||
           (rel->kind == REL_LIMIT && rel->limit.count && rel->limit.count->kind == EXPR_CONST &&
            rel->limit.count->value.i64 <= 1);
}

static void note_raising(struct expr **slot, void *arg) {
    *(bool *)arg = *(bool *)arg || expr_can_raise(*slot);
}

static void note_raising_rel(struct rel *rel, void *arg) {
    bool single =
        rel->kind == REL_JOIN && rel->join.kind == JOIN_SINGLE && !one_row(rel_right(rel));
    rel_each_expr(rel, note_raising, arg);
    *(bool *)arg = *(bool *)arg || single || rel_is_serial(rel);
}

/* Whether a subquery must not be computed for rows that do not ask for it: it uses their columns
 * and may raise or draws from a sequence. One that does not use them is computed once, and raises
 * where its value is used (pass lazy), but for its second row. */
static bool needs_guard(struct bind *b, const struct pending *p) {
    bool raises = false;
    if (p->join == JOIN_SINGLE && !one_row(p->rel)) {
        return true;
    }
    if ((p->join != JOIN_SINGLE && p->join != JOIN_MARK) ||
        rel_free_cols(b->plan, p->rel, NULL) == 0) {
        return false;
    }
    rel_each(b->arena, p->rel, note_raising_rel, &raises);
    return raises;
}

/* A condition that may raise, tested only where `guard` holds. What an equality compares stays one
 * operand, which can be a key: elsewhere it is NULL, and finds nothing. */
static struct expr *guard_cond(struct bind *b, struct expr *cond, struct expr *guard) {
    if (!expr_can_raise(cond)) {
        return cond;
    }
    bool equal = cond->kind == EXPR_CALL && cond->func == FUNC_EQ && !expr_can_raise(cond->args[1]);
    if (!equal && cond->kind != EXPR_AND) {
        struct expr *args[3] = {guard, cond, expr_bool(b->t, false, -1)};
        return expr_many(b->t, EXPR_CASE, cond->type, cond->position, 3, args);
    }
    struct expr *copy = expr_new(b->arena, cond->kind, cond->type, cond->position);
    *copy = *cond;
    copy->args = NEW_ARRAY(b->arena, struct expr *, cond->arg_count);
    for (i32 i = 0; i < cond->arg_count; i++) {
        copy->args[i] = equal ? cond->args[i] : guard_cond(b, cond->args[i], guard);
    }
    if (equal) {
        struct type type = cond->args[0]->type;
        struct expr *args[3] = {guard, cond->args[0], expr_null(b->t, type, -1)};
        copy->args[0] = expr_many(b->t, EXPR_CASE, type, cond->position, 3, args);
    }
    return copy;
}

void bind_guard(struct bind *b, struct query *q, i64 first, struct expr **whens, i32 count) {
    struct expr *guard = NULL;
    bind_guard_serials(b, q, first, whens, count);
    for (i64 i = first; i < q->pending.count; i++) {
        struct pending *p = &q->pending.items[i];
        if (p->serial) {
            continue;
        }
        guard = guard ? guard : bind_guard_expr(b, whens, count);
        for (i64 k = 0; k < p->conds.count; k++) {
            p->conds.items[k] = guard_cond(b, p->conds.items[k], guard);
        }
        if (needs_guard(b, p)) {
            VEC_PUSH(b->arena, &p->conds, guard);
        }
    }
}

/* x op ANY (q), or with ALL its negation: what is needed to make marks or joins of it. */
struct quantified {
    const struct json *body;
    const char *op;
    b8 all;
    i32 position;
    struct expr **left; /* one, or the fields of a row */
    i32 count;
    struct rel *rel;
    b8 dependent; /* uses columns of an outer query */
    b8 left_nullable, right_nullable;
    struct expr *cond; /* x op y; for ALL: NOT (x op y) */
};

static FALLIBLE quantified_left(struct bind *b, struct query *q, struct quantified *x) {
    const struct json *test = json_get(x->body, "testexpr");
    if (node_is(test, "RowExpr")) {
        return bind_row_fields(b, q, test, &x->left, &x->count);
    }
    x->left = NEW_ARRAY(b->arena, struct expr *, 1);
    x->count = 1;
    return bind_expr(b, q, test, &x->left[0]);
}

/* Binds the subquery (again) and the comparison with its columns. */
static FALLIBLE quantified_right(struct bind *b, struct query *q, struct quantified *x) {
    TRY(bind_inner(b, q, x->body, &x->rel));
    if (x->rel->out.count != x->count) {
        FAIL_AT(b->err, SYNTAX, x->position, "subquery has too %s columns",
                x->rel->out.count > x->count ? "many" : "few");
    }
    x->dependent = rel_free_cols(b->plan, x->rel, NULL) > 0;
    struct expr **right = NEW_ARRAY(b->arena, struct expr *, x->count);
    x->left_nullable = x->right_nullable = 0;
    for (i32 i = 0; i < x->count; i++) {
        right[i] = expr_col(b->plan, x->rel->out.items[i], x->position);
        TRY(coerce_unknown(b->t, x->left[i], right[i]->type, &x->left[i])); /* is it NULL, too */
        x->left_nullable = x->left_nullable || typing_nullable(b->t, x->left[i]);
        x->right_nullable = x->right_nullable || typing_nullable(b->t, right[i]);
    }
    TRY(bind_row_compare(b, x->op, x->left, right, x->count, x->position, &x->cond));
    if (x->cond->type.id != TYPE_BOOLEAN) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, x->position,
                "row comparison operator must yield type boolean");
    }
    x->cond = x->all ? expr_one(b->t, EXPR_NOT, x->cond, x->position) : x->cond;
    return ERR_OK;
}

static FALLIBLE bind_quantified(struct bind *b, struct query *q, const struct json *body,
                                struct quantified *x) {
    *x = (struct quantified){.body = body, .op = "=", .position = json_position(body)};
    x->all = json_is(body, "subLinkType", "ALL_SUBLINK");
    JSON_EACH(part, json_get(body, "operName")) {
        x->op = node_string(part);
    }
    TRY(quantified_left(b, q, x));
    TRY(need_no_set(b, q, x->left, x->count, x->position));
    return quantified_right(b, q, x);
}

/* Whether the result is unknown exactly when an operand is: then marks over NULLs decide. */
static bool plain_operator(const struct quantified *x) {
    static const char *const plain[] = {"=", "<>", "<", "<=", ">", ">=", "~~", "!~~"};
    for (i64 i = 0; x->count == 1 && i < COUNT_OF(plain); i++) {
        if (strcmp(plain[i], x->op) == 0) {
            return true;
        }
    }
    return false;
}

static struct rel *null_rows(struct bind *b, struct rel *input, i32 position) {
    struct rel *shared = bind_shared(b, input);
    struct expr *y = expr_col(b->plan, shared->out.items[0], position);
    return bind_filter(b, shared, expr_one(b->t, EXPR_IS_NULL, y, position));
}

/* The condition under which x op ANY is NULL when it is not true. */
static FALLIBLE unknown_mark(struct bind *b, struct query *q, struct quantified *x,
                             struct rel *input, struct expr **out) {
    i32 position = x->position;
    struct expr *args[2];
    i32 count = 0;
    if (x->right_nullable) {
        args[count++] = add_mark(b, q, null_rows(b, input, position), NULL, position);
    }
    if (x->left_nullable) {
        TRY(typing_sharable(b->t, x->left[0]));
        struct expr *both[2] = {expr_one(b->t, EXPR_IS_NULL, x->left[0], position),
                                add_mark(b, q, bind_shared(b, input), NULL, position)};
        args[count++] = expr_many(b->t, EXPR_AND, type_of(TYPE_BOOLEAN), position, 2, both);
    }
    *out = count == 1 ? args[0]
                      : expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), position, count, args);
    return ERR_OK;
}

/* Puts a SHARED between the subquery and its first user, so that others can follow. */
static FALLIBLE share_input(struct bind *b, struct quantified *x, struct rel **out_input) {
    struct expr **map = NEW_ARRAY(b->arena, struct expr *, b->plan->cols.count + 1);
    *out_input = x->rel;
    struct rel *shared = bind_shared(b, x->rel);
    for (i64 i = 0; i < shared->out.count; i++) {
        map[x->rel->out.items[i]] = expr_col(b->plan, shared->out.items[i], x->position);
    }
    x->cond = expr_map(b->arena, x->cond, map);
    x->rel = shared;
    return ERR_OK;
}

static FALLIBLE any_value_of(struct bind *b, struct query *q, struct quantified *x,
                             struct expr **out) {
    i32 position = x->position;
    struct type boolean = type_of(TYPE_BOOLEAN);
    struct expr *unknown = NULL;
    struct expr *match = NULL;
    bool nulls = typing_nullable(b->t, x->cond);
    if (!nulls) {
        *out = add_mark(b, q, x->rel, x->cond, position);
        return ERR_OK;
    }
    if (!x->dependent && plain_operator(x)) {
        struct rel *input = NULL;
        TRY(share_input(b, x, &input));
        match = add_mark(b, q, x->rel, x->cond, position);
        TRY(unknown_mark(b, q, x, input, &unknown));
    } else {
        match = add_mark(b, q, x->rel, x->cond, position);
        TRY(quantified_right(b, q, x));
        unknown = add_mark(b, q, x->rel, expr_one(b->t, EXPR_IS_NULL, x->cond, position), position);
    }
    struct expr *args[5] = {match, expr_bool(b->t, true, position), unknown,
                            expr_null(b->t, boolean, position), expr_bool(b->t, false, position)};
    *out = expr_many(b->t, EXPR_CASE, boolean, position, 5, args);
    return ERR_OK;
}

/* The join that makes a column; NULL when it was made elsewhere. */
static const struct pending *pending_of(const struct query *q, u32 col) {
    i64 count = q->pending.count + q->below.count; /* group keys stand below */
    for (i64 i = 0; i < count; i++) {
        const struct pending *p =
            i < q->pending.count ? &q->pending.items[i] : &q->below.items[i - q->pending.count];
        bool makes = p->join == JOIN_MARK ? p->mark_col == col : p->rel && rel_has_out(p->rel, col);
        if (!p->serial && makes) {
            return p;
        }
    }
    return NULL;
}

struct cond_count {
    const struct query *q;
    i64 joins, conds;
};

static void count_conds(u32 col, void *arg) {
    struct cond_count *c = arg;
    const struct pending *p = pending_of(c->q, col);
    c->joins += p != NULL;
    c->conds += p ? p->conds.count : 0;
}

bool bind_met_before(const struct bind *b, const struct query *q, const struct json *body,
                     struct expr **out) {
    for (i64 i = 0; q->sets_allowed && !q->in_agg && i < q->sublinks.count; i++) {
        const struct bound_sublink *seen = &q->sublinks.items[i];
        struct cond_count now = {.q = q};
        if (!json_same(seen->body, body, b->parsed->script)) {
            continue;
        }
        expr_each_col(seen->expr, count_conds, &now);
        if (now.joins == seen->joins && now.conds == seen->conds) {
            *out = seen->expr;
            return true;
        }
    }
    return false;
}

void bind_note_met(struct bind *b, struct query *q, const struct json *body, struct expr *expr) {
    struct cond_count now = {.q = q};
    if (q->sets_allowed && !q->in_agg) {
        expr_each_col(expr, count_conds, &now);
        VEC_PUSH(b->arena, &q->sublinks,
                 ((struct bound_sublink){body, expr, now.joins, now.conds}));
    }
}

FALLIBLE bind_sublink(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "subLinkType testexpr operName subselect location", position));
    bool scalar = json_is(body, "subLinkType", "EXPR_SUBLINK");
    if (scalar || json_is(body, "subLinkType", "EXISTS_SUBLINK")) {
        struct rel *rel = NULL;
        if (bind_met_before(b, q, body, out)) {
            return ERR_OK;
        }
        if (scalar) {
            TRY(bind_scalar_sublink(b, q, body, out));
        } else {
            TRY(bind_inner(b, q, body, &rel));
            *out = add_mark(b, q, rel, NULL, position);
        }
        bind_note_met(b, q, body, *out);
        return ERR_OK;
    }
    bool any = json_is(body, "subLinkType", "ANY_SUBLINK");
    if (!any && !json_is(body, "subLinkType", "ALL_SUBLINK")) {
        return unsupported(b, position, "an array of a subquery");
    }
    struct quantified x;
    TRY(bind_quantified(b, q, body, &x));
    TRY(any_value_of(b, q, &x, out));
    *out = any ? *out : expr_one(b->t, EXPR_NOT, *out, position);
    return ERR_OK;
}

static void push_join(struct bind *b, enum join_kind kind, struct rel *right, struct expr *cond,
                      struct rel **io_rel) {
    struct rel *join = join_on(b, kind, *io_rel, right);
    if (cond) {
        VEC_PUSH(b->arena, &join->join.conds, cond);
    }
    join->rows = MAX_OF((*io_rel)->rows / 2, 1);
    *io_rel = join;
}

/* Rows for which x op ANY is false: neither a match nor an unknown. */
static FALLIBLE where_none(struct bind *b, struct query *q, struct quantified *x,
                           struct rel **io_rel) {
    i32 position = x->position;
    if (!typing_nullable(b->t, x->cond)) {
        push_join(b, JOIN_ANTI, x->rel, x->cond, io_rel);
        return ERR_OK;
    }
    if (x->dependent || !plain_operator(x)) { /* a match is whatever is not false */
        struct expr *args[3] = {expr_one(b->t, EXPR_NOT, x->cond, position),
                                expr_bool(b->t, false, position), expr_bool(b->t, true, position)};
        struct expr *match = expr_many(b->t, EXPR_CASE, type_of(TYPE_BOOLEAN), position, 3, args);
        push_join(b, JOIN_ANTI, x->rel, match, io_rel);
        return ERR_OK;
    }
    struct rel *input = NULL;
    TRY(share_input(b, x, &input));
    push_join(b, JOIN_ANTI, x->rel, x->cond, io_rel);
    if (x->right_nullable) {
        push_join(b, JOIN_ANTI, null_rows(b, input, position), NULL, io_rel);
    }
    if (x->left_nullable) {
        struct expr *any = add_mark(b, q, bind_shared(b, input), NULL, position);
        struct expr *is_null = expr_one(b->t, EXPR_IS_NULL, x->left[0], position);
        struct expr *args[2] = {expr_one(b->t, EXPR_NOT, is_null, position),
                                expr_one(b->t, EXPR_NOT, any, position)};
        *io_rel = bind_attach(b, *io_rel, &q->pending);
        *io_rel = bind_filter(b, *io_rel,
                              expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), position, 2, args));
    }
    return ERR_OK;
}

static FALLIBLE where_sublink(struct bind *b, struct query *q, const struct json *body,
                              bool negated, struct rel **io_rel) {
    TRY(bind_only(b, body, "subLinkType testexpr operName subselect location",
                  json_position(body)));
    if (json_is(body, "subLinkType", "EXISTS_SUBLINK")) {
        struct rel *rel = NULL;
        TRY(bind_inner(b, q, body, &rel));
        push_join(b, negated ? JOIN_ANTI : JOIN_SEMI, rel, NULL, io_rel);
        return ERR_OK;
    }
    struct quantified x;
    TRY(bind_quantified(b, q, body, &x));
    *io_rel = bind_attach(b, *io_rel, &q->pending);
    if (x.all != negated) {
        return where_none(b, q, &x, io_rel);
    }
    push_join(b, JOIN_SEMI, x.rel, x.cond, io_rel);
    return ERR_OK;
}

static bool is_test(const struct json *node) {
    if (!node_is(node, "SubLink")) {
        return false;
    }
    const struct json *body = node_body(node);
    return json_is(body, "subLinkType", "EXISTS_SUBLINK") ||
           json_is(body, "subLinkType", "ANY_SUBLINK") ||
           json_is(body, "subLinkType", "ALL_SUBLINK");
}

/* A NOT around a node, as often as there are. */
static const struct json *strip_not(const struct json *node, bool *out_negated) {
    *out_negated = false;
    while (node_is(node, "BoolExpr") && json_is(node_body(node), "boolop", "NOT_EXPR")) {
        *out_negated = !*out_negated;
        node = json_first(json_get(node_body(node), "args"));
    }
    return node;
}

FALLIBLE bind_where(struct bind *b, struct query *q, const struct json *node, const char *clause,
                    struct rel **io_rel) {
    bool negated = false;
    if (node_is(node, "BoolExpr") && json_is(node_body(node), "boolop", "AND_EXPR")) {
        TRY(bind_enter(b, NEST_EXPR, json_position(node_body(node))));
        JSON_EACH(arg, json_get(node_body(node), "args")) {
            TRY(bind_where(b, q, arg, "AND", io_rel));
        }
        bind_leave(b, NEST_EXPR);
        return ERR_OK;
    }
    const struct json *inner = strip_not(node, &negated);
    if (is_test(inner)) {
        return where_sublink(b, q, node_body(inner), negated, io_rel);
    }
    struct expr *cond = NULL;
    TRY(bind_condition(b, q, node, clause, &cond));
    *io_rel = bind_attach(b, *io_rel, &q->pending);
    if ((*io_rel)->kind == REL_FILTER) { /* of the conjunct before */
        struct rel *more = bind_filter(b, rel_input(*io_rel), cond);
        for (i64 i = 0; i < more->filter.conds.count; i++) {
            VEC_PUSH(b->arena, &(*io_rel)->filter.conds, more->filter.conds.items[i]);
        }
        return ERR_OK;
    }
    *io_rel = bind_filter(b, *io_rel, cond);
    return ERR_OK;
}
