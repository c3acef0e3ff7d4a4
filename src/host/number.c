/* number.c: to_char and to_number of numbers.
 *
 * A template such as S999G990D00 is a list of patterns and of characters that stand for themselves.
 * One pass over it learns how many digits it has on each side of the point, where zeros begin, and
 * which way the sign is shown; contradictions are errors. The number is then rounded to the
 * template's decimals and written as text. A second pass lays that into the places from the left.
 * Places before the number are blank, or zero from the first 0 on. The sign goes right before the
 * first digit, or behind the last one. A number too long shows as #. Reading a number is the same
 * walk over the text instead.
 *
 * What PostgreSQL does in corners follows from how it counts places, so the same counts are kept
 * here: `places` before which the sign is written, `last` for the end of a number under FM. */
#include "host/bodies.h"

#include "defs/types.h"
#include "defs/value.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"

#include <stdio.h>

enum pattern {
    PAT_9,
    PAT_0,
    PAT_POINT,
    PAT_COMMA,
    PAT_L,
    PAT_ROMAN,
    PAT_ROMAN_LOWER,
    PAT_TH,
    PAT_TH_LOWER,
    PAT_MI,
    PAT_PL,
    PAT_SG,
    PAT_PR,
    PAT_S,
    PAT_V,
    PAT_FM,
    PAT_B,
    PAT_E,
    PAT_SILENT, /* C, SP: known, and nothing */
    PAT_CHAR,
    PAT_END,
};

static const struct {
    const char *text;
    u8 pattern;
} patterns[] = {
    {"9", PAT_9},       {"0", PAT_0},         {".", PAT_POINT},  {"D", PAT_POINT},
    {"d", PAT_POINT},   {",", PAT_COMMA},     {"G", PAT_COMMA},  {"g", PAT_COMMA},
    {"L", PAT_L},       {"l", PAT_L},         {"RN", PAT_ROMAN}, {"rn", PAT_ROMAN_LOWER},
    {"TH", PAT_TH},     {"th", PAT_TH_LOWER}, {"MI", PAT_MI},    {"mi", PAT_MI},
    {"PL", PAT_PL},     {"pl", PAT_PL},       {"SG", PAT_SG},    {"sg", PAT_SG},
    {"SP", PAT_SILENT}, {"sp", PAT_SILENT},   {"PR", PAT_PR},    {"pr", PAT_PR},
    {"S", PAT_S},       {"s", PAT_S},         {"V", PAT_V},      {"v", PAT_V},
    {"FM", PAT_FM},     {"fm", PAT_FM},       {"B", PAT_B},      {"b", PAT_B},
    {"EEEE", PAT_E},    {"eeee", PAT_E},      {"C", PAT_SILENT}, {"c", PAT_SILENT},
};

struct template {
    struct sv s;
    i64 at;
    bool quoted;  /* inside of "" */
    bool stopped; /* in the middle: it was asked to */
    struct sv c;  /* CHAR: its bytes */
};

static i64 char_bytes(struct sv s, i64 at) {
    u8 c = (u8)s.ptr[at];
    i64 len = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return MIN_OF(len, s.len - at);
}

static enum pattern next_char(struct template *t) {
    t->c = (struct sv){t->s.ptr + t->at, char_bytes(t->s, t->at)};
    t->at += t->c.len;
    return PAT_CHAR;
}

static enum pattern next_pattern(struct template *t) {
    while (t->at < t->s.len) {
        char c = t->s.ptr[t->at];
        if (c == '"') { /* begins or ends a quotation */
            t->quoted = !t->quoted;
            t->at++;
            continue;
        }
        bool escapes = c == '\\' && t->at + 1 < t->s.len;
        if (escapes && (t->quoted || t->s.ptr[t->at + 1] == '"')) {
            t->at++;
            return next_char(t);
        }
        for (i64 i = 0; !t->quoted && i < COUNT_OF(patterns); i++) {
            if (patterns[i].text[0] != c) {
                continue;
            }
            i64 len = (i64)strlen(patterns[i].text);
            if (t->s.len - t->at >= len &&
                memcmp(t->s.ptr + t->at, patterns[i].text, (size_t)len) == 0) {
                t->at += len;
                return (enum pattern)patterns[i].pattern;
            }
        }
        return next_char(t);
    }
    return PAT_END;
}

