/* run.h: the runtime: interprets a program over devices. Knows no plans and no SQL. */
#ifndef WF_RUN_RUN_H
#define WF_RUN_RUN_H

#include "run/device.h"

/* What can run steps: the host's own processor first, then others in any number. */
enum { DEVICES_MOST = 8 };
struct run_devices {
    u32 count;
    struct device *list[DEVICES_MOST];
    const char *alone; /* why there are no others, for errors and EXPLAIN ANALYZE */
};

/* What runs of a program leave for the next one: times, rows, rounds. In the arena, as long as the
 * program; executions name it as `past`. */
struct past *past_new(struct arena *arena, const struct program *program);

/* Prepares an execution: sizes arrays, resolves dictionaries, checks every guard against the
 * versions. *out_stale is set when a guard fails: lower again. `x` fields above `lits` are filled
 * by the caller. */
FALLIBLE exec_open(struct exec *x, bool *out_stale);
/* Runs all steps. The answer is the variable of the RESULT step, on the host unless the
 * session leaves results on the device, where only its row count is. */
FALLIBLE exec_run(struct exec *x, const struct run_devices *devices);
void exec_close(struct exec *x);

/* The answer: chunks in order, after OFFSET and LIMIT. */
struct answer {
    i64 rows;
    i64 slice_count;
    struct slice {
        const struct chunk *chunk;
        i64 first, rows;
    } * slices;
};
FALLIBLE exec_answer(struct exec *x, struct answer *out);

/* The same as exec_run and exec_answer, but a program whose last pipeline feeds the answer directly
 * is run only so far that the answer's first rows are there; exec_next computes more, replacing the
 * rows handed out before. *out_end: there are no more. The rows of an answer may be few or none
 * before the end. Of all faults of the last pipeline the smallest still wins: when one is met, the
 * rest of the source is evaluated without output. */
FALLIBLE exec_start(struct exec *x, const struct run_devices *devices, struct answer *out,
                    bool *out_end);
FALLIBLE exec_next(struct exec *x, struct answer *out, bool *out_end);

/* EXPLAIN ANALYZE's table of steps: what each did, where and why, and the least time its device
 * would have needed for it. */
void exec_print(struct text *out, struct exec *x, const struct run_devices *devices);
/* The same as a table: a row a step, times in nanoseconds; cells in row order, in the arena of `x`.
 * Returns the number of rows. */
enum { EXEC_STEP_COLS = 20 };
extern const char *const exec_step_cols[EXEC_STEP_COLS];
i64 exec_step_table(struct exec *x, const struct run_devices *devices, struct sv **out_cells);
/* What the rules of recursions did, round by round: as text, and as such a table. */
enum { EXEC_ROUND_COLS = 7 };
extern const char *const exec_round_cols[EXEC_ROUND_COLS];
i64 exec_round_table(struct exec *x, struct sv **out_cells);
void exec_print_rounds(struct text *out, struct exec *x);
/* Rows each operator of the plan gave, by its number; -1 = not known. In the execution's arena. */
i64 *exec_rel_rows(struct exec *x);

#endif
