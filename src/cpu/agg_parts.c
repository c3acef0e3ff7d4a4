/* agg_parts.c: partial aggregation states set aside by partition, to be merged part by part.
 *
 * Every worker has its own lists of blocks, one list a partition, so that nobody waits while rows
 * come in; at the end a partition's blocks of all workers are merged in a table that fits the
 * cache. Blocks come from slabs that grow, as an allocation for each would cost more than filling
 * it. */
#include "cpu/agg_parts.h"

enum { SLAB_BYTES_MIN = 1 << 16, SLAB_BYTES_MAX = 4 << 20 };

struct part_slab {
    struct part_slab *next;
    i64 bytes;
    u8 pad[48];
    u8 data[];
};

void parts_init(struct agg_parts *parts, struct memory *mem, i64 stride) {
    memset(parts, 0, sizeof *parts);
    parts->mem = mem;
    parts->stride = stride;
    parts->block_rows = AGG_BLOCK_ROWS;
}

void parts_fini(struct agg_parts *parts) {
    while (parts->slabs) {
        struct part_slab *next = parts->slabs->next;
        mem_free(parts->mem, parts->slabs, parts->slabs->bytes);
        parts->slabs = next;
    }
    memset(parts->heads, 0, sizeof parts->heads);
    memset(parts->counts, 0, sizeof parts->counts);
    parts->row_count = 0;
}

static struct part_block *block_new(struct agg_parts *parts) {
    i64 bytes = (i64)sizeof(struct part_block) + parts->block_rows * parts->stride * (i64)sizeof(i64);
    bytes = ALIGN_UP(bytes, 64);
    struct part_slab *slab = parts->slabs;
    if (!slab || slab->bytes - (i64)sizeof *slab - parts->slab_used < bytes) {
        i64 size = slab ? MIN_OF(slab->bytes * 2, SLAB_BYTES_MAX) : SLAB_BYTES_MIN;
        size = MAX_OF(size, bytes + (i64)sizeof *slab);
        slab = mem_alloc_rest(parts->mem, size);
        if (!slab) {
            return NULL;
        }
        slab->bytes = size;
        slab->next = parts->slabs;
        parts->slabs = slab;
        parts->slab_used = 0;
    }
    struct part_block *block = (struct part_block *)(void *)(slab->data + parts->slab_used);
    parts->slab_used += bytes;
    block->count = 0;
    block->cap = parts->block_rows;
    return block;
}

i64 *parts_row(struct agg_parts *parts, u64 hash) {
    i64 part = agg_part_of(hash);
    struct part_block *block = parts->heads[part];
    if (!block || block->count == block->cap) {
        struct part_block *added = block_new(parts);
        if (!added) {
            return NULL;
        }
        added->next = block;
        parts->heads[part] = block = added;
    }
    parts->row_count++;
    parts->counts[part]++;
    return block->rows + block->count++ * parts->stride;
}

bool parts_add_groups(struct agg_parts *parts, const struct groups *g) {
    for (i64 r = 0; r < g->count; r++) {
        const i64 *from = g->rows + r * g->stride;
        i64 *to = parts_row(parts, hash_u64((u64)from[0]));
        if (!to) {
            return false;
        }
        memcpy(to, from, (size_t)g->stride * sizeof(i64));
    }
    return true;
}
