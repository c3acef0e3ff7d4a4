/* value_interval.c: intervals to text and back.
 *
 * Reads what PostgreSQL reads: numbers with units (1 year 2 mons -3 days 04:05:06.7 ago), the SQL
 * standard's 1-2 and 3 4:05:06, ISO 8601's P1Y2M3DT4H5M6S and P0001-02-03T04:05:06. The text is cut
 * into words, which are then taken from the last to the first: so a unit is known before its
 * number, and a number without one gets its unit from what follows it, or from the fields of the
 * type. No field may be given twice. A fraction of a unit moves down as there, in double precision:
 * of months to days of which a month has 30, of days to the time. Writes PostgreSQL's own style. */
#include "defs/value.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_time.h"
#include "defs/fn_str.h"
#include "defs/fn_parse.h"
#include "defs/fn_moment.h"
#include "defs/value_scan.h"

/* Fields that are given, each once. A second with a fraction is all of the last three. */
enum {
    GIVEN_US = 1 << 0,
    GIVEN_MS = 1 << 1,
    GIVEN_SECOND = 1 << 2,
    GIVEN_SECONDS = GIVEN_US | GIVEN_MS | GIVEN_SECOND,
    GIVEN_MINUTE = 1 << 3,
    GIVEN_HOUR = 1 << 4,
    GIVEN_TIME = GIVEN_SECONDS | GIVEN_MINUTE | GIVEN_HOUR,
    GIVEN_DAY = 1 << 5,
    GIVEN_WEEK = 1 << 6,
    GIVEN_MONTH = 1 << 7,
    GIVEN_YEAR = 1 << 8,
    GIVEN_DECADE = 1 << 9,
    GIVEN_CENTURY = 1 << 10,
    GIVEN_MILLENNIUM = 1 << 11,
};

/* A unit is so many years, months, days, or microseconds. */
static const struct unit {
    const char *names; /* separated by spaces; ten letters count */
    i32 given;
    i64 years, months, days, us;
} units[] = {
    {"us usec usecs usecond useconds microsecon", GIVEN_US, 0, 0, 0, 1},
    {"ms msec msecs msecond mseconds millisecon", GIVEN_MS, 0, 0, 0, 1000},
    {"s sec secs second seconds", GIVEN_SECOND, 0, 0, 0, SECOND_US},
    {"m min mins minute minutes", GIVEN_MINUTE, 0, 0, 0, MINUTE_US},
    {"h hr hrs hour hours", GIVEN_HOUR, 0, 0, 0, HOUR_US},
    {"d day days", GIVEN_DAY, 0, 0, 1, 0},
    {"w week weeks", GIVEN_WEEK, 0, 0, 7, 0},
    {"mon mons month months", GIVEN_MONTH, 0, 1, 0, 0},
    {"y yr yrs year years", GIVEN_YEAR, 1, 0, 0, 0},
    {"dec decs decade decades", GIVEN_DECADE, 10, 0, 0, 0},
    {"c cent century centuries", GIVEN_CENTURY, 100, 0, 0, 0},
    {"mil mils millennium millennia", GIVEN_MILLENNIUM, 1000, 0, 0, 0},
};

static const struct unit *unit_of(i32 given) {
    for (i64 i = 0; i < COUNT_OF(units); i++) {
        if (units[i].given == given) {
            return &units[i];
        }
    }
    return NULL;
}

static const struct unit *find_unit(struct sv word) {
    enum { LETTERS_MAX = 10 };
    word.len = MIN_OF(word.len, LETTERS_MAX);
    for (i64 i = 0; i < COUNT_OF(units); i++) {
        if (sv_in_words(word, units[i].names)) {
            return &units[i];
        }
    }
    return NULL;
}

static bool is_letter(u8 c) {
    return (u8)((c | 32) - 'a') < 26;
}

/* Sums */

struct interval_sum {
    i64 years, months, days, us;
    u8 fault;
};

static void add_to(struct interval_sum *s, i64 *to, i64 count, i64 scale, bool narrow) {
    i64 more = 0;
    bool over =
        __builtin_mul_overflow(count, scale, &more) || __builtin_add_overflow(*to, more, to);
    over = over || (narrow && (*to > I32_MAX || *to < I32_MIN || more > I32_MAX || more < I32_MIN));
    s->fault = over ? FAULT_INTERVAL_FIELD : s->fault;
}

