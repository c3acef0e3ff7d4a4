/* range.c: interval arithmetic: what can be said of a result from what is known of its operands.
 *
 * Exact ranges saturate at the bounds of i128; a saturated range means that the result might not
 * fit 128 bits, and callers then use checked opcodes. Float ranges track the largest magnitude, the
 * weight of the lowest bit that can be set, and whether NaN or infinities can occur. */
#include <float.h>
#include <math.h>

#include "lower/lower_int.h"

struct range range_exact(i128 lo, i128 hi) {
    struct range r = {.lo = lo, .hi = hi};
    return r;
}

struct range range_bool(void) {
    return range_exact(0, 1);
}

struct range range_none(void) {
    return range_exact(0, 0);
}

struct range range_float(f64 abs_max, i32 lsb, bool may_special) {
    struct range r = {
        .abs_max = abs_max, .lsb = lsb < -1074 ? -1074 : lsb, .may_special = may_special};
    return r;
}

struct range range_of_f64(f64 value) {
    if (!(fabs(value) <= DBL_MAX)) {
        return range_float(DBL_MAX, -1074, true);
    }
    if (value == 0) {
        return range_float(0, 1023, false);
    }
    i32 exponent;
    f64 mantissa = frexp(fabs(value), &exponent);
    i32 lsb = exponent;
    while (mantissa != floor(mantissa)) {
        mantissa *= 2;
        lsb--;
    }
    return range_float(fabs(value), lsb, false);
}

static i128 sat_add(i128 a, i128 b) {
    if (b > 0 && a > I128_MAX - b) {
        return I128_MAX;
    }
    if (b < 0 && a < I128_MIN - b) {
        return I128_MIN;
    }
    return a + b;
}

static i128 sat_neg(i128 a) {
    return a == I128_MIN ? I128_MAX : -a;
}

static i128 sat_mul(i128 a, i128 b) {
    if (a == 0 || b == 0) {
        return 0;
    }
    bool negative = (a < 0) != (b < 0);
    u128 x = a < 0 ? (u128)0 - (u128)a : (u128)a;
    u128 y = b < 0 ? (u128)0 - (u128)b : (u128)b;
    if (x > (u128)I128_MAX / y) {
        return negative ? I128_MIN : I128_MAX;
    }
    return negative ? -(i128)(x * y) : (i128)(x * y);
}

struct range range_add(struct range a, struct range b) {
    ASSERT(a.lo <= a.hi && b.lo <= b.hi);
    return range_exact(sat_add(a.lo, b.lo), sat_add(a.hi, b.hi));
}

struct range range_sub(struct range a, struct range b) {
    ASSERT(a.lo <= a.hi && b.lo <= b.hi);
    return range_exact(sat_add(a.lo, sat_neg(b.hi)), sat_add(a.hi, sat_neg(b.lo)));
}

struct range range_mul(struct range a, struct range b) {
    ASSERT(a.lo <= a.hi && b.lo <= b.hi);
    i128 c[4] = {sat_mul(a.lo, b.lo), sat_mul(a.lo, b.hi), sat_mul(a.hi, b.lo),
                 sat_mul(a.hi, b.hi)};
    struct range r = range_exact(c[0], c[0]);
    for (int i = 1; i < 4; i++) {
        r.lo = MIN_OF(r.lo, c[i]);
        r.hi = MAX_OF(r.hi, c[i]);
    }
    return r;
}

/* Quotient truncated toward zero, or a remainder's bound when |b| is not known: |a| grows no
 * further. */
struct range range_div(struct range a, struct range b) {
    if (b.lo > 0) {
        i128 lo = a.lo < 0 ? a.lo / b.lo : a.lo / b.hi;
        i128 hi = a.hi < 0 ? a.hi / b.hi : a.hi / b.lo;
        return range_exact(lo, hi);
    }
    i128 most = range_abs(a);
    return range_exact(-most, most);
}

struct range range_cut(struct range a, struct range to) {
    struct range r = range_exact(MAX_OF(a.lo, to.lo), MIN_OF(a.hi, to.hi));
    return r.lo <= r.hi ? r : to;
}

bool range_fits_i128(struct range r) {
    return r.lo > I128_MIN && r.hi < I128_MAX;
}

bool range_has(struct range r, i128 value) {
    return r.lo <= value && value <= r.hi;
}

i128 range_abs(struct range r) {
    return MAX_OF(sat_neg(r.lo), r.hi);
}

enum kind kind_wider(enum kind a, enum kind b) {
    return a > b ? a : b;
}

i64 rows_mul(i64 a, i64 b) {
    if (a == 0 || b == 0) {
        return 0;
    }
    return a > ((i64)1 << 60) / b ? (i64)1 << 60 : a * b;
}
