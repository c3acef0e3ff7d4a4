/* fn_math.h: whole numbers and decimals: divisors, rounding, buckets. Kernel text (see fn_int.h);
 * doubles are in fn_real.h. Faults as in PostgreSQL. */
#ifndef WF_DEFS_FN_MATH_H
#define WF_DEFS_FN_MATH_H

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
