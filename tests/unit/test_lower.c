/* test_lower.c: hand-made plans become the expected opcodes. */
#include "test_plan_fixture.h"

#include "codes/func.h"
#include "codes/loop.h"
#include "codes/op.h"
#include "codes/scalar.h"

#define INT type_of(TYPE_INTEGER)
#define BIG type_of(TYPE_BIGINT)
#define DATE type_of(TYPE_DATE)
#define TEXT type_of(TYPE_TEXT)
#define REAL type_of(TYPE_REAL)
#define DOUBLE type_of(TYPE_DOUBLE)

static struct rel *virginian(struct fixture *fx) {
    const struct fx_col cols[] = {
        {.name = "id", .type = INT, .lo = 0, .hi = 7999999, .unique = 1, .distinct = 8000000},
        {.name = "uniformi", .type = INT, .lo = -100, .hi = 100, .distinct = 201},
        {.name = "uniformf", .type = REAL, .lo = -30, .hi = 100},
        {.name = "normali5", .type = INT, .lo = -28, .hi = 27, .distinct = 50},
        {.name = "normalf5", .type = REAL, .lo = -50, .hi = 30},
        {.name = "normali20", .type = INT, .lo = -110, .hi = 108, .distinct = 200},
        {.name = "normalf20", .type = REAL, .lo = -50, .hi = 120},
    };
    return fx_scan(fx, 1, "test", 8000000, cols, COUNT_OF(cols));
}

static void filter_is_minimal(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = virginian(fx);
    struct expr *cond = fx_list(fx, EXPR_AND, FX_BOOL, 2,
                                fx_cmp(fx, FUNC_GT, fx_col(fx, "uniformi"), fx_int(fx, 60)),
                                fx_cmp(fx, FUNC_LT, fx_col(fx, "normali5"), fx_int(fx, 0)));
    struct rel *root = fx_project(fx, fx_filter(fx, scan, cond), 3, fx_col(fx, "id"),
                                  fx_col(fx, "uniformi"), fx_col(fx, "normali5"));
    fx_lower(fx, root, true);
    assert_string_equal(fx_ops(fx, 0),
                        "CONST CONST LOAD GT_I32 FILTER LOAD LT_I32 FILTER LOAD EMIT");
    assert_int_equal(fx_pipe(fx, 0)->prune_count, 2);
    assert_int_equal(fx_pipe(fx, 0)->source.col_count, 3);
    assert_string_equal(fx_steps(fx), "PR");
    fx_close(fx);
}

static void floats_compare_as_reals(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = virginian(fx);
    struct expr *x = fx_cast(fx, fx_col(fx, "uniformf"), DOUBLE);
    struct rel *root = fx_project(
        fx, fx_filter(fx, scan, fx_cmp(fx, FUNC_GT, x, fx_double(fx, 60))), 1, fx_col(fx, "id"));
    fx_lower(fx, root, true);
    assert_string_equal(fx_ops(fx, 0), "CONST LOAD GT_F32 FILTER LOAD EMIT");
    fx_close(fx);
}

static void arithmetic_by_range(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = virginian(fx);
    struct expr *mul = fx_call(fx, FUNC_MUL, INT, fx_col(fx, "normali5"), fx_col(fx, "normali20"));
    struct expr *cond = fx_list(fx, EXPR_AND, FX_BOOL, 2, fx_cmp(fx, FUNC_GE, mul, fx_int(fx, -5)),
                                fx_cmp(fx, FUNC_LE, mul, fx_int(fx, 5)));
    struct rel *root =
        fx_project(fx, fx_filter(fx, scan, cond), 2, fx_col(fx, "id"), fx_col(fx, "normali5"));
    fx_lower(fx, root, true);
    /* One multiplication, unchecked; both conditions in one filter. */
    assert_string_equal(fx_ops(fx, 0),
                        "CONST CONST LOAD LOAD MUL_I32 GE_I32 LE_I32 AND_B8 FILTER LOAD EMIT");
    fx_close(fx);
}

static void or_of_ranges(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = virginian(fx);
    struct expr *parts[3];
    const char *names[] = {"uniformi", "normali5", "normali20"};
    for (int i = 0; i < 3; i++) {
        parts[i] = fx_list(fx, EXPR_AND, FX_BOOL, 2,
                           fx_cmp(fx, FUNC_GE, fx_col(fx, names[i]), fx_int(fx, -1)),
                           fx_cmp(fx, FUNC_LE, fx_col(fx, names[i]), fx_int(fx, 1)));
    }
    struct expr *cond = fx_list(fx, EXPR_OR, FX_BOOL, 3, parts[0], parts[1], parts[2]);
    fx_lower(fx, fx_project(fx, fx_filter(fx, scan, cond), 1, fx_col(fx, "id")), true);
    assert_string_equal(fx_ops(fx, 0),
                        "CONST CONST LOAD GE_I32 LE_I32 AND_B8 LOAD GE_I32 LE_I32 AND_B8 OR_B8 "
                        "LOAD GE_I32 LE_I32 AND_B8 OR_B8 FILTER LOAD EMIT");
    fx_close(fx);
}

static void overflow_is_checked(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {
        {.name = "a", .type = INT, .lo = I32_MIN, .hi = I32_MAX},
        {.name = "b", .type = BIG, .lo = I64_MIN, .hi = I64_MAX},
        {.name = "s", .type = type_of(TYPE_SMALLINT), .lo = -9, .hi = 32767},
        {.name = "n", .type = INT, .lo = 0, .hi = I32_MAX, .nullable = 1}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *a = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a"), fx_int(fx, 1));
    struct expr *b = fx_call(fx, FUNC_MUL, BIG, fx_col(fx, "b"), fx_col(fx, "b"));
    struct expr *s =
        fx_call(fx, FUNC_ADD, type_of(TYPE_SMALLINT), fx_col(fx, "s"), fx_col(fx, "s"));
    struct expr *n = fx_call(fx, FUNC_ADD, INT, fx_col(fx, "n"), fx_int(fx, 1));
    fx_lower(fx, fx_project(fx, scan, 4, a, b, s, n), true);
    assert_int_equal(fx_count_op(fx, OP_ADDX_I32), 2);
    assert_int_equal(fx_count_op(fx, OP_MULX_I64), 1);
    assert_int_equal(fx_count_op(fx, OP_CHECK_SMALLINT), 1);
    assert_int_equal(fx_count_op(fx, OP_SEL_I32), 1); /* no fault for a NULL */
    fx_close(fx);
}

static void nulls_cost_only_where_they_are(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9, .nullable = 1},
                                  {.name = "b", .type = INT, .lo = 0, .hi = 9}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *cond = fx_cmp(fx, FUNC_LT, fx_col(fx, "a"), fx_int(fx, 5));
    struct expr *is_null = fx_list(fx, EXPR_IS_NULL, FX_BOOL, 1, fx_col(fx, "b"));
    struct expr *not_null = fx_list(fx, EXPR_NOT, FX_BOOL, 1, is_null);
    fx_lower(fx,
             fx_project(fx, fx_filter(fx, fx_filter(fx, scan, not_null), cond), 1, fx_col(fx, "b")),
             true);
    assert_string_equal(fx_ops(fx, 0), "CONST LOAD LT_I32 LOADN ANDN_B8 FILTER LOAD EMIT");
    fx_close(fx);
}

