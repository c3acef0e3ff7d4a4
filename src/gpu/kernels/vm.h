/* vm.h: the tile virtual machine: interprets a pipeline's opcodes, 128 threads times four rows at a time.
 *
 * Registers are places in shared memory. A thread only touches its own four rows of a place, so opcodes
 * need no barriers between them; a four-byte register is one 16-byte access per thread, an eight-byte one
 * two, in planes, which keeps banks free of conflicts. Constants occupy one vector that all threads read.
 * Scalar opcodes come from op.def; those that cost much, or hold 128-bit values, run row by row and out of
 * line, so that the kernel stays within 64 hardware registers. Eight rows per dispatch measured slower. */
#ifndef WF_VM_H
#define WF_VM_H

#include "block.h"

#include "defs/fault.h"
#include "defs/op.def"
#include "defs/fn_int.h"
#include "defs/fn_float.h"
#include "defs/fn_date.h"

#define VM_THREADS 128u
#define VM_PLANE (VM_THREADS * 16u)
#define VM_HEAVY_COST 8

#define X1(A, name, r, a, part, cost, expr, text) OP_##name,
#define X2(A, name, r, a, b, part, cost, expr, text) OP_##name,
#define X3(A, name, r, a, b, c, part, cost, expr, text) OP_##name,
#define XC(A, name, operands, text) OP_##name,
enum op_code {
    WF_CTLS(XC, ) WF_OPS1(X1, ) WF_OPS2(X2, ) WF_OPS3(X3, ) WF_OPS1F(X1, ) WF_OPS2F(X2, ) WF_OPS3F(X3, )
};
#undef X1
#undef X2
#undef X3
#undef XC
#define X(A, c_name, name, bytes) KIND_##name,
#include "defs/type.def"
enum kind { WF_KINDS(X, ) KIND_COUNT };
#undef X

struct vm_op {
    u32 code, rank, dst, a, b, c, imm, kind, masked;
};

FN struct vm_op vm_fetch(const struct kop *ops, u32 pc) {
    vec16 v = load16(&ops[pc]);
    struct vm_op op;
    op.code = v.w[0] & 0xffffu;
    op.rank = v.w[0] >> 16;
    op.dst = v.w[1] & 0xffffu;
    op.a = v.w[1] >> 16;
    op.b = v.w[2] & 0xffffu;
    op.c = v.w[2] >> 16;
    op.imm = v.w[3] & 0xffffu;
    op.kind = v.w[3] >> 16 & 255u;
    op.masked = v.w[3] >> 24;
    return op;
}

/* --- places --------------------------------------------------------------------------------- */

FN u32 vm_start(u32 place) { return (place & 0x7fffu) * 16u; }
FN u32 vm_vec(u32 place) { return vm_start(place) + (place & KOP_CONST ? 0u : t_id() * 16u); }
FN u32 vm_byte(u32 place) { return vm_start(place) + (place & KOP_CONST ? 0u : t_id() * 4u); }
FN u32 vm_plane(u32 place) { return place & KOP_CONST ? 16u : VM_PLANE; }
/* Where row `row` of the tile is. */
FN u32 vm_elem(u32 place, u32 bytes, u32 row) {
    if (place & KOP_CONST) {
        return vm_start(place);
    }
    if (bytes <= 4) {
        return vm_start(place) + row * bytes;
    }
    u32 t = row >> 2;
    u32 j = row & 3u;
    return bytes == 8 ? vm_start(place) + (j >> 1) * VM_PLANE + t * 16u + (j & 1u) * 8u
                      : vm_start(place) + j * VM_PLANE + t * 16u;
}

FN u32 vm_raw4(const u8 *s, u32 place, u32 j) {
    return *(const u32 *)(s + vm_vec(place) + 4u * j);
}
FN u64 vm_raw8(const u8 *s, u32 place, u32 j) {
    return *(const u64 *)(s + vm_vec(place) + (j >> 1) * vm_plane(place) + (j & 1u) * 8u);
}
FN b8 get1_b8(const u8 *s, u32 place, u32 j) { return s[vm_byte(place) + j]; }
FN i32 get1_i32(const u8 *s, u32 place, u32 j) { return (i32)vm_raw4(s, place, j); }
FN f32 get1_f32(const u8 *s, u32 place, u32 j) { return bits_f32(vm_raw4(s, place, j)); }
FN i64 get1_i64(const u8 *s, u32 place, u32 j) { return (i64)vm_raw8(s, place, j); }
FN f64 get1_f64(const u8 *s, u32 place, u32 j) { return bits_f64(vm_raw8(s, place, j)); }
FN i128 get1_i128(const u8 *s, u32 place, u32 j) {
    return vec_i128(load16(s + vm_vec(place) + j * vm_plane(place)));
}

