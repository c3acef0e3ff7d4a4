/* aggregate.c: grouping and aggregates as words, and the expressions that finish them.
 *
 * The input pipeline ends in a sink that keeps a row of 64-bit words per key; each word is added
 * to, or takes the least or greatest. A second pipeline over the finished groups unpacks the key
 * and turns words into the aggregates' values. A sum takes as few words as the bounds of the value
 * and of the row count allow: one where they prove that 63 bits suffice, else parts of 32 or 16
 * bits that are put together at the end. Floats are split into fixed-point limbs, so that their sum
 * is exact and rounded once. Words with the same input are shared between aggregates. */
#include <math.h>

#include "lower/lower_int.h"

enum { NO_WORD = -1 };

struct part {
    i32 word;
    i32 shift; /* its weight is 2^shift */
};

struct call_state {
    const struct agg_call *call;
    struct value arg;
    struct type arg_type;
    struct type type; /* of the result */
    VEC(struct part) parts;
    i32 spacing;    /* float limbs: bits between words */
    i32 lsb;        /* float limbs: weight of the lowest */
    i32 count_word; /* non-NULL inputs */
    i32 nan_word;   /* floats that may be special */
    i32 plus_word, minus_word;
    bool may_be_null;
    struct range range; /* of the inputs */
    u32 dict;           /* min, max of text */
    struct ranks ranks;
};

struct agg_state {
    struct lower *l;
    const struct rel *rel;
    struct builder *b;
    VEC(u8) words;
    VEC(u16) regs;
    i32 row_bits; /* 2^row_bits bounds the number of rows */
    struct key_layout layout;
    struct value *keys;
    i32 key_count;
    struct call_state *calls;
};

static i32 add_word(struct agg_state *s, enum word_op op, u16 reg) {
    for (i64 i = 0; i < s->words.count; i++) {
        if (s->words.items[i] == (u8)op && s->regs.items[i] == reg) {
            return (i32)i;
        }
    }
    u8 op_byte = (u8)op;
    VEC_PUSH(s->l->arena, &s->words, op_byte);
    VEC_PUSH(s->l->arena, &s->regs, reg);
    return (i32)(s->words.count - 1);
}

static i32 bits_of_rows(i64 rows) {
    i32 bits = 0;
    while (bits < 40 && (i64)1 << bits < rows) {
        bits++;
    }
    return bits;
}

/* splitting */

static void add_part(struct agg_state *s, struct call_state *c, u16 reg, i32 shift) {
    struct part part = {add_word(s, WORD_ADD, build_kind(s->b, reg, KIND_I64)), shift};
    VEC_PUSH(s->l->arena, &c->parts, part);
}

/* Adds words for a register of magnitude below 2^bits whose weight is 2^shift. */
static void split_sum(struct agg_state *s, struct call_state *c, u16 reg, i32 bits, i32 shift) {
    struct builder *b = s->b;
    if (s->l->status || bits + s->row_bits <= 63) {
        add_part(s, c, reg, shift);
        return;
    }
    reg = build_kind(b, reg, KIND_I64);
    bool wide = bits > 32;
    struct range low = range_exact(0, ((i128)1 << (wide ? 32 : 16)) - 1);
    u16 l;
    u16 h;
    if (wide) {
        l = build_op(b, OP_LOW_I64, reg, NO_REG, NO_REG, low);
        h = build_op(b, OP_HIGH_I64, reg, NO_REG, NO_REG, range_exact(I32_MIN, I32_MAX));
    } else {
        l = build_op(b, OP_BITAND_I64, reg, build_int(b, KIND_I64, 0xffff), NO_REG, low);
        h = build_op(b, OP_SHL_I64, reg, build_int(b, KIND_I64, 16), NO_REG,
                     range_exact(I64_MIN, I64_MAX));
        h = build_op(b, OP_HIGH_I64, h, NO_REG, NO_REG, range_exact(-0x20000, 0x20000));
    }
    i32 step = wide ? 32 : 16;
    split_sum(s, c, l, step, shift);
    split_sum(s, c, h, bits - step, shift + step);
}

