/* value_float.c: real and double to text and back, both exact.
 *
 * Reading: when digits and power of ten are exact doubles, one multiplication or division rounds
 * correctly; otherwise strtod decides on a copy without a decimal point, so that no locale matters.
 * Writing: the shortest decimal strictly inside the interval that rounds to the value, and of those
 * the nearest one, found with one 128-bit power of ten (Giulietti's method), in the layout
 * PostgreSQL prints. */
#include "defs/value.h"

#include <math.h>
#include <stdlib.h>

#include "defs/host_words.h"
#include "defs/pow10_table.h"
#include "defs/value_scan.h"

/* A double never needs more: what follows can only break a tie, which one digit does. */
enum { DIGITS_KEPT = 780, DIGITS_EXACT = 19 };

static const f64 exact_powers[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* True when the number is m * 10^e with both parts exact in a double. */
static bool parse_exact(const struct number *n, f64 *out) {
    if (n->digit_count > DIGITS_EXACT) {
        return false;
    }
    u64 m = 0;
    const u8 *p = n->digits;
    for (i64 i = 0; i < n->digit_count; i++) {
        m = m * 10 + number_digit(&p);
    }
    i64 e = n->exponent - n->digit_count;
    if (m > 1ULL << 53 || e < -22 || e > 22) {
        return false;
    }
    f64 x = e < 0 ? (f64)m / exact_powers[-e] : (f64)m * exact_powers[e];
    *out = n->negative ? -x : x;
    return true;
}

/* [-]digits[.digits], short enough to be exact: what files mostly hold. False says nothing. */
static bool parse_plain(struct sv s, f64 *out) {
    const u8 *p = (const u8 *)s.ptr;
    const u8 *end = p + s.len;
    bool negative = s.len > 0 && *p == '-';
    p += negative;
    if (end - p > 18 || p == end || !is_digit(*p)) {
        return false;
    }
    u64 m = 0;
    i64 fraction = 0;
    p = number_digits(p, end, &m);
    if (p < end && *p == '.') {
        const u8 *first = ++p;
        p = number_digits(p, end, &m);
        fraction = p - first;
    }
    if (p != end || m > 1ULL << 53) {
        return false;
    }
    f64 x = (f64)m / exact_powers[fraction];
    *out = negative ? -x : x;
    return true;
}

/* The number as digits and an exponent, for strtod. */
static void plain_copy(const struct number *n, char buf[DIGITS_KEPT + 32]) {
    const u8 *p = n->digits;
    i64 kept = MIN_OF(n->digit_count, DIGITS_KEPT);
    i64 at = 0;
    if (n->negative) {
        buf[at++] = '-';
    }
    for (i64 i = 0; i < kept; i++) {
        buf[at++] = (char)('0' + number_digit(&p));
    }
    bool more = false;
    for (i64 i = kept; i < n->digit_count && !more; i++) {
        more = number_digit(&p) != 0;
    }
    if (more) {
        buf[at++] = '1';
        kept++;
    }
    buf[at++] = 'e';
    at += value_format_i64(n->exponent - kept, buf + at);
    buf[at] = 0;
}

/* Settles everything but finite numbers other than zero; those leave *left = true. */
static u8 parse_start(struct sv s, struct number *n, f64 *out, bool *left) {
    *left = false;
    s = value_trim(s);
    if (!number_scan(s, n)) {
        i32 special = number_special(s);
        if (!special) {
            return FAULT_TEXT_NUM;
        }
        *out = special == 1 ? (f64)NAN : special > 0 ? (f64)INFINITY : -(f64)INFINITY;
        return FAULT_NONE;
    }
    if (!n->digit_count) {
        *out = n->negative ? -0.0 : 0.0;
        return FAULT_NONE;
    }
    if (n->exponent > 400 || n->exponent < -400) {
        return n->exponent > 0 ? FAULT_FLOAT_OVERFLOW : FAULT_FLOAT_UNDERFLOW;
    }
    *left = true;
    return FAULT_NONE;
}

u8 value_parse_f64(struct sv s, f64 *out) {
    struct number n;
    f64 value = 0;
    bool left;
    if (parse_plain(s, out)) {
        return FAULT_NONE;
    }
    u8 fault = parse_start(s, &n, &value, &left);
    if (fault) {
        return fault;
    }
    if (left && !parse_exact(&n, &value)) {
        char buf[DIGITS_KEPT + 32];
        plain_copy(&n, buf);
        value = strtod(buf, NULL);
        if (isinf(value) || value == 0) {
            return isinf(value) ? FAULT_FLOAT_OVERFLOW : FAULT_FLOAT_UNDERFLOW;
        }
    }
    *out = value;
    return FAULT_NONE;
}

/* True when rounding x, the double nearest to some number, also rounds that number: x is normal as
 * a real, and not half way between two reals. */
static bool rounds_once(f64 x) {
    f64 size = x < 0 ? -x : x;
    return size > 1.2e-38 && size < 3.4e38 && (f64_bits(x) & 0x1fffffff) != 0x10000000;
}

u8 value_parse_f32(struct sv s, f32 *out) {
    struct number n;
    f64 wide = 0;
    bool left;
    if (parse_plain(s, &wide) && (wide == 0 || rounds_once(wide))) {
        *out = (f32)wide;
        return FAULT_NONE;
    }
    u8 fault = parse_start(s, &n, &wide, &left);
    if (fault) {
        return fault;
    }
    if (!left || (parse_exact(&n, &wide) && rounds_once(wide))) {
        *out = (f32)wide;
        return FAULT_NONE;
    }
    char buf[DIGITS_KEPT + 32];
    plain_copy(&n, buf);
    f32 value = strtof(buf, NULL);
    if (isinf(value) || value == 0) {
        return isinf(value) ? FAULT_FLOAT_OVERFLOW : FAULT_FLOAT_UNDERFLOW;
    }
    *out = value;
    return FAULT_NONE;
}

struct decimal { /* digits * 10^exponent */
    u64 digits;
    i32 exponent;
};

static i32 floor_log10_pow2(i32 e) {
    return (e * 1262611) >> 22;
}

static i32 floor_log10_three_quarters_pow2(i32 e) {
    return (e * 1262611 - 524031) >> 22;
}

static i32 floor_log2_pow10(i32 e) {
    return (e * 1741647) >> 19;
}

/* The product's high bits, the last one set when anything below it is: enough to compare exactly.
 */
static u64 round_to_odd(const u64 power[2], u64 x) {
    u128 y = (u128)power[0] * x + ((u128)power[1] * x >> 64);
    return (u64)(y >> 64) | (u64)((u64)y > 1);
}

/* Of c * 2^q. `uneven`: the neighbour below is only half as far as the one above. All values below
 * are in quarters of 10^k, where 10^k is just under the interval's width: so it holds one or more
 * multiples of 10^k, and at most one of 10^(k+1), which then is the shortest. */
static struct decimal shortest(u64 c, i32 q, bool uneven) {
    i32 k = uneven ? floor_log10_three_quarters_pow2(q) : floor_log10_pow2(q);
    i32 h = q + floor_log2_pow10(-k) + 1;
    const u64 *power = pow10_table[-k - POW10_LEAST];
    u64 lower = round_to_odd(power, (4 * c - (uneven ? 1 : 2)) << h) + 1;
    u64 value = round_to_odd(power, (4 * c) << h);
    u64 upper = round_to_odd(power, (4 * c + 2) << h) - 1;
    u64 s = value / 4;
    if (s >= 10) {
        u64 tens = s / 10;
        bool down = lower <= 40 * tens;
        bool up = 40 * tens + 40 <= upper;
        if (down != up) {
            return (struct decimal){tens + up, k + 1};
        }
    }
    bool down = lower <= 4 * s;
    bool up = 4 * s + 4 <= upper;
    if (down != up) {
        return (struct decimal){s + up, k};
    }
    u64 middle = 4 * s + 2;
    bool nearer_up = value > middle || (value == middle && (s & 1));
    return (struct decimal){s + nearer_up, k};
}

/* Fixed notation while the exponent is in -4 .. fixed_limit - 1, else d.ddde+xx. */
static i32 write_decimal(struct decimal d, bool negative, i32 fixed_limit, char *out) {
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    char digits[24];
    i32 count = value_format_i64((i64)d.digits, digits);
    i32 exponent = d.exponent + count - 1;
    i32 n = 0;
    if (negative) {
        out[n++] = '-';
    }
    if (exponent < -4 || exponent >= fixed_limit) {
        out[n++] = digits[0];
        if (count > 1) {
            out[n++] = '.';
            memcpy(out + n, digits + 1, (size_t)count - 1);
            n += count - 1;
        }
        out[n++] = 'e';
        out[n++] = exponent < 0 ? '-' : '+';
        exponent = exponent < 0 ? -exponent : exponent;
        if (exponent < 10) {
            out[n++] = '0';
        }
        return n + value_format_i64(exponent, out + n);
    }
    for (i32 i = exponent < 0 ? exponent : 0; i < MAX_OF(count, exponent + 1); i++) {
        out[n++] = i >= 0 && i < count ? digits[i] : '0';
        if (i == exponent && i + 1 < count) {
            out[n++] = '.';
        } else if (exponent < 0 && i == exponent) {
            out[n++] = '.';
        }
    }
    return n;
}

static i32 write_special(f64 value, char *out) {
    const char *text = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    if (value == 0) {
        text = signbit(value) ? "-0" : "0";
    }
    i32 n = (i32)strlen(text);
    memcpy(out, text, (size_t)n);
    return n;
}

i32 value_format_f64(f64 value, char *out) {
    u64 bits = f64_bits(value);
    u64 fraction = bits & 0xfffffffffffffULL;
    i32 biased = (i32)(bits >> 52 & 2047);
    if (biased == 2047 || value == 0) {
        return write_special(value, out);
    }
    u64 c = biased ? fraction | 1ULL << 52 : fraction;
    i32 q = (biased ? biased : 1) - 1075;
    return write_decimal(shortest(c, q, fraction == 0 && biased > 1), bits >> 63, 15, out);
}

i32 value_format_f32(f32 value, char *out) {
    u32 bits = f32_bits(value);
    u32 fraction = bits & 0x7fffff;
    i32 biased = (i32)(bits >> 23 & 255);
    if (biased == 255 || value == 0) {
        return write_special((f64)value, out);
    }
    u32 c = biased ? fraction | 1u << 23 : fraction;
    i32 q = (biased ? biased : 1) - 150;
    return write_decimal(shortest(c, q, fraction == 0 && biased > 1), bits >> 31, 6, out);
}
