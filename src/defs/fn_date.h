/* fn_date.h: the calendar. Kernel text (see fn_int.h).
 *
 * A date is days since 1970-01-01 in the proleptic Gregorian calendar, from Julian day 0 to the end
 * of year 5874897, as in PostgreSQL. Years are counted from March of year -4800, so that leap days
 * end a year and nothing is negative. */
#ifndef WF_DEFS_FN_DATE_H
#define WF_DEFS_FN_DATE_H

#define DATE_MIN (-2440588)
#define DATE_MAX 2145042905
#define DATE_EPOCH 2472632u /* days from -4800-03-01 to 1970-01-01 */

typedef struct fn_civil {
    i32 year; /* 0 is 1 BC */
    i32 month;
    i32 day;
} fn_civil;

/* Centuries have 36524.25 days, their years 365.25, months from March (153 / 5) days; each division
 * is by a constant, exact in 32 bits or as the high half of a 64-bit product. */
FN fn_civil fn_civil_of(i32 date) {
    u32 n = (u32)date + DATE_EPOCH;
    u32 era = n / 146097u;
    u32 in_era = (n - era * 146097u) * 4u + 3u;
    u32 century = in_era / 146097u;
    u32 in_century = (in_era - century * 146097u) | 3u;
    u64 year_product = 2939745ULL * in_century; /* 2^32 / 1461, rounded up */
    u32 year = (u32)(year_product >> 32);
    u32 in_year = (u32)year_product / 2939745u / 4u;
    u32 month_product = 2141u * in_year + 197913u; /* 65536 * 5 / 153 */
    u32 month = month_product >> 16;
    u32 next = (u32)(in_year >= 306u); /* January and February belong to the next year */
    fn_civil r;
    r.year = (i32)(era * 400u + century * 100u + year + next) - 4800;
    r.month = (i32)(next ? month - 12u : month);
    r.day = (i32)((month_product & 65535u) / 2141u) + 1;
    return r;
}

/* Inverse for years from -4800; month 1 to 12. A day past the month's end runs into the next month.
 */
FN i32 fn_days(i32 year, i32 month, i32 day) {
    u32 early = (u32)(month <= 2);
    u32 y = (u32)(year + 4800) - early;
    u32 m = (u32)month + early * 12u;
    u32 century = y / 100u;
    u32 n = y * 365u + y / 4u - century + century / 4u + (979u * m - 2919u) / 32u + (u32)day - 1u;
    return (i32)(n - DATE_EPOCH);
}

FN i32 fn_year(i32 date) { /* there is no year 0: 1 BC is -1 */
    i32 year = fn_civil_of(date).year;
    return year > 0 ? year : year - 1;
}

FN i32 fn_month(i32 date) {
    return fn_civil_of(date).month;
}

FN i32 fn_day(i32 date) {
    return fn_civil_of(date).day;
}

#endif
