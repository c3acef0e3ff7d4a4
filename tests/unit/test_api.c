/* test_api.c: the public interface, from text to values: results of every type, prepared
 * statements, appending, cancelling, errors, connections in parallel. Runs on the CPU device. */
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

static int open_db(void **state) {
    (void)state;
    wf_option options[] = {{"device", "cpu"}, {"threads", "3"}, {NULL, NULL}};
    wf_error error;
    if (wf_open(NULL, options, &db, &error) != WF_OK) {
        return -1;
    }
    return wf_connect(db, &conn);
}

static int close_db(void **state) {
    (void)state;
    wf_disconnect(conn);
    wf_close(db);
    return 0;
}

static void explain_failure(wf_connection *c, const char *sql) {
    char text[3000];
    wf_error_text(wf_connection_error(c), sql, text, sizeof text);
    fprintf(stderr, "%s\n", text);
}

static wf_result *query_on(wf_connection *c, const char *sql) {
    wf_result *result = NULL;
    wf_status status = wf_query(c, sql, &result);
    if (status) {
        explain_failure(c, sql);
    }
    assert_int_equal(status, WF_OK);
    return result;
}

static wf_result *query(const char *sql) {
    return query_on(conn, sql);
}

static void run(const char *sql) {
    wf_result_close(query(sql));
}

/* All values of a result, columns by `|`, rows by newlines, NULL as ~. */
static char *flat(wf_result *result) {
    char *out = calloc(1, 1 << 16);
    size_t len = 0;
    const wf_batch *batch;
    assert_int_equal(wf_result_seek(result, 0), WF_OK);
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t r = 0; r < wf_batch_rows(batch); r++) {
            for (int32_t c = 0; c < wf_result_column_count(result); c++) {
                char value[200];
                size_t got = wf_value_text(batch, c, r, value, sizeof value);
                assert_true(got < sizeof value);
                const char *text = wf_batch_is_null(batch, c, r) ? "~" : value;
                len += (size_t)snprintf(out + len, (1 << 16) - len, "%s%s", c ? "|" : "", text);
            }
            len += (size_t)snprintf(out + len, (1 << 16) - len, "\n");
        }
    }
    return out;
}

static void expect_result(wf_result *result, const char *rows) {
    char *got = flat(result);
    assert_string_equal(got, rows);
    free(got);
    wf_result_close(result);
}

static void expect(const char *sql, const char *rows) {
    expect_result(query(sql), rows);
}

static void expect_error(const char *sql, const char *sqlstate) {
    wf_result *result = (wf_result *)&db;
    assert_int_not_equal(wf_query(conn, sql, &result), WF_OK);
    assert_null(result);
    const wf_error *error = wf_connection_error(conn);
    if (strcmp(error->sqlstate, sqlstate) != 0) {
        explain_failure(conn, sql);
    }
    assert_string_equal(error->sqlstate, sqlstate);
    assert_true(error->message[0] != 0);
}

static void test_open_refuses(void **state) {
    (void)state;
    wf_database *other = NULL;
    wf_error error;
    assert_int_equal(wf_open("nowhere/data.wf", NULL, &other, &error), WF_ERROR);
    assert_null(other);
    assert_string_equal(error.sqlstate, "58P01");
    assert_non_null(strstr(error.message, "data.wf"));
    assert_int_equal(wf_open("x.PARQUET", NULL, &other, &error), WF_ERROR);
    assert_string_equal(error.sqlstate, "0A000");
    assert_non_null(strstr(error.message, "Parquet"));
    wf_option bad[] = {{"memry", "1GB"}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, bad, &other, &error), WF_ERROR);
    assert_string_equal(error.sqlstate, "42704");
    wf_option worse[] = {{"threads", "many"}, {NULL, NULL}};
    assert_int_equal(wf_open(NULL, worse, &other, &error), WF_ERROR);
    assert_string_equal(error.sqlstate, "22023");
    assert_int_equal(wf_open(NULL, NULL, NULL, &error), WF_MISUSE);
    wf_close(NULL);
}

