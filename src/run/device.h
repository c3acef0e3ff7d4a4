/* device.h: what a device is to the runtime, and what an execution is to a device.
 *
 * The CPU is an ordinary device. A device runs whole steps; the runtime chooses the device, keeps
 * the variables, and turns faults into errors. */
#ifndef WF_RUN_DEVICE_H
#define WF_RUN_DEVICE_H

#include "base/stop.h"
#include "base/thread.h"
#include "defs/program.h"
#include "defs/settings.h"
#include "run/variable.h"
#include "store/store.h"

/* What a step did, for EXPLAIN ANALYZE and the footer. */
/* What the widest launch of a step or primitive takes of a multiprocessor; all 0 = not asked, or
 * none. */
struct kernel_use {
    i32 registers;    /* of a thread */
    i32 shared_bytes; /* of a block */
    i32 occupancy;    /* percent: threads at once, of those there is room for */
};

struct step_metric {
    u32 device_no;      /* of the list */
    const char *device; /* its name, and how it ran the step */
    const char *why;    /* why there */
    const char *how;    /* what is to be said of the way it took; NULL = nothing */
    b8 interim;         /* better code for it is being compiled: it will not take as long again */
    i64 ns;
    i64 device_ns; /* kernels only; 0 = not told apart */
    i64 rows_in;
    i64 rows_out;      /* handed on: rows, groups, entries of a table */
    i64 bytes_read;    /* from columns */
    i64 bytes_written; /* rows handed on */
    i64 bytes_moved;   /* across the bus */
    i64 bytes_packed;  /* of them packed, as they lie in the database file */
    i64 bytes_fetched; /* of those, to the host */
    i64 probes;        /* places looked up that lie anywhere in memory */
    i64 op_cost;       /* opcodes times rows, in units of op.def's cost */
    i64 launches;
    i64 waits; /* of the host for the device */
    i64 bytes_spilled; /* wanted on the device, but in memory of the host: it had no room */
    i64 temp_bytes;  /* of blocks that the step took of temporary space */
    i64 device_peak; /* bytes of the device's own memory in use, at most; 0 = it has none */
    struct kernel_use kernel; /* only where exec.profiles */
    i64 tablets_pruned_rows;
    i64 *marks; /* rows at each mark of the pipeline; -1 = not counted */
    const struct step_metric *shares; /* of a step that several devices ran, each a part of it */
    u32 share_count;
};

/* What a rule of a recursion did in one round. */
struct round_metric {
    u32 step;
    i64 round; /* from 1 */
    i64 rows_in;
    i64 derived; /* rows that reached the sink; -1 = not counted */
    i64 rows_new;
    i64 ns;
};

/* What a device does at most, as measured once: all its units together. 0 = not known. */
struct device_rates {
    f64 bytes_per_ns;
    f64 probes_per_ns;
    f64 cost_per_ns;                             /* of op.def's units */
    f64 bus_bytes_per_ns, bus_down_bytes_per_ns; /* to the device, and back */
    f64 launch_ns;                               /* of a kernel, waited for */
};

/* How far an execution is: see run/work.c. Costs are in units of their own. */
struct work {
    i64 answer_cost; /* of a row of the answer, to whoever takes it */
    i64 *later;      /* by step: what it and those behind it are expected to cost */
    _Atomic i64 before, step,
        after;                    /* of the steps that have ended, the one that runs, the others */
    _Atomic i64 rows, rows_total; /* that the running step has done, and has to do; 0 = unknown */
};

/* Rows of a source, by their numbers. */
struct row_span {
    i64 first, end;
};

