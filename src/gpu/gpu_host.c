/* gpu_host.c: host memory for results: registered with the driver once, cut into blocks, kept.
 *
 * The card copies results straight into the memory the reader of the result sees. Fresh pages cost
 * several times the copy (faulting in, then registering: 65 ms per GiB), so blocks go back to slabs
 * that stay registered for the next statement: a query that runs again neither allocates nor
 * faults. A slab is ordinary memory; a reset or closed context only takes its registration, so
 * results outlive both, and the pool itself lives until its last block comes back.
 *
 * Blocks in use are accounted to their statement. What lies idle is known to the budget, which asks
 * for it back as soon as it wants the bytes. Invariant: no reservation is made under the lock,
 * because a reservation may call give_back. */
#include "gpu/gpu_int.h"

#include <stdlib.h>

#define HOST_UNIT (64LL << 10)      /* blocks are whole units */
#define HOST_SLAB_LEAST (4LL << 20) /* slabs grow with the pool */
#define HOST_SLAB_MOST (256LL << 20)
#define HOST_PAD 64
#define TOUCH_BYTES (4LL << 20)
#define PAGE_BYTES 4096
#ifdef WF_HARD
#define HOST_KEEP_MOST (1LL << 20) /* test builds: slabs come and go */
#else
#define HOST_KEEP_MOST (8LL << 30)
#endif

enum { HOST_PLAIN, HOST_REGISTERED, HOST_REFUSED };

struct host_slab {
    struct host_slab *next;
    u8 *data;
    i64 units, used_units;
    i32 state;  /* HOST_… */
    u64 addr;   /* on the card, while registered */
    u64 bits[]; /* 1 = used */
};

struct gpu_host {
    struct mutex lock;
    const struct cu_api *api;
    void *ctx;          /* NULL: nothing can be registered now */
    struct memory *mem; /* NULL: the device is closed */
    struct host_slab *slabs;
    i64 total_bytes, used_bytes;
};

struct gpu_host *gpu_host_open(const struct cu_api *api, struct memory *mem) {
    struct gpu_host *h = calloc(1, sizeof *h);
    if (!h) {
        return NULL;
    }
    mutex_init(&h->lock);
    h->api = api;
    h->mem = mem;
    struct idle *idle = &mem->idle[IDLE_TRANSFER];
    if (!idle->give_back) {
        idle->owner = h;
        idle->give_back = gpu_host_give_back;
    }
    return h;
}

static i64 keep_bytes(const struct gpu_host *h) {
    i64 budget = h->mem && h->mem->limit_bytes ? h->mem->limit_bytes : machine_memory_bytes();
    return h->mem ? MIN_OF(budget / 4, HOST_KEEP_MOST) : 0;
}

static void tell_idle(struct gpu_host *h) {
    struct idle *idle = h->mem ? &h->mem->idle[IDLE_TRANSFER] : NULL;
    if (idle && idle->owner == h) {
        atomic_store_explicit(&idle->bytes, h->total_bytes - h->used_bytes, memory_order_release);
    }
}

/* --- slabs --- */

static void unregister(struct gpu_host *h, struct host_slab *slab) {
    if (slab->state == HOST_REGISTERED && h->ctx) {
        (void)h->api->ctx_set(h->ctx);
        (void)h->api->host_unregister(slab->data);
    }
    slab->state = HOST_PLAIN;
}

static void slab_register(struct gpu_host *h, struct host_slab *slab) {
    if (slab->state == HOST_PLAIN && h->ctx) {
        int code = h->api->host_register(slab->data, (size_t)(slab->units * HOST_UNIT),
                                         CU_HOST_PORTABLE_MAPPED);
        slab->state = code == CU_OK ? HOST_REGISTERED : HOST_REFUSED; /* copies work, but slowly */
        slab->addr = 0;
        if (code == CU_OK && h->api->host_device_ptr(&slab->addr, slab->data, 0) != CU_OK) {
            slab->addr = 0; /* good for copies only */
        }
    }
}

static void slab_free(struct gpu_host *h, struct host_slab **at) {
    struct host_slab *slab = *at;
    *at = slab->next;
    unregister(h, slab);
    h->total_bytes -= slab->units * HOST_UNIT;
    free(slab->data);
    free(slab);
}

