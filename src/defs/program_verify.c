/* program_verify.c: is this program what program.h says a program is?
 *
 * Called on every program in test builds, before it runs: a mistake of lowering is then an internal
 * error that names step and opcode, not a wrong answer or a crash on one of the devices. It checks
 * structure only: indices, kinds, order of definition and use, nesting; it proves nothing about
 * ranges. */
#include "defs/program.h"

#include "codes/op.h"

struct check {
    const struct program *program;
    const struct pipeline *pipe;
    struct error *err;
    struct arena *arena;
    b8 *regs_set; /* of the current pipeline */
    b8 *vars_set; /* written by a step so far, or filled from the start */
    u8 *kept;     /* groups of which some may be dropped: 1, and 2 once they were read */
    u32 step;     /* number of the current step */
    u32 pc;       /* of the current opcode; NO_VAR outside a body */
};

static wf_status bad(struct check *c, const char *what) {
    if (c->pc != NO_VAR) {
        const char *name =
            c->pipe->ops[c->pc].code < OP_COUNT ? op_infos[c->pipe->ops[c->pc].code].name : "?";
        return error_set(c->err, ERR_INTERNAL, -1, "invalid program: step %u, opcode %u (%s): %s",
                         c->step, c->pc, name, what);
    }
    return error_set(c->err, ERR_INTERNAL, -1, "invalid program: step %u: %s", c->step, what);
}

#define NEED(cond, what)         \
    do {                         \
        if (!(cond)) {           \
            return bad(c, what); \
        }                        \
    } while (0)

static wf_status check_read(struct check *c, u16 reg, u8 kind) {
    NEED(reg < c->pipe->reg_count, "a register that does not exist is read");
    NEED(c->regs_set[reg], "a register is read before it is set");
    NEED(c->pipe->regs[reg].kind == kind, "an operand has the wrong kind");
    return ERR_OK;
}

static wf_status check_write(struct check *c, const struct op *op, u8 kind) {
    NEED(op->dst < c->pipe->reg_count, "the result is no register");
    const struct reg *reg = &c->pipe->regs[op->dst];
    NEED(reg->kind == kind, "the result has the wrong kind");
    NEED(!reg->is_const || op->code == OP_CONST, "a constant register is written");
    c->regs_set[op->dst] = 1;
    return ERR_OK;
}

static wf_status check_var(struct check *c, u32 var, u32 kind_mask) {
    NEED(var < c->program->var_count, "a variable that does not exist is named");
    NEED(kind_mask >> c->program->vars[var].kind & 1, "a variable has the wrong kind");
    return ERR_OK;
}

/* Reading: somebody must have filled it, and it must not have been released. */
static wf_status check_var_read(struct check *c, u32 var, u32 kind_mask) {
    TRY(check_var(c, var, kind_mask));
    NEED(c->vars_set[var], "a variable is read before it is filled");
    NEED(c->program->vars[var].last_use >= c->step, "a variable is read after its last use");
    NEED(!c->kept[var] || c->kept[var]++ == 1, "groups of which some are dropped are read twice");
    return ERR_OK;
}

enum {
    MASK_ROWS = 1 << VAR_ROWS | 1 << VAR_AGG,
    MASK_INDEX = 1 << VAR_INDEX,
    MASK_LUT = 1 << VAR_LUT,
    MASK_INTERN = 1 << VAR_INTERN
};

static wf_status check_prunes(struct check *c, const struct prune *prunes, u32 count, u32 cols) {
    for (u32 i = 0; i < count; i++) {
        const u32 lits[2] = {prunes[i].lo_lit, prunes[i].hi_lit};
        NEED(prunes[i].col < cols, "a column that is not loaded prunes");
        for (u32 j = 0; j < 2; j++) {
            NEED(lits[j] == NO_LIT || lits[j] < c->program->lit_count,
                 "a literal that does not exist prunes");
            NEED(lits[j] == NO_LIT || c->program->lit_kinds[lits[j]] == prunes[i].kind,
                 "a literal that prunes has the wrong kind");
        }
    }
    return ERR_OK;
}

static wf_status check_sink(struct check *c, const struct sink *sink);

