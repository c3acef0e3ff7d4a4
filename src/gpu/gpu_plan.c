/* gpu_plan.c: a pipeline made ready for launching: what it refers to, and its opcodes for the
 * virtual machine.
 *
 * Literals, lookup tables, columns of variables and indexes get small numbers in the order of first
 * use; the virtual machine and the weaver use the same numbers, so both kinds of kernel take the
 * same argument block. Registers get places in shared memory by liveness; constants are filled once
 * per block. MATCH repeats what follows it, hence whatever is alive there stays alive to the end. A
 * pipeline that the card cannot run is found out here, with a reason that names the opcode. */
#include "gpu/gpu_int.h"

enum { MAX_LIVE = 32, MAX_MATCHES = 4, PLACE_UNIT = 16 };

static u32 class_of(u8 kind) { /* log2 of the bytes, four-byte classes merged */
    switch (kind_bytes[kind]) {
    case 1:
        return 0;
    case 4:
        return 1;
    case 8:
        return 2;
    default:
        return 3;
    }
}

static const u32 class_bytes[4] = {1, 4, 8, 16};

/* Opcodes with a short way in the virtual machine: VM_HOT_SCALARS in kernels/vm.h, and loads of
 * known form. */
#define HOT(A, name, r, ka, kb, part, cost, expr, text) [OP_##name] = 1,
static const b8 hot[OP_COUNT] = {WF_OPS_CMP(HOT, , i32, I32, 1) WF_OPS_CMP(HOT, , f32, F32, 1)
                                     WF_OPS_INT2(HOT, , i32, u32, I32, 1)[OP_AND_B8] = 1,
                                 [OP_OR_B8] = 1};
#undef HOT

struct planner {
    struct arena *arena;
    struct gpu_plan *plan;
    const struct pipeline *pipe;
    u32 *first;              /* opcode that defines a register first */
    u32 *last;               /* and the one that uses it last */
    VEC(u16) free_places[4]; /* by size class */
    u32 next;                /* first unused place */
    i32 live;
};

/* --- what is refused --- */

static const char *refuse_op(struct arena *arena, const struct pipeline *pipe,
                             const struct op *op) {
    const struct op_info *info = &op_infos[op->code];
    if (info->flags & OP_MAKES) {
        return arena_printf(arena, "%s makes strings, which only the CPU does", info->name);
    }
    if (info->flags & OP_HOST) {
        return arena_printf(arena, "%s reads text, which only the CPU does", info->name);
    }
    if (op->dst != NO_REG && pipe->regs[op->dst].kind == KIND_STR) {
        return arena_printf(arena, "%s handles text that is not dictionary-coded", info->name);
    }
    for (u32 i = 0; !(info->flags & OP_CONTROL) && i < info->arity; i++) {
        if (info->operands[i] == KIND_STR) {
            return arena_printf(arena, "%s handles text that is not dictionary-coded", info->name);
        }
    }
    if (!(info->flags & OP_CONTROL)) {
        return NULL;
    }
    switch (op->code) {
    case OP_CONST:
    case OP_LOAD:
    case OP_LOADN:
    case OP_LOADV:
    case OP_LOADVN:
    case OP_ROWNO:
    case OP_LUT:
    case OP_FILTER:
    case OP_WHEN:
    case OP_END:
    case OP_PROBE:
    case OP_MATCH:
    case OP_EMIT:
        return NULL;
    default:
        return arena_printf(arena, "%s runs on the CPU only", info->name);
    }
}

static const char *refuse_pipe(struct arena *arena, const struct pipeline *pipe) {
    if (pipe->source.kind == SOURCE_DICT) {
        return "a dictionary's entries live on the host";
    }
    if (pipe->sink_count != 1) {
        return arena_printf(arena, "the pipeline has %u sinks", pipe->sink_count);
    }
    const struct sink *sink = &pipe->sinks[0];
    if (sink->kind == SINK_LUT) {
        return "lookup tables are filled on the host";
    }
    for (u32 c = 0; sink->kind == SINK_ROWS && c < sink->col_count; c++) {
        if (pipe->regs[sink->cols[c].reg].kind == KIND_STR) {
            return arena_printf(arena, "output column %u is text that is not dictionary-coded",
                                c + 1);
        }
    }
    if (sink->kind == SINK_AGG && sink->word_count > AGG_MAX_WORDS) {
        return arena_printf(arena, "the aggregation has %u words", sink->word_count);
    }
    u32 matches = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const char *refusal = refuse_op(arena, pipe, &pipe->ops[i]);
        if (refusal) {
            return refusal;
        }
        matches += pipe->ops[i].code == OP_MATCH;
    }
    if (matches > MAX_MATCHES) {
        return arena_printf(arena, "the pipeline has %u MATCH opcodes", matches);
    }
    return NULL;
}

