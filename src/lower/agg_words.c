/* agg_words.c: aggregates as words, and the expressions that finish them.
 *
 * A state is a row of 64-bit words; each word is added to, or takes the least or greatest. A sum
 * takes as few words as the bounds of the value and of the row count allow: one where they prove
 * that 63 bits suffice, else parts of 32 or 16 bits that are put together at the end. Floats are
 * split into fixed-point limbs, so that their sum is exact and rounded once; so are squares, whose
 * exact sum and that of the values give variances without cancellation. Words with the same input
 * are shared between aggregates. See decision 0002. */
#include "lower/agg_int.h"

#include "codes/op.h"

#include <math.h>

static i32 add_word(struct words *s, enum word_op op, u16 reg) {
    for (i64 i = 0; i < s->ops.count; i++) {
        if (s->ops.items[i] == (u8)op && s->regs.items[i] == reg) {
            return (i32)i;
        }
    }
    u8 op_byte = (u8)op;
    VEC_PUSH(s->l->arena, &s->ops, op_byte);
    VEC_PUSH(s->l->arena, &s->regs, reg);
    return (i32)(s->ops.count - 1);
}

enum { ROW_BITS_MAX = 40 };

i32 words_row_bits(i64 rows) {
    i32 bits = 0;
    while (bits < ROW_BITS_MAX && (i64)1 << bits < rows) {
        bits++;
    }
    return bits;
}

/* splitting */

static void add_part(struct words *s, struct call_state *c, u16 reg, i32 shift) {
    struct part part = {add_word(s, WORD_ADD, build_kind(s->b, reg, KIND_I64)), shift};
    VEC_PUSH(s->l->arena, &c->parts, part);
}

