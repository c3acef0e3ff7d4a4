/* agg_parts.c: aggregates that are expressions over others.
 *
 * The sum or mean of intervals is made from the sums of their months, days and microseconds. The
 * correlation of y and x and its kin are made from the count, the means and three sums of products
 * of distances from the means; each of these is exact and rounded once, however large the means are
 * compared with the distances. Only rows count where neither argument is NULL: an argument is NULL
 * here wherever the other one is, so equal parts of different calls share their words. An aggregate
 * uses the parts it needs, in a group as in a window. */
#include "typing/typing_int.h"

#include "codes/scalar.h"

enum { PART_COUNT, PART_MEAN_X, PART_MEAN_Y, PART_XX, PART_XY, PART_YY };

static bool is_of_intervals(enum agg agg) {
    return agg == AGG_SUM || agg == AGG_AVG;
}

bool agg_is_of_parts(const struct agg_call *call) {
    bool intervals =
        is_of_intervals((enum agg)call->agg) && call->arg && call->arg->type.id == TYPE_INTERVAL;
    return intervals || (call->agg >= AGG_REGR_SXY && call->agg <= AGG_CORR);
}

/* Parts 0 to 2 are the sums, 3 the count. */
static bool interval_part(struct typing *t, const struct agg_call *call, i32 part,
                          struct agg_call *out, struct type *out_type) {
    static const u16 funcs[3] = {FUNC_IV_MONTHS, FUNC_IV_DAYS, FUNC_IV_US};
    if (part > 3) {
        return false;
    }
    out->agg = part < 3 ? AGG_SUM : AGG_COUNT;
    if (part < 3) {
        out->arg = scalar_call(t, funcs[part], call->position, 1, call->arg);
    }
    *out_type = part < 3 ? type_decimal(DECIMAL_DIGITS_MAX, 0) : type_of(TYPE_BIGINT);
    return true;
}

static u32 parts_of(enum agg agg) { /* a bit each */
    const u32 all = 1u << PART_XX | 1u << PART_XY | 1u << PART_YY;
    switch (agg) {
    case AGG_REGR_SXY:
        return 1u << PART_XY;
    case AGG_REGR_SXX:
        return 1u << PART_XX;
    case AGG_REGR_SYY:
        return 1u << PART_YY;
    case AGG_REGR_COUNT:
        return 1u << PART_COUNT;
    case AGG_REGR_AVGX:
        return 1u << PART_MEAN_X;
    case AGG_REGR_AVGY:
        return 1u << PART_MEAN_Y;
    case AGG_REGR_SLOPE:
        return 1u << PART_XX | 1u << PART_XY;
    case AGG_REGR_INTERCEPT:
        return 1u << PART_XX | 1u << PART_XY | 1u << PART_MEAN_X | 1u << PART_MEAN_Y;
    case AGG_COVAR_POP:
    case AGG_COVAR_SAMP:
        return 1u << PART_XY | 1u << PART_COUNT;
    default:
        return all;
    }
}

static struct expr *where_both(struct typing *t, struct expr *value, struct expr *other) {
    struct expr *args[3] = {expr_one(t, EXPR_IS_NULL, other, value->position),
                            expr_null(t, value->type, value->position), value};
    return expr_many(t, EXPR_CASE, value->type, value->position, 3, args);
}

static void pair_part(struct typing *t, const struct agg_call *call, i32 part, struct agg_call *out,
                      struct type *out_type) {
    struct expr *y = where_both(t, call->arg, call->arg2);
    struct expr *x = where_both(t, call->arg2, call->arg);
    bool one = part == PART_COUNT || part == PART_MEAN_X || part == PART_MEAN_Y;
    out->agg = part == PART_COUNT ? AGG_COUNT : one ? AGG_AVG : AGG_REGR_SXY;
    out->arg = part == PART_MEAN_X || part == PART_XX ? x : y;
    out->arg2 = one ? NULL : part == PART_YY ? y : x;
    *out_type = type_of(part == PART_COUNT ? TYPE_BIGINT : TYPE_DOUBLE);
}

bool agg_part(struct typing *t, const struct agg_call *call, i32 part, struct agg_call *out,
              struct type *out_type) {
    *out = *call;
    if (is_of_intervals((enum agg)call->agg)) {
        return interval_part(t, call, part, out, out_type);
    }
    if (!(parts_of((enum agg)call->agg) >> part & 1)) {
        return false;
    }
    pair_part(t, call, part, out, out_type);
    return true;
}

