/* cut.c: a pipeline in two pieces, with the registers that live in between.
 *
 * Every look-up in an index and every opcode that numbers texts or pairs is a legal cut: what stands
 * before it is one pipeline, whose rows, that is the registers still needed, are set aside by partition
 * of what is looked up or numbered; the rest is another one, which reads them partition by partition.
 * Loads of source columns behind the cut are moved before it. A pipeline is not cut inside WHEN, TRY or
 * EACH, nor where a text that lives across may be undefined for some rows. See decision 0044. */
#include "cpu/cut.h"

#include "codes/control.h"
#include "codes/loop.h"

enum { PASSES_FEW = 2 }; /* that cost less than writing rows and reading them again */

struct uses {
    u32 *defs;     /* of each register: opcodes that write it, */
    b8 *before;    /* ... before the cut, */
    b8 *scoped;    /* ... inside WHEN or TRY; */
    b8 *after;     /* it is read behind the cut */
    b8 *is_const;
    b8 *hoisted;   /* of each opcode: it moves before the cut */
};

static bool looks_up(const struct op *op) {
    return op->code == OP_PROBE || op->code == OP_MATCH || op->code == OP_EACH;
}

static bool numbers(const struct op *op) {
    return (op->code == OP_INTERN && !intern_keyed(op)) || op->code == OP_INTERN2;
}

static bool makes_numbers(const struct op *op) {
    return numbers(op) && (op->code == OP_INTERN ? op->b == INTERN_ADD : op->c != 1);
}

static void opens_scope(const struct op *op, u32 *depth) {
    *depth += op->code == OP_WHEN || op->code == OP_TRY || op->code == OP_EACH;
    *depth -= op->code == OP_END || op->code == OP_ANY;
}

static void note_after(void *arg, u16 reg) {
    ((b8 *)arg)[reg] = 1;
}

/* Rows of an index that has classes: their numbers mean something only until the next cut. */
static bool of_class(const struct exec *x, u32 rows_var) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        const struct index *index = x->program->vars[v].kind == VAR_INDEX ? x->vars[v].index : NULL;
        if (index && index->class_bits && x->program->vars[v].rows_var == rows_var) {
            return true;
        }
    }
    return false;
}

/* Whether the opcode, behind the cut, reads what only the piece before it has. */
static bool reads_source(const struct exec *x, const struct op *op, const struct uses *u) {
    bool row = (op->code == OP_LOADV || op->code == OP_LOADVN) && u->before[op->a];
    return op->code == OP_LOAD || op->code == OP_LOADN || op->code == OP_ROWNO ||
           (row && of_class(x, op->b));
}

static struct uses uses_new(struct exec *x, const struct pipeline *pipe) {
    struct arena *arena = x->arena;
    u32 regs = pipe->reg_count + 1;
    return (struct uses){NEW_ARRAY(arena, u32, regs), NEW_ARRAY(arena, b8, regs),
                         NEW_ARRAY(arena, b8, regs),  NEW_ARRAY(arena, b8, regs),
                         NEW_ARRAY(arena, b8, regs),  NEW_ARRAY(arena, b8, pipe->op_count + 1)};
}

static void find_defs(const struct pipeline *pipe, u32 at, struct uses *u) {
    u32 depth = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        opens_scope(op, &depth);
        if (op_writes(op)) {
            u->defs[op->dst]++;
            u->before[op->dst] = (b8)(u->before[op->dst] | (i < at));
            u->scoped[op->dst] = (b8)(u->scoped[op->dst] | (depth > 0));
        }
    }
    for (u32 i = 0; i < at; i++) {
        const struct op *op = &pipe->ops[i];
        u->is_const[op->dst == NO_REG ? pipe->reg_count : op->dst] |=
            (b8)(op->code == OP_CONST && u->defs[op->dst] == 1);
    }
}

/* What lives across a cut at opcode `at`; false: it cannot be cut there. */
static bool find_uses(struct exec *x, const struct pipeline *pipe, u32 at, struct uses *u) {
    *u = uses_new(x, pipe);
    find_defs(pipe, at, u);
    u32 depth = 0;
    for (u32 i = at; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        opens_scope(op, &depth);
        u->hoisted[i] = reads_source(x, op, u);
        if (u->hoisted[i]) {
            bool loads = op->code == OP_LOADV || op->code == OP_LOADVN;
            if (u->defs[op->dst] > 1 || (loads && depth > 0)) {
                return false;
            }
            u->before[op->dst] = 1;
            u->scoped[op->dst] = 0; /* every row has it now */
            continue;
        }
        op_reads(op, pipe->sinks, note_after, u->after);
    }
    for (u32 r = 0; r < pipe->reg_count; r++) {
        bool lives = u->before[r] && u->after[r] && !u->is_const[r];
        if (lives && pipe->regs[r].kind == KIND_STR && (u->scoped[r] || u->defs[r] > 1)) {
            return false;
        }
    }
    return true;
}

