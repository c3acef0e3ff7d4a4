/* move.h: primitives that compute or move elements without ordering them. */
#ifndef WF_PRIM_MOVE_H
#define WF_PRIM_MOVE_H

#include "defs/ops.h"
#include "prim/prim.h"

/* A map: operands have `count` elements or, for all, one. */
struct prim_map {
    u16 code;
    i32 arity;
    struct prim_array out;
    struct prim_array in[3];
    i64 count;
};

/* A sequence of words; a fill when step is 0. `wide` is the high word of 16-byte elements. */
struct prim_series {
    struct prim_array out;
    u64 first, wide, step;
};

/* Which rows a compaction keeps. Comparisons are a range of ordered words: see prim_order_word. */
enum keep_kind {
    KEEP_FLAGS,   /* by is BOOL: those not 0 */
    KEEP_COMPARE, /* lo <= word of by <= hi, or, negated, not */
    KEEP_HEADS    /* by differs from the row before; the first row too */
};
struct prim_keep {
    enum keep_kind kind;
    b8 negate;
    struct prim_array by;
    u64 lo[2], hi[2]; /* the low word first */
};
enum { COMPACT_COLUMNS = 8 };
struct prim_compact {
    const char *what; /* for messages; NULL = "compaction" */
    struct prim_keep keep;
    b8 ordered;
    i32 column_count;
    struct prim_array out[COMPACT_COLUMNS];
    struct prim_array in[COMPACT_COLUMNS]; /* data NULL: row numbers */
    i64 room;                              /* rows of the shortest output */
    i64 *out_count;                        /* host */
};

struct prim_segments {
    enum fold fold;
    struct prim_array out, in;
    const i64 *offsets; /* segment_count + 1, on the device */
    i64 segment_count;
};

struct prim_bins {
    struct prim_array out, in;
    i64 first, width;
};

struct prim_move {
    FALLIBLE (*map)(struct prim_job *job, const struct prim_map *map);
    FALLIBLE (*series)(struct prim_job *job, const struct prim_series *series);
    FALLIBLE(*reduce)
    (struct prim_job *job, enum fold fold, struct prim_array out, struct prim_array in);
    FALLIBLE (*segments)(struct prim_job *job, const struct prim_segments *segments);
    FALLIBLE(*scan)
    (struct prim_job *job, enum fold fold, bool inclusive, struct prim_array out,
     struct prim_array in);
    FALLIBLE (*compact)(struct prim_job *job, const struct prim_compact *compact);
    FALLIBLE(*gather)
    (struct prim_job *job, struct prim_array out, struct prim_array in, struct prim_array index,
     i32 passes);
    FALLIBLE(*scatter)
    (struct prim_job *job, struct prim_array out, struct prim_array in, struct prim_array index,
     i32 passes);
    FALLIBLE (*histogram)(struct prim_job *job, const struct prim_bins *bins);
};
extern const struct prim_move cpu_prim_move, gpu_prim_move_class;

/* out[i] = opcode of operands' i-th elements; the smallest index that faults raises. */
FALLIBLE prim_map(struct prim_job *job, const struct prim_map *map);
FALLIBLE prim_series(struct prim_job *job, const struct prim_series *series);
/* out[0] = fold of in; sums of floats are exact. */
FALLIBLE prim_reduce(struct prim_job *job, enum fold fold, struct prim_array out,
                     struct prim_array in);
/* out[s] = fold of in[offsets[s] .. offsets[s + 1]); sums of floats are exact. */
FALLIBLE prim_reduce_segments(struct prim_job *job, const struct prim_segments *segments);
/* One element per run of equal keys; *out_count as for prim_compact. */
FALLIBLE prim_reduce_runs(struct prim_job *job, enum fold fold, struct prim_array out_keys,
                          struct prim_array out, struct prim_array keys, struct prim_array in,
                          i64 *out_count);
/* out[i] = fold of in[0 .. i), with `inclusive` of in[0 .. i]. Both of one type that the fold has;
 * they may be the same. */
FALLIBLE prim_scan_array(struct prim_job *job, enum fold fold, bool inclusive,
                         struct prim_array out, struct prim_array in);
/* ERR_PROGRAM_LIMIT when more rows are kept than there is room; *out_count tells how many. */
FALLIBLE prim_compact(struct prim_job *job, const struct prim_compact *compact);
FALLIBLE prim_gather(struct prim_job *job, struct prim_array out, struct prim_array in,
                     struct prim_array index, i32 passes);
FALLIBLE prim_scatter(struct prim_job *job, struct prim_array out, struct prim_array in,
                      struct prim_array index, i32 passes);
FALLIBLE prim_histogram(struct prim_job *job, const struct prim_bins *bins);

/* An element as a word whose unsigned order is the type's: floats with one zero and one NaN. Types
 * of up to 8 bytes; the value may lie at any address. */
u64 prim_order_word(enum elem type, const void *value);
/* What turns bits of an integer into that word. */
static inline u64 prim_order_flip(enum elem type) {
    return elem_kinds[type] != 'I' ? 0 : elem_bytes[type] == 8 ? 1ULL << 63 : 1ULL << 31;
}
enum prim_comparison { COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };
/* The rows whose element of `by` compares so with *value. */
struct prim_keep prim_keep_compare(struct prim_array by, enum prim_comparison compare,
                                   const void *value);

/* Bins over ordered words: a word below `start` is in bin `low` (~0: in none), another one in bin
 * `base` + (word - start) / width; bins from the count on hold nothing. */
struct prim_binning {
    u64 start, width, low, base;
};
struct prim_binning prim_binning(const struct prim_bins *bins);

/* The error of the smallest index << 8 | fault; ~0 = none. */
FALLIBLE prim_map_fault(const struct prim_job *job, u64 fault);
/* 54000: more results than room. */
FALLIBLE prim_no_room(const struct prim_job *job, const char *what, i64 count, i64 room);
/* 22023 for an index that lies outside an array. */
FALLIBLE prim_bad_index(const struct prim_job *job, i64 at, i64 count);

/* The register kind of elements; KIND_NONE: no opcode takes them. */
enum kind prim_elem_kind(enum elem type);

/* An exact sum of floats: limb c holds multiples of 2^(32 c - 1074). Adding limbs of other sums is
 * all that merging takes. */
enum {
    FSUM_LIMBS = 68,
    FSUM_NAN = FSUM_LIMBS, /* how many of each were met */
    FSUM_PLUS,             /* infinities */
    FSUM_MINUS,
    FSUM_WORDS
};
/* The sum, rounded once to the type, to `out`; a fault when it is too large, else 0. */
u8 prim_fsum_round(const i64 *words, enum elem type, void *out);
/* Raises a fault, if it is one. */
FALLIBLE prim_fsum_fault(const struct prim_job *job, u8 fault);

#endif
