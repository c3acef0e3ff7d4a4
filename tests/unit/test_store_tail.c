/* test_store_tail.c: one writer and many readers; loads in parallel; memory refused at every point.
 */
#include "test_store_rows.h"

static struct column_spec mixed[] = {{.pattern = ASCENDING, .nulls = NULLS_NONE},
                                     {.pattern = SMALL, .nulls = NULLS_SOME},
                                     {.pattern = WIDE, .nulls = NULLS_LATE},
                                     {.pattern = SMALL, .nulls = NULLS_SOME, .text_variants = 40},
                                     {.pattern = SMALL, .nulls = NULLS_SOME}};
enum { MIXED = 5 };

static void mixed_types(void) {
    mixed[0].type = type_of(TYPE_INTEGER);
    mixed[1].type = type_of(TYPE_BIGINT);
    mixed[2].type = type_of(TYPE_DOUBLE);
    mixed[3].type = mixed[4].type = type_of(TYPE_TEXT);
}

struct race {
    struct table *table;
    i64 rows;
    _Atomic i32 done;
    _Atomic i64 wrong;
};

static void race_task(void *arg, i64 i, i32 worker) {
    (void)worker;
    struct race *race = arg;
    if (i == 0) {
        for (i64 at = 0, piece = 1; at < race->rows; at += piece, piece = piece % 29 + 1) {
            append_rows(race->table, mixed, at, piece);
        }
        atomic_store(&race->done, 1);
        return;
    }
    i64 seen = 0;
    while (!atomic_load(&race->done)) {
        struct table_version *version = table_snapshot(race->table);
        i64 wrong = version_wrong_row(race->table, version, mixed, 1 + version->rows / 64);
        if (wrong >= 0 || version->rows < seen) {
            atomic_store(&race->wrong, wrong + 1);
        }
        seen = version->rows;
        version_release(version);
    }
}

static void test_readers_and_a_writer(void **state) {
    (void)state;
    mixed_types();
    struct pool *pool = pool_open(4);
    struct race race = {.rows = 6000};
    race.table = specs_table(mixed, MIXED, 10, false);
    pool_run(pool, 4, race_task, &race);
    assert_int_equal(atomic_load(&race.wrong), 0);
    struct table_version *version = table_snapshot(race.table);
    assert_int_equal(version_wrong_row(race.table, version, mixed, 1), -1);
    assert_false(version->stats[4].all_dict); /* all rows differ: left the dictionary on the way */
    assert_true(version->stats[3].all_dict);
    version_release(version);
    table_close(race.table);
    pool_close(pool);
}

/* A snapshot of every length, checked again when the table has grown. */
static void test_old_snapshots_stay(void **state) {
    (void)state;
    mixed_types();
    struct table *table = specs_table(mixed, MIXED, 7, false);
    struct table_version *versions[300];
    for (i64 i = 0; i < 300; i++) {
        append_rows(table, mixed, i, 1);
        versions[i] = table_snapshot(table);
    }
    for (i64 i = 0; i < 300; i++) {
        assert_int_equal(versions[i]->rows, i + 1);
        assert_int_equal(version_wrong_row(table, versions[i], mixed, 1), -1);
        version_release(versions[i]);
    }
    table_close(table);
}

struct parallel_load {
    struct load *load;
    _Atomic i32 failed;
};

static void load_task(void *arg, i64 i, i32 worker) {
    (void)worker;
    struct parallel_load *p = arg;
    struct rows rows;
    struct error err;
    error_reset(&err);
    rows_make(&rows, mixed, MIXED, 37 + i * 1024, 1024);
    if (load_tablet(p->load, i * 10, 1024, rows.cols, &err)) {
        atomic_store(&p->failed, 1);
    }
    rows_free(&rows);
}