/* A 128-bit value as quotient and remainder by 2^64, each of which is then split. */
static void split_wide(struct agg_state *s, struct call_state *c, u16 reg) {
    struct builder *b = s->b;
    u16 two64 = build_int(b, KIND_I128, (i128)1 << 64);
    struct range q_range = range_exact(-((i128)1 << 63), ((i128)1 << 63) - 1);
    u16 q = build_safe(b, OP_DIV_I128, reg, two64, NO_REG, q_range);
    u16 r =
        build_op(b, OP_SUB_I128, reg, build_op(b, OP_MUL_I128, q, two64, NO_REG, reg_range(b, reg)),
                 NO_REG, range_exact(-((i128)1 << 64), (i128)1 << 64));
    struct range low = range_exact(0, ((i128)1 << 32) - 1);
    u16 r_low = build_op(b, OP_LOW_I128, r, NO_REG, NO_REG, low);
    u16 r_high =
        build_op(b, OP_HIGH_I128, r, NO_REG, NO_REG, range_exact(-((i128)1 << 32), (i128)1 << 32));
    split_sum(s, c, r_low, 32, 0);
    split_sum(s, c, r_high, 33, 32);
    split_sum(s, c, build_kind(b, q, KIND_I64), 63, 64);
}

static i32 magnitude_bits(struct range r) {
    i128 most = range_abs(r);
    i32 bits = 0;
    while (bits < 127 && most >> bits != 0) {
        bits++;
    }
    return bits;
}

static void exact_sum(struct agg_state *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 reg = c->arg.reg;
    reg = lower_guard(b, reg, c->arg.null, build_int(b, reg_kind(b, reg), 0));
    c->range = reg_range(b, reg);
    i32 bits = magnitude_bits(c->range);
    if (reg_kind(b, reg) == KIND_I128 && bits > 63) {
        split_wide(s, c, reg);
    } else {
        split_sum(s, c, build_kind(b, reg, KIND_I64), bits, 0);
    }
}

/* floats */

static u16 float_flag(struct builder *b, u16 x, f64 value) { /* 1 where x is that special value */
    union lit lit;
    memset(&lit, 0, sizeof lit);
    lit.f64 = value;
    u16 other = build_lit(b, KIND_F64, lit, range_none());
    return build_op(b, OP_EQN_F64, x, other, NO_REG, range_bool());
}

static i32 flag_word(struct agg_state *s, u16 flag, u16 null) {
    u16 counted = build_andn(s->b, flag, null);
    return add_word(s, WORD_ADD, build_kind(s->b, counted, KIND_I64));
}

static void float_sum(struct agg_state *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 x = c->arg.reg;
    if (reg_kind(b, x) == KIND_F32) {
        x = build_op(b, OP_F64_F32, x, NO_REG, NO_REG, reg_range(b, x));
    }
    struct range r = reg_range(b, x);
    union lit zero;
    memset(&zero, 0, sizeof zero);
    u16 nought = build_lit(b, KIND_F64, zero, range_none());
    u16 hidden = c->arg.null;
    c->nan_word = c->plus_word = c->minus_word = NO_WORD;
    if (r.may_special) {
        u16 nan = float_flag(b, x, (f64)NAN);
        u16 plus = float_flag(b, x, (f64)INFINITY);
        u16 minus = float_flag(b, x, -(f64)INFINITY);
        c->nan_word = flag_word(s, nan, c->arg.null);
        c->plus_word = flag_word(s, plus, c->arg.null);
        c->minus_word = flag_word(s, minus, c->arg.null);
        hidden = build_null_or(b, hidden, build_or(b, nan, build_or(b, plus, minus)));
    }
    x = lower_guard(b, x, hidden, nought);
    bool real = c->arg_type.id == TYPE_REAL;
    i32 top = real ? 128 : 1024; /* every magnitude is below 2^top */
    i32 lsb = MAX_OF(r.lsb, real ? -149 : -1074);
    if (r.abs_max > 0 && r.abs_max < 1e300) {
        frexp(r.abs_max, &top);
    } else if (r.abs_max == 0) {
        top = lsb;
    }
    i32 limbs = MAX_OF((top - lsb + 31) / 32, 1);
    c->lsb = lsb;
    c->spacing = 32 + s->row_bits <= 63 ? 32 : 16;
    for (i32 i = 0; i < limbs && !s->l->status; i++) {
        u16 limb = build_op(b, OP_FLIMB_F64, x, build_i32(b, lsb), build_i32(b, i),
                            range_exact(-((i128)1 << 32), (i128)1 << 32));
        split_sum(s, c, limb, 32, lsb + 32 * i);
    }
}

