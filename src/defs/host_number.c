/* host_number.c: to_char and to_number of numbers.
 *
 * A template such as S999G990D00 says where digits, separators and the sign go. The number is
 * rounded to the template's decimals and its digits are laid into the places from the right; places
 * left of the number are blank, or zero from the first 0 on; a number too long shows as #. */
#include "defs/host_ops.h"

#include "defs/types.h"
#include "defs/value.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"

enum sign_form { SIGN_PLAIN, SIGN_S_FRONT, SIGN_S_BACK, SIGN_MI, SIGN_PL, SIGN_SG, SIGN_PR };

struct layout {
    i32 whole, decimals; /* places */
    i32 zero_from;       /* first whole place that shows zeros; whole = none */
    i32 last_zero;       /* decimals that FM keeps */
    i32 shift;           /* V: places behind it, by which the number is multiplied */
    u8 sign;
    b8 fill; /* FM */
    b8 point;
    b8 multiplies;  /* V */
    b8 bad, points; /* several points */
};

static bool begins(struct sv s, i64 at, const char *word) {
    i64 len = (i64)strlen(word);
    return s.len - at >= len && sv_eq_nocase((struct sv){s.ptr + at, len}, sv_from(word));
}

static struct layout read_layout(struct sv s) {
    struct layout l = {.zero_from = -1};
    for (i64 i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (begins(s, i, "FM")) {
            l.fill = 1;
            i++;
        } else if (begins(s, i, "MI") || begins(s, i, "PL") || begins(s, i, "SG") ||
                   begins(s, i, "PR")) {
            l.sign = (u8)(begins(s, i, "MI")   ? SIGN_MI
                          : begins(s, i, "PL") ? SIGN_PL
                          : begins(s, i, "SG") ? SIGN_SG
                                               : SIGN_PR);
            i++;
        } else if (c == 's' || c == 'S') {
            l.sign = l.whole + l.decimals + l.point ? SIGN_S_BACK : SIGN_S_FRONT;
        } else if (c == '9' || c == '0') {
            if (l.point) {
                l.decimals++;
                l.last_zero = c == '0' ? l.decimals : l.last_zero;
            } else {
                l.zero_from = c == '0' && l.zero_from < 0 ? l.whole : l.zero_from;
                l.whole++;
                l.shift += l.multiplies;
            }
        } else if (c == '.' || c == 'd' || c == 'D') {
            l.points |= l.point;
            l.point = 1;
        } else if (c == 'v' || c == 'V') {
            l.multiplies = 1;
        } else if (begins(s, i, "EEEE") || begins(s, i, "RN")) {
            l.bad = 1;
        } else if (begins(s, i, "TH")) {
            i++;
        } else if (c == '"') {
            while (i + 1 < s.len && s.ptr[i + 1] != '"') {
                i++;
            }
            i++;
        }
    }
    l.zero_from = l.zero_from < 0 ? l.whole : l.zero_from;
    l.bad |= l.multiplies && (l.point || l.shift > 18);
    return l;
}

struct number_text {
    char whole[48];
    i32 whole_len; /* 0: nothing before the point */
    char decimals[48];
    bool minus, too_long;
};

struct number_writer {
    u8 *out;
    i64 n;
    const struct layout *l;
    const struct number_text *t;
    i32 place, decimal;
    bool begun; /* sign and first digit are written */
};

static void put(struct number_writer *w, char c) {
    w->out[w->n++] = (u8)c;
}

/* The sign that stands right before the first digit. */
static void begin_digits(struct number_writer *w) {
    const struct layout *l = w->l;
    if (w->begun) {
        return;
    }
    w->begun = true;
    if (l->sign == SIGN_PLAIN) {
        if (w->t->minus || !l->fill) {
            put(w, w->t->minus ? '-' : ' ');
        }
    } else if (l->sign == SIGN_S_FRONT) {
        put(w, w->t->minus ? '-' : '+');
    } else if (l->sign == SIGN_PR && (w->t->minus || !l->fill)) {
        put(w, w->t->minus ? '<' : ' ');
    }
}

