/* value_moment.c: dates, times of day and timestamps from text.
 *
 * YYYY-MM-DD and YYYY-MM-DD HH:MM:SS, which is what files hold, are read at fixed places (fn_moment.h).
 * Everything else is read as PostgreSQL reads it: the text is cut into tokens (numbers, words,
 * clock times, dates held together by a separator, offsets), and each token gives some fields
 * (year, hour, zone, …) that no other may give again. What a number means depends on its length
 * and on the fields known before it. What a type has no use for (the time of a date, the zone of a
 * timestamp) is read, checked and dropped. Fields that do not exist are a range error, anything
 * unreadable a syntax error. */
#include "defs/value.h"
#include "base/zone.h"

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
#include "defs/zone_word.def"

enum { TOKENS_MAX = 25, TEXT_MAX = 128, JULIAN_1970 = 2440588 };
enum token_kind { TOKEN_NUMBER, TOKEN_WORD, TOKEN_CLOCK, TOKEN_DATE, TOKEN_OFFSET };
struct token {
    u8 kind;
    u8 sign; /* before an offset or a word; 0 = none */
    struct sv text;
};

enum has {
    HAS_YEAR = 1,
    HAS_MONTH = 2,
    HAS_DAY = 4,
    HAS_YEAR_DAY = 8,
    HAS_HOUR = 16,
    HAS_MINUTE = 32,
    HAS_SECOND = 64,
    HAS_FRACTION = 128,
    HAS_ZONE = 256,
    HAS_SUMMER = 512,
    HAS_HALF = 1024,
    HAS_ERA = 2048,
    HAS_WEEKDAY = 4096,
    HAS_SPECIAL = 8192,
    HAS_MOVING = 16384, /* a zone word that is not always that zone's time */
    HAS_DATE = HAS_YEAR | HAS_MONTH | HAS_DAY,
    HAS_TIME = HAS_HOUR | HAS_MINUTE | HAS_SECOND | HAS_FRACTION
};

enum special { SPECIAL_NONE, SPECIAL_INF, SPECIAL_NEG_INF, SPECIAL_EPOCH };
enum label { /* what a word says the next number is */
             LABEL_NONE,
             LABEL_YEAR,
             LABEL_MONTH,
             LABEL_DAY,
             LABEL_HOUR,
             LABEL_MINUTE,
             LABEL_SECOND,
             LABEL_JULIAN,
             LABEL_TIME,
             LABEL_OTHER
};
enum word_kind {
    WORD_MONTH,
    WORD_WEEKDAY,
    WORD_LABEL,
    WORD_ERA,
    WORD_HALF,
    WORD_DAY, /* today and its neighbours: days from today */
    WORD_NOW,
    WORD_MIDNIGHT,
    WORD_SPECIAL,
    WORD_SUMMER,
    WORD_FILLER
};

static const struct word {
    const char *name;
    u8 kind;
    i8 value;
} words[] = {
    {"jan", WORD_MONTH, 1},
    {"january", WORD_MONTH, 1},
    {"feb", WORD_MONTH, 2},
    {"february", WORD_MONTH, 2},
    {"mar", WORD_MONTH, 3},
    {"march", WORD_MONTH, 3},
    {"apr", WORD_MONTH, 4},
    {"april", WORD_MONTH, 4},
    {"may", WORD_MONTH, 5},
    {"jun", WORD_MONTH, 6},
    {"june", WORD_MONTH, 6},
    {"jul", WORD_MONTH, 7},
    {"july", WORD_MONTH, 7},
    {"aug", WORD_MONTH, 8},
    {"august", WORD_MONTH, 8},
    {"sep", WORD_MONTH, 9},
    {"sept", WORD_MONTH, 9},
    {"september", WORD_MONTH, 9},
    {"oct", WORD_MONTH, 10},
    {"october", WORD_MONTH, 10},
    {"nov", WORD_MONTH, 11},
    {"november", WORD_MONTH, 11},
    {"dec", WORD_MONTH, 12},
    {"december", WORD_MONTH, 12},
    {"mon", WORD_WEEKDAY, 1},
    {"monday", WORD_WEEKDAY, 1},
    {"tue", WORD_WEEKDAY, 2},
    {"tues", WORD_WEEKDAY, 2},
    {"tuesday", WORD_WEEKDAY, 2},
    {"wed", WORD_WEEKDAY, 3},
    {"weds", WORD_WEEKDAY, 3},
    {"wednesday", WORD_WEEKDAY, 3},
    {"thu", WORD_WEEKDAY, 4},
    {"thur", WORD_WEEKDAY, 4},
    {"thurs", WORD_WEEKDAY, 4},
    {"thursday", WORD_WEEKDAY, 4},
    {"fri", WORD_WEEKDAY, 5},
    {"friday", WORD_WEEKDAY, 5},
    {"sat", WORD_WEEKDAY, 6},
    {"saturday", WORD_WEEKDAY, 6},
    {"sun", WORD_WEEKDAY, 7},
    {"sunday", WORD_WEEKDAY, 7},
    {"y", WORD_LABEL, LABEL_YEAR},
    {"m", WORD_LABEL, LABEL_MONTH},
    {"d", WORD_LABEL, LABEL_DAY},
    {"h", WORD_LABEL, LABEL_HOUR},
    {"mm", WORD_LABEL, LABEL_MINUTE},
    {"s", WORD_LABEL, LABEL_SECOND},
    {"j", WORD_LABEL, LABEL_JULIAN},
    {"jd", WORD_LABEL, LABEL_JULIAN},
    {"julian", WORD_LABEL, LABEL_JULIAN},
    {"t", WORD_LABEL, LABEL_TIME},
    {"dow", WORD_LABEL, LABEL_OTHER},
    {"doy", WORD_LABEL, LABEL_OTHER},
    {"isodow", WORD_LABEL, LABEL_OTHER},
    {"isoyear", WORD_LABEL, LABEL_OTHER},
    {"ad", WORD_ERA, 0},
    {"bc", WORD_ERA, 1},
    {"am", WORD_HALF, 1},
    {"pm", WORD_HALF, 2},
    {"yesterday", WORD_DAY, -1},
    {"today", WORD_DAY, 0},
    {"tomorrow", WORD_DAY, 1},
    {"now", WORD_NOW, 0},
    {"allballs", WORD_MIDNIGHT, 0},
    {"epoch", WORD_SPECIAL, SPECIAL_EPOCH},
    {"infinity", WORD_SPECIAL, SPECIAL_INF},
    {"dst", WORD_SUMMER, 0},
    {"at", WORD_FILLER, 0},
    {"on", WORD_FILLER, 0},
};