/* A fraction of `scale` microseconds, rounded; a half is cut off. */
static void add_fraction(struct interval_sum *s, f64 fraction, i64 scale) {
    f64 us = fraction * (f64)scale;
    i64 whole = (i64)us;
    f64 rest = us - (f64)whole;
    add_to(s, &s->us, whole + (rest > 0.5) - (rest < -0.5), 1, false);
}

static void add_fraction_days(struct interval_sum *s, f64 fraction, i64 scale) {
    f64 days = fraction * (f64)scale;
    i64 whole = (i64)days;
    add_to(s, &s->days, whole, 1, true);
    add_fraction(s, days - (f64)whole, DAY_US);
}

/* To the nearest, of two the even one. */
static i64 nearest(f64 x) {
    i64 whole = (i64)x;
    f64 rest = x - (f64)whole;
    bool odd = whole & 1;
    return whole + (rest > 0.5 || (rest == 0.5 && odd)) - (rest < -0.5 || (rest == -0.5 && odd));
}

static void add_unit(struct interval_sum *s, i64 count, f64 fraction, const struct unit *unit) {
    if (unit->us) {
        add_to(s, &s->us, count, unit->us, false);
        add_fraction(s, fraction, unit->us);
    } else if (unit->days) {
        add_to(s, &s->days, count, unit->days, true);
        add_fraction_days(s, fraction, unit->days);
    } else if (unit->months) {
        add_to(s, &s->months, count, 1, true);
        add_fraction_days(s, fraction, 30);
    } else { /* a year's fraction is rounded to whole months */
        add_to(s, &s->years, count, unit->years, true);
        add_to(s, &s->months, nearest(fraction * (f64)unit->years * 12), 1, true);
    }
}

/* Words */

enum word_kind { WORD_NUMBER, WORD_SIGNED, WORD_TIME, WORD_NAME };

enum { WORDS_MAX = 25 };

struct words {
    i32 count;
    struct {
        enum word_kind kind;
        struct sv text; /* without the sign */
        bool negative;
    } items[WORDS_MAX];
};

static const char *skip(const char *p, const char *end, bool (*wanted)(u8 c)) {
    while (p < end && wanted((u8)*p)) {
        p++;
    }
    return p;
}

static bool in_digits(u8 c) {
    return is_digit(c);
}

static bool in_time(u8 c) {
    return is_digit(c) || c == ':' || c == '.';
}

static bool in_signed(u8 c) {
    return in_time(c) || c == '-';
}

static bool in_mixed(u8 c) {
    return in_signed(c) || is_letter(c) || c == '+' || c == '/' || c == '_';
}

/* From a digit on: a time of day, 1-2, 1.5 or 12. */
static const char *number_end(const char *p, const char *end, enum word_kind *out) {
    p = skip(p, end, in_digits);
    *out = p < end && *p == ':' ? WORD_TIME : WORD_NUMBER;
    if (*out == WORD_TIME) {
        return skip(p, end, in_time);
    }
    if (p < end && (*p == '-' || *p == '/' || *p == '.')) {
        p = skip(p + 1, end, in_digits);
        return p < end && (is_letter((u8)*p) || *p == '-' || *p == '/' || *p == '.')
                   ? skip(p, end, in_mixed)
                   : p;
    }
    return p;
}

static bool cut_words(struct sv s, struct words *w) {
    const char *p = s.ptr, *end = s.ptr + s.len;
    while (p < end) {
        u8 c = (u8)*p;
        if (is_space(c)) {
            p++;
            continue;
        }
        bool sign = c == '+' || c == '-';
        const char *first = p;
        enum word_kind kind = WORD_NAME;
        if (sign) {
            p = skip(p + 1, end, is_space);
            first = p;
            if (p == end || !(is_digit((u8)*p) || is_letter((u8)*p))) {
                return false;
            }
            kind = is_digit((u8)*p) ? WORD_SIGNED : WORD_NAME;
            p = skip(p, end, kind == WORD_SIGNED ? in_signed : is_letter);
        } else if (is_digit(c)) {
            p = number_end(p, end, &kind);
        } else if (c == '.') {
            kind = WORD_NUMBER;
            p = skip(p + 1, end, in_digits);
        } else if (is_letter(c)) {
            p = skip(p, end, is_letter);
            bool mixed = p < end && (in_mixed((u8)*p) && *p != ':' && *p != '_');
            p = mixed ? skip(p, end, in_mixed) : p;
        } else if (c > ' ' && c < 127) { /* other punctuation stands between words */
            p++;
            continue;
        } else {
            return false;
        }
        if (w->count == WORDS_MAX || (sign && kind == WORD_NAME)) {
            return false;
        }
        w->items[w->count].kind = kind;
        w->items[w->count].text = (struct sv){first, p - first};
        w->items[w->count++].negative = sign && c == '-';
    }
    return true;
}

