/* map.h: an opcode over arrays.
 *
 * The text before this defines
 *   MAP_EXPR            the opcode's expression over a, b, c and f, as op.def has it
 *   MAP_ARITY, MAP_FAULTS
 *   MAP_GROUPS          groups of four rows a thread
 *   MAP_R, MAP_R_BYTES  the kind of the result and the width of its elements; A, B, C: of the operands
 * Where the expression needs helpers it has included them.
 *
 * A block has tiles a grid apart; a thread's groups are a block's width apart and all loaded before
 * anything is computed. */
#include "rows4.h"

#include "defs/kprim.h"

#ifndef MAP_TEXT
#define MAP_TEXT 0
#endif

#define RAW_WORDS(bytes) ((bytes) == 1 ? 1 : (bytes))
#define PASTE(x, y) x##y
#define READ(bytes) PASTE(rows4_read, bytes)
#define WRITE(bytes) PASTE(rows4_write, bytes)
#define GET(kind) PASTE(get_, kind)
#define PUT(kind) PASTE(put_, kind)

FN b8 get_b8(const u32 *raw, u32 j) {
    return (b8)((raw[0] >> (8 * j) & 255u) != 0);
}
FN i32 get_i32(const u32 *raw, u32 j) {
    return (i32)raw[j];
}
FN f32 get_f32(const u32 *raw, u32 j) {
    return bits_f32(raw[j]);
}
FN i64 get_i64(const u32 *raw, u32 j) {
    return (i64)raw_u64(raw, j);
}
FN f64 get_f64(const u32 *raw, u32 j) {
    return bits_f64(raw_u64(raw, j));
}
FN i128 get_i128(const u32 *raw, u32 j) {
    return (i128)((u128)raw_u64(raw, 2 * j + 1) << 64 | raw_u64(raw, 2 * j));
}
FN void put_b8(u32 *raw, u32 j, b8 x) {
    raw[0] = (j ? raw[0] : 0u) | (u32)x << (8 * j);
}
FN void put_i32(u32 *raw, u32 j, i32 x) {
    raw[j] = (u32)x;
}
FN void put_f32(u32 *raw, u32 j, f32 x) {
    raw[j] = f32_bits(x);
}
FN void put_i64(u32 *raw, u32 j, i64 x) {
    raw[2 * j] = (u32)x;
    raw[2 * j + 1] = (u32)((u64)x >> 32);
}
FN void put_f64(u32 *raw, u32 j, f64 x) {
    put_i64(raw, j, (i64)f64_bits(x));
}
FN void put_i128(u32 *raw, u32 j, i128 x) {
    put_i64(raw, 2 * j, (i64)x);
    put_i64(raw, 2 * j + 1, (i64)((u128)x >> 64));
}

/* A string from its span; one that leaves the bytes is a fault. */
#if MAP_TEXT
FN str get_text(const u32 *raw, u32 j, const u8 *bytes, i64 byte_count, u8 *f) {
    u64 offset = raw_u64(raw, 2 * j);
    u64 length = raw_u64(raw, 2 * j + 1);
    b8 fits = (b8)(length <= (u64)byte_count && offset <= (u64)byte_count - length &&
                   length <= (u64)I32_MAX);
    str s;
    s.len = fits ? (u32)length : 0u;
    s.addr = fits ? (u64)bytes + offset : 0u;
    s.prefix = s.len ? fn_prefix((const u8 *)s.addr, s.len) : 0u;
    *f = (u8)(fits ? *f : (u8)FAULT_INPUT_RANGE);
    return s;
}
#define OPERAND(no, kind, raw, j) \
    GET(kind)(raw, j, args.bytes[no], args.byte_count[no], &text_fault)
#define get_str(raw, j, bytes, byte_count, f) get_text(raw, j, bytes, byte_count, f)
#else
#define OPERAND(no, kind, raw, j) GET(kind)(raw, j)
#endif

#define LOAD(no, bytes, raw)                                  \
    if (args.single[no]) {                                    \
        if (row < args.count) {                               \
            single##bytes(raw, args.in[no]);                  \
        }                                                     \
    } else {                                                  \
        rows4_read##bytes(raw, args.in[no], row, args.count); \
    }
FN void single1(u32 *raw, const void *in) {
    raw[0] = (u32) * (const u8 *)in * 0x01010101u;
}
FN void single4(u32 *raw, const void *in) {
    UNROLL for (u32 j = 0; j < 4; j++) {
        raw[j] = *(const u32 *)in;
    }
}
FN void single8(u32 *raw, const void *in) {
    UNROLL for (u32 j = 0; j < 8; j++) {
        raw[j] = ((const u32 *)in)[j & 1u];
    }
}
FN void single16(u32 *raw, const void *in) {
    UNROLL for (u32 j = 0; j < 16; j++) {
        raw[j] = ((const u32 *)in)[j & 3u];
    }
}
#define LOAD_AS(no, bytes, raw) LOAD(no, bytes, raw)

KERNEL(k_map, struct kmap, MAP_THREADS) {
    i64 stride = MAP_THREADS * 4;
    i64 tile = stride * MAP_GROUPS;
    i64 all = (i64)t_blocks() * tile;
    for (i64 first = (i64)t_block() * tile + (i64)t_id() * 4; first < args.count; first += all) {
        u32 a_raw[MAP_GROUPS][RAW_WORDS(MAP_A_BYTES)];
#if MAP_ARITY > 1
        u32 b_raw[MAP_GROUPS][RAW_WORDS(MAP_B_BYTES)];
#endif
#if MAP_ARITY > 2
        u32 c_raw[MAP_GROUPS][RAW_WORDS(MAP_C_BYTES)];
#endif
        UNROLL for (u32 g = 0; g < MAP_GROUPS; g++) {
            i64 row = first + (i64)g * stride;
            LOAD_AS(0, MAP_A_BYTES, a_raw[g])
#if MAP_ARITY > 1
            LOAD_AS(1, MAP_B_BYTES, b_raw[g])
#endif
#if MAP_ARITY > 2
            LOAD_AS(2, MAP_C_BYTES, c_raw[g])
#endif
        }
        UNROLL for (u32 g = 0; g < MAP_GROUPS; g++) {
            i64 row = first + (i64)g * stride;
            if (row < args.count) {
                u32 to[RAW_WORDS(MAP_R_BYTES)];
                UNROLL for (u32 j = 0; j < 4; j++) {
                    u8 fault = 0;
#if MAP_TEXT
                    u8 text_fault = 0;
#endif
#if MAP_FAULTS
                    u8 *f = &fault;
#endif
                    const MAP_A a = OPERAND(0, MAP_A, a_raw[g], j);
#if MAP_ARITY > 1
                    const MAP_B b = OPERAND(1, MAP_B, b_raw[g], j);
#endif
#if MAP_ARITY > 2
                    const MAP_C c = OPERAND(2, MAP_C, c_raw[g], j);
#endif
                    PUT(MAP_R)(to, j, (MAP_R)(MAP_EXPR));
#if MAP_TEXT
                    fault = text_fault ? text_fault : fault;
#endif
                    if (fault && row + (i64)j < args.count) {
                        atom_min_u64(args.fault, (u64)(row + (i64)j) << 8 | fault);
                    }
                }
                WRITE(MAP_R_BYTES)(to, args.out, row, args.count);
            }
        }
    }
}
