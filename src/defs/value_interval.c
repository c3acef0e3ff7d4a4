/* value_interval.c: intervals to text and back.
 *
 * Reads what PostgreSQL reads: numbers with units (1 year 2 mons -3 days 04:05:06.7 ago), the SQL
 * standard's 1-2 and 3 4:05:06, ISO 8601's P1Y2M3DT4H5M6S. A fraction of a unit moves down as
 * there: of months to days of which a month has 30, of days to the time. A number without a unit
 * counts the least field the type names, else seconds. Writes PostgreSQL's own style. */
#include "defs/value.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "defs/value_scan.h"

struct interval_text {
    const u8 *p, *end;
    i128 months_u, days_u, us; /* months and days in millionths */
    bool negate_all;
    i32 fields; /* the grammar's bits, 0 = all */
    bool any;
    u8 fault;
};

/* A unit is so many months, days, or microseconds. */
static const struct unit {
    const char *names; /* separated by spaces */
    i64 months, days, us;
} units[] = {
    {"us usec usecs usecond useconds microsecond microseconds microsecon", 0, 0, 1},
    {"ms msec msecs msecond mseconds millisecond milliseconds", 0, 0, 1000},
    {"s sec secs second seconds", 0, 0, SECOND_US},
    {"m min mins minute minutes", 0, 0, MINUTE_US},
    {"h hr hrs hour hours", 0, 0, HOUR_US},
    {"d day days", 0, 1, 0},
    {"w week weeks", 0, 7, 0},
    {"mon mons month months", 1, 0, 0},
    {"qtr quarter quarters", 3, 0, 0},
    {"y yr yrs year years", 12, 0, 0},
    {"dec decs decade decades", 120, 0, 0},
    {"c cent century centuries", 1200, 0, 0},
    {"mil mils millennium millennia", 12000, 0, 0},
};

static bool names_has(const char *names, struct sv word) {
    while (*names) {
        const char *end = strchr(names, ' ');
        i64 len = end ? end - names : (i64)strlen(names);
        if (sv_eq_nocase(word, (struct sv){names, len})) {
            return true;
        }
        names += len + (end != NULL);
    }
    return false;
}

static const struct unit *find_unit(struct sv word) {
    for (i64 i = 0; i < COUNT_OF(units); i++) {
        if (names_has(units[i].names, word)) {
            return &units[i];
        }
    }
    return NULL;
}

static bool is_letter(u8 c) {
    return (u8)((c | 32) - 'a') < 26;
}

static void skip_space(struct interval_text *t) {
    while (t->p < t->end && is_space(*t->p)) {
        t->p++;
    }
}

/* A number as millionths; false when there is no digit. */
static bool read_millionths(struct interval_text *t, i128 *out, bool *out_fraction) {
    i128 value = 0;
    i32 digits = 0;
    for (; t->p < t->end && is_digit(*t->p); t->p++, digits++) {
        value = value < (i128)1 << 80 ? value * 10 + (*t->p - '0') : value;
    }
    value *= 1000000;
    *out_fraction = false;
    if (t->p < t->end && *t->p == '.') {
        t->p++;
        *out_fraction = true;
        i128 weight = 100000;
        for (i32 place = 0; t->p < t->end && is_digit(*t->p); t->p++, place++, digits++) {
            value += place < 6 ? weight * (*t->p - '0') : place == 6 && *t->p >= '5';
            weight /= 10;
        }
    }
    *out = value;
    return digits > 0;
}

static void add_unit(struct interval_text *t, i128 millionths, const struct unit *unit) {
    t->any = true;
    if (unit->us) {
        i128 product = millionths * unit->us;
        t->us += product / 1000000 + (product % 1000000 >= 500000) - (product % 1000000 <= -500000);
    } else {
        t->months_u += millionths * unit->months;
        t->days_u += millionths * unit->days;
        if (unit->months > 1) { /* a year's fraction is rounded to whole months */
            i128 whole = t->months_u / 1000000;
            i128 rest = t->months_u % 1000000;
            whole += (rest >= 500000) - (rest <= -500000);
            t->months_u = millionths % 1000000 ? whole * 1000000 : t->months_u;
        }
    }
}

