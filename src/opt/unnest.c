/* unnest.c: takes the dependence out of dependent joins (Neumann and Kemper, "Unnesting arbitrary
 * queries", BTW 2015).
 *
 * The right side of a dependent join is written as if it ran once for each row of the left. Inner
 * joins first, each is rewritten in one of two ways:
 *  - When outer columns stand only in conditions that can be tested later (filters below
 *    projections and inner joins), those conditions move up and become conditions of the join.
 *  - Otherwise the right side is changed to compute its rows for all values of the outer columns at
 *    once. Every operator carries columns that say for which values a row is. Aggregates and
 *    windows have them as further keys; LIMIT becomes a condition on row_number. The join compares
 *    them with the left. A filter that equates each outer column with one of its input's
 *    supplies these columns itself, if nothing on the right can raise (values that the left does
 *    not have are then computed in vain). Where there is no such filter the values come from the
 *    left: the distinct outer columns of the left, which is then shared.
 *
 * A recursion that starts from one row of outer values, as a series between columns does, starts
 * from the left's rows instead, with all their columns, and no join is left: who wants few of its
 * rows then waits for few rounds.
 *
 * An aggregate without keys has a row for an empty input too. Directly under a SINGLE or LEFT join,
 * the missing row is NULL, which all aggregates but count want; expressions over them move above
 * the join, with 0 for a missing count. Elsewhere the values are joined with the aggregate.
 *
 * What calls sequences is asked for every row of the left, equal ones too: those rows are numbered,
 * the number is one of the outer columns, and every such call uses it, in the order of the rows.
 * See decision 0011. */
#include "opt/unnest_int.h"

#include "codes/func.h"

/* columns */

static struct plan *plan_of(const struct unnest *u) {
    return u->o->plan;
}

static struct arena *arena_of(const struct unnest *u) {
    return u->o->plan->arena;
}

static bool is_outer(const struct unnest *u, u32 col) {
    return col < u->is_outer_count && u->is_outer[col];
}

struct outer_walk {
    const struct unnest *u;
    bool found;
    bool other;
};

static void note_outer(u32 col, void *arg) {
    struct outer_walk *w = arg;
    w->found = w->found || is_outer(w->u, col);
    w->other = w->other || !is_outer(w->u, col);
}

bool unnest_uses_outer(const struct unnest *u, const struct expr *expr) {
    struct outer_walk w = {.u = u};
    expr_each_col(expr, note_outer, &w);
    return w.found;
}

struct side_walk {
    const struct rel *side;
    bool inside;
};

static void note_side(u32 col, void *arg) {
    struct side_walk *w = arg;
    w->inside = w->inside && rel_has_out(w->side, col);
}

static void note_slot(struct expr **slot, void *arg) {
    expr_each_col(*slot, note_outer, arg);
}

/* A shared plan that was changed already no longer names outer columns, but has their values, as
 * have the working rows of a recursion that is being changed. */
static void note_rel(struct rel *rel, void *arg) {
    struct outer_walk *w = arg;
    rel_each_expr(rel, note_slot, arg);
    for (i64 i = 0; rel->kind == REL_SHARED && i < w->u->shared_from.count; i++) {
        w->found = w->found || w->u->shared_from.items[i] == rel_input(rel);
    }
    for (i64 i = 0; rel_is_serial(rel) && i < w->u->draws.count; i++) {
        w->found = w->found || w->u->draws.items[i] == rel;
    }
    for (i64 i = 0; rel->kind == REL_WORK && i < w->u->fixes.count; i++) {
        w->found = w->found || w->u->fixes.items[i] == rel->work.fix;
    }
}

static bool own_uses_outer(const struct unnest *u, struct rel *rel) {
    struct outer_walk w = {.u = u};
    rel_each_expr(rel, note_slot, &w);
    return w.found;
}

bool unnest_below_uses_outer(const struct unnest *u, struct rel *rel) {
    struct outer_walk w = {.u = u};
    rel_each(arena_of(u), rel, note_rel, &w);
    return w.found;
}

/* Outer columns in the operator's expressions become `cols`. */
struct remap {
    struct arena *arena;
    struct expr **map;
};

static void remap_slot(struct expr **slot, void *arg) {
    struct remap *r = arg;
    *slot = expr_map(r->arena, *slot, r->map);
}

static struct expr **map_to(const struct unnest *u, const u32 *cols) {
    struct plan *plan = plan_of(u);
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < u->count; i++) {
        map[u->outer[i]] = expr_col(plan, cols[i], -1);
    }
    return map;
}

static void remap_rel(const struct unnest *u, struct rel *rel, const u32 *cols) {
    struct remap r = {arena_of(u), map_to(u, cols)};
    rel_each_expr(rel, remap_slot, &r);
}

static void add_out(const struct unnest *u, struct rel *rel, const u32 *cols) {
    for (i64 i = 0; i < u->count; i++) {
        if (!rel_has_out(rel, cols[i])) {
            VEC_PUSH(arena_of(u), &rel->out, cols[i]);
        }
    }
}

/* the domain */

/* Conditions of the join on the left alone: for rows that fail them the right side is not asked. */
static bool is_guard(const struct unnest *u, const struct expr *cond) {
    struct outer_walk w = {.u = u};
    struct side_walk side = {rel_left(u->join), true};
    expr_each_col(cond, note_outer, &w);
    expr_each_col(cond, note_side, &side);
    return (w.found || w.other) && side.inside;
}

static bool is_guarded(const struct unnest *u) {
    for (i64 i = 0; i < u->join->join.conds.count; i++) {
        if (is_guard(u, u->join->join.conds.items[i])) {
            return true;
        }
    }
    return false;
}

