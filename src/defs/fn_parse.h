/* fn_parse.h: integers, decimals, booleans and UUIDs from text. Kernel text (see fn_int.h); needs
 * fn_int.h and fn_str.h.
 *
 * The common forms take a short path: up to 18 plain digits, eight at a time, without any overflow
 * check. Everything else (spaces, exponents, long numbers) is decided by slower code behind it, so that
 * the answer never depends on the path. A reader (fn_read_…) gives a fault number, 0 when it succeeded,
 * and leaves *out alone otherwise. */
#ifndef WF_DEFS_FN_PARSE_H
#define WF_DEFS_FN_PARSE_H

FN b8 fn_is_digit(u32 c) {
    return (b8)(c - '0' < 10u);
}

FN b8 fn_is_space(u32 c) {
    return (b8)((c == ' ') | (c - '\t' < 5u));
}

/* Eight ASCII digits at once: every nibble test is one operation, and pairs, fours and eights
 * combine by multiplication. */
FN b8 fn_eight_digits(u64 x) {
    return (b8)(((x & 0xf0f0f0f0f0f0f0f0ULL) |
                 ((x + 0x0606060606060606ULL) & 0xf0f0f0f0f0f0f0f0ULL) >> 4) ==
                0x3333333333333333ULL);
}

FN u64 fn_eight_value(u64 x) { /* first digit in the highest byte */
    x &= 0x0f0f0f0f0f0f0f0fULL;
    x = (x & 0x00ff00ff00ff00ffULL) + (x >> 8 & 0x00ff00ff00ff00ffULL) * 10;
    x = (x & 0x0000ffff0000ffffULL) + (x >> 16 & 0x0000ffff0000ffffULL) * 100;
    return (x & 0xffffffffULL) + (x >> 32) * 10000;
}

/* Reads digits from p on; at most 19 may follow. Returns the first byte that is none. */
FN const u8 *fn_read_digits(const u8 *p, const u8 *end, u64 *value) {
    u64 v = *value;
    while (end - p >= 8) {
        u64 x = fn_load8(p);
        if (!fn_eight_digits(x)) {
            break;
        }
        v = v * 100000000 + fn_eight_value(x);
        p += 8;
    }
    while (p < end && fn_is_digit(*p)) {
        v = v * 10 + (u64)(*p - '0');
        p++;
    }
    *value = v;
    return p;
}

/* Without spaces around it. */
FN void fn_trim_space(const u8 **p, const u8 **end) {
    while (*p < *end && fn_is_space(**p)) {
        (*p)++;
    }
    while (*p < *end && fn_is_space((*end)[-1])) {
        (*end)--;
    }
}

/* With spaces, or so many digits that only a checked loop can tell. */
FN_SLOW u8 fn_read_int_slow(const u8 *p, const u8 *end, i64 *out) {
    fn_trim_space(&p, &end);
    b8 negative = (b8)(p < end && *p == '-');
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end) {
        return FAULT_TEXT_INT;
    }
    u64 limit = negative ? 1ULL << 63 : (1ULL << 63) - 1;
    u64 value = 0;
    b8 over = 0;
    for (; p < end; p++) {
        if (!fn_is_digit(*p)) {
            return FAULT_TEXT_INT;
        }
        u64 digit = (u64)(*p - '0');
        over |= (b8)(value > (limit - digit) / 10);
        value = over ? 0 : value * 10 + digit;
    }
    if (over) {
        return FAULT_BIGINT;
    }
    *out = (i64)(negative ? 0 - value : value);
    return 0;
}

FN u8 fn_read_int(const u8 *p, const u8 *end, i64 *out) {
    const u8 *first = p;
    b8 negative = (b8)(p < end && *p == '-');
    p += negative;
    u64 value = 0;
    if (p == end || end - p > 18 || fn_read_digits(p, end, &value) != end) {
        return fn_read_int_slow(first, end, out);
    }
    *out = (i64)(negative ? 0 - value : value);
    return 0;
}

typedef struct fn_number {
    const u8 *digits; /* first significant digit; the point may be among those that follow */
    i64 digit_count;  /* significant digits, without leading zeros; 0 for zero */
    i64 exponent;     /* value = 0.digits * 10^exponent */
    b8 negative;
} fn_number;

