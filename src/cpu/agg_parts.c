/* agg_parts.c: partial aggregation states set aside by partition, to be merged part by part.
 *
 * Every worker has its own lists of blocks, one list a partition, so that nobody waits while rows
 * come in; at the end a partition's blocks of all workers are merged in a table that fits the
 * cache. Blocks come from slabs that grow, as an allocation for each would cost more than filling
 * it. Where memory is short blocks are filled in a part of it and written to temporary space as a whole, and
 * read back so: a page for every partition that is written to would be in memory otherwise, time and
 * again. */
#include "cpu/agg_parts.h"

enum {
    SLAB_BYTES_MIN = 1 << 16,
    SLAB_BYTES_MAX = 4 << 20,
    STAGE_BLOCKS = 16, /* that memory is asked for at once */
    STAGE_SHARE = 4    /* of the memory that is left: blocks being filled */
};

struct part_slab {
    struct part_slab *next;
    i64 bytes;
    u8 pad[48];
    u8 data[];
};

void parts_init(struct agg_parts *parts, struct memory *mem, i64 stride, i32 workers) {
    memset(parts, 0, sizeof *parts);
    parts->mem = mem;
    parts->stride = stride;
    parts->block_rows = AGG_BLOCK_ROWS;
    parts->workers = MAX_OF(workers, 1);
}

static void free_slabs(struct memory *mem, struct part_slab *slab) {
    while (slab) {
        struct part_slab *next = slab->next;
        i64 bytes = slab->bytes;
        mem_pass(mem, slab, bytes);
        mem_free(mem, slab, bytes);
        slab = next;
    }
}

void parts_fini(struct agg_parts *parts) {
    free_slabs(parts->mem, parts->slabs);
    free_slabs(parts->mem, parts->stages);
    parts->slabs = parts->stages = NULL;
    parts->spare = parts->full = NULL;
    memset(parts->heads, 0, sizeof parts->heads);
    memset(parts->counts, 0, sizeof parts->counts);
    parts->row_count = 0;
}

i64 parts_block_bytes(const struct agg_parts *parts) {
    i64 rows = parts->block_rows * parts->stride * (i64)sizeof(i64);
    return ALIGN_UP((i64)sizeof(struct part_block) + rows, 64);
}

void parts_spill(struct agg_parts *parts) {
    if (parts->staged || !parts->mem->temp) {
        return;
    }
    i64 room = memory_left(parts->mem) / STAGE_SHARE / AGG_PARTS / parts->workers;
    i64 rows = room / (parts->stride * (i64)sizeof(i64));
    parts->block_rows = MAX_OF(MIN_OF(rows, AGG_SPILLED_ROWS), AGG_SPILLED_LEAST);
    parts->staged = 1;
}

/* A slab in which another block has room becomes the first of the list. */
static bool slab_add(struct agg_parts *parts, i64 bytes) {
    struct part_slab *slab = parts->slabs;
    i64 size = slab ? MIN_OF(slab->bytes * 2, SLAB_BYTES_MAX) : SLAB_BYTES_MIN;
    size = MAX_OF(size, bytes + (i64)sizeof *slab);
    slab = mem_alloc_rest(parts->mem, size);
    if (slab) {
        slab->bytes = size;
        slab->next = parts->slabs;
        parts->slabs = slab;
        parts->slab_used = 0;
    }
    return slab;
}

static struct part_block *block_new(struct agg_parts *parts) {
    i64 bytes = parts_block_bytes(parts);
    struct part_slab *slab = parts->slabs;
    if ((!slab || slab->bytes - (i64)sizeof *slab - parts->slab_used < bytes) &&
        !slab_add(parts, bytes)) {
        return NULL;
    }
    slab = parts->slabs;
    struct part_block *block = (struct part_block *)(void *)(slab->data + parts->slab_used);
    parts->slab_used += bytes;
    return block;
}

/* A block in memory, to be filled; NULL when there is no memory. */
static struct part_block *stage_new(struct agg_parts *parts) {
    i64 bytes = parts_block_bytes(parts);
    if (!parts->spare) {
        i64 size = (i64)sizeof(struct part_slab) + STAGE_BLOCKS * bytes;
        struct part_slab *slab = mem_try(parts->mem, size);
        if (!slab) {
            return NULL;
        }
        slab->bytes = size;
        slab->next = parts->stages;
        parts->stages = slab;
        for (i64 i = STAGE_BLOCKS; i-- > 0;) {
            struct part_block *block = (struct part_block *)(void *)(slab->data + i * bytes);
            block->full = parts->spare;
            parts->spare = block;
        }
    }
    struct part_block *block = parts->spare;
    parts->spare = block->full;
    block->full = block->to = block; /* it is to be set aside, place unknown */
    return block;
}

/* Behind a full block, which has a place aside from now on and goes there when it has been filled. */
static struct part_block *block_behind(struct agg_parts *parts, struct part_block *full) {
    if (parts->slabs && mem_in_temp(parts->mem, parts->slabs)) {
        parts_spill(parts);
    }
    struct part_block *added = parts->staged ? stage_new(parts) : NULL;
    bool staged = added;
    added = added ? added : block_new(parts);
    struct part_block *aside = added && full && full->to ? block_new(parts) : NULL;
    if (!added || (full && full->to && !aside)) {
        return NULL;
    }
    if (!staged) {
        added->full = added->to = NULL;
    }
    added->count = 0;
    added->cap = parts->block_rows;
    added->next = aside ? (u64)(size_t)aside + 1 : (u64)(size_t)full;
    if (aside) {
        full->to = aside;
        full->full = parts->full;
        parts->full = full;
    }
    return added;
}

void parts_settle(struct agg_parts *parts) {
    while (parts->full) {
        struct part_block *block = parts->full;
        parts->full = block->full;
        mem_copy(parts->mem, block->to, block, parts_block_bytes(parts));
        block->full = parts->spare;
        parts->spare = block;
    }
}

const struct part_block *parts_next(const struct agg_parts *parts, const struct part_block *block,
                                    struct part_block *scratch) {
    u64 link = block->next;
    if (!(link & 1)) {
        return (const struct part_block *)(size_t)link;
    }
    mem_copy(parts->mem, scratch, (const void *)(size_t)(link - 1), parts_block_bytes(parts));
    return scratch;
}

i64 *parts_row(struct agg_parts *parts, u64 hash) {
    i64 part = agg_part_of(hash);
    struct part_block *block = parts->heads[part];
    if (!block || block->count == block->cap) {
        struct part_block *added = block_behind(parts, block);
        if (!added) {
            return NULL;
        }
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
        if (parts->full) {
            parts_settle(parts);
        }
    }
    return true;
}
