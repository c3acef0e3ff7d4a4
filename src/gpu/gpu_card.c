/* gpu_card.c: a card and its workers: opening, resetting, entering, launching.
 *
 * A card is opened on first use only, so a session that never touches the GPU never initialises
 * CUDA. A worker has one step inside at a time; every entry makes the context current. Steps of several workers
 * run side by side: each has streams of its own and waits for nothing but those.
 *
 * An error that poisons the context marks the card broken. The statement fails with the driver's
 * words, and so do those of other workers that are inside. When all have left, the next entry throws
 * everything away, resets the primary context and starts afresh, with compiled code kept. The
 * process and the database live on. See decision 0008.
 *
 * A step that runs out of memory while others hold some runs once more alone: several workers
 * refuse nothing that one would not. */
#include "gpu/gpu_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/moment.h"
#include "base/stop.h"

#define SLAB_BYTES (256LL << 20)
#define STOP_LOOK_NS 10000000       /* how often a step that waits asks whether it still should */
#define SHARED_UNASKED (40LL << 10) /* 48 KB, and a margin for what the driver takes itself */

wf_status gpu_check(struct gpu_card *card, int code, const char *what, struct error *err) {
    if (code == CU_OK) {
        return ERR_OK;
    }
    const char *name = NULL;
    if (card->api->error_name(code, &name) || !name) {
        name = "unknown error";
    }
    if (code == CU_OUT_OF_MEMORY) {
        FAIL(err, DEVICE_MEMORY, "the CUDA driver is out of memory (%s)", name);
    }
    card->broken = 1;
    const char *call = strstr(what, "->api->");
    call = call ? call + 7 : what;
    FAIL(err, GPU, "CUDA error %d (%s) in %.*s", code, name, (int)strcspn(call, "("), call);
}

/* --- the context --- */

static FALLIBLE open_context(struct gpu_card *card, struct error *err) {
    const struct cu_api *api = card->api;
    CARD(card->api->ctx_retain(&card->ctx, card->ordinal));
    CARD(card->api->ctx_set(card->ctx));
    /* Columns read after a filter touch scattered 32-byte sectors; by default the card fetches them
     * in pairs. */
    (void)api->ctx_set_limit(CU_LIMIT_FETCH_BYTES, 32);
    gpu_host_attach(card->host, card->ctx);
    size_t free_bytes = 0;
    size_t total = 0;
    CARD(card->api->mem_info(&free_bytes, &total));
    card->total_bytes = (i64)total;
    i64 most = (i64)(free_bytes / 10 * 9);
    struct gpu_heap *heap = &card->heap;
    heap->budget_bytes = card->budget_asked > 0 ? MIN_OF(card->budget_asked, most) : most;
    heap->unit_bytes = MIN_OF(SLAB_BYTES, ALIGN_UP(heap->budget_bytes / 16 + 1, 2 << 20));
    return ERR_OK;
}

static FALLIBLE open_streams(struct gpu *g, struct error *err) {
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        CU(g->api->stream_create(&g->streams[s], CU_STREAM_NON_BLOCKING));
        CU(g->api->event_create(&g->slot_done[s], CU_EVENT_NO_TIMING));
        CU(g->api->event_create(&g->slot_down[s], CU_EVENT_NO_TIMING));
    }
    CU(g->api->stream_create(&g->down, CU_STREAM_NON_BLOCKING));
    CU(g->api->event_create(&g->uploaded, CU_EVENT_NO_TIMING));
    return ERR_OK;
}

static void drop_event(struct gpu *g, void **event) {
    if (*event) {
        (void)g->api->event_destroy(*event);
    }
    *event = NULL;
}

static void drop_stream(struct gpu *g, void **stream) {
    if (*stream) {
        (void)g->api->stream_destroy(*stream);
    }
    *stream = NULL;
}

/* All that a worker holds of its context. */
static void close_streams(struct gpu *g) {
    struct gpu_card *card = g->card;
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        gpu_heap_free(card, g->slots[s]);
        gpu_heap_free(card, g->rows[s]);
        g->slots[s] = g->rows[s] = NULL;
        drop_event(g, &g->slot_done[s]);
        drop_event(g, &g->slot_down[s]);
        drop_stream(g, &g->streams[s]);
    }
    drop_stream(g, &g->down);
    drop_event(g, &g->uploaded);
    gpu_heap_free(card, g->args_block);
    g->args_block = NULL;
    memset(g->fits, 0, sizeof g->fits);
    gpu_pinned_free(g, &g->args);
    gpu_pinned_free(g, &g->bad);
    gpu_pinned_free(g, &g->reports);
    gpu_queue_fini(g);
    for (i64 e = 0; e < g->event_count; e++) {
        drop_event(g, &g->events[e]);
    }
    g->event_count = 0;
}

