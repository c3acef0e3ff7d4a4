/* test_fault_memory.c: the n-th memory reservation fails, for every n.
 *
 * Each statement of the workload runs with its first reservation refused, then with its second, and
 * so on until it passes untouched. Every attempt must succeed or be a plain 53200, give back all
 * its memory, leave the tables as they were, and leave a session whose next answers are right. The
 * leak checker watches what the counter cannot see. A second test does the same to the whole life
 * of a database, from opening to closing. */
#include "fault.h"

static char csv_path[300];

/* A statement, how to undo it (NULL: it changes nothing), and what a look at the tables must show
 * when it failed and when it passed. */
struct piece {
    const char *sql;
    const char *undo;
    const char *look;
    const char *before;
    const char *after;
};

#define LOOK_T "select count(*), sum(a), min(s) from t"
#define T_ROWS "1500|1124250|s0;"

/* A table with a key and one that refers to it, as they were. */
#define KEYED                                                                                   \
    "drop table if exists child, keyed cascade; create table keyed (k int primary key, v text " \
    "check (length(v) < 90)); insert into keyed select a, s from t where a < 200; "             \
    "create table child (k int references keyed)"
#define KEYED_ROWS "200|19900|s9;"

/* Rows that refer to each other, one after the other. */
#define CHAIN                                                                             \
    "drop table if exists chain cascade; create table chain (id int primary key, p int "  \
    "references chain on delete cascade on update cascade); insert into chain select i, " \
    "nullif(i - 1, 0) from generate_series(1, 60) i; create view links as select * from chain"

