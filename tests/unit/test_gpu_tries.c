/* test_gpu_tries.c: sorted rows and graphs that are kept on the card with a table's version (gpu/gpu_tries.c): found
 * again without a sort or a byte over the bus, and only where they are right: after changes, in transactions and old
 * snapshots, beside what else wants the card's memory, from several sessions and workers. */
#define _GNU_SOURCE
#include "test_gpu_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 5, GRAPHS = 2, ROUNDS = 3, SESSIONS = 3 };
#define NOTE "it was made before, and kept"

/* The first are counted in a graph, the others meet in sorted rows. */
static const char *const queries[QUERIES] = {
    "select count(*) from e x, e y, e z where x.b = y.a and x.a = z.a and y.b = z.b",
    "select count(*) from e x, e y, e z, e u, e v, e w where x.b = y.a and x.a = z.a and y.b = z.b and u.a = x.a "
    "and v.a = x.b and w.a = y.b and u.b = v.b and v.b = w.b",
    "select sum(x.a * 3 + x.b * 5 + y.b)::bigint from e x, e y, e z where x.b = y.a and x.a = z.a and y.b = z.b",
    "select sum(ab.a + cd.b)::bigint from e ab, e ac, e bd, e cd where ab.a = ac.a and ab.b = bd.a and ac.b = cd.a "
    "and bd.b = cd.b",
    "select sum(z.w)::bigint from e x, e y, e z where x.b = y.a and x.a = z.a and y.b = z.b and z.w > 2",
};

static void make_graph(int nodes) {
    char sql[400];
    run("create table e (a bigint, b bigint, w bigint)");
    snprintf(sql, sizeof sql,
             "insert into e select i, k, i %% 7 from generate_series(1, %d) v(i), generate_series(1, %d) w(k) "
             "where i < k and (i * 31 + k * 17) %% 5 < 3",
             nodes, nodes);
    run(sql);
    run("set multiway = on");
    run("set device = gpu");
}

struct seen {
    int kept;     /* steps that did not run */
    double moved; /* MB, by those that did */
};
enum { COLUMN_MB_LEAST = 10 }; /* hundredths: the edges of test_given_back have more */

static void note_line(const char *line, void *arg) {
    struct seen *seen = arg;
    seen->kept += strstr(line, NOTE) != NULL;
    const char *moved = strstr(line, " MB moved");
    while (moved && moved > line && (moved[-1] == '.' || (moved[-1] >= '0' && moved[-1] <= '9'))) {
        moved--;
    }
    seen->moved += moved ? strtod(moved, NULL) : 0.0;
}

static struct seen look(const char *query) {
    char sql[1000];
    struct seen seen = {0};
    snprintf(sql, sizeof sql, "explain analyze %s", query);
    each_line(sql, note_line, &seen);
    return seen;
}

/* What is kept gives what the host computes, of the same snapshot. */
static void check(const char *query) {
    run("set device = cpu");
    run("set tries = computed");
    int64_t right = number(query);
    run("set tries = kept");
    run("set device = gpu");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(number(query), right);
    }
}

static void test_found_again(void **state) {
    (void)state;
    open_db("64MB", "woven");
    make_graph(50);
    assert_int_equal(look(queries[0]).kept, 0);
    assert_true(look(queries[0]).kept > 0);
    assert_true(look(queries[1]).kept > 0); /* the graph is the same */
    for (int i = GRAPHS; i < QUERIES; i++) {
        check(queries[i]);
        assert_true(look(queries[i]).kept > 0);
    }
    run("set tries = computed");
    assert_int_equal(look(queries[0]).kept, 0);
    run("set tries = kept");
    run("insert into e values (1, 50, 9)");
    for (int i = 0; i < QUERIES; i++) { /* of a program that ran before, whose steps would be queued */
        assert_true(look(queries[i]).kept == 0 || i > 0); /* some make the same */
        assert_true(look(queries[i]).kept > 0);
        check(queries[i]);
    }
    run("delete from e where a = 7");
    assert_int_equal(look(queries[0]).kept, 0);
    check(queries[0]);
    run("drop table e");
    close_db();
}

/* The host reads what lies on the card. */
static void test_elsewhere(void **state) {
    (void)state;
    open_db("64MB", "woven");
    make_graph(40);
    for (int mix = 0; mix < 4; mix++) {
        char sql[60];
        for (int i = 0; i < QUERIES; i++) {
            run("set mix_devices = 0");
            check(queries[i]);
            int64_t right = number(queries[i]);
            run("set device = auto");
            snprintf(sql, sizeof sql, "set mix_devices = %d", mix);
            run(sql);
            assert_int_equal(number(queries[i]), right);
            assert_int_equal(number(queries[i]), right);
        }
    }
    close_db();
}

