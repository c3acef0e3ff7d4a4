/* fn_real.h: roots, exponentials, logarithms, angles of doubles. Kernel text (see fn_int.h).
 *
 * Every function looks a nearby value up in real_table.h, as a pair of doubles, and adds a short
 * series of what is left. The leading terms are exact pairs, so that the one rounding that counts
 * is the last: results are within 0.6 units in the last place (0.75 where they are below the least
 * normal number; angles in degrees, which follow PostgreSQL's formulas, within 5), and exact where
 * the true value is a double. Only +, -, *, / and the square root of IEEE 754 are used, in a fixed
 * order: every device gives the same bits.
 *
 * There are no branches, so that loops vectorise: rows that are special are computed like others,
 * and the last lines choose. Whatever is looked up is masked, since such rows have any bits. What
 * is inside FN_RARELY is left out of vector loops (cpu/vec_real.c), which do those rows again.
 * Faults as in PostgreSQL. See decision 0020. */
#ifndef WF_DEFS_FN_REAL_H
#define WF_DEFS_FN_REAL_H

#ifndef FN_RARELY
#define FN_RARELY(x) (x)
#endif

typedef struct fn_dd { /* hi + lo; |lo| is small, but not always below half a unit of hi */
    f64 hi;
    f64 lo;
} fn_dd;

/* 2 / pi in 32-bit digits, enough for the largest double. */
CONST_TABLE u32 fn_two_over_pi[42] = {
    0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
    0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu,
    0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
    0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u,
    0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du, 0xa9e39161u, 0x5ee61b08u,
};

#define REAL_SHIFT 6755399441055744.0 /* 1.5 * 2^52: a sum with it is rounded to a whole number */
#define REAL_LEAST 2.2250738585072014e-308
#define REAL_SMALL_ANGLE 2097152.0       /* up to here multiples of pi / 64 are exact */
#define REAL_SMALL_TURN 35184372088832.0 /* and those of 360 */

/* pairs */

FN fn_dd fn_dd_of(f64 hi, f64 lo) {
    fn_dd r;
    r.hi = hi;
    r.lo = lo;
    return r;
}

FN fn_dd fn_dd_pair(f64 hi, f64 lo) { /* exact; |hi| >= |lo|, or hi is 0 */
    f64 sum = hi + lo;
    return fn_dd_of(sum, lo - (sum - hi));
}

FN fn_dd fn_dd_sum(f64 a, f64 b) { /* exact */
    f64 sum = a + b;
    f64 part = sum - a;
    return fn_dd_of(sum, (a - (sum - part)) + (b - part));
}

FN f64 fn_top(f64 a) { /* the first 26 digits */
    return bits_f64(f64_bits(a) & 0xfffffffff8000000ULL);
}

FN fn_dd fn_dd_product(f64 a, f64 b) { /* to 107 digits */
    f64 ah = fn_top(a);
    f64 bh = fn_top(b);
    f64 al = a - ah;
    f64 bl = b - bh;
    f64 product = a * b;
    return fn_dd_of(product, ((ah * bh - product) + ah * bl + al * bh) + al * bl);
}

