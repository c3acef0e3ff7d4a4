/* cpu_int.h: insiders of the CPU device: prepared pipelines, frames, workers, sinks.
 *
 * A pipeline is prepared once per execution (registers get slots, opcodes get loops), then morsels
 * of its source run on the pool's workers. A worker has one frame per MATCH level; a frame is a
 * vector: n dense rows in registers, of which the selection names the active ones. */
#ifndef WF_CPU_CPU_INT_H
#define WF_CPU_CPU_INT_H

#include "cpu/cpu.h"
#include "cpu/lookup.h"
#include "cpu/vec.h"

enum { FROUND_WORDS_MAX = 640 }; /* sums over all of double's exponents need fewer */

/* An opcode made ready: operands resolved, loops chosen. */
struct cpu_op {
    const struct op *op;
    u16 dst, a, b, c;
    b8 blend;   /* inside WHEN, to a register that has a value already: inactive rows keep it */
    u8 width;   /* log2 of the result's bytes */
    vec_fn *fn; /* scalar opcodes: dense loop, or the one with constant b */
    vec_sel_fn *sel_fn;  /* when it must not touch inactive rows */
    const void *b_value; /* b as a constant, for fn */
    u32 jump;            /* WHEN: its END; EACH: its ANY */
    u8 compact_at; /* FILTER, PROBE, MATCH: compact below this share of active rows, in 16ths */
    u32 mark, mark_end; /* the pipeline's marks that stand before this opcode */
    u32 live_count; /* FILTER, PROBE, MATCH: registers still needed afterwards; EACH: until ANY */
    u16 *live;
};

struct cpu_pipe {
    const struct pipeline *pipe;
    const struct vec_table *vec;
    u32 op_count;
    struct cpu_op *ops;
    u8 *width;    /* of each register: log2 bytes */
    u16 *slot_of; /* of each register; NO_REG: constant or unused */
    u32 slot_count;
    u8 *slot_width;
    b8 *is_const;
    const union lit **const_value; /* of constant registers */
    b8 *multi;                     /* the register has several definitions */
    b8 *made;                      /* the register's strings lie in a worker's heap */
    b8 passing; /* texts of the source are gone after their part: kept ones are copied */
    u32 level_count;               /* MATCH and EACH opcodes + 1 */
    b8 has_each;
    u32 when_depth;
    u32 top_at;           /* the opcode before which top_filter runs; NO_VAR = it does not */
    struct cpu_op top_op; /* what compaction needs to know there */
    b8 keeps_faults;      /* a LUT sink stores them instead of raising */
};

struct when_level { /* what was active before WHEN or TRY */
    const u32 *sel;
    i64 m;
    b8 *try_flags;
};

/* One vector. sel == NULL: all n rows are active, m == n. Row i came from position first + pos[i]
 * of the tablet or chunk, or first + i while pos is NULL. */
struct frame {
    i64 n;
    i64 m;
    const u32 *sel;
    const u32 *pos;
    i64 first;
    b8 mask_valid; /* mask says which rows sel names */
    b8 *mask;
    u32 *sel_mem, *sel_alt;
    u32 *pos_mem, *pos_alt;
    void **data; /* of each register: its slot, a constant's vector, or column data itself */
    void **slots;
    b8 *lag; /* the register was not compacted yet: row i is element pos[i] */
    void *spare[VEC_WIDTHS];
    u32 **when_sel; /* per depth */
    struct when_level *when;
    b8 *try_flags; /* inside TRY: where faults are noted; NULL outside */
    u8 *kept;      /* kept faults, per row */
    u32 *from;     /* MATCH: row of the parent frame */
    u32 *run_lo, *run_hi;
    u32 *part_lo, *part_hi; /* the same in each part of a chain, part after part; when there is one */
    i64 part_room;          /* ... elements */
    i64 *any;  /* EACH: the match that came as far as ANY; -1 none, -2 more than one */
    b8 scoped; /* the rows of an EACH: never compacted, as `from` names their parents */
    u32 level;
    void *memory;
    i64 memory_bytes;
};

