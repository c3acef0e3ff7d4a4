/* decimal.c: exp, ln, log, sqrt and powers of decimals, which are decimals again.
 *
 * PostgreSQL gives the result 16 significant digits, and no fewer digits after the point than an
 * argument has. Our results have static types: of constants they are PostgreSQL's, as far as 38
 * digits go; otherwise there are 16 digits after the point, or as many as an argument has, and what
 * is too large for the digits before it raises 22003. See decision 0021. */
#include <math.h>

#include "host/bodies.h"
#include "codes/scalar.h"
#include "typing/typing_int.h"

enum { WHOLE_POWER = 19, WHOLE_LOG = 4 }; /* digits before the point that results keep room for */

static bool constant(const struct expr *expr, f64 *out) {
    bool known = expr->kind == EXPR_CONST && !expr->is_null && expr->type.id == TYPE_DECIMAL;
    *out = known ? (f64)const_exact(expr) / pow(10, expr->type.scale) : 0;
    return known;
}

enum { CONSTANT_NODES = 64 }; /* what cannot be computed is met again by every operator above it */

static bool visit_constant(const struct expr *expr, void *arg) {
    i32 *left = arg;
    return (expr->kind == EXPR_CONST || expr->arg_count > 0) && --*left > 0;
}

struct expr *decimal_constant(struct typing *t, struct expr *expr) {
    i32 left = CONSTANT_NODES;
    return expr_walk(expr, visit_constant, &left) ? expr_fold(t->plan, expr) : expr;
}

enum { PLACE_MAX = 1 << 20 };

/* PostgreSQL's estimate of the decimal place of ln(x). */
static i32 place_of_ln(f64 x) {
    f64 size = fabs(log(x));
    return size > 0 ? (i32)log10(size) : 0;
}

/* A place towards zero, within what any result has. */
static i32 whole_place(f64 place) {
    return place > PLACE_MAX ? PLACE_MAX : place < -PLACE_MAX ? -PLACE_MAX : (i32)place;
}

/* The decimal place of the result, as PostgreSQL estimates it, which 16 digits begin with. */
static i32 place_of(u16 func, f64 x, f64 y) {
    switch (func) {
    case FUNC_SQRT_N:
        return x > 0 ? ((i32)floor(log10(x) / 4) + 1) * 2 - 1 : 1;
    case FUNC_EXP_N:
        return whole_place(x * 0.434294481903252);
    case FUNC_LN_N:
        return x > 0 ? place_of_ln(x) : 0;
    case FUNC_LOG_N:
        return x > 0 && y > 0 ? place_of_ln(y) - place_of_ln(x) : 0;
    default: /* whole powers have 16 digits after the point */
        return x != 0 && y != floor(y) ? whole_place(log10(fabs(x)) * y) : 0;
    }
}

/* Digits before the point of a result of constants. */
static i32 whole_digits(u16 func, f64 x, f64 y) {
    f64 place = 0;
    if (func == FUNC_EXP_N) {
        place = x * 0.434294481903252;
    } else if (func == FUNC_SQRT_N) {
        place = x > 0 ? log10(x) / 2 : 0;
    } else if (func == FUNC_POWER_N) {
        place = x != 0 && y != 0 ? log10(fabs(x)) * y : 0;
    } else {
        return WHOLE_LOG;
    }
    return place < 0 ? 1 : place > DECIMAL_DIGITS_MAX ? DECIMAL_DIGITS_MAX : (i32)place + 2;
}

static i32 result_scale(u16 func, const struct expr *x, const struct expr *y) {
    f64 a;
    f64 b = 0;
    i32 most = DECIMAL_DIGITS_MAX;
    i32 scale = MAX_OF(x->type.scale, y ? y->type.scale : 0);
    if (constant(x, &a) && (!y || constant(y, &b))) {
        i32 digits = MAX_OF(QUOTIENT_DIGITS - place_of(func, a, b), scale);
        return MIN_OF(MAX_OF(digits, 0), MAX_OF(most - whole_digits(func, a, b), 0));
    }
    i32 whole = func == FUNC_SQRT_N ? (x->type.precision - x->type.scale + 1) / 2 + 1
                : func == FUNC_LN_N || func == FUNC_LOG_N ? WHOLE_LOG
                                                          : WHOLE_POWER;
    return MIN_OF(MAX_OF(scale, QUOTIENT_DIGITS), most - whole);
}

