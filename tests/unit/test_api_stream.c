/* test_api_stream.c: results that are computed while they are read: how much memory they take, what
 * may happen to their connection and tables meanwhile, and how errors come up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "warpfox.h"

static wf_database *db;
static wf_connection *conn;

enum { ROWS = 3000000, SIDE = 7000 };

static void run_on(wf_connection *c, const char *sql) {
    if (wf_query(c, sql, NULL) != WF_OK) {
        fprintf(stderr, "%s: %s\n", sql, wf_connection_error(c)->message);
    }
    assert_int_equal(wf_connection_error(c)->status, WF_OK);
}

static void run(const char *sql) {
    run_on(conn, sql);
}

static wf_result *query(const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result) != WF_OK) {
        fprintf(stderr, "%s: %s\n", sql, wf_connection_error(conn)->message);
    }
    assert_int_equal(wf_connection_error(conn)->status, WF_OK);
    return result;
}

static int open_db(void **state) {
    (void)state;
    wf_option options[] = {{"device", "cpu"}, {"memory", "64MB"}, {"threads", "2"}, {NULL, NULL}};
    if (wf_open(NULL, options, &db, NULL) || wf_connect(db, &conn)) {
        return 1;
    }
    int32_t *values = malloc(sizeof(int32_t) * ROWS);
    int32_t *zeros = calloc(ROWS, sizeof(int32_t));
    for (int32_t i = 0; i < ROWS; i++) {
        values[i] = i;
    }
    run("create table big (a integer, z integer); create table side (k integer, b integer)");
    wf_input big[] = {{values, NULL}, {zeros, NULL}};
    wf_input side[] = {{zeros, NULL}, {values, NULL}};
    assert_int_equal(wf_append(conn, "big", ROWS, 2, big), WF_OK);
    assert_int_equal(wf_append(conn, "side", SIDE, 2, side), WF_OK);
    free(values);
    free(zeros);
    return 0;
}

static int close_db(void **state) {
    (void)state;
    wf_disconnect(conn);
    wf_close(db);
    return 0;
}

/* Rows and the sum of the first column; the highest use of memory on the way. */
static wf_status read_all(wf_result *result, int64_t *rows, int64_t *sum, int64_t *peak) {
    const wf_batch *batch = NULL;
    wf_status status;
    *rows = *sum = *peak = 0;
    while ((status = wf_result_next_batch(result, &batch)) == WF_OK && batch) {
        const int32_t *a = wf_batch_int32(batch, 0);
        for (int64_t i = 0; a && i < wf_batch_rows(batch); i++) {
            *sum += a[i];
        }
        *rows += wf_batch_rows(batch);
        *peak = wf_memory_used(db) > *peak ? wf_memory_used(db) : *peak;
    }
    return status;
}

/* 49 million rows, 1.2 GB of them, through a budget of 64 MB. */
static void test_join_streams(void **state) {
    (void)state;
    int64_t rows, sum, peak;
    int64_t used = wf_memory_used(db);
    wf_result *result = query("select x.b, y.b, x.b + y.b from side x join side y on x.k = y.k");
    assert_int_equal(wf_result_row_count(result), -1);
    assert_string_equal(wf_result_tag(result), "SELECT");
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, (int64_t)SIDE * SIDE);
    assert_int_equal(sum, (int64_t)SIDE * SIDE * (SIDE - 1) / 2);
    assert_true(peak - used < 24 << 20);
    assert_int_equal(wf_result_row_count(result), rows);
    assert_string_equal(wf_result_tag(result), "SELECT 49000000");
    wf_result_close(result);
    assert_true(wf_memory_used(db) <= used + (1 << 20));
}

static void test_scan_streams(void **state) {
    (void)state;
    int64_t rows, sum, peak;
    int64_t used = wf_memory_used(db);
    wf_result *result = query("select a, a * 2, a + 1, cast(a as text) from big where a >= 0");
    assert_int_equal(wf_result_row_count(result), -1);
    assert_true(wf_memory_used(db) - used < 8 << 20);
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, ROWS);
    assert_int_equal(sum, (int64_t)ROWS * (ROWS - 1) / 2);
    assert_true(peak - used < 12 << 20);
    assert_true(wf_result_metric(result, "rows_in") >= ROWS);
    wf_result_close(result);
    /* few rows of many: nothing is left to compute when the last ones are there */
    result = query("select a from big where a % 1000000 = 7");
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, 3);
    wf_result_close(result);
}

/* The order of the source is kept, and OFFSET and LIMIT cut across slices. */
/* The branches of a union are read one after the other. */
static void test_union_streams(void **state) {
    (void)state;
    int64_t rows, sum, peak;
    int64_t used = wf_memory_used(db);
    wf_result *result = query("select a from big union all select -a from big union all select 5");
    assert_true(wf_memory_used(db) - used < 8 << 20);
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, 2LL * ROWS + 1);
    assert_int_equal(sum, 5);
    assert_true(peak - used < 16 << 20);
    wf_result_close(result);
    result = query("select a from big union all select a from big limit 10 offset 2999995");
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, 10);
    assert_int_equal(sum, 5LL * ROWS - 15 + 10);
    wf_result_close(result);
    result = query("select a from big union all select 1 / (a - 2000000) from big");
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_ERROR);
    assert_true(rows >= ROWS);
    wf_result_close(result);
}

