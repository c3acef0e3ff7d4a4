/* unnest_carry.c: outer columns whose equal values are not the same.
 *
 * Part of the pass unnest. A right side is computed once for all equal values of the outer columns.
 * 0 and -0 are equal, and a month and thirty days, but a text of them is not, and every row of the
 * left must see its own. So a column of such a type is carried as what makes it up: the left side
 * computes the bits of a float, and months, days and microseconds of an interval, and the right side
 * puts the value together again. A column that is only compared stays as it is. */
#include "opt/unnest_int.h"

#include "codes/scalar.h"

enum { PARTS = 3 };

static struct expr *cast_to(struct plan *plan, struct expr *expr, struct type type) {
    struct expr *cast = expr_new(plan->arena, EXPR_CAST, type, -1);
    if (type_eq(expr->type, type)) {
        return expr;
    }
    cast->arg_count = 1;
    cast->args = NEW_ARRAY(plan->arena, struct expr *, 1);
    cast->args[0] = expr;
    return cast;
}

/* What makes up a value; NULL: it has fewer parts. */
static struct expr *part_of(struct plan *plan, struct expr *value, i32 part) {
    static const u16 funcs[PARTS] = {FUNC_IV_MONTHS, FUNC_IV_DAYS, FUNC_IV_US};
    struct type whole = type_of(TYPE_BIGINT);
    if (value->type.id == TYPE_INTERVAL) {
        return expr_call(plan->arena, funcs[part], whole, -1, 1, value);
    }
    value = cast_to(plan, value, type_of(TYPE_DOUBLE));
    return part == 0 ? expr_call(plan->arena, FUNC_FLOAT_BITS, whole, -1, 1, value) : NULL;
}

static struct expr *whole_of(struct plan *plan, struct type type, struct expr *const *parts) {
    struct type made = type_of(type.id == TYPE_INTERVAL ? TYPE_INTERVAL : TYPE_DOUBLE);
    struct expr *value =
        type.id == TYPE_INTERVAL
            ? expr_call(plan->arena, FUNC_MAKE_IV, made, -1, 3, parts[0], parts[1], parts[2])
            : expr_call(plan->arena, FUNC_FLOAT_OF_BITS, made, -1, 1, parts[0]);
    return cast_to(plan, value, type);
}

struct seen_walk {
    u32 col;
    bool shown; /* other than in a comparison */
};

static void note_seen(const struct expr *expr, struct seen_walk *w, bool compared) {
    bool compares = expr->kind == EXPR_IN || expr->kind == EXPR_IS_NULL ||
                    (expr->kind == EXPR_CALL && expr->func >= FUNC_EQ && expr->func <= FUNC_GE);
    w->shown = w->shown || (expr->kind == EXPR_COL && expr->col == w->col && !compared);
    for (i32 i = 0; i < expr->arg_count; i++) {
        note_seen(expr->args[i], w, compares);
    }
}

static void note_slot(struct expr **slot, void *arg) {
    note_seen(*slot, arg, false);
}

static void note_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, note_slot, arg);
}

static bool needs_parts(const struct unnest *u, u32 col) {
    struct plan *plan = u->o->plan;
    struct seen_walk w = {.col = col};
    if (opt_equal_is_same(plan->cols.items[col].type)) {
        return false;
    }
    rel_each(plan->arena, rel_right(u->join), note_rel, &w);
    return w.shown;
}

struct renaming {
    struct plan *plan;
    struct expr **map;
    i64 count;
    VEC(const struct rel *) inside; /* the left side, which makes the old columns */
};

static void list_rel(struct rel *rel, void *arg) {
    struct renaming *r = arg;
    VEC_PUSH(r->plan->arena, &r->inside, (const struct rel *)rel);
}

static void rename_rel(struct rel *rel, void *arg) {
    struct renaming *r = arg;
    for (i64 i = 0; i < r->inside.count; i++) {
        if (r->inside.items[i] == rel) {
            return;
        }
    }
    rel_rename(r->plan->arena, rel, r->map, r->count);
}

static void map_slot(struct expr **slot, void *arg) {
    struct renaming *r = arg;
    *slot = expr_map(r->plan->arena, *slot, r->map);
}

static void map_rel(struct rel *rel, void *arg) {
    rel_each_expr(rel, map_slot, arg);
}

/* A column of the projection for an expression. */
static u32 add_col(struct plan *plan, struct rel *project, struct expr *expr, const char *name) {
    u32 col = plan_col_new(plan, name, expr->type, expr_nullable(plan, expr));
    VEC_PUSH(plan->arena, &project->project.exprs, expr);
    VEC_PUSH(plan->arena, &project->out, col);
    return col;
}

bool unnest_carry(struct unnest *u) {
    struct plan *plan = u->o->plan;
    bool some = false;
    b8 *apart = NEW_ARRAY(plan->arena, b8, u->count + 1);
    for (i64 i = 0; i < u->count; i++) {
        apart[i] = needs_parts(u, u->outer[i]);
        some = some || apart[i];
    }
    if (!some) {
        return false;
    }
    struct rel *left = rel_left(u->join), *project = rel_new(plan, REL_PROJECT, left, NULL);
    i64 count = plan->cols.count;
    struct renaming r = {plan, NEW_ARRAY(plan->arena, struct expr *, count + 1), count, {0}};
    project->rows = left->rows;
    rel_each(plan->arena, left, list_rel, &r);
    list_rel(project, &r);
    for (i64 i = 0; i < left->out.count; i++) {
        u32 col = left->out.items[i];
        u32 now = add_col(plan, project, expr_col(plan, col, -1), plan->cols.items[col].name);
        r.map[col] = expr_col(plan, now, -1);
    }
    struct renaming whole = {plan, NULL, 0, {0}};
    whole.map = NEW_ARRAY(plan->arena, struct expr *, count + left->out.count + 1);
    for (i64 i = 0; i < u->count; i++) {
        struct expr *old = expr_col(plan, u->outer[i], -1), *parts[PARTS] = {NULL};
        for (i32 k = 0; k < PARTS && apart[i]; k++) {
            struct expr *part = part_of(plan, old, k);
            parts[k] = part ? expr_col(plan, add_col(plan, project, part, "part"), -1) : NULL;
        }
        if (apart[i]) {
            whole.map[r.map[u->outer[i]]->col] = whole_of(plan, old->type, parts);
        }
    }
    rel_each(plan->arena, plan->root, rename_rel, &r);
    rel_set_left(u->join, project);
    rel_each(plan->arena, rel_right(u->join), map_rel, &whole);
    return true;
}