/* One execution of a program. Everything in it lives until exec_close. */
struct exec {
    const struct program *program;
    struct arena *arena; /* of the step, while the CPU runs one; else as keep */
    struct arena *keep;  /* of the execution; NULL = arena */
    struct memory *mem;
    struct error *err;
    struct pool *pool;
    const struct settings *settings;
    struct table **tables; /* by program table number */
    struct table_version **versions;
    struct scan_provider **providers; /* by table: where its rows come from; NULL = its tablets.
                                       * NULL pointer = all have tablets */
    union lit *lits;                  /* parameters filled in */
    struct dict **dicts; /* by program dictionary number; filled as they become known */
    i32 *dict_lens;      /* entries this snapshot may see */
    struct variable *vars;
    struct step_metric *metrics; /* by step number, counted through all blocks */
    _Atomic i32 *cancel; /* not cancel_seen: stop with ERR_CANCELLED at the next morsel or launch */
    i32 cancel_seen;
    i64 deadline_ns;          /* 0 = none */
    i64 times_us[TIME_COUNT]; /* 0 = when the execution starts */
    struct work work;
    i64 rounds; /* of all recursions so far */
    i64 run_ns; /* in all of its steps so far */
    VEC(struct round_metric) round_metrics; /* where counts_rows */
    i32 *deferred_at;  /* by deferral: where in the text its fault was met */
    _Atomic u64 fault; /* the smallest fault met: see fault_key; ~0 = none */
    struct mutex lock; /* for whatever threads must share */
    struct pins pins;  /* columns that variables may point into; under the lock */
    /* The value of a call of a sequence, in the session that runs this; NULL = none may be called.
     */
    wf_status (*serial)(void *arg, const struct window_fn *call, i64 value, bool called, i64 *out,
                        struct error *err);
    void *serial_arg;
    /* Says something to the session, on the thread that runs the statement; NULL = nobody listens. */
    void (*tell)(void *arg, const char *text);
    void *tell_arg;
    i64 compiling_ns;            /* a device waited for its compiler */
    b8 compiling_told;           /* and said so */
    i64 fetch_waits;             /* of the host for rows that a device sent */
    b8 counts_rows;              /* EXPLAIN ANALYZE: devices count rows at marks */
    b8 profiles;                 /* kernel_use of steps is asked for, and why they ran where they did */
    struct launch_record *capture; /* launches are recorded in it; NULL = they are not */
    struct stream *stream;       /* the answer is computed as it is read; NULL = it is all there */
    struct tries *tries;         /* sorted rows that statements keep; NULL = this one keeps nothing */
    struct past *past;           /* what earlier runs of the program took; NULL = nobody kept it */
    struct expected *found;      /* by variable, as it is; NULL = nobody asked. Filled anew by who asks */
    struct placed *placed;       /* where its steps run, under auto; NULL = not decided */
    struct queue *queue;         /* steps that a device has not told of yet; NULL = never any */
    /* Shares of one scan (hybrid.c). A share is an execution of its own that runs one step, over
     * `span` of its table; faults and progress are those of the whole. */
    struct exec *whole;           /* NULL = this is no share */
    const struct row_span *span;  /* NULL = all rows; its ends are those of tablets or zones */
    const _Atomic i32 *halted;    /* 1: another share failed */
    struct shares *shares;        /* of the whole: kept from step to step; NULL = none yet */
};

/* The provider a pipeline's rows come from; NULL when they are tablets or a variable's. */
static inline struct scan_provider *exec_provider(const struct exec *x,
                                                  const struct pipeline *pipe) {
    bool table = pipe->source.kind == SOURCE_TABLE && x->providers;
    return table ? x->providers[pipe->source.ref] : NULL;
}

/* The rows of `all` that the execution reads. */
static inline struct row_span exec_span(const struct exec *x, i64 all) {
    return x->span ? *x->span : (struct row_span){0, all};
}

static inline struct stop exec_stop(const struct exec *x) {
    return (struct stop){x->cancel, x->cancel_seen, x->deadline_ns};
}

static inline struct arena *exec_arena(const struct exec *x) {
    return x->keep ? x->keep : x->arena;
}

