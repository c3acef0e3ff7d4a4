/* test_fault_cut.c: pipelines that are cut (decision 0044), joins whose texts go with their rows and
 * aggregates of texts in sorted runs fail at any moment, and are stopped at any.
 *
 * Small tables and a statement_memory that has no room for their indexes or interners: EXPLAIN ANALYZE
 * says that the statement is cut. Then memory is refused, the disk of temporary space fails, or the
 * statement is told to end, at the n-th occasion. Each attempt gives the right answer or a plain error,
 * all memory and all temporary files come back, and the session's next answers are right. */
#include "fault.h"

#include <errno.h>

#include "base/disk.h"
#include "base/stop.h"

/* Of many occasions the first and the last are tried, and some between. */
enum { TRIED_ENDS = 16, TRIED_BETWEEN = 40, STOPPED_MS = 2000 };

static struct {
    _Atomic int64_t calls, files;
    int64_t fail_at; /* 0 = never */
    int error;
} plan;

static bool fails(void) {
    return atomic_fetch_add(&plan.calls, 1) + 1 == plan.fail_at;
}

static i64 bad_open_unnamed(const char *folder) {
    i64 file = fails() ? -plan.error : disk_system.open_unnamed(folder);
    atomic_fetch_add(&plan.files, file >= 0);
    return file;
}

static void counted_close(i64 file) {
    atomic_fetch_sub(&plan.files, 1);
    disk_system.close(file);
}

static i64 bad_reserve(i64 file, i64 at, i64 bytes) {
    return fails() ? -plan.error : disk_system.reserve(file, at, bytes);
}

static i64 bad_read(i64 file, void *to, i64 bytes, i64 at) {
    return fails() ? -plan.error : disk_system.read(file, to, bytes, at);
}

static i64 bad_write(i64 file, const void *from, i64 bytes, i64 at) {
    return fails() ? -plan.error : disk_system.write(file, from, bytes, at);
}

static struct disk bad_disk(void) {
    struct disk disk = disk_system;
    disk.open_unnamed = bad_open_unnamed;
    disk.close = counted_close;
    disk.reserve = bad_reserve;
    disk.read = bad_read;
    disk.write = bad_write;
    return disk;
}

static const struct {
    int error;
    const char *sqlstate;
} errors[] = {{ENOSPC, "53100"}, {EIO, "58030"}};

/* What EXPLAIN ANALYZE says. */
#define CUT "set aside by partition"
#define MERGED "sorted runs merged"
/* Cut at a text, at an index, at both sides of a join of texts, twice; with marks. */
static const struct {
    const char *memory, *says, *sql;
} statements[] = {
    {"1400kB", CUT,
     "select count(*), sum(c), max(length(s)) from (select s, count(*) c from a group by s) x"},
    {"450kB", CUT, "select count(*), sum(a.i), sum(b.i) from a join b on a.k = b.k"},
    {"450kB", CUT, "select count(a.i), count(b.i), sum(a.i), sum(b.i) from a full join b on a.k = b.k"},
    {"1400kB", CUT, "select count(*), sum(a.i), sum(b.i) from a join b on a.s = b.s"},
    {"1400kB", CUT,
     "select count(*), sum(length(s)) from (select s, i from a except select s, i from b) x"},
    /* texts that go with the rows of their class */
    {"1400kB", CUT,
     "select count(*), sum(length(s)), max(r) from (select x.s, row_number() over (order by a.i) r "
     "from a left join (select k, s || 'x' as s from b) x on a.k = x.k) q"},
    {"1400kB", CUT,
     "select count(*), sum(length(s)) from (select k, s || 'y' as s from a) y where exists "
     "(select 1 from (select k, s || 'x' as s from b) x where x.k = y.k and x.s < y.s)"},
    /* sinks that share a scan */
    {"1400kB", CUT, "select count(distinct k), count(distinct s), count(distinct w) from a"},
    /* texts that aggregates make or choose in many groups */
    {"1400kB", MERGED, "select count(*), sum(length(t)) from (select string_agg(s || 'x', ',') t from a "
     "group by i / 3) q"},
    {"1400kB", MERGED, "select count(*), sum(length(t)) from (select min(s || 'x') t from a group by i / 2) q"},
};
enum { STATEMENTS = sizeof statements / sizeof *statements };

