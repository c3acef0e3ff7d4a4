/* tree.h: LogiQL text as clauses.
 *
 * What the parser makes and everything behind it reads: names and literals as they were written,
 * with byte positions. It borrows nothing from the text. */
#ifndef WF_LOGIQL_TREE_H
#define WF_LOGIQL_TREE_H

#include "base/mem.h"

enum lq_expr_kind {
    LQ_INT,       /* text: its digits */
    LQ_DECIMAL,   /* text: digits with a point */
    LQ_FLOAT,     /* text: the same, without the f */
    LQ_STRING,    /* text: its bytes, escapes undone */
    LQ_BOOL,      /* truth */
    LQ_DATETIME,  /* text: what stands between the # */
    LQ_PREDICATE, /* text: the name behind the backquote */
    LQ_VARIABLE,  /* text: the name, without a leading ? */
    LQ_ANY,       /* _ */
    LQ_NEGATE,    /* args[0] */
    LQ_BINARY,    /* args[0] op args[1] */
    LQ_APPLY      /* text [ args ], at `stage` */
};

enum lq_stage { LQ_NOW, LQ_START, LQ_FINAL };

struct lq_expr;
typedef VEC(struct lq_expr *) lq_exprs;

struct lq_expr {
    u8 kind; /* enum lq_expr_kind */
    u8 stage;
    char op; /* + - * / */
    bool truth;
    i32 position;
    struct sv text;
    lq_exprs args;
};

enum lq_delta { LQ_STATE, LQ_INSERT, LQ_REMOVE, LQ_UPSERT };
enum lq_form {
    LQ_PLAIN,  /* p(a, b) */
    LQ_KEYED,  /* f[a] = b; values has one */
    LQ_SPLIT,  /* p(a; b) */
    LQ_REFMODE /* p(a : b) */
};

struct lq_atom {
    u8 delta; /* enum lq_delta */
    u8 form;  /* enum lq_form */
    u8 stage;
    i32 position;
    struct sv name;
    lq_exprs keys; /* all of them in LQ_PLAIN */
    lq_exprs values;
};
typedef VEC(struct lq_atom *) lq_atoms;

enum lq_lit_kind { LQ_ATOM, LQ_COMPARE, LQ_NOT, LQ_GROUP };
enum lq_compare { LQ_EQ, LQ_NE, LQ_LT, LQ_LE, LQ_GT, LQ_GE };

struct lq_formula;
struct lq_lit {
    u8 kind; /* enum lq_lit_kind */
    i32 position;
    struct lq_atom *atom;       /* LQ_ATOM */
    lq_exprs terms;             /* LQ_COMPARE: one more than operators */
    VEC(u8) compares;           /* enum lq_compare */
    VEC(i32) compare_positions; /* of the operators */
    struct lq_lit *inner;       /* LQ_NOT */
    struct lq_formula *formula; /* LQ_GROUP */
};
typedef VEC(struct lq_lit *) lq_conj;

/* Conjunctions of which one must hold; no conjunction at all is true. */
struct lq_formula {
    VEC(lq_conj *) any;
};

enum lq_fold_kind { LQ_NO_FOLD, LQ_AGG, LQ_SEQ, LQ_SERIES };

struct lq_call { /* variable = name[keys](args) within << >> */
    struct sv variable;
    struct sv name;
    lq_exprs keys;
    lq_exprs args;
    i32 position;
};
struct lq_order { /* of seq */
    struct sv variable;
    bool descends;
    i32 position;
};

/* A variable of heads that only a refmode or a constructor determines: the clause creates it. */
struct lq_make {
    struct sv variable;
    struct sv maker;  /* the refmode or constructor */
    struct sv entity; /* the predicate of those it makes */
    lq_exprs keys;    /* of the maker */
    i32 position;
};

enum lq_clause_kind { LQ_FACT, LQ_RULE, LQ_CONSTRAINT };

struct lq_clause {
    u8 kind; /* enum lq_clause_kind */
    u8 fold; /* enum lq_fold_kind, of a rule */
    i32 position;
    i32 end; /* behind its point */
    lq_atoms heads;
    VEC(struct lq_call) calls;   /* LQ_AGG, LQ_SERIES */
    VEC(struct lq_order) orders; /* LQ_SEQ */
    struct lq_formula *body;     /* of a constraint: its left side; NULL = true */
    struct lq_formula *claim;    /* of a constraint: its right side; NULL = true */
    b8 taken;                    /* a declaration that was taken in */
    b8 is_final, reads_deltas;   /* of changes: what the body reads; see stage.c */
    VEC(struct lq_make) makes;   /* entities that its heads create */
};

/* One of several mistakes in a text. */
struct lq_mistake {
    wf_status code;
    i32 position;
    const char *message;
    const char *hint; /* or NULL */
};
typedef VEC(struct lq_mistake) lq_mistakes;

struct lq_program {
    VEC(struct lq_clause *) clauses;
    lq_mistakes mistakes; /* in the order of the text; the clauses with mistakes are left out */
};

/* Reads all of a text. What is wrong with it is in the program's mistakes, at most a hundred; only
 * memory and cancellation are failures. */
FALLIBLE lq_parse(struct arena *arena, struct sv text, struct lq_program *out, struct error *err);

/* A clause as it could have been written; for messages, lists of rules and tests. */
void lq_print_clause(const struct lq_clause *clause, struct text *out);
void lq_print_atom(const struct lq_atom *atom, struct text *out);
void lq_print_expr(const struct lq_expr *expr, struct text *out);

#endif
