/* bind_series.c: generate_series.
 *
 * Part of binding. A series of numbers between arguments without columns, and one of timestamps
 * whose step is a fixed time, is a FUNC: the devices have a source that counts. The others are
 * recursions over rows that hold their own arguments, so that the arguments may be columns of an
 * outer query, which the pass unnest then carries through:
 *  - numbers: element k, counted from 0, gives elements 2 k + 1 and 2 k + 2 in the next round: as
 *    many rounds as the longest series has binary digits, and who wants few elements waits for few.
 *  - timestamps: PostgreSQL adds the step to the last element, and months have no fixed length, so
 *    a round adds one element to each series.
 * A step of zero raises 22023 wherever no argument is NULL; a series with a NULL is empty. */
#include "defs/host_words.h"
/* after the words they are written in */
#include "codes/scalar.h"
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "sql/sql_int.h"

enum { SERIES_GUESS = 1000 };

/* Rows of a series whose arguments are constants; a guess otherwise. */
static i64 series_rows(const struct rel *rel) {
    i128 value[3] = {0, 0, 1};
    for (i64 i = 0; i < rel->func.args.count; i++) {
        const struct expr *arg = rel->func.args.items[i];
        if (arg->kind != EXPR_CONST || arg->is_null || !type_is_exact(arg->type)) {
            return SERIES_GUESS;
        }
        value[i] = const_exact(arg);
    }
    if (value[2] == 0) {
        return 1;
    }
    i128 rows = (value[1] - value[0]) / value[2] + 1;
    return rows < 0 ? 0 : rows > I64_MAX ? I64_MAX : (i64)rows;
}

static struct rel *counted(struct bind *b, struct expr **args, i32 count, struct type type,
                           i32 position) {
    struct rel *rel = rel_new(b->plan, REL_FUNC, NULL, NULL);
    rel->func.func = TABLE_FUNC_GENERATE_SERIES;
    rel->position = position;
    for (i32 i = 0; i < count; i++) {
        VEC_PUSH(b->arena, &rel->func.args, args[i]);
    }
    u32 col = bind_col_new(b, NULL, "generate_series", type, false);
    VEC_PUSH(b->arena, &rel->out, col);
    rel->rows = series_rows(rel);
    return rel;
}

struct expr *bind_either(struct bind *b, struct expr *when, struct expr *then,
                         struct expr *otherwise) {
    struct expr *args[3] = {when, then, otherwise};
    return expr_many(b->t, EXPR_CASE, then->type, then->position, 3, args);
}

struct expr *bind_out_col(struct bind *b, const struct rel *rel, i32 i) {
    return expr_col(b->plan, rel->out.items[i], -1);
}

struct expr *expr_big(struct bind *b, i64 value) {
    struct expr *expr = expr_new(b->arena, EXPR_CONST, type_of(TYPE_BIGINT), -1);
    const_set_exact(expr, value);
    return expr;
}

static struct expr *cast_to(struct bind *b, struct expr *expr, struct type type) {
    if (type_eq(expr->type, type)) {
        return expr;
    }
    struct expr *cast = expr_one(b->t, EXPR_CAST, expr, expr->position);
    cast->type = type;
    return cast;
}

/* value <= stop of a series that rises, value >= stop of one that falls */
static FALLIBLE in_series(struct bind *b, struct expr *rises, struct expr *value, struct expr *stop,
                          struct expr **out) {
    struct expr *below = NULL;
    struct expr *above = NULL;
    TRY(operator_compare(b->t, FUNC_LE, value, stop, value->position, &below));
    TRY(operator_compare(b->t, FUNC_GE, value, stop, value->position, &above));
    *out = bind_either(b, rises, below, above);
    return ERR_OK;
}

static FALLIBLE compare_zero(struct bind *b, u16 func, struct expr *step, struct expr **out) {
    struct expr *zero = expr_new(b->arena, EXPR_CONST, step->type, -1);
    if (step->type.id == TYPE_INTERVAL) {
        u8 fault = 0;
        zero->value.i128 = fn_iv(0, 0, 0, &fault);
    } else {
        const_set_exact(zero, 0);
    }
    return operator_compare(b->t, func, step, zero, step->position, out);
}

