/* index_hash.c: the hash table of an index whose keys span too much for anything simpler.
 *
 * A slot is a key and a run of rows, 16 bytes in one cache line; linear probing from the key's
 * hash. A large build first splits its keys by the part of the table they belong to, so that every
 * part is filled by one worker while it stays in the cache; the few keys that would run over the
 * end of their part are put in last. With unique keys the run is the row itself. On the first
 * duplicate the build starts over with runs: count, prefix sums, fill. Inserting straight into a
 * table of 10 M keys took four times as long. A filter stands before the table: TPC-H's second
 * query at scale factor 10 looks 8 M keys up among 5,000, which took 115 ms without and 20 ms with
 * it. */
#include "cpu/index_int.h"
#include "cpu/radix.h"

enum {
    PART_SHIFT = 15, /* slots of a part: 512 KiB */
    PARTS_BITS_MAX = 10,
    FEW_KEYS = 4096,
    FEW_ROOM = 8,
    GROWN_MIN = 64, /* slots of an index that grows */
    FILTER_KEYS_FEW = 4096, /* a bitmap before a table of so few keys */
    FILTER_BITS_FEW = 1 << 24,
    FILTER_BITS_MAX = 1 << 26, /* ... and before others */
    FILTER_PER_KEY = 8,        /* bits of hashes */
    FILTER_HASHED_MIN = 1 << 10,
    FILTER_HASHED_MAX = 1 << 24, /* 2 MiB: what a core's cache holds */
#ifdef WF_HARD
    PARALLEL_KEYS = 1 << 9,
    HARD_SHIFT = 4,
#else
    PARALLEL_KEYS = 1 << 16,
    HARD_SHIFT = PART_SHIFT,
#endif
};

struct hash_build {
    struct build *b;
    bool set, runs;
    bool counts; /* lo .. hi of a slot counts: of runs, and of a set, whose rows have no numbers */
    i32 shift; /* a part is slot >> shift */
    i64 parts;
    struct prim_pair *pairs; /* key and row, by part */
    i64 *places;             /* per chunk and part */
    i64 *starts;             /* per part; parts + 1 */
    VEC(i64) late;           /* pairs that found no room in their part; under the lock */
    u32 *totals;             /* runs: rows of the part's slots */
};

/* Puts a row in at `slot`, which is free or has the key. False: a duplicate that matters. */
static inline bool put(struct hash_slot *slot, i64 key, u32 row, const struct hash_build *h) {
    if (slot_free(slot)) {
        *slot = (struct hash_slot){key, row, row + 1};
        if (h->counts) {
            slot->lo = 0;
            slot->hi = 1;
        }
        return true;
    }
    slot->hi += h->runs;
    return h->set || h->runs;
}

/* The slot that has the key, or is free for it. */
static struct hash_slot *find(const struct index *index, i64 key) {
    return slot_walk(index->slots, (u64)index->slot_count - 1, slot_of(index, key), key);
}

static bool insert_anywhere(struct hash_build *h, i64 key, u32 row) {
    return put(find(h->b->index, key), key, row, h);
}

static FALLIBLE insert_few(struct hash_build *h) {
    struct build *b = h->b;
    for (i64 c = 0; c < b->chunk_count; c++) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        TRY(exec_check(b->x));
        for (i64 i = 0; i < b->chunks[c]->rows; i++) {
            if ((!nulls || !nulls[i]) && !insert_anywhere(h, key[i], (u32)(b->starts[c] + i))) {
                atomic_store_explicit(&b->duplicate, 1, memory_order_relaxed);
                return ERR_OK;
            }
        }
    }
    return ERR_OK;
}

/* splitting */

static void count_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct hash_build *h = arg;
    const b8 *nulls;
    const i64 *key = build_keys(h->b, c, &nulls);
    i64 *count = h->places + c * h->parts;
    for (i64 i = 0; i < h->b->chunks[c]->rows; i++) {
        if (!nulls || !nulls[i]) {
            count[slot_of(h->b->index, key[i]) >> h->shift]++;
        }
    }
}

static void split_task(void *arg, i64 c, i32 worker) {
    UNUSED(worker);
    struct hash_build *h = arg;
    const b8 *nulls;
    const i64 *key = build_keys(h->b, c, &nulls);
    i64 *place = h->places + c * h->parts;
    if (exec_check(h->b->x)) {
        return;
    }
    for (i64 i = 0; i < h->b->chunks[c]->rows; i++) {
        if (!nulls || !nulls[i]) {
            u64 part = slot_of(h->b->index, key[i]) >> h->shift;
            h->pairs[place[part]++] = (struct prim_pair){(u64)key[i], (u64)(h->b->starts[c] + i)};
        }
    }
}

