/* sql_int.h: what the files of the SQL front end share.
 *
 * One `struct bind` lives while one statement is bound; one `struct query` while one SELECT level
 * is. Every bind_… function takes a node of the parse tree, checks all its fields against the list
 * of those it knows (bind_only), and either returns a typed piece of plan or records an error with
 * its position. */
#ifndef WF_SQL_SQL_INT_H
#define WF_SQL_SQL_INT_H

#include "sql/json_int.h"
#include "sql/sql.h"

enum {
    EXPR_DEPTH_MAX = 10000, /* later stages recurse over expressions */
    SELECT_DEPTH_COST = 20, /* what one level of subquery counts */
    JOIN_DEPTH_COST = 10,
    SHARED_NODES_MAX = 20000, /* nodes of an operand that a rewriting uses twice */
    FROM_ITEMS_MAX = 1000,    /* joins of more take the optimiser seconds */
    PARAM_MAX = 65535,
    COLUMNS_MAX = 1600,
    DECIMAL_DIGITS_MAX = 38,
    PARAM_DIGITS = 18, /* of a decimal parameter whose type its context leaves open */
};

struct parsed {
    const struct json *node; /* {"SelectStmt": {…}} */
    struct sv script;        /* all of it, NUL-terminated: positions count from here */
    struct sv text;
    i32 depth; /* containers of the tree, nested */
    i32 param_count;
};

struct scope_col {
    const char *name;
    u32 col;
};
struct scope_table {
    const char *alias;
    i64 col_count;
    struct scope_col *cols;
};
/* What a FROM clause, or a part of one, makes visible. */
struct scope {
    struct rel *rel; /* NULL: no FROM */
    VEC(struct scope_table) tables;
    VEC(struct scope_col) cols; /* without qualification, in the order of * */
};

struct cte {
    const char *name;
    const struct json *body; /* CommonTableExpr */
    const struct cte *outer; /* those it may use itself */
    b8 *used;
};

struct query {
    struct scope *scope;
    const char *clause; /* "WHERE": for errors */
    b8 aggs_allowed;
    b8 in_agg;
    VEC(struct agg_call) calls;
    const struct cte *ctes;
};

struct origin { /* of a plan column, for errors */
    const char *table;
    const char *name;
};

struct bind {
    struct arena *arena;
    const struct parsed *parsed;
    struct snapshot *snap;
    struct type *param_types;
    struct plan *plan;
    struct error *err;
    i32 depth;
    i32 from_items;
    i32 random_calls;
    VEC(struct origin) origins;
};

/* lex.c: the scanner. */
/* The next token at or after *io_at; false at the end. */
bool lex_next(struct sv script, i64 *io_at, struct sv *out);
i32 lex_depth(struct arena *arena, struct sv script); /* bound on the nesting of the parse tree */
/* An integer literal, not above zero, that starts at `at` (with its minus signs and parentheses).
 */
i64 lex_integer(struct sv script, i64 at);

