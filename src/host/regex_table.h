/* regex_table.h: the automaton of a regular expression, finished: for devices that cannot go on
 * building it while they run. */
#ifndef WF_HOST_REGEX_TABLE_H
#define WF_HOST_REGEX_TABLE_H

#include "base/mem.h"

/* What an opcode wants to know of a text. */
enum regex_ask {
    REGEX_ASK_TEST,  /* whether there is a match */
    REGEX_ASK_COUNT, /* how many */
    REGEX_ASK_SPLIT, /* where all of them are */
    REGEX_ASK_PART,  /* where a part of one is */
    REGEX_ASK_ALL,   /* where all parts of all are */
};
/* A struct regex_table of defs/fn_regex.h and what follows it, in `arena`, for the pattern as REGEX
 * opcodes take it; a bad pattern gives a table with its fault. Empty: it would have too many states
 * or ways, or memory is short. */
struct sv regex_table_make(struct arena *arena, str pattern, enum regex_ask ask);

#endif
