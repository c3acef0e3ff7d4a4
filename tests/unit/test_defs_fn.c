/* test_defs_fn.c: the bodies behind op.def's expressions, against wider or naive arithmetic. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

#include "base/base.h"
#include "defs/host_words.h"
#include "defs/fn_int.h"
#include "defs/fn_float.h"
#include "defs/fn_date.h"
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_like.h"
#include "defs/fn_fround.h"

static u64 seed = 88172645463325252ULL;

static u64 next(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* Random bits of random length, so that small and large values are equally frequent. */
static u128 next_bits(i32 most) {
    u128 x = (u128)next() << 64 | next();
    i32 bits = (i32)(next() % (u64)(most + 1));
    return bits ? x >> (128 - bits) : 0;
}

static i64 next_i64(void) {
    static const i64 edges[] = {0, 1, -1, 2, -2, I64_MAX, I64_MIN, I64_MIN + 1, I32_MAX, I32_MIN};
    if (next() % 4 == 0) {
        return edges[next() % 10];
    }
    i64 x = (i64)(u64)next_bits(63);
    return next() & 1 ? x : -x;
}

static i32 next_i32(void) {
    static const i32 edges[] = {0, 1, -1, 2, -2, I32_MAX, I32_MIN, I32_MIN + 1, 46341, -46341};
    if (next() % 4 == 0) {
        return edges[next() % 10];
    }
    i32 x = (i32)(u32)next_bits(31);
    return next() & 1 ? x : -x;
}

static i128 next_i128(void) {
    i128 edges[] = {
        0, 1, -1, 5, I128_MAX, I128_MIN, (i128)fn_dec_limit() - 1, -(i128)fn_dec_limit()};
    if (next() % 4 == 0) {
        return edges[next() % 8];
    }
    i128 x = (i128)next_bits(127);
    return next() & 1 ? x : -x;
}

static void expect(i128 got, u8 fault, i128 want, bool fits, u8 expected_fault) {
    if (fits) {
        assert_int_equal(fault, 0);
        assert_true(got == want);
    } else {
        assert_int_equal(fault, expected_fault);
    }
}

static void test_int32(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 200000; n++) {
        i32 a = next_i32(), b = next_i32();
        i64 wide[] = {(i64)a + b, (i64)a - b, (i64)a * b, b ? (i64)a / b : 0, b ? (i64)a % b : 0};
        u8 f[5] = {0};
        i32 got[] = {fn_addx_i32(a, b, &f[0]), fn_subx_i32(a, b, &f[1]), fn_mulx_i32(a, b, &f[2]),
                     fn_div_i32(a, b, &f[3]), fn_mod_i32(a, b, &f[4])};
        for (i32 i = 0; i < 5; i++) {
            bool zero = i >= 3 && b == 0;
            bool fits = !zero && wide[i] >= I32_MIN && wide[i] <= I32_MAX;
            expect(got[i], f[i], wide[i], fits, zero ? FAULT_DIV0 : FAULT_INTEGER);
        }
        if (b > 0) {
            i64 doubled = 2 * ((i64)a < 0 ? -(i64)a : (i64)a) + b;
            i64 want = doubled / (2 * (i64)b);
            assert_int_equal(fn_rounddiv_i32(a, b), (i32)(a < 0 ? -want : want));
        }
    }
}

static void test_int64(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 200000; n++) {
        i64 a = next_i64(), b = next_i64();
        i128 wide[] = {(i128)a + b, (i128)a - b, (i128)a * b, b ? (i128)a / b : 0,
                       b ? (i128)a % b : 0};
        u8 f[5] = {0};
        i64 got[] = {fn_addx_i64(a, b, &f[0]), fn_subx_i64(a, b, &f[1]), fn_mulx_i64(a, b, &f[2]),
                     fn_div_i64(a, b, &f[3]), fn_mod_i64(a, b, &f[4])};
        for (i32 i = 0; i < 5; i++) {
            bool zero = i >= 3 && b == 0;
            bool fits = !zero && wide[i] >= I64_MIN && wide[i] <= I64_MAX;
            expect(got[i], f[i], wide[i], fits, zero ? FAULT_DIV0 : FAULT_BIGINT);
        }
        if (b > 0) {
            i128 want = (2 * ((i128)a < 0 ? -(i128)a : (i128)a) + b) / (2 * (i128)b);
            assert_true(fn_rounddiv_i64(a, b) == (i64)(a < 0 ? -want : want));
        }
    }
}

