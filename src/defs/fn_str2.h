/* fn_str2.h: text searched, cut and trimmed; every result is a number or a part of the operand.
 * Kernel text (see fn_int.h); needs fn_str.h. Positions count characters from 1. */
#ifndef WF_DEFS_FN_STR2_H
#define WF_DEFS_FN_STR2_H

FN str fn_part(str a, u32 first, u32 last) { /* bytes [first, last) */
    const u8 *p = fn_str_ptr(a);
    str r;
    r.len = last - first;
    r.prefix = fn_prefix(p + first, r.len);
    r.addr = a.addr + first;
    return r;
}

FN b8 fn_bytes_at(const u8 *p, const u8 *q, u32 len) {
    for (u32 i = 0; i < len; i++) {
        if (p[i] != q[i]) {
            return 0;
        }
    }
    return 1;
}

/* The byte at or after `from` where b begins in a; a.len + 1 when nowhere. */
FN_SLOW u32 fn_find(str a, str b, u32 from) {
    const u8 *p = fn_str_ptr(a);
    const u8 *q = fn_str_ptr(b);
    struct lead lead = {0, 0};
    NO_UNROLL for (u32 i = 0; i < 4u && i < b.len; i++) {
        lead.bytes |= (u32)q[i] << 8u * i;
        lead.mask |= 255u << 8u * i;
    }
    if (b.len == 0) {
        return from;
    }
    u64 work = 0;
    for (u64 at = from; at + b.len <= a.len; at++) {
        at = fn_seek(p, (u32)at, a.len, lead);
        u32 same = 4;
        while (same < b.len && at + b.len <= a.len && p[at + same] == q[same]) {
            same++;
        }
        if (same >= b.len && at + b.len <= a.len) {
            return (u32)at;
        }
        if (stop_due(work, work + same)) {
            break;
        }
        work += same;
    }
    return a.len + 1;
}

FN i32 fn_strpos(str a, str b) {
    u32 at = fn_find(a, b, 0);
    return at > a.len ? 0 : fn_length(fn_part(a, 0, at)) + 1;
}

FN i32 fn_bytepos(str a, str b) {
    u32 at = fn_find(a, b, 0);
    return at > a.len ? 0 : (i32)at + 1;
}

FN b8 fn_starts(str a, str b) {
    return (b8)(b.len <= a.len && fn_bytes_at(fn_str_ptr(a), fn_str_ptr(b), b.len));
}

