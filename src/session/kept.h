/* kept.h: rows of derived predicates that a database keeps.
 *
 * A shape is what is kept, for as long as definitions stay: a component of predicates that derive
 * each other (or a single one), a table for the rows of each, and what their rules read. A state is
 * the rows as they follow from certain versions of what is read. Both are counted; a state never
 * changes. The newest state of a shape that follows from committed versions is everybody's; those of
 * a transaction's own changes are its own until it commits. */
#ifndef WF_SESSION_KEPT_H
#define WF_SESSION_KEPT_H

#include "session/session_int.h"

enum { ANCESTORS_MOST = 8 };

struct kept_state {
    _Atomic i32 refs;
    struct memory *mem;
    i64 bytes;
    u64 id;
    i32 ancestor_count; /* ids of states whose rows these were made from, the newest last */
    u64 ancestors[ANCESTORS_MOST];
    struct kept_state *origin; /* everybody's state it comes from; NULL = none */
    b8 is_private;
    i64 row_count, input_count;
    struct table_version **rows;   /* by member */
    struct table_version **inputs; /* by input: what they follow from */
    u64 *input_states;             /* by input that is derived: its state's id */
};

struct kept_input {
    struct object *object;
    u8 negation;              /* enum lq_negation */
    struct kept_shape *shape; /* a derived predicate's; NULL: a table */
    i64 member;               /* its number there */
};

struct kept_shape {
    _Atomic i32 refs;
    struct wf_database *db; /* not counted: it has a list of all */
    struct arena arena;
    struct kept_shape *next;
    i64 member_count;
    struct object **members;
    struct table **tables;
    const struct sv **kinds; /* see struct lq_component */
    i64 input_count;
    struct kept_input *inputs;
    b8 worth;      /* it is kept for its own sake, not only for what reads it */
    b8 recursive;
    u64 definitions; /* for which names were looked up, */
    const char *path; /* how */
    u32 temp_schema;
    _Atomic i32 large;  /* it has more rows than are worth keeping */
    _Atomic i32 spread; /* so often deletions are not worth following any more */
    struct kept_state *now; /* everybody's; NULL = none; the database's lock */
};

/* One of a transaction's own. */
struct kept_own {
    struct kept_own *next;
    struct kept_shape *shape;
    struct kept_state *state;
};

struct kept_shape *shape_retain(struct kept_shape *shape);
void shape_release(struct kept_shape *shape);
/* The shape of a view's component, as names mean objects in the snapshot; NULL: it cannot be kept. */
FALLIBLE shape_find(struct wf_connection *conn, struct snapshot *snap, const struct object *view,
                    struct kept_shape **out);
i64 shape_member(const struct kept_shape *shape, const struct object *view); /* -1 = none */

/* A state without rows and inputs. NULL: refused. */
struct kept_state *state_new(struct wf_connection *conn, const struct kept_shape *shape,
                             struct kept_state *from);
struct kept_state *state_retain(struct kept_state *state);
void state_release(struct kept_state *state);
/* The newest one that the connection may read; retained, or NULL. */
struct kept_state *state_find(struct wf_connection *conn, struct kept_shape *shape);
/* Becomes everybody's, or the transaction's own, unless somebody was faster. */
void state_publish(struct wf_connection *conn, struct kept_shape *shape, struct kept_state *state);

/* kept_file.c: gives a new shape the tables and the rows that the database file has of it; false: none. */
bool kept_take(struct wf_connection *conn, struct kept_shape *shape);

/* keep.c: the rows as they follow from what the snapshot reads, updated or computed when they do not
 * yet. *out is NULL when they cannot be had that way: whoever asks computes for himself. `log` gets a
 * line of what was done, unless NULL. */
FALLIBLE keep_refresh(struct wf_connection *conn, struct snapshot *snap, struct kept_shape *shape,
                      struct text *log, struct kept_state **out);
/* What keep_refresh would do. */
FALLIBLE keep_describe(struct wf_connection *conn, struct snapshot *snap, struct kept_shape *shape,
                       struct text *out);

#endif