/* counts, least and greatest */

static i32 count_word(struct agg_state *s, u16 null) {
    struct builder *b = s->b;
    if (null == NO_REG) {
        return add_word(s, WORD_ADD, build_int(b, KIND_I64, 1));
    }
    return add_word(s, WORD_ADD, build_kind(b, build_not(b, null), KIND_I64));
}

static u16 extreme_input(struct agg_state *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 reg = c->arg.reg;
    if (type_kind(c->arg_type) == KIND_STR) {
        c->dict = reg_dict(b, reg);
        c->ranks = string_ranks(s->l, c->dict);
        struct op op = {
            .code = OP_LUT, .a = reg, .b = NO_REG, .c = NO_REG, .imm = c->ranks.rank_var};
        reg = build_ctl(b, op, KIND_I32, range_exact(0, I32_MAX), 0);
    } else if (reg_kind(b, reg) == KIND_F32 || reg_kind(b, reg) == KIND_F64) {
        enum op_code code = reg_kind(b, reg) == KIND_F32 ? OP_ORD_F32 : OP_ORD_F64;
        reg = build_op(b, code, reg, NO_REG, NO_REG, range_exact(I64_MIN, I64_MAX));
    }
    c->range = reg_range(b, reg);
    if (!s->l->status && !range_within(c->range, range_exact(I64_MIN, I64_MAX))) {
        lower_fail(s->l, ERR_NOT_SUPPORTED, c->call->position,
                   "%s of decimals beyond 64 bits is not supported", agg_names[c->call->agg]);
        return 0;
    }
    return build_kind(b, reg, KIND_I64);
}

static void extreme(struct agg_state *s, struct call_state *c) {
    bool least = c->call->agg == AGG_MIN;
    u16 reg = extreme_input(s, c);
    i64 identity = least ? I64_MAX : I64_MIN;
    if (s->l->status) {
        return;
    }
    reg = lower_guard(s->b, reg, c->arg.null, build_int(s->b, KIND_I64, identity));
    struct part part = {add_word(s, least ? WORD_MIN : WORD_MAX, reg), 0};
    VEC_PUSH(s->l->arena, &c->parts, part);
    bool telling = !range_has(c->range, identity); /* the identity itself says: no input */
    c->count_word = !telling && c->may_be_null ? count_word(s, c->arg.null) : NO_WORD;
}

static void add_call(struct agg_state *s, struct call_state *c) {
    bool grouped = s->rel->exprs.count > 0;
    c->count_word = NO_WORD;
    c->may_be_null = !grouped || c->arg.null != NO_REG;
    switch (c->call->agg) {
    case AGG_COUNT_STAR:
        c->count_word = count_word(s, NO_REG);
        return;
    case AGG_COUNT:
        c->count_word = count_word(s, c->arg.null);
        return;
    case AGG_MIN:
    case AGG_MAX:
        extreme(s, c);
        return;
    default:
        break;
    }
    if (type_is_float(c->arg_type)) {
        float_sum(s, c);
    } else {
        exact_sum(s, c);
    }
    if (c->may_be_null || c->call->agg == AGG_AVG) {
        c->count_word = count_word(s, c->arg.null);
    }
}

/* finishing */

static u16 load_word(struct builder *f, i32 word, struct range range, bool fresh) {
    struct op op = {.code = OP_LOAD,
                    .a = NO_REG,
                    .b = NO_REG,
                    .c = NO_REG,
                    .imm = build_source_col(f, (u32)word + 1)};
    return fresh ? build_ctl_new(f, op, KIND_I64, range, 0) : build_ctl(f, op, KIND_I64, range, 0);
}

