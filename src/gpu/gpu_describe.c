/* gpu_describe.c: `warpfox devices`: what was found, how fast its memory and bus are, what cannot
 * be used and why. */
#include "gpu/gpu_int.h"

#include <stdio.h>

#include "gpu/gpu_text.h"

/* Enough that starting does not show. */
#define BUS_BYTES (64LL << 20)
#define MAPPED_BYTES (256LL << 20)
#define CARD_BYTES (2LL << 30)
#define SIMT_BYTES (1LL << 16)

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
    if (image && !image->is_ptx) {
        text_print(out, "  fixed kernels: compiled ahead of time for sm_%d\n", image->chip);
    } else if (image) {
        text_print(out, "  fixed kernels: compiled ahead of time for sm_%d, as PTX\n", image->chip);
    } else {
        text_print(out, "  fixed kernels: compiled by NVRTC on first use, then cached on disk\n");
    }
    if (!g->card->codes.has_machine) {
        text_print(out, "  no virtual machine for this chip: the first run of a step waits for a "
                        "kernel that is compiled quickly\n");
    }
}

static void describe_speed(struct text *out, struct gpu *g) {
    bool simt = g->api->is_simt;
    f64 up = 0;
    f64 down = 0;
    gpu_measure_bus(g, simt ? SIMT_BYTES : BUS_BYTES, &up, &down);
    if (up > 0) {
        text_print(out, "  host to device: %.1f GB/s, device to host: %.1f GB/s (pinned memory)\n",
                   up, down);
    } else {
        text_print(out, "  pinned copies could not be measured\n");
    }
    f64 mapped = gpu_measure_mapped(g, simt ? SIMT_BYTES : MAPPED_BYTES);
    if (mapped > 0) {
        text_print(out, "  mapped read: %.1f GB/s (a kernel reading pinned host memory)\n", mapped);
    }
    struct card_rates card;
    gpu_measure_card(g, simt ? SIMT_BYTES : CARD_BYTES, &card);
    if (card.read > 0) {
        text_print(out, "  device read: %.1f GB/s, device copy: %.1f GB/s (read + write)\n",
                   card.read, card.copy);
    }
    if (card.places > 0) {
        text_print(out, "  places all over the memory: %.1f a nanosecond\n", card.places);
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
    struct error err;
    error_reset(&err);
    if (gpu_enter(g, &err)) {
        text_print(out, "  nothing could be measured: %s\n", err.message);
    } else {
        describe_speed(out, g);
        gpu_leave(g);
    }
    dev->close(dev);
}
