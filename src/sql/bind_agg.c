/* bind_agg.c: aggregate calls: their names, forms, types, and the query they belong to.
 *
 * Part of binding; arguments: typing/aggregate.c. An aggregate call becomes a column of the AGG
 * operator at once, equal calls the same one; the expression around it is bound as if over the
 * input and rewritten later (bind_group.c). A call belongs to the innermost query whose columns its
 * arguments use: within a subquery, sum(outer.x) is an aggregate of the outer query. */
#include "sql/sql_int.h"

static FALLIBLE check_place(struct bind *b, struct query *q, i32 position) {
    if (q->in_agg) {
        FAIL_AT(b->err, GROUPING, position, "aggregate function calls cannot be nested");
    }
    if (!q->aggs_allowed) {
        FAIL_AT(b->err, GROUPING, position, "aggregate functions are not allowed in %s", q->clause);
    }
    q->seen.agg = q->seen.agg ? q->seen.agg : position + 1;
    return ERR_OK;
}

/* A call that no aggregate of the name takes: what it says is looked at first. */
static FALLIBLE wrong_form(struct bind *b, struct query *q, const char *name,
                           const struct json *body, const char *why) {
    struct expr **args = NULL;
    i32 count = 0, position = json_position(body);
    TRY(bind_list(b, q, json_get(bind_call_ordered(b, body), "args"), &args, &count));
    TRY(bind_call_filter(b, q, body));
    if (!why) {
        return call_undefined(b->t, name, args, count, position);
    }
    FAIL_AT(b->err, WRONG_OBJECT, position, why, name);
}

static FALLIBLE check_form(struct bind *b, struct query *q, const char *name, i32 agg,
                           const struct json *body) {
    bool within = json_flag(body, "agg_within_group");
    TRY(bind_only(b, body,
                  "funcname args funcformat agg_star agg_distinct agg_filter agg_order "
                  "agg_within_group over location",
                  json_position(body)));
    i32 count = json_count(json_get(body, "args"));
    bool star = json_flag(body, "agg_star");
    bool plain = strcmp(name, "median") == 0;
    bool set = agg_is_ordered_set(agg) && !plain;
    if (count == 0 && !within && agg == AGG_COUNT && !star) {
        return wrong_form(b, q, name, body,
                          "%s(*) must be used to call a parameterless aggregate function");
    }
    if (star && agg != AGG_COUNT && !(within && agg == AGG_MODE)) {
        return wrong_form(b, q, name, body, NULL);
    }
    if (!within && set && count == (agg == AGG_MODE ? 1 : 2)) {
        return wrong_form(b, q, name, body,
                          "WITHIN GROUP is required for ordered-set aggregate %s");
    }
    bool one = count == 0 && json_count(json_get(body, "agg_order")) == 1;
    if (within && !set && one && agg != AGG_STRING_AGG) {
        return wrong_form(b, q, name, body,
                          "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
    }
    return within == set ? ERR_OK : wrong_form(b, q, name, body, NULL);
}

static bool count_node(const struct expr *expr, void *arg) {
    i32 *left = arg;
    UNUSED(expr);
    return --*left > 0;
}

const char *bind_short_name(struct bind *b, const struct expr *expr, const char *otherwise) {
    enum { NODES_MAX = 12, TEXT_MAX = 40 };
    i32 left = NODES_MAX;
    if (expr->kind == EXPR_COL) {
        return b->plan->cols.items[expr->col].name;
    }
    if (!expr_walk(expr, count_node, &left)) {
        return otherwise;
    }
    struct text text;
    text_init(&text, b->arena);
    expr_print(&text, b->plan, expr);
    return text.len <= TEXT_MAX ? text.ptr : otherwise;
}

static const char *call_name(struct bind *b, enum agg agg, const struct expr *arg) {
    const char *of = arg ? bind_short_name(b, arg, "...") : "*";
    return arena_printf(b->arena, "%s(%s)", agg_names[agg], of);
}

static bool orders_equal(const struct agg_call *x, const struct agg_call *y) {
    bool same = x->order.count == y->order.count;
    for (i64 i = 0; same && i < x->order.count; i++) {
        const struct order_key *p = &x->order.items[i];
        const struct order_key *q = &y->order.items[i];
        same = p->descending == q->descending && p->nulls_first == q->nulls_first &&
               expr_equal(p->expr, q->expr);
    }
    return same;
}

u32 agg_add(struct bind *b, struct query *q, struct agg_call *call, struct type type) {
    for (i64 i = 0; i < q->calls.count; i++) {
        const struct agg_call *old = &q->calls.items[i];
        if (old->agg == call->agg && old->distinct == call->distinct &&
            agg_same(old->arg, call->arg) && agg_same(old->arg2, call->arg2) &&
            agg_same(old->filter, call->filter) && orders_equal(old, call)) {
            return old->col;
        }
    }
    bool nullable = call->agg != AGG_COUNT && call->agg != AGG_COUNT_STAR;
    const char *name = call_name(b, (enum agg)call->agg, call->arg);
    call->col = bind_col_new(b, NULL, name, type, nullable);
    VEC_PUSH(b->arena, &q->calls, *call);
    return call->col;
}

static FALLIBLE bind_call_order(struct bind *b, struct query *q, const struct json *list,
                                struct agg_call *call) {
    JSON_EACH(node, list) {
        const struct json *sort = node_body(node);
        struct order_key key = {0};
        TRY(bind_sort_options(b, sort, &key.descending, &key.nulls_first));
        TRY(bind_expr(b, q, json_get(sort, "node"), &key.expr));
        bool any = call->agg == AGG_PERCENTILE_DISC || call->agg == AGG_MODE;
        if (any && is_unknown(key.expr)) {
            FAIL_AT(b->err, DATATYPE_MISMATCH, key.expr->position,
                    "could not determine polymorphic type because input has type unknown");
        }
        if (call->agg != AGG_PERCENTILE_CONT) { /* which takes it for a number */
            TRY(coerce_unknown(b->t, key.expr, type_of(TYPE_TEXT), &key.expr));
        }
        VEC_PUSH(b->arena, &call->order, key);
    }
    return ERR_OK;
}

/* Equal arguments have one order only when it is theirs. */
static FALLIBLE check_distinct_order(struct bind *b, const struct agg_call *call,
                                     struct expr *const *args, i32 count) {
    for (i64 i = 0; call->distinct && i < call->order.count; i++) {
        const struct expr *key = call->order.items[i].expr;
        bool found = false;
        for (i32 k = 0; k < count; k++) {
            found |= expr_equal(key, args[k]);
        }
        if (!found) {
            FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, key->position,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument "
                    "list");
        }
    }
    return ERR_OK;
}

