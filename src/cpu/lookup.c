/* lookup.c: keys looked up in an index, a vector at a time.
 *
 * PROBE and MATCH (probe.c) end here. The keys of a vector are hashed first and their slots
 * prefetched, so that the misses of a vector overlap; the comparison loop then finds them in the
 * cache. Most keys of a selective join are not in the table at all: a filter in front of it, one
 * bit a key or a few bits a hash, drops them eight at a time and without a branch that is hard to
 * foresee. A filter that keeps nearly everything is work for nothing, so a reader stops asking once
 * it has seen enough keys pass. */
#include "cpu/lookup.h"

#include "cpu/slots.h"

enum { COUNT_MIN = 1 << 14 }; /* keys before a filter is judged */

static bool filter_pays(const struct index *index, const struct lookup_count *count) {
    return index->filter && (count->asked < COUNT_MIN || count->passed < count->asked / 4 * 3);
}

static void prefetch_slots(const struct index *index, u64 *hash, i64 n) {
    u64 mask = (u64)index->slot_count - 1;
    for (i64 j = 0; j < n; j++) {
        hash[j] &= mask;
        __builtin_prefetch(&index->slots[hash[j]]);
    }
}

static inline const struct hash_slot *hash_find(const struct index *index, i64 key, u64 slot) {
    return slot_walk(index->slots, (u64)index->slot_count - 1, slot, key);
}

/* The keys that may be in the index, in l->passed, which ones in l->at, their hashes in l->hash. */
static i64 pass_filter(const struct lookup *l, struct lookup_count *count,
                       const struct index *index, const i64 *key, i64 n) {
    i64 passed = 0;
    if (index->filter_hashed) {
        l->vec->hash(l->hash, key, n);
        passed = l->vec->filter_hashes(l->passed, l->at, l->hash, key, index->filter_bits,
                                       index->filter, n);
    } else {
        passed = l->vec->filter_keys(l->passed, l->at, key, index->filter_lo,
                                     (u64)index->filter_bits, index->filter, n);
        l->vec->hash(l->hash, l->passed, passed);
    }
    count->asked += n;
    count->passed += passed;
    return passed;
}

static void hash_rows(const struct lookup *l, struct lookup_count *count, const struct index *index,
                      const i64 *key, i64 n, i64 *restrict rows, b8 *restrict found) {
    if (!filter_pays(index, count)) {
        l->vec->hash(l->hash, key, n);
        prefetch_slots(index, l->hash, n);
        for (i64 j = 0; j < n; j++) {
            const struct hash_slot *at = hash_find(index, key[j], l->hash[j]);
            found[j] = !slot_free(at);
            rows[j] = at->lo;
        }
        return;
    }
    i64 passed = pass_filter(l, count, index, key, n);
    memset(found, 0, (size_t)n);
    memset(rows, 0, (size_t)n * sizeof(i64));
    prefetch_slots(index, l->hash, passed);
    for (i64 k = 0; k < passed; k++) {
        const struct hash_slot *at = hash_find(index, l->passed[k], l->hash[k]);
        found[l->at[k]] = !slot_free(at);
        rows[l->at[k]] = at->lo;
    }
}

static void hash_runs(const struct lookup *l, struct lookup_count *count, const struct index *index,
                      const i64 *key, i64 n, u32 *restrict lo, u32 *restrict hi) {
    if (!filter_pays(index, count)) {
        l->vec->hash(l->hash, key, n);
        prefetch_slots(index, l->hash, n);
        for (i64 j = 0; j < n; j++) {
            const struct hash_slot *at = hash_find(index, key[j], l->hash[j]);
            lo[j] = at->lo;
            hi[j] = at->hi;
            __builtin_prefetch(&index->rows[at->lo]);
        }
        return;
    }
    i64 passed = pass_filter(l, count, index, key, n);
    memset(lo, 0, (size_t)n * sizeof(u32));
    memset(hi, 0, (size_t)n * sizeof(u32));
    prefetch_slots(index, l->hash, passed);
    for (i64 k = 0; k < passed; k++) {
        const struct hash_slot *at = hash_find(index, l->passed[k], l->hash[k]);
        lo[l->at[k]] = at->lo;
        hi[l->at[k]] = at->hi;
        __builtin_prefetch(&index->rows[at->lo]);
    }
}

static void rank_rows(const struct lookup *l, const struct index *index, const i64 *key, i64 n,
                      i64 *restrict rows, b8 *restrict found) {
    l->vec->probe_rank(rows, found, key, index->key_lo, index->slot_count, index->blocks, n);
    if (!index->rows || index->row_count == 0) {
        return;
    }
    for (i64 j = 0; j < n; j++) { /* number 0 stands for those not found: harmless */
        rows[j] = index->rows[rows[j]];
    }
}