/* Frees empty slabs until at most `idle` bytes lie idle, or none is empty. */
static void trim(struct gpu_host *h, i64 idle) {
    struct host_slab **at = &h->slabs;
    while (*at && h->total_bytes - h->used_bytes > idle) {
        if ((*at)->used_units == 0) {
            slab_free(h, at);
        } else {
            at = &(*at)->next;
        }
    }
    tell_idle(h);
}

struct touch {
    u8 *data;
    i64 bytes;
};

static void touch_piece(void *arg, i64 i, i32 worker) {
    const struct touch *touch = arg;
    UNUSED(worker);
    i64 end = MIN_OF((i + 1) * TOUCH_BYTES, touch->bytes);
    for (i64 at = i * TOUCH_BYTES; at < end; at += PAGE_BYTES) {
        ((volatile u8 *)touch->data)[at] = 0;
    }
}

/* A slab with room for `bytes`, its pages present; without the lock. */
static struct host_slab *slab_new(struct pool *pool, i64 bytes) {
    i64 units = bytes / HOST_UNIT;
    i64 words = (units + 63) / 64;
    struct host_slab *slab = calloc(1, sizeof *slab + (size_t)words * sizeof(u64));
    if (!slab) {
        return NULL;
    }
    slab->data = aligned_alloc(HOST_UNIT, (size_t)bytes);
    if (!slab->data) {
        free(slab);
        return NULL;
    }
    slab->units = units;
    if (units & 63) { /* what lies past the end is never free */
        slab->bits[words - 1] = ~0ULL << (units & 63);
    }
    struct touch touch = {slab->data, bytes};
    if (pool && bytes > TOUCH_BYTES) {
        pool_run(pool, (bytes + TOUCH_BYTES - 1) / TOUCH_BYTES, touch_piece, &touch);
    }
    return slab;
}

/* More than is asked for, so that the next blocks need no slab, as far as the budget has room. */
static i64 slab_size(const struct gpu_host *h, i64 bytes) {
    i64 want = MAX_OF(bytes, MIN_OF(MAX_OF(h->total_bytes, HOST_SLAB_LEAST), HOST_SLAB_MOST));
    i64 idle = h->total_bytes - h->used_bytes + want - bytes;
    i64 used = atomic_load_explicit(&h->mem->used_bytes, memory_order_relaxed);
    bool fits = !h->mem->limit_bytes || used + idle <= h->mem->limit_bytes;
    return fits && idle <= keep_bytes(h) ? want : bytes;
}

/* --- blocks --- */

static bool bit_get(const struct host_slab *slab, i64 i) {
    return slab->bits[i >> 6] >> (i & 63) & 1;
}

static void bits_set(struct host_slab *slab, i64 first, i64 count, bool on) {
    for (i64 i = first; i < first + count; i++) {
        u64 bit = 1ULL << (i & 63);
        slab->bits[i >> 6] = on ? slab->bits[i >> 6] | bit : slab->bits[i >> 6] & ~bit;
    }
    slab->used_units += on ? count : -count;
}

/* The first run of `count` free units, or -1. */
static i64 find_run(const struct host_slab *slab, i64 count) {
    i64 run = 0;
    if (slab->units - slab->used_units < count) {
        return -1;
    }
    for (i64 i = 0; i < slab->units; i++) {
        if ((i & 63) == 0 && slab->bits[i >> 6] == ~0ULL) {
            run = 0;
            i += 63;
            continue;
        }
        run = bit_get(slab, i) ? 0 : run + 1;
        if (run == count) {
            return i - count + 1;
        }
    }
    return -1;
}

static u8 *take_block(struct gpu_host *h, i64 bytes) {
    i64 count = bytes / HOST_UNIT;
    for (struct host_slab *slab = h->slabs; slab; slab = slab->next) {
        i64 first = find_run(slab, count);
        if (first >= 0) {
            slab_register(h, slab); /* again, after a reset */
            bits_set(slab, first, count, true);
            h->used_bytes += bytes;
            tell_idle(h);
            return slab->data + first * HOST_UNIT;
        }
    }
    return NULL;
}

static struct host_slab *slab_of(const struct gpu_host *h, const u8 *data) {
    struct host_slab *slab = h->slabs;
    while (data < slab->data || data >= slab->data + slab->units * HOST_UNIT) {
        slab = slab->next;
    }
    return slab;
}

