/* gpu_pack.c: columns that an index has in place of row numbers (decision 0056).
 *
 * A pipeline that looks up a unique key mostly wants a few columns of the row it finds. Where all who look into an
 * index want nothing else, and what they want takes at most PACK_BITS bits by its ranges, the build puts those
 * bits where the row's number would be: then the answer of a lookup is the row, and no column of it is visited. Who
 * looks up does not know it: a number, of a row or not, is there or is not. Only LOADV and LOADVN do: they take
 * bits of it (struct kcol).
 *
 * What can be packed is a question to the program alone, so that builds and pipelines answer it alike; whether an
 * index is packed its record on the card says (`packed` of struct gpu_var). */
#include "gpu/gpu_int.h"

#include "codes/op.h"

enum {
    LOOKUPS_MOST = 8, /* of one pipeline, into one index */
    LOADS_MOST = 64,  /* of columns of variables; woven code is told by a bit each */
};

struct finding {
    const struct program *program;
    const struct pipeline *pipe;
    struct gpu_pack *out;
    u16 rows[LOOKUPS_MOST]; /* registers with the number of a row that was found */
    u32 row_count;
    b8 other; /* something else is done with one */
};

static bool is_row(const struct finding *f, u16 reg) {
    bool row = false;
    for (u32 i = 0; i < f->row_count; i++) {
        row = row || f->rows[i] == reg;
    }
    return row;
}

static void find_lookups(struct finding *f) {
    f->row_count = 0;
    for (u32 i = 0; i < f->pipe->op_count; i++) {
        const struct op *op = &f->pipe->ops[i];
        bool looks = op_infos[op->code].roles[OPERAND_IMM] == ROLE_index && op->imm == f->out->index;
        if (!looks) {
            continue;
        }
        bool one = op->code == OP_PROBE || op->code == OP_MATCH; /* of an index that is unique */
        if (!one || f->row_count == LOOKUPS_MOST) {
            f->other = 1;
            return;
        }
        f->rows[f->row_count++] = op->dst;
    }
}

/* The column's place among those that are packed, with the range it has there. */
static void take_column(struct finding *f, const struct op *op) {
    struct gpu_pack *pack = f->out;
    const struct reg *reg = &f->pipe->regs[op->dst];
    u32 at = 0;
    while (at < pack->count && pack->fields[at].col != op->imm) {
        at++;
    }
    if (at == PACK_FIELDS) {
        f->other = 1;
        return;
    }
    struct pack_field *field = &pack->fields[at];
    if (at == pack->count) {
        *field = (struct pack_field){.col = op->imm};
        pack->count++;
    }
    if (op->code == OP_LOADVN) {
        field->nulls = 1;
        return;
    }
    bool counted = reg->kind == KIND_I32 || reg->kind == KIND_I64 || reg->kind == KIND_B8;
    i128 lo = reg->kind == KIND_B8 ? 0 : reg->range.lo;
    i128 hi = reg->kind == KIND_B8 ? 1 : reg->range.hi;
    f->other |= !counted || lo > hi || lo < I64_MIN || hi > I64_MAX;
    field->lo = field->loaded ? MIN_OF(field->lo, lo) : lo;
    field->hi = field->loaded ? MAX_OF(field->hi, hi) : hi;
    field->loaded = 1;
}

/* Whether an opcode asks if a row was found. */
static bool asks_found(const struct finding *f, const struct op *op) {
    if (op->code != OP_GE_I64 || !is_row(f, op->a) || !f->pipe->regs[op->b].is_const) {
        return false;
    }
    for (u32 i = 0; i < f->pipe->op_count; i++) {
        const struct op *made = &f->pipe->ops[i];
        if (made->code == OP_CONST && made->dst == op->b) {
            return f->program->lits[made->imm].i64 == 0;
        }
    }
    return false;
}

static void note_read(void *arg, u16 reg) {
    struct finding *f = arg;
    f->other |= is_row(f, reg);
}