/* One row of start, stop and step; none when the series is empty. */
static FALLIBLE arguments(struct bind *b, struct expr **args, i32 position, struct rel **out) {
    static const char *names[3] = {"start", "stop", "step"};
    struct rel *row = bind_project(b, bind_one_row(b), args, names, 3);
    struct expr *nulls[3];
    struct expr *rises = NULL;
    struct expr *stays = NULL;
    struct expr *within = NULL;
    for (i32 i = 0; i < 3; i++) {
        nulls[i] = expr_one(b->t, EXPR_IS_NULL, bind_out_col(b, row, i), position);
    }
    TRY(compare_zero(b, FUNC_GT, bind_out_col(b, row, 2), &rises));
    TRY(compare_zero(b, FUNC_EQ, bind_out_col(b, row, 2), &stays));
    struct expr *sign =
        bind_either(b, rises, expr_int(b->t, 1, position), expr_int(b->t, -1, position));
    sign = bind_either(b, stays, expr_int(b->t, 0, position), sign);
    sign = scalar_call(b->t, FUNC_STEP_SIGN, position, 1, sign);
    TRY(operator_compare(b->t, FUNC_GT, sign, expr_int(b->t, 0, position), position, &rises));
    TRY(in_series(b, rises, bind_out_col(b, row, 0), bind_out_col(b, row, 1), &within));
    struct expr *any = expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), position, 3, nulls);
    *out = bind_filter(b, row, bind_either(b, any, expr_bool(b->t, false, position), within));
    (*out)->rows = 1;
    return ERR_OK;
}

/* The number of the last element: (stop - start) / step, cut to a whole number; one that no bigint
 * holds is taken as the greatest, which nobody reaches. */
static FALLIBLE last_number(struct bind *b, const struct rel *row, struct type wide,
                            struct expr **out) {
    struct expr *start = cast_to(b, bind_out_col(b, row, 0), wide);
    struct expr *stop = cast_to(b, bind_out_col(b, row, 1), wide);
    struct expr *step = cast_to(b, bind_out_col(b, row, 2), wide);
    struct expr *gap = NULL;
    struct expr *rest = NULL;
    struct expr *whole = NULL;
    TRY(operator_arithmetic(b->t, FUNC_SUB, stop, start, -1, &gap));
    TRY(operator_arithmetic(b->t, FUNC_MOD, gap, step, -1, &rest));
    TRY(operator_arithmetic(b->t, FUNC_SUB, gap, rest, -1, &whole));
    TRY(operator_arithmetic(b->t, FUNC_DIV, whole, step, -1, &whole));
    whole = type_is_integer(whole->type) ? whole : cast_to(b, whole, type_decimal(38, 0));
    struct expr *most = expr_big(b, I64_MAX);
    TRY(operator_compare(b->t, FUNC_LT, whole, most, -1, &rest));
    *out = bind_either(b, rest, cast_to(b, whole, type_of(TYPE_BIGINT)), most);
    return ERR_OK;
}

struct rel *bind_twice(struct bind *b, struct rel *rel, u32 *out_side) {
    struct rel *sides = bind_one_row(b);
    *out_side = bind_col_new(b, NULL, "side", type_of(TYPE_BOOLEAN), false);
    VEC_PUSH(b->arena, &sides->out, *out_side);
    VEC_PUSH(b->arena, &sides->values.exprs, expr_bool(b->t, false, -1));
    VEC_PUSH(b->arena, &sides->values.exprs, expr_bool(b->t, true, -1));
    sides->rows = 2;
    struct rel *both = rel_join(b->plan, JOIN_CROSS, rel, sides);
    both->rows = rel->rows * 2;
    return both;
}

/* Of element k of each series, elements 2 k + 1 and 2 k + 2, where there are such. */
static FALLIBLE next_elements(struct bind *b, struct rel *work, const char **names,
                              struct rel **out) {
    struct expr *half = NULL;
    struct expr *cond = NULL;
    struct expr *next = NULL;
    u32 side = 0;
    TRY(operator_arithmetic(b->t, FUNC_SUB, bind_out_col(b, work, 3), expr_big(b, 1), -1, &half));
    TRY(operator_arithmetic(b->t, FUNC_DIV, half, expr_big(b, 2), -1, &half));
    TRY(operator_compare(b->t, FUNC_LE, bind_out_col(b, work, 2), half, -1, &cond));
    struct expr *any = NULL; /* half of -1 is 0 */
    TRY(operator_compare(b->t, FUNC_GT, bind_out_col(b, work, 3), expr_big(b, 0), -1, &any));
    struct rel *both = bind_twice(b, bind_filter(b, bind_filter(b, work, any), cond), &side);
    struct expr *more = bind_either(b, expr_col(b->plan, side, -1), expr_big(b, 2), expr_big(b, 1));
    TRY(operator_arithmetic(b->t, FUNC_MUL, bind_out_col(b, work, 2), expr_big(b, 2), -1, &next));
    TRY(operator_arithmetic(b->t, FUNC_ADD, next, more, -1, &next));
    struct expr *exprs[4] = {bind_out_col(b, work, 0), bind_out_col(b, work, 1), next,
                             bind_out_col(b, work, 3)};
    *out = bind_project(b, both, exprs, names, 4);
    TRY(operator_compare(b->t, FUNC_LE, bind_out_col(b, *out, 2), bind_out_col(b, *out, 3), -1,
                         &cond));
    *out = bind_filter(b, *out, cond);
    return ERR_OK;
}

