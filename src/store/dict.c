/* dict.c: a column's dictionary: strings to dense codes, append-only.
 *
 * Entries live in chunks that double in size and never move, their bytes in blocks that never move,
 * so a code is readable without a lock once it was handed out. The hash table maps to codes; a slot
 * is a code and half of the hash, so that a new text misses the cache once, in a table as small as
 * can be, and growing reads nothing else. An entry holds the text itself when it has at most 16
 * bytes, and the whole hash of a longer one. Slots of 24 bytes that held this were measured: a
 * find was a single miss, but a million new texts took twice as long.
 *
 * Finding an entry takes no lock: slots are published after the entry they name, and a table that
 * was outgrown stays until the dictionary is released, since a reader may still be in it (all
 * outgrown tables together are smaller than the current one). Adding takes the dictionary's lock;
 * parallel loads mostly find what they look for.
 *
 * Versions of a table refer to the codes below the length they asked for (dict_publish). What a
 * writer added that gave up is nobody's, and goes when the last writer ends: only writers look into
 * the slots of a table's dictionary, readers have codes. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/saved_int.h"

enum {
    FIRST_CHUNK_BITS = 8, /* entries of chunk k: 2^(8 + k) */
    CHUNK_COUNT = 24,
    FIRST_SLOTS = 512,
    BLOCK_MIN_BYTES = 4096,
    BLOCK_MAX_BYTES = 1 << 20,
};
#define DICT_CAP 0x7fffffff

/* What is compared instead of the text: a text of at most SHORT_BYTES is (len, a, b) and nothing
 * else is; of a longer one a is the hash and b the length. */
struct sign {
    u64 a, b;
    u32 hash;
};
enum { SHORT_BYTES = 16 };

struct entry {
    const char *ptr;
    i64 len;
    u64 a, b; /* of its sign */
};

struct slots {
    struct slots *outgrown; /* the smaller table before this one */
    u64 mask;
    _Atomic u64 at[]; /* hash << 32 | code + 1; 0 = free. Published after the entry */
};

struct block {
    struct block *next;
    i64 bytes; /* with this header */
};

struct ranks { /* for the first `len` codes */
    struct ranks *next;
    i32 len;
    b8 pending; /* somebody is about to find them */
    i32 values[]; /* ranks, then their inverse */
};

struct saved_part { /* entries behind those of the parts before it */
    struct saved_part *before;
    struct extent place;
    i32 len; /* with them */
    i32 count;
};

struct dict {
    _Atomic i32 refs;
    _Atomic i32 len;
    struct memory *mem;
    _Atomic(struct entry *) chunks[CHUNK_COUNT];
    _Atomic(struct slots *) slots;
    _Atomic i32 unhashed; /* 1: it came from a file, or was absorbed, and nobody has looked for a text: no
                           * slot is set */
    u8 place;             /* enum mem_place */
    /* Below: under the lock. */
    struct mutex lock;
    struct block *blocks;
    char *next, *end; /* free bytes of the newest block */
    _Atomic i64 text_bytes;
    struct ranks *ranks;
    struct dict *before; /* released with it */
    i32 writers;
    i32 published; /* codes below it may be in use */
    /* Of whoever saves: what is in the database file. */
    u64 saved_id;
    u64 saved_by; /* the save that has it on its list */
    struct saved_part *saved;
    const struct dict_parts *parts; /* not read yet; NULL = none */
};

static i64 slots_bytes(u64 count) {
    return (i64)sizeof(struct slots) + (i64)(count * sizeof(u64));
}

static struct slots *slots_new(struct dict *dict, u64 count) {
    struct slots *slots = mem_alloc_at(dict->mem, slots_bytes(count), (enum mem_place)dict->place);
    if (slots) {
        memset(slots, 0, (size_t)slots_bytes(count));
        slots->mask = count - 1;
    }
    return slots;
}

struct dict *dict_open(struct memory *mem) {
    struct dict *dict = mem_alloc(mem, (i64)sizeof *dict);
    if (!dict) {
        return NULL;
    }
    memset(dict, 0, sizeof *dict);
    dict->mem = mem;
    atomic_init(&dict->refs, 1);
    struct slots *slots = slots_new(dict, FIRST_SLOTS);
    if (!slots) {
        mem_free(mem, dict, (i64)sizeof *dict);
        return NULL;
    }
    atomic_init(&dict->slots, slots);
    mutex_init(&dict->lock);
    return dict;
}

struct dict *dict_retain(struct dict *dict) {
    atomic_fetch_add_explicit(&dict->refs, 1, memory_order_relaxed);
    return dict;
}

static i64 chunk_entries(i32 chunk) {
    return 1LL << (FIRST_CHUNK_BITS + chunk);
}

static i64 ranks_bytes(i32 len) {
    return (i64)sizeof(struct ranks) + 2 * (i64)len * (i64)sizeof(i32);
}

static void drop_part(struct dict *dict) {
    struct saved_part *part = dict->saved;
    dict->saved = part->before;
    mem_free(dict->mem, part, (i64)sizeof *part);
}

