/* key.c: several key columns as one 64-bit key, for grouping and joining.
 *
 * Each column becomes a field: its distance from the least value, a dictionary code, the bits of a
 * float; a nullable one gets an extra value (0) for NULL. Fields are packed into one word while
 * they fit 63 bits. What does not fit takes further words, which are chained by numbering pairs
 * densely (INTERN2), so that a key is always a single i64. After a grouping the fields come back by
 * shift, mask and addition, pairs by UNPAIR. See decision 0001. */
#include "lower/lower_int.h"

#include "codes/loop.h"

enum { WORD_BITS = 63, CODE_BITS = 31 };

u32 key_bits_of(struct range range) {
    u128 span = (u128)range.hi - (u128)range.lo;
    u32 bits = 0;
    while (bits < 128 && span >> bits != 0) {
        bits++;
    }
    return bits;
}

/* Of what is not text. */
static void set_form(struct key_field *f) {
    f->form = f->kind == KIND_B8    ? FIELD_BOOL
              : f->kind == KIND_F32 ? FIELD_F32
              : f->kind == KIND_F64 ? FIELD_F64
                                    : FIELD_EXACT;
    f->range = f->form == FIELD_BOOL ? range_bool() : f->range;
}

struct key_field key_field_of(struct builder *b, struct value v, struct type type) {
    struct key_field f = {.kind = b->regs.items[v.reg].kind,
                          .nullable = v.null != NO_REG,
                          .range = reg_range(b, v.reg),
                          .dict = reg_dict(b, v.reg),
                          .source = -1};
    if (type_kind(type) == KIND_STR) {
        f.form = FIELD_CODE;
        if (!f.dict) {
            f.interner = lower_var(b->l, VAR_INTERN, "strings") + 1;
            f.dict = lower_dict(b->l, (struct dict_ref){NO_VAR, 0, f.interner - 1});
            f.range = range_exact(0, I32_MAX);
        }
    } else {
        set_form(&f);
    }
    f.whole = f.range;
    return f;
}

/* Bits of a field with its NULL value, and whether NULL needs a field of its own. */
static bool size_field(struct lower *l, struct key_field *f) {
    switch (f->form) {
    case FIELD_F64:
        f->bits = 64;
        return f->nullable;
    case FIELD_F32:
        f->bits = 32;
        f->range = range_exact(0, ((i128)1 << 32) - 1);
        break;
    case FIELD_NULL:
        f->bits = 1;
        return false;
    default:
        f->bits = (i32)key_bits_of(f->range);
        break;
    }
    if (f->form == FIELD_EXACT && f->bits >= WORD_BITS && f->kind == KIND_I64) {
        f->bits = 64;
        return f->nullable;
    }
    if (f->form == FIELD_EXACT && f->range.lo > 0 && !f->nullable &&
        key_bits_of(range_exact(0, f->range.hi)) == (u32)f->bits) {
        f->range.lo = 0; /* the same bits without a subtraction */
    }
    if (f->form == FIELD_EXACT && f->bits > WORD_BITS - 1) {
        f->form = FIELD_WIDE;
        f->interner = lower_var(l, VAR_INTERN, "pairs");
        f->bits = CODE_BITS;
        f->range = range_exact(0, I32_MAX);
    }
    if (f->nullable) { /* one value more */
        struct range with_null = f->form == FIELD_EXACT || f->form == FIELD_CODE ||
                                         f->form == FIELD_BOOL || f->form == FIELD_F32
                                     ? f->range
                                     : range_exact(0, I32_MAX);
        with_null.hi += 1;
        f->bits = (i32)key_bits_of(with_null);
    }
    return false;
}

