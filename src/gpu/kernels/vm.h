/* vm.h: the tile virtual machine: interprets a pipeline's opcodes, 128 threads times four groups of
 * four rows.
 *
 * Registers are places in shared memory. A thread only touches its own rows of a place, so opcodes
 * need no barriers between them; a group of a four-byte register is one 16-byte access, of an
 * eight-byte one two, in planes, which keeps banks free of conflicts. Constants occupy one vector
 * that all threads read. Scalar opcodes come from op_loop.def; those that cost much, or hold 128-bit
 * values, run row by row and out of line. What counts is instructions per dispatch, hence hot
 * opcodes: frequent sequences that the planner of launches made one, with a short way to them, and
 * booleans in a hardware register. Measured on an H200 (256 M rows, mean of the ten Virginian
 * queries, ms): one group 3.2 (before there were hot opcodes), two groups 2.3, four groups 1.7.
 * Copying the first columns of the next tile to shared memory meanwhile gained one per cent with
 * two groups. See decision 0013. */
#ifndef WF_VM_H
#define WF_VM_H

#include "block.h"
#include "intern.h"
#include "text.h"

#include "defs/fault.h"
#include "defs/op.def"
#include "defs/op_loop.def"
#include "defs/fn_int.h"
#include "defs/fn_float.h"
#include "defs/fn_date.h"
#include "defs/fn_like.h"

#define VM_THREADS 128u
#define VM_GROUPS (VM_TILE_ROWS / (4u * VM_THREADS)) /* of four rows, per thread */
#define VM_ROWS (4u * VM_GROUPS)
#define VM_ALL ((1u << VM_ROWS) - 1u)
#define VM_SPAN (VM_THREADS * 4u) /* rows from one group of a thread to its next */
#define VM_PLANE (VM_THREADS * 16u)
#define VM_HEAVY_COST 8
#define VM_EACH_GROUP UNROLL for (u32 h = 0; h < VM_GROUPS; h++)
#define VM_GROUP_LOOP NO_UNROLL for (u32 h = 0; h < VM_GROUPS; h++)
#define VM_EACH_ROW NO_UNROLL for (u32 i = 0; i < VM_ROWS; i++)

#define X1(A, name, r, a, part, cost, expr, text) OP_##name,
#define X2(A, name, r, a, b, part, cost, expr, text) OP_##name,
#define X3(A, name, r, a, b, c, part, cost, expr, text) OP_##name,
#define XC(A, name, ...) OP_##name,
enum op_code {
    WF_CTLS(XC, ) WF_OPS_LOOP(X1, X2, X3, , )
};
#undef X1
#undef X2
#undef X3
#undef XC
#define X(A, c_name, name, bytes) KIND_##name,
#include "defs/type.def"
enum kind { WF_KINDS(X, ) KIND_COUNT };
#undef X

/* Fields are taken out where they are used: nine of them would be nine registers. */
struct vm_op {
    vec16 v;
};
FN struct vm_op vm_fetch(const struct kop *ops, u32 pc) {
    struct vm_op op;
    op.v = load16(&ops[pc]);
    return op;
}
FN u32 op_code(struct vm_op op) {
    return op.v.w[0] & 0xffffu;
}
FN u32 op_rank(struct vm_op op) {
    return op.v.w[0] >> 16;
}
FN u32 op_dst(struct vm_op op) {
    return op.v.w[1] & 0xffffu;
}
FN u32 op_a(struct vm_op op) {
    return op.v.w[1] >> 16;
}
FN u32 op_b(struct vm_op op) {
    return op.v.w[2] & 0xffffu;
}
FN u32 op_c(struct vm_op op) {
    return op.v.w[2] >> 16;
}
FN u32 op_imm(struct vm_op op) {
    return op.v.w[3] & 0xffffu;
}
FN u32 op_kind(struct vm_op op) {
    return op.v.w[3] >> 16 & 255u;
}
FN u32 op_flags(struct vm_op op) {
    return op.v.w[3] >> 24;
}

/* --- places --------------------------------------------------------------------------------- */

/* Row i of a thread is row i % 4 of its group i / 4. */
FN u32 vm_start(u32 place) {
    return (place & 0x7fffu) * 16u;
}
/* All ones, or zero for a constant. */
FN u32 vm_own(u32 place) {
    return (place >> 15) - 1u;
}
FN u32 vm_vec(u32 place, u32 h, u32 bytes) {
    u32 own = vm_own(place);
    return vm_start(place) + (t_id() * 16u & own) + (h * bytes * VM_SPAN & own);
}
FN u32 vm_byte(u32 place, u32 h) {
    u32 own = vm_own(place);
    return vm_start(place) + (t_id() * 4u & own) + (h * VM_SPAN & own);
}
FN u32 vm_plane(u32 place) {
    return 16u + ((VM_PLANE - 16u) & vm_own(place));
}
/* Where row `row` of the tile is. */
FN u32 vm_elem(u32 place, u32 bytes, u32 row) {
    if (place & KOP_CONST) {
        return vm_start(place);
    }
    if (bytes <= 4) {
        return vm_start(place) + row * bytes;
    }
    u32 group = vm_start(place) + row / VM_SPAN * bytes * VM_SPAN;
    u32 t = row % VM_SPAN >> 2;
    u32 j = row & 3u;
    return bytes == 8 ? group + (j >> 1) * VM_PLANE + t * 16u + (j & 1u) * 8u
                      : group + j * VM_PLANE + t * 16u;
}

FN u32 vm_at4(u32 place, u32 i) {
    return vm_vec(place, i >> 2, 4) + 4u * (i & 3u);
}
FN u32 vm_at8(u32 place, u32 i) {
    return vm_vec(place, i >> 2, 8) + (i >> 1 & 1u) * vm_plane(place) + (i & 1u) * 8u;
}
FN u32 vm_at16(u32 place, u32 i) {
    return vm_vec(place, i >> 2, 16) + (i & 3u) * vm_plane(place);
}

FN b8 get1_b8(const u8 *s, u32 place, u32 i) {
    return s[vm_byte(place, i >> 2) + (i & 3u)];
}
FN u32 vm_get4(const u8 *s, u32 place, u32 i) {
    return *(const u32 *)(s + vm_at4(place, i));
}
FN u64 vm_get8(const u8 *s, u32 place, u32 i) {
    return *(const u64 *)(s + vm_at8(place, i));
}
FN i32 get1_i32(const u8 *s, u32 place, u32 i) {
    return (i32)vm_get4(s, place, i);
}
FN f32 get1_f32(const u8 *s, u32 place, u32 i) {
    return bits_f32(vm_get4(s, place, i));
}
FN i64 get1_i64(const u8 *s, u32 place, u32 i) {
    return (i64)vm_get8(s, place, i);
}
FN f64 get1_f64(const u8 *s, u32 place, u32 i) {
    return bits_f64(vm_get8(s, place, i));
}
FN i128 get1_i128(const u8 *s, u32 place, u32 i) {
    return vec_i128(load16(s + vm_at16(place, i)));
}
FN str get1_str(const u8 *s, u32 place, u32 i) {
    return vec_str(load16(s + vm_at16(place, i)));
}

FN void vm_put4(u8 *s, u32 place, u32 i, u32 x) {
    *(u32 *)(s + vm_at4(place, i)) = x;
}
FN void vm_put8(u8 *s, u32 place, u32 i, u64 x) {
    *(u64 *)(s + vm_at8(place, i)) = x;
}
FN void put1_b8(u8 *s, u32 place, u32 i, b8 x) {
    s[vm_byte(place, i >> 2) + (i & 3u)] = x;
}
FN void put1_i32(u8 *s, u32 place, u32 i, i32 x) {
    vm_put4(s, place, i, (u32)x);
}
FN void put1_f32(u8 *s, u32 place, u32 i, f32 x) {
    vm_put4(s, place, i, f32_bits(x));
}
FN void put1_i64(u8 *s, u32 place, u32 i, i64 x) {
    vm_put8(s, place, i, (u64)x);
}
FN void put1_f64(u8 *s, u32 place, u32 i, f64 x) {
    vm_put8(s, place, i, f64_bits(x));
}
FN void put1_i128(u8 *s, u32 place, u32 i, i128 x) {
    store16(s + vm_at16(place, i), i128_vec(x));
}
FN void put1_str(u8 *s, u32 place, u32 i, str x) {
    store16(s + vm_at16(place, i), str_vec(x));
}

