/* plan.h: the relational IR: a tree of operators over columns with program-wide numbers.
 *
 * Every column a plan makes has a number (plan.cols); an expression names a column by that number,
 * and an operator's output is the list of column numbers in `out`. So operators can be moved
 * without renaming. Built by a front end, changed only by opt/ passes, immutable afterwards. */
#ifndef WF_PLAN_PLAN_H
#define WF_PLAN_PLAN_H

#include "base/mem.h"
#include "defs/agg.def"
#include "defs/frame.h"
#include "defs/ops.h"
#include "defs/rel.def"
#include "defs/table_func.def"
#include "defs/window.def"

#define X(A, name, own, text, inputs, flags, first, others) REL_##name,
enum rel_kind { WF_RELS(X, ) REL_COUNT };
#undef X
enum rel_flag { PASSES = 1, SHARES = 2 }; /* see rel.def */
enum { PAIRS = 255 };
/* What an operator waits for before it goes on, see rel.def. */
enum rel_waits { WAITS_NOTHING, WAITS_ELEMENT, WAITS_BLOCK, WAITS_KERNEL };
#define X(A, name, text, fewest, most, doc) TABLE_FUNC_##name,
enum table_func { WF_TABLE_FUNCS(X, ) TABLE_FUNC_END };
#undef X

/* func.c: functions by their numbers, which are made from func.def: FUNC_… in codes/func.h, and in codes/scalar.h
 * those that are one opcode. */
extern const char *const func_names[];
bool func_is_one(i32 func);             /* there is such a function */
i32 func_arg_count(u16 func);           /* -1 = any */
bool func_is_strict(u16 func);          /* NULL where an argument is NULL */
struct scalar_info { /* args is NULL for functions that are not one opcode */
    const char *args;
    char result;
    u16 op;
};
extern const struct scalar_info scalar_infos[];
extern const char *const agg_names[AGG_END];
extern const char *const window_names[WINDOW_END];
extern const char *const serial_names[SERIAL_END];
extern const char *const table_func_names[TABLE_FUNC_END];
extern const char *const rel_names[REL_COUNT];

enum expr_kind {
    EXPR_COL,   /* column `col` */
    EXPR_CONST, /* `value`, or NULL when is_null */
    EXPR_PARAM, /* parameter `param` (0 is $1) */
    EXPR_CALL,  /* func(args); NULL in, NULL out, where func_is_strict */
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
    b8 is_null;
    u16 func; /* CALL: FUNC_… */
    struct type type;
    i32 position; /* in the statement's text; -1 */
    u32 col;
    u32 param;
    union lit value; /* CONST: in type_kind(type); text borrows the plan's arena */
    i32 arg_count;
    struct expr **args;
};

typedef VEC(struct expr *) expr_list;
typedef VEC(u32) col_list; /* plan columns */
typedef VEC(b8) flag_list;

struct plan_col {
    const char *name;
    struct type type;
    b8 nullable;
};

struct snapshot_table;

struct scan_col {       /* what lowering may rely on; each but `sorted` becomes a guard */
    u32 col;            /* the plan's number for it */
    u32 table_col;      /* the table's number */
    struct range range; /* text with all_dict: 0 .. dictionary length - 1, of the codes */
    b8 no_nulls;
    b8 all_dict;
    b8 unique;
    b8 sorted; /* ascending from row to row, without NULLs; expected, no guard */
    i64 distinct;
};
typedef VEC(struct scan_col) scan_list;

struct order_key {
    struct expr *expr;
    b8 descending;
    b8 nulls_first;
};
typedef VEC(struct order_key) order_list;

struct agg_call {
    u32 col;                     /* result */
    u8 agg;                      /* enum agg */
    b8 distinct;                 /* removed by the pass split_distinct */
    struct expr *arg;            /* NULL for count(*) */
    struct expr *arg2;           /* string_agg: delimiter; percentiles: fraction */
    struct expr *filter;         /* only rows where it is true; NULL = all */
    order_list order;            /* ORDER BY inside the call; percentiles: the one key is `arg` */
    i32 position;
};
typedef VEC(struct agg_call) agg_list;

