/* value.h: text to values and back: one implementation for casts, literals and COPY. Host only.
 *
 * A parser returns a fault number, 0 when it succeeded, and leaves *out alone otherwise. Spaces
 * around the value are allowed, as in PostgreSQL. A formatter writes at most VALUE_TEXT_MAX (96)
 * bytes, no NUL, and returns how many. value_parse and value_print (types.h) choose among them by
 * type. */
#ifndef WF_DEFS_VALUE_H
#define WF_DEFS_VALUE_H

#include "base/base.h"
#include "defs/fault.h"
#include "defs/types.h"

/* Stands for NULL where QUOTE_NAME is to make it an error: no text holds this byte. */
#define NO_NAME "\xff"

/* FAULT_TEXT_INT, or FAULT_BIGINT when it needs more than 64 bits; the caller checks narrower
 * types. */
u8 value_parse_int(struct sv s, i64 *out);
/* A decimal times 10^scale, half away from zero; exponents are read. FAULT_TEXT_NUM; FAULT_DECIMAL
 * when the result has more than 38 digits or is NaN or infinite. */
u8 value_parse_dec(struct sv s, i32 scale, i128 *out);
/* Correctly rounded. FAULT_TEXT_NUM, FAULT_FLOAT_OVERFLOW, FAULT_FLOAT_UNDERFLOW (not 0, but rounds
 * to 0). */
u8 value_parse_f32(struct sv s, f32 *out);
u8 value_parse_f64(struct sv s, f64 *out);
/* true, false, yes, no, on, off and their unique beginnings, 1, 0. FAULT_TEXT_BOOL. */
u8 value_parse_bool(struct sv s, b8 *out);
/* Days since 1970-01-01. Reads 1999-01-08, 19990108, 1/8/1999, January 8, 1999, 8 Jan 1999, 1999.008,
 * J2451187, today, with BC, infinity, and drops a time of day. FAULT_TEXT_DATE, or FAULT_DATE_RANGE
 * when a field does not exist in the calendar. */
u8 value_parse_date(struct sv s, struct when when, i32 *out);
/* Microseconds since 1970-01-01 00:00, of the day, … as fn_time.h has them. A zone in the text of a
 * timestamp is dropped. */
u8 value_parse_timestamp(struct sv s, struct when when, i64 *out);
u8 value_parse_timestamptz(struct sv s, struct when when, i64 *out);
u8 value_parse_time(struct sv s, struct when when, i64 *out);
/* Whether the text of a date or time may mean another one later: now, today and its neighbours. */
bool value_names_clock(struct sv s);
u8 value_parse_interval(struct sv s, i32 fields,
                        i128 *out); /* fields: the grammar's bits, 0 = all */
/* A zone as SET TimeZone and AT TIME ZONE take it: UTC, an abbreviation, or an offset in which, as
 * POSIX has it, west is positive. FAULT_ZONE. */
u8 value_parse_zone(struct sv s, i32 *out_seconds_east);
/* Seconds east of Greenwich at a moment given as a zone's clocks show it, in seconds (base/zone.h). */
i32 zone_offset_local(i32 zone, i64 local);
u8 value_parse_uuid(struct sv s, i128 *out);
u8 value_parse_bytes(struct sv s, u8 *out, i64 *out_len); /* bytea; out holds s.len bytes */

i32 value_format_i64(i64 value, char *out);
i32 value_format_dec(i128 value, i32 scale, char *out); /* exactly `scale` digits after the point */
i32 value_format_f32(f32 value, char *out);             /* shortest that reads back */
i32 value_format_f64(f64 value, char *out);
i32 value_format_date(i32 value, char *out); /* 1999-01-08, 0044-03-15 BC */
i32 value_format_bool(b8 value, char *out);  /* true, false */
i32 value_format_timestamp(i64 value, char *out);
i32 value_format_timestamptz(i64 value, i32 zone, char *out);
i32 value_format_time(i64 value, char *out);
i32 value_format_interval(i128 value, char *out);
i128 value_interval_order(i128 value); /* its length: the same for intervals that are equal */
i32 value_format_uuid(i128 value, char *out);
void value_format_bytes(struct sv s, char *out); /* 2 + 2 * s.len bytes */

#endif
