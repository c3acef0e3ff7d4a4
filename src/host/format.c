/* format.c: to_char, to_date and to_timestamp of dates, times and intervals.
 *
 * A template is read pattern by pattern, the longest first, so that MONTH is not MON and TH; what
 * is no pattern stands for itself, as does quoted text. The case of a name's pattern is the case of
 * the name. Reading goes by the same table: numbers take as many digits as their pattern has, or
 * all there are when a separator follows. */
#include "host/bodies.h"
#include <stdio.h>

#include "base/zone.h"

#include "defs/types.h"
#include "defs/value.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_time.h"
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"
#include "defs/fn_format.h"
#include "defs/fn_to_char.h"
#include "host/to_char.h"

static const struct {
    const char *text;
    u8 pattern;
    u8 digits; /* a number of so many; 0 = no number */
} patterns[] = {
    {"A.D.", P_AD_DOTS, 0}, {"A.M.", P_AM_DOTS, 0}, {"B.C.", P_AD_DOTS, 0}, {"P.M.", P_AM_DOTS, 0},
    {"AD", P_AD, 0},        {"AM", P_AM, 0},        {"BC", P_AD, 0},        {"PM", P_AM, 0},
    {"CC", P_CC, 2},        {"DAY", P_DAY, 0},      {"DDD", P_DDD, 3},      {"DD", P_DD, 2},
    {"DY", P_DY, 0},        {"D", P_D, 1},          {"HH24", P_HH24, 2},    {"HH12", P_HH12, 2},
    {"FF1", P_FF, 1},       {"FF2", P_FF, 2},       {"FF3", P_FF, 3},       {"FF4", P_FF, 4},
    {"FF5", P_FF, 5},       {"FF6", P_FF, 6},       {"HH", P_HH12, 2},      {"IDDD", P_IDDD, 3},
    {"ID", P_ID, 1},        {"IW", P_IW, 2},        {"IYYY", P_IYYY, 4},    {"IYY", P_IYY, 3},
    {"IY", P_IY, 2},        {"I", P_I, 1},          {"J", P_J, 7},          {"MI", P_MI, 2},
    {"MM", P_MM, 2},        {"MONTH", P_MONTH, 0},  {"MON", P_MON, 0},      {"MS", P_MS, 3},
    {"OF", P_OF, 0},        {"Q", P_Q, 1},          {"RM", P_RM, 0},        {"SSSSS", P_SSSS, 5},
    {"SSSS", P_SSSS, 5},    {"SS", P_SS, 2},        {"TZH", P_TZH, 2},      {"TZM", P_TZM, 2},
    {"TZ", P_TZ, 0},        {"US", P_US, 6},        {"WW", P_WW, 2},        {"W", P_W, 1},
    {"Y,YYY", P_Y_YYY, 4},  {"YYYY", P_YYYY, 4},    {"YYY", P_YYY, 3},      {"YY", P_YY, 2},
    {"Y", P_Y, 1},
};

struct template {
    struct sv s;
    i64 at;
    b8 quoted; /* inside of "" */
};
struct node { /* what comes next in a template */
    u8 pattern;
    i32 index;    /* into patterns */
    b8 fill;      /* FM */
    b8 exact;     /* FX: from here on a blank or separator is one character of the text */
    b8 name_fill; /* FM or TM: names have no blanks behind them */
    b8 th;        /* 1 = TH, 2 = th */
    b8 quoted;    /* text that stands in quotes */
    struct sv text;
};

static bool prefix_nocase(struct sv s, i64 at, const char *word) {
    i64 len = (i64)strlen(word);
    return s.len - at >= len && sv_eq_nocase((struct sv){s.ptr + at, len}, sv_from(word));
}

static bool begins(struct sv s, i64 at, const char *word) {
    i64 len = (i64)strlen(word);
    return s.len - at >= len && memcmp(s.ptr + at, word, (size_t)len) == 0;
}

