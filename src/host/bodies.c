/* bodies.c: the CPU-only opcodes: text to values, values to text, case, concatenation.
 *
 * Thin coats over value.h, in the form op.def's expansions call. On the GPU they are reached
 * through lookup tables that the CPU fills once per dictionary entry. Formatting happens twice, for
 * the size and for the bytes: a shorter text can be counted only by writing it, and no scratch
 * memory has to be kept in between. */
#include "host/bodies.h"

#include "defs/types.h"
#include "defs/value.h"
#include "host/chars.h"

#include "defs/host_words.h"
#include "defs/fn_str.h"
#include "defs/fn_make.h"

#define PARSE(name, r)                                   \
    r fn_parse_##name(str a, u8 *f) {                    \
        r value = 0;                                     \
        u8 fault = value_parse_##name(sv_of(a), &value); \
        *f = fault ? fault : *f;                         \
        return value;                                    \
    }
PARSE(int, i64)
PARSE(f32, f32)
PARSE(f64, f64)
PARSE(bool, b8)
PARSE(uuid, i128)
PARSE(zone, i32)
#undef PARSE

#define PARSE_WHEN(name, r)                                                        \
    r fn_parse_##name(str a, i32 zone, i64 now, u8 *f) {                           \
        r value = 0;                                                               \
        u8 fault = value_parse_##name(sv_of(a), (struct when){zone, now}, &value); \
        *f = fault ? fault : *f;                                                   \
        return value;                                                              \
    }
PARSE_WHEN(date, i32)
PARSE_WHEN(timestamp, i64)
PARSE_WHEN(timestamptz, i64)
PARSE_WHEN(time, i64)
#undef PARSE_WHEN

i128 fn_parse_interval(str a, i32 fields, u8 *f) {
    i128 value = 0;
    u8 fault = value_parse_interval(sv_of(a), fields, &value);
    *f = fault ? fault : *f;
    return value;
}

u8 *made_room(struct made *made, i64 bytes, u8 *f) {
    enum { TEXT_BYTES_MAX = 1 << 30 };
    made->len = 0;
    if (bytes > TEXT_BYTES_MAX) {
        *f = FAULT_TEXT_SIZE;
        return NULL;
    }
    u8 *room = made->room(made->from, MAX_OF(bytes, 1));
    made->asked = room ? 0 : bytes;
    made->bytes = room ? room : made->bytes;
    made->len = room ? bytes : 0;
    return room;
}

#define FORMAT(name, k)                                         \
    void mt_##name(struct made *made, k a, u8 *f) {             \
        char *out = (char *)made_room(made, VALUE_TEXT_MAX, f); \
        if (out) {                                              \
            made->len = value_format_##name(a, out);            \
        }                                                       \
    }
FORMAT(timestamp, i64)
FORMAT(time, i64)
FORMAT(interval, i128)
FORMAT(uuid, i128)
#undef FORMAT

void mt_timestamptz(struct made *made, i64 a, i32 b, u8 *f) {
    char *out = (char *)made_room(made, VALUE_TEXT_MAX, f);
    if (out) {
        made->len = value_format_timestamptz(a, b, out);
    }
}

void mt_bytes(struct made *made, str a, u8 *f) {
    char *out = (char *)made_room(made, 2 + 2 * (i64)a.len, f);
    if (out) {
        value_format_bytes(sv_of(a), out);
    }
}

static void big_endian(u8 *out, u128 value) {
    for (i32 i = 15; i >= 0; i--) {
        out[i] = (u8)value;
        value >>= 8;
    }
}

void mt_order_bytes(struct made *made, i128 a, i128 b, u8 *f) {
    u8 *out = made_room(made, 32, f);
    if (out) {
        big_endian(out, (u128)a ^ (u128)1 << 127);
        big_endian(out + 16, (u128)b);
    }
}

void mt_parse_bytes(struct made *made, str a, u8 *f) {
    u8 *out = made_room(made, a.len, f);
    if (out) {
        u8 fault = value_parse_bytes(sv_of(a), out, &made->len);
        made->len = fault ? 0 : made->len;
        *f = fault ? fault : *f;
    }
}

i128 fn_parse_dec(str a, i32 scale, u8 *f) {
    i128 value = 0;
    u8 fault = value_parse_dec(sv_of(a), scale, &value);
    *f = fault ? fault : *f;
    return value;
}

i64 mk_upper_size(str a) {
    return case_upper_bytes(sv_of(a));
}

void mk_upper_write(u8 *out, str a) {
    case_upper_write(out, sv_of(a));
}

i64 mk_lower_size(str a) {
    return case_lower_bytes(sv_of(a));
}

void mk_lower_write(u8 *out, str a) {
    case_lower_write(out, sv_of(a));
}

i64 mk_concat_size(str a, str b) {
    return fn_concat_size(a, b);
}

void mk_concat_write(u8 *out, str a, str b) {
    fn_concat_write(out, a, b);
}

i64 mk_i64_size(i64 a) {
    return fn_i64_size(a);
}

void mk_i64_write(u8 *out, i64 a) {
    fn_i64_write(out, a);
}

#define FORMAT(name, k)                        \
    i64 mk_##name##_size(k a) {                \
        char buf[VALUE_TEXT_MAX];              \
        return value_format_##name(a, buf);    \
    }                                          \
    void mk_##name##_write(u8 *out, k a) {     \
        char buf[VALUE_TEXT_MAX];              \
        i32 len = value_format_##name(a, buf); \
        memcpy(out, buf, (size_t)len);         \
    }
FORMAT(f32, f32)
FORMAT(f64, f64)
FORMAT(date, i32)
#undef FORMAT

i64 mk_boolean_size(b8 a) {
    return fn_boolean_size(a);
}

void mk_boolean_write(u8 *out, b8 a) {
    fn_boolean_write(out, a);
}

i64 mk_dec_size(i128 a, i32 scale) {
    char buf[64];
    return value_format_dec(a, scale, buf);
}

void mk_dec_write(u8 *out, i128 a, i32 scale) {
    char buf[64];
    i32 len = value_format_dec(a, scale, buf);
    memcpy(out, buf, (size_t)len);
}
