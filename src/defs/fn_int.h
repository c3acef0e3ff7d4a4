/* fn_int.h: integer and decimal arithmetic that op.def's expressions call.
 *
 * Kernel text: compiles as C11 and as CUDA C, includes nothing, and is written in the words of the
 * prelude (host_words.h on the CPU). A body that can fail sets *f to a fault number and returns a
 * harmless value; it never traps, so inactive rows may hold anything. i128 holds decimals: its
 * checked operations fault when the result has more than 38 digits. */
#ifndef WF_DEFS_FN_INT_H
#define WF_DEFS_FN_INT_H

CONST_TABLE u64 fn_pow10_table[20] = {1ULL,
                                      10ULL,
                                      100ULL,
                                      1000ULL,
                                      10000ULL,
                                      100000ULL,
                                      1000000ULL,
                                      10000000ULL,
                                      100000000ULL,
                                      1000000000ULL,
                                      10000000000ULL,
                                      100000000000ULL,
                                      1000000000000ULL,
                                      10000000000000ULL,
                                      100000000000000ULL,
                                      1000000000000000ULL,
                                      10000000000000000ULL,
                                      100000000000000000ULL,
                                      1000000000000000000ULL,
                                      10000000000000000000ULL};

FN u128 fn_pow10(i32 n) { /* n in 0 to 38 */
    return n < 20 ? (u128)fn_pow10_table[n] : (u128)fn_pow10_table[19] * fn_pow10_table[n - 19];
}

/* The same for any n: 1 where no decimal has so many digits. */
FN u128 fn_pow10_any(i32 n) {
    return (u32)n <= 38u ? fn_pow10(n) : (u128)1;
}

FN u128 fn_dec_limit(void) { /* 10^38: no decimal reaches it */
    return (u128)10000000000000000000ULL * 10000000000000000000ULL;
}

FN u128 fn_abs_i128(i128 a) {
    return a < 0 ? (u128)0 - (u128)a : (u128)a;
}

FN i128 fn_signed(u128 magnitude, b8 negative) {
    return (i128)(negative ? (u128)0 - magnitude : magnitude);
}

/* a / b, half away from zero; b > 0 */

FN i32 fn_rounddiv_i32(i32 a, i32 b) {
    u32 d = b > 0 ? (u32)b : 1u;
    u32 m = a < 0 ? 0u - (u32)a : (u32)a;
    u32 q = m / d;
    u32 r = m - q * d;
    q += (u32)(r >= d - r);
    return (i32)(a < 0 ? 0u - q : q);
}

FN i64 fn_rounddiv_i64(i64 a, i64 b) {
    u64 d = b > 0 ? (u64)b : 1u;
    u64 m = a < 0 ? 0u - (u64)a : (u64)a;
    u64 q = m / d;
    u64 r = m - q * d;
    q += (u64)(r >= d - r);
    return (i64)(a < 0 ? 0u - q : q);
}

FN_SLOW i128 fn_rounddiv_i128(i128 a, i128 b) {
    u128 d = b > 0 ? (u128)b : 1u;
    u128 m = fn_abs_i128(a);
    u128 q = m / d;
    u128 r = m - q * d;
    q += (u128)(r >= d - r);
    return fn_signed(q, (b8)(a < 0));
}

/* checked sums, differences, products */

FN i32 fn_addx_i32(i32 a, i32 b, u8 *f) {
    i32 r = (i32)((u32)a + (u32)b);
    *f = (u8)(((a ^ r) & (b ^ r)) < 0 ? FAULT_INTEGER : *f);
    return r;
}

FN i32 fn_subx_i32(i32 a, i32 b, u8 *f) {
    i32 r = (i32)((u32)a - (u32)b);
    *f = (u8)(((a ^ b) & (a ^ r)) < 0 ? FAULT_INTEGER : *f);
    return r;
}

FN i32 fn_mulx_i32(i32 a, i32 b, u8 *f) {
    i64 wide = (i64)a * b;
    i32 r = (i32)wide;
    *f = (u8)(wide != (i64)r ? FAULT_INTEGER : *f);
    return r;
}

