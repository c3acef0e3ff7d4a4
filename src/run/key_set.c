/* key_set.c: a set of keys that threads add to, for rows that count once.
 *
 * Keys of few bits are a bitmap. Others are sixteen hash tables behind a lock each, by the highest
 * bits of the hash; what a thread adds at once is sorted by them, so that it takes every lock once.
 * A bitmap takes their place between two steps, when the keys have become so many that it is no
 * larger.
 *
 * A set may know the best word of every key: then keys count again when they come with a better one.
 * Words are kept so that the least unsigned one is the best, beside the keys of a table, or behind
 * the bitmap, one for every key there may be. */
#include "run/variable.h"

#include "base/thread.h"

enum {
    BITS_FREE = 24,     /* a bitmap of so many bits is always affordable: 2 MiB */
    BITS_WORD = 6,      /* as many bits more has a key with a word */
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
    u64 *best;  /* of the slots; NULL: no words are kept */
    u64 zero_best;
    i64 slot_count;
    i64 count;
    b8 has_zero;
};

struct key_set {
    struct memory *mem;
    i32 bits; /* keys are in [0, 2^bits); 64: any */
    u8 best;  /* enum key_best */
    _Atomic u32 *words;
    _Atomic u64 *bests; /* behind the bitmap */
    i64 bytes;          /* of both */
    struct set_shard shards[SHARDS];
};

static bool make_bits(struct key_set *set) {
    i64 bits_bytes = key_set_bytes(set->bits, false);
    i64 bytes = key_set_bytes(set->bits, set->best);
    u8 *words = mem_alloc(set->mem, bytes);
    if (words) {
        memset(words, 0, (size_t)bits_bytes);
        memset(words + bits_bytes, 0xff, (size_t)(bytes - bits_bytes)); /* the worst */
        set->bytes = bytes;
        set->bests = set->best ? (void *)(words + bits_bytes) : NULL;
    }
    set->words = (void *)words;
    return words != NULL;
}

struct key_set *key_set_open(struct memory *mem, i32 bits, enum key_best best) {
    struct key_set *set = mem_alloc(mem, (i64)sizeof *set);
    if (!set) {
        return NULL;
    }
    memset(set, 0, sizeof *set);
    set->mem = mem;
    set->bits = bits;
    set->best = (u8)best;
    for (i32 i = 0; i < SHARDS; i++) {
        mutex_init(&set->shards[i].lock);
    }
    if (bits + (best ? BITS_WORD : 0) <= BITS_FREE && !make_bits(set)) {
        key_set_close(set);
        return NULL;
    }
    return set;
}

