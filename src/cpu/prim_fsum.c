/* prim_fsum.c: exact sums of floats on the CPU, as limbs that are rounded once (see prim/move.h).
 *
 * Many values go into limbs, four sets of them in turn. Few values, as segments have, mostly lie so
 * close together that their sum is one number of 128 bits, which is far cheaper than clearing and
 * rounding all limbs. */
#include "cpu/cpu_int.h"
#include "cpu/prim_int.h"

#include "defs/host_words.h"
/* after the words it is written in */
#include "defs/fn_float.h"
#include "defs/fn_fround.h"

enum { FEW_BITS = 120, FEW_VALUES = 1 << 12 };

/* A finite value is mantissa * 2^(low - 1074). */
static inline u64 float_mantissa(u64 bits, i32 biased) {
    return (bits & 0xfffffffffffffULL) | (u64)(biased != 0) << 52;
}

static inline void fsum_add(i64 *words, f64 x) {
    u64 bits = f64_bits(x);
    i32 biased = (i32)(bits >> 52 & 2047);
    if (biased == 2047) {
        words[x != x ? FSUM_NAN : x > 0 ? FSUM_PLUS : FSUM_MINUS]++;
        return;
    }
    i32 low = biased ? biased - 1 : 0;
    u128 wide = (u128)float_mantissa(bits, biased) << (low & 31);
    i64 sign = -(i64)(bits >> 63);
    i64 *at = words + (low >> 5);
    at[0] += ((i64)(u32)wide ^ sign) - sign;
    at[1] += ((i64)(u32)(wide >> 32) ^ sign) - sign;
    at[2] += ((i64)(u32)(wide >> 64) ^ sign) - sign;
}

/* fsum: four sums take turns, so that one value's addition does not wait for the one before.
 * few: the sum in units of the least value's; false when it does not fit. */
#define FSUM_LOOPS(type)                                                          \
    static void fsum_##type(i64 *out, const type *in, i64 n) {                    \
        i64 words[4][FSUM_WORDS] = {{0}};                                         \
        i64 i = 0;                                                                \
        for (; i + 4 <= n; i += 4) {                                              \
            fsum_add(words[0], (f64)in[i]);                                       \
            fsum_add(words[1], (f64)in[i + 1]);                                   \
            fsum_add(words[2], (f64)in[i + 2]);                                   \
            fsum_add(words[3], (f64)in[i + 3]);                                   \
        }                                                                         \
        for (; i < n; i++) {                                                      \
            fsum_add(words[0], (f64)in[i]);                                       \
        }                                                                         \
        for (i32 k = 0; k < FSUM_WORDS; k++) {                                    \
            out[k] = words[0][k] + words[1][k] + words[2][k] + words[3][k];       \
        }                                                                         \
    }                                                                             \
    static bool few_##type(const type *in, i64 n, i128 *out, i32 *out_low) {      \
        i32 least = 2047;                                                         \
        i32 most = 0;                                                             \
        for (i64 i = 0; i < n; i++) {                                             \
            i32 biased = (i32)(f64_bits((f64)in[i]) >> 52 & 2047);                \
            least = in[i] != 0 && biased < least ? biased : least;                \
            most = biased > most ? biased : most;                                 \
        }                                                                         \
        if (most == 2047 || most - least > FEW_BITS - 53 - 12) {                  \
            return false;                                                         \
        }                                                                         \
        i32 base = least ? least : 1;                                             \
        i128 sum = 0;                                                             \
        for (i64 i = 0; i < n; i++) {                                             \
            u64 bits = f64_bits((f64)in[i]);                                      \
            i32 biased = (i32)(bits >> 52 & 2047);                                \
            i32 up = (biased ? biased : 1) - base;                                \
            i128 units = (i128)float_mantissa(bits, biased) << (up > 0 ? up : 0); \
            sum += bits >> 63 ? -units : units;                                   \
        }                                                                         \
        *out = sum;                                                               \
        *out_low = base - 1;                                                      \
        return true;                                                              \
    }
FSUM_LOOPS(f64)
FSUM_LOOPS(f32)
#undef FSUM_LOOPS

void fsum_values(i64 *out, enum elem type, const void *in, i64 n) {
    if (type == ELEM_F64) {
        fsum_f64(out, in, n);
    } else {
        fsum_f32(out, in, n);
    }
}

/* Limbs are added as halves, so that no number of joins overflows them. */
void fsum_join(i64 *all, const i64 *words) {
    for (i32 i = 0; i < FSUM_LIMBS - 1; i++) {
        all[i] += (i64)(u32)words[i];
        all[i + 1] += words[i] >> 32;
    }
    for (i32 i = FSUM_LIMBS - 1; i < FSUM_WORDS; i++) {
        all[i] += words[i];
    }
}

u8 fsum_rounded(enum elem type, const void *in, i64 n, void *out) {
    i128 sum = 0;
    i32 low = 0;
    u8 fault = 0;
    if (n > FEW_VALUES ||
        !(type == ELEM_F64 ? few_f64(in, n, &sum, &low) : few_f32(in, n, &sum, &low))) {
        i64 words[FSUM_WORDS];
        fsum_values(words, type, in, n);
        return prim_fsum_round(words, type, out);
    }
    u128 bits = (u128)sum;
    i64 words[4] = {(i64)(u32)bits, (i64)(u32)(bits >> 32), (i64)(u32)(bits >> 64),
                    (i64)(sum >> 96)};
    if (type == ELEM_F64) {
        *(f64 *)out = fn_fround_f64(words, 4, 32, low - 1074, &fault);
    } else {
        *(f32 *)out = fn_fround_f32(words, 4, 32, low - 1074, &fault);
    }
    return fault;
}
