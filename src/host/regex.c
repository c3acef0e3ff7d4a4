/* regex.c: regular expressions compiled to a program and run by a machine of parallel threads.
 *
 * The parser writes instructions as it reads; jumps are relative, so that a quantifier moves or
 * copies what its atom became. The machine keeps, per position of the text, the set of instructions
 * that some way through the pattern has reached, in order of preference (Pike's construction): no
 * pattern can make it slow, which no matcher that tries one way after the other can say. As POSIX
 * wants it, the leftmost match wins and of those the longest, unless the pattern prefers short
 * ones. Everything lies on the stack; limits are errors, not slow paths. See decision 0010. */
#include "host/regex.h"

#include "base/stop.h"
#include "defs/fault.h"
#include "host/chars.h"

struct parser {
    struct regex *re;
    const u8 *p, *end;
    b8 expanded;
    u8 prefers; /* enum preference, of what was parsed last */
    i32 depth;
    u8 fault;
};

enum { DEPTH_MAX = 100, REPEAT_MAX = 255 };

/* Of an atom, a branch, an expression: PREFERS_NONE leaves it to what comes behind. */
enum preference { PREFERS_NONE, PREFERS_LONGEST, PREFERS_SHORTEST };

static void fail(struct parser *s, u8 fault) {
    s->fault = s->fault ? s->fault : fault;
}

static void emit(struct parser *s, struct regex_inst inst) {
    if (s->re->inst_count >= REGEX_INSTS_MAX - 2) {
        fail(s, FAULT_REGEX_SIZE);
        return;
    }
    s->re->insts[s->re->inst_count++] = inst;
}

static void insert(struct parser *s, i32 at, struct regex_inst inst) {
    emit(s, inst);
    if (!s->fault) {
        struct regex_inst *insts = s->re->insts;
        memmove(insts + at + 1, insts + at, sizeof *insts * (size_t)(s->re->inst_count - 1 - at));
        insts[at] = inst;
    }
}

static void add_range(struct parser *s, u32 lo, u32 hi) {
    if (s->re->range_count >= REGEX_RANGES_MAX) {
        fail(s, FAULT_REGEX_SIZE);
        return;
    }
    s->re->ranges[s->re->range_count][0] = lo;
    s->re->ranges[s->re->range_count++][1] = hi;
}

/* Both cases of a range of letters; others are as they are. */
static void add_folded(struct parser *s, u32 lo, u32 hi) {
    add_range(s, lo, hi);
    if (s->re->nocase && hi - lo < 256) {
        for (u32 c = lo; c <= hi && !s->fault; c++) {
            u32 lower = case_lower(c), upper = case_upper(c);
            if (lower != c) {
                add_range(s, lower, lower);
            }
            if (upper != c) {
                add_range(s, upper, upper);
            }
        }
    }
}

/* A class of characters stands among the ranges as REGEX_CLASS_BIT and its number. */
static const struct {
    const char *name;
    u8 class;
} classes[] = {
    {"alpha", CLASS_ALPHA}, {"alnum", CLASS_ALNUM}, {"upper", CLASS_UPPER},
    {"lower", CLASS_LOWER}, {"space", CLASS_SPACE}, {"punct", CLASS_PUNCT},
    {"cntrl", CLASS_CNTRL}, {"graph", CLASS_GRAPH}, {"print", CLASS_PRINT},
};

static bool add_class(struct parser *s, struct sv name) {
    for (i64 i = 0; i < COUNT_OF(classes); i++) {
        if (sv_eq(name, sv_from(classes[i].name))) {
            bool cased = classes[i].class == CLASS_UPPER || classes[i].class == CLASS_LOWER;
            u32 class = s->re->nocase && cased ? CLASS_ALPHA : classes[i].class;
            add_range(s, REGEX_CLASS_BIT | class, REGEX_CLASS_BIT | class);
            return true;
        }
    }
    if (sv_eq(name, SV("blank"))) {
        add_range(s, '\t', '\t');
        add_range(s, ' ', ' ');
        return true;
    }
    bool hex = sv_eq(name, SV("xdigit"));
    if (hex) {
        add_range(s, 'A', 'F');
        add_range(s, 'a', 'f');
    }
    if (hex || sv_eq(name, SV("digit"))) {
        add_range(s, '0', '9');
        return true;
    }
    return false;
}

