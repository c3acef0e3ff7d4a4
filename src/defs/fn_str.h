/* fn_str.h: text: length, comparison, substring. Kernel text (see fn_int.h).
 *
 * Text is valid UTF-8; a character starts at every byte that is not 10xxxxxx. Eight bytes are
 * handled at a time. */
#ifndef WF_DEFS_FN_STR_H
#define WF_DEFS_FN_STR_H

#define TEXT_BYTES_MAX (1LL << 30) /* no text that is made is longer */

FN const u8 *fn_str_ptr(str a) {
    return (const u8 *)a.addr;
}

FN u64 fn_load8(const u8 *p) { /* first byte highest, so that integers order like bytes */
    return (u64)p[0] << 56 | (u64)p[1] << 48 | (u64)p[2] << 40 | (u64)p[3] << 32 | (u64)p[4] << 24 |
           (u64)p[5] << 16 | (u64)p[6] << 8 | (u64)p[7];
}

/* Eight bytes from an address that word8_at takes, the first lowest; 0 for those outside the text. */
FN u64 fn_text_word(const u8 *t, i64 at, i64 len) {
    if (at >= 0 && at + 8 <= len) {
        return word8_at(t + at);
    }
    u64 word = 0;
    NO_UNROLL for (i64 i = at < 0 ? 0 : at; i < at + 8 && i < len; i++) {
        word |= (u64)t[i] << 8 * (i - at);
    }
    return word;
}

FN u32 fn_prefix(const u8 *p, u32 len) {
    u32 r = 0;
    for (u32 i = 0; i < 4; i++) {
        r = r << 8 | (i < len ? (u32)p[i] : 0u);
    }
    return r;
}

FN u64 fn_tails8(u64 x) { /* 1 in the lowest bit of every byte 10xxxxxx */
    return (x >> 7) & ~(x >> 6) & 0x0101010101010101ULL;
}

FN_TAIL i32 fn_length(str a) {
    const u8 *p = fn_str_ptr(a);
    u32 tails = 0;
    NO_UNROLL for (i64 at = -(i64)word8_lead(p); at < (i64)a.len; at += 8) {
        tails += bits_set_u64(fn_tails8(fn_text_word(p, at, a.len)));
    }
    return (i32)(a.len - tails);
}

/* What lies behind prefixes that are equal. */
FN_TAIL b8 fn_rest_eq(const u8 *p, const u8 *q, u32 len) {
    u32 i = 4;
    NO_UNROLL for (; i + 8 <= len; i += 8) {
        if (fn_load8(p + i) != fn_load8(q + i)) {
            return 0;
        }
    }
    u32 rest = 0;
    NO_UNROLL for (; i < len; i++) {
        rest |= (u32)(p[i] ^ q[i]);
    }
    return (b8)(rest == 0);
}
FN b8 fn_str_eq(str a, str b) {
    if ((a.len != b.len) | (a.prefix != b.prefix)) {
        return 0;
    }
    return (b8)(a.len <= 4 || fn_rest_eq(fn_str_ptr(a), fn_str_ptr(b), a.len));
}

/* A number for each text of at most seven bytes; -1 for all others. */
FN i64 fn_short(str a) {
    u64 word = (u64)a.len << 56 | (u64)a.prefix << 24;
    if (a.len > 4) {
        const u8 *p = fn_str_ptr(a);
        if (a.len > 7) {
            return -1;
        }
        word |= (u64)p[4] << 16 | (a.len > 5 ? (u64)p[5] << 8 : 0) | (a.len > 6 ? (u64)p[6] : 0);
    }
    return (i64)word;
}

