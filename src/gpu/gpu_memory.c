/* gpu_memory.c: device memory: a suballocator over slabs, within a budget; pinned host memory.
 *
 * The driver's allocator costs 0.4 ms a call, so memory is taken from it in slabs and cut here:
 * best fit over one list of free blocks, neighbours joined when freed; small blocks stay out of slabs that
 * were taken for large ones. Slabs that stand empty are
 * given back when they exceed a quarter of the budget, or when the card refuses a new one. Kernels
 * never allocate.
 *
 * The second tier is memory of the host, out of the pool of results (gpu_host.c): kernels and copies
 * use its blocks like all others, at the speed of the bus. Atomics there are atomic among the
 * threads of the card, which are the only ones that touch it. Only steps that the card has no room
 * for go there, and blocks that outlive a step are put there for its time only. */
#include "gpu/gpu_int.h"

#define SLAB_BYTES (256LL << 20)
#define SLAB_ROUND (2LL << 20)
#define SMALL_PART 8 /* of a common slab */

struct gpu_slab {
    struct gpu_slab *prev, *next;
    struct gpu_block *first;
    u64 addr;
    i64 bytes;
};

static struct gpu_block *block_new(struct gpu_card *card) {
    struct gpu_block *block = mem_alloc(card->mem, (i64)sizeof *block);
    if (block) {
        memset(block, 0, sizeof *block);
    }
    return block;
}

static void free_list_add(struct gpu_heap *heap, struct gpu_block *block) {
    block->is_free = 1;
    block->free_prev = NULL;
    block->free_next = heap->free_list;
    if (heap->free_list) {
        heap->free_list->free_prev = block;
    }
    heap->free_list = block;
}

static void free_list_remove(struct gpu_heap *heap, struct gpu_block *block) {
    block->is_free = 0;
    if (block->free_prev) {
        block->free_prev->free_next = block->free_next;
    } else {
        heap->free_list = block->free_next;
    }
    if (block->free_next) {
        block->free_next->free_prev = block->free_prev;
    }
}

static void slab_unlink(struct gpu_card *card, struct gpu_slab *slab) {
    struct gpu_heap *heap = &card->heap;
    if (slab->prev) {
        slab->prev->next = slab->next;
    } else {
        heap->slabs = slab->next;
    }
    if (slab->next) {
        slab->next->prev = slab->prev;
    }
    heap->slab_bytes -= slab->bytes;
    mem_free(card->mem, slab, (i64)sizeof *slab);
}

static bool slab_is_empty(const struct gpu_slab *slab) {
    return slab->first->is_free && !slab->first->next;
}

static void slab_give_back(struct gpu_card *card, struct gpu_slab *slab) {
    free_list_remove(&card->heap, slab->first);
    mem_free(card->mem, slab->first, (i64)sizeof *slab->first);
    (void)card->api->ctx_set(card->ctx); /* from whatever thread */
    (void)card->api->mem_free(slab->addr);
    slab_unlink(card, slab);
}

static i64 give_back_empty(struct gpu_card *card, i64 keep_bytes) {
    i64 given = 0;
    i64 empty = 0;
    for (struct gpu_slab *slab = card->heap.slabs, *next; slab; slab = next) {
        next = slab->next;
        if (slab_is_empty(slab)) {
            empty += slab->bytes;
            if (empty > keep_bytes) {
                given += slab->bytes;
                slab_give_back(card, slab);
            }
        }
    }
    return given;
}

