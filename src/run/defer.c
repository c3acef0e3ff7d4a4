/* defer.c: faults that count only where a result is used.
 *
 * A subquery that does not depend on the rows around it runs ahead of them, in steps of its own.
 * SQL evaluates it only when a row asks for its value, so a fault in such a step is not raised: it
 * is written into the deferral's literal, the steps that are left do not run, and what they were
 * to make stays empty. Pipelines that use the value raise the number in that literal first, for
 * the rows that get there (opcode RAISE). */
#include "run/run_int.h"

#include "codes/loop.h"

static const struct deferral *own(const struct exec *x, const struct step *step) {
    return &x->program->deferrals[step->defer - 1];
}

static bool failed(const struct exec *x, u32 number) {
    return x->lits[x->program->deferrals[number - 1].lit].b8 != 0;
}

/* The step that makes the result, an index over its rows. */
static bool is_last(const struct exec *x, const struct step *step) {
    return step->kind == STEP_BUILD && step->src == own(x, step)->rows_var;
}

static void set(struct exec *x, const struct step *step, u8 fault, i32 position) {
    const struct deferral *deferral = own(x, step);
    struct variable *rows = &x->vars[deferral->rows_var];
    ASSERT(fault != FAULT_NONE && x->program->lit_kinds[deferral->lit] == KIND_B8);
    x->lits[deferral->lit].b8 = fault;
    x->deferred_at[step->defer - 1] = position;
    variable_reset(rows);
    rows->on_host = 1;
}

void defer_open(struct exec *x) {
    u32 count = x->program->deferral_count;
    x->deferred_at = NEW_ARRAY(x->arena, i32, count + 1);
    for (u32 i = 0; i < count; i++) {
        x->lits[x->program->deferrals[i].lit].b8 = 0;
    }
}

bool defer_skips(struct exec *x, const struct step *step) {
    for (u32 d = step->defer; d; d = x->program->deferrals[d - 1].parent) {
        bool makes = d == step->defer && is_last(x, step); /* an index of no rows */
        ASSERT(!failed(x, d) || x->vars[x->program->deferrals[d - 1].rows_var].rows == 0);
        if (failed(x, d) && !makes) {
            return true;
        }
    }
    if (step->defer && is_last(x, step) && own(x, step)->single && !failed(x, step->defer) &&
        x->vars[step->src].rows > 1) {
        set(x, step, FAULT_MORE_ROWS, own(x, step)->position);
    }
    return false;
}

bool defer_may_queue(const struct exec *x, const struct step *step) {
    bool fails = false;
    for (u32 d = step->defer; d; d = x->program->deferrals[d - 1].parent) {
        fails = fails || failed(x, d);
    }
    bool several = step->defer && is_last(x, step) && own(x, step)->single && x->vars[step->src].rows > 1;
    return !fails && !several;
}

bool defer_fault(struct exec *x, const struct step *step) {
    u64 key = atomic_load_explicit(&x->fault, memory_order_relaxed);
    if (key == ~0ULL || !step->defer) {
        return false;
    }
    set(x, step, (u8)key, fault_position(x, step));
    atomic_store(&x->fault, ~0ULL);
    return true;
}

i32 defer_position(const struct exec *x, const struct pipeline *pipe, const struct op *op) {
    for (u32 i = 0; op->code == OP_RAISE_B8 && i < pipe->op_count; i++) {
        const struct op *from = &pipe->ops[i];
        for (u32 d = 0;
             from->code == OP_CONST && from->dst == op->a && d < x->program->deferral_count; d++) {
            if (x->program->deferrals[d].lit == from->imm) {
                return x->deferred_at[d];
            }
        }
    }
    return op->position;
}
