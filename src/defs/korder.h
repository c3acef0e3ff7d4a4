/* korder.h: arguments of the kernels that order elements; compiles as C11 and as CUDA C. Pointers
 * are addresses on the device. */
#ifndef WF_DEFS_KORDER_H
#define WF_DEFS_KORDER_H

#include "base/word.h"

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

#endif