static bool dec_fits(i128 x) {
    return x < (i128)fn_dec_limit() && x > -(i128)fn_dec_limit();
}

static void test_int128(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 200000; n++) {
        i128 a = next_i128(), b = next_i128();
        i128 sum, difference, product;
        bool over[3] = {__builtin_add_overflow(a, b, &sum),
                        __builtin_sub_overflow(a, b, &difference),
                        __builtin_mul_overflow(a, b, &product)};
        u8 f[5] = {0};
        i128 got = fn_addx_i128(a, b, &f[0]);
        expect(got, f[0], sum, !over[0] && dec_fits(sum), FAULT_DECIMAL);
        got = fn_subx_i128(a, b, &f[1]);
        expect(got, f[1], difference, !over[1] && dec_fits(difference), FAULT_DECIMAL);
        got = fn_mulx_i128(a, b, &f[2]);
        expect(got, f[2], product, !over[2] && dec_fits(product), FAULT_DECIMAL);
        got = fn_div_i128(a, b, &f[3]);
        bool traps = b == 0 || (a == I128_MIN && b == -1);
        expect(got, f[3], traps ? 0 : a / b, !traps, b == 0 ? FAULT_DIV0 : FAULT_DECIMAL);
        got = fn_mod_i128(a, b, &f[4]);
        expect(got, f[4], traps ? 0 : a % b, b != 0, FAULT_DIV0);
        if (b > 0 && a != I128_MIN) {
            u128 m = fn_abs_i128(a);
            u128 q = m / (u128)b, r = m % (u128)b;
            q += r >= (u128)b - r;
            assert_true(fn_rounddiv_i128(a, b) == (a < 0 ? -(i128)q : (i128)q));
        }
    }
    u8 f = 0;
    assert_true(fn_mod_i32(I32_MIN, -1, &f) == 0 && f == 0);
    assert_true(fn_mod_i64(I64_MIN, -1, &f) == 0 && f == 0);
    assert_true(fn_mod_i128(I128_MIN, -1, &f) == 0 && f == 0);
}

/* 256-bit numbers as eight 32-bit digits, low first; schoolbook only. */
struct big {
    u32 d[9];
};

static struct big big_from(u128 x) {
    struct big r = {{0}};
    for (i32 i = 0; i < 4; i++) {
        r.d[i] = (u32)(x >> (32 * i));
    }
    return r;
}

static struct big big_mul(struct big a, u128 y) {
    struct big b = big_from(y), r = {{0}};
    for (i32 i = 0; i < 4; i++) {
        u64 carry = 0;
        for (i32 j = 0; i + j < 9; j++) {
            u64 t = (u64)b.d[i] * a.d[j] + r.d[i + j] + carry;
            r.d[i + j] = (u32)t;
            carry = t >> 32;
        }
    }
    return r;
}

static i32 big_cmp(struct big a, struct big b) {
    for (i32 i = 8; i >= 0; i--) {
        if (a.d[i] != b.d[i]) {
            return a.d[i] < b.d[i] ? -1 : 1;
        }
    }
    return 0;
}