/* Bytes of strings made by opcodes; everything is dropped when the next vector starts. */
struct heap_block;
struct heap {
    struct memory *mem;
    struct heap_block *head; /* current one first */
    i64 used;
};
u8 *heap_alloc(struct heap *heap, i64 bytes); /* NULL when refused */
void heap_reset(struct heap *heap);
void heap_fini(struct heap *heap);

struct pipe_run;
struct top;
struct top_worker;

/* A block of rows in memory. */
struct row_room {
    u8 *data;
    i64 bytes;
    struct chunk chunk; /* of its rows */
};

struct worker {
    struct pipe_run *run;
    i32 number;
    struct error err;
    struct arena arena; /* bookkeeping of this worker, until the pipeline ends */
    struct frame *frames;
    void *const_memory;
    i64 const_bytes;
    void **const_data; /* vectors of constant registers */
    /* temporaries of one vector */
    void *temp_memory;
    i64 temp_bytes;
    u8 *fault;
    b8 *found;
    u64 *hash;
    i64 *keys;
    i64 *passed; /* keys that passed an index's filter */
    i64 *rows;
    u32 *group;
    struct heap heap;
    /* the source of the current morsel */
    i64 morsel;
    i64 part;      /* tablet or chunk number */
    i64 row_start; /* number of the row at position 0 */
    const struct tablet *tablet;
    const struct tablet *held; /* whose columns this worker holds, the first held_count of run->loaded */
    u32 held_count;
    const u64 *deleted; /* of the tablet: bit i is 1 where row i is; NULL = none */
    const struct chunk *chunk;
    struct chunk scanned; /* the part of a scan that is the source, as a chunk */
    i64 chunk_first; /* position 0 is this row of the chunk */
    i64 morsel_out;  /* rows this morsel gave to a limited sink */
    b8 enough;       /* ... which needs no more of them */
    b8 put_off;      /* ... has to wait until others let go of their columns */
    u32 ticks;       /* vectors and expansions so far, to look for a cancellation now and then */
    i64 bytes_read, bytes_written, rows_in, rows_out, rows_pruned;
    i64 probes;
    struct lookup_count *counts; /* of each opcode */
    i64 op_cost;
    struct top_worker *top;
    struct best **bests; /* of each opcode; NULL = of none yet */
    struct meeting **meetings; /* of each opcode; NULL = of none yet */
    u64 counted;         /* by COMMON so far */
    i64 *marks;          /* rows that came by, per mark */
    void **sinks;        /* this worker's state of every sink */
    const void **part_cols; /* columns of a vector that go to partitions */
    struct row_room block; /* of a partition, whose rows are the source */
};

struct meeting; /* meet.c */

/* INTERN where only the least or greatest text of each key decides; see best_text.c. */
FALLIBLE best_intern(struct worker *w, struct frame *fr, const struct cpu_op *op);
void best_close(struct worker *w);

/* The calls of a sink. begin: once. consume: a worker's vector. combine: once all input is
 * seen; says how many partitions finish. finish: one partition, in parallel. close: frees whatever
 * is left, always called. A sink that has everything in place once its input is consumed has only
 * the first two; the others are NULL. */
struct sink_run {
    const struct sink *sink;
    const struct sink_class *class;
    void *state;
    i64 partitions;
};
struct sink_class {
    FALLIBLE (*begin)(struct pipe_run *run, struct sink_run *sink);
    FALLIBLE (*consume)(struct worker *w, u32 sink_no, struct frame *fr);
    FALLIBLE (*combine)(struct pipe_run *run, u32 sink_no);
    FALLIBLE (*finish)(struct worker *w, u32 sink_no, i64 partition);
    void (*close)(struct pipe_run *run, u32 sink_no);
};
extern const struct sink_class sink_rows, sink_agg, sink_lut, sink_mark;

/* An index that memory holds a class at a time. */
struct classed {
    u32 var;
    u32 op; /* the first one that looks keys up */
};

struct row_part;  /* cut.h */
struct row_parts;