/* Numbers */

/* A whole number at the beginning of *s, or what is that far below zero; FAULT_INTERVAL_FIELD when it is too large. */
static u8 read_whole(struct sv *s, bool negative, i64 *out) {
    i64 value = 0;
    bool over = false;
    for (; s->len > 0 && is_digit((u8)s->ptr[0]); s->ptr++, s->len--) {
        over = over || __builtin_mul_overflow(value, 10, &value) ||
               __builtin_add_overflow(value, negative ? '0' - s->ptr[0] : s->ptr[0] - '0', &value);
    }
    *out = value;
    return over ? FAULT_INTERVAL_FIELD : FAULT_NONE;
}

/* .5 as a double; a point alone is nothing. */
static u8 read_fraction(struct sv s, f64 *out) {
    *out = 0;
    for (i64 i = 1; i < s.len; i++) {
        if (!is_digit((u8)s.ptr[i])) {
            return FAULT_TEXT_INTERVAL;
        }
    }
    return s.len > 1 && value_parse_f64(s, out) ? FAULT_TEXT_INTERVAL : FAULT_NONE;
}

enum { BIT_MONTH = 1 << 1, BIT_YEAR = 1 << 2, BIT_DAY = 1 << 3 };
enum { BIT_HOUR = 1 << 10, BIT_MINUTE = 1 << 11, BIT_SECOND = 1 << 12 };

/* The unit of a last number that has none. */
static const struct unit *implied_unit(i32 fields) {
    i32 given = fields & BIT_SECOND   ? GIVEN_SECOND
                : fields & BIT_MINUTE ? GIVEN_MINUTE
                : fields & BIT_HOUR   ? GIVEN_HOUR
                : fields & BIT_DAY    ? GIVEN_DAY
                : fields & BIT_MONTH  ? GIVEN_MONTH
                : fields & BIT_YEAR   ? GIVEN_YEAR
                                      : GIVEN_SECOND;
    return unit_of(given);
}

/* hh:mm[:ss[.fraction]]; mm:ss.f, and mm:ss when only minutes and seconds are meant. */
static u8 read_clock(struct sv s, i32 fields, bool negative, struct interval_sum *sum) {
    i64 parts[3] = {0, 0, 0};
    f64 fraction = 0;
    i32 count = 0;
    u8 fault = FAULT_NONE;
    for (bool more = true; more && count < 3; count++) {
        u8 over = read_whole(&s, false, &parts[count]);
        fault = fault ? fault : over;
        more = s.len > 0 && s.ptr[0] == ':' && count < 2;
        s = more ? (struct sv){s.ptr + 1, s.len - 1} : s;
    }
    bool point = s.len > 0 && s.ptr[0] == '.';
    u8 bad = point ? read_fraction(s, &fraction) : s.len > 0 ? FAULT_TEXT_INTERVAL : FAULT_NONE;
    if (bad || fault) {
        return bad ? bad : fault;
    }
    if (count == 2 && (point || fields == (BIT_MINUTE | BIT_SECOND))) {
        parts[2] = parts[1];
        parts[1] = parts[0];
        parts[0] = 0;
    }
    if (parts[1] > 59 || parts[2] > 60) {
        return FAULT_INTERVAL_FIELD;
    }
    struct interval_sum time = {0};
    add_to(&time, &time.us, parts[0], HOUR_US, false);
    i64 rest = parts[1] * MINUTE_US + parts[2] * SECOND_US + nearest(fraction * 1e6);
    add_to(&time, &time.us, rest, 1, false);
    add_to(&time, &sum->us, time.us, negative ? -1 : 1, false);
    return time.fault;
}

