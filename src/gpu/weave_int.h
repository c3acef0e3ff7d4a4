/* weave_int.h: what the files of the weaver share: weave_text.c writes a kernel's frame and its
 * opcodes, weave_probe.c how keys are looked up, weave_list.c how few rows or several matches go on,
 * weave_meet.c how sorted runs meet, weave_seek.c how bytes are looked for in text, weave_sink.c what
 * becomes of the rows, weave_runs.c how rows in the order of their key become groups. */
#ifndef WF_GPU_WEAVE_INT_H
#define WF_GPU_WEAVE_INT_H

#include "gpu/gpu_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WEAVE_TESTS = 8 };
struct weaver {
    struct weave *w;
    const struct gpu_plan *plan;
    const struct pipeline *pipe;
    struct text *out;
    u32 depth; /* indentation */
    u32 when_count, when_depth;
    u32 *whens;    /* those that are open */
    u16 *tries;    /* registers that faults were marked in before each */
    u16 try_reg;   /* and are now; NO_REG: they are raised */
    u32 match_count;
    u32 matches[8];     /* opcodes */
    b8 filtered;        /* rows may be inactive before the tile's end */
    b8 *seen;           /* registers that have a value */
    u32 *word_cols;     /* by register: the column of a word that FROUND or VARIANCE takes */
    b8 *loaded;         /* columns whose pointers are declared */
    b8 *loaded_outside; /* and were so before EACH */
    u32 each;           /* the open one */
    i32 rows;           /* a thread has */
    u32 agg;            /* weave_sink.c: which aggregation is written about */
    /* weave_list.c */
    u32 ask_at;             /* the first opcode that looks into an index; op_count = none */
    u32 tests[WEAVE_TESTS]; /* lookups whose bitmaps are asked before it, in order */
    u32 test_count;
    b8 few;        /* rows are left then */
    b8 near;       /* the first of them that has bits for shared memory, near_at, asks those first */
    u32 near_at;
    b8 rare;       /* very few */
    b8 spread_far; /* what rows with several matches carry lies behind other dynamic shared memory, from */
    i64 spread_at; /* there on; where the next array goes */
    b8 list;       /* from ask_at on rows come from a list; */
    b8 listed;     /* now they do, one a thread */
    b8 heavy_done; /* the first lookup with several matches shares them with other blocks */
    i32 tile_rows; /* rows that a thread had before */
    b8 *again;     /* opcodes that are repeated for rows of the list */
    b8 *late;      /* those of them that are needed for nothing before */
    b8 *early;     /* opcodes that were written before their turn */
    b8 *tested;    /* lookups whose bitmaps were asked */
    /* weave_seek.c */
    b8 *seeks;     /* opcodes that look for bytes in a column's text */
    b8 *text_read; /* registers that other opcodes read, too */
    b8 any_seeks;
};

/* Writes a line; @ stands for the number of the aggregation. */
__attribute__((format(printf, 2, 3))) static inline void line(struct weaver *v, const char *format,
                                                              ...) {
    char buf[700];
    va_list args;
    va_start(args, format);
    vsnprintf(buf, sizeof buf, format, args);
    va_end(args);
    for (char *at = strchr(buf, '@'); at; at = strchr(at, '@')) {
        *at = (char)('0' + v->agg);
    }
    text_print(v->out, "%*s%s\n", (int)(4 * v->depth), "", buf);
}

/* A register as an operand of row i. */
static inline const char *operand(const struct weaver *v, u16 reg, char buf[24]) {
    snprintf(buf, 24, v->pipe->regs[reg].is_const ? "r%u" : "r%u[i]", reg);
    return buf;
}

/* Row i faults. */
static inline void weave_fault(struct weaver *v, const struct op *op, const char *fault) {
    if (v->try_reg != NO_REG) {
        line(v, "r%u[i] = 1;", v->try_reg);
        return;
    }
    line(v, "const u64 word = fault_word(%u, number + ROW(i), %s);", op->rank, fault);
    line(v, "fault = word < fault ? word : fault;");
}

