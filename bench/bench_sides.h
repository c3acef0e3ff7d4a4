/* bench_sides.h: the devices that experiments on arrays run on, and the ceiling of each. */
#ifndef BENCH_SIDES_H
#define BENCH_SIDES_H

#include "bench.h"
#include "warpfox_prim.h"

struct bench_side {
    bool used;
    wf_place place;
    const char *name;
    double copy_gbs; /* a copy of its own memory, bytes in and out */
};

/* Those that --device names: cpu, then gpu. Says so where no GPU can be used; false where nothing
 * is left. Ceilings are measured. */
bool bench_sides_open(wf_prim *prim, const struct bench_options *options,
                      struct bench_side sides[2]);

#endif
