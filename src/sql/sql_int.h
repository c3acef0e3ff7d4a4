/* sql_int.h: what the files of the SQL front end share.
 *
 * One `struct bind` lives while one statement is bound; one `struct query` while one SELECT level
 * is. Every bind_… function takes a node of the parse tree, checks all its fields against the list
 * of those it knows (bind_only), and either returns a typed piece of plan or records an error with
 * its position. */
#ifndef WF_SQL_SQL_INT_H
#define WF_SQL_SQL_INT_H

#include "base/stop.h"
#include "sql/json_int.h"
#include "sql/sql.h"
#include "typing/typing.h"

enum {
    EXPR_DEPTH_MAX = 10000, /* later stages recurse over expressions */
    FROM_ITEMS_MAX = 1000,  /* joins of more take the optimiser seconds */
    PARAM_MAX = 65535,
    COLUMNS_MAX = 1600,
};

/* What nests; each counts as many levels of expressions as it takes of the stack. */
enum nesting { NEST_EXPR, NEST_JOIN, NEST_SELECT, NEST_VIEW, NEST_COUNT };

struct parsed {
    const struct json *node; /* {"SelectStmt": {…}} */
    struct sv script;        /* all of it, NUL-terminated: positions count from here */
    struct sv text;
    i32 depth; /* containers of the tree, nested */
    i32 param_count;
    i32 param_position; /* of the highest one */
    b8 or_replace;      /* CREATE OR REPLACE TABLE */
    b8 prepared;        /* by PREPARE, at the moment `when`, which its literals mean by "now" */
    struct when when;
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
    b8 swapped;                 /* a RIGHT JOIN: the plan's left input is the right side */
    b8 lateral;                 /* contains LATERAL */
};

/* What binding a WITH query gave, shared by its uses. */
struct cte_result {
    b8 used;
    struct rel *rel; /* NULL: not bound, or depends on an outer query and is bound at each use */
    const char **names;
    struct fix_draft *draft; /* of a recursion whose rules are being bound: the name stands for its rows */
    u32 relation;            /* of a recursion */
    struct plan_col *cols;   /* of a recursion */
    i64 col_count;
    i64 added;               /* of those, by SEARCH and CYCLE: its terms do not see them */
};
struct cte {
    const char *name;
    const struct json *body;   /* CommonTableExpr */
    const struct cte *outer;   /* those it may use itself */
    struct query *outer_query; /* whose columns it may use */
    b8 recursive;              /* WITH RECURSIVE: it may name itself */
    const struct cte *scope;   /* those its query may name: of WITH RECURSIVE all of them */
    struct cte_group *group;   /* those it is made of, and that are made of it, too; NULL = none */
    struct cte_result *result;
};
struct cte_group { /* WITH queries that name each other */
    struct cte **items;
    i64 count;
};

/* A subquery of an expression: a join still to be made below the operator that computes the
 * expression, which names the subquery's column or the mark. */
struct pending {
    struct rel *rel;
    u8 join;                  /* SINGLE or MARK; CROSS: a set-returning function */
    u32 mark_col;             /* MARK */
    VEC(struct expr *) conds; /* over the columns of both sides */
    b8 serial;                /* no join but a call of a sequence */
    b8 early;                 /* a window reads what it draws */
    struct window_call call;
};
typedef VEC(struct pending) pending_list;

struct window_item {
    struct window_call call;
    expr_list partition;
    order_list order;
};
/* bind_window.c: every expression of a window and its call, each by its place. */
void bind_window_each_expr(struct window_item *item, expr_slot_fn fn, void *arg);

struct bound_sublink { /* a subquery, or a choice with some: what is written twice is computed once
                        */
    const struct json *body;
    struct expr *expr;
    i64 joins, conds; /* of its subqueries, and conditions of those */
};

struct grouping_call { /* GROUPING(args) */
    u32 col;
    struct expr **args;
    i32 arg_count;
    i32 position;
};

/* Where the rows of set-returning calls are joined. */
enum set_stage { SET_ABOVE, SET_BELOW_WINDOWS, SET_BELOW_GROUPS };
struct set_call { /* a set-returning function in a select list */
    u32 col;
    enum table_func func;
    i32 level; /* 1, or one more than those in its arguments */
    u8 stage;  /* enum set_stage */
    struct expr *args[3];
    i32 count;
    i32 position;
};

