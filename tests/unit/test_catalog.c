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
    struct table_def def = {.name = name, .col_count = 2, .cols = cols};
    return catalog_create_table(catalog, &def, 4, false, 13, &err);
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
    struct table_def none = {.name = "none"};
    assert_int_equal(catalog_create_table(catalog, &none, 4, false, 13, &err),
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
        struct table_def def = {.name = name, .col_count = 1, .cols = &col};
        wf_status made = catalog_create_table(catalog, &def, 4, false, 0, &own);
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

/* Views with random names and uses, against plain arrays: editions made one from the other find,
 * walk and compare what the arrays say. */
enum { VIEWS = 200, ROUNDS = 1500 };
static struct {
    struct object *object[VIEWS];
} model;

static struct object *random_view(u32 i, u32 *seed) {
    char name[32];
    u32 deps[2];
    for (i32 k = 0; k < 2; k++) {
        *seed = *seed * 1664525 + 1013904223;
        deps[k] = OID_FIRST + (*seed >> 8) % VIEWS;
    }
    snprintf(name, sizeof name, "v%u_%u", (*seed >> 20) % 7, i);
    struct object like = {.kind = OBJECT_VIEW,
                          .oid = OID_FIRST + i,
                          .schema = (*seed >> 10) % 2 ? OID_PUBLIC : OID_INFORMATION,
                          .name = name,
                          .dep_count = 2,
                          .deps = deps};
    struct object *object = object_new(&mem, &like);
    assert_non_null(object);
    return object;
}

static void check_against_model(const struct edition *edition) {
    i64 count = 0, walked = 0, in_public = 0, public_walked = 0;
    u32 last = 0;
    for (u32 i = 0; i < VIEWS; i++) {
        const struct object *object = model.object[i];
        const struct edition_entry *entry = edition_find_oid(edition, OID_FIRST + i);
        assert_ptr_equal(entry ? entry->object : NULL, object);
        count += object != NULL;
        in_public += object && object->schema == OID_PUBLIC;
        if (object) {
            entry = edition_find(edition, object->schema, sv_from(object->name));
            assert_ptr_equal(entry ? entry->object : NULL, object);
        }
    }
    for (struct edition_walk at = edition_walk(edition); edition_step(&at); walked++) {
        assert_true(at.entry->object->oid > last);
        last = at.entry->object->oid;
    }
    for (struct edition_walk at = edition_walk_schema(edition, OID_PUBLIC); edition_step(&at);) {
        assert_int_equal(at.entry->object->schema, OID_PUBLIC);
        public_walked++;
    }
    assert_int_equal(walked, count + 3); /* and the schemas */
    assert_int_equal(edition->count, count + 3);
    assert_int_equal(public_walked, in_public);
}

static void check_users(const struct edition *edition, u32 used) {
    i64 expected = 0, found = 0;
    for (u32 i = 0; i < VIEWS; i++) {
        const struct object *object = model.object[i];
        expected += object && object->oid != used &&
                    (object->deps[0] == used || object->deps[1] == used);
    }
    for (struct edition_walk at = edition_walk_users(edition, used); edition_step(&at); found++) {
        assert_true(at.entry->object->deps[0] == used || at.entry->object->deps[1] == used);
    }
    assert_int_equal(found, expected);
}

static void test_editions(void **state) {
    (void)state;
    struct edition *edition = NULL, *kept = NULL;
    struct object *kept_objects[VIEWS] = {NULL};
    u32 seed = 7;
    assert_int_equal(catalog_edition(catalog, &edition, &err), ERR_OK);
    kept = edition_retain(edition);
    for (i32 round = 0; round < ROUNDS; round++) {
        seed = seed * 1664525 + 1013904223;
        u32 i = (seed >> 8) % VIEWS;
        struct object *object = (seed >> 20) % 3 ? random_view(i, &seed) : NULL;
        struct edit edit = {OID_FIRST + i, object, NULL};
        struct edition *next = NULL;
        assert_int_equal(edition_change(catalog, edition, &edit, 1, &next, &err), ERR_OK);
        bool same = object == model.object[i];
        assert_int_equal(next->definitions == edition->definitions, same);
        object_release(model.object[i]);
        model.object[i] = object;
        edition_release(edition);
        edition = next;
        check_users(edition, OID_FIRST + (seed >> 12) % VIEWS);
        if (round % 100) {
            continue;
        }
        check_against_model(edition);
        i64 different = 0, told = 0;
        for (u32 k = 0; k < VIEWS; k++) {
            different += kept_objects[k] != model.object[k];
        }
        for (struct edition_diff diff = edition_diff(kept, edition); edition_diff_step(&diff);) {
            u32 k = (diff.before ? diff.before : diff.after)->object->oid - OID_FIRST;
            assert_ptr_equal(diff.before ? diff.before->object : NULL, kept_objects[k]);
            assert_ptr_equal(diff.after ? diff.after->object : NULL, model.object[k]);
            told++;
        }
        assert_int_equal(told, different);
        edition_release(kept);
        kept = edition_retain(edition);
        memcpy(kept_objects, model.object, sizeof kept_objects);
    }
    edition_release(kept);
    edition_release(edition);
    for (u32 i = 0; i < VIEWS; i++) {
        object_release(model.object[i]);
        model.object[i] = NULL;
    }
}

/* Editions share what they have in common: to keep every one of a thousand takes little. */
static void test_shared(void **state) {
    (void)state;
    enum { TABLES = 2000 };
    static struct edition *all[TABLES];
    for (i32 i = 0; i < TABLES; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(create(name), ERR_OK);
        assert_int_equal(catalog_edition(catalog, &all[i], &err), ERR_OK);
    }
    i64 before = atomic_load(&mem.used_bytes);
    for (i32 i = 0; i < TABLES; i++) {
        edition_release(all[i]);
    }
    i64 kept_bytes = before - atomic_load(&mem.used_bytes);
    assert_true(kept_bytes < (i64)TABLES * 8192); /* a list each would be 40 MB */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nearest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dropped_stays_readable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_editions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