/* A series' elements, and the numbers they go by. */
static struct rel *elements(struct bind *b, struct rel *rel, struct expr *value,
                            struct expr *number) {
    static const char *names[2] = {"generate_series", "ordinality"};
    struct expr *exprs[2] = {value, number};
    struct rel *project = bind_project(b, rel, exprs, names, number ? 2 : 1);
    project->rows = SERIES_GUESS;
    return project;
}

/* The number of a series' element is its place in order. */
static struct rel *number_counted(struct bind *b, struct rel *series, bool falls) {
    u32 col = bind_col_new(b, NULL, "ordinality", type_of(TYPE_BIGINT), false);
    struct rel *window = rel_numbered(b->plan, series, col);
    struct order_key key = {bind_out_col(b, series, 0), falls, falls};
    VEC_PUSH(b->arena, &window->window.order, key);
    struct rel *made = elements(b, window, bind_out_col(b, series, 0), expr_col(b->plan, col, -1));
    made->rows = series->rows;
    return made;
}

static FALLIBLE numbers(struct bind *b, struct rel *row, struct type type, bool numbered,
                        struct rel **out) {
    static const char *names[4] = {"start", "step", "number", "last"};
    struct type wide = type_of(TYPE_BIGINT);
    struct expr *exprs[4] = {bind_out_col(b, row, 0), bind_out_col(b, row, 2), expr_big(b, 0),
                             NULL};
    struct expr *value = NULL;
    struct rel *again = NULL;
    if (type.id != TYPE_INTEGER) { /* the distance of two may be no bigint */
        wide = type.id == TYPE_BIGINT ? type_decimal(19, 0) : type;
    }
    TRY(last_number(b, row, wide, &exprs[3]));
    struct fix_draft *fix =
        bind_fix_open(b, bind_project(b, row, exprs, names, 4), names, false);
    TRY(next_elements(b, bind_fix_atom(b, fix, 0), names, &again));
    struct rel *all = bind_fix_close(b, fix, again);
    all->rows = SERIES_GUESS;
    struct expr *step = cast_to(b, bind_out_col(b, all, 1), wide);
    TRY(operator_arithmetic(b->t, FUNC_MUL, bind_out_col(b, all, 2), step, -1, &value));
    TRY(operator_arithmetic(b->t, FUNC_ADD, cast_to(b, bind_out_col(b, all, 0), wide), value, -1,
                            &value));
    value = cast_to(b, value, type);
    struct expr *number = NULL;
    TRY(operator_arithmetic(b->t, FUNC_ADD, bind_out_col(b, all, 2), expr_big(b, 1), -1, &number));
    *out = elements(b, all, value, numbered ? number : NULL);
    return ERR_OK;
}

static FALLIBLE moments(struct bind *b, struct rel *row, struct type type, bool numbered,
                        struct rel **out) {
    static const char *names[4] = {"moment", "stop", "step", "ordinality"};
    struct expr *first[4] = {bind_out_col(b, row, 0), bind_out_col(b, row, 1),
                             bind_out_col(b, row, 2), expr_big(b, 1)};
    u16 add = type.id == TYPE_TIMESTAMP ? FUNC_TS_ADD : FUNC_TSTZ_ADD;
    struct expr *rises = NULL;
    struct expr *within = NULL;
    struct fix_draft *fix =
        bind_fix_open(b, bind_project(b, row, first, names, 4), names, false);
    struct rel *work = bind_fix_atom(b, fix, 0);
    struct expr *number = NULL;
    TRY(operator_arithmetic(b->t, FUNC_ADD, bind_out_col(b, work, 3), expr_big(b, 1), -1, &number));
    struct expr *next =
        scalar_call(b->t, add, -1, 2, bind_out_col(b, work, 0), bind_out_col(b, work, 2));
    struct expr *exprs[4] = {next, bind_out_col(b, work, 1), bind_out_col(b, work, 2), number};
    struct rel *again = bind_project(b, work, exprs, names, 4);
    TRY(compare_zero(b, FUNC_GT, bind_out_col(b, again, 2), &rises));
    TRY(in_series(b, rises, bind_out_col(b, again, 0), bind_out_col(b, again, 1), &within));
    *out = bind_fix_close(b, fix, bind_filter(b, again, within));
    *out = elements(b, *out, bind_out_col(b, *out, 0), numbered ? bind_out_col(b, *out, 3) : NULL);
    return ERR_OK;
}

/* Whether the elements are a fixed number of microseconds apart, which *out_us gets. */
static bool evenly(struct expr **args, struct type type, i64 *out_us) {
    for (i32 i = 0; i < 3; i++) {
        if (args[i]->kind != EXPR_CONST || args[i]->is_null) {
            return false;
        }
    }
    fn_span step = fn_iv_parts(args[2]->value.i128);
    i128 us = (i128)step.days * DAY_US + step.us;
    *out_us = (i64)us;
    return !fn_ts_infinite(args[0]->value.i64) && !fn_ts_infinite(args[1]->value.i64) &&
           step.months == 0 && us == (i64)us && (type.id == TYPE_TIMESTAMP || step.days == 0);
}

