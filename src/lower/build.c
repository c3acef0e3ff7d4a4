/* build.c: a pipeline under construction: registers, opcodes, literals, and the clean-up at its
 * end.
 *
 * Opcodes are appended as expressions are lowered. Equal opcodes in scope share a register; opcodes
 * whose operands are all literals are folded unless they fault; literals are defined once, at the
 * start of the pipeline. Registers made inside WHEN are known only until its END. build_finish
 * removes whatever nobody reads and numbers the registers in the order of their definition. */
#include "lower/lower_int.h"

#include "codes/loop.h"
#include "host/eval.h"

enum {
    MAX_REGS = 60000,
    ROW_BITS_LEAST = 32,
    ROW_BITS_MOST = 40, /* what faults tell of a row's number, too */
    COSTLY = 60,   /* cost from which skipping rows pays for WHEN */
    BIND_PAGE = 64 /* a plan may have many more columns than a pipeline of it */
};

struct range build_rows_range(const struct lower *l, u32 rows_var, i128 least) {
    bool known = rows_var < l->var_infos.count;
    i64 most = known ? l->var_infos.items[rows_var].max_rows : (i64)1 << ROW_BITS_MOST;
    i64 rows = MAX_OF(MIN_OF(most, (i64)1 << ROW_BITS_MOST), (i64)1 << ROW_BITS_LEAST);
    return range_exact(least, (i128)rows - 1);
}

/* Of what a look-up in an index finds. */
static struct range found_range(const struct lower *l, u32 index, i128 least) {
    return build_rows_range(l, index < l->vars.count ? l->vars.items[index].rows_var : NO_VAR, least);
}

u16 build_probe(struct builder *b, struct op op) {
    bool outer = op.c != NO_REG && (op.c & PROBE_OUTER);
    return build_ctl_new(b, op, KIND_I64, found_range(b->l, op.imm, outer ? -1 : 0), 0);
}

struct builder *build_new(struct lower *l, enum source_kind kind, u32 ref, i64 rows, i64 max_rows) {
    struct builder *b = NEW(l->arena, struct builder);
    b->l = l;
    b->source.kind = (u8)kind;
    b->source.ref = ref;
    b->source.rows = b->rows = kind == SOURCE_ONE ? 1 : rows;
    b->max_rows = max_rows;
    b->source_position = -1;
    b->position = -1;
    b->binds = NEW_ARRAY(l->arena, struct binding *, l->plan->cols.count / BIND_PAGE + 1);
    text_init(&b->label, l->arena);
    return b;
}

static void bind_left(const struct builder *b, u32 col, struct binding *out) {
    for (i64 i = 0; i < b->lefts.count; i++) {
        const struct left *left = b->lefts.items[i].left;
        for (u32 k = 0; k < left->count; k++) {
            if (left->cols[k] == col) {
                *out = left->binds[k];
                out->row_reg = b->lefts.items[i].row_reg;
                return;
            }
        }
    }
}

struct binding *bind_at(const struct builder *b, u32 col) {
    struct binding **page = &b->binds[col / BIND_PAGE];
    if (!*page) {
        *page = NEW_ARRAY(b->l->arena, struct binding, BIND_PAGE);
    }
    struct binding *bind = &(*page)[col % BIND_PAGE];
    if (bind->kind == BIND_NONE && b->lefts.count) {
        bind_left(b, col, bind);
    }
    return bind;
}

void build_copy_binds(struct builder *to, const struct builder *from) {
    for (i64 i = 0; i <= from->l->plan->cols.count / BIND_PAGE; i++) {
        if (from->binds[i]) {
            memcpy(bind_at(to, (u32)i * BIND_PAGE), from->binds[i],
                   sizeof(struct binding) * BIND_PAGE);
        }
    }
}

bool build_looks_up(const struct builder *b) {
    for (i64 i = 0; i < b->ops.count; i++) {
        if (op_infos[b->ops.items[i].code].roles[OPERAND_IMM] == ROLE_index) {
            return true;
        }
    }
    return false;
}

