/* cast.c: casts between all supported types, with PostgreSQL's rounding and errors.
 *
 * Decimal to integer and to fewer digits rounds half away from zero; float to integer half to even;
 * every narrowing is checked unless the range proves it. A decimal becomes a float by one correctly
 * rounded division where numerator and power of ten are exact, else through its text. */
#include "lower/lower_int.h"

static i32 scale_of(struct type t) {
    return t.id == TYPE_DECIMAL ? t.scale : 0;
}

static u16 op1(struct builder *b, enum op_code code, u16 a, struct range r) {
    return build_op(b, code, a, NO_REG, NO_REG, r);
}

static u16 rescale(struct builder *b, u16 reg, u16 null, i32 from, i32 to) {
    static const u16 codes[KIND_COUNT] = {
        [KIND_I32] = OP_ROUNDDIV_I32, [KIND_I64] = OP_ROUNDDIV_I64, [KIND_I128] = OP_ROUNDDIV_I128};
    struct range r = reg_range(b, reg);
    if (to > from) {
        i128 power = pow10_i128(to - from);
        if (range_fits_i128(range_mul(r, range_exact(power, power)))) {
            return lower_scale(b, reg, from, to);
        }
        u16 wide = build_kind(b, reg, KIND_I128);
        u16 safe = lower_guard(b, wide, null, build_int(b, KIND_I128, 0));
        return build_op(b, OP_MULX_I128, safe, build_int(b, KIND_I128, power), NO_REG,
                        range_of_type(type_decimal(38, 0)));
    }
    if (to == from) {
        return reg;
    }
    i128 power = pow10_i128(from - to);
    struct range q = range_exact(r.lo / power - 1, r.hi / power + 1);
    enum kind kind = kind_wider(reg_kind(b, reg), range_kind(range_exact(power, power)));
    reg = build_op(b, (enum op_code)codes[kind], build_kind(b, reg, kind),
                   build_int(b, kind, power), NO_REG, q);
    return build_kind(b, reg, range_kind(q));
}

static u16 exact_to_exact(struct builder *b, struct value v, struct type from, struct type to) {
    u16 reg = rescale(b, v.reg, v.null, scale_of(from), scale_of(to));
    return lower_check(b, reg, v.null, to);
}

static u16 format_exact(struct builder *b, u16 reg, struct type from) {
    if (from.id == TYPE_DECIMAL) {
        return build_op(b, OP_FORMAT_DEC, build_kind(b, reg, KIND_I128), build_i32(b, from.scale),
                        NO_REG, range_none());
    }
    return op1(b, OP_FORMAT_I64, build_kind(b, reg, KIND_I64), range_none());
}

static u16 float_lit(struct builder *b, enum kind kind, f64 value) {
    union lit lit;
    memset(&lit, 0, sizeof lit);
    if (kind == KIND_F32) {
        lit.f32 = (f32)value;
    } else {
        lit.f64 = value;
    }
    return build_lit(b, kind, lit, range_none());
}

static u16 int_to_float(struct builder *b, u16 reg, enum kind kind) {
    enum kind from = reg_kind(b, reg);
    f64 most = (f64)range_abs(reg_range(b, reg));
    struct range r = range_float(most * (1 + 1e-6), 0, false);
    if (kind == KIND_F32 && from != KIND_I128) {
        return op1(b, from == KIND_I32 ? OP_F32_I32 : OP_F32_I64, reg, r);
    }
    if (kind == KIND_F32) {
        u16 text = format_exact(b, reg, type_decimal(38, 0));
        return build_safe(b, OP_PARSE_F32, text, NO_REG, NO_REG, r);
    }
    return op1(b,
               from == KIND_I32   ? OP_F64_I32
               : from == KIND_I64 ? OP_F64_I64
                                  : OP_F64_I128,
               reg, r);
}

static u16 exact_to_float(struct builder *b, struct value v, struct type from, enum kind kind) {
    i32 scale = scale_of(from);
    if (scale == 0) {
        return int_to_float(b, v.reg, kind);
    }
    i128 exact = (i128)1 << (kind == KIND_F32 ? 24 : 53);
    i32 most_scale = kind == KIND_F32 ? 10 : 22; /* larger powers of ten are not exact */
    struct range r =
        range_float((f64)range_abs(reg_range(b, v.reg)), kind == KIND_F32 ? -149 : -1074, false);
    if (range_abs(reg_range(b, v.reg)) <= exact && scale <= most_scale) {
        u16 divisor = float_lit(b, kind, (f64)pow10_i128(scale));
        enum op_code code = kind == KIND_F32 ? OP_DIV_F32 : OP_DIV_F64;
        return build_safe(b, code, int_to_float(b, v.reg, kind), divisor, NO_REG, r);
    }
    u16 text = format_exact(b, v.reg, from);
    return build_safe(b, kind == KIND_F32 ? OP_PARSE_F32 : OP_PARSE_F64, text, NO_REG, NO_REG, r);
}

static u16 float_to_exact(struct builder *b, struct value v, struct type to) {
    enum kind kind = reg_kind(b, v.reg);
    u16 safe = lower_guard(b, v.reg, v.null, float_lit(b, kind, 0));
    if (to.id == TYPE_DECIMAL) {
        enum op_code code = kind == KIND_F32 ? OP_DEC_F32 : OP_DEC_F64;
        u16 reg = build_op(b, code, safe, build_i32(b, to.scale), NO_REG,
                           range_of_type(type_decimal(38, 0)));
        return lower_check(b, reg, v.null, to);
    }
    struct range r = reg_range(b, v.reg);
    struct range all = range_exact(I64_MIN, I64_MAX);
    bool proven = !r.may_special && r.abs_max < 9e18;
    if (proven) {
        all = range_exact(-(i128)r.abs_max - 1, (i128)r.abs_max + 1);
    }
    enum op_code code = kind == KIND_F32 ? OP_I64_F32 : OP_I64_F64;
    u16 reg = proven ? build_safe(b, code, safe, NO_REG, NO_REG, all) : op1(b, code, safe, all);
    reg = build_kind(b, reg, range_kind(all));
    return lower_check(b, reg, v.null, to);
}

