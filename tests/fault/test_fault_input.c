/* test_fault_input.c: bad input, one kind after the other: names, syntax, types, values, bytes,
 * files.
 *
 * Each is a clear error with its SQLSTATE, its place where there is one and a hint where one helps;
 * afterwards the session answers as before and nothing is lost. Statements that are only too large
 * or too slow are in test_fault_limits.c and test_fault_stop.c. */
#include "fault.h"

static struct fault_db f;

static int setup(void **state) {
    (void)state;
    f = open_with("2", NULL);
    make_control(f.conn);
    run(f.conn, "create table items (id int not null, price decimal(8,2), name text, day date, "
                "small smallint, big bigint, ok boolean, ratio real)");
    run(f.conn,
        "insert into items values (1, 9.99, 'pen', '2020-02-29', 7, 9000000000, true, 0.5), "
        "(2, 0.00, 'ink', null, 0, -1, false, null)");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    close_both(f);
    return 0;
}

static int check_after(void **state) {
    (void)state;
    check_control(f.conn);
    expect(f.conn, "select count(*), sum(price), min(name) from items", "2|9.99|ink;");
    return 0;
}

static const struct bad {
    const char *sql;
    const char *sqlstate;
    const char *part;
} names[] = {
    {"select * from itens", "42P01", "items"},
    {"select * from itms join control on id = k", "42P01", "items"},
    {"insert into item values (1)", "42P01", "items"},
    {"drop table contrl", "42P01", "control"},
    {"copy itemz from '/dev/null'", "42P01", "items"},
    {"select nmae from items", "42703", "name"},
    {"select items.prise from items", "42703", "price"},
    {"select id from items where dya is null", "42703", "day"},
    {"insert into items (id, nam) values (1, 'x')", "42703", "name"},
    {"select x.id from items", "42P01", NULL},
    {"select k from control, control_two", "42702", NULL},
    {"select 1 is unknown", "42804", "IS UNKNOWN"},
    {"select 1 is not true", "42804", "IS TRUE"},
    {"select 1 from items, items", "42712", NULL},
    {"create table items (a int)", "42P07", NULL},
    {"create table dup (a int, A int)", "42701", NULL},
    {"select uper(name) from items", "42883", "upper"},
    {"select sqrt_of(id) from items", "42883", NULL},
    {"set statement_timout = 3", "42704", "statement_timeout"},
    {"show memry", "42704", "memory"},
    {"create table odd (a integr)", "42704", NULL},
    {"select id from items group by name", "42803", NULL},
    {"select $1 + 1", "42P02", NULL},
    {"call gpu_cash('items')", "42883", "gpu_cache"},
};

static const struct bad kinds[] = {
    {"select id + name from items", "42883", NULL},
    {"select name and ok from items", "42804", NULL},
    {"select * from items where name", "42804", NULL},
    {"select * from items where id = 'abc'", "22P02", "abc"},
    {"select day + day from items", "42883", NULL},
    {"select sum(name) from items", "42883", NULL},
    {"select case when ok then 1 else name end from items", "42804", NULL},
    {"select cast(ok as date) from items", "42846", NULL},
    {"insert into items (id) values ('x')", "22P02", NULL},
    {"insert into items (id, name) values (null, 'y')", "23502", "id"},
    {"insert into items (id, day) values (3, '2021-02-30')", "22008", NULL},
    {"insert into items (id, day) values (3, 'yesterday-ish')", "22007", NULL},
    {"insert into items (id, id) values (3, 3)", "42701", NULL},
    {"insert into items (id, name) values (3)", "42601", NULL},
    {"insert into items values (1, 2, 3, null, 5, 6, true, 8, 9)", "42601", NULL},
    {"values (1, 2), (3)", "42601", NULL},
    {"select upper(name, 2) from items", "42883", NULL},
    {"select count(sum(id)) from items", "42803", NULL},
    {"select id from items limit 'x'", "22P02", NULL},
    {"select id from items limit -1", "2201W", NULL},
    {"select id from items offset -1", "2201X", NULL},
    {"set threads = 3", "22023", NULL},
    {"set vector_rows = 0", "22023", NULL},
    {"set vector_rows = ten", "22023", NULL},
    {"set device = toaster", "22023", "cpu"},
};

