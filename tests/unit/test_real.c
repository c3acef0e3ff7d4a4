/* Functions of doubles: stored points within one unit in the last place, results that are exact,
 * operands that are special. All go through op_eval; test_cpu_ops.c compares the vector loops with
 * it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "codes/op.h"
#include "defs/fault.h"
#include "defs/ops.h"
#include "host/eval.h"

struct point {
    u16 code;
    f64 a, b, want;
};

static const struct point points[] = {
#include "real_points.h"
};

static f64 eval(u16 code, f64 a, f64 b, u8 *fault) {
    union lit out;
    union lit la = {.f64 = a};
    union lit lb = {.f64 = b};
    union lit lc = {.i64 = 0};
    *fault = op_eval(code, &out, la, lb, lc, NULL);
    return out.f64;
}

/* Units between two doubles of one sign. */
static i64 distance(f64 a, f64 b) {
    i64 x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    return x > y ? x - y : y - x;
}

static bool in_degrees(u16 code) {
    return code == OP_SIND_F64 || code == OP_COSD_F64 || code == OP_TAND_F64 ||
           code == OP_COTD_F64 || code == OP_ASIND_F64 || code == OP_ACOSD_F64 ||
           code == OP_ATAND_F64;
}

static void test_points(void **state) {
    UNUSED(state);
    for (i64 i = 0; i < COUNT_OF(points); i++) {
        const struct point *p = &points[i];
        u8 fault;
        f64 got = eval(p->code, p->a, p->b, &fault);
        i64 most = in_degrees(p->code) ? 5 : 1; /* those follow PostgreSQL's formulas */
        if (fault || distance(got, p->want) > most) {
            fail_msg("%s of %a, %a: %a, not %a", op_infos[p->code].name, p->a, p->b, got, p->want);
        }
    }
}

static void test_exact(void **state) {
    UNUSED(state);
    static const struct point exact[] = {
        {OP_EXP_F64, 0, 0, 1},
        {OP_LN_F64, 1, 0, 0},
        {OP_LOG_F64, 2, 8, 3},
        {OP_LOG_F64, 10, 1e-5, -5},
        {OP_POWER_F64, 2, 10, 1024},
        {OP_POWER_F64, 2, -1074, 0x1p-1074},
        {OP_POWER_F64, 10, 22, 1e22},
        {OP_POWER_F64, -3, 3, -27},
        {OP_POWER_F64, 0.25, 0.5, 0.5},
        {OP_POWER_F64, 1e300, 1, 1e300},
        {OP_CBRT_F64, -27, 0, -3},
        {OP_CBRT_F64, 0x1p-1074 * 8, 0, 0x1p-357},
        {OP_SQRT_F64, 1e22, 0, 1e11},
        {OP_SIN_F64, 0, 0, 0},
        {OP_COS_F64, 0, 0, 1},
        {OP_ATAN_F64, 1, 0, 0.7853981633974483},
        {OP_ACOS_F64, 1, 0, 0},
        {OP_ACOS_F64, -1, 0, 3.141592653589793},
        {OP_ASIN_F64, 1, 0, 1.5707963267948966},
        {OP_COSH_F64, 0, 0, 1},
        {OP_SIND_F64, 30, 0, 0.5},
        {OP_SIND_F64, 390, 0, 0.5},
        {OP_SIND_F64, -90, 0, -1},
        {OP_SIND_F64, 0x1p1000 * 360, 0, 0},
        {OP_COSD_F64, 60, 0, 0.5},
        {OP_COSD_F64, 90, 0, 0},
        {OP_TAND_F64, 45, 0, 1},
        {OP_TAND_F64, 135, 0, -1},
        {OP_COTD_F64, 225, 0, 1},
        {OP_ASIND_F64, 0.5, 0, 30},
        {OP_ASIND_F64, -1, 0, -90},
        {OP_ACOSD_F64, 0.5, 0, 60},
        {OP_ACOSD_F64, -0.5, 0, 120},
        {OP_ATAND_F64, 1, 0, 45},
        {OP_ATAN2D_F64, 1, -1, 135},
        {OP_ATAN2D_F64, 0, -1, 180},
        {OP_SINH_F64, 0, 0, 0},
        {OP_TANH_F64, 30, 0, 1},
        {OP_ACOSH_F64, 1, 0, 0},
        {OP_FLOOR_F64, -0.5, 0, -1},
        {OP_CEIL_F64, 0.5, 0, 1},
        {OP_TRUNC_F64, -1.5, 0, -1},
        {OP_ROUND_F64, 2.5, 0, 2},
        {OP_ROUND_F64, 0x1p53 + 2, 0, 0x1p53 + 2},
    };
    u8 fault;
    for (i64 i = 0; i < COUNT_OF(exact); i++) {
        f64 got = eval(exact[i].code, exact[i].a, exact[i].b, &fault);
        if (fault || got != exact[i].want) {
            fail_msg("%s of %a, %a: %a, not %a", op_infos[exact[i].code].name, exact[i].a,
                     exact[i].b, got, exact[i].want);
        }
    }
    f64 power = 1;
    for (i32 n = 0; n <= 22; n++, power *= 10) {
        assert_true(eval(OP_LOG10_F64, power, 0, &fault) == n);
        assert_true(eval(OP_POWER_F64, 10, n, &fault) == power);
    }
    for (i32 n = 1; n < 5000; n++) {
        f64 x = n;
        assert_true(eval(OP_CBRT_F64, x * x * x, 0, &fault) == x);
        assert_true(eval(OP_POWER_F64, x * x, 0.5, &fault) == x);
        assert_true(eval(OP_POWER_F64, x, 3, &fault) == x * x * x);
    }
}