/* The numbers of the keys go where hashes are otherwise, the marks into `at`. */
static void rank_runs(const struct lookup *l, const struct index *index, const i64 *key, i64 n,
                      u32 *restrict lo, u32 *restrict hi) {
    b8 *found = (b8 *)(void *)l->at;
    l->vec->probe_rank(l->passed, found, key, index->key_lo, index->slot_count, index->blocks, n);
    for (i64 j = 0; j < n; j++) {
        const u32 *head = &index->heads[l->passed[j]];
        lo[j] = found[j] ? head[0] : 0;
        hi[j] = found[j] ? head[1] : 0;
    }
}

static void direct_runs(const struct index *index, const i64 *key, i64 n, u32 *restrict lo,
                        u32 *restrict hi) {
    for (i64 j = 0; j < n; j++) {
        u64 slot = (u64)key[j] - (u64)index->key_lo;
        bool inside = slot < (u64)index->slot_count;
        lo[j] = inside ? index->heads[slot] : 0;
        hi[j] = inside ? index->heads[slot + 1] : 0;
        __builtin_prefetch(&index->rows[lo[j]]);
    }
}

static void set_marks(const struct lookup *l, const struct index *index, const i64 *key, i64 n,
                      i64 *restrict rows, b8 *restrict found) {
    i64 passed = l->vec->filter_keys(l->passed, l->at, key, index->key_lo, (u64)index->slot_count,
                                     index->heads, n);
    memset(found, 0, (size_t)n);
    memset(rows, 0, (size_t)n * sizeof(i64));
    for (i64 k = 0; k < passed; k++) {
        found[l->at[k]] = 1;
    }
}

void lookup_rows(const struct lookup *l, struct lookup_count *count, const struct index *index,
                 const i64 *key, i64 n, i64 *restrict rows, b8 *restrict found) {
    ASSERT(index->unique);
    if (index->form == INDEX_BITS) {
        set_marks(l, index, key, n, rows, found);
    } else if (index->form == INDEX_HASH) {
        hash_rows(l, count, index, key, n, rows, found);
    } else if (index->form == INDEX_RANK) {
        rank_rows(l, index, key, n, rows, found);
    } else {
        l->vec->probe_direct(rows, found, key, index->key_lo, index->slot_count, index->heads, n);
    }
}

static i64 hash_select(const struct lookup *l, struct lookup_count *count,
                       const struct index *index, const i64 *key, i64 n, i64 *restrict rows) {
    i64 m = 0;
    if (!filter_pays(index, count)) {
        l->vec->hash(l->hash, key, n);
        prefetch_slots(index, l->hash, n);
        for (i64 j = 0; j < n; j++) {
            const struct hash_slot *at = hash_find(index, key[j], l->hash[j]);
            rows[j] = at->lo;
            l->at[m] = (u32)j;
            m += !slot_free(at);
        }
        return m;
    }
    i64 passed = pass_filter(l, count, index, key, n);
    prefetch_slots(index, l->hash, passed);
    for (i64 k = 0; k < passed; k++) {
        const struct hash_slot *at = hash_find(index, l->passed[k], l->hash[k]);
        u32 place = l->at[k];
        rows[place] = at->lo;
        l->at[m] = place;
        m += !slot_free(at);
    }
    return m;
}

static i64 direct_select(const struct lookup *l, const struct index *index, const i64 *key, i64 n,
                         i64 *restrict rows) {
    i64 m = 0;
    for (i64 j = 0; j < n; j++) {
        u64 slot = (u64)key[j] - (u64)index->key_lo;
        bool inside = slot < (u64)index->slot_count;
        u32 head = inside ? index->heads[slot] : 0;
        rows[j] = (i64)head - 1;
        l->at[m] = (u32)j;
        m += head != 0;
    }
    return m;
}

i64 lookup_select(const struct lookup *l, struct lookup_count *count, const struct index *index,
                  const i64 *key, i64 n, i64 *restrict rows) {
    ASSERT(index->unique);
    i64 m = 0;
    switch (index->form) {
    case INDEX_BITS:
        m = l->vec->filter_keys(l->passed, l->at, key, index->key_lo, (u64)index->slot_count,
                                index->heads, n);
        for (i64 k = 0; k < m; k++) {
            rows[l->at[k]] = 0;
        }
        return m;
    case INDEX_HASH:
        return hash_select(l, count, index, key, n, rows);
    case INDEX_RANK:
        m = l->vec->select_rank(rows, l->at, key, index->key_lo, index->slot_count, index->blocks,
                                n);
        for (i64 k = 0; k < m && index->rows; k++) {
            rows[l->at[k]] = index->rows[rows[l->at[k]]];
        }
        return m;
    default:
        return direct_select(l, index, key, n, rows);
    }
}

void lookup_runs(const struct lookup *l, struct lookup_count *count, const struct index *index,
                 const i64 *key, i64 n, u32 *restrict lo, u32 *restrict hi) {
    ASSERT(!index->unique);
    if (index->form == INDEX_HASH) {
        hash_runs(l, count, index, key, n, lo, hi);
    } else if (index->form == INDEX_RANK) {
        rank_runs(l, index, key, n, lo, hi);
    } else {
        direct_runs(index, key, n, lo, hi);
    }
}
