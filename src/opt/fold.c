/* fold.c: the pass that replaces expressions of constants by their values, everywhere in the plan.
 *
 * First of all passes: what the query's writer or a program that made it left as 1 = 1 or CASE over
 * constants is gone before anybody looks at conditions. expr_fold never computes what would raise.
 * It runs even with optimizer = off, because it decides which errors a query has: x / 0 + NULL is
 * NULL.
 */
#include "opt/opt_int.h"

#include "codes/scalar.h"

/* wf_finite(column) is the column where its range says so: nothing can raise then. What has no NULLs
 * is not NULL. */
static struct expr *drop_check(struct expr *expr, void *arg) {
    const struct opt *o = arg;
    struct expr *of = expr->arg_count > 0 ? expr->args[0] : NULL;
    if (expr->kind == EXPR_IS_NULL && !expr_nullable(o->plan, of) && !expr_can_raise(of)) {
        struct expr *no = expr_new(o->plan->arena, EXPR_CONST, expr->type, expr->position);
        no->value.b8 = 0;
        return no;
    }
    if (expr->kind != EXPR_CALL || expr->func != FUNC_ONLY_DATE || of->kind != EXPR_COL) {
        return NULL;
    }
    const struct col_fact *fact = &o->facts[of->col];
    bool finite = fact->has_range && fact->range.lo > I32_MIN && fact->range.hi < I32_MAX;
    return finite ? of : expr;
}

static bool is_other(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return expr->kind != EXPR_IS_NULL && (expr->kind != EXPR_CALL || expr->func != FUNC_ONLY_DATE);
}

/* Twice: what cannot raise any more may be known not to be NULL, too. */
static void fold_slot(struct expr **slot, void *arg) {
    struct opt *o = arg;
    *slot = expr_fold(o->plan, *slot);
    for (i32 i = 0; i < 2 && !expr_walk(*slot, is_other, NULL); i++) {
        struct expr *checked = expr_rebuild(o->plan->arena, *slot, drop_check, o);
        *slot = expr_fold(o->plan, checked); /* wf_defined of it goes, too */
    }
}

static void fold_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, fold_slot, arg);
}

FALLIBLE pass_fold(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, fold_rel, o);
    return ERR_OK;
}