/* A group at once. */
FN void get4_b8(const u8 *s, u32 place, u32 h, b8 x[4]) {
    u32 w = *(const u32 *)(s + vm_byte(place, h));
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = (b8)(w >> (8 * j));
    }
}
FN void get4_i32(const u8 *s, u32 place, u32 h, i32 x[4]) {
    vec16 v = load16(s + vm_vec(place, h, 4));
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = (i32)v.w[j];
    }
}
FN void get4_f32(const u8 *s, u32 place, u32 h, f32 x[4]) {
    vec16 v = load16(s + vm_vec(place, h, 4));
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = bits_f32(v.w[j]);
    }
}
FN void vm_words(const u8 *s, u32 place, u32 h, u64 x[4]) {
    UNROLL for (u32 p = 0; p < 2; p++) {
        vec16 v = load16(s + vm_vec(place, h, 8) + p * vm_plane(place));
        x[2 * p] = vec_low(v);
        x[2 * p + 1] = vec_high(v);
    }
}
FN void get4_i64(const u8 *s, u32 place, u32 h, i64 x[4]) {
    u64 w[4];
    vm_words(s, place, h, w);
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = (i64)w[j];
    }
}
FN void get4_f64(const u8 *s, u32 place, u32 h, f64 x[4]) {
    u64 w[4];
    vm_words(s, place, h, w);
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = bits_f64(w[j]);
    }
}
FN void get4_i128(const u8 *s, u32 place, u32 h, i128 x[4]) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = get1_i128(s, place, 4 * h + j);
    }
}
FN void get4_str(const u8 *s, u32 place, u32 h, str x[4]) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        x[j] = get1_str(s, place, 4 * h + j);
    }
}

/* `keep`: 15 to write the whole group, else which of its rows. */
FN void put4_b8(u8 *s, u32 place, u32 h, const b8 x[4], u32 keep) {
    if (keep == 15u) {
        *(u32 *)(s + vm_byte(place, h)) =
            (u32)x[0] | (u32)x[1] << 8 | (u32)x[2] << 16 | (u32)x[3] << 24;
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (keep >> j & 1u) {
            put1_b8(s, place, 4 * h + j, x[j]);
        }
    }
}
FN void vm_store4(u8 *s, u32 place, u32 h, const u32 x[4], u32 keep) {
    if (keep == 15u) {
        vec16 v;
        UNROLL for (u32 j = 0; j < 4; j++) {
            v.w[j] = x[j];
        }
        store16(s + vm_vec(place, h, 4), v);
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (keep >> j & 1u) {
            vm_put4(s, place, 4 * h + j, x[j]);
        }
    }
}
FN void vm_store8(u8 *s, u32 place, u32 h, const u64 x[4], u32 keep) {
    if (keep == 15u) {
        store16(s + vm_vec(place, h, 8), vec_of(x[0], x[1]));
        store16(s + vm_vec(place, h, 8) + vm_plane(place), vec_of(x[2], x[3]));
        return;
    }
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (keep >> j & 1u) {
            vm_put8(s, place, 4 * h + j, x[j]);
        }
    }
}
FN void put4_i32(u8 *s, u32 place, u32 h, const i32 x[4], u32 keep) {
    u32 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) {
        w[j] = (u32)x[j];
    }
    vm_store4(s, place, h, w, keep);
}
FN void put4_f32(u8 *s, u32 place, u32 h, const f32 x[4], u32 keep) {
    u32 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) {
        w[j] = f32_bits(x[j]);
    }
    vm_store4(s, place, h, w, keep);
}
FN void put4_i64(u8 *s, u32 place, u32 h, const i64 x[4], u32 keep) {
    u64 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) {
        w[j] = (u64)x[j];
    }
    vm_store8(s, place, h, w, keep);
}
FN void put4_f64(u8 *s, u32 place, u32 h, const f64 x[4], u32 keep) {
    u64 w[4];
    UNROLL for (u32 j = 0; j < 4; j++) {
        w[j] = f64_bits(x[j]);
    }
    vm_store8(s, place, h, w, keep);
}
FN void put4_i128(u8 *s, u32 place, u32 h, const i128 x[4], u32 keep) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (keep >> j & 1u) {
            put1_i128(s, place, 4 * h + j, x[j]);
        }
    }
}
FN void put4_str(u8 *s, u32 place, u32 h, const str x[4], u32 keep) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        if (keep >> j & 1u) {
            put1_str(s, place, 4 * h + j, x[j]);
        }
    }
}

/* --- scalar opcodes, from the table ---------------------------------------------------------- */

#define X1(A, name, r, ka, part, cost, expr, text) \
    FN r fast_##name(ka a) {                       \
        return expr;                               \
    }                                              \
    FN_SLOW r slow_##name(ka a) {                  \
        return expr;                               \
    }
#define X2(A, name, r, ka, kb, part, cost, expr, text) \
    FN r fast_##name(ka a, kb b) {                     \
        return expr;                                   \
    }                                                  \
    FN_SLOW r slow_##name(ka a, kb b) {                \
        return expr;                                   \
    }
#define X3(A, name, r, ka, kb, kc, part, cost, expr, text) \
    FN r fast_##name(ka a, kb b, kc c) {                   \
        return expr;                                       \
    }                                                      \
    FN_SLOW r slow_##name(ka a, kb b, kc c) {              \
        return expr;                                       \
    }
WF_OPS1(X1, )
WF_OPS2(X2, )
WF_OPS3(X3, )
#undef X1
#undef X2
#undef X3
#define X1(A, name, r, ka, part, cost, expr, text) \
    FN r fast_##name(ka a, u8 *f) {                \
        return expr;                               \
    }                                              \
    FN_SLOW r slow_##name(ka a, u8 *f) {           \
        return expr;                               \
    }
#define X2(A, name, r, ka, kb, part, cost, expr, text) \
    FN r fast_##name(ka a, kb b, u8 *f) {              \
        return expr;                                   \
    }                                                  \
    FN_SLOW r slow_##name(ka a, kb b, u8 *f) {         \
        return expr;                                   \
    }
#define X3(A, name, r, ka, kb, kc, part, cost, expr, text) \
    FN r fast_##name(ka a, kb b, kc c, u8 *f) {            \
        return expr;                                       \
    }                                                      \
    FN_SLOW r slow_##name(ka a, kb b, kc c, u8 *f) {       \
        return expr;                                       \
    }
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

/* Booleans of a group as bits and as bytes. */
FN u32 vm_bits_of(u32 bytes) {
    return (bytes & 0x01010101u) * 0x01020408u >> 24 & 15u;
}
FN u32 vm_bytes_of(u32 bits) {
    return (bits & 15u) * 0x00204081u & 0x01010101u;
}
FN u32 vm_mask(const u8 *s, u32 place) {
    u32 mask = 0;
    VM_EACH_GROUP {
        mask |= vm_bits_of(*(const u32 *)(s + vm_byte(place, h))) << (4 * h);
    }
    return mask;
}
/* A boolean of all rows, wherever it is; `aside` is the hardware register that holds four. */
FN u32 vm_flags(const u8 *s, u64 aside, u32 place) {
    return place & KOP_ASIDE ? (u32)(aside >> VM_ROWS * (place & 3u)) & VM_ALL : vm_mask(s, place);
}
FN u64 vm_put_flags(u8 *s, u64 aside, u32 place, u32 bits) {
    if (place & KOP_ASIDE) {
        u32 shift = VM_ROWS * (place & 3u);
        return (aside & ~((u64)VM_ALL << shift)) | (u64)bits << shift;
    }
    VM_EACH_GROUP {
        *(u32 *)(s + vm_byte(place, h)) = vm_bytes_of(bits >> (4 * h));
    }
    return aside;
}

