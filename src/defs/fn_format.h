/* fn_format.h: numbers, dates, times and UUIDs as text. Kernel text (see fn_int.h); needs fn_int.h,
 * fn_date.h, fn_time.h and fn_make.h.
 *
 * Every body writes to `out`, at most VALUE_TEXT_MAX bytes, and says how many; with out 0 it only counts
 * them. */
#ifndef WF_DEFS_FN_FORMAT_H
#define WF_DEFS_FN_FORMAT_H

FN u32 fn_digits(u64 x) { /* of x; one of 0 */
    u64 some = x | 1;
    u32 least = (64 - zeros_above_u64(some)) * 1233u >> 12; /* bits times log10(2) */
    return least + (u32)(some >= fn_pow10_table[least]);
}

/* `count` digits of x, the last one before `end`. */
FN void fn_digits_write(u8 *end, u64 x, u32 count) {
    for (; count >= 2; count -= 2) {
        u32 pair = (u32)(x % 100);
        x /= 100;
        *--end = (u8)('0' + pair % 10);
        *--end = (u8)('0' + pair / 10);
    }
    if (count) {
        *--end = (u8)('0' + x % 10);
    }
}

FN void fn_put(u8 *out, i64 *n, u8 c) {
    if (out) {
        out[*n] = c;
    }
    (*n)++;
}

/* x with zeros before it to `width` digits. */
FN void fn_put_digits(u8 *out, i64 *n, u64 x, u32 width) {
    u32 count = fn_digits(x);
    count = count < width ? width : count;
    if (out) {
        fn_digits_write(out + *n + count, x, count);
    }
    *n += count;
}

/* A word of up to eight letters, the first one lowest. */
FN void fn_put_word(u8 *out, i64 *n, u64 word) {
    for (; word; word >>= 8) {
        fn_put(out, n, (u8)word);
    }
}

FN u64 fn_magnitude(i64 a) {
    return a < 0 ? 0 - (u64)a : (u64)a;
}

FN i64 fn_i64_text(u8 *out, i64 a) {
    i64 n = 0;
    if (a < 0) {
        fn_put(out, &n, '-');
    }
    fn_put_digits(out, &n, fn_magnitude(a), 1);
    return n;
}

FN i64 fn_bool_text(u8 *out, b8 a) {
    i64 n = 0;
    fn_put_word(out, &n, a ? 0x65757274ULL : 0x65736c6166ULL); /* true, false */
    return n;
}

/* Those of more than nineteen digits. */
FN_SLOW i64 fn_long_dec_text(u8 *out, i128 a, u32 behind) {
    u64 parts[3]; /* nineteen digits each, low to high */
    u128 left = fn_abs_i128(a);
    u32 count = 0;
    do {
        parts[count++] = (u64)(left % fn_pow10_table[19]);
        left /= fn_pow10_table[19];
    } while (left);
    u32 digits = (count - 1) * 19 + fn_digits(parts[count - 1]);
    digits = digits <= behind ? behind + 1 : digits; /* a digit before the point */
    i64 bytes = (i64)digits + (behind > 0) + (a < 0);
    for (u32 i = 0; out && i < digits; i++) { /* from the last one on */
        u32 part = i / 19;
        u32 digit = part < count ? (u32)(parts[part] % 10) : 0;
        parts[part < count ? part : 0] /= 10;
        out[bytes - 1 - i - (behind > 0 && i >= behind)] = (u8)('0' + digit);
    }
    if (out && behind) {
        out[bytes - 1 - behind] = '.';
    }
    if (out && a < 0) {
        out[0] = '-';
    }
    return bytes;
}

/* Exactly `scale` digits after the point. */
FN_SLOW i64 fn_dec_text(u8 *out, i128 a, i32 scale) {
    u128 size = fn_abs_i128(a);
    u32 behind = scale > 0 ? (u32)scale : 0u;
    i64 n = 0;
    if (size >= fn_pow10_table[19] || behind > 19) {
        return fn_long_dec_text(out, a, behind);
    }
    if (a < 0) {
        fn_put(out, &n, '-');
    }
    fn_put_digits(out, &n, (u64)size / fn_pow10_table[behind], 1);
    if (behind) {
        fn_put(out, &n, '.');
        fn_put_digits(out, &n, (u64)size % fn_pow10_table[behind], behind);
    }
    return n;
}

/* hh:mm:ss.f */
FN_SLOW i64 fn_clock_text(u8 *out, u64 us, u32 hour_width) {
    i64 n = 0;
    fn_put_digits(out, &n, us / (u64)HOUR_US, hour_width);
    fn_put(out, &n, ':');
    fn_put_digits(out, &n, us / (u64)MINUTE_US % 60u, 2);
    fn_put(out, &n, ':');
    fn_put_digits(out, &n, us / (u64)SECOND_US % 60u, 2);
    u32 fraction = (u32)(us % (u64)SECOND_US);
    u32 width = 6;
    while (fraction && fraction % 10 == 0) {
        fraction /= 10;
        width--;
    }
    if (fraction) {
        fn_put(out, &n, '.');
        fn_put_digits(out, &n, fraction, width);
    }
    return n;
}

