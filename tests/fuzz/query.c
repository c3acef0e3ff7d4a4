/* query.c: random queries: SELECT with all its clauses, set operations, CTEs, windows, and
 * subqueries as values and conditions.
 *
 * query_make is asked for columns of given sorts, so that it serves statements, derived tables, set
 * operations and subqueries alike. LIMIT comes only behind an ORDER BY of every output column:
 * rows that tie are then equal. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_query.h"

struct shape { /* of one SELECT */
    bool grouped;
    bool distinct;
    bool windows;
    bool top;
};

/* A group key: a column, or an expression of one that no planner takes for a constant: PostgreSQL
 * would then not see it in the select list. */
static void group_key(struct gen *g, const struct scope *s, struct col *out) {
    static const struct {
        enum sort from, to;
        const char *form;
    } forms[] = {
        {INT, INT, "(%s %% 3)"},
        {INT, INT, "abs(%s)"},
        {BIG, BIG, "(%s / 2)"},
        {DEC, DEC, "round(%s)"},
        {DBL, BOOL, "(%s > 0)"},
        {TXT, TXT, "upper(%s)"},
        {TXT, INT, "length(%s)"},
        {TXT, TXT, "left(%s, 1)"},
        {DAY, DAY, "(%s + 1)"},
        {MOM, DAY, "cast(%s as date)"},
        {BOOL, BOOL, "(not %s)"},
        {INT, BOOL, "(%s is null)"},
        {MOM, MOM, "date_trunc('day', %s)"},
    };
    const int count = sizeof forms / sizeof *forms;
    const struct col *col = &s->cols[below(g, s->col_count)];
    int form = below(g, 3 * count);
    *out = *col;
    if (form < count && forms[form].from == col->sort && col->max <= 1e6) {
        char made[sizeof out->text + 32];
        snprintf(made, sizeof made, forms[form].form, col->text);
        if (strlen(made) < sizeof out->text) {
            memcpy(out->text, made, strlen(made) + 1);
            out->sort = forms[form].to;
            out->max = forms[form].to == TXT ? 30 : col->max;
            out->plain = false;
        }
    }
}

static void group_scope(struct gen *g, const struct scope *s, struct scope *out) {
    int count = below(g, 4);
    *out = (struct scope){.outer = s->outer, .rows = s->rows};
    snprintf(out->order, sizeof out->order, "!");
    for (int i = 0; i < count && s->col_count > 0; i++) {
        group_key(g, s, &out->cols[out->col_count++]);
    }
}

static void key_list(struct gen *g, const struct scope *gs, int from, int to) {
    for (int i = from; i < to; i++) {
        text_say(&g->text, "%s%s", i > from ? ", " : "", gs->cols[i].text);
    }
}

static void group_by(struct gen *g, const struct scope *gs) {
    static const char *const forms[] = {"rollup (", "cube (", "grouping sets ((), rollup (",
                                        "grouping sets (("};
    static const char *const ends[] = {")", ")", "))", "), ())"};
    int n = gs->col_count;
    if (n == 0) {
        return;
    }
    text_say(&g->text, one_in(g, 12) ? " group by distinct " : " group by ");
    int form = below(g, 8);
    if (form < 4) {
        int plain = n > 1 && one_in(g, 3) ? 1 : 0; /* keys in front of the sets */
        key_list(g, gs, 0, plain);
        text_say(&g->text, plain ? ", %s" : "%s", forms[form]);
        key_list(g, gs, plain, n);
        text_say(&g->text, "%s", ends[form]);
    } else if (form == 4 && n > 1) {
        text_say(&g->text, "grouping sets ((");
        key_list(g, gs, 0, 1);
        text_say(&g->text, "), (");
        key_list(g, gs, 1, n);
        text_say(&g->text, "), (");
        key_list(g, gs, 0, n);
        text_say(&g->text, "))");
    } else {
        key_list(g, gs, 0, n);
    }
}

static void item(struct gen *g, const struct place *p, const struct shape *shape,
                 const struct col *out, int n, int depth) {
    if (shape->top && !shape->distinct && !g->ordered && one_in(g, 8) && !g->risky) {
        g->inexact[n] = true;
        inexact_make(g, p);
    } else if (shape->windows && one_in(g, 2)) {
        window_make(g, p, out->sort, out->max);
    } else {
        expr_make(g, p, out->sort, depth, out->max);
    }
}

