/* warpfox_prim.h: data-parallel primitives, joins and relational algebra on plain arrays.
 *
 * Arrays. A wf_array names elements in memory of the host, or in memory of the GPU obtained from
 * wf_prim_alloc; the library knows its own blocks by their addresses, so both are plain pointers.
 * Host arrays given to the GPU are copied there and back within the call. The CPU takes host
 * memory only. Unless said otherwise arrays of one call must not overlap, an output may have more
 * room than is filled, and what lies behind the filled part is left alone.
 *
 * Devices. Every operation takes the device it runs on. The answer is the same on both, whatever
 * the number of threads; where the order of an output is free, the entry says so. Nothing runs
 * elsewhere in silence: what a device does not have is 0A000 by name.
 *
 * Workspace. Every operation takes a wf_work. NULL: the library takes what it needs from its budget
 * for the length of the call. With data NULL nothing runs and `needed` is set. Otherwise `data`
 * lies on the device of the operation and has `bytes` bytes; too few are 22023, with `needed` set.
 * What an operation needs depends on counts and types only, never on the values.
 *
 * Errors. Calls return a wf_status, 0 is success; the reason is in wf_prim_error(). A failed call
 * leaves outputs unspecified and everything else usable. A count below zero, a type an operation
 * does not have, arrays that overlap or lie on the wrong device: 22023, 42804 or 0A000, checked
 * before anything runs. More results than an output has room for: 54000, and the number is told.
 *
 * Threads. A wf_prim belongs to one thread at a time; several of one database share its workers,
 * its memory budgets and its GPU. wf_prim_cancel may be called from any thread.
 *
 * Cost. n is the number of input elements, p the workers or multiprocessors; "moves" counts bytes
 * read and written in units of the input. */
#ifndef WARPFOX_PRIM_H
#define WARPFOX_PRIM_H

#include "warpfox.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_prim wf_prim;

typedef enum wf_place { WF_ON_CPU, WF_ON_GPU } wf_place;

/* Elements. Floats order by value: -0 equals 0, NaN equals NaN and is greater than all others. */
typedef enum wf_elem {
    WF_ELEM_U32,
    WF_ELEM_I32,
    WF_ELEM_F32,
    WF_ELEM_U64,
    WF_ELEM_I64,
    WF_ELEM_F64,
    WF_ELEM_U128, /* two 64-bit words, the low one first: a tuple packed into one word */
    WF_ELEM_TEXT, /* wf_span: bytes of the array's `bytes`; ordered bytewise */
    WF_ELEM_BOOL  /* one byte: 0 is false, everything else true; written as 0 and 1 */
} wf_elem;

typedef struct wf_span {
    uint64_t offset;
    uint64_t length;
} wf_span;

typedef struct wf_array {
    wf_elem type;
    void *data;
    int64_t count;     /* elements; of an output: the room there is */
    const void *bytes; /* WF_ELEM_TEXT: what the spans refer to; else NULL */
    int64_t byte_count;
} wf_array;

typedef struct wf_work {
    void *data;
    int64_t bytes;
    int64_t needed; /* out */
} wf_work;

/* --------------------------------------------------------------------------------------------- */
/* The library, memory, measurements */

/* Uses the database's workers, budgets and devices, and keeps it alive. Closed by wf_prim_close,
 * which frees what wf_prim_alloc handed out. */
WF_API wf_status wf_prim_open(wf_database *db, wf_prim **out_prim);
WF_API void wf_prim_close(wf_prim *prim);
/* The error of the last failed call; its status is WF_OK when the last call succeeded. */
WF_API const wf_error *wf_prim_error(const wf_prim *prim);
/* The operation that runs, if any, ends with 57014. */
WF_API void wf_prim_cancel(wf_prim *prim);

/* Memory of a device, aligned to 256 bytes, with unspecified contents. 53200 when the budget
 * (memory, gpu_memory) refuses. Freed by wf_prim_free or with the library. */
WF_API wf_status wf_prim_alloc(wf_prim *prim, wf_place place, int64_t bytes, void **out_data);
WF_API void wf_prim_free(wf_prim *prim, void *data); /* NULL is fine */
/* Copies between any two places. */
WF_API wf_status wf_prim_copy(wf_prim *prim, void *dst, const void *src, int64_t bytes);