static const struct bad values[] = {
    {"select id + 2147483647 from items", "22003", NULL},
    {"select 2147483647 + 1", "22003", NULL},
    {"select big * big from items where id = 1", "22003", NULL},
    {"select small + 32767::smallint from items", "22003", NULL},
    {"select - (-2147483648)::int", "22003", NULL},
    {"select cast(big as integer) from items", "22003", NULL},
    {"select cast(40000 as smallint)", "22003", NULL},
    {"select cast(1e300 as bigint)", "22003", NULL},
    {"select cast(1e300 as real)", "22003", NULL},
    {"select 1e308 * ratio * 1e10 from items", "22003", NULL},
    {"select cast(price as decimal(3,2)) * 2, cast(price + 100 as decimal(3,2)) from items",
     "22003", NULL},
    {"insert into items (id, price) values (3, 1234567.00)", "22003", NULL},
    {"insert into items (id) select id + 2147483646 from items", "22003", NULL},
    {"insert into items (id, small) values (3, 99999)", "22003", NULL},
    {"select 99999999999999999999999999999999999999999999", NULL, NULL},
    {"select id / (id - 1) from items", "22012", NULL},
    {"select id % 0 from items", "22012", NULL},
    {"select price / price from items", "22012", NULL},
    {"select 1.0 / 0", "22012", NULL},
    {"select 1e0 / 0", "22012", NULL},
    {"select sum(1 / (id - 2)) from items", "22012", NULL},
    {"select id from items order by 1 / (id - 1)", "22012", NULL},
    {"select x.id from items x join items y on x.id / (y.id - 1) = 1", "22012", NULL},
    {"select cast(name as integer) from items", "22P02", "integer"},
    {"select cast(name as date) from items", "22007", NULL},
    {"select cast('2021-13-01' as date)", "22008", NULL},
    {"select day + 2147483647 from items", "22008", NULL},
    {"select substring(name from 1 for -1) from items", "22011", NULL},
    {"select name like 'x\\' from items where name like 'p\\'", "22025", NULL},
};

static void refuse_all(const struct bad *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (list[i].sqlstate) {
            refuse(f.conn, list[i].sql, list[i].sqlstate, list[i].part);
        } else {
            wf_result *result = NULL;
            wf_query(f.conn, list[i].sql, &result); /* either way is fine, as long as it ends */
            wf_result_close(result);
        }
        check_after(NULL);
    }
}

static void test_names(void **state) {
    (void)state;
    refuse_all(names, sizeof names / sizeof *names);
}

/* Functions that only the binder may call, and operators, are no names to be proposed. */
static void test_hidden_names(void **state) {
    (void)state;
    static const char *const near[] = {"select wf_sed(1.0)", "select wf_tri(1)",
                                       "select wf_bukket(1, 2, 3)"};
    for (int i = 0; i < 3; i++) {
        refuse(f.conn, near[i], "42883", NULL);
        assert_null(strstr(wf_connection_error(f.conn)->hint, "wf_"));
    }
}

static void test_types(void **state) {
    (void)state;
    refuse_all(kinds, sizeof kinds / sizeof *kinds);
}

static void test_values(void **state) {
    (void)state;
    refuse_all(values, sizeof values / sizeof *values);
}

/* Branches that are not evaluated do not raise. */
static void test_not_evaluated(void **state) {
    (void)state;
    expect(f.conn, "select case when id = 1 then -1 else id / (id - 1) end from items order by id",
           "-1;2;");
    expect(f.conn, "select id from items where id > 1 and id / (id - 1) = 2", "2;");
    expect(f.conn, "select coalesce(id, 1 / 0) from items order by 1", "1;2;");
    expect(f.conn, "select case when false then 1 / 0 else 3 end", "3;");
    expect(f.conn, "select id from items where false and 1 / 0 = 1", "");
}

