/* unnest_simple.c: what makes the general rewriting of a dependent join unnecessary or cheaper.
 *
 * Part of the pass unnest. Conditions that name outer columns move from the right side into the
 * join; projections move above it, so that they are computed only for rows the join finds, as the
 * query is written. Columns have plan-wide numbers, so a projection is moved by putting its
 * expressions wherever its columns are named; the operators on the way hand on what these need. */
#include "opt/unnest_int.h"

/* moving projections */

struct substitution {
    struct plan *plan;
    const struct rel *stop; /* its expressions stay */
    const struct rel *from; /* the projection whose columns go */
    const struct rel *join; /* above which it goes; NULL: it stays */
    struct expr *const *map;
    bool pinned; /* a column must stay a column */
};

static void note_pinned(struct rel *rel, void *arg) {
    struct substitution *s = arg;
    for (i32 k = 0; k < rel->input_count; k++) {
        const col_list *cols = rel_cols(rel, k);
        for (i64 i = 0; cols && i < cols->count; i++) {
            s->pinned = s->pinned || rel_has_out(s->from, cols->items[i]);
        }
    }
}

static bool is_pinned(struct plan *plan, const struct rel *project) {
    struct substitution s = {.plan = plan, .from = project};
    rel_each(plan->arena, plan->root, note_pinned, &s);
    for (i64 i = 0; i < project->out.count; i++) {
        s.pinned = s.pinned || rel_has_out(plan->root, project->out.items[i]);
    }
    return s.pinned;
}

struct out_walk {
    struct plan *plan;
    const struct rel *join;
    struct rel *rel;
};

static void hand_on(struct plan *plan, struct rel *rel, u32 col) {
    if (!rel_has_out(rel, col)) {
        VEC_PUSH(plan->arena, &rel->out, col);
    }
}

/* Columns of queries further out are no rows' columns here. */
static void hand_on_own(u32 col, void *arg) {
    struct out_walk *w = arg;
    if (rel_has_out(rel_left(w->join), col) || rel_has_out(rel_right(w->join), col)) {
        hand_on(w->plan, w->rel, col);
    }
}

static void substitute_slot(struct expr **slot, void *arg) {
    struct substitution *s = arg;
    *slot = expr_map(s->plan->arena, *slot, s->map);
}

static void substitute_rel(struct rel *rel, void *arg) {
    struct substitution *s = arg;
    if (rel == s->stop) {
        return;
    }
    rel_each_expr(rel, substitute_slot, s);
    for (i64 i = 0; rel_passes(rel) && i < s->from->out.count; i++) {
        u32 col = s->from->out.items[i];
        i64 kept = 0;
        bool had = rel_has_out(rel, col);
        for (i64 k = 0; k < rel->out.count; k++) {
            if (rel->out.items[k] != col) {
                rel->out.items[kept++] = rel->out.items[k];
            }
        }
        rel->out.count = kept;
        struct out_walk w = {s->plan, s->join, rel};
        if (had) {
            expr_each_col(s->map[col], hand_on_own, &w);
        }
    }
}

static void map_to_null(struct plan *plan, const struct rel *rel, struct expr **map) {
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 col = rel->out.items[i];
        map[col] = expr_new(plan->arena, EXPR_CONST, plan->cols.items[col].type, -1);
        map[col]->is_null = 1;
    }
}

/* Whether the expression is NULL when all columns of `rel` and of `other`, which may be NULL, are.
 */
static bool null_of_null(struct plan *plan, const struct rel *rel, const struct rel *other,
                         struct expr *expr) {
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    map_to_null(plan, rel, map);
    if (other) {
        map_to_null(plan, other, map);
    }
    const struct expr *folded = expr_fold(plan, expr_map(plan->arena, expr, map));
    return folded->kind == EXPR_CONST && folded->is_null;
}

static bool is_scalar_agg(const struct rel *rel) {
    return rel->kind == REL_AGG && rel->agg.keys.count == 0;
}

bool unnest_keeps_left(const struct rel *join) {
    return join->join.kind == JOIN_SINGLE || join->join.kind == JOIN_LEFT;
}

/* Whether rows of a join are extended by NULLs somewhere above it: what is computed below that is
 * then NULL, and would be no more if it were computed above. */
static bool is_extended(struct plan *plan, struct rel *rel, const struct rel *join, bool extended) {
    if (rel == join) {
        return extended;
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        bool outer = rel->kind == REL_JOIN &&
                     (rel->join.kind == JOIN_FULL ||
                      (i == 1 && (rel->join.kind == JOIN_LEFT || rel->join.kind == JOIN_SINGLE)));
        if (is_extended(plan, rel->inputs[i], join, extended || outer)) {
            return true;
        }
    }
    return false;
}