/* A setting of docs/settings.md for this library's operations, such as gpu_cub; those of scope
 * database cannot be changed. Errors as those of SET. */
WF_API wf_status wf_prim_setting(wf_prim *prim, const char *name, const char *value);

/* About the last operation: "ns" from call to return, "device_ns" on the device without copies of
 * host arrays, "launches" of kernels, "bytes_moved" across the bus, "cub" 1 when CUB did the work;
 * of the kernel with the most threads the "registers" of a thread, "shared_bytes" of a block and
 * "occupancy" in percent (0 on the CPU); -1 for an unknown name. */
WF_API int64_t wf_prim_metric(const wf_prim *prim, const char *name);

/* --------------------------------------------------------------------------------------------- */
/* Map: a computation per element */

/* Operands one to three, out[i] = opcode(in[0][i], in[1][i], in[2][i]). `opcode` is a scalar opcode
 * of docs/opcodes.md, such as "ADDX_I64" or "LT_F32"; it decides the types: b8 is BOOL, i32 is I32
 * or U32, i64 is I64 or U64, i128 is U128, f32, f64, str is TEXT (operands only). The number of
 * elements is that of the longest operand; an operand of one element serves all. An element the
 * opcode refuses (overflow, division by zero, a span outside its bytes) is the opcode's SQL error,
 * of the smallest index. `out` may be an operand of the same width. An unknown opcode is 42883,
 * another type 42804; opcodes that make text or need the host have no map: 0A000. O(n / p), moves
 * operands and result once. */
WF_API wf_status wf_prim_map(wf_prim *prim, wf_place place, const char *opcode, wf_array out,
                             const wf_array *in, int32_t in_count, wf_work *work);

/* All elements of `out` become *value, an element of its type (not TEXT) in host memory. */
WF_API wf_status wf_prim_fill(wf_prim *prim, wf_place place, wf_array out, const void *value,
                              wf_work *work);

/* out[i] = first + i * step, of integers; wraps around at the width of the type. */
WF_API wf_status wf_prim_sequence(wf_prim *prim, wf_place place, wf_array out, int64_t first,
                                  int64_t step, wf_work *work);

/* --------------------------------------------------------------------------------------------- */
/* Reduction and scan */

/* Associative operators (src/defs/fold.def). Addition and multiplication of integers wrap. Floats
 * have MIN and MAX, and in reductions ADD: the sum of floats is exact and rounded once, the same on
 * every device; a scan's would depend on the order of addition. U128, TEXT and BOOL have none. */
typedef enum wf_fold {
    WF_FOLD_ADD,
    WF_FOLD_MUL,
    WF_FOLD_AND,
    WF_FOLD_OR,
    WF_FOLD_XOR,
    WF_FOLD_MIN,
    WF_FOLD_MAX
} wf_fold;

/* out[0] = in[0] op … op in[n - 1], the operator's identity for n = 0. Both of one type. 22003 when
 * a sum of floats is too large. O(n / p), moves n. */
WF_API wf_status wf_prim_reduce(wf_prim *prim, wf_place place, wf_fold fold, wf_array out,
                                wf_array in, wf_work *work);

/* out[s] = in[offsets[s]] op … op in[offsets[s + 1] - 1]: offsets (U64 or I64) are ascending and
 * number one more than the segments; equal ones make an empty segment, which gives the identity.
 * Offsets that descend or leave the array are 22023; a sum of floats that is too large is 22003.
 * Work is balanced whatever the segments' lengths. O((n + segments) / p), moves n + 2 segments; on
 * a GPU, sums of floats move n twice and once more for every 33 bits (256 M elements; less are
 * wider) between the highest and the lowest bit of any of them. */
WF_API wf_status wf_prim_reduce_segments(wf_prim *prim, wf_place place, wf_fold fold, wf_array out,
                                         wf_array in, wf_array offsets, wf_work *work);

/* A run is as many neighbours with equal keys as there are. out_keys gets each run's key, out its
 * reduction, *out_count the number of runs; 54000 when they are more than out or out_keys have room
 * for. Keys of any type but TEXT. */
WF_API wf_status wf_prim_reduce_runs(wf_prim *prim, wf_place place, wf_fold fold, wf_array out_keys,
                                     wf_array out, wf_array keys, wf_array in, int64_t *out_count,
                                     wf_work *work);

