/* aggregate.c: grouping.
 *
 * The input pipeline ends in a sink that keeps a row of 64-bit words per key, or in several, one for
 * each aggregation of that input (agg_scan.c). A second pipeline
 * over the finished groups unpacks the key and turns words into the aggregates' values
 * (agg_words.c).
 *
 * A key that others decide (the plan says so) and that is read from a joined variable is not
 * packed: a word keeps the row of the variable, and the value is read there again. So grouping by a
 * customer's number, name and address never looks at the texts.
 *
 * Some aggregates need more than words: the order of strings that are not codes is known only when
 * all of them are, and string_agg, percentiles and the mode need their rows in order. Then key and
 * arguments are materialised first and the aggregation starts from there; each ordered aggregate
 * sorts its own columns by key, is folded to a row a group, and joins the groups by an index. */
#include "lower/agg_int.h"

#include "codes/op.h"

struct ordered { /* an aggregate that needs its rows in order */
    const struct agg_call *call;
    struct value arg, arg2;
    struct value *order;
    u32 first_col; /* of the materialised rows: arg, arg2, order */
    u32 index;
    struct range range;
};

static const u8 agg_is_ordered[AGG_END] = {
#define WORDS 0
#define PARTS 0
#define ORDERED 1
#define X(A, name, text, arguments, how, doc) how,
    WF_AGGS(X, )
#undef X
#undef WORDS
#undef PARTS
#undef ORDERED
};

static bool is_ordered(const struct agg_state *s, i64 i) {
    return s->ordered[i].call != NULL;
}

static void order_call(struct agg_state *s, i64 i, const struct agg_call *call) {
    struct ordered *o = &s->ordered[i];
    struct builder *b = s->w.b;
    o->call = call;
    o->arg = words_input(b, call->arg, call->filter);
    o->arg2 = (struct value){NO_REG, NO_REG};
    if (call->arg2) {
        o->arg2 = words_input(b, call->arg2, call->filter);
    }
    o->order = NEW_ARRAY(s->l->arena, struct value, call->order.count + 1);
    for (i64 k = 0; k < call->order.count; k++) {
        o->order[k] = words_input(b, call->order.items[k].expr, call->filter);
    }
    s->any_ordered = true;
}

/* Equal intervals may be written differently, and a zero may have a sign: the key is what they
 * share, and a word keeps the least form, so that the group shows a value that was there. */
static bool has_form(const struct agg_state *s, i32 i) {
    return s->place[i] >= 0 && s->formed[i];
}

/* Whether key i may be -0: not a column of a table that is known to have none. */
static bool may_be_minus_zero(const struct agg_state *s, i32 i) {
    const struct expr *expr = s->rel->agg.keys.items[i];
    const struct builder *b = s->w.b;
    bool plain = expr->kind == EXPR_COL && b->source.kind == SOURCE_TABLE &&
                 bind_at(b, expr->col)->kind == BIND_SOURCE;
    return !plain || bind_at(b, expr->col)->range.may_special;
}

static void split_form(struct agg_state *s, i32 i) {
    struct builder *b = s->w.b;
    struct type type = s->rel->agg.keys.items[i]->type;
    bool real = type_is_float(type) && may_be_minus_zero(s, i);
    s->formed[i] = real || type.id == TYPE_INTERVAL;
    if (!has_form(s, i) || s->l->status) {
        return;
    }
    struct value *key = &s->keys[i];
    s->forms[i] = (struct value){NO_REG, NO_REG};
    if (real) { /* of its opposite: 0 comes before -0 */
        bool narrow = reg_kind(b, key->reg) == KIND_F32;
        u16 opposite = build_op(b, narrow ? OP_NEG_F32 : OP_NEG_F64, key->reg, NO_REG, NO_REG,
                                reg_range(b, key->reg));
        s->forms[i].reg = build_op(b, narrow ? OP_ORD_F32 : OP_ORD_F64, opposite, NO_REG, NO_REG,
                                   range_exact(I64_MIN, I64_MAX));
        return;
    }
    u16 raw = build_kind(b, key->reg, KIND_I128);
    s->forms[i].reg =
        build_op(b, OP_IV_FORM, raw, NO_REG, NO_REG, range_exact(0, ((i128)1 << 56) - 1));
    key->reg = lower_order(b, raw, type_of(TYPE_INTERVAL));
}

