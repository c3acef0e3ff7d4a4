/* test_gpu_room.c: a card with little memory: rows that do not fit it reach the host batch by
 * batch, what has no room there at all lies in memory of the host, and under auto runs on the CPU.
 * Needs the simt driver, as test_gpu.c does. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

/* Rows of an answer of bigints, and the sum of all its values. */
static int64_t count_rows(const char *sql, int32_t columns, int64_t *out_sum) {
    wf_result *result = query(sql);
    int64_t rows = 0;
    const wf_batch *batch = NULL;
    *out_sum = 0;
    for (;;) {
        assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
        if (!batch) {
            break;
        }
        int64_t n = wf_batch_rows(batch);
        for (int32_t c = 0; c < columns; c++) {
            const int64_t *values = wf_batch_int64(batch, c);
            for (int64_t i = 0; i < n; i++) {
                *out_sum += values[i];
            }
        }
        rows += n;
    }
    wf_result_close(result);
    return rows;
}

struct word_in {
    const char *word;
    bool found;
};

static void look_for(const char *line, void *arg) {
    struct word_in *w = arg;
    w->found = w->found || strstr(line, w->word);
}

/* Whether a line of the answer, which is text, has `word`. */
static bool answer_has(const char *sql, const char *word) {
    struct word_in w = {word, false};
    each_line(sql, look_for, &w);
    return w.found;
}

#define WIDE "select a * 7::bigint x, a * 5::bigint y, a * 3::bigint z, a * 11::bigint w from t"
enum { ROWS = 60000 };

static void make_table(const char *tablet_rows) {
    char text[100];
    snprintf(text, sizeof text, "set tablet_rows = %s", tablet_rows);
    run("set device = cpu");
    run(text);
    run("create table t as select i a, i % 100 g from generate_series(1, 60000) i");
}

/* 1.9 MB of rows over a card of 1.5 MB. */
static void test_rows(void **state) {
    (void)state;
    open_db("1500kB", "vm");
    make_table("2048");
    run("set device = gpu");
    int64_t sum = 0;
    assert_int_equal(count_rows(WIDE, 4, &sum), ROWS);
    assert_int_equal(sum, 26LL * ROWS * (ROWS + 1) / 2);
    assert_int_equal(count_rows(WIDE " where a % 2 = 0", 4, &sum), ROWS / 2);
    assert_int_equal(sum, 26LL * (ROWS / 2) * (ROWS / 2 + 1));
    const char *some = "select a * 7::bigint, a * -7::bigint, a * 3::bigint, a * -3::bigint from t "
                       "where a > 3 limit 45001";
    assert_int_equal(count_rows(some, 4, &sum), 45001);
    assert_int_equal(sum, 0);
    assert_true(answer_has("explain analyze " WIDE, "gpu vm"));
    close_db();
}

/* Each row meets up to 40 others: more rows than the source has. */
static void test_matches(void **state) {
    (void)state;
    open_db("2MB", "vm");
    make_table("1024");
    run("set device = gpu");
    int64_t sum = 0;
    const char *sql = "select t.a * 7::bigint, t2.a * 5::bigint, t2.a * 3::bigint from t join t t2 "
                      "on t.g = t2.g where t2.a <= 4000 and t.a % 20 = 0";
    assert_int_equal(count_rows(sql, 3, &sum), 120000);
    run("set device = cpu");
    int64_t expected = 0;
    assert_int_equal(count_rows(sql, 3, &expected), 120000);
    assert_int_equal(sum, expected);
    close_db();
}

/* A batch of small tablets gives more than the card holds, each of them little: batches are cut
 * again, until a slot has room for what they give. */
static void test_matches_of_batches(void **state) {
    (void)state;
    open_db("2MB", "vm");
    run("set device = cpu");
    run("set tablet_rows = 32");
    run("create table u as select i a, least(i / 100, 3) g from generate_series(1::bigint, 600) i");
    const char *sql = "select u.a * 7, u2.a * 5, u2.a * 3 from u join u u2 on u.g = u2.g";
    const char *const placements[] = {"cached", "mapped", "streamed"};
    for (int p = 0; p < 3; p++) {
        char text[60];
        snprintf(text, sizeof text, "set gpu_placement = %s", placements[p]);
        run(text);
        assert_int_equal(same_on_both(sql, 3), 99 * 99 + 2 * 100 * 100 + 301 * 301);
    }
    close_db();
}