struct frame {
    u8 mode;
    u8 from, to; /* enum bound */
    u8 exclude;
    struct expr *from_offset, *to_offset; /* BEFORE, AFTER: constants or parameters; NULL else */
};

/* A call of a sequence's value (is_serial) is drawn for every row in turn, call by call, where
 * `filter` is true; its operator has no keys, keeps the order of its rows and has no other calls.
 */
struct window_call {
    u32 col;      /* result */
    b8 is_agg;    /* `func` is an enum agg, else an enum window_func */
    b8 is_serial; /* `func` is an enum serial_kind; SET: args are the value and whether it was used
                   */
    u8 func;
    u32 sequence; /* OID */
    const char *sequence_name;
    i32 arg_count;
    struct expr *args[3];
    struct expr *filter; /* aggregates only */
    struct frame frame;
    i32 position;
};
typedef VEC(struct window_call) window_list;

/* RIGHT is LEFT with its sides changed by the front end.
 *   SEMI, ANTI   left rows with, without a match; `out` has only left columns
 *   MARK         every left row once, with `mark_col`: true when there is a match, else false,
 * never NULL. IN and NOT IN get their NULLs by further marks (see sql/subquery.c) SINGLE LEFT,
 * where a second match of a row raises 21000 (a scalar subquery) FULL         both sides' unmatched
 * rows once, NULLs for the other side conds (all kinds): part of the match condition, over columns
 * of both sides. */
enum join_kind {
    JOIN_INNER,
    JOIN_CROSS,
    JOIN_LEFT,
    JOIN_FULL,
    JOIN_SEMI,
    JOIN_ANTI,
    JOIN_MARK,
    JOIN_SINGLE
};

/* Which rows of a relation WORK reads: those that were new in the last round, those before them, or
 * both. None of them changes while a round goes on. */
enum work_part { WORK_DELTA, WORK_OLD, WORK_ALL };

#define NO_COL 0xffffffffu
#define ROWID_COL 0xffffffffu /* scan_col.table_col: the row's 64-bit id, for UPDATE and DELETE */

/* What only one kind of operators has: struct rel_SCAN and so on. */
#define F(A, class, type, field, where, before) type field;
#define X(A, name, own, text, inputs, flags, first, others) \
    struct rel_##name {                      \
        WF_REL_##name(F, )                   \
    };
WF_RELS(X, )
#undef X
#undef F

struct rel {
    u8 kind; /* enum rel_kind */
    i32 input_count;
    struct rel **inputs;
    col_list out; /* columns available above this operator */
    i64 rows;     /* estimate */
    i32 position;
    u32 number; /* in the order EXPLAIN prints them, given by plan_number */
#define X(A, name, own, text, inputs, flags, first, others) struct rel_##name own;
    union {
        WF_RELS(X, )
    };
#undef X
};

struct relied { /* a column whose facts shaped the plan */
    u64 table_id;
    u32 table_col;
    b8 no_nulls;
    b8 unique;
};

/* Gives the value of a call or cast of constants, as a constant; NULL where it faults. */
struct evaluator {
    struct expr *(*run)(struct evaluator *evaluator, const struct expr *expr);
};

struct plan {
    struct arena *arena;
    VEC(struct plan_col) cols;
    struct rel *root;
    VEC(const char *) names;   /* of the root's out columns, as the user sees them */
    VEC(struct relied) relied; /* guarded though nothing may read them any more */
    VEC(const struct rule_check *) checks; /* what has to hold before its rows are of use */
    u32 param_count;
    struct type *param_types;
    b8 shown;      /* the rows go to a client: char(n) gets its blanks back */
    u32 fix_count; /* recursions are numbered from 1 */
    /* At most `max` texts of a column of a scan's table, an empty one for NULL; returns how many.
     * NULL: there are none to be had. */
    i64 (*sample)(const struct snapshot_table *source, u32 table_col, struct arena *arena, str *out,
                  i64 max);
    b8 for_gpu; /* costs are those of a GPU */
    struct evaluator *evaluator; /* NULL: expr_fold knows logic and integers alone */
};

u32 plan_col_new(struct plan *plan, const char *name, struct type type, bool nullable);
u32 plan_col_like(struct plan *plan, u32 col); /* a new one, called and typed as that */
/* FILTER, SORT, LIMIT, WINDOW and JOIN (SEMI, ANTI, MARK: see rel_join) start with their inputs'
 * columns in `out`; others start empty. */
