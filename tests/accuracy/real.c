/* real.c: how far the functions of fn_real.h are from the truth, in units in the last place,
 * against the 113 binary digits of libquadmath.
 *
 *   accuracy [ROWS]      one line a function: largest error, where, how many results are not the nearest double
 *   accuracy --points    the points that tests/unit/test_real.c checks, as tests/unit/real_points.h
 *
 * Ranges are those where something may go wrong: around 0 and 1, large, below the least normal
 * number, any bits. */
#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>

#include "defs/host_words.h"
#include "defs/fn_float.h"
#include "defs/real_table.h"
#include "defs/fn_real.h"

typedef __float128 f128;

struct span {
    f64 lo, hi; /* equal: any bits */
};
struct subject {
    const char *name, *op;
    f64 (*ours)(f64 a, f64 b, u8 *f);
    f128 (*truth)(f128 a, f128 b);
    struct span a[6], b; /* a's end at the first that is 1 to 0 */
};

#define TURN(x) (fmodq(x, 360) * M_PIq / 180)
#define SUBJECTS(X)                                                                              \
    X(SQRT, fn_sqrt(a, f), sqrtq(x), {0, 10}, {0, 0})                                            \
    X(CBRT, fn_cbrt(a), cbrtq(x), {1, 8}, {-1e3, 1e3}, {0, 1e-308}, {0, 0})                      \
    X(EXP, fn_exp(a, f), expq(x), {-745, 709.7}, {-1, 1}, {-1e-3, 1e-3}, {-745.2, -708}, {0, 0}) \
    X(LN, fn_ln(a, f), logq(x), {0.9, 1.1}, {0.99, 1.01}, {0, 1e3}, {0, 1e-308}, {0, 0})         \
    X(LOG10, fn_log10(a, f), log10q(x), {0.9, 1.1}, {0.99, 1.01}, {0, 1e3}, {0, 1e-308}, {0, 0}) \
    X(SIN, fn_sin(a, f), sinq(x), {-0.1, 0.1}, {-10, 10}, {-1e6, 1e6}, {-1e9, 1e9}, {0, 0})      \
    X(COS, fn_cos(a, f), cosq(x), {-0.1, 0.1}, {-10, 10}, {-1e6, 1e6}, {-1e9, 1e9}, {0, 0})      \
    X(TAN, fn_tan(a, f), tanq(x), {-0.1, 0.1}, {-10, 10}, {-1e6, 1e6}, {-1e9, 1e9}, {0, 0})      \
    X(COT, fn_cot(a, f), 1 / tanq(x), {-0.1, 0.1}, {-10, 10}, {-1e6, 1e6}, {-1e9, 1e9}, {0, 0})  \
    X(ASIN, fn_asin(a, f), asinq(x), {-1, 1}, {0.99, 1}, {-1e-3, 1e-3}, {0, 0})                  \
    X(ACOS, fn_acos(a, f), acosq(x), {-1, 1}, {0.99, 1}, {-1e-3, 1e-3}, {0, 0})                  \
    X(ATAN, fn_atan(a), atanq(x), {-1, 1}, {-10, 10}, {-1e-3, 1e-3}, {-1e20, 1e20}, {0, 0})      \
    X(SINH, fn_sinh(a, f), sinhq(x), {-1, 1}, {-0.1, 0.1}, {-10, 10}, {-711, 711}, {0, 0})       \
    X(COSH, fn_cosh(a, f), coshq(x), {-1, 1}, {-0.1, 0.1}, {-10, 10}, {-711, 711}, {0, 0})       \
    X(TANH, fn_tanh(a), tanhq(x), {-1, 1}, {-0.1, 0.1}, {-25, 25}, {0, 0})                       \
    X(ASINH, fn_asinh(a), asinhq(x), {-1, 1}, {-0.1, 0.1}, {-10, 10}, {-1e10, 1e10}, {0, 0})     \
    X(ACOSH, fn_acosh(a, f), acoshq(x), {1, 2}, {1, 1.001}, {1, 1000}, {1, 1e10}, {0, 0})        \
    X(ATANH, fn_atanh(a, f), atanhq(x), {-1, 1}, {-0.1, 0.1}, {0.99, 1}, {-0.01, 0.01}, {0, 0})  \
    X(SIND, fn_sind(a, f), sinq(TURN(x)), {-89, 89}, {-1e3, 1e3})                                \
    X(COSD, fn_cosd(a, f), cosq(TURN(x)), {-89, 89}, {-1e3, 1e3})                                \
    X(TAND, fn_tand(a, f), tanq(TURN(x)), {-89, 89}, {-1e3, 1e3})                                \
    X(COTD, fn_cotd(a, f), 1 / tanq(TURN(x)), {1, 89}, {-1e3, 1e3})                              \
    X(ASIND, fn_asind(a, f), asinq(x) * 180 / M_PIq, {-1, 1})                                    \
    X(ACOSD, fn_acosd(a, f), acosq(x) * 180 / M_PIq, {-1, 1})                                    \
    X(ATAND, fn_atand(a), atanq(x) * 180 / M_PIq, {-1, 1}, {-100, 100})                          \
    X(DEGREES, fn_degrees(a, f), x * 180 / M_PIq, {-7, 7}, {-1e3, 1e3}, {0, 0})                  \
    X(RADIANS, fn_radians(a), x * M_PIq / 180, {-360, 360}, {-1e3, 1e3}, {0, 0})                 \
    X(LOG, fn_log(a, b, f), logq(y) / logq(x), {0.5, 2}, {1.5, 20}, {0, 0})                      \
    X(ATAN2, fn_atan2(a, b), atan2q(x, y), {-1, 1}, {-1e-10, 1}, {-1e300, 1e300}, {0, 0})        \
    X(POWER, fn_power(a, b, f), powq(x, y), {0.5, 2}, {0.9, 1.1}, {0, 100}, {0, 1e300}, {0, 0})

