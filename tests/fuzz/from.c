/* from.c: random FROM clauses: tables, derived tables, CTEs, series and values, joined in every
 * way.
 *
 * The product of the row counts stays bounded, so that no query runs long in a system without our
 * joins. A scope keeps a total order of its rows while every item is a table: windows and LIMIT
 * need one. Full joins have equalities only, because PostgreSQL has no other. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

enum { ROWS_MOST = 20000, NAME_MAX_USED = 40 };

static void add_col(struct scope *s, const char *alias, const char *name, enum sort sort,
                    double max) {
    if (s->col_count < SCOPE_MAX) {
        struct col *c = &s->cols[s->col_count++];
        snprintf(c->text, sizeof c->text, "%s.%s", alias, name);
        c->sort = sort;
        c->max = max;
        c->plain = true;
    }
}

static void lose_order(struct scope *s) {
    snprintf(s->order, sizeof s->order, "!");
}

static const struct table *pick_table(struct gen *g, const struct scope *s, int depth) {
    const struct table *t = &g->tables[below(g, TABLES)];
    for (int i = 0; i < 10; i++) {
        double rows = (s->rows < 1 ? 1 : s->rows) * t->rows;
        bool deep = s->outer != NULL || depth < 2;
        if (rows <= ROWS_MOST && !(deep && t->rows > ROWS_SMALL) && !(t->rows < 2 && i < 5)) {
            return t;
        }
        t = &g->tables[below(g, TABLES)];
    }
    return &g->tables[2];
}

static void add_table(struct gen *g, struct scope *s, const struct table *t, const char *alias) {
    text_say(&g->text, "%s %s", t->name, alias);
    for (int i = 0; i < t->col_count; i++) {
        add_col(s, alias, t->cols[i].name, t->cols[i].sort, t->cols[i].max);
    }
    if (s->order[0] != '!') {
        size_t len = strlen(s->order);
        snprintf(s->order + len, sizeof s->order - len, "%s%s.%s", len ? ", " : "", alias, t->id);
    }
    s->rows = (s->rows < 1 ? 1 : s->rows) * t->rows;
}

static void random_out(struct gen *g, struct col *out, int count) {
    for (int i = 0; i < count; i++) {
        out[i].sort = i == 0 ? INT : any_sort(g);
        out[i].max = one_in(g, 2) ? sort_max(out[i].sort) : 50;
        if (out[i].sort >= TXT) {
            out[i].max = out[i].sort == TXT ? 200 : sort_max(out[i].sort);
        }
    }
}

/* The end of a derived table: its name, and those of its columns. */
static void name_derived(struct gen *g, struct scope *s, const char *alias, const struct col *out,
                         int count) {
    text_say(&g->text, ") %s (", alias);
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        text_say(&g->text, i ? ", %s" : "%s", name);
        add_col(s, alias, name, out[i].sort, out[i].max);
    }
    text_say(&g->text, ")");
    lose_order(s);
}

/* Rows of expressions over what the queries around have. */
static void add_values(struct gen *g, struct scope *s, const char *alias, int depth) {
    struct col out[OUT_MAX];
    int rows = 1 + below(g, 4);
    int count = 1 + below(g, 3);
    random_out(g, out, count);
    text_say(&g->text, "(");
    values_make(g, s->outer, out, count, rows, depth);
    name_derived(g, s, alias, out, count);
    s->rows = (s->rows < 1 ? 1 : s->rows) * rows;
}

