/* test_gpu_boxes.c: cliques of graphs that the card has no room for: counted in boxes, the answers are
 * those of the CPU's joins, for every form of a graph, whatever room there is, and whoever helps: there are two
 * cards, with one or two workers, and the host. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <stdlib.h>
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

struct seen {
    int boxes, cards, host; /* lines that say so */
    int sorted;             /* by the card */
    int kept;               /* sorted by an earlier statement */
    double moved;           /* MB over the bus */
};

static void note_boxes(const char *line, void *arg) {
    struct seen *seen = arg;
    seen->boxes += strstr(line, "boxes of") != NULL;
    seen->cards += strstr(line, "gpu helped") != NULL;
    seen->host += strstr(line, "cpu helped") != NULL;
    seen->kept += strstr(line, "sorted before, and kept") != NULL;
    const char *sorted = strstr(line, "sorted by the card");
    const char *moved = sorted ? strchr(sorted, ';') : NULL;
    if (moved) {
        assert_non_null(strstr(moved, " MB moved"));
        seen->sorted++;
        seen->moved = atof(moved + 1);
    }
}

/* `memory` of the card, its workers, and the device that is asked for. */
static struct seen count_all(const char *memory, const char *workers, const char *device) {
    const wf_option options[] = {{"gpu_memory", memory}, {"gpu_code", "vm"},   {"threads", "2"},
                                 {"host_rows", "0"},     {"gpu_workers", workers}, {NULL, NULL}};
    char sql[2100];
    struct seen seen = {0};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    make_graphs();
    for (int g = 0; g < GRAPHS; g++) {
        for (int s = 0; s < SIZES && (g < 2 || s < 2); s++) {
            if (!found[g][s]) {
                found[g][s] = count(g, s);
            }
        }
    }
    snprintf(sql, sizeof sql, "set device = %s", device);
    run(sql);
    for (int g = 0; g < GRAPHS; g++) {
        for (int s = 0; s < SIZES && (g < 2 || s < 2); s++) {
            assert_int_equal(count(g, s), found[g][s]);
        }
    }
    int length = snprintf(sql, sizeof sql, "explain analyze ");
    snprintf(sql + length, sizeof sql - (size_t)length, joins[1], graphs[0]); /* NOLINT */
    each_line(sql, note_boxes, &seen);
    close_db();
    return seen;
}

static void test_all_fits(void **state) {
    (void)state;
    assert_int_equal(count_all("64MB", "1", "gpu").boxes, 0);
}

static void test_few_boxes(void **state) {
    (void)state;
    struct seen seen = count_all("80kB", "1", "gpu");
    assert_true(seen.boxes && seen.cards && !seen.host);
}

static void test_many_boxes(void **state) {
    (void)state;
    assert_true(count_all("24kB", "1", "gpu").boxes);
}

static void test_workers(void **state) {
    (void)state;
    struct seen seen = count_all("60kB", "2", "gpu");
    assert_true(seen.boxes && seen.cards && !seen.host);
}

static void test_host_helps(void **state) {
    (void)state;
    struct seen seen = count_all("40kB", "2", "hybrid; set hybrid_share = 50");
    assert_true(seen.boxes && (seen.cards || seen.host));
}

/* Graphs that are large beside what the card needs in any case, so that it sorts their edges itself: nodes that
 * have most of the edges, rows in order and in none, and edges whose form the first ones do not tell. */
static const char *const large[] = {
    "create table skewed as select distinct least(a, b) a, greatest(a, b) b from "
    "(select i * i % 911 * (i % 5) % 700 a, i * 7919 % 3001 % 700 b "
    "from generate_series(1::bigint, 60000) v(i)) e where a <> b order by 1, 2",
    "create table both_of as select a, b from skewed union all select b, a from skewed",
    "create table late as select a, b from skewed union all select b, a from skewed where a > 640",
    "create table doubled as select a, b from skewed union all select a, b from skewed where b = 650",
    "create table even as select i a, i + d b from generate_series(0::bigint, 2999) v(i), "
    "generate_series(1::bigint, 8) w(d)"};
static const struct {
    const char *name;
    int sizes; /* of larger cliques the host counts those of a graph in no form */
} large_graphs[] = {{"skewed", 2}, {"both_of", 1}, {"late", 1}, {"doubled", 1}, {"even", 1}};
enum { LARGE = sizeof large_graphs / sizeof *large_graphs };

static int64_t large_found[LARGE][2];