/* The next pattern, if there is one and nobody asked to stop. */
static bool template_next(struct template *t, enum pattern *out) {
    i64 from = t->at;
    *out = next_pattern(t);
    t->stopped = stop_due((u64)from, (u64)t->at);
    return *out != PAT_END && !t->stopped;
}

enum sign_at { SIGN_NONE, SIGN_BEFORE, SIGN_BEHIND }; /* of S */

struct layout {
    i32 whole, decimals; /* places */
    i32 shift;           /* V: places behind it, by which the number is multiplied */
    i32 zero_start;      /* first whole place that shows zeros */
    i32 zero_end;        /* places up to the last 0 */
    i32 sign_places;     /* whole places before an S */
    u8 s;                /* enum sign_at */
    b8 zero, point, multiplies, fill, blank, minus, plus, bracket, roman, eeee;
};

static bool add_digit(struct layout *l, bool zero) {
    if (l->bracket) {
        return false;
    }
    if (!zero && l->multiplies) {
        l->shift++;
        return true;
    }
    if (zero && !l->zero && !l->point) {
        l->zero = 1;
        l->zero_start = l->whole;
    }
    *(l->point ? &l->decimals : &l->whole) += 1;
    l->zero_end = zero ? l->whole + l->decimals : l->zero_end;
    return true;
}

static bool add_s(struct layout *l) {
    if (l->s || l->plus || l->minus || l->bracket) {
        return false;
    }
    l->s = l->point ? SIGN_BEHIND : SIGN_BEFORE;
    l->sign_places = l->whole;
    return true;
}

/* False when the pattern contradicts those before it. */
static bool add_pattern(struct layout *l, enum pattern p) {
    if (l->eeee && p != PAT_CHAR) {
        return false; /* must be the last one, and once */
    }
    switch (p) {
    case PAT_9:
    case PAT_0:
        return add_digit(l, p == PAT_0);
    case PAT_POINT: {
        bool fine = !l->point && !l->multiplies;
        l->point = 1;
        return fine;
    }
    case PAT_S:
        return add_s(l);
    case PAT_MI:
    case PAT_PL:
    case PAT_SG:
        l->minus |= p != PAT_PL;
        l->plus |= p != PAT_MI;
        return !l->s;
    case PAT_PR:
        l->bracket = 1;
        return !l->s && !l->plus && !l->minus;
    case PAT_V:
        l->multiplies = 1;
        return !l->point;
    case PAT_E:
        l->eeee = 1;
        return !(l->blank || l->fill || l->s || l->bracket || l->minus || l->plus || l->roman ||
                 l->multiplies);
    case PAT_FM:
        l->fill = 1;
        return true;
    case PAT_B:
        l->blank |= l->whole == 0 && l->decimals == 0 && !l->zero;
        return true;
    case PAT_ROMAN:
    case PAT_ROMAN_LOWER:
        l->roman = 1;
        return true;
    default:
        return true;
    }
}

enum { DIGITS_MAX = 400, TEXT_MAX = 2 * DIGITS_MAX + 400 }; /* of a template; of a number */

static bool read_layout(struct sv s, struct layout *l, u8 *f) {
    struct template t = {.s = s};
    enum pattern p;
    *l = (struct layout){0};
    while (template_next(&t, &p)) {
        if (!add_pattern(l, p)) {
            *f = FAULT_TO_CHAR_SYNTAX;
            return false;
        }
    }
    if (l->whole > DIGITS_MAX || l->decimals > DIGITS_MAX || l->shift > DIGITS_MAX) {
        *f = FAULT_TO_CHAR;
        return false;
    }
    return !t.stopped;
}

/* Writing */

