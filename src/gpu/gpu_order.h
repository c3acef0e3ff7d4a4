/* gpu_order.h: what sorts and windows on the card share: blocks of memory for the time of a step,
 * columns as keys, text that is looked at, launches. */
#ifndef WF_GPU_GPU_ORDER_H
#define WF_GPU_GPU_ORDER_H

#include "defs/ksort.h"
#include "gpu/gpu_int.h"

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
};

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

#endif