/* A pattern in capitals, in small letters, or a name that begins with a capital. */
static bool is_pattern(struct sv s, i64 at, i32 index) {
    const char *word = patterns[index].text;
    if ((s.ptr[at] | 32) != (word[0] | 32)) { /* most are no patterns */
        return false;
    }
    i64 len = (i64)strlen(word);
    u8 p = patterns[index].pattern;
    bool name = p == P_MONTH || p == P_MON || p == P_DAY || p == P_DY;
    if (!prefix_nocase(s, at, word) || begins(s, at, word)) {
        return prefix_nocase(s, at, word);
    }
    for (i64 i = name && s.ptr[at] < 'a' ? 1 : 0; i < len; i++) {
        if (s.ptr[at + i] >= 'A' && s.ptr[at + i] <= 'Z') {
            return false;
        }
    }
    return true;
}

/* A character of the template that stands for itself. */
static bool next_char(struct template *t, struct node *out) {
    i64 end = t->at + 1;
    while (end < t->s.len && ((u8)t->s.ptr[end] & 0xc0) == 0x80) {
        end++;
    }
    out->quoted = t->quoted;
    out->text = (struct sv){t->s.ptr + t->at, end - t->at};
    t->at = end;
    return true;
}

/* Up to the next character that quotes keep, or to their end; false: they ended. A backslash keeps
 * the next character from ending them. */
static bool next_quoted(struct template *t, struct node *out) {
    if (t->at < t->s.len && t->s.ptr[t->at] == '"') {
        t->at++;
        t->quoted = 0;
        return false;
    }
    t->at += t->at + 1 < t->s.len && t->s.ptr[t->at] == '\\';
    return t->at < t->s.len && next_char(t, out);
}

/* FM, FX and TM, which change what follows. */
static void next_prefixes(struct template *t, struct node *out) {
    while (begins(t->s, t->at, "FM") || begins(t->s, t->at, "FX") || begins(t->s, t->at, "TM") ||
           begins(t->s, t->at, "fm") || begins(t->s, t->at, "fx") || begins(t->s, t->at, "tm")) {
        bool fill = (t->s.ptr[t->at] | 32) == 'f' && (t->s.ptr[t->at + 1] | 32) == 'm';
        out->fill |= fill;
        out->name_fill |= fill || (t->s.ptr[t->at] | 32) == 't';
        out->exact |= (t->s.ptr[t->at + 1] | 32) == 'x';
        t->at += 2;
    }
}

static bool next_pattern(struct template *t, struct node *out) {
    for (i32 i = 0; i < (i32)COUNT_OF(patterns); i++) {
        if (is_pattern(t->s, t->at, i)) {
            i64 len = (i64)strlen(patterns[i].text);
            out->pattern = patterns[i].pattern;
            out->index = i;
            out->text = (struct sv){t->s.ptr + t->at, len};
            t->at += len;
            if (begins(t->s, t->at, "TH") || begins(t->s, t->at, "th")) {
                out->th = t->s.ptr[t->at] == 'T' ? 1 : 2;
                t->at += 2;
            } else if (begins(t->s, t->at, "SP")) {
                t->at += 2; /* spelled out: PostgreSQL knows it and does nothing */
            }
            return true;
        }
    }
    return false;
}

static bool next_node(struct template *t, struct node *out) {
    do {
        *out = (struct node){.pattern = P_NONE};
        if (!t->quoted) {
            next_prefixes(t, out);
            if (t->at >= t->s.len) {
                return false;
            }
            if (t->s.ptr[t->at] != '"') {
                t->at += begins(t->s, t->at, "\\\"");
                return next_pattern(t, out) || next_char(t, out);
            }
            t->at++;
            t->quoted = 1;
        }
        if (next_quoted(t, out)) {
            return true;
        }
    } while (t->at < t->s.len);
    return false;
}

/* The same unless it is asked to stop, for templates of any length. */
static bool template_next(struct template *t, struct node *out) {
    i64 from = t->at;
    return next_node(t, out) && !stop_due((u64)from, (u64)t->at);
}

/* writing: fn_to_char.h */

/* What only a point in time has. */
static bool is_of_moments(u8 pattern) {
    static const u8 list[] = {P_AD, P_AD_DOTS, P_MONTH, P_MON, P_DAY, P_DY,
                              P_D,  P_ID,      P_TZ,    P_TZH, P_TZM, P_OF};
    return memchr(list, pattern, sizeof list) != NULL;
}

