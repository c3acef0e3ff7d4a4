/* reduce.c: makes a query smaller while it still shows what it showed.
 *
 * Spans from the largest to the smallest: optional ones go, queries and expressions give way to one
 * of their kind inside them, expressions to a column's worth of nothing. Repeated until a whole
 * round changes nothing or enough has been tried. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { TRIES_MOST = 4000 };

struct work {
    struct text *best;
    struct text *trial;
    bool (*still)(void *arg, const char *sql);
    void *arg;
    int tries;
};

static bool accept(struct work *w) {
    w->tries++;
    if (w->trial->len >= w->best->len || !w->still(w->arg, w->trial->buf)) {
        return false;
    }
    memcpy(w->best, w->trial, sizeof *w->best);
    return true;
}

static const char *simplest(int kind) {
    static const char *const texts[SORTS] = {
        [MOM] = "timestamp '2000-01-01'", [INT] = "1", "1::bigint",         "1.5",
        "0.5::double precision",          "'a'",       "date '2000-01-01'", "true"};
    return kind < SORTS ? texts[kind] : NULL;
}

static bool try_span(struct work *w, struct span s) {
    memcpy(w->trial, w->best, sizeof *w->trial);
    if (s.kind == SPAN_OPTIONAL) {
        return text_splice(w->trial, s.start, s.end, "") && accept(w);
    }
    const char *simple = simplest(s.kind);
    if (simple && s.end - s.start > (int)strlen(simple) &&
        text_splice(w->trial, s.start, s.end, simple) && accept(w)) {
        return true;
    }
    for (int i = 0; i < w->best->span_count && w->tries < TRIES_MOST; i++) {
        struct span in = w->best->spans[i];
        if (in.kind == s.kind && in.start >= s.start && in.end <= s.end && in.end > in.start &&
            in.end - in.start < s.end - s.start) {
            memcpy(w->trial, w->best, sizeof *w->trial);
            if (text_shrink(w->trial, s.start, s.end, in.start, in.end) && accept(w)) {
                return true;
            }
        }
    }
    return false;
}

static int by_size(const void *a, const void *b) {
    const struct span *x = a;
    const struct span *y = b;
    return (y->end - y->start) - (x->end - x->start);
}

void reduce(struct text *t, bool (*still)(void *arg, const char *sql), void *arg) {
    struct work w = {t, malloc(sizeof *t), still, arg, 0};
    bool changed = w.trial != NULL;
    while (changed && w.tries < TRIES_MOST) {
        changed = false;
        qsort(t->spans, (size_t)t->span_count, sizeof *t->spans, by_size);
        for (int i = 0; i < t->span_count && w.tries < TRIES_MOST; i++) {
            if (try_span(&w, t->spans[i])) {
                changed = true;
                i--;
            }
        }
    }
    free(w.trial);
}
