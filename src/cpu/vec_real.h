/* vec_real.h: loops over doubles for the opcodes of real.def, one set per processor level.
 *
 * It does not include op.def, on purpose: these loops take long to compile. Signatures as in vec.h.
 */
#ifndef WF_CPU_VEC_REAL_H
#define WF_CPU_VEC_REAL_H

#include "base/base.h"
#include "defs/real.def"

#define REAL_NAME_(name, form, level) real_##form##_##name##_##level
#define REAL_NAME(name, form, level) REAL_NAME_(name, form, level)

#define X(A, name, fails, r, ka, kb, kc, part, expr, text)                                     \
    u8 REAL_NAME(name, dense, WF_LEVEL)(void *restrict dst, const void *restrict a,            \
                                        const void *restrict b, const void *restrict c, i64 n, \
                                        u8 *restrict fault);                                   \
    u8 REAL_NAME(name, sel, WF_LEVEL)(void *restrict dst, const void *restrict a,              \
                                      const void *restrict b, const void *restrict c,          \
                                      const u32 *restrict sel, i64 m, u8 *restrict fault);
WF_OPS_REAL(X, )
#undef X

/* The scalar bodies of angles (real_angle.c). */
#define X(A, name, fails, r, ka, kb, kc, part, expr, text) f64 real_##name(f64 a, u8 *f);
WF_OPS_ANGLE(X, )
#undef X

#endif
