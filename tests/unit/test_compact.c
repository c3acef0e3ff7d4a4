/* test_compact.c: tables that are updated and deleted from again and again.
 *
 * Memory must not grow with the number of changes, rows must stay what they are, and who began to
 * read before must go on seeing what was there then. Tablets are tiny, so that every statement
 * leaves some of which little is left; the last tests refuse memory at every point of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/session.h"
#include "warpfox.h"

enum { ROWS = 3000, ROUNDS = 100 };

static wf_database *db;
static wf_connection *conn, *other;

static void run(wf_connection *c, const char *format, ...) {
    char sql[400];
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (wf_query(c, sql, NULL) != WF_OK) {
        fail_msg("%s: %s", sql, wf_connection_error(c)->message);
    }
}

static long long number(wf_connection *c, const char *sql) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    char text[64];
    assert_int_equal(wf_query(c, sql, &result), WF_OK);
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    wf_value_text(batch, 0, 0, text, sizeof text);
    wf_result_close(result);
    return atoll(text);
}

static int set_up(void **state) {
    (void)state;
    wf_option options[] = {
        {"threads", "2"}, {"tablet_rows", "256"}, {"statement_cache", "off"}, {NULL, NULL}};
    if (wf_open(NULL, options, &db, NULL) != WF_OK || wf_connect(db, &conn) != WF_OK ||
        wf_connect(db, &other) != WF_OK) {
        return -1;
    }
    run(conn,
        "create table t (id integer primary key, v bigint not null, s text, d double precision)");
    run(conn,
        "insert into t select i, i, case when i %% 5 > 0 then 'text ' || i %% 700 end, i / 8.0 "
        "from generate_series(1, %d) g(i)",
        (int)ROWS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    memory_fail_at(0);
    wf_disconnect(conn);
    wf_disconnect(other);
    wf_close(db);
    return 0;
}

static i64 used(void) {
    return atomic_load(&db->mem.used_bytes);
}

/* The rows, whatever has happened to v. */
static void check_rows(wf_connection *c, long long sum_v) {
    assert_int_equal(number(c, "select count(*) from t"), ROWS);
    assert_int_equal(number(c, "select sum(v) from t"), sum_v);
    assert_int_equal(number(c, "select count(distinct id) from t where id between 1 and 3000"),
                     ROWS);
    assert_int_equal(number(c, "select count(*) from t where d = id / 8.0 and (s = 'text ' || "
                               "id % 700 or s is null and id % 5 = 0)"),
                     ROWS);
}

enum { SUM = ROWS * (ROWS + 1) / 2 };

static void test_all_rows(void **state) {
    (void)state;
    i64 early = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        run(conn, "update t set v = v + 1");
        early = i == 10 ? used() : early;
    }
    check_rows(conn, SUM + (long long)ROUNDS * ROWS);
    assert_true(used() < early * 3 / 2);
}

/* Each round leaves another third of every tablet alone. */
static void test_some_rows(void **state) {
    (void)state;
    i64 most[2] = {0}; /* of the first and the second half: an index of the key comes and goes */
    for (int i = 0; i < ROUNDS; i++) {
        run(conn, "update t set v = v + 1 where id %% 3 <> %d", i % 3);
        i64 *half = &most[i / (ROUNDS / 2)];
        *half = MAX_OF(*half, used());
        if (i % 10 == 0) { /* the key still finds its rows */
            run(conn, "insert into t values (%d, 0, null, 0) on conflict (id) do nothing", i + 1);
        }
    }
    assert_true(most[1] < most[0] * 11 / 10);
    assert_int_equal(number(conn, "select sum(v) from t"), SUM + 100LL * 2000);
    assert_int_equal(number(conn, "select count(*) from t"), ROWS);
    assert_int_not_equal(wf_query(conn, "insert into t values (77, 0, null, 0)", NULL), WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "23505");
}