#define X(name, call, truth, ...)                 \
    static f64 ours_##name(f64 a, f64 b, u8 *f) { \
        UNUSED_WORD(b);                           \
        UNUSED_WORD(f);                           \
        return call;                              \
    }                                             \
    static f128 truth_##name(f128 x, f128 y) {    \
        UNUSED_WORD(y);                           \
        return truth;                             \
    }
SUBJECTS(X)
#undef X

static const struct subject subjects[] = {
#define X(name, call, truth, ...) \
    {#name, "OP_" #name "_F64", ours_##name, truth_##name, {__VA_ARGS__, {1, 0}}, {-40, 40}},
    SUBJECTS(X)
#undef X
};

static u64 state = 88172645463325252ULL;

static u64 next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 2685821657736338717ULL;
}

static f64 draw(struct span s) {
    f64 x;
    do {
        x = s.lo == s.hi ? bits_f64(next())
                         : s.lo + (s.hi - s.lo) * ((f64)(next() >> 11) * 0x1p-53);
    } while (!fn_finite(x));
    return x;
}

static f64 unit_of(f64 r) {
    int e;
    (void)frexp(r, &e);
    return fabs(r) < 0x1p-1022 ? 0x1p-1074 : ldexp(1, e - 53);
}

/* In units of the last place; less than 0 where the truth is no finite double. */
static f64 error_of(f64 y, f128 truth) {
    f64 r = (f64)truth;
    if (!fn_finite(r)) {
        return -1;
    }
    return fn_finite(y) ? (f64)(fabsq((f128)y - truth) / (f128)unit_of(r)) : 1e30;
}

static void judge(const struct subject *s, long rows, bool points) {
    f64 worst = 0, at[2] = {0, 0};
    long off = 0, count = 0, shown = 0;
    for (i32 g = 0; s->a[g].lo <= s->a[g].hi; g++) {
        for (long i = 0; i < rows; i++) {
            u8 fault = 0;
            f64 a = draw(s->a[g]);
            f64 b = draw(s->a[g].lo == s->a[g].hi && i % 2 ? s->a[g] : s->b);
            f64 y = s->ours(a, b, &fault);
            f128 truth = s->truth(a, b);
            f64 error = fault ? -1 : error_of(y, truth);
            count += error >= 0;
            off += error > 0.5;
            if (error > worst) {
                worst = error;
                at[0] = a;
                at[1] = b;
            }
            if (points && error >= 0 && (error > 0.4999 || i < 6) && shown < 40) {
                shown++;
                printf("    {%s, %a, %a, %a},\n", s->op, a, b, (f64)truth);
            }
        }
    }
    if (!points) {
        printf("%-6s %.4f at %a, %a; %.3f %% of %ld not the nearest\n", s->name, worst, at[0],
               at[1], 100.0 * (f64)off / (f64)count, count);
    }
}

int main(int argc, char **argv) {
    bool points = argc > 1 && strcmp(argv[1], "--points") == 0;
    long rows = points ? 2000 : argc > 1 ? atol(argv[1]) : 200000;
    if (points) {
        printf("/* real_points.h: operands and nearest doubles; made by `build/accuracy --points`. "
               "Many lie close to\n"
               " * the middle of two doubles. */\n");
    }
    for (i32 i = 0; i < COUNT_OF(subjects); i++) {
        judge(&subjects[i], rows, points);
    }
    return 0;
}