static void test_misuse(void **state) {
    (void)state;
    assert_int_equal(wf_query(NULL, "select 1", NULL), WF_MISUSE);
    assert_int_equal(wf_query(conn, NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_connect(NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_execute(NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_result_next_batch(NULL, NULL), WF_MISUSE);
    wf_result *result = query("select 1 as one");
    assert_null(wf_result_name(result, 1));
    assert_null(wf_result_name(result, -1));
    wf_type_info info;
    assert_int_equal(wf_result_type(result, 3, &info), WF_MISUSE);
    assert_int_equal(wf_result_seek(result, 2), WF_MISUSE);
    wf_result_close(result);
    wf_result_close(NULL);
    wf_statement_close(NULL);
    wf_disconnect(NULL);
}

/* Where nothing is given, nothing comes of it. */
static void test_nothing_given(void **state) {
    (void)state;
    wf_type_info type;
    wf_result *result = NULL;
    wf_statement *statement = NULL;
    char *text = NULL;
    assert_int_equal(wf_memory_used(NULL), 0);
    assert_null(wf_connection_error(NULL));
    assert_int_equal(wf_transaction_state(NULL), WF_TRANSACTION_NONE);
    assert_int_equal(wf_set(NULL, "device", "cpu"), WF_MISUSE);
    assert_int_equal(wf_set(conn, NULL, "cpu"), WF_MISUSE);
    assert_int_equal(wf_set(conn, "device", NULL), WF_MISUSE);
    wf_cancel(NULL);
    assert_int_equal(wf_set_progress(NULL, NULL, NULL, 0), WF_MISUSE);
    assert_int_equal(wf_set_notice(NULL, NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_query_each(NULL, "select 1", NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_query_each(conn, NULL, NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_prepare(NULL, "select 1", &statement), WF_MISUSE);
    assert_int_equal(wf_prepare(conn, NULL, &statement), WF_MISUSE);
    assert_int_equal(wf_prepare(conn, "select 1", NULL), WF_MISUSE);
    assert_int_equal(wf_statement_param_count(NULL), 0);
    assert_int_equal(wf_statement_param_type(NULL, 1, &type), WF_MISUSE);
    assert_int_equal(wf_statement_compile_count(NULL), 0);
    assert_int_equal(wf_bind_null(NULL, 1), WF_MISUSE);
    assert_int_equal(wf_bind_bool(NULL, 1, 1), WF_MISUSE);
    assert_int_equal(wf_bind_int64(NULL, 1, 1), WF_MISUSE);
    assert_int_equal(wf_bind_double(NULL, 1, 1), WF_MISUSE);
    assert_int_equal(wf_bind_decimal(NULL, 1, (wf_int128){0}, 0), WF_MISUSE);
    assert_int_equal(wf_bind_date(NULL, 1, 1), WF_MISUSE);
    assert_int_equal(wf_bind_text(NULL, 1, "", 0), WF_MISUSE);
    assert_int_equal(wf_bind_reset(NULL), WF_MISUSE);
    assert_int_equal(wf_execute(NULL, &result), WF_MISUSE);
    assert_int_equal(wf_append(NULL, "t", 0, 0, NULL), WF_MISUSE);
    assert_int_equal(wf_append(conn, NULL, 0, 0, NULL), WF_MISUSE);
    assert_int_equal(wf_result_column_count(NULL), 0);
    assert_null(wf_result_name(NULL, 0));
    assert_int_equal(wf_result_type(NULL, 0, &type), WF_MISUSE);
    assert_int_equal(wf_result_row_count(NULL), 0);
    assert_int_equal(wf_result_rows_affected(NULL), 0);
    assert_string_equal(wf_result_tag(NULL), "");
    assert_string_equal(wf_result_devices(NULL), "");
    assert_int_equal(wf_result_time_ns(NULL), 0);
    assert_int_equal(wf_result_metric(NULL, "launches"), -1);
    assert_null(wf_result_error(NULL));
    assert_int_equal(wf_result_seek(NULL, 0), WF_MISUSE);
    assert_int_equal(wf_batch_rows(NULL), 0);
    assert_null(wf_batch_nulls(NULL, 0));
    assert_int_equal(wf_batch_is_null(NULL, 0, 0), 0);
    assert_null(wf_batch_bool(NULL, 0));
    assert_null(wf_batch_int32(NULL, 0));
    assert_null(wf_batch_int64(NULL, 0));
    assert_null(wf_batch_int128(NULL, 0));
    assert_null(wf_batch_float(NULL, 0));
    assert_null(wf_batch_double(NULL, 0));
    assert_null(wf_batch_text(NULL, 0, 0).ptr);
    assert_int_equal(wf_value_text(NULL, 0, 0, NULL, 0), 0);
    assert_int_equal(wf_tables(NULL, NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_columns(NULL, "t", NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_columns(conn, NULL, NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_describe(NULL, "t", &text), WF_MISUSE);
    assert_int_equal(wf_describe(conn, NULL, &text), WF_MISUSE);
    assert_int_equal(wf_complete(NULL, "", 0, 0, NULL, NULL, NULL), WF_MISUSE);
    assert_int_equal(wf_function(-1, NULL), WF_MISUSE);
    assert_null(wf_devices(NULL));
    assert_null(wf_keyword(-1));
    wf_free(NULL);
}

/* Where an error is shown: at what raised it, or nowhere when a row is at fault. */
static void test_error_places(void **state) {
    (void)state;
    static const struct {
        const char *sql, *sqlstate, *at; /* the text from there on; NULL: nowhere */
    } places[] = {
        {"select 1/(k-1) from p", "22012", "/(k-1)"},
        {"explain analyze select 1/(k-1) from p", "22012", "/(k-1)"},
        {"create table z as select 1/(k-1) from p", "22012", "/(k-1)"},
        {"update p set v = 1/(k-1)", "22012", "/(k-1)"},
        {"select k from p order by 1/(k-1)", "22012", "/(k-1)"},
        {"select k from p group by k having 1/(k-1) > 0", "22012", "/(k-1)"},
        {"select count(*) filter (where 1/(k-1) > 0) from p", "22012", "/(k-1)"},
        {"select lag(k, -1) over (order by k/(k-1)) from p", "22012", "/(k-1)"},
        {"values (1),(1/0)", "22012", "/0"},
        {"select k from p where ln(k-1) > 0", "2201E", "ln("},
        {"select k::text::date from p", "22007", "::date"},
        {"select (select k from p)", "21000", "(select k from p)"},
        {"select k from p limit (select -1)", "2201W", "(select -1)"},
        {"explain select nosuch from p", "42703", "nosuch"},
        {"select k from logiql('a(\"it''s\"). f[] = x <- p(x, _). _(k) <- f[] = k, a(_).')", "23514",
         "f[]"},
        {"select 1; select k from logiql($a$ f[] = x <- p(x, _). _(k) <- f[] = k.$a$)", "23514",
         "f[]"},
        {"select 'f' from fv natural join p", "23514", "fv"},
        {"execute fq", "23514", NULL},
        {"update f set x = 99999", "22003", "99999"},
        {"insert into f values (1, 5), (2, 70000)", "22003", "70000)"},
        {"insert into f select k, k * 70000 from p", "22003", "k * 70000"},
        {"insert into f select k, v || 'x' from p", "42804", "v ||"},
        {"insert into f (x, k) select k * 70000, g.* from p, (select 1) g", "22003", "k * 7"},
        {"insert into f select p.*, 1 from p", "42601", "1 from"},
        {"insert into f select g.* from (select 1, 'x' || 'y') g", "42804", "g.*"},
        {"insert into f select 1, 2 union all select k, k * 70000 from p", "22003", "2 union"},
        {"alter table p alter v type smallint using v * 40000", "22003", "* 40000"},
        {"insert into p values (3,3),(3,4) on conflict (k) do update set v = excluded.v", "21000",
         NULL},
        {"insert into p values (1,1)", "23505", NULL},
        {"insert into p values (9,null)", "23502", NULL},
        {"insert into p values (9,200)", "23514", NULL},
        {"insert into f values (7,1)", "23503", NULL},
        {"delete from p where k = 1", "23503", NULL},
        {"copy p from '/nowhere/x.csv'", "58P01", NULL},
        {"select nextval('few') from generate_series(1, 3)", "2200H", NULL},
    };
    wf_result_close(query("create table p (k integer primary key, v integer not null check (v < "
                          "100)); insert into p values (1, 1), (2, 2); create table f (k integer "
                          "references p, x smallint); insert into f values (1, 5); create "
                          "sequence few maxvalue 2; create view fv as select * from "
                          "logiql('f[] = x <- p(x, _). _(k) <- f[] = k.'); prepare fq as "
                          "select * from fv"));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        wf_result *result = NULL;
        const wf_batch *batch = NULL;
        const char *sql = places[i].sql, *at = places[i].at ? strstr(sql, places[i].at) : NULL;
        wf_status status = wf_query(conn, sql, &result);
        const wf_error *error = wf_connection_error(conn);
        while (!status && !(status = wf_result_next_batch(result, &batch)) && batch) {
            error = wf_result_error(result);
        }
        error = result ? wf_result_error(result) : error;
        if (!status || strcmp(error->sqlstate, places[i].sqlstate) != 0 ||
            error->position != (at ? at - sql : -1)) {
            fail_msg("%s: %s at %lld", sql, error->sqlstate, (long long)error->position);
        }
        wf_result_close(result);
    }
    wf_result_close(query("deallocate fq; drop view fv; drop table f; drop table p; drop sequence "
                          "few"));
}

static void test_script(void **state) {
    (void)state;
    wf_result *result = query("create table s1 (a integer); insert into s1 values (1), (2);"
                              " select a from s1 order by a;");
    assert_string_equal(wf_result_tag(result), "SELECT 2");
    assert_string_equal(wf_result_name(result, 0), "a");
    assert_int_equal(wf_result_row_count(result), 2);
    assert_string_equal(wf_result_devices(result), "cpu");
    assert_true(wf_result_time_ns(result) > 0);
    expect_result(result, "1\n2\n");
    result = query("insert into s1 select a + 10 from s1");
    assert_int_equal(wf_result_rows_affected(result), 2);
    assert_string_equal(wf_result_tag(result), "INSERT 0 2");
    assert_int_equal(wf_result_column_count(result), 0);
    wf_result_close(result);
    assert_null(query("  -- nothing here\n ; "));
    expect("select sum(a), count(*) from s1", "26|4\n");
    /* a syntax error anywhere runs nothing; a later error keeps what came before */
    expect_error("insert into s1 values (100); selec 1", "42601");
    expect("select count(*) from s1", "4\n");
    expect_error("insert into s1 values (100); select 1/0; insert into s1 values (200)", "22012");
    expect("select max(a), count(*) from s1", "100|5\n");
    run("drop table s1");
}

/* How many rows without columns a query gives. */
static int64_t bare_rows(const char *sql) {
    wf_result *result = query(sql);
    const wf_batch *batch = NULL;
    int64_t rows = 0;
    assert_int_equal(wf_result_column_count(result), 0);
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        rows += wf_batch_rows(batch);
    }
    assert_int_equal(wf_result_row_count(result), rows);
    wf_result_close(result);
    return rows;
}

static void test_no_columns(void **state) {
    (void)state;
    run("create table bare (a integer); insert into bare values (1), (2), (2)");
    assert_int_equal(bare_rows("select"), 1);
    assert_int_equal(bare_rows("select from bare"), 3);
    assert_int_equal(bare_rows("select from bare where a = 2 order by a limit 5"), 2);
    assert_int_equal(bare_rows("select from bare where a = 7"), 0);
    assert_int_equal(bare_rows("select from bare group by a"), 2);
    assert_int_equal(bare_rows("select from bare union select from bare"), 1);
    assert_int_equal(bare_rows("select union all select from bare"), 4);
    assert_int_equal(bare_rows("select from bare except all select"), 2);
    assert_int_equal(bare_rows("select from bare except select"), 0);
    assert_int_equal(bare_rows("select from bare intersect select from bare"), 1);
    assert_int_equal(bare_rows("select * from (select from bare) q"), 3);
    assert_int_equal(bare_rows("select from bare cross join bare b"), 9);
    assert_int_equal(bare_rows("select from generate_series(1, 100000)"), 100000);
    run("drop table bare");
}

static int count_results(void *arg, wf_result *result) {
    int *count = arg;
    wf_result_close(result);
    return ++*count == 2;
}

static void test_query_each(void **state) {
    (void)state;
    int count = 0;
    assert_int_equal(wf_query_each(conn, "select 1; select 2; select 1/0", count_results, &count),
                     WF_OK);
    assert_int_equal(count, 2);
}

static void make_all_types(void) {
    run("create table every (b boolean, s smallint, i integer, l bigint, d decimal(10,2), "
        "w decimal(18,4), r real, f double precision, t date, x text)");
    run("insert into every values"
        " (true, 7, 70, 7000000000, 1.25, 12345678901234.5, 1.5, 2.5, date '2024-02-29', "
        "'fox'),"
        " (false, -7, -70, -7000000000, -1.25, -0.0001, -1.5, 1e30, date '1969-12-31', ''),"
        " (null, null, null, null, null, null, null, null, null, null)");
}

static void test_typed_access(void **state) {
    (void)state;
    make_all_types();
    wf_result *result =
        query("select b, s, i, l, d, cast(w as decimal(30,4)) as w, r, f, t, x from every");
    static const char *const types[] = {
        "boolean",       "smallint", "integer",          "bigint", "decimal(10,2)",
        "decimal(30,4)", "real",     "double precision", "date",   "text"};
    static const int oids[] = {16, 21, 23, 20, 1700, 1700, 700, 701, 1082, 25};
    for (int c = 0; c < 10; c++) {
        wf_type_info info;
        assert_int_equal(wf_result_type(result, c, &info), WF_OK);
        assert_int_equal(info.oid, oids[c]);
        assert_string_equal(info.text, types[c]);
    }
    const wf_batch *batch;
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_int_equal(wf_batch_rows(batch), 3);
    for (int c = 0; c < 10; c++) {
        assert_true(wf_batch_is_null(batch, c, 2));
        assert_false(wf_batch_is_null(batch, c, 0));
    }
    assert_int_equal(wf_batch_bool(batch, 0)[0], 1);
    assert_int_equal(wf_batch_bool(batch, 0)[1], 0);
    assert_int_equal(wf_batch_int32(batch, 1)[0], 7);
    assert_int_equal(wf_batch_int32(batch, 2)[1], -70);
    assert_true(wf_batch_int64(batch, 3)[0] == 7000000000);
    assert_true(wf_batch_int64(batch, 4)[0] == 125);
    const wf_int128 *wide = wf_batch_int128(batch, 5);
    assert_non_null(wide);
    assert_true(wide[1].low == (uint64_t)-1 && wide[1].high == -1);
    assert_true(wf_batch_float(batch, 6)[0] == 1.5f);
    assert_true(wf_batch_double(batch, 7)[1] == 1e30);
    assert_int_equal(wf_batch_int32(batch, 8)[1], -1);
    wf_text text = wf_batch_text(batch, 9, 0);
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.ptr, "fox", 3);
    text = wf_batch_text(batch, 9, 1);
    assert_non_null(text.ptr);
    assert_int_equal(text.len, 0);
    assert_null(wf_batch_text(batch, 9, 2).ptr);
    assert_null(wf_batch_int32(batch, 9)); /* codes of text stay inside */
    assert_null(wf_batch_int64(batch, 2));
    assert_null(wf_batch_double(batch, 99));
    char cut[4];
    assert_int_equal(wf_value_text(batch, 8, 0, cut, sizeof cut), 10);
    assert_string_equal(cut, "202");
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_null(batch);
    expect_result(result, "true|7|70|7000000000|1.25|12345678901234.5000|1.5|2.5|2024-02-29|fox\n"
                          "false|-7|-70|-7000000000|-1.25|-0.0001|-1.5|1e+30|1969-12-31|\n"
                          "~|~|~|~|~|~|~|~|~|~\n");
    run("drop table every");
}

/* Runs a query, checks its rows, and tells how often it was compiled. */
static int64_t compilations(wf_connection *of, const char *sql, const char *expect) {
    wf_result *result = NULL;
    assert_int_equal(wf_query(of, sql, &result), WF_OK);
    int64_t count = wf_result_metric(result, "compilations");
    expect_result(result, expect);
    return count;
}

/* A text that comes again is not compiled again, unless what it was compiled for has changed. */
static void test_texts_again(void **state) {
    (void)state;
    const char *sql = "select sum(x), count(*) from again where x < 100";
    run("create table again (x integer)");
    run("insert into again values (1), (2)");
    assert_int_equal(compilations(conn, sql, "3|2\n"), 1);
    assert_int_equal(compilations(conn, sql, "3|2\n"), 1); /* kept from here on */
    assert_int_equal(compilations(conn, sql, "3|2\n"), 0);
    wf_connection *other = NULL;
    assert_int_equal(wf_connect(db, &other), WF_OK);
    assert_int_equal(compilations(other, sql, "3|2\n"), 1);
    wf_disconnect(other);
    run("insert into again values (3)"); /* within the range known before or not: right anyway */
    assert_true(compilations(conn, sql, "6|3\n") <= 1);
    run("insert into again values (2000000000), (null)");
    assert_true(compilations(conn, sql, "6|3\n") <= 1);
    assert_int_equal(compilations(conn, sql, "6|3\n"), 0);
    run("set fusion = off");
    assert_int_equal(compilations(conn, sql, "6|3\n"), 1);
    assert_int_equal(compilations(conn, sql, "6|3\n"), 0);
    run("reset fusion");
    run("alter table again add column y integer");
    assert_int_equal(compilations(conn, sql, "6|3\n"), 1);
    run("drop table again");
    run("create table again (x bigint)");
    assert_int_equal(compilations(conn, sql, "~|0\n"), 1);
    wf_result *open = NULL; /* an open result outlives the place its program had */
    assert_int_equal(wf_query(conn, sql, &open), WF_OK);
    char text[64];
    for (int i = 0; i < 300; i++) {
        char expect[64];
        snprintf(text, sizeof text, "select %d", i % 100);
        snprintf(expect, sizeof expect, "%d\n", i % 100);
        assert_true(compilations(conn, text, expect) <= 1);
    }
    expect_result(open, "~|0\n");
    run("insert into again values (7)");
    run("insert into again values (7)");
    run("insert into again values (7)");
    assert_true(compilations(conn, sql, "21|3\n") >= 0);
    run("drop table again");
}

/* Texts in turn are all kept, whatever their hashes. */
static void test_texts_in_turn(void **state) {
    (void)state;
    enum { TEXTS = 60, ROUNDS = 3 };
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TEXTS; i++) {
            char text[64];
            char expect[64];
            snprintf(text, sizeof text, "select %d as in_turn", i);
            snprintf(expect, sizeof expect, "%d\n", i);
            assert_int_equal(compilations(conn, text, expect), round < 2);
        }
    }
}

/* What is kept as text can have no parameters. */
static void test_definition_parameters(void **state) {
    static const char *const texts[] = {
        "create table dp (x integer default $1)",
        "create table dp (x integer check (x > $1))",
        "create view dp as select $1::integer as x",
        "alter table d add column y integer default $1",
        "alter table d add check (x > $1)",
        "create index on d ((x + $1))",
        "copy (select $1::integer) to stdout",
    };
    (void)state;
    run("create table d (x integer)");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        wf_statement *st = NULL;
        assert_int_not_equal(wf_prepare(conn, texts[i], &st), WF_OK);
        assert_string_equal(wf_connection_error(conn)->sqlstate, "42P02");
        assert_null(st);
    }
    run("drop table d");
}

static void test_prepared(void **state) {
    (void)state;
    run("create table p (id integer, name text, price decimal(8,2), day date, ok boolean, f double "
        "precision)");
    run("insert into p values (1, 'a', 1.50, date '2024-01-01', true, 0.5),"
        " (2, 'b', 2.50, date '2024-01-02', false, 1.5), (3, null, null, null, null, null)");
    wf_statement *st = NULL;
    const char *sql = "select id from p where id >= $1 and name = $2 order by id";
    assert_int_equal(wf_prepare(conn, sql, &st), WF_OK);
    assert_int_equal(wf_statement_param_count(st), 2);
    wf_type_info info;
    assert_int_equal(wf_statement_param_type(st, 1, &info), WF_OK);
    assert_int_equal(info.type, WF_TYPE_INTEGER);
    assert_int_equal(wf_statement_param_type(st, 2, &info), WF_OK);
    assert_int_equal(info.type, WF_TYPE_TEXT);
    assert_int_equal(wf_statement_param_type(st, 3, &info), WF_MISUSE);
    assert_int_equal(wf_bind_int64(st, 1, 1), WF_OK);
    assert_int_equal(wf_bind_text(st, 2, "bxx", 1), WF_OK);
    wf_result *result;
    assert_int_equal(wf_execute(st, &result), WF_OK);
    int64_t compiled = wf_statement_compile_count(st);
    expect_result(result, "2\n");
    assert_int_equal(wf_bind_text(st, 2, "a", -1), WF_OK);
    assert_int_equal(wf_execute(st, &result), WF_OK);
    expect_result(result, "1\n");
    assert_int_equal(wf_statement_compile_count(st), compiled);
    /* outgrow what the program was compiled for: range and dictionary */
    run("insert into p values (2000000000, 'b', 9.99, date '2030-01-01', true, 1e10), (null, 'b', "
        "1, null, null, 2)");
    wf_result *kept;
    assert_int_equal(wf_bind_text(st, 2, "b", -1), WF_OK);
    assert_int_equal(wf_execute(st, &kept), WF_OK);
    /* the table goes away under the statement, and comes back */
    run("drop table p");
    assert_int_not_equal(wf_execute(st, &result), WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "42P01");
    assert_null(result);
    run("create table p (id bigint, name text)");
    run("insert into p values (5, 'b')");
    assert_int_equal(wf_execute(st, &result), WF_OK);
    expect_result(result, "5\n");
    expect_result(kept, "2\n2000000000\n");
    /* NULL parameters compare to nothing */
    assert_int_equal(wf_bind_null(st, 1), WF_OK);
    assert_int_equal(wf_execute(st, &result), WF_OK);
    expect_result(result, "");
    assert_int_equal(wf_bind_int64(st, 3, 1), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "42P02");
    wf_statement_close(st);
    run("drop table p");
}

static void test_bind_types(void **state) {
    (void)state;
    run("create table k (b boolean, s smallint, l bigint, d decimal(10,2), r real, f double "
        "precision, t date, x text)");
    wf_statement *st = NULL;
    assert_int_equal(wf_prepare(conn, "insert into k values ($1, $2, $3, $4, $5, $6, $7, $8)", &st),
                     WF_OK);
    assert_int_equal(wf_bind_bool(st, 1, 1), WF_OK);
    assert_int_equal(wf_bind_int64(st, 2, -5), WF_OK);
    assert_int_equal(wf_bind_int64(st, 3, 1LL << 60), WF_OK);
    assert_int_equal(wf_bind_decimal(st, 4, (wf_int128){12345, 0}, 2), WF_OK);
    assert_int_equal(wf_bind_double(st, 5, 0.5), WF_OK);
    assert_int_equal(wf_bind_double(st, 6, -2.25), WF_OK);
    assert_int_equal(wf_bind_date(st, 7, 0), WF_OK);
    assert_int_equal(wf_bind_text(st, 8, "zwölf", -1), WF_OK);
    wf_result *result;
    assert_int_equal(wf_execute(st, &result), WF_OK);
    assert_int_equal(wf_result_rows_affected(result), 1);
    wf_result_close(result);
    /* the same as texts, then as NULLs */
    static const char *const texts[] = {"f", "12", "-9", "7.5", "1.25", "1e10", "2020-05-06", "t"};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(wf_bind_text(st, i + 1, texts[i], -1), WF_OK);
    }
    assert_int_equal(wf_execute(st, NULL), WF_OK);
    assert_int_equal(wf_bind_reset(st), WF_OK);
    assert_int_equal(wf_execute(st, NULL), WF_OK);
    for (int i = 0; i < 7; i++) { /* each error names its parameter */
        char name[20];
        snprintf(name, sizeof name, "parameter $%d", i + 1);
        assert_int_equal(wf_bind_reset(st), WF_OK);
        assert_int_equal(wf_bind_text(st, i + 1, "nonsense", -1), WF_OK);
        assert_int_equal(wf_execute(st, NULL), WF_ERROR);
        assert_non_null(strstr(wf_connection_error(conn)->message, name));
    }
    expect("select * from k", "true|-5|1152921504606846976|123.45|0.5|-2.25|1970-01-01|zwölf\n"
                              "false|12|-9|7.50|1.25|10000000000|2020-05-06|t\n"
                              "~|~|~|~|~|~|~|~\n");
    /* what does not fit is an error at execution, and nothing is inserted */
    assert_int_equal(wf_bind_int64(st, 2, 40000), WF_OK);
    assert_int_equal(wf_execute(st, NULL), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22003");
    assert_int_equal(wf_bind_text(st, 2, "zwei", -1), WF_OK);
    assert_int_equal(wf_execute(st, NULL), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22P02");
    assert_int_equal(wf_bind_null(st, 2), WF_OK);
    assert_int_equal(wf_bind_date(st, 1, 5), WF_OK);
    assert_int_equal(wf_execute(st, NULL), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "42804");
    assert_int_equal(wf_bind_text(st, 8, "\xff", -1), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22021");
    wf_statement_close(st);
    expect("select count(*) from k", "3\n");
    run("drop table k");
    assert_int_equal(wf_prepare(conn, "select 1; select 2", &st), WF_ERROR);
    assert_null(st);
    expect_error("select $1", "42P02");
}

static void test_limit_parameter(void **state) {
    (void)state;
    run("create table q (a integer)");
    run("insert into q values (1), (2), (3), (4)");
    wf_statement *st = NULL;
    assert_int_equal(wf_prepare(conn, "select a from q order by a limit $1 offset $2", &st), WF_OK);
    assert_int_equal(wf_bind_int64(st, 1, 2), WF_OK);
    assert_int_equal(wf_bind_int64(st, 2, 1), WF_OK);
    wf_result *result;
    assert_int_equal(wf_execute(st, &result), WF_OK);
    expect_result(result, "2\n3\n");
    assert_int_equal(wf_bind_int64(st, 1, -1), WF_OK);
    assert_int_equal(wf_execute(st, &result), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "2201W");
    assert_int_equal(wf_bind_reset(st), WF_OK);
    assert_int_equal(wf_execute(st, &result), WF_OK);
    expect_result(result, "1\n2\n3\n4\n");
    wf_statement_close(st);
    run("drop table q");
}

/* A parameter that its subquery gives a type has it wherever it is looked at. */
static void test_subquery_parameter(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select count(*) from q where $1 not in (select b from q group by cube (b))",
        "select count(*) from q where ($1, a) not in (select b, a from q where b is not null)",
        "select count(*) from q where $1 <> all (select b from q)",
    };
    static const char *const answers[] = {"0\n", "2\n", "0\n"};
    run("create table q (a integer, b text)");
    run("insert into q values (1, 'x'), (2, null)");
    for (int i = 0; i < 3; i++) {
        wf_statement *st = NULL;
        wf_result *result;
        assert_int_equal(wf_prepare(conn, texts[i], &st), WF_OK);
        assert_int_equal(wf_bind_text(st, 1, "y", -1), WF_OK);
        assert_int_equal(wf_execute(st, &result), WF_OK);
        expect_result(result, answers[i]);
        assert_int_equal(wf_bind_null(st, 1), WF_OK);
        assert_int_equal(wf_execute(st, &result), WF_OK);
        expect_result(result, i == 1 ? "1\n" : "0\n");
        wf_statement_close(st);
    }
    run("drop table q");
}

static void test_error_text(void **state) {
    (void)state;
    run("create table food (id integer, fool text)");
    const char *sql = "select id,\n  foo from food";
    expect_error(sql, "42703");
    const wf_error *error = wf_connection_error(conn);
    assert_int_equal(error->line, 2);
    assert_int_equal(error->column, 3);
    char text[1000];
    size_t len = wf_error_text(error, sql, text, sizeof text);
    assert_int_equal(len, strlen(text));
    assert_non_null(strstr(text,
                           "ERROR 42703: column \"foo\" does not exist\nLINE 2:   foo from food\n"
                           "          ^"));
    assert_non_null(strstr(text, "HINT:  "));
    assert_non_null(strstr(text, "fool"));
    char cut[10];
    assert_int_equal(wf_error_text(error, sql, cut, sizeof cut), len);
    assert_string_equal(cut, "ERROR 427");
    wf_error_text(error, NULL, text, sizeof text);
    assert_null(strstr(text, "LINE"));
    /* the caret stands under the word behind wide characters, and long lines are cut around it */
    sql = "select '日本', foo from food";
    expect_error(sql, "42703");
    wf_error_text(wf_connection_error(conn), sql, text, sizeof text);
    assert_non_null(strstr(text, "\n                       ^"));
    char wide[500];
    snprintf(wide, sizeof wide, "select %0120d, foo, %0120d from food", 1, 2);
    expect_error(wide, "42703");
    wf_error_text(wf_connection_error(conn), wide, text, sizeof text);
    assert_non_null(strstr(text, "LINE 1: ..."));
    const char *caret = strstr(text, "^");
    const char *line = strstr(text, "LINE 1");
    const char *caret_line = strchr(line, '\n') + 1;
    assert_memory_equal(line + (caret - caret_line), "foo", 3);
    /* success clears the slot */
    run("select 1");
    assert_int_equal(wf_connection_error(conn)->status, WF_OK);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "00000");
    run("drop table food");
}

static void test_display_width(void **state) {
    (void)state;
    assert_int_equal(wf_display_width("abc", 3), 3);
    assert_int_equal(wf_display_width("日本", 6), 4);
    assert_int_equal(wf_display_width("e\xcc\x81", 3), 1);
    assert_int_equal(wf_display_width("ä", 2), 1);
    assert_int_equal(wf_display_width("🦊", 4), 2);
    assert_int_equal(wf_display_width("\xff", 1), 1);
}

static void expect_scan(const char *text, size_t end, int blank) {
    int got = -1;
    assert_int_equal(wf_scan_statement(text, strlen(text), &got), end);
    assert_int_equal(got, blank);
}

static void test_scan(void **state) {
    (void)state;
    expect_scan("select 1; select 2", 9, 0);
    expect_scan("select 1", 0, 0);
    expect_scan("", 0, 1);
    expect_scan(" ;x", 2, 1);
    expect_scan("-- a;\n;", 7, 1);
    expect_scan("/* ; /* ; */ ; */ ;", 19, 1);
    expect_scan("/* open ;", 0, 0);
    expect_scan("select ';''; ';x", 15, 0);
    expect_scan("select E'\\';';x", 14, 0);
    expect_scan("select e';';", 12, 0);
    expect_scan("select \"a;\"\"\";x", 14, 0);
    expect_scan("select $$;$$;x", 13, 0);
    expect_scan("select $a$;$$;$a$;x", 18, 0);
    expect_scan("select $1;x", 10, 0);
    expect_scan("select a$b;x", 11, 0);
    expect_scan("select 'open;", 0, 0);
}

static void test_settings(void **state) {
    (void)state;
    run("set vector_rows = 16");
    expect("show vector_rows", "16\n");
    run("reset vector_rows");
    expect("show vector_rows", "1024\n");
    assert_int_equal(wf_set(conn, "fusion", "off"), WF_OK);
    expect("show fusion", "off\n");
    assert_int_equal(wf_set(conn, "fusion", "maybe"), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22023");
    expect_error("set fussion = on", "42704");
    assert_non_null(strstr(wf_connection_error(conn)->hint, "fusion"));
    expect_error("show fussion", "42704");
    expect_error("set memory = '1GB'", "22023");
    run("reset all");
    expect("show fusion", "on\n");
    wf_result *result = query("show all");
    assert_int_equal(wf_result_column_count(result), 3);
    assert_true(wf_result_row_count(result) > 10);
    wf_result_close(result);
    expect_error("set tablet_rows = 1000", "22023");
}

static void test_ddl(void **state) {
    (void)state;
    run("create table d1 (a integer); create table d2 (a integer not null)");
    expect_error("create table d1 (b text)", "42P07");
    run("create table if not exists d1 (b text)");
    expect("show tables", "d1\nd2\n");
    expect_error("drop table d1, nothing", "42P01");
    expect("show tables", "d1\nd2\n");
    expect_error("insert into d2 values (1), (null)", "23502");
    expect("select count(*) from d2", "0\n");
    expect_error("select * from d3", "42P01");
    assert_non_null(strstr(wf_connection_error(conn)->hint, "d"));
    run("drop table if exists d1, nothing, d2");
    expect("show tables", "");
}

/* Texts of an answer in order are taken from their tablets in batches, the last of them short. */
static void test_ordered_texts(void **state) {
    (void)state;
    run("set tablet_rows = 1024");
    run("create table ot as select i a, 'a text of its own ' || i s, (i * 7919) % 8009 b, "
        "'another ' || i t, i c from generate_series(0, 8008) g(i)");
    wf_result *result = query("select a, s, t, c from ot where a % 3 <> 0 order by b");
    const wf_batch *batch = NULL;
    int64_t rows = 0;
    int64_t before = -1;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++, rows++) {
            char expected[60];
            char got[60];
            int32_t a = wf_batch_int32(batch, 0)[i];
            int64_t key = (int64_t)a * 7919 % 8009;
            assert_true(key > before);
            before = key;
            snprintf(expected, sizeof expected, "a text of its own %d", (int)a);
            wf_value_text(batch, 1, i, got, sizeof got);
            assert_string_equal(got, expected);
            snprintf(expected, sizeof expected, "another %d", (int)a);
            wf_value_text(batch, 2, i, got, sizeof got);
            assert_string_equal(got, expected);
        }
    }
    assert_int_equal(rows, 5339);
    wf_result_close(result);
    run("drop table ot; set tablet_rows = default");
}

static void test_explain(void **state) {
    (void)state;
    run("create table e (a integer, b integer)");
    run("insert into e values (1, 2), (3, 4)");
    static const char *const levels[] = {"explain select sum(a) from e where b > 2",
                                         "explain (program) select sum(a) from e where b > 2",
                                         "explain (opcodes) select sum(a) from e where b > 2",
                                         "explain analyze select sum(a) from e where b > 2"};
    for (int i = 0; i < 4; i++) {
        wf_result *result = query(levels[i]);
        assert_int_equal(wf_result_column_count(result), 1);
        assert_string_equal(wf_result_name(result, 0), "plan");
        assert_true(wf_result_row_count(result) >= 2);
        char *text = flat(result);
        assert_true(strlen(text) > 20);
        free(text);
        wf_result_close(result);
    }
    wf_result *analyzed = query("explain analyze select a from e where b > 2");
    char *lines = flat(analyzed);
    assert_non_null(strstr(lines, "Filter b > 2  [~"));
    assert_non_null(strstr(lines, "rows, actual 1]"));
    assert_non_null(strstr(lines, "time      floor    rows in"));
    assert_non_null(strstr(lines, "of its floor"));
    const char *step = strstr(lines, "\n   0 ");
    assert_non_null(step); /* its time and the floor of that, both with their unit */
    float took = 0;
    float least = -1;
    assert_int_equal(sscanf(step, " 0 %f ms %f ms", &took, &least), 2);
    assert_true(least >= 0 && least <= took);
    assert_non_null(strstr(lines, "floors: cpu "));
    assert_non_null(strstr(lines, "device = cpu"));
    assert_non_null(strstr(lines, "1 row in "));
    assert_non_null(strstr(lines, "peak memory"));
    free(lines);
    wf_result_close(analyzed);
    run("explain insert into e values (5, 6)");
    expect("select count(*) from e", "2\n");
    run("explain analyze insert into e values (5, 6)");
    expect("select count(*) from e", "3\n");
    run("drop table e");
}

static void test_append(void **state) {
    (void)state;
    run("create table ap (i integer, x text, d decimal(4,1), b boolean)");
    int32_t is[] = {1, 2, 3};
    wf_text xs[] = {{"one", 3}, {NULL, 0}, {"three", 5}};
    uint8_t x_nulls[] = {0, 1, 0};
    int64_t ds[] = {15, -9999, 0};
    uint8_t bs[] = {1, 0, 1};
    wf_input in[] = {{is, NULL}, {xs, x_nulls}, {ds, NULL}, {bs, NULL}};
    assert_int_equal(wf_append(conn, "ap", 3, 4, in), WF_OK);
    expect("select * from ap order by i", "1|one|1.5|true\n2|~|-999.9|false\n3|three|0.0|true\n");
    assert_int_equal(wf_append(conn, "ap", 3, 3, in), WF_MISUSE);
    assert_int_equal(wf_append(conn, "nope", 3, 4, in), WF_ERROR);
    ds[1] = 10000;
    assert_int_equal(wf_append(conn, "ap", 3, 4, in), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22003");
    ds[1] = 0;
    bs[0] = 2;
    assert_int_equal(wf_append(conn, "ap", 3, 4, in), WF_ERROR);
    bs[0] = 1;
    xs[0] = (wf_text){"\xc3(", 2};
    assert_int_equal(wf_append(conn, "ap", 3, 4, in), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "22021");
    expect("select count(*) from ap", "3\n");
    run("drop table ap");
}

/* Enough rows for several tablets: they are made in parallel. */
static void test_append_many(void **state) {
    (void)state;
    enum { ROWS = 300000 };
    int64_t *values = malloc(sizeof(int64_t) * ROWS);
    int64_t sum = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        values[i] = i * 7 % 1000;
        sum += values[i];
    }
    run("set tablet_rows = 16384; create table many (a bigint)");
    wf_input in = {values, NULL};
    assert_int_equal(wf_append(conn, "many", ROWS, 1, &in), WF_OK);
    char expected[100];
    snprintf(expected, sizeof expected, "%d|%lld\n", ROWS, (long long)sum);
    expect("select count(*), sum(a) from many", expected);
    run("insert into many select a from many where a < 500");
    wf_result *result = query("select a from many");
    const wf_batch *batch;
    int64_t rows = 0;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        rows += wf_batch_rows(batch);
    }
    assert_int_equal(rows, ROWS + ROWS / 2);
    assert_int_equal(wf_result_row_count(result), rows);
    assert_int_equal(wf_result_seek(result, 123456), WF_OK);
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_int_equal(wf_batch_int64(batch, 0)[0], values[123456]);
    assert_int_equal(wf_result_seek(result, 3), WF_OK);
    assert_int_equal(wf_result_next_batch(result, &batch), WF_OK);
    assert_int_equal(wf_batch_int64(batch, 0)[0], 21);
    wf_result_close(result);
    run("drop table many; reset tablet_rows");
    free(values);
}

static void test_outlives(void **state) {
    (void)state;
    wf_database *other;
    wf_connection *c;
    assert_int_equal(wf_open(NULL, NULL, &other, NULL), WF_OK);
    assert_int_equal(wf_connect(other, &c), WF_OK);
    wf_result_close(query_on(c, "create table t (a integer, x text)"));
    wf_result_close(query_on(c, "insert into t values (1, 'x'), (2, 'y')"));
    wf_result *result = query_on(c, "select a, x from t order by a");
    wf_statement *st;
    assert_int_equal(wf_prepare(c, "select a from t", &st), WF_OK);
    wf_result_close(query_on(c, "drop table t"));
    wf_disconnect(c);
    wf_close(other);
    expect_result(result, "1|x\n2|y\n");
    wf_statement_close(st);
}

static int collect_names(void *arg, const char *name) {
    strcat(strcat(arg, name), " ");
    return 0;
}

static int collect_columns(void *arg, const char *name, const char *type_text, int not_null) {
    strcat(strcat(arg, name), ":");
    strcat(strcat(arg, type_text), not_null ? "! " : " ");
    return 0;
}

static void test_names(void **state) {
    (void)state;
    run("create table n2 (a integer not null, d decimal(5,2)); create table n1 (x text)");
    char out[200] = "";
    assert_int_equal(wf_tables(conn, collect_names, out), WF_OK);
    assert_string_equal(out, "n1 n2 ");
    out[0] = 0;
    assert_int_equal(wf_columns(conn, "n2", collect_columns, out), WF_OK);
    assert_string_equal(out, "a:integer! d:decimal(5,2) ");
    assert_int_equal(wf_columns(conn, "n3", collect_columns, out), WF_ERROR);
    bool has_select = false;
    for (int32_t i = 0; wf_keyword(i); i++) {
        has_select = has_select || strcmp(wf_keyword(i), "select") == 0 ||
                     strcmp(wf_keyword(i), "SELECT") == 0;
    }
    assert_true(has_select);
    run("drop table n1, n2");
}

struct cancel_job {
    wf_connection *c;
    _Atomic int go;
};

static void cancel_soon(void *arg) {
    struct cancel_job *job = arg;
    while (!job->go) {
    }
    i64 until = clock_ns() + 50000000;
    while (clock_ns() < until) {
    }
    wf_cancel(job->c);
}

static void count_reports(void *arg, double fraction, int64_t elapsed_ns) {
    int *count = arg;
    assert_true(fraction <= 1);
    assert_true(elapsed_ns > 0);
    ++*count;
}

/* A join that would take very long: N:M over one key. */
static void make_slow(void) {
    enum { ROWS = 200000 };
    int32_t *zeros = calloc(ROWS, sizeof(int32_t));
    run("create table slow (a integer)");
    wf_input in = {zeros, NULL};
    assert_int_equal(wf_append(conn, "slow", ROWS, 1, &in), WF_OK);
    free(zeros);
}

static const char *const slow_query = "select sum(x.a + y.a) from slow x join slow y on x.a = y.a";

static void test_cancel(void **state) {
    (void)state;
    make_slow();
    int reports = 0;
    assert_int_equal(wf_set_progress(conn, count_reports, &reports, 10), WF_OK);
    struct cancel_job job = {conn, 0};
    struct thread *thread = thread_start(cancel_soon, &job);
    assert_non_null(thread);
    job.go = 1;
    i64 start = clock_ns();
    wf_result *result;
    assert_int_equal(wf_query(conn, slow_query, &result), WF_CANCELLED);
    assert_true(clock_ns() - start < 5000000000);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "57014");
    thread_join(thread);
    assert_true(reports > 0);
    assert_int_equal(wf_set_progress(conn, NULL, NULL, 0), WF_OK);
    expect("select count(*) from slow", "200000\n"); /* usable at once */
    wf_cancel(conn);                                 /* nothing runs: nothing happens */
    expect("select count(*) from slow", "200000\n");
    run("set statement_timeout = 50");
    expect_error(slow_query, "57014");
    run("set statement_timeout = 0");
    run("drop table slow");
}

