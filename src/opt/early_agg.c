/* early_agg.c: the right side of a left join is aggregated before it is joined.
 *
 * `select c.id, count(o.x) from c left join o on c.id = o.c group by c.id` joins every row of o
 * with its c only to count it there. Where the group keys are unique on the left side, a group is
 * one left row. So the right side can be grouped by its join keys first. The join then finds one
 * row instead of a run, and a row a key is all that has to be kept of the right side. A left row
 * without a match had one row of NULLs: count is 0 for it, count(*) 1, everything else NULL.
 *
 * Aggregates that can raise stay where they are, as groups that no left row asks for are computed
 * too now. So do arguments that are not plain columns of the right side, which might not be NULL
 * for a row of NULLs. */
#include "opt/opt_int.h"

static bool is_harmless(const struct opt *o, const struct rel *right, const struct agg_call *call) {
    bool plain = call->arg && call->arg->kind == EXPR_COL && rel_has_out(right, call->arg->col);
    struct type type = plain ? o->plan->cols.items[call->arg->col].type : type_of(TYPE_INTEGER);
    if (call->distinct || call->filter || call->arg2 || call->order.count > 0) {
        return false;
    }
    switch (call->agg) {
    case AGG_COUNT_STAR:
        return true;
    case AGG_COUNT:
    case AGG_MIN:
    case AGG_MAX:
        return plain;
    case AGG_SUM:
    case AGG_AVG:
        return plain &&
               (type_is_integer(type) || (type.id == TYPE_DECIMAL && type.precision <= 18));
    default:
        return false;
    }
}

/* Whether a group is a row of the left side. */
static bool groups_are_rows(const struct opt *o, const struct rel *agg, const struct rel *left) {
    b8 *safe = NEW_ARRAY(o->plan->arena, b8, agg->agg.keys.count + 1);
    for (i64 i = 0; i < agg->agg.keys.count; i++) {
        const struct expr *key = agg->agg.keys.items[i];
        safe[i] = 1;
        if (key->kind != EXPR_COL || !rel_has_out(left, key->col)) {
            return false;
        }
    }
    return estimate_unique(o->plan, left, agg->agg.keys.items, safe, agg->agg.keys.count);
}

static bool is_worth(const struct opt *o, const struct rel *join) {
#ifdef WF_HARD
    UNUSED(o);
    UNUSED(join);
    return true; /* tests have small tables */
#else
    i64 rows = rel_right(join)->rows;
    f64 groups = 1.0;
    for (i64 i = 0; i < join->join.right_keys.count; i++) {
        groups *= (f64)estimate_distinct(o, join->join.right_keys.items[i], rows);
    }
    return groups * 2.0 <= (f64)rows;
#endif
}

static bool can_be_early(const struct opt *o, const struct rel *agg) {
    const struct rel *join = rel_input(agg);
    if (agg->agg.keys.count == 0 || join->kind != REL_JOIN || join->join.kind != JOIN_LEFT ||
        join->join.conds.count > 0 || join->join.left_keys.count == 0) {
        return false;
    }
    for (i64 i = 0; i < join->join.null_safe.count; i++) {
        if (join->join.null_safe.items[i]) {
            return false;
        }
    }
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        if (!is_harmless(o, rel_right(join), &agg->agg.calls.items[i])) {
            return false;
        }
    }
    return groups_are_rows(o, agg, rel_left(join)) && is_worth(o, join);
}

/* col, or `value` where it is NULL. */
static struct expr *with_default(struct plan *plan, u32 col, i64 value) {
    struct expr *out = expr_new(plan->arena, EXPR_CASE, plan->cols.items[col].type, -1);
    struct expr *test = expr_new(plan->arena, EXPR_IS_NULL, type_of(TYPE_BOOLEAN), -1);
    struct expr *other = expr_new(plan->arena, EXPR_CONST, out->type, -1);
    const_set_exact(other, value);
    test->arg_count = 1;
    test->args = NEW_ARRAY(plan->arena, struct expr *, 1);
    test->args[0] = expr_col(plan, col, -1);
    out->arg_count = 3;
    out->args = NEW_ARRAY(plan->arena, struct expr *, 3);
    out->args[0] = test;
    out->args[1] = other;
    out->args[2] = expr_col(plan, col, -1);
    return out;
}

/* The aggregate of the right side by its join keys, and the join that looks its rows up. */
static struct rel *join_groups(struct plan *plan, const struct rel *agg) {
    struct rel *join = rel_input(agg);
    struct rel *early = rel_new(plan, REL_AGG, rel_right(join), NULL);
    for (i64 i = 0; i < join->join.right_keys.count; i++) {
        struct expr *key = join->join.right_keys.items[i];
        VEC_PUSH(plan->arena, &early->agg.keys, key);
        VEC_PUSH(plan->arena, &early->out, plan_col_new(plan, "key", key->type, true));
    }
    for (i64 i = 0; i < agg->agg.calls.count; i++) {
        struct agg_call call = agg->agg.calls.items[i];
        const struct plan_col *old = &plan->cols.items[call.col];
        call.col = plan_col_new(plan, old->name, old->type, true);
        VEC_PUSH(plan->arena, &early->agg.calls, call);
        VEC_PUSH(plan->arena, &early->out, call.col);
    }
    struct rel *made = rel_join(plan, JOIN_LEFT, rel_left(join), early);
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        VEC_PUSH(plan->arena, &made->join.left_keys, join->join.left_keys.items[i]);
        VEC_PUSH(plan->arena, &made->join.right_keys, expr_col(plan, early->out.items[i], -1));
    }
    return made;
}

/* Others may hold the aggregate: it becomes the projection itself. */
static void make_early(struct opt *o, struct rel *agg) {
    struct plan *plan = o->plan;
    opt_rely(o, rel_left(rel_input(agg)));
    struct rel *join = join_groups(plan, agg);
    const struct rel *early = rel_right(join);
    expr_list exprs = agg->agg.keys;
    agg_list calls = agg->agg.calls;
    rel_become(plan, agg, REL_PROJECT, join);
    for (i64 i = 0; i < exprs.count; i++) {
        VEC_PUSH(plan->arena, &agg->agg.keys, exprs.items[i]);
    }
    for (i64 i = 0; i < calls.count; i++) {
        u32 col = early->agg.calls.items[i].col;
        u8 kind = calls.items[i].agg;
        bool counts = kind == AGG_COUNT || kind == AGG_COUNT_STAR;
        VEC_PUSH(plan->arena, &agg->agg.keys,
                 counts ? with_default(plan, col, kind == AGG_COUNT_STAR)
                        : expr_col(plan, col, -1));
    }
}

FALLIBLE pass_early_agg(struct opt *o) {
    estimate_rel(o, o->plan->root);
    rel_all list = opt_all_of(o, REL_AGG);
    for (i64 i = 0; i < list.count; i++) {
        if (can_be_early(o, list.items[i])) {
            make_early(o, list.items[i]);
        }
    }
    return ERR_OK;
}