/* Results. A boolean may filter at once instead of being kept. */
FN u32 vm_bits(const b8 x[4]) {
    return (u32)(x[0] & 1) | (u32)(x[1] & 1) << 1 | (u32)(x[2] & 1) << 2 | (u32)(x[3] & 1) << 3;
}
#define VM_OUT4_b8(z)                            \
    if (op_flags(op) & KOP_FILTERS) {            \
        act &= ~((vm_bits(z) ^ 15u) << (4 * h)); \
    } else {                                     \
        put4_b8(s, op_dst(op), h, z, keep);      \
    }
#define VM_OUT4_i32(z) put4_i32(s, op_dst(op), h, z, keep);
#define VM_OUT4_i64(z) put4_i64(s, op_dst(op), h, z, keep);
#define VM_OUT4_i128(z) put4_i128(s, op_dst(op), h, z, keep);
#define VM_OUT4_f32(z) put4_f32(s, op_dst(op), h, z, keep);
#define VM_OUT4_f64(z) put4_f64(s, op_dst(op), h, z, keep);
#define VM_OUT4_str(z) put4_str(s, op_dst(op), h, z, keep);
#define VM_OUT1_b8(z)                      \
    if (op_flags(op) & KOP_FILTERS) {      \
        act &= ~((u32)((z ^ 1) & 1) << i); \
    } else {                               \
        put1_b8(s, op_dst(op), i, z);      \
    }
#define VM_OUT1_i32(z) put1_i32(s, op_dst(op), i, z);
#define VM_OUT1_i64(z) put1_i64(s, op_dst(op), i, z);
#define VM_OUT1_i128(z) put1_i128(s, op_dst(op), i, z);
#define VM_OUT1_f32(z) put1_f32(s, op_dst(op), i, z);
#define VM_OUT1_f64(z) put1_f64(s, op_dst(op), i, z);
#define VM_OUT1_str(z) put1_str(s, op_dst(op), i, z);

#define VM_WIDE(cost, size) ((cost) >= VM_HEAVY_COST || (size) >= 16)
#define VM_KEEP u32 keep = op_flags(op) & KOP_MASKED ? act >> (4 * h) & 15u : 15u;
/* Light opcodes, a group at a time: `in` fetches operands, `call` computes row j. */
#define VM_LIGHT(name, r, wide, in, call, call1)        \
    case OP_##name: {                                   \
        if (wide) {                                     \
            heavy = 1;                                  \
        } else {                                        \
            VM_GROUP_LOOP {                             \
                VM_KEEP r z[4];                         \
                in UNROLL for (u32 j = 0; j < 4; j++) { \
                    z[j] = call;                        \
                }                                       \
                VM_OUT4_##r(z)                          \
            }                                           \
        }                                               \
        break;                                          \
    }
#define VM_LIGHT_F(name, r, wide, in, call, call1)                                          \
    case OP_##name: {                                                                       \
        if (wide) {                                                                         \
            heavy = 1;                                                                      \
        } else {                                                                            \
            VM_GROUP_LOOP {                                                                 \
                VM_KEEP r z[4];                                                             \
                u32 faults = 0;                                                             \
                in UNROLL for (u32 j = 0; j < 4; j++) {                                     \
                    u8 f = 0;                                                               \
                    z[j] = call;                                                            \
                    faults |= (u32)f << (8 * j);                                            \
                }                                                                           \
                if (faults) {                                                               \
                    vm_faults(faults, act >> (4 * h), op_rank(op), VM_NUMBER + h * VM_SPAN, \
                              args.report);                                                 \
                }                                                                           \
                VM_OUT4_##r(z)                                                              \
            }                                                                               \
        }                                                                                   \
        break;                                                                              \
    }
/* Heavy ones, row by row: `call1` computes row i. */
#define VM_HEAVY(name, r, wide, in, call, call1) \
    case OP_##name: {                            \
        if (wide) {                              \
            VM_EACH_ROW {                        \
                if (act >> i & 1u) {             \
                    r z = call1;                 \
                    VM_OUT1_##r(z)               \
                }                                \
            }                                    \
        }                                        \
        break;                                   \
    }
