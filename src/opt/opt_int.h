/* opt_int.h: what the passes share: facts about columns, estimates, small tools. */
#ifndef WF_OPT_OPT_INT_H
#define WF_OPT_OPT_INT_H

#include "base/stop.h"
#include "defs/pass.def"
#include "opt/opt.h"

/* What is known of a plan column's values wherever it appears. */
struct col_fact {
    b8 has_range; /* exact types and dates */
    b8 has_distinct;
    b8 has_values; /* numbers of a table */
    b8 has_spread; /* an aggregate of them */
    struct range range;
    i64 distinct;
    i64 values_most;     /* there are no more different ones: of counts; 0 = not known */
    f64 least, most;     /* values; of decimals too */
    f64 mean, deviation; /* spread: a guess, known once rows were estimated */
    const struct snapshot_table *source; /* of a text column of a table; NULL otherwise */
    u32 table_col;
};

/* What a pattern kept of a sample. */
struct like_share {
    u32 col;
    u16 func;
    str pattern;
    u64 hash; /* of the pattern */
    f64 share;
};

struct opt {
    struct plan *plan;
    const struct settings *settings;
    struct error *err;
    struct col_fact *facts; /* by column number */
    i64 fact_count;
    VEC(const struct rel *) visited; /* see opt_first_visit */
    VEC(struct like_share) likes;    /* estimates made so far */
};

#define X(A, name, need, text) FALLIBLE pass_##name(struct opt *o);
WF_PASSES(X, )
#undef X

/* Fills facts of every column below rel. */
void facts_collect(struct opt *o, struct rel *rel);
/* As expr_can_raise, but knows the columns' ranges. */
/* Whether equal values of the type are the same to every function: 0 and -0, or a month and thirty
 * days, are not. */
static inline bool opt_equal_is_same(struct type type) {
    return !type_is_float(type) && type.id != TYPE_INTERVAL;
}
bool facts_can_raise(const struct opt *o, const struct expr *expr);

void extremes_merge(struct opt *o); /* extremes_merge.c */

/* Sets rows (and right_unique) of rel and everything below it. */
void estimate_rel(struct opt *o, struct rel *rel);
/* Distinct values of expr among `rows` rows. */
i64 estimate_distinct(const struct opt *o, const struct expr *expr, i64 rows);
/* Share of rows a condition keeps. */
f64 estimate_share(struct opt *o, const struct expr *cond);
/* Share of rows that all conditions of a filter keep; two bounds of a column are a range. */
f64 estimate_conds(struct opt *o, const expr_list *conds);
/* Share of rows that a join's condition keeps, whose inputs meet already what it says of single columns. */
f64 estimate_residual(struct opt *o, const struct expr *cond);
/* Whether no two rows of rel agree in all of these expressions. */
bool estimate_unique(const struct plan *plan, const struct rel *rel, struct expr *const *keys,
                     const b8 *null_safe, i64 count);
/* The largest table below: what a filter leaves of a key is still a key of all of it. */
i64 estimate_base(const struct rel *rel);

/* Whether the rows of rel probably come in the order of expr; see runs.c. */
bool opt_is_sorted(struct rel *rel, const struct expr *expr);

/* All operators of a kind, each before those below it, as they are now: for passes that change the
 * plan while they look at them. */
typedef VEC(struct rel *) rel_all;
rel_all opt_all_of(struct opt *o, enum rel_kind kind);
/* True the first time an input of SHARED is asked for since `visited` was emptied. */
bool opt_first_visit(struct opt *o, const struct rel *input);
/* Replaces every input by what `change` makes of it. The input of a SHARED is changed once since
 * `visited` was emptied, in its place, which all users hold, and keeps its columns. */
typedef struct rel *(*rel_change_fn)(struct rel *rel, void *arg);
void opt_change_inputs(struct opt *o, struct rel *rel, rel_change_fn change, void *arg);
/* Puts a SHARED between parent and one of its inputs, which others may then use too; everything
 * above sees the columns under new numbers. */
void opt_share(struct plan *plan, struct rel *parent, i32 which);
/* Everything above `stop` names columns otherwise: by the map, which has `count` entries. Columns that are passed on by
 * two names then are passed on once (literals.c). */
void opt_rename_above(struct opt *o, const struct rel *stop, struct expr **map, i64 count);
/* Whether somebody computes with a column that a join makes visible, other than the join itself. */
bool opt_is_read(struct opt *o, const struct rel *join, u32 col);
/* Nobody above `stop` passes on the column any more. */
void opt_drop_above(struct opt *o, const struct rel *stop, u32 col);
/* Facts of the plan as it is now, for a pass that runs another one after it changed something. */
void opt_look_again(struct opt *o);
/* Notes the unique columns below rel, whose uniqueness was made use of. */
void opt_rely(struct opt *o, struct rel *rel);
/* Whether a join is one that may change places with others like it. */
bool opt_is_inner(const struct rel *rel);
/* Whether it has exactly one row, for all that is looked at. */
bool opt_one_row(const struct rel *rel);
/* Whether it reads rows of a recursion around it (join_order.c). */
bool opt_reads_rounds(struct opt *o, struct rel *rel);
/* A relation with exactly the columns of `like`, in that order: rel itself when it has them. */
struct rel *rel_with_out(struct plan *plan, struct rel *rel, const struct rel *like);

#endif