FN_TAIL i32 fn_rest_cmp(str a, str b) {
    const u8 *p = fn_str_ptr(a);
    const u8 *q = fn_str_ptr(b);
    u32 len = a.len < b.len ? a.len : b.len;
    u32 i = 4;
    NO_UNROLL for (; i + 8 <= len; i += 8) {
        u64 x = fn_load8(p + i);
        u64 y = fn_load8(q + i);
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    NO_UNROLL for (; i < len; i++) {
        if (p[i] != q[i]) {
            return p[i] < q[i] ? -1 : 1;
        }
    }
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}
/* Below, at or above 0 as a is before, at or after b in byte order. */
FN i32 fn_str_cmp(str a, str b) {
    if (a.prefix != b.prefix) {
        return a.prefix < b.prefix ? -1 : 1;
    }
    return fn_rest_cmp(a, b);
}

FN u32 fn_char_decode(const u8 *p, u32 bytes) {
    u32 c = bytes < 2 ? p[0] : p[0] & (0x7fu >> bytes);
    for (u32 i = 1; i < bytes; i++) {
        c = c << 6 | (p[i] & 63u);
    }
    return c;
}

/* Bytes of the character; written unless out is 0. */
FN u32 fn_char_encode(u8 *out, u32 c) {
    u32 bytes = c < 0x80 ? 1u : c < 0x800 ? 2u : c < 0x10000 ? 3u : 4u;
    if (out) {
        for (u32 i = bytes - 1; i > 0; i--) {
            out[i] = (u8)(0x80 | (c & 63));
            c >>= 6;
        }
        out[0] = (u8)(bytes == 1 ? c : (0xf00u >> bytes & 0xf0u) | c);
    }
    return bytes;
}

/* The byte offset `count` characters after offset `at`, at most len. */
FN_SLOW u32 fn_skip(const u8 *p, u32 at, u32 len, i64 count) {
    if (count >= (i64)(len - at)) {
        return len;
    }
    NO_UNROLL while (at + 8 <= len && count >= 8 && (fn_load8(p + at) & 0x8080808080808080ULL) == 0) {
        at += 8;
        count -= 8;
    }
    NO_UNROLL while (at < len && count > 0) {
        at++;
        NO_UNROLL while (at < len && (p[at] & 0xc0) == 0x80) {
            at++;
        }
        count--;
    }
    return at;
}

/* `count` characters from position `from` (1 is the first); positions before the text count too. A
 * count that reaches past the end, however large, stops there. */
FN_TAIL str fn_substr(str a, i64 from, i64 count, u8 *f) {
    *f = (u8)(count < 0 ? FAULT_SUBSTRING : *f);
    i64 wanted = count < 0 ? 0 : count;
    i64 end = from > 0 && wanted > I64_MAX - from ? I64_MAX : from + wanted;
    i64 start = from < 1 ? 1 : from;
    const u8 *p = fn_str_ptr(a);
    u32 first = fn_skip(p, 0, a.len, start - 1);
    u32 last = end > start ? fn_skip(p, first, a.len, end - start) : first;
    str r;
    r.len = last - first;
    r.prefix = fn_prefix(p + first, r.len);
    r.addr = a.addr + first;
    return r;
}

/* Bytes that every text has that is looked for: up to four each, those of the second lead behind
 * those of the first, as many leads as `count` says. A lead is moved up to the end of its word, so
 * that a word of the text times `up` is compared with it. Of texts in either case all bits of `fold`
 * are set before. */
struct leads {
    u32 bytes[2];
    u32 up[2];
    u32 fold;
    u32 count;
};
FN void fn_leads_none(struct leads *out, u32 fold) {
    out->bytes[0] = 0;
    out->bytes[1] = 0;
    out->up[0] = 0;
    out->up[1] = 0;
    out->fold = fold;
    out->count = 0;
}
FN void fn_leads_set(struct leads *out, u32 which, u32 bytes, u32 len) {
    out->up[which] = 1u << 8u * (4u - len);
    out->bytes[which] = (bytes | out->fold) * out->up[which];
    out->count = which + 1u;
}

/* Of a text that is found as it is. */
FN void fn_find_leads(struct leads *out, str b) {
    const u8 *p = (const u8 *)b.addr;
    const u32 len = b.len < 4u ? b.len : 4u;
    u32 bytes = 0;
    NO_UNROLL for (u32 i = 0; i < len; i++) {
        bytes |= (u32)p[i] << 8u * i;
    }
    fn_leads_none(out, 0);
    if (len) {
        fn_leads_set(out, 0, bytes, len);
    }
}

FN i32 fn_hex_value(u32 c) { /* -1: it is no digit */
    u32 low = c | 32;
    return c - '0' < 10u ? (i32)(c - '0') : low - 'a' < 6u ? (i32)(low - 'a') + 10 : -1;
}

#endif
