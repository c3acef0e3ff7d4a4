/* ops.c: op.def, op_loop.def and real.def expanded into the table of opcode properties.
 *
 * The table serves EXPLAIN, the verifier, the weaver (which writes `expr` into kernels as it
 * stands) and the reference page. */
#include "defs/ops.h"

#include "codes/op.h"
#include "defs/op.def"
#include "defs/op_loop.def"
#include "defs/real.def"

/* From an operand's C name in op.def to its kind; `no` means no operand. */
#define X(A, c_name, name, bytes) KIND_OF_##c_name = KIND_##name,
enum { WF_KINDS(X, ) KIND_OF_no = KIND_NONE };
#undef X

enum { COST_HOST = 100, COST_CONTROL = 1 };

#define ARITY(ka, kb, kc)                                                  \
    (((i32)KIND_OF_##ka != KIND_NONE) + ((i32)KIND_OF_##kb != KIND_NONE) + \
     ((i32)KIND_OF_##kc != KIND_NONE))
#define ROW(name, flags, r, ka, kb, kc, cost, part, expr, text)          \
    [OP_##name] = {#name,                                                \
                   flags,                                                \
                   ARITY(ka, kb, kc),                                    \
                   KIND_OF_##r,                                          \
                   {KIND_OF_##ka, KIND_OF_##kb, KIND_OF_##kc},           \
                   {ROLE_##r, ROLE_##ka, ROLE_##kb, ROLE_##kc, ROLE_no}, \
                   cost,                                                 \
                   part,                                                 \
                   expr,                                                 \
                   text},
#define X1(F, name, r, ka, part, cost, expr, text) \
    ROW(name, F, r, ka, no, no, cost, #part, #expr, text)
#define X2(F, name, r, ka, kb, part, cost, expr, text) \
    ROW(name, F, r, ka, kb, no, cost, #part, #expr, text)
#define X3(F, name, r, ka, kb, kc, part, cost, expr, text) \
    ROW(name, F, r, ka, kb, kc, cost, #part, #expr, text)
#define XH(F, name, r, ka, kb, kc, fn, text) \
    ROW(name, OP_FAULTS | OP_HOST, r, ka, kb, kc, COST_HOST, "host", NULL, text)
#define XM(F, name, fails, ka, kb, kc, part, most, body, text)                                 \
    ROW(name, OP_RARE | OP_MAKES | (fails ? OP_FAULTS : 0), str, ka, kb, kc, COST_HOST, #part, \
        #body, text)
#define XR(F, name, fails, r, ka, kb, kc, part, expr, text) \
    ROW(name, OP_RARE | (fails ? OP_FAULTS : 0), r, ka, kb, kc, COST_HOST, #part, #expr, text)
#define XT(F, name, ka, kb, kc, fn, text) \
    ROW(name, OP_FAULTS | OP_HOST | OP_MAKES, str, ka, kb, kc, COST_HOST, "host", NULL, text)
#define XC(F, name, flag, dst, ra, rb, rc, imm, operands, text)               \
    [OP_##name] = {#name,                                                     \
                   OP_CONTROL | OP_##flag,                                    \
                   0,                                                         \
                   KIND_NONE,                                                 \
                   {KIND_NONE, KIND_NONE, KIND_NONE},                         \
                   {ROLE_##dst, ROLE_##ra, ROLE_##rb, ROLE_##rc, ROLE_##imm}, \
                   COST_CONTROL,                                              \
                   "control",                                                 \
                   operands,                                                  \
                   text},

const struct op_info op_infos[OP_COUNT] = {
    /* clang-format off */
    WF_CTLS(XC, )
    WF_OPS_LOOP(X1, X2, X3, 0, OP_FAULTS)
    WF_OPS_HOST(XH, ) WF_OPS_MAKE(XM, ) WF_OPS_RARE(XR, ) WF_OPS_TEXT(XT, )
    /* clang-format on */
};
#undef X1
#undef X2
#undef X3
#undef XH
#undef XM
#undef XR
#undef XT
#undef XC
#undef ROW
#undef ARITY

static const struct op_ahead *find_op(const struct op_ahead *list, i64 count, u16 code) {
    for (i64 i = 0; i < count; i++) {
        if (list[i].code == code) {
            return &list[i];
        }
    }
    return NULL;
}

#define X(A, name, part, expr) {OP_##name, #part, #expr},
const struct op_ahead *op_ahead(u16 code) {
    static const struct op_ahead list[] = {WF_OPS_AHEAD(X, )};
    return find_op(list, COUNT_OF(list), code);
}

const struct op_ahead *op_partly(u16 code) {
    static const struct op_ahead list[] = {WF_OPS_PARTLY(X, )};
    return find_op(list, COUNT_OF(list), code);
}
#undef X

_Static_assert(OP_COUNT < 65535, "struct op holds the code in 16 bits");
