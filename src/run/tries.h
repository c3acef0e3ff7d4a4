/* tries.h: sorted rows of a table's version, and graphs made of them, kept for later statements.
 *
 * What is kept hangs on the version that it was made of, by the text of the steps that made it: a table that
 * has changed has another version, a transaction and an old snapshot have theirs, and with a version goes what
 * was kept of it. It belongs to the database's budget: used while a statement reads it, idle otherwise, and
 * given back, what was used least recently first, when somebody needs the memory. See decision 0040. */
#ifndef WF_RUN_TRIES_H
#define WF_RUN_TRIES_H

#include "run/device.h"

struct tries;
struct kept_trie;

/* NULL when memory is refused. */
struct tries *tries_open(struct memory *mem);
/* After all versions. */
void tries_close(struct tries *tries);

/* Steps that make something worth keeping of one table and nothing else: sorted rows with an index, or rows
 * whose only reader is the STEP_CLIQUES behind them. */
struct trie_chain {
    u32 first, end; /* steps of the program, counted through its blocks */
    u32 table;
    u32 rows;      /* the variable */
    u32 index;     /* NO_VAR: of a graph */
    struct sv key; /* what they do; variables and literals by what they are, not by their numbers */
};
/* trie_chain.c: the one that begins with a step; false: none does. In the execution's arena. */
bool trie_chain_at(struct exec *x, const struct block *block, u32 block_first, u32 step,
                   struct trie_chain *out);

/* Whether what a chain makes is kept: then its variables have it. */
bool tries_take(struct exec *x, const struct trie_chain *chain);
/* Keeps what it made, if there is room, and it is all in the memory of the host. Of a graph: that the step
 * which makes one may keep it. */
void tries_keep(struct exec *x, const struct trie_chain *chain);

/* A graph that a step made of the rows of a variable. Blocks that it consists of were handed to the database
 * with kept_trie_own. */
struct kept_graph {
    void (*free)(struct memory *mem, struct kept_graph *graph);
};
/* The graph that is kept of a variable's rows; NULL: none is. */
struct kept_graph *variable_graph(const struct variable *var);
/* Keeps it from now on: the variable has it, and the caller no longer; false: the caller still does, and its
 * blocks are the statement's. `make` makes it one that can be kept, with blocks of the database's. */
bool tries_keep_graph(struct exec *x, u32 var, i64 bytes,
                      struct kept_graph *(*make)(struct exec *x, void *arg), void *arg);
/* A block of the statement's is the database's. */
i64 kept_trie_own(struct exec *x, i64 bytes);
void kept_trie_release(struct kept_trie *kept); /* by a variable or an index; NULL is fine */

/* What a device with memory of its own made of a chain, and keeps there. Found by the device's space beside the
 * version and the key; how much of it there may be, and when room is needed, the device knows. See decision 0090. */
struct kept_far {
    u32 space; /* by which it is found */
    i64 bytes;
    b8 in_host; /* they are blocks of the database's after all: they go when the host needs memory */
    i64 rows;
    void (*free)(struct kept_far *far); /* from any thread: its version has gone, or nobody needs it */
};
/* With so many users, to whom it is given; NULL: there is none. */
struct kept_trie *tries_take_far(struct exec *x, const struct trie_chain *chain, u32 space, i32 users);
/* NULL: it lies in the host's memory, or `kept` is NULL. */
struct kept_far *kept_trie_far(const struct kept_trie *kept);
/* Keeps it, with so many users; NULL: it is not kept, and still the caller's. */
struct kept_trie *tries_keep_far(struct exec *x, const struct trie_chain *chain, struct kept_far *far,
                                 i32 users);
void tries_forget(struct kept_trie *kept); /* nobody finds it any more; it goes with its last user */
/* Drops the one of a device that was used least recently, and that nobody uses; its bytes, 0 = there is none. */
i64 tries_drop_far(struct tries *tries, u32 space);
/* Bytes of a device that all of them have; of those that nobody uses. */
void tries_far_bytes(struct tries *tries, u32 space, i64 *out_all, i64 *out_idle);

#endif