void build_label(struct builder *b, const char *name) {
    text_print(&b->label, "%s%s", b->label.len > 0 ? ", " : "", name);
    b->last_label = name;
}

void build_row_mark(struct builder *b, const struct rel *rel) {
    struct row_mark mark = {(u32)b->ops.count, rel->number};
    VEC_PUSH(b->l->arena, &b->marks, mark);
}

u32 build_source_col(struct builder *b, u32 col) {
    while (b->col_at.count <= (i64)col) {
        VEC_PUSH(b->l->arena, &b->col_at, 0);
    }
    if (!b->col_at.items[col]) {
        VEC_PUSH(b->l->arena, &b->cols, col);
        b->col_at.items[col] = (u32)b->cols.count;
    }
    return b->col_at.items[col] - 1;
}

u16 build_reg(struct builder *b, enum kind kind, struct range range, u32 dict) {
    if (b->regs.count >= MAX_REGS) {
        lower_fail(b->l, ERR_TOO_COMPLEX, b->position, "a pipeline needs more than %d registers",
                   (int)MAX_REGS);
        return 0;
    }
    struct reg reg = {.kind = (u8)kind, .range = range, .dict = dict};
    struct reg_info info = {0};
    VEC_PUSH(b->l->arena, &b->regs, reg);
    VEC_PUSH(b->l->arena, &b->infos, info);
    return (u16)(b->regs.count - 1);
}

/* common subexpressions */

static u32 op_hash(const struct op *op) {
    u64 h = (u64)op->code | (u64)op->a << 16 | (u64)op->b << 32 | (u64)op->c << 48;
    return (u32)hash_u64(h ^ (u64)op->imm * 0x9e3779b97f4a7c15ULL);
}

static bool op_same(const struct op *x, const struct op *y) {
    return x->code == y->code && x->a == y->a && x->b == y->b && x->c == y->c && x->imm == y->imm;
}

static bool cse_find(const struct builder *b, const struct op *op, u16 *out) {
    if (b->head_count == 0) {
        return false;
    }
    u32 at = b->heads[op_hash(op) & (b->head_count - 1)];
    while (at) {
        const struct cse *cse = &b->cses.items[at - 1];
        if (op_same(&cse->op, op)) {
            *out = cse->op.dst;
            return true;
        }
        at = cse->next;
    }
    return false;
}

static void cse_link(struct builder *b, i64 i) {
    struct cse *cse = &b->cses.items[i];
    cse->bucket = op_hash(&cse->op) & (b->head_count - 1);
    cse->next = b->heads[cse->bucket];
    b->heads[cse->bucket] = (u32)i + 1;
}

static void cse_add(struct builder *b, const struct op *op) {
    struct cse cse = {.op = *op};
    VEC_PUSH(b->l->arena, &b->cses, cse);
    if (b->cses.count <= (i64)b->head_count) {
        cse_link(b, b->cses.count - 1);
        return;
    }
    b->head_count = b->head_count ? b->head_count * 4 : 32;
    b->heads = NEW_ARRAY(b->l->arena, u32, b->head_count);
    for (i64 i = 0; i < b->cses.count; i++) { /* in order, so that cse_cut can undo from the end */
        cse_link(b, i);
    }
}

static void cse_cut(struct builder *b, i64 count) {
    while (b->cses.count > count) {
        const struct cse *cse = &b->cses.items[--b->cses.count];
        b->heads[cse->bucket] = cse->next;
    }
}

struct mark build_mark(const struct builder *b) {
    struct mark m = {b->ops.count,    b->regs.count, b->cses.count,
                     b->consts.count, b->l->rank,    b->raises};
    return m;
}

