/* test_care.c: what keeps a database file well: files of older versions, logs that are lost, full disks, VACUUM,
 * copies, exports, loads past the cache.
 *
 * tests/crash/fixtures has a file of every format there was, with the log that a kill left, made by `made.sql`;
 * each opens and answers alike. */
#define _GNU_SOURCE
#include "crash.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/file_int.h"

#define FIXTURES SOURCE_DIR "/tests/crash/fixtures/"

static char scratch[100];

static const char *in_scratch(const char *name) {
    static char paths[8][200];
    static int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static i64 file_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) ? -1 : (i64)info.st_size;
}

static void copy_file(const char *from, const char *to) {
    static char block[1 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;) {
        assert_int_equal(fwrite(block, 1, n, out), n);
    }
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
}

static char *slurp(const char *path) {
    i64 bytes = file_bytes(path);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_int_equal(fread(text, 1, (size_t)bytes, in), bytes);
    (void)fclose(in);
    return text;
}

static void expect_refusal(const char *path, const char *code, const char *word) {
    struct fault_db f;
    wf_error error;
    assert_false(try_open(&f, path, &error));
    if (strcmp(error.sqlstate, code) != 0 || !strstr(error.message, word)) {
        fprintf(stderr, "%s %s\n", error.sqlstate, error.message);
        fail();
    }
}

/* older files */

static void take_fixture(const char *name, const char *as) {
    char from[300], to[300];
    (void)snprintf(from, sizeof from, FIXTURES "%s", name);
    copy_file(from, as);
    (void)snprintf(from, sizeof from, FIXTURES "%s.log", name);
    (void)snprintf(to, sizeof to, "%s.log", as);
    copy_file(from, to);
}

static void check_fixture(wf_connection *conn) {
    expect(conn, "select count(*), count(s), sum(d), sum(k), max(ts) from t",
           "489|392|31243.25|125973|2024-02-24 00:05:06;");
    expect(conn, "select k, s, d, f, ts from t where k in (1, 7, 500, 1000) order by k",
           "1|row 1|0.25|1|2024-02-03 05:05:06;7|row 7!|1.75|7|2024-02-03 11:05:06;"
           "500|~|125.00|500|2024-02-24 00:05:06;1000|late|~|NaN|~;");
    expect(conn, "select id, k, n from kids order by id", "1|1|7;3|100|7;");
    expect(conn, "select last_value, is_called from q", "11|true;");
    expect(conn, "select k, s from z.v order by k", "1|row 1;3|row 3;");
    expect(conn, "select x, y from path order by x, y", "1|2;1|3;2|3;");
}

/* Text in words, and a key whose rows are in no order. */
static void check_words(wf_connection *conn) {
    expect(conn, "select count(*), count(distinct w), sum(length(w)), min(w), max(w) from words",
           "2500|2500|112643|the quick fox number 10 jumps over lazy dogs|"
           "the slow fox number 999 jumps over lazy dogs;");
    expect(conn, "select w from words where n = 7919 % 2503", "the slow fox number 1 jumps over lazy dogs;");
    refuse(conn, "insert into words values (5, 'again')", "23505", NULL);
}

/* Rows of derived predicates, which no commit of the log has changed. */
static void check_kept(wf_connection *conn) {
    static char text[100000];
    wf_result *result = must(conn, "call logiql_rules()");
    flatten(result, text, sizeof text);
    wf_result_close(result);
    assert_non_null(strstr(text, "|path|path(x, z) <- path(x, y), base(y, z).|fresh;"));
    assert_non_null(strstr(text, "|ways|ways[x] = n <- agg<< n = count() >> path(x, _).|fresh;"));
    expect(conn, "select x, n from ways order by x", "1|2;2|1;");
}

static void test_formats(void **state) {
    UNUSED(state);
    static const char *const names[] = {"format1.wf", "format2.wf", "format3.wf", "format4.wf", "format5.wf"};
    const char *path = in_scratch("old.wf");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        take_fixture(names[i], path);
        wf_option reads[] = {{"device", "cpu"}, {"readonly", "on"}, {NULL, NULL}};
        struct fault_db f = {NULL, NULL};
        assert_int_equal(wf_open(path, reads, &f.db, NULL), WF_OK);
        assert_int_equal(wf_connect(f.db, &f.conn), WF_OK);
        check_fixture(f.conn);
        close_both(f);
        f = must_open(path);
        check_fixture(f.conn);
        if (i >= 3) {
            check_words(f.conn);
        }
        if (i >= 4) {
            check_kept(f.conn);
        }
        check_clean(f.conn);
        run(f.conn, "insert into t values (2000, 'new')");
        close_both(f);
        f = must_open(path);
        expect(f.conn, "select s from t where k = 2000", "new;");
        close_both(f);
    }
    (void)unlink(path);
}

