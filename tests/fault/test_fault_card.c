/* test_fault_card.c: the n-th call of the driver fails within a primitive, with and without the
 * loss of the context: an error that says so or the right answer, and the right one after it. */
#include "../unit/test_prim_around.h"

/* On the card, with the n-th call failing: whether it was right; calls that were made. */
static bool attempt_failing(const char *name, primitive run, int v, const struct attempt *cpu,
                            unsigned long long n, int code, unsigned long long *calls) {
    struct attempt gpu = {.place = WF_ON_GPU, .around = 0xff, .may_fail = n > 0};
    unsigned long long before = simt_call_count();
    own_calls = 0;
    arm(n, code);
    run(&gpu, v);
    arm(0, 0);
    *calls = simt_call_count() - before - own_calls;
    check_around(&gpu, name);
    bool right = !gpu.failed;
    if (right && (gpu.len != cpu->len || memcmp(gpu.answer, cpu->answer, cpu->len) != 0)) {
        fail_msg("%s, variant %d, call %llu fails: another answer", name, v, n);
    }
    free(gpu.answer);
    return right;
}

/* Each call of the driver fails once: an error or the right answer, and the right one after. */
static void check_failing(const char *name, primitive run, int first, int variants, int step,
                          bool all) {
    for (int v = first; v < variants && simt_fail_at; v += step) {
        struct attempt cpu = {.place = WF_ON_CPU, .around = 0x11};
        run(&cpu, v);
        check_around(&cpu, name);
        unsigned long long calls = 0;
        for (unsigned long long n = 1; calls + 1 >= n; n += all ? 1 : 1 + n / 8) {
            unsigned long long after;
            if (attempt_failing(name, run, v, &cpu, n, n % 7 ? 0 : 700, &calls)) {
                continue;
            }
            calls = n + 1 + n / 8; /* perhaps */
            if (n % 3 && n % 7) { /* what was left behind is still there after the next one */
                continue;
            }
            struct attempt next = {.place = WF_ON_GPU, .may_fail = true};
            (void)lay(&next, "", 1); /* the loss of a context may show only now */
            check_around(&next, name);
            assert_true(attempt_failing(name, run, v, &cpu, 0, 0, &after));
        }
        free(cpu.answer);
    }
}

static void test_failing_calls(void **state) {
    (void)state;
    if (getenv("WARPFOX_TEST_GPU") || !prim_has_gpu) {
        skip(); /* a real driver does not fail on request */
    }
    void *library = dlopen(getenv("WARPFOX_CUDA"), RTLD_NOW | RTLD_NODELETE);
    assert_non_null(library);
    *(void **)&simt_fail_at = dlsym(library, "simtFailAt");
    *(void **)&simt_call_count = dlsym(library, "simtCallCount");
    assert_true(simt_fail_at && simt_call_count);
    rows = 300;
    more = 200;
    check_failing("scan", scans, 1, 2, 1, true);
    check_failing("segments", segments, 0, 3, 2, true);
    check_failing("compaction", compactions, 0, 4, 3, true);
    check_failing("gather", moves, 1, 2, 1, false);
    check_failing("split", splits, 1, 5, 2, true);
    check_failing("sort", sorts, 1, 6, 2, false);
    check_failing("search", searches, 0, 1, 1, true);
    check_failing("fold", folds, 0, 1, 1, true);
    check_failing("set", sets, 5, 6, 1, true);
    check_failing("join", joins, 2, 7, 2, false);
    check_failing("join of texts", text_joins, 1, 2, 1, true);
    check_failing("relation", relations, 2, 3, 1, false);
    check_failing("join of relations", relation_joins, 0, 2, 1, false);
    simt_fail_at = NULL;
}

int main(void) {
    setenv("SIMT_STRICT", "0", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failing_calls)};
    return cmocka_run_group_tests(tests, make_data, prim_teardown);
}
