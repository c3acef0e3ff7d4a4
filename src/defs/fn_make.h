/* fn_make.h: text that is made of text: joined, filled up, replaced. Kernel text (see fn_int.h); needs
 * fn_str.h and fn_str2.h.
 *
 * Every body writes to `out` and says how many bytes it wrote; with out 0 it only counts them. Who was
 * told to stop writes no more than was counted: both ways ask at the same places. */
#ifndef WF_DEFS_FN_MAKE_H
#define WF_DEFS_FN_MAKE_H

FN i64 fn_concat(u8 *out, str a, str b) {
    if (out) {
        copy_bytes(out, fn_str_ptr(a), a.len);
        copy_bytes(out + a.len, fn_str_ptr(b), b.len);
    }
    return (i64)a.len + (i64)b.len;
}

FN_SLOW i64 fn_pad(u8 *out, str a, i32 b) {
    i64 blanks = (i64)b - fn_length(a);
    blanks = blanks < 0 ? 0 : blanks;
    if (out) {
        copy_bytes(out, fn_str_ptr(a), a.len);
        for (i64 i = 0; i < blanks; i++) {
            out[a.len + i] = ' ';
        }
    }
    return (i64)a.len + blanks;
}

/* A text again and again: what is there already is copied, up to a megabyte at a time. */
FN_SLOW void fn_refill(u8 *out, str unit, i64 bytes) {
    i64 have = (i64)unit.len < bytes ? (i64)unit.len : bytes;
    i64 step = have;
    copy_bytes(out, fn_str_ptr(unit), (u64)have);
    while (have < bytes) {
        i64 more = step < bytes - have ? step : bytes - have;
        copy_bytes(out + have, out, (u64)more);
        if (stop_due((u64)have, (u64)(have + more))) {
            return;
        }
        have += more;
        step = step < 1 << 20 ? have : step;
    }
}

/* a cut to b characters, or filled up with c again and again on one side. */
FN_SLOW i64 fn_fill(u8 *out, str a, i32 b, str c, b8 left) {
    i64 have = fn_length(a);
    i64 unit = fn_length(c);
    i64 want = b < 0 ? 0 : b;
    i64 missing = unit > 0 && want > have ? want - have : 0;
    u32 kept = want < have ? fn_skip(fn_str_ptr(a), 0, a.len, want) : a.len;
    i64 fill = unit > 0 ? missing / unit * (i64)c.len : 0;
    if (unit > 0 && missing % unit) {
        fill += fn_skip(fn_str_ptr(c), 0, c.len, missing % unit);
    }
    if (out) {
        copy_bytes(left ? out + fill : out, fn_str_ptr(a), kept);
        fn_refill(left ? out : out + kept, c, fill);
    }
    return (i64)kept + fill;
}

FN_SLOW i64 fn_repeat(u8 *out, str a, i32 b) {
    i64 bytes = (i64)a.len * (b < 0 ? 0 : b);
    if (out) {
        fn_refill(out, a, bytes);
    }
    return bytes;
}

FN_SLOW i64 fn_replace(u8 *out, str a, str b, str c) {
    const u8 *p = fn_str_ptr(a);
    i64 n = 0;
    u32 from = 0;
    while (b.len > 0) {
        u32 at = fn_find(a, b, from);
        if (at > a.len || stop_due(from, at + (u64)b.len)) {
            break;
        }
        if (out) {
            copy_bytes(out + n, p + from, at - from);
            copy_bytes(out + n + (at - from), fn_str_ptr(c), c.len);
        }
        n += (i64)(at - from) + (i64)c.len;
        from = at + b.len;
    }
    if (out) {
        copy_bytes(out + n, p + from, a.len - from);
    }
    return n + (i64)(a.len - from);
}

/* No longer than what is replaced: as long as a at most. */
FN i64 fn_replace_most(str a, str b, str c) {
    return c.len <= b.len ? (i64)a.len : fn_replace((u8 *)0, a, b, c);
}