/* q is right when 2 q y - y <= 2 x p < 2 q y + y, in magnitudes. */
static void check_divdec(i128 a, i128 b, i32 c) {
    u8 f = 0;
    i128 got = fn_divdec(a, b, c, &f);
    if (b == 0) {
        assert_int_equal(f, FAULT_DIV0);
        return;
    }
    u128 x = fn_abs_i128(a), y = fn_abs_i128(b);
    struct big twice = big_mul(big_mul(big_from(x), fn_pow10(c)), 2);
    if (f) {
        assert_int_equal(f, FAULT_DECIMAL);
        /* true quotient >= 10^38 - 1/2 */
        struct big limit = big_mul(big_mul(big_from(fn_dec_limit()), 2), y);
        struct big y_big = big_from(y);
        u64 borrow = 0;
        for (i32 i = 0; i < 9; i++) {
            u64 t = (u64)limit.d[i] - y_big.d[i] - borrow;
            limit.d[i] = (u32)t;
            borrow = t >> 63;
        }
        assert_true(big_cmp(twice, limit) >= 0);
        return;
    }
    u128 q = fn_abs_i128(got);
    assert_true(q < fn_dec_limit());
    assert_true(q == 0 || (got < 0) == ((a < 0) != (b < 0)));
    struct big high = big_mul(big_from(2 * q + 1), y);
    assert_true(big_cmp(twice, high) < 0);
    if (q) {
        assert_true(big_cmp(twice, big_mul(big_from(2 * q - 1), y)) >= 0);
    }
}

static void test_divdec(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 300000; n++) {
        check_divdec(next_i128(), next_i128(), (i32)(next() % 39));
    }
    u8 f = 0;
    assert_true(fn_divdec(1, 3, 16, &f) == 3333333333333333LL);
    assert_true(fn_divdec(2, 3, 16, &f) == 6666666666666667LL);
    assert_true(fn_divdec(-1, 2, 0, &f) == -1);
    assert_true(fn_divdec(1, 2, 0, &f) == 1);
    assert_int_equal(f, 0);
}

static void test_checks(void **state) {
    UNUSED(state);
    u8 f = 0;
    assert_true(fn_check(7, -8, 7, FAULT_SMALLINT, &f) == 7 && f == 0);
    assert_true(fn_check(8, -8, 7, FAULT_SMALLINT, &f) == -8 && f == FAULT_SMALLINT);
    f = 0;
    assert_true(fn_check128((i128)1 << 100, 0, I64_MAX, FAULT_BIGINT, &f) == 0);
    assert_int_equal(f, FAULT_BIGINT);
    for (i32 n = 0; n < 200000; n++) {
        i128 a = next_i128();
        assert_true(fn_f64_i128(a) == (f64)a);
    }
}

static f64 next_f64(void) {
    static const f64 edges[] = {0.0,    -0.0,    1.0,    -1.0,   0.5,
                                2.5,    1e308,   -1e308, 5e-324, 2.2250738585072014e-308,
                                1e-160, 1.7e308, 3e200,  1e16,   9007199254740993.0};
    u64 pick = next() % 8;
    if (pick == 0) {
        return edges[next() % 15];
    }
    if (pick == 1) {
        return next() & 1 ? (f64)NAN : next() & 1 ? (f64)INFINITY : -(f64)INFINITY;
    }
    return bits_f64(next());
}

