/* eval.c: op.def, op_loop.def and real.def expanded into the scalar evaluator.
 *
 * It folds constants and is the yardstick the devices' tests compare with: it runs the same
 * expression on single values. */
#include "host/eval.h"

#include "codes/op.h"
#include "defs/op.def"
#include "defs/op_loop.def"
#include "defs/real.def"
#include "host/bodies.h"

#include "defs/host_words.h"
#include "defs/fn_int.h"
#include "defs/fn_float.h"
#include "defs/fn_date.h"
#include "defs/fn_str.h"
#include "defs/fn_like.h"
#include "defs/fn_math.h"
#include "defs/real_table.h"
#include "defs/fn_real.h"
#include "defs/fn_str2.h"
#include "defs/fn_time.h"

/* Calls of host and make bodies by their number of operands: `no` operands are left out. */
#define ARG_b8(which) l##which.b8,
#define ARG_str(which) l##which.str,
#define ARG_i32(which) l##which.i32,
#define ARG_i64(which) l##which.i64,
#define ARG_i128(which) l##which.i128,
#define ARG_f64(which) l##which.f64,
#define ARG_no(which)
#define OPERAND_no(which)
#define OPERAND_b8(which) const b8 which = l##which.b8;
#define OPERAND_str(which) const str which = l##which.str;
#define OPERAND_i32(which) const i32 which = l##which.i32;
#define OPERAND_i64(which) const i64 which = l##which.i64;
#define OPERAND_i128(which) const i128 which = l##which.i128;
#define OPERAND_f64(which) const f64 which = l##which.f64;
#define SIZE_str_no(body) mk_##body##_size(la.str)
#define SIZE_str_str(body) mk_##body##_size(la.str, lb.str)
#define SIZE_i64_no(body) mk_##body##_size(la.i64)
#define SIZE_i128_i32(body) mk_##body##_size(la.i128, lb.i32)
#define SIZE_f32_no(body) mk_##body##_size(la.f32)
#define SIZE_f64_no(body) mk_##body##_size(la.f64)
#define SIZE_i32_no(body) mk_##body##_size(la.i32)
#define SIZE_b8_no(body) mk_##body##_size(la.b8)
#define WRITE_str_no(body) mk_##body##_write(bytes, la.str)
#define WRITE_str_str(body) mk_##body##_write(bytes, la.str, lb.str)
#define WRITE_i64_no(body) mk_##body##_write(bytes, la.i64)
#define WRITE_i128_i32(body) mk_##body##_write(bytes, la.i128, lb.i32)
#define WRITE_f32_no(body) mk_##body##_write(bytes, la.f32)
#define WRITE_f64_no(body) mk_##body##_write(bytes, la.f64)
#define WRITE_i32_no(body) mk_##body##_write(bytes, la.i32)
#define WRITE_b8_no(body) mk_##body##_write(bytes, la.b8)

#define X1(A, name, r, ka, part, cost, expr, text) \
    case OP_##name: {                              \
        const ka a = la.ka;                        \
        out->r = expr;                             \
        break;                                     \
    }
#define X2(A, name, r, ka, kb, part, cost, expr, text) \
    case OP_##name: {                                  \
        const ka a = la.ka;                            \
        const kb b = lb.kb;                            \
        out->r = expr;                                 \
        break;                                         \
    }
#define X3(A, name, r, ka, kb, kc, part, cost, expr, text) \
    case OP_##name: {                                      \
        const ka a = la.ka;                                \
        const kb b = lb.kb;                                \
        const kc c = lc.kc;                                \
        out->r = expr;                                     \
        break;                                             \
    }
#define XH(A, name, r, ka, kb, kc, fn, text)                \
    case OP_##name:                                         \
        out->r = fn(ARG_##ka(a) ARG_##kb(b) ARG_##kc(c) f); \
        break;
#define XR(A, name, fails, r, ka, kb, kc, part, expr, text)            \
    case OP_##name: {                                                  \
        OPERAND_##ka(a) OPERAND_##kb(b) OPERAND_##kc(c) out->r = expr; \
        break;                                                         \
    }
#define XT(A, name, ka, kb, kc, fn, text)                                     \
    case OP_##name:                                                           \
        fn(&made, ARG_##ka(a) ARG_##kb(b) ARG_##kc(c) f);                     \
        if (made.asked || stopped_in(made.len)) {                             \
            return FAULT_TEXT_SIZE;                                           \
        }                                                                     \
        out->str = str_from((struct sv){(const char *)made.bytes, made.len}); \
        break;
#define XM(A, name, ka, kb, body, text)                             \
    case OP_##name: {                                               \
        i64 len = SIZE_##ka##_##kb(body);                           \
        u8 *bytes = arena_try(arena, len);                          \
        if (!bytes) {                                               \
            return FAULT_TEXT_SIZE;                                 \
        }                                                           \
        WRITE_##ka##_##kb(body);                                    \
        if (stopped_in(len)) {                                      \
            return FAULT_TEXT_SIZE;                                 \
        }                                                           \
        out->str = str_from((struct sv){(const char *)bytes, len}); \
        break;                                                      \
    }

/* A long text may be unfinished: nobody is to work with it. */
static bool stopped_in(i64 len) {
    return len >= 1 << 16 && stop_asked();
}

static u8 *arena_room(void *arena, i64 bytes) {
    return arena_try(arena, bytes);
}

u8 op_eval(u16 code, union lit *out, union lit la, union lit lb, union lit lc,
           struct arena *arena) {
    u8 fault = FAULT_NONE;
    u8 *f = &fault;
    struct made made = {.room = arena_room, .from = arena, .bytes = (const u8 *)""};
    memset(out, 0, sizeof *out);
    switch (code) {
        /* clang-format off */
        WF_OPS_LOOP(X1, X2, X3, , )
        WF_OPS_HOST(XH, ) WF_OPS_MAKE(XM, ) WF_OPS_RARE(XR, ) WF_OPS_TEXT(XT, )
            /* clang-format on */
            default : /* a control opcode has no value of its own */
                      check_failed(__FILE__, __LINE__, "a scalar opcode");
    }
    return fault;
}
