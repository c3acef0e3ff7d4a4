/* lower_expr.c: expressions to opcodes: columns, literals, three-valued logic, CASE.
 *
 * Every value is a register plus an optional NULL register; booleans hold 0 where they are NULL, so
 * that a filter takes the value as it is. Branches are all evaluated and combined by selections;
 * one that might raise, or is expensive, is wrapped in WHEN … END, and what it computed is then
 * read only through a selection on the same condition. */
#include "lower/lower_int.h"

#include "codes/control.h"
#include "codes/scalar.h"

bool value_is_null(const struct builder *b, struct value v) {
    return build_is_bool(b, v.null, true);
}

struct value lower_bool(struct builder *b, u16 reg, u16 null) {
    if (null != NO_REG && build_is_bool(b, null, false)) {
        null = NO_REG;
    }
    return (struct value){build_andn(b, reg, null), null};
}

u16 lower_zero(struct builder *b, enum kind kind) {
    union lit zero;
    memset(&zero, 0, sizeof zero);
    switch (kind) {
    case KIND_B8:
        return build_bool(b, false);
    case KIND_I32:
    case KIND_I64:
    case KIND_I128:
        return build_int(b, kind, 0);
    case KIND_STR:
        return build_str(b, SV(""));
    default:
        return build_lit(b, kind, zero, range_float(0, 0, false));
    }
}

u16 lower_where(struct builder *b, u16 where, u16 reg) {
    if (!b->l->status && reg_dict(b, reg) && build_is_bool(b, where, false)) {
        return lower_zero(b, KIND_STR); /* a literal code would belong to no dictionary */
    }
    return build_sel(b, where, reg, lower_zero(b, reg_kind(b, reg)));
}

struct value lower_null(struct builder *b, struct type type) {
    enum kind kind = type_kind(type);
    bool exact = kind == KIND_I64 || kind == KIND_I128;
    u16 reg = lower_zero(b, exact ? KIND_I32 : kind);
    return (struct value){reg, build_bool(b, true)};
}

static struct value lower_const(struct builder *b, const struct expr *expr) {
    if (expr->is_null) {
        return lower_null(b, expr->type);
    }
    u16 reg;
    switch (type_kind(expr->type)) {
    case KIND_B8:
        reg = build_bool(b, expr->value.b8);
        break;
    case KIND_I32:
        reg = build_exact(b, expr->value.i32);
        break;
    case KIND_I64:
        reg = build_exact(b, expr->value.i64);
        break;
    case KIND_I128:
        reg = build_exact(b, expr->value.i128);
        break;
    case KIND_F32:
    case KIND_F64:
        reg = build_lit(b, type_kind(expr->type), expr->value, range_none());
        break;
    default:
        reg = build_str(b, sv_of(expr->value.str));
        break;
    }
    return (struct value){reg, NO_REG};
}

static struct value lower_param(struct builder *b, const struct expr *expr) {
    struct type type = b->l->plan->param_types[expr->param];
    u32 lit = lower_param_lit(b->l, expr->param);
    u32 null_lit = lower_param_null_lit(b->l, expr->param);
    struct value v;
    v.reg = build_param(b, lit, type_kind(type), range_of_type(type));
    v.null = build_param(b, null_lit, KIND_B8, range_bool());
    if (type_kind(type) == KIND_B8) {
        v = lower_bool(b, v.reg, v.null);
    }
    return type_eq(type, expr->type) ? v : lower_cast(b, v, type, expr->type);
}

static struct value load(struct builder *b, const struct binding *bind) {
    struct value v = {NO_REG, NO_REG};
    bool from_var = bind->kind == BIND_VAR;
    struct op op = {.code = from_var ? OP_LOADV : OP_LOAD,
                    .a = from_var ? bind->row_reg : (u16)NO_REG,
                    .b = from_var ? (u16)bind->var : (u16)NO_REG,
                    .c = bind->outer ? 1 : NO_REG,
                    .imm = bind->col};
    v.reg = build_ctl(b, op, (enum kind)bind->reg_kind, bind->range, bind->dict);
    if (bind->nullable) {
        op.code = from_var ? OP_LOADVN : OP_LOADN;
        v.null = build_ctl(b, op, KIND_B8, range_bool(), 0);
        if (bind->reg_kind == KIND_B8) {
            v = lower_bool(b, v.reg, v.null);
        }
    }
    return v;
}

