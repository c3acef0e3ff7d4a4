/* host_words.c: the words of kernel text that are too long for a header. */
#define _GNU_SOURCE
#include "defs/host_words.h"

u32 find_bytes(const u8 *p, u32 len, const u8 *q, u32 q_len, u32 from) {
    enum { STRETCH_MIN = 64, STRETCH_MAX = 1 << 20 };
    u64 at = from, stretch = STRETCH_MIN;
    while (at + q_len <= len) {
        u64 bytes = len - at < stretch + q_len - 1 ? len - at : stretch + q_len - 1;
        const u8 *hit = memmem(p + at, bytes, q, q_len);
        if (hit) {
            return (u32)(hit - p);
        }
        at += stretch;
        stretch = stretch * 2 < STRETCH_MAX ? stretch * 2 : STRETCH_MAX;
        if (stretch == STRETCH_MAX && stop_asked()) {
            break;
        }
    }
    return len + 1;
}
