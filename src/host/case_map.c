/* case_map.c: upper and lower case of UTF-8 text, and its validation.
 *
 * One mapping for all devices and platforms: the simple, one to one mappings of Unicode, in the
 * tables of case_map.h. A mapped character can be longer or shorter than the original, hence the
 * pair of a size and a write body. The write body never writes past what the size body announced,
 * even for text that is not valid UTF-8: a byte that starts no character is copied as it is. */
#include "host/case_map.h"

#include "defs/host_words.h"
#include "defs/fn_str.h"
#include "host/chars.h"

static u32 map(const struct case_range *ranges, i64 count, u32 c) {
    i64 lo = 0;
    i64 hi = count;
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        const struct case_range *r = &ranges[mid];
        if (c > r->last) {
            lo = mid + 1;
        } else if (c < r->first) {
            hi = mid;
        } else {
            return (c - r->first) % (u32)r->step ? c : c + (u32)r->delta;
        }
    }
    return c;
}

u32 case_upper(u32 c) {
    if (c < 0x80) {
        return c - (c >= 'a' && c <= 'z' ? 32u : 0u);
    }
    return map(to_upper, COUNT_OF(to_upper), c);
}

u32 case_lower(u32 c) {
    if (c < 0x80) {
        return c + (c >= 'A' && c <= 'Z' ? 32u : 0u);
    }
    return map(to_lower, COUNT_OF(to_lower), c);
}

/* Length of the character at p, 1 to 4, from its bytes; 0 when they are not valid UTF-8. */
static i32 char_bytes(const u8 *p, i64 left) {
    u32 c = p[0];
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xc2 && c < 0xe0) {
        return left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    }
    if ((c & 0xf0) == 0xe0) {
        bool whole = left >= 3 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80;
        bool overlong = c == 0xe0 && whole && p[1] < 0xa0;
        bool surrogate = c == 0xed && whole && p[1] >= 0xa0;
        return whole && !overlong && !surrogate ? 3 : 0;
    }
    if (c >= 0xf0 && c < 0xf5) {
        bool whole =
            left >= 4 && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80;
        bool overlong = c == 0xf0 && whole && p[1] < 0x90;
        bool beyond = c == 0xf4 && whole && p[1] >= 0x90;
        return whole && !overlong && !beyond ? 4 : 0;
    }
    return 0;
}

bool utf8_valid(const char *bytes, i64 len, i64 *out_bad_offset) {
    const u8 *p = (const u8 *)bytes;
    i64 i = 0;
    while (i < len) {
        /* Eight bytes of ASCII without a NUL: no byte has its top bit, nor gets it by
         * subtracting 1. */
        while (i + 8 <= len) {
            u64 x = fn_load8(p + i);
            if (((x - 0x0101010101010101ULL) | x) & 0x8080808080808080ULL) {
                break;
            }
            i += 8;
        }
        if (i >= len) {
            break;
        }
        i32 bytes_here = p[i] ? char_bytes(p + i, len - i) : 0;
        if (!bytes_here) {
            if (out_bad_offset) {
                *out_bad_offset = i;
            }
            return false;
        }
        i += bytes_here;
    }
    return true;
}

static u32 decode(const u8 *p, i32 bytes) {
    switch (bytes) {
    case 2:
        return (p[0] & 31u) << 6 | (p[1] & 63u);
    case 3:
        return (p[0] & 15u) << 12 | (p[1] & 63u) << 6 | (p[2] & 63u);
    default:
        return (p[0] & 7u) << 18 | (p[1] & 63u) << 12 | (p[2] & 63u) << 6 | (p[3] & 63u);
    }
}

static i32 encode(u8 out[4], u32 c) {
    if (c < 0x80) {
        out[0] = (u8)c;
        return 1;
    }
    i32 bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (i32 i = bytes - 1; i > 0; i--) {
        out[i] = (u8)(0x80 | (c & 63));
        c >>= 6;
    }
    out[0] = (u8)((0xf00u >> bytes & 0xf0u) | c);
    return bytes;
}

/* Calls for both bodies: with out NULL only the size is counted. */
static i64 convert(u8 *out, struct sv s, u32 (*one)(u32)) {
    const u8 *p = (const u8 *)s.ptr;
    i64 n = 0;
    for (i64 i = 0; i < s.len && !stop_due((u64)i, (u64)i + 1);) {
        i32 bytes = char_bytes(p + i, s.len - i);
        u8 mapped[4] = {p[i], 0, 0, 0};
        i32 mapped_bytes = 1;
        if (bytes > 1) {
            mapped_bytes = encode(mapped, one(decode(p + i, bytes)));
        } else if (bytes == 1) {
            mapped[0] = (u8)one(p[i]);
        }
        if (out) {
            memcpy(out + n, mapped, (size_t)mapped_bytes);
        }
        n += mapped_bytes;
        i += bytes ? bytes : 1;
    }
    return n;
}

static bool is_ascii(struct sv s) {
    const u8 *p = (const u8 *)s.ptr;
    u64 all = 0;
    i64 i = 0;
    for (; i + 8 <= s.len; i += 8) {
        all |= fn_load8(p + i);
    }
    for (; i < s.len; i++) {
        all |= p[i];
    }
    return (all & 0x8080808080808080ULL) == 0;
}

i64 case_upper_bytes(struct sv s) {
    return is_ascii(s) ? s.len : convert(NULL, s, case_upper);
}

i64 case_lower_bytes(struct sv s) {
    return is_ascii(s) ? s.len : convert(NULL, s, case_lower);
}

void case_upper_write(u8 *out, struct sv s) {
    if (!is_ascii(s)) {
        convert(out, s, case_upper);
        return;
    }
    for (i64 i = 0; i < s.len; i++) {
        u8 c = (u8)s.ptr[i];
        out[i] = (u8)(c - ((u8)(c - 'a') < 26 ? 32 : 0));
    }
}

void case_lower_write(u8 *out, struct sv s) {
    if (!is_ascii(s)) {
        convert(out, s, case_lower);
        return;
    }
    for (i64 i = 0; i < s.len; i++) {
        u8 c = (u8)s.ptr[i];
        out[i] = (u8)(c + ((u8)(c - 'A') < 26 ? 32 : 0));
    }
}