/* The left's rows that ask for the right side, with the outer columns first. */
static struct rel *asking_rows(const struct unnest *u) {
    struct plan *plan = plan_of(u);
    const struct rel *left = u->left;
    if (!is_guarded(u)) {
        return rel_shared(plan, u->left, u->outer, NULL, u->count);
    }
    u32 *cols = NEW_ARRAY(plan->arena, u32, u->count + left->out.count);
    i64 count = u->count;
    memcpy(cols, u->outer, sizeof(u32) * (size_t)u->count);
    for (i64 i = 0; i < left->out.count; i++) {
        cols[count] = left->out.items[i];
        count += !is_outer(u, left->out.items[i]);
    }
    struct rel *rows = rel_shared(plan, u->left, cols, NULL, count);
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < count; i++) {
        map[cols[i]] = expr_col(plan, rows->out.items[i], -1);
    }
    struct rel *filter = rel_new(plan, REL_FILTER, rows, NULL);
    for (i64 i = 0; i < u->join->join.conds.count; i++) {
        struct expr *cond = u->join->join.conds.items[i];
        if (is_guard(u, cond)) {
            VEC_PUSH(plan->arena, &filter->filter.conds, expr_map(plan->arena, cond, map));
        }
    }
    filter->rows = rows->rows;
    return filter;
}

/* One more use of the outer columns' distinct values; cols gets its columns. */
static struct rel *use_domain(struct unnest *u, u32 *cols) {
    struct plan *plan = plan_of(u);
    if (u->grows) {
        memcpy(cols, u->outer, sizeof(u32) * (size_t)u->count);
        return rel_left(u->join);
    }
    if (!u->domain) {
        u->left = rel_left(u->join);
        struct rel *values = asking_rows(u);
        u->domain = rel_new(plan, REL_AGG, values, NULL);
        for (i64 i = 0; i < u->count; i++) {
            VEC_PUSH(plan->arena, &u->domain->agg.keys, expr_col(plan, values->out.items[i], -1));
            u32 key = plan_col_like(plan, u->outer[i]);
            VEC_PUSH(plan->arena, &u->domain->out, key);
        }
        u->domain->rows = u->left->rows;
    }
    struct rel *use = rel_shared(plan, u->domain, u->domain->out.items, NULL, u->count);
    memcpy(cols, use->out.items, sizeof(u32) * (size_t)u->count);
    return use;
}

/* what may raise */

struct raise_walk {
    struct opt *o;
    bool raises;
};

static void note_raising(struct expr **slot, void *arg) {
    struct raise_walk *w = arg;
    w->raises = w->raises || facts_can_raise(w->o, *slot);
}

static void note_raising_rel(struct rel *rel, void *arg) {
    struct raise_walk *w = arg;
    rel_each_expr(rel, note_raising, arg);
    w->raises = w->raises || unnest_may_find_two(w->o, rel);
}

static bool may_raise(struct opt *o, struct rel *rel) {
    struct raise_walk w = {o, false};
    rel_each(o->plan->arena, rel, note_raising_rel, &w);
    return w.raises;
}

struct guard_walk {
    const struct rel *join;
    bool right, outside;
};

static void note_guard(u32 col, void *arg) {
    struct guard_walk *w = arg;
    bool right = rel_has_out(rel_right(w->join), col);
    w->right = w->right || right;
    w->outside = w->outside || (!right && !rel_has_out(rel_left(w->join), col));
}

/* A subquery that may raise, and is asked for under a condition on columns of a query further out.
 * It can be computed for the rows that ask once the left side has those columns. */
static bool is_waiting(struct opt *o, struct rel *join) {
    bool guarded = false;
    if (join->join.kind != JOIN_SINGLE && join->join.kind != JOIN_MARK) {
        return false;
    }
    for (i64 i = 0; !guarded && i < join->join.conds.count; i++) {
        struct guard_walk w = {.join = join};
        expr_each_col(join->join.conds.items[i], note_guard, &w);
        guarded = w.outside && !w.right;
    }
    return guarded && may_raise(o, rel_right(join));
}

struct shared_walk {
    const struct unnest *u;
    VEC(struct rel *) inputs; /* of SHARED, that use outer columns */
    i64 users;
};

static void note_shared(struct rel *rel, void *arg) {
    struct shared_walk *w = arg;
    if (rel->kind == REL_SHARED && unnest_below_uses_outer(w->u, rel_input(rel))) {
        VEC_PUSH(arena_of(w->u), &w->inputs, rel_input(rel));
    }
}

static void count_shared(struct rel *rel, void *arg) {
    struct shared_walk *w = arg;
    for (i64 i = 0; rel->kind == REL_SHARED && i < w->inputs.count; i++) {
        w->users += w->inputs.items[i] == rel_input(rel);
    }
}

/* Whether nobody else uses what is shared in there, so that its columns can be changed. */
static bool owns_shared(const struct unnest *u, struct rel *rel) {
    struct shared_walk w = {.u = u};
    rel_each(arena_of(u), rel, note_shared, &w);
    rel_each(arena_of(u), rel, count_shared, &w);
    i64 own = w.users;
    w.users = 0;
    rel_each(arena_of(u), plan_of(u)->root, count_shared, &w);
    return own == w.users;
}

/* the right side, for all values at once */

static struct rel *push(struct unnest *u, struct rel *rel, u32 *cols);