/* generate_series of constants, or of columns to the left. */
static void add_series(struct gen *g, struct scope *s, const char *alias, bool lateral) {
    const struct col *found = NULL;
    for (int i = 0; lateral && i < s->col_count; i++) {
        found = s->cols[i].sort == INT && s->cols[i].max <= 30 && s->cols[i].plain &&
                        (!found || one_in(g, 3))
                    ? &s->cols[i]
                    : found;
    }
    int form = below(g, 6);
    if (form == 0) {
        text_say(&g->text,
                 "generate_series(date '2000-02-27', date '2000-03-02', interval '1 day')");
    } else if (form == 1) {
        text_say(&g->text,
                 "generate_series(timestamp '1999-12-31', '2000-03-05', interval '1 mon')");
    } else if (found) {
        text_say(&g->text, one_in(g, 2) ? "generate_series(%s, %d)" : "generate_series(%s, %d, -1)",
                 found->text, below(g, 3));
    } else if (form == 2) {
        text_say(&g->text, "generate_series(%d, -3, %d)", below(g, 5), -1 - below(g, 3));
    } else {
        text_say(&g->text, "generate_series(%d, %d)", below(g, 3), 1 + below(g, 6));
    }
    text_say(&g->text, " %s (c0)", alias);
    if (form == 0) { /* a timestamp with a time zone: an output of its own kind */
        text_say(&g->text, " ");
    } else {
        add_col(s, alias, "c0", form == 1 ? MOM : INT, form == 1 ? 40000 : 40);
    }
    lose_order(s);
    s->rows = (s->rows < 1 ? 1 : s->rows) * (found ? 30 : 6);
}

/* A derived table; `lateral` ones see the scope so far. */
static void add_query(struct gen *g, struct scope *s, const char *alias, int depth,
                      const struct scope *outer) {
    struct col out[OUT_MAX];
    int count = 1 + below(g, 3);
    random_out(g, out, count);
    text_say(&g->text, "(");
    query_make(g, outer, out, count, depth);
    name_derived(g, s, alias, out, count);
    s->rows = (s->rows < 1 ? 1 : s->rows) * ROWS_SMALL;
}

static void add_item(struct gen *g, struct scope *s, const char *alias, int depth) {
    int form = below(g, 12);
    if (form == 0 && depth >= 1) {
        add_query(g, s, alias, depth - 1, s->outer);
    } else if (form == 1) {
        add_series(g, s, alias, false);
    } else if (form == 2) {
        add_values(g, s, alias, depth > 1 ? 1 : depth);
    } else if (form <= 5 && g->cte_count > 0) {
        const struct cte *cte = &g->ctes[below(g, g->cte_count)];
        text_say(&g->text, "%s %s", cte->name, alias);
        for (int i = 0; i < cte->col_count; i++) {
            char name[16];
            snprintf(name, sizeof name, "c%d", i);
            add_col(s, alias, name, cte->cols[i].sort, cte->cols[i].max);
        }
        lose_order(s);
        s->rows = (s->rows < 1 ? 1 : s->rows) * ROWS_SMALL;
    } else {
        add_table(g, s, pick_table(g, s, depth), alias);
    }
}

static bool fits(enum sort a, enum sort b) {
    return a == b || (a <= DEC && b <= DEC);
}

/* left.a = right.b; false when no columns go together. */
static bool equality(struct gen *g, const struct scope *s, int first) {
    int found_a = -1;
    int found_b = -1;
    int seen = 0;
    for (int a = 0; a < first; a++) {
        for (int b = first; b < s->col_count; b++) {
            const char *name_a = strchr(s->cols[a].text, '.');
            const char *name_b = strchr(s->cols[b].text, '.');
            bool same = name_a && name_b && strcmp(name_a, name_b) == 0;
            int weight = !fits(s->cols[a].sort, s->cols[b].sort) ? 0 : same ? 8 : 1;
            for (int w = 0; w < weight; w++) {
                if (below(g, ++seen) == 0) {
                    found_a = a;
                    found_b = b;
                }
            }
        }
    }
    if (found_a >= 0) {
        text_say(&g->text, "%s = %s", s->cols[found_a].text, s->cols[found_b].text);
    }
    return found_a >= 0;
}

