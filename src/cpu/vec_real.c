/* vec_real.c: roots, exponentials, logarithms and angles as loops over a vector.
 *
 * Compiled once per processor level, like vec_ops.c. The bodies of fn_real.h have no branches, so
 * compilers vectorise them; what they do rarely (angles beyond REAL_SMALL_ANGLE) is left out here
 * and done again row by row. Rows of a selection are brought together first: a gathered row is
 * cheaper than one that is computed alone. */
#include "cpu/vec_real.h"

#include "cpu/vec_loop.h"

#include "defs/host_words.h"

#define FN_RARELY(x) 0
#include "defs/fn_float.h"
#include "defs/real_table.h"
#include "defs/fn_real.h"

#ifndef WF_LEVEL
#error "WF_LEVEL names the processor level: baseline, avx2 or avx512"
#endif

#define GET_f64(x) const f64 x = v##x[i];
#define GET_no(x)

/* The faults are joined in a loop of their own: conditional ones keep the other from vectors. */
#define LOOP(name, kb, expr, ...)                                                                \
    static u8 dense_##name(void *restrict dst, const void *restrict pa,             \
                                        const void *restrict pb, const void *restrict pc, i64 n, \
                                        u8 *restrict fault) {                                    \
        f64 *restrict out = dst;                                                                 \
        const f64 *restrict va = pa;                                                             \
        const f64 *restrict vb = pb;                                                             \
        UNUSED(vb);                                                                              \
        UNUSED(pc);                                                                              \
        for (i64 i = 0; i < n; i++) {                                                            \
            u8 row_fault = 0;                                                                    \
            u8 *f = &row_fault;                                                                  \
            UNUSED(f);                                                                           \
            GET_f64(a) GET_##kb(b) out[i] = expr;                                                \
            fault[i] = row_fault;                                                                \
        }                                                                                        \
        __VA_ARGS__                                                                              \
        return any_fault(fault, n);                                                              \
    }

static u8 any_fault(const u8 *fault, i64 n) {
    u8 any = 0;
    for (i64 i = 0; i < n; i++) {
        any |= fault[i];
    }
    return any;
}

typedef f64 angle_fn(f64 a, u8 *f);

static void large_angles(f64 *restrict out, const f64 *restrict a, i64 n, u8 *restrict fault,
                         angle_fn *fn) {
    i64 large = 0;
    for (i64 i = 0; i < n; i++) {
        large += fn_abs_f64(a[i]) >= REAL_SMALL_ANGLE;
    }
    for (i64 i = 0; large > 0 && i < n; i++) {
        if (fn_abs_f64(a[i]) >= REAL_SMALL_ANGLE) {
            fault[i] = 0;
            out[i] = fn(a[i], &fault[i]);
            large--;
        }
    }
}

#define X(A, name, fails, r, ka, kb, kc, part, expr, text) LOOP(name, kb, expr, )
WF_OPS_PLAIN(X, )
#undef X
#define X(A, name, fails, r, ka, kb, kc, part, expr, text) \
    LOOP(name, kb, expr, large_angles(out, va, n, fault, real_##name);)
WF_OPS_ANGLE(X, )
#undef X

enum { GATHERED = 256 };

static u8 gathered(vec_fn *fn, f64 *restrict out, const f64 *restrict a, const f64 *restrict b,
                   const u32 *restrict sel, i64 m, u8 *restrict fault) {
    f64 in[2][GATHERED], made[GATHERED];
    u8 found[GATHERED], any = 0;
    for (i64 from = 0; from < m; from += GATHERED) {
        i64 n = MIN_OF(m - from, GATHERED);
        for (i64 j = 0; j < n; j++) {
            in[0][j] = a[sel[from + j]];
            in[1][j] = b[sel[from + j]];
        }
        any |= fn(made, in[0], in[1], NULL, n, found);
        for (i64 j = 0; j < n; j++) {
            out[sel[from + j]] = made[j];
            fault[sel[from + j]] = found[j];
        }
    }
    return any;
}

#define PICK_f64 pb
#define PICK_no pa
#define X(A, name, fails, r, ka, kb, kc, part, expr, text)                                    \
    static u8 sel_##name(void *restrict dst, const void *restrict pa,            \
                                      const void *restrict pb, const void *restrict pc,       \
                                      const u32 *restrict sel, i64 m, u8 *restrict fault) {   \
        UNUSED(pb);                                                                           \
        UNUSED(pc);                                                                           \
        return gathered(dense_##name, dst, pa, PICK_##kb, sel, m, fault); \
    }
WF_OPS_REAL(X, )
#undef X

#define X(A, name, fails, r, ka, kb, kc, part, expr, text) {dense_##name, NULL, sel_##name},
const struct vec_loops LEVEL_NAME(vec_reals)[] = {WF_OPS_REAL(X, )};
#undef X