/* \d \w \s; false when c is none of them. */
static bool add_shorthand(struct parser *s, u8 c) {
    switch (c | 32) {
    case 'd':
        return add_class(s, SV("digit"));
    case 's':
        return add_class(s, SV("space"));
    case 'w':
        add_range(s, '_', '_');
        return add_class(s, SV("alnum"));
    default:
        return false;
    }
}

/* A character by its number, in `least` to `most` digits of the base. */
static u32 numbered_char(struct parser *s, u32 base, i32 least, i32 most) {
    const u32 last = 0x10ffff;
    u32 value = 0;
    i32 count = 0;
    for (; count < most && s->p < s->end; count++, s->p++) {
        u8 c = *s->p, low = (u8)(c | 32);
        u32 digit = (u8)(c - '0') < 10    ? (u32)(c - '0')
                    : (u8)(low - 'a') < 6 ? (u32)(low - 'a' + 10)
                                          : base;
        if (digit >= base) {
            break;
        }
        value = MIN_OF(value * base + digit, last + 1);
    }
    if (count < least || value > last) {
        fail(s, FAULT_REGEX);
        return 0;
    }
    return value;
}

/* Digits behind a backslash that are no back reference: there are not so many groups. */
static bool is_octal(const struct parser *s) {
    i64 number = 0;
    const u8 *p = s->p;
    for (; p < s->end && (u8)(*p - '0') < 10; p++) {
        number = MIN_OF(number * 10 + (*p - '0'), I32_MAX);
    }
    return p - s->p > 1 && number > s->re->group_count && *s->p < '8';
}

/* The character an escape stands for; *p is behind the backslash. */
static u32 escaped_char(struct parser *s) {
    u8 c = *s->p;
    bool letter = (u8)((c | 32) - 'a') < 26 || (u8)(c - '0') < 10;
    if (!letter) {
        return regex_next_char(&s->p, s->end);
    }
    s->p++;
    switch (c) {
    case 'a':
        return 7;
    case 'b':
        return 8;
    case 'B':
        return '\\';
    case 'e':
        return 27;
    case 'f':
        return 12;
    case 'n':
        return 10;
    case 'r':
        return 13;
    case 't':
        return 9;
    case 'v':
        return 11;
    case 'x':
        return numbered_char(s, 16, 1, 255);
    case 'u':
        return numbered_char(s, 16, 4, 4);
    case 'U':
        return numbered_char(s, 16, 8, 8);
    case 'c':
        if (s->p == s->end) {
            fail(s, FAULT_REGEX);
            return 0;
        }
        return regex_next_char(&s->p, s->end) & 31;
    case '0':
        s->p--;
        return numbered_char(s, 8, 1, 3);
    default:
        s->p--;
        if ((u8)(c - '1') < 9 && is_octal(s)) {
            return numbered_char(s, 8, 1, 3);
        }
        fail(s, (u8)(c - '1') < 9 ? FAULT_NO_REGEX : FAULT_REGEX);
        return 0;
    }
}

static bool at(const struct parser *s, const char *text) {
    i64 len = (i64)strlen(text);
    return s->end - s->p >= len && memcmp(s->p, text, (size_t)len) == 0;
}

/* One end of a range in brackets. */
static u32 bracket_char(struct parser *s) {
    if (at(s, "[.") || at(s, "[=")) { /* [.x.] is x */
        u8 kind = s->p[1];
        s->p += 2;
        u32 c = s->p < s->end ? regex_next_char(&s->p, s->end) : 0;
        if (s->end - s->p < 2 || s->p[0] != kind || s->p[1] != ']') {
            fail(s, FAULT_REGEX);
            return 0;
        }
        s->p += 2;
        return c;
    }
    if (*s->p == '\\' && s->p + 1 < s->end) {
        s->p++;
        return escaped_char(s);
    }
    return regex_next_char(&s->p, s->end);
}

static void parse_bracket_item(struct parser *s) {
    if (at(s, "[:")) {
        const u8 *name = s->p + 2;
        const u8 *stop = name;
        while (stop < s->end && *stop != ':') {
            stop++;
        }
        s->p = stop + 2;
        if (s->p > s->end || !add_class(s, (struct sv){(const char *)name, stop - name})) {
            s->p = s->end;
            fail(s, FAULT_REGEX);
        }
        return;
    }
    if (*s->p == '\\' && s->p + 1 < s->end && add_shorthand(s, s->p[1])) {
        s->p += 2;
        return;
    }
    u32 lo = bracket_char(s), hi = lo;
    if (s->end - s->p >= 2 && s->p[0] == '-' && s->p[1] != ']') {
        s->p++;
        hi = bracket_char(s);
        if (hi < lo) {
            fail(s, FAULT_REGEX);
        }
    }
    add_folded(s, lo, MAX_OF(lo, hi));
}

