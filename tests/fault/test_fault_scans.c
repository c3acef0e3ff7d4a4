/* test_fault_scans.c: a scan of more than memory leaves alone what others use.
 *
 * Bytes that are read from the database file are counted by a disk of our own (base/disk.h). A table is
 * read twice, then one of more than the whole budget is scanned, then the first is read again: it must
 * be in memory still, and so it must be after a load. What nobody asks for any more makes room in the
 * end. Columns stay here as they do in a release build. */
#define _DEFAULT_SOURCE 1
#include "base/disk.h"
#include "fault.h"
#include "store/frames_int.h"

#include <stdatomic.h>
#include <unistd.h>

enum { HOT_ROWS = 65536, BIG_ROWS = 1310720, ROUNDS = 3 };
static struct disk counting;
static _Atomic i64 bytes_read;
static char path[300];

static i64 counted_read(i64 file, void *to, i64 bytes, i64 at) {
    i64 got = disk_system.read(file, to, bytes, at);
    atomic_fetch_add(&bytes_read, MAX_OF(got, 0));
    return got;
}

/* Reading ahead of the scan before may go on after it: nothing is counted until the disk is at rest. */
static void settle(void) {
    i64 before = -1;
    for (int quiet = 0; quiet < 3;) {
        usleep(10000);
        i64 now = atomic_load(&bytes_read);
        quiet = now == before ? quiet + 1 : 0;
        before = now;
    }
}

static i64 read_by(wf_connection *conn, const char *sql) {
    settle();
    i64 before = atomic_load(&bytes_read);
    run(conn, sql);
    settle();
    return atomic_load(&bytes_read) - before;
}

static const char *const hot = "select sum(a), sum(b) from hot";
static const char *const big = "select sum(a), sum(b), sum(c), sum(d) from big";

static int set_up(void **state) {
    UNUSED(state);
    scratch_path(path, "scans.wf");
    struct fault_db f = open_file(path, "1GB");
    run(f.conn, "set tablet_rows = 16384");
    run(f.conn, "create table hot (a bigint, b bigint)");
    run(f.conn, "create table big (a bigint, b bigint, c bigint, d bigint)");
    run(f.conn, "insert into hot select i * 48271 % 65521 * 100000000000, i * 16807 % 65521 * 100000000000 "
                "from generate_series(1::bigint, 65536) i");
    run(f.conn, "insert into big select i * 48271 % 65521 * 100000000000, i * 16807 % 65521 * 100000000000, "
                "i * 69621 % 65521 * 100000000000, i * 39373 % 65521 * 100000000000 "
                "from generate_series(1::bigint, 1310720) i");
    close_both(f);
    counting = disk_system;
    counting.read = counted_read;
    disk_now = &counting;
    frames_go_at_once = false;
    return 0;
}

static int tear_down(void **state) {
    UNUSED(state);
    char log[310];
    snprintf(log, sizeof log, "%s.log", path);
    disk_now = &disk_system;
    remove(path);
    remove(log);
    return 0;
}

static void ask_twice(wf_connection *conn) {
    run(conn, hot);
    usleep(150000);
    run(conn, hot);
}

static void test_scans(void **state) {
    UNUSED(state);
    const char *rounds = getenv("SCAN_ROUNDS");
    for (int i = 0; i < (rounds ? atoi(rounds) : ROUNDS); i++) {
        struct fault_db f = open_file(path, "24MB");
        assert_true(read_by(f.conn, hot) > HOT_ROWS * 2); /* it has to come from the file */
        ask_twice(f.conn);
        for (int scan = 0; scan < 3; scan++) {
            assert_true(read_by(f.conn, big) > BIG_ROWS * 2);
            i64 again = read_by(f.conn, hot);
            if (again) {
                fail_msg("round %d, scan %d: %lld bytes of what is used were thrown out", i, scan,
                         (long long)again);
            }
        }
        close_both(f);
    }
}

static void test_loads(void **state) {
    UNUSED(state);
    struct fault_db f = open_file(path, "24MB");
    ask_twice(f.conn);
    run(f.conn, "set tablet_rows = 16384; create table other as select * from big");
    assert_int_equal(read_by(f.conn, hot), 0);
    run(f.conn, "drop table other");
    close_both(f);
}

/* A scan reads next to nothing twice, however little memory there is, and finds a part of its rows again. */
static void test_again(void **state) {
    UNUSED(state);
    struct fault_db f = open_file(path, "1GB");
    i64 whole = read_by(f.conn, big);
    close_both(f);
    f = open_file(path, "24MB");
    /* but where a worker comes late to a tablet that others have done with */
    assert_in_range(read_by(f.conn, big), whole, whole * 11 / 10);
    for (int i = 0; i < 3; i++) {
        assert_in_range(read_by(f.conn, big), 1, whole * 8 / 10);
    }
    close_both(f);
}

/* What was used once, but is no more, makes room: others take its place. */
static void test_stale(void **state) {
    UNUSED(state);
    struct fault_db f = open_file(path, "24MB");
    ask_twice(f.conn);
    frames_stale_ns = 1;
    run(f.conn, big);
    frames_stale_ns = 60000000000;
    assert_true(read_by(f.conn, hot) > 0);
    close_both(f);
}

/* Where there is nothing else, what is used goes, too: no statement fails because others were faster. */
static void test_nothing_else(void **state) {
    UNUSED(state);
    struct fault_db f = open_file(path, "24MB");
    static const char *const part = "select sum(a), sum(b) from big where a >= 0";
    run(f.conn, "select sum(a) from big");
    usleep(150000);
    run(f.conn, "select sum(a) from big");
    run(f.conn, part);
    usleep(150000);
    run(f.conn, part);
    run(f.conn, "select count(*) from (select a, b, c, d from big order by d, c, b, a limit 100000) t");
    run(f.conn, hot);
    close_both(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scans), cmocka_unit_test(test_loads),        cmocka_unit_test(test_again),
        cmocka_unit_test(test_stale), cmocka_unit_test(test_nothing_else),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
