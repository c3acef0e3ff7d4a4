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
    ORIGIN_KEPT,   /* a derived predicate whose rows somebody keeps */
    ORIGIN_LATER   /* a table that the script declares */
};

typedef VEC(struct lq_pred *) lq_preds;

struct lq_pred {
    struct sv name;
    u8 origin; /* enum lq_origin */
    i32 position;
    i32 arity;     /* -1 until known */
    i32 key_count; /* first columns that decide the others; -1: a set of tuples */
    const char **names;
    struct type *types; /* NULL until known */
    struct sv *kinds;   /* of columns that hold entities: their kind; empty = a value; NULL = all */
    struct sv *members; /* of a declaration: the predicates that kinds were named by */
    b8 declared;        /* types are those of a declaration */
    b8 is_entity;       /* its tuples are the entities of the kind that is called like it */
    const struct lq_expr
        *fallback;        /* of a function: the value of keys that have none; NULL = none */
    b8 makes;             /* a constructor: its keys determine the entity that is its value */
    struct sv refmode;    /* of an entity: the predicate that names its tuples; empty = none */
    struct sv identifies; /* of a refmode: its entity */
    struct lq_pred *rows; /* of an entity that is a table: all columns of that */
    const char *stored;   /* the table it is a column of, where the text makes that */
    const struct edition_entry *entry;
    struct snapshot_table kept;  /* ORIGIN_KEPT */
    u32 value_col;               /* ORIGIN_COLUMN */
    const struct table_key *key; /* of a table; NULL = none */
    VEC(struct lq_rule *) rules;
    lq_preds also; /* entities that literals of its rules name */
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
    const struct lq_rule *rule;          /* at hand */
    i32 fresh;                           /* variables made so far */
    b8 follows;                          /* the mistake at hand comes of another one */
    lq_mistakes *mistakes;               /* where they are collected; NULL: the first one ends it */
    const struct object *const *members; /* derived predicates that are computed, whoever keeps */
    i64 member_count;                    /* their rows */
    struct lq_part_of *part;             /* which rows atoms read; NULL: all (upkeep.c) */
};

/* upkeep.c: a rule read in part: the atoms of its body, in their order, and what each of them reads
 * besides the rows that there are. */
enum { PART_ATOMS_MOST = 60 };
struct lq_part_of {
    const struct lq_upkeep *request;
    i64 changed;    /* the atom that reads what changed; -1 = none */
    u64 found;      /* bit i: atom i reads what the recursion at hand has found */
    i64 atom_count; /* what was met: atoms, */
    u64 members;    /* those of the component itself, */
    u64 changes;    /* those of which something changed */
    b8 is_same;     /* the atom is a column of a row that an atom before it reads */
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
/* What a head says of its predicate must agree with what others say. */
FALLIBLE pred_check_form(struct lq_bind *b, struct lq_pred *pred, const struct lq_atom *head,
                         i32 position);

/* declare.c: the kind of a column; empty = a value. */
struct sv kind_of(const struct lq_pred *pred, i32 col);
struct lq_pred *pred_look(struct lq_bind *b, struct sv name); /* NULL = there is none */
/* An entity, or a predicate of some: the kind they are of. */
bool kind_named(struct lq_bind *b, struct sv name, struct sv *out);
/* A clause that only says what types a predicate has. */
bool is_declaration(struct lq_bind *b, const struct lq_clause *clause);
FALLIBLE declare(struct lq_bind *b, const struct lq_clause *clause, struct lq_pred **out);
/* All declarations of a text, in whatever order; the predicates that are not the database's. */
FALLIBLE declarations_add(struct lq_bind *b, const struct lq_program *program, lq_preds *out);
/* One that the database keeps with a predicate; false: the clause is a rule. */
FALLIBLE declaration_kept(struct lq_bind *b, const struct lq_clause *clause, struct lq_pred *pred,
                          bool *out_done);

/* constraint.c: the rule that derives what violates a constraint; of a functional predicate: a key
 * with two values of column `col`. */
FALLIBLE constraint_rule(struct lq_bind *b, const struct lq_clause *clause, struct lq_clause **out);
struct lq_expr *variable_new(struct lq_bind *b, const char *name);
struct lq_clause *dependency_rule(struct lq_bind *b, const struct lq_pred *pred, i32 col);
/* Whether a key has one value only if the rows say so. */
bool is_dependent(const struct lq_pred *pred);
const char *dependency_text(struct lq_bind *b, const struct lq_pred *pred);
/* What has to hold of the predicates that the text's own rules derive and its query reads; *out stays
 * NULL where they say it by themselves. */
void local_claims(struct lq_bind *b, struct sv text, struct rule_check **out);

/* A mistake is noted where they are collected, and its predicate has failed then. */
FALLIBLE lq_noted(struct lq_bind *b, wf_status status, struct lq_pred *pred);

/* strata.c: everything that `root` reads, in components. */
FALLIBLE strata_add(struct lq_bind *b, struct lq_pred *root);
/* The predicates that rules of `pred` name, each once. */
void strata_reads(struct lq_bind *b, const struct lq_pred *pred, lq_preds *out);
/* How rules of `pred` read the other one: enum lq_negation. */
u8 strata_negates(struct lq_bind *b, const struct lq_pred *pred, const struct lq_pred *other);

/* body.c */
struct lq_value { /* an expression, and the kind of entity that it is; empty = a value */
    struct expr *expr;
    struct sv kind;
};
struct lq_variable {
    struct sv name;
    struct lq_value value;
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
    i64 atom;  /* the number of the one at hand */
};
/* All literals of a conjunction; `extra` are expressions (of a head) that must be computable. */
FALLIBLE body_bind(struct lq_bind *b, struct lq_scope *scope, const lq_conj *conj, lq_exprs *extra);
/* The rows of a scope: its conditions hold. */
struct rel *scope_rel(struct lq_bind *b, struct lq_scope *scope);
struct expr *variable_find(const struct lq_scope *scope, struct sv name);
struct sv variable_kind(const struct lq_scope *scope, struct sv name);
void variable_set(struct lq_bind *b, struct lq_scope *scope, struct sv name, struct lq_value value);
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
/* The same of entities, too: they meet those of their kind. */
FALLIBLE values_meet(struct lq_bind *b, struct lq_value left, struct lq_value right, i32 position);

/* entity.c: the kind that an expression is of. */
struct sv expr_kind(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e);
/* lang:new["f", "p", keys…]: the number of the entity that f makes of the keys. */
FALLIBLE entity_call(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e,
                     struct expr **out);
bool is_literal(const struct lq_expr *e);
/* Whether entities of the kind are rows of a table. */
bool kind_is_stored(struct lq_bind *b, struct sv kind);
/* A literal that stands for an entity that rules make. 42804: it has no refmode. */
FALLIBLE entity_literal(struct lq_bind *b, struct sv kind, const struct lq_expr *literal,
                        struct expr **out);
/* The refmode that a literal stands for one by. 42804: there is none. */
FALLIBLE entity_refmode(struct lq_bind *b, struct sv kind, const struct lq_expr *literal,
                        struct sv *out);
/* What its table calls the number, 0, and the name, 1. */
const char *entity_column(const struct lq_pred *entity, i32 col);
/* An atom of the column with its name, for a literal that stands for one of a table. */
FALLIBLE entity_atom(struct lq_bind *b, struct sv kind, const struct lq_expr *literal,
                     struct lq_expr *variable, struct lq_atom **out);
/* Whether a literal that is not negated names the variable. */
bool formula_names(const struct lq_formula *formula, struct sv variable);
/* What heads of a clause create, and the entities themselves as further heads. */
FALLIBLE clause_makes(struct lq_bind *b, struct lq_clause *clause);
/* Entities that rules make: equations of the body. */
void clause_solve_makes(struct lq_bind *b, struct lq_clause *clause);
/* A relation as people read it: names instead of entities. */
FALLIBLE entities_shown(struct lq_bind *b, const struct lq_pred *pred, struct rel **io);

/* builtin.c */
bool builtin_is_function(struct sv name);
/* Of string:split: the number of a text's last part, by the text and the separator. */
FALLIBLE builtin_last_part(struct lq_bind *b, struct expr **args, i32 position, struct expr **out);
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
    struct sv *kinds; /* of the head's columns */
    b8 is_set;        /* no two rows are equal */
    b8 one_value;     /* no two rows agree in the keys of the head */
    const struct lq_fact *facts; /* of a plain rule: its atoms */
    i64 fact_count;
};
/* Argument i of the head of the rule at hand, whose body is bound: the expression, and the kind of an
 * entity. */
