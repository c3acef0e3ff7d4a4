/* time.c: functions on dates, times and intervals that need more than their arguments' types:
 * fields named by text, zones, the statement's own time.
 *
 * EXTRACT returns a decimal whose scale follows from the field (a second has six digits after its
 * point), date_part the same as a double. now() and its kin are one value per execution, filled in
 * when a program starts. */
#include <math.h>

#include "defs/host_words.h"
/* after the words they are written in */
#include "codes/scalar.h"
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "typing/typing_int.h"

static const struct {
    const char *names; /* separated by spaces */
    u8 field;
} field_names[] = {
    {"microsecond microseconds us usec usecs useconds", FIELD_MICROSECOND},
    {"millisecond milliseconds ms msec msecs mseconds", FIELD_MILLISECOND},
    {"second seconds s sec secs", FIELD_SECOND},
    {"minute minutes m min mins", FIELD_MINUTE},
    {"hour hours h hr hrs", FIELD_HOUR},
    {"day days d", FIELD_DAY},
    {"week weeks w", FIELD_WEEK},
    {"month months mon mons", FIELD_MONTH},
    {"quarter quarters qtr", FIELD_QUARTER},
    {"year years y yr yrs", FIELD_YEAR},
    {"decade decades dec decs", FIELD_DECADE},
    {"century centuries c cent", FIELD_CENTURY},
    {"millennium millennia mil mils", FIELD_MILLENNIUM},
    {"epoch", FIELD_EPOCH},
    {"dow", FIELD_DOW},
    {"isodow", FIELD_ISODOW},
    {"doy", FIELD_DOY},
    {"isoyear", FIELD_ISOYEAR},
    {"julian j jd", FIELD_JULIAN},
};

/* Which fields a type has. */
static bool has_field(struct type type, i32 field) {
    switch (type.id) {
    case TYPE_DATE:
        return field >= FIELD_DAY;
    case TYPE_TIME:
        return field <= FIELD_HOUR || field == FIELD_EPOCH;
    case TYPE_INTERVAL:
        return field <= FIELD_EPOCH && field != FIELD_WEEK;
    default:
        return true;
    }
}

/* Which field a name stands for; else the fault of asking for it. */
static u8 find_field(struct sv name, struct type of, i32 *out) {
    if (sv_in_words(name, "timezone timezone_hour timezone_minute")) {
        return FAULT_UNIT;
    }
    for (i64 i = 0; i < COUNT_OF(field_names); i++) {
        if (sv_in_words(name, field_names[i].names)) {
            *out = field_names[i].field;
            return has_field(of, *out) ? FAULT_NONE : FAULT_UNIT;
        }
    }
    return FAULT_UNIT_NAME;
}

/* A field that is not there: an error for every source but NULL. */
static FALLIBLE no_field(struct typing *t, struct expr *field, struct expr *source, u8 fault,
                         struct type type, struct expr **out) {
    struct sv name;
    i32 position = field->position;
    if (source->kind == EXPR_CONST && !source->is_null && literal_text(field, &name)) {
        char of[32];
        bool known = fault == FAULT_UNIT;
        return error_set(t->err, known ? ERR_NOT_SUPPORTED : ERR_INVALID_PARAMETER, position,
                         "unit \"%.*s\" not %s for type %s", (int)MIN_OF(name.len, 60), name.ptr,
                         known ? "supported" : "recognized", type_print(source->type, of));
    }
    struct expr *unknown[2] = {expr_one(t, EXPR_IS_NULL, source, position),
                               expr_one(t, EXPR_IS_NULL, field, position)};
    struct expr *args[3] = {expr_many(t, EXPR_OR, type_of(TYPE_BOOLEAN), position, 2, unknown),
                            expr_null(t, type, position), NULL};
    struct expr *raise = scalar_call(t, FUNC_RAISE, position, 1, expr_int(t, fault, position));
    raise = expr_one(t, EXPR_CAST, raise, position);
    raise->type = type_of(TYPE_TEXT); /* which every type can be cast from */
    args[2] = expr_one(t, EXPR_CAST, raise, position);
    args[2]->type = type;
    *out = expr_many(t, EXPR_CASE, type, position, 3, args);
    return ERR_OK;
}

/* The decimal a field is extracted as. */
static struct type field_type(struct type of, i32 field) {
    switch (field) {
    case FIELD_MILLISECOND:
        return type_decimal(of.id == TYPE_INTERVAL ? 38 : 8, 3);
    case FIELD_SECOND:
        return type_decimal(of.id == TYPE_INTERVAL ? 38 : 8, 6);
    case FIELD_EPOCH:
        return of.id == TYPE_DATE ? type_decimal(18, 0)
                                  : type_decimal(of.id == TYPE_INTERVAL ? 38 : 19, 6);
    default:
        return type_decimal(of.id == TYPE_INTERVAL ? 38 : 10, 0);
    }
}

