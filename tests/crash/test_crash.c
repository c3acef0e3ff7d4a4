/* test_crash.c: the power goes at any moment, the disk fails at any call, a bit flips anywhere.
 *
 * A workload of definitions, loads, changes, checkpoints and vacuums runs over a recording disk. After
 * every statement the whole database is written down as text. Then, for many points of the journal, the disk
 * is made what a crash there may leave, and opened: the database must be as it was after the last
 * statement that had returned, or after the one in flight; `check_database` must find nothing;
 * it must take a change, and have it after another opening. Some crashes hit the recovery, too.
 *
 * CRASH_POINTS, BIT_FLIPS: how many (a few hundred; 10,000 is for by hand). CRASH_SEED: where the dice begin. */
#include "crash.h"

static const char *const workload[] = {
    "create table t (k integer primary key, s text, d decimal(9,2) default 1.5, f double precision)",
    "insert into t values (1, 'one', 2.25, 0.5), (2, null, default, null), (3, 'three', null, -1)",
    "create sequence q start 10",
    "select nextval('q')",
    "insert into t select i, 'row ' || i % 13, i / 4.0, i from generate_series(10, 60) i",
    "update t set s = s || '!' where k % 3 = 0",
    "delete from t where k between 20 and 30",
    "create table big as select i a, i % 7 b, 'text ' || i c from generate_series(1, 3000) i",
    "set tablet_rows = 256; create table mix (k integer primary key, v integer); reset tablet_rows",
    "insert into mix select i * 7919 % 10007, i from generate_series(1, 1500) i",
    "create view v as select k, s from t where k < 40",
    "checkpoint",
    "insert into t values (100, 'hundred', 100, 100)",
    "alter table t add column n bigint default 7",
    "update big set b = b + 1 where a % 10 = 0",
    "create table kids (id integer generated always as identity, k integer references t (k) on delete cascade, "
    "check (k > 0))",
    "insert into kids (k) values (1), (2), (100)",
    "begin; insert into kids (k) values (3); update t set n = 8 where k = 3; delete from t where k = 2; commit",
    "insert into mix select 20000 - i * 7 % 601, i from generate_series(1, 600) i",
    "update mix set k = -k where v % 40 = 3",
    "select nextval('q'), nextval('q')",
    "delete from big where a < 2500",
    "begin; create schema z; create table z.w (m text unique); insert into z.w values ('a'), ('b'); commit",
    "delete from mix where v between 100 and 700",
    "vacuum",
    "comment on table t is 'a table'",
    "alter table big drop column c",
    "insert into big select i, i from generate_series(1, 20000) i",
    "set tablet_rows = 1024; create table loaded as select i a, 'text ' || i % 50 || ' of words ' || i c, i * 0.25 d "
    "from generate_series(1, 5000) i; reset tablet_rows", /* columns are written before the commit */
    "begin; insert into loaded select i, 'not ' || i, i from generate_series(1, 5000) i; rollback",
    "insert into loaded select 10000 + i, 'more ' || i % 9, i from generate_series(1, 5000) i",
    "create unique index kids_id on kids (id)",
    "alter table z.w rename to x",
    "delete from t where k = 100",
    "truncate z.x",
    "call logiql('base(x, y) -> int(x), int(y). +base(1, 2). +base(2, 3). path(x, y) <- base(x, y). "
    "path(x, z) <- path(x, y), base(y, z).')",
    "call logiql('ways[x] = n <- agg<< n = count() >> path(x, _). named(s, y) <- t(x, s, _, _, _), path(x, y). "
    "named(s, z) <- named(s, y), base(y, z).')",
    "begin; drop view v; drop table big; commit",
    "checkpoint",
    "insert into base values (3, 4), (10, 11)", /* kept rows of the file follow from what was before */
    "delete from base where x = 1",
    "checkpoint",
    "insert into t select i, 'late' from generate_series(200, 230) i",
    "delete from t where k > 215",
};
enum { STATEMENTS = sizeof workload / sizeof workload[0] };

/* What a user can see of a database. */
static const char *const questions[] = {
    "select relname, relkind from pg_class where oid >= 16384 order by relname",
    "select conname, contype from pg_constraint order by 1",
    "select table_name, column_name, data_type, column_default from information_schema.columns "
    "where table_schema in ('public', 'z') order by 1, ordinal_position",
    "select k, s, d, f from t order by k",
    "select sum(n), count(*), obj_description(min(c.oid)) from t, pg_class c where relname = 't'",
    "select count(*), sum(a), sum(b) from big",
    "select min(c), max(c) from big",
    "select count(*), sum(a), min(c), max(c), sum(length(c)), sum(d) from loaded",
    "select count(*), sum(k), sum(k * v) from mix",
    "select id, k from kids order by id",
    "select k, s from v order by k",
    "select last_value, is_called from q",
    "select m from z.w order by m",
    "select m from z.x order by m",
    "select x, y from path order by x, y",
    "select x, n from ways order by x",
    "select s, y from named order by s, y",
};

