/* gpu_rates.c: how fast a card is at most: its memory, places all over it, the bus in both
 * directions, a launch.
 *
 * Costs and the floors of EXPLAIN ANALYZE are made from these. They are measured at first need, in a
 * few milliseconds, and kept for the process. Every figure is the best of a few rounds: memory and
 * bus take a while to wake up. A figure that could not be measured is 0. */
#include "gpu/gpu_int.h"

enum { ROUNDS = 4, KNOWN_CARDS = 16, READ_THREADS = 512 };
#define BUS_BYTES (8LL << 20)
#define CARD_BYTES (256LL << 20) /* well above the second-level cache */
#define CARD_LEAST_BYTES (1LL << 20)
#define SIMT_BYTES (1LL << 16)
#define SECTOR_BYTES 32

struct gauge {
    u64 from, to; /* addresses on the card */
    u8 *host;
    i64 bytes;
    void *function; /* that reads */
};

static bool copy_up(struct gpu *g, const struct gauge *p) {
    return !g->api->copy_to_device(p->to, p->host, (size_t)p->bytes, g->streams[0]);
}

static bool copy_down(struct gpu *g, const struct gauge *p) {
    return !g->api->copy_to_host(p->host, p->from, (size_t)p->bytes, g->streams[0]);
}

static bool copy_card(struct gpu *g, const struct gauge *p) {
    return !g->api->copy_device(p->to, p->from, (size_t)p->bytes, g->streams[0]);
}

static bool read_card(struct gpu *g, const struct gauge *p) {
    struct error err;
    error_reset(&err);
    struct kprobe args = {DEV(const u8 *, p->from), p->bytes / 16, DEV(u32 *, p->to)};
    i64 blocks = MIN_OF(p->bytes / 16 / READ_THREADS + 1, g->card->sm_count * 4LL);
    return !gpu_launch(g, p->function, (struct gpu_grid){blocks, READ_THREADS, 0}, g->streams[0],
                       &args, &err);
}

/* Bytes per nanosecond by the card's own clock; 0 when something failed. */
static f64 fastest(struct gpu *g, bool (*work)(struct gpu *, const struct gauge *),
                   const struct gauge *p) {
    struct error err;
    error_reset(&err);
    const struct cu_api *api = g->api;
    void *events[2] = {NULL, NULL};
    f64 best = 0;
    if (gpu_event(g, 0, &events[0], &err) || gpu_event(g, 1, &events[1], &err)) {
        return 0;
    }
    for (i32 round = 0; round < ROUNDS; round++) {
        float ms = 0;
        if (api->event_record(events[0], g->streams[0]) || !work(g, p) ||
            api->event_record(events[1], g->streams[0]) || api->stream_synchronize(g->streams[0]) ||
            api->event_elapsed(&ms, events[0], events[1])) {
            return 0;
        }
        best = ms > 0 ? MAX_OF(best, (f64)p->bytes / ((f64)ms * 1e6)) : best;
    }
    return best;
}

void gpu_measure_bus(struct gpu *g, i64 bytes, f64 *out_up, f64 *out_down) {
    struct error err;
    error_reset(&err);
    struct pinned host = {0};
    struct gpu_block *block = gpu_heap_alloc(g->card, bytes);
    *out_up = *out_down = 0;
    if (block && !gpu_pinned_reserve(g, &host, bytes, &err)) {
        struct gauge p = {block->addr, block->addr, host.host, bytes, NULL};
        memset(host.host, 1, (size_t)bytes);
        *out_up = fastest(g, copy_up, &p);
        *out_down = fastest(g, copy_down, &p);
    }
    gpu_pinned_free(g, &host);
    gpu_heap_free(g->card, block);
}

f64 gpu_measure_mapped(struct gpu *g, i64 bytes) {
    struct error err;
    error_reset(&err);
    struct pinned host = {0};
    struct gpu_block *word = gpu_heap_alloc(g->card, 256);
    struct gauge p = {.bytes = bytes};
    f64 rate = 0;
    if (word && !gpu_pinned_reserve(g, &host, bytes, &err) &&
        !gpu_kernel(g->card, KERNEL_PROBE_READ, NULL, &p.function, &err)) {
        memset(host.host, 1, (size_t)bytes);
        p.from = host.addr;
        p.to = word->addr;
        rate = fastest(g, read_card, &p);
    }
    gpu_pinned_free(g, &host);
    gpu_heap_free(g->card, word);
    return rate;
}