static void test_order_and_limit(void **state) {
    (void)state;
    run("set result_bytes = 4000");
    wf_result *result = query("select a from big offset 12345 limit 1000000");
    const wf_batch *batch;
    int64_t next = 12345;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        const int32_t *a = wf_batch_int32(batch, 0);
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            assert_int_equal(a[i], next++);
        }
    }
    assert_int_equal(next, 12345 + 1000000);
    assert_int_equal(wf_result_row_count(result), 1000000);
    wf_result_close(result);
    result = query("select a from big limit 10");
    assert_int_equal(wf_result_row_count(result), 10);
    assert_true(wf_result_metric(result, "rows_in") < ROWS / 10);
    wf_result_close(result);
    result = query("select a from big limit 0");
    assert_int_equal(wf_result_row_count(result), 0);
    wf_result_close(result);
    run("reset result_bytes");
}

static void test_seek(void **state) {
    (void)state;
    const wf_batch *batch;
    wf_result *result = query("select a from big");
    assert_int_equal(wf_result_seek(result, 2500000), WF_OK);
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_int_equal(wf_batch_int32(batch, 0)[0], 2500000);
    assert_int_equal(wf_result_seek(result, 0), WF_MISUSE); /* gone */
    assert_int_equal(wf_result_seek(result, ROWS + 1), WF_MISUSE);
    assert_int_equal(wf_result_seek(result, ROWS), WF_OK);
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_null(batch);
    wf_result_close(result);
}

