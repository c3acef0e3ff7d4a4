/* fold.c: the pass that replaces expressions of constants by their values, everywhere in the plan.
 *
 * First of all passes: what the query's writer or a program that made it left as 1 = 1 or CASE over
 * constants is gone before anybody looks at conditions. expr_fold never computes what would raise.
 * It runs even with optimizer = off, because it decides which errors a query has: x / 0 + NULL is
 * NULL.
 */
#include "opt/opt_int.h"

static void fold_slot(struct expr **slot, void *arg) {
    *slot = expr_fold(arg, *slot);
}

static void fold_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, fold_slot, arg);
}

FALLIBLE pass_fold(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, fold_rel, o->plan);
    return ERR_OK;
}
