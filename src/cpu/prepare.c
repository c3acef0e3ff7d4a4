/* prepare.c: a pipeline's opcodes made ready for vectors.
 *
 * Registers get slots by linear scan over their first definition and last use, so that a long
 * pipeline stays in the cache; constants get a vector of their own that nobody writes. A result
 * never shares a slot with its operands: the loops promise the compiler that they do not overlap.
 * For opcodes that drop or multiply rows the registers needed afterwards are listed, as those are
 * what compaction moves. */
#include "cpu/cpu_int.h"

#include "codes/loop.h"

enum { NEVER = -1 };
/* In 16ths of a vector: when few rows are left, moving them together beats computing all; columns
 * that are only loaded and copied out are best gathered at once. */
enum { COMPACT_COMPUTED = 8, COMPACT_LOADED = 15 };

struct span {
    i32 first; /* opcode that defines it first */
    i32 last;  /* opcode that reads it last */
    u32 defs;
};

u8 width_of_kind(u8 kind) {
    static const u8 widths[17] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3, [16] = 4};
    return widths[kind_bytes[kind]];
}

struct spans {
    struct span *items;
    u32 count;
    i32 pc;
};

/* END of a TRY names its register, so that it lives through the scope. */
static void note_read(void *arg, u16 reg) {
    struct spans *spans = arg;
    if (reg < spans->count) {
        spans->items[reg].last = spans->pc;
    }
}

static struct span *find_spans(struct exec *x, const struct pipeline *pipe) {
    struct spans spans = {NEW_ARRAY(x->arena, struct span, pipe->reg_count + 1), pipe->reg_count,
                          0};
    for (u32 r = 0; r < pipe->reg_count; r++) {
        spans.items[r] = (struct span){NEVER, NEVER, 0};
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        spans.pc = (i32)i;
        op_reads(op, pipe->sinks, note_read, &spans);
        if (op_writes(op) && op->dst < pipe->reg_count) {
            struct span *span = &spans.items[op->dst];
            span->first = span->first == NEVER ? (i32)i : span->first;
            span->last = MAX_OF(span->last, (i32)i);
            span->defs++;
        }
    }
    return spans.items;
}

/* A constant is a register whose only definition is CONST. */
static void find_consts(struct exec *x, struct cpu_pipe *out, const struct span *spans) {
    const struct pipeline *pipe = out->pipe;
    out->is_const = NEW_ARRAY(x->arena, b8, pipe->reg_count + 1);
    out->const_value = NEW_ARRAY(x->arena, const union lit *, pipe->reg_count + 1);
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        if (op->code == OP_CONST && spans[op->dst].defs == 1) {
            out->is_const[op->dst] = 1;
            out->const_value[op->dst] = &x->lits[op->imm];
        }
    }
}

static void assign_slots(struct exec *x, struct cpu_pipe *out, const struct span *spans) {
    const struct pipeline *pipe = out->pipe;
    u16 *free_slots = NEW_ARRAY(x->arena, u16, (pipe->reg_count + 1) * VEC_WIDTHS);
    u32 free_count[VEC_WIDTHS] = {0};
    out->slot_of = NEW_ARRAY(x->arena, u16, pipe->reg_count + 1);
    out->slot_width = NEW_ARRAY(x->arena, u8, pipe->reg_count + 1);
    u32 *ending = NEW_ARRAY(x->arena, u32, pipe->op_count + 1); /* by opcode: register + 1 */
    u32 *next = NEW_ARRAY(x->arena, u32, pipe->reg_count + 1);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        out->slot_of[r] = NO_REG;
        if (spans[r].last != NEVER) {
            next[r] = ending[spans[r].last];
            ending[spans[r].last] = r + 1;
        }
    }
    for (i32 pc = 0; pc < (i32)pipe->op_count; pc++) {
        u16 dst = op_writes(&pipe->ops[pc]) ? pipe->ops[pc].dst : NO_REG;
        if (dst < pipe->reg_count && !out->is_const[dst] && spans[dst].first == pc) {
            u8 w = out->width[dst];
            if (free_count[w]) {
                out->slot_of[dst] = free_slots[w * (pipe->reg_count + 1) + --free_count[w]];
            } else {
                out->slot_width[out->slot_count] = w;
                out->slot_of[dst] = (u16)out->slot_count++;
            }
        }
        for (u32 at = ending[pc]; at; at = next[at - 1]) {
            if (out->slot_of[at - 1] != NO_REG) {
                u8 w = out->width[at - 1];
                free_slots[w * (pipe->reg_count + 1) + free_count[w]++] = out->slot_of[at - 1];
            }
        }
    }
}

struct slot_use {
    const struct cpu_pipe *pipe;
    u16 dst;
    bool shared;
};

