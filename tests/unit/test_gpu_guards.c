/* test_gpu_guards.c: what only large tables, or an unkind order of events, would show: sums that
 * are carried from one chunk of a scan to the next, and streams that must wait for each other.
 *
 * The driver is simt with a seed: blocks, threads and streams run in an order of their own, so that
 * what is not ordered by a wait comes out of order. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "warpfox.h"

static wf_database *db;
static wf_connection *conn;
static const char *self = "";

static int setup(void **state) {
    (void)state;
    char path[2048];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s/../libcuda-simt.so", (int)(slash ? slash - self : 1),
             slash ? self : ".");
    setenv("WARPFOX_CUDA", path, 0);
    setenv("SIMT_SEED", "5", 0);
    setenv("SIMT_STRICT", "0", 0);
    const wf_option options[] = {{"threads", "2"}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    wf_disconnect(conn);
    wf_close(db);
    return 0;
}

static wf_result *query(const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result)) {
        char text[2000];
        wf_error_text(wf_connection_error(conn), sql, text, sizeof text);
        fail_msg("%s", text);
    }
    return result;
}

static void run(const char *sql) {
    wf_result_close(query(sql));
}

/* An answer of bigints as one number that knows rows and columns apart. */
static uint64_t digest(const char *sql, int32_t columns, int64_t *rows) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    uint64_t sum = 0;
    *rows = 0;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            uint64_t row = 0;
            for (int32_t c = 0; c < columns; c++) {
                row = (row ^ (uint64_t)wf_batch_int64(batch, c)[i]) * 0x9e3779b97f4a7c15ULL;
                row ^= row >> 29;
            }
            sum += row;
        }
        *rows += wf_batch_rows(batch);
    }
    assert_int_equal(wf_result_error(result)->status, WF_OK);
    wf_result_close(result);
    return sum;
}

static void same_on_both(const char *sql, int32_t columns) {
    int64_t rows[2];
    run("set device = cpu");
    uint64_t expected = digest(sql, columns, &rows[0]);
    run("set device = gpu");
    run("set gpu_code = vm");
    assert_true(digest(sql, columns, &rows[1]) == expected);
    assert_int_equal(rows[0], rows[1]);
}

/* An index over keys that repeat has more than 524,288 slots: 256 sums of 2,048 slots each are one
 * chunk of the scan that finds where runs begin, and what follows starts behind them. */
static void test_scan_carries(void **state) {
    (void)state;
    run("create table probe as select i % 150000 * 4 as k, i as w "
        "from generate_series(0::bigint, 320000) s(i)");
    run("create table built as select i / 2 * 4 as k, i as v "
        "from generate_series(0::bigint, 299999) s(i)");
    same_on_both("select count(*), sum(b.v)::bigint, sum(p.w % 1000 * b.v)::bigint "
                 "from probe p join built b on p.k = b.k",
                 3);
}

/* Batches over the bus take turns on several streams: arguments come first, and a slot's rows leave
 * before the next batch writes there. */
static void test_streams_wait(void **state) {
    (void)state;
    run("set tablet_rows = 2048"); /* a batch each */
    run("create table wide as select i as a, i * 7 % 1001 as b, i * i as c "
        "from generate_series(0::bigint, 59999) s(i)");
    run("set gpu_placement = streamed");
    for (int i = 0; i < 4; i++) {
        same_on_both("select a, b, c from wide where b % 3 <> 1", 3);
    }
    run("create table few as select a, b from wide where a < 9000");
    for (int i = 0; i < 60; i++) { /* it takes luck to get ahead of the table's first words */
        same_on_both("select b, count(*), sum(a)::bigint from few group by b", 3);
    }
    run("set gpu_placement = auto");
}

int main(int argc, char **argv) {
    self = argc > 0 ? argv[0] : "";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_carries),
        cmocka_unit_test(test_streams_wait),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