void gpu_measure_card(struct gpu *g, i64 bytes, struct card_rates *out) {
    struct error err;
    error_reset(&err);
    struct gpu_block *block = gpu_heap_alloc(g->card, bytes + GPU_ALIGN);
    *out = (struct card_rates){0};
    if (block && !g->api->set_bytes(block->addr, 1, (size_t)bytes, g->streams[0])) {
        struct gauge halves = {block->addr, block->addr + (u64)bytes / 2, NULL, bytes / 2, NULL};
        struct gauge all = {block->addr, block->addr + (u64)bytes, NULL, bytes, NULL};
        out->copy = 2 * fastest(g, copy_card, &halves);
        if (!gpu_kernel(g->card, KERNEL_PROBE_READ, NULL, &all.function, &err)) {
            out->read = fastest(g, read_card, &all);
        }
        if (!gpu_kernel(g->card, KERNEL_PROBE_PLACES, NULL, &all.function, &err)) {
            out->places = fastest(g, read_card, &all) / SECTOR_BYTES;
        }
    }
    (void)g->api->stream_synchronize(g->streams[0]);
    gpu_heap_free(g->card, block);
}

/* What the host waits for a kernel that does nothing. */
static f64 launch_ns(struct gpu *g) {
    struct error err;
    error_reset(&err);
    struct gpu_block *word = gpu_heap_alloc(g->card, 256);
    struct gauge p = {.bytes = 16};
    i64 best = I64_MAX;
    bool fine = word && !gpu_kernel(g->card, KERNEL_PROBE_READ, NULL, &p.function, &err);
    p.from = p.to = word ? word->addr : 0;
    for (i32 round = 0; fine && round < ROUNDS; round++) {
        i64 start = clock_ns();
        fine = read_card(g, &p) && !g->api->stream_synchronize(g->streams[0]);
        best = MIN_OF(best, MAX_OF(clock_ns() - start, 1));
    }
    gpu_heap_free(g->card, word);
    return fine ? (f64)best : 0;
}

static void measure(struct gpu *g, struct device_rates *out) {
    bool simt = g->api->is_simt;
    struct card_rates card = {0};
    i64 least = simt ? SIMT_BYTES : CARD_LEAST_BYTES;
    for (i64 bytes = simt ? SIMT_BYTES : CARD_BYTES; bytes >= least && card.read == 0; bytes /= 2) {
        gpu_measure_card(g, bytes, &card); /* as much as there is room for */
    }
    /* What kernels do is what steps are held against. */
    out->bytes_per_ns = card.read > 0 ? card.read : card.copy;
    out->probes_per_ns = card.places;
    gpu_measure_bus(g, simt ? SIMT_BYTES : BUS_BYTES, &out->bus_bytes_per_ns,
                    &out->bus_down_bytes_per_ns);
    out->launch_ns = launch_ns(g);
}

/* By the card's number. */
static struct {
    _Atomic i32 state; /* 0 = not measured, 1 = being kept, 2 = there */
    struct device_rates rates;
} known[KNOWN_CARDS];

void gpu_rates_tell(i32 number, const struct device_rates *rates) {
    ASSERT(number < KNOWN_CARDS);
    known[number].rates = *rates;
    atomic_store(&known[number].state, 2);
}

void gpu_rates(struct device *dev, struct exec *x, struct device_rates *out) {
    struct gpu *g = dev->self;
    i32 number = (i32)g->card->space - 1;
    bool kept = number < KNOWN_CARDS;
    UNUSED(x);
    *out = (struct device_rates){0};
    if (kept && atomic_load(&known[number].state) == 2) {
        *out = known[number].rates;
        return;
    }
    struct error err;
    error_reset(&err);
    if (gpu_enter(g, &err)) {
        return;
    }
    if (kept && atomic_load(&known[number].state) == 2) { /* while this one waited */
        *out = known[number].rates;
        gpu_leave(g);
        return;
    }
    measure(g, out);
    gpu_leave(g);
    i32 none = 0;
    if (kept && out->bytes_per_ns > 0 &&
        atomic_compare_exchange_strong(&known[number].state, &none, 1)) {
        known[number].rates = *out;
        atomic_store(&known[number].state, 2);
    }
}