/* A header of a format that is not known yet, whole in itself. */
static void test_newer(void **state) {
    UNUSED(state);
    const char *path = in_scratch("newer.wf");
    take_fixture("format3.wf", path);
    char *before = slurp(path);
    struct header header;
    memcpy(&header, before, sizeof header);
    header.format = FILE_FORMAT + 1;
    header.sum = bytes_sum(&header, HEADER_BYTES - (i64)sizeof header.sum, 0);
    FILE *file = fopen(path, "r+b");
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    assert_int_equal(fseek(file, PAGE_BYTES, SEEK_SET), 0);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    free(before);
    before = slurp(path);
    i64 bytes = file_bytes(path);
    char should[100];
    (void)snprintf(should, sizeof should, "has format %d; this program knows formats 1 to %d", FILE_FORMAT + 1,
                   FILE_FORMAT);
    expect_refusal(path, "0A000", should);
    char *after = slurp(path);
    assert_int_equal(file_bytes(path), bytes);
    assert_memory_equal(before, after, (size_t)bytes);
    free(before);
    free(after);
    (void)unlink(path);
}

static void test_lost_log(void **state) {
    UNUSED(state);
    const char *path = in_scratch("lost.wf"), *log = in_scratch("lost.wf.log");
    take_fixture("format3.wf", path);
    (void)unlink(log);
    expect_refusal(path, "XX001", "is missing");
    expect_refusal(path, "XX001", "is missing");
    take_fixture("format3.wf", path); /* put back */
    struct fault_db f = must_open(path);
    check_fixture(f.conn);
    close_both(f);
    assert_int_equal(file_bytes(log), -1); /* not needed any more */
    (void)unlink(path);
}

static void test_permissions(void **state) {
    UNUSED(state);
    const char *path = in_scratch("locked.wf");
    if (geteuid() == 0) {
        return; /* nothing is forbidden */
    }
    take_fixture("format3.wf", path);
    assert_int_equal(chmod(path, 0400), 0);
    expect_refusal(path, "42501", path);
    assert_int_equal(chmod(path, 0000), 0);
    expect_refusal(path, "42501", path);
    (void)unlink(path);
}

/* a full disk, and commits that nobody waits for */

static void refused(wf_connection *conn, const char *sql, const char *code) {
    assert_true(wf_query(conn, sql, NULL) != WF_OK);
    if (strcmp(wf_connection_error(conn)->sqlstate, code) != 0) {
        show_error(conn, sql);
        fail();
    }
}

static void test_full_disk(void **state) {
    UNUSED(state);
    disk_now = &disk_paper;
    struct fault_db f = must_open(PATH);
    run(f.conn, "create table t (a integer, s text); insert into t values (1, 'one')");
    disk.room = all_bytes() + 4000;
    i64 rows = 1;
    while (!wf_query(f.conn, "insert into t values (2, repeat('x', 300))", NULL)) { /* the log */
        rows++;
    }
    assert_string_equal(wf_connection_error(f.conn)->sqlstate, "53100");
    refused(f.conn, "insert into t select i, 'many' || i from generate_series(1, 40000) i", "53100");
    refused(f.conn, "checkpoint", "53100");
    char sql[100], should[40];
    (void)snprintf(sql, sizeof sql, "select count(*) from t");
    (void)snprintf(should, sizeof should, "%lld;", (long long)rows);
    expect(f.conn, sql, should);
    disk.room = 0; /* somebody made room */
    run(f.conn, "insert into t values (3, 'three')");
    run(f.conn, "checkpoint");
    (void)snprintf(should, sizeof should, "%lld;", (long long)rows + 1);
    expect(f.conn, sql, should);
    check_clean(f.conn);
    close_both(f);
    f = must_open(PATH);
    expect(f.conn, sql, should);
    close_both(f);
    disk_forget();
    disk_now = &disk_system;
}

/* What a statement wrote that failed, or was rolled back, or that a crash came upon, takes no room: a full disk is not
 * full of it. */