/* What of a node is written: see fn_to_char.h. */
static struct to_char_node plain_node(const struct node *node) {
    struct to_char_node to = {.pattern = node->pattern,
                              .digits = patterns[node->index].digits,
                              .fill = node->fill,
                              .name_fill = node->name_fill,
                              .th = node->th,
                              .len = (u8)(node->pattern == P_NONE ? MIN_OF(node->text.len, 4) : 0)};
    bool dots = node->pattern == P_AM_DOTS || node->pattern == P_AD_DOTS;
    bool small = node->text.len > 0 && (node->text.ptr[0] & 32);
    bool first = node->text.len > 1 && (node->text.ptr[1] & 32) && !dots;
    to.letters = small ? LETTERS_SMALL : first ? LETTERS_AS_NAMED : LETTERS_CAPITAL;
    memcpy(to.text, node->text.ptr, to.len);
    return to;
}

/* Templates are mostly the same from row to row: each thread keeps the last one taken apart. */
struct nodes {
    struct template t; /* what follows behind those that are kept */
    i32 count, at;
    const struct to_char_node *kept;
};

static struct nodes nodes_of(str format) {
    enum { KEPT_BYTES = 128 };
    static _Thread_local struct {
        i64 len;
        i32 count;
        char text[KEPT_BYTES];
        struct to_char_node nodes[KEPT_BYTES]; /* a node is a byte of the template, or more */
    } last;
    struct nodes all = {.t = {sv_of(format), 0, 0}};
    struct sv s = all.t.s;
    struct node node;
    if (s.len > KEPT_BYTES || s.len == 0) {
        return all;
    }
    if (last.len != s.len || memcmp(last.text, s.ptr, (size_t)s.len) != 0) {
        memcpy(last.text, s.ptr, (size_t)s.len);
        last.len = s.len;
        last.count = 0;
        while (next_node(&all.t, &node)) {
            last.nodes[last.count++] = plain_node(&node);
        }
    }
    all.t.at = s.len;
    all.kept = last.nodes;
    all.count = last.count;
    return all;
}

static bool nodes_next(struct nodes *all, struct to_char_node *out) {
    struct node node;
    if (all->at < all->count) {
        *out = all->kept[all->at++];
        return true;
    }
    if (!template_next(&all->t, &node)) {
        return false;
    }
    *out = plain_node(&node);
    return true;
}

static void write_moment(struct made *made, const struct to_char_moment *m, str format, u8 *f) {
    struct nodes all = nodes_of(format);
    u8 *out = made_room(made, 16 * (i64)format.len + 32, f);
    struct to_char_node node;
    i64 n = 0;
    while (out && nodes_next(&all, &node)) {
        if (m->is_interval && is_of_moments(node.pattern)) {
            *f = FAULT_TO_CHAR_INTERVAL;
            return;
        }
        n = fn_to_char_node(out, n, m, &node);
    }
    made->len = n;
}

static void to_char_moment(struct made *made, i64 a, str b, struct sv zone, i32 east, u8 *f) {
    if (fn_ts_infinite(a)) {
        u8 *out = made_room(made, 9, f);
        made->len = out ? fn_infinity_text(out, a < 0) : 0;
        return;
    }
    struct to_char_moment m = fn_to_char_moment(a);
    m.zone = (const u8 *)zone.ptr;
    m.zone_len = (u32)zone.len;
    m.east = east;
    write_moment(made, &m, b, f);
}

void mt_to_char_ts(struct made *made, i64 a, str b, u8 *f) {
    to_char_moment(made, a, b, SV(""), 0, f);
}