static const struct piece pieces[] = {
    {"create table made (a int, b text not null, c decimal(10,2))", "drop table if exists made",
     "select count(*) from t", "1500;", "1500;"},
    {"drop table if exists absent, gone", "create table if not exists gone (a int)", NULL, NULL,
     NULL},
    {"insert into u values (7, 'seven'), (8, null), (9, 'seven')",
     "drop table u; create table u (k int, t text)", "select count(*), min(k) from u", "0|~;",
     "3|7;"},
    {"insert into u select a, 'new ' || s from t where a < 400",
     "drop table u; create table u (k int, t text)", "select count(*), max(t) from u", "0|~;",
     "400|new s9;"},
    {"select count(*), min(column2) from 'FILE'", NULL, LOOK_T, T_ROWS, T_ROWS},
    {"create table made as select column2, column0 from 'FILE'", "drop table if exists made",
     LOOK_T, T_ROWS, T_ROWS},
    {"insert into u select column1, column2 || '!' from read_csv('FILE', comment => '#', types => "
     "{'column1': 'int'})",
     "drop table u; create table u (k int, t text)", "select count(*), max(t) from u", "0|~;",
     "3000|text 999!;"},
    {"copy loaded from 'FILE'", "drop table loaded; create table loaded (i bigint, j int, s text)",
     "select count(*), sum(i), min(s) from loaded", "0|~|~;", "3000|4498500|text 0;"},
    {"update keyed set k = k + 1000, v = v || 'x' where k % 2 = 0 returning v", KEYED,
     "select count(*), sum(k), max(v) from keyed", KEYED_ROWS, "200|119900|s9x;"},
    {"delete from keyed where k < 5 returning k, v", KEYED,
     "select count(*), sum(k), max(v) from keyed", KEYED_ROWS, "195|19890|s9;"},
    {"insert into keyed values (3, 'three'), (500, 'zoo') on conflict (k) do update set v = "
     "excluded.v returning k",
     KEYED, "select count(*), sum(k), max(v) from keyed", KEYED_ROWS, "201|20400|zoo;"},
    {"insert into child select a from t where a < 20", KEYED, "select count(*) from child", "0;",
     "20;"},
    {"alter table keyed add column w integer default 5", KEYED,
     "select count(*), sum(k), max(v) from keyed", KEYED_ROWS, KEYED_ROWS},
    {"alter table child alter column k type bigint", KEYED, NULL, NULL, NULL},
    {"call logiql('lq(1, 2). lq(2, 3). lp(x, y) <- lq(x, y). lp(x, z) <- lp(x, y), lq(y, z). "
     "!(lp(x, x)).')",
     "drop table if exists lq cascade", LOOK_T, T_ROWS, T_ROWS},
    {"select count(*) from logiql('f[x] = y <- keyed(x, y). _(x) <- f[x] = _.')", KEYED, LOOK_T,
     T_ROWS, T_ROWS},
    {"insert into u select x, y from logiql('f[x] = y <- keyed(x, y) ; keyed(z, y), x = z + 200. "
     "_(x, y) <- f[x] = y.')",
     "drop table u; create table u (k int, t text); " KEYED, "select count(*), max(t) from u",
     "0|~;", "400|s9;"},
    {"create view seen as select k from keyed where k > 3", KEYED,
     "select count(*), sum(k), max(v) from keyed", KEYED_ROWS, KEYED_ROWS},
    {"create table copied (id serial, k int references keyed)",
     "drop table if exists copied; " KEYED, NULL, NULL, NULL},
    {"delete from chain where id = 20", CHAIN, "select count(*), sum(p) from chain", "60|1770;",
     "19|171;"},
    {"update chain set id = id + 100 where id % 3 = 0", CHAIN, "select count(*), sum(p) from chain",
     "60|1770;", "60|3670;"},
    {"alter table chain drop column id cascade", CHAIN, "select count(*), sum(p) from chain",
     "60|1770;", "60|1770;"},
    {"drop table chain cascade", CHAIN, NULL, NULL, NULL},
    {"create table chained (like chain including all, last int)",
     "drop table if exists chained; " CHAIN, "select count(*) from links", "60;", "60;"},
    {"truncate child, keyed", KEYED, "select count(*) from child", "0;", "0;"},
    {"select a, b, s from t where a > 10 and b < 700.5 and s <> 's3'", NULL, LOOK_T, T_ROWS,
     T_ROWS},
    {"select s, b8, count(*), sum(a), avg(b), min(d), max(s) from t group by s, b8", NULL, NULL,
     NULL, NULL},
    {"select a % 100, max(s), sum(a) from t group by 1 having count(*) > 3", NULL, NULL, NULL,
     NULL},
    {"select t.a, v.a, v.s from t join t v on t.g = v.g where t.a < 100", NULL, NULL, NULL, NULL},
    {"select t.s, count(*) from t join t v on t.s = v.s group by t.s", NULL, NULL, NULL, NULL},
    {"select x.a, y.b from t x, t y, w where x.a = y.a and y.g = w.k", NULL, NULL, NULL, NULL},
    {"select * from t order by s desc, b, a limit 700 offset 5", NULL, NULL, NULL, NULL},
    {"select distinct s, g from t order by 1, 2", NULL, NULL, NULL, NULL},
    {"select upper(s), lower(s) || '-' || a, substring(s from 2 for 1), length(s), s like 's%1' "
     "from t",
     NULL, NULL, NULL, NULL},
    {"select cast(a as text), cast(s || '' as text), cast(b as integer), cast('12' as smallint), "
     "cast(a as decimal(12,3)), d + 1 from t",
     NULL, NULL, NULL, NULL},
    {"select case when a in (1, 2, 3, 5, 8) then s when b8 then 'yes' else coalesce(n, 'none') end "
     "from t",
     NULL, NULL, NULL, NULL},
    {"explain select s, count(*) from t group by s", NULL, NULL, NULL, NULL},
    {"explain (program, opcodes) select s, count(*) from t where a > 5 group by s order by 2", NULL,
     NULL, NULL, NULL},
    {"explain analyze select v.s, count(*) from t join t v on t.g = v.g group by v.s", NULL, NULL,
     NULL, NULL},
    {"explain (cuda) select a from t where a > 3", NULL, NULL, NULL, NULL},
    {"show all", NULL, NULL, NULL, NULL},
    {"show tables", NULL, NULL, NULL, NULL},
    {"set vector_rows = 64", "set vector_rows = default", NULL, NULL, NULL},
    {"values (1, 'a'), (2, 'b'), (3, null) order by 1 desc", NULL, NULL, NULL, NULL},
};

static void make_tables(wf_connection *conn) {
    make_control(conn);
    run(conn, "create table w (k int)");
    run(conn, "insert into w values (0), (1), (2), (3)");
    run(conn, "create table u (k int, t text)");
    run(conn, "create table gone (a int)");
    run(conn, "create table loaded (i bigint, j int, s text)");
    run(conn, "create table seed (i bigint, j int, s text)");
    char sql[500];
    snprintf(sql, sizeof sql, "copy seed from '%s'", csv_path);
    run(conn, sql);
    run(conn,
        "create table t (a int, g int, b double precision, s text, n text, b8 boolean, d date)");
    run(conn,
        "insert into t select i, i % 50, i / 2.0, 's' || (i % 13), case when i % 3 = 0 then s end, "
        "i % 2 = 0, date '2000-01-01' + cast(i as int) from seed where i < 1500");
    run(conn, KEYED);
    run(conn, CHAIN);
    expect(conn, LOOK_T, T_ROWS);
}

