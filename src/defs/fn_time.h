/* fn_time.h: timestamps, times of day and intervals. Kernel text (see fn_int.h); needs fn_date.h.
 *
 * A timestamp is microseconds since 1970-01-01 00:00, a time microseconds since midnight; the least
 * and the greatest 64-bit number are the infinities, as the 32-bit ones are of dates.
 *
 * An interval is months, days and microseconds in one 128-bit number that orders as PostgreSQL
 * orders intervals: days in all (a month is 30) : 35 bits, microseconds of the last day : 37, then
 * months : 28 and the whole days in the microseconds : 28, both biased. Equality, sorting and
 * hashing look at the upper 72 bits (fn_iv_order); min and max may take the number as it is. */
#ifndef WF_DEFS_FN_TIME_H
#define WF_DEFS_FN_TIME_H

#define DAY_US 86400000000LL
#define HOUR_US 3600000000LL
#define MINUTE_US 60000000LL
#define SECOND_US 1000000LL
#define DATE_NEG_INF (-2147483647 - 1)
#define DATE_INF 2147483647
#define TS_NEG_INF (-9223372036854775807LL - 1)
#define TS_INF 9223372036854775807LL
#define TS_MIN (-210866803200000000LL) /* 4714-11-24 BC */
#define TS_MAX 9223371244799999999LL   /* the end of the year 294246 */
#define IV_BIAS 134217728LL            /* 2^27 */
#define IV_MONTHS_MAX 134217727LL

/* Fields of EXTRACT and date_trunc; names are in typing/time.c. */
#define FIELD_MICROSECOND 0
#define FIELD_MILLISECOND 1
#define FIELD_SECOND 2
#define FIELD_MINUTE 3
#define FIELD_HOUR 4
#define FIELD_DAY 5
#define FIELD_WEEK 6
#define FIELD_MONTH 7
#define FIELD_QUARTER 8
#define FIELD_YEAR 9
#define FIELD_DECADE 10
#define FIELD_CENTURY 11
#define FIELD_MILLENNIUM 12
#define FIELD_EPOCH 13
#define FIELD_DOW 14
#define FIELD_ISODOW 15
#define FIELD_DOY 16
#define FIELD_ISOYEAR 17
#define FIELD_JULIAN 18
#define FIELD_COUNT 19

typedef struct fn_span {
    i32 months;
    i32 days;
    i64 us;
} fn_span;

FN i64 fn_floor_div(i64 a, i64 b) { /* b > 0 */
    i64 q = a / b;
    return q - (i64)(a % b < 0);
}

FN b8 fn_ts_infinite(i64 a) {
    return (b8)((a == TS_INF) | (a == TS_NEG_INF));
}

FN b8 fn_date_infinite(i32 a) {
    return (b8)((a == DATE_INF) | (a == DATE_NEG_INF));
}

FN i64 fn_ts_check(i128 a, u8 *f) {
    b8 fits = (b8)((a >= TS_MIN) & (a <= TS_MAX));
    *f = (u8)(fits ? *f : FAULT_TS_RANGE);
    return fits ? (i64)a : 0;
}

FN i64 fn_only_ts(i64 a, u8 *f) {
    *f = (u8)(fn_ts_infinite(a) ? FAULT_INFINITE_FIELD : *f);
    return fn_ts_infinite(a) ? 0 : a;
}

FN i32 fn_only_date(i32 a, u8 *f) {
    *f = (u8)(fn_date_infinite(a) ? FAULT_INFINITE_FIELD : *f);
    return fn_date_infinite(a) ? 0 : a;
}

FN i32 fn_raise(i32 a, u8 *f) {
    *f = (u8)a;
    return 0;
}

FN i32 fn_month_days(i32 year, i32 month) {
    b8 leap = (b8)((year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)));
    return month == 2 ? 28 + leap : 30 + ((month + (month >> 3)) & 1);
}