/* --- numbering what opcodes refer to --- */

static u16 number_u32(struct arena *arena, struct u32_list *list, u32 item) {
    for (i64 i = 0; i < list->count; i++) {
        if (list->items[i] == item) {
            return (u16)i;
        }
    }
    VEC_PUSH(arena, list, item);
    return (u16)(list->count - 1);
}

static u16 number_col(struct planner *p, u32 var, u32 col) {
    struct gpu_plan *plan = p->plan;
    for (i64 i = 0; i < plan->cols.count; i++) {
        if (plan->cols.items[i].var == var && plan->cols.items[i].col == col) {
            return (u16)i;
        }
    }
    struct plan_col added = {var, col};
    VEC_PUSH(p->arena, &plan->cols, added);
    return (u16)(plan->cols.count - 1);
}

static void number_op(struct planner *p, u32 i) {
    struct gpu_plan *plan = p->plan;
    const struct op *op = &p->pipe->ops[i];
    u16 imm = (u16)op->imm;
    switch (op->code) {
    case OP_CONST:
        imm = number_u32(p->arena, &plan->lits, op->imm);
        break;
    case OP_LUT:
        imm = number_u32(p->arena, &plan->luts, op->imm);
        break;
    case OP_PROBE:
    case OP_MATCH:
        imm = number_u32(p->arena, &plan->indexes, op->imm);
        break;
    case OP_LOADV:
    case OP_LOADVN:
        imm = number_col(p, op->b, op->imm);
        break;
    case OP_LOAD:
    case OP_LOADN:
        plan->col_used[op->imm] = 1;
        break;
    default:
        break;
    }
    plan->has_match |= op->code == OP_MATCH;
    plan->op_imm[i] = imm;
}

/* --- liveness --- */

static bool writes(const struct op *op) {
    return op->dst != NO_REG && op->code != OP_FILTER && op->code != OP_WHEN &&
           op->code != OP_END && op->code != OP_EMIT;
}

static void use(struct planner *p, u16 reg, u32 at) {
    if (reg != NO_REG) {
        p->last[reg] = MAX_OF(p->last[reg], at);
    }
}

static void use_sink(struct planner *p, const struct sink *sink, u32 at) {
    if (sink->kind == SINK_ROWS) {
        for (u32 c = 0; c < sink->col_count; c++) {
            use(p, sink->cols[c].reg, at);
            use(p, sink->cols[c].null_reg, at);
        }
        return;
    }
    use(p, sink->key, at);
    for (u32 w = 0; w < sink->word_count; w++) {
        use(p, sink->word_regs[w], at);
    }
}

static void use_op(struct planner *p, u32 at) {
    const struct op *op = &p->pipe->ops[at];
    const struct op_info *info = &op_infos[op->code];
    if (op->code == OP_EMIT) {
        use_sink(p, &p->pipe->sinks[op->imm], at);
        return;
    }
    if (info->flags & OP_CONTROL) {
        if (op->code != OP_CONST && op->code != OP_LOAD && op->code != OP_LOADN &&
            op->code != OP_ROWNO && op->code != OP_END) {
            use(p, op->a, at);
        }
    } else {
        const u16 operands[3] = {op->a, op->b, op->c};
        for (u32 i = 0; i < info->arity; i++) {
            use(p, operands[i], at);
        }
    }
    if (writes(op)) {
        p->first[op->dst] = MIN_OF(p->first[op->dst], at);
        use(p, op->dst, at);
    }
}

static void find_lives(struct planner *p) {
    const struct pipeline *pipe = p->pipe;
    p->first = NEW_ARRAY(p->arena, u32, pipe->reg_count + 1);
    p->last = NEW_ARRAY(p->arena, u32, pipe->reg_count + 1);
    memset(p->first, 0xff, sizeof(u32) * (pipe->reg_count + 1));
    for (u32 i = 0; i < pipe->op_count; i++) {
        use_op(p, i);
    }
    for (u32 m = 0; m < pipe->op_count; m++) {
        if (pipe->ops[m].code != OP_MATCH) {
            continue;
        }
        for (u32 r = 0; r < pipe->reg_count; r++) {
            if (p->first[r] <= m && (p->last[r] > m || r == pipe->ops[m].dst)) {
                p->last[r] = pipe->op_count;
            }
        }
    }
}

