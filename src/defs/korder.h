/* korder.h: arguments of the kernels that order elements; compiles as C11 and as CUDA C. Pointers
 * are addresses on the device. */
#ifndef WF_DEFS_KORDER_H
#define WF_DEFS_KORDER_H

#include "base/word.h"

#include "defs/kalgebra.h"

/* How keys compare: see struct order in prim/order.h. */
struct korder {
    u64 flip_low, flip_high;
    const u8 *bytes; /* TEXT */
    u32 ignore_bits; /* low bits that do not count */
    u32 descending;  /* TEXT */
};

enum { SPLIT_PASSES = 16, SPLIT_COUNT_THREADS = 256, SPLIT_COUNT_VECS = 4 };

/* Partition numbers: the bits of a key, of its hash, or a search among splitters. */
struct kparts {
    struct korder order;
    const void *splitters;
    i64 splitter_count;
};

struct ksplit_count {
    struct kparts parts;
    const void *keys;
    i64 count;
    u64 *counts; /* [pass][digit]; zeroed */
    u32 passes;
    u32 pad;
    u32 shifts[SPLIT_PASSES];
    u32 masks[SPLIT_PASSES];
};

struct ksplit_bins {
    u64 *counts; /* [pass][digit] become places */
    u64 *starts; /* NULL, or of the first pass's digits up to and with `parts` */
    i64 parts;
};

struct ksplit {
    struct kparts parts;
    const void *keys, *payload1, *payload2;
    void *out_keys, *out_payload1, *out_payload2;
    i64 count;
    const u64 *bins; /* where each digit goes */
    u64 *next_bins;  /* where it goes on after these rows; NULL = there are no more */
    u32 *state;      /* [tile][digit] */
    u32 *ticket;
    u32 shift, mask;
};

/* The unstable split: places are handed out by cursors. A second pass works within the parts of the
 * first, each cut into tiles of its own. */
struct kloose {
    struct kparts parts;
    const void *keys, *payload1, *payload2;
    void *out_keys, *out_payload1, *out_payload2;
    i64 count;
    u64 *cursors;      /* [part of the first pass][digit] */
    const u64 *coarse; /* second pass: where the parts of the first start; else NULL */
    const u64 *tiles;  /* second pass: the first tile of each part, and the end */
    i64 coarse_parts;
    u32 shift, mask;
};

struct kloose_bins {
    u64 *counts;       /* [block][digit] become cursors */
    const u64 *coarse; /* where a block's places begin; NULL = at 0 */
    u64 *starts;       /* NULL, or places up to and with number `parts` */
    u64 *tiles;        /* NULL, or [digit] and one more: tiles before it */
    i64 parts;
    u32 digits, tile_rows;
};

struct kloose_fold {
    const u64 *counts; /* [part][digit] */
    u64 *out;
    i64 parts;
    u32 digits;
    u32 pad;
};

struct ksplit_starts {
    struct kparts parts;
    const void *keys;
    i64 count;
    u64 *starts;
    i64 part_count;
    u32 shift;
    u32 mask;
};

enum { TEXT_PREFIX_THREADS = 256 };
struct kspans {
    const void *spans;
    i64 count;
    const u8 *bytes;
    u64 byte_count;
    u64 *prefixes; /* of k_text_prefix: out, of k_text_ties: in */
    u32 *flag;
};

/* --- merges, searches, runs, sets ----------------------------------------------------------- */

enum { PATH_THREADS = 256, BITONIC_THREADS = 512, BITONIC_TILE = 2048 };

/* A merge of a and b; or with `run`, of neighbouring runs of so many elements of a, pair by pair.
 */
struct kmerge {
    struct korder order;
    const void *a, *b, *a_payload, *b_payload;
    void *out, *out_payload;
    i64 a_count, b_count;
    i64 run;
    i64 *cuts; /* per tile: how many elements of its pair's first run come before it */
};

struct ksearch {
    struct korder order;
    const void *needles, *among;
    void *out;
    i64 needle_count, among_count;
    i64 *cuts;
    i64 add; /* to every answer */
};

struct kruns {
    struct korder order;
    const void *keys;
    i64 count;
    void *out_keys, *out_starts, *out_counts;
    i64 room;
    u32 starts_wide, counts_wide; /* 64 bits rather than 32 */
    u64 *state;
    u32 *ticket;
    u64 *total;
    i64 runs; /* k_run_counts: how many there are */
};

struct kset {
    struct korder order;
    const void *a, *b;
    void *out;
    struct krel_pages a_pages, b_pages; /* SET_PAGES */
    i64 a_count, b_count, room;
    i64 *cuts;    /* per tile: elements of a before it * 2 + one more of b than fits the diagonal */
    void *bounds; /* per cut: the least element behind it, the greatest before it */
    u64 *state;
    u32 *ticket;
    u64 *total;
};

/* Numbers for texts: a table of those of r, the smallest row of each. */
struct knumber {
    const void *held; /* spans of r */
    const u8 *held_bytes;
    u64 *slots; /* half of a hash << 32 | row; all bits set when empty */
    u64 mask;
    const void *spans; /* of r or s */
    const u8 *bytes;
    i64 count;
    u32 *out;
};

struct kbitonic {
    struct korder order;
    void *keys, *payload;
    i64 count;
    i64 run, step; /* of k_bitonic_step; step 0 = mirrored */
};

/* A level of quick sort (kernels/quick.h). */
enum { QUICK_TILE = 4096, QUICK_PART_ROWS = BITONIC_TILE / 4 };
struct kquick_part {
    u64 first, count;
    u64 tile;   /* of the list's tiles, its first */
    u32 bucket; /* where its splitters lie, and with twice the number its cursors */
    u32 fan;    /* one more than its splitters */
};
struct kquick_done { /* at most a tile */
    u64 first;
    u32 count, is_equal;
};
enum { QUICK_NEXT, QUICK_BUCKET, QUICK_DONE, QUICK_COUNTERS }; /* of `counters` */
struct kquick {
    struct korder order;
    const void *in, *payload;
    void *to, *to_payload;   /* where elements are brought, */
    void *out, *out_payload; /* and those that are done */
    const struct kquick_part *parts;
    struct kquick_part *next;
    struct kquick_done *done;
    void *splitters;
    u64 *cursors;  /* of buckets; zeroed */
    u64 *counters; /* parts of the next list and their tiles << 24, its buckets, pieces done */
    u64 tile_count;
    u32 part_count;
    u32 least;         /* of k_quick_open: larger parts than this are listed, */
    const u64 *starts; /* which begin here, and end where the next one does, */
    i64 start_count;   /* so many */
};

/* Row numbers: written, followed. */
struct krows {
    const void *in;
    const u64 *rows;
    void *out;
    i64 count;
};

#endif