/* out[i] = in[0] op … op in[i - 1] (exclusive; out[0] is the operator's identity) or up to in[i]
 * (inclusive). Both of one type; `out` may be `in`. O(n / p), moves 2n. */
WF_API wf_status wf_prim_scan(wf_prim *prim, wf_place place, wf_fold fold, int inclusive,
                              wf_array out, wf_array in, wf_work *work);

/* --------------------------------------------------------------------------------------------- */
/* Compaction */

typedef enum wf_compare {
    WF_COMPARE_EQ,
    WF_COMPARE_NE,
    WF_COMPARE_LT,
    WF_COMPARE_LE,
    WF_COMPARE_GT,
    WF_COMPARE_GE
} wf_compare;

enum { WF_COMPACT_COLUMNS = 8 }; /* at most so many columns at once */

/* Keeps the rows of `in` (columns of any types, in_count of them, as long as `flags`) whose flag
 * (BOOL) is not 0, in the columns `out` of the same types. *out_count: how many they are; 54000
 * when that is more than an output has room for. A column of type U32 or U64 with data NULL and
 * count 0 stands for the numbers of the rows. With `ordered` rows keep their order, else the order
 * is free and differs from run to run; that is faster on the GPU. Outputs of TEXT are spans of
 * the same bytes. O(n / p), moves all columns and the flags once. */
WF_API wf_status wf_prim_compact(wf_prim *prim, wf_place place, int ordered, const wf_array *out,
                                 const wf_array *in, int32_t in_count, wf_array flags,
                                 int64_t *out_count, wf_work *work);

/* The same for the rows whose `key` compares so with *value, an element of key's type (not TEXT) in
 * host memory. `key` may be one of the columns of `in`, and is then read once. */
WF_API wf_status wf_prim_compact_compare(wf_prim *prim, wf_place place, int ordered,
                                         const wf_array *out, const wf_array *in, int32_t in_count,
                                         wf_array key, wf_compare compare, const void *value,
                                         int64_t *out_count, wf_work *work);

/* --------------------------------------------------------------------------------------------- */
/* Gather, scatter, histogram */

/* out[i] = in[index[i]], of one type; index is U32, U64 or I64. An index outside `in` is 22023,
 * naming the first. With `passes` above 1 the source is visited in so many ranges one after the
 * other, each small enough for the cache; 0 lets the library choose. O(n / p), moves 2n and the
 * index, the source by cache lines. */
WF_API wf_status wf_prim_gather(wf_prim *prim, wf_place place, wf_array out, wf_array in,
                                wf_array index, int32_t passes, wf_work *work);

/* out[index[i]] = in[i]; what no index names stays. Of several elements with one index any may end
 * up there. */
WF_API wf_status wf_prim_scatter(wf_prim *prim, wf_place place, wf_array out, wf_array in,
                                 wf_array index, int32_t passes, wf_work *work);

/* out[b] (U64) = how many elements x of `in` (integers) have first + b * width <= x < first + (b +
 * 1) * width; elements that no bin holds are not counted. width is at least 1, there are as many
 * bins as `out` has room for; bounds beyond the type's range are fine. O(n / p + bins). */
WF_API wf_status wf_prim_histogram(wf_prim *prim, wf_place place, wf_array out, wf_array in,
                                   int64_t first, int64_t width, wf_work *work);

/* --------------------------------------------------------------------------------------------- */
/* Split and sort
 *
 * Keys are of any type but BOOL, unless said otherwise. Payload arrays travel with the keys: at
 * most two, of any type of 4, 8 or 16 bytes, as many elements as keys; each has an output of its
 * type. Text as payload or key moves as spans: outputs refer to the same bytes as the input. */

typedef enum wf_split_by {
    WF_SPLIT_RADIX, /* bits `shift` .. `shift + bits` of the key as it lies in memory; of TEXT those
                     * of the 64-bit number that its first eight bytes make, the first one highest
                     */
    WF_SPLIT_HASH,  /* the same bits of its hash, which is the same on every device */
    WF_SPLIT_RANGE  /* how many of the ascending splitters are not greater than the key */
} wf_split_by;