static wf_status check_words(struct check *c, const struct op *op) {
    NEED(op->b > 0 && (u32)op->a + op->b <= c->pipe->reg_count, "more words are read than there are");
    for (u32 i = 0; i < op->b; i++) {
        TRY(check_read(c, (u16)(op->a + i), KIND_I64));
    }
    return ERR_OK;
}

static wf_status check_rounded(struct check *c, const struct op *op) {
    bool sum = op->code == OP_FROUND;
    NEED(!sum || (op->c >= 1 && op->c <= 63), "words are too far apart");
    NEED(sum || op->c < op->b, "a sum has more words than there are");
    u8 lit_kind = c->program->lit_kinds[op->imm];
    NEED(lit_kind == KIND_I32 || lit_kind == KIND_I64, "a literal has the wrong kind");
    return ERR_OK;
}

/* The opcode that made a register before this one; NULL when there is none. */
static const struct op *made_by(const struct check *c, u16 reg) {
    for (u32 i = c->pc; i-- > 0;) {
        if (op_writes(&c->pipe->ops[i]) && c->pipe->ops[i].dst == reg) {
            return &c->pipe->ops[i];
        }
    }
    return NULL;
}

static wf_status check_meet(struct check *c, const struct op *op) {
    NEED(op->b >= 2 && op->b <= MEET_LISTS_MOST, "too few runs meet, or too many");
    for (u32 i = 0; i < op->b; i++) {
        const struct op *run = made_by(c, (u16)(op->a + i));
        NEED(run && run->code == OP_RUN, "what meets is no run");
        const struct var *rows = &c->program->vars[c->program->vars[run->imm].rows_var];
        NEED(rows->col_count >= 2 && rows->kinds[1] == KIND_I64, "what meets has no values");
    }
    return ERR_OK;
}

/* What can be named by its number, where it is named. */
static wf_status check_named(struct check *c, const struct op *op, enum role role, u32 value) {
    switch (role) {
    case ROLE_literal:
        NEED(value < c->program->lit_count, "a literal that does not exist is named");
        return ERR_OK;
    case ROLE_column:
        NEED(value < c->pipe->source.col_count, "a column that the source does not have is loaded");
        return ERR_OK;
    case ROLE_rows:
        return check_var_read(c, value, MASK_ROWS);
    case ROLE_var_column:
        NEED(value < c->program->vars[op->b].col_count,
             "a column that the variable does not have is loaded");
        return ERR_OK;
    case ROLE_index:
        TRY(check_var_read(c, value, MASK_INDEX));
        NEED(!(op_infos[op->code].flags & OP_REPEATS) || !c->program->vars[value].set,
             "rows of a set are asked for");
        return ERR_OK;
    case ROLE_table:
        return check_var_read(c, value, MASK_LUT);
    case ROLE_interner:
        TRY(check_var(c, value, MASK_INTERN));
        c->vars_set[value] = 1;
        return ERR_OK;
    case ROLE_sink:
        NEED(value < c->pipe->sink_count, "a sink that does not exist is named");
        return check_sink(c, &c->pipe->sinks[value]);
    default:
        return ERR_OK;
    }
}

static wf_status check_operand(struct check *c, const struct op *op, enum operand which) {
    enum role role = (enum role)op_infos[op->code].roles[which];
    u32 value = op_field(op, which);
    switch (role) {
    case ROLE_b8_if:
        return value == NO_REG ? ERR_OK : check_read(c, (u16)value, KIND_B8);
    case ROLE_intern_key:
        return intern_keyed(op) ? check_read(c, (u16)value, KIND_I64) : ERR_OK;
    case ROLE_match_flags:
        NEED(probe_flags(op) <= (PROBE_OUTER | PROBE_SINGLE), "a probe of unknown flags");
        return ERR_OK;
    case ROLE_intern_mode:
        NEED(value <= INTERN_GREATEST, "a text is least or greatest");
        return ERR_OK;
    case ROLE_half:
        NEED(value <= 1, "a pair has two halves");
        return ERR_OK;
    default:
        break;
    }
    if (role > ROLE_no && role < ROLE_b8_if) { /* in the order of kinds */
        return check_read(c, (u16)value, (u8)(role - ROLE_no - 1));
    }
    return check_named(c, op, role, value);
}

