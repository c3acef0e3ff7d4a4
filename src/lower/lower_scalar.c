/* lower_scalar.c: calls that are one opcode (WF_SCALARS), and those beside them that need a little
 * more: rounding of decimals, the statement's time, random numbers, TRY.
 *
 * Arguments go to the opcode's operand kinds; operands that are no arguments (the session's zone, a
 * scale) are literals. An opcode that may fault runs inside WHEN where an argument may be NULL, and
 * its result is read through a selection, so that a NULL never raises. */
#include "lower/lower_int.h"
#include "base/zone.h"
#include "codes/op.h"
#include "codes/scalar.h"
#include "host/to_char.h"
#include "defs/host_words.h"

#include "defs/fn_date.h"
#include "defs/fn_time.h"

static struct range full_range(enum kind kind) {
    switch (kind) {
    case KIND_B8:
        return range_bool();
    case KIND_I32:
        return range_exact(I32_MIN, I32_MAX);
    case KIND_I64:
        return range_exact(I64_MIN, I64_MAX);
    case KIND_I128:
        return range_exact(I128_MIN, I128_MAX);
    case KIND_F32:
        return range_of_type(type_of(TYPE_REAL));
    case KIND_F64:
        return range_of_type(type_of(TYPE_DOUBLE));
    default:
        return range_none();
    }
}

u16 lower_masked(struct builder *b, u16 code, const u16 *regs, u16 null,
                 struct range range) {
    bool faults = op_infos[code].flags & OP_FAULTS;
    if (b->l->status) {
        return 0;
    }
    if (!faults || null == NO_REG) {
        return build_op(b, code, regs[0], regs[1], regs[2], range);
    }
    u16 there = build_not(b, null);
    struct scope scope = build_when(b, there);
    u16 reg = build_op(b, code, regs[0], regs[1], regs[2], range);
    if (build_end(b, scope)) {
        u16 zero = lower_zero(b, reg_kind(b, reg));
        reg = build_sel(b, there, reg, zero);
    }
    return reg;
}

static u16 as_operand(struct builder *b, u16 reg, enum kind kind) {
    if (kind == KIND_STR) {
        return string_view(b, reg);
    }
    if (b->l->status || kind == KIND_F64 || kind == KIND_F32 || kind == KIND_B8) {
        return reg;
    }
    return build_kind(b, reg, kind);
}

/* A result in the kind its type's range asks for. */
static struct value finish(struct builder *b, u16 reg, u16 null, const struct expr *expr) {
    struct value v = {reg, null};
    enum kind kind = b->l->status ? KIND_B8 : reg_kind(b, reg);
    if (b->l->status) {
        return v;
    }
    if (kind == KIND_B8) {
        return lower_bool(b, reg, null);
    }
    bool whole = kind == KIND_I32 || kind == KIND_I64 || kind == KIND_I128;
    bool checked = expr->func == FUNC_GCD_I || expr->func == FUNC_LCM_I;
    if (checked) {
        v.reg = lower_check(b, reg, null, expr->type);
    } else if (expr->func == FUNC_SCALED && !build_is_const(b, reg, NULL)) {
        i128 beyond = pow10_i128(38);
        b->regs.items[reg].range = range_exact(-beyond, beyond);
    } else if (whole && !build_is_const(b, reg, NULL)) {
        b->regs.items[reg].range = range_cut(reg_range(b, reg), range_of_type(expr->type));
    }
    v.reg = whole ? build_kind(b, v.reg, range_kind(reg_range(b, v.reg))) : v.reg;
    return v;
}

u16 lower_local(struct builder *b, u16 reg, u16 null) {
    u16 regs[3] = {build_kind(b, reg, KIND_I64), build_i32(b, b->l->limits->zone), NO_REG};
    return lower_masked(b, OP_LOCAL_TS, regs, null, full_range(KIND_I64));
}

u16 lower_global(struct builder *b, u16 reg, u16 null) {
    u16 regs[3] = {build_kind(b, reg, KIND_I64), build_i32(b, b->l->limits->zone), NO_REG};
    return lower_masked(b, OP_GLOBAL_TS, regs, null, full_range(KIND_I64));
}