static void parse_bracket(struct parser *s) {
    struct regex_inst inst = {.op = RE_CLASS, .x = (i16)s->re->range_count};
    if (s->p < s->end && *s->p == '^') {
        inst.negated = 1;
        s->p++;
    }
    bool first = true;
    while (s->p < s->end && (*s->p != ']' || first) && !s->fault) {
        first = false;
        parse_bracket_item(s);
    }
    if (s->p >= s->end) {
        fail(s, FAULT_REGEX);
        return;
    }
    s->p++;
    if (inst.negated && s->re->newline) {
        add_range(s, '\n', '\n');
    }
    inst.y = (i16)s->re->range_count;
    emit(s, inst);
}

static void emit_char(struct parser *s, u32 c) {
    emit(s, (struct regex_inst){.op = RE_CHAR, .c = c});
}

static void parse_escape(struct parser *s) {
    static const struct {
        char letter;
        u8 op;
    } places[] = {{'A', RE_TEXT_BEGIN}, {'Z', RE_TEXT_END},  {'m', RE_WORD_BEGIN},
                  {'M', RE_WORD_END},   {'y', RE_WORD_EDGE}, {'Y', RE_WORD_INSIDE}};
    if (s->p >= s->end) {
        fail(s, FAULT_REGEX);
        return;
    }
    u8 c = *s->p;
    for (i64 i = 0; i < COUNT_OF(places); i++) {
        if (places[i].letter == c) {
            s->p++;
            emit(s, (struct regex_inst){.op = places[i].op});
            return;
        }
    }
    struct regex_inst inst = {.op = RE_CLASS, .x = (i16)s->re->range_count, .negated = c < 'a'};
    if (add_shorthand(s, c)) {
        s->p++;
        inst.y = (i16)s->re->range_count;
        emit(s, inst);
        return;
    }
    emit_char(s, escaped_char(s));
}

static void parse_alternatives(struct parser *s);

static void parse_group(struct parser *s) {
    bool captures = true;
    if (s->p < s->end && *s->p == '?') {
        bool plain = s->p + 1 < s->end && s->p[1] == ':';
        if (!plain) {
            const u8 *at = s->p + 1 < s->end && s->p[1] == '<' ? s->p + 2 : s->p + 1;
            bool known = at < s->end && (*at == '=' || *at == '!');
            fail(s, known ? FAULT_NO_REGEX : FAULT_REGEX);
            return;
        }
        s->p += 2;
        captures = false;
    }
    i32 group = captures ? ++s->re->group_count : 0;
    captures = captures && group < REGEX_GROUPS_MAX;
    if (captures) {
        emit(s, (struct regex_inst){.op = RE_SAVE, .c = (u32)(2 * group)});
    }
    if (++s->depth > DEPTH_MAX) {
        fail(s, FAULT_REGEX_SIZE);
        return;
    }
    parse_alternatives(s);
    s->depth--;
    if (s->p >= s->end || *s->p != ')') {
        fail(s, FAULT_REGEX);
        return;
    }
    s->p++;
    if (captures) {
        emit(s, (struct regex_inst){.op = RE_SAVE, .c = (u32)(2 * group + 1)});
    }
}

/* An atom; false at what ends a branch. */
static bool parse_atom(struct parser *s) {
    u8 c = *s->p;
    s->prefers = PREFERS_NONE;
    if (c == '|' || (c == ')' && s->depth > 0)) {
        return false;
    }
    switch (c) {
    case '(':
        s->p++;
        parse_group(s);
        return true;
    case '[':
        s->p++;
        if (at(s, "[:<:]]") || at(s, "[:>:]]")) {
            emit(s, (struct regex_inst){.op = s->p[2] == '<' ? RE_WORD_BEGIN : RE_WORD_END});
            s->p += 6;
        } else {
            parse_bracket(s);
        }
        return true;
    case '.':
    case '^':
    case '$':
        s->p++;
        emit(s, (struct regex_inst){.op = c == '.' ? RE_ANY : c == '^' ? RE_BEGIN : RE_END});
        return true;
    case '\\':
        s->p++;
        parse_escape(s);
        return true;
    case '*':
    case '+':
    case '?':
    case ')':
        fail(s, FAULT_REGEX);
        return true;
    default:
        if (c == '{' && s->p + 1 < s->end && (u8)(s->p[1] - '0') < 10) {
            fail(s, FAULT_REGEX);
            return true;
        }
        emit_char(s, regex_next_char(&s->p, s->end));
        return true;
    }
}