/* 12, 1.5 or 1-2; tells which fields it gives, and leaves in *unit what a number before it has. */
static u8 read_number(struct sv s, bool negative, const struct unit **unit,
                      struct interval_sum *sum, i32 *out_given) {
    i64 count = 0, months = 0;
    f64 fraction = 0;
    u8 fault = read_whole(&s, negative, &count);
    if (fault) {
        return fault;
    }
    if (s.len > 0 && s.ptr[0] == '-') { /* years-months */
        s = (struct sv){s.ptr + 1, s.len - 1};
        if (read_whole(&s, false, &months) || months >= 12) {
            return FAULT_INTERVAL_FIELD;
        }
        *unit = unit_of(GIVEN_MONTH);
        add_to(sum, &sum->months, negative ? -months : months, 1, true);
        add_to(sum, &sum->months, count, 12, true);
        *out_given = GIVEN_MONTH;
        return s.len > 0 ? FAULT_TEXT_INTERVAL : FAULT_NONE;
    }
    if (s.len > 0) {
        fault = s.ptr[0] == '.' ? read_fraction(s, &fraction) : FAULT_TEXT_INTERVAL;
    }
    if (fault || !*unit) {
        return FAULT_TEXT_INTERVAL;
    }
    add_unit(sum, count, negative ? -fraction : fraction, *unit);
    *out_given = (*unit)->given;
    *out_given = *out_given == GIVEN_SECOND && fraction != 0 ? GIVEN_SECONDS : *out_given;
    *unit = *out_given == GIVEN_HOUR ? unit_of(GIVEN_DAY) : *unit;
    return FAULT_NONE;
}

static u8 read_words(const struct words *w, i32 fields, struct interval_sum *sum) {
    const struct unit *unit = implied_unit(fields);
    i32 given = 0;
    bool ago = false;
    for (i32 i = w->count; i-- > 0;) {
        struct sv text = w->items[i].text;
        bool negative = w->items[i].negative;
        i32 now = 0;
        u8 fault = FAULT_NONE;
        bool colon = memchr(text.ptr, ':', (size_t)text.len) != NULL;
        if (w->items[i].kind == WORD_NAME) {
            ago = ago || sv_eq_nocase(text, SV("ago"));
            unit = find_unit(text);
            fault = unit || sv_eq_nocase(text, SV("ago")) ? FAULT_NONE : FAULT_TEXT_INTERVAL;
        } else if (colon) {
            fault = read_clock(text, fields, negative, sum);
            now = GIVEN_TIME;
            unit = unit_of(GIVEN_DAY);
        } else {
            fault = read_number(text, negative, &unit, sum, &now);
        }
        fault = fault ? fault : sum->fault;
        if (fault || (given & now)) {
            return fault ? fault : FAULT_TEXT_INTERVAL;
        }
        given |= now;
    }
    if (ago && sum->us == I64_MIN) {
        return FAULT_INTERVAL_FIELD;
    }
    if (ago) {
        *sum = (struct interval_sum){-sum->years, -sum->months, -sum->days, -sum->us, sum->fault};
    }
    return given ? sum->fault : FAULT_TEXT_INTERVAL;
}

/* ISO 8601 */

struct iso {
    const char *p, *end;
    i64 count;
    f64 fraction;
    i32 width; /* digits before the point */
};

static u8 iso_number(struct iso *t) {
    const char *first = t->p;
    f64 value = 0;
    bool minus = t->p < t->end && *t->p == '-';
    t->p += minus;
    const char *digits = t->p;
    t->p = skip(t->p, t->end, in_digits);
    t->width = (i32)MIN_OF(t->p - digits, 100);
    if (t->p < t->end && *t->p == '.') {
        t->p = skip(t->p + 1, t->end, in_digits);
    }
    if (t->p - digits < 1 || value_parse_f64((struct sv){first, t->p - first}, &value)) {
        return FAULT_TEXT_INTERVAL;
    }
    if (value < -1e15 || value > 1e15) {
        return FAULT_INTERVAL_FIELD;
    }
    t->count = (i64)value;
    t->fraction = value - (f64)t->count;
    return FAULT_NONE;
}

