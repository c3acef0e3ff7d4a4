/* test_catalog.c: names, snapshots, and tables that are dropped while they are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "catalog/catalog.h"

static struct memory mem;
static struct catalog *catalog;
static struct arena arena;
static struct error err;

static int set_up(void **state) {
    (void)state;
    memory_init(&mem, NULL, 0, "memory");
    catalog = catalog_open(&mem);
    arena_init(&arena, &mem);
    error_reset(&err);
    return catalog ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    memory_fail_at(0);
    catalog_close(catalog);
    arena_fini(&arena);
    return atomic_load(&mem.used_bytes) == 0 ? 0 : -1;
}

static wf_status create(const char *name) {
    struct column_def cols[] = {{.name = "k", .type = type_of(TYPE_INTEGER)},
                                {.name = "s", .type = type_of(TYPE_TEXT)}};
    error_reset(&err);
    return catalog_create_table(catalog, sv_from(name), 2, cols, 4, false, 13, &err);
}

static void add_row(struct table *table, i32 k, const char *text) {
    str s = str_from(sv_from(text));
    struct input_col cols[] = {{.data = &k}, {.data = &s}};
    assert_int_equal(table_append(table, 1, cols, &err), ERR_OK);
}

static void test_names(void **state) {
    (void)state;
    assert_int_equal(create("orders"), ERR_OK);
    assert_int_equal(create("lineitem"), ERR_OK);
    assert_int_equal(create("nation"), ERR_OK);
    u64 version = catalog_version(catalog);
    assert_int_equal(create("orders"), ERR_DUPLICATE_TABLE);
    assert_int_equal(err.position, 13);
    assert_int_equal(catalog_version(catalog), version);
    error_reset(&err);
    assert_int_equal(catalog_create_table(catalog, SV("none"), 0, NULL, 4, false, 13, &err),
                     ERR_INVALID_DEFINITION);
    struct sv *names;
    assert_int_equal(catalog_table_names(catalog, &arena, &names), 3);
    assert_string_equal(names[0].ptr, "lineitem");
    assert_string_equal(names[1].ptr, "nation");
    assert_string_equal(names[2].ptr, "orders");
    error_reset(&err);
    assert_int_equal(catalog_drop_table(catalog, SV("nation"), 0, &err), ERR_OK);
    assert_true(catalog_version(catalog) > version);
    assert_int_equal(catalog_drop_table(catalog, SV("nation"), 5, &err), ERR_UNDEFINED_TABLE);
}

static void test_nearest(void **state) {
    (void)state;
    create("orders");
    create("lineitem");
    struct snapshot snap;
    struct snapshot_table found;
    snapshot_init(&snap, catalog, &arena);
    assert_int_equal(snapshot_find(&snap, SV("linitem"), 7, &found, &err), ERR_UNDEFINED_TABLE);
    assert_int_equal(err.position, 7);
    assert_non_null(strstr(err.message, "linitem"));
    assert_non_null(strstr(err.hint, "lineitem"));
    error_reset(&err);
    assert_int_equal(snapshot_find(&snap, SV("zzz"), 7, &found, &err), ERR_UNDEFINED_TABLE);
    assert_string_equal(err.hint, "");
    snapshot_fini(&snap);
}

static void test_dropped_stays_readable(void **state) {
    (void)state;
    create("t");
    struct snapshot snap, later;
    struct snapshot_table found, again;
    snapshot_init(&snap, catalog, &arena);
    assert_int_equal(snapshot_find(&snap, SV("t"), 0, &found, &err), ERR_OK);
    u64 id = found.table->id;
    assert_int_equal(found.version->rows, 0);
    add_row(found.table, 1, "one");
    assert_int_equal(snapshot_find(&snap, SV("t"), 0, &again, &err), ERR_OK);
    assert_ptr_equal(again.version, found.version); /* one statement, one version */
    snapshot_init(&later, catalog, &arena);
    assert_true(snapshot_find_id(&later, id, &again));
    assert_int_equal(again.version->rows, 1);
    assert_int_equal(catalog_drop_table(catalog, SV("t"), 0, &err), ERR_OK);
    assert_true(snapshot_find_id(&later, id, &again));
    str s;
    assert_true(segment_get(&again.version->tablets[0]->cols[1], again.table->dicts[1],
                            type_of(TYPE_TEXT), 0, &s));
    assert_true(sv_eq(sv_of(s), SV("one")));
    assert_int_equal(create("t"), ERR_OK); /* a new one of the same name is another table */
    struct snapshot fresh;
    snapshot_init(&fresh, catalog, &arena);
    assert_false(snapshot_find_id(&fresh, id, &again));
    assert_int_equal(snapshot_find(&fresh, SV("t"), 0, &again, &err), ERR_OK);
    assert_true(again.table->id > id);
    snapshot_fini(&fresh);
    snapshot_fini(&later);
    snapshot_fini(&snap);
}

static void test_refused(void **state) {
    (void)state;
    for (i64 nth = 1;; nth++) {
        memory_fail_at(nth);
        wf_status status = create("x");
        memory_fail_at(0);
        if (status == ERR_OK) {
            break;
        }
        assert_int_equal(status, ERR_OUT_OF_MEMORY);
        struct sv *names;
        assert_int_equal(catalog_table_names(catalog, &arena, &names), 0);
    }
}

static void crowd(void *arg, i64 i, i32 worker) {
    (void)worker;
    _Atomic i32 *wrong = arg;
    char name[32];
    struct error own;
    struct arena scratch;
    arena_init(&scratch, &mem);
    struct column_def col = {.name = "k", .type = type_of(TYPE_INTEGER)};
    snprintf(name, sizeof name, "t%lld", i % 3);
    for (i32 round = 0; round < 50; round++) {
        error_reset(&own);
        wf_status made = catalog_create_table(catalog, sv_from(name), 1, &col, 4, false, 0, &own);
        struct snapshot snap;
        struct snapshot_table found;
        snapshot_init(&snap, catalog, &scratch);
        error_reset(&own);
        if (snapshot_find(&snap, sv_from(name), 0, &found, &own) == ERR_OK) {
            struct input_col in = {.data = &round};
            atomic_fetch_add(wrong, table_append(found.table, 1, &in, &own) != ERR_OK);
        }
        error_reset(&own);
        wf_status gone = catalog_drop_table(catalog, sv_from(name), 0, &own);
        /* Whoever commits second may also be told to try again. */
        atomic_fetch_add(wrong, made != ERR_OK && made != ERR_DUPLICATE_TABLE &&
                                    made != ERR_SERIALIZATION);
        atomic_fetch_add(wrong, gone != ERR_OK && gone != ERR_UNDEFINED_TABLE &&
                                    gone != ERR_SERIALIZATION);
        snapshot_fini(&snap);
    }
    arena_fini(&scratch);
}

static void test_many_threads(void **state) {
    (void)state;
    struct pool *pool = pool_open(4);
    _Atomic i32 wrong = 0;
    pool_run(pool, 8, crowd, &wrong);
    assert_int_equal(atomic_load(&wrong), 0);
    pool_close(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nearest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dropped_stays_readable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
