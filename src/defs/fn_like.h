/* fn_like.h: LIKE over UTF-8, or over bytes. Kernel text (see fn_int.h).
 *
 * Walks pattern and text once; on a mismatch it goes back to the last % only, one character further
 * into the text, which is enough: an earlier % could only give the later one less to choose from.
 */
#ifndef WF_DEFS_FN_LIKE_H
#define WF_DEFS_FN_LIKE_H

/* How to compare: characters as they are, in either case, or bytes that are no text. */
enum { LIKE_CHARS, LIKE_NOCASE, LIKE_BYTES };

FN u32 fn_like_next(const u8 *t, u32 at, u32 len, i32 mode) { /* start of the next character */
    at++;
    while (mode != LIKE_BYTES && at < len && (t[at] & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

FN u32 fn_like_fold(u32 byte, i32 mode) {
    return byte | (mode == LIKE_NOCASE && byte >= 'A' && byte <= 'Z' ? 32u : 0u);
}

/* Whether two characters that are not ASCII may be in the text for one that is: see fn_like_same.
 */
FN b8 fn_like_other(u32 byte, i32 mode) {
    return (b8)(mode == LIKE_NOCASE && (byte == 0xe2 || byte == 0xc4));
}

/* Bytes of the text that stand for byte c of a pattern; 0 = it is something else. A pattern of
 * ASCII is in lower case met by the Kelvin sign, too (k), and by the capital I with a dot (i). */
FN u32 fn_like_same(u32 c, const u8 *t, u32 at, u32 len, i32 mode) {
    u32 folded = fn_like_fold(c, mode);
    if (fn_like_fold(t[at], mode) == folded) {
        return 1;
    }
    if (!fn_like_other(t[at], mode)) {
        return 0;
    }
    if (folded == 'k' && len - at > 2 && t[at] == 0xe2 && t[at + 1] == 0x84 && t[at + 2] == 0xaa) {
        return 3;
    }
    return folded == 'i' && len - at > 1 && t[at] == 0xc4 && t[at + 1] == 0xb0 ? 2 : 0;
}

/* 1, 0, or 2 when matching came to a lone escape at the pattern's end. */
FN_SLOW b8 fn_like(str text, str pattern, i32 mode) {
    const u8 *t = (const u8 *)text.addr;
    const u8 *p = (const u8 *)pattern.addr;
    u32 ti = 0;
    u32 pi = 0;
    u32 back_p = 0; /* after the last %; 0 = none yet */
    u32 back_t = 0;
    u32 lead = 0; /* the literal byte right after it, 0 = something else */
    for (u64 work = 1;; work++) {
        if (stop_due(work - 1, work)) {
            return 0;
        }
        if (pi < pattern.len && p[pi] == '%') {
            pi++;
            if (pi == pattern.len) {
                return 1;
            }
            if (p[pi] == '\\' && pi + 1 == pattern.len) {
                return 2;
            }
            lead = p[pi] == '%' || p[pi] == '_' || p[pi] == '\\' ? 0u : fn_like_fold(p[pi], mode);
            back_p = pi;
            back_t = ti;
        } else if (ti == text.len) {
            return (b8)(pi == pattern.len); /* what is left of the text only gets shorter */
        } else {
            if (pi < pattern.len && p[pi] == '_') {
                ti = fn_like_next(t, ti, text.len, mode);
                pi++;
                continue;
            }
            u32 escape = (u32)(pi < pattern.len && p[pi] == '\\');
            if (escape && pi + 1 == pattern.len) {
                return 2;
            }
            u32 same =
                pi + escape < pattern.len ? fn_like_same(p[pi + escape], t, ti, text.len, mode) : 0;
            if (same) {
                ti += same;
                pi += 1 + escape;
                continue;
            }
            if (!back_p) {
                return 0;
            }
            back_t = fn_like_next(t, back_t, text.len, mode);
        }
        while (lead && back_t < text.len && fn_like_fold(t[back_t], mode) != lead &&
               !fn_like_other(t[back_t], mode)) {
            back_t++;
        }
        ti = back_t;
        pi = back_p;
    }
}

/* As in PostgreSQL a lone escape at the pattern's end is an error where matching comes to it. */
FN b8 fn_like_checked(str a, str b, i32 mode, u8 *f) {
    b8 r = fn_like(a, b, mode);
    *f = (u8)(r == 2 ? FAULT_LIKE_ESCAPE : *f);
    return (b8)(r == 1);
}

#endif