/* One filter for a stack of them. */
static struct rel *merge_filters(const struct unnest *u, struct rel *rel) {
    struct rel *bottom = rel;
    VEC(struct rel *) stack = {0};
    while (bottom->kind == REL_FILTER) {
        VEC_PUSH(arena_of(u), &stack, bottom);
        bottom = rel_input(bottom);
    }
    struct rel *merged = rel_new(plan_of(u), REL_FILTER, bottom, NULL);
    for (i64 i = stack.count; i-- > 0;) { /* the lowest is tested first */
        for (i64 k = 0; k < stack.items[i]->filter.conds.count; k++) {
            expr_split_and(arena_of(u), &merged->filter.conds, stack.items[i]->filter.conds.items[k]);
        }
    }
    merged->position = rel->position;
    merged->rows = rel->rows;
    return merged;
}

/* The input's column that a condition equates with outer column `outer`; false when none does. */
static bool equal_to(const struct rel *filter, const struct expr *cond, u32 outer, u32 *out) {
    if (cond->kind != EXPR_CALL || cond->func != FUNC_EQ) {
        return false;
    }
    for (i32 i = 0; i < 2; i++) {
        const struct expr *a = cond->args[i];
        const struct expr *c = cond->args[1 - i];
        if (a->kind == EXPR_COL && a->col == outer && c->kind == EXPR_COL &&
            rel_has_out(rel_input(filter), c->col) && type_eq(a->type, c->type) &&
            opt_equal_is_same(a->type)) {
            *out = c->col;
            return true;
        }
    }
    return false;
}

