/* runs.c: which aggregations get their rows in the order of the group key, and which sides of
 * joins come in the order of theirs.
 *
 * A table's statistics say which columns ascend from row to row. Filters, projections and the left
 * sides of joins keep the order of rows; an inner join's right key is equal to the left one; a
 * window leaves its rows ordered by its first key, a limited sort by its own, groups made as runs
 * by theirs. Only an expectation: whoever aggregates checks the keys he gets, so that no guard is
 * needed and an order that is lost on the way costs time, not rows. */
#include "opt/opt_int.h"

static bool is_sorted(struct rel *rel, u32 col);
static void mark_runs(struct rel *rel, void *arg);

static bool is_col(const struct expr *expr, u32 col) {
    return expr->kind == EXPR_COL && expr->col == col;
}

static bool scan_sorted(const struct rel *rel, u32 col) {
    for (i64 i = 0; i < rel->scan.cols.count; i++) {
        if (rel->scan.cols.items[i].col == col) {
            return rel->scan.cols.items[i].sorted;
        }
    }
    return false;
}

static bool join_sorted(struct rel *rel, u32 col) {
    if (rel->join.kind == JOIN_FULL) {
        return false;
    }
    for (i64 i = 0; i < rel->join.left_keys.count && opt_is_inner(rel); i++) {
        const struct expr *left = rel->join.left_keys.items[i];
        if (is_col(rel->join.right_keys.items[i], col) && left->kind == EXPR_COL) {
            return is_sorted(rel_left(rel), left->col);
        }
    }
    return is_sorted(rel_left(rel), col);
}

/* The operator's first expressions make its first columns. */
static bool made_sorted(struct rel *rel, u32 col, bool passes_on) {
    const expr_list *exprs = rel_exprs(rel);
    for (i64 i = 0; i < exprs->count; i++) {
        if (rel->out.items[i] == col) {
            const struct expr *expr = exprs->items[i];
            return passes_on && expr->kind == EXPR_COL && is_sorted(rel_input(rel), expr->col);
        }
    }
    return false;
}

static bool orders_by(const struct order_key *key, u32 col) {
    return is_col(key->expr, col) && !key->descending;
}

/* Whether the rows of rel probably come with this column ascending. */
static bool is_sorted(struct rel *rel, u32 col) {
    switch (rel->kind) {
    case REL_SCAN:
        return scan_sorted(rel, col);
    case REL_FILTER:
    case REL_SORT: /* in the middle of a plan it has no effect but below a limit */
        return is_sorted(rel_input(rel), col);
    case REL_PROJECT:
        return made_sorted(rel, col, true);
    case REL_AGG:
        mark_runs(rel, NULL);
        return made_sorted(rel, col, rel->agg.in_runs);
    case REL_JOIN:
        return join_sorted(rel, col);
    case REL_LIMIT:
        return rel_input(rel)->kind == REL_SORT
                   ? orders_by(&rel_input(rel)->sort.order.items[0], col)
                   : is_sorted(rel_input(rel), col);
    case REL_WINDOW:
        return rel->window.keys.count    ? is_col(rel->window.keys.items[0], col)
               : rel->window.order.count ? orders_by(&rel->window.order.items[0], col)
                                         : is_sorted(rel_input(rel), col);
    case REL_SHARED:
        for (i64 i = 0; i < rel->out.count; i++) {
            if (rel->out.items[i] == col) {
                return is_sorted(rel_input(rel), rel->shared.cols->items[i]);
            }
        }
        return false;
    default:
        return false;
    }
}

static void mark_runs(struct rel *rel, void *arg) {
    UNUSED(arg);
    const struct expr *only = NULL;
    i64 count = 0;
    for (i64 i = 0; rel->kind == REL_JOIN && i < rel->join.left_keys.count; i++) {
        rel->join.left_sorted |= opt_is_sorted(rel_left(rel), rel->join.left_keys.items[i]);
        rel->join.right_sorted |= opt_is_sorted(rel_right(rel), rel->join.right_keys.items[i]);
    }
    for (i64 i = 0; rel->kind == REL_AGG && i < rel->agg.keys.count; i++) {
        if (rel->agg.implied.count == 0 || !rel->agg.implied.items[i]) {
            only = rel->agg.keys.items[i];
            count++;
        }
    }
    if (count == 1 && opt_is_sorted(rel_input(rel), only)) {
        rel->agg.in_runs = 1;
    }
}

bool opt_is_sorted(struct rel *rel, const struct expr *expr) {
    return expr->kind == EXPR_COL && is_sorted(rel, expr->col);
}

FALLIBLE pass_runs(struct opt *o) {
    rel_each(o->plan->arena, o->plan->root, mark_runs, NULL);
    return ERR_OK;
}