struct special {
    u16 code;
    f64 a, b, want; /* NaN: any */
    u8 fault;
};

static const struct special list[] = {
    {OP_EXP_F64, -INFINITY, 0, 0, 0},
    {OP_EXP_F64, INFINITY, 0, INFINITY, 0},
    {OP_EXP_F64, NAN, 0, NAN, 0},
    {OP_EXP_F64, 710, 0, 0, FAULT_FLOAT_OVERFLOW},
    {OP_EXP_F64, 1e300, 0, 0, FAULT_FLOAT_OVERFLOW},
    {OP_EXP_F64, -746, 0, 0, FAULT_FLOAT_UNDERFLOW},
    {OP_EXP_F64, -1e9, 0, 0, FAULT_FLOAT_UNDERFLOW},
    {OP_EXP_F64, -745, 0, 0x1p-1074, 0},
    {OP_LN_F64, 0, 0, 0, FAULT_LOG_ZERO},
    {OP_LN_F64, -1, 0, 0, FAULT_LOG_NEGATIVE},
    {OP_LN_F64, INFINITY, 0, INFINITY, 0},
    {OP_LN_F64, NAN, 0, NAN, 0},
    {OP_LOG_F64, 1, 5, 0, FAULT_DIV0},
    {OP_POWER_F64, 0, -1, 0, FAULT_POWER_ZERO},
    {OP_POWER_F64, -1, 0.5, 0, FAULT_POWER_COMPLEX},
    {OP_POWER_F64, 10, 400, 0, FAULT_FLOAT_OVERFLOW},
    {OP_POWER_F64, 10, -400, 0, FAULT_FLOAT_UNDERFLOW},
    {OP_POWER_F64, 0, 0, 1, 0},
    {OP_POWER_F64, NAN, 0, 1, 0},
    {OP_POWER_F64, 1, NAN, 1, 0},
    {OP_POWER_F64, NAN, 1, NAN, 0},
    {OP_POWER_F64, -1, INFINITY, 1, 0},
    {OP_POWER_F64, 0.5, INFINITY, 0, 0},
    {OP_POWER_F64, 0.5, -INFINITY, INFINITY, 0},
    {OP_POWER_F64, -INFINITY, 3, -INFINITY, 0},
    {OP_POWER_F64, -INFINITY, -3, -0.0, 0},
    {OP_POWER_F64, -0.0, 3, -0.0, 0},
    {OP_POWER_F64, INFINITY, 0.5, INFINITY, 0},
    {OP_SQRT_F64, -1, 0, 0, FAULT_SQRT},
    {OP_CBRT_F64, -INFINITY, 0, -INFINITY, 0},
    {OP_SIN_F64, INFINITY, 0, 0, FAULT_INPUT_RANGE},
    {OP_SIN_F64, NAN, 0, NAN, 0},
    {OP_SIN_F64, -0.0, 0, -0.0, 0},
    {OP_SIN_F64, 1e300, 0, -0.8178819121159085, 0},
    {OP_COS_F64, 0x1.921fb54442d18p0, 0, 6.123233995736766e-17, 0},
    {OP_TAN_F64, 1e22, 0, -1.6287782256068988, 0},
    {OP_COT_F64, 0, 0, INFINITY, 0},
    {OP_COT_F64, -0.0, 0, -INFINITY, 0},
    {OP_ASIN_F64, 1.5, 0, 0, FAULT_INPUT_RANGE},
    {OP_ACOS_F64, NAN, 0, NAN, 0},
    {OP_ATAN_F64, -INFINITY, 0, -1.5707963267948966, 0},
    {OP_ATAN2_F64, 0, 0, 0, 0},
    {OP_ATAN2_F64, -0.0, -0.0, -3.141592653589793, 0},
    {OP_ATAN2_F64, INFINITY, -INFINITY, 2.356194490192345, 0},
    {OP_ATAN2_F64, 1, INFINITY, 0, 0},
    {OP_ATAN2_F64, -1, 0, -1.5707963267948966, 0},
    {OP_ATAN2_F64, 0x1p-1074, 0x1p1023, 0, 0},
    {OP_ATAN2_F64, 0x1p-1074, 0x1p-1074, 0.7853981633974483, 0},
    {OP_ATAN2_F64, NAN, 1, NAN, 0},
    {OP_SINH_F64, 1000, 0, INFINITY, 0},
    {OP_SINH_F64, 0x1p-1074, 0, 0x1p-1074, 0},
    {OP_COSH_F64, -INFINITY, 0, INFINITY, 0},
    {OP_TANH_F64, -INFINITY, 0, -1, 0},
    {OP_ASINH_F64, 1e308, 0, 709.889355822726, 0},
    {OP_ACOSH_F64, 0.5, 0, 0, FAULT_INPUT_RANGE},
    {OP_ATANH_F64, -1, 0, -INFINITY, 0},
    {OP_ATANH_F64, 2, 0, 0, FAULT_INPUT_RANGE},
    {OP_SIND_F64, -INFINITY, 0, 0, FAULT_INPUT_RANGE},
    {OP_DEGREES_F64, 1e308, 0, 0, FAULT_FLOAT_OVERFLOW},
    {OP_FLOOR_F64, NAN, 0, NAN, 0},
    {OP_TRUNC_F64, NAN, 0, NAN, 0},
    {OP_SIGN_F64, NAN, 0, 0, 0},
};

static void test_special(void **state) {
    UNUSED(state);
    for (i64 i = 0; i < COUNT_OF(list); i++) {
        const struct special *s = &list[i];
        u8 fault;
        f64 got = eval(s->code, s->a, s->b, &fault);
        bool same = fault || (s->want != s->want ? got != got : distance(got, s->want) <= 1);
        if (fault != s->fault || !same) {
            fail_msg("%s of %a, %a: %a with fault %d, not %a with %d", op_infos[s->code].name, s->a,
                     s->b, got, fault, s->want, s->fault);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_points), cmocka_unit_test(test_exact),
                                       cmocka_unit_test(test_special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