FN fn_dd fn_dd_mul(fn_dd a, fn_dd b) {
    fn_dd p = fn_dd_product(a.hi, b.hi);
    return fn_dd_pair(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

FN fn_dd fn_dd_div(fn_dd a, fn_dd b) {
    f64 q = a.hi / b.hi;
    fn_dd p = fn_dd_product(q, b.hi);
    return fn_dd_pair(q, (((a.hi - p.hi) - p.lo) + (a.lo - q * b.lo)) / b.hi);
}

FN fn_dd fn_dd_sqrt(fn_dd a) {
    f64 root = sqrt_f64(a.hi);
    f64 safe = root == 0.0 ? 1.0 : root;
    fn_dd p = fn_dd_product(root, root);
    return fn_dd_pair(root, (((a.hi - p.hi) - p.lo) + a.lo) / (2.0 * safe));
}

/* whole numbers */

FN f64 fn_abs_f64(f64 a) {
    return bits_f64(f64_bits(a) & 0x7fffffffffffffffULL);
}

FN f64 fn_signed_like(f64 size, f64 a) { /* size has no sign */
    return bits_f64(f64_bits(size) | (f64_bits(a) & 0x8000000000000000ULL));
}

FN f64 fn_rint(f64 a) {
    f64 size = fn_abs_f64(a);
    f64 r = (size + 4503599627370496.0) - 4503599627370496.0;
    return size < 4503599627370496.0 ? fn_signed_like(r, a) : a;
}

FN f64 fn_floor(f64 a) {
    f64 r = fn_rint(a);
    return r > a ? r - 1.0 : r;
}

FN f64 fn_trunc(f64 a) {
    f64 r = fn_abs_f64(a);
    return a != a ? a : fn_signed_like(fn_floor(r), a);
}

FN f64 fn_sign(f64 a) {
    return a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0; /* of NaN too, as in PostgreSQL */
}

FN f64 fn_infinity(void) {
    return bits_f64(0x7ff0000000000000ULL);
}

/* a * 2^(n - 2048) in two steps, of which only the last may round; n from 4 to 4092. */
FN f64 fn_scale(f64 a, u64 n) {
    u64 half = n >> 1;
    f64 first = bits_f64((half - 1ULL) << 52);
    f64 second = bits_f64((n - half - 1ULL) << 52);
    return a * first * second;
}

/* exponentials and logarithms */

/* e^(a + lo) = r * 2^(n - 2048), for |a| < 1400, else anything: r from 0.997 to 2.01. */
FN fn_dd fn_exp_parts(f64 a, f64 lo, u64 *n) {
    f64 t = a * REAL_EXP_STEPS + REAL_SHIFT;
    f64 k = t - REAL_SHIFT;
    u64 steps = f64_bits(t) + 262144ULL - f64_bits(REAL_SHIFT); /* 2048 * 128: never below 0 */
    u64 slot = steps & 127;
    f64 r = ((a - k * REAL_EXP_STEP_1) - k * REAL_EXP_STEP_2) + lo;
    f64 p = r + r * r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0))));
    f64 hi = real_exp_hi[slot];
    *n = steps >> 7;
    return fn_dd_of(hi, real_exp_lo[slot] + hi * p);
}

/* ln(a) for finite a > 0, to 66 digits. */
FN fn_dd fn_ln_parts(f64 a) {
    b8 tiny = (b8)(a < REAL_LEAST);
    u64 bits = f64_bits(tiny ? a * 18014398509481984.0 : a);
    u64 off = bits - REAL_LN_FIRST;
    u64 slot = off >> 45 & 127;
    f64 z = bits_f64(bits - (off & 0xfff0000000000000ULL));
    f64 bias = tiny ? 4503599627371574.0 : 4503599627371520.0; /* 2^52 + 1024 (+ 54) */
    f64 k = bits_f64((off + 0x4000000000000000ULL) >> 52 | 0x4330000000000000ULL) - bias;
    f64 inverse = real_ln_inverse[slot];
    f64 top = bits_f64(f64_bits(z) & 0xffffffffffe00000ULL); /* 32 digits: products are exact */
    fn_dd r = fn_dd_sum(top * inverse - 1.0, (z - top) * inverse);
    f64 rt = fn_top(r.hi);
    f64 square = 0.5 * rt * rt;
    f64 rest = 0.5 * (r.hi - rt) * (r.hi + rt) + r.hi * r.lo;
    f64 x = r.hi;
    f64 tail =
        x * x * x *
        (1.0 / 3.0 - x * (0.25 - x * (0.2 - x * (1.0 / 6.0 - x * (1.0 / 7.0 - x * (1.0 / 8.0))))));
    fn_dd s = fn_dd_pair(k * REAL_LN2_1 + real_ln_hi[slot], r.hi);
    fn_dd t = fn_dd_pair(s.hi, -square);
    f64 lo = (r.lo + (real_ln_lo[slot] + k * REAL_LN2_2)) - rest;
    return fn_dd_pair(t.hi, (s.lo + t.lo) + (lo + tail));
}

/* ln of a pair whose parts do not overlap. */
FN fn_dd fn_ln_pair(fn_dd a) {
    fn_dd r = fn_ln_parts(a.hi);
    return fn_dd_pair(r.hi, r.lo + a.lo / a.hi);
}

/* r * 2^(n - 2048) = e^a, with PostgreSQL's errors for results that do not fit. (Operands beyond
 * all bounds are chosen here, at the end: limited first they keep loops from being vectorised.) */
FN f64 fn_exp_done(f64 a, fn_dd r, u64 n, u8 *f) {
    f64 value = fn_scale(r.hi + r.lo, n);
    value = a > 800.0 ? fn_infinity() : a < -800.0 ? 0.0 : value;
    *f = (u8)(fn_finite(value) ? *f : FAULT_FLOAT_OVERFLOW);
    *f = (u8)(value == 0.0 ? FAULT_FLOAT_UNDERFLOW : *f);
    return value;
}