static char *append_text(char *all, size_t *io_len, const char *text) {
    size_t len = strlen(text);
    all = realloc(all, *io_len + len + 2);
    memcpy(all + *io_len, text, len);
    memcpy(all + *io_len + len, "\n", 2);
    *io_len += len + 1;
    return all;
}

static char *look(wf_connection *conn) {
    static char text[100000];
    char *all = NULL;
    size_t len = 0;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        wf_result *result = NULL;
        if (wf_query(conn, questions[i], &result)) {
            all = append_text(all, &len, wf_connection_error(conn)->sqlstate);
        } else {
            flatten(result, text, sizeof text);
            all = append_text(all, &len, text);
        }
        wf_result_close(result);
    }
    return all;
}

static struct {
    char *states[STATEMENTS + 1]; /* before the first statement, and after each */
    i64 lines[STATEMENTS + 1];    /* of the journal then */
    i64 closed;                   /* lines when it was closed */
} story;

static void tell_story(void) {
    struct fault_db f = must_open(PATH);
    story.states[0] = look(f.conn);
    story.lines[0] = disk.count;
    for (int i = 0; i < STATEMENTS; i++) {
        run(f.conn, workload[i]);
        story.lines[i + 1] = disk.count;
        story.states[i + 1] = look(f.conn);
    }
    close_both(f);
    story.closed = disk.count;
}

static void forget_story(void) {
    for (int i = 0; i <= STATEMENTS; i++) {
        free(story.states[i]);
    }
    disk_forget();
}

static int first_difference(const char *a, const char *b) {
    int line = 1;
    for (; *a && *a == *b; a++, b++) {
        line += *a == '\n';
    }
    return line;
}

/* The database is as after `least` statements, or one more. */
static void check_state(wf_connection *conn, int least, int most, i64 point) {
    char *now = look(conn);
    bool found = false;
    for (int i = least; i <= most && !found; i++) {
        found = strcmp(now, story.states[i]) == 0;
    }
    if (!found) {
        fprintf(stderr, "crash behind line %lld, statement %d \"%.60s\": question %d\n%s\n--- should be\n%s\n",
                (long long)point, least, workload[MIN_OF(least, STATEMENTS - 1)],
                first_difference(now, story.states[least]), now, story.states[least]);
    }
    free(now);
    assert_true(found);
}

/* A disk as after a crash, for a journal of its own; the story's is kept aside. */
static void crash_once(i64 point, bool mild, bool twice) {
    int least = 0;
    while (least < STATEMENTS && story.lines[least + 1] <= point) {
        least++;
    }
    int most = MIN_OF(least + 1, STATEMENTS);
    crash_at(point, mild);
    struct journal kept = journal_aside();
    i64 before = disk.count;
    struct fault_db f = must_open(PATH);
    if (twice) { /* the power goes during the recovery, or just behind it */
        i64 during = before + roll((u32)(disk.count - before) + 1);
        close_both(f);
        crash_at(during, false);
        journal_drop(0);
        f = must_open(PATH);
    }
    check_state(f.conn, least, most, point);
    check_clean(f.conn);
    run(f.conn, "create table after (a integer)");
    run(f.conn, "insert into after values (42)");
    close_both(f);
    f = must_open(PATH);
    expect(f.conn, "select a from after", "42;");
    close_both(f);
    journal_back(kept);
}

static void test_crashes(void **state) {
    UNUSED(state);
    disk_now = &disk_paper;
    dice = (u64)asked("CRASH_SEED", 1);
    tell_story();
    i64 points = asked("CRASH_POINTS", 120);
    for (i64 i = 0; i < points; i++) {
        i64 point = points >= story.closed && i < story.closed ? i : roll((u32)story.closed + 1);
        crash_once(point, i % 4 == 0, i % 3 == 0);
    }
    forget_story();
    disk_now = &disk_system;
}

/* A statement that failed when it was to be committed: nothing is left of it but the numbers that it
 * took from sequences. */
static void run_in_vain(wf_connection *conn, const char *sql) {
    char text[1000];
    size_t len = strlen(sql), end = strlen("; commit");
    bool is_block = strncmp(sql, "begin; ", strlen("begin; ")) == 0;
    (void)snprintf(text, sizeof text, "%s%.*s", is_block ? "" : "begin; ",
                   (int)(is_block ? len - end : len), sql);
    (void)wf_query(conn, text, NULL);
    (void)wf_query(conn, "rollback", NULL);
}

