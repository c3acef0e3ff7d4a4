/* fn_order.h: the bits that order and spread keys, the same on every device; the hashes themselves
 * are fn_table.h's, which stands before it.
 *
 * Kernel text: compiles as C11 and as CUDA C and is written in the words of the prelude
 * (host_words.h on the CPU). Unsigned words order as they are; signed ones once their highest bit
 * is flipped, which the caller does, as it does for descending order. Floats go through order_f32
 * and order_f64: -0 and 0 become one, every NaN the greatest. */
#ifndef WF_DEFS_FN_ORDER_H
#define WF_DEFS_FN_ORDER_H

FN u32 order_f32(u32 bits) {
    bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits == 0x80000000u ? 0u : bits;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}
FN u64 order_f64(u64 bits) {
    bits = (bits & 0x7fffffffffffffffULL) > 0x7ff0000000000000ULL ? 0x7fffffffffffffffULL
           : bits == 0x8000000000000000ULL                        ? 0ULL
                                                                  : bits;
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ULL;
}

FN u64 hash_128(u64 low, u64 high) {
    return hash_64(low ^ hash_64(high));
}

FN u64 hash_text(const u8 *at, u64 n) {
    u64 h = n * 0x9e3779b97f4a7c15ULL;
    for (u64 i = 0; i < n; i += 8) {
        u64 word = 0;
        for (u64 k = i; k < n && k < i + 8; k++) {
            word |= (u64)at[k] << 8 * (k - i);
        }
        h = hash_64(h ^ word);
    }
    return hash_64(h);
}
/* The first eight bytes as a number that orders them; missing ones are 0. */
FN u64 text_prefix(const u8 *at, u64 n) {
    u64 prefix = 0;
    for (u64 k = 0; k < 8; k++) {
        prefix = prefix << 8 | (k < n ? at[k] : 0u);
    }
    return prefix;
}
/* Bits that are the same for equal floats: one zero, one NaN. */
FN u32 same_f32(u32 bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits == 0x80000000u ? 0u : bits;
}
FN u64 same_f64(u64 bits) {
    return (bits & 0x7fffffffffffffffULL) > 0x7ff0000000000000ULL ? 0x7ff8000000000000ULL
           : bits == 0x8000000000000000ULL                        ? 0ULL
                                                                  : bits;
}

/* Buckets between splitters that quick sort gives a part of n elements, at most `most`: enough for
 * parts of `rows` at once, or as many now as at the next level. */
FN u32 quick_fan(u64 n, u32 rows, u32 most) {
    u64 want = n / rows + 1u;
    u32 fan = 2;
    if (want <= 2u * (u64)most) {
        return want < 2u ? 2u : want < most ? (u32)want : most;
    }
    while (fan < most && 2u * (u64)fan * fan < want) {
        fan *= 2u;
    }
    return fan < most ? fan : most;
}

#endif
