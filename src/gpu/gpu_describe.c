/* gpu_describe.c: `warpfox devices`: what was found, how fast its memory and bus are, what cannot
 * be used and why. */
#include "gpu/gpu_int.h"

#include <stdio.h>

#include "gpu/gpu_text.h"

#define PROBE_BYTES (64LL << 20)

/* GB/s of one copy in each direction through pinned memory; 0 when it could not be measured. */
static void measure(struct gpu *g, f64 *out_up, f64 *out_down) {
    struct error err;
    error_reset(&err);
    i64 bytes = g->api->is_simt ? 1 << 20 : PROBE_BYTES;
    struct pinned host = {0};
    struct gpu_block *block = gpu_heap_alloc(g->card, bytes);
    void *events[3] = {NULL, NULL, NULL};
    *out_up = *out_down = 0;
    bool fine = block && gpu_pinned_reserve(g, &host, bytes, &err) == ERR_OK;
    for (i64 i = 0; fine && i < 3; i++) {
        fine = gpu_event(g, i, &events[i], &err) == ERR_OK;
    }
    const struct cu_api *api = g->api;
    for (i32 round = 0; fine && round < 5;
         round++) { /* the best counts: the bus takes a while to wake up */
        float up = 0;
        float down = 0;
        memset(host.host, round, (size_t)bytes);
        fine = !api->event_record(events[0], g->streams[0]) &&
               !api->copy_to_device(block->addr, host.host, (size_t)bytes, g->streams[0]) &&
               !api->event_record(events[1], g->streams[0]) &&
               !api->copy_to_host(host.host, block->addr, (size_t)bytes, g->streams[0]) &&
               !api->event_record(events[2], g->streams[0]) &&
               !api->stream_synchronize(g->streams[0]) &&
               !api->event_elapsed(&up, events[0], events[1]) &&
               !api->event_elapsed(&down, events[1], events[2]) && up > 0 && down > 0;
        if (fine) {
            *out_up = MAX_OF(*out_up, (f64)bytes / ((f64)up * 1e6));
            *out_down = MAX_OF(*out_down, (f64)bytes / ((f64)down * 1e6));
        }
    }
    gpu_pinned_free(g, &host);
    gpu_heap_free(g->card, block);
}

/* Times `rounds` of one kind of work on stream 0 and keeps the fastest; 0 when it failed. */
static f64 fastest_seconds(struct gpu *g, bool (*work)(struct gpu *g, void *arg), void *arg) {
    struct error err;
    error_reset(&err);
    const struct cu_api *api = g->api;
    void *events[2] = {NULL, NULL};
    f64 best = 0;
    for (i64 i = 0; i < 2; i++) {
        if (gpu_event(g, i, &events[i], &err)) {
            return 0;
        }
    }
    for (i32 round = 0; round < 4; round++) {
        float ms = 0;
        if (api->event_record(events[0], g->streams[0]) || !work(g, arg) ||
            api->event_record(events[1], g->streams[0]) || api->stream_synchronize(g->streams[0]) ||
            api->event_elapsed(&ms, events[0], events[1])) {
            return 0;
        }
        f64 seconds = (f64)ms * 1e-3;
        best = best == 0 || seconds < best ? seconds : best;
    }
    return best;
}

struct card_probe {
    struct gpu_block *a, *b;
    i64 bytes;
    void *function;
};

static bool probe_copy(struct gpu *g, void *arg) {
    struct card_probe *p = arg;
    return !g->api->copy_device(p->b->addr, p->a->addr, (size_t)p->bytes, g->streams[0]);
}

static bool probe_read(struct gpu *g, void *arg) {
    struct card_probe *p = arg;
    struct error err;
    error_reset(&err);
    struct kprobe args = {DEV(const u8 *, p->a->addr), p->bytes / 16, DEV(u32 *, p->b->addr)};
    return !gpu_launch(g, p->function, g->card->sm_count * 4LL, 512, 0, g->streams[0], &args, &err);
}