static void test_left_behind(void **state) {
    UNUSED(state);
    const char *rows = in_scratch("rows.csv");
    char load[300], sql[300];
    (void)snprintf(load, sizeof load, "copy big from '%s'", rows);
    (void)snprintf(sql, sizeof sql, "copy (select i, 'row of text ' || md5(cast(i as text)) s "
                                    "from generate_series(1, 100000) i) to '%s'", rows);
    disk_now = &disk_paper;
    struct fault_db f = must_open(PATH);
    run(f.conn, sql);
    run(f.conn, "set tablet_rows = 16384; create table t (a integer); insert into t values (1)");
    run(f.conn, "create table big (i integer, s text); checkpoint");
    const struct paper *file = paper_find(PATH), *log = paper_find(PATH ".log");
    i64 size = file->size;
    disk.room = all_bytes() + 1000000;
    refused(f.conn, load, "53100");
    assert_int_equal(file->size, size);
    run(f.conn, "insert into t values (2)");
    disk.room = 0;
    run(f.conn, "begin");
    run(f.conn, load);
    i64 loaded = file->size;
    assert_true(loaded > size + 500000);
    run(f.conn, "rollback");
    run(f.conn, "select 1"); /* nobody holds what was there before */
    run(f.conn, "select 1");
    assert_int_equal(file->size, size);
    run(f.conn, "begin");
    run(f.conn, load);
    i64 end = disk.count; /* the power goes */
    run(f.conn, "rollback");
    close_both(f);
    crash_at(end, true);
    journal_drop(end);
    assert_int_equal(file->size, loaded);
    disk.room = all_bytes(); /* which is full, then */
    f = must_open(PATH);
    run(f.conn, "insert into t values (3)");
    expect(f.conn, "select count(*), sum(a) from t", "3|6;");
    expect(f.conn, "select count(*) from big", "0;");
    check_clean(f.conn);
    close_both(f);
    assert_false(log->exists);
    disk.room = all_bytes(); /* no room for a log, which is not left half made */
    wf_error error;
    assert_false(try_open(&f, PATH, &error));
    assert_string_equal(error.sqlstate, "53100");
    assert_false(log->exists);
    disk.room = 0;
    f = must_open(PATH);
    expect(f.conn, "select count(*) from t", "3;");
    close_both(f);
    disk_forget();
    disk_now = &disk_system;
}

/* What a crash left in the log can be read on a full disk; nothing is changed before there is room. */
static void test_full_after_crash(void **state) {
    UNUSED(state);
    static const char count[] = "select count(*), max(a) from t";
    disk_now = &disk_paper;
    struct fault_db f = must_open(PATH);
    run(f.conn, "create table t (a serial, s text); "
                "insert into t (s) select repeat('x', 60) from generate_series(1, 100)");
    i64 end = disk.count;
    close_both(f);
    crash_at(end, true);
    journal_drop(end);
    struct paper *log = paper_find(PATH ".log");
    assert_true(log->exists && log->size > 0);
    for (int i = 0; i < 2; i++) { /* also after it was closed again */
        disk.room = all_bytes() + 10;
        f = must_open(PATH);
        expect(f.conn, count, "100|100;");
        refused(f.conn, "insert into t (s) values ('one')", "53100");
        assert_non_null(strstr(wf_connection_error(f.conn)->hint, "Make room on that disk"));
        refused(f.conn, "checkpoint", "53100");
        expect(f.conn, count, "100|100;");
        close_both(f);
    }
    f = must_open(PATH);
    disk.room = 0; /* somebody made room */
    run(f.conn, "insert into t (a, s) values (1000, 'one'); insert into t (a, s) values (1001, 'two')");
    expect(f.conn, count, "102|1001;");
    check_clean(f.conn);
    end = disk.count;
    close_both(f);
    crash_at(end, false);
    f = must_open(PATH);
    expect(f.conn, count, "102|1001;");
    check_clean(f.conn);
    close_both(f);
    disk_forget();
    disk_now = &disk_system;
}

/* A crash may lose the last lazy commits, never one before another, nor a part of one. */
static void test_lazy(void **state) {
    UNUSED(state);
    enum { COMMITS = 60, FIRM = 40 };
    disk_now = &disk_paper;
    dice = (u64)asked("CRASH_SEED", 11);
    struct fault_db f = must_open(PATH);
    char sql[200];
    i64 firm = 0;
    run(f.conn, "create table t (a integer, b integer)");
    i64 start = disk.count;
    run(f.conn, "set durability = lazy");
    for (int i = 1; i <= COMMITS; i++) {
        (void)snprintf(sql, sizeof sql, "insert into t values (%d, 0), (%d, 1)", i, i);
        if (i == FIRM) {
            run(f.conn, "set durability = full");
        }
        run(f.conn, sql);
        if (i == FIRM) {
            firm = disk.count;
            run(f.conn, "set durability = lazy");
        }
    }
    i64 end = disk.count;
    close_both(f);
    for (int i = 0; i < 40; i++) {
        i64 point = start + roll((u32)(end - start) + 1);
        crash_at(point, i % 4 == 0);
        struct journal kept = journal_aside();
        f = must_open(PATH);
        expect(f.conn, "select count(*) = 2 * count(distinct a) and coalesce(max(a), 0) = count(distinct a) from t",
               "true;");
        (void)snprintf(sql, sizeof sql, "select coalesce(max(a), 0) >= %d from t", point >= firm ? FIRM : 0);
        expect(f.conn, sql, "true;");
        close_both(f);
        journal_back(kept);
    }
    disk_forget();
    disk_now = &disk_system;
}