struct pipe_run {
    struct exec *x;
    struct cpu_pipe pipe;
    i64 vector_rows;
    i64 morsel_rows;
    i64 window_first; /* the rows of the source that run now: all of them, or a slice */
    i64 window_end;
    i64 part_count;    /* tablets, chunks, or 1 */
    i64 part_room;     /* parts that the arrays have room for */
    i64 *part_morsels; /* number of the first morsel of each part; part_count + 1 */
    i64 *part_starts;  /* number of the first row of each part; part_count + 1 */
    i64 *part_firsts;  /* first row of the window within each part */
    i64 *part_ends;    /* end of the window within each part */
    i64 morsel_count;
    /* Passes over the source: one for every class of every such index, the last one's turning fastest. */
    u32 classed_count;
    struct classed *classed;
    i64 pass_count;
    i64 morsel_base; /* morsels of the passes before */
    i64 series_start, series_step, series_rows; /* SOURCE_SERIES */
    /* Rows that come from a provider: a morsel is a part, and their number is not known before the
     * last one. A bad part counts where the rows before it do not suffice. */
    struct scan_provider *provider; /* NULL: they lie in tablets, chunks */
    u32 *loaded; /* SOURCE_TABLE: columns of the table that opcodes load */
    u32 loaded_count;
    b8 texts_pass; /* what keeps texts of these columns copies them */
    struct scan *scan;
    i64 scan_first;  /* number of the window's first part */
    b8 scan_ended;
    i32 position;   /* of the source in the statement's text, for its errors */
    i64 bad_morsel; /* I64_MAX = none; its error is `bad` */
    struct error bad;
    i32 worker_count;
    struct worker **workers; /* NULL until a worker meets its first morsel */
    u32 sink_count;
    struct sink_run *sinks;
    struct top *top; /* a single sink that wants the first rows of an order */
    /* morsels from stop_from on are not needed: a single limited sink has enough, or all failed */
    i64 limit;
    i64 *outs; /* rows that morsels outs_first to outs_end gave; -1 = not done yet */
    i64 outs_first, outs_end, outs_cap;
    i64 rows_first, rows_end; /* of the source: those that have to be looked at */
    VEC(i64) late;    /* morsels whose columns memory had no room for beside those that others hold */
    _Atomic i32 narrow; /* ... there are some: who holds none waits */
    b8 alone;         /* they run now, one by one */
    b8 sliced;                /* every window's rows replace those before */
    b8 discard;               /* rows sinks drop what they get */
    i64 made_bytes;           /* heaps of strings the rows sinks kept */
    i64 prefix, prefix_rows;
    _Atomic i32 groups_parted; /* there was no memory for a table of all groups */
    _Atomic i64 groups_shared; /* ... nor for those of so many partitions and shares of them */
    _Atomic i64 stop_from;
    _Atomic i32 failed;
    wf_status status;
    u32 finishing;
    /* A piece of a pipeline that was cut (cut.h). */
    const struct row_parts *from; /* source.ref is NO_VAR: rows that the piece before put aside, */
    const struct row_part *rows;  /* ... and those of the partition at hand */
    i64 rows_all;                /* ... of all of them */
    struct row_parts *into;      /* where the one sink puts rows; NULL = it is the last piece */
    u32 mark_first;              /* its first mark, as the whole numbers them */
    u32 opened; /* variable + 1 of which a class or partition is at hand, for the whole piece; 0 = none */
    b8 later, feeds; /* behind the first piece; it runs partition by partition */
    i64 morsel_first; /* number of the partition's first morsel */
    _Atomic u32 refused_var; /* interner + 1 that memory has no room for: the pipeline is to be cut */
};

/* Of its source. */
static inline i64 pipe_rows(const struct pipe_run *run) {
    return run->feeds ? run->rows_all : run->part_starts[run->part_count];
}
/* sink_agg.c: groups that were finished go, and others may come. */
void agg_turn(struct pipe_run *run, u32 sink_no);

static inline wf_status sink_refused(struct worker *w, i64 bytes) {
    return memory_refused(w->run->x->mem, &w->err, bytes);
}

/* prepare.c */
FALLIBLE pipe_prepare(struct exec *x, const struct pipeline *pipe, const struct vec_table *vec,
                      struct cpu_pipe *out);
u8 width_of_kind(u8 kind); /* log2 of its bytes */

