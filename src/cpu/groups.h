/* groups.h: a growing table of groups: key, then aggregation words, one row each. */
#ifndef WF_CPU_GROUPS_H
#define WF_CPU_GROUPS_H

#include "cpu/vec.h"
#include "run/device.h"

/* Row g is rows[g * stride .. ): the key, then the words. A slot holds group + 1, 0 = free. With
 * `direct` the key is the slot, for good; with `dense`, too, as long as the keys seen are not many
 * more than the groups, as numbers of an interner never are; otherwise linear probing from the
 * key's hash. */
struct groups {
    struct memory *mem;
    i64 stride;
    i64 count, cap;
    i64 *rows;
    u32 *slots;
    i64 slot_count;
    b8 direct, dense;
    b8 last_resort; /* rather in temporary space than not at all */
    u32 word_count;
    const u8 *words; /* enum word_op */
};

/* direct_bits: keys lie in [0, 2^direct_bits); 0 = hash them. False when memory is refused. */
bool groups_init(struct groups *g, struct memory *mem, u32 word_count, const u8 *words,
                 u32 direct_bits, i64 expected);
/* A small one that hashes, for who has no memory for others: it may grow into temporary space. */
bool groups_init_least(struct groups *g, struct memory *mem, u32 word_count, const u8 *words);
/* An empty table that hashes tries the keys themselves as slots first; only for groups_find. */
void groups_try_dense(struct groups *g);
void groups_fini(struct groups *g);
/* The groups of n keys, made where new. `hash` has room for n words. */
bool groups_find(struct groups *g, const struct vec_table *vec, const i64 *key, i64 n, u64 *hash,
                 u32 *out);
/* Adds n rows of the same layout (partial states) to the groups of their keys. */
bool groups_merge(struct groups *g, const i64 *rows, i64 n);
/* No groups, the same room. Not for direct tables. */
void groups_reset(struct groups *g);

i64 word_identity(u8 word);
i64 word_apply(u8 word, i64 w, i64 x);

#endif