/* A moment as the clocks of a zone show it. */
void mt_to_char_tz(struct made *made, i64 a, str b, i32 zone, u8 *f) {
    i32 east = fn_ts_infinite(a) ? 0 : zone_offset(zone, fn_floor_div(a, SECOND_US));
    i64 local = fn_ts_infinite(a) ? a : fn_ts_zone(a, east, f);
    char offset[16] = "UTC";
    const char *word = offset;
    if (zone_is_named(zone)) {
        word = fn_ts_infinite(a) ? "" : zone_word(zone, fn_floor_div(a, SECOND_US));
    } else if (zone != 0) { /* an offset is called by its digits */
        i32 size = zone < 0 ? -zone : zone;
        int len = snprintf(offset, sizeof offset, "%c%02d", zone < 0 ? '-' : '+', size / 3600);
        if (size % 3600) {
            snprintf(offset + len, sizeof offset - (size_t)len, ":%02d", size / 60 % 60);
        }
    }
    to_char_moment(made, local, b, sv_from(word), east, f);
}

void mt_to_char_iv(struct made *made, i128 a, str b, u8 *f) {
    fn_span x = fn_iv_parts(a);
    struct to_char_moment m = {.year = x.months / 12,
                               .month = x.months % 12,
                               .day = x.days,
                               .hour = x.us / HOUR_US,
                               .minute = (i32)(x.us / MINUTE_US % 60),
                               .second = (i32)(x.us / SECOND_US % 60),
                               .us = (i32)(x.us % SECOND_US),
                               .is_interval = 1};
    write_moment(made, &m, b, f);
}

bool to_char_names_zone(str format) {
    struct template t = {sv_of(format), 0, 0};
    struct node node;
    bool names = false;
    while (template_next(&t, &node)) {
        names = names || node.pattern == P_TZ || node.pattern == P_TZH || node.pattern == P_TZM ||
                node.pattern == P_OF;
    }
    return names;
}

struct sv to_char_program(struct arena *arena, str format) {
    struct template t = {sv_of(format), 0, 0};
    VEC(struct to_char_node) nodes = {0};
    struct node node;
    while (template_next(&t, &node)) {
        struct to_char_node plain = plain_node(&node);
        VEC_PUSH(arena, &nodes, plain);
    }
    struct to_char_node end = {.pattern = P_END};
    VEC_PUSH(arena, &nodes, end);
    return (struct sv){(const char *)nodes.items, nodes.count * (i64)sizeof end};
}

/* reading */

/* Fields as they are read; 0 = not given, as in PostgreSQL, where 0 never counts. */
struct reader {
    struct sv s;
    i64 at;
    i32 year, month, day, doy, week, week_of_month, weekday; /* weekday: Sunday is 1 */
    i32 hour, minute, second, ms, us, century, julian, seconds_of_day;
    bool short_year; /* at most two digits were asked for */
    bool bc, pm, hour12;
    bool gregorian, iso; /* conventions used */
    i32 zone_hours, zone_minutes;
    i32 zone_sign;    /* 0 = no zone was given */
    i64 skipped;      /* characters stepped over that the template did not ask for */
    bool exact;       /* none may be */
    i32 us_precision; /* FF1 to FF6: digits to round to; 0 = none */
    u8 fault;
};

static bool digit_at(const struct reader *r, i64 at) {
    return at < r->s.len && (u8)(r->s.ptr[at] - '0') < 10;
}

static bool read_number(struct reader *r, i32 width, i32 *out, i32 *out_digits) {
    i64 value = 0;
    i32 digits = 0;
    while (r->at < r->s.len && r->s.ptr[r->at] == ' ') {
        r->at++;
    }
    bool minus = r->at < r->s.len && (r->s.ptr[r->at] == '-' || r->s.ptr[r->at] == '+');
    i64 sign = minus && r->s.ptr[r->at] == '-' ? -1 : 1;
    r->at += minus;
    for (; digit_at(r, r->at) && digits + minus < width; r->at++, digits++) {
        value = MIN_OF(value * 10 + (r->s.ptr[r->at] - '0'), I32_MAX);
    }
    *out = (i32)(sign * value);
    *out_digits = digits;
    return digits > 0;
}

static bool read_name(struct reader *r, const u8 names[][10], i32 count, bool whole, i32 *out) {
    for (i32 i = 0; i < count; i++) {
        struct sv name = sv_from((const char *)names[i]);
        i64 len = whole ? name.len : 3;
        if (r->s.len - r->at >= len &&
            sv_eq_nocase((struct sv){r->s.ptr + r->at, len}, (struct sv){name.ptr, len})) {
            r->at += len;
            *out = i + 1;
            return true;
        }
    }
    return false;
}

