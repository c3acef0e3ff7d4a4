/* bind_interval.c: date ± interval, both constant, computed while binding.
 *
 * Part of binding. There is no interval type yet; what TPC-H and most reports need is
 * `date '1998-12-01' - interval '90' day`. Years and months move the calendar and stop at the
 * month's last day, days are added afterwards, as in PostgreSQL. The result is a date (PostgreSQL's
 * is a timestamp at midnight, which compares alike). */
#include "defs/host_words.h"
/* after the words it is written in */
#include "defs/fn_date.h"
#include "sql/sql_int.h"

enum { YEAR_MIN = -4713, YEAR_MAX = 5874897 };
enum { FIELD_MONTH = 2, FIELD_YEAR = 4, FIELD_DAY = 8 }; /* the grammar's bits */

static const struct {
    const char *name;
    i32 months;
    i32 days;
} units[] = {
    {"day", 0, 1},          {"days", 0, 1},      {"d", 0, 1},
    {"week", 0, 7},         {"weeks", 0, 7},     {"w", 0, 7},
    {"month", 1, 0},        {"months", 1, 0},    {"mon", 1, 0},
    {"mons", 1, 0},         {"year", 12, 0},     {"years", 12, 0},
    {"y", 12, 0},           {"yr", 12, 0},       {"yrs", 12, 0},
    {"decade", 120, 0},     {"decades", 120, 0}, {"century", 1200, 0},
    {"centuries", 1200, 0},
};

struct interval_text {
    struct sv s;
    i64 at;
};

static void skip_blanks(struct interval_text *t) {
    while (t->at < t->s.len && (t->s.ptr[t->at] == ' ' || t->s.ptr[t->at] == '\t')) {
        t->at++;
    }
}

static bool read_count(struct interval_text *t, i64 *out) {
    bool minus = t->at < t->s.len && t->s.ptr[t->at] == '-';
    t->at += t->at < t->s.len && (t->s.ptr[t->at] == '-' || t->s.ptr[t->at] == '+');
    i64 start = t->at;
    i64 value = 0;
    for (; t->at < t->s.len && t->s.ptr[t->at] >= '0' && t->s.ptr[t->at] <= '9'; t->at++) {
        value = MIN_OF(value * 10 + (t->s.ptr[t->at] - '0'), 100000000);
    }
    *out = minus ? -value : value;
    return t->at > start;
}

static bool add_unit(struct interval *out, struct sv name, i64 count) {
    for (i64 i = 0; i < COUNT_OF(units); i++) {
        if (sv_eq_nocase(name, sv_from(units[i].name))) {
            out->months += count * units[i].months;
            out->days += count * units[i].days;
            return true;
        }
    }
    return false;
}

static bool read_interval(struct sv text, i32 fields, struct interval *out) {
    struct interval_text t = {text, 0};
    const char *implied = fields == FIELD_YEAR    ? "year"
                          : fields == FIELD_MONTH ? "month"
                          : fields == FIELD_DAY   ? "day"
                                                  : NULL;
    *out = (struct interval){0, 0};
    bool any = false;
    for (skip_blanks(&t); t.at < t.s.len; skip_blanks(&t)) {
        i64 count = 0;
        if (!read_count(&t, &count)) {
            return false;
        }
        skip_blanks(&t);
        i64 start = t.at;
        while (t.at < t.s.len && ((t.s.ptr[t.at] | 32) >= 'a' && (t.s.ptr[t.at] | 32) <= 'z')) {
            t.at++;
        }
        struct sv unit = {t.s.ptr + start, t.at - start};
        if (unit.len == 0 && implied) {
            unit = sv_from(implied);
        }
        if (!add_unit(out, unit, count)) {
            return false;
        }
        any = true;
    }
    return any;
}

FALLIBLE bind_interval(struct bind *b, const struct json *node, bool *out_is,
                       struct interval *out) {
    *out_is = false;
    if (!node_is(node, "TypeCast")) {
        return ERR_OK;
    }
    const struct json *body = node_body(node);
    const struct json *names = json_get(json_get(body, "typeName"), "names");
    const char *name = "";
    JSON_EACH(part, names) {
        name = node_string(part);
    }
    if (strcmp(name, "interval") != 0) {
        return ERR_OK;
    }
    struct type_name type;
    TRY(bind_type(b, json_get(body, "typeName"), &type));
    const struct json *arg = json_get(body, "arg");
    const char *text = json_text(json_get(node_body(arg), "sval"), "sval");
    i32 position = type.position;
    bool known = type.interval_fields == 0 || type.interval_fields == FIELD_YEAR ||
                 type.interval_fields == FIELD_MONTH || type.interval_fields == FIELD_DAY;
    if (!node_is(arg, "A_Const") || !text || !known ||
        !read_interval(sv_from(text), type.interval_fields, out)) {
        wf_status status = unsupported(b, position, "this form of interval");
        error_hint(b->err, "Supported: constant days, months and years, as in interval '3' month.");
        return status;
    }
    *out_is = true;
    return ERR_OK;
}

static i32 month_days(i64 year, i32 month) {
    static const u8 days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

FALLIBLE bind_date_shift(struct bind *b, struct expr *date, struct interval by, bool minus,
                         i32 position, struct expr **out) {
    struct expr *result = expr_null(b, type_of(TYPE_DATE), date->position);
    *out = result;
    if (date->is_null) {
        return ERR_OK;
    }
    result->is_null = 0;
    fn_civil civil = fn_civil_of(date->value.i32);
    i64 months = (i64)civil.year * 12 + (civil.month - 1) + (minus ? -by.months : by.months);
    i64 year = (months >= 0 ? months : months - 11) / 12;
    i32 month = (i32)(months - year * 12) + 1;
    i128 moved = I64_MAX; /* a year no date has is as good as out of range */
    if (year >= YEAR_MIN && year <= YEAR_MAX) {
        i32 day = MIN_OF(civil.day, month_days(year, month));
        moved = (i128)fn_days((i32)year, month, day) + (minus ? -by.days : by.days);
    }
    if (!range_within(range_of_value(moved), range_of_type(type_of(TYPE_DATE)))) {
        FAIL_AT(b->err, DATETIME_OVERFLOW, position, "date out of range");
    }
    result->value.i32 = (i32)moved;
    return ERR_OK;
}