FN u32 fn_char_end(const u8 *p, u32 at, u32 len) {
    at++;
    while (at < len && (p[at] & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

/* The character at [first, last) of a occurs in b. */
FN_SLOW b8 fn_char_in(const u8 *p, u32 first, u32 last, str b) {
    const u8 *q = fn_str_ptr(b);
    for (u32 i = 0; i < b.len;) {
        u32 end = fn_char_end(q, i, b.len);
        if (end - i == last - first && fn_bytes_at(p + first, q + i, end - i)) {
            return 1;
        }
        i = end;
    }
    return 0;
}

FN b8 fn_byte_in(u8 byte, str b) {
    const u8 *p = fn_str_ptr(b);
    for (u32 i = 0; i < b.len; i++) {
        if (p[i] == byte) {
            return 1;
        }
    }
    return 0;
}

FN_SLOW str fn_trim(str a, str b, b8 left, b8 right) {
    const u8 *p = fn_str_ptr(a);
    u32 first = 0;
    u32 last = a.len;
    while (left && first < last) {
        u32 end = fn_char_end(p, first, last);
        if (!fn_char_in(p, first, end, b) || stop_due(first * (u64)b.len, end * (u64)b.len)) {
            break;
        }
        first = end;
    }
    while (right && last > first) {
        u32 start = last - 1;
        while (start > first && (p[start] & 0xc0) == 0x80) {
            start--;
        }
        if (!fn_char_in(p, start, last, b) || stop_due(start * (u64)b.len, last * (u64)b.len)) {
            break;
        }
        last = start;
    }
    return fn_part(a, first, last);
}

FN_SLOW str fn_trim_bytes(str a, str b, b8 left, b8 right) {
    const u8 *p = fn_str_ptr(a);
    u32 first = 0;
    u32 last = a.len;
    while (left && first < last && fn_byte_in(p[first], b)) {
        if (stop_due(first * (u64)b.len, (first + 1u) * (u64)b.len)) {
            break;
        }
        first++;
    }
    while (right && last > first && fn_byte_in(p[last - 1u], b)) {
        if (stop_due((last - 1u) * (u64)b.len, last * (u64)b.len)) {
            break;
        }
        last--;
    }
    return fn_part(a, first, last);
}

FN str fn_unpad(str a) {
    const u8 *p = fn_str_ptr(a);
    u32 last = a.len;
    while (last > 0 && p[last - 1] == ' ') {
        last--;
    }
    return fn_part(a, 0, last);
}

FN_SLOW str fn_left(str a, i32 n) {
    i64 count = n < 0 ? (i64)fn_length(a) + n : n;
    return fn_part(a, 0, count <= 0 ? 0 : fn_skip(fn_str_ptr(a), 0, a.len, count));
}

FN_SLOW str fn_right(str a, i32 n) {
    i64 drop = n < 0 ? -(i64)n : (i64)fn_length(a) - n;
    return fn_part(a, drop <= 0 ? 0 : fn_skip(fn_str_ptr(a), 0, a.len, drop), a.len);
}

/* At most n characters; blanks beyond them may go. */
FN_SLOW str fn_fit(str a, i32 n, u8 *f) {
    const u8 *p = fn_str_ptr(a);
    u32 end = (u32)n >= a.len ? a.len : fn_skip(p, 0, a.len, n);
    for (u32 i = end; i < a.len; i++) {
        if (p[i] != ' ') {
            *f = FAULT_TOO_LONG;
            return a;
        }
    }
    return fn_part(a, 0, end);
}

FN_SLOW str fn_split_part(str a, str b, i32 n, u8 *f) {
    *f = (u8)(n == 0 ? FAULT_FIELD_ZERO : *f);
    i32 count = 1; /* parts of a */
    for (u32 at = 0; n < 0 && b.len > 0;) {
        at = fn_find(a, b, at);
        if (at > a.len) {
            break;
        }
        count++;
        at += b.len;
    }
    i64 wanted = n < 0 ? (i64)count + 1 + n : n;
    u32 first = 0;
    for (i64 part = 1; wanted >= 1; part++) {
        u32 end = b.len > 0 ? fn_find(a, b, first) : a.len + 1;
        u32 stop = end > a.len ? a.len : end;
        if (part == wanted) {
            return fn_part(a, first, stop);
        }
        if (end > a.len) {
            break;
        }
        first = end + b.len;
    }
    return fn_part(a, 0, 0);
}

/* A text in parts has a byte 0xff between them, which no text has inside. */

/* Where the n-th mark of a is; a.len when there are fewer. */
FN_SLOW u32 fn_parts_mark(str a, i64 n) {
    const u8 *p = fn_str_ptr(a);
    for (u32 i = 0; i < a.len; i++) {
        if (p[i] == 0xff && --n == 0) {
            return i;
        }
    }
    return a.len;
}

FN_SLOW i64 fn_parts(str a) {
    const u8 *p = fn_str_ptr(a);
    i64 count = 1;
    for (u32 i = 0; i < a.len; i++) {
        count += p[i] == 0xff;
    }
    return count;
}

FN_SLOW i64 fn_parts_width(str a) {
    i64 count = fn_parts(a), width = 1;
    while (width < count) {
        width *= 2;
    }
    return width;
}

FN_SLOW str fn_parts_head(str a, i64 n) {
    return fn_part(a, 0, fn_parts_mark(a, n));
}

FN_SLOW str fn_parts_tail(str a, i64 n) {
    u32 mark = fn_parts_mark(a, n);
    return fn_part(a, mark < a.len ? mark + 1 : mark, a.len);
}

FN_SLOW i32 fn_ascii(str a) {
    const u8 *p = fn_str_ptr(a);
    if (a.len == 0) {
        return 0;
    }
    u32 c = p[0];
    u32 more = c < 0x80 ? 0u : c < 0xe0 ? 1u : c < 0xf0 ? 2u : 3u;
    u32 r = more == 0 ? c : c & (0x3fu >> more);
    for (u32 i = 1; i <= more && i < a.len; i++) {
        r = r << 6 | (p[i] & 0x3fu);
    }
    return (i32)r;
}

FN_SLOW str fn_subbytes(str a, i64 from, i64 count, u8 *f) {
    *f = (u8)(count < 0 ? FAULT_SUBSTRING : *f);
    i64 wanted = count < 0 ? 0 : count;
    i64 end = from > 0 && wanted > I64_MAX - from ? I64_MAX : from + wanted;
    i64 start = from < 1 ? 1 : from;
    i64 len = (i64)a.len + 1;
    start = start > len ? len : start;
    end = end > len ? len : end < start ? start : end;
    return fn_part(a, (u32)(start - 1), (u32)(end - 1));
}

FN i32 fn_get_byte(str a, i32 n, u8 *f) {
    b8 there = (b8)(n >= 0 && (u32)n < a.len);
    *f = (u8)(there ? *f : FAULT_SUBSCRIPT);
    return there ? fn_str_ptr(a)[n] : 0;
}

FN i32 fn_get_bit(str a, i64 n, u8 *f) {
    b8 there = (b8)(n >= 0 && n < (i64)a.len * 8);
    *f = (u8)(there ? *f : FAULT_SUBSCRIPT);
    return there ? fn_str_ptr(a)[n >> 3] >> (n & 7) & 1 : 0;
}

FN i64 fn_bit_count(str a) {
    i64 count = 0;
    for (u32 i = 0; i < a.len; i++) {
        u32 byte = fn_str_ptr(a)[i];
        for (; byte; byte &= byte - 1) {
            count++;
        }
    }
    return count;
}

FN i128 fn_ordered(str a) {
    u64 high = 0;
    u64 low = 0;
    for (u32 i = 16; i < 24 && a.len == 32; i++) {
        high = high << 8 | fn_str_ptr(a)[i];
        low = low << 8 | fn_str_ptr(a)[i + 8];
    }
    return (i128)((u128)high << 64 | low);
}

#endif