/* The next digit of a scanned number, stepping over the point. */
FN u32 fn_next_digit(const u8 **p) {
    if (**p == '.') {
        (*p)++;
    }
    return (u32)(*(*p)++ - '0');
}

/* The exponent after 'e'; saturates, since anything beyond a million is out of every range. */
FN_SLOW b8 fn_scan_exponent(const u8 *p, const u8 *end, i64 *exponent) {
    b8 negative = (b8)(p < end && *p == '-');
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end) {
        return 0;
    }
    i64 value = 0;
    for (; p < end; p++) {
        if (!fn_is_digit(*p)) {
            return 0;
        }
        value = value * 10 + (i64)(*p - '0');
        value = value > 1000000000 ? 1000000000 : value;
    }
    *exponent = negative ? -value : value;
    return 1;
}

/* [sign] digits with at most one point [e [sign] digits], all of the text; 0 when it is not that. */
FN_SLOW b8 fn_scan_number(const u8 *p, const u8 *end, fn_number *out) {
    out->digits = (const u8 *)0;
    out->digit_count = 0;
    out->exponent = 0;
    out->negative = (b8)(p < end && *p == '-');
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    b8 any = 0;
    b8 point = 0;
    i64 before_point = 0;
    i64 zeros_after_point = 0;
    for (; p < end; p++) {
        if (fn_is_digit(*p)) {
            any = 1;
            if (!out->digits && *p != '0') {
                out->digits = p;
            }
            out->digit_count += out->digits != (const u8 *)0;
            before_point += out->digits && !point;
            zeros_after_point += !out->digits && point;
        } else if (*p == '.' && !point) {
            point = 1;
        } else {
            break;
        }
    }
    i64 exponent = 0;
    if (!any || (p < end && ((*p | 32) != 'e' || !fn_scan_exponent(p + 1, end, &exponent)))) {
        return 0;
    }
    out->exponent = exponent + (before_point ? before_point : -zeros_after_point);
    return 1;
}

/* Whether the text is a word of up to eight letters, given in small ones, the first one lowest. */
FN b8 fn_is_word(const u8 *p, const u8 *end, u64 word) {
    for (; p < end && word; p++) {
        u32 c = *p;
        if ((c - 'A' < 26u ? c | 32u : c) != (u32)(word & 255)) {
            return 0;
        }
        word >>= 8;
    }
    return (b8)(p == end && !word);
}

/* NaN or an infinity, with sign: 1 = NaN, 2 = infinity, -2 = minus infinity; 0 = neither. */
FN_SLOW i32 fn_scan_special(const u8 *p, const u8 *end) {
    b8 negative = (b8)(p < end && *p == '-');
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (fn_is_word(p, end, 0x6e616eULL)) { /* nan */
        return 1;
    }
    b8 infinite = fn_is_word(p, end, 0x666e69ULL) || fn_is_word(p, end, 0x7974696e69666e69ULL);
    return !infinite ? 0 : negative ? -2 : 2;
}

FN_SLOW u8 fn_read_dec_slow(const u8 *p, const u8 *end, i32 scale, i128 *out) {
    fn_number n;
    fn_trim_space(&p, &end);
    if (!fn_scan_number(p, end, &n)) {
        return (u8)(fn_scan_special(p, end) ? FAULT_DECIMAL : FAULT_TEXT_NUM);
    }
    i64 keep = n.exponent + scale; /* digits of the result, before rounding */
    if (!n.digit_count || keep < 0) {
        *out = 0;
        return 0;
    }
    if (keep > 38) {
        return FAULT_DECIMAL;
    }
    u128 value = 0;
    const u8 *digit = n.digits;
    i64 there = keep < n.digit_count ? keep : n.digit_count;
    for (i64 i = 0; i < there; i++) {
        value = value * 10 + fn_next_digit(&digit);
    }
    if (keep > n.digit_count) {
        value *= fn_pow10((i32)(keep - n.digit_count));
    } else if (keep < n.digit_count) {
        value += fn_next_digit(&digit) >= 5;
    }
    if (value >= fn_dec_limit()) {
        return FAULT_DECIMAL;
    }
    *out = fn_signed(value, n.negative);
    return 0;
}

