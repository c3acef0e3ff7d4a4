/* copy.c: a part of a plan once more, under column numbers of its own.
 *
 * A column is made by exactly one operator, so whoever wants a subtree twice, or wants the numbers
 * of its columns for something else, needs a copy in which every column the subtree makes has a new
 * number. Columns it uses and does not make stay as they are. What lies below a SHARED is not
 * copied: the copy is one more user of it, unless it reads the rows of a recursion that is copied,
 * which has a number of its own too. Expressions are immutable and copied only where they change.
 */
#include "plan/plan_int.h"

struct copying {
    struct plan *plan;
    struct expr **map; /* by column: what stands for it in the copy; NULL = itself */
    i64 map_count;
    u32 round;      /* what reads the rows of this recursion is copied, too; 0 = none */
    VEC(u32) fixes; /* recursions that are copied, and the copies' numbers */
    VEC(u32) new_fixes;
    VEC(struct rel *) shared; /* inputs of SHARED that are copied, and the copies */
    VEC(struct rel *) new_shared;
};

static struct rel *copy_rel(struct copying *c, struct rel *rel);

static void note_made(u32 col, void *arg) {
    struct copying *c = arg;
    if (col < c->map_count && !c->map[col]) {
        c->map[col] = expr_col(c->plan, plan_col_like(c->plan, col), -1);
    }
}

static u32 fix_of(const struct copying *c, u32 fix) {
    for (i64 i = 0; i < c->fixes.count; i++) {
        if (c->fixes.items[i] == fix) {
            return c->new_fixes.items[i];
        }
    }
    return fix;
}

static bool is_copied(const struct copying *c, u32 fix) {
    return fix == c->round || fix_of(c, fix) != fix;
}

struct work_walk {
    const struct copying *c;
    bool found;
};

static void note_work(struct rel *rel, void *arg) {
    struct work_walk *w = arg;
    w->found = w->found || (rel->kind == REL_WORK && is_copied(w->c, rel->work.fix));
}

static struct rel *copy_shared_input(struct copying *c, struct rel *input) {
    struct work_walk w = {c, false};
    for (i64 i = 0; i < c->shared.count; i++) {
        if (c->shared.items[i] == input) {
            return c->new_shared.items[i];
        }
    }
    rel_each(c->plan->arena, input, note_work, &w);
    struct rel *copy = w.found ? copy_rel(c, input) : input;
    VEC_PUSH(c->plan->arena, &c->shared, input);
    VEC_PUSH(c->plan->arena, &c->new_shared, copy);
    return copy;
}

static void *own_items(struct arena *arena, const void *items, i64 count, i64 item_bytes) {
    size_t bytes = (size_t)(count * item_bytes);
    void *own = arena_alloc(arena, (i64)bytes + 1);
    memcpy(own, items ? items : "", bytes);
    return own;
}

#define OWN_LIST(arena, list)                                                           \
    ((list)->items =                                                                    \
         own_items((arena), (list)->items, (list)->count, (i64)sizeof(*(list)->items)), \
     (list)->cap = (list)->count)

static void own_calls(struct arena *arena, agg_list *calls) {
    OWN_LIST(arena, calls);
    for (i64 i = 0; i < calls->count; i++) {
        OWN_LIST(arena, &calls->items[i].order);
    }
}

static void own_cols(struct arena *arena, col_list **cols, i32 count) {
    *cols = own_items(arena, *cols, count, (i64)sizeof(col_list));
    for (i32 i = 0; i < count; i++) {
        OWN_LIST(arena, &(*cols)[i]);
    }
}

static void own_field(struct arena *arena, struct rel *rel, const struct rel_field *field) {
    void *at = field_in(rel, field);
    switch (field->class) {
    case FIELD_EXPRS:
    case FIELD_MAKES:
    case FIELD_CONDS:
        OWN_LIST(arena, (expr_list *)at);
        return;
    case FIELD_ORDER:
        OWN_LIST(arena, (order_list *)at);
        return;
    case FIELD_CALLS:
        own_calls(arena, at);
        return;
    case FIELD_WINDOWS:
        OWN_LIST(arena, (window_list *)at);
        return;
    case FIELD_SCANS:
        OWN_LIST(arena, (scan_list *)at);
        return;
    case FIELD_COLS:
        own_cols(arena, at, rel->input_count);
        return;
    case FIELD_FLAGS:
    case FIELD_NOTES:
        OWN_LIST(arena, (flag_list *)at);
        return;
    default:
        return;
    }
}

/* A recursion gets a new number; what reads its rows gets the same. */
static void renumber(struct copying *c, struct rel *copy, const struct rel_field *field) {
    u32 *number = field_in(copy, field);
    if (copy->kind == REL_FIX) {
        VEC_PUSH(c->plan->arena, &c->fixes, *number);
        VEC_PUSH(c->plan->arena, &c->new_fixes, ++c->plan->fix_count);
    }
    *number = fix_of(c, *number);
}

/* Inputs first, so that all they make has its number when the operator names it. */
static struct rel *copy_rel(struct copying *c, struct rel *rel) {
    struct rel *copy = NEW(c->plan->arena, struct rel);
    *copy = *rel;
    OWN_LIST(c->plan->arena, &copy->out);
    copy->inputs = NEW_ARRAY(c->plan->arena, struct rel *, rel->input_count);
    EACH_FIELD(field, rel) {
        own_field(c->plan->arena, copy, field);
        if (field->class == FIELD_FIX) {
            renumber(c, copy, field);
        }
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        copy->inputs[i] =
            rel_shares(rel) ? copy_shared_input(c, rel->inputs[i]) : copy_rel(c, rel->inputs[i]);
    }
    rel_each_made(rel, note_made, c);
    rel_rename(c->plan->arena, copy, c->map, c->map_count);
    return copy;
}

struct rel *rel_copy_round(struct plan *plan, struct rel *rel, struct expr **map, u32 fix) {
    struct copying c = {.plan = plan, .map = map, .map_count = plan->cols.count, .round = fix};
    return copy_rel(&c, rel);
}

struct rel *rel_copy(struct plan *plan, struct rel *rel, struct expr **map) {
    return rel_copy_round(plan, rel, map, 0);
}