void build_undo(struct builder *b, struct mark m) {
    b->ops.count = m.ops;
    b->faults.count = m.ops;
    b->regs.count = m.regs;
    b->infos.count = m.regs;
    b->consts.count = m.consts;
    cse_cut(b, m.cses);
    b->l->rank = m.rank;
    b->raises = m.raises;
}

/* opcodes */

static void push_op(struct builder *b, struct op op, bool might_raise) {
    struct lower *l = b->l;
    l->rank = MIN_OF(l->rank + 1, 0xffffu);
    op.rank = (u16)l->rank;
    op.position = b->position;
    VEC_PUSH(l->arena, &b->ops, op);
    u8 flag = might_raise;
    VEC_PUSH(l->arena, &b->faults, flag);
    b->raises = b->raises || might_raise;
    if (op.dst != NO_REG) {
        b->infos.items[op.dst].def = (u32)b->ops.count;
    }
}

static bool fold(struct builder *b, u16 code, const u16 *args, struct range range, u16 *out) {
    union lit v[3];
    memset(v, 0, sizeof v);
    const struct op_info *info = &op_infos[code];
    for (int i = 0; i < info->arity; i++) {
        if (!build_is_const(b, args[i], &v[i])) {
            return false;
        }
    }
    union lit result;
    memset(&result, 0, sizeof result);
    if (op_eval(code, &result, v[0], v[1], v[2], b->l->arena) != 0) {
        return false;
    }
    *out = build_lit(b, (enum kind)info->result, result, range);
    return true;
}

static u16 add_op(struct builder *b, u16 code, u16 x, u16 y, u16 z, struct range range,
                  bool might_raise) {
    u16 args[3] = {x, y, z};
    u16 dst;
    if (b->l->status) {
        return 0;
    }
#ifdef WF_HARD
    for (int i = 0; i < 3; i++) {
        bool used = i < op_infos[code].arity;
        CHECK(used ? args[i] < b->regs.count && reg_kind(b, args[i]) == op_infos[code].operands[i]
                   : args[i] == NO_REG);
    }
#endif
    if (fold(b, code, args, range, &dst)) {
        return dst;
    }
    struct op op = {.code = (u16)code, .a = x, .b = y, .c = z};
    if (cse_find(b, &op, &dst)) {
        return dst;
    }
    op.dst = build_reg(b, (enum kind)op_infos[code].result, range, 0);
    push_op(b, op, might_raise);
    cse_add(b, &op);
    return op.dst;
}

u16 build_op(struct builder *b, u16 code, u16 a, u16 b_, u16 c, struct range range) {
    u16 flags = op_infos[code].flags;
    bool raises = flags & (OP_FAULTS | OP_HOST | OP_MAKES);
    return add_op(b, code, a, b_, c, range, raises);
}

u16 build_safe(struct builder *b, u16 code, u16 a, u16 b_, u16 c, struct range range) {
    return add_op(b, code, a, b_, c, range, false);
}

u16 build_ctl_new(struct builder *b, struct op op, enum kind kind, struct range range, u32 dict) {
    if (b->l->status) {
        return 0;
    }
    op.dst = build_reg(b, kind, range, dict);
    push_op(b, op, op_may_fault(&op));
    if (op.code == OP_LOAD) {
        b->infos.items[op.dst].load_col = op.imm + 1;
    }
    return op.dst;
}

u16 build_ctl(struct builder *b, struct op op, enum kind kind, struct range range, u32 dict) {
    u16 dst;
    if (b->l->status) {
        return 0;
    }
    if (cse_find(b, &op, &dst)) {
        return dst;
    }
    op.dst = build_ctl_new(b, op, kind, range, dict);
    cse_add(b, &op);
    return op.dst;
}

void build_plain(struct builder *b, u16 code, u16 a, u32 imm) {
    struct op op = {.code = (u16)code, .dst = NO_REG, .a = a, .b = NO_REG, .c = NO_REG, .imm = imm};
    if (!b->l->status) {
        push_op(b, op, false);
    }
}

/* literals */

