/* fn_variance.h: variance and standard deviation from exact sums. Kernel text (see fn_int.h); needs
 * fn_int.h.
 *
 * With n values, their sum S and the sum Q of their squares, all exact, the variance is
 * (n Q - S S) / (n (n - 1)), or / (n n) of a population. The numerator is computed without
 * rounding, as a number of many 32-bit digits, and so neither order nor cancellation matter; one
 * division, one root and one rounding follow. The sums are integers times a power of two (floats)
 * or of ten (decimals). Two sums S and T, and that of the products, give in the same way
 * (n Q - S T) / n: the sum of the products of the distances from the means, which may be
 * negative. */
#ifndef WF_DEFS_FN_VARIANCE_H
#define WF_DEFS_FN_VARIANCE_H

#define VARIANCE_NUMBERS \
    3 /* at work at a time, of `digits` each: as many as the words of the squares, */
#define VARIANCE_SPARE 32 /* or twice those of a sum, and these, to scale them */

typedef struct fn_big { /* not negative */
    u32 *digit;         /* of 32 bits, low to high */
    i32 count;          /* none above is set */
} fn_big;

/* VARIANCE's literal. */
typedef struct fn_how {
    i32 spacing, scale;
    b8 population, root;
    i32 n2;    /* words of the second sum; 0: there is none */
    i32 shift; /* floats: exponent of the sum's lowest bit, or of the products' where there is a
                * second sum; decimals: scale of the values */
} fn_how;

FN fn_how fn_how_of(i64 lit) {
    fn_how h;
    h.spacing = (i32)(lit & 0xff);
    h.scale = (i32)(lit >> 16 & 0xff);
    h.population = (b8)(lit >> 8 & 1);
    h.root = (b8)(lit >> 9 & 1);
    h.n2 = (i32)(lit >> 24 & 0xff);
    h.shift = (i32)((u64)lit >> 32);
    return h;
}

FN void fn_big_trim(fn_big *x) {
    while (x->count > 0 && x->digit[x->count - 1] == 0) {
        x->count--;
    }
}

/* Words `spacing` bits apart, low to high, overlapping and signed. The magnitude of their sum;
 * whether it is negative. */
FN_SLOW b8 fn_big_words(fn_big *out, const i64 *words, i32 count, i32 spacing) {
    i128 carry = 0;
    for (i32 i = 0; i < count; i++) {
        carry = (carry + words[i]) >> spacing;
    }
    b8 negative = (b8)(carry < 0);
    i32 per = 32 / spacing;
    carry = 0;
    out->count = 0;
    for (i32 i = 0; i < count || carry != 0; i++) {
        i128 word = i < count ? (i128)words[i] : (i128)0;
        carry += negative ? -word : word;
        u32 part = (u32)((u64)carry & ((1ULL << spacing) - 1));
        carry >>= spacing;
        if (i % per == 0) {
            out->digit[out->count++] = 0;
        }
        out->digit[i / per] |= part << (i % per * spacing);
    }
    fn_big_trim(out);
    return negative;
}

FN_SLOW void fn_big_scale(fn_big *x, u64 by) {
    u128 carry = 0;
    u32 low = (u32)by;
    u32 high = (u32)(by >> 32);
    u32 before = 0; /* the digit below, as it was */
    i32 end = x->count + 3;
    for (i32 i = 0; i < end; i++) {
        u32 digit = i < x->count ? x->digit[i] : 0;
        carry += (u128)digit * low + (u128)before * high;
        before = digit;
        x->digit[i] = (u32)carry;
        carry >>= 32;
    }
    x->count = end;
    fn_big_trim(x);
}

FN_SLOW void fn_big_multiply(fn_big *out, const fn_big *x, const fn_big *y) {
    out->count = x->count + y->count;
    for (i32 i = 0; i < out->count; i++) {
        out->digit[i] = 0;
    }
    for (i32 i = 0; i < x->count; i++) {
        u64 carry = 0;
        for (i32 j = 0; j < y->count; j++) {
            u64 sum = out->digit[i + j] + (u64)y->digit[j] * x->digit[i] + carry;
            out->digit[i + j] = (u32)sum;
            carry = sum >> 32;
        }
        out->digit[i + y->count] = (u32)carry;
    }
    fn_big_trim(out);
}

FN_SLOW i32 fn_big_compare(const fn_big *x, const fn_big *y) {
    i32 cmp = x->count - y->count;
    for (i32 i = x->count; cmp == 0 && i-- > 0;) {
        cmp = (i32)(x->digit[i] > y->digit[i]) - (i32)(x->digit[i] < y->digit[i]);
    }
    return cmp;
}

FN_SLOW void fn_big_add(fn_big *x, const fn_big *y) {
    u64 carry = 0;
    i32 end = (x->count > y->count ? x->count : y->count) + 1;
    for (i32 i = 0; i < end; i++) {
        carry += (i < x->count ? (u64)x->digit[i] : 0) + (i < y->count ? (u64)y->digit[i] : 0);
        x->digit[i] = (u32)carry;
        carry >>= 32;
    }
    x->count = end;
    fn_big_trim(x);
}

