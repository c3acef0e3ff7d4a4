/* gpu_cache.c: columns on the card: cached segments, and host buffers pinned for direct transfer.
 *
 * A cached segment is keyed by tablet and column and never goes stale, because a tablet never
 * changes. The least recently used goes first when memory is short, but never one that a step being
 * run uses. Whoever misses a segment first enters it and copies it without the card's lock; other
 * workers wait until the copy is queued, and their streams until it is done.
 *
 * Buffers that cross the bus are registered with the driver the first time and stay so until they
 * are freed: registering costs 65 ms per GiB once, a copy from ordinary memory eight times the bus
 * each time. */
#include "gpu/gpu_int.h"

#include <stdlib.h>

#ifdef WF_HARD
#define PIN_LEAST_BYTES 1 /* test builds: pinning is not rare */
#else
#define PIN_LEAST_BYTES 65536
#endif

/* --- pinned buffers: one list per process, since buffers know no device --- */

struct pin {
    struct buffer *buf;
    struct gpu_card *owner;
};
static struct {
    _Atomic i32 state; /* 0 = lock not made, 1 = being made, 2 = ready */
    struct mutex lock;
    struct pin *items;
    i64 count, cap;
} pins;

static void pins_open(void) {
    i32 expected = 0;
    if (atomic_compare_exchange_strong(&pins.state, &expected, 1)) {
        mutex_init(&pins.lock);
        atomic_store(&pins.state, 2);
    }
    while (atomic_load(&pins.state) != 2) {
    }
}

static void unpin_one(struct pin pin) {
    (void)pin.owner->api->ctx_set(pin.owner->ctx);
    (void)pin.owner->api->host_unregister(pin.buf->data);
    pin.buf->pinned = 0;
}

static void unpin(struct buffer *buf) {
    mutex_lock(&pins.lock);
    for (i64 i = pins.count - 1; i >= 0; i--) {
        if (pins.items[i].buf == buf) {
            unpin_one(pins.items[i]);
            pins.items[i] = pins.items[--pins.count];
            break;
        }
    }
    mutex_unlock(&pins.lock);
}

void gpu_unpin_all(struct gpu_card *card) {
    pins_open();
    mutex_lock(&pins.lock);
    i64 kept = 0;
    for (i64 i = 0; i < pins.count; i++) {
        if (pins.items[i].owner == card) {
            unpin_one(pins.items[i]);
        } else {
            pins.items[kept++] = pins.items[i];
        }
    }
    pins.count = kept;
    if (!kept) {
        free(pins.items);
        pins.items = NULL;
        pins.cap = 0;
    }
    mutex_unlock(&pins.lock);
}

static bool pins_grow(void) {
    if (pins.count < pins.cap) {
        return true;
    }
    i64 cap = MAX_OF(pins.cap * 2, 64);
    struct pin *items = realloc(pins.items, (size_t)cap * sizeof *items);
    if (items) {
        pins.items = items;
        pins.cap = cap;
    }
    return items != NULL;
}

bool gpu_pin(struct gpu *g, struct buffer *buf) {
    if (!buf || buf->bytes < PIN_LEAST_BYTES || mem_in_temp(buf->mem, buf->data)) {
        return false;
    }
    if (atomic_load_explicit(&buf->pinned, memory_order_acquire)) {
        return true;
    }
    pins_open();
    mutex_lock(&pins.lock);
    if (buf->pinned) { /* by another worker, meanwhile */
        mutex_unlock(&pins.lock);
        return true;
    }
    bool done = pins_grow() && /* with what kernels read behind the last row */
                g->api->host_register(buf->data, (size_t)(buf->bytes + BUFFER_PAD),
                                      CU_HOST_PORTABLE_MAPPED) == CU_OK;
    if (done && g->api->host_device_ptr(&buf->device_addr, buf->data, 0) != CU_OK) {
        (void)g->api->host_unregister(buf->data);
        done = false;
    }
    if (done) {
        atomic_store_explicit(&buf->pinned, 1, memory_order_release);
        pins.items[pins.count++] = (struct pin){buf, g->card};
        buffer_unpin = unpin;
    }
    mutex_unlock(&pins.lock);
    return done;
}