static void coalesce_drops_null(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9, .nullable = 1}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *is_null = fx_list(fx, EXPR_IS_NULL, FX_BOOL, 1, fx_col(fx, "a"));
    struct expr *there = fx_list(fx, EXPR_NOT, FX_BOOL, 1, is_null);
    struct expr *e = fx_list(fx, EXPR_CASE, INT, 3, there, fx_col(fx, "a"), fx_int(fx, 7));
    fx_lower(fx, fx_project(fx, scan, 1, e), true);
    assert_string_equal(fx_ops(fx, 0), "CONST LOAD LOADN SEL_I32 EMIT");
    assert_int_equal(fx_pipe(fx, 0)->sinks[0].cols[0].null_reg, NO_REG);
    fx_close(fx);
}

static void faulting_branch_is_masked(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9},
                                  {.name = "b", .type = INT, .lo = 0, .hi = 9}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *quotient = fx_call(fx, FUNC_DIV, INT, fx_col(fx, "a"), fx_col(fx, "b"));
    struct expr *cond = fx_cmp(fx, FUNC_NE, fx_col(fx, "b"), fx_int(fx, 0));
    struct expr *e = fx_list(fx, EXPR_CASE, INT, 3, cond, quotient, fx_int(fx, -1));
    struct expr *safe =
        fx_list(fx, EXPR_CASE, INT, 3, cond,
                fx_call(fx, FUNC_ADD, INT, fx_col(fx, "a"), fx_int(fx, 1)), fx_int(fx, -1));
    fx_lower(fx, fx_project(fx, scan, 2, e, safe), true);
    assert_string_equal(fx_ops(fx, 0),
                        "CONST CONST CONST LOAD NE_I32 WHEN LOAD DIV_I32 END SEL_I32 "
                        "LOAD ADD_I32 SEL_I32 EMIT");
    fx_close(fx);
}

/* Nobody asks for the values of the branch, and so the mask around it is empty. */
static void masks_of_nothing_go(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct type real = type_of(TYPE_DOUBLE);
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9},
                                  {.name = "f", .type = real}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *angle = fx_call(fx, FUNC_ATAN, real, fx_col(fx, "f"), NULL);
    struct expr *some =
        fx_list(fx, EXPR_CASE, real, 3, fx_cmp(fx, FUNC_GT, fx_col(fx, "a"), fx_int(fx, 0)), angle,
                fx_null(fx, real));
    fx_lower(fx, fx_project(fx, scan, 1, fx_list(fx, EXPR_IS_NULL, FX_BOOL, 1, some)), true);
    assert_int_equal(fx_count_op(fx, OP_WHEN) + fx_count_op(fx, OP_END), 0);
    assert_int_equal(fx_count_op(fx, OP_ATAN_F64), 0);
    fx_close(fx);
}

static void loads_in_branches_stay_there(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9},
                                  {.name = "b", .type = INT, .lo = 0, .hi = 9},
                                  {.name = "c", .type = INT, .lo = 0, .hi = 9, .nullable = 1}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *quotient = fx_call(fx, FUNC_DIV, INT, fx_col(fx, "a"), fx_col(fx, "b"));
    struct expr *inner =
        fx_list(fx, EXPR_CASE, INT, 3, fx_cmp(fx, FUNC_GT, quotient, fx_int(fx, 0)),
                fx_null(fx, INT), fx_col(fx, "c"));
    struct expr *outer =
        fx_list(fx, EXPR_CASE, INT, 3, fx_cmp(fx, FUNC_GT, fx_col(fx, "b"), fx_int(fx, 0)), inner,
                fx_int(fx, 5));
    fx_lower(fx, fx_project(fx, scan, 2, outer, fx_col(fx, "c")), true);
    assert_int_equal(fx_count_op(fx, OP_LOAD), 4); /* c in the branch, and again outside */
    fx_close(fx);
}

static void and_masks_its_right_side(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {{.name = "a", .type = INT, .lo = 0, .hi = 9},
                                  {.name = "b", .type = INT, .lo = 0, .hi = 9}};
    struct rel *scan = fx_scan(fx, 1, "t", 10, cols, COUNT_OF(cols));
    struct expr *quotient = fx_call(fx, FUNC_DIV, INT, fx_col(fx, "a"), fx_col(fx, "b"));
    struct expr *e =
        fx_list(fx, EXPR_AND, FX_BOOL, 2, fx_cmp(fx, FUNC_NE, fx_col(fx, "b"), fx_int(fx, 0)),
                fx_cmp(fx, FUNC_GT, quotient, fx_int(fx, 2)));
    fx_lower(fx, fx_project(fx, scan, 1, e), true);
    assert_int_equal(fx_count_op(fx, OP_WHEN), 1);
    assert_int_equal(fx_count_op(fx, OP_END), 1);
    fx_close(fx);
}

static void folding_never_raises(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *one = rel_new(&fx->plan, REL_VALUES, NULL, NULL);
    struct expr *bad = fx_call(fx, FUNC_DIV, INT, fx_int(fx, 1), fx_int(fx, 0));
    struct expr *cond = fx_cmp(fx, FUNC_EQ, fx_int(fx, 1), fx_int(fx, 2));
    struct expr *e = fx_list(fx, EXPR_CASE, INT, 3, cond, bad, fx_int(fx, 3));
    struct expr *sum = fx_call(fx, FUNC_ADD, INT, fx_int(fx, 1), fx_int(fx, 2));
    fx_lower(fx, fx_project(fx, one, 2, e, sum), true);
    assert_string_equal(fx_ops(fx, 0), "CONST EMIT");
    fx_close(fx);
    fx = fx_open();
    one = rel_new(&fx->plan, REL_VALUES, NULL, NULL);
    bad = fx_call(fx, FUNC_DIV, INT, fx_int(fx, 1), fx_int(fx, 0));
    fx_lower(fx, fx_project(fx, one, 1, bad), true);
    assert_int_equal(fx_count_op(fx, OP_DIV_I32), 1);
    fx_close(fx);
}

