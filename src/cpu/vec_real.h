/* vec_real.h: the scalar bodies of angles, for the rows that the loops of vec_real.c leave (real_angle.c). */
#ifndef WF_CPU_VEC_REAL_H
#define WF_CPU_VEC_REAL_H

#include "base/base.h"
#include "defs/real.def"

#define X(A, name, fails, r, ka, kb, kc, part, expr, text) f64 real_##name(f64 a, u8 *f);
WF_OPS_ANGLE(X, )
#undef X

#endif
