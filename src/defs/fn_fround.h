/* fn_fround.h: an exact sum, held in words, rounded once. Kernel text (see fn_int.h).
 *
 * The sum is that of words[i] * 2^(first + spacing * i); words overlap and have signs (they are
 * sums of fn_flimb's limbs). The bodies of FROUND on every device are these functions.
 * See decision 0004. */
#ifndef WF_DEFS_FN_FROUND_H
#define WF_DEFS_FN_FROUND_H

/* IEEE bits of the float nearest to top * 2^bottom, ties to even, of a format with `digits` bits of
 * precision whose least subnormal is 2^least. top's highest bit is set; sticky: it is a little more.
 * Too large a number gives bits at or above those of infinity. */
FN u64 fn_float_bits(u64 top, b8 sticky, i32 bottom, i32 digits, i32 least) {
    i32 last = bottom + 64 - digits; /* exponent of the result's last bit */
    last = last < least ? least : last;
    i32 drop = last - bottom;
    if (drop > 64) {
        return 0;
    }
    u64 kept = drop == 64 ? 0u : top >> drop;
    u64 rest = drop == 0 ? 0u : top << (64 - drop);
    b8 tie = (b8)(rest == 1ULL << 63 && !sticky);
    kept += (u64)(tie ? kept & 1 : (u64)(rest >= 1ULL << 63));
    return ((u64)(last - least) << (digits - 1)) + kept;
}

/* The same of a sum. The words are walked from low to high with a carry; of the digits that result,
 * the window keeps the highest 128 bits. */
FN_SLOW u64 fn_fround_bits(const i64 *words, i32 count, i32 spacing, i32 first, i32 digits,
                           i32 least, b8 *negative) {
    i128 carry = 0;
    for (i32 i = 0; i < count; i++) {
        carry = (carry + words[i]) >> spacing;
    }
    *negative = (b8)(carry < 0);
    u64 mask = (1ULL << spacing) - 1;
    u128 window = 0;
    i32 above = first; /* exponent of the bit above the window */
    i32 zeros = 0;     /* bits of zero digits not yet shifted in */
    b8 sticky = 0;
    carry = 0;
    for (i32 i = 0; i < count || carry != 0; i++) {
        i128 word = i < count ? (i128)words[i] : (i128)0;
        carry += *negative ? -word : word;
        u64 digit = (u64)carry & mask;
        carry >>= spacing;
        zeros += spacing;
        if (digit) {
            sticky |= (b8)(zeros > 127 ? window != 0 : (window << (128 - zeros)) != 0);
            window = (zeros > 127 ? (u128)0 : window >> zeros) | ((u128)digit << (128 - spacing));
            above += zeros;
            zeros = 0;
        }
    }
    if (window == 0) {
        return 0;
    }
    u32 shift = zeros_above_u64((u64)(window >> 64));
    window <<= shift;
    u64 top = (u64)(window >> 64);
    sticky |= (b8)((u64)window != 0);
    return fn_float_bits(top, sticky, above - (i32)shift - 64, digits, least);
}

FN f64 fn_fround_f64(const i64 *words, i32 count, i32 spacing, i32 first, u8 *f) {
    b8 negative = 0;
    u64 bits = fn_fround_bits(words, count, spacing, first, 53, -1074, &negative);
    b8 over = (b8)(bits >= 0x7ff0000000000000ULL);
    *f = (u8)(over ? FAULT_FLOAT_OVERFLOW : *f);
    return bits_f64((over ? 0x7ff0000000000000ULL : bits) | (u64)negative << 63);
}

FN f32 fn_fround_f32(const i64 *words, i32 count, i32 spacing, i32 first, u8 *f) {
    b8 negative = 0;
    u64 bits = fn_fround_bits(words, count, spacing, first, 24, -149, &negative);
    b8 over = (b8)(bits >= 0x7f800000ULL);
    *f = (u8)(over ? FAULT_FLOAT_OVERFLOW : *f);
    return bits_f32((over ? 0x7f800000u : (u32)bits) | (u32)negative << 31);
}

#endif
