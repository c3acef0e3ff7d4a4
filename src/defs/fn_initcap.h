/* fn_initcap.h: words with a capital letter. Kernel text (see fn_int.h); needs fn_str2.h, fn_case.h and
 * char_class.h. */
#ifndef WF_DEFS_FN_INITCAP_H
#define WF_DEFS_FN_INITCAP_H

FN_SLOW b8 fn_class_has(const struct class_range *ranges, u32 count, u32 c) {
    u32 lo = 0;
    u32 hi = count;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        struct class_range r = ranges[mid];
        if (c > r.last) {
            lo = mid + 1;
        } else if (c < r.first) {
            hi = mid;
        } else {
            return (b8)((c - r.first) % r.step == 0);
        }
    }
    return 0;
}

#define CLASS_HAS(name, c) \
    fn_class_has(class_##name, (u32)(sizeof class_##name / sizeof class_##name[0]), c)

FN b8 fn_is_alnum(u32 c) {
    b8 ascii = (b8)((c | 32) - 'a' < 26u || c - '0' < 10u);
    return c < 0x80 ? ascii : CLASS_HAS(alpha, c);
}

/* See fn_make.h. A character in the other case has up to four bytes, whatever it had. */
FN_SLOW i64 fn_initcap(u8 *out, str a) {
    const u8 *p = fn_str_ptr(a);
    i64 n = 0;
    b8 inside = 0;
    for (u32 at = 0; at < a.len && !stop_due(at, at + 1u);) {
        u32 end = fn_char_end(p, at, a.len);
        u32 c = (u32)fn_ascii(fn_part(a, at, end));
        n += fn_char_encode(out ? out + n : out, inside ? fn_case_lower(c) : fn_case_upper(c));
        inside = fn_is_alnum(c);
        at = end;
    }
    return n;
}

FN i64 fn_initcap_most(str a) {
    i64 chars = fn_length(a);
    return chars == (i64)a.len ? chars : chars * 4;
}

#endif