/* frame.c */
FALLIBLE frame_open(struct worker *w, struct frame *fr, u32 level);
void frame_close(struct worker *w, struct frame *fr);
void frame_compact(struct worker *w, struct frame *fr, const struct cpu_op *op);
/* The selection ascends within the vector; for assertions. */
bool frame_is_sound(const struct worker *w, const struct frame *fr);
/* The register's own storage, made current, for writing. */
void *frame_dst(struct worker *w, struct frame *fr, u16 reg);
/* The register's n elements, compacted now if they were not yet. */
const void *frame_read(struct worker *w, struct frame *fr, u16 reg);
/* Row i of the op->b words that lie in registers from op->a on. */
void frame_words(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 i, i64 *out);

/* ops.c: runs opcodes from pc on over the frame's active rows. */
FALLIBLE ops_run(struct worker *w, struct frame *fr, u32 pc);
/* Reports faults of active rows; true when the vector is to be dropped. */
bool ops_fault(struct worker *w, struct frame *fr, const struct cpu_op *op);

/* load.c */
void load_column(struct worker *w, struct frame *fr, const struct cpu_op *op);
void load_nulls(struct worker *w, struct frame *fr, const struct cpu_op *op);
void load_variable(struct worker *w, struct frame *fr, const struct cpu_op *op);
void load_variable_nulls(struct worker *w, struct frame *fr, const struct cpu_op *op);
void load_lut(struct worker *w, struct frame *fr, const struct cpu_op *op);

/* probe.c */
/* True when the vector is to be dropped. */
FALLIBLE probe_run(struct worker *w, struct frame *fr, const struct cpu_op *op, bool *out_stop);
/* MATCH: the rest of the pipeline, once a match. EACH: what lies before its ANY. */
FALLIBLE match_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc);
/* EACH up to ANY. *out_stop: the vector is to be dropped. */
FALLIBLE each_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc,
                  bool *out_stop);
/* ANY, reached by the matches in `child`. */
void any_note(struct worker *w, struct frame *child, const struct cpu_op *op);
/* Rows repeated once a match, in the frame below: expand_flush runs the rest of the pipeline over
 * the child's n pairs of `from` and `match`, when it is full and at the end. */
struct expand {
    struct worker *w;
    struct frame *fr, *child;
    const struct cpu_op *op;
    const struct index *index; /* MATCH, EACH: the index, or a part of `chain` */
    const struct index *chain;
    u32 pc;
    i64 *match;
};
struct expand expand_open(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc);
FALLIBLE expand_flush(struct expand *e);
/* Narrows the selection to `kept` rows, which fr->sel_alt names. */
void frame_keep(struct frame *fr, i64 kept);
/* RUN */
FALLIBLE run_find(struct worker *w, struct frame *fr, const struct cpu_op *op);

/* meet.c: MEET: the rest of the pipeline, once for what the runs have in common. */
FALLIBLE meet_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 pc);
/* COMMON */
FALLIBLE meet_count(struct worker *w, struct frame *fr, const struct cpu_op *op);
/* What indexes that runs are of must tell before they meet. */
FALLIBLE meet_prepare(struct exec *x, u32 var);
void meet_close(struct worker *w);

/* sink_top.c: the pipeline with what sort keys do not need moved behind *out_at, where rows that
 * cannot be among the first of the order are dropped; begin returns NULL when no key can tell. */
const struct pipeline *top_reorder(struct exec *x, const struct pipeline *pipe, u32 *out_at);
void *top_begin(struct pipe_run *run, const struct sink *sink);
void top_filter(struct worker *w, struct frame *fr);
/* Whether zones of the source may be left out, and whether this one is, now. */
bool top_zones(const struct pipe_run *run);
bool top_excludes(const struct worker *w, i64 zone);

/* make.c: opcodes that only the host has. */
FALLIBLE host_run(struct worker *w, struct frame *fr, const struct cpu_op *op, u8 *out_any);

/* variance.c: true when the vector is to be dropped. */
bool variance_run(struct worker *w, struct frame *fr, const struct cpu_op *op);

/* class_texts.c: whether texts of the column are in memory until the next class of its rows takes their place. */
bool class_texts_pass(const struct exec *x, u32 rows_var, u32 col);

/* hold.c: columns that lie in the database file. */
bool texts_pass(const struct exec *x, const struct pipeline *pipe);
void hold_open(struct pipe_run *run);
FALLIBLE hold_begin(struct worker *w); /* before rows of w->tablet are read */
void hold_end(struct worker *w);
/* pipeline.c: whether zones exclude all its rows. */
bool tablet_pruned(const struct pipe_run *run, const struct tablet *tablet);