static bool is_moment(const struct expr *expr) {
    return expr->type.id == TYPE_DATE || expr->type.id == TYPE_TIMESTAMP ||
           expr->type.id == TYPE_TIMESTAMPTZ;
}

/* PostgreSQL has (timestamp, timestamp, interval) and the same of timestamptz, which it prefers. */
static FALLIBLE bind_moments(struct bind *b, struct expr **args, i32 count, i32 position,
                             bool numbered, struct rel **out) {
    bool zoned = false;
    bool plain = false;
    bool known = count == 3 && (is_unknown(args[2]) || args[2]->type.id == TYPE_INTERVAL);
    for (i32 i = 0; i < 2; i++) {
        known = known && (is_unknown(args[i]) || is_moment(args[i]));
        zoned = zoned || (!is_unknown(args[i]) && args[i]->type.id == TYPE_TIMESTAMPTZ);
        plain = plain || (!is_unknown(args[i]) && args[i]->type.id == TYPE_TIMESTAMP);
    }
    if (!known) {
        return call_undefined(b->t, "generate_series", args, count, position);
    }
    struct type type = type_of(plain && !zoned ? TYPE_TIMESTAMP : TYPE_TIMESTAMPTZ);
    i64 us = 0;
    for (i32 i = 0; i < 3; i++) {
        TRY(coerce_to(b->t, args[i], i < 2 ? type : type_of(TYPE_INTERVAL), &args[i]));
        args[i] = expr_fold(b->plan, args[i]);
    }
    if (evenly(args, type, &us)) {
        args[2] = expr_big(b, us);
        *out = counted(b, args, 3, type, position);
        *out = numbered ? number_counted(b, *out, us < 0) : *out;
        return ERR_OK;
    }
    struct rel *row = NULL;
    TRY(arguments(b, args, position, &row));
    return moments(b, row, type, numbered, out);
}

/* The source that counts has 64-bit numbers. */
static bool may_count(const struct expr *arg) {
    i128 value = arg->kind == EXPR_CONST && !arg->is_null ? const_exact(arg) : 0;
    bool known = arg->kind == EXPR_CONST || type_kind(arg->type) != KIND_I128;
    return known && value >= I64_MIN && value <= I64_MAX;
}

static bool names_column(const struct expr *expr, void *arg) {
    (void)arg;
    return expr->kind != EXPR_COL;
}

static FALLIBLE bind_numbers(struct bind *b, struct expr **args, i32 count, i32 position,
                             bool numbered, struct rel **out) {
    struct type type;
    bool constant = true;
    struct expr *all[3] = {NULL, NULL, expr_int(b->t, 1, position)};
    TRY(coerce_common(b->t, args, count, "generate_series", &type));
    if (type.id == TYPE_SMALLINT) {
        type = type_of(TYPE_INTEGER);
    }
    for (i32 i = 0; i < 3; i++) {
        TRY(coerce_to(b->t, i < count ? args[i] : all[i], type, &all[i]));
        all[i] = expr_fold(b->plan, all[i]);
        constant = constant && expr_walk(all[i], names_column, NULL) && may_count(all[i]);
    }
    bool known = all[2]->kind == EXPR_CONST && !all[2]->is_null;
    if (constant && (known || !numbered)) {
        *out = counted(b, all, count, type, position);
        *out = numbered ? number_counted(b, *out, const_exact(all[2]) < 0) : *out;
        return ERR_OK;
    }
    struct rel *row = NULL;
    TRY(arguments(b, all, position, &row));
    return numbers(b, row, type, numbered, out);
}

FALLIBLE bind_series(struct bind *b, struct expr **args, i32 count, i32 position, bool numbered,
                     struct rel **out) {
    bool typed = false;
    bool timed = false;
    for (i32 i = 0; i < count; i++) {
        typed = typed || !is_unknown(args[i]);
        timed = timed ||
                (!is_unknown(args[i]) && (is_moment(args[i]) || args[i]->type.id == TYPE_INTERVAL));
    }
    if (timed) {
        return bind_moments(b, args, count, position, numbered, out);
    }
    for (i32 i = 0; i < count; i++) {
        if (!is_unknown(args[i]) && !type_is_exact(args[i]->type)) {
            return call_undefined(b->t, "generate_series", args, count, position);
        }
    }
    if (!typed) {
        FAIL_AT(b->err, AMBIGUOUS_FUNCTION, position, "function generate_series is not unique");
    }
    return bind_numbers(b, args, count, position, numbered, out);
}