FN f64 fn_exp(f64 a, u8 *f) {
    u64 n;
    b8 finite = fn_finite(a);
    fn_dd r = fn_exp_parts(a, 0.0, &n);
    u8 fault = *f;
    f64 value = fn_exp_done(a, r, n, &fault);
    *f = finite ? fault : *f;
    return a != a ? a : value;
}

FN b8 fn_log_bad(f64 a, u8 *f) {
    *f = (u8)(a == 0.0 ? FAULT_LOG_ZERO : a < 0 ? FAULT_LOG_NEGATIVE : *f);
    return (b8)((a <= 0) | (a != a) | !fn_finite(a));
}

FN f64 fn_log_done(f64 a, f64 value, u8 *f) {
    b8 bad = fn_log_bad(a, f);
    return bad ? (a <= 0 ? 0.0 : a) : value;
}

FN f64 fn_ln(f64 a, u8 *f) {
    fn_dd r = fn_ln_parts(a);
    return fn_log_done(a, r.hi, f);
}

FN f64 fn_log10(f64 a, u8 *f) {
    fn_dd r = fn_dd_mul(fn_ln_parts(a), fn_dd_of(REAL_LOG10_E_HI, REAL_LOG10_E_LO));
    return fn_log_done(a, r.hi, f);
}

FN f64 fn_log(f64 base, f64 a, u8 *f) {
    b8 bad_base = fn_log_bad(base, f);
    b8 bad = (b8)(fn_log_bad(a, f) | bad_base);
    fn_dd divisor = fn_ln_parts(base);
    b8 none = (b8)(!bad & (divisor.hi == 0.0));
    *f = (u8)(none ? FAULT_DIV0 : *f);
    f64 r = fn_dd_div(fn_ln_parts(a), divisor).hi;
    f64 special = (base != base) | (a != a) ? base + a : 0.0;
    return bad | none ? special : r;
}

FN f64 fn_sqrt(f64 a, u8 *f) {
    *f = (u8)(a < 0 ? FAULT_SQRT : *f);
    return sqrt_f64(a < 0 ? 0.0 : a);
}

/* Cube root: a cubic of the fraction, a step of Halley's, and one of Newton's with an exact rest.
 */
FN f64 fn_cbrt(f64 a) {
    f64 size = fn_abs_f64(a);
    b8 tiny = (b8)(size < REAL_LEAST);
    u64 bits = f64_bits(tiny ? size * 18014398509481984.0 : size);
    u64 third = (bits >> 52) * 43691ULL >> 17;
    u64 rest = (bits >> 52) - 3 * third;
    u64 digits = bits & 0xfffffffffffffULL;
    f64 x = bits_f64(digits | 0x3ff0000000000000ULL);
    f64 m = bits_f64(digits | (rest + 1023) << 52); /* 1 to 8 */
    f64 y = 0.5557909602691387 +
            x * (0.5808263911380955 + x * (-0.158662460053191 + x * 0.022148699208245207));
    y *= rest == 0 ? 1.0 : rest == 1 ? 1.2599210498948732 : 1.5874010519681994;
    f64 cube = y * y * y;
    y = y * ((cube + 2.0 * m) / (2.0 * cube + m));
    fn_dd square = fn_dd_product(y, y);
    fn_dd power = fn_dd_product(square.hi, y);
    f64 left = (m - power.hi) - (power.lo + square.lo * y);
    y = y + left / (3.0 * square.hi);
    y *= bits_f64((third + (tiny ? 664ULL : 682ULL)) << 52); /* 1023 - 341 (- 18) */
    return (size == 0.0) | !fn_finite(a) ? a : fn_signed_like(y, a);
}

/* Powers whose operands are not all finite, or 0 or 1. */
FN f64 fn_power_special(f64 a, f64 b, f64 size) {
    b8 far = (b8)!fn_finite(b);
    b8 grows = (b8)(far ? (size > 1.0) == (b > 0) : (size != 0.0) == (b > 0));
    f64 r = far & (size == 1.0) ? 1.0 : grows ? fn_infinity() : 0.0;
    r = (a != a) | (b != b) ? a + b : r;
    return (a == 1.0) | (b == 0.0) ? 1.0 : r;
}