static bool slab_add(struct gpu_card *card, i64 bytes) {
    struct gpu_heap *heap = &card->heap;
    i64 want = ALIGN_UP(MAX_OF(bytes, heap->unit_bytes), SLAB_ROUND);
    i64 room = heap->budget_bytes - heap->slab_bytes;
    if (want > room) {
        want = ALIGN_UP(bytes, GPU_ALIGN);
    }
    if (want > room && give_back_empty(card, 0) == 0) {
        return false;
    }
    if (want > heap->budget_bytes - heap->slab_bytes) {
        return false;
    }
    u64 addr = 0;
    int code = card->api->mem_alloc(&addr, (size_t)want);
    if (code && give_back_empty(card, 0) > 0) {
        code = card->api->mem_alloc(&addr, (size_t)want);
    }
    if (code) {
        card->broken = code == CU_OUT_OF_MEMORY ? card->broken : 1;
        return false;
    }
    struct gpu_slab *slab = mem_alloc(card->mem, (i64)sizeof *slab);
    struct gpu_block *block = block_new(card);
    if (!slab || !block) {
        (void)card->api->mem_free(addr);
        mem_free(card->mem, slab, (i64)sizeof *slab);
        mem_free(card->mem, block, (i64)sizeof *block);
        return false;
    }
    *slab = (struct gpu_slab){NULL, heap->slabs, block, addr, want};
    if (heap->slabs) {
        heap->slabs->prev = slab;
    }
    heap->slabs = slab;
    heap->slab_bytes += want;
    block->addr = addr;
    block->bytes = want;
    block->slab = slab;
    free_list_add(heap, block);
    return true;
}

/* In slabs of at most so many bytes. */
static struct gpu_block *best_fit(const struct gpu_heap *heap, i64 bytes, i64 most) {
    struct gpu_block *best = NULL;
    for (struct gpu_block *b = heap->free_list; b; b = b->free_next) {
        if (b->bytes >= bytes && b->slab->bytes <= most && (!best || b->bytes < best->bytes)) {
            best = b;
        }
    }
    return best;
}

/* Small blocks, of which some stay, keep together in common slabs, so that those of large blocks come to be empty and
 * serve other sizes. */
static struct gpu_block *find_place(struct gpu_card *card, i64 bytes) {
    struct gpu_heap *heap = &card->heap;
    bool small = bytes <= heap->unit_bytes / SMALL_PART;
    i64 most = small ? MAX_OF(heap->unit_bytes, SLAB_ROUND) : I64_MAX;
    struct gpu_block *block = best_fit(heap, bytes, most);
    if (!block && slab_add(card, bytes)) {
        block = best_fit(heap, bytes, most);
    }
    return !block && small ? best_fit(heap, bytes, I64_MAX) : block;
}

/* Cuts `bytes` off the front; the rest stays free. A refused cut hands out the whole block. */
static void cut(struct gpu_card *card, struct gpu_block *block, i64 bytes) {
    if (block->bytes - bytes < GPU_ALIGN) {
        return;
    }
    struct gpu_block *rest = block_new(card);
    if (!rest) {
        return;
    }
    rest->addr = block->addr + (u64)bytes;
    rest->bytes = block->bytes - bytes;
    rest->slab = block->slab;
    rest->prev = block;
    rest->next = block->next;
    if (block->next) {
        block->next->prev = rest;
    }
    block->next = rest;
    block->bytes = bytes;
    free_list_add(&card->heap, rest);
}

struct gpu_block *gpu_heap_alloc(struct gpu_card *card, i64 bytes) {
    struct gpu_heap *heap = &card->heap;
    i64 size = ALIGN_UP(MAX_OF(bytes, 1) + 64, GPU_ALIGN);
    mutex_lock(&heap->lock);
    struct gpu_block *block = find_place(card, size);
    if (block) {
        free_list_remove(heap, block);
        cut(card, block, size);
        heap->used_bytes += block->bytes;
        heap->peak_bytes = MAX_OF(heap->peak_bytes, heap->used_bytes);
        block->epoch = card->epoch;
    }
    mutex_unlock(&heap->lock);
    return block;
}

bool gpu_heap_find(struct gpu_card *card, u64 addr, u64 *out_addr, i64 *out_bytes) {
    struct gpu_heap *heap = &card->heap;
    bool found = false;
    mutex_lock(&heap->lock);
    for (const struct gpu_block *b = heap->away; b && !found; b = b->next) {
        found = addr >= b->addr && addr - b->addr < (u64)b->bytes;
        *out_addr = b->addr;
        *out_bytes = b->bytes;
    }
    for (const struct gpu_slab *slab = heap->slabs; slab && !found; slab = slab->next) {
        if (addr < slab->addr || addr - slab->addr >= (u64)slab->bytes) {
            continue;
        }
        for (const struct gpu_block *b = slab->first; b && !found; b = b->next) {
            found = !b->is_free && addr >= b->addr && addr - b->addr < (u64)b->bytes;
            *out_addr = b->addr;
            *out_bytes = b->bytes;
        }
    }
    mutex_unlock(&heap->lock);
    return found;
}