/* Since midnight; that of the least number is below what 64 bits hold. */
FN i64 fn_in_day(i64 us) {
    return (i64)((u64)us - (u64)fn_floor_div(us, DAY_US) * (u64)DAY_US);
}

/* intervals */

FN i128 fn_iv(i64 months, i64 days, i64 us, u8 *f) {
    b8 fits = (b8)((months >= -IV_MONTHS_MAX) & (months <= IV_MONTHS_MAX) &
                   (days >= -2147483648LL) & (days <= 2147483647LL));
    i64 m = fits ? months : 0;
    i64 whole = fn_floor_div(us, DAY_US);
    i64 in_day = fn_in_day(us);
    i64 all_days = 30 * m + (fits ? days : 0) + whole;
    *f = (u8)(fits ? *f : FAULT_INTERVAL_RANGE);
    return (i128)((u128)(i128)all_days << 93 | (u128)(u64)in_day << 56 |
                  (u128)(u64)(m + IV_BIAS) << 28 | (u128)(u64)(whole + IV_BIAS));
}

FN fn_span fn_iv_parts(i128 a) {
    i64 whole = (i64)(a & 0xfffffff) - IV_BIAS;
    i64 months = (i64)((a >> 28) & 0xfffffff) - IV_BIAS;
    i64 in_day = (i64)((a >> 56) & 0x1fffffffffLL);
    fn_span r;
    r.months = (i32)months;
    r.days = (i32)((i64)(a >> 93) - 30 * months - whole);
    r.us = (i64)((u64)whole * (u64)DAY_US + (u64)in_day);
    return r;
}

FN i128 fn_iv_order(i128 a) {
    return a >> 56;
}

FN i64 fn_us_check(i128 us, u8 *f) {
    b8 fits = (b8)((us >= -(i128)TS_INF - 1) & (us <= (i128)TS_INF));
    *f = (u8)(fits ? *f : FAULT_INTERVAL_RANGE);
    return fits ? (i64)us : 0;
}

FN_SLOW i128 fn_iv_sum(i128 a, i128 b, i32 sign, u8 *f) {
    fn_span x = fn_iv_parts(a);
    fn_span y = fn_iv_parts(b);
    i64 us = fn_us_check((i128)x.us + (i128)sign * y.us, f);
    return fn_iv((i64)x.months + (i64)sign * y.months, (i64)x.days + (i64)sign * y.days, us, f);
}

FN_SLOW i128 fn_iv_neg(i128 a, u8 *f) {
    fn_span x = fn_iv_parts(a);
    return fn_iv(-(i64)x.months, -(i64)x.days, fn_us_check(-(i128)x.us, f), f);
}

/* Half to even; |a| below 2^51. */
FN f64 fn_rint_small(f64 a) {
    f64 big = a < 0 ? -4503599627370496.0 : 4503599627370496.0;
    return ((a < 4503599627370496.0) & (a > -4503599627370496.0)) ? (a + big) - big : a;
}

FN f64 fn_us_round(f64 a) { /* to microseconds */
    return fn_rint_small(a * 1000000.0) / 1000000.0;
}

FN f64 fn_trunc_small(f64 a) { /* |a| below 2^62 */
    return (f64)(i64)a;
}

/* From months, days and microseconds that were multiplied or divided: fractions move down. */
FN_SLOW i128 fn_iv_scaled(f64 months, f64 days, f64 us, u8 *f) {
    b8 fits = (b8)((months < 2.0e9) & (months > -2.0e9) & (days <= 2147483647.0) &
                   (days >= -2147483648.0));
    f64 m = fits ? months : 0.0;
    f64 d = fits ? days : 0.0;
    f64 whole_m = fn_trunc_small(m);
    f64 whole_d = fn_trunc_small(d);
    f64 month_days = fn_us_round((m - whole_m) * 30.0);
    f64 rest_s = fn_us_round((d - whole_d + month_days - fn_trunc_small(month_days)) * 86400.0);
    f64 more_days =
        ((rest_s >= 86400.0) | (rest_s <= -86400.0)) ? fn_trunc_small(rest_s / 86400.0) : 0.0;
    rest_s -= more_days * 86400.0;
    f64 total = fn_rint_small(us + rest_s * 1000000.0);
    b8 us_fits = (b8)((total < 9223372036854775808.0) & (total >= -9223372036854775808.0));
    *f = (u8)(fits & us_fits ? *f : FAULT_INTERVAL_RANGE);
    total = us_fits ? total : 0.0;
    i64 all_days = (i64)whole_d + (i64)fn_trunc_small(month_days) + (i64)more_days;
    return fn_iv((i64)whole_m, all_days, (i64)total, f);
}