/* Whether the filter gives every outer column a value of its own input's. */
static bool own_values(const struct unnest *u, const struct rel *filter, u32 *cols) {
    for (i64 i = 0; i < u->count; i++) {
        bool found = false;
        for (i64 k = 0; !found && k < filter->filter.conds.count; k++) {
            found = equal_to(filter, filter->filter.conds.items[k], u->outer[i], &cols[i]);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static bool says_itself(const struct expr *cond) {
    return cond->kind == EXPR_CALL && cond->func == FUNC_EQ && cond->args[0]->kind == EXPR_COL &&
           cond->args[1]->kind == EXPR_COL && cond->args[0]->col == cond->args[1]->col;
}

/* k = k says that k is not NULL. */
static struct expr *not_null(const struct unnest *u, const struct expr *cond) {
    struct expr *test = expr_new(arena_of(u), EXPR_IS_NULL, type_of(TYPE_BOOLEAN), cond->position);
    struct expr *negated = expr_new(arena_of(u), EXPR_NOT, type_of(TYPE_BOOLEAN), cond->position);
    test->arg_count = 1;
    test->args = cond->args;
    negated->arg_count = 1;
    negated->args = NEW_ARRAY(arena_of(u), struct expr *, 1);
    negated->args[0] = test;
    return negated;
}

static struct rel *push_filter(struct unnest *u, struct rel *rel, u32 *cols) {
    struct rel *filter = merge_filters(u, rel);
    if (!u->widen || unnest_below_uses_outer(u, rel_input(filter)) ||
        !own_values(u, filter, cols)) {
        rel_set_input(filter, push(u, rel_input(filter), cols));
        remap_rel(u, filter, cols);
        add_out(u, filter, cols);
        return filter;
    }
    remap_rel(u, filter, cols);
    i64 kept = 0;
    for (i64 i = 0; i < filter->filter.conds.count; i++) {
        struct expr *cond = filter->filter.conds.items[i];
        if (says_itself(cond) && !expr_nullable(plan_of(u), cond->args[0])) {
            continue;
        }
        filter->filter.conds.items[kept++] = says_itself(cond) ? not_null(u, cond) : cond;
    }
    filter->filter.conds.count = kept;
    return filter;
}

static struct rel *push_project(struct unnest *u, struct rel *rel, u32 *cols) {
    rel_set_input(rel, push(u, rel_input(rel), cols));
    remap_rel(u, rel, cols);
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(arena_of(u), &rel->project.exprs, expr_col(plan_of(u), cols[i], -1));
        cols[i] = plan_col_like(plan_of(u), cols[i]);
        VEC_PUSH(arena_of(u), &rel->out, cols[i]);
    }
    return rel;
}

/* left[i] and right[i] are the values on both sides: NULL equals NULL. */
static void join_values(struct unnest *u, struct rel *rel, const u32 *left, const u32 *right) {
    struct arena *arena = arena_of(u);
    while (rel->join.null_safe.count < rel->join.left_keys.count) {
        VEC_PUSH(arena, &rel->join.null_safe, (b8)0);
    }
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(arena, &rel->join.left_keys, expr_col(plan_of(u), left[i], -1));
        VEC_PUSH(arena, &rel->join.right_keys, expr_col(plan_of(u), right[i], -1));
        VEC_PUSH(arena, &rel->join.null_safe, (b8)1);
    }
    rel->join.kind = rel->join.kind == JOIN_CROSS ? JOIN_INNER : rel->join.kind;
}

/* Conditions of an inner join that name outer columns, as a filter above it. */
static struct rel *lift_conds(struct unnest *u, struct rel *rel) {
    struct rel *filter = rel_new(plan_of(u), REL_FILTER, rel, NULL);
    i64 kept = 0;
    for (i64 i = 0; i < rel->join.conds.count; i++) {
        struct expr *cond = rel->join.conds.items[i];
        if (unnest_uses_outer(u, cond)) {
            VEC_PUSH(arena_of(u), &filter->filter.conds, cond);
        } else {
            rel->join.conds.items[kept++] = cond;
        }
    }
    rel->join.conds.count = kept;
    filter->rows = rel->rows;
    return filter;
}

static struct rel *push_inner(struct unnest *u, struct rel *rel, u32 *cols) {
    if (own_uses_outer(u, rel)) {
        return push_filter(u, lift_conds(u, rel), cols);
    }
    bool left = unnest_below_uses_outer(u, rel_left(rel));
    bool right = unnest_below_uses_outer(u, rel_right(rel));
    u32 *other = NEW_ARRAY(arena_of(u), u32, u->count);
    if (left) {
        rel_set_left(rel, push(u, rel_left(rel), cols));
    }
    if (right) {
        rel_set_right(rel, push(u, rel_right(rel), left ? other : cols));
    }
    if (left && right) {
        join_values(u, rel, cols, other);
    }
    add_out(u, rel, cols);
    return rel;
}

static void remap_below(struct rel *rel, void *arg) {
    rel_each_expr(rel, remap_slot, arg);
}

/* Kinds that keep all rows of the left, or choose among them. A right side that waits goes on
 * depending on the left, which has the outer columns now. */
static struct rel *push_outer(struct unnest *u, struct rel *rel, u32 *cols) {
    u32 *other = NEW_ARRAY(arena_of(u), u32, u->count);
    bool right = unnest_below_uses_outer(u, rel_right(rel));
    bool waits = right && is_waiting(u->o, rel) && owns_shared(u, rel_right(rel));
    rel_set_left(rel, push(u, rel_left(rel), cols));
    if (waits) {
        struct remap r = {arena_of(u), map_to(u, cols)};
        rel_each(arena_of(u), rel_right(rel), remap_below, &r);
        rel->join.dependent = 1;
        right = false;
    }
    if (right) {
        rel_set_right(rel, push(u, rel_right(rel), other));
    }
    remap_rel(u, rel, cols);
    if (right) {
        join_values(u, rel, cols, other);
    }
    add_out(u, rel, cols);
    return rel;
}

static struct expr *if_null(struct plan *plan, struct expr *value, struct expr *otherwise) {
    struct expr *test = expr_new(plan->arena, EXPR_IS_NULL, type_of(TYPE_BOOLEAN), -1);
    test->arg_count = 1;
    test->args = NEW_ARRAY(plan->arena, struct expr *, 1);
    test->args[0] = value;
    struct expr *choice = expr_new(plan->arena, EXPR_CASE, value->type, -1);
    choice->arg_count = 3;
    choice->args = NEW_ARRAY(plan->arena, struct expr *, 3);
    choice->args[0] = test;
    choice->args[1] = otherwise;
    choice->args[2] = value;
    return choice;
}

struct expr *unnest_zero_if_null(struct plan *plan, u32 col) {
    struct expr *value = expr_col(plan, col, -1);
    return if_null(plan, value, expr_new(plan->arena, EXPR_CONST, value->type, -1));
}

static void mark_nullable(struct plan *plan, const struct rel *rel) {
    for (i64 i = 0; i < rel->out.count; i++) {
        plan->cols.items[rel->out.items[i]].nullable = 1;
    }
}

/* Either side of a row of a FULL JOIN may be missing, and the values with it: they are the other
 * side's then. A projection above chooses; it makes the join's columns under the numbers they had,
 * so the sides are copies. */
static struct rel *push_full(struct unnest *u, struct rel *rel, u32 *cols) {
    struct plan *plan = plan_of(u);
    u32 *other = NEW_ARRAY(plan->arena, u32, u->count);
    /* the second side may use numbers that copying the first one took */
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    struct rel *sides[2];
    i64 map_count = plan->cols.count;
    for (i32 i = 0; i < 2; i++) {
        struct expr **wide = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        struct rel *copy = rel_copy(plan, rel->inputs[i], wide);
        for (i64 k = 0; k < map_count; k++) {
            map[k] = wide[k] ? wide[k] : map[k];
        }
        sides[i] = push(u, copy, i == 0 ? cols : other);
        mark_nullable(plan, sides[i]);
    }
    struct rel *join = rel_join(plan, JOIN_FULL, sides[0], sides[1]);
    join->join.conds = rel->join.conds;
    join->join.left_keys = rel->join.left_keys;
    join->join.right_keys = rel->join.right_keys;
    join->join.null_safe = rel->join.null_safe;
    join->rows = rel->rows;
    join->position = rel->position;
    struct rel *project = rel_new(plan, REL_PROJECT, join, NULL);
    project->rows = rel->rows;
    for (i64 i = 0; i < rel->out.count; i++) {
        VEC_PUSH(plan->arena, &project->project.exprs, map[rel->out.items[i]]);
        VEC_PUSH(plan->arena, &project->out, rel->out.items[i]);
    }
    for (i64 i = 0; i < u->count; i++) {
        struct expr *value = expr_col(plan, cols[i], -1);
        map[u->outer[i]] = value;
        VEC_PUSH(plan->arena, &project->project.exprs,
                 if_null(plan, value, expr_col(plan, other[i], -1)));
    }
    struct remap r = {plan->arena, map};
    rel_each_expr(join, remap_slot, &r);
    join_values(u, join, cols, other);
    for (i64 i = 0; i < u->count; i++) {
        cols[i] = plan_col_like(plan, cols[i]);
        VEC_PUSH(plan->arena, &project->out, cols[i]);
    }
    return project;
}

static bool is_count(const struct agg_call *call) {
    return call->agg == AGG_COUNT || call->agg == AGG_COUNT_STAR;
}

/* The row of an empty input, for values that have none: the domain with the aggregate's results. */
static struct rel *fill_groups(struct unnest *u, struct rel *agg, u32 *cols) {
    struct plan *plan = plan_of(u);
    u32 *own = NEW_ARRAY(plan->arena, u32, u->count);
    struct rel *project = rel_new(plan, REL_PROJECT, agg, NULL); /* its input comes below */
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        struct agg_call *call = &agg->agg.calls.items[i];
        u32 old = call->col;
        call->col = plan_col_like(plan, old);
        plan->cols.items[call->col].nullable = 1;
        agg->out.items[agg->agg.keys.count + i] = call->col;
        struct expr *value =
            is_count(call) ? unnest_zero_if_null(plan, call->col) : expr_col(plan, call->col, -1);
        VEC_PUSH(plan->arena, &project->project.exprs, value);
        VEC_PUSH(plan->arena, &project->out, old);
    }
    struct rel *domain = use_domain(u, own);
    struct rel *join = rel_join(plan, JOIN_LEFT, domain, agg);
    join_values(u, join, own, cols);
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(plan->arena, &project->project.exprs, expr_col(plan, own[i], -1));
        cols[i] = plan_col_like(plan, own[i]);
        VEC_PUSH(plan->arena, &project->out, cols[i]);
    }
    rel_set_input(project, join);
    return project;
}