typedef struct wf_split {
    wf_split_by by;
    int shift, bits; /* RADIX, HASH: bits is 0 .. 24; hashes have 32 bits for keys of 4 bytes, else
                      * 64 */
    wf_array splitters; /* RANGE: of the keys' type, fewer than 2^24; on the host or the device;
                         * TEXT: of the same bytes */
    int unstable; /* within a partition the order is free and may differ from run to run; faster on
                   * the GPU for keys and payload of 4 and 8 bytes */
} wf_split;

/* Puts elements of one partition together, partitions ascending; within a partition elements keep
 * their order, unless `unstable`. out_starts (U64, or count 0 and data NULL when not wanted) has
 * room for partitions
 * + 1 and gets where each one starts; there are 2^bits partitions, or splitters + 1.
 * O(n / p) per pass; the GPU makes one pass per 8 bits, unstable and the CPU per 11. Moves 2n
 * per pass. */
WF_API wf_status wf_prim_split(wf_prim *prim, wf_place place, const wf_split *how,
                               wf_array out_keys, wf_array out_starts, wf_array keys,
                               const wf_array *out_payloads, const wf_array *payloads,
                               int payload_count, wf_work *work);

typedef enum wf_sort_by {
    WF_SORT_AUTO,    /* radix; text: its first bytes by radix, then by comparison */
    WF_SORT_RADIX,   /* one pass per 8 bits on the GPU, from the highest bits down on the CPU; not
                      * TEXT */
    WF_SORT_MERGE,   /* O(n log n / p) */
    WF_SORT_BITONIC, /* O(n log^2 n / p), not stable */
    WF_SORT_QUICK    /* splits, level by level, until parts fit the cache or shared memory, which
                      * are sorted there; O(n log n / p), not stable */
} wf_sort_by;

typedef struct wf_sort {
    wf_sort_by by;
    int descending;
    int low_bit, high_bit; /* RADIX of unsigned keys: bits low .. high - 1 decide; 0, 0 = all */
} wf_sort;

/* Sorts by key, stably unless the algorithm says otherwise (then the order among equal keys is
 * free, and may differ between devices). `how` NULL: AUTO, ascending. */
WF_API wf_status wf_prim_sort(wf_prim *prim, wf_place place, const wf_sort *how, wf_array out_keys,
                              wf_array keys, const wf_array *out_payloads, const wf_array *payloads,
                              int payload_count, wf_work *work);
/* Joins */

/* R JOIN S over keys of one type. All algorithms give the same rows; their order is free.
 *
 *   NINLJ             nested loops over blocks; n * m comparisons, no memory but the counts
 *   INLJ              S sorted, a CSS-tree over it; every row of R descends it
 *   SMJ               both sorted, then merged
 *   RADIX_HASH        both split by hash until a part of S fits the cache or shared memory, where
 *                     it is sorted and searched, or with `sequential` looked through
 *   PARTITIONED_HASH  the same split, then a hash table a part; columns are split along
 *   PLAIN_HASH        one hash table over all of S
 *   DIRECT            one place for every value between the smallest and the largest key of S;
 * 54000 when there are more than 16 for a row AUTO              chosen by sizes, widths, the keys'
 * range and a sample
 *
 * An inner join by equality is symmetric: where one side is built on, the smaller one is.
 * Band joins exist for NINLJ, INLJ and SMJ and integers (0A000 else).
 *
 * Floats are equal by value: -0 to 0, and NaN to NaN; keys that are given out are then 0 and the
 * positive quiet NaN. Texts are equal when their bytes are, and may lie in different bytes on both
 * sides; they are numbered first, O((n + m) / p) with a table of 16 bytes for a row of R, and the
 * numbers are joined. Keys that are given out are spans of R's bytes. */
typedef enum wf_join_algorithm {
    WF_JOIN_AUTO,
    WF_JOIN_NINLJ,
    WF_JOIN_INLJ,
    WF_JOIN_SMJ,
    WF_JOIN_RADIX_HASH,
    WF_JOIN_PARTITIONED_HASH,
    WF_JOIN_PLAIN_HASH,
    WF_JOIN_DIRECT
} wf_join_algorithm;

typedef enum wf_join_kind {
    WF_JOIN_INNER,
    WF_JOIN_LEFT, /* rows of R without a match come once, with zeros for columns of S */
    WF_JOIN_SEMI, /* rows of R that have a match, once */
    WF_JOIN_ANTI  /* rows of R that have none */
} wf_join_kind;

enum { WF_JOIN_COLUMNS = 8 };