static bool read_mark(struct reader *r, u8 pattern) {
    static const char *const marks[] = {"A.D.", "B.C.", "A.M.", "P.M.", "AD", "BC", "AM", "PM"};
    for (i32 i = 0; i < 8; i++) {
        if (prefix_nocase(r->s, r->at, marks[i])) {
            r->at += (i64)strlen(marks[i]);
            bool era = pattern == P_AD || pattern == P_AD_DOTS;
            if (era) {
                r->bc = i % 2 == 1;
            } else {
                r->pm = i % 2 == 1;
                r->hour12 = true;
            }
            return true;
        }
    }
    return false;
}

/* Two values for one field must agree. */
static void set_field(struct reader *r, i32 *field, i32 value) {
    r->fault = *field != 0 && *field != value ? FAULT_TO_DATE : r->fault;
    *field = value;
}

/* A year written with few digits is the one nearest to 2020. */
static i32 whole_year(i32 year, i32 digits) {
    if (digits > 3) {
        return year;
    }
    return year < 70     ? year + 2000
           : year < 100  ? year + 1900
           : year < 520  ? year + 2000
           : year < 1000 ? year + 1000
                         : year;
}

static void set_date_field(struct reader *r, u8 pattern, i32 value, i32 digits) {
    switch (pattern) {
    case P_YYYY:
    case P_IYYY:
    case P_Y_YYY:
        set_field(r, &r->year, value);
        break;
    case P_YYY:
    case P_IYY:
    case P_YY:
    case P_IY:
    case P_Y:
    case P_I:
        r->short_year = pattern != P_YYY && pattern != P_IYY;
        set_field(r, &r->year, whole_year(value, digits));
        break;
    case P_MM:
        set_field(r, &r->month, value);
        break;
    case P_DD:
        set_field(r, &r->day, value);
        break;
    case P_DDD:
    case P_IDDD:
        set_field(r, &r->doy, value);
        break;
    case P_D:
        set_field(r, &r->weekday, value);
        break;
    case P_ID:
        set_field(r, &r->weekday, value % 7 + 1);
        break;
    case P_WW:
    case P_IW:
        set_field(r, &r->week, value);
        break;
    case P_W:
        set_field(r, &r->week_of_month, value);
        break;
    case P_J:
        set_field(r, &r->julian, value);
        break;
    case P_CC:
        set_field(r, &r->century, value);
        break;
    default:
        break; /* a quarter is read and not used */
    }
}

/* A number into its field. */
static void set_number(struct reader *r, u8 pattern, i32 value, i32 digits) {
    switch (pattern) {
    case P_HH24:
    case P_HH12:
        set_field(r, &r->hour, value);
        r->hour12 |= pattern == P_HH12;
        break;
    case P_MI:
        set_field(r, &r->minute, value);
        break;
    case P_SS:
        set_field(r, &r->second, value);
        break;
    case P_MS:
        for (; digits < 3; digits++) {
            value *= 10;
        }
        r->fault = value > 999 || value < 0 ? FAULT_FIELD_RANGE : r->fault;
        set_field(r, &r->ms, MIN_OF(value, 999));
        break;
    case P_US:
    case P_FF:
        for (; digits < 6; digits++) {
            value *= 10;
        }
        r->fault = value > 999999 || value < 0 ? FAULT_FIELD_RANGE : r->fault;
        set_field(r, &r->us, value);
        break;
    case P_SSSS:
        set_field(r, &r->seconds_of_day, value);
        break;
    case P_TZH:
        r->zone_hours = value;
        break;
    case P_TZM:
        r->zone_sign = r->zone_sign ? r->zone_sign : 1;
        r->zone_minutes = value;
        break;
    default:
        set_date_field(r, pattern, value, digits);
        break;
    }
}

