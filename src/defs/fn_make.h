/* fn_make.h: text that is made: joined, and written digit by digit. Kernel text (see fn_int.h); needs
 * fn_str.h, fn_int.h and fn_date.h.
 *
 * Each is a pair: the size says how many bytes the write will write, exactly. */
#ifndef WF_DEFS_FN_MAKE_H
#define WF_DEFS_FN_MAKE_H

FN i64 fn_concat_size(str a, str b) {
    return (i64)a.len + (i64)b.len;
}

FN void fn_copy_bytes(u8 *out, const u8 *from, u64 len) {
    for (u64 i = 0; i < len; i++) {
        out[i] = from[i];
    }
}

FN void fn_concat_write(u8 *out, str a, str b) {
    fn_copy_bytes(out, fn_str_ptr(a), a.len);
    fn_copy_bytes(out + a.len, fn_str_ptr(b), b.len);
}

FN u32 fn_digits(u64 x) { /* of x; one of 0 */
    u32 n = 1;
    while (x >= 10) {
        x /= 10;
        n++;
    }
    return n;
}

/* `count` digits of x, the last one before `end`. */
FN void fn_digits_write(u8 *end, u64 x, u32 count) {
    for (u32 i = 0; i < count; i++) {
        *--end = (u8)('0' + x % 10);
        x /= 10;
    }
}

FN u64 fn_magnitude(i64 a) {
    return a < 0 ? 0 - (u64)a : (u64)a;
}

FN i64 fn_i64_size(i64 a) {
    return (i64)fn_digits(fn_magnitude(a)) + (a < 0);
}

FN void fn_i64_write(u8 *out, i64 a) {
    i64 size = fn_i64_size(a);
    out[0] = '-';
    fn_digits_write(out + size, fn_magnitude(a), (u32)(size - (a < 0)));
}

FN i64 fn_boolean_size(b8 a) {
    return a ? 4 : 5;
}

FN void fn_boolean_write(u8 *out, b8 a) {
    const u64 word = a ? 0x65757274ULL : 0x65736c6166ULL; /* true, false: the first byte lowest */
    for (u32 i = 0; i < (a ? 4u : 5u); i++) {
        out[i] = (u8)(word >> (8 * i));
    }
}

#endif
