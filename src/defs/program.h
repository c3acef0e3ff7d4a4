/* program.h: the program, the narrow waist between plans and devices.
 *
 * A program is a list of blocks of steps over relation variables; a step is a pipeline (source, opcodes,
 * sinks) or a primitive. It is built once by lower/, immutable afterwards, and shared by pointer. It
 * mentions no SQL and no device. Literals, sizes and addresses are not part of the code: opcodes name
 * literals by index, so that equal shapes give equal kernels. */
#ifndef WF_DEFS_PROGRAM_H
#define WF_DEFS_PROGRAM_H

#include "base/mem.h"
#include "defs/agg.def"
#include "defs/frame.h"
#include "defs/ops.h"

#define NO_REG 0xffffu
#define NO_VAR 0xffffffffu

struct op {
    u16 code; /* OP_… */
    u16 dst;  /* register, or NO_REG */
    u16 a, b, c;
    u16 rank;     /* order in which errors count: operator before weaving, then opcode */
    u32 imm;      /* column, literal, variable, table or sink, by opcode */
    i32 position; /* in the statement's text, for errors; -1 */
};

/* c of PROBE, MATCH, EACH and ANY, unless it is NO_REG. */
enum probe_flag { PROBE_OUTER = 1, PROBE_SINGLE = 2 };
static inline u16 probe_flags(const struct op *op) {
    return op->c == NO_REG ? 0 : op->c;
}
/* b of INTERN. The last two may number, instead of a text, one that comes before (after) it in the
 * order of texts and was met with the same key, which register c holds. */
enum intern_mode { INTERN_ADD, INTERN_FIND, INTERN_LEAST, INTERN_GREATEST };
bool intern_keyed(const struct op *op);

struct reg {
    u8 kind; /* enum kind */
    b8 is_const; /* set by CONST only: the same for all rows */
    struct range range;
    u32 dict; /* i32 codes: index into program.dicts + 1, else 0 */
};

/* SERIES: the numbers start, start + step, … up to stop, read from the one row of variable `ref`, whose columns
 * they are (i64; a NULL in it: no rows). Column 0 is the number. */
enum source_kind { SOURCE_TABLE, SOURCE_VAR, SOURCE_ONE, SOURCE_DICT, SOURCE_SERIES };
struct source {
    u8 kind;     /* enum source_kind */
    u32 ref;     /* TABLE: index into program.tables; VAR, SERIES: variable; DICT: index into program.dicts */
    i64 rows;    /* ONE: always 1; others: estimate at lowering */
    u32 col_count;
    u32 *cols;   /* LOAD's imm indexes this: the table's, variable's column number; DICT: 0 = the text */
};

#define X(A, name, identity, expr) WORD_##name,
enum word_op { WF_WORDS(X, ) WORD_COUNT };
#undef X

/* Pruning by zone maps and keys: rows can only pass if column `col` (an index into source.cols) lies in lo..hi, where
 * the bounds are literals or parameters of that kind and NO_LIT is open. Strict bounds are widened. Of text only
 * equality is noted. */
#define NO_LIT 0xffffffffu
struct prune {
    u32 col;
    u32 lo_lit;
    u32 hi_lit;
    u8 kind; /* enum kind of the literals */
};

/* MARK: `var` has one b8 column and as many rows as `rows_var`, 0 at first; 1 where register `key` (i64, -1 = no
 * row) named the row. */
struct sort_key {
    u32 col; /* of the sorted variable */
    b8 descending;
    b8 nulls_first;
};
enum sink_kind { SINK_ROWS, SINK_AGG, SINK_LUT, SINK_MARK };
struct sink_col {
    u16 reg;
    u16 null_reg; /* NO_REG: never NULL */
    struct type type;
    u32 dict; /* as in struct reg: the column holds codes of that dictionary */
};
struct sink {
    u8 kind; /* enum sink_kind */
    u32 var; /* ROWS, AGG: the variable filled; LUT: the table */
    i64 limit;        /* ROWS: stop after that many rows; -1 = all */
    b8 append;        /* ROWS: behind what the variable holds; else the variable starts anew */
    u32 rows_var;     /* MARK */
    u32 set_var;      /* ROWS: variable + 1, a SET: a row whose `key` it has is dropped, others add theirs; it starts
                       * anew where the rows do; 0 = none. With a word, MIN or MAX: the set knows the best
                       * value of every key, and a row is dropped unless its word is better */
    b8 set_small;     /* a bitmap of all keys there may be is no waste */
    /* ROWS: the variable is sorted next by top_keys (their col: a column of the sink) and only the first `top` rows of
     * that order matter; a device may drop the others. 0 keys: all rows matter. */
    u32 top_key_count;
    struct sort_key *top_keys;
    i64 top;
    u32 col_count;    /* ROWS: columns; LUT: 1 (value and NULL flag); the fault goes to fault_var */
    struct sink_col *cols;
    u16 key;          /* AGG: i64 key register, or NO_REG for one group; MARK: i64 row register; ROWS: of set_var */
    u8 key_bits;      /* AGG, set_var: keys lie in [0, 2^key_bits); 64 = any value */
    u32 word_count;   /* AGG: the state; set_var: 0 or 1 */
    u8 *words;        /* enum word_op */
    u16 *word_regs;   /* i64 inputs, already the identity where the input is NULL */
    i64 groups;       /* AGG: estimate, 0 = unknown */
    b8 in_runs;       /* AGG: keys are expected in ascending order; a device may rely on its own check only */
    /* AGG: the one pipeline that reads the variable filters out all groups whose column (0: the key, 1 + w: word w) is
     * not within these bounds; a device may drop them. */
    u32 keep_count;
    struct prune *keeps;
    u32 null_var;     /* LUT: b8 table of NULL flags, or NO_VAR */
    u32 fault_var;    /* LUT: b8 table of fault numbers (faults are kept, not raised), or NO_VAR */
};