static void put_place(struct number_writer *w) {
    const struct layout *l = w->l;
    const struct number_text *t = w->t;
    i32 place = w->place++;
    i32 index = place - (l->whole - t->whole_len);
    if (t->too_long) {
        begin_digits(w);
        put(w, '#');
    } else if (index >= 0) {
        begin_digits(w);
        put(w, t->whole[index]);
    } else if (place >= l->zero_from) {
        begin_digits(w);
        put(w, '0');
    } else if (!l->fill) {
        put(w, ' ');
    }
}

/* Decimals that FM leaves out: zeros at the end in places of 9. */
static i32 shown_decimals(const struct layout *l, const struct number_text *t) {
    i32 count = l->decimals;
    while (l->fill && !t->too_long && count > l->last_zero && t->decimals[count - 1] == '0') {
        count--;
    }
    return count;
}

static void put_literal(struct number_writer *w, struct sv s, i64 *io_at) {
    i64 i = *io_at;
    const struct number_text *t = w->t;
    char c = s.ptr[i];
    if (begins(s, i, "FM")) {
        i++;
    } else if (begins(s, i, "MI")) {
        if (t->minus || !w->l->fill) {
            put(w, t->minus ? '-' : ' ');
        }
        i++;
    } else if (begins(s, i, "PL")) {
        if (!t->minus || !w->l->fill) {
            put(w, t->minus ? ' ' : '+');
        }
        i++;
    } else if (begins(s, i, "SG")) {
        put(w, t->minus ? '-' : '+');
        i++;
    } else if (begins(s, i, "PR")) {
        if (t->minus || !w->l->fill) {
            put(w, t->minus ? '>' : ' ');
        }
        i++;
    } else if (begins(s, i, "TH")) {
        static const char *const ends[] = {"th", "st", "nd", "rd"};
        i32 last = t->whole_len ? t->whole[t->whole_len - 1] - '0' : 0;
        bool teen = t->whole_len > 1 && t->whole[t->whole_len - 2] == '1';
        const char *end = teen || last > 3 ? ends[0] : ends[last];
        for (i32 k = 0; k < 2 && !t->minus; k++) {
            put(w, s.ptr[i] == 'T' ? (char)(end[k] - 32) : end[k]);
        }
        i++;
    } else if (c == 'l' || c == 'L') {
        put(w, ' ');
    } else if (c == '"') {
        for (i++; i < s.len && s.ptr[i] != '"'; i++) {
            put(w, s.ptr[i]);
        }
    } else {
        put(w, c);
    }
    *io_at = i;
}

static void write_number(struct made *made, const struct layout *l, const struct number_text *t,
                         struct sv s, u8 *f) {
    struct number_writer w = {.out = made_room(made, 3 * s.len + 64, f), .l = l, .t = t};
    i32 decimals = shown_decimals(l, t);
    for (i64 i = 0; w.out && i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '9' || c == '0') {
            if (w.place < l->whole) {
                put_place(&w);
            } else if (w.decimal++ < decimals) {
                begin_digits(&w);
                put(&w, t->too_long ? '#' : t->decimals[w.decimal - 1]);
            }
        } else if (c == ',' || c == 'g' || c == 'G') {
            if (w.begun) {
                put(&w, ',');
            } else if (!l->fill) {
                put(&w, ' ');
            }
        } else if (c == '.' || c == 'd' || c == 'D') {
            begin_digits(&w);
            put(&w, '.');
        } else if (c == 'v' || c == 'V') {
            continue;
        } else if (c == 's' || c == 'S') {
            if (l->sign == SIGN_S_BACK) {
                put(&w, t->minus ? '-' : '+');
            }
        } else {
            put_literal(&w, s, &i);
        }
    }
    made->len = w.n;
}