static void test_float_arithmetic(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 300000; n++) {
        f64 a = next_f64(), b = next_f64();
        bool inf_in = isinf(a) || isinf(b);
        u8 f = 0;
        f64 r = fn_addx_f64(a, b, &f), want = a + b;
        assert_int_equal(f, isinf(want) && !inf_in ? FAULT_FLOAT_OVERFLOW : 0);
        assert_true(f64_bits(r) == f64_bits(want) || (isnan(r) && isnan(want)));
        f = 0;
        want = a * b;
        fn_mulx_f64(a, b, &f);
        u8 expected = isinf(want) && !inf_in          ? FAULT_FLOAT_OVERFLOW
                      : want == 0 && a != 0 && b != 0 ? FAULT_FLOAT_UNDERFLOW
                                                      : 0;
        assert_int_equal(f, expected);
        f = 0;
        r = fn_div_f64(a, b, &f);
        if (b == 0 && !isnan(a)) {
            assert_int_equal(f, FAULT_DIV0);
        } else {
            want = a / (b == 0 ? 1.0 : b);
            expected = isinf(want) && !isinf(a)           ? FAULT_FLOAT_OVERFLOW
                       : want == 0 && a != 0 && !isinf(b) ? FAULT_FLOAT_UNDERFLOW
                                                          : 0;
            assert_int_equal(f, expected);
            assert_true(r == want || (isnan(r) && isnan(want)));
        }
        f = 0;
        f32 x = fn_f32_f64(a, &f);
        expected = isinf((f32)a) && !isinf(a) ? FAULT_FLOAT_OVERFLOW
                   : (f32)a == 0 && a != 0    ? FAULT_FLOAT_UNDERFLOW
                                              : 0;
        assert_int_equal(f, expected);
        assert_true(x == (f32)a || isnan(a));
    }
    u8 f = 0;
    assert_true(isnan(fn_div_f64((f64)NAN, 0, &f)) && f == 0);
    fn_addx_f32(3e38f, 3e38f, &f);
    assert_int_equal(f, FAULT_FLOAT_OVERFLOW);
    f = 0;
    fn_mulx_f32(1e-30f, 1e-30f, &f);
    assert_int_equal(f, FAULT_FLOAT_UNDERFLOW);
    f = 0;
    fn_div_f32(1, 0, &f);
    assert_int_equal(f, FAULT_DIV0);
    f = 0;
    assert_true(fn_subx_f32(1, 3, &f) == -2 && fn_subx_f64(1, 3, &f) == -2 && f == 0);
}

static i32 order(f64 a, f64 b) {
    if (isnan(a) || isnan(b)) {
        return isnan(a) - isnan(b);
    }
    return (a > b) - (a < b);
}

/* The same, but -0 comes before 0. */
static i32 total_order(f64 a, f64 b) {
    bool zeros = a == 0 && b == 0;
    return zeros ? (signbit(a) == 0) - (signbit(b) == 0) : order(a, b);
}

static void test_float_order(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 300000; n++) {
        f64 a = next_f64(), b = n % 7 ? next_f64() : a;
        i32 want = order(a, b);
        assert_int_equal(fn_eqn(a, b), want == 0);
        assert_int_equal(fn_ltn(a, b), want < 0);
        assert_int_equal(fn_key_f64(a) == fn_key_f64(b), want == 0);
        i64 x = fn_ord_f64(a), y = fn_ord_f64(b);
        assert_int_equal((x > y) - (x < y), total_order(a, b));
        assert_true(total_order(fn_unord_f64(x), a) == 0 &&
                    order(fn_unkey_f64(fn_key_f64(a)), a) == 0);
        f32 p = (f32)a, q = (f32)b;
        want = order(p, q);
        x = fn_ord_f32(p);
        y = fn_ord_f32(q);
        assert_int_equal((x > y) - (x < y), total_order(p, q));
        assert_int_equal(fn_key_f32(p) == fn_key_f32(q), want == 0);
        assert_true(total_order(fn_unord_f32(x), p) == 0 &&
                    order(fn_unkey_f32(fn_key_f32(p)), p) == 0);
        assert_true(fn_key_f32(p) >= 0 && fn_key_f32(p) < 1LL << 32);
    }
    assert_true(fn_ord_f64((f64)NAN) < I64_MAX && fn_ord_f64(-(f64)INFINITY) > I64_MIN);
}

static void test_float_to_int(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 300000; n++) {
        f64 a = n % 3 ? next_f64() : (f64)next_i32() / 4;
        u8 f = 0;
        i64 got = fn_i64_f64(a, &f);
        f64 r = nearbyint(a);
        bool fits = r >= -9223372036854775808.0 && r < 9223372036854775808.0;
        assert_int_equal(f, fits ? 0 : FAULT_BIGINT);
        assert_true(!fits || got == (i64)r);
    }
    u8 f = 0;
    assert_true(fn_i64_f64(0.5, &f) == 0 && fn_i64_f64(1.5, &f) == 2 && fn_i64_f64(-2.5, &f) == -2);
    assert_int_equal(f, 0);
}

