/* lower_string.c: text: dictionary codes, lookup tables over dictionaries, interning.
 *
 * A text column whose every tablet is dictionary-coded is an i32 code register. An expression that
 * reads exactly one such column, and literals or parameters otherwise, is computed once per
 * dictionary entry, in a pipeline over the dictionary. In the pipeline that uses it, it becomes a
 * table look-up. The largest such expression is taken, because lowering tries the root first. A
 * fault met for an entry is kept in a table of its own and raised only where an active row has that
 * code. Text results are interned, so that they are codes again, of a derived dictionary. */
#include "lower/lower_int.h"

#include "codes/loop.h"

struct lut_scan {
    const struct builder *b;
    u32 col; /* the one column, once found */
    u32 dict;
    bool found;
    bool fits;
};

static u32 bound_dict(const struct builder *b, const struct binding *bind) {
    switch (bind->kind) {
    case BIND_SOURCE:
    case BIND_VAR:
        return bind->dict;
    case BIND_VALUE:
        return reg_dict(b, bind->value.reg);
    default:
        return 0;
    }
}

static bool visit_one_dict(const struct expr *expr, void *arg) {
    struct lut_scan *s = arg;
    if (expr->kind != EXPR_COL) {
        return true;
    }
    const struct binding *bind = bind_at(s->b, expr->col);
    if (bind->kind == BIND_EXPR) {
        return expr_walk(bind->expr, visit_one_dict, arg);
    }
    u32 dict = bound_dict(s->b, bind);
    bool same = !s->found || s->col == expr->col;
    s->fits = dict != 0 && same;
    s->col = expr->col;
    s->dict = dict;
    s->found = true;
    return s->fits;
}

/* NULL whenever its one column is NULL, so that the table need not know about NULL input. */
static bool is_strict(const struct builder *b, const struct expr *expr) {
    switch (expr->kind) {
    case EXPR_COL:
        return bind_at(b, expr->col)->kind != BIND_EXPR ||
               is_strict(b, bind_at(b, expr->col)->expr);
    case EXPR_CALL:
    case EXPR_CAST:
    case EXPR_NOT:
        if (expr->kind == EXPR_CALL && !func_is_strict(expr->func)) {
            return false;
        }
        for (i32 i = 0; i < expr->arg_count; i++) {
            if (is_strict(b, expr->args[i])) {
                return true;
            }
        }
        return false;
    case EXPR_IN:
        return is_strict(b, expr->args[0]);
    case EXPR_AND:
    case EXPR_OR:
        for (i32 i = 0; i < expr->arg_count; i++) {
            if (!is_strict(b, expr->args[i])) {
                return false;
            }
        }
        return true;
    default:
        return false;
    }
}

static const struct lut *find_lut(const struct lower *l, u32 dict, const struct expr *expr, u32 col,
                                  u32 intern_find) {
    for (i64 i = 0; i < l->luts.count; i++) {
        const struct lut *lut = &l->luts.items[i];
        bool same = lut->dict == dict && lut->intern_find == intern_find;
        if (same && ((!expr && !lut->expr) ||
                     (expr && lut->expr && lut->col == col && expr_equal(expr, lut->expr)))) {
            return lut;
        }
    }
    return NULL;
}

static u32 lut_var(struct lower *l, enum kind kind) {
    u32 var = lower_var(l, VAR_LUT, "lut");
    l->vars.items[var].lut_kind = (u8)kind;
    return var;
}