static u16 const_reg(struct builder *b, u32 lit, enum kind kind, struct range range,
                     bool foldable) {
    struct op op = {
        .code = OP_CONST, .a = NO_REG, .b = NO_REG, .c = NO_REG, .imm = lit, .position = -1};
    for (i64 i = b->consts.count; i-- > 0 && i + 64 >= b->consts.count;) {
        if (b->consts.items[i].imm ==
            lit) { /* a recent one; older repeats cost a register at most */
            return b->consts.items[i].dst;
        }
    }
    op.dst = build_reg(b, kind, range, 0);
    if (b->l->status) {
        return 0;
    }
    b->regs.items[op.dst].is_const = 1;
    b->infos.items[op.dst].lit = lit + 1;
    b->infos.items[op.dst].foldable = foldable;
    VEC_PUSH(b->l->arena, &b->consts, op);
    return op.dst;
}

static struct range lit_range(enum kind kind, union lit value, struct range range) {
    switch (kind) {
    case KIND_B8:
        return range_exact(value.b8, value.b8);
    case KIND_I32:
        return range_exact(value.i32, value.i32);
    case KIND_I64:
        return range_exact(value.i64, value.i64);
    case KIND_I128:
        return range_exact(value.i128, value.i128);
    case KIND_F32:
        return range_of_f64((f64)value.f32);
    case KIND_F64:
        return range_of_f64(value.f64);
    default:
        return range;
    }
}

u16 build_lit(struct builder *b, enum kind kind, union lit value, struct range range) {
    if (b->l->status) {
        return 0;
    }
    return const_reg(b, lower_lit(b->l, kind, value), kind, lit_range(kind, value, range), true);
}

u16 build_param(struct builder *b, u32 lit, enum kind kind, struct range range) {
    return b->l->status ? 0 : const_reg(b, lit, kind, range, false);
}

u16 build_int(struct builder *b, enum kind kind, i128 value) {
    union lit lit;
    memset(&lit, 0, sizeof lit);
    if (kind == KIND_I32) {
        lit.i32 = (i32)value;
    } else if (kind == KIND_I64) {
        lit.i64 = (i64)value;
    } else {
        lit.i128 = value;
    }
    return build_lit(b, kind, lit, range_exact(value, value));
}

u16 build_float(struct builder *b, enum kind kind, f64 value) {
    union lit lit;
    memset(&lit, 0, sizeof lit);
    if (kind == KIND_F32) {
        lit.f32 = (f32)value;
    } else {
        lit.f64 = value;
    }
    return build_lit(b, kind, lit, range_none());
}

u16 build_exact(struct builder *b, i128 value) {
    return build_int(b, range_kind(range_exact(value, value)), value);
}

u16 build_i32(struct builder *b, i32 value) {
    return build_int(b, KIND_I32, value);
}

u16 build_bool(struct builder *b, bool value) {
    union lit lit;
    memset(&lit, 0, sizeof lit);
    lit.b8 = value;
    return build_lit(b, KIND_B8, lit, range_bool());
}

u16 build_str(struct builder *b, struct sv s) {
    union lit lit;
    memset(&lit, 0, sizeof lit);
    lit.str = str_from(s);
    return build_lit(b, KIND_STR, lit, range_none());
}

bool build_is_const(const struct builder *b, u16 reg, union lit *out) {
    if (reg >= b->infos.count || !b->infos.items[reg].foldable) {
        return false;
    }
    if (out) {
        *out = b->l->lits.items[b->infos.items[reg].lit - 1];
    }
    return true;
}

bool build_is_bool(const struct builder *b, u16 reg, bool value) {
    union lit lit;
    return reg != NO_REG && reg < b->regs.count && reg_kind(b, reg) == KIND_B8 &&
           build_is_const(b, reg, &lit) && (lit.b8 != 0) == value;
}

/* b8 logic */

