/* kmatch.h: arguments of the kernels of joins; compiles as C11 and as CUDA C. Pointers are
 * addresses on the device; a position is a place in a side's arrays as the algorithm has them. */
#ifndef WF_DEFS_KMATCH_H
#define WF_DEFS_KMATCH_H

#include "base/word.h"

enum {
    MATCH_THREADS = 256,
    MATCH_ITEMS = 8, /* probing rows of a thread */
    MATCH_TILE = MATCH_THREADS * MATCH_ITEMS,
    PART_THREADS = 512,
    PART_ITEMS = 4,
    PART_TILE = PART_THREADS * PART_ITEMS,
    PART_SLOTS_MOST = 8192, /* of a table in a block's shared memory */
    PART_SORT_MAX = 4096,
    UNIT_ROWS = 1 << 15, /* probing rows of a part that one block takes at once */
    SEARCH_THREADS = 256,
    SEARCH_TILE = 1024,
    LOOP_THREADS = 256,
    LOOP_ITEMS = 4,
    LOOP_CHUNK = 1024,
    TREE_SHARED = 2048,
    SAMPLE_ROWS = 512
};

enum match_report {
    MATCH_TOTAL,
    MATCH_DUPLICATE,
    MATCH_OVER, /* a part does not fit */
    MATCH_UNITS,
    MATCH_LOW,      /* the smallest word */
    MATCH_HIGH_NOT, /* the complement of the greatest */
    MATCH_REPORT
};

enum match_from { MATCH_COL, MATCH_ROW, MATCH_VALUE };
struct kmatch_col {
    const void *in; /* of ROW: row numbers by position, NULL = the position itself */
    void *out;
    u32 bytes;
    u8 from;  /* enum match_from */
    u8 built; /* which side's position */
    u16 pad;
};

struct kmatch_out {
    struct kmatch_col col[19];
    u32 count;
    u32 pad;
    const u32 *list[2]; /* positions of the probing and of the built side's places */
};

struct kmatch_unit {
    u32 part, chunk;
};

struct kmatch {
    const void *probe, *built; /* keys */
    i64 probe_count, built_count;
    u64 flip, width;
    u32 kind;
    u32 sequential;
    u64 *report;
    /* table */
    void *slots;
    u32 *bits;
    u64 slot_count, lo, empty;
    const void *values; /* what goes into the table, of a part 4 bytes wide; NULL = positions */
    u32 values_wide;    /* ... of 8 bytes */
    u32 dense;
    /* runs */
    const void *sorted;
    u32 *length;
    u32 *start;
    u64 *offset;
    /* parts */
    const u64 *parts[2]; /* probing, built */
    struct kmatch_unit *units;
    void *out_sorted;
    u32 *out_list;
    u32 part_bits;
    /* tree */
    u32 levels;
    const void *level[8];
    i64 level_count[8];
    /* the result */
    i64 room;
    i64 first, rows; /* the window */
    u32 *tile_rows;
    struct kmatch_out out;
};

struct kmatch_level {
    const void *in;
    void *out;
    i64 in_count, out_count;
};

struct kmatch_sample {
    const void *keys;
    u64 *out;
    i64 count;
    u64 flip;
};

#endif
