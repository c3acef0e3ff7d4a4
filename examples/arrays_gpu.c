/* arrays_gpu.c: primitives on arrays that stay on the GPU, with workspace of the caller.
 *
 * Build: cc -Iinclude examples/arrays_gpu.c -Lbuild -lwarpfox -o arrays_gpu. A column of amounts is
 * copied to the card once; a map, a running total, a sum and a histogram work on it there, and only
 * the few figures come back. Workspace is asked for and allocated ahead, so that nothing is
 * allocated while the work runs. Without a GPU it says why and returns 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "warpfox_prim.h"

enum { AMOUNTS = 200000, BINS = 8 };

static wf_prim *prim;

static void must(wf_status status, const char *what) {
    if (status) {
        fprintf(stderr, "%s: %s %s\n", what, wf_prim_error(prim)->sqlstate,
                wf_prim_error(prim)->message);
        exit(1);
    }
}

static wf_array on_gpu(wf_elem type, int64_t count, int64_t bytes) {
    wf_array a = {.type = type, .count = count};
    must(wf_prim_alloc(prim, WF_ON_GPU, bytes, &a.data), "memory of the card");
    return a;
}

static int64_t amount(int64_t i) {
    return i * 7919 % 1000;
}

int main(void) {
    wf_database *db;
    if (wf_open(NULL, NULL, &db, NULL) || wf_prim_open(db, &prim)) {
        fprintf(stderr, "the library cannot be opened\n");
        return 1;
    }
    void *probe = NULL;
    if (wf_prim_alloc(prim, WF_ON_GPU, 1, &probe)) {
        printf("without a GPU: %s\n", wf_prim_error(prim)->message);
        wf_prim_close(prim);
        wf_close(db);
        return 0;
    }
    wf_array amounts = on_gpu(WF_ELEM_I64, AMOUNTS, AMOUNTS * 8);
    wf_array totals = on_gpu(WF_ELEM_I64, AMOUNTS, AMOUNTS * 8);
    wf_array sum = on_gpu(WF_ELEM_I64, 1, 8);
    wf_array bins = on_gpu(WF_ELEM_U64, BINS, BINS * 8);
    int64_t *host = malloc(AMOUNTS * 8);
    for (int64_t i = 0; host && i < AMOUNTS; i++) {
        host[i] = amount(i);
    }
    must(wf_prim_copy(prim, amounts.data, host, AMOUNTS * 8), "copy");

    /* amount * 2, checked: an overflow would be error 22003 and name the element. */
    int64_t two = 2;
    wf_array operands[2] = {amounts, {.type = WF_ELEM_I64, .data = &two, .count = 1}};
    must(wf_prim_map(prim, WF_ON_GPU, "MULX_I64", amounts, operands, 2, NULL), "map");

    /* How much workspace would the scan take? Give it exactly that. */
    wf_work work = {NULL, 0, 0};
    must(wf_prim_scan(prim, WF_ON_GPU, WF_FOLD_ADD, 1, totals, amounts, &work), "workspace");
    work.bytes = work.needed;
    must(wf_prim_alloc(prim, WF_ON_GPU, work.bytes, &work.data), "workspace");
    must(wf_prim_scan(prim, WF_ON_GPU, WF_FOLD_ADD, 1, totals, amounts, &work), "scan");
    printf("running total in %.3f ms on the card, %" PRId64 " bytes of workspace\n",
           1e-6 * (double)wf_prim_metric(prim, "device_ns"), work.bytes);

    must(wf_prim_reduce(prim, WF_ON_GPU, WF_FOLD_ADD, sum, amounts, NULL), "reduce");
    must(wf_prim_histogram(prim, WF_ON_GPU, bins, amounts, 0, 250, NULL), "histogram");

    int64_t last = 0;
    int64_t all = 0;
    uint64_t counts[BINS];
    must(wf_prim_copy(prim, &last, (int64_t *)totals.data + AMOUNTS - 1, 8), "copy");
    must(wf_prim_copy(prim, &all, sum.data, 8), "copy");
    must(wf_prim_copy(prim, counts, bins.data, sizeof counts), "copy");
    int64_t want = 0;
    uint64_t counted = 0;
    for (int64_t i = 0; i < AMOUNTS; i++) {
        want += 2 * amount(i);
    }
    for (int b = 0; b < BINS; b++) {
        printf("%4d to %4d: %" PRIu64 "\n", b * 250, b * 250 + 249, counts[b]);
        counted += counts[b];
    }
    printf("sum %" PRId64 ", last total %" PRId64 "\n", all, last);
    free(host);
    wf_prim_close(prim); /* frees the arrays */
    wf_close(db);
    return !(all == want && last == want && counted == AMOUNTS);
}
