/* test_gpu_boxes.c: cliques of graphs that the card has no room for: counted in boxes, the answers are
 * those of the CPU's joins, for every form of a graph and whatever room there is. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <string.h>

enum { SIZES = 3, GRAPHS = 3 };

/* up: each edge once; both: in both directions; plain: some twice, a loop, and some backwards. */
static const char *const graphs[GRAPHS] = {"up", "both_ways", "plain"};

static const char *const joins[SIZES] = {
    "select count(*) from %1$s xy, %1$s yz, %1$s xz where xy.a = xz.a and xy.b = yz.a and xz.b = yz.b",
    "select count(*) from %1$s xy, %1$s xz, %1$s yz, %1$s xw, %1$s yw, %1$s zw where xy.a = xz.a and "
    "xy.a = xw.a and xy.b = yz.a and xy.b = yw.a and xz.b = yz.b and xz.b = zw.a and xw.b = yw.b and "
    "xw.b = zw.b",
    "select count(*) from %1$s e12, %1$s e13, %1$s e23, %1$s e14, %1$s e24, %1$s e34, %1$s e15, "
    "%1$s e25, %1$s e35, %1$s e45 where e13.a = e12.a and e14.a = e12.a and e15.a = e12.a and "
    "e23.a = e12.b and e24.a = e12.b and e25.a = e12.b and e23.b = e13.b and e34.a = e13.b and "
    "e35.a = e13.b and e24.b = e14.b and e34.b = e14.b and e45.a = e14.b and e25.b = e15.b and "
    "e35.b = e15.b and e45.b = e15.b"};

static int64_t found[GRAPHS][SIZES];

static void make_graphs(void) {
    run("set device = cpu");
    run("create table up as select i a, i + d b from generate_series(0::bigint, 299) v(i), "
        "generate_series(1::bigint, 9) w(d) where (i * 7 + d * 5) % 4 > 0 union "
        "select i % 12, 12 + (i * 31 + d * 17) % 280 from generate_series(0::bigint, 299) v(i), "
        "generate_series(1::bigint, 3) w(d)");
    run("create table both_ways as select a, b from up union all select b, a from up");
    run("create table plain as select a, b from up union all select b, a from up where a % 5 = 0 union "
        "all select a, b from up where b % 7 = 0 union all values (3, 3)");
    run("set multiway = on");
}

static int64_t count(int graph, int size) {
    char sql[2000];
    snprintf(sql, sizeof sql, joins[size], graphs[graph]); /* NOLINT: the formats are above */
    return number(sql);
}

static void note_boxes(const char *line, void *arg) {
    *(int *)arg += strstr(line, "boxes of") != NULL;
}

static void count_all(const char *memory, bool boxes) {
    char sql[2100];
    int seen = 0;
    open_db(memory, "vm");
    make_graphs();
    for (int g = 0; g < GRAPHS; g++) {
        for (int s = 0; s < SIZES && (g < 2 || s < 2); s++) {
            if (!found[g][s]) {
                found[g][s] = count(g, s);
            }
        }
    }
    run("set device = gpu");
    for (int g = 0; g < GRAPHS; g++) {
        for (int s = 0; s < SIZES && (g < 2 || s < 2); s++) {
            assert_int_equal(count(g, s), found[g][s]);
        }
    }
    int length = snprintf(sql, sizeof sql, "explain analyze ");
    snprintf(sql + length, sizeof sql - (size_t)length, joins[1], graphs[0]); /* NOLINT */
    each_line(sql, note_boxes, &seen);
    assert_int_equal(seen > 0, boxes);
    close_db();
}

static void test_all_fits(void **state) {
    (void)state;
    count_all("64MB", false);
}

static void test_few_boxes(void **state) {
    (void)state;
    count_all("80kB", true);
}

static void test_many_boxes(void **state) {
    (void)state;
    count_all("24kB", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_fits),
        cmocka_unit_test(test_few_boxes),
        cmocka_unit_test(test_many_boxes),
    };
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
