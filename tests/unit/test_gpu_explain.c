/* test_gpu_explain.c: EXPLAIN ANALYZE tells the rows of every operator, the same on every device:
 * behind filters and joins, below groups, over deleted rows, in kernels of both kinds. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

enum { LINES_BYTES = 4000 };

/* The plan's lines as far as they tell actual rows: "Join: 33\nScan: 40\n". */
static void actual_rows(const char *sql, char out[LINES_BYTES]) {
    char text[800];
    snprintf(text, sizeof text, "explain analyze %s", sql);
    wf_result *result = query(text);
    const wf_batch *batch = NULL;
    size_t len = 0;
    out[0] = 0;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char line[4000];
            char name[40] = "";
            wf_value_text(batch, 0, i, line, sizeof line);
            const char *actual = strstr(line, "actual ");
            if (actual && sscanf(line, " %39[A-Za-z]", name) == 1) {
                len += (size_t)snprintf(out + len, LINES_BYTES - len, "%s: %ld\n", name,
                                        strtol(actual + 7, NULL, 10));
            }
        }
    }
    wf_result_close(result);
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Devices may join in another order: operators with their rows, in the order of the alphabet. */
static void sort_lines(char *text) {
    static char copy[LINES_BYTES];
    char *lines[64];
    size_t count = 0;
    size_t len = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = strtok(copy, "\n"); at && count < 64; at = strtok(NULL, "\n")) {
        lines[count++] = at;
    }
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, LINES_BYTES - len, "%s\n", lines[i]);
    }
}

static void check(const char *sql, const char *rows) {
    char expected[LINES_BYTES];
    snprintf(expected, sizeof expected, "%s", rows);
    sort_lines(expected);
    static const char *const ways[][2] = {
        {"cpu", "vm"}, {"gpu", "vm"}, {"gpu", "woven"}, {"auto", "vm"}};
    for (int i = 0; i < 4; i++) {
        char text[60];
        char got[LINES_BYTES];
        snprintf(text, sizeof text, "set device = %s", ways[i][0]);
        run(text);
        snprintf(text, sizeof text, "set gpu_code = %s", ways[i][1]);
        run(text);
        run(i == 3 ? "set mix_devices = 3" : "set mix_devices = 0");
        actual_rows(sql, got);
        sort_lines(got);
        if (strcmp(got, expected) != 0) {
            fprintf(stderr, "%s, device = %s, %s\n", sql, ways[i][0], ways[i][1]);
        }
        assert_string_equal(got, expected);
    }
}

static void test_rows_of_operators(void **state) {
    (void)state;
    open_db("0", "vm");
    run("set tablet_rows = 512");
    run("create table r as select i a, i % 10 g from generate_series(1, 3000) s(i)");
    run("delete from r where a > 2990");
    run("create table d as select i k, i % 3 z from generate_series(0, 7) s(i)");
    run("create table e as select i / 2 k, i v from generate_series(0, 9) s(i)");
    check("select g, max(a) from r where a > 500 group by g",
          "Project: 10\nAggregate: 10\nFilter: 2490\nScan: 2990\n");
    check("select count(*) from r join d on r.g = d.k where a > 500 and z <> 1",
          "Project: 1\nAggregate: 1\nJoin: 1245\nFilter: 2490\nScan: 2990\nFilter: 5\nScan: 8\n");
    check("select z, sum(v) from r join d on r.g = d.k join e on e.k = d.k where a > 500 and v > 2 "
          "group by z",
          "Project: 3\nAggregate: 3\nJoin: 1743\nFilter: 2490\nScan: 2990\nJoin: 7\nScan: 8\n"
          "Filter: 7\nScan: 10\n");
    check("select count(*) from r where exists (select 1 from e where e.k = r.g and e.v > r.a "
          "and e.v >= r.a)",
          "Project: 1\nAggregate: 1\nJoin: 4\nScan: 2990\nScan: 10\n");
    check("select a, v from r join e on r.g = e.k where a > 2900 and a + v > 2950",
          "Project: 43\nJoin: 43\nFilter: 90\nScan: 430\nScan: 10\n");
    run("set gpu_placement = streamed"); /* batches add up */
    check("select count(v) from r left join e on r.g = e.k where a % 3 = 1",
          "Project: 1\nAggregate: 1\nJoin: 1496\nFilter: 997\nScan: 2990\nScan: 10\n");
    close_db();
}

/* Whether EXPLAIN ANALYZE has a line with all of these words. */
static bool says(const char *sql, const char *word, const char *other) {
    char text[800];
    snprintf(text, sizeof text, "explain analyze %s", sql);
    wf_result *result = query(text);
    const wf_batch *batch = NULL;
    bool found = false;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char line[4000];
            wf_value_text(batch, 0, i, line, sizeof line);
            found = found || (strstr(line, word) && strstr(line, other));
        }
    }
    wf_result_close(result);
    return found;
}