/* Other statements, dropped tables and closed connections do not touch an open result. */
static void test_independent(void **state) {
    (void)state;
    int64_t rows, sum, peak;
    wf_connection *other;
    assert_int_equal(wf_connect(db, &other), WF_OK);
    run_on(other, "create table doomed (a integer, t text)");
    run_on(other, "insert into doomed select a, cast(a % 1000 as text) from big where a < 400000");
    wf_result *first = NULL;
    wf_result *second = NULL;
    run_on(other, "set result_bytes = 50000");
    assert_int_equal(wf_query(other, "select a, t from doomed", &first), WF_OK);
    assert_int_equal(wf_query(other, "select a + 1, t || 'x' from doomed", &second), WF_OK);
    run_on(other, "insert into doomed values (-1, 'new')");
    run_on(other, "drop table doomed; create table doomed (b text)");
    const wf_batch *batch;
    assert_int_equal(wf_result_next_batch(first, &batch), WF_OK);
    assert_int_equal(wf_batch_int32(batch, 0)[0], 0);
    wf_disconnect(other);
    assert_int_equal(read_all(second, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, 400000);
    assert_int_equal(sum, 400000LL * 399999 / 2 + 400000);
    int64_t had = 1;
    assert_int_equal(wf_result_seek(first, had), WF_OK);
    assert_int_equal(read_all(first, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, 399999);
    wf_result_close(first);
    wf_result_close(second);
    run("drop table doomed");
}

/* Closing midway gives everything back. */
static void test_close_midway(void **state) {
    (void)state;
    int64_t used = wf_memory_used(db);
    for (int i = 0; i < 5; i++) {
        const wf_batch *batch;
        wf_result *result = query("select x.b, y.b from side x join side y on x.k = y.k");
        for (int k = 0; k < i; k++) {
            assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
        }
        wf_result_close(result);
    }
    assert_true(wf_memory_used(db) <= used + (1 << 20));
}

/* The smallest fault wins, however the source is cut: here the one of the WHERE clause, which ranks
 * before the select list's, although it comes last. */
static void test_faults(void **state) {
    (void)state;
    static const char *const sizes[] = {"0", "100", "100000"};
    for (int i = 0; i < 3; i++) {
        char set[60];
        snprintf(set, sizeof set, "set result_bytes = %s", sizes[i]);
        run(set);
        int64_t rows, sum, peak;
        const char *sql =
            "select a, 7 / (a - 1500000) from big where 2147483647 + (a / 2900000) > 0";
        wf_result *result = query(sql);
        assert_int_equal(read_all(result, &rows, &sum, &peak), WF_ERROR);
        const wf_error *error = wf_result_error(result);
        assert_string_equal(error->sqlstate, "22003");
        assert_int_equal(error->position, strstr(sql, "+ (a") - sql);
        assert_true(rows <= 1500000);
        const wf_batch *batch;
        assert_int_equal(wf_result_next_batch(result, &batch), WF_ERROR); /* again the same */
        wf_result_close(result);
        assert_int_equal(wf_connection_error(conn)->status, WF_OK);
        assert_int_equal(wf_query(conn, sql, NULL),
                         WF_ERROR); /* nobody reads: computed all the same */
        assert_string_equal(wf_connection_error(conn)->sqlstate, "22003");
        assert_int_equal(wf_query(conn, "select 7 / (a - 1500000) from big; select 1", &result),
                         WF_ERROR);
        assert_null(result);
        result = query("select 7 / (a - 1500000) from big limit 1000"); /* far before the fault */
        assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
        assert_int_equal(rows, 1000);
        wf_result_close(result);
    }
    run("reset result_bytes");
}

static void test_cancel(void **state) {
    (void)state;
    int64_t rows, sum, peak;
    wf_result *result = query("select a from big");
    wf_result *done = query("select b from side");
    wf_cancel(conn);
    run("select 1"); /* the next statement does not mind */
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_CANCELLED);
    assert_true(rows > 0 && rows < ROWS);
    assert_string_equal(wf_result_error(result)->sqlstate, "57014");
    wf_result_close(result);
    assert_int_equal(read_all(done, &rows, &sum, &peak), WF_OK);
    assert_int_equal(rows, SIDE);
    wf_result_close(done);
    result = query("select a from big"); /* nor does the next result */
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    wf_result_close(result);
}

/* Only time spent computing counts. */
static void test_timeout(void **state) {
    (void)state;
    int64_t rows, sum, peak;
    run("set statement_timeout = 3000");
    wf_result *result = query("select a from big");
    int64_t until = clock_ns() + 3100000000;
    while (clock_ns() < until) {
    }
    assert_int_equal(read_all(result, &rows, &sum, &peak), WF_OK);
    wf_result_close(result);
    run("set statement_timeout = 60");
    const char *sql = "select x.b + y.b, x.b * y.b, x.b from side x join side y on x.k = y.k";
    if (wf_query(conn, sql, &result) ==
        WF_OK) { /* on a slow machine even the first rows are late */
        assert_int_equal(read_all(result, &rows, &sum, &peak), WF_CANCELLED);
        assert_non_null(strstr(wf_result_error(result)->message, "statement_timeout"));
    }
    wf_result_close(result);
    run("set statement_timeout = 0");
}

struct reader {
    wf_result *result;
    int64_t rows, sum;
    wf_status status;
};

static void read_result(void *arg) {
    struct reader *r = arg;
    int64_t peak;
    r->status = read_all(r->result, &r->rows, &r->sum, &peak);
}

/* Results of one connection on threads of their own, while it runs statements. */
static void test_threads(void **state) {
    (void)state;
    enum { READERS = 3 };
    struct reader readers[READERS];
    struct thread *threads[READERS];
    run("set result_bytes = 20000");
    for (int i = 0; i < READERS; i++) {
        readers[i].result = query("select a from big where a < 300000");
    }
    for (int i = 0; i < READERS; i++) {
        threads[i] = thread_start(read_result, &readers[i]);
        assert_non_null(threads[i]);
    }
    for (int i = 0; i < 20; i++) {
        run("select count(*) from side where b > 5");
    }
    for (int i = 0; i < READERS; i++) {
        thread_join(threads[i]);
        assert_int_equal(readers[i].status, WF_OK);
        assert_int_equal(readers[i].rows, 300000);
        wf_result_close(readers[i].result);
    }
    run("reset result_bytes");
}

/* Arrow arrays outlive the rows they were made from. */
static void test_arrow(void **state) {
    (void)state;
    enum { KEPT = 50 };
    struct ArrowArray kept[KEPT];
    struct ArrowArrayStream stream;
    run("set result_bytes = 40000");
    wf_result *result = query("select a, cast(a as text) from big where a < 200000");
    assert_int_equal(wf_result_arrow_stream(result, &stream), WF_OK);
    wf_result_close(result);
    int64_t rows = 0;
    int count = 0;
    struct ArrowArray array;
    while (stream.get_next(&stream, &array) == 0 && array.release) {
        rows += array.length;
        if (count < KEPT) {
            kept[count++] = array;
        } else {
            array.release(&array);
        }
    }
    assert_null(stream.get_last_error(&stream));
    stream.release(&stream);
    assert_int_equal(rows, 200000);
    int32_t next = 0;
    for (int i = 0; i < count; i++) {
        for (int64_t r = 0; r < kept[i].length; r++) {
            assert_int_equal(((const int32_t *)kept[i].children[0]->buffers[1])[r], next++);
        }
        kept[i].release(&kept[i]);
    }
    assert_int_equal(count, KEPT);
    result = query("select 1 / (a - 199999) from big");
    assert_int_equal(wf_result_arrow_stream(result, &stream), WF_OK);
    wf_result_close(result);
    int failed = 0;
    while ((failed = stream.get_next(&stream, &array)) == 0 && array.release) {
        array.release(&array);
    }
    assert_int_not_equal(failed, 0);
    assert_non_null(strstr(stream.get_last_error(&stream), "22012"));
    stream.release(&stream);
    run("reset result_bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_streams),  cmocka_unit_test(test_scan_streams),
        cmocka_unit_test(test_union_streams), cmocka_unit_test(test_order_and_limit),
        cmocka_unit_test(test_seek),          cmocka_unit_test(test_independent),
        cmocka_unit_test(test_close_midway),  cmocka_unit_test(test_faults),
        cmocka_unit_test(test_cancel),        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_arrow),
    };
    return cmocka_run_group_tests(tests, open_db, close_db);
}