static FALLIBLE interval_value(struct typing *t, enum agg agg, struct expr **sums, i32 position,
                               struct expr **out) {
    for (i32 i = 0; i < 3; i++) {
        TRY(coerce_to(t, sums[i], type_of(TYPE_BIGINT), &sums[i]));
    }
    *out = scalar_call(t, FUNC_MAKE_IV, position, 3, sums[0], sums[1], sums[2]);
    if (agg == AGG_AVG) {
        TRY(coerce_to(t, sums[3], type_of(TYPE_DOUBLE), &sums[3]));
        *out = scalar_call(t, FUNC_IV_DIV, position, 2, *out, sums[3]);
    }
    return ERR_OK;
}

static struct expr *number(struct typing *t, f64 value, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_of(TYPE_DOUBLE), position);
    expr->value.f64 = value;
    return expr;
}

static struct expr *of_two(struct typing *t, u16 func, struct expr *x, struct expr *y) {
    return expr_call(t->arena, func, type_of(TYPE_DOUBLE), x->position, 2, x, y);
}

static struct expr *not_zero(struct typing *t, struct expr *x) {
    return of_two(t, FUNC_NULLIF, x, number(t, 0, x->position));
}

/* (xy xy) / (xx yy), and 1 where y does not vary. */
static struct expr *r_squared(struct typing *t, struct expr **p) {
    i32 position = p[PART_XX]->position;
    struct expr *flat = expr_call(t->arena, FUNC_EQ, type_of(TYPE_BOOLEAN), position, 2, p[PART_YY],
                                  number(t, 0, position));
    struct expr *both = of_two(t, FUNC_MUL, not_zero(t, p[PART_XX]), p[PART_YY]);
    struct expr *square = of_two(t, FUNC_MUL, p[PART_XY], p[PART_XY]);
    struct expr *args[3] = {flat, number(t, 1, position), of_two(t, FUNC_DIV, square, both)};
    struct expr *value = expr_many(t, EXPR_CASE, type_of(TYPE_DOUBLE), position, 3, args);
    struct expr *known[3] = {expr_one(t, EXPR_IS_NULL, not_zero(t, p[PART_XX]), position),
                             expr_null(t, type_of(TYPE_DOUBLE), position), value};
    return expr_many(t, EXPR_CASE, type_of(TYPE_DOUBLE), position, 3, known);
}

static struct expr *pair_value(struct typing *t, enum agg agg, struct expr **p,
                               struct expr *count) {
    switch (agg) {
    case AGG_REGR_SLOPE:
        return of_two(t, FUNC_DIV, p[PART_XY], not_zero(t, p[PART_XX]));
    case AGG_REGR_INTERCEPT: {
        struct expr *slope = of_two(t, FUNC_DIV, p[PART_XY], not_zero(t, p[PART_XX]));
        return of_two(t, FUNC_SUB, p[PART_MEAN_Y], of_two(t, FUNC_MUL, p[PART_MEAN_X], slope));
    }
    case AGG_REGR_R2:
        return r_squared(t, p);
    case AGG_COVAR_POP:
        return of_two(t, FUNC_DIV, p[PART_XY], not_zero(t, count));
    case AGG_COVAR_SAMP: {
        struct expr *less = of_two(t, FUNC_SUB, count, number(t, 1, count->position));
        return of_two(t, FUNC_DIV, p[PART_XY], not_zero(t, less));
    }
    case AGG_CORR: {
        struct expr *both = of_two(t, FUNC_MUL, not_zero(t, p[PART_XX]), not_zero(t, p[PART_YY]));
        struct expr *root = scalar_call(t, FUNC_SQRT, both->position, 1, both);
        return of_two(t, FUNC_DIV, p[PART_XY], root);
    }
    default: /* a part itself: the only one there is */
        for (i32 i = 0; i < AGG_PARTS; i++) {
            if (p[i]) {
                return p[i];
            }
        }
        return NULL;
    }
}

FALLIBLE agg_of_parts(struct typing *t, enum agg agg, struct expr **parts, i32 position,
                      struct expr **out) {
    if (is_of_intervals(agg)) {
        return interval_value(t, agg, parts, position, out);
    }
    struct expr *count = NULL;
    if (parts[PART_COUNT]) {
        TRY(coerce_to(t, parts[PART_COUNT], type_of(TYPE_DOUBLE), &count));
    }
    *out = pair_value(t, agg, parts, count);
    return ERR_OK;
}
