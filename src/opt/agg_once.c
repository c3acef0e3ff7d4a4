/* agg_once.c: two aggregates over all of the same rows, joined, become one.
 *
 * "What part of the total is …" reads the same rows twice: an aggregate of all of them, one of those that meet a
 * condition, and a join of the two rows, as LogiQL says it. Both become calls of one aggregate, each with the
 * condition as its FILTER, so the rows flow into it and need not be kept. What stands between the aggregates and
 * the join, projections and conditions, is done behind it.
 *
 * Not where something that would be done for more rows than before can raise. */
#include "opt/opt_int.h"

/* A side of the join: expressions of its columns and conditions, both over the aggregate's. */
struct side {
    struct rel *agg;
    struct rel *shared;      /* that it reads */
    expr_list filter;        /* conditions on the way there */
    struct expr **map;       /* columns of the side */
    expr_list conds;
};

/* Down to an aggregate without keys; false: there is something else. */
static bool find_agg(struct opt *o, struct side *s, struct rel *rel) {
    struct plan *plan = o->plan;
    VEC(struct rel *) chain = {0};
    while (rel->kind == REL_PROJECT || rel->kind == REL_FILTER) {
        VEC_PUSH(plan->arena, &chain, rel);
        rel = rel_input(rel);
    }
    if (rel->kind != REL_AGG || rel->agg.keys.count > 0) {
        return false;
    }
    s->agg = rel;
    s->map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = chain.count; i-- > 0;) {
        const expr_list *exprs = rel_exprs(chain.items[i]);
        const expr_list *conds = rel_conds(chain.items[i]);
        for (i64 k = 0; exprs && k < exprs->count; k++) {
            if (expr_is_volatile(exprs->items[k])) {
                return false;
            }
            s->map[chain.items[i]->out.items[k]] = expr_map(plan->arena, exprs->items[k], s->map);
        }
        for (i64 k = 0; conds && k < conds->count; k++) {
            VEC_PUSH(plan->arena, &s->conds, expr_map(plan->arena, conds->items[k], s->map));
        }
    }
    return true;
}

static bool find_rows(struct opt *o, struct side *s) {
    struct rel *rel = rel_input(s->agg);
    while (rel->kind == REL_FILTER) {
        for (i64 i = 0; i < rel->filter.conds.count; i++) {
            VEC_PUSH(o->plan->arena, &s->filter, rel->filter.conds.items[i]);
            if (facts_can_raise(o, rel->filter.conds.items[i])) {
                return false;
            }
        }
        rel = rel_input(rel);
    }
    s->shared = rel;
    bool plain = rel->kind == REL_SHARED && rel_input(rel)->kind != REL_FIX;
    for (i64 i = 0; i < s->agg->agg.calls.count && plain; i++) {
        const struct agg_call *call = &s->agg->agg.calls.items[i];
        plain = !call->distinct && call->order.count == 0 && !call->arg2 &&
                !(call->arg && expr_is_volatile(call->arg));
        bool raises = call->arg && facts_can_raise(o, call->arg);
        plain = plain && !(raises && s->filter.count > 0);
    }
    return plain;
}

static struct expr *all_of(struct opt *o, const expr_list *conds, struct expr *with, struct expr *const *map) {
    struct arena *arena = o->plan->arena;
    expr_list all = {0};
    for (i64 i = 0; i < conds->count; i++) {
        VEC_PUSH(arena, &all, expr_map(arena, conds->items[i], map));
    }
    if (with) {
        VEC_PUSH(arena, &all, expr_map(arena, with, map));
    }
    if (all.count <= 1) {
        return all.count ? all.items[0] : NULL;
    }
    struct expr *both = expr_new(arena, EXPR_AND, type_of(TYPE_BOOLEAN), -1);
    both->args = all.items;
    both->arg_count = (i32)all.count;
    return both;
}