void key_place(struct lower *l, struct key_layout *layout) {
    struct key_field *fields = NEW_ARRAY(l->arena, struct key_field, layout->count * 2 + 1);
    i32 count = layout->count;
    memcpy(fields, layout->fields, sizeof *fields * (size_t)count);
    i32 total = count;
    for (i32 i = 0; i < count; i++) {
        if (size_field(l, &fields[i])) {
            struct key_field null = {.form = FIELD_NULL, .kind = KIND_B8, .bits = 1, .source = i};
            fields[total++] = null;
        }
    }
    u32 word = 0;
    i32 used = 0;
    for (i32 i = 0; i < total; i++) {
        bool full = used > 0 && used + fields[i].bits > WORD_BITS;
        word += full;
        used = full ? 0 : used;
        fields[i].word = word;
        used += fields[i].bits;
        ASSERT(used <= WORD_BITS || used == fields[i].bits); /* or it is alone in its word */
    }
    layout->fields = fields;
    layout->count = total;
    layout->word_count = (i32)word + 1;
    layout->pairs = NEW_ARRAY(l->arena, u32, layout->word_count);
    for (i32 i = 1; i < layout->word_count; i++) {
        layout->pairs[i] = lower_var(l, VAR_INTERN, "pairs");
    }
    layout->bits = layout->word_count > 1 ? CODE_BITS + 1 : used;
}

/* 128-bit value to a dense number, by its low 64 bits and the rest. */
static u16 wide_number(struct builder *b, u32 interner, u16 reg, bool find_only) {
    u16 two32 = build_int(b, KIND_I128, (i128)1 << 32);
    struct range r32 = range_exact(0, ((i128)1 << 32) - 1);
    struct range r64 = range_exact(I64_MIN, I64_MAX);
    reg = build_kind(b, reg, KIND_I128);
    u16 low = build_op(b, OP_LOW_I128, reg, NO_REG, NO_REG, r32);
    u16 rest = lower_sub_exact(b, reg, build_kind(b, low, KIND_I128));
    rest = build_safe(b, OP_DIV_I128, build_kind(b, rest, KIND_I128), two32, NO_REG,
                      range_exact(-((i128)1 << 95), (i128)1 << 95));
    u16 mid = build_op(b, OP_LOW_I128, rest, NO_REG, NO_REG, r32);
    u16 high = build_op(b, OP_HIGH_I128, rest, NO_REG, NO_REG, r64);
    u16 word = build_op(b, OP_SHL_I64, mid, build_int(b, KIND_I64, 32), NO_REG, r64);
    word = build_op(b, OP_BITOR_I64, word, low, NO_REG, r64);
    struct op op = {.code = OP_INTERN2, .a = word, .b = high, .c = find_only, .imm = interner};
    return build_ctl(b, op, KIND_I32, range_exact(find_only ? -1 : 0, I32_MAX), 0);
}

static void drop_absent(struct builder *b, u16 number, u16 *valid) {
    u16 there = build_op(b, OP_GE_I32, number, build_i32(b, 0), NO_REG, range_bool());
    if (valid) {
        *valid = *valid == NO_REG ? there : build_and(b, *valid, there);
    } else {
        build_plain(b, OP_FILTER, there, 0);
    }
}

