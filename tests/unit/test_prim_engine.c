/* test_prim_engine.c: the primitives on the engine's own indexes, on the CPU, against plain loops.
 */
#include "test_cpu_fixture.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_and_probe), cmocka_unit_test(test_probe_misses),
        cmocka_unit_test(test_probe_sizes), cmocka_unit_test(test_refusal)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
