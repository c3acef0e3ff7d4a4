/* test_plan.c: expressions and plans: printing, comparing, verifying. */
#include "test_plan_fixture.h"

#include "codes/func.h"
#include "codes/scalar.h"

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

/* The plan is refused, and these are the words. */
static void refused(struct fixture *fx, struct rel *root, const char *words) {
    fx_root(fx, root);
    error_reset(&fx->err);
    assert_int_equal(plan_verify(&fx->plan, &fx->err), ERR_INTERNAL);
    if (!strstr(fx->err.message, words)) {
        fail_msg("not %s: %s", words, fx->err.message);
    }
}

/* A filter whose condition is broken. */
static void refused_expr(struct fixture *fx, struct rel *rel, struct expr *expr,
                         const char *words) {
    struct expr *null = fx_list(fx, EXPR_IS_NULL, FX_BOOL, 1, expr);
    refused(fx, fx_filter(fx, rel, null), words);
}

static void broken_expressions_are_named(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *rel = scan(fx);
    struct expr *a = fx_col(fx, "a"), *t = fx_col(fx, "t"), *yes = fx_cmp(fx, FUNC_LT, a, a);
    struct expr *none = NULL;
    refused_expr(fx, rel, fx_list(fx, EXPR_AND, FX_BOOL, 2, yes, a),
                 "argument 1 of a logical expression is not boolean");
    refused_expr(fx, rel, fx_list(fx, EXPR_NOT, FX_BOOL, 1, t), "argument 0 of a logical");
    refused_expr(fx, rel, fx_list(fx, EXPR_OR, FX_BOOL, 2, yes, none), "argument 1 is missing");
    refused_expr(fx, rel, fx_list(fx, EXPR_CASE, INT, 3, a, a, a), "argument 0 of a logical");
    refused_expr(fx, rel, fx_list(fx, EXPR_CASE, INT, 5, yes, a, t, a, a), "argument 2 of a");
    refused_expr(fx, rel, fx_list(fx, EXPR_CASE, INT, 2, yes, a), "CASE with 2 arguments");
    refused_expr(fx, rel, fx_list(fx, EXPR_CASE, INT, 1, a), "CASE with 1 arguments");
    refused_expr(fx, rel, fx_list(fx, EXPR_IN, FX_BOOL, 3, a, a, t), "IN list of different types");
    refused_expr(fx, rel, fx_call(fx, FUNC_COUNT, INT, a, a), "no function");
    refused_expr(fx, rel, fx_call(fx, FUNC_ADD, INT, a, NULL), "has 1 arguments");
    refused_expr(fx, rel, fx_call(fx, FUNC_SUBSTRING, TEXT, t, NULL), "has 1 arguments");
    refused_expr(fx, rel, fx_cmp(fx, FUNC_EQ, a, t), "comparison of different types");
    refused_expr(fx, rel, fx_call(fx, FUNC_GE, INT, a, a), "comparison of different types");
    struct expr *other = fx_col(fx, "a");
    other->type = type_of(TYPE_BIGINT);
    refused_expr(fx, rel, other, "has another type");
    other->col = (u32)fx->plan.cols.count;
    refused_expr(fx, rel, other, "no column");
    struct expr *param = expr_new(&fx->arena, EXPR_PARAM, INT, -1);
    refused_expr(fx, rel, param, "no parameter 1");
    fx->plan.param_count = 1;
    fx_root(fx, fx_filter(fx, rel, fx_cmp(fx, FUNC_LT, a, param)));
    error_reset(&fx->err);
    fx_check(fx, plan_verify(&fx->plan, &fx->err));
    fx_close(fx);
}

static struct rel *keyed(struct fixture *fx, struct expr *left, struct expr *right,
                         struct rel *const sides[2]) {
    struct rel *join = fx_join(fx, sides[0], sides[1], NULL);
    join->join.kind = JOIN_INNER;
    VEC_PUSH(&fx->arena, &join->join.left_keys, left);
    VEC_PUSH(&fx->arena, &join->join.right_keys, right);
    return join;
}

