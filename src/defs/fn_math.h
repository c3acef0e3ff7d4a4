/* fn_math.h: roots, exponentials, logarithms, angles. Kernel text (see fn_int.h).
 *
 * Everything is computed with pairs of doubles (about 105 bits) and rounded once, so results are
 * the nearest double except where the true value lies within 2^-40 of a unit in the last place of a
 * tie, and the same on every device: only +, -, *, / and the square root of IEEE 754 are used. A
 * call costs a few hundred operations; a body per function with a polynomial of its own would be
 * five times faster and off by one in a few results of a hundred. Faults as in PostgreSQL. */
#ifndef WF_DEFS_FN_MATH_H
#define WF_DEFS_FN_MATH_H

typedef struct fn_dd {
    f64 hi;
    f64 lo;
} fn_dd;

CONST_TABLE f64 fn_inverse_factorial[29][2] = {
    {1.0, 0.0},
    {1.0, 0.0},
    {0.5, 0.0},
    {0.16666666666666666, 9.25185853854297e-18},
    {0.041666666666666664, 2.3129646346357427e-18},
    {0.008333333333333333, 1.1564823173178714e-19},
    {0.001388888888888889, -5.300543954373577e-20},
    {0.0001984126984126984, 1.7209558293420705e-22},
    {2.48015873015873e-05, 2.1511947866775882e-23},
    {2.7557319223985893e-06, -1.858393274046472e-22},
    {2.755731922398589e-07, 2.3767714622250297e-23},
    {2.505210838544172e-08, -1.448814070935912e-24},
    {2.08767569878681e-09, -1.20734505911326e-25},
    {1.6059043836821613e-10, 1.2585294588752098e-26},
    {1.1470745597729725e-11, 2.0655512752830745e-28},
    {7.647163731819816e-13, 7.03872877733453e-30},
    {4.779477332387385e-14, 4.399205485834081e-31},
    {2.8114572543455206e-15, 1.6508842730861433e-31},
    {1.5619206968586225e-16, 1.1910679660273754e-32},
    {8.22063524662433e-18, 2.2141894119604265e-34},
    {4.110317623312165e-19, 1.4412973378659527e-36},
    {1.9572941063391263e-20, -1.3643503830087908e-36},
    {8.896791392450574e-22, -7.911402614872376e-38},
    {3.868170170630684e-23, -8.843177655482344e-40},
    {1.6117375710961184e-24, -3.6846573564509766e-41},
    {6.446950284384474e-26, -1.9330404233703465e-42},
    {2.4795962632247976e-27, -1.2953730964765229e-43},
    {9.183689863795546e-29, 1.4303150396787322e-45},
    {3.279889237069838e-30, 1.5117542744029879e-46},
};

CONST_TABLE f64 fn_half_pi[4] = {
    1.5707963267948966,
    6.123233995736766e-17,
    -1.4973849048591698e-33,
    5.562271104316826e-50,
};

/* 2 / pi in 32-bit digits, enough for the largest double. */
CONST_TABLE u32 fn_two_over_pi[42] = {
    0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
    0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu,
    0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
    0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u,
    0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du, 0xa9e39161u, 0x5ee61b08u,
};

#define FN_LN2_HI 0.6931471805599453
#define FN_LN2_LO 2.3190468138462996e-17
#define FN_LN10_HI 2.302585092994046
#define FN_LN10_LO -2.1707562233822494e-16
#define FN_PI_HI 3.141592653589793
#define FN_PI_LO 1.2246467991473532e-16

/* pairs */

FN fn_dd fn_dd_of(f64 a) {
    fn_dd r;
    r.hi = a;
    r.lo = 0.0;
    return r;
}

FN fn_dd fn_dd_pair(f64 hi, f64 lo) { /* |hi| >= |lo| */
    fn_dd r;
    r.hi = hi + lo;
    r.lo = lo - (r.hi - hi);
    return r;
}

FN fn_dd fn_dd_sum(f64 a, f64 b) { /* exact */
    fn_dd r;
    r.hi = a + b;
    f64 part = r.hi - a;
    r.lo = (a - (r.hi - part)) + (b - part);
    return r;
}

FN fn_dd fn_dd_product(f64 a, f64 b) { /* exact, by halves of 26 bits */
    f64 ca = 134217729.0 * a;
    f64 cb = 134217729.0 * b;
    f64 ah = ca - (ca - a);
    f64 bh = cb - (cb - b);
    f64 al = a - ah;
    f64 bl = b - bh;
    fn_dd r;
    r.hi = a * b;
    r.lo = ((ah * bh - r.hi) + ah * bl + al * bh) + al * bl;
    return r;
}

FN fn_dd fn_dd_add(fn_dd a, fn_dd b) {
    fn_dd s = fn_dd_sum(a.hi, b.hi);
    fn_dd t = fn_dd_sum(a.lo, b.lo);
    s = fn_dd_pair(s.hi, s.lo + t.hi);
    return fn_dd_pair(s.hi, s.lo + t.lo);
}

FN fn_dd fn_dd_neg(fn_dd a) {
    fn_dd r;
    r.hi = -a.hi;
    r.lo = -a.lo;
    return r;
}

