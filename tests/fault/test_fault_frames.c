/* test_fault_frames.c: columns of a database file come into memory when they are read, and go.
 *
 * The same statements run on a database in memory and on one in a file that is closed and opened
 * between them, so that every column they read has to come from the file; test builds let columns go
 * as soon as nobody holds them, and an unheld one cannot be read. Then a file is damaged in one
 * column: it opens, everything else can be read, and the column says where it is damaged. */
#include "fault.h"

static const char *const steps[] = {
    "set tablet_rows = 1024; create table t (k integer primary key, g text, s text, d decimal(12,2), f real, day date, "
    "b boolean, w decimal(38,10))",
    "insert into t select i, 'g' || i % 5, 'a text of its own ' || i * 7919 % 100003, i / 4.0, i, "
    "date '2024-01-01' + i % 700, i % 3 = 0, case when i % 11 > 0 then i * 1000000000000.5 end "
    "from generate_series(1, 9000) i",
    "create table kid (id integer primary key, k integer references t (k) on delete cascade on update cascade, "
    "note text default 'none')",
    "insert into kid select i, i * 2 from generate_series(1, 4000) i",
    "update t set d = d + 1, s = s || '!' where k % 100 = 7",
    "delete from t where k between 5000 and 5200",
    "insert into t select i, 'h', 'late ' || i, 1, 2, date '2030-01-01', true, null from generate_series(9001, 9100) i",
    "update t set k = k + 100000 where k < 20",
    "alter table t add column n bigint default 5",
    "alter table t drop column f",
    "alter table kid alter column note set not null",
    "create unique index kid_k on kid (k)",
    "delete from t where k % 2 = 0 and k < 9000",
    "vacuum",
    "insert into kid values (100001, 9001, 'new')",
};

static const char *const asks[] = {
    "select count(*), sum(d), sum(w), min(day), max(day) from t",
    "select g, count(*), sum(d), max(s) from t group by g order by g",
    "select s, g, day, b, w from t where k between 2000 and 2100 order by d desc, k limit 7",
    "select s from t where s like '%text%99%' order by s limit 5",
    "select t.g, count(*), min(note), max(t.s) from kid, t where kid.k = t.k group by t.g order by 1",
    "select s, count(*) from t group by s order by 2 desc, 1 limit 3",
    "select k, s, rank() over (partition by g order by d desc, k) r from t order by k desc limit 4",
    "select * from t order by w desc nulls last, k limit 3",
    "select count(distinct s), count(distinct g) from t",
    "select k from t where k = 4711",
    "select string_agg(s, ',' order by k) from t where k < 60",
};

static void compare(wf_connection *model, wf_connection *conn, const char *sql) {
    static char should[200000];
    wf_result *result = NULL;
    if (wf_query(model, sql, &result)) {
        refuse(conn, sql, wf_connection_error(model)->sqlstate, NULL);
        return;
    }
    flatten(result, should, sizeof should);
    wf_result_close(result);
    expect(conn, sql, should);
}

static void drop_files(const char *path) {
    char log[310];
    snprintf(log, sizeof log, "%s.log", path);
    remove(path);
    remove(log);
}

static void test_answers(void **state) {
    UNUSED(state);
    char path[300];
    scratch_path(path, "frames.wf");
    struct fault_db model = open_with("2", NULL);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct fault_db f = open_file(path, NULL);
        run(model.conn, steps[i]);
        run(f.conn, steps[i]);
        close_both(f);
        if (i < 2) {
            continue;
        }
        f = open_file(path, i % 2 ? NULL : "16MB");
        for (size_t a = 0; a < sizeof asks / sizeof asks[0]; a++) {
            compare(model.conn, f.conn, asks[a]);
        }
        compare(model.conn, f.conn, "insert into t (k) values (4001)"); /* 23505, or it is gone */
        compare(model.conn, f.conn, "delete from t where k = 4001");
        compare(model.conn, f.conn, "insert into kid values (9999999, 4242424)");
        close_both(f);
    }
    struct fault_db f = open_file(path, NULL);
    wf_result *result = must(f.conn, "call check_database()");
    static char text[4000];
    flatten(result, text, sizeof text);
    wf_result_close(result);
    assert_null(strstr(text, "damaged"));
    close_both(f);
    close_both(model);
    drop_files(path);
}

/* A result outlives changes and saves: what it reads stays in the file. */
static void test_old_readers(void **state) {
    UNUSED(state);
    char path[300];
    scratch_path(path, "frames-old.wf");
    struct fault_db f = open_file(path, NULL);
    run(f.conn, steps[0]);
    run(f.conn, steps[1]);
    close_both(f);
    f = open_file(path, NULL);
    wf_connection *other = NULL;
    assert_int_equal(wf_connect(f.db, &other), WF_OK);
    run(other, "begin; set transaction isolation level repeatable read");
    expect(other, "select count(*) from t where k < 10", "9;");
    run(f.conn, "drop table t");
    for (int i = 0; i < 3; i++) {
        run(f.conn, "create table u as select i, 'filler ' || i t from generate_series(1, 40000) i");
        run(f.conn, "checkpoint");
        run(f.conn, "drop table u");
        run(f.conn, "checkpoint");
    }
    expect(other, "select count(*), sum(k), min(s), max(s), sum(d) from t",
           "9000|40504500|a text of its own 100001|a text of its own 99984|10126125.00;");
    run(other, "commit");
    wf_disconnect(other);
    close_both(f);
    drop_files(path);
}

static void test_damage(void **state) {
    UNUSED(state);
    char path[300];
    scratch_path(path, "frames-bad.wf");
    struct fault_db f = open_file(path, NULL);
    run(f.conn, steps[0]);
    run(f.conn, steps[1]);
    run(f.conn, "create table other as select i from generate_series(1, 5000) i");
    close_both(f);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    static char bytes[8 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    /* k ascends, in two bytes a row: numbers that follow each other are its. */
    size_t at = 0;
    for (size_t i = 8192; i + 64 < size && !at; i += 2) {
        bool run_of = true;
        for (u16 n = 0; n < 16 && run_of; n++) {
            u16 value;
            memcpy(&value, bytes + i + 2 * n, 2);
            run_of = value == 500 + n;
        }
        at = run_of ? i : 0;
    }
    assert_true(at > 0);
    bytes[at] ^= 4;
    fseek(file, (long)at, SEEK_SET);
    fwrite(bytes + at, 1, 1, file);
    fclose(file);
    f = open_file(path, NULL);
    expect(f.conn, "select count(*), sum(i) from other", "5000|12502500;");
    expect(f.conn, "select count(*), sum(d) from t", "9000|10126125.00;");
    refuse(f.conn, "select sum(k) from t", "XX001", "column \"k\" of table \"t\"");
    refuse(f.conn, "select sum(k) from t", "XX001", "check_database");
    expect(f.conn, "select max(s) from t", "a text of its own 99984;");
    wf_result *result = must(f.conn, "call check_database()");
    static char text[4000];
    flatten(result, text, sizeof text);
    wf_result_close(result);
    assert_non_null(strstr(text, "damaged"));
    close_both(f);
    drop_files(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_old_readers),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