/* Words for the time in a zone: offsets, and names whose offset depends on the year. */
#define X(word, seconds) {word, NULL, seconds, 0},
#define Y(word, zone) {word, zone, 0, 1},
#define Z(word, seconds) {word, NULL, seconds, 1},
static const struct zone_word {
    const char *word, *zone;
    i32 seconds;
    b8 moves; /* it is a zone's time for a part of the year, or of history */
} zone_words[] = {WF_ZONE_WORDS(X) WF_ZONE_SUMMERS(Z) WF_ZONE_HISTORIES(Y)};
#undef X
#undef Y
#undef Z

struct reader {
    struct token tokens[TOKENS_MAX];
    i32 token_count;
    struct when when;
    b8 clock_only; /* a time of day is read, not a day */
    u32 have;      /* fields of the tokens before */
    u32 given;     /* fields of this one */
    i32 year, month, day, year_day;
    b8 short_year, julian, month_named, bc, zone_named, summer;
    i32 hour, minute, second;
    i64 us;
    u8 half; /* 1 = AM, 2 = PM */
    u8 label;
    u8 special;
    i32 zone;
};

static const struct zone_word *find_zone(struct sv name, i32 *out) {
    for (i64 i = 0; i < COUNT_OF(zone_words); i++) {
        const struct zone_word *word = &zone_words[i];
        if (sv_eq_nocase(name, sv_from(word->word))) {
            *out = word->seconds;
            bool found = !word->zone || zone_find_word(name, sv_from(word->zone), out);
            return found ? word : NULL;
        }
    }
    return NULL;
}

static const struct word *find_word(struct sv name) {
    for (i64 i = 0; i < COUNT_OF(words); i++) {
        if (sv_eq_nocase(name, sv_from(words[i].name))) {
            return &words[i];
        }
    }
    return NULL;
}

static bool is_letter(u8 c) {
    return (u8)((c | 32) - 'a') < 26;
}

static bool is_punctuation(u8 c) {
    return c > ' ' && c < 127 && !is_digit(c) && !is_letter(c);
}

/* Tokens */

struct cut {
    const char *p, *end;
};

static u8 at(const struct cut *c) {
    return c->p < c->end ? (u8)*c->p : 0;
}

static void skip_digits(struct cut *c, const char *others) {
    while (at(c) && (is_digit(at(c)) || strchr(others, at(c)))) {
        c->p++;
    }
}

static void skip_letters(struct cut *c) {
    while (is_letter(at(c))) {
        c->p++;
    }
}

/* 12, 12:34:56.7, 2020-01-02, 2020.100, 8-Jan-1999 */
static u8 cut_number(struct cut *c) {
    skip_digits(c, "");
    char mark[2] = {(char)at(c), 0};
    if (mark[0] == ':') {
        skip_digits(c, ":.");
        return TOKEN_CLOCK;
    }
    if (mark[0] != '-' && mark[0] != '/' && mark[0] != '.') {
        return TOKEN_NUMBER;
    }
    c->p++;
    if (!is_digit(at(c))) {
        while (is_digit(at(c)) || is_letter(at(c)) || at(c) == (u8)mark[0]) {
            c->p++;
        }
        return TOKEN_DATE;
    }
    skip_digits(c, "");
    bool third = at(c) == (u8)mark[0];
    skip_digits(c, third ? mark : "");
    return third || mark[0] != '.' ? TOKEN_DATE : TOKEN_NUMBER;
}