static bool parse_number(struct parser *s, i32 *out) {
    i32 digits = 0;
    *out = 0;
    for (; s->p < s->end && (u8)(*s->p - '0') < 10; s->p++, digits++) {
        *out = MIN_OF(*out * 10 + (*s->p - '0'), 1000);
    }
    return digits > 0;
}

/* How often; most -1 = any number of times. False when there is no quantifier. {m} alone leaves the
 * atom's preference as it is, {m,m} does not. */
static bool parse_quantifier(struct parser *s, i32 *least, i32 *most, bool *fixed) {
    u8 c = s->p < s->end ? *s->p : 0;
    bool bounds = c == '{' && s->p + 1 < s->end && (u8)(s->p[1] - '0') < 10;
    if (c != '*' && c != '+' && c != '?' && !bounds) {
        return false;
    }
    s->p++;
    *least = c == '+';
    *most = c == '?' ? 1 : -1;
    *fixed = false;
    if (!bounds) {
        return true;
    }
    parse_number(s, least);
    *most = *least;
    *fixed = true;
    if (s->p < s->end && *s->p == ',') {
        s->p++;
        *fixed = false;
        *most = parse_number(s, most) ? *most : -1;
    }
    if (s->p >= s->end || *s->p++ != '}' || *least > REPEAT_MAX || *most > REPEAT_MAX ||
        (*most >= 0 && *most < *least)) {
        fail(s, FAULT_REGEX);
    }
    return true;
}

static struct regex_inst split(i32 x, i32 y, bool lazy) {
    return (struct regex_inst){.op = RE_SPLIT, .x = (i16)(lazy ? y : x), .y = (i16)(lazy ? x : y)};
}

/* The atom at [from, …) repeated. */
static void repeat(struct parser *s, i32 from, i32 least, i32 most, bool lazy) {
    i32 len = s->re->inst_count - from;
    struct regex_inst *insts = s->re->insts;
    i32 copies = most < 0 ? MAX_OF(least, 1) : most;
    if (most == 0) {
        s->re->inst_count = from;
        return;
    }
    if (copies * (len + 1) + from > REGEX_INSTS_MAX - 4) {
        fail(s, FAULT_REGEX_SIZE);
        return;
    }
    for (i32 i = 1; i < copies; i++) {
        for (i32 k = 0; k < len; k++) {
            emit(s, insts[from + k]);
        }
    }
    i32 optional = most < 0 ? (least == 0) : most - least; /* copies from the end that may miss */
    for (i32 i = 0; i < optional && most >= 0; i++) {
        i32 start = from + (copies - 1 - i) * len;
        insert(s, start, split(1, s->re->inst_count - start + 1, lazy));
    }
    if (most < 0) {
        i32 start = from + (copies - 1) * len;
        emit(s, split(start - s->re->inst_count, 1, lazy));
        if (least == 0) {
            insert(s, start, split(1, len + 2, lazy));
        }
    }
}

static void skip_expanded(struct parser *s) {
    while (s->expanded && s->p < s->end) {
        if (*s->p == ' ' || (*s->p >= '\t' && *s->p <= '\r')) {
            s->p++;
        } else if (*s->p == '#') {
            while (s->p < s->end && *s->p != '\n') {
                s->p++;
            }
        } else {
            break;
        }
    }
}

/* An atom with {1,1}? is to be as short as it can, whatever the quantifiers in it say. */
static void shorten(struct regex *re, i32 from) {
    for (i32 pc = from; pc < re->inst_count; pc++) {
        struct regex_inst *inst = &re->insts[pc];
        bool loop = inst->op == RE_SPLIT && inst->x < 0;
        bool option = inst->op == RE_SPLIT && inst->x == 1 && inst->y > 1 &&
                      re->insts[pc + inst->y - 1].op != RE_JUMP;
        if (loop || option) {
            i16 x = inst->x;
            inst->x = inst->y;
            inst->y = x;
        }
    }
}