static FALLIBLE split(struct hash_build *h) {
    struct build *b = h->b;
    tasks_run(b->x, b->chunk_count, count_task, h);
    TRY(exec_check(b->x));
    i64 at = 0;
    for (i64 p = 0; p < h->parts; p++) {
        h->starts[p] = at;
        for (i64 c = 0; c < b->chunk_count; c++) {
            i64 count = h->places[c * h->parts + p];
            h->places[c * h->parts + p] = at;
            at += count;
        }
    }
    h->starts[h->parts] = at;
    tasks_run(b->x, b->chunk_count, split_task, h);
    return exec_check(b->x);
}

/* filling */

static void insert_task(void *arg, i64 p, i32 worker) {
    UNUSED(worker);
    struct hash_build *h = arg;
    struct index *index = h->b->index;
    u64 end = (u64)(p + 1) << h->shift;
    if (atomic_load_explicit(&h->b->duplicate, memory_order_relaxed) || exec_check(h->b->x)) {
        return;
    }
    for (i64 i = h->starts[p]; i < h->starts[p + 1]; i++) {
        struct prim_pair pair = h->pairs[i];
        u64 at = slot_of(index, (i64)pair.key);
        struct hash_slot *held = &index->slots[at];
        TABLE_WALK(at, ~0ULL, held, held + 1,
                   at < end && !slot_free(held) && held->key != (i64)pair.key)
        if (at == end) {
            mutex_lock(&h->b->x->lock);
            VEC_PUSH(h->b->x->arena, &h->late, i);
            mutex_unlock(&h->b->x->lock);
        } else if (!put(held, (i64)pair.key, (u32)pair.row, h)) {
            atomic_store_explicit(&h->b->duplicate, 1, memory_order_relaxed);
            return;
        }
    }
}

static FALLIBLE insert_many(struct hash_build *h) {
    struct build *b = h->b;
    tasks_run(b->x, h->parts, insert_task, h);
    TRY(exec_check(b->x));
    for (i64 i = 0; i < h->late.count && !atomic_load(&b->duplicate); i++) {
        const struct prim_pair *pair = &h->pairs[h->late.items[i]];
        if (!insert_anywhere(h, (i64)pair->key, (u32)pair->row)) {
            atomic_store_explicit(&b->duplicate, 1, memory_order_relaxed);
        }
    }
    return ERR_OK;
}

/* runs */

static void total_task(void *arg, i64 p, i32 worker) {
    UNUSED(worker);
    struct hash_build *h = arg;
    const struct hash_slot *slot = h->b->index->slots + (p << h->shift);
    u32 total = 0;
    for (i64 s = 0; s < 1LL << h->shift; s++) {
        total += slot[s].hi;
    }
    h->totals[p] = total;
}

/* Counts become ends: runs are filled from the back. */
static void ends_task(void *arg, i64 p, i32 worker) {
    UNUSED(worker);
    struct hash_build *h = arg;
    struct hash_slot *slot = h->b->index->slots + (p << h->shift);
    u32 at = h->totals[p];
    for (i64 s = 0; s < 1LL << h->shift; s++) {
        if (slot[s].hi) {
            at += slot[s].hi;
            slot[s].lo = slot[s].hi = at;
        }
    }
}

static void fill_task(void *arg, i64 p, i32 worker) {
    UNUSED(worker);
    struct hash_build *h = arg;
    const struct index *index = h->b->index;
    if (exec_check(h->b->x)) {
        return;
    }
    for (i64 i = h->starts[p + 1]; i-- > h->starts[p];) {
        index->rows[--find(index, (i64)h->pairs[i].key)->lo] = (u32)h->pairs[i].row;
    }
}

static FALLIBLE fill_few(struct hash_build *h) {
    struct build *b = h->b;
    for (i64 c = b->chunk_count; c-- > 0;) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        TRY(exec_check(b->x));
        for (i64 i = b->chunks[c]->rows; i-- > 0;) {
            if (!nulls || !nulls[i]) {
                b->index->rows[--find(b->index, key[i])->lo] = (u32)(b->starts[c] + i);
            }
        }
    }
    return ERR_OK;
}

static FALLIBLE make_runs(struct hash_build *h) {
    struct build *b = h->b;
    i64 bytes = b->index->row_count * (i64)sizeof(u32);
    b->index->rows = mem_alloc(b->x->mem, bytes);
    if (!b->index->rows) {
        return memory_refused(b->x->mem, b->x->err, bytes);
    }
    tasks_run(b->x, h->parts, total_task, h);
    u32 at = 0;
    for (i64 p = 0; p < h->parts; p++) {
        u32 total = h->totals[p];
        h->totals[p] = at;
        at += total;
    }
    tasks_run(b->x, h->parts, ends_task, h);
    if (!h->pairs) {
        return fill_few(h);
    }
    tasks_run(b->x, h->parts, fill_task, h);
    return exec_check(b->x);
}