FN void vm_put4(u8 *s, u32 place, u32 j, u32 x) { *(u32 *)(s + vm_vec(place) + 4u * j) = x; }
FN void vm_put8(u8 *s, u32 place, u32 j, u64 x) {
    *(u64 *)(s + vm_vec(place) + (j >> 1) * vm_plane(place) + (j & 1u) * 8u) = x;
}
FN void put1_b8(u8 *s, u32 place, u32 j, b8 x) { s[vm_byte(place) + j] = x; }
FN void put1_i32(u8 *s, u32 place, u32 j, i32 x) { vm_put4(s, place, j, (u32)x); }
FN void put1_f32(u8 *s, u32 place, u32 j, f32 x) { vm_put4(s, place, j, f32_bits(x)); }
FN void put1_i64(u8 *s, u32 place, u32 j, i64 x) { vm_put8(s, place, j, (u64)x); }
FN void put1_f64(u8 *s, u32 place, u32 j, f64 x) { vm_put8(s, place, j, f64_bits(x)); }
FN void put1_i128(u8 *s, u32 place, u32 j, i128 x) {
    store16(s + vm_vec(place) + j * vm_plane(place), i128_vec(x));
}

FN void get4_b8(const u8 *s, u32 place, b8 x[4]) {
    u32 w = *(const u32 *)(s + vm_byte(place));
    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = (b8)(w >> (8 * j)); }
}
FN void get4_i32(const u8 *s, u32 place, i32 x[4]) {
    vec16 v = load16(s + vm_vec(place));
    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = (i32)v.w[j]; }
}
FN void get4_f32(const u8 *s, u32 place, f32 x[4]) {
    vec16 v = load16(s + vm_vec(place));
    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = bits_f32(v.w[j]); }
}
FN void vm_get8(const u8 *s, u32 place, u64 x[4]) {
    UNROLL for (u32 h = 0; h < 2; h++) {
        vec16 v = load16(s + vm_vec(place) + h * vm_plane(place));
        x[2 * h] = vec_low(v);
        x[2 * h + 1] = vec_high(v);
    }
}
FN void get4_i64(const u8 *s, u32 place, i64 x[4]) {
    u64 w[4];
    vm_get8(s, place, w);
    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = (i64)w[j]; }
}
FN void get4_f64(const u8 *s, u32 place, f64 x[4]) {
    u64 w[4];
    vm_get8(s, place, w);
    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = bits_f64(w[j]); }
}
FN void get4_i128(const u8 *s, u32 place, i128 x[4]) {
    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = get1_i128(s, place, j); }
}