static bool is_not_of(const struct builder *b, u16 x, u16 y) { /* x = NOT y */
    u32 def = x < b->infos.count ? b->infos.items[x].def : 0;
    return def && b->ops.items[def - 1].code == OP_NOT_B8 && b->ops.items[def - 1].a == y;
}

u16 build_not(struct builder *b, u16 x) {
    u32 def = x < b->infos.count ? b->infos.items[x].def : 0;
    if (def && b->ops.items[def - 1].code == OP_NOT_B8) {
        return b->ops.items[def - 1].a;
    }
    return build_op(b, OP_NOT_B8, x, NO_REG, NO_REG, range_bool());
}

u16 build_and(struct builder *b, u16 x, u16 y) {
    if (x == y || build_is_bool(b, x, false) || build_is_bool(b, y, true)) {
        return x;
    }
    if (build_is_bool(b, y, false) || build_is_bool(b, x, true)) {
        return y;
    }
    if (is_not_of(b, x, y) || is_not_of(b, y, x)) {
        return build_bool(b, false);
    }
    return build_op(b, OP_AND_B8, x, y, NO_REG, range_bool());
}

u16 build_or(struct builder *b, u16 x, u16 y) {
    if (x == y || build_is_bool(b, x, true) || build_is_bool(b, y, false)) {
        return x;
    }
    if (build_is_bool(b, y, true) || build_is_bool(b, x, false)) {
        return y;
    }
    if (is_not_of(b, x, y) || is_not_of(b, y, x)) {
        return build_bool(b, true);
    }
    return build_op(b, OP_OR_B8, x, y, NO_REG, range_bool());
}

u16 build_andn(struct builder *b, u16 x, u16 y) {
    if (y == NO_REG || build_is_bool(b, y, false) || build_is_bool(b, x, false)) {
        return x;
    }
    if (x == y || build_is_bool(b, y, true)) {
        return build_bool(b, false);
    }
    if (is_not_of(b, y, x) || is_not_of(b, x, y)) { /* x and not not x */
        return x;
    }
    if (build_is_bool(b, x, true)) {
        return build_not(b, y);
    }
    return build_op(b, OP_ANDN_B8, x, y, NO_REG, range_bool());
}

u16 build_null_or(struct builder *b, u16 x, u16 y) {
    if (x == NO_REG || y == NO_REG) {
        return x == NO_REG ? y : x;
    }
    return build_or(b, x, y);
}

/* exact kinds */

u16 build_kind(struct builder *b, u16 reg, enum kind kind) {
    static const u16 to[KIND_COUNT][KIND_COUNT] = {
        [KIND_I64][KIND_I32] = OP_I64_I32,   [KIND_I128][KIND_I32] = OP_I128_I32,
        [KIND_I128][KIND_I64] = OP_I128_I64, [KIND_I32][KIND_I64] = OP_I32_I64,
        [KIND_I32][KIND_I128] = OP_I32_I128, [KIND_I64][KIND_I128] = OP_I64_I128,
        [KIND_I32][KIND_B8] = OP_I32_B8,     [KIND_I64][KIND_B8] = OP_I64_B8,
    };
    if (b->l->status || reg_kind(b, reg) == kind) {
        return reg;
    }
    u16 code = to[kind][reg_kind(b, reg)];
    CHECK(code != 0);
    return build_op(b, code, reg, NO_REG, NO_REG, reg_range(b, reg));
}