/* A branch prefers what the first of its atoms does that prefers anything. */
static void parse_branch(struct parser *s) {
    u8 prefers = PREFERS_NONE;
    for (skip_expanded(s); s->p < s->end && !s->fault; skip_expanded(s)) {
        i32 from = s->re->inst_count, least, most;
        bool fixed;
        if (!parse_atom(s)) {
            break;
        }
        skip_expanded(s);
        if (!s->fault && parse_quantifier(s, &least, &most, &fixed)) {
            bool lazy = s->p < s->end && *s->p == '?';
            s->p += lazy;
            s->prefers = fixed ? s->prefers : lazy ? PREFERS_SHORTEST : PREFERS_LONGEST;
            if (!s->fault) {
                repeat(s, from, least, most, lazy);
            }
            if (!s->fault && lazy && !fixed && least == most) {
                shorten(s->re, from);
            }
            bool twice = s->p < s->end && (*s->p == '*' || *s->p == '+' || *s->p == '?');
            if (twice) {
                fail(s, FAULT_REGEX);
            }
        }
        prefers = prefers ? prefers : s->prefers;
    }
    s->prefers = prefers;
}

static void parse_alternatives(struct parser *s) {
    i32 from = s->re->inst_count;
    bool choice = false;
    parse_branch(s);
    while (s->p < s->end && *s->p == '|' && !s->fault) {
        s->p++;
        choice = true;
        i32 len = s->re->inst_count - from;
        insert(s, from, split(1, len + 2, false));
        emit(s, (struct regex_inst){.op = RE_JUMP});
        i32 jump = s->re->inst_count - 1;
        parse_branch(s);
        s->re->insts[jump].x = (i16)(s->re->inst_count - jump);
    }
    s->prefers = choice ? PREFERS_LONGEST : s->prefers;
}

static bool read_flags(struct parser *s, struct sv flags, bool *literal) {
    for (i64 i = 0; i < flags.len; i++) {
        switch (flags.ptr[i]) {
        case 'i':
            s->re->nocase = 1;
            break;
        case 'c':
            s->re->nocase = 0;
            break;
        case 'n':
        case 'm':
            s->re->newline = s->re->line_anchor = 1;
            break;
        case 'p':
            s->re->newline = 1;
            break;
        case 'w':
            s->re->line_anchor = 1;
            break;
        case 'x':
            s->expanded = 1;
            break;
        case 'q':
            *literal = true;
            break;
        case 'g':
        case 's':
        case 't':
            break;
        default:
            return false;
        }
    }
    return true;
}

u8 regex_compile(struct regex *out, struct sv pattern, struct sv flags) {
    struct parser s = {
        .re = out, .p = (const u8 *)pattern.ptr, .end = (const u8 *)pattern.ptr + pattern.len};
    bool literal = false;
    out->inst_count = out->range_count = out->group_count = 0;
    out->nocase = out->newline = out->line_anchor = out->shortest = 0;
    if (!read_flags(&s, flags, &literal)) {
        return FAULT_REGEX_OPTION;
    }
    if (at(&s, "***=")) {
        literal = true;
        s.p += 4;
    } else if (at(&s, "***:")) {
        s.p += 4;
    }
    if (!literal && at(&s, "(?") && s.end - s.p > 2 && (u8)((s.p[2] | 32) - 'a') < 26) {
        const u8 *close = memchr(s.p, ')', (size_t)(s.end - s.p));
        if (!close ||
            !read_flags(&s, (struct sv){(const char *)s.p + 2, close - s.p - 2}, &literal)) {
            return FAULT_REGEX;
        }
        s.p = close + 1;
    }
    while (literal && s.p < s.end && !s.fault) {
        emit_char(&s, regex_next_char(&s.p, s.end));
    }
    if (!literal) {
        parse_alternatives(&s);
        out->shortest = s.prefers == PREFERS_SHORTEST;
        if (s.p < s.end) {
            fail(&s, FAULT_REGEX);
        }
    }
    out->insts[out->inst_count++] = (struct regex_inst){.op = RE_MATCH};
    return s.fault;
}

/* the machine */

enum { SLOTS = 2 * REGEX_GROUPS_MAX };

