/* value_scan.h: the shape of numbers in text, shared by the value_*.c files only. */
#ifndef WF_DEFS_VALUE_SCAN_H
#define WF_DEFS_VALUE_SCAN_H

#include "base/base.h"
#include "defs/host_words.h"
#include "defs/fn_str.h"

struct number {
    const u8 *digits; /* first significant digit; the point may be among those that follow */
    i64 digit_count;  /* significant digits, without leading zeros; 0 for zero */
    i64 exponent;     /* value = 0.digits * 10^exponent */
    bool negative;
};

static inline bool is_digit(u8 c) {
    return (u8)(c - '0') < 10;
}

static inline bool is_space(u8 c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next digit of a scanned number, stepping over the point. */
static inline u32 number_digit(const u8 **p) {
    if (**p == '.') {
        (*p)++;
    }
    return (u32)(*(*p)++ - '0');
}

/* Eight ASCII digits at once: every nibble test is one operation, and pairs, fours and eights
 * combine by multiplication. */
static inline bool eight_digits(u64 x) {
    return ((x & 0xf0f0f0f0f0f0f0f0ULL) |
            ((x + 0x0606060606060606ULL) & 0xf0f0f0f0f0f0f0f0ULL) >> 4) == 0x3333333333333333ULL;
}

static inline u64 eight_value(u64 x) { /* first digit in the highest byte */
    x &= 0x0f0f0f0f0f0f0f0fULL;
    x = (x & 0x00ff00ff00ff00ffULL) + (x >> 8 & 0x00ff00ff00ff00ffULL) * 10;
    x = (x & 0x0000ffff0000ffffULL) + (x >> 16 & 0x0000ffff0000ffffULL) * 100;
    return (x & 0xffffffffULL) + (x >> 32) * 10000;
}

/* Reads digits from p on; at most 19 may follow. Returns the first byte that is none. */
static inline const u8 *number_digits(const u8 *p, const u8 *end, u64 *value) {
    u64 v = *value;
    while (end - p >= 8) {
        u64 x = fn_load8(p);
        if (!eight_digits(x)) {
            break;
        }
        v = v * 100000000 + eight_value(x);
        p += 8;
    }
    while (p < end && is_digit(*p)) {
        v = v * 10 + (u64)(*p - '0');
        p++;
    }
    *value = v;
    return p;
}

struct sv value_trim(struct sv s); /* without spaces around it */
/* [sign] digits with at most one point [e [sign] digits], all of s; false when it is not that. */
bool number_scan(struct sv s, struct number *out);
/* NaN or an infinity, with sign: 1 = NaN, 2 = infinity, -2 = minus infinity; 0 = neither. */
i32 number_special(struct sv s);

#endif
