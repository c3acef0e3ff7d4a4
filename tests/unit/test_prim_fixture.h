/* test_prim_fixture.h: what tests of the primitives share: both devices, sizes, distributions.
 *
 * The GPU is the simt driver beside the test's folder, unless WARPFOX_CUDA names another library or
 * WARPFOX_TEST_GPU=1 asks for the machine's own; without any the GPU's part is skipped, aloud.
 * PRIM_TEST_MAX raises the largest size. */
#ifndef WF_TEST_PRIM_FIXTURE_H
#define WF_TEST_PRIM_FIXTURE_H

#define _GNU_SOURCE
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_gpu_driver.h"
#include "warpfox_prim.h"

#define UNUSED_FN __attribute__((unused))

static wf_database *prim_db;
static wf_prim *prim;
static bool prim_has_gpu;

/* Sizes around the borders of warps, blocks and tiles; with sanitizers, one beyond 16 bits is
 * enough. */
static const int64_t prim_sizes[] = {0,     1,    31,   32,   33,   255,  256,   257,
                                     1023,  1024, 1025, 4095, 4096, 4097, 10000, 65537,
#ifndef WF_HARD
                                     100003
#endif
};
enum { PRIM_SIZES = sizeof prim_sizes / sizeof *prim_sizes };

static UNUSED_FN int64_t prim_test_max(int64_t usual) {
    const char *given = getenv("PRIM_TEST_MAX");
#ifdef WF_HARD /* sanitizers: the release build has the usual size */
    usual /= 8;
#endif
    return given ? (int64_t)strtod(given, NULL) : usual;
}

static UNUSED_FN void prim_start(const char *threads) {
    const wf_option options[] = {{"threads", threads}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, options, &prim_db, NULL), WF_OK);
    assert_int_equal(wf_prim_open(prim_db, &prim), WF_OK);
}

static UNUSED_FN int prim_setup(void **state) {
    (void)state;
    (void)gpu_name_driver();
    (void)mallopt(M_PERTURB, 0x5a); /* memory that nobody has set holds anything */
    prim_start("3");
    void *probe = NULL;
    prim_has_gpu = wf_prim_alloc(prim, WF_ON_GPU, 1, &probe) == WF_OK;
    if (!prim_has_gpu) {
        fprintf(stderr, "skipped on the GPU: %s\n", wf_prim_error(prim)->message);
    }
    wf_prim_free(prim, probe);
    return 0;
}

static UNUSED_FN int prim_teardown(void **state) {
    (void)state;
    wf_prim_close(prim);
    wf_close(prim_db);
    return 0;
}

/* Places to test: for (int place = 0; place < prim_places(); place++). */
static UNUSED_FN int prim_places(void) {
    return prim_has_gpu ? 2 : 1;
}

#define assert_prim_ok(call)                                            \
    do {                                                                \
        if ((call) != WF_OK) {                                          \
            fail_msg("%s: %s %s", #call, wf_prim_error(prim)->sqlstate, \
                     wf_prim_error(prim)->message);                     \
        }                                                               \
    } while (0)
#define assert_prim_error(call, state)                               \
    do {                                                             \
        assert_int_not_equal((call), WF_OK);                         \
        assert_string_equal(wf_prim_error(prim)->sqlstate, (state)); \
    } while (0)

static UNUSED_FN uint64_t prim_random(uint64_t *seed) { /* splitmix64 */
    uint64_t x = *seed += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* Keys in distributions of interest. */
enum prim_shape {
    SHAPE_RANDOM,   /* all bits */
    SHAPE_SMALL,    /* 0 .. 255 */
    SHAPE_SORTED,   /* ascending, all different */
    SHAPE_REVERSED, /* descending */
    SHAPE_CONSTANT,
    SHAPE_ZIPF,       /* rank r with weight 1 / r, about */
    SHAPE_PARETO,     /* alpha = 1.16: a fifth holds four fifths */
    SHAPE_DUPLICATES, /* half of the rows repeat a few values */
    SHAPE_COUNT
};
static UNUSED_FN uint64_t prim_key(enum prim_shape shape, int64_t i, int64_t n, uint64_t *seed) {
    uint64_t r = prim_random(seed);
    double u = ((double)(r >> 11) + 0.5) / 9007199254740992.0;
    switch (shape) {
    case SHAPE_SMALL:
        return r & 255;
    case SHAPE_SORTED:
        return (uint64_t)i;
    case SHAPE_REVERSED:
        return (uint64_t)(n - i);
    case SHAPE_CONSTANT:
        return 77;
    case SHAPE_ZIPF:
        return (uint64_t)exp(u * log((double)n + 1));
    case SHAPE_PARETO:
        return (uint64_t)fmin(pow(u, -1 / 1.16), 4e9);
    case SHAPE_DUPLICATES:
        return r & 1 ? r >> 60 : r >> 1;
    default:
        return r;
    }
}

static UNUSED_FN wf_array prim_array(wf_elem type, void *data, int64_t count) {
    return (wf_array){.type = type, .data = data, .count = count};
}

#endif