/* Years-months-days or hours:minutes:seconds, of which the first is read, to the end or a T. */
static u8 iso_alternative(struct iso *t, struct interval_sum *sum, bool time) {
    static const i32 fields[2][3] = {{GIVEN_YEAR, GIVEN_MONTH, GIVEN_DAY},
                                     {GIVEN_HOUR, GIVEN_MINUTE, GIVEN_SECOND}};
    for (i32 i = 0;; i++) {
        add_unit(sum, t->count, t->fraction, unit_of(fields[time][i]));
        if (t->p == t->end || (!time && *t->p == 'T')) {
            return FAULT_NONE;
        }
        if (i == 2 || *t->p++ != (time ? ':' : '-')) {
            return FAULT_TEXT_INTERVAL;
        }
        u8 fault = iso_number(t);
        if (fault) {
            return fault;
        }
    }
}

/* YYYYMMDD or hhmmss, and a fraction of the last. */
static void iso_basic(const struct iso *t, struct interval_sum *sum, bool time) {
    i64 n = t->count;
    add_unit(sum, n / 10000, 0, unit_of(time ? GIVEN_HOUR : GIVEN_YEAR));
    add_unit(sum, n / 100 % 100, 0, unit_of(time ? GIVEN_MINUTE : GIVEN_MONTH));
    add_unit(sum, n % 100, t->fraction, unit_of(time ? GIVEN_SECOND : GIVEN_DAY));
}

static const struct unit *iso_unit(char c, bool time) {
    static const char dates[] = "YMWD", times[] = "HMS";
    static const i32 date_fields[] = {GIVEN_YEAR, GIVEN_MONTH, GIVEN_WEEK, GIVEN_DAY};
    static const i32 time_fields[] = {GIVEN_HOUR, GIVEN_MINUTE, GIVEN_SECOND};
    const char *hit = c ? strchr(time ? times : dates, c) : NULL;
    return !hit ? NULL : unit_of(time ? time_fields[hit - times] : date_fields[hit - dates]);
}

static u8 read_iso(struct sv s, struct interval_sum *sum) {
    struct iso t = {.p = s.ptr + 1, .end = s.ptr + s.len};
    bool time = false, some = false;
    if (s.len < 2 || s.ptr[0] != 'P') {
        return FAULT_TEXT_INTERVAL;
    }
    while (t.p < t.end) {
        if (*t.p == 'T') {
            time = true;
            some = false;
            t.p++;
            continue;
        }
        u8 fault = iso_number(&t);
        if (fault) {
            return fault;
        }
        bool last = t.p == t.end || (!time && *t.p == 'T');
        const struct unit *unit = last ? NULL : iso_unit(*t.p, time);
        if (unit) {
            add_unit(sum, t.count, t.fraction, unit);
            t.p++;
        } else if (some) {
            return FAULT_TEXT_INTERVAL;
        } else if (last && t.width == (time ? 6 : 8)) {
            iso_basic(&t, sum, time);
        } else {
            fault = iso_alternative(&t, sum, time);
        }
        if (fault || sum->fault) {
            return fault ? fault : sum->fault;
        }
        some = true;
    }
    return FAULT_NONE;
}

/* What the fields of the type leave out is cut off. */
static void keep_fields(i32 fields, i64 *months, i64 *days, i64 *us) {
    if (fields == 0 || (fields & BIT_SECOND)) {
        return;
    }
    if (fields & BIT_MINUTE) {
        *us = *us / MINUTE_US * MINUTE_US;
    } else if (fields & BIT_HOUR) {
        *us = *us / HOUR_US * HOUR_US;
    } else {
        *us = 0;
        *days = fields & BIT_DAY ? *days : 0;
        *months = fields == BIT_YEAR ? *months / 12 * 12 : *months;
    }
}

u8 value_parse_interval(struct sv s, i32 fields, i128 *out) {
    struct words words = {.count = 0};
    struct interval_sum sum = {0};
    if (fields == 0 && fn_plain_interval(str_from(s), out)) {
        return FAULT_NONE;
    }
    u8 fault = cut_words(s, &words) ? read_words(&words, fields, &sum) : FAULT_TEXT_INTERVAL;
    if (fault == FAULT_TEXT_INTERVAL) {
        sum = (struct interval_sum){0};
        fault = read_iso(s, &sum);
    }
    if (fault) {
        return fault;
    }
    i64 months = sum.years * 12 + sum.months;
    keep_fields(fields, &months, &sum.days, &sum.us);
    i128 value = fn_iv(months, sum.days, sum.us, &fault);
    *out = fault ? *out : value;
    return fault;
}

i128 value_interval_order(i128 value) {
    return fn_iv_order(value);
}
