/* pair_map.c: pairs of words to dense numbers, for group keys that do not fit one word.
 *
 * Sixty-four shards, each an open-addressing table of numbers behind a lock; the pairs themselves
 * lie in blocks that double in size and never move. A slot is published after its pair is written,
 * so a lookup takes no lock: it follows the shard's current table and falls back to the lock only
 * when it finds nothing. Tables that were outgrown are kept until the map closes, because a reader
 * may still be in one; together they are no larger than the current one. */
#include "run/variable.h"

#include "base/thread.h"

enum { SHARD_BITS = 6, SHARDS = 1 << SHARD_BITS, FIRST_SLOTS = 64, BLOCK_SHIFT = 10, BLOCKS = 22 };

struct pair {
    i64 a, b;
};

struct pair_table {
    struct pair_table *older;
    i64 slot_count;
    _Atomic u32 slots[]; /* number + 1; 0 = free */
};

struct shard {
    struct mutex lock;
    _Atomic(struct pair_table *) table;
    i64 count;
};

struct pair_map {
    struct memory *mem;
    u8 place;             /* enum mem_place */
    _Atomic i32 unhashed; /* pairs were absorbed, and nobody has looked for one since */
    _Atomic i64 next;
    struct mutex grow;
    _Atomic(struct pair *) blocks[BLOCKS]; /* block 0: 2^10 pairs; block k > 0: 2^(9 + k) */
    struct shard shards[SHARDS];
};

static i64 table_bytes(i64 slot_count) {
    return (i64)sizeof(struct pair_table) + slot_count * (i64)sizeof(u32);
}

static i64 block_of(i64 number) {
    i64 high = number >> BLOCK_SHIFT;
    return high ? 64 - __builtin_clzll((u64)high) : 0;
}

static i64 block_len(i64 block) {
    return block ? 1LL << (BLOCK_SHIFT - 1 + block) : 1LL << BLOCK_SHIFT;
}

static i64 block_first(i64 block) {
    return block ? block_len(block) : 0;
}

static struct pair_table *table_new(const struct pair_map *map, i64 slot_count) {
    i64 bytes = table_bytes(slot_count);
    struct pair_table *table = mem_alloc_at(map->mem, bytes, (enum mem_place)map->place);
    if (table) {
        memset(table, 0, (size_t)table_bytes(slot_count));
        table->slot_count = slot_count;
    }
    return table;
}

struct pair_map *pair_map_open(struct memory *mem) {
    struct pair_map *map = mem_alloc(mem, (i64)sizeof *map);
    if (!map) {
        return NULL;
    }
    memset(map, 0, sizeof *map);
    map->mem = mem;
    mutex_init(&map->grow);
    bool fine = true;
    for (i32 i = 0; i < SHARDS; i++) {
        mutex_init(&map->shards[i].lock);
        struct pair_table *table = table_new(map, FIRST_SLOTS);
        atomic_init(&map->shards[i].table, table);
        fine = fine && table;
    }
    if (!fine) {
        pair_map_close(map);
        return NULL;
    }
    return map;
}

void pair_map_close(struct pair_map *map) {
    if (!map) {
        return;
    }
    for (i32 i = 0; i < SHARDS; i++) {
        struct pair_table *table = atomic_load(&map->shards[i].table);
        while (table) {
            struct pair_table *older = table->older;
            mem_free(map->mem, table, table_bytes(table->slot_count));
            table = older;
        }
        mutex_fini(&map->shards[i].lock);
    }
    for (i64 i = 0; i < BLOCKS; i++) {
        mem_free(map->mem, atomic_load(&map->blocks[i]), block_len(i) * (i64)sizeof(struct pair));
    }
    mutex_fini(&map->grow);
    mem_free(map->mem, map, (i64)sizeof *map);
}

i64 pair_map_len(const struct pair_map *map) {
    return atomic_load_explicit(&map->next, memory_order_acquire);
}

static struct pair *pair_at(const struct pair_map *map, i64 number) {
    i64 block = block_of(number);
    struct pair *pairs = atomic_load_explicit(&map->blocks[block], memory_order_acquire);
    return pairs + (number - block_first(block));
}