FN i128 fn_iv_mul(i128 a, f64 b, u8 *f) {
    fn_span x = fn_iv_parts(a);
    return fn_iv_scaled((f64)x.months * b, (f64)x.days * b, (f64)x.us * b, f);
}

FN i128 fn_iv_div(i128 a, f64 b, u8 *f) {
    fn_span x = fn_iv_parts(a);
    f64 d = b == 0.0 ? 1.0 : b;
    i128 r = fn_iv_scaled((f64)x.months / d, (f64)x.days / d, (f64)x.us / d, f);
    *f = (u8)(b == 0.0 ? FAULT_DIV0 : *f);
    return r;
}

FN_SLOW i128 fn_justify(i128 a, i32 hours, i32 days, u8 *f) {
    fn_span x = fn_iv_parts(a);
    i64 m = x.months;
    i64 d = x.days;
    i64 us = x.us;
    if (hours) {
        d += us / DAY_US;
        us %= DAY_US;
    }
    if (days) {
        m += d / 30;
        d %= 30;
        b8 rest_neg = (b8)((d < 0) | ((d == 0) & (us < 0) & hours));
        b8 rest_pos = (b8)((d > 0) | ((d == 0) & (us > 0) & hours));
        i64 fix = (m > 0) & rest_neg ? 1 : (m < 0) & rest_pos ? -1 : 0;
        d += 30 * fix;
        m -= fix;
    }
    if (hours) {
        i64 fix = ((d > 0) & (us < 0)) ? 1 : ((d < 0) & (us > 0)) ? -1 : 0;
        us += DAY_US * fix;
        d -= fix;
    }
    return fn_iv(m, d, us, f);
}

FN i128 fn_iv_of_time(i64 us) {
    u8 none = 0;
    return fn_iv(0, 0, us, &none);
}

FN i64 fn_time_of_iv(i128 a) {
    i64 us = fn_iv_parts(a).us;
    return fn_in_day(us);
}

FN i64 fn_time_shift(i64 a, i128 b, i32 sign) {
    i64 us = a + (i64)sign * (fn_iv_parts(b).us % DAY_US);
    return fn_in_day(us);
}

/* dates and timestamps */

FN i64 fn_ts_of_date(i32 a, i32 zone, u8 *f) {
    i64 r = a == DATE_INF ? TS_INF : TS_NEG_INF;
    return fn_date_infinite(a) ? r : fn_ts_check((i128)a * DAY_US - (i64)zone * SECOND_US, f);
}

/* The same to compare: a date beyond all timestamps is beyond them, and before infinity. */
FN i64 fn_ts_moment(i32 a, i32 zone) {
    i64 r = a == DATE_INF ? TS_INF : TS_NEG_INF;
    i128 us = (i128)a * DAY_US - (i64)zone * SECOND_US;
    i64 cut = us > TS_MAX ? TS_MAX + 1 : us < TS_MIN ? TS_MIN - 1 : (i64)us;
    return fn_date_infinite(a) ? r : cut;
}

FN i32 fn_date_of_ts(i64 a, i32 zone) {
    i32 r = a == TS_INF ? DATE_INF : DATE_NEG_INF;
    b8 infinite = fn_ts_infinite(a);
    return infinite ? r : (i32)fn_floor_div((infinite ? 0 : a) + (i64)zone * SECOND_US, DAY_US);
}