#define VM_HEAVY_F(name, r, wide, in, call, call1)                                            \
    case OP_##name: {                                                                         \
        if (wide) {                                                                           \
            VM_EACH_ROW {                                                                     \
                if (act >> i & 1u) {                                                          \
                    u8 f = 0;                                                                 \
                    r z = call1;                                                              \
                    VM_OUT1_##r(z) if (f) {                                                   \
                        vm_faults(f, 1u, op_rank(op), number + (i >> 2) * VM_SPAN + (i & 3u), \
                                  report);                                                    \
                    }                                                                         \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
        break;                                                                                \
    }
#define VM_IN1(ka) \
    ka x[4];       \
    get4_##ka(s, op_a(op), h, x);
#define VM_IN2(ka, kb) \
    VM_IN1(ka)         \
    kb y[4];           \
    get4_##kb(s, op_b(op), h, y);
#define VM_IN3(ka, kb, kc) \
    VM_IN2(ka, kb)         \
    kc w[4];               \
    get4_##kc(s, op_c(op), h, w);
#define VM_A(ka) get1_##ka(s, op_a(op), i)
#define VM_B(kb) get1_##kb(s, op_b(op), i)
#define VM_C(kc) get1_##kc(s, op_c(op), i)
/* A is the case macro: VM_LIGHT or VM_HEAVY, with _F for opcodes that may fail. */
#define VM_X1(A, name, r, ka, part, cost, expr, text)                                \
    A(name, r, VM_WIDE(cost, sizeof(r) | sizeof(ka)), VM_IN1(ka), fast_##name(x[j]), \
      slow_##name(VM_A(ka)))
#define VM_X2(A, name, r, ka, kb, part, cost, expr, text)                          \
    A(name, r, VM_WIDE(cost, sizeof(r) | sizeof(ka) | sizeof(kb)), VM_IN2(ka, kb), \
      fast_##name(x[j], y[j]), slow_##name(VM_A(ka), VM_B(kb)))
#define VM_X3(A, name, r, ka, kb, kc, part, cost, expr, text)                               \
    A(name, r, VM_WIDE(cost, sizeof(r)), VM_IN3(ka, kb, kc), fast_##name(x[j], y[j], w[j]), \
      slow_##name(VM_A(ka), VM_B(kb), VM_C(kc)))
#define VM_X1F(A, name, r, ka, part, cost, expr, text)                                   \
    A(name, r, VM_WIDE(cost, sizeof(r) | sizeof(ka)), VM_IN1(ka), fast_##name(x[j], &f), \
      slow_##name(VM_A(ka), &f))
#define VM_X2F(A, name, r, ka, kb, part, cost, expr, text)                         \
    A(name, r, VM_WIDE(cost, sizeof(r) | sizeof(ka) | sizeof(kb)), VM_IN2(ka, kb), \
      fast_##name(x[j], y[j], &f), slow_##name(VM_A(ka), VM_B(kb), &f))
#define VM_X3F(A, name, r, ka, kb, kc, part, cost, expr, text)           \
    A(name, r, 1, VM_IN3(ka, kb, kc), fast_##name(x[j], y[j], w[j], &f), \
      slow_##name(VM_A(ka), VM_B(kb), VM_C(kc), &f))
#define VM_SCALARS(plain, failing) \
    WF_OPS1(VM_X1, plain)          \
    WF_OPS2(VM_X2, plain)          \
    WF_OPS3(VM_X3, plain)          \
    WF_OPS1F(VM_X1F, failing)      \
    WF_OPS2F(VM_X2F, failing)      \
    WF_OPS3F(VM_X3F, failing)

/* number: of the thread's first row in the source. Returns the rows still active. */
FN_SLOW u32 vm_scalar(u8 *s, struct vm_op op, u32 act, i64 number, u64 *report) {
    switch (op_code(op)) {
        VM_SCALARS(VM_HEAVY, VM_HEAVY_F)
    case KOP_COUNT: /* here, so that the loop that everybody runs does not know of it */
        w_count_rows(report, op_imm(op), act);
        break;
    default:
        break;
    }
    return act;
}

/* --- control opcodes -------------------------------------------------------------------------- */

FN void vm_const(u8 *s, struct vm_op op, struct klit lit) {
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        switch (op_kind(op)) {
        case KIND_B8:
            s[vm_start(op_dst(op)) + j] = (b8)lit.low;
            break;
        case KIND_I32:
        case KIND_F32:
            *(u32 *)(s + vm_start(op_dst(op)) + 4u * j) = (u32)lit.low;
            break;
        case KIND_I64:
        case KIND_F64:
            *(u64 *)(s + vm_start(op_dst(op)) + 8u * j) = lit.low;
            break;
        default:
            store16(s + vm_start(op_dst(op)) + 16u * j, vec_of(lit.low, lit.high));
            break;
        }
    }
}

/* The values that satisfy a comparison with a literal are those from lo to hi; none when lo > hi or
 * a bound is NaN. NE counts as EQ. */
FN void vm_bounds_i32(u32 code, i32 literal, i32 bounds[2]) {
    i32 lo = code == OP_EQ_I32 || code == OP_NE_I32 || code == OP_GE_I32 ? literal : I32_MIN;
    i32 hi = code == OP_EQ_I32 || code == OP_NE_I32 || code == OP_LE_I32 ? literal : I32_MAX;
    if (code == OP_LT_I32) {
        lo = literal == I32_MIN ? I32_MAX : I32_MIN;
        hi = literal == I32_MIN ? I32_MIN : literal - 1;
    }
    if (code == OP_GT_I32) {
        lo = literal == I32_MAX ? I32_MAX : literal + 1;
        hi = literal == I32_MAX ? I32_MIN : I32_MAX;
    }
    bounds[0] = lo > bounds[0] ? lo : bounds[0];
    bounds[1] = hi < bounds[1] ? hi : bounds[1];
}
/* The bits of the next real above; of infinity, a NaN. */
FN u32 vm_above(u32 bits) {
    return (bits & 0x7fffffffu) == 0 ? 1u : bits >> 31 ? bits - 1u : bits + 1u;
}
FN f32 vm_tighter(f32 x, f32 y, b8 greater) {
    return x != x ? x : y != y ? y : greater == (b8)(x > y) ? x : y;
}
FN void vm_bounds_f32(u32 code, f32 literal, f32 bounds[2]) {
    f32 lo = bits_f32(0xff800000u);
    f32 hi = bits_f32(0x7f800000u);
    u32 bits = f32_bits(literal);
    if (code == OP_EQ_F32 || code == OP_NE_F32 || code == OP_GE_F32) {
        lo = literal;
    }
    if (code == OP_EQ_F32 || code == OP_NE_F32 || code == OP_LE_F32) {
        hi = literal;
    }
    if (code == OP_GT_F32) {
        lo = literal != literal ? literal : bits_f32(vm_above(bits));
    }
    if (code == OP_LT_F32) {
        hi = literal != literal ? literal : bits_f32(vm_above(bits ^ 0x80000000u) ^ 0x80000000u);
    }
    bounds[0] = vm_tighter(lo, bounds[0], 1);
    bounds[1] = vm_tighter(hi, bounds[1], 0);
}
FN void vm_range(u8 *s, struct vm_op op, const struct klit *lits) {
    u32 first = (u32)lits[op_imm(op)].low;
    u32 second = op_c(op) == 0xffffu ? 0u : (u32)lits[op_b(op)].low;
    vec16 v = vec_of(0, 0);
    if (op_kind(op) == KIND_I32) {
        i32 bounds[2] = {I32_MIN, I32_MAX};
        vm_bounds_i32(op_rank(op), (i32)first, bounds);
        if (op_c(op) != 0xffffu) {
            vm_bounds_i32(op_c(op), (i32)second, bounds);
        }
        v.w[0] = (u32)bounds[0];
        v.w[1] = (u32)bounds[1];
    } else {
        f32 bounds[2] = {bits_f32(0xff800000u), bits_f32(0x7f800000u)};
        vm_bounds_f32(op_rank(op), bits_f32(first), bounds);
        if (op_c(op) != 0xffffu) {
            vm_bounds_f32(op_c(op), bits_f32(second), bounds);
        }
        v.w[0] = f32_bits(bounds[0]);
        v.w[1] = f32_bits(bounds[1]);
    }
    store16(s + vm_start(op_dst(op)), v);
}

/* Low words of the group's elements. */
FN void vm_seg32(const struct kseg *seg, i64 row, u32 x[4]) {
    const u8 *data = seg->data;
    switch (seg->form) {
    case SEG_U8:
        group_u8(data + row, x);
        break;
    case SEG_U16:
        group_u16(data + 2 * row, x);
        break;
    case SEG_U32:
    case SEG_I32:
    case SEG_F32:
        group_u32(data + 4 * row, x);
        break;
    case SEG_I64:
    case SEG_U64: {
        u64 w[4];
        group_u64(data + 8 * row, w);
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = (u32)w[j];
        }
        break;
    }
    case SEG_U128: {
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = *(const u32 *)(data + 16 * (row + j));
        }
        break;
    }
    default: {
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = 0;
        }
        break;
    }
    }
}
FN void vm_seg64(const struct kseg *seg, i64 row, u64 x[4]) {
    if (seg->form == SEG_U64 || seg->form == SEG_I64 || seg->form == SEG_F64) {
        group_u64(seg->data + 8 * row, x);
    } else if (seg->form == SEG_SERIES) {
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = (u64)(row + j) * seg->base_high;
        }
    } else if (seg->form == SEG_U128) {
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = *(const u64 *)(seg->data + 16 * (row + j));
        }
    } else {
        u32 w[4];
        vm_seg32(seg, row, w);
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = seg->form == SEG_I32 ? (u64)(i64)(i32)w[j] : (u64)w[j];
        }
    }
}

FN void vm_put_bits(u8 *s, struct vm_op op, u32 j, u64 low, u64 high) {
    switch (op_kind(op)) {
    case KIND_B8:
        put1_b8(s, op_dst(op), j, (b8)low);
        break;
    case KIND_I32:
    case KIND_F32:
        vm_put4(s, op_dst(op), j, (u32)low);
        break;
    case KIND_I64:
    case KIND_F64:
        vm_put8(s, op_dst(op), j, low);
        break;
    default:
        put1_i128(s, op_dst(op), j, i128_of(low, high));
        break;
    }
}

/* A load of any form into any kind; the common ones have cases of their own. */
FN_SLOW void vm_load(u8 *s, struct vm_op op, const struct kseg *seg, i64 row, u32 h, u32 keep) {
    u64 base = seg->form == SEG_F32 || seg->form == SEG_F64 ? 0 : seg->base;
    u64 x[4];
    vm_seg64(seg, row, x);
    NO_UNROLL for (u32 j = 0; j < 4; j++) {
        u64 high = seg->form == SEG_I32 || seg->form == SEG_I64 ? (u64)((i64)x[j] >> 63) : 0;
        if (seg->form == SEG_U128) {
            high = *(const u64 *)(seg->data + 16 * (row + j) + 8);
        }
        u128 sum = (u128)i128_of(base, seg->base_high) + (u128)i128_of(x[j], high);
        if (keep >> j & 1u) {
            vm_put_bits(s, op, 4 * h + j, (u64)sum, (u64)(sum >> 64));
        }
    }
}

/* A group of any form into four-byte values. */
FN_SLOW vec16 vm_any4(const struct kseg *seg, i64 row) {
    u32 base = seg->form == SEG_F32 || seg->form == SEG_F64 ? 0u : (u32)seg->base;
    vec16 v;
    vm_seg32(seg, row, v.w);
    UNROLL for (u32 j = 0; j < 4; j++) {
        v.w[j] += base;
    }
    return v;
}