static void note_columns(struct exec *x, const struct pipeline *pipe, const struct uses *u,
                         struct cut *cut) {
    cut->regs = NEW_ARRAY(x->arena, u16, pipe->reg_count + 1);
    cut->kinds = NEW_ARRAY(x->arena, u8, pipe->reg_count + 1);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        bool own = r == cut->a || (cut->b != NO_REG && r == cut->b) ||
                   (cut->null != NO_REG && r == cut->null);
        if (u->before[r] && (u->after[r] || own) && !u->is_const[r]) {
            cut->regs[cut->col_count] = (u16)r;
            cut->kinds[cut->col_count++] = pipe->regs[r].kind;
        }
    }
}

/* The piece before the cut: it hands on the registers that live. */
static struct pipeline *front_of(struct exec *x, const struct pipeline *pipe, u32 at,
                                 const struct uses *u, const struct cut *cut) {
    struct pipeline *front = NEW(x->arena, struct pipeline);
    *front = *pipe;
    front->ops = NEW_ARRAY(x->arena, struct op, pipe->op_count + 2);
    front->op_count = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        if (i < at || u->hoisted[i]) {
            front->ops[front->op_count++] = pipe->ops[i];
        }
    }
    front->ops[front->op_count++] = (struct op){
        .code = OP_EMIT, .dst = NO_REG, .a = NO_REG, .b = NO_REG, .c = NO_REG, .position = -1};
    front->mark_count = 0;
    while (front->mark_count < pipe->mark_count && pipe->marks[front->mark_count].op <= at) {
        front->mark_count++;
    }
    struct sink *sink = NEW(x->arena, struct sink);
    *sink = (struct sink){.kind = SINK_ROWS,
                          .var = NO_VAR,
                          .limit = -1,
                          .key = NO_REG,
                          .col_count = cut->col_count,
                          .cols = NEW_ARRAY(x->arena, struct sink_col, cut->col_count + 1)};
    for (u32 c = 0; c < cut->col_count; c++) {
        sink->cols[c] = (struct sink_col){.reg = cut->regs[c], .null_reg = NO_REG};
    }
    front->sinks = sink;
    front->sink_count = 1;
    return front;
}

/* The piece behind it: its source are those registers. *out_at: where the opcode went. */
static struct pipeline *back_of(struct exec *x, const struct pipeline *pipe, u32 at,
                                const struct uses *u, const struct cut *cut, u32 marks,
                                u32 *out_at) {
    struct pipeline *back = NEW(x->arena, struct pipeline);
    *back = *pipe;
    back->ops = NEW_ARRAY(x->arena, struct op, pipe->op_count + cut->col_count + 1);
    back->op_count = 0;
    back->source = (struct source){.kind = SOURCE_VAR,
                                   .ref = NO_VAR,
                                   .rows = pipe->source.rows,
                                   .col_count = cut->col_count,
                                   .cols = NEW_ARRAY(x->arena, u32, cut->col_count + 1)};
    back->prune_count = 0;
    for (u32 i = 0; i < at; i++) {
        if (pipe->ops[i].code == OP_CONST && u->is_const[pipe->ops[i].dst]) {
            back->ops[back->op_count++] = pipe->ops[i];
        }
    }
    for (u32 c = 0; c < cut->col_count; c++) {
        back->source.cols[c] = c;
        back->ops[back->op_count++] = (struct op){.code = OP_LOAD,
                                                  .dst = cut->regs[c],
                                                  .a = NO_REG,
                                                  .b = NO_REG,
                                                  .c = NO_REG,
                                                  .imm = c,
                                                  .position = -1};
    }
    *out_at = back->op_count;
    back->marks = NEW_ARRAY(x->arena, struct row_mark, pipe->mark_count + 1);
    back->mark_count = 0;
    u32 mark = marks;
    for (u32 i = at; i < pipe->op_count; i++) {
        for (; mark < pipe->mark_count && pipe->marks[mark].op <= i; mark++) {
            back->marks[back->mark_count++] =
                (struct row_mark){back->op_count, pipe->marks[mark].rel};
        }
        if (!u->hoisted[i]) {
            back->ops[back->op_count++] = pipe->ops[i];
        }
    }
    for (; mark < pipe->mark_count; mark++) {
        back->marks[back->mark_count++] = (struct row_mark){back->op_count, pipe->marks[mark].rel};
    }
    return back;
}

