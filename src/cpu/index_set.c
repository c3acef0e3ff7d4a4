/* index_set.c: STEP_BUILD of a set: which keys there are, for semi-joins.
 *
 * Where the keys' span allows it the set is a bitmap, a bit a key: a few megabytes cover the keys
 * of a large table, and a probe is one load that mostly hits the cache. Otherwise it is a hash
 * table that keeps one row of every key. Duplicates cost nothing in either form.
 *
 * A set that grows (a recursion's rows so far) is a hash table with room to spare. A step adds the
 * keys of the chunks that came since the one before. The table doubles when it is half full, so
 * that all rounds together cost as much as one build. */
#include "cpu/index_int.h"

enum {
    BITS_MIN = 1 << 24, /* slots that are always affordable: 2 MiB */
    BITS_PER_ROW = 256, /* a hash table takes 192 bits a row and more */
    GROWN_MIN = 64      /* slots of a set that grows */
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

/* a set that grows */

/* Adds a key; false when it is there. */
static bool add_key(struct index *index, i64 key) {
    struct hash_slot *slot =
        slot_walk(index->slots, (u64)index->slot_count - 1, slot_of(index, key), key);
    bool added = slot_free(slot);
    *slot = (struct hash_slot){key, 0, 1};
    return added;
}

/* Room for `keys` keys, twice as many slots. */
static FALLIBLE make_room(struct exec *x, struct index *index, i64 keys) {
    struct hash_slot *old = index->slots;
    i64 old_count = index->slot_count;
    i64 count = MAX_OF(old_count, (i64)GROWN_MIN);
    while (count < 2 * keys) {
        count *= 2;
    }
    if (old && count == old_count) {
        return ERR_OK;
    }
    struct hash_slot *slots = mem_alloc(x->mem, count * (i64)sizeof *slots);
    if (!slots) {
        return memory_refused(x->mem, x->err, count * (i64)sizeof *slots);
    }
    memset(slots, 0, (size_t)count * sizeof *slots);
    index->slots = slots;
    index->slot_count = count;
    for (i64 i = 0; i < old_count; i++) {
        if (!slot_free(&old[i])) {
            add_key(index, old[i].key);
        }
    }
    mem_free(x->mem, old, old_count * (i64)sizeof *old);
    return ERR_OK;
}

static FALLIBLE set_grow(struct exec *x, const struct step *step) {
    const struct variable *from = &x->vars[step->src];
    struct variable *to = &x->vars[step->dst];
    if (!to->index || to->copy || to->index->grown_chunks > from->chunks.count) {
        variable_reset(to);
        to->index = index_new(x);
        to->index->form = INDEX_HASH;
        to->index->unique = 1;
    }
    struct index *index = to->index;
    to->on_host = 1;
    for (i64 c = index->grown_chunks; c < from->chunks.count; c++) {
        const struct chunk *chunk = from->chunks.items[c];
        const i64 *keys = chunk->cols[step->col].data;
        const b8 *nulls = chunk->cols[step->col].nulls;
        TRY(exec_check(x));
        TRY(make_room(x, index, index->row_count + chunk->rows));
        for (i64 i = 0; i < chunk->rows; i++) {
            index->row_count += !(nulls && nulls[i]) && add_key(index, keys[i]);
        }
        index->grown_chunks = c + 1;
    }
    to->rows = from->rows;
    TRY(make_room(x, index, index->row_count));
    index_measure(index);
    return ERR_OK;
}

wf_status set_build(struct exec *x, const struct step *step) {
    struct build b;
    if (step->grow) {
        return set_grow(x, step);
    }
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