static struct value join_form(struct agg_state *s, struct builder *f, i32 i, struct value v) {
    struct op op = {.code = OP_LOAD, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    struct type type = s->rel->agg.keys.items[i]->type;
    op.imm = build_source_col(f, (u32)s->row_words[i] + 1);
    if (type_is_float(type)) {
        bool real = type.id == TYPE_REAL;
        struct range range = reg_range(f, v.reg);
        u16 form = build_ctl(f, op, KIND_I64, range_exact(I64_MIN, I64_MAX), 0);
        u16 opposite =
            build_op(f, real ? OP_UNORD_F32 : OP_UNORD_F64, form, NO_REG, NO_REG, range);
        v.reg = build_op(f, real ? OP_NEG_F32 : OP_NEG_F64, opposite, NO_REG, NO_REG, range);
        return v;
    }
    u16 form = build_ctl(f, op, KIND_I64, range_exact(0, ((i128)1 << 56) - 1), 0);
    v.reg = build_op(f, OP_IV_JOIN, build_kind(f, v.reg, KIND_I128), form, NO_REG,
                     range_of_type(type_of(TYPE_INTERVAL)));
    return v;
}

/* Least and greatest texts of more groups than memory has room for: an interner would have them in no order, sorted
 * rows have their texts beside them. */
static bool texts_by_sort(const struct agg_state *s, const struct call_state *c) {
    enum { TEXT_BYTES = 24, MEMORY_SHARE = 8 }; /* a text with its offset; those of groups may take so much */
    i64 memory = s->l->limits->memory_bytes;
    return memory && s->key_count > 0 && words_need_ranks(s->w.b, c) &&
           s->rel->rows > memory / MEMORY_SHARE / TEXT_BYTES;
}

static void lower_inputs(struct agg_state *s) {
    const struct rel *rel = s->rel;
    for (i32 i = 0; i < s->key_count; i++) {
        if (s->place[i] >= 0) {
            s->keys[i] = lower_expr(s->w.b, rel->agg.keys.items[i]);
            split_form(s, i);
        }
    }
    for (i64 i = 0; i < rel->agg.calls.count && !s->l->status; i++) {
        struct call_state *c = &s->calls[i];
        const struct agg_call *call = &rel->agg.calls.items[i];
        c->agg = call->agg;
        c->position = call->position;
        c->grouped = s->key_count > 0;
        c->first_col = 1; /* behind the key */
        c->type = s->l->plan->cols.items[call->col].type;
        c->arg_type = call->arg ? call->arg->type : c->type;
        if (agg_is_ordered[call->agg]) {
            order_call(s, i, call);
            continue;
        }
        c->arg = words_input(s->w.b, call->arg, call->filter);
        c->arg2 = (struct value){NO_REG, NO_REG};
        if (call->arg2) {
            c->arg2 = words_input(s->w.b, call->arg2, call->filter);
        }
        if (words_too_wide(s->w.b, c) || texts_by_sort(s, c)) { /* found by sorting, too */
            order_call(s, i, call);
        }
    }
}

static bool needs_ranks_of_strings(const struct agg_state *s) {
    for (i64 i = 0; i < s->rel->agg.calls.count; i++) {
        if (!is_ordered(s, i) && words_need_ranks(s->w.b, &s->calls[i])) {
            return true;
        }
    }
    return false;
}

/* The columns of the materialised rows, and where their values go afterwards. */
struct columns {
    VEC(struct out_col) cols;
    VEC(struct value *) to;
    VEC(u32) at; /* of each of them: its column */
};

static u32 add_column(struct lower *l, struct columns *cs, struct value *v, struct type type) {
    struct out_col col = {.value = *v, .type = type};
    VEC_PUSH(l->arena, &cs->cols, col);
    VEC_PUSH(l->arena, &cs->to, v);
    VEC_PUSH(l->arena, &cs->at, (u32)cs->cols.count - 1);
    return (u32)cs->cols.count - 1;
}

/* The same where it may be a column that is there. */
static void add_input(struct lower *l, struct columns *cs, struct value *v, struct type type) {
    for (i64 i = 0; i < cs->cols.count; i++) {
        const struct value *has = &cs->cols.items[i].value;
        if (has->reg == v->reg && has->null == v->null) {
            VEC_PUSH(l->arena, &cs->to, v);
            VEC_PUSH(l->arena, &cs->at, (u32)i);
            return;
        }
    }
    add_column(l, cs, v, type);
}

/* Only the least (greatest) text of a key decides, which those who number them may use. NULLs are
 * a key of their own, so that what lies under them beats no text. */
static u16 intern_best(struct agg_state *s, const struct call_state *c, u16 key, u32 values) {
    struct builder *b = s->w.b;
    bool wide = s->key_count > 0 && s->layout.bits >= 64; /* no word is free for NULL */
    if (s->l->status || (wide && c->arg.null != NO_REG)) {
        return string_intern(b, c->arg.reg, values, false);
    }
    key = build_kind(b, key, KIND_I64);
    struct op op = {.code = OP_INTERN,
                    .a = c->arg.reg,
                    .b = c->agg == AGG_MIN ? INTERN_LEAST : INTERN_GREATEST,
                    .c = lower_guard(b, key, c->arg.null, build_int(b, KIND_I64, -1)),
                    .imm = values};
    return build_ctl(b, op, KIND_I32, range_exact(0, I32_MAX), 0);
}

static void add_word_column(struct agg_state *s, struct columns *cs, struct call_state *c,
                            u16 key) {
    struct lower *l = s->l;
    struct builder *b = s->w.b;
    if (c->arg.reg == NO_REG && c->arg.null == NO_REG) {
        return;
    }
    if (c->arg.reg == NO_REG) { /* count(*) with a filter */
        c->arg.reg = build_bool(b, false);
        c->arg_type = type_of(TYPE_BOOLEAN);
    }
    if (words_need_ranks(b, c)) {
        u32 values = lower_var(l, VAR_INTERN, "strings");
        u32 dict = lower_dict(l, (struct dict_ref){NO_VAR, 0, values});
        c->arg.reg = intern_best(s, c, key, values);
        b->regs.items[c->arg.reg].dict = l->status ? 0 : dict;
    }
    add_input(l, cs, &c->arg, c->arg_type);
    if (c->arg2.reg != NO_REG) {
        add_input(l, cs, &c->arg2, c->arg_type);
    }
}

static void add_ordered_columns(struct agg_state *s, struct columns *cs, struct ordered *o) {
    struct lower *l = s->l;
    struct builder *b = s->w.b;
    struct type type = o->call->arg->type;
    if (o->call->agg == AGG_STRING_AGG) {
        o->arg.reg = string_view(b, o->arg.reg);
    }
    ASSERT(o->call->agg != AGG_PERCENTILE_CONT || type.id == TYPE_DOUBLE ||
           type.id == TYPE_INTERVAL);
    o->first_col = add_column(l, cs, &o->arg, type);
    if (o->call->arg2) {
        struct type type2 = o->call->arg2->type;
        if (o->call->agg == AGG_STRING_AGG) {
            o->arg2.reg = string_view(b, o->arg2.reg);
        } else {
            o->arg2 = lower_cast(b, o->arg2, type2, type_of(TYPE_DOUBLE));
            type2 = type_of(TYPE_DOUBLE);
        }
        add_column(l, cs, &o->arg2, type2);
    }
    for (i64 k = 0; k < o->call->order.count; k++) {
        add_column(l, cs, &o->order[k], o->call->order.items[k].expr->type);
    }
}

/* Ends the input's pipeline with key and arguments in a variable; goes on over that. */
static u32 materialise_inputs(struct agg_state *s, u16 *key) {
    struct lower *l = s->l;
    struct columns cs = {0};
    struct value packed = {*key == NO_REG ? build_int(s->w.b, KIND_I64, 0) : *key, NO_REG};
    add_column(l, &cs, &packed, type_of(TYPE_BIGINT));
    for (i64 i = 0; i < s->rel->agg.calls.count && !l->status; i++) {
        if (is_ordered(s, i)) {
            add_ordered_columns(s, &cs, &s->ordered[i]);
        } else {
            add_word_column(s, &cs, &s->calls[i], packed.reg);
        }
    }
    struct value *rows = NEW_ARRAY(l->arena, struct value, s->key_count + 1);
    for (i32 i = 0; i < s->key_count && !l->status; i++) {
        rows[i] = (struct value){s->depends[i].row_reg, NO_REG};
        if (s->place[i] < 0) {
            add_input(l, &cs, &rows[i], type_of(TYPE_BIGINT));
        } else if (has_form(s, i)) {
            add_column(l, &cs, &s->forms[i], type_of(TYPE_BIGINT));
        }
    }
    u32 var = lower_rows(s->w.b, "inputs", cs.cols.items, (u32)cs.cols.count, false, -1);
    s->w.b = lower_over(l, var, rel_input(s->rel)->rows);
    for (i64 i = 0; i < cs.to.count && !l->status; i++) {
        *cs.to.items[i] = lower_source_value(s->w.b, cs.at.items[i]);
    }
    for (i32 i = 0; i < s->key_count && !l->status; i++) {
        s->depends[i].row_reg = rows[i].reg;
    }
    *key = *key == NO_REG ? *key : packed.reg;
    return var;
}

/* Whether the inputs are split by key before they are grouped. */
static bool splits(const struct agg_state *s) {
    struct lower *l = s->l;
    const struct rel *rel = s->rel;
    u32 calls = (u32)rel->agg.calls.count;
    if (l->status || s->key == NO_REG || rel->agg.in_runs) {
        return false;
    }
    struct parts_groups of = {.rows = rel_input(rel)->rows,
                              .groups = rel->rows,
                              .range = reg_range(s->w.b, s->key),
                              .input_count = calls,
                              .word_count = calls};
    return parts_for_groups(l, s->w.b, &of);
}

static void split_inputs(struct agg_state *s) {
    struct lower *l = s->l;
    s->w.b->ends = "rows are split by key";
    u32 var = materialise_inputs(s, &s->key);
    if (!l->status) {
        struct step *step = parts_step(l, var, reg_range(s->w.b, s->key));
        step->groups = MAX_OF(s->rel->rows, 1);
        step->word_count = (u32)s->rel->agg.calls.count;
    }
}

/* keys that depend on others */

/* Whether key i is decided by others and found again at a row of a joined variable. */
static bool key_depends(const struct agg_state *s, i32 i) {
    const struct expr *expr = s->rel->agg.keys.items[i];
    return s->rel->agg.implied.count > 0 && s->rel->agg.implied.items[i] &&
           expr->kind == EXPR_COL && bind_at(s->w.b, expr->col)->kind == BIND_VAR;
}

/* Before any key is lowered, so that nobody loads what is not needed. */
static void find_dependent(struct agg_state *s) {
    const struct rel *rel = s->rel;
    bool plain = true;
    for (i64 i = 0; i < rel->agg.calls.count; i++) {
        const struct agg_call *call = &rel->agg.calls.items[i];
        bool text = call->arg && type_kind(call->arg->type) == KIND_STR;
        plain = plain && !agg_is_ordered[call->agg] && !text && !s->l->status;
    }
    for (i32 i = 0; i < s->key_count; i++) {
        s->place[i] = 0;
    }
    for (i32 i = 0; i < s->key_count && plain; i++) {
        if (key_depends(s, i)) {
            s->place[i] = -1;
            s->depends[i] = *bind_at(s->w.b, rel->agg.keys.items[i]->col);
        }
    }
}

static void keep_rows(struct agg_state *s) {
    for (i32 i = 0; i < s->key_count && !s->l->status; i++) {
        if (s->place[i] < 0) {
            s->row_words[i] = words_least(&s->w, s->depends[i].row_reg);
        } else if (has_form(s, i)) {
            u16 form = build_kind(s->w.b, s->forms[i].reg, KIND_I64);
            s->row_words[i] = words_least(&s->w, form);
        }
    }
}

/* The value of a key at the row its group kept. */
static struct value dependent_value(struct agg_state *s, struct builder *f, i32 i) {
    u32 col = s->rel->agg.keys.items[i]->col;
    struct op op = {.code = OP_LOAD, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    op.imm = build_source_col(f, (u32)s->row_words[i] + 1);
    struct binding bind = s->depends[i];
    bind.row_reg = build_ctl(f, op, KIND_I64, build_rows_range(s->l, bind.var, -1), 0);
    *bind_at(f, col) = bind;
    return lower_col(f, col);
}

static u16 pack_keys(struct agg_state *s) {
    struct lower *l = s->l;
    i32 count = 0;
    if (s->key_count == 0 || l->status) {
        return NO_REG;
    }
    s->layout.fields = NEW_ARRAY(l->arena, struct key_field, s->key_count);
    for (i32 i = 0; i < s->key_count; i++) {
        if (s->place[i] < 0) {
            continue;
        }
        struct type type = s->rel->agg.keys.items[i]->type;
        type = type.id == TYPE_INTERVAL ? type_decimal(38, 0) : type; /* what equal ones share */
        s->layout.fields[count] = key_field_of(s->w.b, s->keys[i], type);
        s->keys[count] = s->keys[i];
        s->place[i] = count++;
    }
    s->layout.count = count;
    key_place(l, &s->layout);
    return key_pack(s->w.b, &s->layout, s->keys, false, NULL);
}

static u32 agg_sink(struct agg_state *s, u16 key) {
    struct lower *l = s->l;
    u32 number = lower_var(l, VAR_AGG, "groups");
    struct var *var = &l->vars.items[number];
    struct var_info *info = &l->var_infos.items[number];
    u32 count = (u32)s->w.ops.count;
    var->col_count = count + 1;
    var->types = NEW_ARRAY(l->arena, struct type, count + 1);
    var->kinds = NEW_ARRAY(l->arena, u8, count + 1);
    var->dicts = NEW_ARRAY(l->arena, u32, count + 1);
    info->ranges = NEW_ARRAY(l->arena, struct range, count + 1);
    info->nullable = NEW_ARRAY(l->arena, b8, count + 1);
    info->max_rows = key == NO_REG ? 1 : s->w.b->max_rows;
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
                        .words = s->w.ops.items,
                        .word_regs = s->w.regs.items,
                        .groups = s->rel->rows,
                        .in_runs = s->rel->agg.in_runs,
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(s->w.b, sink);
    build_label(s->w.b, rel_names[REL_AGG]);
    return number;
}

/* ordered aggregates */

/* Its rows by key and order: key, argument, second argument, order keys. */
static u32 ordered_rows(struct agg_state *s, struct ordered *o, u32 inputs, u32 *out_count) {
    struct lower *l = s->l;
    struct builder *b = lower_over(l, inputs, rel_input(s->rel)->rows);
    i64 order_count = o->call->order.count;
    u32 count = 2 + (o->call->arg2 ? 1u : 0u) + (u32)order_count;
    struct out_col *cols = NEW_ARRAY(l->arena, struct out_col, count);
    for (u32 i = 0; i < count && !l->status; i++) {
        u32 from = i == 0 ? 0 : o->first_col + i - 1;
        cols[i].value = lower_source_value(b, from);
        cols[i].type = l->vars.items[inputs].types[from];
    }
    if (!l->status && cols[1].value.null != NO_REG) {
        build_plain(b, OP_FILTER, build_not(b, cols[1].value.null), 0);
        cols[1].value.null = NO_REG;
    }
    build_label(b, agg_names[o->call->agg]);
    *out_count = count;
    return l->status ? 0 : lower_rows(b, "ordered", cols, count, false, -1);
}

static void sort_ordered(struct agg_state *s, const struct ordered *o, u32 rows, u32 count) {
    struct lower *l = s->l;
    const struct agg_call *call = o->call;
    struct sort_key *keys = NEW_ARRAY(l->arena, struct sort_key, count + 1);
    u32 key_count = 1;
    keys[0] = (struct sort_key){0, 0, 0};
    u32 first = 2 + (call->arg2 ? 1u : 0u);
    for (i64 k = 0; k < call->order.count; k++) {
        const struct order_key *key = &call->order.items[k];
        keys[key_count++] = (struct sort_key){first + (u32)k, key->descending, key->nulls_first};
    }
    bool by_value = call->agg == AGG_MIN || call->agg == AGG_MAX || call->distinct;
    if (call->order.count == 0 && by_value) {
        keys[key_count++] = (struct sort_key){1, call->agg == AGG_MAX, 0};
    }
    struct step *sort = lower_step(l, STEP_SORT, "Sort");
    sort->src = rows;
    sort->key_count = key_count;
    sort->keys = keys;
}

static void fold_ordered(struct agg_state *s, struct ordered *o, u32 inputs) {
    struct lower *l = s->l;
    u32 count;
    u32 rows = ordered_rows(s, o, inputs, &count);
    if (l->status) {
        return;
    }
    sort_ordered(s, o, rows, count);
    u32 folded = lower_rows_var(l, "folded", 2);
    struct var *var = &l->vars.items[folded];
    const struct var *from = &l->vars.items[rows];
    struct var_info *info = &l->var_infos.items[folded];
    for (u32 c = 0; c < 2; c++) {
        var->types[c] = from->types[c];
        var->kinds[c] = from->kinds[c];
        var->dicts[c] = from->dicts[c];
        info->ranges[c] = l->var_infos.items[rows].ranges[c];
    }
    if (o->call->agg == AGG_PERCENTILE_CONT) { /* between two values */
        info->ranges[1] = range_of_type(var->types[1]);
    }
    info->nullable[1] = 1;
    info->max_rows = l->var_infos.items[rows].max_rows;
    struct step *fold = lower_step(l, STEP_FOLD, agg_names[o->call->agg]);
    fold->src = rows;
    fold->dst = folded;
    fold->col = 0;
    fold->fold = o->call->agg;
    fold->distinct = o->call->distinct;
    fold->args[0] = 1;
    fold->args[1] = o->call->arg2 ? 2 : NO_VAR;
    fold->position = o->call->position;
    o->index = lower_var(l, VAR_INDEX, "index");
    l->vars.items[o->index].rows_var = folded;
    struct step *build = lower_step(l, STEP_BUILD, "Build");
    build->src = folded;
    build->dst = o->index;
    build->key_range = range_exact(I64_MIN, I64_MAX);
}

/* The folded value of a group, NULL when it had no rows. */
static struct value ordered_value(struct builder *f, const struct ordered *o, u16 key) {
    struct lower *l = f->l;
    struct op op = {.code = OP_PROBE, .a = key, .b = NO_REG, .c = PROBE_OUTER, .imm = o->index};
    u16 row = build_probe(f, op);
    u32 rows = l->vars.items[o->index].rows_var;
    const struct var *var = &l->vars.items[rows];
    struct range range = l->var_infos.items[rows].ranges[1];
    range.lo = MIN_OF(range.lo, 0);
    range.hi = MAX_OF(range.hi, 0);
    struct op load = {.code = OP_LOADV, .a = row, .b = (u16)rows, .c = 1, .imm = 1};
    struct value v;
    v.reg = build_ctl_new(f, load, (enum kind)var->kinds[1], range, var->dicts[1]);
    load.code = OP_LOADVN;
    v.null = build_ctl_new(f, load, KIND_B8, range_bool(), 0);
    return v;
}

static void bind_results(struct agg_state *s, struct builder *f, u16 key) {
    const struct rel *rel = s->rel;
    struct op op = {.code = OP_LOAD, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    op.imm = build_source_col(f, 0);
    i32 bits = key == NO_REG ? 0 : s->layout.bits;
    struct range range =
        bits >= 64 ? range_exact(I64_MIN, I64_MAX) : range_exact(0, ((i128)1 << bits) - 1);
    u16 packed = key != NO_REG || s->any_ordered ? build_ctl(f, op, KIND_I64, range, 0) : 0;
    if (key != NO_REG) {
        struct value *out = NEW_ARRAY(s->l->arena, struct value, s->layout.count + 1);
        key_unpack(f, &s->layout, packed, out);
        for (i32 i = 0; i < s->key_count && !s->l->status; i++) {
            struct value v = s->place[i] < 0 ? dependent_value(s, f, i) : out[s->place[i]];
            v = has_form(s, i) && !s->l->status ? join_form(s, f, i, v) : v;
            bind_value(f, rel->out.items[i], v);
        }
    }
    for (i64 i = 0; i < rel->agg.calls.count && !s->l->status; i++) {
        u32 col = rel->agg.calls.items[i].col;
        bind_value(f, col,
                   is_ordered(s, i) ? ordered_value(f, &s->ordered[i], packed)
                                    : words_finish(f, &s->calls[i], s->w.row_bits));
    }
}

/* Without an order of its own string_agg takes its texts as they come. */
static bool sees_order(const struct rel *rel) {
    bool sees = false;
    for (i64 i = 0; i < rel->agg.calls.count; i++) {
        const struct agg_call *call = &rel->agg.calls.items[i];
        sees = sees || (call->agg == AGG_STRING_AGG && call->order.count == 0);
    }
    return sees;
}

bool agg_is_plain(const struct rel *rel) {
    bool plain = true;
    for (i64 i = 0; i < rel->agg.calls.count; i++) {
        const struct agg_call *call = &rel->agg.calls.items[i];
        enum kind kind = call->arg ? type_kind(call->arg->type) : KIND_I64;
        bool extreme = call->agg == AGG_MIN || call->agg == AGG_MAX;
        plain = plain && !agg_is_ordered[call->agg] &&
                !(extreme && (kind == KIND_STR || kind == KIND_I128));
    }
    return plain;
}

struct agg_state *agg_state_new(struct lower *l, const struct rel *rel) {
    struct agg_state *s = NEW(l->arena, struct agg_state);
    *s = (struct agg_state){.l = l, .rel = rel, .key = NO_REG};
    s->w.l = l;
    s->key_count = (i32)rel->agg.keys.count;
    s->keys = NEW_ARRAY(l->arena, struct value, s->key_count * 2 + 1);
    s->calls = NEW_ARRAY(l->arena, struct call_state, rel->agg.calls.count + 1);
    s->ordered = NEW_ARRAY(l->arena, struct ordered, rel->agg.calls.count + 1);
    s->place = NEW_ARRAY(l->arena, i32, s->key_count + 1);
    s->row_words = NEW_ARRAY(l->arena, i32, s->key_count + 1);
    s->forms = NEW_ARRAY(l->arena, struct value, s->key_count + 1);
    s->formed = NEW_ARRAY(l->arena, b8, s->key_count + 1);
    s->depends = NEW_ARRAY(l->arena, struct binding, s->key_count + 1);
    return s;
}

void agg_state_sink(struct agg_state *s, struct builder *b) {
    struct lower *l = s->l;
    const struct rel *rel = s->rel;
    s->w.b = b;
    find_dependent(s);
    lower_inputs(s);
    bool ranks = !l->status && needs_ranks_of_strings(s);
    s->key = pack_keys(s);
    u32 inputs = 0;
    if (!l->status && (ranks || s->any_ordered)) {
        inputs = materialise_inputs(s, &s->key);
    } else if (splits(s)) {
        split_inputs(s);
    }
    for (i64 i = 0; i < rel->agg.calls.count && !l->status && s->any_ordered; i++) {
        if (is_ordered(s, i)) {
            fold_ordered(s, &s->ordered[i], inputs);
        }
    }
    s->w.row_bits = l->status ? 0 : words_row_bits(s->w.b->max_rows);
    keep_rows(s);
    for (i64 i = 0; i < rel->agg.calls.count && !l->status; i++) {
        if (!is_ordered(s, i)) {
            words_add(&s->w, &s->calls[i]);
        }
    }
    s->var = l->status ? 0 : agg_sink(s, s->key);
}

struct builder *lower_agg(struct lower *l, const struct rel *rel) {
    struct agg_state *s = agg_together(l, rel);
    if (!s) {
        b8 before = l->unordered;
        l->unordered = !sees_order(rel);
        struct builder *b = lower_rel(l, rel_input(rel));
        l->unordered = before;
        s = agg_state_new(l, rel);
        agg_state_sink(s, b);
        build_finish(s->w.b);
    }
    if (l->status) {
        return s->w.b;
    }
    struct builder *f = lower_over(l, s->var, rel->rows);
    bind_results(s, f, s->key);
    return f;
}
