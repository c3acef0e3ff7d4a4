/* expr.c: random expressions.
 *
 * expr_make writes an expression of a sort whose magnitude stays within `max`. In a risky query the
 * bounds are ignored below the top: overflow and division by zero happen. Decimals and doubles keep
 * to operations on which PostgreSQL and static types agree digit by digit; division and averages of
 * them come from inexact_make, for output only. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_query.h"

enum { TEXT_ENOUGH = 4000, COPY_MAX = 1500 };

static double half(const struct gen *g, double max) {
    return g->risky ? max : max / 2;
}

static double root(const struct gen *g, double max) {
    return g->risky ? max : sqrt(max);
}

static void literal(struct gen *g, enum sort sort, double max) {
    static const char *const words[] = {"'alpha'", "'a'",   "''",      "'Zürich'",
                                        "'12'",    "'b%'",  "' é b '", "'aXbXaXb'",
                                        "'q''r'",  "'x_y'", "'ABBA'",  "E'a\\\\b\\n'"};
    static const char *const days[] = {"2000-02-29", "1999-12-31", "2024-01-01", "1970-01-01"};
    static const char *const names[SORTS] = {"integer",          "bigint",   "decimal(9,2)",
                                             "double precision", "text",     "date",
                                             "boolean",          "timestamp"};
    struct text *t = &g->text;
    int n = max >= 5 ? below(g, 8) - 2 : max >= 1 ? below(g, 2) : 0;
    if (one_in(g, 8)) {
        text_say(t, "null::%s", names[sort]);
    } else if (sort == INT) {
        text_say(t, n < 0 ? "(%d)" : "%d", g->risky && one_in(g, 6) ? 2147483647 : n);
    } else if (sort == BIG) {
        text_say(t, g->risky && one_in(g, 6) ? "9223372036854775807" : "%d::bigint", n < 0 ? 0 : n);
    } else if (sort == DEC) {
        text_say(t, "%d.%d", n < 0 ? 0 : n, one_in(g, 2) ? 5 : 25);
    } else if (sort == DBL) {
        text_say(t, "%d.5::double precision", n < 0 ? 0 : n);
    } else if (sort == TXT) {
        text_say(t, "%s", words[below(g, 12)]);
    } else if (sort == DAY) {
        text_say(t, "date '%s'", days[below(g, 4)]);
    } else if (sort == MOM) {
        text_say(t, "timestamp '%s 12:30:00'", days[below(g, 4)]);
    } else {
        text_say(t, one_in(g, 2) ? "true" : "false");
    }
}

static bool column_of(struct gen *g, const struct scope *s, bool outer, enum sort sort,
                      double max) {
    const struct col *found = NULL;
    int seen = 0;
    for (int i = 0; i < s->col_count; i++) {
        const struct col *c = &s->cols[i];
        if (c->sort == sort && (c->max <= max || g->risky) && (c->plain || !outer) &&
            below(g, ++seen) == 0) {
            found = c;
        }
    }
    if (found) {
        text_say(&g->text, "%s", found->text);
    }
    return found != NULL;
}

static void leaf(struct gen *g, const struct place *p, enum sort sort, double max) {
    if (p->rows && sort == INT && p->scope->col_count > 0 && max >= 1 && one_in(g, 8)) {
        text_say(&g->text, "grouping(%s)", p->scope->cols[below(g, p->scope->col_count)].text);
        return;
    }
    if (p->rows && !one_in(g, 3)) {
        aggregate_make(g, p, sort, max);
        return;
    }
    const struct scope *outer = p->no_outer ? NULL : p->scope->outer;
    if (outer && one_in(g, 4)) {
        while (outer->outer && one_in(g, 2)) {
            outer = outer->outer;
        }
        if (column_of(g, outer, true, sort, max)) {
            return;
        }
    }
    if (one_in(g, 6) || !column_of(g, p->scope, false, sort, max)) {
        literal(g, sort, max);
    }
}

static void both(struct gen *g, const struct place *p, enum sort sort, const char *op, int depth,
                 double max) {
    text_say(&g->text, "(");
    expr_make(g, p, sort, depth - 1, max);
    text_say(&g->text, " %s ", op);
    expr_make(g, p, sort, depth - 1, max);
    text_say(&g->text, ")");
}

/* A quotient that its own condition keeps from raising; the divisor may hold subqueries. */
static void guarded(struct gen *g, const struct place *p, enum sort sort, int depth, double max) {
    struct text *t = &g->text;
    text_say(t, "case when ");
    int at = t->len;
    expr_make(g, p, sort, depth - 1, max);
    if (t->len - at >= COPY_MAX) {
        text_say(t, " is not null then 1 end");
        return;
    }
    char copy[COPY_MAX + 1];
    snprintf(copy, sizeof copy, "%s", t->buf + at);
    text_say(t, " <> 0 then ");
    expr_make(g, p, sort, depth - 1, half(g, max));
    text_say(t, " %s %s end", one_in(g, 2) ? "/" : "%", copy);
}

