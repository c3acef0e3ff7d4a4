/* bodies.h: bodies of the opcodes that exist on the CPU only: WF_OPS_HOST and WF_OPS_TEXT of
 * op.def.
 *
 * A parse body returns the value and sets *f to a fault number when there is none. A text body
 * (WF_OPS_TEXT) asks for room, writes, and says how many bytes it used; when room is refused it returns
 * at once. */
#ifndef WF_HOST_BODIES_H
#define WF_HOST_BODIES_H

#include "base/base.h"
#include "codes/text_ops.h"

i32 fn_parse_date(str a, i32 zone, i64 now, u8 *f);

i64 fn_parse_timestamp(str a, i32 zone, i64 now, u8 *f);
i64 fn_parse_timestamptz(str a, i32 zone, i64 now, u8 *f);
i64 fn_parse_time(str a, i32 zone, i64 now, u8 *f);
i128 fn_parse_interval(str a, i32 fields, u8 *f);
i32 fn_parse_zone(str a, u8 *f);
/* Zones are those of base/zone.h, named ones too. */
i64 fn_ts_local(i64 a, i32 zone, u8 *f);
i64 fn_ts_global(i64 a, i32 zone, u8 *f);
i32 fn_to_date(str a, str format, u8 *f);
i64 fn_to_timestamp(str a, str format, i32 zone, u8 *f);
i128 fn_to_number(str a, str format, i32 scale, u8 *f);
/* decimal.c. `scales`: see SCALES_PACK. */
#define SCALES_PACK(first, second, result) ((first) | (second) << 8 | (result) << 16)
i128 fn_exp_dec(i128 a, i32 scales, u8 *f);
i128 fn_ln_dec(i128 a, i32 scales, u8 *f);
i128 fn_sqrt_dec(i128 a, i32 scales, u8 *f);
i128 fn_log_dec(i128 base, i128 a, i32 scales, u8 *f);
i128 fn_power_dec(i128 a, i128 b, i32 scales, u8 *f);
bool text_is_name(str a); /* it is a name without quotes */
/* A pattern may begin with options between two bytes 1: letters, then ;start;number;part;end. */
b8 fn_regex(str a, str b, u8 *f);
i32 fn_regex_count(str a, str b, u8 *f);
i32 fn_regex_instr(str a, str b, u8 *f);
str fn_regex_substr(str a, str b, u8 *f); /* a part of a; REGEX_INSTR says whether there is one */

struct made {
    u8 *(*room)(void *from, i64 bytes); /* NULL: refused */
    void *from;
    const u8 *bytes;
    i64 len;
    i64 asked; /* bytes refused; 0 = none were */
};
/* Room for the result, which is then at most `bytes` long; the body lowers made->len to what it
 * used. NULL when refused, or (FAULT_TEXT_SIZE) when no text may be that long. */
u8 *made_room(struct made *made, i64 bytes, u8 *f);

/* Bodies of WF_OPS_TEXT: codes/text_ops.h. */

#endif