/* A word; with separators or digits in it a date or the name of a zone. */
static u8 cut_word(struct cut *c) {
    const char *first = c->p;
    skip_letters(c);
    u8 next = at(c);
    bool longer = next == '-' || next == '/' || next == '.' ||
                  ((next == '+' || is_digit(next)) && !find_word((struct sv){first, c->p - first}));
    while (longer && at(c) && (is_letter(at(c)) || is_digit(at(c)) || strchr("+-/_.:", at(c)))) {
        c->p++;
    }
    return longer ? TOKEN_DATE : TOKEN_WORD;
}

/* +05:30, -infinity */
static bool cut_signed(struct cut *c, struct token *out) {
    out->sign = at(c);
    c->p++;
    while (is_space(at(c))) {
        c->p++;
    }
    const char *first = c->p;
    if (is_digit(at(c))) {
        out->kind = TOKEN_OFFSET;
        skip_digits(c, ":.-");
    } else {
        out->kind = TOKEN_WORD;
        skip_letters(c);
    }
    out->text = (struct sv){first, c->p - first};
    return out->text.len > 0;
}

static bool cut_tokens(struct sv s, struct reader *r) {
    struct cut c = {s.ptr, s.ptr + s.len};
    while (c.p < c.end) {
        u8 next = at(&c);
        bool number = is_digit(next) || next == '.';
        bool sign = next == '+' || next == '-';
        if (!number && !sign && !is_letter(next)) {
            if (!is_space(next) && !is_punctuation(next)) {
                return false;
            }
            c.p++;
            continue;
        }
        if (r->token_count == TOKENS_MAX) {
            return false;
        }
        struct token *token = &r->tokens[r->token_count++];
        const char *first = c.p;
        *token = (struct token){0};
        if (sign) {
            if (!cut_signed(&c, token)) {
                return false;
            }
            continue;
        }
        if (next == '.') {
            c.p++;
            skip_digits(&c, "");
            token->kind = TOKEN_NUMBER;
        } else {
            token->kind = number ? cut_number(&c) : cut_word(&c);
        }
        token->text = (struct sv){first, c.p - first};
    }
    return true;
}

/* Numbers */

/* Digits in front of *io, no digit is zero; false when they do not fit. */
static bool take_int(struct sv *io, i32 *out) {
    i64 value = 0;
    while (io->len > 0 && is_digit((u8)io->ptr[0])) {
        value = MIN_OF(value * 10 + (io->ptr[0] - '0'), (i64)I32_MAX + 1);
        io->ptr++;
        io->len--;
    }
    *out = (i32)MIN_OF(value, (i64)I32_MAX);
    return value <= I32_MAX;
}

/* The point and the digits after it, all of the text, as microseconds. More than six are rounded as
 * the double they are, of two neighbours to the even one, as in PostgreSQL. */
static bool read_fraction(struct sv s, i64 *out) {
    i64 us = 0;
    i32 count = 0;
    for (i64 i = 1; i < s.len; i++, count++) {
        if (!is_digit((u8)s.ptr[i])) {
            return false;
        }
        us = count < 6 ? us * 10 + (s.ptr[i] - '0') : us;
    }
    if (count > 6) {
        f64 fraction = 0;
        (void)value_parse_f64(s, &fraction);
        f64 rest = fraction * 1e6 - (f64)us;
        us += rest > 0.5 || (rest == 0.5 && (us & 1));
    }
    for (; count < 6; count++) {
        us *= 10;
    }
    *out = us;
    return true;
}

static i32 digits_value(struct sv s) {
    i32 value;
    (void)take_int(&s, &value);
    return value;
}

static struct sv part(struct sv s, i64 from, i64 len) {
    return (struct sv){s.ptr + from, len};
}

/* yyyymmdd, yymmdd where the day is not known; hhmmss, hhmm, with a fraction; */
static u8 read_joined(struct reader *r, struct sv s, u32 have) {
    i64 len = 0;
    while (len < s.len && is_digit((u8)s.ptr[len])) {
        len++;
    }
    if (len < s.len) {
        if (s.ptr[len] != '.' || !read_fraction(part(s, len, s.len - len), &r->us)) {
            return FAULT_TEXT_DATE;
        }
    } else if ((have & HAS_DATE) != HAS_DATE && len >= 6) {
        r->given = HAS_DATE;
        r->day = digits_value(part(s, len - 2, 2));
        r->month = digits_value(part(s, len - 4, 2));
        r->year = digits_value(part(s, 0, len - 4));
        r->short_year = r->short_year || len == 6;
        return FAULT_NONE;
    }
    if ((have & HAS_TIME) == HAS_TIME || (len != 6 && len != 4)) {
        return FAULT_TEXT_DATE;
    }
    r->given = HAS_TIME;
    r->hour = digits_value(part(s, 0, 2));
    r->minute = digits_value(part(s, 2, 2));
    r->second = len == 6 ? digits_value(part(s, 4, 2)) : 0;
    return FAULT_NONE;
}

