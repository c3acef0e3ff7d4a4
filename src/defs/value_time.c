/* value_time.c: dates, times and timestamps to text and back.
 *
 * YYYY-MM-DD and YYYY-MM-DD HH:MM:SS, which is what files hold, are read at fixed places.
 * Everything else PostgreSQL users write goes through a small tokeniser: up to three numbers and a
 * month's name, BC, the name of a weekday, a time of day, a zone. What a type has no use for (the
 * time of a date, the zone of a timestamp) is read and dropped. Fields that do not exist are a
 * range error, anything unreadable a syntax error. Zones are offsets: names that stand for a rule
 * are refused by a fault of their own. */
#include "defs/value.h"
#include "base/zone.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "defs/value_scan.h"
#include "defs/zone_word.def"

enum { NO_SPECIAL, SPECIAL_INF, SPECIAL_NEG_INF, SPECIAL_EPOCH };

struct datetime {
    const u8 *p, *end;
    i32 number_count;
    i32 numbers[3];
    i32 digits[3];
    i32 month;       /* by name; 0 = none */
    i32 month_after; /* numbers read before it */
    bool bc, has_time, has_zone, separated, time_mark;
    i32 half; /* 1 = AM, 2 = PM */
    i64 us;   /* of the day */
    i32 zone; /* seconds east */
    i32 date;
    u8 special;
    u8 fault; /* why reading stopped; 0 = not readable at all */
};

/* Words for the time in a zone: offsets, and names whose offset depends on the year. */
#define X(word, seconds) {word, NULL, seconds},
#define Y(word, zone) {word, zone, 0},
static const struct {
    const char *word, *zone;
    i32 seconds;
} zone_words[] = {WF_ZONE_WORDS(X) WF_ZONE_HISTORIES(Y)};
#undef X
#undef Y

static bool find_zone(struct sv name, i32 *out) {
    for (i64 i = 0; i < COUNT_OF(zone_words); i++) {
        if (sv_eq_nocase(name, sv_from(zone_words[i].word))) {
            *out = zone_words[i].seconds;
            return !zone_words[i].zone || zone_find_word(name, sv_from(zone_words[i].zone), out);
        }
    }
    return false;
}

static bool is_letter(u8 c) {
    return (u8)((c | 32) - 'a') < 26;
}

static bool date_complete(const struct datetime *t) {
    bool alone = t->number_count == 1 && !t->month && t->digits[0] >= 6;
    return alone || t->number_count + (t->month != 0) == 3;
}

static bool begins(struct sv word, const char *full) {
    return word.len >= 3 && word.len <= (i64)strlen(full) &&
           sv_eq_nocase(word, (struct sv){full, word.len});
}

static bool read_month(struct datetime *t, struct sv word) {
    static const char *const months[12] = {"january",   "february", "march",    "april",
                                           "may",       "june",     "july",     "august",
                                           "september", "october",  "november", "december"};
    for (i32 m = 0; m < 12 && !t->month; m++) {
        bool whole = sv_eq_nocase(word, sv_from(months[m]));
        if (whole || (word.len == 3 && begins(word, months[m])) ||
            (m == 8 && sv_eq_nocase(word, SV("sept")))) {
            t->month = m + 1;
            t->month_after = t->number_count;
            return true;
        }
    }
    return false;
}

static bool is_weekday(struct sv word) {
    static const char *const days[7] = {"monday", "tuesday",  "wednesday", "thursday",
                                        "friday", "saturday", "sunday"};
    for (i32 d = 0; d < 7; d++) {
        if (begins(word, days[d])) {
            return true;
        }
    }
    return false;
}

static bool in_zone_name(u8 c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '/' || c == '_' || c == ':';
}

