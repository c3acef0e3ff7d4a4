/* vec_ops.c: the scalar opcodes of one part of op_loop.def, each as loops over a vector.
 *
 * Compiled once per processor level and part (WF_LEVEL and WF_PART name them, WF_LOOPS the lines of
 * the part). The loops are plain C that compilers vectorise: restrict pointers, no branches, one
 * statement a row. They stand in the order of their lines: this file knows no numbers of opcodes,
 * so that an edit of op_loop.def compiles the loops of the part it touches, and no others.
 *
 * A loop computes rows that are not active as well, unless the opcode is heavy (cost of HEAVY or
 * more) or follows addresses: those run over the selection. Values of inactive rows are arbitrary,
 * so an addition may wrap there; the results are never read. */
#include "cpu/vec_loop.h"

#include "defs/host_words.h"

#include "defs/fn_int.h"

#include "defs/fn_float.h"

#include "defs/fn_date.h"

#include "defs/fn_str.h"

#include "defs/fn_like.h"

#if !defined(WF_LEVEL) || !defined(WF_PART) || !defined(WF_LOOPS)
#error "WF_LEVEL names the processor level, WF_PART the part of op_loop.def, WF_LOOPS the file with its lines"
#endif

/* The expressions of op.def have the operands' promoted types; the stores narrow them back. */
#pragma GCC diagnostic ignored "-Wconversion"

#define WRAPS __attribute__((no_sanitize("undefined")))
#define HEAVY 16
#define PART_LEVEL_NAME_(what, part) LEVEL_NAME(what##_##part)
#define PART_LEVEL_NAME(what, part) PART_LEVEL_NAME_(what, part)

#define ARGS \
    void *restrict dst, const void *restrict va, const void *restrict vb, const void *restrict vc
#define UNUSED_ARGS() \
    UNUSED(va);       \
    UNUSED(vb);       \
    UNUSED(vc);       \
    UNUSED(fault)
/* A function whose loop body is the last argument; it sees row i and may set `any`. */
#define DENSE(name, r, ...)                                 \
    WRAPS static u8 name(ARGS, i64 n, u8 *restrict fault) { \
        UNUSED_ARGS();                                      \
        r *restrict out = dst;                              \
        u8 any = 0;                                         \
        for (i64 i = 0; i < n; i++) {                       \
            __VA_ARGS__                                     \
        }                                                   \
        return any;                                         \
    }
#define SPARSE(name, r, ...)                                                         \
    WRAPS static u8 name(ARGS, const u32 *restrict sel, i64 m, u8 *restrict fault) { \
        UNUSED_ARGS();                                                               \
        r *restrict out = dst;                                                       \
        u8 any = 0;                                                                  \
        for (i64 j = 0; j < m; j++) {                                                \
            const u32 i = sel[j];                                                    \
            __VA_ARGS__                                                              \
        }                                                                            \
        return any;                                                                  \
    }
#define GET(k, x) const k x = ((const k *)v##x)[i];
#define GET_CONST(k, x) const k x = *(const k *)v##x;
#define PLAIN(...) out[i] = __VA_ARGS__;
#define FAULTY(...)       \
    u8 row_fault = 0;     \
    u8 *f = &row_fault;   \
    out[i] = __VA_ARGS__; \
    fault[i] = row_fault; \
    any |= row_fault;

#define X1(A, name, r, ka, cost, expr) \
    DENSE(d_##name, r, GET(ka, a) A(expr)) SPARSE(s_##name, r, GET(ka, a) A(expr))
#define X2(A, name, r, ka, kb, cost, expr)                  \
    DENSE(d_##name, r, GET(ka, a) GET(kb, b) A(expr))       \
    DENSE(c_##name, r, GET(ka, a) GET_CONST(kb, b) A(expr)) \
    SPARSE(s_##name, r, GET(ka, a) GET(kb, b) A(expr))
#define X3(A, name, r, ka, kb, kc, cost, expr)                   \
    DENSE(d_##name, r, GET(ka, a) GET(kb, b) GET(kc, c) A(expr)) \
    SPARSE(s_##name, r, GET(ka, a) GET(kb, b) GET(kc, c) A(expr))
#include WF_LOOPS
#undef X1
#undef X2
#undef X3

#define HEAVY_FN(cost, fn) ((cost) >= HEAVY ? fn : NULL)
#define X1(A, name, r, ka, cost, expr) {d_##name, NULL, HEAVY_FN(cost, s_##name)},
#define X2(A, name, r, ka, kb, cost, expr) {d_##name, c_##name, HEAVY_FN(cost, s_##name)},
#define X3(A, name, r, ka, kb, kc, cost, expr) {d_##name, NULL, HEAVY_FN(cost, s_##name)},
const struct vec_loops PART_LEVEL_NAME(vec_ops, WF_PART)[] = {
#include WF_LOOPS
};
#undef X1
#undef X2
#undef X3