struct value lower_col(struct builder *b, u32 col) {
    struct binding *bind = bind_at(b, col);
    struct value v = {0, NO_REG};
    lazy_use(b, bind);
    switch (bind->kind) {
    case BIND_SOURCE:
    case BIND_VAR:
        return load(b, bind);
    case BIND_VALUE:
        return bind->value;
    case BIND_EXPR:
        v = lower_expr(b, bind->expr);
        if (b->depth == 0) { /* valid for every row from here on */
            bind->kind = BIND_VALUE;
            bind->value = v;
        }
        return v;
    default:
        lower_fail(b->l, ERR_INTERNAL, b->position, "lowering: column %u is not bound", col);
        return v;
    }
}

/* logic */

static struct value and_values(struct builder *b, struct value x, struct value y) {
    struct value r = {build_and(b, x.reg, y.reg), NO_REG};
    if (x.null == NO_REG && y.null == NO_REG) {
        return r;
    }
    u16 x_open = x.null == NO_REG ? x.reg : build_or(b, x.reg, x.null); /* not false */
    u16 y_open = y.null == NO_REG ? y.reg : build_or(b, y.reg, y.null);
    u16 from_x = x.null == NO_REG ? (u16)NO_REG : build_and(b, x.null, y_open);
    u16 from_y = y.null == NO_REG ? (u16)NO_REG : build_and(b, y.null, x_open);
    r.null = build_null_or(b, from_x, from_y);
    if (build_is_bool(b, r.null, false)) {
        r.null = NO_REG;
    }
    return r;
}

struct value lower_or_values(struct builder *b, struct value x, struct value y) {
    struct value r = {build_or(b, x.reg, y.reg), NO_REG};
    u16 nulls = build_null_or(b, x.null, y.null);
    if (nulls != NO_REG) {
        r.null = build_andn(b, nulls, r.reg);
        r.null = build_is_bool(b, r.null, false) ? (u16)NO_REG : r.null;
    }
    return r;
}

static struct value lower_and(struct builder *b, const struct expr *expr) {
    struct value acc = lower_expr(b, expr->args[0]);
    for (i32 i = 1; i < expr->arg_count && !b->l->status; i++) {
        bool never_null = acc.null == NO_REG;
        if (build_is_bool(b, acc.reg, false) && never_null) {
            break;
        }
        u16 open = never_null ? acc.reg : build_or(b, acc.reg, acc.null);
        struct scope scope = build_when(b, open);
        struct value next = lower_expr(b, expr->args[i]);
        if (build_end(b, scope)) {
            next.reg = build_and(b, next.reg, open);
            next.null = next.null == NO_REG ? (u16)NO_REG : build_and(b, next.null, open);
        }
        acc = and_values(b, acc, next);
    }
    return acc;
}

static struct value lower_or(struct builder *b, const struct expr *expr) {
    struct value acc = lower_expr(b, expr->args[0]);
    for (i32 i = 1; i < expr->arg_count && !b->l->status; i++) {
        if (build_is_bool(b, acc.reg, true)) {
            break;
        }
        struct scope scope = build_when(b, build_not(b, acc.reg));
        struct value next = lower_expr(b, expr->args[i]);
        build_end(b, scope); /* where it was not evaluated, acc is 1 and decides */
        acc = lower_or_values(b, acc, next);
    }
    return acc;
}

static struct value lower_not(struct builder *b, const struct expr *expr) {
    static const u16 inverse[FUNC_COUNT] = {
        [FUNC_EQ] = FUNC_NE, [FUNC_NE] = FUNC_EQ, [FUNC_LT] = FUNC_GE,
        [FUNC_GE] = FUNC_LT, [FUNC_GT] = FUNC_LE, [FUNC_LE] = FUNC_GT};
    const struct expr *arg = expr->args[0];
    if (arg->kind == EXPR_CALL && inverse[arg->func]) {
        struct expr turned = *arg;
        turned.func = inverse[arg->func];
        return lower_call(b, &turned);
    }
    struct value v = lower_expr(b, arg);
    return lower_bool(b, build_not(b, v.reg), v.null);
}