static bool may_lift(struct unnest *u, const struct rel *join, const struct rel *project) {
    struct plan *plan = u->o->plan;
    const struct rel *input = rel_input(project);
    bool needed = is_scalar_agg(input);
    for (i64 i = 0; i < project->project.exprs.count; i++) {
        needed = needed || facts_can_raise(u->o, project->project.exprs.items[i]) ||
                 unnest_uses_outer(u, project->project.exprs.items[i]);
    }
    if (!needed || join->join.kind == JOIN_FULL) {
        return false;
    }
    bool counted = is_scalar_agg(input) && join->join.conds.count == 0;
    for (i64 i = 0; unnest_keeps_left(join) && !counted && i < project->project.exprs.count; i++) {
        if (!null_of_null(plan, input, NULL, project->project.exprs.items[i])) {
            return false;
        }
    }
    bool extended = is_extended(plan, plan->root, join, false);
    for (i64 i = 0; extended && i < project->project.exprs.count; i++) {
        if (!null_of_null(plan, input, rel_left(join), project->project.exprs.items[i])) {
            return false;
        }
    }
    return !is_pinned(plan, project);
}

/* Takes the projection at the top of the right side out of it; false when it must stay. */
static bool lift_project(struct unnest *u) {
    struct plan *plan = u->o->plan;
    struct rel *join = u->join;
    struct rel *project = rel_right(join);
    bool tests = rel_visible(join) == 1;
    if (project->kind != REL_PROJECT || (!tests && !may_lift(u, join, project))) {
        return false;
    }
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < project->out.count; i++) {
        map[project->out.items[i]] = project->project.exprs.items[i];
    }
    struct substitution s = {
        .plan = plan, .stop = project, .from = project, .join = join, .map = map};
    rel_set_right(join, rel_input(project));
    if (tests) {
        rel_each_expr(join, substitute_slot, &s);
        return true;
    }
    for (i64 i = 0; unnest_keeps_left(join) && i < rel_right(join)->out.count; i++) {
        plan->cols.items[rel_right(join)->out.items[i]].nullable = 1;
    }
    rel_each(plan->arena, plan->root, substitute_rel, &s);
    return true;
}

/* Counts of a missing group are 0 above the join. */
static void zero_counts(struct unnest *u, struct rel *agg) {
    struct plan *plan = u->o->plan;
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    struct rel counts = {.kind = REL_PROJECT};
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        const struct agg_call *call = &agg->agg.calls.items[i];
        if (call->agg == AGG_COUNT || call->agg == AGG_COUNT_STAR) {
            plan->cols.items[call->col].nullable = 1;
            map[call->col] = unnest_zero_if_null(plan, call->col);
            VEC_PUSH(plan->arena, &counts.out, call->col);
        }
    }
    struct substitution s = {
        .plan = plan, .stop = agg, .from = &counts, .join = u->join, .map = map};
    if (counts.out.count > 0) {
        rel_each(plan->arena, plan->root, substitute_rel, &s);
    }
}

bool unnest_agg_top(struct unnest *u) {
    struct rel *join = u->join;
    if (!is_scalar_agg(rel_right(join)) || join->join.conds.count > 0 ||
        is_extended(u->o->plan, u->o->plan->root, join, false)) {
        return false;
    }
    if (join->join.kind == JOIN_CROSS || join->join.kind == JOIN_INNER) {
        join->join.kind = JOIN_LEFT; /* there is always the one row */
    }
    if (!unnest_keeps_left(join) || is_pinned(u->o->plan, rel_right(join))) {
        return false;
    }
    zero_counts(u, rel_right(join));
    return true;
}

void unnest_lift(struct unnest *u) {
    for (;;) {
        struct rel *right = rel_right(u->join);
        if (right->kind == REL_SORT) { /* without LIMIT its order means nothing */
            rel_set_right(u->join, rel_input(right));
        } else if (!lift_project(u)) {
            return;
        }
    }
}

/* moving conditions */

bool unnest_may_find_two(struct opt *o, const struct rel *rel) {
    return rel->kind == REL_JOIN && rel->join.kind == JOIN_SINGLE &&
           !estimate_unique(o->plan, rel_right(rel), rel->join.right_keys.items,
                            rel->join.null_safe.items, rel->join.right_keys.count);
}

/* Whether a join may be made for rows that a condition below it would keep from it. */
static bool may_widen(struct unnest *u, struct rel *join) {
    bool raises = unnest_may_find_two(u->o, join);
    for (i64 i = 0; !raises && i < join->join.conds.count; i++) {
        raises = facts_can_raise(u->o, join->join.conds.items[i]);
    }
    return !raises;
}

