/* regex_auto.h: regular expressions run by an automaton that grows with the texts it meets.
 *
 * Answers are those of regex_search (regex.h), found in one pass over the text. A struct regex_auto
 * is a pattern and all that was learnt of it so far: it belongs to one thread, is written to by
 * every search and never grows beyond itself; when it is full, it forgets and learns anew. */
#ifndef WF_HOST_REGEX_AUTO_H
#define WF_HOST_REGEX_AUTO_H

#include "host/regex.h"

enum {
    AUTO_CLASSES_MAX = 256,
    AUTO_TESTS_MAX = 254,
    AUTO_STATES_MAX = 1 << 11,
    AUTO_NEXT_MAX = 1 << 16,
    AUTO_LISTS_MAX = 1 << 15,
    AUTO_STEPS_MAX = 1 << 12,
    AUTO_MOVES_MAX = 1 << 13,
    AUTO_ROWS_MAX = 1 << 12,
    AUTO_HASH_SLOTS = 1 << 12,
    AUTO_CHARS_KEPT = 256,
    AUTO_LITERAL_MAX = 64,
    AUTO_NEW = 0xffff,
    AUTO_DEAD = 1, /* the state from which no match comes any more */
};

/* Ways through the pattern that a text so far allows, before what they may reach unread. */
struct auto_state {
    u32 list_at;
    u16 list_count; /* instructions in order of preference, AUTO_GROUP: the first of a start */
    u8 kind;        /* enum auto_kind */
    u8 before;      /* AUTO_BEGIN …: the character read last */
    b8 seek;        /* a match may still begin here */
};

/* Where way i of the next state comes from, and which positions it notes. */
struct auto_move {
    u16 from; /* AUTO_NEW: it begins here */
    u32 noted;
};

/* A transition that does more than to change the state. */
struct auto_step {
    u32 to;
    u32 move_at;
    i32 match; /* the way that has matched before this character; -1 = none */
    u32 match_noted;
    u16 move_count; /* 0 = every way stays where it is */
    b8 skip;        /* to a state that waits for the literal */
};

/* Bytes to look for before anything else. */
struct auto_literal {
    i32 len;
    i32 rare; /* which of them texts have least */
    char bytes[AUTO_LITERAL_MAX + 4];
};

struct regex_auto {
    struct regex re;
    b8 used;        /* it was asked before */
    b8 ready;       /* what follows is set up */
    b8 usable;      /* few enough tests */
    b8 anchored;    /* matches begin at the text's begin only */
    b8 whole;       /* the prefix is all of the pattern */
    b8 failed;      /* this search is left to the reference */
    u8 context;     /* which AUTO_BEGIN … the pattern asks for */
    i32 slot_count; /* of all parts */
    struct auto_literal prefix, needed;
    i32 calls, tried, passed; /* whether looking for `needed` is worth it */

    i32 test_count, class_count, state_count, shift;
    i32 list_count, step_count, move_count;
    u16 tests[AUTO_TESTS_MAX]; /* instructions that take different characters */
    u64 signs[AUTO_CLASSES_MAX][4];
    u32 class_char[AUTO_CLASSES_MAX];
    u8 class_flags[AUTO_CLASSES_MAX];
    u8 byte_class[256];  /* 0: not known, or not a character */
    u8 pair_class[2048]; /* of characters of two bytes */
    u32 kept_char[AUTO_CHARS_KEPT];
    u8 kept_class[AUTO_CHARS_KEPT];

    u32 starts[3][8]; /* states to begin with, by kind and character before; 0: none yet */
    u16 slots[AUTO_HASH_SLOTS];
    struct auto_state states[AUTO_STATES_MAX];
    u32 next[AUTO_NEXT_MAX];
    u16 lists[AUTO_LISTS_MAX];
    struct auto_step steps[AUTO_STEPS_MAX];
    struct auto_move moves[AUTO_MOVES_MAX];
    i32 rows[2][AUTO_ROWS_MAX];

    u32 marks[REGEX_INSTS_MAX], now;
    i32 draft_count;
    u16 draft[REGEX_INSTS_MAX];
    struct auto_move draft_moves[REGEX_INSTS_MAX];
};

/* As regex_compile. */
u8 regex_auto_compile(struct regex_auto *out, struct sv pattern, struct sv flags);
/* As regex_search, for the match (part 0) and the parts behind it, `parts` in all; 0: only whether
 * there is a match. Slots of parts beyond the pattern's are -1. */
bool regex_auto_search(struct regex_auto *m, struct sv text, i64 from, i64 *slots, i32 parts);

/* For regex_table.c, which finishes an automaton: all classes, then states to begin with, then what
 * follows each. */
enum { AUTO_END_CLASS = 1 }; /* of the text's end; those of characters follow */
enum { AUTO_BEGIN = 1, AUTO_NEWLINE = 2, AUTO_WORD = 4 }; /* what is before a place */
bool auto_begin(struct regex_auto *m); /* false: the pattern tests too many characters */
u32 auto_class(struct regex_auto *m, u32 code_point); /* 0: there are too many */
void auto_classes_end(struct regex_auto *m);
/* The state to begin with behind that; states are numbered from 2 on. `parts` as for
 * regex_auto_search. */
u32 auto_start(struct regex_auto *m, i32 parts, u8 before);
/* The step from a state over a class, to AUTO_DEAD where no match will come any more; NULL: there are
 * too many states. Step and moves are there until the next one is asked for. */
const struct auto_step *auto_next(struct regex_auto *m, u32 state, u32 class);

/* What the options in front of a pattern say, beside its letters. */
struct regex_call {
    i64 start;  /* character to begin at, from 1 */
    i64 number; /* which match; 0 = all (replace) */
    i64 part;   /* parenthesised part */
    b8 end;     /* instr: behind the match */
    b8 all;     /* replace: every match */
    b8 global;  /* the letter g is there */
};
/* As regex_auto_compile, for a pattern as opcodes have it, with its options (regex_ops.c). */
u8 regex_ops_compile(struct regex_auto *out, str pattern, struct regex_call *out_call);

/* regex_literal.c: bytes that every match begins with, and (once a pattern has proved to be
 * used often) bytes that every match has. */
void auto_find_prefix(struct regex_auto *m);
void auto_find_needed(struct regex_auto *m);
/* First bytes of what a match must begin with, and of what it must have behind that. None where
 * looking for them is no use. */
struct leads;
void auto_find_leads(const struct regex_auto *m, struct leads *out);
/* Where the bytes stand in [p, end); NULL when they do not. */
const u8 *auto_find_literal(const struct auto_literal *literal, const u8 *p, const u8 *end);

#endif
