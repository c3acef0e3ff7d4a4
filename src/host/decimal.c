/* decimal.c: roots, exponentials, logarithms and powers of decimals: bodies of host opcodes.
 *
 * A decimal has up to 38 digits, so a double will not do. Numbers here are fixed-point: 128 bits
 * before the point and 256 behind it, never negative, with a sign beside them where one is needed.
 * Every function is computed with an error below 2^-110 of the last digit of its result, which is
 * then rounded half away from zero. What lies within 2^-100 of a half is taken for one: only exact
 * results, such as powers of one half, come that close. A root is computed from whole numbers and
 * exact.
 *
 * Scales travel in one operand: those of the arguments and of the result (SCALES_PACK). */
#include "host/bodies.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"

enum { FRACTION = 4, LIMBS = 6, HALVINGS = 8, EXP_MOST = 100, EXP_LEAST = 200 };

struct big {
    u64 w[LIMBS]; /* the lowest first; w[4] and w[5] lie before the point */
};

static const struct big ln_2 = {{0x8a0d175b8baafa2bULL, 0x40f343267298b62dULL,
                                 0xc9e3b39803f2f6afULL, 0xb17217f7d1cf79abULL, 0, 0}};
static const struct big ln_10 = {{0x0f187a0807c0b5caULL, 0x8a3fb3e76977e43aULL,
                                  0xa95b58ae0b4c28a3ULL, 0x4d763776aaa2b05bULL, 2, 0}};

/* numbers */

static struct big big_whole(u128 value) {
    return (struct big){{0, 0, 0, 0, (u64)value, (u64)(value >> 64)}};
}

static bool big_is_zero(struct big a) {
    u64 any = 0;
    for (i32 i = 0; i < LIMBS; i++) {
        any |= a.w[i];
    }
    return any == 0;
}

static bool big_less(struct big a, struct big b) {
    i32 i = LIMBS - 1;
    while (i > 0 && a.w[i] == b.w[i]) {
        i--;
    }
    return a.w[i] < b.w[i];
}

static struct big big_add(struct big a, struct big b) {
    u128 carry = 0;
    for (i32 i = 0; i < LIMBS; i++) {
        carry += (u128)a.w[i] + b.w[i];
        a.w[i] = (u64)carry;
        carry >>= 64;
    }
    return a;
}

static struct big big_sub(struct big a, struct big b) { /* a >= b */
    u64 borrow = 0;
    for (i32 i = 0; i < LIMBS; i++) {
        u128 gap = (u128)a.w[i] - b.w[i] - borrow;
        a.w[i] = (u64)gap;
        borrow = (u64)(gap >> 64) & 1;
    }
    return a;
}

static struct big big_mul(struct big a, struct big b) {
    u64 all[2 * LIMBS] = {0};
    for (i32 i = 0; i < LIMBS; i++) {
        u64 carry = 0;
        for (i32 k = 0; k < LIMBS; k++) {
            u128 sum = (u128)a.w[i] * b.w[k] + all[i + k] + carry;
            all[i + k] = (u64)sum;
            carry = (u64)(sum >> 64);
        }
        all[i + LIMBS] = carry;
    }
    memcpy(a.w, all + FRACTION, sizeof a.w);
    return a;
}

/* a * b; *over becomes true when the product has no room. */
static struct big big_times(struct big a, u64 b, bool *over) {
    u64 carry = 0;
    for (i32 i = 0; i < LIMBS; i++) {
        u128 sum = (u128)a.w[i] * b + carry;
        a.w[i] = (u64)sum;
        carry = (u64)(sum >> 64);
    }
    *over = *over || carry > 0;
    return a;
}

static struct big big_over(struct big a, u64 b) {
    u64 rest = 0;
    for (i32 i = LIMBS; i-- > 0;) {
        u128 part = (u128)rest << 64 | a.w[i];
        a.w[i] = (u64)(part / b);
        rest = (u64)(part % b);
    }
    return a;
}

