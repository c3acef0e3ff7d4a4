/* split_distinct.c: aggregates of distinct values, as aggregates of groups.
 *
 * sum(DISTINCT x) by k is the sum of x over the groups by k and x. When all calls of an operator
 * are over the same distinct values, there are two aggregates, one upon the other. Otherwise the
 * input is shared: the calls without DISTINCT, and those of each set of distinct values, are
 * aggregated by themselves and joined on the keys, where NULL equals NULL; all of them have the
 * same groups. A FILTER on a distinct aggregate becomes NULL for the rows it leaves out, which
 * every such aggregate skips, so that no group is lost. */
#include "opt/opt_int.h"

struct part { /* calls that are aggregated together */
    b8 distinct;
    struct expr *arg, *arg2, *filter;
    VEC(struct agg_call) calls;
};
typedef VEC(struct part) part_list;

static bool same(const struct expr *a, const struct expr *b) {
    return a && b ? expr_equal(a, b) : a == b;
}

static void add_to_part(struct arena *arena, part_list *parts, const struct agg_call *call) {
    for (i64 i = 0; i < parts->count; i++) {
        struct part *p = &parts->items[i];
        bool fits = p->distinct == call->distinct &&
                    (!p->distinct || (same(p->arg, call->arg) && same(p->arg2, call->arg2) &&
                                      same(p->filter, call->filter)));
        if (fits) {
            VEC_PUSH(arena, &p->calls, *call);
            return;
        }
    }
    struct part fresh = {
        .distinct = call->distinct, .arg = call->arg, .arg2 = call->arg2, .filter = call->filter};
    VEC_PUSH(arena, &fresh.calls, *call);
    VEC_PUSH(arena, parts, fresh);
}

static struct expr *filtered_arg(struct arena *arena, struct expr *arg, struct expr *filter) {
    if (!filter) {
        return arg;
    }
    struct expr *none = expr_new(arena, EXPR_CONST, arg->type, -1);
    none->is_null = 1;
    struct expr *choice = expr_new(arena, EXPR_CASE, arg->type, arg->position);
    choice->arg_count = 3;
    choice->args = NEW_ARRAY(arena, struct expr *, 3);
    choice->args[0] = filter;
    choice->args[1] = arg;
    choice->args[2] = none;
    return choice;
}

static u32 add_key(struct plan *plan, struct rel *agg, struct expr *key) {
    u32 col = plan_col_new(plan, key->kind == EXPR_COL ? plan->cols.items[key->col].name : "value",
                           key->type, expr_nullable(plan, key));
    VEC_PUSH(plan->arena, &agg->agg.keys, key);
    VEC_PUSH(plan->arena, &agg->out, col);
    return col;
}

/* The groups of keys and distinct values; the keys' and values' columns replace them. */
static struct rel *inner_groups(struct plan *plan, struct rel *input, struct expr **keys, i64 count,
                                const struct part *part, struct agg_call *like) {
    struct rel *agg = rel_new(plan, REL_AGG, input, NULL);
    for (i64 i = 0; i < count; i++) {
        keys[i] = expr_col(plan, add_key(plan, agg, keys[i]), -1);
    }
    struct expr *arg = filtered_arg(plan->arena, part->arg, part->filter);
    like->arg = expr_col(plan, add_key(plan, agg, arg), -1);
    like->arg2 = part->arg2;
    if (part->arg2 && part->arg2->kind != EXPR_CONST) {
        like->arg2 = expr_col(plan, add_key(plan, agg, part->arg2), -1);
    }
    agg->rows = input->rows;
    return agg;
}