static void broken_joins_are_named(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *sides[2] = {scan(fx), NULL};
    struct expr *a = fx_col(fx, "a"), *b = fx_col(fx, "b"), *t = fx_col(fx, "t");
    const struct fx_col cols[] = {{.name = "x", .type = INT}, {.name = "y", .type = TEXT}};
    sides[1] = fx_scan(fx, 2, "other", 10, cols, 2);
    struct expr *x = fx_col(fx, "x"), *y = fx_col(fx, "y");
    fx_root(fx, keyed(fx, a, x, sides));
    fx_check(fx, plan_verify(&fx->plan, &fx->err));
    struct rel *join = keyed(fx, a, x, sides);
    VEC_PUSH(&fx->arena, &join->join.left_keys, b);
    refused(fx, join, "join keys do not pair up");
    join = keyed(fx, a, x, sides);
    VEC_PUSH(&fx->arena, &join->join.right_keys, y);
    refused(fx, join, "join keys do not pair up");
    refused(fx, keyed(fx, a, y, sides), "join keys of different types");
    refused(fx, keyed(fx, x, x, sides), "is not available here");
    refused(fx, keyed(fx, t, t, sides), "is not available here");
    join = keyed(fx, a, x, sides);
    join->join.mark_col = plan_col_new(&fx->plan, "mark", FX_BOOL, true);
    refused(fx, join, "a mark that it does not make");
    join = keyed(fx, a, x, sides);
    join->join.kind = JOIN_MARK;
    refused(fx, join, "a mark that it does not make");
    join = keyed(fx, a, x, sides);
    VEC_PUSH(&fx->arena, &join->join.null_safe, 1);
    VEC_PUSH(&fx->arena, &join->join.null_safe, 1);
    refused(fx, join, "has 2 flags for 1 expressions");
    join = fx_join(fx, sides[0], sides[0], NULL);
    refused(fx, join, "is made twice");
    join = fx_join(fx, sides[0], sides[1], a);
    refused(fx, join, "condition is not boolean");
    fx_close(fx);
}

