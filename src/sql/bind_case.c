/* bind_case.c: CASE and everything that is written as one.
 *
 * Part of binding. What they become is in typing/choice.c. */
#include "sql/sql_int.h"

#include "codes/func.h"

/* The condition of one WHEN. */
static FALLIBLE bind_when(struct bind *b, struct query *q, struct expr *operand,
                          const struct json *when, struct expr **out) {
    const struct json *node = json_get(when, "expr");
    if (!operand) {
        return bind_condition(b, q, node, "CASE/WHEN", out);
    }
    struct expr *value = NULL;
    TRY(bind_expr(b, q, node, &value));
    return operator_compare(b->t, FUNC_EQ, operand, value, value->position, out);
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
        TRY(coerce_unknown(b->t, operand, type_of(TYPE_TEXT), &operand));
        TRY(typing_sharable(b->t, operand));
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
        args[i] = expr_null(b->t, type_of(TYPE_UNKNOWN), position);
    }
    return choice_case(b->t, args, count, "CASE", position, out);
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
    const char *before = q->no_sets;
    q->no_sets = before ? before : "set-returning functions are not allowed in COALESCE";
    TRY(bind_choices(b, q, json_get(body, "args"), 'c', &items, &item_count));
    q->no_sets = before;
    return choice_coalesce(b->t, items, item_count, position, out);
}

FALLIBLE bind_nullif(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    struct expr *left = NULL;
    struct expr *right = NULL;
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    TRY(bind_expr(b, q, json_get(body, "rexpr"), &right));
    return choice_nullif(b->t, left, right, position, out);
}

FALLIBLE bind_min_max(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "op args location", position));
    struct expr **items = NULL;
    i32 count = 0;
    TRY(bind_list(b, q, json_get(body, "args"), &items, &count));
    return choice_extreme(b->t, json_is(body, "op", "IS_GREATEST"), items, count, position, out);
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
    return choice_distinct(b->t, left, right, negated, position, out);
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
        *out = expr_one(b->t, EXPR_IS_NULL, arg, position);
        *out = negated ? expr_one(b->t, EXPR_NOT, *out, position) : *out;
        return ERR_OK;
    }
    struct expr *when = strcmp(word, "TRUE") == 0 ? arg : expr_one(b->t, EXPR_NOT, arg, position);
    struct expr *args[3] = {when, expr_bool(b->t, !negated, position),
                            expr_bool(b->t, negated, position)};
    *out = expr_many(b->t, EXPR_CASE, type_of(TYPE_BOOLEAN), position, 3, args);
    return ERR_OK;
}
