/* bind_case.c: CASE and everything that is written as one.
 *
 * Part of binding. COALESCE, NULLIF, GREATEST and LEAST are functions that lowering knows, so that
 * their operands are computed once however deep they nest. IS DISTINCT FROM and IS TRUE have no
 * operator of their own in the plan: each becomes a CASE over comparisons and IS NULL. Where an
 * operand is needed twice the same expression is shared, and bind_sharable keeps the tree that this
 * unfolds to within bounds. */
#include "sql/sql_int.h"

#include "codes/func.h"

/* args: when, then, …, else; the results come to one type. */
static FALLIBLE make_case(struct bind *b, struct expr **args, i32 count, const char *what,
                          i32 position, struct expr **out) {
    i32 result_count = count / 2 + 1;
    struct expr **results = NEW_ARRAY(b->arena, struct expr *, result_count);
    for (i32 i = 0; i < result_count - 1; i++) {
        results[i + 1] = args[2 * i + 1];
    }
    results[0] = args[count - 1]; /* PostgreSQL looks at ELSE first */
    struct type type;
    TRY(coerce_common(b, results, result_count, what, &type));
    for (i32 i = 0; i < result_count - 1; i++) {
        args[2 * i + 1] = results[i + 1];
    }
    args[count - 1] = results[0];
    *out = expr_many(b, EXPR_CASE, type, position, count, args);
    return ERR_OK;
}

/* The condition of one WHEN. */
static FALLIBLE bind_when(struct bind *b, struct query *q, struct expr *operand,
                          const struct json *when, struct expr **out) {
    const struct json *node = json_get(when, "expr");
    if (!operand) {
        return bind_condition(b, q, node, "CASE/WHEN", out);
    }
    struct expr *value = NULL;
    TRY(bind_expr(b, q, node, &value));
    return bind_compare(b, FUNC_EQ, operand, value, value->position, out);
}

static FALLIBLE bind_branches(struct bind *b, struct query *q, const struct json *body,
                              struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "arg args defresult location", position));
    const struct json *whens = json_get(body, "args");
    i32 count = 2 * json_count(whens) + 1;
    struct expr **args = NEW_ARRAY(b->arena, struct expr *, count);
    struct expr **tests = NEW_ARRAY(b->arena, struct expr *, count);
    struct expr *operand = NULL;
    if (json_get(body, "arg")) {
        TRY(bind_expr(b, q, json_get(body, "arg"), &operand));
        TRY(coerce_unknown(b, operand, type_of(TYPE_TEXT), &operand));
        TRY(bind_sharable(b, operand));
    }
    i32 i = 0;
    JSON_EACH(node, whens) {
        const struct json *when = node_body(node);
        TRY(bind_only(b, when, "expr result location", json_position(when)));
        TRY(bind_when(b, q, operand, when, &args[i]));
        i64 first = q->pending.count;
        TRY(bind_expr(b, q, json_get(when, "result"), &args[i + 1]));
        tests[i / 2] = args[i];
        bind_guard(b, q, first, tests, i / 2 + 1);
        i += 2;
    }
    if (json_get(body, "defresult")) {
        i64 first = q->pending.count;
        TRY(bind_expr(b, q, json_get(body, "defresult"), &args[i]));
        bind_guard(b, q, first, tests, i / 2 + 1);
    } else {
        args[i] = expr_null(b, type_of(TYPE_UNKNOWN), position);
    }
    return make_case(b, args, count, "CASE", position, out);
}

FALLIBLE bind_case(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    const char *before = q->no_sets;
    q->no_sets = before ? before : "set-returning functions are not allowed in CASE";
    TRY(bind_branches(b, q, body, out));
    q->no_sets = before;
    return ERR_OK;
}

FALLIBLE bind_coalesce(struct bind *b, struct query *q, const struct json *body,
                       struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "args location", position));
    struct expr **items = NULL;
    i32 item_count = 0;
    struct type type;
    const char *before = q->no_sets;
    q->no_sets = before ? before : "set-returning functions are not allowed in COALESCE";
    TRY(bind_choices(b, q, json_get(body, "args"), 'c', &items, &item_count));
    q->no_sets = before;
    TRY(coerce_common(b, items, item_count, "COALESCE", &type));
    if (item_count == 1) {
        *out = items[0];
        return ERR_OK;
    }
    *out = expr_many(b, EXPR_CALL, type, position, item_count, items);
    (*out)->func = FUNC_COALESCE;
    return ERR_OK;
}

/* What NULLIF returns is the operand as its = compares it: beside a float an exact number is a
 * double, beside a decimal an integer is a decimal. */
static FALLIBLE promote_compared(struct bind *b, struct expr *left, struct type right,
                                 struct expr **out) {
    if (type_is_exact(left->type) && type_is_float(right)) {
        return coerce_to(b, left, type_of(TYPE_DOUBLE), out);
    }
    if (type_is_exact(left->type) && right.id == TYPE_DECIMAL) {
        return coerce_to(b, left, decimal_of(left->type), out);
    }
    *out = left;
    return ERR_OK;
}