struct reports {
    int count, known, back;
    double last;
};

static void note_report(void *arg, double fraction, int64_t elapsed_ns) {
    struct reports *r = arg;
    (void)elapsed_ns;
    r->count++;
    if (fraction >= 0) {
        r->known++;
        r->back += fraction < r->last;
        r->last = fraction;
    }
}

/* How far a statement is, while it sorts, joins, writes a file: known, and never less than before.
 */
static void test_progress(void **state) {
    (void)state;
    static const char *const queries[] = {
        "copy (select * from pro order by b, s) to '/dev/null'", "copy pro to '/dev/null'",
        "select b, s from pro order by s, b", "select count(*) from pro x join pro y on x.b = y.b",
        ("create table pro2 as select a, row_number() over (partition by b % 10 order by s) from "
         "pro")};
    run("create table pro as select i as a, (i::bigint * 7919) % 100003 as b, 'x' || i as s from "
        "generate_series(1, 300000) g(i)");
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        struct reports r = {0};
        for (int tries = 0; tries < 40 && r.known == 0; tries++) { /* others may want the cores */
            wf_result *result = NULL;
            r.last = 0;
            run("drop table if exists pro2");
            assert_int_equal(wf_set_progress(conn, note_report, &r, 1), WF_OK);
            assert_int_equal(wf_query(conn, queries[i], &result), WF_OK);
            wf_result_close(result);
            assert_int_equal(wf_set_progress(conn, NULL, NULL, 0), WF_OK);
        }
        if (r.known == 0 || r.back || r.last <= 0) {
            fail_msg("%s: %d reports, %d known, %d went back, the last %g", queries[i], r.count,
                     r.known, r.back, r.last);
        }
    }
    run("drop table pro, pro2");
}