/* Ends a pipeline over a dictionary by storing v per entry. */
static void lut_sink(struct builder *t, struct value v, struct type type, struct lut *lut) {
    struct lower *l = t->l;
    if (l->status) {
        return;
    }
    bool raises = t->raises;
    lut->kind = t->regs.items[v.reg].kind;
    lut->range = reg_range(t, v.reg);
    lut->result_dict = reg_dict(t, v.reg);
    lut->value_var = lut_var(l, (enum kind)lut->kind);
    lut->null_var = v.null != NO_REG ? lut_var(l, KIND_B8) : NO_VAR;
    lut->fault_var = raises ? lut_var(l, KIND_B8) : NO_VAR;
    struct sink_col *col = NEW(l->arena, struct sink_col);
    *col =
        (struct sink_col){.reg = v.reg, .null_reg = v.null, .type = type, .dict = lut->result_dict};
    struct sink sink = {.kind = SINK_LUT,
                        .var = lut->value_var,
                        .limit = -1,
                        .col_count = 1,
                        .cols = col,
                        .key = NO_REG,
                        .null_var = lut->null_var,
                        .fault_var = lut->fault_var};
    build_sink(t, sink);
    build_label(t, "Dictionary");
    build_finish(t);
    VEC_PUSH(l->arena, &l->luts, *lut);
}

/* A pipeline over the dictionary; column `col` (if any) is its text. */
static struct builder *dict_builder(struct lower *l, u32 dict) {
    i64 most = (i64)1 << 31;
    struct builder *t = build_new(l, SOURCE_DICT, dict - 1, 0, most);
    build_source_col(t, 0);
    return t;
}

static struct value dict_text(struct builder *t) {
    struct op op = {.code = OP_LOAD, .a = NO_REG, .b = NO_REG, .c = NO_REG, .imm = 0};
    return (struct value){build_ctl(t, op, KIND_STR, range_none(), 0), NO_REG};
}

/* Text results become codes of a derived dictionary. */
static u16 intern_result(struct builder *t, u16 reg) {
    if (t->l->status || reg_kind(t, reg) != KIND_STR) {
        return reg;
    }
    u32 values = lower_var(t->l, VAR_INTERN, "strings");
    u32 dict = lower_dict(t->l, (struct dict_ref){NO_VAR, 0, values});
    u16 code = string_intern(t, reg, values, false);
    if (!t->l->status) {
        t->regs.items[code].dict = dict;
    }
    return code;
}

/* Reads a table at a code: value, NULL flag, and the fault where it was kept. */
static struct value lut_read(struct builder *b, const struct lut *lut, u16 code, u16 null) {
    struct op op = {.code = OP_LUT, .a = code, .b = NO_REG, .c = NO_REG, .imm = lut->value_var};
    struct value v = {build_ctl(b, op, (enum kind)lut->kind, lut->range, lut->result_dict), null};
    if (lut->null_var != NO_VAR) {
        op.imm = lut->null_var;
        v.null = build_null_or(b, null, build_ctl(b, op, KIND_B8, range_bool(), 0));
    }
    if (lut->fault_var != NO_VAR) {
        op.imm = lut->fault_var;
        u16 fault = build_ctl(b, op, KIND_B8, range_exact(0, FAULT_COUNT - 1), 0);
        fault = lower_guard(b, fault, null, build_bool(b, false));
        build_op(b, OP_RAISE_B8, fault, NO_REG, NO_REG, range_exact(0, 0));
    }
    if (!b->l->status && lut->kind == KIND_B8) {
        v = lower_bool(b, v.reg, v.null);
    }
    return v;
}

static bool wants_lut(const struct builder *b, const struct expr *expr, struct lut_scan *s) {
    if (expr->kind == EXPR_COL || expr->kind == EXPR_CONST || expr->kind == EXPR_PARAM ||
        expr->kind == EXPR_IS_NULL) {
        return false;
    }
    *s = (struct lut_scan){.b = b};
    if (!expr_walk(expr, visit_one_dict, s) || !s->found || !s->fits) {
        return false;
    }
    const struct binding *bind = bind_at(b, s->col);
    bool nullable = bind->kind == BIND_VALUE ? bind->value.null != NO_REG : bind->nullable;
    return !nullable || is_strict(b, expr);
}