enum { BIT_MONTH = 1 << 1, BIT_YEAR = 1 << 2, BIT_DAY = 1 << 3 };
enum { BIT_HOUR = 1 << 10, BIT_MINUTE = 1 << 11, BIT_SECOND = 1 << 12 };

/* The unit of a number that has none. */
static const struct unit *implied_unit(i32 fields) {
    const char *name = fields & BIT_SECOND   ? "s"
                       : fields & BIT_MINUTE ? "m"
                       : fields & BIT_HOUR   ? "h"
                       : fields & BIT_DAY    ? "d"
                       : fields & BIT_MONTH  ? "mon"
                       : fields & BIT_YEAR   ? "y"
                                             : "s";
    return find_unit(sv_from(name));
}

/* hh:mm[:ss[.fraction]] with the hours read; mm:ss.f when only minutes and seconds are meant. */
static bool read_clock(struct interval_text *t, i128 first, bool negative) {
    i128 parts[3] = {first, 0, 0};
    i32 count = 1;
    bool fraction = false;
    while (count < 3 && t->p < t->end && *t->p == ':') {
        t->p++;
        if (!read_millionths(t, &parts[count++], &fraction)) {
            return false;
        }
    }
    bool short_form = count == 2 && (fraction || t->fields == (BIT_MINUTE | BIT_SECOND));
    if (short_form) {
        parts[2] = parts[1];
        parts[1] = parts[0];
        parts[0] = 0;
    }
    if ((count == 3 || !short_form) && parts[1] >= 60 * (i128)1000000) {
        t->fault = FAULT_INTERVAL_FIELD;
        return false;
    }
    if (parts[2] >= 61 * (i128)1000000) {
        t->fault = FAULT_INTERVAL_FIELD;
        return false;
    }
    i128 us = parts[0] * 3600 + parts[1] * 60 + parts[2];
    t->us += negative ? -us : us;
    t->any = true;
    return true;
}

/* A signed number and what follows it. */
static bool read_number(struct interval_text *t) {
    bool negative = *t->p == '-';
    bool fraction;
    i128 value;
    t->p += *t->p == '-' || *t->p == '+';
    skip_space(t);
    if (!read_millionths(t, &value, &fraction)) {
        return false;
    }
    if (t->p < t->end && *t->p == ':') {
        return read_clock(t, value, negative);
    }
    if (t->p < t->end && *t->p == '-' && !fraction) { /* years-months */
        i128 months;
        t->p++;
        if (!read_millionths(t, &months, &fraction) || fraction || months >= 12 * (i128)1000000) {
            t->fault = months >= 12 * (i128)1000000 ? FAULT_INTERVAL_FIELD : FAULT_NONE;
            return false;
        }
        t->months_u += (negative ? -1 : 1) * (value * 12 + months);
        t->any = true;
        return true;
    }
    const u8 *before = t->p;
    skip_space(t);
    const u8 *word = t->p;
    while (t->p < t->end && is_letter(*t->p)) {
        t->p++;
    }
    const struct unit *unit = find_unit((struct sv){(const char *)word, t->p - word});
    if (!unit) {
        bool number_next = word < t->end && (is_digit(*word) || *word == '-' || *word == '+');
        t->p = before;
        /* a number before a time counts days */
        const u8 *colon = number_next ? memchr(word, ':', (size_t)(t->end - word)) : NULL;
        unit = colon ? find_unit(SV("d")) : implied_unit(t->fields);
    }
    add_unit(t, negative ? -value : value, unit);
    return true;
}

/* After the P: numbers with a letter each; months and minutes are told apart by the T. */
static bool read_iso(struct interval_text *t) {
    bool time = false;
    while (t->p < t->end) {
        bool fraction;
        i128 value;
        if ((*t->p | 32) == 't') {
            time = true;
            t->p++;
            continue;
        }
        bool negative = *t->p == '-';
        t->p += *t->p == '-' || *t->p == '+';
        if (!read_millionths(t, &value, &fraction) || t->p == t->end) {
            return false;
        }
        u8 c = *t->p++ | 32;
        const char *name = time ? (c == 'h'   ? "h"
                                   : c == 'm' ? "m"
                                   : c == 's' ? "s"
                                              : NULL)
                                : (c == 'y'   ? "y"
                                   : c == 'm' ? "mon"
                                   : c == 'w' ? "w"
                                   : c == 'd' ? "d"
                                              : NULL);
        if (!name) {
            return false;
        }
        add_unit(t, negative ? -value : value, find_unit(sv_from(name)));
    }
    return t->any;
}