/* Opcodes by which packed keys are made of a number: what comes out tells numbers apart. */
static bool packs(u16 code) {
    switch (code) {
    case OP_I64_I32:
    case OP_I32_I64:
    case OP_ADD_I32:
    case OP_ADD_I64:
    case OP_SUB_I32:
    case OP_SUB_I64:
    case OP_MUL_I32:
    case OP_SHL_I64:
    case OP_BITOR_I64:
    case OP_INTERN2:
        return true;
    default:
        return false;
    }
}

/* Whether the keys of all sinks tell apart what the opcode tells apart. Where a NULL takes the number's
 * place, its flag is noted: such rows are alike. */
static bool tells_groups(struct exec *x, const struct pipeline *pipe, u32 at, const struct uses *u,
                         struct cut *cut) {
    b8 *carries = NEW_ARRAY(x->arena, b8, pipe->reg_count + 1);
    bool fine = pipe->sink_count > 0;
    carries[pipe->ops[at].dst] = 1;
    for (u32 i = at + 1; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        bool guard = op->code == OP_SEL_I32 || op->code == OP_SEL_I64;
        if (guard && carries[op->c] && u->before[op->a] && !u->is_const[op->a] &&
            (cut->null == NO_REG || cut->null == op->a)) {
            cut->null = op->a;
            carries[op->dst] = 1;
        } else if (packs(op->code) && op_writes(op)) {
            bool two = op_infos[op->code].arity > 1 || op->code == OP_INTERN2;
            carries[op->dst] |= (b8)(carries[op->a] | (two && carries[op->b]));
        }
    }
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        fine = fine && sink->kind == SINK_AGG && sink->key != NO_REG && carries[sink->key];
    }
    cut->null = fine ? cut->null : NO_REG;
    return fine;
}

static bool cut_at(struct exec *x, const struct pipeline *pipe, u32 at, struct uses *u,
                   struct cut *cut) {
    const struct op *op = &pipe->ops[at];
    if (!find_uses(x, pipe, at, u)) {
        return false;
    }
    *cut = (struct cut){.var = op->imm, .a = op->a, .b = NO_REG, .null = NO_REG};
    cut->by = looks_up(op) ? CUT_KEY : op->code == OP_INTERN ? CUT_TEXT : CUT_PAIR;
    cut->b = cut->by == CUT_PAIR ? op->b : NO_REG;
    if (u->is_const[cut->a] || (cut->b != NO_REG && u->is_const[cut->b])) {
        return false; /* all rows are alike */
    }
    if (!row_parts_fit(x, cut)) {
        return false;
    }
    cut->adds = makes_numbers(op);
    cut->groups = cut->adds && tells_groups(x, pipe, at, u, cut);
    note_columns(x, pipe, u, cut);
    return true;
}

/* Whether cuts are possible at all: rows come in another order, and nobody stops early. */
static bool may_cut(const struct exec *x, const struct pipeline *pipe) {
    bool fine = x->mem->temp && !x->whole && pipe->source.kind != SOURCE_ONE &&
                pipe->source.kind != SOURCE_DICT;
    if (pipe->source.kind == SOURCE_VAR && pipe->source.ref != NO_VAR) {
        fine = fine && !x->program->vars[pipe->source.ref].in_order;
    }
    for (u32 s = 0; s < pipe->sink_count && fine; s++) {
        const struct sink *sink = &pipe->sinks[s];
        fine = sink->kind != SINK_LUT && sink->limit < 0;
    }
    for (u32 i = 0; i < pipe->op_count && fine; i++) {
        u16 code = pipe->ops[i].code;
        fine = code != OP_RUN && code != OP_MEET && code != OP_COMMON;
    }
    return fine;
}

/* The pipeline uses the variable once, but for look-ups of the same key. */
static bool used_once(const struct pipeline *pipe, const struct op *op) {
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *other = &pipe->ops[i];
        bool same = looks_up(op) && looks_up(other) && other->a == op->a;
        if (op_variable(other) == op->imm && other != op && !same) {
            return false;
        }
    }
    return true;
}

static i64 passes_of(const struct exec *x, const struct pipeline *pipe) {
    i64 passes = 1;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        passes <<= looks_up(op) ? x->vars[op->imm].index->class_bits : 0;
    }
    return passes;
}

static bool is_wanted(const struct exec *x, const struct op *op, const b8 *wanted, i64 passes) {
    if (looks_up(op)) {
        return x->vars[op->imm].index->class_bits && passes > PASSES_FEW;
    }
    if (!numbers(op)) {
        return false;
    }
    return makes_numbers(op) ? wanted && wanted[op->imm] : x->vars[op->imm].leaves != NULL;
}

