/* extremes.c: EXISTS by a comparison asks for the least and the greatest value of a key.
 *
 * `exists (select from r where r.k = l.k and r.b <> l.a)` tries the rows of r with the same k one
 * after the other. A row with another b is there exactly if the least or the greatest b of the key
 * is another one, and a row with a smaller b exactly if the least one is smaller. So the right side
 * of such a semi, anti or mark join is grouped by its keys: the join finds one row instead of a
 * run, and a row a key is all that is kept of the right side. min and max leave NULLs out, as the
 * comparison does; a group of NULLs alone has NULL, and a comparison with that is no match either.
 * Without keys there is one group, where every left row had to look at every right one.
 *
 * Other conditions may name columns of the left side alone. Nothing that the right side computes
 * anew may raise, as groups that no left row asks for are computed too. */
#include "opt/opt_int.h"

#include <math.h>

#include "codes/func.h"

#ifndef WF_HARD
static const f64 WORTH = 4.0;         /* rows a group; with fewer, groups cost more than runs */
static const f64 WORTH_IN_ORDER = 1.3; /* the same where the key comes in order */
#endif

/* Which of a key's values a comparison with a left value needs. */
enum extreme { LEAST = 1, GREATEST = 2 };

struct question {
    i64 cond; /* its number among the join's conditions */
    i32 side; /* which operand is the right side's */
    u8 needs; /* enum extreme */
};

struct origin {
    const struct rel *join;
    u8 sides; /* bit 0, 1: the inputs that columns come from */
};

static void note_origin(u32 col, void *arg) {
    struct origin *origin = arg;
    origin->sides |= (u8)(rel_has_out(rel_right(origin->join), col) ? 2 : 1);
}

static u8 origin_of(const struct rel *join, const struct expr *expr) {
    struct origin origin = {join, 0};
    expr_each_col(expr, note_origin, &origin);
    return origin.sides;
}

/* `side`: which operand is the right side's. */
static u8 needed(u16 func, i32 side) {
    switch (func) {
    case FUNC_NE:
        return LEAST | GREATEST;
    case FUNC_LT:
    case FUNC_LE:
        return side == 1 ? GREATEST : LEAST;
    case FUNC_GT:
    case FUNC_GE:
        return side == 1 ? LEAST : GREATEST;
    default:
        return 0;
    }
}

/* A word holds the values, and they are compared as it is. */
static bool is_simple(struct type type) {
#ifdef WF_HARD
    return type.id != TYPE_BOOLEAN;
#else
    u8 kind = type_kind(type);
    return kind == KIND_I32 || kind == KIND_I64 || kind == KIND_F32 || kind == KIND_F64;
#endif
}

static bool find_question(const struct opt *o, const struct rel *join, struct question *out) {
    i64 found = 0;
    for (i64 i = 0; i < join->join.conds.count; i++) {
        const struct expr *cond = join->join.conds.items[i];
        if (!(origin_of(join, cond) & 2)) {
            continue;
        }
        if (cond->kind != EXPR_CALL || cond->arg_count != 2 || expr_is_volatile(cond) ||
            facts_can_raise(o, cond)) {
            return false;
        }
        i32 side = origin_of(join, cond->args[1]) == 2 ? 1 : 0;
        *out = (struct question){i, side, needed(cond->func, side)};
        if (!out->needs || origin_of(join, cond->args[side]) != 2 ||
            (origin_of(join, cond->args[1 - side]) & 2) || !is_simple(cond->args[side]->type)) {
            return false;
        }
        found++;
    }
    return found == 1;
}

#ifndef WF_HARD
/* How many of `values` keys are met by the rows that a filter leaves of a table. */
static f64 keys_met(f64 values, f64 rows, f64 table_rows) {
    f64 missed = MAX_OF(1.0 - rows / MAX_OF(table_rows, 1.0), 0.0);
    return values * (1.0 - pow(missed, table_rows / MAX_OF(values, 1.0)));
}
#endif

/* Groups of a key that comes in order cost little; others must be fewer than rows by enough. */
static bool is_worth(const struct opt *o, const struct rel *join) {
#ifdef WF_HARD
    UNUSED(o);
    UNUSED(join);
    return true; /* tests have small tables */
#else
    const expr_list *keys = &join->join.right_keys;
    i64 rows = rel_right(join)->rows;
    f64 groups = 1.0;
    bool in_order = keys->count == 1 && opt_is_sorted(rel_right(join), keys->items[0]);
    for (i64 i = 0; i < keys->count; i++) {
        groups *= (f64)estimate_distinct(o, keys->items[i], rows);
    }
    groups = keys_met(groups, (f64)rows, (f64)estimate_base(rel_right(join)));
    return groups * (in_order ? WORTH_IN_ORDER : WORTH) <= (f64)rows;
#endif
}

