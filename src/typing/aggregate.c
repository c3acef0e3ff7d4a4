/* aggregate.c: aggregates: their names, what they take, the types of their results. */
#include "typing/typing_int.h"

static const struct {
    const char *name;
    u8 agg;
} aliases[] = {
    {"every", AGG_BOOL_AND},
    {"variance", AGG_VAR_SAMP},
    {"stddev", AGG_STDDEV_SAMP},
    {"median", AGG_PERCENTILE_CONT},
};

i32 agg_named(const char *name) {
    for (i32 i = AGG_COUNT; i < AGG_END; i++) {
        if (strcmp(agg_names[i], name) == 0) {
            return i;
        }
    }
    for (i64 i = 0; i < COUNT_OF(aliases); i++) {
        if (strcmp(aliases[i].name, name) == 0) {
            return aliases[i].agg;
        }
    }
    return -1;
}

bool agg_find(const char *name) {
    return agg_named(name) >= 0;
}

bool agg_is_ordered_set(i32 agg) {
    return agg == AGG_PERCENTILE_CONT || agg == AGG_PERCENTILE_DISC || agg == AGG_MODE;
}

/* The type of the result; false when the aggregate does not take the argument. */
static bool agg_type(enum agg agg, struct type arg, struct type *out) {
    switch (agg) {
    case AGG_COUNT_STAR:
    case AGG_COUNT:
        *out = type_of(TYPE_BIGINT);
        return true;
    case AGG_MIN:
    case AGG_MAX:
        *out = type_handed_on(arg);
        return arg.id != TYPE_BOOLEAN;
    case AGG_MODE:
    case AGG_PERCENTILE_DISC:
        *out = type_handed_on(arg);
        return true;
    case AGG_PERCENTILE_CONT:
        *out = type_of(arg.id == TYPE_INTERVAL ? TYPE_INTERVAL : TYPE_DOUBLE);
        return type_is_numeric(arg) || arg.id == TYPE_INTERVAL;
    case AGG_BOOL_AND:
    case AGG_BOOL_OR:
        *out = type_of(TYPE_BOOLEAN);
        return arg.id == TYPE_BOOLEAN;
    case AGG_STRING_AGG:
        *out = type_of(arg.id);
        return arg.id == TYPE_TEXT || arg.id == TYPE_BLOB;
    case AGG_SUM:
        *out = arg.id == TYPE_DECIMAL  ? type_decimal(DECIMAL_DIGITS_MAX, arg.scale)
               : arg.id == TYPE_BIGINT ? type_decimal(DECIMAL_DIGITS_MAX, 0)
               : type_is_integer(arg)  ? type_of(TYPE_BIGINT)
                                       : type_handed_on(arg);
        return type_is_numeric(arg) || arg.id == TYPE_INTERVAL;
    case AGG_BIT_AND:
    case AGG_BIT_OR:
    case AGG_BIT_XOR:
        *out = arg;
        return type_is_integer(arg);
    case AGG_AVG:
        if (arg.id == TYPE_INTERVAL) {
            *out = type_handed_on(arg);
            return true;
        }
        *out = type_is_float(arg) ? type_of(TYPE_DOUBLE) : mean_type(arg);
        return type_is_numeric(arg);
    default:
        *out = type_is_float(arg) ? type_of(TYPE_DOUBLE) : type_decimal(DECIMAL_DIGITS_MAX, 16);
        return type_is_numeric(arg);
    }
}

bool agg_same(const struct expr *x, const struct expr *y) {
    return x && y ? expr_equal(x, y) : x == y;
}

/* percentile_cont(f) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x), median(x). */
static FALLIBLE ordered_set(struct typing *t, const struct call *of, struct agg_call *call,
                            struct type *out_type) {
    struct expr **args = of->args;
    i32 count = of->count, position = of->position;
    struct type real = type_of(TYPE_DOUBLE);
    if (strcmp(of->name, "median") == 0) {
        struct order_key key = {.expr = count == 1 ? args[0] : NULL};
        if (count != 1) {
            return call_mismatch(t, of);
        }
        VEC_PUSH(t->arena, &call->order, key);
        call->arg2 = expr_new(t->arena, EXPR_CONST, real, position);
        call->arg2->value.f64 = 0.5;
    } else if (count != (call->agg == AGG_MODE ? 0 : 1) || call->order.count != 1) {
        return call_mismatch(t, of);
    } else if (call->agg != AGG_MODE) {
        if (is_unknown(args[0]) && is_unknown(call->order.items[0].expr)) {
            FAIL_AT(t->err, AMBIGUOUS_FUNCTION, position,
                    "function %s(unknown, unknown) is not unique", of->name);
        }
        TRY(coerce_unknown(t, args[0], real, &args[0]));
        if (!type_is_numeric(args[0]->type)) {
            return call_mismatch(t, of);
        }
        if (args[0]->kind != EXPR_CONST && args[0]->kind != EXPR_PARAM) {
            FAIL_AT(t->err, NOT_SUPPORTED, position,
                    "not supported yet: %s of a fraction that is not constant", of->name);
        }
        TRY(coerce_to(t, args[0], real, &call->arg2));
    }
    struct expr *arg = call->order.items[0].expr;
    if (call->agg == AGG_PERCENTILE_CONT) {
        TRY(coerce_unknown(t, arg, real, &arg));
    }
    if (!agg_type((enum agg)call->agg, arg->type, out_type)) {
        return call_undefined(t, of->name, &arg, 1, position);
    }
    if (call->agg == AGG_PERCENTILE_CONT) {
        TRY(coerce_to(t, arg, *out_type, &arg));
    }
    call->order.items[0].expr = arg;
    call->arg = arg;
    return ERR_OK;
}

