/* value.c: numbers, booleans and UUIDs to text and back: fn_parse.h, fn_parse_real.h, fn_format.h and
 * fn_shortest.h for the host. This is COPY's inner loop. */
#include "defs/value.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_time.h"
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"
#include "defs/fn_format.h"
#include "defs/pow10_table.h"
#include "defs/fn_shortest.h"
#include "defs/fn_parse.h"
#include "defs/fn_fround.h"
#include "defs/fn_variance.h"
#include "defs/fn_parse_real.h"

#define BYTES_OF(s) (const u8 *)(s).ptr, (const u8 *)(s).ptr + (s).len

u8 value_parse_int(struct sv s, i64 *out) {
    return fn_read_int(BYTES_OF(s), out);
}

u8 value_parse_dec(struct sv s, i32 scale, i128 *out) {
    return fn_read_dec(BYTES_OF(s), scale, out);
}

u8 value_parse_bool(struct sv s, b8 *out) {
    return fn_read_bool(BYTES_OF(s), out);
}

u8 value_parse_uuid(struct sv s, i128 *out) {
    return fn_read_uuid(BYTES_OF(s), out);
}

u8 value_parse_f64(struct sv s, f64 *out) {
    return fn_read_f64(BYTES_OF(s), out);
}

u8 value_parse_f32(struct sv s, f32 *out) {
    return fn_read_f32(BYTES_OF(s), out);
}

i32 value_format_i64(i64 value, char *out) {
    return (i32)fn_i64_text((u8 *)out, value);
}

i32 value_format_dec(i128 value, i32 scale, char *out) {
    return (i32)fn_dec_text((u8 *)out, value, scale);
}

i32 value_format_bool(b8 value, char *out) {
    return (i32)fn_bool_text((u8 *)out, value);
}

i32 value_format_f64(f64 value, char *out) {
    return (i32)fn_f64_text((u8 *)out, value);
}

i32 value_format_f32(f32 value, char *out) {
    return (i32)fn_f32_text((u8 *)out, value);
}
