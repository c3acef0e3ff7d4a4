/* gpu.h: the CUDA device, as the rest of the library sees it. */
#ifndef WF_GPU_GPU_H
#define WF_GPU_GPU_H

#include "run/device.h"

/* What a kernel can hold of a pipeline: registers alive at once, MATCHes, and bytes of shared memory a row that
 * these may take to hand registers to other threads. */
enum { GPU_LIVE_MOST = 32, GPU_MATCHES_MOST = 4, GPU_CARRIED_MOST = 80 };

/* Opens a GPU by its number. NULL when it cannot be used, with the reason in `why`: a normal
 * state. budget_bytes 0 = 90 % of what is free on the card. host_mem pays for book-keeping. */
struct device *gpu_device_open(struct memory *host_mem, i64 budget_bytes, i32 number, char why[300]);

/* One more worker on the same card: a device of the same space, whose steps run beside those of the
 * first. NULL with the reason in `why`. The card is closed with its last worker. */
struct device *gpu_device_share(const struct device *gpu, char why[300]);

/* How many cards there are; the reason in `why` when there is none. Starts nothing on them. */
i32 gpu_count(char why[300]);

/* `warpfox devices`: what was found, measured copy bandwidth, what cannot be used and why. */
void gpu_describe(struct text *out);

/* Loads every column of a version that kernels can read into the card's cache (CALL gpu_cache).
 * Errors: 53200 naming gpu_memory, ERR_GPU. */
FALLIBLE gpu_cache_table(struct device *dev, struct table *table, struct table_version *version,
                         struct error *err);

/* EXPLAIN (CUDA): the woven text of every pipeline that the GPU can run, the reason for the others.
 * Works without a device (dev NULL) and before the program has run. */
FALLIBLE gpu_explain_cuda(struct device *dev, struct exec *x, struct text *out, struct error *err);

/* EXPLAIN (CUDA, STANDALONE): an execution whose `capture` is set records its woven launches, whose
 * programs are then printed. 0A000 when there was none. */
struct launch_record;
struct launch_record *gpu_capture_new(struct arena *arena);
FALLIBLE gpu_capture_print(const struct launch_record *capture, struct text *out, struct error *err);

#endif