i64 gpu_heap_mark(struct gpu_card *card) {
    struct gpu_heap *heap = &card->heap;
    mutex_lock(&heap->lock);
    i64 peak = heap->peak_bytes;
    heap->peak_bytes = heap->used_bytes;
    mutex_unlock(&heap->lock);
    return peak;
}

static void join_next(struct gpu_card *card, struct gpu_block *block) {
    struct gpu_block *next = block->next;
    if (!next || !next->is_free) {
        return;
    }
    free_list_remove(&card->heap, next);
    block->bytes += next->bytes;
    block->next = next->next;
    if (next->next) {
        next->next->prev = block;
    }
    mem_free(card->mem, next, (i64)sizeof *next);
}

/* --- in memory of the host --- */

static struct gpu_block *away_alloc(struct gpu *g, i64 bytes) {
    struct gpu_card *card = g->card;
    struct gpu_heap *heap = &card->heap;
    struct buffer *host = gpu_host_buffer(card->host, card->mem, g->pool, MAX_OF(bytes, 1));
    u64 addr = host ? gpu_host_addr(card->host, host) : 0;
    struct gpu_block *block = addr ? block_new(card) : NULL;
    if (!block) {
        buffer_release(host);
        return NULL;
    }
    block->addr = addr;
    block->bytes = bytes + 64;
    block->host = host;
    mutex_lock(&heap->lock);
    block->epoch = card->epoch;
    block->next = heap->away;
    if (heap->away) {
        heap->away->prev = block;
    }
    heap->away = block;
    mutex_unlock(&heap->lock);
    g->spilled_bytes += bytes;
    return block;
}

static void away_free(struct gpu_card *card, struct gpu_block *block) {
    struct gpu_heap *heap = &card->heap;
    mutex_lock(&heap->lock);
    if (block->epoch == card->epoch) {
        *(block->prev ? &block->prev->next : &heap->away) = block->next;
        if (block->next) {
            block->next->prev = block->prev;
        }
    }
    mutex_unlock(&heap->lock);
    buffer_release(block->host);
    mem_free(card->mem, block, (i64)sizeof *block);
}

/* --- both --- */

void gpu_heap_free(struct gpu_card *card, struct gpu_block *block) {
    if (!block) {
        return;
    }
    if (block->host) {
        away_free(card, block);
        return;
    }
    struct gpu_heap *heap = &card->heap;
    mutex_lock(&heap->lock);
    if (block->epoch != card->epoch) { /* its slab went with a reset */
        mem_free(card->mem, block, (i64)sizeof *block);
        mutex_unlock(&heap->lock);
        return;
    }
    ASSERT(!block->is_free && heap->used_bytes >= block->bytes);
    heap->used_bytes -= block->bytes;
    free_list_add(heap, block);
    join_next(card, block);
    if (block->prev && block->prev->is_free) {
        join_next(card, block->prev);
    }
    give_back_empty(card, heap->budget_bytes / 4);
    mutex_unlock(&heap->lock);
}

/* Blocks still handed out stay valid as records; heap_free drops them later. */
void gpu_heap_fini(struct gpu_card *card, bool context_alive) {
    struct gpu_heap *heap = &card->heap;
    mutex_lock(&heap->lock);
    while (heap->slabs) {
        struct gpu_slab *slab = heap->slabs;
        for (struct gpu_block *b = slab->first, *next; b; b = next) {
            next = b->next;
            if (b->is_free) {
                mem_free(card->mem, b, (i64)sizeof *b);
            }
        }
        if (context_alive) {
            (void)card->api->mem_free(slab->addr);
        }
        slab_unlink(card, slab);
    }
    heap->free_list = NULL;
    heap->away = NULL;
    heap->used_bytes = 0;
    card->epoch++;
    mutex_unlock(&heap->lock);
}

i64 gpu_heap_available(struct gpu_card *card) {
    mutex_lock(&card->heap.lock);
    i64 bytes = card->heap.budget_bytes - card->heap.used_bytes;
    mutex_unlock(&card->heap.lock);
    return bytes;
}

/* What earlier steps left for the next one over the bus: this worker's, unless the step uses it, and
 * that of others while they rest. */
