/* host_words.h: the words of kernel text with host bodies.
 *
 * The bodies in fn_*.h are written in the words of gpu/kernels/prelude.h, so that one text serves
 * every device. A host file includes this header, then the fn_ headers it needs. FN is always
 * inlined: vector loops vectorise only when nothing is left to call. */
#ifndef WF_DEFS_HOST_WORDS_H
#define WF_DEFS_HOST_WORDS_H

#include <string.h>

#include "base/stop.h"
#include "base/word.h"
#include "defs/fault.h"

#define FN static inline __attribute__((always_inline, unused))
#define FN_SLOW static __attribute__((noinline, unused))
#define FN_TAIL FN /* out of line on the card only */
#define CONST_TABLE static const __attribute__((unused))
#define UNROLL /* compilers of the host know best */
#ifndef NO_UNROLL
#define NO_UNROLL
#endif

FN u32 f32_bits(f32 x) {
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FN f32 bits_f32(u32 bits) {
    f32 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FN u64 f64_bits(f64 x) {
    u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FN f64 bits_f64(u64 bits) {
    f64 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FN f64 sqrt_f64(f64 x) { /* x >= 0; IEEE 754's, rounded to nearest */
    return __builtin_sqrt(x);
}

#define UNUSED_WORD(x) ((void)(x))

FN u64 word8_at(const u8 *p) { /* the first byte lowest */
    u64 word;
    memcpy(&word, p, sizeof word);
    return word;
}

FN u32 word8_lead(const u8 *p) { /* words may begin anywhere */
    UNUSED_WORD(p);
    return 0;
}

FN u32 bits_set_u32(u32 x) {
    return (u32)__builtin_popcount(x);
}

FN u32 bits_set_u64(u64 x) {
    return (u32)__builtin_popcountll(x);
}

FN u32 first_set_u32(u32 x) { /* ~0 for 0 */
    return (u32)__builtin_ffs((int)x) - 1u;
}

FN u32 zeros_above_u64(u64 x) { /* 64 for 0 */
    return x ? (u32)__builtin_clzll(x) : 64u;
}

/* Words that other threads read and write as well; nothing is ordered by them. */
FN u64 read_u64(const u64 *p) {
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
FN u64 atom_cas_u64(u64 *p, u64 expect, u64 x) { /* what was there */
    (void)__atomic_compare_exchange_n(p, &expect, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expect;
}

FN void copy_bytes(u8 *out, const u8 *from, u64 len) { /* that do not overlap */
    if (len) {
        memcpy(out, from, len);
    }
}

FN void copy_case(u8 *out, const u8 *from, u64 len, u32 upper) { /* of ASCII */
    for (u64 i = 0; i < len; i++) {
        u8 c = from[i];
        u8 other = (u8)(c ^ 32);
        out[i] = (u8)((u8)(c - (upper ? 'a' : 'A')) < 26 ? other : c);
    }
}

FN u64 mul_high_u64(u64 a, u64 b) {
    return (u64)(((u128)a * b) >> 64);
}

#endif