/* A side: keys of any type but U128 and BOOL (both sides the same; 42804 else), fewer than 2^32 - 1
 * (54000), and up to 8 columns of 4- or 8-byte elements, as long as the keys. */
typedef struct wf_join_side {
    wf_array keys;
    const wf_array *columns;
    int column_count;
} wf_join_side;

typedef struct wf_join_spec {
    wf_join_algorithm algorithm;
    wf_join_kind kind;
    int band;       /* 0: R.key = S.key; else R.key <= S.key <= R.key + width, which does not */
    uint64_t width; /* wrap at the end of the type */
    int sequential; /* INLJ, SMJ, RADIX_HASH: search nodes and parts one by one, not by halving */
    int want_rows;  /* row numbers will be asked for */
    int64_t memory_limit; /* bytes of the device beyond the arrays; 0 = what the budget allows */
    wf_join_side r, s;
} wf_join_spec;

/* Where rows go; arrays with data NULL are not wanted, at least one is, and the smallest says how
 * many rows there is room for. Columns are of the types of the spec, keys (R's) of the keys'; row
 * numbers are integers of 4 or 8 bytes, counted from 0, -1 (all bits set) for no row; they
 * need want_rows (22023 else). Semi and anti joins give nothing of S (22023). */
typedef struct wf_join_out {
    wf_array keys;
    const wf_array *r_columns, *s_columns; /* as many as the spec has; NULL = none wanted */
    wf_array r_rows, s_rows;
} wf_join_out;

typedef struct wf_join wf_join;

/* Builds what the algorithm needs: O(n + m), of n log n for the sorts. The arrays of the spec must
 * stay as they are until the join is closed, which must happen before the library is. Host arrays
 * given to the GPU are copied there once. 53200 when memory_limit or the budget is too small. */
WF_API wf_status wf_prim_join_open(wf_prim *prim, wf_place place, const wf_join_spec *spec,
                                   wf_join **out_join);
/* The rows that follow those given so far; *out_count = 0 at the end. One pass when everything fits
 * into the first call's room; else matches are counted first, and every call writes its share. */
WF_API wf_status wf_prim_join_next(wf_join *join, const wf_join_out *out, int64_t *out_count);
/* The number of rows of the whole result. */
WF_API wf_status wf_prim_join_count(wf_join *join, int64_t *out_count);
WF_API wf_join_algorithm wf_prim_join_algorithm(const wf_join *join); /* what AUTO chose */
WF_API void wf_prim_join_close(wf_join *join);                        /* NULL is fine */
/* All at once: 54000 when `out` has not room for everything; *out_count tells the number then, too.
 * Metrics cover the whole. */
WF_API wf_status wf_prim_join(wf_prim *prim, wf_place place, const wf_join_spec *spec,
                              const wf_join_out *out, int64_t *out_count);

/* --------------------------------------------------------------------------------------------- */
/* Ascending arrays: merge, search, runs, sets
 *
 * Inputs called ascending are not checked for it: of others the result is unspecified. Text of two
 * inputs must refer to the same bytes. */

/* The elements of a and b together, ascending; of equal ones those of a come first, each in their
 * order. Payload (of one type of 4, 8 or 16 bytes each, or count 0 and data NULL: none) travels
 * along. O(n / p), moves 2n. */
WF_API wf_status wf_prim_merge(wf_prim *prim, wf_place place, wf_array out, wf_array a, wf_array b,
                               wf_array out_payload, wf_array a_payload, wf_array b_payload,
                               wf_work *work);

/* out[i] (U32, I32, U64 or I64) = how many elements of the ascending `among` are less than
 * needles[i], or with `upper` not greater. `sorted` says that the needles ascend, which makes it
 * one pass over both. O(needles log among / p), sorted O((needles + among) / p). */
WF_API wf_status wf_prim_search(wf_prim *prim, wf_place place, int upper, int sorted, wf_array out,
                                wf_array needles, wf_array among, wf_work *work);

/* The load-balancing search: `starts` (U32, I32, U64 or I64) ascends and says where the work of
 * each segment starts, as an exclusive scan of their sizes does; out[i] (of the same kinds, i in
 * 0 .. count) = the last segment that starts at or before i; segments of no work are never named.
 * starts[0] must be 0. O((count + segments) / p). */
