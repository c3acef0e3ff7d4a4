/* test_sessions.c: many sessions at once: transactions that meet, and what must hold whatever
 * happens.
 *
 * Threads move amounts between accounts, append, delete and redefine; every snapshot must show the
 * same total, every commit that lost must be 40001, and in the end the books must balance. Under
 * the thread sanitizer this is the test of editions, versions, tails and indexes being shared
 * without locks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "warpfox.h"

enum { SESSIONS = 6, ROUNDS = 60, ACCOUNTS = 20 };

static wf_database *db;
static _Atomic i32 wrong;
static _Atomic i32 lost;

static int setup(void **state) {
    (void)state;
    wf_option options[] = {{"threads", "2"}, {NULL, NULL}};
    return wf_open(NULL, options, &db, NULL) == WF_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    wf_close(db);
    return 0;
}

/* Runs a statement; "40001" and "23505" are for the caller to judge, everything else is wrong. */
static const char *run(wf_connection *conn, const char *sql) {
    wf_status status = wf_query(conn, sql, NULL);
    const char *state = wf_connection_error(conn)->sqlstate;
    if (status != WF_OK && strcmp(state, "40001") != 0 && strcmp(state, "23505") != 0 &&
        strcmp(state, "25P02") != 0) {
        fprintf(stderr, "%s: %s %s\n", sql, state, wf_connection_error(conn)->message);
        atomic_fetch_add(&wrong, 1);
    }
    return status == WF_OK ? "00000" : state;
}

static long long number(wf_connection *conn, const char *sql) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    long long value = -1;
    if (wf_query(conn, sql, &result) == WF_OK && wf_result_next_batch(result, &batch) == WF_OK &&
        batch) {
        char text[64];
        wf_value_text(batch, 0, 0, text, sizeof text);
        value = atoll(text);
    } else {
        fprintf(stderr, "%s: %s\n", sql, wf_connection_error(conn)->message);
        atomic_fetch_add(&wrong, 1);
    }
    wf_result_close(result);
    return value;
}

static void transfer(wf_connection *conn, u32 *seed) {
    char sql[200];
    *seed = *seed * 1103515245u + 12345u;
    u32 from = *seed >> 8 & 0xffff, to = *seed >> 16 & 0xff;
    run(conn, "begin");
    snprintf(sql, sizeof sql, "update accounts set amount = amount - 5 where id = %u",
             from % ACCOUNTS);
    run(conn, sql);
    snprintf(sql, sizeof sql, "update accounts set amount = amount + 5 where id = %u",
             to % ACCOUNTS);
    run(conn, sql);
    if (from % 7 == 0) {
        run(conn, "rollback");
        return;
    }
    const char *state = run(conn, "commit");
    if (strcmp(state, "40001") == 0) {
        atomic_fetch_add(&lost, 1);
    } else if (strcmp(state, "00000") != 0) {
        atomic_fetch_add(&wrong, 1);
    }
}

static void session(void *arg) {
    i32 me = *(i32 *)arg;
    wf_connection *conn = NULL;
    char sql[200];
    u32 seed = (u32)me * 7919u + 1;
    if (wf_connect(db, &conn) != WF_OK) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    for (i32 round = 0; round < ROUNDS; round++) {
        switch (me % 3) {
        case 0:
            transfer(conn, &seed);
            break;
        case 1: /* every snapshot balances, within a transaction and without */
            run(conn, "begin");
            for (int i = 0; i < 2; i++) {
                if (number(conn, "select sum(amount) from accounts") != ACCOUNTS * 100) {
                    atomic_fetch_add(&wrong, 1);
                }
            }
            run(conn, "commit");
            snprintf(sql, sizeof sql, "insert into log values (%d, 'session %d')",
                     me * 100000 + round, me);
            run(conn, sql);
            break;
        default: /* keys that meet, deletes, definitions */
            snprintf(sql, sizeof sql,
                     "insert into log values (%d, 'x'), (%d, null) on conflict do nothing", -round,
                     me * 100000 + round);
            run(conn, sql);
            if (round % 10 == 0) {
                snprintf(sql, sizeof sql, "create table own%d (a integer); drop table own%d", me,
                         me);
                run(conn, sql);
            }
            run(conn, "delete from scratch where a % 3 = 0");
            run(conn, "insert into scratch select g from generate_series(1, 50) as s(g)");
        }
    }
    wf_disconnect(conn);
}