static bool read_verbose(struct interval_text *t) {
    for (skip_space(t); t->p < t->end; skip_space(t)) {
        if (is_letter(*t->p)) {
            const u8 *word = t->p;
            while (t->p < t->end && is_letter(*t->p)) {
                t->p++;
            }
            if (!t->any || !sv_eq_nocase((struct sv){(const char *)word, t->p - word}, SV("ago"))) {
                return false;
            }
            skip_space(t);
            t->negate_all = true;
            return t->p == t->end;
        }
        if (!(is_digit(*t->p) || *t->p == '-' || *t->p == '+' || *t->p == '.') || !read_number(t)) {
            return false;
        }
    }
    return t->any;
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
    s = value_trim(s);
    struct interval_text t = {
        .p = (const u8 *)s.ptr, .end = (const u8 *)s.ptr + s.len, .fields = fields};
    bool iso = s.len > 1 && (s.ptr[0] | 32) == 'p';
    t.p += iso || (s.len > 0 && s.ptr[0] == '@');
    if (!(iso ? read_iso(&t) : read_verbose(&t))) {
        return t.fault ? t.fault : FAULT_TEXT_INTERVAL;
    }
    i128 limit = (i128)1 << 70;
    i128 years = t.months_u / 12000000;
    i128 whole = t.days_u / 1000000;
    if (t.months_u > limit || t.months_u < -limit || t.days_u > limit || t.days_u < -limit ||
        years > I32_MAX || years < I32_MIN || whole > I32_MAX || whole < I32_MIN) {
        return FAULT_INTERVAL_FIELD;
    }
    i64 months = (i64)(t.months_u / 1000000);
    t.days_u += t.months_u % 1000000 * 30;
    i64 days = (i64)(t.days_u / 1000000);
    u8 fault = FAULT_NONE;
    i64 us = fn_us_check(t.us + t.days_u % 1000000 * (DAY_US / 1000000), &fault);
    keep_fields(fields, &months, &days, &us);
    i64 sign = t.negate_all ? -1 : 1;
    i128 value = fn_iv(sign * months, sign * days, sign * us, &fault);
    *out = fault ? *out : value;
    return fault;
}

struct parts_out {
    char *out;
    i32 n;
    bool before; /* the last part was negative */
};

static void put_part(struct parts_out *o, i64 value, const char *unit) {
    if (value == 0) {
        return;
    }
    if (o->n) {
        o->out[o->n++] = ' ';
    }
    if (o->before && value > 0) {
        o->out[o->n++] = '+';
    }
    o->n += value_format_i64(value, o->out + o->n);
    o->out[o->n++] = ' ';
    i32 len = (i32)strlen(unit);
    memcpy(o->out + o->n, unit, (size_t)len);
    o->n += len;
    if (value != 1) {
        o->out[o->n++] = 's';
    }
    o->before = value < 0;
}

i32 value_format_interval(i128 value, char *out) {
    fn_span x = fn_iv_parts(value);
    struct parts_out o = {out, 0, false};
    put_part(&o, x.months / 12, "year");
    put_part(&o, x.months % 12, "mon");
    put_part(&o, x.days, "day");
    if (x.us != 0 || o.n == 0) {
        if (o.n) {
            out[o.n++] = ' ';
        }
        if (x.us < 0 || o.before) {
            out[o.n++] = x.us < 0 ? '-' : '+';
        }
        u64 us = x.us < 0 ? 0 - (u64)x.us : (u64)x.us;
        o.n += value_format_clock((i64)MIN_OF(us, (u64)I64_MAX), 2, out + o.n);
    }
    return o.n;
}

i128 value_interval_order(i128 value) {
    return fn_iv_order(value);
}