/* `rows`: which of the four are written. */
FN void put4_b8(u8 *s, u32 place, const b8 x[4], u32 rows) {
    if (rows == 15u) {
        *(u32 *)(s + vm_byte(place)) =
            (u32)x[0] | (u32)x[1] << 8 | (u32)x[2] << 16 | (u32)x[3] << 24;
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (rows >> j & 1u) {
            put1_b8(s, place, j, x[j]);
        }
    }
}
FN void vm_store4(u8 *s, u32 place, const u32 x[4], u32 rows) {
    if (rows == 15u) {
        vec16 v;
        UNROLL for (u32 j = 0; j < 4; j++) { v.w[j] = x[j]; }
        store16(s + vm_vec(place), v);
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (rows >> j & 1u) {
            vm_put4(s, place, j, x[j]);
        }
    }
}
FN void vm_store8(u8 *s, u32 place, const u64 x[4], u32 rows) {
    if (rows == 15u) {
        store16(s + vm_vec(place), vec_of(x[0], x[1]));
        store16(s + vm_vec(place) + vm_plane(place), vec_of(x[2], x[3]));
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (rows >> j & 1u) {
            vm_put8(s, place, j, x[j]);
        }
    }
}
FN void put4_i32(u8 *s, u32 place, const i32 x[4], u32 rows) {
    u32 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) { w[j] = (u32)x[j]; }
    vm_store4(s, place, w, rows);
}
FN void put4_f32(u8 *s, u32 place, const f32 x[4], u32 rows) {
    u32 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) { w[j] = f32_bits(x[j]); }
    vm_store4(s, place, w, rows);
}
FN void put4_i64(u8 *s, u32 place, const i64 x[4], u32 rows) {
    u64 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) { w[j] = (u64)x[j]; }
    vm_store8(s, place, w, rows);
}
FN void put4_f64(u8 *s, u32 place, const f64 x[4], u32 rows) {
    u64 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) { w[j] = f64_bits(x[j]); }
    vm_store8(s, place, w, rows);
}
FN void put4_i128(u8 *s, u32 place, const i128 x[4], u32 rows) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (rows >> j & 1u) {
            put1_i128(s, place, j, x[j]);
        }
    }
}

/* --- scalar opcodes, from the table ---------------------------------------------------------- */

/* Opcodes on strings are left out: the planner of launches refuses them. */
#define VM_IF_b8(...) __VA_ARGS__
#define VM_IF_i32(...) __VA_ARGS__
#define VM_IF_i64(...) __VA_ARGS__
#define VM_IF_i128(...) __VA_ARGS__
#define VM_IF_f32(...) __VA_ARGS__
#define VM_IF_f64(...) __VA_ARGS__
#define VM_IF_str(...)

#define X1(A, name, r, ka, part, cost, expr, text)                                                 \
    VM_IF_##r(VM_IF_##ka(FN r fast_##name(ka a) { return expr; } FN_SLOW r slow_##name(ka a) {     \
        return expr;                                                                               \
    }))
#define X2(A, name, r, ka, kb, part, cost, expr, text)                                             \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(FN r fast_##name(ka a, kb b) {                                 \
        return expr;                                                                               \
    } FN_SLOW r slow_##name(ka a, kb b) { return expr; })))
#define X3(A, name, r, ka, kb, kc, part, cost, expr, text)                                         \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(VM_IF_##kc(FN r fast_##name(ka a, kb b, kc c) {                \
        return expr;                                                                               \
    } FN_SLOW r slow_##name(ka a, kb b, kc c) { return expr; }))))
WF_OPS1(X1, )
WF_OPS2(X2, )
WF_OPS3(X3, )
#undef X1
#undef X2
#undef X3
#define X1(A, name, r, ka, part, cost, expr, text)                                                 \
    VM_IF_##r(VM_IF_##ka(FN r fast_##name(ka a, u8 *f) { return expr; }                            \
                             FN_SLOW r slow_##name(ka a, u8 *f) { return expr; }))
#define X2(A, name, r, ka, kb, part, cost, expr, text)                                             \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(FN r fast_##name(ka a, kb b, u8 *f) {                          \
        return expr;                                                                               \
    } FN_SLOW r slow_##name(ka a, kb b, u8 *f) { return expr; })))
#define X3(A, name, r, ka, kb, kc, part, cost, expr, text)                                         \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(VM_IF_##kc(FN r fast_##name(ka a, kb b, kc c, u8 *f) {         \
        return expr;                                                                               \
    } FN_SLOW r slow_##name(ka a, kb b, kc c, u8 *f) { return expr; }))))
WF_OPS1F(X1, )
WF_OPS2F(X2, )
WF_OPS3F(X3, )
#undef X1
#undef X2
#undef X3

FN void vm_faults(u32 faults, u32 act, u32 rank, i64 number, u64 *report) {
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        u32 fault = faults >> (8 * j) & 255u;
        if (fault && (act >> j & 1u)) {
            atom_min_u64(&report[REPORT_FAULT], fault_word(rank, number + j, fault));
        }
    }
}

