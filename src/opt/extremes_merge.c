/* extremes_merge.c: two questions about the rows of a key are asked of one group.
 *
 * `exists (… r.b <> l.a) and not exists (… r.b <> l.a and p(r))` become a semi and an anti join with
 * groups of the same rows by the same key (extremes.c). Rows of the second are some of the first's:
 * its least and greatest values are those FILTER (WHERE p) of the first's groups. One join asks
 * both: a left row that has a match in the first has a group, whose filtered values are NULL where
 * the second had no rows; a comparison with that is no match, as without a group.
 *
 * One of the two is a semi join, as a left row without a group must be none that is kept, and all its
 * conditions are conditions of the other. */
#include "opt/opt_int.h"

#include "codes/func.h"

/* A semi or anti join with groups by its keys. */
static bool asks_groups(const struct rel *join) {
    const struct rel *groups = join->kind == REL_JOIN ? rel_right(join) : NULL;
    if (!groups || groups->kind != REL_AGG || groups->agg.implied.count > 0 || join->join.lazy ||
        join->join.dependent || join->join.left_keys.count == 0 ||
        groups->agg.keys.count != join->join.right_keys.count ||
        (join->join.kind != JOIN_SEMI && join->join.kind != JOIN_ANTI)) {
        return false;
    }
    for (i64 i = 0; i < join->join.right_keys.count; i++) {
        const struct expr *key = join->join.right_keys.items[i];
        bool safe = i < join->join.null_safe.count && join->join.null_safe.items[i];
        if (safe || key->kind != EXPR_COL || key->col != groups->out.items[i]) {
            return false;
        }
    }
    return true;
}

/* Groups with conditions of their own (HAVING) as a question that has them: a copy of the join that asks
 * the groups directly, in the order of their keys. False: it is none. */
static bool as_question(struct opt *o, const struct rel *join, struct rel *out) {
    struct plan *plan = o->plan;
    *out = *join;
    if (asks_groups(join)) {
        return true;
    }
    struct rel *agg = join->kind == REL_JOIN ? rel_right(join) : NULL;
    if (!agg || join->join.kind != JOIN_SEMI) {
        return false;
    }
    VEC(const struct rel *) chain = {0};
    for (; agg->kind == REL_PROJECT || agg->kind == REL_FILTER; agg = rel_input(agg)) {
        VEC_PUSH(plan->arena, &chain, agg);
    }
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    expr_list conds = {0}, left = {0}, right = {0};
    for (i64 k = chain.count; k-- > 0;) {
        const struct rel *at = chain.items[k];
        for (i64 i = 0; at->kind == REL_PROJECT && i < at->out.count; i++) {
            map[at->out.items[i]] = expr_map(plan->arena, at->project.exprs.items[i], map);
        }
        for (i64 i = 0; at->kind == REL_FILTER && i < at->filter.conds.count; i++) {
            VEC_PUSH(plan->arena, &conds, expr_map(plan->arena, at->filter.conds.items[i], map));
        }
    }
    for (i64 i = 0; i < join->join.conds.count; i++) {
        VEC_PUSH(plan->arena, &conds, expr_map(plan->arena, join->join.conds.items[i], map));
    }
    for (i64 i = 0; i < conds.count; i++) {
        if (facts_can_raise(o, conds.items[i]) || expr_is_volatile(conds.items[i])) {
            return false;
        }
    }
    for (i64 k = 0; agg->kind == REL_AGG && k < agg->agg.keys.count; k++) {
        for (i64 i = 0; i < join->join.right_keys.count; i++) {
            struct expr *key = expr_map(plan->arena, join->join.right_keys.items[i], map);
            if (key->kind == EXPR_COL && key->col == agg->out.items[k]) {
                VEC_PUSH(plan->arena, &left, join->join.left_keys.items[i]);
                VEC_PUSH(plan->arena, &right, key);
            }
        }
    }
    out->inputs = NEW_ARRAY(plan->arena, struct rel *, 2);
    out->inputs[0] = rel_left(join);
    out->inputs[1] = agg;
    out->join.conds = conds;
    out->join.left_keys = left;
    out->join.right_keys = right;
    return right.count == join->join.right_keys.count && asks_groups(out);
}

/* Whether a condition is not true where all of these aggregates are NULL. */
struct naming {
    const struct rel *groups;
    bool names;
};

static void note_call(u32 col, void *arg) {
    struct naming *naming = arg;
    for (i64 i = 0; i < naming->groups->agg.calls.count; i++) {
        naming->names = naming->names || naming->groups->agg.calls.items[i].col == col;
    }
}

