/* to_semi.c: joins with a set of keys that are only asked whether there is such a key.
 *
 *     join on o = k                      join semi on o = l_orderkey
 *       …                                  …
 *       aggregate by l_orderkey as k       (the rows themselves)
 *         …
 *
 * Where a side of an inner join is made distinct by exactly the columns that it is joined on, every row of the other
 * side finds it once or not at all, and its columns are those of the other side. A semi join says the same, and nobody
 * makes anything distinct. Predicates of LogiQL that hide columns are such sets; DISTINCT in FROM is one, too.
 *
 * Groups by what they are joined on are found once or not at all, too: where nobody reads what they are of, that is a
 * semi join as well.
 *
 * Only where what is looked up comes from one input of the other side. A set that joins several inputs may be all
 * that connects them, or close a cycle of them: that is for the order of joins to see.
 *
 * Rows of a recursion are left alone: what a round finds new is read once, and indexes of the rest grow.
 * See decision 0042. */
#include "opt/opt_int.h"

struct set {
    const struct rel *agg;
    i64 *at; /* by column of the side: which key of the aggregate it is, -1 = the column is another one */
};

/* The aggregate without calls that a side is, below projections of columns. */
static bool find_set(struct opt *o, const struct rel *side, struct set *out) {
    i64 cols = o->plan->cols.count;
    u32 *now = NEW_ARRAY(o->plan->arena, u32, side->out.count + 1);
    const struct rel *rel = side;
    for (i64 i = 0; i < side->out.count; i++) {
        now[i] = side->out.items[i];
    }
    for (; rel->kind == REL_PROJECT; rel = rel_input(rel)) {
        for (i64 i = 0; i < side->out.count; i++) {
            i64 k = 0;
            while (rel->out.items[k] != now[i]) {
                k++;
            }
            if (rel->project.exprs.items[k]->kind != EXPR_COL) {
                return false;
            }
            now[i] = rel->project.exprs.items[k]->col;
        }
    }
    if (rel->kind != REL_AGG || rel->agg.calls.count > 0 || rel->agg.keys.count == 0) {
        return false;
    }
    out->agg = rel;
    out->at = NEW_ARRAY(o->plan->arena, i64, cols + 1);
    memset(out->at, 0xff, sizeof(i64) * (size_t)(cols + 1));
    for (i64 i = 0; i < side->out.count; i++) {
        for (i64 k = 0; k < rel->agg.keys.count; k++) {
            if (rel->out.items[k] == now[i]) {
                out->at[side->out.items[i]] = k;
            }
        }
    }
    return true;
}

static const expr_list *keys_of(const struct rel *join, i32 side) {
    return side == 0 ? &join->join.left_keys : &join->join.right_keys;
}

/* The input of a group of inner joins that has the column. */
static const struct rel *input_with(const struct rel *rel, u32 col) {
    while (opt_is_inner(rel) || rel->kind == REL_FILTER) {
        bool left = rel->kind == REL_FILTER || rel_has_out(rel_left(rel), col);
        rel = rel->inputs[left ? 0 : 1];
    }
    return rel;
}

/* Whether all that is looked up in `side` comes from one input of the other one. */
static bool asks_one(const struct rel *join, i32 side) {
    const struct rel *first = NULL;
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        const struct expr *key = keys_of(join, 1 - side)->items[i];
        const struct rel *from =
            key->kind == EXPR_COL ? input_with(join->inputs[1 - side], key->col) : NULL;
        if (!from || (first && from != first)) {
            return false;
        }
        first = from;
    }
    return true;
}

/* Whether the join is on columns, on those of the set on all it has. */
static bool covers(struct opt *o, const struct rel *join, i32 side, const struct set *set) {
    b8 *met = NEW_ARRAY(o->plan->arena, b8, set->agg->agg.keys.count + 1);
    i64 left = set->agg->agg.keys.count;
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        const struct expr *key = keys_of(join, side)->items[i];
        const struct expr *other = keys_of(join, 1 - side)->items[i];
        bool null_safe = i < join->join.null_safe.count && join->join.null_safe.items[i];
        if (key->kind != EXPR_COL || other->kind != EXPR_COL || set->at[key->col] < 0 || null_safe ||
            !type_eq(key->type, other->type) || !opt_equal_is_same(key->type) ||
            rel_has_out(o->plan->root, key->col)) {
            return false;
        }
        left -= !met[set->at[key->col]];
        met[set->at[key->col]] = 1;
    }
    return left == 0;
}

/* --- groups --- */

/* What a column of a side is below projections of columns, and filters; NO_COL: computed. */
static u32 col_below(const struct rel *rel, u32 col) {
    for (; rel->kind == REL_PROJECT || rel->kind == REL_FILTER; rel = rel_input(rel)) {
        for (i64 k = 0; rel->kind == REL_PROJECT && k < rel->out.count; k++) {
            const struct expr *expr = rel->project.exprs.items[k];
            if (rel->out.items[k] == col && expr->kind != EXPR_COL) {
                return NO_COL;
            }
            if (rel->out.items[k] == col) {
                col = expr->col;
                break;
            }
        }
    }
    return col;
}

