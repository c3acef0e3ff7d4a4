/* kalgebra.h: what host and device share about operators on packed tuples: shifts and masks that
 * stand for fields, kinds and stages of joins, arguments of the kernels; compiles as C11 and as
 * CUDA C. Pointers are addresses on the device. */
#ifndef WF_DEFS_KALGEBRA_H
#define WF_DEFS_KALGEBRA_H

#include "base/word.h"

enum { REL_FIELDS = 16, REL_TERMS = 16 };

/* A run of bits of a word to a run of another: ((x >> from) & mask) << to. */
struct rel_move {
    u64 mask_low, mask_high;
    u32 from, to;
};
struct rel_moves {
    struct rel_move move[REL_FIELDS];
    u32 count;
    u32 pad;
};

/* Kept where (field - low <= span) != inverted, all of a clause, any clause; `last` ends one. */
struct rel_term {
    u64 mask, low, span;
    u32 shift;
    u8 inverted, last;
    u8 pad[2];
};
struct rel_terms {
    struct rel_term term[REL_TERMS];
    u32 count;
    u32 pad;
};

/* What the words of a pair give: the bits of x, and behind them those of y; of an x alone with
 * `no_y`, of a y alone its key and its bits with `no_x`. */
struct rel_combine {
    struct rel_move x, y, key; /* key: of a y */
    u64 no_x_low, no_x_high, no_y_low, no_y_high;
    u32 key_shift;
    u32 pad;
};

/* What a join gives out. */
enum rel_kind_bits {
    REL_PAIRS = 1,   /* an x with each of its partners */
    REL_X_ONCE = 2,  /* an x that has partners, without them */
    REL_X_ALONE = 4, /* an x without partner */
    REL_Y_ALONE = 8
};

enum rel_stage {
    REL_STAGE_MERGE,
    REL_STAGE_BINARY,
    REL_STAGE_BLOCKED,
    REL_STAGE_BRUTE,
    REL_STAGE_HASH,
    REL_STAGE_NETWORK,
    REL_STAGE_COUNT
};

enum rel_reduce_op { REDUCE_COUNT, REDUCE_SUM, REDUCE_MIN, REDUCE_MAX, REDUCE_OPS };

/* Rows in tiles: `tiles` tiles for each page, a dense array is one page. */
struct krel_rows {
    const void *data;
    const u32 *fills; /* NULL: `count` rows, cut into pages of page_rows */
    i64 count;
    i64 page_rows, page_count;
    i64 page_tiles;
};

/* A paged list whose rows are numbered: see kernels/pages.h. */
struct krel_pages {
    const u64 *starts; /* of pages, and one more at the end; NULL: an array */
    i64 page_rows, page_count;
};
struct krel_starts { /* of k_page_counts */
    const u32 *fills;
    u64 *out;
    i64 page_rows, page_count;
};

enum { MAP_THREADS = 256, MAP_VECS = 2, SELECT_THREADS = 256 };
#define SELECT_GROUPS(bytes) ((bytes) == 4 ? 8 : (bytes) == 8 ? 4 : 2) /* of kernels/kept.h */
enum { COARSE_TILES = 64, REDUCE_THREADS = 256 };
enum { EXPAND_ROWS = 1 << 15, JOIN_ROUNDS = 8 }; /* rows of a chunk; most staged rounds of a tile */

/* Places in the counters of an operation. */
enum { REL_TOTAL, REL_TICKET, REL_HEAVY, REL_EXPAND, REL_CYCLES, REL_COUNTERS = 8 };

struct krel_project {
    struct krel_rows in;
    void *out;
    u32 *out_fills;
    struct rel_moves moves;
};

struct krel_select {
    struct krel_rows in;
    void *out;
    u32 *out_fills;
    i64 room; /* rows */
    u64 *state;
    u64 *counters;
    struct rel_terms terms;
};

struct krel_product {
    const void *x;
    const void *y;
    void *out;
    i64 x_count, y_count, out_count;
    struct rel_combine combine;
    struct krel_pages x_pages, y_pages;
};

struct krel_fill {
    u32 *fills;
    i64 page_rows, pages, count;
};

struct krel_heavy { /* a tile whose output is written by chunks */
    u64 tile, chunk;
    u64 base, total;
};

struct krel_join {
    const void *x;
    const void *y;
    i64 x_count, y_count;
    i64 tiles;
    i64 *splits;  /* of x, where each tile starts, and one more */
    i64 *backs;   /* how far before a tile's first y the run starts that its first x matches, times
                   * 2, plus 1 if keys repeat where the tile begins */
    void *bounds; /* per cut: the least word behind it, the greatest before it */
    u64 *state;
    u64 *counters;
    struct krel_heavy *heavy;
    void *out; /* tuples, or positions of x */
    void *out_y;
    i64 room;
    struct rel_combine combine;
    u32 low, down; /* bits of words that come along with keys, bits below them */
    struct krel_pages x_pages, y_pages; /* PAGED */
};

struct krel_reduce {
    const void *in;
    i64 count;
    void *out;
    u64 *values;
    i64 room;
    u64 *state; /* of tiles: groups */
    u64 *open;  /* of tiles: of the group that goes on */
    u64 *counters;
    u64 field_mask;
    u32 field_shift;
    u32 key_shift;
    struct krel_pages pages; /* PAGED */
};

#endif
