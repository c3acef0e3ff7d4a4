/* constant.c: the value of an expression of constants.
 *
 * The expression is lowered into a pipeline that is never run: opcodes of literals are folded as
 * they are emitted (build.c), so what is left is one literal, or opcodes that fault. Binding and
 * the optimiser ask for it through plan.evaluator, one call or cast at a time; rows of VALUES are read off in the
 * same way. One scratch pipeline serves all, and is set back after each. */
#include "lower/lower_int.h"

bool lower_const_lit(struct builder *b, struct value v, struct type type, union lit *out,
                     bool *out_null) {
    enum kind kind = type_kind(type);
    *out_null = false;
    if (b->l->status || b->raises) {
        return false;
    }
    if (value_is_null(b, v)) {
        *out_null = true;
        return true;
    }
    if (v.null != NO_REG || !build_is_const(b, v.reg, out)) {
        return false;
    }
    u16 reg = lower_canonical(b, v, type);
    return build_is_const(b, reg, out) && reg_kind(b, reg) == kind;
}

struct scratch {
    struct evaluator evaluator; /* first: a pointer to it is one to the whole */
    struct lower lower;
    struct lower_limits limits;
    struct plan none; /* expressions of constants name no columns */
    struct error err;
    struct builder *builder;
};

static struct expr *evaluate(struct evaluator *evaluator, const struct expr *expr) {
    struct scratch *e = (struct scratch *)evaluator;
    struct builder *b = e->builder;
    struct mark mark = build_mark(b);
    union lit lit;
    bool is_null;
    struct value v = lower_expr(b, expr);
    bool known = lower_const_lit(b, v, expr->type, &lit, &is_null);
    build_undo(b, mark);
    b->depth = 0;
    e->lower.status = ERR_OK; /* a failure is for whoever lowers the plan to report */
    if (!known) {
        return NULL;
    }
    struct expr *value = expr_new(e->lower.arena, EXPR_CONST, expr->type, expr->position);
    value->is_null = is_null;
    if (!is_null) {
        value->value = lit;
    }
    return value;
}

struct evaluator *evaluator_new(struct arena *arena, i32 zone) {
    struct scratch *e = NEW(arena, struct scratch);
    e->evaluator.run = evaluate;
    e->limits.zone = zone;
    e->none.arena = arena;
    e->lower.plan = &e->none;
    e->lower.limits = &e->limits;
    e->lower.arena = arena;
    e->lower.err = &e->err;
    e->builder = build_new(&e->lower, SOURCE_ONE, 0, 1, 1);
    return &e->evaluator;
}
