/* fn_like.h: LIKE over UTF-8, or over bytes. Kernel text (see fn_int.h); needs fn_str.h.
 *
 * Walks pattern and text once; on a mismatch it goes back to the last % only, one character further
 * into the text, which is enough: an earlier % could only give the later one less to choose from.
 * What stands behind a % is looked for by its first bytes, up to four, in words of eight: a thread
 * of the card that asks for bytes one by one waits for each of them. */
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

/* The bytes that a text must have where the pattern's next characters are met: literal ones, as
 * many as there are of four. */
struct like_lead {
    u32 bytes; /* the first lowest */
    u32 mask;  /* 0 = anything may follow */
};
FN struct like_lead fn_like_lead(const u8 *p, u32 pi, u32 len) {
    struct like_lead lead = {0, 0};
    NO_UNROLL for (u32 i = 0; i < 4u && pi + i < len; i++) {
        u32 byte = p[pi + i];
        if (byte == '%' || byte == '_' || byte == '\\') {
            break;
        }
        lead.bytes |= byte << 8u * i;
        lead.mask |= 255u << 8u * i;
    }
    return lead;
}

/* The first place from `from` on where these bytes are, at the text's end perhaps not whole; len =
 * there is none. */
FN_SLOW u32 fn_like_seek(const u8 *t, u32 from, u32 len, struct like_lead lead) {
    i64 at = (i64)from - (i64)word8_lead(t + from);
    u64 word = fn_text_word(t, at, len);
    NO_UNROLL for (; at < (i64)len; at += 8) {
        const u64 next = fn_text_word(t, at + 8, len);
        u32 hits = ((u32)word & lead.mask) == lead.bytes ? 1u : 0u;
        UNROLL for (u32 k = 1; k < 8; k++) {
            const u32 bytes = (u32)(word >> 8u * k | next << (64u - 8u * k));
            hits |= (bytes & lead.mask) == lead.bytes ? 1u << k : 0u;
        }
        hits &= at < (i64)from ? ~0u << (from - at) : ~0u;
        if (hits) {
            const i64 found = at + (i64)first_set_u32(hits);
            return found < (i64)len ? (u32)found : len;
        }
        if (stop_due((u64)at + 8u, (u64)at + 16u)) {
            return len;
        }
        word = next;
    }
    return len;
}

/* 1, 0, or 2 when matching came to a lone escape at the pattern's end. */
FN_SLOW b8 fn_like(str text, str pattern, i32 mode) {
    const u8 *t = (const u8 *)text.addr;
    const u8 *p = (const u8 *)pattern.addr;
    u32 ti = 0;
    u32 pi = 0;
    u32 back_p = 0; /* after the last %; 0 = none yet */
    u32 back_t = 0;
    struct like_lead lead = {0, 0}; /* what follows it */
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
            lead = fn_like_lead(p, pi, pattern.len);
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
        u32 known = 0; /* bytes that are met */
        if (lead.mask && mode != LIKE_NOCASE) {
            back_t = fn_like_seek(t, back_t, text.len, lead);
            known = bits_set_u32(lead.mask) / 8u;
            known = known <= text.len - back_t ? known : 0u;
        }
        while (lead.mask && mode == LIKE_NOCASE && back_t < text.len &&
               fn_like_fold(t[back_t], mode) != fn_like_fold(lead.bytes & 255u, mode) &&
               !fn_like_other(t[back_t], mode)) {
            back_t++;
        }
        ti = back_t + known;
        pi = back_p + known;
    }
}

/* As in PostgreSQL a lone escape at the pattern's end is an error where matching comes to it. */
FN b8 fn_like_checked(str a, str b, i32 mode, u8 *f) {
    b8 r = fn_like(a, b, mode);
    *f = (u8)(r == 2 ? FAULT_LIKE_ESCAPE : *f);
    return (b8)(r == 1);
}

/* What every text has that is LIKE a pattern. The first lead is of the first piece between %s that
 * has literal bytes, the second of the piece behind that which has most of them. None of a pattern
 * that begins with a literal: few rows come further. Letters that other characters stand for in
 * either case are no literals here. */
FN_SLOW void fn_like_leads(struct leads *out, str pattern, i32 mode) {
    const u8 *p = (const u8 *)pattern.addr;
    u32 most[2] = {0, 0};
    u32 which = 0;
    u32 run = 0;
    u32 bytes = 0;
    b8 escaped = 0;
    fn_leads_none(out, mode == LIKE_NOCASE ? 0x20202020u : 0u);
    if (pattern.len == 0 || p[0] != '%') {
        return;
    }
    NO_UNROLL for (u32 i = 0; i < pattern.len; i++) {
        const u32 byte = p[i];
        const u32 low = fn_like_fold(byte, mode);
        if (!escaped && byte == '\\') {
            escaped = 1;
            continue;
        }
        const b8 other = (b8)(mode == LIKE_NOCASE && (low == 'k' || low == 'i'));
        if (other || (!escaped && (byte == '%' || byte == '_'))) {
            which = !escaped && byte == '%' && most[0] ? 1u : which;
            run = 0;
            bytes = 0;
        } else if (run < 4u) {
            bytes |= byte << 8u * run++;
            if (run > most[which]) {
                most[which] = run;
                fn_leads_set(out, which, bytes, run);
            }
        }
        escaped = 0;
    }
}

#endif