void pair_map_get(const struct pair_map *map, i64 number, i64 *out_a, i64 *out_b) {
    const struct pair *pair = pair_at(map, number);
    *out_a = pair->a;
    *out_b = pair->b;
}

u64 pair_hash(i64 a, i64 b) {
    return hash_u64(hash_u64((u64)a) + (u64)b);
}

/* The number of the pair, or -1 and the free slot where it belongs. */
static i64 probe(const struct pair_map *map, struct pair_table *table, u64 hash, i64 a, i64 b,
                 i64 *out_slot) {
    i64 mask = table->slot_count - 1;
    for (i64 slot = (i64)(hash >> SHARD_BITS) & mask;; slot = (slot + 1) & mask) {
        u32 head = atomic_load_explicit(&table->slots[slot], memory_order_acquire);
        if (head == 0) {
            *out_slot = slot;
            return -1;
        }
        const struct pair *pair = pair_at(map, (i64)head - 1);
        if (pair->a == a && pair->b == b) {
            return (i64)head - 1;
        }
    }
}

/* Without slots, for which there was no memory. */
static i64 find_slowly(const struct pair_map *map, i64 a, i64 b) {
    for (i64 number = 0; number < pair_map_len(map); number++) {
        const struct pair *pair = pair_at(map, number);
        if (pair->a == a && pair->b == b) {
            return number;
        }
    }
    return -1;
}

static bool is_hashed(const struct pair_map *map);

i64 pair_map_find(const struct pair_map *map, i64 a, i64 b) {
    if (!is_hashed(map)) {
        return find_slowly(map, a, b);
    }
    u64 hash = pair_hash(a, b);
    const struct shard *shard = &map->shards[hash & (SHARDS - 1)];
    i64 slot;
    return probe(map, atomic_load_explicit(&shard->table, memory_order_acquire), hash, a, b, &slot);
}

static bool ensure_block(struct pair_map *map, i64 number) {
    i64 block = block_of(number);
    if (block >= BLOCKS) {
        return false;
    }
    if (atomic_load_explicit(&map->blocks[block], memory_order_acquire)) {
        return true;
    }
    mutex_lock(&map->grow);
    struct pair *pairs = atomic_load_explicit(&map->blocks[block], memory_order_relaxed);
    if (!pairs) {
        i64 bytes = block_len(block) * (i64)sizeof(struct pair);
        pairs = mem_alloc_at(map->mem, bytes, (enum mem_place)map->place);
        atomic_store_explicit(&map->blocks[block], pairs, memory_order_release);
    }
    mutex_unlock(&map->grow);
    return pairs != NULL;
}

static bool shard_grow(struct pair_map *map, struct shard *shard) {
    struct pair_table *old = atomic_load_explicit(&shard->table, memory_order_relaxed);
    struct pair_table *table = table_new(map, old->slot_count * 2);
    if (!table) {
        return false;
    }
    for (i64 i = 0; i < old->slot_count; i++) {
        u32 head = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
        if (head) {
            const struct pair *pair = pair_at(map, (i64)head - 1);
            i64 slot;
            probe(map, table, pair_hash(pair->a, pair->b), pair->a, pair->b, &slot);
            atomic_store_explicit(&table->slots[slot], head, memory_order_relaxed);
        }
    }
    table->older = old;
    atomic_store_explicit(&shard->table, table, memory_order_release);
    return true;
}

static i64 add_locked(struct pair_map *map, struct shard *shard, u64 hash, i64 a, i64 b) {
    struct pair_table *table = atomic_load_explicit(&shard->table, memory_order_relaxed);
    i64 slot;
    i64 number = probe(map, table, hash, a, b, &slot);
    if (number >= 0) {
        return number;
    }
    ASSERT(shard->count * 2 <= table->slot_count); /* or a probe would not end */
    if ((shard->count + 1) * 2 > table->slot_count) {
        if (!shard_grow(map, shard)) {
            return -1;
        }
        table = atomic_load_explicit(&shard->table, memory_order_relaxed);
        probe(map, table, hash, a, b, &slot);
    }
    number = atomic_fetch_add_explicit(&map->next, 1, memory_order_acq_rel);
    if (!ensure_block(map, number)) {
        return -1;
    }
    *pair_at(map, number) = (struct pair){a, b};
    shard->count++;
    atomic_store_explicit(&table->slots[slot], (u32)number + 1, memory_order_release);
    return number;
}