static void text_becomes_tables(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {
        {.name = "c", .type = TEXT, .lo = 0, .hi = 6, .dict = 1, .distinct = 7},
        {.name = "x", .type = INT, .lo = 0, .hi = 6}};
    struct rel *scan = fx_scan(fx, 1, "t", 1000, cols, COUNT_OF(cols));
    struct expr *either =
        fx_list(fx, EXPR_OR, FX_BOOL, 2, fx_cmp(fx, FUNC_EQ, fx_col(fx, "c"), fx_text(fx, "AIR")),
                fx_cmp(fx, FUNC_LIKE, fx_col(fx, "c"), fx_text(fx, "R%")));
    struct expr *upper = fx_call(fx, FUNC_UPPER, TEXT, fx_col(fx, "c"), NULL);
    struct expr *as_int = fx_cast(fx, fx_col(fx, "c"), INT);
    struct rel *root =
        fx_project(fx, fx_filter(fx, scan, either), 3, upper, as_int, fx_col(fx, "c"));
    fx_lower(fx, root, true);
    assert_string_equal(fx_steps(fx), "PPPPR");
    assert_string_equal(fx_ops(fx, 0),
                        "CONST CONST LOAD EQ_STR NOT_B8 WHEN LIKE_STR END OR_B8 EMIT");
    const char *user = fx_ops(fx, 3);
    assert_non_null(strstr(user, "LOAD LUT FILTER"));
    assert_non_null(strstr(user, "RAISE_B8"));
    assert_int_equal(fx_count_op(fx, OP_INTERN), 1);
    const struct sink *sink = &fx_pipe(fx, 3)->sinks[0];
    assert_true(sink->cols[0].dict != 0 && sink->cols[2].dict != 0);
    assert_true(sink->cols[0].dict != sink->cols[2].dict);
    fx_close(fx);
}

static void text_null_handling(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {
        {.name = "c", .type = TEXT, .lo = 0, .hi = 6, .dict = 1, .nullable = 1}};
    struct rel *scan = fx_scan(fx, 1, "t", 1000, cols, COUNT_OF(cols));
    struct expr *eq = fx_cmp(fx, FUNC_EQ, fx_col(fx, "c"), fx_text(fx, "AIR"));
    struct expr *is_null = fx_list(fx, EXPR_IS_NULL, FX_BOOL, 1, fx_col(fx, "c"));
    fx_lower(fx, fx_project(fx, scan, 2, eq, is_null), true);
    assert_string_equal(fx_ops(fx, 1), "LOAD LUT LOADN ANDN_B8 EMIT");
    fx_close(fx);
}

static struct rel *lineitem(struct fixture *fx) {
    const struct fx_col cols[] = {
        {.name = "l_orderkey", .type = BIG, .lo = 1, .hi = 6000000, .distinct = 1500000},
        {.name = "l_partkey", .type = BIG, .lo = 1, .hi = 200000, .distinct = 200000},
        {.name = "l_suppkey", .type = BIG, .lo = 1, .hi = 10000, .distinct = 10000},
        {.name = "l_quantity", .type = type_decimal(15, 2), .lo = 100, .hi = 5000, .distinct = 50},
        {.name = "l_extendedprice", .type = type_decimal(15, 2), .lo = 90000, .hi = 10494950},
        {.name = "l_discount", .type = type_decimal(15, 2), .lo = 0, .hi = 10, .distinct = 11},
        {.name = "l_tax", .type = type_decimal(15, 2), .lo = 0, .hi = 8, .distinct = 9},
        {.name = "l_returnflag", .type = TEXT, .lo = 0, .hi = 2, .dict = 1, .distinct = 3},
        {.name = "l_linestatus", .type = TEXT, .lo = 0, .hi = 1, .dict = 1, .distinct = 2},
        {.name = "l_shipdate", .type = DATE, .lo = 8036, .hi = 10561, .distinct = 2526},
    };
    return fx_scan(fx, 1, "lineitem", 6001215, cols, COUNT_OF(cols));
}

static struct expr *disc_price(struct fixture *fx) {
    struct expr *left =
        fx_call(fx, FUNC_SUB, type_decimal(16, 2), fx_dec(fx, 1, 1, 0), fx_col(fx, "l_discount"));
    return fx_call(fx, FUNC_MUL, type_decimal(31, 4), fx_col(fx, "l_extendedprice"), left);
}

static void q1(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = lineitem(fx);
    struct rel *filter =
        fx_filter(fx, scan, fx_cmp(fx, FUNC_LE, fx_col(fx, "l_shipdate"), fx_date(fx, 10471)));
    struct rel *agg = fx_agg(fx, filter, 2, fx_col(fx, "l_returnflag"), fx_col(fx, "l_linestatus"));
    struct expr *tax =
        fx_call(fx, FUNC_ADD, type_decimal(16, 2), fx_dec(fx, 1, 1, 0), fx_col(fx, "l_tax"));
    struct expr *charge = fx_call(fx, FUNC_MUL, type_decimal(38, 6), disc_price(fx), tax);
    fx_agg_call(fx, agg, "sum_qty", AGG_SUM, fx_col(fx, "l_quantity"), type_decimal(38, 2));
    fx_agg_call(fx, agg, "sum_disc", AGG_SUM, disc_price(fx), type_decimal(38, 4));
    fx_agg_call(fx, agg, "sum_charge", AGG_SUM, charge, type_decimal(38, 6));
    fx_agg_call(fx, agg, "avg_qty", AGG_AVG, fx_col(fx, "l_quantity"), type_decimal(38, 16));
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, BIG);
    fx_lower(fx, fx_sort(fx, agg, fx_col(fx, "k0"), false), true);
    const struct sink *sink = &fx_pipe(fx, 0)->sinks[0];
    assert_int_equal(sink->kind, SINK_AGG);
    assert_int_equal(sink->key_bits, 3);
    assert_int_equal(sink->word_count, 4); /* quantity shared by sum and avg; counts shared */
    assert_string_equal(fx_steps(fx), "PPSR");
    assert_int_equal(fx_count_op(fx, OP_MUL_I128), 0);
    assert_int_equal(fx_count_op(fx, OP_CHECK_DECIMAL), 0);
    assert_non_null(strstr(fx_ops(fx, 0), "LOAD LE_I32 FILTER"));
    fx_close(fx);
}

static void q6(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = lineitem(fx);
    struct expr *cond = fx_list(
        fx, EXPR_AND, FX_BOOL, 5, fx_cmp(fx, FUNC_GE, fx_col(fx, "l_shipdate"), fx_date(fx, 8766)),
        fx_cmp(fx, FUNC_LT, fx_col(fx, "l_shipdate"), fx_date(fx, 9131)),
        fx_cmp(fx, FUNC_GE, fx_col(fx, "l_discount"), fx_dec(fx, 5, 2, 2)),
        fx_cmp(fx, FUNC_LE, fx_col(fx, "l_discount"), fx_dec(fx, 7, 2, 2)),
        fx_cmp(fx, FUNC_LT, fx_col(fx, "l_quantity"), fx_dec(fx, 24, 10, 0)));
    struct rel *agg = fx_agg(fx, fx_filter(fx, scan, cond), 0);
    struct expr *revenue = fx_call(fx, FUNC_MUL, type_decimal(30, 4), fx_col(fx, "l_extendedprice"),
                                   fx_col(fx, "l_discount"));
    fx_agg_call(fx, agg, "revenue", AGG_SUM, revenue, type_decimal(38, 4));
    fx_lower(fx, agg, true);
    assert_string_equal(fx_ops(fx, 0),
                        "CONST CONST CONST CONST CONST CONST LOAD GE_I32 LT_I32 AND_B8 FILTER LOAD "
                        "GE_I32 LE_I32 AND_B8 FILTER LOAD LT_I32 FILTER LOAD MUL_I32 I64_I32 EMIT");
    assert_int_equal(fx_pipe(fx, 0)->prune_count, 5);
    fx_close(fx);
}

