/* error_text.c: errors as people read them, and how wide text is on a terminal.
 *
 * The line with the error is cut to fit an ordinary terminal around the place that matters, and the
 * caret is placed by display width, so that it stands right under CJK text too. */
#include "api/api_int.h"

#include <stdio.h>

struct span {
    u32 first, last;
};

/* East Asian wide and fullwidth characters, and emoji shown double. */
static const struct span wide_spans[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18aff},
    {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e},
    {0x1f191, 0x1f19a}, {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c},
    {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0},
    {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc},
    {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a},
    {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5},
    {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6d7}, {0x1f6dd, 0x1f6df},
    {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a},
    {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x2fffd},
    {0x30000, 0x3fffd},
};

/* Combining marks and invisible characters. */
static const struct span zero_spans[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489},   {0x0591, 0x05bd},   {0x05bf, 0x05bf}, {0x05c1, 0x05c2},
    {0x05c4, 0x05c5}, {0x0610, 0x061a},   {0x064b, 0x065f},   {0x0670, 0x0670}, {0x06d6, 0x06dc},
    {0x06df, 0x06e4}, {0x06e7, 0x06e8},   {0x06ea, 0x06ed},   {0x0711, 0x0711}, {0x0730, 0x074a},
    {0x0900, 0x0902}, {0x093a, 0x093a},   {0x093c, 0x093c},   {0x0941, 0x0948}, {0x094d, 0x094d},
    {0x0951, 0x0957}, {0x0e31, 0x0e31},   {0x0e34, 0x0e3a},   {0x0e47, 0x0e4e}, {0x1160, 0x11ff},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},   {0x200b, 0x200f},   {0x202a, 0x202e}, {0x2060, 0x2064},
    {0x20d0, 0x20f0}, {0x302a, 0x302d},   {0x3099, 0x309a},   {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
    {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

static bool in_spans(const struct span *spans, i64 count, u32 point) {
    i64 lo = 0;
    i64 hi = count;
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (point > spans[mid].last) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < count && point >= spans[lo].first;
}

static i32 point_width(u32 point) {
    if (point < 0x300) {
        return point >= 0x20 && point != 0x7f ? 1 : 0;
    }
    if (in_spans(zero_spans, COUNT_OF(zero_spans), point)) {
        return 0;
    }
    return in_spans(wide_spans, COUNT_OF(wide_spans), point) ? 2 : 1;
}

/* Decodes one character; a stray byte counts as one of its own. */
static u32 next_point(const char *text, size_t len, size_t *at) {
    u32 c = (u8)text[(*at)++];
    if (c < 0xc2 || c > 0xf4) {
        return c < 0x80 ? c : 0xfffd;
    }
    i32 more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    u32 point = c & (0x3fu >> more);
    for (i32 i = 0; i < more; i++) {
        if (*at >= len || ((u8)text[*at] & 0xc0) != 0x80) {
            return 0xfffd;
        }
        point = point << 6 | ((u8)text[(*at)++] & 0x3fu);
    }
    return point;
}

int64_t wf_display_width(const char *text, size_t len) {
    i64 width = 0;
    for (size_t at = 0; at < len;) {
        width += point_width(next_point(text, len, &at));
    }
    return width;
}

struct out {
    char *buf;
    size_t cap;
    size_t len;
};

static void put(struct out *out, const char *text, size_t len) {
    if (out->len < out->cap) {
        size_t room = out->cap - out->len;
        memcpy(out->buf + out->len, text, MIN_OF(len, room));
    }
    out->len += len;
}

static void put_text(struct out *out, const char *text) {
    put(out, text, strlen(text));
}

enum { LINE_WIDTH = 72, LEFT_CONTEXT = 40 };

/* Moves `start` forward so that at most `width` columns lie between it and `end`. */
static size_t cut_left(const char *sql, size_t start, size_t end, i64 width) {
    i64 between = wf_display_width(sql + start, end - start);
    while (start < end && between > width) {
        between -= point_width(next_point(sql, end, &start));
    }
    return start;
}

static size_t cut_right(const char *sql, size_t start, size_t end, i64 width) {
    i64 used = 0;
    size_t at = start;
    while (at < end) {
        size_t next = at;
        used += point_width(next_point(sql, end, &next));
        if (used > width) {
            break;
        }
        at = next;
    }
    return at;
}

static void put_line(struct out *out, const wf_error *error, const char *sql) {
    size_t len = strlen(sql);
    size_t at = (size_t)error->position;
    if (at > len) {
        return;
    }
    size_t line_start = at;
    while (line_start > 0 && sql[line_start - 1] != '\n') {
        line_start--;
    }
    size_t line_end = at;
    while (line_end < len && sql[line_end] != '\n' && sql[line_end] != '\r') {
        line_end++;
    }
    size_t start = line_start;
    if (wf_display_width(sql + line_start, line_end - line_start) > LINE_WIDTH) {
        start = cut_left(sql, line_start, at, LEFT_CONTEXT);
    }
    size_t end = cut_right(sql, start, line_end, LINE_WIDTH);
    char label[64];
    int label_len = snprintf(label, sizeof label, "LINE %lld: ", (long long)error->line);
    const char *dots = start > line_start ? "..." : "";
    put_text(out, "\n");
    put_text(out, label);
    put_text(out, dots);
    for (size_t i = start; i < end; i++) {
        put(out, sql[i] == '\t' ? " " : sql + i, 1);
    }
    put_text(out, end < line_end ? "..." : "");
    put_text(out, "\n");
    i64 tabs = 0;
    for (size_t i = start; i < at; i++) {
        tabs += sql[i] == '\t';
    }
    i64 pad = label_len + (i64)strlen(dots) + wf_display_width(sql + start, at - start) + tabs;
    for (i64 i = 0; i < pad; i++) {
        put_text(out, " ");
    }
    put_text(out, "^");
}

size_t wf_duration_text(int64_t ns, char *buf, size_t cap) {
    struct duration text = duration_of(ns);
    snprintf(buf, cap, "%s", text.text);
    return strlen(text.text);
}

size_t wf_error_text(const wf_error *error, const char *sql, char *buf, size_t cap) {
    struct out out = {buf, cap ? cap - 1 : 0, 0};
    if (error && error->status) {
        put_text(&out, "ERROR ");
        put_text(&out, error->sqlstate);
        put_text(&out, ": ");
        put_text(&out, error->message);
        if (sql && error->position >= 0) {
            put_line(&out, error, sql);
        }
        if (error->hint[0]) {
            put_text(&out, "\nHINT:  ");
            put_text(&out, error->hint);
        }
    }
    if (cap) {
        buf[MIN_OF(out.len, cap - 1)] = 0;
    }
    return out.len;
}