static void number(struct gen *g, const struct place *p, enum sort sort, int depth, double max) {
    int form = below(g, 9);
    bool whole = sort == INT || sort == BIG;
    if (form == 8 && whole && !g->risky) {
        guarded(g, p, sort, depth, max);
    } else if (form < 3) {
        both(g, p, sort, one_in(g, 2) ? "+" : "-", depth, half(g, max));
    } else if (form < 5) {
        both(g, p, sort, "*", sort == DEC ? depth - 1 : depth, root(g, max));
    } else if (form == 5 || !whole) {
        text_say(&g->text, "(- ");
        expr_make(g, p, sort, depth - 1, half(g, max));
        text_say(&g->text, ")");
    } else {
        text_say(&g->text, "(");
        expr_make(g, p, sort, depth - 1, half(g, max));
        text_say(&g->text, g->risky ? " %s " : " %s nullif(", one_in(g, 2) ? "/" : "%");
        expr_make(g, p, sort, depth - 1, max);
        text_say(&g->text, g->risky ? ")" : ", 0))");
    }
}

static void plain_operator(struct gen *g, const struct place *p, enum sort sort, int depth,
                           double max) {
    static const char *const intervals[] = {
        " + interval '1 day')", " - interval '1 month')", " + interval '90 minutes')",
        " + interval '1 year 2 days 03:04:05')", " - interval '36 hours')"};
    if (sort == TXT) {
        both(g, p, TXT, "||", depth, max / 2);
    } else if (sort == DAY) {
        text_say(&g->text, "(");
        expr_make(g, p, DAY, depth - 1, max);
        text_say(&g->text, one_in(g, 2) ? " + " : " - ");
        expr_make(g, p, INT, depth - 1, 100);
        text_say(&g->text, ")");
    } else if (sort == MOM) {
        text_say(&g->text, "(");
        expr_make(g, p, MOM, depth - 1, max);
        text_say(&g->text, "%s", intervals[below(g, 5)]);
    } else if (sort == BOOL) {
        cond_make(g, p, depth);
    } else {
        number(g, p, sort, depth, max);
    }
}

static enum sort sort_of_letter(char letter) {
    static const char letters[] = "ibdftyom";
    return (enum sort)(strchr(letters, letter) - letters);
}

static void function(struct gen *g, const struct place *p, enum sort sort, int depth, double max) {
    const struct function *f = function_pick(g, sort, max);
    struct scope nothing = {.order = "!"};
    struct place constants = {&nothing, NULL, true, p->shown};
    if (!f) {
        leaf(g, p, sort, max);
        return;
    }
    if (one_in(g, 6)) { /* computed ahead */
        p = &constants;
    }
    for (const char *at = f->form; *at; at++) {
        if (*at == '#' && strchr("ibdftyom", at[1])) {
            enum sort arg = sort_of_letter(*++at);
            double most = sort_max(arg);
            double bound = f->max != 0 ? most : max < most ? max : most;
            expr_make(g, p, arg, depth - 1, f->max != 0 ? bound : half(g, bound));
        } else {
            text_say(&g->text, "%c", *at);
            at += *at == '%';
        }
    }
}

static void cases(struct gen *g, const struct place *p, enum sort sort, int depth, double max) {
    text_say(&g->text, "case when ");
    cond_make(g, p, depth - 1);
    text_say(&g->text, " then ");
    expr_make(g, p, sort, depth - 1, max);
    if (one_in(g, 3)) {
        text_say(&g->text, " when ");
        cond_make(g, p, depth - 1);
        text_say(&g->text, " then ");
        expr_make(g, p, sort, depth - 1, max);
    }
    if (!one_in(g, 3)) {
        text_say(&g->text, " else ");
        expr_make(g, p, sort, depth - 1, max);
    }
    text_say(&g->text, " end");
}

/* What plans move about: an error in it may come or not. */
static bool enter(struct gen *g, const struct place *p) {
    if (g->risky && !p->shown) {
        g->risk_inner = true;
    }
    return g->text.len > TEXT_ENOUGH;
}

