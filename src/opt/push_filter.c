/* push_filter.c: moves conditions to the lowest place where they may stand, and finds join keys.
 *
 * Conditions travel down as a list of conjuncts in the order they were written. One that cannot
 * raise goes as low as its columns allow. One that can raise never passes a join (it would be
 * evaluated for rows that the join drops) and never overtakes a conjunct written before it. An
 * equality between the two sides of a join becomes a pair of keys; as in PostgreSQL, a key is
 * evaluated for every row of its own side, so a raising one is taken only when nothing written
 * before it is still to be tested. Joins that are not inner let pass only what cannot change which
 * rows are extended by NULLs (struct rules). */
#include "opt/opt_int.h"

#include "codes/func.h"

static void split(struct arena *arena, expr_list *out, struct expr *expr) {
    if (expr->kind == EXPR_AND) {
        for (i32 i = 0; i < expr->arg_count; i++) {
            split(arena, out, expr->args[i]);
        }
    } else if (expr->kind != EXPR_CONST || expr->is_null || !expr->value.b8) {
        VEC_PUSH(arena, out, expr); /* TRUE says nothing and is dropped */
    }
}

static struct rel *push(struct opt *o, struct rel *rel, const expr_list *conds);
static struct rel *push_over(struct opt *o, struct rel *rel, const expr_list *conds);

static struct rel *with_filter(struct opt *o, struct rel *rel, const expr_list *conds) {
    if (conds->count == 0) {
        return rel;
    }
    struct rel *filter = rel_new(o->plan, REL_FILTER, rel, NULL);
    for (i64 i = 0; i < conds->count; i++) {
        VEC_PUSH(o->plan->arena, &filter->filter.conds, conds->items[i]);
    }
    return filter;
}

/* Which of two inputs an expression needs: bit 0 left, bit 1 right. */
struct sides {
    u8 *side; /* by column */
    u8 found;
};

static void note_side(u32 col, void *arg) {
    struct sides *s = arg;
    s->found |= s->side[col];
}

static u8 expr_sides(u8 *side, const struct expr *expr) {
    struct sides s = {side, 0};
    expr_each_col(expr, note_side, &s);
    return s.found;
}

static bool take_keys(struct opt *o, struct rel *join, u8 *side, struct expr *cond) {
    if (cond->kind != EXPR_CALL || cond->func != FUNC_EQ) {
        return false;
    }
    u8 a = expr_sides(side, cond->args[0]);
    u8 b = expr_sides(side, cond->args[1]);
    if (!((a == 1 && b == 2) || (a == 2 && b == 1))) {
        return false;
    }
    VEC_PUSH(o->plan->arena, &join->join.left_keys, cond->args[a == 1 ? 0 : 1]);
    VEC_PUSH(o->plan->arena, &join->join.right_keys, cond->args[a == 1 ? 1 : 0]);
    join->join.kind = join->join.kind == JOIN_CROSS ? JOIN_INNER : join->join.kind;
    return true;
}

/* Where the parts of a join let conditions go. Those of the join itself (`own`) and those above it
 * may sink to the left, to the right; a condition above that may not sink stays above, unless the
 * join is inner and takes it over. */
struct rules {
    b8 own_left, own_right;
    b8 above_left, above_right;
    b8 takes; /* conditions above become the join's own */
};

static struct rules rules_of(const struct rel *rel) {
    switch (rel->join.kind) {
    case JOIN_INNER:
    case JOIN_CROSS:
        return (struct rules){1, 1, 1, 1, 1};
    case JOIN_SEMI:
        return (struct rules){1, 1, 1, 0, 0};
    case JOIN_FULL:
        return (struct rules){0, 0, 0, 0, 0};
    default: /* LEFT, SINGLE, ANTI, MARK: rows of the left never depend on their own condition */
        return (struct rules){0, 1, 1, 0, 0};
    }
}

struct pushing {
    struct opt *o;
    struct rel *rel;
    struct rules rules;
    u8 *side;
    expr_list down[2];
    expr_list stay; /* above */
};

static void place_own(struct pushing *p, struct expr *cond) {
    struct arena *arena = p->o->plan->arena;
    bool raises = facts_can_raise(p->o, cond);
    u8 needs = expr_sides(p->side, cond);
    bool sinks = !raises && ((needs == 2 && p->rules.own_right) ||
                             ((needs == 1 || needs == 0) && p->rules.own_left));
    if (sinks) {
        VEC_PUSH(arena, &p->down[needs == 2 ? 1 : 0], cond);
    } else if ((raises && p->rel->join.conds.count > 0) ||
               !take_keys(p->o, p->rel, p->side, cond)) {
        VEC_PUSH(arena, &p->rel->join.conds, cond);
    }
}