struct search {
    bool works; /* on rows of a recursion */
};

static void look_for_work(struct rel *rel, void *arg) {
    struct search *s = arg;
    s->works = s->works || rel->kind == REL_WORK;
}

static bool can_ask_extremes(struct opt *o, const struct rel *join, struct question *out) {
    bool asks = join->kind == REL_JOIN &&
                (join->join.kind == JOIN_SEMI || join->join.kind == JOIN_ANTI ||
                 join->join.kind == JOIN_MARK);
    if (!asks || join->join.lazy || join->join.conds.count == 0 ||
        !find_question(o, join, out) || !is_worth(o, join)) {
        return false;
    }
    struct search s = {false};
    rel_each(o->plan->arena, rel_right(join), look_for_work, &s);
    return !s.works;
}

/* min or max of an operand, as a column of the groups. */
static struct expr *add_extreme(struct plan *plan, struct rel *groups, u8 agg, struct expr *of) {
    const char *arg = of->kind == EXPR_COL ? plan->cols.items[of->col].name : "...";
    struct agg_call call = {.agg = agg, .arg = of, .position = -1};
    const char *name = arena_printf(plan->arena, "%s(%s)", agg_names[agg], arg);
    call.col = plan_col_new(plan, name, of->type, true);
    VEC_PUSH(plan->arena, &groups->agg.calls, call);
    VEC_PUSH(plan->arena, &groups->out, call.col);
    return expr_col(plan, call.col, -1);
}

static struct expr *compared_with(struct plan *plan, const struct expr *cond, i32 side,
                                  struct expr *extreme) {
    struct expr *other = cond->args[1 - side];
    return expr_call(plan->arena, cond->func, cond->type, cond->position, 2,
                     side == 0 ? extreme : other, side == 0 ? other : extreme);
}

static void ask_extremes(struct plan *plan, struct rel *join, struct question q) {
    const struct expr *cond = join->join.conds.items[q.cond];
    struct expr *of = cond->args[q.side];
    struct rel *groups = rel_new(plan, REL_AGG, rel_right(join), NULL);
    expr_list keys = {0};
    for (i64 i = 0; i < join->join.right_keys.count; i++) {
        struct expr *key = join->join.right_keys.items[i];
        const char *name = key->kind == EXPR_COL ? plan->cols.items[key->col].name : "key";
        VEC_PUSH(plan->arena, &groups->agg.keys, key);
        VEC_PUSH(plan->arena, &groups->out, plan_col_new(plan, name, key->type, true));
        VEC_PUSH(plan->arena, &keys, expr_col(plan, groups->out.items[i], -1));
    }
    struct expr *tests[2];
    i32 count = 0;
    if (q.needs & LEAST) {
        tests[count++] =
            compared_with(plan, cond, q.side, add_extreme(plan, groups, AGG_MIN, of));
    }
    if (q.needs & GREATEST) {
        tests[count++] =
            compared_with(plan, cond, q.side, add_extreme(plan, groups, AGG_MAX, of));
    }
    struct expr *test = tests[0];
    if (count == 2) {
        test = expr_new(plan->arena, EXPR_OR, cond->type, cond->position);
        test->arg_count = 2;
        test->args = NEW_ARRAY(plan->arena, struct expr *, 2);
        memcpy(test->args, tests, sizeof tests);
    }
    expr_list conds = {0}; /* a copy of the operator may hold the old lists */
    for (i64 i = 0; i < join->join.conds.count; i++) {
        VEC_PUSH(plan->arena, &conds, i == q.cond ? test : join->join.conds.items[i]);
    }
    join->join.conds = conds;
    join->join.right_keys = keys;
    rel_set_right(join, groups);
}

static void visit(struct rel *rel, void *arg) {
    struct opt *o = arg;
    struct question q;
    if (can_ask_extremes(o, rel, &q)) {
        ask_extremes(o->plan, rel, q);
    }
}

FALLIBLE pass_extremes(struct opt *o) {
    estimate_rel(o, o->plan->root);
    rel_each(o->plan->arena, o->plan->root, visit, o);
    extremes_merge(o);
    return ERR_OK;
}
