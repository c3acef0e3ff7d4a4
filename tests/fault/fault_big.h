/* fault_big.h: a table and a file large enough that work on them can be stopped, for the tests that do.
 *
 * big (i, g, s, x): `rows` rows; i goes through 0 .. rows - 1 in steps of `step`, which shares no
 * factor with rows. target: empty. The file has lines as write_csv makes them. */
#ifndef WF_TESTS_FAULT_BIG_H
#define WF_TESTS_FAULT_BIG_H

#include "fault.h"

static struct fault_db f;
static char csv_path[300];

struct big {
    const char *threads, *name; /* of the file */
    int tablet_rows, rows, step, groups, texts, csv_lines;
};

static int big_open(const struct big *big) {
    char sql[300];
    f = open_with(big->threads, NULL);
    make_control(f.conn);
    snprintf(sql, sizeof sql, "set tablet_rows = %d", big->tablet_rows);
    run(f.conn, sql);
    run(f.conn, "create table big (i int, g int, s text, x double precision)");
    snprintf(sql, sizeof sql,
             "insert into big select i * bigint '%d' %% %d, i %% %d, 'text ' || i %% %d, i * 0.25 "
             "from generate_series(0, %d) v(i)",
             big->step, big->rows, big->groups, big->texts, big->rows - 1);
    run(f.conn, sql);
    run(f.conn, "create table target (i bigint, g int, s text)");
    write_csv(scratch_path(csv_path, big->name), big->csv_lines);
    return 0;
}

static int big_close(void **state) {
    (void)state;
    remove(csv_path);
    close_both(f);
    return 0;
}

#endif
