/* fn_regex.h: whether a text matches a regular expression, by an automaton that was finished before:
 * one load a character. Kernel text (see fn_int.h); needs fn_str.h.
 *
 * The automaton is a block of bytes, made by host/regex_table.c: this head, the first code points of
 * ranges beyond ASCII (u32), their classes (u8), and from `next_at` on a row of states per state
 * (u16), a column per class. */
#ifndef WF_DEFS_FN_REGEX_H
#define WF_DEFS_FN_REGEX_H

enum { REGEX_DEAD = 0, REGEX_FOUND = 1, REGEX_FIRST_STATE = 2 };
enum { REGEX_CLASS_END = 0 }; /* the text's end */

struct regex_table {
    u32 fault; /* of the pattern; 0 = none */
    u32 class_count;
    u32 range_count;
    u32 classes_at, next_at; /* bytes from the begin */
    u32 start;               /* the state to begin with */
    u8 ascii[128];           /* class of a character */
};

FN_SLOW u32 fn_regex_class(const struct regex_table *t, u32 c) {
    const u32 *first = (const u32 *)(t + 1);
    u32 lo = 0;
    u32 hi = t->range_count;
    while (hi - lo > 1) { /* the last range that begins at or before c */
        u32 mid = (lo + hi) / 2;
        lo = first[mid] <= c ? mid : lo;
        hi = first[mid] <= c ? hi : mid;
    }
    return ((const u8 *)t)[t->classes_at + lo];
}

/* The character at *at, which moves behind it. Text is valid UTF-8. */
FN u32 fn_regex_char(const u8 *p, u32 *at) {
    u32 c = p[(*at)++];
    u32 more = c < 0xe0 ? 1u : c < 0xf0 ? 2u : 3u;
    c &= 0x3fu >> more;
    for (; more > 0; more--) {
        c = c << 6 | (p[(*at)++] & 0x3fu);
    }
    return c;
}

/* b: the automaton. */
FN_SLOW b8 fn_regex_ahead(str a, str b, u8 *f) {
    const struct regex_table *t = (const struct regex_table *)b.addr;
    const u16 *next = (const u16 *)(b.addr + t->next_at);
    const u8 *p = fn_str_ptr(a);
    u32 s = t->start;
    u32 i = 0;
    if (t->fault) {
        *f = (u8)t->fault;
        return 0;
    }
    while (i < a.len && s >= REGEX_FIRST_STATE) {
        u32 kind = p[i] < 0x80 ? t->ascii[p[i++]] : fn_regex_class(t, fn_regex_char(p, &i));
        s = next[s * t->class_count + kind];
    }
    s = s >= REGEX_FIRST_STATE ? next[s * t->class_count + REGEX_CLASS_END] : s;
    return (b8)(s == REGEX_FOUND);
}

#endif
