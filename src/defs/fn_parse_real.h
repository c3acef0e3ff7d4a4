/* fn_parse_real.h: real and double from text, rounded correctly. Kernel text (see fn_int.h); needs
 * fn_parse.h, fn_fround.h, fn_variance.h (numbers of many digits) and pow10_table.h.
 *
 * Where digits and power of ten are exact doubles, one division rounds correctly. Otherwise 64 bits of
 * digits are multiplied by 128 of a power of ten, which are at most one unit too large: mostly that
 * tells how to round. What is left is computed exactly. */
#ifndef WF_DEFS_FN_PARSE_REAL_H
#define WF_DEFS_FN_PARSE_REAL_H

/* A double never needs more: what follows can only break a tie, which one bit does. */
#define REAL_DIGITS_KEPT 780
#define REAL_BIG_DIGITS 160 /* of 32 bits, for 10^1180 and a quotient */

/* [-]digits[.digits], short enough to be exact: what files mostly hold. 0 says nothing. */
FN b8 fn_read_plain(const u8 *p, const u8 *end, f64 *out) {
    b8 negative = (b8)(p < end && *p == '-');
    p += negative;
    if (end - p > 18 || p == end || !fn_is_digit(*p)) {
        return 0;
    }
    u64 m = 0;
    u32 fraction = 0;
    p = fn_read_digits(p, end, &m);
    if (p < end && *p == '.') {
        const u8 *first = ++p;
        p = fn_read_digits(p, end, &m);
        fraction = (u32)(p - first);
    }
    if (p != end || m > 1ULL << 53) {
        return 0;
    }
    f64 x = (f64)m / (f64)fn_pow10_table[fraction]; /* powers up to 10^18 are exact */
    *out = negative ? -x : x;
    return 1;
}

/* IEEE bits of m * 10^e, as fn_float_bits gives them; 0 when two answers are possible. */
FN_SLOW b8 fn_round_quick(u64 m, i32 e, i32 digits, i32 least, u64 *out) {
    if (e < POW10_LEAST || e > POW10_MOST) {
        return 0;
    }
    u32 up = zeros_above_u64(m);
    u64 w = m << up;
    u64 high = pow10_table[e - POW10_LEAST][0];
    u64 low = pow10_table[e - POW10_LEAST][1];
    u128 product = (u128)high * w + mul_high_u64(low, w);
    i32 bottom =
        ((e * 1741647) >> 19) - 127 + 64 - (i32)up; /* exponent of the product's last bit */
    if (!(product >> 127)) {
        product <<= 1;
        bottom--;
    }
    /* The number is less than two units away from it, on either side. */
    u64 top = (u64)(product >> 64);
    *out = fn_float_bits(top, 1, bottom + 64, digits, least);
    return (b8)(top == (u64)((product - 2) >> 64) && top == (u64)((product + 2) >> 64));
}

FN void fn_big_append(fn_big *x, u32 by, u32 more) { /* x = x * by + more */
    u64 carry = more;
    for (i32 i = 0; i < x->count; i++) {
        carry += (u64)x->digit[i] * by;
        x->digit[i] = (u32)carry;
        carry >>= 32;
    }
    if (carry) {
        x->digit[x->count++] = (u32)carry;
    }
}

