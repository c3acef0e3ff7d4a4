/* value_bytes.c: byte strings from text, in both of PostgreSQL's forms: \x with hexadecimal digits, and
 * the older one with \\ and octal escapes. */
#include "defs/value.h"

static i32 hex_digit(u8 c) {
    u8 low = (u8)(c | 32);
    return (u8)(c - '0') < 10 ? c - '0' : (u8)(low - 'a') < 6 ? low - 'a' + 10 : -1;
}

static bool is_blank(u8 c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static u8 parse_hex(struct sv s, u8 *out, i64 *out_len) {
    i64 n = 0;
    for (i64 i = 0; i < s.len;) {
        if (is_blank((u8)s.ptr[i])) {
            i++;
            continue;
        }
        i32 high = hex_digit((u8)s.ptr[i]);
        i32 low = i + 1 < s.len ? hex_digit((u8)s.ptr[i + 1]) : -1;
        if (high < 0 || low < 0) {
            return FAULT_HEX;
        }
        out[n++] = (u8)(high << 4 | low);
        i += 2;
    }
    *out_len = n;
    return FAULT_NONE;
}

u8 value_parse_bytes(struct sv s, u8 *out, i64 *out_len) {
    if (s.len >= 2 && s.ptr[0] == '\\' && s.ptr[1] == 'x') {
        return parse_hex((struct sv){s.ptr + 2, s.len - 2}, out, out_len);
    }
    i64 n = 0;
    for (i64 i = 0; i < s.len; i++) {
        u8 c = (u8)s.ptr[i];
        if (c != '\\') {
            out[n++] = c;
            continue;
        }
        bool octal = i + 3 < s.len && s.ptr[i + 1] >= '0' && s.ptr[i + 1] <= '3' &&
                     s.ptr[i + 2] >= '0' && s.ptr[i + 2] <= '7' && s.ptr[i + 3] >= '0' &&
                     s.ptr[i + 3] <= '7';
        if (octal) {
            out[n++] =
                (u8)((s.ptr[i + 1] - '0') << 6 | (s.ptr[i + 2] - '0') << 3 | (s.ptr[i + 3] - '0'));
            i += 3;
        } else if (i + 1 < s.len && s.ptr[i + 1] == '\\') {
            out[n++] = '\\';
            i++;
        } else {
            return FAULT_TEXT_BYTES;
        }
    }
    *out_len = n;
    return FAULT_NONE;
}
