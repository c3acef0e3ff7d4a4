/* prim.h: the data-parallel primitives, on plain arrays: sort, split, scan, build, probe.
 *
 * One entry point each; the device given runs it with the bodies its own steps use. Arrays are the
 * caller's, on the host. Work is spread over the execution's pool, so a primitive must not be
 * called from a task; memory comes from its budget. Errors are ERR_CANCELLED and ERR_OUT_OF_MEMORY.
 */
#ifndef WF_PRIM_PRIM_H
#define WF_PRIM_PRIM_H

#include "run/device.h"

struct prim_pair {
    u64 key;
    u64 row;
};

/* What a device supplies; NULL members are not supported there (0A000). */
struct prim_class {
    FALLIBLE (*sort)
    (struct exec *x, struct prim_pair *data, struct prim_pair *temp, i64 n, i32 bits);
    FALLIBLE (*split)
    (struct exec *x, struct prim_pair *out, const struct prim_pair *in, i64 n, i32 shift, i32 bits,
     i64 *out_starts);
    FALLIBLE (*scan)(struct exec *x, i64 *data, i64 n, i64 *out_total);
    FALLIBLE (*build)(struct exec *x, struct index *index, const i64 *key, const b8 *nulls, i64 n);
    FALLIBLE (*probe)
    (struct exec *x, i64 *out_row, const struct index *index, const i64 *key, i64 n);
};

/* Stable, by the low `bits` bits of the key; `temp` has room for n. */
FALLIBLE prim_sort(const struct device *dev, struct exec *x, struct prim_pair *data,
                   struct prim_pair *temp, i64 n, i32 bits);
/* Stable: elements with equal digits (key >> shift, `bits` bits) end up together, digits ascending;
 * out_starts has 2^bits + 1 places for where each digit starts. */
FALLIBLE prim_split(const struct device *dev, struct exec *x, struct prim_pair *out,
                    const struct prim_pair *in, i64 n, i32 shift, i32 bits, i64 *out_starts);
/* Every element becomes the sum of those before it. */
FALLIBLE prim_scan(const struct device *dev, struct exec *x, i64 *data, i64 n, i64 *out_total);
/* An index over n keys, in whatever form suits them; NULL keys are left out. `index` comes zeroed
 * (index_new) and is released with the variable it is put in, or by index_release. */
FALLIBLE prim_build(const struct device *dev, struct exec *x, struct index *index, const i64 *key,
                    const b8 *nulls, i64 n);
/* The first row of every key, -1 where there is none. */
FALLIBLE prim_probe(const struct device *dev, struct exec *x, i64 *out_row,
                    const struct index *index, const i64 *key, i64 n);

#endif