FALLIBLE bind_nullif(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    struct expr *left = NULL;
    struct expr *right = NULL;
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    TRY(bind_expr(b, q, json_get(body, "rexpr"), &right));
    TRY(coerce_unknown(b, left, right->type, &left));
    TRY(promote_compared(b, left, right->type, &left));
    struct expr *equal = NULL;
    TRY(bind_compare(b, FUNC_EQ, left, right, position, &equal));
    if (equal->kind == EXPR_CALL && equal->func == FUNC_EQ && equal->args[0] == left) {
        *out = expr_call(b->arena, FUNC_NULLIF, left->type, position, 2, equal->args[0],
                         equal->args[1]);
        return ERR_OK;
    }
    TRY(bind_sharable(b, left)); /* compared as another type than it is handed on as */
    struct expr *args[3] = {equal, expr_null(b, left->type, position), left};
    *out = expr_many(b, EXPR_CASE, left->type, position, 3, args);
    return ERR_OK;
}

FALLIBLE bind_min_max(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "op args location", position));
    bool greatest = json_is(body, "op", "IS_GREATEST");
    const char *word = greatest ? "GREATEST" : "LEAST";
    struct expr **items = NULL;
    i32 count = 0;
    struct type type;
    TRY(bind_list(b, q, json_get(body, "args"), &items, &count));
    TRY(coerce_common(b, items, count, word, &type));
    *out = items[0];
    for (i32 i = 1; i < count; i++) {
        *out = expr_call(b->arena, greatest ? FUNC_GREATEST : FUNC_LEAST, type, position, 2, *out,
                         items[i]);
    }
    return ERR_OK;
}

/* CASE WHEN a IS NULL THEN b IS NOT NULL WHEN b IS NULL THEN true ELSE a <> b END, or its opposite.
 */
FALLIBLE bind_distinct_values(struct bind *b, struct expr *left, struct expr *right, bool negated,
                              i32 position, struct expr **out) {
    struct expr *differ = NULL;
    TRY(bind_compare(b, negated ? FUNC_EQ : FUNC_NE, left, right, position, &differ));
    left = differ->args[0];
    right = differ->args[1];
    *out = differ;
    if (!bind_nullable_expr(b, left) && !bind_nullable_expr(b, right)) {
        return ERR_OK;
    }
    TRY(bind_sharable(b, left));
    TRY(bind_sharable(b, right));
    struct expr *right_null = expr_one(b, EXPR_IS_NULL, right, position);
    struct expr *args[5] = {
        expr_one(b, EXPR_IS_NULL, left, position),
        negated ? right_null : expr_one(b, EXPR_NOT, right_null, position),
        right_null,
        expr_bool(b, !negated, position),
        differ,
    };
    *out = expr_many(b, EXPR_CASE, type_of(TYPE_BOOLEAN), position, 5, args);
    return ERR_OK;
}

FALLIBLE bind_distinct(struct bind *b, struct query *q, const struct json *body,
                       struct expr **out) {
    i32 position = json_position(body);
    bool negated = json_is(body, "kind", "AEXPR_NOT_DISTINCT");
    bool rows = false;
    struct expr *left = NULL;
    struct expr *right = NULL;
    TRY(bind_row_distinct(b, q, body, negated, &rows, out));
    if (rows) {
        return ERR_OK;
    }
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    TRY(bind_expr(b, q, json_get(body, "rexpr"), &right));
    return bind_distinct_values(b, left, right, negated, position, out);
}

/* x IS [NOT] TRUE, FALSE, UNKNOWN: CASE takes NULL for false, which is what these need. */
FALLIBLE bind_bool_test(struct bind *b, struct query *q, const struct json *body,
                        struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "arg booltesttype location", position));
    const char *test = json_text(body, "booltesttype");
    test = test ? test : "";
    bool negated = strncmp(test, "IS_NOT_", 7) == 0;
    const char *word = test + (negated ? 7 : 3);
    struct expr *arg = NULL;
    TRY(bind_condition(b, q, json_get(body, "arg"),
                       strcmp(word, "UNKNOWN") == 0 ? "IS UNKNOWN" : "IS TRUE or IS FALSE", &arg));
    if (strcmp(word, "UNKNOWN") == 0) {
        *out = expr_one(b, EXPR_IS_NULL, arg, position);
        *out = negated ? expr_one(b, EXPR_NOT, *out, position) : *out;
        return ERR_OK;
    }
    struct expr *when = strcmp(word, "TRUE") == 0 ? arg : expr_one(b, EXPR_NOT, arg, position);
    struct expr *args[3] = {when, expr_bool(b, !negated, position),
                            expr_bool(b, negated, position)};
    *out = expr_many(b, EXPR_CASE, type_of(TYPE_BOOLEAN), position, 3, args);
    return ERR_OK;
}
