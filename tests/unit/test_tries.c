/* test_tries.c: sorted rows and graphs that statements keep with a table's version: they are found again, and only
 * where they are right: after changes, in transactions, in old snapshots, with little memory, from several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "warpfox.h"

static const char *const queries[] = {
    "select count(*) from e x, e y, e z where x.b = y.a and x.a = z.a and y.b = z.b",
    "select count(*) from e x, e y, e z, e u, e v, e w where x.b = y.a and x.a = z.a and y.b = z.b "
    "and u.a = x.a "
    "and v.a = x.b and w.a = y.b and u.b = v.b and v.b = w.b",
    "select sum(x.a * 3 + x.b * 5 + y.b) from e x, e y, e z where x.b = y.a and x.a = z.a and y.b "
    "= z.b",
    "select count(*) from e ab, e ac, e bd, e cd where ab.a = ac.a and ab.b = bd.a and ac.b = cd.a "
    "and bd.b = cd.b",
    "select sum(z.w) from e x, e y, e z where x.b = y.a and x.a = z.a and y.b = z.b and z.w > 2",
};
enum { QUERIES = sizeof queries / sizeof queries[0], ROUNDS = 12 };

static wf_database *open_database(const char *memory) {
    wf_database *db = NULL;
    wf_option options[] = {{"memory", memory}, {"device", "cpu"}, {"threads", "2"}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    return db;
}

static wf_connection *connect_to(wf_database *db) {
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    return conn;
}

static void run(wf_connection *conn, const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result) != WF_OK) {
        fail_msg("%s: %s", wf_connection_error(conn)->message, sql);
    }
    wf_result_close(result);
}

/* All of an answer, as text. */
static char *ask(wf_connection *conn, const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result) != WF_OK) {
        fail_msg("%s: %s", wf_connection_error(conn)->message, sql);
    }
    size_t used = 0;
    char *text = calloc(1, 1);
    const wf_batch *batch = NULL;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            size_t len = wf_value_text(batch, 0, i, NULL, 0);
            text = realloc(text, used + len + 2);
            assert_non_null(text);
            wf_value_text(batch, 0, i, text + used, len + 1);
            used += len;
            text[used++] = '\n';
            text[used] = 0;
        }
    }
    wf_result_close(result);
    return text;
}

static bool is_kept(wf_connection *conn, const char *query) {
    char sql[1000];
    snprintf(sql, sizeof sql, "explain analyze %s", query);
    char *text = ask(conn, sql);
    bool kept = strstr(text, "it was made before, and kept") != NULL;
    free(text);
    return kept;
}

/* What is kept gives what is computed, of the same snapshot. */
static void check(wf_connection *conn, const char *query) {
    run(conn, "set tries = computed");
    char *computed = ask(conn, query);
    run(conn, "set tries = kept");
    for (int i = 0; i < 2; i++) {
        char *kept = ask(conn, query);
        assert_string_equal(kept, computed);
        free(kept);
    }
    free(computed);
}

static void make_graph(wf_connection *conn, int nodes) {
    char sql[400];
    run(conn, "create table e (a bigint, b bigint, w int)");
    snprintf(sql, sizeof sql,
             "insert into e select i, k, i %% 7 from generate_series(1, %d) v(i), "
             "generate_series(1, %d) w(k) where "
             "i < k and (i * 31 + k * 17) %% 5 < 3",
             nodes, nodes);
    run(conn, sql);
    run(conn, "set multiway = on");
}

static void test_found_again(void **state) {
    (void)state;
    wf_database *db = open_database("256MB");
    wf_connection *conn = connect_to(db);
    make_graph(conn, 60);
    assert_false(is_kept(conn, queries[0]));
    assert_true(is_kept(conn, queries[0]));
    assert_true(is_kept(conn, queries[1])); /* the graph is the same */
    for (int i = 2; i < QUERIES; i++) {
        check(conn, queries[i]);
        assert_true(is_kept(conn, queries[i]));
    }
    run(conn, "set tries = computed");
    assert_false(is_kept(conn, queries[0]));
    run(conn, "set tries = kept");
    run(conn, "create table other as select * from e"); /* another table changes nothing */
    assert_true(is_kept(conn, queries[0]));
    run(conn, "insert into e values (1, 60, 9)");
    for (int i = 0; i < QUERIES; i++) {
        check(conn, queries[i]);
    }
    run(conn, "delete from e where a = 7");
    assert_false(is_kept(conn, queries[0]));
    check(conn, queries[0]);
    run(conn, "drop table e");
    wf_disconnect(conn);
    wf_close(db);
}

