/* regex_auto.c: a regular expression's program as an automaton, built while it runs.
 *
 * A state is what the machine of regex.c would hold between two characters: the ways through the
 * pattern, in order of preference, those that began earlier first. The step from a state over a
 * class of characters is worked out once and kept; from then on a character costs one load. Classes
 * are found as characters are met: those that all instructions treat alike are one.
 *
 * Positions (begin of the match, parts) are kept in one row per way. What is reached without
 * reading is followed only when the next character is known: so places (^ $ \y) are decided, ways
 * that die at once never get a row, and most steps leave every way in its row and cost nothing. A
 * match is noted by the step over the character behind it (or over the end of the text). Once there
 * is one, ways that began later are dropped: the leftmost wins, of these the longest, or the
 * shortest if that is what the pattern prefers.
 *
 * Three kinds: for whether there is a match and where it is, the order of ways with one begin does
 * not matter, so states are sets and fewer. Every table has a fixed size; when one is full all
 * states but the present one are forgotten. A step is at worst built anew for every character,
 * which is linear still. */
#include "host/regex_auto.h"

#include "base/stop.h"
#include "host/chars.h"

enum auto_kind { AUTO_TEST, AUTO_SPAN, AUTO_PARTS };

enum {
    AUTO_GROUP = 0x8000,
    SLOTS = 2 * REGEX_GROUPS_MAX,
    CLASS_END = AUTO_END_CLASS,
    FIRST_SHIFT = 4,
    NEEDED_CALLS = 16,
    TRIES = 64,
    SIGN_WORD = 254,
    SIGN_NEWLINE = 255,
};
#define SLOW 0x80000000u /* a number of a step, not a state */

_Static_assert((int)REGEX_INSTS_MAX < (int)AUTO_GROUP,
               "instructions leave the mark of a group free");
_Static_assert((int)AUTO_ROWS_MAX >= (int)REGEX_INSTS_MAX,
               "a row per way when only the begin is kept");

/* states */

static void forget(struct regex_auto *m) {
    memset(m->slots, 0, sizeof m->slots);
    memset(m->starts, 0, sizeof m->starts);
    m->state_count = AUTO_DEAD + 1;
    m->list_count = m->step_count = m->move_count = 0;
    memset(m->next, 0, sizeof m->next[0] * ((size_t)m->state_count << m->shift));
}

static u32 intern(struct regex_auto *m, struct auto_state state, const u16 *list) {
    u64 hash = (u64)state.kind << 24 | (u64)state.before << 16 | (u64)state.seek << 8;
    for (i32 i = 0; i < state.list_count; i++) {
        hash = (hash ^ list[i]) * 0x9e3779b97f4a7c15ULL;
    }
    hash ^= hash >> 29;
    for (u64 slot = hash;; slot++) {
        u16 *at = &m->slots[slot % AUTO_HASH_SLOTS];
        if (*at == 0) {
            *at = (u16)m->state_count;
            break;
        }
        const struct auto_state *old = &m->states[*at];
        if (old->kind == state.kind && old->before == state.before && old->seek == state.seek &&
            old->list_count == state.list_count &&
            memcmp(m->lists + old->list_at, list, sizeof *list * state.list_count) == 0) {
            return (u32)*at << m->shift;
        }
    }
    state.list_at = (u32)m->list_count;
    memcpy(m->lists + m->list_count, list, sizeof *list * state.list_count);
    m->list_count += state.list_count;
    u32 at = (u32)m->state_count++;
    m->states[at] = state;
    memset(m->next + ((size_t)at << m->shift), 0, sizeof m->next[0] << m->shift);
    return at << m->shift;
}

/* Forgets all states but s; returns its new name. */
static u32 forget_but(struct regex_auto *m, u32 s, i32 shift) {
    u16 list[REGEX_INSTS_MAX];
    struct auto_state state = m->states[s >> m->shift];
    memcpy(list, m->lists + state.list_at, sizeof *list * state.list_count);
    m->shift = shift;
    forget(m);
    return intern(m, state, list);
}

