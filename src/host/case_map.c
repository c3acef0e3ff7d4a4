/* case_map.c: upper and lower case of characters and text (defs/fn_case.h), and UTF-8 checked. */
#include "host/chars.h"

#include "defs/host_words.h"
#include "defs/fn_str.h"
#include "defs/case_map.h"
#include "defs/fn_case.h"

u32 case_upper(u32 c) {
    return fn_case_upper(c);
}

u32 case_lower(u32 c) {
    return fn_case_lower(c);
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
        u32 bytes_here = p[i] ? fn_char_bytes(p + i, (u64)(len - i)) : 0;
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

i64 case_upper_bytes(struct sv s) {
    return fn_upper(NULL, str_from(s));
}

i64 case_lower_bytes(struct sv s) {
    return fn_lower(NULL, str_from(s));
}

void case_upper_write(u8 *out, struct sv s) {
    (void)fn_upper(out, str_from(s));
}

void case_lower_write(u8 *out, struct sv s) {
    (void)fn_lower(out, str_from(s));
}
