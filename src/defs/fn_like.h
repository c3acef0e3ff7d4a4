/* fn_like.h: LIKE over UTF-8. Kernel text (see fn_int.h).
 *
 * Walks pattern and text once; on a mismatch it goes back to the last % only, one character further
 * into the text, which is enough: an earlier % could only give the later one less to choose from.
 */
#ifndef WF_DEFS_FN_LIKE_H
#define WF_DEFS_FN_LIKE_H

FN u32 fn_like_next(const u8 *t, u32 at, u32 len) { /* start of the next character */
    at++;
    while (at < len && (t[at] & 0xc0) == 0x80) {
        at++;
    }
    return at;
}

FN u32 fn_like_fold(u32 byte, i32 nocase) {
    return byte | (nocase && byte >= 'A' && byte <= 'Z' ? 32u : 0u);
}

/* 1, 0, or 2 when matching came to a lone escape at the pattern's end. */
FN_SLOW b8 fn_like(str text, str pattern, i32 nocase) {
    const u8 *t = (const u8 *)text.addr;
    const u8 *p = (const u8 *)pattern.addr;
    u32 ti = 0;
    u32 pi = 0;
    u32 back_p = 0; /* after the last %; 0 = none yet */
    u32 back_t = 0;
    u32 lead = 0; /* the literal byte right after it, 0 = something else */
    for (;;) {
        if (pi < pattern.len && p[pi] == '%') {
            pi++;
            if (pi == pattern.len) {
                return 1;
            }
            if (p[pi] == '\\' && pi + 1 == pattern.len) {
                return 2;
            }
            lead = p[pi] == '%' || p[pi] == '_' || p[pi] == '\\' ? 0u : fn_like_fold(p[pi], nocase);
            back_p = pi;
            back_t = ti;
        } else if (ti == text.len) {
            return (b8)(pi == pattern.len); /* what is left of the text only gets shorter */
        } else {
            if (pi < pattern.len && p[pi] == '_') {
                ti = fn_like_next(t, ti, text.len);
                pi++;
                continue;
            }
            u32 escape = (u32)(pi < pattern.len && p[pi] == '\\');
            if (escape && pi + 1 == pattern.len) {
                return 2;
            }
            if (pi + escape < pattern.len &&
                fn_like_fold(p[pi + escape], nocase) == fn_like_fold(t[ti], nocase)) {
                ti++;
                pi += 1 + escape;
                continue;
            }
            if (!back_p) {
                return 0;
            }
            back_t = fn_like_next(t, back_t, text.len);
        }
        while (lead && back_t < text.len && fn_like_fold(t[back_t], nocase) != lead) {
            back_t++;
        }
        ti = back_t;
        pi = back_p;
    }
}

#endif