static void on_condition(struct gen *g, struct scope *s, int first, bool full, int depth) {
    text_say(&g->text, " on ");
    bool equal = full || !one_in(g, 6);
    int span = text_open(&g->text, BOOL);
    if (!equal || !equality(g, s, first)) {
        if (full) {
            text_say(&g->text, "true");
        } else {
            struct place p = {s, NULL, false, false};
            cond_make(g, &p, depth);
        }
    } else if (one_in(g, 4)) {
        int more = text_open(&g->text, SPAN_OPTIONAL);
        text_say(&g->text, " and ");
        if (full) {
            if (!equality(g, s, first)) {
                text_say(&g->text, "true");
            }
        } else {
            struct place p = {s, NULL, false, false};
            cond_make(g, &p, depth > 2 ? 2 : depth);
        }
        text_close(&g->text, more);
    }
    text_close(&g->text, span);
}

/* NATURAL or USING between the first item and a second; both are tables. */
static void merged_join(struct gen *g, struct scope *s, const struct table *left, int depth) {
    static const char *const kinds[] = {"join", "left join", "right join", "full join"};
    const struct table *right = pick_table(g, s, depth);
    const char *kind = kinds[below(g, 4)];
    bool natural = one_in(g, 2);
    char alias[12];
    snprintf(alias, sizeof alias, "q%d", g->alias_count++);
    text_say(&g->text, natural ? " natural %s " : " %s ", kind);
    add_table(g, s, right, alias);
    bool both = one_in(g, 2);
    if (!natural) {
        text_say(&g->text, both ? " using (k, i)" : " using (k)");
    }
    for (int i = 0; i < left->col_count; i++) {
        const struct column *c = &left->cols[i];
        bool in_right = false;
        for (int j = 0; j < right->col_count; j++) {
            in_right = in_right || strcmp(right->cols[j].name, c->name) == 0;
        }
        bool used = natural ? in_right : c->name[0] == 'k' || (both && strcmp(c->name, "i") == 0);
        if (used && s->col_count < SCOPE_MAX) {
            struct col *merged = &s->cols[s->col_count++];
            snprintf(merged->text, sizeof merged->text, "%.40s", c->name);
            merged->sort = c->sort;
            merged->max = c->max;
            merged->plain = false; /* a subquery's own columns would hide the name */
        }
    }
}

static void lateral_join(struct gen *g, struct scope *s, const char *alias, int depth) {
    bool left = one_in(g, 2);
    int first = s->col_count;
    text_say(&g->text, left ? " left join lateral " : " cross join lateral ");
    struct scope seen = *s;
    if (one_in(g, 4)) {
        add_series(g, s, alias, true);
    } else {
        add_query(g, s, alias, depth - 1, &seen);
    }
    if (left && one_in(g, 3)) {
        on_condition(g, s, first, false, depth);
    } else {
        text_say(&g->text, left ? " on true" : "");
    }
}

void from_make(struct gen *g, struct scope *s, int depth) {
    static const char *const kinds[] = {"join",       "join",      "left join", "left join",
                                        "right join", "full join", "cross join"};
    char alias[12];
    s->col_count = 0;
    s->order[0] = 0;
    s->rows = 1;
    snprintf(alias, sizeof alias, "q%d", g->alias_count++);
    text_say(&g->text, " from ");
    if (one_in(g, 10)) {
        const struct table *left = pick_table(g, s, depth);
        add_table(g, s, left, alias);
        merged_join(g, s, left, depth);
        return;
    }
    add_item(g, s, alias, depth);
    int joins = depth < 1 ? below(g, 2) : one_in(g, 3) ? 0 : 1 + below(g, 2);
    for (int j = 0; j < joins && s->rows <= ROWS_MOST && s->col_count < NAME_MAX_USED; j++) {
        int span = text_open(&g->text, SPAN_OPTIONAL);
        int first = s->col_count;
        snprintf(alias, sizeof alias, "q%d", g->alias_count++);
        if (depth >= 2 && one_in(g, 7)) {
            lateral_join(g, s, alias, depth - 1);
        } else {
            const char *kind = kinds[below(g, 7)];
            text_say(&g->text, " %s ", kind);
            add_item(g, s, alias, depth - 1);
            if (kind[0] != 'c') {
                on_condition(g, s, first, kind[0] == 'f', depth - 1);
            }
        }
        text_close(&g->text, span);
    }
}
