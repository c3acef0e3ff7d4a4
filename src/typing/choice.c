/* choice.c: CASE and everything that is written as one.
 *
 * COALESCE, NULLIF, GREATEST and LEAST are functions that lowering knows, so that their operands
 * are computed once however deep they nest. IS DISTINCT FROM has no operator of its own in the
 * plan: it becomes a CASE over comparisons and IS NULL. Where an operand is needed twice the same
 * expression is shared, and typing_sharable keeps the tree that this unfolds to within bounds. */
#include "typing/typing_int.h"

#include "codes/func.h"

/* args: when, then, …, else; the results come to one type. */
FALLIBLE choice_case(struct typing *t, struct expr **args, i32 count, const char *what,
                     i32 position, struct expr **out) {
    i32 result_count = count / 2 + 1;
    struct expr **results = NEW_ARRAY(t->arena, struct expr *, result_count);
    for (i32 i = 0; i < result_count - 1; i++) {
        results[i + 1] = args[2 * i + 1];
    }
    results[0] = args[count - 1]; /* PostgreSQL looks at ELSE first */
    struct type type;
    TRY(coerce_common(t, results, result_count, what, &type));
    for (i32 i = 0; i < result_count - 1; i++) {
        args[2 * i + 1] = results[i + 1];
    }
    args[count - 1] = results[0];
    *out = expr_many(t, EXPR_CASE, type, position, count, args);
    return ERR_OK;
}

FALLIBLE choice_coalesce(struct typing *t, struct expr **items, i32 count, i32 position,
                         struct expr **out) {
    struct type type;
    TRY(coerce_common(t, items, count, "COALESCE", &type));
    if (count == 1) {
        *out = items[0];
        return ERR_OK;
    }
    *out = expr_many(t, EXPR_CALL, type, position, count, items);
    (*out)->func = FUNC_COALESCE;
    return ERR_OK;
}

/* What NULLIF returns is the operand as its = compares it: beside a float an exact number is a
 * double, beside a decimal an integer is a decimal. */
static FALLIBLE promote_compared(struct typing *t, struct expr *left, struct type right,
                                 struct expr **out) {
    if (type_is_exact(left->type) && type_is_float(right)) {
        return coerce_to(t, left, type_of(TYPE_DOUBLE), out);
    }
    if (type_is_exact(left->type) && right.id == TYPE_DECIMAL) {
        return coerce_to(t, left, decimal_of(left->type), out);
    }
    *out = left;
    return ERR_OK;
}

FALLIBLE choice_nullif(struct typing *t, struct expr *left, struct expr *right, i32 position,
                       struct expr **out) {
    TRY(coerce_unknown(t, left, right->type, &left));
    TRY(promote_compared(t, left, right->type, &left));
    struct expr *equal = NULL;
    TRY(operator_compare(t, FUNC_EQ, left, right, position, &equal));
    if (equal->kind == EXPR_CALL && equal->func == FUNC_EQ && equal->args[0] == left) {
        *out = expr_call(t->arena, FUNC_NULLIF, left->type, position, 2, equal->args[0],
                         equal->args[1]);
        return ERR_OK;
    }
    TRY(typing_sharable(t, left)); /* compared as another type than it is handed on as */
    struct expr *args[3] = {equal, expr_null(t, left->type, position), left};
    *out = expr_many(t, EXPR_CASE, left->type, position, 3, args);
    return ERR_OK;
}

FALLIBLE choice_extreme(struct typing *t, bool greatest, struct expr **items, i32 count,
                        i32 position, struct expr **out) {
    struct type type;
    TRY(coerce_common(t, items, count, greatest ? "GREATEST" : "LEAST", &type));
    *out = items[0];
    for (i32 i = 1; i < count; i++) {
        *out = expr_call(t->arena, greatest ? FUNC_GREATEST : FUNC_LEAST, type, position, 2, *out,
                         items[i]);
    }
    return ERR_OK;
}

/* CASE WHEN a IS NULL THEN b IS NOT NULL WHEN b IS NULL THEN true ELSE a <> b END, or its opposite.
 */
FALLIBLE choice_distinct(struct typing *t, struct expr *left, struct expr *right, bool negated,
                         i32 position, struct expr **out) {
    struct expr *differ = NULL;
    TRY(operator_compare(t, negated ? FUNC_EQ : FUNC_NE, left, right, position, &differ));
    left = differ->args[0];
    right = differ->args[1];
    *out = differ;
    if (!typing_nullable(t, left) && !typing_nullable(t, right)) {
        return ERR_OK;
    }
    TRY(typing_sharable(t, left));
    TRY(typing_sharable(t, right));
    struct expr *right_null = expr_one(t, EXPR_IS_NULL, right, position);
    struct expr *args[5] = {
        expr_one(t, EXPR_IS_NULL, left, position),
        negated ? right_null : expr_one(t, EXPR_NOT, right_null, position),
        right_null,
        expr_bool(t, !negated, position),
        differ,
    };
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_BOOLEAN), position, 5, args);
    return ERR_OK;
}