static bool is_full(const struct regex_auto *m) {
    i32 most = MIN_OF(AUTO_STATES_MAX, AUTO_NEXT_MAX >> m->shift);
    return m->state_count >= most || m->step_count >= AUTO_STEPS_MAX ||
           m->list_count > AUTO_LISTS_MAX - REGEX_INSTS_MAX ||
           m->move_count > AUTO_MOVES_MAX - REGEX_INSTS_MAX;
}

/* classes of characters */

static bool is_word(u32 c) {
    return c == '_' || char_in_class(CLASS_ALNUM, c);
}

static u8 flags_of(const struct regex_auto *m, u32 c) {
    bool newline = m->context & AUTO_NEWLINE && c == '\n';
    bool word = m->context & AUTO_WORD && is_word(c);
    return (u8)((newline ? AUTO_NEWLINE : 0) | (word ? AUTO_WORD : 0));
}

/* 0: there are too many classes. */
static u32 find_class(struct regex_auto *m, u32 c) {
    u64 sign[4] = {0};
    u8 flags = flags_of(m, c);
    for (i32 i = 0; i < m->test_count; i++) {
        if (regex_takes(&m->re, &m->re.insts[m->tests[i]], c)) {
            sign[i >> 6] |= 1ULL << (i & 63);
        }
    }
    sign[3] |= flags & AUTO_WORD ? 1ULL << (SIGN_WORD & 63) : 0;
    sign[3] |= flags & AUTO_NEWLINE ? 1ULL << (SIGN_NEWLINE & 63) : 0;
    for (i32 k = CLASS_END + 1; k < m->class_count; k++) {
        if (memcmp(m->signs[k], sign, sizeof sign) == 0) {
            return (u32)k;
        }
    }
    if (m->class_count >= AUTO_CLASSES_MAX) {
        return 0;
    }
    i32 k = m->class_count++;
    memcpy(m->signs[k], sign, sizeof sign);
    m->class_char[k] = c;
    m->class_flags[k] = flags;
    return (u32)k;
}

/* The class of the character at *p, which moves behind it. */
static inline u32 class_at(struct regex_auto *m, const u8 **p, const u8 *end) {
    if (*p >= end) {
        return CLASS_END;
    }
    u8 byte = **p;
    u32 c = regex_next_char(p, end);
    if (byte < 0x80) {
        m->byte_class[byte] = m->byte_class[byte] ? m->byte_class[byte] : (u8)find_class(m, c);
        return m->byte_class[byte];
    }
    if (c < 0x800) {
        m->pair_class[c] = m->pair_class[c] ? m->pair_class[c] : (u8)find_class(m, c);
        return m->pair_class[c];
    }
    u32 at = c % AUTO_CHARS_KEPT;
    if (m->kept_char[at] != c || m->kept_class[at] == 0) {
        m->kept_char[at] = c;
        m->kept_class[at] = (u8)find_class(m, c);
    }
    return m->kept_class[at];
}

/* steps */

struct reading {
    u32 class;
    u8 before, after; /* flags of the characters around this place */
    i32 match;
    u32 match_noted;
};

static bool place_holds(const struct regex_auto *m, u8 op, const struct reading *r) {
    bool at_end = r->class == CLASS_END;
    bool was = r->before & AUTO_WORD, will = r->after & AUTO_WORD;
    switch (op) {
    case RE_BEGIN:
        return r->before & AUTO_BEGIN || (m->re.line_anchor && r->before & AUTO_NEWLINE);
    case RE_END:
        return at_end || (m->re.line_anchor && r->after & AUTO_NEWLINE);
    case RE_TEXT_BEGIN:
        return r->before & AUTO_BEGIN;
    case RE_TEXT_END:
        return at_end;
    case RE_WORD_BEGIN:
        return !was && will;
    case RE_WORD_END:
        return was && !will;
    case RE_WORD_EDGE:
        return was != will;
    default:
        return was == will;
    }
}

