/* index_build.c: from a key to rows: direct address where the keys are dense, else a hash table.
 *
 * A build assumes that keys are unique and starts over with runs on the first duplicate: most
 * builds are over keys, and a unique index is half the size and one step shorter to probe. Rows
 * whose key is NULL match nothing and are left out. Inserts of a direct index are spread over the
 * pool by range of slots. */
#include "cpu/cpu_int.h"

enum {
    DIRECT_MIN = 64 << 10, /* slots that are always affordable */
    DIRECT_PER_ROW = 4,
    DIRECT_SPARSE = 24, /* the same up to DIRECT_MOST slots: one miss where a hash table has two */
    DIRECT_MOST = 8 << 20,
    PARALLEL_ROWS = 1 << 20,
    PARTS_MAX = 8,
    AHEAD = 16,
    ROWS_PER_CHECK = 1 << 18
};

struct build {
    struct exec *x;
    struct index *index;
    const i64 *key;
    const b8 *nulls;
    i64 rows;
    i64 parts;
    _Atomic i32 duplicate;
};

static bool is_null(const struct build *b, i64 row) {
    return b->nulls && b->nulls[row];
}

/* Called for every row: whether the statement was cancelled, now and then. */
static inline wf_status check_at(const struct build *b, i64 row) {
    return row % ROWS_PER_CHECK == 0 ? exec_check(b->x) : ERR_OK;
}

static void key_bounds(const struct build *b, i64 *out_lo, i64 *out_hi) {
    i64 lo = I64_MAX;
    i64 hi = I64_MIN;
    for (i64 i = 0; i < b->rows; i++) {
        if (!is_null(b, i)) {
            lo = MIN_OF(lo, b->key[i]);
            hi = MAX_OF(hi, b->key[i]);
        }
    }
    *out_lo = lo;
    *out_hi = hi;
}

static FALLIBLE alloc_heads(struct build *b, i64 count) {
    b->index->heads = mem_alloc(b->x->mem, count * (i64)sizeof(u32));
    b->index->head_count = count;
    if (!b->index->heads) {
        return memory_refused(b->x->mem, b->x->err, count * (i64)sizeof(u32));
    }
    memset(b->index->heads, 0, (size_t)count * sizeof(u32));
    return ERR_OK;
}

static FALLIBLE alloc_keys(struct build *b) {
    i64 bytes = b->index->slot_count * (i64)sizeof(i64);
    b->index->keys = mem_alloc(b->x->mem, bytes);
    if (!b->index->keys) {
        return memory_refused(b->x->mem, b->x->err, bytes);
    }
    memset(b->index->keys, 0, (size_t)bytes);
    return ERR_OK;
}

static FALLIBLE alloc_rows(struct build *b) {
    i64 bytes = b->index->row_count * (i64)sizeof(u32);
    b->index->rows = mem_alloc(b->x->mem, bytes);
    return b->index->rows ? ERR_OK : memory_refused(b->x->mem, b->x->err, bytes);
}

/* Inserts the rows whose slot lies in part i's range. */
static void direct_part(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct build *b = arg;
    u32 *heads = b->index->heads;
    u64 lo = (u64)(b->index->slot_count / b->parts * i);
    u64 hi = i == b->parts - 1 ? (u64)b->index->slot_count
                               : (u64)(b->index->slot_count / b->parts * (i + 1));
    for (i64 r = 0; r < b->rows; r++) {
        u64 slot = (u64)b->key[r] - (u64)b->index->key_lo;
        if (slot < lo || slot >= hi || is_null(b, r)) {
            continue;
        }
        if (heads[slot]) {
            atomic_store_explicit(&b->duplicate, 1, memory_order_relaxed);
            return;
        }
        heads[slot] = (u32)r + 1;
    }
}

static FALLIBLE direct_unique(struct build *b) {
    TRY(alloc_heads(b, b->index->slot_count + 1));
    b->parts = 1;
    if (b->rows >= PARALLEL_ROWS && b->x->pool) {
        b->parts = MIN_OF(pool_worker_count(b->x->pool), PARTS_MAX);
    }
    tasks_run(b->x, b->parts, direct_part, b);
    return ERR_OK;
}

/* Counts per slot, shifted by one; prefix sums; then every row to its place. */
static FALLIBLE direct_runs(struct build *b) {
    struct index *index = b->index;
    u32 *heads = index->heads;
    TRY(alloc_rows(b));
    memset(heads, 0, (size_t)(index->slot_count + 1) * sizeof(u32));
    for (i64 r = 0; r < b->rows; r++) {
        TRY(check_at(b, r));
        if (!is_null(b, r)) {
            heads[(u64)b->key[r] - (u64)index->key_lo + 1]++;
        }
    }
    for (i64 s = 0; s < index->slot_count; s++) {
        heads[s + 1] += heads[s];
    }
    /* heads[s + 1] is where run s ends: fill runs from the back, then heads[s + 1] starts run s. */
    for (i64 r = b->rows - 1; r >= 0; r--) {
        TRY(check_at(b, r));
        if (!is_null(b, r)) {
            index->rows[--heads[(u64)b->key[r] - (u64)index->key_lo + 1]] = (u32)r;
        }
    }
    memmove(heads, heads + 1, (size_t)index->slot_count * sizeof(u32));
    heads[index->slot_count] = (u32)index->row_count;
    return ERR_OK;
}