/* Rows are handed to sinks that share a scan as soon as each has what it wants. What follows may be cut where nothing
 * was handed on before: EMITs move behind whatever neither drops rows nor fails nor changes what they read. */
static const struct pipeline *emit_late(struct exec *x, const struct pipeline *pipe) {
    if (pipe->sink_count < 2) {
        return pipe;
    }
    struct uses u = uses_new(x, pipe);
    struct pipeline *late = NEW(x->arena, struct pipeline);
    struct op *held = NEW_ARRAY(x->arena, struct op, pipe->op_count + 1);
    u32 held_count = 0, depth = 0;
    find_defs(pipe, 0, &u);
    *late = *pipe;
    late->ops = NEW_ARRAY(x->arena, struct op, pipe->op_count + 1);
    late->op_count = 0;
    for (u32 i = 0; i <= pipe->op_count; i++) {
        const struct op *op = i < pipe->op_count ? &pipe->ops[i] : NULL;
        bool again = op && op_writes(op) && u.defs[op->dst] > 1;
        bool scope = op && (op->code == OP_WHEN || op->code == OP_TRY || op->code == OP_EACH);
        bool stops = !op || scope || again || op_shapes(op) || op_may_fault(op);
        for (u32 h = 0; stops && h < held_count; h++) {
            late->ops[late->op_count++] = held[h];
        }
        held_count = stops ? 0 : held_count;
        if (op && op->code == OP_EMIT && depth == 0) {
            held[held_count++] = *op;
        } else if (op) {
            opens_scope(op, &depth);
            late->ops[late->op_count++] = *op;
        }
    }
    return late;
}

/* What is asked of a search for cuts. */
struct cutting {
    struct exec *x;
    const b8 *wanted; /* by variable: interners; NULL = none */
    b8 *done;         /* by variable: there is a cut for it */
};

/* The first opcode from `from` on to cut at; op_count: none. */
static u32 next_cut(const struct cutting *c, const struct pipeline *pipe, u32 from, struct uses *u,
                    struct cut *cut) {
    struct exec *x = c->x;
    u32 depth = 0;
    i64 passes = passes_of(x, pipe);
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        if (op->code == OP_EMIT) {
            break;
        }
        if (i >= from && depth == 0 && is_wanted(x, op, c->wanted, passes) && !c->done[op->imm] &&
            used_once(pipe, op) && cut_at(x, pipe, i, u, cut)) {
            c->done[op->imm] = 1;
            return i;
        }
        opens_scope(op, &depth);
    }
    return pipe->op_count;
}

bool cut_possible(struct exec *x, const struct pipeline *pipe, u32 var) {
    bool fine = may_cut(x, pipe) && !exec_provider(x, pipe);
    for (u32 s = 0; s < pipe->sink_count && fine; s++) {
        const struct sink *sink = &pipe->sinks[s];
        fine = !sink->append && !sink->set_var && sink->kind != SINK_MARK;
    }
    b8 *wanted = NEW_ARRAY(x->arena, b8, x->program->var_count + 1);
    wanted[var] = 1;
    pipe = emit_late(x, pipe);
    struct cutting c = {x, wanted, NEW_ARRAY(x->arena, b8, x->program->var_count + 1)};
    struct uses u;
    struct cut cut;
    for (u32 at = 0; fine && at < pipe->op_count; at++) {
        at = next_cut(&c, pipe, at, &u, &cut);
        if (at < pipe->op_count && cut.var == var) {
            return true;
        }
    }
    return false;
}

struct stage *cut_stages(struct exec *x, const struct pipeline *pipe, const b8 *wanted,
                         u32 *out_count) {
    struct stage *stages = NEW_ARRAY(x->arena, struct stage, pipe->op_count + 2);
    u32 count = 0, from = 0, marks = 0;
    const struct pipeline *rest = emit_late(x, pipe);
    struct cutting c = {x, wanted, NEW_ARRAY(x->arena, b8, x->program->var_count + 1)};
    while (may_cut(x, pipe)) {
        struct uses u;
        struct stage *stage = &stages[count];
        u32 at = next_cut(&c, rest, from, &u, &stage->cut);
        if (at == rest->op_count) {
            break;
        }
        stage->pipe = front_of(x, rest, at, &u, &stage->cut);
        stage->mark_first = marks;
        marks += stage->pipe->mark_count;
        rest = back_of(x, rest, at, &u, &stage->cut, stage->pipe->mark_count, &from);
        from++; /* behind the opcode itself */
        count++;
    }
    stages[count].pipe = (struct pipeline *)(count ? rest : pipe); /* which nobody changes */
    stages[count].mark_first = marks;
    *out_count = count + 1;
    return stages;
}
