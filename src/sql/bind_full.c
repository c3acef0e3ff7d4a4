/* bind_full.c: FULL JOIN: subqueries in its condition, the merged columns of USING.
 *
 * Part of binding. Other joins can test a condition with subqueries on rows of their product, or
 * for each row of the left; a FULL JOIN also keeps rows of either side that match nothing, so its
 * condition must be one of the join itself. A subquery that uses one side's columns is computed on
 * that side. If one uses both, the pairs that match are found first. The rows of both sides get
 * numbers, the product of the sides is filtered by the condition, and the join compares numbers:
 *     (left LEFT JOIN pairs ON left number) FULL JOIN right ON right number
 * Both sides are shared by the pairs and the join. */
#include "sql/sql_int.h"

#include "codes/func.h"

/* Columns of the scope get new numbers; those with none keep theirs. */
static void rename_scope(struct bind *b, struct scope *scope, const u32 *to) {
    for (i64 i = 0; i < scope->tables.count; i++) {
        struct scope_table *table = &scope->tables.items[i];
        struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, table->col_count + 1);
        for (i64 k = 0; k < table->col_count; k++) {
            cols[k] = (struct scope_col){table->cols[k].name, to[table->cols[k].col]};
        }
        table->cols = cols;
    }
    for (i64 i = 0; i < scope->cols.count; i++) {
        scope->cols.items[i].col = to[scope->cols.items[i].col];
    }
}

/* COALESCE of a merged column's two sides. */
static struct expr *merged_value(struct bind *b, const struct expr *equal) {
    struct expr *is_null = expr_one(b->t, EXPR_IS_NULL, equal->args[0], -1);
    struct expr *args[3] = {expr_one(b->t, EXPR_NOT, is_null, -1), equal->args[0], equal->args[1]};
    struct type type = args[1]->type;
    if (!type_eq(type, args[2]->type)) {
        type = type_of((enum type_id)type.id);
    }
    return expr_many(b->t, EXPR_CASE, type, -1, 3, args);
}

/* A projection above the join computes the merged columns; names follow the columns. */
void bind_full_using(struct bind *b, struct scope *out, struct expr *const *equals, i64 count) {
    struct rel *join = out->rel;
    struct rel *project = rel_new(b->plan, REL_PROJECT, join, NULL);
    u32 *to = NEW_ARRAY(b->arena, u32, b->plan->cols.count + 1);
    for (i64 i = 0; i < join->out.count; i++) {
        u32 from = join->out.items[i];
        struct plan_col col = b->plan->cols.items[from];
        struct origin origin = b->origins.items[from];
        to[from] = bind_col_new(b, origin.table, col.name, col.type, col.nullable);
        VEC_PUSH(b->arena, &project->project.exprs, expr_col(b->plan, from, -1));
        VEC_PUSH(b->arena, &project->out, to[from]);
    }
    rename_scope(b, out, to);
    for (i64 i = 0; i < count; i++) {
        struct scope_col *col = &out->cols.items[i];
        struct expr *value = merged_value(b, equals[i]);
        col->col = bind_col_new(b, NULL, col->name, value->type, expr_nullable(b->plan, value));
        VEC_PUSH(b->arena, &project->project.exprs, value);
        VEC_PUSH(b->arena, &project->out, col->col);
    }
    project->rows = join->rows;
    out->rel = project;
}

/* Whether a subquery of a condition uses columns of a side. */
static bool uses_side(struct bind *b, const struct pending *p, struct rel *side) {
    struct rel *probe = bind_filter(b, p->rel, expr_bool(b->t, true, -1));
    for (i64 i = 0; i < p->conds.count; i++) {
        VEC_PUSH(b->arena, &probe->filter.conds, p->conds.items[i]);
    }
    return bind_depends(b, side, probe);
}

/* One side, numbered and shared: *io_side becomes a use with the columns it had, which condition
 * and subqueries name; the result is another, whose columns `to` lists by their old numbers. */
static struct rel *share_side(struct bind *b, struct rel **io_side, u32 *to, u32 *out_number) {
    u32 number = bind_col_new(b, NULL, "row_number", type_of(TYPE_BIGINT), false);
    struct rel *side = rel_numbered(b->plan, *io_side, number);
    struct expr **map = NEW_ARRAY(b->arena, struct expr *, b->plan->cols.count + 1);
    struct rel *input = rel_copy(b->plan, side, map);
    bind_origins(b);
    struct rel *other = bind_shared(b, input);
    struct rel *same =
        rel_shared(b->plan, input, input->out.items, side->out.items, side->out.count);
    for (i64 i = 0; i < side->out.count; i++) {
        u32 col = side->out.items[i];
        to[col] = other->out.items[i];
        b->origins.items[to[col]] = b->origins.items[col];
    }
    *out_number = same->out.items[same->out.count - 1];
    *io_side = same;
    return other;
}

static void equate(struct bind *b, struct rel *join, u32 left, u32 right) {
    VEC_PUSH(b->arena, &join->join.conds,
             expr_call(b->arena, FUNC_EQ, type_of(TYPE_BOOLEAN), -1, 2, expr_col(b->plan, left, -1),
                       expr_col(b->plan, right, -1)));
}

/* The pairs that match, and the join by their numbers. */
static void join_pairs(struct bind *b, pending_list *pending, struct expr *cond,
                       struct scope *out) {
    static const char *names[2] = {"left", "right"};
    const struct rel *join = out->rel;
    struct rel *sides[2] = {rel_left(join), rel_right(join)};
    struct rel *others[2];
    u32 *to = NEW_ARRAY(b->arena, u32, b->plan->cols.count + 3);
    u32 numbers[2];
    for (i32 i = 0; i < 2; i++) {
        others[i] = share_side(b, &sides[i], to, &numbers[i]);
    }
    struct rel *product = rel_join(b->plan, JOIN_CROSS, sides[0], sides[1]);
    product->rows = join->rows;
    struct expr *both[2] = {expr_col(b->plan, numbers[0], -1), expr_col(b->plan, numbers[1], -1)};
    struct rel *pairs = bind_filter(b, bind_attach(b, product, pending), cond);
    pairs = bind_project(b, pairs, both, names, 2);
    struct rel *left = rel_join(b->plan, JOIN_LEFT, others[0], pairs);
    equate(b, left, to[numbers[0]], pairs->out.items[0]);
    bind_nullable(b, pairs);
    left->rows = join->rows;
    out->rel = rel_join(b->plan, JOIN_FULL, left, others[1]);
    equate(b, out->rel, pairs->out.items[1], to[numbers[1]]);
    bind_nullable(b, left);
    bind_nullable(b, others[1]);
    out->rel->rows = join->rows;
    out->rel->position = join->position;
    rename_scope(b, out, to);
}

void bind_full_on(struct bind *b, pending_list *pending, struct expr *cond, struct scope *out) {
    struct rel *join = out->rel;
    b8 *right = NEW_ARRAY(b->arena, b8, pending->count + 1);
    for (i64 i = 0; i < pending->count; i++) {
        right[i] = uses_side(b, &pending->items[i], rel_right(join));
        if (right[i] && uses_side(b, &pending->items[i], rel_left(join))) {
            join_pairs(b, pending, cond, out);
            return;
        }
    }
    for (i64 i = 0; i < pending->count; i++) {
        pending_list one = {0};
        VEC_PUSH(b->arena, &one, pending->items[i]);
        join->inputs[right[i]] = bind_attach(b, join->inputs[right[i]], &one);
    }
    pending->count = 0;
    bind_add_conds(b, join, cond);
}
