/* walk.c: visiting the operators of a plan and the expressions they hold.
 *
 * A plan is a tree except below SHARED, whose input may have several users. Walks that change or
 * count operators therefore visit each once, by a list of those already seen; only the inputs of
 * SHARED go into that list, since nothing else can be reached twice. */
#include "plan/plan.h"

static void each_order(struct order_key *items, i64 count, expr_slot_fn fn, void *arg) {
    for (i64 i = 0; i < count; i++) {
        fn(&items[i].expr, arg);
    }
}

static void each_slot(struct expr **items, i64 count, expr_slot_fn fn, void *arg) {
    for (i64 i = 0; i < count; i++) {
        fn(&items[i], arg);
    }
}

static void maybe_slot(struct expr **slot, expr_slot_fn fn, void *arg) {
    if (*slot) {
        fn(slot, arg);
    }
}

static void each_window(struct window_call *call, expr_slot_fn fn, void *arg) {
    each_slot(call->args, call->arg_count, fn, arg);
    maybe_slot(&call->filter, fn, arg);
    maybe_slot(&call->frame.from_offset, fn, arg);
    maybe_slot(&call->frame.to_offset, fn, arg);
}

void agg_each_expr(struct agg_call *call, expr_slot_fn fn, void *arg) {
    maybe_slot(&call->arg, fn, arg);
    maybe_slot(&call->arg2, fn, arg);
    maybe_slot(&call->filter, fn, arg);
    each_order(call->order.items, call->order.count, fn, arg);
}

void rel_each_expr(struct rel *rel, expr_slot_fn fn, void *arg) {
    each_slot(rel->conds.items, rel->conds.count, fn, arg);
    each_slot(rel->exprs.items, rel->exprs.count, fn, arg);
    each_slot(rel->left_keys.items, rel->left_keys.count, fn, arg);
    each_slot(rel->right_keys.items, rel->right_keys.count, fn, arg);
    each_order(rel->order.items, rel->order.count, fn, arg);
    for (i64 i = 0; i < rel->calls.count; i++) {
        agg_each_expr(&rel->calls.items[i], fn, arg);
    }
    for (i64 i = 0; i < rel->windows.count; i++) {
        each_window(&rel->windows.items[i], fn, arg);
    }
    maybe_slot(&rel->limit, fn, arg);
    maybe_slot(&rel->offset, fn, arg);
}

void rel_each_made(const struct rel *rel, void (*fn)(u32 col, void *arg), void *arg) {
    switch (rel->kind) {
    case REL_SCAN:
        for (i64 i = 0; i < rel->scan_cols.count; i++) {
            fn(rel->scan_cols.items[i].col, arg);
        }
        break;
    case REL_WINDOW:
        for (i64 i = 0; i < rel->windows.count; i++) {
            fn(rel->windows.items[i].col, arg);
        }
        break;
    case REL_JOIN:
        if (rel->join == JOIN_MARK) {
            fn(rel->mark_col, arg);
        }
        break;
    case REL_FILTER:
    case REL_SORT:
    case REL_LIMIT:
        break;
    default:
        for (i64 i = 0; i < rel->out.count; i++) {
            fn(rel->out.items[i], arg);
        }
        break;
    }
}

struct seen {
    struct arena *arena;
    VEC(const struct rel *) shared;
};

static bool first_visit(struct seen *seen, const struct rel *input) {
    for (i64 i = 0; i < seen->shared.count; i++) {
        if (seen->shared.items[i] == input) {
            return false;
        }
    }
    VEC_PUSH(seen->arena, &seen->shared, input);
    return true;
}

static void each_rel(struct seen *seen, struct rel *rel, rel_fn fn, void *arg) {
    fn(rel, arg);
    for (i32 i = 0; i < rel->input_count; i++) {
        if (rel->kind != REL_SHARED || first_visit(seen, rel->inputs[i])) {
            each_rel(seen, rel->inputs[i], fn, arg);
        }
    }
}

void rel_each(struct arena *arena, struct rel *rel, rel_fn fn, void *arg) {
    struct seen seen = {.arena = arena};
    each_rel(&seen, rel, fn, arg);
}

static bool place_node(const struct expr *expr, void *arg) {
    ((struct expr *)(size_t)expr)->position = *(const i32 *)arg;
    return true;
}

static void place_slot(struct expr **slot, void *arg) {
    expr_walk(*slot, place_node, arg);
}

static void place_rel(struct rel *rel, void *arg) {
    i32 position = *(const i32 *)arg;
    rel->position = position;
    for (i64 i = 0; i < rel->calls.count; i++) {
        rel->calls.items[i].position = position;
    }
    for (i64 i = 0; i < rel->windows.count; i++) {
        rel->windows.items[i].position = position;
    }
    rel_each_expr(rel, place_slot, arg);
}

void rel_place(struct arena *arena, struct rel *rel, i32 position) {
    rel_each(arena, rel, place_rel, &position);
}

struct free_walk {
    u8 *used;
    u8 *made;
};

static void note_used(u32 col, void *arg) {
    ((u8 *)arg)[col] = 1;
}

static void note_slot(struct expr **slot, void *arg) {
    expr_each_col(*slot, note_used, ((struct free_walk *)arg)->used);
}

static void note_rel(struct rel *rel, void *arg) {
    struct free_walk *w = arg;
    rel_each_expr(rel, note_slot, w);
    rel_each_made(rel, note_used, w->made);
}

i64 rel_free_cols(const struct plan *plan, struct rel *rel, u8 *out_free) {
    i64 cols = plan->cols.count;
    i64 count = 0;
    struct free_walk w = {NEW_ARRAY(plan->arena, u8, cols + 1),
                          NEW_ARRAY(plan->arena, u8, cols + 1)};
    rel_each(plan->arena, rel, note_rel, &w);
    for (i64 i = 0; i < cols; i++) {
        bool is_free = w.used[i] && !w.made[i];
        count += is_free;
        if (out_free) {
            out_free[i] = is_free;
        }
    }
    return count;
}

bool rel_has_out(const struct rel *rel, u32 col) {
    for (i64 i = 0; i < rel->out.count; i++) {
        if (rel->out.items[i] == col) {
            return true;
        }
    }
    return false;
}