/* The kind that the result must have. */
static wf_status result_kind(struct check *c, const struct op *op, u8 *out) {
    const struct source *source = &c->pipe->source;
    enum role role = (enum role)op_infos[op->code].roles[OPERAND_DST];
    NEED(op->dst < c->pipe->reg_count, "the result is no register");
    u8 kind = c->pipe->regs[op->dst].kind;
    switch (role) {
    case ROLE_as_literal:
        *out = c->program->lit_kinds[op->imm];
        return ERR_OK;
    case ROLE_as_column:
        *out = source->kind == SOURCE_VAR
                   ? c->program->vars[source->ref].kinds[source->cols[op->imm]]
               : source->kind == SOURCE_DICT   ? KIND_STR
               : source->kind == SOURCE_SERIES ? KIND_I64
                                               : kind;
        return ERR_OK;
    case ROLE_as_var_column:
        *out = c->program->vars[op->b].kinds[op->imm];
        return ERR_OK;
    case ROLE_as_table:
        *out = c->program->vars[op->imm].lut_kind;
        return ERR_OK;
    case ROLE_as_sum:
        *out = kind == (op->code == OP_FROUND ? KIND_F32 : KIND_I128) ? kind : (u8)KIND_F64;
        return ERR_OK;
    default:
        *out = (u8)(role - ROLE_no - 1);
        return ERR_OK;
    }
}

/* Every operand is what its role says; then the result. */
static wf_status check_op(struct check *c, const struct op *op) {
    const u8 *roles = op_infos[op->code].roles;
    for (u32 i = OPERAND_A; i < OPERAND_COUNT; i++) {
        TRY(check_operand(c, op, (enum operand)i));
    }
    if (roles[OPERAND_A] == ROLE_words) {
        TRY(check_words(c, op));
        bool meets = op->code == OP_MEET || op->code == OP_COMMON;
        TRY(meets ? check_meet(c, op) : check_rounded(c, op));
    }
    if (roles[OPERAND_DST] == ROLE_no) {
        return ERR_OK;
    }
    u8 kind = KIND_COUNT;
    TRY(result_kind(c, op, &kind));
    return check_write(c, op, kind);
}

static wf_status check_rows_sink(struct check *c, const struct sink *sink) {
    TRY(check_var(c, sink->var, sink->kind == SINK_LUT ? MASK_LUT : 1 << VAR_ROWS));
    const struct var *var = &c->program->vars[sink->var];
    NEED(sink->kind == SINK_LUT ? sink->col_count == 1 : sink->col_count == var->col_count,
         "a sink's columns differ from its variable's");
    for (u32 i = 0; i < sink->col_count; i++) {
        const struct sink_col *col = &sink->cols[i];
        TRY(check_read(c, col->reg, sink->kind == SINK_LUT ? var->lut_kind : var->kinds[i]));
        if (col->null_reg != NO_REG) {
            TRY(check_read(c, col->null_reg, KIND_B8));
        }
        NEED(col->dict <= c->program->dict_count, "a dictionary that does not exist is named");
    }
    if (sink->kind == SINK_ROWS && sink->set_var) {
        TRY(check_var(c, sink->set_var - 1, 1 << VAR_SET));
        TRY(check_read(c, sink->key, KIND_I64));
        NEED(sink->key_bits <= 64, "a key has more than 64 bits");
        NEED(sink->word_count == 0 || (sink->word_count == 1 && (sink->words[0] == WORD_MIN ||
                                                                 sink->words[0] == WORD_MAX)),
             "a set of keys has other words than a best value");
        for (u32 i = 0; i < sink->word_count; i++) {
            TRY(check_read(c, sink->word_regs[i], KIND_I64));
        }
    }
    const u32 flags[2] = {sink->kind == SINK_LUT ? sink->null_var : NO_VAR,
                          sink->kind == SINK_LUT ? sink->fault_var : NO_VAR};
    for (u32 i = 0; i < 2; i++) {
        if (flags[i] != NO_VAR) {
            TRY(check_var(c, flags[i], MASK_LUT));
            NEED(c->program->vars[flags[i]].lut_kind == KIND_B8, "a table of flags is not b8");
        }
    }
    return ERR_OK;
}