/* rank : 16, source row : 40, fault : 8; the smallest wins, whoever meets it first. */
static inline u64 fault_key(u16 rank, i64 row, u8 fault) {
    return (u64)rank << 48 | ((u64)row & 0xffffffffffULL) << 8 | fault;
}
void exec_fault(struct exec *x, u64 key); /* atomic minimum */
/* ERR_CANCELLED when cancelled or past the deadline. */
FALLIBLE exec_check(struct exec *x);
/* Rows that a variable had when the program ran last and had made it; -1 = not known. */
i64 exec_expects(const struct exec *x, u32 var);
/* Whether the index was made by the host when the program ran last, of keys each of which was there once. */
bool exec_expects_unique(const struct exec *x, u32 var);
/* What a device remembers of a sort, or of few words of a build, until the program runs again: how many words, which it
 * alone understands. They may be out of date, and nobody says whether they were kept. */
enum { NOTE_WORDS = 48, NOTE_WORDS_FEW = 4 };
u32 exec_recall(const struct exec *x, u32 step_no, u64 words[NOTE_WORDS]);
void exec_remember(const struct exec *x, u32 step_no, const u64 *words, u32 count);

/* The column's bytes stay to the end of the execution, of the whole one where this is a share:
 * variables may point into them. aside: as of column_hold. Thread-safe. */
FALLIBLE exec_hold(struct exec *x, const struct tablet *tablet, u32 col, bool aside, struct error *err);

/* Whether no row of the segment's zone can lie within the bounds. */
bool exec_zone_excluded(const struct exec *x, const struct segment *seg, const struct prune *p,
                        i64 zone);
/* The rows of its table that a pipeline has to look at: all, or the one that has the values which
 * its conditions ask for in all columns of a key, or none. Thread-safe. */
void exec_row_range(const struct exec *x, const struct pipeline *pipe, i64 *out_first,
                    i64 *out_end);

/* OFFSET and LIMIT (-1 = none) of a step, literals and parameters looked up. */
FALLIBLE step_bounds(struct exec *x, const struct step *step, i64 *out_offset, i64 *out_limit);
/* The distance of a frame's end from its row, 0 where the bound has none; an error when it is NULL
 * or negative. */
FALLIBLE exec_frame_offset(const struct exec *x, u32 lit, u8 bound, i64 *out, struct error *err);
/* What an ordered aggregate meets in a group: a fault, or, 0, a share that is not between 0 and 1. */
FALLIBLE exec_fold_fault(struct exec *x, const struct step *step, u8 fault, f64 share);

/* Variables. A chunk's buffers are accounted to the statement. */
struct chunk *chunk_new(struct exec *x, const struct var *var, i64 rows,
                        bool with_nulls); /* NULL: refused */
/* A chunk without data, for slices of another one's buffers; the caller sets kinds, data and
 * buffers. */
/* Rows of a chunk were read and are not soon again (mem_pass). */
void chunk_pass(const struct chunk *chunk, i64 first, i64 rows);
struct chunk *chunk_view_new(struct exec *x, u32 col_count);
void chunk_release(struct chunk *chunk);
void variable_append(struct exec *x, u32 var, struct chunk *chunk); /* takes; thread-safe */
void variable_order(struct exec *x, u32 var);                       /* sorts chunks by `order` */
/* The first chunk with rows from `row` on, found from the end, and the row that it begins with. */
i64 variable_chunk(const struct variable *var, i64 row, i64 *out_first);
/* Makes the variable one chunk (needed for LOADV). */
FALLIBLE variable_flatten(struct exec *x, u32 var);
void variable_release(struct variable *var);
/* Drops rows, index and table, so that a step can fill the variable again. Interners are kept:
 * views of their strings may be anywhere. */
void variable_reset(struct variable *var);
/* What a device holds of it. */
void variable_drop_copy(struct variable *var);
/* Keeps a heap alive as long as the variable; takes the reference. Thread-safe. */
void variable_keep_heap(struct exec *x, u32 var, struct buffer *heap);
/* A heap of the variable that has room, or { NULL }; it is the caller's until he gives it back, with what he has used
 * of it. Thread-safe. */
