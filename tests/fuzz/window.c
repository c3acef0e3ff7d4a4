/* window.c: random window functions.
 *
 * Where the scope has a total order, it ends every ORDER BY, so that each row has one place and any
 * function and frame will do. Elsewhere only what peers share: ranks, and aggregates over frames
 * that end with peers. */
#include <stdio.h>

#include "fuzz.h"

static void partition(struct gen *g, const struct place *p) {
    if (one_in(g, 2)) {
        enum sort sort = any_sort(g);
        int span = text_open(&g->text, SPAN_OPTIONAL);
        text_say(&g->text, "partition by ");
        expr_make(g, p, sort, one_in(g, 4) ? 1 : 0, sort_max(sort));
        text_close(&g->text, span);
        text_say(&g->text, " ");
    }
}

/* Among peers, who is the current row is open; for aggregates that does not matter if all of them
 * are equal to it, but they need not be: only with a total order. */
static void exclude(struct gen *g, bool total) {
    static const char *const forms[] = {" exclude group", " exclude no others",
                                        " exclude current row", " exclude ties"};
    if (one_in(g, 3)) {
        text_say(&g->text, "%s", forms[below(g, total ? 4 : 2)]);
    }
}

static void frame(struct gen *g, bool total) {
    static const char *const rows[] = {
        "rows between 1 preceding and 1 following",
        "rows between unbounded preceding and current row",
        "rows between current row and unbounded following",
        "rows 2 preceding",
        "rows between 3 preceding and 2 preceding",
        "rows between 1 following and 3 following",
        "rows between unbounded preceding and 1 preceding",
    };
    static const char *const peers[] = {
        "range between unbounded preceding and current row",
        "range between current row and unbounded following",
        "range between unbounded preceding and unbounded following",
        "groups between 1 preceding and current row",
        "groups between 2 preceding and 1 following",
        "groups between 1 following and 2 following",
        "groups between unbounded preceding and 1 preceding",
        "groups 1 preceding",
        "groups between current row and unbounded following",
    };
    int span = text_open(&g->text, SPAN_OPTIONAL);
    if (total && one_in(g, 2)) {
        text_say(&g->text, " %s", rows[below(g, 7)]);
        exclude(g, true);
    } else if (one_in(g, 3)) {
        text_say(&g->text, " %s", peers[below(g, 9)]);
        exclude(g, total);
    }
    text_close(&g->text, span);
}

/* ORDER BY an expression, then by the total order. True when each row has its own place. */
static bool order(struct gen *g, const struct place *p) {
    static const char *const ends[] = {"", " desc", " nulls first", " desc nulls last"};
    bool total = p->scope->order[0] != '!' && p->scope->order[0] != 0;
    enum sort sort = any_sort(g);
    text_say(&g->text, "order by ");
    if (!total || !one_in(g, 3)) {
        expr_make(g, p, sort, one_in(g, 4) ? 1 : 0, sort_max(sort));
        text_say(&g->text, "%s%s", ends[below(g, 4)], total ? ", " : "");
    }
    text_say(&g->text, "%s", total ? p->scope->order : "");
    return total;
}

static void over(struct gen *g, const struct place *p, bool frames) {
    if (one_in(g, 6)) {
        struct place plain = *p;
        plain.rows = NULL; /* no aggregates there */
        int span = text_open(&g->text, SPAN_OPTIONAL);
        text_say(&g->text, " filter (where ");
        cond_make(g, &plain, 1);
        text_say(&g->text, ")");
        text_close(&g->text, span);
    }
    text_say(&g->text, " over (");
    partition(g, p);
    if (!one_in(g, 4)) {
        bool total = order(g, p);
        if (frames) {
            frame(g, total);
        }
    }
    text_say(&g->text, ")");
}