static void place_above(struct pushing *p, struct expr *cond) {
    struct arena *arena = p->o->plan->arena;
    u8 needs = expr_sides(p->side, cond);
    bool raises = facts_can_raise(p->o, cond);
    if (p->rules.takes) {
        place_own(p, cond);
    } else if (!raises && needs < 2 && p->rules.above_left) {
        VEC_PUSH(arena, &p->down[0], cond);
    } else {
        VEC_PUSH(arena, &p->stay, cond);
    }
}

static struct rel *push_join(struct opt *o, struct rel *rel, const expr_list *above) {
    struct arena *arena = o->plan->arena;
    struct pushing p = {.o = o, .rel = rel, .rules = rules_of(rel)};
    p.side = NEW_ARRAY(arena, u8, o->plan->cols.count + 1);
    for (i32 k = 0; k < 2; k++) {
        for (i64 i = 0; i < rel->inputs[k]->out.count; i++) {
            p.side[rel->inputs[k]->out.items[i]] = (u8)(1 << k);
        }
    }
    if (rel->join.kind == JOIN_MARK) {
        p.side[rel->join.mark_col] = 2; /* not the left's: conditions on it stay above */
    }
    expr_list own = {0};
    for (i64 i = 0; i < rel->join.conds.count; i++) {
        split(arena, &own, rel->join.conds.items[i]);
    }
    rel->join.conds.count = 0;
    for (i64 i = 0; i < own.count; i++) {
        place_own(&p, own.items[i]);
    }
    for (i64 i = 0; i < above->count; i++) {
        place_above(&p, above->items[i]);
    }
    while (rel->join.null_safe.count > 0 && rel->join.null_safe.count < rel->join.left_keys.count) {
        VEC_PUSH(arena, &rel->join.null_safe, (b8)0);
    }
    rel_set_left(rel, push(o, rel_left(rel), &p.down[0]));
    rel_set_right(rel, push(o, rel_right(rel), &p.down[1]));
    return with_filter(o, rel, &p.stay);
}

/* Whether computing the columns a condition needs below the projection costs next to nothing. */
struct cheapness {
    struct expr *const *map;
    bool cheap;
};

static void note_cheap(u32 col, void *arg) {
    struct cheapness *c = arg;
    const struct expr *expr = c->map[col];
    bool plain = !expr || expr->kind == EXPR_COL || expr->kind == EXPR_CONST;
    bool small = expr && !plain && expr->arg_count <= 2 && !expr_can_raise(expr);
    for (i32 i = 0; small && i < expr->arg_count; i++) {
        small = expr->args[i]->arg_count == 0;
    }
    c->cheap = c->cheap && (plain || small);
}

/* Conjuncts that may go below an operator whose output columns are `map` of its input's. */
static struct rel *push_mapped(struct opt *o, struct rel *rel, const expr_list *conds,
                               struct expr *const *map, const u8 *blocked) {
    struct arena *arena = o->plan->arena;
    expr_list stay = {0};
    expr_list down = {0};
    for (i64 i = 0; i < conds->count; i++) {
        struct expr *cond = conds->items[i];
        struct cheapness c = {map, true};
        expr_each_col(cond, note_cheap, &c);
        struct sides s = {(u8 *)blocked, 0};
        if (blocked) {
            expr_each_col(cond, note_side, &s);
        }
        bool raises = facts_can_raise(o, cond);
        bool free = c.cheap && s.found == 0 && !(raises && stay.count > 0);
        struct expr *moved = free ? expr_map(arena, cond, map) : cond;
        VEC_PUSH(arena, free ? &down : &stay, moved);
    }
    rel_set_input(rel, push(o, rel_input(rel), &down));
    return with_filter(o, rel, &stay);
}

static struct rel *push_project(struct opt *o, struct rel *rel, const expr_list *conds) {
    struct expr **map = NEW_ARRAY(o->plan->arena, struct expr *, o->plan->cols.count + 1);
    for (i64 i = 0; i < rel->project.exprs.count; i++) {
        map[rel->out.items[i]] = rel->project.exprs.items[i];
    }
    return push_mapped(o, rel, conds, map, NULL);
}

/* Conditions on group keys hold for all rows of a group or for none. Without keys there is always
 * one group, which a condition below could not remove. */
static struct rel *push_agg(struct opt *o, struct rel *rel, const expr_list *conds) {
    struct expr **map = NEW_ARRAY(o->plan->arena, struct expr *, o->plan->cols.count + 1);
    u8 *blocked = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    for (i64 i = 0; i < rel->out.count; i++) {
        bool key = i < rel->agg.keys.count;
        map[rel->out.items[i]] = key ? rel->agg.keys.items[i] : NULL;
        blocked[rel->out.items[i]] = !key;
    }
    if (rel->agg.keys.count == 0) {
        return push_over(o, rel, conds);
    }
    return push_mapped(o, rel, conds, map, blocked);
}