static void note_slot(void *arg, u16 reg) {
    struct slot_use *use = arg;
    const u16 *slot_of = use->pipe->slot_of;
    bool same = slot_of[reg] != NO_REG && slot_of[reg] == slot_of[use->dst];
    use->shared = use->shared || (same && reg != use->dst);
}

/* Whether a result lies where one of its operands does: loops have no aliases. */
static bool shares_slot(const struct cpu_pipe *out, const struct op *op) {
    struct slot_use use = {out, op->dst, false};
    op_reads(op, out->pipe->sinks, note_slot, &use);
    return use.shared;
}

static void find_live(struct exec *x, const struct cpu_pipe *out, const struct span *spans,
                      struct cpu_op *op, u32 pc) {
    const struct pipeline *pipe = out->pipe;
    op->live = NEW_ARRAY(x->arena, u16, pipe->reg_count + 1);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        bool is_live =
            spans[r].first != NEVER && spans[r].first <= (i32)pc && spans[r].last > (i32)pc;
        if (is_live && !out->is_const[r]) {
            op->live[op->live_count++] = (u16)r;
        }
    }
}

struct scope_reads {
    struct cpu_pipe *pipe;
    const struct span *spans;
    struct cpu_op *each;
    i32 pc; /* of EACH */
};

static void note_scope_read(void *arg, u16 reg) {
    struct scope_reads *s = arg;
    bool outside = reg < s->pipe->pipe->reg_count && s->spans[reg].first != NEVER &&
                   s->spans[reg].first <= s->pc && reg != s->each->dst;
    if (!outside || s->pipe->is_const[reg]) {
        return;
    }
    for (u32 i = 0; i < s->each->live_count; i++) {
        if (s->each->live[i] == reg) {
            return;
        }
    }
    s->each->live[s->each->live_count++] = reg;
}

/* EACH hands over only what is read before its ANY. */
static void close_each(struct exec *x, struct cpu_pipe *out, const struct span *spans, u32 from,
                       u32 to) {
    struct scope_reads s = {out, spans, &out->ops[from], (i32)from};
    s.each->jump = to;
    s.each->live = NEW_ARRAY(x->arena, u16, out->pipe->reg_count + 1);
    for (u32 pc = from + 1; pc <= to; pc++) {
        op_reads(&out->pipe->ops[pc], out->pipe->sinks, note_scope_read, &s);
    }
}

struct made_mark {
    struct cpu_pipe *pipe;
    b8 made;
};

static void note_made(void *arg, u16 reg) {
    struct made_mark *mark = arg;
    if (reg < mark->pipe->pipe->reg_count && mark->pipe->made[reg]) {
        mark->made = 1;
    }
}

/* Opcodes that return views (SUBSTR, SEL) pass on where their operand's bytes lie. */
static void mark_made(const struct exec *x, struct cpu_pipe *out, const struct op *op) {
    const struct op_info *info = &op_infos[op->code];
    bool part = op->code == OP_LOAD && out->passing; /* the next part takes its place, or the next class */
    if (part || (op->code == OP_LOADV && class_texts_pass(x, op->b, op->imm))) {
        out->made[op->dst] = (b8)(out->made[op->dst] | (out->pipe->regs[op->dst].kind == KIND_STR));
    }
    if ((info->flags & OP_CONTROL) || info->result != KIND_STR) {
        return;
    }
    struct made_mark mark = {out, (info->flags & OP_MAKES) != 0};
    op_reads(op, out->pipe->sinks, note_made, &mark);
    out->made[op->dst] = (b8)(out->made[op->dst] | mark.made);
}

static void choose_loops(struct cpu_pipe *out, struct cpu_op *op) {
    const struct op_info *info = &op_infos[op->op->code];
    if (info->flags & (OP_CONTROL | OP_HOST | OP_MAKES)) {
        return;
    }
    struct vec_loops loops = vec_loops_of(out->vec, op->op->code);
    op->fn = loops.dense;
    op->sel_fn = loops.sel;
    if (op->op->code == OP_LIKE_STR && out->is_const[op->b]) {
        op->fn = out->vec->like;
        op->sel_fn = out->vec->like_sel;
        op->b_value = out->const_value[op->b];
    } else if (info->arity == 2 && out->is_const[op->b] && loops.dense_const) {
        op->fn = loops.dense_const;
        op->b_value = out->const_value[op->b];
    }
}

/* Whether values are computed before rows are handed to a sink that only copies. */
static bool computes_after(const struct pipeline *pipe, u32 pc) {
    for (u32 i = pc + 1; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        if (op->code == OP_EMIT) {
            return pipe->sinks[op->imm].kind != SINK_ROWS;
        }
        if (!(op_infos[op->code].flags & OP_CONTROL)) {
            return true;
        }
    }
    return false;
}