/* corr and its kin: doubles, or what becomes one by itself. */
static FALLIBLE pair_args(struct typing *t, const struct call *of, struct agg_call *call,
                          struct type *out_type) {
    struct expr **args = of->args;
    i32 count = of->count;
    struct type real = type_of(TYPE_DOUBLE);
    bool fits = count == 2;
    for (i32 i = 0; fits && i < count; i++) {
        TRY(coerce_unknown(t, args[i], real, &args[i]));
        fits = type_is_numeric(args[i]->type);
    }
    if (!fits) {
        return call_mismatch(t, of);
    }
    TRY(coerce_to(t, args[0], real, &call->arg));
    TRY(coerce_to(t, args[1], real, &call->arg2));
    *out_type = call->agg == AGG_REGR_COUNT ? type_of(TYPE_BIGINT) : real;
    TRY(typing_sharable(t, call->arg));
    return typing_sharable(t, call->arg2);
}

static FALLIBLE plain_args(struct typing *t, const struct call *of, struct agg_call *call,
                           struct type *out_type) {
    struct expr **args = of->args;
    i32 count = of->count, position = of->position;
    i32 want = call->agg == AGG_STRING_AGG ? 2 : 1;
    enum agg agg = (enum agg)call->agg;
    if (count != want) {
        return call_mismatch(t, of);
    }
    bool spread = agg >= AGG_VAR_SAMP && agg <= AGG_STDDEV_POP;
    bool number = agg == AGG_SUM || agg == AGG_AVG || (agg > AGG_STDDEV_POP && agg <= AGG_BIT_XOR);
    if (is_unknown(args[0]) && number) {
        FAIL_AT(t->err, AMBIGUOUS_FUNCTION, position, "function %s(unknown) is not unique",
                of->name);
    }
    bool logical = agg == AGG_BOOL_AND || agg == AGG_BOOL_OR;
    bool bytes = want == 2 && !is_unknown(args[1]) && args[1]->type.id == TYPE_BLOB;
    enum type_id like = logical  ? TYPE_BOOLEAN
                        : spread ? TYPE_DOUBLE
                        : bytes  ? TYPE_BLOB
                                 : TYPE_TEXT;
    TRY(coerce_unknown(t, args[0], type_of(like), &args[0]));
    if (want == 2) {
        struct type second = args[0]->type.id == TYPE_BLOB ? args[0]->type : type_of(TYPE_TEXT);
        TRY(coerce_unknown(t, args[1], second, &args[1]));
    }
    for (i32 i = 0; want == 2 && i < want; i++) { /* char(n) is a text without its blanks */
        TRY(args[i]->type.id == TYPE_CHAR ? coerce_to(t, args[i], type_of(TYPE_TEXT), &args[i])
                                          : ERR_OK);
    }
    bool fits = agg_type(agg, args[0]->type, out_type);
    if (!fits || (want == 2 && args[1]->type.id != args[0]->type.id)) {
        return call_mismatch(t, of);
    }
    call->arg = args[0];
    call->arg2 = want == 2 ? args[1] : NULL;
    return ERR_OK;
}

/* What makes no difference to the result is dropped: repeats for min and max, order for sums. */
static FALLIBLE settle_options(struct typing *t, struct agg_call *call) {
    enum agg agg = (enum agg)call->agg;
    bool extreme = agg == AGG_MIN || agg == AGG_MAX || agg == AGG_BOOL_AND || agg == AGG_BOOL_OR ||
                   agg == AGG_BIT_AND || agg == AGG_BIT_OR;
    for (i64 i = 0; call->distinct && i < call->order.count; i++) {
        const struct expr *expr = call->order.items[i].expr;
        if (!agg_same(expr, call->arg) && !agg_same(expr, call->arg2)) {
            FAIL_AT(t->err, INVALID_COLUMN_REFERENCE, expr->position,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument "
                    "list");
        }
    }
    call->distinct = call->distinct && !extreme;
    if (agg < AGG_STRING_AGG) {
        call->order.count = 0;
    } else if (call->distinct && call->order.count == 0) { /* as PostgreSQL finds repeats */
        VEC_PUSH(t->arena, &call->order, ((struct order_key){.expr = call->arg}));
    }
    return ERR_OK;
}

FALLIBLE agg_args(struct typing *t, const struct call *of, struct agg_call *call,
                  struct type *out_type) {
    if (agg_is_ordered_set(call->agg)) {
        TRY(ordered_set(t, of, call, out_type));
    } else if (call->agg >= AGG_REGR_SXY && call->agg <= AGG_CORR) {
        TRY(pair_args(t, of, call, out_type));
    } else {
        TRY(plain_args(t, of, call, out_type));
    }
    return settle_options(t, call);
}