static struct fault_db f;
static struct disk disk;
static char wants[STATEMENTS][400];

static const char *choose(int s) {
    assert_int_equal(wf_set(f.conn, "statement_memory", statements[s].memory), WF_OK);
    return statements[s].sql;
}

static bool is_said(const char *sql, const char *says) {
    char text[1000];
    snprintf(text, sizeof text, "explain analyze %s", sql);
    wf_result *result = must(f.conn, text);
    const wf_batch *batch = NULL;
    bool found = false;
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t r = 0; r < wf_batch_rows(batch); r++) {
            char line[1000];
            wf_value_text(batch, 0, r, line, sizeof line);
            found = found || strstr(line, says);
        }
    }
    wf_result_close(result);
    return found;
}

static int setup(void **state) {
    (void)state;
    f = open_with("1", NULL);
    make_control(f.conn);
    run(f.conn, "create table a as select i, i * 7919 % 20011 as k, repeat('text ', 12) || i * 31 % "
                "9973 as s, (i * 17 % 5003) * 700000000000000 as w from generate_series(1::bigint, 12000) i");
    run(f.conn, "create table b as select i, i * 104729 % 20011 as k, repeat('text ', 12) || i * 37 "
                "% 10007 as s, (i * 19 % 5003) * 700000000000000 as w from generate_series(1::bigint, "
                "12000) i");
    for (int s = 0; s < STATEMENTS; s++) {
        wf_result *result = must(f.conn, statements[s].sql);
        flatten(result, wants[s], sizeof wants[s]);
        wf_result_close(result);
    }
    disk = bad_disk();
    disk_now = &disk;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    disk_now = &disk_system;
    close_both(f);
    return 0;
}

static void test_is_cut(void **state) {
    (void)state;
    for (int s = 0; s < STATEMENTS; s++) {
        const char *sql = choose(s);
        expect(f.conn, sql, wants[s]);
        if (!is_said(sql, statements[s].says)) {
            fail_msg("not %s: %s", statements[s].says, sql);
        }
        assert_int_equal(plan.files, 0);
    }
}

static void check_state(const char *sql, const char *sqlstate, int64_t n) {
    const wf_error *error = wf_connection_error(f.conn);
    if (strcmp(error->sqlstate, sqlstate) != 0 || !error->message[0]) {
        show_error(f.conn, sql);
        fail_msg("occasion %lld: not %s", (long long)n, sqlstate);
    }
}

/* An attempt that is disturbed at occasion n: right, or failed as it should; nothing is left of it. */
static wf_status attempt(int s, const char *sqlstate, int64_t n) {
    int64_t used = wf_memory_used(f.db);
    char got[400];
    wf_result *result = NULL;
    wf_status status = wf_query(f.conn, statements[s].sql, &result);
    plan.fail_at = 0;
    (void)memory_fail_at(0);
    (void)stop_from(0);
    if (status) {
        check_state(statements[s].sql, sqlstate, n);
    } else {
        flatten(result, got, sizeof got);
        wf_result_close(result);
        assert_string_equal(got, wants[s]);
    }
    assert_int_equal(wf_memory_used(f.db), used);
    assert_int_equal(plan.files, 0);
    check_control(f.conn);
    return status;
}

static int64_t next_tried(int64_t n, int64_t count) {
    bool end = n < TRIED_ENDS || n >= count - TRIED_ENDS;
    return n + (end ? 1 : (count - 2 * TRIED_ENDS) / TRIED_BETWEEN + 1);
}

static void test_memory(void **state) {
    (void)state;
    for (int s = 0; s < STATEMENTS; s++) {
        const char *sql = choose(s);
        memory_fail_at(INT64_MAX);
        run(f.conn, sql);
        int64_t count = memory_fail_at(0), failed = 0;
        for (int64_t n = 1; n <= count; n = next_tried(n, count)) {
            memory_fail_at(n);
            failed += attempt(s, "53200", n) != WF_OK;
        }
        assert_true(failed > 0);
    }
}