/* FILTER, which is asked before the arguments: what those draw from sequences is drawn for the rows
 * that pass it. Calls pending since `first` are theirs. */
static FALLIBLE bind_agg_filter(struct bind *b, struct query *q, const struct json *filter,
                                i64 first, struct agg_call *out) {
    b8 allowed = q->aggs_allowed; /* of a window's aggregate, whose arguments may have some */
    const char *clause = q->clause;
    i64 middle = q->pending.count;
    q->aggs_allowed = 0;
    q->clause = "FILTER";
    TRY(bind_condition(b, q, filter, "FILTER", &out->filter));
    q->aggs_allowed = allowed;
    q->clause = clause;
    pending_list sorted = {0};
    for (i64 i = middle; i < q->pending.count; i++) {
        VEC_PUSH(b->arena, &sorted, q->pending.items[i]);
    }
    i64 own = first + sorted.count;
    for (i64 i = first; i < middle; i++) {
        VEC_PUSH(b->arena, &sorted, q->pending.items[i]);
    }
    for (i64 i = 0; i < sorted.count; i++) {
        q->pending.items[first + i] = sorted.items[i];
    }
    bind_guard_serials(b, q, own, &out->filter, 1);
    return ERR_OK;
}

/* count(t) counts rows of t; where an outer join may leave it out, its key says whether it did. */
static FALLIBLE count_whole_rows(struct bind *b, struct query *q, const struct json *args,
                                 bool *out_all, struct expr **out_key) {
    struct expr **fields = NULL;
    i32 count = 0;
    TRY(json_count(args) == 1 ? bind_whole_row(b, q, json_first(args), &fields, &count) : ERR_OK);
    if (count == 0) {
        return ERR_OK;
    }
    *out_all = scope_has(q->scope, fields[0]->col) && q->scope->tables.count == 1;
    for (i64 i = 0; i < b->scan_keys.count; i++) {
        const struct scan_key *known = &b->scan_keys.items[i];
        if (fields[0]->col >= known->first && fields[0]->col - known->first < known->count) {
            *out_key = expr_col(b->plan, known->first + known->keys[0], fields[0]->position);
        }
    }
    return ERR_OK;
}

