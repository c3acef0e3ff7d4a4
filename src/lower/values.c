/* values.c: rows written in the statement.
 *
 * One row needs no variable: its expressions are bound to a pipeline that runs once. Of several
 * rows, those that fold to literals are part of the variable from the start, so that inserting many
 * rows costs a literal per value and no opcodes; any other row is a pipeline of its own that
 * appends to the same variable. Time is linear in the number of values. */
#include "lower/lower_int.h"

struct values {
    struct lower *l;
    const struct rel *rel;
    u32 width;
    u32 var;
    VEC(u32) lits;
    VEC(i64) others; /* rows that are not constant */
    struct builder *scratch;
};

static void note_range(struct values *vs, u32 col, struct range range) {
    struct var_info *info = &vs->l->var_infos.items[vs->var];
    bool first = info->ranges[col].lo > info->ranges[col].hi;
    info->ranges[col] = first ? range : range_union(info->ranges[col], range);
}

/* The literal of a constant expression in its type's kind; false when it is not one. */
static bool const_lit(struct values *vs, u32 col, const struct expr *expr, u32 *out) {
    struct type type = vs->l->plan->cols.items[vs->rel->out.items[col]].type;
    if (expr->kind != EXPR_CONST || !type_eq(expr->type, type)) {
        return false;
    }
    *out = expr->is_null ? NO_LIT : lower_lit(vs->l, type_kind(type), expr->value);
    return true;
}

/* An expression that is constant after folding: a cast or a negative number, mostly. */
static bool folded_lit(struct values *vs, u32 col, const struct expr *expr, u32 *out) {
    struct builder *b = vs->scratch;
    struct mark mark = build_mark(b);
    struct type type = vs->l->plan->cols.items[vs->rel->out.items[col]].type;
    union lit lit;
    bool is_null;
    bool folded = lower_const_lit(b, lower_expr(b, expr), type, &lit, &is_null);
    build_undo(b, mark);
    if (folded) {
        *out = is_null ? NO_LIT : lower_lit(vs->l, type_kind(type), lit);
    }
    return folded;
}

static void note_value(struct values *vs, u32 col, u32 lit) {
    struct lower *l = vs->l;
    struct var_info *info = &l->var_infos.items[vs->var];
    if (lit == NO_LIT) {
        struct type type = l->plan->cols.items[vs->rel->out.items[col]].type;
        info->nullable[col] = 1;
        if (type_is_whole(type)) {
            note_range(vs, col, range_exact(0, 0)); /* what the variable holds for NULL */
        }
        return;
    }
    union lit v = l->lits.items[lit];
    switch (l->lit_kinds.items[lit]) {
    case KIND_I32:
        note_range(vs, col, range_exact(v.i32, v.i32));
        break;
    case KIND_I64:
        note_range(vs, col, range_exact(v.i64, v.i64));
        break;
    case KIND_I128:
        note_range(vs, col, range_exact(v.i128, v.i128));
        break;
    default:
        break;
    }
}

static void add_row(struct values *vs, i64 row) {
    struct lower *l = vs->l;
    i64 start = vs->lits.count;
    for (u32 c = 0; c < vs->width && !l->status; c++) {
        const struct expr *expr = vs->rel->values.exprs.items[row * vs->width + c];
        u32 lit;
        if (!const_lit(vs, c, expr, &lit) && !folded_lit(vs, c, expr, &lit)) {
            vs->lits.count = start;
            VEC_PUSH(l->arena, &vs->others, row);
            return;
        }
        VEC_PUSH(l->arena, &vs->lits, lit);
    }
    for (u32 c = 0; c < vs->width && !l->status; c++) {
        note_value(vs, c, vs->lits.items[start + c]);
    }
}

/* A row that must be computed: appended by a pipeline of its own. */
static void compute_row(struct values *vs, i64 row) {
    struct lower *l = vs->l;
    struct builder *b = build_new(l, SOURCE_ONE, 0, 1, 1);
    struct sink_col *cols = NEW_ARRAY(l->arena, struct sink_col, vs->width);
    for (u32 c = 0; c < vs->width && !l->status; c++) {
        struct type type = l->plan->cols.items[vs->rel->out.items[c]].type;
        struct value v = lower_expr(b, vs->rel->values.exprs.items[row * vs->width + c]);
        if (l->status) {
            return;
        }
        v.reg = lower_canonical(b, v, type);
        cols[c] = (struct sink_col){.reg = v.reg, .null_reg = v.null, .type = type};
        struct var_info *info = &l->var_infos.items[vs->var];
        info->nullable[c] = info->nullable[c] || v.null != NO_REG;
        info->ranges[c] = range_of_type(type);
    }
    struct sink sink = {.kind = SINK_ROWS,
                        .var = vs->var,
                        .limit = -1,
                        .append = 1,
                        .col_count = vs->width,
                        .cols = cols,
                        .key = NO_REG,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_label(b, rel_names[REL_VALUES]);
    build_sink(b, sink);
    build_finish(b);
}

static void make_var(struct values *vs) {
    struct lower *l = vs->l;
    vs->var = lower_var(l, VAR_ROWS, "values");
    struct var *var = &l->vars.items[vs->var];
    struct var_info *info = &l->var_infos.items[vs->var];
    var->col_count = vs->width;
    var->types = NEW_ARRAY(l->arena, struct type, vs->width);
    var->kinds = NEW_ARRAY(l->arena, u8, vs->width);
    var->dicts = NEW_ARRAY(l->arena, u32, vs->width);
    info->ranges = NEW_ARRAY(l->arena, struct range, vs->width);
    info->nullable = NEW_ARRAY(l->arena, b8, vs->width);
    for (u32 c = 0; c < vs->width; c++) {
        struct type type = l->plan->cols.items[vs->rel->out.items[c]].type;
        var->types[c] = type;
        var->kinds[c] = (u8)type_kind(type);
        bool exact = type_is_whole(type);
        info->ranges[c] = exact ? range_exact(1, 0) : range_of_type(type);
    }
}

struct builder *lower_values(struct lower *l, const struct rel *rel) {
    u32 width = (u32)rel->out.count;
    i64 rows = width > 0 ? rel->values.exprs.count / width : 1;
    if (rows == 1) {
        struct builder *b = build_new(l, SOURCE_ONE, 0, 1, 1);
        for (u32 c = 0; c < width && !l->status; c++) {
            bind_value(b, rel->out.items[c], lower_expr(b, rel->values.exprs.items[c]));
        }
        return b;
    }
    struct values vs = {.l = l, .rel = rel, .width = width};
    vs.scratch = build_new(l, SOURCE_ONE, 0, 1, 1);
    make_var(&vs);
    for (i64 r = 0; r < rows && !l->status; r++) {
        add_row(&vs, r);
    }
    for (i64 i = 0; i < vs.others.count && !l->status; i++) {
        compute_row(&vs, vs.others.items[i]);
    }
    struct var *var = &l->vars.items[vs.var];
    struct var_info *info = &l->var_infos.items[vs.var];
    var->const_rows = vs.lits.count / MAX_OF(width, 1);
    var->const_lits = vs.lits.items;
    info->max_rows = rows;
    struct builder *b = lower_over(l, vs.var, rows);
    for (u32 c = 0; c < width; c++) {
        if (info->ranges[c].lo > info->ranges[c].hi) {
            info->ranges[c] = range_exact(0, 0);
        }
        bind_source(b, rel->out.items[c], c);
    }
    return b;
}