static bool is_infinite(const struct expr *source) { /* a constant */
    bool date = source->type.id == TYPE_DATE;
    i64 least = date ? I32_MIN : I64_MIN, most = date ? I32_MAX : I64_MAX;
    i64 value = date ? source->value.i32 : source->value.i64;
    return source->kind == EXPR_CONST && !source->is_null && (value == least || value == most);
}

/* `part`, but `other` where the source is an infinity. */
static FALLIBLE finite_or(struct typing *t, struct expr *source, struct expr *part,
                          struct expr *other, struct expr **out) {
    u16 func = source->type.id == TYPE_DATE        ? FUNC_FINITE_DATE
                     : source->type.id == TYPE_TIMESTAMP ? FUNC_FINITE_TS
                                                         : FUNC_FINITE_TSTZ;
    bool never = source->type.id == TYPE_TIME || source->type.id == TYPE_INTERVAL;
    *out = part;
    if (never || source->is_null) {
        return ERR_OK;
    }
    if (source->kind == EXPR_CONST) {
        *out = is_infinite(source) ? other : part;
        return ERR_OK;
    }
    TRY(typing_sharable(t, source));
    struct expr *args[3] = {scalar_call(t, func, part->position, 1, source), part, other};
    *out = expr_many(t, EXPR_CASE, part->type, part->position, 3, args);
    return ERR_OK;
}

/* NULL for an infinity, which has no such field. */
static FALLIBLE finite_only(struct typing *t, struct expr *source, struct expr *part,
                            struct expr **out) {
    return finite_or(t, source, part, expr_null(t, part->type, part->position), out);
}

/* extract returns decimal, date_part double precision, as in PostgreSQL. */
static FALLIBLE call_extract(struct typing *t, const struct call *call, struct expr **out);

/* timezone, timezone_hour, timezone_minute of a timestamptz: 1, 3600, 60; else 0. */
static i32 zone_unit(const struct expr *field, struct type of) {
    struct sv name;
    if (of.id != TYPE_TIMESTAMPTZ || !literal_text(field, &name)) {
        return 0;
    }
    return sv_eq_nocase(name, SV("timezone"))          ? 1
           : sv_eq_nocase(name, SV("timezone_hour"))   ? 3600
           : sv_eq_nocase(name, SV("timezone_minute")) ? 60
                                                       : 0;
}

/* The seconds that local time is ahead, in these units; of the smaller ones what the next leaves.
 */
static FALLIBLE extract_zone(struct typing *t, const struct call *call, struct expr *source,
                             i32 unit, struct expr **out) {
    i32 position = call->position;
    struct expr *args[2] = {expr_text(t, SV("epoch"), position), source}, *local = NULL;
    struct expr *here = NULL, *there = NULL;
    struct call epoch = {"extract", args, 2, position, FUNC_YEAR};
    TRY(call_extract(t, &epoch, &here));
    TRY(coerce_to(t, source, type_of(TYPE_TIMESTAMP), &local));
    args[1] = local;
    TRY(call_extract(t, &epoch, &there));
    TRY(operator_arithmetic(t, FUNC_SUB, there, here, position, out));
    TRY(coerce_to(t, *out, type_of(TYPE_INTEGER), out));
    TRY(operator_arithmetic(t, FUNC_DIV, *out, expr_int(t, unit, position), position, out));
    if (unit == 60) {
        TRY(operator_arithmetic(t, FUNC_MOD, *out, expr_int(t, 60, position), position, out));
    }
    bool extract = strcmp(call->name, "extract") == 0;
    TRY(coerce_to(t, *out, extract ? type_decimal(10, 0) : type_of(TYPE_DOUBLE), out));
    return finite_only(t, source, *out, out);
}

/* Fields that grow with time are infinite where the date is: no decimal holds that. */
static bool is_endless(i32 field) {
    return field == FIELD_YEAR || field == FIELD_DECADE || field == FIELD_CENTURY ||
           field == FIELD_MILLENNIUM || field == FIELD_JULIAN || field == FIELD_ISOYEAR ||
           field == FIELD_EPOCH;
}