/* PostgreSQL prints the float with 15 (6) digits and reads that as numeric. */
static i128 dec_by_text(f64 a, i32 digits, i32 scale, bool *fits) {
    char buf[64];
    snprintf(buf, sizeof buf, "%.*e", digits - 1, a);
    bool negative = buf[0] == '-';
    char *p = buf + negative;
    i128 m = 0;
    for (; *p != 'e'; p++) {
        m = *p == '.' ? m : m * 10 + (*p - '0');
    }
    i32 shift = atoi(p + 1) - (digits - 1) + scale;
    *fits = true;
    for (; shift > 0 && m; shift--) {
        if (m >= (i128)fn_dec_limit() / 10) {
            *fits = false;
            return 0;
        }
        m *= 10;
    }
    if (shift < 0) {
        i128 power = shift < -30 ? (i128)fn_pow10(30) : (i128)fn_pow10(-shift);
        m = (m + power / 2) / power;
    }
    return negative ? -m : m;
}

static void test_float_to_decimal(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 200000; n++) {
        i32 scale = (i32)(next() % 39);
        f64 a = n % 2 ? ldexp((f64)(next() >> 11), (i32)(next() % 260) - 200)
                      : (f64)next_i32() / (f64)fn_pow10_table[next() % 10];
        a = next() & 1 ? a : -a;
        bool fits;
        i128 want = dec_by_text(a, 15, scale, &fits);
        u8 f = 0;
        i128 got = fn_dec_f64(a, scale, &f);
        expect(got, f, want, fits, FAULT_DECIMAL);
        f32 x = (f32)a;
        if (!isinf(x)) {
            want = dec_by_text((f64)x, 6, scale, &fits);
            f = 0;
            got = fn_dec_f32(x, scale, &f);
            expect(got, f, want, fits, FAULT_DECIMAL);
        }
    }
    u8 f = 0;
    assert_true(fn_dec_f64(1.005, 2, &f) == 101);
    assert_true(fn_dec_f64(-0.1, 1, &f) == -1);
    assert_true(fn_dec_f32(0.1f, 4, &f) == 1000);
    assert_true(fn_dec_f64(1e-300, 38, &f) == 0 && f == 0);
    fn_dec_f64((f64)NAN, 2, &f);
    assert_int_equal(f, FAULT_DECIMAL);
    f = 0;
    fn_dec_f64(1e38, 0, &f);
    assert_int_equal(f, FAULT_DECIMAL);
}

static void test_flimb(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 100000; n++) {
        f64 a = bits_f64(next());
        if (isnan(a) || isinf(a) || a == 0) {
            continue;
        }
        i32 exponent;
        f64 m = frexp(a, &exponent);
        i32 lsb = exponent - 53;
        u64 bits = (u64)llabs((i64)ldexp(m, 53));
        while (!(bits & 1)) {
            bits >>= 1;
            lsb++;
        }
        i32 b = MAX_OF(lsb - (i32)(next() % 70), -1074);
        f64 sum = 0;
        i64 words[80] = {0};
        i32 count = (exponent - b) / 32 + 1;
        count = MIN_OF(count, 80);
        for (i32 c = 0; c < count; c++) {
            words[c] = fn_flimb(a, b, c);
            assert_true(words[c] == 0 || (words[c] < 0) == (a < 0));
            sum += ldexp((f64)words[c], b + 32 * c); /* exact: bits never overlap */
        }
        assert_true(sum == a);
        assert_true(fn_flimb(a, b, count) == 0 && fn_flimb(a, b, count + 40) == 0);
        u8 f = 0;
        assert_true(fn_fround_f64(words, count, 32, b, &f) == a && f == 0);
    }
}

/* Sums of many doubles against long double where that is exact, and against themselves in another
 * order. */
