/* bench_joins.h: the cases of `bench join` and the data they run on. */
#ifndef BENCH_JOINS_H
#define BENCH_JOINS_H

#include "bench_sides.h"
#include "warpfox_prim.h"

struct join_case {
    const char *group, *name;
    int64_t rows[2];  /* of R and S */
    int more_columns; /* of each side, beyond the one there always is */
    bool band;        /* R.key <= S.key <= R.key + width */
    int width;
    int sequential;
    int missing;      /* percent of R's rows that have no match */
    int duplicates;   /* percent of R's rows with one and the same key */
    bool both;        /* ... and of S's */
    int s_duplicates; /* percent of S's rows with one and the same key, of which R has one */
    bool sparse;      /* keys from all of 32 bits, else 0 .. |S| - 1 */
    bool zipf;        /* R's keys: rank r with weight 1 / r */
    bool from_host;   /* arrays of the host, brought to the GPU and back */
    wf_join_algorithm algorithms[8];
    int algorithm_count; /* 0: all but nested loops */
};

struct join_data {
    int64_t rows[2];
    uint32_t *keys[2];
    uint32_t *values[2]; /* row numbers */
};
void join_data_make(const struct join_case *c, struct join_data *out); /* exits without memory */
void join_data_free(struct join_data *data);
uint64_t bench_mix(uint64_t x); /* splitmix64 */

struct join_bench {
    const struct bench_options *options;
    wf_prim *prim;
    struct bench_side side[2]; /* cpu, gpu */
    int64_t cpu_most;          /* rows of R the CPU takes part with */
    struct plot_series series[32];
    int series_count;
    double on_device; /* seconds of the last run on the GPU without copies */
    bool wrong;
};

#endif