static struct rel *push_agg(struct unnest *u, struct rel *rel, u32 *cols, bool fill) {
    struct plan *plan = plan_of(u);
    bool scalar = rel->agg.keys.count == 0;
    rel_set_input(rel, push(u, rel_input(rel), cols));
    remap_rel(u, rel, cols);
    i64 keys = rel->agg.keys.count;
    col_list out = rel->out;
    memset(&rel->out, 0, sizeof rel->out);
    for (i64 i = 0; i < keys; i++) {
        VEC_PUSH(plan->arena, &rel->out, out.items[i]);
    }
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(plan->arena, &rel->agg.keys, expr_col(plan, cols[i], -1));
        cols[i] = plan_col_like(plan, cols[i]);
        VEC_PUSH(plan->arena, &rel->out, cols[i]);
    }
    for (i64 i = keys; i < out.count; i++) {
        VEC_PUSH(plan->arena, &rel->out, out.items[i]);
    }
    return scalar && fill ? fill_groups(u, rel, cols) : rel;
}

static struct rel *push_window(struct unnest *u, struct rel *rel, u32 *cols) {
    const struct rel *sort = rel_input(rel);
    for (i64 i = 0; rel_is_serial(rel) && sort->kind == REL_SORT && i < sort->sort.order.count;
         i++) {
        VEC_PUSH(arena_of(u), &rel->window.order, sort->sort.order.items[i]);
    }
    rel_set_input(rel, push(u, rel_input(rel), cols));
    remap_rel(u, rel, cols);
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(arena_of(u), &rel->window.keys, expr_col(plan_of(u), cols[i], -1));
    }
    add_out(u, rel, cols);
    return rel;
}

static struct expr *call_of(struct arena *arena, u16 func, enum type_id type, struct expr *a,
                            struct expr *b) {
    return expr_call(arena, func, type_of(type), -1, 2, a, b);
}

/* A bound that is NULL is none. */
static struct expr *unless_null(struct arena *arena, struct expr *bound, struct expr *cond) {
    if (bound->kind == EXPR_CONST) {
        return cond;
    }
    struct expr *test = expr_new(arena, EXPR_IS_NULL, type_of(TYPE_BOOLEAN), -1);
    test->arg_count = 1;
    test->args = NEW_ARRAY(arena, struct expr *, 1);
    test->args[0] = bound;
    struct expr *either = expr_new(arena, EXPR_OR, type_of(TYPE_BOOLEAN), -1);
    either->arg_count = 2;
    either->args = NEW_ARRAY(arena, struct expr *, 2);
    either->args[0] = test;
    either->args[1] = cond;
    return either;
}

/* LIMIT for each value: the row's number among those of its value. */
static struct rel *push_limit(struct unnest *u, struct rel *rel, u32 *cols) {
    struct plan *plan = plan_of(u);
    struct arena *arena = plan->arena;
    struct rel *sort = rel_input(rel)->kind == REL_SORT ? rel_input(rel) : NULL;
    struct rel *input = push(u, sort ? rel_input(sort) : rel_input(rel), cols);
    u32 col = plan_col_new(plan, "row_number", type_of(TYPE_BIGINT), false);
    struct rel *window = rel_numbered(plan, input, col);
    if (sort) {
        remap_rel(u, sort, cols);
        for (i64 i = 0; i < sort->sort.order.count; i++) {
            VEC_PUSH(arena, &window->window.order, sort->sort.order.items[i]);
        }
    }
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(arena, &window->window.keys, expr_col(plan, cols[i], -1));
    }
    struct rel *filter = rel_new(plan, REL_FILTER, window, NULL);
    struct expr *number = expr_col(plan, col, -1);
    if (rel->limit.offset) {
        struct expr *cond = call_of(arena, FUNC_GT, TYPE_BOOLEAN, number, rel->limit.offset);
        VEC_PUSH(arena, &filter->filter.conds, unless_null(arena, rel->limit.offset, cond));
        struct expr *past = call_of(arena, FUNC_SUB, TYPE_BIGINT, number, rel->limit.offset);
        number = rel->limit.offset->kind == EXPR_CONST ? past : number;
    }
    if (rel->limit.count) {
        struct expr *cond = call_of(arena, FUNC_LE, TYPE_BOOLEAN, number, rel->limit.count);
        VEC_PUSH(arena, &filter->filter.conds, unless_null(arena, rel->limit.count, cond));
    }
    return filter;
}

