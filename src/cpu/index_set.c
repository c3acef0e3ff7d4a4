/* index_set.c: STEP_BUILD of a set: which keys there are, for semi-joins.
 *
 * Where the keys' span allows it the set is a bitmap, a bit a key: a few megabytes cover the keys
 * of a large table, and a probe is one load that mostly hits the cache. Otherwise it is a hash
 * table that keeps one row of every key. Duplicates cost nothing in either form. */
#include "cpu/index_int.h"

enum {
    BITS_MIN = 1 << 24, /* slots that are always affordable: 2 MiB */
    BITS_PER_ROW = 256  /* a hash table takes 192 bits a row and more */
};

static FALLIBLE bits_build(struct build *b) {
    struct index *index = b->index;
    index->form = INDEX_BITS;
    index->unique = 1;
    index->head_count = index->slot_count / 32 + 1;
    i64 bytes = index->head_count * (i64)sizeof(u32);
    index->heads = mem_alloc(b->x->mem, bytes);
    if (!index->heads) {
        return memory_refused(b->x->mem, b->x->err, bytes);
    }
    memset(index->heads, 0, (size_t)bytes);
    return build_bits(b, index->heads, index->key_lo);
}

wf_status set_build(struct exec *x, const struct step *step) {
    struct build b;
    if (x->vars[step->src].rows >= 0xffffffffLL) {
        FAIL(x->err, NOT_SUPPORTED, "a set of 2^32 rows or more");
    }
    variable_reset(&x->vars[step->dst]);
    TRY(build_scan(&b, x, x->vars[step->src].chunks.items, x->vars[step->src].chunks.count,
                   step->col));
    b.index = index_new(x);
    x->vars[step->dst].index = b.index;
    x->vars[step->dst].on_host = 1;
    x->vars[step->dst].rows = b.rows;
    b.index->row_count = b.keys;
    u64 span = b.lo <= b.hi ? (u64)b.hi - (u64)b.lo : 0;
    b.index->key_lo = b.lo <= b.hi ? b.lo : 0;
    b.index->slot_count = (i64)span + 1;
    bool bits = span < (u64)MAX_OF((i64)BITS_MIN, b.keys * BITS_PER_ROW);
    wf_status status = bits ? bits_build(&b) : hash_build(&b, true);
    index_measure(b.index);
    return status;
}