/* The number of the first of the groups of four digits that PostgreSQL keeps a decimal in, counted
 * from the point, and the number in it. */
static i32 first_group(const struct expr *x, i32 *out_place, i128 *out_group) {
    i128 value = const_exact(x);
    value = value < 0 ? -value : value;
    i32 digits = 1;
    while (digits < DECIMAL_DIGITS_MAX && value >= pow10_i128(digits)) {
        digits++;
    }
    *out_place = digits - 1 - x->type.scale;
    i32 weight = *out_place >= 0 ? *out_place / 4 : -((3 - *out_place) / 4);
    i32 leading = *out_place - 4 * weight + 1;
    *out_group = digits >= leading ? value / pow10_i128(digits - leading)
                                   : value * pow10_i128(leading - digits);
    return weight;
}

bool decimal_quotient(const struct expr *x, const struct expr *y, i32 *out_scale) {
    i32 place[2];
    i128 group[2];
    f64 a, b;
    if (!constant(x, &a) || !constant(y, &b) || const_exact(x) == 0 || const_exact(y) == 0) {
        return false;
    }
    i32 weight = first_group(x, &place[0], &group[0]) - first_group(y, &place[1], &group[1]);
    weight -= group[0] <= group[1];
    i32 scale = MAX_OF(QUOTIENT_DIGITS - 4 * weight, MAX_OF(x->type.scale, y->type.scale));
    i32 whole = MAX_OF(place[0] - place[1] + 1, 1);
    *out_scale = MIN_OF(MAX_OF(scale, 0), MAX_OF(DECIMAL_DIGITS_MAX - whole, 0));
    return true;
}

static struct expr *scales_of(struct typing *t, const struct expr *x, const struct expr *y,
                              i32 scale, i32 position) {
    return expr_int(t, SCALES_PACK((i32)x->type.scale, y ? (i32)y->type.scale : 0, scale),
                    position);
}

FALLIBLE decimal_call(struct typing *t, u16 func, struct expr *const *args, i32 count,
                      i32 position, struct expr **out) {
    struct expr *own[2] = {NULL, NULL};
    for (i32 i = 0; i < count; i++) {
        struct type open = type_decimal(DECIMAL_DIGITS_MAX, QUOTIENT_DIGITS);
        TRY(coerce_unknown(t, args[i], open, &own[i]));
        TRY(coerce_to(t, own[i], decimal_of(own[i]->type), &own[i]));
        own[i] = decimal_constant(t, own[i]);
    }
    if (func == FUNC_LOG_N && count == 1) {
        own[1] = own[0];
        TRY(coerce_to(t, expr_int(t, 10, position), type_decimal(2, 0), &own[0]));
        own[0] = decimal_constant(t, own[0]);
        count = 2;
    }
    i32 scale = result_scale(func, own[0], own[1]);
    struct expr *scales = scales_of(t, own[0], own[1], scale, position);
    *out = count == 2 ? scalar_call(t, func, position, 3, own[0], own[1], scales)
                      : scalar_call(t, func, position, 2, own[0], scales);
    (*out)->type = type_decimal(DECIMAL_DIGITS_MAX, scale);
    return ERR_OK;
}

bool decimal_takes(struct expr *const *args, i32 count, bool integers) {
    bool exact = true;
    bool found = integers;
    for (i32 i = 0; i < count; i++) {
        found = found || (!is_unknown(args[i]) && args[i]->type.id == TYPE_DECIMAL);
        exact = exact && (is_unknown(args[i]) || type_is_exact(args[i]->type));
    }
    return found && exact;
}
