/* dml.c: random UPDATE, DELETE and INSERT … SELECT, with ON CONFLICT and RETURNING.
 *
 * The tables of a schema are changed once, half way through its queries: the second half runs over
 * versions with deleted rows and several tablets. Identifiers stay unique, and an UPDATE … FROM
 * meets at most one row; a DELETE … USING may meet several, so it returns columns of its own table
 * only. Values keep within the bounds of their columns, so that what is known of the columns stays
 * true. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static void scope_of(struct scope *s, const struct table *t, const char *alias) {
    for (int i = 0; i < t->col_count && s->col_count < SCOPE_MAX; i++) {
        struct col *c = &s->cols[s->col_count++];
        snprintf(c->text, sizeof c->text, "%s.%s", alias, t->cols[i].name);
        c->sort = t->cols[i].sort;
        c->max = t->cols[i].max;
        c->plain = true;
    }
    s->rows = t->rows;
    snprintf(s->order, sizeof s->order, "!");
}

static void where(struct gen *g, struct scope *s, const char *word) {
    struct place p = {s, NULL, false, false};
    int span = text_open(&g->text, SPAN_OPTIONAL);
    text_say(&g->text, " %s ", word);
    cond_make(g, &p, 2);
    text_close(&g->text, span);
}

static void returning(struct gen *g, struct scope *s) {
    struct place p = {s, NULL, false, false};
    if (one_in(g, 2)) {
        return;
    }
    int count = 1 + below(g, 3);
    int span = text_open(&g->text, SPAN_OPTIONAL);
    for (int i = 0; i < count; i++) {
        enum sort sort = any_sort(g);
        text_say(&g->text, i ? ", " : " returning ");
        expr_make(g, &p, sort, below(g, 3), sort_max(sort));
        text_say(&g->text, " as c%d", i);
    }
    text_close(&g->text, span);
}

/* c = value, or (c, d) = (value, value), or of a subquery. */
static void assignments(struct gen *g, const struct table *t, struct scope *s, int count) {
    struct place p = {s, NULL, false, false};
    const struct column *cols[2];
    int first = below(g, t->col_count - 1);
    for (int i = 0; i < count; i++) {
        cols[i] = &t->cols[1 + (first + i) % (t->col_count - 1)];
    }
    bool together = count == 2 && one_in(g, 3);
    if (together) {
        text_say(&g->text, "(%s, %s) = (%s", cols[0]->name, cols[1]->name,
                 one_in(g, 2) ? "select " : "");
    }
    for (int i = 0; i < count; i++) {
        text_say(&g->text,
                 together ? "%s"
                 : i      ? ", %s = "
                          : "%s = ",
                 !together ? cols[i]->name
                 : i       ? ", "
                           : "");
        expr_make(g, &p, cols[i]->sort, 2, cols[i]->max);
    }
    text_say(&g->text, together ? ")" : "");
}

static void update(struct gen *g, const struct table *t, struct scope *s) {
    text_say(&g->text, "update %s as q0 set ", t->name);
    bool from = one_in(g, 3);
    const struct table *other = &g->tables[2 + below(g, 3)];
    if (from) {
        scope_of(s, other, "q1");
    }
    assignments(g, t, s, 1 + below(g, 2));
    if (from) {
        text_say(&g->text, " from %s q1 where q0.%s = q1.%s", other->name, t->id, other->id);
    }
    where(g, s, from ? "and" : "where");
    returning(g, s);
}

static void delete (struct gen *g, const struct table *t, struct scope *s) {
    struct scope own = *s;
    text_say(&g->text, "delete from %s q0", t->name);
    if (one_in(g, 2)) {
        const struct table *other = &g->tables[2 + below(g, 3)];
        scope_of(s, other, "q1");
        text_say(&g->text, " using %s q1 where q0.i = q1.k and q1.%s < 3", other->name, other->id);
        where(g, s, "and");
    } else {
        where(g, s, "where");
    }
    returning(g, &own);
}

/* Each adds another power of two times 3,000 to the identifiers, so that no two sums are equal. */
static void insert(struct gen *g, const struct table *t, struct scope *s, int number) {
    struct place p = {s, NULL, false, false};
    bool keyed = (t - g->tables) % 2 == 0;
    bool conflicts = keyed && one_in(g, 2);
    text_say(&g->text, "insert into %s as q1 select q0.%s + %d", t->name, t->id,
             conflicts ? 1 + below(g, 4) : 3000 << number);
    for (int i = 1; i < t->col_count; i++) {
        text_say(&g->text, ", ");
        expr_make(g, &p, t->cols[i].sort, one_in(g, 4) ? 1 : 0, t->cols[i].max);
    }
    text_say(&g->text, " from %s q0", t->name);
    where(g, s, "where");
    struct scope own = {.outer = NULL};
    scope_of(&own, t, "q1");
    if (conflicts && one_in(g, 3)) {
        text_say(&g->text, " on conflict do nothing");
    } else if (conflicts) {
        struct scope both = own;
        scope_of(&both, t, "excluded");
        text_say(&g->text, " on conflict (%s) do update set ", t->id);
        assignments(g, t, &both, 1 + below(g, 2));
        where(g, &both, "where");
    }
    returning(g, &own);
}

const struct table *dml_make(struct gen *g, int number) {
    const struct table *t = &g->tables[1 + below(g, TABLES - 1)];
    struct scope s = {.outer = NULL};
    text_reset(&g->text);
    g->risky = false;
    g->ordered = false;
    g->cte_count = 0;
    g->alias_count = 2;
    memset(g->inexact, 0, sizeof g->inexact);
    scope_of(&s, t, "q0");
    int form = below(g, 6);
    if (form == 0) {
        delete (g, t, &s);
    } else if (form <= 2 && t->rows <= ROWS_SMALL) {
        insert(g, t, &s, number);
    } else {
        update(g, t, &s);
    }
    return t;
}