void dict_release(struct dict *dict) {
    if (!dict || atomic_fetch_sub_explicit(&dict->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct memory *mem = dict->mem;
    for (i32 i = 0; i < CHUNK_COUNT; i++) {
        mem_free(mem, atomic_load(&dict->chunks[i]), chunk_entries(i) * (i64)sizeof(struct entry));
    }
    for (struct slots *s = atomic_load(&dict->slots), *before; s; s = before) {
        before = s->outgrown;
        mem_free(mem, s, slots_bytes(s->mask + 1));
    }
    for (struct block *b = dict->blocks, *next; b; b = next) {
        next = b->next;
        mem_free(mem, b, b->bytes);
    }
    for (struct ranks *r = dict->ranks, *next; r; r = next) {
        next = r->next;
        mem_free(mem, r, ranks_bytes(r->len));
    }
    while (dict->saved) {
        drop_part(dict);
    }
    dict_release(dict->before);
    mutex_fini(&dict->lock);
    mem_free(mem, dict, (i64)sizeof *dict);
}

/* Chunk k holds codes [2^(8+k) - 2^8, 2^(9+k) - 2^8). */
static i32 chunk_of(i32 code, i64 *out_offset) {
    u64 place = (u64)code + (1u << FIRST_CHUNK_BITS);
    i32 top = 63 - __builtin_clzll(place);
    *out_offset = (i64)(place - (1ULL << top));
    return top - FIRST_CHUNK_BITS;
}

static struct entry *entry_at(const struct dict *dict, i32 code) {
    i64 offset;
    i32 chunk = chunk_of(code, &offset);
    return atomic_load_explicit(&dict->chunks[chunk], memory_order_acquire) + offset;
}

i32 dict_len(const struct dict *dict) {
    return atomic_load_explicit(&dict->len, memory_order_acquire);
}

struct sv dict_get(const struct dict *dict, i32 code) {
    ASSERT(code >= 0 && code < dict_len(dict));
    const struct entry *entry = entry_at(dict, code);
    return (struct sv){entry->ptr, entry->len};
}

i32 dict_publish(struct dict *dict) {
    mutex_lock(&dict->lock);
    i32 len = dict->published = dict_len(dict);
    mutex_unlock(&dict->lock);
    return len;
}

i64 dict_bytes(const struct dict *dict) {
    return atomic_load_explicit(&dict->text_bytes, memory_order_relaxed);
}

/* A dictionary is in memory whenever its column is, so of little memory it takes little. */
static i64 most_bytes(const struct dict *dict) {
    enum { DICT_SHARE = 64 };
    i64 limit = 0;
    for (const struct memory *mem = dict->mem; mem; mem = mem->parent) {
        limit = mem->limit_bytes && (!limit || mem->limit_bytes < limit) ? mem->limit_bytes : limit;
    }
    return limit ? limit / DICT_SHARE : I64_MAX;
}

bool dict_overfull(const struct dict *dict, i64 column_rows) {
    i64 len = dict_len(dict);
    i64 bytes = dict_bytes(dict) + len * (i64)(sizeof(struct entry) + 2 * sizeof(u64));
    return len > DICT_MAX_LEN ||
           (len > DICT_FREE_LEN && (len > column_rows / 2 || bytes > most_bytes(dict)));
}

u64 text_hash(struct sv s) {
    return XXH3_64bits(s.ptr, (size_t)s.len);
}

static inline u64 word_at(const char *p, i64 bytes) {
    u64 w = 0;
    u32 h = 0;
    if (bytes == 8) {
        memcpy(&w, p, 8);
        return w;
    }
    memcpy(&h, p, 4);
    return h;
}

static inline struct sign sign_of(u64 a, u64 b, i64 len) {
    u64 hash = len > SHORT_BYTES ? a : hash_u64(a ^ hash_u64(b + (u64)len));
    return (struct sign){a, b, (u32)(hash >> 32)};
}

/* Loads overlap where a text does not fill them: bytes count twice, and none is left out. */
static inline struct sign sign(struct sv s) {
    if (s.len > SHORT_BYTES) {
        return sign_of(text_hash(s), (u64)s.len, s.len);
    }
    if (s.len >= 8) {
        return sign_of(word_at(s.ptr, 8), word_at(s.ptr + s.len - 8, 8), s.len);
    }
    if (s.len >= 4) {
        return sign_of(word_at(s.ptr, 4), word_at(s.ptr + s.len - 4, 4), s.len);
    }
    u64 a = 0;
    for (i64 i = 0; i < s.len; i++) {
        a = a << 8 | (u8)s.ptr[i];
    }
    return sign_of(a, 0, s.len);
}

static inline bool is_entry(const struct entry *entry, struct sv s, const struct sign *g) {
    return entry->a == g->a && entry->b == g->b && entry->len == s.len &&
           (s.len <= SHORT_BYTES || bytes_equal(entry->ptr, s.ptr, s.len));
}

/* The code of s in these slots, or -1 with the free slot where it belongs. *io_place: from where to
 * look, the place of the hash or one behind it that was free. */
static i32 slots_walk(const struct dict *dict, const struct slots *slots, struct sv s,
                      const struct sign *g, u64 *io_place) {
    for (u64 i = *io_place;; i = (i + 1) & slots->mask) {
        u64 slot = atomic_load_explicit(&slots->at[i], memory_order_acquire);
        if (!slot) {
            *io_place = i;
            return -1;
        }
        i32 code = (i32)((u32)slot - 1);
        if (slot >> 32 == g->hash && is_entry(entry_at(dict, code), s, g)) {
            return code;
        }
    }
}

/* The same; most new texts meet a free slot at once. */
static inline i32 slots_find(const struct dict *dict, const struct slots *slots, struct sv s,
                             const struct sign *g, u64 *io_place) {
    bool is_free = !atomic_load_explicit(&slots->at[*io_place], memory_order_acquire);
    return is_free ? -1 : slots_walk(dict, slots, s, g, io_place);
}

static void slots_fill(struct dict *dict, struct slots *slots, i32 len) {
    for (i32 code = 0; code < len; code++) {
        const struct entry *entry = entry_at(dict, code);
        u64 hash = sign_of(entry->a, entry->b, entry->len).hash;
        u64 i = hash & slots->mask;
        while (atomic_load_explicit(&slots->at[i], memory_order_relaxed)) {
            i = (i + 1) & slots->mask;
        }
        atomic_store_explicit(&slots->at[i], hash << 32 | ((u64)code + 1), memory_order_relaxed);
    }
}

/* Entries that came from a file get their signs and slots; false when refused. Under the lock. */
static bool hash_locked(struct dict *dict) {
    if (!atomic_load_explicit(&dict->unhashed, memory_order_relaxed)) {
        return true;
    }
    struct slots *before = atomic_load_explicit(&dict->slots, memory_order_relaxed);
    i32 len = dict_len(dict);
    u64 count = before->mask + 1;
    while ((u64)len * 2 >= count) {
        count *= 4;
    }
    struct slots *slots = count > before->mask + 1 ? slots_new(dict, count) : before;
    if (!slots) {
        return false;
    }
    for (i32 code = 0; code < len; code++) {
        struct entry *entry = entry_at(dict, code);
        struct sign g = sign((struct sv){entry->ptr, entry->len});
        entry->a = g.a;
        entry->b = g.b;
    }
    slots_fill(dict, slots, len);
    slots->outgrown = slots == before ? before->outgrown : before;
    atomic_store_explicit(&dict->slots, slots, memory_order_release);
    atomic_store_explicit(&dict->unhashed, 0, memory_order_release);
    return true;
}

static bool is_hashed(const struct dict *dict) {
    bool done = !atomic_load_explicit(&dict->unhashed, memory_order_acquire);
    if (!done) {
        struct dict *own = (struct dict *)(size_t)dict; /* what is in it stays the same */
        mutex_lock(&own->lock);
        done = hash_locked(own);
        mutex_unlock(&own->lock);
    }
    return done;
}

/* Without slots, for which there was no memory. */
static i32 find_slowly(const struct dict *dict, struct sv s, i32 len) {
    for (i32 code = 0; code < len; code++) {
        if (sv_eq(dict_get(dict, code), s)) {
            return code;
        }
    }
    return -1;
}

i32 dict_find(const struct dict *dict, struct sv s, i32 len) {
    if (!is_hashed(dict)) {
        return find_slowly(dict, s, MIN_OF(len, dict_len(dict)));
    }
    struct sign g = sign(s);
    const struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_acquire);
    u64 place = g.hash & slots->mask;
    i32 code = slots_find(dict, slots, s, &g, &place);
    return code < len ? code : -1;
}

/* Room for s's bytes; NULL when refused. An empty string needs an address, too. Under the lock. */
static char *bytes_reserve(struct dict *dict, i64 bytes) {
    if (dict->end - dict->next < bytes || !dict->next) {
        i64 size =
            dict->blocks ? MIN_OF(dict->blocks->bytes * 2, BLOCK_MAX_BYTES) : BLOCK_MIN_BYTES;
        size = MAX_OF(size, bytes + (i64)sizeof(struct block));
        struct block *block = mem_alloc_at(dict->mem, size, (enum mem_place)dict->place);
        if (!block) {
            return NULL;
        }
        struct block head = {dict->blocks, size};
        mem_copy(dict->mem, block, &head, (i64)sizeof head);
        dict->blocks = block;
        dict->next = (char *)(block + 1);
        dict->end = (char *)block + size;
    }
    return dict->next;
}

/* A table four times as large takes over when the current one is half full: with one of twice the
 * size moving the slots was a tenth of a million new texts' time. Under the lock. */
static struct slots *slots_grow(struct dict *dict, struct slots *slots, i32 len) {
    if ((u64)len * 2 < slots->mask + 1) {
        return slots;
    }
    struct slots *grown = slots_new(dict, (slots->mask + 1) * 4);
    if (!grown) {
        return NULL;
    }
    for (u64 from = 0; from <= slots->mask; from++) {
        u64 slot = atomic_load_explicit(&slots->at[from], memory_order_relaxed);
        u64 i = slot >> 32 & grown->mask;
        while (slot && atomic_load_explicit(&grown->at[i], memory_order_relaxed)) {
            i = (i + 1) & grown->mask;
        }
        if (slot) {
            atomic_store_explicit(&grown->at[i], slot, memory_order_relaxed);
        }
    }
    grown->outgrown = slots;
    atomic_store_explicit(&dict->slots, grown, memory_order_release);
    return grown;
}

/* Most texts are short, and their sign has their bytes. */
static inline void copy_text(char *bytes, struct sv s, const struct sign *g) {
    if (s.len >= 8 && s.len <= SHORT_BYTES) {
        memcpy(bytes, &g->a, 8);
        memcpy(bytes + s.len - 8, &g->b, 8);
    } else if (s.len) {
        memcpy(bytes, s.ptr, (size_t)s.len);
    }
}

static struct entry *entry_reserve(struct dict *dict, i32 code) {
    i64 offset;
    i32 chunk = chunk_of(code, &offset);
    struct entry *entries = atomic_load_explicit(&dict->chunks[chunk], memory_order_relaxed);
    if (!entries) {
        i64 bytes = chunk_entries(chunk) * (i64)sizeof(struct entry);
        entries = mem_alloc_at(dict->mem, bytes, (enum mem_place)dict->place);
        if (!entries) {
            return NULL;
        }
        atomic_store_explicit(&dict->chunks[chunk], entries, memory_order_release);
    }
    return entries + offset;
}

/* Adds s unless another thread did meanwhile. `place` was the first free slot on its way in
 * `seen`: slots never become free again, so if it still is one, s is nowhere. Under the lock. */
static i32 add_locked(struct dict *dict, struct sv s, const struct sign *g,
                      const struct slots *seen, u64 place) {
    struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_relaxed);
    place = slots == seen ? place : g->hash & slots->mask;
    i32 code = slots_find(dict, slots, s, g, &place);
    if (code >= 0) {
        return code;
    }
    i32 len = atomic_load_explicit(&dict->len, memory_order_relaxed);
    struct slots *roomy = len < DICT_CAP ? slots_grow(dict, slots, len) : NULL;
    struct entry *entry = roomy ? entry_reserve(dict, len) : NULL;
    char *bytes = entry ? bytes_reserve(dict, s.len) : NULL;
    if (!bytes) {
        return -1;
    }
    if (roomy != slots) {
        place = g->hash & roomy->mask;
        code = slots_find(dict, roomy, s, g, &place);
        ASSERT(code < 0);
    }
    copy_text(bytes, s, g);
    dict->next += s.len;
    *entry = (struct entry){bytes, s.len, g->a, g->b};
    i64 text_bytes = atomic_load_explicit(&dict->text_bytes, memory_order_relaxed);
    atomic_store_explicit(&dict->text_bytes, text_bytes + s.len, memory_order_relaxed);
    atomic_store_explicit(&dict->len, len + 1, memory_order_release);
    atomic_store_explicit(&roomy->at[place], (u64)g->hash << 32 | ((u64)len + 1),
                          memory_order_release);
    return len;
}