static void give(struct reader *r, enum has field, i32 *where, i32 value) {
    r->given = field;
    *where = value;
}

/* One number of a date, or a time where the date is known. */
static u8 read_part(struct reader *r, struct sv s, bool month_named, u32 have) {
    struct sv rest = s;
    i32 value;
    if (!take_int(&rest, &value)) {
        return FAULT_FIELD_RANGE;
    }
    if (rest.ptr == s.ptr) {
        return FAULT_TEXT_DATE;
    }
    if (rest.len > 0) {
        if (rest.ptr - s.ptr > 2) {
            return read_joined(r, s, have | HAS_DATE);
        }
        if (rest.ptr[0] != '.' || !read_fraction(rest, &r->us)) {
            return FAULT_TEXT_DATE;
        }
    }
    bool is_long = s.len >= 3;
    u32 known = have & HAS_DATE;
    if (s.len == 3 && known == HAS_YEAR && value >= 1 && value <= 366) {
        r->given = HAS_YEAR_DAY | HAS_MONTH | HAS_DAY;
        r->year_day = value;
        return FAULT_NONE;
    }
    if (known == HAS_DATE) {
        return read_joined(r, s, have);
    }
    if (known == 0
            ? is_long
            : known == (HAS_MONTH | HAS_DAY) || (known == HAS_MONTH && month_named && is_long)) {
        give(r, HAS_YEAR, &r->year, value);
        r->short_year = s.len <= 2;
    } else if (known == (HAS_YEAR | HAS_MONTH) && month_named && is_long && r->short_year) {
        give(r, HAS_DAY, &r->day, r->year); /* the first number was the day */
        r->year = value;
        r->short_year = 0;
    } else if (known == HAS_MONTH || known == (HAS_YEAR | HAS_MONTH)) {
        give(r, HAS_DAY, &r->day, value);
    } else if (known == 0 || known == HAS_YEAR || known == HAS_DAY) {
        give(r, HAS_MONTH, &r->month, value);
    } else {
        return FAULT_TEXT_DATE;
    }
    return FAULT_NONE;
}

/* 2020-01-02, 2-Jan-2020, 2020.100: a whole date in one token. */
static u8 read_date(struct reader *r, struct sv s) {
    struct cut c = {s.ptr, s.ptr + s.len};
    struct sv parts[TOKENS_MAX];
    i32 count = 0;
    u32 have = r->have;
    bool named = false;
    while (c.p < c.end && count < TOKENS_MAX) {
        while (c.p < c.end && !is_digit(at(&c)) && !is_letter(at(&c))) {
            c.p++;
        }
        const char *first = c.p;
        if (is_digit(at(&c))) {
            skip_digits(&c, "");
        } else {
            skip_letters(&c);
        }
        parts[count++] = (struct sv){first, c.p - first};
        if (c.p == first) {
            return FAULT_TEXT_DATE;
        }
        c.p += c.p < c.end;
    }
    for (i32 i = 0; i < count; i++) {
        if (is_digit((u8)parts[i].ptr[0])) {
            continue;
        }
        const struct word *word = find_word(parts[i]);
        if (!word || word->kind != WORD_MONTH || (have & HAS_MONTH)) {
            return FAULT_TEXT_DATE;
        }
        r->month = word->value;
        have |= HAS_MONTH;
        named = true;
    }
    for (i32 i = 0; i < count; i++) {
        if (!is_digit((u8)parts[i].ptr[0])) {
            continue;
        }
        u8 fault = read_part(r, parts[i], named, have);
        if (fault || (have & r->given)) {
            return fault ? fault : FAULT_TEXT_DATE;
        }
        have |= r->given;
    }
    r->given = have & ~r->have;
    return (have & ~(u32)(HAS_YEAR_DAY | HAS_ZONE)) == HAS_DATE ? FAULT_NONE : FAULT_TEXT_DATE;
}

static bool time_overflows(const struct reader *r) {
    i64 us = r->hour * HOUR_US + r->minute * MINUTE_US + r->second * SECOND_US + r->us;
    return r->hour > 24 || r->minute > 59 || r->second > 60 || us > DAY_US;
}

