/* ops.h: the opcode enum, its properties and a scalar evaluator; expands op.def. Host only. */
#ifndef WF_DEFS_OPS_H
#define WF_DEFS_OPS_H

#include "base/mem.h"
#include "defs/op.def"
#include "defs/real.def"
#include "defs/types.h"

#define X1(A, name, r, a, part, cost, expr, text) OP_##name,
#define X2(A, name, r, a, b, part, cost, expr, text) OP_##name,
#define X3(A, name, r, a, b, c, part, cost, expr, text) OP_##name,
#define XH(A, name, r, a, b, c, fn, text) OP_##name,
#define XM(A, name, a, b, body, text) OP_##name,
#define XR(A, name, fails, r, a, b, c, part, expr, text) OP_##name,
#define XT(A, name, a, b, c, fn, text) OP_##name,
#define XC(A, name, operands, text) OP_##name,
enum op_code {
    WF_CTLS(XC, ) WF_OPS1(X1, ) WF_OPS2(X2, ) WF_OPS3(X3, ) WF_OPS1F(X1, ) WF_OPS2F(X2, ) WF_OPS3F(X3, )
    WF_OPS_HOST(XH, ) WF_OPS_MAKE(XM, ) WF_OPS_RARE(XR, ) WF_OPS_TEXT(XT, ) OP_COUNT
};
#undef X1
#undef X2
#undef X3
#undef XH
#undef XM
#undef XR
#undef XT
#undef XC

/* Flags. HOST: the CPU only. RARE: not in the GPU's virtual machine, and few have vector loops. */
enum { OP_CONTROL = 1, OP_FAULTS = 2, OP_HOST = 4, OP_MAKES = 8, OP_RARE = 16 };
enum { KIND_NONE = 255 };

struct op_info {
    const char *name;
    u8 flags;
    u8 arity;
    u8 result;      /* enum kind; KIND_NONE for control opcodes */
    u8 operands[3]; /* enum kind or KIND_NONE */
    u16 cost;
    const char *part; /* helper text the woven kernel needs: "core", "int", … */
    const char *expr; /* the expression's text; host and make opcodes: NULL */
    const char *text; /* synopsis */
};
extern const struct op_info op_infos[OP_COUNT];

/* A literal or a single value, wide enough for every kind. */
union lit {
    b8 b8;
    i32 i32;
    i64 i64;
    i128 i128;
    f32 f32;
    f64 f64;
    str str;
};

/* Evaluates one scalar opcode on single values. Returns the fault number (0 = fine). Strings it makes are
 * placed in `arena`. */
u8 op_eval(enum op_code code, union lit *out, union lit a, union lit b, union lit c,
           struct arena *arena);

#endif