#define VM_WIDE(cost, size) ((cost) >= VM_HEAVY_COST || (size) == 16)
#define VM_ROWS_DO NO_UNROLL for (u32 j = 0; j < 4; j++) if (act >> j & 1u)
#define X1(A, name, r, ka, part, cost, expr, text)                                                 \
    VM_IF_##r(VM_IF_##ka(case OP_##name : {                                                        \
        if (VM_WIDE(cost, sizeof(r) | (sizeof(ka) & 16))) {                                        \
            VM_ROWS_DO { put1_##r(s, op.dst, j, slow_##name(get1_##ka(s, op.a, j))); }             \
        } else {                                                                                   \
            ka x[4];                                                                               \
            r z[4];                                                                                \
            get4_##ka(s, op.a, x);                                                                 \
            UNROLL for (u32 j = 0; j < 4; j++) { z[j] = fast_##name(x[j]); }                       \
            put4_##r(s, op.dst, z, keep);                                                          \
        }                                                                                          \
        break;                                                                                     \
    }))
#define X2(A, name, r, ka, kb, part, cost, expr, text)                                             \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(case OP_##name : {                                             \
        if (VM_WIDE(cost, sizeof(r) | (sizeof(ka) & 16) | (sizeof(kb) & 16))) {                    \
            VM_ROWS_DO {                                                                           \
                put1_##r(s, op.dst, j,                                                             \
                         slow_##name(get1_##ka(s, op.a, j), get1_##kb(s, op.b, j)));               \
            }                                                                                      \
        } else {                                                                                   \
            ka x[4];                                                                               \
            kb y[4];                                                                               \
            r z[4];                                                                                \
            get4_##ka(s, op.a, x);                                                                 \
            get4_##kb(s, op.b, y);                                                                 \
            UNROLL for (u32 j = 0; j < 4; j++) { z[j] = fast_##name(x[j], y[j]); }                 \
            put4_##r(s, op.dst, z, keep);                                                          \
        }                                                                                          \
        break;                                                                                     \
    })))
#define X3(A, name, r, ka, kb, kc, part, cost, expr, text)                                         \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(VM_IF_##kc(case OP_##name : {                                  \
        if (VM_WIDE(cost, sizeof(r))) {                                                            \
            VM_ROWS_DO {                                                                           \
                put1_##r(s, op.dst, j,                                                             \
                         slow_##name(get1_##ka(s, op.a, j), get1_##kb(s, op.b, j),                 \
                                     get1_##kc(s, op.c, j)));                                      \
            }                                                                                      \
        } else {                                                                                   \
            ka x[4];                                                                               \
            kb y[4];                                                                               \
            kc w[4];                                                                               \
            r z[4];                                                                                \
            get4_##ka(s, op.a, x);                                                                 \
            get4_##kb(s, op.b, y);                                                                 \
            get4_##kc(s, op.c, w);                                                                 \
            UNROLL for (u32 j = 0; j < 4; j++) { z[j] = fast_##name(x[j], y[j], w[j]); }           \
            put4_##r(s, op.dst, z, keep);                                                          \
        }                                                                                          \
        break;                                                                                     \
    }))))
/* The same with a fault byte per row. */
#define XF_TAIL                                                                                    \
    if (faults) {                                                                                  \
        vm_faults(faults, act, op.rank, number, report);                                           \
    }                                                                                              \
    break;
#define X1F(A, name, r, ka, part, cost, expr, text)                                                \
    VM_IF_##r(VM_IF_##ka(case OP_##name : {                                                        \
        u32 faults = 0;                                                                            \
        if (VM_WIDE(cost, sizeof(r) | (sizeof(ka) & 16))) {                                        \
            VM_ROWS_DO {                                                                           \
                u8 f = 0;                                                                          \
                put1_##r(s, op.dst, j, slow_##name(get1_##ka(s, op.a, j), &f));                    \
                faults |= (u32)f << (8 * j);                                                       \
            }                                                                                      \
        } else {                                                                                   \
            ka x[4];                                                                               \
            r z[4];                                                                                \
            get4_##ka(s, op.a, x);                                                                 \
            UNROLL for (u32 j = 0; j < 4; j++) {                                                   \
                u8 f = 0;                                                                          \
                z[j] = fast_##name(x[j], &f);                                                      \
                faults |= (u32)f << (8 * j);                                                       \
            }                                                                                      \
            put4_##r(s, op.dst, z, keep);                                                          \
        }                                                                                          \
        XF_TAIL                                                                                    \
    }))
