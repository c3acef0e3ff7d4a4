/* fn_float.h: floating-point arithmetic, comparison and keys that op.def's expressions call.
 *
 * Kernel text (see fn_int.h). PostgreSQL's rules: NaN equals itself and is greater than everything,
 * -0 equals 0, a finite operation that overflows or underflows is an error, NaN and infinities pass
 * through. Nothing here depends on the rounding mode or on fused operations. */
#ifndef WF_DEFS_FN_FLOAT_H
#define WF_DEFS_FN_FLOAT_H

FN b8 fn_isnan(f64 a) {
    return (b8)(a != a);
}

FN b8 fn_isinf_f32(f32 a) {
    return (b8)((a > 3.4028234663852886e38f) | (a < -3.4028234663852886e38f));
}

FN b8 fn_isinf_f64(f64 a) {
    return (b8)((a > 1.7976931348623157e308) | (a < -1.7976931348623157e308));
}

/* Comparison of reals promotes to double, which is exact. */
FN b8 fn_eqn(f64 a, f64 b) {
    return (b8)((a == b) | (fn_isnan(a) & fn_isnan(b)));
}

FN b8 fn_ltn(f64 a, f64 b) {
    return (b8)((a < b) | (fn_isnan(b) & (fn_isnan(a) ^ 1)));
}

FN f32 fn_addx_f32(f32 a, f32 b, u8 *f) {
    f32 r = a + b;
    *f = (u8)((fn_isinf_f32(r) & !fn_isinf_f32(a) & !fn_isinf_f32(b)) ? FAULT_FLOAT_OVERFLOW : *f);
    return r;
}

FN f32 fn_subx_f32(f32 a, f32 b, u8 *f) {
    f32 r = a - b;
    *f = (u8)((fn_isinf_f32(r) & !fn_isinf_f32(a) & !fn_isinf_f32(b)) ? FAULT_FLOAT_OVERFLOW : *f);
    return r;
}

FN f32 fn_mulx_f32(f32 a, f32 b, u8 *f) {
    f32 r = a * b;
    *f = (u8)((fn_isinf_f32(r) & !fn_isinf_f32(a) & !fn_isinf_f32(b)) ? FAULT_FLOAT_OVERFLOW : *f);
    *f = (u8)(((r == 0) & (a != 0) & (b != 0)) ? FAULT_FLOAT_UNDERFLOW : *f);
    return r;
}

/* Where the divisor is 0 the quotient is 0, so that no trap or flag is ever raised. */
FN f32 fn_div_f32(f32 a, f32 b, u8 *f) {
    b8 zero = (b8)((b == 0) & (a == a));
    f32 r = zero ? 0.0f : a / (b == 0 ? 1.0f : b);
    *f = (u8)((fn_isinf_f32(r) & !fn_isinf_f32(a)) ? FAULT_FLOAT_OVERFLOW : *f);
    *f = (u8)(((r == 0) & (a != 0) & !fn_isinf_f32(b)) ? FAULT_FLOAT_UNDERFLOW : *f);
    *f = (u8)(zero ? FAULT_DIV0 : *f);
    return r;
}

FN f64 fn_addx_f64(f64 a, f64 b, u8 *f) {
    f64 r = a + b;
    *f = (u8)((fn_isinf_f64(r) & !fn_isinf_f64(a) & !fn_isinf_f64(b)) ? FAULT_FLOAT_OVERFLOW : *f);
    return r;
}

FN f64 fn_subx_f64(f64 a, f64 b, u8 *f) {
    f64 r = a - b;
    *f = (u8)((fn_isinf_f64(r) & !fn_isinf_f64(a) & !fn_isinf_f64(b)) ? FAULT_FLOAT_OVERFLOW : *f);
    return r;
}

FN f64 fn_mulx_f64(f64 a, f64 b, u8 *f) {
    f64 r = a * b;
    *f = (u8)((fn_isinf_f64(r) & !fn_isinf_f64(a) & !fn_isinf_f64(b)) ? FAULT_FLOAT_OVERFLOW : *f);
    *f = (u8)(((r == 0) & (a != 0) & (b != 0)) ? FAULT_FLOAT_UNDERFLOW : *f);
    return r;
}

FN f64 fn_div_f64(f64 a, f64 b, u8 *f) {
    b8 zero = (b8)((b == 0) & (a == a));
    f64 r = zero ? 0.0 : a / (b == 0 ? 1.0 : b);
    *f = (u8)((fn_isinf_f64(r) & !fn_isinf_f64(a)) ? FAULT_FLOAT_OVERFLOW : *f);
    *f = (u8)(((r == 0) & (a != 0) & !fn_isinf_f64(b)) ? FAULT_FLOAT_UNDERFLOW : *f);
    *f = (u8)(zero ? FAULT_DIV0 : *f);
    return r;
}

FN f32 fn_f32_f64(f64 a, u8 *f) {
    f32 r = (f32)a;
    *f = (u8)((fn_isinf_f32(r) & !fn_isinf_f64(a)) ? FAULT_FLOAT_OVERFLOW : *f);
    *f = (u8)(((r == 0) & (a != 0)) ? FAULT_FLOAT_UNDERFLOW : *f);
    return r;
}