/* A field as an exact register in [0, 2^bits), or the raw 64-bit word. */
static u16 field_reg(struct builder *b, const struct key_field *f, const struct value *values,
                     i32 i, bool find_only, u16 *valid) {
    if (f->form == FIELD_NULL) {
        u16 null = values[f->source].null;
        return null == NO_REG ? build_i32(b, 0) : build_kind(b, null, KIND_I32);
    }
    struct value v = values[i];
    u16 reg = v.reg;
    switch (f->form) {
    case FIELD_CODE:
        reg = f->interner ? string_intern(b, reg, f->interner - 1, find_only) : reg;
        break;
    case FIELD_BOOL:
        reg = build_kind(b, reg, KIND_I32);
        break;
    case FIELD_F32:
        reg = build_op(b, OP_KEY_F32, reg, NO_REG, NO_REG, range_exact(I64_MIN, I64_MAX));
        reg = build_op(b, OP_LOW_I64, reg, NO_REG, NO_REG, f->range);
        break;
    case FIELD_F64:
        reg = build_op(b, OP_KEY_F64, reg, NO_REG, NO_REG, range_exact(I64_MIN, I64_MAX));
        break;
    case FIELD_WIDE:
        reg = wide_number(b, f->interner, reg, find_only);
        break;
    default:
        break;
    }
    bool numbered = f->form == FIELD_WIDE || (f->form == FIELD_CODE && f->interner);
    if (find_only && numbered && v.null != NO_REG && f->nullable) { /* NULL is never absent */
        u16 zero = build_int(b, reg_kind(b, reg), 0);
        drop_absent(b, lower_guard(b, reg, v.null, zero), valid);
    } else if (find_only && numbered) {
        drop_absent(b, reg, valid);
    }
    if (b->l->status) {
        return 0;
    }
    if (f->bits == 64) { /* the raw word; one value for every NULL */
        reg = build_kind(b, reg, KIND_I64);
        return f->nullable ? lower_guard(b, reg, v.null, build_int(b, KIND_I64, 0)) : reg;
    }
    i128 lo = f->form == FIELD_EXACT ? f->range.lo : 0;
    i128 base = lo - (f->nullable ? 1 : 0);
    if (base != 0) {
        reg = lower_sub_exact(b, reg, build_exact(b, base));
    }
    if (f->nullable) {
        reg = lower_guard(b, reg, v.null, build_int(b, reg_kind(b, reg), 0));
    }
    if (!b->l->status && f->bits <= CODE_BITS) {
        b->regs.items[reg].range =
            range_cut(reg_range(b, reg), range_exact(0, ((i128)1 << f->bits) - 1));
    }
    return build_kind(b, reg, f->bits <= CODE_BITS ? KIND_I32 : KIND_I64);
}

/* acc * 2^bits + field; in 32 bits while everything fits. */
static u16 append_field(struct builder *b, u16 acc, i32 acc_bits, u16 field, i32 bits) {
    if (acc_bits + bits <= CODE_BITS) {
        acc = build_kind(b, acc, KIND_I32);
        struct range r = range_exact(0, ((i128)1 << (acc_bits + bits)) - 1);
        u16 high = build_op(b, OP_MUL_I32, acc, build_i32(b, (i32)1 << bits), NO_REG, r);
        return build_op(b, OP_ADD_I32, high, build_kind(b, field, KIND_I32), NO_REG, r);
    }
    struct range r = range_exact(0, I64_MAX);
    acc = build_kind(b, acc, KIND_I64);
    field = build_kind(b, field, KIND_I64);
    u16 high = build_op(b, OP_SHL_I64, acc, build_int(b, KIND_I64, bits), NO_REG, r);
    return build_op(b, OP_BITOR_I64, high, field, NO_REG, r);
}

/* Only one value, known from the range: nothing to pack. */
static bool is_fixed(const struct key_field *f) {
    return f->form == FIELD_EXACT && f->bits == 0;
}

u16 key_pack(struct builder *b, const struct key_layout *layout, const struct value *values,
             bool find_only, u16 *valid) {
    u16 chain = NO_REG;
    i32 at = 0;
    for (u32 word = 0; word < (u32)layout->word_count && !b->l->status; word++) {
        u16 acc = NO_REG;
        i32 bits = 0;
        for (; at < layout->count && layout->fields[at].word == word; at++) {
            const struct key_field *f = &layout->fields[at];
            if (is_fixed(f)) {
                continue;
            }
            u16 reg = field_reg(b, f, values, at, find_only, valid);
            acc = acc == NO_REG ? reg : append_field(b, acc, bits, reg, f->bits);
            bits += f->bits;
        }
        acc = acc == NO_REG ? build_int(b, KIND_I64, 0) : build_kind(b, acc, KIND_I64);
        if (chain == NO_REG) {
            chain = acc;
            continue;
        }
        struct op op = {.code = OP_INTERN2,
                        .a = build_kind(b, chain, KIND_I64),
                        .b = acc,
                        .c = find_only,
                        .imm = layout->pairs[word]};
        chain = build_ctl(b, op, KIND_I32, range_exact(find_only ? -1 : 0, I32_MAX), 0);
        if (find_only) {
            drop_absent(b, chain, valid);
        }
    }
    return b->l->status ? 0 : build_kind(b, chain, KIND_I64);
}