#define VM_SEG const struct kseg *seg = args.segs + (u64)op_imm(op) * args.tablet_count + t.tablet;
#define VM_ACTIVE (act >> (4 * h) & 15u)
#define VM_LOAD4(form, width, reader)                            \
    case KOP_LOAD(1, form): {                                    \
        VM_SEG const u8 *data = seg->data;                       \
        u32 base = (u32)seg->base;                               \
        VM_GROUP_LOOP {                                          \
            if (VM_ACTIVE) {                                     \
                u32 x[4];                                        \
                reader(data + (t.row + h * VM_SPAN) * width, x); \
                VM_KEEP UNROLL for (u32 j = 0; j < 4; j++) {     \
                    x[j] += base;                                \
                }                                                \
                vm_store4(s, op_dst(op), h, x, keep);            \
            }                                                    \
        }                                                        \
        break;                                                   \
    }
#define VM_LOAD8(form, width, reader, type, widen)               \
    case KOP_LOAD(2, form): {                                    \
        VM_SEG const u8 *data = seg->data;                       \
        u64 base = seg->base;                                    \
        VM_GROUP_LOOP {                                          \
            if (VM_ACTIVE) {                                     \
                type x[4];                                       \
                reader(data + (t.row + h * VM_SPAN) * width, x); \
                VM_KEEP u64 y[4];                                \
                UNROLL for (u32 j = 0; j < 4; j++) {             \
                    y[j] = (u64)(widen)x[j] + base;              \
                }                                                \
                vm_store8(s, op_dst(op), h, y, keep);            \
            }                                                    \
        }                                                        \
        break;                                                   \
    }
#define VM_LOADS                              \
    VM_LOAD4(SEG_U8, 1, group_u8)             \
    VM_LOAD4(SEG_U16, 2, group_u16)           \
    VM_LOAD4(SEG_U32, 4, group_u32)           \
    VM_LOAD8(SEG_U8, 1, group_u8, u32, u64)   \
    VM_LOAD8(SEG_U16, 2, group_u16, u32, u64) \
    VM_LOAD8(SEG_U32, 4, group_u32, u32, u64) \
    VM_LOAD8(SEG_I32, 4, group_u32, u32, i32) \
    VM_LOAD8(SEG_U64, 8, group_u64, u64, u64)

/* Element `at` of an array into row i of a register. */
FN void vm_pick(u8 *s, struct vm_op op, const u8 *data, i64 at, u32 j) {
    switch (op_kind(op)) {
    case KIND_B8:
        vm_put_bits(s, op, j, data[at], 0);
        break;
    case KIND_I32:
    case KIND_F32:
        vm_put_bits(s, op, j, ((const u32 *)data)[at], 0);
        break;
    case KIND_I64:
    case KIND_F64:
        vm_put_bits(s, op, j, ((const u64 *)data)[at], 0);
        break;
    default:
        put1_i128(s, op_dst(op), j, vec_i128(load16(data + 16 * at)));
        break;
    }
}

FN_SLOW void vm_load_text(u8 *s, struct vm_op op, const struct kseg *seg, i64 row, u32 act,
                          struct ktexts in, struct ktexts out) {
    VM_EACH_ROW {
        if (act >> i & 1u) {
            put1_str(s, op_dst(op), i,
                     text_load(seg, row + (i >> 2) * VM_SPAN + (i & 3u), op_c(op), in, out));
        }
    }
}

/* A column of a variable; row -1 reads as zero. */
FN_SLOW void vm_loadv(u8 *s, struct vm_op op, const struct kcol *col, i64 at, u32 i, struct ktexts in) {
    if (at < 0 || col->mask) {
        vm_put_bits(s, op, i, at < 0 ? 0u : (u64)col->lo + ((u64)at >> col->shift & col->mask), 0);
        return;
    }
    vm_pick(s, op, col->data, at, i);
    if (op_kind(op) == KIND_STR && !(op_c(op) & KOP_HOST_TEXT)) {
        put1_str(s, op_dst(op), i, text_moved(in.items, in.count, get1_str(s, op_dst(op), i)));
    }
}

/* What lies outside the table reads as zero. */
FN_SLOW void vm_lut(u8 *s, struct vm_op op, const struct kcol *lut, u32 j) {
    i64 at = get1_i32(s, op_a(op), j);
    if (at >= 0 && at < lut->len) {
        vm_pick(s, op, lut->data, at, j);
    } else {
        vm_put_bits(s, op, j, 0, 0);
    }
}

/* Rows that look something up. */
FN u32 vm_where(const u8 *s, struct vm_op op, u32 place) {
    return op_kind(op) & KPROBE_WHERE ? vm_mask(s, place) : ~0u;
}
/* number: of the thread's first row in the source. */
FN_SLOW u32 vm_probe(u8 *s, struct vm_op op, const struct kindex *ix, u32 act, i64 number,
                     u64 *report) {
    u32 where = vm_where(s, op, op_b(op));
    VM_EACH_ROW {
        if (act >> i & 1u) {
            u64 run = where >> i & 1u ? find_run(ix, get1_i64(s, op_a(op), i)) : 0u;
            u32 matches = (u32)(run >> 32) - (u32)run;
            if (!matches && !(op_kind(op) & KPROBE_OUTER)) {
                act &= ~(1u << i);
                continue;
            }
            put1_i64(s, op_dst(op), i, matches ? run_row(ix, (u32)run) : -1);
            if (matches > 1u && (op_kind(op) & KPROBE_SINGLE)) {
                vm_faults(FAULT_MORE_ROWS, 1u, op_rank(op), number + (i >> 2) * VM_SPAN + (i & 3u),
                          report);
            }
        }
    }
    return act;
}

FN_SLOW void vm_intern(u8 *s, struct vm_op op, const struct kintern *t, u32 act, u64 *report) {
    VM_EACH_ROW {
        if (act >> i & 1u) {
            u32 code = op_code(op);
            if (code == OP_UNPAIR) {
                put1_i64(s, op_dst(op), i, intern_half(t, get1_i32(s, op_a(op), i), op_b(op)));
            } else if (code == OP_INTERN) {
                put1_i32(s, op_dst(op), i,
                         intern_text(t, get1_str(s, op_a(op), i), op_c(op), report));
            } else {
                put1_i32(s, op_dst(op), i,
                         intern_pair(t, get1_i64(s, op_a(op), i), get1_i64(s, op_b(op), i),
                                     op_c(op), report));
            }
        }
    }
}

/* Cursor and end of every row's run live in two places side by side, the first at b. */
#define VM_END_PLACE(place) ((place) + VM_GROUPS * VM_PLANE / 16u)
/* Opens a row's run: its cursors, its first match; false when it has none. */
FN i32 vm_run_open(u8 *s, struct vm_op op, const struct kindex *ix, u32 looks, u32 i) {
    u64 run = looks & 1u ? find_run(ix, get1_i64(s, op_a(op), i)) : 0u;
    run = (looks & 2u) && (op_kind(op) & KPROBE_OUTER) ? run_outer(run) : run;
    vm_put4(s, op_b(op), i, (u32)run);
    vm_put4(s, VM_END_PLACE(op_b(op)), i, (u32)(run >> 32));
    if ((u32)run != (u32)(run >> 32)) {
        put1_i64(s, op_dst(op), i, run_row(ix, (u32)run));
        return 1;
    }
    return 0;
}
/* Takes row i's next match, into dst; false when there is none. */
FN i32 vm_run_next(u8 *s, u32 cursors, u32 dst, const struct kindex *ix, u32 i) {
    u32 at = vm_get4(s, cursors, i);
    u32 end = vm_get4(s, VM_END_PLACE(cursors), i);
    at += at != end;
    vm_put4(s, cursors, i, at);
    if (at == end) {
        return 0;
    }
    put1_i64(s, dst, i, run_row(ix, at));
    return 1;
}
FN_SLOW u32 vm_match(u8 *s, struct vm_op op, const struct kindex *ix, u32 act) {
    u32 where = act & vm_where(s, op, op_rank(op));
    u32 out = 0;
    VM_EACH_ROW {
        u32 looks = (where >> i & 1u) | (act >> i & 1u) << 1;
        out |= vm_run_open(s, op, ix, looks, i) ? 1u << i : 0u;
    }
    return out;
}
FN_SLOW u32 vm_next(u8 *s, struct vm_op op, const struct kindex *ix) {
    u32 act = 0;
    VM_EACH_ROW {
        act |= vm_run_next(s, op_b(op), op_dst(op), ix, i) ? 1u << i : 0u;
    }
    return act;
}

