/* regex_table.c: finishes the automaton of a pattern: every state it can reach, over every class of
 * characters.
 *
 * States and steps are those of regex_auto.c, asked for one by one. Characters change their class only
 * at code points where an instruction or a class of Unicode does: between two of them all are
 * alike. */
#include "host/regex_table.h"

#include "defs/fault.h"
#include "defs/host_words.h"
#include "host/chars.h"
#include "host/regex_auto.h"

#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_regex.h"

#include <stdlib.h>

#define CODE_POINT_END 0x110000u
#define ASCII_END 0x80u

struct finish {
    struct arena *arena;
    struct regex_auto *m;
    VEC(u32) breaks; /* where a range of equal characters may begin */
    VEC(u32) firsts; /* ranges beyond ASCII */
    VEC(u8) classes;
    VEC(u16) next;
    VEC(struct regex_step) steps;
    VEC(struct regex_move) moves;
    struct regex_table head;
};

static void put_break(void *to, u32 c) {
    struct finish *t = to;
    if (c >= ASCII_END && c < CODE_POINT_END) {
        VEC_PUSH(t->arena, &t->breaks, c);
    }
}

static void put_char(struct finish *t, u32 c) {
    put_break(t, c);
    put_break(t, c + 1);
}

static void find_breaks(struct finish *t) {
    const struct regex *re = &t->m->re;
    put_break(t, ASCII_END);
    for (i32 i = 0; i < re->inst_count; i++) {
        const struct regex_inst *inst = &re->insts[i];
        if (inst->op == RE_CHAR) {
            put_char(t, inst->c);
            put_char(t, case_lower(inst->c));
            put_char(t, case_upper(inst->c));
        }
        if (inst->op >= RE_WORD_BEGIN && inst->op <= RE_WORD_INSIDE) {
            char_class_breaks(CLASS_ALNUM, put_break, t);
        }
        for (i32 r = inst->x; inst->op == RE_CLASS && r < inst->y; r++) {
            const u32 *range = re->ranges[r];
            if (range[0] & REGEX_CLASS_BIT) {
                char_class_breaks((enum char_class)(range[0] & 0xff), put_break, t);
            } else {
                put_break(t, range[0]);
                put_break(t, range[1] + 1);
            }
        }
    }
}

static int by_value(const void *a, const void *b) {
    u32 x = *(const u32 *)a;
    u32 y = *(const u32 *)b;
    return x < y ? -1 : x > y;
}

/* Columns are the automaton's classes, counted from the text's end on. */
static bool find_classes(struct finish *t) {
    for (u32 c = 0; c < ASCII_END; c++) {
        u32 class = auto_class(t->m, c);
        if (!class) {
            return false;
        }
        t->head.ascii[c] = (u8)(class - AUTO_END_CLASS);
    }
    find_breaks(t);
    qsort(t->breaks.items, (size_t)t->breaks.count, sizeof *t->breaks.items, by_value);
    for (i64 i = 0; i < t->breaks.count; i++) {
        u32 c = t->breaks.items[i];
        u32 class = auto_class(t->m, c);
        if (!class) {
            return false;
        }
        u8 column = (u8)(class - AUTO_END_CLASS);
        if (i == 0 || column != t->classes.items[t->classes.count - 1]) {
            VEC_PUSH(t->arena, &t->firsts, c);
            VEC_PUSH(t->arena, &t->classes, column);
        }
    }
    return true;
}

/* Of an automaton that only says whether there is a match, a step is its state. */
static i32 test_next(const struct auto_step *step) {
    return step->match >= 0 ? REGEX_FOUND : step->to == AUTO_DEAD ? REGEX_DEAD : (i32)step->to;
}

static u16 way_of(i32 from) {
    return from < 0 ? REGEX_NO_WAY : from == AUTO_NEW ? REGEX_NEW_WAY : (u16)from;
}

/* The same step as one of those found last: neighbouring classes mostly agree. */
static i64 find_step(const struct finish *t, const struct regex_step *step,
                     const struct regex_move *moves) {
    enum { LAST = 64 };
    for (i64 i = t->steps.count; i-- > MAX_OF(t->steps.count - LAST, 0);) {
        const struct regex_step *old = &t->steps.items[i];
        if (old->to == step->to && old->match == step->match && old->noted == step->noted &&
            old->move_count == step->move_count &&
            (!step->move_count ||
             memcmp(t->moves.items + old->move_at, moves, sizeof *moves * step->move_count) == 0)) {
            return i;
        }
    }
    return -1;
}

/* Of one that says where, also what becomes of the ways; -1: they are too many. */
static i32 span_next(struct finish *t, const struct auto_step *step) {
    struct regex_move moves[REGEX_ROWS];
    bool dead = step->to == AUTO_DEAD;
    u32 mask = (u32)((1ULL << t->head.width) - 1);
    if (!dead && step->match < 0 && step->move_count == 0) {
        return (i32)step->to;
    }
    if (step->move_count * t->head.width > REGEX_ROWS) {
        return -1;
    }
    for (u32 i = 0; i < step->move_count; i++) {
        const struct auto_move *move = &t->m->moves[step->move_at + i];
        moves[i] = (struct regex_move){way_of(move->from), move->noted & mask};
    }
    struct regex_step made = {.to = (u16)(dead ? REGEX_DEAD : step->to),
                              .match = way_of(step->match),
                              .move_at = (u16)t->moves.count,
                              .move_count = step->move_count,
                              .noted = step->match_noted & mask};
    i64 at = find_step(t, &made, moves);
    if (at < 0) {
        at = t->steps.count;
        VEC_PUSH(t->arena, &t->steps, made);
        for (u32 i = 0; i < step->move_count; i++) {
            VEC_PUSH(t->arena, &t->moves, moves[i]);
        }
    }
    return at < REGEX_STEP && t->moves.count < 0xffff ? REGEX_STEP + (i32)at : -1;
}

