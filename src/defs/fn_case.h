/* fn_case.h: upper and lower case of UTF-8 text. Kernel text (see fn_int.h); needs fn_str.h and
 * case_map.h.
 *
 * The simple, one to one mappings of Unicode. A mapped character can be longer or shorter than the
 * original: with out 0 bytes are only counted (see fn_make.h). No more are written than were counted,
 * even for text that is not valid UTF-8: a byte that starts no character is copied as it is. */
#ifndef WF_DEFS_FN_CASE_H
#define WF_DEFS_FN_CASE_H

FN_SLOW u32 fn_case_map(const struct case_range *ranges, u32 count, u32 c) {
    u32 lo = 0;
    u32 hi = count;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        struct case_range r = ranges[mid];
        if (c > r.last) {
            lo = mid + 1;
        } else if (c < r.first) {
            hi = mid;
        } else {
            return (c - r.first) % (u32)r.step ? c : c + (u32)r.delta;
        }
    }
    return c;
}

FN u32 fn_case_upper(u32 c) {
    if (c < 0x80) {
        return c - (c - 'a' < 26 ? 32u : 0u);
    }
    return fn_case_map(to_upper, (u32)(sizeof to_upper / sizeof to_upper[0]), c);
}

FN u32 fn_case_lower(u32 c) {
    if (c < 0x80) {
        return c + (c - 'A' < 26 ? 32u : 0u);
    }
    return fn_case_map(to_lower, (u32)(sizeof to_lower / sizeof to_lower[0]), c);
}

/* Length of the character at p, 1 to 4, from its bytes; 0 when they are not valid UTF-8. */
FN_SLOW u32 fn_char_bytes(const u8 *p, u64 left) {
    u32 c = p[0];
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xc2 && c < 0xe0) {
        return left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    }
    if ((c & 0xf0) == 0xe0) {
        b8 whole = left >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80;
        b8 overlong = c == 0xe0 && whole && p[1] < 0xa0;
        b8 surrogate = c == 0xed && whole && p[1] >= 0xa0;
        return whole && !overlong && !surrogate ? 3 : 0;
    }
    if (c >= 0xf0 && c < 0xf5) {
        b8 whole =
            left >= 4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80;
        b8 overlong = c == 0xf0 && whole && p[1] < 0x90;
        b8 beyond = c == 0xf4 && whole && p[1] >= 0x90;
        return whole && !overlong && !beyond ? 4 : 0;
    }
    return 0;
}

FN b8 fn_is_ascii(const u8 *p, u64 len) {
    u64 all = 0;
    for (i64 at = -(i64)word8_lead(p); at < (i64)len; at += 8) {
        all |= fn_text_word(p, at, (i64)len);
    }
    return (all & 0x8080808080808080ULL) == 0;
}

/* With out 0 only the size is counted. */
FN_SLOW i64 fn_case_convert(u8 *out, const u8 *p, u64 len, u32 upper) {
    u64 n = 0;
    for (u64 i = 0; i < len && !stop_due(i, i + 1);) {
        u32 bytes = fn_char_bytes(p + i, len - i);
        if (bytes) {
            u32 c = fn_char_decode(p + i, bytes);
            n += fn_char_encode(out ? out + n : out, upper ? fn_case_upper(c) : fn_case_lower(c));
        } else {
            if (out) {
                out[n] = p[i];
            }
            n++;
        }
        i += bytes ? bytes : 1;
    }
    return (i64)n;
}

FN i64 fn_case(u8 *out, str a, u32 upper) {
    const u8 *p = fn_str_ptr(a);
    if (!fn_is_ascii(p, a.len)) {
        return fn_case_convert(out, p, a.len, upper);
    }
    if (out) {
        copy_case(out, p, a.len, upper);
    }
    return (i64)a.len;
}

FN i64 fn_upper(u8 *out, str a) {
    return fn_case(out, a, 1);
}

FN i64 fn_lower(u8 *out, str a) {
    return fn_case(out, a, 0);
}

#endif