/* A month, BC, AM, a zone, the T before a time. */
static bool read_word(struct datetime *t) {
    const u8 *first = t->p;
    while (t->p < t->end &&
           (is_letter(*t->p) || (t->p > first && (*t->p == '/' || *t->p == '_')))) {
        t->p++;
    }
    struct sv word = {(const char *)first, t->p - first};
    i32 number_count = t->number_count + (t->month != 0);
    if (word.len == 1 && (*first | 32) == 't' && date_complete(t) && !t->has_time) {
        t->time_mark = true;
        return t->p < t->end && is_digit(*t->p);
    }
    if (sv_eq_nocase(word, SV("bc")) || sv_eq_nocase(word, SV("ad"))) {
        t->bc = (*first | 32) == 'b';
        return number_count > 0;
    }
    if (sv_eq_nocase(word, SV("am")) || sv_eq_nocase(word, SV("pm"))) {
        t->half = (*first | 32) == 'a' ? 1 : 2;
        return t->has_time;
    }
    if (read_month(t, word) || is_weekday(word)) {
        return true;
    }
    if (t->has_zone || !(t->has_time || date_complete(t))) {
        return false;
    }
    t->has_zone = true;
    const u8 *letters = t->p;
    while (t->p < t->end && in_zone_name(*t->p)) { /* PST8PDT, Etc/GMT+5 */
        t->p++;
    }
    word.len = t->p - first;
    if (t->p > letters || !find_zone(word, &t->zone)) {
        bool name = t->p > letters || memchr(word.ptr, '/', (size_t)word.len) != NULL;
        if (name && zone_find(word, &t->zone)) {
            return true;
        }
        t->fault = name ? FAULT_ZONE : FAULT_NONE;
        return false;
    }
    return true;
}

static i32 read_digits(struct datetime *t, i32 most, i32 *out) {
    i32 count = 0;
    *out = 0;
    for (; t->p < t->end && is_digit(*t->p) && count < most; t->p++, count++) {
        *out = *out * 10 + (*t->p - '0');
    }
    return count;
}

/* Digits after the point as microseconds. More than six are rounded as the double they are, of two
 * neighbours to the even one, as in PostgreSQL. */
static i32 read_fraction(struct datetime *t) {
    i32 us = 0;
    i32 count = 0;
    const u8 *first = t->p;
    for (; t->p < t->end && is_digit(*t->p); t->p++, count++) {
        us = count < 6 ? us * 10 + (*t->p - '0') : us;
    }
    if (count > 6) {
        f64 fraction = 0;
        (void)value_parse_f64((struct sv){(const char *)first - 1, t->p - first + 1}, &fraction);
        f64 rest = fraction * 1e6 - us;
        us += rest > 0.5 || (rest == 0.5 && (us & 1));
    }
    for (; count < 6; count++) {
        us *= 10;
    }
    return us;
}

static bool set_time(struct datetime *t, i32 hour, i32 minute, i32 second, i32 us) {
    if (minute > 59 || second > 60 || hour > 24) {
        t->fault = FAULT_FIELD_RANGE;
        return false;
    }
    t->us = hour * HOUR_US + minute * MINUTE_US + second * SECOND_US + us;
    t->has_time = true;
    return true;
}

/* hh:mm[:ss[.fraction]], from the minutes on. */
static bool read_time(struct datetime *t, i32 hour) {
    i32 minute, second = 0, us = 0;
    t->p++;
    if (t->has_time || !read_digits(t, 2, &minute)) {
        return false;
    }
    if (t->p < t->end && *t->p == ':') {
        t->p++;
        if (!read_digits(t, 2, &second)) {
            return false;
        }
        if (t->p < t->end && (*t->p == '.' || *t->p == ',')) {
            t->p++;
            us = read_fraction(t);
        }
    }
    return set_time(t, hour, minute, second, us);
}

static bool read_number(struct datetime *t) {
    i32 value;
    i32 digits = read_digits(t, 9, &value);
    if (t->p < t->end && is_digit(*t->p)) {
        return false;
    }
    if (t->p < t->end && *t->p == ':' && digits <= 2) {
        return read_time(t, value);
    }
    bool after_day = t->number_count == 1 && date_complete(t) && !t->separated;
    if ((t->time_mark || after_day) && !t->has_time) { /* hhmm, hhmmss */
        i32 us = 0;
        value = digits == 4 ? value * 100 : digits == 2 ? value * 10000 : value;
        if (digits == 6 && t->p < t->end && *t->p == '.') {
            t->p++;
            us = read_fraction(t);
        }
        return (digits == 6 || digits == 4 || digits == 2) &&
               set_time(t, value / 10000, value / 100 % 100, value % 100, us);
    }
    if (t->number_count == 3 || t->has_time) {
        return t->number_count < 3 && t->has_time ? (t->numbers[t->number_count] = value,
                                                     t->digits[t->number_count++] = digits, true)
                                                  : false;
    }
    t->numbers[t->number_count] = value;
    t->digits[t->number_count++] = digits;
    return true;
}

