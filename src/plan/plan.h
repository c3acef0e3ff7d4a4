/* plan.h: the relational IR: a tree of operators over columns with program-wide numbers.
 *
 * Every column a plan makes has a number (plan.cols); an expression names a column by that number,
 * and an operator's output is the list of column numbers in `out`. So operators can be moved
 * without renaming. Built by a front end, changed only by opt/ passes, immutable afterwards. */
#ifndef WF_PLAN_PLAN_H
#define WF_PLAN_PLAN_H

#include "base/mem.h"
#include "defs/agg.def"
#include "defs/func.def"
#include "defs/ops.h"
#include "defs/rel.def"

#define X(A, name, text, inputs) REL_##name,
enum rel_kind { WF_RELS(X, ) REL_COUNT };
#undef X
#define X(A, name, text, arguments, doc) FUNC_##name,
enum func { WF_FUNCS(X, ) FUNC_COUNT };
#undef X
#define X(A, name, text, arguments) AGG_##name,
enum agg { WF_AGGS(X, ) AGG_END };
#undef X

extern const char *const func_names[FUNC_COUNT];
extern const char *const agg_names[AGG_END];
extern const char *const rel_names[REL_COUNT];

enum expr_kind {
    EXPR_COL,   /* column `col` */
    EXPR_CONST, /* `value`, or NULL when is_null */
    EXPR_PARAM, /* parameter `param` (0 is $1) */
    EXPR_CALL,  /* func(args); strict: NULL in, NULL out, unless the function says otherwise */
    EXPR_CAST,  /* args[0] to `type` */
    EXPR_AND,   /* args, left to right, three-valued */
    EXPR_OR,
    EXPR_NOT,
    EXPR_IS_NULL, /* args[0] IS NULL; never NULL */
    EXPR_CASE, /* args: when, then, when, then, …, else (always present; may be a NULL constant) */
    EXPR_IN,   /* args[0] IN (args[1] …), all of one type */
};

struct expr {
    u8 kind; /* enum expr_kind */
    u8 func; /* CALL: enum func */
    b8 is_null;
    struct type type;
    i32 position; /* in the statement's text; -1 */
    u32 col;
    u32 param;
    union lit value; /* CONST: in type_kind(type); text borrows the plan's arena */
    i32 arg_count;
    struct expr **args;
};

struct plan_col {
    const char *name;
    struct type type;
    b8 nullable;
};

struct scan_col {       /* what lowering may rely on; each becomes a guard */
    u32 col;            /* the plan's number for it */
    u32 table_col;      /* the table's number */
    struct range range; /* text with all_dict: 0 .. dictionary length - 1, of the codes */
    b8 no_nulls;
    b8 all_dict;
    b8 unique;
    i64 distinct;
};

struct agg_call {
    u32 col;          /* result */
    u8 agg;           /* enum agg */
    struct expr *arg; /* NULL for count(*) */
    i32 position;
};

struct order_key {
    struct expr *expr;
    b8 descending;
    b8 nulls_first;
};

enum join_kind { JOIN_INNER, JOIN_CROSS };

struct rel {
    u8 kind; /* enum rel_kind */
    i32 input_count;
    struct rel *inputs[2];
    VEC(u32) out; /* columns available above this operator */
    i64 rows;     /* estimate */
    i32 position;

    /* SCAN */
    u64 table_id;
    const char *table_name;
    const char *alias;
    i64 table_rows;
    VEC(struct scan_col) scan_cols;
    /* FILTER, JOIN (residual): conjuncts */
    VEC(struct expr *) conds;
    /* PROJECT: out.items[i] = exprs.items[i]. VALUES: rows × out.count expressions, row-major. AGG:
     * group keys; the first exprs.count columns of `out` are their results, then one per call. */
    VEC(struct expr *) exprs;
    /* AGG */
    VEC(struct agg_call) calls;
    /* JOIN: left_keys[i] = right_keys[i]; the right input is the build side */
    u8 join;         /* enum join_kind */
    b8 right_unique; /* proven: at most one match a row */
    VEC(struct expr *) left_keys;
    VEC(struct expr *) right_keys;
    /* SORT */
    VEC(struct order_key) order;
    /* LIMIT: constants or parameters of type bigint; NULL = none */
    struct expr *limit;
    struct expr *offset;
};

struct plan {
    struct arena *arena;
    VEC(struct plan_col) cols;
    struct rel *root;
    VEC(const char *) names; /* of the root's out columns, as the user sees them */
    u32 param_count;
    struct type *param_types;
};

u32 plan_col_new(struct plan *plan, const char *name, struct type type, bool nullable);
/* FILTER, SORT, LIMIT and JOIN start with their inputs' columns in `out`; others start empty. */
struct rel *rel_new(struct plan *plan, enum rel_kind kind, struct rel *left, struct rel *right);
struct expr *expr_new(struct arena *arena, enum expr_kind kind, struct type type, i32 position);
struct expr *expr_col(struct plan *plan, u32 col, i32 position);
struct expr *expr_call(struct arena *arena, enum func func, struct type type, i32 position,
                       i32 arg_count, ...); /* arguments: struct expr * */
bool expr_nullable(const struct plan *plan, const struct expr *expr);
bool expr_equal(const struct expr *a, const struct expr *b);
/* Calls visit for every node, parents first; stops early when visit returns false, and returns
 * that. */
bool expr_walk(const struct expr *expr, bool (*visit)(const struct expr *, void *arg), void *arg);
bool expr_can_raise(const struct expr *expr); /* might fault on some value */
bool expr_node_can_raise(
    const struct expr *expr); /* the same of the node alone, not its arguments */
void expr_print(struct text *out, const struct plan *plan, const struct expr *expr);
void plan_print(struct text *out, const struct plan *plan); /* EXPLAIN */
FALLIBLE plan_verify(const struct plan *plan, struct error *err);

#endif