static void test_crowd(void **state) {
    (void)state;
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run(conn,
        "create table accounts (id integer primary key, amount integer check (amount > -1000))");
    run(conn, "insert into accounts select g, 100 from generate_series(0, 19) as s(g)");
    run(conn, "create table log (id integer primary key, note text)");
    run(conn, "create table scratch (a integer)");
    struct thread *threads[SESSIONS];
    i32 numbers[SESSIONS];
    for (i32 i = 0; i < SESSIONS; i++) {
        numbers[i] = i;
        threads[i] = thread_start(session, &numbers[i]);
        assert_non_null(threads[i]);
    }
    for (i32 i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(number(conn, "select sum(amount) from accounts"), ACCOUNTS * 100);
    assert_int_equal(number(conn, "select count(*) from accounts"), ACCOUNTS);
    /* Two sessions of kind 1 and two of kind 2 wrote ROUNDS rows each under keys of their own, and
     * those of kind 2 the same ROUNDS keys below 1. */
    assert_int_equal(number(conn, "select count(*) from log"), 5 * ROUNDS);
    assert_int_equal(number(conn, "select count(distinct id) from log"), 5 * ROUNDS);
    wf_disconnect(conn);
}

static void test_closing(void **state) {
    (void)state;
    wf_connection *conn = NULL, *other = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    assert_int_equal(wf_connect(db, &other), WF_OK);
    run(conn, "create temporary table mine (a integer)");
    run(conn, "begin");
    run(conn, "create table open (a integer)");
    wf_disconnect(conn); /* rolls back, and takes the temporary table with it */
    assert_int_equal(wf_query(other, "select * from open", NULL), WF_ERROR);
    assert_int_equal(
        number(other, "select count(*) from information_schema.tables where table_name = 'mine'"),
        0);
    wf_disconnect(other);
}

/* Definitions change while rows do: whatever a statement meets is an error that says so, never a
 * crash and never an internal one. Under the thread sanitizer objects, sequences and views are
 * shared here as well. */
static const char *const redefinitions[] = {
    "alter table shape add column extra%d integer default 1",
    "alter table shape drop column if exists extra%d",
    "alter table shape alter column n set default %d",
    "alter table shape alter column n type bigint",
    "alter table shape alter column n type integer",
    "alter table shape rename column n to m; alter table shape rename column m to n -- %d",
    "update shape set n = n + 1 where id %% 7 = %d %% 7",
    "insert into shape (id, n) values (nextval('numbers'), %d)",
    "insert into shape (n) select g from generate_series(1, 20) s(g)",
    "delete from shape where id %% 5 = %d %% 5",
    "begin; update shape set n = %d where id < 20; update child set note = 'b'; commit",
    "begin; delete from shape where id = %d; rollback",
    "create or replace view seen as select id, n + %d as n from shape",
    "select count(*), sum(n) from seen",
    "drop view if exists seen",
    "create index if not exists by_n on shape (n)",
    "drop index if exists by_n",
    "alter sequence numbers increment %d",
    "select nextval('numbers'), currval('numbers')",
    "select count(*) from information_schema.columns where table_name = 'shape'",
    "select count(*) from pg_sequences",
    "insert into child select id, 'a' from shape limit 3",
    "truncate child",
    "comment on table shape is 'number %d'",
    "create table if not exists other (a integer references shape); drop table if exists other",
    "vacuum shape",
};

static void redefine(void *arg) {
    static const char *const fine[] = {"40001", "23505", "23503", "42P01", "42P07", "42703",
                                       "42701", "2BP01", "0A000", "25P02", "22003", "42P16",
                                       "42704", "55000", "22023"};
    u32 seed = (u32)(*(i32 *)arg) * 7919u + 3;
    wf_connection *conn = NULL;
    if (wf_connect(db, &conn) != WF_OK) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    for (i32 round = 0; round < 2 * ROUNDS; round++) {
        char sql[200];
        seed = seed * 1103515245u + 12345u;
        snprintf(sql, sizeof sql,
                 redefinitions[(seed >> 10) % (sizeof redefinitions / sizeof *redefinitions)],
                 (int)(seed >> 20) % 4 + 1);
        bool known = wf_query(conn, sql, NULL) == WF_OK;
        for (size_t i = 0; !known && i < sizeof fine / sizeof *fine; i++) {
            known = strcmp(wf_connection_error(conn)->sqlstate, fine[i]) == 0;
        }
        if (!known) {
            fprintf(stderr, "%s: %s %s\n", sql, wf_connection_error(conn)->sqlstate,
                    wf_connection_error(conn)->message);
            atomic_fetch_add(&wrong, 1);
        }
        wf_query(conn, "rollback", NULL);
    }
    wf_disconnect(conn);
}

static void test_redefine(void **state) {
    (void)state;
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run(conn, "create sequence numbers start 1000");
    run(conn, "create table shape (id integer primary key default nextval('numbers'), n integer)");
    run(conn, "create table child (id integer references shape on delete cascade, note text)");
    run(conn, "insert into shape select g, g from generate_series(1, 100) s(g)");
    atomic_store(&wrong, 0);
    struct thread *threads[SESSIONS];
    i32 numbers[SESSIONS];
    for (i32 i = 0; i < SESSIONS; i++) {
        numbers[i] = i;
        threads[i] = thread_start(redefine, &numbers[i]);
        assert_non_null(threads[i]);
    }
    for (i32 i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(
        number(conn, "select count(*) from child c where not exists (select from shape s where "
                     "s.id = c.id)"),
        0);
    assert_int_equal(number(conn, "select count(*) - count(distinct id) from shape"), 0);
    wf_disconnect(conn);
}

/* Statements that meet others at their commit are run again: what they are written for, keys that
 * are there already and tables that exist, is no error then. */
static void meet(void *arg) {
    i32 me = *(i32 *)arg;
    wf_connection *conn = NULL;
    char sql[200];
    if (wf_connect(db, &conn) != WF_OK) {
        atomic_fetch_add(&wrong, 1);
        return;
    }
    for (i32 round = 0; round < 10 * ROUNDS; round++) {
        const char *statements[] = {
            "insert into met values (%d, 1) on conflict do nothing",
            "insert into met values (%d, 1) on conflict (k) do update set n = met.n + 1",
            "create table if not exists made%d (a integer)", "create schema if not exists made%d"};
        snprintf(sql, sizeof sql, statements[round % 4], round / 4);
        if (wf_query(conn, sql, NULL) != WF_OK) {
            fprintf(stderr, "%d: %s: %s %s\n", me, sql, wf_connection_error(conn)->sqlstate,
                    wf_connection_error(conn)->message);
            atomic_fetch_add(&wrong, 1);
        }
    }
    wf_disconnect(conn);
}

static void test_meet(void **state) {
    (void)state;
    wf_connection *conn = NULL;
    assert_int_equal(wf_connect(db, &conn), WF_OK);
    run(conn, "create table met (k integer primary key, n integer)");
    atomic_store(&wrong, 0);
    struct thread *threads[SESSIONS];
    i32 numbers[SESSIONS];
    for (i32 i = 0; i < SESSIONS; i++) {
        numbers[i] = i;
        threads[i] = thread_start(meet, &numbers[i]);
        assert_non_null(threads[i]);
    }
    for (i32 i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(number(conn, "select count(*) from met"), 10 * ROUNDS / 4);
    assert_int_equal(number(conn, "select min(n) from met"), SESSIONS + 1);
    assert_int_equal(number(conn, "select max(n) from met"), SESSIONS + 1);
    wf_disconnect(conn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_redefine, setup, teardown),
        cmocka_unit_test_setup_teardown(test_meet, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
