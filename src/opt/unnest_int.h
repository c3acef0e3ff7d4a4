/* unnest_int.h: what the two files of the pass unnest share. */
#ifndef WF_OPT_UNNEST_INT_H
#define WF_OPT_UNNEST_INT_H

#include "opt/opt_int.h"

struct unnest {
    struct opt *o;
    struct rel *join;
    u32 *outer; /* columns of the left that the right uses */
    i64 count;
    const u8 *is_outer; /* by column */
    i64 is_outer_count;
    b8 widen;           /* nothing on the right can raise: values may come from its own columns */
    struct rel *domain; /* distinct outer columns; NULL until it is needed */
    b8 grows; /* the right side is made of the left's own rows, which it has all columns of */
    struct rel *left;              /* shared then */
    VEC(struct rel *) shared_from; /* inputs of SHARED already done, with their columns */
    VEC(u32 *) shared_cols;
    VEC(const struct rel *) draws; /* what calls sequences on the right, for each left row anew */
    b8 numbered;                   /* then: the first outer column is the left row's number */
    VEC(u32) fixes; /* recursions whose first term has the values: their working rows do, too */
};

bool unnest_uses_outer(const struct unnest *u, const struct expr *expr);
bool unnest_below_uses_outer(const struct unnest *u, struct rel *rel);
struct expr *unnest_zero_if_null(struct plan *plan, u32 col);

/* unnest_carry.c: outer columns whose equal values are not the same become others; false when there
 * are none. */
bool unnest_carry(struct unnest *u);

/* unnest_simple.c */
/* A SINGLE join whose right side is not known to have one row at most for each of the left's. */
bool unnest_may_find_two(struct opt *o, const struct rel *rel);
/* SINGLE and LEFT: rows of the left without a match stay. */
bool unnest_keeps_left(const struct rel *join);
/* Moves a filter's conditions on the left sides of the joins below it there, so that the right
 * sides are computed, and raise, for no more rows than they must. */
void unnest_sink(struct opt *o, struct rel *filter);
/* Moves projections from the top of the right side above the join. */
void unnest_lift(struct unnest *u);
/* Moves all conditions that name outer columns into the join; false, and nothing is changed, when
 * outer columns stand elsewhere too. */
bool unnest_pull(struct unnest *u);
/* Whether the right side is an aggregate without keys whose missing groups the join supplies; the
 * counts above are changed accordingly. */
bool unnest_agg_top(struct unnest *u);

#endif