/* EACH keeps the active rows behind its cursors; what ANY makes, at c, is -1 at first. */
#define VM_ACT_PLACE(place) ((place) + 2u * VM_GROUPS * VM_PLANE / 16u)
FN_SLOW u32 vm_each(u8 *s, struct vm_op op, const struct kindex *ix, u32 act) {
    u32 out = vm_match(s, op, ix, act);
    *(u32 *)(s + vm_byte(VM_ACT_PLACE(op_b(op)), 0)) = act;
    VM_EACH_ROW {
        if (act >> i & 1u) {
            put1_i64(s, op_c(op), i, -1);
        }
    }
    return out;
}
/* Notes the matches that came this far; returns the rows that have further ones to try. */
FN_SLOW u32 vm_any(u8 *s, struct vm_op op, const struct kindex *ix, u32 act) {
    u32 single = op_kind(op) & KPROBE_SINGLE;
    u32 kept = *(const u32 *)(s + vm_byte(VM_ACT_PLACE(op_b(op)), 0));
    u32 out = 0;
    VM_EACH_ROW {
        if (kept >> i & 1u) {
            i64 any = get1_i64(s, op_dst(op), i);
            if (act >> i & 1u) {
                any = any == -1 ? get1_i64(s, op_a(op), i) : single ? -2 : any;
                put1_i64(s, op_dst(op), i, any);
            }
            u32 open = any == -1 || (single && any >= 0);
            if (open && vm_run_next(s, op_b(op), op_a(op), ix, i)) {
                out |= 1u << i;
            }
        }
    }
    return out;
}
FN_SLOW u32 vm_any_end(const u8 *s, struct vm_op op, i64 number, u64 *report) {
    u32 act = *(const u32 *)(s + vm_byte(VM_ACT_PLACE(op_b(op)), 0));
    VM_EACH_ROW {
        if ((act >> i & 1u) && (op_kind(op) & KPROBE_SINGLE) && get1_i64(s, op_dst(op), i) == -2) {
            vm_faults(FAULT_MORE_ROWS, 1u, op_rank(op), number + (i >> 2) * VM_SPAN + (i & 3u),
                      report);
        }
    }
    return act;
}

/* --- hot opcodes ------------------------------------------------------------------------------ */

/* All groups are asked for before the first is used. Groups without active rows are not read. */
#define VM_HOT_LOAD4(name, width, reader)                        \
    case KHOT_##name: {                                          \
        VM_SEG const u8 *data = seg->data + t.row * width;       \
        u32 base = (u32)seg->base;                               \
        VM_EACH_GROUP {                                          \
            if (VM_ACTIVE) {                                     \
                reader(data + h * (VM_SPAN * width), &x[4 * h]); \
            }                                                    \
        }                                                        \
        UNROLL for (u32 i = 0; i < VM_ROWS; i++) {               \
            x[i] += base;                                        \
        }                                                        \
        break;                                                   \
    }
#define VM_HOT_LOAD8(name, width, reader, type, widen)      \
    case KHOT_##name: {                                     \
        VM_SEG const u8 *data = seg->data + t.row * width;  \
        u64 base = seg->base;                               \
        type v[VM_GROUPS][4];                               \
        VM_EACH_GROUP {                                     \
            UNROLL for (u32 j = 0; j < 4; j++) {            \
                v[h][j] = 0;                                \
            }                                               \
            if (VM_ACTIVE) {                                \
                reader(data + h * (VM_SPAN * width), v[h]); \
            }                                               \
        }                                                   \
        VM_EACH_GROUP {                                     \
            if (VM_ACTIVE) {                                \
                u64 y[4];                                   \
                UNROLL for (u32 j = 0; j < 4; j++) {        \
                    y[j] = (u64)(widen)v[h][j] + base;      \
                }                                           \
                vm_store8(s, op_dst(op), h, y, 15u);        \
            }                                               \
        }                                                   \
        break;                                              \
    }
/* Operands of eight bytes may be widened on the way. */
FN void vm_wide_i64(const u8 *s, u32 place, u32 h, u32 wide, i64 x[4]) {
    if (wide) {
        i32 y[4];
        get4_i32(s, place, h, y);
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = y[j];
        }
    } else {
        get4_i64(s, place, h, x);
    }
}
FN void vm_wide_f64(const u8 *s, u32 place, u32 h, u32 wide, f64 x[4]) {
    if (wide) {
        f32 y[4];
        get4_f32(s, place, h, y);
        UNROLL for (u32 j = 0; j < 4; j++) {
            x[j] = (f64)y[j];
        }
    } else {
        get4_f64(s, place, h, x);
    }
}
#define VM_HOT_IN8(kind)                                          \
    kind v[4];                                                    \
    kind y[4];                                                    \
    vm_wide_##kind(s, op_a(op), h, op_flags(op) & KOP_WIDE_A, v); \
    vm_wide_##kind(s, op_b(op), h, op_flags(op) & KOP_WIDE_B, y);
#define VM_BITS_i32(z) ((u32)(z))
#define VM_BITS_f32(z) f32_bits(z)
#define VM_HOT_OP4(A, name, kind)                                       \
    case KHOT_##name: {                                                 \
        VM_EACH_GROUP {                                                 \
            kind v[4];                                                  \
            kind y[4];                                                  \
            get4_##kind(s, op_a(op), h, v);                             \
            get4_##kind(s, op_b(op), h, y);                             \
            UNROLL for (u32 j = 0; j < 4; j++) {                        \
                x[4 * h + j] = VM_BITS_##kind(fast_##name(v[j], y[j])); \
            }                                                           \
        }                                                               \
        break;                                                          \
    }
#define VM_HOT_OP8(A, name, kind)                  \
    case KHOT_##name: {                            \
        VM_EACH_GROUP {                            \
            VM_HOT_IN8(kind) kind z[4];            \
            UNROLL for (u32 j = 0; j < 4; j++) {   \
                z[j] = fast_##name(v[j], y[j]);    \
            }                                      \
            put4_##kind(s, op_dst(op), h, z, 15u); \
        }                                          \
        break;                                     \
    }
#define VM_HOT_CMP4(A, name, kind)                                        \
    case KHOT_##name: {                                                   \
        VM_EACH_GROUP {                                                   \
            kind v[4];                                                    \
            kind y[4];                                                    \
            get4_##kind(s, op_a(op), h, v);                               \
            get4_##kind(s, op_b(op), h, y);                               \
            UNROLL for (u32 j = 0; j < 4; j++) {                          \
                bits |= fast_##name(v[j], y[j]) ? 1u << (4 * h + j) : 0u; \
            }                                                             \
        }                                                                 \
        break;                                                            \
    }
#define VM_HOT_CMP8(A, name, kind)                                        \
    case KHOT_##name: {                                                   \
        VM_EACH_GROUP {                                                   \
            VM_HOT_IN8(kind) UNROLL for (u32 j = 0; j < 4; j++) {         \
                bits |= fast_##name(v[j], y[j]) ? 1u << (4 * h + j) : 0u; \
            }                                                             \
        }                                                                 \
        break;                                                            \
    }
#define VM_HOT_FLAGS(name, expr)              \
    case KHOT_##name: {                       \
        u32 v = vm_flags(s, aside, op_a(op)); \
        u32 y = vm_flags(s, aside, op_b(op)); \
        bits = expr;                          \
        break;                                \
    }