wf_status gpu_upload(struct gpu *g, u64 dst, const void *src, i64 bytes, struct buffer *in,
                     void *stream, struct error *err) {
    if (bytes <= 0) {
        return ERR_OK;
    }
    (void)gpu_pin(g, in); /* an unpinned source is copied too, only slower */
    CU(g->api->copy_to_device(dst, src, (size_t)bytes, stream));
    return ERR_OK;
}

/* --- segments --- */

struct seg_bytes gpu_segment_bytes(const struct tablet *tablet, u32 col, i64 rows) {
    const struct segment *seg = &tablet->cols[col];
    struct seg_bytes out = {0};
    if (seg->encoding != ENC_CONST) {
        out.data = seg->data;
        out.data_bytes = rows * (seg->encoding == ENC_STR ? 4 : seg->width);
        out.data_buffer = tablet->buffers[col];
    }
    if (seg->encoding == ENC_STR && rows > 0) {
        out.text = seg->bytes;
        out.text_bytes = tablet->tail ? ((const u32 *)seg->data)[rows - 1] : seg->bytes_len;
        out.text_buffer = tablet->buffers[tablet->tail ? 2 * tablet->col_count + col : col];
    }
    if (seg->valid) {
        out.valid = seg->valid;
        out.valid_bytes = (rows + 63) / 64 * 8;
        out.valid_buffer = tablet->buffers[tablet->tail ? tablet->col_count + col : col];
    }
    out.total_bytes = out.data_bytes + out.valid_bytes + out.text_bytes;
    return out;
}

static u64 cache_hash(u64 tablet_id, u32 col) {
    return hash_u64(tablet_id * 4096 + col);
}

/* The card's lock is held, here and in what follows that does not take it. */
static struct cached *cache_find(struct gpu_card *card, u64 tablet_id, u32 col) {
    struct gpu_cache *cache = &card->cache;
    if (!cache->slot_count) {
        return NULL;
    }
    u64 slot = cache_hash(tablet_id, col) & (u64)(cache->slot_count - 1);
    struct cached *c = cache->slots[slot];
    while (c && (c->tablet_id != tablet_id || c->col != col)) {
        c = c->chain;
    }
    return c;
}

static bool cache_grow(struct gpu_card *card) {
    struct gpu_cache *cache = &card->cache;
    if (cache->count < cache->slot_count) {
        return true;
    }
    i64 slot_count = MAX_OF(cache->slot_count * 2, 64);
    struct cached **slots = mem_alloc(card->mem, slot_count * (i64)sizeof *slots);
    if (!slots) {
        return false;
    }
    memset(slots, 0, (size_t)slot_count * sizeof *slots);
    for (struct cached *c = cache->newest; c; c = c->older) {
        u64 slot = cache_hash(c->tablet_id, c->col) & (u64)(slot_count - 1);
        c->chain = slots[slot];
        slots[slot] = c;
    }
    mem_free(card->mem, cache->slots, cache->slot_count * (i64)sizeof *slots);
    cache->slots = slots;
    cache->slot_count = slot_count;
    return true;
}

static void order_remove(struct gpu_cache *cache, struct cached *c) {
    *(c->newer ? &c->newer->older : &cache->newest) = c->older;
    *(c->older ? &c->older->newer : &cache->oldest) = c->newer;
}

static void order_add(struct gpu_cache *cache, struct cached *c) {
    c->newer = NULL;
    c->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = c;
    cache->newest = c;
}

static void cache_drop(struct gpu_card *card, struct cached *c) {
    struct gpu_cache *cache = &card->cache;
    struct cached **at =
        &cache->slots[cache_hash(c->tablet_id, c->col) & (u64)(cache->slot_count - 1)];
    while (*at != c) {
        at = &(*at)->chain;
    }
    *at = c->chain;
    order_remove(cache, c);
    cache->count--;
    cache->drop_no++;
    cache->change_no++;
    cache->bytes -= c->block ? c->block->bytes : 0;
    gpu_heap_free(card, c->block);
    mem_free(card->mem, c, (i64)sizeof *c);
}

