/* run_int.h: shared by the files of the runtime. */
#ifndef WF_RUN_RUN_INT_H
#define WF_RUN_RUN_INT_H

#include "run/place.h"
#include "run/run.h"
#include "run/ways.h"

/* Which device of the list runs a step, and the reason EXPLAIN ANALYZE prints. ERR_NOT_SUPPORTED or ERR_NO_DEVICE
 * when the setting asks for a device that cannot. */
struct chosen {
    u32 number;
    const char *why;
    b8 alone; /* few rows: the calling thread computes, without the pool */
    const struct share_plan *shares; /* several run it, each a part; NULL = `number` alone */
};

/* hybrid.c: shares of one scan. A plan lives in the execution's arena. */
struct share_part {
    u32 number;           /* of the device */
    u32 place;            /* as auto counts them */
    struct row_span span; /* of the table's rows */
    f64 estimate_ns;      /* as the device itself estimates, all it reads being there */
};
struct share_plan {
    u32 count; /* at least 2 */
    struct share_part parts[DEVICES_MOST];
};
/* Whether devices beside the one chosen should take a share: then chosen->shares is set. */
void hybrid_choose(struct exec *x, const struct run_devices *devices, u32 step_no,
                   const struct step *step, struct chosen *chosen);
/* Runs the shares side by side; all that the step reads is on the host. Fills the step's metric. */
FALLIBLE hybrid_run(struct exec *x, const struct run_devices *devices, u32 step_no,
                    const struct step *step, const struct share_plan *plan);
void shares_close(struct exec *x);
/* Boxes of a graph (run/trie.h): devices that may help with those of the next step; and, when that has left its
 * device, waits for them and has the answer, if all was counted. */
void boxes_allow(struct exec *x, const struct run_devices *devices);
FALLIBLE boxes_settle(struct exec *x, u32 step_no, const struct step *step, wf_status status);
/* Of the devices that share the memory of the one chosen, that which has least to do; it counts as
 * busy until it is given back. */
u32 device_take(const struct run_devices *devices, u32 number);
void device_give(const struct run_devices *devices, u32 number);
/* Why the host runs a step for which the device has no room, whatever the session asks for; NULL:
 * that is an error. */
const char *choose_without_room(const struct exec *x, const struct step *step);
FALLIBLE choose_device(struct exec *x, const struct run_devices *devices, u32 step_no,
                       const struct step *step, struct chosen *out);
