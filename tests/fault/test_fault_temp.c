/* test_fault_temp.c: temporary space fails at its n-th call, for every n.
 *
 * Statements that need more than their memory run on a disk (base/disk.h) whose first call fails, then
 * its second, and so on until they pass untouched, with every error a disk knows. Each attempt must
 * succeed or say 53100, 58030 or 58P01, give back all its memory, and leave a session whose next
 * answers are right. Then the helpers that read and write whole blocks meet a disk that does so in
 * small pieces, is full, or ends early. */
#include "fault.h"

#include <errno.h>

#include "base/disk.h"
#include "base/file.h"

static struct {
    int64_t calls, fail_at; /* 0 = never */
    int error;
    int64_t piece; /* bytes read or written at once; 0 = all */
} plan;

static bool fails(void) {
    return ++plan.calls == plan.fail_at;
}

static i64 bad_open_unnamed(const char *folder) {
    return fails() ? -plan.error : disk_system.open_unnamed(folder);
}

static i64 bad_reserve(i64 file, i64 at, i64 bytes) {
    return fails() ? -plan.error : disk_system.reserve(file, at, bytes);
}

static i64 bad_free_bytes(const char *folder) {
    return fails() ? -plan.error : disk_system.free_bytes(folder);
}

static i64 bad_map(i64 file, i64 bytes, void **out) {
    return fails() ? -plan.error : disk_system.map(file, bytes, out);
}

static i64 bad_map_at(i64 file, i64 from, i64 bytes, void *at) {
    return fails() ? -plan.error : disk_system.map_at(file, from, bytes, at);
}

static i64 bad_read(i64 file, void *to, i64 bytes, i64 at) {
    return fails() ? -plan.error
                   : disk_system.read(file, to, plan.piece ? MIN_OF(bytes, plan.piece) : bytes, at);
}

static i64 bad_write(i64 file, const void *from, i64 bytes, i64 at) {
    return fails()
               ? -plan.error
               : disk_system.write(file, from, plan.piece ? MIN_OF(bytes, plan.piece) : bytes, at);
}

static struct disk bad_disk(void) {
    struct disk disk = disk_system;
    disk.open_unnamed = bad_open_unnamed;
    disk.reserve = bad_reserve;
    disk.free_bytes = bad_free_bytes;
    disk.map = bad_map;
    disk.map_at = bad_map_at;
    disk.read = bad_read;
    disk.write = bad_write;
    return disk;
}

static const struct {
    int error;
    const char *sqlstate;
} errors[] = {{ENOSPC, "53100"}, {EIO, "58030"}, {ENOENT, "58P01"}, {EMFILE, "58030"}};

static const char *const statements[] = {
    "select count(*), sum(p) from (select row_number() over (order by s, k) p from big) x",
    "select count(*), sum(c) from (select k, count(*) c, sum(i), min(s) from big group by k) x",
    "select count(*), sum(b.i) from big a join big b on a.i = b.k",
    "select count(*) from (select distinct s || 'x' from big) x",
};

static void test_nth_call(void **state) {
    (void)state;
    struct fault_db f = open_with("2", NULL);
    struct disk disk = bad_disk();
    make_control(f.conn);
    run(f.conn, "create table big as select i, i * 7919 % 20011 as k, 'text ' || i * 31 % 9973 as s "
                "from generate_series(1, 12000) i");
    run(f.conn, "set statement_memory = '500kB'");
    for (size_t s = 0; s < sizeof statements / sizeof *statements; s++) {
        char want[400], got[400];
        wf_result *result = must(f.conn, statements[s]);
        flatten(result, want, sizeof want);
        wf_result_close(result);
        bool reached = true;
        for (int64_t n = 1; reached; n++) {
            size_t e = (size_t)n % (sizeof errors / sizeof *errors);
            int64_t used = wf_memory_used(f.db);
            plan.calls = 0;
            plan.fail_at = n;
            plan.error = errors[e].error;
            disk_now = &disk;
            wf_status status = wf_query(f.conn, statements[s], &result);
            disk_now = &disk_system;
            reached = plan.calls >= n;
            assert_true(reached || !status);
            if (status) {
                assert_string_equal(wf_connection_error(f.conn)->sqlstate, errors[e].sqlstate);
                assert_true(wf_connection_error(f.conn)->hint[0] != 0);
            } else {
                flatten(result, got, sizeof got);
                wf_result_close(result);
                assert_string_equal(got, want);
            }
            assert_int_equal(wf_memory_used(f.db), used);
            check_control(f.conn);
        }
    }
    close_both(f);
}

