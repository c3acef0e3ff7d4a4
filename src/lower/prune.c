/* prune.c: bounds of columns from the conditions of a pipeline, for zone maps and keys; of groups,
 * for whoever makes them.
 *
 * Works on registers, after folding: a filter's condition that compares a column as loaded with a
 * literal or parameter bounds that column. NULL handling (x AND NOT null) and conjunctions are
 * looked through. Nothing is noted once an opcode that might raise has been emitted, because
 * skipping rows would skip their errors. */
#include "lower/lower_int.h"

#include "codes/loop.h"

static const struct op *def_of(const struct builder *b, u16 reg) {
    u32 def = reg < b->infos.count ? b->infos.items[reg].def : 0;
    return def ? &b->ops.items[def - 1] : NULL;
}

/* The source column a register holds unchanged (a real may be widened), or -1. */
static i64 loaded_col(const struct builder *b, u16 reg) {
    const struct op *op = def_of(b, reg);
    if (op && (op->code == OP_F64_F32 || op->code == OP_I64_I32 || op->code == OP_I128_I32 ||
               op->code == OP_I128_I64)) {
        reg = op->a;
    }
    return (i64)b->infos.items[reg].load_col - 1;
}

/* A literal of the widest kind; parameters and text are read as they are. */
static u32 bound_lit(struct builder *b, u16 reg, u8 *out_kind) {
    union lit lit;
    union lit out;
    enum kind kind = reg_kind(b, reg);
    *out_kind = (u8)kind;
    if (kind == KIND_STR || !build_is_const(b, reg, &lit)) {
        return b->infos.items[reg].lit - 1;
    }
    memset(&out, 0, sizeof out);
    bool is_float = kind == KIND_F32 || kind == KIND_F64;
    *out_kind = is_float ? KIND_F64 : KIND_I128;
    if (is_float) {
        out.f64 = kind == KIND_F32 ? (f64)lit.f32 : lit.f64;
    } else {
        out.i128 = reg_range(b, reg).lo;
    }
    return lower_lit(b->l, (enum kind) * out_kind, out);
}

enum { BOUND_NONE = 0, BOUND_LO = 1, BOUND_HI = 2 };

/* Bounds that `column op literal` sets. */
static int bounds_of(u16 code) {
    switch (code) {
    case OP_EQ_B8:
    case OP_EQ_I32:
    case OP_EQ_I64:
    case OP_EQ_I128:
    case OP_EQ_F32:
    case OP_EQ_F64:
    case OP_EQN_F32:
    case OP_EQN_F64:
    case OP_EQ_STR:
        return BOUND_LO | BOUND_HI;
    case OP_LT_I32:
    case OP_LT_I64:
    case OP_LT_I128:
    case OP_LT_F32:
    case OP_LT_F64:
    case OP_LTN_F32:
    case OP_LTN_F64:
    case OP_LE_I32:
    case OP_LE_I64:
    case OP_LE_I128:
    case OP_LE_F32:
    case OP_LE_F64:
    case OP_LEN_F32:
    case OP_LEN_F64:
        return BOUND_HI;
    case OP_GT_I32:
    case OP_GT_I64:
    case OP_GT_I128:
    case OP_GT_F32:
    case OP_GT_F64:
    case OP_GE_I32:
    case OP_GE_I64:
    case OP_GE_I128:
    case OP_GE_F32:
    case OP_GE_F64:
        return BOUND_LO;
    default:
        return BOUND_NONE;
    }
}

static void add_bound(struct builder *b, i64 col, int bounds, u16 lit_reg) {
    struct prune prune = {.col = (u32)col, .lo_lit = NO_LIT, .hi_lit = NO_LIT};
    u32 lit = bound_lit(b, lit_reg, &prune.kind);
    prune.lo_lit = bounds & BOUND_LO ? lit : NO_LIT;
    prune.hi_lit = bounds & BOUND_HI ? lit : NO_LIT;
    VEC_PUSH(b->l->arena, &b->prunes, prune);
}

static bool reads_groups(const struct builder *b) {
    return b->source.kind == SOURCE_VAR && b->l->vars.items[b->source.ref].kind == VAR_AGG;
}

void prune_note(struct builder *b, u16 cond) {
    const struct op *op = def_of(b, cond);
    bool known = !b->l->status && (b->source.kind == SOURCE_TABLE || reads_groups(b));
    if (!known || b->raises || b->depth > 0 || !op) {
        return;
    }
    if (op->code == OP_AND_B8) {
        u16 other = op->b;
        prune_note(b, op->a);
        prune_note(b, other);
        return;
    }
    if (op->code == OP_ANDN_B8) {
        prune_note(b, op->a);
        return;
    }
    int bounds = bounds_of(op->code);
    if (bounds == BOUND_NONE) {
        return;
    }
    i64 left = loaded_col(b, op->a);
    i64 right = loaded_col(b, op->b);
    bool swapped = left < 0;
    i64 col = swapped ? right : left;
    u16 lit_reg = swapped ? op->a : op->b;
    bool text = col >= 0 && reg_dict(b, swapped ? op->b : op->a) != 0;
    if (col < 0 || text || !b->infos.items[lit_reg].lit) {
        return;
    }
    if (swapped && bounds != (BOUND_LO | BOUND_HI)) {
        bounds ^= BOUND_LO | BOUND_HI;
    }
    add_bound(b, col, bounds, lit_reg);
}

/* The sink that fills a variable with groups; NULL: there is none. */
static struct sink *groups_sink(const struct lower *l, u32 var) {
    for (i64 i = l->steps.count; i-- > 0;) {
        const struct pipeline *pipe = l->steps.items[i].pipeline;
        for (u32 s = 0; pipe && s < pipe->sink_count; s++) {
            if (pipe->sinks[s].kind == SINK_AGG && pipe->sinks[s].var == var) {
                return &pipe->sinks[s];
            }
        }
    }
    return NULL;
}

void prune_finish(struct builder *b, struct pipeline *pipe) {
    struct sink *sink = reads_groups(b) ? groups_sink(b->l, b->source.ref) : NULL;
    if (b->source.kind == SOURCE_TABLE) {
        pipe->prune_count = (u32)b->prunes.count;
        pipe->prunes = b->prunes.items;
    } else if (sink) {
        sink->keep_count = (u32)b->prunes.count;
        sink->keeps = b->prunes.items;
        for (u32 i = 0; i < sink->keep_count; i++) {
            sink->keeps[i].col = b->cols.items[sink->keeps[i].col];
        }
    }
}
