/* vec_loop.h: loops that compute an opcode for the rows of a vector, one set per processor level.
 *
 * It knows no opcode by name: those who write the loops (vec_ops.c, vec_real.c, vec_like.c) list them in the
 * order of their table, and vec_loops_of finds them. Elements are dense, positions are ascending. */
#ifndef WF_CPU_VEC_LOOP_H
#define WF_CPU_VEC_LOOP_H

#include "base/base.h"
#include "base/level.h"

/* n dense rows. May-fail opcodes write one fault byte per row and return the OR of them. */
typedef u8 vec_fn(void *restrict dst, const void *restrict a, const void *restrict b,
                  const void *restrict c, i64 n, u8 *restrict fault);
/* The rows sel[0..m) only; results and faults go to the same positions. */
typedef u8 vec_sel_fn(void *restrict dst, const void *restrict a, const void *restrict b,
                      const void *restrict c, const u32 *restrict sel, i64 m, u8 *restrict fault);

struct vec_loops {
    vec_fn *dense;
    vec_fn *dense_const; /* two-operand opcodes: b points to one value */
    vec_sel_fn *sel;     /* opcodes too heavy, or unsafe, for rows that are not active */
};

/* Parts of op_loop.def that have loops (its lines name them); loops of a part are compiled together. */
#define WF_LOOP_PARTS(X, A) X(A, core) X(A, int) X(A, float) X(A, date) X(A, str) X(A, like)
#define X(A, part) LOOPS_##part,
enum loop_part { WF_LOOP_PARTS(X, ) LOOP_PARTS };
#undef X

#define X_PART(level, part) extern const struct vec_loops vec_ops_##part##_##level[]; /* op_loop.def */
#define X(level)                                                                                   \
    WF_LOOP_PARTS(X_PART, level)                                                                   \
    extern const struct vec_loops vec_reals_##level[]; /* real.def */                              \
    /* LIKE whose pattern is the first element of b, for all rows */                               \
    vec_fn vec_like_##level;                                                                       \
    vec_sel_fn vec_like_sel_##level;
X(baseline) X(avx2) X(avx512)
#undef X
#undef X_PART

#endif
