/* change_int.h: the binding of statements that change rows; shared by the files that bind them. */
#ifndef WF_SQL_CHANGE_INT_H
#define WF_SQL_CHANGE_INT_H

#include "sql/sql_int.h"

/* An UPDATE or DELETE while it is bound. */
struct change {
    struct expr **multi; /* SET (a, b) = (SELECT …): what the subquery gives */
    i32 multi_count;
    struct snapshot_table target;
    struct scope scope; /* the target, then FROM or USING */
    struct query query;
    struct rel *rel;
    u32 row_col;              /* the row's number */
    VEC(struct expr *) exprs; /* outputs: row number, new values, RETURNING */
    VEC(const char *) names;
};

/* Columns of a row that calls and subqueries belong to, in the order they were bound. */
struct waiting {
    VEC(u32) of;
};
/* What was added to the list since belongs to the column. */
void waiting_note(struct bind *b, struct waiting *w, const pending_list *pending, u32 col);
/* Brings the list into the order of the columns. */
void waiting_order(struct bind *b, const struct waiting *w, u32 col_count, pending_list *pending);

/* `what` is for errors: "update". */
FALLIBLE change_open(struct bind *b, const struct json *relation, const struct json *others,
                     const struct json *with, const char *what, struct change *out);
/* For what is bound again when the statement runs, and only looked at before: errors and types of
 * parameters count, nothing else does. */
void change_apart(const struct bind *b, struct bind *own, struct typing *typing);
FALLIBLE change_where(struct bind *b, struct change *c, const struct json *where);
/* Row number and new values (NULL: none); from here on names mean the new values. */
void change_project(struct bind *b, struct change *c, struct expr **values);
/* SET: the new row, columns that are not named as they were. */
FALLIBLE change_set(struct bind *b, struct change *c, const struct json *list,
                    struct expr ***out_values);
/* RETURNING, and the plan. */
FALLIBLE change_finish(struct bind *b, struct change *c, const struct json *returning,
                       struct statement *out);

/* Nodes made here: {key: body}, [first, rest …]. */
const struct json *json_object_of(struct bind *b, const char *key, const struct json *body);
const struct json *json_array_of(struct bind *b, const char *key, const struct json *first,
                                 const struct json *rest);

#endif
