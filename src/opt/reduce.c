/* reduce.c: a large side of a join is cut down to the keys that a small side has.
 *
 * The right input of a join is built: expensive when it is large, and so is an aggregate over all
 * groups when the join asks for a few. If the other side has far fewer rows than the large one has
 * keys, it is shared, and the large one passes a semi join with its keys first: rows that match
 * nothing would not have been seen above anyway. The semi join goes below projections and filters,
 * below an aggregate, with those keys that are group keys, and below an inner join that drops fewer
 * rows. Inner joins of plain inputs need none of this, because their small side is the one that is
 * built.
 *
 * But an inner join's small side need not be the other input: a table anywhere below that, joined by
 * inner joins on columns equal to the key, says as well which keys there can be. Suppliers joined with
 * customers of the same nation are those of the nations that customers were joined with. So what is
 * built is cut down to the keys of the smallest of those, and so are, by what is built, the rows that
 * look it up. */
#include "opt/opt_int.h"

#ifdef WF_HARD
enum { ROWS_MIN = 4, EQUAL_ROWS_MIN = 4 }; /* tests have small tables */
#else
enum { ROWS_MIN = 20000, EQUAL_ROWS_MIN = 2000 }; /* of the large side, to be worth a thought */
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

struct key_part { /* some of a join's keys, and how many rows have them on the small side */
    i64 first, count;
    i64 small_rows;
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

/* What filters, semi and anti joins leave rows of. */
static const struct rel *unfiltered(const struct rel *rel) {
    while (rel->kind == REL_FILTER || (rel->kind == REL_JOIN && (rel->join.kind == JOIN_SEMI ||
                                                                 rel->join.kind == JOIN_ANTI))) {
        rel = rel->inputs[0];
    }
    return rel;
}

/* The input of an inner join that has all keys and that they would cut down more than the join
 * does; -1 when there is none. */
static i32 input_below(struct opt *o, const struct rel *at, i64 small_rows,
                       struct expr *const *keys, i64 count) {
    for (i32 side = 0; side < 2 && opt_is_inner(at); side++) {
        const struct rel *input = at->inputs[side];
        const struct rel *base = unfiltered(input);
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

/* The lowest place on the large side where the keys, those of the join from `first` on, can be
 * computed. */
static bool find_target(struct opt *o, struct rel *join, i32 side, struct key_part part,
                        struct target *out) {
    struct plan *plan = o->plan;
    struct expr **from = side == 0 ? join->join.left_keys.items : join->join.right_keys.items;
    *out = (struct target){.rel = join, .which = side, .count = part.count};
    out->keys = NEW_ARRAY(plan->arena, struct expr *, part.count + 1);
    out->which_key = NEW_ARRAY(plan->arena, i64, part.count + 1);
    for (i64 i = 0; i < part.count; i++) {
        out->keys[i] = from[part.first + i];
        out->which_key[i] = part.first + i;
    }
    for (;;) {
        struct rel *at = out->rel->inputs[out->which];
        i32 below = input_below(o, at, part.small_rows, out->keys, out->count);
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

static bool is_worth(struct opt *o, i64 small_rows, const struct target *target, i64 rows_min) {
    const struct rel *large = target->rel->inputs[target->which];
    i64 rows = large->rows;
    bool stays = unfiltered(large)->kind == REL_WORK; /* its index is kept from round to round */
    if (stays || unfiltered(large)->rows < rows_min || small_rows > rows / 4) {
        return false;
    }
    for (i64 i = 0; i < target->count; i++) {
        if (facts_can_raise(o, target->keys[i])) {
            return false;
        }
    }
    return share_of(o, small_rows, target->keys, target->count, rows) < WORTH;
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

/* Cuts one side of a join down to the keys of the other. */
static bool reduce_by_other(struct opt *o, struct rel *join) {
    struct target target;
    bool inner = opt_is_inner(join);
    for (i32 side = 1; side >= (inner ? 0 : 1); side--) {
        struct rel *small = other_side(join, side);
        struct key_part all = {0, join->join.left_keys.count, small->rows};
        if (small->kind == REL_SHARED || !find_target(o, join, side, all, &target)) {
            continue;
        }
        if ((!inner || target.below_agg) && is_worth(o, small->rows, &target, ROWS_MIN)) {
            reduce_side(o, join, side, &target);
            return true;
        }
    }
    return false;
}

/* Others with the same key */

struct place { /* an input of an operator, and a column of it */
    struct rel *rel;
    i32 which;
    u32 col;
    i64 rows; /* -1: none yet */
};

static bool is_null_safe(const struct rel *join, i64 key) {
    return key < join->join.null_safe.count && join->join.null_safe.items[key];
}

/* The smallest part below, joined by inner joins, that has a column equal to this one. */
static void find_smallest(struct place at, struct place *out) {
    struct rel *rel = at.rel->inputs[at.which];
    if (out->rows < 0 || rel->rows < out->rows) {
        *out = at;
        out->rows = rel->rows;
    }
    for (i32 side = 0; side < 2 && opt_is_inner(rel); side++) {
        if (rel_has_out(rel->inputs[side], at.col)) {
            find_smallest((struct place){rel, side, at.col, 0}, out);
        }
        const expr_list *mine = side == 0 ? &rel->join.left_keys : &rel->join.right_keys;
        const expr_list *theirs = side == 0 ? &rel->join.right_keys : &rel->join.left_keys;
        for (i64 i = 0; i < mine->count; i++) {
            const struct expr *a = mine->items[i];
            const struct expr *b = theirs->items[i];
            if (a->kind == EXPR_COL && a->col == at.col && b->kind == EXPR_COL &&
                type_eq(a->type, b->type) && !is_null_safe(rel, i)) {
                find_smallest((struct place){rel, 1 - side, b->col, 0}, out);
            }
        }
    }
}

/* One more use of what stands at a place; the column's number in it. */
static struct rel *second_use(struct plan *plan, struct place at, u32 *out_col) {
    struct rel *rel = at.rel->inputs[at.which];
    bool shared = rel->kind == REL_SHARED;
    struct rel *input = shared ? rel_input(rel) : rel;
    u32 col = at.col;
    for (i64 i = 0; shared && i < rel->out.count; i++) {
        col = rel->out.items[i] == at.col ? rel->shared.cols->items[i] : col;
    }
    struct rel *use = rel_shared(plan, input, &col, NULL, 1);
    use->shared.relation = shared ? rel->shared.relation : 0;
    *out_col = use->out.items[0];
    if (!shared) {
        opt_share(plan, at.rel, at.which);
    }
    return use;
}

/* Cuts what an inner join builds down to the keys that a small part of its left side has. */
static void reduce_by_equal(struct opt *o, struct rel *join) {
    struct plan *plan = o->plan;
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        const struct expr *left = join->join.left_keys.items[i];
        const struct expr *right = join->join.right_keys.items[i];
        struct place small = {.rows = -1};
        struct target target;
        if (left->kind != EXPR_COL || !type_eq(left->type, right->type) || is_null_safe(join, i)) {
            continue;
        }
        find_smallest((struct place){join, 0, left->col, 0}, &small);
        struct key_part part = {i, 1, small.rows};
        if (small.rel == join || !find_target(o, join, 1, part, &target) ||
            !is_worth(o, small.rows, &target, EQUAL_ROWS_MIN)) {
            continue;
        }
        u32 col;
        struct rel *use = second_use(plan, small, &col);
        struct rel *semi = rel_join(plan, JOIN_SEMI, target.rel->inputs[target.which], use);
        VEC_PUSH(plan->arena, &semi->join.left_keys, target.keys[0]);
        VEC_PUSH(plan->arena, &semi->join.right_keys, expr_col(plan, col, -1));
        target.rel->inputs[target.which] = semi;
        return;
    }
}

static void consider(struct opt *o, struct rel *join) {
    if (join->join.left_keys.count == 0 || join->join.kind == JOIN_FULL) {
        return;
    }
    if (!reduce_by_other(o, join) && opt_is_inner(join)) {
        reduce_by_equal(o, join);
    }
}

FALLIBLE pass_reduce(struct opt *o) {
    estimate_rel(o, o->plan->root);
    rel_all list = opt_all_of(o, REL_JOIN);
    for (i64 i = 0; i < list.count; i++) { /* from the top: joins below may have changed sides */
        consider(o, list.items[i]);
    }
    return ERR_OK;
}
