/* key_set.c: a set of keys that threads add to, for rows that count once.
 *
 * Keys of few bits are a bitmap. Others are sixteen hash tables behind a lock each, by the highest
 * bits of the hash; what a thread adds at once is sorted by them, so that it takes every lock once.
 * A bitmap takes their place between two steps, when the keys have become so many that it is no
 * larger. */
#include "run/variable.h"

#include "base/thread.h"

enum {
    BITS_FREE = 24,     /* a bitmap of so many bits is always affordable: 2 MiB */
    BITS_MOST = 40,     /* none is larger */
    BITS_PER_KEY = 512, /* as a table of 8 bytes that doubles, and soon has more keys */
    SHARD_BITS = 4,
    SHARDS = 1 << SHARD_BITS,
    FIRST_SLOTS = 64,
    MANY = 4096, /* keys at a time */
    AHEAD = 16   /* keys to be looked at whose places are fetched */
};

struct set_shard {
    struct mutex lock;
    i64 *slots; /* 0 = free */
    i64 slot_count;
    i64 count;
    b8 has_zero;
};

struct key_set {
    struct memory *mem;
    i32 bits; /* keys are in [0, 2^bits); 64: any */
    _Atomic u32 *words;
    i64 word_count;
    struct set_shard shards[SHARDS];
};

static bool make_bits(struct key_set *set) {
    set->word_count = (1LL << set->bits) / 32 + 1;
    i64 bytes = set->word_count * (i64)sizeof *set->words;
    void *words = mem_alloc(set->mem, bytes);
    if (words) {
        memset(words, 0, (size_t)bytes);
    }
    set->words = words;
    return words != NULL;
}

struct key_set *key_set_open(struct memory *mem, i32 bits) {
    struct key_set *set = mem_alloc(mem, (i64)sizeof *set);
    if (!set) {
        return NULL;
    }
    memset(set, 0, sizeof *set);
    set->mem = mem;
    set->bits = bits;
    for (i32 i = 0; i < SHARDS; i++) {
        mutex_init(&set->shards[i].lock);
    }
    if (bits <= BITS_FREE && !make_bits(set)) {
        key_set_close(set);
        return NULL;
    }
    return set;
}

static void drop_slots(struct key_set *set) {
    for (i32 i = 0; i < SHARDS; i++) {
        struct set_shard *shard = &set->shards[i];
        mem_free(set->mem, shard->slots, shard->slot_count * (i64)sizeof *shard->slots);
        shard->slots = NULL;
        shard->slot_count = shard->count = 0;
        shard->has_zero = 0;
    }
}

void key_set_close(struct key_set *set) {
    if (!set) {
        return;
    }
    drop_slots(set);
    for (i32 i = 0; i < SHARDS; i++) {
        mutex_fini(&set->shards[i].lock);
    }
    mem_free(set->mem, (void *)set->words, set->word_count * (i64)sizeof *set->words);
    mem_free(set->mem, set, (i64)sizeof *set);
}

/* Sets a key's bit; false when it was set. A look costs less than an exchange. */
static bool add_bit(struct key_set *set, i64 key) {
    _Atomic u32 *word = &set->words[key >> 5];
    u32 bit = 1u << (key & 31);
    return !(atomic_load_explicit(word, memory_order_relaxed) & bit) &&
           !(atomic_fetch_or_explicit(word, bit, memory_order_relaxed) & bit);
}

static bool add_slot(struct set_shard *shard, u64 hash, i64 key) {
    i64 mask = shard->slot_count - 1;
    i64 at = (i64)hash & mask;
    if (key == 0) {
        bool added = !shard->has_zero;
        shard->has_zero = 1;
        return added;
    }
    while (shard->slots[at] != 0 && shard->slots[at] != key) {
        at = (at + 1) & mask;
    }
    bool added = shard->slots[at] == 0;
    shard->slots[at] = key;
    shard->count += added;
    return added;
}

/* Room for so many more, at most half full. */
static bool make_room(struct key_set *set, struct set_shard *shard, i64 more) {
    i64 *old = shard->slots;
    i64 old_count = shard->slot_count;
    i64 count = MAX_OF(old_count, (i64)FIRST_SLOTS);
    while (count < 2 * (shard->count + more)) {
        count *= 2;
    }
    if (count == old_count) {
        return true;
    }
    i64 *slots = mem_alloc(set->mem, count * (i64)sizeof *slots);
    if (!slots) {
        return false;
    }
    memset(slots, 0, (size_t)count * sizeof *slots);
    shard->slots = slots;
    shard->slot_count = count;
    shard->count = 0;
    for (i64 i = 0; i < old_count; i++) {
        if (old[i] != 0) {
            (void)add_slot(shard, hash_u64((u64)old[i]), old[i]);
        }
    }
    mem_free(set->mem, old, old_count * (i64)sizeof *old);
    return true;
}