static u16 load_count(struct builder *f, i32 word) {
    return load_word(f, word, range_exact(0, (i128)1 << 62), false);
}

static u16 no_input(struct builder *f, i32 word) {
    return build_op(f, OP_EQ_I64, load_count(f, word), build_int(f, KIND_I64, 0), NO_REG,
                    range_bool());
}

/* The parts put together: high to low, (high << step) + low. */
static u16 exact_total(struct builder *f, const struct call_state *c, i32 row_bits) {
    struct range rows = range_exact(0, (i128)1 << row_bits);
    struct range total = range_mul(c->range, rows);
    total = range_union(total, range_exact(0, 0));
    struct range any = range_exact(I64_MIN, I64_MAX);
    if (c->parts.count == 1) {
        return load_word(f, c->parts.items[0].word, range_cut(total, any), false);
    }
    i64 n = c->parts.count;
    struct range all = range_of_type(type_decimal(38, 0));
    bool safe = range_fits_i128(total) && c->parts.items[n - 1].shift < 64;
    u16 acc = build_kind(f, load_word(f, c->parts.items[n - 1].word, any, false), KIND_I128);
    for (i64 i = n - 1; i-- > 0;) {
        i32 step = c->parts.items[i + 1].shift - c->parts.items[i].shift;
        u16 low = build_kind(f, load_word(f, c->parts.items[i].word, any, false), KIND_I128);
        u16 scale = build_int(f, KIND_I128, (i128)1 << step);
        struct range r = safe ? range_exact(I128_MIN / 4, I128_MAX / 4) : all;
        acc = build_op(f, safe ? OP_MUL_I128 : OP_MULX_I128, acc, scale, NO_REG, r);
        acc = build_op(f, safe ? OP_ADD_I128 : OP_ADDX_I128, acc, low, NO_REG, r);
    }
    if (!f->l->status && safe) {
        f->regs.items[acc].range = total;
    }
    return acc;
}

static u16 float_value(struct builder *f, f64 value) {
    union lit lit;
    memset(&lit, 0, sizeof lit);
    lit.f64 = value;
    return build_lit(f, KIND_F64, lit, range_none());
}

static u16 seen(struct builder *f, i32 word) {
    return build_not(f, no_input(f, word));
}

/* Words loaded into neighbouring registers, rounded once; then NaN and infinities as counted. */
static u16 float_total(struct builder *f, const struct call_state *c, enum kind kind) {
    struct range any = range_exact(I64_MIN, I64_MAX);
    u16 first = NO_REG;
    for (i64 i = 0; i < c->parts.count; i++) {
        u16 reg = load_word(f, c->parts.items[i].word, any, true);
        first = i == 0 ? reg : first;
    }
    union lit lsb;
    memset(&lsb, 0, sizeof lsb);
    lsb.i32 = c->lsb;
    if (f->l->status) {
        return 0;
    }
    struct op op = {.code = OP_FROUND,
                    .a = first,
                    .b = (u16)c->parts.count,
                    .c = (u16)c->spacing,
                    .imm = lower_lit(f->l, KIND_I32, lsb)};
    bool special = c->nan_word != NO_WORD;
    struct type type = type_of(kind == KIND_F32 ? TYPE_REAL : TYPE_DOUBLE);
    struct range all = range_of_type(type);
    all.may_special = special;
    u16 sum = build_ctl_new(f, op, kind, all, 0);
    if (!special) {
        return sum;
    }
    sum = kind == KIND_F32 ? build_op(f, OP_F64_F32, sum, NO_REG, NO_REG, all) : sum;
    u16 plus = seen(f, c->plus_word);
    u16 minus = seen(f, c->minus_word);
    u16 nan = build_or(f, seen(f, c->nan_word), build_and(f, plus, minus));
    sum = build_sel(f, plus, float_value(f, (f64)INFINITY), sum);
    sum = build_sel(f, minus, float_value(f, -(f64)INFINITY), sum);
    sum = build_sel(f, nan, float_value(f, (f64)NAN), sum);
    return kind == KIND_F32 ? build_safe(f, OP_F32_F64, sum, NO_REG, NO_REG, all) : sum;
}

