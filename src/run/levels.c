/* levels.c: edges of a graph that need no step to make them: a provider has them sorted.
 *
 * A pipeline that numbers the nodes of two columns from the least one on, before STEP_CLIQUES, makes of a
 * provider's levels (store/scan.h) what these are already, where both count from that node in 32 bits. It does not
 * run then, and the step has the arrays as they lie. They are in the order of the nodes' values: where few nodes have
 * most of the edges that is a bad one, and the edges are taken as rows, and sorted by degree (decision 0035). */
#include "run/levels.h"

#include "codes/control.h"
#include "codes/loop.h"
#include "run/run_int.h"

enum { PAIRS_MOST = 32 }; /* of neighbours, for every edge */

/* What a register holds: a column less a number, or a number; col: -1. */
struct traced {
    i64 col;
    i128 less;
    b8 known;
};

static bool literal_of(const struct exec *x, u64 no, i128 *out) {
    switch (x->program->lit_kinds[no]) {
    case KIND_I32:
        *out = x->lits[no].i32;
        return true;
    case KIND_I64:
        *out = x->lits[no].i64;
        return true;
    default:
        return false;
    }
}

static bool trace_op(const struct exec *x, const struct pipeline *pipe, const struct op *op, struct traced *regs) {
    i128 number = 0;
    switch (op->code) {
    case OP_LOAD:
        regs[op->dst] = (struct traced){pipe->source.cols[op->imm], 0, 1};
        return true;
    case OP_CONST:
        regs[op->dst] = (struct traced){-1, 0, literal_of(x, op->imm, &number)};
        regs[op->dst].less = number;
        return regs[op->dst].known;
    case OP_I32_I64:
    case OP_I64_I32:
        regs[op->dst] = regs[op->a];
        return regs[op->a].known;
    case OP_SUB_I64: {
        const struct traced *a = &regs[op->a], *b = &regs[op->b];
        regs[op->dst] = (struct traced){a->col, a->less + b->less, a->known && b->known && b->col < 0 && a->col >= 0};
        return regs[op->dst].known;
    }
    case OP_EMIT:
        return true;
    default:
        return false;
    }
}

/* Whether the pipeline's rows are both columns, in order, less `base`. */
static bool numbers_nodes(const struct exec *x, const struct pipeline *pipe, i64 base) {
    const struct sink *sink = &pipe->sinks[0];
    if (pipe->sink_count != 1 || sink->kind != SINK_ROWS || sink->append || sink->keep_count || sink->top_key_count ||
        sink->limit >= 0 || sink->col_count != 2) {
        return false;
    }
    struct traced *regs = NEW_ARRAY(x->arena, struct traced, pipe->reg_count + 1);
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (!trace_op(x, pipe, &pipe->ops[i], regs)) {
            return false;
        }
    }
    for (u32 i = 0; i < 2; i++) {
        const struct traced *t = &regs[sink->cols[i].reg];
        if (!t->known || t->col != i || t->less != base || sink->cols[i].null_reg != NO_REG) {
            return false;
        }
    }
    return true;
}

bool levels_fit(const struct exec *x, const struct block *block, u32 step) {
    if (step + 1 >= block->step_count || block->steps[step].kind != STEP_PIPELINE ||
        block->steps[step + 1].kind != STEP_CLIQUES) {
        return false;
    }
    const struct pipeline *pipe = block->steps[step].pipeline;
    const struct scan_provider *provider = exec_provider(x, pipe);
    const struct scan_levels *l = provider ? provider->levels : NULL;
    bool fits = l && l->count == 2 && l->up && l->rows > 0 && l->rows < (i64)0xffffffff &&
                l->pairs <= PAIRS_MOST * (u64)l->rows && pipe->sinks[0].var == block->steps[step + 1].src;
    for (u32 i = 0; fits && i < 2; i++) {
        fits = l->levels[i].value_bytes == 4 && l->levels[i].base == l->levels[0].base;
    }
    return fits && l->levels[0].start_bytes == 4 && numbers_nodes(x, pipe, l->levels[0].base);
}

void levels_take(struct exec *x, const struct block *block, u32 step) {
    struct variable *var = &x->vars[block->steps[step + 1].src];
    struct scan_provider *provider = exec_provider(x, block->steps[step].pipeline);
    variable_reset(var);
    var->levels = provider;
    var->rows = provider->levels->rows;
    var->on_host = 1;
}
