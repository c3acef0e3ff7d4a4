/* gpu_prim.h: what the card's bodies of primitives share.
 *
 * A job runs on stream 0 between begin and end, which keep it inside the worker; its launches queue up,
 * and only gpu_prim_fetch waits. A job inside a step has neither begin nor end: lock, events and
 * memory are the step's. While a job is measured, launches, fills and fetches do nothing (a fetch
 * gives zeros), so a body is written once. */
#ifndef WF_GPU_GPU_PRIM_H
#define WF_GPU_GPU_PRIM_H

#include "gpu/gpu_int.h"
#include "prim/prim.h"

static inline struct gpu *gpu_of(const struct prim_job *job) {
    return job->dev->self;
}

/* Bytes that random accesses stay in the second-level cache for, beside what streams through. */
static inline i64 gpu_prim_cache(const struct prim_job *job) {
    return (i64)gpu_of(job)->card->l2_bytes * 4 / 5;
}

/* A kernel of kernels/<module>.h, compiled with the lines `defines` before it (on first use; kept
 * in memory and on disk). */
struct gpu_template {
    const char *module, *kernel;
    const char *defines; /* lines; "" = none */
};
/* Blocks so many as the device holds at once, but at most `most`; for kernels that share out tiles
 * themselves. */
FALLIBLE gpu_prim_launch(struct prim_job *job, const struct gpu_template *code, i64 most,
                         u32 threads, i64 shared_bytes, const void *args);
/* Exactly so many blocks. */
FALLIBLE gpu_prim_launch_all(struct prim_job *job, const struct gpu_template *code, i64 blocks,
                             u32 threads, i64 shared_bytes, const void *args);
/* Exactly so many blocks of a template that kernel.def lists, compiled ahead; `code` says the same
 * for when a variant of it is measured. */
FALLIBLE gpu_prim_launch_fixed(struct prim_job *job, enum kernel_no kernel,
                               const struct gpu_template *code, i64 blocks, u32 threads,
                               const void *args);
/* Before anything else is queued on stream 0: the job's time starts here, if it has not yet. */
FALLIBLE gpu_prim_work(struct prim_job *job);
FALLIBLE gpu_prim_fill(struct prim_job *job, void *dst, u8 value, i64 bytes);
FALLIBLE gpu_prim_move(struct prim_job *job, void *dst, const void *src,
                       i64 bytes); /* on the card */
/* To the host, waiting; small things. */
FALLIBLE gpu_prim_fetch(struct prim_job *job, void *host, const void *src, i64 bytes);
/* From the host, small things; copied before it returns. */
FALLIBLE gpu_prim_send(struct prim_job *job, void *dst, const void *host, i64 bytes);

extern const char gpu_split_ahead[]; /* the lines of split_words.h */
extern const struct prim_class gpu_prims;

#endif
