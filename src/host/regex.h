/* regex.h: regular expressions: PostgreSQL's advanced ones without back references and look-around.
 *
 * A pattern is compiled into a small program without pointers. regex_search follows all ways
 * through it at once, step by step: the reference. regex_auto.h runs the same program faster. */
#ifndef WF_HOST_REGEX_H
#define WF_HOST_REGEX_H

#include "base/base.h"

enum { REGEX_INSTS_MAX = 1500, REGEX_RANGES_MAX = 600, REGEX_GROUPS_MAX = 10 };

/* In place of a part's number: the first parenthesised part if there is one, else the match. */
enum { REGEX_FIRST_PART = -2147483647 };

enum regex_op {
    RE_CHAR,
    RE_ANY,
    RE_CLASS,
    RE_SPLIT,
    RE_JUMP,
    RE_SAVE,
    RE_BEGIN,      /* ^ */
    RE_END,        /* $ */
    RE_TEXT_BEGIN, /* \A */
    RE_TEXT_END,   /* \Z */
    RE_WORD_BEGIN,
    RE_WORD_END,
    RE_WORD_EDGE,
    RE_WORD_INSIDE,
    RE_MATCH,
};

/* In place of a range's first code point, with the number of a class of chars.h. */
enum { REGEX_CLASS_BIT = 1 << 30 };

struct regex_inst {
    u8 op;      /* enum regex_op */
    u8 negated; /* CLASS */
    i16 x, y;   /* SPLIT, JUMP: relative; the first way is preferred. CLASS: ranges [x, y) */
    u32 c;      /* CHAR: code point; SAVE: slot */
};

struct regex {
    i32 inst_count, range_count, group_count;
    b8 nocase;      /* a character stands for both its cases */
    b8 newline;     /* . and [^…] stop at a line's end */
    b8 line_anchor; /* ^ and $ match at a line's end too */
    b8 shortest;    /* of the matches that begin first, the shortest is meant */
    struct regex_inst insts[REGEX_INSTS_MAX];
    u32 ranges[REGEX_RANGES_MAX][2];
};

/* Flags: i nocase, c case, n m newline-sensitive, p partly (.), w inversely (^ $), x expanded,
 * q literal, s t default, g ignored. Returns the fault (REGEX, REGEX_OPTION, NO_REGEX). */
u8 regex_compile(struct regex *out, struct sv pattern, struct sv flags);
/* The leftmost match at or after byte `from`, the longest unless `shortest`. Byte offsets of group
 * i go to slots[2 i], slots[2 i + 1] (-1 = took no part); slots may be NULL. */
bool regex_search(const struct regex *re, struct sv text, i64 from,
                  i64 slots[2 * REGEX_GROUPS_MAX]);

/* For regex_auto.c: whether a CHAR, ANY or CLASS takes a character. */
bool regex_takes(const struct regex *re, const struct regex_inst *inst, u32 c);

/* The character at *p, which moves behind it. */
static inline u32 regex_next_char(const u8 **p, const u8 *end) {
    u32 c = *(*p)++;
    i32 more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    u32 r = more == 0 ? c : c & (0x3fu >> more);
    for (; more > 0 && *p < end; more--) {
        r = r << 6 | (*(*p)++ & 0x3fu);
    }
    return r;
}

#endif
