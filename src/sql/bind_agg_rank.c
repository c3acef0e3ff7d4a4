/* bind_agg_rank.c: hypothetical-set aggregates: where a row would stand among those of its group.
 *
 * Part of binding. rank(v) WITHIN GROUP (ORDER BY x) and its kin need no order: they are made from
 * counts of the rows that come before the row v, or beside it. What comes before follows from the
 * sort keys one by one, NULLs included; the row itself must be constant. */
#include "sql/sql_int.h"

#include "codes/scalar.h"

enum { KEYS_MAX = 8 };

static bool is_plain(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return expr->kind != EXPR_COL;
}

static struct expr *both(struct bind *b, enum expr_kind kind, struct expr *x, struct expr *y) {
    struct expr *args[2] = {x, y};
    return !x ? y : expr_many(b->t, kind, type_of(TYPE_BOOLEAN), y->position, 2, args);
}

/* Whether the key comes before v in the order; NULL counts as no. */
static struct expr *key_before(struct bind *b, const struct order_key *key, struct expr *v) {
    i32 position = v->position;
    struct type logical = type_of(TYPE_BOOLEAN);
    struct expr *key_null = expr_one(b->t, EXPR_IS_NULL, key->expr, position);
    struct expr *v_null = expr_one(b->t, EXPR_IS_NULL, v, position);
    struct expr *less = expr_call(b->arena, key->descending ? FUNC_GT : FUNC_LT, logical, position,
                                  2, key->expr, v);
    if (key->nulls_first) {
        struct expr *there = expr_one(b->t, EXPR_NOT, v_null, position);
        return both(b, EXPR_OR, less, both(b, EXPR_AND, key_null, there));
    }
    struct expr *there = expr_one(b->t, EXPR_NOT, key_null, position);
    return both(b, EXPR_OR, less, both(b, EXPR_AND, there, v_null));
}

static struct expr *key_equal(struct bind *b, const struct order_key *key, struct expr *v) {
    struct expr *nulls = both(b, EXPR_AND, expr_one(b->t, EXPR_IS_NULL, key->expr, v->position),
                              expr_one(b->t, EXPR_IS_NULL, v, v->position));
    struct expr *same =
        expr_call(b->arena, FUNC_EQ, type_of(TYPE_BOOLEAN), v->position, 2, key->expr, v);
    return both(b, EXPR_OR, same, nulls);
}

/* Rows before the row of args, or up to it. */
static struct expr *rows_before(struct bind *b, const struct agg_call *call, struct expr **args,
                                bool up_to) {
    struct expr *all = NULL, *same = NULL;
    for (i64 i = 0; i < call->order.count; i++) {
        const struct order_key *key = &call->order.items[i];
        struct expr *before = key_before(b, key, args[i]);
        all = both(b, EXPR_OR, all, both(b, EXPR_AND, same, before));
        same = both(b, EXPR_AND, same, key_equal(b, key, args[i]));
    }
    return up_to ? both(b, EXPR_OR, all, same) : all;
}

static struct expr *count_where(struct bind *b, struct query *owner, const struct agg_call *call,
                                struct expr *arg, struct expr *cond) {
    struct agg_call part = {.agg = (u8)(arg ? AGG_COUNT : AGG_COUNT_STAR),
                            .distinct = arg != NULL,
                            .arg = arg,
                            .position = call->position};
    part.filter = !cond          ? call->filter
                  : call->filter ? both(b, EXPR_AND, call->filter, cond)
                                 : cond;
    u32 col = agg_add(b, owner, &part, type_of(TYPE_BIGINT));
    return expr_col(b->plan, col, call->position);
}

/* A key as a text: equal ones have equal texts, and no text is the beginning of another. */
static FALLIBLE key_text(struct bind *b, struct expr *key, struct expr **out) {
    i32 position = key->position;
    const struct type_name text = {.type = type_of(TYPE_TEXT), .position = position};
    if (key->type.id == TYPE_INTERVAL) { /* a day is 24 hours */
        key = scalar_call(b->t, FUNC_JUSTIFY_INTERVAL, position, 1, key);
    } else if (key->type.id == TYPE_REAL || key->type.id == TYPE_DOUBLE) { /* one zero */
        struct expr *zero = expr_new(b->arena, EXPR_CONST, key->type, position);
        key = expr_call(b->arena, FUNC_ADD, key->type, position, 2, key, zero);
    }
    TRY(coerce_cast(b->t, key, &text, position, &key));
    struct expr *known[2] = {scalar_call(b->t, FUNC_QUOTE_LITERAL, position, 1, key),
                             expr_text(b->t, SV("NULL"), position)};
    *out = expr_many(b->t, EXPR_CALL, text.type, position, 2, known);
    (*out)->func = FUNC_COALESCE;
    return ERR_OK;
}

