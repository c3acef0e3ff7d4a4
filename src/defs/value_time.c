/* value_time.c: dates, times and timestamps as text (fn_format.h). How they are read: value_moment.c. */
#include "defs/value.h"
#include "base/zone.h"

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
#include "defs/fn_zone.h"

i32 zone_offset_local(i32 zone, i64 local) {
    if (zone >= ZONE_WORDS) {
        return zone_offset(zone, local - zone_offset_local(zone_of_word(zone), local));
    }
    if (!zone_is_named(zone)) {
        return zone;
    }
    local = fn_zone_cycle(local);
    i64 from = local - ZONE_DAY;
    i32 before = zone_offset(zone, from);
    i32 after = before;
    i64 change = zone_next(zone, from, &after);
    return fn_zone_choose(local, before, after, change);
}

i32 value_format_date(i32 value, char *out) {
    return (i32)fn_date_text((u8 *)out, value);
}

i32 value_format_time(i64 value, char *out) {
    return (i32)fn_time_text((u8 *)out, value);
}

i32 value_format_timestamp(i64 value, char *out) {
    return (i32)fn_ts_text((u8 *)out, value);
}

i32 value_format_timestamptz(i64 value, i32 zone, char *out) {
    i32 east = fn_ts_infinite(value) ? 0 : zone_offset(zone, fn_floor_div(value, SECOND_US));
    return (i32)fn_moment_text((u8 *)out, value, 1, east);
}

i32 value_format_interval(i128 value, char *out) {
    return (i32)fn_iv_text((u8 *)out, value);
}

i32 value_format_uuid(i128 value, char *out) {
    return (i32)fn_uuid_text((u8 *)out, value);
}

void value_format_bytes(struct sv s, char *out) {
    (void)fn_hex_bytes((u8 *)out, str_from(s));
}
