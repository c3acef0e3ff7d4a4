/* fn_encode.h: bytes as text and back, bytes of which one changes, text as a literal. Kernel text (see
 * fn_int.h); needs fn_str.h and fn_make.h, where `out` is explained. */
#ifndef WF_DEFS_FN_ENCODE_H
#define WF_DEFS_FN_ENCODE_H

FN i64 fn_add_byte(u8 *out, i64 n, u32 c) {
    if (out) {
        out[n] = (u8)c;
    }
    return n + 1;
}

/* 16 bytes that order as a does, and those of b. */
FN i64 fn_order_bytes(u8 *out, i128 a, i128 b) {
    const u128 order = (u128)a ^ (u128)1 << 127;
    for (u32 i = 0; out && i < 16; i++) {
        out[i] = (u8)(order >> (120u - 8u * i));
        out[16 + i] = (u8)((u128)b >> (120u - 8u * i));
    }
    return 32;
}

FN_SLOW i64 fn_quote_literal(u8 *out, str a) {
    const u8 *p = fn_str_ptr(a);
    b8 slash = 0;
    i64 n = 0;
    for (u32 i = 0; i < a.len && !slash; i++) {
        slash = (b8)(p[i] == '\\');
    }
    n = slash ? fn_add_byte(out, n, 'E') : n;
    n = fn_add_byte(out, n, '\'');
    for (u32 i = 0; i < a.len; i++) {
        n = p[i] == '\'' || p[i] == '\\' ? fn_add_byte(out, n, p[i]) : n;
        n = fn_add_byte(out, n, p[i]);
    }
    return fn_add_byte(out, n, '\'');
}

/* A copy of the bytes, of which byte `at` is to change; 0 when there is none. */
FN b8 fn_copy_to_change(u8 *out, str a, i64 at, u8 *f) {
    if (at < 0 || at >= (i64)a.len) {
        *f = FAULT_SUBSCRIPT;
        return 0;
    }
    if (out) {
        copy_bytes(out, fn_str_ptr(a), a.len);
    }
    return 1;
}
FN i64 fn_set_byte(u8 *out, str a, i32 at, i32 value, u8 *f) {
    if (fn_copy_to_change(out, a, at, f) && out) {
        out[at] = (u8)value;
    }
    return (i64)a.len;
}
FN i64 fn_set_bit(u8 *out, str a, i64 at, i32 value, u8 *f) {
    const u8 bit = (u8)(1 << (at & 7));
    if (fn_copy_to_change(out, a, at < 0 ? -1 : at >> 3, f)) {
        *f = value == 0 || value == 1 ? *f : (u8)FAULT_BIT_VALUE;
        if (out) {
            out[at >> 3] = (u8)(value ? out[at >> 3] | bit : out[at >> 3] & ~bit);
        }
    }
    return (i64)a.len;
}

/* --- encodings --- */

enum fn_encoding { ENCODING_NONE, ENCODING_HEX, ENCODING_BASE64, ENCODING_ESCAPE };

FN b8 fn_is_named(str a, const char *name) { /* in letters of either case */
    const u8 *p = fn_str_ptr(a);
    u32 i = 0;
    while (i < a.len && name[i] && (p[i] | ((u32)p[i] - 'A' < 26u ? 32u : 0u)) == (u32)(u8)name[i]) {
        i++;
    }
    return (b8)(i == a.len && !name[i]);
}
FN_SLOW u32 fn_encoding_of(str a) {
    return fn_is_named(a, "hex")      ? ENCODING_HEX
           : fn_is_named(a, "base64") ? ENCODING_BASE64
           : fn_is_named(a, "escape") ? ENCODING_ESCAPE
                                      : ENCODING_NONE;
}

FN u32 fn_base64_digit(u32 x) {
    return x < 26 ? 'A' + x : x < 52 ? 'a' + (x - 26) : x < 62 ? '0' + (x - 52) : x == 62 ? '+' : '/';
}
FN i32 fn_base64_value(u32 c) { /* -1: no digit */
    return c - 'A' < 26   ? (i32)(c - 'A')
           : c - 'a' < 26 ? (i32)(c - 'a') + 26
           : c - '0' < 10 ? (i32)(c - '0') + 52
           : c == '+'     ? 62
           : c == '/'     ? 63
                          : -1;
}