/* hh:mm, hh:mm:ss, hh:mm:ss.f, mm:ss.f */
static u8 read_clock(struct reader *r, struct sv s) {
    bool fits = take_int(&s, &r->hour);
    s = part(s, 1, s.len - 1); /* the colon */
    fits = take_int(&s, &r->minute) && fits;
    r->second = 0;
    r->us = 0;
    r->given = HAS_TIME;
    if (s.len > 0 && s.ptr[0] == '.') {
        r->second = r->minute;
        r->minute = r->hour;
        r->hour = 0;
    } else if (s.len > 0) {
        s = part(s, 1, s.len - 1);
        fits = take_int(&s, &r->second) && fits;
    }
    if (s.len > 0 && (s.ptr[0] != '.' || !read_fraction(s, &r->us))) {
        return FAULT_TEXT_DATE;
    }
    return !fits || r->minute > 59 || r->second > 60 ? FAULT_FIELD_RANGE : FAULT_NONE;
}

/* +hh, +hhmm, +hh:mm, +hh:mm:ss, behind the sign */
static u8 read_offset(struct reader *r, u8 sign, struct sv s) {
    i32 hours, minutes = 0, seconds = 0;
    i64 len = s.len;
    r->summer = 0;
    bool fits = take_int(&s, &hours) &&
                (s.len < len || len < 2 || s.ptr[0] != '-' || !is_digit((u8)s.ptr[1]));
    if (s.len > 0 && s.ptr[0] == ':') {
        s = part(s, 1, s.len - 1);
        fits = take_int(&s, &minutes) && fits;
        if (s.len > 0 && s.ptr[0] == ':') {
            s = part(s, 1, s.len - 1);
            fits = take_int(&s, &seconds) && fits;
        }
    } else if (s.len == 0 && len > 2) {
        minutes = hours % 100;
        hours /= 100;
    }
    if (!fits || hours > 15 || minutes > 59 || seconds > 59) {
        return FAULT_ZONE_RANGE;
    }
    r->zone = (hours * 3600 + minutes * 60 + seconds) * (sign == '-' ? -1 : 1);
    r->given |= HAS_ZONE;
    return s.len == 0 ? FAULT_NONE : FAULT_TEXT_DATE;
}

static void set_civil(struct reader *r, i64 days) {
    fn_civil c = fn_civil_of((i32)days);
    r->year = c.year;
    r->month = c.month;
    r->day = c.day;
}

static void set_time(struct reader *r, i64 us) {
    r->hour = (i32)(us / HOUR_US);
    r->minute = (i32)(us / MINUTE_US % 60);
    r->second = (i32)(us / SECOND_US % 60);
    r->us = us % SECOND_US;
}

/* A number that a word before it says the meaning of. */
static u8 read_labelled(struct reader *r, struct sv s) {
    struct sv rest = s;
    i32 value;
    u8 label = r->label;
    i64 fraction = 0;
    r->label = LABEL_NONE;
    r->special = SPECIAL_NONE;
    if (!take_int(&rest, &value)) {
        return FAULT_FIELD_RANGE;
    }
    bool point = rest.len > 0;
    if (point && ((label != LABEL_JULIAN && label != LABEL_TIME && label != LABEL_SECOND) ||
                  !read_fraction(rest, &fraction))) {
        return FAULT_TEXT_DATE;
    }
    switch (label) {
    case LABEL_YEAR:
        give(r, HAS_YEAR, &r->year, value);
        break;
    case LABEL_MONTH: /* with a month and an hour known it means minutes */
        if ((r->have & HAS_MONTH) && (r->have & HAS_HOUR)) {
            give(r, HAS_MINUTE, &r->minute, value);
        } else {
            give(r, HAS_MONTH, &r->month, value);
        }
        break;
    case LABEL_DAY:
        give(r, HAS_DAY, &r->day, value);
        break;
    case LABEL_HOUR:
        give(r, HAS_HOUR, &r->hour, value);
        break;
    case LABEL_MINUTE:
        give(r, HAS_MINUTE, &r->minute, value);
        break;
    case LABEL_SECOND:
        give(r, HAS_SECOND, &r->second, value);
        r->given |= point ? HAS_FRACTION : 0;
        r->us = fraction;
        break;
    case LABEL_JULIAN:
        set_civil(r, (i64)value - JULIAN_1970);
        r->julian = 1;
        r->given = HAS_DATE;
        if (point) {
            f64 days = 0;
            (void)value_parse_f64(rest, &days);
            set_time(r, (i64)(days * (f64)DAY_US));
            r->given |= HAS_TIME;
        }
        break;
    case LABEL_TIME: {
        u8 fault = read_joined(r, s, r->have | HAS_DATE);
        return fault || r->given == HAS_TIME ? fault : FAULT_TEXT_DATE;
    }
    default:
        return FAULT_TEXT_DATE;
    }
    return FAULT_NONE;
}