/* VACUUM and copies */

static const char *const made_tables =
    "create table t (a integer primary key, s text); create table u (b bigint, c text); "
    "insert into t select i, 's ' || i % 50 from generate_series(1, 300000) i; "
    "insert into u select i, 'u' || i % 100 from generate_series(1, 300000) i; checkpoint; "
    "delete from t where a % 3 > 0; update u set b = b + 1 where b % 2 = 0; delete from u where b > 20000";

static void check_tables(wf_connection *conn) {
    expect(conn, "select count(*), sum(a), min(s), max(s) from t", "100000|15000150000|s 0|s 9;");
    expect(conn, "select count(*), sum(b), min(c), max(c) from u", "19999|199999999|u0|u99;");
}

/* A file that was opened shrinks at once, though its columns are read from where they were. */
static void test_vacuum_opened(void **state) {
    UNUSED(state);
    const char *path = in_scratch("opened.wf");
    static const char sums[] = "select count(*), sum(k), sum(length(s)) from t";
    struct fault_db f = must_open(path);
    run(f.conn, "create table gone as select i as a, i::bigint * 7919 % 100003 as b from generate_series(1, 900000) i");
    run(f.conn, "checkpoint");
    run(f.conn, "create table t (k bigint primary key, s text)");
    run(f.conn, "insert into t select i::bigint * 7919 % 1000003, 'text ' || i from generate_series(1, 300000) i");
    run(f.conn, "create table old (x integer)");
    close_both(f);
    f = must_open(path);
    i64 before = file_bytes(path);
    run(f.conn, "insert into t values (-1, 'one')");
    wf_connection *other = NULL; /* it goes on to read what it saw */
    assert_int_equal(wf_connect(f.db, &other), WF_OK);
    run(other, "begin; select count(*) from old");
    run(f.conn, "drop table gone; delete from t where k > 0 and k % 3 <> 0");
    run(f.conn, "vacuum");
    expect(other, sums, "300001|149987234603|3188898;");
    expect(f.conn, sums, "99993|49991846306|1062882;");
    run(other, "commit");
    run(f.conn, "vacuum");
    i64 after = file_bytes(path);
    if (after >= before / 2) {
        fprintf(stderr, "%lld of %lld bytes\n", (long long)after, (long long)before);
        fail();
    }
    expect(f.conn, sums, "99993|49991846306|1062882;");
    expect(other, sums, "99993|49991846306|1062882;");
    wf_disconnect(other);
    refused(f.conn, "insert into t select k, '' from t where s = 'text 3'", "23505");
    check_clean(f.conn);
    close_both(f);
    f = must_open(path);
    run(f.conn, "drop table old; vacuum"); /* nothing but a gap, of columns that are all in the file */
    expect(f.conn, sums, "99993|49991846306|1062882;");
    refused(f.conn, "insert into t select k, '' from t where s = 'text 3'", "23505");
    check_clean(f.conn);
    close_both(f);
    (void)unlink(path);
}

