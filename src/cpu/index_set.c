/* index_set.c: STEP_BUILD of a set: which keys there are, for semi-joins.
 *
 * Where the keys' span allows it the set is a bitmap, a bit a key: a few megabytes cover the keys
 * of a large table, and a probe is one load that mostly hits the cache. Otherwise it is a hash
 * table of the keys alone. Duplicates cost nothing in either form, and since no row has a number,
 * there may be any number of them.
 *
 * A set that grows (a recursion's rows so far) has room to spare. A step adds the keys of the chunks
 * that came since the one before. It is a bitmap as long as the keys' span allows that, and a hash
 * table from then on. Either doubles when it is outgrown, so that all rounds together cost as much
 * as one build. */
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

/* a set that grows */

/* Adds a key; false when it is there. */
static bool add_key(struct index *index, i64 key) {
    struct hash_slot *slot =
        slot_walk(index->slots, (u64)index->slot_count - 1, slot_of(index, key), key);
    bool added = slot_free(slot);
    *slot = (struct hash_slot){key, 0, 1};
    return added;
}

struct span {
    i64 lo, hi; /* lo > hi: no keys */
};

static struct span span_of(const i64 *keys, const b8 *nulls, i64 count) {
    struct span span = {I64_MAX, I64_MIN};
    for (i64 i = 0; i < count; i++) {
        if (!(nulls && nulls[i])) {
            span.lo = MIN_OF(span.lo, keys[i]);
            span.hi = MAX_OF(span.hi, keys[i]);
        }
    }
    return span;
}

/* Bits for a span, too; *out_fits is false when a set of so many keys must be a hash table. The
 * lowest key is a multiple of a word's bits, so that words are copied as they are. */
static FALLIBLE bits_cover(struct exec *x, struct index *index, struct span span, i64 keys,
                           bool *out_fits) {
    enum { WORD = 32 };
    struct span has = {index->key_lo, (i64)((u64)index->key_lo + (u64)index->slot_count - 1)};
    struct span all = {MIN_OF(span.lo, has.lo), MAX_OF(span.hi, has.hi)};
    bool empty = index->row_count == 0;
    all = empty ? span : all;
    u64 most = (u64)MAX_OF((i64)BITS_MIN, MIN_OF(keys, I64_MAX / BITS_PER_ROW) * BITS_PER_ROW);
    u64 width = (u64)all.hi - (u64)all.lo;
    *out_fits = width < most - WORD;
    if (!*out_fits || (!empty && all.lo == has.lo && all.hi == has.hi)) {
        return ERR_OK;
    }
    u64 spare = MIN_OF(width, most - WORD - width);
    if (!empty && all.lo < has.lo) {
        spare = MIN_OF(spare, (u64)all.lo - (u64)I64_MIN);
        all.lo = (i64)((u64)all.lo - spare);
    } else {
        spare = MIN_OF(spare, (u64)I64_MAX - (u64)all.hi);
        all.hi = (i64)((u64)all.hi + spare);
    }
    all.lo = (i64)((u64)all.lo & ~(u64)(WORD - 1));
    i64 slots = (i64)((u64)all.hi - (u64)all.lo) + 1;
    i64 count = slots / WORD + 1;
    u32 *heads = mem_alloc(x->mem, count * (i64)sizeof *heads);
    if (!heads) {
        return memory_refused(x->mem, x->err, count * (i64)sizeof *heads);
    }
    memset(heads, 0, (size_t)count * sizeof *heads);
    if (!empty) {
        i64 from = (i64)(((u64)has.lo - (u64)all.lo) / WORD);
        memcpy(heads + from, index->heads,
               (size_t)MIN_OF(index->head_count, count - from) * sizeof *heads);
    }
    mem_free(x->mem, index->heads, index->head_count * (i64)sizeof *heads);
    index->heads = heads;
    index->head_count = count;
    index->key_lo = all.lo;
    index->slot_count = slots;
    return ERR_OK;
}

static bool add_bit(struct index *index, i64 key) {
    u64 at = (u64)key - (u64)index->key_lo;
    u32 bit = 1u << (at % 32);
    bool added = !(index->heads[at / 32] & bit);
    index->heads[at / 32] |= bit;
    return added;
}