static wf_status check_agg_sink(struct check *c, const struct sink *sink) {
    TRY(check_var(c, sink->var, 1 << VAR_AGG));
    const struct var *var = &c->program->vars[sink->var];
    NEED(var->col_count == sink->word_count + 1, "an aggregation's words differ from its variable");
    for (u32 i = 0; i < var->col_count; i++) {
        NEED(var->kinds[i] == KIND_I64, "an aggregation's column is not i64");
    }
    NEED(sink->key_bits <= 64, "a key has more than 64 bits");
    if (sink->key != NO_REG) {
        TRY(check_read(c, sink->key, KIND_I64));
    }
    for (u32 i = 0; i < sink->word_count; i++) {
        NEED(sink->words[i] < WORD_COUNT, "an aggregation's word has no operation");
        TRY(check_read(c, sink->word_regs[i], KIND_I64));
    }
    return ERR_OK;
}

static wf_status check_mark_sink(struct check *c, const struct sink *sink) {
    TRY(check_var(c, sink->var, 1 << VAR_ROWS));
    TRY(check_var_read(c, sink->rows_var, MASK_ROWS));
    const struct var *var = &c->program->vars[sink->var];
    NEED(var->col_count == 1 && var->kinds[0] == KIND_B8 && var->types[0].id == TYPE_BOOLEAN,
         "marks are not one column of booleans");
    return check_read(c, sink->key, KIND_I64);
}

static wf_status check_sink(struct check *c, const struct sink *sink) {
    NEED(sink->kind <= SINK_MARK, "a sink of unknown kind");
    if (sink->kind == SINK_MARK) {
        return check_mark_sink(c, sink);
    }
    return sink->kind == SINK_AGG ? check_agg_sink(c, sink) : check_rows_sink(c, sink);
}

static wf_status check_source(struct check *c) {
    const struct source *source = &c->pipe->source;
    u32 limit = NO_VAR; /* columns it may name */
    switch (source->kind) {
    case SOURCE_TABLE:
        NEED(source->ref < c->program->table_count, "a table that does not exist is the source");
        break;
    case SOURCE_VAR:
        TRY(check_var_read(c, source->ref, MASK_ROWS));
        limit = c->program->vars[source->ref].col_count;
        break;
    case SOURCE_ONE:
        limit = 0;
        break;
    case SOURCE_DICT:
        NEED(source->ref < c->program->dict_count,
             "a dictionary that does not exist is the source");
        limit = 1;
        break;
    case SOURCE_SERIES:
        TRY(check_var_read(c, source->ref, 1 << VAR_ROWS));
        NEED(c->program->vars[source->ref].col_count == 3, "a series needs three numbers");
        limit = 1;
        break;
    default:
        return bad(c, "a source of unknown kind");
    }
    for (u32 i = 0; i < source->col_count; i++) {
        NEED(source->cols[i] < limit, "a column that the source does not have is named");
    }
    return check_prunes(c, c->pipe->prunes, c->pipe->prune_count, source->col_count);
}

static wf_status check_regs(struct check *c) {
    for (u32 i = 0; i < c->pipe->reg_count; i++) {
        const struct reg *reg = &c->pipe->regs[i];
        NEED(reg->kind < KIND_COUNT, "a register of unknown kind");
        NEED(reg->dict <= c->program->dict_count, "a register of a dictionary that does not exist");
        NEED(!reg->dict || reg->kind == KIND_I32, "a register of codes is not i32");
    }
    return ERR_OK;
}

/* Whether a sink may take the rows of a branch. */
static bool may_emit_some(const struct sink *sink) {
    return sink->kind == SINK_AGG ||
           (sink->kind == SINK_ROWS && sink->limit < 0 && !sink->set_var && !sink->top_key_count);
}

