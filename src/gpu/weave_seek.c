/* weave_seek.c: opcodes that look for known bytes in a column's text.
 *
 * A warp reads the texts of its rows as one piece of memory (kernels/seek.h), which tells most rows
 * that cannot have the bytes; the opcode itself is asked for the others only, one row of a thread
 * after the other, since few are left. Where nothing else uses the text it is not even loaded. For
 * rows of the source as they lie there: those of a list, or of matches, are asked one by one. */
#include "gpu/weave_int.h"

#include "codes/op.h"

/* Opcodes whose result is 0 where bytes of the second operand are not in the first, and how the
 * bytes are found that must be. */
static const struct seeker {
    u16 code;
    const char *leads;
} seekers[] = {
    {OP_LIKE_STR, "fn_like_leads(s_leads%u, r%u, LIKE_CHARS)"},
    {OP_ILIKE_STR, "fn_like_leads(s_leads%u, r%u, LIKE_NOCASE)"},
    {OP_STRPOS_STR, "fn_find_leads(s_leads%u, r%u)"},
    {OP_BYTEPOS_STR, "fn_find_leads(s_leads%u, r%u)"},
};

static const struct seeker *seeker_of(u16 code) {
    for (i32 i = 0; i < COUNT_OF(seekers); i++) {
        if (seekers[i].code == code) {
            return &seekers[i];
        }
    }
    return NULL;
}

/* The opcode that loads a register from a column of texts that lie behind each other; NULL: it is
 * another one, or there are several. */
static const struct op *text_load_of(const struct weaver *v, u16 reg) {
    const struct op *load = NULL;
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        const struct op *op = &v->pipe->ops[i];
        if (!op_writes(op) || op->dst != reg) {
            continue;
        }
        if (load || op->code != OP_LOAD || v->w->cols[op->imm].form != SEG_STR) {
            return NULL;
        }
        load = op;
    }
    return load;
}

static bool can_seek(const struct weaver *v, u32 at) {
    const struct op *op = &v->pipe->ops[at];
    if (!seeker_of(op->code) || !v->pipe->regs[op->b].is_const || (v->list && at >= v->ask_at)) {
        return false;
    }
    for (u32 i = 0; i < at; i++) {
        if (op_infos[v->pipe->ops[i].code].flags & OP_REPEATS) {
            return false;
        }
    }
    return text_load_of(v, op->a) != NULL;
}

struct readers {
    struct weaver *v;
    b8 seeks; /* the opcode whose registers are visited */
};

static void note_reader(void *arg, u16 reg) {
    struct readers *r = arg;
    r->v->text_read[reg] |= !r->seeks;
}

void weave_seek_plan(struct weaver *v) {
    const struct pipeline *pipe = v->pipe;
    v->seeks = NEW_ARRAY(v->out->arena, b8, pipe->op_count + 1);
    v->text_read = NEW_ARRAY(v->out->arena, b8, pipe->reg_count + 1);
    for (u32 i = 0; i < pipe->op_count; i++) {
        struct readers r = {v, can_seek(v, i)};
        v->seeks[i] = r.seeks;
        v->any_seeks |= r.seeks;
        op_reads(&pipe->ops[i], pipe->sinks, note_reader, &r);
    }
}

/* Whether a text needs no view of its own. */
bool weave_seek_hides(const struct weaver *v, u16 reg) {
    return v->any_seeks && !v->listed && !v->text_read[reg] && text_load_of(v, reg);
}

void weave_seek_setup(struct weaver *v) {
    if (!v->any_seeks) {
        return;
    }
    line(v, "SHARED(u32, s_seek, %d * SEEK_SHARED);", WOVEN_BLOCK / 32);
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        if (v->seeks[i]) {
            char leads[64];
            const struct op *op = &v->pipe->ops[i];
            snprintf(leads, sizeof leads, seeker_of(op->code)->leads, i, op->b);
            line(v, "SHARED(struct leads, s_leads%u, 1);", i);
            line(v, "if (t_id() == 0) {");
            line(v, "    %s;", leads);
            line(v, "}");
        }
    }
    line(v, "b_sync();");
}

void weave_seek(struct weaver *v, u32 at) {
    const struct op *op = &v->pipe->ops[at];
    const struct op_info *info = &op_infos[op->code];
    const char *only = v->when_depth > 0 && v->seen[op->dst] ? "if (act >> i & 1u) " : "";
    char call[160];
    snprintf(call, sizeof call, "op_%s(seek_text(text%u, row + ROW(i)), r%u)", info->name, at,
             op->b);
    line(v, "const struct kseg *const text%u = &args.segs[%u * (u64)args.tablet_count + tablet];",
         at, text_load_of(v, op->a)->imm);
    line(v, "u32 may%u = 0;", at);
    line(v, "NO_UNROLL for (u32 g = 0; g < R / 4; g++) {");
    line(v, "    may%u |= w_seek_rows(text%u, row + g * SPAN, act >> (4 * g) & 15u, s_leads%u, "
            "s_seek)",
         at, at, at);
    line(v, "            << (4 * g);");
    line(v, "}");
    if (info->result == KIND_B8) {
        line(v, "u32 has%u = 0;", at);
        line(v, "NO_UNROLL for (; may%u; may%u &= may%u - 1u) {", at, at, at);
        line(v, "    const u32 i = first_set_u32(may%u);", at);
        line(v, "    has%u |= (u32)%s << i;", at, call);
        line(v, "}");
        line(v, EACH "{ %sr%u[i] = (b8)(has%u >> i & 1u); }", only, op->dst, at);
    } else {
        line(v, EACH "{ %sr%u[i] = may%u >> i & 1u ? %s : 0; }", only, op->dst, at, call);
    }
}