struct thread_set {
    i32 count;
    u16 pcs[REGEX_INSTS_MAX];
    i32 (*slots)[SLOTS]; /* NULL: not wanted */
};

struct machine {
    u64 work; /* threads stepped so far: now and then it is asked whether to go on */
    const struct regex *re;
    const u8 *text;
    i64 len;
    u32 marks[REGEX_INSTS_MAX]; /* when an instruction was reached last */
    u32 now;
    bool captures;
};

/* Whether the character that holds this byte is one of a word. */
static bool is_word(const struct machine *m, i64 at) {
    if (at < 0 || at >= m->len) {
        return false;
    }
    while (at > 0 && (m->text[at] & 0xc0) == 0x80) {
        at--;
    }
    const u8 *p = m->text + at;
    u32 c = regex_next_char(&p, m->text + m->len);
    return c == '_' || char_in_class(CLASS_ALNUM, c);
}

static bool place_holds(const struct machine *m, u8 op, i64 pos) {
    bool before = is_word(m, pos - 1), after = is_word(m, pos);
    bool lines = m->re->line_anchor;
    switch (op) {
    case RE_BEGIN:
        return pos == 0 || (lines && m->text[pos - 1] == '\n');
    case RE_END:
        return pos == m->len || (lines && m->text[pos] == '\n');
    case RE_TEXT_BEGIN:
        return pos == 0;
    case RE_TEXT_END:
        return pos == m->len;
    case RE_WORD_BEGIN:
        return !before && after;
    case RE_WORD_END:
        return before && !after;
    case RE_WORD_EDGE:
        return before != after;
    default:
        return before == after;
    }
}

/* Adds what is reached from pc without reading a character. The stack holds instructions yet to be
 * followed, and slots to be put back once those behind them are done. */
struct pending {
    i16 pc; /* -1: put slot back */
    i16 slot;
    i32 old;
};

static void follow(struct machine *m, struct thread_set *set, i32 pc, i64 pos, i32 *slots) {
    struct pending stack[2 * REGEX_INSTS_MAX];
    i32 depth = 0;
    stack[depth++] = (struct pending){(i16)pc, 0, 0};
    while (depth > 0) {
        struct pending top = stack[--depth];
        if (top.pc < 0) {
            slots[top.slot] = top.old;
            continue;
        }
        if (m->marks[top.pc] == m->now) {
            continue;
        }
        m->marks[top.pc] = m->now;
        const struct regex_inst *inst = &m->re->insts[top.pc];
        switch (inst->op) {
        case RE_JUMP:
            stack[depth++] = (struct pending){(i16)(top.pc + inst->x), 0, 0};
            break;
        case RE_SPLIT:
            stack[depth++] = (struct pending){(i16)(top.pc + inst->y), 0, 0};
            stack[depth++] = (struct pending){(i16)(top.pc + inst->x), 0, 0};
            break;
        case RE_SAVE:
            stack[depth++] = (struct pending){-1, (i16)inst->c, slots[inst->c]};
            slots[inst->c] = (i32)pos;
            stack[depth++] = (struct pending){(i16)(top.pc + 1), 0, 0};
            break;
        case RE_CHAR:
        case RE_ANY:
        case RE_CLASS:
        case RE_MATCH:
            set->pcs[set->count] = (u16)top.pc;
            if (m->captures) {
                memcpy(set->slots[set->count], slots, sizeof set->slots[0]);
            } else {
                set->slots[0][0] = 0;
            }
            set->count++;
            break;
        default:
            if (place_holds(m, inst->op, pos)) {
                stack[depth++] = (struct pending){(i16)(top.pc + 1), 0, 0};
            }
        }
    }
}

bool regex_takes(const struct regex *re, const struct regex_inst *inst, u32 c) {
    switch (inst->op) {
    case RE_CHAR:
        return inst->c == c ||
               (re->nocase && (case_lower(inst->c) == c || case_upper(inst->c) == c));
    case RE_ANY:
        return !(re->newline && c == '\n');
    default:
        for (i32 i = inst->x; i < inst->y; i++) {
            const u32 *range = re->ranges[i];
            if (range[0] & REGEX_CLASS_BIT ? char_in_class((enum char_class)(range[0] & 0xff), c)
                                           : c >= range[0] && c <= range[1]) {
                return !inst->negated;
            }
        }
        return inst->negated;
    }
}