/* timestamptz + interval: months and days move the local time, the rest the moment. */
static u16 shift_in_zone(struct builder *b, u16 code, const u16 *args, u16 null) {
    u16 days[3] = {args[1], build_i32(b, FIELD_DAY), NO_REG};
    u16 first[3] = {0, 0, build_i32(b, 0)};
    days[0] = build_kind(b, args[1], KIND_I128);
    first[1] = lower_masked(b, OP_TRUNC_IV, days, null, full_range(KIND_I128));
    u16 rest[3] = {days[0], first[1], NO_REG};
    u8 fault = 0;
    u16 zero = build_int(b, KIND_I128, fn_iv(0, 0, 0, &fault));
    first[0] = lower_local(b, args[0], null);
    u16 moved = lower_masked(b, code, first, null, full_range(KIND_I64));
    u16 none = build_op(b, OP_EQ_I128, build_kind(b, first[1], KIND_I128), zero, NO_REG,
                        range_bool()); /* then the moment stays, also one that clocks show twice */
    u16 start = build_sel(b, none, build_kind(b, args[0], KIND_I64),
                          build_kind(b, lower_global(b, moved, null), KIND_I64));
    u16 last[3] = {start, lower_masked(b, OP_IV_SUB, rest, null, full_range(KIND_I128)), first[2]};
    return lower_masked(b, code, last, null, full_range(KIND_I64));
}

/* A function of the session's zone when that is a named one: it works on local time. */
static u16 in_named_zone(struct builder *b, const struct expr *expr, u16 *regs, u16 null) {
    const struct scalar_info *info = &scalar_infos[expr->func];
    const struct op_info *op = &op_infos[info->op];
    const struct expr *field = expr->arg_count > 1 ? expr->args[1] : NULL;
    bool epoch = expr->func == FUNC_PART_TSTZ && field->kind == EXPR_CONST &&
                 field->value.i32 == FIELD_EPOCH;
    bool fine =
        expr->func == FUNC_TRUNC_TSTZ && field->kind == EXPR_CONST && field->value.i32 < FIELD_DAY;
    if (info->op == OP_TS_ADD || info->op == OP_TS_SUB) {
        return shift_in_zone(b, info->op, regs, null);
    }
    u16 moment = regs[0];
    for (i32 i = 0; i < expr->arg_count && !epoch; i++) {
        if (expr->args[i]->type.id == TYPE_TIMESTAMPTZ) {
            regs[i] = lower_local(b, regs[i], null);
        }
    }
    regs[expr->arg_count] = build_i32(b, 0);
    u16 local = regs[0];
    u16 reg =
        lower_masked(b, info->op, regs, null, full_range((enum kind)op->result));
    if (fine && !b->l->status) { /* what is cut off is less than a change of the clocks */
        struct range all = full_range(KIND_I64);
        u16 cut = build_op(b, OP_SUB_I64, local, reg, NO_REG, all);
        return build_op(b, OP_SUB_I64, moment, cut, NO_REG, all);
    }
    return expr->type.id == TYPE_TIMESTAMPTZ ? lower_global(b, reg, null) : reg;
}

/* AT TIME ZONE: what is not a known offset may be a name. */
static u16 zone_code(struct builder *b, const struct expr *expr, u16 zone) {
    union lit lit;
    bool offset = build_is_const(b, zone, &lit) && lit.i32 < ZONE_OFFSETS;
    return offset                       ? scalar_infos[expr->func].op
           : expr->func == FUNC_ZONE_IN ? OP_GLOBAL_TS
                                        : OP_LOCAL_TS;
}

/* wf_finite of what is proven to be. */
static bool is_finite(const struct builder *b, const struct expr *expr, u16 reg) {
    bool date = expr->func == FUNC_ONLY_DATE;
    if (!date && expr->func != FUNC_ONLY_TS && expr->func != FUNC_ONLY_TSTZ) {
        return false;
    }
    struct range r = reg_range(b, reg);
    return r.lo > (date ? I32_MIN : I64_MIN) && r.hi < (date ? I32_MAX : I64_MAX);
}