static u16 float_to_float(struct builder *b, struct value v, enum kind kind) {
    struct range r = reg_range(b, v.reg);
    if (reg_kind(b, v.reg) == kind) {
        return v.reg;
    }
    if (kind == KIND_F64) {
        return op1(b, OP_F64_F32, v.reg, r);
    }
    struct range out = range_float(r.abs_max * (1 + 1e-6), -149, r.may_special);
    out.abs_max = MIN_OF(out.abs_max, 3.4028234663852886e38);
    u16 safe = lower_guard(b, v.reg, v.null, float_lit(b, KIND_F64, 0));
    if (!r.may_special && r.abs_max < 3.4e38 && r.lsb >= -149) {
        return build_safe(b, OP_F32_F64, v.reg, NO_REG, NO_REG, out);
    }
    return op1(b, OP_F32_F64, safe, out);
}

static u16 text_to(struct builder *b, struct value v, struct type to) {
    u16 s = string_view(b, v.reg);
    struct range all = range_of_type(to);
    struct sv safe = to.id == TYPE_BOOLEAN ? SV("f")
                     : to.id == TYPE_DATE  ? SV("2000-01-01")
                                           : SV("0");
    s = lower_guard(b, s, v.null, build_str(b, safe));
    switch (to.id) {
    case TYPE_BOOLEAN:
        return op1(b, OP_PARSE_BOOL, s, range_bool());
    case TYPE_DATE:
        return op1(b, OP_PARSE_DATE, s, all);
    case TYPE_REAL:
        return op1(b, OP_PARSE_F32, s, all);
    case TYPE_DOUBLE:
        return op1(b, OP_PARSE_F64, s, all);
    case TYPE_DECIMAL: {
        u16 reg = build_op(b, OP_PARSE_DEC, s, build_i32(b, to.scale), NO_REG,
                           range_of_type(type_decimal(38, 0)));
        return lower_check(b, reg, v.null, to);
    }
    default: {
        u16 reg = op1(b, OP_PARSE_INT, s, range_exact(I64_MIN, I64_MAX));
        return lower_check(b, reg, v.null, to);
    }
    }
}

static u16 to_text(struct builder *b, struct value v, struct type from) {
    switch (from.id) {
    case TYPE_BOOLEAN:
        return op1(b, OP_FORMAT_BOOL, v.reg, range_none());
    case TYPE_DATE:
        return op1(b, OP_FORMAT_DATE, build_kind(b, v.reg, KIND_I32), range_none());
    case TYPE_REAL:
        return op1(b, OP_FORMAT_F32, v.reg, range_none());
    case TYPE_DOUBLE:
        return op1(b, OP_FORMAT_F64, v.reg, range_none());
    default:
        return format_exact(b, v.reg, from);
    }
}

/* varchar(n): a cast cuts to n characters without complaint. */
static u16 cut_text(struct builder *b, u16 reg, struct type to) {
    if (to.length == 0) {
        return reg;
    }
    return build_safe(b, OP_SUBSTR_STR, string_view(b, reg), build_int(b, KIND_I64, 1),
                      build_int(b, KIND_I64, to.length), range_none());
}

static struct value bool_cast(struct builder *b, struct value v, struct type from, struct type to) {
    if (from.id == TYPE_BOOLEAN) {
        struct value r = {build_op(b, OP_I32_B8, v.reg, NO_REG, NO_REG, range_bool()), v.null};
        return r;
    }
    UNUSED(to);
    struct value zero = {build_int(b, KIND_I32, 0), NO_REG};
    struct value r = lower_compare(b, FUNC_NE, v, zero, from, from);
    return r;
}

struct value lower_cast(struct builder *b, struct value v, struct type from, struct type to) {
    if (b->l->status) {
        return v;
    }
    if (value_is_null(b, v)) {
        return lower_null(b, to);
    }
    bool from_text = type_kind(from) == KIND_STR;
    bool to_string = type_kind(to) == KIND_STR;
    struct value r = {v.reg, v.null};
    if (from_text && to_string) {
        r.reg = to.length && to.length != from.length ? cut_text(b, v.reg, to) : v.reg;
    } else if (to_string) {
        r.reg = cut_text(b, to_text(b, v, from), to);
    } else if (from_text) {
        r.reg = text_to(b, v, to);
        r = to.id == TYPE_BOOLEAN ? lower_bool(b, r.reg, r.null) : r;
    } else if (from.id == to.id && from.id != TYPE_DECIMAL) {
        return v;
    } else if (from.id == TYPE_BOOLEAN || to.id == TYPE_BOOLEAN) {
        return bool_cast(b, v, from, to);
    } else if (type_is_exact(from) && type_is_exact(to)) {
        r.reg = exact_to_exact(b, v, from, to);
    } else if (type_is_exact(from) && type_is_float(to)) {
        r.reg = exact_to_float(b, v, from, type_kind(to));
    } else if (type_is_float(from) && type_is_exact(to)) {
        r.reg = float_to_exact(b, v, to);
    } else if (type_is_float(from) && type_is_float(to)) {
        r.reg = float_to_float(b, v, type_kind(to));
    } else {
        char x[32];
        char y[32];
        lower_fail(b->l, ERR_CANNOT_COERCE, b->position, "cannot cast %s to %s",
                   type_print(from, x), type_print(to, y));
    }
    return r;
}