/* The aggregate of one part over its own use of the input. */
static struct rel *part_rel(struct plan *plan, const struct part *part, struct rel *input,
                            struct expr **keys, i64 count) {
    struct agg_call like = {0};
    if (part->distinct) {
        input = inner_groups(plan, input, keys, count, part, &like);
    }
    struct rel *agg = rel_new(plan, REL_AGG, input, NULL);
    for (i64 i = 0; i < count; i++) {
        (void)add_key(plan, agg, keys[i]);
    }
    for (i64 i = 0; i < part->calls.count; i++) {
        struct agg_call call = part->calls.items[i];
        if (part->distinct) {
            for (i64 k = 0; k < call.order.count; k++) {
                struct expr **expr = &call.order.items[k].expr;
                *expr = same(*expr, part->arg) ? like.arg : like.arg2;
            }
            call.arg = like.arg;
            call.arg2 = like.arg2;
            call.filter = NULL;
            call.distinct = 0;
        }
        VEC_PUSH(plan->arena, &agg->agg.calls, call);
        VEC_PUSH(plan->arena, &agg->out, call.col);
    }
    return agg;
}

/* A use of the shared input: keys and calls over its columns. */
struct remap {
    struct arena *arena;
    struct expr **map;
};

static void remap_slot(struct expr **slot, void *arg) {
    struct remap *r = arg;
    *slot = expr_map(r->arena, *slot, r->map);
}

static struct rel *use_input(struct plan *plan, struct rel *input, struct part *part,
                             struct expr **keys, i64 count) {
    struct rel *shared = rel_shared(plan, input, input->out.items, NULL, input->out.count);
    struct remap r = {plan->arena, NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1)};
    for (i64 i = 0; i < input->out.count; i++) {
        r.map[input->out.items[i]] = expr_col(plan, shared->out.items[i], -1);
    }
    for (i64 i = 0; i < count; i++) {
        remap_slot(&keys[i], &r);
    }
    for (i64 i = 0; i < part->calls.count; i++) {
        agg_each_expr(&part->calls.items[i], remap_slot, &r);
    }
    struct agg_call first = part->calls.items[0];
    part->arg = first.arg;
    part->arg2 = first.arg2;
    part->filter = first.filter;
    return shared;
}

static struct rel *join_parts(struct plan *plan, struct rel *left, struct rel *right, i64 keys) {
    struct rel *join = rel_join(plan, keys > 0 ? JOIN_INNER : JOIN_CROSS, left, right);
    for (i64 i = 0; i < keys; i++) {
        VEC_PUSH(plan->arena, &join->join.left_keys, expr_col(plan, left->out.items[i], -1));
        VEC_PUSH(plan->arena, &join->join.right_keys, expr_col(plan, right->out.items[i], -1));
        VEC_PUSH(plan->arena, &join->join.null_safe, (b8)1);
    }
    return join;
}

static bool has_distinct(const struct rel *rel) {
    for (i64 i = 0; rel->kind == REL_AGG && i < rel->agg.calls.count; i++) {
        if (rel->agg.calls.items[i].distinct) {
            return true;
        }
    }
    return false;
}

/* Changes the operator in place: others hold it. */
static void split(struct rel *rel, void *arg) {
    struct plan *plan = arg;
    part_list parts = {0};
    struct rel *all = NULL;
    if (!has_distinct(rel)) {
        return;
    }
    i64 count = rel->agg.keys.count;
    for (i64 i = 0; i < rel->agg.calls.count; i++) {
        add_to_part(plan->arena, &parts, &rel->agg.calls.items[i]);
    }
    for (i64 i = 0; i < parts.count; i++) {
        struct part *part = &parts.items[i];
        struct expr **keys = NEW_ARRAY(plan->arena, struct expr *, count + 1);
        for (i64 k = 0; k < count; k++) {
            keys[k] = rel->agg.keys.items[k];
        }
        struct rel *input = rel_input(rel);
        input = parts.count > 1 ? use_input(plan, input, part, keys, count) : input;
        struct rel *agg = part_rel(plan, part, input, keys, count);
        for (i64 k = 0; i == 0 && k < count; k++) { /* the first keeps the keys' numbers */
            agg->out.items[k] = rel->out.items[k];
        }
        all = all ? join_parts(plan, all, agg, count) : agg;
    }
    *rel = *all;
}

FALLIBLE pass_split_distinct(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, split, o->plan);
    return ERR_OK;
}
