/* test_crash_many.c: several sessions commit while the file is saved in the background; the power goes at any
 * moment.
 *
 * Every session writes down numbers one after the other, each in a transaction that also counts them; some load
 * many rows, which are saved at once, and some ask for a checkpoint. The log is so short that it is saved all
 * the time, and goes on at its start again and again. After a crash a session's numbers are those from 1 to one
 * that is no less than the last whose commit had returned, and the count says so, too; loads are there whole.
 *
 * CRASH_POINTS: how many crashes. Threads are not dice: a failure need not repeat. */
#define CHECKPOINT_SIZE "24kB"
#include "crash.h"

enum { SESSIONS = 4, STEPS = 120, LOAD_ROWS = 20000 };

struct teller {
    wf_database *db;
    int id;
    bool failed;
    i64 begun[STEPS + 2], done[STEPS + 2]; /* lines of the journal */
};

static bool commit_one(wf_connection *conn, int id, int n) {
    char sql[600];
    (void)snprintf(sql, sizeof sql,
                   "begin; insert into numbers values (%d, %d, repeat('x', %d)); "
                   "update counts set n = %d where id = %d; commit",
                   id, n, 10 * (n % 40), n, id);
    for (int tries = 0; wf_query(conn, sql, NULL); tries++) {
        bool again = strcmp(wf_connection_error(conn)->sqlstate, "40001") == 0 && tries < 10000;
        if (!again) {
            show_error(conn, sql);
            return false;
        }
        (void)wf_query(conn, "rollback", NULL);
    }
    return true;
}

static void tell(void *arg) {
    struct teller *t = arg;
    wf_connection *conn = NULL;
    char load[200];
    (void)snprintf(load, sizeof load, "insert into loads select %d, i from generate_series(1, %d) i", t->id,
                   LOAD_ROWS);
    t->failed = wf_connect(t->db, &conn) != WF_OK;
    for (int n = 1; n <= STEPS && !t->failed; n++) {
        t->begun[n] = disk_lines();
        t->failed = !commit_one(conn, t->id, n);
        t->done[n] = disk_lines();
        const char *more = n % 31 == 0 ? load : n % 23 == 0 ? "checkpoint" : NULL;
        if (more && wf_query(conn, more, NULL)) {
            show_error(conn, more);
            t->failed = true;
        }
    }
    wf_disconnect(conn);
}

static i64 ask(wf_connection *conn, const char *format, int id) {
    char sql[200], text[1000];
    (void)snprintf(sql, sizeof sql, format, id);
    wf_result *result = must(conn, sql);
    flatten(result, text, sizeof text);
    wf_result_close(result);
    return atoll(text);
}

static void check_teller(wf_connection *conn, const struct teller *t, i64 point) {
    i64 least = 0, most = 0;
    for (int n = 1; n <= STEPS; n++) {
        least = t->done[n] <= point ? n : least;
        most = t->begun[n] <= point ? n : most;
    }
    i64 count = ask(conn, "select count(*) from numbers where id = %d", t->id);
    i64 last = ask(conn, "select coalesce(max(n), 0) from numbers where id = %d", t->id);
    i64 counted = ask(conn, "select n from counts where id = %d", t->id);
    if (count != last || count != counted || count < least || count > most) {
        fprintf(stderr, "crash behind line %lld: session %d has %lld numbers up to %lld, counted %lld; %lld to %lld\n",
                (long long)point, t->id, (long long)count, (long long)last, (long long)counted, (long long)least,
                (long long)most);
        fail();
    }
    assert_int_equal(ask(conn, "select count(*) from loads where id = %d", t->id) % LOAD_ROWS, 0);
}

static void crash_once(const struct teller *tellers, i64 point, bool mild) {
    crash_at(point, mild);
    struct journal kept = journal_aside();
    struct fault_db f = must_open(PATH);
    for (int i = 0; i < SESSIONS; i++) {
        check_teller(f.conn, &tellers[i], point);
    }
    check_clean(f.conn);
    run(f.conn, "insert into numbers values (100, 1, '')");
    close_both(f);
    f = must_open(PATH);
    expect(f.conn, "select count(*) from numbers where id = 100", "1;");
    close_both(f);
    journal_back(kept);
}

static void test_many(void **state) {
    UNUSED(state);
    disk_now = &disk_paper;
    dice = (u64)asked("CRASH_SEED", 3);
    struct fault_db f = must_open(PATH);
    run(f.conn, "create table numbers (id integer, n integer, s text, primary key (id, n)); "
                "create table counts (id integer primary key, n integer); create table loads (id integer, i integer)");
    run(f.conn, "insert into counts select i, 0 from generate_series(0, 9) i");
    i64 start = disk_lines();
    struct teller tellers[SESSIONS];
    struct thread *threads[SESSIONS];
    memset(tellers, 0, sizeof tellers);
    for (int i = 0; i < SESSIONS; i++) {
        tellers[i].db = f.db;
        tellers[i].id = i;
        threads[i] = thread_start(tell, &tellers[i]);
        assert_non_null(threads[i]);
    }
    for (int i = 0; i < SESSIONS; i++) {
        thread_join(threads[i]);
        assert_false(tellers[i].failed);
    }
    close_both(f);
    i64 end = disk_lines(), points = asked("CRASH_POINTS", 40);
    for (i64 i = 0; i < points; i++) {
        crash_once(tellers, start + roll((u32)(end - start) + 1), i % 4 == 0);
    }
    disk_forget();
    disk_now = &disk_system;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};
    return cmocka_run_group_tests_name("crash_many", tests, NULL, NULL);
}