static struct value lower_is_null(struct builder *b, const struct expr *expr) {
    if (expr->args[0]->kind == EXPR_COL && bind_at(b, expr->args[0]->col)->kind == BIND_SOURCE &&
        !bind_at(b, expr->args[0]->col)->nullable) {
        return (struct value){build_bool(b, false), NO_REG}; /* without loading it */
    }
    struct value v = lower_expr(b, expr->args[0]);
    return (struct value){v.null == NO_REG ? build_bool(b, false) : v.null, NO_REG};
}

/* choices */

void lower_same_kind(struct builder *b, struct value *x, struct value *y) {
    enum kind kx = reg_kind(b, x->reg);
    enum kind ky = reg_kind(b, y->reg);
    bool text = kx == KIND_STR || ky == KIND_STR || reg_dict(b, x->reg) || reg_dict(b, y->reg);
    if (text && reg_dict(b, x->reg) != reg_dict(b, y->reg)) {
        x->reg = string_view(b, x->reg);
        y->reg = string_view(b, y->reg);
    } else if (kx != ky) {
        enum kind kind = kind_wider(kx, ky);
        x->reg = build_kind(b, x->reg, kind);
        y->reg = build_kind(b, y->reg, kind);
    }
}

/* One side is NULL: the other's value will do, unless it exists only where it was evaluated. */
static struct value choose_null(struct builder *b, u16 where, struct value v, bool masked) {
    struct value r = v;
    u16 not_where = build_not(b, where);
    if (reg_kind(b, v.reg) == KIND_B8) {
        r.reg = build_and(b, v.reg, where);
    } else if (masked) {
        r.reg = lower_where(b, where, v.reg);
    }
    if (v.null != NO_REG && masked) {
        u16 null = build_and(b, v.null, where);
        r.null = build_or(b, null, not_where);
    } else {
        r.null = build_null_or(b, v.null, not_where);
    }
    return r;
}

static struct value choose(struct builder *b, u16 cond, struct value v, bool v_masked,
                           struct value w, bool w_masked) {
    if (b->l->status || build_is_bool(b, cond, true)) {
        return v;
    }
    if (build_is_bool(b, cond, false)) {
        return w;
    }
    if (value_is_null(b, v) && value_is_null(b, w)) {
        return v;
    }
    if (value_is_null(b, v)) {
        return choose_null(b, build_not(b, cond), w, w_masked);
    }
    if (value_is_null(b, w)) {
        return choose_null(b, cond, v, v_masked);
    }
    lower_same_kind(b, &v, &w);
    struct value r = {build_sel(b, cond, v.reg, w.reg), NO_REG};
    if (v.null != NO_REG && w.null != NO_REG) {
        r.null = build_sel(b, cond, v.null, w.null);
    } else if (v.null != NO_REG) {
        r.null = build_and(b, v.null, cond);
    } else if (w.null != NO_REG) {
        r.null = build_andn(b, w.null, cond);
    }
    if (r.null != NO_REG && build_is_bool(b, r.null, false)) {
        r.null = NO_REG;
    }
    return r;
}

struct value lower_choose(struct builder *b, u16 cond, struct value v, struct value w,
                          struct type type) {
    UNUSED(type);
    return choose(b, cond, v, false, w, false);
}

static struct value lower_case(struct builder *b, const struct expr *expr, i32 from) {
    if (from == expr->arg_count - 1 || b->l->status) {
        return lower_expr(b, expr->args[expr->arg_count - 1]);
    }
    struct value cond = lower_expr(b, expr->args[from]);
    if (build_is_bool(b, cond.reg, true)) {
        return lower_expr(b, expr->args[from + 1]);
    }
    if (build_is_bool(b, cond.reg, false)) {
        return lower_case(b, expr, from + 2);
    }
    struct scope scope = build_when(b, cond.reg);
    struct value then = lower_expr(b, expr->args[from + 1]);
    bool then_masked = build_end(b, scope);
    u16 other = build_not(b, cond.reg);
    scope = build_when(b, other);
    struct value rest = lower_case(b, expr, from + 2);
    bool rest_masked = build_end(b, scope);
    return choose(b, cond.reg, then, then_masked, rest, rest_masked);
}

