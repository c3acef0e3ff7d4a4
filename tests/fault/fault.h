/* fault.h: what the fault tests share: a database, statements that must pass or fail in a known
 * way, and the control query that must be right after every failure.
 *
 * Everything goes through the public interface; the sanitizers and the memory counter do the rest.
 */
#ifndef WF_TESTS_FAULT_H
#define WF_TESTS_FAULT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "warpfox.h"

#define UNUSED_FN __attribute__((unused))

struct fault_db {
    wf_database *db;
    wf_connection *conn;
};

UNUSED_FN static struct fault_db open_with(const char *threads, const char *memory) {
    wf_option options[] = {{"device", "cpu"},
                           {"threads", threads},
                           {"statement_cache", "off"}, /* tests compare memory used */
                           {memory ? "memory" : NULL, memory},
                           {NULL, NULL}};
    struct fault_db f = {NULL, NULL};
    wf_error error;
    assert_int_equal(wf_open(NULL, options, &f.db, &error), WF_OK);
    assert_int_equal(wf_connect(f.db, &f.conn), WF_OK);
    return f;
}

UNUSED_FN static void close_both(struct fault_db f) {
    wf_disconnect(f.conn);
    wf_close(f.db);
}

UNUSED_FN static void show_error(wf_connection *conn, const char *sql) {
    char text[3000];
    wf_error_text(wf_connection_error(conn), strlen(sql) < 2000 ? sql : NULL, text, sizeof text);
    fprintf(stderr, "%.200s\n%s\n", sql, text);
}

UNUSED_FN static wf_result *must(wf_connection *conn, const char *sql) {
    wf_result *result = NULL;
    if (wf_query(conn, sql, &result)) {
        show_error(conn, sql);
        fail();
    }
    return result;
}

/* A database file, with so much memory; NULL: as usual. Statements are compiled each time. */
UNUSED_FN static struct fault_db open_file(const char *path, const char *memory) {
    wf_option options[] = {{"device", "cpu"},
                           {"threads", "2"},
                           {"statement_cache", "off"},
                           {memory ? "memory" : NULL, memory},
                           {NULL, NULL}};
    struct fault_db f = {NULL, NULL};
    wf_error error;
    if (wf_open(path, options, &f.db, &error)) {
        fail_msg("%s %s", error.sqlstate, error.message);
    }
    assert_int_equal(wf_connect(f.db, &f.conn), WF_OK);
    return f;
}

UNUSED_FN static void run(wf_connection *conn, const char *sql) {
    if (wf_query(conn, sql, NULL)) {
        show_error(conn, sql);
        fail();
    }
}

/* The values of a result: columns by `|`, rows by `;`, NULL as ~. Cut at `cap`. */
UNUSED_FN static void flatten(wf_result *result, char *out, size_t cap) {
    size_t len = 0;
    const wf_batch *batch = NULL;
    out[0] = 0;
    assert_int_equal(wf_result_seek(result, 0), WF_OK);
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t r = 0; r < wf_batch_rows(batch) && len + 300 < cap; r++) {
            for (int32_t c = 0; c < wf_result_column_count(result) && len + 300 < cap; c++) {
                char value[200];
                wf_value_text(batch, c, r, value, sizeof value);
                const char *text = wf_batch_is_null(batch, c, r) ? "~" : value;
                len += (size_t)snprintf(out + len, cap - len, "%s%s", c ? "|" : "", text);
            }
            len += (size_t)snprintf(out + len, cap - len, ";");
        }
    }
}

UNUSED_FN static void expect(wf_connection *conn, const char *sql, const char *rows) {
    char got[8000];
    wf_result *result = must(conn, sql);
    flatten(result, got, sizeof got);
    wf_result_close(result);
    if (strcmp(got, rows) != 0) {
        fprintf(stderr, "%.200s\n", sql);
    }
    assert_string_equal(got, rows);
}

/* The statement fails with this SQLSTATE and a message; `part` (may be NULL) is in the message or
 * the hint. */
UNUSED_FN static void refuse(wf_connection *conn, const char *sql, const char *sqlstate,
                             const char *part) {
    wf_status status = wf_query(conn, sql, NULL);
    const wf_error *error = wf_connection_error(conn);
    if (!status || strcmp(error->sqlstate, sqlstate) != 0 ||
        (part && !strstr(error->message, part) && !strstr(error->hint, part))) {
        fprintf(stderr, "expected %s %s\n", sqlstate, part ? part : "");
        show_error(conn, sql);
    }
    assert_int_not_equal(status, WF_OK);
    assert_string_equal(error->sqlstate, sqlstate);
    assert_true(error->message[0] != 0);
    assert_true(!part || strstr(error->message, part) || strstr(error->hint, part));
}

/* Two small tables whose contents no test changes. */
UNUSED_FN static void make_control(wf_connection *conn) {
    run(conn,
        "create table control (k integer not null, g text, x double precision, d decimal(9,2))");
    run(conn, "insert into control values (1, 'a', 0.5, 1.25), (2, 'b', 1.5, 2.50), (3, 'a', null, "
              "3.75), (4, null, 4.5, -1.00), (5, 'b', 2.0, null)");
    run(conn, "create table control_two (k integer, t text)");
    run(conn, "insert into control_two values (1, 'one'), (2, 'two'), (2, 'zwei'), (5, 'five')");
}

UNUSED_FN static void check_control(wf_connection *conn) {
    expect(conn, "select g, count(*), sum(k), sum(x), min(d) from control group by g order by g",
           "a|2|4|0.5|1.25;b|2|7|3.5|2.50;~|1|4|4.5|-1.00;");
    expect(conn,
           "select upper(t) || '!', c.k from control c join control_two d on c.k = d.k "
           "where t <> 'one' order by t",
           "FIVE!|5;TWO!|2;ZWEI!|2;");
}

/* A file of this many lines `i,i%7,text i` under the folder for temporary files. */
UNUSED_FN static void write_csv(const char *path, int64_t lines) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int64_t i = 0; i < lines; i++) {
        fprintf(file, "%lld,%lld,text %lld\n", (long long)i, (long long)(i % 7), (long long)i);
    }
    assert_int_equal(fclose(file), 0);
}

/* The statement with the path in the place of the word FILE, in `buf` of 700 bytes. */
UNUSED_FN static const char *with_file(const char *sql, const char *path, char *buf) {
    const char *at = strstr(sql, "FILE");
    if (!at) {
        return sql;
    }
    snprintf(buf, 700, "%.*s%s%s", (int)(at - sql), sql, path, at + 4);
    return buf;
}

/* A path for a scratch file of this process, in `buf` of 300 bytes. */
UNUSED_FN static const char *scratch_path(char *buf, const char *name) {
    const char *folder = getenv("TMPDIR");
    snprintf(buf, 300, "%s/warpfox-%llx-%s", folder ? folder : "/tmp",
             (unsigned long long)clock_ns(), name);
    return buf;
}

#endif