/* Weeks of ISO years and calendar fields are two conventions. */
static void note_convention(struct reader *r, u8 pattern) {
    static const u8 iso[] = {P_IYYY, P_IYY, P_IY, P_I, P_IW, P_ID, P_IDDD};
    static const u8 calendar[] = {P_YYYY, P_YYY, P_YY, P_Y,   P_Y_YYY, P_MM, P_MONTH,
                                  P_MON,  P_RM,  P_DD, P_DDD, P_D,     P_WW, P_W};
    r->iso |= memchr(iso, pattern, sizeof iso) != NULL;
    r->gregorian |= memchr(calendar, pattern, sizeof calendar) != NULL;
    r->fault = r->iso && r->gregorian ? FAULT_TO_DATE : r->fault;
}

/* "2,024" */
static bool read_comma_year(struct reader *r) {
    i32 high, low, digits;
    if (!read_number(r, 9, &high, &digits) || r->at >= r->s.len || r->s.ptr[r->at] != ',') {
        return false;
    }
    r->at++;
    if (!read_number(r, 3, &low, &digits) || high > 1000000) {
        return false;
    }
    set_field(r, &r->year, high * 1000 + low);
    return true;
}

static bool read_roman(struct reader *r) {
    static const char *const months[] = {"XII", "XI", "X",  "IX",  "VIII", "VII",
                                         "VI",  "V",  "IV", "III", "II",   "I"};
    for (i32 i = 0; i < 12; i++) {
        if (prefix_nocase(r->s, r->at, months[i])) {
            r->at += (i64)strlen(months[i]);
            set_field(r, &r->month, 12 - i);
            return true;
        }
    }
    return false;
}

static bool read_text_field(struct reader *r, u8 pattern) {
    i32 value = 0;
    switch (pattern) {
    case P_MONTH:
    case P_MON:
        if (!read_name(r, fn_month_names, 12, true, &value) &&
            !read_name(r, fn_month_names, 12, false, &value)) {
            return false;
        }
        set_field(r, &r->month, value);
        return true;
    case P_DAY:
    case P_DY:
        if (!read_name(r, fn_day_names, 7, true, &value) &&
            !read_name(r, fn_day_names, 7, false, &value)) {
            return false;
        }
        set_field(r, &r->weekday, value);
        return true;
    case P_RM:
        return read_roman(r);
    case P_Y_YYY:
        return read_comma_year(r);
    default:
        return read_mark(r, pattern);
    }
}

/* A minus may have been stepped over as a separator. */
static void read_zone_sign(struct reader *r) {
    u8 c = r->at < r->s.len ? (u8)r->s.ptr[r->at] : 0;
    bool before = r->skipped > 0 && r->at > 0 && r->s.ptr[r->at - 1] == '-';
    bool signs = c == '+' || c == '-' || c == ' ';
    r->zone_sign = (signs ? c == '-' : before) ? -1 : 1;
    r->at += signs;
}

static u8 read_node(struct reader *r, const struct node *node, bool adjacent) {
    i32 value, digits, width = patterns[node->index].digits;
    u8 p = node->pattern;
    note_convention(r, p);
    bool mark = p == P_AD || p == P_AM || p == P_AD_DOTS || p == P_AM_DOTS;
    if (mark || p == P_MONTH || p == P_MON || p == P_DAY || p == P_DY || p == P_RM ||
        p == P_Y_YYY) {
        return read_text_field(r, p) ? r->fault : FAULT_TO_DATE;
    }
    if (!width) {
        return FAULT_TO_CHAR;
    }
    r->us_precision = p == P_FF ? width : r->us_precision;
    if (p == P_TZH) {
        read_zone_sign(r);
    }
    bool fixed = adjacent && !node->fill && !node->th;
    if (!read_number(r, fixed ? width : 9, &value, &digits)) {
        return FAULT_TO_DATE;
    }
    set_number(r, p, value, digits);
    if (node->th && r->s.len - r->at >= 2) {
        r->at += 2;
    }
    return r->fault;
}

static bool is_separator(u8 c) {
    return c > ' ' && c < 127 && (u8)((c | 32) - 'a') >= 26 && (u8)(c - '0') >= 10;
}