/* The same condition on all sides of a union: each row meets it once, as before. */
static struct rel *push_union(struct opt *o, struct rel *rel, const expr_list *conds) {
    struct plan *plan = o->plan;
    for (i32 side = 0; side < rel->input_count; side++) {
        const u32 *cols = rel->arms.cols[side].items;
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        expr_list down = {0};
        for (i64 i = 0; i < rel->out.count; i++) {
            map[rel->out.items[i]] = expr_col(plan, cols[i], -1);
        }
        for (i64 i = 0; i < conds->count; i++) {
            VEC_PUSH(plan->arena, &down, expr_map(plan->arena, conds->items[i], map));
        }
        rel->inputs[side] = push(o, rel->inputs[side], &down);
    }
    return rel;
}

/* Conditions on a window's partition columns keep or drop whole partitions. */
static struct rel *push_window(struct opt *o, struct rel *rel, const expr_list *conds) {
    struct arena *arena = o->plan->arena;
    u8 *blocked = NEW_ARRAY(arena, u8, o->plan->cols.count + 1);
    memset(blocked, 1, (size_t)o->plan->cols.count);
    for (i64 i = 0; i < rel->window.keys.count; i++) {
        if (rel->window.keys.items[i]->kind == EXPR_COL) {
            blocked[rel->window.keys.items[i]->col] = 0;
        }
    }
    expr_list down = {0};
    expr_list stay = {0};
    for (i64 i = 0; i < conds->count; i++) {
        struct expr *cond = conds->items[i];
        bool free = expr_sides(blocked, cond) == 0 && !facts_can_raise(o, cond);
        VEC_PUSH(arena, free ? &down : &stay, cond);
    }
    rel_set_input(rel, push(o, rel_input(rel), &down));
    return with_filter(o, rel, &stay);
}

static struct rel *push_none(struct rel *rel, void *arg) {
    expr_list none = {0};
    return push(arg, rel, &none);
}

/* Conditions that may not pass stay above; what is below has its own. A shared plan is pushed into
 * once, and conditions of one user stay with it. */
static struct rel *push_over(struct opt *o, struct rel *rel, const expr_list *conds) {
    opt_change_inputs(o, rel, push_none, o);
    return with_filter(o, rel, conds);
}

static struct rel *push(struct opt *o, struct rel *rel, const expr_list *conds) {
    expr_list list = {0};
    bool passes = rel->kind == REL_PROJECT || rel->kind == REL_AGG || rel->kind == REL_WINDOW ||
                  rel->kind == REL_UNION;
    if (conds->count == 0 && passes) { /* there may be thousands, of as many columns */
        return push_over(o, rel, conds);
    }
    switch (rel->kind) {
    case REL_FILTER:
        for (i64 i = 0; i < rel->filter.conds.count; i++) {
            split(o->plan->arena, &list, rel->filter.conds.items[i]);
        }
        for (i64 i = 0; i < conds->count; i++) {
            VEC_PUSH(o->plan->arena, &list, conds->items[i]);
        }
        return push(o, rel_input(rel), &list);
    case REL_PROJECT:
        return push_project(o, rel, conds);
    case REL_AGG:
        return push_agg(o, rel, conds);
    case REL_JOIN:
        return push_join(o, rel, conds);
    case REL_UNION:
        return push_union(o, rel, conds);
    case REL_WINDOW:
        return push_window(o, rel, conds);
    case REL_SORT:
        rel_set_input(rel, push(o, rel_input(rel), conds));
        return rel;
    default:
        return push_over(o, rel, conds);
    }
}

/* Front ends may list an input's column twice; one is enough. */
struct repeats {
    const struct rel *root;
    u32 *stamps;
    u32 stamp;
};

static void drop_repeats(struct rel *rel, void *arg) {
    struct repeats *r = arg;
    if (!rel_passes(rel) || rel == r->root) { /* the root's list is the answer's, as written */
        return;
    }
    i64 kept = 0;
    r->stamp++;
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 col = rel->out.items[i];
        if (r->stamps[col] != r->stamp) {
            r->stamps[col] = r->stamp;
            rel->out.items[kept++] = col;
        }
    }
    rel->out.count = kept;
}

FALLIBLE pass_push_filter(struct opt *o) {
    struct rel *old = o->plan->root;
    struct repeats r = {old, NEW_ARRAY(o->plan->arena, u32, o->plan->cols.count + 1), 0};
    rel_each(o->plan->arena, old, drop_repeats, &r);
    expr_list none = {0};
    o->visited.count = 0;
    struct rel *root = push(o, old, &none);
    o->plan->root = rel_with_out(o->plan, root, old);
    return ERR_OK;
}