struct found {
    i64 start, end; /* end -1: none */
    i32 slots[SLOTS];
};

/* One step: the threads of `now` read the character [pos, next). */
static void step(struct machine *m, const struct thread_set *now, struct thread_set *then, i64 pos,
                 i64 next, u32 c, struct found *out) {
    then->count = 0;
    m->now++;
    for (i32 i = 0; i < now->count; i++) {
        const struct regex_inst *inst = &m->re->insts[now->pcs[i]];
        if (inst->op == RE_MATCH) {
            if (pos > out->end || out->end < 0) {
                out->end = pos;
                memcpy(out->slots, m->captures ? now->slots[i] : out->slots, sizeof out->slots);
            }
            continue;
        }
        if (next > pos && regex_takes(m->re, inst, c)) {
            i32 slots[SLOTS];
            memcpy(slots, m->captures ? now->slots[i] : out->slots, sizeof slots);
            follow(m, then, now->pcs[i] + 1, next, slots);
        }
    }
}

/* Counts steps; false when the statement is to end. */
static bool may_go_on(struct machine *m, i64 steps) {
    m->work += (u64)steps;
    return !stop_due(m->work - (u64)steps, m->work);
}

/* The match that begins at `from`, if any. */
static bool match_at(struct machine *m, struct thread_set *a, struct thread_set *b, i64 from,
                     struct found *out) {
    i32 slots[SLOTS];
    for (i32 i = 0; i < SLOTS; i++) {
        slots[i] = out->slots[i] = -1;
    }
    out->start = from;
    out->end = -1;
    a->count = 0;
    m->now++;
    follow(m, a, 0, from, slots);
    for (i64 pos = from; a->count > 0 && may_go_on(m, a->count);) {
        const u8 *p = m->text + pos;
        u32 c = pos < m->len ? regex_next_char(&p, m->text + m->len) : 0;
        i64 next = pos < m->len ? p - m->text : pos;
        step(m, a, b, pos, next, c, out);
        if ((out->end >= 0 && m->re->shortest) || next == pos) {
            break;
        }
        struct thread_set *swap = a;
        a = b;
        b = swap;
        pos = next;
    }
    return out->end >= 0;
}

/* Whether a match begins anywhere: one pass, a new thread at every character. */
static bool match_any(struct machine *m, struct thread_set *a, struct thread_set *b, i64 from) {
    i32 slots[SLOTS] = {0};
    a->count = 0;
    m->now++;
    for (i64 pos = from; may_go_on(m, a->count + 1);) {
        follow(m, a, 0, pos, slots);
        const u8 *p = m->text + pos;
        u32 c = pos < m->len ? regex_next_char(&p, m->text + m->len) : 0;
        i64 next = pos < m->len ? p - m->text : pos;
        b->count = 0;
        m->now++;
        for (i32 i = 0; i < a->count; i++) {
            const struct regex_inst *inst = &m->re->insts[a->pcs[i]];
            if (inst->op == RE_MATCH) {
                return true;
            }
            if (next > pos && regex_takes(m->re, inst, c)) {
                follow(m, b, a->pcs[i] + 1, next, slots);
            }
        }
        if (next == pos) {
            break;
        }
        struct thread_set *swap = a;
        a = b;
        b = swap;
        pos = next;
    }
    return false;
}

bool regex_search(const struct regex *re, struct sv text, i64 from, i64 slots[SLOTS]) {
    i32 room_a[REGEX_INSTS_MAX][SLOTS], room_b[REGEX_INSTS_MAX][SLOTS];
    struct thread_set a = {.slots = room_a}, b = {.slots = room_b};
    struct machine m = {.re = re, .text = (const u8 *)text.ptr, .len = text.len};
    if (!slots) {
        return match_any(&m, &a, &b, from);
    }
    m.captures = true;
    struct found found;
    for (i64 pos = from; pos <= text.len && may_go_on(&m, 1);) {
        if (match_at(&m, &a, &b, pos, &found)) {
            for (i32 i = 0; i < SLOTS; i++) {
                slots[i] = found.slots[i];
            }
            slots[0] = found.start;
            slots[1] = found.end;
            return true;
        }
        const u8 *p = m.text + pos;
        if (pos < text.len) {
            regex_next_char(&p, m.text + text.len);
        }
        pos = pos < text.len ? p - m.text : pos + 1;
    }
    return false;
}
