/* test_gpu_mixed.c: steps of one statement run on both devices in turn: what one has built (tables
 * of hashes, runs, sets of keys, numbers for texts, rows) the other one asks, and answers stay. Or
 * both run a step at once, each a share of its rows. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

static void check(const char *sql, int32_t columns) {
    int64_t rows[2];
    run("set device = cpu");
    uint64_t expected = digest(sql, columns, &rows[0]);
    run("set device = auto");
    for (int seed = 1; seed <= 8; seed++) {
        char text[60];
        snprintf(text, sizeof text, "set mix_devices = %d", seed);
        run(text);
        if (digest(sql, columns, &rows[1]) != expected || rows[0] != rows[1]) {
            fail_msg("%s: other rows with mix_devices = %d", sql, seed);
        }
    }
    run("set mix_devices = 0");
    run("set device = hybrid");
    for (int percent = 20; percent < 100; percent += 50) {
        char text[60];
        snprintf(text, sizeof text, "set hybrid_share = %d", percent);
        run(text);
        if (digest(sql, columns, &rows[1]) != expected || rows[0] != rows[1]) {
            fail_msg("%s: other rows with hybrid_share = %d", sql, percent);
        }
    }
    run("set hybrid_share = 0");
}

static void make_tables(void) {
    run("set device = cpu");
    run("set tablet_rows = 256");
    run("create table t as select i a, i * 7919 % 1009 * 4294967311 k, i % 13 g, case when i % 6 = "
        "0 "
        "then null else 'name ' || i * 7 % 97 end s from generate_series(0::bigint, 1999) s(i)");
    run("create table u as select i * 4294967311 k, i v, 'name ' || i s, i % 5 w "
        "from generate_series(0::bigint, 600) s(i)");
    run("create table m as select i / 3 * 4294967311 k, i v from generate_series(0::bigint, 600) "
        "s(i)");
}

static void test_joins(void **state) {
    (void)state;
    open_db("0", "vm");
    make_tables();
    check("select t.a, u.v from t join u on t.k = u.k", 2);                   /* unique, hashed */
    check("select t.a, m.v from t join m on t.k = m.k where t.a % 3 = 0", 2); /* runs, hashed */
    check("select t.a, count(m.v) from t left join m on t.k = m.k group by t.a", 2);
    check("select a from t where k in (select k from m)", 1); /* sets of keys */
    check("select a from t where not exists (select 1 from u where u.k = t.k and u.w = 2)", 1);
    check("select t.a, u.v from t join u on t.g = u.v", 2);       /* direct */
    check("select t.a, u.v from t join u on t.a = u.v + 700", 2); /* from some number on */
    check("select a from t where a in (select v + 700 from u)", 1);
    check("select a from t where 5 - a in (select 3 - v from u)", 1);
    check("select count(*), sum(x.v + y.v)::bigint from u x join u y on x.w = y.w where x.v < 50",
          2);
    check("select coalesce(t.a, -1), coalesce(u.v, -1) from t full join u on t.k = u.k", 2);
    close_db();
}

static void test_texts(void **state) {
    (void)state;
    open_db("0", "vm");
    make_tables();
    check("select length(s)::bigint, count(*), min(a) from t group by s", 3);
    check("select t.a, u.v from t join u on t.s = u.s", 2);
    check("select count(distinct s), count(distinct g) from t", 2);
    check("select length(x.s)::bigint, count(*) from (select s from t union select s from u) x "
          "group by length(x.s)",
          2);
    check("select length(t.s || u.s)::bigint, sum(t.a)::bigint from t join u on t.k = u.k "
          "group by t.s, u.s",
          2);
    check("select a from t where s in (select s from u where w = 1)", 1);
    close_db();
}

static void find_shares(const char *line, void *arg) {
    bool *found = arg;
    *found = *found || (strstr(line, "gpu vm + cpu: ") && strstr(line, "gpu vm 1024 rows in ") &&
                        strstr(line, ", cpu 976 rows in ") && strstr(line, "hybrid_share"));
}

