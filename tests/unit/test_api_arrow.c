/* test_api_arrow.c: results as Arrow streams: schemas, values of every type, and who releases what
 * when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpfox.h"

static wf_database *db;
static wf_connection *conn;

static int open_db(void **state) {
    (void)state;
    wf_option options[] = {{"device", "cpu"}, {NULL, NULL}};
    return wf_open(NULL, options, &db, NULL) || wf_connect(db, &conn);
}

static int close_db(void **state) {
    (void)state;
    wf_disconnect(conn);
    wf_close(db);
    return 0;
}

static wf_result *query(const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result) != WF_OK) {
        fprintf(stderr, "%s\n", wf_connection_error(conn)->message);
    }
    assert_int_equal(wf_connection_error(conn)->status, WF_OK);
    return result;
}

static void run(const char *sql) {
    wf_result_close(query(sql));
}

static void stream_of(const char *sql, struct ArrowArrayStream *out) {
    wf_result *result = query(sql);
    assert_int_equal(wf_result_arrow_stream(result, out), WF_OK);
    wf_result_close(result);
}

static int is_valid(const struct ArrowArray *array, int64_t i) {
    const uint8_t *bits = array->buffers[0];
    return !bits || (bits[i >> 3] >> (i & 7) & 1);
}

static void test_every_type(void **state) {
    (void)state;
    run("create table every (b boolean, s smallint, i integer, l bigint, d decimal(10,2), "
        "w decimal(18,4), r real, f double precision, t date, x text)");
    run("insert into every values"
        " (true, 7, 70, 7000000000, 1.25, 2.5, 1.5, 2.5, date '2024-02-29', 'fox'),"
        " (null, null, null, null, null, null, null, null, null, null),"
        " (false, -7, -70, -7000000000, -1.25, -0.0001, -1.5, 1e30, date '1969-12-31', 'größer')");
    struct ArrowArrayStream stream;
    stream_of("select b, s, i, l, d, cast(w as decimal(30,4)) as w, r, f, t, x from every",
              &stream);
    struct ArrowSchema schema;
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_string_equal(schema.format, "+s");
    static const char *const formats[] = {"b",      "s", "i", "l",   "d:10,2",
                                          "d:30,4", "f", "g", "tdD", "u"};
    static const char *const names[] = {"b", "s", "i", "l", "d", "w", "r", "f", "t", "x"};
    assert_int_equal(schema.n_children, 10);
    for (int c = 0; c < 10; c++) {
        assert_string_equal(schema.children[c]->format, formats[c]);
        assert_string_equal(schema.children[c]->name, names[c]);
        assert_true(schema.children[c]->flags & ARROW_FLAG_NULLABLE);
    }
    struct ArrowArray array;
    assert_int_equal(stream.get_next(&stream, &array), 0);
    assert_non_null(array.release);
    assert_int_equal(array.length, 3);
    for (int c = 0; c < 10; c++) {
        assert_int_equal(array.children[c]->length, 3);
        assert_int_equal(array.children[c]->null_count, 1);
        assert_true(is_valid(array.children[c], 0));
        assert_false(is_valid(array.children[c], 1));
    }
    const uint8_t *bits = array.children[0]->buffers[1];
    assert_true((bits[0] & 1) && !(bits[0] & 4));
    assert_int_equal(((const int16_t *)array.children[1]->buffers[1])[2], -7);
    assert_int_equal(((const int32_t *)array.children[2]->buffers[1])[0], 70);
    assert_true(((const int64_t *)array.children[3]->buffers[1])[2] == -7000000000);
    const wf_int128 *d = array.children[4]->buffers[1];
    assert_true(d[0].low == 125 && d[0].high == 0);
    assert_true(d[2].low == (uint64_t)-125 && d[2].high == -1);
    const wf_int128 *w = array.children[5]->buffers[1];
    assert_true(w[0].low == 25000 && w[2].high == -1);
    assert_true(((const float *)array.children[6]->buffers[1])[2] == -1.5f);
    assert_true(((const double *)array.children[7]->buffers[1])[2] == 1e30);
    assert_int_equal(((const int32_t *)array.children[8]->buffers[1])[2], -1);
    const int32_t *ends = array.children[9]->buffers[1];
    assert_int_equal(array.children[9]->n_buffers, 3);
    assert_int_equal(ends[0], 0);
    assert_int_equal(ends[1], 3);
    assert_int_equal(ends[2], 3);
    assert_int_equal(ends[3], 3 + 8);
    assert_memory_equal(array.children[9]->buffers[2], "foxgrößer", 11);
    struct ArrowArray end;
    assert_int_equal(stream.get_next(&stream, &end), 0);
    assert_null(end.release);
    assert_null(stream.get_last_error(&stream));
    schema.release(&schema);
    assert_null(schema.release);
    array.release(&array);
    assert_null(array.release);
    stream.release(&stream);
    assert_null(stream.release);
    run("drop table every");
}

/* A consumer may move a child out, release the rest, and even close the database first. */
static void test_moved_child(void **state) {
    (void)state;
    wf_database *other;
    wf_connection *c;
    wf_result *result;
    assert_int_equal(wf_open(NULL, NULL, &other, NULL), WF_OK);
    assert_int_equal(wf_connect(other, &c), WF_OK);
    assert_int_equal(
        wf_query(c, "create table t (a integer, x text); insert into t values (5, 'hi')", NULL),
        WF_OK);
    assert_int_equal(wf_query(c, "select a, x from t", &result), WF_OK);
    struct ArrowArrayStream stream;
    assert_int_equal(wf_result_arrow_stream(result, &stream), WF_OK);
    wf_result_close(result);
    wf_disconnect(c);
    wf_close(other);
    struct ArrowSchema schema;
    struct ArrowArray array;
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(stream.get_next(&stream, &array), 0);
    stream.release(&stream);
    struct ArrowArray child = *array.children[0];
    array.children[0]->release = NULL;
    struct ArrowSchema text_schema = *schema.children[1];
    schema.children[1]->release = NULL;
    array.release(&array);
    schema.release(&schema);
    assert_int_equal(((const int32_t *)child.buffers[1])[0], 5);
    assert_string_equal(text_schema.format, "u");
    assert_string_equal(text_schema.name, "x");
    child.release(&child);
    text_schema.release(&text_schema);
}