static void clause(struct gen *g, const char *word, const struct place *p, int depth) {
    int span = text_open(&g->text, SPAN_OPTIONAL);
    text_say(&g->text, " %s ", word);
    cond_make(g, p, depth);
    text_close(&g->text, span);
}

static void select_make(struct gen *g, const struct scope *outer, const struct col *out, int count,
                        int depth, bool top) {
    struct text *t = &g->text;
    int span = text_open(t, SPAN_QUERY);
    struct scope s = {.outer = outer};
    struct scope gs;
    int start = t->len;
    from_make(g, &s, depth);
    struct shape shape = {.grouped = one_in(g, 3), .top = top};
    shape.distinct = one_in(g, shape.grouped ? 16 : 8);
    shape.windows = !g->risky && one_in(g, shape.grouped ? 6 : 5);
    if (shape.grouped) {
        group_scope(g, &s, &gs);
    }
    struct place p = {shape.grouped ? &gs : &s, shape.grouped ? &s : NULL, false,
                      top && !shape.grouped && !shape.distinct && !g->ordered};
    int mid = t->len;
    const char *first = NULL; /* the first row of each value of this column */
    if (!(top && g->ordered) && !shape.grouped && !shape.windows && s.order[0] != '!' &&
        s.col_count > 0 && one_in(g, 12)) {
        first = s.cols[below(g, s.col_count)].text;
        shape.distinct = false;
        text_say(t, "%sselect distinct on (%s) ", top ? "" : "select * from (", first);
    } else {
        text_say(t, shape.distinct ? "select distinct " : "select ");
    }
    for (int i = 0; i < count; i++) {
        int part = i ? text_open(t, SPAN_OPTIONAL) : -1;
        text_say(t, i ? ", " : "");
        item(g, &p, &shape, &out[i], i, depth);
        text_say(t, " as c%d", i);
        text_close(t, part);
    }
    text_rotate(t, start, mid);
    struct place row = {&s, NULL, false, false};
    if (one_in(g, 2)) {
        clause(g, "where", &row, depth);
    }
    if (shape.grouped) {
        int part = text_open(t, SPAN_OPTIONAL);
        group_by(g, &gs);
        text_close(t, part);
        if (one_in(g, 4)) {
            struct place having = {&gs, &s, false, false};
            clause(g, "having", &having, depth > 1 && !one_in(g, 4) ? 1 : depth);
        }
    }
    if (first) {
        text_say(t, " order by %s, %s%s", first, s.order, top ? "" : ") v");
    } else if (top && g->ordered && !shape.distinct && !g->risky && one_in(g, 3)) {
        enum sort sort = any_sort(g);
        sort = sort == DEC || sort == DBL ? INT : sort; /* texts show scales, and signs of 0 */
        text_say(t, " order by (");
        expr_make(g, &p, sort, depth, sort_max(sort));
        text_say(t, ")::text");
        g->order_begun = true;
    }
    text_close(t, span);
}

static void order_by_all(struct gen *g, int count) {
    for (int i = 0; i < count; i++) {
        static const char *const ends[] = {"", " desc", " nulls first", " desc nulls last", "", ""};
        text_say(&g->text, "%s%d%s", i || g->order_begun ? ", " : " order by ", i + 1,
                 ends[below(g, 6)]);
    }
    g->order_begun = false;
}

void values_make(struct gen *g, const struct scope *outer, const struct col *out, int count,
                 int rows, int depth) {
    struct scope s = {.outer = outer, .order = "!"};
    struct place p = {&s, NULL, false, false};
    for (int r = 0; r < rows; r++) {
        text_say(&g->text, r ? ", (" : "values (");
        for (int c = 0; c < count; c++) {
            text_say(&g->text, c ? ", " : "");
            if (r == 0 && out[c].sort == TXT) { /* a type, if all are quoted */
                text_say(&g->text, "cast(");
                expr_make(g, &p, TXT, depth, out[c].max);
                text_say(&g->text, " as text)");
            } else {
                expr_make(g, &p, out[c].sort, depth, out[c].max);
            }
        }
        text_say(&g->text, ")");
    }
}

static void set_operation(struct gen *g, const struct scope *outer, const struct col *out,
                          int count, int depth) {
    static const char *const ops[] = {"union all", "union",      "intersect",
                                      "except",    "except all", "intersect all"};
    int span = text_open(&g->text, SPAN_QUERY);
    text_say(&g->text, "(");
    query_make(g, outer, out, count, depth - 1);
    text_say(&g->text, ") %s (", ops[below(g, 6)]);
    query_make(g, outer, out, count, depth - 1);
    text_say(&g->text, ")");
    if (one_in(g, 4)) { /* INTERSECT goes first */
        text_say(&g->text, " %s (", ops[below(g, 6)]);
        query_make(g, outer, out, count, depth - 2);
        text_say(&g->text, ")");
    }
    text_close(&g->text, span);
}

