/* top_text.c: rows whose text cannot be among the first of an order are dropped.
 *
 * A worker keeps its k least rows in a heap: the word of the keys before the text, and a copy of
 * the text's first bytes, which the rows themselves may not outlive. The greatest of them is its
 * bar; the least bar of all workers is shared. A row is compared with the bar by its word, the four
 * bytes that lie in its register, and only then by the text itself, so that texts which share
 * a long beginning cost one walk over it and are not materialised. Texts are compared as far as
 * their copies go; what is equal so far ties, and ties stay unless the text is the last key and the
 * bar is the worker's own and whole.
 *
 * Cutting the words of a sort from the text, as many bytes as fit, was tried first: with a common
 * beginning longer than a word every row tied with the bar, and the sort got them all. */
#include "cpu/top_text.h"

enum { SLOT_MIN = 16, SLOT_MAX = 256, SLOTS_BYTES = 1 << 22 };

struct text_key {
    u64 word;
    str text; /* in a slot of its heap */
};

struct text_top {
    i64 k;
    u32 slot_bytes;
    b8 descending, last;
    _Atomic u64 version; /* of the bar; 0 = there is none */
    struct text_key bar; /* under the statement's lock */
};

struct text_heap {
    struct text_key *keys; /* greatest first */
    u8 *slots;
    i64 count;
    u64 version; /* of the shared bar */
    struct text_key shared;
};

struct text_top *text_top_new(struct arena *arena, i64 k, b8 descending, b8 last) {
    struct text_top *top = NEW(arena, struct text_top);
    top->k = k;
    top->slot_bytes = (u32)MAX_OF(MIN_OF(SLOTS_BYTES / k, SLOT_MAX), SLOT_MIN);
    top->descending = descending;
    top->last = last;
    atomic_init(&top->version, 0);
    top->bar.text.addr = (u64)(size_t)NEW_ARRAY(arena, u8, top->slot_bytes);
    return top;
}

static struct text_heap *heap_new(struct arena *arena, const struct text_top *top) {
    struct text_heap *heap = NEW(arena, struct text_heap);
    heap->keys = NEW_ARRAY(arena, struct text_key, top->k);
    heap->slots = NEW_ARRAY(arena, u8, top->k * top->slot_bytes);
    heap->shared.text.addr = (u64)(size_t)NEW_ARRAY(arena, u8, top->slot_bytes);
    return heap;
}

static inline i32 compare_keys(const struct text_top *top, struct text_key a, struct text_key b) {
    if (a.word != b.word) {
        return a.word < b.word ? -1 : 1;
    }
    i32 order = compare_texts(a.text, b.text);
    return top->descending ? -order : order;
}

static void copy_text(str *to, str from) {
    u64 addr = to->addr;
    memcpy((void *)(size_t)addr, (const void *)(size_t)from.addr, from.len);
    *to = from;
    to->addr = addr;
}

static void copy_key(struct text_key *to, struct text_key from) {
    to->word = from.word;
    copy_text(&to->text, from.text);
}

/* the heap */

static void sift_down(const struct text_top *top, struct text_heap *heap, struct text_key key) {
    struct text_key *keys = heap->keys;
    i64 at = 0;
    for (i64 child = 1; child < heap->count; child = 2 * at + 1) {
        child += child + 1 < heap->count && compare_keys(top, keys[child + 1], keys[child]) > 0;
        if (compare_keys(top, keys[child], key) <= 0) {
            break;
        }
        keys[at] = keys[child];
        at = child;
    }
    keys[at] = key;
}