struct session {
    int number;
    int failures;
};

static void run_session(void *arg) {
    struct session *s = arg;
    wf_connection *c = NULL;
    s->failures = wf_connect(db, &c) != WF_OK;
    for (int i = 0; i < 30 && !s->failures; i++) {
        char sql[300];
        snprintf(
            sql, sizeof sql,
            "create table p%d (a integer, x text); insert into p%d values (%d, 'v%d'), (2, 'w');"
            " select sum(a) from shared_t where a <= %d",
            s->number, s->number, i, i, i);
        wf_result *result = NULL;
        const wf_batch *batch = NULL;
        s->failures += wf_query(c, sql, &result) != WF_OK;
        s->failures += wf_result_next_batch(result, &batch) != WF_OK || !batch ||
                       wf_batch_int64(batch, 0)[0] != i * (i + 1) / 2;
        wf_result_close(result);
        snprintf(sql, sizeof sql, "drop table p%d", s->number);
        s->failures += wf_query(c, sql, NULL) != WF_OK;
    }
    wf_disconnect(c);
}

static void test_parallel_sessions(void **state) {
    (void)state;
    run("create table shared_t (a integer)");
    for (int i = 0; i < 40; i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "insert into shared_t values (%d)", i);
        run(sql);
    }
    enum { SESSIONS = 6 };
    struct session sessions[SESSIONS] = {{0, 0}};
    struct thread *threads[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i].number = i;
        threads[i] = thread_start(run_session, &sessions[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
        assert_int_equal(sessions[i].failures, 0);
    }
    run("drop table shared_t");
    expect("show tables", "");
}