static void put_block(struct gpu_host *h, const u8 *data, i64 bytes) {
    struct host_slab *slab = slab_of(h, data);
    bits_set(slab, (data - slab->data) / HOST_UNIT, bytes / HOST_UNIT, false);
    h->used_bytes -= bytes;
    trim(h, keep_bytes(h));
}

static i64 block_bytes(i64 bytes) {
    return ALIGN_UP(bytes + HOST_PAD, HOST_UNIT);
}

/* Unlocks; frees the pool when the device is closed and the last block is back. */
static void unlock(struct gpu_host *h) {
    bool last = !h->mem && !h->slabs;
    mutex_unlock(&h->lock);
    if (last) {
        mutex_fini(&h->lock);
        free(h);
    }
}

static void free_data(struct buffer *buf) {
    struct gpu_host *h = buf->owner;
    i64 bytes = block_bytes(buf->bytes);
#ifdef WF_HARD
    memset(buf->data, 0xa5, (size_t)bytes);
#endif
    memory_release(buf->mem, bytes);
    mutex_lock(&h->lock);
    put_block(h, buf->data, bytes);
    unlock(h);
}

i64 gpu_host_size(const struct buffer *buf) {
    return block_bytes(buf->bytes);
}

i64 gpu_host_own(struct buffer *buf, struct memory *database) {
    ASSERT(!database->parent);
    memory_lift(buf->mem, block_bytes(buf->bytes));
    buf->mem = database;
    return block_bytes(buf->bytes);
}

u64 gpu_host_addr(struct gpu_host *h, const struct buffer *buf) {
    mutex_lock(&h->lock);
    const struct host_slab *slab = slab_of(h, buf->data);
    bool reached = slab->state == HOST_REGISTERED && slab->addr;
    u64 addr = reached ? slab->addr + (u64)(buf->data - slab->data) : 0;
    mutex_unlock(&h->lock);
    return addr;
}

struct buffer *gpu_host_buffer(struct gpu_host *h, struct memory *mem, struct pool *pool,
                               i64 bytes) {
    i64 size = block_bytes(bytes);
    if (!memory_reserve(mem, size)) {
        return NULL;
    }
    mutex_lock(&h->lock);
    u8 *data = take_block(h, size);
    if (!data) {
        i64 want = slab_size(h, size);
        mutex_unlock(&h->lock);
        struct host_slab *slab = slab_new(pool, want);
        mutex_lock(&h->lock);
        if (!slab) { /* the system refuses: what lies idle is worth more there */
            trim(h, 0);
            mutex_unlock(&h->lock);
            slab = slab_new(pool, size);
            mutex_lock(&h->lock);
        }
        if (slab) {
            slab->next = h->slabs;
            h->slabs = slab;
            h->total_bytes += slab->units * HOST_UNIT;
            data = take_block(h, size);
        }
    }
    mutex_unlock(&h->lock);
    struct buffer *buf = data ? buffer_wrap(mem, data, bytes, free_data, h) : NULL;
    if (!buf) {
        mutex_lock(&h->lock);
        if (data) {
            put_block(h, data, size);
        }
        mutex_unlock(&h->lock);
        memory_release(mem, size);
        return NULL;
    }
    memset(data + bytes, 0, HOST_PAD);
    return buf;
}

/* --- the pool and its device --- */

void gpu_host_give_back(void *host, i64 bytes) {
    struct gpu_host *h = host;
    mutex_lock(&h->lock);
    trim(h, MAX_OF(h->total_bytes - h->used_bytes - bytes, 0));
    mutex_unlock(&h->lock);
}

void gpu_host_attach(struct gpu_host *h, void *ctx) {
    mutex_lock(&h->lock);
    h->ctx = ctx;
    mutex_unlock(&h->lock);
}

void gpu_host_detach(struct gpu_host *h) {
    mutex_lock(&h->lock);
    for (struct host_slab *slab = h->slabs; slab; slab = slab->next) {
        unregister(h, slab);
    }
    h->ctx = NULL;
    mutex_unlock(&h->lock);
}

void gpu_host_close(struct gpu_host *h) {
    if (!h) {
        return;
    }
    gpu_host_detach(h);
    mutex_lock(&h->lock);
    trim(h, 0);
    struct idle *idle = &h->mem->idle[IDLE_TRANSFER];
    if (idle->owner == h) {
        atomic_store(&idle->bytes, 0);
        idle->owner = NULL;
        idle->give_back = NULL;
    }
    h->mem = NULL;
    unlock(h);
}
