/* math.c: functions on numbers whose result type depends on more than their arguments' types.
 *
 * A decimal's result has a static type: round(x, 2) of a decimal is one with two digits after the
 * point when the 2 is constant, and one of x's own scale otherwise. Doubles and integers go to the
 * rows of WF_SCALARS. */
#include "typing/typing_int.h"

#include "codes/scalar.h"

static bool const_int(const struct expr *expr, i64 *out) {
    if (expr->kind != EXPR_CONST || expr->is_null || !type_is_integer(expr->type)) {
        return false;
    }
    *out = (i64)const_exact(expr);
    return true;
}

/* Argument 0 as a decimal when it is exact; others are left to the scalars. */
static FALLIBLE decimal_argument(struct typing *t, const struct call *call, bool *out_exact,
                                 struct expr **out) {
    *out = call->args[0];
    *out_exact = (*out)->type.id == TYPE_DECIMAL;
    if (call->count == 2 && type_is_exact((*out)->type)) {
        *out_exact = true;
    }
    return *out_exact ? coerce_to(t, *out, decimal_of((*out)->type), out) : ERR_OK;
}

static FALLIBLE as_scalar(struct typing *t, const struct call *call, struct expr **out) {
    bool found;
    TRY(call_overload(t, call, &found, out));
    return found ? ERR_OK : call_mismatch(t, call);
}

/* round(x), round(x, n), trunc(x), trunc(x, n) */
static FALLIBLE call_round(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *x = NULL;
    bool exact;
    TRY(decimal_argument(t, call, &exact, &x));
    if (call->count == 2 && is_unknown(call->args[0])) { /* floats have no digits to round to */
        struct type open = type_decimal(DECIMAL_DIGITS_MAX, DECIMAL_OPEN_SCALE);
        TRY(coerce_unknown(t, call->args[0], open, &x));
        exact = true;
    }
    if (!exact) {
        return as_scalar(t, call, out);
    }
    struct expr *digits = expr_int(t, 0, call->position);
    if (call->count == 2) {
        TRY(call_argument(t, call, 1, type_of(TYPE_INTEGER), &digits));
    }
    i64 n = x->type.scale;
    bool known = const_int(digits, &n);
    i32 scale = (i32)(known ? MIN_OF(MAX_OF(n, 0), DECIMAL_DIGITS_MAX) : x->type.scale);
    i32 whole = x->type.precision - x->type.scale;
    i32 room = MAX_OF((i32)x->type.scale, DECIMAL_DIGITS_MAX - whole);
    scale = MIN_OF(scale, room); /* zeros behind all digits take no room from them */
    bool carries = call->func == FUNC_ROUND && scale < x->type.scale;
    whole += carries || (known && n < 0);
    struct type type = type_decimal(MIN_OF(MAX_OF(whole + scale, 1), DECIMAL_DIGITS_MAX), scale);
    *out = expr_call(t->arena, call->func, type, call->position, 2, x, digits);
    return ERR_OK;
}

/* floor and ceil; ceil(x) is -floor(-x) */
static FALLIBLE call_floor(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *x = NULL;
    bool exact;
    TRY(decimal_argument(t, call, &exact, &x));
    if (!exact) {
        return as_scalar(t, call, out);
    }
    bool ceil = call->func == FUNC_NEG;
    i32 whole = MIN_OF(x->type.precision - x->type.scale + 1, DECIMAL_DIGITS_MAX);
    struct type type = type_decimal(whole, 0);
    if (ceil) {
        x = expr_call(t->arena, FUNC_NEG, x->type, call->position, 1, x);
    }
    *out = expr_call(t->arena, FUNC_FLOOR, type, call->position, 1, x);
    if (ceil) {
        *out = expr_call(t->arena, FUNC_NEG, type, call->position, 1, *out);
    }
    return ERR_OK;
}

