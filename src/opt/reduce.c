/* reduce.c: a large side of a join is cut down to the keys that a small side has.
 *
 * The right input of a join is built: expensive when it is large, and so is an aggregate over all
 * groups when the join asks for a few. If the other side has far fewer rows than the large one has
 * keys, it is shared, and the large one passes a semi join with its keys first: rows that match
 * nothing would not have been seen above anyway. The semi join goes below projections and filters,
 * below an aggregate, with those keys that are group keys, and below an inner join that drops fewer
 * rows. Inner joins of plain inputs need none of this, because their small side is the one that is
 * built. */
#include "opt/opt_int.h"

#ifdef WF_HARD
enum { ROWS_MIN = 4 }; /* tests have small tables */
#else
enum { ROWS_MIN = 20000 }; /* of the large side, to be worth a thought */
#endif
static const f64 WORTH = 0.25; /* share of the keys that the small side has */

struct target {
    struct rel *rel; /* the semi join goes onto its input `which` */
    i32 which;
    struct expr **keys; /* of the large side, over that input's columns */
    i64 *which_key;     /* their numbers among the join's */
    i64 count;
    b8 below_agg;
};

static struct rel *other_side(const struct rel *join, i32 side) {
    return side == 0 ? rel_right(join) : rel_left(join);
}

/* Keys over a projection's or aggregate's columns, over its input's. Of an aggregate those that are
 * group keys are enough; false when there are none. */
static bool keys_below(struct plan *plan, const struct rel *rel, struct target *target) {
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    struct expr **keys = NEW_ARRAY(plan->arena, struct expr *, target->count + 1);
    i64 kept = 0;
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; i < exprs->count; i++) {
        map[rel->out.items[i]] = exprs->items[i];
    }
    for (i64 i = 0; i < target->count; i++) {
        bool is_below = target->keys[i]->kind == EXPR_COL && map[target->keys[i]->col];
        if (is_below) {
            keys[kept] = map[target->keys[i]->col];
            target->which_key[kept++] = target->which_key[i];
        } else if (rel->kind != REL_AGG) {
            return false;
        }
    }
    if (kept == 0) {
        return false;
    }
    target->keys = keys;
    target->count = kept;
    return true;
}

struct among {
    const struct rel *rel;
    bool all;
};

static void note_among(u32 col, void *arg) {
    struct among *among = arg;
    among->all = among->all && rel_has_out(among->rel, col);
}

/* Share of the rows that have a key of the small side. */
static f64 share_of(struct opt *o, i64 small_rows, struct expr *const *keys, i64 count, i64 rows) {
    f64 share = 1.0;
    for (i64 i = 0; i < count; i++) {
        i64 values = estimate_distinct(o, keys[i], rows);
        share = MIN_OF(share, (f64)small_rows / (f64)MAX_OF(values, 1));
    }
    return share;
}

/* The input of an inner join that has all keys and that they would cut down more than the join
 * does; -1 when there is none. */
static i32 input_below(struct opt *o, const struct rel *at, i64 small_rows,
                       struct expr *const *keys, i64 count) {
    for (i32 side = 0; side < 2 && opt_is_inner(at); side++) {
        const struct rel *input = at->inputs[side];
        const struct rel *base = input->kind == REL_FILTER ? rel_input(input) : input;
        struct among among = {input, base->kind == REL_SCAN || opt_is_inner(base)};
        for (i64 i = 0; i < count; i++) {
            expr_each_col(keys[i], note_among, &among);
        }
        f64 kept = (f64)at->rows / (f64)MAX_OF(input->rows, 1);
        if (among.all && share_of(o, small_rows, keys, count, input->rows) < kept) {
            return side;
        }
    }
    return -1;
}

