/* bodies.c: the CPU-only opcodes: text to values, values to text.
 *
 * Thin coats over value.h, in the form op.def's expansions call. On the GPU they are reached
 * through lookup tables that the CPU fills once per dictionary entry. */
#include "host/bodies.h"

#include "defs/types.h"
#include "defs/value.h"
#include "host/chars.h"

#include "defs/host_words.h"
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"

i32 fn_parse_zone(str a, u8 *f) {
    i32 value = 0;
    u8 fault = value_parse_zone(sv_of(a), &value);
    *f = fault ? fault : *f;
    return value;
}

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

void mt_timestamptz(struct made *made, i64 a, i32 b, u8 *f) {
    char *out = (char *)made_room(made, VALUE_TEXT_MAX, f);
    if (out) {
        made->len = value_format_timestamptz(a, b, out);
    }
}