/* A decimal times 10^scale, half away from zero. */
FN u8 fn_read_dec(const u8 *p, const u8 *end, i32 scale, i128 *out) {
    const u8 *start = p;
    b8 negative = (b8)(p < end && *p == '-');
    p += negative;
    if (end - p > 18 || p == end || !fn_is_digit(*p)) {
        return fn_read_dec_slow(start, end, scale, out);
    }
    u64 value = 0;
    i32 fraction = 0;
    p = fn_read_digits(p, end, &value);
    if (p < end && *p == '.') {
        const u8 *first = ++p;
        p = fn_read_digits(p, end, &value);
        fraction = (i32)(p - first);
    }
    if (p != end || fraction > scale || scale - fraction > 18) {
        return fn_read_dec_slow(start, end, scale, out);
    }
    i128 scaled = (i128)((u128)value * fn_pow10_table[scale - fraction]);
    *out = negative ? -scaled : scaled; /* at most 36 digits */
    return 0;
}

/* Whether the text begins a word of which no fewer than `least` letters tell it from the others. */
FN b8 fn_begins_word(const u8 *p, const u8 *end, u64 word, u32 least) {
    u64 len = (u64)(end - p);
    return (b8)(len >= least && len < 8 && fn_is_word(p, end, word & ((1ULL << (8 * len)) - 1)));
}

/* true, false, yes, no, on, off and their unique beginnings, 1, 0 */
FN_SLOW u8 fn_read_bool(const u8 *p, const u8 *end, b8 *out) {
    fn_trim_space(&p, &end);
    if (fn_begins_word(p, end, 0x65757274ULL, 1) || fn_begins_word(p, end, 0x736579ULL, 1) ||
        fn_is_word(p, end, 0x6e6fULL) || fn_is_word(p, end, '1')) {
        *out = 1;
        return 0;
    }
    if (fn_begins_word(p, end, 0x65736c6166ULL, 1) || fn_begins_word(p, end, 0x6f6eULL, 1) ||
        fn_begins_word(p, end, 0x66666fULL, 2) || fn_is_word(p, end, '0')) {
        *out = 0;
        return 0;
    }
    return FAULT_TEXT_BOOL;
}

/* 128 bits, held with the highest one inverted so that signed comparison orders as bytes do. */
FN_SLOW u8 fn_read_uuid(const u8 *p, const u8 *end, i128 *out) {
    fn_trim_space(&p, &end);
    if (end - p > 1 && p[0] == '{' && end[-1] == '}') {
        p++;
        end--;
    }
    u128 value = 0;
    i32 digits = 0;
    b8 dash = 0; /* was the last one */
    for (; p < end; p++) {
        i32 digit = fn_hex_value(*p);
        b8 between = (b8)(digits % 4 == 0 && digits > 0 && digits < 32 && !dash);
        dash = (b8)(*p == '-');
        if (dash && between) {
            continue;
        }
        if (digit < 0 || digits == 32) {
            return FAULT_TEXT_UUID;
        }
        value = value << 4 | (u32)digit;
        digits++;
    }
    if (digits != 32) {
        return FAULT_TEXT_UUID;
    }
    *out = (i128)(value ^ (u128)1 << 127);
    return 0;
}

FN i64 fn_parse_int(str a, u8 *f) {
    i64 value = 0;
    u8 fault = fn_read_int(fn_str_ptr(a), fn_str_ptr(a) + a.len, &value);
    *f = fault ? fault : *f;
    return value;
}

FN i128 fn_parse_dec(str a, i32 scale, u8 *f) {
    i128 value = 0;
    u8 fault = fn_read_dec(fn_str_ptr(a), fn_str_ptr(a) + a.len, scale, &value);
    *f = fault ? fault : *f;
    return value;
}

FN b8 fn_parse_bool(str a, u8 *f) {
    b8 value = 0;
    u8 fault = fn_read_bool(fn_str_ptr(a), fn_str_ptr(a) + a.len, &value);
    *f = fault ? fault : *f;
    return value;
}

FN i128 fn_parse_uuid(str a, u8 *f) {
    i128 value = 0;
    u8 fault = fn_read_uuid(fn_str_ptr(a), fn_str_ptr(a) + a.len, &value);
    *f = fault ? fault : *f;
    return value;
}

#endif