/* A time without colons and an offset behind it, 040506-08; the name of a zone. */
static u8 read_zoned(struct reader *r, struct sv s) {
    if (!is_digit((u8)s.ptr[0]) && (r->clock_only || !r->label)) {
        if (!zone_find(s, &r->zone)) {
            return FAULT_ZONE;
        }
        r->zone_named = 1;
        r->given = HAS_ZONE;
        return FAULT_NONE;
    }
    const char *minus = memchr(s.ptr, '-', (size_t)s.len);
    bool other = r->label && r->label != LABEL_TIME && !r->clock_only;
    if (other || (r->have & HAS_TIME) == HAS_TIME || !minus) {
        return FAULT_TEXT_DATE;
    }
    r->label = r->clock_only ? r->label : LABEL_NONE;
    i64 len = minus - s.ptr;
    u8 fault = read_offset(r, '-', part(s, len + 1, s.len - len - 1));
    fault = fault ? fault
                  : read_joined(r, part(s, 0, len), r->clock_only ? r->have | HAS_DATE : r->have);
    r->given |= HAS_ZONE;
    return fault;
}

static u8 read_date_token(struct reader *r, i32 i) {
    const struct token *last = &r->tokens[r->token_count - 1];
    struct sv s = r->tokens[i].text;
    if (r->clock_only) {
        bool date = i == 0 && r->token_count >= 2 &&
                    (last->kind == TOKEN_DATE || r->tokens[1].kind == TOKEN_CLOCK);
        return date ? read_date(r, s) : read_zoned(r, s);
    }
    if (r->label == LABEL_JULIAN) { /* J2451187-8 */
        i32 value;
        struct sv rest = s;
        if (!take_int(&rest, &value)) {
            return FAULT_FIELD_RANGE;
        }
        if (rest.len < 2 || rest.ptr[0] != '-') {
            return FAULT_TEXT_DATE;
        }
        set_civil(r, (i64)value - JULIAN_1970);
        r->julian = 1;
        r->label = LABEL_NONE;
        r->given = HAS_DATE | HAS_TIME;
        return read_offset(r, '-', part(rest, 1, rest.len - 1));
    }
    u32 day = HAS_MONTH | HAS_DAY;
    return r->label || (r->have & day) == day ? read_zoned(r, s) : read_date(r, s);
}

static u8 read_number(struct reader *r, i32 i) {
    struct sv s = r->tokens[i].text;
    if (r->label) {
        return read_labelled(r, s);
    }
    const char *point = memchr(s.ptr, '.', (size_t)s.len);
    bool wide = point && point - s.ptr > 2;
    if (r->clock_only) {
        u32 have = r->have | HAS_DATE;
        if (point) {
            bool date =
                i == 0 && r->token_count >= 2 && r->tokens[r->token_count - 1].kind == TOKEN_DATE;
            return date ? read_date(r, s) : wide ? read_joined(r, s, have) : FAULT_TEXT_DATE;
        }
        return s.len > 4 ? read_joined(r, s, have) : read_part(r, s, false, have);
    }
    if (point && !(r->have & HAS_DATE)) {
        return read_date(r, s);
    }
    bool room = !(r->have & HAS_DATE) || !(r->have & HAS_TIME);
    return wide || (s.len >= 6 && room) ? read_joined(r, s, r->have)
                                        : read_part(r, s, r->month_named, r->have);
}

/* Words */

static void read_now(struct reader *r, i64 day) {
    i64 second = fn_floor_div(r->when.now, SECOND_US);
    i32 east = zone_offset(r->when.zone, second);
    i64 local = r->when.now + east * SECOND_US;
    i64 today = fn_floor_div(local, DAY_US);
    r->special = SPECIAL_NONE;
    if (day != I64_MIN) {
        set_civil(r, today + day);
        r->given = HAS_DATE;
        return;
    }
    set_time(r, local - today * DAY_US);
    r->given = HAS_TIME;
    if (!r->clock_only) {
        set_civil(r, today);
        r->zone = east;
        r->given = HAS_DATE | HAS_TIME | HAS_ZONE;
    }
}

/* A word that says what comes next; T only between a date and a time. */
static u8 read_label(struct reader *r, i32 i, u8 label) {
    r->label = label;
    if (label != LABEL_TIME) {
        return FAULT_NONE;
    }
    bool date = r->clock_only || (r->have & HAS_DATE) == HAS_DATE;
    bool follows = i + 1 < r->token_count && r->tokens[i + 1].kind <= TOKEN_DATE &&
                   r->tokens[i + 1].kind != TOKEN_WORD;
    return date && follows ? FAULT_NONE : FAULT_TEXT_DATE;
}

static u8 read_month(struct reader *r, i32 month) {
    r->given = HAS_MONTH;
    if ((r->have & HAS_MONTH) && !r->month_named && !(r->have & HAS_DAY) && r->month >= 1 &&
        r->month <= 31) { /* what was taken for a month is the day */
        r->day = r->month;
        r->given = HAS_DAY;
    }
    r->month_named = 1;
    r->month = month;
    return FAULT_NONE;
}

