/* gpu_cache.c: columns on the card: cached segments, and host buffers pinned for direct transfer.
 *
 * A cached segment is keyed by tablet and column and never goes stale, because a tablet never
 * changes. The least recently used goes first when memory is short, but never one that the step
 * being run uses. Buffers that cross the bus are registered with the driver the first time and stay
 * so until they are freed: registering costs 65 ms per GiB once, a copy from ordinary memory eight
 * times the bus each time. */
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
    if (!buf || buf->bytes < PIN_LEAST_BYTES) {
        return false;
    }
    if (buf->pinned) {
        return true;
    }
    pins_open();
    mutex_lock(&pins.lock);
    bool done = pins_grow() && g->api->host_register(buf->data, (size_t)buf->bytes,
                                                     CU_HOST_PORTABLE_MAPPED) == CU_OK;
    if (done && g->api->host_device_ptr(&buf->device_addr, buf->data, 0) != CU_OK) {
        (void)g->api->host_unregister(buf->data);
        done = false;
    }
    if (done) {
        buf->pinned = 1;
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
        out.text_bytes = ((const u32 *)seg->data)[rows - 1];
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

struct cached *gpu_cache_find(struct gpu_card *card, u64 tablet_id, u32 col) {
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
    cache->bytes -= c->block ? c->block->bytes : 0;
    gpu_heap_free(card, c->block);
    mem_free(card->mem, c, (i64)sizeof *c);
}

wf_status gpu_cache_load(struct gpu *g, const struct tablet *tablet, u32 col, i64 rows,
                         void *stream, struct cached **out, i64 *moved, struct error *err) {
    struct gpu_cache *cache = &g->card->cache;
    struct cached *c = gpu_cache_find(g->card, tablet->id, col);
    if (c) {
        order_remove(cache, c);
        order_add(cache, c);
        c->run_no = g->run_no;
        *out = c;
        return ERR_OK;
    }
    struct seg_bytes seg = gpu_segment_bytes(tablet, col, rows);
    i64 data_room = ALIGN_UP(seg.data_bytes + 64, 64);
    i64 valid_room = ALIGN_UP(seg.valid_bytes, 64);
    struct gpu_block *block = NULL;
    if (seg.total_bytes > 0) {
        TRY(gpu_alloc(g, data_room + valid_room + seg.text_bytes, &block, err));
    }
    c = cache_grow(g->card) ? mem_alloc(g->card->mem, (i64)sizeof *c) : NULL;
    if (!c) {
        gpu_heap_free(g->card, block);
        return memory_refused(g->card->mem, err, (i64)sizeof *c);
    }
    *c = (struct cached){.tablet_id = tablet->id, .col = col, .block = block, .run_no = g->run_no};
    c->data = block && seg.data_bytes ? block->addr : 0;
    c->nulls = block && seg.valid_bytes ? block->addr + (u64)data_room : 0;
    c->text = block && seg.text_bytes ? block->addr + (u64)(data_room + valid_room) : 0;
    struct cached **slot =
        &cache->slots[cache_hash(tablet->id, col) & (u64)(cache->slot_count - 1)];
    c->chain = *slot;
    *slot = c;
    order_add(cache, c);
    cache->count++;
    cache->bytes += block ? block->bytes : 0;
    wf_status status =
        gpu_upload(g, c->data, seg.data, seg.data_bytes, seg.data_buffer, stream, err);
    if (!status) {
        status = gpu_upload(g, c->nulls, seg.valid, seg.valid_bytes, seg.valid_buffer, stream, err);
    }
    if (!status) {
        status = gpu_upload(g, c->text, seg.text, seg.text_bytes, seg.text_buffer, stream, err);
    }
    if (status) {
        cache_drop(g->card, c);
        return status;
    }
    *moved += seg.total_bytes;
    *out = c;
    return ERR_OK;
}

i64 gpu_cache_evict(struct gpu *g, i64 bytes) {
    i64 freed = 0;
    struct cached *c = g->card->cache.oldest;
    while (c && freed < bytes) {
        struct cached *newer = c->newer;
        if (c->run_no != g->run_no && c->block) {
            freed += c->block->bytes;
            cache_drop(g->card, c);
        }
        c = newer;
    }
    return freed;
}

i64 gpu_cache_evictable(const struct gpu *g) {
    i64 bytes = 0;
    for (const struct cached *c = g->card->cache.newest; c; c = c->older) {
        bytes += c->run_no != g->run_no && c->block ? c->block->bytes : 0;
    }
    return bytes;
}

void gpu_cache_fini(struct gpu_card *card) {
    while (card->cache.newest) {
        cache_drop(card, card->cache.newest);
    }
    mem_free(card->mem, card->cache.slots, card->cache.slot_count * (i64)sizeof *card->cache.slots);
    memset(&card->cache, 0, sizeof card->cache);
}