/* The outer columns of both inputs become columns of the whole. */
static struct rel *add_both(struct unnest *u, struct rel *rel, u32 *cols, const u32 *other) {
    col_list *left = rel_cols(rel, 0);
    col_list *right = rel_cols(rel, 1);
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(arena_of(u), left, cols[i]);
        VEC_PUSH(arena_of(u), right, other[i]);
        cols[i] = plan_col_like(plan_of(u), cols[i]);
        VEC_PUSH(arena_of(u), &rel->out, cols[i]);
    }
    return rel;
}

static struct rel *push_union(struct unnest *u, struct rel *rel, u32 *cols) {
    u32 *other = NEW_ARRAY(arena_of(u), u32, u->count);
    rel_set_left(rel, push(u, rel_left(rel), cols));
    rel_set_right(rel, push(u, rel_right(rel), other));
    return add_both(u, rel, cols, other);
}

/* Each value has a recursion of its own, and all of them run at once. */
static struct rel *push_fix(struct unnest *u, struct rel *rel, u32 *cols) {
    rel_set_left(rel, push(u, rel_left(rel), cols));
    VEC_PUSH(arena_of(u), &u->fixes, rel->fix.number);
    u32 *other = NEW_ARRAY(arena_of(u), u32, u->count);
    rel_set_right(rel, push(u, rel_right(rel), other));
    return add_both(u, rel, cols, other);
}

static struct rel *push_work(struct unnest *u, struct rel *rel, u32 *cols) {
    for (i64 i = 0; i < u->count; i++) {
        cols[i] = plan_col_like(plan_of(u), u->outer[i]);
        plan_of(u)->cols.items[cols[i]].nullable = 1;
        VEC_PUSH(arena_of(u), &rel->out, cols[i]);
    }
    return rel;
}

/* All users of a shared plan are on this right side, so it is changed once for all. */
static struct rel *push_shared(struct unnest *u, struct rel *rel, u32 *cols) {
    i64 at = 0;
    while (at < u->shared_from.count && u->shared_from.items[at] != rel_input(rel)) {
        at++;
    }
    if (at == u->shared_from.count) {
        u32 *made = NEW_ARRAY(arena_of(u), u32, u->count);
        struct rel *old = rel_input(rel);
        *old = *push(u, rel_body(plan_of(u), old), made);
        at = u->shared_from.count; /* shared plans within have come before */
        VEC_PUSH(arena_of(u), &u->shared_from, old);
        VEC_PUSH(arena_of(u), &u->shared_cols, made);
    }
    const u32 *made = u->shared_cols.items[at];
    for (i64 i = 0; i < u->count; i++) {
        VEC_PUSH(arena_of(u), rel->shared.cols, made[i]);
        cols[i] = plan_col_like(plan_of(u), made[i]);
        VEC_PUSH(arena_of(u), &rel->out, cols[i]);
    }
    return rel;
}

/* Rows of VALUES that name outer columns: a projection each. */
static struct rel *push_values(struct unnest *u, struct rel *rel, u32 *cols) {
    struct plan *plan = plan_of(u);
    i64 width = rel->out.count;
    i64 rows = rel->values.exprs.count / width;
    struct rel *all = NULL;
    for (i64 r = 0; r < rows; r++) {
        struct rel *one = rel_new(plan, REL_VALUES, NULL, NULL);
        one->rows = 1;
        struct rel *row = rel_new(plan, REL_PROJECT, one, NULL);
        for (i64 c = 0; c < width; c++) {
            VEC_PUSH(plan->arena, &row->project.exprs, rel->values.exprs.items[r * width + c]);
            u32 to = rows == 1 ? rel->out.items[c] : plan_col_like(plan, rel->out.items[c]);
            VEC_PUSH(plan->arena, &row->out, to);
        }
        if (!all) {
            all = row;
            continue;
        }
        struct rel *both = rel_new(plan, REL_UNION, all, row);
        for (i64 c = 0; c < width; c++) {
            VEC_PUSH(plan->arena, &both->arms.cols[0], all->out.items[c]);
            VEC_PUSH(plan->arena, &both->arms.cols[1], row->out.items[c]);
            u32 to = r == rows - 1 ? rel->out.items[c] : plan_col_like(plan, rel->out.items[c]);
            VEC_PUSH(plan->arena, &both->out, to);
        }
        all = both;
    }
    return push(u, all, cols);
}

static struct rel *push_plain(struct unnest *u, struct rel *rel, u32 *cols) {
    struct rel *domain = use_domain(u, cols);
    struct rel *join = rel_join(plan_of(u), JOIN_CROSS, rel, domain);
    join->rows = rel->rows;
    return join;
}