/* EXPLAIN ANALYZE shows both shares, counts rows of both; errors are those of the first row. */
static void test_shares(void **state) {
    (void)state;
    open_db("0", "vm");
    make_tables();
    run("set device = hybrid");
    run("set hybrid_share = 48");
    bool found = false;
    each_line("explain analyze select g, sum(a) from t where a % 3 = 0 group by g", find_shares,
              &found);
    assert_true(found);
    check("select g, count(*), sum(a)::bigint from t group by g having count(*) > 153", 3);
    check("select a, sum(v)::bigint from t join u on t.k = u.k group by a having sum(v) > 300", 2);
    run("set device = hybrid");
    run("set hybrid_share = 48");
    wf_result *result = NULL;
    for (int i = 0; i < 2; i++) { /* rows of either share */
        const char *sql = i ? "select 100 / (a - 1900) from t" : "select 100 / (a - 100) from t";
        wf_status status = wf_query(conn, sql, &result);
        const wf_batch *batch = NULL;
        while (!status && (status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        }
        assert_true(status != WF_OK);
        const wf_error *error = result ? wf_result_error(result) : wf_connection_error(conn);
        assert_string_equal(error->sqlstate, "22012");
        assert_int_equal(error->position, 11);
        wf_result_close(result);
        result = NULL;
    }
    close_db();
}

/* Steps that are queued make another number of rows than when the statement ran before, which decides where the
 * next one runs: it is asked for when the rows are there, before the answer is handed out while it is made. */
enum { CHANGES = 6 };
static void digests_of_changes(int seed, uint64_t out[2 * CHANGES]) {
    static const char *const changes[CHANGES] = {
        "insert into e values (6, 3), (5, 1), (5, 3)", "insert into e values (3, 3)",
        "insert into e values (1, 2), (4, 3)", "insert into e values (3, 2)",
        "insert into e values (2, 1)", "delete from e where x = 1"};
    char text[60];
    open_db("0", "vm");
    snprintf(text, sizeof text, "set mix_devices = %d", seed);
    run(seed ? "set device = auto" : "set device = cpu");
    run(text);
    run("create table e (x bigint, y bigint)");
    for (int i = 0; i < 2 * CHANGES; i++) {
        int64_t rows;
        if (i % 2 == 0) {
            run(changes[i / 2]);
        }
        out[i] = digest("select * from logiql('_(z, y, g) <- a[z, y] = g. "
                        "a[z, y] = g <- agg<< g = total(z + 2) >> e(y, x), e(z, x), y != z.')",
                        3, &rows);
    }
    close_db();
}

static void test_rows_not_as_before(void **state) {
    (void)state;
    uint64_t expected[2 * CHANGES], found[2 * CHANGES];
    digests_of_changes(0, expected);
    for (int seed = 10; seed <= 17; seed++) {
        digests_of_changes(seed, found);
        assert_memory_equal(found, expected, sizeof expected);
    }
}

/* The best value of a key comes behind worse ones, of which the host may have found more than there are keys:
 * rounds that the card queues have room for all. */
static void test_more_rows_than_keys(void **state) {
    (void)state;
    open_db("0", "vm");
    run("create table s (k bigint not null, v bigint not null)");
    run("insert into s select i % 2 + 6, i from generate_series(0::bigint, 12) t(i)");
    run("create table w (x bigint not null, y bigint not null)");
    run("insert into w values (6, 1), (1, 2), (2, 3), (3, 4), (4, 1), (7, 5), (5, 3)");
    check("select * from logiql('b[k] = v <- s(k, v), v > 3. b[k] = v <- s(k, v), v < 7. "
          "b[y] = g <- agg<< g = max(m) >> b[x] = m, w(x, y). _(x, g) <- b[x] = g.')",
          2);
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joins), cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_rows_not_as_before),
                                       cmocka_unit_test(test_more_rows_than_keys)};
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