static bool space_at(const struct reader *r) {
    u8 c = r->at < r->s.len ? (u8)r->s.ptr[r->at] : 'x';
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Blanks before a field may be more than the template has. */
static void skip_blanks(struct reader *r) {
    for (; space_at(r); r->at++) {
        r->skipped++;
    }
}

/* What stands between fields. A separator or blank of the template is one of the text, or none; any
 * other character is one of the text, whichever, unless more were stepped over before. */
static void skip_text(struct reader *r, const struct node *node) {
    u8 c = (u8)node->text.ptr[0];
    bool loose = !node->quoted && (is_separator(c) || c == ' ' || (c >= '\t' && c <= '\r'));
    if (loose && !r->exact) {
        bool there = space_at(r) || (r->at < r->s.len && is_separator((u8)r->s.ptr[r->at]));
        r->at += there;
        r->skipped -= !there;
    } else if (r->skipped > 0) {
        r->skipped--;
    } else {
        r->at++;
        while (r->at < r->s.len && ((u8)r->s.ptr[r->at] & 0xc0) == 0x80) {
            r->at++;
        }
    }
}

static u8 read_template(struct reader *r, str format) {
    struct template t = {sv_of(format), 0, 0};
    struct node node;
    bool first = true;
    while (template_next(&t, &node)) {
        if (r->at >= r->s.len) {
            break;
        }
        bool digits = node.pattern != P_NONE && patterns[node.index].digits;
        if (node.pattern != P_NONE ? !r->exact || digits : first && !r->exact) {
            skip_blanks(r);
        }
        first = false;
        r->exact = r->exact || node.exact;
        if (node.pattern == P_NONE) {
            skip_text(r, &node);
            continue;
        }
        struct template ahead = t;
        struct node next;
        bool more = next_node(&ahead, &next);
        bool digit = more && !next.pattern && next.text.len == 1 && next.text.ptr[0] >= '0' &&
                     next.text.ptr[0] <= '9';
        bool adjacent = digit || (more && next.pattern && patterns[next.index].digits);
        u8 fault = read_node(r, &node, adjacent);
        if (fault) {
            return fault;
        }
        r->skipped = 0;
        if (!r->exact) {
            skip_blanks(r);
        }
    }
    return FAULT_NONE;
}

static i32 year_of(const struct reader *r) {
    i32 century = r->bc ? -r->century : r->century;
    if (r->year && r->century && r->short_year) {
        i32 rest = r->year % 100;
        return !rest         ? century * 100 + (century >= 0 ? 0 : 1)
               : century < 0 ? (century + 1) * 100 - rest + 1
                             : rest + (century - 1) * 100;
    }
    if (r->year) {
        i32 year = r->bc ? -r->year : r->year;
        return year < 0 ? year + 1 : year;
    }
    return !century ? 0 : century > 0 ? (century - 1) * 100 + 1 : century * 100 + 1;
}

/* The Monday of the first week of an ISO year. */
static i32 iso_start(i32 year) {
    i32 fourth = fn_days(year, 1, 4);
    i64 from = (i64)fourth + 3; /* day 0 was a Thursday */
    return fourth - (i32)(from - fn_floor_div(from, 7) * 7);
}

/* Day, month and year as fields say, then those that weeks and days of the year say. */
static u8 date_of(struct reader *r, i32 *out) {
    i32 year = year_of(r), month = r->month ? r->month : 1, day = r->day;
    if (year < -4713 || year > 5874897) {
        return FAULT_FIELD_RANGE;
    }
    if (r->week && r->iso) {
        i32 wday = r->weekday == 0 ? 0 : r->weekday > 1 ? r->weekday - 2 : 6;
        *out = iso_start(year) + (r->week - 1) * 7 + wday;
        return r->week > 53 ? FAULT_FIELD_RANGE : FAULT_NONE;
    }
    i32 doy = r->week ? (r->week - 1) * 7 + 1 : r->doy;
    day = r->week_of_month ? (r->week_of_month - 1) * 7 + 1 : day;
    day = day ? day : 1;
    if (r->julian) {
        fn_civil c = fn_civil_of(r->julian - 2440588);
        year = c.year;
        month = r->month ? month : c.month;
        day = r->day || r->week_of_month ? day : c.day;
    }
    if (doy && (month <= 1 || day <= 1)) {
        if (!year && !r->bc) {
            return FAULT_TO_DATE;
        }
        if (r->iso) {
            *out = iso_start(year) + doy - 1;
            return FAULT_NONE;
        }
        bool leap = fn_date_exists(year, 2, 29);
        if (doy > 365 + leap || doy < 1) {
            return FAULT_FIELD_RANGE;
        }
        fn_civil c = fn_civil_of(fn_days(year, 1, 1) + doy - 1);
        month = month <= 1 ? c.month : month;
        day = day <= 1 ? c.day : day;
    }
    if (!fn_date_exists(year, month, day)) {
        return FAULT_FIELD_RANGE;
    }
    *out = fn_days(year, month, day);
    return FAULT_NONE;
}

static u8 read_moment(str a, str format, struct reader *r, i32 *date, i64 *us) {
    *r = (struct reader){.s = sv_of(a)};
    u8 fault = read_template(r, format);
    if (fault) {
        return fault;
    }
    if (r->seconds_of_day) {
        r->hour = r->seconds_of_day / 3600;
        r->minute = r->seconds_of_day / 60 % 60;
        r->second = r->seconds_of_day % 60;
    }
    if (r->hour12) {
        if (r->hour < 1 || r->hour > 12) {
            return FAULT_TO_DATE;
        }
        r->hour = r->hour % 12 + (r->pm ? 12 : 0);
    }
    fault = date_of(r, date);
    if (fault) {
        return fault;
    }
    if (r->hour < 0 || r->hour > 23 || r->minute < 0 || r->minute > 59 || r->second < 0 ||
        r->second > 59) {
        return FAULT_FIELD_RANGE;
    }
    *us =
        r->hour * HOUR_US + r->minute * MINUTE_US + r->second * SECOND_US + r->ms * 1000LL + r->us;
    return FAULT_NONE;
}

i32 fn_to_date(str a, str format, u8 *f) {
    struct reader r;
    i32 date = 0;
    i64 us;
    u8 fault = read_moment(a, format, &r, &date, &us);
    *f = fault ? fault : *f;
    return date;
}

/* To so many digits of a second; halves go away from the year 2000, as in PostgreSQL. */
static i64 round_moment(i64 at, i32 digits) {
    const i64 middle = 946684800 * SECOND_US;
    i64 unit = 1, size = at < middle ? middle - at : at - middle;
    for (i32 i = digits; i < 6; i++) {
        unit *= 10;
    }
    size = (size + unit / 2) / unit * unit;
    return at < middle ? middle - size : middle + size;
}

i64 fn_to_timestamp(str a, str format, i32 zone, u8 *f) {
    struct reader r;
    i32 date = 0;
    i64 us = 0;
    u8 fault = read_moment(a, format, &r, &date, &us);
    bool zoned = r.zone_sign != 0;
    bool far = zoned &&
               (r.zone_hours < 0 || r.zone_hours > 15 || r.zone_minutes < 0 || r.zone_minutes > 59);
    fault = !fault && far ? FAULT_FIELD_RANGE : fault;
    *f = fault ? fault : *f;
    i64 east = zoned ? r.zone_sign * (r.zone_hours * 3600LL + r.zone_minutes * 60LL)
                     : zone_offset_local(zone, date * (DAY_US / SECOND_US) + us / SECOND_US);
    i64 at = fault ? 0 : fn_ts_check((i128)date * DAY_US + us - east * SECOND_US, f);
    return r.us_precision && !fault ? round_moment(at, r.us_precision) : at;
}

i64 fn_ts_local(i64 a, i32 zone, u8 *f) {
    return fn_ts_infinite(a) ? a : fn_ts_zone(a, zone_offset(zone, fn_floor_div(a, SECOND_US)), f);
}

i64 fn_ts_global(i64 a, i32 zone, u8 *f) {
    return fn_ts_infinite(a)
               ? a
               : fn_ts_zone(a, -zone_offset_local(zone, fn_floor_div(a, SECOND_US)), f);
}