struct heap_room variable_take_heap(struct exec *x, u32 var);
void variable_give_heap(struct exec *x, u32 var, struct heap_room room);
/* The same for all that rows of `from` may point to. */
void variable_keep_heaps(struct exec *x, u32 var, u32 from);
/* The variable's, which has none; in the execution's arena. */
struct index *index_new(struct exec *x, u32 var);
void index_release(struct memory *mem, struct index *index);
/* One more part of a chain, for rows from `base` on; what is no chain yet becomes one, itself being the
 * first part. Parts move: nobody keeps their addresses. */
FALLIBLE index_add_part(struct exec *x, struct index *index, i64 base, struct index **out);
/* Only keys, heads and rows, as kernels read them; see struct index. Of no chain. */
FALLIBLE index_plain(struct exec *x, struct index *index);
/* Whether the pipeline looks keys up in an index that memory holds a class at a time. */
bool exec_passes(const struct exec *x, const struct pipeline *pipe);
/* ... in a chain, which is the host's alone. */
bool exec_chains(const struct exec *x, const struct pipeline *pipe);
/* Rows of an index that kernels number. */
#ifdef WF_HARD
#define DEVICE_INDEX_ROWS_MOST (1LL << 16)
#else
#define DEVICE_INDEX_ROWS_MOST 0xfffffffeLL
#endif

/* Rounds of a loop: a block that jumps back to itself. */
struct rounds {
    const struct block *block;
    u32 first_step; /* the number of its first step */
    i64 stop_rows;  /* of stop_var: enough; -1 = any number */
    i64 count;      /* out: rounds that were run */
    b8 cannot;      /* out: this device never can */
    const struct step *fault; /* out: the one that met a fault; NULL = none */
};

struct slices;     /* a device's own */
struct prim_class; /* prim/prim.h */

/* What a variable holds when a step runs: as it is, or as it is expected before that. */
struct expected {
    i64 rows;
    i64 index_bytes; /* INDEX */
    i64 sent_bytes;  /* INDEX of the host, to a device with memory of its own */
};
/* A column of a table, to a device with memory of its own. */
struct column_place {
    i64 bytes;         /* of all rows */
    i64 missing_bytes; /* that are not there */
    f64 ns;            /* to bring them */
};