static void test_parallel_load(void **state) {
    (void)state;
    mixed_types();
    struct pool *pool = pool_open(4);
    struct table *table = specs_table(mixed, MIXED, 10, false);
    append_rows(table, mixed, 0, 37); /* a tail that has to come first */
    struct parallel_load p = {0};
    struct error err;
    error_reset(&err);
    assert_int_equal(load_open(&p.load, table, &err), ERR_OK);
    pool_run(pool, 20, load_task, &p);
    assert_int_equal(atomic_load(&p.failed), 0);
    struct table_version *before = table_snapshot(table);
    assert_int_equal(before->rows, 37);
    version_release(before);
    assert_int_equal(load_commit(p.load, &err), ERR_OK);
    assert_rows(table, mixed, 37 + 20 * 1024);
    struct table_version *version = table_snapshot(table);
    assert_true(version->stats[0].unique);
    version_release(version);
    append_rows(table, mixed, 37 + 20 * 1024, 5);
    assert_rows(table, mixed, 42 + 20 * 1024);
    i64 used = atomic_load(&mem.used_bytes);
    assert_int_equal(load_open(&p.load, table, &err), ERR_OK);
    pool_run(pool, 3, load_task, &p);
    load_abort(p.load);
    assert_true(atomic_load(&mem.used_bytes) <= used);
    assert_rows(table, mixed, 42 + 20 * 1024);
    table_close(table);
    pool_close(pool);
}

/* The n-th reservation fails, for every n: an error, an unchanged table, and then a good append. */
static void test_append_refused(void **state) {
    (void)state;
    mixed_types();
    for (i64 nth = 1, refused = 1; refused; nth++) {
        struct table *table = specs_table(mixed, MIXED, 9, false);
        append_rows(table, mixed, 0, 300);
        struct rows rows;
        struct error err;
        error_reset(&err);
        rows_make(&rows, mixed, MIXED, 300, 2500);
        memory_fail_at(nth);
        wf_status status = table_append(table, 2500, rows.cols, &err);
        memory_fail_at(0);
        refused = status != ERR_OK;
        if (refused) {
            assert_int_equal(status, ERR_OUT_OF_MEMORY);
            assert_rows(table, mixed, 300);
            error_reset(&err);
            assert_int_equal(table_append(table, 2500, rows.cols, &err), ERR_OK);
        }
        assert_rows(table, mixed, 2800);
        rows_free(&rows);
        table_close(table);
        assert_true(nth < 2000);
    }
}

static void test_load_refused(void **state) {
    (void)state;
    mixed_types();
    for (i64 nth = 1, refused = 1; refused; nth++) {
        struct table *table = specs_table(mixed, MIXED, 10, false);
        append_rows(table, mixed, 0, 37);
        struct rows rows;
        struct error err;
        struct load *load;
        error_reset(&err);
        rows_make(&rows, mixed, MIXED, 37, 1024);
        memory_fail_at(nth);
        wf_status status = load_open(&load, table, &err);
        if (status == ERR_OK) {
            status = load_tablet(load, 0, 1024, rows.cols, &err);
            if (status == ERR_OK) {
                status = load_commit(load, &err);
            } else {
                load_abort(load);
            }
        }
        memory_fail_at(0);
        refused = status != ERR_OK;
        assert_rows(table, mixed, refused ? 37 : 37 + 1024);
        if (refused) {
            append_rows(table, mixed, 37, 100);
            assert_rows(table, mixed, 137);
        }
        rows_free(&rows);
        table_close(table);
        assert_true(nth < 2000);
    }
}

static void test_open_refused(void **state) {
    (void)state;
    mixed_types();
    struct column_def defs[MIXED];
    for (i32 i = 0; i < MIXED; i++) {
        defs[i] = (struct column_def){.name = "x", .type = mixed[i].type};
    }
    for (i64 nth = 1;; nth++) {
        memory_fail_at(nth);
        struct table *table = table_open(&mem, 1, "t", MIXED, defs, 9, false);
        memory_fail_at(0);
        if (table) {
            table_close(table);
            break;
        }
        assert_int_equal(atomic_load(&mem.used_bytes), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_readers_and_a_writer, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_old_snapshots_stay, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_parallel_load, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_append_refused, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_load_refused, set_up, nothing_left),
        cmocka_unit_test_setup_teardown(test_open_refused, set_up, nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