/* As printf, in the execution's arena; the same text as the step had before takes nothing more. */
const char *why_printed(struct exec *x, u32 step_no, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether only the host ever runs it, wherever its rows lie. */
bool choose_host_always(const struct exec *x, const struct step *step);
/* Whether it will be the host's, most likely the calling thread's for having few rows, where variables have `rows` of
 * them and lie on the host or not. */
bool choose_expects_host(const struct exec *x, const struct step *step, const i64 *rows, const b8 *on_host);

/* auto.c: where steps run when the session names no device. */
void auto_choose(struct exec *x, const struct run_devices *devices, u32 step_no,
                 const struct step *step, struct chosen *out);
/* A step's estimate, and what bringing what it reads to the device costs. */
struct step_cost {
    f64 ns, move_ns;
    f64 column_ns; /* of move_ns, what columns of a table take */
    f64 here;      /* in [0, 1]: of those columns, what is on the device */
};
struct step_cost auto_cost(struct exec *x, struct device *device, const struct step *step);
/* All variables as they are. */
struct expected *auto_expected(struct exec *x);
/* The step left its variables as they are. */
void auto_left(struct exec *x, u32 step_no);
/* The same, and it ran on device `number`, wherever it was meant to, and took so long. */
void auto_ran(struct exec *x, const struct run_devices *devices, u32 number, u32 step_no, i64 ns);
/* The estimate of the step that was chosen last, to be given back before auto_ran. */
f64 auto_pause(struct exec *x);
void auto_resume(struct exec *x, f64 running_ns);
/* Whether the step is meant for others than the host, as far as that is decided. */
bool auto_places_away(const struct exec *x, u32 step_no);
/* A device ran rounds of the loop by itself. */
void auto_went_round(struct exec *x, const struct block *block);
/* Device `number` ran `count` rounds of the loop whose first step has this number. */
void auto_queued_rounds(struct exec *x, const struct run_devices *devices, u32 number,
                        const struct rounds *r, i64 ns);
/* A loop has had all its rounds. */
void auto_loop_ended(struct exec *x, const struct block *block, u32 first_step, i64 rounds);
/* All steps ran, in x->run_ns. */
void auto_ended(struct exec *x);
/* What is to be said of columns that the statement missed on a device; NULL = nothing. */
const char *auto_note(const struct exec *x);

/* past.c: what earlier runs of a program took. `past` may be NULL. */
f64 past_ratio(const struct past *past, u32 step_no, u32 place); /* of time to estimate */
i32 past_runs(const struct past *past, u32 step_no, u32 place);  /* it was seen there so often */
void past_took(struct past *past, u32 step_no, u32 place, f64 estimated_ns, f64 ns);
struct ways *past_ways(struct past *past); /* of a past that there is */
/* The place's share of the step's scan; 0 = it had none. */
f64 past_share(const struct past *past, u32 step_no, u32 place);
void past_shared(struct past *past, u32 step_no, u32 place, f64 share);
i64 past_rows(const struct past *past, u32 var); /* -1 = not known */
i64 past_rows_uncut(const struct past *past, u32 var); /* before a sort left the first of them only */
void past_had(struct past *past, u32 var, i64 rows);
void past_made(struct past *past, u32 var, i64 rows); /* by a pipeline or a build: a sort may leave less */
void past_indexed(struct past *past, u32 var, bool unique); /* the host made the index; false: nobody knows */
f64 past_rounds(const struct past *past, u32 block); /* of the loop that ends with it */
void past_went_round(struct past *past, u32 block, i64 rounds);

/* Whether steps may be queued: not for a while after they turned out otherwise than expected. */
bool past_may_queue(struct past *past);
void past_queued(struct past *past, bool good);

#define NO_STEP (~0u)
/* queue.c: steps that run one behind the other on a device before anybody waits for them. */
/* Whether steps like this one are queued when the program runs again. */
bool queue_may(const struct exec *x, const struct step *step);
/* Whether the step was queued; then it is not to be run. */
FALLIBLE queue_step(struct exec *x, const struct run_devices *devices, u32 step_no,
                    const struct step *step, bool *out_done);
/* Whether something is queued. */
bool queue_is_open(const struct exec *x);
/* Whether the step can be run, on the host, while something is. */
FALLIBLE queue_leaves(struct exec *x, const struct run_devices *devices, u32 step_no,
                      const struct step *step, bool *out);
/* Waits for it, since this step is next, or none (NULL). *out_again: the step from which on all have to be
 * run, else NO_STEP. */
FALLIBLE queue_settle(struct exec *x, const struct run_devices *devices, u32 step_no,
                      const struct step *step, u32 *out_again);
/* Gives it up; returns the first step of it. */
u32 queue_drop(struct exec *x, const struct run_devices *devices);

/* Blocks of temporary space that it ever took. */
i64 exec_temp_bytes(const struct exec *x);
u32 step_total(const struct program *program);
/* The step that hands over the answer; NULL when there is none. */
const struct step *result_step(const struct program *program);
i64 lit_i64(const struct exec *x, u32 lit);
bool lit_is_null(const struct exec *x, u32 lit); /* of a parameter that is NULL */
/* Turns the smallest fault met so far into the error. */
FALLIBLE raise_fault(struct exec *x, const struct step *step);
/* Where in the text the smallest fault met so far was set. */
i32 fault_position(const struct exec *x, const struct step *step);

/* defer.c: see struct deferral */
void defer_open(struct exec *x);
/* Whether the step need not run, since its deferral or one around it has a fault. */
bool defer_skips(struct exec *x, const struct step *step);
/* Whether the step can be queued: it has to run, and if more than one row is too many, no more are expected. */
bool defer_may_queue(const struct exec *x, const struct step *step);
/* Keeps the fault of a step that belongs to a deferral; false when it must be raised. */
bool defer_fault(struct exec *x, const struct step *step);
/* The place of a fault that a pipeline raised by `op`: of one that was kept, where it was met. */
i32 defer_position(const struct exec *x, const struct pipeline *pipe, const struct op *op);
/* Makes dictionaries known that interners made or let grow. */
void refresh_dicts(struct exec *x);

/* The first of the last steps, which may be computed as the answer is read; NO_STEP: none may. */
u32 stream_first(const struct program *program);
/* Whether the devices of this and all later pipelines can cut them into slices. */
FALLIBLE stream_possible(struct exec *x, const struct run_devices *devices, u32 step_no, bool *out);
/* Opens the stream, or adds the next pipeline to it. */
FALLIBLE stream_open(struct exec *x, struct device *device, u32 step_no, const struct step *step);
void stream_close(struct exec *x);

/* STEP_LIMIT: the rows kept are slices of the source's chunks. */
FALLIBLE limit_run(struct exec *x, const struct step *step);

/* fetch.c: STEP_FETCH, whole or a slice at a time: next replaces the rows of dst by those of the
 * next about want_bytes bytes, at most `limit` rows (-1 = all). */
struct fetcher;
FALLIBLE fetch_run(struct exec *x, const struct step *step, u32 step_no);
FALLIBLE fetch_open(struct exec *x, const struct step *step, u32 step_no, struct fetcher **out);
FALLIBLE fetch_next(struct fetcher *f, i64 want_bytes, i64 limit, bool *out_end);

/* Calls visit(arg, var) for every variable the step reads; a variable may come twice. */
/* Of an interner of the device the texts that the answer shows, where they are few; false: bring it whole. */
FALLIBLE shown_texts(struct exec *x, struct device *device, const struct step *step, u32 var,
                     bool *out_done);
void step_inputs(const struct program *program, const struct step *step,
                 void (*visit)(void *arg, u32 var), void *arg);
/* The same for those that it fills, changes or sorts. */
void step_outputs(const struct step *step, void (*visit)(void *arg, u32 var), void *arg);
/* Variables whose last use was that step. */
void release_after(struct exec *x, u32 step_no);
/* The operator names a step came from; never NULL. */
const char *step_label(const struct step *step);

/* work.c: progress. A plan of it, before the first step; each step begins, and ends unless it is
 * part of a stream. */
void work_plan(struct exec *x);
/* Rows that the step reads: as they are, or as they are expected while `rows` (by variable) is
 * given. */
i64 step_reads_rows(const struct exec *x, const struct step *step, const i64 *rows);
/* What it is expected to leave in its variables. */
void step_makes_rows(const struct exec *x, const struct step *step, i64 read, i64 *rows);
void work_begin(struct exec *x, u32 step_no, const struct step *step, bool streams);
void work_end(struct exec *x);

/* rounds.c: around a step of a loop. */
void round_begin(struct exec *x, u32 step_no, const struct step *step, struct round_metric *out);
void round_end(struct exec *x, const struct step *step, i64 round, struct round_metric *began);

#endif
