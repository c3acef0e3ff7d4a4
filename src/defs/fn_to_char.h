/* fn_to_char.h: moments and intervals written as a template says, which was taken apart before
 * (host/format.c). Kernel text (see fn_int.h); needs fn_format.h. See fn_make.h for `out`. */
#ifndef WF_DEFS_FN_TO_CHAR_H
#define WF_DEFS_FN_TO_CHAR_H

enum pattern {
    P_NONE,
    P_END, /* of a program */
    P_AD,
    P_AM,
    P_AD_DOTS,
    P_AM_DOTS,
    P_CC,
    P_DAY,
    P_DDD,
    P_DD,
    P_DY,
    P_D,
    P_HH24,
    P_HH12,
    P_IDDD,
    P_ID,
    P_IW,
    P_IYYY,
    P_IYY,
    P_IY,
    P_I,
    P_J,
    P_MI,
    P_MM,
    P_MONTH,
    P_MON,
    P_MS,
    P_OF,
    P_Q,
    P_RM,
    P_SSSS,
    P_SS,
    P_TZH,
    P_TZM,
    P_TZ,
    P_US,
    P_FF,
    P_WW,
    P_W,
    P_Y_YYY,
    P_YYYY,
    P_YYY,
    P_YY,
    P_Y
};

enum { LETTERS_CAPITAL, LETTERS_SMALL, LETTERS_AS_NAMED }; /* of names */

struct to_char_node {
    u8 pattern;   /* NONE: `len` bytes of text */
    u8 digits;    /* a number of so many; 0 = no number */
    u8 fill;      /* FM */
    u8 name_fill; /* FM or TM: names have no blanks behind them */
    u8 th;        /* 1 = TH, 2 = th */
    u8 letters;
    u8 len;
    u8 text[5];
};

struct to_char_moment {
    i64 year; /* 0 = 1 BC */
    i64 hour; /* an interval may have many */
    i32 month, day, minute, second, us;
    i32 date; /* days; for week and day names */
    i32 east; /* of Greenwich, in seconds */
    const u8 *zone;
    u32 zone_len; /* 0: none */
    b8 is_interval;
};

CONST_TABLE u8 fn_month_names[12][10] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
CONST_TABLE u8 fn_day_names[7][10] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
CONST_TABLE u8 fn_roman[12][6] = {"XII", "XI", "X",  "IX",  "VIII", "VII",
                                  "VI",  "V",  "IV", "III", "II",   "I"};
CONST_TABLE u8 fn_halves[8][5] = {"AM", "PM", "BC", "AD", "A.M.", "P.M.", "B.C.", "A.D."};

FN_SLOW void fn_tc_number(u8 *out, i64 *n, i64 value, u32 width, b8 fill, u8 th) {
    u64 size = fn_magnitude(value);
    if (value < 0) {
        fn_put(out, n, '-');
        width = width > 0 ? width - 1 : 0;
    }
    fn_put_digits(out, n, size, fill ? 1 : width);
    if (th) {
        b8 teen = (b8)(size % 100 >= 11 && size % 100 <= 13);
        u64 last = teen || size % 10 > 3 ? 0 : size % 10;
        u32 end = last == 0 ? 0x6874u : last == 1 ? 0x7473u : last == 2 ? 0x646eu : 0x6472u;
        fn_put_word(out, n, th == 1 ? end & ~0x2020u : end); /* th, st, nd, rd */
    }
}

/* A name in the case of its pattern, up to `cut` letters, with blanks to `width` unless it is filled. */
FN_SLOW void fn_tc_name(u8 *out, i64 *n, const struct to_char_node *node, const u8 *name, u32 cut,
                        u32 width) {
    u32 len = 0;
    while (len < cut && name[len]) {
        len++;
    }
    u32 all = node->name_fill || width < len ? len : width;
    for (u32 i = 0; i < all; i++) {
        u32 c = i < len ? name[i] : (u32)' ';
        b8 letter = (b8)((c | 32) - 'a' < 26u);
        c = !letter || node->letters == LETTERS_AS_NAMED ? c
            : node->letters == LETTERS_SMALL             ? c | 32u
                                                         : c & ~32u;
        fn_put(out, n, (u8)c);
    }
}

