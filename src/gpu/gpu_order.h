/* gpu_order.h: what sorts, windows and ordered aggregates on the card share: blocks of memory for the time of a step,
 * columns as keys, text that is looked at, launches. */
#ifndef WF_GPU_GPU_ORDER_H
#define WF_GPU_GPU_ORDER_H

#include "defs/ksort.h"
#include "defs/kwindow.h"
#include "gpu/gpu_int.h"
#include "prim/move.h"

struct order_step {
    struct gpu *g;
    struct exec *x;
    struct step_metric *metric;
    i64 launches;
    VEC(struct gpu_block *) temps;
    struct ktexts texts; /* of the variable, when they were opened */
    u64 work;            /* of the library */
    i64 work_bytes;
    i64 sent; /* bytes of pinned memory in use */
    b8 queued; /* nobody waits for it: what has no place in that memory is refused */
    /* of one that is queued and is no sort (gpu_queue.c) */
    i64 event_base;
    u64 count_at;         /* where the card knows how many rows its source has; 0 = it has so many */
    u64 report;           /* REPORT_WORDS, all ones at REPORT_FAULT */
    struct krelay relay;  /* what it gives */
    void (*settle)(struct order_step *o, i64 rows);
    void (*undo)(struct order_step *o); /* back to what was there before it, for those that wait */
};

#define ORDER_SEND_BYTES (32LL << 10)
/* A block that lives as long as the step, or until order_drop. */
FALLIBLE order_block(struct order_step *s, i64 bytes, u64 *out);
void order_drop(struct order_step *s, i64 from); /* the temps from number `from` on */
/* The first from anywhere, which may change at once; the second waits. */
FALLIBLE order_send(struct order_step *s, u64 to, const void *from, i64 bytes);
FALLIBLE order_receive(struct order_step *s, void *to, u64 from, i64 bytes);
FALLIBLE order_start(struct order_step *s, enum kernel_no kernel, i64 blocks, u32 threads,
                     const void *args);
i64 order_blocks(const struct order_step *s, i64 rows);
/* Room for a job of the library that was measured. */
FALLIBLE order_work(struct order_step *s, i64 bytes);
/* Brings the bytes of a variable's text to the card, with the table that leads there. */
FALLIBLE order_texts(struct order_step *s, struct gpu_var *gv);
/* Column `col` of variable `var` as a key, without ranks and bounds. */
FALLIBLE order_column(struct order_step *s, u32 var, u32 col, struct ksort_part *out);
/* Sums of u32 or u64 up to each of n. */
FALLIBLE order_scan(struct order_step *s, enum elem type, i64 n, void *out, const void *in);
/* Where partitions and groups of peers of sorted rows start; the numbers of rows and keys are set. */
FALLIBLE order_runs(struct order_step *s, u32 var, const u32 *cols, struct kwindow_rows *rows);
/* Text that rows of a step's source point to is kept by what it makes of them, too. */
void order_pass_texts(struct exec *x, const struct step *step, const struct gpu_var *from,
                      struct gpu_var *out);
/* Runs a part of a step and notes how long the card took. */
FALLIBLE order_timed(struct order_step *o, FALLIBLE (*run)(void *arg), void *arg);
/* Whether all that the step reads is on the card, so that nobody has to wait before it can be queued. */
bool order_may_queue(const struct order_step *o, const struct step *step);
/* Runs all of a step that nobody waits for. */
FALLIBLE order_queue(struct order_step *o, FALLIBLE (*run)(void *arg), void *arg);
FALLIBLE gpu_window_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                         struct order_step **out);
FALLIBLE gpu_fold_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                         struct order_step **out);
FALLIBLE gpu_limit_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                         struct order_step **out);
/* Ends a step: temporary blocks go when nothing uses them any more. */
void order_end(struct order_step *o, wf_status status);

#endif
