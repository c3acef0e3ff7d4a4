/* fn_regex.h: whether and where a text matches a regular expression, by an automaton that was finished
 * before: one load a character. Kernel text (see fn_int.h); needs fn_str.h and fn_str2.h.
 *
 * The automaton is a block of bytes, made by host/regex_table.c: this head, the first code points of
 * ranges beyond ASCII (u32), their classes (u8), and from `next_at` on a row of states per state
 * (u16), a column per class. One that says where a match is has a row of positions for every way
 * through the pattern (host/regex_auto.c): most steps leave them as they are, the others are numbers
 * of a struct regex_step, REGEX_STEP and more. */
#ifndef WF_DEFS_FN_REGEX_H
#define WF_DEFS_FN_REGEX_H

enum { REGEX_DEAD = 0, REGEX_FOUND = 1, REGEX_FIRST_STATE = 2 };
enum { REGEX_CLASS_END = 0 }; /* the text's end */
enum { REGEX_STEP = 0x8000 };
enum { REGEX_ROWS = 64 };  /* positions of all ways at once */
enum { REGEX_SLOTS = 20 }; /* of a match and its parts */
enum { REGEX_NO_WAY = 0xffff, REGEX_NEW_WAY = 0xfffe };
enum { REGEX_AT_BEGIN, REGEX_AFTER_OTHER, REGEX_AFTER_NEWLINE, REGEX_AFTER_WORD, REGEX_STARTS };

struct regex_step {
    u16 to;
    u16 match; /* the way that has matched before this character; REGEX_NO_WAY: none */
    u16 move_at;
    u16 move_count; /* 0: every way stays where it is */
    u32 noted;      /* positions that the match notes */
};

struct regex_move { /* where a way comes from, and what it notes */
    u32 from;
    u32 noted;
};