static void test_vacuum(void **state) {
    UNUSED(state);
    const char *path = in_scratch("vacuum.wf"), *copy = in_scratch("copy.wf");
    struct fault_db f = must_open(path);
    run(f.conn, made_tables);
    run(f.conn, "checkpoint");
    wf_connection *other = NULL; /* a snapshot of before, which changes a row that moves */
    assert_int_equal(wf_connect(f.db, &other), WF_OK);
    run(other, "begin; update t set s = 'other' where a = 3");
    i64 before = file_bytes(path);
    run(f.conn, "vacuum");
    check_tables(f.conn);
    run(other, "update t set s = 's 3' where a = 3; commit");
    check_tables(f.conn);
    wf_disconnect(other);
    run(f.conn, "vacuum"); /* what the snapshot read had to stay in the file */
    i64 after = file_bytes(path);
    if (after >= before || after > 140000) { /* of columns and all: 103,000 */
        fprintf(stderr, "%lld of %lld bytes\n", (long long)after, (long long)before);
        fail();
    }
    check_tables(f.conn);
    refused(f.conn, "begin; vacuum", "25001");
    run(f.conn, "rollback");
    run(f.conn, "vacuum u");
    refused(f.conn, "vacuum nowhere", "42P01");
    char sql[300];
    (void)snprintf(sql, sizeof sql, "vacuum into '%s'", copy);
    run(f.conn, sql);
    refused(f.conn, sql, "42710");
    (void)snprintf(sql, sizeof sql, "VACUUM INTO '%s'", path);
    refused(f.conn, sql, "42710");
    refused(f.conn, "vacuum into '/no/such/folder/a.wf'", "58P01");
    refused(f.conn, "vacuum into ''", "22023");
    run(f.conn, "insert into t values (-1, 'later')");
    struct fault_db c = must_open(copy);
    check_tables(c.conn);
    check_clean(c.conn);
    run(c.conn, "insert into t values (-1, 'its own')");
    close_both(c);
    expect(f.conn, "select s from t where a = -1", "later;");
    close_both(f);
    f = must_open(path);
    expect(f.conn, "select s from t where a = -1", "later;");
    close_both(f);
    c = must_open(copy);
    expect(c.conn, "select s from t where a = -1", "its own;");
    close_both(c);
    (void)unlink(path);
    (void)unlink(copy);
}

static void test_copy_of_memory(void **state) {
    UNUSED(state);
    const char *copies[] = {in_scratch("first.wf"), in_scratch("second.wf")};
    struct fault_db f = must_open(NULL);
    run(f.conn, made_tables);
    run(f.conn, "vacuum");
    for (int i = 0; i < 2; i++) {
        char sql[300];
        (void)snprintf(sql, sizeof sql, "vacuum into '%s'", copies[i]);
        run(f.conn, sql);
        refused(f.conn, sql, "42710");
        struct fault_db c = must_open(copies[i]);
        check_tables(c.conn);
        check_clean(c.conn);
        close_both(c);
        (void)unlink(copies[i]);
    }
    check_tables(f.conn);
    close_both(f);
}

/* exports */

static const char *const made_schema =
    "create schema z; create schema \"Odd name\"; comment on schema z is 'it''s z'; "
    "create sequence q start 5 increment 2; select nextval('q'); "
    "create table t (a serial primary key, b text default 'x''y', c integer generated always as identity, "
    "d double precision, e decimal(9, 2), f timestamp, g date, h boolean, i interval, "
    "constraint pos check (a > 0), constraint two unique (b, d)); "
    "insert into t (b, d, e, f, g, h, i) values "
    "('q', 0.1, 1.25, '2024-01-02 03:04:05.678', '2024-01-02', true, '1 mon'), "
    "(null, 'nan', null, null, null, null, null), ('', -1e300, -3, null, '0001-01-01', false, '3 days 04:05:06'), "
    "(E'a \"b\", c\\nd', 'infinity', 0, null, null, null, null); "
    "create table z.u (id bigint primary key default nextval('q'), r integer references t (a) on delete cascade "
    "deferrable initially deferred, me bigint references z.u (id)); "
    "insert into z.u (r) values (1), (2), (null); "
    "create table \"Odd name\".\"Ta'ble\" (\"Co l\" integer, \"select\" text); "
    "insert into \"Odd name\".\"Ta'ble\" values (1, 'o'); create view z.late as select * from z.u; "
    "set search_path = z, public; create view inpath as select id, b from u join t on r = a; "
    "reset search_path; create or replace view z.late as select * from z.u where id in (select id from z.inpath); "
    "create unique index uq on t (c); comment on table t is 'hi'; comment on view z.late is 'a view'; "
    "alter table t add constraint big check (a > 100) not valid; "
    "create temporary table tmp (a integer); "
    "create table old (id integer generated by default as identity (start with 10 increment by 5 maxvalue 900), "
    "\"Q\"\"x\" bigserial, a integer check (a > 0 -- above\n), b text default 'd' -- none\n); "
    "create index on old (b); create index \"I x\" on old ((a + 1), \"Q\"\"x\" desc); alter table old rename to t2; "
    "alter table t2 rename a to \"A a\"; alter table t2 rename b to \"B\"\"b\"; "
    "alter sequence \"old_Q\"\"x_seq\" rename to \"S\"; "
    "insert into t2 (\"A a\") values (1), (2); create view marked as select '/* here */ ''y' as m; "
    "comment on table t2 is E'COP\\n/* here */ ''\\n'; set search_path = \"Odd name\"; create sequence s3 increment 3; "
    "create table t3 (a integer default nextval('s3'), b integer); insert into t3 (b) values (1); reset search_path; "
    "create table ttttttttttttttttttttttttttttttttttttttt (ccccccccccccccccccccccccccccccccccccccc1 integer unique, "
    "ccccccccccccccccccccccccccccccccccccccc2 integer unique); "
    "create table twice (a integer constraint one unique, b integer); "
    "alter table twice add constraint other unique (a); alter table twice add constraint prime primary key (a); "
    "alter table twice add constraint late unique (a) deferrable; "
    "create table grows (a integer, b integer); create view grown as select *, 1 as c from grows; "
    "create view \"Also\" (x) as with w as (select * from grows) select w.* from w natural join grows; "
    "alter table grows add column c integer, add column b2 integer; insert into grows values (1, 2, 3, 4); "
    "comment on view \"Also\" is 'too -- it is'";

