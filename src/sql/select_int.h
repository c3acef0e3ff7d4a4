/* select_int.h: one SELECT while it is bound; shared by the files that bind its clauses.
 *
 * Expressions of the select list, HAVING and ORDER BY are bound over the columns of FROM and
 * rewritten when it is known whether there are groups; joins with their subqueries are kept in
 * lists until the operator they stand on exists. */
#ifndef WF_SQL_SELECT_INT_H
#define WF_SQL_SELECT_INT_H

#include "sql/sql_int.h"

struct order_item {
    i64 target; /* index into exprs: a select item, or an extra one behind them */
    b8 descending;
    b8 nulls_first;
};

struct key_set { /* numbers of group keys, ascending */
    VEC(i64) keys;
};
typedef VEC(struct key_set) key_sets;

struct select {
    const struct json *body;
    struct query query;
    struct scope scope;
    struct rel *rel;
    struct expr *having;
    pending_list having_pending;
    VEC(struct expr *) exprs; /* select list, then extra sort expressions */
    VEC(const char *) names;
    VEC(struct seen) seen; /* in each of exprs */
    i64 shown; /* of exprs, the select list */
    VEC(struct expr *) keys;
    expr_hashes key_hashes;  /* of the first keys */
    expr_hashes expr_hashes; /* of the first exprs, while ORDER BY looks for its own */
    VEC(i64) key_items;      /* by_item: the select items that the first keys are; -1 = none */
    b8 by_item;              /* GROUP BY has grouping sets: equal items may be NULL apart */
    key_sets sets;           /* of GROUP BY; empty without one */
    VEC(struct order_item) order;
    VEC(i64) on; /* DISTINCT ON: indices into exprs */
    b8 distinct;
    b8 fixed; /* ORDER BY may name output columns only: set operations */
    b8 keep_unknown;
    b8 for_exists;
};

/* What the query has `seen` belongs to the expression. */
void select_add_target(struct bind *b, struct select *s, struct expr *expr, const char *name);
/* A constant stands for a position in GROUP BY and ORDER BY; -1 when the node is no constant. */
FALLIBLE select_numbered(struct bind *b, struct select *s, const struct json *node,
                         const char *clause, i64 *out);
/* The select item with that name; -1 when none; different expressions of one name are an error. */
FALLIBLE select_named(struct bind *b, struct select *s, const char *name, const char *clause,
                      i32 position, i64 *out);
/* The one name of a bare column reference, or NULL. */
const char *bare_name(const struct json *node);

/* bind_friendly.c */
/* `* EXCLUDE … REPLACE …` at a select item; *out_is tells whether it is one. */
FALLIBLE bind_star_but(struct bind *b, struct select *s, const struct json *node, bool *out_is);
bool bind_is_all(const struct json *node); /* GROUP BY ALL, ORDER BY ALL */

/* bind_group.c */
FALLIBLE bind_groups(struct bind *b, struct select *s);  /* the GROUP BY clause */
FALLIBLE build_groups(struct bind *b, struct select *s); /* AGG, HAVING; rewrites what is above */

/* bind_depend.c */
/* Columns that depend on a primary key among the group keys become keys, too. */
void bind_dependents(struct bind *b, struct select *s);

/* bind_order.c */
FALLIBLE bind_distinct_clause(struct bind *b, struct select *s);
FALLIBLE bind_order(struct bind *b, struct select *s);
/* DISTINCT ON of a query with an ORDER BY chooses among the rows before the select list's
 * set-returning functions multiply them, unless it or the order names one. */
void build_distinct_early(struct bind *b, struct select *s);
/* DISTINCT, ORDER BY and LIMIT above the projection of s->exprs. */
FALLIBLE build_order(struct bind *b, struct select *s);

/* LIMIT and OFFSET as constants or parameters; NULL = none. */
FALLIBLE select_bounds(struct bind *b, const struct select *s, struct expr **out_limit,
                       struct expr **out_offset);

/* bind_serial.c */
/* The calls of sequences in a select list, which stand above ORDER BY and LIMIT; *out_done: so does
 * all the rest of the select, already. */
FALLIBLE build_serials(struct bind *b, struct select *s, pending_list *serials, bool *out_done);

/* bind_set.c */
void bind_set_stages(struct select *s); /* once all clauses are bound */
FALLIBLE build_sets(struct bind *b, struct select *s, enum set_stage stage);

/* bind_window.c */
FALLIBLE build_windows(struct bind *b, struct select *s);

#endif