/* Deleting in the order of the key leaves a key that needs no index. */
static void test_deleted(void **state) {
    (void)state;
    i64 before = used();
    run(conn, "create table log (id bigint primary key, s text)");
    run(conn, "insert into log select i, 'entry' from generate_series(1, 20000) g(i)");
    i64 full = used() - before;
    for (int i = 0; i < 10; i++) {
        run(conn, "delete from log where id %% 10 = %d and id %% 1000 <> 999", i);
    }
    assert_int_equal(number(conn, "select count(*) from log"), 20);
    assert_int_equal(number(conn, "select sum(id) from log"), 20 * 999 + 1000 * 190);
    assert_true(used() - before < full / 2);
    run(conn, "insert into log values (30000, 'last')");
    assert_int_equal(number(conn, "select max(id) from log"), 30000);
}

/* Who reads an older state goes on seeing it, and lets go of it at the end. */
static void test_reader(void **state) {
    (void)state;
    run(other, "begin");
    check_rows(other, SUM);
    for (int i = 0; i < 30; i++) {
        run(conn, "update t set v = v + 1 where id %% 4 <> %d", i % 4);
        run(conn, "delete from t where id = %d", ROWS - i);
        run(conn, "insert into t values (%d, %d, %s, %d / 8.0)", ROWS - i, ROWS - i,
            (ROWS - i) % 5 ? "'text ' || 0" : "null", ROWS - i);
        check_rows(other, SUM);
    }
    i64 held = used();
    run(other, "commit");
    assert_int_equal(number(other, "select count(*) from t"), ROWS);
    run(conn, "update t set v = v + 1");
    assert_true(used() < held);
}

/* A transaction in progress that deleted other rows is not disturbed. */
static void test_writer(void **state) {
    (void)state;
    run(other, "begin");
    run(other, "update t set v = v + 1 where id <= 10");
    for (int i = 0; i < 3; i++) {
        run(conn, "update t set v = v + 1 where id > 10 and id %% 3 <> %d", i);
    }
    run(other, "commit");
    assert_int_equal(number(conn, "select sum(v) from t"), SUM + 10 + 2 * (ROWS - 10));
    run(conn, "update t set v = v + 1 where id %% 3 <> 0");
    assert_int_equal(number(conn, "select count(*) from t"), ROWS);
}

static bool has_moves(void) {
    struct edition *now = NULL;
    struct error err = {0};
    assert_int_equal(catalog_edition(db->catalog, &now, &err), ERR_OK);
    const struct edition_entry *entry = edition_find(now, OID_PUBLIC, sv_from("t"));
    bool moves = entry && entry->version && entry->version->moves;
    edition_release(now);
    return moves;
}

/* Rows that moved since a transaction began are still those it changed, through many compactions;
 * rows that somebody else changed are not. */
static void test_moved(void **state) {
    (void)state;
    run(other, "begin");
    run(other, "update t set v = 0 where id %% 97 = 0");
    run(other, "delete from t where id %% 97 = 1");
    for (int i = 0; i < 9; i++) {
        run(conn, "delete from t where id %% 97 > 1 and id %% 10 = %d and id %% 1000 <> 7", i);
        run(conn, "update t set v = v + 1 where id %% 97 > 1");
        assert_true(has_moves());
    }
    run(other, "commit");
    assert_int_equal(number(conn, "select count(*) from t where id % 97 = 0 and v = 0"), 30);
    assert_int_equal(number(conn, "select count(*) from t where id % 97 = 1"), 0);
    assert_int_equal(number(conn, "select count(*) from t where id % 97 = 0 and v <> 0"), 0);
    run(other, "begin");
    run(other, "update t set v = 5 where id %% 97 = 0");
    run(conn, "update t set v = 6 where id = 970");
    run(conn, "delete from t where id %% 97 > 0");
    assert_int_not_equal(wf_query(other, "commit", NULL), WF_OK);
    assert_string_equal(wf_connection_error(other)->sqlstate, "40001");
    assert_int_equal(number(conn, "select sum(v) from t"), 6);
    assert_int_equal(number(conn, "select count(*) from t"), 30);
}