/* The bits' keys in a hash table. */
static FALLIBLE bits_to_hash(struct exec *x, struct index *index) {
    struct index bits = *index;
    index->form = INDEX_HASH;
    index->heads = NULL;
    index->head_count = index->slot_count = index->key_lo = 0;
    wf_status status = index_slots(x, index, index->row_count);
    for (i64 i = 0; !status && i < bits.head_count; i++) {
        for (u32 word = bits.heads[i]; word; word &= word - 1) {
            add_key(index, (i64)((u64)bits.key_lo + (u64)i * 32 + (u64)__builtin_ctz(word)));
        }
    }
    mem_free(x->mem, bits.heads, bits.head_count * (i64)sizeof *bits.heads);
    return status;
}

static FALLIBLE add_keys(struct exec *x, struct index *index, const i64 *keys, const b8 *nulls,
                         i64 count) {
    struct span span = span_of(keys, nulls, count);
    bool fits = true;
    if (span.lo > span.hi) {
        return ERR_OK;
    }
    if (index->form == INDEX_BITS) {
        TRY(bits_cover(x, index, span, index->row_count + count, &fits));
        TRY(fits ? ERR_OK : bits_to_hash(x, index));
    }
    if (index->form == INDEX_HASH) {
        TRY(index_slots(x, index, index->row_count + count));
    }
    for (i64 i = 0; i < count; i++) {
        if (!(nulls && nulls[i])) {
            index->row_count +=
                index->form == INDEX_BITS ? add_bit(index, keys[i]) : add_key(index, keys[i]);
        }
    }
    return ERR_OK;
}

static FALLIBLE set_grow(struct exec *x, const struct step *step) {
    const struct variable *from = &x->vars[step->src];
    struct variable *to = &x->vars[step->dst];
    if (!to->index || to->copy || to->index->grown_rows > from->rows) {
        variable_reset(to);
        *index_new(x, step->dst) = (struct index){.form = INDEX_BITS, .unique = 1};
    }
    struct index *index = to->index;
    to->on_host = 1;
    i64 row = 0;
    i64 c = variable_chunk(from, index->grown_rows, &row);
    for (; c < from->chunks.count; c++) {
        const struct chunk *chunk = from->chunks.items[c];
        const struct column *col = &chunk->cols[step->col];
        i64 first = index->grown_rows - row; /* a chunk that has room gets more rows */
        TRY(exec_check(x));
        TRY(add_keys(x, index, (const i64 *)col->data + first, col->nulls ? col->nulls + first : NULL,
                     chunk->rows - first));
        row += chunk->rows;
        index->grown_rows = row;
    }
    to->rows = from->rows;
    if (index->form == INDEX_HASH) {
        TRY(index_slots(x, index, index->row_count));
    } else if (!index->heads) { /* a bit to ask for, though there is no key */
        bool fits;
        TRY(bits_cover(x, index, (struct span){0, 0}, 0, &fits));
    }
    index_measure(index);
    return ERR_OK;
}

static bool has_bits(const struct build *b) {
    u64 span = b->lo <= b->hi ? (u64)b->hi - (u64)b->lo : 0;
    return span < (u64)MAX_OF((i64)BITS_MIN, b->keys * BITS_PER_ROW);
}

wf_status set_form(struct build *b) {
    struct index *index = b->index;
    bool bits = has_bits(b);
    index->row_count = b->keys;
    index->key_lo = b->lo <= b->hi ? b->lo : 0;
    index->slot_count = bits ? (b->lo <= b->hi ? b->hi - b->lo : 0) + 1 : 0;
    wf_status status = bits ? bits_build(b) : hash_build(b, true);
    index_measure(index);
    return status;
}

wf_status set_build(struct exec *x, const struct step *step) {
    struct build b;
    if (step->grow) {
        return set_grow(x, step);
    }
    variable_reset(&x->vars[step->dst]);
    TRY(build_scan(&b, x, x->vars[step->src].chunks.items, x->vars[step->src].chunks.count,
                   step->col));
    b.index = index_new(x, step->dst);
    x->vars[step->dst].on_host = 1;
    x->vars[step->dst].rows = b.rows;
    b.index->row_count = b.keys;
    i32 bits = class_bits(&b, step, !has_bits(&b));
    return bits ? classes_build(&b, step, bits) : set_form(&b);
}
