/* operands.c: which registers and variables opcodes and steps use.
 *
 * The roles in op.def say what each field of an opcode holds; everybody who follows registers or
 * variables through a program (liveness, numbering, places, who may be released) asks here, so that
 * a new opcode is one line there. */
#include "defs/program.h"

#include "codes/control.h"

u32 op_field(const struct op *op, enum operand which) {
    const u32 fields[OPERAND_COUNT] = {op->dst, op->a, op->b, op->c, op->imm};
    return fields[which];
}

bool op_writes(const struct op *op) {
    return op_infos[op->code].roles[OPERAND_DST] != ROLE_no && op->dst != NO_REG;
}

bool op_shapes(const struct op *op) {
    bool outer = op->code == OP_PROBE && probe_flags(op) == PROBE_OUTER;
    return (op_infos[op->code].flags & OP_SHAPES) && !outer;
}

bool op_may_fault(const struct op *op) {
    const struct op_info *info = &op_infos[op->code];
    bool flagged = info->roles[OPERAND_C] == ROLE_match_flags && !(info->flags & OP_REPEATS);
    return (info->flags & OP_FAULTS) || (flagged && (probe_flags(op) & PROBE_SINGLE));
}

bool intern_keyed(const struct op *op) {
    return op->code == OP_INTERN && op->b >= INTERN_LEAST;
}

static bool is_register(enum role role, const struct op *op, u16 reg) {
    switch (role) {
    case ROLE_b8_if:
        return reg != NO_REG;
    case ROLE_intern_key:
        return intern_keyed(op);
    default:
        return role > ROLE_no && role < ROLE_b8_if;
    }
}

static void sink_reads(struct sink *sink, reg_fn *visit, void *arg) {
    for (u32 i = 0; i < sink->col_count; i++) {
        visit(arg, &sink->cols[i].reg);
        if (sink->cols[i].null_reg != NO_REG) {
            visit(arg, &sink->cols[i].null_reg);
        }
    }
    bool keyed = sink->kind == SINK_AGG || sink->kind == SINK_MARK || sink->set_var;
    if (keyed && sink->key != NO_REG) {
        visit(arg, &sink->key);
    }
    for (u32 i = 0; keyed && i < sink->word_count; i++) {
        visit(arg, &sink->word_regs[i]);
    }
}

/* The visitor may change the registers; a run of words is visited from its end, so that `a` becomes
 * what the first one is changed to. */
static void each_read(struct op *op, struct sink *sinks, reg_fn *visit, void *arg) {
    const struct op_info *info = &op_infos[op->code];
    u16 *const fields[3] = {&op->a, &op->b, &op->c};
    for (u32 i = 0; i < 3; i++) {
        enum role role = (enum role)info->roles[OPERAND_A + i];
        if (role == ROLE_words) {
            u16 first = *fields[i];
            for (u32 k = op->b; k-- > 0;) {
                *fields[i] = (u16)(first + k);
                visit(arg, fields[i]);
            }
        } else if (is_register(role, op, *fields[i])) {
            visit(arg, fields[i]);
        }
    }
    if (info->roles[OPERAND_IMM] == ROLE_sink) {
        sink_reads(&sinks[op->imm], visit, arg);
    }
}

void op_change_reads(struct op *op, struct sink *sinks, reg_fn *change, void *arg) {
    each_read(op, sinks, change, arg);
}

struct reader {
    void (*visit)(void *arg, u16 reg);
    void *arg;
};

static void read_one(void *arg, u16 *reg) {
    const struct reader *reader = arg;
    reader->visit(reader->arg, *reg);
}

void op_reads(const struct op *op, const struct sink *sinks, void (*visit)(void *arg, u16 reg),
              void *arg) {
    struct reader reader = {visit, arg};
    struct op copy = *op;
    each_read(&copy, (struct sink *)sinks, read_one, &reader); /* which changes nothing */
}

u32 op_variable(const struct op *op) {
    const u8 *roles = op_infos[op->code].roles;
    if (roles[OPERAND_B] >= ROLE_rows && roles[OPERAND_B] <= ROLE_interner) {
        return op->b;
    }
    bool named = roles[OPERAND_IMM] >= ROLE_rows && roles[OPERAND_IMM] <= ROLE_interner;
    return named ? op->imm : NO_VAR;
}