FALLIBLE head_argument(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *arg,
                       i32 i, struct lq_bound *out);
FALLIBLE rule_bind(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
FALLIBLE fold_agg(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
/* min or max of what the rule's head derives itself: the bindings, of which the best value of a key is kept. */
FALLIBLE fold_best(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
/* Whether a rule may be that: the argument its one min or max gives. */
bool fold_can_be_best(const struct lq_rule *rule, i32 *out_value, bool *out_greatest);
/* Whether a predicate is groups of one aggregation: its first *out_keys arguments are what decides them. */
bool fold_is_grouped(const struct lq_pred *pred, i32 *out_keys);
FALLIBLE fold_seq(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
FALLIBLE fold_series(struct lq_bind *b, const struct lq_rule *rule, struct lq_bound *out);
struct rel *lq_project(struct lq_bind *b, struct rel *rel, struct expr **exprs, const char **names,
                       i64 count);
struct rel *lq_distinct(struct lq_bind *b, struct rel *rel);
/* apart.c: whether no two alternatives of a clause give the same tuple. */
bool rules_apart(struct lq_bind *b, const struct lq_pred *pred, const struct lq_bound *bounds);
/* relation.c: whether an expression has these variables alone; whether equal heads come from the same rows: their
 * variables decide the key of every atom. */
bool is_known(const lq_exprs *known, const struct lq_expr *e);
bool head_decides(struct lq_bind *b, const struct lq_scope *scope, const lq_exprs *args);
/* recursion.c: a predicate and those it derives together with. */
FALLIBLE recursion_bind(struct lq_bind *b, struct lq_pred *first);
/* The rows of a rule in the types of its predicate; only those whose first columns `among` has, unless NULL. */
FALLIBLE rule_term(struct lq_bind *b, const struct lq_rule *rule, struct rel *among,
                   struct rel **out);
struct rel *rel_unite(struct lq_bind *b, struct rel *left, struct rel *right);
/* upkeep.c: what an atom reads in part; *out stays NULL where it reads as always. */
FALLIBLE part_rel(struct lq_bind *b, struct lq_scope *scope, struct lq_pred *pred, bool is_same,
                  struct rel **out);
/* Everything in b->order. */
FALLIBLE relations_bind(struct lq_bind *b);
struct rel *pred_read(struct lq_bind *b, struct lq_pred *pred);

#endif