static struct rel *push(struct unnest *u, struct rel *rel, u32 *cols) {
    if (!unnest_below_uses_outer(u, rel)) {
        return push_plain(u, rel, cols);
    }
    switch (rel->kind) {
    case REL_FILTER:
        return push_filter(u, rel, cols);
    case REL_PROJECT:
        return push_project(u, rel, cols);
    case REL_JOIN:
        if (rel->join.kind == JOIN_FULL) {
            return push_full(u, rel, cols);
        }
        return rel->join.kind == JOIN_INNER || rel->join.kind == JOIN_CROSS
                   ? push_inner(u, rel, cols)
                   : push_outer(u, rel, cols);
    case REL_AGG:
        return push_agg(u, rel, cols, true);
    case REL_WINDOW:
        return push_window(u, rel, cols);
    case REL_SORT: /* of all values' rows at once: those of one keep theirs */
        rel_set_input(rel, push(u, rel_input(rel), cols));
        remap_rel(u, rel, cols);
        add_out(u, rel, cols);
        return rel;
    case REL_LIMIT:
        return push_limit(u, rel, cols);
    case REL_UNION:
        return push_union(u, rel, cols);
    case REL_SHARED:
        return push_shared(u, rel, cols);
    case REL_FIX:
        if (rel->input_count > 2) {
            (void)error_set(u->o->err, ERR_NOT_SUPPORTED, rel->position,
                            "mutual recursion that uses columns of an outer query is not supported");
            return push_plain(u, rel, cols);
        }
        return push_fix(u, rel, cols);
    case REL_WORK:
        return push_work(u, rel, cols);
    case REL_VALUES:
        return push_values(u, rel, cols);
    default:
        if (rel->input_count > 0) {
            (void)error_set(u->o->err, ERR_INTERNAL, rel->position,
                            "plan: a subquery with an operator %s that the pass unnest does not know",
                            rel_names[rel->kind]);
        }
        return push_plain(u, rel, cols);
    }
}

/* one join */

static void note_fix(struct rel *rel, void *arg) {
    *(bool *)arg = *(bool *)arg || rel->kind == REL_FIX;
}

/* A recursion need not end for values that the left does not have. */
static bool has_fix(const struct unnest *u, struct rel *rel) {
    bool found = false;
    rel_each(arena_of(u), rel, note_fix, &found);
    return found;
}

/* The left columns that the right side uses; false when there are none. */
static bool find_outer(struct unnest *u) {
    struct plan *plan = u->o->plan;
    const struct rel *left = rel_left(u->join);
    u8 *is_free = NEW_ARRAY(plan->arena, u8, plan->cols.count + 1);
    u8 *flags = NEW_ARRAY(plan->arena, u8, plan->cols.count + 1);
    u->is_outer = flags;
    u->is_outer_count = plan->cols.count;
    u->count = 0;
    u->outer = NEW_ARRAY(plan->arena, u32, left->out.count + 1);
    if (u->numbered) {
        u->outer[u->count++] = left->out.items[left->out.count - 1];
        flags[u->outer[0]] = 1;
    }
    if (rel_free_cols(plan, rel_right(u->join), is_free) == 0) {
        return false;
    }
    for (i64 i = 0; i < left->out.count; i++) {
        u32 col = left->out.items[i];
        if (is_free[col] && !flags[col]) {
            flags[col] = 1;
            u->outer[u->count++] = col;
        }
    }
    return u->count > 0;
}

/* A SHARED made here that nobody else uses is a projection. */
struct user_count {
    const struct rel *input;
    struct rel *user;
    i64 count;
};

static void count_user(struct rel *rel, void *arg) {
    struct user_count *c = arg;
    if (rel->kind == REL_SHARED && rel_input(rel) == c->input) {
        c->user = rel;
        c->count++;
    }
}

static void inline_single(struct plan *plan, const struct rel *input) {
    struct user_count c = {.input = input};
    rel_each(plan->arena, plan->root, count_user, &c);
    if (c.count != 1) {
        return;
    }
    rel_unshare(plan, c.user);
}

static void rewrite(struct unnest *u) {
    struct plan *plan = plan_of(u);
    struct rel *join = u->join;
    u32 *cols = NEW_ARRAY(plan->arena, u32, u->count);
    bool top = unnest_agg_top(u);
    u->widen = !u->numbered && !may_raise(u->o, rel_right(join)) && !has_fix(u, rel_right(join));
    struct rel *right = rel_right(join);
    rel_set_right(join, top ? push_agg(u, right, cols, false) : push(u, right, cols));
    join_values(u, join, u->outer, cols);
    if (u->domain) {
        opt_share(plan, join, 0);
        inline_single(plan, u->domain);
    } else {
        for (i64 i = 0; i < join->join.null_safe.count; i++) {
            join->join.null_safe.items[i] = 0;
        }
    }
}

/* recursions that start from the left's rows */

/* Whether the rows of a round are made of those of the last one, row by row. */
static bool goes_on(const struct unnest *u, struct rel *rel, u32 fix) {
    switch (rel->kind) {
    case REL_WORK:
        return rel->work.fix == fix && rel->work.part == WORK_DELTA;
    case REL_PROJECT:
    case REL_FILTER:
        return goes_on(u, rel_input(rel), fix);
    case REL_JOIN:
        return (rel->join.kind == JOIN_INNER || rel->join.kind == JOIN_CROSS) &&
               !rel->join.dependent && !own_uses_outer(u, rel) &&
               rel_right(rel)->kind == REL_VALUES && !unnest_below_uses_outer(u, rel_right(rel)) &&
               goes_on(u, rel_left(rel), fix);
    default:
        return false;
    }
}

/* Whether the rows of `rel` are made of one row of outer values, row by row, by a recursion. */
static bool starts(const struct unnest *u, struct rel *rel, bool recursive) {
    switch (rel->kind) {
    case REL_PROJECT:
    case REL_FILTER:
        return starts(u, rel_input(rel), recursive);
    case REL_FIX:
        return !recursive && rel->input_count == 2 && goes_on(u, rel_right(rel), rel->fix.number) &&
               starts(u, rel_left(rel), true);
    case REL_VALUES:
        return recursive && (rel->out.count == 0 || rel->values.exprs.count == rel->out.count);
    default:
        return false;
    }
}

struct rel_list {
    struct arena *arena;
    VEC(const struct rel *) items;
};

struct rename {
    struct plan *plan;
    struct expr **map;
    i64 map_count;
    const struct rel_list *inside; /* what makes and carries the old columns */
};

