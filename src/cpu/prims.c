/* prims.c: memory of the CPU for primitives, and the primitives that work on the engine's own
 * indexes.
 *
 * A build is STEP_BUILD's over one chunk. A probe looks up blocks of keys as tasks, each a batch
 * whose slots are asked for before any is read. */
#include "cpu/index_int.h"
#include "prim/match.h"
#include "prim/move.h"
#include "prim/order.h"

enum { PROBE_ROWS = 1 << 14, BATCH = 256 };

static FALLIBLE build(struct exec *x, struct index *index, const i64 *key, const b8 *nulls, i64 n) {
    struct column col = {KIND_I64, (void *)(size_t)key, (b8 *)(size_t)nulls};
    struct chunk chunk = {.rows = n, .cols = &col, .col_count = 1, .mem = x->mem};
    struct chunk *chunks[1] = {&chunk};
    return index_over(x, index, chunks, 1, 0);
}

struct probe {
    const struct index *index;
    const i64 *key;
    i64 *out;
    i64 n;
};

static i64 first_of(const struct index *index, u32 lo, u32 hi) {
    bool listed = !index->unique && index->rows;
    return lo == hi ? -1 : listed ? (i64)index->rows[lo] : (i64)lo;
}

static i64 rank_row(const struct index *index, u64 slot) {
    const struct rank_block *block = &index->blocks[slot >> 6];
    if (!(block->bits >> (slot & 63) & 1)) {
        return -1;
    }
    u64 below = block->bits & ((1ULL << (slot & 63)) - 1);
    u64 r = block->before + (u64)__builtin_popcountll(below);
    if (index->unique) {
        return index->rows ? (i64)index->rows[r] : (i64)r;
    }
    return first_of(index, index->heads[r], index->heads[r + 1]);
}

static i64 dense_row(const struct index *index, i64 key) {
    u64 slot = (u64)key - (u64)index->key_lo;
    if (slot >= (u64)index->slot_count) {
        return -1;
    }
    if (index->form == INDEX_RANK) {
        return rank_row(index, slot);
    }
    return index->unique ? (i64)index->heads[slot] - 1
                         : first_of(index, index->heads[slot], index->heads[slot + 1]);
}

static i64 hashed_row(const struct index *index, i64 key, u64 at) {
    const struct hash_slot *slot = &index->slots[at];
    while (slot->key != key && slot->lo != slot->hi) {
        at = (at + 1) & ((u64)index->slot_count - 1);
        slot = &index->slots[at];
    }
    return first_of(index, slot->lo, slot->hi);
}

static void probe_task(void *arg, i64 t, i32 worker) {
    UNUSED(worker);
    const struct probe *p = arg;
    u64 at[BATCH];
    i64 end = MIN_OF((t + 1) * PROBE_ROWS, p->n);
    for (i64 i = t * PROBE_ROWS; i < end; i += BATCH) {
        i64 n = MIN_OF(end - i, BATCH);
        if (p->index->form != INDEX_HASH) {
            for (i64 j = 0; j < n; j++) {
                p->out[i + j] = dense_row(p->index, p->key[i + j]);
            }
            continue;
        }
        for (i64 j = 0; j < n; j++) {
            at[j] = slot_of(p->index, p->key[i + j]);
            __builtin_prefetch(&p->index->slots[at[j]]);
        }
        for (i64 j = 0; j < n; j++) {
            p->out[i + j] = hashed_row(p->index, p->key[i + j], at[j]);
        }
    }
}

static FALLIBLE probe(struct exec *x, i64 *out_row, const struct index *index, const i64 *key,
                      i64 n) {
    struct probe p = {index, key, out_row, n};
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
                                     .engine = &engine};
