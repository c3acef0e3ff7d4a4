/* test_gpu_waits.c: how often the host waits for the card when a statement runs again: once a step at
 * most, sorts of many rows apart; keys that a build met twice are expected twice. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <string.h>

static const char *const queries[] = {
    "select count(*), sum(a)::bigint from t where a > 700 and g < 9",
    "select g, count(*), max(a) from t where a > 20 group by g order by 2 desc",
    "select k, sum(a)::bigint from t group by k having sum(a) > 900",
    "select t.a, u.v from t join u on t.k = u.k where u.v < 400",
    "select count(*), sum(t.a + w.a)::bigint from t join t w on t.g = w.k where w.a < 60",
    "select count(*) from t where k in (select k from u where v % 5 = 1)",
    "select count(*) from t where not exists (select 1 from u where u.k = t.a and u.v > 60)",
    "select a, rank() over (partition by g order by k) from t where a < 90",
};

/* Steps that run on the card. */
static int64_t card_steps(const char *sql) {
    char text[400];
    int64_t steps = 0;
    snprintf(text, sizeof text, "explain (steps) %s", sql);
    wf_result *result = query(text);
    const wf_batch *batch = NULL;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char device[100];
            wf_value_text(batch, 1, i, device, sizeof device);
            steps += !strncmp(device, "gpu", 3);
        }
    }
    wf_result_close(result);
    return steps;
}

static int64_t waits_of(const char *sql) {
    wf_result *result = query(sql);
    int64_t waits = wf_result_metric(result, "waits");
    wf_result_close(result);
    return waits;
}

static void test_steps(void **state) {
    (void)state;
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i * 7 % 101 k, i % 13 g from generate_series(0::bigint, 999) s(i)");
    run("create table u as select i k, i * 3 v from generate_series(0::bigint, 100) s(i)");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        int64_t rows, expected_rows;
        run("set device = cpu");
        uint64_t expected = digest(queries[i], 1, &expected_rows);
        run("set device = gpu");
        for (int k = 0; k < 3; k++) {
            assert_true(digest(queries[i], 1, &rows) == expected);
            assert_int_equal(rows, expected_rows);
        }
        int64_t waits = waits_of(queries[i]);
#ifdef WF_HARD /* few rows are sorted like many, whose bounds are waited for */
        waits -= strstr(queries[i], "order by") != NULL;
#endif
        if (waits > card_steps(queries[i]) + 1) { /* and once for its rows */
            fail_msg("%s: %lld waits", queries[i], (long long)waits);
        }
    }
    close_db();
}

/* Keys that were repeated are not any more, and are again. */
static void test_repeats(void **state) {
    (void)state;
    static const char sql[] = "select count(*), sum(t.a * w.v)::bigint from t join u w on t.g = w.k";
    static const char *const changes[] = {"delete from u where v % 2 = 1",
                                          "insert into u select i / 3, i from "
                                          "generate_series(0::bigint, 40) s(i)",
                                          "delete from u where v % 3 > 0", "delete from u"};
    open_db("0", "vm");
    run("set device = cpu");
    run("create table t as select i a, i % 13 g from generate_series(0::bigint, 499) s(i)");
    run("create table u as select i / 2 k, i v from generate_series(0::bigint, 30) s(i)");
    run("create table one as select i k, i v from generate_series(0::bigint, 30) s(i)");
    for (int c = 0; c <= 4; c++) {
        int64_t rows;
        run("set device = cpu");
        uint64_t expected = digest(sql, 2, &rows);
        run("set device = gpu");
        for (int k = 0; k < 3; k++) {
            assert_true(digest(sql, 2, &rows) == expected);
        }
        if (c == 0) { /* as many waits as for keys of which each is there once */
            static const char once[] =
                "select count(*), sum(t.a * w.v)::bigint from t join one w on t.g = w.k";
            run(once);
            assert_int_equal(waits_of(sql), waits_of(once));
        }
        run(c < 4 ? changes[c] : "select 1");
    }
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_repeats)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
