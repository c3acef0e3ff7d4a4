/* bind_int.h: for the files of logiql/ that make plans of clauses. */
#ifndef WF_LOGIQL_BIND_INT_H
#define WF_LOGIQL_BIND_INT_H

#include "codes/func.h"
#include "logiql/logiql.h"
#include "logiql/logiql_int.h"
#include "typing/typing.h"

/* What values compare with each other, whatever SQL types hold them. */
enum lq_class {
    CLASS_OTHER, /* a type of SQL that LogiQL has no word for: compares with itself */
    CLASS_INT,
    CLASS_DECIMAL,
    CLASS_FLOAT,
    CLASS_STRING,
    CLASS_BOOLEAN,
    CLASS_DATETIME
};

struct lq_pred;
/* One head over one conjunction: a clause with several heads or alternatives is several. */
struct lq_rule {
    struct lq_pred *pred;
    const struct lq_clause *clause;
    const struct lq_atom *head;
    const lq_conj *body; /* NULL = none: a fact */
    b8 own;              /* of the text at hand, so that its positions mean something */
    b8 recursive;        /* reads a predicate of its own component */
    b8 best;             /* recursive, and of what it derives the best value of a key is kept */
};

enum lq_origin {
    ORIGIN_RULES,
    ORIGIN_TABLE,
    ORIGIN_COLUMN, /* t:c, a column of a table by the table's key */
    ORIGIN_VIEW,   /* of SQL */
    ORIGIN_LATER   /* a table that the script declares */
};

struct lq_pred {
    struct sv name;
    u8 origin; /* enum lq_origin */
    i32 position;
    i32 arity;     /* -1 until known */
    i32 key_count; /* first columns that decide the others; -1: a set of tuples */
    const char **names;
    struct type *types; /* NULL until known */
    b8 declared;        /* types are those of a declaration */
    const struct edition_entry *entry;
    u32 value_col;               /* ORIGIN_COLUMN */
    const struct table_key *key; /* of a table; NULL = none */
    VEC(struct lq_rule *) rules;
    VEC(const struct lq_clause *) declarations;
    /* strata.c */
    i32 index, low; /* 0 = not visited */
    b8 on_stack, recursive;
    b8 best, greatest; /* of every key the least value is kept, or the greatest: rules say so by
                        * min or max of what they derive themselves */
    i32 value;         /* which argument that is */
    i32 component;
    /* relation.c */
    const char *comment; /* of a constraint: what it says */
    b8 failed;
    b8 one_value;            /* rules say by themselves that a key has one */
    struct rel *rel;         /* what rules derive; users share it */
    struct rel *fix;         /* the recursion it is a relation of */
    struct fix_draft *draft; /* while that is made */
    u32 relation;            /* its number there */
};

typedef VEC(struct lq_pred *) lq_preds;

struct lq_bind {
    struct arena *arena;
    struct plan *plan;
    struct snapshot *snap;
    struct error *err;
    struct typing typing;
    struct typing *t;
    struct view_binder *views;
    struct map preds;
    lq_preds order; /* all that are needed, those that are read first */
    i32 component_count;
    const struct lq_rule *rule; /* at hand */
    i32 fresh;                  /* variables made so far */
    b8 follows;                 /* the mistake at hand comes of another one */
    lq_mistakes *mistakes;      /* where they are collected; NULL: the first one ends it */
};

void lq_bind_init(struct lq_bind *b, struct plan *plan, struct snapshot *snap, struct error *err);
/* A position of the text at hand: -1 for clauses from elsewhere. */
i32 lq_at(const struct lq_bind *b, i32 position);

/* names.c */
enum lq_class class_of(struct type type);
const char *class_name(struct type type, char buf[32]);
/* int, string, … as in declarations; false when there is no such type. */
bool lq_type_named(struct sv name, struct type *out);
struct lq_pred *pred_new(struct lq_bind *b, struct sv name, u8 origin);
struct lq_pred *pred_known(const struct lq_bind *b, struct sv name); /* NULL when not met yet */
/* By its name: a clause's, a table, a column of one, a view. 42P01. */
FALLIBLE pred_get(struct lq_bind *b, struct sv name, i32 position, struct lq_pred **out);
/* A derived predicate that the database keeps. */
FALLIBLE pred_of_view(struct lq_bind *b, const struct object *view, struct lq_pred **out);
bool pred_exists(struct lq_bind *b, struct sv name);
/* Column names of a head, each once. */
const char **head_names(struct arena *arena, const struct lq_atom *head);
i32 atom_arity(const struct lq_atom *atom);
const struct lq_expr *atom_arg(const struct lq_atom *atom, i32 i);

typedef VEC(const lq_conj *) lq_conjs;

/* rule.c */
FALLIBLE clause_rules(struct lq_bind *b, const struct lq_clause *clause, bool own);
FALLIBLE lq_expand(struct lq_bind *b, const struct lq_formula *formula, lq_conjs *out);
/* A clause that only says what types a predicate has. */
bool is_declaration(struct arena *arena, const struct lq_clause *clause);
FALLIBLE declare(struct lq_bind *b, const struct lq_clause *clause, struct lq_pred **out);