static i32 scale_of(struct type t) {
    return t.id == TYPE_DECIMAL ? t.scale : 0;
}

static struct value finish_sum(struct builder *f, const struct call_state *c, i32 row_bits) {
    struct value v = {0, c->may_be_null ? no_input(f, c->count_word) : (u16)NO_REG};
    if (type_is_float(c->arg_type)) {
        v.reg = float_total(f, c, type_kind(c->type));
        return v;
    }
    u16 total = exact_total(f, c, row_bits);
    total = lower_scale(f, total, scale_of(c->arg_type), scale_of(c->type));
    v.reg = lower_check(f, total, NO_REG, c->type);
    return v;
}

static struct value finish_avg(struct builder *f, const struct call_state *c, i32 row_bits) {
    struct value v = {0, c->may_be_null ? no_input(f, c->count_word) : (u16)NO_REG};
    u16 count = load_count(f, c->count_word);
    if (c->may_be_null) { /* no division by zero where there is nothing to divide */
        count = build_sel(f, v.null, build_int(f, KIND_I64, 1), count);
    }
    if (type_is_float(c->arg_type)) {
        u16 sum = float_total(f, c, KIND_F64);
        u16 n = build_op(f, OP_F64_I64, count, NO_REG, NO_REG, range_float(0x1p62, 0, false));
        struct range all = range_of_type(type_of(TYPE_DOUBLE));
        all.may_special = reg_range(f, sum).may_special;
        v.reg = build_safe(f, OP_DIV_F64, sum, n, NO_REG, all);
        return v;
    }
    u16 total = build_kind(f, exact_total(f, c, row_bits), KIND_I128);
    u16 divisor = build_kind(f, count, KIND_I128);
    i32 shift = scale_of(c->type) - scale_of(c->arg_type);
    if (shift < 0) {
        divisor = build_kind(f, lower_scale(f, divisor, 0, -shift), KIND_I128);
        shift = 0;
    }
    v.reg = build_op(f, OP_DIVDEC_I128, total, divisor, build_i32(f, shift),
                     range_of_type(type_decimal(38, 0)));
    v.reg = lower_check(f, v.reg, v.null, c->type);
    return v;
}

static struct value finish_extreme(struct builder *f, const struct call_state *c) {
    i64 identity = c->call->agg == AGG_MIN ? I64_MAX : I64_MIN;
    i32 word = c->parts.items[0].word;
    struct range any = range_exact(I64_MIN, I64_MAX);
    struct value v = {load_word(f, word, c->may_be_null ? any : c->range, false), NO_REG};
    if (c->may_be_null && c->count_word == NO_WORD) {
        v.null =
            build_op(f, OP_EQ_I64, v.reg, build_int(f, KIND_I64, identity), NO_REG, range_bool());
    } else if (c->may_be_null) {
        v.null = no_input(f, c->count_word);
    }
    if (f->l->status) {
        return v;
    }
    if (v.null != NO_REG) { /* back into the range of the inputs */
        i128 inside = range_has(c->range, 0) ? 0 : c->range.lo;
        v.reg = build_sel(f, v.null, build_int(f, KIND_I64, inside), v.reg);
        f->regs.items[v.reg].range = c->range;
    }
    if (type_kind(c->arg_type) == KIND_STR) {
        struct op op = {.code = OP_LUT,
                        .a = build_kind(f, v.reg, KIND_I32),
                        .b = NO_REG,
                        .c = NO_REG,
                        .imm = c->ranks.code_var};
        v.reg = build_ctl(f, op, KIND_I32, range_exact(0, I32_MAX), c->dict);
    } else if (type_is_float(c->arg_type)) {
        bool real = c->arg_type.id == TYPE_REAL;
        v.reg = build_op(f, real ? OP_UNORD_F32 : OP_UNORD_F64, v.reg, NO_REG, NO_REG,
                         range_of_type(c->arg_type));
    } else {
        v.reg = build_kind(f, v.reg, range_kind(c->range));
    }
    return v;
}

