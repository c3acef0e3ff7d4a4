/* index_set.c: bitmaps of keys: STEP_BUILD of a set, for semi-joins, and filters before an index.
 *
 * Where the keys' span allows it the set is a bitmap, a bit a key: a few megabytes cover the keys
 * of a large table, and a probe is one load that mostly hits the cache. Otherwise it is a hash
 * table that keeps the first row of every key. Duplicates cost nothing in either form. */
#include "cpu/cpu_int.h"

enum {
    BITS_MIN = 1 << 20, /* slots that are always affordable */
    BITS_PER_ROW = 256, /* a hash table takes 192 bits a row and more */
    ROWS_PER_CHECK = 1 << 18,
    FILTER_SPARSE = 8,      /* keys in the span to one that is there */
    FILTER_FEW = 4096,      /* rows of a small index */
    FILTER_SMALL = 1 << 24, /* bits it may have then, */
    FILTER_LARGE = 1 << 26  /* and else */
};

struct keys {
    const struct variable *var;
    u32 col;
    i64 lo, hi, rows;
};

static void find_bounds(struct keys *k) {
    k->lo = I64_MAX;
    k->hi = I64_MIN;
    for (i64 c = 0; c < k->var->chunks.count; c++) {
        const struct chunk *chunk = k->var->chunks.items[c];
        const struct column *col = &chunk->cols[k->col];
        const i64 *key = col->data;
        for (i64 r = 0; r < chunk->rows; r++) {
            if (!col->nulls || !col->nulls[r]) {
                k->lo = MIN_OF(k->lo, key[r]);
                k->hi = MAX_OF(k->hi, key[r]);
                k->rows++;
            }
        }
    }
}

static void insert_hash(struct index *index, i64 key, i64 row) {
    i64 mask = index->slot_count - 1;
    i64 slot = (i64)(hash_u64((u64)key) & (u64)mask);
    while (index->heads[slot] && index->keys[slot] != key) {
        slot = (slot + 1) & mask;
    }
    if (!index->heads[slot]) {
        index->keys[slot] = key;
        index->heads[slot] = (u32)row + 1;
    }
}

static FALLIBLE insert_all(struct exec *x, const struct keys *k, struct index *index) {
    i64 row = 0;
    for (i64 c = 0; c < k->var->chunks.count; c++) {
        const struct chunk *chunk = k->var->chunks.items[c];
        const struct column *col = &chunk->cols[k->col];
        const i64 *key = col->data;
        TRY(exec_check(x));
        for (i64 r = 0; r < chunk->rows; r++, row++) {
            if (row % ROWS_PER_CHECK == 0) {
                TRY(exec_check(x));
            }
            if (col->nulls && col->nulls[r]) {
                continue;
            }
            if (index->form == INDEX_BITS) {
                u64 slot = (u64)key[r] - (u64)index->key_lo;
                index->heads[slot >> 5] |= 1u << (slot & 31);
            } else {
                insert_hash(index, key[r], row);
            }
        }
    }
    return ERR_OK;
}

static FALLIBLE alloc(struct exec *x, struct index *index) {
    i64 bytes = index->head_count * (i64)sizeof(u32);
    index->heads = mem_alloc(x->mem, bytes);
    if (!index->heads) {
        return memory_refused(x->mem, x->err, bytes);
    }
    memset(index->heads, 0, (size_t)bytes);
    index->bytes = bytes;
    if (index->form == INDEX_HASH) {
        bytes = index->slot_count * (i64)sizeof(i64);
        index->keys = mem_alloc(x->mem, bytes);
        if (!index->keys) {
            return memory_refused(x->mem, x->err, bytes);
        }
        index->bytes += bytes;
    }
    return ERR_OK;
}

wf_status set_build(struct exec *x, const struct step *step) {
    struct keys k = {.var = &x->vars[step->src], .col = step->col};
    if (k.var->rows >= 0xffffffffLL) {
        FAIL(x->err, NOT_SUPPORTED, "a set of 2^32 rows or more");
    }
    variable_reset(&x->vars[step->dst]);
    struct index *index = index_new(x);
    x->vars[step->dst].index = index;
    x->vars[step->dst].on_host = 1;
    x->vars[step->dst].rows = k.var->rows;
    find_bounds(&k);
    index->row_count = k.rows;
    u64 span = k.lo <= k.hi ? (u64)k.hi - (u64)k.lo : 0;
    bool bits = span < (u64)MAX_OF((i64)BITS_MIN, k.rows * BITS_PER_ROW);
    index->unique = 1;
    index->form = bits ? INDEX_BITS : INDEX_HASH;
    index->key_lo = k.lo <= k.hi ? k.lo : 0;
    if (bits) {
        index->slot_count = (i64)span + 1;
        index->head_count = index->slot_count / 32 + 1;
    } else {
        index->slot_count = 64;
        while (index->slot_count < 2 * k.rows) {
            index->slot_count *= 2;
        }
        index->head_count = index->slot_count + 1;
    }
    TRY(alloc(x, index));
    TRY(insert_all(x, &k, index));
    return ERR_OK;
}

void index_filter(struct exec *x, const struct step *step) {
    struct index *index = x->vars[step->dst].index;
    struct keys k = {.var = &x->vars[step->src], .col = step->col};
    find_bounds(&k);
    if (k.lo > k.hi) {
        return;
    }
    u64 span = (u64)k.hi - (u64)k.lo;
    u64 most = k.rows < FILTER_FEW ? FILTER_SMALL : FILTER_LARGE;
    bool small = index->form == INDEX_DIRECT && index->bytes < 64 << 10;
    if (small || span >= most || span < (u64)k.rows * FILTER_SPARSE) {
        return;
    }
    i64 bytes = (i64)(span + 1) / 32 * 4 + 4;
    struct index bits = {.form = INDEX_BITS, .key_lo = k.lo};
    bits.heads = mem_alloc(x->mem, bytes);
    if (!bits.heads) { /* it does without */
        return;
    }
    memset(bits.heads, 0, (size_t)bytes);
    index->filter = bits.heads;
    index->filter_lo = k.lo;
    index->filter_bits = (i64)span + 1;
    if (insert_all(x, &k, &bits)) {
        return; /* cancelled; whoever asks next says so */
    }
}
