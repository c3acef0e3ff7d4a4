/* value_float.c: real and double to text and back, both exact.
 *
 * Reading: when digits and power of ten are exact doubles, one multiplication or division rounds
 * correctly; otherwise strtod decides on a copy without a decimal point, so that no locale matters.
 * Writing: fn_shortest.h. */
#include "defs/value.h"

#include <math.h>
#include <stdlib.h>

#include "defs/host_words.h"
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_time.h"
#include "defs/value_scan.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"
#include "defs/fn_format.h"
#include "defs/pow10_table.h"
#include "defs/fn_shortest.h"

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

i32 value_format_f64(f64 value, char *out) {
    return (i32)fn_f64_text((u8 *)out, value);
}

i32 value_format_f32(f32 value, char *out) {
    return (i32)fn_f32_text((u8 *)out, value);
}
