/* regex_table.c: finishes the automaton of a pattern: every state it can reach, over every class of
 * characters.
 *
 * States and steps are those of regex_auto.c, asked for one by one. Characters change their class only
 * at code points where an instruction or a class of Unicode does: between two of them all are
 * alike. */
#include "host/regex_table.h"

#include "defs/host_words.h"
#include "host/chars.h"
#include "host/regex_auto.h"

#include "defs/fn_str.h"
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

/* Rows of the table are in the order in which the automaton numbers its states. */
static bool find_steps(struct finish *t) {
    struct regex_auto *m = t->m;
    u32 start = auto_start(m);
    t->head.start = start;
    t->head.class_count = (u32)(m->class_count - AUTO_END_CLASS);
    for (u32 i = 0; i < REGEX_FIRST_STATE * t->head.class_count; i++) {
        VEC_PUSH(t->arena, &t->next, (u16)REGEX_DEAD);
    }
    for (u32 state = REGEX_FIRST_STATE; state < (u32)m->state_count; state++) {
        for (u32 column = 0; column < t->head.class_count; column++) {
            i32 to = auto_next(m, state, AUTO_END_CLASS + column);
            if (to < 0) {
                return false;
            }
            VEC_PUSH(t->arena, &t->next, (u16)to);
        }
    }
    return true;
}

static struct sv put_together(struct finish *t) {
    struct regex_table *head = &t->head;
    head->range_count = (u32)t->firsts.count;
    head->classes_at = (u32)(sizeof *head + 4 * (size_t)t->firsts.count);
    head->next_at = (u32)ALIGN_UP(head->classes_at + (u32)t->classes.count, 4u);
    i64 bytes = head->next_at + 2 * t->next.count;
    u8 *out = arena_alloc(t->arena, bytes);
    memset(out, 0, (size_t)bytes);
    memcpy(out, head, sizeof *head);
    if (t->firsts.count) {
        memcpy(out + sizeof *head, t->firsts.items, 4 * (size_t)t->firsts.count);
        memcpy(out + head->classes_at, t->classes.items, (size_t)t->classes.count);
    }
    if (t->next.count) {
        memcpy(out + head->next_at, t->next.items, 2 * (size_t)t->next.count);
    }
    return (struct sv){(const char *)out, bytes};
}

struct sv regex_table_make(struct arena *arena, str pattern) {
    struct finish t = {.arena = arena, .m = arena_alloc(arena, sizeof *t.m)};
    t.head.fault = regex_ops_compile(t.m, pattern);
    if (!t.head.fault && (!auto_begin(t.m) || !find_classes(&t) || !find_steps(&t))) {
        return (struct sv){NULL, 0};
    }
    return put_together(&t);
}