FN i64 fn_time_of_ts(i64 a, i32 zone, u8 *f) {
    b8 infinite = fn_ts_infinite(a);
    i64 us = (infinite ? 0 : a) + (i64)zone * SECOND_US;
    *f = (u8)(infinite ? FAULT_TS_RANGE : *f);
    return fn_in_day(us);
}

/* To another zone: b seconds further east. */
FN i64 fn_ts_zone(i64 a, i32 b, u8 *f) {
    return fn_ts_infinite(a) ? a : fn_ts_check((i128)a + (i64)b * SECOND_US, f);
}

/* The same by an interval's seconds, further east or west. */
FN i64 fn_ts_zone_iv(i64 a, i128 b, i32 sign, u8 *f) {
    fn_span x = fn_iv_parts(b);
    b8 infinite = fn_ts_infinite(a);
    i64 whole = x.us / SECOND_US * SECOND_US;
    u8 range = 0;
    i64 r = fn_ts_check((i128)(infinite ? 0 : a) + (i128)sign * whole, &range);
    u8 fault = (u8)(((x.months != 0) | (x.days != 0)) ? FAULT_ZONE_DAYS : range);
    *f = (u8)(!infinite & (fault != 0) ? fault : *f);
    return infinite ? a : r;
}

FN i32 fn_date_shift(i32 a, i64 b, u8 *f) {
    b8 infinite = fn_date_infinite(a);
    i64 r = (i64)a + b;
    b8 fits = (b8)((r >= DATE_MIN) & (r <= DATE_MAX));
    *f = (u8)(fits | infinite ? *f : FAULT_DATE_RANGE);
    return infinite ? a : fits ? (i32)r : 0;
}

FN i32 fn_date_gap(i32 a, i32 b, u8 *f) {
    i64 r = (i64)a - b;
    *f = (u8)(fn_date_infinite(a) | fn_date_infinite(b) ? FAULT_INFINITE : *f);
    *f = (u8)(((r < -2147483648LL) | (r > 2147483647LL)) ? FAULT_DATE_RANGE : *f);
    return (i32)r;
}

FN i128 fn_ts_gap(i64 a, i64 b, u8 *f) {
    b8 infinite = (b8)(fn_ts_infinite(a) | fn_ts_infinite(b));
    i128 us = infinite ? (i128)0 : (i128)a - b;
    *f = (u8)(infinite ? FAULT_INFINITE : *f);
    i64 fits = fn_us_check(us, f);
    return fn_iv(0, fits / DAY_US, fits % DAY_US, f);
}

FN_SLOW i64 fn_ts_shift(i64 a, i128 b, i32 zone, i32 sign, u8 *f) {
    if (fn_ts_infinite(a)) {
        return a;
    }
    fn_span x = fn_iv_parts(b);
    i64 local = a + (i64)zone * SECOND_US;
    i64 day = fn_floor_div(local, DAY_US);
    i64 in_day = local - day * DAY_US;
    if (x.months) {
        fn_civil c = fn_civil_of((i32)day);
        i64 months = (i64)c.year * 12 + (c.month - 1) + (i64)sign * x.months;
        i64 year = fn_floor_div(months, 12);
        i32 month = (i32)(months - year * 12) + 1;
        if ((year < -4713) | (year > 300000)) {
            *f = FAULT_TS_RANGE;
            return 0;
        }
        i32 last = fn_month_days((i32)year, month);
        day = fn_days((i32)year, month, c.day < last ? c.day : last);
    }
    day += (i64)sign * x.days;
    return fn_ts_check((i128)day * DAY_US + in_day + (i128)sign * x.us - (i64)zone * SECOND_US, f);
}

FN_SLOW i64 fn_date_iv(i32 a, i128 b, i32 sign, u8 *f) {
    return fn_ts_shift(fn_ts_of_date(a, 0, f), b, 0, sign, f);
}