struct rel *rel_new(struct plan *plan, enum rel_kind kind, struct rel *left, struct rel *right);
/* An operator that leaves its place: users of a shared plan hold the place itself, where something
 * else can stand then. */
struct rel *rel_body(struct plan *plan, const struct rel *place);
/* One with any number of inputs. */
struct rel *rel_over(struct plan *plan, enum rel_kind kind, struct rel *const *inputs, i32 count);
/* An operator becomes one of another kind over `input`, in its place and with its columns and rows;
 * fields of its own are empty then. */
void rel_become(struct plan *plan, struct rel *rel, enum rel_kind kind, struct rel *input);
/* A SHARED: one more use of `input`, whose columns `cols` are called `as` there; NULL: by new numbers. */
struct rel *rel_shared(struct plan *plan, struct rel *input, const u32 *cols, const u32 *as,
                       i64 count);
/* A SHARED whose input nobody else uses becomes a projection. */
void rel_unshare(struct plan *plan, struct rel *shared);
/* A join of the given kind with the columns it makes visible; MARK makes mark_col. */
struct rel *rel_join(struct plan *plan, enum join_kind kind, struct rel *left, struct rel *right);
/* A window that numbers the rows of `rel` in `col`: all of them, as they come, unless the caller
 * adds what to part and order them by. */
struct rel *rel_numbered(struct plan *plan, struct rel *rel, u32 col);
struct expr *expr_new(struct arena *arena, enum expr_kind kind, struct type type, i32 position);
struct expr *expr_col(struct plan *plan, u32 col, i32 position);
struct expr *expr_call(struct arena *arena, u16 func, struct type type, i32 position,
                       i32 arg_count, ...); /* arguments: struct expr * */
bool expr_nullable(const struct plan *plan, const struct expr *expr);
bool expr_equal(const struct expr *a, const struct expr *b);
u64 expr_hash(const struct expr *expr); /* the same for equal ones */
/* The first of `count` expressions that is equal to this one; -1 = none. `hashes` holds those of
 * expressions met before, and gets those of the others. */
typedef VEC(u64) expr_hashes;
i64 expr_find(struct arena *arena, expr_hashes *hashes, struct expr *const *items, i64 count,
              const struct expr *expr);
/* Calls visit for every node, parents first; stops early when visit returns false, and returns
 * that. */
bool expr_walk(const struct expr *expr, bool (*visit)(const struct expr *, void *arg), void *arg);
/* Sets the value of a constant of an exact type, date or boolean, by type_kind. */
void const_set_exact(struct expr *expr, i128 value);
i128 const_exact(const struct expr *expr);
/* The only column an expression names; false when there are none or several. */
bool expr_only_col(const struct expr *expr, u32 *out);
/* Calls fn for every column an expression names. */
void expr_each_col(const struct expr *expr, void (*fn)(u32 col, void *arg), void *arg);
/* Every node replaced by what fn makes of it, parents first; where that is NULL it stays, with its
 * arguments rebuilt likewise. Nodes are never changed. */
typedef struct expr *(*expr_fn)(struct expr *expr, void *arg);
struct expr *expr_rebuild(struct arena *arena, struct expr *expr, expr_fn fn, void *arg);
/* Columns replaced by map[col] where that is not NULL; nodes are rebuilt, never changed. */
struct expr *expr_map(struct arena *arena, struct expr *expr, struct expr *const *map);
/* What can be computed ahead replaced by constants: immutable functions of constants, branches that
 * are never taken. Never raises: what would fault stays. */
struct expr *expr_fold(const struct plan *plan, struct expr *expr);
/* Whether a call or cast gives the same for the same arguments whatever the session's settings and
 * the time are: PostgreSQL's word for it. */
bool expr_node_is_immutable(const struct expr *expr);
/* The operands of a conjunction, however nested; an expression that is none by itself. */
void expr_split_and(struct arena *arena, expr_list *out, struct expr *expr);
/* A LIKE pattern that does not end in its escape character. */
bool pattern_is_whole(struct sv pattern);
bool expr_is_volatile(const struct expr *expr); /* two evaluations may differ */
bool expr_can_raise(const struct expr *expr); /* might fault on some value */
bool expr_node_can_raise(
    const struct expr *expr); /* the same of the node alone, not its arguments */