/* scan.c: a pipeline whose rows come from a provider. */
FALLIBLE scan_begin(struct pipe_run *run); /* opens it; nothing for other sources */
FALLIBLE scan_morsel(struct worker *w);    /* the next part, as a morsel */
void scan_window(struct pipe_run *run);    /* cuts the window */
/* The error of a bad part that counts. */
FALLIBLE scan_check(struct pipe_run *run);
void scan_end(struct pipe_run *run);

/* pipeline.c */
FALLIBLE run_vectors(struct worker *w, i64 first, i64 end);
FALLIBLE note_output(struct pipe_run *run, const struct worker *w, i64 morsel);

/* count tasks over the pool; inline when there is no use for it. */
void tasks_run(struct exec *x, i64 count, void (*task)(void *arg, i64 i, i32 worker), void *arg);

/* The parts of a pipeline's run, for pipelines that run slice by slice: open, then any number of
 * windows of the source [first, end) cut into morsels of `morsel_rows`, then close. A window
 * replaces what the sinks held. */
FALLIBLE pipe_open(struct device *dev, struct exec *x, const struct step *step,
                   struct pipe_run *run);
FALLIBLE pipe_window(struct pipe_run *run, u32 step_no, i64 first, i64 end, i64 limit);
/* Of a scan a window is parts instead of rows. */
void pipe_note_skipped(struct pipe_run *run,
                       u32 step_no); /* rows not looked at, for EXPLAIN ANALYZE */
void pipe_close(struct pipe_run *run);

/* A piece of a pipeline, partition by partition: begin, parts with run->rows set, end. turn: groups that
 * there are are complete. */
FALLIBLE pipe_begin(struct pipe_run *run);
FALLIBLE pipe_part(struct pipe_run *run);
FALLIBLE pipe_turn(struct pipe_run *run);
FALLIBLE pipe_end(struct pipe_run *run);
void pipe_metric(struct pipe_run *run, u32 step_no, bool fine);
/* Finds the classes that its passes open, once `opened` is set. */
void pipe_classes(struct pipe_run *run);

/* slices.c */
FALLIBLE cpu_slices_open(struct device *dev, struct exec *x, u32 step_no, const struct step *step,
                         struct slices **out);
FALLIBLE cpu_slices_next(struct slices *slices, i64 want_bytes, i64 limit, bool discard,
                         bool *out_end);
void cpu_slices_close(struct slices *slices);

/* index_build.c, sort.c */
FALLIBLE index_build(struct exec *x, const struct step *step);
FALLIBLE set_build(struct exec *x, const struct step *step); /* index_set.c */
FALLIBLE index_grow(struct exec *x, const struct step *step); /* index_grow.c */
/* index_classes.c: a class of an index and its rows, in the place of all; and all again. */
FALLIBLE class_open(struct exec *x, u32 var, u32 class);
void class_close(struct exec *x, u32 var);
FALLIBLE sort_run(struct exec *x, u32 step_no, const struct step *step);
FALLIBLE rank_run(struct exec *x, const struct step *step);
/* window.c, fold.c */
FALLIBLE window_run(struct exec *x, const struct step *step);
FALLIBLE fold_run(struct exec *x, const struct step *step);
FALLIBLE cliques_run(struct exec *x, const struct step *step); /* cliques.c */
/* Whether two rows of a column are equal, as grouping sees it: NULL equals NULL, NaN equals NaN. */
bool column_same(const struct column *col, i64 a, i64 b);

/* rates.c */
void cpu_rates(struct device *dev, struct exec *x, struct device_rates *out);

extern const struct prim_class cpu_prims;     /* prims.c */

struct cpu_device {
    struct device dev;
    const struct vec_table *vec;
    struct mutex lock; /* guards rates */
    struct device_rates rates;
    b8 rates_known; /* as far as they can be */
};

#define ROW_AT(fr, i) ((fr)->first + (i64)((fr)->pos ? (fr)->pos[i] : (u32)(i)))
#define ACTIVE(fr, j) ((fr)->sel ? (fr)->sel[j] : (u32)(j))

#endif