#define NO_ROOM "the device has no room"

/* One tablet gives more than the card holds: rows in memory of the host, the CPU under auto; both say
 * why. */
static void test_no_room(void **state) {
    (void)state;
    open_db("1500kB", "vm");
    make_table("1048576");
    run("set device = gpu");
    int64_t sum = 0;
    run("create table u as " WIDE);
    assert_int_equal(count_rows("select x, y, z, w from u", 4, &sum), ROWS);
    assert_int_equal(sum, 26LL * ROWS * (ROWS + 1) / 2);
    assert_true(answer_has("explain analyze " WIDE, NO_ROOM));
    assert_false(answer_has("explain analyze select count(*) from t where a > 5", NO_ROOM));
    run("set device = auto");
    for (int seed = 1; seed <= 3; seed++) {
        char text[60];
        snprintf(text, sizeof text, "set mix_devices = %d", seed);
        run(text);
        assert_int_equal(count_rows(WIDE, 4, &sum), ROWS);
        assert_int_equal(sum, 26LL * ROWS * (ROWS + 1) / 2);
    }
    bool said = false;
    for (int seed = 1; seed <= 8 && !said; seed++) {
        char text[60];
        snprintf(text, sizeof text, "set mix_devices = %d", seed);
        run(text);
        said = answer_has("explain analyze " WIDE, "out of GPU memory");
    }
    assert_true(said);
    close_db();
}

/* Rows with texts, to which a step without room on the card was to add: what the texts say stays when the
 * host goes on. */
static void test_texts_stay(void **state) {
    (void)state;
    open_db("200kB", "vm");
    run("set host_rows = 0");
    run("create table t as select i a, i % 7 b from generate_series(1::bigint, 6000) i");
    run("create table s as select i a, i % 3 b from generate_series(1::bigint, 300) i");
    run("set device = auto");
    for (int seed = 1; seed <= 14; seed++) {
        char text[60];
        snprintf(text, sizeof text, "set mix_devices = %d", seed);
        run(text);
        for (int again = 0; again < 2; again++) {
            int64_t sum = 0;
            int64_t rows = count_rows(
                "select count(*), sum(a)::bigint from (select 'the first text' k, a from s where b < 5 "
                "union all select 'the second text', a from t where b < 6) u where k is not null "
                "group by k having k like 'the % text' and min(length(k)) > 13",
                2, &sum);
            assert_int_equal(rows, 2);
            assert_int_equal(sum, 300 + 45150 + 5143 + 15430286);
        }
    }
    close_db();
}

/* An index that the host built goes to the card, which has room for all of it, for its keys alone, or for nothing;
 * so do columns and the flags of their NULLs. What found no room is not taken for what is there, and is given back. */
static void test_half_there(void **state) {
    (void)state;
    open_db("200kB", "vm");
    run("set host_rows = 0");
    run("create table p as select i k, i % 3 v from generate_series(1, 3000) i");
    run("set device = auto");
    for (int rows = 6000; rows <= 26000; rows += 1000) {
        for (int seed = 1; seed <= 12; seed++) {
            char text[600];
            int64_t sum = 0;
            snprintf(text, sizeof text, "set mix_devices = %d", seed);
            run(text);
            snprintf(text, sizeof text,
                     "with b as materialized (select i %% %d as k, case when i %% 2 = 0 then i end as x "
                     "from generate_series(1::bigint, %d) i) "
                     "select count(b.x), count(*) from p left join b on p.k = b.k where p.k <= 2000",
                     rows / 2, rows);
            int64_t groups = count_rows(text, 2, &sum);
            assert_int_equal(groups, 1);
            assert_int_equal(sum, 6000); /* 2,000 keys, two rows each, every other x */
        }
    }
    close_db();
}

/* Steps of all kinds over a card that holds a hundredth of them, and tablets that are larger than
 * it. */