static void test_snapshots(void **state) {
    (void)state;
    wf_database *db = open_database("256MB");
    wf_connection *one = connect_to(db), *two = connect_to(db);
    make_graph(one, 50);
    run(two, "set multiway = on");
    char *before = ask(one, queries[0]);
    run(two, "begin");
    check(two, queries[0]);
    run(one, "delete from e where (a + b) % 3 = 0");
    char *after = ask(one, queries[0]);
    assert_string_not_equal(before, after);
    assert_true(is_kept(one, queries[0]));
    assert_true(is_kept(two, queries[0])); /* the old version's */
    for (int i = 0; i < QUERIES; i++) {
        check(two, queries[i]);
        check(one, queries[i]);
    }
    char *old = ask(two, queries[0]);
    assert_string_equal(old, before);
    free(old);
    run(two, "rollback");
    run(one, "begin");
    run(one, "insert into e select b + 100, a + 100, 1 from e");
    for (int i = 0; i < QUERIES; i++) {
        check(one, queries[i]);
    }
    char *others = ask(two, queries[0]);
    assert_string_equal(others, after);
    run(one, "rollback");
    assert_true(is_kept(one, queries[0]));
    char *again = ask(one, queries[0]);
    assert_string_equal(again, after);
    free(before);
    free(after);
    free(others);
    free(again);
    wf_disconnect(two);
    wf_disconnect(one);
    wf_close(db);
}

/* Whoever needs the memory gets it. */
static void test_given_back(void **state) {
    (void)state;
    wf_database *db = open_database("32MB");
    wf_connection *conn = connect_to(db);
    make_graph(conn, 600);
    check(conn, queries[2]);
    assert_true(is_kept(conn, queries[2]));
    run(conn, "set tablet_rows = 16384"); /* so that little is left when memory is refused */
    run(conn,
        "create table big as select i, i * 7 % 100003 as k from generate_series(1, 200000) v(i)");
    wf_result *result = NULL;
    for (int i = 0; i < 1000 && wf_query(conn, "insert into big select i, k from big limit 50000",
                                         &result) == WF_OK;
         i++) {
        wf_result_close(result);
        result = NULL;
    }
    wf_result_close(result);
    run(conn, "truncate big");
    assert_false(is_kept(conn, queries[2]));
    check(conn, queries[2]);
    assert_true(is_kept(conn, queries[2]));
    run(conn, "delete from e where b > 80");
    run(conn, "set statement_memory = '1MB'");
    for (int i = 0; i < QUERIES; i++) {
        check(conn, queries[i]);
    }
    wf_disconnect(conn);
    wf_close(db);
}

static void test_refused(void **state) {
    (void)state;
    wf_database *db = open_database("4MB"); /* a fourth of it has no room for these edges */
    wf_connection *conn = connect_to(db);
    make_graph(conn, 600);
    for (int i = 2; i < QUERIES; i += 2) {
        check(conn, queries[i]);
        assert_false(is_kept(conn, queries[i]));
    }
    wf_disconnect(conn);
    wf_close(db);
}

struct worker {
    wf_database *db;
    int number;
};

static void *work(void *arg) {
    struct worker *w = arg;
    wf_connection *conn = connect_to(w->db);
    run(conn, "set multiway = on");
    for (int i = 0; i < ROUNDS; i++) {
        char sql[200];
        run(conn, "begin");
        check(conn, queries[(i + w->number) % QUERIES]);
        run(conn, "commit");
        snprintf(sql, sizeof sql, "insert into e values (%d, %d, %d)", 100 * w->number + i,
                 100 * w->number + i + 1, i);
        run(conn, sql);
    }
    wf_disconnect(conn);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    wf_database *db = open_database("64MB");
    wf_connection *conn = connect_to(db);
    make_graph(conn, 40);
    struct worker workers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        workers[i] = (struct worker){db, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    wf_disconnect(conn);
    wf_close(db);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_again), cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_given_back),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