/* EXPLAIN ANALYZE: the rows that reach opcode `op` are what the plan's operator `rel` gave. */
struct row_mark {
    u32 op;
    u32 rel;
};

/* A pipeline has at most so many AGG sinks, or so many ROWS sinks, and not both. Several of rows may add to one
 * variable, those behind the first by `append`: it has the rows of one after the other, or, of a device that
 * does not keep their order, in any; none has a limit, a set or an order. */
#define PIPE_AGGS 8
struct pipeline {
    struct source source;
    u32 op_count;
    struct op *ops;
    u32 reg_count;
    struct reg *regs;
    u32 sink_count;
    struct sink *sinks;
    u32 prune_count;
    struct prune *prunes;
    u32 mark_count;
    struct row_mark *marks; /* in the order of their opcodes */
    i64 filtered; /* estimate of the rows that filters leave before anything is looked up; 0 = there are none */
    const char *ends; /* why nothing more was woven into it, for EXPLAIN; NULL = nobody says */
};

enum var_kind { VAR_ROWS, VAR_AGG, VAR_INDEX, VAR_LUT, VAR_INTERN, VAR_SET };
struct var {
    u8 kind;         /* enum var_kind */
    b8 in_order;     /* ROWS: their order means something to whoever reads them */
    const char *name; /* for EXPLAIN */
    const char *relation; /* of a recursion, or rows that its rules share: what it is called; NULL = nothing */
    u32 col_count;   /* ROWS; AGG: 1 + word_count, all i64: key, words */
    struct type *types;
    u8 *kinds;       /* enum kind of every column */
    u32 *dicts;      /* as in struct reg, per column; NULL = none */
    u32 rows_var;    /* INDEX: the rows it points into */
    b8 set;          /* INDEX: which keys there are is all it knows */
    i64 asked;       /* INDEX: lookups that are expected; 0 = unknown */
    f64 found;       /* INDEX: for every row it has, the share of them that finds its key; 0 = unknown */
    u8 lut_kind;     /* LUT */
    i64 const_rows;  /* ROWS: rows it holds from the start, of literals: exec_open materialises them */
    u32 *const_lits; /* const_rows x col_count literals, row-major; NO_LIT = NULL */
    i64 rows;        /* ROWS: estimate at lowering; 0 = unknown */
    u32 last_use;    /* step number after which the runtime releases it */
};

/* A dictionary: a table's text column, or (expr) the distinct results of a function of another one. */
struct dict_ref {
    u32 table;  /* index into program.tables; NO_VAR when derived or interned */
    u32 col;
    u32 values; /* derived or interned: the VAR_INTERN that holds the strings */
};

/* One column that WINDOW appends. A WORD is a word of an aggregation state (agg.def), over the frame; TEXT is
 * string_agg. A step's SERIAL columns are computed row by row, and within a row in order, by whoever runs the
 * program (exec.serial). */
enum window_form { WINDOW_FUNC, WINDOW_WORD, WINDOW_TEXT, WINDOW_SERIAL };
struct window_fn {
    u8 form;                     /* enum window_form */
    u8 func;                     /* FUNC: enum window_func; WORD: enum word_op; SERIAL: enum serial_kind */
    u8 mode, from, to, exclude;  /* the frame: enum frame_mode, bound, bound, frame_exclude */
    u32 from_lit, to_lit;        /* ROWS, GROUPS with BEFORE or AFTER: i64 literal, the distance */
    u32 from_col, to_col, key;   /* RANGE with BEFORE or AFTER: columns of the bound and of what it bounds */
    u32 args[3];                 /* columns of src; NO_VAR. SERIAL: whether to, the value, whether it was used */
    i32 position;
    u32 sequence;                /* SERIAL: its OID */
    const char *name;            /* SERIAL: of the sequence; NULL = none */
};