static void test_fround(void **state) {
    UNUSED(state);
    for (i32 n = 0; n < 20000; n++) {
        i64 words[4] = {0};
        i128 exact = 0;
        for (i32 i = 0; i < 20; i++) {
            i64 x = (i64)(u64)next_bits(50);
            f64 a = (f64)(next() & 1 ? x : -x) / 1024;
            exact += (i128)(a * 1024);
            for (i32 c = 0; c < 4; c++) {
                words[c] += fn_flimb(a, -10, c);
            }
        }
        u8 f = 0;
        assert_true(fn_fround_f64(words, 4, 32, -10, &f) == (f64)exact / 1024);
        assert_true(fn_fround_f32(words, 4, 32, -10, &f) == (f32)exact / 1024);
        assert_int_equal(f, 0);
    }
    for (i32 n = 0; n < 100000; n++) { /* any words: the value as an i128 */
        i64 words[3] = {next_i64(), next_i64() >> 20, next_i64() >> 40};
        i32 spacing = 16 + (i32)(next() % 12);
        i128 exact = words[0] + (i128)words[1] * ((i128)1 << spacing) +
                     (i128)words[2] * ((i128)1 << (2 * spacing));
        u8 f = 0;
        assert_true(fn_fround_f64(words, 3, spacing, 0, &f) == (f64)exact);
        assert_true(fn_fround_f32(words, 3, spacing, 0, &f) == (f32)exact);
        assert_int_equal(f, 0);
    }
    i64 big[2] = {0, 1LL << 62};
    u8 f = 0;
    assert_true(isinf(fn_fround_f64(big, 2, 32, 1000, &f)) && f == FAULT_FLOAT_OVERFLOW);
    i64 tie[1] = {(1LL << 53) + 1};
    f = 0;
    assert_true(fn_fround_f64(tie, 1, 32, 0, &f) == 9007199254740992.0);
    i64 tiny[1] = {3};
    assert_true(fn_fround_f64(tiny, 1, 32, -1076, &f) == 5e-324);
    i64 none[2] = {1LL << 32, -1};
    assert_true(fn_fround_f64(none, 2, 32, 0, &f) == 0 && f == 0);
}

/* The calendar, counted day by day. */
static void test_dates(void **state) {
    UNUSED(state);
    static const i32 lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    i32 year = -4713, month = 11, day = 24;
    for (i32 date = DATE_MIN; date < 4000000; date++) {
        fn_civil c = fn_civil_of(date);
        if (c.year != year || c.month != month || c.day != day) {
            fail_msg("date %d is %d-%d-%d, not %d-%d-%d", date, c.year, c.month, c.day, year, month,
                     day);
        }
        assert_int_equal(fn_days(year, month, day), date);
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        if (++day > lengths[month - 1] + (month == 2 && leap)) {
            day = 1;
            month = month % 12 + 1;
            year += month == 1;
        }
    }
    assert_true(fn_year(0) == 1970 && fn_month(0) == 1 && fn_day(0) == 1);
    assert_int_equal(fn_days(5874897, 12, 31), DATE_MAX);
    assert_true(fn_year(DATE_MAX) == 5874897 && fn_month(DATE_MAX) == 12 && fn_day(DATE_MAX) == 31);
    assert_int_equal(fn_days(-4713, 11, 24), DATE_MIN);
    assert_int_equal(fn_year(fn_days(0, 6, 1)), -1);
    for (i32 n = 0; n < 100000; n++) { /* far away: 400 years later everything is the same */
        i32 date = (i32)(next() % 2000000000);
        fn_civil a = fn_civil_of(date), b = fn_civil_of(date + 146097);
        assert_true(b.year == a.year + 400 && b.month == a.month && b.day == a.day);
        assert_int_equal(fn_days(a.year, a.month, a.day), date);
    }
}

static str text(const char *s) {
    return str_from(sv_from(s));
}

