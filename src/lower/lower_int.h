/* lower_int.h: what the files of lower/ share: the lowering state, the pipeline builder, values.
 *
 * Errors are sticky: lower_fail records the first one in `lower.status`, every builder call then
 * does nothing and returns register 0, and lower_plan reports it at the end. Expression code stays
 * straight. */
#ifndef WF_LOWER_LOWER_INT_H
#define WF_LOWER_LOWER_INT_H

#include "base/stop.h"
#include "lower/lower.h"

/* A value of an expression: a register, and a b8 register that is 1 where it is NULL (NO_REG:
 * never). The value of a NULL lies within the register's range, and is 0 for booleans. */
struct value {
    u16 reg;
    u16 null;
};

/* How a plan column is reached inside a pipeline. */
enum bind_kind { BIND_NONE, BIND_SOURCE, BIND_VAR, BIND_VALUE, BIND_EXPR };
struct binding {
    u8 kind;
    u8 reg_kind; /* SOURCE, VAR */
    b8 nullable;
    b8 outer;    /* VAR: the row number may be -1 */
    u16 row_reg; /* VAR: row number */
    u32 var;
    u32 col; /* SOURCE: index into source.cols; VAR: column */
    u32 dict;
    u32 lazy;      /* literal + 1 to raise before the value is used; 0 = none */
    b8 lazy_there; /* only where there is a row */
    u16 lazy_when; /* register + 1: only where it is true; 0 = everywhere */
    struct range range;
    struct value value;      /* VALUE */
    const struct expr *expr; /* EXPR: computed when first used */
};

/* Columns that stay behind in a variable, where they are found by the number of their row. */
struct left {
    u32 count;
    u32 *cols;             /* of the plan */
    struct binding *binds; /* VAR, without the row */
};
struct left_row { /* in a pipeline: the row of them that belongs to its own */
    const struct left *left;
    u16 row_reg;
};

/* Variable columns, beyond what struct var says. */
struct var_info {
    struct range *ranges;
    b8 *nullable;
    u32 *lazy;    /* as in struct binding; NULL = no column is */
    i64 max_rows; /* proven bound */
};

struct reg_info {
    u32 lit;      /* literal + 1 of a CONST register */
    b8 foldable;  /* CONST that is not a parameter */
    u32 load_col; /* LOAD of source column - 1 */
    u32 def;      /* index of the defining opcode + 1 */
};

struct cse {
    struct op op;
    u32 next;
    u32 bucket;
};

/* A legal cut: everything up to `rel` is computed before the opcode that the row mark stands at. */
struct boundary {
    const struct rel *rel;
    u32 mark;
};

struct cut { /* the pipeline ends behind this operator */
    const struct rel *rel;
    const char *why; /* for EXPLAIN */
};

struct lut { /* a lookup table made already, for reuse */
    u32 dict;
    const struct expr *expr; /* NULL: the text itself */
    u32 col;                 /* plan column the expression reads */
    u32 intern_find;         /* find-only interner + 1, for join keys */
    u32 value_var, null_var, fault_var;
    u8 kind;
    struct range range;
    u32 result_dict;
};

struct shared { /* a subplan with several readers */
    const struct rel *input;
    i64 uses;
    bool made;
    bool apart; /* its users must not share a scan */
    u32 var;    /* its rows, columns as input->out */
    VEC(const struct rel *) aggs; /* users that aggregate it */
};

struct in_set { /* the constants of an IN list as a set made already */
    const struct expr *expr;
    u32 index;    /* of keys; NO_VAR: strings */
    u32 interner; /* of strings */
    i32 scale;    /* of keys that are decimals */
    b8 has_null;
    b8 *member; /* per item: it is in the set */
};

struct ranks { /* STEP_RANK made already */
    u32 dict;
    u32 rank_var, code_var;
};

struct key_layout;
struct loop_rel {     /* a relation of a recursion */
    u32 all;          /* its rows: rounds append to them */
    u32 parts[3];     /* by enum work_part: what a round reads of them; NO_VAR = nobody does */
    u32 lit;          /* how many of them rounds have taken */
    VEC(u32) fresh;   /* variables that get the rows of every round, for indexes that grow */
    u32 set;          /* variable + 1 of the keys of its rows, which pipelines add to; 0 = none */
    struct key_layout *layout; /* of these keys */
    b8 small;         /* a bitmap of them is no waste */
    b8 best, greatest; /* the set knows the best value of a key, of column `value`; others are keys */
    u32 value;
    i64 guess;        /* its number */
};

