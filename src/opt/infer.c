/* infer.c: conditions that follow from equalities between columns.
 *
 * Where a = b and b < 5 both hold, a < 5 does; it can sink to a's table. Works on regions: inner
 * joins and filters with nothing else between them, whose conditions all hold for every row that
 * leaves the region. Equal columns form classes; what a condition says of one column of a class is
 * said of the others too, by a filter on top of the region, from where push_filter takes it. */
#include "opt/opt_int.h"

#include "codes/func.h"

enum { CONDS_MAX = 200 };

struct region {
    struct opt *o;
    const struct rel *top;
    expr_list conds;
    u32 *parent;   /* by column: union-find, 0 = itself, else column + 1 */
    VEC(u32) cols; /* in some class */
};

static u32 find(const struct region *r, u32 col) {
    while (r->parent[col]) {
        col = r->parent[col] - 1;
    }
    return col;
}

/* Two columns: of one type, as what is compared is, but for the length of texts. */
static void unite(struct region *r, const struct expr *a, const struct expr *b) {
    if (a->kind != EXPR_COL || b->kind != EXPR_COL) {
        return;
    }
    u32 x = find(r, a->col);
    u32 y = find(r, b->col);
    VEC_PUSH(r->o->plan->arena, &r->cols, a->col);
    VEC_PUSH(r->o->plan->arena, &r->cols, b->col);
    if (x != y) {
        r->parent[x] = y + 1;
    }
}

static bool is_inside(const struct rel *rel) {
    return rel->kind == REL_FILTER || opt_is_inner(rel);
}

static void gather(struct region *r, struct rel *rel) {
    if (!is_inside(rel)) {
        return;
    }
    const expr_list *conds = rel_conds(rel);
    for (i64 i = 0; i < conds->count; i++) {
        expr_split_and(r->o->plan->arena, &r->conds, conds->items[i]);
    }
    for (i64 i = 0; rel->kind == REL_JOIN && i < rel->join.left_keys.count; i++) {
        unite(r, rel->join.left_keys.items[i],
              rel->join.right_keys.items[i]); /* or both are NULL */
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        gather(r, rel->inputs[i]);
    }
}

static bool is_known(const struct region *r, const struct expr *expr) {
    for (i64 i = 0; i < r->conds.count; i++) {
        if (expr_equal(r->conds.items[i], expr)) {
            return true;
        }
    }
    return false;
}

/* Whether a condition only compares its column, which equal values cannot tell apart. */
static bool only_compares(const struct expr *cond, bool inside) {
    if (cond->kind == EXPR_COL) {
        return inside;
    }
    bool compares = cond->kind == EXPR_IN || cond->kind == EXPR_IS_NULL ||
                    (cond->kind == EXPR_CALL && cond->func >= FUNC_EQ && cond->func <= FUNC_GE);
    for (i32 i = 0; i < cond->arg_count; i++) {
        if (!only_compares(cond->args[i], compares)) {
            return false;
        }
    }
    return true;
}

/* The condition on one column, said of every other column of its class. */
static void spread(struct region *r, struct expr *cond, expr_list *out) {
    struct plan *plan = r->o->plan;
    u32 said = 0;
    if (!expr_only_col(cond, &said) ||
        (!opt_equal_is_same(plan->cols.items[said].type) && !only_compares(cond, false))) {
        return;
    }
    for (i64 i = 0; i < r->cols.count; i++) {
        u32 col = r->cols.items[i];
        bool visible = rel_has_out(r->top, col);
        if (col == said || !visible || find(r, col) != find(r, said)) {
            continue;
        }
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        map[said] = expr_col(plan, col, -1);
        struct expr *same = expr_map(plan->arena, cond, map);
        if (!is_known(r, same) && !facts_can_raise(r->o, same)) { /* its values may be others */
            VEC_PUSH(plan->arena, &r->conds, same);
            VEC_PUSH(plan->arena, out, same);
        }
    }
}

static struct rel *infer(struct rel *rel, void *arg);

/* What stands below a region starts regions of its own. */
static struct rel *infer_below(struct rel *rel, void *arg) {
    if (!is_inside(rel)) {
        return infer(rel, arg);
    }
    opt_change_inputs(arg, rel, infer_below, arg);
    return rel;
}

static struct rel *infer(struct rel *rel, void *arg) {
    struct opt *o = arg;
    struct plan *plan = o->plan;
    opt_change_inputs(o, rel, is_inside(rel) ? infer_below : infer, o);
    if (!is_inside(rel)) {
        return rel;
    }
    struct region r = {.o = o, .top = rel};
    r.parent = NEW_ARRAY(plan->arena, u32, plan->cols.count + 1);
    gather(&r, rel);
    i64 count = r.conds.count;
    for (i64 i = 0; i < count; i++) {
        const struct expr *cond = r.conds.items[i];
        if (cond->kind == EXPR_CALL && cond->func == FUNC_EQ) {
            unite(&r, cond->args[0], cond->args[1]);
        }
    }
    expr_list added = {0};
    for (i64 i = 0; r.cols.count > 0 && count <= CONDS_MAX && i < count; i++) {
        spread(&r, r.conds.items[i], &added);
    }
    if (added.count == 0) {
        return rel;
    }
    struct rel *filter = rel_new(plan, REL_FILTER, rel, NULL);
    for (i64 i = 0; i < added.count; i++) {
        VEC_PUSH(plan->arena, &filter->filter.conds, added.items[i]);
    }
    return filter;
}

FALLIBLE pass_infer(struct opt *o) {
    struct rel *old = o->plan->root;
    o->visited.count = 0;
    o->plan->root = rel_with_out(o->plan, infer(old, o), old);
    return ERR_OK;
}
