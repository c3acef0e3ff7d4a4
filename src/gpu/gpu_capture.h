/* gpu_capture.h: woven launches as they are recorded for EXPLAIN (CUDA, STANDALONE). */
#ifndef WF_GPU_GPU_CAPTURE_H
#define WF_GPU_GPU_CAPTURE_H

#include "defs/kargs.h"
#include "gpu/gpu.h"
#include "gpu/gpu_int.h"

struct gpu_launched {
    u32 step_no;
    const char *label;
    struct sv text; /* of the kernel */
    struct gpu_grid grid;
    const struct kargs *args;
};
/* Around a launch of an execution with `capture`: the memory it reaches is copied, and what it left
 * summed up. 54000 when that is too much. */
FALLIBLE gpu_capture_before(struct gpu *g, struct exec *x, const struct gpu_launched *launched);
FALLIBLE gpu_capture_after(struct gpu *g, struct exec *x);

#endif
