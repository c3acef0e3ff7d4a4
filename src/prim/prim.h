/* prim.h: the data-parallel primitives on plain arrays: what a device supplies, and one call of it.
 *
 * An entry point (prim_…) goes to the body its device has; the engine and the public library
 * (api/prim_*.c over include/warpfox_prim.h) share both. Arrays lie where the device works: the
 * public library has copied host arrays to a GPU before, and has checked types, counts, overlaps
 * and places. Work is spread over the execution's pool, so a primitive must not be called from a
 * task.
 *
 * A job is one call. Its workspace is a stack over memory of the device: bodies take pieces, and
 * give back what they took with mark and back, so that a body may call others. Before a job runs it
 * is measured: the same body runs with `measuring` set, where prim_take only counts, launches and
 * copies do nothing, and CPU bodies return after they have taken what they need. What is taken
 * may therefore depend on counts and types only. */
#ifndef WF_PRIM_PRIM_H
#define WF_PRIM_PRIM_H

#include "defs/elem.def"
#include "defs/fold.def"
#include "run/device.h"

struct prim_span { /* an element of type TEXT: bytes of the array's `bytes` */
    u64 offset, length;
};

#define X(A, name, type, bytes, kind) ELEM_##name,
enum elem { WF_ELEMS(X, ) ELEM_COUNT };
#undef X
#define X(A, name, identity, expr) FOLD_##name,
enum fold { WF_FOLDS(X, ) FOLD_COUNT };
#undef X

extern const char *const elem_names[ELEM_COUNT];
extern const i8 elem_bytes[ELEM_COUNT];
extern const char elem_kinds[ELEM_COUNT]; /* 'U', 'I', 'F', 'W', 'T', 'B': see elem.def */
extern const char *const fold_names[FOLD_COUNT];
bool fold_has(enum fold fold, enum elem type);

struct prim_array {
    u8 type; /* enum elem */
    void *data;
    i64 count;
    const u8 *bytes; /* TEXT */
    i64 byte_count;
};

struct prim_block { /* memory of a device */
    void *addr;
    i64 bytes;
    void *handle;
};

enum { PRIM_STAGES = 5 };
struct prim_job {
    struct exec *x;
    const struct device *dev;
    u8 *work; /* on the device */
    i64 work_bytes;
    i64 work_used, work_peak;
    b8 measuring;
    b8 inside;       /* of a step: see prim_job_inside */
    b8 begun, timed; /* the start of the work, the end of what there is so far is recorded */
    i64 device_ns;
    i64 launches;
    i64 bytes_moved;
    i64 stages[PRIM_STAGES]; /* of a profiled join: see api/prim.c */
    i64 cub;                 /* 1: CUB did the work */
    struct kernel_use kernel;
};
enum { PRIM_ALIGN = 256 };
/* A piece of the workspace, aligned to PRIM_ALIGN; NULL while measuring, and only then: a body
 * never takes more than it took then. */
void *prim_take(struct prim_job *job, i64 bytes);
static inline i64 prim_mark(const struct prim_job *job) {
    return job->work_used;
}
static inline void prim_back(struct prim_job *job, i64 mark) {
    job->work_used = mark;
}

/* A job inside a step of the engine, with the engine's arrays: nothing begins or ends it. The step
 * holds the device, waits where it must, and gives the workspace: after a call that measures the
 * job knows its work_peak, and prim_job_go is given so much, which must stay until the device is
 * done with it. */
static inline struct prim_job prim_job_inside(struct exec *x, const struct device *dev) {
    return (struct prim_job){.x = x, .dev = dev, .inside = 1, .measuring = 1};
}
static inline void prim_job_go(struct prim_job *job, void *work) {
    job->work = work;
    job->work_bytes = job->work_peak;
    job->work_used = 0;
    job->measuring = 0;
}

/* Families of primitives, a header and a struct of bodies each; NULL members are not supported by
 * the device (0A000). */
struct prim_move;    /* prim/move.h: scan, map, gather, scatter, reduction, compaction, histogram */
struct prim_order;   /* prim/order.h: split, sort, merge, search, sets */
struct prim_match;   /* prim/match.h: joins */
struct prim_algebra; /* prim/algebra.h: operators on relations */

/* What a device supplies; NULL members are not supported there (0A000). */
struct prim_class {
    FALLIBLE (*alloc)(const struct device *dev, struct exec *x, i64 bytes, struct prim_block *out);
    void (*free)(const struct device *dev, struct exec *x, struct prim_block *block);
    /* Whether the block's contents went with a reset of the device; NULL = never. */
    bool (*lost)(const struct device *dev, const struct prim_block *block);
    /* `there`: the address is the device's. */
    FALLIBLE(*copy)
    (const struct device *dev, struct exec *x, void *dst, bool dst_there, const void *src,
     bool src_there, i64 bytes);
    /* Around everything a job does, measuring included; NULL = nothing to do. end gets the status
     * so far and gives the final one. */
    FALLIBLE (*begin)(struct prim_job *job);
    wf_status (*end)(struct prim_job *job, wf_status status);
    const struct prim_move *move;
    const struct prim_order *order;
    const struct prim_match *match;
    const struct prim_algebra *algebra;
};
/* ERR_NOT_SUPPORTED naming the primitive and the device. */
FALLIBLE prim_refuse(const struct prim_job *job, const char *what);

#endif