WF_API wf_status wf_prim_balance(wf_prim *prim, wf_place place, wf_array out, int64_t count,
                                 wf_array starts, wf_work *work);

/* Runs of equal neighbours (of a sorted array: its distinct elements): the key of each, where it
 * starts, how long it is (U32 or U64); outputs with count 0 and data NULL are not wanted.
 * *out_count gets the number of runs, also when the outputs have no room for them (54000). O(n /
 * p), moves n and what is written. */
WF_API wf_status wf_prim_runs(wf_prim *prim, wf_place place, wf_array out_keys, wf_array out_starts,
                              wf_array out_counts, wf_array keys, int64_t *out_count,
                              wf_work *work);

typedef enum wf_set_op {
    WF_SET_UNION,        /* max(m, n) of what a has m times and b n times */
    WF_SET_INTERSECTION, /* min(m, n) */
    WF_SET_DIFFERENCE,   /* max(m - n, 0) */
    WF_SET_SYMMETRIC     /* |m - n| */
} wf_set_op;

typedef struct wf_set_how {
    wf_set_op op;
    int distinct;    /* m and n count as at most 1 */
    int ignore_bits; /* unsigned types: so many low bits do not count */
} wf_set_how;

/* A set operation on two ascending arrays, ascending; what is in both comes from a. *out_count gets
 * the number of elements, also when `out` has no room for them (54000). O(n / p), moves n and what
 * is written. */
WF_API wf_status wf_prim_set(wf_prim *prim, wf_place place, const wf_set_how *how, wf_array out,
                             wf_array a, wf_array b, int64_t *out_count, wf_work *work);

/* --------------------------------------------------------------------------------------------- */
/* Relational algebra on packed tuples */

/* A relation holds tuples, each packed into one word: U32, U64 or U128. Fields are unsigned, of 1
 * to 64 bits, and lie from the top bit down in their order, so that words order like tuples; the
 * bits below the last field have no meaning. The first `key_count` fields are the key.
 *
 * DENSE: an array of `count` tuples. PAGED: `page_count` pages of `page_rows` tuples each (a
 * multiple of 16), one behind the other at `data`; the first fills[p] tuples of page p count, the
 * rest is room. Tuples of a paged relation have an order as well: that of pages, then of places.
 *
 * An output gives its word, form, memory and `room` (tuples, or pages of page_rows); the operation
 * sets fields, key, count and page_count. Where there is too little room the error is 54000 and
 * `count` is the number of tuples needed. Outputs overlap nothing. */
enum { WF_FIELDS = 16 };
typedef enum wf_form { WF_DENSE, WF_PAGED } wf_form;
typedef struct wf_relation {
    wf_elem word;
    wf_form form;
    int field_count;
    int key_count;
    unsigned char bits[WF_FIELDS]; /* width of each field */
    void *data;
    int64_t count; /* tuples; of a paged input only passed on, the fills count */
    int64_t room;  /* of an output */
    int64_t page_rows, page_count;
    uint32_t *fills; /* in the same memory as data */
} wf_relation;

/* Every tuple with the fields `fields[0 .. field_count)` of it, in that order; they must fit the
 * output's word. Tuples stay in order; the key is as much of the input's as leads the fields. A
 * paged output has the input's pages (of a dense input: its tuples, cut into pages). O(n / p),
 * moves once in and out. */
WF_API wf_status wf_prim_rel_project(wf_prim *prim, wf_place place, wf_relation *out,
                                     const wf_relation *in, const int *fields, int field_count,
                                     wf_work *work);

/* A comparison of a field with a value. Those of one `clause` are joined by AND, clauses by OR;
 * clause numbers ascend. */
typedef struct wf_term {
    int field;
    wf_compare compare;
    uint64_t value;
    int clause;
} wf_term;
enum { WF_TERMS = 16 };

/* The tuples that satisfy the terms (none: all of them). In order, or with `unordered` and a dense
 * output in any order. A paged output keeps the input's pages, each with what is kept of it, and
 * needs no gather. The output's word is the input's. O(n / p). */
WF_API wf_status wf_prim_rel_select(wf_prim *prim, wf_place place, wf_relation *out,
                                    const wf_relation *in, const wf_term *terms, int term_count,
                                    int unordered, wf_work *work);
/* The same tuples in the output's form; paged to paged fills pages up. */
WF_API wf_status wf_prim_rel_convert(wf_prim *prim, wf_place place, wf_relation *out,
                                     const wf_relation *in, wf_work *work);

