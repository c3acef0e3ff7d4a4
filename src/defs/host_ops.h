/* host_ops.h: bodies of the opcodes that exist on the CPU only: WF_OPS_HOST and WF_OPS_MAKE of
 * op.def.
 *
 * A parse body returns the value and sets *f to a fault number when there is none. A make body is a
 * pair: the size says how many bytes write will write, exactly. */
#ifndef WF_DEFS_HOST_OPS_H
#define WF_DEFS_HOST_OPS_H

#include "base/base.h"

i64 fn_parse_int(str a, u8 *f);
f32 fn_parse_f32(str a, u8 *f);
f64 fn_parse_f64(str a, u8 *f);
i128 fn_parse_dec(str a, i32 scale, u8 *f);
b8 fn_parse_bool(str a, u8 *f);
i32 fn_parse_date(str a, u8 *f);

i64 mk_upper_size(str a);
void mk_upper_write(u8 *out, str a);
i64 mk_lower_size(str a);
void mk_lower_write(u8 *out, str a);
i64 mk_concat_size(str a, str b);
void mk_concat_write(u8 *out, str a, str b);
i64 mk_i64_size(i64 a);
void mk_i64_write(u8 *out, i64 a);
i64 mk_dec_size(i128 a, i32 scale);
void mk_dec_write(u8 *out, i128 a, i32 scale);
i64 mk_f32_size(f32 a);
void mk_f32_write(u8 *out, f32 a);
i64 mk_f64_size(f64 a);
void mk_f64_write(u8 *out, f64 a);
i64 mk_date_size(i32 a);
void mk_date_write(u8 *out, i32 a);
i64 mk_boolean_size(b8 a);
void mk_boolean_write(u8 *out, b8 a);

#endif