static void push(const struct text_top *top, struct text_heap *heap, struct text_key key) {
    struct text_key *keys = heap->keys;
    if (heap->count == top->k) {
        if (compare_keys(top, key, keys[0]) < 0) {
            struct text_key kept = keys[0]; /* its slot is free now */
            copy_key(&kept, key);
            sift_down(top, heap, kept);
        }
        return;
    }
    i64 at = heap->count++;
    struct text_key kept = {0};
    kept.text.addr = (u64)(size_t)(heap->slots + at * top->slot_bytes);
    copy_key(&kept, key);
    while (at > 0 && compare_keys(top, keys[(at - 1) / 2], kept) < 0) {
        keys[at] = keys[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    keys[at] = kept;
}

/* the bar */

static bool is_full(const struct text_top *top, const struct text_heap *heap) {
    return heap && heap->count == top->k;
}

/* Looks at the bar the workers share, and gives it the worker's own where that is lower. */
static void share_bar(struct worker *w, struct text_top *top, struct text_heap *heap) {
    u64 version = atomic_load_explicit(&top->version, memory_order_relaxed);
    bool full = is_full(top, heap);
    bool lower = full && (!heap->version || compare_keys(top, heap->keys[0], heap->shared) < 0);
    if (version == heap->version && !lower) {
        return;
    }
    struct mutex *lock = &w->run->x->lock;
    mutex_lock(lock);
    version = atomic_load_explicit(&top->version, memory_order_relaxed);
    if (full && (!version || compare_keys(top, heap->keys[0], top->bar) < 0)) {
        copy_key(&top->bar, heap->keys[0]);
        atomic_store_explicit(&top->version, ++version, memory_order_relaxed);
    }
    heap->version = version;
    if (version) {
        copy_key(&heap->shared, top->bar);
    }
    mutex_unlock(lock);
}

u64 text_top_word(const struct text_top *top, const struct text_heap *heap) {
    u64 word = heap && heap->version ? heap->shared.word : ~0ULL;
    return is_full(top, heap) ? MIN_OF(word, heap->keys[0].word) : word;
}

/* the rows */

static struct text_key key_of(const struct text_top *top, const struct text_rows *rows, i64 j) {
    bool is_null = rows->nulls && rows->nulls[j];
    struct text_key key = {.word = rows->word ? rows->word[j] : 0,
                           .text = is_null ? str_from(SV("")) : rows->text[j]};
    key.text.len = MIN_OF(key.text.len, top->slot_bytes);
    return key;
}

/* The rows whose text is at most `most` (1: ties too) from the bar's; their first four bytes, which
 * lie in the register, drop many before any further byte is touched. */
static i64 select_texts(const struct text_top *top, const struct text_rows *rows,
                        struct text_key bar, i32 most, u32 *out) {
    const str *text = rows->text;
    u32 flip = top->descending ? ~0u : 0;
    u32 limit = bar.text.prefix ^ flip;
    i64 few = 0;
    for (i64 j = 0; j < rows->count; j++) {
        out[few] = (u32)j;
        few += (text[j].prefix ^ flip) <= limit;
    }
    i64 kept = 0;
    for (i64 i = 0; i < few; i++) {
        u32 j = out[i];
        out[kept] = j;
        kept += compare_keys(top, key_of(top, rows, j), bar) < most;
    }
    return kept;
}

static i64 select_keys(const struct text_top *top, const struct text_rows *rows,
                       struct text_key bar, i32 most, u32 *out) {
    const u64 *word = rows->word;
    i64 few = 0;
    for (i64 j = 0; j < rows->count; j++) {
        out[few] = (u32)j;
        few += word[j] <= bar.word;
    }
    i64 kept = 0;
    for (i64 i = 0; i < few; i++) {
        u32 j = out[i];
        out[kept] = j;
        kept += word[j] < bar.word || compare_keys(top, key_of(top, rows, j), bar) < most;
    }
    return kept;
}

i64 text_top_select(struct worker *w, struct text_top *top, struct text_heap **io_heap,
                    const struct text_rows *rows, u32 *out) {
    struct text_heap *heap = *io_heap = *io_heap ? *io_heap : heap_new(&w->arena, top);
    bool full = is_full(top, heap);
    i64 kept = 0;
    share_bar(w, top, heap);
    if (full || heap->version) {
        bool own = full && compare_keys(top, heap->keys[0], heap->shared) <= 0;
        struct text_key bar = own ? heap->keys[0] : heap->shared;
        bool whole = bar.text.len < top->slot_bytes;
        i32 most = own && whole && top->last ? 0 : 1;
        kept = (rows->word ? select_keys : select_texts)(top, rows, bar, most, out);
    } else {
        for (; kept < rows->count; kept++) {
            out[kept] = (u32)kept;
        }
    }
    for (i64 i = 0; i < kept; i++) {
        push(top, heap, key_of(top, rows, out[i]));
    }
    return kept;
}