static void test_disk(void **state) {
    (void)state;
    int64_t failed = 0; /* a write that is refused goes another way */
    for (int s = 0; s < STATEMENTS; s++) {
        const char *sql = choose(s);
        plan.calls = 0;
        run(f.conn, sql);
        int64_t count = plan.calls;
        assert_true(count > 20); /* it is written and read */
        for (int64_t n = 1; n <= count; n = next_tried(n, count)) {
            size_t e = (size_t)n % (sizeof errors / sizeof *errors);
            plan.calls = 0;
            plan.error = errors[e].error;
            plan.fail_at = n;
            failed += attempt(s, errors[e].sqlstate, n) != WF_OK;
        }
    }
    assert_true(failed > 0);
}

static void test_told(void **state) {
    (void)state;
    for (int s = 0; s < STATEMENTS; s++) {
        const char *sql = choose(s);
        (void)stop_from(INT64_MAX);
        run(f.conn, sql);
        int64_t count = stop_from(0);
        assert_true(count > 50);
        for (int64_t n = 1; n <= count; n = next_tried(n, count)) {
            (void)stop_from(n);
            assert_true(attempt(s, "57014", n) != WF_OK || n == count);
        }
    }
}

struct canceller {
    wf_connection *conn;
    struct mutex lock;
    struct cond wake;
    int64_t delay_ns, told_ns;
    bool over;
};

static void cancel_later(void *arg) {
    struct canceller *c = arg;
    mutex_lock(&c->lock);
    int64_t until = clock_ns() + c->delay_ns;
    while (!c->over && clock_ns() < until) {
        cond_wait_ns(&c->wake, &c->lock, until - clock_ns());
    }
    while (!c->over) { /* again and again: one that comes before the statement is forgotten */
        c->told_ns = c->told_ns ? c->told_ns : clock_ns();
        wf_cancel(c->conn);
        cond_wait_ns(&c->wake, &c->lock, 5000000);
    }
    mutex_unlock(&c->lock);
}

/* By another thread, and by the clock. */
static void test_cancelled(void **state) {
    (void)state;
    for (int s = 0; s < STATEMENTS; s++) {
        const char *sql = choose(s);
        for (int64_t ms = 1; ms < 60; ms = 2 * ms + 1) {
            struct canceller c = {.conn = f.conn, .delay_ns = ms * 1000000};
            mutex_init(&c.lock);
            cond_init(&c.wake);
            struct thread *thread = thread_start(cancel_later, &c);
            assert_non_null(thread);
            wf_status status = wf_query(f.conn, sql, NULL);
            int64_t end = clock_ns();
            mutex_lock(&c.lock);
            c.over = true;
            cond_broadcast(&c.wake);
            mutex_unlock(&c.lock);
            thread_join(thread);
            cond_fini(&c.wake);
            mutex_fini(&c.lock);
            assert_true(status == WF_OK || status == WF_CANCELLED);
            assert_true(!status || !c.told_ns || end - c.told_ns < STOPPED_MS * 1000000LL);
            assert_int_equal(plan.files, 0);
            char text[40];
            snprintf(text, sizeof text, "%lldms", (long long)ms);
            assert_int_equal(wf_set(f.conn, "statement_timeout", text), WF_OK);
            int64_t start = clock_ns();
            status = wf_query(f.conn, sql, NULL);
            int64_t took = clock_ns() - start;
            assert_true(status == WF_OK || status == WF_CANCELLED);
            assert_true(!status || took < (ms + STOPPED_MS) * 1000000LL);
            assert_int_equal(plan.files, 0);
            assert_int_equal(wf_set(f.conn, "statement_timeout", "0"), WF_OK);
            check_control(f.conn);
        }
        assert_int_equal(attempt(s, "", 0), WF_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_cut), cmocka_unit_test(test_memory),    cmocka_unit_test(test_disk),
        cmocka_unit_test(test_told),   cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
