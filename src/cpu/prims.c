/* prims.c: memory of the CPU for primitives, and the list of what it has. */
#include "cpu/cpu_int.h"
#include "prim/algebra.h"
#include "prim/match.h"
#include "prim/move.h"
#include "prim/order.h"

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
                                     .algebra = &cpu_prim_algebra};