FN i64 fn_date_time(i32 a, i64 b, u8 *f) {
    i64 r = fn_ts_of_date(a, 0, f);
    return fn_ts_infinite(r) ? r : fn_ts_check((i128)r + b, f);
}

/* Years, months, days and time from b to a, as one counts on a calendar. */
FN_SLOW i128 fn_age(i64 a, i64 b, i32 zone, u8 *f) {
    if (fn_ts_infinite(a) | fn_ts_infinite(b)) {
        *f = FAULT_INFINITE;
        return fn_iv_of_time(0);
    }
    b8 back = (b8)(a < b);
    i64 late = (back ? b : a) + (i64)zone * SECOND_US;
    i64 early = (back ? a : b) + (i64)zone * SECOND_US;
    i64 late_day = fn_floor_div(late, DAY_US);
    i64 early_day = fn_floor_div(early, DAY_US);
    fn_civil x = fn_civil_of((i32)late_day);
    fn_civil y = fn_civil_of((i32)early_day);
    i64 us = (late - late_day * DAY_US) - (early - early_day * DAY_US);
    i64 days = x.day - y.day;
    i64 months = ((i64)x.year - y.year) * 12 + x.month - y.month;
    days -= (i64)(us < 0);
    us += us < 0 ? DAY_US : 0;
    months -= (i64)(days < 0);
    days += days < 0 ? fn_month_days(y.year, y.month) : 0;
    return back ? fn_iv(-months, -days, -us, f) : fn_iv(months, days, us, f);
}

/* fields */

FN i32 fn_isodow(i32 date) { /* 1970-01-01 was a Thursday */
    i64 shifted = (i64)date + 3;
    return (i32)(shifted - fn_floor_div(shifted, 7) * 7) + 1;
}

FN i32 fn_isoyear(i32 date) {
    return fn_civil_of(date - fn_isodow(date) + 4).year;
}

FN i32 fn_isoweek(i32 date) {
    i32 thursday = date - fn_isodow(date) + 4;
    return (thursday - fn_days(fn_civil_of(thursday).year, 1, 1)) / 7 + 1;
}

FN i32 fn_era_year(i32 year, i32 unit) { /* decade, century or millennium a year lies in */
    if (unit == 10) {
        return year >= 0 ? year / 10 : -((8 - (year - 1)) / 10);
    }
    return year > 0 ? (year + unit - 1) / unit : -((unit - 1 - (year - 1)) / unit);
}

/* Fields of the day; -1 for those of the time. */
FN_SLOW i64 fn_part_date(i32 date, i32 field) {
    fn_civil c = fn_civil_of(date);
    i32 year = c.year;
    switch (field) {
    case FIELD_DAY:
        return c.day;
    case FIELD_WEEK:
        return fn_isoweek(date);
    case FIELD_MONTH:
        return c.month;
    case FIELD_QUARTER:
        return (c.month - 1) / 3 + 1;
    case FIELD_YEAR:
        return year > 0 ? year : year - 1;
    case FIELD_DECADE:
        return fn_era_year(year, 10);
    case FIELD_CENTURY:
        return fn_era_year(year, 100);
    case FIELD_MILLENNIUM:
        return fn_era_year(year, 1000);
    case FIELD_EPOCH:
        return (i64)date * 86400;
    case FIELD_DOW:
        return fn_isodow(date) % 7;
    case FIELD_ISODOW:
        return fn_isodow(date);
    case FIELD_DOY:
        return date - fn_days(year, 1, 1) + 1;
    case FIELD_ISOYEAR:
        year = fn_isoyear(date);
        return year > 0 ? year : year - 1;
    case FIELD_JULIAN:
        return (i64)date + 2440588;
    default:
        return -1;
    }
}

/* Fields of microseconds, whole or (second, millisecond) with their fraction as written in
 * microseconds: the type's scale says where the point is. */
