/* gpu_job.h: one pipeline being run: its source cut into batches, its sink, its argument block.
 *
 * A part is a tablet, or a whole variable. Parts of equal layout make a signature; a batch is a run
 * of parts of one signature and is one launch. Everything a kernel reaches through pointers, apart
 * from column data, lies in an argument block of two parts, assembled in pinned memory: what the
 * source, the plan and the literals that prune decide (`fixed`), and what every run has anew. The
 * fixed part of a scan of cached columns stays on the card and is found there by the next run. */
#ifndef WF_GPU_GPU_JOB_H
#define WF_GPU_GPU_JOB_H

#include "gpu/gpu_int.h"

#define LAUNCH_ROWS (1LL << 28) /* a launch ends well within 100 ms */
#define LAUNCH_ROWS_SIMT (1LL << 16)

struct part {
    const struct tablet *tablet; /* NULL: the variable, or the single row */
    i64 rows;
    i64 row_start;
    u32 sig;
    u32 number;          /* of a variable in parts */
    u8 *keep;            /* per zone: 0 = no row can pass; NULL = keep all */
    struct buffer *gone; /* bits of deleted rows; NULL = none */
    u64 gone_addr;       /* on the card */
};

struct batch {
    i64 first, count; /* parts */
    i64 rows, max_rows;
    u32 sig;
    i64 segs_at, rows_at, starts_at, zones_at; /* in the fixed part; zones -1 = none */
    i64 gone_at;                               /* addresses of bits of deleted rows; -1 = none */
    i64 bounds_at;                             /* numbers of first tiles; -1 = none */
    i64 texts_at;                              /* device to host; in the other part */
    u32 text_count;
    struct ktext *part_texts; /* those of them that lie in its segments */
    u32 part_text_count;
    u32 zone_count;
};

struct sig {
    struct weave_col *cols;
    struct text text; /* woven; empty until it is asked for */
    struct weave weave;
    void *function; /* NULL until compiled; never a quick one */
    i64 ops_at;     /* for the virtual machine, in the fixed part */
};

struct job_text { /* a text that the step's views may point to */
    struct gpu_str text;
    u64 addr; /* on the card; 0: no opcode looks at its bytes */
};

struct dict_views { /* of a source column whose codes are loaded as text */
    struct gpu_block *block;
    i64 len;
};

struct fixed_part { /* offsets in it, besides those of signatures and batches */
    i64 bytes;
    i64 words_at[PIPE_AGGS], word_regs_at[PIPE_AGGS], limbs_at;
};

/* A table as a step reads it: one version, pruned by some literals. Kept when its columns are in
 * the cache on the card. */
struct gpu_scan {
    struct gpu_step *step; /* whose list it is in */
    struct gpu_scan *next;
    struct gpu_scan *before, *after; /* among the card's */
    struct arena arena;
    struct sv key; /* version, literals, settings */
    i32 users;
    u64 use_no;                    /* the step that used it last, */
    u64 used_by[GPU_WORKERS_MOST]; /* and each worker's last */
    u64 checked_no;                /* drop_no of the cache when its segments were all there */
    VEC(struct cached_at) segs;
    u32 col_count;
    i64 part_count;
    struct part *parts;
    u32 sig_count;
    struct sig *sigs;
    i64 batch_count;
    struct batch *batches;
    i64 source_rows, source_bytes, pruned_rows;
    struct fixed_part layout;
    struct gpu_block *fixed;
    struct gpu_block *gone;        /* bits of deleted rows, of all parts */
    struct gpu_str_list texts;     /* of dictionaries */
    struct dict_views *dict_views; /* per source column; NULL = none */
};

/* Groups that a full table gave away: columns of `stride` rows, by parts of the keys. */
#define ASIDE_PARTS 64u
struct aside {
    struct aside *before;
    struct gpu_block *rows; /* in memory of the host */
    i64 stride;
    u64 starts[ASIDE_PARTS + 1];
};

struct job_rows { /* of a variable that rows go to */
    struct gpu_var *out;
    i64 capacity; /* 0 = not known yet */
};

struct job_agg { /* one of the step's aggregations */
    const struct sink *sink;
    struct agg_shape shape;
    struct gpu_block *state;
    struct gpu_var *out;
    i64 groups_wanted;
    i64 early_bytes, early_at; /* of the columns that small tables are read out to at once */
    i64 keeps_at;              /* in the argument block */
    struct aside *asides;      /* the last one */
    u32 aside_count, aside_parts;
    i64 part_rows;  /* groups that are on the host, a part of the keys after the other, */
    i64 part_count; /* and how many parts that was */
    b8 stuck;       /* there is no room for a larger table */
};