static struct expr *endless(struct typing *t, struct type type, bool plus, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type, position);
    if (type.id == TYPE_DOUBLE) {
        expr->value.f64 = plus ? (f64)INFINITY : -(f64)INFINITY;
    } else if (type.id == TYPE_DATE) {
        expr->value.i32 = plus ? I32_MAX : I32_MIN;
    } else {
        expr->value.i64 = plus ? I64_MAX : I64_MIN;
    }
    return expr;
}

/* date_part: a double can be infinite. */
static FALLIBLE endless_part(struct typing *t, struct expr *source, struct expr *part,
                             struct expr **out) {
    struct type real = type_of(TYPE_DOUBLE);
    i32 position = part->position;
    struct expr *args[5];
    TRY(coerce_to(t, part, real, &args[4]));
    TRY(typing_sharable(t, source));
    for (i32 i = 0; i < 2; i++) {
        TRY(operator_compare(t, FUNC_EQ, source, endless(t, source->type, i == 0, position),
                             position, &args[2 * i]));
        args[2 * i + 1] = endless(t, real, i == 0, position);
    }
    *out = expr_many(t, EXPR_CASE, real, position, 5, args);
    return ERR_OK;
}

/* Days since 4714 BC, and of a timestamp the share of the day that has passed. */
static FALLIBLE julian_of(struct typing *t, struct expr *source, i32 position, struct expr **out) {
    struct expr *day = NULL, *clock = NULL, *seconds = expr_int(t, 86400, position);
    struct expr *args[2] = {expr_text(t, SV("julian"), position), NULL};
    struct call call = {"extract", args, 2, position, FUNC_YEAR};
    TRY(typing_sharable(t, source));
    TRY(coerce_to(t, source, type_of(TYPE_DATE), &args[1]));
    TRY(call_extract(t, &call, &day));
    args[0] = expr_text(t, SV("epoch"), position);
    TRY(coerce_to(t, source, type_of(TYPE_TIME), &args[1]));
    TRY(call_extract(t, &call, &clock));
    TRY(operator_arithmetic(t, FUNC_DIV, clock, seconds, position, &clock));
    return operator_arithmetic(t, FUNC_ADD, day, clock, position, out);
}

/* The field of a source that is finite, or NULL for what an infinity has no value of. */
static FALLIBLE part_of(struct typing *t, const struct call *call, struct expr *source, i32 field,
                        struct expr **out) {
    struct expr *part = NULL;
    if (source->type.id == TYPE_DATE &&
        (field == FIELD_YEAR || field == FIELD_MONTH || field == FIELD_DAY)) {
        u16 func = field == FIELD_YEAR    ? FUNC_YEAR
                         : field == FIELD_MONTH ? FUNC_MONTH
                                                : FUNC_DAY;
        *out = expr_call(t->arena, func, type_of(TYPE_INTEGER), call->position, 1, source);
        return ERR_OK;
    }
    if (field == FIELD_JULIAN && source->type.id != TYPE_DATE) {
        return julian_of(t, source, call->position, out);
    }
    struct expr *args[2] = {source, expr_int(t, field, call->position)};
    struct call inner = {"wf_part", args, 2, call->position, 0};
    bool found;
    TRY(call_overload(t, &inner, &found, &part));
    if (!found) {
        return call_mismatch(t, call);
    }
    struct type type = field_type(source->type, field);
    if (part->kind == EXPR_CONST && !part->is_null) {
        i128 value = const_exact(part);
        part->type = type; /* the decimal may be wider than what the value came in */
        const_set_exact(part, value);
    }
    part->type = type;
    *out = part;
    return is_endless(field) ? ERR_OK : finite_only(t, source, part, out);
}

static FALLIBLE any_field(struct typing *t, const struct call *call, struct expr *source,
                          struct expr **out);
static FALLIBLE call_date_trunc(struct typing *t, const struct call *call, struct expr **out);

