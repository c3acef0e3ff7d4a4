/* dict.c: a column's dictionary: strings to dense codes, append-only.
 *
 * Entries live in chunks that double in size and never move, their bytes in blocks that never move,
 * so a code is readable without a lock once it was handed out. The hash table maps to codes; a slot
 * holds the text itself when it has at most 16 bytes, so that finding one is a single miss, and the
 * whole hash of a longer one. Finding an entry takes no lock: slots are published after the entry
 * they name, and a table that was outgrown stays until the dictionary is released, since a reader
 * may still be in it (all outgrown tables together are smaller than the current one). Adding takes
 * the dictionary's lock; parallel loads mostly find what they look for. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/store_int.h"

enum {
    FIRST_CHUNK_BITS = 8, /* entries of chunk k: 2^(8 + k) */
    CHUNK_COUNT = 24,
    FIRST_SLOTS = 512,
    BLOCK_MIN_BYTES = 4096,
    BLOCK_MAX_BYTES = 1 << 20,
};
#define DICT_CAP 0x7fffffff

struct entry {
    const char *ptr;
    i64 len;
};

/* What is compared instead of the text: a text of at most SHORT_BYTES is (len, a, b) and nothing
 * else is; of a longer one a is the hash and b the length. */
struct sign {
    u64 hash;
    u64 top; /* 27 bits of the hash, 5 of the length: the upper half of a slot's `code` */
    u64 a, b;
};
enum { SHORT_BYTES = 16, LONG = 17 };

struct slot {
    _Atomic u64 code; /* top << 32 | code + 1; 0 = free. Published after a and b */
    u64 a, b;
};

struct slots {
    struct slots *outgrown; /* the smaller table before this one */
    u64 mask;
    struct slot at[];
};

struct block {
    struct block *next;
    i64 bytes; /* with this header */
};

struct ranks { /* for the first `len` codes */
    struct ranks *next;
    i32 len;
    i32 values[]; /* ranks, then their inverse */
};

struct dict {
    _Atomic i32 refs;
    _Atomic i32 len;
    struct memory *mem;
    _Atomic(struct entry *) chunks[CHUNK_COUNT];
    _Atomic(struct slots *) slots;
    /* Below: under the lock. */
    struct mutex lock;
    struct block *blocks;
    char *next, *end; /* free bytes of the newest block */
    _Atomic i64 text_bytes;
    struct ranks *ranks;
};

static i64 slots_bytes(u64 count) {
    return (i64)sizeof(struct slots) + (i64)(count * sizeof(struct slot));
}

