/* test_opt.c: the optimiser's passes: where conditions go, join order, columns, estimates. */
#include "test_plan_fixture.h"

#include "codes/func.h"

#define INT type_of(TYPE_INTEGER)
#define BIG type_of(TYPE_BIGINT)

static const char *print(struct fixture *fx) {
    struct text text;
    text_init(&text, &fx->arena);
    plan_print(&text, &fx->plan);
    return text.ptr;
}

static struct rel *table(struct fixture *fx, u64 id, const char *prefix, i64 rows, bool unique) {
    const struct fx_col cols[] = {{.name = arena_printf(&fx->arena, "%s_k", prefix),
                                   .type = INT,
                                   .lo = 0,
                                   .hi = rows,
                                   .unique = unique,
                                   .distinct = rows},
                                  {.name = arena_printf(&fx->arena, "%s_v", prefix),
                                   .type = INT,
                                   .lo = 0,
                                   .hi = 99,
                                   .distinct = 100},
                                  {.name = arena_printf(&fx->arena, "%s_w", prefix),
                                   .type = INT,
                                   .lo = I32_MIN,
                                   .hi = I32_MAX,
                                   .distinct = rows}};
    return fx_scan(fx, id, prefix, rows, cols, 3);
}

static void conditions_sink(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *a = table(fx, 1, "a", 1000, false);
    struct rel *b = table(fx, 2, "b", 10, true);
    struct rel *join = fx_join(fx, a, b, NULL);
    struct expr *cond =
        fx_list(fx, EXPR_AND, FX_BOOL, 4, fx_cmp(fx, FUNC_EQ, fx_col(fx, "b_k"), fx_col(fx, "a_v")),
                fx_cmp(fx, FUNC_LT, fx_col(fx, "a_k"), fx_int(fx, 10)),
                fx_cmp(fx, FUNC_GT, fx_col(fx, "b_v"), fx_int(fx, 3)),
                fx_cmp(fx, FUNC_LT, fx_col(fx, "a_w"), fx_col(fx, "b_w")));
    fx_root(fx, fx_project(fx, fx_filter(fx, join, cond), 1, fx_col(fx, "a_k")));
    fx_opt(fx, false);
    const struct rel *top = rel_input(fx->plan.root);
    assert_int_equal(top->kind, REL_JOIN);
    assert_int_equal(top->join.left_keys.count, 1);
    assert_int_equal(top->join.conds.count, 1);
    assert_true(top->join.right_unique);
    assert_int_equal(rel_left(top)->kind, REL_FILTER);
    assert_int_equal(rel_right(top)->kind, REL_FILTER);
    fx_close(fx);
}

static void raising_conditions_stay(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *join =
        fx_join(fx, table(fx, 1, "a", 1000, false), table(fx, 2, "b", 10, true), NULL);
    struct expr *quotient = fx_call(fx, FUNC_DIV, INT, fx_int(fx, 10), fx_col(fx, "a_w"));
    struct expr *sum = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a_v"), fx_int(fx, 1));
    struct expr *overflow = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a_w"), fx_int(fx, 1));
    struct expr *cond =
        fx_list(fx, EXPR_AND, FX_BOOL, 4, fx_cmp(fx, FUNC_EQ, fx_col(fx, "b_k"), fx_col(fx, "a_v")),
                fx_cmp(fx, FUNC_LT, quotient, fx_int(fx, 10)),
                fx_cmp(fx, FUNC_LT, sum, fx_int(fx, 10)), /* cannot overflow */
                fx_cmp(fx, FUNC_EQ, overflow, fx_col(fx, "b_v")));
    fx_root(fx, fx_project(fx, fx_filter(fx, join, cond), 1, fx_col(fx, "a_k")));
    fx_opt(fx, true);
    const struct rel *late = rel_input(fx->plan.root);
    assert_int_equal(late->kind, REL_FILTER); /* tested where only rows are left that meet the rest */
    assert_int_equal(late->filter.conds.count, 2);
    const struct rel *top = rel_input(late);
    assert_int_equal(top->kind, REL_JOIN);
    assert_int_equal(top->join.left_keys.count,
                     1); /* the raising equality must not overtake the quotient */
    assert_int_equal(top->join.conds.count, 0);
    assert_int_equal(rel_left(top)->kind, REL_FILTER);
    assert_int_equal(rel_right(top)->kind, REL_FILTER); /* b_k = a_v, so b_k + 1 < 10 too */
    fx_close(fx);
}