bool string_lut(struct builder *b, const struct expr *expr, struct value *out) {
    struct lut_scan s;
    if (!wants_lut(b, expr, &s)) {
        return false;
    }
    struct lower *l = b->l;
    const struct lut *lut = find_lut(l, s.dict, expr, s.col, 0);
    struct lut made = {.dict = s.dict, .expr = expr, .col = s.col};
    if (!lut) {
        struct builder *t = dict_builder(l, s.dict);
        build_copy_binds(t, b);
        *bind_at(t, s.col) = (struct binding){.kind = BIND_VALUE, .value = dict_text(t)};
        t->position = b->position;
        struct value v = lower_expr(t, expr);
        union lit lit;
        if (!l->status && v.null == NO_REG && reg_kind(t, v.reg) != KIND_STR && !t->raises &&
            build_is_const(t, v.reg, &lit)) { /* the same for every text */
            struct value code = lower_col(b, s.col);
            *out = (struct value){build_lit(b, reg_kind(t, v.reg), lit, range_none()), code.null};
            *out = reg_kind(b, out->reg) == KIND_B8 ? lower_bool(b, out->reg, out->null) : *out;
            return true;
        }
        v.reg = intern_result(t, v.reg);
        lut_sink(t, v, expr->type, &made);
        lut = &made;
    }
    if (!l->status) {
        struct lut copy = *lut; /* lowering the column may grow the list */
        struct value code = lower_col(b, s.col);
        *out = lut_read(b, &copy, code.reg, code.null);
    }
    return true;
}

u16 string_view(struct builder *b, u16 reg) {
    struct lower *l = b->l;
    if (l->status || reg_kind(b, reg) == KIND_STR) {
        return reg;
    }
    u32 dict = reg_dict(b, reg);
    const struct lut *lut = find_lut(l, dict, NULL, 0, 0);
    struct lut made = {.dict = dict};
    if (!lut) {
        struct builder *t = dict_builder(l, dict);
        lut_sink(t, dict_text(t), type_of(TYPE_TEXT), &made);
        lut = &made;
    }
    struct lut copy = *lut;
    return l->status ? 0 : lut_read(b, &copy, reg, NO_REG).reg;
}

/* Codes go through a table, so that each distinct text is looked up once. Find-only tables depend
 * on when they are made and are not shared between interners. */
u16 string_intern(struct builder *b, u16 reg, u32 interner, bool find_only) {
    struct lower *l = b->l;
    struct range range = range_exact(find_only ? -1 : 0, I32_MAX);
    if (l->status) {
        return 0;
    }
    if (reg_kind(b, reg) == KIND_STR) {
        struct op op = {.code = OP_INTERN, .a = reg, .b = find_only, .c = NO_REG, .imm = interner};
        return build_ctl(b, op, KIND_I32, range, 0);
    }
    u32 tag = interner * 2 + find_only + 1;
    u32 dict = reg_dict(b, reg);
    const struct lut *lut = find_lut(l, dict, NULL, 0, tag);
    struct lut made = {.dict = dict, .intern_find = tag};
    if (!lut) {
        struct builder *t = dict_builder(l, dict);
        struct value v = dict_text(t);
        v.reg = string_intern(t, v.reg, interner, find_only);
        lut_sink(t, v, type_of(TYPE_INTEGER), &made);
        lut = &made;
    }
    struct lut copy = *lut;
    return l->status ? 0 : lut_read(b, &copy, reg, NO_REG).reg;
}

struct ranks string_ranks(struct lower *l, u32 dict) {
    for (i64 i = 0; i < l->ranks.count; i++) {
        if (l->ranks.items[i].dict == dict) {
            return l->ranks.items[i];
        }
    }
    struct ranks ranks = {dict, lut_var(l, KIND_I32), lut_var(l, KIND_I32)};
    struct step *step = lower_step(l, STEP_RANK, "Rank of strings");
    step->dict = dict - 1;
    step->dst = ranks.rank_var;
    step->dst2 = ranks.code_var;
    VEC_PUSH(l->arena, &l->ranks, ranks);
    return ranks;
}
