/* outer_to_inner.c: joins that need not extend rows by NULLs.
 *
 * A condition above a LEFT join that is not true when a column of the right side is NULL drops the
 * extended rows again, so the join is an inner one; of a FULL join the side whose rows survive
 * stays. The set of columns that must not be NULL travels down with the walk. A SINGLE join whose
 * right side has at most one row a key is a LEFT join; one whose right side has exactly one row, as
 * an aggregate without keys, is a product. Inner joins can then change places. */
#include "opt/opt_int.h"

static bool is_strict(const struct expr *expr) {
    return expr->kind == EXPR_CAST || (expr->kind == EXPR_CALL && func_is_strict(expr->func));
}

/* Columns whose NULL makes the expression NULL. */
static void note_strict(const struct expr *expr, u8 *out) {
    if (expr->kind == EXPR_COL) {
        out[expr->col] = 1;
    }
    for (i32 i = 0; is_strict(expr) && i < expr->arg_count; i++) {
        note_strict(expr->args[i], out);
    }
    if (expr->kind == EXPR_NOT) {
        note_strict(expr->args[0], out);
    }
    if (expr->kind == EXPR_IN) {
        note_strict(expr->args[0], out);
    }
}

/* Columns whose NULL makes the condition other than true. */
static void note_rejected(struct opt *o, const struct expr *cond, u8 *out) {
    enum { ARMS_MAX = 16 };
    if (cond->kind == EXPR_AND) {
        for (i32 i = 0; i < cond->arg_count; i++) {
            note_rejected(o, cond->args[i], out);
        }
    } else if (cond->kind == EXPR_OR && cond->arg_count <= ARMS_MAX) {
        i64 cols = o->plan->cols.count;
        u8 *all = NEW_ARRAY(o->plan->arena, u8, cols + 1);
        memset(all, 1, (size_t)cols);
        for (i32 i = 0; i < cond->arg_count; i++) {
            u8 *one = NEW_ARRAY(o->plan->arena, u8, cols + 1);
            note_rejected(o, cond->args[i], one);
            for (i64 k = 0; k < cols; k++) {
                all[k] = all[k] && one[k];
            }
        }
        for (i64 k = 0; k < cols; k++) {
            out[k] = out[k] || all[k];
        }
    } else if (cond->kind == EXPR_NOT && cond->args[0]->kind == EXPR_IS_NULL) {
        note_strict(cond->args[0]->args[0], out);
    } else {
        note_strict(cond, out);
    }
}

static u8 *copy_set(struct opt *o, const u8 *set) {
    u8 *copy = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    memcpy(copy, set, (size_t)o->plan->cols.count);
    return copy;
}

static void note_conds(struct opt *o, const struct rel *rel, u8 *set) {
    const expr_list *conds = rel_conds(rel);
    for (i64 i = 0; i < conds->count; i++) {
        note_rejected(o, conds->items[i], set);
    }
    for (i64 i = 0; rel->kind == REL_JOIN && i < rel->join.left_keys.count; i++) {
        if (i >= rel->join.null_safe.count || !rel->join.null_safe.items[i]) {
            note_strict(rel->join.left_keys.items[i], set);
            note_strict(rel->join.right_keys.items[i], set);
        }
    }
}

static bool rejects_side(const struct rel *side, const u8 *set) {
    for (i64 i = 0; i < side->out.count; i++) {
        if (set[side->out.items[i]]) {
            return true;
        }
    }
    return false;
}

static void swap_sides(struct rel *rel) {
    struct rel *left = rel_left(rel);
    rel_set_left(rel, rel_right(rel));
    rel_set_right(rel, left);
    for (i64 i = 0; i < rel->join.left_keys.count; i++) {
        struct expr *key = rel->join.left_keys.items[i];
        rel->join.left_keys.items[i] = rel->join.right_keys.items[i];
        rel->join.right_keys.items[i] = key;
    }
}

static void weaken(struct opt *o, struct rel *rel, const u8 *set) {
    if (rel->join.kind == JOIN_SINGLE && !rel->join.lazy) {
        bool bare = rel->join.left_keys.count == 0 && rel->join.conds.count == 0;
        if (bare && opt_one_row(rel_right(rel))) {
            rel->join.kind = JOIN_CROSS;
        } else if (estimate_unique(o->plan, rel_right(rel), rel->join.right_keys.items,
                                   rel->join.null_safe.items, rel->join.right_keys.count)) {
            rel->join.kind = JOIN_LEFT;
        }
    }
    if (rel->join.kind == JOIN_FULL) {
        bool left = rejects_side(rel_left(rel), set);
        bool right = rejects_side(rel_right(rel), set);
        if (right && !left) {
            swap_sides(rel);
        }
        rel->join.kind = left || right ? JOIN_LEFT : JOIN_FULL;
    }
    if (rel->join.kind == JOIN_LEFT && rejects_side(rel_right(rel), set)) {
        rel->join.kind =
            rel->join.left_keys.count + rel->join.conds.count > 0 ? JOIN_INNER : JOIN_CROSS;
    }
}

static void walk(struct opt *o, struct rel *rel, const u8 *set);

static void walk_join(struct opt *o, struct rel *rel, const u8 *set) {
    u8 *left = copy_set(o, set);
    u8 *right = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    weaken(o, rel, set);
    switch (rel->join.kind) {
    case JOIN_INNER:
    case JOIN_CROSS:
        note_conds(o, rel, left);
        right = left;
        break;
    case JOIN_SEMI:
        note_conds(o, rel, left);
        note_conds(o, rel, right);
        break;
    case JOIN_FULL:
        left = right;
        break;
    default: /* a row of the right without what the condition needs matches nothing */
        note_conds(o, rel, right);
        break;
    }
    walk(o, rel_left(rel), left);
    walk(o, rel_right(rel), right);
}

/* Computed columns: what must not be NULL below. */
static void walk_computed(struct opt *o, struct rel *rel, const u8 *set) {
    u8 *below = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; i < exprs->count; i++) {
        if (set[rel->out.items[i]]) {
            note_strict(exprs->items[i], below);
        }
    }
    walk(o, rel_input(rel), below);
}

static void walk(struct opt *o, struct rel *rel, const u8 *set) {
    u8 *own = NULL;
    switch (rel->kind) {
    case REL_FILTER:
        own = copy_set(o, set);
        note_conds(o, rel, own);
        walk(o, rel_input(rel), own);
        return;
    case REL_JOIN:
        walk_join(o, rel, set);
        return;
    case REL_PROJECT:
    case REL_AGG:
        walk_computed(o, rel, set);
        return;
    case REL_SORT:
        walk(o, rel_input(rel), set);
        return;
    default:
        break;
    }
    own = NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1);
    for (i32 i = 0; i < rel->input_count; i++) {
        if (rel->kind != REL_SHARED || opt_first_visit(o, rel->inputs[i])) {
            walk(o, rel->inputs[i], own);
        }
    }
}

FALLIBLE pass_outer_to_inner(struct opt *o) {
    o->visited.count = 0;
    walk(o, o->plan->root, NEW_ARRAY(o->plan->arena, u8, o->plan->cols.count + 1));
    return ERR_OK;
}