/* Four digits for three bytes, in lines of 76. */
FN i64 fn_base64_write(u8 *out, const u8 *p, i64 len) {
    i64 n = 0;
    i64 line = 0;
    NO_UNROLL for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 3); i += 3) {
        const u32 bits = (u32)p[i] << 16 | (i + 1 < len ? (u32)p[i + 1] << 8 : 0u) |
                         (i + 2 < len ? (u32)p[i + 2] : 0u);
        if (line == 76) {
            n = fn_add_byte(out, n, '\n');
            line = 0;
        }
        for (u32 k = 0; k < 4; k++) {
            const u32 digit = fn_base64_digit(bits >> (18u - 6u * k) & 63u);
            n = fn_add_byte(out, n, i + (i64)k <= len ? digit : '=');
        }
        line += 4;
    }
    return n;
}

FN i64 fn_escape_write(u8 *out, const u8 *p, i64 len) {
    i64 n = 0;
    NO_UNROLL for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 1); i++) {
        const u32 c = p[i];
        if (c == 0 || c >= 128) {
            n = fn_add_byte(out, n, '\\');
            n = fn_add_byte(out, n, '0' + (c >> 6));
            n = fn_add_byte(out, n, '0' + (c >> 3 & 7u));
            n = fn_add_byte(out, n, '0' + (c & 7u));
        } else {
            n = c == '\\' ? fn_add_byte(out, n, c) : n;
            n = fn_add_byte(out, n, c);
        }
    }
    return n;
}

FN i64 fn_encode_most(str a, str b) {
    const i64 len = (i64)a.len;
    const u32 how = fn_encoding_of(b);
    return how == ENCODING_HEX      ? 2 * len
           : how == ENCODING_BASE64 ? (len + 2) / 3 * 4 + len / 57
                                    : 4 * len;
}
FN_SLOW i64 fn_encode(u8 *out, str a, str b, u8 *f) {
    const u8 *p = fn_str_ptr(a);
    const u32 how = fn_encoding_of(b);
    if (how == ENCODING_HEX) {
        for (u32 i = 0; out && i < a.len; i++) {
            out[2 * (u64)i] = fn_hex_digit((u32)p[i] >> 4);
            out[2 * (u64)i + 1] = fn_hex_digit(p[i]);
        }
        return 2 * (i64)a.len;
    }
    if (how == ENCODING_NONE) {
        *f = FAULT_ENCODING;
        return 0;
    }
    return how == ENCODING_BASE64 ? fn_base64_write(out, p, (i64)a.len)
                                  : fn_escape_write(out, p, (i64)a.len);
}

/* --- and back --- */

FN b8 fn_is_gap(u32 c) { /* between digits */
    return (b8)(c == ' ' || c == '\t' || c == '\n' || c == '\r');
}
FN i64 fn_hex_read(u8 *out, const u8 *p, i64 len, u8 *f) {
    i64 n = 0;
    NO_UNROLL for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 1);) {
        if (fn_is_gap(p[i])) {
            i++;
            continue;
        }
        const i32 high = fn_hex_value(p[i]);
        const i32 low = i + 1 < len ? fn_hex_value(p[i + 1]) : -1;
        if (high < 0 || low < 0) {
            *f = FAULT_HEX;
            return 0;
        }
        n = fn_add_byte(out, n, (u32)(high << 4 | low));
        i += 2;
    }
    return n;
}