FALLIBLE bind_agg_call(struct bind *b, struct query *q, const char *name, const struct json *body,
                       struct agg_call *out, struct type *out_type) {
    i32 position = json_position(body);
    i32 agg = agg_named(name);
    struct expr **args = NULL;
    i32 count = 0;
    i64 first = q->pending.count;
    TRY(check_form(b, q, name, agg, body));
    out->position = position;
    out->agg = (u8)agg;
    out->distinct = json_flag(body, "agg_distinct");
    bool all = agg == AGG_COUNT && json_flag(body, "agg_star");
    struct expr *key = NULL;
    if (agg == AGG_COUNT && !out->distinct) {
        TRY(count_whole_rows(b, q, json_get(body, "args"), &all, &key));
    }
    if (key && !all) {
        args = &key;
        count = 1;
    } else if (!all) {
        TRY(bind_list(b, q, json_get(body, "args"), &args, &count));
    }
    TRY(bind_call_order(b, q, json_get(body, "agg_order"), out));
    if (json_get(body, "agg_filter")) {
        TRY(bind_agg_filter(b, q, json_get(body, "agg_filter"), first, out));
    }
    if (all) {
        out->agg = AGG_COUNT_STAR;
        *out_type = type_of(TYPE_BIGINT);
        return ERR_OK;
    }
    TRY(check_distinct_order(b, out, args, count));
    struct call call = {name, args, count, position, 0};
    return agg_args(b->t, &call, out, out_type);
}

/* How far out the query is to which the columns of a call belong; -1: it names none. */
struct level_walk {
    struct bind *b;
    const struct query *from;
    i64 before; /* subqueries pending since then are the call's */
    i32 level;
    i32 nested; /* the innermost query an aggregate among the arguments belongs to; -1: there is none */
};

static void note_level(u32 col, void *arg);

static void mark_used(u32 col, void *arg) {
    ((u8 *)arg)[col] = 1;
}

/* A subquery belongs where the columns do that it uses and does not make. */
static void note_pending_level(struct level_walk *w, const struct pending *p) {
    i64 cols = w->b->plan->cols.count;
    u8 *is_free = NEW_ARRAY(w->b->arena, u8, cols + 1);
    (void)rel_free_cols(w->b->plan, p->rel, is_free);
    for (i64 i = 0; i < p->conds.count; i++) {
        expr_each_col(p->conds.items[i], mark_used, is_free);
    }
    for (i64 i = 0; i < cols; i++) {
        if (is_free[i] && !rel_has_out(p->rel, (u32)i)) {
            note_level((u32)i, w);
        }
    }
}

static void note_level(u32 col, void *arg) {
    struct level_walk *w = arg;
    i32 level = 0;
    for (const struct query *q = w->from; q; q = q->outer, level++) {
        if (scope_has(q->scope, col)) {
            w->level = w->level < 0 ? level : MIN_OF(w->level, level);
            return;
        }
        for (i64 i = 0; i < q->calls.count; i++) {
            if (q->calls.items[i].col == col) { /* an aggregate of a query around this one */
                w->level = w->level < 0 ? level : MIN_OF(w->level, level);
                w->nested = w->nested < 0 ? level : MIN_OF(w->nested, level);
                return;
            }
        }
    }
    for (i64 i = w->before; i < w->from->pending.count; i++) {
        const struct pending *p = &w->from->pending.items[i];
        if (!p->serial &&
            (rel_has_out(p->rel, col) || (p->join == JOIN_MARK && p->mark_col == col))) {
            note_pending_level(w, p);
            return;
        }
    }
    w->level = 0; /* made by this query: it belongs here */
}

static void note_slot_level(struct expr **slot, void *arg) {
    expr_each_col(*slot, note_level, arg);
}

static struct query *outer_query(struct query *q, i32 level) {
    for (i32 i = 0; i < level; i++) {
        q = q->outer;
    }
    return q;
}