FN i64 fn_addx_i64(i64 a, i64 b, u8 *f) {
    i64 r = (i64)((u64)a + (u64)b);
    *f = (u8)(((a ^ r) & (b ^ r)) < 0 ? FAULT_BIGINT : *f);
    return r;
}

FN i64 fn_subx_i64(i64 a, i64 b, u8 *f) {
    i64 r = (i64)((u64)a - (u64)b);
    *f = (u8)(((a ^ b) & (a ^ r)) < 0 ? FAULT_BIGINT : *f);
    return r;
}

FN i64 fn_mulx_i64(i64 a, i64 b, u8 *f) {
    u64 low = (u64)a * (u64)b;
    u64 high = mul_high_u64((u64)a, (u64)b);
    high -= a < 0 ? (u64)b : 0u; /* from the unsigned product to the signed one */
    high -= b < 0 ? (u64)a : 0u;
    *f = (u8)(high != ((i64)low < 0 ? ~0ULL : 0ULL) ? FAULT_BIGINT : *f);
    return (i64)low;
}

FN b8 fn_dec_wide(i128 a) { /* has more than 38 digits */
    return (b8)(fn_abs_i128(a) >= fn_dec_limit());
}

FN i128 fn_addx_i128(i128 a, i128 b, u8 *f) {
    i128 r = (i128)((u128)a + (u128)b);
    b8 bad = (b8)((((a ^ r) & (b ^ r)) < 0) | fn_dec_wide(r));
    *f = (u8)(bad ? FAULT_DECIMAL : *f);
    return bad ? (i128)0 : r;
}

FN i128 fn_subx_i128(i128 a, i128 b, u8 *f) {
    i128 r = (i128)((u128)a - (u128)b);
    b8 bad = (b8)((((a ^ b) & (a ^ r)) < 0) | fn_dec_wide(r));
    *f = (u8)(bad ? FAULT_DECIMAL : *f);
    return bad ? (i128)0 : r;
}

FN i128 fn_mulx_i128(i128 a, i128 b, u8 *f) {
    u128 x = fn_abs_i128(a);
    u128 y = fn_abs_i128(b);
    u64 x1 = (u64)(x >> 64);
    u64 y1 = (u64)(y >> 64);
    /* Of the two cross products at least one is 0, or the result is far too wide. */
    u128 cross = (u128)x1 * (u64)y + (u128)(u64)x * y1;
    u128 low = (u128)(u64)x * (u64)y;
    u128 high = cross + (low >> 64);
    u128 m = (high << 64) | (u64)low;
    b8 bad = (b8)(((x1 != 0) & (y1 != 0)) | ((cross >> 64) != 0) | ((high >> 64) != 0) |
                  (m >= fn_dec_limit()));
    *f = (u8)(bad ? FAULT_DECIMAL : *f);
    return bad ? (i128)0 : fn_signed(m, (b8)((a < 0) != (b < 0)));
}

/* quotients and remainders; the divisor is replaced where it would trap */

FN i32 fn_step_sign(i32 a, u8 *f) {
    *f = (u8)(a == 0 ? FAULT_STEP_ZERO : *f);
    return a;
}

FN i32 fn_div_i32(i32 a, i32 b, u8 *f) {
    b8 over = (b8)((a == I32_MIN) & (b == -1));
    *f = (u8)(b == 0 ? FAULT_DIV0 : over ? FAULT_INTEGER : *f);
    return a / (((b == 0) | over) ? 1 : b);
}

FN i64 fn_div_i64(i64 a, i64 b, u8 *f) {
    b8 over = (b8)((a == I64_MIN) & (b == -1));
    *f = (u8)(b == 0 ? FAULT_DIV0 : over ? FAULT_BIGINT : *f);
    return a / (((b == 0) | over) ? 1 : b);
}

FN i128 fn_div_i128(i128 a, i128 b, u8 *f) {
    b8 over = (b8)((a == I128_MIN) & (b == -1));
    *f = (u8)(b == 0 ? FAULT_DIV0 : over ? FAULT_DECIMAL : *f);
    return a / (((b == 0) | over) ? (i128)1 : b);
}