static wf_status check_body(struct check *c) {
    u32 depth = 0;
    b8 each = 0;
    b8 *emitted = NEW_ARRAY(c->arena, b8, c->pipe->sink_count + 1);
    for (c->pc = 0; c->pc < c->pipe->op_count; c->pc++) {
        const struct op *op = &c->pipe->ops[c->pc];
        NEED(op->code < OP_COUNT, "an opcode of unknown code");
        u16 flags = op_infos[op->code].flags;
        bool shapes = op_shapes(op) || (flags & OP_EMITS);
        bool emits = op->code == OP_EMIT && op->imm < c->pipe->sink_count && may_emit_some(&c->pipe->sinks[op->imm]);
        NEED(!depth || !shapes || emits, "rows change between WHEN and END");
        NEED(op->code != OP_END || depth > 0, "END without WHEN");
        NEED(!each || op->code == OP_ANY || op->code == OP_FILTER || !shapes,
             "rows change between EACH and ANY");
        NEED(op->code != OP_ANY || each, "ANY without EACH");
        each = op->code == OP_EACH || (each && op->code != OP_ANY);
        bool mask = !(flags & OP_SHAPES);
        depth += mask && (flags & OP_OPENS);
        depth -= mask && (flags & OP_CLOSES);
        TRY(check_op(c, op));
        if (op->code == OP_EMIT) {
            emitted[op->imm] = 1;
        }
    }
    c->pc = NO_VAR;
    NEED(depth == 0, "WHEN without END");
    NEED(!each, "EACH without ANY");
    NEED(c->pipe->sink_count > 0, "a pipeline without a sink");
    u32 aggs = 0;
    u32 rows = 0;
    for (u32 i = 0; i < c->pipe->sink_count; i++) {
        const struct sink *sink = &c->pipe->sinks[i];
        NEED(emitted[i], "a sink that receives nothing");
        aggs += sink->kind == SINK_AGG;
        rows += sink->kind == SINK_ROWS;
        NEED(aggs <= PIPE_AGGS && rows <= PIPE_AGGS, "a pipeline with too many sinks");
        NEED(!rows || !aggs, "a pipeline that makes groups and rows");
        NEED(rows < 2 || sink->kind != SINK_ROWS || may_emit_some(sink), "one of several sinks drops rows");
        for (u32 k = 0; k < sink->top_key_count; k++) {
            NEED(sink->top_keys[k].col < sink->col_count, "a sink's sort key does not exist");
        }
        TRY(check_prunes(c, sink->keeps, sink->keep_count, 1 + sink->word_count));
        NEED(!sink->keep_count || sink->kind == SINK_AGG, "rows that are no groups are dropped");
        c->kept[sink->var] = sink->keep_count > 0;
        c->vars_set[sink->var] = 1;
        if (sink->kind == SINK_LUT && sink->null_var != NO_VAR) {
            c->vars_set[sink->null_var] = 1;
        }
        if (sink->kind == SINK_LUT && sink->fault_var != NO_VAR) {
            c->vars_set[sink->fault_var] = 1;
        }
    }
    return ERR_OK;
}

static wf_status check_pipeline(struct check *c) {
    NEED(c->pipe != NULL, "a pipeline step without a pipeline");
    c->regs_set = NEW_ARRAY(c->arena, b8, c->pipe->reg_count + 1);
    TRY(check_source(c));
    TRY(check_regs(c));
    return check_body(c);
}

/* The offset of a frame; a parameter's has the kind of its type. */
static wf_status check_literal_offset(struct check *c, u32 lit) {
    NEED(lit == NO_LIT || lit < c->program->lit_count, "a literal that does not exist is named");
    NEED(lit == NO_LIT || c->program->lit_kinds[lit] == KIND_I64 ||
             c->program->lit_kinds[lit] == KIND_I32,
         "an offset's literal is not a whole number");
    return ERR_OK;
}

static wf_status check_literal_limit(struct check *c, u32 lit) {
    NEED(lit == NO_LIT || lit < c->program->lit_count, "a literal that does not exist is named");
    NEED(lit == NO_LIT || c->program->lit_kinds[lit] == KIND_I64, "a limit's literal is not i64");
    return ERR_OK;
}