static void test_strings(void **state) {
    UNUSED(state);
    static const char *const samples[] = {"",
                                          "a",
                                          "ab",
                                          "abc",
                                          "abcd",
                                          "abcde",
                                          "abcdef",
                                          "abcdefg",
                                          "abcdefh",
                                          "abcdefgh",
                                          "abcdefghijklmnop",
                                          "abcdefghijklmnoq",
                                          "abcdefghijkl\xc3\xa9",
                                          "b",
                                          "\xc3\xa9",
                                          "\xf0\x9f\x98\x80",
                                          "abcdefghijklmnopq"};
    for (i64 i = 0; i < COUNT_OF(samples); i++) {
        for (i64 j = 0; j < COUNT_OF(samples); j++) {
            i32 want = strcmp(samples[i], samples[j]);
            i32 got = fn_str_cmp(text(samples[i]), text(samples[j]));
            assert_int_equal((got > 0) - (got < 0), (want > 0) - (want < 0));
            assert_int_equal(fn_str_eq(text(samples[i]), text(samples[j])), want == 0);
            bool few = strlen(samples[i]) <= 7 && strlen(samples[j]) <= 7;
            assert_true(!few ||
                        (fn_short(text(samples[i])) == fn_short(text(samples[j]))) == (want == 0));
        }
        assert_int_equal(fn_short(text(samples[i])) < 0, strlen(samples[i]) > 7);
    }
    assert_int_equal(fn_length(text("")), 0);
    assert_int_equal(fn_length(text("abcdefghijkl\xc3\xa9")), 13);
    assert_int_equal(fn_length(text("\xf0\x9f\x98\x80\xc3\xa9 \xe2\x82\xac")), 4);
}

static void check_substr(const char *s, i64 from, i64 count, const char *want) {
    u8 f = 0;
    str r = fn_substr(text(s), from, count, &f);
    assert_int_equal(f, 0);
    assert_true(fn_str_eq(r, text(want)));
}

static void test_substr(void **state) {
    UNUSED(state);
    check_substr("hello", 2, 3, "ell");
    check_substr("hello", 1, I64_MAX, "hello");
    check_substr("hello", 3, I64_MAX, "llo");
    check_substr("hello", -1, 3, "h");
    check_substr("hello", -5, 3, "");
    check_substr("hello", 0, 2, "h");
    check_substr("hello", 6, 2, "");
    check_substr("hello", I64_MAX, I64_MAX, "");
    check_substr("hello", I64_MIN, I64_MAX, "");
    check_substr("h\xc3\xa9llo w\xc3\xb6rld, good morning", 2, 7, "\xc3\xa9llo w\xc3\xb6");
    check_substr("abcdefghijklmnopqrstuvwxyz", 11, 10, "klmnopqrst");
    check_substr("", 1, 5, "");
    u8 f = 0;
    str r = fn_substr(text("hello"), 2, -1, &f);
    assert_int_equal(f, FAULT_SUBSTRING);
    assert_int_equal(r.len, 0);
}

static u8 fold(u8 c, bool nocase) {
    return nocase && c >= 'A' && c <= 'Z' ? (u8)(c + 32) : c;
}

static bool naive_like(const u8 *t, const u8 *p, bool nocase) {
    if (!*p) {
        return !*t;
    }
    if (*p == '%') {
        for (;; t++) {
            if ((*t & 0xc0) != 0x80 && naive_like(t, p + 1, nocase)) {
                return true;
            }
            if (!*t) {
                return false;
            }
        }
    }
    if (!*t) {
        return false;
    }
    if (*p == '_') {
        for (t++; (*t & 0xc0) == 0x80; t++) {
        }
        return naive_like(t, p + 1, nocase);
    }
    if (*p == '\\' && !*++p) {
        return false;
    }
    return fold(*t, nocase) == fold(*p, nocase) && naive_like(t + 1, p + 1, nocase);
}