static FALLIBLE call_extract(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *source = call->args[1];
    bool extract = strcmp(call->name, "extract") == 0;
    struct type real = type_of(TYPE_DOUBLE);
    i32 position = call->position, field = 0;
    if (is_unknown(source) && source->kind == EXPR_CONST) {
        FAIL_AT(t->err, AMBIGUOUS_FUNCTION, position, "function %s(unknown, unknown) is not unique",
                call->name);
    }
    TRY(coerce_unknown(t, source, type_of(TYPE_TIMESTAMP), &source));
    char category = type_category(source->type);
    if (category != 'D' && category != 'T') {
        return call_mismatch(t, call);
    }
    i32 unit = zone_unit(call->args[0], source->type);
    if (unit) {
        return extract_zone(t, call, source, unit, out);
    }
    struct sv name;
    if (!literal_text(call->args[0], &name)) {
        struct type day = type_of(TYPE_TIMESTAMP);
        TRY(source->type.id == TYPE_DATE ? coerce_to(t, source, day, &source) : ERR_OK);
        return any_field(t, call, source, out);
    }
    u8 fault = find_field(name, source->type, &field);
    if (fault && !extract && source->type.id == TYPE_DATE) { /* its midnight has it */
        TRY(coerce_to(t, source, type_of(TYPE_TIMESTAMP), &source));
        fault = find_field(name, source->type, &field);
    }
    if (fault) {
        return no_field(t, call->args[0], source, fault, extract ? type_decimal(10, 0) : real, out);
    }
    bool grows = is_endless(field) && source->type.id != TYPE_TIME && category != 'T';
    if (grows && extract) {
        bool date = source->type.id == TYPE_DATE;
        source = scalar_call(t,
                             date                                ? FUNC_ONLY_DATE
                             : source->type.id == TYPE_TIMESTAMP ? FUNC_ONLY_TS
                                                                 : FUNC_ONLY_TSTZ,
                             position, 1, source);
    }
    TRY(part_of(t, call, source, field, out));
    if (extract) {
        bool day = (*out)->type.id == TYPE_INTEGER;
        return day ? coerce_to(t, *out, type_decimal(10, 0), out) : ERR_OK;
    }
    return grows ? endless_part(t, source, *out, out) : coerce_to(t, *out, real, out);
}

/* lower(field) IN (the names of a line of field_names) */
static struct expr *is_named(struct typing *t, struct expr *field, const char *names,
                             i32 position) {
    struct expr *args[8];
    i32 count = 0;
    args[count++] = expr_call(t->arena, FUNC_LOWER, type_of(TYPE_TEXT), position, 1, field);
    while (*names && count < COUNT_OF(args)) {
        const char *end = strchr(names, ' ');
        i64 len = end ? end - names : (i64)strlen(names);
        args[count++] = expr_text(t, (struct sv){names, len}, position);
        names += len + (end != NULL);
    }
    return expr_many(t, EXPR_IN, type_of(TYPE_BOOLEAN), position, count, args);
}

/* date_part and date_trunc by a field that is computed: a branch for each there is. */
static FALLIBLE any_field(struct typing *t, const struct call *call, struct expr *source,
                          struct expr **out) {
    enum { MOST = 2 * COUNT_OF(field_names) + 1 };
    bool trunc = strcmp(call->name, "date_trunc") == 0;
    i32 position = call->position, count = 0;
    struct expr *field = NULL, *branches[MOST], *args[3] = {NULL, source, NULL};
    struct call inner = *call;
    inner.args = args;
    TRY(call_argument(t, call, 0, type_of(TYPE_TEXT), &field));
    TRY(typing_sharable(t, field));
    TRY(typing_sharable(t, source));
    if (call->count > 2) { /* the zone */
        args[2] = call->args[2];
        TRY(typing_sharable(t, args[2]));
    }
    for (i64 i = 0; i < COUNT_OF(field_names); i++) {
        if (!has_field(source->type, field_names[i].field) ||
            (trunc && field_names[i].field > FIELD_MILLENNIUM)) {
            continue;
        }
        const char *names = field_names[i].names, *end = strchr(names, ' ');
        i64 len = end ? end - names : (i64)strlen(names);
        args[0] = expr_text(t, (struct sv){names, len}, position);
        branches[count++] = is_named(t, field, names, position);
        TRY(trunc ? call_date_trunc(t, &inner, &branches[count++])
                  : call_extract(t, &inner, &branches[count++]));
    }
    struct type type = branches[1]->type;
    TRY(no_field(t, field, source, FAULT_UNIT_NAME, type, &branches[count]));
    if (trunc) { /* an infinity has every field, but not NULL */
        struct expr *known[3] = {expr_one(t, EXPR_IS_NULL, field, position),
                                 expr_null(t, type, position), source};
        struct expr *kept = expr_many(t, EXPR_CASE, type, position, 3, known);
        TRY(finite_or(t, source, branches[count], kept, &branches[count]));
    }
    *out = expr_many(t, EXPR_CASE, type, position, count + 1, branches);
    return ERR_OK;
}

static FALLIBLE call_timezone(struct typing *t, const struct call *call, struct expr **out);

static FALLIBLE trunc_to(struct typing *t, const struct call *call, struct expr *source, i32 field,
                         struct expr **out) {
    struct expr *args[2] = {source, expr_int(t, field, call->position)};
    struct call inner = {"wf_date_trunc", args, 2, call->position, 0};
    bool found;
    TRY(call_overload(t, &inner, &found, out));
    return found ? ERR_OK : call_mismatch(t, call);
}

