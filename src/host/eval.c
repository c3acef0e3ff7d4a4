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
#include "defs/case_map.h"
#include "defs/fn_case.h"
#include "defs/fn_make.h"
#include "defs/fn_encode.h"
#include "defs/fn_hash.h"
#include "defs/char_class.h"
#include "defs/fn_initcap.h"
#include "defs/fn_format.h"
#include "defs/pow10_table.h"
#include "defs/fn_shortest.h"
#include "defs/fn_parse.h"
#include "defs/fn_fround.h"
#include "defs/fn_variance.h"
#include "defs/fn_parse_real.h"

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
#define OPERAND_f32(which) const f32 which = l##which.f32;

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
/* A long text may be unfinished: nobody is to work with it. */
static bool stopped_in(i64 len) {
    return len >= 1 << 16 && stop_asked();
}

static u8 *arena_room(void *arena, i64 bytes) {
    return arena_try(arena, bytes);
}

#define XM(A, name, fails, ka, kb, kc, part, most, body, text)           \
    case OP_##name: {                                                    \
        OPERAND_##ka(a) OPERAND_##kb(b) OPERAND_##kc(c) i64 room = most; \
        room = room > TEXT_BYTES_MAX ? body : room;                      \
        out = room > TEXT_BYTES_MAX ? NULL : arena_try(arena, room);     \
        bytes = out ? body : 0;                                          \
        break;                                                           \
    }

static u8 make_eval(u16 code, str *to, union lit la, union lit lb, union lit lc,
                    struct arena *arena) {
    u8 fault = FAULT_NONE;
    u8 *f = &fault;
    u8 *out = NULL;
    i64 bytes = 0;
    switch (code) {
        WF_OPS_MAKE(XM, )
    default:
        break;
    }
    *to = str_from((struct sv){out ? (const char *)out : "", bytes});
    return !out || stopped_in(bytes) ? FAULT_TEXT_SIZE : fault;
}
#undef XM
#define XM(A, name, ...) case OP_##name:

u8 op_eval(u16 code, union lit *out, union lit la, union lit lb, union lit lc,
           struct arena *arena) {
    u8 fault = FAULT_NONE;
    u8 *f = &fault;
    struct made made = {.room = arena_room, .from = arena, .bytes = (const u8 *)""};
    memset(out, 0, sizeof *out);
    switch (code) {
        /* clang-format off */
        WF_OPS_LOOP(X1, X2, X3, , )
        WF_OPS_HOST(XH, ) WF_OPS_RARE(XR, ) WF_OPS_TEXT(XT, )
        WF_OPS_MAKE(XM, )
            return make_eval(code, &out->str, la, lb, lc, arena);
    /* clang-format on */
    default: /* a control opcode has no value of its own */
        check_failed(__FILE__, __LINE__, "a scalar opcode");
    }
    return fault;
}