/* A pipeline of a loop: all that its launches need. */
struct job_ready {
    void *function;
    struct gpu_grid grid;
    struct kargs args;
};

/* An index in parts: what there is of the part that is looked up now. */
struct job_parts {
    const struct step *build; /* that makes it; NULL: all indexes are whole */
    u32 count;
    u32 number;            /* among the plan's indexes */
    struct gpu_var *table;
    /* Kernels read neighbours together, so a part begins with rows of the one before: bits that say so. */
    struct gpu_block *before;
    /* Data and NULLs by the plan's columns: of the rows it leads to, where they lie elsewhere. */
    struct gpu_block **cols;
};

struct job {
    struct gpu *g;
    struct exec *x;
    const struct step *step;
    const struct pipeline *pipe;
    struct step_metric *metric;
    struct gpu_step *kept;
    struct gpu_scan *scan; /* NULL: the source is no table */
    b8 ranged;             /* of a loop: which rows of `range_var` it reads, the device knows */
    u32 range_var;
    i64 range_rows;        /* of the largest variable that the loop reads */
    b8 found;              /* the scan is from an earlier run */
    b8 keeps;              /* the scan's fixed part stays on the card */
    struct arena *arena;   /* of parts, signatures and batches: the scan's or the execution's */
    struct gpu_plan plan;
    u32 col_count;
    i64 part_count;
    struct part *parts;
    u32 sig_count;
    struct sig *sigs;
    i64 batch_count;
    struct batch *batches;
    i64 source_rows;          /* of all parts */
    i64 rows_first, rows_end; /* of a table: those that have to be looked at */
    i64 pruned_rows;
    i64 source_bytes;
    i32 place;             /* PLACE_CACHED, … */
    i32 slot_count;        /* batches in flight */
    i64 slot_bytes;        /* device memory per slot */
    struct kcol *var_cols; /* SOURCE_VAR: its columns on the card */
    i64 series_start, series_step;
    struct kindex *indexes;
    struct job_parts by_part;
    /* sink */
    b8 to_host; /* rows of every batch go to a chunk of their own */
    b8 sends;   /* the rows do not fit the card: to_host whatever the placement */
    i64 wanted; /* to_host: rows that the largest batch gave, where a slot's room was too small */
    i64 wanted_batch;
    i64 batch_rows; /* of batches that had to be cut again; 0 = as placement has it */
    struct gpu_var *out;
    i64 capacity;
    struct job_rows more[PIPE_AGGS]; /* of several variables that rows go to; those of the first are above */
    u64 *out_at, *out_nulls_at; /* to_host: offsets of columns in a slot's rows */
    struct fetch_col *fetch;
    struct job_agg aggs[PIPE_AGGS];
    i64 early_bytes; /* of all columns that small tables are read out to at once; 0 = not so */
    i64 early_at;    /* behind the reports on the host */
    i64 held_at;     /* behind those: what interners hold */
    struct gpu_block *bounds; /* of tiles, where rows are expected in order, and of blocks */
    u64 tile_total;           /* tiles of all parts */
    u64 *tile_starts;         /* by part: the number of its first tile, in the order of rows */
    b8 out_of_order;          /* rows do not come in the order of their key */
    b8 vm_only;               /* woven code is for another form of the table */
    b8 elsewhere;             /* it met a text that only the host reads */
    u32 passes, pass; /* of a step whose groups have no room at once, and which it is */
    u64 pass_slots;   /* of the table of each */
    /* argument block */
    u8 *blob;
    i64 blob_bytes;
    struct fixed_part layout;
    u8 *fixed; /* behind the blob while it is filled */
    u64 fixed_addr;
    b8 fixed_done; /* it lies in the scan's block */
    i64 lits_at, lit_bytes_at, luts_at, cols_at, indexes_at, outs_at, sinks_at, reports_at;
    i64 counts_at; /* behind the reports */
    i64 interns_at;
    struct kintern *interns;
    b8 interns_full; /* run again with larger ones */
    i64 texts_in_at;
    u32 text_in_count;
    /* text */
    VEC(struct job_text) texts;    /* of variables, dictionaries and literals */
    struct gpu_str_list own_texts; /* those that only this run holds */
    str *lit_views;                /* per plan literal */
    i32 lit_text;                  /* number + 1 among the texts of what they point to; 0 = none */
    str *pattern_views;            /* per plan pattern: its table */
    b8 *text_cols;                 /* source columns loaded as text; NULL = none */
    struct gpu_block *made;        /* strings that the step makes: HEAP_HEAD and the bytes, */
    i64 made_bytes;                /* which there is room for */
    struct gpu_far *far;      /* and where they will be on the host; NULL: they are not handed on */
    i64 made_text;            /* which of the texts they are; 0 = none, else its number + 1 */
    struct gpu_block *bests;  /* the best texts so far, for INTERN that has a key */
    u32 mark_count;
    struct gpu_var **marks; /* of mark sinks, in their order */
    struct gpu_var *old;    /* append: what the variable held */
    i64 old_rows;
    i64 first_rows;            /* that it held before the step, whatever earlier tries added */
    b8 launched;               /* a kernel was, in this try */
    b8 in_place;               /* it has room for what comes: `out` is `old` */
    struct gpu_var *set;       /* keys of the rows, heads: a bitmap */
    struct gpu_block *set_was; /* append: the set before */
    i64 event_count;
    i64 event_base; /* of events, those before it */
    /* gpu_queue.c */
    b8 queued;    /* nobody waits for it */
    u64 count_at; /* of gpu_var: of the source */
    /* gpu_room.c */
    b8 watches;     /* batches go by while room is made for what they give */
    b8 gives_up;    /* the scan has to begin again */
    i64 each_gives; /* matches of a row, at most */
    u32 heavy_least; /* so many are shared by blocks; 0: no row has that many */
    i64 heavy_at;    /* in the argument block, for every slot: rows that have */
    u64 seen[PIPE_AGGS * REPORT_WORDS]; /* reports, as of a batch that is done */
    u64 *counts; /* rows at the plan's places; NULL = not counted */
    b8 used_vm, used_woven, used_quick;
};

