/* test_prim_engine.c: the primitives on the engine's own indexes, on the CPU, against plain loops.
 */
#include "test_cpu_fixture.h"

#include "prim/algebra.h"
#include "prim/match.h"
#include "prim/move.h"
#include "prim/prim.h"

enum { ROWS = 50000 };

static struct fix f;

static int open_all(void **state) {
    UNUSED(state);
    fix_init(&f, 3);
    f.x = (struct exec){.program = &f.program, .arena = &f.arena, .mem = &f.mem, .err = &f.err};
    f.x.pool = f.pool;
    f.x.settings = &f.settings;
    f.x.cancel = &f.cancel;
    bool stale;
    f.open = true;
    return exec_open(&f.x, &stale) != ERR_OK;
}

static int close_all(void **state) {
    UNUSED(state);
    fix_fini(&f);
    return 0;
}

static void test_build_and_probe(void **state) {
    UNUSED(state);
    static i64 key[ROWS];
    static i64 ask[ROWS];
    static i64 row[ROWS];
    static const i64 steps[] = {1, 3, 41, 1000003, 0};
    for (i64 s = 0; s < COUNT_OF(steps); s++) {
        for (i32 repeats = 1; repeats <= 3; repeats += 2) {
            i64 distinct = ROWS / repeats;
            for (i64 i = 0; i < ROWS; i++) { /* the key's first row is i % distinct */
                i64 at = s % 2 ? i % distinct : i % distinct * 7919 % distinct;
                key[i] = steps[s] ? at * steps[s] : (i64)hash_u64((u64)at);
                ask[i] = i % 2 ? key[i] : key[i] + 1;
            }
            struct index *index = index_new(&f.x);
            assert_int_equal(prim_build(f.cpu, &f.x, index, key, NULL, ROWS), ERR_OK);
            assert_int_equal(prim_probe(f.cpu, &f.x, row, index, ask, ROWS), ERR_OK);
            for (i64 i = 0; i < ROWS; i++) {
                assert_true(i % 2 ? row[i] == i % distinct : row[i] == -1 || key[row[i]] == ask[i]);
            }
            index_release(&f.mem, index);
        }
    }
}

/* Few of the keys asked for are there: the filter before the table keeps looking. */
static void test_probe_misses(void **state) {
    UNUSED(state);
    static i64 key[ROWS];
    static i64 ask[4 * ROWS];
    static i64 row[4 * ROWS];
    for (i32 repeats = 1; repeats <= 2; repeats++) {
        for (i64 i = 0; i < ROWS; i++) {
            key[i] = (i64)hash_u64((u64)(i / repeats));
        }
        for (i64 i = 0; i < 4 * ROWS; i++) {
            ask[i] = i % 50 ? (i64)hash_u64((u64)(ROWS + i)) : key[i % ROWS];
        }
        struct index *index = index_new(&f.x);
        assert_int_equal(prim_build(f.cpu, &f.x, index, key, NULL, ROWS), ERR_OK);
        assert_int_equal(prim_probe(f.cpu, &f.x, row, index, ask, 4 * ROWS), ERR_OK);
        for (i64 i = 0; i < 4 * ROWS; i++) {
            assert_int_equal(row[i], i % 50 ? -1 : i % ROWS / repeats * repeats);
        }
        index_release(&f.mem, index);
    }
}

/* Around the rows of one task: each gets its answer, and nothing behind them is written. */
static void test_probe_sizes(void **state) {
    UNUSED(state);
    enum { TASK = 1 << 14 };
    static const i64 sizes[] = {1, 511, 512, 513, TASK - 1, TASK, TASK + 1, 2 * TASK + 1};
    static i64 key[2 * TASK + 1];
    static i64 row[2 * TASK + 2];
    for (i64 i = 0; i < COUNT_OF(key); i++) {
        key[i] = i * 3;
    }
    struct index *index = index_new(&f.x);
    assert_int_equal(prim_build(f.cpu, &f.x, index, key, NULL, COUNT_OF(key)), ERR_OK);
    for (i64 s = 0; s < COUNT_OF(sizes); s++) {
        memset(row, 0x7f, sizeof row);
        i64 untouched = row[0];
        assert_int_equal(prim_probe(f.cpu, &f.x, row, index, key, sizes[s]), ERR_OK);
        for (i64 i = 0; i < sizes[s]; i++) {
            assert_int_equal(row[i], i);
        }
        assert_int_equal(row[sizes[s]], untouched);
    }
    index_release(&f.mem, index);
}

static void test_refusal(void **state) {
    UNUSED(state);
    struct device none = {.name = "none"};
    assert_int_equal(prim_probe(&none, &f.x, NULL, NULL, NULL, 0), ERR_NOT_SUPPORTED);
    error_reset(&f.err);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_probe), cmocka_unit_test(test_probe_misses),
        cmocka_unit_test(test_probe_sizes), cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_empty_device)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
