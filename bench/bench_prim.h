/* bench_prim.h: the experiments of `bench prim`: what each runs and how its answer is checked. */
#ifndef BENCH_PRIM_H
#define BENCH_PRIM_H

#include "bench.h"
#include "warpfox_prim.h"

/* Arrays of one run, in memory of the device it runs on. */
struct prim_data {
    int64_t rows;
    int64_t segments;
    uint32_t *keys;    /* random */
    uint32_t *order;   /* a permutation of 0 .. rows - 1 */
    uint32_t *same;    /* all 77 */
    uint64_t *even;    /* segments + 1 offsets, 16 rows each */
    uint64_t *skewed;  /* the same number, the first segment has half of the rows */
    uint32_t *up;      /* two ascending arrays, half of the rows each, */
    uint64_t *up_wide; /* and the same in 64 bits, a quarter each */
    uint32_t *out, *out2;
    uint64_t *bins; /* 2^20 */
};
enum { SEGMENT_ROWS = 16, BINS_MOST = 1 << 20 };

struct prim_case {
    wf_prim *prim;
    wf_place place;
    const struct prim_data *d;
    int64_t count; /* of results, where that is not known before */
};

struct prim_experiment {
    const char *name;
    double bytes; /* in and out, once, per row */
    int arg;
    wf_status (*run)(struct prim_case *c, int arg);
    bool (*check)(const struct prim_case *c, int arg); /* on arrays of the host */
    bool plotted;
    const char *paper; /* the tables and figures it belongs to; NULL: none */
};
/* Whether `out` and `out2` hold keys[i] and order[i] of every row i, once and together; `stable`:
 * rows whose keys agree in the bits of `mask` are in order where they are neighbours. */
bool prim_pairs_follow(const struct prim_data *d, uint32_t mask, bool stable);
extern const struct prim_experiment prim_experiments[];
extern const int prim_experiment_count;
extern const struct prim_experiment prim_order_experiments[];
extern const int prim_order_experiment_count;

#endif
