/* fn_moment.h: dates, times, timestamps and intervals from text, in the forms that files hold. Kernel
 * text (see fn_int.h); needs fn_parse.h and fn_time.h.
 *
 * ISO 8601: YYYY-MM-DD, hh:mm, hh:mm:ss, up to six digits of a fraction behind it, date and time with
 * a blank or T between them, and Z, +hh or +hh:mm behind that; of intervals PostgreSQL's own style:
 * 1 year 2 mons -3 days 04:05:06.7. A reader (fn_plain_…) gives 1 where the text is that and every
 * field exists, or else leaves it to those who read whatever PostgreSQL reads (value_moment.c,
 * value_interval.c). */
#ifndef WF_DEFS_FN_MOMENT_H
#define WF_DEFS_FN_MOMENT_H

FN u32 fn_two_digits(const u8 *p) { /* above 99: they are none */
    const u32 tens = (u32)p[0] - '0';
    const u32 ones = (u32)p[1] - '0';
    return (tens < 10u) & (ones < 10u) ? tens * 10 + ones : 100u;
}

FN b8 fn_plain_day(const u8 *p, i32 *out) { /* ten bytes */
    const u32 high = fn_two_digits(p);
    const u32 low = fn_two_digits(p + 2);
    const u32 month = fn_two_digits(p + 5);
    const u32 day = fn_two_digits(p + 8);
    const i32 year = (i32)(high * 100 + low);
    b8 fits = (b8)((high < 100u) & (low < 100u) & (p[4] == '-') & (p[7] == '-') & (year > 0) &
                   (month - 1 < 12u));
    if (!fits || day - 1 >= (u32)fn_month_days(year, (i32)month)) {
        return 0;
    }
    *out = fn_days(year, (i32)month, (i32)day);
    return 1;
}

/* Microseconds of the day, from p to the end. */
FN_SLOW b8 fn_plain_clock(const u8 *p, const u8 *end, i64 *out) {
    i64 us = 0;
    i64 unit = SECOND_US;
    if (end - p < 5 || end - p > 15 || p[2] != ':') {
        return 0;
    }
    const u32 hour = fn_two_digits(p);
    const u32 minute = fn_two_digits(p + 3);
    const b8 seconds = (b8)(end - p > 5);
    if (hour > 23 || minute > 59 || (seconds && (end - p < 8 || p[5] != ':'))) {
        return 0;
    }
    const u32 second = seconds ? fn_two_digits(p + 6) : 0;
    if (second > 59 || end - p == 9 || (end - p > 8 && p[8] != '.')) {
        return 0;
    }
    for (const u8 *q = p + 9; q < end; q++) {
        if (!fn_is_digit(*q)) {
            return 0;
        }
        unit /= 10;
        us += unit * (i64)(*q - '0');
    }
    *out = (i64)hour * HOUR_US + (i64)minute * MINUTE_US + (i64)second * SECOND_US + us;
    return 1;
}

FN b8 fn_plain_date(str a, i32 *out) {
    return (b8)(a.len == 10 && fn_plain_day(fn_str_ptr(a), out));
}

FN b8 fn_plain_time(str a, i64 *out) {
    return fn_plain_clock(fn_str_ptr(a), fn_str_ptr(a) + a.len, out);
}

/* Z, +hh, +hh:mm: seconds east of Greenwich. */
FN b8 fn_plain_offset(const u8 *p, const u8 *end, i32 *out) {
    if (end - p == 1) {
        *out = 0;
        return (b8)((*p | 32) == 'z');
    }
    if ((end - p != 3 && (end - p != 6 || p[3] != ':')) || (*p != '+' && *p != '-')) {
        return 0;
    }
    const u32 hours = fn_two_digits(p + 1);
    const u32 minutes = end - p == 6 ? fn_two_digits(p + 4) : 0;
    *out = (i32)(hours * 3600 + minutes * 60) * (*p == '-' ? -1 : 1);
    return (b8)((hours < 16u) & (minutes < 60u));
}