/* Different keys before the row; several are one as a list of literals. */
static FALLIBLE dense(struct bind *b, struct query *owner, const struct agg_call *call,
                      struct expr **args, struct expr **out) {
    i32 position = call->position;
    struct expr *all = NULL;
    for (i64 i = 0; i < call->order.count; i++) {
        struct expr *text = NULL;
        TRY(key_text(b, call->order.items[i].expr, &text));
        if (all) {
            all = expr_call(b->arena, FUNC_CONCAT, text->type, position, 2, all,
                            expr_text(b->t, SV(","), position));
        }
        all = all ? expr_call(b->arena, FUNC_CONCAT, text->type, position, 2, all, text) : text;
    }
    *out = count_where(b, owner, call, all, rows_before(b, call, args, false));
    return operator_arithmetic(b->t, FUNC_ADD, *out, expr_int(b->t, 1, position), position, out);
}

/* Different keys before v; NULL is one, where it comes first. */
static FALLIBLE dense_of_one(struct bind *b, struct query *owner, const struct agg_call *call,
                             struct expr **args, struct expr **out) {
    const struct order_key *key = &call->order.items[0];
    i32 position = call->position;
    *out = count_where(b, owner, call, key->expr, rows_before(b, call, args, false));
    if (key->nulls_first && !args[0]->is_null) {
        struct expr *nulls =
            count_where(b, owner, call, NULL, expr_one(b->t, EXPR_IS_NULL, key->expr, position));
        struct expr *one = expr_int(b->t, 1, position), *least = NULL;
        TRY(coerce_to(b->t, one, type_of(TYPE_BIGINT), &one));
        least = expr_call(b->arena, FUNC_LEAST, type_of(TYPE_BIGINT), position, 2, nulls, one);
        TRY(operator_arithmetic(b->t, FUNC_ADD, *out, least, position, out));
    }
    return operator_arithmetic(b->t, FUNC_ADD, *out, expr_int(b->t, 1, position), position, out);
}

/* before / all (0 of none), or (up to + 1) / (all + 1). */
static FALLIBLE share(struct bind *b, struct query *owner, const struct agg_call *call,
                      struct expr **args, bool percent, struct expr **out) {
    i32 position = call->position;
    struct expr *part = count_where(b, owner, call, NULL, rows_before(b, call, args, !percent));
    struct expr *all = count_where(b, owner, call, NULL, NULL);
    struct expr *one = expr_int(b->t, 1, position);
    if (percent) {
        all = expr_call(b->arena, FUNC_GREATEST, type_of(TYPE_BIGINT), position, 2, all, NULL);
        TRY(coerce_to(b->t, one, type_of(TYPE_BIGINT), &all->args[1]));
    } else {
        TRY(operator_arithmetic(b->t, FUNC_ADD, part, one, position, &part));
        TRY(operator_arithmetic(b->t, FUNC_ADD, all, one, position, &all));
    }
    TRY(coerce_to(b->t, part, type_of(TYPE_DOUBLE), &part));
    TRY(coerce_to(b->t, all, type_of(TYPE_DOUBLE), &all));
    return operator_arithmetic(b->t, FUNC_DIV, part, all, position, out);
}

static FALLIBLE settle_keys(struct bind *b, const char *name, struct agg_call *call,
                            struct expr **args, i32 count) {
    if (count != call->order.count || count > KEYS_MAX) {
        return call_undefined(b->t, name, args, count, call->position);
    }
    for (i32 i = 0; i < count; i++) {
        struct expr *pair[2] = {call->order.items[i].expr, args[i]};
        struct type type;
        if (!expr_walk(args[i], is_plain, NULL)) {
            return unsupported(b, args[i]->position, "%s of a row that is not constant", name);
        }
        TRY(coerce_common(b->t, pair, 2, "WITHIN GROUP", &type));
        TRY(coerce_to(b->t, pair[0], type, &call->order.items[i].expr));
        TRY(coerce_to(b->t, pair[1], type, &args[i]));
    }
    return ERR_OK;
}

bool agg_is_hypothetical(const char *name) {
    return strcmp(name, "rank") == 0 || strcmp(name, "dense_rank") == 0 ||
           strcmp(name, "percent_rank") == 0 || strcmp(name, "cume_dist") == 0;
}

FALLIBLE bind_hypothetical(struct bind *b, struct query *q, const char *name,
                           const struct json *body, struct expr **out) {
    struct agg_call call = {.agg = AGG_COUNT, .position = json_position(body)};
    struct query *owner = NULL;
    struct expr **args = NULL;
    i32 count = 0;
    TRY(bind_only(b, body,
                  "funcname args funcformat agg_star agg_filter agg_order agg_within_group location",
                  call.position));
    TRY(agg_bind_sorted(b, q, body, &call, &args, &count, &owner));
    TRY(settle_keys(b, name, &call, args, count));
    if (strcmp(name, "dense_rank") == 0) {
        return count == 1 ? dense_of_one(b, owner, &call, args, out)
                          : dense(b, owner, &call, args, out);
    }
    if (strcmp(name, "rank") != 0) {
        return share(b, owner, &call, args, strcmp(name, "percent_rank") == 0, out);
    }
    *out = count_where(b, owner, &call, NULL, rows_before(b, &call, args, false));
    return operator_arithmetic(b->t, FUNC_ADD, *out, expr_int(b->t, 1, call.position),
                               call.position, out);
}