struct trie_chain; /* tries.h */
struct device {
    const char *name;  /* as the setting `device` says it */
    const char *title; /* as messages say it */
    u32 space; /* the memory it works in; 0 = the host's. Devices of one space share copies of variables,
                        * and a step may run on any of them: they are workers of one card. */
    i64 near_bytes; /* of its cache: what lies there is not far; 0 = steps see to that themselves */
    i64 room_bytes; /* of its memory; 0 = the host's */
    _Atomic i32 busy; /* steps that it runs, and that wait for it */
    void *self;
    const struct prim_class *prims; /* on plain arrays; NULL = none */
    /* NULL when the device can run the step, else why not ("UPPER makes strings, which only the CPU
     * does"); the text lives in x->arena. */
    const char *(*refuses)(struct device *dev, struct exec *x, const struct step *step);
    /* Estimated time of a step that finds all it reads in the device's memory; `vars` by variable. */
    f64 (*estimate_ns)(struct device *dev, struct exec *x, const struct step *step,
                       const struct expected *vars);
    /* Where a column is; NULL: it reads the host's. */
    void (*column)(struct device *dev, const struct table_version *version, u32 col,
                   struct column_place *out);
    /* A statement lost so much time because the device lacks a column. It may fetch it, without
     * keeping anybody waiting. NULL where there is no `column`. */
    void (*lacks)(struct device *dev, struct table_version *version, u32 col, f64 lost_ns);
    /* Runs it; fills the step's metric. Faults go to exec_fault; the runtime raises them. */
    FALLIBLE (*run)(struct device *dev, struct exec *x, u32 step_no, const struct step *step);
    /* As many rounds of a loop as it can run without the runtime between its steps; relations and
     * literals are then as after whole rounds. Where it cannot go on, the runtime runs the next round
     * step by step, which may read rows of the last one again. Fills metrics but for times. NULL where
     * a device runs only steps. */
    FALLIBLE (*rounds)(struct device *dev, struct exec *x, struct rounds *r);
    /* Whether it would, as far as the loop's steps tell; and what a step takes in such a round, where nobody waits for
     * it. `first_step` is the number of the block's first one. NULL where there is no `rounds`. */
    bool (*queues)(struct device *dev, struct exec *x, const struct block *block, u32 first_step);
    f64 (*round_ns)(struct device *dev, struct exec *x, const struct step *step, const struct expected *vars);
    /* Queues a step without waiting for what it gives: until `settle` the variables that it makes have as
     * many rows as exec_expects says, and nothing that it reads may change or go. `first`: nothing is
     * queued yet; from then to `settle` the device is this execution's. *out_done = false: the step has to
     * be run, and nothing was changed. NULL where a device runs only steps. */
    FALLIBLE (*queue)(struct device *dev, struct exec *x, u32 step_no, const struct step *step,
                      bool first, bool *out_done);
    /* The host is about to read the rows of a variable that is queued, or on the device: where they are few,
     * they come with what `settle` waits for. */
    FALLIBLE (*want)(struct device *dev, struct exec *x, u32 var);
    /* Waits for all that was queued, and fills metrics but for times. *out_good = false: some step was not
     * as expected, and all of them have to be run. keep = false: they are dropped. */
    FALLIBLE (*settle)(struct device *dev, struct exec *x, bool keep, bool *out_good);
    /* A pipeline whose only sink is rows, a slice of its source at a time; NULL where the device
     * runs only whole steps. next replaces the sink variable's rows by those of the next slice:
     * about want_bytes of them, at most `limit` (-1 = all); with `discard` rows are computed and
     * dropped. Between calls no worker is held. Chunks taken before a call live on by their buffers
     * only. */
    FALLIBLE(*slices_open)
    (struct device *dev, struct exec *x, u32 step_no, const struct step *step, struct slices **out);
    FALLIBLE(*slices_next)
    (struct slices *slices, i64 want_bytes, i64 limit, bool discard, bool *out_end);
    void (*slices_close)(struct slices *slices);
    /* Whether the device has what a chain of steps makes from an earlier statement: then the chain's variables have
     * it. Of a graph: for the STEP_CLIQUES behind it, run by this device; where that has no room it fails with
     * ERR_DEVICE_MEMORY, and the chain is to be run after all. NULL where nothing is kept. */
    bool (*take_kept)(struct device *dev, struct exec *x, const struct trie_chain *chain);
    /* Keeps what a chain made that it ran whole, if there is room. */
    void (*keep)(struct device *dev, struct exec *x, const struct trie_chain *chain);
    /* Brings a variable's rows to the host, or an index, table or interner it needs to this device.
     */
    FALLIBLE (*fetch)(struct device *dev, struct exec *x, u32 var);
    /* Brings `count` strings of an interner, by their numbers, in place of all: they are numbered anew in
     * the host's dictionary, which is empty. *out_done = false: it does not, all are to be brought. NULL
     * where there is no `fetch`. */
    FALLIBLE (*fetch_texts)(struct device *dev, struct exec *x, u32 var, const i32 *codes, i64 count,
                            bool *out_done);
    /* Measured on first use, in a few milliseconds; NULL when the device does not know. */
    void (*rates)(struct device *dev, struct exec *x, struct device_rates *out);
    /* The process is about to end: nothing is begun, and what is half written is finished. Nothing is freed. */
    void (*end)(struct device *dev);
    void (*close)(struct device *dev);
};

/* The running step has dealt with so many more rows. */
static inline void work_rows(struct exec *x, i64 rows) {
    struct exec *whole = x->whole ? x->whole : x;
    atomic_fetch_add_explicit(&whole->work.rows, rows, memory_order_relaxed);
}
/* It deals with so many in all, each as often as it reads it. */
static inline void work_expect(struct exec *x, i64 rows) {
    atomic_store_explicit(&x->work.rows_total, rows, memory_order_relaxed);
}
f64 work_share(const struct work *work); /* in [0, 1]; -1 = not known */

#endif