/* The variable that the rows come from, where they do. */
static inline u32 gpu_job_source_var(const struct job *j) {
    return j->ranged ? j->range_var : j->pipe->source.ref;
}

/* Variables that it makes: a report each. */
static inline u32 gpu_job_made_count(const struct job *j) {
    return j->plan.agg_count ? j->plan.agg_count : j->plan.into_count ? j->plan.into_count : 1u;
}

/* The first sink of one of them. */
static inline const struct sink *gpu_job_maker(const struct job *j, u32 number) {
    const struct gpu_plan *plan = &j->plan;
    u32 k = 0;
    while (k < plan->rows_count && plan->rows_into[k] != number) {
        k++;
    }
    return plan->agg_count ? plan->aggs[number] : plan->rows_count ? plan->rows[k] : plan->sink;
}

/* Room for the rows of one of them. */
static inline i64 gpu_job_room(const struct job *j, u32 number) {
    return number ? j->more[number].capacity : j->capacity;
}

/* Bytes that crossed the bus to the host. */
static inline void gpu_job_fetched(struct job *j, i64 bytes) {
    j->metric->bytes_moved += bytes;
    j->metric->bytes_fetched += bytes;
}

/* gpu_kept.c */
FALLIBLE gpu_scan_new(struct gpu_card *card, struct sv key, struct gpu_scan **out,
                      struct error *err);
void gpu_scan_free(struct gpu_card *card, struct gpu_scan *scan);
/* The one of this key, its segments still in place until it is given back; NULL: there is none. */
struct gpu_scan *gpu_scan_take(struct gpu *g, struct gpu_step *step, struct sv key);
void gpu_scan_give(struct gpu_card *card, struct gpu_scan *scan);
/* A new one, once all that the step queued is done. Takes it. */
void gpu_scan_keep(struct gpu *g, struct gpu_step *step, struct gpu_scan *scan);

/* gpu_source.c */
/* The bits of deleted rows in all parts; NULL: there are none. */
static inline struct gpu_block *gpu_job_gone_bits(const struct job *j) {
    return j->scan ? j->scan->gone : j->by_part.before;
}
FALLIBLE gpu_job_scan(struct job *j); /* a scan of a table: found, or a new one */
void gpu_job_scan_end(struct job *j, wf_status status);
FALLIBLE gpu_job_source(struct job *j); /* parts and signatures */
FALLIBLE gpu_job_place(struct job *j);  /* placement, batches, slots */
/* Before anything is loaded: whether there is still room for the columns beside what the sink took. */
FALLIBLE gpu_job_fits(struct job *j);
i64 gpu_job_slot_share(const struct job *j); /* of the card's memory, in bytes */
/* Batches like this one will have at most a times-th of its rows: false when it is a single part.
 */