static struct big big_right(struct big a, i32 bits) {
    for (i32 n = bits; n > 0; n -= 63) {
        i32 step = MIN_OF(n, 63);
        for (i32 i = 0; i < LIMBS; i++) {
            u64 above = i + 1 < LIMBS ? a.w[i + 1] : 0;
            a.w[i] = a.w[i] >> step | above << (64 - step);
        }
    }
    return a;
}

static struct big big_left(struct big a, i32 bits) {
    for (i32 n = bits; n > 0; n -= 63) {
        i32 step = MIN_OF(n, 63);
        for (i32 i = LIMBS; i-- > 0;) {
            u64 below = i > 0 ? a.w[i - 1] : 0;
            a.w[i] = a.w[i] << step | below >> (64 - step);
        }
    }
    return a;
}

/* a / b, bit by bit; the quotient has room. */
static struct big big_div(struct big a, struct big b) {
    struct big q = {{0}};
    struct big rest = {{0}};
    for (i32 bit = 64 * (LIMBS + FRACTION); bit-- > 0;) {
        i32 at = bit - 64 * FRACTION; /* the bit of a that comes down */
        u64 next = at >= 0 ? a.w[at >> 6] >> (at & 63) & 1 : 0;
        u64 top = rest.w[LIMBS - 1] >> 63;
        rest = big_left(rest, 1);
        rest.w[0] |= next;
        bool fits = top || !big_less(rest, b);
        rest = fits ? big_sub(rest, b) : rest;
        if (fits && bit < 64 * LIMBS) {
            q.w[bit >> 6] |= 1ULL << (bit & 63);
        }
    }
    return q;
}

static f64 big_double(struct big a) {
    f64 value = 0;
    for (i32 i = LIMBS; i-- > 0;) {
        value = value * 0x1p64 + (f64)a.w[i];
    }
    return value * 0x1p-256;
}

/* numbers with a sign */

struct signed_big {
    struct big size;
    bool minus;
};

static struct signed_big signed_add(struct signed_big a, struct signed_big b) {
    if (a.minus == b.minus) {
        return (struct signed_big){big_add(a.size, b.size), a.minus};
    }
    if (big_less(a.size, b.size)) {
        return (struct signed_big){big_sub(b.size, a.size), b.minus};
    }
    return (struct signed_big){big_sub(a.size, b.size), a.minus};
}

/* decimals */

static i32 scale_first(i32 scales) {
    return scales & 255;
}

static i32 scale_second(i32 scales) {
    return scales >> 8 & 255;
}

static i32 scale_result(i32 scales) {
    return scales >> 16 & 255;
}

static u64 pow10_u64(i32 n) {
    u64 power = 1;
    for (; n > 0; n--) {
        power *= 10;
    }
    return power;
}

static struct big from_decimal(u128 value, i32 scale) {
    i32 first = MIN_OF(scale, 19);
    return big_over(big_over(big_whole(value), pow10_u64(first)), pow10_u64(scale - first));
}

