/* segment.c: values out of segments: what an encoding means, on the host.
 *
 * One value (segment_get), or those of many rows at once to where they go (segment_take), which asks
 * what an encoding means once per call and not once per row. Vector loops (cpu/load.c,
 * cpu/vec_rows.c) and kernels decode runs of rows in registers; base and sign are asked for here. */
#include "store/tablet.h"

enum { BATCH = 512 }; /* values between reading and widening */

/* Widths of less than 8 bytes, with the types of signed and unsigned integers. */
#define WIDTHS(X) X(1, i8, u8) X(2, i16, u16) X(4, i32, u32)

static i64 integer_at(const struct segment *seg, i64 at) {
    const void *data = seg->data;
    bool is_signed = segment_is_signed(seg);
    switch (seg->width) {
#define X(width, with_sign, without) \
    case width:                      \
        return is_signed ? (i64)((const with_sign *)data)[at] : (i64)((const without *)data)[at];
        WIDTHS(X)
#undef X
    default:
        return ((const i64 *)data)[at];
    }
}

#define READ(type)                                    \
    for (i64 i = 0; i < n; i++) {                     \
        value[i] = (i64)((const type *)data)[pos[i]]; \
    }                                                 \
    break

static void read_integers(const struct segment *seg, const u32 *pos, i64 n, i64 *value) {
    const void *data = seg->data;
    bool is_signed = segment_is_signed(seg);
    switch (seg->width) {
#define X(width, with_sign, without) \
    case width:                      \
        if (is_signed) {             \
            READ(with_sign);         \
        }                            \
        READ(without);
        WIDTHS(X)
#undef X
    default:
        READ(i64);
    }
}
#undef READ

#define PUT(type)                                            \
    for (i64 i = 0; i < n; i++) {                            \
        ((type *)out)[to[i]] = (type)((u64)value[i] + base); \
    }                                                        \
    break

/* Integers and codes: unsigned ones of 64 bits wrap as their base does. */
static void take_integers(const struct segment *seg, u8 kind, const u32 *pos, const u32 *to,
                          i64 count, void *out) {
    i64 value[BATCH];
    u64 base = (u64)segment_base(seg);
    for (i64 at = 0; at < count; at += BATCH, pos += BATCH, to += BATCH) {
        i64 n = MIN_OF(count - at, BATCH);
        read_integers(seg, pos, n, value);
        switch (kind) {
        case KIND_B8:
            PUT(b8);
        case KIND_I32:
            PUT(i32);
        default:
            PUT(i64);
        }
    }
}
#undef PUT

static i128 wide_at(const struct segment *seg, i64 at) {
    if (seg->width == 16) {
        return (i128)((u128)((const i128 *)seg->data)[at] + (u128)seg->base);
    }
    i64 narrow = integer_at(seg, at);
    bool is_signed = seg->is_signed || seg->width < 8;
    return (i128)((is_signed ? (u128)(i128)narrow : (u128)(u64)narrow) + (u128)seg->base);
}

static f64 real_at(const struct segment *seg, i64 at) {
    return seg->width == 4 ? (f64)((const f32 *)seg->data)[at] : ((const f64 *)seg->data)[at];
}

/* Text by its ends: its bytes are not touched before the answer is read, and as nobody compares the
 * texts of an answer, they have no prefix. */
static void take_bytes(const struct segment *seg, const u32 *pos, const u32 *to, i64 count,
                       str *out) {
    u32 first[BATCH];
    u32 len[BATCH];
    const u32 *end = seg->data;
    for (i64 at = 0; at < count; at += BATCH, pos += BATCH, to += BATCH) {
        i64 n = MIN_OF(count - at, BATCH);
        for (i64 i = 0; i < n; i++) {
            first[i] = pos[i] > 0 ? end[pos[i] - 1] : 0;
            len[i] = end[pos[i]] - first[i];
        }
        for (i64 i = 0; i < n; i++) {
            out[to[i]] = (str){len[i], 0, (u64)(size_t)(seg->bytes + first[i])};
        }
    }
}