bool gpu_job_cut_smaller(struct job *j, i64 batch, i64 times);
FALLIBLE gpu_job_gone(struct job *j); /* deleted rows, to the card */
void gpu_job_marks(struct job *j);    /* rows at marks, where they are known */
/* Addresses of part p's column; loads it into the cache when that is the placement. */
FALLIBLE gpu_job_segment(struct job *j, const struct batch *b, i64 p, u32 col, i64 *slot_at,
                         i32 slot, struct kseg *out);
FALLIBLE gpu_job_stream(struct job *j, const struct batch *b,
                        i32 slot); /* copies a batch to its slot */
/* Makes one block per slot, of `bytes` at least; fewer slots where memory is short, but one. */
FALLIBLE gpu_job_slots(struct job *j, struct gpu_block **slots, i64 bytes);

/* gpu_parts.c */
/* Whether a number of the plan's indexes is in parts, as the rows are that look there. */
bool gpu_parts_open(struct job *j, i64 number);
FALLIBLE gpu_parts_enter(struct job *j, const struct batch *b); /* the table of the batch's part */
void gpu_parts_leave(struct job *j); /* once nothing reads it any more */
void gpu_parts_close(struct job *j);
FALLIBLE gpu_parts_cut(struct job *j, u32 sig); /* the source's rows */

/* gpu_str.c */
FALLIBLE gpu_job_texts(struct job *j); /* finds and uploads what the step's text points to */
void gpu_job_texts_drop(struct job *j);
i64 gpu_job_literal_bytes(const struct job *j); /* of literals that are text */
/* Puts them there; on the card they will be at addr. */
void gpu_job_literals(struct job *j, u8 *to, u64 addr);
i64 gpu_job_text_room(const struct job *j, const struct batch *b); /* bytes of a table */
/* Whether text is written that may point into a source column's copy on the card. */
bool gpu_job_moves_text(const struct job *j);
u32 gpu_job_texts_in(const struct job *j, struct ktext *out);
/* What a batch's segments have of text, where that is written. */
void gpu_job_part_texts(struct job *j, struct batch *b, const struct kseg *segs);
u32 gpu_job_texts_out(const struct job *j, const struct batch *b, struct ktext *out);
/* The variable's views may point to any of the step's texts. out: its record on the card, or NULL.
 */
FALLIBLE gpu_job_texts_pass_on(struct job *j, u32 var, struct gpu_var *out);

/* gpu_made.c */
FALLIBLE gpu_job_made_begin(struct job *j); /* room for strings that the step makes */
/* Strings that are handed on, to the host. *out_again: there was too little room. */
void gpu_job_made_note(struct job *j, i64 used); /* how many bytes they took */
FALLIBLE gpu_job_made_end(struct job *j, bool *out_again);
void gpu_job_made_drop(struct job *j);

/* gpu_sink.c */
FALLIBLE gpu_job_sink_begin(struct job *j);
/* Whether the rows may go to the host batch by batch: nobody on the card wants them. */
bool gpu_job_can_send(const struct job *j);
void gpu_job_sink_outs(struct job *j, i32 slot, struct kout *outs);
/* Waits until a batch is computed; to_host: sends its rows on their way into a chunk. */
FALLIBLE gpu_job_harvest(struct job *j, i64 batch);
i64 gpu_job_out_count(const struct job *j); /* columns of rows */
/* Those, and what else a kernel writes to: marks, the set of keys. */
i64 gpu_job_out_places(const struct job *j);
void gpu_job_sinks(const struct job *j, struct ksink *out); /* several of rows */
FALLIBLE gpu_job_set_begin(struct job *j);
FALLIBLE gpu_job_set_room(struct job *j); /* for as many keys as there may be rows */
/* After a step that failed: the set of keys as it was, or what was written stays with it. */
void gpu_job_set_restore(struct job *j);
void gpu_job_set_end(struct job *j); /* the host's is out of date */
i64 gpu_job_row_bytes(const struct job *j); /* of an output row, of every sink one */
i64 gpu_job_col_bytes(const struct job *j, u32 c);
/* Looks at the report of the whole run. *out_again: run it once more, with more room. */
FALLIBLE gpu_job_sink_end(struct job *j, bool *out_again);
void gpu_job_sink_drop(struct job *j);
/* The rows that a step which was queued gave. */
FALLIBLE gpu_job_sink_settle(struct job *j, const i64 *rows);