#define EACH "UNROLL for (u32 i = 0; i < R; i++) "
#define EACH_GROUP "UNROLL for (u32 g = 0; g < R / 4; g++) "

/* weave_text.c */
void weave_op(struct weaver *v, u32 at);
/* Tiles of the launch. */
const char *weave_tile_first(const struct weaver *v);
const char *weave_tile_end(const struct weaver *v);

/* weave_list.c */
/* Whether a list's rows wait for those of other tiles: groups as runs take those of one, in order. */
static inline bool weave_waits(const struct weaver *v) {
    return v->list && !v->w->run_rows;
}
/* Whether all rows of a thread are neighbours. */
static inline bool weave_along(const struct weaver *v) {
    return v->w->run_rows && !v->list;
}
void weave_list_plan(struct weaver *v);  /* first of all */
void weave_list_setup(struct weaver *v); /* before the tiles */
void weave_list_tiles(struct weaver *v); /* the head of the loop over tiles */
void weave_ask(struct weaver *v);        /* before opcode ask_at */
void weave_list_end(struct weaver *v);
bool weave_spreads(const struct weaver *v,
                   u32 at); /* whether this MATCH takes the matches of 256 rows together */
void weave_spread(struct weaver *v, u32 at);
void weave_spread_end(struct weaver *v);

/* weave_meet.c */
/* An array in shared memory for what the rows of a block carry, one element each. */
void weave_carry(struct weaver *v, const char *type, i64 width, const char *name);
i64 weave_meet_bytes(const struct weaver *v, u32 at); /* of shared memory, of a MEET that spreads */
void weave_meet_setup(struct weaver *v, u32 at);      /* before the tiles */
bool weave_meets(const struct weaver *v); /* whether any runs do */
void weave_run(struct weaver *v, const struct op *op, u16 number);
void weave_meet(struct weaver *v, u32 at);
void weave_meet_next(struct weaver *v, u32 at); /* where it goes round */

/* weave_seek.c */
void weave_seek_plan(struct weaver *v);  /* after weave_list_plan */
void weave_seek_setup(struct weaver *v); /* before the tiles */
void weave_seek(struct weaver *v, u32 at);
bool weave_seek_hides(const struct weaver *v,
                      u16 reg); /* whether this register of text is not written */

/* weave_probe.c */
void weave_probe(struct weaver *v, u32 at, const struct op *op, u16 number);
void weave_match(struct weaver *v, u32 at, const struct op *op, u16 number);
void weave_next_match(struct weaver *v); /* where the last MATCH that is open goes round */
void weave_each(struct weaver *v, u32 at, const struct op *op, u16 number);
void weave_any(struct weaver *v, const struct op *op);

/* weave_runs.c */
void weave_runs_functions(struct weaver *v);
void weave_runs_setup(struct weaver *v);
void weave_runs_list_begin(struct weaver *v); /* before the rows of a list, */
void weave_runs_list_end(struct weaver *v);   /* and behind them */
void weave_emit_runs(struct weaver *v);
/* The register of 32 bits that a register of 64 is made from, unchanged, or itself; NO_REG: none. */
u16 weave_narrow(const struct weaver *v, u16 reg);
i32 weave_runs_words(const struct weaver *v); /* that a row is kept as until runs have ended */

/* weave_sink.c */
extern const char *const weave_words[];
i64 weave_stage_bytes(const struct gpu_plan *plan); /* of the widest column of rows */
void weave_sink_functions(struct weaver *v);        /* before the kernel */
void weave_sink_setup(struct weaver *v);            /* before the tiles */
void weave_emit(struct weaver *v, u32 sink);        /* the active rows of a tile */
void weave_finish(struct weaver *v);                /* after the tiles */

#endif