static void check_look(wf_connection *conn, const struct piece *piece, bool passed) {
    if (piece->look) {
        expect(conn, piece->look, passed ? piece->after : piece->before);
    }
}

/* One attempt with the n-th reservation refused; false when there were fewer. */
static bool attempt(struct fault_db f, const struct piece *piece, const char *sql, int64_t nth) {
    int64_t used = wf_memory_used(f.db);
    memory_fail_at(nth);
    wf_result *result = NULL;
    wf_status status = wf_query(f.conn, sql, &result);
    bool reached = memory_fail_at(0) >= nth;
    if (status && (!reached || status != WF_NO_MEMORY)) {
        fprintf(stderr, "reservation %lld:\n", (long long)nth);
        show_error(f.conn, sql);
    }
    if (status) {
        assert_true(reached);
        assert_int_equal(status, WF_NO_MEMORY);
        assert_string_equal(wf_connection_error(f.conn)->sqlstate, "53200");
        assert_null(result);
    }
    wf_result_close(result);
    check_look(f.conn, piece, !status);
    check_control(f.conn);
    if (piece->undo) { /* dictionaries may keep strings of rows that never came */
        run(f.conn, piece->undo);
    }
    if (wf_memory_used(f.db) != used && nth != INT64_MAX) {
        fprintf(stderr, "reservation %lld of %s: %lld bytes before, %lld after\n", (long long)nth,
                sql, (long long)used, (long long)wf_memory_used(f.db));
        assert_int_equal(wf_memory_used(f.db), used);
    }
    return reached;
}

static void each_reservation(struct fault_db f, const struct piece *piece) {
    char buf[700];
    const char *sql = with_file(piece->sql, csv_path, buf);
    attempt(f, piece, sql, INT64_MAX); /* once untouched: caches are filled */
    int64_t nth = 1;
    while (attempt(f, piece, sql, nth)) {
        nth += nth < 300 ? 1 : nth / 100;
    }
}

static void test_every_statement(void **state) {
    (void)state;
    static const char *const threads[] = {"1", "3"};
    for (int i = 0; i < 2; i++) {
        struct fault_db f = open_with(threads[i], NULL);
        run(f.conn, i ? "set tablet_rows = 256" : "set tablet_rows = 1048576");
        run(f.conn, i ? "set morsel_rows = 128" : "set morsel_rows = 65536");
        make_tables(f.conn);
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            int64_t start = clock_ns();
            each_reservation(f, &pieces[p]);
            if (getenv("FAULT_VERBOSE")) {
                fprintf(stderr, "%6lld ms %.60s\n", (long long)((clock_ns() - start) / 1000000),
                        pieces[p].sql);
            }
        }
        close_both(f);
    }
}

/* Prepared: every call may be the one that fails. */
static wf_status use_prepared(wf_connection *conn, char *out, size_t cap) {
    wf_statement *statement = NULL;
    wf_result *result = NULL;
    out[0] = 0;
    wf_status status = wf_prepare(
        conn, "select s || $2, sum(b) from t where a < $1 and s >= $2 group by s order by 1",
        &statement);
    for (int64_t i = 0; i < 2 && !status; i++) {
        status = wf_bind_int64(statement, 1, 20 + i);
        if (!status) {
            status = wf_bind_text(statement, 2, i ? "s8" : "a text longer than a few bytes", -1);
        }
        if (!status) {
            status = wf_execute(statement, &result);
        }
        if (!status && i == 1) {
            flatten(result, out, cap);
        }
        wf_result_close(result);
        result = NULL;
    }
    wf_statement_close(statement);
    return status;
}

static void test_prepared(void **state) {
    (void)state;
    struct fault_db f = open_with("2", NULL);
    make_tables(f.conn);
    char want[1000];
    char got[1000];
    assert_int_equal(use_prepared(f.conn, want, sizeof want), WF_OK);
    bool reached = true;
    for (int64_t nth = 1; reached; nth++) {
        int64_t used = wf_memory_used(f.db);
        memory_fail_at(nth);
        wf_status status = use_prepared(f.conn, got, sizeof got);
        reached = memory_fail_at(0) >= nth;
        assert_true(status == WF_OK || (reached && status == WF_NO_MEMORY));
        if (!status) {
            assert_string_equal(got, want);
        }
        assert_int_equal(wf_memory_used(f.db), used);
        check_control(f.conn);
    }
    close_both(f);
}