static struct value lower_coalesce(struct builder *b, const struct expr *expr, i32 from) {
    struct value v = lower_expr(b, expr->args[from]);
    if (b->l->status || v.null == NO_REG || from == expr->arg_count - 1) {
        return v;
    }
    if (value_is_null(b, v)) {
        return lower_coalesce(b, expr, from + 1);
    }
    struct scope scope = build_when(b, v.null);
    struct value rest = lower_coalesce(b, expr, from + 1);
    bool masked = build_end(b, scope);
    u16 here = build_not(b, v.null);
    v.null = NO_REG; /* where it is taken */
    return choose(b, here, v, false, rest, masked);
}

/* GREATEST and LEAST of two: a NULL gives way to the other. */
static struct value lower_extreme(struct builder *b, const struct expr *expr) {
    struct value x = lower_expr(b, expr->args[0]);
    struct value y = lower_expr(b, expr->args[1]);
    if (b->l->status || value_is_null(b, x)) {
        return y;
    }
    if (value_is_null(b, y)) {
        return x;
    }
    u16 null = x.null == NO_REG || y.null == NO_REG ? (u16)NO_REG : build_and(b, x.null, y.null);
    struct value p = {x.reg, NO_REG};
    struct value q = {y.reg, NO_REG};
    u16 func = expr->func == FUNC_GREATEST ? FUNC_GE : FUNC_LE;
    u16 first = lower_compare(b, func, p, q, expr->args[0]->type, expr->args[1]->type).reg;
    first = y.null == NO_REG ? first : build_or(b, first, y.null);
    first = x.null == NO_REG ? first : build_andn(b, first, x.null);
    struct value r = choose(b, first, p, false, q, false);
    r.null = null;
    return r;
}

static struct value lower_nullif(struct builder *b, const struct expr *expr) {
    struct value x = lower_expr(b, expr->args[0]);
    struct value y = lower_expr(b, expr->args[1]);
    if (b->l->status || value_is_null(b, x) || value_is_null(b, y)) {
        return x;
    }
    struct value same = lower_compare(b, FUNC_EQ, x, y, expr->args[0]->type, expr->args[1]->type);
    return choose(b, same.reg, lower_null(b, expr->type), false, x, false);
}

static struct value lower_function(struct builder *b, const struct expr *expr) {
    switch (expr->func) {
    case FUNC_TRY:
        return lower_try(b, expr);
    case FUNC_DEFINED:
        return lower_defined(b, expr);
    case FUNC_COALESCE:
        return lower_coalesce(b, expr, 0);
    case FUNC_GREATEST:
    case FUNC_LEAST:
        return lower_extreme(b, expr);
    case FUNC_NULLIF:
        return lower_nullif(b, expr);
    default:
        return lower_call(b, expr);
    }
}

struct value lower_expr(struct builder *b, const struct expr *expr) {
    struct value v = {0, NO_REG};
    lower_poll(b->l);
    if (b->l->status) {
        return v;
    }
    i32 outer = b->position;
    b->position = expr->position >= 0 ? expr->position : outer;
    if (!string_lut(b, expr, &v)) {
        switch (expr->kind) {
        case EXPR_COL:
            v = lower_col(b, expr->col);
            break;
        case EXPR_CONST:
            v = lower_const(b, expr);
            break;
        case EXPR_PARAM:
            v = lower_param(b, expr);
            break;
        case EXPR_CALL:
            v = lower_function(b, expr);
            break;
        case EXPR_CAST:
            v = lower_expr(b, expr->args[0]);
            v = lower_cast(b, v, expr->args[0]->type, expr->type);
            break;
        case EXPR_AND:
            v = lower_and(b, expr);
            break;
        case EXPR_OR:
            v = lower_or(b, expr);
            break;
        case EXPR_NOT:
            v = lower_not(b, expr);
            break;
        case EXPR_IS_NULL:
            v = lower_is_null(b, expr);
            break;
        case EXPR_CASE:
            v = lower_case(b, expr, 0);
            break;
        default:
            v = lower_in(b, expr);
            break;
        }
    }
    b->position = outer;
    return v;
}
