/* test_gpu_guards.c: what only large tables, or an unkind order of events, would show: sums that
 * are carried from one chunk of a scan to the next, and streams that must wait for each other.
 *
 * The driver is simt with a seed: blocks, threads and streams run in an order of their own, so that
 * what is not ordered by a wait comes out of order. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

static int setup(void **state) {
    setenv("SIMT_SEED", "5", 0);
    return find_gpu(state);
}

/* An index over keys that repeat has more than 524,288 slots: 256 sums of 2,048 slots each are one
 * chunk of the scan that finds where runs begin, and what follows starts behind them. */
static void test_scan_carries(void **state) {
    (void)state;
    open_db("0", "vm");
    run("create table probe as select i % 150000 * 4 as k, i as w "
        "from generate_series(0::bigint, 320000) s(i)");
    run("create table built as select i / 2 * 4 as k, i as v "
        "from generate_series(0::bigint, 299999) s(i)");
    same_on_both("select count(*), sum(b.v)::bigint, sum(p.w % 1000 * b.v)::bigint "
                 "from probe p join built b on p.k = b.k",
                 3);
    close_db();
}

/* Batches over the bus take turns on several streams: arguments come first, and a slot's rows leave
 * before the next batch writes there. */
static void test_streams_wait(void **state) {
    (void)state;
    open_db("0", "vm");
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
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_carries),
        cmocka_unit_test(test_streams_wait),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