FN f64 fn_power(f64 a, f64 b, u8 *f) {
    f64 size = fn_abs_f64(a);
    b8 finite = fn_finite(b);
    b8 whole = (b8)(fn_rint(b) == b);
    f64 half = b * 0.5;
    b8 minus = (b8)(whole & (fn_rint(half) != half) & (b8)(f64_bits(a) >> 63) & finite);
    b8 zero = (b8)((a == 0.0) & (b < 0));
    b8 complex = (b8)((a < 0) & !whole & finite);
    b8 special = (b8)((a == 0.0) | (a == 1.0) | (b == 0.0) | !fn_finite(a) | !finite);
    fn_dd ln = fn_ln_parts(size);
    fn_dd p = fn_dd_product(ln.hi, b);
    f64 lo = p.lo + ln.lo * b;
    u64 n;
    fn_dd r = fn_exp_parts(p.hi, lo, &n);
    u8 fault = *f;
    f64 value = fn_exp_done(p.hi, r, n, &fault);
    fault = special ? *f : fault;
    fault = complex ? FAULT_POWER_COMPLEX : fault;
    *f = (u8)(zero ? FAULT_POWER_ZERO : fault);
    value = special ? fn_power_special(a, b, size) : value;
    value = minus & (value == value) ? -value : value;
    return zero | complex ? 0.0 : value;
}

/* angles */

/* a = r + quadrant * pi / 2 for large a: a / (pi / 2) from the digits that matter. */
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
    f64 unit = bits_f64((u64)(1023 - 126) << 52);
    u64 head = (u64)(size >> 76); /* 50 digits, and 50 more */
    u64 next = (u64)(size >> 26) & 0x3ffffffffffffULL;
    fn_dd r = fn_dd_sum((f64)head * 0x1p76, (f64)next * 0x1p26);
    r = fn_dd_mul(fn_dd_of(r.hi * unit, r.lo * unit), fn_dd_of(REAL_HALF_PI_HI, REAL_HALF_PI_LO));
    return minus ? fn_dd_of(-r.hi, -r.lo) : r;
}

/* a + lo = r + k * pi / 64, |a| up to REAL_SMALL_ANGLE; *slot is k modulo 128. */
FN fn_dd fn_reduce(f64 a, f64 lo, u64 *slot) {
    f64 t = a * REAL_ANGLES + REAL_SHIFT;
    f64 k = t - REAL_SHIFT;
    *slot = f64_bits(t);
    fn_dd r = fn_dd_sum(a - k * REAL_ANGLE_1, -(k * REAL_ANGLE_2));
    fn_dd s = fn_dd_sum(r.hi, -(k * REAL_ANGLE_3));
    return fn_dd_pair(s.hi, s.lo + (r.lo + (lo - k * REAL_ANGLE_4)));
}

FN fn_dd fn_reduce_any(f64 a, u64 *slot) {
    fn_dd r = fn_dd_of(a, 0.0);
    u64 before = 0;
    if (FN_RARELY(fn_finite(a) & (fn_abs_f64(a) >= REAL_SMALL_ANGLE))) {
        i32 quadrant;
        r = fn_reduce_large(fn_abs_f64(a), &quadrant);
        r = a < 0 ? fn_dd_of(-r.hi, -r.lo) : r;
        before = (u64)(a < 0 ? -quadrant : quadrant) * 32;
    }
    r = fn_reduce(r.hi, r.lo, slot);
    *slot += before;
    return r;
}

/* The sine of r + slot * pi / 64; the cosine is that of slot + 32. */
FN fn_dd fn_sine(fn_dd r, u64 slot) {
    u64 at = slot & 127;
    f64 s = real_sine_hi[at];
    f64 c = real_sine_hi[at + 32];
    f64 rt = fn_top(r.hi);
    f64 ct = fn_top(c);
    f64 square = r.hi * r.hi;
    f64 bend = square *
               (-0.5 + square * (1.0 / 24.0 + square * (-1.0 / 720.0 + square * (1.0 / 40320.0))));
    f64 tail = r.hi * square * (-1.0 / 6.0 + square * (1.0 / 120.0 + square * (-1.0 / 5040.0)));
    fn_dd sum = fn_dd_pair(s, ct * rt);
    f64 rest = ct * (r.hi - rt) + ((c - ct) + real_sine_lo[at + 32]) * r.hi;
    return fn_dd_pair(sum.hi,
                      sum.lo + (real_sine_lo[at] + (rest + (c * (r.lo + tail) + s * bend))));
}

/* No angle: an infinity is an error, NaN stays. */
FN b8 fn_angle_bad(f64 a, u8 *f) {
    b8 infinite = (b8)(!fn_finite(a) & (a == a));
    *f = (u8)(infinite ? FAULT_INPUT_RANGE : *f);
    return (b8)!fn_finite(a);
}

FN f64 fn_sin(f64 a, u8 *f) {
    u64 slot;
    fn_dd r = fn_reduce_any(a, &slot);
    f64 value = fn_sine(r, slot).hi;
    b8 bad = fn_angle_bad(a, f);
    return bad | (a == 0.0) ? a : value;
}