struct pending {
    u16 pc;
    u32 noted;
};

/* Adds to the draft what a way at pc becomes by reading the character. */
static void follow(struct regex_auto *m, struct reading *r, i32 start, u16 from, u32 noted) {
    struct pending stack[2 * REGEX_INSTS_MAX];
    i32 depth = 0;
    stack[depth++] = (struct pending){(u16)start, noted};
    while (depth > 0) {
        struct pending top = stack[--depth];
        i32 pc = top.pc;
        if (m->marks[pc] == m->now) {
            continue;
        }
        m->marks[pc] = m->now;
        const struct regex_inst *inst = &m->re.insts[pc];
        switch (inst->op) {
        case RE_JUMP:
            stack[depth++] = (struct pending){(u16)(pc + inst->x), top.noted};
            break;
        case RE_SPLIT:
            stack[depth++] = (struct pending){(u16)(pc + inst->y), top.noted};
            stack[depth++] = (struct pending){(u16)(pc + inst->x), top.noted};
            break;
        case RE_SAVE:
            stack[depth++] = (struct pending){(u16)(pc + 1), top.noted | 1u << inst->c};
            break;
        case RE_MATCH:
            r->match = from;
            r->match_noted = top.noted;
            break;
        case RE_CHAR:
        case RE_ANY:
        case RE_CLASS:
            if (r->class != CLASS_END && regex_takes(&m->re, inst, m->class_char[r->class])) {
                m->draft_moves[m->draft_count] = (struct auto_move){from, top.noted};
                m->draft[m->draft_count++] = (u16)(pc + 1);
            }
            break;
        default:
            if (place_holds(m, inst->op, r)) {
                stack[depth++] = (struct pending){(u16)(pc + 1), top.noted};
            }
        }
    }
}

/* The draft from `first` on is a group: ways with one begin. */
static void close_group(struct regex_auto *m, i32 first, u8 kind) {
    for (i32 i = first + 1; i < m->draft_count && kind != AUTO_PARTS; i++) {
        u16 pc = m->draft[i];
        struct auto_move move = m->draft_moves[i];
        i32 k = i;
        for (; k > first && m->draft[k - 1] > pc; k--) {
            m->draft[k] = m->draft[k - 1];
            m->draft_moves[k] = m->draft_moves[k - 1];
        }
        m->draft[k] = pc;
        m->draft_moves[k] = move;
    }
    if (first < m->draft_count) {
        m->draft[first] |= AUTO_GROUP;
    }
}

/* Drafts what a state becomes; returns whether matches may still begin later. */
static bool draft_step(struct regex_auto *m, const struct auto_state *state, struct reading *r) {
    const u16 *list = m->lists + state->list_at;
    i32 first = 0;
    m->draft_count = 0;
    if (++m->now == 0) {
        memset(m->marks, 0, sizeof m->marks);
        m->now = 1;
    }
    for (i32 i = 0; i <= state->list_count; i++) {
        bool start = i == state->list_count;
        bool group = start || (list[i] & AUTO_GROUP && state->kind != AUTO_TEST);
        if (group && i > 0 && state->kind != AUTO_TEST) {
            close_group(m, first, state->kind);
            if (r->match >= 0) {
                break;
            }
            first = m->draft_count;
        }
        if (!start) {
            follow(m, r, list[i] & ~AUTO_GROUP, (u16)i, 0);
        } else if (state->seek) {
            follow(m, r, 0, AUTO_NEW, 1);
            close_group(m, first, state->kind);
        } else if (state->kind == AUTO_TEST) {
            close_group(m, first, state->kind);
        }
    }
    if (r->match >= 0 && m->re.shortest) {
        m->draft_count = first;
    }
    return state->seek && r->match < 0 && !m->anchored && r->class != CLASS_END;
}

