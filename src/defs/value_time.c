/* value_time.c: dates, times and timestamps as text. How they are read: value_moment.c. */
#include "defs/value.h"
#include "base/zone.h"

#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"

static i32 write_padded(i64 value, i32 width, char *out) {
    char digits[24];
    i32 count = value_format_i64(value, digits);
    i32 zeros = MAX_OF(width - count, 0);
    memset(out, '0', (size_t)zeros);
    memcpy(out + zeros, digits, (size_t)count);
    return zeros + count;
}

i32 value_format_clock(i64 us, i32 hour_width, char *out) {
    i32 n = write_padded(us / HOUR_US, hour_width, out);
    out[n++] = ':';
    n += write_padded(us / MINUTE_US % 60, 2, out + n);
    out[n++] = ':';
    n += write_padded(us / SECOND_US % 60, 2, out + n);
    if (us % SECOND_US) {
        out[n++] = '.';
        n += write_padded(us % SECOND_US, 6, out + n);
        while (out[n - 1] == '0') {
            n--;
        }
    }
    return n;
}

static i32 write_day(i32 date, char *out, bool *out_bc) {
    fn_civil c = fn_civil_of(date);
    *out_bc = c.year < 1;
    i32 n = write_padded(*out_bc ? 1 - c.year : c.year, 4, out);
    out[n++] = '-';
    n += write_padded(c.month, 2, out + n);
    out[n++] = '-';
    return n + write_padded(c.day, 2, out + n);
}

static i32 write_infinity(bool negative, char *out) {
    memcpy(out, negative ? "-infinity" : "infinity", negative ? 9 : 8);
    return negative ? 9 : 8;
}

i32 value_format_date(i32 value, char *out) {
    bool bc;
    if (fn_date_infinite(value)) {
        return write_infinity(value < 0, out);
    }
    i32 n = write_day(value, out, &bc);
    memcpy(out + n, " BC", bc ? 3 : 0);
    return n + (bc ? 3 : 0);
}

i32 value_format_time(i64 value, char *out) {
    return value_format_clock(value, 2, out);
}

static i32 write_zone(i32 zone, char *out) {
    i32 n = 0;
    i32 size = zone < 0 ? -zone : zone;
    out[n++] = zone < 0 ? '-' : '+';
    n += write_padded(size / 3600, 2, out + n);
    for (i32 rest = size % 3600, unit = 60; rest; rest %= unit, unit = 1) {
        out[n++] = ':';
        n += write_padded(rest / unit, 2, out + n);
    }
    return n;
}

static i32 write_timestamp(i64 value, const i32 *zone, char *out) {
    bool bc;
    if (fn_ts_infinite(value)) {
        return write_infinity(value < 0, out);
    }
    i32 east = zone ? zone_offset(*zone, fn_floor_div(value, SECOND_US)) : 0;
    value += east * SECOND_US;
    i64 day = fn_floor_div(value, DAY_US);
    i32 n = write_day((i32)day, out, &bc);
    out[n++] = ' ';
    n += value_format_clock(value - day * DAY_US, 2, out + n);
    n += zone ? write_zone(east, out + n) : 0;
    memcpy(out + n, " BC", bc ? 3 : 0);
    return n + (bc ? 3 : 0);
}

i32 value_format_timestamp(i64 value, char *out) {
    return write_timestamp(value, NULL, out);
}

i32 value_format_timestamptz(i64 value, i32 zone, char *out) {
    return write_timestamp(value, &zone, out);
}