struct loop {         /* a recursion */
    const struct rel *rel;
    u32 count;
    struct loop_rel *rels;
    i64 first, end; /* steps of a round */
    VEC(u32) late;  /* variables that get the rows of a round at its end */
    u32 stop_lit;   /* rows that are enough; NO_LIT = all */
    b8 done;
};

/* What the columns of a recursion's relation are taken to hold, whatever the round. A round that
 * makes more widens it, and lowering begins again. */
struct fix_guess {
    u32 fix; /* its number in the plan */
    u32 relation;
    u32 col_count;
    struct range *ranges;
    b8 *nullable;
    b8 *open;    /* any value of the type */
    b8 *coded;   /* text: codes of one dictionary of a table, which all terms hand on */
    b8 *plain;   /* text: terms have different dictionaries, or none */
    b8 none;     /* nothing so far: it begins without rows */
    i32 widened; /* how often */
};

struct lower {
    const struct plan *plan;
    const struct lower_limits *limits;
    struct arena *arena;
    struct error *err;
    wf_status status;
    u32 polls;    /* expressions so far, see lower_poll */
    b8 unordered; /* nobody sees in what order the rows of this part come: inner sorts do nothing */
    i32 drawing;  /* any order counts: depth of operators that draw from sequences */
    struct program *program;
    VEC(u64) tables;
    VEC(struct var) vars;
    VEC(struct var_info) var_infos;
    VEC(struct dict_ref) dicts;
    VEC(union lit) lits;
    VEC(u8) lit_kinds;
    u32 *lit_slots; /* hash of foldable literals */
    i64 lit_slot_count;
    VEC(struct guard) guards;
    VEC(struct step) steps;
    VEC(struct lut) luts;
    VEC(struct ranks) ranks;
    VEC(struct shared) shared;
    VEC(struct in_set) in_sets;
    VEC(struct cut) cuts;           /* operators after which a pipeline must end */
    VEC(struct cut) wishes;         /* further ones that budgets ask for */
    VEC(const struct rel *) apart;  /* inputs whose aggregations are too large for one pipeline */
    VEC(struct agg_state *) aggs;   /* made together with others, not yet read */
    b8 again;                       /* apart has grown */
    VEC(struct loop *) loops;       /* recursions, those of inner ones first */
    VEC(struct loop *) working;     /* all, for those who read their rows */
    const struct rel *growing;      /* rows of a recursion of which those of the last round are read; NULL = none */
    VEC(struct fix_guess) guesses;  /* of this try and those before it */
    b8 guessed_wrong;               /* begin again */
    VEC(struct deferral) deferrals;
    u32 defer;       /* the one + 1 whose steps are being made; 0 = none */
    b8 numbers_rows; /* scans number their rows, for a fetch at the end */
    u32 rank;
};

struct builder {
    struct lower *l;
    struct source source;
    i64 rows; /* estimate of those that come out so far; 0 = none was made */
    i64 filtered; /* as in struct pipeline */
    VEC(u32) cols;
    VEC(u32) col_at; /* by column of the source: where it is in cols, + 1 */
    VEC(struct op) consts;
    VEC(struct op) ops;
    VEC(u8) faults; /* per op: might raise */
    VEC(struct reg) regs;
    VEC(struct reg_info) infos;
    VEC(struct sink) sinks;
    VEC(struct prune) prunes;
    VEC(struct boundary) boundaries;
    VEC(struct row_mark) marks; /* op: how many opcodes there were */
    struct binding **binds;     /* by plan column, in pages that are made when one of theirs is */
    VEC(struct left_row) lefts; /* where columns are that are not bound yet */
    VEC(struct cse) cses;
    u32 *heads;
    u32 head_count;
    i32 depth;           /* open WHENs */
    i32 position;        /* of the expression being lowered */
    b8 raises;           /* an opcode that might raise was emitted */
    const struct rel *together; /* the input of several aggregations that end here; NULL = none */
    u32 row_number;      /* register + 1 with the number of the table's row; 0 = none */
    i64 max_rows;        /* proven bound of the rows here, saturating */
    i32 source_position; /* of the table in the statement's text; -1 = it has none */
    struct text label;
    const char *last_label; /* the operator that was added to it last */
    const char *ends;       /* why it ends, if not for what that operator waits for */
};