static void q3(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col customer[] = {
        {.name = "c_custkey", .type = BIG, .lo = 1, .hi = 150000, .unique = 1, .distinct = 150000},
        {.name = "c_mktsegment", .type = TEXT, .lo = 0, .hi = 4, .dict = 1, .distinct = 5}};
    const struct fx_col orders[] = {
        {.name = "o_orderkey", .type = BIG, .lo = 1, .hi = 6000000, .distinct = 1500000},
        {.name = "o_custkey", .type = BIG, .lo = 1, .hi = 149999, .distinct = 100000},
        {.name = "o_orderdate", .type = DATE, .lo = 8036, .hi = 10440, .distinct = 2406},
        {.name = "o_shippriority", .type = INT, .lo = 0, .hi = 0, .distinct = 1}};
    struct rel *c = fx_scan(fx, 2, "customer", 150000, customer, 2);
    struct rel *o = fx_scan(fx, 3, "orders", 1500000, orders, 4);
    struct rel *l = lineitem(fx);
    struct rel *join = fx_join(fx, fx_join(fx, c, o, NULL), l, NULL);
    struct expr *cond =
        fx_list(fx, EXPR_AND, FX_BOOL, 5,
                fx_cmp(fx, FUNC_EQ, fx_col(fx, "c_mktsegment"), fx_text(fx, "BUILDING")),
                fx_cmp(fx, FUNC_EQ, fx_col(fx, "c_custkey"), fx_col(fx, "o_custkey")),
                fx_cmp(fx, FUNC_EQ, fx_col(fx, "l_orderkey"), fx_col(fx, "o_orderkey")),
                fx_cmp(fx, FUNC_LT, fx_col(fx, "o_orderdate"), fx_date(fx, 9204)),
                fx_cmp(fx, FUNC_GT, fx_col(fx, "l_shipdate"), fx_date(fx, 9204)));
    struct rel *agg = fx_agg(fx, fx_filter(fx, join, cond), 3, fx_col(fx, "l_orderkey"),
                             fx_col(fx, "o_orderdate"), fx_col(fx, "o_shippriority"));
    fx_agg_call(fx, agg, "revenue", AGG_SUM, disc_price(fx), type_decimal(38, 4));
    fx_lower(fx, fx_limit(fx, fx_sort(fx, agg, fx_col(fx, "revenue"), true), 10), true);
    assert_int_equal(fx_count_op(fx, OP_MATCH), 1); /* orders: not known to be unique */
    assert_int_equal(fx_count_op(fx, OP_PROBE), 1); /* customer */
    const struct step *steps = fx->program->blocks[0].steps;
    const struct step *last = &steps[fx->program->blocks[0].step_count - 1];
    assert_int_equal(last->kind, STEP_RESULT);
    assert_int_equal(last->limit, 10);
    assert_int_equal(last[-1].limit, 10);
    fx_close(fx);
}

static void two_column_join_key(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col partsupp[] = {
        {.name = "ps_partkey", .type = BIG, .lo = 1, .hi = 200000, .distinct = 200000},
        {.name = "ps_suppkey", .type = BIG, .lo = 1, .hi = 10000, .distinct = 10000},
        {.name = "ps_supplycost", .type = type_decimal(15, 2), .lo = 100, .hi = 100000}};
    struct rel *l = lineitem(fx);
    struct rel *ps = fx_scan(fx, 5, "partsupp", 800000, partsupp, 3);
    struct expr *cond =
        fx_list(fx, EXPR_AND, FX_BOOL, 2,
                fx_cmp(fx, FUNC_EQ, fx_col(fx, "ps_partkey"), fx_col(fx, "l_partkey")),
                fx_cmp(fx, FUNC_EQ, fx_col(fx, "ps_suppkey"), fx_col(fx, "l_suppkey")));
    struct expr *cost = fx_call(fx, FUNC_MUL, type_decimal(30, 4), fx_col(fx, "ps_supplycost"),
                                fx_col(fx, "l_quantity"));
    struct rel *agg = fx_agg(fx, fx_join(fx, l, ps, cond), 0);
    fx_agg_call(fx, agg, "cost", AGG_SUM, cost, type_decimal(38, 4));
    fx_lower(fx, agg, true);
    assert_string_equal(fx_steps(fx), "PBPPR");
    assert_string_equal(fx_ops(fx, 0),
                        "CONST LOAD I64_I32 LOAD I64_I32 SHL_I64 BITOR_I64 LOAD EMIT");
    fx_close(fx);
}

static void text_join_across_dictionaries(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col t[] = {{.name = "a", .type = TEXT, .lo = 0, .hi = 9, .dict = 1}};
    const struct fx_col u[] = {{.name = "b", .type = TEXT, .lo = 0, .hi = 9, .dict = 1},
                               {.name = "c", .type = TEXT, .lo = 0, .hi = 0}};
    struct rel *left = fx_scan(fx, 1, "t", 1000, t, 1);
    struct rel *right = fx_scan(fx, 2, "u", 100, u, 2);
    struct rel *join =
        fx_join(fx, left, right, fx_cmp(fx, FUNC_EQ, fx_col(fx, "a"), fx_col(fx, "b")));
    fx_lower(fx, fx_project(fx, join, 2, fx_col(fx, "a"), fx_col(fx, "c")), true);
    assert_string_equal(fx_steps(fx), "PPBPPR"); /* table, build side, index, table, probe */
    assert_int_equal(fx_count_op(fx, OP_INTERN), 2);
    assert_int_equal(fx_count_op(fx, OP_MATCH), 1);
    fx_close(fx);
}

static void wide_keys_are_paired(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {
        {.name = "a", .type = BIG, .lo = I64_MIN, .hi = I64_MAX, .nullable = 1},
        {.name = "b", .type = DOUBLE, .lo = -1074, .hi = 1000, .special = 1},
        {.name = "c", .type = TEXT},
        {.name = "d", .type = FX_BOOL, .nullable = 1}};
    struct rel *scan = fx_scan(fx, 1, "t", 1000, cols, COUNT_OF(cols));
    struct rel *agg =
        fx_agg(fx, scan, 4, fx_col(fx, "a"), fx_col(fx, "b"), fx_col(fx, "c"), fx_col(fx, "d"));
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, BIG);
    fx_lower(fx, agg, true);
    assert_int_equal(fx_count_op(fx, OP_INTERN2), 2);
    assert_int_equal(fx_count_op(fx, OP_UNPAIR), 3); /* b is a value that was there, no key */
    assert_int_equal(fx_count_op(fx, OP_INTERN), 1);
    fx_close(fx);
}