static const char *const made_rules =
    "call logiql('base(x, y) -> int(x), int(y). +base(1, 2). +base(2, 3). path(x, y) <- base(x, y). "
    "path(x, z) <- path(x, y), base(y, z). base(x, y) -> x < y. cnt[] = n -> int(n). +cnt[] = 4. "
    "even(x) <- x = 0. odd(y) <- even(x), y = x + 1, y < 9. even(y) <- odd(x), y = x + 1, y < 9.')";

/* Rules and constraints are in the file, a script that fails leaves nothing, and what is derived follows from the rows
 * that are there: after closing, after the log was read, after a save. */
static void test_rules(void **state) {
    UNUSED(state);
    const char *path = in_scratch("rules.wf");
    struct fault_db f = must_open(path);
    run(f.conn, made_rules);
    expect(f.conn, "select count(*) from path", "3;");
    for (int round = 0; round < 3; round++) {
        close_both(f);
        f = must_open(path);
        expect(f.conn, "select x, y from path order by x, y", "1|2;1|3;2|3;");
        expect(f.conn, "select count(*) from even", "5;");
        refused(f.conn, "call logiql('+base(3, 4). +base(5, 4).')", "23514");
        expect(f.conn, "select count(*) from path", "3;");
        run(f.conn, "call logiql('+base(3, 4).')");
        expect(f.conn, "select count(*) from path", "6;");
        run(f.conn, round == 1 ? "checkpoint" : "select 1");
        close_both(f);
        f = must_open(path);
        expect(f.conn, "select count(*) from path", "6;");
        run(f.conn, "call logiql('-base(3, 4).')");
        expect(f.conn, "select count(*) from path", "3;");
    }
    check_clean(f.conn);
    close_both(f);
    (void)unlink(path);
}

static void check_imported(wf_connection *conn) {
    expect(conn, "select a, b, c, d, e, f, g, h, i from t order by a",
           "1|q|1|0.1|1.25|2024-01-02 03:04:05.678|2024-01-02|true|1 mon;2|~|2|NaN|~|~|~|~|~;"
           "3||3|-1e+300|-3.00|~|0001-01-01|false|3 days 04:05:06;4|a \"b\", c\nd|4|Infinity|0.00|~|~|~|~;");
    expect(conn, "select id, r from z.late order by id", "7|1;9|2;");
    expect(conn, "select \"Co l\", \"select\" from \"Odd name\".\"Ta'ble\"", "1|o;");
    expect(conn, "select x, y from path order by x, y", "1|2;1|3;2|3;");
    expect(conn, "select count(*) from even", "5;");
    run(conn, "begin");
    run(conn, "insert into t2 (\"A a\") values (3); insert into \"Odd name\".t3 (b) values (2)");
    expect(conn, "table t2", "10|1|1|d;15|2|2|d;20|3|3|d;");
    expect(conn, "table \"Odd name\".t3", "1|1;4|2;");
    expect(conn, "table marked", "/* here */ 'y;");
    expect(conn, "table grown", "1|2|1;");
    expect(conn, "table \"Also\"", "1|2;");
    expect(conn, "select conname, pg_get_constraintdef(oid) from pg_constraint "
                 "where conrelid = 'twice'::regclass order by 1",
           "late|UNIQUE (a) DEFERRABLE;one|UNIQUE (a);other|UNIQUE (a);prime|PRIMARY KEY (a);");
    refused(conn, "insert into t2 (\"A a\") values (-3)", "23514");
    run(conn, "rollback");
    refused(conn, "call logiql('+base(5, 4).')", "23514");
    refused(conn, "insert into z.u (r) values (77)", "23503");
    refused(conn, "insert into t (a) values (50)", "23514");
    expect(conn, "select obj_description('t'::regclass), obj_description('z.late'::regclass)", "hi|a view;");
}