struct value lower_scalar(struct builder *b, const struct expr *expr, const struct value *v) {
    const struct scalar_info *info = &scalar_infos[expr->func];
    if (is_finite(b, expr, v[0].reg)) {
        return v[0];
    }
    if (expr->func == FUNC_SCALED && !b->l->status) {
        i32 digits = expr->args[1]->value.i32;
        if (!lower_outgrows(b, v[0].reg, digits)) {
            return (struct value){lower_scale(b, v[0].reg, 0, digits), v[0].null};
        }
    }
    const struct op_info *op = &op_infos[info->op];
    u16 regs[3] = {NO_REG, NO_REG, NO_REG};
    u16 null = NO_REG;
    for (i32 i = 0; i < (i32)op->arity; i++) {
        const char *hidden = info->args + expr->arg_count;
        if (i < expr->arg_count) {
            regs[i] = as_operand(b, v[i].reg, (enum kind)op->operands[i]);
            null = build_null_or(b, null, v[i].null);
        } else {
            i32 zone = hidden[1] == '0' ? 0 : b->l->limits->zone;
            regs[i] = build_i32(b, *hidden == '#' ? expr->args[0]->type.scale : zone);
        }
    }
    const char *zone = strchr(info->args, '@');
    if (b->l->status) {
        return v[0];
    }
    if (zone && zone[1] != '0' && zone_is_named(b->l->limits->zone) &&
        info->op != OP_TO_TIMESTAMP && info->op != OP_TO_CHAR_TZ) { /* they look the zone up */
        return finish(b, in_named_zone(b, expr, regs, null), null, expr);
    }
    u16 code = expr->func == FUNC_ZONE_IN || expr->func == FUNC_ZONE_OUT
                            ? zone_code(b, expr, regs[1])
                            : info->op;
    union lit format;
    if (code == OP_TO_CHAR_TZ && build_is_const(b, regs[1], &format) &&
        !to_char_names_zone(format.str)) { /* then only the local time is written */
        code = OP_TO_CHAR_TS;
        regs[0] = b->l->limits->zone ? lower_local(b, regs[0], null) : regs[0];
        regs[2] = NO_REG;
    }
    u16 reg = lower_masked(b, code, regs, null, full_range((enum kind)op->result));
    return finish(b, reg, null, expr);
}

/* round and trunc of decimals */

/* The last `digits` (a register or, when that is NO_REG, the number) digits become zeros. */
static u16 zero_digits(struct builder *b, u16 reg, u16 digits, bool round) {
    struct range r = reg_range(b, reg);
    struct range wide = range_add(range_mul(r, range_exact(2, 2)), range_exact(-1, 1));
    wide = range_union(range_fits_i128(wide) ? wide : full_range(KIND_I128), range_exact(0, 0));
    return build_op(b, round ? OP_ROUND_AT : OP_TRUNC_AT, build_kind(b, reg, KIND_I128), digits,
                    NO_REG, round ? full_range(KIND_I128) : wide);
}

struct value lower_round(struct builder *b, const struct expr *expr, const struct value *v) {
    bool round = expr->func == FUNC_ROUND;
    i32 from = expr->args[0]->type.scale;
    i32 to = expr->type.scale;
    const struct expr *digits = expr->args[1];
    struct value r = {v[0].reg, build_null_or(b, v[0].null, v[1].null)};
    if (b->l->status) {
        return r;
    }
    if (digits->kind == EXPR_CONST && digits->value.i32 >= 0) {
        i32 n = MIN_OF(digits->value.i32, to);
        if (n >= from) {
            r.reg = lower_scale(b, r.reg, from, n);
        } else {
            r.reg = lower_divide(b, r.reg, MIN_OF(from - n, 38), round);
        }
        r.reg = lower_scale(b, r.reg, MAX_OF(n, MIN_OF(from, n)), to);
    } else if (digits->kind == EXPR_CONST) {
        i32 n = MAX_OF(digits->value.i32, -100); /* beyond 38 nothing is left */
        r.reg = zero_digits(b, r.reg, build_i32(b, from - n), round);
        r.reg = lower_divide(b, r.reg, from, false);
    } else {
        u16 place = lower_sub_exact(b, build_i32(b, from), v[1].reg);
        struct range small = range_exact(-100, 100);
        u16 low = build_kind(b, build_int(b, KIND_I64, -100), KIND_I64);
        u16 wide = build_kind(b, place, KIND_I64);
        u16 over = build_op(b, OP_GT_I64, wide, build_int(b, KIND_I64, 100), NO_REG, range_bool());
        u16 under = build_op(b, OP_LT_I64, wide, low, NO_REG, range_bool());
        wide = build_sel(b, over, build_int(b, KIND_I64, 100), wide);
        wide = build_sel(b, under, low, wide);
        if (!b->l->status && !build_is_const(b, wide, NULL)) {
            b->regs.items[wide].range = small;
        }
        r.reg = zero_digits(b, r.reg, build_kind(b, wide, KIND_I32), round);
    }
    r.reg = lower_check(b, r.reg, r.null, expr->type);
    return r;
}

struct value lower_floor(struct builder *b, const struct expr *expr, struct value v) {
    i32 scale = expr->args[0]->type.scale;
    i128 power = pow10_i128(scale);
    struct range r = reg_range(b, v.reg);
    struct range q = range_exact(r.lo / power - 1, r.hi / power);
    if (scale > 0) {
        v.reg = build_op(b, OP_FLOOR_I128, build_kind(b, v.reg, KIND_I128),
                         build_int(b, KIND_I128, power), NO_REG, q);
        v.reg = build_kind(b, v.reg, range_kind(q));
    }
    return v;
}