/* One column that FETCH makes: `col` of src, or of the table. */
struct fetched_col {
    u32 col;
    b8 from_table;
};

/* Bits [shift, shift + bits) of a packed key. */
struct packed_field {
    u8 shift, bits;
};

enum step_kind {
    STEP_PIPELINE,
    STEP_BUILD,
    STEP_SORT,
    STEP_RANK,
    STEP_FETCH,
    STEP_RESULT,
    STEP_LIMIT,
    STEP_WINDOW,
    STEP_FOLD,
    STEP_SPLIT,
    STEP_CLIQUES
};
enum { CLIQUE_NODES = 16 }; /* at most, of STEP_CLIQUES */
struct step {
    u8 kind; /* enum step_kind */
    u32 defer; /* deferral + 1 it belongs to; 0 = its faults are raised at once */
    const char *label; /* operators it came from, for EXPLAIN and errors: "Filter, Project" */
    struct pipeline *pipeline;
    /* BUILD: dst = index over src, key column `col` (i64, within key_range); grow: src only gets more
     * rows until both are emptied, so a device may keep dst and add what is new. SORT: src in place; limit
     * (-1 = all) says that only so many first rows are wanted, col_count (0 = all) that only so many first
     * columns are. LIMIT: dst = rows [offset, offset + limit) of src; shares:
     * src only gets more rows as long as dst has these, and holds what they point to; mark_lit, a literal + 1
     * (0 = none), becomes how many src has.
     * RANK: dst = LUT (i32) code -> position in byte order, of dictionary `dict`; dst2 = its inverse.
     * WINDOW: src is sorted by `keys`, the first part_count of which partition it; dst = its columns and one
     * for every window_fn. FOLD: src is sorted by column `col` (i64) and then as the aggregate asks; dst = one row
     * for every value of it: that value, and the aggregate `fold` (enum agg) of columns args; distinct: of
     * neighbours that are equal the first counts.
     * CLIQUES: rows of src are edges, from column 0 to column 1, of nodes within key_range, which begins with 0; dst =
     * one row: how many lists of col_count nodes there are of which every pair, the earlier node first, is an
     * edge, once for every choice of rows.
     * SPLIT: src in place: a device may bring rows together whose keys, in column `col` (i64, within key_range), lie
     * near each other in the table they are looked up or kept in: the index dst2, or, NO_VAR, the one that is built
     * over src next, or, with `groups`, so many groups of `word_count` words.
     * FETCH: column `col` of src numbers rows of `table`; dst = for every row of src its columns `fetches`.
     * RESULT: src is the answer: rows [offset, offset + limit), first `col_count` columns. */
    u32 src, dst, dst2;
    u32 col;
    u32 dict;
    struct range key_range;
    u32 field_count; /* of a key of several columns, those that are numbers from 0 on: where they lie */
    struct packed_field *fields;
    u32 key_count;
    struct sort_key *keys;
    i64 groups;
    u32 word_count;
    u32 part_count;
    u32 window_count;
    struct window_fn *windows;
    u8 fold;
    b8 distinct;
    b8 grow;
    b8 shares;
    u32 mark_lit;
    u32 args[2];
    u32 table;
    struct fetched_col *fetches; /* as many as dst has columns */
    i32 position;
    i64 offset, limit; /* limit -1 = all; literals when offset_lit / limit_lit != NO_LIT */
    u32 offset_lit, limit_lit;
    u32 col_count;
};

/* Steps over the rows of a variable that are in order or come to be, which every device may run;
 * text that an aggregate puts together is the host's. */
static inline bool step_orders(const struct step *step) {
    return step->kind == STEP_SORT || step->kind == STEP_WINDOW || step->kind == STEP_LIMIT ||
           step->kind == STEP_SPLIT || step->kind == STEP_CLIQUES ||
           (step->kind == STEP_FOLD && step->fold != AGG_STRING_AGG);
}

/* Steps whose faults count only where their result is used. A fault of theirs is kept in the literal and the others
 * do not run; `rows_var`, which the last of them, a BUILD, makes an index of, is empty then. Who uses the rows
 * raises the literal first. */
struct deferral {
    u32 lit;      /* b8: the fault; set at run time */
    u32 rows_var;
    u32 parent;   /* the deferral + 1 that it is a part of; 0 = none */
    b8 single;    /* a second row is a fault, too */
    i32 position; /* of that fault */
};

