/* groups.c: the hash table under aggregation.
 *
 * Rows are dense and in order of first appearance; slots are a separate array of 32-bit numbers, so
 * that growing moves little and a probe touches one slot and one row, which the update needs
 * anyway. Keys of a vector are hashed together and their slots prefetched before any is compared.
 * Keys that turn out to be small numbers, such as those of interned text, are slots themselves: a
 * hundred thousand texts among ten million rows took a quarter less time that way. */
#include "cpu/groups.h"
#include "defs/host_words.h"

enum {
    FIRST_ROWS = 1024,
    PREFETCH_ROWS = 16,
    DENSE_ALWAYS = 1 << 12, /* keys below are dense, however few there are */
    DENSE_PER_GROUP = 8
};
#define GROUPS_MAX 0xfffffff0LL

i64 word_identity(u8 word) {
    static const i64 identities[WORD_COUNT] = {
#define X(A, name, identity, expr) [WORD_##name] = identity,
        WF_WORDS(X, )
#undef X
    };
    return identities[word];
}

i64 word_apply(u8 word, i64 w, i64 x) {
    switch (word) {
    case WORD_MIN:
        return MIN_OF(w, x);
    case WORD_MAX:
        return MAX_OF(w, x);
    case WORD_AND:
        return w & x;
    case WORD_OR:
        return w | x;
    case WORD_XOR:
        return w ^ x;
    case WORD_FADD:
        return (i64)f64_bits(bits_f64((u64)w) + bits_f64((u64)x));
    default:
        return (i64)((u64)w + (u64)x);
    }
}

/* A table is read in no order: it lies in memory, or there is a way to do with a smaller one. */
static void *table_alloc(const struct groups *g, i64 bytes) {
    return g->last_resort ? mem_alloc(g->mem, bytes) : mem_try(g->mem, bytes);
}

static bool grow_rows(struct groups *g, i64 cap) {
    i64 *rows = table_alloc(g, cap * g->stride * (i64)sizeof(i64));
    if (!rows) {
        return false;
    }
    if (g->count) {
        memcpy(rows, g->rows, (size_t)(g->count * g->stride) * sizeof(i64));
    }
    mem_free(g->mem, g->rows, g->cap * g->stride * (i64)sizeof(i64));
    g->rows = rows;
    g->cap = cap;
    return true;
}

static bool grow_slots(struct groups *g, i64 slot_count) {
    u32 *slots = table_alloc(g, slot_count * (i64)sizeof(u32));
    if (!slots) {
        return false;
    }
    memset(slots, 0, (size_t)slot_count * sizeof(u32));
    mem_free(g->mem, g->slots, g->slot_count * (i64)sizeof(u32));
    g->slots = slots;
    g->slot_count = slot_count;
    u64 mask = (u64)slot_count - 1;
    for (i64 i = 0; i < g->count && g->dense; i++) {
        slots[g->rows[i * g->stride]] = (u32)i + 1;
    }
    for (i64 i = 0; i < g->count && !g->direct && !g->dense; i++) {
        u64 slot = hash_u64((u64)g->rows[i * g->stride]) & mask;
        while (slots[slot]) {
            slot = (slot + 1) & mask;
        }
        slots[slot] = (u32)i + 1;
    }
    return true;
}

bool groups_init(struct groups *g, struct memory *mem, u32 word_count, const u8 *words,
                 u32 direct_bits, i64 expected) {
    *g = (struct groups){.mem = mem, .stride = 1 + (i64)word_count, .direct = direct_bits > 0};
    g->word_count = word_count;
    g->words = words;
    i64 cap = FIRST_ROWS;
    while (cap < expected) {
        cap *= 2;
    }
    return grow_rows(g, cap) && grow_slots(g, direct_bits ? 1LL << direct_bits : 2 * cap);
}

bool groups_init_least(struct groups *g, struct memory *mem, u32 word_count, const u8 *words) {
    *g = (struct groups){.mem = mem, .stride = 1 + (i64)word_count, .last_resort = 1};
    g->word_count = word_count;
    g->words = words;
    return grow_rows(g, FIRST_ROWS) && grow_slots(g, 2 * FIRST_ROWS);
}

void groups_fini(struct groups *g) {
    if (g->mem) {
        mem_free(g->mem, g->rows, g->cap * g->stride * (i64)sizeof(i64));
        mem_free(g->mem, g->slots, g->slot_count * (i64)sizeof(u32));
        memset(g, 0, sizeof *g);
    }
}

static bool groups_reserve(struct groups *g, i64 more) {
    i64 need = g->count + more;
    i64 cap = g->cap;
    if (need > GROUPS_MAX) {
        return false;
    }
    while (cap < need) {
        cap *= 2;
    }
    if (cap > g->cap && !grow_rows(g, cap)) {
        return false;
    }
    i64 slot_count = g->slot_count;
    while (!g->direct && !g->dense && slot_count < 2 * need) {
        slot_count *= 2;
    }
    return slot_count == g->slot_count || grow_slots(g, slot_count);
}

static u32 add_group(struct groups *g, i64 key) {
    i64 *row = g->rows + g->count * g->stride;
    row[0] = key;
    for (u32 w = 0; w < g->word_count; w++) {
        row[1 + w] = word_identity(g->words[w]);
    }
    return (u32)g->count++;
}