struct seen { /* one more than where the first such call stands; 0 = there is none */
    i32 agg;
    i32 window;
};

struct query {
    struct query *outer; /* whose columns it may use too */
    struct scope *scope;
    const char *clause; /* "WHERE": for errors */
    b8 aggs_allowed;
    b8 in_agg;
    b8 windows_allowed;
    b8 in_window;
    b8 subqueries_allowed; /* somebody makes the joins of `pending` */
    b8 exists_next;        /* the SELECT bound next inside is for EXISTS: it may lack columns */
    b8 sets_allowed;       /* somebody makes the joins of `set_calls` */
    const char *no_sets;   /* why they are not allowed just here; NULL = they are */
    struct seen seen;      /* calls of this query in the select item being bound, subqueries too */
    VEC(struct agg_call) calls;
    VEC(struct window_item) windows;
    VEC(struct set_call) set_calls;
    VEC(struct bound_sublink) sublinks;
    VEC(struct grouping_call) groupings;
    pending_list pending;
    pending_list below; /* those in arguments of aggregates and in group keys */
    const struct json *window_clause;
    const struct cte *ctes;
    struct select *outputs; /* while its ORDER BY is bound: expressions may use output columns */
};

struct origin { /* of a plan column, for errors */
    const char *table;
    const char *name;
};

struct moment { /* a literal whose meaning depends on the clock, the zone or the search path */
    const struct parsed *parsed;
    i32 position;
    const char *text; /* one that does not */
};

struct scan_key { /* a table in FROM that has a primary key */
    u32 first;    /* its columns are first .. first + count - 1 */
    u32 count;
    u32 key_count;
    const u32 *keys; /* numbers of the table's columns */
};

struct bind {
    struct typing *t; /* arena, plan and error slot are the same */
    struct arena *arena;
    const struct parsed *parsed;
    struct snapshot *snap;
    struct plan *plan;
    struct error *err;
    u32 entered; /* nodes so far: now and then it is asked whether to go on */
    i32 depth;
    i32 from_items;
    VEC(struct origin) origins;
    VEC(struct scan_key) scan_keys;
    VEC(const struct rel *) materialized; /* inputs of SHARED that stay shared */
    VEC(u32) deps;                        /* OIDs of what was looked up */
    u32 home;                             /* the schema of the table that is defined; 0 = unknown */
    b8 home_temp;                         /* it is a temporary one */
    VEC(struct moment) moments;           /* for texts of definitions (ddl_text) */
    const struct object *view;            /* whose text is bound; NULL = the statement's own */
    VEC(struct late) lates;
    i32 param_base;     /* parameters of the statement itself */
    b8 serials;         /* a sequence is called for rows of the plan */
    b8 draw_in_turn;    /* even calls that could be made when the statement starts */
    b8 default_effects; /* defaults that the statement uses call sequences */
    const char
        *no_sets; /* why the next select may have no set-returning functions; NULL = it may */
};

enum { NAME_BYTES = 63 }; /* of a name; longer ones are cut when they are read */

/* lex.c: the scanner. */
/* The next token at or after *io_at; false at the end. */
bool lex_next(struct sv script, i64 *io_at, struct sv *out);
/* Whether a token is that name: in quotes as it stands, else in any case. */
bool lex_is_name(struct sv token, const char *name);
/* The next token that ends behind *io_at and names a column of the expression, not a function, type or
 * field that is called the same. */
bool lex_column(struct sv script, const char *name, i64 *io_at, struct sv *out);
i32 lex_depth(struct arena *arena, struct sv script); /* bound on the nesting of the parse tree */
/* An integer literal, not above zero, that starts at `at` (with its minus signs and parentheses).
 */
i64 lex_integer(struct sv script, i64 at);

/* bind_statement.c */
/* ERR_NOT_SUPPORTED unless every field of `body` is in `known` (names separated by spaces). */
FALLIBLE bind_only(struct bind *b, const struct json *body, const char *known, i32 position);
/* ERR_NOT_SUPPORTED naming a construct. */
/* bind_system.c: relations of pg_catalog and information_schema, and their columns, by number; NULL
 * at the end. A NULL schema is pg_catalog. */
