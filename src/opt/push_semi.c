/* push_semi.c: semi joins that drop many rows go below the inner joins and groups they stand on.
 *
 * A semi join reads like a filter on the columns of its keys. If these all come from one input of
 * the join below, it may run on that input first; it pays when it keeps less than half of the rows.
 * If they are keys of groups, only groups that are asked for are made; if they part the rows of windows, only those
 * parts are.
 * Semi joins with conditions that can raise stay, because more rows would meet them. */
#include "opt/opt_int.h"

static const f64 WORTH = 0.5;

struct side_walk {
    const struct rel *join;
    u8 sides; /* bit 0, 1: the inputs that columns come from */
};

static void note_side(u32 col, void *arg) {
    struct side_walk *w = arg;
    for (i32 i = 0; i < 2; i++) {
        if (rel_has_out(w->join->inputs[i], col)) {
            w->sides |= (u8)(1 << i);
        }
    }
}

/* The inputs of the join below that a semi join needs. */
static u8 sides_of(const struct rel *semi, const struct rel *below) {
    struct side_walk w = {below, 0};
    for (i64 i = 0; i < semi->join.left_keys.count; i++) {
        expr_each_col(semi->join.left_keys.items[i], note_side, &w);
    }
    for (i64 i = 0; i < semi->join.conds.count; i++) {
        expr_each_col(semi->join.conds.items[i], note_side, &w);
    }
    return w.sides;
}

static bool is_worth(struct opt *o, struct rel *semi) {
    if (semi->kind != REL_JOIN || semi->join.kind != JOIN_SEMI || semi->join.left_keys.count == 0) {
        return false;
    }
    for (i64 i = 0; i < semi->join.conds.count; i++) {
        if (facts_can_raise(o, semi->join.conds.items[i])) {
            return false;
        }
    }
    for (i64 i = 0; i < semi->join.left_keys.count; i++) {
        if (facts_can_raise(o, semi->join.left_keys.items[i])) {
            return false;
        }
    }
    return (f64)semi->rows < WORTH * (f64)rel_left(semi)->rows;
}

/* Below a projection, or groups by what it asks for, the semi join says its keys otherwise; false: it cannot. */
static bool say_below(struct opt *o, struct rel *semi, const struct rel *below) {
    struct plan *plan = o->plan;
    const expr_list *made = rel_exprs(below);
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    expr_list keys = {0};
    for (i64 i = 0; i < made->count; i++) {
        map[below->out.items[i]] = made->items[i];
        if (expr_is_volatile(made->items[i])) {
            return false;
        }
    }
    for (i64 i = 0; i < semi->join.left_keys.count; i++) {
        struct expr *key = semi->join.left_keys.items[i];
        u32 col = 0;
        bool plain = expr_only_col(key, &col) && map[col];
        key = plain ? expr_map(plan->arena, key, map) : NULL;
        if (!plain || facts_can_raise(o, key)) {
            return false;
        }
        VEC_PUSH(plan->arena, &keys, key);
    }
    semi->join.left_keys = keys;
    return true;
}

/* Whether it asks for whole parts of a window. */
static bool asks_parts(const struct rel *semi, const struct rel *below) {
    bool parts = below->kind == REL_WINDOW && !rel_is_serial(below) && semi->join.conds.count == 0;
    for (i64 i = 0; i < semi->join.left_keys.count && parts; i++) {
        const struct expr *key = semi->join.left_keys.items[i];
        bool found = false;
        for (i64 k = 0; k < below->window.keys.count && !found; k++) {
            const struct expr *of = below->window.keys.items[k];
            found = key->kind == EXPR_COL && of->kind == EXPR_COL && key->col == of->col;
        }
        parts = found;
    }
    return parts;
}

/* Moves a semi join down as far as it goes; returns what stands in its place. */
static struct rel *sink(struct opt *o, struct rel *semi) {
    struct rel *below = rel_left(semi);
    if (below->kind == REL_FILTER || asks_parts(semi, below)) {
        rel_set_left(semi, rel_input(below));
        rel_set_input(below, sink(o, semi));
        return below;
    }
    bool makes = below->kind == REL_PROJECT || (below->kind == REL_AGG && below->agg.keys.count > 0);
    if (makes && semi->join.conds.count == 0 && say_below(o, semi, below)) {
        rel_set_left(semi, rel_input(below));
        rel_set_input(below, sink(o, semi));
        return below;
    }
    u8 sides = opt_is_inner(below) ? sides_of(semi, below) : 0;
    if (sides != 1 && sides != 2) {
        memset(&semi->out, 0, sizeof semi->out); /* a copy of the operator may hold the old list */
        for (i64 i = 0; i < below->out.count; i++) {
            VEC_PUSH(o->plan->arena, &semi->out, below->out.items[i]);
        }
        return semi;
    }
    rel_set_left(semi, below->inputs[sides - 1]);
    below->inputs[sides - 1] = sink(o, semi);
    return below;
}

static struct rel *walk(struct rel *rel, void *arg) {
    struct opt *o = arg;
    opt_change_inputs(o, rel, walk, o);
    bool stands_on_joins = rel->kind == REL_JOIN && rel_left(rel)->kind != REL_SCAN;
    return stands_on_joins && is_worth(o, rel) ? sink(o, rel) : rel;
}

FALLIBLE pass_push_semi(struct opt *o) {
    struct rel *old = o->plan->root;
    struct rel like = *old; /* it may be a semi join that moves */
    estimate_rel(o, old);
    o->visited.count = 0;
    o->plan->root = rel_with_out(o->plan, walk(old, o), &like);
    return ERR_OK;
}
