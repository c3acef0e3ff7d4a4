/* fsegments.h: segmented sums of floats, exact and rounded once.
 *
 * A float is a whole number of units, 2^-1074, times a power of two; a limb is `bits` bits of it
 * from bit `low` on, with its sign. Limbs of a segment are added by the segmented reduction of
 * words, a limb a pass, so many bits that no sum overflows; k_frange says which limbs there are,
 * k_fsums rounds. What is no number is folded by OR instead. The order of additions does not
 * matter, so the result is that of every device.
 *
 * The text before defines T as u64 and FOLD, the width IN_BYTES of elements, and SPECIALS. */
#define WF_MIN_BLOCKS 4
#define IN_VALUE(args, v, j) float_part(args, float_elem(v, j))

#include "fold.h"

#include "defs/kprim.h"
#include "defs/fault.h"
#include "defs/fn_fround.h"

#define SPECIAL_NAN 1u
#define SPECIAL_PLUS 2u
#define SPECIAL_MINUS 4u

FN f64 float_elem(vec16 v, u32 j) {
#if IN_BYTES == 4
    return (f64)bits_f32(v.w[j]);
#else
    return bits_f64((u64)v.w[2 * j + 1] << 32 | v.w[2 * j]);
#endif
}

struct float_bits {
    u64 mantissa; /* 0: no number, or zero */
    i32 low;      /* of its lowest bit, in units */
    u32 special;
};
FN struct float_bits float_bits(f64 x) {
    struct float_bits f;
    u64 bits = f64_bits(x);
    u32 biased = (u32)(bits >> 52) & 2047u;
    f.mantissa = biased == 2047u ? 0u : (bits & 0xfffffffffffffULL) | (u64)(biased != 0u) << 52;
    f.low = biased ? (i32)biased - 1 : 0;
    f.special = biased != 2047u ? 0u : x != x ? SPECIAL_NAN : x > 0 ? SPECIAL_PLUS : SPECIAL_MINUS;
    return f;
}

FN u64 float_part(const struct ksegments *args, f64 x) {
    struct float_bits f = float_bits(x);
#if SPECIALS
    return f.special;
#else
    i32 shift = f.low - args->low;
    u64 left = shift < args->bits ? f.mantissa << (shift & 63) : 0u;
    u64 right = shift > -64 ? f.mantissa >> (-shift & 63) : 0u;
    u64 limb = (shift >= 0 ? left : right) & ((1ULL << args->bits) - 1u);
    return x < 0 ? 0u - limb : limb;
#endif
}

#include "segments.h"

KERNEL(k_frange, struct kfrange, SEGMENT_THREADS) {
    u64 top = 0;
    u64 low = 0;
    u32 special = 0;
    i64 stride = (i64)t_blocks() * SEGMENT_THREADS * IN_VEC;
    i64 start = ((i64)t_block() * SEGMENT_THREADS + t_id()) * IN_VEC;
    for (i64 i = start; i < args.count; i += stride) {
        vec16 v = in_vec((const u8 *)args.in, i, args.count);
        UNROLL for (u32 j = 0; j < IN_VEC; j++) {
            struct float_bits f = float_bits(float_elem(v, j));
            special |= f.special;
            if (f.mantissa) {
                u64 high = (u64)f.low + 64u - zeros_above_u64(f.mantissa);
                u64 below = FRANGE_LOWEST -
                            ((u64)f.low + 63u - zeros_above_u64(f.mantissa & (0u - f.mantissa)));
                top = high > top ? high : top;
                low = below > low ? below : low;
            }
        }
    }
    UNROLL for (u32 mask = 1; mask < 32; mask *= 2) {
        u64 other_top = w_xor_u64(top, mask);
        u64 other_low = w_xor_u64(low, mask);
        top = other_top > top ? other_top : top;
        low = other_low > low ? other_low : low;
        special |= w_xor_u32(special, mask);
    }
    if (t_lane() == 0) {
        atom_max_u64(&args.range[FRANGE_TOP], top);
        atom_max_u64(&args.range[FRANGE_LOW], low);
        atom_or_u64(&args.range[FRANGE_SPECIAL], special);
    }
}

/* A thread per segment. */
KERNEL(k_fsums, struct kfsums, SEGMENT_THREADS) {
    i64 stride = (i64)t_blocks() * SEGMENT_THREADS;
    for (i64 s = (i64)t_block() * SEGMENT_THREADS + t_id(); s < args.count; s += stride) {
        i64 words[FLIMBS_MOST];
        u8 fault = 0;
        for (u32 c = 0; c < args.limbs; c++) {
            words[c] = (i64)args.words[(i64)c * args.count + s];
        }
        u64 special = args.special ? args.words[(i64)args.limbs * args.count + s] : 0u;
        u32 both = SPECIAL_PLUS | SPECIAL_MINUS;
        u32 none = (special & SPECIAL_NAN) || (special & both) == both;
#if IN_BYTES == 4
        f32 x = fn_fround_f32(words, (i32)args.limbs, args.bits, args.low - 1074, &fault);
        u32 sign = special & SPECIAL_MINUS ? 1u << 31 : 0u;
        x = none ? bits_f32(0x7fc00000u) : special ? bits_f32(0x7f800000u | sign) : x;
        ((f32 *)args.out)[s] = x;
#else
        f64 x = fn_fround_f64(words, (i32)args.limbs, args.bits, args.low - 1074, &fault);
        u64 sign = special & SPECIAL_MINUS ? 1ULL << 63 : 0u;
        x = none      ? bits_f64(0x7ff8000000000000ULL)
            : special ? bits_f64(0x7ff0000000000000ULL | sign)
                      : x;
        ((f64 *)args.out)[s] = x;
#endif
        if (fault && !special) {
            atom_max_u32(args.fault, fault);
        }
    }
}
