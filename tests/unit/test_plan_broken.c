/* test_plan_broken.c: plans of statements, broken in one place after the other: plan_verify sees
 * each. And their copies: valid, equal to them, and printed like them.
 *
 * Every expression of every operator is exchanged for a column that does not exist, every column
 * that goes up for another number, every input taken away. A copy in which an expression was
 * exchanged is equal no more. */
#include "test_sql_fixture.h"

static struct fixture *f;
static i64 broken;

static void sees(const char *sql, const char *what) {
    struct error err;
    error_reset(&err);
    broken++;
    if (plan_verify(f->statement.plan, &err) != ERR_INTERNAL) {
        fail_msg("%s: %s", what, sql);
    }
}

struct slot_arg {
    const char *sql;
    struct expr *missing;
};

static void break_slot(struct expr **slot, void *arg) {
    const struct slot_arg *a = arg;
    struct expr *was = *slot;
    a->missing->type = was->type;
    *slot = a->missing;
    sees(a->sql, "an expression");
    *slot = was;
}

static void break_columns(struct rel *rel, const char *sql) {
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 was = rel->out.items[i];
        rel->out.items[i] = (u32)f->statement.plan->cols.count + 1;
        sees(sql, "a column that goes up");
        rel->out.items[i] = was;
    }
}

static void break_rel(struct rel *rel, struct slot_arg *arg) {
    rel_each_expr(rel, break_slot, arg);
    break_columns(rel, arg->sql);
    for (i32 i = 0; i < rel->input_count; i++) {
        struct rel *was = rel->inputs[i];
        rel->inputs[i] = NULL;
        sees(arg->sql, "an input");
        rel->inputs[i] = was;
        break_rel(was, arg);
    }
}

static const char *const statements[] = {
    "select a, b || 'x' from t where c > 1 and d is not null",
    "select a, sum(c) filter (where i), string_agg(b, ',' order by d) from t group by a having "
    "count(*) > 1",
    "select sum(g) filter (where h > 0) over (partition by a order by h rows between 1 preceding "
    "and "
    "2 following), lag(b, 1, 'x') over (order by a), rank() over (order by e desc) from t",
    "select t.a, u.x from t join u on t.a = u.a and t.c > u.y",
    "select t.a, u.x from t left join u on t.a + 1 = u.a where t.i",
    "select a from t where exists (select from u where u.a = t.a) and b in (select x from u)",
    "select a, (select max(y) from u where u.a = t.a) from t",
    "select a from t union all select a from u order by 1 limit 3 offset 1",
    "select a from t except select a from u",
    "select distinct b from t order by b",
    "with w as materialized (select a, c from t) select * from w x join w y on x.a = y.a",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n from r",
    "select n from generate_series(1, 3) n, t where t.a = n",
    "select case when i then a else h end, a between 1 and 2, not i or a = 3 from t",
    "values (1, 'a'), (2, 'b')",
};

static void test_broken(void **state) {
    f = *state;
    for (i64 i = 0; i < COUNT_OF(statements); i++) {
        const char *sql = statements[i];
        if (fixture_bind(f, sv_from(sql))) {
            fail_msg("%s: %s", sql, f->err.message);
        }
        struct plan *plan = f->statement.plan;
        struct expr missing = {.kind = EXPR_COL, .col = (u32)plan->cols.count};
        struct slot_arg arg = {sql, &missing};
        break_rel(plan->root, &arg);
        struct rel *root = plan->root;
        plan->root = NULL;
        sees(sql, "the root");
        plan->root = root;
        plan->names.count++;
        sees(sql, "a name too many");
        plan->names.count--;
        assert_int_equal(plan_verify(plan, &f->err), ERR_OK);
    }
    assert_true(broken > 200);
}

static const char *printed(const struct plan *plan) {
    struct text out = {0};
    text_init(&out, plan->arena);
    plan_print(&out, plan);
    return out.ptr;
}

struct other {
    const struct rel *root, *copy;
    i64 count;
};

static bool is_equal(const struct rel *a, const struct rel *b) {
    struct plan *plan = f->statement.plan;
    return rel_equal(plan, a, b, NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1));
}

/* Another expression makes another plan. */
static void change_slot(struct expr **slot, void *arg) {
    struct other *other = arg;
    struct expr *was = *slot;
    struct expr changed = *was;
    changed.kind = was->kind == EXPR_CONST ? EXPR_PARAM : EXPR_CONST;
    *slot = &changed;
    other->count++;
    assert_false(is_equal(other->root, other->copy));
    *slot = was;
}

/* What is shared is not copied. */
static bool change_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, change_slot, arg);
    return !rel_shares(rel);
}

static void note_round(struct rel *rel, void *arg) {
    *(bool *)arg = *(bool *)arg || rel->kind == REL_FIX;
}

static void test_copied(void **state) {
    f = *state;
    i64 changes = 0;
    for (i64 i = 0; i < COUNT_OF(statements); i++) {
        if (fixture_bind(f, sv_from(statements[i]))) {
            fail_msg("%s: %s", statements[i], f->err.message);
        }
        struct plan *plan = f->statement.plan;
        struct rel *root = plan->root;
        const char *before = printed(plan);
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        plan->root = rel_copy(plan, root, map);
        assert_int_equal(plan_verify(plan, &f->err), ERR_OK);
        assert_string_equal(printed(plan), before);
        assert_int_equal(rel_hash(root), rel_hash(plan->root));
        bool rounds = false;
        rel_each(plan->arena, root, note_round, &rounds);
        assert_int_equal(is_equal(root, plan->root), !rounds);
        struct other other = {.root = root, .copy = plan->root};
        if (!rounds) {
            rel_walk(plan->arena, plan->root, change_rel, &other);
        }
        changes += other.count;
    }
    assert_true(changes > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_broken, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_copied, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