#define X2F(A, name, r, ka, kb, part, cost, expr, text)                                            \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(case OP_##name : {                                             \
        u32 faults = 0;                                                                            \
        if (VM_WIDE(cost, sizeof(r) | (sizeof(ka) & 16) | (sizeof(kb) & 16))) {                    \
            VM_ROWS_DO {                                                                           \
                u8 f = 0;                                                                          \
                put1_##r(s, op.dst, j,                                                             \
                         slow_##name(get1_##ka(s, op.a, j), get1_##kb(s, op.b, j), &f));           \
                faults |= (u32)f << (8 * j);                                                       \
            }                                                                                      \
        } else {                                                                                   \
            ka x[4];                                                                               \
            kb y[4];                                                                               \
            r z[4];                                                                                \
            get4_##ka(s, op.a, x);                                                                 \
            get4_##kb(s, op.b, y);                                                                 \
            UNROLL for (u32 j = 0; j < 4; j++) {                                                   \
                u8 f = 0;                                                                          \
                z[j] = fast_##name(x[j], y[j], &f);                                                \
                faults |= (u32)f << (8 * j);                                                       \
            }                                                                                      \
            put4_##r(s, op.dst, z, keep);                                                          \
        }                                                                                          \
        XF_TAIL                                                                                    \
    })))
#define X3F(A, name, r, ka, kb, kc, part, cost, expr, text)                                        \
    VM_IF_##r(VM_IF_##ka(VM_IF_##kb(VM_IF_##kc(case OP_##name : {                                  \
        u32 faults = 0;                                                                            \
        VM_ROWS_DO {                                                                               \
            u8 f = 0;                                                                              \
            put1_##r(s, op.dst, j,                                                                 \
                     slow_##name(get1_##ka(s, op.a, j), get1_##kb(s, op.b, j),                     \
                                 get1_##kc(s, op.c, j), &f));                                      \
            faults |= (u32)f << (8 * j);                                                           \
        }                                                                                          \
        XF_TAIL                                                                                    \
    }))))

/* number: of the thread's first row in the source. */
FN void vm_scalar(u8 *s, struct vm_op op, u32 act, i64 number, u64 *report) {
    u32 keep = op.masked ? act : 15u;
    switch (op.code) {
        WF_OPS1(X1, )
        WF_OPS2(X2, )
        WF_OPS3(X3, )
        WF_OPS1F(X1F, )
        WF_OPS2F(X2F, )
        WF_OPS3F(X3F, )
    default: break;
    }
}
#undef X1
#undef X2
#undef X3
#undef X1F
#undef X2F
#undef X3F
#undef XF_TAIL

/* --- control opcodes -------------------------------------------------------------------------- */

FN void vm_const(u8 *s, struct vm_op op, struct klit lit) {
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        switch (op.kind) {
        case KIND_B8: s[vm_start(op.dst) + j] = (b8)lit.low; break;
        case KIND_I32:
        case KIND_F32: *(u32 *)(s + vm_start(op.dst) + 4u * j) = (u32)lit.low; break;
        case KIND_I64:
        case KIND_F64: *(u64 *)(s + vm_start(op.dst) + 8u * j) = lit.low; break;
        default: store16(s + vm_start(op.dst) + 16u * j, vec_of(lit.low, lit.high)); break;
        }
    }
}

/* Low words of the group's elements. */
FN void vm_seg32(const struct kseg *seg, i64 row, u32 x[4]) {
    const u8 *data = seg->data;
    switch (seg->form) {
    case SEG_U8: group_u8(data + row, x); break;
    case SEG_U16: group_u16(data + 2 * row, x); break;
    case SEG_U32:
    case SEG_I32:
    case SEG_F32: group_u32(data + 4 * row, x); break;
    case SEG_I64:
    case SEG_U64: {
        u64 w[4];
        group_u64(data + 8 * row, w);
        UNROLL for (u32 j = 0; j < 4; j++) { x[j] = (u32)w[j]; }
        break;
    }
    case SEG_U128: {
        UNROLL for (u32 j = 0; j < 4; j++) { x[j] = *(const u32 *)(data + 16 * (row + j)); }
        break;
    }
    default: {
        UNROLL for (u32 j = 0; j < 4; j++) { x[j] = 0; }
        break;
    }
    }
}
FN void vm_seg64(const struct kseg *seg, i64 row, u64 x[4]) {
    if (seg->form == SEG_U64 || seg->form == SEG_I64 || seg->form == SEG_F64) {
        group_u64(seg->data + 8 * row, x);
    } else if (seg->form == SEG_U128) {
        UNROLL for (u32 j = 0; j < 4; j++) { x[j] = *(const u64 *)(seg->data + 16 * (row + j)); }
    } else {
        u32 w[4];
        vm_seg32(seg, row, w);
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = seg->form == SEG_I32 ? (u64)(i64)(i32)w[j] : (u64)w[j];
        }
    }
}

