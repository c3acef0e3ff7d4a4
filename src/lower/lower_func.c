/* lower_func.c: calls to opcodes: arithmetic, comparison, text and date functions.
 *
 * Exact arithmetic runs in the narrowest kind that holds the operands and, by their ranges, the
 * result; checks appear only where the ranges cannot exclude overflow. A faulting opcode never sees
 * the operand of a NULL: it is replaced by a literal that cannot fault (lower_guard), so no masking
 * is needed. */
#include <float.h>
#include <math.h>

#include "lower/lower_int.h"

#include "codes/func.h"
#include "codes/op.h"
#include "host/eval.h"

/* One opcode per exact kind. */
#define BY_KIND(name) \
    { [KIND_I32] = OP_##name##_I32, [KIND_I64] = OP_##name##_I64, [KIND_I128] = OP_##name##_I128 }
#define BY_FLOAT(name) \
    { [KIND_F32] = OP_##name##_F32, [KIND_F64] = OP_##name##_F64 }
typedef const u16 by_kind[KIND_COUNT];

u16 lower_guard(struct builder *b, u16 reg, u16 null, u16 safe) {
    return null == NO_REG ? reg : build_sel(b, null, safe, reg);
}

static u16 exact_plain(struct builder *b, by_kind codes, u16 x, u16 y, struct range r) {
    enum kind kind = kind_wider(range_kind(r), kind_wider(reg_kind(b, x), reg_kind(b, y)));
    x = build_kind(b, x, kind);
    y = build_kind(b, y, kind);
    return b->l->status ? 0 : build_op(b, codes[kind], x, y, NO_REG, r);
}

static by_kind add_codes = BY_KIND(ADD);
static by_kind sub_codes = BY_KIND(SUB);
static by_kind mul_codes = BY_KIND(MUL);
static by_kind addx_codes = BY_KIND(ADDX);
static by_kind subx_codes = BY_KIND(SUBX);
static by_kind mulx_codes = BY_KIND(MULX);

u16 lower_add_exact(struct builder *b, u16 x, u16 y) {
    return exact_plain(b, add_codes, x, y, range_add(reg_range(b, x), reg_range(b, y)));
}

u16 lower_sub_exact(struct builder *b, u16 x, u16 y) {
    return exact_plain(b, sub_codes, x, y, range_sub(reg_range(b, x), reg_range(b, y)));
}

u16 lower_mul_exact(struct builder *b, u16 x, u16 y) {
    return exact_plain(b, mul_codes, x, y, range_mul(reg_range(b, x), reg_range(b, y)));
}

u16 lower_scale(struct builder *b, u16 reg, i32 from, i32 to) {
    if (to <= from || b->l->status) {
        return reg;
    }
    u16 power = build_exact(b, pow10_i128(to - from));
    struct range r = range_mul(reg_range(b, reg), reg_range(b, power));
    if (!range_fits_i128(r)) {
        return build_op(b, OP_MULX_I128, build_kind(b, reg, KIND_I128),
                        build_kind(b, power, KIND_I128), NO_REG,
                        range_of_type(type_decimal(38, 0)));
    }
    return lower_mul_exact(b, reg, power);
}

/* checks */

static u16 check_64(struct builder *b, u16 code, u16 reg, u16 null, struct range all) {
    if (!range_within(reg_range(b, reg), range_exact(I64_MIN, I64_MAX))) {
        reg = lower_check(b, reg, null, type_of(TYPE_BIGINT));
    }
    struct range r = range_cut(reg_range(b, reg), all);
    reg = lower_guard(b, build_kind(b, reg, KIND_I64), null, build_int(b, KIND_I64, r.lo));
    reg = build_op(b, code, reg, build_int(b, KIND_I64, all.lo), build_int(b, KIND_I64, all.hi), r);
    return build_kind(b, reg, range_kind(r));
}

static u16 check_128(struct builder *b, u16 code, u16 reg, u16 null, struct range all) {
    struct range r = range_cut(reg_range(b, reg), all);
    reg = lower_guard(b, build_kind(b, reg, KIND_I128), null, build_int(b, KIND_I128, r.lo));
    reg =
        build_op(b, code, reg, build_int(b, KIND_I128, all.lo), build_int(b, KIND_I128, all.hi), r);
    return build_kind(b, reg, range_kind(r));
}

u16 lower_check(struct builder *b, u16 reg, u16 null, struct type type) {
    struct range all = range_of_type(type);
    if (b->l->status || range_within(reg_range(b, reg), all)) {
        return reg;
    }
    switch (type.id) {
    case TYPE_SMALLINT:
        return check_64(b, OP_CHECK_SMALLINT, reg, null, all);
    case TYPE_INTEGER:
        return check_64(b, OP_CHECK_INTEGER, reg, null, all);
    case TYPE_DATE:
        return check_64(b, OP_CHECK_DATE, reg, null, all);
    case TYPE_BIGINT:
        return check_128(b, OP_CHECK_BIGINT, reg, null, all);
    default:
        return check_128(b, OP_CHECK_DECIMAL, reg, null, all);
    }
}

/* exact arithmetic */

static struct range func_range(u16 func, struct range x, struct range y) {
    return func == FUNC_ADD   ? range_add(x, y)
           : func == FUNC_SUB ? range_sub(x, y)
                              : range_mul(x, y);
}

/* x op y as a value of `type`, for + - *. */
static u16 exact_op(struct builder *b, u16 func, u16 x, u16 y, u16 null, struct type type) {
    if (b->l->status) {
        return 0;
    }
    const u16 *plain = func == FUNC_ADD ? add_codes : func == FUNC_SUB ? sub_codes : mul_codes;
    const u16 *checked = func == FUNC_ADD ? addx_codes : func == FUNC_SUB ? subx_codes : mulx_codes;
    struct range r = func_range(func, reg_range(b, x), reg_range(b, y));
    struct range all = range_of_type(type);
    if (range_within(r, all)) {
        return exact_plain(b, plain, x, y, r);
    }
    enum kind kind = type.id == TYPE_INTEGER  ? KIND_I32
                     : type.id == TYPE_BIGINT ? KIND_I64
                                              : KIND_I128;
    bool own_check = type.id == TYPE_INTEGER || type.id == TYPE_BIGINT || !range_fits_i128(r);
    bool fits = kind_wider(reg_kind(b, x), reg_kind(b, y)) <= kind;
    if (!own_check || !fits) {
        return lower_check(b, exact_plain(b, plain, x, y, r), null, type);
    }
    x = build_kind(b, x, kind);
    y = lower_guard(b, build_kind(b, y, kind), null, build_int(b, kind, 0));
    if (b->l->status) {
        return 0;
    }
    r = func_range(func, reg_range(b, x), reg_range(b, y)); /* NULL rows add 0, too */
    if (func == FUNC_SUB || func == FUNC_MUL || null == NO_REG) {
        r = range_cut(r, kind == KIND_I128 ? range_of_type(type_decimal(38, 0)) : all);
    } else {
        r = range_cut(r, all);
    }
    u16 reg = build_op(b, checked[kind], x, y, NO_REG, r);
    return lower_check(b, reg, null, type);
}

u16 lower_divide(struct builder *b, u16 reg, i32 digits, bool round) {
    static by_kind rounded = BY_KIND(ROUNDDIV), cut = BY_KIND(DIV);
    if (b->l->status || digits <= 0) {
        return reg;
    }
    i128 power = pow10_i128(digits);
    struct range r = reg_range(b, reg);
    struct range q = range_exact(r.lo / power - round, r.hi / power + round);
    enum kind kind = kind_wider(reg_kind(b, reg), range_kind(range_exact(power, power)));
    reg = build_safe(b, round ? rounded[kind] : cut[kind], build_kind(b, reg, kind),
                     build_int(b, kind, power), NO_REG, q);
    return build_kind(b, reg, range_kind(q));
}

/* A product with more digits after the point than its type keeps. */
static u16 multiply_rounded(struct builder *b, const struct expr *expr, struct value x,
                            struct value y, u16 null) {
    i32 extra =
        type_scale(expr->args[0]->type) + type_scale(expr->args[1]->type) - type_scale(expr->type);
    struct range wide = range_of_type(type_decimal(38, 0));
    if (b->l->status) {
        return 0;
    }
    struct range r = range_mul(reg_range(b, x.reg), reg_range(b, y.reg));
    if (range_within(r, wide)) {
        u16 reg = exact_plain(b, mul_codes, x.reg, y.reg, r);
        return lower_check(b, lower_divide(b, reg, extra, true), null, expr->type);
    }
    u16 zero = build_int(b, KIND_I128, 0);
    u16 a = lower_guard(b, build_kind(b, x.reg, KIND_I128), null, zero);
    u16 c = lower_guard(b, build_kind(b, y.reg, KIND_I128), null, zero);
    return lower_check(b, build_op(b, OP_MULDEC_I128, a, c, build_i32(b, extra), wide), null,
                       expr->type);
}

static u16 exact_arith(struct builder *b, const struct expr *expr, struct value x, struct value y,
                       u16 null) {
    i32 sx = type_scale(expr->args[0]->type);
    i32 sy = type_scale(expr->args[1]->type);
    i32 scale = type_scale(expr->type);
    u16 func = expr->func;
    if (func == FUNC_MUL && sx + sy > scale) {
        return multiply_rounded(b, expr, x, y, null);
    }
    if (func == FUNC_MUL) {
        u16 reg = exact_op(b, func, x.reg, y.reg, null, expr->type);
        return lower_scale(b, reg, sx + sy, scale);
    }
    i32 common = MAX_OF(sx, sy);
    x.reg = lower_scale(b, x.reg, sx, common);
    y.reg = lower_scale(b, y.reg, sy, common);
    if (common > scale) {
        u16 reg = exact_op(b, func, x.reg, y.reg, null, type_decimal(38, 0));
        return lower_check(b, lower_divide(b, reg, common - scale, true), null, expr->type);
    }
    x.reg = lower_scale(b, x.reg, common, scale);
    y.reg = lower_scale(b, y.reg, common, scale);
    return exact_op(b, func, x.reg, y.reg, null, expr->type);
}

static u16 divide_decimal(struct builder *b, const struct expr *expr, struct value x,
                          struct value y, u16 null) {
    i32 shift =
        type_scale(expr->type) - type_scale(expr->args[0]->type) + type_scale(expr->args[1]->type);
    u16 divisor = shift < 0 ? lower_scale(b, y.reg, 0, -shift) : y.reg;
    shift = MAX_OF(shift, 0);
    if (shift > 38) { /* the rest by scaling the dividend first */
        x.reg = lower_scale(b, x.reg, 0, shift - 38);
        shift = 38;
    }
    struct range all = range_of_type(expr->type);
    struct range power = range_exact(pow10_i128(shift), pow10_i128(shift));
    struct range q = range_mul(reg_range(b, x.reg), power);
    i128 most = range_abs(q);
    struct range r = range_within(q, all) ? range_exact(-most, most) : all;
    bool nonzero = !range_has(reg_range(b, divisor), 0);
    bool safe = nonzero && range_within(q, range_of_type(type_decimal(38, 0)));
    u16 a = build_kind(b, x.reg, KIND_I128);
    u16 d = build_kind(b, divisor, KIND_I128);
    if (!safe) {
        a = lower_guard(b, a, null, build_int(b, KIND_I128, 0));
        d = lower_guard(b, d, null, build_int(b, KIND_I128, 1));
        struct range wide = range_of_type(type_decimal(38, 0));
        u16 reg = build_op(b, OP_DIVDEC_I128, a, d, build_i32(b, shift), wide);
        return lower_check(b, reg, null, expr->type);
    }
    return build_safe(b, OP_DIVDEC_I128, a, d, build_i32(b, shift), r);
}

/* The remainder of decimals that 128 bits do not hold at one scale. */
static u16 modulo_wide(struct builder *b, const struct expr *expr, struct value x, struct value y,
                       u16 null) {
    i32 shift = type_scale(expr->args[1]->type) - type_scale(expr->args[0]->type);
    struct range wide = range_of_type(type_decimal(38, 0));
    u16 a = build_kind(b, x.reg, KIND_I128);
    u16 d = build_kind(b, y.reg, KIND_I128);
    if (shift < 0) { /* a divisor beyond all decimals leaves the dividend */
        i128 beyond = pow10_i128(38);
        d = build_op(b, OP_SCALE_DEC, d, build_i32(b, -shift), NO_REG,
                     range_exact(-beyond, beyond));
    }
    d = lower_guard(b, d, null, build_int(b, KIND_I128, 1));
    a = shift > 0 ? build_op(b, OP_MODDEC_I128, a, d, build_i32(b, shift), wide)
                  : build_op(b, OP_MOD_I128, a, d, NO_REG, wide);
    return lower_check(b, a, null, expr->type);
}

bool lower_outgrows(struct builder *b, u16 reg, i32 digits) {
    i128 power = pow10_i128(MAX_OF(digits, 0));
    return !range_within(range_mul(reg_range(b, reg), range_exact(power, power)),
                         range_of_type(type_decimal(38, 0)));
}

static u16 exact_divide(struct builder *b, const struct expr *expr, struct value x, struct value y,
                        u16 null) {
    static by_kind div_codes = BY_KIND(DIV);
    static by_kind mod_codes = BY_KIND(MOD);
    bool mod = expr->func == FUNC_MOD;
    if (expr->type.id == TYPE_DECIMAL && !mod) {
        return divide_decimal(b, expr, x, y, null);
    }
    i32 scale = MAX_OF(type_scale(expr->args[0]->type), type_scale(expr->args[1]->type));
    if (mod && !b->l->status &&
        (lower_outgrows(b, x.reg, scale - type_scale(expr->args[0]->type)) ||
         lower_outgrows(b, y.reg, scale - type_scale(expr->args[1]->type)))) {
        return modulo_wide(b, expr, x, y, null);
    }
    u16 a = lower_scale(b, x.reg, type_scale(expr->args[0]->type), scale);
    u16 d = lower_scale(b, y.reg, type_scale(expr->args[1]->type), scale);
    struct range ra = reg_range(b, a);
    struct range r = range_div(ra, reg_range(b, d));
    if (mod) {
        i128 most = MIN_OF(range_abs(ra), MAX_OF(range_abs(reg_range(b, d)) - 1, 0));
        r = range_exact(ra.lo < 0 ? -most : 0, ra.hi > 0 ? most : 0);
    }
    bool nonzero = !range_has(reg_range(b, d), 0);
    if (!nonzero && !mod && null != NO_REG) {
        r = range_union(r, ra); /* NULL rows are divided by 1 */
    }
    enum kind kind = kind_wider(range_kind(r), kind_wider(reg_kind(b, a), reg_kind(b, d)));
    a = build_kind(b, a, kind);
    d = build_kind(b, d, kind);
    u16 code = (mod ? mod_codes[kind] : div_codes[kind]);
    u16 reg;
    if (nonzero) { /* the kind holds the quotient, so the least value by -1 is no trap */
        reg = build_safe(b, code, a, d, NO_REG, r);
    } else {
        d = lower_guard(b, d, null, build_int(b, kind, 1));
        reg = build_op(b, code, a, d, NO_REG, r);
    }
    reg = lower_scale(b, reg, scale, type_scale(expr->type));
    return lower_check(b, reg, null, expr->type);
}

/* floats */

static f64 float_most(enum kind kind) {
    return kind == KIND_F32 ? (f64)FLT_MAX : DBL_MAX;
}

static i32 float_least(enum kind kind) {
    return kind == KIND_F32 ? -126 : -1022;
}

static u16 float_kind(struct builder *b, u16 reg, enum kind kind) {
    if (b->l->status || reg_kind(b, reg) == kind) {
        return reg;
    }
    CHECK(kind == KIND_F64); /* the binder casts to the wider type */
    return build_op(b, OP_F64_F32, reg, NO_REG, NO_REG, reg_range(b, reg));
}

static u16 float_arith(struct builder *b, u16 func, enum kind kind, u16 x, u16 y, u16 null) {
    static by_kind plain_add = BY_FLOAT(ADD), plain_sub = BY_FLOAT(SUB), plain_mul = BY_FLOAT(MUL);
    static by_kind add = BY_FLOAT(ADDX), sub = BY_FLOAT(SUBX), mul = BY_FLOAT(MULX);
    static by_kind div = BY_FLOAT(DIV);
    x = float_kind(b, x, kind);
    y = float_kind(b, y, kind);
    if (b->l->status) {
        return 0;
    }
    struct range rx = reg_range(b, x);
    struct range ry = reg_range(b, y);
    bool special = rx.may_special || ry.may_special;
    bool product = func == FUNC_MUL;
    f64 most = product ? rx.abs_max * ry.abs_max : rx.abs_max + ry.abs_max;
    i32 lsb = product ? MAX_OF(rx.lsb + ry.lsb, -1074) : MIN_OF(rx.lsb, ry.lsb);
    bool safe = !special && func != FUNC_DIV && most < float_most(kind) * 0.99 &&
                (!product || rx.lsb + ry.lsb >= float_least(kind));
    if (safe) {
        struct range r = range_float(most * (1 + 1e-6), lsb, false);
        const u16 *codes = func == FUNC_ADD ? plain_add : func == FUNC_SUB ? plain_sub : plain_mul;
        return build_op(b, codes[kind], x, y, NO_REG, r);
    }
    struct range all = range_float(float_most(kind), kind == KIND_F32 ? -149 : -1074, special);
    const u16 *codes = func == FUNC_ADD   ? add
                       : func == FUNC_SUB ? sub
                       : func == FUNC_MUL ? mul
                                          : div;
    y = lower_guard(b, y, null, build_float(b, kind, func == FUNC_DIV ? 1 : 0));
    if (func == FUNC_MUL && null != NO_REG) { /* 0 times an infinity is harmless too, but NaN */
        x = lower_guard(b, x, null, build_float(b, kind, 0));
    }
    return build_op(b, codes[kind], x, y, NO_REG, all);
}

static struct value lower_arith(struct builder *b, const struct expr *expr, struct value x,
                                struct value y) {
    struct value r = {0, build_null_or(b, x.null, y.null)};
    if (type_is_float(expr->type)) {
        r.reg = float_arith(b, expr->func, type_kind(expr->type), x.reg, y.reg, r.null);
    } else if (expr->func == FUNC_DIV || expr->func == FUNC_MOD) {
        r.reg = exact_divide(b, expr, x, y, r.null);
    } else {
        r.reg = exact_arith(b, expr, x, y, r.null);
    }
    return r;
}

static struct value lower_negate(struct builder *b, const struct expr *expr, struct value x) {
    enum kind kind = reg_kind(b, x.reg);
    if (type_is_float(expr->type)) {
        u16 code = kind == KIND_F32 ? OP_NEG_F32 : OP_NEG_F64;
        x.reg = build_op(b, code, x.reg, NO_REG, NO_REG, reg_range(b, x.reg));
        return x;
    }
    static by_kind codes = BY_KIND(NEG);
    struct range r = range_sub(range_exact(0, 0), reg_range(b, x.reg));
    kind = kind_wider(kind, range_kind(r));
    if (range_within(r, range_of_type(expr->type))) {
        u16 wide = build_kind(b, x.reg, kind);
        x.reg = build_op(b, codes[kind], wide, NO_REG, NO_REG, r);
    } else {
        x.reg = exact_op(b, FUNC_SUB, build_int(b, KIND_I32, 0), x.reg, x.null, expr->type);
    }
    return x;
}

static struct value lower_abs(struct builder *b, const struct expr *expr, struct value x) {
    if (type_is_float(expr->type)) { /* 0 - x also turns -0 into 0 */
        bool narrow = reg_kind(b, x.reg) == KIND_F32;
        u16 zero = build_float(b, reg_kind(b, x.reg), 0);
        u16 minus =
            build_op(b, narrow ? OP_SUB_F32 : OP_SUB_F64, zero, x.reg, NO_REG, reg_range(b, x.reg));
        u16 below = build_op(b, narrow ? OP_LE_F32 : OP_LE_F64, x.reg, zero, NO_REG, range_bool());
        x.reg = build_sel(b, below, minus, x.reg);
        return x;
    }
    struct range r = reg_range(b, x.reg);
    if (r.lo >= 0) {
        return x;
    }
    struct value minus = lower_negate(b, expr, x);
    struct type type = expr->type;
    struct value zero = {build_int(b, KIND_I32, 0), NO_REG};
    struct value sign = {x.reg, NO_REG};
    u16 below = lower_compare(b, FUNC_LT, sign, zero, type_decimal(38, 0), type_decimal(38, 0)).reg;
    x = lower_choose(b, below, (struct value){minus.reg, NO_REG}, sign, type);
    if (b->l->status) {
        return x;
    }
    b->regs.items[x.reg].range = range_exact(0, range_abs(r));
    x.null = minus.null;
    return x;
}

/* comparison */

struct cmp_codes {
    u16 eq, ne, lt, le, gt, ge;
};
#define CMP(K) \
    { OP_EQ_##K, OP_NE_##K, OP_LT_##K, OP_LE_##K, OP_GT_##K, OP_GE_##K }

static u16 compare_op(struct builder *b, u16 func, enum kind kind, u16 x, u16 y) {
    static const struct cmp_codes codes[KIND_COUNT] = {
        [KIND_B8] = CMP(B8),     [KIND_I32] = CMP(I32), [KIND_I64] = CMP(I64),
        [KIND_I128] = CMP(I128), [KIND_F32] = CMP(F32), [KIND_F64] = CMP(F64)};
    const struct cmp_codes *c = &codes[kind];
    u16 code = func == FUNC_EQ   ? c->eq
               : func == FUNC_NE ? c->ne
               : func == FUNC_LT ? c->lt
               : func == FUNC_LE ? c->le
               : func == FUNC_GT ? c->gt
                                 : c->ge;
    return build_op(b, code, x, y, NO_REG, range_bool());
}

/* Through = < <= only: NaN-aware floats and strings. */
static u16 compare_three(struct builder *b, u16 func, u16 eq, u16 lt,
                         u16 le, u16 x, u16 y) {
    struct range r = range_bool();
    switch (func) {
    case FUNC_EQ:
        return build_op(b, eq, x, y, NO_REG, r);
    case FUNC_NE:
        return build_not(b, build_op(b, eq, x, y, NO_REG, r));
    case FUNC_LT:
        return build_op(b, lt, x, y, NO_REG, r);
    case FUNC_LE:
        return build_op(b, le, x, y, NO_REG, r);
    case FUNC_GT:
        return build_op(b, lt, y, x, NO_REG, r);
    default:
        return build_op(b, le, y, x, NO_REG, r);
    }
}

/* What ranges alone decide: 0, 1, or -1 when they do not. */
static i32 decided(u16 func, struct range x, struct range y) {
    bool below = x.hi < y.lo;
    bool above = x.lo > y.hi;
    bool same = x.lo == x.hi && y.lo == y.hi && x.lo == y.lo;
    switch (func) {
    case FUNC_EQ:
        return below || above ? 0 : same ? 1 : -1;
    case FUNC_NE:
        return below || above ? 1 : same ? 0 : -1;
    case FUNC_LT:
        return below ? 1 : x.lo >= y.hi ? 0 : -1;
    case FUNC_LE:
        return x.hi <= y.lo ? 1 : above ? 0 : -1;
    case FUNC_GT:
        return above ? 1 : x.hi <= y.lo ? 0 : -1;
    default:
        return x.lo >= y.hi ? 1 : below ? 0 : -1;
    }
}

static u16 compare_exact(struct builder *b, u16 func, u16 x, u16 y) {
    i32 known = decided(func, reg_range(b, x), reg_range(b, y));
    if (known >= 0) {
        return build_bool(b, known);
    }
    enum kind kind = kind_wider(reg_kind(b, x), reg_kind(b, y));
    return compare_op(b, func, kind, build_kind(b, x, kind), build_kind(b, y, kind));
}

static u16 compare_float(struct builder *b, u16 func, u16 x, u16 y) {
    enum kind kind = kind_wider(reg_kind(b, x), reg_kind(b, y));
    x = float_kind(b, x, kind);
    y = float_kind(b, y, kind);
    if (!reg_range(b, x).may_special && !reg_range(b, y).may_special) {
        return compare_op(b, func, kind, x, y);
    }
    if (kind == KIND_F32) {
        return compare_three(b, func, OP_EQN_F32, OP_LTN_F32, OP_LEN_F32, x, y);
    }
    return compare_three(b, func, OP_EQN_F64, OP_LTN_F64, OP_LEN_F64, x, y);
}

static u16 compare_text(struct builder *b, u16 func, u16 x, u16 y) {
    bool equality = func == FUNC_EQ || func == FUNC_NE;
    if (equality && reg_dict(b, x) && reg_dict(b, x) == reg_dict(b, y)) {
        return compare_op(b, func, KIND_I32, x, y);
    }
    x = string_view(b, x);
    y = string_view(b, y);
    return compare_three(b, func, OP_EQ_STR, OP_LT_STR, OP_LE_STR, x, y);
}

u16 lower_order(struct builder *b, u16 reg, struct type type) {
    if (type.id != TYPE_INTERVAL || b->l->status) {
        return reg;
    }
    return build_op(b, OP_IV_ORDER, build_kind(b, reg, KIND_I128), NO_REG, NO_REG,
                    range_exact(-((i128)1 << 72), (i128)1 << 72));
}

struct value lower_compare(struct builder *b, u16 func, struct value x, struct value y,
                           struct type tx, struct type ty) {
    struct value r = {0, build_null_or(b, x.null, y.null)};
    if (b->l->status) {
        return r;
    }
    if (value_is_null(b, x) || value_is_null(b, y)) {
        return lower_null(b, type_of(TYPE_BOOLEAN));
    }
    if (tx.id == TYPE_INTERVAL) {
        r.reg = compare_exact(b, func, lower_order(b, x.reg, tx), lower_order(b, y.reg, ty));
    } else if (type_kind(tx) == KIND_STR) {
        r.reg = compare_text(b, func, x.reg, y.reg);
    } else if (type_is_float(tx)) {
        r.reg = compare_float(b, func, x.reg, y.reg);
    } else if (tx.id == TYPE_BOOLEAN) {
        r.reg = compare_op(b, func, KIND_B8, x.reg, y.reg);
    } else {
        i32 scale = MAX_OF(type_scale(tx), type_scale(ty));
        u16 a = lower_scale(b, x.reg, type_scale(tx), scale);
        u16 c = lower_scale(b, y.reg, type_scale(ty), scale);
        r.reg = compare_exact(b, func, a, c);
    }
    return lower_bool(b, r.reg, r.null);
}

/* A real widened to be compared with a double that is a real: compare as reals. */
static bool compare_as_reals(struct builder *b, const struct expr *expr, struct value *out) {
    for (int i = 0; i < 2; i++) {
        const struct expr *wide = expr->args[i];
        const struct expr *other = expr->args[1 - i];
        if (wide->kind != EXPR_CAST || wide->type.id != TYPE_DOUBLE ||
            wide->args[0]->type.id != TYPE_REAL) {
            continue;
        }
        union lit lit;
        struct value y = lower_expr(b, other);
        if (b->l->status || y.null != NO_REG || !build_is_const(b, y.reg, &lit) ||
            reg_kind(b, y.reg) != KIND_F64 || !(fabs(lit.f64) <= FLT_MAX) ||
            (f64)(f32)lit.f64 != lit.f64) {
            continue;
        }
        struct value x = lower_expr(b, wide->args[0]);
        y.reg = build_float(b, KIND_F32, lit.f64);
        struct type real = type_of(TYPE_REAL);
        *out = lower_compare(b, expr->func, i == 0 ? x : y, i == 0 ? y : x, real, real);
        return true;
    }
    return false;
}

/* text and dates */

static struct value lower_strings(struct builder *b, const struct expr *expr, struct value *v) {
    struct value r = {0, v[0].null};
    u16 a = string_view(b, v[0].reg);
    struct range length = range_exact(0, I32_MAX);
    switch (expr->func) {
    case FUNC_LENGTH:
        r.reg = build_op(b, OP_LENGTH_STR, a, NO_REG, NO_REG, length);
        break;
    case FUNC_OCTET_LENGTH:
        r.reg = build_op(b, OP_BYTES_STR, a, NO_REG, NO_REG, length);
        break;
    case FUNC_UPPER:
        r.reg = build_op(b, OP_UPPER_STR, a, NO_REG, NO_REG, range_none());
        break;
    case FUNC_LOWER:
        r.reg = build_op(b, OP_LOWER_STR, a, NO_REG, NO_REG, range_none());
        break;
    case FUNC_CONCAT:
        r.null = build_null_or(b, v[0].null, v[1].null);
        r.reg = build_op(b, OP_CONCAT_STR, a, string_view(b, v[1].reg), NO_REG, range_none());
        break;
    case FUNC_SUBSTRING: {
        bool has_length = expr->arg_count > 2;
        r.null = build_null_or(b, v[0].null, v[1].null);
        r.null = has_length ? build_null_or(b, r.null, v[2].null) : r.null;
        u16 from = build_kind(b, v[1].reg, KIND_I64);
        u16 count =
            has_length ? build_kind(b, v[2].reg, KIND_I64) : build_int(b, KIND_I64, I32_MAX);
        if (reg_range(b, count).lo >= 0) {
            r.reg = build_safe(b, OP_SUBSTR_STR, a, from, count, range_none());
        } else {
            count = lower_guard(b, count, r.null, build_int(b, KIND_I64, 0));
            r.reg = build_op(b, OP_SUBSTR_STR, a, from, count, range_none());
        }
        break;
    }
    default: {
        u16 null = build_null_or(b, v[0].null, v[1].null);
        u16 regs[3] = {a, string_view(b, v[1].reg), NO_REG};
        union lit pattern;
        bool known = build_is_const(b, regs[1], &pattern) && pattern_is_whole(sv_of(pattern.str));
        bool nocase = expr->func == FUNC_ILIKE;
        u16 code =
            known ? (nocase ? OP_ILIKE_STR : OP_LIKE_STR) : (nocase ? OP_ILIKE_ANY : OP_LIKE_ANY);
        return lower_bool(b, lower_masked(b, code, regs, null, range_bool()), null);
    }
    }
    return r;
}

/* Years ascend with dates, so the bounds' years bound the years. */
static struct range year_range(struct builder *b, struct range dates) {
    union lit lo, hi, none;
    memset(&none, 0, sizeof none);
    lo = none;
    hi = none;
    union lit a = none;
    union lit c = none;
    a.i32 = (i32)dates.lo;
    c.i32 = (i32)dates.hi;
    a.i32 = MAX_OF(a.i32, -2440588); /* infinities have no year, and are taken care of */
    c.i32 = MIN_OF(c.i32, 2145042905);
    op_eval(OP_YEAR_I32, &lo, a, none, none, b->l->arena);
    op_eval(OP_YEAR_I32, &hi, c, none, none, b->l->arena);
    return lo.i32 <= hi.i32 ? range_exact(lo.i32, hi.i32) : range_exact(I32_MIN, I32_MAX);
}

static struct value lower_date_part(struct builder *b, const struct expr *expr, struct value v) {
    u16 code = expr->func == FUNC_YEAR    ? OP_YEAR_I32
                        : expr->func == FUNC_MONTH ? OP_MONTH_I32
                                                   : OP_DAY_I32;
    struct range r = expr->func == FUNC_YEAR ? year_range(b, reg_range(b, v.reg))
                                             : range_exact(1, expr->func == FUNC_MONTH ? 12 : 31);
    struct range dates = reg_range(b, v.reg);
    u16 date = build_kind(b, v.reg, KIND_I32);
    if (dates.lo <= I32_MIN || dates.hi >= I32_MAX) { /* an infinity has no fields */
        u16 finite = build_op(b, OP_FINITE_DATE, date, NO_REG, NO_REG, range_bool());
        v.null = build_null_or(b, v.null, build_not(b, finite));
    }
    v.reg = build_op(b, code, date, NO_REG, NO_REG, r);
    v.reg = lower_scale(b, v.reg, 0, type_scale(expr->type));
    return v;
}

struct value lower_call(struct builder *b, const struct expr *expr) {
    struct value v[3] = {{0, NO_REG}, {0, NO_REG}, {0, NO_REG}};
    bool compares = expr->func >= FUNC_EQ && expr->func <= FUNC_GE;
    if (compares && type_is_float(expr->args[0]->type) && compare_as_reals(b, expr, &v[0])) {
        return v[0];
    }
    for (i32 i = 0; i < expr->arg_count && i < 3; i++) {
        v[i] = lower_expr(b, expr->args[i]);
        if (!b->l->status && value_is_null(b, v[i])) {
            return lower_null(b, expr->type); /* strict */
        }
    }
    if (b->l->status) {
        return v[0];
    }
    if (scalar_infos[expr->func].args) {
        return lower_scalar(b, expr, v);
    }
    if (compares) {
        return lower_compare(b, expr->func, v[0], v[1], expr->args[0]->type,
                             expr->args[1]->type);
    }
    switch (expr->func) {
    case FUNC_ROUND:
    case FUNC_TRUNC:
        return lower_round(b, expr, v);
    case FUNC_FLOOR:
        return lower_floor(b, expr, v[0]);
    case FUNC_NOW:
        return lower_time(b, TIME_TRANSACTION);
    case FUNC_STATEMENT_TIME:
        return lower_time(b, TIME_STATEMENT);
    case FUNC_CLOCK_TIME:
        return lower_time(b, TIME_CLOCK);
    case FUNC_RANDOM:
    case FUNC_RANDOM_UUID:
        return lower_random(b, expr);
    case FUNC_TO_NUMBER:
        return lower_to_number(b, expr, v);
    case FUNC_ADD:
    case FUNC_SUB:
        if (expr->args[0]->type.id == TYPE_DATE) {
            return lower_dates(b, expr, v);
        }
        return lower_arith(b, expr, v[0], v[1]);
    case FUNC_MUL:
    case FUNC_DIV:
    case FUNC_MOD:
        return lower_arith(b, expr, v[0], v[1]);
    case FUNC_NEG:
        return lower_negate(b, expr, v[0]);
    case FUNC_ABS:
        return lower_abs(b, expr, v[0]);
    case FUNC_YEAR:
    case FUNC_MONTH:
    case FUNC_DAY:
        return lower_date_part(b, expr, v[0]);
    default:
        return lower_strings(b, expr, v);
    }
}