FN_SLOW void fn_tc_year(u8 *out, i64 *n, const struct to_char_node *node, i64 year,
                        b8 is_interval) {
    i64 shown = year > 0 || is_interval ? year : 1 - year;
    u32 less = (u32)(shown < 0);
    switch (node->pattern) {
    case P_Y_YYY:
        fn_tc_number(out, n, shown / 1000, 1, node->fill, 0);
        fn_put(out, n, ',');
        fn_tc_number(out, n, shown % 1000, 3, 0, node->th);
        break;
    case P_YYYY:
    case P_IYYY:
        fn_tc_number(out, n, shown, 4 + less, node->fill, node->th);
        break;
    case P_YYY:
    case P_IYY:
        fn_tc_number(out, n, shown % 1000, 3 + less, node->fill, node->th);
        break;
    case P_YY:
    case P_IY:
        fn_tc_number(out, n, shown % 100, 2 + less, node->fill, node->th);
        break;
    default:
        fn_tc_number(out, n, shown % 10, 1, node->fill, node->th);
        break;
    }
}

/* Numbers of days and weeks. */
FN_SLOW void fn_tc_day(u8 *out, i64 *n, const struct to_char_node *node,
                       const struct to_char_moment *m) {
    i32 dow = fn_isodow(m->date) % 7;
    i32 iso = dow ? dow : 7;
    i32 doy = m->is_interval ? (i32)(m->year * 12 + m->month) * 30 + m->day
                             : m->date - fn_days((i32)m->year, 1, 1) + 1;
    i64 value = 0;
    u32 width = 1;
    switch (node->pattern) {
    case P_DDD:
        value = doy;
        width = 3;
        break;
    case P_DD:
        value = m->day;
        width = 2;
        break;
    case P_D:
        value = dow + 1;
        break;
    case P_ID:
        value = iso;
        break;
    case P_IDDD:
        value = (fn_isoweek(m->date) - 1) * 7 + iso;
        width = 3;
        break;
    case P_IW:
        value = fn_isoweek(m->date);
        width = 2;
        break;
    case P_WW:
        value = (doy - 1) / 7 + 1;
        width = 2;
        break;
    case P_W:
        value = (m->day - 1) / 7 + 1;
        break;
    case P_J:
        value = (i64)m->date + 2440588;
        break;
    case P_Q:
        value = (m->month - 1) / 3 + 1;
        break;
    default: /* CC */
        value = m->is_interval ? m->year / 100 : fn_era_year((i32)m->year, 100);
        width = m->year > 0 || m->is_interval ? 2 : 3;
        break;
    }
    if (node->pattern != P_Q || m->month) {
        fn_tc_number(out, n, value, width, node->fill, node->th);
    }
}

/* OF, TZH, TZM; a timestamp without a zone has no name of one. */
FN_SLOW void fn_tc_zone(u8 *out, i64 *n, const struct to_char_node *node, i32 east) {
    u32 size = (u32)(east < 0 ? -east : east);
    if (node->pattern != P_TZM) {
        fn_put(out, n, (u8)(east < 0 ? '-' : '+'));
        fn_put_digits(out, n, size / 3600 % 100, 2);
    }
    if (node->pattern == P_OF && size % 3600) {
        fn_put(out, n, ':');
    }
    if (node->pattern == P_TZM || (node->pattern == P_OF && size % 3600)) {
        fn_put_digits(out, n, size / 60 % 60, 2);
    }
}

FN_SLOW void fn_tc_text(u8 *out, i64 *n, const struct to_char_node *node,
                        const struct to_char_moment *m) {
    u32 pm = (u32)(m->hour % 24 >= 12);
    u32 ad = (u32)(m->year > 0);
    u32 month = m->month > 0 ? (u32)m->month - 1 : 0;
    struct to_char_node dots = *node;
    dots.name_fill = 0;
    switch (node->pattern) {
    case P_AM:
        fn_tc_name(out, n, node, fn_halves[pm], 2, 0);
        break;
    case P_AD:
        fn_tc_name(out, n, node, fn_halves[2 + ad], 2, 0);
        break;
    case P_AM_DOTS:
        fn_tc_name(out, n, &dots, fn_halves[4 + pm], 4, 0);
        break;
    case P_AD_DOTS:
        fn_tc_name(out, n, &dots, fn_halves[6 + ad], 4, 0);
        break;
    case P_MONTH:
        fn_tc_name(out, n, node, fn_month_names[month], m->month > 0 ? 9 : 0, 9);
        break;
    case P_MON: /* an interval without months: three blanks, filled or not */
        dots.name_fill = (u8)(m->month > 0 ? node->name_fill : 0);
        fn_tc_name(out, n, &dots, fn_month_names[month], m->month > 0 ? 3 : 0, 3);
        break;
    case P_DAY:
        fn_tc_name(out, n, node, fn_day_names[fn_isodow(m->date) % 7], 9, 9);
        break;
    case P_DY:
        fn_tc_name(out, n, node, fn_day_names[fn_isodow(m->date) % 7], 3, 3);
        break;
    case P_RM:
        if (m->month || m->year) { /* an interval's may be negative, or 0 */
            i32 roman = m->month > 0   ? 12 - m->month
                        : m->month < 0 ? -m->month - 1
                        : m->year >= 0 ? 0
                                       : 11;
            fn_tc_name(out, n, node, fn_roman[roman], 5, 4);
        }
        break;
    case P_TZ:
        fn_tc_name(out, n, node, m->zone, m->zone_len, 0);
        break;
    default:
        fn_tc_zone(out, n, node, m->east);
        break;
    }
}

