/* logiql.h: the LogiQL front end: clauses -> plans, and what a script of clauses does.
 *
 * Rules become operators of the plan of whoever asks: there is no evaluator of their own. */
#ifndef WF_LOGIQL_LOGIQL_H
#define WF_LOGIQL_LOGIQL_H

#include "catalog/catalog.h"
#include "logiql/tree.h"
#include "plan/plan.h"

/* The relation that clauses for _ define, or a derived predicate; all it needs becomes part of the
 * plan. See struct rule_binder. */
FALLIBLE logiql_bind(struct plan *plan, struct snapshot *snap, const struct rule_request *request,
                     struct bound_relation *out, struct error *err);

/* The query of the system's own: entities are numbers in it. */
#define LQ_ROWS "lang:rows"
/* The query for what violates claims of a text, which stands behind the text's own clauses. */
#define LQ_VIOLATIONS "lang:violations"

/* upkeep.c: a derived predicate whose rows are kept, with those that it derives together with. */
enum lq_negation {
    LQ_POSITIVE,  /* more rows derive more, */
    LQ_GROUPED,   /* or other values of the groups that bindings of them belong to, */
    LQ_NEGATED,   /* or less, in some rule, */
    LQ_ABOUT_ALL, /* or something else: numbered, negated within what is negated or aggregated */
};
struct lq_input {
    const struct edition_entry *entry; /* a table, or a derived predicate */
    u8 negation;                       /* enum lq_negation */
};
struct lq_component {
    VEC(const struct object *) members;
    VEC(const struct sv *) kinds; /* by member: of its columns; NULL = they hold no entities */
    VEC(struct lq_input) inputs; /* what their rules read besides each other */
    b8 recursive;
    b8 folds;  /* a rule aggregates or numbers */
    b8 closed; /* everything it reads has versions, and its rows can be those of a table */
};
FALLIBLE logiql_component(struct arena *arena, struct snapshot *snap, const struct object *view,
                          struct lq_component *out, struct error *err);

/* Plans that compute the members' rows, or bring kept ones up to date. LOST: rows of theirs that may
 * have gone with rows that inputs have no more: everything is read as it was before. GAINED: rows
 * that are new, or were lost and are there nevertheless: everything is read as it is now, members
 * without what they lost. What changed of a table is a table of its own. */
enum lq_upkeep_kind { LQ_ALL, LQ_LOST, LQ_GAINED };
struct lq_changed {
    u64 table_id;               /* of which */
    struct snapshot_table rows; /* that are gone (LOST), or new (GAINED) */
};
struct lq_upkeep {
    u8 kind; /* enum lq_upkeep_kind */
    const struct object *const *members;
    const struct sv *const *kinds; /* by member; see struct lq_component */
    i64 member_count;
    const struct snapshot_table *rows; /* of members; not of ALL */
    const struct snapshot_table *lost; /* GAINED: what each of them lost; a NULL table: nothing */
    const struct lq_changed *changes;
    i64 change_count;
    i64 enough; /* LOST, ALL: so many rows of the first member are too many to go on; 0 = none are */
};
/* A member whose one rule aggregates or numbers groups (LQ_GROUPED): LOST are the rows of groups that have a
 * binding of a changed row, and one more number, -1 - n, for the n groups of those that have no row; GAINED are
 * groups of lost rows and of new ones, whole.
 * One member: its columns; LOST: numbers of rows. Several: its number before them, and columns of all
 * members in their order, NULL but for its own; LOST: its number and the row's. */
FALLIBLE logiql_upkeep(struct plan *plan, struct snapshot *snap, const struct lq_upkeep *request,
                       struct error *err);

/* What a script without queries does, in this order. Texts are clauses for _ whose relation has the
 * rows in question, but INSTALL's: all clauses of the predicate. */
enum lq_action_kind {
    LQ_CREATE,  /* a table; text: what LogiQL declared of it */
    LQ_INSTALL, /* a derived predicate, new or another than before */
    LQ_MAKE,    /* entities that are not there yet; slots[0] says of what */
    LQ_ADD,     /* rows to a table, but those that are there */
    LQ_TAKE,    /* rows of a table go: those that agree in the first columns */
    LQ_PUT,     /* rows to a table; those with the same key give way */
    LQ_KEEP,    /* rows of a predicate before all changes, in a table of this name until the end */
    LQ_EXPORT,  /* rows to the file `name`; `comment`: its delimiter */
    LQ_SETTING, /* name and text */
    LQ_FILE     /* a view of the file `text`; columns behind those of the key are its own */
};
/* Where a column of changed rows comes from: a column of the source, or the table of a maker, whose
 * row with these keys has the entity's number. */
struct lq_slot {
    i32 col;           /* of the source */
    const char *table; /* NULL = the source */
    const char *id;    /* the column of the number */
    i32 key_count;
    const char **key_names;
    struct lq_slot *keys;
};
struct lq_action {
    u8 kind; /* enum lq_action_kind */
    i32 position;
    const char *name;
    const char *text;
    /* INSTALL: of a constraint, as it was written; FILE: its delimiter; NULL = none */
    const char *comment;
    i32 col_count; /* TAKE: how many columns must agree */
    i32 key_count; /* first columns that decide the others; all = a set; 0 of a table: one row */
    const char **names;
    struct type *types;
    const char **refers;     /* CREATE: tables of entities that columns refer to; NULL = none */
    b8 is_unique;            /* CREATE: so is its last column */
    struct lq_slot *slots;   /* of col_count columns; NULL: all are the source's */
    i32 source_count;        /* columns of the source, where there are slots */
    const char *entity;      /* MAKE: the table of all entities of the kind, if it is another one */
    VEC(const char *) reads; /* INSTALL: names of objects it reads; those before it are there */
    b8 replaces;             /* INSTALL: an empty table of that name */
    b8 is_final;             /* ADD, TAKE, PUT, MAKE: behind those that are not */
    b8 is_numbered;          /* EXPORT: the first column orders the rows, and is not written */
    b8 has_names;            /* EXPORT: in its first line */
    b8 has_body; /* ADD, TAKE, PUT: rows come from other predicates; FILE: names in its first line */
};
struct lq_script {
    VEC(struct lq_action) actions;
    VEC(const char *) notices;
    lq_mistakes mistakes; /* nothing is to be done when there are any */
};
/* Reads and checks all of a script; positions are those of `text`. */
FALLIBLE logiql_script(struct arena *arena, struct snapshot *snap, struct sv text,
                       struct lq_script *out, struct error *err);

/* The predicates that rules derive, by strata, those of one component derive each other; before them tables of
 * which something is declared. */
struct lq_listed {
    i32 stratum; /* from 1; 0: a table */
    i32 component;
    b8 recursive;
    const char *predicate;
    const char *text; /* its clauses, one a line */
};
struct lq_list {
    VEC(struct lq_listed) items;
};
FALLIBLE logiql_list(struct arena *arena, struct snapshot *snap, struct lq_list *out,
                     struct error *err);

/* Bytes up to and including the point that ends the first clause; 0 = none does. */
size_t logiql_scan(struct arena *arena, struct sv text, bool *out_blank);

/* A text in parts: single queries, and what stands between them. */
struct lq_part {
    b8 is_query;
    struct sv text;    /* from the first clause's first byte to behind the last one's point */
    struct sv explain; /* of a query: what stands before it, as in EXPLAIN; may be empty */
    i32 position;
};
struct lq_parts {
    VEC(struct lq_part) items;
    lq_mistakes mistakes;
};
FALLIBLE logiql_split(struct arena *arena, struct sv text, struct lq_parts *out, struct error *err);

#endif
