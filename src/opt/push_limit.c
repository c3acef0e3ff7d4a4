/* push_limit.c: who wants few rows says so early.
 *
 * A LIMIT goes down through projections into both arms of UNION ALL, to the left side of a join
 * that loses no left row (left joins, scalar subqueries, marks), and to what is joined with one row. The same with ORDER BY below it: an
 * arm need only give its own first rows, and a side whose columns decide the order need only give
 * those. The LIMIT above stays, since arms together have too many rows; it counts from the first
 * row, so below it limit and offset are added up.
 *
 * A recursion stops when it has as many rows as are wanted; without that an endless one could not
 * be asked for its first rows, so this part is done even when the optimiser is off.
 *
 * Only where something was passed, and where more rows are expected than are wanted, a LIMIT is
 * added: over a plain scan the sink itself stops early. Nothing below a shared plan is limited, as
 * its other users may want more. */
#include "opt/opt_int.h"

struct wish {
    struct opt *o;
    struct expr *limit; /* constant or parameter */
    order_list order;   /* over the columns of the place; none = any rows will do */
    i64 rows;           /* wanted; of a parameter: unknown, taken as few */
};

static void add_limit(const struct wish *w, struct rel *parent, i32 which) {
    struct plan *plan = w->o->plan;
    struct rel *at = parent->inputs[which];
    if (at->rows <= w->rows) {
        return;
    }
    if (w->order.count > 0) {
        struct rel *sort = rel_new(plan, REL_SORT, at, NULL);
        sort->sort.order.items = w->order.items;
        sort->sort.order.count = w->order.count;
        sort->sort.order.cap = w->order.count;
        sort->rows = at->rows;
        at = sort;
    }
    struct rel *limit = rel_new(plan, REL_LIMIT, at, NULL);
    limit->limit.count = w->limit;
    limit->rows = w->rows;
    parent->inputs[which] = limit;
}

/* The order over other columns; false when a key could raise there, or is not one value. */
static bool map_order(const struct wish *w, struct expr *const *map, order_list *out) {
    memset(out, 0, sizeof *out);
    for (i64 i = 0; i < w->order.count; i++) {
        struct order_key key = w->order.items[i];
        key.expr = expr_map(w->o->plan->arena, key.expr, map);
        if (facts_can_raise(w->o, key.expr) || expr_is_volatile(key.expr)) {
            return false;
        }
        VEC_PUSH(w->o->plan->arena, out, key);
    }
    return true;
}

static bool below_project(struct wish *w, const struct rel *rel) {
    struct plan *plan = w->o->plan;
    struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    order_list order;
    for (i64 i = 0; i < rel->project.exprs.count; i++) {
        map[rel->out.items[i]] = rel->project.exprs.items[i];
    }
    if (!map_order(w, map, &order)) {
        return false;
    }
    w->order.items = order.items;
    w->order.count = order.count;
    return true;
}

static bool visit_side(const struct expr *expr, void *arg) {
    return expr->kind != EXPR_COL || rel_has_out(arg, expr->col);
}

/* Whether all pairs of rows come out. */
static bool is_cross(const struct rel *rel) {
    return opt_is_inner(rel) && rel->join.conds.count == 0 && rel->join.left_keys.count == 0;
}

/* Whether every row of one side comes out, and that side decides the order: *out_side. Keys are columns, or have
 * come through a projection. */
static bool below_join(const struct wish *w, const struct rel *rel, i32 *out_side) {
    bool one_left = is_cross(rel) && opt_one_row(rel_left(rel));
    bool one_right = is_cross(rel) && opt_one_row(rel_right(rel));
    if (!one_left && !one_right && rel->join.kind != JOIN_MARK && rel->join.kind != JOIN_SINGLE &&
        rel->join.kind != JOIN_LEFT) {
        return false;
    }
    *out_side = one_left;
    for (i64 i = 0; i < w->order.count; i++) {
        if (!expr_walk(w->order.items[i].expr, visit_side, rel->inputs[*out_side])) {
            return false;
        }
    }
    return true;
}

static void push(struct wish w, struct rel *parent, i32 which, bool passed);

static void push_arms(const struct wish *w, struct rel *rel) {
    struct plan *plan = w->o->plan;
    for (i32 arm = 0; arm < rel->input_count; arm++) {
        const u32 *from = rel->arms.cols[arm].items;
        struct expr **map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
        for (i64 i = 0; i < rel->out.count; i++) {
            map[rel->out.items[i]] = expr_col(plan, from[i], -1);
        }
        struct wish own = *w;
        order_list order;
        if (map_order(w, map, &order)) {
            own.order.items = order.items;
            own.order.count = order.count;
            push(own, rel, arm, true);
        }
    }
}

static void push(struct wish w, struct rel *parent, i32 which, bool passed) {
    for (;;) {
        struct rel *at = parent->inputs[which];
        if (at->kind == REL_FIX && at->input_count == 2 && w.order.count == 0) {
            at->fix.limit = w.limit;
            return;
        }
        bool empty = at->kind == REL_FILTER && at->filter.conds.count == 0;
        bool cross = is_cross(at);
        if (!w.o->settings->optimizer && at->kind != REL_PROJECT && !empty && !cross) {
            return;
        }
        if (at->kind == REL_UNION) {
            push_arms(&w, at);
            return;
        }
        bool sort = at->kind == REL_SORT && !passed && w.order.count == 0;
        if (sort) {
            w.order.items = at->sort.order.items;
            w.order.count = at->sort.order.count;
        }
        i32 side = 0;
        bool goes = sort || empty || (at->kind == REL_PROJECT && below_project(&w, at)) ||
                    (at->kind == REL_JOIN && below_join(&w, at, &side));
        if (!goes) {
            break;
        }
        passed = passed || at->kind == REL_JOIN;
        parent = at;
        which = side;
    }
    if (passed) {
        add_limit(&w, parent, which);
    }
}

/* Limit and offset as one number. */
static bool wanted(struct opt *o, const struct rel *rel, struct wish *out) {
    const struct expr *limit = rel->limit.count;
    const struct expr *offset = rel->limit.offset;
    *out = (struct wish){.o = o, .limit = rel->limit.count};
    if (!limit || (offset && (limit->kind != EXPR_CONST || offset->kind != EXPR_CONST))) {
        return false;
    }
    if (limit->kind == EXPR_PARAM) {
        return true;
    }
    i64 rows = limit->value.i64;
    i64 skipped = offset && !offset->is_null ? offset->value.i64 : 0;
    ASSERT(rows >= 0 && skipped >= 0); /* binding has seen to that */
    if (limit->is_null || rows > I64_MAX - skipped) {
        return false;
    }
    out->rows = rows + skipped;
    out->limit = expr_new(o->plan->arena, EXPR_CONST, limit->type, limit->position);
    out->limit->value.i64 = out->rows;
    return true;
}

FALLIBLE pass_push_limit(struct opt *o) {
    struct wish w;
    estimate_rel(o, o->plan->root);
    rel_all list = opt_all_of(o, REL_LIMIT);
    for (i64 i = 0; i < list.count; i++) {
        if (wanted(o, list.items[i], &w)) {
            push(w, list.items[i], 0, false);
        }
    }
    return ERR_OK;
}
