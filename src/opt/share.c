/* share.c: a part of the plan gets a second user.
 *
 * SHARED gives each user columns of its own, so when an input that others already build upon is
 * shared, everything above that named its columns must name the new ones. Columns have plan-wide
 * numbers: one walk from the root does it, stopping at the shared input itself. */
#include "opt/opt_int.h"

struct renaming {
    struct plan *plan;
    const struct rel *stop;
    struct expr **map;
    i64 map_count;
};

/* Uses of the input go on naming its own columns. */
static bool rename_rel(struct rel *rel, void *arg) {
    const struct renaming *r = arg;
    bool uses = rel_shares(rel) && rel_input(rel) == r->stop;
    if (rel != r->stop && !uses) {
        rel_rename(r->plan->arena, rel, r->map, r->map_count);
    }
    return rel != r->stop && !uses;
}

void opt_share(struct plan *plan, struct rel *parent, i32 which) {
    struct rel *input = parent->inputs[which];
    struct rel *use = rel_shared(plan, input, input->out.items, NULL, input->out.count);
    struct renaming r = {.plan = plan, .stop = input, .map_count = plan->cols.count};
    r.map = NEW_ARRAY(plan->arena, struct expr *, plan->cols.count + 1);
    for (i64 i = 0; i < input->out.count; i++) {
        r.map[input->out.items[i]] = expr_col(plan, use->out.items[i], -1);
    }
    parent->inputs[which] = use;
    rel_walk(plan->arena, plan->root, rename_rel, &r);
}