const char *system_relation(i64 i, u32 *out_schema);
const char *system_column(const char *schema, const char *name, i64 i);
/* What PostgreSQL calls the statement of a node: "CREATE TRIGGER". */
const char *command_tag(struct arena *arena, const char *node, const struct json *body);
wf_status unsupported(struct bind *b, i32 position, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A level of nesting, and the end of it; too many are 54001. */
FALLIBLE bind_enter(struct bind *b, enum nesting what, i32 position);
void bind_leave(struct bind *b, enum nesting what);
/* A copy in the statement's own arena: the parse tree may be gone before the plan. NULL stays NULL.
 */
const char *keep(struct bind *b, const char *text);
/* First location found in a node; for nodes that carry none. */
i32 node_position(const struct json *node);
/* A RangeVar's name; what it means is for bind_relation to find. */
FALLIBLE bind_table_name(struct bind *b, const struct json *range_var, const char **out);
/* The object a RangeVar names; 42P01. */
FALLIBLE bind_relation(struct bind *b, const struct json *range_var,
                       const struct edition_entry **out);
/* A table of the user's to change; `what` is for errors: "update". */
FALLIBLE bind_table(struct bind *b, const struct json *range_var, const char *what,
                    struct snapshot_table *out);
/* A column's default; *out_fills when it is the next value of its sequence (*out is NULL then).
 * Other calls of sequences in it go to `pending`; NULL: they are 0A000. */
FALLIBLE bind_default_value(struct bind *b, pending_list *pending, const struct column_def *col,
                            struct expr **out, bool *out_fills);
/* Binds `text` as an expression of its own script over q (may have no scope). */
FALLIBLE bind_text_expr(struct bind *b, struct query *q, const char *text, struct expr **out);
FALLIBLE bind_statement(struct bind *b, const struct json *node, struct statement *out);

/* bind_select.c */
/* `targets`: types that unknown literals of the select list take (INSERT … SELECT); may be NULL.
 * The columns of the result are the rel's out columns, in order. */
struct select_out {
    struct rel *rel;
    const char **names;
};
FALLIBLE bind_select(struct bind *b, const struct json *body, const struct cte *ctes,
                     const struct column_def *targets, u32 target_count, struct select_out *out);
/* The same inside another query. keep_unknown: quoted literals of the select list stay without a
 * type where the caller can still give them one (set operations). */
FALLIBLE bind_subselect(struct bind *b, const struct json *body, const struct cte *ctes,
                        struct query *outer, bool keep_unknown, struct select_out *out);
/* VALUES and set operations as a select list of the rel's columns, with ORDER BY and LIMIT. */
FALLIBLE bind_ordered(struct bind *b, const struct json *body, struct rel *rel, const char **names,
                      bool fixed, struct select_out *out);
/* The INTO of a query, which stands in its first SELECT; NULL = none. */
const struct json *bind_into(const struct json *body);
/* One row without columns: what SELECT without FROM selects from. */
struct rel *bind_one_row(struct bind *b);
struct rel *bind_distinct_rel(struct bind *b, struct rel *rel); /* AGG by all columns */
/* DESC and NULLS of a SortBy. */
FALLIBLE bind_sort_options(struct bind *b, const struct json *sort, b8 *out_descending,
                           b8 *out_nulls_first);

/* bind_with.c */
FALLIBLE bind_with(struct bind *b, const struct json *with, struct query *outer,
                   const struct cte **io_ctes);
FALLIBLE bind_with_unused(struct bind *b, const struct cte *ctes, const struct cte *until);
/* A use of a WITH query: a SHARED over it, with columns of its own. */
/* Gives a WITH query's columns the names of its definition. */
FALLIBLE bind_cte_names(struct bind *b, const struct cte *cte, struct select_out *out);
/* bind_recursive.c */
bool bind_names_itself(const struct cte *cte);
/* bind_search.c: SEARCH and CYCLE: the first term with the columns they add (*out is NULL where there
 * are none), a rule with them, and the recursion with those that are seen. */
struct way;
FALLIBLE bind_way_begin(struct bind *b, const struct cte *cte, struct rel **io_first,
                        struct way **out);
FALLIBLE bind_way_on(struct way *way, struct rel **io_again);
struct rel *bind_way_end(const struct way *way, struct rel *fix);
/* Finds those of `count` queries of a WITH RECURSIVE that name each other. */
void bind_find_groups(struct bind *b, struct cte **ctes, i64 count);
/* All queries of a group at once. */
FALLIBLE bind_mutual(struct bind *b, const struct cte *cte, struct select_out *out);
/* What one of them gives, once they are bound. */
struct rel *bind_mutual_rows(struct bind *b, const struct cte_result *result);
FALLIBLE bind_recursion(struct bind *b, const struct cte *cte, struct select_out *out);
/* bind_rules.c: relations that rules define, and the other way round a view's query. */
FALLIBLE bind_rules(struct bind *b, const struct rule_request *request, i32 literal, i32 position,
                    struct select_out *out);
FALLIBLE bind_rules_call(struct bind *b, const struct json *call, struct select_out *out);
/* Checks from the number `first` on are those of a view that is named there. */
void bind_checks_place(struct bind *b, i64 first, i32 position);
FALLIBLE bind_view_query(struct bind *b, const struct object *view, i32 position,
                         struct select_out *out);
/* A recursion of one relation, which begins with `first`, whose columns get these names; rows of it for
 * a rule to read; the whole, once the rule is there. */
struct fix_draft *bind_fix_open(struct bind *b, struct rel *first, const char **names,
                                bool distinct);
struct rel *bind_fix_atom(struct bind *b, struct fix_draft *draft, u32 relation);
struct rel *bind_fix_close(struct bind *b, struct fix_draft *draft, struct rel *again);
/* Whether a FROM clause itself, not a query in it, reads working rows. */
bool bind_reads_work(const struct rel *rel);
FALLIBLE bind_cte_use(struct bind *b, const struct cte *cte, struct select_out *out);
/* SHARED with a single user becomes a projection; at the end of a statement. */
void bind_inline_shared(struct bind *b, struct rel *root);
/* A SHARED over input with fresh columns. */
struct rel *bind_shared(struct bind *b, struct rel *input);

/* bind_setop.c: UNION, INTERSECT, EXCEPT. */
FALLIBLE bind_setop(struct bind *b, const struct json *body, const struct cte *ctes,
                    struct query *outer, struct select_out *out);
/* All rows of both; their columns pair up and have the same types. */
struct rel *bind_union_rel(struct bind *b, struct rel *left, struct rel *right);

/* subquery.c */
FALLIBLE bind_sublink(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* WHERE: filters *io_rel by a condition over q's columns; IN and EXISTS among its conjuncts become
 * semi and anti joins. */
FALLIBLE bind_where(struct bind *b, struct query *q, const struct json *node, const char *clause,
                    struct rel **io_rel);
/* Subqueries pending since `first` matter only where a branch of CASE is taken: elsewhere they
 * raise nothing. `whens` are the conditions up to and including the branch's own; the
 * last is NULL for ELSE. */
void bind_guard(struct bind *b, struct query *q, i64 first, struct expr **whens, i32 count);
/* GROUP BY, ORDER BY and DISTINCT ON may say again what the select list says: subqueries in it are
 * the same then. One that has got conditions since, in a branch of CASE, is no more the same. */
bool bind_met_before(const struct bind *b, const struct query *q, const struct json *body,
                     struct expr **out);
void bind_note_met(struct bind *b, struct query *q, const struct json *body, struct expr *expr);
/* Makes the joins of a list on top of rel and empties it. */
struct rel *bind_attach(struct bind *b, struct rel *rel, pending_list *list);
/* Whether right uses columns of left. */
bool bind_depends(struct bind *b, struct rel *left, struct rel *right);
/* The comparison of two rows of values, column by column. */
FALLIBLE bind_row_compare(struct bind *b, const char *op, struct expr **left, struct expr **right,
                          i32 count, i32 position, struct expr **out);

/* bind_row.c */
/* An operator between two row values, or a row value and a subquery; *out_done is false for
 * others. */
FALLIBLE bind_row_operator(struct bind *b, struct query *q, const struct json *body, const char *op,
                           bool *out_done, struct expr **out);
/* IS [NOT] DISTINCT FROM of two rows: of some field, of all fields. */
FALLIBLE bind_row_distinct(struct bind *b, struct query *q, const struct json *body, bool negated,
                           bool *out_done, struct expr **out);
/* A row IS [NOT] NULL when all its fields are. */
FALLIBLE bind_row_null(struct bind *b, struct expr **fields, i32 count, bool negated, i32 position,
                       struct expr **out);
/* The fields of ROW (…), or of the table that a name stands for; NULL when the node is no row. */
FALLIBLE bind_row_fields(struct bind *b, struct query *q, const struct json *node,
                         struct expr ***out, i32 *out_count);
/* bind_from.c: the columns of t, for t or t.*; NULL when the node names no table. */
bool bind_is_star(const struct json *node); /* *, t.* */
FALLIBLE bind_whole_row(struct bind *b, struct query *q, const struct json *node,
                        struct expr ***out, i32 *out_count);
FALLIBLE bind_indirection(struct bind *b, struct query *q, const struct json *body,
                          struct expr **out);
FALLIBLE bind_row_in(struct bind *b, struct query *q, const struct json *body, bool *out_done,
                     struct expr **out);
FALLIBLE bind_any_array(struct bind *b, struct query *q, const struct json *body,
                        struct expr **out);
/* The columns of a subquery used as a row. */
FALLIBLE bind_row_subquery(struct bind *b, struct query *q, const struct json *body,
                           struct expr ***out, i32 *out_count);

/* bind_window.c */
bool window_find(const char *name);
FALLIBLE bind_window_call(struct bind *b, struct query *q, const char *name,
                          const struct json *body, struct expr **out);

/* A call without OVER: an error, as for functions of that name and arguments. */
FALLIBLE bind_window_bare(struct bind *b, struct query *q, const char *name,
                          const struct json *body);

/* bind_table_func.c: a function in FROM; its arguments may use the columns of `outer`. */
FALLIBLE bind_table_func(struct bind *b, struct query *outer, const struct cte *ctes,
                         const struct json *node, bool numbered, struct rel **out,
                         const char **out_name);
/* The table function of that name, which takes `count` arguments; TABLE_FUNC_END = no such name. */
FALLIBLE bind_table_func_find(struct bind *b, const char *name, struct expr **args, i32 count,
                              i32 position, enum table_func *out);
bool bind_is_table_func(const char *name);
/* Its rows; numbered: a second column counts them from 1. */
FALLIBLE bind_table_call(struct bind *b, enum table_func func, struct expr **args, i32 count,
                         i32 position, bool numbered, struct rel **out);
/* bind_series.c */
/* numbered: a second column counts the elements from 1. */
FALLIBLE bind_series(struct bind *b, struct expr **args, i32 count, i32 position, bool numbered,
                     struct rel **out);
struct expr *bind_either(struct bind *b, struct expr *when, struct expr *then,
                         struct expr *otherwise); /* CASE WHEN a THEN x ELSE y END */
struct expr *bind_out_col(struct bind *b, const struct rel *rel, i32 i);
struct expr *expr_big(struct bind *b, i64 value); /* a bigint */
/* Every row of rel with column *out_side false, and again with true. */
struct rel *bind_twice(struct bind *b, struct rel *rel, u32 *out_side);
/* bind_split.c: regexp_split_to_table and string_to_table; numbered: as there. */
FALLIBLE bind_split(struct bind *b, enum table_func func, struct expr **args, i32 count,
                    i32 position, bool numbered, struct rel **out);
/* bind_change.c: a scan's rows by their number, as column `number`. */
void bind_row_number(struct bind *b, struct rel *scan, u32 number);
/* bind_tablesample.c: a RangeTableSample over its relation. */
FALLIBLE bind_tablesample(struct bind *b, const struct json *body, const struct cte *ctes,
                          struct query *outer, struct rel **io_rel);
/* bind_set.c */
/* A comparison of rows, or with those of a subquery, has no set-returning functions. */
FALLIBLE need_no_set(struct bind *b, const struct query *q, struct expr *const *exprs, i32 count,
                     i32 position);
/* A set-returning function where an expression is; *out_is is false for other names. */
FALLIBLE bind_set_call(struct bind *b, struct query *q, const char *name, const struct json *body,
                       bool *out_is, struct expr **out);
/* Relations of a value and a number each, side by side: their values, then the number. */
FALLIBLE bind_lockstep(struct bind *b, struct rel **rels, i64 count, struct rel **out);
/* A PROJECT of `count` expressions over rel, with fresh columns. */
struct rel *bind_project(struct bind *b, struct rel *rel, struct expr **exprs, const char **names,
                         i64 count);
struct rel *bind_filter(struct bind *b, struct rel *rel, struct expr *cond);
const char *output_name(const struct json *node); /* bind_name.c: as PostgreSQL names a column */

/* bind_friendly.c: SUMMARIZE and DESCRIBE, at a FuncCall's fields; *out_is tells whether it is one.
 */
FALLIBLE bind_about(struct bind *b, const struct json *call, const struct cte *ctes,
                    struct query *outer, struct select_out *out, bool *out_is);

/* bind_file.c: read_csv, read_trie at a FuncCall's fields: the table it reads into, known to the snapshot. */
FALLIBLE bind_trie_file(struct bind *b, const struct json *call, struct snapshot_table *out);
FALLIBLE bind_file(struct bind *b, const struct json *call, struct snapshot_table *out);
/* Everything in a tree of our own making is said to stand at `position` of the user's text. */
void bind_place(struct bind *b, const struct json *statement, i32 position);

/* bind_system.c: a sequence as a relation of one row. */
void bind_sequence_row(struct bind *b, const struct object *object, struct select_out *out);
/* bind_system.c: a relation of information_schema or pg_catalog; *out_is is false for others. */
FALLIBLE bind_system(struct bind *b, const char *schema, const char *name, bool *out_is,
                     struct select_out *out);

/* bind_from.c */
FALLIBLE bind_from(struct bind *b, const struct json *from_clause, const struct cte *ctes,
                   struct query *outer, struct scope *out);
/* The conjuncts of a condition become conditions of a filter or join. */
void bind_add_conds(struct bind *b, struct rel *rel, struct expr *cond);
/* bind_full.c: the condition of a FULL JOIN with subqueries, and the columns of its USING. */
void bind_full_on(struct bind *b, pending_list *pending, struct expr *cond, struct scope *out);
void bind_full_using(struct bind *b, struct scope *out, struct expr *const *equals, i64 count);
/* A table as the whole of a FROM clause. */
FALLIBLE bind_table_scope(struct bind *b, const struct snapshot_table *found, const char *alias,
                          i32 position, struct scope *out);
/* Marks columns NULL may come to: the right side of an outer join. */
void bind_nullable(struct bind *b, const struct rel *rel);
bool scope_has(const struct scope *scope, u32 col); /* scope may be NULL */
FALLIBLE bind_column(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* Columns of `*` or `t.*` at a ColumnRef; *out_count is -1 when the node is no star. */
FALLIBLE bind_star(struct bind *b, struct query *q, const struct json *node,
                   const struct scope_col **out_cols, i64 *out_count);
/* A column visible without qualification; NULL when there is none. */
const struct scope_col *scope_find(const struct scope *scope, const char *name);
/* Columns of the plan that have no origin yet get an empty one. */
void bind_origins(struct bind *b);
u32 bind_col_new(struct bind *b, const char *table, const char *name, struct type type,
                 bool nullable);

/* bind_expr.c */
FALLIBLE bind_expr(struct bind *b, struct query *q, const struct json *node, struct expr **out);
/* An expression that must be boolean, for `clause`. */
FALLIBLE bind_condition(struct bind *b, struct query *q, const struct json *node,
                        const char *clause, struct expr **out);
FALLIBLE bind_list(struct bind *b, struct query *q, const struct json *list, struct expr ***out,
                   i32 *out_count);
/* The same where an item is computed only if none before it decides: AND ('a'), OR ('o'), COALESCE
 * ('c'). */
FALLIBLE bind_choices(struct bind *b, struct query *q, const struct json *list, char how,
                      struct expr ***out, i32 *out_count);
/* bind_expr.c, bind_func.c */
bool bind_function_known(const char *name); /* to PostgreSQL, that we know of */

/* bind_case.c: CASE, COALESCE, NULLIF, GREATEST, LEAST, IS DISTINCT FROM, IS TRUE. */
FALLIBLE bind_case(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_coalesce(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_nullif(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_min_max(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_distinct(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_bool_test(struct bind *b, struct query *q, const struct json *body,
                        struct expr **out);

/* bind_op.c */
FALLIBLE bind_like(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* SIMILAR TO. */
FALLIBLE bind_similar(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* SQLValueFunction: CURRENT_DATE and its kin. */
FALLIBLE bind_value_function(struct bind *b, struct query *q, const struct json *body,
                             struct expr **out);
FALLIBLE bind_try(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* COLLATE: all text is in the order of "C"; other collations are 0A000. */
FALLIBLE bind_collation(struct bind *b, const struct json *names, struct type type, i32 position);

/* bind_object.c */
/* Functions over OIDs; *out_is is false for other names. */
FALLIBLE bind_object_call(struct bind *b, const struct call *call, bool *out_is, struct expr **out);
/* 'name'::regclass is an OID, oid::regclass a name. */
FALLIBLE bind_regclass(struct bind *b, struct expr *arg, i32 position, struct expr **out);
/* bind_system.c: a type's digits or length as PostgreSQL packs them; -1 = none. */
i64 bind_type_modifier(struct type type);
/* A type as PostgreSQL's catalogs call it. */
const char *bind_type_words(struct bind *b, struct type type, bool digits);

/* bind_func.c, bind_agg.c */
FALLIBLE bind_call(struct bind *b, struct query *q, const struct json *body, struct expr **out);
FALLIBLE bind_call_plain(struct bind *b, const struct json *body, const char *name);
FALLIBLE bind_call_filter(struct bind *b, struct query *q, const struct json *body);
const struct json *bind_call_ordered(struct bind *b, const struct json *body);
/* bind_ddl.c: typing.moment, of a struct bind. */
const struct when *bind_note_moment(void *arg, const struct expr *literal, struct type type);
/* bind_serial.c: calls of sequences. */
/* `kind` is an enum serial_kind, body the FuncCall. */
FALLIBLE bind_sleep(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* current_user and its kin. */
FALLIBLE bind_session_value(struct bind *b, const struct json *body, struct expr **out);
FALLIBLE bind_serial_call(struct bind *b, struct query *q, u8 kind, const struct json *body,
                          struct expr **out);
/* The column of a call that waits in `pending` for its operator. */
struct expr *bind_serial_column(struct bind *b, pending_list *pending, struct window_call call);
/* The next value of the sequence that is a column's default, as that column. */
FALLIBLE bind_next_value(struct bind *b, pending_list *pending, const struct column_def *col,
                         struct expr **out);
/* Whether the statement may draw from a sequence or set one, by its text. */
bool bind_has_effects(struct bind *b);
/* CASE WHEN earlier THEN false WHEN own THEN true ELSE false END: see bind_guard. */
struct expr *bind_guard_expr(struct bind *b, struct expr **whens, i32 count);
/* Calls pending since `first` are made only where the branch is taken: see bind_guard. */
void bind_guard_serials(struct bind *b, struct query *q, i64 first, struct expr **whens, i32 count);
/* The operator that makes the calls of a list, over rel. */
struct rel *bind_attach_serials(struct bind *b, struct rel *rel, const pending_list *list);
/* Moves the calls of `list` that its joins or q's set-returning functions (q may be NULL) need, or
 * those they do not, to `out`. */
void bind_take_serials(struct bind *b, const struct query *q, pending_list *list, bool needed,
                       pending_list *out);
/* Whether what a row of VALUES waits for can be parameters; makes them that. */
bool bind_values_late(const struct bind *b, const pending_list *list);
void bind_values_params(struct bind *b, const pending_list *list, struct expr **row, i64 width);
bool bind_has_serials(const pending_list *list);
/* A join whose condition calls sequences: for the pairs of rows that meet what else it asks for. */
FALLIBLE bind_join_serials(struct bind *b, struct rel *join, struct expr *cond,
                           pending_list *pending, i32 position, struct rel **out);
/* 0A000 where a call would see another one's value sooner or later than in PostgreSQL. */
FALLIBLE bind_check_serials(struct bind *b, struct rel *root);
/* bind_late.c */
struct expr *bind_late_param(struct bind *b, const struct late *late, i32 position);
/* nextval and its kin, current_schema and its kin; *out_is is false for other names. */
FALLIBLE bind_late_call(struct bind *b, struct query *q, const char *name, const struct json *body,
                        bool *out_is, struct expr **out);
/* A call among those of a query's groups, once; its column. */
u32 agg_add(struct bind *b, struct query *q, struct agg_call *call, struct type type);
/* Arguments, sort keys and filter of a call, and the query it belongs to. */
FALLIBLE agg_bind_sorted(struct bind *b, struct query *q, const struct json *body,
                         struct agg_call *call, struct expr ***out_args, i32 *out_count,
                         struct query **out_owner);
/* bind_agg_rank.c: rank and its kin WITHIN GROUP. */
bool agg_is_hypothetical(const char *name);
FALLIBLE bind_hypothetical(struct bind *b, struct query *q, const char *name,
                           const struct json *body, struct expr **out);
FALLIBLE bind_aggregate(struct bind *b, struct query *q, const char *name, const struct json *body,
                        struct expr **out);
void bind_count_star(struct bind *b, struct query *q); /* adds count(*) to the calls */
/* Name, type and arguments of an aggregate that is not yet a column; for windows. */
FALLIBLE bind_agg_call(struct bind *b, struct query *q, const char *name, const struct json *body,
                       struct agg_call *out, struct type *out_type);
FALLIBLE bind_grouping(struct bind *b, struct query *q, const struct json *body, struct expr **out);
/* The expression's own text, for EXPLAIN; what is long goes by `otherwise`. */
const char *bind_short_name(struct bind *b, const struct expr *expr, const char *otherwise);

/* bind_type.c */
FALLIBLE bind_type(struct bind *b, const struct json *body, struct type_name *out);

/* The other statements. */
FALLIBLE bind_create(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_drop(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_insert(struct bind *b, const struct json *body, struct statement *out);
/* What is wrong with DO UPDATE, though perhaps no row comes to it; says types of parameters. */
FALLIBLE bind_conflict_check(struct bind *b, const struct json *body);
FALLIBLE bind_conflict_update(struct bind *b, const struct json *body,
                              const struct snapshot_table *excluded, struct statement *out);
FALLIBLE bind_insert_returning(struct bind *b, const struct json *body,
                               const struct snapshot_table *rows, struct statement *out);
FALLIBLE bind_copy(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_copied_rows(struct bind *b, const struct statement *st, const struct table *file,
                          struct statement *out);
FALLIBLE bind_update(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_delete(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_set_constraints(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_truncate(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_transaction(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_create_schema(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_create_view(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_create_sequence(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_alter_sequence(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_create_as(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_create_index(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_alter(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_rename(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_set_schema(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_comment(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_prepare(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_execute(struct bind *b, const struct json *body, struct statement *out);
/* The values of EXECUTE, as a plan of one row. */
FALLIBLE bind_arguments(struct bind *b, const struct json *body, const struct type *types,
                        struct statement *out);
FALLIBLE bind_deallocate(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_tx_option(struct bind *b, const struct json *option, struct tx_modes *out);
FALLIBLE bind_checkpoint(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_vacuum(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_set(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_show(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_explain(struct bind *b, const struct json *body, struct statement *out);
FALLIBLE bind_procedure(struct bind *b, const struct json *body, struct statement *out);
/* The value of a DefElem as text ("" when it has none); *out_given tells them apart. */
const char *option_text(struct bind *b, const struct json *def_elem, bool *out_given);
/* An option that is on, off or given without a value (on). */
FALLIBLE option_bool(struct bind *b, const struct json *def_elem, bool *out);
/* To a column of a table, by the rules of assignment. */
FALLIBLE bind_assign(struct bind *b, struct expr *expr, const struct column_def *to,
                     struct expr **out);
/* Column numbers of names in a table; errors 42703, 42701. */
FALLIBLE bind_column_list(struct bind *b, const struct table *table, const char *const *names,
                          const i32 *positions, i32 count, u32 *out);
/* Rows of VALUES that wait for subqueries or calls: each a projection of its own, all united. */
struct rel *bind_values_union(struct bind *b, const struct rel *values, pending_list *pending_of,
                              i64 rows, i64 width);
/* One row of VALUES as expressions. */
FALLIBLE bind_values_rel(struct bind *b, const struct json *lists, const struct cte *ctes,
                         struct query *outer, struct rel **out);

/* sample.c: as plan.sample. */
i64 sample_texts(const struct snapshot_table *source, u32 col, struct arena *arena, str *out, i64 max);

#endif