/* date_trunc(field, timestamptz, zone): by the clocks there. What is cut off below a day is taken
 * from the moment itself, which clocks may show twice. */
static FALLIBLE trunc_in_zone(struct typing *t, const struct call *call, struct expr *source,
                              i32 field, struct expr **out) {
    i32 position = call->position;
    struct expr *zone = NULL, *local = NULL, *cut = NULL;
    TRY(call_argument(t, call, 2, type_of(TYPE_TEXT), &zone));
    TRY(typing_sharable(t, zone));
    TRY(typing_sharable(t, source));
    struct expr *args[2] = {zone, source};
    struct call at = {"timezone", args, 2, position, 0};
    TRY(call_timezone(t, &at, &local));
    TRY(trunc_to(t, call, local, field, &cut));
    if (field >= FIELD_DAY) {
        args[1] = cut;
        return call_timezone(t, &at, out);
    }
    struct expr *gap = scalar_call(t, FUNC_TS_GAP, position, 2, local, cut);
    *out = scalar_call(t, FUNC_TSTZ_SUB, position, 2, source, gap);
    return ERR_OK;
}

static FALLIBLE call_date_trunc(struct typing *t, const struct call *call, struct expr **out) {
    struct type type = call->args[1]->type;
    i32 field = 0;
    bool zoned = call->count > 2;
    char category = type_category(type);
    if (type.id != TYPE_UNKNOWN && category != 'D' && category != 'T') {
        return call_mismatch(t, call);
    }
    type = type.id == TYPE_UNKNOWN || zoned ? type_of(TYPE_TIMESTAMPTZ)
           : type.id == TYPE_DATE           ? type_of(TYPE_TIMESTAMPTZ)
           : type.id == TYPE_TIME           ? type_of(TYPE_INTERVAL)
                                            : type;
    struct type of = type.id == TYPE_INTERVAL ? type : type_of(TYPE_TIMESTAMP);
    struct expr *source = NULL;
    TRY(call_argument(t, call, 1, type, &source));
    struct sv name;
    if (!literal_text(call->args[0], &name)) {
        return any_field(t, call, source, out);
    }
    u8 fault = find_field(name, of, &field);
    fault = field > FIELD_MILLENNIUM ? FAULT_UNIT_NAME : fault;
    if (fault && type.id != TYPE_INTERVAL && is_infinite(source)) {
        *out = source;
        return ERR_OK;
    }
    if (fault) {
        TRY(no_field(t, call->args[0], source, fault, type, out));
        return finite_or(t, source, *out, source, out);
    }
    return zoned ? trunc_in_zone(t, call, source, field, out)
                 : trunc_to(t, call, source, field, out);
}

static struct expr *time_call(struct typing *t, u16 func, i32 position) {
    return expr_call(t->arena, func, type_of(TYPE_TIMESTAMPTZ), position, 0);
}

static struct expr *now(struct typing *t, i32 position) {
    return time_call(t, FUNC_NOW, position);
}

/* timeofday(): the clock as text. */
static FALLIBLE call_time_of_day(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *template = expr_text(t, SV("Dy Mon DD HH24:MI:SS.US YYYY TZ"), call->position);
    *out = scalar_call(t, FUNC_TO_CHAR_TZ, call->position, 2,
                       time_call(t, FUNC_CLOCK_TIME, call->position), template);
    return ERR_OK;
}

/* isfinite of an interval, which always is. */
static FALLIBLE call_is_finite(struct typing *t, const struct call *call, struct expr **out) {
    if (call->args[0]->type.id != TYPE_INTERVAL) {
        bool found;
        TRY(call_overload(t, call, &found, out));
        return found ? ERR_OK : call_mismatch(t, call);
    }
    struct expr *args[3] = {expr_one(t, EXPR_IS_NULL, call->args[0], call->position),
                            expr_null(t, type_of(TYPE_BOOLEAN), call->position), NULL};
    args[2] = expr_one(t, EXPR_NOT, args[0], call->position);
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_BOOLEAN), call->position, 3, args);
    return ERR_OK;
}

static FALLIBLE call_now(struct typing *t, const struct call *call, struct expr **out) {
    *out = time_call(t, call->func, call->position);
    return ERR_OK;
}

