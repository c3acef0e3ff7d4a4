/* agg_int.h: aggregates as words: what aggregate.c and window.c share.
 *
 * words_add turns one call into words of an aggregation state, given its argument in a pipeline;
 * words_finish turns the totals of those words, columns of a finished state, into the call's value.
 * Who adds the words up, by group or by frame, is not known here. */
#ifndef WF_LOWER_AGG_INT_H
#define WF_LOWER_AGG_INT_H

#include "lower/lower_int.h"

enum { NO_WORD = -1 };

struct part {
    i32 word;
    i32 shift; /* its weight is 2^shift */
};

struct call_state {
    u8 agg; /* enum agg */
    i32 position;
    struct value arg;
    struct value arg2; /* regr_sxy */
    struct type arg_type;
    struct type type; /* of the result */
    VEC(struct part) parts;
    i32 spacing;    /* float limbs: bits between words */
    i32 lsb;        /* float limbs: weight of the lowest */
    i32 count_word; /* non-NULL inputs */
    i32 nan_word;   /* floats that may be special */
    i32 plus_word, minus_word;
    i32 nan_word2, plus_word2, minus_word2; /* of the second argument */
    bool may_be_null;
    struct range range; /* of the inputs */
    u32 dict;           /* min, max of text */
    struct ranks ranks;
    u32 first_col; /* of the finished state: word 0 */
    i32 n1;        /* variance: words of the sum; the other parts are the sum of squares */
    i32 n2;        /* regr_sxy: words of the second argument's sum, behind the first's */
    bool ranked;   /* window.c: numbered strings whose ranks are needed */
    bool wide;     /* min, max of numbers beyond 64 bits, as strings that order alike */
    bool fast;     /* floats: one word, FADD */
    bool grouped;  /* a state exists only where there was a row */
};

struct words {
    struct lower *l;
    struct builder *b; /* the pipeline that makes the inputs */
    VEC(u8) ops;       /* enum word_op */
    VEC(u16) regs;
    i32 row_bits; /* 2^row_bits bounds the number of rows */
};

struct agg_state {
    struct lower *l;
    const struct rel *rel;
    struct words w;
    struct key_layout layout;
    struct value *keys;
    i32 key_count;
    struct call_state *calls;
    i32 *place;              /* per key: its field, or -1: it depends on another key */
    struct binding *depends; /* per key: where its value is found again */
    i32 *row_words;      /* per key that depends: the word with the row; else that of its form */
    struct value *forms; /* per interval or float: how it differs from its equals */
    b8 *formed;          /* per key: whether it has a form */
    struct ordered *ordered; /* per call; aggregate.c */
    bool any_ordered;
    u16 key; /* packed; NO_REG = one group */
    u32 var; /* the groups */
};

/* aggregate.c */
struct agg_state *agg_state_new(struct lower *l, const struct rel *rel);
/* Adds the aggregation's sink to a pipeline, or, where rows have to be put in order first, to one
 * that goes on after it: s->w.b, which is not finished. */
void agg_state_sink(struct agg_state *s, struct builder *b);
bool agg_is_plain(const struct rel *rel); /* no rows have to be put in order */
/* agg_scan.c: the aggregation in one scan with others of the same input; NULL: there are none. */
struct agg_state *agg_together(struct lower *l, const struct rel *rel);

void words_add(struct words *w, struct call_state *c);
i32 words_least(struct words *w, u16 reg); /* a word of its own: the least of an i64 register */
struct value words_finish(struct builder *f, const struct call_state *c, i32 row_bits);
i32 words_row_bits(i64 rows);
/* The argument of a call, NULL where the filter is not true; evaluated only where it is. */
struct value words_input(struct builder *b, const struct expr *arg, const struct expr *filter);
/* Whether the call is the least or greatest of numbers beyond 64 bits, which no word holds. */
bool words_too_wide(const struct builder *b, const struct call_state *c);
/* Makes the argument of such a call a string; words_finish makes it a number again. */
void words_narrow(struct builder *b, struct call_state *c);
/* Whether the call is the least or greatest of strings that are not codes yet. */
bool words_need_ranks(const struct builder *b, const struct call_state *c);

#endif