static u32 find_or_add(struct groups *g, i64 key, u64 slot) {
    u64 mask = (u64)g->slot_count - 1;
    for (;;) {
        u32 head = g->slots[slot];
        if (!head) {
            u32 group = add_group(g, key);
            g->slots[slot] = group + 1;
            return group;
        }
        if (g->rows[(i64)(head - 1) * g->stride] == key) {
            return head - 1;
        }
        slot = (slot + 1) & mask;
    }
}

static i64 changes(const i64 *key, i64 n) {
    i64 count = 1;
    for (i64 i = 1; i < n; i++) {
        count += key[i] != key[i - 1];
    }
    return count;
}

/* Keys that come in runs: one lookup a run. */
static void find_runs(struct groups *g, const i64 *key, i64 n, u32 *out) {
    u64 mask = (u64)g->slot_count - 1;
    u32 group = 0;
    for (i64 i = 0; i < n; i++) {
        if (i == 0 || key[i] != key[i - 1]) {
            group = find_or_add(g, key[i], hash_u64((u64)key[i]) & mask);
        }
        out[i] = group;
    }
}

void groups_try_dense(struct groups *g) {
    ASSERT(g->count == 0);
    g->dense = !g->direct;
}

/* Room for the slots of these keys, or, if that would be too much, an end to keys as slots. */
static bool check_dense(struct groups *g, const i64 *key, i64 n) {
    u64 all = 0;
    for (i64 i = 0; i < n; i++) {
        all |= (u64)key[i];
    }
    if (all < (u64)g->slot_count) {
        return true;
    }
    i64 slot_count = g->slot_count;
    if (all < (u64)MAX_OF((i64)DENSE_ALWAYS, DENSE_PER_GROUP * (g->count + n))) {
        while ((u64)slot_count <= all) {
            slot_count *= 2;
        }
        return grow_slots(g, slot_count);
    }
    g->dense = 0;
    slot_count = 2 * FIRST_ROWS;
    while (slot_count < 2 * (g->count + n)) {
        slot_count *= 2;
    }
    return grow_slots(g, slot_count);
}

bool groups_find(struct groups *g, const struct vec_table *vec, const i64 *key, i64 n, u64 *hash,
                 u32 *out) {
    if (!groups_reserve(g, n) || (g->dense && !check_dense(g, key, n))) {
        return false;
    }
    if (g->direct || g->dense) {
        for (i64 i = 0; i < n; i++) {
            u32 head = g->slots[key[i]];
            if (!head) {
                head = add_group(g, key[i]) + 1;
                g->slots[key[i]] = head;
            }
            out[i] = head - 1;
        }
        return true;
    }
    if (n > 0 && changes(key, n) <= n / 2) {
        find_runs(g, key, n, out);
        return true;
    }
    u64 mask = (u64)g->slot_count - 1;
    vec->hash(hash, key, n);
    for (i64 i = 0; i < n; i++) {
        hash[i] &= mask;
        __builtin_prefetch(&g->slots[hash[i]]);
    }
    for (i64 i = 0; i < n; i++) {
        if (i + PREFETCH_ROWS < n) {
            u32 ahead = g->slots[hash[i + PREFETCH_ROWS]];
            __builtin_prefetch(&g->rows[(i64)(ahead ? ahead - 1 : 0) * g->stride]);
        }
        out[i] = find_or_add(g, key[i], hash[i]);
    }
    return true;
}

void groups_reset(struct groups *g) {
    memset(g->slots, 0, (size_t)g->slot_count * sizeof(u32));
    g->count = 0;
}

enum { MERGE_BATCH = 64 };

static void merge_word(struct groups *g, u32 word, const u32 *group, const i64 *rows, i64 n) {
    i64 *state = g->rows + 1 + word;
    const i64 *x = rows + 1 + word;
    i64 stride = g->stride;
    switch (g->words[word]) {
    case WORD_MIN:
        for (i64 i = 0; i < n; i++) {
            i64 *w = &state[group[i] * stride];
            *w = MIN_OF(*w, x[i * stride]);
        }
        break;
    case WORD_MAX:
        for (i64 i = 0; i < n; i++) {
            i64 *w = &state[group[i] * stride];
            *w = MAX_OF(*w, x[i * stride]);
        }
        break;
    case WORD_AND:
    case WORD_OR:
    case WORD_XOR:
    case WORD_FADD:
        for (i64 i = 0; i < n; i++) {
            i64 *w = &state[group[i] * stride];
            *w = word_apply(g->words[word], *w, x[i * stride]);
        }
        break;
    default:
        for (i64 i = 0; i < n; i++) {
            i64 *w = &state[group[i] * stride];
            *w = (i64)((u64)*w + (u64)x[i * stride]);
        }
        break;
    }
}

bool groups_merge(struct groups *g, const i64 *rows, i64 n) {
    u64 slot[MERGE_BATCH];
    u32 group[MERGE_BATCH];
    for (i64 at = 0; at < n; at += MERGE_BATCH) {
        i64 count = MIN_OF(n - at, MERGE_BATCH);
        const i64 *batch = rows + at * g->stride;
        if (!groups_reserve(g, count)) {
            return false;
        }
        u64 mask = (u64)g->slot_count - 1;
        for (i64 i = 0; i < count; i++) {
            slot[i] = hash_u64((u64)batch[i * g->stride]) & mask;
            __builtin_prefetch(&g->slots[slot[i]]);
        }
        for (i64 i = 0; i < count; i++) {
            group[i] = find_or_add(g, batch[i * g->stride], slot[i]);
        }
        for (u32 w = 0; w < g->word_count; w++) {
            merge_word(g, w, group, batch, count);
        }
    }
    return true;
}