/* Text by codes. */
static void take_entries(const struct segment *seg, const struct dict *dict, const u32 *pos,
                         const u32 *to, i64 n, str *out) {
    for (i64 i = 0; i < n; i++) {
        bool is_null = segment_is_null(seg, pos[i]);
        out[to[i]] = str_from(is_null ? SV("") : dict_get(dict, segment_code(seg, pos[i])));
    }
}

union lit segment_const(const struct segment *seg, u8 kind) {
    union lit value;
    memset(&value, 0, sizeof value);
    switch (kind) {
    case KIND_B8:
        value.b8 = (b8)seg->base;
        break;
    case KIND_I32:
        value.i32 = (i32)seg->base;
        break;
    case KIND_I64:
        value.i64 = (i64)seg->base;
        break;
    case KIND_I128:
        value.i128 = seg->base;
        break;
    case KIND_F32:
        value.f32 = (f32)seg->fbase;
        break;
    default:
        ASSERT(kind == KIND_F64); /* text has codes or bytes, even when it is all the same */
        value.f64 = seg->fbase;
    }
    return value;
}

static void take_const(const struct segment *seg, u8 kind, const u32 *to, i64 n, u8 *out) {
    union lit value = segment_const(seg, kind);
    i64 bytes = kind_bytes[kind];
    for (i64 i = 0; i < n; i++) {
        memcpy(out + to[i] * bytes, &value, (size_t)bytes);
    }
}

void segment_take(const struct segment *seg, const struct dict *dict, u8 kind, const u32 *pos,
                  const u32 *to, i64 n, void *out) {
    if (seg->encoding == ENC_CONST) {
        take_const(seg, kind, to, n, out);
        return;
    }
    switch (kind) {
    case KIND_STR:
        if (seg->encoding == ENC_STR) {
            take_bytes(seg, pos, to, n, out);
        } else {
            take_entries(seg, dict, pos, to, n, out);
        }
        break;
    case KIND_I128:
        for (i64 i = 0; i < n; i++) {
            ((i128 *)out)[to[i]] = wide_at(seg, pos[i]);
        }
        break;
    case KIND_F32:
        for (i64 i = 0; i < n; i++) {
            ((f32 *)out)[to[i]] = (f32)real_at(seg, pos[i]);
        }
        break;
    case KIND_F64:
        for (i64 i = 0; i < n; i++) {
            ((f64 *)out)[to[i]] = real_at(seg, pos[i]);
        }
        break;
    default:
        take_integers(seg, kind, pos, to, n, out);
        break;
    }
}

bool segment_is_sound(const struct segment *seg, struct type type) {
    u8 w = seg->width;
    u8 kind = (u8)type_kind(type);
    bool text = kind == KIND_STR, real = kind == KIND_F32 || kind == KIND_F64;
    bool integer = w == 1 || w == 2 || w == 4 || w == 8 || w == 16;
    switch (seg->encoding) {
    case ENC_CONST:
        return !text && !seg->data && w == 0;
    case ENC_INT:
        return !text && !real && integer &&
               (!seg->is_signed || (seg->base == 0 && w == kind_bytes[kind]));
    case ENC_FLOAT:
        return real && w == kind_bytes[kind];
    case ENC_DICT:
        return text && (w == 1 || w == 2 || w == 4);
    default:
        return seg->encoding == ENC_STR && text && seg->bytes_len <= I32_MAX * 2LL + 1;
    }
}

bool segment_get(const struct segment *seg, const struct dict *dict, struct type type, i64 i,
                 void *out) {
    static const u32 first = 0;
    u8 kind = (u8)type_kind(type);
    u32 pos = (u32)i;
    if (segment_is_null(seg, i)) {
        return false;
    }
    if ((kind == KIND_I32 || kind == KIND_I64) && seg->encoding != ENC_CONST) { /* most keys */
        u64 value = (u64)integer_at(seg, i) + (u64)segment_base(seg);
        if (kind == KIND_I64) {
            *(i64 *)out = (i64)value;
        } else {
            *(i32 *)out = (i32)value;
        }
        return true;
    }
    segment_take(seg, dict, kind, &pos, &first, 1, out);
    if (kind == KIND_STR) {
        *(str *)out = str_from(sv_of(*(str *)out)); /* with its prefix */
    }
    return true;
}