/* Rows that the rounds of a loop append to a variable. The literal says how many of them a round has taken; it is 0,
 * and the variables `fresh` and their indexes, to which rounds add, are empty when the loop is entered. */
struct loop_var {
    u32 var;
    u32 lit;
    u32 fresh_count;
    u32 *fresh;
};

/* A block ends by falling through, jumping, or jumping back (recursion). */
struct block {
    u32 step_count;
    struct step *steps;
    u32 next;     /* block index; NO_VAR = end of program */
    u32 loop_count; /* go to `loop` while one of these has rows that no round has taken; 0 = never */
    struct loop_var *loop_vars;
    u32 loop;
    u32 enter_count; /* those of the loop that begins here */
    struct loop_var *enter_vars;
    u32 stop_var; /* variable + 1: no further round when it has stop_lit rows (a literal); 0 = never */
    u32 stop_lit;
};

/* What the program assumes of a table; checked against the snapshot at every execution. */
struct guard {
    u32 table, col;
    struct range range;
    b8 no_nulls;
    b8 all_dict; /* every tablet holds codes of the column's dictionary; range is then that of the codes:
                  * the dictionary's length - 1 must not exceed range.hi. Other text: no range. */
    b8 unique;    /* no duplicates */
    i64 max_rows; /* the table has no more rows; 0 = not assumed */
};

struct program_col {
    const char *name;
    struct type type;
};

/* Times that an execution knows. */
enum exec_time { TIME_TRANSACTION, TIME_STATEMENT, TIME_CLOCK, TIME_COUNT };

struct program {
    struct arena *arena;
    u64 id; /* unique in the process: devices keep what they prepared by it; 0 = they keep nothing */
    u32 table_count;
    u64 *tables; /* table ids, resolved against the snapshot at run time */
    u32 var_count;
    struct var *vars;
    u32 dict_count;
    struct dict_ref *dicts;
    u32 lit_count;
    union lit *lits;
    u8 *lit_kinds;
    u32 param_count;
    u32 *param_lits; /* literal filled from parameter i before running; NO_LIT when unused */
    u32 *param_null_lits; /* b8 literal that says whether parameter i is NULL; NO_LIT when unused */
    struct type *param_types;
    u32 time_lits[TIME_COUNT]; /* literal + 1 that takes such a time, in microseconds; 0 = none */
    u32 seed_lit; /* literal + 1 that takes a random seed; 0 = none */
    u32 block_count;
    struct block *blocks;
    u32 deferral_count;
    struct deferral *deferrals;
    u32 guard_count;
    struct guard *guards;
    u32 rel_count; /* operators of the plan, which marks number */
    u32 col_count; /* of the result */
    struct program_col *cols;
};

/* The interner that holds a dictionary's strings; NO_VAR: it is a table's. */
static inline u32 program_interner(const struct program *program, u32 dict) {
    const struct dict_ref *ref = &program->dicts[dict];
    return ref->table == NO_VAR ? ref->values : NO_VAR;
}

/* The step that builds an index, and its number; NULL: there is none. */
static inline const struct step *program_build(const struct program *program, u32 index, u32 *out_no) {
    u32 step_no = 0;
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++, step_no++) {
            const struct step *step = &program->blocks[b].steps[s];
            if (step->kind == STEP_BUILD && step->dst == index) {
                *out_no = step_no;
                return step;
            }
        }
    }
    return NULL;
}

/* operands.c: what opcodes use, by the roles of op.def. */
u32 op_field(const struct op *op, enum operand which);
bool op_writes(const struct op *op);    /* whether it sets register dst */
bool op_shapes(const struct op *op);    /* whether it drops or multiplies rows; an outer PROBE does not */
bool op_may_fault(const struct op *op); /* as it stands, with its flags */
/* The variable it names, or NO_VAR. */
u32 op_variable(const struct op *op);
/* Every register it reads; those of its sink, too. */
void op_reads(const struct op *op, const struct sink *sinks, void (*visit)(void *arg, u16 reg), void *arg);
/* The same for who puts others in their place. */
typedef void reg_fn(void *arg, u16 *reg);
void op_change_reads(struct op *op, struct sink *sinks, reg_fn *change, void *arg);

/* Structural check of every rule stated here; in test builds every program passes it before it runs. */
FALLIBLE program_verify(const struct program *program, struct error *err);
/* EXPLAIN (PROGRAM) and EXPLAIN (OPCODES). */
void program_print(struct text *out, const struct program *program, bool with_opcodes);
void pipeline_print(struct text *out, const struct program *program, const struct pipeline *pipe);

#endif