static wf_status check_window_fn(struct check *c, const struct step *step,
                                 const struct window_fn *fn) {
    u32 cols = c->program->vars[step->src].col_count;
    const u32 named[6] = {fn->from_col, fn->to_col, fn->key, fn->args[0], fn->args[1], fn->args[2]};
    for (u32 i = 0; i < 6; i++) {
        NEED(named[i] == NO_VAR || named[i] < cols, "a window of a column that does not exist");
    }
    TRY(check_literal_offset(c, fn->from_lit));
    TRY(check_literal_offset(c, fn->to_lit));
    NEED(fn->form != WINDOW_FUNC || fn->func < WINDOW_END, "a window function of unknown number");
    NEED(fn->form != WINDOW_WORD || fn->func < WORD_COUNT, "a window's word has no operation");
    NEED(fn->form != WINDOW_SERIAL || fn->func < SERIAL_END, "a call of a sequence is unknown");
    NEED((fn->form == WINDOW_SERIAL) == (step->windows[0].form == WINDOW_SERIAL),
         "calls of sequences are mixed with others");
    NEED(fn->form <= WINDOW_SERIAL, "a window of unknown form");
    return ERR_OK;
}

static wf_status check_window(struct check *c, const struct step *step) {
    const struct program *program = c->program;
    TRY(check_var_read(c, step->src, 1 << VAR_ROWS));
    TRY(check_var(c, step->dst, 1 << VAR_ROWS));
    u32 cols = program->vars[step->src].col_count;
    NEED(program->vars[step->dst].col_count == cols + step->window_count,
         "a window's columns differ from its variable's");
    NEED(step->part_count <= step->key_count, "a window has fewer keys than partitions");
    for (u32 i = 0; i < step->key_count; i++) {
        NEED(step->keys[i].col < cols, "a window's key does not exist");
    }
    for (u32 i = 0; i < step->window_count; i++) {
        TRY(check_window_fn(c, step, &step->windows[i]));
    }
    c->vars_set[step->dst] = 1;
    return ERR_OK;
}

static wf_status check_fetch(struct check *c, const struct step *step) {
    const struct program *program = c->program;
    TRY(check_var_read(c, step->src, 1 << VAR_ROWS));
    TRY(check_var(c, step->dst, 1 << VAR_ROWS));
    const struct var *src = &program->vars[step->src];
    const struct var *dst = &program->vars[step->dst];
    NEED(step->table < program->table_count, "a fetch from a table that does not exist");
    NEED(step->col < src->col_count && src->kinds[step->col] == KIND_I64,
         "a row's number is not i64");
    for (u32 i = 0; i < dst->col_count; i++) {
        const struct fetched_col *fetch = &step->fetches[i];
        NEED(fetch->from_table ||
                 (fetch->col < src->col_count && src->kinds[fetch->col] == dst->kinds[i]),
             "a fetch of a column that does not exist");
    }
    c->vars_set[step->dst] = 1;
    return ERR_OK;
}

static wf_status check_fold(struct check *c, const struct step *step) {
    const struct program *program = c->program;
    TRY(check_var_read(c, step->src, 1 << VAR_ROWS));
    TRY(check_var(c, step->dst, 1 << VAR_ROWS));
    NEED(step->col < program->vars[step->src].col_count &&
             program->vars[step->src].kinds[step->col] == KIND_I64,
         "a group's column is not i64");
    NEED(program->vars[step->dst].col_count == 2, "a fold makes two columns");
    for (u32 i = 0; i < 2; i++) {
        NEED(step->args[i] == NO_VAR || step->args[i] < program->vars[step->src].col_count,
             "a fold of a column that does not exist");
    }
    c->vars_set[step->dst] = 1;
    return ERR_OK;
}

static wf_status check_cliques(struct check *c, const struct step *step) {
    TRY(check_var_read(c, step->src, 1 << VAR_ROWS));
    TRY(check_var(c, step->dst, 1 << VAR_ROWS));
    const struct var *src = &c->program->vars[step->src], *dst = &c->program->vars[step->dst];
    NEED(src->col_count == 2 && src->kinds[0] == KIND_I32 && src->kinds[1] == KIND_I32,
         "edges are not two columns of i32");
    NEED(dst->col_count == 1 && dst->kinds[0] == KIND_I64, "a number of cliques is not i64");
    NEED(step->key_range.lo == 0 && step->key_range.hi < I32_MAX && step->key_range.hi >= 0,
         "nodes are not numbered from 0 on");
    NEED(step->col_count >= 2 && step->col_count <= CLIQUE_NODES, "cliques of too many nodes");
    c->vars_set[step->dst] = 1;
    return ERR_OK;
}