static void joins_are_ordered(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *small = table(fx, 1, "s", 10, true);
    struct rel *middle = table(fx, 2, "m", 1000, true);
    struct rel *large = table(fx, 3, "l", 100000, false);
    /* small x large first, as written: a cross product unless reordered */
    struct rel *join = fx_join(fx, fx_join(fx, small, large, NULL), middle, NULL);
    struct expr *cond =
        fx_list(fx, EXPR_AND, FX_BOOL, 2, fx_cmp(fx, FUNC_EQ, fx_col(fx, "m_k"), fx_col(fx, "l_v")),
                fx_cmp(fx, FUNC_EQ, fx_col(fx, "s_k"), fx_col(fx, "m_v")));
    fx_root(fx, fx_project(fx, fx_filter(fx, join, cond), 1, fx_col(fx, "l_k")));
    fx_opt(fx, true);
    const struct rel *top = rel_input(fx->plan.root);
    assert_string_equal(rel_left(top)->scan.table_name, "l"); /* the largest drives */
    assert_string_equal(rel_left(rel_right(top))->scan.table_name, "m");
    assert_string_equal(rel_right(rel_right(top))->scan.table_name, "s");
    assert_int_equal(top->join.left_keys.count, 1);
    assert_int_equal(rel_right(top)->join.left_keys.count, 1);
    fx_close(fx);
}

static void columns_are_pruned(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *a = table(fx, 1, "a", 1000, false);
    struct rel *agg = fx_agg(fx, a, 1, fx_col(fx, "a_v"));
    fx_agg_call(fx, agg, "s", AGG_SUM, fx_col(fx, "a_k"), BIG);
    fx_agg_call(fx, agg, "t", AGG_SUM, fx_col(fx, "a_w"), BIG);
    fx_root(fx, fx_project(fx, agg, 1, fx_col(fx, "s")));
    fx_opt(fx, true);
    const struct rel *pruned = rel_input(fx->plan.root);
    assert_int_equal(pruned->agg.calls.count, 1);
    assert_int_equal(rel_input(pruned)->scan.cols.count, 2);
    assert_int_equal(pruned->rows, 100);
    fx_close(fx);
}

static void having_on_keys_sinks(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *a = table(fx, 1, "a", 1000, false);
    struct rel *agg = fx_agg(fx, a, 1, fx_col(fx, "a_v"));
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, BIG);
    struct expr *cond =
        fx_list(fx, EXPR_AND, FX_BOOL, 2, fx_cmp(fx, FUNC_LT, fx_col(fx, "k0"), fx_int(fx, 5)),
                fx_cmp(fx, FUNC_GT, fx_col(fx, "n"), fx_cast(fx, fx_int(fx, 1), BIG)));
    fx_root(fx, fx_filter(fx, agg, cond));
    fx_opt(fx, true);
    assert_non_null(strstr(print(fx), "Filter n > 1"));
    assert_non_null(strstr(print(fx), "    Filter a_v < 5"));
    fx_close(fx);
}

static void limits_hold_conditions_back(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *limit = fx_limit(fx, table(fx, 1, "a", 1000, false), 5);
    fx_root(fx, fx_filter(fx, limit, fx_cmp(fx, FUNC_LT, fx_col(fx, "a_k"), fx_int(fx, 5))));
    fx_opt(fx, true);
    assert_int_equal(fx->plan.root->kind, REL_FILTER);
    assert_int_equal(rel_input(fx->plan.root)->kind, REL_LIMIT);
    fx_close(fx);
}

static void true_and_reordered_roots(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *a = table(fx, 1, "a", 10, false);
    struct expr *yes = expr_new(&fx->arena, EXPR_CONST, FX_BOOL, -1);
    yes->value.b8 = 1;
    struct rel *filter = fx_filter(fx, a, yes);
    filter->out.count = 0;
    VEC_PUSH(&fx->arena, &filter->out, a->out.items[2]);
    VEC_PUSH(&fx->arena, &filter->out, a->out.items[0]);
    fx_root(fx, filter);
    fx_opt(fx, true);
    assert_int_equal(fx->plan.root->out.count, 2);
    fx_check(fx, fx_try_lower(fx, true));
    assert_string_equal(fx_ops(fx, 0), "LOAD LOAD EMIT");
    fx_close(fx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_sink),          cmocka_unit_test(raising_conditions_stay),
        cmocka_unit_test(joins_are_ordered),        cmocka_unit_test(columns_are_pruned),
        cmocka_unit_test(having_on_keys_sinks),     cmocka_unit_test(limits_hold_conditions_back),
        cmocka_unit_test(true_and_reordered_roots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