static u8 read_zone_word(struct reader *r, struct sv name) {
    const struct zone_word *word = find_zone(name, &r->zone);
    r->given = HAS_ZONE | (word && word->moves ? HAS_MOVING : 0);
    r->summer = 0;
    if (word) {
        return FAULT_NONE;
    }
    r->zone_named = 1;
    return zone_find(name, &r->zone) ? FAULT_NONE : FAULT_TEXT_DATE;
}

static u8 read_special(struct reader *r, u8 sign, u8 special) {
    if (r->clock_only || (sign && (sign == '+' || special != SPECIAL_INF))) {
        return FAULT_TEXT_DATE;
    }
    r->special = sign ? SPECIAL_NEG_INF : special;
    r->given = HAS_SPECIAL;
    return FAULT_NONE;
}

static u8 read_word(struct reader *r, i32 i) {
    const struct token *token = &r->tokens[i];
    const struct word *word = find_word(token->text);
    if (!word) {
        return token->sign ? FAULT_TEXT_DATE : read_zone_word(r, token->text);
    }
    if (word->kind == WORD_SPECIAL) {
        return read_special(r, token->sign, (u8)word->value);
    }
    if (token->sign || (r->clock_only && (word->kind == WORD_MONTH || word->kind == WORD_WEEKDAY ||
                                          word->kind == WORD_DAY))) {
        return FAULT_TEXT_DATE;
    }
    switch (word->kind) {
    case WORD_MONTH:
        return read_month(r, word->value);
    case WORD_LABEL:
        return read_label(r, i, (u8)word->value);
    case WORD_WEEKDAY:
        r->given = HAS_WEEKDAY;
        return FAULT_NONE;
    case WORD_ERA:
        r->bc = word->value == 1;
        r->given = HAS_ERA;
        return FAULT_NONE;
    case WORD_HALF:
        r->half = (u8)word->value;
        r->given = HAS_HALF;
        return FAULT_NONE;
    case WORD_DAY:
        read_now(r, word->value);
        return FAULT_NONE;
    case WORD_NOW:
        read_now(r, I64_MIN);
        return FAULT_NONE;
    case WORD_MIDNIGHT:
        set_time(r, 0);
        r->special = SPECIAL_NONE;
        r->zone = 0;
        r->given = HAS_TIME | HAS_ZONE;
        return FAULT_NONE;
    case WORD_SUMMER:
        r->summer = 1;
        r->given = HAS_SUMMER | HAS_MOVING;
        return FAULT_NONE;
    default: /* a filler */
        return FAULT_NONE;
    }
}

static u8 read_token(struct reader *r, i32 i) {
    const struct token *token = &r->tokens[i];
    u8 fault;
    r->given = 0;
    switch (token->kind) {
    case TOKEN_NUMBER:
        return read_number(r, i);
    case TOKEN_WORD:
        return read_word(r, i);
    case TOKEN_DATE:
        return read_date_token(r, i);
    case TOKEN_OFFSET:
        return read_offset(r, token->sign, token->text);
    default:
        if (r->label && r->label != LABEL_TIME && !r->clock_only) {
            return FAULT_TEXT_DATE;
        }
        r->label = r->clock_only ? r->label : LABEL_NONE;
        fault = read_clock(r, token->text);
        return fault || r->clock_only || !time_overflows(r) ? fault : FAULT_FIELD_RANGE;
    }
}

/* The fields together */

static u8 check_date(struct reader *r) {
    if ((r->have & HAS_YEAR) && !r->julian) {
        if (r->bc || !r->short_year) {
            if (r->year <= 0) {
                return FAULT_FIELD_RANGE;
            }
            r->year = r->bc ? 1 - r->year : r->year;
        } else if (r->year < 100) {
            r->year += r->year < 70 ? 2000 : 1900;
        }
    }
    if (r->have & HAS_YEAR_DAY) {
        if (r->year > 5874897) {
            return FAULT_FIELD_RANGE;
        }
        set_civil(r, (i64)fn_days(r->year, 1, 1) + r->year_day - 1);
    }
    bool bad = (r->have & HAS_MONTH) && (r->month < 1 || r->month > 12);
    bad = bad || ((r->have & HAS_DAY) && (r->day < 1 || r->day > 31));
    bad = bad || ((r->have & HAS_DATE) == HAS_DATE && r->day > fn_month_days(r->year, r->month));
    return bad ? FAULT_FIELD_RANGE : FAULT_NONE;
}

