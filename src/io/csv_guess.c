/* csv_guess.c: what the values of a column read as.
 *
 * A type is taken only when its values print back as they were written, or nearly (1.50 and 1.5).
 * So numbers with leading zeros or a plus sign stay text, and so do dates that are not year, month,
 * day in this order, and a column of dates and times mixed. The loader asks the same question of
 * every value of a column whose type was guessed, since a parser takes more than that: a value
 * further down may not lose its zeros or its time of day in silence. */
#include "io/csv_int.h"

#include "defs/value.h"

enum { DECIMAL_DIGITS = 38 };

static struct sv trim(struct sv s) {
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Takes between `least` and `most` digits from the front. */
static bool take_digits(struct sv *io, i64 least, i64 most) {
    i64 n = 0;
    while (n < most && n < io->len && is_digit(io->ptr[n])) {
        n++;
    }
    io->ptr += n;
    io->len -= n;
    return n >= least;
}

static bool take(struct sv *io, char c) {
    if (io->len == 0 || io->ptr[0] != c) {
        return false;
    }
    io->ptr++;
    io->len--;
    return true;
}

static bool take_date(struct sv *io) {
    if (!take_digits(io, 4, 4) || io->len == 0) {
        return false;
    }
    char between = io->ptr[0];
    return (between == '-' || between == '/') && take(io, between) && take_digits(io, 1, 2) &&
           take(io, between) && take_digits(io, 1, 2);
}

/* hh:mm, hh:mm:ss, hh:mm:ss.f */
static bool take_clock(struct sv *io) {
    if (!take_digits(io, 1, 2) || !take(io, ':') || !take_digits(io, 2, 2)) {
        return false;
    }
    if (!take(io, ':')) {
        return true;
    }
    return take_digits(io, 1, 2) && (!take(io, '.') || take_digits(io, 1, 9));
}

static bool take_zone(struct sv *io) {
    if (take(io, 'Z') || take(io, 'z')) {
        return true;
    }
    return (take(io, '+') || take(io, '-')) && take_digits(io, 2, 2) &&
           (io->len == 0 || ((take(io, ':') || true) && take_digits(io, 2, 2)));
}

static u8 guess_time(struct sv s) {
    struct sv rest = s;
    struct when none = {0};
    i64 us = 0;
    i32 day = 0;
    if (take_clock(&rest) && rest.len == 0) {
        return value_parse_time(s, none, &us) ? GUESS_TEXT : GUESS_TIME;
    }
    rest = s;
    if (!take_date(&rest)) {
        return GUESS_TEXT;
    }
    if (rest.len == 0) {
        return value_parse_date(s, none, &day) ? GUESS_TEXT : GUESS_DATE;
    }
    if (!(take(&rest, ' ') || take(&rest, 'T') || take(&rest, 't')) || !take_clock(&rest)) {
        return GUESS_TEXT;
    }
    if (rest.len == 0) {
        return value_parse_timestamp(s, none, &us) ? GUESS_TEXT : GUESS_TIMESTAMP;
    }
    bool zoned = take_zone(&rest) && rest.len == 0;
    return zoned && !value_parse_timestamptz(s, none, &us) ? GUESS_TIMESTAMPTZ : GUESS_TEXT;
}

static u8 guess_number(struct sv s) {
    struct sv digits = s;
    i64 whole = 0;
    f64 real = 0;
    i64 after = s.ptr[0] == '-';
    if (s.len > after + 1 && s.ptr[after] == '0' && is_digit(s.ptr[after + 1])) {
        return GUESS_TEXT;
    }
    take(&digits, '-');
    i64 len = digits.len;
    bool is_whole = take_digits(&digits, 1, I64_MAX) && digits.len == 0;
    if (is_whole && !value_parse_int(s, &whole)) {
        return whole >= I32_MIN && whole <= I32_MAX ? GUESS_INT : GUESS_BIGINT;
    }
    if (is_whole) {
        return len <= DECIMAL_DIGITS ? GUESS_HUGE : GUESS_TEXT;
    }
    for (i64 i = 0; i < s.len; i++) { /* no hexadecimal, no words, no underscores */
        if (!is_digit(s.ptr[i]) && !strchr("+-.eE", s.ptr[i])) {
            return GUESS_TEXT;
        }
    }
    return value_parse_f64(s, &real) ? GUESS_TEXT : GUESS_DOUBLE;
}

u8 csv_guess(struct sv field) {
    static const char *const booleans[] = {"true", "false", "t", "f", "yes", "no"};
    struct sv s = trim(field);
    if (s.len == 0) {
        return field.len ? GUESS_TEXT : GUESS_NONE;
    }
    char c = s.ptr[0];
    if (is_digit(c) ||
        (s.len > 1 && (c == '-' || c == '.') && s.ptr[1] != 'i' && s.ptr[1] != 'I')) {
        u8 number = guess_number(s);
        return number == GUESS_TEXT && is_digit(c) ? guess_time(s) : number;
    }
    for (i64 i = 0; i < COUNT_OF(booleans) && field.len <= 5; i++) {
        if (sv_eq_nocase(field, sv_from(booleans[i]))) {
            return GUESS_BOOL;
        }
    }
    struct sv word = s;
    take(&word, '-');
    if (sv_eq_nocase(word, SV("infinity"))) {
        return GUESS_INFINITY;
    }
    return sv_eq_nocase(word, SV("inf")) || sv_eq_nocase(s, SV("nan")) ? GUESS_DOUBLE : GUESS_TEXT;
}

u8 csv_guess_both(u8 a, u8 b) {
    u8 low = MIN_OF(a, b), high = MAX_OF(a, b);
    if (low == GUESS_NONE || low == high) {
        return high;
    }
    if (high == GUESS_INFINITY) {
        return low >= GUESS_INT && low <= GUESS_DOUBLE         ? GUESS_DOUBLE
               : low >= GUESS_DATE && low <= GUESS_TIMESTAMPTZ ? low
                                                               : GUESS_TEXT;
    }
    return low >= GUESS_INT && high <= GUESS_DOUBLE ? high : GUESS_TEXT;
}

struct type csv_guess_type(u8 guess) {
    static const u8 types[GUESS_COUNT] = {[GUESS_NONE] = TYPE_TEXT,
                                          [GUESS_BOOL] = TYPE_BOOLEAN,
                                          [GUESS_INT] = TYPE_INTEGER,
                                          [GUESS_BIGINT] = TYPE_BIGINT,
                                          [GUESS_DOUBLE] = TYPE_DOUBLE,
                                          [GUESS_DATE] = TYPE_DATE,
                                          [GUESS_TIMESTAMP] = TYPE_TIMESTAMP,
                                          [GUESS_TIMESTAMPTZ] = TYPE_TIMESTAMPTZ,
                                          [GUESS_TIME] = TYPE_TIME,
                                          [GUESS_INFINITY] = TYPE_DOUBLE,
                                          [GUESS_TEXT] = TYPE_TEXT};
    return guess == GUESS_HUGE ? type_decimal(DECIMAL_DIGITS, 0)
                               : type_of((enum type_id)types[guess]);
}

/* Of a value that its type's parser has taken. */
bool csv_guess_holds(struct type type, struct sv field) {
    struct sv s = trim(field);
    i64 sign = s.len > 0 && s.ptr[0] == '-';
    if (s.len == sign) {
        return false;
    }
    char c = s.ptr[sign];
    bool is_word = !is_digit(c) && c != '.'; /* infinity, true */
    switch (type.id) {
    case TYPE_INTEGER:
    case TYPE_BIGINT:
    case TYPE_DECIMAL:
    case TYPE_DOUBLE:
        return c != '+' && !(c == '0' && s.len > sign + 1 && is_digit(s.ptr[sign + 1]));
    case TYPE_DATE:
        return is_word || (take_date(&s) && s.len == 0);
    case TYPE_TIME:
        return take_clock(&s) && s.len == 0;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
        return is_word || (take_date(&s) && s.len > 0 && (s.ptr++, s.len--, take_clock(&s)) &&
                           (type.id == TYPE_TIMESTAMP || take_zone(&s)) && s.len == 0);
    default:
        return csv_guess(field) == GUESS_BOOL;
    }
}