static FALLIBLE call_sign(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *x = NULL;
    bool exact;
    TRY(decimal_argument(t, call, &exact, &x));
    if (!exact) {
        return as_scalar(t, call, out);
    }
    struct type type = type_decimal(1, 0);
    struct expr *zero = NULL;
    TRY(typing_sharable(t, x));
    TRY(coerce_to(t, expr_int(t, 0, call->position), x->type, &zero));
    struct expr *args[7] = {NULL};
    static const i32 results[3] = {-1, 1, 0};
    static const u16 tests[2] = {FUNC_LT, FUNC_GT};
    for (i32 i = 0; i < 3; i++) {
        struct expr *value = expr_int(t, results[i], call->position);
        TRY(coerce_to(t, value, type, &args[i < 2 ? 2 * i + 1 : 4]));
        if (i < 2) {
            args[2 * i] = expr_call(t->arena, tests[i], type_of(TYPE_BOOLEAN),
                                    call->position, 2, x, zero);
        }
    }
    struct expr *cases[3] = {expr_one(t, EXPR_IS_NULL, x, call->position),
                             expr_null(t, type, call->position),
                             expr_many(t, EXPR_CASE, type, call->position, 5, args)};
    *out = expr_many(t, EXPR_CASE, type, call->position, 3, cases);
    return ERR_OK;
}

static FALLIBLE call_abs(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *arg = NULL;
    TRY(coerce_unknown(t, call->args[0], type_of(TYPE_DOUBLE), &arg));
    if (!type_is_numeric(arg->type)) {
        return call_mismatch(t, call);
    }
    *out = expr_call(t->arena, FUNC_ABS, arg->type, call->position, 1, arg);
    return ERR_OK;
}

static FALLIBLE call_mod(struct typing *t, const struct call *call, struct expr **out) {
    for (i32 i = 0; i < 2; i++) {
        if (!is_unknown(call->args[i]) && !type_is_exact(call->args[i]->type)) {
            return call_mismatch(t, call);
        }
    }
    return operator_arithmetic(t, FUNC_MOD, call->args[0], call->args[1], call->position, out);
}

/* The whole part of a quotient: (a - a % b) / b, exactly. */
static FALLIBLE call_div(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[2];
    for (i32 i = 0; i < 2; i++) {
        TRY(coerce_unknown(t, call->args[i], type_of(TYPE_INTEGER), &args[i]));
        if (!type_is_exact(args[i]->type)) {
            return call_mismatch(t, call);
        }
        TRY(coerce_to(t, args[i], decimal_of(args[i]->type), &args[i]));
    }
    i32 shift = args[1]->type.scale - args[0]->type.scale;
    *out = scalar_call(t, FUNC_QUO_N, call->position, 3, args[0], args[1],
                       expr_int(t, shift, call->position));
    (*out)->type = type_decimal(DECIMAL_DIGITS_MAX, 0);
    return ERR_OK;
}

static FALLIBLE call_pi(struct typing *t, const struct call *call, struct expr **out) {
    *out = expr_new(t->arena, EXPR_CONST, type_of(TYPE_DOUBLE), call->position);
    (*out)->value.f64 = 3.141592653589793;
    return ERR_OK;
}

/* Every call has a number of its own, so that two of them differ in one row. */
static FALLIBLE call_random(struct typing *t, const struct call *call, struct expr **out) {
    struct type type = type_of(call->func == FUNC_RANDOM ? TYPE_DOUBLE : TYPE_UUID);
    *out = expr_call(t->arena, call->func, type, call->position, 1,
                     expr_int(t, t->random_calls++, call->position));
    return ERR_OK;
}

/* A constant without zeros at its end. What is not constant has as many digits as its type says,
 * so there trim_scale would change nothing that a user sees. */