static void syntax_at(const char *sql, int64_t line, int64_t column, const char *caret) {
    refuse(f.conn, sql, "42601", NULL);
    const wf_error *error = wf_connection_error(f.conn);
    assert_int_equal(error->line, line);
    assert_int_equal(error->column, column);
    char text[3000];
    size_t len = wf_error_text(error, sql, text, sizeof text);
    assert_true(len < sizeof text);
    if (!strstr(text, caret)) {
        fprintf(stderr, "%s\nexpected\n%s\n", text, caret);
    }
    assert_non_null(strstr(text, caret));
    char tiny[12];
    assert_int_equal(wf_error_text(error, sql, tiny, sizeof tiny), len);
    assert_int_equal(strlen(tiny), sizeof tiny - 1);
}

static void test_syntax(void **state) {
    (void)state;
    syntax_at("selec 1", 1, 1, "LINE 1: selec 1\n        ^");
    syntax_at("select 1 +", 1, 11, "LINE 1: select 1 +\n                  ^");
    syntax_at("select a,\n  b c d\nfrom t", 2, 7, "LINE 2:   b c d\n              ^");
    syntax_at("select 'é', 日本 本 x from t", 1, 18, "^");
    syntax_at("select (1 + 2", 1, 14, "^");
    syntax_at("select 'open", 1, 8, "^");
    syntax_at("select \"open", 1, 8, "^");
    syntax_at("select 1 /* open", 1, 10, "^");
    syntax_at("insert into items values (99, 1, 'lost'); selekt", 1, 43, "^");
    static const char *const more[] = {";;;select 1 +",
                                       "select * from",
                                       "create table",
                                       "create table x ()x",
                                       "insert into items",
                                       "copy items from",
                                       ")",
                                       "'",
                                       "\"",
                                       "$$",
                                       "\\",
                                       "select $$open",
                                       "select 1 1 1",
                                       "with q as (select 1)",
                                       "select u&'\\zzzz'",
                                       "select e'\\u00zz'"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        wf_result *result = NULL;
        assert_int_equal(wf_query(f.conn, more[i], &result), WF_ERROR);
        wf_result_close(result);
        check_after(NULL);
    }
}

static void test_bytes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select '\xff'",
        "select '\xc3'",
        "select '\xc3",
        "select \"\xe2\x82\"",
        "select '\xed\xa0\x80'",
        "select '\xf5\x80\x80\x80'",
        "select '\xc0\x80'",
        "select 1 -- \xfe",
        "\xef\xbb\xbf\xff select 1",
        "insert into items (id, name) values (5, '\x80')",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        refuse(f.conn, texts[i], "22021", NULL);
        assert_true(wf_connection_error(f.conn)->position >= 0);
    }
    /* A zero byte ends a C string, and text from elsewhere must not bring one in. */
    refuse(f.conn, "select U&'\\0000'", "42601", NULL);
    wf_statement *statement = NULL;
    assert_int_equal(wf_prepare(f.conn, "select $1 || 'x'", &statement), WF_OK);
    wf_status status = wf_bind_text(statement, 1, "a\0b", 3);
    wf_result *result = NULL;
    if (!status) {
        status = wf_execute(statement, &result);
    }
    assert_int_equal(status, WF_ERROR);
    assert_string_equal(wf_connection_error(f.conn)->sqlstate, "22021");
    status = wf_bind_text(statement, 1, "a\xff", 2);
    if (!status) {
        status = wf_execute(statement, &result);
    }
    assert_int_equal(status, WF_ERROR);
    assert_string_equal(wf_connection_error(f.conn)->sqlstate, "22021");
    assert_int_equal(wf_bind_text(statement, 1, "fine", -1), WF_OK);
    assert_int_equal(wf_execute(statement, &result), WF_OK);
    wf_result_close(result);
    wf_statement_close(statement);
    int32_t key = 9;
    wf_text bad = {"\xc3", 1};
    uint8_t null = 1;
    int64_t zero = 0;
    wf_input columns[] = {{&key, NULL}, {&zero, NULL}, {&bad, NULL},  {&key, &null},
                          {&key, NULL}, {&zero, NULL}, {&null, NULL}, {&key, &null}};
    assert_int_equal(wf_append(f.conn, "items", 1, 8, columns), WF_ERROR);
    assert_string_equal(wf_connection_error(f.conn)->sqlstate, "22021");
    check_after(NULL);
}