i32 dict_add(struct dict *dict, struct sv s) {
    if (!is_hashed(dict)) {
        return -1;
    }
    struct sign g = sign(s);
    const struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_acquire);
    u64 place = g.hash & slots->mask;
    i32 code = slots_find(dict, slots, s, &g, &place);
    if (code < 0) {
        mutex_lock(&dict->lock);
        code = add_locked(dict, s, &g, slots, place);
        mutex_unlock(&dict->lock);
    }
    return code;
}

enum { ADD_BATCH = 256 };

struct add_batch {
    struct sign sign[ADD_BATCH];
    i64 absent_count; /* those that were not found: */
    u32 row[ADD_BATCH];
    u64 place[ADD_BATCH];
    u16 at[ADD_BATCH];
};

static bool add_absent(struct dict *dict, const str *s, const struct slots *seen,
                       const struct add_batch *batch, i32 *out) {
    bool fine = true;
    mutex_lock(&dict->lock);
    for (i64 i = 0; i < batch->absent_count && fine; i++) {
        u32 row = batch->row[i];
        out[row] =
            add_locked(dict, sv_of(s[row]), &batch->sign[batch->at[i]], seen, batch->place[i]);
        fine = out[row] >= 0;
    }
    mutex_unlock(&dict->lock);
    return fine;
}

