/* test_gpu_rates.c: how fast a card is: measured in all ways that there are, once for the process,
 * told by EXPLAIN ANALYZE and `warpfox devices`; what cannot be measured is 0, and costs go on. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include "gpu/gpu_int.h"

static struct memory mem;
static struct device *gpu;

static void open_gpu(i64 budget) {
    char why[300] = "";
    if (!has_gpu) {
        skip();
    }
    memory_init(&mem, NULL, 0, "memory");
    gpu = gpu_device_open(&mem, budget, 0, why);
    assert_non_null(gpu);
}

static void close_gpu(void) {
    gpu->close(gpu);
    assert_int_equal(atomic_load(&mem.used_bytes), 0);
}

static void test_measures(void **state) {
    (void)state;
    struct error err;
    f64 up = 0;
    f64 down = 0;
    struct card_rates card;
    error_reset(&err);
    open_gpu(0);
    struct gpu *g = gpu->self;
    assert_int_equal(gpu_enter(g, &err), ERR_OK);
    gpu_measure_bus(g, 1 << 16, &up, &down);
    gpu_measure_card(g, 1 << 16, &card);
    f64 mapped = gpu_measure_mapped(g, 1 << 16);
    assert_true(up > 0 && down > 0 && mapped > 0);
    assert_true(card.read > 0 && card.copy > 0 && card.places > 0);
    i64 used = g->card->heap.used_bytes;
    gpu_measure_card(g, g->card->heap.budget_bytes * 2, &card); /* no room */
    gpu_measure_bus(g, g->card->heap.budget_bytes * 2, &up, &down);
    assert_true(up == 0 && down == 0 && card.read == 0 && card.copy == 0 && card.places == 0);
    assert_int_equal(g->card->heap.used_bytes, used);
    gpu_leave(g);
    close_gpu();
}

/* The second time, and on another card object of the same number, nothing is measured. */
static void test_once(void **state) {
    (void)state;
    struct device_rates first;
    struct device_rates second;
    open_gpu(0);
    gpu->rates(gpu, NULL, &first);
    assert_true(first.bytes_per_ns > 0 && first.bus_bytes_per_ns > 0 &&
                first.bus_down_bytes_per_ns > 0 && first.launch_ns > 0 &&
                first.probes_per_ns > 0);
    close_gpu();
    open_gpu(0);
    struct gpu *g = gpu->self;
    gpu->rates(gpu, NULL, &second);
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(g->card->run_count, 0);
    close_gpu();
}

static void test_describe(void **state) {
    (void)state;
    struct arena arena;
    struct text text;
    if (!has_gpu) {
        skip();
    }
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    text_init(&text, &arena);
    gpu_describe(&text);
    assert_non_null(strstr(text.ptr, "host to device: "));
    assert_non_null(strstr(text.ptr, "mapped read: "));
    assert_non_null(strstr(text.ptr, "device read: "));
    arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_measures), cmocka_unit_test(test_once),
                                       cmocka_unit_test(test_describe)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