static bool looks_like(wf_connection *conn, const char *should) {
    char *now = look(conn);
    bool same = strcmp(now, should) == 0;
    free(now);
    return same;
}

/* The n-th call fails: the statement says so or does not mind, those that passed are there, also
 * after another opening. Where the disk takes no more changes, a statement whose sync failed may be
 * there as well; where it does, sequences go on behind the numbers that failed statements took. */
static void fail_once(i64 nth, int error, bool fails_on) {
    struct fault_db model = must_open(NULL), going_on = must_open(NULL), f;
    wf_error why;
    papers_clear();
    disk.calls = 0;
    disk.fail_at = nth;
    disk.error = error;
    disk.fails_on = fails_on;
    const char *unsure = NULL;
    if (try_open(&f, PATH, &why)) {
        for (int i = 0; i < STATEMENTS; i++) {
            if (wf_query(f.conn, workload[i], NULL)) {
                const char *code = wf_connection_error(f.conn)->sqlstate;
                bool disks = strcmp(code, "53100") == 0 || strcmp(code, "58030") == 0;
                unsure = disks && !unsure ? workload[i] : unsure;
                (void)wf_query(f.conn, "rollback", NULL);
                run_in_vain(going_on.conn, workload[i]);
            } else {
                run(model.conn, workload[i]);
                run(going_on.conn, workload[i]);
            }
        }
        close_both(f);
    } else {
        assert_true(strcmp(why.sqlstate, "53100") == 0 || strcmp(why.sqlstate, "58030") == 0);
    }
    disk.fail_at = 0;
    f = must_open(PATH);
    char *now = look(f.conn), *should = look(model.conn);
    bool same = strcmp(now, should) == 0 || (!fails_on && looks_like(going_on.conn, now));
    if (!same && unsure) {
        (void)wf_query(model.conn, unsure, NULL);
        same = looks_like(model.conn, now);
    }
    if (!same) {
        fprintf(stderr, "call %lld fails: question %d\n%s\n---\n%s\n", (long long)nth,
                first_difference(now, should), now, should);
    }
    assert_true(same);
    check_clean(f.conn);
    free(now);
    free(should);
    close_both(f);
    close_both(model);
    close_both(going_on);
    journal_drop(0);
}

static void test_failures(void **state) {
    UNUSED(state);
    disk_now = &disk_paper;
    static const int errors[] = {ENOSPC, EIO};
    i64 points = asked("CRASH_POINTS", 40);
    i64 calls = story.closed; /* about as many */
    for (i64 i = 0; i < MIN_OF(points, 2 * calls); i++) {
        fail_once(1 + roll((u32)calls), errors[i % 2], i % 4 >= 2);
    }
    disk_forget();
    disk_now = &disk_system;
}

/* One bit is another one: the file is refused, or all is as it was; a flip at the end of a log that
 * a crash left may also read as a commit that was not finished. */
static void test_flips(void **state) {
    UNUSED(state);
    disk_now = &disk_paper;
    dice = (u64)asked("CRASH_SEED", 7);
    tell_story();
    i64 flips = asked("BIT_FLIPS", 60);
    for (i64 i = 0; i < flips; i++) {
        bool crashed = i % 3 == 0;
        int after = (int)roll(STATEMENTS + 1);
        crash_at(crashed ? story.lines[after] : story.closed, true);
        struct paper *p = crashed && roll(2) ? paper_find(PATH ".log") : paper_find(PATH);
        if (p->size == 0) {
            continue;
        }
        i64 at = roll((u32)p->size);
        p->data[at] ^= (u8)(1 << roll(8));
        struct fault_db f;
        wf_error error;
        i64 lines = disk.count;
        if (try_open(&f, PATH, &error)) {
            int least = crashed ? after : STATEMENTS;
            bool is_log = crashed && p != paper_find(PATH);
            while (is_log && least > 0 && strcmp(story.states[least], story.states[after]) == 0) {
                least--; /* the last record is of the last statement that changed anything */
            }
            char *seen = look(f.conn); /* a column may be found to be damaged when it is read */
            if (!strstr(seen, "XX001")) {
                check_state(f.conn, least, crashed ? after : STATEMENTS, story.lines[after]);
            }
            free(seen);
            close_both(f);
        } else {
            assert_true(strcmp(error.sqlstate, "XX001") == 0 ||
                        strcmp(error.sqlstate, "42809") == 0 ||
                        strcmp(error.sqlstate, "0A000") == 0);
        }
        journal_drop(lines);
    }
    forget_story();
    disk_now = &disk_system;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_flips),
    };
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