static bool is_i64_lit(const struct check *c, u32 lit) {
    return lit < c->program->lit_count && c->program->lit_kinds[lit] == KIND_I64;
}

static wf_status check_sort(struct check *c, const struct step *step) {
    TRY(check_var_read(c, step->src, MASK_ROWS));
    u32 col_count = c->program->vars[step->src].col_count;
    for (u32 i = 0; i < step->key_count; i++) {
        NEED(step->keys[i].col < col_count, "a sort key that does not exist");
    }
    NEED(step->col_count <= col_count, "a sort of columns that do not exist");
    return ERR_OK;
}

static wf_status check_split(struct check *c, const struct step *step) {
    TRY(check_var_read(c, step->src, MASK_ROWS));
    const struct var *src = &c->program->vars[step->src];
    NEED(step->col < src->col_count && src->kinds[step->col] == KIND_I64,
         "rows are split by a column that is not i64");
    return step->dst2 == NO_VAR ? ERR_OK : check_var_read(c, step->dst2, MASK_INDEX);
}

static wf_status check_primitive(struct check *c, const struct step *step) {
    const struct program *program = c->program;
    switch (step->kind) {
    case STEP_BUILD:
        TRY(check_var_read(c, step->src, MASK_ROWS));
        TRY(check_var(c, step->dst, MASK_INDEX));
        NEED(step->col < program->vars[step->src].col_count, "a key column that does not exist");
        NEED(program->vars[step->src].kinds[step->col] == KIND_I64, "a key column is not i64");
        NEED(program->vars[step->dst].rows_var == step->src, "an index points into other rows");
        c->vars_set[step->dst] = 1;
        return ERR_OK;
    case STEP_SORT:
        return check_sort(c, step);
    case STEP_SPLIT:
        return check_split(c, step);
    case STEP_RANK:
        NEED(step->dict < program->dict_count, "a dictionary that does not exist is ranked");
        TRY(check_var(c, step->dst, MASK_LUT));
        NEED(program->vars[step->dst].lut_kind == KIND_I32, "a table of ranks is not i32");
        c->vars_set[step->dst] = 1;
        if (step->dst2 != NO_VAR) {
            TRY(check_var(c, step->dst2, MASK_LUT));
            NEED(program->vars[step->dst2].lut_kind == KIND_I32, "a table of codes is not i32");
            c->vars_set[step->dst2] = 1;
        }
        return ERR_OK;
    case STEP_LIMIT:
        TRY(check_var_read(c, step->src, MASK_ROWS));
        TRY(check_var(c, step->dst, MASK_ROWS));
        TRY(check_literal_limit(c, step->offset_lit));
        TRY(check_literal_limit(c, step->limit_lit));
        NEED(!step->mark_lit || is_i64_lit(c, step->mark_lit - 1), "a mark that is not i64");
        NEED(program->vars[step->dst].col_count == program->vars[step->src].col_count,
             "a limit changes the columns");
        c->vars_set[step->dst] = 1;
        return ERR_OK;
    case STEP_WINDOW:
        return check_window(c, step);
    case STEP_FOLD:
        return check_fold(c, step);
    case STEP_CLIQUES:
        return check_cliques(c, step);
    case STEP_FETCH:
        return check_fetch(c, step);
    case STEP_RESULT:
        TRY(check_var_read(c, step->src, MASK_ROWS));
        TRY(check_literal_limit(c, step->offset_lit));
        TRY(check_literal_limit(c, step->limit_lit));
        NEED(step->col_count <= program->vars[step->src].col_count,
             "a result has too many columns");
        NEED(step->col_count == program->col_count,
             "the result's columns differ from the program's");
        return ERR_OK;
    default:
        return bad(c, "a step of unknown kind");
    }
}