static bool drops_nulls(const struct rel *groups, const struct expr *cond) {
    bool drops = cond->kind == EXPR_OR;
    for (i32 i = 0; drops && i < cond->arg_count; i++) {
        drops = drops_nulls(groups, cond->args[i]);
    }
    if (cond->kind == EXPR_CALL && func_is_strict(cond->func)) {
        for (i32 i = 0; !drops && i < cond->arg_count; i++) {
            struct naming naming = {groups, false};
            if (cond->args[i]->kind == EXPR_COL) {
                note_call(cond->args[i]->col, &naming);
            }
            drops = naming.names;
        }
    }
    return drops;
}

/* All aggregates are NULL of no rows, and the join has a condition that is not true then. */
static bool needs_rows(const struct rel *join) {
    const struct rel *groups = rel_right(join);
    bool needs = false;
    for (i64 i = 0; i < groups->agg.calls.count; i++) {
        const struct agg_call *call = &groups->agg.calls.items[i];
        if ((call->agg != AGG_MIN && call->agg != AGG_MAX) || call->distinct) {
            return false;
        }
    }
    for (i64 i = 0; i < join->join.conds.count; i++) {
        needs = needs || drops_nulls(groups, join->join.conds.items[i]);
    }
    return needs;
}

/* What stands below the filters of a join's groups, and their conditions. */
static struct rel *below_filters(struct plan *plan, const struct rel *join, expr_list *out) {
    struct rel *rel = rel_input(rel_right(join));
    while (rel->kind == REL_FILTER) {
        for (i64 i = 0; i < rel->filter.conds.count; i++) {
            expr_split_and(plan->arena, out, rel->filter.conds.items[i]);
        }
        rel = rel_input(rel);
    }
    return rel;
}

static bool has_equal(const expr_list *list, const struct expr *expr) {
    for (i64 i = 0; i < list->count; i++) {
        if (expr_equal(list->items[i], expr)) {
            return true;
        }
    }
    return false;
}

struct among {
    const struct rel *rel;
    bool all;
};

static void note_among(u32 col, void *arg) {
    struct among *among = arg;
    among->all = among->all && rel_has_out(among->rel, col);
}

/* Rows of `other` as rows of `base`. */
struct merging {
    struct rel *base, *other;
    struct expr **map; /* columns of the other's rows */
    expr_list only;    /* conditions that only the other has, on rows of the base */
};

/* An expression on rows of the other, on those of the base; NULL where they lack a column. */
static struct expr *on_base(struct opt *o, const struct merging *m, struct expr *expr) {
    struct among among = {rel_input(rel_right(m->base)), true};
    expr = expr_map(o->plan->arena, expr, m->map);
    expr_each_col(expr, note_among, &among);
    return among.all ? expr : NULL;
}

static bool same_keys(struct opt *o, const struct merging *m) {
    const struct rel *a = m->base;
    const struct rel *b = m->other;
    bool same = a->join.left_keys.count == b->join.left_keys.count;
    for (i64 i = 0; same && i < a->join.left_keys.count; i++) {
        struct expr *key = on_base(o, m, rel_right(b)->agg.keys.items[i]);
        same = expr_equal(a->join.left_keys.items[i], b->join.left_keys.items[i]) && key &&
               expr_equal(rel_right(a)->agg.keys.items[i], key);
    }
    return same;
}

static bool can_merge(struct opt *o, struct merging *m) {
    struct plan *plan = o->plan;
    expr_list base_conds = {0};
    expr_list other_conds = {0};
    if (m->base->join.kind != JOIN_SEMI || !needs_rows(m->other)) {
        return false;
    }
    struct rel *base = below_filters(plan, m->base, &base_conds);
    struct rel *other = below_filters(plan, m->other, &other_conds);
    m->map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    m->only = (expr_list){0};
    if (!rel_equal(plan, base, other, m->map) || !same_keys(o, m)) {
        return false;
    }
    expr_list mapped = {0};
    for (i64 i = 0; i < other_conds.count; i++) {
        struct expr *cond = on_base(o, m, other_conds.items[i]);
        if (!cond || expr_is_volatile(cond) || facts_can_raise(o, other_conds.items[i])) {
            return false;
        }
        VEC_PUSH(plan->arena, &mapped, cond);
        if (!has_equal(&base_conds, cond)) {
            VEC_PUSH(plan->arena, &m->only, cond);
        }
    }
    for (i64 i = 0; i < base_conds.count; i++) {
        if (!has_equal(&mapped, base_conds.items[i])) {
            return false;
        }
    }
    const agg_list *calls = &rel_right(m->other)->agg.calls;
    bool found = true;
    for (i64 i = 0; i < calls->count; i++) {
        const struct agg_call *call = &calls->items[i];
        found = found && on_base(o, m, call->arg) &&
                (!call->filter || on_base(o, m, call->filter));
    }
    return found;
}