/* Everything a definition can say, as it is told; and what is told makes the same thing again. */
static const struct definition {
    const char *name, *text;
} definitions[] = {
    {"q", "CREATE TABLE q (\n    k integer NOT NULL,\n    CONSTRAINT q_pkey PRIMARY KEY (k)\n);\n"},
    {"o.p",
     "CREATE TABLE o.p (\n    a integer NOT NULL,\n    b integer NOT NULL,\n    c integer NOT "
     "NULL,\n    CONSTRAINT p_pkey PRIMARY KEY (a, b, c)\n);\n"},
    {"r",
     "CREATE TABLE r (\n"
     "    x serial,\n"
     "    y bigserial,\n"
     "    z smallserial,\n"
     "    id integer NOT NULL GENERATED ALWAYS AS IDENTITY,\n"
     "    i2 bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY,\n"
     "    a integer,\n"
     "    b integer DEFAULT 4 + 1,\n"
     "    c integer,\n"
     "    \"Odd \"\"name\" varchar(5) NOT NULL DEFAULT 'it''s',\n"
     "    \"select\" decimal(7,2),\n"
     "    e integer,\n"
     "    CONSTRAINT u1 UNIQUE (a, b) DEFERRABLE,\n"
     "    CONSTRAINT u2 UNIQUE (e) DEFERRABLE INITIALLY DEFERRED,\n"
     "    CONSTRAINT u3 UNIQUE (b),\n"
     "    CONSTRAINT r_a_check CHECK (a > 0),\n"
     "    CONSTRAINT r_check CHECK (a < b),\n"
     "    CONSTRAINT r_e_fkey FOREIGN KEY (e) REFERENCES q (k) DEFERRABLE INITIALLY DEFERRED,\n"
     "    CONSTRAINT \"F\" FOREIGN KEY (a, b, c) REFERENCES o.p (a, b, c) ON UPDATE CASCADE ON "
     "DELETE SET NULL (b, c),\n"
     "    CONSTRAINT r_a_fkey FOREIGN KEY (a) REFERENCES q (k) MATCH FULL ON DELETE RESTRICT,\n"
     "    CONSTRAINT r_c_fkey FOREIGN KEY (c) REFERENCES q (k) ON UPDATE SET NULL ON DELETE SET "
     "DEFAULT,\n"
     "    CONSTRAINT own FOREIGN KEY (a) REFERENCES r (b)\n"
     ");\n"},
    {"ui", "CREATE UNIQUE INDEX ui ON r (c, a);\n"},
    {"pi", "CREATE INDEX pi ON r (b);\n"},
    {"s", "CREATE SEQUENCE s AS smallint START WITH 5 INCREMENT BY -2 MINVALUE -10 MAXVALUE 7 "
          "CYCLE;\n"},
    {"v", "CREATE VIEW v (one, \"Two\") AS select a, b from r where a > 1;\n"},
    {"w", "CREATE VIEW w (x) AS select 1 AS x;\n"},
    {"tt", "CREATE TEMPORARY TABLE tt (\n    a integer\n);\n"},
};