/* Every tuple of x with every one of y, x in the outer loop: the fields of x, then those of y. The
 * key is that of x. x and y have one word; the output's must have the bits. O(n m / p). */
WF_API wf_status wf_prim_rel_product(wf_prim *prim, wf_place place, wf_relation *out,
                                     const wf_relation *x, const wf_relation *y, wf_work *work);

/* Set operations by key (a key of all fields: by tuple, as wf_prim_set) on relations sorted by
 * their keys, with keys of the same number of bits. UNION: the tuples of x, and those of y whose
 * keys x does not have, in key order; INTERSECTION and DIFFERENCE: the tuples of x whose keys y has
 * or has not. Inputs that are sets give sets. y may have another layout behind its key, except in a
 * union. O((n
 * + m) / p), one pass. Unsorted inputs give an unspecified answer. */
typedef enum wf_rel_set { WF_UNION, WF_INTERSECTION, WF_DIFFERENCE } wf_rel_set;
WF_API wf_status wf_prim_rel_set(wf_prim *prim, wf_place place, wf_rel_set set, wf_relation *out,
                                 const wf_relation *x, const wf_relation *y, wf_work *work);

/* Join of relations sorted by key: for equal keys every tuple of x with every one of y: the key,
 * the other fields of x, the other fields of y; in the order of x, then y. Outer joins add, in key
 * order, the tuples without a partner, whose missing fields have all bits `missing` (0 or 1).
 *
 * `stage` is how a block of the GPU, or a worker of the CPU, joins its tiles; the answer does not
 * depend on it. MERGE is for all kinds and what runs unless asked; the others, the paper's, are for
 * INNER and LEFT. O((n + m + out) / p), one pass over inputs and output (two on the CPU). */
typedef enum wf_rel_kind { WF_REL_INNER, WF_REL_LEFT, WF_REL_RIGHT, WF_REL_FULL } wf_rel_kind;
typedef enum wf_join_stage {
    WF_STAGE_MERGE,   /* a merge per thread, between cuts of the merge path */
    WF_STAGE_BINARY,  /* both bounds of every tuple by binary search */
    WF_STAGE_BLOCKED, /* a thread's run of tuples in registers, bounds of the run searched */
    WF_STAGE_BRUTE,   /* every tuple against every other */
    WF_STAGE_HASH,    /* a hash table in shared memory */
    WF_STAGE_NETWORK  /* halves go on with their shares, with side exits to a search */
} wf_join_stage;
typedef struct wf_rel_join {
    wf_rel_kind kind;
    wf_join_stage stage;
    int missing;
    int profile; /* the metrics below are taken, which costs a little */
} wf_rel_join;
/* After a profiled join: wf_prim_metric "partition_ns", and cycles of all blocks together:
 * "load_cycles", "compute_cycles", "place_cycles" (waiting for what comes before), "gather_cycles".
 * On the CPU they are 0. */
WF_API wf_status wf_prim_rel_join(wf_prim *prim, wf_place place, const wf_rel_join *join,
                                  wf_relation *out, const wf_relation *x, const wf_relation *y,
                                  wf_work *work);
/* The same over arrays of sorted keys (U32 or U64), by position: out_x and out_y, U32 or U64 both,
 * take the places of partners, all ones for a missing one. *out_count: pairs. */
WF_API wf_status wf_prim_join_sorted(wf_prim *prim, wf_place place, const wf_rel_join *join,
                                     wf_array out_x, wf_array out_y, wf_array x, wf_array y,
                                     int64_t *out_count, wf_work *work);

/* For every key of a relation sorted by it: the key alone (a dense relation of the same word whose
 * fields are the key's), and in `values` (U64) the number of its tuples or the sum (modulo 2^64),
 * least or greatest of a field. O(n / p), one pass. */
typedef enum wf_reduce { WF_REDUCE_COUNT, WF_REDUCE_SUM, WF_REDUCE_MIN, WF_REDUCE_MAX } wf_reduce;
WF_API wf_status wf_prim_rel_reduce(wf_prim *prim, wf_place place, wf_reduce reduce, int field,
                                    wf_relation *out, wf_array values, const wf_relation *in,
                                    wf_work *work);

#ifdef __cplusplus
}
#endif

#endif