/* Of the time of day, and years; 0: it is something else. */
FN_SLOW b8 fn_tc_clock(u8 *out, i64 *n, const struct to_char_node *node,
                       const struct to_char_moment *m) {
    i32 hour12 = (i32)(m->hour % 12);
    i32 us = m->us;
    for (u32 i = node->digits; node->pattern == P_FF && i < 6; i++) {
        us /= 10;
    }
    switch (node->pattern) {
    case P_HH24:
        fn_tc_number(out, n, m->hour, m->hour < 0 ? 3 : 2, node->fill, node->th);
        return 1;
    case P_HH12:
        fn_tc_number(out, n, hour12 ? hour12 : 12, hour12 < 0 ? 3 : 2, node->fill, node->th);
        return 1;
    case P_MI:
        fn_tc_number(out, n, m->minute, m->minute < 0 ? 3 : 2, node->fill, node->th);
        return 1;
    case P_SS:
        fn_tc_number(out, n, m->second, m->second < 0 ? 3 : 2, node->fill, node->th);
        return 1;
    case P_MS:
        fn_tc_number(out, n, m->us / 1000, 3, 0, node->th);
        return 1;
    case P_US:
    case P_FF:
        fn_tc_number(out, n, us, node->digits, 0, node->th);
        return 1;
    case P_SSSS:
        fn_tc_number(out, n, m->hour * 3600 + m->minute * 60 + m->second, 1, node->fill, node->th);
        return 1;
    case P_MM:
        fn_tc_number(out, n, m->month, m->month < 0 ? 3 : 2, node->fill, node->th);
        return 1;
    case P_Y_YYY:
    case P_YYYY:
    case P_YYY:
    case P_YY:
    case P_Y:
        fn_tc_year(out, n, node, m->year, m->is_interval);
        return 1;
    case P_IYYY:
    case P_IYY:
    case P_IY:
    case P_I:
        fn_tc_year(out, n, node, m->is_interval ? m->year : fn_isoyear(m->date), m->is_interval);
        return 1;
    default:
        return 0;
    }
}

/* Behind n bytes; how many there are then. */
FN_SLOW i64 fn_to_char_node(u8 *out, i64 n, const struct to_char_moment *m,
                            const struct to_char_node *node) {
    b8 zone = (b8)(node->pattern == P_TZH || node->pattern == P_TZM);
    for (u32 i = 0; i < node->len; i++) {
        fn_put(out, &n, node->text[i]);
    }
    if (node->pattern == P_NONE || fn_tc_clock(out, &n, node, m)) {
        return n;
    }
    if (node->digits && !zone) {
        fn_tc_day(out, &n, node, m);
    } else {
        fn_tc_text(out, &n, node, m);
    }
    return n;
}

FN struct to_char_moment fn_to_char_moment(i64 a) { /* finite, without a zone */
    struct to_char_moment m;
    i64 day = fn_floor_div(a, DAY_US);
    i64 us = a - day * DAY_US;
    fn_civil c = fn_civil_of((i32)day);
    m.year = c.year;
    m.month = c.month;
    m.day = c.day;
    m.hour = us / HOUR_US;
    m.minute = (i32)(us / MINUTE_US % 60);
    m.second = (i32)(us / SECOND_US % 60);
    m.us = (i32)(us % SECOND_US);
    m.date = (i32)day;
    m.east = 0;
    m.zone = (const u8 *)0;
    m.zone_len = 0;
    m.is_interval = 0;
    return m;
}

/* `program`: the template's nodes. */
FN_SLOW i64 fn_to_char_ahead(u8 *out, i64 a, str program) {
    const struct to_char_node *node = (const struct to_char_node *)program.addr;
    if (fn_ts_infinite(a)) {
        return fn_infinity_text(out, (b8)(a < 0));
    }
    struct to_char_moment m = fn_to_char_moment(a);
    i64 n = 0;
    for (; node->pattern != P_END; node++) {
        n = fn_to_char_node(out, n, &m, node);
    }
    return n;
}

#endif