FN i32 fn_mod_i32(i32 a, i32 b, u8 *f) {
    *f = (u8)(b == 0 ? FAULT_DIV0 : *f);
    return a % (((b == 0) | (b == -1)) ? 1 : b);
}

FN i64 fn_mod_i64(i64 a, i64 b, u8 *f) {
    *f = (u8)(b == 0 ? FAULT_DIV0 : *f);
    return a % (((b == 0) | (b == -1)) ? 1 : b);
}

FN i128 fn_mod_i128(i128 a, i128 b, u8 *f) {
    *f = (u8)(b == 0 ? FAULT_DIV0 : *f);
    return a % (((b == 0) | (b == -1)) ? (i128)1 : b);
}

/* a where lo <= a <= hi; else the fault, and lo, so that narrowing afterwards is defined */

FN i64 fn_check(i64 a, i64 lo, i64 hi, u8 fault, u8 *f) {
    b8 bad = (b8)((a < lo) | (a > hi));
    *f = bad ? fault : *f;
    return bad ? lo : a;
}

FN i128 fn_check128(i128 a, i128 lo, i128 hi, u8 fault, u8 *f) {
    b8 bad = (b8)((a < lo) | (a > hi));
    *f = bad ? fault : *f;
    return bad ? lo : a;
}

/* Nearest double. The top 64 bits, with everything below folded into the last, round as the whole.
 */
FN f64 fn_f64_i128(i128 a) {
    u128 m = fn_abs_i128(a);
    u64 high = (u64)(m >> 64);
    u32 shift = 64 - zeros_above_u64(high); /* bits that do not fit 64 */
    u128 cut = m >> shift;
    u64 top = (u64)cut | (u64)((cut << shift) != m);
    f64 r = (f64)top * bits_f64((u64)(1023 + shift) << 52);
    return a < 0 ? -r : r;
}

/* 256-bit helpers for exact quotients */

typedef struct fn_u256 {
    u128 hi;
    u128 lo;
} fn_u256;

FN fn_u256 fn_mul_u128(u128 x, u128 y) {
    u64 x0 = (u64)x;
    u64 x1 = (u64)(x >> 64);
    u64 y0 = (u64)y;
    u64 y1 = (u64)(y >> 64);
    u128 low = (u128)x0 * y0;
    u128 mid = (u128)x1 * y0 + (low >> 64);
    u128 mid2 = (u128)x0 * y1 + (u64)mid;
    fn_u256 r;
    r.hi = (u128)x1 * y1 + (mid >> 64) + (mid2 >> 64);
    r.lo = (mid2 << 64) | (u64)low;
    return r;
}

/* One 64-bit digit of a quotient: (rem : digit) / d, for rem < d and d with its top bit set. The
 * estimate from the top halves is at most two too large. *rem becomes the remainder. */
FN u64 fn_div_digit(u128 *rem, u64 digit, u128 d) {
    u64 d1 = (u64)(d >> 64);
    u64 d0 = (u64)d;
    u128 q = (u64)(*rem >> 64) >= d1 ? (u128)~0ULL : *rem / d1;
    u128 left = *rem - q * d1;
    while ((left >> 64) == 0 && q * d0 > ((left << 64) | digit)) {
        q--;
        left += d1;
    }
    *rem = (*rem << 64 | digit) - q * d; /* wraps; the true difference fits */
    return (u64)q;
}

/* n / d for n.hi < d; *rem = remainder. */
FN_SLOW u128 fn_div_u256(fn_u256 n, u128 d, u128 *rem) {
    u64 top = (u64)(d >> 64);
    u32 shift = top ? zeros_above_u64(top) : 64 + zeros_above_u64((u64)d);
    u128 r = n.hi;
    u128 low = n.lo;
    if (shift) {
        d <<= shift;
        r = (r << shift) | (low >> (128 - shift));
        low <<= shift;
    }
    u64 q1 = fn_div_digit(&r, (u64)(low >> 64), d);
    u64 q0 = fn_div_digit(&r, (u64)low, d);
    *rem = r >> shift;
    return ((u128)q1 << 64) | q0;
}