/* How many of the graphs the card sorted; each crosses the bus less than `most` times. */
static int sort_large(const char *memory, const char *workers, double most) {
    const wf_option options[] = {{"gpu_memory", memory}, {"gpu_code", "vm"},   {"threads", "2"},
                                 {"host_rows", "0"},     {"gpu_workers", workers}, {NULL, NULL}};
    int sorted = 0;
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run("set device = cpu");
    run("set multiway = on");
    for (int g = 0; g < LARGE; g++) {
        run(large[g]);
    }
    for (int g = 0; g < LARGE; g++) {
        char sql[2100];
        snprintf(sql, sizeof sql, "select count(*) from %s", large_graphs[g].name);
        double data = (double)number(sql) * 16 / 1e6;
        for (int s = 0; s < large_graphs[g].sizes; s++) {
            struct seen seen = {0};
            int length = snprintf(sql, sizeof sql, "explain analyze ");
            snprintf(sql + length, sizeof sql - (size_t)length, joins[s], large_graphs[g].name); /* NOLINT */
            run("set device = cpu");
            large_found[g][s] = large_found[g][s] ? large_found[g][s] : number(sql + length);
            run("set device = gpu");
            run("set tries = computed");
            assert_int_equal(number(sql + length), large_found[g][s]);
            if (s == 0) {
                each_line(sql, note_boxes, &seen);
            }
            run("set tries = kept");
            if (seen.moved > most * data) {
                fail_msg("%s, %s: %.1f MB moved for %.1f", memory, large_graphs[g].name, seen.moved, data);
            }
            sorted += seen.sorted;
        }
    }
    close_db();
    return sorted;
}

static void test_card_sorts(void **state) {
    (void)state;
    if (!has_gpu) {
        skip();
    }
    assert_true(sort_large("140kB", "1", 13.0) >= 3); /* two that count */
    assert_int_equal(sort_large("350kB", "2", 15.0), LARGE); /* four that count read slices each */
    assert_int_equal(sort_large("8MB", "1", 1.0), 0);
}

static struct seen look(const char *explain) {
    struct seen seen = {0};
    each_line(explain, note_boxes, &seen);
    return seen;
}

/* What the card sorted for boxes stays, and is right after changes; who needs the host's memory gets it. */
static void test_kept(void **state) {
    (void)state;
    char sql[2100];
    const wf_option options[] = {{"gpu_memory", "350kB"}, {"gpu_code", "vm"},   {"threads", "2"}, {"memory", "48MB"},
                                 {"host_rows", "0"},      {"gpu_workers", "2"}, {NULL, NULL}};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run("set multiway = on");
    for (int g = 0; g < LARGE; g++) {
        run("set device = cpu");
        run(large[g]);
        int length = snprintf(sql, sizeof sql, "explain analyze ");
        snprintf(sql + length, sizeof sql - (size_t)length, joins[0], large_graphs[g].name); /* NOLINT */
        const char *query = sql + length;
        run("set device = gpu");
        assert_int_equal(look(sql).kept, 0);
        assert_int_equal(look(sql).kept, 1);
        assert_int_equal(number(query), large_found[g][0]);
        run("set tries = computed");
        assert_int_equal(look(sql).kept, 0);
        run("set tries = kept");
    }
    run("begin"); /* sql: of the last graph */
    run("delete from even where a % 7 = 0");
    run("insert into even select a, b from even where a = 100");
    assert_int_equal(look(sql).kept, 0);
    int64_t changed = number(sql + strlen("explain analyze "));
    assert_int_equal(look(sql).kept, 1);
    run("set device = cpu");
    assert_int_equal(number(sql + strlen("explain analyze ")), changed);
    run("rollback");
    run("set device = gpu");
    assert_int_equal(look(sql).kept, 1);
    assert_int_equal(number(sql + strlen("explain analyze ")), large_found[LARGE - 1][0]);
    run("set device = cpu");
    const char *const all = "create table wide as select i, i * 3 j, i * 5 k, i * 7 l, i * i m, i * i * 3 n "
                            "from generate_series(1::bigint, 4000000) v(i)";
    assert_int_not_equal(wf_query(conn, all, NULL), WF_OK); /* until there is no more */
    run("set device = gpu");
    assert_int_equal(look(sql).kept, 0); /* it went */
    assert_int_equal(number(sql + strlen("explain analyze ")), large_found[LARGE - 1][0]);
    close_db();
}

/* The host alone, with less memory than edges take. */
static void test_host_boxes(void **state) {
    (void)state;
    const wf_option options[] = {{"threads", "2"}, {"memory", "2MB"}, {NULL, NULL}};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    make_graphs();
    run("set statement_memory = '64kB'");
    for (int g = 0; g < GRAPHS; g++) {
        for (int s = 0; s < SIZES && (g < 2 || s < 2); s++) {
            assert_int_equal(count(g, s), found[g][s]);
        }
    }
    close_db();
}

static int find_two(void **state) {
    setenv("SIMT_DEVICES", "2", 1);
    return find_gpu(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_fits),   cmocka_unit_test(test_few_boxes),
        cmocka_unit_test(test_many_boxes), cmocka_unit_test(test_workers),
        cmocka_unit_test(test_host_helps), cmocka_unit_test(test_host_boxes),
        cmocka_unit_test(test_card_sorts), cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, find_two, NULL);
}