/* values an execution brings: times, a seed */

static u16 special(struct builder *b, u32 *slot) {
    if (*slot == 0) {
        union lit none;
        memset(&none, 0, sizeof none);
        *slot = lower_lit_new(b->l, KIND_I64, none) + 1;
    }
    return build_param(b, *slot - 1, KIND_I64, range_exact(I64_MIN, I64_MAX));
}

struct value lower_time(struct builder *b, enum exec_time time) {
    struct value v = {special(b, &b->l->program->time_lits[time]), NO_REG};
    return v;
}

struct value lower_random(struct builder *b, const struct expr *expr) {
    struct op rowno = {.code = OP_ROWNO, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    u16 seed = special(b, &b->l->program->seed_lit);
    u16 row = build_ctl(b, rowno, KIND_I64, range_exact(0, I64_MAX), 0);
    u16 call = build_i32(b, expr->args[0]->value.i32);
    bool uuid = expr->func == FUNC_RANDOM_UUID;
    struct range r = uuid ? full_range(KIND_I128) : range_float(1, -53, false);
    struct value v = {build_op(b, uuid ? OP_RANDOM_UUID : OP_RANDOM, seed, row, call, r), NO_REG};
    return v;
}

/* What was computed since `scope` began, NULL where that failed. */
static struct value lower_tried(struct builder *b, struct scope scope, struct value v) {
    u16 failed = build_try_end(b, scope);
    if (b->l->status || failed == NO_REG) {
        return v;
    }
    u16 zero = reg_dict(b, v.reg) ? build_i32(b, 0) : lower_zero(b, reg_kind(b, v.reg));
    v.reg = build_sel(b, failed, zero, v.reg);
    v.null = build_null_or(b, v.null, failed);
    return reg_kind(b, v.reg) == KIND_B8 ? lower_bool(b, v.reg, v.null) : v;
}

struct value lower_try(struct builder *b, const struct expr *expr) {
    const struct expr *cast = expr->args[0];
    struct value v = lower_expr(b, cast->args[0]);
    struct scope scope = build_try(b);
    return lower_tried(b, scope, lower_cast(b, v, cast->args[0]->type, cast->type));
}

struct value lower_defined(struct builder *b, const struct expr *expr) {
    struct scope scope = build_try(b);
    return lower_tried(b, scope, lower_expr(b, expr->args[0]));
}

struct value lower_to_number(struct builder *b, const struct expr *expr, const struct value *v) {
    u16 regs[3] = {string_view(b, v[0].reg), string_view(b, v[1].reg),
                   build_i32(b, expr->type.scale)};
    struct value r = {0, build_null_or(b, v[0].null, v[1].null)};
    r.reg = lower_masked(b, OP_TO_NUMBER, regs, r.null, range_of_type(type_decimal(38, 0)));
    r.reg = lower_check(b, r.reg, r.null, expr->type);
    return r;
}

/* date + days, date - days, date - date */

struct value lower_dates(struct builder *b, const struct expr *expr, const struct value *v) {
    struct value r = {0, build_null_or(b, v[0].null, v[1].null)};
    struct range finite = range_exact(-2440588, 2145042905);
    struct range x = reg_range(b, v[0].reg);
    struct range y = reg_range(b, v[1].reg);
    bool minus = expr->func == FUNC_SUB;
    bool gap = expr->args[1]->type.id == TYPE_DATE;
    struct range sum = minus ? range_sub(x, y) : range_add(x, y);
    bool plain = range_within(x, finite) && range_within(gap ? y : sum, finite);
    if (plain) {
        r.reg =
            minus ? lower_sub_exact(b, v[0].reg, v[1].reg) : lower_add_exact(b, v[0].reg, v[1].reg);
        r.reg = build_kind(b, r.reg, KIND_I32);
        return r;
    }
    u16 days = build_kind(b, v[1].reg, gap ? KIND_I32 : KIND_I64);
    if (!gap && minus) {
        days = lower_sub_exact(b, build_int(b, KIND_I64, 0), days);
        days = build_kind(b, days, KIND_I64);
    }
    u16 regs[3] = {build_kind(b, v[0].reg, KIND_I32), days, NO_REG};
    r.reg = lower_masked(b, gap ? OP_DATE_GAP : OP_DATE_SHIFT, regs, r.null, full_range(KIND_I32));
    return r;
}
