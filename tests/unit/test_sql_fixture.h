/* test_sql_fixture.h: a small catalog and one call from text to statement, for the tests of the SQL
 * front end. */
#ifndef WF_TEST_SQL_FIXTURE_H
#define WF_TEST_SQL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sql/sql.h"

enum { FIXTURE_PARAMS = 64 };

struct fixture {
    struct memory mem;
    struct catalog *catalog;
    struct arena arena; /* of the last statement bound */
    struct snapshot snap;
    struct type params[FIXTURE_PARAMS];
    struct statement statement;
    struct error err;
};

/* Binds the last statement of a script. The parse tree is gone when it returns, as a plan must not
 * need it. */
static inline wf_status fixture_bind(struct fixture *f, struct sv text) {
    snapshot_fini(&f->snap);
    arena_reset(&f->arena);
    snapshot_init(&f->snap, f->catalog, &f->arena);
    error_reset(&f->err);
    for (i32 i = 0; i < FIXTURE_PARAMS; i++) {
        f->params[i] = type_of(TYPE_UNKNOWN);
    }
    struct arena parse_arena;
    struct parsed_list list;
    arena_init(&parse_arena, &f->mem);
    wf_status status = sql_parse(&parse_arena, text, &list, &f->err);
    for (i64 i = 0; status == ERR_OK && i < list.items.count; i++) {
        const struct parsed *parsed = list.items.items[i];
        assert_true(parsed_param_count(parsed) <= FIXTURE_PARAMS);
        status = sql_bind(&f->arena, parsed, &f->snap, f->params, &f->statement, &f->err);
    }
    arena_fini(&parse_arena);
    if (status == ERR_OK && list.items.count > 0 && f->statement.plan) {
        status = plan_verify(f->statement.plan, &f->err);
    }
    return status;
}

static inline void fixture_create(struct fixture *f, const char *sql) {
    assert_int_equal(fixture_bind(f, sv_from(sql)), ERR_OK);
    const struct table_def *def = &f->statement.create.table.table.def;
    assert_int_equal(catalog_create_table(f->catalog, def, 20, false, -1, &f->err), ERR_OK);
}

static inline int fixture_setup(void **state) {
    static struct fixture f;
    memset(&f, 0, sizeof f);
    memory_init(&f.mem, NULL, 0, "memory");
    f.catalog = catalog_open(&f.mem);
    arena_init(&f.arena, &f.mem);
    snapshot_init(&f.snap, f.catalog, &f.arena);
    fixture_create(&f,
                   "create table t (a integer, b text, c decimal(12,2), d date, e double precision,"
                   " f real, g bigint, h smallint, i boolean not null)");
    fixture_create(&f, "create table u (a integer, x text, y decimal(5,3))");
    *state = &f;
    return 0;
}

static inline int fixture_teardown(void **state) {
    struct fixture *f = *state;
    snapshot_fini(&f->snap);
    arena_fini(&f->arena);
    catalog_close(f->catalog);
    assert_int_equal(f->mem.used_bytes, 0);
    return 0;
}

#endif