/* age(x): from x to this day's midnight. */
static FALLIBLE call_age(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[2] = {call->args[0], call->args[call->count - 1]};
    if (call->count == 1) {
        struct type type =
            type_of(args[1]->type.id == TYPE_TIMESTAMPTZ ? TYPE_TIMESTAMPTZ : TYPE_TIMESTAMP);
        TRY(coerce_to(t, now(t, call->position), type_of(TYPE_DATE), &args[0]));
        TRY(coerce_to(t, args[0], type, &args[0]));
    }
    struct call inner = {"age", args, 2, call->position, 0};
    bool found;
    TRY(call_overload(t, &inner, &found, out));
    return found ? ERR_OK : call_mismatch(t, call);
}

/* An offset in which east is positive, as one in which west is. */
static FALLIBLE turned_zone(struct typing *t, struct expr *zone, struct expr **out) {
    static const char signs[2][2] = {"+", "-"};
    i32 position = zone->position;
    struct type text = type_of(TYPE_TEXT);
    struct expr *args[5] = {[4] = zone};
    struct expr *rest = expr_call(t->arena, FUNC_SUBSTRING, text, position, 3, zone,
                                  expr_int(t, 2, position), expr_int(t, I32_MAX, position));
    TRY(typing_sharable(t, zone));
    for (i32 i = 0; i < 2; i++) {
        args[2 * i] = scalar_call(t, FUNC_STARTS_WITH, position, 2, zone,
                                  expr_text(t, sv_from(signs[i]), position));
        args[2 * i + 1] = expr_call(t->arena, FUNC_CONCAT, text, position, 2,
                                    expr_text(t, sv_from(signs[1 - i]), position), rest);
    }
    *out = expr_many(t, EXPR_CASE, text, position, 5, args);
    return ERR_OK;
}

/* make_timestamp(year, month, day, hour, minute, second) */
static FALLIBLE call_make_timestamp(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[6];
    for (i32 i = 0; i < 6; i++) {
        TRY(call_argument(t, call, i, type_of(i < 5 ? TYPE_INTEGER : TYPE_DOUBLE), &args[i]));
    }
    struct expr *date =
        scalar_call(t, FUNC_MAKE_DATE, call->position, 3, args[0], args[1], args[2]);
    struct expr *time =
        scalar_call(t, FUNC_MAKE_TIME, call->position, 3, args[3], args[4], args[5]);
    *out = scalar_call(t, FUNC_DATE_TIME, call->position, 2, date, time);
    if (call->count == 7) { /* by the clocks of a zone */
        struct expr *zoned[2] = {NULL, *out};
        TRY(call_argument(t, call, 6, type_of(TYPE_TEXT), &zoned[0]));
        TRY(turned_zone(t, zoned[0], &zoned[0]));
        struct call at = {"timezone", zoned, 2, call->position, 0};
        return call_timezone(t, &at, out);
    }
    if (strcmp(call->name, "make_timestamptz") == 0) {
        return coerce_to(t, *out, type_of(TYPE_TIMESTAMPTZ), out);
    }
    return ERR_OK;
}

/* x AT TIME ZONE z is timezone(z, x): a zone is named by text, or is an interval. */
static FALLIBLE call_timezone(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *zone = call->args[0];
    struct expr *source = NULL;
    bool by_interval = zone->type.id == TYPE_INTERVAL;
    if (!by_interval) {
        TRY(call_argument(t, call, 0, type_of(TYPE_TEXT), &zone));
        zone = scalar_call(t, FUNC_ZONE_OF, call->position, 1, zone);
    }
    TRY(coerce_unknown(t, call->args[1], type_of(TYPE_TIMESTAMPTZ), &source));
    bool local = source->type.id == TYPE_TIMESTAMP;
    if (!local && !coerce_allowed(source->type, type_of(TYPE_TIMESTAMPTZ), COERCE_IMPLICIT)) {
        return call_mismatch(t, call);
    }
    if (!local) {
        TRY(coerce_to(t, source, type_of(TYPE_TIMESTAMPTZ), &source));
    }
    u16 in = by_interval ? FUNC_ZONE_IN_IV : FUNC_ZONE_IN;
    u16 away = by_interval ? FUNC_ZONE_OUT_IV : FUNC_ZONE_OUT;
    *out = scalar_call(t, local ? in : away, call->position, 2, source, zone);
    return ERR_OK;
}