static bool can_pull(struct unnest *u, struct rel *rel) {
    if (!unnest_below_uses_outer(u, rel)) {
        return true;
    }
    switch (rel->kind) {
    case REL_FILTER:
    case REL_SORT:
        return can_pull(u, rel_input(rel));
    case REL_PROJECT:
        for (i64 i = 0; i < rel->project.exprs.count; i++) {
            if (unnest_uses_outer(u, rel->project.exprs.items[i]) ||
                facts_can_raise(u->o, rel->project.exprs.items[i])) {
                return false;
            }
        }
        return can_pull(u, rel_input(rel));
    case REL_JOIN:
        for (i64 i = 0; i < rel->join.left_keys.count; i++) {
            if (unnest_uses_outer(u, rel->join.left_keys.items[i]) ||
                unnest_uses_outer(u, rel->join.right_keys.items[i])) {
                return false;
            }
        }
        if (rel->join.kind == JOIN_INNER || rel->join.kind == JOIN_CROSS) {
            return can_pull(u, rel_left(rel)) && can_pull(u, rel_right(rel));
        }
        for (i64 i = 0; i < rel->join.conds.count; i++) {
            if (unnest_uses_outer(u, rel->join.conds.items[i])) {
                return false;
            }
        }
        return rel->join.kind != JOIN_FULL && !unnest_below_uses_outer(u, rel_right(rel)) &&
               may_widen(u, rel) && can_pull(u, rel_left(rel));
    default:
        return false;
    }
}

static void take_conds(struct unnest *u, struct rel *rel, expr_list *out) {
    i64 kept = 0;
    expr_list *conds = rel_conds(rel);
    for (i64 i = 0; i < conds->count; i++) {
        struct expr *cond = conds->items[i];
        if (unnest_uses_outer(u, cond)) {
            VEC_PUSH(u->o->plan->arena, out, cond);
        } else {
            conds->items[kept++] = cond;
        }
    }
    conds->count = kept;
}

struct export_walk {
    struct plan *plan;
    struct rel *project;
    struct expr **map;
};

/* A column that a moved condition needs from below a projection gets a number above it. */
static void export_col(u32 col, void *arg) {
    struct export_walk *w = arg;
    if (w->map[col] || !rel_has_out(rel_input(w->project), col)) {
        return;
    }
    VEC_PUSH(w->plan->arena, &w->project->project.exprs, expr_col(w->plan, col, -1));
    u32 to = plan_col_like(w->plan, col);
    VEC_PUSH(w->plan->arena, &w->project->out, to);
    w->map[col] = expr_col(w->plan, to, -1);
}

static void export_conds(struct unnest *u, struct rel *project, expr_list *conds, i64 first) {
    struct plan *plan = u->o->plan;
    /* as many columns may be added as there are now */
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, 2 * plan->cols.count + 1);
    struct export_walk w = {plan, project, map};
    for (i64 i = first; i < conds->count; i++) {
        expr_each_col(conds->items[i], export_col, &w);
        conds->items[i] = expr_map(plan->arena, conds->items[i], map);
    }
}

static void pull(struct unnest *u, struct rel *rel, expr_list *out) {
    i64 first = out->count;
    if (!unnest_below_uses_outer(u, rel)) {
        return;
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        pull(u, rel->inputs[i], out);
    }
    bool passes = rel->kind == REL_FILTER || rel->kind == REL_SORT || rel->kind == REL_JOIN;
    if (rel->kind == REL_PROJECT) {
        export_conds(u, rel, out, first);
    }
    for (i32 i = 0; passes && i < rel_visible(rel); i++) { /* what projections below exported */
        for (i64 k = 0; k < rel->inputs[i]->out.count; k++) {
            hand_on(u->o->plan, rel, rel->inputs[i]->out.items[k]);
        }
    }
    if (rel->kind == REL_FILTER || rel->kind == REL_JOIN) {
        take_conds(u, rel, out);
    }
}

bool unnest_pull(struct unnest *u) {
    struct rel *join = u->join;
    expr_list conds = {0};
    if (!can_pull(u, rel_right(join))) {
        return false;
    }
    pull(u, rel_right(join), &conds);
    for (i64 i = 0; i < conds.count; i++) {
        VEC_PUSH(u->o->plan->arena, &join->join.conds, conds.items[i]);
    }
    if (join->join.kind == JOIN_CROSS && conds.count > 0) {
        join->join.kind = JOIN_INNER;
    }
    return true;
}

struct sink_walk {
    const struct rel *left;
    bool inside;
};

static void note_left(u32 col, void *arg) {
    struct sink_walk *w = arg;
    w->inside = w->inside && rel_has_out(w->left, col);
}

void unnest_sink(struct opt *o, struct rel *filter) {
    struct rel *join = rel_input(filter);
    if (join->kind != REL_JOIN || join->join.kind == JOIN_FULL) {
        return;
    }
    struct rel *lower = NULL;
    i64 kept = 0;
    for (i64 i = 0; i < filter->filter.conds.count; i++) {
        struct expr *cond = filter->filter.conds.items[i];
        struct sink_walk w = {rel_left(join), true};
        expr_each_col(cond, note_left, &w);
        if (!w.inside || facts_can_raise(o, cond)) {
            filter->filter.conds.items[kept++] = cond;
            continue;
        }
        if (!lower) {
            lower = rel_new(o->plan, REL_FILTER, rel_left(join), NULL);
            lower->position = filter->position;
            lower->rows = rel_left(join)->rows;
        }
        VEC_PUSH(o->plan->arena, &lower->filter.conds, cond);
    }
    filter->filter.conds.count = kept;
    if (lower) {
        rel_set_left(join, lower);
        unnest_sink(o, lower);
    }
}