/* The predicate a declaration is for; whether it says what is known of the predicate already. */
FALLIBLE declared_name(struct lq_bind *b, const struct lq_clause *clause, struct sv *out);
FALLIBLE declaration_fits(struct lq_bind *b, const struct lq_clause *clause,
                          const struct lq_pred *pred);

/* constraint.c: the rule that derives what violates a constraint; of a functional predicate: a key
 * with two values of column `col`. */
FALLIBLE constraint_rule(struct lq_bind *b, const struct lq_clause *clause, struct lq_clause **out);
struct lq_clause *dependency_rule(struct lq_bind *b, const struct lq_pred *pred, i32 col);

/* A mistake is noted where they are collected, and its predicate has failed then. */
FALLIBLE lq_noted(struct lq_bind *b, wf_status status, struct lq_pred *pred);

/* strata.c: everything that `root` reads, in components. */
FALLIBLE strata_add(struct lq_bind *b, struct lq_pred *root);
/* The predicates that rules of `pred` name, each once. */
void strata_reads(struct lq_bind *b, const struct lq_pred *pred, lq_preds *out);

/* body.c */
struct lq_variable {
    struct sv name;
    struct expr *expr;
};
struct lq_read { /* a scan that further columns of the same row can be taken from */
    u64 table_id;
    lq_exprs keys;
    struct rel *scan;
};
struct lq_fact {   /* a positive atom: which of its columns decide the tuple */
    i32 key_count; /* of `args`: the key's come first */
    i32 arg_count;
    const struct lq_expr **args;
    b8 is_bag;
};
struct lq_scope {
    struct lq_scope *outer;
    VEC(struct lq_variable) vars;
    struct rel *rel; /* NULL: no atom yet */
    expr_list conds;
    VEC(struct lq_read) reads;
    VEC(struct lq_fact) facts;
    b8 counts; /* every binding counts: atoms are sets */
};
/* All literals of a conjunction; `extra` are expressions (of a head) that must be computable. */
FALLIBLE body_bind(struct lq_bind *b, struct lq_scope *scope, const lq_conj *conj, lq_exprs *extra);
/* The rows of a scope: its conditions hold. */
struct rel *scope_rel(struct lq_bind *b, struct lq_scope *scope);
struct expr *variable_find(const struct lq_scope *scope, struct sv name);
void variable_set(struct lq_bind *b, struct lq_scope *scope, struct sv name, struct expr *expr);
struct rel *one_row(struct lq_bind *b);

/* expr.c */
FALLIBLE expr_bind(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e,
                   struct expr **out);
/* A comparison; values of different classes are 42804. */
FALLIBLE expr_compare(struct lq_bind *b, u8 compare, struct expr *left, struct expr *right,
                      i32 position, struct expr **out);
bool is_bound(const struct lq_scope *scope, const struct lq_expr *e);
/* NULL where it cannot be computed, and nowhere else. */
struct expr *expr_defined(struct lq_bind *b, struct expr *e);
struct expr *expr_not_null(struct lq_bind *b, struct expr *e);
const struct lq_expr *first_unbound(const struct lq_scope *scope, const struct lq_expr *e);
FALLIBLE classes_meet(struct lq_bind *b, struct expr *left, struct expr *right, i32 position);

/* builtin.c */
bool builtin_is_function(struct sv name);
bool builtin_is_atom(struct sv name);
FALLIBLE builtin_call(struct lq_bind *b, const struct lq_expr *e, struct expr **args,
                      struct expr **out);
FALLIBLE builtin_atom(struct lq_bind *b, const struct lq_atom *atom, struct expr **args,
                      struct expr **out);

/* atom.c: the rows of a predicate, with one column for each argument. */
FALLIBLE atom_rel(struct lq_bind *b, struct lq_scope *scope, const struct lq_atom *atom,
                  struct rel **out, u32 **out_cols);

/* relation.c */
struct lq_bound { /* a rule: rows and what they make of the head */
    struct rel *rel;
    struct expr **exprs;
    b8 is_set;    /* no two rows are equal */
    b8 one_value; /* no two rows agree in the keys of the head */
};
FALLIBLE rule_bind(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
FALLIBLE fold_agg(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
/* min or max of what the rule's head derives itself: the bindings, of which the best value of a key is kept. */
FALLIBLE fold_best(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
/* Whether a rule may be that: the argument its one min or max gives. */
bool fold_can_be_best(const struct lq_rule *rule, i32 *out_value, bool *out_greatest);
FALLIBLE fold_seq(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
FALLIBLE fold_series(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
struct rel *lq_project(struct lq_bind *b, struct rel *rel, struct expr **exprs, const char **names,
                       i64 count);
struct rel *lq_distinct(struct lq_bind *b, struct rel *rel);
/* recursion.c: a predicate and those it derives together with. */
FALLIBLE recursion_bind(struct lq_bind *b, struct lq_pred *first);
/* Everything in b->order. */
FALLIBLE relations_bind(struct lq_bind *b);
struct rel *pred_read(struct lq_bind *b, struct lq_pred *pred);

#endif