void query_make(struct gen *g, const struct scope *outer, const struct col *out, int count,
                int depth) {
    if (depth >= 1 && one_in(g, 8)) {
        set_operation(g, outer, out, count, depth);
        return;
    }
    if (one_in(g, 16)) {
        values_make(g, outer, out, count, 1 + below(g, 3), depth > 1 ? 1 : depth);
        return;
    }
    int span = text_open(&g->text, SPAN_QUERY);
    select_make(g, outer, out, count, depth, false);
    if (one_in(g, 8) && !g->risky) {
        int part = text_open(&g->text, SPAN_OPTIONAL);
        order_by_all(g, count);
        text_say(&g->text, " limit %d", below(g, 5));
        text_close(&g->text, part);
    }
    text_close(&g->text, span);
}

static struct scope outer_of(const struct place *p) {
    struct scope s = *p->scope;
    if (p->no_outer) {
        s.outer = NULL;
    }
    return s;
}

void scalar_make(struct gen *g, const struct place *p, enum sort sort, int depth, double max) {
    struct scope outer = outer_of(p);
    struct text *t = &g->text;
    struct col out = {.sort = sort, .max = max};
    text_say(t, "(");
    if (one_in(g, 3)) {
        select_make(g, &outer, &out, 1, depth, false);
        text_say(t, " order by 1%s limit 1", one_in(g, 2) ? " desc" : "");
    } else {
        struct scope s = {.outer = &outer};
        struct scope none = {.outer = &outer, .order = "!"};
        struct place in = {&none, &s, false, false};
        struct place row = {&s, NULL, false, false};
        int start = t->len;
        from_make(g, &s, depth);
        int mid = t->len;
        text_say(t, "select ");
        if (one_in(g, 4)) { /* an aggregate keeps it to one row */
            text_say(t, "coalesce(");
            aggregate_make(g, &in, sort, max);
            text_say(t, ", ");
            expr_make(g, &in, sort, depth, max);
            text_say(t, ")");
        } else {
            aggregate_make(g, &in, sort, max);
        }
        text_rotate(t, start, mid);
        if (!one_in(g, 4)) {
            clause(g, "where", &row, depth);
        }
    }
    text_say(t, ")");
}

void subquery_cond_make(struct gen *g, const struct place *p, int depth) {
    static const char *const ops[] = {"=", "<>", "<", ">="};
    struct scope outer = outer_of(p);
    struct text *t = &g->text;
    struct col out[2] = {{.sort = any_sort(g)}, {.sort = any_sort(g)}};
    int count = 1;
    out[0].max = sort_max(out[0].sort);
    out[1].max = sort_max(out[1].sort);
    int form = below(g, 5);
    if (form == 4) {
        count = 2;
        text_say(t, "((");
        expr_make(g, p, out[0].sort, 0, out[0].max);
        text_say(t, ", ");
        expr_make(g, p, out[1].sort, 0, out[1].max);
        text_say(t, one_in(g, 2) ? ") in (" : ") not in (");
    } else if (form == 0) {
        text_say(t, one_in(g, 3) ? "(not exists (" : "(exists (");
    } else {
        text_say(t, "(");
        expr_make(g, p, out[0].sort, one_in(g, 3) ? depth : 0, out[0].max);
        if (form <= 2) {
            text_say(t, one_in(g, 2) ? " in (" : " not in (");
        } else {
            text_say(t, " %s %s (", ops[below(g, 4)], one_in(g, 2) ? "any" : "all");
        }
    }
    query_make(g, &outer, out, count, depth);
    text_say(t, "))");
}