/* +hh, +hhmm, +hh:mm, +hh:mm:ss */
static bool read_offset(struct datetime *t) {
    bool minus = *t->p++ == '-';
    i32 hours, minutes = 0, seconds = 0;
    i32 digits = read_digits(t, 4, &hours);
    if (!digits || t->has_zone) {
        return false;
    }
    if (digits > 2) {
        minutes = hours % 100;
        hours /= 100;
    } else if (t->p < t->end && *t->p == ':') {
        t->p++;
        if (!read_digits(t, 2, &minutes)) {
            return false;
        }
        if (t->p < t->end && *t->p == ':') {
            t->p++;
            if (!read_digits(t, 2, &seconds)) {
                return false;
            }
        }
    }
    if (hours > 15 || minutes > 59 || seconds > 59) {
        t->fault = FAULT_FIELD_RANGE;
        return false;
    }
    t->has_zone = true;
    t->zone = (hours * 3600 + minutes * 60 + seconds) * (minus ? -1 : 1);
    return true;
}

static bool read_tokens(struct datetime *t) {
    const u8 *start = t->p;
    while (t->p < t->end) {
        u8 c = *t->p;
        bool separator = c == '-' || c == '/' || c == '.' || c == ',';
        i32 parts = t->number_count + (t->month != 0);
        bool some_date = parts > 0 && parts < 3;
        if (is_space(c)) {
            t->p++;
            continue;
        }
        bool spaced = t->p > start && is_space(t->p[-1]);
        bool zone = t->has_time || (date_complete(t) && (c == '+' || spaced));
        if ((c == '+' || c == '-') && zone) {
            if (!read_offset(t)) {
                return false;
            }
        } else if (separator && (some_date || c == ',') && !t->separated) {
            t->separated = true;
            t->p++;
            continue;
        } else if (!(is_digit(c) ? read_number(t) : is_letter(c) && read_word(t))) {
            return false;
        }
        t->separated = false;
    }
    return !t->separated;
}