static void close_context(struct gpu_card *card) {
    const struct cu_api *api = card->api;
    if (!card->ctx) {
        return;
    }
    (void)api->ctx_set(card->ctx);
    (void)api->ctx_synchronize();
    gpu_codes_unload(card);
    gpu_unpin_all(card);
    gpu_kept_fini(card);
    gpu_cache_fini(card);
    gpu_host_detach(card->host);
    for (i32 w = 0; w < GPU_WORKERS_MOST; w++) {
        if (card->workers[w]) {
            close_streams(card->workers[w]);
        }
    }
    gpu_heap_fini(card, true);
    (void)api->ctx_release(card->ordinal);
    card->ctx = NULL;
}

static FALLIBLE revive(struct gpu_card *card, struct error *err) {
    ASSERT(card->inside == 0);
    close_context(card);
    (void)card->api->ctx_reset(card->ordinal);
    wf_status status = open_context(card, err);
    for (i32 w = 0; !status && w < GPU_WORKERS_MOST; w++) {
        status = card->workers[w] ? open_streams(card->workers[w], err) : ERR_OK;
    }
    card->broken = status != ERR_OK;
    return status;
}

/* --- entering --- */

/* A broken card is reset by the first that comes when nobody is inside. */
static bool must_wait(const struct gpu_card *card, bool alone) {
    if (card->alone) {
        return true;
    }
    return alone || card->broken ? card->inside > 0 : card->waiting_alone > 0;
}

static void note_company(struct gpu_card *card) {
    card->inside_most = MAX_OF(card->inside_most, card->inside);
    for (i32 w = 0; w < GPU_WORKERS_MOST && card->inside > 1; w++) {
        if (card->workers[w]) {
            card->workers[w]->had_company = 1;
        }
    }
}

/* With the card's lock. ERR_CANCELLED when the statement that waits is told to end. */
static FALLIBLE wait_to_enter(struct gpu *g, bool alone, struct error *err) {
    struct gpu_card *card = g->card;
    while (g->inside || must_wait(card, alone)) {
        if (stop_asked()) {
            TRY(stop_check_of(stop_current(), err));
        }
        (void)cond_wait_ns(&card->changed, &card->lock, STOP_LOOK_NS);
    }
    return ERR_OK;
}

static FALLIBLE enter(struct gpu *g, bool alone, struct error *err) {
    struct gpu_card *card = g->card;
    mutex_lock(&card->lock);
    card->waiting_alone += alone;
    wf_status status = wait_to_enter(g, alone, err);
    card->waiting_alone -= alone;
    if (!status) {
        status = card->broken ? revive(card, err)
                              : gpu_check(card, card->api->ctx_set(card->ctx), "ctx_set", err);
    }
    if (!status) {
        card->inside++;
        card->alone = alone;
        g->inside = 1;
        g->had_company = 0;
        g->widest = NULL;
        g->run_no = ++card->run_count;
        note_company(card);
    } else if (alone) { /* others waited for this one only */
        cond_broadcast(&card->changed);
    }
    mutex_unlock(&card->lock);
    return status;
}

wf_status gpu_enter(struct gpu *g, struct error *err) {
    return enter(g, false, err);
}

wf_status gpu_enter_alone(struct gpu *g, struct error *err) {
    return enter(g, true, err);
}

bool gpu_leave(struct gpu *g) {
    struct gpu_card *card = g->card;
    if (g->pins.count) { /* a step that failed may have left copies on their way */
        gpu_wait(g);
        pins_fini(&g->pins);
    }
    gpu_bring_end(g);
    mutex_lock(&card->lock);
    bool company = g->had_company;
    card->inside--;
    card->alone = 0;
    g->inside = 0;
    cond_broadcast(&card->changed);
    mutex_unlock(&card->lock);
    return company;
}

void gpu_wait(struct gpu *g) {
    for (i32 s = 0; s < GPU_STREAMS; s++) {
        (void)g->api->stream_synchronize(g->streams[s]);
    }
    (void)g->api->stream_synchronize(g->down);
}

wf_status gpu_event(struct gpu *g, i64 n, void **out, struct error *err) {
    while (g->event_count <= n) {
        if (g->event_count == g->event_cap) {
            i64 cap = MAX_OF(g->event_cap * 2, 16);
            void **grown = realloc(g->events, (size_t)cap * sizeof *grown);
            if (!grown) {
                return memory_refused(g->card->mem, err, cap * 8);
            }
            g->events = grown;
            g->event_cap = cap;
        }
        CU(g->api->event_create(&g->events[g->event_count], 0));
        g->event_count++;
    }
    *out = g->events[n];
    return ERR_OK;
}