/* out = x - y, where x >= y; out may be one of them. */
FN_SLOW void fn_big_subtract(fn_big *out, const fn_big *x, const fn_big *y) {
    i64 borrow = 0;
    i32 end = x->count;
    for (i32 i = 0; i < end; i++) {
        i64 diff = (i64)x->digit[i] - (i < y->count ? (i64)y->digit[i] : 0) + borrow;
        out->digit[i] = (u32)diff;
        borrow = diff < 0 ? -1 : 0;
    }
    out->count = end;
    fn_big_trim(out);
}

/* x /= by; whether there was a remainder. */
FN_SLOW b8 fn_big_divide(fn_big *x, u64 by) {
    u128 rest = 0;
    for (i32 i = x->count; i-- > 0;) {
        rest = rest << 32 | x->digit[i];
        u64 quotient = rest >> 64 ? (u64)(rest / by) : (u64)rest / by; /* below 2^32 */
        x->digit[i] = (u32)quotient;
        rest -= (u128)quotient * by;
    }
    fn_big_trim(x);
    return (b8)(rest != 0);
}

FN_SLOW void fn_big_shift(fn_big *x, i32 bits) { /* up */
    i32 digits = bits / 32;
    i32 rest = bits % 32;
    for (i32 i = x->count + digits; i >= 0; i--) {
        u64 high = i - digits >= 0 && i - digits < x->count ? x->digit[i - digits] : 0;
        u64 low = i - digits - 1 >= 0 && i - digits - 1 < x->count ? x->digit[i - digits - 1] : 0;
        x->digit[i] = (u32)((high << 32 | low) << rest >> 32);
    }
    x->count += digits + 1;
    fn_big_trim(x);
}

FN i32 fn_big_bits(const fn_big *x) {
    return x->count == 0 ? 0 : 32 * x->count - ((i32)zeros_above_u64(x->digit[x->count - 1]) - 32);
}

FN u64 fn_big_digit(const fn_big *x, i32 at) {
    return at < x->count ? x->digit[at] : 0;
}

FN u64 fn_big_at(const fn_big *x, i32 from) { /* 64 bits */
    i32 at = from / 32;
    u64 low = fn_big_digit(x, at) | fn_big_digit(x, at + 1) << 32;
    i32 rest = from % 32;
    return rest ? low >> rest | fn_big_digit(x, at + 2) << (64 - rest) : low;
}

FN_SLOW b8 fn_big_any_below(const fn_big *x, i32 bit) {
    for (i32 i = 0; i < x->count && 32 * i < bit; i++) {
        u32 mask = bit - 32 * i >= 32 ? 0xffffffffu : (1u << (bit - 32 * i)) - 1;
        if (x->digit[i] & mask) {
            return 1;
        }
    }
    return 0;
}

/* The largest r with r r <= x, x below 2^256; *exact when equal. */
FN_SLOW u128 fn_big_root(const fn_big *x, b8 *exact) {
    u32 root_digits[4];
    u32 square_digits[8];
    fn_big root;
    fn_big square;
    u128 r = 0;
    root.digit = root_digits;
    square.digit = square_digits;
    *exact = 0;
    for (i32 bit = (fn_big_bits(x) - 1) / 2; bit >= 0; bit--) {
        u128 more = r | (u128)1 << bit;
        for (i32 i = 0; i < 4; i++) {
            root_digits[i] = (u32)(more >> (32 * i));
        }
        root.count = 4;
        fn_big_trim(&root);
        fn_big_multiply(&square, &root, &root);
        i32 cmp = fn_big_compare(&square, x);
        r = cmp <= 0 ? more : r;
        *exact |= (b8)(cmp == 0);
    }
    return r;
}

/* x 2^exponent, x a whole number: rounded once where it becomes subnormal. */
FN f64 fn_times_pow2(f64 x, i32 exponent) {
    for (; exponent > 1000 && x <= 1.7976931348623157e308; exponent -= 1000) {
        x *= bits_f64((u64)(1023 + 1000) << 52);
    }
    for (; exponent < -1000 && x > 0.0; exponent += 1000) {
        x *= bits_f64((u64)(1023 - 1000) << 52);
    }
    b8 done = (b8)(exponent > 1000 || exponent < -1000);
    return done ? x : x * bits_f64((u64)(1023 + exponent) << 52);
}

FN_SLOW f64 fn_big_f64(u64 top, i32 exponent, b8 sticky) {
    return fn_times_pow2((f64)(top | sticky), exponent);
}

FN f64 fn_big_to_f64(const fn_big *x, i32 exponent, b8 sticky) {
    i32 drop = fn_big_bits(x) > 64 ? fn_big_bits(x) - 64 : 0;
    return fn_big_f64(fn_big_at(x, drop), exponent + drop,
                      (b8)(sticky | fn_big_any_below(x, drop)));
}