static void test_hardly_any(void **state) {
    (void)state;
    static const struct {
        const char *sql;
        int32_t columns;
    } asked[] = {
        {"select g, count(*), sum(a)::bigint from r group by g", 3},
        {"select a * 1000003, count(*) from r group by 1", 2},
        {"select count(distinct s), min(length(s))::bigint from r", 2},
        {"select r.a, q.v from r join q on r.a = q.k", 2},
        {"select r.a, q.v from r full join q on r.a = q.k and r.g < 50", 2},
        {"select count(*) from r where a in (select k from q where v > 10)", 1},
        {"select a from r where s like '%7%' and not exists (select 1 from q where k = a)", 1},
        {"select a, b from r order by s desc, b limit 300", 2},
        {"select a, sum(b) over (partition by g order by a)::bigint from r", 2},
        {"select x from (select a x from r where g = 3 union all select k from q) u", 1},
    };
    open_db("100kB", "vm");
    run("set device = cpu");
    run("create table r as select i a, i % 97 g, i * i % 1009 b, 'some text ' || i % 613 s "
        "from generate_series(0::bigint, 9999) s(i)");
    run("delete from r where a % 500 = 3");
    run("create table q as select i * 3 k, i v from generate_series(0::bigint, 3999) s(i)");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_true(same_on_both(asked[i].sql, asked[i].columns) > 0);
        run("set device = auto");
        run("set mix_devices = 3");
        int64_t rows = 0;
        int64_t expected_rows = 0;
        uint64_t mixed = digest(asked[i].sql, asked[i].columns, &rows);
        run("set device = cpu");
        assert_true(mixed == digest(asked[i].sql, asked[i].columns, &expected_rows));
        assert_int_equal(rows, expected_rows);
    }
    run("set device = gpu");
    assert_true(answer_has("explain analyze select r.a, q.v from r join q on r.a = q.k", NO_ROOM));
    run("set gpu_placement = cached"); /* named: it is that or an error */
    wf_result *result = NULL;
    assert_int_equal(wf_query(conn, "select count(*) from r where a < b", &result), WF_NO_MEMORY);
    assert_non_null(strstr(wf_connection_error(conn)->hint, "gpu_placement"));
    wf_result_close(result);
    close_db();
}

/* Groups for which the card has no room at once: passes, also where their number was not foreseen. */
static void test_passes(void **state) {
    (void)state;
    open_db("400kB", "vm");
    run("set device = cpu");
    run("set tablet_rows = 2048");
    run("create table r as select i * 1000003 k, i % 7 v, i / 4 * 2000003 w "
        "from generate_series(0::bigint, 19999) s(i)");
    static const char *const asked[] = {
        "select w, count(*), sum(v)::bigint from r group by w having sum(v) > 13",
        "select k * 7 + w, count(*), max(v) from r group by 1",
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char text[200];
        assert_true(same_on_both(asked[i], 3) > 1000);
        snprintf(text, sizeof text, "explain analyze %s", asked[i]);
        assert_true(answer_has(text, " passes"));
    }
    assert_false(answer_has("explain analyze select v, count(*) from r group by v", " passes"));
    close_db();
}

/* Columns that go over the bus do so once, however many rows and groups there turn out to be: rows
 * get more room, groups of a full table are put aside and meet again by parts of their keys. */