/* The same exactly, of any number of digits; its exponent is within 400 of 0. */
FN_SLOW u64 fn_round_exact(const fn_number *n, i32 digits, i32 least) {
    u32 room[REAL_BIG_DIGITS];
    fn_big x;
    x.digit = room;
    x.count = 0;
    const u8 *p = n->digits;
    i64 kept = n->digit_count < REAL_DIGITS_KEPT ? n->digit_count : REAL_DIGITS_KEPT;
    b8 sticky = 0;
    for (i64 i = 0; i < kept; i++) {
        fn_big_append(&x, 10, fn_next_digit(&p));
    }
    for (i64 i = kept; i < n->digit_count && !sticky; i++) {
        sticky = (b8)(fn_next_digit(&p) != 0);
    }
    i32 e = (i32)(n->exponent - kept);
    i32 up = 0;
    for (i32 left = e; left > 0; left -= 9) {
        fn_big_append(&x, left < 9 ? (u32)fn_pow10_table[left] : 1000000000u, 0);
    }
    if (e < 0) {
        up = 68 - e * 10 / 3 - fn_big_bits(&x); /* log2(10) is less than 10 / 3 */
        up = up < 0 ? 0 : up;
        fn_big_shift(&x, up);
    }
    for (i32 left = -e; left > 0; left -= 19) {
        sticky |= fn_big_divide(&x, fn_pow10_table[left < 19 ? left : 19]);
    }
    i32 bits = fn_big_bits(&x);
    i32 drop = bits > 64 ? bits - 64 : 0;
    u64 top = fn_big_at(&x, drop) << (bits < 64 ? 64 - bits : 0);
    sticky |= fn_big_any_below(&x, drop);
    return fn_float_bits(top, sticky, bits - 64 - up, digits, least);
}

/* IEEE bits of a finite number other than zero. */
FN u64 fn_round_number(const fn_number *n, i32 digits, i32 least) {
    u64 bits = 0;
    if (n->digit_count <= 19) {
        u64 m = 0;
        const u8 *p = n->digits;
        for (i64 i = 0; i < n->digit_count; i++) {
            m = m * 10 + fn_next_digit(&p);
        }
        if (fn_round_quick(m, (i32)(n->exponent - n->digit_count), digits, least, &bits)) {
            return bits;
        }
    }
    return fn_round_exact(n, digits, least);
}

/* `infinity`: the bits of it in a format of `digits` bits of precision, its least number 2^least. */
FN_SLOW u8 fn_read_real(const u8 *p, const u8 *end, i32 digits, i32 least, u64 infinity, u64 *out) {
    fn_number n;
    u64 sign = infinity + (1ULL << (digits - 1));
    fn_trim_space(&p, &end);
    if (!fn_scan_number(p, end, &n)) {
        i32 special = fn_scan_special(p, end);
        *out = special == 1 ? infinity | 1ULL << (digits - 2) : infinity | (special < 0 ? sign : 0);
        return (u8)(special ? 0 : FAULT_TEXT_NUM);
    }
    u64 bits = 0;
    if (n.digit_count) {
        if (n.exponent > 400 || n.exponent < -400) {
            return (u8)(n.exponent > 0 ? FAULT_FLOAT_OVERFLOW : FAULT_FLOAT_UNDERFLOW);
        }
        bits = fn_round_number(&n, digits, least);
        if (bits == 0 || bits >= infinity) {
            return (u8)(bits ? FAULT_FLOAT_OVERFLOW : FAULT_FLOAT_UNDERFLOW);
        }
    }
    *out = bits | (n.negative ? sign : 0);
    return 0;
}

FN u8 fn_read_f64(const u8 *p, const u8 *end, f64 *out) {
    u64 bits = 0;
    if (fn_read_plain(p, end, out)) {
        return 0;
    }
    u8 fault = fn_read_real(p, end, 53, -1074, 0x7ff0000000000000ULL, &bits);
    *out = fault ? *out : bits_f64(bits);
    return fault;
}

FN u8 fn_read_f32(const u8 *p, const u8 *end, f32 *out) {
    u64 bits = 0;
    u8 fault = fn_read_real(p, end, 24, -149, 0x7f800000ULL, &bits);
    *out = fault ? *out : bits_f32((u32)bits);
    return fault;
}

FN f64 fn_parse_f64(str a, u8 *f) {
    f64 value = 0;
    u8 fault = fn_read_f64(fn_str_ptr(a), fn_str_ptr(a) + a.len, &value);
    *f = fault ? fault : *f;
    return value;
}

FN f32 fn_parse_f32(str a, u8 *f) {
    f32 value = 0;
    u8 fault = fn_read_f32(fn_str_ptr(a), fn_str_ptr(a) + a.len, &value);
    *f = fault ? fault : *f;
    return value;
}

#endif