static wf_status append_three(wf_connection *conn) {
    static const int32_t keys[] = {1, 2, 3};
    static const wf_text texts[] = {{"x", 1}, {"a longer text than that", 23}, {"", 0}};
    static const uint8_t nulls[] = {0, 0, 1};
    wf_input columns[] = {{keys, NULL}, {texts, nulls}};
    return wf_append(conn, "u", 3, 2, columns);
}

/* Calls that are no statements: append, names, the report on devices, Arrow. */
static wf_status use_the_rest(wf_connection *conn) {
    wf_result *result = NULL;
    wf_status status = wf_query(conn, "select s, a, b8 from t where a < 70", &result);
    struct ArrowArrayStream stream;
    memset(&stream, 0, sizeof stream);
    if (!status) {
        status = wf_result_arrow_stream(result, &stream);
    }
    wf_result_close(result);
    if (!status) {
        struct ArrowSchema schema = {0};
        if (stream.get_schema(&stream, &schema) == 0) {
            schema.release(&schema);
        }
        struct ArrowArray array = {0};
        while (stream.get_next(&stream, &array) == 0 && array.release) {
            array.release(&array);
            memset(&array, 0, sizeof array);
        }
        stream.release(&stream);
    }
    return status;
}

static void test_calls(void **state) {
    (void)state;
    struct fault_db f = open_with("2", NULL);
    make_tables(f.conn);
    bool reached = true;
    for (int64_t nth = 1; reached; nth++) {
        int64_t used = wf_memory_used(f.db);
        memory_fail_at(nth);
        wf_status status = use_the_rest(f.conn);
        reached = memory_fail_at(0) >= nth;
        assert_true(status == WF_OK || (reached && status == WF_NO_MEMORY));
        assert_int_equal(wf_memory_used(f.db), used);
    }
    reached = true;
    for (int64_t nth = 1; reached; nth++) {
        memory_fail_at(nth);
        wf_status status = append_three(f.conn);
        reached = memory_fail_at(0) >= nth;
        assert_true(status == WF_OK || (reached && status == WF_NO_MEMORY));
        expect(f.conn, "select count(*), max(t) from u", status ? "0|~;" : "3|x;");
        run(f.conn, "drop table u; create table u (k int, t text)");
        check_control(f.conn);
    }
    close_both(f);
}

/* The whole life of a database. Nothing can be checked on the way but that nothing breaks. */
static bool whole_life(int64_t nth) {
    memory_fail_at(nth);
    wf_option options[] = {{"device", "cpu"}, {"threads", "2"}, {NULL, NULL}};
    wf_database *db = NULL;
    wf_connection *conn = NULL;
    wf_error error;
    wf_status status = wf_open(NULL, options, &db, &error);
    assert_true(status == WF_OK || status == WF_NO_MEMORY);
    if (!status) {
        status = wf_connect(db, &conn);
        assert_true(status == WF_OK || status == WF_NO_MEMORY);
    }
    static const char *const script[] = {
        "create table t (a int, s text)",
        "insert into t values (1, 'x'), (2, 'y'), (3, 'x'), (4, null)",
        "insert into t select a + 4, s || s from t",
        "select s, sum(a) from t group by s order by s",
        "select x.a, y.s from t x join t y on x.s = y.s order by 1, 2",
        "drop table t",
    };
    for (size_t i = 0; conn && i < sizeof script / sizeof *script; i++) {
        wf_result *result = NULL;
        status = wf_query(conn, script[i], &result);
        wf_result_close(result);
        bool follows = status == WF_ERROR && nth > 0; /* a table that was never made */
        assert_true(status == WF_OK || status == WF_NO_MEMORY || follows);
    }
    wf_disconnect(conn);
    if (db) {
        assert_int_equal(wf_memory_used(db) >= 0, 1);
    }
    wf_close(db);
    return memory_fail_at(0) >= nth;
}

static void test_whole_life(void **state) {
    (void)state;
    int64_t nth = 1;
    while (whole_life(nth)) {
        nth++;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_statement),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_whole_life),
    };
    write_csv(scratch_path(csv_path, "memory.csv"), 3000);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(csv_path);
    return failed;
}