/* The signs of a batch, their slots asked for, then the entries of those. */
static void look_ahead(const struct dict *dict, const struct slots *slots, const str *s,
                       const u32 *sel, i64 at, i64 count, struct add_batch *batch) {
    for (i64 i = 0; i < count; i++) {
        batch->sign[i] = sign(sv_of(s[sel ? (i64)sel[at + i] : at + i]));
        __builtin_prefetch(&slots->at[batch->sign[i].hash & slots->mask]);
    }
    for (i64 i = 0; i < count; i++) {
        u32 hash = batch->sign[i].hash;
        u64 slot = atomic_load_explicit(&slots->at[hash & slots->mask], memory_order_acquire);
        if (slot >> 32 == hash && slot) {
            __builtin_prefetch(entry_at(dict, (i32)((u32)slot - 1)));
        }
    }
}

/* What is new is added behind one lock a batch: taking it waits for all stores before it, which go
 * to slots anywhere in memory. */
bool dict_add_many(struct dict *dict, const str *s, const u32 *sel, i64 n, i32 *out) {
    struct add_batch batch;
    bool fine = is_hashed(dict);
    for (i64 at = 0; at < n && fine; at += ADD_BATCH) {
        i64 count = MIN_OF(n - at, ADD_BATCH);
        const struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_acquire);
        look_ahead(dict, slots, s, sel, at, count, &batch);
        batch.absent_count = 0;
        for (i64 i = 0; i < count; i++) {
            u32 row = sel ? sel[at + i] : (u32)(at + i);
            u64 place = batch.sign[i].hash & slots->mask;
            out[row] = slots_find(dict, slots, sv_of(s[row]), &batch.sign[i], &place);
            i64 absent = batch.absent_count;
            batch.row[absent] = row;
            batch.place[absent] = place;
            batch.at[absent] = (u16)i;
            batch.absent_count += out[row] < 0;
        }
        fine = batch.absent_count == 0 || add_absent(dict, s, slots, &batch, out);
    }
    return fine;
}