static void pairs_give_back_narrow_fields(void **state) {
    (void)state;
    for (b8 special = 0; special < 2; special++) {
        struct fixture *fx = fx_open();
        const struct fx_col cols[] = {
            {.name = "f", .type = DOUBLE, .lo = -1074, .hi = 1000, .special = special},
            {.name = "d", .type = FX_BOOL, .nullable = 1},
            {.name = "r",
             .type = REAL,
             .lo = -149,
             .hi = 1000,
             .nullable = 1,
             .special = special}};
        struct rel *scan = fx_scan(fx, 1, "t", 1000, cols, COUNT_OF(cols));
        fx_lower(fx, fx_agg(fx, scan, 3, fx_col(fx, "f"), fx_col(fx, "d"), fx_col(fx, "r")), true);
        /* floats that may be -0 are values that were there, no keys */
        assert_int_equal(fx_count_op(fx, OP_UNPAIR), special ? 1 : 2);
        assert_int_equal(fx_count_op(fx, OP_SUB_I128), 0);
        fx_close(fx);
    }
}

static void float_sums_are_exact(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *agg = fx_agg(fx, virginian(fx), 0);
    fx_agg_call(fx, agg, "s", AGG_SUM, fx_col(fx, "uniformf"), REAL);
    fx_agg_call(fx, agg, "m", AGG_AVG, fx_col(fx, "uniformf"), DOUBLE);
    fx_agg_call(fx, agg, "x", AGG_MAX, fx_col(fx, "normalf5"), REAL);
    fx_lower(fx, agg, true);
    /* 7 bits above the point, 30 below: two limbs; count; greatest. */
    assert_int_equal(fx_pipe(fx, 0)->sinks[0].word_count, 4);
    assert_int_equal(fx_count_op(fx, OP_FLIMB_F64), 2);
    assert_int_equal(fx_count_op(fx, OP_FROUND), 2);
    fx_close(fx);
}

static void text_extremes(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {
        {.name = "c", .type = TEXT, .lo = 0, .hi = 9, .dict = 1, .nullable = 1},
        {.name = "s", .type = TEXT},
        {.name = "k", .type = INT, .lo = 0, .hi = 9}};
    struct rel *scan = fx_scan(fx, 1, "t", 1000, cols, 3);
    struct rel *agg = fx_agg(fx, scan, 1, fx_col(fx, "k"));
    fx_agg_call(fx, agg, "c_min", AGG_MIN, fx_col(fx, "c"), TEXT);
    fx_lower(fx, agg, true);
    assert_string_equal(fx_steps(fx), "KPPR");
    fx_close(fx);
    fx = fx_open();
    scan = fx_scan(fx, 1, "t", 1000, cols, 3);
    agg = fx_agg(fx, scan, 1, fx_col(fx, "k"));
    fx_agg_call(fx, agg, "s_max", AGG_MAX, fx_col(fx, "s"), TEXT);
    fx_lower(fx, agg, true);
    assert_string_equal(fx_steps(fx), "PKPPR");
    fx_close(fx);
}

static void fusion_off(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = virginian(fx);
    struct rel *filter =
        fx_filter(fx, scan, fx_cmp(fx, FUNC_GT, fx_col(fx, "uniformi"), fx_int(fx, 60)));
    struct rel *agg = fx_agg(fx, filter, 1, fx_col(fx, "normali5"));
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, BIG);
    struct rel *having =
        fx_filter(fx, agg, fx_cmp(fx, FUNC_GT, fx_col(fx, "n"), fx_cast(fx, fx_int(fx, 3), BIG)));
    fx_lower(fx, fx_project(fx, having, 1, fx_col(fx, "n")), false);
    assert_string_equal(fx_steps(fx), "PPPPPR"); /* filter, group, finish, having, project */
    fx_close(fx);
}

static void big_sums_take_two_words(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    const struct fx_col cols[] = {
        {.name = "b", .type = BIG, .lo = I64_MIN, .hi = I64_MAX, .nullable = 1},
        {.name = "d", .type = type_decimal(38, 0), .lo = 0, .hi = 1}};
    struct rel *scan = fx_scan(fx, 1, "t", 1000, cols, 2);
    scan->scan.cols.items[1].range = range_of_type(type_decimal(38, 0));
    struct rel *agg = fx_agg(fx, scan, 0);
    fx_agg_call(fx, agg, "s", AGG_SUM, fx_col(fx, "b"), type_decimal(38, 0));
    fx_lower(fx, agg, true);
    assert_int_equal(fx_pipe(fx, 0)->sinks[0].word_count, 3);
    fx_close(fx);
    fx = fx_open();
    scan = fx_scan(fx, 1, "t", 1000, cols, 2);
    scan->scan.cols.items[1].range = range_of_type(type_decimal(38, 0));
    agg = fx_agg(fx, scan, 0);
    fx_agg_call(fx, agg, "s", AGG_SUM, fx_col(fx, "d"), type_decimal(38, 0));
    fx_agg_call(fx, agg, "a", AGG_AVG, fx_col(fx, "d"), type_decimal(38, 16));
    fx_lower(fx, agg, true);
    assert_int_equal(fx_pipe(fx, 0)->sinks[0].word_count, 5);
    fx_close(fx);
}

static void parameters_are_not_folded(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct type types[1] = {INT};
    fx->plan.param_count = 1;
    fx->plan.param_types = types;
    struct rel *scan = virginian(fx);
    struct expr *param = expr_new(&fx->arena, EXPR_PARAM, INT, -1);
    struct expr *cond = fx_cmp(fx, FUNC_GT, fx_col(fx, "uniformi"), param);
    fx_lower(fx, fx_project(fx, fx_filter(fx, scan, cond), 1, fx_col(fx, "id")), true);
    assert_string_equal(fx_ops(fx, 0), "CONST CONST LOAD GT_I32 ANDN_B8 FILTER LOAD EMIT");
    assert_true(fx->program->param_lits[0] != NO_LIT);
    assert_true(fx->program->param_null_lits[0] != NO_LIT);
    fx_close(fx);
}

