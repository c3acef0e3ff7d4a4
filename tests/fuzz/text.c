/* text.c: a text that remembers which ranges of it belong together.
 *
 * The generator writes a query from left to right and opens and closes spans as it goes. FROM is
 * made before the select list, because the list names its columns: text_rotate puts them in order.
 * The reducer cuts the text and the spans move along. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

void text_reset(struct text *t) {
    t->len = 0;
    t->span_count = 0;
    t->buf[0] = 0;
}

void text_say(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->buf + t->len, (size_t)(TEXT_MAX - t->len), format, args);
    va_end(args);
    t->len = t->len + n < TEXT_MAX ? t->len + n : TEXT_MAX - 1;
}

int text_open(struct text *t, int kind) {
    if (t->span_count == SPAN_MAX) {
        return -1;
    }
    t->spans[t->span_count] = (struct span){t->len, t->len, kind};
    return t->span_count++;
}

void text_close(struct text *t, int span) {
    if (span >= 0) {
        t->spans[span].end = t->len;
    }
}

static void reverse(char *from, char *to) {
    while (from < to) {
        char c = *from;
        *from++ = *--to;
        *to = c;
    }
}

void text_rotate(struct text *t, int start, int mid) {
    int first = mid - start;
    int second = t->len - mid;
    reverse(t->buf + start, t->buf + mid);
    reverse(t->buf + mid, t->buf + t->len);
    reverse(t->buf + start, t->buf + t->len);
    for (int i = 0; i < t->span_count; i++) {
        struct span *s = &t->spans[i];
        int by = 0;
        if (s->start >= start && s->end <= mid && s->end > s->start) {
            by = second;
        } else if (s->start >= mid) {
            by = -first;
        }
        s->start += by;
        s->end += by;
    }
}

bool text_splice(struct text *t, int start, int end, const char *with) {
    int n = (int)strlen(with);
    int by = n - (end - start);
    if (t->len + by >= TEXT_MAX) {
        return false;
    }
    memmove(t->buf + start + n, t->buf + end, (size_t)(t->len - end + 1));
    memcpy(t->buf + start, with, (size_t)n);
    t->len += by;
    int kept = 0;
    for (int i = 0; i < t->span_count; i++) {
        struct span s = t->spans[i];
        bool within = s.start >= start && s.end <= end;
        if (within && by != 0) {
            continue;
        }
        s.start = s.start >= end ? s.start + by : s.start > start ? start + n : s.start;
        s.end = s.end >= end ? s.end + by : s.end > start ? start : s.end;
        t->spans[kept++] = s;
    }
    t->span_count = kept;
    return true;
}

bool text_shrink(struct text *t, int start, int end, int keep, int keep_end) {
    return text_splice(t, keep_end, end, "") && text_splice(t, start, keep, "");
}