/* a * 10^c / b, half away from zero, exact; c in 0 to 38. */
FN_SLOW i128 fn_divdec(i128 a, i128 b, i32 c, u8 *f) {
    u128 x = fn_abs_i128(a);
    u128 y = fn_abs_i128(b);
    u128 power = fn_pow10_any(c);
    u128 q = 0;
    u128 rem = 0;
    if (y == 0) {
        *f = FAULT_DIV0;
        return 0;
    }
    if ((u64)(x >> 64) == 0 && (u64)(power >> 64) == 0) {
        u128 n = x * power;
        q = n / y;
        rem = n - q * y;
    } else {
        fn_u256 n = fn_mul_u128(x, power);
        if (n.hi >= y) {
            *f = FAULT_DECIMAL;
            return 0;
        }
        q = fn_div_u256(n, y, &rem);
    }
    if (q >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    q += (u128)(rem >= y - rem);
    if (q >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return fn_signed(q, (b8)((a < 0) != (b < 0)));
}

/* a * b / 10^c, half away from zero, exact; c in 0 to 38. */
FN_SLOW i128 fn_muldec(i128 a, i128 b, i32 c, u8 *f) {
    u128 d = fn_pow10_any(c);
    fn_u256 n = fn_mul_u128(fn_abs_i128(a), fn_abs_i128(b));
    u128 rem = 0;
    if (n.hi >= d) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    u128 q = fn_div_u256(n, d, &rem);
    if ((q < fn_dec_limit()) & (c > 0) & (rem >= d - rem)) {
        q++;
    }
    if (q >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return fn_signed(q, (b8)((a < 0) != (b < 0)));
}

/* a * 10^c, or a number beyond all decimals where that is one; c in 0 to 38. */
FN_SLOW i128 fn_scaledec(i128 a, i32 c) {
    fn_u256 n = fn_mul_u128(fn_abs_i128(a), fn_pow10_any(c));
    return fn_signed((n.hi != 0) | (n.lo > fn_dec_limit()) ? fn_dec_limit() : n.lo, (b8)(a < 0));
}

/* a * 10^c / b, toward zero, exact; c in -38 to 38. */
FN_SLOW i128 fn_quodec(i128 a, i128 b, i32 c, u8 *f) {
    fn_u256 n = fn_mul_u128(fn_abs_i128(a), fn_pow10_any(c < 0 ? 0 : c));
    fn_u256 d = fn_mul_u128(fn_abs_i128(b), fn_pow10_any(c < 0 ? -c : 0));
    u128 rem = 0;
    if (b == 0) {
        *f = FAULT_DIV0;
        return 0;
    }
    if (d.hi != 0) { /* n is less than 10^38 then */
        return 0;
    }
    u128 q = n.hi >= d.lo ? fn_dec_limit() : fn_div_u256(n, d.lo, &rem);
    if (q >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return fn_signed(q, (b8)((a < 0) != (b < 0)));
}

/* Remainder of a * 10^c / b, exact, with the sign of a; c in 0 to 38. */
FN_SLOW i128 fn_moddec(i128 a, i128 b, i32 c, u8 *f) {
    u128 d = fn_abs_i128(b);
    u128 rem = 0;
    if (d == 0) {
        *f = FAULT_DIV0;
        return 0;
    }
    fn_u256 n = fn_mul_u128(fn_abs_i128(a) % d, fn_pow10_any(c));
    (void)fn_div_u256(n, d, &rem);
    return fn_signed(rem, (b8)(a < 0));
}

/* mantissa * 2^exponent / 10^k to the nearest integer, ties to even. The callers' ranges keep every
 * intermediate within 256 bits: k >= 0 needs exponent >= -8, k < 0 needs -k <= 56 and exponent < 0.
 */
FN u64 fn_scale10(u64 mantissa, i32 exponent, i32 k) {
    u128 q, rem, half;
    b8 tie_free;
    if (k >= 0) {
        u128 n = exponent > 0 ? (u128)mantissa << exponent : (u128)mantissa;
        u128 d = exponent < 0 ? fn_pow10(k) << -exponent : fn_pow10(k);
        q = n / d;
        rem = n - q * d;
        half = d - rem; /* remainder above half when rem > d - rem */
        tie_free = (b8)(rem != half);
        return (u64)q + (u64)(tie_free ? rem > half : (b8)(q & 1));
    }
    i32 first = -k < 19 ? -k : 19;
    fn_u256 n = fn_mul_u128((u128)mantissa * fn_pow10_table[first], fn_pow10(-k - first));
    u32 shift = (u32)-exponent;
    u128 below, point; /* bits shifted out, and the half among them, in one 128-bit window */
    b8 sticky = 0;
    if (shift < 128) {
        q = n.lo >> shift | (shift ? n.hi << (128 - shift) : (u128)0);
        point = shift ? (u128)1 << (shift - 1) : (u128)0;
        below = n.lo & (point ? point * 2 - 1 : (u128)0);
    } else {
        u32 s = shift - 128;
        q = s < 128 ? n.hi >> s : (u128)0;
        point = s ? (u128)1 << (s - 1) : (u128)0;
        below = s ? n.hi & (point * 2 - 1) : n.lo >> 127;
        sticky = (b8)(s ? n.lo != 0 : (n.lo << 1) != 0);
        point = s ? point : (u128)1;
    }
    b8 up = (b8)(below > point || (below == point && point != 0 && (sticky || (q & 1))));
    return (u64)q + up;
}

/* |a| as `digits` significant decimal digits, the way PostgreSQL casts floats to numeric, then at
 * `scale`, half away from zero. */
FN_SLOW i128 fn_dec_digits(f64 a, i32 scale, i32 digits, u8 *f) {
    u64 bits = f64_bits(a);
    b8 negative = (b8)(bits >> 63);
    f64 x = negative ? -a : a;
    i32 exponent = (i32)(bits >> 52 & 2047) - 1075;
    u64 mantissa = (bits & 0xfffffffffffffULL) | 1ULL << 52;
    if (!(x < 1e38)) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    /* floor(log10(x)) or one less, from the binary exponent */
    i32 magnitude = (i32)(((i64)(exponent + 52) * 315653) >> 20);
    if (x == 0 || magnitude + scale + 3 <= 0) {
        return 0;
    }
    i32 k = magnitude - digits + 1;
    u64 n = fn_scale10(mantissa, exponent, k);
    if (n >= fn_pow10_table[digits]) {
        k++;
        n = fn_scale10(mantissa, exponent, k);
    }
    i32 shift = k + scale;
    if (shift + digits > 38) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    if (shift >= 0) {
        return fn_signed(n * fn_pow10(shift), negative);
    }
    if (shift < -18) {
        return 0;
    }
    u64 d = fn_pow10_table[-shift];
    return fn_signed((n + d / 2) / d, negative);
}

FN i128 fn_dec_f64(f64 a, i32 scale, u8 *f) {
    return fn_dec_digits(a, scale, 15, f);
}

FN i128 fn_dec_f32(f32 a, i32 scale, u8 *f) {
    return fn_dec_digits((f64)a, scale, 6, f);
}

FN i64 fn_limit(i64 a, u8 *f) {
    *f = (u8)(a < 0 ? FAULT_LIMIT : *f);
    return a;
}

FN i64 fn_offset(i64 a, u8 *f) {
    *f = (u8)(a < 0 ? FAULT_OFFSET : *f);
    return a;
}

/* Random numbers: a function of a seed, the row and the call's place in the statement. */

FN u64 fn_mix(u64 x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}
FN i64 fn_mix_pair(i64 a, i64 b) { /* of one a: one to one */
    return (i64)fn_mix(fn_mix((u64)a + 0x9e3779b97f4a7c15ULL) ^ (u64)b);
}

FN u64 fn_random_bits(i64 seed, i64 row, i32 call) {
    u64 x = fn_mix((u64)seed + 0x9e3779b97f4a7c15ULL * ((u64)row + 1));
    return fn_mix(x + 0xd1342543de82ef95ULL * (u64)((u32)call + 1u));
}

FN f64 fn_random(i64 seed, i64 row, i32 call) {
    return (f64)(i64)(fn_random_bits(seed, row, call) >> 11) / 9007199254740992.0;
}

#endif