wf_status gpu_launch(struct gpu *g, void *function, struct gpu_grid grid, void *stream,
                     const void *args, struct error *err) {
    void *params[1] = {(void *)(size_t)args};
    CU(g->api->launch(function, (unsigned)MAX_OF(grid.blocks, 1), 1, 1, grid.threads, 1, 1,
                      (unsigned)grid.shared_bytes, stream, params, NULL));
    if (!g->widest ||
        grid.blocks * grid.threads >= g->widest_grid.blocks * g->widest_grid.threads) {
        g->widest = function;
        g->widest_grid = grid;
    }
    return ERR_OK;
}

struct kernel_use gpu_widest_use(struct gpu *g) {
    int registers = 0, arrays = 0, per_sm = 0, most = 0;
    struct gpu_grid grid = g->widest_grid;
    if (!g->widest || g->api->func_attribute(&registers, CU_FUNC_REGS, g->widest) ||
        g->api->func_attribute(&arrays, CU_FUNC_SHARED_BYTES, g->widest) ||
        g->api->occupancy(&per_sm, g->widest, (int)grid.threads, (size_t)grid.shared_bytes) ||
        g->api->device_attribute(&most, CU_ATTR_SM_THREADS, g->card->ordinal) || most <= 0) {
        return (struct kernel_use){0};
    }
    return (struct kernel_use){registers, arrays + (i32)grid.shared_bytes,
                               100 * per_sm * (i32)grid.threads / most};
}

wf_status gpu_blocks_per_sm(struct gpu *g, void *function, u32 threads, i64 shared, i32 *out,
                            struct error *err) {
    u64 slot = hash_u64((u64)(size_t)function + (u64)shared * 2 + threads) % GPU_FITS;
    struct gpu_fit *fit = &g->fits[slot];
    if (fit->function != function || fit->threads != threads || fit->shared_bytes != shared) {
        int per_sm = 1;
        int arrays = 0;
        CU(g->api->func_attribute(&arrays, CU_FUNC_SHARED_BYTES, function));
        if (shared + arrays > SHARED_UNASKED) {
            CU(g->api->func_set_attribute(function, CU_FUNC_MAX_DYNAMIC_SHARED,
                                          g->card->shared_max - arrays));
        }
        CU(g->api->occupancy(&per_sm, function, (int)threads, (size_t)shared));
        *fit = (struct gpu_fit){function, threads, MAX_OF(per_sm, 1), shared};
    }
    *out = fit->per_sm;
    return ERR_OK;
}

/* --- opening and closing --- */

static FALLIBLE find_chip(struct gpu_card *card, i32 number, struct error *err) {
    int count = 0;
    CARD(card->api->init(0));
    CARD(card->api->device_count(&count));
    if (count < 1) {
        FAIL(err, NO_DEVICE, "the driver finds no GPU");
    }
    CARD(card->api->device_get(&card->ordinal, number));
    i32 ordinal = card->ordinal;
    CARD(card->api->device_name(card->chip_name, (int)sizeof card->chip_name, ordinal));
    int major = 0;
    int minor = 0;
    CARD(card->api->device_attribute(&card->sm_count, CU_ATTR_SM_COUNT, ordinal));
    CARD(card->api->device_attribute(&major, CU_ATTR_MAJOR, ordinal));
    CARD(card->api->device_attribute(&minor, CU_ATTR_MINOR, ordinal));
    CARD(card->api->device_attribute(&card->shared_max, CU_ATTR_SHARED_OPTIN, ordinal));
    CARD(card->api->device_attribute(&card->l2_bytes, CU_ATTR_L2_BYTES, ordinal));
    card->chip = major * 10 + minor;
    if (card->chip < 70) {
        FAIL(err, NO_DEVICE, "%s is too old: compute capability %d.%d, 7.0 is needed",
             card->chip_name, major, minor);
    }
    if (!card->api->has_rtc && !gpu_image_find(card, "vm_rows")) {
        FAIL(err, NO_DEVICE,
             "NVRTC (libnvrtc.so) was not found and no kernels were built for sm_%d", card->chip);
    }
    return ERR_OK;
}

static void card_close(struct gpu_card *card) {
    atomic_store(&card->codes.stop, 1); /* compilers notice it meanwhile */
    close_context(card);
    gpu_moves_fini(card);
    gpu_codes_fini(card, false);
    mutex_fini(&card->heap.lock);
    cond_fini(&card->changed);
    mutex_fini(&card->lock);
    gpu_host_close(card->host);
    mem_free(card->mem, card, (i64)sizeof *card);
}