static struct value finish_call(struct builder *f, const struct call_state *c, i32 row_bits) {
    switch (c->call->agg) {
    case AGG_COUNT_STAR:
    case AGG_COUNT:
        return (struct value){load_count(f, c->count_word), NO_REG};
    case AGG_SUM:
        return finish_sum(f, c, row_bits);
    case AGG_AVG:
        return finish_avg(f, c, row_bits);
    default:
        return finish_extreme(f, c);
    }
}

/* the whole */

static void lower_inputs(struct agg_state *s) {
    const struct rel *rel = s->rel;
    for (i32 i = 0; i < s->key_count; i++) {
        s->keys[i] = lower_expr(s->b, rel->exprs.items[i]);
    }
    for (i64 i = 0; i < rel->calls.count; i++) {
        struct call_state *c = &s->calls[i];
        c->call = &rel->calls.items[i];
        c->type = s->l->plan->cols.items[c->call->col].type;
        c->arg = (struct value){NO_REG, NO_REG};
        if (c->call->arg) {
            c->arg = lower_expr(s->b, c->call->arg);
            c->arg_type = c->call->arg->type;
        }
    }
}

static bool needs_ranks_of_strings(const struct agg_state *s) {
    for (i64 i = 0; i < s->rel->calls.count && !s->l->status; i++) {
        const struct call_state *c = &s->calls[i];
        bool extreme_call = c->call->agg == AGG_MIN || c->call->agg == AGG_MAX;
        if (extreme_call && reg_kind(s->b, c->arg.reg) == KIND_STR) {
            return true;
        }
    }
    return false;
}

/* least and greatest of strings that are not codes: their order is known only when all of them are.
 * So keys and arguments are materialised first, strings numbered, and the aggregation starts from
 * there. */
static void materialise_inputs(struct agg_state *s) {
    struct lower *l = s->l;
    u32 count = (u32)(s->key_count + s->rel->calls.count);
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, count);
    struct value **from = NEW_ARRAY(l->arena, struct value *, count);
    u32 n = 0;
    for (i32 i = 0; i < s->key_count; i++) {
        cols[n].type = s->rel->exprs.items[i]->type;
        from[n++] = &s->keys[i];
    }
    for (i64 i = 0; i < s->rel->calls.count; i++) {
        struct call_state *c = &s->calls[i];
        if (!c->call->arg) {
            continue;
        }
        if (!l->status && reg_kind(s->b, c->arg.reg) == KIND_STR) {
            u32 values = lower_var(l, VAR_INTERN, "strings");
            u32 dict = lower_dict(l, (struct dict_ref){NO_VAR, 0, values});
            c->arg.reg = string_intern(s->b, c->arg.reg, values, false);
            s->b->regs.items[c->arg.reg].dict = l->status ? 0 : dict;
        }
        cols[n].type = c->arg_type;
        from[n++] = &c->arg;
    }
    for (u32 i = 0; i < n; i++) {
        cols[i].value = *from[i];
    }
    u32 var = lower_rows(s->b, "strings", cols, n, false, -1);
    s->b = lower_over(l, var, s->rel->inputs[0]->rows);
    for (u32 i = 0; i < n && !l->status; i++) {
        const struct var *v = &l->vars.items[var];
        struct op op = {.code = OP_LOAD,
                        .a = NO_REG,
                        .b = NO_REG,
                        .c = NO_REG,
                        .imm = build_source_col(s->b, i)};
        struct range range = l->var_infos.items[var].ranges[i];
        from[i]->reg = build_ctl(s->b, op, (enum kind)v->kinds[i], range, v->dicts[i]);
        from[i]->null = NO_REG;
        if (l->var_infos.items[var].nullable[i]) {
            op.code = OP_LOADN;
            from[i]->null = build_ctl(s->b, op, KIND_B8, range_bool(), 0);
        }
    }
}