/* COPY of this text fails at file:line, with the column's name, and loads nothing. */
static void bad_file(const char *text, size_t len, const char *options, const char *sqlstate,
                     int line, const char *part) {
    char path[300];
    FILE *file = fopen(scratch_path(path, "bad.csv"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    char sql[700];
    snprintf(sql, sizeof sql, "copy control_two from '%s' %s", path, options);
    char where[400];
    snprintf(where, sizeof where, line ? "%s, line %d" : "%s", path, line);
    refuse(f.conn, sql, sqlstate, where);
    const wf_error *error = wf_connection_error(f.conn);
    assert_true(!strchr(error->message, '\n'));
    if (part && !strstr(error->message, part)) {
        show_error(f.conn, sql);
    }
    assert_true(!part || strstr(error->message, part));
    remove(path);
    check_after(NULL);
}

#define BAD(text, options, sqlstate, line, part) \
    bad_file(text, sizeof(text) - 1, options, sqlstate, line, part)

static void test_csv(void **state) {
    (void)state;
    BAD("1,a\n2\n3,c\n", "", "22P04", 2, NULL);      /* short */
    BAD("1,a\n2,b,c\n", "", "22P04", 2, NULL);       /* long */
    BAD("1,a\n2,b\n,\nx3,c\n", "", "22P02", 4, "k"); /* no number */
    BAD("k,t\n1,a\n99999999999,b\n", "with (header)", "22003", 3, "k");
    BAD("1,a\n2,b\n3.5,c\n", "", "22P02", 3, "k");
    BAD("1,\"a\n2,b\n", "", "22P04", 1, NULL); /* open quote */
    BAD("1,\"a\"\n2,b\"\"b\n3,\"c\n", "", "22P04", 3, NULL);
    BAD("1,ok\n2,\xff\xfe\n", "", "22021", 2, "t");
    BAD("1,\"two\nlines\"\nx,b\n", "", "22P02", 3, "k");
    BAD("1,a\0b\n", "", "22021", 1, NULL);
    BAD("1|a|\n2|b|c|\n", "with (format tbl)", "22P04", 2, NULL);
    BAD("\xff\xfe\x31\x00,\x00", "", "22021", 0, "UTF-16");
    BAD("1;a\n", "", "22P04", 1, NULL);
}

static void test_files(void **state) {
    (void)state;
    refuse(f.conn, "copy items from '/no/such/folder/file.csv'", "58P01",
           "/no/such/folder/file.csv");
    refuse(f.conn, "copy items from '/tmp'", "58030", "/tmp");
    refuse(f.conn, "copy items from ''", "58P01", NULL);
    refuse(f.conn, "copy items from '/proc/self/mem'", "58030", NULL);
    refuse(f.conn, "copy items (id, nope) from '/dev/null'", "42703", NULL);
    refuse(f.conn, "copy items from '/dev/null' with (format parquet)", "0A000", "Parquet");
    refuse(f.conn, "copy items from '/dev/null' with (delimiter 'ab')", "0A000", NULL);
    refuse(f.conn, "copy items from '/dev/null' with (wibble 3)", "42601", NULL);
    refuse(f.conn, "copy items to '/no/such/folder/x.csv'", "58P01", "/no/such/folder");
    refuse(f.conn, "copy items to program 'cat'", "0A000", NULL);
    refuse(f.conn, "copy items from stdin", "0A000", NULL);
    char path[300];
    char sql[400];
    write_csv(scratch_path(path, "empty.csv"), 0);
    snprintf(sql, sizeof sql, "copy items from '%s'", path);
    run(f.conn, sql);
    remove(path);
    refuse(f.conn, sql, "58P01", NULL);
    refuse(f.conn, "select * from 'data.parquet'", "0A000", "Parquet");
    refuse(f.conn, "select * from 'no such data.csv'", "58P01", "no such data.csv");
}

static void refuse_open(const char *path, const wf_option *options, const char *sqlstate,
                        const char *part) {
    wf_database *db = NULL;
    wf_error error;
    assert_int_equal(wf_open(path, options, &db, &error), WF_ERROR);
    assert_null(db);
    assert_string_equal(error.sqlstate, sqlstate);
    assert_non_null(strstr(error.message, part));
}

/* Changes the byte at this place and gives what it was. */
static int change_byte(const char *path, long at, int byte) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int was = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, file), byte);
    assert_int_equal(fclose(file), 0);
    return was;
}