/* unpacking */

static u16 unpair(struct builder *b, u32 interner, u16 number, u16 half) {
    struct op op = {.code = OP_UNPAIR,
                    .a = build_kind(b, number, KIND_I32),
                    .b = half,
                    .c = NO_REG,
                    .imm = interner};
    return build_ctl(b, op, KIND_I64, range_exact(I64_MIN, I64_MAX), 0);
}

static u16 wide_value(struct builder *b, u32 interner, u16 number, struct range all) {
    struct range r32 = range_exact(0, ((i128)1 << 32) - 1);
    u16 word = unpair(b, interner, number, 0);
    u16 high = unpair(b, interner, number, 1);
    u16 low = build_op(b, OP_LOW_I64, word, NO_REG, NO_REG, r32);
    u16 mid = build_op(b, OP_SHR_I64, word, build_int(b, KIND_I64, 32), NO_REG, r32);
    u16 top =
        build_op(b, OP_JOIN_I64, high, mid, NO_REG, range_exact(-((i128)1 << 95), (i128)1 << 95));
    u16 scaled = build_op(b, OP_MUL_I128, top, build_int(b, KIND_I128, (i128)1 << 32), NO_REG, all);
    return build_op(b, OP_ADD_I128, scaled, build_kind(b, low, KIND_I128), NO_REG, all);
}

static void narrow_range(struct builder *b, u16 reg, struct range range) {
    if (!b->l->status && !build_is_const(b, reg, NULL)) {
        b->regs.items[reg].range = range;
    }
}

/* The value in a field that holds it from 0 on. */
static u16 field_value(struct builder *b, const struct key_field *f, u16 field) {
    switch (f->form) {
    case FIELD_CODE: {
        u16 code = build_kind(b, field, KIND_I32);
        if (!b->l->status) {
            b->regs.items[code].dict = f->dict;
            narrow_range(b, code, range_exact(0, f->whole.hi));
        }
        return code;
    }
    case FIELD_BOOL:
        return build_op(b, OP_NE_I64, field, build_int(b, KIND_I64, 0), NO_REG, range_bool());
    case FIELD_F32:
        return build_op(b, OP_UNKEY_F32, field, NO_REG, NO_REG, range_of_type(type_of(TYPE_REAL)));
    case FIELD_F64:
        return build_op(b, OP_UNKEY_F64, field, NO_REG, NO_REG,
                        range_of_type(type_of(TYPE_DOUBLE)));
    case FIELD_WIDE:
        return wide_value(b, f->interner, field, f->whole);
    default: {
        narrow_range(b, field, range_exact(0, f->range.hi - f->range.lo));
        u16 reg = field;
        if (f->range.lo != 0) {
            reg = lower_add_exact(b, field, build_exact(b, f->range.lo));
        }
        return build_kind(b, reg, range_kind(f->range));
    }
    }
}

/* Bits [shift, shift + bits) of a word. */
static u16 cut_field(struct builder *b, u16 word, i32 shift, i32 bits, bool topmost) {
    struct range r = range_exact(0, ((i128)1 << bits) - 1);
    if (shift > 0) {
        word = build_op(b, OP_SHR_I64, word, build_int(b, KIND_I64, shift), NO_REG,
                        range_exact(0, I64_MAX));
    }
    if (topmost) {
        narrow_range(b, word, r);
        return word;
    }
    return build_op(b, OP_BITAND_I64, word, build_int(b, KIND_I64, ((i64)1 << bits) - 1), NO_REG,
                    r);
}

