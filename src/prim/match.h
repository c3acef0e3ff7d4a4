/* match.h: joins of plain arrays.
 *
 * One side probes, the other is built on. Most algorithms end in runs: for every probing row a
 * first position among the built rows, in the order the algorithm put them, and how many follow.
 * Sums of the counts then say where each row's matches go, and any window of the result can be
 * written by itself. That is the paper's count - scan - write, and what several passes need. Where
 * keys turn out to be unique a join is rushed: matches are written as they are found, and only when
 * there is no room for them all does counting begin. See decision 0015. */
#ifndef WF_PRIM_MATCH_H
#define WF_PRIM_MATCH_H

#include "prim/prim.h"

enum { JOIN_COLS = 8, JOIN_OUT_COLS = 2 * JOIN_COLS + 3, JOIN_SAMPLE = 512, JOIN_REPORT = 8 };

/* In the order of wf_join_algorithm and wf_join_kind. */
enum join_algorithm {
    JOIN_AUTO,
    JOIN_NINLJ,
    JOIN_INLJ,
    JOIN_SMJ,
    JOIN_RADIX,
    JOIN_PARTITIONED,
    JOIN_PLAIN,
    JOIN_DIRECT,
    JOIN_ALGORITHMS
};
enum join_keep { KEEP_INNER, KEEP_LEFT, KEEP_SEMI, KEEP_ANTI, KEEP_KINDS };
enum { SIDE_R, SIDE_S };

/* Where a value of the result comes from. Positions are those of the algorithm's own order. */
enum join_from {
    FROM_KEY, /* the probing side's key */
    FROM_COL, /* column `col` of `side` */
    FROM_ROW  /* the row number of `side` */
};
struct join_want {
    u8 from; /* enum join_from */
    u8 side; /* SIDE_R or SIDE_S */
    u8 bytes;
    u8 col;
    void *out;
};
struct join_out {
    i64 room;
    i32 count;
    struct join_want want[JOIN_OUT_COLS];
};

/* What is known of the keys before anything is built. Words: keys whose sign bit is turned over, so
 * that they ascend as unsigned numbers. */
struct join_facts {
    u64 lo, hi;                 /* of the built side; lo > hi when it is empty */
    u64 sample[2][JOIN_SAMPLE]; /* of R and S: evenly spread rows, unsorted */
    i32 sampled[2];
};

/* A side as the algorithm arranged it. Position q of the arrays belongs to the row rows[q]; a
 * probing row or a member of a run at p is position list[p]. NULL: the same. */
struct join_arrays {
    const void *keys;
    const void *cols[JOIN_COLS];
    const u32 *rows;
    const u32 *list;
};

/* A table over keys of the built side, all different. Hashed: slots of (key, value), 4 + 4 or 8 + 8
 * bytes; `empty` is a key that is not there. Direct: a bit a key from `lo` on says whether it is
 * there, a value of value_bytes lies in `slots`. The value is a position, or what `col` says. */
struct join_table {
    void *slots;
    u32 *bits; /* direct */
    i64 slot_count;
    u64 lo, empty; /* words */
    i32 value_bytes;
    i32 col;  /* the column that is the value; -1 = positions */
    b8 dense; /* direct: every bit is set */
};

enum { TREE_NODE = 32, TREE_LEVELS = 8 };
struct join_tree { /* level l holds the last key of every node of the level below; 0 is the keys */
    i32 levels;
    const void *keys[TREE_LEVELS];
    i64 count[TREE_LEVELS];
};

struct prim_join {
    u8 algorithm, kind;
    b8 band, sequential;
    b8 want_rows;
    u8 key_type, key_bytes;
    u8 probe; /* the side that probes; the other is built on */
    u64 flip; /* the sign bit of signed keys, else 0 */
    u64 width;
    struct prim_array keys[2];
    struct prim_array texts; /* the keys of R, whose rows stand for them in `keys`; else no data */
    struct prim_array cols[2][JOIN_COLS];
    i32 col_count[2];
    struct join_facts facts;
    b8 known; /* the facts are */
    b8 can_rush;
    b8 counted;
    i64 total;    /* -1: not known yet */
    i64 done;     /* rows given so far */
    struct join_arrays side[2];
    struct join_table table;
    struct join_tree tree;
    void *sorted;  /* keys of the built side in the order of runs */
    u32 *list;     /* and their positions */
    u32 *length;   /* of a run, at its first place */
    u32 *start;    /* of a probing row's run */
    u64 *offset;   /* where its rows of the result begin; one more at the end */
    i32 part_bits; /* of the hash; parts[side] are where parts begin */
    u64 *parts[2];
    void *units; /* the device's */
    u64 *report; /* the device's: JOIN_REPORT words */
};
#define JOIN_BUILT(join) (1 - (join)->probe)
#define JOIN_NONE 0xffffffffu

