/* bench_ops.h: the experiments of `bench ops`: relations of one run, operators on them, and the
 * answers a plain loop gives. */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include "bench.h"
#include "warpfox_prim.h"

enum { OPS_PAGE_ROWS = 8192, OPS_GROUP_ROWS = 4, OPS_PRODUCT_ROWS = 4096 };

/* How the keys of x lie; those of y are distinct, all over the range. */
enum ops_keys { KEYS_UNIFORM, KEYS_NORMAL, KEYS_PARETO, KEYS_KINDS };
extern const char *const ops_key_names[KEYS_KINDS];

/* In memory of the device the run is on. */
struct ops_data {
    int64_t rows;
    int bytes;          /* of a tuple: 4 or 8 */
    wf_relation x, y;   /* sorted; a quarter of the keys in common */
    wf_relation same;   /* keys of x, other values */
    wf_relation groups; /* runs of OPS_GROUP_ROWS equal keys */
    void *out, *out2;   /* rows * 2 * bytes; rows * 4 */
    uint32_t *fills, *out_fills;
};
/* With arrays of the host, whose contents are made. */
bool ops_make(wf_prim *prim, struct ops_data *out, int64_t rows, int bytes, enum ops_keys keys);
/* The same on the GPU. */
bool ops_copy(wf_prim *prim, struct ops_data *out, const struct ops_data *host);
void ops_free(wf_prim *prim, struct ops_data *data);

struct ops_case {
    wf_prim *prim;
    wf_place place;
    const struct ops_data *d;
    wf_rel_join join;
    int64_t out_rows, bytes; /* out: rows given, bytes in and out */
};
struct ops_experiment {
    const char *name;
    int arg;
    wf_status (*run)(struct ops_case *c, int arg);
    /* The answer of a plain loop into `out`, as the run leaves it; rows given. NULL: only `check`.
     */
    int64_t (*answer)(const struct ops_data *d, int arg, uint64_t *out);
    bool plotted, unordered;
    /* What else the run left is right, or all of it; NULL: there is nothing else. */
    bool (*check)(const struct ops_case *c, int arg);
};
extern const struct ops_experiment ops_experiments[];
extern const int ops_experiment_count;
wf_status ops_run_join(struct ops_case *c, int same);
int64_t ops_answer_join(const struct ops_data *d, int same, uint64_t *out);

#endif
