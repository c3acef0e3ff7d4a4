/* test_gpu_fixture.h: what tests of SQL on the card share: a database with a GPU, statements that
 * must pass, digests of their answers. Without a driver the tests are skipped. */
#ifndef WF_TEST_GPU_FIXTURE_H
#define WF_TEST_GPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test_gpu_driver.h"
#include "warpfox.h"

#define UNUSED_FN __attribute__((unused))

static wf_database *db;
static wf_connection *conn;
static bool has_gpu;

/* A test's set-up; many rows and well-tried kernels: no instrumentation. */
static UNUSED_FN int find_gpu(void **state) {
    (void)state;
    setenv("SIMT_STRICT", "0", 0);
    has_gpu = gpu_name_driver();
    return 0;
}

/* Opens `db` and `conn`, or ends the test where there is no driver. memory: NULL = any. */
static UNUSED_FN void open_file_db(const char *path, const char *memory, const char *gpu_memory,
                                   const char *gpu_code) {
    const wf_option options[] = {{"gpu_memory", gpu_memory},
                                 {"gpu_code", gpu_code},
                                 {"threads", "2"},
                                 {memory ? "memory" : NULL, memory},
                                 {NULL, NULL}};
    if (!has_gpu) {
        skip();
    }
    assert_int_equal(wf_open(path, options, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    /* Tests have few rows. */
    assert_int_equal(wf_set(conn, "host_rows", "0"), WF_OK);
}

static UNUSED_FN void open_db(const char *gpu_memory, const char *gpu_code) {
    open_file_db(NULL, NULL, gpu_memory, gpu_code);
}

static UNUSED_FN void close_db(void) {
    wf_disconnect(conn);
    wf_close(db);
}

static UNUSED_FN wf_result *query(const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result)) {
        char text[2000];
        wf_error_text(wf_connection_error(conn), sql, text, sizeof text);
        fail_msg("%s", text);
    }
    return result;
}

/* Every line of an answer that is one column of text. */
static UNUSED_FN void each_line(const char *sql, void (*fn)(const char *line, void *arg), void *arg) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    for (;;) {
        assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
        if (!batch) {
            break;
        }
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            char line[4000];
            wf_value_text(batch, 0, i, line, sizeof line);
            fn(line, arg);
        }
    }
    wf_result_close(result);
}

static UNUSED_FN void run(const char *sql) {
    wf_result_close(query(sql));
}

/* The first value of an answer of bigints. */
static UNUSED_FN int64_t number(const char *sql) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_non_null(batch);
    int64_t value = wf_batch_int64(batch, 0)[0];
    wf_result_close(result);
    return value;
}

/* Rows of bigints as one number that knows rows and columns apart, not the order of rows. */
static UNUSED_FN uint64_t batch_digest(const wf_batch *batch, int32_t columns) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
        uint64_t row = 0;
        for (int32_t c = 0; c < columns; c++) {
            int64_t value = wf_batch_is_null(batch, c, i) ? -77 : wf_batch_int64(batch, c)[i];
            row = (row ^ (uint64_t)value) * 0x9e3779b97f4a7c15ULL;
            row ^= row >> 29;
        }
        sum += row;
    }
    return sum;
}

static UNUSED_FN uint64_t digest(const char *sql, int32_t columns, int64_t *rows) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    uint64_t sum = 0;
    *rows = 0;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        sum += batch_digest(batch, columns);
        *rows += wf_batch_rows(batch);
    }
    assert_int_equal(wf_result_error(result)->status, WF_OK);
    wf_result_close(result);
    return sum;
}

/* The card gives the rows of the CPU. */
static UNUSED_FN int64_t same_on_both(const char *sql, int32_t columns) {
    int64_t rows[2];
    run("set device = cpu");
    uint64_t expected = digest(sql, columns, &rows[0]);
    run("set device = gpu");
    assert_true(digest(sql, columns, &rows[1]) == expected);
    assert_int_equal(rows[0], rows[1]);
    return rows[0];
}

#endif