void gpu_cache_count(struct gpu_card *card, const struct table_version *version, u32 col,
                     i64 *out_bytes, i64 *out_missing) {
    *out_bytes = *out_missing = 0;
    for (i64 t = 0; t < version->tablet_count; t++) {
        const struct tablet *tablet = version->tablets[t];
        struct seg_bytes seg = gpu_segment_bytes(tablet, col, version->tablet_rows[t]);
        *out_bytes += seg.total_bytes;
        *out_missing += cache_find(card, tablet->id, col) ? 0 : seg.total_bytes;
    }
}

bool gpu_cache_has(struct gpu_card *card, u64 tablet_id, u32 col) {
    mutex_lock(&card->lock);
    bool found = cache_find(card, tablet_id, col) != NULL;
    mutex_unlock(&card->lock);
    return found;
}

/* --- loading --- */

static void use(struct gpu *g, struct cached *c) {
    order_remove(&g->card->cache, c);
    order_add(&g->card->cache, c);
    c->used_by[g->number] = g->run_no;
}

static struct cached *cache_add(struct gpu *g, const struct tablet *tablet, u32 col) {
    struct gpu_card *card = g->card;
    struct gpu_cache *cache = &card->cache;
    struct cached *c = cache_grow(card) ? mem_alloc(card->mem, (i64)sizeof *c) : NULL;
    if (!c) {
        return NULL;
    }
    *c = (struct cached){.tablet_id = tablet->id, .col = col, .load_no = g->run_no, .loading = 1};
    c->used_by[g->number] = g->run_no;
    struct cached **slot =
        &cache->slots[cache_hash(tablet->id, col) & (u64)(cache->slot_count - 1)];
    c->chain = *slot;
    *slot = c;
    order_add(cache, c);
    cache->count++;
    cache->change_no++;
    return c;
}

/* Room for the segment, and its copy queued. Without the lock: nobody else touches what is loading.
 */
static FALLIBLE load(struct gpu *g, struct cached *c, struct gpu_bring *bring, i64 *moved,
                     struct error *err) {
    struct seg_bytes bytes = gpu_segment_bytes(bring->tablet, bring->col, bring->rows);
    const struct seg_bytes *seg = &bytes;
    i64 data_room = ALIGN_UP(seg->data_bytes + 64, 64);
    i64 valid_room = ALIGN_UP(seg->valid_bytes, 64);
    if (seg->total_bytes == 0) {
        return ERR_OK;
    }
    TRY(gpu_alloc_here(g, data_room + valid_room + seg->text_bytes, &c->block, err));
    u64 at = c->block->addr;
    c->data = seg->data_bytes ? at : 0;
    c->nulls = seg->valid_bytes ? at + (u64)data_room : 0;
    c->text = seg->text_bytes ? at + (u64)(data_room + valid_room) : 0;
    bring->data = c->data;
    bring->nulls = c->nulls;
    bring->text = c->text;
    TRY(gpu_bring(g, bring, moved, err));
    if (g->card->worker_count > 1) {
        CU(g->api->event_record(g->uploaded, g->streams[bring->stream]));
    }
    return ERR_OK;
}

/* The event after which a segment is there; NULL: it is. */
static void *pending_copy(const struct gpu *g, const struct cached *c) {
    for (i32 w = 0; w < GPU_WORKERS_MOST; w++) {
        const struct gpu *other = g->card->workers[w];
        if (other && other != g && other->inside && other->run_no == c->load_no) {
            return other->uploaded;
        }
    }
    return NULL;
}

bool gpu_cache_holds(const struct gpu *g, const struct cached_at *at) {
    const struct cached *c = cache_find(g->card, at->tablet_id, at->col);
    return c && !c->loading && c->block && c->block->addr == at->addr && !pending_copy(g, c);
}

void gpu_cache_touch(struct gpu_card *card, const struct cached_at *at,
                     const u64 used_by[GPU_WORKERS_MOST]) {
    struct cached *c = cache_find(card, at->tablet_id, at->col);
    for (i32 w = 0; c && w < GPU_WORKERS_MOST; w++) {
        c->used_by[w] = MAX_OF(c->used_by[w], used_by[w]);
    }
    if (c) {
        order_remove(&card->cache, c);
        order_add(&card->cache, c);
    }
}

