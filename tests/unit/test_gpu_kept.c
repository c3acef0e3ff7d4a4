/* test_gpu_kept.c: steps that are prepared once: found again by the same program, version and
 * literals, and never where something of what they were made of is another; after eviction and
 * reset; within their share of memory. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <dlfcn.h>

#include "gpu/gpu_int.h"
#include "session/session.h"

enum { TIMES = 5 };

static void open_tables(const char *gpu_memory, const char *code) {
    open_db(gpu_memory, code);
    run("set device = cpu");
    run("set tablet_rows = 256");
    run("create table t as select i a, i * 7919 % 1009 k, i % 13 g, 'name ' || i * 7 % 97 s, "
        "case when i % 5 > 0 then i end n from generate_series(0::bigint, 3999) s(i)");
    run("create table u as select i k, i * 3 v, 'long text of row ' || i * 104729 w "
        "from generate_series(0::bigint, 1008) s(i)");
    run("set device = gpu");
}

static struct gpu_card *the_card(void) {
    const struct gpu *g = db->gpus[0]->self;
    return g->card;
}

static i64 found(void) {
    return the_card()->kept.found_count;
}

/* Asked on the host first, by another program: the settings differ. */
static void ask(const char *sql, int32_t columns) {
    int64_t rows;
    run("set device = cpu");
    uint64_t expected = digest(sql, columns, &rows);
    run("set device = gpu");
    for (int i = 0; i < TIMES; i++) {
        assert_true(digest(sql, columns, &rows) == expected);
    }
}

static const struct {
    const char *sql;
    int32_t columns;
} queries[] = {
    {"select count(*), sum(a)::bigint, count(n) from t where a > 700 and g < 9", 3},
    {"select g, count(*), max(a) from t where k between 100 and 900 group by g", 3},
    {"select t.a, u.v from t join u on t.k = u.k where u.v < 400", 2},
    {"select length(s)::bigint, count(*), min(a) from t where s like '%9%' group by s", 3},
    {"select length(w)::bigint, count(*) from u where w like '%7%3%' group by 1", 2},
    {"select count(*) from (select w || 'x' y from u where k > 1000) where length(y) > 3", 1},
};

static void ask_all(void) {
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        ask(queries[i].sql, queries[i].columns);
    }
}

/* The third run and those after it find what the second left. */
static void test_found(void **state) {
    (void)state;
    static const char *const codes[] = {"vm", "woven"};
    for (int c = 0; c < 2; c++) {
        open_tables("0", codes[c]);
        ask(queries[0].sql, queries[0].columns);
        i64 before = found();
        for (int i = 0; i < TIMES; i++) {
            run(queries[0].sql);
        }
        assert_true(found() >= before + TIMES);
        before = found();
        ask_all();
        assert_true(found() > before);
        close_db();
    }
}

/* A change makes another version: what was kept of the older one is not used for it. */
static void test_changes(void **state) {
    (void)state;
    static const char *const changes[] = {
        "insert into t select i, i % 1009, i % 13, 'new ' || i, null from "
        "generate_series(4000::bigint, 4600) s(i)",
        "delete from t where a % 3 = 1",
        "update t set g = g + 1, s = 'name ' || g where a % 4 = 2",
        "alter table t add column z bigint default 7",
        "alter table t drop column n",
        "alter table t add column n bigint",
        "delete from u where k between 300 and 700",
        "insert into u values (300, 9, 'another long text with 7 and 3')",
        "delete from u",
        "drop table u",
        "create table u as select i k, i v, 'text 73 ' || i w from generate_series(0::bigint, 99) "
        "s(i)",
        "truncate t",
    };
    open_tables("0", "vm");
    ask_all();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        run("set device = cpu");
        run(changes[i]);
        run("set device = gpu");
        if (strcmp(changes[i], "drop table u") != 0 && !strstr(changes[i], "drop column n")) {
            ask_all();
        }
    }
    close_db();
}

/* In a transaction, and after it was rolled back. */
static void test_transaction(void **state) {
    (void)state;
    open_tables("0", "vm");
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(number("select count(*) from t where a > 700"), 3299);
    }
    run("begin");
    run("delete from t where a > 3990");
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(number("select count(*) from t where a > 700"), 3290);
    }
    run("rollback");
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(number("select count(*) from t where a > 700"), 3299);
    }
    close_db();
}

/* One program, other literals: each has its own pruned scan, and the oldest ones go. */
static void test_literals(void **state) {
    (void)state;
    open_tables("0", "vm");
    run("prepare p (bigint, bigint, text) as "
        "select count(*) from t where a >= $1 and a < $2 and s <> $3");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 30; i++) {
            char sql[100];
            snprintf(sql, sizeof sql, "execute p (%d, %d, 'none')", i * 100, i * 100 + 1 + i * 7);
            assert_int_equal(number(sql), i * 7 + 1);
        }
    }
    i64 before = found();
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(number("execute p (0, 97, 'name 7')"), 96);
    }
    assert_true(found() >= before + TIMES - 1);
    run("set device = cpu");
    run("create table p (k text primary key, v bigint)");
    run("insert into p select 'key ' || i, i from generate_series(0::bigint, 999) s(i)");
    run("set device = gpu");
    run("prepare q (text) as select v from p where k = $1");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(number("execute q ('key 17')"), 17);
        assert_int_equal(number("execute q ('key 171')"), 171);
    }
    close_db();
}