static bool stays(const struct regex_auto *m, u8 kind) {
    u32 asked = kind == AUTO_SPAN ? 1 : ~0u;
    for (i32 i = 0; i < m->draft_count && kind != AUTO_TEST; i++) {
        if (m->draft_moves[i].from != i || m->draft_moves[i].noted & asked) {
            return false;
        }
    }
    return true;
}

/* Works out the step from *s over a class, *s gets a new name when states are forgotten for it. */
static u32 build(struct regex_auto *m, u32 *s, u32 class) {
    if (is_full(m)) {
        *s = forget_but(m, *s, m->shift);
    }
    struct auto_state state = m->states[*s >> m->shift];
    struct reading r = {.class = class,
                        .before = state.before,
                        .after = class == CLASS_END ? 0 : m->class_flags[class],
                        .match = -1};
    bool seek = draft_step(m, &state, &r);
    i32 width = state.kind == AUTO_PARTS ? m->slot_count : 1;
    if (m->draft_count * width > AUTO_ROWS_MAX) {
        m->failed = 1;
        return 0;
    }
    bool done = (m->draft_count == 0 && !seek) || (state.kind == AUTO_TEST && r.match >= 0);
    struct auto_state then = {
        .list_count = (u16)m->draft_count, .kind = state.kind, .before = r.after, .seek = seek};
    u32 to = done ? (u32)AUTO_DEAD << m->shift : intern(m, then, m->draft);
    bool skip = !done && m->draft_count == 0 && m->prefix.len > 1;
    bool same = done || stays(m, state.kind);
    u32 out = to;
    if (done || skip || r.match >= 0 || !same) {
        struct auto_step *step = &m->steps[m->step_count];
        out = SLOW | (u32)m->step_count++;
        *step = (struct auto_step){.to = to,
                                   .move_at = (u32)m->move_count,
                                   .match = r.match,
                                   .match_noted = r.match_noted,
                                   .move_count = (u16)(same ? 0 : m->draft_count),
                                   .skip = skip};
        memcpy(m->moves + m->move_count, m->draft_moves, sizeof *m->moves * step->move_count);
        m->move_count += step->move_count;
    }
    m->next[*s + class] = out;
    return out;
}

/* searching */

struct scan {
    const u8 *text, *end;
    u8 kind;
    i32 width; /* slots of a row */
    i32 row;   /* which of the two sets of rows is in use */
    bool found;
    i32 stop;       /* where the match found ends */
    i32 got[SLOTS]; /* its other positions */
};

static void note(i32 *row, u32 noted, i32 width, i32 pos) {
    for (noted &= (1u << width) - 1; noted; noted &= noted - 1) {
        row[__builtin_ctz(noted)] = pos;
    }
}

static void copy_row(struct regex_auto *m, const struct scan *c, i32 *to, i32 from) {
    const i32 *row = m->rows[c->row] + (from == AUTO_NEW ? 0 : from) * c->width;
    i32 none = from == AUTO_NEW ? -1 : 0;
    for (i32 i = 0; i < c->width; i++) {
        to[i] = row[i] | none;
    }
}

static void move_rows(struct regex_auto *m, struct scan *c, const struct auto_step *step, i32 pos) {
    const struct auto_move *moves = m->moves + step->move_at;
    if (step->move_count == 1 && moves[0].from == 0) {
        note(m->rows[c->row], moves[0].noted, c->width, pos);
        return;
    }
    i32 *to = m->rows[!c->row];
    for (i32 i = 0; i < step->move_count; i++, to += c->width) {
        copy_row(m, c, to, moves[i].from);
        note(to, moves[i].noted, c->width, pos);
    }
    c->row = !c->row;
}

