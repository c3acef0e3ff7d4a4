/* cast.c: casts between all supported types, with PostgreSQL's rounding and errors.
 *
 * Decimal to integer and to fewer digits rounds half away from zero; float to integer half to even;
 * every narrowing is checked unless the range proves it. A decimal becomes a float by one correctly
 * rounded division where numerator and power of ten are exact, else through its text. */
#include "lower/lower_int.h"
#include "base/zone.h"
#include "codes/func.h"
#include "codes/op.h"
#include "defs/value.h"

static u16 op1(struct builder *b, u16 code, u16 a, struct range r) {
    return build_op(b, code, a, NO_REG, NO_REG, r);
}

static u16 rescale(struct builder *b, u16 reg, u16 null, i32 from, i32 to) {
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
    return lower_divide(b, reg, from - to, true);
}

static u16 exact_to_exact(struct builder *b, struct value v, struct type from, struct type to) {
    u16 reg = rescale(b, v.reg, v.null, type_scale(from), type_scale(to));
    return lower_check(b, reg, v.null, to);
}

static u16 format_exact(struct builder *b, u16 reg, struct type from) {
    if (from.id == TYPE_DECIMAL) {
        return build_op(b, OP_FORMAT_DEC, build_kind(b, reg, KIND_I128), build_i32(b, from.scale),
                        NO_REG, range_none());
    }
    return op1(b, OP_FORMAT_I64, build_kind(b, reg, KIND_I64), range_none());
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
    i32 scale = type_scale(from);
    if (scale == 0) {
        return int_to_float(b, v.reg, kind);
    }
    i128 exact = (i128)1 << (kind == KIND_F32 ? 24 : 53);
    i32 most_scale = kind == KIND_F32 ? 10 : 22; /* larger powers of ten are not exact */
    struct range r =
        range_float((f64)range_abs(reg_range(b, v.reg)), kind == KIND_F32 ? -149 : -1074, false);
    if (range_abs(reg_range(b, v.reg)) <= exact && scale <= most_scale) {
        u16 divisor = build_float(b, kind, (f64)pow10_i128(scale));
        u16 code = kind == KIND_F32 ? OP_DIV_F32 : OP_DIV_F64;
        return build_safe(b, code, int_to_float(b, v.reg, kind), divisor, NO_REG, r);
    }
    u16 text = format_exact(b, v.reg, from);
    return build_safe(b, kind == KIND_F32 ? OP_PARSE_F32 : OP_PARSE_F64, text, NO_REG, NO_REG, r);
}