/* Half to even; the range is checked before converting. Adding and taking away 2^52 rounds. */
FN i64 fn_i64_f64(f64 a, u8 *f) {
    b8 fits = (b8)((a >= -9223372036854775808.0) & (a < 9223372036854775808.0));
    f64 big = a < 0 ? -4503599627370496.0 : 4503599627370496.0;
    f64 x = fits ? a : 0.0;
    f64 rounded = (x + big) - big;
    x = ((x < 4503599627370496.0) & (x > -4503599627370496.0)) ? rounded : x;
    *f = (u8)(fits ? *f : FAULT_BIGINT);
    return (i64)x;
}

/* Grouping keys: equal values have equal keys. */

FN i64 fn_key_f32(f32 a) {
    u32 bits = a == 0 ? 0u : f32_bits(a);
    return (i64)(a != a ? 0x7fc00000u : bits);
}

FN i64 fn_key_f64(f64 a) {
    u64 bits = a == 0 ? 0u : f64_bits(a);
    return (i64)(a != a ? 0x7ff8000000000000ULL : bits);
}

FN f32 fn_unkey_f32(i64 a) {
    return bits_f32((u32)a);
}

FN f64 fn_unkey_f64(i64 a) {
    return bits_f64((u64)a);
}

/* Ordering keys: negative values have their magnitude bits inverted. -0 comes before 0. */

FN i64 fn_ord_f32(f32 a) {
    i32 key = (i32)(a != a ? 0x7fc00000u : f32_bits(a));
    return (i64)(key ^ (key < 0 ? 0x7fffffff : 0));
}

FN i64 fn_ord_f64(f64 a) {
    i64 key = (i64)(a != a ? 0x7ff8000000000000ULL : f64_bits(a));
    return key ^ (key < 0 ? 0x7fffffffffffffffLL : 0LL);
}

FN f32 fn_unord_f32(i64 a) {
    i32 key = (i32)a;
    return bits_f32((u32)(key ^ (key < 0 ? 0x7fffffff : 0)));
}

FN f64 fn_unord_f64(i64 a) {
    return bits_f64((u64)(a ^ (a < 0 ? 0x7fffffffffffffffLL : 0LL)));
}

/* Exact sums. A finite a that is a multiple of 2^b is the sum over c of limb c times 2^(b + 32 c);
 * a limb is 32 bits of |a| with the sign of a, so 2^31 of them add up in 64 bits without overflow.
 */
FN i64 fn_flimb(f64 a, i32 b, i32 c) {
    u64 bits = f64_bits(a);
    i32 biased = (i32)(bits >> 52 & 2047);
    u64 mantissa = (bits & 0xfffffffffffffULL) | (biased ? 1ULL << 52 : 0ULL);
    i32 shift = (i32)((u32)(biased ? biased : 1) - 1075u - (u32)b - 32u * (u32)c);
    u64 left = shift < 32 ? mantissa << (shift & 31) : 0u;
    u64 right = shift > -64 ? mantissa >> (-shift & 63) : 0u;
    i64 limb = (i64)((shift >= 0 ? left : right) & 0xffffffffULL);
    return (i64)bits < 0 ? -limb : limb;
}

/* The same of a squared: its 106 bits start at twice the exponent of a's lowest bit. */
FN i64 fn_fsquare(f64 a, i32 b, i32 c) {
    u64 bits = f64_bits(a);
    i32 biased = (i32)(bits >> 52 & 2047);
    u64 mantissa = (bits & 0xfffffffffffffULL) | (biased ? 1ULL << 52 : 0ULL);
    u128 square = (u128)mantissa * mantissa;
    i32 shift = (i32)(2u * ((u32)(biased ? biased : 1) - 1075u) - (u32)b - 32u * (u32)c);
    u64 left = shift < 32 ? (u64)square << (shift & 31) : 0u;
    u64 right = shift > -128 ? (u64)(square >> (-shift & 127)) : 0u;
    return (i64)((shift >= 0 ? left : right) & 0xffffffffULL);
}

/* The same of a times b; c is the exponent of the sum's lowest bit times 256, and the limb. */
FN i64 fn_fproduct(f64 a, f64 b, i32 c) {
    u64 p = f64_bits(a);
    u64 q = f64_bits(b);
    i32 low = (i32)(p >> 52 & 2047);
    i32 high = (i32)(q >> 52 & 2047);
    u64 x = (p & 0xfffffffffffffULL) | (low ? 1ULL << 52 : 0ULL);
    u64 y = (q & 0xfffffffffffffULL) | (high ? 1ULL << 52 : 0ULL);
    u128 product = (u128)x * y;
    i32 shift = (low ? low : 1) + (high ? high : 1) - 2150 - (c >> 8) - 32 * (c & 255);
    u64 left = shift < 32 ? (u64)product << (shift & 31) : 0u;
    u64 right = shift > -128 ? (u64)(product >> (-shift & 127)) : 0u;
    i64 limb = (i64)((shift >= 0 ? left : right) & 0xffffffffULL);
    return (i64)(p ^ q) < 0 ? -limb : limb;
}

/* The end of a frame: b further than a. From an infinity as far back as the other one is all there
 * is: up to the greatest value, or from the least, by c. */
FN f64 fn_frame_end(f64 a, f64 b, i32 c) {
    f64 r = a + b;
    b8 all = (b8)((r != r) & (a == a) & (b == b));
    f64 end = c ? (a > 0.0 ? a : b) : (a > 0.0 ? b : a);
    return all ? end : r;
}

FN b8 fn_finite(f64 a) {
    return (b8)((a <= 1.7976931348623157e308) & (a >= -1.7976931348623157e308));
}

#endif