static u32 look_up(struct regex_auto *m, u32 *s, u32 class) {
    if (class == 0) {
        m->failed = 1;
        return 0;
    }
    if (class >> m->shift) {
        *s = forget_but(m, *s, m->shift + 2);
    }
    u32 t = m->next[*s + class];
    return t ? t : build(m, s, class);
}

/* Notes a match before p; goes over characters that only lengthen it. */
static const u8 *take_match(struct regex_auto *m, struct scan *c, u32 s, u32 t, const u8 *p) {
    const struct auto_step *step = &m->steps[t & ~SLOW];
    const u32 *row = m->next + s;
    if (step->to == s && step->move_count == 0) {
        while (c->end - p > 1 && row[m->byte_class[p[1]]] == t && row[m->byte_class[p[0]]] == t) {
            p++;
        }
    }
    c->found = true;
    c->stop = (i32)(p - c->text);
    copy_row(m, c, c->got, step->match);
    note(c->got, step->match_noted, c->width, c->stop);
    return p;
}

/* Goes over characters as long as nothing but the state changes; returns where that ends. */
static inline const u8 *run(const struct regex_auto *m, u32 *state, const u8 *p, const u8 *end) {
    const u8 *class_of = m->byte_class;
    const u32 *next = m->next;
    u32 s = *state;
    while (p < end) {
        u32 to = next[s + class_of[*p]];
        if (to == s) { /* guessed right, this waits for nothing */
            p++;
            continue;
        }
        i32 bytes = 1;
        if ((*p & 0xe0) == 0xc0 && end - p > 1) {
            to = next[s + m->pair_class[(*p & 0x1fu) << 6 | (p[1] & 0x3fu)]];
            bytes = 2;
        } else if ((*p & 0xf0) == 0xe0 && end - p > 2) {
            u32 c = (*p & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
            u32 at = c % AUTO_CHARS_KEPT;
            to = m->kept_char[at] == c ? next[s + m->kept_class[at]] : 0;
            bytes = 3;
        }
        if (to - 1 >= SLOW - 1) {
            break;
        }
        s = to;
        p += bytes;
    }
    *state = s;
    return p;
}

static void scan(struct regex_auto *m, struct scan *c, u32 s, const u8 *p) {
    enum { STRETCH = 1 << 16 };
    const u8 *end = c->end, *asked = p;
    for (;;) {
        p = run(m, &s, p, end - p > STRETCH ? p + STRETCH : end);
        if (p - asked >= STRETCH) {
            if (stop_asked()) {
                c->found = false;
                return;
            }
            asked = p;
        }
        const u8 *after = p;
        u32 class = class_at(m, &after, end);
        u32 t = class >> m->shift ? 0 : m->next[s + class];
        t = t ? t : look_up(m, &s, class);
        if (t < SLOW) {
            if (m->failed) {
                return;
            }
            s = t;
            p = after;
            continue;
        }
        const struct auto_step *step = &m->steps[t & ~SLOW];
        if (step->match >= 0) {
            if (c->kind == AUTO_TEST) {
                c->found = true;
                return;
            }
            const u8 *last = take_match(m, c, s, t, p);
            after += last - p;
            p = last;
        }
        if (step->to == (u32)AUTO_DEAD << m->shift) {
            return;
        }
        if (step->move_count > 0) {
            move_rows(m, c, step, (i32)(p - c->text));
        }
        s = step->to;
        p = after;
        if (step->skip && !(p = auto_find_literal(&m->prefix, p, end))) {
            return;
        }
    }
}

/* Whether bytes that every match needs are there at all. */
static bool lacks_needed(struct regex_auto *m, const u8 *p, const u8 *end) {
    if (m->calls < NEEDED_CALLS) {
        if (++m->calls == NEEDED_CALLS && m->prefix.len < 2) {
            auto_find_needed(m);
        }
        return false;
    }
    if (m->needed.len < 2 || (m->tried >= TRIES && m->passed > m->tried / 2)) {
        return false;
    }
    bool has = auto_find_literal(&m->needed, p, end) != NULL;
    m->tried++;
    m->passed += has;
    if (m->tried == 8 * TRIES) { /* texts change */
        m->tried /= 2;
        m->passed /= 2;
    }
    return !has;
}

static u8 flags_before(const struct regex_auto *m, const u8 *text, const u8 *p, const u8 *end) {
    if (p == text) {
        return m->context & AUTO_BEGIN;
    }
    do {
        p--;
    } while (p > text && (*p & 0xc0) == 0x80);
    return m->context & ~AUTO_BEGIN ? flags_of(m, regex_next_char(&p, end)) : 0;
}

static void set_slots(i64 *slots, i32 parts, i64 first, i64 last) {
    for (i32 i = 2; i < 2 * parts; i++) {
        slots[i] = -1;
    }
    slots[0] = first;
    slots[1] = last;
}

static u32 start_state(struct regex_auto *m, u8 kind, u8 before) {
    if (m->starts[kind][before] == 0) {
        struct auto_state start = {.kind = kind, .seek = 1, .before = before};
        if (is_full(m)) {
            forget(m);
        }
        m->starts[kind][before] = intern(m, start, m->draft);
    }
    return m->starts[kind][before];
}

/* compiling */

/* Instructions that take different characters, and whether there are few enough. */
static bool find_tests(struct regex_auto *m) {
    m->test_count = 0;
    m->context = 0;
    for (i32 pc = 0; pc < m->re.inst_count; pc++) {
        const struct regex_inst *inst = &m->re.insts[pc];
        if (inst->op >= RE_WORD_BEGIN && inst->op <= RE_WORD_INSIDE) {
            m->context |= AUTO_WORD;
        } else if (inst->op >= RE_BEGIN && inst->op <= RE_TEXT_END) {
            m->context |= AUTO_BEGIN | (m->re.line_anchor ? AUTO_NEWLINE : 0);
        }
        if (inst->op > RE_CLASS) {
            continue;
        }
        i32 i = 0;
        for (; i < m->test_count; i++) {
            const struct regex_inst *old = &m->re.insts[m->tests[i]];
            if (old->op == inst->op && old->c == inst->c && old->x == inst->x &&
                old->y == inst->y && old->negated == inst->negated) {
                break;
            }
        }
        if (i == AUTO_TESTS_MAX) {
            return false;
        }
        m->tests[i] = (u16)pc;
        m->test_count = MAX_OF(m->test_count, i + 1);
    }
    return true;
}

/* Whether every way to the first character goes through the text's begin. */
static bool is_anchored(struct regex_auto *m) {
    u16 stack[2 * REGEX_INSTS_MAX];
    i32 depth = 0;
    stack[depth++] = 0;
    m->now++;
    while (depth > 0) {
        i32 pc = stack[--depth];
        const struct regex_inst *inst = &m->re.insts[pc];
        if (m->marks[pc] == m->now || inst->op == RE_TEXT_BEGIN ||
            (inst->op == RE_BEGIN && !m->re.line_anchor)) {
            continue;
        }
        m->marks[pc] = m->now;
        if (inst->op <= RE_CLASS || inst->op == RE_MATCH) {
            return false;
        }
        bool far = inst->op == RE_SPLIT || inst->op == RE_JUMP;
        stack[depth++] = (u16)(pc + (far ? inst->x : 1));
        if (inst->op == RE_SPLIT) {
            stack[depth++] = (u16)(pc + inst->y);
        }
    }
    return true;
}

static void set_up(struct regex_auto *m) {
    m->ready = 1;
    m->slot_count = 2 * MIN_OF(m->re.group_count + 1, REGEX_GROUPS_MAX);
    m->calls = m->tried = m->passed = 0;
    m->class_count = CLASS_END + 1;
    m->shift = FIRST_SHIFT;
    memset(m->byte_class, 0, sizeof m->byte_class);
    memset(m->pair_class, 0, sizeof m->pair_class);
    memset(m->kept_class, 0, sizeof m->kept_class);
    memset(m->marks, 0, sizeof m->marks);
    m->now = 0;
    m->usable = find_tests(m);
    m->anchored = is_anchored(m);
    auto_find_prefix(m);
    forget(m);
}

u8 regex_auto_compile(struct regex_auto *out, struct sv pattern, struct sv flags) {
    out->used = out->ready = 0;
    return regex_compile(&out->re, pattern, flags);
}

/* Patterns may change with every row: one that is asked for the first time whether it matches does
 * not pay for an automaton. */
static bool is_first_test(struct regex_auto *m, i32 parts) {
    bool first = !m->used && parts == 0;
    m->used = 1;
    if (!first && !m->ready) {
        set_up(m);
    }
    return first;
}

bool regex_auto_search(struct regex_auto *m, struct sv text, i64 from, i64 *slots, i32 parts) {
    if (is_first_test(m, parts)) {
        return regex_search(&m->re, text, from, NULL);
    }
    i32 known = MIN_OF(parts, m->slot_count / 2);
    u8 kind = parts == 0 ? AUTO_TEST : known == 1 ? AUTO_SPAN : AUTO_PARTS;
    struct scan c; /* what it got is written before it is read */
    const u8 *p = (const u8 *)text.ptr + from;
    c.text = (const u8 *)text.ptr;
    c.end = c.text + text.len;
    c.kind = kind;
    c.width = kind == AUTO_PARTS ? 2 * known : 1;
    c.row = 0;
    c.found = false;
    if ((m->anchored && from > 0) || lacks_needed(m, p, c.end)) {
        return false;
    }
    if (m->prefix.len > 1 || (m->whole && kind != AUTO_PARTS)) {
        p = auto_find_literal(&m->prefix, p, c.end);
        if (p && m->whole && kind == AUTO_SPAN) {
            set_slots(slots, parts, p - c.text, p - c.text + m->prefix.len);
        }
        if (!p || (m->whole && kind != AUTO_PARTS)) {
            return p != NULL;
        }
    }
    m->failed = !m->usable;
    if (!m->failed) {
        scan(m, &c, start_state(m, kind, flags_before(m, c.text, p, c.end)), p);
    }
    if (m->failed) {
        i64 all[SLOTS];
        c.found = regex_search(&m->re, text, from, parts ? all : NULL);
        for (i32 i = 0; c.found && i < 2 * parts; i++) {
            slots[i] = all[i];
        }
        return c.found;
    }
    for (i32 i = 0; c.found && i < 2 * parts; i++) {
        slots[i] = i == 1 ? c.stop : i < c.width ? c.got[i] : -1;
    }
    return c.found;
}

/* finishing */

bool auto_begin(struct regex_auto *m) {
    set_up(m);
    m->failed = 0;
    return m->usable;
}

u32 auto_class(struct regex_auto *m, u32 c) {
    return find_class(m, c);
}

void auto_classes_end(struct regex_auto *m) {
    while (m->class_count > 1 << m->shift) {
        m->shift++;
    }
    forget(m);
}

u32 auto_start(struct regex_auto *m, i32 parts, u8 before) {
    u8 kind = parts == 0 ? AUTO_TEST : parts == 1 ? AUTO_SPAN : AUTO_PARTS;
    return start_state(m, kind, before & m->context) >> m->shift;
}

const struct auto_step *auto_next(struct regex_auto *m, u32 state, u32 class) {
    u32 s = state << m->shift;
    m->step_count = m->move_count = 0; /* nobody comes back to them */
    if (is_full(m)) {
        return NULL;
    }
    u32 t = build(m, &s, class);
    struct auto_step *step = &m->steps[0];
    if (!(t & SLOW)) {
        *step = (struct auto_step){.to = t, .match = -1};
    }
    step->to >>= m->shift;
    return m->failed ? NULL : step;
}