/* gpu_run.c */
/* The woven kernel of a layout; NULL when it is not there and nobody waits for it. */
FALLIBLE gpu_job_woven(struct job *j, struct sig *sig, void **out);
FALLIBLE gpu_job_open(struct job *j);    /* the step's plan */
FALLIBLE gpu_job_indexes(struct job *j); /* that it looks into */
void gpu_job_init(struct gpu *g, struct exec *x, u32 step_no, const struct step *step, struct job *out);
/* All launches, without a look at what they give. *out_done = false: it has to be run. */
FALLIBLE gpu_job_queue(struct job *j, bool *out_done);
/* Of one that was queued and is as expected: rows of its variables, in their order. */
FALLIBLE gpu_job_settle(struct job *j, const i64 *rows, i64 made);
/* Ends it, whatever came of it; metrics are filled. */
void gpu_job_close(struct job *j, wf_status status);
/* A pipeline that reads the rows which a struct krange at `range` tells of and adds to rows that have
 * room: its arguments, on the card when the first stream is done. The argument block is the job's. */
FALLIBLE gpu_job_ready(struct job *j, u64 range, struct gpu_block **args, struct job_ready *out);
FALLIBLE gpu_job_ready_code(struct job *j, struct job_ready *out); /* the best there is by now */
/* Whether one launch may take so many rows. */
bool gpu_job_takes(const struct job *j, i64 rows);
/* Anew, where indexes have changed. */
void gpu_job_count_matches(struct job *j);
FALLIBLE gpu_job_counts(struct job *j); /* that all launches made so far, for EXPLAIN ANALYZE */
const char *gpu_job_code(const struct job *j); /* which code ran */

/* gpu_room.c */
void gpu_room_begin(struct job *j);
i64 gpu_room_bytes(const struct job *j); /* for copies of the reports */
FALLIBLE gpu_room_note(struct job *j, i32 slot, void *stream); /* copies them behind a batch */
void gpu_room_look(struct job *j, i32 slot);                   /* at that copy, once it is there */
/* Room for what batch `next` may give. Where it has to wait, batches up to it are `done`. */
FALLIBLE gpu_room_before(struct job *j, i64 next, i64 *done);
/* Whether a table holds the groups of as many batches as may be under way, twice. */
bool gpu_room_is_safe(const struct job *j, const struct kagg *agg);
i64 gpu_room_ahead(const struct job *j); /* rows that those may give */
/* All groups of a table to memory of the host, `next` batches having been computed. */
FALLIBLE gpu_room_put_aside(struct job *j, u32 number, i64 groups, i64 next);
FALLIBLE gpu_room_join_asides(struct job *j, u32 number); /* to rows */
void gpu_room_drop_asides(struct job *j, u32 number);

/* gpu_agg.c */
i64 gpu_agg_table_bytes(const struct kagg *agg);
/* The groups of a part, of which the table is full, behind those of other parts on the host. */
FALLIBLE gpu_agg_part_rows(struct job *j, u32 number, const u64 *report);
FALLIBLE gpu_agg_begin(struct job *j);
void gpu_agg_drop(struct job *j);
/* Of aggregation `number`, once the argument block has its place. */
struct kagg gpu_agg_args(const struct job *j, u32 number);
void gpu_agg_keeps(const struct job *j, u32 number, struct kkeep *out);
/* Columns of all groups of those before `number`. */
i64 gpu_agg_col_count(const struct job *j, u32 number);
FALLIBLE gpu_agg_init(struct job *j);
FALLIBLE gpu_agg_early(struct job *j); /* small tables: read out before they are waited for */
void gpu_agg_early_cols(const struct job *j, u64 *cols); /* where to */
FALLIBLE gpu_agg_end(struct job *j, bool *out_again);
/* Of a step that is queued: whether its groups can be read out before anybody knows how many there are, the
 * kernels that do so, and what they gave. */
bool gpu_agg_can_queue(const struct job *j);
bool gpu_agg_comes_early(const struct job *j, u32 number); /* its groups go on to the host at once */
FALLIBLE gpu_agg_queue(struct job *j);
FALLIBLE gpu_agg_settle(struct job *j, const i64 *rows);
/* Where the rows of aggregation `number` are counted, on the card. */
u64 gpu_agg_rows_at(const struct job *j, u32 number);
/* Shared memory of a block of so many threads for the tables, behind `other_bytes`. Tells the kernel
 * where each begins, and in how many copies it is; 0: cells of each thread's own, or none. In the
 * virtual machine there is one: args->emit. */
i64 gpu_agg_shared(const struct job *j, u32 threads, i64 other_bytes, struct kargs *args);

#endif
