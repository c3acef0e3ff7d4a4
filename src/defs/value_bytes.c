/* value_bytes.c: byte strings and UUIDs from text.
 *
 * bytea is read in both of PostgreSQL's forms, \x with hexadecimal digits and the older one with
 * \\ and octal escapes. A UUID is 128 bits, held with the highest one
 * inverted so that signed comparison orders as bytes do. */
#include "defs/value.h"

static i32 hex_digit(u8 c) {
    u8 low = (u8)(c | 32);
    return (u8)(c - '0') < 10 ? c - '0' : (u8)(low - 'a') < 6 ? low - 'a' + 10 : -1;
}

static bool is_blank(u8 c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

u8 value_parse_uuid(struct sv s, i128 *out) {
    while (s.len > 0 && is_blank((u8)s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_blank((u8)s.ptr[s.len - 1])) {
        s.len--;
    }
    if (s.len > 1 && s.ptr[0] == '{' && s.ptr[s.len - 1] == '}') {
        s = (struct sv){s.ptr + 1, s.len - 2};
    }
    u128 value = 0;
    i32 digits = 0;
    for (i64 i = 0; i < s.len; i++) {
        i32 digit = hex_digit((u8)s.ptr[i]);
        bool dash =
            s.ptr[i] == '-' && digits % 4 == 0 && digits > 0 && digits < 32 && s.ptr[i - 1] != '-';
        if (dash) {
            continue;
        }
        if (digit < 0 || digits == 32) {
            return FAULT_TEXT_UUID;
        }
        value = value << 4 | (u32)digit;
        digits++;
    }
    if (digits != 32) {
        return FAULT_TEXT_UUID;
    }
    *out = (i128)(value ^ (u128)1 << 127);
    return FAULT_NONE;
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
