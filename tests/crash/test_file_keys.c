/* test_file_keys.c: keys of tables that were read from a database file say what keys in memory say.
 *
 * The same statements go to a database in memory and to one in a file, which is closed and opened, saved and
 * vacuumed in between: every status, message and table is compared. Tablets are small, so that keys are found in
 * many of them: by order, by hashes that were written, and by hashes that were made when first needed. */
#define _GNU_SOURCE
#include "crash.h"

#include <unistd.h>

#include "store/file_int.h"

static char path[100];
static u64 seed;
static i64 twins; /* 23505 */

static i64 draw(i64 below) {
    seed = hash_u64(seed + 1);
    return (i64)(seed % (u64)below);
}

struct two {
    struct fault_db memory, file;
};

static void reopen(struct two *two) {
    close_both(two->file);
    two->file = must_open(path);
    run(two->file.conn, "set tablet_rows = 64");
}

/* Both say the same. */
static void both(struct two *two, const char *sql) {
    wf_status a = wf_query(two->memory.conn, sql, NULL);
    wf_error left = *wf_connection_error(two->memory.conn);
    wf_status b = wf_query(two->file.conn, sql, NULL);
    wf_error right = *wf_connection_error(two->file.conn);
    if (a != b || (a && (strcmp(left.sqlstate, right.sqlstate) != 0 ||
                         strcmp(left.message, right.message) != 0 || strcmp(left.hint, right.hint) != 0))) {
        fprintf(stderr, "%s\nmemory: %s %s %s\nfile:   %s %s %s\n", sql, a ? left.sqlstate : "fine",
                a ? left.message : "", a ? left.hint : "", b ? right.sqlstate : "fine", b ? right.message : "",
                b ? right.hint : "");
        fail();
    }
    twins += a && strcmp(left.sqlstate, "23505") == 0;
}

static void ask_both(struct two *two, const char *sql) {
    static char left[8000];
    wf_result *result = must(two->memory.conn, sql);
    flatten(result, left, sizeof left);
    wf_result_close(result);
    expect(two->file.conn, sql, left);
}

static void compare(struct two *two) {
    ask_both(two, "select count(*), sum(k), sum(k * 31 + a * 7 + b), count(s), max(s), sum(f), count(f) from t");
    ask_both(two, "select count(*), sum(k * (id + 3)) from kid");
    ask_both(two, "select k, a, b, s, f from t order by k limit 20");
}

static void make(struct two *two, bool in_order) {
    both(two, "set tablet_rows = 64");
    both(two, "create table t (k bigint primary key, a integer not null, b integer not null, s text unique, "
              "f double precision, unique (a, b), unique (f))");
    both(two, "create table kid (id integer, k bigint references t (k) on update cascade on delete cascade)");
    char sql[400];
    (void)snprintf(sql, sizeof sql,
                   "insert into t select %s, %s, i %% 4, case when i %% 5 > 0 then 'name ' || i end, "
                   "case when i %% 3 > 0 then i / 8.0 end from generate_series(1, %d) i",
                   in_order ? "i * 10" : "(i * 7919) % 10007 * 10", in_order ? "i / 4" : "(i * 31) % 1009",
                   (int)(500 + draw(1000)));
    both(two, sql);
}

static void change(struct two *two) {
    char sql[400];
    long long from = draw(10000), n = 1 + draw(draw(3) ? 4 : 90), k = draw(2) ? from * 10 : -draw(100000) * 10 - 5;
    switch (draw(12)) {
    case 0:
    case 1:
        (void)snprintf(sql, sizeof sql,
                       "insert into t select %lld - i * 13, 5000 + (%lld + i * 7) %% 3000, i %% 3, "
                       "'more ' || %lld - i, null from generate_series(1, %lld) i", k, from, k, n);
        break;
    case 2:
        (void)snprintf(sql, sizeof sql, "insert into t values (%lld, %lld, 1, 'name %lld', %lld / 8.0)", k,
                       9000 + draw(500), draw(3000), draw(6000));
        break;
    case 3:
        (void)snprintf(sql, sizeof sql,
                       "insert into t select %lld + i * 10, %lld + i, 9, null, null from generate_series(1, %lld) i "
                       "on conflict do nothing", from * 10, 20000 + from, n);
        break;
    case 4:
        (void)snprintf(sql, sizeof sql,
                       "insert into t values (%lld, %lld, 8, null, null), (%lld, %lld, 7, null, null) on conflict (k) "
                       "do update set a = t.a + 1", from * 10, 30000 + from, k, 30000 + from);
        break;
    case 5:
        (void)snprintf(sql, sizeof sql, "delete from t where k between %lld and %lld", from * 10, from * 10 + n * 20);
        break;
    case 6:
        (void)snprintf(sql, sizeof sql, "update t set k = k + %d where k between %lld and %lld", draw(2) ? 10 : 3,
                       from * 10, from * 10 + n * 10);
        break;
    case 7:
        (void)snprintf(sql, sizeof sql, "update t set s = 'name %lld', f = f + 0.125 where k between %lld and %lld",
                       draw(2000), from * 10, from * 10 + 30);
        break;
    case 8:
        (void)snprintf(sql, sizeof sql, "insert into kid values (%lld, %lld)", from, from * 10);
        break;
    case 9:
        (void)snprintf(sql, sizeof sql,
                       "begin; insert into t values (%lld, %lld, 3, null, null); delete from t where k < %lld; %s", k,
                       40000 + from, -draw(900000), draw(2) ? "rollback" : "commit");
        break;
    case 10:
        (void)snprintf(sql, sizeof sql, "update t set a = b, b = a where a between %lld and %lld", from % 900,
                       from % 900 + n / 8);
        break;
    default:
        (void)snprintf(sql, sizeof sql, "%s",
                       draw(3)   ? "select k from t where k = 70"
                       : draw(2) ? "alter table t add column extra integer default 4; alter table t drop column extra"
                                 : "create unique index ki on t (k, s); drop index ki");
        break;
    }
    both(two, sql);
    both(two, "rollback"); /* what failed inside a transaction */
}