/* The lowest place on the large side where all keys can be computed. */
static bool find_target(struct opt *o, struct rel *join, i32 side, struct target *out) {
    struct plan *plan = o->plan;
    i64 count = join->join.left_keys.count;
    struct expr **from = side == 0 ? join->join.left_keys.items : join->join.right_keys.items;
    *out = (struct target){.rel = join, .which = side};
    out->keys = NEW_ARRAY(plan->arena, struct expr *, count + 1);
    out->which_key = NEW_ARRAY(plan->arena, i64, count + 1);
    out->count = count;
    for (i64 i = 0; i < count; i++) {
        out->keys[i] = from[i];
        out->which_key[i] = i;
    }
    for (;;) {
        struct rel *at = out->rel->inputs[out->which];
        i32 below = input_below(o, at, other_side(join, side)->rows, out->keys, out->count);
        if (below >= 0) {
            out->rel = at;
            out->which = below;
            continue;
        }
        if (at->kind == REL_PROJECT || (at->kind == REL_AGG && at->agg.keys.count > 0)) {
            if (!keys_below(plan, at, out)) {
                return at->kind != REL_AGG;
            }
            out->below_agg = out->below_agg || at->kind == REL_AGG;
        } else if (at->kind != REL_FILTER) {
            return at->kind != REL_SHARED && at->kind != REL_LIMIT;
        }
        if (at->kind == REL_FILTER && rel_input(at)->kind == REL_SCAN) {
            return true; /* conditions on the table itself come first */
        }
        out->rel = at;
        out->which = 0;
    }
}

static bool is_worth(struct opt *o, const struct rel *join, i32 side, const struct target *target) {
    const struct rel *small = other_side(join, side);
    i64 rows = target->rel->inputs[target->which]->rows;
    if (rows < ROWS_MIN || small->rows > rows / 4) {
        return false;
    }
    for (i64 i = 0; i < target->count; i++) {
        if (facts_can_raise(o, target->keys[i])) {
            return false;
        }
    }
    return share_of(o, small->rows, target->keys, target->count, rows) < WORTH;
}

static void reduce_side(struct opt *o, struct rel *join, i32 side, const struct target *target) {
    struct plan *plan = o->plan;
    struct rel *small = other_side(join, side);
    struct expr **keys = side == 0 ? join->join.right_keys.items : join->join.left_keys.items;
    struct rel *use = rel_shared(plan, small, small->out.items, NULL, small->out.count);
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < small->out.count; i++) {
        map[small->out.items[i]] = expr_col(plan, use->out.items[i], -1);
    }
    struct rel *semi = rel_join(plan, JOIN_SEMI, target->rel->inputs[target->which], use);
    for (i64 i = 0; i < target->count; i++) {
        i64 key = target->which_key[i];
        VEC_PUSH(plan->arena, &semi->join.left_keys, target->keys[i]);
        VEC_PUSH(plan->arena, &semi->join.right_keys, expr_map(plan->arena, keys[key], map));
        if (join->join.null_safe.count > 0) {
            VEC_PUSH(plan->arena, &semi->join.null_safe, join->join.null_safe.items[key]);
        }
    }
    target->rel->inputs[target->which] = semi;
    opt_share(plan, join, 1 - side);
}

static void consider(struct opt *o, struct rel *join) {
    struct target target;
    bool inner = opt_is_inner(join);
    if (join->join.left_keys.count == 0 || join->join.kind == JOIN_FULL) {
        return;
    }
    for (i32 side = 1; side >= (inner ? 0 : 1); side--) {
        if (other_side(join, side)->kind == REL_SHARED || !find_target(o, join, side, &target)) {
            continue;
        }
        if ((!inner || target.below_agg) && is_worth(o, join, side, &target)) {
            reduce_side(o, join, side, &target);
            return;
        }
    }
}

struct join_list {
    struct arena *arena;
    VEC(struct rel *) items;
};

static void note_join(struct rel *rel, void *arg) {
    struct join_list *list = arg;
    if (rel->kind == REL_JOIN) {
        VEC_PUSH(list->arena, &list->items, rel);
    }
}

FALLIBLE pass_reduce(struct opt *o) {
    struct join_list list = {.arena = o->plan->arena};
    estimate_rel(o, o->plan->root);
    rel_each(o->plan->arena, o->plan->root, note_join, &list);
    for (i64 i = 0; i < list.items.count;
         i++) { /* from the top: joins below may have changed sides */
        consider(o, list.items.items[i]);
    }
    return ERR_OK;
}
