/* test_prim_none.c: a device that has no primitives: each is refused by name. */
#include "test_cpu_fixture.h"

#include "prim/algebra.h"
#include "prim/match.h"
#include "prim/move.h"
#include "prim/prim.h"

static struct fix f;

static int open_all(void **state) {
    UNUSED(state);
    fix_init(&f, 3);
    fix_open(&f);
    return 0;
}

static int close_all(void **state) {
    UNUSED(state);
    fix_fini(&f);
    return 0;
}

/* A device that lists no bodies: every entry point says so. */
static void test_empty_device(void **state) {
    UNUSED(state);
    static const struct prim_class nothing = {.alloc = NULL};
    struct device none = {.name = "none", .prims = &nothing};
    struct prim_job job = {.x = &f.x, .dev = &none};
    const struct prim_array a = {.type = ELEM_U32};
    const struct rel_rows rows = {.type = ELEM_U32};
    const struct rel_join by_key = {.x = rows, .y = rows, .out = rows};
    const struct rel_reduce reduce = {.in = rows, .out = rows};
    struct prim_join join = {.algorithm = 0};
    i64 count = 0;
#define REFUSED(call)                                   \
    do {                                                \
        assert_int_equal((call), ERR_NOT_SUPPORTED);    \
        assert_non_null(strstr(f.err.message, "none")); \
        error_reset(&f.err);                            \
    } while (0)
    REFUSED(prim_rel_project(&job, rows, rows, NULL, &count));
    REFUSED(prim_rel_select(&job, rows, rows, NULL, false, &count));
    REFUSED(prim_rel_convert(&job, rows, rows, &count));
    REFUSED(prim_rel_product(&job, rows, rows, rows, NULL, &count));
    REFUSED(prim_rel_join(&job, &by_key, &count));
    REFUSED(prim_rel_reduce(&job, &reduce, &count));
    REFUSED(prim_map(&job, NULL));
    REFUSED(prim_series(&job, NULL));
    REFUSED(prim_reduce(&job, 0, a, a));
    REFUSED(prim_reduce_segments(&job, NULL));
    REFUSED(prim_scan_array(&job, 0, false, a, a));
    REFUSED(prim_compact(&job, NULL));
    REFUSED(prim_gather(&job, a, a, a, 1));
    REFUSED(prim_scatter(&job, a, a, a, 1));
    REFUSED(prim_histogram(&job, NULL));
    REFUSED(prim_split_array(&job, NULL, a, a, a, NULL));
    REFUSED(prim_words_array(&job, 0, a, a));
    REFUSED(prim_number_texts(&job, NULL, NULL, a, a));
    REFUSED(prim_sort_array(&job, NULL, a, a, NULL));
    REFUSED(prim_merge_array(&job, a, a, a, a, a, a));
    REFUSED(prim_search_array(&job, (struct prim_search){0}, a, a, a));
    REFUSED(prim_runs_array(&job, a, a, a, a, &count));
    REFUSED(prim_set_array(&job, (struct prim_set){0}, a, a, a, &count));
    REFUSED(prim_join_survey(&job, &join));
#undef REFUSED
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_empty_device)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