FN f64 fn_cos(f64 a, u8 *f) {
    u64 slot;
    fn_dd r = fn_reduce_any(a, &slot);
    f64 value = fn_sine(r, slot + 32).hi;
    return fn_angle_bad(a, f) ? a : value;
}

FN f64 fn_tan(f64 a, u8 *f) {
    u64 slot;
    fn_dd r = fn_reduce_any(a, &slot);
    f64 value = fn_dd_div(fn_sine(r, slot), fn_sine(r, slot + 32)).hi;
    b8 bad = fn_angle_bad(a, f);
    return bad | (fn_abs_f64(a) < 0x1p-100) ? a : value; /* a is its own tangent */
}

FN f64 fn_cot(f64 a, u8 *f) {
    u64 slot;
    fn_dd r = fn_reduce_any(a, &slot);
    f64 value = fn_dd_div(fn_sine(r, slot + 32), fn_sine(r, slot)).hi;
    f64 large = 1.0 / a;
    value = fn_abs_f64(a) < 0x1p-100 ? large : value;
    return fn_angle_bad(a, f) ? a : value;
}

/* The arc tangent of y / x, 0 <= y <= x, x near 1. */
FN fn_dd fn_atan_parts(fn_dd y, fn_dd x) {
    f64 t = (y.hi / x.hi) * 64.0 + REAL_SHIFT;
    f64 c = (t - REAL_SHIFT) * (1.0 / 64.0);
    u64 slot = f64_bits(t) & 127;
    f64 xt = fn_top(x.hi);
    f64 yt = fn_top(y.hi);
    fn_dd up = fn_dd_sum(y.hi - c * xt, -(c * (x.hi - xt)));
    fn_dd down = fn_dd_pair(x.hi, c * yt);
    up.lo += y.lo - c * x.lo;
    down = fn_dd_pair(down.hi, down.lo + (c * (y.hi - yt) + (x.lo + c * y.lo)));
    fn_dd q = fn_dd_div(up, down);
    f64 square = q.hi * q.hi;
    f64 tail = q.hi * square *
               (-1.0 / 3.0 + square * (0.2 + square * (-1.0 / 7.0 + square * (1.0 / 9.0))));
    fn_dd sum = fn_dd_pair(real_atan_hi[slot], q.hi);
    return fn_dd_pair(sum.hi, sum.lo + (real_atan_lo[slot] + (q.lo + tail)));
}

/* The angle of (x, y) or, where left, (-x, y); x and y are not negative. */
FN fn_dd fn_angle(fn_dd y, fn_dd x, b8 left) {
    b8 steep = (b8)(y.hi > x.hi);
    fn_dd r = fn_atan_parts(fn_dd_of(steep ? x.hi : y.hi, steep ? x.lo : y.lo),
                            fn_dd_of(steep ? y.hi : x.hi, steep ? y.lo : x.lo));
    b8 back = (b8)(steep != left);
    f64 from = steep ? REAL_HALF_PI_HI : left ? REAL_PI_HI : 0.0;
    f64 from_lo = steep ? REAL_HALF_PI_LO : left ? REAL_PI_LO : 0.0;
    fn_dd sum = fn_dd_pair(from, back ? -r.hi : r.hi);
    return fn_dd_pair(sum.hi, sum.lo + (from_lo + (back ? -r.lo : r.lo)));
}

FN f64 fn_atan(f64 a) {
    f64 size = fn_abs_f64(a);
    f64 r = fn_angle(fn_dd_of(size, 0.0), fn_dd_of(1.0, 0.0), 0).hi;
    r = size > 0x1p60 ? REAL_HALF_PI_HI : r;
    return (a != a) | (size < 0x1p-100) ? a : fn_signed_like(r, a);
}