FN i64 fn_base64_read(u8 *out, const u8 *p, i64 len, u8 *f) {
    u32 bits = 0;
    u32 have = 0;
    u32 pads = 0;
    i64 n = 0;
    NO_UNROLL for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 1); i++) {
        const i32 digit = fn_base64_value(p[i]);
        if (fn_is_gap(p[i])) {
            continue;
        }
        if ((p[i] != '=' || have < 2) && (digit < 0 || pads)) {
            *f = FAULT_BASE64;
            return 0;
        }
        pads += p[i] == '=';
        bits = bits << 6 | (digit < 0 ? 0u : (u32)digit);
        if (++have == 4) {
            for (u32 k = 0; k + pads < 3; k++) {
                n = fn_add_byte(out, n, bits >> (16u - 8u * k) & 255u);
            }
            have = 0;
            bits = 0;
        }
    }
    *f = have ? (u8)FAULT_BASE64 : *f;
    return n;
}

FN b8 fn_is_octal(u32 c, u32 most) {
    return (b8)(c - '0' <= most);
}

/* Backslashes stand before another one, or three octal digits. */
FN i64 fn_escape_read(u8 *out, const u8 *p, i64 len, u8 *f) {
    i64 n = 0;
    NO_UNROLL for (i64 i = 0; i < len && !stop_due((u64)i, (u64)i + 1); i++) {
        if (p[i] != '\\') {
            n = fn_add_byte(out, n, p[i]);
        } else if (i + 3 < len && fn_is_octal(p[i + 1], 3) && fn_is_octal(p[i + 2], 7) &&
                   fn_is_octal(p[i + 3], 7)) {
            n = fn_add_byte(out, n,
                            (u32)(p[i + 1] - '0') << 6 | (u32)(p[i + 2] - '0') << 3 |
                                (u32)(p[i + 3] - '0'));
            i += 3;
        } else if (i + 1 < len && p[i + 1] == '\\') {
            n = fn_add_byte(out, n, '\\');
            i++;
        } else {
            *f = FAULT_TEXT_BYTES;
            return 0;
        }
    }
    return n;
}

FN b8 fn_begins_hex(str a) {
    const u8 *p = fn_str_ptr(a);
    return (b8)(a.len >= 2 && p[0] == '\\' && p[1] == 'x');
}

/* Bytes as a cast reads them, in either of PostgreSQL's forms. */
FN_SLOW i64 fn_parse_bytes(u8 *out, str a, u8 *f) {
    return fn_begins_hex(a) ? fn_hex_read(out, fn_str_ptr(a) + 2, (i64)a.len - 2, f)
                            : fn_escape_read(out, fn_str_ptr(a), (i64)a.len, f);
}

FN_SLOW i64 fn_decode(u8 *out, str a, str b, u8 *f) {
    const u8 *p = fn_str_ptr(a);
    const i64 len = (i64)a.len;
    const u32 how = fn_encoding_of(b);
    if (how == ENCODING_HEX) {
        return fn_hex_read(out, p, len, f);
    }
    if (how == ENCODING_BASE64) {
        return fn_base64_read(out, p, len, f);
    }
    if (how == ENCODING_ESCAPE && !fn_begins_hex(a)) {
        return fn_escape_read(out, p, len, f);
    }
    *f = how == ENCODING_ESCAPE ? (u8)FAULT_TEXT_BYTES : (u8)FAULT_ENCODING;
    return 0;
}

/* --- patterns --- */

/* Pattern a, in which b makes the next character stand for itself, with the backslash in its place. */
FN_SLOW i64 fn_like_escape(u8 *out, str a, str b, b8 bytes, u8 *f) {
    const u8 *p = fn_str_ptr(a);
    const u8 *mark = fn_str_ptr(b);
    i64 n = 0;
    if ((bytes ? (i64)b.len : (i64)fn_length(b)) > 1) {
        *f = FAULT_ESCAPE;
        return 0;
    }
    for (u32 i = 0; i < a.len;) {
        u32 same = 0;
        while (same < b.len && (u64)i + same < a.len && p[i + same] == mark[same]) {
            same++;
        }
        const b8 escaped = (b8)(b.len > 0 && same == b.len);
        i += escaped ? b.len : 0u;
        if (i >= a.len) {
            *f = FAULT_LIKE_ESCAPE;
            return 0;
        }
        n = escaped || p[i] == '\\' ? fn_add_byte(out, n, '\\') : n;
        n = fn_add_byte(out, n, p[i++]);
    }
    return n;
}

#endif