/* Finds it, or enters it as loading. */
static struct cached *find_or_add(struct gpu *g, const struct tablet *tablet, u32 col,
                                  bool *out_missed, void **out_event) {
    struct gpu_card *card = g->card;
    mutex_lock(&card->lock);
    struct cached *c = cache_find(card, tablet->id, col);
    while (c && c->loading) {
        cond_wait(&card->changed, &card->lock);
        c = cache_find(card, tablet->id, col);
    }
    *out_missed = !c;
    *out_event = NULL;
    if (c) {
        use(g, c);
        *out_event = pending_copy(g, c);
    } else {
        c = cache_add(g, tablet, col);
    }
    mutex_unlock(&card->lock);
    return c;
}

wf_status gpu_cache_load(struct gpu *g, const struct tablet *tablet, u32 col, i64 rows,
                         struct cached **out, i64 *moved, struct error *err) {
    void *stream = g->streams[0];
    struct gpu_card *card = g->card;
    bool missed = false;
    void *event = NULL;
    struct cached *c = find_or_add(g, tablet, col, &missed, &event);
    if (!c) {
        return memory_refused(card->mem, err, (i64)sizeof *c);
    }
    *out = c;
    if (event) {
        CU(g->api->stream_wait_event(stream, event, 0));
    }
    if (!missed) {
        return ERR_OK;
    }
    struct gpu_bring bring = {.tablet = tablet, .col = col, .rows = rows};
    wf_status status = load(g, c, &bring, moved, err);
    if (status) { /* nothing may still be writing what is freed */
        (void)gpu_sync(g, stream);
    }
    mutex_lock(&card->lock);
    c->loading = 0;
    card->cache.bytes += c->block ? c->block->bytes : 0;
    if (status) {
        cache_drop(card, c);
    }
    cond_broadcast(&card->changed);
    mutex_unlock(&card->lock);
    return status;
}

void gpu_cache_forget(struct gpu *g) {
    struct gpu_card *card = g->card;
    mutex_lock(&card->lock);
    for (struct cached *c = card->cache.newest, *older; c; c = older) {
        older = c->older;
        if (c->load_no == g->run_no && !c->loading) {
            cache_drop(card, c);
        }
    }
    mutex_unlock(&card->lock);
}

/* --- making room --- */

static bool is_used(const struct gpu_card *card, const struct cached *c) {
    bool used = c->loading;
    for (i32 w = 0; w < GPU_WORKERS_MOST; w++) {
        const struct gpu *g = card->workers[w];
        used = used || (g && g->inside && c->used_by[w] == g->run_no);
    }
    return used;
}

/* No step has used it since that one. */
static bool is_older(const struct cached *c, u64 run_no) {
    bool older = c->load_no < run_no;
    for (i32 w = 0; w < GPU_WORKERS_MOST; w++) {
        older = older && c->used_by[w] < run_no;
    }
    return older;
}

i64 gpu_cache_evict_older(struct gpu *g, i64 bytes, u64 run_no) {
    struct gpu_card *card = g->card;
    i64 freed = 0;
    mutex_lock(&card->lock);
    gpu_kept_settle(card);
    struct cached *c = card->cache.oldest;
    while (c && freed < bytes) {
        struct cached *newer = c->newer;
        if (!is_used(card, c) && c->block && is_older(c, run_no)) {
            freed += c->block->bytes;
            cache_drop(card, c);
        }
        c = newer;
    }
    mutex_unlock(&card->lock);
    return freed;
}

i64 gpu_cache_evict(struct gpu *g, i64 bytes) {
    return gpu_cache_evict_older(g, bytes, ~0ULL);
}

i64 gpu_cache_evictable(struct gpu *g) {
    i64 bytes = gpu_tries_idle(g->card);
    mutex_lock(&g->card->lock);
    gpu_kept_settle(g->card);
    for (const struct cached *c = g->card->cache.newest; c; c = c->older) {
        bytes += !is_used(g->card, c) && c->block ? c->block->bytes : 0;
    }
    mutex_unlock(&g->card->lock);
    return bytes;
}

void gpu_cache_fini(struct gpu_card *card) {
    while (card->cache.newest) {
        cache_drop(card, card->cache.newest);
    }
    mem_free(card->mem, card->cache.slots, card->cache.slot_count * (i64)sizeof *card->cache.slots);
    memset(&card->cache, 0, sizeof card->cache);
}