/* The query whose groups a call is made for; what its arguments wait for goes below them. */
static FALLIBLE find_owner(struct bind *b, struct query *q, struct agg_call *call, i64 before,
                           struct query **out) {
    struct level_walk w = {b, q, before, -1, -1};
    agg_each_expr(call, note_slot_level, &w);
    struct query *owner = outer_query(q, w.level);
    TRY(check_place(b, owner, call->position));
    if (w.nested >= 0 && w.nested == w.level) {
        FAIL_AT(b->err, GROUPING, call->position, "aggregate function calls cannot be nested");
    }
    for (i64 i = before; i < q->pending.count; i++) {
        VEC_PUSH(b->arena, &owner->below, q->pending.items[i]);
    }
    q->pending.count = before;
    *out = owner;
    return ERR_OK;
}

FALLIBLE agg_bind_sorted(struct bind *b, struct query *q, const struct json *body,
                         struct agg_call *call, struct expr ***out_args, i32 *out_count,
                         struct query **out_owner) {
    i64 before = q->pending.count;
    b8 was_in = q->in_agg;
    const char *no_sets = q->no_sets;
    q->in_agg = 1;
    q->no_sets = "aggregate function calls cannot contain set-returning function calls";
    TRY(bind_list(b, q, json_get(body, "args"), out_args, out_count));
    TRY(bind_call_order(b, q, json_get(body, "agg_order"), call));
    if (json_get(body, "agg_filter")) {
        TRY(bind_agg_filter(b, q, json_get(body, "agg_filter"), before, call));
    }
    q->in_agg = was_in;
    q->no_sets = no_sets;
    return find_owner(b, q, call, before, out_owner);
}

FALLIBLE bind_aggregate(struct bind *b, struct query *q, const char *name, const struct json *body,
                        struct expr **out) {
    i32 position = json_position(body);
    struct agg_call call = {0};
    struct type type;
    i64 before = q->pending.count;
    b8 was_in = q->in_agg;
    const char *no_sets = q->no_sets;
    q->in_agg = 1;
    q->no_sets = "aggregate function calls cannot contain set-returning function calls";
    TRY(bind_agg_call(b, q, name, body, &call, &type));
    q->in_agg = was_in;
    q->no_sets = no_sets;
    struct query *owner = NULL;
    TRY(find_owner(b, q, &call, before, &owner));
    if (agg_is_of_parts(&call)) {
        struct expr *parts[AGG_PARTS] = {NULL};
        struct agg_call part;
        TRY(call.distinct ? unsupported(b, position, "DISTINCT in %s of these arguments", name)
                          : ERR_OK);
        for (i32 i = 0; i < AGG_PARTS; i++) {
            if (agg_part(b->t, &call, i, &part, &type)) {
                parts[i] = expr_col(b->plan, agg_add(b, owner, &part, type), position);
            }
        }
        return agg_of_parts(b->t, (enum agg)call.agg, parts, position, out);
    }
    *out = expr_col(b->plan, agg_add(b, owner, &call, type), position);
    return ERR_OK;
}

void bind_count_star(struct bind *b, struct query *q) {
    struct agg_call call = {.agg = AGG_COUNT_STAR, .position = -1};
    (void)agg_add(b, q, &call, type_of(TYPE_BIGINT));
}

FALLIBLE bind_grouping(struct bind *b, struct query *q, const struct json *body,
                       struct expr **out) {
    struct grouping_call call = {.position = json_position(body)};
    TRY(bind_only(b, body, "args location", call.position));
    TRY(bind_list(b, q, json_get(body, "args"), &call.args, &call.arg_count));
    struct level_walk w = {b, q, q->pending.count, -1, -1};
    for (i32 i = 0; i < call.arg_count; i++) {
        expr_each_col(call.args[i], note_level, &w);
    }
    struct query *owner = outer_query(q, w.level);
    TRY(check_place(b, owner, call.position));
    if (call.arg_count > 31) {
        FAIL_AT(b->err, TOO_MANY_COLUMNS, call.position,
                "GROUPING must have fewer than 32 arguments");
    }
    call.col = bind_col_new(b, NULL, "grouping", type_of(TYPE_INTEGER), false);
    VEC_PUSH(b->arena, &owner->groupings, call);
    *out = expr_col(b->plan, call.col, call.position);
    return ERR_OK;
}