void expr_make(struct gen *g, const struct place *p, enum sort sort, int depth, double max) {
    struct text *t = &g->text;
    int span = text_open(t, (int)sort);
    struct place hidden = *p;
    hidden.shown = false;
    if (enter(g, p) || depth <= 0 || one_in(g, 5)) {
        leaf(g, p, sort, max);
        text_close(t, span);
        return;
    }
    switch (below(g, 10)) {
    case 0:
        cases(g, &hidden, sort, depth, max);
        break;
    case 1:
        text_say(t, one_in(g, 3) ? "nullif(" : "coalesce(");
        expr_make(g, &hidden, sort, depth - 1, max);
        text_say(t, ", ");
        expr_make(g, &hidden, sort, depth - 1, max);
        text_say(t, ")");
        break;
    case 2:
        if (depth >= 2 && !g->risky) {
            scalar_make(g, &hidden, sort, depth - 2, max);
        } else {
            leaf(g, p, sort, max);
        }
        break;
    case 3:
    case 4:
    case 5:
        function(g, p, sort, depth, max);
        break;
    default:
        plain_operator(g, p, sort, depth, max);
        break;
    }
    text_close(t, span);
}

static const char *comparison(struct gen *g) {
    static const char *const ops[] = {"=", "<>", "<", "<=", ">", ">=", "="};
    return ops[below(g, 7)];
}

static void compare_sorts(struct gen *g, const struct place *p, int depth) {
    enum sort a = any_sort(g);
    enum sort b = a <= DEC && one_in(g, 3) ? (enum sort)below(g, DEC + 1) : a;
    text_say(&g->text, "(");
    expr_make(g, p, a, depth - 1, sort_max(a));
    if (one_in(g, 8)) {
        text_say(&g->text, one_in(g, 3) ? " not between " : " between ");
        expr_make(g, p, b, depth - 1, sort_max(b));
        text_say(&g->text, " and ");
    } else {
        text_say(&g->text, " %s ", comparison(g));
    }
    expr_make(g, p, b, depth - 1, sort_max(b));
    text_say(&g->text, ")");
}

static void in_list(struct gen *g, const struct place *p, int depth) {
    enum sort sort = any_sort(g);
    int n = 1 + below(g, 4);
    text_say(&g->text, "(");
    expr_make(g, p, sort, depth - 1, sort_max(sort));
    text_say(&g->text, one_in(g, 3) ? " not in (" : " in (");
    for (int i = 0; i < n; i++) {
        int span = i ? text_open(&g->text, SPAN_OPTIONAL) : -1;
        text_say(&g->text, i ? ", " : "");
        expr_make(g, p, sort, one_in(g, 4) ? depth - 1 : 0, sort_max(sort));
        text_close(&g->text, span);
    }
    text_say(&g->text, "))");
}

static void test_null(struct gen *g, const struct place *p, int depth) {
    enum sort sort = any_sort(g);
    text_say(&g->text, "(");
    expr_make(g, p, sort, depth - 1, sort_max(sort));
    text_say(&g->text, one_in(g, 2) ? " is null)" : " is not null)");
}

static void logic(struct gen *g, const struct place *p, int depth) {
    if (one_in(g, 4)) {
        text_say(&g->text, "(not ");
        cond_make(g, p, depth - 1);
        text_say(&g->text, ")");
        return;
    }
    text_say(&g->text, "(");
    cond_make(g, p, depth - 1);
    text_say(&g->text, one_in(g, 2) ? " and " : " or ");
    cond_make(g, p, depth - 1);
    text_say(&g->text, ")");
}

void cond_make(struct gen *g, const struct place *p, int depth) {
    int span = text_open(&g->text, BOOL);
    if (enter(g, p) || depth <= 0) {
        if (one_in(g, 3)) {
            leaf(g, p, BOOL, 1);
        } else {
            compare_sorts(g, p, 0);
        }
        text_close(&g->text, span);
        return;
    }
    int form = below(g, 14);
    if (form < 3) {
        logic(g, p, depth);
    } else if (form == 3) {
        in_list(g, p, depth);
    } else if (form == 4) {
        test_null(g, p, depth);
    } else if (form == 5) {
        function(g, p, BOOL, depth, 1);
    } else if (form <= 8 && depth >= 2 && !g->risky) {
        subquery_cond_make(g, p, depth - 2);
    } else {
        compare_sorts(g, p, depth);
    }
    text_close(&g->text, span);
}