FN i64 fn_infinity_text(u8 *out, b8 negative) {
    i64 n = 0;
    if (negative) {
        fn_put(out, &n, '-');
    }
    fn_put_word(out, &n, 0x7974696e69666e69ULL); /* infinity */
    return n;
}

FN_SLOW i64 fn_day_text(u8 *out, i32 date, b8 *bc) {
    fn_civil c = fn_civil_of(date);
    i64 n = 0;
    *bc = (b8)(c.year < 1);
    fn_put_digits(out, &n, (u64)(*bc ? 1 - c.year : c.year), 4);
    fn_put(out, &n, '-');
    fn_put_digits(out, &n, (u64)c.month, 2);
    fn_put(out, &n, '-');
    fn_put_digits(out, &n, (u64)c.day, 2);
    return n;
}

FN i64 fn_era_text(u8 *out, i64 n, b8 bc) {
    fn_put_word(out, &n, bc ? 0x434220ULL : 0); /* " BC" */
    return n;
}

FN i64 fn_date_text(u8 *out, i32 a) {
    b8 bc = 0;
    if (fn_date_infinite(a)) {
        return fn_infinity_text(out, (b8)(a < 0));
    }
    i64 n = fn_day_text(out, a, &bc);
    return fn_era_text(out, n, bc);
}

FN void fn_zone_text(u8 *out, i64 *n, i32 east) {
    u32 size = (u32)(east < 0 ? -east : east);
    fn_put(out, n, (u8)(east < 0 ? '-' : '+'));
    fn_put_digits(out, n, size / 3600, 2);
    if (size % 3600) {
        fn_put(out, n, ':');
        fn_put_digits(out, n, size / 60 % 60, 2);
    }
    if (size % 60) {
        fn_put(out, n, ':');
        fn_put_digits(out, n, size % 60, 2);
    }
}

/* `east`: seconds by which clocks there show more, written behind the time where it is zoned. */
FN_SLOW i64 fn_moment_text(u8 *out, i64 a, b8 zoned, i32 east) {
    b8 bc = 0;
    if (fn_ts_infinite(a)) {
        return fn_infinity_text(out, (b8)(a < 0));
    }
    i64 local = a + east * SECOND_US;
    i64 day = fn_floor_div(local, DAY_US);
    i64 n = fn_day_text(out, (i32)day, &bc);
    fn_put(out, &n, ' ');
    n += fn_clock_text(out ? out + n : out, (u64)(local - day * DAY_US), 2);
    if (zoned) {
        fn_zone_text(out, &n, east);
    }
    return fn_era_text(out, n, bc);
}

FN i64 fn_ts_text(u8 *out, i64 a) {
    return fn_moment_text(out, a, 0, 0);
}

FN i64 fn_time_text(u8 *out, i64 a) {
    return fn_clock_text(out, (u64)a, 2);
}

/* A number of units, behind what was written before; nothing for none. */
FN_SLOW i64 fn_iv_unit_text(u8 *out, i64 n, i64 count, u64 unit, b8 *negative) {
    if (count == 0) {
        return n;
    }
    if (n > 0) {
        fn_put(out, &n, ' ');
    }
    if (count < 0 || *negative) {
        fn_put(out, &n, (u8)(count < 0 ? '-' : '+'));
    }
    fn_put_digits(out, &n, fn_magnitude(count), 1);
    fn_put_word(out, &n, unit);
    if (count != 1) {
        fn_put(out, &n, 's');
    }
    *negative = (b8)(count < 0);
    return n;
}

FN_SLOW i64 fn_iv_text(u8 *out, i128 a) {
    fn_span x = fn_iv_parts(a);
    b8 negative = 0; /* the part before */
    i64 n = fn_iv_unit_text(out, 0, x.months / 12, 0x7261657920ULL, &negative); /* " year" */
    n = fn_iv_unit_text(out, n, x.months % 12, 0x6e6f6d20ULL, &negative);       /* " mon" */
    n = fn_iv_unit_text(out, n, x.days, 0x79616420ULL, &negative);              /* " day" */
    if (x.us != 0 || n == 0) {
        if (n > 0) {
            fn_put(out, &n, ' ');
        }
        if (x.us < 0 || negative) {
            fn_put(out, &n, (u8)(x.us < 0 ? '-' : '+'));
        }
        n += fn_clock_text(out ? out + n : out, fn_magnitude(x.us), 2);
    }
    return n;
}

FN_SLOW i64 fn_uuid_text(u8 *out, i128 a) { /* the highest bit is held inverted */
    u128 bits = (u128)a ^ (u128)1 << 127;
    i64 n = 0;
    for (u32 i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20) {
            fn_put(out, &n, '-');
        }
        fn_put(out, &n, fn_hex_digit((u32)(bits >> (124 - 4 * i))));
    }
    return n;
}

#endif