/* to_char of a date or an interval is NULL for an infinity, and for an empty template. */
static FALLIBLE null_or_char(struct typing *t, struct expr *made, i32 position, struct expr **out) {
    u16 func = made->kind == EXPR_CALL ? made->func : (u16)FUNC_COUNT;
    bool moment = func == FUNC_TO_CHAR_TS || func == FUNC_TO_CHAR_TZ;
    if (!moment && func != FUNC_TO_CHAR_IV) {
        return ERR_OK;
    }
    if (moment) {
        TRY(finite_only(t, made->args[0], made, out));
    }
    struct sv text;
    struct expr *template = made->args[1], *empty = expr_text(t, SV(""), position);
    if (!literal_text(template, &text) || text.len == 0) {
        struct expr *args[3] = {NULL, expr_null(t, made->type, position), *out};
        TRY(typing_sharable(t, template));
        TRY(operator_compare(t, FUNC_EQ, template, empty, position, &args[0]));
        *out = expr_many(t, EXPR_CASE, made->type, position, 3, args);
    }
    return ERR_OK;
}

/* to_char of a date or timestamptz shows the session's local time. */
static FALLIBLE call_to_char(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *args[2] = {call->args[0], call->args[1]};
    if (args[0]->type.id == TYPE_DATE) {
        TRY(coerce_to(t, args[0], type_of(TYPE_TIMESTAMPTZ), &args[0]));
    } else if (args[0]->type.id == TYPE_SMALLINT) {
        TRY(coerce_to(t, args[0], type_of(TYPE_INTEGER), &args[0]));
    } else if (args[0]->type.id == TYPE_TIME) {
        TRY(coerce_to(t, args[0], type_of(TYPE_INTERVAL), &args[0]));
    }
    bool real = args[0]->type.id == TYPE_REAL;
    struct call inner = {real ? func_names[FUNC_TO_CHAR_R] : "to_char", args, 2, call->position, 0};
    bool found;
    TRY(call_overload(t, &inner, &found, out));
    return found ? null_or_char(t, *out, call->position, out) : call_mismatch(t, call);
}

static struct expr *less(struct typing *t, struct expr *x, struct expr *y) {
    return expr_call(t->arena, FUNC_LT, type_of(TYPE_BOOLEAN), x->position, 2, x, y);
}

static struct expr *either_null(struct typing *t, struct expr *x, struct expr *y) {
    struct expr *args[2] = {expr_one(t, EXPR_IS_NULL, x, x->position),
                            expr_one(t, EXPR_IS_NULL, y, y->position)};
    return expr_many(t, EXPR_OR, type_of(TYPE_BOOLEAN), x->position, 2, args);
}

static struct expr *choose(struct typing *t, struct expr *c1, struct expr *v1, struct expr *c2,
                           struct expr *v2, struct expr *otherwise) {
    struct expr *args[5] = {c1, v1, c2, v2, otherwise};
    return expr_many(t, EXPR_CASE, v2->type, v2->position, 5, args);
}

/* Whether the period that starts first reaches into the other; unknown where its end is. */
static struct expr *reaches(struct typing *t, struct expr *start, struct expr *end,
                            struct expr *other_end) {
    return choose(t, less(t, start, end), expr_bool(t, true, -1), either_null(t, end, other_end),
                  expr_null(t, type_of(TYPE_BOOLEAN), -1), expr_bool(t, false, -1));
}

/* (a, b) OVERLAPS (c, d): periods include their start and not their end, in whatever order the two
 * are given; of a period with one end known, that one is the start. */
static FALLIBLE call_overlaps(struct typing *t, const struct call *call, struct expr **out) {
    struct expr *ends[4], *start[2], *end[2];
    struct type type;
    for (i32 i = 0; i < 4; i++) {
        ends[i] = call->args[i];
        if (i % 2 == 1 && ends[i]->type.id == TYPE_INTERVAL) {
            TRY(operator_arithmetic(t, FUNC_ADD, ends[i - 1], ends[i], call->position, &ends[i]));
        }
    }
    TRY(coerce_common(t, ends, 4, "OVERLAPS", &type));
    if (type.id != TYPE_DATE && type.id != TYPE_TIMESTAMP && type.id != TYPE_TIMESTAMPTZ &&
        type.id != TYPE_TIME) {
        return call_mismatch(t, call);
    }
    for (i32 i = 0; i < 2; i++) {
        struct expr *x = ends[2 * i], *y = ends[2 * i + 1];
        TRY(typing_sharable(t, x));
        TRY(typing_sharable(t, y));
        start[i] = choose(t, expr_one(t, EXPR_IS_NULL, x, call->position), y, less(t, y, x), y, x);
        end[i] = choose(t, either_null(t, x, y), expr_null(t, type, call->position), less(t, y, x),
                        x, y);
    }
    struct expr *same[3] = {either_null(t, end[0], end[1]),
                            expr_null(t, type_of(TYPE_BOOLEAN), call->position),
                            expr_bool(t, true, call->position)};
    struct expr *args[7] = {
        either_null(t, start[0], start[1]),
        expr_null(t, type_of(TYPE_BOOLEAN), call->position),
        less(t, start[1], start[0]),
        reaches(t, start[0], end[1], end[0]),
        less(t, start[0], start[1]),
        reaches(t, start[1], end[0], end[1]),
        expr_many(t, EXPR_CASE, type_of(TYPE_BOOLEAN), call->position, 3, same)};
    *out = expr_many(t, EXPR_CASE, type_of(TYPE_BOOLEAN), call->position, 7, args);
    return ERR_OK;
}