/* A frame of values within a distance of the row's own. */
static void ranged(struct gen *g, const struct place *p) {
    static const enum sort sorts[] = {INT, BIG, DEC, DBL, DAY, MOM};
    static const char *const numbers[] = {"0", "1", "2", "3"};
    static const char *const spans[] = {"interval '0'", "interval '1 day'", "interval '1 month'",
                                        "interval '30 years 2 hours'"};
    enum sort sort = sorts[below(g, 6)];
    const char *const *by = sort == DAY || sort == MOM ? spans : numbers;
    text_say(&g->text, " over (");
    partition(g, p);
    text_say(&g->text, "order by ");
    expr_make(g, p, sort, one_in(g, 4) ? 1 : 0, sort >= DAY ? sort_max(sort) : 1000);
    text_say(&g->text, "%s%s range between ", one_in(g, 2) ? " desc" : "",
             one_in(g, 4) ? " nulls first" : "");
    switch (below(g, 5)) {
    case 0:
        text_say(&g->text, "unbounded preceding and %s preceding", by[below(g, 4)]);
        break;
    case 1:
        text_say(&g->text, "%s following and unbounded following", by[below(g, 4)]);
        break;
    case 2:
        text_say(&g->text, "current row and %s following", by[below(g, 4)]);
        break;
    default:
        text_say(&g->text, "%s preceding and %s following", by[below(g, 4)], by[below(g, 4)]);
        break;
    }
    exclude(g, false);
    text_say(&g->text, ")");
}

static void ranking(struct gen *g, const struct place *p, bool total) {
    static const char *const names[] = {"rank()", "dense_rank()", "row_number()"}; /* last: total */
    text_say(&g->text, "%s over (", names[below(g, total ? 3 : 2)]);
    partition(g, p);
    order(g, p);
    text_say(&g->text, ")");
}

static void placed(struct gen *g, const struct place *p, enum sort sort, double max) {
    static const char *const forms[] = {"lag(", "lead(", "first_value(", "last_value(",
                                        "nth_value("};
    int form = below(g, 5);
    text_say(&g->text, "%s", forms[form]);
    expr_make(g, p, sort, 1, max);
    if (form == 4) {
        text_say(&g->text, ", %d", 1 + below(g, 3));
    } else if (form < 2 && one_in(g, 2)) {
        text_say(&g->text, ", %d", below(g, 4));
    }
    text_say(&g->text, ") over (");
    partition(g, p);
    order(g, p);
    if (form >= 2) {
        frame(g, true);
    }
    text_say(&g->text, ")");
}

void window_make(struct gen *g, const struct place *p, enum sort sort, double max) {
    bool total = p->scope->order[0] != '!' && p->scope->order[0] != 0;
    struct text *t = &g->text;
    double rows = p->scope->rows < 1 ? 1 : p->scope->rows;
    int span = text_open(t, (int)sort);
    int form = below(g, 4);
    if (sort == BIG && form < 2 && rows <= max) {
        ranking(g, p, total);
    } else if (total && form == 2) {
        placed(g, p, sort, max);
    } else if (sort == BIG || sort == DBL) {
        enum sort arg = sort == BIG ? INT : DBL;
        double each = max / rows < sort_max(arg) ? max / rows : sort_max(arg);
        text_say(t, "sum(");
        expr_make(g, p, arg, 1, each);
        text_say(t, ")");
        if (one_in(g, 3)) {
            ranged(g, p);
        } else {
            over(g, p, true);
        }
    } else if (sort == INT && total && form == 0 && max >= 1000) {
        text_say(t, "ntile(%d) over (", 1 + below(g, 4));
        partition(g, p);
        order(g, p);
        text_say(t, ")");
    } else {
        text_say(t, sort == BOOL   ? one_in(g, 2) ? "bool_and(" : "bool_or("
                    : one_in(g, 2) ? "min("
                                   : "max(");
        expr_make(g, p, sort, one_in(g, 6) ? 3 : 1, max);
        text_say(t, ")");
        if (one_in(g, 4)) {
            ranged(g, p);
        } else {
            over(g, p, true);
        }
    }
    text_close(t, span);
}