static wf_status check_vars(struct check *c) {
    for (u32 i = 0; i < c->program->var_count; i++) {
        const struct var *var = &c->program->vars[i];
        NEED(var->kind <= VAR_SET, "a variable of unknown kind");
        bool rows = var->kind == VAR_ROWS || var->kind == VAR_AGG;
        for (u32 j = 0; rows && j < var->col_count; j++) {
            NEED(var->kinds[j] < KIND_COUNT, "a variable's column of unknown kind");
            NEED(!var->dicts || var->dicts[j] <= c->program->dict_count,
                 "a variable's column of a dictionary that does not exist");
        }
        NEED(var->kind != VAR_LUT || var->lut_kind < KIND_COUNT, "a table of unknown kind");
        NEED(var->kind != VAR_INDEX || var->rows_var < c->program->var_count,
             "an index into rows that do not exist");
        c->vars_set[i] = var->kind == VAR_ROWS && var->const_lits != NULL;
        for (i64 j = 0; c->vars_set[i] && j < var->const_rows * (i64)var->col_count; j++) {
            u32 lit = var->const_lits[j];
            NEED(lit == NO_LIT || lit < c->program->lit_count,
                 "a row of literals that do not exist");
        }
    }
    for (u32 i = 0; i < c->program->guard_count; i++) {
        NEED(c->program->guards[i].table < c->program->table_count,
             "a guard of a table that does not exist");
    }
    for (u32 i = 0; i < c->program->param_count; i++) {
        u32 lit = c->program->param_lits[i];
        NEED(lit == NO_LIT || lit < c->program->lit_count,
             "a parameter fills a literal that does not exist");
    }
    return ERR_OK;
}

/* What a loop empties may be read before a step fills it. */
static wf_status check_enter(struct check *c, const struct block *block) {
    for (u32 i = 0; i < block->enter_count; i++) {
        for (u32 k = 0; k < block->enter_vars[i].fresh_count; k++) {
            u32 var = block->enter_vars[i].fresh[k];
            TRY(check_var(c, var, MASK_ROWS));
            c->vars_set[var] = 1;
        }
    }
    return ERR_OK;
}

static wf_status check_steps(struct check *c) {
    u32 results = 0;
    for (u32 b = 0; b < c->program->block_count; b++) {
        const struct block *block = &c->program->blocks[b];
        TRY(check_enter(c, block));
        for (u32 s = 0; s < block->step_count; s++, c->step++) {
            const struct step *step = &block->steps[s];
            c->pc = NO_VAR;
            c->pipe = step->pipeline;
            if (step->kind == STEP_PIPELINE) {
                TRY(check_pipeline(c));
            } else {
                TRY(check_primitive(c, step));
            }
            results += step->kind == STEP_RESULT;
        }
        NEED(block->next == NO_VAR || block->next < c->program->block_count,
             "a jump to a block that does not exist");
        for (u32 i = 0; i < block->loop_count; i++) {
            TRY(check_var(c, block->loop_vars[i].var, MASK_ROWS));
            NEED(is_i64_lit(c, block->loop_vars[i].lit), "a loop whose literal is not i64");
        }
        NEED(!block->loop_count || block->loop < c->program->block_count,
             "a loop to a block that does not exist");
    }
    NEED(results == 1, "a program has one result");
    return ERR_OK;
}

static wf_status check_deferrals(struct check *c) {
    const struct program *program = c->program;
    for (u32 i = 0; i < program->deferral_count; i++) {
        const struct deferral *d = &program->deferrals[i];
        NEED(d->lit < program->lit_count && program->lit_kinds[d->lit] == KIND_B8,
             "a deferral without its literal");
        NEED(d->rows_var < program->var_count && d->parent <= i, "a deferral of nothing");
    }
    for (u32 b = 0; b < program->block_count; b++) {
        for (u32 s = 0; s < program->blocks[b].step_count; s++) {
            NEED(program->blocks[b].steps[s].defer <= program->deferral_count,
                 "a step of a deferral that does not exist");
        }
    }
    return ERR_OK;
}

wf_status program_verify(const struct program *program, struct error *err) {
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    struct check check = {.program = program, .err = err, .arena = &arena, .pc = NO_VAR};
    check.vars_set = NEW_ARRAY(&arena, b8, program->var_count + 1);
    check.kept = NEW_ARRAY(&arena, u8, program->var_count + 1);
    wf_status status = check_vars(&check);
    if (!status) {
        status = check_steps(&check);
    }
    if (!status) {
        status = check_deferrals(&check);
    }
    arena_fini(&arena);
    return status;
}