/* Random parts of the table on both sides: a commit fails exactly when they meet. */
static void test_moved_parts(void **state) {
    (void)state;
    unsigned seed = 1;
    int lost = 0;
    run(conn, "create table model as select id, v from t");
    for (int round = 0; round < 60; round++) {
        int own = (int)(seed = seed * 1103515245 + 12345) >> 16 & 15;
        int theirs = (int)(seed = seed * 1103515245 + 12345) >> 16 & 15;
        int wide = (int)(seed = seed * 1103515245 + 12345) >> 16 & 7;
        run(other, "begin");
        run(other, "update t set v = v + 100 where id %% 16 = %d", own);
        for (int i = 0; i < 3; i++) {
            run(conn,
                "update t set v = v + 1 where (id + 16 - %d) %% 16 <= %d and id %% 16 <> %d or "
                "id %% 16 = %d",
                theirs, wide, own, theirs);
            run(conn,
                "update model set v = v + 1 where (id + 16 - %d) %% 16 <= %d and id %% 16 "
                "<> %d or id %% 16 = %d",
                theirs, wide, own, theirs);
        }
        bool failed = wf_query(other, "commit", NULL) != WF_OK;
        assert_int_equal(failed, own == theirs);
        lost += failed;
        if (!failed) {
            run(conn, "update model set v = v + 100 where id %% 16 = %d", own);
        }
        assert_int_equal(number(conn, "select count(*) from t join model using (id, v)"), ROWS);
    }
    assert_true(lost > 0 && lost < 30);
}

/* Memory refused at the n-th place, in the statement or in what follows it: the rows are those
 * before or those after. */
/* A row that is gone before a compaction is nobody's to delete after it: least of all one that has
 * moved to its place. */
static void test_deleted_again(void **state) {
    (void)state;
    static const int rows[] = {1, 64, 100, 199, 200, 255};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run(conn, "delete from t");
        run(conn, "insert into t select i, i, 'x', 0 from generate_series(1, %d) g(i)", (int)ROWS);
        run(other, "begin");
        assert_int_equal(number(other, "select count(*) from t"), ROWS);
        run(conn, "delete from t where id <= 200 or id = 255");
        run(other, "delete from t where id = %d", rows[i]);
        assert_int_equal(wf_query(other, "commit", NULL), WF_ERROR);
        assert_string_equal(wf_connection_error(other)->sqlstate, "40001");
        assert_int_equal(number(conn, "select count(*) from t"), ROWS - 201);
        assert_int_equal(number(conn, "select sum(id) from t where id <= 256"),
                         256 * 257 / 2 - 200 * 201 / 2 - 255);
    }
    /* One that is still there has moved, and goes. */
    run(other, "begin");
    assert_int_equal(number(other, "select count(*) from t where id = 201"), 1);
    run(conn, "delete from t where id > 256 and id < 500");
    run(other, "delete from t where id = 201");
    run(other, "commit");
    assert_int_equal(number(conn, "select count(*) from t where id between 201 and 256"), 54);
}

static void test_refused(void **state) {
    (void)state;
    long long sum = SUM;
    for (int nth = 1; nth < 3000; nth += 1 + nth / 8) {
        memory_fail_at(nth);
        wf_status status = wf_query(conn, "update t set v = v + 1 where id % 3 <> 1", NULL);
        memory_fail_at(0);
        sum += status == WF_OK ? 2000 : 0;
        if (status != WF_OK) {
            assert_string_equal(wf_connection_error(conn)->sqlstate, "53200");
        }
        assert_int_equal(number(conn, "select sum(v) from t"), sum);
        assert_int_equal(number(conn, "select count(distinct id) from t"), ROWS);
    }
    check_rows(conn, sum);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_some_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deleted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_writer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deleted_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