void dict_find_many(const struct dict *dict, const str *s, const u32 *sel, i64 n, i32 *out) {
    struct add_batch batch;
    if (!is_hashed(dict)) {
        for (i64 i = 0; i < n; i++) {
            i64 row = sel ? (i64)sel[i] : i;
            out[row] = find_slowly(dict, sv_of(s[row]), dict_len(dict));
        }
        return;
    }
    const struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_acquire);
    for (i64 at = 0; at < n; at += ADD_BATCH) {
        i64 count = MIN_OF(n - at, ADD_BATCH);
        look_ahead(dict, slots, s, sel, at, count, &batch);
        for (i64 i = 0; i < count; i++) {
            i64 row = sel ? (i64)sel[at + i] : at + i;
            u64 place = batch.sign[i].hash & slots->mask;
            out[row] = slots_find(dict, slots, sv_of(s[row]), &batch.sign[i], &place);
        }
    }
}

u64 dict_hash(struct sv s) {
    struct sign g = sign(s);
    return s.len > SHORT_BYTES ? g.a : hash_u64(g.a ^ hash_u64(g.b + (u64)s.len));
}

void dict_place(struct dict *dict, enum mem_place place) {
    dict->place = (u8)place;
}

enum { ABSORB_ENTRIES = 512, ABSORB_BYTES = 64 << 10, VIEW_ENTRIES = 512 };

/* Entries behind those there are: their texts are put together in `scratch`, of ABSORB_BYTES. */
static bool put_entries(struct dict *into, struct entry *entries, i32 count, i64 bytes,
                        char *scratch) {
    char *to = bytes_reserve(into, bytes);
    bool small = bytes <= ABSORB_BYTES;
    bool together = count > 0 && entries[count - 1].ptr + entries[count - 1].len ==
                                     entries[0].ptr + bytes; /* and none lies elsewhere: see below */
    i64 at = 0;
    for (i32 i = 0; i < count && together; i++) {
        together = entries[i].ptr == entries[0].ptr + at;
        at += entries[i].len;
    }
    if (to && together && small && bytes > 0) {
        mem_copy(into->mem, scratch, entries[0].ptr, bytes);
    }
    at = 0;
    for (i32 i = 0; i < count && to; i++) {
        if (small && !together && entries[i].len) {
            memcpy(scratch + at, entries[i].ptr, (size_t)entries[i].len);
        } else if (!small && entries[i].len) {
            mem_copy(into->mem, to + at, entries[i].ptr, entries[i].len);
        }
        entries[i].ptr = to + at;
        at += entries[i].len;
    }
    if (to && bytes > 0 && small) {
        mem_copy(into->mem, to, scratch, bytes);
    }
    i32 first = dict_len(into);
    for (i32 i = 0; i < count && to;) { /* a piece for each chunk */
        i64 offset;
        i32 chunk = chunk_of(first + i, &offset);
        struct entry *place = entry_reserve(into, first + i);
        i64 n = MIN_OF(chunk_entries(chunk) - offset, (i64)(count - i));
        to = place ? to : NULL;
        if (place) {
            mem_copy(into->mem, place, entries + i, n * (i64)sizeof *place);
        }
        i += (i32)n;
    }
    if (!to) {
        return false;
    }
    into->next += bytes;
    atomic_fetch_add_explicit(&into->text_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&into->len, first + count, memory_order_release);
    return true;
}

/* Entries of `from` from `code` on, as many as go in one piece. How many; 0 when refused. */
static i32 absorb_some(struct dict *into, const struct dict *from, i32 code, char *scratch) {
    struct entry entries[ABSORB_ENTRIES];
    i32 len = dict_len(from), count = 0;
    i64 bytes = 0;
    while (code + count < len && count < ABSORB_ENTRIES) {
        const struct entry *entry = entry_at(from, code + count);
        if (count > 0 && bytes + entry->len > ABSORB_BYTES) {
            break;
        }
        bytes += entry->len;
        entries[count++] = *entry;
    }
    return put_entries(into, entries, count, bytes, scratch) ? count : 0;
}

static i32 put_some(struct dict *into, const str *text, i64 n, char *scratch) {
    struct entry entries[ABSORB_ENTRIES];
    i32 count = 0;
    i64 bytes = 0;
    while (count < n && count < ABSORB_ENTRIES && !(count && bytes + text[count].len > ABSORB_BYTES)) {
        bytes += text[count].len;
        entries[count] = (struct entry){.ptr = (const char *)(size_t)text[count].addr,
                                        .len = text[count].len};
        count++;
    }
    return put_entries(into, entries, count, bytes, scratch) ? count : 0;
}

/* Under the lock, before entries come and afterwards. */
static void place_aside(struct dict *into, bool aside) {
    into->place = aside ? MEM_ASIDE : MEM_ANY;
    atomic_store_explicit(&into->unhashed, 1, memory_order_release);
}

