/* fn_shortest.h: real and double as the shortest text that reads back. Kernel text (see fn_int.h);
 * needs pow10_table.h and fn_format.h.
 *
 * The shortest decimal strictly inside the interval that rounds to the value, and of those the nearest
 * one, found with one 128-bit power of ten (Giulietti's method), in the layout PostgreSQL prints. */
#ifndef WF_DEFS_FN_SHORTEST_H
#define WF_DEFS_FN_SHORTEST_H

typedef struct fn_decimal { /* digits * 10^exponent */
    u64 digits;
    i32 exponent;
} fn_decimal;

FN fn_decimal fn_decimal_of(u64 digits, i32 exponent) {
    fn_decimal d;
    d.digits = digits;
    d.exponent = exponent;
    return d;
}

/* The product's high bits, the last one set when anything below it is: enough to compare exactly. */
FN u64 fn_round_to_odd(u64 high, u64 low, u64 x) {
    u128 y = (u128)high * x + mul_high_u64(low, x);
    return (u64)(y >> 64) | (u64)((u64)y > 1);
}

/* Of c * 2^q. `uneven`: the neighbour below is only half as far as the one above. All values below
 * are in quarters of 10^k, where 10^k is just under the interval's width: so it holds one or more
 * multiples of 10^k, and at most one of 10^(k+1), which then is the shortest. */
FN_SLOW fn_decimal fn_shortest(u64 c, i32 q, b8 uneven) {
    i32 k =
        (q * 1262611 - (uneven ? 524031 : 0)) >> 22; /* log10 of 2^q, of 3/4 2^q; rounded down */
    i32 h = q + ((-k * 1741647) >> 19) + 1;          /* log2 of 10^-k */
    u64 high = pow10_table[-k - POW10_LEAST][0];
    u64 low = pow10_table[-k - POW10_LEAST][1];
    u64 lower = fn_round_to_odd(high, low, (4 * c - (uneven ? 1u : 2u)) << h) + 1;
    u64 value = fn_round_to_odd(high, low, (4 * c) << h);
    u64 upper = fn_round_to_odd(high, low, (4 * c + 2) << h) - 1;
    u64 s = value / 4;
    if (s >= 10) {
        u64 tens = s / 10;
        b8 down = (b8)(lower <= 40 * tens);
        b8 up = (b8)(40 * tens + 40 <= upper);
        if (down != up) {
            return fn_decimal_of(tens + up, k + 1);
        }
    }
    b8 down = (b8)(lower <= 4 * s);
    b8 up = (b8)(4 * s + 4 <= upper);
    if (down != up) {
        return fn_decimal_of(s + up, k);
    }
    u64 middle = 4 * s + 2;
    b8 nearer_up = (b8)(value > middle || (value == middle && (s & 1)));
    return fn_decimal_of(s + nearer_up, k);
}

/* Fixed notation while the exponent is in -4 .. fixed_limit - 1, else d.ddde+xx. */
FN_SLOW i64 fn_decimal_text(u8 *out, fn_decimal d, b8 negative, i32 fixed_limit) {
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    i32 count = (i32)fn_digits(d.digits);
    i32 exponent = d.exponent + count - 1;
    i64 n = 0;
    if (negative) {
        fn_put(out, &n, '-');
    }
    if (exponent < -4 || exponent >= fixed_limit) {
        u64 unit = fn_pow10_table[count - 1];
        fn_put(out, &n, (u8)('0' + d.digits / unit));
        if (count > 1) {
            fn_put(out, &n, '.');
            fn_put_digits(out, &n, d.digits % unit, (u32)count - 1);
        }
        fn_put(out, &n, 'e');
        fn_put(out, &n, (u8)(exponent < 0 ? '-' : '+'));
        fn_put_digits(out, &n, (u64)(exponent < 0 ? -exponent : exponent), 2);
        return n;
    }
    i32 behind = count - 1 - exponent; /* digits behind the point */
    if (behind <= 0) {
        fn_put_digits(out, &n, d.digits, 1);
        for (; behind < 0; behind++) {
            fn_put(out, &n, '0');
        }
        return n;
    }
    u64 unit = behind < 20 ? fn_pow10_table[behind] : 0; /* 0: larger than the digits */
    fn_put_digits(out, &n, unit ? d.digits / unit : 0, 1);
    fn_put(out, &n, '.');
    fn_put_digits(out, &n, unit ? d.digits % unit : d.digits, (u32)behind);
    return n;
}

/* NaN, the infinities and zeros. */
FN i64 fn_special_text(u8 *out, b8 negative, b8 zero, b8 nan) {
    i64 n = 0;
    if (negative && !nan) {
        fn_put(out, &n, '-');
    }
    fn_put_word(out, &n, zero ? 0x30ULL : nan ? 0x4e614eULL : 0x7974696e69666e49ULL); /* Infinity */
    return n;
}

FN_SLOW i64 fn_f64_text(u8 *out, f64 a) {
    u64 bits = f64_bits(a);
    u64 fraction = bits & 0xfffffffffffffULL;
    i32 biased = (i32)(bits >> 52 & 2047);
    b8 negative = (b8)(bits >> 63);
    if (biased == 2047 || bits << 1 == 0) {
        return fn_special_text(out, negative, (b8)(biased == 0), (b8)(fraction != 0));
    }
    u64 c = biased ? fraction | 1ULL << 52 : fraction;
    i32 q = (biased ? biased : 1) - 1075;
    return fn_decimal_text(out, fn_shortest(c, q, (b8)(fraction == 0 && biased > 1)), negative, 15);
}

FN_SLOW i64 fn_f32_text(u8 *out, f32 a) {
    u32 bits = f32_bits(a);
    u32 fraction = bits & 0x7fffff;
    i32 biased = (i32)(bits >> 23 & 255);
    b8 negative = (b8)(bits >> 31);
    if (biased == 255 || bits << 1 == 0) {
        return fn_special_text(out, negative, (b8)(biased == 0), (b8)(fraction != 0));
    }
    u32 c = biased ? fraction | 1u << 23 : fraction;
    i32 q = (biased ? biased : 1) - 150;
    return fn_decimal_text(out, fn_shortest(c, q, (b8)(fraction == 0 && biased > 1)), negative, 6);
}

#endif
