/* prims.c: memory of the CPU for primitives, and the primitives that work on the engine's own
 * indexes.
 *
 * A build is STEP_BUILD's over one chunk. A probe looks up blocks of keys as tasks, a batch at a
 * time (lookup.c). */
#include "cpu/index_int.h"
#include "prim/algebra.h"
#include "prim/match.h"
#include "prim/move.h"
#include "prim/order.h"

enum { PROBE_ROWS = 1 << 14, BATCH = 512 };

static FALLIBLE build(struct exec *x, struct index *index, const i64 *key, const b8 *nulls, i64 n) {
    struct column col = {KIND_I64, (void *)(size_t)key, (b8 *)(size_t)nulls};
    struct chunk chunk = {.rows = n, .cols = &col, .col_count = 1, .mem = x->mem};
    struct chunk *chunks[1] = {&chunk};
    return index_over(x, index, chunks, 1, 0);
}

struct probe {
    const struct index *index;
    const struct vec_table *vec;
    const i64 *key;
    i64 *out;
    i64 n;
};

static void probe_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct probe *p = arg;
    enum { ROOM = BATCH + LOOKUP_SLACK };
    u64 hash[ROOM];
    i64 passed[ROOM];
    u32 at[ROOM], lo[ROOM], hi[ROOM];
    b8 found[ROOM];
    const struct lookup l = {p->vec, hash, passed, at};
    struct lookup_count count = {0};
    i64 end = MIN_OF((t + 1) * PROBE_ROWS, p->n);
    for (i64 i = t * PROBE_ROWS; i < end; i += BATCH) {
        i64 n = MIN_OF(end - i, BATCH);
        i64 *out = p->out + i;
        if (p->index->unique) {
            lookup_rows(&l, &count, p->index, p->key + i, n, out, found);
        } else {
            lookup_runs(&l, &count, p->index, p->key + i, n, lo, hi);
            for (i64 j = 0; j < n; j++) {
                found[j] = lo[j] != hi[j];
                out[j] = found[j] ? lookup_first(p->index, lo[j]) : 0;
            }
        }
        for (i64 j = 0; j < n; j++) {
            out[j] = found[j] ? out[j] : -1;
        }
    }
}

static FALLIBLE probe(struct exec *x, i64 *out_row, const struct index *index, const i64 *key,
                      i64 n) {
    struct probe p = {index, vec_table_best(), key, out_row, n};
    tasks_run(x, (n + PROBE_ROWS - 1) / PROBE_ROWS, probe_task, &p);
    return exec_check(x);
}

static const struct prim_engine engine = {build, probe};

static FALLIBLE memory_alloc(const struct device *dev, struct exec *x, i64 bytes,
                             struct prim_block *out) {
    UNUSED(dev);
    i64 size = bytes + PRIM_ALIGN;
    u8 *data = mem_alloc(x->mem, size);
    if (!data) {
        return memory_refused(x->mem, x->err, size);
    }
    *out = (struct prim_block){data + (-(size_t)data & (PRIM_ALIGN - 1)), bytes, data};
    return ERR_OK;
}

static void memory_free(const struct device *dev, struct exec *x, struct prim_block *block) {
    UNUSED(dev);
    if (block->handle) {
        mem_free(x->mem, block->handle, block->bytes + PRIM_ALIGN);
    }
    block->handle = NULL;
}

static FALLIBLE memory_copy(const struct device *dev, struct exec *x, void *dst, bool dst_there,
                            const void *src, bool src_there, i64 bytes) {
    UNUSED(dev);
    UNUSED(dst_there);
    UNUSED(src_there);
    memmove(dst, src, (size_t)bytes);
    return exec_check(x);
}

const struct prim_class cpu_prims = {.alloc = memory_alloc,
                                     .free = memory_free,
                                     .copy = memory_copy,
                                     .match = &cpu_prim_match,
                                     .move = &cpu_prim_move,
                                     .order = &cpu_prim_order,
                                     .algebra = &cpu_prim_algebra,
                                     .engine = &engine};