static void test_like(void **state) {
    UNUSED(state);
    static const char *const letters[] = {"a", "b", "A", "\xc3\xa9", "\xe2\x82\xac",
                                          "%", "_", "\\"};
    i32 matches = 0;
    for (i32 n = 0; n < 300000; n++) {
        char t[64] = "", p[64] = "";
        for (u64 i = next() % 10; i > 0; i--) {
            strcat(t, letters[next() % (next() % 4 ? 3 : 8)]);
        }
        for (u64 i = next() % 7; i > 0; i--) {
            strcat(p, letters[next() % 2 ? 5 + next() % (next() % 4 ? 2 : 3) : next() % 5]);
        }
        i32 nocase = (i32)(next() & 1);
        bool want = naive_like((const u8 *)t, (const u8 *)p, nocase);
        matches += want;
        if ((fn_like(text(t), text(p), nocase) == 1) != want) {
            fail_msg("'%s' like '%s' (%d) is not %d", t, p, nocase, want);
        }
    }
    assert_true(matches > 10000);
    assert_true(fn_like(text("special packages requests"), text("%special%requests%"), 0));
    assert_int_equal(fn_like(text("a%"), text("a\\"), 0), 2);
    assert_true(fn_like(text("a%"), text("a\\%"), 0));
    assert_true(fn_like(text("PROMO brushed"), text("promo%"), 1));
    assert_true(fn_like(text(""), text(""), 0) && fn_like(text(""), text("%%"), 0));
}

/* Few letters, so that beginnings and periods abound; at every alignment, and to the last byte. */
static void test_find(void **state) {
    UNUSED(state);
    enum { MOST = 700 };
    i32 found = 0;
    for (i32 n = 0; n < 60000; n++) {
        u64 len = n % 50 ? next() % 60 : next() % MOST, q_len = 1 + next() % (n % 50 ? 9 : 40);
        u64 rare = n % 3 ? 2 : 16, from = next() % (len + 1);
        u8 *p = malloc(len + 1), q[64];
        for (u64 i = 0; i < len; i++) {
            p[i] = next() % rare ? 'a' : 'b';
        }
        for (u64 i = 0; i < q_len; i++) {
            q[i] = next() % rare ? 'a' : 'b';
        }
        if (next() % 2 && q_len < len) {
            memcpy(q, p + next() % (len - q_len), q_len);
        }
        u64 want = from;
        while (want + q_len <= len && memcmp(p + want, q, q_len) != 0) {
            want++;
        }
        want = want + q_len <= len ? want : len + 1;
        found += want <= len;
        assert_int_equal(fn_find_bytes(p, (u32)len, q, (u32)q_len, (u32)from), want);
        assert_int_equal(fn_find_hard(p, (i64)len, q, (i64)q_len, (i64)from), want);
        free(p);
    }
    assert_true(found > 10000);
}

/* What would take days if it took longer than its operands are. */
static void test_find_hostile(void **state) {
    UNUSED(state);
    enum { LEN = 8 << 20, NEEDLE = 2 << 20 };
    u8 *p = malloc(LEN), *q = malloc(NEEDLE);
    memset(p, 'a', LEN);
    for (i32 at = 0; at < 5; at++) {
        memset(q, 'a', NEEDLE);
        q[(u64)(NEEDLE - 1) * (u64)at / 4] = 'b';
        assert_int_equal(fn_find_bytes(p, LEN, q, NEEDLE, 0), LEN + 1);
    }
    for (i32 i = 0; i < LEN; i += 1 << 12) {
        p[i] = 'b';
    }
    memcpy(q, p, NEEDLE);
    q[NEEDLE - 1] = 'c';
    assert_int_equal(fn_find_bytes(p, LEN, q, NEEDLE, 0), LEN + 1);
    p[LEN - 1] = 'c';
    assert_int_equal(fn_find_bytes(p, LEN, q, NEEDLE, 0), LEN - NEEDLE);
    free(p);
    free(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_int32),
        cmocka_unit_test(test_int64),
        cmocka_unit_test(test_int128),
        cmocka_unit_test(test_divdec),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_float_arithmetic),
        cmocka_unit_test(test_float_order),
        cmocka_unit_test(test_float_to_int),
        cmocka_unit_test(test_float_to_decimal),
        cmocka_unit_test(test_flimb),
        cmocka_unit_test(test_fround),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_substr),
        cmocka_unit_test(test_like),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_find_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