static void many_values_are_literals(void **state) {
    (void)state;
    enum { ROWS = 100000 };
    struct fixture *fx = fx_open();
    struct rel *rel = rel_new(&fx->plan, REL_VALUES, NULL, NULL);
    VEC_PUSH(&fx->arena, &rel->out, plan_col_new(&fx->plan, "a", INT, false));
    VEC_PUSH(&fx->arena, &rel->out, plan_col_new(&fx->plan, "b", TEXT, true));
    for (i32 i = 0; i < ROWS; i++) {
        struct expr *neg = fx_call(fx, FUNC_NEG, INT, fx_int(fx, i), NULL);
        VEC_PUSH(&fx->arena, &rel->values.exprs, neg);
        struct expr *text = i % 3 ? fx_text(fx, "x") : fx_null(fx, TEXT);
        VEC_PUSH(&fx->arena, &rel->values.exprs, text);
    }
    struct expr *bad = fx_call(fx, FUNC_DIV, INT, fx_int(fx, 1), fx_int(fx, 0));
    rel->values.exprs.items[10] = bad;
    fx_lower(fx, rel, true);
    const struct var *var = &fx->program->vars[0];
    assert_int_equal(var->const_rows, ROWS - 1);
    assert_int_equal(var->const_lits[1], NO_LIT);
    assert_string_equal(fx_steps(fx), "PPR");
    fx_close(fx);
}

static void nested_limit(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *scan = virginian(fx);
    struct rel *limit = fx_limit(fx, fx_sort(fx, scan, fx_col(fx, "uniformi"), true), 5);
    struct rel *agg = fx_agg(fx, limit, 0);
    fx_agg_call(fx, agg, "s", AGG_SUM, fx_col(fx, "id"), BIG);
    fx_lower(fx, agg, true);
    assert_string_equal(fx_steps(fx), "PSLPPR");
    fx_close(fx);
}

static void live_registers_are_bounded(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *rel = virginian(fx);
    struct expr *big = NULL;
    for (int i = 0; i < 12; i++) {
        const struct fx_col cols[] = {
            {.name = arena_printf(&fx->arena, "k%d", i), .type = INT, .lo = 0, .hi = 1000000},
            {.name = arena_printf(&fx->arena, "v%d", i), .type = INT, .lo = 0, .hi = 100}};
        struct rel *right = fx_scan(fx, (u64)(10 + i), cols[0].name, 1000, cols, 2);
        rel = fx_join(fx, rel, right,
                      fx_cmp(fx, FUNC_EQ, fx_col(fx, "id"), fx_col(fx, cols[0].name)));
        struct expr *v = fx_col(fx, cols[1].name);
        big = big ? fx_call(fx, FUNC_ADD, INT, big, v) : v;
    }
    fx_root(fx, fx_project(fx, rel, 1, big));
    fx_opt(fx, false);
    struct lower_limits limits = {.fusion = true, .max_live = 6};
    fx_check(fx, lower_plan(&fx->plan, &limits, &fx->arena, &fx->program, &fx->err));
    fx_check(fx, program_verify(fx->program, &fx->err));
    assert_true(fx->program->blocks[0].step_count > 12 * 2 + 2);
    i32 cuts = 0;
    for (u32 i = 0; i < fx->program->blocks[0].step_count; i++) {
        const struct step *step = &fx->program->blocks[0].steps[i];
        bool cut = step->kind == STEP_PIPELINE && strstr(step->pipeline->ends, "registers would be alive of at most 6");
        cuts += cut;
        /* As many joins as there is room for, and the first pipeline has more than one. */
        assert_true(!cut || cuts > 1 || strstr(step->label, "Join, Join"));
    }
    assert_true(cuts >= 2);
    fx_close(fx);
}

/* Joins in a row that find several rows each, of so many columns. */
static struct fixture *joined_often(int joins, struct lower_limits limits) {
    struct fixture *fx = fx_open();
    struct rel *rel = virginian(fx);
    struct expr *all = fx_col(fx, "id");
    for (int i = 0; i < joins; i++) {
        const struct fx_col cols[] = {
            {.name = arena_printf(&fx->arena, "k%d", i), .type = INT, .lo = 0, .hi = 1000000},
            {.name = arena_printf(&fx->arena, "v%d", i), .type = INT, .lo = 0, .hi = 100}};
        struct rel *right = fx_scan(fx, (u64)(10 + i), cols[0].name, 1000, cols, 2);
        rel = rel_join(&fx->plan, JOIN_INNER, rel, right);
        struct expr *key = i == 0 ? fx_col(fx, "id") : all;
        struct expr *with = fx_col(fx, cols[0].name);
        VEC_PUSH(&fx->arena, &rel->join.left_keys, key);
        VEC_PUSH(&fx->arena, &rel->join.right_keys, with);
        all = fx_call(fx, FUNC_ADD, INT, all, fx_col(fx, cols[1].name));
    }
    fx_root(fx, fx_project(fx, rel, 1, all));
    fx_check(fx, lower_plan(&fx->plan, &limits, &fx->arena, &fx->program, &fx->err));
    fx_check(fx, program_verify(fx->program, &fx->err));
    return fx;
}

/* How many pipelines end for such a reason; the most MATCHes of one. */
static i32 ends_with(const struct fixture *fx, const char *why, i32 *out_matches) {
    i32 count = 0;
    *out_matches = 0;
    for (u32 i = 0; i < fx->program->blocks[0].step_count; i++) {
        const struct step *step = &fx->program->blocks[0].steps[i];
        i32 matches = 0;
        for (u32 o = 0; step->kind == STEP_PIPELINE && o < step->pipeline->op_count; o++) {
            matches += step->pipeline->ops[o].code == OP_MATCH;
        }
        *out_matches = MAX_OF(*out_matches, matches);
        count += step->kind == STEP_PIPELINE && strstr(step->pipeline->ends, why) != NULL;
    }
    return count;
}

static void cuts_are_where_resources_end(void **state) {
    (void)state;
    i32 matches;
    struct fixture *fx = joined_often(5, (struct lower_limits){.fusion = true});
    assert_int_equal(ends_with(fx, "with the answer", &matches), 1);
    assert_int_equal(ends_with(fx, "Build waits for all rows (kernel)", &matches), 5);
    assert_int_equal(matches, 5);
    fx_close(fx);
    fx = joined_often(5, (struct lower_limits){.fusion = true, .max_matches = 2});
    assert_int_equal(ends_with(fx, "Join (block) would be match 3 of at most 2", &matches), 2);
    assert_int_equal(matches, 2);
    fx_close(fx);
    fx = joined_often(5, (struct lower_limits){.fusion = true, .max_carried = 40});
    assert_true(ends_with(fx, "bytes of shared memory of at most 40", &matches) >= 1);
    assert_true(matches >= 1 && matches < 5);
    fx_close(fx);
    fx = joined_often(2, (struct lower_limits){.fusion = false});
    assert_true(ends_with(fx, "fusion is off", &matches) >= 2);
    fx_close(fx);
}