FN f64 fn_atan2(f64 y, f64 x) {
    f64 ys = fn_abs_f64(y);
    f64 xs = fn_abs_f64(x);
    b8 left = (b8)((i64)f64_bits(x) < 0);
    f64 most = xs > ys ? xs : ys; /* near 1: clear of over- and underflow */
    b8 small = (b8)(most < 0x1p-900);
    f64 raise = small ? 0x1p200 : 1.0;
    u64 e = f64_bits(most * raise) >> 52;
    f64 scale = bits_f64((2046 - e) << 52);
    scale = most > 0x1p1022 ? 0x1p-1022 : scale;
    f64 yn = ys * raise * scale;
    f64 xn = xs * raise * scale;
    f64 r = fn_angle(fn_dd_of(yn, 0.0), fn_dd_of(xn, 0.0), left).hi;
    f64 slope = ys / xs;
    b8 far_y = (b8)!fn_finite(ys);
    b8 far_x = (b8)!fn_finite(xs);
    f64 edge = far_y & far_x ? REAL_HALF_PI_HI / 2 : far_y ? REAL_HALF_PI_HI : 0.0;
    f64 edge_left = REAL_PI_HI - edge;
    f64 flat = left ? REAL_PI_HI : 0.0;
    edge = left ? edge_left : edge;
    r = (b8)!left & (yn < 0x1p-100) ? slope : r;
    r = far_y | far_x ? edge : r;
    r = ys == 0.0 ? flat : r;
    f64 both = x + y;
    return (x != x) | (y != y) ? both : fn_signed_like(r, y);
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

FN f64 fn_asin(f64 a, u8 *f) {
    f64 size = fn_abs_f64(a);
    f64 r = fn_angle(fn_dd_of(size, 0.0), fn_unit_leg(size), 0).hi;
    b8 bad = fn_unit_bad(a, f);
    return bad | (size < 0x1p-100) ? a : fn_signed_like(r, a);
}

FN f64 fn_acos(f64 a, u8 *f) {
    f64 size = fn_abs_f64(a);
    f64 r = fn_angle(fn_unit_leg(size), fn_dd_of(size, 0.0), (b8)(a < 0)).hi;
    b8 bad = fn_unit_bad(a, f);
    return bad ? a : r;
}

FN f64 fn_degrees(f64 a, u8 *f) {
    f64 r = a / 0.017453292519943295;
    *f = (u8)((fn_finite(r) < fn_finite(a)) ? FAULT_FLOAT_OVERFLOW : *f);
    return r;
}

FN f64 fn_radians(f64 a) {
    return a * 0.017453292519943295;
}

/* degrees: PostgreSQL's formulas, exact where sine or tangent of whole degrees are */

#define REAL_SIN_30 0.49999999999999994 /* of the double next to pi / 6 */
#define REAL_REST_60 0.4999999999999999 /* 1 - its cosine */
#define REAL_ASIN_HALF 0.5235987755982989
#define REAL_ACOS_HALF 1.0471975511965979

/* Sine (0 to 30 degrees) or cosine (0 to 60) of an angle. */
FN f64 fn_degree_wave(f64 a, b8 cosine) {
    u64 slot;
    fn_dd r = fn_reduce(fn_radians(a), 0.0, &slot);
    f64 value = fn_sine(r, slot + (cosine ? 32ULL : 0ULL)).hi;
    f64 sine = value / REAL_SIN_30 / 2.0;
    f64 rest = 1.0 - (1.0 - value) / REAL_REST_60 / 2.0;
    return cosine ? rest : a == 0.0 ? a : sine;
}

FN f64 fn_sind_90(f64 a) {
    return fn_degree_wave(a <= 30.0 ? a : 90.0 - a, (b8) !(a <= 30.0));
}

FN f64 fn_cosd_90(f64 a) {
    return fn_degree_wave(a <= 60.0 ? a : 90.0 - a, (b8)(a <= 60.0));
}

FN_SLOW f64 fn_turn_large(f64 a) {
    for (f64 turn = 0x1p1015 * 360.0; turn >= 360.0; turn = turn / 2.0) {
        a = a >= turn ? a - turn : a;
    }
    return a;
}

/* What is left of a, 0 or more, by whole turns. */
FN f64 fn_turn(f64 a) {
    if (FN_RARELY(fn_finite(a) & (a >= REAL_SMALL_TURN))) {
        a = fn_turn_large(a);
    }
    f64 r = a - fn_floor(a / 360.0) * 360.0;
    r = r < 0.0 ? r + 360.0 : r;
    return r >= 360.0 ? r - 360.0 : r;
}

/* The angle in the first quadrant, and the signs of its sine and cosine. */
FN f64 fn_quadrant(f64 a, f64 *sine, f64 *cosine) {
    f64 x = fn_turn(fn_abs_f64(a));
    b8 low = (b8)(x > 180.0);
    x = low ? 360.0 - x : x;
    b8 left = (b8)(x > 90.0);
    *sine = (a < 0) != low ? -1.0 : 1.0;
    *cosine = left ? -1.0 : 1.0;
    return left ? 180.0 - x : x;
}

FN f64 fn_sind(f64 a, u8 *f) {
    f64 sine, cosine;
    f64 x = fn_quadrant(a, &sine, &cosine);
    f64 value = sine * fn_sind_90(x);
    return fn_angle_bad(a, f) ? a : value;
}

FN f64 fn_cosd(f64 a, u8 *f) {
    f64 sine, cosine;
    f64 x = fn_quadrant(a, &sine, &cosine);
    f64 value = cosine * fn_cosd_90(x);
    return fn_angle_bad(a, f) ? a : value;
}

FN f64 fn_tand(f64 a, u8 *f) {
    f64 sine, cosine;
    f64 x = fn_quadrant(a, &sine, &cosine);
    f64 value = sine * cosine * (fn_sind_90(x) / fn_cosd_90(x));
    value = value == 0.0 ? 0.0 : value;
    return fn_angle_bad(a, f) ? a : value;
}

FN f64 fn_cotd(f64 a, u8 *f) {
    f64 sine, cosine;
    f64 x = fn_quadrant(a, &sine, &cosine);
    f64 value = sine * cosine * (fn_cosd_90(x) / fn_sind_90(x));
    value = value == 0.0 ? 0.0 : value;
    return fn_angle_bad(a, f) ? a : value;
}

/* Arc sine in degrees up to 30 and arc cosine below 60, of a from 0 to 1. */
FN f64 fn_degree_arc(f64 a, b8 *sine) {
    fn_dd leg = fn_unit_leg(a);
    b8 low = (b8)(a <= 0.5);
    f64 r = fn_angle(fn_dd_of(low ? a : leg.hi, low ? 0.0 : leg.lo),
                     fn_dd_of(low ? leg.hi : a, low ? leg.lo : 0.0), 0)
                .hi;
    *sine = low;
    return low ? (a < 0x1p-100 ? a : r) / REAL_ASIN_HALF * 30.0 : r / REAL_ACOS_HALF * 60.0;
}

FN f64 fn_asind(f64 a, u8 *f) {
    b8 sine;
    f64 arc = fn_degree_arc(fn_abs_f64(a), &sine);
    f64 value = sine ? arc : 90.0 - arc;
    b8 bad = fn_unit_bad(a, f);
    return bad ? a : a < 0.0 ? -value : value;
}

FN f64 fn_acosd(f64 a, u8 *f) {
    b8 sine;
    f64 arc = fn_degree_arc(fn_abs_f64(a), &sine);
    f64 right = sine ? 90.0 - arc : arc;
    f64 left = 90.0 + (sine ? arc : 90.0 - arc);
    b8 bad = fn_unit_bad(a, f);
    return bad ? a : a < 0.0 ? left : right;
}

FN f64 fn_atand(f64 a) {
    return fn_atan(a) / (REAL_HALF_PI_HI / 2) * 45.0;
}

FN f64 fn_atan2d(f64 y, f64 x) {
    return fn_atan2(y, x) / (REAL_HALF_PI_HI / 2) * 45.0;
}

/* hyperbolic */

/* (e^a + sign e^-a) / 2 for a from 0 to 720, its digits and its exponent as in fn_scale. */
FN fn_dd fn_hyperbola(f64 a, f64 sign, u64 *n) {
    u64 down_n;
    fn_dd up = fn_exp_parts(a, 0.0, n);
    fn_dd down = fn_exp_parts(-a, 0.0, &down_n);
    u64 gap = down_n + 4096 - *n; /* 4096 and an exponent that is not positive */
    f64 share = gap < 3200 ? 0.0 : sign * bits_f64((gap - 3073) << 52);
    *n -= 1;
    fn_dd u = fn_dd_pair(up.hi, up.lo);
    fn_dd d = fn_dd_pair(down.hi * share, down.lo * share);
    fn_dd sum = fn_dd_sum(u.hi, d.hi);
    return fn_dd_pair(sum.hi, sum.lo + (u.lo + d.lo));
}

FN f64 fn_sinh(f64 a, u8 *f) {
    UNUSED_WORD(f);
    f64 size = fn_abs_f64(a);
    u64 n;
    fn_dd r = fn_hyperbola(size, -1.0, &n);
    f64 q = size * size;
    f64 series =
        size +
        size * q * (1.0 / 6.0 + q * (1.0 / 120.0 + q * (1.0 / 5040.0 + q * (1.0 / 362880.0))));
    f64 value = size < 0.0625 ? series : size > 720.0 ? fn_infinity() : fn_scale(r.hi, n);
    return !fn_finite(a) | (size < 0x1p-30) ? a : fn_signed_like(value, a);
}

FN f64 fn_cosh(f64 a, u8 *f) {
    UNUSED_WORD(f);
    f64 size = fn_abs_f64(a);
    u64 n;
    fn_dd r = fn_hyperbola(size, 1.0, &n);
    f64 value = size > 720.0 ? fn_infinity() : fn_scale(r.hi, n);
    return a != a ? a : value;
}

FN f64 fn_tanh(f64 a) { /* (e^2a - 1) / (e^2a + 1) */
    f64 size = fn_abs_f64(a);
    u64 n;
    fn_dd e = fn_exp_parts(2.0 * size, 0.0, &n);
    f64 unit = bits_f64((n - 1025) << 52);
    e = fn_dd_pair(e.hi * unit, e.lo * unit);
    fn_dd up = fn_dd_sum(e.hi, -1.0);
    fn_dd down = fn_dd_sum(e.hi, 1.0);
    up = fn_dd_pair(up.hi, up.lo + e.lo);
    down = fn_dd_pair(down.hi, down.lo + e.lo);
    f64 value = fn_dd_div(up, down).hi;
    f64 q = size * size;
    f64 series =
        size -
        size * q *
            (1.0 / 3.0 -
             q * (2.0 / 15.0 - q * (17.0 / 315.0 - q * (62.0 / 2835.0 - q * (1382.0 / 155925.0)))));
    value = size < 0.03125 ? series : size > 20.0 ? 1.0 : value;
    return (a != a) | (size < 0x1p-30) ? a : fn_signed_like(value, a);
}

/* ln(1 + a + b): a pair that may be small, and a larger number; of a itself where far, plus ln 2.
 */
FN f64 fn_ln_sum(fn_dd a, f64 b, f64 alone, b8 far) {
    fn_dd s = fn_dd_sum(a.hi, b);
    s = fn_dd_pair(s.hi, s.lo + a.lo);
    fn_dd t = fn_dd_sum(1.0, s.hi);
    t = fn_dd_pair(t.hi, t.lo + s.lo);
    fn_dd r = fn_ln_pair(fn_dd_of(far ? alone : t.hi, far ? 0.0 : t.lo));
    f64 more = far ? REAL_LN2_HI : 0.0;
    fn_dd sum = fn_dd_sum(r.hi, more);
    return sum.hi + (sum.lo + (r.lo + (far ? REAL_LN2_LO : 0.0)));
}

FN f64 fn_asinh(f64 a) { /* ln(1 + a + a^2 / (1 + sqrt(1 + a^2))) */
    f64 size = fn_abs_f64(a);
    b8 far = (b8)(size > 0x1p30);
    f64 x = far ? 1.0 : size;
    fn_dd square = fn_dd_product(x, x);
    fn_dd more = fn_dd_sum(square.hi, 1.0);
    fn_dd root = fn_dd_sqrt(fn_dd_pair(more.hi, more.lo + square.lo));
    fn_dd down = fn_dd_sum(root.hi, 1.0);
    f64 value = fn_ln_sum(fn_dd_div(square, fn_dd_pair(down.hi, down.lo + root.lo)), x, size, far);
    f64 q = size * size;
    f64 series =
        size -
        size * q * (1.0 / 6.0 - q * (3.0 / 40.0 - q * (15.0 / 336.0 - q * (105.0 / 3456.0))));
    value = size < 0x1p-6 ? series : value;
    return !fn_finite(a) | (size < 0x1p-100) ? a : fn_signed_like(value, a);
}

FN f64 fn_acosh(f64 a, u8 *f) { /* ln(1 + (a - 1) + sqrt((a - 1) (a + 1))) */
    b8 far = (b8)(a > 0x1p30);
    b8 bad = (b8)(a < 1.0);
    f64 x = far | bad ? 1.0 : a;
    fn_dd minus = fn_dd_sum(x, -1.0);
    fn_dd root = fn_dd_sqrt(fn_dd_mul(minus, fn_dd_sum(x, 1.0)));
    f64 value = fn_ln_sum(fn_dd_pair(root.hi, root.lo + minus.lo), minus.hi, a, far);
    *f = (u8)(bad ? FAULT_INPUT_RANGE : *f);
    return bad | (a == 1.0) ? 0.0 : fn_finite(a) ? value : a;
}

FN f64 fn_atanh(f64 a, u8 *f) { /* ln((1 + a) / (1 - a)) / 2 */
    f64 size = fn_abs_f64(a);
    fn_dd ratio = fn_dd_div(fn_dd_sum(1.0, size), fn_dd_sum(1.0, -size));
    fn_dd r = fn_ln_pair(ratio);
    f64 q = size * size;
    f64 series =
        size + size * q * (1.0 / 3.0 + q * (0.2 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q / 11.0))));
    f64 value = size < 0x1p-6 ? series : 0.5 * r.hi;
    value = size == 1.0 ? fn_infinity() : value;
    *f = (u8)(size > 1.0 ? FAULT_INPUT_RANGE : *f);
    return size > 1.0 ? 0.0 : (a != a) | (size < 0x1p-100) ? a : fn_signed_like(value, a);
}

#endif