static struct slots *slots_new(struct dict *dict, u64 count) {
    struct slots *slots = mem_alloc(dict->mem, slots_bytes(count));
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

i64 dict_bytes(const struct dict *dict) {
    return atomic_load_explicit(&dict->text_bytes, memory_order_relaxed);
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
    struct sign g = {.a = a, .b = b};
    bool is_long = len > SHORT_BYTES;
    g.hash = is_long ? a : hash_u64(a ^ hash_u64(b + (u64)len));
    g.top = g.hash >> 37 << 5 | (u64)(is_long ? LONG : len);
    return g;
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

/* The code of s in these slots, or -1 with the free slot where it belongs. */
static inline i32 slots_find(const struct dict *dict, const struct slots *slots, struct sv s,
                             const struct sign *g, u64 *out_free) {
    for (u64 i = g->hash & slots->mask;; i = (i + 1) & slots->mask) {
        const struct slot *slot = &slots->at[i];
        u64 code = atomic_load_explicit(&slot->code, memory_order_acquire);
        if (!code) {
            *out_free = i;
            return -1;
        }
        if (code >> 32 != g->top || slot->a != g->a || slot->b != g->b) {
            continue;
        }
        i32 found = (i32)((code & 0xffffffffu) - 1);
        if (s.len <= SHORT_BYTES || bytes_equal(entry_at(dict, found)->ptr, s.ptr, s.len)) {
            return found;
        }
    }
}

i32 dict_find(const struct dict *dict, struct sv s, i32 len) {
    u64 unused = 0;
    struct sign g = sign(s);
    const struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_acquire);
    i32 code = slots_find(dict, slots, s, &g, &unused);
    return code < len ? code : -1;
}

/* Room for s's bytes; NULL when refused. An empty string needs an address, too. Under the lock. */
static char *bytes_reserve(struct dict *dict, i64 bytes) {
    if (dict->end - dict->next < bytes || !dict->next) {
        i64 size =
            dict->blocks ? MIN_OF(dict->blocks->bytes * 2, BLOCK_MAX_BYTES) : BLOCK_MIN_BYTES;
        size = MAX_OF(size, bytes + (i64)sizeof(struct block));
        struct block *block = mem_alloc(dict->mem, size);
        if (!block) {
            return NULL;
        }
        block->bytes = size;
        block->next = dict->blocks;
        dict->blocks = block;
        dict->next = (char *)(block + 1);
        dict->end = (char *)block + size;
    }
    return dict->next;
}

/* A table twice as large takes over when the current one is half full. Under the lock. */
static struct slots *slots_grow(struct dict *dict, struct slots *slots, i32 len) {
    if ((u64)len * 2 < slots->mask + 1) {
        return slots;
    }
    struct slots *grown = slots_new(dict, (slots->mask + 1) * 2);
    if (!grown) {
        return NULL;
    }
    for (u64 from = 0; from <= slots->mask; from++) {
        const struct slot *old = &slots->at[from];
        u64 code = atomic_load_explicit(&old->code, memory_order_relaxed);
        if (!code) {
            continue;
        }
        i64 bytes = (i64)(code >> 32 & 31);
        u64 i = sign_of(old->a, old->b, bytes).hash & grown->mask;
        while (atomic_load_explicit(&grown->at[i].code, memory_order_relaxed)) {
            i = (i + 1) & grown->mask;
        }
        grown->at[i].a = old->a;
        grown->at[i].b = old->b;
        atomic_store_explicit(&grown->at[i].code, code, memory_order_relaxed);
    }
    grown->outgrown = slots;
    atomic_store_explicit(&dict->slots, grown, memory_order_release);
    return grown;
}

static struct entry *entry_reserve(struct dict *dict, i32 code) {
    i64 offset;
    i32 chunk = chunk_of(code, &offset);
    struct entry *entries = atomic_load_explicit(&dict->chunks[chunk], memory_order_relaxed);
    if (!entries) {
        entries = mem_alloc(dict->mem, chunk_entries(chunk) * (i64)sizeof(struct entry));
        if (!entries) {
            return NULL;
        }
        atomic_store_explicit(&dict->chunks[chunk], entries, memory_order_release);
    }
    return entries + offset;
}

/* Adds s unless another thread did meanwhile. Under the lock. */
static i32 add_locked(struct dict *dict, struct sv s, const struct sign *g) {
    u64 place = 0;
    struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_relaxed);
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
        code = slots_find(dict, roomy, s, g, &place);
        ASSERT(code < 0);
    }
    if (s.len) {
        memcpy(bytes, s.ptr, (size_t)s.len);
    }
    dict->next += s.len;
    *entry = (struct entry){bytes, s.len};
    atomic_fetch_add_explicit(&dict->text_bytes, s.len, memory_order_relaxed);
    atomic_store_explicit(&dict->len, len + 1, memory_order_release);
    struct slot *slot = &roomy->at[place];
    slot->a = g->a;
    slot->b = g->b;
    atomic_store_explicit(&slot->code, g->top << 32 | ((u64)len + 1), memory_order_release);
    return len;
}

static inline i32 add_signed(struct dict *dict, const struct slots *slots, struct sv s,
                             const struct sign *g) {
    u64 unused = 0;
    i32 code = slots_find(dict, slots, s, g, &unused);
    if (code < 0) {
        mutex_lock(&dict->lock);
        code = add_locked(dict, s, g);
        mutex_unlock(&dict->lock);
    }
    return code;
}

i32 dict_add(struct dict *dict, struct sv s) {
    struct sign g = sign(s);
    return add_signed(dict, atomic_load_explicit(&dict->slots, memory_order_acquire), s, &g);
}

enum { ADD_BATCH = 32 };

/* Slots of a batch are asked for before any is needed. */
bool dict_add_many(struct dict *dict, const str *s, const u32 *sel, i64 n, i32 *out) {
    struct sign signs[ADD_BATCH];
    for (i64 at = 0; at < n; at += ADD_BATCH) {
        i64 count = MIN_OF(n - at, ADD_BATCH);
        const struct slots *slots = atomic_load_explicit(&dict->slots, memory_order_acquire);
        for (i64 i = 0; i < count; i++) {
            signs[i] = sign(sv_of(s[sel ? (i64)sel[at + i] : at + i]));
            __builtin_prefetch(&slots->at[signs[i].hash & slots->mask]);
        }
        for (i64 i = 0; i < count; i++) {
            i64 row = sel ? (i64)sel[at + i] : at + i;
            out[row] = add_signed(dict, slots, sv_of(s[row]), &signs[i]);
            if (out[row] < 0) {
                return false;
            }
        }
    }
    return true;
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
        ranks->next = dict->ranks;
        dict->ranks = ranks;
    }
    mem_free(dict->mem, scratch, scratch_bytes);
    return ranks;
}

bool dict_ranks(struct dict *dict, i32 len, const i32 **out_rank, const i32 **out_code_at) {
    ASSERT(len >= 0 && len <= dict_len(dict));
    mutex_lock(&dict->lock);
    struct ranks *ranks = dict->ranks;
    while (ranks && ranks->len != len) {
        ranks = ranks->next;
    }
    if (!ranks) {
        ranks = ranks_new(dict, len);
    }
    mutex_unlock(&dict->lock);
    if (!ranks) {
        return false;
    }
    *out_rank = ranks->values;
    *out_code_at = ranks->values + len;
    return true;
}