static u16 pack_keys(struct agg_state *s) {
    struct lower *l = s->l;
    if (s->key_count == 0 || l->status) {
        return NO_REG;
    }
    s->layout.count = s->key_count;
    s->layout.fields = NEW_ARRAY(l->arena, struct key_field, s->key_count);
    for (i32 i = 0; i < s->key_count; i++) {
        s->layout.fields[i] = key_field_of(s->b, s->keys[i], s->rel->exprs.items[i]->type);
    }
    key_place(l, &s->layout);
    return key_pack(s->b, &s->layout, s->keys, false, NULL);
}

static u32 agg_sink(struct agg_state *s, u16 key) {
    struct lower *l = s->l;
    u32 number = lower_var(l, VAR_AGG, "groups");
    struct var *var = &l->vars.items[number];
    struct var_info *info = &l->var_infos.items[number];
    u32 count = (u32)s->words.count;
    var->col_count = count + 1;
    var->types = NEW_ARRAY(l->arena, struct type, count + 1);
    var->kinds = NEW_ARRAY(l->arena, u8, count + 1);
    var->dicts = NEW_ARRAY(l->arena, u32, count + 1);
    info->ranges = NEW_ARRAY(l->arena, struct range, count + 1);
    info->nullable = NEW_ARRAY(l->arena, b8, count + 1);
    info->max_rows = key == NO_REG ? 1 : s->b->max_rows;
    for (u32 i = 0; i <= count; i++) {
        var->types[i] = type_of(TYPE_BIGINT);
        var->kinds[i] = KIND_I64;
        info->ranges[i] = range_exact(I64_MIN, I64_MAX);
    }
    struct sink sink = {.kind = SINK_AGG,
                        .var = number,
                        .limit = -1,
                        .key = key,
                        .key_bits = (u8)(key == NO_REG ? 0 : MIN_OF(s->layout.bits, 64)),
                        .word_count = count,
                        .words = s->words.items,
                        .word_regs = s->regs.items,
                        .groups = s->rel->rows,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(s->b, sink);
    build_label(s->b, rel_names[REL_AGG]);
    build_finish(s->b);
    return number;
}

struct builder *lower_agg(struct lower *l, const struct rel *rel) {
    struct agg_state s = {.l = l, .rel = rel, .b = lower_rel(l, rel->inputs[0])};
    s.key_count = (i32)rel->exprs.count;
    s.keys = NEW_ARRAY(l->arena, struct value, s.key_count * 2 + 1);
    s.calls = NEW_ARRAY(l->arena, struct call_state, rel->calls.count + 1);
    lower_inputs(&s);
    if (needs_ranks_of_strings(&s)) {
        materialise_inputs(&s);
    }
    s.row_bits = bits_of_rows(s.b->max_rows);
    u16 key = pack_keys(&s);
    for (i64 i = 0; i < rel->calls.count && !l->status; i++) {
        add_call(&s, &s.calls[i]);
    }
    u32 var = agg_sink(&s, key);
    struct builder *f = lower_over(l, var, rel->rows);
    if (l->status) {
        return f;
    }
    if (key != NO_REG) {
        struct op op = {.code = OP_LOAD, .a = NO_REG, .b = NO_REG, .c = NO_REG};
        op.imm = build_source_col(f, 0);
        i32 bits = s.layout.bits;
        struct range range =
            bits >= 64 ? range_exact(I64_MIN, I64_MAX) : range_exact(0, ((i128)1 << bits) - 1);
        struct value *out = NEW_ARRAY(l->arena, struct value, s.layout.count + 1);
        key_unpack(f, &s.layout, build_ctl(f, op, KIND_I64, range, 0), out);
        for (i32 i = 0; i < s.key_count; i++) {
            bind_value(f, rel->out.items[i], out[i]);
        }
    }
    for (i64 i = 0; i < rel->calls.count && !l->status; i++) {
        bind_value(f, rel->calls.items[i].col, finish_call(f, &s.calls[i], s.row_bits));
    }
    return f;
}
