/* share.c: a part of the plan gets a second user.
 *
 * SHARED gives each user columns of its own, so when an input that others already build upon is
 * shared, everything above that named its columns must name the new ones. Columns have plan-wide
 * numbers: one walk from the root does it, stopping at the shared input itself. */
#include "opt/opt_int.h"

struct rel *opt_shared(struct plan *plan, struct rel *input, const u32 *cols, i64 count) {
    struct rel *shared = rel_new(plan, REL_SHARED, input, NULL);
    for (i64 i = 0; i < count; i++) {
        struct plan_col like = plan->cols.items[cols[i]];
        VEC_PUSH(plan->arena, &shared->left_cols, cols[i]);
        u32 to = plan_col_new(plan, like.name, like.type, like.nullable);
        VEC_PUSH(plan->arena, &shared->out, to);
    }
    shared->rows = input->rows;
    return shared;
}

struct renaming {
    struct plan *plan;
    struct rel *stop;
    struct expr **map;
    u32 *to; /* by column: the new one + 1; 0 = stays */
    i64 to_count;
    VEC(const struct rel *) seen;
};

static void rename_list(const struct renaming *r, u32 *items, i64 count) {
    for (i64 i = 0; i < count; i++) {
        if (items[i] < r->to_count && r->to[items[i]]) {
            items[i] = r->to[items[i]] - 1;
        }
    }
}

static void rename_slot(struct expr **slot, void *arg) {
    const struct renaming *r = arg;
    *slot = expr_map(r->plan->arena, *slot, r->map);
}

static bool seen_before(struct renaming *r, const struct rel *rel) {
    for (i64 i = 0; i < r->seen.count; i++) {
        if (r->seen.items[i] == rel) {
            return true;
        }
    }
    VEC_PUSH(r->plan->arena, &r->seen, rel);
    return false;
}

static void rename_rel(struct renaming *r, struct rel *rel) {
    if (rel == r->stop || (rel->kind == REL_SHARED && seen_before(r, rel))) {
        return;
    }
    rel_each_expr(rel, rename_slot, r);
    bool passes = rel->kind == REL_FILTER || rel->kind == REL_SORT || rel->kind == REL_LIMIT ||
                  rel->kind == REL_JOIN || rel->kind == REL_WINDOW;
    if (passes) {
        rename_list(r, rel->out.items, rel->out.count);
    }
    if (rel->input_count == 0 || rel->inputs[0] != r->stop) {
        rename_list(r, rel->left_cols.items, rel->left_cols.count);
        rename_list(r, rel->right_cols.items, rel->right_cols.count);
    }
    for (i32 i = 0; i < rel->input_count; i++) {
        struct rel *input = rel->inputs[i]; /* a SHARED one is looked up by rename_rel itself */
        if (rel->kind != REL_SHARED || input->kind == REL_SHARED || !seen_before(r, input)) {
            rename_rel(r, input);
        }
    }
}

void opt_share(struct plan *plan, struct rel *parent, i32 which) {
    struct rel *input = parent->inputs[which];
    struct rel *use = opt_shared(plan, input, input->out.items, input->out.count);
    struct renaming r = {.plan = plan, .stop = input, .to_count = plan->cols.count};
    r.to = NEW_ARRAY(plan->arena, u32, plan->cols.count + 1);
    r.map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < input->out.count; i++) {
        r.to[input->out.items[i]] = use->out.items[i] + 1;
        r.map[input->out.items[i]] = expr_col(plan, use->out.items[i], -1);
    }
    parent->inputs[which] = use;
    rename_rel(&r, plan->root);
}