static void test_aside(void **state) {
    (void)state;
    open_db("300kB", "vm");
    run("set device = cpu");
    run("set tablet_rows = 64");
    run("create table r as select i * 7919 % 6007 * 1000003 k, i * 9000000000 v, i * 9100000000 w, "
        "i * 9200000000 x, i * 9300000000 y from generate_series(0::bigint, 5999) s(i)");
    run("set gpu_placement = streamed");
    static const char *const asked[] = {
        "select case when k = 9000027 then -9223372036854775808 else k end, count(*), "
        "max(v + w - x + y) from r group by 1",
        "select k % 4000, sum(v - w)::bigint, max(x - y) from r group by 1 having sum(v - w) < -200000000",
        "select count(*), count(distinct k + x - y), count(distinct v - w + k) from r",
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_true(same_on_both(asked[i], 3) > 0);
    }
    run("set device = gpu");
    assert_true(answer_has("explain analyze select k, max(v + w - x + y) from r group by k",
                           "put aside"));
    run("create table twice as select k, v % 10 n from r where v % 27000000000 = 0 "
        "union all select k, 11 from r where v % 180000000000 = 0");
    const char *join = "select r.v, r.w, r.x, n from r join twice on r.k = twice.k order by r.v";
    assert_int_equal(same_on_both(join, 4), 2300);
    run("set device = gpu");
    run("create table once (k bigint primary key, n bigint)");
    run("insert into once select k, v % 10 from r where v % 27000000000 = 0");
    assert_true(answer_has("explain analyze select r.v, r.w, r.x, n from r join once "
                           "on r.k = once.k order by r.v",
                           "Sort; device = gpu; 0.2 MB moved"));
    /* 40 and 24 bytes a row */
    assert_true(answer_has("explain analyze select k % 4000, sum(v - w), max(x - y) from r group by 1",
                           "groups in a table by key; 0.2 MB moved"));
    assert_true(answer_has("explain analyze select v, w, x, y, k from r where v > 10 order by k",
                           "Sort; device = gpu; 0.1 MB moved"));
    close_db();
}

/* Values of an answer of bigints, the order of its rows included. */
static uint64_t ordered(const char *sql, int32_t columns, int64_t *out_rows) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    uint64_t hash = 0;
    *out_rows = 0;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++, ++*out_rows) {
            for (int32_t c = 0; c < columns; c++) {
                int null = wf_batch_is_null(batch, c, i);
                uint64_t v = null ? 77 : (uint64_t)wf_batch_int64(batch, c)[i];
                hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
                hash ^= hash >> 29;
            }
        }
    }
    wf_result_close(result);
    return hash;
}

/* More rows than the card has room to sort: in parts, whose columns lie in memory of the host. */
static void test_sort_in_parts(void **state) {
    (void)state;
    static const char *const asked[] = {
        "select a, k, v from r order by k",
        "select a, k, v from r order by v desc, k",
        "select a, k, n from r order by n nulls first, s desc, a",
        "select a, k, v from r order by k / 1000, k desc limit 2500",
        "select a, k, v from r order by k limit 3",
        "select a, v, n from r order by s, n desc nulls last, a", /* many agree in the first word */
    };
    open_db("200kB", "vm");
    run("set device = cpu");
    run("create table r as select i a, i * 7919 % 6007 k, i % 13 v, "
        "case when i % 3 > 0 then i % 701 * 9000000000 end n, 'some ' || i % 97 s "
        "from generate_series(0::bigint, 5999) s(i)");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int64_t rows = 0;
        int64_t expected_rows = 0;
        run("set device = cpu");
        uint64_t expected = ordered(asked[i], 3, &expected_rows);
        run("set device = gpu");
        assert_true(ordered(asked[i], 3, &rows) == expected);
        assert_int_equal(rows, expected_rows);
    }
    assert_true(answer_has("explain analyze select a, k, v from r order by k", " parts"));
    assert_false(answer_has("explain analyze select a, k, v from r order by k limit 3", " parts"));
    close_db();
}

/* Where the host has no memory, either, it is an error, and the next statement finds all as it was. */
static void test_host_short(void **state) {
    (void)state;
    if (!has_gpu) {
        skip();
    }
    const wf_option options[] = {{"gpu_memory", "1500kB"}, {"memory", "6MB"}, {"threads", "1"}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    make_table("1048576");
    run("set device = gpu");
    wf_result *result = NULL;
    const char *large = "select a.a, b.a from t a join t b on a.g = b.g where a.a < 900 order by 1";
    assert_int_equal(wf_query(conn, large, &result), WF_NO_MEMORY);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "53200");
    wf_result_close(result);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(number("select count(*) from t where a > 5"), ROWS - 5);
    }
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hardly_any),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_aside),
        cmocka_unit_test(test_sort_in_parts),
        cmocka_unit_test(test_host_short),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_matches_of_batches),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_texts_stay),
        cmocka_unit_test(test_half_there),
    };
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