static u16 float_to_exact(struct builder *b, struct value v, struct type to) {
    enum kind kind = reg_kind(b, v.reg);
    u16 safe = lower_guard(b, v.reg, v.null, build_float(b, kind, 0));
    if (to.id == TYPE_DECIMAL) {
        u16 code = kind == KIND_F32 ? OP_DEC_F32 : OP_DEC_F64;
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
    u16 code = kind == KIND_F32 ? OP_I64_F32 : OP_I64_F64;
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
    u16 safe = lower_guard(b, v.reg, v.null, build_float(b, KIND_F64, 0));
    if (!r.may_special && r.abs_max < 3.4e38 && r.lsb >= -149) {
        return build_safe(b, OP_F32_F64, v.reg, NO_REG, NO_REG, out);
    }
    return op1(b, OP_F32_F64, safe, out);
}

/* The digits of a second a type keeps, as microseconds; 0 = all. */
static i64 kept_us(struct type t) {
    i64 unit = 1;
    for (i32 digits = t.precision - 1; t.precision && digits < 6; digits++) {
        unit *= 10;
    }
    return unit > 1 ? unit : 0;
}

/* To the fields and digits that a type keeps. */
static u16 round_us(struct builder *b, u16 reg, u16 null, struct type to) {
    if (to.id == TYPE_INTERVAL && interval_last(to) >= 0 && !b->l->status) {
        u16 regs[3] = {build_kind(b, reg, KIND_I128), build_i32(b, interval_last(to)), NO_REG};
        reg = lower_masked(b, OP_TRUNC_IV, regs, null, range_of_type(to));
    }
    i64 unit = type_category(to) == 'D' || type_category(to) == 'T' ? kept_us(to) : 0;
    if (!unit || b->l->status) {
        return reg;
    }
    bool interval = to.id == TYPE_INTERVAL;
    u16 regs[3] = {build_kind(b, reg, interval ? KIND_I128 : KIND_I64),
                   build_int(b, KIND_I64, unit), NO_REG};
    return lower_masked(b, interval ? OP_ROUND_IV : OP_ROUND_US, regs, null, range_of_type(to));
}

/* Opcodes that read and write the text of a type; decimals and integers have a second operand or a
 * check of their own. */
static const struct {
    u16 parse, format;
} text_ops[TYPE_COUNT] = {
    [TYPE_BOOLEAN] = {OP_PARSE_BOOL, OP_FORMAT_BOOL},
    [TYPE_REAL] = {OP_PARSE_F32, OP_FORMAT_F32},
    [TYPE_DOUBLE] = {OP_PARSE_F64, OP_FORMAT_F64},
    [TYPE_DATE] = {OP_PARSE_DATE, OP_FORMAT_DATE},
    [TYPE_TIMESTAMP] = {OP_PARSE_TS, OP_FORMAT_TS},
    [TYPE_TIMESTAMPTZ] = {OP_PARSE_TSTZ, OP_FORMAT_TSTZ},
    [TYPE_TIME] = {OP_PARSE_TIME, OP_FORMAT_TIME},
    [TYPE_INTERVAL] = {OP_PARSE_IV, OP_FORMAT_IV},
    [TYPE_UUID] = {OP_PARSE_UUID, OP_FORMAT_UUID},
    [TYPE_BLOB] = {OP_PARSE_BYTES, OP_FORMAT_BYTES},
};

static u16 text_to(struct builder *b, struct value v, struct type to) {
    u16 regs[3] = {string_view(b, v.reg), NO_REG, NO_REG};
    u16 code = text_ops[to.id].parse;
    struct range all = range_of_type(to);
    if (to.id == TYPE_DECIMAL) {
        regs[1] = build_i32(b, to.scale);
        u16 reg = lower_masked(b, OP_PARSE_DEC, regs, v.null, range_of_type(type_decimal(38, 0)));
        return lower_check(b, reg, v.null, to);
    }
    if (type_is_integer(to)) {
        u16 reg = lower_masked(b, OP_PARSE_INT, regs, v.null, range_exact(I64_MIN, I64_MAX));
        return lower_check(b, reg, v.null, to);
    }
    if (to.id == TYPE_INTERVAL) { /* fields are those of a literal; a text is only cut by them */
        regs[1] = build_i32(b, 0);
    } else if (op_infos[code].arity == 3) { /* constants that name no clock stay constants */
        union lit text;
        bool fixed = build_is_const(b, regs[0], &text) && !value_names_clock(sv_of(text.str));
        regs[1] = build_i32(b, b->l->limits->zone);
        regs[2] = fixed ? build_int(b, KIND_I64, 0) : lower_time(b, TIME_TRANSACTION).reg;
    }
    all = to.id == TYPE_BOOLEAN ? range_bool() : all;
    return round_us(b, lower_masked(b, code, regs, v.null, all), v.null, to);
}

static u16 to_text(struct builder *b, struct value v, struct type from) {
    if (type_is_exact(from)) {
        return format_exact(b, v.reg, from);
    }
    u16 code = text_ops[from.id].format;
    enum kind kind = (enum kind)op_infos[code].operands[0];
    bool whole = type_is_whole(from);
    u16 regs[3] = {whole              ? build_kind(b, v.reg, kind)
                   : kind == KIND_STR ? string_view(b, v.reg)
                                      : v.reg,
                   NO_REG, NO_REG};
    if (from.id == TYPE_TIMESTAMPTZ) {
        regs[1] = build_i32(b, b->l->limits->zone);
    }
    return lower_masked(b, code, regs, v.null, range_none());
}

/* Between dates and times: the opcode, and whether it takes the session's zone. */
static const struct {
    u8 from, to;
    u16 op;
    b8 zone;
} time_casts[] = {
    {TYPE_DATE, TYPE_TIMESTAMP, OP_TS_DATE, 0},
    {TYPE_DATE, TYPE_TIMESTAMPTZ, OP_TS_DATE, 1},
    {TYPE_TIMESTAMP, TYPE_DATE, OP_DATE_TS, 0},
    {TYPE_TIMESTAMPTZ, TYPE_DATE, OP_DATE_TS, 1},
    {TYPE_TIMESTAMP, TYPE_TIME, OP_TIME_TS, 0},
    {TYPE_TIMESTAMPTZ, TYPE_TIME, OP_TIME_TS, 1},
    {TYPE_TIMESTAMP, TYPE_TIMESTAMPTZ, OP_UNZONE_TS, 1},
    {TYPE_TIMESTAMPTZ, TYPE_TIMESTAMP, OP_ZONE_TS, 1},
    {TYPE_TIME, TYPE_INTERVAL, OP_IV_TIME, 0},
    {TYPE_INTERVAL, TYPE_TIME, OP_TIME_IV, 0},
};

static bool time_cast(struct builder *b, struct value v, struct type from, struct type to,
                      struct value *out) {
    for (i64 i = 0; i < COUNT_OF(time_casts); i++) {
        if (time_casts[i].from != from.id || time_casts[i].to != to.id) {
            continue;
        }
        const struct op_info *op = &op_infos[time_casts[i].op];
        u16 regs[3] = {build_kind(b, v.reg, (enum kind)op->operands[0]), NO_REG, NO_REG};
        bool named = time_casts[i].zone && zone_is_named(b->l->limits->zone);
        if (op->arity > 1) {
            regs[1] = build_i32(b, time_casts[i].zone && !named ? b->l->limits->zone : 0);
        }
        if (named && from.id == TYPE_TIMESTAMPTZ) {
            regs[0] = lower_local(b, regs[0], v.null);
        }
        if (time_casts[i].op == OP_TIME_TS) { /* an infinity has no time of day */
            u16 finite = build_op(b, OP_FINITE_TS, regs[0], NO_REG, NO_REG, range_bool());
            finite = build_not(b, finite);
            out->null = v.null =
                build_is_bool(b, finite, false) ? v.null : build_null_or(b, v.null, finite);
        }
        bool global = named && to.id == TYPE_TIMESTAMPTZ;
        out->reg = lower_masked(b, time_casts[i].op, regs, v.null,
                                range_of_type(global ? type_of(TYPE_TIMESTAMP) : to));
        out->reg = global ? lower_global(b, out->reg, v.null) : out->reg;
        out->reg = round_us(b, out->reg, v.null, to);
        return true;
    }
    return false;
}

/* varchar(n): a cast cuts to n characters without complaint. */
static u16 cut_text(struct builder *b, u16 reg, struct type to) {
    if (to.length) {
        reg = build_safe(b, OP_SUBSTR_STR, string_view(b, reg), build_int(b, KIND_I64, 1),
                         build_int(b, KIND_I64, to.length), range_none());
    }
    return to.id == TYPE_CHAR
               ? build_op(b, OP_UNPAD_STR, string_view(b, reg), NO_REG, NO_REG, range_none())
               : reg;
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
    bool from_text = type_is_string(from) || from.id == TYPE_UNKNOWN;
    bool to_string = type_is_string(to);
    struct value r = {v.reg, v.null};
    if (from_text && to_string) {
        bool cuts = (to.length && to.length != from.length) || to.id == TYPE_CHAR;
        r.reg = cuts && !(from.id == to.id && to.length == 0) ? cut_text(b, v.reg, to) : v.reg;
    } else if (to_string) {
        r.reg = cut_text(b, to_text(b, v, from), to);
    } else if (from_text) {
        r.reg = text_to(b, v, to);
        r = to.id == TYPE_BOOLEAN ? lower_bool(b, r.reg, r.null) : r;
    } else if (from.id == to.id && from.id != TYPE_DECIMAL) {
        r.reg = round_us(b, v.reg, v.null, to);
    } else if (time_cast(b, v, from, to, &r)) {
        return r;
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