static struct value unpack_field(struct builder *b, const struct key_field *f, u16 field) {
    struct value v = {0, NO_REG};
    if (is_fixed(f)) {
        v.reg = build_exact(b, f->range.lo);
        return v;
    }
    if (f->bits == 64 && f->form == FIELD_EXACT) {
        v.reg = field;
        return v;
    }
    if (f->nullable && f->bits < 64) { /* 0 is NULL; others count from 1 */
        v.null = build_op(b, OP_EQ_I64, field, build_int(b, KIND_I64, 0), NO_REG, range_bool());
        field = build_sel(b, v.null, build_int(b, KIND_I64, 1), field);
        field = lower_sub_exact(b, field, build_int(b, KIND_I64, 1));
    }
    v.reg = field_value(b, f, field);
    if (f->form == FIELD_BOOL) {
        v = lower_bool(b, v.reg, v.null);
    }
    return v;
}

void key_unpack(struct builder *b, const struct key_layout *layout, u16 key, struct value *out) {
    u16 *words = NEW_ARRAY(b->l->arena, u16, layout->word_count);
    u16 number = key;
    for (i32 w = layout->word_count - 1; w > 0; w--) {
        words[w] = unpair(b, layout->pairs[w], number, 1);
        number = unpair(b, layout->pairs[w], number, 0);
    }
    words[0] = number;
    i32 shift = 0;
    for (i32 i = layout->count; i-- > 0 && !b->l->status;) { /* the last field lies lowest */
        const struct key_field *f = &layout->fields[i];
        bool last = i + 1 == layout->count || layout->fields[i + 1].word != f->word;
        shift = last ? 0 : shift;
        bool topmost = i == 0 || layout->fields[i - 1].word != f->word;
        u16 field =
            f->bits == 64 ? words[f->word] : cut_field(b, words[f->word], shift, f->bits, topmost);
        shift += f->bits;
        if (f->form == FIELD_NULL) {
            out[i] = (struct value){
                build_op(b, OP_NE_I64, field, build_int(b, KIND_I64, 0), NO_REG, range_bool()),
                NO_REG};
        } else {
            out[i] = unpack_field(b, f, field);
        }
    }
    for (i32 i = 0; i < layout->count && !b->l->status; i++) {
        if (layout->fields[i].form == FIELD_NULL) {
            out[layout->fields[i].source].null = out[i].reg;
        }
    }
}

/* joins */

/* Rows with a NULL key match nothing. */
static struct value not_null(struct builder *b, struct value v) {
    if (!b->l->status && v.null != NO_REG) {
        build_plain(b, OP_FILTER, build_not(b, v.null), 0);
        v.null = NO_REG;
    }
    return v;
}

static struct value left_key(struct join_keys *k, struct builder *left, struct value x, bool safe) {
    if (safe || x.null == NO_REG || left->l->status) {
        return x;
    }
    if (!k->keep_left) {
        return not_null(left, x);
    }
    u16 there = build_not(left, x.null);
    k->valid = k->valid == NO_REG ? there : build_and(left, k->valid, there);
    x.null = NO_REG;
    return x;
}

static struct value right_key(struct join_keys *k, struct builder *right, struct value y,
                              bool safe) {
    if (safe || y.null == NO_REG || right->l->status) {
        return y;
    }
    if (!k->keep_right) {
        return not_null(right, y);
    }
    k->right_null = build_null_or(right, k->right_null, y.null);
    y.null = NO_REG;
    return y;
}

static struct key_field join_field(struct lower *l, struct builder *left, struct value x,
                                   struct builder *right, struct value y, struct type type) {
    struct key_field f = {.kind = right->regs.items[y.reg].kind,
                          .nullable = x.null != NO_REG || y.null != NO_REG,
                          .source = -1};
    f.range = range_union(reg_range(left, x.reg), reg_range(right, y.reg));
    if (type_kind(type) == KIND_STR) {
        f.form = FIELD_CODE;
        f.dict = reg_dict(right, y.reg);
        if (f.dict == 0 || f.dict != reg_dict(left, x.reg)) {
            f.interner = lower_var(l, VAR_INTERN, "strings") + 1;
            f.dict = 0;
            f.range = range_exact(0, I32_MAX);
        }
    } else {
        set_form(&f);
        if (f.form == FIELD_EXACT) {
            f.kind = (u8)kind_wider((enum kind)f.kind, reg_kind(left, x.reg));
        }
    }
    return f;
}

