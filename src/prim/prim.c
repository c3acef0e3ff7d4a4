/* prim.c: the entry points of the primitives: each goes to the device's own body.
 *
 * A device without one says so: nothing runs elsewhere in silence. */
#include "prim/prim.h"

static FALLIBLE refuse(const struct device *dev, struct exec *x, const char *what) {
    FAIL(x->err, NOT_SUPPORTED, "%s on device %s", what, dev->name);
}

wf_status prim_sort(const struct device *dev, struct exec *x, struct prim_pair *data,
                    struct prim_pair *temp, i64 n, i32 bits) {
    return dev->prims && dev->prims->sort ? dev->prims->sort(x, data, temp, n, bits)
                                          : refuse(dev, x, "sort");
}

wf_status prim_split(const struct device *dev, struct exec *x, struct prim_pair *out,
                     const struct prim_pair *in, i64 n, i32 shift, i32 bits, i64 *out_starts) {
    return dev->prims && dev->prims->split
               ? dev->prims->split(x, out, in, n, shift, bits, out_starts)
               : refuse(dev, x, "split");
}

wf_status prim_scan(const struct device *dev, struct exec *x, i64 *data, i64 n, i64 *out_total) {
    return dev->prims && dev->prims->scan ? dev->prims->scan(x, data, n, out_total)
                                          : refuse(dev, x, "scan");
}

wf_status prim_build(const struct device *dev, struct exec *x, struct index *index, const i64 *key,
                     const b8 *nulls, i64 n) {
    return dev->prims && dev->prims->build ? dev->prims->build(x, index, key, nulls, n)
                                           : refuse(dev, x, "build");
}

wf_status prim_probe(const struct device *dev, struct exec *x, i64 *out_row,
                     const struct index *index, const i64 *key, i64 n) {
    return dev->prims && dev->prims->probe ? dev->prims->probe(x, out_row, index, key, n)
                                           : refuse(dev, x, "probe");
}