static void broken_operators_are_named(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *rel = scan(fx);
    struct expr *a = fx_col(fx, "a");
    struct rel *broken = fx_limit(fx, rel, 1);
    broken->limit.count = a;
    refused(fx, broken, "LIMIT is neither constant nor parameter");
    broken = fx_limit(fx, rel, 1);
    broken->limit.offset = a;
    refused(fx, broken, "LIMIT is neither constant nor parameter");
    broken = fx_agg(fx, rel, 1, a);
    fx_agg_call(fx, broken, "n", AGG_COUNT_STAR, a, type_of(TYPE_BIGINT));
    refused(fx, broken, "aggregate without its argument");
    broken = fx_agg(fx, rel, 1, a);
    fx_agg_call(fx, broken, "n", AGG_MAX, NULL, INT);
    refused(fx, broken, "aggregate without its argument");
    broken = fx_agg(fx, rel, 1, a);
    fx_agg_call(fx, broken, "n", AGG_MAX, a, INT);
    broken->agg.calls.items[0].filter = a;
    refused(fx, broken, "FILTER is not boolean");
    broken->agg.calls.items[0].filter = NULL;
    broken->agg.calls.items[0].col = broken->out.items[0];
    refused(fx, broken, "is out of place");
    broken = fx_agg(fx, rel, 1, a);
    VEC_PUSH(&fx->arena, &broken->agg.implied, 1);
    refused(fx, broken, "group keys that nothing decides");
    broken->agg.implied.items[0] = 0;
    fx_root(fx, broken);
    error_reset(&fx->err);
    fx_check(fx, plan_verify(&fx->plan, &fx->err));
    broken = fx_project(fx, rel, 1, a);
    VEC_PUSH(&fx->arena, &broken->out, rel->out.items[0]);
    refused(fx, broken, "lists 2 columns for 1 expressions");
    broken = fx_project(fx, rel, 2, a, a);
    broken->out.items[1] = broken->out.items[0];
    refused(fx, broken, "is made twice");
    broken = fx_limit(fx, fx_project(fx, rel, 1, a), 1);
    VEC_PUSH(&fx->arena, &broken->out, rel->out.items[0]);
    refused(fx, broken, "passes on column");
    broken = rel_new(&fx->plan, REL_VALUES, NULL, NULL);
    VEC_PUSH(&fx->arena, &broken->values.exprs, fx_int(fx, 1));
    refused(fx, broken, "VALUES rows of different lengths");
    VEC_PUSH(&fx->arena, &broken->out, plan_col_new(&fx->plan, "p", INT, false));
    VEC_PUSH(&fx->arena, &broken->out, plan_col_new(&fx->plan, "q", INT, false));
    refused(fx, broken, "VALUES rows of different lengths");
    broken = fx_limit(fx, rel, 1);
    broken->inputs[0] = NULL;
    refused(fx, broken, "without input");
    broken = fx_limit(fx, rel, 1);
    broken->input_count = 0;
    refused(fx, broken, "with 0 inputs");
    broken = fx_limit(fx, rel, 1);
    broken->kind = REL_COUNT;
    refused(fx, broken, "no operator");
    fx->plan.root = NULL;
    error_reset(&fx->err);
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

/* p(x) <- tab(x, _, _).  p(x) <- p(x), q(x), p(x).  q(x) <- p(x). */
static struct rel *recursion(struct fixture *fx, struct rel *base) {
    struct plan_col col = {"x", type_of(TYPE_INTEGER), 0};
    struct fix_draft *f = fix_open(&fx->plan, 2);
    fix_relation(f, 0, &col, 1, true);
    fix_relation(f, 1, &col, 1, true);
    fix_base(f, 0, base);
    struct rel *body = fix_atom(f, 0);
    for (u32 i = 1; i < 3; i++) {
        struct rel *atom = fix_atom(f, i % 2);
        body = rel_join(&fx->plan, JOIN_INNER, body, atom);
        VEC_PUSH(&fx->arena, &body->join.left_keys,
                 expr_col(&fx->plan, rel_left(body)->out.items[0], -1));
        VEC_PUSH(&fx->arena, &body->join.right_keys, expr_col(&fx->plan, atom->out.items[0], -1));
        body->out.count = 1;
    }
    fix_rule(f, 0, body);
    fix_rule(f, 1, fix_atom(f, 0));
    return fix_close(f);
}

static void recursions_have_a_plan_for_each_atom(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *tab = scan(fx);
    struct rel *fix = recursion(fx, fx_project(fx, tab, 1, fx_col(fx, "a")));
    fx_root(fx, rel_join(&fx->plan, JOIN_CROSS, fix_read(&fx->plan, fix, 0),
                         fix_read(&fx->plan, fix, 1)));
    assert_int_equal(plan_verify(&fx->plan, &fx->err), ERR_OK);
    struct text text;
    text_init(&text, &fx->arena);
    plan_print(&text, &fx->plan);
    const char *at = text.ptr;
    static const char *const order[] = {"Union",          "Union",
                                        "Working rows  ", "of relation 2, all",
                                        "rows, all",      "rows, old",
                                        "of relation 2  ", "rows, all",
                                        "rows, old",      "of relation 2, old",
                                        "Working rows  ", "rows, all",
                                        "Working rows  ", "of relation 2, all",
                                        "relation 2"};
    for (i64 i = 0; i < COUNT_OF(order); i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
        at += strlen(order[i]);
    }
    struct rel *filter = rel_new(&fx->plan, REL_FILTER, fix, NULL);
    refused(fx, filter, "of several relations");
    struct rel *read = fix_read(&fx->plan, fix, 0);
    read->shared.relation = 1;
    refused(fx, read, "is another relation's");
    read->shared.relation = 2;
    refused(fx, read, "no relation 2");
    fx_close(fx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recursions_have_a_plan_for_each_atom),
        cmocka_unit_test(expressions_read_like_sql),
        cmocka_unit_test(properties),
        cmocka_unit_test(broken_plans_are_found),
        cmocka_unit_test(broken_expressions_are_named),
        cmocka_unit_test(broken_joins_are_named),
        cmocka_unit_test(broken_operators_are_named),
        cmocka_unit_test(plans_print_as_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
