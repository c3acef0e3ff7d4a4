/* vec.h: the vector loops, one table of them per processor level.
 *
 * vec_rows.c is compiled once per level; each compilation exports one `struct vec_table`. Everything
 * here works on plain arrays: elements are dense, positions (`sel`, `pos`) are 32-bit and ascending
 * within a selection. Register kinds index the tables; a missing combination is a NULL pointer. */
#ifndef WF_CPU_VEC_H
#define WF_CPU_VEC_H

#include "cpu/vec_loop.h"
#include "defs/program.h"
#include "run/variable.h"

/* Integers of `1 << width` bytes, unsigned or signed, over a base, to an integer kind. */
typedef void vec_decode_fn(void *restrict dst, const void *restrict src, i128 base, i64 n);
typedef void vec_decode_at_fn(void *restrict dst, const void *restrict src, i128 base,
                              const u32 *restrict pos, i64 n);
/* Elements of `1 << width` bytes. */
typedef void vec_gather_fn(void *restrict dst, const void *restrict src, const u32 *restrict sel,
                           i64 m);
typedef void vec_gather64_fn(void *restrict dst, const void *restrict src, const i64 *restrict row,
                             i64 n);
typedef void vec_blend_fn(void *restrict dst, const void *restrict src, const u32 *restrict sel,
                          i64 m);
/* One word of an aggregation: all rows into one value, or row j into state[group(j) * stride]. */
typedef i64 vec_reduce_fn(i64 word, const i64 *restrict x, const u32 *restrict sel, i64 m);
typedef void vec_tiny_fn(i64 *restrict state, i64 replica, const i64 *restrict key,
                         const i64 *restrict x, const u32 *restrict sel, i64 m);
typedef void vec_group_fn(i64 *restrict state, i64 stride, const u32 *restrict group,
                          const i64 *restrict x, const u32 *restrict sel, i64 m);

/* Edges among the nodes of a graph from `first` on, a multiple of 64, which all lead to later ones: a bit each.
 * The row of a node has the words from the node's own on, and begins where that of the one before ends. */
struct bit_rows {
    i64 first;
    i64 words; /* of the longest row */
    u64 *bits;
};
/* Words of all rows before that of node first + n. */
static inline i64 bit_row_place(const struct bit_rows *rows, i64 n) {
    i64 full = n / 64;
    return (full * rows->words - full * (full - 1) / 2) * 64 + n % 64 * (rows->words - full);
}

enum { VEC_WIDTHS = 5, VEC_REPLICAS = 4 };