/* What clocks show, and how far they are from Greenwich where the text says so. */
FN_SLOW b8 fn_plain_moment(str a, i64 *out, b8 *zoned, i32 *east) {
    const u8 *p = fn_str_ptr(a);
    const u8 *end = p + a.len;
    i32 day = 0;
    i64 us = 0;
    *zoned = 0;
    if (a.len < 10 || !fn_plain_day(p, &day)) {
        return 0;
    }
    if (a.len > 10) {
        const u8 *stop = p + 11;
        while (stop < end && (fn_is_digit(*stop) || *stop == ':' || *stop == '.')) {
            stop++;
        }
        *zoned = (b8)(stop < end);
        if ((p[10] != ' ' && p[10] != 'T') || !fn_plain_clock(p + 11, stop, &us) ||
            (*zoned && !fn_plain_offset(stop, end, east))) {
            return 0;
        }
    }
    *out = (i64)day * DAY_US + us;
    return 1;
}

/* year, mon, day, with an s or without; months as well. Which it is, from 0; 3: none. */
FN u32 fn_plain_unit(const u8 *p, const u8 *end) {
    end -= end - p > 1 && end[-1] == 's';
    return fn_is_word(p, end, 0x72616579ULL)     ? 0u
           : fn_is_word(p, end, 0x6e6f6dULL)     ? 1u
           : fn_is_word(p, end, 0x68746e6f6dULL) ? 1u
           : fn_is_word(p, end, 0x796164ULL)     ? 2u
                                                 : 3u;
}

FN const u8 *fn_word_end(const u8 *p, const u8 *end) {
    while (p < end && *p != ' ') {
        p++;
    }
    return p;
}

FN_SLOW b8 fn_plain_interval(str a, i128 *out) {
    const u8 *p = fn_str_ptr(a);
    const u8 *end = p + a.len;
    i64 counts[4] = {0, 0, 0, 0}; /* years, months, days, microseconds */
    u32 given = 0;
    while (p < end) {
        const u8 *stop = fn_word_end(p, end);
        const b8 minus = (b8)(*p == '-');
        const u8 *first = p + (minus || *p == '+');
        i64 count = 0;
        u32 unit = 3;
        const u8 *digit = first;
        while (digit < stop && fn_is_digit(*digit)) {
            count = count * 10 + (i64)(*digit - '0');
            digit++;
            if (digit - first > 8) {
                return 0;
            }
        }
        if (digit == stop && stop < end && digit > first) {
            p = stop + 1;
            stop = fn_word_end(p, end);
            unit = fn_plain_unit(p, stop);
            if (unit == 3) {
                return 0;
            }
        } else if (stop - first < 8 || !fn_plain_clock(first, stop, &count)) {
            return 0;
        }
        /* Units come in their order, each once. */
        if (given >> unit) {
            return 0;
        }
        given |= 1u << unit;
        counts[unit] = minus ? -count : count;
        p = stop;
        if (p < end && (++p == end || unit == 3)) {
            return 0;
        }
    }
    u8 fault = 0;
    *out = given ? fn_iv(counts[0] * 12 + counts[1], counts[2], counts[3], &fault) : *out;
    return (b8)(given && !fault);
}

/* As kernels have them: what is left to others is FAULT_ELSEWHERE. */
FN i32 fn_date_partly(str a, u8 *f) {
    i32 value = 0;
    *f = fn_plain_date(a, &value) ? *f : (u8)FAULT_ELSEWHERE;
    return value;
}

FN i64 fn_time_partly(str a, u8 *f) {
    i64 value = 0;
    *f = fn_plain_time(a, &value) ? *f : (u8)FAULT_ELSEWHERE;
    return value;
}

FN i64 fn_timestamp_partly(str a, u8 *f) {
    i64 value = 0;
    b8 zoned;
    i32 east; /* a zone is dropped */
    *f = fn_plain_moment(a, &value, &zoned, &east) ? *f : (u8)FAULT_ELSEWHERE;
    return value;
}

FN i128 fn_interval_partly(str a, i32 fields, u8 *f) {
    i128 value = 0;
    *f = fields == 0 && fn_plain_interval(a, &value) ? *f : (u8)FAULT_ELSEWHERE;
    return value;
}

#endif
