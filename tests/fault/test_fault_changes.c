/* test_fault_changes.c: statements that change more rows than fit memory, in a database file.
 *
 * A table larger than `memory` is copied, appended to, updated, altered and vacuumed; what it holds
 * afterwards is known beforehand. Then the same in a transaction that is rolled back. */
#include "fault.h"

#include <unistd.h>

static char path[300];

static int set_up(void **state) {
    UNUSED(state);
    scratch_path(path, "changes.wf");
    struct fault_db f = open_file(path, "1GB");
    run(f.conn, "set tablet_rows = 16384");
    run(f.conn, "create table big (k bigint not null, n integer, s text)");
    run(f.conn, "insert into big select i, i % 1000, md5(i::text) || md5((i * 7)::text) "
                "from generate_series(1, 300000) i");
    close_both(f);
    return 0;
}

static int tear_down(void **state) {
    UNUSED(state);
    char log[310];
    snprintf(log, sizeof log, "%s.log", path);
    remove(path);
    remove(log);
    return 0;
}

static const char *const sums = "select count(*), sum(k), sum(n), sum(length(s)) from big";

static void test_changes(void **state) {
    UNUSED(state);
    struct fault_db f = open_file(path, "16MB");
    expect(f.conn, sums, "300000|45000150000|149850000|19200000;");
    run(f.conn, "begin");
    run(f.conn, "update big set n = n + 1, s = s || 'x'");
    expect(f.conn, sums, "300000|45000150000|150150000|19500000;");
    run(f.conn, "rollback");
    expect(f.conn, sums, "300000|45000150000|149850000|19200000;");
    run(f.conn, "create table copy as select * from big");
    expect(f.conn, "select count(*), sum(k), sum(n), sum(length(s)) from copy",
           "300000|45000150000|149850000|19200000;");
    run(f.conn, "insert into big select k + 300000, n, s from copy");
    expect(f.conn, sums, "600000|180000300000|299700000|38400000;");
    run(f.conn, "drop table copy");
    run(f.conn, "update big set n = v.x from (values (7), (7), (8)) v(x) where big.k <= 300000 and v.x < 8");
    expect(f.conn, sums, "600000|180000300000|151950000|38400000;");
    run(f.conn, "alter table big alter column n type decimal(12,2)");
    expect(f.conn, sums, "600000|180000300000|151950000.00|38400000;");
    run(f.conn, "delete from big where k % 3 = 0");
    run(f.conn, "vacuum");
    expect(f.conn, sums, "400000|120000000000|101300000.00|25600000;");
    close_both(f);
    f = open_file(path, "1GB");
    expect(f.conn, sums, "400000|120000000000|101300000.00|25600000;");
    expect(f.conn,
           "select count(*) from (select *, (k - 1) % 300000 + 1 i from big) x "
           "where s <> md5(i::text) || md5((i * 7)::text)",
           "0;");
    close_both(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