static void cut_file(const char *path) {
    static char start[8000];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(start, 1, sizeof start, file), sizeof start);
    assert_int_equal(fclose(file), 0);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(start, 1, sizeof start, file), sizeof start);
    assert_int_equal(fclose(file), 0);
}

/* What is no database, or none that can be opened: refused, and as it was. */
static void test_database_files(void **state) {
    (void)state;
    const wf_option reads[] = {{"readonly", "on"}, {NULL, NULL}};
    char path[300];
    char log[310];
    char text[40] = "";
    scratch_path(path, "file.wf");
    snprintf(log, sizeof log, "%s.log", path);
    refuse_open("data.parquet", NULL, "0A000", "Parquet");
    refuse_open("/no/such/folder/file.wf", NULL, "58P01", "/no/such/folder/file.wf");
    refuse_open("/tmp", NULL, "42809", "/tmp");
    refuse_open(path, reads, "58P01", path);
    assert_null(fopen(path, "r"));
    write_csv(path, 1);
    refuse_open(path, NULL, "42809", path);
    refuse_open(path, reads, "42809", path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_int_equal(fgetc(file), EOF);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "0,0,text 0\n");
    remove(path);
    wf_database *db = NULL;
    wf_connection *conn = NULL;
    assert_int_equal(wf_open(path, NULL, &db, NULL), WF_OK);
    refuse_open(path, NULL, "55006", path);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run(conn, "create table t as select 1 a");
    wf_disconnect(conn);
    wf_close(db);
    int first = change_byte(path, 100, 'x'); /* in the header, of which there are two */
    int second = change_byte(path, 4096 + 100, 'x');
    refuse_open(path, NULL, "XX001", path);
    refuse_open(path, reads, "XX001", path);
    assert_int_equal(change_byte(path, 4096 + 100, second), 'x');
    assert_int_equal(change_byte(path, 100, first), 'x');
    assert_int_equal(wf_open(path, reads, &db, NULL), WF_OK);
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    expect(conn, "select a from t", "1;");
    refuse(conn, "insert into t values (2)", "25006", path);
    wf_disconnect(conn);
    wf_close(db);
    cut_file(path);
    refuse_open(path, NULL, "XX001", "shorter");
    remove(path);
    remove(log);
}

/* What PostgreSQL parses and we do not do yet names itself. */
static void test_unsupported(void **state) {
    (void)state;
    static const char *const texts[] = {
        "select 1 union select 2",
        "select id from items where exists (select 1)",
        "select (select 1)",
        "select row_number() over () from items",
        "select array[1, 2]",
        "with recursive r as (select 1) select * from r",
        "select * from items left join control on id = k",
        "select count(*) filter (where ok) from items",
        "select name collate \"en_US\" from items",
        "select * from generate_series(1, 3)",
        "select id from items for update",
        "grant select on items to public",
        "vacuum",
        "select now()",
        "select * from items tablesample system (10)",
        "select interval '1 day'",
        "select '{}'::json",
        "declare c cursor for select 1",
        "do $$ begin end $$",
        "listen x",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        wf_result *result = NULL;
        wf_status status = wf_query(f.conn, texts[i], &result);
        wf_result_close(result);
        const wf_error *error = wf_connection_error(f.conn);
        bool known = strcmp(error->sqlstate, "0A000") == 0 ||
                     strcmp(error->sqlstate, "42883") == 0 || strcmp(error->sqlstate, "42704") == 0;
        if (status && !known) {
            show_error(f.conn, texts[i]);
        }
        assert_true(!status || known);
        check_after(NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_names, check_after),
        cmocka_unit_test_teardown(test_hidden_names, check_after),
        cmocka_unit_test_teardown(test_types, check_after),
        cmocka_unit_test_teardown(test_values, check_after),
        cmocka_unit_test_teardown(test_not_evaluated, check_after),
        cmocka_unit_test_teardown(test_syntax, check_after),
        cmocka_unit_test_teardown(test_bytes, check_after),
        cmocka_unit_test_teardown(test_csv, check_after),
        cmocka_unit_test_teardown(test_files, check_after),
        cmocka_unit_test_teardown(test_database_files, check_after),
        cmocka_unit_test_teardown(test_unsupported, check_after),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