void key_join_prepare(struct join_keys *k, struct builder *left, struct builder *right,
                      const struct rel *rel) {
    struct lower *l = left->l;
    i32 count = (i32)rel->join.left_keys.count;
    k->left = NEW_ARRAY(l->arena, struct value, count * 2 + 1);
    k->right = NEW_ARRAY(l->arena, struct value, count * 2 + 1);
    k->layout.fields = NEW_ARRAY(l->arena, struct key_field, count + 1);
    k->layout.count = count;
    k->valid = NO_REG;
    k->right_null = NO_REG;
    for (i32 i = 0; i < count && !l->status; i++) {
        struct type tx = rel->join.left_keys.items[i]->type;
        struct type ty = rel->join.right_keys.items[i]->type;
        i32 scale = MAX_OF(type_scale(tx), type_scale(ty));
        bool safe = i < rel->join.null_safe.count && rel->join.null_safe.items[i];
        struct value x = left_key(k, left, lower_expr(left, rel->join.left_keys.items[i]), safe);
        struct value y =
            right_key(k, right, lower_expr(right, rel->join.right_keys.items[i]), safe);
        x.reg = lower_order(left, x.reg, tx);
        y.reg = lower_order(right, y.reg, ty);
        x.reg = lower_scale(left, x.reg, type_scale(tx), scale);
        y.reg = lower_scale(right, y.reg, type_scale(ty), scale);
        k->left[i] = x;
        k->right[i] = y;
        if (!l->status) {
            k->layout.fields[i] = join_field(l, left, x, right, y, ty);
        }
    }
    if (l->status) {
        return;
    }
    const struct key_field *first = &k->layout.fields[0];
    bool exact = first->form == FIELD_EXACT || (first->form == FIELD_CODE && !first->interner);
    k->raw = count == 1 && exact && !first->nullable &&
             range_within(first->range, range_exact(I64_MIN, I64_MAX));
    if (k->raw) {
        k->range = reg_range(right, k->right[0].reg);
        return;
    }
    k->range = range_exact(0, 0);
    if (count > 0) {
        key_place(l, &k->layout);
        k->range = k->layout.bits >= 64 ? range_exact(I64_MIN, I64_MAX)
                                        : range_exact(0, ((i128)1 << k->layout.bits) - 1);
    }
}

u16 key_join_pack(struct builder *b, struct join_keys *k, bool is_left) {
    const struct value *values = is_left ? k->left : k->right;
    if (b->l->status || k->layout.count == 0) {
        return b->l->status ? 0 : build_int(b, KIND_I64, 0);
    }
    if (k->raw) {
        return build_kind(b, values[0].reg, KIND_I64);
    }
    return key_pack(b, &k->layout, values, is_left, is_left && k->keep_left ? &k->valid : NULL);
}

struct packed_field *key_join_fields(struct lower *l, const struct join_keys *k, u32 *out_count) {
    const struct key_layout *layout = &k->layout;
    *out_count = 0;
    if (k->raw || layout->count < 2 || layout->word_count != 1) {
        return NULL;
    }
    struct packed_field *fields = NEW_ARRAY(l->arena, struct packed_field, layout->count);
    i32 shift = 0;
    for (i32 i = layout->count; i-- > 0;) { /* the last field lies lowest */
        const struct key_field *f = &layout->fields[i];
        if (is_fixed(f)) {
            continue;
        }
        fields[(*out_count)++] = (struct packed_field){(u8)shift, (u8)f->bits};
        shift += f->bits;
    }
    return fields;
}