FN i64 fn_part_us(i64 us, i32 field) {
    switch (field) {
    case FIELD_HOUR:
        return us / HOUR_US;
    case FIELD_MINUTE:
        return us / MINUTE_US % 60;
    case FIELD_EPOCH:
        return us;
    default: /* microseconds, milliseconds, seconds */
        return us % MINUTE_US;
    }
}

FN_SLOW i64 fn_part_ts(i64 a, i32 field, i32 zone) {
    i64 local = (fn_ts_infinite(a) ? 0 : a) + (i64)zone * SECOND_US;
    i64 day = fn_floor_div(local, DAY_US);
    if (field == FIELD_EPOCH) {
        return fn_ts_infinite(a) ? 0 : a;
    }
    return field <= FIELD_HOUR ? fn_part_us(local - day * DAY_US, field)
                               : fn_part_date((i32)day, field);
}

FN_SLOW i128 fn_part_iv(i128 a, i32 field) {
    fn_span x = fn_iv_parts(a);
    i32 years = x.months / 12;
    switch (field) {
    case FIELD_DAY:
        return x.days;
    case FIELD_MONTH:
        return x.months % 12;
    case FIELD_QUARTER:
        return x.months % 12 / 3 + 1;
    case FIELD_YEAR:
        return years;
    case FIELD_DECADE:
        return years / 10;
    case FIELD_CENTURY:
        return years / 100;
    case FIELD_MILLENNIUM:
        return years / 1000;
    case FIELD_EPOCH:
        return ((i128)years * 31557600 + (i128)(x.months % 12) * 2592000 + (i128)x.days * 86400) *
                   SECOND_US +
               x.us;
    default:
        return fn_part_us(x.us, field);
    }
}

/* The first day of the field's unit that holds the date. */
FN_SLOW i32 fn_trunc_date(i32 date, i32 field) {
    fn_civil c = fn_civil_of(date);
    i32 year = c.year;
    i32 month = 1;
    switch (field) {
    case FIELD_WEEK:
        return date - fn_isodow(date) + 1;
    case FIELD_MONTH:
        month = c.month;
        break;
    case FIELD_QUARTER:
        month = (c.month - 1) / 3 * 3 + 1;
        break;
    case FIELD_YEAR:
        break;
    case FIELD_DECADE:
        year = fn_era_year(year, 10) * 10;
        break;
    case FIELD_CENTURY:
        year = year > 0 ? fn_era_year(year, 100) * 100 - 99 : fn_era_year(year, 100) * 100 + 1;
        break;
    case FIELD_MILLENNIUM:
        year = year > 0 ? fn_era_year(year, 1000) * 1000 - 999 : fn_era_year(year, 1000) * 1000 + 1;
        break;
    default:
        return date;
    }
    return year < -4713 ? DATE_MIN - 1 : fn_days(year, month, 1);
}

FN i64 fn_field_us(i32 field) { /* length of the units below a day, 1 for others */
    return field == FIELD_MILLISECOND ? 1000
           : field == FIELD_SECOND    ? SECOND_US
           : field == FIELD_MINUTE    ? MINUTE_US
           : field == FIELD_HOUR      ? HOUR_US
                                      : 1;
}

FN_SLOW i64 fn_trunc_ts(i64 a, i32 field, i32 zone, u8 *f) {
    if (fn_ts_infinite(a)) {
        return a;
    }
    i64 local = a + (i64)zone * SECOND_US;
    i64 unit = field < FIELD_DAY ? fn_field_us(field) : DAY_US;
    i64 low = fn_floor_div(local, unit) * unit;
    if (field > FIELD_DAY) {
        low = (i64)fn_trunc_date((i32)(low / DAY_US), field) * DAY_US;
    }
    return fn_ts_check((i128)low - (i64)zone * SECOND_US, f);
}