u16 build_sel(struct builder *b, u16 cond, u16 x, u16 y) {
    static const u16 sel[KIND_COUNT] = {
        [KIND_B8] = OP_SEL_B8,     [KIND_I32] = OP_SEL_I32, [KIND_I64] = OP_SEL_I64,
        [KIND_I128] = OP_SEL_I128, [KIND_F32] = OP_SEL_F32, [KIND_F64] = OP_SEL_F64,
        [KIND_STR] = OP_SEL_STR,
    };
    if (b->l->status || x == y || build_is_bool(b, cond, true)) {
        return x;
    }
    if (build_is_bool(b, cond, false)) {
        return y;
    }
    u32 def = b->infos.items[cond].def;
    if (def && b->ops.items[def - 1].code == OP_NOT_B8) {
        return build_sel(b, b->ops.items[def - 1].a, y, x);
    }
    struct range range = range_union(reg_range(b, x), reg_range(b, y));
    u16 dst = build_op(b, sel[reg_kind(b, x)], cond, x, y, range);
    b->regs.items[dst].dict = reg_dict(b, x) ? reg_dict(b, x) : reg_dict(b, y);
    return dst;
}

/* WHEN */

struct scope build_when(struct builder *b, u16 cond) {
    struct scope scope = {b->ops.count, b->cses.count, cond};
    build_plain(b, OP_WHEN, cond, 0);
    b->depth++;
    return scope;
}

static bool worth_masking(const struct builder *b, i64 from) {
    for (i64 i = from; i < b->ops.count; i++) {
        u16 code = b->ops.items[i].code;
        u16 flags = op_infos[code].flags;
        bool costly = !(flags & OP_CONTROL) && op_infos[code].cost >= COSTLY;
        if (b->faults.items[i] || costly || (flags & (OP_HOST | OP_MAKES))) {
            return true;
        }
    }
    return false;
}

static void remove_op(struct builder *b, i64 at) {
    for (i64 i = at + 1; i < b->ops.count; i++) {
        b->ops.items[i - 1] = b->ops.items[i];
        b->faults.items[i - 1] = b->faults.items[i];
        if (b->ops.items[i].dst != NO_REG) {
            b->infos.items[b->ops.items[i].dst].def = (u32)i;
        }
    }
    b->ops.count--;
    b->faults.count--;
}

bool build_end(struct builder *b, struct scope scope) {
    b->depth--;
    if (b->l->status) {
        return false;
    }
    if (worth_masking(b, scope.op + 1)) {
        cse_cut(b, scope.cse);
        build_plain(b, OP_END, NO_REG, 0);
        return true;
    }
    remove_op(b, scope.op);
    return false;
}

struct scope build_try(struct builder *b) {
    struct scope scope = {b->ops.count, b->cses.count, NO_REG};
    struct op op = {.code = OP_TRY, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    scope.cond = build_ctl_new(b, op, KIND_B8, range_bool(), 0);
    b->depth++;
    return scope;
}

u16 build_try_end(struct builder *b, struct scope scope) {
    b->depth--;
    bool raises = false;
    for (i64 i = scope.op + 1; i < b->ops.count && !b->l->status; i++) {
        raises = raises || b->faults.items[i];
    }
    if (b->l->status) {
        return NO_REG;
    }
    if (raises) {
        cse_cut(b, scope.cse);
        build_plain(b, OP_END, scope.cond, 0);
        return scope.cond;
    }
    remove_op(b, scope.op);
    return NO_REG;
}

struct scope build_each(struct builder *b, struct op op, u16 *out_row) {
    struct scope scope = {0, b->cses.count, 0};
    *out_row = build_ctl_new(b, op, KIND_I64, found_range(b->l, op.imm, -1), 0);
    b->depth++;
    return scope;
}

u16 build_any(struct builder *b, struct scope scope, u16 row, u16 flags) {
    b->depth--;
    if (b->l->status) {
        return 0;
    }
    cse_cut(b, scope.cse);
    struct op op = {.code = OP_ANY, .a = row, .b = NO_REG, .c = flags};
    return build_ctl_new(b, op, KIND_I64, range_exact(-1, reg_range(b, row).hi), 0);
}

u32 build_sink(struct builder *b, struct sink sink) {
    VEC_PUSH(b->l->arena, &b->sinks, sink);
    u32 at = (u32)(b->sinks.count - 1);
    build_plain(b, OP_EMIT, NO_REG, at);
    return at;
}