/* A recursion that counts its first column up to a bound. */
static void recursive_make(struct gen *g, struct cte *cte, int depth) {
    static const char *const types[SORTS] = {"integer",          "bigint",   "decimal(20,4)",
                                             "double precision", "text",     "date",
                                             "boolean",          "timestamp"};
    struct scope s = {.order = "!", .rows = ROWS_SMALL};
    struct place p = {&s, NULL, true, false};
    struct text *t = &g->text;
    cte->cols[0] = (struct col){.sort = INT, .max = 20};
    cte->rows = 200;
    text_say(t, "select cast(r.c0 as integer)");
    for (int c = 1; c < cte->col_count; c++) {
        cte->cols[c].max = cte->cols[c].sort == TXT ? 500 : sort_max(cte->cols[c].sort);
        text_say(t, ", cast(r.c%d as %s)", c, types[cte->cols[c].sort]);
    }
    text_say(t, " from (");
    query_make(g, NULL, cte->cols, cte->col_count, depth > 1 ? 1 : depth);
    text_say(t, ") r (");
    for (int c = 0; c < cte->col_count; c++) {
        text_say(t, c ? ", c%d" : "c%d", c);
        snprintf(s.cols[c].text, sizeof s.cols[c].text, "%s.c%d", cte->name, c);
        s.cols[c].sort = cte->cols[c].sort;
        s.cols[c].max = cte->cols[c].max;
        s.cols[c].plain = true;
    }
    s.col_count = cte->col_count;
    text_say(t, ") where r.c0 between 0 and 3 %s select %s.c0 + 1",
             one_in(g, 2) ? "union" : "union all", cte->name);
    for (int c = 1; c < cte->col_count; c++) {
        text_say(t, ", cast(");
        if (cte->cols[c].sort == TXT) { /* grows by little each time */
            text_say(t, "left(");
            expr_make(g, &p, TXT, 1, 100000);
            text_say(t, ", 100)");
        } else {
            s.col_count = 1;
            expr_make(g, &p, cte->cols[c].sort, 1, sort_max(cte->cols[c].sort));
            s.col_count = cte->col_count;
        }
        text_say(t, " as %s)", types[cte->cols[c].sort]);
    }
    text_say(t, " from %s where %s.c0 < %d", cte->name, cte->name, 2 + below(g, 4));
    if (one_in(g, 2)) {
        clause(g, "and", &p, 1);
    }
}

static void with_clause(struct gen *g, int depth) {
    int count = 1 + below(g, 2);
    bool recursive = one_in(g, 3);
    for (int i = 0; i < count; i++) {
        struct cte cte = {.rows = ROWS_SMALL, .col_count = 1 + below(g, 3)};
        bool again = recursive && one_in(g, 2);
        snprintf(cte.name, sizeof cte.name, "w%d", i);
        for (int c = 0; c < cte.col_count; c++) {
            cte.cols[c].sort = any_sort(g);
            cte.cols[c].max = sort_max(cte.cols[c].sort);
        }
        text_say(&g->text,
                 i           ? ", %s ("
                 : recursive ? "with recursive %s ("
                             : "with %s (",
                 cte.name);
        for (int c = 0; c < cte.col_count; c++) {
            text_say(&g->text, c ? ", c%d" : "c%d", c);
        }
        text_say(&g->text, one_in(g, 3) ? ") as materialized (" : ") as (");
        if (again) {
            recursive_make(g, &cte, depth);
        } else {
            query_make(g, NULL, cte.cols, cte.col_count, depth);
        }
        text_say(&g->text, ")");
        g->ctes[i] = cte;
        g->cte_count = i + 1;
    }
    text_say(&g->text, " ");
}

void statement_make(struct gen *g) {
    struct col out[OUT_MAX];
    int count = 1 + below(g, 4);
    int depth = 1 + below(g, 4);
    text_reset(&g->text);
    g->cte_count = 0;
    g->alias_count = 0;
    g->risk_inner = false;
    g->order_begun = false;
    g->out_count = count;
    memset(g->inexact, 0, sizeof g->inexact);
    g->risky = one_in(g, 8);
    g->ordered = one_in(g, 4);
    for (int i = 0; i < count; i++) {
        out[i].sort = any_sort(g);
        out[i].max = sort_max(out[i].sort);
    }
    if (!g->risky && one_in(g, 8)) {
        with_clause(g, depth - 1);
    }
    if (one_in(g, 8)) {
        if (g->risky) {
            g->risk_inner = true;
        }
        set_operation(g, NULL, out, count, depth);
    } else {
        select_make(g, NULL, out, count, depth, true);
    }
    if (g->ordered) {
        int span = text_open(&g->text, SPAN_OPTIONAL);
        order_by_all(g, count);
        if (one_in(g, 2)) {
            text_say(&g->text, " limit %d", below(g, 20));
        }
        if (one_in(g, 3)) {
            text_say(&g->text, " offset %d", below(g, 5));
        }
        text_close(&g->text, span);
    }
}