static void filter(struct gen *g, const struct place *in) {
    if (one_in(g, 5)) {
        int span = text_open(&g->text, SPAN_OPTIONAL);
        text_say(&g->text, " filter (where ");
        cond_make(g, in, one_in(g, 4) ? 2 : 1);
        text_say(&g->text, ")");
        text_close(&g->text, span);
    }
}

/* Aggregates of a sort: what their argument is, and whether they add up. */
void aggregate_make(struct gen *g, const struct place *p, enum sort sort, double max) {
    struct place in = {(struct scope *)(uintptr_t)p->rows, NULL, true, false};
    struct text *t = &g->text;
    const char *distinct = one_in(g, 5) ? "distinct " : "";
    double rows = p->rows->rows < 1 ? 1 : p->rows->rows;
    int form = below(g, 4);
    int deep = one_in(g, 8) ? 3 : 1;
    if (sort == BIG && form == 0 && rows <= max) {
        text_say(t, "count(*)");
    } else if (sort == BIG && form == 1 && rows <= max) {
        enum sort arg = any_sort(g);
        text_say(t, "count(%s", distinct);
        expr_make(g, &in, arg, deep, sort_max(arg));
        text_say(t, ")");
    } else if (sort == BIG && form == 2) {
        text_say(t, "sum(%s", distinct);
        double each = g->risky ? max : max / rows;
        expr_make(g, &in, INT, deep, each < sort_max(INT) ? each : sort_max(INT));
        text_say(t, ")");
    } else if ((sort == DEC || sort == DBL) && form < 2) {
        enum sort arg = sort == DEC && one_in(g, 3) ? BIG : sort;
        text_say(t, "sum(%s", distinct);
        expr_make(g, &in, arg, 1, g->risky ? max : max / rows);
        text_say(t, ")");
    } else if (sort == BOOL) {
        text_say(t, one_in(g, 2) ? "bool_and(" : "bool_or(");
        expr_make(g, &in, BOOL, 1, 1);
        text_say(t, ")");
    } else if (sort == TXT && form == 0 && max >= 60 * rows) {
        text_say(t, "string_agg(");
        int at = t->len;
        expr_make(g, &in, TXT, 0, 30);
        char arg[200];
        snprintf(arg, sizeof arg, "%s", t->buf + at);
        text_say(t, ", ',' order by %s%s)", arg, one_in(g, 2) ? " desc" : "");
    } else if (form == 3 && one_in(g, 4) && sort != DBL) {
        static const char *const forms[] = {"mode()", "percentile_disc(0.5)",
                                            "percentile_disc(0.25)", "percentile_disc(1)"};
        text_say(t, "%s within group (order by ", forms[below(g, 4)]);
        expr_make(g, &in, sort, 1, max);
        text_say(t, "%s)", one_in(g, 3) ? " desc" : "");
    } else {
        text_say(t, one_in(g, 2) ? "min(" : "max(");
        expr_make(g, &in, sort, deep + 1, max);
        text_say(t, ")");
    }
    filter(g, &in);
}

void inexact_make(struct gen *g, const struct place *p) {
    static const char *const names[] = {"avg",     "avg",      "stddev",
                                        "var_pop", "var_samp", "stddev_pop"};
    struct text *t = &g->text;
    int span = text_open(t, SORTS + 9);
    if (!p->rows) {
        static const char *const ops[] = {"(#d / nullif(#d, 0))", "(#f / nullif(#f, 0))",
                                          "cast(#d as double precision)"};
        const char *form = ops[below(g, 3)];
        for (const char *at = form; *at; at++) {
            if (*at == '#') {
                enum sort arg = sort_of_letter(*++at);
                expr_make(g, p, arg, 1, 1000);
            } else {
                text_say(t, "%c", *at);
            }
        }
    } else {
        struct place in = {(struct scope *)(uintptr_t)p->rows, NULL, true, false};
        if (one_in(g, 5)) {
            text_say(t, "percentile_cont(%s) within group (order by ",
                     one_in(g, 2) ? "0.5" : "0.3");
            expr_make(g, &in, one_in(g, 2) ? INT : DBL, 1, 1000);
        } else {
            text_say(t, "%s(%s", names[below(g, 6)], one_in(g, 5) ? "distinct " : "");
            expr_make(g, &in, (enum sort)below(g, DBL + 1), 1, 1000);
        }
        text_say(t, ")");
        filter(g, &in);
    }
    text_close(t, span);
}