static void test_export(void **state) {
    UNUSED(state);
    const char *first = in_scratch("one/two"), *second = in_scratch("again");
    char sql[300];
    struct fault_db f = must_open(NULL);
    run(f.conn, made_schema);
    run(f.conn, made_rules);
    (void)snprintf(sql, sizeof sql, "export database '%s'", first);
    run(f.conn, sql);
    refused(f.conn, sql, "42710");
    check_imported(f.conn);
    struct fault_db g = must_open(NULL);
    refused(g.conn, "import database '/no/such/folder'", "58P01");
    (void)snprintf(sql, sizeof sql, "import database '%s'", first);
    run(g.conn, sql);
    (void)snprintf(sql, sizeof sql, "export database '%s'", second);
    run(g.conn, sql);
    check_imported(g.conn);
    (void)snprintf(sql, sizeof sql, "import database '%s'", first);
    refused(g.conn, sql, "42P06"); /* all is there already */
    const char *const texts[] = {"schema.sql", "load.sql"};
    for (int i = 0; i < 2; i++) { /* what was imported is exported alike */
        char one[400], two[400];
        (void)snprintf(one, sizeof one, "%s/%s", first, texts[i]);
        (void)snprintf(two, sizeof two, "%s/%s", second, texts[i]);
        char *a = slurp(one), *b = slurp(two);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    close_both(g);
    close_both(f);
}

/* Loads and reads past the system's cache: a disk that has no such door, or one that takes part of what it is given. */
enum door { DOOR_OPEN, DOOR_NONE, DOOR_REFUSES, DOOR_SHORT, DOOR_PAGES, DOOR_FAILS, DOORS };
static struct disk door_disk;
static enum door door;
static _Atomic i64 door_file, door_bytes, door_read_bytes;

static i64 door_part(i64 bytes) {
    return door == DOOR_SHORT ? MIN_OF(bytes, 1000) : door == DOOR_PAGES ? MIN_OF(bytes, 8192) : bytes;
}

static bool door_takes(const void *at, i64 bytes, i64 place) {
    bool whole = (size_t)at % 4096 == 0 && bytes % 4096 == 0 && place % 4096 == 0;
    return whole && door != DOOR_REFUSES && door != DOOR_FAILS;
}

static i64 door_direct(i64 file) {
    i64 direct = door == DOOR_NONE ? -EINVAL : disk_system.direct(file);
    atomic_store(&door_file, direct);
    return direct;
}

static i64 door_write(i64 file, const void *from, i64 bytes, i64 at) {
    if (file != atomic_load(&door_file)) {
        return disk_system.write(file, from, bytes, at);
    }
    if (!door_takes(from, bytes, at)) {
        return door == DOOR_FAILS ? -EIO : -EINVAL;
    }
    atomic_fetch_add(&door_bytes, bytes);
    return disk_system.write(file, from, door_part(bytes), at);
}

static i64 door_read(i64 file, void *to, i64 bytes, i64 at) {
    if (file != atomic_load(&door_file)) {
        return disk_system.read(file, to, bytes, at);
    }
    if (!door_takes(to, bytes, at)) {
        return door == DOOR_FAILS ? -EIO : -EINVAL;
    }
    atomic_fetch_add(&door_read_bytes, bytes);
    return disk_system.read(file, to, door_part(bytes), at);
}

static i64 door_cached(i64 file, i64 at, i64 bytes) {
    UNUSED(file);
    UNUSED(at);
    UNUSED(bytes);
    return 0;
}

static void ask(wf_connection *conn, const char *sql, char *text, size_t cap) {
    wf_result *result = NULL;
    assert_int_equal(wf_query(conn, sql, &result), WF_OK);
    flatten(result, text, cap);
    wf_result_close(result);
}

static void test_past_the_cache(void **state) {
    UNUSED(state);
    static const char sums[] = "select count(*), sum(a), sum(length(s)), max(s), sum(b) from t";
    static const char *const loads[] = {
        "create table t (a bigint, s text, b bigint)",
        "insert into t select i, 'words of row ' || i % 1000, i % 5000 * 7919 from generate_series(1, 300000) i",
        "insert into t select a, s || ' again', b from t",
    };
    door_disk = disk_system;
    door_disk.direct = door_direct;
    door_disk.write = door_write;
    door_disk.read = door_read;
    door_disk.cached = door_cached;
    disk_now = &door_disk;
    char *right = NULL;
    for (door = DOOR_OPEN; door < DOORS; door++) {
        const char *path = in_scratch("door.wf");
        static char text[1000];
        bool opens = door == DOOR_OPEN || door == DOOR_SHORT || door == DOOR_PAGES;
        atomic_store(&door_bytes, 0);
        struct fault_db f = must_open(path);
        run(f.conn, "set tablet_rows = 131072");
        for (size_t i = 0; i < COUNT_OF(loads); i++) {
            run(f.conn, loads[i]);
        }
        close_both(f);
        assert_true((atomic_load(&door_bytes) > 0) == opens);
        f = must_open(path);
        atomic_store(&door_read_bytes, 0);
        ask(f.conn, sums, text, sizeof text);
        i64 read = atomic_load(&door_read_bytes);
        assert_true((read > 0) == opens);
        right = right ? right : strdup(text);
        assert_string_equal(text, right);
        ask(f.conn, sums, text, sizeof text); /* from memory, or through the cache: it had to go */
        assert_string_equal(text, right);
        assert_true(atomic_load(&door_read_bytes) == read);
        check_clean(f.conn);
        close_both(f);
        assert_int_equal(unlink(path), 0);
    }
    free(right);
    disk_now = &disk_system;
}

/* Sessions that share syncs of the log, until one fails: nobody waits for ever, and what was said to be
 * durable is there. */
enum { SHARING = 6, SHARED_MOST = 200 };
static struct disk sync_disk;
static _Atomic i64 syncs_left;
static wf_database *shared;
static _Atomic i64 kept;
static _Atomic i32 ended;

static i64 sync_fails(i64 file) {
    return atomic_fetch_sub(&syncs_left, 1) > 0 ? disk_system.sync(file) : -EIO;
}

static void commit_until(void *arg) {
    i64 who = (i64)(size_t)arg;
    wf_connection *conn;
    assert_int_equal(wf_connect(shared, &conn), WF_OK);
    wf_status status = WF_OK;
    for (i64 i = 0; i < SHARED_MOST && !status; i++) {
        char sql[100];
        (void)snprintf(sql, sizeof sql, "insert into t values (%lld)", (long long)(who * SHARED_MOST + i));
        status = wf_query(conn, sql, NULL);
        atomic_fetch_add(&kept, !status);
    }
    bool io = status && strcmp(wf_connection_error(conn)->sqlstate, "58030") == 0;
    atomic_fetch_add(&ended, io);
    wf_disconnect(conn);
}

static void test_shared_syncs(void **state) {
    UNUSED(state);
    sync_disk = disk_system;
    sync_disk.sync = sync_fails;
    disk_now = &sync_disk;
    for (i64 good = 3; good < 60; good += 19) {
        const char *path = in_scratch("shared.wf");
        static char text[1000];
        atomic_store(&syncs_left, I64_MAX);
        atomic_store(&kept, 0);
        atomic_store(&ended, 0);
        struct fault_db f = must_open(path);
        run(f.conn, "create table t (i bigint)");
        shared = f.db;
        atomic_store(&syncs_left, good);
        struct thread *threads[SHARING];
        for (size_t i = 0; i < SHARING; i++) {
            threads[i] = thread_start(commit_until, (void *)i);
            assert_non_null(threads[i]);
        }
        for (size_t i = 0; i < SHARING; i++) {
            thread_join(threads[i]);
        }
        assert_int_equal(ended, SHARING);
        close_both(f);
        atomic_store(&syncs_left, I64_MAX);
        f = must_open(path);
        ask(f.conn, "select count(*) from t", text, sizeof text);
        assert_true(strtoll(text, NULL, 10) >= kept);
        close_both(f);
        assert_int_equal(unlink(path), 0);
    }
    disk_now = &disk_system;
}

static int make_scratch(void **state) {
    UNUSED(state);
    (void)snprintf(scratch, sizeof scratch, "/tmp/warpfox-care-XXXXXX");
    return mkdtemp(scratch) ? 0 : 1;
}

static int drop_scratch(void **state) {
    UNUSED(state);
    char sql[200];
    (void)snprintf(sql, sizeof sql, "rm -rf '%s'", scratch);
    return system(sql) ? 1 : 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),   cmocka_unit_test(test_newer),  cmocka_unit_test(test_lost_log),
        cmocka_unit_test(test_permissions), cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_full_after_crash), cmocka_unit_test(test_lazy),
        cmocka_unit_test(test_vacuum_opened),
        cmocka_unit_test(test_vacuum),    cmocka_unit_test(test_copy_of_memory), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_export), cmocka_unit_test(test_past_the_cache), cmocka_unit_test(test_shared_syncs),
    };
    return cmocka_run_group_tests_name("care", tests, make_scratch, drop_scratch);
}