/* --- places --- */

static u16 take_bytes(struct planner *p, u32 bytes) {
    u32 place = p->next;
    p->next += (bytes + PLACE_UNIT - 1) / PLACE_UNIT;
    return (u16)(place < KOP_CONST ? place : 0);
}

static u16 take_place(struct planner *p, u32 class) {
    p->live++;
    p->plan->max_live = MAX_OF(p->plan->max_live, p->live);
    if (p->free_places[class].count > 0) {
        return p->free_places[class].items[--p->free_places[class].count];
    }
    return take_bytes(p, class_bytes[class] * VM_TILE_ROWS);
}

static void drop_place(struct planner *p, u32 class, u16 place) {
    p->live--;
    VEC_PUSH(p->arena, &p->free_places[class], place);
}

static void place_consts(struct planner *p) {
    for (u32 i = 0; i < p->pipe->op_count; i++) {
        const struct op *op = &p->pipe->ops[i];
        if (op->code != OP_CONST || !p->pipe->regs[op->dst].is_const) {
            continue;
        }
        u8 kind = p->pipe->regs[op->dst].kind;
        u16 place = (u16)(take_bytes(p, 4u * kind_bytes[kind]) | KOP_CONST);
        p->plan->places[op->dst] = place;
        struct kop kop = {.code = OP_CONST, .dst = place, .imm = p->plan->op_imm[i], .kind = kind};
        VEC_PUSH(p->arena, &p->plan->ops, kop);
    }
    p->plan->hoist_count = (u32)p->plan->ops.count;
}

static u16 place_of(const struct planner *p, u16 reg) {
    return reg == NO_REG ? 0 : p->plan->places[reg];
}

/* --- opcodes for the virtual machine --- */

struct emitter {
    u16 whens[16]; /* where WHEN keeps the active rows */
    u32 depth;
    struct kop matches[MAX_MATCHES];
    i64 match_at[MAX_MATCHES];
    u32 match_count;
};

static void release_dead(struct planner *p, u32 at) {
    for (u32 r = 0; r < p->pipe->reg_count; r++) {
        if (p->last[r] == at && p->first[r] <= at && !p->pipe->regs[r].is_const) {
            drop_place(p, class_of(p->pipe->regs[r].kind), p->plan->places[r]);
        }
    }
}

/* Opcode i is a FILTER on what the opcode before it computes for nothing else. */
static bool filters_at_once(const struct planner *p, u32 i, u32 depth) {
    const struct op *op = &p->pipe->ops[i];
    if (op->code != OP_FILTER || i == 0 || depth > 0) {
        return false;
    }
    const struct op *made = &p->pipe->ops[i - 1];
    return !(op_infos[made->code].flags & OP_CONTROL) && made->dst == op->a &&
           p->first[op->a] == i - 1 && p->last[op->a] == i;
}

static const char *emit_op(struct planner *p, struct emitter *e, u32 i) {
    const struct op *op = &p->pipe->ops[i];
    const struct op_info *info = &op_infos[op->code];
    if ((op->code == OP_CONST && p->pipe->regs[op->dst].is_const) ||
        filters_at_once(p, i, e->depth)) {
        release_dead(p, i);
        return NULL;
    }
    struct kop kop = {.code = op->code, .rank = op->rank, .imm = p->plan->op_imm[i]};
    bool always =
        op->code == OP_WHEN || op->code == OP_END || op->code == OP_MATCH || op->code == OP_EMIT;
    kop.flags = (u8)((e->depth > 0 ? KOP_MASKED : 0) | (always ? KOP_ALWAYS : 0) |
                     (hot[op->code] ? KOP_HOT : 0));
    if (writes(op)) {
        if (p->first[op->dst] == i) {
            p->plan->places[op->dst] = take_place(p, class_of(p->pipe->regs[op->dst].kind));
        }
        kop.dst = place_of(p, op->dst);
        kop.kind = p->pipe->regs[op->dst].kind;
    }
    if (!(info->flags & OP_CONTROL)) {
        kop.a = place_of(p, op->a);
        kop.b = info->arity > 1 ? place_of(p, op->b) : 0;
        kop.c = info->arity > 2 ? place_of(p, op->c) : 0;
    } else if (op->code == OP_WHEN) {
        if (e->depth == COUNT_OF(e->whens)) {
            return "WHEN is nested too deeply";
        }
        kop.a = place_of(p, op->a);
        kop.dst = e->whens[e->depth++] = take_place(p, 0);
    } else if (op->code == OP_END) {
        kop.dst = e->whens[--e->depth];
        drop_place(p, 0, kop.dst);
    } else if (op->code != OP_LOAD && op->code != OP_LOADN && op->code != OP_EMIT) {
        kop.a = place_of(p, op->a);
        kop.b = op->code == OP_LUT ? op->b : 0;
    }
    if (op->code == OP_MATCH) { /* cursors and ends, side by side */
        kop.b = take_bytes(p, 2 * 4 * VM_TILE_ROWS);
        e->match_at[e->match_count] = p->plan->ops.count;
        e->matches[e->match_count++] = kop;
    }
    if (i + 1 < p->pipe->op_count && filters_at_once(p, i + 1, e->depth)) {
        kop.flags |= KOP_FILTERS;
    }
    VEC_PUSH(p->arena, &p->plan->ops, kop);
    release_dead(p, i);
    return NULL;
}