FN fn_dd fn_dd_mul(fn_dd a, fn_dd b) {
    fn_dd p = fn_dd_product(a.hi, b.hi);
    return fn_dd_pair(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

FN fn_dd fn_dd_scale(fn_dd a, f64 b) { /* b a power of two */
    fn_dd r;
    r.hi = a.hi * b;
    r.lo = a.lo * b;
    return r;
}

FN_SLOW fn_dd fn_dd_div(fn_dd a, fn_dd b) {
    f64 q1 = a.hi / b.hi;
    fn_dd r = fn_dd_add(a, fn_dd_neg(fn_dd_mul(b, fn_dd_of(q1))));
    f64 q2 = r.hi / b.hi;
    r = fn_dd_add(r, fn_dd_neg(fn_dd_mul(b, fn_dd_of(q2))));
    f64 q3 = r.hi / b.hi;
    fn_dd q = fn_dd_pair(q1, q2);
    return fn_dd_add(q, fn_dd_of(q3));
}

FN fn_dd fn_dd_sqrt(fn_dd a) {
    f64 root = sqrt_f64(a.hi);
    f64 safe = root == 0.0 ? 1.0 : root;
    fn_dd rest = fn_dd_add(a, fn_dd_neg(fn_dd_product(root, root)));
    return fn_dd_pair(root, rest.hi / (2.0 * safe));
}

/* whole numbers */

FN f64 fn_rint(f64 a) {
    f64 big = a < 0 ? -4503599627370496.0 : 4503599627370496.0;
    f64 r = (a + big) - big;
    b8 small = (b8)((a < 4503599627370496.0) & (a > -4503599627370496.0));
    return small ? (r == 0.0 ? (a < 0 ? -0.0 : a == 0.0 ? a : 0.0) : r) : a;
}

FN f64 fn_floor(f64 a) {
    f64 r = fn_rint(a);
    return r > a ? r - 1.0 : r;
}

FN f64 fn_trunc(f64 a) {
    return a < 0 ? -fn_floor(-a) : fn_floor(a);
}

FN f64 fn_sign(f64 a) {
    return a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0; /* of NaN too, as in PostgreSQL */
}

FN f64 fn_power_of_two(i32 n) { /* -1022 to 1023 */
    return bits_f64((u64)(n + 1023) << 52);
}

FN f64 fn_ldexp(f64 a, i32 n) {
    i32 half = n / 2;
    i32 limited = half < -1000 ? -1000 : half > 1000 ? 1000 : half;
    i32 rest = n - limited;
    rest = rest < -1022 ? -1022 : rest > 1023 ? 1023 : rest;
    return a * fn_power_of_two(limited) * fn_power_of_two(rest);
}

/* exponentials and logarithms */

/* e^a - 1 for |a| <= 0.4, with all its digits. */
FN_SLOW fn_dd fn_expm1_dd(fn_dd a) {
    fn_dd r = fn_dd_scale(a, 1.0 / 512.0);
    fn_dd sum = fn_dd_of(0.0);
    for (i32 n = 9; n > 0; n--) {
        fn_dd c;
        c.hi = fn_inverse_factorial[n][0];
        c.lo = fn_inverse_factorial[n][1];
        sum = fn_dd_mul(fn_dd_add(sum, c), r);
    }
    for (i32 i = 0; i < 9; i++) { /* (1 + s)^2 - 1 = 2 s + s^2 */
        sum = fn_dd_add(fn_dd_scale(sum, 2.0), fn_dd_mul(sum, sum));
    }
    return sum;
}

/* e^a = r * 2^n, for |a| < 2000. */
FN_SLOW fn_dd fn_exp_dd(fn_dd a, i32 *n) {
    f64 k = fn_rint(a.hi / FN_LN2_HI);
    fn_dd part = fn_dd_product(k, FN_LN2_HI);
    fn_dd low = fn_dd_product(k, FN_LN2_LO);
    fn_dd r = fn_dd_add(fn_dd_add(a, fn_dd_neg(part)), fn_dd_neg(low));
    *n = (i32)k;
    return fn_dd_add(fn_expm1_dd(r), fn_dd_of(1.0));
}

/* ln(a) for finite a > 0 */
FN_SLOW fn_dd fn_ln_dd(fn_dd a) {
    b8 tiny = (b8)(a.hi < 2.2250738585072014e-308);
    fn_dd m = tiny ? fn_dd_scale(a, 18014398509481984.0) : a;
    i32 e = (i32)(f64_bits(m.hi) >> 52 & 2047) - 1023;
    f64 fraction = bits_f64((f64_bits(m.hi) & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
    e += fraction > 1.4142135623730951 ? 1 : 0;
    m.hi = fn_ldexp(m.hi, -e);
    m.lo = fn_ldexp(m.lo, -e);
    e -= tiny ? 54 : 0;
    fn_dd minus = fn_dd_add(m, fn_dd_of(-1.0));
    fn_dd f = fn_dd_div(minus, fn_dd_add(m, fn_dd_of(1.0)));
    fn_dd y;
    if ((f.hi < 0.01) & (f.hi > -0.01)) { /* 2 (f + f^3/3 + f^5/5 + ...) */
        fn_dd square = fn_dd_mul(f, f);
        y = fn_dd_of(0.0);
        for (i32 n = 17; n > 0; n -= 2) {
            y = fn_dd_mul(y, square);
            y = fn_dd_add(y, fn_dd_div(fn_dd_of(1.0), fn_dd_of((f64)n)));
        }
        y = fn_dd_scale(fn_dd_mul(y, f), 2.0);
    } else {
        f64 square = f.hi * f.hi;
        f64 start = 0.0;
        for (i32 n = 23; n > 0; n -= 2) {
            start = start * square + 1.0 / (f64)n;
        }
        start = 2.0 * f.hi * start;
        i32 scale;
        fn_dd power = fn_exp_dd(fn_dd_of(-start), &scale);
        fn_dd t = fn_dd_mul(m, fn_dd_scale(power, fn_power_of_two(scale)));
        t = fn_dd_add(t, fn_dd_of(-1.0)); /* m / e^start - 1: the rest to add */
        y = fn_dd_add(fn_dd_of(start), fn_dd_add(t, fn_dd_scale(fn_dd_mul(t, t), -0.5)));
    }
    fn_dd ln2;
    ln2.hi = FN_LN2_HI;
    ln2.lo = FN_LN2_LO;
    return fn_dd_add(fn_dd_mul(ln2, fn_dd_of((f64)e)), y);
}

FN b8 fn_finite(f64 a) {
    return (b8)((a <= 1.7976931348623157e308) & (a >= -1.7976931348623157e308));
}

FN f64 fn_infinity(void) {
    return bits_f64(0x7ff0000000000000ULL);
}

/* r * 2^n as a double, with PostgreSQL's errors for results that do not fit. */
FN f64 fn_exp_done(fn_dd r, i32 n, u8 *f) {
    f64 value = fn_ldexp(r.hi, n);
    *f = (u8)(fn_finite(value) ? *f : FAULT_FLOAT_OVERFLOW);
    *f = (u8)(value == 0.0 ? FAULT_FLOAT_UNDERFLOW : *f);
    return value;
}

FN_SLOW f64 fn_exp(f64 a, u8 *f) {
    i32 n;
    if (!fn_finite(a)) {
        return a < 0 ? 0.0 : a;
    }
    if ((a > 800.0) | (a < -800.0)) {
        *f = a > 0 ? FAULT_FLOAT_OVERFLOW : FAULT_FLOAT_UNDERFLOW;
        return 0.0;
    }
    fn_dd r = fn_exp_dd(fn_dd_of(a), &n);
    return fn_exp_done(r, n, f);
}

FN b8 fn_log_bad(f64 a, u8 *f) {
    *f = (u8)(a == 0.0 ? FAULT_LOG_ZERO : a < 0 ? FAULT_LOG_NEGATIVE : *f);
    return (b8)((a <= 0) | (a != a) | !fn_finite(a));
}

FN_SLOW f64 fn_ln(f64 a, u8 *f) {
    return fn_log_bad(a, f) ? (a > 0 || a != a ? a : 0.0) : fn_ln_dd(fn_dd_of(a)).hi;
}

FN_SLOW f64 fn_log10(f64 a, u8 *f) {
    fn_dd ln10;
    ln10.hi = FN_LN10_HI;
    ln10.lo = FN_LN10_LO;
    return fn_log_bad(a, f) ? (a > 0 || a != a ? a : 0.0)
                            : fn_dd_div(fn_ln_dd(fn_dd_of(a)), ln10).hi;
}

FN_SLOW f64 fn_log(f64 base, f64 a, u8 *f) {
    if (fn_log_bad(base, f) | fn_log_bad(a, f)) {
        return (base != base || a != a) ? base + a : 0.0;
    }
    fn_dd divisor = fn_ln_dd(fn_dd_of(base));
    if (divisor.hi == 0.0) {
        *f = FAULT_DIV0;
        return 0.0;
    }
    return fn_dd_div(fn_ln_dd(fn_dd_of(a)), divisor).hi;
}

FN f64 fn_sqrt(f64 a, u8 *f) {
    *f = (u8)(a < 0 ? FAULT_SQRT : *f);
    return a < 0 ? 0.0 : sqrt_f64(a);
}

FN_SLOW f64 fn_cbrt(f64 a) {
    if ((a == 0.0) | (a != a) | !fn_finite(a)) {
        return a;
    }
    i32 n;
    fn_dd third = fn_dd_div(fn_ln_dd(fn_dd_of(a < 0 ? -a : a)), fn_dd_of(3.0));
    fn_dd r = fn_exp_dd(third, &n);
    f64 root = fn_ldexp(r.hi, n);
    return a < 0 ? -root : root;
}

/* Powers whose operands are not all finite, or 0 or 1. */
FN_SLOW f64 fn_power_special(f64 a, f64 b, b8 odd) {
    f64 size = a < 0 ? -a : a;
    if ((a == 1.0) | (b == 0.0)) {
        return 1.0;
    }
    if ((a != a) | (b != b)) {
        return a + b;
    }
    if (!fn_finite(b)) {
        return size == 1.0 ? 1.0 : (size > 1.0) == (b > 0) ? fn_infinity() : 0.0;
    }
    f64 r = (size != 0.0) == (b > 0) ? fn_infinity() : 0.0;
    return odd && (a < 0) ? -r : r;
}

FN_SLOW f64 fn_power(f64 a, f64 b, u8 *f) {
    b8 whole = (b8)(fn_rint(b) == b);
    b8 odd = (b8)(whole && fn_rint(b * 0.5) != b * 0.5);
    if ((a == 0.0) & (b < 0)) {
        *f = FAULT_POWER_ZERO;
        return 0.0;
    }
    if ((a < 0) & !whole & fn_finite(b)) {
        *f = FAULT_POWER_COMPLEX;
        return 0.0;
    }
    if (a == 0.0 || a == 1.0 || b == 0.0 || !fn_finite(a) || !fn_finite(b)) {
        return fn_power_special(a, b, odd);
    }
    fn_dd exponent = fn_dd_mul(fn_ln_dd(fn_dd_of(a < 0 ? -a : a)), fn_dd_of(b));
    if ((exponent.hi > 800.0) | (exponent.hi < -800.0) | (exponent.hi != exponent.hi)) {
        *f = (exponent.hi < 0) ? FAULT_FLOAT_UNDERFLOW : FAULT_FLOAT_OVERFLOW;
        return 0.0;
    }
    i32 n;
    fn_dd r = fn_exp_dd(exponent, &n);
    f64 value = fn_exp_done(r, n, f);
    return odd && (a < 0) ? -value : value;
}

/* angles */

/* a = r + quadrant * pi / 2 for |a| >= 2^30: a / (pi / 2) from the digits that matter. */
FN_SLOW fn_dd fn_reduce_large(f64 a, i32 *quadrant) {
    u64 bits = f64_bits(a);
    i32 e = (i32)(bits >> 52 & 2047) - 1075; /* a = m * 2^e */
    u64 m = (bits & 0xfffffffffffffULL) | 1ULL << 52;
    i32 first = e > 34 ? (e - 2) / 32 - 1 : 0; /* digits before it give multiples of 4 */
    u32 product[10];
    u64 low = m & 0xffffffffULL;
    u64 high = m >> 32;
    for (i32 i = 0; i < 10; i++) {
        product[i] = 0;
    }
    for (i32 i = 7; i >= 0; i--) { /* product[0] is the least digit */
        i32 at = 7 - i;
        u64 digit = first + i < 42 ? fn_two_over_pi[first + i] : 0u;
        u64 x = digit * low + product[at];
        u64 y = digit * high + product[at + 1] + (x >> 32);
        product[at] = (u32)x;
        product[at + 1] = (u32)y;
        product[at + 2 < 10 ? at + 2 : 9] += (u32)(y >> 32);
    }
    i32 point = 32 * (first + 8) - e; /* bits behind the point */
    u128 window = 0;                  /* 2 bits before it, 126 behind */
    for (i32 i = 0; i < 128; i++) {
        i32 bit = point + 1 - i;
        u32 value = (bit >= 0 && bit < 320) ? product[bit >> 5] >> (bit & 31) & 1u : 0u;
        window = window << 1 | value;
    }
    u128 near = window + ((u128)1 << 125); /* to the nearest quadrant */
    *quadrant = (i32)(u32)(near >> 126);
    i128 rest = (i128)(window - (near >> 126 << 126)); /* in 2^-126, within half of 2^126 */
    rest = (i128)((u128)rest << 2) >> 2;
    b8 minus = (b8)(rest < 0);
    u128 size = minus ? (u128)0 - (u128)rest : (u128)rest;
    fn_dd r = fn_dd_sum((f64)(u64)(size >> 64) * 18446744073709551616.0, (f64)(u64)size);
    r = fn_dd_scale(r, fn_power_of_two(-126));
    fn_dd half_pi;
    half_pi.hi = fn_half_pi[0];
    half_pi.lo = fn_half_pi[1];
    r = fn_dd_mul(r, half_pi);
    return minus ? fn_dd_neg(r) : r;
}

FN_SLOW fn_dd fn_reduce(f64 a, i32 *quadrant) { /* a >= 0 */
    if (a >= 1073741824.0) {
        return fn_reduce_large(a, quadrant);
    }
    f64 k = fn_rint(a / fn_half_pi[0]);
    fn_dd r = fn_dd_of(a);
    for (i32 i = 0; i < 4; i++) {
        r = fn_dd_add(r, fn_dd_neg(fn_dd_product(k, fn_half_pi[i])));
    }
    *quadrant = (i32)((i64)k & 3);
    return r;
}

/* Taylor's series from term `first` (1: sine, 0: cosine) of |a| <= pi / 4. */
FN_SLOW fn_dd fn_sine_series(fn_dd a, i32 first) {
    fn_dd square = fn_dd_neg(fn_dd_mul(a, a));
    fn_dd sum = fn_dd_of(0.0);
    for (i32 n = 26 + first; n >= first; n -= 2) {
        fn_dd c;
        c.hi = fn_inverse_factorial[n][0];
        c.lo = fn_inverse_factorial[n][1];
        sum = fn_dd_add(fn_dd_mul(sum, square), c);
    }
    return first ? fn_dd_mul(sum, a) : sum;
}

FN_SLOW fn_dd fn_sin_dd(f64 a, i32 shift) { /* shift 1: cosine */
    i32 quadrant;
    fn_dd r = fn_reduce(a < 0 ? -a : a, &quadrant);
    b8 minus = (b8)((a < 0) & (shift == 0));
    quadrant += shift;
    fn_dd value = fn_sine_series(r, (quadrant & 1) ? 0 : 1);
    return ((quadrant & 2) != 0) != minus ? fn_dd_neg(value) : value;
}

/* No angle: an infinity is an error, NaN stays. */
FN b8 fn_angle_bad(f64 a, u8 *f) {
    b8 infinite = (b8)(!fn_finite(a) & (a == a));
    *f = (u8)(infinite ? FAULT_INPUT_RANGE : *f);
    return (b8)!fn_finite(a);
}

FN_SLOW f64 fn_sin(f64 a, u8 *f) {
    return fn_angle_bad(a, f) || a == 0.0 ? a : fn_sin_dd(a, 0).hi;
}

FN_SLOW f64 fn_cos(f64 a, u8 *f) {
    return fn_angle_bad(a, f) ? a : fn_sin_dd(a, 1).hi;
}

FN_SLOW f64 fn_tan(f64 a, u8 *f) {
    return fn_angle_bad(a, f) || a == 0.0 ? a : fn_dd_div(fn_sin_dd(a, 0), fn_sin_dd(a, 1)).hi;
}

FN_SLOW f64 fn_cot(f64 a, u8 *f) {
    if (fn_angle_bad(a, f)) {
        return a;
    }
    if ((a != 0.0) & (a < 0x1p-100) & (a > -0x1p-100)) { /* a is its own tangent */
        return 1.0 / a;
    }
    return a == 0.0 ? (f64_bits(a) >> 63 ? -fn_infinity() : fn_infinity())
                    : fn_dd_div(fn_sin_dd(a, 1), fn_sin_dd(a, 0)).hi;
}

/* atan of a in [0, 1]: a start that is right to 1e-9, then the angle that is missing. */
FN_SLOW fn_dd fn_atan_small(fn_dd a) {
    f64 x = a.hi;
    for (i32 i = 0; i < 3; i++) { /* half the angle, three times */
        x = x / (1.0 + sqrt_f64(1.0 + x * x));
    }
    f64 square = x * x;
    f64 start =
        8.0 * x *
        (1.0 - square * (1.0 / 3.0 -
                         square * (1.0 / 5.0 -
                                   square * (1.0 / 7.0 - square * (1.0 / 9.0 - square / 11.0)))));
    fn_dd s = fn_sine_series(fn_dd_of(start), 1);
    fn_dd c = fn_sine_series(fn_dd_of(start), 0);
    fn_dd up = fn_dd_add(fn_dd_mul(a, c), fn_dd_neg(s));
    fn_dd t = fn_dd_div(up, fn_dd_add(c, fn_dd_mul(a, s)));
    fn_dd cube = fn_dd_mul(fn_dd_mul(t, t), t);
    t = fn_dd_add(t, fn_dd_neg(fn_dd_div(cube, fn_dd_of(3.0))));
    return fn_dd_add(fn_dd_of(start), t);
}

/* The angle of (x, y), y >= 0, not both 0. */
FN_SLOW fn_dd fn_atan2_dd(fn_dd y, fn_dd x) {
    fn_dd pi;
    pi.hi = FN_PI_HI;
    pi.lo = FN_PI_LO;
    b8 left = (b8)(x.hi < 0);
    fn_dd size = left ? fn_dd_neg(x) : x;
    fn_dd r;
    if (y.hi <= size.hi) {
        r = fn_atan_small(fn_dd_div(y, size));
    } else {
        fn_dd other = fn_atan_small(fn_dd_div(size, y));
        r = fn_dd_add(fn_dd_scale(pi, 0.5), fn_dd_neg(other));
    }
    return left ? fn_dd_add(pi, fn_dd_neg(r)) : r;
}

FN_SLOW f64 fn_atan(f64 a) {
    if ((a != a) | (a == 0.0)) {
        return a;
    }
    f64 size = a < 0 ? -a : a;
    f64 r = size > 1e300    ? fn_half_pi[0]
            : size < 1e-150 ? size
                            : fn_atan2_dd(fn_dd_of(size), fn_dd_of(1.0)).hi;
    return a < 0 ? -r : r;
}

FN_SLOW f64 fn_atan2(f64 y, f64 x) {
    if ((x != x) | (y != y)) {
        return x + y;
    }
    b8 minus = (b8)(f64_bits(y) >> 63);
    b8 left = (b8)(f64_bits(x) >> 63);
    f64 ys = minus ? -y : y;
    f64 xs = left ? -x : x;
    f64 r;
    if (ys == 0.0) {
        r = left ? FN_PI_HI : 0.0;
    } else if (!fn_finite(ys) || !fn_finite(xs)) {
        f64 slope = !fn_finite(ys) ? (fn_finite(xs) ? fn_half_pi[0] : fn_half_pi[0] / 2) : 0.0;
        r = left ? FN_PI_HI - slope : slope;
    } else if (xs == 0.0 || ys / xs > 1e300) {
        r = fn_half_pi[0];
    } else {
        f64 scale = xs > ys ? xs : ys; /* keep clear of over- and underflow */
        i32 e = (i32)(f64_bits(scale) >> 52 & 2047) - 1023;
        f64 yn = fn_ldexp(ys, -e);
        f64 xn = fn_ldexp(xs, -e);
        r = !left && yn < 1e-150 ? ys / xs
                                 : fn_atan2_dd(fn_dd_of(yn), fn_dd_of(left ? -xn : xn)).hi;
    }
    return minus ? -r : r;
}

FN fn_dd fn_unit_leg(f64 a) { /* sqrt(1 - a^2) */
    fn_dd product = fn_dd_mul(fn_dd_sum(1.0, -a), fn_dd_sum(1.0, a));
    return fn_dd_sqrt(product);
}

FN b8 fn_unit_bad(f64 a, u8 *f) {
    b8 bad = (b8)((a < -1.0) | (a > 1.0));
    *f = (u8)(bad ? FAULT_INPUT_RANGE : *f);
    return (b8)(bad | (a != a));
}

FN_SLOW f64 fn_asin(f64 a, u8 *f) {
    if (fn_unit_bad(a, f) || a == 0.0) {
        return a;
    }
    f64 size = a < 0 ? -a : a;
    f64 r = size < 1e-150 ? size : fn_atan2_dd(fn_dd_of(size), fn_unit_leg(size)).hi;
    return a < 0 ? -r : r;
}

FN_SLOW f64 fn_acos(f64 a, u8 *f) {
    if (fn_unit_bad(a, f)) {
        return a;
    }
    return a == 1.0 ? 0.0 : fn_atan2_dd(fn_unit_leg(a), fn_dd_of(a)).hi;
}

FN f64 fn_degrees(f64 a, u8 *f) {
    f64 r = a / 0.017453292519943295;
    *f = (u8)(!fn_finite(r) && fn_finite(a) ? FAULT_FLOAT_OVERFLOW : *f);
    return r;
}

FN f64 fn_radians(f64 a) {
    return a * 0.017453292519943295;
}

/* degrees: exact where sine or tangent of whole degrees are, as in PostgreSQL */

FN_SLOW f64 fn_sind_30(f64 a, u8 *f) { /* 0 to 30 */
    return fn_sin(fn_radians(a), f) / fn_sin(fn_radians(30.0), f) / 2.0;
}

FN_SLOW f64 fn_cosd_60(f64 a, u8 *f) { /* 0 to 60 */
    f64 rest = 1.0 - fn_cos(fn_radians(60.0), f);
    return 1.0 - (1.0 - fn_cos(fn_radians(a), f)) / rest / 2.0;
}

FN_SLOW f64 fn_sind_90(f64 a, u8 *f) {
    return a <= 30.0 ? fn_sind_30(a, f) : fn_cosd_60(90.0 - a, f);
}

FN_SLOW f64 fn_cosd_90(f64 a, u8 *f) {
    return a <= 60.0 ? fn_cosd_60(a, f) : fn_sind_30(90.0 - a, f);
}

/* What is left of a, 0 or more, by whole turns. */
FN_SLOW f64 fn_turn(f64 a) {
    for (f64 turn = 0x1p1015 * 360.0; turn >= 360.0; turn = turn / 2.0) {
        a = a >= turn ? a - turn : a;
    }
    return a;
}

/* The angle in the first quadrant, and the signs of its sine and cosine. */
FN_SLOW f64 fn_quadrant(f64 a, f64 *sine, f64 *cosine) {
    f64 x = fn_turn(a < 0 ? -a : a);
    *sine = a < 0 ? -1.0 : 1.0;
    *cosine = 1.0;
    if (x > 180.0) {
        x = 360.0 - x;
        *sine = -*sine;
    }
    if (x > 90.0) {
        x = 180.0 - x;
        *cosine = -1.0;
    }
    return x;
}

FN_SLOW f64 fn_sind(f64 a, u8 *f) {
    f64 sine, cosine;
    if (fn_angle_bad(a, f)) {
        return a;
    }
    f64 x = fn_quadrant(a, &sine, &cosine);
    return sine * fn_sind_90(x, f);
}

FN_SLOW f64 fn_cosd(f64 a, u8 *f) {
    f64 sine, cosine;
    if (fn_angle_bad(a, f)) {
        return a;
    }
    f64 x = fn_quadrant(a, &sine, &cosine);
    return cosine * fn_cosd_90(x, f);
}

FN_SLOW f64 fn_tand(f64 a, u8 *f) {
    f64 sine, cosine;
    if (fn_angle_bad(a, f)) {
        return a;
    }
    f64 x = fn_quadrant(a, &sine, &cosine);
    f64 one = fn_sind_90(45.0, f) / fn_cosd_90(45.0, f);
    f64 r = sine * cosine * (fn_sind_90(x, f) / fn_cosd_90(x, f) / one);
    return r == 0.0 ? 0.0 : r;
}

FN_SLOW f64 fn_cotd(f64 a, u8 *f) {
    f64 sine, cosine;
    if (fn_angle_bad(a, f)) {
        return a;
    }
    f64 x = fn_quadrant(a, &sine, &cosine);
    f64 one = fn_cosd_90(45.0, f) / fn_sind_90(45.0, f);
    f64 r = sine * cosine * (fn_cosd_90(x, f) / fn_sind_90(x, f) / one);
    return r == 0.0 ? 0.0 : r;
}

FN_SLOW f64 fn_asind_size(f64 a, u8 *f) { /* 0 to 1 */
    return a <= 0.5 ? fn_asin(a, f) / fn_asin(0.5, f) * 30.0
                    : 90.0 - fn_acos(a, f) / fn_acos(0.5, f) * 60.0;
}

FN_SLOW f64 fn_asind(f64 a, u8 *f) {
    if (fn_unit_bad(a, f)) {
        return a;
    }
    return a >= 0.0 ? fn_asind_size(a, f) : -fn_asind_size(-a, f);
}

FN_SLOW f64 fn_acosd(f64 a, u8 *f) {
    if (fn_unit_bad(a, f)) {
        return a;
    }
    if (a < 0.0) {
        return 90.0 + fn_asind_size(-a, f);
    }
    return a <= 0.5 ? 90.0 - fn_asin(a, f) / fn_asin(0.5, f) * 30.0
                    : fn_acos(a, f) / fn_acos(0.5, f) * 60.0;
}

FN_SLOW f64 fn_atand(f64 a) {
    return fn_atan(a) / fn_atan(1.0) * 45.0;
}

FN_SLOW f64 fn_atan2d(f64 y, f64 x) {
    return fn_atan2(y, x) / fn_atan(1.0) * 45.0;
}

/* hyperbolic */

/* e^a - e^-a (sign -1) or e^a + e^-a over 2, for |a| <= 711. */
FN_SLOW fn_dd fn_hyperbola(f64 a, i32 sign) {
    if ((a < 0.3) & (a > -0.3)) { /* from e^a - 1, so that nothing cancels */
        fn_dd up = fn_expm1_dd(fn_dd_of(a));
        fn_dd down = fn_dd_div(fn_dd_neg(up), fn_dd_add(up, fn_dd_of(1.0)));
        fn_dd sum = sign > 0 ? fn_dd_add(fn_dd_add(up, down), fn_dd_of(2.0))
                             : fn_dd_add(up, fn_dd_neg(down));
        return fn_dd_scale(sum, 0.5);
    }
    i32 n;
    fn_dd up = fn_exp_dd(fn_dd_of(a), &n);
    if (a > 40.0) { /* e^-a is too small to be seen */
        return fn_dd_of(up.hi * fn_power_of_two(n - 2) * 2.0);
    }
    i32 small = n < -500 ? -500 : n;
    fn_dd scaled = fn_dd_scale(up, fn_power_of_two(small - 1 > 1023 ? 1023 : small - 1));
    fn_dd down = fn_dd_div(fn_dd_of(0.25), scaled);
    return fn_dd_add(scaled, sign > 0 ? down : fn_dd_neg(down));
}

FN_SLOW f64 fn_sinh(f64 a, u8 *f) {
    UNUSED_WORD(f);
    if (!fn_finite(a) || ((a < 0x1p-28) & (a > -0x1p-28))) { /* a is its own sine */
        return a;
    }
    if ((a > 711.0) | (a < -711.0)) {
        return a < 0 ? -fn_infinity() : fn_infinity();
    }
    f64 r = fn_hyperbola(a < 0 ? -a : a, -1).hi;
    return a < 0 ? -r : r;
}

FN_SLOW f64 fn_cosh(f64 a, u8 *f) {
    UNUSED_WORD(f);
    f64 size = a < 0 ? -a : a;
    return !fn_finite(a) ? a * a : size > 711.0 ? fn_infinity() : fn_hyperbola(size, 1).hi;
}

FN_SLOW f64 fn_tanh(f64 a) {
    f64 size = a < 0 ? -a : a;
    if ((a != a) | (size < 0x1p-28)) {
        return a;
    }
    f64 r = size > 20.0 ? 1.0 : fn_dd_div(fn_hyperbola(size, -1), fn_hyperbola(size, 1)).hi;
    return a < 0 ? -r : r;
}

/* ln(1 + a) for a small pair a > 0. */
FN_SLOW fn_dd fn_ln1p_dd(fn_dd a) {
    if (a.hi < 0.01) {
        fn_dd f = fn_dd_div(a, fn_dd_add(a, fn_dd_of(2.0)));
        fn_dd square = fn_dd_mul(f, f);
        fn_dd y = fn_dd_of(0.0);
        for (i32 n = 17; n > 0; n -= 2) {
            y = fn_dd_mul(y, square);
            y = fn_dd_add(y, fn_dd_div(fn_dd_of(1.0), fn_dd_of((f64)n)));
        }
        return fn_dd_scale(fn_dd_mul(y, f), 2.0);
    }
    return fn_ln_dd(fn_dd_add(a, fn_dd_of(1.0)));
}

FN_SLOW f64 fn_asinh(f64 a) {
    f64 size = a < 0 ? -a : a;
    if (!fn_finite(a) || size < 1e-100) {
        return a;
    }
    fn_dd r;
    if (size > 1e100) {
        r = fn_dd_add(fn_ln_dd(fn_dd_of(size)), fn_dd_sum(FN_LN2_HI, FN_LN2_LO));
    } else { /* ln(1 + a + a^2 / (1 + sqrt(1 + a^2))) */
        fn_dd square = fn_dd_product(size, size);
        fn_dd root = fn_dd_add(fn_dd_sqrt(fn_dd_add(square, fn_dd_of(1.0))), fn_dd_of(1.0));
        r = fn_ln1p_dd(fn_dd_add(fn_dd_of(size), fn_dd_div(square, root)));
    }
    return a < 0 ? -r.hi : r.hi;
}

FN_SLOW f64 fn_acosh(f64 a, u8 *f) {
    if (a < 1.0) {
        *f = FAULT_INPUT_RANGE;
        return 0.0;
    }
    if (!fn_finite(a) || a == 1.0) {
        return a == 1.0 ? 0.0 : a;
    }
    if (a > 1e100) {
        return fn_dd_add(fn_ln_dd(fn_dd_of(a)), fn_dd_sum(FN_LN2_HI, FN_LN2_LO)).hi;
    }
    fn_dd minus = fn_dd_sum(a, -1.0);
    fn_dd root = fn_dd_sqrt(fn_dd_mul(minus, fn_dd_sum(a, 1.0)));
    return fn_ln1p_dd(fn_dd_add(minus, root)).hi;
}

FN_SLOW f64 fn_atanh(f64 a, u8 *f) {
    f64 size = a < 0 ? -a : a;
    if (size > 1.0) {
        *f = FAULT_INPUT_RANGE;
        return 0.0;
    }
    if ((a != a) | (size < 1e-100) | (size == 1.0)) {
        return size == 1.0 ? a * fn_infinity() : a;
    }
    fn_dd ratio = fn_dd_div(fn_dd_of(2.0 * size), fn_dd_sum(1.0, -size));
    f64 r = fn_dd_scale(fn_ln1p_dd(ratio), 0.5).hi;
    return a < 0 ? -r : r;
}

/* integers and decimals */

FN u64 fn_size_i64(i64 a) {
    return a < 0 ? 0u - (u64)a : (u64)a;
}

FN_SLOW u64 fn_gcd_u64(u64 a, u64 b) {
    while (b) {
        u64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

FN i64 fn_gcd(i64 a, i64 b, u8 *f) {
    u64 r = fn_gcd_u64(fn_size_i64(a), fn_size_i64(b));
    *f = (u8)(r >> 63 ? FAULT_BIGINT : *f);
    return (i64)r;
}

FN_SLOW i64 fn_lcm(i64 a, i64 b, u8 *f) {
    u64 divisor = fn_gcd_u64(fn_size_i64(a), fn_size_i64(b));
    u128 r = divisor ? (u128)(fn_size_i64(a) / divisor) * fn_size_i64(b) : (u128)0;
    *f = (u8)(r >> 63 ? FAULT_BIGINT : *f);
    return (i64)(u64)r;
}

FN_SLOW i128 fn_gcd_i128(i128 a, i128 b) {
    i128 x = a < 0 ? -a : a;
    i128 y = b < 0 ? -b : b;
    while (y != 0) {
        i128 rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* The bounds of decimals keep a product that fits within 128 bits. */
FN_SLOW i128 fn_lcm_i128(i128 a, i128 b, u8 *f) {
    i128 divisor = fn_gcd_i128(a, b);
    i128 x = divisor ? a / divisor : 0;
    i128 size = x < 0 ? -x : x;
    i128 other = b < 0 ? -b : b;
    b8 fits = (b8)((size == 0) | (other == 0) || other <= I128_MAX / size);
    *f = (u8)(fits ? *f : FAULT_DECIMAL);
    return fits ? size * other : 0;
}

FN_SLOW i128 fn_factorial(i64 a, u8 *f) {
    i128 r = 1;
    *f = (u8)(a < 0 ? FAULT_FACTORIAL : a > 33 ? FAULT_DECIMAL : *f);
    for (i64 i = 2; i <= a && i <= 33; i++) {
        r *= i;
    }
    return r;
}

FN_SLOW i128 fn_floor_i128(i128 a, i128 b) {
    i128 d = b > 0 ? b : 1;
    i128 q = a / d;
    return q - (i128)(a % d < 0);
}

/* The last `digits` digits become zeros, rounded half away from zero or cut. */
FN_SLOW i128 fn_round_at(i128 a, i32 digits, b8 round) {
    if (digits <= 0) {
        return a;
    }
    if (digits > 38) {
        return 0;
    }
    u128 unit = fn_pow10(digits);
    u128 size = fn_abs_i128(a);
    u128 rest = size % unit;
    size -= rest;
    size += round && rest >= unit - rest ? unit : (u128)0;
    return fn_signed(size, (b8)(a < 0));
}

FN_SLOW i32 fn_min_scale(i128 a, i32 scale) {
    while ((scale > 0) & (a % 10 == 0)) {
        a /= 10;
        scale--;
    }
    return a == 0 ? 0 : scale;
}

/* Bucket of a among n equal ones from 0 to b: a * n / b bit by bit, since the product may not fit.
 */
FN_SLOW i32 fn_bucket_exact(i128 a, i128 b, i32 n, u8 *f) {
    if ((n <= 0) | (b == 0)) {
        *f = FAULT_BUCKETS;
        return 0;
    }
    u128 at = (u128)(b < 0 ? -a : a);
    u128 span = (u128)(b < 0 ? -b : b);
    if ((i128)at < 0) {
        return 0;
    }
    if (at >= span) {
        *f = (u8)(n == 2147483647 ? FAULT_INTEGER : *f);
        return n == 2147483647 ? 0 : n + 1;
    }
    u128 rest = 0;
    u32 q = 0;
    for (i32 bit = 30; bit >= 0; bit--) {
        rest = 2 * rest + ((u32)n >> bit & 1 ? at : 0);
        q = 2 * q;
        while (rest >= span) {
            rest -= span;
            q++;
        }
    }
    return (i32)(q + 1);
}

FN_SLOW i32 fn_bucket(f64 a, f64 b, i32 count, u8 *f) {
    if ((count <= 0) | (b == 0.0) | !fn_finite(b) | (a != a)) {
        *f = FAULT_BUCKETS;
        return 0;
    }
    f64 share = a / b;
    if (share < 0.0) {
        return 0;
    }
    if (share >= 1.0) {
        *f = (u8)(count == 2147483647 ? FAULT_INTEGER : *f);
        return count == 2147483647 ? count : count + 1;
    }
    return (i32)((f64)count * share) + 1;
}

FN f64 fn_percent(f64 a, u8 *f) {
    b8 fits = (b8)((a >= 0.0) & (a <= 100.0));
    *f = (u8)(fits ? *f : FAULT_PERCENT);
    return fits ? a / 100.0 : 0.0;
}

FN i64 fn_seed(f64 a, u8 *f) {
    *f = (u8)(a == a ? *f : FAULT_REPEAT);
    return fn_key_f64(a);
}

FN i128 fn_random_uuid(i64 seed, i64 row, i32 call) {
    u64 high = fn_random_bits(seed, row, 2 * call);
    u64 low = fn_random_bits(seed, row, 2 * call + 1);
    high = (high & 0xffffffffffff0fffULL) | 0x4000ULL;
    low = (low & 0x3fffffffffffffffULL) | 0x8000000000000000ULL;
    return (i128)(((u128)high << 64 | low) ^ (u128)1 << 127);
}

#endif