static void operators_wait(void **state) {
    (void)state;
    struct fixture *fx = joined_often(1, (struct lower_limits){.fusion = true});
    struct rel *join = rel_input(fx->plan.root);
    assert_int_equal(rel_waits(fx->plan.root, 0), WAITS_ELEMENT);
    assert_int_equal(rel_waits(join, 0), WAITS_BLOCK);
    assert_int_equal(rel_waits(join, 1), WAITS_KERNEL);
    join->join.right_unique = 1;
    assert_int_equal(rel_waits(join, 0), WAITS_ELEMENT);
    join->join.right_unique = 0;
    join->join.kind = JOIN_SEMI;
    assert_int_equal(rel_waits(join, 0), WAITS_ELEMENT);
    assert_int_equal(rel_waits(join, 1), WAITS_KERNEL);
    fx_close(fx);
}

static void unused_columns_need_no_opcodes(void **state) {
    (void)state;
    struct fixture *fx = fx_open();
    struct rel *agg = fx_agg(fx, lineitem(fx), 0);
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, BIG);
    fx_lower(fx, agg, true);
    assert_string_equal(fx_ops(fx, 0), "CONST EMIT");
    assert_int_equal(fx_pipe(fx, 0)->source.col_count, 0);
    i32 sizes = 0; /* guards of the table's, all others of columns that nobody reads: no NULLs, no more */
    for (u32 i = 0; i < fx->program->guard_count; i++) {
        const struct guard *guard = &fx->program->guards[i];
        sizes += guard->max_rows > 0;
        assert_true(guard->no_nulls == (guard->max_rows == 0));
        assert_true(!guard->unique && !guard->all_dict);
        assert_true(guard->range.lo == I128_MIN && guard->range.hi == I128_MAX);
    }
    assert_int_equal(sizes, 1);
    assert_true(fx->program->guard_count > 1);
    fx_close(fx);
}

/* Two sums over one table under conditions of their own; how many scans they take. */
static i32 scans_of(u16 left, i64 rows, bool columns) {
    struct fixture *fx = fx_open();
    struct rel *sides[2];
    for (int i = 0; i < 2; i++) {
        const struct fx_col cols[] = {
            {.name = arena_printf(&fx->arena, "a%d", i), .type = INT, .lo = 0, .hi = 99},
            {.name = arena_printf(&fx->arena, "b%d", i), .type = INT, .lo = 0, .hi = 99}};
        struct rel *scan = fx_scan(fx, 1, "t", rows, cols, 2);
        for (i64 c = 0; c < 2 && i && !columns; c++) {
            scan->scan.cols.items[c].table_col = (u32)(2 + c); /* the other half of the table */
        }
        struct expr *a = fx_col(fx, cols[0].name);
        struct expr *b = fx_col(fx, cols[1].name);
        struct rel *filter = fx_filter(fx, scan, fx_cmp(fx, FUNC_LT, b, fx_int(fx, 50)));
        filter->rows = rows / 2;
        struct rel *agg = fx_agg(fx, filter, 0);
        struct expr *arg = i ? a : fx_call(fx, left, INT, a, b); /* the right side is made first */
        fx_agg_call(fx, agg, i ? "s1" : "s0", AGG_SUM, arg, BIG);
        sides[i] = agg;
    }
    fx_root(fx, rel_join(&fx->plan, JOIN_CROSS, sides[0], sides[1]));
    fx_check(fx, fx_try_lower(fx, true));
    i32 scans = 0;
    for (u32 i = 0; i < fx->program->blocks[0].step_count; i++) {
        const struct step *step = &fx->program->blocks[0].steps[i];
        scans += step->kind == STEP_PIPELINE && step->pipeline->source.kind == SOURCE_TABLE;
    }
    fx_close(fx);
    return scans;
}

static void scans_are_shared(void **state) {
    (void)state;
    assert_int_equal(scans_of(FUNC_ADD, 100000, true), 1);
    assert_int_equal(scans_of(FUNC_DIV, 100000, true), 2); /* it may raise, and what is between first */
    assert_int_equal(scans_of(FUNC_ADD, 100000, false), 2);
    assert_int_equal(scans_of(FUNC_ADD, 1, true), 2);
}

/* What a join of a kind becomes: its steps, and how the left side asks the right one. */
static void check_join(enum join_kind kind, bool residual, bool unique, const char *steps,
                       u16 asks, i32 eachs) {
    struct fixture *fx = fx_open();
    const struct fx_col left[] = {{.name = "a", .type = INT, .lo = 0, .hi = 99, .nullable = 1},
                                  {.name = "b", .type = INT, .lo = 0, .hi = 99}};
    const struct fx_col right[] = {{.name = "c", .type = INT, .lo = 0, .hi = 99},
                                   {.name = "d", .type = INT, .lo = 0, .hi = 99}};
    struct rel *l = fx_scan(fx, 1, "l", 100, left, COUNT_OF(left));
    struct rel *r = fx_scan(fx, 2, "r", 100, right, COUNT_OF(right));
    struct rel *join = rel_join(&fx->plan, kind, l, r);
    struct expr *a = fx_col(fx, "a");
    struct expr *c = fx_col(fx, "c");
    VEC_PUSH(&fx->arena, &join->join.left_keys, a);
    VEC_PUSH(&fx->arena, &join->join.right_keys, c);
    join->join.right_unique = unique;
    if (residual) {
        struct expr *cond = fx_cmp(fx, FUNC_LT, fx_col(fx, "b"), fx_col(fx, "d"));
        VEC_PUSH(&fx->arena, &join->join.conds, cond);
    }
    struct expr *b = fx_col(fx, "b");
    fx_root(fx, fx_project(fx, join, 1, b));
    fx_check(fx, fx_try_lower(fx, true)); /* as written: passes would drop some of these */
    assert_string_equal(fx_steps(fx), steps);
    assert_int_equal(fx_count_op(fx, OP_EACH), eachs);
    assert_int_equal(fx_count_op(fx, OP_ANY), eachs);
    assert_true(fx_count_op(fx, asks) > 0);
    fx_close(fx);
}

static void joins_by_kind(void **state) {
    (void)state;
    check_join(JOIN_INNER, false, false, "PBPR", OP_MATCH, 0);
    check_join(JOIN_LEFT, false, true, "PBPR", OP_LOAD, 0); /* nobody reads the right side */
    check_join(JOIN_LEFT, false, false, "PBPR", OP_MATCH, 0);
    check_join(JOIN_LEFT, true, false, "PBPR", OP_MATCH, 1);
    check_join(JOIN_SEMI, false, false, "PBPR", OP_PROBE, 0);
    check_join(JOIN_ANTI, false, false, "PBPR", OP_PROBE, 0);
    check_join(JOIN_ANTI, true, false, "PBPR", OP_EACH, 1);
    check_join(JOIN_MARK, true, false, "PBPR", OP_EACH, 1);
    check_join(JOIN_SINGLE, false, false, "PBPR", OP_PROBE, 0);
    check_join(JOIN_SINGLE, true, false, "PBPR", OP_EACH, 1);
    check_join(JOIN_FULL, false, false, "PBPPPR", OP_MATCH, 0);
}

enum parts_of { PARTS_DIRECT, PARTS_HASHED, PARTS_SET };