/* One NEXT per MATCH, innermost first; each MATCH knows where to go when no row has a match. */
static void emit_nexts(struct planner *p, struct emitter *e) {
    while (e->match_count > 0) {
        e->match_count--;
        struct kop next = e->matches[e->match_count];
        i64 at = e->match_at[e->match_count];
        next.code = KOP_NEXT;
        next.flags = KOP_ALWAYS;
        next.c = (u16)(at + 1);
        VEC_PUSH(p->arena, &p->plan->ops, next);
        p->plan->ops.items[at].c = (u16)p->plan->ops.count;
    }
}

void gpu_plan_forms(const struct gpu_plan *plan, const struct weave_col *cols, struct kop *ops) {
    for (i64 i = 0; i < plan->ops.count; i++) {
        ops[i] = plan->ops.items[i];
        if (ops[i].code != OP_LOAD) {
            continue;
        }
        u32 class = class_of(ops[i].kind);
        u8 form = cols[ops[i].imm].form;
        if (class == 1 && (form == SEG_I32 || form == SEG_F32)) {
            form = SEG_U32;
        }
        if (class == 2 && (form == SEG_I64 || form == SEG_F64)) {
            form = SEG_U64;
        }
        bool known = form == SEG_U8 || form == SEG_U16 || form == SEG_U32 ||
                     (class == 2 && (form == SEG_U64 || form == SEG_I32));
        if (known && (class == 1 || class == 2)) {
            ops[i].code = (u16)KOP_LOAD(class, form);
            ops[i].flags |= KOP_HOT;
        }
    }
}

const char *gpu_plan_make(struct arena *arena, const struct program *program,
                          const struct pipeline *pipe, struct gpu_plan *out) {
    const char *refusal = refuse_pipe(arena, pipe);
    if (refusal) {
        return refusal;
    }
    memset(out, 0, sizeof *out);
    out->program = program;
    out->pipe = pipe;
    out->sink = &pipe->sinks[0];
    out->op_imm = NEW_ARRAY(arena, u16, pipe->op_count + 1);
    out->places = NEW_ARRAY(arena, u16, pipe->reg_count + 1);
    out->col_used = NEW_ARRAY(arena, b8, pipe->source.col_count + 1);
    struct planner p = {.arena = arena, .plan = out, .pipe = pipe};
    for (u32 i = 0; i < pipe->op_count; i++) {
        number_op(&p, i);
    }
    find_lives(&p);
    out->first = p.first;
    out->last = p.last;
    place_consts(&p);
    struct emitter e = {.depth = 0};
    for (u32 i = 0; i < pipe->op_count; i++) {
        refusal = emit_op(&p, &e, i);
        if (refusal) {
            return refusal;
        }
    }
    emit_nexts(&p, &e);
    out->slot_bytes = (i64)p.next * PLACE_UNIT;
    if (out->max_live > MAX_LIVE) {
        return arena_printf(arena, "the pipeline has %d registers alive at once, more than %d",
                            out->max_live, MAX_LIVE);
    }
    if (p.next >= KOP_CONST || out->ops.count > 0xffff) {
        return "the pipeline is too long";
    }
    return NULL;
}