/* GB/s of a kernel that reads pinned host memory over the bus; 0 when not measured. */
static f64 measure_mapped(struct gpu *g) {
    struct error err;
    error_reset(&err);
    struct pinned host = {0};
    struct gpu_block out = {0};
    struct gpu_block *word = gpu_heap_alloc(g->card, 256);
    struct card_probe p = {.a = &out, .b = word, .bytes = g->api->is_simt ? 1 << 16 : 256LL << 20};
    f64 rate = 0;
    if (word && !gpu_pinned_reserve(g, &host, p.bytes, &err) &&
        !g->api->host_device_ptr(&out.addr, host.host, 0) &&
        !gpu_kernel(g->card, KERNEL_PROBE_READ, &p.function, &err)) {
        memset(host.host, 1, (size_t)p.bytes);
        f64 seconds = fastest_seconds(g, probe_read, &p);
        rate = seconds > 0 ? 1e-9 * (f64)p.bytes / seconds : 0;
    }
    gpu_pinned_free(g, &host);
    gpu_heap_free(g->card, word);
    return rate;
}

/* GB/s inside the card: reading, and copying (bytes read and written); 0 when not measured. */
static void measure_card(struct gpu *g, f64 *out_read, f64 *out_copy) {
    struct error err;
    error_reset(&err);
    struct card_probe p = {.bytes = g->api->is_simt ? 1 << 16 : 2LL << 30};
    *out_read = *out_copy = 0;
    p.a = gpu_heap_alloc(g->card, p.bytes);
    p.b = gpu_heap_alloc(g->card, p.bytes);
    if (p.a && p.b && !g->api->set_bytes(p.a->addr, 1, (size_t)p.bytes, g->streams[0]) &&
        !gpu_kernel(g->card, KERNEL_PROBE_READ, &p.function, &err)) {
        f64 copy = fastest_seconds(g, probe_copy, &p);
        f64 read = fastest_seconds(g, probe_read, &p);
        *out_copy = copy > 0 ? 2e-9 * (f64)p.bytes / copy : 0;
        *out_read = read > 0 ? 1e-9 * (f64)p.bytes / read : 0;
    }
    gpu_heap_free(g->card, p.a);
    gpu_heap_free(g->card, p.b);
}

static void describe_code(struct text *out, const struct gpu *g) {
    int major = 0;
    int minor = 0;
    if (g->api->has_rtc && !g->api->rtc_version(&major, &minor)) {
        text_print(out, "  NVRTC %d.%d from %s: woven kernels are compiled in the background\n",
                   major, minor, g->api->rtc_from);
    } else {
        text_print(
            out, "  no NVRTC (libnvrtc.so): woven kernels cannot be compiled; the virtual machine "
                 "runs everything\n");
    }
    const struct gpu_image *image = gpu_image_find(g->card, "vm_rows");
    if (image) {
        text_print(out, "  fixed kernels: compiled ahead of time for sm_%d%s\n", image->chip,
                   image->is_ptx ? ", as PTX" : "");
    } else {
        text_print(out, "  fixed kernels: compiled by NVRTC on first use, then cached on disk\n");
    }
}

void gpu_describe(struct text *out) {
    struct memory mem;
    char why[300] = "";
    memory_init(&mem, NULL, 0, "memory");
    struct device *dev = gpu_device_open(&mem, 0, 0, why);
    if (!dev) {
        text_print(out, "gpu: none (%s); everything runs on the CPU\n", why);
        return;
    }
    struct gpu *g = dev->self;
    int driver = 0;
    (void)g->api->driver_version(&driver);
    text_print(out, "gpu: %s, sm_%d, %d multiprocessors, %.1f GiB, budget %.1f GiB\n",
               g->card->chip_name, g->card->chip, g->card->sm_count,
               (f64)g->card->total_bytes / (1 << 30), (f64)g->card->heap.budget_bytes / (1 << 30));
    text_print(out, "  driver %d.%d from %s\n", driver / 1000, driver % 1000 / 10, g->api->from);
    describe_code(out, g);
    f64 up = 0;
    f64 down = 0;
    measure(g, &up, &down);
    if (up > 0) {
        text_print(out, "  host to device: %.1f GB/s, device to host: %.1f GB/s (pinned memory)\n",
                   up, down);
    } else {
        text_print(out, "  pinned copies could not be measured\n");
    }
    f64 mapped = measure_mapped(g);
    if (mapped > 0) {
        text_print(out, "  mapped read: %.1f GB/s (a kernel reading pinned host memory)\n", mapped);
    }
    f64 read = 0;
    f64 copy = 0;
    measure_card(g, &read, &copy);
    if (read > 0) {
        text_print(out, "  device read: %.1f GB/s, device copy: %.1f GB/s (read + write)\n", read,
                   copy);
    }
    dev->close(dev);
}