static void test_many_rows(void **state) {
    (void)state;
    enum { ROWS = 1300000 };
    int32_t *values = malloc(sizeof(int32_t) * ROWS);
    for (int32_t i = 0; i < ROWS; i++) {
        values[i] = i;
    }
    run("create table many (a integer)");
    wf_input in = {values, NULL};
    assert_int_equal(wf_append(conn, "many", ROWS, 1, &in), WF_OK);
    struct ArrowArrayStream stream;
    stream_of("select a from many where a >= 100", &stream);
    int64_t rows = 0;
    int64_t sum = 0;
    struct ArrowArray array;
    while (stream.get_next(&stream, &array) == 0 && array.release) {
        const int32_t *a = array.children[0]->buffers[1];
        for (int64_t i = 0; i < array.length; i++) {
            sum += a[i];
        }
        rows += array.length;
        array.release(&array);
    }
    stream.release(&stream);
    assert_int_equal(rows, ROWS - 100);
    assert_true(sum == (int64_t)ROWS * (ROWS - 1) / 2 - 99 * 50);
    run("drop table many");
    free(values);
}

static void test_no_rows(void **state) {
    (void)state;
    run("create table none (a integer)");
    struct ArrowArrayStream stream;
    stream_of("select a from none", &stream);
    struct ArrowSchema schema;
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(schema.n_children, 1);
    schema.release(&schema);
    struct ArrowArray array;
    assert_int_equal(stream.get_next(&stream, &array), 0);
    assert_null(array.release);
    stream.release(&stream);
    stream_of("set vector_rows = 1024", &stream);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(schema.n_children, 0);
    schema.release(&schema);
    stream.release(&stream);
    run("drop table none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_moved_child),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_no_rows),
    };
    return cmocka_run_group_tests(tests, open_db, close_db);
}
