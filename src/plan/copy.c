/* copy.c: a part of a plan once more, under column numbers of its own.
 *
 * A column is made by exactly one operator, so whoever wants a subtree twice, or wants the numbers
 * of its columns for something else, needs a copy in which every column the subtree makes has a new
 * number. Columns it uses and does not make stay as they are. What lies below a SHARED is not
 * copied: the copy is one more user of it, unless it reads the rows of a recursion that is copied,
 * which has a number of its own too. Expressions are immutable and copied only where they change.
 */
#include "plan/plan.h"

struct copying {
    struct plan *plan;
    struct expr **map; /* by column: what stands for it in the copy; NULL = itself */
    i64 map_count;
    VEC(u32) fixes; /* recursions that are copied, and the copies' numbers */
    VEC(u32) new_fixes;
    VEC(struct rel *) shared; /* inputs of SHARED that are copied, and the copies */
    VEC(struct rel *) new_shared;
};

static struct rel *copy_rel(struct copying *c, struct rel *rel);

#define OWN_ITEMS(arena, vec)                                                   \
    do {                                                                        \
        size_t own_bytes = sizeof(*(vec)->items) * (size_t)(vec)->count;        \
        void *own_items = arena_alloc((arena), (i64)own_bytes + 1);             \
        memcpy(own_items, (vec)->items ? (void *)(vec)->items : "", own_bytes); \
        (vec)->items = own_items;                                               \
        (vec)->cap = (vec)->count;                                              \
    } while (0)

static u32 renamed(const struct copying *c, u32 col) {
    return col < c->map_count && c->map[col] ? c->map[col]->col : col;
}

static void rename_list(const struct copying *c, u32 *items, i64 count) {
    for (i64 i = 0; i < count; i++) {
        items[i] = renamed(c, items[i]);
    }
}

static void rename_slot(struct expr **slot, void *arg) {
    const struct copying *c = arg;
    *slot = expr_map(c->plan->arena, *slot, c->map);
}

static void note_made(u32 col, void *arg) {
    struct copying *c = arg;
    struct plan_col like = c->plan->cols.items[col];
    if (col < c->map_count && !c->map[col]) {
        u32 to = plan_col_new(c->plan, like.name, like.type, like.nullable);
        c->map[col] = expr_col(c->plan, to, -1);
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

struct work_walk {
    const struct copying *c;
    bool found;
};

static void note_work(struct rel *rel, void *arg) {
    struct work_walk *w = arg;
    w->found = w->found || (rel->kind == REL_WORK && fix_of(w->c, rel->fix) != rel->fix);
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

static void own_lists(struct arena *arena, struct rel *rel) {
    OWN_ITEMS(arena, &rel->out);
    OWN_ITEMS(arena, &rel->scan_cols);
    OWN_ITEMS(arena, &rel->conds);
    OWN_ITEMS(arena, &rel->exprs);
    OWN_ITEMS(arena, &rel->implied);
    OWN_ITEMS(arena, &rel->calls);
    OWN_ITEMS(arena, &rel->null_safe);
    OWN_ITEMS(arena, &rel->left_keys);
    OWN_ITEMS(arena, &rel->right_keys);
    OWN_ITEMS(arena, &rel->order);
    OWN_ITEMS(arena, &rel->left_cols);
    OWN_ITEMS(arena, &rel->right_cols);
    OWN_ITEMS(arena, &rel->windows);
    for (i64 i = 0; i < rel->calls.count; i++) {
        OWN_ITEMS(arena, &rel->calls.items[i].order);
    }
}

/* Inputs first, so that all they make has its number when the operator names it. */
static struct rel *copy_rel(struct copying *c, struct rel *rel) {
    struct rel *copy = NEW(c->plan->arena, struct rel);
    *copy = *rel;
    own_lists(c->plan->arena, copy);
    if (rel->kind == REL_FIX) {
        VEC_PUSH(c->plan->arena, &c->fixes, rel->fix);
        VEC_PUSH(c->plan->arena, &c->new_fixes, ++c->plan->fix_count);
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        copy->inputs[i] = rel->kind == REL_SHARED ? copy_shared_input(c, rel->inputs[i])
                                                  : copy_rel(c, rel->inputs[i]);
    }
    rel_each_made(rel, note_made, c);
    rel_each_expr(copy, rename_slot, c);
    rename_list(c, copy->out.items, copy->out.count);
    rename_list(c, copy->left_cols.items, copy->left_cols.count);
    rename_list(c, copy->right_cols.items, copy->right_cols.count);
    for (i64 i = 0; i < copy->scan_cols.count; i++) {
        copy->scan_cols.items[i].col = renamed(c, copy->scan_cols.items[i].col);
    }
    for (i64 i = 0; i < copy->calls.count; i++) {
        copy->calls.items[i].col = renamed(c, copy->calls.items[i].col);
    }
    for (i64 i = 0; i < copy->windows.count; i++) {
        copy->windows.items[i].col = renamed(c, copy->windows.items[i].col);
    }
    copy->mark_col = renamed(c, copy->mark_col);
    copy->fix = fix_of(c, copy->fix);
    return copy;
}

struct rel *rel_copy(struct plan *plan, struct rel *rel, struct expr **map) {
    struct copying c = {.plan = plan, .map = map, .map_count = plan->cols.count};
    return copy_rel(&c, rel);
}