static FALLIBLE fill_table(struct hash_build *h) {
    struct index *index = h->b->index;
    memset(index->slots, 0, (size_t)index->slot_count * sizeof(struct hash_slot));
    TRY(h->pairs ? insert_many(h) : insert_few(h));
    if (!atomic_load(&h->b->duplicate) || h->runs) {
        return ERR_OK;
    }
    atomic_store(&h->b->duplicate, 0);
    h->late.count = 0;
    h->runs = h->counts = true;
    TRY(fill_table(h));
    return make_runs(h);
}

static FALLIBLE build_table(struct hash_build *h) {
    struct build *b = h->b;
    struct arena *arena = b->x->arena;
    h->starts = NEW_ARRAY(arena, i64, h->parts + 1);
    h->totals = NEW_ARRAY(arena, u32, h->parts + 1);
    if (b->keys < PARALLEL_KEYS) {
        return fill_table(h);
    }
    i64 bytes = b->keys * (i64)sizeof(struct prim_pair);
    i64 place_bytes = b->chunk_count * h->parts * (i64)sizeof(i64);
    h->pairs = mem_alloc(b->x->mem, bytes);
    h->places = mem_alloc(b->x->mem, place_bytes);
    wf_status status = ERR_OK;
    if (!h->pairs || !h->places) {
        status = memory_refused(b->x->mem, b->x->err, bytes + place_bytes);
    } else {
        memset(h->places, 0, (size_t)place_bytes);
        status = split(h);
    }
    status = status ? status : fill_table(h);
    mem_free(b->x->mem, h->places, place_bytes);
    mem_free(b->x->mem, h->pairs, bytes);
    return status;
}

/* a filter before the table */

static FALLIBLE filter_alloc(struct build *b, i64 bits) {
    struct index *index = b->index;
    index->filter_bits = bits;
    index->filter = mem_alloc(b->x->mem, index_filter_bytes(index));
    if (index->filter) {
        memset(index->filter, 0, (size_t)index_filter_bytes(index));
    }
    return exec_check(b->x);
}

static FALLIBLE filter_hashed(struct build *b) {
    struct index *index = b->index;
    i32 shift = 64;
    for (i64 size = 1; size < index->filter_bits; size *= 2) {
        shift--;
    }
    for (i64 c = 0; c < b->chunk_count; c++) {
        const b8 *nulls;
        const i64 *key = build_keys(b, c, &nulls);
        TRY(exec_check(b->x));
        for (i64 i = 0; i < b->chunks[c]->rows; i++) {
            if (!nulls || !nulls[i]) {
                u64 bit = hash_u64((u64)key[i]) >> shift;
                index->filter[bit >> 5] |= 1u << (bit & 31);
            }
        }
    }
    return ERR_OK;
}

/* Keys that are not there go no further: a bit a key where their span allows it, otherwise a few
 * bits a hash. Without memory for it the index does without. */
static FALLIBLE add_filter(struct build *b) {
    struct index *index = b->index;
    u64 span = b->lo <= b->hi ? (u64)b->hi - (u64)b->lo : 0;
    if (span < (b->keys < FILTER_KEYS_FEW ? FILTER_BITS_FEW : FILTER_BITS_MAX)) {
        TRY(filter_alloc(b, (i64)span + 1));
        index->filter_lo = b->lo;
        return index->filter ? build_bits(b, index->filter, b->lo) : ERR_OK;
    }
    i64 bits = FILTER_HASHED_MIN;
    while (bits < FILTER_PER_KEY * b->keys) {
        bits *= 2;
    }
    if (bits > FILTER_HASHED_MAX) {
        return ERR_OK;
    }
    index->filter_hashed = 1;
    TRY(filter_alloc(b, bits));
    return index->filter ? filter_hashed(b) : ERR_OK;
}

wf_status hash_build(struct build *b, bool set) {
    struct index *index = b->index;
    index->form = INDEX_HASH;
    i32 bits = 6;
    /* A small table has room to spare: a key that is not there then mostly meets a free slot at
     * once. */
    i64 room = b->keys < FEW_KEYS ? FEW_ROOM * b->keys : b->keys + b->keys / 2;
    while (1LL << bits < room) {
        bits++;
    }
    index->slot_count = 1LL << bits;
    i64 bytes = index->slot_count * (i64)sizeof(struct hash_slot);
    index->slots = mem_alloc(b->x->mem, bytes);
    if (!index->slots) {
        return memory_refused(b->x->mem, b->x->err, bytes);
    }
    struct hash_build h = {.b = b, .set = set, .counts = set};
    h.shift = MAX_OF(MIN_OF(HARD_SHIFT, bits), bits - PARTS_BITS_MAX);
    h.parts = 1LL << (bits - h.shift);
    TRY(build_table(&h));
    index->unique = !h.runs;
    return add_filter(b);
}

wf_status index_slots(struct exec *x, struct index *index, i64 keys) {
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
            *slot_walk(slots, (u64)count - 1, slot_of(index, old[i].key), old[i].key) = old[i];
        }
    }
    mem_free(x->mem, old, old_count * (i64)sizeof *old);
    return ERR_OK;
}