/* Under auto a step says what it was expected to take on each device; a few rows are not worth
 * the launch of a kernel. */
static void test_estimates(void **state) {
    (void)state;
    open_db("0", "vm");
    run("create table r as select i a, i % 10 g from generate_series(1, 3000) s(i)");
    run("create table d as select i k from generate_series(0, 7) s(i)");
    run("set device = gpu");
    assert_int_equal(number("select count(*) from r"), 3000); /* the card is open from now on */
    run("set device = auto");
    const char *sql = "select count(*) from r join d on r.g = d.k where a > 5";
    assert_true(says(sql, ": Scan, Filter, Join, Aggregate", "estimated: cpu "));
    assert_true(says(sql, ": Scan, Filter, Join, Aggregate", "s, gpu "));
    assert_true(says(sql, "cpu: Build", "estimated: cpu "));
    close_db();
}

/* What the line of a step says: rows in and out, whether it has a floor. */
struct told {
    long long rows_in, rows_out;
    bool has_floor;
};

static struct told told_of(const char *sql, int step) {
    char text[800];
    snprintf(text, sizeof text, "explain analyze %s", sql);
    wf_result *result = query(text);
    const wf_batch *batch = NULL;
    struct told told = {-1, -1, false};
    bool in_steps = false;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char line[4000];
            char floor[20];
            int used = 0;
            int no = -1;
            wf_value_text(batch, 0, i, line, sizeof line);
            if (in_steps && told.rows_in < 0 &&
                sscanf(line, " %d %*s %*s %19s%n", &no, floor, &used) == 2 && no == step) {
                told.has_floor = strcmp(floor, "-") != 0;
                sscanf(line + used, told.has_floor ? " %*s %lld %lld" : " %lld %lld", &told.rows_in,
                       &told.rows_out);
            }
            in_steps = in_steps || strstr(line, "rows out") != NULL;
        }
    }
    wf_result_close(result);
    return told;
}

/* A step hands on the same rows whoever runs it: groups of an aggregation, kept rows of a limit,
 * what is added to a union. */
static void test_rows_out(void **state) {
    (void)state;
    open_db("0", "vm");
    run("set tablet_rows = 512");
    run("create table r as select i a, i % 10 g from generate_series(1, 3000) s(i)");
    static const struct {
        const char *sql;
        int step;
        long long rows_out;
    } cases[] = {{"select g, max(a) from r where a > 500 group by g", 0, 10},
                 {"select count(*) from r where a > 500", 0, 1},
                 {"select a from r where a > 500", 0, 2500},
                 {"select a % 700 k, sum(g) from r group by a % 700", 0, 700},
                 {"select distinct g from r where g < 4", 0, 4},
                 {"select a from r where a > 500 union all select g from r where a > 2900", 1, 100}};
    for (int i = 0; i < 6; i++) {
        run("set device = cpu");
        struct told cpu = told_of(cases[i].sql, cases[i].step);
        run("set device = gpu");
        struct told gpu = told_of(cases[i].sql, cases[i].step);
        assert_int_equal(cpu.rows_out, cases[i].rows_out);
        assert_int_equal(gpu.rows_out, cases[i].rows_out);
        assert_int_equal(cpu.rows_in, gpu.rows_in);
        assert_true(cpu.has_floor && gpu.has_floor);
    }
    assert_true(says(cases[0].sql, "floors: gpu ", " a launch "));
    assert_true(says(cases[0].sql, "floors: gpu ", " GB/s up, "));
    assert_true(says(cases[0].sql, "floors: gpu ", " probes/ns"));
    close_db();
}

/* Rows that look something up in a table beyond the second-level cache have a floor of their own
 * (the simulated card's cache has 1 MB; a card's holds this table, and memory is the floor). */
static void test_probes(void **state) {
    (void)state;
    open_db("0", "vm");
    run("create table r as select i a from generate_series(1, 90000) s(i)");
    run("create table d as select i * 1000 k, -i v from generate_series(1, 70000) s(i)");
    run("create table few as select i * 4 k, -i v from generate_series(1, 700) s(i)");
    run("set device = gpu");
    bool simt = getenv("WARPFOX_CUDA") && strstr(getenv("WARPFOX_CUDA"), "simt");
    const char *large = "select sum(v) from r join d on r.a = d.k where a > 2000";
    const char *small = "select sum(v) from r join few on r.a = few.k where a > 2000";
    assert_int_equal(number(large), -4092);
    assert_int_equal(says(large, " 90000 ", "of probes"), simt);
    assert_false(says(small, " 90000 ", "of probes"));
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_rows_out),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_rows_of_operators),
    };
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