FN void vm_load(u8 *s, struct vm_op op, const struct kseg *seg, i64 row, u32 keep) {
    u64 base = seg->form == SEG_F32 || seg->form == SEG_F64 ? 0 : seg->base;
    if (op.kind == KIND_I32 || op.kind == KIND_F32) {
        u32 x[4];
        vm_seg32(seg, row, x);
        UNROLL for (u32 j = 0; j < 4; j++) { x[j] += (u32)base; }
        vm_store4(s, op.dst, x, keep);
    } else if (op.kind == KIND_B8) {
        u32 x[4];
        b8 y[4];
        vm_seg32(seg, row, x);
        UNROLL for (u32 j = 0; j < 4; j++) { y[j] = (b8)(x[j] + (u32)base); }
        put4_b8(s, op.dst, y, keep);
    } else if (op.kind == KIND_I64 || op.kind == KIND_F64) {
        u64 x[4];
        vm_seg64(seg, row, x);
        UNROLL for (u32 j = 0; j < 4; j++) { x[j] += base; }
        vm_store8(s, op.dst, x, keep);
    } else {
        u64 x[4];
        vm_seg64(seg, row, x);
        NO_UNROLL for (u32 j = 0; j < 4; j++) {
            u64 high = seg->form == SEG_I32 || seg->form == SEG_I64 ? (u64)((i64)x[j] >> 63) : 0;
            if (seg->form == SEG_U128) {
                high = *(const u64 *)(seg->data + 16 * (row + j) + 8);
            }
            if (keep >> j & 1u) {
                put1_i128(s, op.dst, j,
                          (i128)((u128)i128_of(seg->base, seg->base_high) +
                                 (u128)i128_of(x[j], high)));
            }
        }
    }
}

FN void vm_put_bits(u8 *s, struct vm_op op, u32 j, u64 low, u64 high) {
    switch (op.kind) {
    case KIND_B8: put1_b8(s, op.dst, j, (b8)low); break;
    case KIND_I32:
    case KIND_F32: vm_put4(s, op.dst, j, (u32)low); break;
    case KIND_I64:
    case KIND_F64: vm_put8(s, op.dst, j, low); break;
    default: put1_i128(s, op.dst, j, i128_of(low, high)); break;
    }
}

/* Element `at` of an array into row j of a register. */
FN void vm_pick(u8 *s, struct vm_op op, const u8 *data, i64 at, u32 j) {
    switch (op.kind) {
    case KIND_B8: vm_put_bits(s, op, j, data[at], 0); break;
    case KIND_I32:
    case KIND_F32: vm_put_bits(s, op, j, ((const u32 *)data)[at], 0); break;
    case KIND_I64:
    case KIND_F64: vm_put_bits(s, op, j, ((const u64 *)data)[at], 0); break;
    default: put1_i128(s, op.dst, j, vec_i128(load16(data + 16 * at))); break;
    }
}

/* Codes below zero read entry `other`; what lies outside the table reads as zero. */
FN void vm_lut(u8 *s, struct vm_op op, const struct kcol *lut, u32 j) {
    i64 at = get1_i32(s, op.a, j);
    at = at >= 0 ? at : op.b == 0xffffu ? lut->len : (i64)op.b;
    if (at < lut->len) {
        vm_pick(s, op, lut->data, at, j);
    } else {
        vm_put_bits(s, op, j, 0, 0);
    }
}