/* The calls of a side, over columns that `map` names. */
static void add_calls(struct opt *o, struct rel *agg, const struct side *s, struct expr *const *map) {
    struct arena *arena = o->plan->arena;
    for (i64 i = 0; i < s->agg->agg.calls.count; i++) {
        struct agg_call call = s->agg->agg.calls.items[i];
        call.arg = call.arg ? expr_map(arena, call.arg, map) : NULL;
        call.filter = all_of(o, &s->filter, call.filter, map);
        VEC_PUSH(arena, &agg->agg.calls, call);
        VEC_PUSH(arena, &agg->out, call.col);
    }
}

static void add_exprs(struct opt *o, struct rel *project, struct rel *filter, const struct rel *rel,
                      const struct side *s) {
    struct plan *plan = o->plan;
    for (i64 i = 0; i < s->conds.count; i++) {
        VEC_PUSH(plan->arena, &filter->filter.conds, s->conds.items[i]);
    }
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 col = rel->out.items[i];
        VEC_PUSH(plan->arena, &project->project.exprs, s->map[col] ? s->map[col] : expr_col(plan, col, -1));
        VEC_PUSH(plan->arena, &project->out, col);
    }
}

/* Whether columns of a side go up as the aggregate made them: the projection could not make them again. */
static bool hands_on(const struct side *s, const struct rel *rel) {
    bool any = false;
    for (i64 i = 0; i < rel->out.count && !any; i++) {
        any = !s->map[rel->out.items[i]];
    }
    return any;
}

static struct rel *merge(struct opt *o, struct rel *join) {
    struct plan *plan = o->plan;
    struct side sides[2] = {{0}, {0}};
    for (i32 i = 0; i < 2; i++) {
        if (!find_agg(o, &sides[i], join->inputs[i]) || !find_rows(o, &sides[i]) ||
            hands_on(&sides[i], join->inputs[i])) {
            return join;
        }
    }
    if (rel_input(sides[0].shared) != rel_input(sides[1].shared) || sides[0].shared == sides[1].shared) {
        return join;
    }
    struct expr **same = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1); /* of the second one's columns */
    const struct rel_SHARED *mine = &sides[0].shared->shared;
    const struct rel_SHARED *other = &sides[1].shared->shared;
    for (i64 i = 0; i < other->cols->count; i++) {
        i64 at = 0;
        while (at < mine->cols->count && mine->cols->items[at] != other->cols->items[i]) {
            at++;
        }
        if (at == mine->cols->count) {
            return join;
        }
        same[sides[1].shared->out.items[i]] = expr_col(plan, sides[0].shared->out.items[at], -1);
    }
    struct expr **as_is = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    struct rel *agg = rel_new(plan, REL_AGG, sides[0].shared, NULL);
    add_calls(o, agg, &sides[0], as_is);
    add_calls(o, agg, &sides[1], same);
    agg->rows = 1;
    struct rel *filter = rel_new(plan, REL_FILTER, agg, NULL);
    struct rel *project = rel_new(plan, REL_PROJECT, filter, NULL);
    for (i32 i = 0; i < 2; i++) {
        add_exprs(o, project, filter, join->inputs[i], &sides[i]);
    }
    filter->rows = project->rows = 1;
    struct rel *above = rel_new(plan, REL_FILTER, project, NULL);
    above->filter.conds = join->join.conds;
    above->rows = 1;
    return rel_with_out(plan, above, join);
}

static struct rel *walk(struct rel *rel, void *arg) {
    struct opt *o = arg;
    opt_change_inputs(o, rel, walk, o);
    bool pair = opt_is_inner(rel) && rel->join.left_keys.count == 0;
    return pair ? merge(o, rel) : rel;
}

FALLIBLE pass_agg_once(struct opt *o) {
    struct rel *old = o->plan->root;
    struct rel like = *old;
    o->visited.count = 0;
    o->plan->root = rel_with_out(o->plan, walk(old, o), &like);
    return arena_check(o->plan->arena, o->err);
}