FN_SLOW f64 fn_variance_float(fn_big *num, fn_how h, u64 n) {
    u64 m = h.n2 ? 1 : h.population ? n : n - 1;
    if (num->count == 0) {
        return 0;
    }
    /* A quotient of 130 bits and more; of an even exponent, for the root. */
    i32 up = fn_big_bits(num) < 260 ? 260 - fn_big_bits(num) : 0;
    i32 exponent = (h.n2 ? h.shift : 2 * h.shift) - up;
    up += exponent & 1;
    exponent -= exponent & 1;
    fn_big_shift(num, up);
    b8 rest = fn_big_divide(num, n);
    rest |= fn_big_divide(num, m);
    if (!h.root) {
        return fn_big_to_f64(num, exponent, rest);
    }
    i32 drop = fn_big_bits(num) > 250 ? fn_big_bits(num) - 250 : 0;
    drop += drop & 1;
    rest |= fn_big_any_below(num, drop);
    for (i32 i = 0; i < drop; i += 2) {
        fn_big_divide(num, 4);
    }
    b8 exact = 0;
    u128 r = fn_big_root(num, &exact);
    u64 high = (u64)(r >> 64);
    u32 below = high ? 64 - zeros_above_u64(high) : 0; /* bits that are too many for 64 */
    rest |= (b8)(!exact | ((r & (((u128)1 << below) - 1)) != 0));
    return fn_big_f64((u64)(r >> below), (exponent + drop) / 2 + (i32)below, rest);
}

/* Half away from zero, at the result's scale. */
FN_SLOW i128 fn_variance_decimal(fn_big *num, fn_how h, u64 n, u8 *f) {
    u64 m = h.population ? n : n - 1;
    i32 up = (h.root ? 2 * h.scale : h.scale) - 2 * h.shift;
    for (i32 i = 0; i < up; i++) {
        fn_big_scale(num, 10);
    }
    fn_big_scale(num, h.root ? 4 : 2); /* one binary digit more, to round by */
    fn_big_divide(num, n);
    fn_big_divide(num, m);
    for (i32 i = 0; i < -up; i++) {
        fn_big_divide(num, 10);
    }
    if (fn_big_bits(num) > (h.root ? 255 : 127)) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    b8 exact = 0;
    u128 twice =
        h.root ? fn_big_root(num, &exact) : (u128)fn_big_at(num, 64) << 64 | fn_big_at(num, 0);
    u128 result = (twice + 1) / 2;
    if (result >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return (i128)result;
}

/* n Q - S S, or n Q - S T, into num; whether it is negative. `room`: for VARIANCE_NUMBERS numbers. */
FN_SLOW b8 fn_variance_numerator(fn_big *num, const i64 *words, i32 count, i32 n1, fn_how h,
                                 u32 *room, i32 digits) {
    fn_big sum;
    fn_big other;
    num->digit = room;
    sum.digit = room + digits;
    other.digit = room + 2 * digits;
    b8 x_negative = fn_big_words(num, words + 1, n1, h.spacing);
    b8 y_negative = x_negative;
    if (h.n2) {
        y_negative = fn_big_words(&sum, words + 1 + n1, h.n2, h.spacing);
        fn_big_multiply(&other, num, &sum);
    } else {
        fn_big_multiply(&other, num, num);
    }
    i32 before = 1 + n1 + h.n2;
    b8 negative = fn_big_words(num, words + before, count - before, h.spacing);
    fn_big_scale(num, (u64)words[0]);
    if (negative != (b8)(x_negative != y_negative)) {
        fn_big_add(num, &other);
        return negative;
    }
    b8 more = (b8)(fn_big_compare(num, &other) >= 0);
    fn_big_subtract(num, more ? num : &other, more ? &other : num);
    return (b8)(negative == more);
}

FN b8 fn_variance_enough(const i64 *words, fn_how h) {
    return (b8)(words[0] > (h.population ? 0 : 1));
}

/* `words`: the count, `n1` of the sum, those of a second one, those of the squares or products. */
FN_SLOW f64 fn_variance_f64(const i64 *words, i32 count, i32 n1, i64 lit, u32 *room, i32 digits,
                            u8 *f) {
    fn_how h = fn_how_of(lit);
    fn_big num;
    if (!fn_variance_enough(words, h)) {
        return 0;
    }
    b8 negative = fn_variance_numerator(&num, words, count, n1, h, room, digits);
    f64 v = fn_variance_float(&num, h, (u64)words[0]);
    *f = (u8)(v > 1.7976931348623157e308 ? FAULT_FLOAT_OVERFLOW : *f);
    return negative && h.n2 ? -v : v;
}

FN_SLOW i128 fn_variance_i128(const i64 *words, i32 count, i32 n1, i64 lit, u32 *room, i32 digits,
                              u8 *f) {
    fn_how h = fn_how_of(lit);
    fn_big num;
    if (!fn_variance_enough(words, h)) {
        return 0;
    }
    (void)fn_variance_numerator(&num, words, count, n1, h, room, digits);
    return fn_variance_decimal(&num, h, (u64)words[0], f);
}

#endif
