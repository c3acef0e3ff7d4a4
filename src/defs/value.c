/* value.c: integers, decimals and booleans to text and back.
 *
 * This is COPY's inner loop and the body of casts and literals alike. The common forms take a short
 * path: up to 18 plain digits, eight at a time, without any overflow check. Everything else
 * (spaces, exponents, long numbers) is decided by slower code behind it, so that the answer never
 * depends on the path. */
#include "defs/value.h"

#include "defs/host_words.h"
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_time.h"
#include "defs/value_scan.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"
#include "defs/fn_format.h"

struct sv value_trim(struct sv s) {
    while (s.len > 0 && is_space((u8)s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_space((u8)s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

/* With spaces, or so many digits that only a checked loop can tell. */
static u8 parse_int_slow(struct sv s, i64 *out) {
    s = value_trim(s);
    const u8 *p = (const u8 *)s.ptr;
    const u8 *end = p + s.len;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end) {
        return FAULT_TEXT_INT;
    }
    u64 limit = negative ? 1ULL << 63 : (1ULL << 63) - 1;
    u64 value = 0;
    bool over = false;
    for (; p < end; p++) {
        if (!is_digit(*p)) {
            return FAULT_TEXT_INT;
        }
        u64 digit = (u64)(*p - '0');
        over = over || value > (limit - digit) / 10;
        value = over ? 0 : value * 10 + digit;
    }
    if (over) {
        return FAULT_BIGINT;
    }
    *out = (i64)(negative ? 0 - value : value);
    return FAULT_NONE;
}

u8 value_parse_int(struct sv s, i64 *out) {
    const u8 *p = (const u8 *)s.ptr;
    const u8 *end = p + s.len;
    bool negative = s.len > 0 && *p == '-';
    p += negative;
    if (p == end || end - p > 18) {
        return parse_int_slow(s, out);
    }
    u64 value = 0;
    if (number_digits(p, end, &value) != end) {
        return parse_int_slow(s, out);
    }
    *out = (i64)(negative ? 0 - value : value);
    return FAULT_NONE;
}

/* The exponent after 'e'; saturates, since anything beyond a million is out of every range. */
static bool scan_exponent(const u8 *p, const u8 *end, i64 *exponent) {
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end) {
        return false;
    }
    i64 value = 0;
    for (; p < end; p++) {
        if (!is_digit(*p)) {
            return false;
        }
        value = MIN_OF(value * 10 + (*p - '0'), 1000000000);
    }
    *exponent = negative ? -value : value;
    return true;
}

bool number_scan(struct sv s, struct number *out) {
    const u8 *p = (const u8 *)s.ptr;
    const u8 *end = p + s.len;
    memset(out, 0, sizeof *out);
    out->negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    bool any = false, point = false;
    i64 before_point = 0, zeros_after_point = 0;
    for (; p < end; p++) {
        if (is_digit(*p)) {
            any = true;
            if (!out->digits && *p != '0') {
                out->digits = p;
            }
            out->digit_count += out->digits != NULL;
            before_point += out->digits && !point;
            zeros_after_point += !out->digits && point;
        } else if (*p == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (!any) {
        return false;
    }
    i64 exponent = 0;
    if (p < end) {
        if ((*p | 32) != 'e' || !scan_exponent(p + 1, end, &exponent)) {
            return false;
        }
    }
    out->exponent = exponent + (before_point ? before_point : -zeros_after_point);
    return true;
}

i32 number_special(struct sv s) {
    bool negative = s.len > 0 && *s.ptr == '-';
    if (s.len > 0 && (*s.ptr == '-' || *s.ptr == '+')) {
        s.ptr++;
        s.len--;
    }
    if (sv_eq_nocase(s, SV("nan"))) {
        return 1;
    }
    bool infinite = sv_eq_nocase(s, SV("inf")) || sv_eq_nocase(s, SV("infinity"));
    return !infinite ? 0 : negative ? -2 : 2;
}

static u8 parse_dec_slow(struct sv s, i32 scale, i128 *out) {
    struct number n;
    s = value_trim(s);
    if (!number_scan(s, &n)) {
        return number_special(s) ? FAULT_DECIMAL : FAULT_TEXT_NUM;
    }
    i64 keep = n.exponent + scale; /* digits of the result, before rounding */
    if (!n.digit_count || keep < 0) {
        *out = 0;
        return FAULT_NONE;
    }
    if (keep > 38) {
        return FAULT_DECIMAL;
    }
    u128 value = 0;
    const u8 *p = n.digits;
    for (i64 i = 0; i < MIN_OF(keep, n.digit_count); i++) {
        value = value * 10 + number_digit(&p);
    }
    if (keep > n.digit_count) {
        value *= fn_pow10((i32)(keep - n.digit_count));
    } else if (keep < n.digit_count) {
        value += number_digit(&p) >= 5;
    }
    if (value >= fn_dec_limit()) {
        return FAULT_DECIMAL;
    }
    *out = fn_signed(value, n.negative);
    return FAULT_NONE;
}

u8 value_parse_dec(struct sv s, i32 scale, i128 *out) {
    const u8 *p = (const u8 *)s.ptr;
    const u8 *end = p + s.len;
    bool negative = s.len > 0 && *p == '-';
    p += negative;
    if (end - p > 18 || p == end || !is_digit(*p)) {
        return parse_dec_slow(s, scale, out);
    }
    u64 value = 0;
    i32 fraction = 0;
    p = number_digits(p, end, &value);
    if (p < end && *p == '.') {
        const u8 *first = ++p;
        p = number_digits(p, end, &value);
        fraction = (i32)(p - first);
    }
    if (p != end || fraction > scale || scale - fraction > 18) {
        return parse_dec_slow(s, scale, out);
    }
    i128 scaled = (i128)((u128)value * fn_pow10_table[scale - fraction]);
    *out = negative ? -scaled : scaled; /* at most 36 digits */
    return FAULT_NONE;
}

u8 value_parse_bool(struct sv s, b8 *out) {
    static const struct {
        struct sv word;
        i64 least; /* shortest beginning that is unique */
        b8 value;
    } words[] = {
        {{"true", 4}, 1, 1}, {{"false", 5}, 1, 0}, {{"yes", 3}, 1, 1}, {{"no", 2}, 1, 0},
        {{"on", 2}, 2, 1},   {{"off", 3}, 2, 0},   {{"1", 1}, 1, 1},   {{"0", 1}, 1, 0},
    };
    s = value_trim(s);
    for (i64 i = 0; i < COUNT_OF(words); i++) {
        struct sv word = words[i].word;
        if (s.len >= words[i].least && s.len <= word.len &&
            sv_eq_nocase(s, (struct sv){word.ptr, s.len})) {
            *out = words[i].value;
            return FAULT_NONE;
        }
    }
    return FAULT_TEXT_BOOL;
}

i32 value_format_i64(i64 value, char *out) {
    return (i32)fn_i64_text((u8 *)out, value);
}

i32 value_format_dec(i128 value, i32 scale, char *out) {
    return (i32)fn_dec_text((u8 *)out, value, scale);
}

i32 value_format_bool(b8 value, char *out) {
    return (i32)fn_bool_text((u8 *)out, value);
}