static u8 read_moment(struct sv s, struct when when, bool clock_only, struct reader *r) {
    memset(r, 0, sizeof *r);
    r->when = when;
    r->clock_only = clock_only;
    if (s.len > TEXT_MAX || !cut_tokens(s, r)) {
        return FAULT_TEXT_DATE;
    }
    for (i32 i = 0; i < r->token_count; i++) {
        u8 fault = read_token(r, i);
        if (fault || (r->given & r->have)) {
            return fault ? fault : FAULT_TEXT_DATE;
        }
        r->have |= r->given;
    }
    u8 fault = check_date(r);
    if (fault || (r->half && r->hour > 12)) {
        return fault ? fault : FAULT_FIELD_RANGE;
    }
    r->hour = r->half ? r->hour % 12 + (r->half == 2 ? 12 : 0) : r->hour;
    bool summer = (r->have & HAS_SUMMER) && (zone_is_named(r->zone) || !(r->have & HAS_ZONE));
    r->zone += r->summer && !summer ? 3600 : 0;
    bool whole = (r->have & HAS_DATE) == HAS_DATE;
    if (clock_only) {
        if (time_overflows(r)) {
            return FAULT_FIELD_RANGE;
        }
        bool day = whole || !r->zone_named || zone_is_fixed(r->zone);
        whole = (r->have & HAS_TIME) == HAS_TIME && day;
    }
    return (whole && !summer) || r->special ? FAULT_NONE : FAULT_TEXT_DATE;
}

static i64 time_of(const struct reader *r) {
    return r->hour * HOUR_US + r->minute * MINUTE_US + r->second * SECOND_US + r->us;
}

static u8 set_date(i32 year, i32 month, i32 day, i32 *out) {
    if (year < -4713 || year > 5874897 || month < 1 || month > 12 || day < 1 ||
        day > fn_month_days(year, month)) {
        return FAULT_DATE_RANGE;
    }
    *out = fn_days(year, month, day);
    return *out < DATE_MIN ? FAULT_DATE_RANGE : FAULT_NONE;
}

u8 value_parse_date(struct sv s, struct when when, i32 *out) {
    static const i32 specials[] = {0, DATE_INF, DATE_NEG_INF, 0};
    struct reader r;
    if (fn_plain_date(str_from(s), out)) {
        return FAULT_NONE;
    }
    u8 fault = read_moment(s, when, false, &r);
    if (fault) {
        return fault == FAULT_FIELD_RANGE ? FAULT_DATE_RANGE : fault;
    }
    if (r.special) {
        *out = specials[r.special];
        return FAULT_NONE;
    }
    return set_date(r.year, r.month, r.day, out);
}

static u8 parse_timestamp(struct sv s, bool zoned, struct when when, i64 *out) {
    static const i64 specials[] = {0, TS_INF, TS_NEG_INF, 0};
    struct reader r;
    i32 date = 0;
    b8 has_zone = 0;
    i32 east = 0;
    if (fn_plain_moment(str_from(s), out, &has_zone, &east)) {
        i64 second = fn_floor_div(*out, SECOND_US);
        east = has_zone || !zoned ? east : zone_offset_local(when.zone, second);
        *out -= zoned ? east * SECOND_US : 0;
        return FAULT_NONE;
    }
    u8 fault = read_moment(s, when, false, &r);
    if (!fault && r.special) {
        *out = specials[r.special];
        return FAULT_NONE;
    }
    fault = fault ? fault : set_date(r.year, r.month, r.day, &date);
    if (fault) {
        return fault == FAULT_TEXT_DATE    ? FAULT_TEXT_TIMESTAMP
               : fault == FAULT_DATE_RANGE ? FAULT_FIELD_RANGE
                                           : fault;
    }
    i64 us = time_of(&r);
    i64 second = date * (DAY_US / SECOND_US) + us / SECOND_US;
    i32 zone = r.have & HAS_ZONE ? r.zone : when.zone;
    i64 shift = zoned ? zone_offset_local(zone, second) : 0;
    *out = fn_ts_check((i128)date * DAY_US + us - shift * SECOND_US, &fault);
    return fault;
}

u8 value_parse_timestamp(struct sv s, struct when when, i64 *out) {
    return parse_timestamp(s, false, when, out);
}

u8 value_parse_timestamptz(struct sv s, struct when when, i64 *out) {
    return parse_timestamp(s, true, when, out);
}

u8 value_parse_time(struct sv s, struct when when, i64 *out) {
    struct reader r;
    if (fn_plain_time(str_from(s), out)) {
        return FAULT_NONE;
    }
    u8 fault = read_moment(s, when, true, &r);
    if (!fault) {
        *out = time_of(&r);
    }
    return fault == FAULT_TEXT_DATE ? FAULT_TEXT_TIME : fault;
}

bool value_names_clock(struct sv s) {
    struct cut c = {s.ptr, s.ptr + s.len};
    while (c.p < c.end) {
        const char *first = c.p;
        skip_letters(&c);
        const struct word *word = find_word((struct sv){first, c.p - first});
        if (word && (word->kind == WORD_NOW || word->kind == WORD_DAY)) {
            return true;
        }
        c.p += c.p < c.end;
    }
    return false;
}

u8 value_parse_zone(struct sv s, i32 *out) {
    return find_zone(s, out) != NULL || zone_find(s, out) ? FAULT_NONE : FAULT_ZONE;
}