/* walk.c: every expression of one operator, each by its place, so that fn may replace it. */
typedef void (*expr_slot_fn)(struct expr **slot, void *arg);
void rel_each_expr(struct rel *rel, expr_slot_fn fn, void *arg);
void agg_each_expr(struct agg_call *call, expr_slot_fn fn, void *arg);
void window_each_expr(struct window_call *call, expr_slot_fn fn, void *arg);
/* The columns an operator makes itself, rather than passing on. */
void rel_each_made(const struct rel *rel, void (*fn)(u32 col, void *arg), void *arg);
/* Every operator below and including rel once, parents first; fn may replace inputs. */
typedef void (*rel_fn)(struct rel *rel, void *arg);
void rel_each(struct arena *arena, struct rel *rel, rel_fn fn, void *arg);
/* The same, but nothing is visited below an operator for which visit returns false. */
typedef bool (*rel_visit_fn)(struct rel *rel, void *arg);
void rel_walk(struct arena *arena, struct rel *rel, rel_visit_fn visit, void *arg);
/* Inputs first. */
void rel_each_up(struct arena *arena, struct rel *rel, rel_fn fn, void *arg);
/* All that an operator names columns by names others: those of the map (see expr_map), which has
 * `count` entries. */
void rel_rename(struct arena *arena, struct rel *rel, struct expr *const *map, i64 count);
/* Everything in and below rel, just made from a text that is not the user's, is said to stand at one
 * position of the user's; -1 = nowhere. */
void rel_place(struct arena *arena, struct rel *rel, i32 position);
/* How many columns are used below rel and made elsewhere; marks them in out_free, by column
 * number, unless that is NULL. */
i64 rel_free_cols(const struct plan *plan, struct rel *rel, u8 *out_free);
/* The input of an operator with one; the inputs of one with two. */
static inline struct rel *rel_input(const struct rel *rel) {
    ASSERT(rel->input_count == 1);
    return rel->inputs[0];
}
static inline struct rel *rel_left(const struct rel *rel) {
    ASSERT(rel->input_count == 2);
    return rel->inputs[0];
}
static inline struct rel *rel_right(const struct rel *rel) {
    ASSERT(rel->input_count == 2);
    return rel->inputs[1];
}
static inline void rel_set_input(struct rel *rel, struct rel *input) {
    ASSERT(rel->input_count == 1);
    rel->inputs[0] = input;
}
static inline void rel_set_left(struct rel *rel, struct rel *left) {
    ASSERT(rel->input_count == 2);
    rel->inputs[0] = left;
}
static inline void rel_set_right(struct rel *rel, struct rel *right) {
    ASSERT(rel->input_count == 2);
    rel->inputs[1] = right;
}
/* Fields that several kinds have: conjuncts (FILTER, JOIN), the expressions of the first columns of
 * `out` (PROJECT, AGG: its keys), the columns of an input that become those of `out` (UNION, FIX,
 * SHARED). NULL of others. */
expr_list *rel_conds(const struct rel *rel);
expr_list *rel_exprs(const struct rel *rel);
col_list *rel_cols(const struct rel *rel, i32 input);
/* The columns of `out` that have the values of rel_cols. */
const u32 *rel_copied(const struct rel *rel, i32 input);
bool rel_has_out(const struct rel *rel, u32 col);
/* `out` are columns of its inputs, and those it makes besides. */
bool rel_passes(const struct rel *rel);
/* Its input may have other users. */
bool rel_shares(const struct rel *rel);
/* What it waits for of one of its inputs; what operators of a kind do of their first, if nothing more is known. */
enum rel_waits rel_waits(const struct rel *rel, i32 input);
enum rel_waits rel_kind_waits(enum rel_kind kind);
/* How many of its inputs hand columns on through it. */
i32 rel_visible(const struct rel *rel);
/* A WINDOW that draws from sequences: it has effects, whoever reads its columns. */
static inline bool rel_is_serial(const struct rel *rel) {
    return rel->kind == REL_WINDOW && rel->window.calls.count > 0 &&
           rel->window.calls.items[0].is_serial;
}
/* copy.c: the operators below and including rel once more; every column they make has a new number,
 * which map[old number] names afterwards. The map has plan->cols.count + 1 entries, NULL where it
 * says nothing yet; entries that are set stand for columns from elsewhere. What is shared below is
 * copied where it reads rows of the recursion `fix` (0 = none), or of one that is copied. */