/* a as a decimal, rounded. */
static i128 to_decimal(struct big a, bool minus, i32 scale, u8 *f) {
    bool over = false;
    i32 first = MIN_OF(scale, 19);
    a = big_times(a, pow10_u64(first), &over);
    a = big_times(a, pow10_u64(scale - first), &over);
    struct big nearly = {{0, 0, 1ULL << 28, 0, 0, 0}}; /* 2^-100 */
    a = big_add(a, nearly);
    u128 value = (u128)a.w[5] << 64 | a.w[4];
    if (over || value >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    value += a.w[3] >> 63;
    if (value >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return fn_signed(value, minus);
}

/* functions */

/* e^a for a below 0.7: Taylor's series of a / 2^HALVINGS, squared again and again. */
static struct big exp_small(struct big a) {
    struct big step = big_right(a, HALVINGS);
    struct big term = big_whole(1);
    struct big sum = term;
    for (u64 n = 1; !big_is_zero(term); n++) {
        term = big_over(big_mul(term, step), n);
        sum = big_add(sum, term);
    }
    for (i32 i = 0; i < HALVINGS; i++) {
        sum = big_mul(sum, sum);
    }
    return sum;
}

/* e^a as a decimal. */
static i128 exp_signed(struct signed_big a, bool minus, i32 scale, u8 *f) {
    f64 size = big_double(a.size);
    if (size > (a.minus ? EXP_LEAST : EXP_MOST)) {
        *f = a.minus ? *f : FAULT_DECIMAL;
        return 0;
    }
    bool over = false;
    i32 n = (i32)(size / 0.6931471805599453);
    struct big whole = big_times(ln_2, (u64)n, &over);
    if (big_less(a.size, whole)) { /* the quotient was rounded up */
        whole = big_times(ln_2, (u64)--n, &over);
    }
    struct big rest = big_sub(a.size, whole);
    if (a.minus) { /* e^-a = e^(ln 2 - rest) / 2^(n + 1) */
        bool above = big_less(ln_2, rest);
        return to_decimal(big_right(exp_small(above ? big_whole(0) : big_sub(ln_2, rest)), n + 1),
                          minus, scale, f);
    }
    struct big power = exp_small(rest);
    if (n > 126) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return to_decimal(big_left(power, n), minus, scale, f);
}

/* ln(value / 10^scale), value > 0: the logarithm of a number near 1 by the series of artanh, and
 * powers of two and ten. */
static struct signed_big ln_decimal(u128 value, i32 scale) {
    i32 bits = (u64)(value >> 64) ? 127 - (i32)zeros_above_u64((u64)(value >> 64))
                                  : 63 - (i32)zeros_above_u64((u64)value);
    struct big one = big_whole(1);
    struct big m = big_right(big_whole(value), bits); /* 1 to 2, exact */
    bool large = m.w[3] > 0x6a09e667f3bcc908ULL;      /* beyond the root of 2 */
    m = large ? big_right(m, 1) : m;
    bits += large;
    bool below = big_less(m, one);
    struct big f = big_div(below ? big_sub(one, m) : big_sub(m, one), big_add(m, one));
    struct big square = big_mul(f, f);
    struct big sum = {{0}};
    for (u64 n = 1; !big_is_zero(f); n += 2) {
        sum = big_add(sum, big_over(f, n));
        f = big_mul(f, square);
    }
    bool over = false;
    struct signed_big ln = {big_left(sum, 1), below};
    struct signed_big twos = {big_times(ln_2, (u64)bits, &over), false};
    struct signed_big tens = {big_times(ln_10, (u64)scale, &over), true};
    return signed_add(signed_add(twos, tens), ln);
}

static bool log_refused(i128 a, u8 *f) {
    *f = (u8)(a == 0 ? FAULT_LOG_ZERO : a < 0 ? FAULT_LOG_NEGATIVE : *f);
    return a <= 0;
}

i128 fn_exp_dec(i128 a, i32 scales, u8 *f) {
    struct signed_big x = {from_decimal(fn_abs_i128(a), scale_first(scales)), a < 0};
    return exp_signed(x, false, scale_result(scales), f);
}

i128 fn_ln_dec(i128 a, i32 scales, u8 *f) {
    if (log_refused(a, f)) {
        return 0;
    }
    struct signed_big ln = ln_decimal((u128)a, scale_first(scales));
    return to_decimal(ln.size, ln.minus, scale_result(scales), f);
}

i128 fn_log_dec(i128 base, i128 a, i32 scales, u8 *f) {
    if (log_refused(base, f) || log_refused(a, f)) {
        return 0;
    }
    struct signed_big by = ln_decimal((u128)base, scale_first(scales));
    struct signed_big ln = ln_decimal((u128)a, scale_second(scales));
    if (base == (i128)fn_pow10(scale_first(scales))) {
        *f = FAULT_DIV0;
        return 0;
    }
    if (a == (i128)fn_pow10(scale_second(scales))) {
        return 0;
    }
    if (big_double(ln.size) > 0x1p126 * big_double(by.size)) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return to_decimal(big_div(ln.size, by.size), ln.minus != by.minus, scale_result(scales), f);
}

/* The greatest number whose square is no more than n. */
static u128 root_of(fn_u256 n, bool *out_up) {
    u128 root = 0;
    u128 rest_hi = 0, rest_lo = 0; /* the rest, below 2^130 */
    for (i32 i = 127; i >= 0; i--) {
        u128 two = (i >= 64 ? n.hi >> (2 * i - 128) : n.lo >> (2 * i)) & 3;
        rest_hi = rest_hi << 2 | rest_lo >> 126;
        rest_lo = rest_lo << 2 | two;
        u128 try_hi = root >> 126; /* 4 root + 1 */
        u128 try_lo = root << 2 | 1;
        bool fits = rest_hi > try_hi || (rest_hi == try_hi && rest_lo >= try_lo);
        if (fits) {
            rest_hi -= try_hi + (rest_lo < try_lo);
            rest_lo -= try_lo;
        }
        root = root << 1 | fits;
    }
    *out_up = rest_hi > 0 || rest_lo > root; /* beyond (root + 1/2)^2 */
    return root;
}

i128 fn_sqrt_dec(i128 a, i32 scales, u8 *f) {
    if (a < 0) {
        *f = FAULT_SQRT;
        return 0;
    }
    i32 digits = MAX_OF(2 * scale_result(scales) - scale_first(scales), 0);
    i32 first = MIN_OF(digits, 38);
    fn_u256 n = fn_mul_u128((u128)a, fn_pow10(first));
    for (i32 i = digits - first; i > 0; i--) { /* the binder's scales keep the rest small */
        fn_u256 low = fn_mul_u128(n.lo, 10);
        if (n.hi > ~(u128)0 / 16) {
            *f = FAULT_DECIMAL;
            return 0;
        }
        n.hi = n.hi * 10 + low.hi;
        n.lo = low.lo;
    }
    bool up;
    u128 root = root_of(n, &up);
    root += up;
    if (root >= fn_dec_limit()) {
        *f = FAULT_DECIMAL;
        return 0;
    }
    return (i128)root;
}

/* Powers of 0 and 1, and what has none. */
static bool power_plain(i128 a, i128 b, i32 scales, bool whole, i128 *out, u8 *f) {
    u128 one = fn_pow10(scale_first(scales));
    i128 unit = (i128)fn_pow10(scale_result(scales));
    if (a == 0 && b < 0) {
        *f = FAULT_POWER_ZERO;
    } else if (a < 0 && !whole) {
        *f = FAULT_POWER_COMPLEX;
    } else if (b == 0 || a == (i128)one) {
        *out = unit;
    } else if (a != 0) {
        return false;
    }
    return true;
}

i128 fn_power_dec(i128 a, i128 b, i32 scales, u8 *f) {
    u128 unit = fn_pow10(scale_second(scales));
    u128 size = fn_abs_i128(b);
    bool whole = size % unit == 0;
    bool minus = a < 0 && whole && size / unit % 2 == 1;
    i128 plain = 0;
    if (power_plain(a, b, scales, whole, &plain, f)) {
        return plain;
    }
    struct signed_big ln = ln_decimal(fn_abs_i128(a), scale_first(scales));
    struct big exponent = from_decimal(size, scale_second(scales));
    bool shrinks = ln.minus != (b < 0);
    if (big_double(ln.size) * big_double(exponent) > EXP_LEAST) {
        *f = shrinks ? *f : FAULT_DECIMAL;
        return 0;
    }
    struct signed_big product = {big_mul(ln.size, exponent), shrinks};
    return exp_signed(product, minus, scale_result(scales), f);
}