/* The slot of a key in a table with `per` heads a slot; a slot is taken when any of its heads is
 * not 0. */
static i64 find_slot(const struct index *index, i64 key, i64 per, i64 slot) {
    i64 mask = index->slot_count - 1;
    while (index->heads[slot * per + per - 1] && index->keys[slot] != key) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

static i64 first_slot(const struct index *index, i64 key) {
    return (i64)(hash_u64((u64)key) & ((u64)index->slot_count - 1));
}

static void prefetch_row(const struct build *b, i64 row, i64 per) {
    if (row < b->rows) {
        i64 slot = first_slot(b->index, b->key[row]);
        __builtin_prefetch(&b->index->heads[slot * per], 1);
        __builtin_prefetch(&b->index->keys[slot], 1);
    }
}

static FALLIBLE hash_unique(struct build *b) {
    struct index *index = b->index;
    TRY(alloc_heads(b, index->slot_count + 1));
    TRY(alloc_keys(b));
    for (i64 r = 0; r < b->rows; r++) {
        TRY(check_at(b, r));
        prefetch_row(b, r + AHEAD, 1);
        if (is_null(b, r)) {
            continue;
        }
        i64 slot = find_slot(index, b->key[r], 1, first_slot(index, b->key[r]));
        if (index->heads[slot]) {
            atomic_store_explicit(&b->duplicate, 1, memory_order_relaxed);
            return ERR_OK;
        }
        index->keys[slot] = b->key[r];
        index->heads[slot] = (u32)r + 1;
    }
    return ERR_OK;
}

static FALLIBLE hash_runs(struct build *b) {
    struct index *index = b->index;
    mem_free(b->x->mem, index->heads, index->head_count * (i64)sizeof(u32));
    index->heads = NULL;
    TRY(alloc_heads(b, 2 * index->slot_count));
    TRY(alloc_rows(b));
    u32 *heads = index->heads;
    for (i64 r = 0; r < b->rows; r++) { /* heads[2s + 1] counts */
        TRY(check_at(b, r));
        prefetch_row(b, r + AHEAD, 2);
        if (!is_null(b, r)) {
            i64 slot = find_slot(index, b->key[r], 2, first_slot(index, b->key[r]));
            index->keys[slot] = b->key[r];
            heads[2 * slot + 1]++;
        }
    }
    u32 at = 0;
    for (i64 s = 0; s < index->slot_count; s++) { /* ends of runs, to be filled from the back */
        u32 count = heads[2 * s + 1];
        at += count;
        heads[2 * s + 1] = count ? at : 0;
        heads[2 * s] = heads[2 * s + 1];
    }
    for (i64 r = b->rows - 1; r >= 0; r--) {
        TRY(check_at(b, r));
        if (!is_null(b, r)) {
            i64 slot = find_slot(index, b->key[r], 2, first_slot(index, b->key[r]));
            index->rows[--heads[2 * slot]] = (u32)r;
        }
    }
    return ERR_OK;
}

static FALLIBLE build_form(struct build *b) {
    struct index *index = b->index;
    i64 lo = 0;
    i64 hi = 0;
    key_bounds(b, &lo, &hi);
    u64 range = lo <= hi ? (u64)hi - (u64)lo : 0;
    index->key_lo = lo <= hi ? lo : 0;
    i64 sparse = MIN_OF(DIRECT_SPARSE * b->rows, DIRECT_MOST);
    u64 affordable = (u64)MAX_OF(MAX_OF(DIRECT_PER_ROW * b->rows, sparse), DIRECT_MIN);
    index->form = range < affordable ? INDEX_DIRECT : INDEX_HASH;
    if (index->form == INDEX_DIRECT) {
        index->slot_count = (i64)range + 1;
        TRY(direct_unique(b));
    } else {
        index->slot_count = 64;
        while (index->slot_count < 2 * b->rows) {
            index->slot_count *= 2;
        }
        TRY(hash_unique(b));
    }
    if (!atomic_load(&b->duplicate)) {
        index->unique = 1;
        return ERR_OK;
    }
    return index->form == INDEX_DIRECT ? direct_runs(b) : hash_runs(b);
}

wf_status index_build(struct exec *x, const struct step *step) {
    TRY(variable_flatten(x, step->src));
    variable_reset(&x->vars[step->dst]);
    const struct chunk *chunk = x->vars[step->src].chunks.items[0];
    if (chunk->rows >= 0xffffffffLL) {
        FAIL(x->err, NOT_SUPPORTED, "an index over 2^32 rows or more");
    }
    const struct column *column = &chunk->cols[step->col];
    struct build b = {.x = x, .key = column->data, .nulls = column->nulls, .rows = chunk->rows};
    b.index = index_new(x);
    x->vars[step->dst].index = b.index;
    for (i64 r = 0; r < b.rows; r++) {
        b.index->row_count += !is_null(&b, r);
    }
    wf_status status = build_form(&b);
    b.index->bytes = b.index->slot_count * 12 + b.index->row_count * 4;
    x->vars[step->dst].on_host = 1;
    x->vars[step->dst].rows = chunk->rows;
    return status;
}
