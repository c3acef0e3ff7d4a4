/* condition.c: the conjuncts of a filter: their order, and how many FILTER opcodes they make.
 *
 * Each conjunct is first lowered on trial, to see whether it might raise and what it costs, and
 * taken back. Those that cannot raise go first, cheap ones before dear ones, so that the others
 * meet fewer rows; those that might keep their written order. A conjunct that reads only columns
 * the one before it has loaded is joined to it by AND, because a second FILTER would cost more than
 * it saves; otherwise each conjunct is its own FILTER, so that columns needed later are loaded for
 * surviving rows only. See decision 0007. */
#include "lower/lower_int.h"

#include "codes/control.h"

struct conjunct {
    const struct expr *expr;
    bool raises;
    i32 bucket; /* of cost */
};

static void try_lower(struct builder *b, struct conjunct *c) {
    struct mark m = build_mark(b);
    b->depth++; /* nothing found here may be remembered */
    struct value v = lower_expr(b, c->expr);
    UNUSED(v);
    b->depth--;
    i64 cost = 0;
    for (i64 i = m.ops; i < b->ops.count; i++) {
        const struct op_info *info = &op_infos[b->ops.items[i].code];
        c->raises = c->raises || b->faults.items[i];
        cost += info->flags & OP_CONTROL             ? 2
                : info->flags & (OP_HOST | OP_MAKES) ? 200
                                                     : info->cost;
    }
    c->bucket = cost < 40 ? 0 : cost < 100 ? 1 : 2;
    build_undo(b, m);
}

static void sort_conjuncts(struct arena *arena, struct conjunct *list, i64 count) {
    struct conjunct *sorted = NEW_ARRAY(arena, struct conjunct, count + 1);
    i64 at = 0;
    for (i32 bucket = 0; bucket <= 3; bucket++) { /* stable: the written order within a bucket */
        for (i64 i = 0; i < count; i++) {
            if ((list[i].raises ? 3 : list[i].bucket) == bucket) {
                sorted[at++] = list[i];
            }
        }
    }
    memcpy(list, sorted, sizeof *list * (size_t)count);
}

/* Whether every column `expr` names is in `cols`. */
struct col_set {
    const u8 *cols;
    u8 *add;
};

static bool visit_within(const struct expr *expr, void *arg) {
    const struct col_set *set = arg;
    return expr->kind != EXPR_COL || set->cols[expr->col];
}

static bool visit_add(const struct expr *expr, void *arg) {
    const struct col_set *set = arg;
    if (expr->kind == EXPR_COL) {
        set->add[expr->col] = 1;
    }
    return true;
}

static void emit_filter(struct builder *b, u16 cond) {
    if (build_is_bool(b, cond, true)) {
        return;
    }
    prune_note(b, cond);
    build_plain(b, OP_FILTER, cond, 0);
}

void lower_filter(struct builder *b, struct expr *const *conds, i64 count) {
    struct lower *l = b->l;
    struct conjunct *list = NEW_ARRAY(l->arena, struct conjunct, count + 1);
    for (i64 i = 0; i < count && !l->status; i++) {
        list[i].expr = conds[i];
        try_lower(b, &list[i]);
    }
    sort_conjuncts(l->arena, list, count);
    u8 *cols = NEW_ARRAY(l->arena, u8, l->plan->cols.count + 1);
    struct col_set set = {cols, cols};
    u16 cond = NO_REG;
    for (i64 i = 0; i < count && !l->status; i++) {
        bool joins = cond != NO_REG && !list[i].raises && list[i].bucket == 0 &&
                     expr_walk(list[i].expr, visit_within, &set);
        if (cond != NO_REG && !joins) {
            emit_filter(b, cond);
            cond = NO_REG;
            memset(cols, 0, (size_t)l->plan->cols.count + 1);
        }
        u16 next = lower_expr(b, list[i].expr).reg;
        expr_walk(list[i].expr, visit_add, &set);
        cond = cond == NO_REG ? next : build_and(b, cond, next);
    }
    if (cond != NO_REG && !l->status) {
        emit_filter(b, cond);
    }
}