struct rel *rel_copy(struct plan *plan, struct rel *rel, struct expr **map);
struct rel *rel_copy_round(struct plan *plan, struct rel *rel, struct expr **map, u32 fix);
/* fix.c: a recursion of `count` relations, which rules make of each other.
 *
 * Each relation gets its columns (`cols`: names and types) first; distinct: a row is in it once,
 * NULLs being equal. A rule's plan names relations by atoms, each of which is an operator with
 * columns of its own, and has the columns of its relation in `out`, in their order and types.
 * fix_base takes plans without atoms. fix_rule takes those that have some, and makes one for every
 * atom of them: where that one reads what is new, those before it read what is old, and those behind
 * it both, so that the same rows meet once. So a plan with atoms gives more rows for more rows of
 * theirs, and no others: none is below an aggregate, a window, a limit, a SHARED, or on a side of a
 * join that is asked whether there is no row. Of relations that are not distinct a rule has one atom.
 * fix_close gives the FIX, which fix_read reads: one SHARED for every reader.
 *
 * fix_best: of rows that agree in all other columns a relation keeps the one with the least value (greatest), and rules
 * make better ones of better ones: order_kept says so of each. Readers have to ask by fix_read_best. */
struct fix_draft;
struct fix_draft *fix_open(struct plan *plan, u32 count);
void fix_relation(struct fix_draft *f, u32 relation, const struct plan_col *cols, i64 count,
                  bool distinct);
void fix_call(struct fix_draft *f, u32 relation, const char *name); /* for EXPLAIN */
void fix_best(struct fix_draft *f, u32 relation, u32 value, bool greatest);
u32 fix_number(const struct fix_draft *f);
/* Where the value of a relation (*out_value: its column) moves while rounds go on: up 1, down -1; 0 = it has none. */
i8 fix_moves(const struct fix_draft *f, u32 relation, u32 *out_value);
struct rel *fix_atom(struct fix_draft *f, u32 relation);
void fix_base(struct fix_draft *f, u32 relation, struct rel *term);
void fix_rule(struct fix_draft *f, u32 relation, struct rel *term);
struct rel *fix_close(struct fix_draft *f);
struct rel *fix_read(struct plan *plan, struct rel *fix, u32 relation);
struct rel *fix_read_best(struct plan *plan, struct rel *fix, u32 relation, u32 value,
                          bool greatest);
/* order.c: whether a rule's plan for `relation` gives no worse rows for better values of what its atoms read; else
 * *out_position is where in the text it does not, -1 = nowhere. */
bool order_kept(struct plan *plan, const struct fix_draft *f, u32 relation, struct rel *term,
                i32 *out_position);
/* equal.c: whether two parts of a plan have the same rows, up to the numbers of columns; the map
 * then says for columns of b which of a's they are (see rel_copy). What is volatile is equal to
 * nothing. */
bool rel_equal(struct plan *plan, const struct rel *a, const struct rel *b, struct expr **map);
/* The same within the rounds of the recursion `fix`, whose rows are equal to themselves. */
bool rel_equal_round(struct plan *plan, const struct rel *a, const struct rel *b, struct expr **map,
                     u32 fix);
u64 rel_hash(const struct rel *rel); /* of the operator alone; the same for equal ones */

void expr_print(struct text *out, const struct plan *plan, const struct expr *expr);
void plan_print(struct text *out, const struct plan *plan); /* EXPLAIN */
/* EXPLAIN ANALYZE: actual[number] is how many rows an operator gave, -1 = not known; NULL: it did
 * not run. */
void plan_print_actual(struct text *out, const struct plan *plan, const i64 *actual,
                       bool estimates);
/* Numbers the operators, once; how many there are. One with several parents has one number. */
u32 plan_number(struct plan *plan);
FALLIBLE plan_verify(const struct plan *plan, struct error *err);

#endif