static void tend(struct two *two) {
    switch (draw(12)) {
    case 0:
    case 1:
        reopen(two);
        break;
    case 2:
        run(two->file.conn, "checkpoint");
        break;
    case 3:
        run(two->file.conn, "vacuum");
        break;
    case 4:
        check_clean(two->file.conn);
        compare(two);
        break;
    default:
        break;
    }
}

static void test_alike(void **state) {
    UNUSED(state);
    i64 trials = asked("KEY_TRIALS", 6);
    seed = (u64)asked("KEY_SEED", 11);
    for (i64 trial = 0; trial < trials; trial++) {
        struct two two = {open_with("1", NULL), must_open(path)};
        make(&two, trial % 2);
        reopen(&two);
        for (i64 i = 0; i < 120; i++) {
            change(&two);
            tend(&two);
        }
        compare(&two);
        check_clean(two.file.conn);
        reopen(&two);
        compare(&two);
        close_both(two.memory);
        close_both(two.file);
        (void)unlink(path);
    }
}

/* Two sessions of each database, whose transactions meet; the key d is looked at when they commit. */
struct pair {
    struct two two;
    struct two others; /* of the same databases: only their sessions count */
};

static void pair_connect(struct pair *pair) {
    assert_int_equal(wf_connect(pair->two.memory.db, &pair->others.memory.conn), WF_OK);
    assert_int_equal(wf_connect(pair->two.file.db, &pair->others.file.conn), WF_OK);
}

static void pair_disconnect(struct pair *pair) {
    both(&pair->two, "rollback");
    both(&pair->others, "rollback");
    wf_disconnect(pair->others.memory.conn);
    wf_disconnect(pair->others.file.conn);
}

static void pair_change(struct pair *pair) {
    struct two *who = draw(2) ? &pair->two : &pair->others;
    char sql[200];
    long long k = draw(2) ? draw(400) : draw(12), d = draw(2) ? draw(400) : draw(12);
    switch (draw(9)) {
    case 0:
    case 1:
        (void)snprintf(sql, sizeof sql, "begin");
        break;
    case 2:
    case 3:
        (void)snprintf(sql, sizeof sql, "%s", draw(4) ? "commit" : "rollback");
        break;
    case 4:
        (void)snprintf(sql, sizeof sql, "delete from m where k between %lld and %lld", k, k + draw(3));
        break;
    case 5:
        (void)snprintf(sql, sizeof sql, "update m set %s where k = %lld", draw(2) ? "k = k + 1" : "d = d + 1", k);
        break;
    case 6:
        (void)snprintf(sql, sizeof sql, "insert into m values (%lld, %lld) on conflict (k) do nothing", k, d);
        break;
    default:
        (void)snprintf(sql, sizeof sql, "insert into m values (%lld, %lld)", k, d);
        break;
    }
    both(who, sql);
}

/* Of two who do the same at the same time one is refused. */
static void meet(struct pair *pair, const char *sql, const char *sqlstate) {
    struct two *who[] = {&pair->two, &pair->others};
    i64 refused = 0;
    both(who[0], "begin");
    both(who[1], "begin");
    for (int step = 0; step < 4; step++) {
        both(who[step % 2], step < 2 ? sql : "commit");
        const wf_error *error = wf_connection_error(who[step % 2]->file.conn);
        refused += error->sqlstate[0] && strcmp(error->sqlstate, sqlstate) == 0;
    }
    both(who[0], "rollback");
    both(who[1], "rollback");
    assert_int_equal(refused, 1);
}