struct writer {
    u8 *out;
    i64 n;
    bool ended; /* behind the end of the number nothing follows */
    struct layout l;
    const char *number; /* without its sign */
    const char *at;     /* in it */
    const char *last;   /* FM: the last character that is shown; NULL = all are */
    char sign;
    i32 blanks;     /* whole places before the number */
    i32 place;      /* number of the current one, the point counted */
    i32 places;     /* see the head of the file */
    bool sign_done; /* the sign needs no place any more */
    bool digits;    /* the last place showed a digit */
};

static void put(struct writer *w, char c) {
    if (!w->ended) {
        w->out[w->n++] = (u8)c;
    }
}

static void put_text(struct writer *w, const char *text) {
    for (; *text; text++) {
        put(w, *text);
    }
}

/* The zero before the point of a number below 1. */
static bool is_lone_zero(const struct writer *w) {
    return !w->l.zero && w->at == w->number && *w->number == '0' && w->l.decimals != 0;
}

static bool ends_at_point(const struct writer *w) {
    return w->last && *w->last == '.';
}

static void put_sign(struct writer *w) {
    bool reached = w->place >= w->blanks || (w->l.zero && w->l.zero_start == w->place);
    if (w->sign_done || !reached || (is_lone_zero(w) && !ends_at_point(w))) {
        return;
    }
    if (w->l.s) {
        if (w->l.s == SIGN_BEFORE) {
            put(w, w->sign);
            w->sign_done = true;
        }
        return;
    }
    if (w->l.bracket) {
        put(w, w->sign == '+' ? ' ' : '<');
    } else if (w->sign == '-') {
        put(w, '-');
    } else if (!w->l.fill) {
        put(w, ' ');
    }
    w->sign_done = true;
}

/* A character of the number itself. */
static void put_digit(struct writer *w, enum pattern p) {
    if (*w->at == '.') {
        put(w, '.');
    } else if (w->last && w->at > w->last && p != PAT_0) {
        /* zeros that FM leaves out */
    } else if (is_lone_zero(w)) {
        if (!w->l.fill) {
            put(w, ' ');
        } else if (ends_at_point(w)) {
            put(w, '0');
        }
    } else {
        w->ended |= !*w->at;
        put(w, *w->at);
        w->digits = true;
    }
    w->at += *w->at != 0;
}

static void put_place(struct writer *w, enum pattern p) {
    const struct layout *l = &w->l;
    w->digits = false;
    put_sign(w);
    if (w->place >= w->blanks) {
        put_digit(w, p);
    } else if (l->zero && l->zero_start <= w->place) {
        put(w, '0');
        w->digits = true;
    } else if (!l->fill) {
        put(w, ' ');
    }
    i32 end = w->places + (w->blanks ? 1 : 0) + l->point;
    end = w->last && w->last == w->at ? w->place : end;
    if (w->place + 1 == end) {
        if (w->sign_done && l->bracket) {
            put(w, w->sign == '+' ? ' ' : '>');
        } else if (l->s == SIGN_BEHIND) {
            put(w, w->sign);
        }
    }
    w->place++;
}

static void put_ordinal(struct writer *w, bool upper, u8 *f) {
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    i64 len = (i64)strlen(w->number);
    if (w->l.roman || *w->number == '#' || w->sign == '-' || w->l.point || len == 0) {
        return;
    }
    i32 last = w->number[len - 1] - '0';
    if (last < 0 || last > 9) { /* a template without digits */
        *f = FAULT_TEXT_NUM;
        return;
    }
    bool teen = len > 1 && w->number[len - 2] == '1';
    const char *end = ends[teen || last < 1 || last > 3 ? 0 : last];
    put(w, (char)(upper ? end[0] - 32 : end[0]));
    put(w, (char)(upper ? end[1] - 32 : end[1]));
}

static void put_roman(struct writer *w, bool lower) {
    enum { WIDTH = 15 };
    for (i64 i = (i64)strlen(w->number); i < WIDTH && !w->l.fill; i++) {
        put(w, ' ');
    }
    for (const char *at = w->number; *at; at++) {
        put(w, (char)(lower && *at >= 'A' ? *at | 0x20 : *at));
    }
}