static void test_definitions(void **state) {
    (void)state;
    char *text = NULL;
    for (int round = 0; round < 2; round++) {
        run("create schema o");
        for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++) {
            run(definitions[i].text);
            assert_int_equal(wf_describe(conn, definitions[i].name, &text), WF_OK);
            assert_string_equal(text, definitions[i].text);
            wf_free(text);
        }
        run("comment on table q is 'keys'");
        assert_int_equal(wf_describe(conn, "PUBLIC.Q", &text), WF_OK);
        assert_string_equal(text + strlen(definitions[0].text), "-- keys\n");
        wf_free(text);
        run("alter table r alter column x drop default, alter y drop not null");
        assert_int_equal(wf_describe(conn, "R", &text), WF_OK);
        assert_non_null(strstr(text, "    x integer NOT NULL,\n    y bigint DEFAULT nextval("));
        wf_free(text);
        run("drop schema o cascade; drop table r, tt cascade; drop table q; drop sequence s; "
            "drop view w");
    }
    assert_int_equal(wf_describe(conn, "nothing", &text), WF_ERROR);
    assert_null(text);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "42P01");
    assert_int_equal(wf_describe(conn, "no.thing", &text), WF_ERROR);
    assert_string_equal(wf_connection_error(conn)->sqlstate, "42P01");
    assert_int_equal(wf_describe(conn, NULL, &text), WF_MISUSE);
    assert_int_equal(wf_describe(conn, "q", NULL), WF_MISUSE);
}