static FALLIBLE trimmed(struct typing *t, struct expr *x, i32 position, struct expr **out) {
    *out = x;
    if (x->type.id != TYPE_DECIMAL || x->type.scale == 0 || (x->kind == EXPR_CONST && x->is_null)) {
        return ERR_OK;
    }
    if (x->kind != EXPR_CONST) {
        wf_status status = error_set(t->err, ERR_NOT_SUPPORTED, position,
                                     "not supported yet: trim_scale of a column");
        error_hint(t->err, "All values of a decimal column have the same scale; "
                           "rtrim(rtrim(x::text, '0'), '.') is the text without zeros at the end.");
        return status;
    }
    i128 value = const_exact(x);
    i32 scale = x->type.scale;
    for (; scale > 0 && value % 10 == 0; scale--) {
        value /= 10;
    }
    struct type type = type_decimal(MAX_OF(x->type.precision - x->type.scale + scale, 1), scale);
    *out = expr_new(t->arena, EXPR_CONST, type, x->position);
    const_set_exact(*out, value);
    return ERR_OK;
}

/* The digits after the point are the type's. */
static FALLIBLE call_scale(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *x = NULL;
    TRY(coerce_unknown(t, call->args[0], type_decimal(DECIMAL_DIGITS_MAX, 0), &x));
    if (!type_is_exact(x->type)) {
        return call_mismatch(t, call);
    }
    i32 scale = x->type.id == TYPE_DECIMAL ? x->type.scale : 0;
    TRY(typing_sharable(t, x));
    if (call->func == FUNC_TRUNC) { /* trim_scale */
        return trimmed(t, decimal_constant(t, x), call->position, out);
    }
    struct expr *args[3] = {expr_one(t, EXPR_IS_NULL, x, call->position),
                            expr_null(t, type_of(TYPE_INTEGER), call->position),
                            expr_int(t, scale, call->position)};
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_INTEGER), call->position, 3, args);
    return ERR_OK;
}

/* How far x lies behind the first bound, where that may have more digits than there are: what lies
 * outside the bounds becomes their distance, or the same before the first. */
static FALLIBLE distance_within(struct typing *t, struct expr *const *x, struct expr *span,
                                struct expr *from, i32 position, struct expr **out) {
    static const u16 funcs[6] = {FUNC_LT, FUNC_GE, FUNC_LT, FUNC_GT, FUNC_LE, FUNC_GT};
    const i32 sides[6][2] = {{1, 2}, {0, 2}, {0, 1}, {1, 2}, {0, 2}, {0, 1}};
    struct type flag = type_of(TYPE_BOOLEAN);
    struct expr *tests[6], *args[9], *back = NULL;
    TRY(operator_unary(t, "-", span, position, &back));
    for (i32 i = 0; i < 6; i++) { /* bounds up, x behind, x before; bounds down, and the same */
        TRY(operator_compare(t, funcs[i], x[sides[i][0]], x[sides[i][1]], position, &tests[i]));
    }
    for (i32 i = 0; i < 4; i++) {
        struct expr *both[2] = {tests[i / 2 * 3], tests[i / 2 * 3 + 1 + i % 2]};
        args[2 * i] = expr_many(t, EXPR_AND, flag, position, 2, both);
        args[2 * i + 1] = i % 2 ? back : span;
    }
    args[8] = from;
    struct type type;
    struct expr *values[3] = {span, back, from};
    TRY(coerce_common(t, values, 3, "width_bucket", &type));
    for (i32 i = 0; i < 4; i++) {
        args[2 * i + 1] = values[i % 2];
    }
    args[8] = values[2];
    *out = expr_many(t, EXPR_CASE, type, position, 9, args);
    return ERR_OK;
}

