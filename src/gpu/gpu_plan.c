/* gpu_plan.c: a pipeline made ready for launching: what it refers to, and its opcodes for the
 * virtual machine.
 *
 * Literals, lookup tables, columns of variables and indexes get small numbers in the order of first
 * use. The virtual machine and the weaver use the same numbers, so both kinds of kernel take the
 * same argument block. Registers get places in shared memory by liveness; constants are filled once
 * per block. MATCH and MEET repeat what follows them, hence whatever is alive there stays alive to the end. A
 * pipeline that the card cannot run is found out here, with a reason that names the opcode.
 *
 * A dispatch of the virtual machine costs as much as the work of a simple opcode, so frequent
 * sequences become one. A load or an addition is joined with comparisons of its result with
 * literals, AND or OR with an earlier boolean, and FILTER; a widening with the operation that wants
 * it. Booleans that only such opcodes use live outside shared memory. Columns that only the output
 * uses are read when rows are written. The opcodes that EXPLAIN shows and the weaver reads stay as
 * they are. */
#include "gpu/gpu_int.h"

#include "codes/op.h"

enum { PLACE_UNIT = 16 };
#define LARGE_TILE_BYTES (51 << 10) /* four blocks of it fit a multiprocessor */

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

/* Hot opcodes of the virtual machine, plus one; GT and GE are LT and LE with the operands
 * exchanged, NE is EQ negated. */