/* Each reservation refused once on the way through a transaction: it can be given up, and nothing
 * of it stays. */
static void test_transaction_refused(void **state) {
    (void)state;
    run("create table u (k integer)");
    bool reached = true;
    for (int64_t nth = 1; reached; nth++) {
        memory_fail_at(nth);
        wf_status status = wf_query(conn,
                                    "begin; savepoint a; insert into u values (1); savepoint b; "
                                    "rollback to b; release a; rollback",
                                    NULL);
        reached = memory_fail_at(0) >= nth;
        assert_true(status == WF_OK || (reached && status == WF_NO_MEMORY));
        if (status) {
            assert_int_equal(wf_query(conn, "rollback", NULL), WF_OK);
        }
        expect("select count(*) from u", "0\n");
    }
    run("drop table u");
}

static void test_memory_refused(void **state) {
    (void)state;
    wf_option options[] = {{"device", "cpu"}, {"memory", "16MB"}, {NULL, NULL}};
    wf_database *small;
    wf_connection *c;
    assert_int_equal(wf_open(NULL, options, &small, NULL), WF_OK);
    assert_int_equal(wf_connect(small, &c), WF_OK);
    wf_result_close(query_on(c, "create table t (a bigint)"));
    enum { ROWS = 400000 };
    int64_t *values = malloc(sizeof(int64_t) * ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        values[i] = i * 1000003 * 1000003;
    }
    wf_input in = {values, NULL};
    wf_status status = WF_OK;
    for (int i = 0; i < 20 && status == WF_OK; i++) {
        status = wf_append(c, "t", ROWS, 1, &in);
    }
    assert_int_equal(status, WF_NO_MEMORY);
    assert_string_equal(wf_connection_error(c)->sqlstate, "53200");
    assert_non_null(strstr(wf_connection_error(c)->hint, "memory"));
    wf_result_close(query_on(c, "drop table t"));
    expect_result(query_on(c, "select 1 + 1"), "2\n");
    wf_disconnect(c);
    wf_close(small);
    free(values);
}