static struct expr *all_of(struct arena *arena, const expr_list *list) {
    if (list->count <= 1) {
        return list->count ? list->items[0] : NULL;
    }
    struct expr *all = expr_new(arena, EXPR_AND, type_of(TYPE_BOOLEAN), -1);
    all->arg_count = (i32)list->count;
    all->args = list->items;
    return all;
}

static struct expr *truth(struct arena *arena, bool value) {
    struct expr *expr = expr_new(arena, EXPR_CONST, type_of(TYPE_BOOLEAN), -1);
    expr->value.b8 = value;
    return expr;
}

/* The other's groups beside the base's. Copies of the operator may hold the old lists. */
static void add_calls(struct opt *o, const struct merging *m) {
    struct arena *arena = o->plan->arena;
    struct rel *groups = rel_right(m->base);
    const agg_list *more = &rel_right(m->other)->agg.calls;
    agg_list calls = {0};
    col_list out = {0};
    for (i64 i = 0; i < groups->agg.calls.count; i++) {
        VEC_PUSH(arena, &calls, groups->agg.calls.items[i]);
    }
    for (i64 i = 0; i < groups->out.count; i++) {
        VEC_PUSH(arena, &out, groups->out.items[i]);
    }
    for (i64 i = 0; i < more->count; i++) {
        struct agg_call call = more->items[i];
        expr_list conds = {0};
        for (i64 k = 0; k < m->only.count; k++) {
            VEC_PUSH(arena, &conds, m->only.items[k]);
        }
        if (call.filter) {
            VEC_PUSH(arena, &conds, on_base(o, m, call.filter));
        }
        call.arg = on_base(o, m, call.arg);
        call.filter = all_of(arena, &conds);
        VEC_PUSH(arena, &calls, call);
        VEC_PUSH(arena, &out, call.col);
    }
    groups->agg.calls = calls;
    groups->out = out;
}

/* The upper join asks both, of what the lower one asked. */
static void merge(struct opt *o, struct rel *upper, struct rel *lower, const struct merging *m) {
    struct arena *arena = o->plan->arena;
    expr_list conds = {0};
    add_calls(o, m);
    for (i64 i = 0; i < m->base->join.conds.count; i++) {
        VEC_PUSH(arena, &conds, m->base->join.conds.items[i]);
    }
    const expr_list *asked = &m->other->join.conds;
    if (m->other->join.kind == JOIN_SEMI) {
        for (i64 i = 0; i < asked->count; i++) {
            VEC_PUSH(arena, &conds, asked->items[i]);
        }
    } else { /* not true: NULL is no match either */
        struct expr *no = expr_new(arena, EXPR_CASE, type_of(TYPE_BOOLEAN), -1);
        no->arg_count = 3;
        no->args = NEW_ARRAY(arena, struct expr *, 3);
        no->args[0] = all_of(arena, asked);
        no->args[1] = truth(arena, false);
        no->args[2] = truth(arena, true);
        VEC_PUSH(arena, &conds, no);
    }
    struct rel *groups = rel_right(m->base);
    upper->join.left_keys = m->base->join.left_keys;
    upper->join.right_keys = m->base->join.right_keys;
    upper->join.null_safe = m->base->join.null_safe;
    upper->join.kind = JOIN_SEMI;
    upper->join.conds = conds;
    rel_set_right(upper, groups);
    upper->inputs[0] = rel_left(lower);
}

static void visit(struct rel *upper, void *arg) {
    struct opt *o = arg;
    for (;;) {
        struct rel above, below;
        if (!as_question(o, upper, &above) || !as_question(o, rel_left(upper), &below)) {
            return;
        }
        struct merging m = {&below, &above, NULL, {0}};
        if (!can_merge(o, &m)) {
            m = (struct merging){&above, &below, NULL, {0}};
            if (!can_merge(o, &m)) {
                return;
            }
        }
        merge(o, upper, &below, &m);
    }
}

void extremes_merge(struct opt *o) {
    rel_each_up(o->plan->arena, o->plan->root, visit, o);
}
