/* order.h: primitives that order elements: split, sort, merge, search, runs, sets.
 *
 * Keys are of any element type but BOOL; what is compared is in order_of. Payload travels with its
 * key and is moved as so many bytes. Everything is stable unless it says otherwise. Arrays of one
 * call do not overlap. Counts have been checked: outputs have room. */
#ifndef WF_PRIM_ORDER_H
#define WF_PRIM_ORDER_H

#include "prim/prim.h"

/* How keys of a type become unsigned words that order them: floats through order_f32 or order_f64
 * (defs/fn_order.h), then all xor `flip`. TEXT compares bytes; only its direction is here. */
struct order {
    u8 type;
    i32 bytes;
    b8 is_float, is_text, descending;
    u64 flip_low, flip_high;
};
struct order order_of(enum elem type, bool descending);

enum { ORDER_PAYLOADS = 2 };
struct prim_payload {
    i32 count;
    struct prim_array out[ORDER_PAYLOADS], in[ORDER_PAYLOADS];
};

enum split_by { SPLIT_RADIX, SPLIT_HASH, SPLIT_RANGE };
enum { SPLIT_BITS_MAX = 24 };
struct prim_split {
    u8 by;                       /* enum split_by */
    i32 shift, bits;             /* RADIX, HASH: which bits of the key or its hash */
    struct prim_array splitters; /* RANGE: ascending, of the keys' type */
    b8 descending;               /* RANGE: splitters and partitions descend */
    b8 unstable;                 /* order within a partition is free, even from run to run */
};
i64 split_parts(const struct prim_split *how); /* its fan-out */

enum sort_by { SORT_AUTO, SORT_RADIX, SORT_MERGE, SORT_BITONIC, SORT_QUICK, SORT_COUNT };
struct prim_sort {
    u8 by; /* enum sort_by */
    b8 descending;
    i32 low_bit, high_bit; /* RADIX of unsigned keys: the bits that count; 0, 0 = all */
};

struct prim_search {
    b8 upper;     /* elements not greater than the needle, else those less than it */
    b8 sorted;    /* needles ascend */
    b8 minus_one; /* one less is the answer: the segment a place lies in */
    b8 counting;  /* the needles are 0, 1, 2, …: needles.data is not read */
};

enum set_op { SET_UNION, SET_INTERSECTION, SET_DIFFERENCE, SET_SYMMETRIC, SET_COUNT };
struct prim_set {
    u8 op;           /* enum set_op */
    b8 distinct;     /* a result without duplicates */
    i32 ignore_bits; /* low bits of unsigned elements that do not count */
};

/* What stands for a key of TEXT or of floats. */
enum prim_words {
    WORDS_PREFIX, /* TEXT to U64: the number that its first eight bytes make, */
    WORDS_HASH,   /* its hash */
    WORDS_FLOAT   /* F32 to U32, F64 to U64: bits that are the same for equal ones */
};

struct prim_order {
    FALLIBLE(*split)
    (struct prim_job *job, const struct prim_split *how, struct prim_array out_keys,
     struct prim_array out_starts, struct prim_array keys, const struct prim_payload *payload);
    FALLIBLE(*sort)
    (struct prim_job *job, const struct prim_sort *how, struct prim_array out_keys,
     struct prim_array keys, const struct prim_payload *payload);
    FALLIBLE(*merge)
    (struct prim_job *job, struct prim_array out, struct prim_array a, struct prim_array b,
     struct prim_array out_payload, struct prim_array a_payload, struct prim_array b_payload);
    FALLIBLE(*search)
    (struct prim_job *job, struct prim_search how, struct prim_array out, struct prim_array needles,
     struct prim_array among);
    FALLIBLE(*runs)
    (struct prim_job *job, struct prim_array out_keys, struct prim_array out_starts,
     struct prim_array out_counts, struct prim_array keys, i64 *out_count);
    FALLIBLE(*sets)
    (struct prim_job *job, struct prim_set how, struct prim_array out, struct prim_array a,
     struct prim_array b, i64 *out_count);
    FALLIBLE(*words)
    (struct prim_job *job, enum prim_words how, struct prim_array out, struct prim_array in);
    /* Numbers for texts: of r the first row with the same text; of s that row, all bits set when
     * there is none. Both have fewer than 2^32 - 1. */
    FALLIBLE(*number)
    (struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r, struct prim_array s);
};
extern const struct prim_order cpu_prim_order, gpu_prim_order_class;

/* Elements of one partition together, partitions ascending, each in the order of the input
 * unless unstable.
 * RADIX: (key >> shift) of the bits as they lie in memory, of text those of its first eight bytes
 * as a number, `bits` of them; HASH: the same of hash_32, hash_64, hash_128 or hash_text; RANGE:
 * how many splitters are not greater. out_starts (U64; data NULL: not wanted) gets split_parts + 1
 * places. `payload` may be NULL. */
FALLIBLE prim_split_array(struct prim_job *job, const struct prim_split *how,
                          struct prim_array out_keys, struct prim_array out_starts,
                          struct prim_array keys, const struct prim_payload *payload);
/* A word per element; spans of text are checked. */
FALLIBLE prim_words_array(struct prim_job *job, enum prim_words how, struct prim_array out,
                          struct prim_array in);
/* Texts of two arrays as numbers, equal ones the same; see struct prim_order. */
FALLIBLE prim_number_texts(struct prim_job *job, u32 *out_r, u32 *out_s, struct prim_array r,
                           struct prim_array s);
/* BITONIC and QUICK are not stable. */
FALLIBLE prim_sort_array(struct prim_job *job, const struct prim_sort *how,
                         struct prim_array out_keys, struct prim_array keys,
                         const struct prim_payload *payload);
/* Of equal elements those of `a` come first. Payload arrays with data NULL: none. */
FALLIBLE prim_merge_array(struct prim_job *job, struct prim_array out, struct prim_array a,
                          struct prim_array b, struct prim_array out_payload,
                          struct prim_array a_payload, struct prim_array b_payload);
/* For each needle how many elements of the ascending `among` are less, or not greater. `out` is
 * U32, I32, U64 or I64. */
FALLIBLE prim_search_array(struct prim_job *job, struct prim_search how, struct prim_array out,
                           struct prim_array needles, struct prim_array among);
/* Runs of equal neighbours: key, first place, length; outputs with data NULL are not wanted. More
 * runs than any output has room for: ERR_PROGRAM_LIMIT, *out_count is told. */
FALLIBLE prim_runs_array(struct prim_job *job, struct prim_array out_keys,
                         struct prim_array out_starts, struct prim_array out_counts,
                         struct prim_array keys, i64 *out_count);
/* Of ascending arrays, ascending; the k-th of equal elements of one meets the k-th of the other.
 * Elements that are in both come from `a`. More than out has room for: ERR_PROGRAM_LIMIT. */
FALLIBLE prim_set_array(struct prim_job *job, struct prim_set how, struct prim_array out,
                        struct prim_array a, struct prim_array b, i64 *out_count);
/* ERR_PROGRAM_LIMIT when there is not so much room. */
FALLIBLE prim_room(struct prim_job *job, const char *what, i64 needed, i64 room);

#endif