/* Which number is what. False when the tokens make no date. */
static bool assign(const struct datetime *t, i32 *year, i32 *month, i32 *day, i32 *year_digits) {
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
        *month = t->month;
        *year = n[!year_first];
        *day = n[year_first];
        *year_digits = t->digits[!year_first];
        return t->month_after < 2 || !year_first;
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

static u8 set_date(i32 year, i32 month, i32 day, i32 *out) {
    if (year < -4713 || year > 5874897 || month < 1 || month > 12 || day < 1 ||
        day > fn_month_days(year, month)) {
        return FAULT_DATE_RANGE;
    }
    *out = fn_days(year, month, day);
    return *out < DATE_MIN ? FAULT_DATE_RANGE : FAULT_NONE;
}

static u8 find_date(struct datetime *t) {
    i32 year, month, day, year_digits;
    if (!assign(t, &year, &month, &day, &year_digits)) {
        return FAULT_TEXT_DATE;
    }
    if (t->bc || year_digits > 2) {
        if (year < 1) {
            return FAULT_DATE_RANGE;
        }
        year = t->bc ? 1 - year : year;
    } else {
        year += year < 70 ? 2000 : 1900;
    }
    return set_date(year, month, day, &t->date);
}

static u8 apply_half(struct datetime *t) {
    if (t->half) {
        if (t->us >= 13 * HOUR_US || t->us < HOUR_US) {
            return FAULT_FIELD_RANGE;
        }
        t->us = t->us % (12 * HOUR_US) + (t->half == 2 ? 12 * HOUR_US : 0);
    }
    return t->us > DAY_US ? FAULT_FIELD_RANGE : FAULT_NONE;
}

static u8 special_of(struct sv s) {
    static const struct {
        struct sv word;
        u8 special;
    } words[] = {{{"infinity", 8}, SPECIAL_INF},
                 {{"-infinity", 9}, SPECIAL_NEG_INF},
                 {{"+infinity", 9}, SPECIAL_INF},
                 {{"epoch", 5}, SPECIAL_EPOCH}};
    for (i64 i = 0; i < COUNT_OF(words); i++) {
        if (sv_eq_nocase(s, words[i].word)) {
            return words[i].special;
        }
    }
    return NO_SPECIAL;
}

/* A date with or without time and zone. */
static u8 scan_datetime(struct sv s, struct datetime *t) {
    s = value_trim(s);
    *t = (struct datetime){.p = (const u8 *)s.ptr, .end = (const u8 *)s.ptr + s.len};
    t->special = special_of(s);
    if (t->special) {
        return FAULT_NONE;
    }
    if (!read_tokens(t)) {
        return t->fault ? t->fault : FAULT_TEXT_DATE;
    }
    u8 fault = find_date(t);
    return fault ? fault : apply_half(t);
}

u8 value_parse_date(struct sv s, i32 *out) {
    struct datetime t;
    if (s.len == 10 && s.ptr[4] == '-' && s.ptr[7] == '-') {
        u32 d[10];
        for (i32 i = 0; i < 10; i++) {
            d[i] = (u32)(u8)s.ptr[i] - '0';
        }
        bool digits = (d[0] < 10) & (d[1] < 10) & (d[2] < 10) & (d[3] < 10) & (d[5] < 10) &
                      (d[6] < 10) & (d[8] < 10) & (d[9] < 10);
        i32 year = (i32)(d[0] * 1000 + d[1] * 100 + d[2] * 10 + d[3]);
        if (digits && year) {
            return set_date(year, (i32)(d[5] * 10 + d[6]), (i32)(d[8] * 10 + d[9]), out);
        }
    }
    u8 fault = scan_datetime(s, &t);
    if (!fault) {
        static const i32 specials[] = {0, DATE_INF, DATE_NEG_INF, 0};
        *out = t.special ? specials[t.special] : t.date;
    }
    return fault;
}

/* Microseconds of an ISO timestamp without zone, at fixed places; false when it is none. */
static bool parse_iso(struct sv s, i64 *out) {
    static const char form[] = "0000-00-00 00:00:00";
    if (s.len != 19) {
        return false;
    }
    for (i32 i = 0; i < 19; i++) {
        bool fits = form[i] == '0'   ? is_digit((u8)s.ptr[i])
                    : form[i] == ' ' ? s.ptr[i] == ' ' || s.ptr[i] == 'T'
                                     : s.ptr[i] == form[i];
        if (!fits) {
            return false;
        }
    }
#define TWO(at) ((s.ptr[at] - '0') * 10 + (s.ptr[(at) + 1] - '0'))
    i32 date;
    i32 hour = TWO(11), minute = TWO(14), second = TWO(17), year = TWO(0) * 100 + TWO(2);
    if (year == 0 || set_date(year, TWO(5), TWO(8), &date) || hour > 23 || minute > 59 ||
        second > 59) {
        return false;
    }
#undef TWO
    *out = date * DAY_US + hour * HOUR_US + minute * MINUTE_US + second * SECOND_US;
    return true;
}

static u8 parse_timestamp(struct sv s, bool zoned, i32 zone, i64 *out) {
    static const i64 specials[] = {0, TS_INF, TS_NEG_INF, 0};
    struct datetime t;
    if (parse_iso(s, out)) {
        *out -= zoned ? zone_offset_local(zone, fn_floor_div(*out, SECOND_US)) * SECOND_US : 0;
        return FAULT_NONE;
    }
    u8 fault = scan_datetime(s, &t);
    if (fault) {
        return fault == FAULT_TEXT_DATE    ? FAULT_TEXT_TIMESTAMP
               : fault == FAULT_DATE_RANGE ? FAULT_FIELD_RANGE
                                           : fault;
    }
    if (t.special) {
        *out = specials[t.special];
        return FAULT_NONE;
    }
    i64 second = t.date * (DAY_US / SECOND_US) + t.us / SECOND_US;
    i64 shift = zoned ? zone_offset_local(t.has_zone ? t.zone : zone, second) : 0;
    *out = fn_ts_check((i128)t.date * DAY_US + t.us - shift * SECOND_US, &fault);
    return fault;
}

u8 value_parse_timestamp(struct sv s, i64 *out) {
    return parse_timestamp(s, false, 0, out);
}

u8 value_parse_timestamptz(struct sv s, i32 zone, i64 *out) {
    return parse_timestamp(s, true, zone, out);
}

u8 value_parse_time(struct sv s, i64 *out) {
    s = value_trim(s);
    struct datetime t = {.p = (const u8 *)s.ptr, .end = (const u8 *)s.ptr + s.len};
    i64 digits = 0;
    while (digits < s.len && is_digit((u8)s.ptr[digits])) {
        digits++;
    }
    u8 next = digits < s.len ? (u8)s.ptr[digits] : '+';
    t.time_mark = (digits == 6 || digits == 4) && (next == '+' || next == '-' || next == ' ') &&
                  !(next == '-' && digits == 4);
    if (!read_tokens(&t) || !t.has_time || t.separated) {
        return t.fault ? t.fault : FAULT_TEXT_TIME;
    }
    u8 fault = t.number_count || t.month ? find_date(&t) : FAULT_NONE;
    fault = fault ? fault : apply_half(&t);
    *out = t.us;
    return fault == FAULT_TEXT_DATE ? FAULT_TEXT_TIME : fault;
}

u8 value_parse_zone(struct sv s, i32 *out) {
    return find_zone(s, out) || zone_find(s, out) ? FAULT_NONE : FAULT_ZONE;
}

static i32 write_padded(i64 value, i32 width, char *out) {
    char digits[24];
    i32 count = value_format_i64(value, digits);
    i32 zeros = MAX_OF(width - count, 0);
    memset(out, '0', (size_t)zeros);
    memcpy(out + zeros, digits, (size_t)count);
    return zeros + count;
}

i32 value_format_clock(i64 us, i32 hour_width, char *out) {
    i32 n = write_padded(us / HOUR_US, hour_width, out);
    out[n++] = ':';
    n += write_padded(us / MINUTE_US % 60, 2, out + n);
    out[n++] = ':';
    n += write_padded(us / SECOND_US % 60, 2, out + n);
    if (us % SECOND_US) {
        out[n++] = '.';
        n += write_padded(us % SECOND_US, 6, out + n);
        while (out[n - 1] == '0') {
            n--;
        }
    }
    return n;
}

static i32 write_day(i32 date, char *out, bool *out_bc) {
    fn_civil c = fn_civil_of(date);
    *out_bc = c.year < 1;
    i32 n = write_padded(*out_bc ? 1 - c.year : c.year, 4, out);
    out[n++] = '-';
    n += write_padded(c.month, 2, out + n);
    out[n++] = '-';
    return n + write_padded(c.day, 2, out + n);
}

static i32 write_infinity(bool negative, char *out) {
    memcpy(out, negative ? "-infinity" : "infinity", negative ? 9 : 8);
    return negative ? 9 : 8;
}

i32 value_format_date(i32 value, char *out) {
    bool bc;
    if (fn_date_infinite(value)) {
        return write_infinity(value < 0, out);
    }
    i32 n = write_day(value, out, &bc);
    memcpy(out + n, " BC", bc ? 3 : 0);
    return n + (bc ? 3 : 0);
}

i32 value_format_time(i64 value, char *out) {
    return value_format_clock(value, 2, out);
}

static i32 write_zone(i32 zone, char *out) {
    i32 n = 0;
    i32 size = zone < 0 ? -zone : zone;
    out[n++] = zone < 0 ? '-' : '+';
    n += write_padded(size / 3600, 2, out + n);
    for (i32 rest = size % 3600, unit = 60; rest; rest %= unit, unit = 1) {
        out[n++] = ':';
        n += write_padded(rest / unit, 2, out + n);
    }
    return n;
}

static i32 write_timestamp(i64 value, const i32 *zone, char *out) {
    bool bc;
    if (fn_ts_infinite(value)) {
        return write_infinity(value < 0, out);
    }
    i32 east = zone ? zone_offset(*zone, fn_floor_div(value, SECOND_US)) : 0;
    value += east * SECOND_US;
    i64 day = fn_floor_div(value, DAY_US);
    i32 n = write_day((i32)day, out, &bc);
    out[n++] = ' ';
    n += value_format_clock(value - day * DAY_US, 2, out + n);
    n += zone ? write_zone(east, out + n) : 0;
    memcpy(out + n, " BC", bc ? 3 : 0);
    return n + (bc ? 3 : 0);
}

i32 value_format_timestamp(i64 value, char *out) {
    return write_timestamp(value, NULL, out);
}

i32 value_format_timestamptz(i64 value, i32 zone, char *out) {
    return write_timestamp(value, &zone, out);
}