static const struct rel *groups_below(const struct rel *rel) {
    while (rel->kind == REL_PROJECT || rel->kind == REL_FILTER) {
        rel = rel_input(rel);
    }
    return rel->kind == REL_AGG && rel->agg.keys.count > 0 && rel->agg.calls.count > 0 ? rel : NULL;
}

static i64 key_number(const struct rel *agg, u32 col) {
    i64 at = 0;
    while (at < agg->agg.keys.count && agg->out.items[at] != col) {
        at++;
    }
    return at < agg->agg.keys.count ? at : -1;
}

/* Whether the join is on the keys of groups, and nobody reads more of them. */
static bool asks_groups(struct opt *o, const struct rel *join, i32 side, const struct rel *agg) {
    const struct rel *rel = join->inputs[side];
    b8 *met = NEW_ARRAY(o->plan->arena, b8, agg->agg.keys.count + 1);
    i64 left = agg->agg.keys.count;
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        const struct expr *key = keys_of(join, side)->items[i];
        const struct expr *other = keys_of(join, 1 - side)->items[i];
        bool null_safe = i < join->join.null_safe.count && join->join.null_safe.items[i];
        i64 at = key->kind == EXPR_COL ? key_number(agg, col_below(rel, key->col)) : -1;
        if (at < 0 || met[at] || null_safe || other->kind != EXPR_COL ||
            !type_eq(key->type, other->type) || !opt_equal_is_same(key->type)) {
            return false;
        }
        met[at] = 1;
        left--;
    }
    for (i64 i = 0; left == 0 && i < rel->out.count; i++) {
        u32 col = rel->out.items[i];
        bool is_key = key_number(agg, col_below(rel, col)) >= 0;
        if (rel_has_out(o->plan->root, col) || (!is_key && opt_is_read(o, join, col))) {
            return false;
        }
    }
    return left == 0;
}

/* Groups that are only asked whether they are there: `g(o; a, z), a != z` where nobody else reads a and z. */
static bool change_groups(struct opt *o, struct rel *join, i32 side) {
    struct plan *plan = o->plan;
    struct rel *other = join->inputs[1 - side], *rel = join->inputs[side];
    const struct rel *agg = groups_below(rel);
    if (!agg || !asks_one(join, side) || !asks_groups(o, join, side, agg) ||
        opt_reads_rounds(o, join)) {
        return false;
    }
    i64 count = plan->cols.count;
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, count + 1);
    struct rel *semi = rel_join(plan, JOIN_SEMI, other, rel);
    semi->join.left_keys = *keys_of(join, 1 - side);
    semi->join.right_keys = *keys_of(join, side);
    semi->rows = join->rows;
    for (i64 i = 0; i < semi->join.left_keys.count; i++) {
        map[semi->join.right_keys.items[i]->col] = semi->join.left_keys.items[i];
    }
    *join = *semi;
    opt_rename_above(o, join, map, count);
    for (i64 i = 0; i < rel->out.count; i++) {
        opt_drop_above(o, join, rel->out.items[i]);
    }
    return true;
}

static bool change(struct opt *o, struct rel *join, i32 side) {
    struct plan *plan = o->plan;
    struct set set;
    struct rel *other = join->inputs[1 - side];
    if (!asks_one(join, side) || !find_set(o, join->inputs[side], &set) ||
        !covers(o, join, side, &set) || opt_reads_rounds(o, join)) {
        return false;
    }
    i64 count = plan->cols.count;
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, count + 1);
    expr_list left = {0}, right = {0};
    for (i64 i = 0; i < join->join.left_keys.count; i++) {
        struct expr *key = keys_of(join, side)->items[i];
        struct expr *what = keys_of(join, 1 - side)->items[i];
        map[key->col] = map[key->col] ? map[key->col] : what;
        VEC_PUSH(plan->arena, &left, what);
        VEC_PUSH(plan->arena, &right, set.agg->agg.keys.items[set.at[key->col]]);
    }
    struct rel *semi = rel_join(plan, JOIN_SEMI, other, rel_input(set.agg));
    semi->join.left_keys = left;
    semi->join.right_keys = right;
    semi->rows = join->rows;
    *join = *semi;
    opt_rename_above(o, join, map, count);
    return true;
}

FALLIBLE pass_to_semi(struct opt *o) {
    rel_all joins = opt_all_of(o, REL_JOIN);
    for (i64 i = 0; i < joins.count; i++) {
        struct rel *join = joins.items[i];
        bool inner = join->join.kind == JOIN_INNER && !join->join.dependent &&
                     join->join.conds.count == 0 && join != o->plan->root;
        if (inner && !change(o, join, 1) && !change(o, join, 0) && !change_groups(o, join, 1)) {
            (void)change_groups(o, join, 0);
        }
    }
    return arena_check(o->plan->arena, o->err);
}
