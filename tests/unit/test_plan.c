/* test_plan.c: expressions and plans: printing, comparing, verifying. */
#include "test_plan_fixture.h"

#include "codes/func.h"

#define INT type_of(TYPE_INTEGER)
#define TEXT type_of(TYPE_TEXT)

static struct rel *scan(struct fixture *fx) {
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9},
                                  {.name = "b", .type = INT, .lo = 0, .hi = 9, .nullable = 1},
                                  {.name = "t", .type = TEXT}};
    return fx_scan(fx, 1, "tab", 10, cols, 3);
}

static const char *text_of(struct fixture *fx, const struct expr *expr) {
    struct text text;
    text_init(&text, &fx->arena);
    expr_print(&text, &fx->plan, expr);
    return text.ptr;
}

static void expressions_read_like_sql(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    scan(fx);
    struct expr *sum = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a"), fx_int(fx, 1));
    struct expr *product = fx_call(fx, FUNC_MUL, INT, sum, fx_col(fx, "b"));
    struct expr *less = fx_cmp(fx, FUNC_LT, product, fx_int(fx, 10));
    struct expr *null = fx_list(fx, EXPR_IS_NULL, FX_BOOL, 1, fx_col(fx, "b"));
    struct expr *not_null = fx_list(fx, EXPR_NOT, FX_BOOL, 1, null);
    struct expr *like = fx_cmp(fx, FUNC_LIKE, fx_col(fx, "t"), fx_text(fx, "it's%"));
    struct expr *either = fx_list(fx, EXPR_OR, FX_BOOL, 2, less, like);
    struct expr *both = fx_list(fx, EXPR_AND, FX_BOOL, 2, either, not_null);
    assert_string_equal(text_of(fx, both),
                        "((a + 1) * b < 10 OR t like 'it''s%') AND b IS NOT NULL");
    struct expr *in =
        fx_list(fx, EXPR_IN, FX_BOOL, 3, fx_col(fx, "a"), fx_int(fx, 1), fx_int(fx, 2));
    assert_string_equal(text_of(fx, in), "a IN (1, 2)");
    struct expr *c = fx_list(fx, EXPR_CASE, INT, 3, in, fx_col(fx, "b"), fx_null(fx, INT));
    assert_string_equal(text_of(fx, c), "CASE WHEN a IN (1, 2) THEN b ELSE NULL END");
    assert_string_equal(text_of(fx, fx_cast(fx, fx_date(fx, 0), TEXT)),
                        "CAST(date '1970-01-01' AS text)");
    fx_close(fx);
}

static void properties(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    scan(fx);
    struct expr *x = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a"), fx_int(fx, 1));
    struct expr *y = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a"), fx_int(fx, 1));
    struct expr *z = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "b"), fx_int(fx, 1));
    assert_true(expr_equal(x, y));
    assert_false(expr_equal(x, z));
    assert_false(expr_nullable(&fx->plan, x));
    assert_true(expr_nullable(&fx->plan, z));
    assert_true(expr_can_raise(x));
    assert_false(expr_can_raise(fx_cmp(fx, FUNC_LT, fx_col(fx, "a"), fx_int(fx, 1))));
    struct expr *wide = fx_cast(fx, fx_col(fx, "a"), type_decimal(12, 2));
    struct expr *narrow = fx_cast(fx, fx_col(fx, "a"), type_decimal(11, 2));
    assert_false(expr_can_raise(wide));
    assert_true(expr_can_raise(narrow));
    struct expr *price = fx_call(fx, FUNC_MUL, type_decimal(24, 4), wide, wide);
    assert_false(expr_can_raise(price));
    fx_close(fx);
}

static void broken_plans_are_found(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *rel = scan(fx);
    struct rel *project = fx_project(fx, rel, 1, fx_col(fx, "a"));
    fx_root(fx, project);
    fx_check(fx, plan_verify(&fx->plan, &fx->err));
    /* a column the input does not have */
    struct rel *again = fx_project(fx, project, 1, fx_col(fx, "b"));
    fx_root(fx, again);
    assert_int_equal(plan_verify(&fx->plan, &fx->err), ERR_INTERNAL);
    error_reset(&fx->err);
    /* a condition that is not boolean */
    fx_root(fx, fx_filter(fx, rel, fx_col(fx, "a")));
    assert_int_equal(plan_verify(&fx->plan, &fx->err), ERR_INTERNAL);
    error_reset(&fx->err);
    /* names that do not match */
    fx_root(fx, project);
    fx->plan.names.count = 0;
    assert_int_equal(plan_verify(&fx->plan, &fx->err), ERR_INTERNAL);
    fx_close(fx);
}

static void plans_print_as_trees(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *rel = scan(fx);
    struct rel *filter = fx_filter(fx, rel, fx_cmp(fx, FUNC_GT, fx_col(fx, "a"), fx_int(fx, 3)));
    struct rel *agg = fx_agg(fx, filter, 1, fx_col(fx, "b"));
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, type_of(TYPE_BIGINT));
    fx_root(fx, fx_limit(fx, fx_sort(fx, agg, fx_col(fx, "n"), true), 3));
    struct text text;
    text_init(&text, &fx->arena);
    plan_print(&text, &fx->plan);
    assert_string_equal(text.ptr, "Limit 3  [~0 rows]\n"
                                  "  Sort by n desc  [~0 rows]\n"
                                  "    Aggregate count(*) by b  [~0 rows]\n"
                                  "      Filter a > 3  [~0 rows]\n"
                                  "        Scan tab (a, b, t)  [~0 rows]\n");
    fx_close(fx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_read_like_sql),
        cmocka_unit_test(properties),
        cmocka_unit_test(broken_plans_are_found),
        cmocka_unit_test(plans_print_as_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
