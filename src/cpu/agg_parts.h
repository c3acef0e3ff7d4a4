/* agg_parts.h: partial aggregation states set aside by partition, to be merged part by part. */
#ifndef WF_CPU_AGG_PARTS_H
#define WF_CPU_AGG_PARTS_H

#include "cpu/groups.h"

enum {
    AGG_PART_BITS = 8,
    AGG_PARTS = 1 << AGG_PART_BITS,
    AGG_BLOCK_ROWS = 128,
    AGG_SPILLED_ROWS = 1024 /* of blocks in temporary space: a disk reads more at once */
};

/* Rows of one partition: key, words. */
struct part_block {
    struct part_block *next;
    i64 count, cap;
    i64 rows[];
};

struct part_slab;
struct agg_parts {
    struct memory *mem;
    i64 stride;
    i64 block_rows; /* of blocks to come */
    i64 row_count;
    struct part_block *heads[AGG_PARTS]; /* the one being filled first */
    i64 counts[AGG_PARTS];               /* rows of each: nobody walks through blocks for that */
    struct part_slab *slabs;
    i64 slab_used;
};

void parts_init(struct agg_parts *parts, struct memory *mem, i64 stride);
void parts_fini(struct agg_parts *parts);
/* Where the row of a key goes; NULL when memory is refused. The caller fills it, key included. */
i64 *parts_row(struct agg_parts *parts, u64 hash);
/* All groups of a table; false when memory is refused. */
bool parts_add_groups(struct agg_parts *parts, const struct groups *g);

static inline i64 agg_part_of(u64 hash) {
    return (i64)(hash >> (64 - AGG_PART_BITS));
}

#endif