static void look_at(struct finding *f) {
    u32 rows_var = f->program->vars[f->out->index].rows_var;
    u32 load_count = 0;
    find_lookups(f);
    for (u32 i = 0; i < f->pipe->op_count && !f->other; i++) {
        const struct op *op = &f->pipe->ops[i];
        bool loads = op->code == OP_LOADV || op->code == OP_LOADVN;
        load_count += loads;
        bool looks = op_infos[op->code].roles[OPERAND_IMM] == ROLE_index && op->imm == f->out->index;
        bool again = !looks && op_writes(op) && is_row(f, op->dst);
        if (again || (loads && op->b == rows_var && !is_row(f, op->a))) {
            f->other = 1;
        } else if (loads && op->b == rows_var) {
            take_column(f, op);
        } else if (!asks_found(f, op)) {
            op_reads(op, f->pipe->sinks, note_read, f);
        }
    }
    f->other |= f->row_count && load_count > LOADS_MOST;
}

static u8 bits_of(const struct pack_field *field) {
    u8 bits = field->loaded;
    while (bits < PACK_BITS && (field->hi - field->lo) >> bits != 0) {
        bits++;
    }
    return bits;
}

/* Where each lies; false: they have no room. */
static bool lay_out(struct gpu_pack *pack) {
    for (u32 i = 0; i < pack->count; i++) {
        struct pack_field *field = &pack->fields[i];
        field->shift = (u8)pack->bits;
        field->bits = bits_of(field);
        pack->bits += field->bits;
        field->null_shift = (u8)pack->bits;
        pack->bits += field->nulls;
        if (pack->bits > PACK_BITS || (field->hi - field->lo) >> field->bits != 0) {
            return false;
        }
    }
    return pack->count > 0;
}

bool gpu_pack_find(const struct program *program, u32 index, struct gpu_pack *out) {
    struct finding f = {.program = program, .out = out};
    *out = (struct gpu_pack){.index = index};
    if (program->block_count != 1 || program->vars[index].set) {
        return false;
    }
    for (u32 s = 0; s < program->blocks[0].step_count && !f.other; s++) {
        const struct step *step = &program->blocks[0].steps[s];
        f.pipe = step->kind == STEP_PIPELINE ? step->pipeline : NULL;
        if (f.pipe) {
            look_at(&f);
        }
        f.other |= step->grow && step->dst == index;
    }
    return !f.other && lay_out(out);
}

void gpu_pack_cols(struct arena *arena, struct gpu_plan *plan) {
    plan->packed_by = NEW_ARRAY(arena, struct plan_pack, plan->cols.count + 1);
    for (i64 i = 0; i < plan->indexes.count; i++) {
        struct gpu_pack pack;
        u32 index = plan->indexes.items[i];
        if (!gpu_pack_find(plan->program, index, &pack)) {
            continue;
        }
        for (i64 c = 0; c < plan->cols.count; c++) {
            const struct gpu_plan_col *col = &plan->cols.items[c];
            for (u32 k = 0; k < pack.count && col->var == plan->program->vars[index].rows_var; k++) {
                if (pack.fields[k].col == col->col) {
                    plan->packed_by[c] = (struct plan_pack){index + 1, pack.fields[k]};
                }
            }
        }
    }
}

bool gpu_pack_is(const struct exec *x, const struct gpu_plan *plan, i64 col) {
    const struct plan_pack *by = &plan->packed_by[col];
    const struct gpu_var *gv = by->index ? x->vars[by->index - 1].copy : NULL;
    return gv && gv->packed;
}

struct kcol gpu_pack_col(const struct plan_pack *by) {
    const struct pack_field *field = &by->field;
    return (struct kcol){.lo = (i64)field->lo,
                         .mask = (1ULL << field->bits) - 1,
                         .shift = field->shift,
                         .null_bit = field->nulls ? 1u + field->null_shift : 0};
}