static void list_rel(struct rel *rel, void *arg) {
    struct rel_list *list = arg;
    VEC_PUSH(list->arena, &list->items, (const struct rel *)rel);
}

static void rename_rel(struct rel *rel, void *arg) {
    struct rename *r = arg;
    for (i64 i = 0; i < r->inside->items.count; i++) {
        if (r->inside->items.items[i] == rel) {
            return;
        }
    }
    rel_rename(r->plan->arena, rel, r->map, r->map_count);
}

/* The left's rows become the first rows of the recursion, which takes the join's place; false, and
 * nothing is changed, when the right side is something else. */
static bool grow_left(struct unnest *u) {
    struct plan *plan = plan_of(u);
    struct rel *join = u->join;
    bool inner = join->join.kind == JOIN_INNER || join->join.kind == JOIN_CROSS;
    if (!inner || join->join.left_keys.count > 0 || !starts(u, rel_right(join), false)) {
        return false;
    }
    const struct rel *left = rel_left(join);
    u8 *flags = NEW_ARRAY(plan->arena, u8, plan->cols.count + 1);
    u->is_outer = flags;
    u->count = 0;
    for (i64 i = 0; i < left->out.count; i++) {
        flags[left->out.items[i]] = 1;
        u->outer[u->count++] = left->out.items[i];
    }
    u32 *cols = NEW_ARRAY(plan->arena, u32, u->count);
    u->grows = 1;
    struct rel *grown = push(u, rel_right(join), cols);
    struct rel_list inside = {.arena = plan->arena};
    struct rename r = {plan, map_to(u, cols), plan->cols.count, &inside};
    expr_list conds = join->join.conds;
    rel_become(plan, join, REL_FILTER, grown);
    join->join.conds = conds;
    rel_each(plan->arena, grown, list_rel, &inside);
    rel_each(plan->arena, plan->root, rename_rel, &r);
    return true;
}

/* A shared plan that uses no outer column is computed once, and so are its calls. */
static bool find_draws(struct rel *rel, void *arg) {
    struct unnest *u = arg;
    if (rel_is_serial(rel)) {
        VEC_PUSH(arena_of(u), &u->draws, (const struct rel *)rel);
    }
    return !rel_shares(rel) || rel_free_cols(plan_of(u), rel, NULL) > 0;
}

static void unnest_join(struct opt *o, struct rel *join, bool serials) {
    struct unnest u = {.o = o, .join = join};
    bool dependent = find_outer(&u);
    if (dependent && serials) {
        rel_walk(o->plan->arena, rel_right(join), find_draws, &u);
        u.numbered = u.draws.count > 0;
    }
    if (u.numbered) {
        (void)unnest_carry(&u);
        u32 row = plan_col_new(o->plan, "row", type_of(TYPE_BIGINT), false);
        rel_set_left(join, rel_numbered(o->plan, rel_left(join), row));
        (void)find_outer(&u);
        rewrite(&u);
    } else if (dependent) {
        unnest_lift(&u);
    }
    if (!u.numbered &&
        find_outer(&u)) { /* what may raise is computed for the values asked for, no others */
        bool careful = is_guarded(&u) && may_raise(o, rel_right(join));
        if (!careful && grow_left(&u)) {
            join->join.dependent = 0;
            return;
        }
        if (careful || !unnest_pull(&u)) {
            if (unnest_carry(&u)) {
                (void)find_outer(&u);
            }
            rewrite(&u);
        }
    }
    join->join.dependent = 0;
}

struct join_list { /* or of filters */
    struct arena *arena;
    VEC(struct rel *) items;
};

static void note_dependent(struct rel *rel, void *arg) {
    struct join_list *list = arg;
    if (rel->kind == REL_JOIN && rel->join.dependent) {
        VEC_PUSH(list->arena, &list->items, rel);
    }
}

static void note_filter(struct rel *rel, void *arg) {
    struct join_list *list = arg;
    if (rel->kind == REL_FILTER) {
        VEC_PUSH(list->arena, &list->items, rel);
    }
}

static void sink_filters(struct opt *o) {
    struct join_list filters = {.arena = o->plan->arena};
    rel_each(o->plan->arena, o->plan->root, note_filter, &filters);
    for (i64 i = 0; i < filters.items.count; i++) {
        unnest_sink(o, filters.items.items[i]);
    }
}

static void note_serial(struct rel *rel, void *arg) {
    *(bool *)arg = *(bool *)arg || rel_is_serial(rel);
}

/* One round over the dependent joins: all but those that wait, or the last of them if all do. */
static FALLIBLE unnest_round(struct opt *o, const struct join_list *list, bool serials) {
    bool changed = false;
    for (i64 i = list->items.count; i-- > 0;) { /* parents come first in the list */
        if (!is_waiting(o, list->items.items[i])) {
            unnest_join(o, list->items.items[i], serials);
            changed = true;
        }
        TRY(o->err->code);
    }
    if (!changed) {
        unnest_join(o, list->items.items[list->items.count - 1], serials);
    }
    return o->err->code;
}

FALLIBLE pass_unnest(struct opt *o) {
    bool serials = false;
    for (bool first = true;; first = false) {
        struct join_list list = {.arena = o->plan->arena};
        rel_each(o->plan->arena, o->plan->root, note_dependent, &list);
        if (list.items.count == 0) {
            return ERR_OK;
        }
        if (first) {
            rel_each(o->plan->arena, o->plan->root, note_serial, &serials);
            sink_filters(o);
        }
        TRY(unnest_round(o, &list, serials));
    }
}