static FALLIBLE call_bucket(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[4], *bounds[3];
    struct type number = type_of(TYPE_DOUBLE);
    i32 scale = -1, whole = 0;
    bool floats = false;
    for (i32 i = 0; i < 3; i++) {
        struct type type = call->args[i]->type;
        struct type digits = decimal_of(type);
        scale = type.id == TYPE_DECIMAL ? MAX_OF(scale, (i32)type.scale) : scale;
        whole = digits.id == TYPE_DECIMAL ? MAX_OF(whole, digits.precision - digits.scale) : whole;
        floats = floats || type_is_float(type);
        bounds[i] = call->args[i];
    }
    bool exact = scale >= 0 && !floats;
    number = exact ? type_decimal(DECIMAL_DIGITS_MAX, scale) : number;
    for (i32 i = 0; i < 4; i++) {
        TRY(call_argument(t, call, i, i < 3 ? number : type_of(TYPE_INTEGER), &args[i]));
    }
    TRY(typing_sharable(t, args[1]));
    struct expr *from = NULL;
    struct expr *span = NULL;
    TRY(operator_arithmetic(t, FUNC_SUB, args[0], args[1], call->position, &from));
    TRY(operator_arithmetic(t, FUNC_SUB, args[2], args[1], call->position, &span));
    if (exact && whole + scale >= DECIMAL_DIGITS_MAX) {
        for (i32 i = 0; i < 3; i++) {
            TRY(coerce_unknown(t, bounds[i], number, &bounds[i]));
            TRY(typing_sharable(t, bounds[i]));
        }
        TRY(distance_within(t, bounds, span, from, call->position, &from));
        TRY(coerce_to(t, span, from->type, &span));
    }
    *out =
        scalar_call(t, exact ? FUNC_BUCKET_N : FUNC_BUCKET, call->position, 3, from, span, args[3]);
    return ERR_OK;
}

/* to_hex of an integer shows 32 bits. */
static FALLIBLE call_to_hex(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *x = NULL;
    if (!coerce_allowed(call->args[0]->type, type_of(TYPE_BIGINT), COERCE_IMPLICIT)) {
        return call_mismatch(t, call);
    }
    bool wide = call->args[0]->type.id == TYPE_BIGINT;
    TRY(coerce_to(t, call->args[0], type_of(TYPE_BIGINT), &x));
    if (!wide) {
        struct expr *mask = expr_new(t->arena, EXPR_CONST, type_of(TYPE_BIGINT), call->position);
        mask->value.i64 = 0xffffffffLL;
        x = scalar_call(t, FUNC_BITAND_L, call->position, 2, x, mask);
    }
    *out = scalar_call(t, FUNC_TO_HEX_L, call->position, 1, x);
    return ERR_OK;
}

/* At the scale of the finer one the coarser may have too many digits: what it leaves, divided by the
 * other, has the same divisors in common. */
static FALLIBLE finer_remainder(struct typing *t, const struct call *call, struct type type,
                                struct expr **io_args) {
    struct expr *x[2], *zero = NULL, *rest = NULL;
    i32 position = call->position;
    for (i32 i = 0; i < 2; i++) {
        TRY(coerce_unknown(t, call->args[i], type, &x[i]));
        TRY(coerce_to(t, x[i], decimal_of(x[i]->type), &x[i]));
    }
    i32 coarse = x[0]->type.scale < x[1]->type.scale ? 0 : 1;
    struct type wide = x[coarse]->type;
    if (wide.precision - wide.scale + type.scale <= DECIMAL_DIGITS_MAX) {
        return ERR_OK;
    }
    TRY(typing_sharable(t, x[0]));
    TRY(typing_sharable(t, x[1]));
    TRY(operator_arithmetic(t, FUNC_MOD, x[coarse], x[1 - coarse], position, &rest));
    TRY(coerce_to(t, rest, type, &rest));
    TRY(operator_compare(t, FUNC_EQ, x[1 - coarse], expr_int(t, 0, position), position, &zero));
    struct expr *args[3] = {zero, io_args[coarse], rest};
    io_args[coarse] = expr_many(t, EXPR_CASE, type, position, 3, args);
    return ERR_OK;
}