FN u32 vm_mask(const u8 *s, u32 place) {
    u32 w = *(const u32 *)(s + vm_byte(place));
    return (w & 1u) | (w >> 7 & 2u) | (w >> 14 & 4u) | (w >> 21 & 8u);
}

FN u32 vm_probe(u8 *s, struct vm_op op, const struct kindex *ix, u32 act) {
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        if (act >> j & 1u) {
            u64 run = find_run(ix, get1_i64(s, op.a, j));
            if ((u32)run == (u32)(run >> 32)) {
                act &= ~(1u << j);
            } else {
                put1_i64(s, op.dst, j, (i64)run_row(ix, (u32)run));
            }
        }
    }
    return act;
}

/* Cursor and end of every row's run live in places b and b + one plane. */
FN u32 vm_match(u8 *s, struct vm_op op, const struct kindex *ix, u32 act) {
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        u64 run = act >> j & 1u ? find_run(ix, get1_i64(s, op.a, j)) : 0u;
        vm_put4(s, op.b, j, (u32)run);
        vm_put4(s, op.b + VM_PLANE / 16u, j, (u32)(run >> 32));
        if ((u32)run == (u32)(run >> 32)) {
            act &= ~(1u << j);
        } else {
            put1_i64(s, op.dst, j, (i64)run_row(ix, (u32)run));
        }
    }
    return act;
}
FN u32 vm_next(u8 *s, struct vm_op op, const struct kindex *ix) {
    u32 act = 0;
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        u32 at = vm_raw4(s, op.b, j);
        u32 end = vm_raw4(s, op.b + VM_PLANE / 16u, j);
        at += at != end;
        vm_put4(s, op.b, j, at);
        if (at != end) {
            act |= 1u << j;
            put1_i64(s, op.dst, j, (i64)run_row(ix, at));
        }
    }
    return act;
}

/* --- the tile loop, one kernel per kind of sink ----------------------------------------------- */

struct vm_tile {
    const struct kseg *segs; /* of column 0 in this tablet; columns are tablet_count apart */
    i64 row;                 /* the thread's first row in the tablet */
    i64 number;              /* its number in the source */
    u32 act;
};

/* False when the tile holds no row that could pass. */
FN i32 vm_tile_open(struct vm_tile *t, const struct kseg *segs, const i64 *tablet_rows,
                    const i64 *row_starts, const u8 *zones, u32 zone_count, u32 tile_shift, u64 tile) {
    u64 tablet = tile >> tile_shift;
    i64 first = (i64)(tile & (((u64)1 << tile_shift) - 1)) * (i64)(VM_THREADS * 4u);
    i64 rows = tablet_rows[tablet];
    if (first >= rows || (zones && !zones[tablet * zone_count + (u64)(first >> 14)])) {
        return 0;
    }
    t->segs = segs + tablet;
    t->row = first + (i64)t_id() * 4;
    t->number = row_starts[tablet] + t->row;
    t->act = group_rows(t->row, rows);
    return 1;
}