static void test_snapshots(void **state) {
    (void)state;
    open_db("64MB", "vm");
    make_graph(40);
    wf_connection *one = conn, *two = NULL;
    assert_int_equal(wf_connect(db, &two), WF_OK);
    assert_int_equal(wf_set(two, "host_rows", "0"), WF_OK);
    int64_t before = number(queries[0]);
    conn = two;
    run("set multiway = on");
    run("set device = gpu");
    run("begin");
    assert_int_equal(number(queries[0]), before);
    conn = one;
    run("delete from e where (a + b) % 3 = 0");
    int64_t after = number(queries[0]);
    assert_int_not_equal(after, before);
    assert_true(look(queries[0]).kept > 0);
    conn = two;
    assert_true(look(queries[0]).kept > 0); /* the old version's */
    assert_int_equal(number(queries[0]), before);
    check(queries[0]);
    run("rollback");
    run("begin");
    run("insert into e select b + 100, a + 100, 1 from e");
    check(queries[0]);
    check(queries[1]);
    run("rollback");
    assert_int_equal(number(queries[0]), after);
    wf_disconnect(two);
    conn = one;
    close_db();
}

/* Whoever needs the card's memory gets it, also where a graph is kept and counting in it has no room beside it. */
static void test_room(void **state) {
    (void)state;
    static const char *const memory[] = {"150kB", "400kB", "2MB"};
    for (size_t m = 0; m < sizeof memory / sizeof *memory; m++) {
        open_db(memory[m], "woven");
        make_graph(90);
        run("create table big as select i, i * 7 % 10007 as k from generate_series(1::bigint, 30000) v(i)");
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < GRAPHS + 1; i++) {
                check(queries[i]);
                assert_int_equal(number("select count(*) from (select k, count(*) from big group by k having "
                                        "count(*) < 9) g"),
                                 10007);
            }
        }
        close_db();
    }
}

static void test_given_back(void **state) {
    (void)state;
    open_db("4MB", "vm");
    make_graph(150);
    assert_true(look(queries[0]).moved * 100 >= COLUMN_MB_LEAST);
    struct seen again = look(queries[0]);
    assert_true(again.kept > 0 && again.moved * 100 < COLUMN_MB_LEAST);
    check(queries[0]);
    run("create table big as select i, i * 7 % 100003 as k from generate_series(1::bigint, 120000) v(i)");
    assert_int_equal(number("select count(*) from (select k, sum(i) s from big group by k) g where s > 0"), 100003);
    assert_int_equal(look(queries[0]).kept, 0); /* it went */
    assert_true(look(queries[0]).kept > 0);
    close_db();
}

/* Counting in a graph has no room beside it (in test builds, with such numbers of rows): it is given back, and the
 * edges are made anew. */
static void test_taken_back(void **state) {
    (void)state;
    open_db("64MB", "vm");
    make_graph(40);
    for (int i = 0; i < 20; i++) {
        int64_t rows = number("select count(*) from e");
        check(queries[i % GRAPHS]);
        assert_true(look(queries[i % GRAPHS]).kept > 0 || rows % 16 == 3);
        run("insert into e select 100, 200 + count(*), 1 from e");
    }
    close_db();
}

static void *work(void *arg) {
    const int session = *(const int *)arg;
    wf_connection *own = NULL;
    char sql[200];
    assert_int_equal(wf_connect(db, &own), WF_OK);
    const char *const settings[] = {"set multiway = on", "set device = gpu", "set host_rows = 0"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        assert_int_equal(wf_query(own, settings[i], NULL), WF_OK);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const char *query = queries[(i + session) % QUERIES];
        int64_t found[4] = {0};
        assert_int_equal(wf_query(own, "begin", NULL), WF_OK);
        for (int k = 0; k < 4; k++) {
            wf_result *result = NULL;
            const wf_batch *batch = NULL;
            const char *setting = k < 3 ? "set device = gpu" : "set device = cpu";
            assert_int_equal(wf_query(own, setting, NULL), WF_OK);
            assert_int_equal(wf_query(own, query, &result), WF_OK);
            assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
            found[k] = wf_batch_int64(batch, 0)[0];
            wf_result_close(result);
            assert_int_equal(found[k], found[0]);
        }
        assert_int_equal(wf_query(own, "commit", NULL), WF_OK);
        snprintf(sql, sizeof sql, "insert into e values (%d, %d, %d)", 100 * session + i, 100 * session + i + 1, i);
        assert_int_equal(wf_query(own, sql, NULL), WF_OK);
    }
    wf_disconnect(own);
    return NULL;
}

static void test_sessions(void **state) {
    (void)state;
    pthread_t threads[SESSIONS];
    int numbers[SESSIONS];
    const wf_option options[] = {{"gpu_memory", "2MB"}, {"gpu_code", "woven"}, {"gpu_workers", "2"}, {"threads", "2"},
                                 {NULL, NULL}};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(NULL, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    make_graph(30);
    for (int i = 0; i < SESSIONS; i++) {
        numbers[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(threads[i], NULL);
    }
    close_db();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_again), cmocka_unit_test(test_elsewhere), cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_room),        cmocka_unit_test(test_given_back),
        cmocka_unit_test(test_taken_back), cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, find_gpu, NULL);
}
