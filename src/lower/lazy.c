/* lazy.c: subqueries whose errors count only where their value is used.
 *
 * The right side of a lazy join runs ahead, in steps marked with a deferral: the runtime keeps a
 * fault of theirs in a literal instead of raising it. Every use of the join's columns raises that
 * literal first (lower_col), under whatever condition it stands; handing a column on to a variable
 * is no use, and the variable's column is lazy in its turn (lower_carry). So CASE, COALESCE and
 * filters decide per row, in the same pipelines as ever, and a subquery that cannot fail costs
 * nothing, since the plan does not call it lazy.
 *
 * The steps may not run at all, so nothing they make may serve anybody else: look-up tables, ranks
 * and sets made for them are forgotten, and shared subplans with users elsewhere are made before.
 * See decision 0014. */
#include "lower/lower_int.h"

#include "codes/loop.h"

struct uses {
    struct lower *l;
    VEC(const struct rel *) inputs;
    VEC(i64) counts;
};

static void count_use(struct rel *rel, void *arg) {
    struct uses *u = arg;
    if (!rel_shares(rel)) {
        return;
    }
    for (i64 i = 0; i < u->inputs.count; i++) {
        if (u->inputs.items[i] == rel_input(rel)) {
            u->counts.items[i]++;
            return;
        }
    }
    VEC_PUSH(u->l->arena, &u->inputs, (const struct rel *)rel_input(rel));
    VEC_PUSH(u->l->arena, &u->counts, (i64)1);
}

static void share_before(struct lower *l, struct rel *rel) {
    struct uses u = {.l = l};
    rel_each(l->arena, rel, count_use, &u);
    for (i64 i = 0; i < u.inputs.count && !l->status; i++) {
        shared_make(l, u.inputs.items[i], u.counts.items[i]);
    }
}

void lazy_open(struct lower *l, const struct rel *join, struct lazy *out) {
    *out = (struct lazy){.outer = l->defer};
    if (!join->join.lazy) {
        return;
    }
    share_before(l, rel_right(join));
    union lit none = {.b8 = 0};
    struct deferral deferral = {.lit = lower_lit_new(l, KIND_B8, none),
                                .parent = l->defer,
                                .single = join->join.kind == JOIN_SINGLE,
                                .position = rel_right(join)->position};
    VEC_PUSH(l->arena, &l->deferrals, deferral);
    out->number = (u32)l->deferrals.count;
    out->lit = deferral.lit + 1;
    lazy_enter(l, out);
}

void lazy_enter(struct lower *l, struct lazy *lazy) {
    if (lazy->number) {
        l->defer = lazy->number;
        lazy->luts = l->luts.count;
        lazy->ranks = l->ranks.count;
        lazy->in_sets = l->in_sets.count;
    }
}

void lazy_leave(struct lower *l, const struct lazy *lazy) {
    if (lazy->number) {
        l->defer = lazy->outer;
        l->luts.count = lazy->luts;
        l->ranks.count = lazy->ranks;
        l->in_sets.count = lazy->in_sets;
    }
}

void lazy_use(struct builder *b, const struct binding *bind) {
    if (bind->lazy && !b->l->status) {
        u16 when = bind->lazy_when ? (u16)(bind->lazy_when - 1) : (u16)NO_REG;
        if (bind->lazy_there) {
            u16 none = build_int(b, KIND_I64, 0);
            when = build_op(b, OP_GE_I64, bind->row_reg, none, NO_REG, range_bool());
        }
        u16 fault = build_param(b, bind->lazy - 1, KIND_B8, range_exact(0, FAULT_COUNT - 1));
        if (when == NO_REG) {
            build_op(b, OP_RAISE_B8, fault, NO_REG, NO_REG, range_exact(0, 0));
            return;
        }
        struct scope scope = build_when(b, when);
        build_op(b, OP_RAISE_B8, fault, NO_REG, NO_REG, range_exact(0, 0));
        build_end(b, scope);
    }
}

struct out_col lower_carry(struct builder *b, u32 col) {
    struct out_col out = {.type = b->l->plan->cols.items[col].type};
    u32 lazy = bind_at(b, col)->lazy;
    if (lazy && (bind_at(b, col)->lazy_there ||
                 bind_at(b, col)->lazy_when)) { /* which rows that is is not known behind a variable */
        out.value = lower_col(b, col);
        return out;
    }
    bind_at(b, col)->lazy = 0;
    out.value = lower_col(b, col);
    bind_at(b, col)->lazy = lazy;
    out.lazy = lazy;
    return out;
}