/* bind_statement.c */
/* ERR_NOT_SUPPORTED unless every field of `body` is in `known` (names separated by spaces). */
FALLIBLE bind_only(struct bind *b, const struct json *body, const char *known, i32 position);
/* ERR_NOT_SUPPORTED naming a construct. */
wf_status unsupported(struct bind *b, i32 position, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
FALLIBLE bind_enter(struct bind *b, i32 cost, i32 position); /* leave: b->depth -= cost */
/* A copy in the statement's own arena: the parse tree may be gone before the plan. NULL stays NULL.
 */
const char *keep(struct bind *b, const char *text);
/* First location found in a node; for nodes that carry none. */
i32 node_position(const struct json *node);
/* A table's name from a RangeVar body; the schema, when given, must be "main". */
FALLIBLE bind_table_name(struct bind *b, const struct json *range_var, const char **out);
FALLIBLE bind_statement(struct bind *b, const struct json *node, struct statement *out);
const char *nearest_of(struct bind *b, const char *name, const char *const *names, i64 count);

/* bind_select.c */
/* `targets`: types that unknown literals of the select list take (INSERT … SELECT); may be NULL.
 * The columns of the result are the rel's out columns, in order. */
struct select_out {
    struct rel *rel;
    const char **names;
};
FALLIBLE bind_select(struct bind *b, const struct json *body, const struct cte *ctes,
                     const struct column_def *targets, u32 target_count, struct select_out *out);
FALLIBLE bind_with(struct bind *b, const struct json *with, const struct cte **io_ctes);
FALLIBLE bind_with_unused(struct bind *b, const struct cte *ctes, const struct cte *until);
/* A PROJECT of `count` expressions over rel, with fresh columns. */
struct rel *bind_project(struct bind *b, struct rel *rel, struct expr **exprs, const char **names,
                         i64 count);
struct rel *bind_filter(struct bind *b, struct rel *rel, struct expr *cond);
const char *output_name(const struct json *node); /* bind_name.c: as PostgreSQL names a column */

/* bind_from.c */
FALLIBLE bind_from(struct bind *b, const struct json *from_clause, const struct cte *ctes,
                   struct scope *out);
FALLIBLE bind_column(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* Columns of `*` or `t.*` at a ColumnRef; *out_count is -1 when the node is no star. */
FALLIBLE bind_star(struct bind *b, struct query *q, const struct json *node,
                   const struct scope_col **out_cols, i64 *out_count);
/* A column visible without qualification; NULL when there is none. */
const struct scope_col *scope_find(const struct scope *scope, const char *name);
u32 bind_col_new(struct bind *b, const char *table, const char *name, struct type type,
                 bool nullable);

/* bind_expr.c */
FALLIBLE bind_expr(struct bind *b, struct query *q, const struct json *node, struct expr **out);
/* An expression that must be boolean, for `clause`. */
FALLIBLE bind_condition(struct bind *b, struct query *q, const struct json *node,
                        const char *clause, struct expr **out);
FALLIBLE bind_list(struct bind *b, struct query *q, const struct json *list, struct expr ***out,
                   i32 *out_count);
struct expr *expr_null(struct bind *b, struct type type, i32 position);
struct expr *expr_bool(struct bind *b, bool value, i32 position);
struct expr *expr_int(struct bind *b, i32 value, i32 position);
struct expr *expr_one(struct bind *b, enum expr_kind kind, struct expr *arg, i32 position);
struct expr *expr_many(struct bind *b, enum expr_kind kind, struct type type, i32 position,
                       i32 count, struct expr **args);
FALLIBLE bind_sharable(struct bind *b, const struct expr *expr); /* may be used twice */

/* bind_case.c: CASE, COALESCE, NULLIF, GREATEST, LEAST, IS DISTINCT FROM, IS TRUE. */
FALLIBLE bind_case(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_coalesce(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_nullif(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_min_max(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_distinct(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_bool_test(struct bind *b, struct query *q, const struct json *body,
                        struct expr **out);

/* bind_op.c: operators on bound operands. */
FALLIBLE bind_binary(struct bind *b, const char *op, struct expr *left, struct expr *right,
                     i32 position, struct expr **out);
FALLIBLE bind_unary(struct bind *b, const char *op, struct expr *arg, i32 position,
                    struct expr **out);
FALLIBLE bind_compare(struct bind *b, enum func func, struct expr *left, struct expr *right,
                      i32 position, struct expr **out);
FALLIBLE bind_arithmetic(struct bind *b, enum func func, struct expr *left, struct expr *right,
                         i32 position, struct expr **out);
FALLIBLE bind_like(struct bind *b, struct query *q, const struct json *body, struct expr **out);
bool literal_text(const struct expr *expr, struct sv *out); /* a text or unknown constant */
/* SIMILAR TO. */
FALLIBLE bind_similar(struct bind *b, struct query *q, const struct json *body, struct expr **out);
wf_status no_operator(struct bind *b, const char *op, struct expr *left, struct expr *right,
                      i32 position);

/* A call of a function by name, its arguments bound. */
struct call {
    const char *name;
    struct expr **args;
    i32 count;
    i32 position;
    u16 func; /* enum func, from the table that named it */
};
typedef FALLIBLE (*func_handler)(struct bind *b, const struct call *call, struct expr **out);
/* A line of a table of functions whose arguments need more than their types said (bind_func.c). */
struct func_entry {
    const char *name;
    i32 least, most; /* arguments */
    func_handler bind;
    u16 func;
};
const struct func_entry *time_functions(i64 *out_count);          /* bind_time.c */
const struct func_entry *text_functions(i64 *out_count);          /* bind_text.c */
const struct func_entry *math_functions(i64 *out_count);          /* bind_math.c */
wf_status call_mismatch(struct bind *b, const struct call *call); /* 42883 */
/* Argument i as `type`, to which it must come by itself. */
FALLIBLE call_argument(struct bind *b, const struct call *call, i32 i, struct type type,
                       struct expr **out);

/* bind_scalar.c: functions and operators of WF_SCALARS. */
/* Chooses among the overloads of a name as PostgreSQL does; *out_found is false when none takes
 * these arguments. Ambiguity is 42725. */
FALLIBLE bind_scalar(struct bind *b, const struct call *call, bool *out_found, struct expr **out);
bool scalar_named(const char *name);
/* One overload, its arguments already of the right types. */
struct expr *scalar_call(struct bind *b, enum func func, i32 position, i32 count, ...);
/* SQLValueFunction: CURRENT_DATE and its kin. */
FALLIBLE bind_value_function(struct bind *b, struct query *q, const struct json *body,
                             struct expr **out);
FALLIBLE bind_try(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* make_interval's arguments, by place and by name. */
FALLIBLE bind_make_interval(struct bind *b, struct query *q, const struct json *body,
                            struct expr **out);
struct expr *expr_text(struct bind *b, struct sv text, i32 position);
/* As text, a char(n) with its blanks. */
FALLIBLE coerce_padded(struct bind *b, struct expr *expr, struct expr **out);

/* bind_func.c, bind_agg.c */
FALLIBLE bind_call(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_undefined_function(struct bind *b, const char *name, struct expr **args, i32 count,
                                 i32 position);
/* True when `name` is an aggregate. */
bool agg_find(const char *name);
FALLIBLE bind_aggregate(struct bind *b, struct query *q, const char *name, const struct json *body,
                        struct expr **out);
void bind_count_star(struct bind *b, struct query *q); /* adds count(*) to the calls */
/* Makes the AGG over rel; `keys` are its group keys. */
struct rel *bind_agg_rel(struct bind *b, struct query *q, struct rel *rel, struct expr **keys,
                         i64 key_count);
/* Rewrites an expression above the AGG: keys become its columns, other columns of its input are
 * 42803. */
FALLIBLE bind_grouped(struct bind *b, const struct rel *agg, struct expr *expr, struct expr **out);

/* bind_type.c */
struct type_name {
    struct type type;
    b8 open_decimal; /* decimal without (p,s) */
    i32 position;
};
FALLIBLE bind_type(struct bind *b, const struct json *body, struct type_name *out);

/* coerce.c */
enum coercion { COERCE_IMPLICIT, COERCE_ASSIGN, COERCE_EXPLICIT };
bool coerce_allowed(struct type from, struct type to, enum coercion how);
/* Gives a literal, NULL or parameter of unknown type the type `like`; others stay. For decimals a
 * literal keeps the digits it is written with. */
FALLIBLE coerce_unknown(struct bind *b, struct expr *expr, struct type like, struct expr **out);
/* To exactly `to`; the caller knows that it is allowed. Constants are converted when that cannot
 * fail. */
FALLIBLE coerce_to(struct bind *b, struct expr *expr, struct type to, struct expr **out);
/* An explicit cast. */
FALLIBLE coerce_cast(struct bind *b, struct expr *expr, const struct type_name *to, i32 position,
                     struct expr **out);
/* To a column of a table, by the rules of assignment. */
FALLIBLE coerce_assign(struct bind *b, struct expr *expr, const struct column_def *to,
                       struct expr **out);
/* Brings all to one type (UNION rules); `what` names the construct. All unknown: text. */
FALLIBLE coerce_common(struct bind *b, struct expr **exprs, i32 count, const char *what,
                       struct type *out);
/* The type in which two known types compare; false when they do not. */
bool coerce_compared(struct type a, struct type b, struct type *out);
struct type decimal_of(struct type exact); /* integers as decimals */
struct type decimal_common(struct type a, struct type b);
bool is_unknown(const struct expr *expr);
/* A numeric literal as written: integer, bigint or decimal. */
FALLIBLE literal_number(struct bind *b, const char *text, i32 position, struct expr **out);
void const_set_exact(struct expr *expr, i128 value); /* by type_kind */
i128 const_exact(const struct expr *expr);           /* of an exact type, date or boolean */

/* The other statements. */
FALLIBLE bind_create(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_drop(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_insert(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_copy(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_set(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_show(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_explain(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_procedure(struct bind *b, const struct json *body, struct statement *out);
/* The value of a DefElem as text ("" when it has none); *out_given tells them apart. */
const char *option_text(struct bind *b, const struct json *def_elem, bool *out_given);
/* An option that is on, off or given without a value (on). */
FALLIBLE option_bool(struct bind *b, const struct json *def_elem, bool *out);
/* Column numbers of names in a table; errors 42703, 42701. */
FALLIBLE bind_column_list(struct bind *b, const struct table *table, const char *const *names,
                          const i32 *positions, i32 count, u32 *out);
/* One row of VALUES as expressions. */
FALLIBLE bind_values_rel(struct bind *b, const struct json *lists, const struct cte *ctes,
                         struct rel **out);

#endif