static void drop_slots(struct key_set *set) {
    for (i32 i = 0; i < SHARDS; i++) {
        struct set_shard *shard = &set->shards[i];
        mem_free(set->mem, shard->slots, shard->slot_count * (i64)sizeof *shard->slots);
        mem_free(set->mem, shard->best,
                 shard->best ? shard->slot_count * (i64)sizeof *shard->best : 0);
        shard->slots = NULL;
        shard->best = NULL;
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
    mem_free(set->mem, (void *)set->words, set->bytes);
    mem_free(set->mem, set, (i64)sizeof *set);
}

/* Sets a key's bit; false when it was set. A look costs less than an exchange. */
static bool add_bit(struct key_set *set, i64 key) {
    _Atomic u32 *word = &set->words[key >> 5];
    u32 bit = 1u << (key & 31);
    return !(atomic_load_explicit(word, memory_order_relaxed) & bit) &&
           !(atomic_fetch_or_explicit(word, bit, memory_order_relaxed) & bit);
}

/* The same of a key with a word: whether it is new, or better. */
static bool add_best(struct key_set *set, i64 key, u64 word) {
    _Atomic u64 *best = &set->bests[key];
    bool added = add_bit(set, key);
    u64 was = atomic_load_explicit(best, memory_order_relaxed);
    while (word < was) {
        if (atomic_compare_exchange_weak_explicit(best, &was, word, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return added;
}

/* `word` counts where words are kept. */
static bool add_slot(struct set_shard *shard, u64 hash, i64 key, u64 word) {
    i64 mask = shard->slot_count - 1;
    i64 at = (i64)hash & mask;
    if (key == 0) {
        bool added = !shard->has_zero || (shard->best && word < shard->zero_best);
        shard->has_zero = 1;
        shard->zero_best = added ? word : shard->zero_best;
        return added;
    }
    while (shard->slots[at] != 0 && shard->slots[at] != key) {
        at = (at + 1) & mask;
    }
    bool added = shard->slots[at] == 0;
    shard->slots[at] = key;
    shard->count += added;
    if (shard->best && (added || word < shard->best[at])) {
        shard->best[at] = word;
        return true;
    }
    return added;
}

/* Room for so many more, at most half full. */
static bool make_room(struct key_set *set, struct set_shard *shard, i64 more) {
    i64 *old = shard->slots;
    u64 *old_best = shard->best;
    i64 old_count = shard->slot_count;
    i64 count = MAX_OF(old_count, (i64)FIRST_SLOTS);
    while (count < 2 * (shard->count + more)) {
        count *= 2;
    }
    if (count == old_count) {
        return true;
    }
    i64 *slots = mem_alloc(set->mem, count * (i64)sizeof *slots);
    u64 *best = slots && set->best ? mem_alloc(set->mem, count * (i64)sizeof *best) : NULL;
    if (!slots || (set->best && !best)) {
        mem_free(set->mem, slots, count * (i64)sizeof *slots);
        return false;
    }
    memset(slots, 0, (size_t)count * sizeof *slots);
    shard->slots = slots;
    shard->best = best;
    shard->slot_count = count;
    shard->count = 0;
    for (i64 i = 0; i < old_count; i++) {
        if (old[i] != 0) {
            (void)add_slot(shard, hash_u64((u64)old[i]), old[i], best ? old_best[i] : 0);
        }
    }
    mem_free(set->mem, old, old_count * (i64)sizeof *old);
    mem_free(set->mem, old_best, old_best ? old_count * (i64)sizeof *old_best : 0);
    return true;
}

static void put_bit(struct key_set *set, i64 key, u64 word) {
    (void)(set->best ? add_best(set, key, word) : add_bit(set, key));
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
                put_bit(set, shard->slots[k], set->best ? shard->best[k] : 0);
            }
        }
        if (shard->has_zero) {
            put_bit(set, 0, shard->zero_best);
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
    i32 bits = set->bits + (set->best ? BITS_WORD : 0);
    bool stays = set->words || bits > BITS_MOST || count < (1LL << bits) / BITS_PER_KEY;
    return stays || become_bits(set);
}

void *key_set_bits(struct key_set *set) {
    bool fine = set->words || become_bits(set);
    return fine ? (void *)set->words : NULL;
}

struct key_set *key_set_of_bits(struct memory *mem, i32 bits, enum key_best best) {
    struct key_set *set = key_set_open(mem, bits, best);
    if (set && !key_set_bits(set)) {
        key_set_close(set);
        set = NULL;
    }
    return set;
}

struct key_walk key_set_walk(const struct key_set *set) {
    return (struct key_walk){.set = set};
}

static bool next_bit(struct key_walk *w, i64 *out) {
    i64 words = ((1LL << w->set->bits) + 31) / 32;
    while (!w->bits && w->slot < words) {
        w->bits = atomic_load_explicit(&w->set->words[w->slot++], memory_order_relaxed);
    }
    if (!w->bits) {
        return false;
    }
    *out = (w->slot - 1) * 32 + __builtin_ctz(w->bits);
    w->bits &= w->bits - 1;
    return true;
}

bool key_set_next(struct key_walk *w, i64 *out) {
    if (w->set->words) {
        return next_bit(w, out);
    }
    for (; w->shard < SHARDS; w->shard++, w->slot = 0) {
        const struct set_shard *shard = &w->set->shards[w->shard];
        while (w->slot < shard->slot_count) {
            *out = shard->slots[w->slot++];
            if (*out != 0) {
                return true;
            }
        }
        if (w->slot == shard->slot_count && shard->has_zero) {
            w->slot++;
            *out = 0;
            return true;
        }
    }
    return false;
}

i64 key_set_count(const struct key_set *set) {
    i64 count = 0;
    i64 key;
    for (struct key_walk at = key_set_walk(set); key_set_next(&at, &key);) {
        count++;
    }
    return count;
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

/* Words so that the least is the best. */
static u64 word_of(const struct key_set *set, i64 value) {
    u64 word = (u64)value ^ 1ULL << 63;
    return set->best == KEY_GREATEST ? ~word : word;
}

static i64 add_bests(struct key_set *set, const struct key_rows *rows, const u32 *sel, i64 n,
                     u32 *out) {
    i64 m = 0;
    for (i64 j = 0; j < n; j++) {
        u32 i = sel ? sel[j] : (u32)j;
        i64 next = j + AHEAD < n ? j + AHEAD : j;
        __builtin_prefetch((const void *)&set->bests[rows->keys[sel ? sel[next] : (u32)next]]);
        out[m] = i;
        m += add_best(set, rows->keys[i], word_of(set, rows->values[i]));
    }
    return m;
}

/* At most MANY of them. */
static i64 add_hashed(struct key_set *set, const struct key_rows *rows, const u32 *sel, i64 n,
                      u32 *out) {
    const i64 *keys = rows->keys;
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
            u32 i = sel ? sel[j] : j;
            u64 word = rows->values ? word_of(set, rows->values[i]) : 0;
            fresh[j] = add_slot(shard, hashes[j], keys[i], word);
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

i64 key_set_add(struct key_set *set, const struct key_rows *rows, const u32 *sel, i64 n, u32 *out) {
    i64 m = 0;
    if (set->words) {
        return set->best ? add_bests(set, rows, sel, n, out)
                         : add_bits(set, rows->keys, sel, n, out);
    }
    for (i64 j = 0; j < n; j += MANY) {
        i64 some = MIN_OF(n - j, (i64)MANY);
        struct key_rows from = {rows->keys + j, rows->values ? rows->values + j : NULL};
        i64 added = sel ? add_hashed(set, rows, sel + j, some, out + m)
                        : add_hashed(set, &from, NULL, some, out + m);
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
