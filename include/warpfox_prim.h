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

/* About the last operation: "ns" from call to return, "device_ns" on the device without copies of
 * host arrays, "launches" of kernels, "bytes_moved" across the bus; -1 for an unknown name. */
WF_API int64_t wf_prim_metric(const wf_prim *prim, const char *name);

/* --------------------------------------------------------------------------------------------- */
/* Scan */

/* Associative operators (src/defs/fold.def). Addition and multiplication wrap. Floats have MIN and
 * MAX only: their sums depend on the order of addition. U128 and TEXT have none. */
typedef enum wf_fold {
    WF_FOLD_ADD,
    WF_FOLD_MUL,
    WF_FOLD_AND,
    WF_FOLD_OR,
    WF_FOLD_XOR,
    WF_FOLD_MIN,
    WF_FOLD_MAX
} wf_fold;

/* out[i] = in[0] op … op in[i - 1] (exclusive; out[0] is the operator's identity) or up to in[i]
 * (inclusive). Both of one type; `out` may be `in`. O(n / p), moves 2n. */
WF_API wf_status wf_prim_scan(wf_prim *prim, wf_place place, wf_fold fold, int inclusive,
                              wf_array out, wf_array in, wf_work *work);

/* --------------------------------------------------------------------------------------------- */
/* Split and sort
 *
 * Keys are of any type but BOOL, unless said otherwise. Payload arrays travel with the keys: at
 * most two, of any type of 4, 8 or 16 bytes, as many elements as keys; each has an output of its
 * type. Text as payload or key moves as spans: outputs refer to the same bytes as the input. */

typedef enum wf_split_by {
    WF_SPLIT_RADIX, /* bits `shift` .. `shift + bits` of the key as it lies in memory */
    WF_SPLIT_HASH,  /* the same bits of its hash, which is the same on every device */
    WF_SPLIT_RANGE  /* how many of the ascending splitters are not greater than the key */
} wf_split_by;

typedef struct wf_split {
    wf_split_by by;
    int shift, bits; /* RADIX, HASH: bits is 0 .. 24; hashes have 32 bits for keys of 4 bytes, else
                      * 64 */
    wf_array splitters; /* RANGE: of the keys' type, fewer than 2^24; on the host or the device */
} wf_split;

/* Puts elements of one partition together, partitions ascending; within a partition elements keep
 * their order. out_starts (U64, or count 0 and data NULL when not wanted) has room for partitions
 * + 1 and gets where each one starts; there are 2^bits partitions, or splitters + 1. Not TEXT.
 * O(n / p) per pass; the GPU makes one pass per 8 bits, the CPU per 11. Moves 2n per pass. */
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
    WF_SORT_QUICK    /* splits until parts fit the cache, which are sorted there; not stable */
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

#ifdef __cplusplus
}
#endif

#endif