#define VM_BODY(emit)                                                                              \
    for (u32 at = t_id() * 16u; at < args.slot_bytes; at += VM_PLANE) {                            \
        store16(s_slots + at, vec_of(0, 0)); /* rows that are never active are read, too */        \
    }                                                                                              \
    b_sync();                                                                                      \
    for (u32 pc = 0; pc < args.hoist_count; pc++) {                                                \
        struct vm_op op = vm_fetch(args.ops, pc);                                                  \
        if (t_id() == 0) {                                                                         \
            vm_const(s_slots, op, args.lits[op.imm]);                                              \
        }                                                                                          \
    }                                                                                              \
    b_sync();                                                                                      \
    for (u64 tile = t_block(); tile < args.tile_count; tile += t_blocks()) {                       \
        struct vm_tile t;                                                                          \
        if (!vm_tile_open(&t, args.segs, args.tablet_rows, args.row_starts, args.zones,            \
                          args.zone_count, args.tile_shift, tile)) {                               \
            continue;                                                                              \
        }                                                                                          \
        if (args.limit >= 0 &&                                                                     \
            b_any(t_id() == 0 && (i64)read_u64(&args.report[REPORT_ROWS]) >= args.limit)) {        \
            break;                                                                                 \
        }                                                                                          \
        u32 act = t.act;                                                                           \
        u32 pc = args.hoist_count;                                                                 \
        while (pc < args.op_count) {                                                               \
            struct vm_op op = vm_fetch(args.ops, pc);                                              \
            u32 keep = op.masked ? act : 15u;                                                      \
            pc++;                                                                                  \
            switch (op.code) {                                                                     \
            case OP_CONST: {                                                                       \
                NO_UNROLL for (u32 j = 0; j < 4; j++) {                                            \
                    if (keep >> j & 1u) {                                                          \
                        vm_pick(s_slots, op, (const u8 *)&args.lits[op.imm], 0, j);                \
                    }                                                                              \
                }                                                                                  \
                break;                                                                             \
            }                                                                                      \
            case OP_LOAD:                                                                          \
                if (act) {                                                                         \
                    vm_load(s_slots, op, t.segs + (u64)op.imm * args.tablet_count, t.row, keep);   \
                }                                                                                  \
                break;                                                                             \
            case OP_LOADN:                                                                         \
                if (act) {                                                                         \
                    const struct kseg *seg = t.segs + (u64)op.imm * args.tablet_count;             \
                    u32 nulls = group_nulls(seg->nulls, seg->null_form, t.row);                    \
                    b8 x[4];                                                                       \
                    UNROLL for (u32 j = 0; j < 4; j++) { x[j] = (b8)(nulls >> j & 1u); }           \
                    put4_b8(s_slots, op.dst, x, keep);                                             \
                }                                                                                  \
                break;                                                                             \
            case OP_LOADV:                                                                         \
            case OP_LOADVN: {                                                                      \
                NO_UNROLL for (u32 j = 0; j < 4; j++) {                                            \
                    if (act >> j & 1u) {                                                           \
                        i64 at = get1_i64(s_slots, op.a, j);                                       \
                        if (op.code == OP_LOADV) {                                                 \
                            vm_pick(s_slots, op, args.cols[op.imm].data, at, j);                   \
                        } else {                                                                   \
                            const b8 *nulls = args.cols[op.imm].nulls;                             \
                            put1_b8(s_slots, op.dst, j, nulls ? nulls[at] : (b8)0);                \
                        }                                                                          \
                    }                                                                              \
                }                                                                                  \
                break;                                                                             \
            }                                                                             \
            case OP_ROWNO: {                                                                       \
                NO_UNROLL for (u32 j = 0; j < 4; j++) {                                            \
                    if (keep >> j & 1u) {                                                          \
                        put1_i64(s_slots, op.dst, j, t.number + j);                                \
                    }                                                                              \
                }                                                                                  \
                break;                                                                             \
            }                                                                             \
            case OP_LUT: {                                                                         \
                NO_UNROLL for (u32 j = 0; j < 4; j++) {                                            \
                    if (act >> j & 1u) {                                                           \
                        vm_lut(s_slots, op, &args.luts[op.imm], j);                                \
                    }                                                                              \
                }                                                                                  \
                break;                                                                             \
            }                                                                             \
            case OP_FILTER: act &= vm_mask(s_slots, op.a); break;                                  \
            case OP_WHEN:                                                                          \
                *(u32 *)(s_slots + vm_byte(op.dst)) = act;                                         \
                act &= vm_mask(s_slots, op.a);                                                     \
                break;                                                                             \
            case OP_END: act = *(u32 *)(s_slots + vm_byte(op.dst)); break;                         \
            case OP_PROBE: act = vm_probe(s_slots, op, &args.indexes[op.imm], act); break;         \
            case OP_MATCH:                                                                         \
                act = vm_match(s_slots, op, &args.indexes[op.imm], act);                           \
                pc = b_any((i32)act) ? pc : op.c;                                                  \
                break;                                                                             \
            case KOP_NEXT:                                                                         \
                act = vm_next(s_slots, op, &args.indexes[op.imm]);                                 \
                pc = b_any((i32)act) ? op.c : pc;                                                  \
                break;                                                                             \
            case OP_EMIT: emit; break;                                                             \
            default:                                                                               \
                if (act) {                                                                         \
                    vm_scalar(s_slots, op, act, t.number, args.report);                            \
                }                                                                                  \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
    }

#endif