/* Rows of the table are in the order in which the automaton numbers its states. */
static bool find_steps(struct finish *t, i32 parts) {
    static const u8 befores[REGEX_STARTS] = {AUTO_BEGIN, 0, AUTO_NEWLINE, AUTO_WORD};
    struct regex_auto *m = t->m;
    auto_classes_end(m);
    for (i32 i = 0; i < (parts ? REGEX_STARTS : 1); i++) {
        t->head.starts[i] = auto_start(m, parts, befores[i]);
    }
    t->head.start = t->head.starts[REGEX_AT_BEGIN];
    t->head.class_count = (u32)(m->class_count - AUTO_END_CLASS);
    for (u32 i = 0; i < REGEX_FIRST_STATE * t->head.class_count; i++) {
        VEC_PUSH(t->arena, &t->next, (u16)REGEX_DEAD);
    }
    for (u32 state = REGEX_FIRST_STATE; state < (u32)m->state_count; state++) {
        for (u32 column = 0; column < t->head.class_count; column++) {
            const struct auto_step *step = auto_next(m, state, AUTO_END_CLASS + column);
            i32 to = !step ? -1 : parts ? span_next(t, step) : test_next(step);
            if (to < 0) {
                return false;
            }
            VEC_PUSH(t->arena, &t->next, (u16)to);
        }
    }
    return true;
}

/* What follows a character of a class is one of the beginnings. */
static void put_afters(const struct finish *t, u8 *out) {
    for (u32 column = 0; column < t->head.class_count; column++) {
        u8 flags = column ? t->m->class_flags[AUTO_END_CLASS + column] : 0;
        out[column] = flags & AUTO_NEWLINE ? REGEX_AFTER_NEWLINE
                      : flags & AUTO_WORD  ? REGEX_AFTER_WORD
                                           : REGEX_AFTER_OTHER;
    }
}

static void put_items(u8 *out, u32 at, const void *items, i64 bytes) {
    if (bytes) {
        memcpy(out + at, items, (size_t)bytes);
    }
}

static struct sv put_together(struct finish *t) {
    struct regex_table *head = &t->head;
    i64 step_bytes = (i64)sizeof *t->steps.items * t->steps.count;
    i64 move_bytes = (i64)sizeof *t->moves.items * t->moves.count;
    head->range_count = (u32)t->firsts.count;
    head->classes_at = (u32)(sizeof *head + 4 * (size_t)t->firsts.count);
    head->after_at = head->classes_at + (u32)t->classes.count;
    head->next_at = (u32)ALIGN_UP(head->after_at + head->class_count, 4u);
    head->steps_at = (u32)ALIGN_UP(head->next_at + 2 * (u32)t->next.count, 4u);
    head->moves_at = head->steps_at + (u32)step_bytes;
    i64 bytes = head->moves_at + move_bytes;
    u8 *out = arena_alloc(t->arena, bytes);
    memset(out, 0, (size_t)bytes);
    memcpy(out, head, sizeof *head);
    put_items(out, sizeof *head, t->firsts.items, 4 * t->firsts.count);
    put_items(out, head->classes_at, t->classes.items, t->classes.count);
    put_items(out, head->next_at, t->next.items, 2 * t->next.count);
    put_items(out, head->steps_at, t->steps.items, step_bytes);
    put_items(out, head->moves_at, t->moves.items, move_bytes);
    put_afters(t, out + head->after_at);
    return (struct sv){(const char *)out, bytes};
}

/* Positions of how many parts the opcode asks for; 0: only whether there is a match. */
static i32 set_call(struct finish *t, const struct regex_call *call, enum regex_ask ask) {
    struct regex_table *head = &t->head;
    i32 groups = MIN_OF(t->m->re.group_count, REGEX_GROUPS_MAX - 1);
    bool finds = ask == REGEX_ASK_PART;
    i32 parts = ask == REGEX_ASK_TEST  ? 0
                : ask == REGEX_ASK_ALL ? groups + 1
                : finds                ? (i32)MIN_OF(call->part, groups) + 1
                                       : 1;
    head->width = parts > 1 ? 2 * (u32)parts : 1;
    head->anchored = t->m->anchored;
    head->first = (i32)call->start;
    head->number = (i32)MIN_OF(call->number, I32_MAX);
    head->part = (u32)(finds ? MIN_OF(call->part, groups) : 0);
    head->no_part = finds && call->part > groups;
    head->part_count = (u32)groups;
    head->behind = call->end;
    head->all = call->all;
    bool number_bad = (finds || ask == REGEX_ASK_COUNT) && call->number < 1;
    bool option_bad = ask == REGEX_ASK_SPLIT && call->global;
    head->fault = number_bad ? FAULT_REGEX_START : option_bad ? FAULT_REGEX_OPTION : 0;
    return parts;
}

struct sv regex_table_make(struct arena *arena, str pattern, enum regex_ask ask) {
    struct finish t = {.arena = arena, .m = arena_alloc(arena, sizeof *t.m)};
    struct regex_call call;
    u8 fault = regex_ops_compile(t.m, pattern, &call);
    bool usable = fault || auto_begin(t.m);
    i32 parts = fault ? 0 : set_call(&t, &call, ask);
    t.head.fault = fault ? fault : t.head.fault;
    if (!t.head.fault && (!usable || !find_classes(&t) || !find_steps(&t, parts))) {
        return (struct sv){NULL, 0};
    }
    if (!t.head.fault) {
        auto_find_leads(t.m, &t.head.leads);
    }
    return put_together(&t);
}