static FALLIBLE prepare_ops(struct exec *x, struct cpu_pipe *out, const struct span *spans) {
    const struct pipeline *pipe = out->pipe;
    u32 *open_when = NEW_ARRAY(x->arena, u32, pipe->op_count + 1);
    u32 depth = 0;
    u32 each = 0;
    for (u32 pc = 0; pc < pipe->op_count; pc++) {
        const struct op *op = &pipe->ops[pc];
        struct cpu_op *to = &out->ops[pc];
        *to = (struct cpu_op){.op = op, .dst = op->dst, .a = op->a, .b = op->b, .c = op->c};
        if (op_writes(op)) {
            ASSERT(!shares_slot(out, op));
            to->width = out->width[op->dst];
            to->blend = depth > 0 && spans[op->dst].defs > 1;
            mark_made(x, out, op);
        }
        to->mark = pc ? out->ops[pc - 1].mark_end : 0;
        to->mark_end = to->mark;
        while (to->mark_end < pipe->mark_count && pipe->marks[to->mark_end].op <= pc) {
            to->mark_end++;
        }
        choose_loops(out, to);
        switch (op->code) {
        case OP_WHEN:
        case OP_TRY:
            open_when[depth++] = pc;
            out->when_depth = MAX_OF(out->when_depth, depth);
            break;
        case OP_END:
            ASSERT(depth > 0);
            out->ops[open_when[--depth]].jump = pc;
            break;
        case OP_FILTER:
        case OP_PROBE:
        case OP_MATCH:
        case OP_MEET:
        case OP_COMMON:
            if (depth > 0) {
                ASSERT(!op_shapes(op));
                break; /* never compacts */
            }
            find_live(x, out, spans, to, pc);
            to->compact_at = computes_after(pipe, pc) ? COMPACT_COMPUTED : COMPACT_LOADED;
            out->level_count += op->code == OP_MATCH || op->code == OP_MEET;
            break;
        case OP_EACH:
            each = pc;
            out->level_count++;
            out->has_each = 1;
            break;
        case OP_ANY:
            close_each(x, out, spans, each, pc);
            break;
        case OP_FROUND:
        case OP_VARIANCE:
            ASSERT(op->b <= FROUND_WORDS_MAX);
            break;
        default:
            break;
        }
    }
    return ERR_OK;
}

/* Interners exist from the first pipeline that names them. */
static FALLIBLE open_interners(struct exec *x, const struct pipeline *pipe) {
    for (u32 pc = 0; pc < pipe->op_count; pc++) {
        const struct op *op = &pipe->ops[pc];
        if (op_infos[op->code].roles[OPERAND_IMM] != ROLE_interner) {
            continue;
        }
        struct variable *var = &x->vars[op->imm];
        var->on_host = 1;
        if (op->code == OP_INTERN && !var->dict) {
            var->dict = dict_open(x->mem);
            if (!var->dict) {
                return memory_refused(x->mem, x->err, 4096);
            }
        } else if (op->code != OP_INTERN && !var->pairs) {
            var->pairs = pair_map_open(x->mem);
            if (!var->pairs) {
                return memory_refused(x->mem, x->err, 65536);
            }
        }
    }
    return ERR_OK;
}

wf_status pipe_prepare(struct exec *x, const struct pipeline *pipe, const struct vec_table *vec,
                       struct cpu_pipe *out) {
    u32 top_at;
    pipe = top_reorder(x, pipe, &top_at);
    *out =
        (struct cpu_pipe){.pipe = pipe, .vec = vec, .op_count = pipe->op_count, .level_count = 1};
    out->top_at = top_at;
    out->ops = NEW_ARRAY(x->arena, struct cpu_op, pipe->op_count + 1);
    out->width = NEW_ARRAY(x->arena, u8, pipe->reg_count + 1);
    out->made = NEW_ARRAY(x->arena, b8, pipe->reg_count + 1);
    bool aside = pipe->source.kind == SOURCE_VAR && pipe->source.ref == NO_VAR;
    out->passing = exec_provider(x, pipe) != NULL || texts_pass(x, pipe) || aside;
    out->multi = NEW_ARRAY(x->arena, b8, pipe->reg_count + 1);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        out->width[r] = width_of_kind(pipe->regs[r].kind);
    }
    for (u32 s = 0; s < pipe->sink_count; s++) {
        const struct sink *sink = &pipe->sinks[s];
        out->keeps_faults |= sink->kind == SINK_LUT && sink->fault_var != NO_VAR;
    }
    struct span *spans = find_spans(x, pipe);
    for (u32 r = 0; r < pipe->reg_count; r++) {
        out->multi[r] = spans[r].defs > 1;
    }
    find_consts(x, out, spans);
    assign_slots(x, out, spans);
    TRY(prepare_ops(x, out, spans));
    if (top_at != NO_VAR) {
        find_live(x, out, spans, &out->top_op, top_at - 1);
        out->top_op.compact_at = COMPACT_LOADED;
    }
    return open_interners(x, pipe);
}
