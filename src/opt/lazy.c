/* lazy.c: which subqueries must not be evaluated before a row asks for them.
 *
 * A scalar subquery or EXISTS that does not depend on the rows around it is computed once, ahead of
 * them. If it can fail, and perhaps no row needs it, its failure must wait: the join is marked as
 * lazy, and lowering lets its steps keep what they would raise until the value is used. Where
 * nothing can fail the join stays free to become an inner one. See decision 0014. */
#include "opt/opt_int.h"

struct search {
    struct opt *o;
    bool raises;
};

static void look_at(struct expr **slot, void *arg) {
    struct search *s = arg;
    s->raises = s->raises || facts_can_raise(s->o, *slot);
}

static void look_into(struct rel *rel, void *arg) {
    struct search *s = arg;
    rel_each_expr(rel, look_at, s);
    bool single = rel->kind == REL_JOIN && rel->join.kind == JOIN_SINGLE;
    s->raises =
        s->raises || (single && !estimate_unique(s->o->plan, rel_right(rel), NULL, NULL, 0));
}

static bool visit_other(const struct expr *expr, void *arg) {
    return expr->kind != EXPR_COL || !rel_has_out(arg, expr->col);
}

/* Whether the right side is the same for every row: conditions may guard it, no more. */
static bool is_apart(const struct rel *rel) {
    bool apart = rel->kind == REL_JOIN && rel->join.left_keys.count == 0 &&
                 (rel->join.kind == JOIN_SINGLE || rel->join.kind == JOIN_MARK);
    for (i64 i = 0; apart && i < rel->join.conds.count; i++) {
        apart = expr_walk(rel->join.conds.items[i], visit_other, rel_right(rel));
    }
    return apart;
}

static void consider(struct rel *rel, void *arg) {
    struct search s = {.o = arg};
    if (!is_apart(rel)) {
        return;
    }
    rel_each(s.o->plan->arena, rel_right(rel), look_into, &s);
    rel->join.lazy = s.raises || (rel->join.kind == JOIN_SINGLE &&
                                  !estimate_unique(s.o->plan, rel_right(rel), NULL, NULL, 0));
}

FALLIBLE pass_lazy(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, consider, o);
    return ERR_OK;
}