static void drop_slots(struct gpu *g) {
    struct gpu_card *card = g->card;
    mutex_lock(&card->lock);
    for (i32 w = 0; w < GPU_WORKERS_MOST; w++) {
        struct gpu *from = card->workers[w];
        bool used = !from || (from == g ? g->slots_run_no == g->run_no : from->inside);
        for (i32 s = 0; !used && s < GPU_STREAMS; s++) {
            gpu_heap_free(card, from->slots[s]);
            gpu_heap_free(card, from->rows[s]);
            from->slots[s] = from->rows[s] = NULL;
        }
    }
    mutex_unlock(&card->lock);
}

struct gpu_block *gpu_alloc_try(struct gpu *g, i64 bytes) {
    struct gpu_block *block = gpu_heap_alloc(g->card, bytes);
    if (g->number == GPU_MOVER) { /* it takes nothing away from steps */
        return block;
    }
    if (!block && !g->card->broken) {
        drop_slots(g);
        block = gpu_heap_alloc(g->card, bytes);
    }
    if (!block && !g->card->broken && gpu_kept_drop_scans(g->card)) {
        block = gpu_heap_alloc(g->card, bytes);
    }
    while (!block && !g->card->broken && gpu_tries_drop(g->card) > 0) {
        block = gpu_heap_alloc(g->card, bytes);
    }
    while (!block && !g->card->broken && gpu_cache_evict(g, bytes) > 0) {
        block = gpu_heap_alloc(g->card, bytes);
    }
    return block;
}

static FALLIBLE refused(struct gpu *g, i64 bytes, const char *host, const char *hint,
                        struct error *err) {
    if (g->card->broken) {
        FAIL(err, GPU, "the driver failed while allocating %lld bytes on the GPU", bytes);
    }
    bool first = err->code == ERR_OK;
    error_set(err, ERR_DEVICE_MEMORY, -1,
              "out of GPU memory: %lld bytes asked, %lld free of %lld%s", bytes,
              MAX_OF(gpu_heap_available(g->card), 0), g->card->heap.budget_bytes, host);
    if (first) {
        error_hint(err, "%s", hint);
    }
    return ERR_DEVICE_MEMORY;
}

wf_status gpu_alloc_here(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err) {
    *out = gpu_alloc_try(g, bytes);
    return *out ? ERR_OK
                : refused(g, bytes, "",
                          "Raise the setting \"gpu_memory\", or SET gpu_placement = streamed.", err);
}

wf_status gpu_alloc_away(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err) {
    *out = g->card->broken ? NULL : away_alloc(g, bytes);
    return *out ? ERR_OK
                : refused(g, bytes, ", and the host has no room for them",
                          "Raise the setting \"memory\" or \"gpu_memory\".", err);
}

wf_status gpu_alloc(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err) {
    if (g->tight < TIGHT_SPILL) {
        return gpu_alloc_here(g, bytes, out, err);
    }
    *out = gpu_alloc_try(g, bytes);
    return *out ? ERR_OK : gpu_alloc_away(g, bytes, out, err);
}

wf_status gpu_alloc_rows(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err) {
    *out = g->may_spill ? gpu_alloc_try(g, bytes) : NULL;
    if (*out) {
        return ERR_OK;
    }
    return g->may_spill ? gpu_alloc_away(g, bytes, out, err) : gpu_alloc(g, bytes, out, err);
}

wf_status gpu_pinned_reserve(struct gpu *g, struct pinned *p, i64 bytes, struct error *err) {
    if (p->bytes >= bytes) {
        return ERR_OK;
    }
    gpu_pinned_free(g, p);
    i64 size = ALIGN_UP(MAX_OF(bytes, 4096), 4096);
    void *host = NULL;
    CU(g->api->host_alloc(&host, (size_t)size, CU_HOST_PORTABLE_MAPPED));
    p->host = host;
    p->bytes = size;
    CU(g->api->host_device_ptr(&p->addr, host, 0));
    return ERR_OK;
}

void gpu_pinned_free(struct gpu *g, struct pinned *p) {
    if (p->host) {
        (void)g->api->host_free(p->host);
    }
    *p = (struct pinned){NULL, 0, 0};
}