struct vec_table {
    const struct vec_loops *ops[LOOP_PARTS]; /* of each part, in the order of op_loop.def */
    const struct vec_loops *reals;           /* in the order of real.def */
    vec_decode_fn *decode[2][VEC_WIDTHS][KIND_COUNT]; /* by signedness, width, kind */
    vec_decode_at_fn *decode_at[2][VEC_WIDTHS][KIND_COUNT];
    vec_gather_fn *gather[VEC_WIDTHS];
    vec_gather64_fn *gather64[VEC_WIDTHS];
    vec_blend_fn *blend[VEC_WIDTHS];
    vec_reduce_fn *reduce[WORD_COUNT];
    vec_tiny_fn
        *tiny[WORD_COUNT]; /* state has VEC_REPLICAS copies `replica` words apart, or 1 at 0 */
    vec_group_fn *group[WORD_COUNT];
    /* LIKE whose pattern is the first element of b, for all rows (vec_like.c). */
    vec_fn *like;
    vec_sel_fn *like_sel;
    i64 (*sel_build)(u32 *restrict sel, const b8 *restrict mask, i64 n);
    i64 (*sel_refine)(u32 *restrict out, const u32 *restrict sel, i64 m, const b8 *restrict mask);
    void (*mask_and)(b8 *restrict mask, const b8 *restrict with, i64 n);
    void (*nulls)(b8 *restrict dst, const u64 *restrict valid, i64 first, i64 n);
    void (*nulls_at)(b8 *restrict dst, const u64 *restrict valid, i64 first,
                     const u32 *restrict pos, i64 n);
    void (*strings)(str *restrict dst, const u32 *restrict end, const u8 *restrict bytes, i64 first,
                    i64 n);
    void (*strings_at)(str *restrict dst, const u32 *restrict end, const u8 *restrict bytes,
                       i64 first, const u32 *restrict pos, i64 n);
    void (*hash)(u64 *restrict out, const i64 *restrict key, i64 n);
    /* The keys whose bit key - lo, below span, is set, and which ones they are; returns how many.
     * The arrays have room for a vector more than n. */
    i64 (*filter_keys)(i64 *restrict out, u32 *restrict at, const i64 *restrict key, i64 lo,
                       u64 span, const u32 *restrict bits, i64 n);
    /* The same for the highest bits of hashes, of which there are `size`, a power of two; the
     * hashes move together with their keys. */
    i64 (*filter_hashes)(i64 *restrict out, u32 *restrict at, u64 *restrict hash,
                         const i64 *restrict key, i64 size, const u32 *restrict bits, i64 n);
    /* RANK index: dst = the key's number among the keys there, or 0 with found 0. */
    void (*probe_rank)(i64 *restrict dst, b8 *restrict found, const i64 *restrict key, i64 key_lo,
                       i64 slot_count, const struct rank_block *restrict blocks, i64 n);
    /* The places of the keys that are there; their numbers at those places of dst, which holds
     * anything elsewhere. `at` has room for a vector more than n. */
    i64 (*select_rank)(i64 *restrict dst, u32 *restrict at, const i64 *restrict key, i64 key_lo,
                       i64 slot_count, const struct rank_block *restrict blocks, i64 n);
    /* Unique direct index: dst = row, or 0 with found 0. */
    void (*probe_direct)(i64 *restrict dst, b8 *restrict found, const i64 *restrict key, i64 key_lo,
                         i64 slot_count, const u32 *restrict heads, i64 n);
    /* How many values have their bit set, which is value - base; all are within the bits. */
    i64 (*marked)(const i64 *restrict values, i64 n, i64 base, const u32 *restrict bits);
    /* The same for nodes of a graph: how many have bit node - base set; and how many bits two rows of
     * words have in common. */
    i64 (*marked_nodes)(const u32 *restrict nodes, i64 n, i64 base, const u64 *restrict bits);
    i64 (*common_bits)(const u64 *restrict a, const u64 *restrict b, i64 words);
    /* Pairs of nodes that are an edge, which the rows say; the bits of all nodes, and no others from the
     * rows' first on, are set in marks. `places` and `words` are room for as many as there are nodes. */
    i64 (*edges_among)(const struct bit_rows *rows, const u32 *restrict nodes, i64 n,
                       const u64 *restrict marks, u32 *restrict places, u64 *restrict words);
    /* Rows that come in the order of their key, n > 0. Runs are numbered: the run at hand is `last`
     * and its key keys[last], or last is -1 and there is none. Writes each row's run and the keys of
     * those that begin; returns the last one's number, or -1 where a key is less than the one before
     * it. */
    i64 (*number_runs)(u32 *restrict run, i64 *restrict keys, const i64 *restrict key, i64 n,
                       i64 last);
    /* Sums by run, of which the first has `total` already. */
    void (*add_runs)(i64 *restrict word, const u32 *restrict run, const i64 *restrict x, i64 n,
                     u64 total);
};

/* vec.c: the loops of an opcode; NULLs where it has none. */
struct vec_loops vec_loops_of(const struct vec_table *table, u16 code);
const struct vec_table *vec_table_best(void); /* for this processor */

extern const struct vec_table vec_table_baseline;
extern const struct vec_table vec_table_avx2;
extern const struct vec_table vec_table_avx512;

#endif