/* gcd and lcm: of decimals at the scale of the finer one. */
static FALLIBLE call_gcd(struct typing *t, const struct call *call, struct expr **out) {
    i32 scale = -1;
    bool found = false, exact = true;
    for (i32 i = 0; i < 2; i++) {
        struct type type = call->args[i]->type;
        scale = type.id == TYPE_DECIMAL ? MAX_OF(scale, (i32)type.scale) : scale;
        exact = exact && (type_is_exact(type) || is_unknown(call->args[i]));
    }
    if (scale < 0 || !exact) {
        TRY(call_overload(t, call, &found, out));
        return found ? ERR_OK : call_mismatch(t, call);
    }
    struct type type = type_decimal(DECIMAL_DIGITS_MAX, scale);
    struct expr *args[2];
    for (i32 i = 0; i < 2; i++) {
        TRY(coerce_to(t, call->args[i], type, &args[i]));
    }
    bool gcd = strcmp(call->name, "gcd") == 0;
    if (gcd) {
        TRY(finer_remainder(t, call, type, args));
    }
    *out = scalar_call(t, gcd ? FUNC_GCD_N : FUNC_LCM_N, call->position, 2, args[0], args[1]);
    (*out)->type = type;
    return ERR_OK;
}

/* exp, ln, sqrt, power: a decimal's is a decimal. */
static FALLIBLE call_exact(struct typing *t, const struct call *call, struct expr **out) {
    if (decimal_takes(call->args, call->count, false)) {
        return decimal_call(t, call->func, call->args, call->count, call->position, out);
    }
    return as_scalar(t, call, out);
}

/* log(base, x) is there for decimals alone. */
static FALLIBLE call_log(struct typing *t, const struct call *call, struct expr **out) {
    bool found = false;
    if (decimal_takes(call->args, call->count, call->count == 2)) {
        return decimal_call(t, FUNC_LOG_N, call->args, call->count, call->position, out);
    }
    bool floats = call->count == 2 &&
                  (type_is_float(call->args[0]->type) || type_is_float(call->args[1]->type));
    if (!floats) {
        TRY(call_overload(t, call, &found, out));
    }
    return found ? ERR_OK : call_mismatch(t, call);
}

static const struct func_entry entries[] = {
    {"log", 1, 2, call_log, FUNC_LOG},
    {"log10", 1, 1, call_exact, FUNC_LOG_N},
    {"ln", 1, 1, call_exact, FUNC_LN_N},
    {"exp", 1, 1, call_exact, FUNC_EXP_N},
    {"sqrt", 1, 1, call_exact, FUNC_SQRT_N},
    {"power", 2, 2, call_exact, FUNC_POWER_N},
    {"pow", 2, 2, call_exact, FUNC_POWER_N},
    {"gcd", 2, 2, call_gcd, FUNC_GCD_I},
    {"lcm", 2, 2, call_gcd, FUNC_LCM_I},
    {"round", 1, 2, call_round, FUNC_ROUND},
    {"trunc", 1, 2, call_round, FUNC_TRUNC},
    {"floor", 1, 1, call_floor, FUNC_FLOOR},
    {"ceil", 1, 1, call_floor, FUNC_NEG},
    {"ceiling", 1, 1, call_floor, FUNC_NEG},
    {"sign", 1, 1, call_sign, FUNC_FLOOR},
    {"abs", 1, 1, call_abs, FUNC_ABS},
    {"mod", 2, 2, call_mod, FUNC_MOD},
    {"div", 2, 2, call_div, FUNC_DIV},
    {"pi", 0, 0, call_pi, FUNC_ABS},
    {"random", 0, 0, call_random, FUNC_RANDOM},
    {"gen_random_uuid", 0, 0, call_random, FUNC_RANDOM_UUID},
    {"scale", 1, 1, call_scale, FUNC_ROUND},
    {"trim_scale", 1, 1, call_scale, FUNC_TRUNC},
    {"width_bucket", 4, 4, call_bucket, FUNC_BUCKET},
    {"to_hex", 1, 1, call_to_hex, FUNC_TO_HEX_L},
};

const struct func_entry *math_functions(i64 *out_count) {
    *out_count = COUNT_OF(entries);
    return entries;
}
