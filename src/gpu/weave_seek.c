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
    {OP_LIKE_STR, "fn_like_leads(s_leads%u, %s, LIKE_CHARS)"},
    {OP_ILIKE_STR, "fn_like_leads(s_leads%u, %s, LIKE_NOCASE)"},
    {OP_STRPOS_STR, "fn_find_leads(s_leads%u, %s)"},
    {OP_BYTEPOS_STR, "fn_find_leads(s_leads%u, %s)"},
    {OP_REGEX_STR, "fn_regex_leads(s_leads%u, %s)"},
    {OP_REGEX_COUNT, "fn_regex_leads(s_leads%u, %s)"},
    {OP_REGEX_INSTR, "fn_regex_leads(s_leads%u, %s)"},
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

/* As seek_pieces_of (kernels/seek.h) finds it. */
static bool has_pieces(str pattern) {
    enum { PIECES = 6 };
    const char *p = (const char *)(size_t)pattern.addr;
    u32 count = 0;
    for (u32 i = 0; i < pattern.len; i++) {
        if (p[i] == '_' || p[i] == '\\') {
            return false;
        }
        count += p[i] != '%' && (i == 0 || p[i - 1] == '%');
    }
    return pattern.len && p[0] == '%' && count > 0 && count <= PIECES;
}

u64 gpu_weave_pieces(const struct exec *x, const struct pipeline *pipe) {
    u64 pieces = 0;
    for (u32 i = 0; i < MIN_OF(pipe->op_count, 64); i++) {
        for (u32 c = 0; pipe->ops[i].code == OP_LIKE_STR && c < pipe->op_count; c++) {
            const struct op *op = &pipe->ops[c];
            bool its = op->code == OP_CONST && op->dst == pipe->ops[i].b;
            pieces |= (u64)(its && has_pieces(x->lits[op->imm].str)) << i;
        }
    }
    return pieces;
}

static bool in_pieces(const struct weaver *v, u32 at) {
    return at < 64 && (v->w->pieces >> at & 1);
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

/* What is looked for: a literal, or what was worked out of it ahead. */
static const char *needle(const struct weaver *v, u32 at, char buf[24]) {
    const struct op *op = &v->pipe->ops[at];
    bool ahead = op_ahead(op->code) != NULL;
    snprintf(buf, 24, "%c%u", ahead ? 'p' : 'r', ahead ? v->plan->op_imm[at] : op->b);
    return buf;
}

void weave_seek_setup(struct weaver *v) {
    if (!v->any_seeks) {
        return;
    }
    line(v, "SHARED(u32, s_seek, %d * SEEK_SHARED);", WOVEN_BLOCK / 32);
    for (u32 i = 0; i < v->pipe->op_count; i++) {
        if (v->seeks[i]) {
            char leads[64];
            char buf[24];
            snprintf(leads, sizeof leads, seeker_of(v->pipe->ops[i].code)->leads, i,
                     needle(v, i, buf));
            line(v, "SHARED(struct leads, s_leads%u, 1);", i);
            line(v, "if (t_id() == 0) {");
            line(v, "    %s;", leads);
            line(v, "}");
            if (in_pieces(v, i)) {
                line(v, "SHARED(struct seek_pieces, s_pieces%u, 1);", i);
                line(v, "if (t_id() == 32) {");
                line(v, "    seek_pieces_of(s_pieces%u, r%u);", i, v->pipe->ops[i].b);
                line(v, "}");
            }
        }
    }
    line(v, "b_sync();");
}

/* The opcode itself, of row i. */
static void put_ask(struct weaver *v, u32 at) {
    const struct op *op = &v->pipe->ops[at];
    const struct op_info *info = &op_infos[op->code];
    bool faults = info->flags & OP_FAULTS;
    char buf[24];
    if (faults) {
        line(v, "u8 f = 0;");
    }
    line(v, "const %s found = op_%s(seek_text(text%u, row + ROW(i)), %s%s);",
         kind_names[info->result], info->name, at, needle(v, at, buf), faults ? ", &f" : "");
    if (faults) {
        line(v, "if (f) {");
        v->depth++;
        weave_fault(v, op, "f");
        v->depth--;
        line(v, "}");
    }
}

/* Rows of a boolean, one after the other: few are left, and a row of each thread at a time. */
static void put_flags(struct weaver *v, u32 at) {
    line(v, "NO_UNROLL for (; may; may &= may - 1u) {");
    v->depth++;
    line(v, "const u32 i = 4u * g + first_set_u32(may);");
    if (in_pieces(v, at)) {
        line(v, "const u32 hint = hints >> 8u * (i %% 4u) & 255u;");
        line(v, "has%u |= seek_like(seek_text(text%u, row + ROW(i)), hint, s_pieces%u) << i;", at, at, at);
    } else {
        put_ask(v, at);
        line(v, "has%u |= (u32)found << i;", at);
    }
    v->depth--;
    line(v, "}");
}

void weave_seek(struct weaver *v, u32 at) {
    const struct op *op = &v->pipe->ops[at];
    bool flag = op_infos[op->code].result == KIND_B8;
    const char *only = v->when_depth > 0 && v->seen[op->dst] ? "if (act >> i & 1u) " : "";
    line(v, "const struct kseg *const text%u = &args.segs[%u * (u64)args.tablet_count + tablet];",
         at, text_load_of(v, op->a)->imm);
    line(v, "u32 has%u = 0;", at); /* what is looked for: certainly where the result is a boolean */
    line(v, "NO_UNROLL for (u32 g = 0; g < R / 4; g++) {");
    v->depth++;
    line(v, "u32 hints;");
    line(v, "u32 may = w_seek_rows(text%u, row + g * SPAN, act >> (4 * g) & 15u, s_leads%u, s_seek,",
         at, at);
    line(v, "                      &hints);");
    if (flag) {
        put_flags(v, at);
    } else {
        line(v, "has%u |= may << (4 * g);", at);
    }
    v->depth--;
    line(v, "}");
    if (flag) {
        line(v, EACH "{ %sr%u[i] = (b8)(has%u >> i & 1u); }", only, op->dst, at);
        return;
    }
    line(v, EACH "{ %sr%u[i] = 0; }", only, op->dst);
    line(v, EACH "{");
    line(v, "    if (has%u >> i & 1u) {", at);
    v->depth += 2;
    put_ask(v, at);
    line(v, "r%u[i] = found;", op->dst);
    v->depth -= 2;
    line(v, "    }");
    line(v, "}");
}