/* Adds words for a register of magnitude below 2^bits whose weight is 2^shift. */
static void split_sum(struct words *s, struct call_state *c, u16 reg, i32 bits, i32 shift) {
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
static void split_wide(struct words *s, struct call_state *c, u16 reg) {
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

static void exact_sum(struct words *s, struct call_state *c) {
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
    return build_op(b, OP_EQN_F64, x, build_float(b, KIND_F64, value), NO_REG, range_bool());
}

static i32 flag_word(struct words *s, u16 flag, u16 null) {
    u16 counted = build_andn(s->b, flag, null);
    return add_word(s, WORD_ADD, build_kind(s->b, counted, KIND_I64));
}

/* The bits any finite value of the argument has: from 2^lsb on, in limbs of 32. */
static i32 float_limbs(const struct call_state *c, struct range r, i32 *out_lsb) {
    bool real = c->arg_type.id == TYPE_REAL;
    i32 top = real ? 128 : 1024; /* every magnitude is below 2^top */
    i32 lsb = MAX_OF(r.lsb, real ? -149 : -1074);
    if (r.abs_max > 0 && r.abs_max < 1e300) {
        frexp(r.abs_max, &top);
    } else if (r.abs_max == 0) {
        top = lsb;
    }
    *out_lsb = lsb;
    return MAX_OF((top - lsb + 31) / 32, 1);
}

/* One word, added up in whatever order the rows come. */
static void fast_sum(struct words *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 x = c->arg.reg;
    if (reg_kind(b, x) == KIND_F32) {
        x = build_op(b, OP_F64_F32, x, NO_REG, NO_REG, reg_range(b, x));
    }
    union lit zero;
    memset(&zero, 0, sizeof zero);
    x = lower_guard(b, x, c->arg.null, build_lit(b, KIND_F64, zero, range_none()));
    x = build_op(b, OP_KEY_F64, x, NO_REG, NO_REG, range_exact(I64_MIN, I64_MAX));
    c->nan_word = c->plus_word = c->minus_word = NO_WORD;
    c->fast = 1;
    struct part part = {add_word(s, WORD_FADD, x), 0};
    VEC_PUSH(s->l->arena, &c->parts, part);
}

/* Returns the values as summed: specials and NULLs are 0. */
static u16 float_sum(struct words *s, struct call_state *c) {
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
    i32 lsb;
    i32 limbs = float_limbs(c, r, &lsb);
    c->lsb = lsb;
    c->spacing = 32 + s->row_bits <= 63 ? 32 : 16;
    for (i32 i = 0; i < limbs && !s->l->status; i++) {
        u16 limb = build_op(b, OP_FLIMB_F64, x, build_i32(b, lsb), build_i32(b, i),
                            range_exact(-((i128)1 << 32), (i128)1 << 32));
        split_sum(s, c, limb, 32, lsb + 32 * i);
    }
    return x;
}

/* counts, least and greatest */

static i32 count_word(struct words *s, u16 null) {
    struct builder *b = s->b;
    if (null == NO_REG) {
        return add_word(s, WORD_ADD, build_int(b, KIND_I64, 1));
    }
    return add_word(s, WORD_ADD, build_kind(b, build_not(b, null), KIND_I64));
}

static u16 extreme_input(struct words *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 reg = c->arg.reg;
    if (type_kind(c->arg_type) == KIND_STR) {
        c->dict = reg_dict(b, reg);
        c->ranks = string_ranks(s->l, c->dict);
        struct op op = {
            .code = OP_LUT, .a = reg, .b = NO_REG, .c = NO_REG, .imm = c->ranks.rank_var};
        reg = build_ctl(b, op, KIND_I32, range_exact(0, I32_MAX), 0);
    } else if (reg_kind(b, reg) == KIND_F32 || reg_kind(b, reg) == KIND_F64) {
        u16 code = reg_kind(b, reg) == KIND_F32 ? OP_ORD_F32 : OP_ORD_F64;
        reg = build_op(b, code, reg, NO_REG, NO_REG, range_exact(I64_MIN, I64_MAX));
    }
    c->range = reg_range(b, reg);
    return build_kind(b, reg, KIND_I64);
}

static void extreme(struct words *s, struct call_state *c) {
    bool least = c->agg == AGG_MIN || c->agg == AGG_BOOL_AND;
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

/* variances: exact sums of the values and of their squares, in limbs of 32 bits */

static void add_limb(struct words *s, struct call_state *c, u16 limb, i32 number) {
    split_sum(s, c, limb, 32, 32 * number);
}

/* A 64-bit number as limbs; `bits` bounds its magnitude. */
static void add_limbs(struct words *s, struct call_state *c, u16 reg, i32 bits, i32 number) {
    struct builder *b = s->b;
    if (bits <= 31) {
        add_limb(s, c, reg, number);
        return;
    }
    struct range low = range_exact(0, ((i128)1 << 32) - 1);
    add_limb(s, c, build_op(b, OP_LOW_I64, reg, NO_REG, NO_REG, low), number);
    struct range high = range_exact(I32_MIN, I32_MAX);
    add_limb(s, c, build_op(b, OP_HIGH_I64, reg, NO_REG, NO_REG, high), number + 1);
}

/* A square below 2^126. */
static void add_square(struct words *s, struct call_state *c, u16 reg, i32 bits) {
    struct builder *b = s->b;
    struct range any = range_exact(0, I64_MAX);
    if (bits <= 31) {
        add_limbs(s, c, build_op(b, OP_MUL_I64, reg, reg, NO_REG, any), 62, 0);
        return;
    }
    u16 wide = build_kind(b, reg, KIND_I128);
    struct range all = range_exact(0, (i128)1 << 126);
    u16 two64 = build_int(b, KIND_I128, (i128)1 << 64);
    struct range low64 = range_exact(0, ((i128)1 << 64) - 1);
    struct range low32 = range_exact(0, ((i128)1 << 32) - 1);
    u16 square = build_op(b, OP_MUL_I128, wide, wide, NO_REG, all);
    u16 q = build_safe(b, OP_DIV_I128, square, two64, NO_REG, any);
    u16 r = build_op(b, OP_SUB_I128, square, build_op(b, OP_MUL_I128, q, two64, NO_REG, all),
                     NO_REG, low64);
    add_limb(s, c, build_op(b, OP_LOW_I128, r, NO_REG, NO_REG, low32), 0);
    add_limb(s, c, build_op(b, OP_HIGH_I128, r, NO_REG, NO_REG, low32), 1);
    add_limbs(s, c, build_kind(b, q, KIND_I64), 62, 2);
}

enum { WIDE_LIMBS = 4 }; /* of a value of 128 bits */

/* A 128-bit number as limbs, all but the highest without a sign; may be negative. */
static void wide_limbs(struct builder *b, u16 reg, u16 *out) {
    struct range low32 = range_exact(0, ((i128)1 << 32) - 1);
    struct range near32 = range_exact(-((i128)1 << 32), (i128)1 << 32);
    struct range all = range_exact(I128_MIN / 2, I128_MAX / 2);
    u16 two64 = build_int(b, KIND_I128, (i128)1 << 64);
    u16 q = build_safe(b, OP_DIV_I128, reg, two64, NO_REG, range_exact(I64_MIN, I64_MAX));
    u16 r = build_op(b, OP_SUB_I128, reg, build_op(b, OP_MUL_I128, q, two64, NO_REG, all), NO_REG,
                     range_exact(-((i128)1 << 64), (i128)1 << 64));
    q = build_kind(b, q, KIND_I64);
    out[0] = build_op(b, OP_LOW_I128, r, NO_REG, NO_REG, low32);
    out[1] = build_op(b, OP_HIGH_I128, r, NO_REG, NO_REG, near32);
    out[2] = build_op(b, OP_LOW_I64, q, NO_REG, NO_REG, low32);
    out[3] = build_op(b, OP_HIGH_I64, q, NO_REG, NO_REG, near32);
}

/* Adds `part`, `times` times, to one of the limbs of a square. */
static u16 add_times(struct builder *b, u16 limb, u16 part, i32 times) {
    struct range any = range_exact(0, (i128)1 << 40);
    for (i32 i = 0; i < times; i++) {
        limb = limb == NO_REG ? part : build_op(b, OP_ADD_I64, limb, part, NO_REG, any);
    }
    return limb;
}

/* The square of a 128-bit number, product by product of its magnitude's limbs. */
static void wide_square(struct words *s, struct call_state *c, u16 reg) {
    struct builder *b = s->b;
    struct range low32 = range_exact(0, ((i128)1 << 32) - 1);
    struct range any = range_exact(0, (i128)1 << 40);
    struct range all = range_exact(I128_MIN / 2, I128_MAX / 2);
    u16 zero = build_int(b, KIND_I128, 0), a[WIDE_LIMBS], limbs[2 * WIDE_LIMBS];
    u16 minus = build_op(b, OP_LT_I128, reg, zero, NO_REG, range_bool());
    reg = build_sel(b, minus, build_op(b, OP_SUB_I128, zero, reg, NO_REG, all), reg);
    wide_limbs(b, reg, a);
    for (i32 i = 0; i < 2 * WIDE_LIMBS; i++) {
        limbs[i] = NO_REG;
    }
    for (i32 i = 0; i < WIDE_LIMBS && !s->l->status; i++) {
        for (i32 j = i; j < WIDE_LIMBS; j++) {
            u16 p = build_op(b, OP_MUL_I128, build_kind(b, a[i], KIND_I128),
                             build_kind(b, a[j], KIND_I128), NO_REG, range_exact(0, (i128)1 << 65));
            u16 low = build_op(b, OP_LOW_I128, p, NO_REG, NO_REG, low32);
            u16 high = build_op(b, OP_HIGH_I128, p, NO_REG, NO_REG, any);
            limbs[i + j] = add_times(b, limbs[i + j], low, i == j ? 1 : 2);
            limbs[i + j + 1] = add_times(b, limbs[i + j + 1], high, i == j ? 1 : 2);
        }
    }
    u16 carry = NO_REG;
    for (i32 i = 0; i < 2 * WIDE_LIMBS && !s->l->status; i++) {
        u16 limb = add_times(b, limbs[i], carry, carry != NO_REG);
        add_limb(s, c, build_op(b, OP_LOW_I64, limb, NO_REG, NO_REG, low32), i);
        carry = build_op(b, OP_HIGH_I64, limb, NO_REG, NO_REG, any);
    }
}

static void wide_variance(struct words *s, struct call_state *c, u16 reg) {
    u16 limbs[WIDE_LIMBS];
    wide_limbs(s->b, reg, limbs);
    for (i32 i = 0; i < WIDE_LIMBS && !s->l->status; i++) {
        add_limb(s, c, limbs[i], i);
    }
    c->n1 = (i32)c->parts.count;
    wide_square(s, c, reg);
}

static void exact_variance(struct words *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 reg = c->arg.reg;
    reg = lower_guard(b, reg, c->arg.null, build_int(b, reg_kind(b, reg), 0));
    i32 bits = magnitude_bits(reg_range(b, reg));
    if (s->l->status) {
        return;
    }
    c->spacing = 32 + s->row_bits <= 63 ? 32 : 16;
    if (bits > 63) {
        wide_variance(s, c, build_kind(b, reg, KIND_I128));
        return;
    }
    reg = build_kind(b, reg, KIND_I64);
    add_limbs(s, c, reg, bits, 0);
    c->n1 = (i32)c->parts.count;
    add_square(s, c, reg, bits);
}

/* float_sum made the words of the values; those of the squares come behind them. */
static void float_variance(struct words *s, struct call_state *c) {
    struct builder *b = s->b;
    u16 x = float_sum(s, c);
    c->n1 = (i32)c->parts.count;
    i32 limbs = 2 * c->n1 * c->spacing / 32 + 1;
    for (i32 i = 0; i < limbs && !s->l->status; i++) {
        u16 limb = build_op(b, OP_FSQUARE_F64, x, build_i32(b, 2 * c->lsb), build_i32(b, i),
                            range_exact(0, ((i128)1 << 32) - 1));
        add_limb(s, c, limb, i);
    }
}

/* Sums of both arguments, those of the second kept apart in `second`, and of their products. Both
 * are NULL in the same rows. */
static void cross_sums(struct words *s, struct call_state *c) {
    struct builder *b = s->b;
    struct call_state other = *c;
    u16 x = float_sum(s, c);
    c->n1 = (i32)c->parts.count;
    other.arg = c->arg2;
    other.parts.items = NULL;
    other.parts.count = other.parts.cap = 0;
    u16 y = float_sum(s, &other);
    c->n2 = (i32)other.parts.count;
    for (i64 i = 0; i < other.parts.count; i++) {
        VEC_PUSH(s->l->arena, &c->parts, other.parts.items[i]);
    }
    c->nan_word2 = other.nan_word;
    c->plus_word2 = other.plus_word;
    c->minus_word2 = other.minus_word;
    i32 limbs = (c->n1 + c->n2) * c->spacing / 32 + 1;
    c->lsb += other.lsb;
    for (i32 i = 0; i < limbs && !s->l->status; i++) {
        u16 limb = build_op(b, OP_FPRODUCT_F64, x, y, build_i32(b, c->lsb * 256 + i),
                            range_exact(-((i128)1 << 32), (i128)1 << 32));
        add_limb(s, c, limb, i);
    }
}

/* bits */

static void bits_word(struct words *s, struct call_state *c) {
    enum word_op op = c->agg == AGG_BIT_AND ? WORD_AND : c->agg == AGG_BIT_OR ? WORD_OR : WORD_XOR;
    i64 identity = c->agg == AGG_BIT_AND ? -1 : 0;
    u16 reg = build_kind(s->b, c->arg.reg, KIND_I64);
    reg = lower_guard(s->b, reg, c->arg.null, build_int(s->b, KIND_I64, identity));
    struct part part = {add_word(s, op, reg), 0};
    VEC_PUSH(s->l->arena, &c->parts, part);
    c->count_word = c->may_be_null ? count_word(s, c->arg.null) : NO_WORD;
}

bool words_too_wide(const struct builder *b, const struct call_state *c) {
    bool extreme_call = c->agg == AGG_MIN || c->agg == AGG_MAX;
    return extreme_call && !b->l->status && reg_kind(b, c->arg.reg) == KIND_I128 &&
           !range_within(reg_range(b, c->arg.reg), range_exact(I64_MIN, I64_MAX));
}

void words_narrow(struct builder *b, struct call_state *c) {
    u16 order = build_kind(b, lower_order(b, c->arg.reg, c->arg_type), KIND_I128);
    c->wide = true;
    c->arg.reg = build_safe(b, OP_ORDER_BYTES, order, c->arg.reg, NO_REG, range_none());
    c->arg_type = type_of(TYPE_TEXT);
}

bool words_need_ranks(const struct builder *b, const struct call_state *c) {
    bool extreme_call = c->agg == AGG_MIN || c->agg == AGG_MAX;
    return extreme_call && !b->l->status && reg_kind(b, c->arg.reg) == KIND_STR;
}

struct value words_input(struct builder *b, const struct expr *arg, const struct expr *filter) {
    struct value v = {NO_REG, NO_REG};
    if (!filter) {
        return arg ? lower_expr(b, arg) : v;
    }
    u16 keep = lower_expr(b, filter).reg;
    struct scope scope = build_when(b, keep);
    v = arg ? lower_expr(b, arg) : v;
    bool masked = build_end(b, scope);
    if (b->l->status) {
        return v;
    }
    if (arg && masked) { /* what was not computed must still be a value */
        v.reg = lower_where(b, keep, v.reg);
        v.null = v.null == NO_REG ? v.null : build_and(b, v.null, keep);
    }
    v.null = build_null_or(b, v.null, build_not(b, keep));
    return v;
}

i32 words_least(struct words *s, u16 reg) {
    return add_word(s, WORD_MIN, reg);
}

void words_add(struct words *s, struct call_state *c) {
    c->count_word = NO_WORD;
    c->nan_word = NO_WORD;
    c->may_be_null = !c->grouped || c->arg.null != NO_REG;
    switch (c->agg) {
    case AGG_COUNT_STAR:
    case AGG_COUNT:
        c->count_word = count_word(s, c->arg.null);
        return;
    case AGG_MIN:
    case AGG_MAX:
    case AGG_BOOL_AND:
    case AGG_BOOL_OR:
        extreme(s, c);
        return;
    case AGG_BIT_AND:
    case AGG_BIT_OR:
    case AGG_BIT_XOR:
        bits_word(s, c);
        return;
    case AGG_REGR_SXY:
        c->count_word = count_word(s, c->arg.null);
        cross_sums(s, c);
        return;
    case AGG_VAR_SAMP:
    case AGG_VAR_POP:
    case AGG_STDDEV_SAMP:
    case AGG_STDDEV_POP:
        c->count_word = count_word(s, c->arg.null);
        if (type_is_float(c->arg_type)) {
            float_variance(s, c);
        } else {
            exact_variance(s, c);
        }
        return;
    default:
        break;
    }
    if (type_is_float(c->arg_type) && s->l->limits->fast_floats) {
        fast_sum(s, c);
    } else if (type_is_float(c->arg_type)) {
        float_sum(s, c);
    } else {
        exact_sum(s, c);
    }
    if (c->may_be_null || c->agg == AGG_AVG) {
        c->count_word = count_word(s, c->arg.null);
    }
}

/* finishing */

static u16 load_word(struct builder *f, const struct call_state *c, i32 word, struct range range,
                     bool fresh) {
    struct op op = {.code = OP_LOAD,
                    .a = NO_REG,
                    .b = NO_REG,
                    .c = NO_REG,
                    .imm = build_source_col(f, c->first_col + (u32)word)};
    return fresh ? build_ctl_new(f, op, KIND_I64, range, 0) : build_ctl(f, op, KIND_I64, range, 0);
}

static u16 load_count(struct builder *f, const struct call_state *c, i32 word) {
    return load_word(f, c, word, range_exact(0, (i128)1 << 62), false);
}

static u16 no_input(struct builder *f, const struct call_state *c, i32 word) {
    return build_op(f, OP_EQ_I64, load_count(f, c, word), build_int(f, KIND_I64, 0), NO_REG,
                    range_bool());
}

/* The parts put together: high to low, (high << step) + low. */
static u16 exact_total(struct builder *f, const struct call_state *c, i32 row_bits) {
    struct range rows = range_exact(0, (i128)1 << row_bits);
    struct range total = range_mul(c->range, rows);
    total = range_union(total, range_exact(0, 0));
    struct range any = range_exact(I64_MIN, I64_MAX);
    if (c->parts.count == 1) {
        return load_word(f, c, c->parts.items[0].word, range_cut(total, any), false);
    }
    i64 n = c->parts.count;
    struct range all = range_of_type(type_decimal(38, 0));
    bool safe = range_fits_i128(total) && c->parts.items[n - 1].shift < 64;
    u16 acc = build_kind(f, load_word(f, c, c->parts.items[n - 1].word, any, false), KIND_I128);
    for (i64 i = n - 1; i-- > 0;) {
        i32 step = c->parts.items[i + 1].shift - c->parts.items[i].shift;
        u16 low = build_kind(f, load_word(f, c, c->parts.items[i].word, any, false), KIND_I128);
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

static u16 seen(struct builder *f, const struct call_state *c, i32 word) {
    return build_not(f, no_input(f, c, word));
}

/* Words loaded into neighbouring registers, rounded once; then NaN and infinities as counted. */
static u16 float_total(struct builder *f, const struct call_state *c, enum kind kind) {
    struct range any = range_exact(I64_MIN, I64_MAX);
    if (c->fast) {
        struct range all = range_of_type(type_of(kind == KIND_F32 ? TYPE_REAL : TYPE_DOUBLE));
        all.may_special = 1;
        u16 bits = load_word(f, c, c->parts.items[0].word, any, false);
        u16 sum = build_op(f, OP_UNKEY_F64, bits, NO_REG, NO_REG, all);
        return kind == KIND_F32 ? build_safe(f, OP_F32_F64, sum, NO_REG, NO_REG, all) : sum;
    }
    u16 first = NO_REG;
    for (i64 i = 0; i < c->parts.count; i++) {
        u16 reg = load_word(f, c, c->parts.items[i].word, any, true);
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
    u16 plus = seen(f, c, c->plus_word);
    u16 minus = seen(f, c, c->minus_word);
    u16 nan = build_or(f, seen(f, c, c->nan_word), build_and(f, plus, minus));
    sum = build_sel(f, plus, build_float(f, KIND_F64, (f64)INFINITY), sum);
    sum = build_sel(f, minus, build_float(f, KIND_F64, -(f64)INFINITY), sum);
    sum = build_sel(f, nan, build_float(f, KIND_F64, (f64)NAN), sum);
    return kind == KIND_F32 ? build_safe(f, OP_F32_F64, sum, NO_REG, NO_REG, all) : sum;
}

static struct value finish_sum(struct builder *f, const struct call_state *c, i32 row_bits) {
    struct value v = {0, c->may_be_null ? no_input(f, c, c->count_word) : (u16)NO_REG};
    if (type_is_float(c->arg_type)) {
        v.reg = float_total(f, c, type_kind(c->type));
        return v;
    }
    u16 total = exact_total(f, c, row_bits);
    total = lower_scale(f, total, type_scale(c->arg_type), type_scale(c->type));
    v.reg = lower_check(f, total, NO_REG, c->type);
    return v;
}

static struct value finish_avg(struct builder *f, const struct call_state *c, i32 row_bits) {
    struct value v = {0, c->may_be_null ? no_input(f, c, c->count_word) : (u16)NO_REG};
    u16 count = load_count(f, c, c->count_word);
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
    i32 shift = type_scale(c->type) - type_scale(c->arg_type);
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
    i64 identity = c->agg == AGG_MIN || c->agg == AGG_BOOL_AND ? I64_MAX : I64_MIN;
    i32 word = c->parts.items[0].word;
    struct range any = range_exact(I64_MIN, I64_MAX);
    struct value v = {load_word(f, c, word, c->may_be_null ? any : c->range, false), NO_REG};
    if (c->may_be_null && c->count_word == NO_WORD) {
        v.null =
            build_op(f, OP_EQ_I64, v.reg, build_int(f, KIND_I64, identity), NO_REG, range_bool());
    } else if (c->may_be_null) {
        v.null = no_input(f, c, c->count_word);
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
        v.reg = c->wide ? build_op(f, OP_ORDERED_STR, string_view(f, v.reg), NO_REG, NO_REG,
                                   range_of_type(c->type))
                        : v.reg;
    } else if (type_is_float(c->arg_type)) {
        bool real = c->arg_type.id == TYPE_REAL;
        v.reg = build_op(f, real ? OP_UNORD_F32 : OP_UNORD_F64, v.reg, NO_REG, NO_REG,
                         range_of_type(c->arg_type));
    } else if (c->arg_type.id == TYPE_BOOLEAN) {
        u16 zero = build_int(f, KIND_I64, 0);
        v = lower_bool(f, build_op(f, OP_NE_I64, v.reg, zero, NO_REG, range_bool()), v.null);
    } else {
        v.reg = build_kind(f, v.reg, range_kind(c->range));
    }
    return v;
}

/* NaN where an input was not finite. */
static u16 nan_where(struct builder *f, const struct call_state *c, i32 nan, i32 plus, i32 minus,
                     u16 reg) {
    u16 odd = build_or(f, seen(f, c, plus), seen(f, c, minus));
    return build_sel(f, build_or(f, seen(f, c, nan), odd), build_float(f, KIND_F64, (f64)NAN), reg);
}

/* The words go to VARIANCE in neighbouring registers: the count, the sum, the sum of squares. */
static struct value finish_variance(struct builder *f, const struct call_state *c) {
    struct range any = range_exact(I64_MIN, I64_MAX);
    bool cross = c->agg == AGG_REGR_SXY;
    bool population = c->agg == AGG_VAR_POP || c->agg == AGG_STDDEV_POP || cross;
    bool root = c->agg == AGG_STDDEV_SAMP || c->agg == AGG_STDDEV_POP;
    bool is_float = type_is_float(c->arg_type);
    u16 count = load_count(f, c, c->count_word);
    struct value v = {0, build_op(f, OP_LT_I64, count, build_int(f, KIND_I64, population ? 1 : 2),
                                  NO_REG, range_bool())};
    u16 first = load_word(f, c, c->count_word, any, true);
    for (i64 i = 0; i < c->parts.count; i++) {
        load_word(f, c, c->parts.items[i].word, any, true);
    }
    i32 shift = is_float ? c->lsb : type_scale(c->arg_type);
    union lit how;
    memset(&how, 0, sizeof how);
    how.i64 = (i64)((u64)(u32)shift << 32 | (u64)c->n2 << 24 | (u64)type_scale(c->type) << 16 |
                    (u64)root << 9 | (u64)population << 8 | (u64)c->spacing);
    if (f->l->status) {
        return v;
    }
    struct op op = {.code = OP_VARIANCE,
                    .a = first,
                    .b = (u16)(c->parts.count + 1),
                    .c = (u16)c->n1,
                    .imm = lower_lit(f->l, KIND_I64, how)};
    if (!is_float) {
        v.reg = build_ctl_new(f, op, KIND_I128, range_of_type(type_decimal(38, 0)), 0);
        return v;
    }
    struct range all = range_of_type(type_of(TYPE_DOUBLE));
    all.may_special = c->nan_word != NO_WORD || (cross && c->nan_word2 != NO_WORD);
    v.reg = build_ctl_new(f, op, KIND_F64, all, 0);
    if (c->nan_word != NO_WORD) {
        v.reg = nan_where(f, c, c->nan_word, c->plus_word, c->minus_word, v.reg);
    }
    if (cross && c->nan_word2 != NO_WORD) {
        v.reg = nan_where(f, c, c->nan_word2, c->plus_word2, c->minus_word2, v.reg);
    }
    return v;
}

static struct value finish_bits(struct builder *f, const struct call_state *c) {
    struct value v = {load_word(f, c, c->parts.items[0].word, range_of_type(c->type), false),
                      c->may_be_null ? no_input(f, c, c->count_word) : (u16)NO_REG};
    v.reg = build_kind(f, v.reg, type_kind(c->type));
    return v;
}

/* A count is at most the rows counted: a narrow range leaves room in the words of a sort. */
static struct range count_range(i32 row_bits) {
    return range_exact(0, (i128)1 << (row_bits < ROW_BITS_MAX ? row_bits : 62));
}

struct value words_finish(struct builder *f, const struct call_state *c, i32 row_bits) {
    switch (c->agg) {
    case AGG_COUNT_STAR:
    case AGG_COUNT:
        return (struct value){load_word(f, c, c->count_word, count_range(row_bits), false), NO_REG};
    case AGG_SUM:
        return finish_sum(f, c, row_bits);
    case AGG_AVG:
        return finish_avg(f, c, row_bits);
    case AGG_BIT_AND:
    case AGG_BIT_OR:
    case AGG_BIT_XOR:
        return finish_bits(f, c);
    case AGG_REGR_SXY:
    case AGG_VAR_SAMP:
    case AGG_VAR_POP:
    case AGG_STDDEV_SAMP:
    case AGG_STDDEV_POP:
        return finish_variance(f, c);
    default:
        return finish_extreme(f, c);
    }
}