bool dict_absorb(struct dict *into, const struct dict *from) {
    char *scratch = mem_alloc(into->mem, ABSORB_BYTES);
    i32 len = dict_len(from);
    bool fine = scratch && (i64)dict_len(into) + len < DICT_CAP;
    mutex_lock(&into->lock);
    place_aside(into, true);
    for (i32 code = 0; code < len && fine;) {
        i32 count = absorb_some(into, from, code, scratch);
        fine = count > 0;
        code += count;
    }
    place_aside(into, false);
    mutex_unlock(&into->lock);
    mem_free(into->mem, scratch, ABSORB_BYTES);
    return fine;
}

bool dict_put_aside(struct dict *dict, const str *text, i64 n, i32 *out_first) {
    char *scratch = mem_alloc(dict->mem, ABSORB_BYTES);
    bool fine = scratch && dict_len(dict) + n < DICT_CAP;
    mutex_lock(&dict->lock);
    *out_first = dict_len(dict);
    place_aside(dict, true);
    for (i64 done = 0; done < n && fine;) {
        i32 count = put_some(dict, text + done, n - done, scratch);
        fine = count > 0;
        done += count;
    }
    place_aside(dict, false);
    mutex_unlock(&dict->lock);
    mem_free(dict->mem, scratch, ABSORB_BYTES);
    return fine;
}

void dict_outlives(struct dict *dict, struct dict *before) {
    ASSERT(!dict->before);
    dict->before = before;
}

struct dict *dict_recall(const struct dict *dict, i32 first, i32 end) {
    struct dict *out = dict_open(dict->mem);
    for (i32 code = first; code < end && out; code++) {
        if (dict_add(out, dict_get(dict, code)) < 0) {
            dict_release(out);
            out = NULL;
        }
    }
    return out;
}

void dict_writer_begin(struct dict *dict) {
    mutex_lock(&dict->lock);
    dict->writers++;
    mutex_unlock(&dict->lock);
}

/* The smallest table there was that has room, with the first `len` codes only. */
static void slots_cut(struct dict *dict, i32 len) {
    struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_relaxed);
    while (slots->outgrown && (u64)len * 2 <= slots->outgrown->mask + 1) {
        struct slots *smaller = slots->outgrown;
        mem_free(dict->mem, slots, slots_bytes(slots->mask + 1));
        slots = smaller;
    }
    memset(slots->at, 0, (slots->mask + 1) * sizeof(u64));
    slots_fill(dict, slots, len);
    atomic_store_explicit(&dict->slots, slots, memory_order_release);
}

/* Blocks behind the one that holds the last text that stays; texts lie in the order of codes. */
static void blocks_cut(struct dict *dict, i32 len) {
    const char *last = len ? entry_at(dict, len - 1)->ptr : NULL;
    struct block *block = dict->blocks;
    while (block && !(last >= (const char *)(block + 1) && last <= (char *)block + block->bytes)) {
        struct block *before = block->next;
        mem_free(dict->mem, block, block->bytes);
        block = before;
    }
    dict->blocks = block;
    dict->next = block ? (char *)(block + 1) + (last - (const char *)(block + 1)) +
                             entry_at(dict, len - 1)->len
                       : NULL;
    dict->end = block ? (char *)block + block->bytes : NULL;
}

static void dict_cut(struct dict *dict, i32 len) {
    i64 bytes = dict_bytes(dict);
    i64 offset;
    for (i32 code = len; code < dict_len(dict); code++) {
        bytes -= entry_at(dict, code)->len;
    }
    atomic_store_explicit(&dict->text_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&dict->len, len, memory_order_release);
    slots_cut(dict, len);
    blocks_cut(dict, len);
    for (i32 i = len ? chunk_of(len - 1, &offset) + 1 : 0; i < CHUNK_COUNT; i++) {
        struct entry *entries = atomic_load_explicit(&dict->chunks[i], memory_order_relaxed);
        mem_free(dict->mem, entries, chunk_entries(i) * (i64)sizeof(struct entry));
        atomic_store_explicit(&dict->chunks[i], NULL, memory_order_relaxed);
    }
}

void dict_writer_end(struct dict *dict) {
    mutex_lock(&dict->lock);
    if (--dict->writers == 0 && dict->published < dict_len(dict)) {
        dict_cut(dict, dict->published);
    }
    mutex_unlock(&dict->lock);
}

void dict_sketch(const struct dict *dict, struct sketch *sketch) {
    i32 len = dict_len(dict);
    for (i32 code = 0; code < len; code++) {
        sketch_add(sketch, text_hash(dict_get(dict, code)));
    }
}

struct sort_item {
    u64 prefix; /* first eight bytes, the first one highest, zero padded */
    const char *ptr;
    u32 len;
    i32 code;
};

static struct sort_item sort_item(const struct dict *dict, i32 code) {
    struct sv s = dict_get(dict, code);
    struct sort_item item = {0, s.ptr, (u32)s.len, code};
    for (i32 i = 0; i < 8; i++) {
        item.prefix = item.prefix << 8 | (i < s.len ? (u8)s.ptr[i] : 0u);
    }
    return item;
}

static bool item_before(const struct sort_item *a, const struct sort_item *b) {
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix;
    }
    return sv_cmp((struct sv){a->ptr, a->len}, (struct sv){b->ptr, b->len}) < 0;
}

