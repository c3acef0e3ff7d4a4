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

static void group_scope(struct gen *g, const struct scope *s, struct scope *out, char *keys,
                        size_t cap) {
    int count = below(g, 3);
    *out = (struct scope){.outer = s->outer, .rows = s->rows};
    snprintf(out->order, sizeof out->order, "!");
    keys[0] = 0;
    for (int i = 0; i < count && s->col_count > 0; i++) {
        const struct col *c = &s->cols[below(g, s->col_count)];
        size_t len = strlen(keys);
        snprintf(keys + len, cap - len, "%s%s", len ? ", " : "", c->text);
        out->cols[out->col_count++] = *c;
    }
}

static void group_by(struct gen *g, const struct scope *gs, const char *keys) {
    if (gs->col_count == 0) {
        return;
    }
    int form = below(g, 8);
    if (form == 0) {
        text_say(&g->text, " group by rollup (%s)", keys);
    } else if (form == 1) {
        text_say(&g->text, " group by cube (%s)", keys);
    } else if (form == 2) {
        text_say(&g->text, " group by grouping sets ((%s), ())", keys);
    } else {
        text_say(&g->text, " group by %s", keys);
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
    char keys[200] = "";
    int start = t->len;
    from_make(g, &s, depth);
    struct shape shape = {.grouped = one_in(g, 3), .top = top};
    shape.distinct = one_in(g, shape.grouped ? 16 : 8);
    shape.windows = !g->risky && one_in(g, shape.grouped ? 10 : 5);
    if (shape.grouped) {
        group_scope(g, &s, &gs, keys, sizeof keys);
    }
    struct place p = {shape.grouped ? &gs : &s, shape.grouped ? &s : NULL, false,
                      top && !shape.grouped && !shape.distinct && !g->ordered};
    int mid = t->len;
    text_say(t, shape.distinct ? "select distinct " : "select ");
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
        group_by(g, &gs, keys);
        text_close(t, part);
        if (one_in(g, 4)) {
            struct place having = {&gs, &s, false, false};
            clause(g, "having", &having, depth > 1 ? 1 : depth);
        }
    }
    text_close(t, span);
}

static void order_by_all(struct gen *g, int count) {
    for (int i = 0; i < count; i++) {
        static const char *const ends[] = {"", " desc", " nulls first", " desc nulls last", "", ""};
        text_say(&g->text, "%s%d%s", i ? ", " : " order by ", i + 1, ends[below(g, 6)]);
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
    text_close(&g->text, span);
}

void query_make(struct gen *g, const struct scope *outer, const struct col *out, int count,
                int depth) {
    if (depth >= 1 && one_in(g, 8)) {
        set_operation(g, outer, out, count, depth);
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
    struct col out = {.sort = any_sort(g)};
    out.max = sort_max(out.sort);
    int form = below(g, 4);
    if (form == 0) {
        text_say(t, one_in(g, 3) ? "(not exists (" : "(exists (");
    } else {
        text_say(t, "(");
        expr_make(g, p, out.sort, one_in(g, 3) ? depth : 0, out.max);
        if (form <= 2) {
            text_say(t, one_in(g, 2) ? " in (" : " not in (");
        } else {
            text_say(t, " %s %s (", ops[below(g, 4)], one_in(g, 2) ? "any" : "all");
        }
    }
    query_make(g, &outer, &out, 1, depth);
    text_say(t, "))");
}

static void with_clause(struct gen *g, int depth) {
    int count = 1 + below(g, 2);
    for (int i = 0; i < count; i++) {
        struct cte cte = {.rows = ROWS_SMALL, .col_count = 1 + below(g, 3)};
        snprintf(cte.name, sizeof cte.name, "w%d", i);
        for (int c = 0; c < cte.col_count; c++) {
            cte.cols[c].sort = any_sort(g);
            cte.cols[c].max = sort_max(cte.cols[c].sort);
        }
        text_say(&g->text, i ? ", %s (" : "with %s (", cte.name);
        for (int c = 0; c < cte.col_count; c++) {
            text_say(&g->text, c ? ", c%d" : "c%d", c);
        }
        text_say(&g->text, one_in(g, 3) ? ") as materialized (" : ") as (");
        query_make(g, NULL, cte.cols, cte.col_count, depth);
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