/* Settings between runs; EXPLAIN ANALYZE counts by other opcodes. */
static void test_settings(void **state) {
    (void)state;
    static const char *const sets[] = {
        "set gpu_placement = streamed", "set gpu_placement = mapped", "set gpu_placement = cached",
        "set gpu_code = woven",         "set gpu_placement = auto",   "set gpu_code = vm",
    };
    open_tables("0", "vm");
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        run(sets[i]);
        ask(queries[0].sql, queries[0].columns);
        ask(queries[2].sql, queries[2].columns);
        char sql[300];
        snprintf(sql, sizeof sql, "explain analyze %s", queries[0].sql);
        run(sql);
        run(sql);
        run(sql);
    }
    close_db();
}

/* Columns of both tables do not fit: segments come and go, and so do blocks of scans. */
static void test_eviction(void **state) {
    (void)state;
    open_tables("1MB", "vm");
    run("set device = cpu");
    run("set tablet_rows = 4096");
    run("create table wide as select i * 70001 a, i * 70003 b, i * 3 c, i * 70007 d, i * 70009 e "
        "from generate_series(0::bigint, 29999) s(i)");
    run("create table other as select a + 1 a, b + 2 b, e from wide");
    run("set device = gpu");
    run("set gpu_placement = cached");
    for (int i = 0; i < TIMES; i++) {
        ask(queries[0].sql, queries[0].columns);
        ask("select sum(a)::bigint, sum(b)::bigint from wide where a > 5", 2);
        ask("select sum(a)::bigint, sum(b)::bigint, max(e) from other where a > 5", 3);
        ask("select sum(c)::bigint, sum(d)::bigint, sum(e)::bigint from wide where a > 5", 3);
        ask(queries[2].sql, queries[2].columns);
    }
    assert_true(the_card()->cache.drop_no > 0);
    close_db();
}

static void test_reset(void **state) {
    (void)state;
    open_tables("0", "vm");
    ask_all();
    void (*fail_at)(uint64_t nth, int code) = NULL;
    void *library = dlopen(getenv("WARPFOX_CUDA"), RTLD_NOW | RTLD_NOLOAD);
    if (library) {
        *(void **)&fail_at = dlsym(library, "simtFailAt");
    }
    if (!fail_at) {
        close_db();
        skip();
    }
    for (uint64_t n = 1; n < 30; n += 4) {
        u64 epoch = the_card()->epoch;
        fail_at(n, 700);
        wf_result *result = NULL;
        wf_status status = wf_query(conn, queries[2].sql, &result);
        wf_result_close(result);
        fail_at(0, 0);
        ask_all();
        assert_true(status == WF_OK || the_card()->epoch > epoch);
    }
    close_db();
}

/* Many programs: what is kept of them stays within its share. */
static void test_share(void **state) {
    (void)state;
    const wf_option options[] = {{"memory", "32MB"}, {"gpu_code", "vm"}, {NULL, NULL}};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run("create table t as select i a from generate_series(0::bigint, 999) s(i)");
    run("set device = gpu");
    for (int i = 0; i < 200; i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "select count(*) from t where a + %d > 500", i);
        assert_int_equal(number(sql), i + 499 < 1000 ? i + 499 : 1000);
    }
    assert_true(atomic_load(&the_card()->kept.mem.used_bytes) <= (32 << 20) / 64);
    close_db();
}

/* Strings that a step makes stay on the card where steps that read them run; a step that ran before knows
 * how much room they take. */
static void test_made_text_stays(void **state) {
    (void)state;
    static const char sql[] =
        "with q as materialized (select k, w || k || repeat('x', 300) as y from u) select "
        "count(*), "
        "sum(length(y)), (select count(*) from (select y from q limit 1) as o) from q";
    int64_t launches[2], moved[2];
    wf_statement *statement = NULL;
    open_tables("64MB", "woven");
    assert_int_equal(wf_prepare(conn, sql, &statement), WF_OK);
    for (int i = 0; i < 2; i++) {
        wf_result *result = NULL;
        assert_int_equal(wf_execute(statement, &result), WF_OK);
        launches[i] = wf_result_metric(result, "launches");
        moved[i] = wf_result_metric(result, "bytes_moved");
        wf_result_close(result);
    }
    wf_statement_close(statement);
    assert_true(launches[1] < launches[0]);
    assert_true(moved[1] < 150000); /* there are 330,000 of them */
    ask("select k, length(y)::bigint from (select k, w || k || repeat('x', 300) as y from u) as o "
        "where y like '%7X%'",
        2);
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),           cmocka_unit_test(test_changes),
        cmocka_unit_test(test_transaction),     cmocka_unit_test(test_literals),
        cmocka_unit_test(test_settings),        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_reset),           cmocka_unit_test(test_share),
        cmocka_unit_test(test_made_text_stays),
    };
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