struct regex_table {
    u32 fault; /* of the pattern; 0 = none */
    u32 class_count;
    u32 range_count;
    u32 classes_at, next_at; /* bytes from the begin */
    u32 start;               /* the state to begin with */
    struct leads leads;      /* what a match has in it */
    u8 ascii[128];           /* class of a character */
    /* where a match is */
    u32 starts[REGEX_STARTS];         /* states to begin with, by what is before */
    u32 after_at, steps_at, moves_at; /* by class: which of them follows it (u8) */
    u32 width;                        /* positions of a way */
    b8 anchored;                      /* matches begin at the text's begin only */
    b8 all;                           /* every match is replaced */
    b8 behind;                        /* the position asked for is that behind the match */
    b8 no_part;                       /* the part asked for never takes part */
    i32 first, number;                /* character to begin at and match that is meant, from 1 */
    u32 part, part_count;             /* part that is asked for; how many there are */
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

FN void fn_regex_leads(struct leads *out, str b) {
    const struct regex_table *t = (const struct regex_table *)b.addr;
    fn_leads_none(out, t->leads.fold);
    UNROLL for (u32 i = 0; i < 2; i++) {
        out->bytes[i] = t->leads.bytes[i];
        out->up[i] = t->leads.up[i];
    }
    out->count = t->leads.count;
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

/* --- where a match is --- */

FN u32 fn_regex_kind(const struct regex_table *t, const u8 *p, u32 *at) {
    return p[*at] < 0x80 ? t->ascii[p[(*at)++]] : fn_regex_class(t, fn_regex_char(p, at));
}

FN_SLOW u32 fn_regex_before(const struct regex_table *t, const u8 *p, u32 from) {
    if (from == 0) {
        return REGEX_AT_BEGIN;
    }
    do {
        from--;
    } while (from > 0 && (p[from] & 0xc0) == 0x80);
    return ((const u8 *)t)[t->after_at + fn_regex_kind(t, p, &from)];
}

FN void fn_regex_row(i32 *to, const i32 *rows, u32 way, u32 width) {
    for (u32 i = 0; i < width; i++) {
        to[i] = way == REGEX_NEW_WAY ? -1 : rows[way * width + i];
    }
}

FN void fn_regex_note(i32 *row, u32 noted, u32 width, u32 at) {
    for (u32 i = 0; i < width && noted >> i; i++) {
        row[i] = noted >> i & 1u ? (i32)at : row[i];
    }
}

/* The first match from byte `from` on; positions of parts go to slots. */
FN_SLOW b8 fn_regex_find(const struct regex_table *t, str a, u32 from, i32 *slots) {
    const u16 *next = (const u16 *)((const u8 *)t + t->next_at);
    const struct regex_step *steps = (const struct regex_step *)((const u8 *)t + t->steps_at);
    const struct regex_move *moves = (const struct regex_move *)((const u8 *)t + t->moves_at);
    const u8 *p = fn_str_ptr(a);
    i32 rows[2 * REGEX_ROWS];
    u32 now = 0; /* which of the two sets is in use */
    b8 found = 0;
    u32 end = 0;
    if (from > a.len || (t->anchored && from > 0)) {
        return 0;
    }
    u32 s = t->starts[fn_regex_before(t, p, from)];
    for (u32 i = from; s != REGEX_DEAD && !stop_due(i, i + 1);) {
        const u32 at = i;
        const u32 kind = i < a.len ? fn_regex_kind(t, p, &i) : (u32)REGEX_CLASS_END;
        const u32 to = next[s * t->class_count + kind];
        if (to < REGEX_STEP) {
            s = to;
            continue;
        }
        const struct regex_step *step = &steps[to - REGEX_STEP];
        if (step->match != REGEX_NO_WAY) {
            found = 1;
            end = at;
            fn_regex_row(slots, rows + now, step->match, t->width);
            fn_regex_note(slots, step->noted, t->width, at);
        }
        for (u32 k = 0; k < step->move_count; k++) {
            i32 *row = rows + (REGEX_ROWS - now) + k * t->width;
            fn_regex_row(row, rows + now, moves[step->move_at + k].from, t->width);
            fn_regex_note(row, moves[step->move_at + k].noted, t->width, at);
        }
        now = step->move_count ? REGEX_ROWS - now : now;
        s = step->to;
    }
    slots[1] = (i32)end;
    return found;
}

/* Where to go on after a match: nothing was taken: one character further. */
FN u32 fn_regex_after(str a, const i32 *slots) {
    return slots[1] > slots[0] ? (u32)slots[1] : fn_char_end(fn_str_ptr(a), (u32)slots[1], a.len);
}

FN_SLOW u32 fn_regex_first(const struct regex_table *t, str a) { /* the byte to begin at */
    u32 at = 0;
    for (i32 i = t->first; i > 1 && at <= a.len; i--) {
        at = fn_char_end(fn_str_ptr(a), at, a.len);
    }
    return at;
}

/* The match that is asked for. */
FN_SLOW b8 fn_regex_match(const struct regex_table *t, str a, i32 *slots) {
    u32 from = fn_regex_first(t, a);
    for (i32 i = 1; fn_regex_find(t, a, from, slots); i++) {
        if (i == t->number) {
            return 1;
        }
        from = fn_regex_after(a, slots);
    }
    return 0;
}

FN b8 fn_regex_part(const struct regex_table *t, u32 part, const i32 *slots) {
    return (b8)(part <= t->part_count && slots[2 * part] >= 0 &&
                slots[2 * part + 1] >= slots[2 * part]);
}

FN const struct regex_table *fn_regex_of(str b, u8 *f) {
    const struct regex_table *t = (const struct regex_table *)b.addr;
    *f = t->fault ? (u8)t->fault : *f;
    return t;
}

FN_SLOW i32 fn_regex_count_ahead(str a, str b, u8 *f) {
    const struct regex_table *t = fn_regex_of(b, f);
    i32 slots[REGEX_SLOTS];
    i32 count = 0;
    if (t->fault) {
        return 0;
    }
    for (u32 from = fn_regex_first(t, a); fn_regex_find(t, a, from, slots);) {
        count++;
        from = fn_regex_after(a, slots);
    }
    return count;
}

FN_SLOW i32 fn_regex_instr_ahead(str a, str b, u8 *f) {
    const struct regex_table *t = fn_regex_of(b, f);
    i32 slots[REGEX_SLOTS];
    if (t->fault || t->no_part || !fn_regex_match(t, a, slots) ||
        !fn_regex_part(t, t->part, slots)) {
        return 0;
    }
    return fn_length(fn_part(a, 0, (u32)slots[2 * t->part + t->behind])) + 1;
}

FN_SLOW str fn_regex_substr_ahead(str a, str b, u8 *f) {
    const struct regex_table *t = fn_regex_of(b, f);
    i32 slots[REGEX_SLOTS];
    if (t->fault || t->no_part || !fn_regex_match(t, a, slots) ||
        !fn_regex_part(t, t->part, slots)) {
        return fn_part(a, 0, 0);
    }
    return fn_part(a, (u32)slots[2 * t->part], (u32)slots[2 * t->part + 1]);
}

FN i64 fn_regex_put(u8 *out, i64 n, const u8 *from, i64 len) {
    if (out) {
        copy_bytes(out + n, from, (u64)len);
    }
    return n + len;
}

/* What stands for a match: c, with \1 for a part, \& for the match. */
FN_SLOW i64 fn_regex_with(u8 *out, i64 n, const struct regex_table *t, str a, str c,
                          const i32 *slots) {
    const u8 *p = fn_str_ptr(c);
    for (u32 i = 0; i < c.len;) {
        u32 plain = i;
        while (plain < c.len && (p[plain] != '\\' || plain + 1 == c.len)) {
            plain++;
        }
        n = fn_regex_put(out, n, p + i, plain - i);
        if (plain == c.len) {
            break;
        }
        const u32 named = p[plain + 1];
        const u32 part = named == '&' ? 0 : named - '0';
        if (named == '&' || named - '1' < 9u) {
            if (fn_regex_part(t, part, slots)) {
                n = fn_regex_put(out, n, fn_str_ptr(a) + slots[2 * part],
                                 slots[2 * part + 1] - slots[2 * part]);
            }
        } else { /* no such escape: as written */
            n = fn_regex_put(out, n, p + plain, named == '\\' ? 1 : 2);
        }
        i = plain + 2;
    }
    return n;
}

FN_SLOW i64 fn_regex_replace_ahead(u8 *out, str a, str b, str c, u8 *f) {
    const struct regex_table *t = fn_regex_of(b, f);
    i32 slots[REGEX_SLOTS];
    i64 n = 0;
    u32 copied = 0;
    if (t->fault) {
        return 0;
    }
    u32 from = fn_regex_first(t, a);
    for (i32 i = 1; fn_regex_find(t, a, from, slots); i++) {
        if (t->all || i == t->number) {
            n = fn_regex_put(out, n, fn_str_ptr(a) + copied, slots[0] - (i64)copied);
            n = fn_regex_with(out, n, t, a, c, slots);
            copied = (u32)slots[1];
            if (!t->all) {
                break;
            }
        }
        from = fn_regex_after(a, slots);
    }
    return fn_regex_put(out, n, fn_str_ptr(a) + copied, a.len - (i64)copied);
}

/* What is between the matches; an empty match at an end of the text or of a part splits nothing. */
FN_SLOW i64 fn_regex_split_ahead(u8 *out, str a, str b, u8 *f) {
    const struct regex_table *t = fn_regex_of(b, f);
    i32 slots[REGEX_SLOTS];
    i64 n = 0;
    i32 copied = 0;
    i32 last = 0;
    if (t->fault) {
        return 0;
    }
    for (u32 from = 0; fn_regex_find(t, a, from, slots); from = fn_regex_after(a, slots)) {
        if (slots[0] < (i32)a.len && slots[1] > last) {
            n = fn_regex_put(out, n, fn_str_ptr(a) + copied, slots[0] - copied);
            if (out) {
                out[n] = 0xff;
            }
            n++;
            copied = slots[1];
        }
        last = slots[1];
    }
    return fn_regex_put(out, n, fn_str_ptr(a) + copied, (i64)a.len - copied);
}

#endif
