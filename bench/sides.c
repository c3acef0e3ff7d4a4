/* sides.c: which devices take part, and how fast each copies.
 *
 * The time of a copy on a GPU is taken on the host and holds what starting it and waiting for it
 * takes: two sizes are measured, and the ceiling is what lies between them. */
#include "bench_sides.h"

#include <string.h>

enum { COPY_ROUNDS = 8 };

static bool two_blocks(wf_prim *prim, wf_place place, int64_t bytes, void *blocks[2]) {
    blocks[1] = NULL;
    if (wf_prim_alloc(prim, place, bytes, &blocks[0]) == WF_OK &&
        wf_prim_alloc(prim, place, bytes, &blocks[1]) == WF_OK) {
        return true;
    }
    wf_prim_free(prim, blocks[0]);
    return false;
}

static double copy_gbs(wf_prim *prim, wf_place place) {
    int64_t bytes = place == WF_ON_GPU ? 4LL << 30 : 1LL << 27;
    void *blocks[2];
    while (!two_blocks(prim, place, bytes, blocks)) {
        bytes /= 2;
        if (bytes < 1 << 20) {
            return 0;
        }
    }
    double best[2] = {1e30, 1e30}; /* all, half */
    for (int i = 0; i < 2 * COPY_ROUNDS; i++) {
        double start = bench_now();
        wf_status status = wf_prim_copy(prim, blocks[1], blocks[0], bytes >> (i & 1));
        double seconds = status == WF_OK ? bench_now() - start : 1e30;
        best[i & 1] = i > 1 && seconds < best[i & 1] ? seconds : best[i & 1];
    }
    wf_prim_free(prim, blocks[0]);
    wf_prim_free(prim, blocks[1]);
    double apart = best[0] - best[1];
    return place == WF_ON_GPU && apart > 0 ? 1e-9 * (double)bytes / apart
                                           : 2e-9 * (double)bytes / best[0];
}

bool bench_sides_open(wf_prim *prim, const struct bench_options *options,
                      struct bench_side sides[2]) {
    const char *device = bench_device(options);
    bool both = strcmp(device, "auto") == 0;
    void *probe = NULL;
    sides[0] = (struct bench_side){.used = both || strcmp(device, "cpu") == 0, .name = "cpu"};
    sides[1] = (struct bench_side){.place = WF_ON_GPU, .name = "gpu"};
    if (both || strcmp(device, "gpu") == 0) {
        sides[1].used = !options->no_gpu && wf_prim_alloc(prim, WF_ON_GPU, 1, &probe) == WF_OK;
        if (!sides[1].used) {
            fprintf(stderr, "bench: without a GPU: %s\n", wf_prim_error(prim)->message);
        }
        wf_prim_free(prim, probe);
    }
    for (int s = 0; s < 2; s++) {
        sides[s].copy_gbs = sides[s].used ? copy_gbs(prim, sides[s].place) : 0;
    }
    return sides[0].used || sides[1].used;
}