/* The tables' keys in a bitmap. */
static bool become_bits(struct key_set *set) {
    if (!make_bits(set)) {
        return false;
    }
    for (i32 i = 0; i < SHARDS; i++) {
        const struct set_shard *shard = &set->shards[i];
        for (i64 k = 0; k < shard->slot_count; k++) {
            if (shard->slots[k] != 0) {
                (void)add_bit(set, shard->slots[k]);
            }
        }
        if (shard->has_zero) {
            (void)add_bit(set, 0);
        }
    }
    drop_slots(set);
    return true;
}

bool key_set_settle(struct key_set *set) {
    i64 count = 0;
    for (i32 i = 0; i < SHARDS; i++) {
        count += set->shards[i].count;
    }
    bool bits = set->words || set->bits > BITS_MOST || count < (1LL << set->bits) / BITS_PER_KEY;
    return bits || become_bits(set);
}

void *key_set_bits(struct key_set *set) {
    bool fine = set->words || become_bits(set);
    return fine ? (void *)set->words : NULL;
}

struct key_set *key_set_of_bits(struct memory *mem, i64 bytes) {
    i32 bits = 0;
    while ((1LL << bits) / 8 < bytes - (i64)sizeof(u32)) {
        bits++;
    }
    struct key_set *set = key_set_open(mem, bits);
    if (set && !key_set_bits(set)) {
        key_set_close(set);
        set = NULL;
    }
    return set;
}

static i64 add_bits(struct key_set *set, const i64 *keys, const u32 *sel, i64 n, u32 *out) {
    i64 m = 0;
    for (i64 j = 0; j < n; j++) {
        u32 i = sel ? sel[j] : (u32)j;
        i64 next = j + AHEAD < n ? j + AHEAD : j;
        __builtin_prefetch((const void *)&set->words[keys[sel ? sel[next] : (u32)next] >> 5]);
        out[m] = i;
        m += add_bit(set, keys[i]);
    }
    return m;
}

/* At most MANY of them. */
static i64 add_hashed(struct key_set *set, const i64 *keys, const u32 *sel, i64 n, u32 *out) {
    u64 hashes[MANY];
    u16 order[MANY];
    b8 fresh[MANY];
    i64 ends[SHARDS + 1] = {0};
    i64 at[SHARDS];
    i64 m = 0;
    for (i64 j = 0; j < n; j++) {
        hashes[j] = hash_u64((u64)keys[sel ? sel[j] : (u32)j]);
        ends[(hashes[j] >> (64 - SHARD_BITS)) + 1]++;
    }
    for (i32 s = 0; s < SHARDS; s++) {
        ends[s + 1] += ends[s];
        at[s] = ends[s];
    }
    for (i64 j = 0; j < n; j++) {
        order[at[hashes[j] >> (64 - SHARD_BITS)]++] = (u16)j;
    }
    for (i32 s = 0; s < SHARDS; s++) {
        struct set_shard *shard = &set->shards[s];
        if (ends[s] == ends[s + 1]) {
            continue;
        }
        mutex_lock(&shard->lock);
        bool room = make_room(set, shard, ends[s + 1] - ends[s]);
        for (i64 k = ends[s]; room && k < ends[s + 1]; k++) {
            u16 j = order[k];
            fresh[j] = add_slot(shard, hashes[j], keys[sel ? sel[j] : j]);
        }
        mutex_unlock(&shard->lock);
        if (!room) {
            return -1;
        }
    }
    for (i64 j = 0; j < n; j++) {
        out[m] = sel ? sel[j] : (u32)j;
        m += fresh[j];
    }
    return m;
}

i64 key_set_add(struct key_set *set, const i64 *keys, const u32 *sel, i64 n, u32 *out) {
    i64 m = 0;
    if (set->words) {
        return add_bits(set, keys, sel, n, out);
    }
    for (i64 j = 0; j < n; j += MANY) {
        i64 some = MIN_OF(n - j, (i64)MANY);
        i64 added = sel ? add_hashed(set, keys, sel + j, some, out + m)
                        : add_hashed(set, keys + j, NULL, some, out + m);
        for (i64 k = 0; !sel && j > 0 && k < added; k++) {
            out[m + k] += (u32)j;
        }
        if (added < 0) {
            return -1;
        }
        m += added;
    }
    return m;
}