/* lower.c: the program's lists */
/* Asks now and then whether the statement is to end. */
void lower_poll(struct lower *l);
void lower_fail(struct lower *l, wf_status code, i32 position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
u32 lower_lit(struct lower *l, enum kind kind, union lit value); /* equal literals share a number */
u32 lower_lit_new(struct lower *l, enum kind kind, union lit value);
u32 lower_var(struct lower *l, enum var_kind kind, const char *name);
u32 lower_dict(struct lower *l, struct dict_ref ref); /* index + 1, as in struct reg */
u32 lower_table(struct lower *l, u64 table_id);
/* Calls fn for every variable a step reads or writes. */
void lower_each_var(const struct lower *l, const struct step *step, void (*fn)(void *arg, u32 var),
                    void *arg);
struct step *lower_step(struct lower *l, enum step_kind kind, const char *label);
u32 lower_param_lit(struct lower *l, u32 param);
u32 lower_param_null_lit(struct lower *l, u32 param);

/* build.c: a pipeline under construction */
struct builder *build_new(struct lower *l, enum source_kind kind, u32 ref, i64 rows, i64 max_rows);
/* Of row numbers of a relation variable: at least 32 bits of them, so that few plans depend on how many rows there
 * may be. least: 0, or -1 where a row may be missing. */
struct range build_rows_range(const struct lower *l, u32 rows_var, i128 least);
/* The row that PROBE or MATCH finds. */
u16 build_probe(struct builder *b, struct op op);
/* What a plan column is in this pipeline. */
struct binding *bind_at(const struct builder *b, u32 col);
void build_copy_binds(struct builder *to, const struct builder *from);
u32 build_source_col(struct builder *b, u32 col); /* index into source.cols */
u16 build_reg(struct builder *b, enum kind kind, struct range range, u32 dict);
/* A scalar opcode: folded when all operands are literals, shared with an equal one in scope. */
u16 build_op(struct builder *b, u16 code, u16 a, u16 b_, u16 c, struct range range);
/* The same for an opcode of a faulting list that is proven not to fault here. */
u16 build_safe(struct builder *b, u16 code, u16 a, u16 b_, u16 c, struct range range);
/* A control opcode that defines a register, shared with an equal one in scope. */
u16 build_ctl(struct builder *b, struct op op, enum kind kind, struct range range, u32 dict);
u16 build_ctl_new(struct builder *b, struct op op, enum kind kind, struct range range, u32 dict);
/* A control opcode without result: FILTER, EMIT, PROBE's kin are build_ctl_new. */
void build_plain(struct builder *b, u16 code, u16 a, u32 imm);
u16 build_lit(struct builder *b, enum kind kind, union lit value, struct range range);
u16 build_param(struct builder *b, u32 lit, enum kind kind, struct range range);
u16 build_int(struct builder *b, enum kind kind, i128 value);
u16 build_float(struct builder *b, enum kind kind, f64 value);
u16 build_exact(struct builder *b, i128 value); /* at its narrowest kind */
u16 build_bool(struct builder *b, bool value);
u16 build_i32(struct builder *b, i32 value);
u16 build_str(struct builder *b, struct sv s);
bool build_is_const(const struct builder *b, u16 reg, union lit *out); /* a known literal */
bool build_is_bool(const struct builder *b, u16 reg, bool value);
/* b8 logic with the obvious simplifications; NO_REG stands for constant 0 in null registers. */
u16 build_and(struct builder *b, u16 x, u16 y);
u16 build_or(struct builder *b, u16 x, u16 y);
u16 build_andn(struct builder *b, u16 x, u16 y);
u16 build_not(struct builder *b, u16 x);
u16 build_null_or(struct builder *b, u16 x, u16 y);
u16 build_kind(struct builder *b, u16 reg, enum kind kind); /* widen or narrow an exact register */
u16 build_sel(struct builder *b, u16 cond, u16 x, u16 y);   /* same kind */
/* WHEN … END around what is emitted in between, kept only if it holds something that might raise or
 * is expensive. Returns whether it was kept: registers made inside are then valid only where cond
 * is 1. */
struct scope {
    i64 op, cse;
    u16 cond;
};
struct scope build_when(struct builder *b, u16 cond);
bool build_end(struct builder *b, struct scope scope);
/* TRY … END around what is emitted in between. Returns the register that is 1 where it faulted, or
 * NO_REG when nothing in it can. */
struct scope build_try(struct builder *b);
u16 build_try_end(struct builder *b, struct scope scope);
/* EACH … ANY around what is emitted in between: op is EACH, *out_row the match. build_any closes
 * the scope and returns a match that came through, or -1. */
struct scope build_each(struct builder *b, struct op op, u16 *out_row);
u16 build_any(struct builder *b, struct scope scope, u16 row, u16 flags);
/* Where a pipeline stands, to go back there. Nothing lowered in between may be remembered: callers
 * raise `depth` meanwhile. */
struct mark {
    i64 ops, regs, cses, consts;
    u32 rank;
    b8 raises;
};
struct mark build_mark(const struct builder *b);
void build_undo(struct builder *b, struct mark mark);
u32 build_sink(struct builder *b, struct sink sink);
struct step *build_finish(struct builder *b);
void build_label(struct builder *b, const char *name);
bool build_looks_up(const struct builder *b); /* whether anything is looked up in an index so far */
/* The rows at this point are what the operator gives. */
void build_row_mark(struct builder *b, const struct rel *rel);
static inline enum kind reg_kind(const struct builder *b, u16 reg) {
    return (enum kind)b->regs.items[reg].kind;
}
static inline struct range reg_range(const struct builder *b, u16 reg) {
    return b->regs.items[reg].range;
}
static inline u32 reg_dict(const struct builder *b, u16 reg) {
    return b->regs.items[reg].dict;
}

/* lower_expr.c */
struct value lower_expr(struct builder *b, const struct expr *expr);
struct value lower_col(struct builder *b, u32 col);
struct value lower_null(struct builder *b, struct type type);
u16 lower_zero(struct builder *b, enum kind kind); /* a literal to stand for NULL */
/* reg where it was computed, a literal elsewhere. */
u16 lower_where(struct builder *b, u16 where, u16 reg);
/* `v` where cond (a value of 1), else `w`; both of SQL type `type`. */
struct value lower_choose(struct builder *b, u16 cond, struct value v, struct value w,
                          struct type type);
bool value_is_null(const struct builder *b, struct value v); /* constant NULL */
void lower_same_kind(struct builder *b, struct value *x,
                     struct value *y); /* the same kind, dictionary */

/* in_list.c: x IN (list). */
struct value lower_in(struct builder *b, const struct expr *expr);
struct value lower_or_values(struct builder *b, struct value x, struct value y);

/* condition.c */
void lower_filter(struct builder *b, struct expr *const *conds, i64 count);

/* lower_func.c, cast.c */
struct value lower_call(struct builder *b, const struct expr *expr);
struct value lower_cast(struct builder *b, struct value v, struct type from, struct type to);
struct value lower_compare(struct builder *b, u16 func, struct value x, struct value y,
                           struct type tx, struct type ty);
u16 lower_scale(struct builder *b, u16 reg, i32 from, i32 to); /* exact; to >= from */
/* Whether `digits` zeros more may be too many for a decimal. */
bool lower_outgrows(struct builder *b, u16 reg, i32 digits);
u16 lower_add_exact(struct builder *b, u16 x, u16 y);          /* proven to fit 128 bits */
u16 lower_sub_exact(struct builder *b, u16 x, u16 y);
u16 lower_mul_exact(struct builder *b, u16 x, u16 y);
/* Canonical boolean: 0 where NULL. */
struct value lower_bool(struct builder *b, u16 reg, u16 null);
/* Checks an exact value against a type's bounds where its range does not prove them. */
u16 lower_check(struct builder *b, u16 reg, u16 null, struct type type);
/* `reg`, replaced by the literal where null is 1, so that a faulting opcode cannot fault for a
 * NULL. */
u16 lower_guard(struct builder *b, u16 reg, u16 null, u16 safe);

/* lower_scalar.c */
/* A timestamptz to what clocks of the session's zone show, and back. */
u16 lower_local(struct builder *b, u16 reg, u16 null);
u16 lower_global(struct builder *b, u16 reg, u16 null);
struct value lower_scalar(struct builder *b, const struct expr *expr, const struct value *v);
/* An opcode whose operands may be those of a NULL: it cannot raise for them. */
u16 lower_masked(struct builder *b, u16 code, const u16 *regs, u16 null,
                 struct range range);
/* lower_func.c: reg / 10^digits, rounded half away from zero or cut; itself for 0 digits. */
u16 lower_divide(struct builder *b, u16 reg, i32 digits, bool round);
struct value lower_round(struct builder *b, const struct expr *expr, const struct value *v);
struct value lower_floor(struct builder *b, const struct expr *expr, struct value v);
struct value lower_time(struct builder *b, enum exec_time time);
struct value lower_random(struct builder *b, const struct expr *expr);
struct value lower_try(struct builder *b, const struct expr *expr);
struct value lower_defined(struct builder *b, const struct expr *expr);
struct value lower_to_number(struct builder *b, const struct expr *expr, const struct value *v);
struct value lower_dates(struct builder *b, const struct expr *expr, const struct value *v);
/* What equal intervals share, and what they order by; other types as they are. */
u16 lower_order(struct builder *b, u16 reg, struct type type);

/* lower_string.c */
bool string_lut(struct builder *b, const struct expr *expr, struct value *out);
u16 string_view(struct builder *b, u16 reg); /* STR from codes or STR */
u16 string_intern(struct builder *b, u16 reg, u32 interner, bool find_only);
struct ranks string_ranks(struct lower *l, u32 dict);

/* lower_rel.c */
struct builder *lower_rel(struct lower *l, const struct rel *rel);
void lower_root(struct lower *l);
void lower_project(struct builder *b, const struct rel *rel);
void bind_value(struct builder *b, u32 col, struct value v);
struct out_col {
    struct value value;
    struct type type;
    u32 lazy; /* as in struct binding */
};
/* lazy.c */
/* The right side of a join while it is lowered; number 0: it is not lazy. */
struct lazy {
    u32 number; /* deferral + 1 */
    u32 lit;    /* its literal + 1 */
    u32 outer;
    i64 luts, ranks, in_sets;
};
void lazy_open(struct lower *l, const struct rel *join, struct lazy *out); /* and enters */
/* Steps made from here on are the right side's, until lazy_leave. */
void lazy_enter(struct lower *l, struct lazy *lazy);
void lazy_leave(struct lower *l, const struct lazy *lazy);
void lazy_use(struct builder *b, const struct binding *bind);
/* A column that is handed on to a variable, not used. */
struct out_col lower_carry(struct builder *b, u32 col);

/* Ends the pipeline with rows in a new variable (canonical: in the kinds of the SQL types). */
u32 lower_rows(struct builder *b, const char *name, const struct out_col *cols, u32 count,
               bool canonical, i64 limit);
/* A register in the kind of its SQL type. */
u16 lower_canonical(struct builder *b, struct value v, struct type type);
/* A pipeline over a variable, its columns not yet bound. */
struct builder *lower_over(struct lower *l, u32 var, i64 rows);
void bind_source(struct builder *b, u32 col,
                 u32 var_col); /* column var_col of the source variable */

/* An empty ROWS variable of `count` columns, to be described by the caller. */
u32 lower_rows_var(struct lower *l, const char *name, u32 count);

/* join.c */
struct builder *lower_meet(struct lower *l, const struct rel *rel); /* meet.c: it meets others */
struct builder *lower_cliques(struct lower *l, const struct rel *rel); /* cliques.c */
struct builder *lower_join(struct lower *l, const struct rel *rel);

/* union.c: several pipelines into one variable; column i of each is cols[pipeline][i], made alike.
 */
u32 union_rows(struct lower *l, struct builder *const *bs, struct out_col *const *cols, i64 count,
               u32 col_count);
/* The answer of a union with only projections above it, the lowest last; returns its variable. */
u32 union_answer(struct lower *l, const struct rel *rel, const struct rel *const *projects,
                 i64 project_count, bool limited);
struct builder *lower_union(struct lower *l, const struct rel *rel);
struct builder *lower_shared(struct lower *l, const struct rel *rel);
struct builder *lower_table_func(struct lower *l, const struct rel *rel);
/* fix.c */
void fix_before(struct lower *l, const struct rel *rel); /* now, unless it was made */
/* Rows of one of its relations, which a SHARED reads. */
struct builder *fix_relation_rows(struct lower *l, const struct rel *shared);
/* Whether these are all rows of a recursion so far, of which a set may be kept from round to round. */
bool fix_is_seen(const struct lower *l, const struct rel *rel);
bool fix_is_open(const struct lower *l); /* whether steps made now belong to a round */
/* The rows of a recursion that an input is made of, row by row, where an index of it may be kept from round
 * to round; else NULL. */
const struct rel *fix_growing(const struct lower *l, const struct rel *input);
/* The input over the last round's rows, which are new to what is kept; then that `build` adds them. */
struct builder *fix_last_round(struct lower *l, const struct rel *input, const struct rel *work);
void fix_keep_growing(struct lower *l, const struct rel *work, struct step *build);
struct builder *lower_fix(struct lower *l, const struct rel *rel);
struct builder *lower_work(struct lower *l, const struct rel *rel);
void fix_blocks(struct lower *l, struct program *p); /* the steps as blocks */
void shared_count(struct lower *l, struct rel *rel);
/* Makes the rows of a shared input now if it has more than `uses` users. */
void shared_make(struct lower *l, const struct rel *input, i64 uses);
struct shared *shared_find(struct lower *l, const struct rel *input);
/* The columns of a use, where b gives the input's rows: computed there, or read from its variable.
 */
void shared_bind(struct builder *b, const struct rel *rel, bool read);

/* window.c */
struct builder *lower_window(struct lower *l, const struct rel *rel);

/* aggregate.c, values.c */
/* A value of a column of the pipeline's source variable, and its NULL flag. */
struct value lower_source_value(struct builder *b, u32 col);
struct builder *lower_agg(struct lower *l, const struct rel *rel);
struct builder *lower_values(struct lower *l, const struct rel *rel);

/* constant.c: a lowered constant's value in the kind of `type`; false when it is not one. */
bool lower_const_lit(struct builder *b, struct value v, struct type type, union lit *out,
                     bool *out_null);

/* order.c */
struct builder *lower_sort(struct lower *l, const struct rel *rel);
struct builder *lower_limit(struct lower *l, const struct rel *rel);
/* Whether the answer's rows are sorted, and so many that their other columns are worth fetching
 * afterwards. */
bool order_may_fetch(struct lower *l, const struct rel *sort, const struct rel *limit);
/* Ends b with the answer: columns `out`, sorted and limited as told (either may be NULL). */
void order_result(struct builder *b, const u32 *out, i64 count, const struct rel *sort,
                  const struct rel *limit);
/* The output columns, of the answer (last) or another variable, with room for `extra` more; rows
 * without columns get one to be counted by. */
struct out_col *order_cols(struct builder *b, const u32 *out, i64 count, i64 extra, bool last,
                           u32 *out_count);
/* The first `count` columns of the variable are the answer. */
void order_answer(struct lower *l, u32 var, i64 count, const struct rel *limit);

/* key.c */
enum field_form {
    FIELD_EXACT,
    FIELD_CODE,
    FIELD_BOOL,
    FIELD_F32,
    FIELD_F64,
    FIELD_WIDE,
    FIELD_NULL
};
struct key_field {
    u8 form;
    u8 kind; /* of the value */
    b8 nullable;
    i32 bits; /* 64: the word is the value */
    u32 word;
    struct range range;
    struct range whole; /* WIDE: of the value itself */
    u32 dict;           /* CODE */
    u32 interner;       /* WIDE: pairs; CODE of strings: their interner + 1 */
    i32 source;         /* NULL: flag of that field */
};
struct key_layout {
    struct key_field *fields;
    i32 count;
    i32 word_count;
    u32 *pairs; /* interners of the chain, word_count - 1 */
    i32 bits;   /* of the final key */
};
void key_place(struct lower *l, struct key_layout *layout);
/* find_only: values that were never numbered drop their row, or, with `valid`, clear that b8
 * register (NO_REG: always 1). */
u16 key_pack(struct builder *b, const struct key_layout *layout, const struct value *values,
             bool find_only, u16 *valid);
void key_unpack(struct builder *b, const struct key_layout *layout, u16 key, struct value *out);
struct key_field key_field_of(struct builder *b, struct value v, struct type type);
struct join_keys { /* both sides of a join, packed alike */
    struct key_layout layout;
    struct value *left, *right;
    struct range range; /* of the right side's key */
    bool raw;           /* one exact key: the key is the value */
    bool keep_left;     /* left rows that cannot match stay: `valid` is 0 for them */
    bool keep_right;    /* right rows that cannot match stay: right_null is 1 for them */
    u16 valid;          /* NO_REG: every row might match */
    u16 right_null;
};
/* Lowers the keys on both sides; rows with NULL keys are dropped unless they are to stay. */
void key_join_prepare(struct join_keys *k, struct builder *left, struct builder *right,
                      const struct rel *rel);
/* The i64 key. The left side's only after the right side's pipeline is finished: it looks up what
 * that one interned. */
u16 key_join_pack(struct builder *b, struct join_keys *k, bool is_left);
/* Where the columns of a key of several lie in it; none when it is not one packed word. */
struct packed_field *key_join_fields(struct lower *l, const struct join_keys *k, u32 *out_count);
u32 key_bits_of(struct range range); /* bits that hold hi - lo; 0 when equal */

/* prune.c */
void prune_note(struct builder *b, u16 cond);
/* The bounds, to the pipeline, or to the sink that makes the groups it reads. */
void prune_finish(struct builder *b, struct pipeline *pipe);

/* weave.c */
bool weave_cuts_after(const struct lower *l, const struct rel *rel);
struct builder *weave_cut(struct builder *b, const struct rel *rel);
/* Asks for a cut where the pipeline needs more than it may. */
void weave_check(struct lower *l, const struct builder *b, const struct pipeline *pipe);
bool weave_fits(const struct lower *l, const struct pipeline *pipe);
/* Why it ends where it does, for EXPLAIN. */
const char *weave_end(const struct builder *b);

/* scans.c: pipelines that read the same rows become one. */
void scans_share(struct lower *l);

/* parts.c */
struct parts_join {
    b8 sorted;       /* keys are looked up in their order */
    b8 built_sorted; /* the built side comes in the order of its key */
    i64 rows;   /* of the built side */
    i64 probes; /* rows that look a key up */
    struct range range;
    u32 payload_count; /* columns of the built side that are read where a row is found, */
    u32 carried_count; /* and of the other one, which go along */
    f64 found;         /* of the lookups, the share that finds a row */
};
/* Which sides of a join are split by key first. */
struct parts_sides {
    b8 built, probing;
};
struct parts_sides parts_for_join(const struct lower *l, const struct builder *left,
                                  const struct parts_join *join);
struct parts_groups {
    i64 rows, groups;
    struct range range;
    u32 input_count, word_count;
};
bool parts_for_groups(const struct lower *l, const struct builder *b,
                      const struct parts_groups *of);
/* STEP_SPLIT of a variable by its first column, a key within the range. */
struct step *parts_step(struct lower *l, u32 var, struct range range);

/* range.c */
struct range range_exact(i128 lo, i128 hi);
struct range range_bool(void);
struct range range_float(f64 abs_max, i32 lsb, bool may_special);
struct range range_of_f64(f64 value);
struct range range_none(void); /* of text */
struct range range_add(struct range a, struct range b);
struct range range_sub(struct range a, struct range b);
struct range range_mul(struct range a, struct range b);
struct range range_div(struct range a, struct range b);
struct range range_cut(struct range a, struct range to); /* intersection; `to` when empty */
bool range_fits_i128(struct range r);                    /* not saturated */
bool range_has(struct range r, i128 value);
enum kind kind_wider(enum kind a, enum kind b);
i128 range_abs(struct range r); /* largest magnitude */
i64 rows_mul(i64 a, i64 b);     /* saturating */

#endif