FN_SLOW i128 fn_trunc_iv(i128 a, i32 field, u8 *f) {
    fn_span x = fn_iv_parts(a);
    i32 unit = field == FIELD_MILLENNIUM ? 12000
               : field == FIELD_CENTURY  ? 1200
               : field == FIELD_DECADE   ? 120
               : field == FIELD_YEAR     ? 12
               : field == FIELD_QUARTER  ? 3
                                         : 1;
    i64 us = field < FIELD_DAY ? x.us / fn_field_us(field) * fn_field_us(field) : 0;
    return fn_iv(x.months / unit * unit, field <= FIELD_DAY ? x.days : 0, us, f);
}

/* made from their parts */

FN b8 fn_date_exists(i64 year, i64 month, i64 day) {
    return (b8)((year >= -4712) & (year <= 5874897) & (month >= 1) & (month <= 12) & (day >= 1) &&
                day <= fn_month_days((i32)year, (i32)month));
}

FN_SLOW i32 fn_make_date(i32 year, i32 month, i32 day, u8 *f) { /* -1 is 1 BC */
    i64 y = year < 0 ? (i64)year + 1 : year;
    b8 fits = (b8)(year != 0 && fn_date_exists(y, month, day));
    *f = (u8)(fits ? *f : FAULT_FIELD_RANGE);
    return fits ? fn_days((i32)y, month, day) : 0;
}

FN_SLOW i64 fn_make_time(i32 hour, i32 minute, f64 second, u8 *f) {
    b8 fits = (b8)((hour >= 0) & (hour <= 24) & (minute >= 0) & (minute <= 59) & (second >= 0.0) &
                   (second <= 60.0));
    f64 us = fits ? fn_rint_small(second * 1000000.0) : 0.0;
    i64 r = hour * HOUR_US + minute * MINUTE_US + (i64)us;
    fits = (b8)(fits & (r <= DAY_US));
    *f = (u8)(fits ? *f : FAULT_FIELD_RANGE);
    return fits ? r : 0;
}

/* Microseconds rounded to b of them, half away from zero. */
FN i64 fn_round_us(i64 a, i64 b) {
    i64 r = a + (a < 0 ? -(b / 2) : b / 2);
    return fn_ts_infinite(a) ? a : r - r % b;
}

FN i128 fn_round_iv(i128 a, i64 b, u8 *f) {
    fn_span x = fn_iv_parts(a);
    return fn_iv(x.months, x.days, fn_round_us(x.us, b), f);
}

/* Seconds since 1970 to a timestamp. */
FN i64 fn_ts_of_epoch(f64 a, u8 *f) {
    b8 inf = (b8)((a > 1.7976931348623157e308) | (a < -1.7976931348623157e308));
    b8 fits = (b8)((a > -2.2e11) & (a < 9.3e12));
    f64 us = fits ? a * 1000000.0 : 0.0;
    *f = (u8)(fits | inf ? *f : FAULT_TS_RANGE);
    i64 r = a > 0 ? TS_INF : TS_NEG_INF;
    return inf ? r : fn_ts_check((i64)fn_rint_small(us), f);
}

FN i128 fn_iv_join(i128 order, i64 form) {
    return (i128)((u128)order << 56 | (u128)(u64)form);
}

/* The start of the bin that holds a; an infinity is in a bin of its own. */
FN_SLOW i64 fn_bin_ts(i128 width, i64 a, i64 origin, u8 *f) {
    fn_span w = fn_iv_parts(width);
    i128 us = (i128)w.days * DAY_US + w.us;
    if (fn_ts_infinite(a)) {
        return a;
    }
    if ((w.months != 0) | (us <= 0) | fn_ts_infinite(origin)) {
        *f = (u8)(w.months != 0 ? FAULT_BIN_MONTHS : us <= 0 ? FAULT_BIN_STRIDE : FAULT_TS_RANGE);
        return 0;
    }
    i128 behind = ((i128)a - origin) % us;
    return fn_ts_check((i128)a - behind - (behind < 0 ? us : 0), f);
}

#endif