/* Rows and keys of both sides of a join, and what a cache holds. */
static void check_parts(i64 left, i64 right, enum parts_of of, i64 near_bytes, i32 partition,
                        const char *steps) {
    struct fixture *fx = fx_open();
    fx->near_bytes = near_bytes;
    fx->partition = partition;
    i64 times = of == PARTS_HASHED ? 1000000007 : 1;
    const struct fx_col l[] = {
        {.name = "a", .type = BIG, .lo = 1, .hi = MAX_OF(left, right) * times, .distinct = left},
        {.name = "b", .type = BIG, .lo = 0, .hi = 99}};
    const struct fx_col r[] = {
        {.name = "c", .type = BIG, .lo = 1, .hi = right * times, .distinct = right, .unique = 1},
        {.name = "d", .type = BIG, .lo = 0, .hi = 99}};
    struct rel *asking = fx_scan(fx, 1, "l", left, l, COUNT_OF(l));
    struct rel *built = fx_scan(fx, 2, "r", right, r, COUNT_OF(r));
    struct rel *input = rel_join(&fx->plan, of == PARTS_SET ? JOIN_SEMI : JOIN_INNER, asking, built);
    struct expr *same = fx_cmp(fx, FUNC_EQ, fx_col(fx, "a"), fx_col(fx, "c"));
    VEC_PUSH(&fx->arena, &input->join.conds, same);
    struct expr *sum = fx_col(fx, "b");
    if (of != PARTS_SET) {
        sum = fx_call(fx, FUNC_ADD, BIG, sum, fx_col(fx, "d"));
    }
    struct rel *agg = fx_agg(fx, input, 0);
    fx_agg_call(fx, agg, "s", AGG_SUM, sum, type_decimal(38, 0));
    fx_lower(fx, agg, true);
    if (strcmp(fx_steps(fx), steps) != 0) {
        fail_msg("%lld with %lld, %d: %s", (long long)left, (long long)right, (int)of, fx_steps(fx));
    }
    fx_close(fx);
}

static void check_groups(i64 rows, i64 groups, i64 times, i64 near_bytes, i32 partition,
                         const char *steps) {
    struct fixture *fx = fx_open();
    fx->near_bytes = near_bytes;
    fx->partition = partition;
    const struct fx_col cols[] = {
        {.name = "a", .type = BIG, .lo = 1, .hi = groups * times, .distinct = groups},
        {.name = "b", .type = BIG, .lo = 0, .hi = 99}};
    struct rel *scan = fx_scan(fx, 1, "l", rows, cols, COUNT_OF(cols));
    struct rel *agg = fx_agg(fx, scan, 1, fx_col(fx, "a"));
    fx_agg_call(fx, agg, "s", AGG_SUM, fx_col(fx, "b"), type_decimal(38, 0));
    fx_agg_call(fx, agg, "n", AGG_COUNT_STAR, NULL, BIG);
    fx_lower(fx, agg, true);
    if (strcmp(fx_steps(fx), steps) != 0) {
        fail_msg("%lld in %lld groups: %s", (long long)rows, (long long)groups, fx_steps(fx));
    }
    fx_close(fx);
}

static void rows_are_split_for_large_tables(void **state) {
    (void)state;
    const i64 large = 100 * 1000 * 1000;
    const i64 cache = 50 * 1000 * 1000;
    check_parts(large, large, PARTS_DIRECT, cache, PARTITION_AUTO, "PXBPXPPR");
    check_parts(large, large, PARTS_DIRECT, cache, PARTITION_OFF, "PBPPR");
    check_parts(large, large, PARTS_DIRECT, 0, PARTITION_AUTO, "PBPPR");
    check_parts(large, large / 2, PARTS_DIRECT, cache, PARTITION_AUTO, "PXBPPR"); /* half find a row */
    check_parts(large, large / 100, PARTS_DIRECT, cache, PARTITION_AUTO, "PBPPR"); /* in the cache */
    check_parts(1000, 100, PARTS_DIRECT, cache, PARTITION_ON, "PXBPXPPR");
    check_parts(large, large, PARTS_HASHED, cache, PARTITION_AUTO, "PBPPR");
    check_parts(large, large, PARTS_HASHED, cache, PARTITION_ON, "PXBPXPPR");
    check_parts(large, large, PARTS_SET, cache, PARTITION_AUTO, "PBPPR");
    check_parts(large, large, PARTS_SET, cache, PARTITION_ON, "PXBPXPPR");
    check_groups(large, large / 10, 1, cache, PARTITION_AUTO, "PXPPR");
    check_groups(large, large / 10, 1, cache, PARTITION_OFF, "PPR");
    check_groups(large, large / 10, 1000000007, cache, PARTITION_AUTO, "PPR"); /* hashed */
    check_groups(large, large, 1, cache, PARTITION_AUTO, "PPR");               /* a row each */
    check_groups(10 * large, large, 1, cache, PARTITION_AUTO, "PPR");          /* too many */
    check_groups(large, large / 100, 1, cache, PARTITION_AUTO, "PPR");
    check_groups(1000, 1000, 1, 0, PARTITION_ON, "PXPPR");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_split_for_large_tables),
        cmocka_unit_test(joins_by_kind),
        cmocka_unit_test(filter_is_minimal),
        cmocka_unit_test(floats_compare_as_reals),
        cmocka_unit_test(arithmetic_by_range),
        cmocka_unit_test(or_of_ranges),
        cmocka_unit_test(overflow_is_checked),
        cmocka_unit_test(nulls_cost_only_where_they_are),
        cmocka_unit_test(coalesce_drops_null),
        cmocka_unit_test(faulting_branch_is_masked),
        cmocka_unit_test(masks_of_nothing_go),
        cmocka_unit_test(loads_in_branches_stay_there),
        cmocka_unit_test(and_masks_its_right_side),
        cmocka_unit_test(folding_never_raises),
        cmocka_unit_test(text_becomes_tables),
        cmocka_unit_test(text_null_handling),
        cmocka_unit_test(q1),
        cmocka_unit_test(q6),
        cmocka_unit_test(q3),
        cmocka_unit_test(two_column_join_key),
        cmocka_unit_test(text_join_across_dictionaries),
        cmocka_unit_test(wide_keys_are_paired),
        cmocka_unit_test(pairs_give_back_narrow_fields),
        cmocka_unit_test(float_sums_are_exact),
        cmocka_unit_test(text_extremes),
        cmocka_unit_test(fusion_off),
        cmocka_unit_test(big_sums_take_two_words),
        cmocka_unit_test(parameters_are_not_folded),
        cmocka_unit_test(many_values_are_literals),
        cmocka_unit_test(nested_limit),
        cmocka_unit_test(live_registers_are_bounded),
        cmocka_unit_test(cuts_are_where_resources_end),
        cmocka_unit_test(operators_wait),
        cmocka_unit_test(scans_are_shared),
        cmocka_unit_test(unused_columns_need_no_opcodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