static void test_memory_returns(void **state) {
    (void)state;
    run("create table m (a integer, x text); insert into m values (1, 'a'), (2, 'b')");
    int64_t before = 0;
    for (int i = 0; i < 23; i++) {
        before = i < 4 ? wf_memory_used(db) : before; /* texts that come again are kept by then */
        expect("select x, sum(a) from m group by x order by x", "a|1\nb|2\n");
        expect_error("select nothing from m", "42703");
        expect_error("select a / 0 from m", "22012");
    }
    assert_int_equal(wf_memory_used(db), before);
    run("drop table m");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_nothing_given),
        cmocka_unit_test(test_error_places),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_no_columns),
        cmocka_unit_test(test_query_each),
        cmocka_unit_test(test_typed_access),
        cmocka_unit_test(test_texts_again),
        cmocka_unit_test(test_texts_in_turn),
        cmocka_unit_test(test_definition_parameters),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_bind_types),
        cmocka_unit_test(test_limit_parameter),
        cmocka_unit_test(test_subquery_parameter),
        cmocka_unit_test(test_error_text),
        cmocka_unit_test(test_display_width),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_ddl),
        cmocka_unit_test(test_ordered_texts),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_many),
        cmocka_unit_test(test_outlives),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_parallel_sessions),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_memory_returns),
        cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_transaction_refused),
    };
    return cmocka_run_group_tests(tests, open_db, close_db);
}
