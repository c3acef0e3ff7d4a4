/* friendly_int.h: SQL that PostgreSQL's grammar refuses and people write all the same; for parse.c.
 *
 * A draft is the script as rewritten so far, in pieces that know where they came from, so that
 * every position in it can be told in terms of the user's text. */
#ifndef WF_SQL_FRIENDLY_INT_H
#define WF_SQL_FRIENDLY_INT_H

#include "base/mem.h"

struct piece {
    i64 len;
    i64 from;  /* in the user's text: of its first byte, or what it was made for */
    b8 copied; /* the user's own bytes; else made up */
};

struct draft {
    struct arena *arena;
    struct sv text; /* NUL-terminated */
    VEC(struct piece) pieces;
    VEC(i64) replaced; /* user's positions where OR REPLACE was left out */
};

void draft_init(struct draft *draft, struct arena *arena, struct sv text);
/* A position in the draft, in the user's text. */
i64 draft_position(const struct draft *draft, i64 at);
/* Whether what is there is none of the user's text. */
bool draft_is_ours(const struct draft *draft, i64 at);
/* One rewriting by the rule that fits the error at `at`, which said `message`. False: none fits. */
bool friendly_rewrite(struct draft *draft, i64 at, const char *message);

/* Names of the functions that stand for what has no syntax of its own; no user's identifier that
 * the binder knows is one of them. */
#define FRIENDLY_STAR "* but" /* (t.* or NULL, exclude => xmlforest(…), replace => …) */
#define FRIENDLY_ALL "* all"  /* GROUP BY ALL, ORDER BY ALL */
#define FRIENDLY_SUMMARIZE "* summarize" /* ((query)) in FROM */
#define FRIENDLY_DESCRIBE "* describe"   /* ((query)) in FROM */

#endif