static const struct func_entry entries[] = {
    {"overlaps", 4, 4, call_overlaps, FUNC_LT},
    {"extract", 2, 2, call_extract, FUNC_YEAR},
    {"date_part", 2, 2, call_extract, FUNC_YEAR},
    {"date_trunc", 2, 3, call_date_trunc, FUNC_TRUNC_TS},
    {"age", 1, 2, call_age, FUNC_AGE_TS},
    {"make_timestamp", 6, 6, call_make_timestamp, FUNC_DATE_TIME},
    {"make_timestamptz", 6, 7, call_make_timestamp, FUNC_DATE_TIME},
    {"timezone", 2, 2, call_timezone, FUNC_ZONE_IN},
    {"isfinite", 1, 1, call_is_finite, FUNC_FINITE_TS},
    {"timeofday", 0, 0, call_time_of_day, FUNC_CLOCK_TIME},
    {"now", 0, 0, call_now, FUNC_NOW},
    {"transaction_timestamp", 0, 0, call_now, FUNC_NOW},
    {"statement_timestamp", 0, 0, call_now, FUNC_STATEMENT_TIME},
    {"clock_timestamp", 0, 0, call_now, FUNC_CLOCK_TIME},
    {"to_char", 2, 2, call_to_char, FUNC_TO_CHAR_TS},
};

const struct func_entry *time_functions(i64 *out_count) {
    *out_count = COUNT_OF(entries);
    return entries;
}

FALLIBLE call_moment(struct typing *t, struct type type, i32 position, struct expr **out) {
    return coerce_to(t, now(t, position), type, out);
}

const char *const interval_args[INTERVAL_ARGS] = {"years", "months", "weeks", "days",
                                                  "hours", "mins",   "secs"};

/* left * factor + right, all of one type */
static FALLIBLE times_plus(struct typing *t, struct expr *left, i64 factor, struct expr *right,
                           i32 position, struct expr **out) {
    struct expr *number = expr_new(t->arena, EXPR_CONST, type_of(TYPE_BIGINT), position);
    number->value.i64 = factor;
    TRY(operator_arithmetic(t, FUNC_MUL, left, number, position, out));
    return right ? operator_arithmetic(t, FUNC_ADD, *out, right, position, out) : ERR_OK;
}

FALLIBLE call_make_interval(struct typing *t, struct expr **args, i32 position, struct expr **out) {
    struct expr *given[INTERVAL_ARGS];
    struct call call = {.name = "make_interval", .args = given, .position = position};
    for (i32 i = 0; i < INTERVAL_ARGS; i++) {
        given[call.count] = args[i];
        call.count += args[i] != NULL;
    }
    for (i32 i = 0, k = 0; i < INTERVAL_ARGS; i++) {
        struct type type = type_of(i < 6 ? TYPE_INTEGER : TYPE_DOUBLE);
        if (args[i]) {
            TRY(call_argument(t, &call, k++, type, &args[i]));
        } else {
            TRY(coerce_to(t, expr_int(t, 0, position), type, &args[i]));
        }
        TRY(i < 6 ? coerce_to(t, args[i], type_of(TYPE_BIGINT), &args[i]) : ERR_OK);
    }
    struct expr *parts[3] = {NULL, NULL, NULL};
    struct expr *scale = expr_new(t->arena, EXPR_CONST, type_of(TYPE_DOUBLE), position);
    scale->value.f64 = 1e6;
    TRY(operator_arithmetic(t, FUNC_MUL, args[6], scale, position, &args[6]));
    TRY(coerce_to(t, args[6], type_of(TYPE_BIGINT), &args[6]));
    TRY(times_plus(t, args[0], 12, args[1], position, &parts[0]));
    TRY(times_plus(t, args[2], 7, args[3], position, &parts[1]));
    TRY(times_plus(t, args[5], MINUTE_US, args[6], position, &parts[2]));
    TRY(times_plus(t, args[4], HOUR_US, parts[2], position, &parts[2]));
    *out = scalar_call(t, FUNC_MAKE_IV, position, 3, parts[0], parts[1], parts[2]);
    return ERR_OK;
}