/* What a row costs, as measured; only their ratios count. Near: what is visited at random fits the
 * cache; far: it does not. */
struct match_costs {
    i32 part_row;    /* to split a row of either side and join its part, with one column, */
    i32 part_column; /* and for every further one */
    i32 near_build, near_probe;
    i32 far_build, far_probe;
};

/* What a device does. Memory is taken by those that say so; the others use what was taken. */
struct prim_match {
    FALLIBLE (*survey)(struct prim_job *job, struct prim_join *join);
    /* The built side's keys into the table. */
    FALLIBLE (*build)(struct prim_job *job, struct prim_join *join, bool *out_duplicates);
    /* Of `sorted`: the first place of every run into the table, and `length`. */
    FALLIBLE (*group)(struct prim_job *job, struct prim_join *join);
    FALLIBLE (*runs_grouped)(struct prim_job *job, struct prim_join *join);
    /* Every part of the built side by itself, into `sorted` and `list`; those too large for the
     * cache or shared memory in chunks. Takes what it needs. */
    FALLIBLE (*sort_parts)(struct prim_job *job, struct prim_join *join);
    FALLIBLE (*runs_parts)(struct prim_job *job, struct prim_join *join);
    /* Takes what it needs. */
    FALLIBLE (*runs_merge)(struct prim_job *job, struct prim_join *join);
    FALLIBLE (*tree_level)(struct prim_job *job, struct prim_join *join, i32 level);
    FALLIBLE (*runs_tree)(struct prim_job *job, struct prim_join *join);
    FALLIBLE (*loop_count)(struct prim_job *job, struct prim_join *join);
    FALLIBLE(*loop_write)
    (struct prim_job *job, struct prim_join *join, const struct join_out *out, i64 first, i64 n);
    /* Takes `units`: a split join shared out. */
    FALLIBLE (*share_out)(struct prim_job *job, struct prim_join *join);
    /* Everything, if it fits: join->total is set, unless keys repeat where they must not, which
     * *out_done = false with a total of -1 says. */
    FALLIBLE(*rush)
    (struct prim_job *job, struct prim_join *join, const struct join_out *out, bool *out_done);
    /* Takes what it needs. */
    FALLIBLE(*expand)
    (struct prim_job *job, struct prim_join *join, const struct join_out *out, i64 first, i64 n);
    FALLIBLE (*fetch)(struct prim_job *job, void *host, const void *src, i64 bytes);
    i64 (*cache_bytes)(const struct prim_job *job); /* what random accesses are cheap within */
    struct match_costs costs;
    b8 chains; /* the tables of a split join hold equal keys, too */
    /* What a part of a split should have at most, on average. */
    i64 (*part_rows)(const struct prim_job *job, const struct prim_join *join);
};
extern const struct prim_match cpu_prim_match, gpu_prim_match_class;

/* Keys that are no integers become some that are equal where they are: floats their bits, with one
 * zero and one NaN; texts the number of the first row of R that has them. In workspace that must
 * stay until the last call. */
FALLIBLE prim_join_words(struct prim_job *job, struct prim_join *join);
/* Chooses the algorithm where it is AUTO, from the facts, and refuses what does not exist. `limit`:
 * bytes, 0 = none. */
FALLIBLE prim_join_choose(struct prim_job *job, struct prim_join *join, i64 limit);
/* The facts; AUTO, PLAIN and DIRECT need them before they are opened. */
FALLIBLE prim_join_survey(struct prim_job *job, struct prim_join *join);
/* Builds; the workspace that this and prim_join_count took must stay until the last call. */
FALLIBLE prim_join_open(struct prim_job *job, struct prim_join *join);
FALLIBLE prim_join_count(struct prim_job *job, struct prim_join *join);
/* The whole result where that can be done without counting. */
FALLIBLE prim_join_rush(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                        bool *out_done);
/* The rows that follow, after prim_join_count. */
FALLIBLE prim_join_write(struct prim_job *job, struct prim_join *join, const struct join_out *out,
                         i64 *out_count);

/* Slots of a hash table of n rows: a power of two, at most half full. */
i64 join_slots(i64 n);
/* What becomes of a probing row with `count` matches: rows of the result. */
static inline u64 join_rows(u32 kind, u64 count) {
    return kind == KEEP_LEFT   ? (count ? count : 1)
           : kind == KEEP_SEMI ? count > 0
           : kind == KEEP_ANTI ? count == 0
                               : count;
}

#endif
