/* agg_parts.h: partial aggregation states set aside by partition, to be merged part by part. */
#ifndef WF_CPU_AGG_PARTS_H
#define WF_CPU_AGG_PARTS_H

#include "cpu/groups.h"

enum {
    AGG_PART_BITS = 8,
    AGG_PARTS = 1 << AGG_PART_BITS,
    AGG_BLOCK_ROWS = 128,
    AGG_SPILLED_ROWS = 1024, /* of blocks in temporary space: a disk reads more at once */
    AGG_SPILLED_LEAST = 64   /* ... where memory has no room to fill longer ones */
};

/* Rows of one partition: key, words. */
struct part_block {
    u64 next; /* its address; + 1: it lies aside, see parts_next */
    i64 count, cap;
    struct part_block *full; /* of those to be set aside: the next one, */
    struct part_block *to;   /* and where it goes */
    i64 rows[];
};

struct part_slab;
struct agg_parts {
    struct memory *mem;
    i64 stride;
    i64 block_rows; /* of blocks to come */
    i32 workers;
    i64 row_count;
    struct part_block *heads[AGG_PARTS]; /* the one being filled first */
    i64 counts[AGG_PARTS];               /* rows of each: nobody walks through blocks for that */
    struct part_slab *slabs;
    i64 slab_used;
    /* Spilling: blocks are filled in memory and set aside when they are full. */
    b8 staged;
    struct part_slab *stages;
    struct part_block *spare, *full;
};

/* workers: how many there are that do the same. */
void parts_init(struct agg_parts *parts, struct memory *mem, i64 stride, i32 workers);
void parts_fini(struct agg_parts *parts);
/* From now on memory is short: blocks in it are filled and go to temporary space. */
void parts_spill(struct agg_parts *parts);
/* Where the row of a key goes; NULL when memory is refused. The caller fills it, key included, before it
 * calls parts_settle. */
i64 *parts_row(struct agg_parts *parts, u64 hash);
/* Rows that were asked for are filled: full blocks may go. */
void parts_settle(struct agg_parts *parts);
/* The block behind one; of those that lie aside a copy in `scratch`, which has room for parts_block_bytes. */
const struct part_block *parts_next(const struct agg_parts *parts, const struct part_block *block,
                                    struct part_block *scratch);
i64 parts_block_bytes(const struct agg_parts *parts);
/* All groups of a table; false when memory is refused. */
bool parts_add_groups(struct agg_parts *parts, const struct groups *g);

static inline i64 agg_part_of(u64 hash) {
    return (i64)(hash >> (64 - AGG_PART_BITS));
}

#endif
