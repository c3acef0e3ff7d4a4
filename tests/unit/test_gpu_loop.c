/* test_gpu_loop.c: rounds of a recursion that are queued on the card before they are known to be
 * needed: the same rows and errors as a step at a time, fewer waits; too little room, limits, faults
 * and time that runs out in the midst of them. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <string.h>

static const struct {
    const char *sql;
    int32_t columns;
} queries[] = {
    /* many rounds of few rows */
    {"with recursive r(a) as (select 0::bigint union select b from r join g on g.a = r.a) "
     "select a from r",
     1},
    /* rows multiply: there is too little room again and again */
    {"with recursive c(a, b) as (select a, b from e union select c.a, e.b from c join e on c.b = e.a) "
     "select a, b from c",
     2},
    /* duplicates are kept */
    {"with recursive c(a, n) as (select a, 0::bigint from e where a < 9 union all "
     "select e.b, n + 1 from c join e on c.a = e.a where n < 6) select a, n from c",
     2},
    /* two rules, of a delta each; columns that may be NULL */
    {"with recursive c(a, b) as (select a, nullif(b, 3) from e where a < 40 union "
     "(with w as (select a, b from c) select w.a, e.b from w join e on w.b = e.a union all "
     "select e.a, w.b from w join e on e.b = w.a where e.a < 30)) select a, b from c",
     2},
    /* enough rows, whichever */
    {"select count(*) from (with recursive r(a) as (select 0::bigint union all select a + 1 from r) "
     "select a from r limit 77) s",
     1},
    /* rules of two relations share the rows of a body, which each round makes anew: more and fewer */
    {"select x, y from logiql('p(x, y), q(y, x) <- e(x, y), x < 20. p(x, z), q(x, w) <- p(x, y), e(y, z), g(z, w). "
     "p(x, y) <- q(x, y), e(_, y), x < 20. _(x, y) <- p(x, y) ; q(x, y).') as t(x, y)",
     2},
    /* indexes of the recursion's rows grow inside the rounds: of few keys, */
    {"select x, y from logiql('t(x, y) <- e(x, y). t(x, z) <- t(x, y), t(y, z). "
     "_(x, y) <- t(x, y).') as t(x, y)",
     2},
    /* of keys that are far apart, by many rounds, */
    {"select x, y from logiql('t(x * 1000000007, y * 1000000007) <- g(x, y), x < 60. "
     "t(x, z) <- t(x, y), t(y, z), x < y. _(x, y) <- t(x, y).') as t(x, y)",
     2},
    /* and of two relations */
    {"select x, y from logiql('p(x, y) <- e(x, y), x < 30. q(x, z) <- p(x, y), p(y, z), x < 20. "
     "p(x, z) <- q(x, y), q(y, z), z < 40. _(x, y) <- p(x, y) ; q(x, y).') as t(x, y)",
     2},
    /* a shared body that looks into such an index */
    {"select x, y from logiql('p(x, y), q(y, x) <- e(x, y), x < 30. p(x, z), q(x, y) <- p(x, y), q(y, z), x < 20. "
     "p(x, y) <- q(x, y), e(y, _). _(x, y) <- p(x, y) ; q(x, y).') as t(x, y)",
     2},
};
enum { SHARES = 5 }; /* the one whose rules share a body */
enum { GROWS = 6 }; /* the first of those whose indexes grow */
enum { QUERIES = sizeof queries / sizeof *queries };

static void open_graphs(const char *code) {
    open_db("0", code);
    run("set device = cpu");
    run("create table g as select i a, i + 1 b from generate_series(0::bigint, 99) s(i)");
    run("create table e as select i * i % 61 a, i * 7919 % 61 b from generate_series(0::bigint, 150) s(i)");
}

static int64_t waits_of(const char *sql) {
    wf_result *result = query(sql);
    int64_t waits = wf_result_metric(result, "waits");
    wf_result_close(result);
    return waits;
}

static void test_rows(void **state) {
    (void)state;
    static const char *const rounds[] = {"0", "1", "16"};
    open_graphs("vm");
    for (int i = 0; i < QUERIES; i++) {
        int64_t rows, expected_rows;
        int64_t waits[3];
        run("set device = cpu");
        uint64_t expected = digest(queries[i].sql, queries[i].columns, &expected_rows);
        run("set device = gpu");
        for (int k = 0; k < 3; k++) {
            assert_int_equal(wf_set(conn, "gpu_rounds", rounds[k]), WF_OK);
            assert_true(digest(queries[i].sql, queries[i].columns, &rows) == expected);
            assert_int_equal(rows, expected_rows);
            waits[k] = waits_of(queries[i].sql);
        }
        assert_true(waits[2] <= waits[1] || i > GROWS);
        if (i == 0) { /* a hundred rounds */
            assert_true(waits[0] > 200);
            assert_true(waits[2] < 40);
        }
        assert_true(i != SHARES || waits[2] < waits[0]);
    }
    close_db();
}

/* Woven kernels read their range, too. */
static void test_woven(void **state) {
    (void)state;
    int64_t rows, expected_rows;
    open_graphs("woven");
    for (int i = 1; i < QUERIES; i += SHARES - 1) {
        run("set device = cpu");
        uint64_t expected = digest(queries[i].sql, 2, &expected_rows);
        run("set device = gpu");
        assert_true(digest(queries[i].sql, 2, &rows) == expected);
        assert_int_equal(rows, expected_rows);
    }
    close_db();
}

/* The error of a round that was queued is that of the round alone. */
static void test_errors(void **state) {
    (void)state;
    static const char sql[] =
        "with recursive r(a) as (select 0::bigint union select b + 0 * (7 / (b - 31)) from r join g "
        "on g.a = r.a) select count(*) from r";
    char texts[2][2000];
    open_graphs("vm");
    run("set device = gpu");
    for (int k = 0; k < 2; k++) {
        wf_result *result = NULL;
        assert_int_equal(wf_set(conn, "gpu_rounds", k ? "16" : "0"), WF_OK);
        assert_int_not_equal(wf_query(conn, sql, &result), WF_OK);
        assert_string_equal(wf_connection_error(conn)->sqlstate, "22012");
        wf_error_text(wf_connection_error(conn), sql, texts[k], sizeof texts[k]);
        wf_result_close(result);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_int_equal(number("select count(*) from g"), 100);
    close_db();
}

/* Rounds without an end are left when the time is over. */
static void test_time(void **state) {
    (void)state;
    wf_result *result = NULL;
    open_graphs("vm");
    run("set device = gpu");
    run("set statement_timeout = 200");
    assert_int_not_equal(
        wf_query(conn,
                 "with recursive r(a) as (select 0::bigint union all select 1 - a from r) "
                 "select count(*) from r",
                 &result),
        WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "57014");
    wf_result_close(result);
    run("set statement_timeout = 0");
    assert_int_equal(number("select count(*) from g"), 100);
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_woven),
                                       cmocka_unit_test(test_errors), cmocka_unit_test(test_time)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