FN u32 vm_within_i32(const u32 x[VM_ROWS], i32 lo, i32 hi) {
    u32 bits = 0;
    UNROLL for (u32 i = 0; i < VM_ROWS; i++) {
        bits |= ((i32)x[i] >= lo) & ((i32)x[i] <= hi) ? 1u << i : 0u;
    }
    return bits;
}
FN u32 vm_within_f32(const u32 x[VM_ROWS], f32 lo, f32 hi) {
    u32 bits = 0;
    UNROLL for (u32 i = 0; i < VM_ROWS; i++) {
        bits |= (bits_f32(x[i]) >= lo) & (bits_f32(x[i]) <= hi) ? 1u << i : 0u;
    }
    return bits;
}

/* The compiler turns a switch into a tree of comparisons: hot opcodes have one of their own.
 * Long because it is pasted into the loop of each kernel, where its cases keep their registers. */
#define VM_HOT                                                                                    \
    u32 x[VM_ROWS];                                                                               \
    UNROLL for (u32 i = 0; i < VM_ROWS; i++) {                                                    \
        x[i] = 0; /* what is not set would be kept from opcode to opcode */                       \
    }                                                                                             \
    u32 bits = 0;                                                                                 \
    switch (op_code(op)) {                                                                        \
        VM_HOT_LOAD4(LOAD4_U8, 1, group_u8)                                                       \
        VM_HOT_LOAD4(LOAD4_U16, 2, group_u16)                                                     \
        VM_HOT_LOAD4(LOAD4_U32, 4, group_u32)                                                     \
        VM_HOT_LOAD8(LOAD8_U8, 1, group_u8, u32, u64)                                             \
        VM_HOT_LOAD8(LOAD8_U16, 2, group_u16, u32, u64)                                           \
        VM_HOT_LOAD8(LOAD8_U32, 4, group_u32, u32, u64)                                           \
        VM_HOT_LOAD8(LOAD8_I32, 4, group_u32, u32, i32)                                           \
        VM_HOT_LOAD8(LOAD8_U64, 8, group_u64, u64, u64)                                           \
    case KHOT_LOAD4_ANY: {                                                                        \
        VM_SEG VM_EACH_GROUP {                                                                    \
            if (VM_ACTIVE) {                                                                      \
                vec16 v = vm_any4(seg, t.row + h * VM_SPAN);                                      \
                UNROLL for (u32 j = 0; j < 4; j++) {                                              \
                    x[4 * h + j] = v.w[j];                                                        \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case KHOT_GET: {                                                                              \
        VM_EACH_GROUP {                                                                           \
            vec16 v = load16(s + vm_vec(op_a(op), h, 4));                                         \
            UNROLL for (u32 j = 0; j < 4; j++) {                                                  \
                x[4 * h + j] = v.w[j];                                                            \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
        WF_KHOT_ARITHMETIC(VM_HOT_OP4, , i32, I32)                                                \
        WF_KHOT_ARITHMETIC(VM_HOT_OP4, , f32, F32)                                                \
        WF_KHOT_ARITHMETIC(VM_HOT_OP8, , i64, I64)                                                \
        WF_KHOT_ARITHMETIC(VM_HOT_OP8, , f64, F64)                                                \
        WF_KHOT_COMPARISONS(VM_HOT_CMP4, , i32, I32)                                              \
        WF_KHOT_COMPARISONS(VM_HOT_CMP4, , f32, F32)                                              \
        WF_KHOT_COMPARISONS(VM_HOT_CMP8, , i64, I64)                                              \
        WF_KHOT_COMPARISONS(VM_HOT_CMP8, , f64, F64)                                              \
        VM_HOT_FLAGS(AND, v &y)                                                                   \
        VM_HOT_FLAGS(OR, v | y)                                                                   \
        VM_HOT_FLAGS(ANDN, v & ~y)                                                                \
        VM_HOT_FLAGS(ORN, v | (y ^ VM_ALL))                                                       \
    default:                                                                                      \
        bits = vm_flags(s, aside, op_a(op));                                                      \
        break;                                                                                    \
    }                                                                                             \
    if (op_kind(op) & KHOT_STORE) {                                                               \
        VM_EACH_GROUP {                                                                           \
            if (VM_ACTIVE) {                                                                      \
                vm_store4(s, op_dst(op), h, &x[4 * h], 15u);                                      \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    if (op_kind(op) & KHOT_BOOLEAN) {                                                             \
        if (op_kind(op) & KHOT_TEST) {                                                            \
            vec16 r = load16(s + vm_start(op_c(op)));                                             \
            bits = op_kind(op) & KHOT_REAL ? vm_within_f32(x, bits_f32(r.w[0]), bits_f32(r.w[1])) \
                                           : vm_within_i32(x, (i32)r.w[0], (i32)r.w[1]);          \
        }                                                                                         \
        bits ^= op_kind(op) & KHOT_FLIP ? VM_ALL : 0u;                                            \
        if (op_kind(op) & (KHOT_ANDED | KHOT_ORED)) {                                             \
            u32 other = vm_flags(s, aside, op_b(op));                                             \
            bits = op_kind(op) & KHOT_ANDED ? bits & other : bits | other;                        \
        }                                                                                         \
        if (op_kind(op) & KHOT_FILTER) {                                                          \
            act &= bits;                                                                          \
            any = w_ballot(act != 0);                                                             \
        } else {                                                                                  \
            aside = vm_put_flags(s, aside, op_rank(op), bits);                                    \
        }                                                                                         \
    }

/* --- the tile loop, one kernel per kind of sink ----------------------------------------------- */

struct vm_tile {
    u64 tablet;
    i64 row; /* the thread's first row in the tablet */
    u32 act;
};

/* Tiles of the launch; of a range those that it lies in. */
#define VM_TILE (VM_SPAN * VM_GROUPS)
FN u64 vm_first_tile(const struct kargs *args) {
    return args->range ? (u64)args->range->first / VM_TILE : args->tile_first;
}
FN u64 vm_tile_end(const struct kargs *args) {
    if (!args->range) {
        return args->tile_count;
    }
    i64 end = args->range->end;
    return args->range->first < end ? ((u64)end + VM_TILE - 1u) / VM_TILE : 0u;
}

/* False when the tile holds no row that could pass. Many because what a struct holds would go through
 * memory. */
FN i32 vm_tile_open(struct vm_tile *t, const i64 *tablet_rows, const u8 *zones,
                    const u64 *const *gone, u32 zone_count, u32 tile_shift, u64 tile,
                    const struct krange *range) {
    u64 tablet = tile >> tile_shift;
    i64 first = (i64)(tile & (((u64)1 << tile_shift) - 1)) * (i64)(VM_SPAN * VM_GROUPS);
    i64 rows = tablet_rows[tablet];
    if (first >= rows || (zones && !zones[tablet * zone_count + (u64)(first >> 14)])) {
        return 0;
    }
    t->tablet = tablet;
    t->row = first + (i64)t_id() * 4;
    t->act = 0;
    VM_EACH_GROUP {
        t->act |= group_live(t->row + h * VM_SPAN, rows, gone ? gone[tablet] : (const u64 *)0)
                  << (4 * h);
    }
    if (range && first < range->first) {
        VM_EACH_GROUP {
            t->act &= group_from(t->row + h * VM_SPAN, range->first) << (4 * h) | ~(15u << (4 * h));
        }
    }
    return 1;
}
/* The source's number of the thread's first row. */
#define VM_NUMBER (args.row_starts[t.tablet] + t.row)

#define VM_BODY(emit)                                                                       \
    u64 tile = vm_first_tile(&args) + t_block();                                            \
    if (args.range && tile >= vm_tile_end(&args)) {                                         \
        return;                                                                             \
    }                                                                                       \
    u8 *s = s_slots;                                                                        \
    for (u32 at = t_id() * 16u; at < args.slot_bytes; at += VM_PLANE) {                     \
        store16(s + at, vec_of(0, 0)); /* rows that are never active are read, too */       \
    }                                                                                       \
    b_sync();                                                                               \
    for (u32 pc = 0; pc < args.hoist_count; pc++) {                                         \
        struct vm_op op = vm_fetch(args.ops, pc);                                           \
        if (t_id() == 0) {                                                                  \
            if (op_code(op) == KOP_RANGE) {                                                 \
                vm_range(s, op, args.lits);                                                 \
            } else {                                                                        \
                vm_const(s, op, args.lits[op_imm(op)]);                                     \
            }                                                                               \
        }                                                                                   \
    }                                                                                       \
    b_sync();                                                                               \
    for (; tile < vm_tile_end(&args); tile += t_blocks()) {                                 \
        struct vm_tile t;                                                                   \
        if (!vm_tile_open(&t, args.tablet_rows, args.zones, args.gone, args.zone_count,     \
                          args.tile_shift, tile, args.range)) {                             \
            continue;                                                                       \
        }                                                                                   \
        if (args.limit >= 0 &&                                                              \
            b_any(t_id() == 0 && (i64)read_u64(&args.report[REPORT_ROWS]) >= args.limit)) { \
            break;                                                                          \
        }                                                                                   \
        u32 act = t.act;                                                                    \
        u32 any = 1;   /* whether the warp has active rows */                               \
        u64 aside = 0; /* booleans that live here */                                        \
        u32 pc = args.hoist_count;                                                          \
        struct vm_op next = vm_fetch(args.ops, pc);                                         \
        while (pc + 1u < args.op_count) {                                                   \
            struct vm_op op = next;                                                         \
            pc++;                                                                           \
            next = vm_fetch(args.ops, pc);                                                  \
            if (!any && !(op_flags(op) & KOP_ALWAYS)) {                                     \
                continue;                                                                   \
            }                                                                               \
            if (op_flags(op) & KOP_HOT) {                                                   \
                VM_HOT                                                                      \
                continue;                                                                   \
            }                                                                               \
            u32 heavy = 0;                                                                  \
            switch (op_code(op)) {                                                          \
                VM_LOADS                                                                    \
                VM_CONTROLS(emit)                                                           \
                VM_SCALARS(VM_LIGHT, VM_LIGHT_F)                                            \
            default:                                                                        \
                heavy = 1;                                                                  \
                break;                                                                      \
            }                                                                               \
            if (heavy) {                                                                    \
                act = vm_scalar(s, op, act, VM_NUMBER, args.report);                        \
            }                                                                               \
            if (op_flags(op) & KOP_MOVES) {                                                 \
                any = w_ballot(act != 0);                                                   \
            }                                                                               \
        }                                                                                   \
    }

/* Every row that the opcode may write: all of them, or inside WHEN the active ones. */
#define VM_MAY (op_flags(op) & KOP_MASKED ? act : ~0u)
/* The opcodes that are no computation. Long because it is pasted into the switch of each kernel:
 * what rows are emitted to differs, and calls would move registers to memory. */
#define VM_CONTROLS(emit)                                                                         \
    case OP_LOAD: {                                                                               \
        VM_SEG if (op_kind(op) == KIND_STR) {                                                     \
            vm_load_text(s, op, seg, t.row, act, args.texts_in, args.texts_out);                  \
            break;                                                                                \
        }                                                                                         \
        NO_UNROLL for (u32 h = 0; h < VM_GROUPS; h++) {                                           \
            if (VM_ACTIVE) {                                                                      \
                VM_KEEP vm_load(s, op, seg, t.row + h * VM_SPAN, h, keep);                        \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_CONST: {                                                                              \
        VM_EACH_ROW {                                                                             \
            if (VM_MAY >> i & 1u) {                                                               \
                vm_pick(s, op, (const u8 *)&args.lits[op_imm(op)], 0, i);                         \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_LOADN: {                                                                              \
        VM_SEG VM_EACH_GROUP {                                                                    \
            if (VM_ACTIVE) {                                                                      \
                VM_KEEP u32 nulls = group_nulls(seg->nulls, seg->null_form, t.row + h * VM_SPAN); \
                b8 x[4];                                                                          \
                UNROLL for (u32 j = 0; j < 4; j++) {                                              \
                    x[j] = (b8)(nulls >> j & 1u);                                                 \
                }                                                                                 \
                put4_b8(s, op_dst(op), h, x, keep);                                               \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_LOADV:                                                                                \
    case OP_LOADVN: {                                                                             \
        VM_EACH_ROW {                                                                             \
            if (act >> i & 1u) {                                                                  \
                i64 at = get1_i64(s, op_a(op), i);                                                \
                if (op_code(op) == OP_LOADV) {                                                    \
                    vm_loadv(s, op, &args.cols[op_imm(op)], at, i, args.texts_in);                \
                } else {                                                                          \
                    put1_b8(s, op_dst(op), i, (b8)(at < 0 || col_null(&args.cols[op_imm(op)], at))); \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_ROWNO: {                                                                              \
        VM_EACH_ROW {                                                                             \
            if (VM_MAY >> i & 1u) {                                                               \
                put1_i64(s, op_dst(op), i, VM_NUMBER + (i >> 2) * VM_SPAN + (i & 3u));            \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_LUT: {                                                                                \
        VM_EACH_ROW {                                                                             \
            if (act >> i & 1u) {                                                                  \
                vm_lut(s, op, &args.luts[op_imm(op)], i);                                         \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_INTERN:                                                                               \
    case OP_INTERN2:                                                                              \
    case OP_UNPAIR:                                                                               \
        vm_intern(s, op, &args.interns[op_imm(op)], act, args.report);                            \
        break;                                                                                    \
    case OP_FILTER:                                                                               \
        act &= vm_mask(s, op_a(op));                                                              \
        break;                                                                                    \
    case OP_WHEN:                                                                                 \
        *(u32 *)(s + vm_byte(op_dst(op), 0)) = act;                                               \
        act &= vm_flags(s, aside, op_a(op));                                                      \
        break;                                                                                    \
    case OP_END:                                                                                  \
        act = *(u32 *)(s + vm_byte(op_dst(op), 0));                                               \
        break;                                                                                    \
    case OP_PROBE:                                                                                \
        act = vm_probe(s, op, &args.indexes[op_imm(op)], act, VM_NUMBER, args.report);            \
        break;                                                                                    \
    case OP_MATCH:                                                                                \
        act = vm_match(s, op, &args.indexes[op_imm(op)], act);                                    \
        pc = b_any((i32)act) ? pc : op_c(op);                                                     \
        next = vm_fetch(args.ops, pc);                                                            \
        break;                                                                                    \
    case KOP_NEXT:                                                                                \
        act = vm_next(s, op, &args.indexes[op_imm(op)]);                                          \
        pc = b_any((i32)act) ? op_c(op) : pc;                                                     \
        next = vm_fetch(args.ops, pc);                                                            \
        break;                                                                                    \
    case OP_EACH:                                                                                 \
        act = vm_each(s, op, &args.indexes[op_imm(op)], act);                                     \
        break;                                                                                    \
    case OP_ANY: { /* nothing inside is for the whole block: every warp goes round by itself */   \
        u32 more = vm_any(s, op, &args.indexes[op_imm(op)], act);                                 \
        if (w_ballot(more != 0)) {                                                                \
            act = more;                                                                           \
            pc = op_c(op);                                                                        \
            next = vm_fetch(args.ops, pc);                                                        \
        } else {                                                                                  \
            act = vm_any_end(s, op, VM_NUMBER, args.report);                                      \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case KOP_MARK: {                                                                              \
        u8 *marks = args.outs[args.out_count + op_imm(op)].data;                                  \
        VM_EACH_ROW {                                                                             \
            i64 at = act >> i & 1u ? get1_i64(s, op_a(op), i) : -1;                               \
            if (at >= 0) {                                                                        \
                marks[at] = 1;                                                                    \
            }                                                                                     \
        }                                                                                         \
        break;                                                                                    \
    }                                                                                             \
    case OP_EMIT:                                                                                 \
        emit;                                                                                     \
        break;

#endif
