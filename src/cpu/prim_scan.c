/* prim_scan.c: the CPU's scan of plain arrays: fold blocks, scan the folds, scan the blocks.
 *
 * Two passes over the data, in blocks that the second pass mostly finds in the cache when there are
 * few workers; with one worker, or one block, the first pass is left out. */
#include "cpu/cpu_int.h"
#include "cpu/prim_int.h"
#include "prim/fold.h"

enum { SCAN_ROWS = 1 << 15 };

struct scan {
    const struct fold_loops *loops;
    u8 *out;
    const u8 *in;
    i64 n;
    i32 width;
    b8 inclusive;
    u8 *sums; /* per block, 8 bytes each: its fold, then that of what comes before it */
};

static void fold_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct scan *s = arg;
    i64 first = b * SCAN_ROWS;
    i64 rows = MIN_OF(s->n - first, SCAN_ROWS);
    s->loops->reduce(s->sums + b * 8, s->in + first * s->width, rows);
}

static void scan_task(void *arg, i64 b, i32 worker) {
    UNUSED(worker);
    const struct scan *s = arg;
    i64 first = b * SCAN_ROWS;
    i64 rows = MIN_OF(s->n - first, SCAN_ROWS);
    s->loops->scan(s->out + first * s->width, s->in + first * s->width, rows, s->sums + b * 8,
                   s->inclusive);
}

wf_status prim_cpu_scan(struct prim_job *job, enum fold fold, bool inclusive, struct prim_array out,
                        struct prim_array in) {
    i64 blocks = (in.count + SCAN_ROWS - 1) / SCAN_ROWS;
    struct scan s = {.loops = fold_loops(fold, in.type),
                     .out = out.data,
                     .in = in.data,
                     .n = in.count,
                     .width = elem_bytes[in.type],
                     .inclusive = inclusive};
    s.sums = prim_take(job, (blocks + 1) * 8);
    if (job->measuring || !in.count) {
        return ERR_OK;
    }
    s.loops->identity(s.sums);
    if (blocks > 1) {
        tasks_run(job->x, blocks, fold_task, &s);
        u8 carry[8];
        s.loops->identity(carry);
        for (i64 b = 0; b < blocks; b++) {
            u8 next[8];
            memcpy(next, carry, 8);
            s.loops->join(next, s.sums + b * 8);
            memcpy(s.sums + b * 8, carry, 8);
            memcpy(carry, next, 8);
        }
    }
    tasks_run(job->x, blocks, scan_task, &s);
    return exec_check(job->x);
}