static void put_pattern(struct writer *w, enum pattern p, struct sv c, u8 *f) {
    switch (p) {
    case PAT_9:
    case PAT_0:
    case PAT_POINT:
        if (!w->l.roman) {
            put_place(w, p);
        }
        break;
    case PAT_COMMA:
        if (w->digits || !w->l.fill) {
            put(w, w->digits ? ',' : ' ');
        }
        break;
    case PAT_L:
        put(w, ' ');
        break;
    case PAT_ROMAN:
    case PAT_ROMAN_LOWER:
        put_roman(w, p == PAT_ROMAN_LOWER);
        break;
    case PAT_TH:
    case PAT_TH_LOWER:
        put_ordinal(w, p == PAT_TH, f);
        break;
    case PAT_MI:
    case PAT_PL: {
        char own = p == PAT_MI ? '-' : '+';
        if (w->sign == own || !w->l.fill) {
            put(w, w->sign == own ? own : ' ');
        }
        break;
    }
    case PAT_SG:
        put(w, w->sign);
        break;
    case PAT_CHAR:
        for (i64 i = 0; i < c.len; i++) {
            put(w, c.ptr[i]);
        }
        break;
    default:
        break;
    }
}

/* Where a number ends under FM: zeros behind it are not shown, but for places of 0. */
static const char *last_shown(const struct writer *w) {
    const char *point = strchr(w->number, '.'), *last = point;
    if (!w->l.fill || !w->l.point || !point) {
        return NULL;
    }
    for (const char *at = point; *at; at++) {
        last = *at != '0' && at != point ? at : last;
    }
    if (w->l.zero_end > w->blanks) {
        i64 zero = MIN_OF((i64)strlen(w->number) - 1, (i64)(w->l.zero_end - w->blanks));
        last = w->number + zero > last ? w->number + zero : last;
    }
    return last;
}

static void start_signs(struct writer *w) {
    struct layout *l = &w->l;
    if (l->roman) {
        *l = (struct layout){.roman = 1, .fill = l->fill};
        w->sign = 0;
        w->blanks = 0;
    }
    if (l->plus || l->minus) {
        w->sign_done = !(l->plus && !l->minus);
    } else {
        l->bracket = l->bracket && !(w->sign != '-' && l->fill);
        w->sign_done = w->sign == '+' && l->fill && !l->s;
        if (l->s == SIGN_BEFORE && l->whole == l->sign_places) {
            l->s = SIGN_BEHIND;
        }
    }
    w->places = l->decimals + l->whole - 1;
    w->last = last_shown(w);
    w->places += !w->sign_done && w->blanks == 0;
}

/* `text` is the number with its sign, if it has one, to exactly the layout's decimals. */
static void write_number(struct made *made, const struct layout *l, const char *text, struct sv s,
                         u8 *f) {
    char hashes[TEXT_MAX];
    struct writer w = {.out = made_room(made, 4 * s.len + 64, f), .l = *l, .sign = '+'};
    if (!w.out) {
        return;
    }
    if (*text == '-' && !l->roman) {
        w.sign = '-';
        text++;
    }
    i32 whole = (i32)strcspn(text, ".");
    if (!l->roman && whole > l->whole) {
        memset(hashes, '#', (size_t)(l->whole + l->decimals + 1));
        hashes[l->whole] = '.';
        hashes[l->whole + l->decimals + 1] = 0;
        text = hashes;
    }
    w.blanks = MAX_OF(l->whole - whole, 0);
    w.number = w.at = text;
    start_signs(&w);
    struct template t = {.s = s};
    enum pattern p;
    while (template_next(&t, &p)) {
        put_pattern(&w, p, t.c, f);
    }
    made->len = w.n;
}

/* The text as it is, for EEEE, where nothing else is written. */
static void write_plain(struct made *made, const char *text, u8 *f) {
    struct writer w = {.out = made_room(made, (i64)strlen(text) + 1, f)};
    if (w.out) {
        put_text(&w, text);
        made->len = w.n;
    }
}

