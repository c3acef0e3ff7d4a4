/* complete_int.h: what the two files of completion share. */
#ifndef WF_SQL_COMPLETE_INT_H
#define WF_SQL_COMPLETE_INT_H

#include "defs/settings.h"
#include "defs/type.def"
#include "sql/sql_int.h"

struct completion {
    struct snapshot *snap;
    struct arena *arena;
    complete_each each;
    void *arg;
    b8 stopped;
    VEC(struct sv) tokens; /* of the statement, without the word at the cursor */
    i64 here;              /* the token behind the cursor */
    struct sv prefix;      /* what stands before the cursor of its word */
    i64 start;             /* where the word begins in the text */
};

/* complete.c. Whether token i is the word, or one of the words; false beyond the ends. */
bool complete_is(const struct completion *c, i64 i, const char *word);
bool complete_among(const struct completion *c, i64 i, const char *words);
bool complete_is_name(struct sv token);
const char *complete_name(struct completion *c, i64 i); /* token i, as the catalog has it */
/* Where the parenthesis of token i is closed; `hi` when it is not, before that. */
i64 complete_close(const struct completion *c, i64 i, i64 hi);
void complete_offer_name(struct completion *c, const char *name, enum completion_kind kind);
void complete_offer_word(struct completion *c, const char *word, enum completion_kind kind);

/* complete_scope.c: names of the catalog, and those a query gives. */
void complete_offer_schemas(struct completion *c);
void complete_offer_tables(struct completion *c);
void complete_offer_columns(struct completion *c);              /* that the cursor sees */
void complete_offer_columns_of(struct completion *c, i64 name); /* of the table of token `name` */
void complete_offer_qualified(struct completion *c, i64 name);  /* token `name`, dot, cursor */

#endif