static void test_meet(void **state) {
    UNUSED(state);
    seed = (u64)asked("KEY_SEED", 11);
    i64 round = 0;
    twins = 0;
    struct pair pair = {.two = {open_with("1", NULL), must_open(path)}};
    both(&pair.two, "set tablet_rows = 64");
    both(&pair.two, "create table m (k integer primary key, d integer unique deferrable initially deferred)");
    both(&pair.two, "insert into m select i * 7919 % 401, i * 31 % 401 from generate_series(1, 200) i");
    for (; round < asked("KEY_TRIALS", 6); round++) {
        reopen(&pair.two);
        pair_connect(&pair);
        meet(&pair, "insert into m values (1000, null)", "23505");
        meet(&pair, "update m set k = 1001 where k = 1000", "40001");
        both(&pair.two, "insert into m values (1000, null)");
        meet(&pair, "delete from m where k = 1000", "40001");
        both(&pair.others, "delete from m where k = 1001");
        for (i64 i = 0; i < 60; i++) {
            pair_change(&pair);
        }
        pair_disconnect(&pair);
        ask_both(&pair.two, "select count(*), count(distinct k), count(d), count(distinct d), sum(k * 401 + d) from m");
        run(pair.two.file.conn, round % 2 ? "vacuum" : "checkpoint");
        check_clean(pair.two.file.conn);
    }
    assert_true(round == 0 || twins > 20);
    close_both(pair.two.memory);
    close_both(pair.two.file);
    (void)unlink(path);
}

/* Of tablets as large as they get, whose hashes are in several chunks. */
static void test_large(void **state) {
    UNUSED(state);
    struct fault_db f = must_open(path);
    run(f.conn, "create table big (k bigint primary key, v integer)");
    run(f.conn, "insert into big select (i::bigint * 7368787) % 15485863 - 5000, i from generate_series(1, 300000) i");
    close_both(f);
    f = must_open(path);
    refuse(f.conn, "insert into big select k, 0 from big where v = 77777", "23505", "already exists");
    refuse(f.conn, "insert into big select k, 0 from big", "23505", "already exists");
    run(f.conn, "insert into big select k, -1 from big where v % 3000 = 0 "
                "on conflict (k) do update set v = excluded.v");
    expect(f.conn, "select count(*), count(distinct k), count(*) filter (where v < 0) from big",
           "300000|300000|100;");
    run(f.conn, "insert into big select i + 20000000, 0 from generate_series(1, 100000) i");
    refuse(f.conn, "insert into big values (20050000, 0)", "23505", "(20050000)");
    check_clean(f.conn);
    close_both(f);
    (void)unlink(path);
}

/* An index of the whole table would not fit. */
static void test_memory(void **state) {
    UNUSED(state);
    struct fault_db f = must_open(path);
    run(f.conn, "create table big (k bigint primary key)");
    run(f.conn, "insert into big select (i::bigint * 7368787) % 15485863 from generate_series(1, 2000000) i");
    close_both(f);
    wf_option options[] = {{"device", "cpu"}, {"threads", "1"}, {"memory", "24MB"}, {NULL, NULL}};
    assert_int_equal(wf_open(path, options, &f.db, NULL), WF_OK);
    assert_int_equal(wf_connect(f.db, &f.conn), WF_OK);
    run(f.conn, "insert into big values (-1)");
    refuse(f.conn, "insert into big values (7368787)", "23505", "(7368787)");
    /* Look-ups of many, which hold more than a share of memory in between. */
    run(f.conn, "create table kid (k bigint references big on delete cascade)");
    run(f.conn, "insert into kid select (i::bigint * 7368787) % 15485863 from generate_series(1, 200) i");
    refuse(f.conn, "insert into kid select (i::bigint * 7368787) % 15485863 from generate_series(1999900, 2000001) i",
           "23503", "big");
    run(f.conn, "insert into big select (i::bigint * 7368787) % 15485863 from generate_series(1999901, 2000100) i "
                "on conflict do nothing");
    expect(f.conn, "select count(*) from big", "2000101;");
    run(f.conn, "delete from big where k in (select k from kid where k % 2 = 0)");
    expect(f.conn, "select count(*) = (select count(*) from kid) + 1999901 from big", "true;");
    close_both(f);
    (void)unlink(path);
}

int main(void) {
    char folder[] = "/tmp/warpfox_keys_XXXXXX";
    if (!mkdtemp(folder)) {
        return 1;
    }
    (void)snprintf(path, sizeof path, "%s/keys.wf", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_meet),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
