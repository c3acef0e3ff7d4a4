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

/* Where q begins in p, at or after byte `from`; len + 1 when nowhere. In time that grows with len and
 * q_len, whatever they hold: places are found by two bytes in words of eight, and where too many of
 * them are none, the two-way algorithm of Crochemore and Perrin goes on. */

/* The highest bit of each byte that is 0, and perhaps of some after one. */
FN u64 fn_zero_bytes(u64 x) {
    return (x - 0x0101010101010101ULL) & ~x & 0x8080808080808080ULL;
}

struct cut_needle {
    i64 cut;    /* bytes from here on are compared first, forwards */
    i64 period; /* of those */
};

/* The greatest suffix of q, by the order of bytes or by the opposite one. */
FN_SLOW struct cut_needle fn_greatest_suffix(const u8 *q, i64 len, b8 opposite) {
    struct cut_needle best = {0, 1};
    i64 rival = 1; /* another suffix, of which `same` bytes are known to be as the best one's */
    i64 same = 0;
    for (u64 work = 1; rival + same < len && !stop_due(work - 1, work); work++) {
        u8 x = q[rival + same];
        u8 y = q[best.cut + same];
        if (x == y) {
            same++;
            if (same == best.period) {
                rival += same;
                same = 0;
            }
        } else if ((x < y) != opposite) {
            rival += same + 1;
            same = 0;
            best.period = rival - best.cut;
        } else {
            best.cut = rival;
            best.period = 1;
            rival++;
            same = 0;
        }
    }
    return best;
}

FN_SLOW u32 fn_find_hard(const u8 *p, i64 len, const u8 *q, i64 q_len, i64 from) {
    struct cut_needle one = fn_greatest_suffix(q, q_len, 0);
    struct cut_needle two = fn_greatest_suffix(q, q_len, 1);
    i64 cut = one.cut > two.cut ? one.cut : two.cut;
    i64 period = one.cut > two.cut ? one.period : two.period;
    i64 shared = 0; /* first bytes of q that are period bytes later, too */
    while (shared < cut && shared + period < q_len && q[shared] == q[shared + period]) {
        shared++;
    }
    b8 periodic = (b8)(shared == cut);
    if (!periodic) {
        period = (cut > q_len - cut ? cut : q_len - cut) + 1;
    }
    i64 known = 0; /* first bytes of q that are there, by what was found before */
    u64 work = 0;
    while (from + q_len <= len) {
        i64 i = cut > known ? cut : known;
        i64 first = i;
        while (i < q_len && q[i] == p[from + i]) {
            i++;
        }
        if (stop_due(work, work + (u64)(i - first) + 1)) {
            break;
        }
        work += (u64)(i - first) + 1;
        if (i < q_len) {
            from += i - cut + 1;
            known = 0;
            continue;
        }
        i = cut;
        while (i > known && q[i - 1] == p[from + i - 1]) {
            i--;
        }
        if (i <= known) {
            return (u32)from;
        }
        from += period;
        known = periodic ? q_len - period : 0;
    }
    return (u32)len + 1;
}

FN_SLOW u32 fn_find_bytes(const u8 *p, u32 len, const u8 *q, u32 q_len, u32 from) {
    enum { EASY = 256 }; /* bytes that may be compared in vain, and four for each one passed */
    if (q_len == 0 || (u64)from + q_len > len) {
        return q_len == 0 ? from : len + 1;
    }
    const u64 one = q[0] * 0x0101010101010101ULL;
    const u64 two = q[q_len > 1 ? 1 : 0] * 0x0101010101010101ULL;
    i64 at = (i64)from - (i64)word8_lead(p + from);
    u64 word = fn_text_word(p, at, len);
    u64 hits =
        fn_zero_bytes(word ^ one) & (at < (i64)from ? ~0ULL << 8u * (u32)(from - at) : ~0ULL);
    i64 vain = 0;
    NO_UNROLL while (at + (i64)q_len <= (i64)len) {
        const u64 next = fn_text_word(p, at + 8, len);
        if (q_len > 1) {
            hits &= fn_zero_bytes((word >> 8 | next << 56) ^ two);
        }
        NO_UNROLL for (; hits; hits &= hits - 1) {
            const i64 i = at + (i64)((63u - zeros_above_u64(hits & (0 - hits))) >> 3);
            u32 same = 0;
            if (i + (i64)q_len > (i64)len) {
                return len + 1;
            }
            while (same < q_len && p[i + same] == q[same]) {
                same++;
            }
            if (same == q_len) {
                return (u32)i;
            }
            vain += same + 1;
            if (vain > 4 * (i - (i64)from) + EASY) {
                return fn_find_hard(p, len, q, q_len, i + 1);
            }
        }
        at += 8;
        if (stop_due((u64)at - 8u, (u64)at)) {
            break;
        }
        word = next;
        hits = fn_zero_bytes(word ^ one);
    }
    return len + 1;
}

FN u32 fn_find(str a, str b, u32 from) {
    return fn_find_bytes(fn_str_ptr(a), a.len, fn_str_ptr(b), b.len, from);
}

/* Eight bytes a turn: each is spread over all bits before the next one comes. */
FN_SLOW i64 fn_mix_text(i64 a, str b) {
    const u8 *at = fn_str_ptr(b);
    u64 h = ((u64)a ^ b.len) * 0x9e3779b97f4a7c15ULL;
    for (u32 i = 0; i < b.len; i += 8) {
        u64 word = 0;
        for (u32 k = i; k < b.len && k < i + 8; k++) {
            word |= (u64)at[k] << 8 * (k - i);
        }
        h = (h ^ h >> 29 ^ word) * 0xbf58476d1ce4e5b9ULL;
        h = (h ^ h >> 32) * 0x94d049bb133111ebULL;
    }
    return (i64)(h ^ h >> 31);
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