static FALLIBLE card_open(struct memory *host_mem, const struct cu_api *api, i32 number,
                          struct gpu_card **out, struct error *err) {
    struct gpu_card *card = mem_alloc(host_mem, (i64)sizeof *card);
    if (!card) {
        return memory_refused(host_mem, err, (i64)sizeof *card);
    }
    memset(card, 0, sizeof *card);
    card->api = api;
    card->mem = host_mem;
    card->space = (u32)number + 1;
    card->host = gpu_host_open(api, host_mem);
    wf_status status =
        card->host ? find_chip(card, number, err) : memory_refused(host_mem, err, 256);
    if (status) {
        gpu_host_close(card->host);
        mem_free(host_mem, card, (i64)sizeof *card);
        return status;
    }
    mutex_init(&card->lock);
    cond_init(&card->changed);
    mutex_init(&card->heap.lock);
    gpu_codes_init(card);
    gpu_kept_init(card);
    gpu_moves_init(card);
    *out = card;
    return ERR_OK;
}

/* The card's lock is held, and its context current. */
static FALLIBLE worker_open(struct gpu_card *card, bool mover, struct gpu **out,
                            struct error *err) {
    i32 number = mover ? GPU_MOVER : 0;
    i32 end = mover ? GPU_WORKERS_MOST : GPU_STEP_WORKERS;
    while (number < end && card->workers[number]) {
        number++;
    }
    if (number == end) {
        FAIL(err, NO_DEVICE, "a card has at most %d workers", GPU_STEP_WORKERS);
    }
    struct gpu *g = mem_alloc(card->mem, (i64)sizeof *g);
    if (!g) {
        return memory_refused(card->mem, err, (i64)sizeof *g);
    }
    memset(g, 0, sizeof *g);
    g->card = card;
    g->api = card->api;
    g->number = number;
    card->workers[number] = *out = g;
    card->worker_count++;
    return open_streams(g, err);
}

/* Whether no other worker for statements is left. */
static bool is_last(struct gpu_card *card, const struct gpu *g) {
    bool last = true;
    mutex_lock(&card->lock);
    for (i32 w = 0; w < GPU_STEP_WORKERS; w++) {
        last = last && (!card->workers[w] || card->workers[w] == g);
    }
    mutex_unlock(&card->lock);
    return last;
}

/* The other workers go on undisturbed. */
void gpu_worker_close(struct gpu *g) {
    struct gpu_card *card = g->card;
    struct memory *mem = card->mem;
    if (g->number != GPU_MOVER && is_last(card, g)) {
        gpu_moves_stop(card);
    }
    mutex_lock(&card->lock);
    ASSERT(!g->inside);
    bool last = card->worker_count == 1;
    if (!last) {
        (void)card->api->ctx_set(card->ctx);
        close_streams(g);
        card->workers[g->number] = NULL;
        card->worker_count--;
    }
    mutex_unlock(&card->lock);
    if (last) {
        card_close(card);
    }
    free(g->events);
    mem_free(mem, g, (i64)sizeof *g);
}

struct gpu *gpu_worker_open(struct gpu_card *card, bool mover, char why[300]) {
    struct error err;
    error_reset(&err);
    struct gpu *g = NULL;
    mutex_lock(&card->lock);
    wf_status status = gpu_check(card, card->api->ctx_set(card->ctx), "ctx_set", &err);
    status = status ? status : worker_open(card, mover, &g, &err);
    mutex_unlock(&card->lock);
    if (status) {
        snprintf(why, 300, "%.290s", err.message);
    }
    if (status && g) {
        gpu_worker_close(g);
        g = NULL;
    }
    return g;
}

struct gpu *gpu_card_open(struct memory *host_mem, i64 budget_bytes, i32 number, char why[300]) {
    moment("the card is opened");
    const struct cu_api *api = cu_api_load(why);
    if (!api) {
        return NULL;
    }
    struct error err;
    error_reset(&err);
    struct gpu_card *card = NULL;
    struct gpu *g = NULL;
    wf_status status = card_open(host_mem, api, number, &card, &err);
    if (!status) {
        card->budget_asked = budget_bytes;
        moment("the driver is there");
        status = open_context(card, &err);
        moment("the context is there");
    }
    status = status ? status : worker_open(card, false, &g, &err);
    if (!status) {
        moment("the card is open");
        return g;
    }
    snprintf(why, 300, "%.290s", err.message);
    if (g) {
        gpu_worker_close(g);
    } else if (card) {
        card_close(card);
    }
    return NULL;
}
