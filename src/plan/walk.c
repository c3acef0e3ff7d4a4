/* walk.c: visiting the operators of a plan and the expressions they hold.
 *
 * A plan is a tree except below SHARED, whose input may have several users. Walks that change or
 * count operators therefore visit each once, by a list of those already seen; only the inputs of
 * SHARED go into that list, since nothing else can be reached twice. What an operator holds is read
 * from the table made of rel.def, so that no walk knows the kinds. */
#include "plan/plan_int.h"

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

void window_each_expr(struct window_call *call, expr_slot_fn fn, void *arg) {
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

static void each_in_field(const struct rel *rel, const struct rel_field *field, expr_slot_fn fn,
                          void *arg) {
    void *at = field_in(rel, field);
    expr_list *exprs = at;
    order_list *order = at;
    agg_list *calls = at;
    window_list *windows = at;
    switch (field->class) {
    case FIELD_EXPRS:
    case FIELD_MAKES:
    case FIELD_CONDS:
        each_slot(exprs->items, exprs->count, fn, arg);
        return;
    case FIELD_ORDER:
        each_order(order->items, order->count, fn, arg);
        return;
    case FIELD_BOUND:
        maybe_slot(at, fn, arg);
        return;
    case FIELD_CALLS:
        for (i64 i = 0; i < calls->count; i++) {
            agg_each_expr(&calls->items[i], fn, arg);
        }
        return;
    case FIELD_WINDOWS:
        for (i64 i = 0; i < windows->count; i++) {
            window_each_expr(&windows->items[i], fn, arg);
        }
        return;
    default:
        return;
    }
}

void rel_each_expr(struct rel *rel, expr_slot_fn fn, void *arg) {
    EACH_FIELD(field, rel) {
        each_in_field(rel, field, fn, arg);
    }
}

/* The places of all columns an operator names otherwise than by expressions; those it makes, or
 * all.
 */
typedef void (*col_slot_fn)(u32 *slot, void *arg);

static void each_col(u32 *items, i64 count, col_slot_fn fn, void *arg) {
    for (i64 i = 0; i < count; i++) {
        fn(&items[i], arg);
    }
}

static void each_col_in_field(const struct rel *rel, const struct rel_field *field, bool made,
                              col_slot_fn fn, void *arg) {
    void *at = field_in(rel, field);
    scan_list *scans = at;
    agg_list *calls = at;
    window_list *windows = at;
    col_list **cols = at;
    switch (field->class) {
    case FIELD_SCANS:
        for (i64 i = 0; i < scans->count; i++) {
            fn(&scans->items[i].col, arg);
        }
        return;
    case FIELD_WINDOWS:
        for (i64 i = 0; i < windows->count; i++) {
            fn(&windows->items[i].col, arg);
        }
        return;
    case FIELD_MARK:
        each_col(at, *(u32 *)at != NO_COL, fn, arg);
        return;
    case FIELD_CALLS:
        for (i64 i = 0; !made && i < calls->count; i++) {
            fn(&calls->items[i].col, arg);
        }
        return;
    case FIELD_COLS:
        for (i32 i = 0; !made && i < rel->input_count; i++) {
            each_col((*cols)[i].items, (*cols)[i].count, fn, arg);
        }
        return;
    default:
        return;
    }
}

static void each_col_slot(const struct rel *rel, bool made, col_slot_fn fn, void *arg) {
    EACH_FIELD(field, rel) {
        each_col_in_field(rel, field, made, fn, arg);
    }
    if (!made || !rel_passes(rel)) {
        each_col(rel->out.items, rel->out.count, fn, arg);
    }
}

struct made {
    void (*fn)(u32 col, void *arg);
    void *arg;
};

static void call_made(u32 *slot, void *arg) {
    const struct made *made = arg;
    made->fn(*slot, made->arg);
}

void rel_each_made(const struct rel *rel, void (*fn)(u32 col, void *arg), void *arg) {
    struct made made = {fn, arg};
    each_col_slot(rel, true, call_made, &made);
}

struct renaming {
    struct arena *arena;
    struct expr *const *map;
    i64 count;
};

static void rename_expr(struct expr **slot, void *arg) {
    const struct renaming *r = arg;
    *slot = expr_map(r->arena, *slot, r->map);
}

static void rename_col(u32 *slot, void *arg) {
    const struct renaming *r = arg;
    if (*slot < r->count && r->map[*slot]) {
        *slot = r->map[*slot]->col;
    }
}

void rel_rename(struct arena *arena, struct rel *rel, struct expr *const *map, i64 count) {
    struct renaming r = {arena, map, count};
    rel_each_expr(rel, rename_expr, &r);
    each_col_slot(rel, false, rename_col, &r);
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

static void walk(struct seen *seen, struct rel *rel, rel_visit_fn visit, void *arg) {
    bool goes = visit(rel, arg);
    bool shares = (rel_infos[rel->kind].flags & SHARES) != 0;
    for (i32 i = 0; goes && i < rel->input_count; i++) {
        if (!shares || first_visit(seen, rel->inputs[i])) {
            walk(seen, rel->inputs[i], visit, arg);
        }
    }
}

void rel_walk(struct arena *arena, struct rel *rel, rel_visit_fn visit, void *arg) {
    struct seen seen = {.arena = arena};
    walk(&seen, rel, visit, arg);
}

struct each {
    rel_fn fn;
    void *arg;
};

static bool visit_each(struct rel *rel, void *arg) {
    const struct each *each = arg;
    each->fn(rel, each->arg);
    return true;
}

void rel_each(struct arena *arena, struct rel *rel, rel_fn fn, void *arg) {
    struct each each = {fn, arg};
    rel_walk(arena, rel, visit_each, &each);
}

static void each_up(struct seen *seen, struct rel *rel, rel_fn fn, void *arg) {
    bool shares = (rel_infos[rel->kind].flags & SHARES) != 0;
    for (i32 i = 0; i < rel->input_count; i++) {
        if (!shares || first_visit(seen, rel->inputs[i])) {
            each_up(seen, rel->inputs[i], fn, arg);
        }
    }
    fn(rel, arg);
}

void rel_each_up(struct arena *arena, struct rel *rel, rel_fn fn, void *arg) {
    struct seen seen = {.arena = arena};
    each_up(&seen, rel, fn, arg);
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
    EACH_FIELD(field, rel) {
        agg_list *calls = field_in(rel, field);
        window_list *windows = field_in(rel, field);
        for (i64 i = 0; field->class == FIELD_CALLS && i < calls->count; i++) {
            calls->items[i].position = position;
        }
        for (i64 i = 0; field->class == FIELD_WINDOWS && i < windows->count; i++) {
            windows->items[i].position = position;
        }
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
