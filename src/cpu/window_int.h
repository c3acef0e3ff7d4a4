/* window_int.h: insiders of STEP_WINDOW: the sorted rows, frames, and what computes a column.
 *
 * A partition is a run of rows, peers are neighbours with equal order keys. A frame is a run of
 * rows of the partition less an exclusion, hence up to three runs. */
#ifndef WF_CPU_WINDOW_INT_H
#define WF_CPU_WINDOW_INT_H

#include "cpu/cpu_int.h"

struct windowing {
    struct exec *x;
    const struct step *step;
    const struct chunk *chunk; /* sorted */
    i64 rows;
    b8 *starts; /* per row: WINDOW_PART and WINDOW_PEER where one starts */
    i64 *parts; /* first rows of partitions, and `rows` */
    i64 part_count;
    struct chunk *out;
    i64 task_parts; /* partitions a task */
    i64 tasks;      /* per function */
    struct mutex lock;
    struct error err;
    wf_status status;
};
enum { WINDOW_PART = 1, WINDOW_PEER = 2 };

struct run { /* rows lo .. hi - 1 */
    i64 lo, hi;
};

/* Walks the rows of a partition in order. */
struct frame_walk {
    const struct windowing *w;
    const struct window_fn *fn;
    i64 first, end;         /* the partition */
    i64 row;                /* current */
    i64 peer, peer_end;     /* its peers */
    i64 peer_no;            /* groups of peers before them */
    i64 from_off, to_off;   /* ROWS, GROUPS */
    i64 lo, hi;             /* the frame before exclusion */
    i64 group_lo, group_hi; /* GROUPS: number of the group that starts at lo, at hi */
    struct run runs[3];
    i32 run_count;
};
/* The frame's offsets from the literals; 22013 when NULL or negative. */
FALLIBLE frame_offsets(struct exec *x, const struct window_fn *fn, struct frame_walk *out,
                       struct error *err);
void frame_begin(struct frame_walk *f, i64 first, i64 end);
void frame_next(
    struct frame_walk *f); /* computes the frame of f->row; the first call is for first */

/* window_fn.c: column fn_no of the partitions from..to - 1. */
FALLIBLE window_column(struct windowing *w, u32 fn_no, i64 from, i64 to, struct error *err);

#endif