/* RN: 1 to 3999 in Roman digits, 15 places wide. False when the template says more than that. */
static bool write_roman(struct made *made, i128 a, i32 scale, struct sv s, u8 *f) {
    static const struct {
        i32 value;
        const char *text;
    } parts[] = {{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"},
                 {90, "XC"},  {50, "L"},   {40, "XL"}, {10, "X"},   {9, "IX"},
                 {5, "V"},    {4, "IV"},   {1, "I"}};
    enum { WIDTH = 15 };
    bool fill = begins(s, 0, "FM");
    struct sv rest = fill ? (struct sv){s.ptr + 2, s.len - 2} : s;
    bool lower = sv_eq(rest, SV("rn"));
    if (!lower && !sv_eq(rest, SV("RN"))) {
        return false;
    }
    i128 value = fn_rounddiv_i128(a, (i128)fn_pow10(scale));
    char text[WIDTH + 1];
    i32 n = 0;
    if (value < 1 || value > 3999) {
        memset(text, '#', WIDTH);
        n = WIDTH;
    } else {
        i32 left = (i32)value;
        for (i64 i = 0; i < COUNT_OF(parts); i++) {
            for (; left >= parts[i].value; left -= parts[i].value) {
                for (const char *at = parts[i].text; *at; at++) {
                    text[n++] = (char)(lower ? *at + 32 : *at);
                }
            }
        }
    }
    u8 *out = made_room(made, WIDTH, f);
    if (out) {
        i32 blank = fill ? 0 : WIDTH - n;
        memset(out, ' ', (size_t)blank);
        memcpy(out + blank, text, (size_t)n);
        made->len = blank + n;
    }
    return true;
}

void mt_to_char_dec(struct made *made, i128 a, str b, i32 scale, u8 *f) {
    struct layout l = read_layout(sv_of(b));
    if (l.bad && write_roman(made, a, scale, sv_of(b), f)) {
        return;
    }
    struct number_text t = {.minus = a < 0};
    if (l.bad || l.points || l.decimals > 38) {
        *f = l.points ? FAULT_TO_CHAR_POINTS : FAULT_TO_CHAR;
        return;
    }
    u128 size = fn_abs_i128(a);
    i32 up = l.shift - scale; /* V moves the point */
    if (up > 0 && size > (u128)fn_pow10(38 - up)) {
        *f = FAULT_TO_CHAR;
        return;
    }
    size = up > 0 ? size * (u128)fn_pow10(up) : size;
    scale = MAX_OF(scale - l.shift, 0);
    if (scale > l.decimals) {
        size = (u128)fn_rounddiv_i128((i128)size, (i128)fn_pow10(scale - l.decimals));
    }
    i32 kept = MIN_OF(scale, l.decimals);
    char digits[VALUE_TEXT_MAX];
    i32 len = value_format_dec((i128)size, kept, digits);
    i32 whole = kept ? len - kept - 1 : len;
    bool zero = whole == 1 && digits[0] == '0';
    t.minus = t.minus && size != 0;
    t.whole_len = zero && l.point && l.decimals ? 0 : whole;
    memcpy(t.whole, digits, (size_t)whole);
    memset(t.decimals, '0', sizeof t.decimals);
    memcpy(t.decimals, digits + whole + 1, (size_t)kept);
    t.too_long = t.whole_len > l.whole;
    t.whole_len = t.too_long ? 0 : t.whole_len;
    write_number(made, &l, &t, sv_of(b), f);
}

/* A double shows 15 digits at most: what is beyond is zeros. */
void mt_to_char_f64(struct made *made, f64 a, str b, u8 *f) {
    u8 fault = FAULT_NONE;
    i32 scale = 15;
    i128 value = fn_dec_f64(a, scale, &fault);
    if (fault) {
        scale = 0;
        fault = FAULT_NONE;
        value = fn_dec_f64(a, 0, &fault);
    }
    if (fault) {
        *f = FAULT_TO_CHAR;
        return;
    }
    mt_to_char_dec(made, value, b, scale, f);
}

i128 fn_to_number(str a, str format, i32 scale, u8 *f) {
    struct sv s = sv_of(a);
    struct layout l = read_layout(sv_of(format));
    char digits[64];
    i32 n = 0;
    bool minus = false, point = false, any = false;
    digits[n++] = '+';
    for (i64 i = 0; i < s.len && n < 60; i++) {
        char c = s.ptr[i];
        if (c == '-' || c == '<') {
            minus = true;
        } else if (c == '.' && l.point && !point) {
            digits[n++] = c;
            point = true;
        } else if ((u8)(c - '0') < 10) {
            digits[n++] = c;
            any = true;
        }
    }
    i128 value = 0;
    u8 fault = l.points ? FAULT_TO_CHAR_POINTS
               : l.bad  ? FAULT_TO_CHAR
               : any    ? value_parse_dec((struct sv){digits, n}, scale, &value)
                        : FAULT_TEXT_NUM;
    *f = fault ? fault : *f;
    return minus ? -value : value;
}