/* Numbers as text */

/* 1 to 3999 in Roman digits, others as #. */
static void roman_text(i64 value, char *out) {
    static const struct {
        i32 value;
        const char *text;
    } parts[] = {{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"},
                 {90, "XC"},  {50, "L"},   {40, "XL"}, {10, "X"},   {9, "IX"},
                 {5, "V"},    {4, "IV"},   {1, "I"}};
    i32 n = 0, left = (i32)value;
    if (value < 1 || value > 3999) {
        memset(out, '#', 15);
        out[15] = 0;
        return;
    }
    for (i64 i = 0; i < COUNT_OF(parts); i++) {
        for (; left >= parts[i].value; left -= parts[i].value) {
            for (const char *at = parts[i].text; *at; at++) {
                out[n++] = *at;
            }
        }
    }
    out[n] = 0;
}

struct digits {
    char d[64]; /* of the magnitude */
    i32 count;
    i32 point; /* digits before it; may be negative or beyond the count */
};

static struct digits digits_of(i128 a, i32 scale) {
    struct digits x = {.count = 0};
    x.count = value_format_dec((i128)fn_abs_i128(a), 0, x.d);
    if (a == 0) {
        x.count = 0;
    }
    x.point = x.count - scale;
    return x;
}

/* Keeps `count` digits, half rounds away from zero; may become one longer. */
static void digits_round(struct digits *x, i32 count) {
    if (count >= x->count) {
        return;
    }
    bool up = count >= 0 && x->d[count] >= '5';
    x->count = MAX_OF(count, 0);
    for (i32 i = x->count; up && i-- > 0;) {
        up = x->d[i] == '9';
        x->d[i] = (char)(up ? '0' : x->d[i] + 1);
    }
    if (up) {
        memmove(x->d + 1, x->d, (size_t)x->count);
        x->d[0] = '1';
        x->count++;
        x->point++;
    }
}

static char digit_at(const struct digits *x, i32 i) {
    return i >= 0 && i < x->count ? x->d[i] : '0';
}

/* A decimal to `decimals` places, as text. */
static void fixed_text(bool minus, struct digits x, i32 decimals, char *out) {
    digits_round(&x, x.point + decimals);
    bool zero = true;
    for (i32 i = 0; i < x.count; i++) {
        zero = zero && x.d[i] == '0';
    }
    if (minus && !zero) {
        *out++ = '-';
    }
    if (x.point <= 0) {
        *out++ = '0';
    }
    for (i32 i = 0; i < x.point; i++) {
        *out++ = digit_at(&x, i);
    }
    if (decimals > 0) {
        *out++ = '.';
    }
    for (i32 i = 0; i < decimals; i++) {
        *out++ = digit_at(&x, x.point + i);
    }
    *out = 0;
}

/* The mantissa is rounded without a look at the exponent: 9.99 has 10.0e+00, as in PostgreSQL. */
static void exponent_text(bool minus, struct digits x, i32 decimals, char *out) {
    i32 exponent = x.count ? x.point - 1 : 0;
    x.point = x.count ? 1 : 0;
    *out++ = minus ? '-' : ' ';
    fixed_text(false, x, decimals, out);
    out += strlen(out);
    snprintf(out, 16, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
}

void mt_to_char_dec(struct made *made, i128 a, str b, i32 scale, u8 *f) {
    struct layout l;
    char text[TEXT_MAX];
    if (!read_layout(sv_of(b), &l, f)) {
        return;
    }
    struct digits x = digits_of(a, scale);
    if (l.roman) {
        i128 value = fn_rounddiv_i128(a, (i128)fn_pow10(scale));
        if (value > I32_MAX || value < I32_MIN) {
            *f = FAULT_INTEGER;
            return;
        }
        roman_text((i64)value, text);
    } else if (l.eeee) {
        exponent_text(a < 0, x, l.decimals, text);
        write_plain(made, text, f);
        return;
    } else {
        x.point += x.count ? l.shift : 0;
        l.whole += l.shift;
        fixed_text(a < 0, x, l.decimals, text);
    }
    write_number(made, &l, text, sv_of(b), f);
}

static void exponent_f64(struct made *made, const struct layout *l, f64 a, u8 *f) {
    char text[TEXT_MAX];
    if (a - a != 0) { /* neither NaN nor infinity has an exponent */
        memset(text, '#', (size_t)(l->whole + l->decimals + 6));
        text[0] = ' ';
        text[l->whole + 1] = '.';
        text[l->whole + l->decimals + 6] = 0;
    } else {
        snprintf(text, sizeof text, "%+.*e", (int)l->decimals, a);
        text[0] = text[0] == '+' ? ' ' : text[0];
        for (char *at = text; *at; at++) { /* whatever the locale's point is */
            *at = *at == ',' ? '.' : *at;
        }
    }
    write_plain(made, text, f);
}

/* An integer up to 32 bits differs from a decimal in its exponent's ties, and in what V may give.
 */
void mt_to_char_int(struct made *made, i64 a, str b, u8 *f) {
    struct layout l;
    if (!read_layout(sv_of(b), &l, f)) {
        return;
    }
    if (l.eeee) {
        exponent_f64(made, &l, (f64)a, f);
        return;
    }
    mt_to_char_dec(made, a, b, 0, f);
}

/* Floats show as many digits as they surely have: 15, or 6 of a real. */
static void to_char_float(struct made *made, f64 a, str b, i32 digits, u8 *f) {
    struct layout l;
    char text[TEXT_MAX];
    if (!read_layout(sv_of(b), &l, f)) {
        return;
    }
    if (l.eeee) {
        exponent_f64(made, &l, a, f);
        return;
    }
    if (l.roman) {
        bool fits = a > -2e9 && a < 2e9;
        roman_text(fits ? (i64)__builtin_rint(a) : 0, text);
        write_number(made, &l, text, sv_of(b), f);
        return;
    }
    f64 power = 1;
    for (i32 i = 0; i < l.shift; i++) {
        power *= 10;
    }
    a *= power;
    l.whole += l.shift;
    bool special = a - a != 0;
    const char *word = a != a ? "NaN" : a > 0 ? "Infinity" : "-Infinity";
    i32 whole = special ? (i32)strlen(word) - (a < 0)
                        : snprintf(text, sizeof text, "%.0f", __builtin_fabs(a));
    if (special) {
        snprintf(text, sizeof text, "%s", word);
        l.decimals = MAX_OF(MIN_OF(l.decimals, digits - whole), 0);
    } else {
        l.decimals = MAX_OF(MIN_OF(l.decimals, digits - whole), 0);
        snprintf(text, sizeof text, "%.*f", (int)l.decimals, a);
        for (char *at = text; *at; at++) {
            *at = *at == ',' ? '.' : *at;
        }
    }
    write_number(made, &l, text, sv_of(b), f);
}

void mt_to_char_f64(struct made *made, f64 a, str b, u8 *f) {
    to_char_float(made, a, b, 15, f);
}

void mt_to_char_real(struct made *made, f64 a, str b, u8 *f) {
    to_char_float(made, a, b, 6, f);
}

/* Reading */

struct number_reader {
    struct sv s;
    i64 at;
    struct layout l;
    char sign; /* ' ' until one is read */
    char number[TEXT_MAX];
    i32 len;
    i32 whole, decimals; /* digits read */
    bool point;
};

static bool at_end(const struct number_reader *r) {
    return r->at >= r->s.len;
}

static char now(const struct number_reader *r) {
    return at_end(r) ? 0 : r->s.ptr[r->at];
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void read_sign_before(struct number_reader *r) {
    char c = now(r);
    if (c == '-' || c == '+' || (c == '<' && r->l.bracket)) {
        r->sign = c == '+' ? '+' : '-';
        r->at++;
    }
}

/* A sign behind what was read: right behind it for S, else instead of a digit. */
static void read_sign_behind(struct number_reader *r, bool read) {
    if (r->l.s) {
        char next = r->at + 1 < r->s.len ? r->s.ptr[r->at + 1] : '0';
        if (read && (next == '-' || next == '+')) {
            r->sign = next;
            r->at++;
        }
    } else if (!read && (r->l.plus || r->l.minus) && (now(r) == '-' || now(r) == '+')) {
        r->sign = now(r);
    }
}

/* Reads a digit or the point. Leaves the last character read to be stepped over. */
static void read_place(struct number_reader *r, enum pattern p) {
    bool read = false;
    r->at += now(r) == ' ';
    if (at_end(r)) {
        return;
    }
    if (r->sign == ' ' && p != PAT_POINT && r->whole + r->decimals == 0) {
        read_sign_before(r);
    }
    if (at_end(r)) {
        return;
    }
    if (is_digit(now(r))) {
        if ((r->point && r->decimals == r->l.decimals) || r->len > TEXT_MAX - 4) {
            return;
        }
        r->number[r->len++] = now(r);
        *(r->point ? &r->decimals : &r->whole) += 1;
        read = true;
    } else if (r->l.point && !r->point && now(r) == '.') {
        r->number[r->len++] = '.';
        r->point = read = true;
    }
    if (r->sign == ' ' && r->whole + r->decimals > 0) {
        read_sign_behind(r, read);
    }
}

/* Up to n characters that are no part of a number. */
static void skip_others(struct number_reader *r, i32 n) {
    while (n-- > 0 && !at_end(r) && !(is_digit(now(r)) || strchr(".,+-", now(r)))) {
        r->at += char_bytes(r->s, r->at);
    }
}

static void read_pattern(struct number_reader *r, enum pattern p) {
    switch (p) {
    case PAT_9:
    case PAT_0:
    case PAT_POINT:
        read_place(r, p);
        r->at++;
        break;
    case PAT_COMMA:
        r->at += now(r) == ',' && !r->l.fill;
        break;
    case PAT_L:
        skip_others(r, 1);
        break;
    case PAT_TH:
    case PAT_TH_LOWER:
        if (!r->l.point) {
            skip_others(r, 2);
        }
        break;
    case PAT_MI:
    case PAT_PL:
    case PAT_SG: {
        bool sign = (now(r) == '-' && p != PAT_PL) || (now(r) == '+' && p != PAT_MI);
        if (sign) {
            r->sign = now(r);
            r->at++;
        } else {
            skip_others(r, 1);
        }
        break;
    }
    case PAT_CHAR:
        r->at += char_bytes(r->s, r->at);
        break;
    default:
        break;
    }
}

i128 fn_to_number(str a, str format, i32 scale, u8 *f) {
    struct number_reader r = {.s = sv_of(a), .sign = ' '};
    struct template t = {.s = sv_of(format)};
    enum pattern p;
    i128 value = 0;
    if (!read_layout(t.s, &r.l, f)) {
        return 0;
    }
    if (r.l.eeee || r.l.roman) {
        *f = FAULT_TO_CHAR;
        return 0;
    }
    r.number[r.len++] = '+';
    while (template_next(&t, &p) && !at_end(&r)) {
        read_pattern(&r, p);
    }
    if (r.number[r.len - 1] == '.') {
        r.len--;
    }
    if (r.whole > r.l.whole + r.l.shift) {
        i32 lead = 0; /* zeros in front do not count */
        while (lead < r.whole && r.number[1 + lead] == '0') {
            lead++;
        }
        if (r.whole - lead > r.l.whole + r.l.shift) {
            *f = FAULT_DECIMAL;
            return 0;
        }
    }
    u8 fault = r.whole + r.decimals > 0 /* V moves the point back */
                   ? value_parse_dec((struct sv){r.number, r.len}, scale - r.l.shift, &value)
                   : FAULT_TEXT_NUM;
    *f = fault ? fault : *f;
    return r.sign == '-' ? -value : value;
}
