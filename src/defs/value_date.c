/* value_date.c: dates to text and back.
 *
 * YYYY-MM-DD, which is what files hold, is read at fixed places. Everything else PostgreSQL users
 * write goes through a small tokeniser: up to three numbers and a month's name, with BC and a time
 * of day that is dropped. Fields that do not exist in the calendar are a range error, anything
 * unreadable a syntax error. */
#include "defs/value.h"

#include "defs/host_words.h"
#include "defs/fn_date.h"
#include "defs/value_scan.h"

static bool is_leap(i32 year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static i32 month_days(i32 year, i32 month) {
    static const u8 days[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month] + (month == 2 && is_leap(year));
}

static u8 make_date(i32 year, i32 month, i32 day, i32 *out) {
    if (month < 1 || month > 12 || day < 1 || year < -4713 || year > 5874897 ||
        day > month_days(year, month)) {
        return FAULT_DATE_RANGE;
    }
    i32 date = fn_days(year, month, day);
    if (date < DATE_MIN) {
        return FAULT_DATE_RANGE;
    }
    *out = date;
    return FAULT_NONE;
}

struct date_text {
    const u8 *p;
    const u8 *end;
    i32 number_count;
    i32 numbers[3];
    i32 digits[3];
    i32 month;       /* by name; 0 = none */
    i32 month_after; /* numbers read before it */
    bool bc;
};

static bool is_letter(u8 c) {
    return (u8)((c | 32) - 'a') < 26;
}

/* A month's full name or first three letters, or BC or AD. */
static bool read_word(struct date_text *t) {
    static const char *const months[12] = {"january",   "february", "march",    "april",
                                           "may",       "june",     "july",     "august",
                                           "september", "october",  "november", "december"};
    const u8 *first = t->p;
    while (t->p < t->end && is_letter(*t->p)) {
        t->p++;
    }
    struct sv word = {(const char *)first, t->p - first};
    if (sv_eq_nocase(word, SV("bc")) || sv_eq_nocase(word, SV("ad"))) {
        t->bc = (*first | 32) == 'b';
        return t->number_count + (t->month != 0) == 3 && t->p == t->end;
    }
    for (i32 m = 0; m < 12 && !t->month; m++) {
        struct sv full = sv_from(months[m]);
        bool is_month = sv_eq_nocase(word, full) || sv_eq_nocase(word, (struct sv){full.ptr, 3}) ||
                        (m == 8 && sv_eq_nocase(word, SV("sept")));
        if (is_month) {
            t->month = m + 1;
            t->month_after = t->number_count;
            return true;
        }
    }
    return false;
}

static bool read_number(struct date_text *t) {
    i32 value = 0;
    i32 digits = 0;
    for (; t->p < t->end && is_digit(*t->p); t->p++) {
        if (++digits > 8) {
            return false;
        }
        value = value * 10 + (*t->p - '0');
    }
    if (t->number_count == 3) {
        return false;
    }
    t->numbers[t->number_count] = value;
    t->digits[t->number_count++] = digits;
    return true;
}

/* hh:mm[:ss[.fraction]], to the end. */
static bool is_time(const u8 *p, const u8 *end) {
    static const i32 limits[3] = {24, 59, 60};
    for (i32 part = 0; part < 3; part++) {
        i32 value = 0;
        i32 digits = 0;
        for (; p < end && is_digit(*p) && digits < 2; p++, digits++) {
            value = value * 10 + (*p - '0');
        }
        if (!digits || value > limits[part]) {
            return false;
        }
        if (p == end) {
            return part > 0;
        }
        if (*p == '.' && part == 2) {
            for (p++; p < end && is_digit(*p); p++) {
            }
            return p == end;
        }
        if (*p++ != ':') {
            return false;
        }
    }
    return false;
}

/* Between two tokens: spaces, at most one of - / . , and spaces; or nothing. */
static void skip_separator(struct date_text *t) {
    while (t->p < t->end && is_space(*t->p)) {
        t->p++;
    }
    if (t->p < t->end && (*t->p == '-' || *t->p == '/' || *t->p == '.' || *t->p == ',')) {
        t->p++;
    }
    while (t->p < t->end && is_space(*t->p)) {
        t->p++;
    }
}

static bool read_tokens(struct date_text *t) {
    while (t->p < t->end) {
        bool whole = t->number_count + (t->month != 0) == 3;
        if (whole && (*t->p | 32) == 't' && is_time(t->p + 1, t->end)) {
            return true;
        }
        if (is_digit(*t->p)) {
            if (whole && is_time(t->p, t->end)) {
                return true;
            }
            if (!read_number(t)) {
                return false;
            }
        } else if (!is_letter(*t->p) || !read_word(t)) {
            return false;
        }
        const u8 *before = t->p;
        skip_separator(t);
        if (t->p == t->end && t->p != before) {
            return false; /* a separator with nothing after it */
        }
    }
    return true;
}

/* Which number is what. False when the tokens make no date. */
static bool assign(const struct date_text *t, i32 *year, i32 *month, i32 *day, i32 *year_digits) {
    const i32 *n = t->numbers;
    if (t->number_count == 1 && !t->month && (t->digits[0] == 8 || t->digits[0] == 6)) {
        *year = n[0] / 10000; /* YYYYMMDD, YYMMDD */
        *month = n[0] / 100 % 100;
        *day = n[0] % 100;
        *year_digits = t->digits[0] - 4;
        return true;
    }
    bool year_first = t->digits[0] > 2;
    if (t->month && t->number_count == 2) {
        if (t->month_after == 2) {
            return false;
        }
        *month = t->month;
        *year = n[!year_first];
        *day = n[year_first];
        *year_digits = t->digits[!year_first];
        return true;
    }
    if (t->month || t->number_count != 3) {
        return false;
    }
    *year = n[year_first ? 0 : 2];
    *month = n[year_first ? 1 : 0];
    *day = n[year_first ? 2 : 1];
    *year_digits = t->digits[year_first ? 0 : 2];
    return true;
}

static u8 parse_date_slow(struct sv s, i32 *out) {
    s = value_trim(s);
    struct date_text t = {.p = (const u8 *)s.ptr, .end = (const u8 *)s.ptr + s.len};
    i32 year, month, day, year_digits;
    if (!read_tokens(&t) || !assign(&t, &year, &month, &day, &year_digits)) {
        return FAULT_TEXT_DATE;
    }
    if (t.bc || year_digits > 2) {
        if (year < 1) {
            return FAULT_DATE_RANGE;
        }
        year = t.bc ? 1 - year : year;
    } else {
        year += year < 70 ? 2000 : 1900;
    }
    return make_date(year, month, day, out);
}

u8 value_parse_date(struct sv s, i32 *out) {
    if (s.len != 10) {
        return parse_date_slow(s, out);
    }
    u32 d[10];
    for (i32 i = 0; i < 10; i++) {
        d[i] = (u32)(u8)s.ptr[i] - '0';
    }
    bool digits = (d[0] < 10) & (d[1] < 10) & (d[2] < 10) & (d[3] < 10) & (d[5] < 10) &
                  (d[6] < 10) & (d[8] < 10) & (d[9] < 10);
    if (!digits || s.ptr[4] != '-' || s.ptr[7] != '-') {
        return parse_date_slow(s, out);
    }
    i32 year = (i32)(d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3]);
    return year ? make_date(year, (i32)(d[5] * 10 + d[6]), (i32)(d[8] * 10 + d[9]), out)
                : FAULT_DATE_RANGE;
}

static i32 write_padded(i32 value, i32 width, char *out) {
    char digits[24];
    i32 count = value_format_i64(value, digits);
    i32 zeros = MAX_OF(width - count, 0);
    memset(out, '0', (size_t)zeros);
    memcpy(out + zeros, digits, (size_t)count);
    return zeros + count;
}

i32 value_format_date(i32 value, char *out) {
    fn_civil c = fn_civil_of(value);
    bool bc = c.year < 1;
    i32 n = write_padded(bc ? 1 - c.year : c.year, 4, out);
    out[n++] = '-';
    n += write_padded(c.month, 2, out + n);
    out[n++] = '-';
    n += write_padded(c.day, 2, out + n);
    if (bc) {
        memcpy(out + n, " BC", 3);
        n += 3;
    }
    return n;
}