/* Bottom-up merge sort; the result is in `items` or in `spare`, whichever is returned. */
static struct sort_item *sort_items(struct sort_item *items, struct sort_item *spare, i64 count) {
    for (i64 run = 1; run < count; run *= 2) {
        for (i64 first = 0; first < count; first += 2 * run) {
            i64 a = first, a_end = MIN_OF(first + run, count);
            i64 b = a_end, b_end = MIN_OF(first + 2 * run, count);
            for (i64 out = first; out < b_end; out++) {
                bool left = b == b_end || (a < a_end && !item_before(&items[b], &items[a]));
                spare[out] = left ? items[a++] : items[b++];
            }
        }
        struct sort_item *swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}

static struct ranks *ranks_new(struct dict *dict, i32 len) {
    i64 scratch_bytes = 2 * (i64)len * (i64)sizeof(struct sort_item);
    struct sort_item *scratch = mem_alloc(dict->mem, scratch_bytes);
    struct ranks *ranks = scratch ? mem_alloc(dict->mem, ranks_bytes(len)) : NULL;
    if (ranks) {
        for (i32 code = 0; code < len; code++) {
            scratch[code] = sort_item(dict, code);
        }
        struct sort_item *sorted = sort_items(scratch, scratch + len, len);
        for (i32 rank = 0; rank < len; rank++) {
            ranks->values[sorted[rank].code] = rank;
            ranks->values[len + rank] = sorted[rank].code;
        }
        ranks->len = len;
        ranks->pending = 0;
        ranks->next = dict->ranks;
        dict->ranks = ranks;
    }
    mem_free(dict->mem, scratch, scratch_bytes);
    return ranks;
}

/* Under the lock. */
static struct ranks *ranks_find(const struct dict *dict, i32 len) {
    struct ranks *ranks = dict->ranks;
    while (ranks && (ranks->len != len || ranks->pending)) {
        ranks = ranks->next;
    }
    return ranks;
}

static bool ranks_give(const struct ranks *ranks, i32 len, const i32 **out_rank,
                       const i32 **out_code_at) {
    if (ranks) {
        *out_rank = ranks->values;
        *out_code_at = ranks->values + len;
    }
    return ranks != NULL;
}

bool dict_ranks(struct dict *dict, i32 len, const i32 **out_rank, const i32 **out_code_at) {
    ASSERT(len >= 0 && len <= dict_len(dict));
    mutex_lock(&dict->lock);
    struct ranks *ranks = ranks_find(dict, len);
    if (!ranks) {
        ranks = ranks_new(dict, len);
    }
    mutex_unlock(&dict->lock);
    return ranks_give(ranks, len, out_rank, out_code_at);
}

bool dict_ranks_known(struct dict *dict, i32 len, const i32 **out_rank, const i32 **out_code_at) {
    mutex_lock(&dict->lock);
    const struct ranks *ranks = ranks_find(dict, len);
    mutex_unlock(&dict->lock);
    return ranks_give(ranks, len, out_rank, out_code_at);
}

i32 *dict_ranks_room(struct dict *dict, i32 len) {
    struct ranks *ranks = mem_alloc(dict->mem, ranks_bytes(len));
    if (!ranks) {
        return NULL;
    }
    ranks->len = len;
    ranks->pending = 1;
    mutex_lock(&dict->lock);
    ranks->next = dict->ranks;
    dict->ranks = ranks;
    mutex_unlock(&dict->lock);
    return ranks->values;
}

void dict_ranks_set(struct dict *dict, const i32 *room) {
    mutex_lock(&dict->lock);
    for (struct ranks *ranks = dict->ranks; ranks; ranks = ranks->next) {
        ranks->pending = (b8)(ranks->pending && ranks->values != room);
    }
    mutex_unlock(&dict->lock);
}

i64 dict_ranks_bytes(i32 len) {
    return 2 * (i64)len * (i64)sizeof(struct sort_item) + ranks_bytes(len);
}

bool dict_is_aside(const struct dict *dict) {
    i32 len = dict_len(dict);
    return len > 0 && mem_in_temp(dict->mem, entry_at(dict, len - 1));
}

void dict_views(const struct dict *dict, i32 first, i64 n, str *out) {
    struct entry entries[VIEW_ENTRIES];
    for (i64 done = 0; done < n;) {
        i64 offset;
        i32 chunk = chunk_of(first + (i32)done, &offset);
        i64 count = MIN_OF(MIN_OF(n - done, (i64)VIEW_ENTRIES), chunk_entries(chunk) - offset);
        mem_copy(dict->mem, entries, entry_at(dict, first + (i32)done),
                 count * (i64)sizeof *entries);
        for (i64 i = 0; i < count; i++) {
            out[done + i] = (str){(u32)entries[i].len, 0, (u64)(size_t)entries[i].ptr};
        }
        done += count;
    }
}

/* A dictionary in a database file is a list of extents, each with the entries that were new when it
 * was written: how long they are, then their bytes. */
enum { SAVED_PARTS = 32 }; /* more are written anew as one */

static FALLIBLE add_part(struct dict *dict, const struct saved_part *like, struct error *err) {
    struct saved_part *part = mem_alloc(dict->mem, (i64)sizeof *part);
    if (!part) {
        return memory_refused(dict->mem, err, (i64)sizeof *part);
    }
    *part = *like;
    part->before = dict->saved;
    dict->saved = part;
    return ERR_OK;
}

static FALLIBLE save_part(struct save *save, struct dict *dict, i32 first, i32 len,
                          struct error *err) {
    struct saved_part like = {.len = len, .count = len - first};
    struct blob out;
    blob_init(&out, dict->mem);
    for (i32 code = first; code < len; code++) {
        blob_u32(&out, (u32)dict_get(dict, code).len);
    }
    for (i32 code = first; code < len; code++) {
        struct sv s = dict_get(dict, code);
        blob_bytes(&out, s.ptr, s.len);
    }
    wf_status status = blob_check(&out, err);
    status = status ? status : add_part(dict, &like, err);
    status = status ? status : save_put(save, out.data, out.len, &dict->saved->place, err);
    blob_fini(&out);
    return status;
}

/* Parts that the file has no more go, and all where they are many. */
static FALLIBLE keep_parts(struct save *save, struct dict *dict, struct error *err) {
    i64 count = 0;
    bool has = true;
    for (struct saved_part *part = dict->saved; part; part = part->before) {
        has = has && save_knows(save, &part->place);
        count++;
    }
    while (dict->saved && (!has || count > SAVED_PARTS)) {
        drop_part(dict);
    }
    for (struct saved_part *part = dict->saved; part; part = part->before) {
        if (!save_has(save, &part->place)) {
            return memory_refused(dict->mem, err, (i64)sizeof *part);
        }
    }
    return ERR_OK;
}

wf_status dict_save(struct save *save, struct dict_list *list, struct dict *dict, u64 *out_id,
                    struct error *err) {
    mutex_lock(&dict->lock);
    i32 len = dict->published;
    mutex_unlock(&dict->lock);
    dict->saved_id = dict->saved_id ? dict->saved_id : ++*list->last_id;
    *out_id = dict->saved_id;
    if (dict->saved_by == save_number(save)) {
        return ERR_OK;
    }
    TRY(keep_parts(save, dict, err));
    i32 had = dict->saved ? dict->saved->len : 0;
    if (had < len) {
        TRY(save_part(save, dict, had, len, err));
    }
    u32 count = 0;
    for (const struct saved_part *part = dict->saved; part; part = part->before) {
        count++;
    }
    blob_u64(&list->out, dict->saved_id);
    blob_u32(&list->out, count);
    for (const struct saved_part *part = dict->saved; part; part = part->before) { /* last first */
        extent_save(&list->out, &part->place);
        blob_u32(&list->out, (u32)part->count);
    }
    dict->saved_by = save_number(save);
    list->count++;
    return ERR_OK;
}

const struct extent *dict_saved_next(const struct dict *dict, const struct extent *extent) {
    const struct saved_part *part = dict->saved;
    while (extent && part && &part->place != extent) {
        part = part->before;
    }
    part = extent && part ? part->before : part;
    return part ? &part->place : NULL;
}

void dict_set_saved(struct dict *dict, u64 id) {
    dict->saved_id = id;
}

/* The extent's bytes stay as they are: entries are views of them, and get their slots when a text is
 * looked for. */
static FALLIBLE load_part(struct dict *dict, struct db_file *file, const struct extent *extent,
                          i32 count, struct error *err) {
    i64 bytes = (i64)sizeof(struct block) + extent->bytes;
    struct block *block = mem_alloc(dict->mem, bytes);
    if (!block) {
        return memory_refused(dict->mem, err, bytes);
    }
    *block = (struct block){dict->blocks, bytes};
    dict->blocks = block;
    dict->next = dict->end = (char *)block + bytes;
    u8 *at = (u8 *)(block + 1);
    TRY(db_file_read(file, extent, at, err));
    struct blob_reader sizes = {at, at + extent->bytes, 0}, texts = sizes;
    (void)read_bytes(&texts, (i64)count * 4);
    i64 text_bytes = 0;
    for (i32 i = 0; i < count; i++) {
        i64 len = read_u32(&sizes);
        const u8 *text = read_bytes(&texts, len);
        i32 next = dict_len(dict);
        struct entry *entry = text && next < DICT_CAP ? entry_reserve(dict, next) : NULL;
        if (!entry) {
            return text ? memory_refused(dict->mem, err, len)
                        : error_set(err, ERR_DAMAGED, -1, "a dictionary of \"%.300s\" is damaged",
                                    db_file_path(file));
        }
        *entry = (struct entry){.ptr = (const char *)text, .len = len};
        text_bytes += len;
        atomic_store_explicit(&dict->len, next + 1, memory_order_release);
    }
    atomic_fetch_add_explicit(&dict->text_bytes, text_bytes, memory_order_relaxed);
    atomic_store_explicit(&dict->unhashed, dict_len(dict) > 0, memory_order_release);
    struct saved_part like = {.place = *extent, .len = dict_publish(dict), .count = count};
    return add_part(dict, &like, err);
}

void dict_set_parts(struct dict *dict, const struct dict_parts *parts) {
    dict->parts = parts;
}

wf_status dict_fetch(struct dict *dict, struct error *err) {
    const struct dict_parts *parts = dict->parts;
    dict->parts = NULL;
    for (u32 i = 0; parts && i < parts->count; i++) {
        TRY(load_part(dict, parts->file, &parts->extents[i], parts->entries[i], err));
    }
    return ERR_OK;
}