/* absorbing */

static bool hash_shard_pair(struct pair_map *map, i64 number) {
    const struct pair *pair = pair_at(map, number);
    u64 hash = pair_hash(pair->a, pair->b);
    struct shard *shard = &map->shards[hash & (SHARDS - 1)];
    struct pair_table *table = atomic_load_explicit(&shard->table, memory_order_relaxed);
    i64 slot;
    if (probe(map, table, hash, pair->a, pair->b, &slot) >= 0) {
        return true;
    }
    if ((shard->count + 1) * 2 > table->slot_count) {
        if (!shard_grow(map, shard)) {
            return false;
        }
        table = atomic_load_explicit(&shard->table, memory_order_relaxed);
        probe(map, table, hash, pair->a, pair->b, &slot);
    }
    shard->count++;
    atomic_store_explicit(&table->slots[slot], (u32)number + 1, memory_order_release);
    return true;
}

/* Pairs that were absorbed get their slots; false when refused. */
static bool is_hashed(const struct pair_map *map) {
    bool done = !atomic_load_explicit(&map->unhashed, memory_order_acquire);
    if (done) {
        return true;
    }
    struct pair_map *own = (struct pair_map *)(size_t)map; /* what is in it stays the same */
    mutex_lock(&own->grow);
    done = true;
    if (atomic_load_explicit(&own->unhashed, memory_order_relaxed)) {
        for (i64 number = 0; number < pair_map_len(own) && done; number++) {
            done = hash_shard_pair(own, number);
        }
        if (done) {
            atomic_store_explicit(&own->unhashed, 0, memory_order_release);
        }
    }
    mutex_unlock(&own->grow);
    return done;
}

void pair_map_place(struct pair_map *map, enum mem_place place) {
    map->place = (u8)place;
}

bool pair_map_absorb(struct pair_map *into, const struct pair_map *from) {
    i64 len = pair_map_len(from), first = pair_map_len(into);
    bool fine = true;
    into->place = MEM_ASIDE;
    atomic_store_explicit(&into->unhashed, 1, memory_order_release);
    for (i64 i = 0; i < len && fine;) { /* a piece of a block to a piece of a block */
        i64 source = block_of(i), target = block_of(first + i);
        i64 n = MIN_OF(block_first(source) + block_len(source) - i,
                       block_first(target) + block_len(target) - (first + i));
        n = MIN_OF(n, len - i);
        fine = ensure_block(into, first + i);
        if (fine) {
            mem_copy(into->mem, pair_at(into, first + i), pair_at(from, i),
                     n * (i64)sizeof(struct pair));
        }
        i += n;
    }
    into->place = MEM_ANY;
    if (fine) {
        atomic_store_explicit(&into->next, first + len, memory_order_release);
    }
    return fine;
}

struct pair_map *pair_map_recall(const struct pair_map *map, i64 first, i64 end) {
    struct pair_map *out = pair_map_open(map->mem);
    for (i64 number = first; number < end && out; number++) {
        const struct pair *pair = pair_at(map, number);
        if (pair_map_add(out, pair->a, pair->b) < 0) {
            pair_map_close(out);
            out = NULL;
        }
    }
    return out;
}

i64 pair_map_add(struct pair_map *map, i64 a, i64 b) {
    if (!is_hashed(map)) {
        return -1;
    }
    u64 hash = pair_hash(a, b);
    struct shard *shard = &map->shards[hash & (SHARDS - 1)];
    i64 slot;
    struct pair_table *table = atomic_load_explicit(&shard->table, memory_order_acquire);
    i64 number = probe(map, table, hash, a, b, &slot);
    if (number >= 0) {
        return number;
    }
    mutex_lock(&shard->lock);
    number = add_locked(map, shard, hash, a, b);
    mutex_unlock(&shard->lock);
    return number;
}