#define HOT_ARITHMETIC(K)                                             \
    [OP_ADD_##K] = KHOT_ADD_##K + 1, [OP_SUB_##K] = KHOT_SUB_##K + 1, \
    [OP_MUL_##K] = KHOT_MUL_##K + 1
#define HOT_COMPARISONS(K)                                                                       \
    [OP_EQ_##K] = KHOT_EQ_##K + 1, [OP_NE_##K] = KHOT_EQ_##K + 1, [OP_LT_##K] = KHOT_LT_##K + 1, \
    [OP_LE_##K] = KHOT_LE_##K + 1, [OP_GT_##K] = KHOT_LT_##K + 1, [OP_GE_##K] = KHOT_LE_##K + 1
static const u8 hot_arithmetic[OP_COUNT] = {HOT_ARITHMETIC(I32), HOT_ARITHMETIC(F32),
                                            HOT_ARITHMETIC(I64), HOT_ARITHMETIC(F64)};
static const u8 hot_comparison[OP_COUNT] = {HOT_COMPARISONS(I32), HOT_COMPARISONS(F32),
                                            HOT_COMPARISONS(I64), HOT_COMPARISONS(F64)};
static const u8 hot_flags[OP_COUNT] = {
    [OP_AND_B8] = KHOT_AND + 1, [OP_OR_B8] = KHOT_OR + 1,     [OP_ANDN_B8] = KHOT_ANDN + 1,
    [OP_ORN_B8] = KHOT_ORN + 1, [OP_NOT_B8] = KHOT_FLAGS + 1, [OP_FILTER] = KHOT_FLAGS + 1};
enum { FORM_PLAIN, FORM_GREATER, FORM_UNEQUAL };
#define FORMS(K) [OP_GT_##K] = FORM_GREATER, [OP_GE_##K] = FORM_GREATER, [OP_NE_##K] = FORM_UNEQUAL
static const u8 comparison_form[OP_COUNT] = {FORMS(I32), FORMS(F32), FORMS(I64), FORMS(F64)};
#undef FORMS
#undef HOT_ARITHMETIC
#undef HOT_COMPARISONS
/* The same comparison with its operands exchanged. */
static const u16 exchanged[OP_COUNT] = {
    [OP_EQ_I32] = OP_EQ_I32, [OP_NE_I32] = OP_NE_I32, [OP_LT_I32] = OP_GT_I32,
    [OP_LE_I32] = OP_GE_I32, [OP_GT_I32] = OP_LT_I32, [OP_GE_I32] = OP_LE_I32,
    [OP_EQ_F32] = OP_EQ_F32, [OP_NE_F32] = OP_NE_F32, [OP_LT_F32] = OP_GT_F32,
    [OP_LE_F32] = OP_GE_F32, [OP_GT_F32] = OP_LT_F32, [OP_GE_F32] = OP_LE_F32};

/* What is known of a register besides its life. */
struct facts {
    u32 defs, uses;
    u32 sink_uses;
    u16 def_code;
    u32 def_at;  /* the opcode */
    u16 wide_of; /* four-byte register that its user widens; NO_REG = none */
    b8 deep;     /* written inside WHEN */
    b8 aside;    /* every use reads a boolean that lives outside shared memory */
    b8 placed;   /* has a place now */
};

struct planner {
    struct arena *arena;
    struct gpu_plan *plan;
    const struct pipeline *pipe;
    u32 *first; /* opcode that defines a register first */
    u32 *last;  /* and the one that uses it last */
    struct facts *facts;
    u16 *const_lit;          /* kernel number of a constant register's literal */
    VEC(u16) free_places[4]; /* by size class */
    u32 next;                /* first unused place */
    u32 aside_used;          /* bits: booleans outside shared memory */
    VEC(struct kop) hoists;
    VEC(struct kop) ops;
    i32 live;
};

/* --- what is refused --- */

const char *gpu_refusal(struct arena *arena, enum gpu_refusal reason, const char *what) {
    static const struct {
        const char *before, *after;
    } texts[] = {
#define X(A, name, before, after, why) [REFUSE_##name] = {before, after},
        WF_REFUSALS(X, )
#undef X
    };
    return arena_printf(arena, "%s%s%s", texts[reason].before, what, texts[reason].after);
}

static const char *refuse_count(struct arena *arena, enum gpu_refusal reason, i64 count) {
    return gpu_refusal(arena, reason, arena_printf(arena, "%lld", count));
}

/* The opcode that sets a register to a literal, for all rows; NULL when there is none. */
static const struct op *literal_of(const struct pipeline *pipe, u16 reg) {
    for (u32 i = 0; pipe->regs[reg].is_const && i < pipe->op_count; i++) {
        if (pipe->ops[i].code == OP_CONST && pipe->ops[i].dst == reg) {
            return &pipe->ops[i];
        }
    }
    return NULL;
}

static const char *refuse_op(struct arena *arena, const struct pipeline *pipe,
                             const struct op *op) {
    const struct op_info *info = &op_infos[op->code];
    if (op_ahead(op->code) ? literal_of(pipe, op->b) != NULL : op_partly(op->code) != NULL) {
        return NULL;
    }
    if (op->code == OP_COMMON) { /* of a plan for the CPU */
        return gpu_refusal(arena, REFUSE_COMMON, "");
    }
    if ((info->flags & OP_MAKES) && (info->flags & OP_HOST)) {
        return gpu_refusal(arena, REFUSE_MAKES, info->name);
    }
    if (info->flags & OP_HOST) {
        return gpu_refusal(arena, REFUSE_READS, info->name);
    }
    return NULL;
}

/* The one sink besides marks, or the first of several aggregations, or, without marks, of rows; NULL
 * when there are others, or none. */
static const struct sink *main_sink(const struct pipeline *pipe) {
    const struct sink *found = NULL;
    u32 count = 0;
    u32 aggs = 0;
    u32 rows = 0;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        bool counts = pipe->sinks[s].kind != SINK_MARK;
        found = counts && !found ? &pipe->sinks[s] : found;
        count += counts;
        aggs += pipe->sinks[s].kind == SINK_AGG;
        rows += pipe->sinks[s].kind == SINK_ROWS;
    }
    bool alike = (count == aggs && aggs <= PIPE_AGGS) || (pipe->sink_count == rows && rows <= PIPE_AGGS);
    return count == 1 || alike ? found : NULL;
}

static const char *refuse_pipe(struct arena *arena, const struct pipeline *pipe) {
    if (pipe->source.kind == SOURCE_DICT) {
        return gpu_refusal(arena, REFUSE_DICTIONARY, "");
    }
    const struct sink *sink = main_sink(pipe);
    if (!sink) {
        return refuse_count(arena, REFUSE_SINKS, pipe->sink_count);
    }
    if (sink->kind == SINK_LUT) {
        return gpu_refusal(arena, REFUSE_TABLE, "");
    }
    if (sink->set_var && ((!sink->set_small && sink->word_count > 0) || pipe->sink_count > 1)) {
        return gpu_refusal(arena, REFUSE_SET, "");
    }
    for (u32 s = 0; s < pipe->sink_count; s++) {
        if (pipe->sinks[s].kind == SINK_AGG && pipe->sinks[s].word_count > AGG_MAX_WORDS) {
            return refuse_count(arena, REFUSE_WORDS, pipe->sinks[s].word_count);
        }
    }
    u32 matches = 0;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const char *refusal = refuse_op(arena, pipe, &pipe->ops[i]);
        if (refusal) {
            return refusal;
        }
        matches += gpu_op_repeats(pipe->ops[i].code);
    }
    if (matches > GPU_MATCHES_MOST) {
        return refuse_count(arena, REFUSE_MATCHES, matches);
    }
    return NULL;
}

bool gpu_op_guards(u16 code) {
    return code == OP_WHEN || code == OP_TRY;
}

bool gpu_op_repeats(u16 code) {
    return code == OP_MATCH || code == OP_MEET;
}

u32 gpu_meet_lists(const struct gpu_plan *plan, u32 at, struct meet_list lists[MEET_LISTS_MOST]) {
    const struct op *ops = plan->pipe->ops;
    u32 count = 0;
    for (; count < ops[at].b; count++) {
        u16 reg = (u16)(ops[at].a + count);
        u32 run = at;
        while (ops[run].code != OP_RUN || ops[run].dst != reg) {
            run--; /* it stands before */
        }
        u32 rows = plan->program->vars[ops[run].imm].rows_var;
        i64 col = 0;
        while (plan->cols.items[col].var != rows || plan->cols.items[col].col != 1) {
            col++; /* number_op put it there */
        }
        lists[count] = (struct meet_list){reg, plan->op_imm[run], (u16)col};
    }
    return count;
}

bool gpu_op_adds(const struct op *op) {
    return (op->code == OP_INTERN && op->b != 1) || (op->code == OP_INTERN2 && op->c != 1);
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

static u16 number_ahead(struct planner *p, u32 lit, u16 code) {
    struct gpu_plan *plan = p->plan;
    for (i64 i = 0; i < plan->patterns.count; i++) {
        if (plan->patterns.items[i].lit == lit && plan->patterns.items[i].code == code) {
            return (u16)i;
        }
    }
    struct gpu_plan_ahead added = {lit, code};
    VEC_PUSH(p->arena, &plan->patterns, added);
    return (u16)(plan->patterns.count - 1);
}

static u16 number_col(struct planner *p, u32 var, u32 col) {
    struct gpu_plan *plan = p->plan;
    for (i64 i = 0; i < plan->cols.count; i++) {
        if (plan->cols.items[i].var == var && plan->cols.items[i].col == col) {
            return (u16)i;
        }
    }
    struct gpu_plan_col added = {var, col};
    VEC_PUSH(p->arena, &plan->cols, added);
    return (u16)(plan->cols.count - 1);
}

static void number_op(struct planner *p, u32 i) {
    struct gpu_plan *plan = p->plan;
    const struct op *op = &p->pipe->ops[i];
    u16 imm = (u16)op->imm;
    switch ((enum role)op_infos[op->code].roles[OPERAND_IMM]) {
    case ROLE_literal:
        imm = number_u32(p->arena, &plan->lits, op->imm);
        break;
    case ROLE_table:
        imm = number_u32(p->arena, &plan->luts, op->imm);
        break;
    case ROLE_index:
        imm = number_u32(p->arena, &plan->indexes, op->imm);
        if (op->code == OP_RUN) { /* the values that runs meet by */
            number_col(p, plan->program->vars[op->imm].rows_var, 1);
        }
        break;
    case ROLE_interner:
        imm = number_u32(p->arena, &plan->interns, op->imm);
        break;
    case ROLE_var_column:
        imm = number_col(p, op->b, op->imm);
        break;
    case ROLE_column:
        plan->col_used[op->imm] = 1;
        break;
    default:
        break;
    }
    if (op_ahead(op->code)) {
        imm = number_ahead(p, literal_of(p->pipe, op->b)->imm, op->code);
    }
    plan->makes += (op_infos[op->code].flags & OP_MAKES) != 0;
    bool rare =
        op_infos[op->code].flags & OP_RARE || op_ahead(op->code) || op_partly(op->code);
    if (rare && !plan->woven_op) {
        plan->woven_op = op_infos[op->code].name;
    }
    plan->adds_interns |= gpu_op_adds(op);
    plan->best_count += intern_keyed(op);
    plan->has_match |= gpu_op_repeats(op->code);
    plan->has_each |= op->code == OP_EACH;
    plan->op_imm[i] = imm;
}

/* --- liveness --- */

static u32 closing_any(const struct pipeline *pipe, u32 each) {
    while (pipe->ops[each].code != OP_ANY) {
        each++;
    }
    return each;
}

/* Who asks which registers an opcode reads. */
struct reading {
    struct planner *p;
    u32 at;
    b8 flags; /* it reads booleans, which may live outside shared memory */
};

static void use(void *arg, u16 reg) {
    const struct reading *r = arg;
    r->p->last[reg] = MAX_OF(r->p->last[reg], r->at);
}

static void use_op(struct planner *p, u32 at) {
    const struct op *op = &p->pipe->ops[at];
    struct reading reading = {p, at, 0};
    op_reads(op, p->pipe->sinks, use, &reading);
    if (op_writes(op)) {
        p->first[op->dst] = MIN_OF(p->first[op->dst], at);
        use(&reading, op->dst);
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
    for (u32 e = 0; e < pipe->op_count; e++) { /* the opcodes up to ANY are repeated */
        u32 any = pipe->ops[e].code == OP_EACH ? closing_any(pipe, e) : e;
        for (u32 r = 0; any > e && r < pipe->reg_count; r++) {
            if (p->first[r] <= e && p->last[r] > e) {
                p->last[r] = MAX_OF(p->last[r], any);
            }
        }
    }
    for (u32 m = 0; m < pipe->op_count; m++) {
        if (!gpu_op_repeats(pipe->ops[m].code)) {
            continue;
        }
        for (u32 r = 0; r < pipe->reg_count; r++) {
            if (p->first[r] <= m && (p->last[r] > m || r == pipe->ops[m].dst)) {
                p->last[r] = pipe->op_count;
            }
        }
    }
}

/* --- what fusing must know --- */

static bool reads_flags(u16 code) {
    return hot_flags[code] || code == OP_WHEN;
}

static void note_use(void *arg, u16 reg) {
    const struct reading *r = arg;
    struct facts *f = &r->p->facts[reg];
    f->uses++;
    f->aside = f->aside && r->flags;
}

static void note_op(struct planner *p, const struct op *op, u32 depth) {
    bool flags = reads_flags(op->code) && (depth == 0 || op->code == OP_WHEN);
    struct reading reading = {p, 0, flags};
    op_reads(op, p->pipe->sinks, note_use, &reading);
    const struct sink *sink = op->code == OP_EMIT ? &p->pipe->sinks[op->imm] : NULL;
    for (u32 c = 0; sink && c < sink->col_count; c++) {
        p->facts[sink->cols[c].reg].sink_uses++;
    }
    if (op_writes(op)) {
        struct facts *f = &p->facts[op->dst];
        f->defs++;
        f->def_code = op->code;
        f->def_at = (u32)(op - p->pipe->ops);
        f->deep |= depth > 0;
    }
}

static void find_facts(struct planner *p) {
    p->facts = NEW_ARRAY(p->arena, struct facts, p->pipe->reg_count + 1);
    p->const_lit = NEW_ARRAY(p->arena, u16, p->pipe->reg_count + 1);
    for (u32 r = 0; r < p->pipe->reg_count; r++) {
        p->facts[r].wide_of = NO_REG;
        p->facts[r].aside = p->pipe->regs[r].kind == KIND_B8;
    }
    u32 depth = 0;
    for (u32 i = 0; i < p->pipe->op_count; i++) {
        const struct op *op = &p->pipe->ops[i];
        depth -= op->code == OP_END;
        note_op(p, op, depth);
        depth += gpu_op_guards(op->code);
    }
    for (u32 r = 0; r < p->pipe->reg_count; r++) {
        struct facts *f = &p->facts[r];
        bool made = hot_comparison[f->def_code] || hot_flags[f->def_code];
        f->aside = f->aside && f->defs == 1 && !f->deep && made;
    }
}

/* Text that is loaded and goes straight to rows keeps the host's address. */
static void find_host_text(struct planner *p) {
    const struct pipeline *pipe = p->pipe;
    struct gpu_plan *plan = p->plan;
    plan->host_text = NEW_ARRAY(p->arena, b8, pipe->reg_count + 1);
    plan->has_text = plan->patterns.count > 0; /* their tables are placed as texts are */
    for (u32 r = 0; r < pipe->reg_count; r++) {
        bool is_text = pipe->regs[r].kind == KIND_STR;
        plan->has_text |= is_text;
        plan->host_text[r] = is_text && p->facts[r].uses == p->facts[r].sink_uses;
    }
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct op *op = &pipe->ops[i];
        if (op_writes(op) && op->code != OP_LOAD && op->code != OP_LOADV) {
            plan->host_text[op->dst] = 0;
        }
    }
}

/* --- places --- */

static u16 take_bytes(struct planner *p, u32 bytes) {
    u32 place = p->next;
    p->next += (bytes + PLACE_UNIT - 1) / PLACE_UNIT;
    return (u16)(place < KOP_ASIDE ? place : 0);
}

static u16 take_place(struct planner *p, u32 class) {
    p->live++;
    p->plan->max_live = MAX_OF(p->plan->max_live, p->live);
    if (p->free_places[class].count > 0) {
        return p->free_places[class].items[--p->free_places[class].count];
    }
    return take_bytes(p, class_bytes[class] * p->plan->tile_rows);
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
        p->const_lit[op->dst] = p->plan->op_imm[i];
        struct kop kop = {.code = OP_CONST, .dst = place, .imm = p->plan->op_imm[i], .kind = kind};
        VEC_PUSH(p->arena, &p->hoists, kop);
    }
}

static u16 place_of(const struct planner *p, u16 reg) {
    return reg == NO_REG ? 0 : p->plan->places[reg];
}

/* The place of a register that an opcode writes, found when it writes for the first time. */
static u16 place_made(struct planner *p, u16 reg) {
    struct facts *f = &p->facts[reg];
    if (f->placed) {
        return p->plan->places[reg];
    }
    f->placed = 1;
    for (u32 n = 0; f->aside && n < KOP_ASIDE_FLAGS; n++) {
        if (!(p->aside_used >> n & 1)) {
            p->aside_used |= 1u << n;
            return p->plan->places[reg] = (u16)(KOP_ASIDE | n);
        }
    }
    return p->plan->places[reg] = take_place(p, class_of(p->pipe->regs[reg].kind));
}

/* --- exact sums --- */

enum { LIMBS_LEAST = 7 }; /* fewer are cheaper as registers, added up per thread first */

static i32 const_i32(const struct planner *p, u16 reg) {
    return p->plan->program->lits[p->plan->lits.items[p->const_lit[reg]]].i32;
}

/* The FLIMB or FSQUARE that makes word w and serves nothing else; NULL when it is something
 * different. */
static const struct op *limb_op(const struct planner *p, const struct sink *sink, u32 w) {
    u16 reg = w < sink->word_count ? sink->word_regs[w] : NO_REG;
    if (reg == NO_REG || sink->words[w] != WORD_ADD) {
        return NULL;
    }
    const struct facts *f = &p->facts[reg];
    const struct op *op = &p->pipe->ops[f->def_at];
    bool plain = f->defs == 1 && f->uses == 1 && !f->deep &&
                 (f->def_code == OP_FLIMB_F64 || f->def_code == OP_FSQUARE_F64);
    return plain && p->pipe->regs[op->b].is_const && p->pipe->regs[op->c].is_const ? op : NULL;
}

/* Words that are the limbs of one sum from w on. */
static u32 limb_run(const struct planner *p, const struct sink *sink, u32 w) {
    const struct op *first = limb_op(p, sink, w);
    u32 count = first != NULL;
    while (count) {
        const struct op *next = limb_op(p, sink, w + count);
        if (!next || next->code != first->code || next->a != first->a ||
            const_i32(p, next->b) != const_i32(p, first->b) ||
            const_i32(p, next->c) != const_i32(p, first->c) + (i32)count) {
            break;
        }
        count++;
    }
    return count;
}

/* A long run of limbs gets no registers: the sink, if it is the only one, takes them from the value
 * itself. */
static void find_limbs(struct planner *p) {
    struct gpu_plan *plan = p->plan;
    const struct sink *sink = plan->sink;
    plan->is_limb = NEW_ARRAY(p->arena, b8, p->pipe->reg_count + 1);
    for (u32 w = 0; plan->agg_count == 1 && w < sink->word_count;) {
        u32 count = limb_run(p, sink, w);
        if (count >= LIMBS_LEAST) {
            const struct op *op = limb_op(p, sink, w);
            struct plan_limbs run = {op->a, op->b, w, count, const_i32(p, op->c), op->code};
            VEC_PUSH(p->arena, &plan->limbs, run);
            u32 last = plan->has_match ? p->pipe->op_count : p->pipe->op_count - 1;
            p->last[op->a] = plan->last[op->a] = last;
            for (u32 i = 0; i < count; i++) {
                plan->is_limb[sink->word_regs[w + i]] = 1;
                plan->first[sink->word_regs[w + i]] = 0xffffffffu;
            }
        }
        w += MAX_OF(count, 1u);
    }
}

/* Words that are loaded for FROUND or VARIANCE alone get no registers, either: they may be many, and
 * the opcode takes them from the columns. */
static void find_words(struct planner *p) {
    struct gpu_plan *plan = p->plan;
    plan->is_word = NEW_ARRAY(p->arena, b8, p->pipe->reg_count + 1);
    for (u32 i = 0; i < p->pipe->op_count; i++) {
        const struct op *op = &p->pipe->ops[i];
        bool words = op->code == OP_FROUND || op->code == OP_VARIANCE;
        plan->has_words |= words;
        for (u32 k = 0; words && k < op->b; k++) {
            u32 reg = (u32)op->a + k;
            const struct facts *f = &p->facts[reg];
            if (f->defs == 1 && f->uses == 1 && !f->deep && f->def_code == OP_LOAD) {
                plan->is_word[reg] = 1;
                plan->first[reg] = 0xffffffffu;
            }
        }
    }
}

/* --- opcodes for the virtual machine --- */

struct emitter {
    u16 whens[16]; /* where WHEN keeps the active rows */
    u32 depth;
    struct kop matches[GPU_MATCHES_MOST];
    i64 match_at[GPU_MATCHES_MOST];
    u32 match_count;
    struct kop each; /* the open one */
    i64 each_at;
};

static void release_dead(struct planner *p, u32 at) {
    for (u32 r = 0; r < p->pipe->reg_count; r++) {
        struct facts *f = &p->facts[r];
        if (p->last[r] != at || !f->placed) {
            continue;
        }
        f->placed = 0;
        if (p->plan->places[r] & KOP_ASIDE) {
            p->aside_used &= ~(1u << (p->plan->places[r] & (KOP_ASIDE_FLAGS - 1)));
        } else {
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

u32 gpu_sink_number(const struct pipeline *pipe, u32 sink) {
    u32 number = 0;
    for (u32 s = 0; s < sink; s++) {
        number += pipe->sinks[s].kind == pipe->sinks[sink].kind;
    }
    return number;
}

/* What the machine is told of a control opcode's field: a register's place, a number as it is. */
static u16 operand_of(const struct planner *p, const struct op *op, enum operand which) {
    u8 role = op_infos[op->code].roles[which];
    bool is_register = role > ROLE_no && role <= ROLE_b8_if;
    return is_register ? place_of(p, (u16)op_field(op, which)) : role == ROLE_half ? op->b : (u16)0;
}

/* An opcode being encoded. Its operands are there already; what is special of it is up to an
 * encoder of its own, which returns NULL or why it is refused. */
struct coding {
    struct planner *p;
    struct emitter *e;
    u32 at;
    const struct op *op;
    struct kop kop;
};

static const char *encode_when(struct coding *c) {
    struct emitter *e = c->e;
    if (e->depth == COUNT_OF(e->whens)) {
        return gpu_refusal(c->p->arena, REFUSE_WHENS, "");
    }
    c->kop.dst = e->whens[e->depth++] = take_place(c->p, 0);
    return NULL;
}

static const char *encode_end(struct coding *c) {
    c->kop.dst = c->e->whens[--c->e->depth];
    drop_place(c->p, 0, c->kop.dst);
    return NULL;
}

static const char *encode_loadv(struct coding *c) {
    c->kop.c |= c->op->c == 1 ? KOP_OUTER_ROW : 0;
    return NULL;
}

static const char *encode_emit(struct coding *c) {
    const struct sink *sink = &c->p->pipe->sinks[c->op->imm];
    if (sink->kind == SINK_MARK) {
        c->kop.code = KOP_MARK;
        c->kop.a = place_of(c->p, sink->key);
    }
    c->kop.imm = (u16)gpu_sink_number(c->p->pipe, c->op->imm);
    return NULL;
}

static const char *encode_intern(struct coding *c) {
    c->kop.c = !gpu_op_adds(c->op);
    return NULL;
}

/* What opcodes that look into an index hold besides key and index; returns the place of the rows
 * that look at all. */
static u16 encode_look(struct coding *c) {
    c->kop.kind = (u8)(probe_flags(c->op) | (c->op->b != NO_REG ? KPROBE_WHERE : 0));
    return place_of(c->p, c->op->b);
}

static const char *encode_probe(struct coding *c) {
    c->kop.b = encode_look(c);
    return NULL;
}

/* Cursors and ends, side by side. */
static const char *encode_match(struct coding *c) {
    struct emitter *e = c->e;
    c->kop.rank = encode_look(c);
    c->kop.b = take_bytes(c->p, 2 * 4 * c->p->plan->tile_rows);
    e->match_at[e->match_count] = c->p->ops.count;
    e->matches[e->match_count++] = c->kop;
    return NULL;
}

/* And the active rows. */
static const char *encode_each(struct coding *c) {
    const struct pipeline *pipe = c->p->pipe;
    c->kop.rank = encode_look(c);
    c->kop.b = take_bytes(c->p, 2 * 4 * c->p->plan->tile_rows + 4 * VM_BLOCK);
    c->kop.c = place_made(c->p, pipe->ops[closing_any(pipe, c->at)].dst);
    c->e->each = c->kop;
    c->e->each_at = c->p->ops.count;
    return NULL;
}

static const char *encode_any(struct coding *c) {
    c->kop.kind = (u8)probe_flags(c->op);
    c->kop.b = c->e->each.b;
    c->kop.imm = c->e->each.imm;
    c->kop.c = (u16)(c->e->each_at + 1);
    return NULL;
}

static const char *(*const encoders[OP_COUNT])(struct coding *c) = {
    [OP_WHEN] = encode_when,     [OP_TRY] = encode_when,       [OP_END] = encode_end,
    [OP_LOADV] = encode_loadv,   [OP_LOADVN] = encode_loadv,   [OP_EMIT] = encode_emit,
    [OP_INTERN] = encode_intern, [OP_INTERN2] = encode_intern, [OP_UNPAIR] = encode_intern,
    [OP_PROBE] = encode_probe,   [OP_MATCH] = encode_match,    [OP_EACH] = encode_each,
    [OP_ANY] = encode_any,
};

static u8 flags_of(const struct op_info *info, u32 depth) {
    bool scope = info->flags & (OP_OPENS | OP_CLOSES);
    bool always = scope || (info->flags & (OP_REPEATS | OP_EMITS));
    bool moves = scope || (info->flags & OP_SHAPES);
    return (u8)((depth > 0 ? KOP_MASKED : 0) | (always ? KOP_ALWAYS : 0) | (moves ? KOP_MOVES : 0));
}

static void encode_operands(struct coding *c) {
    struct planner *p = c->p;
    const struct op *op = c->op;
    const struct op_info *info = &op_infos[op->code];
    if (op_writes(op)) {
        c->kop.dst = place_made(p, op->dst);
        c->kop.kind = p->pipe->regs[op->dst].kind;
    }
    if (info->flags & OP_CONTROL) {
        c->kop.a = operand_of(p, op, OPERAND_A);
        c->kop.b = operand_of(p, op, OPERAND_B);
    } else {
        c->kop.a = place_of(p, op->a);
        c->kop.b = info->arity > 1 ? place_of(p, op->b) : 0;
        c->kop.c = info->arity > 2 ? place_of(p, op->c) : 0;
    }
    if (op_writes(op) && p->plan->host_text[op->dst]) {
        c->kop.c = KOP_HOST_TEXT;
    }
}

static const char *emit_op(struct planner *p, struct emitter *e, u32 i) {
    const struct op *op = &p->pipe->ops[i];
    bool hoisted = op->code == OP_CONST && p->pipe->regs[op->dst].is_const;
    if (hoisted || filters_at_once(p, i, e->depth)) {
        release_dead(p, i);
        return NULL;
    }
    struct coding c = {.p = p, .e = e, .at = i, .op = op};
    c.kop = (struct kop){.code = op->code, .rank = op->rank, .imm = p->plan->op_imm[i]};
    c.kop.flags = flags_of(&op_infos[op->code], e->depth);
    encode_operands(&c);
    const char *refusal = encoders[op->code] ? encoders[op->code](&c) : NULL;
    if (refusal) {
        return refusal;
    }
    if (i + 1 < p->pipe->op_count && filters_at_once(p, i + 1, e->depth)) {
        c.kop.flags |= KOP_FILTERS | KOP_MOVES;
    }
    VEC_PUSH(p->arena, &p->ops, c.kop);
    release_dead(p, i);
    return NULL;
}

/* --- frequent sequences as one opcode --- */

/* A hot opcode in the making: opcodes up to `end` are part of it. */
struct fused {
    struct kop kop;
    u32 end;
    u16 value;   /* four-byte register it makes, or tests */
    u16 boolean; /* register of the boolean it makes */
    b8 b_free;   /* operand b may hold a boolean to combine with */
};

static bool used_once(const struct planner *p, u16 reg) {
    return p->facts[reg].defs == 1 && p->facts[reg].uses == 1;
}

/* Opcode i compares `value` with a literal: its code with the value on the left, and the literal.
 */
static bool literal_test(const struct planner *p, u32 i, u16 value, u16 *code, u16 *lit) {
    if (i >= p->pipe->op_count) {
        return false;
    }
    const struct op *op = &p->pipe->ops[i];
    if (!exchanged[op->code] || op->a == op->b) {
        return false;
    }
    bool left = op->a == value;
    u16 other = left ? op->b : op->a;
    if ((!left && op->b != value) || !p->pipe->regs[other].is_const) {
        return false;
    }
    *code = left ? op->code : exchanged[op->code];
    *lit = p->const_lit[other];
    return true;
}

static bool is_ne(u16 code) {
    return comparison_form[code] == FORM_UNEQUAL;
}

/* Comparisons of f->value with one or two literals from opcode i on become bounds. */
static bool fuse_test(struct planner *p, struct fused *f, u32 i) {
    u16 code = 0;
    u16 lit = 0;
    if (f->value == NO_REG || !literal_test(p, i, f->value, &code, &lit)) {
        return false;
    }
    const struct op *ops = p->pipe->ops;
    u8 kind = p->pipe->regs[f->value].kind;
    struct kop range = {.code = KOP_RANGE, .rank = code, .imm = lit, .c = 0xffff, .kind = kind};
    f->end = i;
    f->boolean = ops[i].dst;
    u16 second = 0;
    if (i + 2 < p->pipe->op_count && ops[i + 2].code == OP_AND_B8 && !is_ne(code) &&
        literal_test(p, i + 1, f->value, &second, &range.b) && !is_ne(second) &&
        used_once(p, ops[i].dst) && used_once(p, ops[i + 1].dst) &&
        ((ops[i + 2].a == ops[i].dst && ops[i + 2].b == ops[i + 1].dst) ||
         (ops[i + 2].b == ops[i].dst && ops[i + 2].a == ops[i + 1].dst))) {
        range.c = second;
        f->end = i + 2;
        f->boolean = ops[i + 2].dst;
    }
    range.dst = (u16)(take_bytes(p, PLACE_UNIT) | KOP_CONST);
    VEC_PUSH(p->arena, &p->hoists, range);
    f->kop.c = range.dst;
    f->kop.kind |= (u8)(KHOT_TEST | KHOT_BOOLEAN | (kind == KIND_F32 ? KHOT_REAL : 0) |
                        (is_ne(code) ? KHOT_FLIP : 0));
    return true;
}

/* AND or OR with another boolean, then FILTER, where the boolean made so far has no other use. */
static void fuse_boolean(struct planner *p, struct fused *f) {
    const struct op *next = &p->pipe->ops[f->end + 1];
    if (f->b_free && f->end + 1 < p->pipe->op_count && used_once(p, f->boolean) &&
        (next->code == OP_AND_B8 || next->code == OP_OR_B8) &&
        (next->a == f->boolean || next->b == f->boolean)) {
        f->kop.b = place_of(p, next->a == f->boolean ? next->b : next->a);
        f->kop.kind |= next->code == OP_AND_B8 ? KHOT_ANDED : KHOT_ORED;
        f->boolean = next->dst;
        next = &p->pipe->ops[++f->end + 1];
    }
    if (f->end + 1 < p->pipe->op_count && next->code == OP_FILTER && next->a == f->boolean &&
        used_once(p, f->boolean)) {
        f->kop.kind |= KHOT_FILTER;
        f->end++;
    }
}

/* Operands of an eight-byte operation whose widening was left to it. */
static u16 wide_operand(const struct planner *p, u16 reg, u8 flag, u8 *flags) {
    u16 narrow = p->facts[reg].wide_of;
    if (narrow == NO_REG) {
        return place_of(p, reg);
    }
    *flags |= flag;
    return place_of(p, narrow);
}

/* What an opcode does by itself that opens a hot opcode; false when it does not open one. */

static bool start_load(struct planner *p, struct fused *f, const struct op *op) {
    if (op->code != OP_LOAD || class_of(p->pipe->regs[op->dst].kind) != 1) {
        return false;
    }
    f->kop.code = KHOT_LOAD4_ANY;
    f->kop.imm = p->plan->op_imm[f->end];
    f->value = op->dst;
    f->b_free = 1;
    return true;
}

static bool start_arithmetic(struct planner *p, struct fused *f, const struct op *op) {
    struct kop *kop = &f->kop;
    if (!hot_arithmetic[op->code]) {
        return false;
    }
    kop->code = (u16)(hot_arithmetic[op->code] - 1);
    kop->a = wide_operand(p, op->a, KOP_WIDE_A, &kop->flags);
    kop->b = wide_operand(p, op->b, KOP_WIDE_B, &kop->flags);
    if (class_of(p->pipe->regs[op->dst].kind) == 1) {
        f->value = op->dst;
    } else {
        kop->dst = place_made(p, op->dst);
    }
    return true;
}

/* With a literal: bounds. */
static bool start_test(struct planner *p, struct fused *f, const struct op *op) {
    u16 code = 0;
    u16 lit = 0;
    if (!hot_comparison[op->code]) {
        return false;
    }
    u16 value = p->pipe->regs[op->a].is_const ? op->b : op->a;
    if (!literal_test(p, f->end, value, &code, &lit)) {
        return false;
    }
    f->value = value;
    f->kop.code = KHOT_GET;
    f->kop.a = place_of(p, value);
    f->b_free = 1;
    fuse_test(p, f, f->end);
    return true;
}

static bool start_comparison(struct planner *p, struct fused *f, const struct op *op) {
    struct kop *kop = &f->kop;
    if (!hot_comparison[op->code]) {
        return false;
    }
    bool greater = comparison_form[op->code] == FORM_GREATER;
    kop->code = (u16)(hot_comparison[op->code] - 1);
    kop->a = wide_operand(p, greater ? op->b : op->a, KOP_WIDE_A, &kop->flags);
    kop->b = wide_operand(p, greater ? op->a : op->b, KOP_WIDE_B, &kop->flags);
    kop->kind = (u8)(KHOT_BOOLEAN | (is_ne(op->code) ? KHOT_FLIP : 0));
    f->boolean = op->dst;
    return true;
}

static bool start_boolean(struct planner *p, struct fused *f, const struct op *op) {
    struct kop *kop = &f->kop;
    bool filter = op->code == OP_FILTER;
    if (!hot_flags[op->code]) {
        return false;
    }
    kop->code = (u16)(hot_flags[op->code] - 1);
    kop->a = place_of(p, op->a);
    kop->b = op_infos[op->code].arity > 1 && !filter ? place_of(p, op->b) : 0;
    kop->kind =
        (u8)(KHOT_BOOLEAN | (op->code == OP_NOT_B8 ? KHOT_FLIP : 0) | (filter ? KHOT_FILTER : 0));
    f->boolean = filter ? NO_REG : op->dst;
    return true;
}

/* Opcode i opens a hot opcode. */
static bool start_fused(struct planner *p, struct fused *f, u32 i) {
    static bool (*const starts[])(struct planner *, struct fused *, const struct op *) = {
        start_load, start_arithmetic, start_test, start_comparison, start_boolean};
    bool started = false;
    for (i32 s = 0; !started && s < COUNT_OF(starts); s++) {
        started = starts[s](p, f, &p->pipe->ops[i]);
    }
    return started;
}

/* A source column that nothing but the output uses. */
static bool load_late(struct planner *p, u32 i) {
    const struct op *op = &p->pipe->ops[i];
    const struct facts *f = op->code == OP_LOAD ? &p->facts[op->dst] : NULL;
    u32 class = f ? class_of(p->pipe->regs[op->dst].kind) : 0;
    bool late = class == 1 || class == 2 || (f && p->plan->host_text[op->dst]);
    if (!f || f->defs != 1 || f->uses != f->sink_uses || !late || op->imm >= KOP_ASIDE) {
        return false;
    }
    p->plan->places[op->dst] = (u16)(KOP_ASIDE | op->imm);
    return true;
}

/* A widening whose only use is a hot operation outside WHEN that does it on the way. The narrow
 * value then lives until there. */
static bool widen_later(struct planner *p, u32 i) {
    const struct op *op = &p->pipe->ops[i];
    if ((op->code != OP_I64_I32 && op->code != OP_F64_F32) || p->plan->has_match ||
        p->plan->has_each || !used_once(p, op->dst) || p->facts[op->a].defs != 1) {
        return false;
    }
    u32 depth = 0;
    for (u32 k = i + 1; k < p->pipe->op_count; k++) {
        const struct op *user = &p->pipe->ops[k];
        depth -= user->code == OP_END;
        bool operation = hot_arithmetic[user->code] || hot_comparison[user->code];
        if (operation && (user->a == op->dst || user->b == op->dst)) {
            if (depth > 0) {
                return false;
            }
            p->facts[op->dst].wide_of = op->a;
            p->last[op->a] = MAX_OF(p->last[op->a], k);
            return true;
        }
        depth += gpu_op_guards(user->code);
    }
    return false;
}

/* Opcodes from i on as one hot opcode: how many, 0 for none. */
static u32 emit_fused(struct planner *p, const struct emitter *e, u32 i) {
    if (e->depth > 0 || filters_at_once(p, i, 0)) {
        return 0;
    }
    const struct op *op = &p->pipe->ops[i];
    bool none = op_writes(op) && (p->plan->is_limb[op->dst] || p->plan->is_word[op->dst]);
    if (none || load_late(p, i) || widen_later(p, i)) {
        release_dead(p, i);
        return 1;
    }
    struct fused f = {.kop = {.flags = KOP_HOT}, .end = i, .value = NO_REG, .boolean = NO_REG};
    if (!start_fused(p, &f, i)) {
        return 0;
    }
    if (f.value != NO_REG && !(f.kop.kind & KHOT_BOOLEAN)) {
        fuse_test(p, &f, i + 1);
        bool gone = p->last[f.value] <= f.end && p->facts[f.value].defs == 1;
        f.kop.dst = gone ? 0 : place_made(p, f.value);
        f.kop.kind |= (u8)(gone ? 0 : KHOT_STORE);
    }
    if (f.boolean != NO_REG) {
        fuse_boolean(p, &f);
        f.kop.rank = f.kop.kind & KHOT_FILTER ? 0 : place_made(p, f.boolean);
    }
    VEC_PUSH(p->arena, &p->ops, f.kop);
    for (u32 k = i; k <= f.end; k++) {
        release_dead(p, k);
    }
    return f.end + 1 - i;
}

/* One NEXT per MATCH, innermost first; each MATCH knows where to go when no row has a match. */
static void emit_nexts(struct planner *p, struct emitter *e) {
    while (e->match_count > 0) {
        e->match_count--;
        struct kop next = e->matches[e->match_count];
        i64 at = e->match_at[e->match_count];
        next.code = KOP_NEXT;
        next.flags = KOP_ALWAYS | KOP_MOVES;
        next.c = (u16)(at + 1);
        VEC_PUSH(p->arena, &p->ops, next);
        p->ops.items[at].c = (u16)p->ops.count;
    }
}

/* Constants first; one opcode at the end that is fetched and never executed. */
static void put_together(struct planner *p) {
    struct gpu_plan *plan = p->plan;
    for (i64 i = 0; i < p->hoists.count; i++) {
        VEC_PUSH(p->arena, &plan->ops, p->hoists.items[i]);
    }
    plan->hoist_count = (u32)p->hoists.count;
    for (i64 i = 0; i < p->ops.count; i++) {
        struct kop kop = p->ops.items[i];
        if (!(kop.flags & KOP_HOT) &&
            (kop.code == OP_MATCH || kop.code == OP_ANY || kop.code == KOP_NEXT)) {
            kop.c = (u16)(kop.c + plan->hoist_count);
        }
        VEC_PUSH(p->arena, &plan->ops, kop);
    }
    struct kop last = {.code = OP_CONST};
    VEC_PUSH(p->arena, &plan->ops, last);
}

/* The hot opcode of a load into four or eight bytes; form SEG_CONST = none. Forms of as many bytes as the register
 * has are one. */
static const struct hot_load {
    u8 form; /* as which it is loaded */
    u16 code;
} hot_loads[2][SEG_SERIES + 1] = {{[SEG_U8] = {SEG_U8, KHOT_LOAD4_U8},
                                   [SEG_U16] = {SEG_U16, KHOT_LOAD4_U16},
                                   [SEG_U32] = {SEG_U32, KHOT_LOAD4_U32},
                                   [SEG_I32] = {SEG_U32, KHOT_LOAD4_U32},
                                   [SEG_F32] = {SEG_U32, KHOT_LOAD4_U32}},
                                  {[SEG_U8] = {SEG_U8, KHOT_LOAD8_U8},
                                   [SEG_U16] = {SEG_U16, KHOT_LOAD8_U16},
                                   [SEG_U32] = {SEG_U32, KHOT_LOAD8_U32},
                                   [SEG_I32] = {SEG_I32, KHOT_LOAD8_I32},
                                   [SEG_U64] = {SEG_U64, KHOT_LOAD8_U64},
                                   [SEG_I64] = {SEG_U64, KHOT_LOAD8_U64},
                                   [SEG_F64] = {SEG_U64, KHOT_LOAD8_U64}}};

void gpu_plan_forms(const struct gpu_plan *plan, const struct weave_col *cols, struct kop *ops) {
    for (i64 i = 0; i < plan->ops.count; i++) {
        struct kop *op = &ops[i];
        *op = plan->ops.items[i];
        bool is_hot = op->flags & KOP_HOT;
        if (i < plan->hoist_count || op->code != (is_hot ? (u16)KHOT_LOAD4_ANY : (u16)OP_LOAD)) {
            continue;
        }
        u32 class = is_hot ? 1 : class_of(op->kind);
        struct hot_load load = {0};
        if (class == 1 || class == 2) {
            load = hot_loads[class - 1][cols[op->imm].form];
        }
        if (load.form && !is_hot && (op->flags & KOP_MASKED)) {
            op->code = (u16)KOP_LOAD(class, load.form);
        } else if (load.form) {
            op->code = load.code;
            op->kind = is_hot ? op->kind : 0;
            op->flags |= KOP_HOT;
        }
    }
}

i64 gpu_counted_behind(const struct pipeline *pipe, u32 op) {
    u32 closed = 0; /* scopes that ended before, whose rows go on as they came */
    for (i64 i = (i64)op - 1; i >= 0; i--) {
        u16 code = pipe->ops[i].code;
        bool drops = code == OP_FILTER || code == OP_PROBE || gpu_op_repeats(code) || code == OP_ANY;
        if (closed == 0 && (drops || code == OP_WHEN)) {
            return i;
        }
        closed += code == OP_END;
        closed -= gpu_op_guards(code) && closed > 0;
    }
    return -1;
}

bool gpu_op_looks_up(const struct pipeline *pipe, u32 op) {
    u16 code = pipe->ops[op].code;
    i32 depth = 0;
    for (u32 i = 0; i < op; i++) {
        depth += gpu_op_guards(pipe->ops[i].code);
        depth -= pipe->ops[i].code == OP_END;
    }
    return depth == 0 && (code == OP_PROBE || gpu_op_repeats(code) || code == OP_EACH);
}

static void count_behind(struct gpu_plan *out, i64 op) {
    if (op >= 0 && !out->count_after[op] && out->count_places < COUNT_PLACES) {
        out->count_after[op] = (u8)++out->count_places;
    }
}

/* Only where it is asked for: elsewhere neither code knows of counting. */
static void find_counted(struct arena *arena, const struct pipeline *pipe, bool counts,
                         struct gpu_plan *out) {
    out->count_after = NEW_ARRAY(arena, u8, pipe->op_count + 1);
    for (u32 m = 0; counts && m < pipe->mark_count; m++) {
        count_behind(out, gpu_counted_behind(pipe, pipe->marks[m].op));
    }
    for (u32 i = 0; counts && i < pipe->op_count; i++) {
        if (gpu_op_looks_up(pipe, i)) {
            count_behind(out, gpu_counted_behind(pipe, i));
        }
    }
}

/* Behind opcodes first to end - 1. */
static void emit_counts(struct planner *p, u32 first, u32 end) {
    for (u32 i = first; i < end; i++) {
        if (p->plan->count_after[i]) {
            struct kop count = {.code = KOP_COUNT, .imm = (u16)(p->plan->count_after[i] - 1)};
            VEC_PUSH(p->arena, &p->ops, count);
        }
    }
}

static const char *emit_all(struct planner *p) {
    struct emitter e = {.depth = 0};
    for (u32 i = 0; i < p->pipe->op_count;) {
        u32 fused = emit_fused(p, &e, i);
        const char *refusal = fused ? NULL : emit_op(p, &e, i);
        if (refusal) {
            return refusal;
        }
        u32 end = i + MAX_OF(fused, 1);
        emit_counts(p, i, end);
        i = end;
    }
    emit_nexts(p, &e);
    return NULL;
}

/* Groups have whole numbers, and so have the bounds that are of use. */
static void find_keeps(const struct sink *sink, struct plan_keeps *out) {
    for (u32 i = 0; i < sink->keep_count && out->count < AGG_KEEPS; i++) {
        u8 kind = sink->keeps[i].kind;
        if (kind == KIND_I32 || kind == KIND_I64 || kind == KIND_I128) {
            out->items[out->count++] = &sink->keeps[i];
        }
    }
}

/* Where rows are counted, all groups are: a step gives the same whoever runs it. */
static void find_aggs(struct gpu_plan *plan, bool counts) {
    const struct pipeline *pipe = plan->pipe;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        if (pipe->sinks[s].kind == SINK_AGG) {
            if (!counts) {
                find_keeps(&pipe->sinks[s], &plan->keeps[plan->agg_count]);
            }
            plan->aggs[plan->agg_count++] = &pipe->sinks[s];
        }
    }
}

static void find_rows(struct gpu_plan *plan) {
    const struct pipeline *pipe = plan->pipe;
    u32 at = 0;
    for (u32 s = 0; s < pipe->sink_count; s++) {
        if (pipe->sinks[s].kind != SINK_ROWS) {
            continue;
        }
        u32 n = plan->rows_count++;
        plan->rows[n] = &pipe->sinks[s];
        plan->rows_at[n] = at;
        plan->rows_into[n] = plan->into_count;
        for (u32 before = 0; before < n; before++) {
            if (plan->rows[before]->var == pipe->sinks[s].var) {
                plan->rows_into[n] = plan->rows_into[before];
            }
        }
        plan->into_count += plan->rows_into[n] == plan->into_count;
        at += pipe->sinks[s].col_count;
    }
}

static const char *plan_tiles(struct arena *arena, const struct program *program,
                              const struct pipeline *pipe, u32 tile_rows, bool counts,
                              struct gpu_plan *out) {
    memset(out, 0, sizeof *out);
    out->tile_rows = tile_rows;
    out->program = program;
    out->pipe = pipe;
    out->sink = main_sink(pipe);
    find_aggs(out, counts);
    find_rows(out);
    out->op_imm = NEW_ARRAY(arena, u16, pipe->op_count + 1);
    out->places = NEW_ARRAY(arena, u16, pipe->reg_count + 1);
    out->col_used = NEW_ARRAY(arena, b8, pipe->source.col_count + 1);
    struct planner p = {.arena = arena, .plan = out, .pipe = pipe};
    for (u32 i = 0; i < pipe->op_count; i++) {
        number_op(&p, i);
    }
    gpu_pack_cols(arena, out);
    find_lives(&p);
    out->first = p.first;
    out->last = p.last;
    p.last = NEW_ARRAY(arena, u32, pipe->reg_count + 1); /* fusing lengthens lives */
    memcpy(p.last, out->last, sizeof(u32) * pipe->reg_count);
    find_facts(&p);
    find_host_text(&p);
    place_consts(&p);
    find_limbs(&p);
    find_words(&p);
    find_counted(arena, pipe, counts, out);
    const char *refusal = emit_all(&p);
    if (refusal) {
        return refusal;
    }
    put_together(&p);
    out->slot_bytes = (i64)p.next * PLACE_UNIT;
    if (out->max_live > GPU_LIVE_MOST) {
        return refuse_count(arena, REFUSE_LIVE, out->max_live);
    }
    bool is_long = p.next >= KOP_ASIDE || out->ops.count > 0xffff; /* for the virtual machine's 16 bits */
    out->woven_op = is_long && !out->woven_op ? "so long a pipeline" : out->woven_op;
    return NULL;
}

const char *gpu_plan_make(struct arena *arena, const struct program *program,
                          const struct pipeline *pipe, bool counts, struct gpu_plan *out) {
    const char *refusal = refuse_pipe(arena, pipe);
    if (refusal) {
        return refusal;
    }
    if (main_sink(pipe)->kind == SINK_ROWS) {
        refusal = plan_tiles(arena, program, pipe, VM_TILE_LARGE, counts, out);
        if (!refusal && out->slot_bytes <= LARGE_TILE_BYTES) {
            return NULL;
        }
    }
    return plan_tiles(arena, program, pipe, VM_TILE_SMALL, counts, out);
}