/* A column that is larger than memory lies aside while it is read: every call for it fails once, those to the database
 * file among them. */
static void test_columns_aside(void **state) {
    (void)state;
    enum { MOST = 200 };
    char path[300], log[310], want[400], got[400];
    scratch_path(path, "aside.wf");
    snprintf(log, sizeof log, "%s.log", path);
    remove(path);
    remove(log);
    struct fault_db f = open_file(path, NULL);
    run(f.conn, "create table wide as select repeat('wide', 60) || i * 7919 % 30011 as s, i "
                "from generate_series(1, 40000) i");
    close_both(f);
    f = open_file(path, "8MB");
    make_control(f.conn);
    const char *sql = "select count(*), min(length(s)), sum(length(s)), sum(i) from wide";
    wf_result *first = must(f.conn, sql);
    flatten(first, want, sizeof want);
    wf_result_close(first);
    struct disk disk = bad_disk();
    bool reached = true, passed = false;
    for (int64_t n = 1; reached && n < MOST; n++) {
        size_t e = (size_t)n % (sizeof errors / sizeof *errors);
        wf_result *result = NULL;
        plan.calls = 0;
        plan.fail_at = n;
        plan.error = errors[e].error;
        disk_now = &disk;
        wf_status status = wf_query(f.conn, sql, &result);
        disk_now = &disk_system;
        reached = plan.calls >= n;
        assert_true(reached || !status);
        if (status) {
            assert_non_null(strstr("53100 58030 58P01 53200", wf_connection_error(f.conn)->sqlstate));
        } else {
            flatten(result, got, sizeof got);
            wf_result_close(result);
            assert_string_equal(got, want);
            passed = true;
        }
        check_control(f.conn);
    }
    assert_true(passed);
    close_both(f);
    remove(path);
    remove(log);
}

static void test_pieces(void **state) {
    (void)state;
    struct disk disk = bad_disk();
    char out[1000], in[1000];
    for (int i = 0; i < 1000; i++) {
        out[i] = (char)(i * 7);
    }
    i64 file = disk_system.open_unnamed("/tmp");
    assert_true(file >= 0);
    disk_now = &disk;
    for (plan.piece = 0; plan.piece < 500; plan.piece = plan.piece * 3 + 1) {
        plan.fail_at = 0;
        memset(in, 0, sizeof in);
        assert_int_equal(disk_write_all(file, out, 1000, plan.piece), 0);
        assert_int_equal(disk_read_all(file, in, 1000, plan.piece), 0);
        assert_memory_equal(in, out, 1000);
    }
    assert_int_equal(disk_read_all(file, in, 1000, disk_now->size(file) - 10), -EIO);
    plan.piece = 100;
    for (int64_t n = 1; n <= 10; n++) {
        plan.calls = 0;
        plan.fail_at = n;
        plan.error = ENOSPC;
        assert_int_equal(disk_write_all(file, out, 1000, 0), -ENOSPC);
        plan.calls = 0;
        plan.error = EINTR; /* is no failure */
        assert_int_equal(disk_write_all(file, out, 1000, 0), 0);
    }
    assert_int_equal(disk_now->sync(file), 0);
    disk_now = &disk_system;
    disk_now->close(file);
    assert_int_equal(disk_now->open("/nowhere/at/all", DISK_CREATE), -ENOENT);
}

/* A page that the disk does not give back ends the statement, not the program. */
static void test_torn_page(void **state) {
    (void)state;
    void *at = NULL;
    i64 file = disk_now->open_unnamed("/tmp");
    assert_int_equal(disk_now->map(file, 1 << 20, &at), 0);
    i32 guard = file_guard_open(at, 1 << 20);
    assert_int_equal(disk_now->reserve(file, 0, 8192), 0);
    ((volatile char *)at)[5000] = 3;
    assert_false(file_guard_torn(guard));
    assert_int_equal(((volatile char *)at)[9000], 0); /* behind the end */
    assert_true(file_guard_torn(guard));
    ((volatile char *)at)[9000] = 4;
    disk_cool(at, 8192);
    assert_int_equal(((volatile char *)at)[5000], 3);
    file_guard_close(guard);
    disk_now->unmap(at, 1 << 20);
    disk_now->close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nth_call),
        cmocka_unit_test(test_columns_aside),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_torn_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