CONST_TABLE u8 fn_mark[1] = {0xff}; /* between the parts of a text; see fn_str2.h */

FN i64 fn_split_parts(u8 *out, str a, str b) {
    str mark;
    mark.len = 1;
    mark.prefix = 0xff000000u;
    mark.addr = (u64)fn_mark;
    return fn_replace(out, a, b, mark);
}

FN_SLOW i64 fn_reverse(u8 *out, str a) {
    const u8 *p = fn_str_ptr(a);
    for (u32 at = 0; out && at < a.len;) {
        u32 end = fn_char_end(p, at, a.len);
        copy_bytes(out + (a.len - end), p + at, end - at);
        if (stop_due(at, end)) {
            break;
        }
        at = end;
    }
    return (i64)a.len;
}

/* Bytes that a character of the text can take; 1 for an empty one. */
FN_SLOW i64 fn_longest_char(str s) {
    const u8 *p = fn_str_ptr(s);
    u32 most = 1;
    for (u32 at = 0; at < s.len && most < 4;) {
        u32 end = fn_char_end(p, at, s.len);
        most = end - at > most ? end - at : most;
        at = end;
    }
    return (i64)most;
}

FN_SLOW i64 fn_translate(u8 *out, str a, str b, str c) {
    const u8 *p = fn_str_ptr(a);
    const u8 *from = fn_str_ptr(b);
    const u8 *to = fn_str_ptr(c);
    i64 n = 0;
    u64 work = 0;
    for (u32 at = 0; at < a.len && !stop_due(work, work + b.len + 1);) {
        u32 end = fn_char_end(p, at, a.len);
        u32 i = 0;
        u32 k = 0; /* i and k step through b and c together */
        while (i < b.len) {
            u32 next = fn_char_end(from, i, b.len);
            if (next - i == end - at && fn_bytes_at(from + i, p + at, end - at)) {
                break;
            }
            i = next;
            k = k < c.len ? fn_char_end(to, k, c.len) : k;
        }
        u32 last = k < c.len ? fn_char_end(to, k, c.len) : k;
        const u8 *put = i < b.len ? to + k : p + at;
        u32 bytes = i < b.len ? last - k : end - at;
        if (out) {
            copy_bytes(out + n, put, bytes);
        }
        n += bytes;
        work += b.len + 1;
        at = end;
    }
    return n;
}

FN_SLOW i64 fn_chr(u8 *out, i32 a, u8 *f) {
    u32 c = (u32)a;
    b8 surrogate = (b8)(c - 0xd800 < 0x800);
    if (a <= 0 || c > 0x10ffff || surrogate) {
        *f = (u8)(a == 0 ? FAULT_CHR_NULL : a < 0 ? FAULT_CHR_NEGATIVE : FAULT_CHR_RANGE);
        return 0;
    }
    return fn_char_encode(out, c);
}

FN u8 fn_hex_digit(u32 x) { /* of the low four bits */
    x &= 15;
    return (u8)(x < 10 ? '0' + x : 'a' + (x - 10));
}

FN i64 fn_hex(u8 *out, i64 a) {
    u32 digits = (67 - zeros_above_u64((u64)a | 1)) / 4;
    for (u32 i = 0; out && i < digits; i++) {
        out[i] = fn_hex_digit((u32)((u64)a >> (4 * (digits - 1 - i))));
    }
    return (i64)digits;
}

FN i64 fn_hex_bytes(u8 *out, str a) { /* \x and the digits */
    for (u32 i = 0; out && i < a.len; i++) {
        u32 byte = fn_str_ptr(a)[i];
        out[2 + 2 * (u64)i] = fn_hex_digit(byte >> 4);
        out[3 + 2 * (u64)i] = fn_hex_digit(byte);
    }
    if (out) {
        out[0] = '\\';
        out[1] = 'x';
    }
    return 2 + 2 * (i64)a.len;
}

#endif
