/* logiql_int.h: for the files of logiql/ alone: tokens. */
#ifndef WF_LOGIQL_INT_H
#define WF_LOGIQL_INT_H

#include "logiql/tree.h"

enum lq_token_kind {
    TOKEN_END,
    TOKEN_NAME,     /* text: a name, with colons if it has them */
    TOKEN_VARIABLE, /* text: behind the ? */
    TOKEN_INT,
    TOKEN_DECIMAL,
    TOKEN_FLOAT,
    TOKEN_STRING, /* text: escapes undone */
    TOKEN_DATETIME,
    TOKEN_PREDICATE, /* text: behind the backquote */
    TOKEN_MARK,      /* text: one of the marks of lex.c */
    TOKEN_POINT      /* ends a clause */
};

struct lq_token {
    u8 kind;
    i32 position;
    i32 end;
    struct sv text;
};

struct lq_lexer {
    struct arena *arena;
    struct sv text;
    i64 at;
    lq_mistakes *mistakes;
};

enum { MISTAKES_MOST = 100 };
void lq_mistake(struct arena *arena, lq_mistakes *mistakes, wf_status code, i32 position,
                const char *hint, const char *format, ...) __attribute__((format(printf, 6, 7)));

void lq_sort_mistakes(lq_mistakes *mistakes); /* in the order of the text */

/* The next token; characters that begin none are mistakes and passed over. */
struct lq_token lq_next(struct lq_lexer *lexer);
bool lq_is_qualified(struct sv name); /* has colons */

#endif
