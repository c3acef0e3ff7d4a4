/* aggregate.c: grouping.
 *
 * The input pipeline ends in a sink that keeps a row of 64-bit words per key. A second pipeline
 * over the finished groups unpacks the key and turns words into the aggregates' values
 * (agg_words.c). */
#include "lower/agg_int.h"

/* the whole */

static void lower_inputs(struct agg_state *s) {
    const struct rel *rel = s->rel;
    for (i32 i = 0; i < s->key_count; i++) {
        s->keys[i] = lower_expr(s->w.b, rel->exprs.items[i]);
    }
    for (i64 i = 0; i < rel->calls.count; i++) {
        struct call_state *c = &s->calls[i];
        const struct agg_call *call = &rel->calls.items[i];
        c->agg = call->agg;
        c->position = call->position;
        c->grouped = s->key_count > 0;
        c->first_col = 1; /* behind the key */
        c->type = s->l->plan->cols.items[call->col].type;
        c->arg = words_input(s->w.b, call->arg, call->filter);
        c->arg_type = call->arg ? call->arg->type : c->type;
    }
}

static bool needs_ranks_of_strings(const struct agg_state *s) {
    for (i64 i = 0; i < s->rel->calls.count; i++) {
        if (words_need_ranks(s->w.b, &s->calls[i])) {
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
        if (c->arg.reg == NO_REG && c->arg.null == NO_REG) {
            continue;
        }
        if (c->arg.reg == NO_REG) { /* count(*) with a filter */
            c->arg.reg = build_bool(s->w.b, false);
            c->arg_type = type_of(TYPE_BOOLEAN);
        }
        if (words_need_ranks(s->w.b, c)) {
            u32 values = lower_var(l, VAR_INTERN, "strings");
            u32 dict = lower_dict(l, (struct dict_ref){NO_VAR, 0, values});
            c->arg.reg = string_intern(s->w.b, c->arg.reg, values, false);
            s->w.b->regs.items[c->arg.reg].dict = l->status ? 0 : dict;
        }
        cols[n].type = c->arg_type;
        from[n++] = &c->arg;
    }
    for (u32 i = 0; i < n; i++) {
        cols[i].value = *from[i];
    }
    u32 var = lower_rows(s->w.b, "strings", cols, n, false, -1);
    s->w.b = lower_over(l, var, s->rel->inputs[0]->rows);
    for (u32 i = 0; i < n && !l->status; i++) {
        const struct var *v = &l->vars.items[var];
        struct op op = {.code = OP_LOAD,
                        .a = NO_REG,
                        .b = NO_REG,
                        .c = NO_REG,
                        .imm = build_source_col(s->w.b, i)};
        struct range range = l->var_infos.items[var].ranges[i];
        from[i]->reg = build_ctl(s->w.b, op, (enum kind)v->kinds[i], range, v->dicts[i]);
        from[i]->null = NO_REG;
        if (l->var_infos.items[var].nullable[i]) {
            op.code = OP_LOADN;
            from[i]->null = build_ctl(s->w.b, op, KIND_B8, range_bool(), 0);
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
        s->layout.fields[i] = key_field_of(s->w.b, s->keys[i], s->rel->exprs.items[i]->type);
    }
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
                        .null_var = NO_VAR,
                        .fault_var = NO_VAR};
    build_sink(s->w.b, sink);
    build_label(s->w.b, rel_names[REL_AGG]);
    build_finish(s->w.b);
    return number;
}

struct builder *lower_agg(struct lower *l, const struct rel *rel) {
    struct agg_state s = {.l = l, .rel = rel};
    s.w.l = l;
    s.w.b = lower_rel(l, rel->inputs[0]);
    s.key_count = (i32)rel->exprs.count;
    s.keys = NEW_ARRAY(l->arena, struct value, s.key_count * 2 + 1);
    s.calls = NEW_ARRAY(l->arena, struct call_state, rel->calls.count + 1);
    lower_inputs(&s);
    if (needs_ranks_of_strings(&s)) {
        materialise_inputs(&s);
    }
    s.w.row_bits = words_row_bits(s.w.b->max_rows);
    u16 key = pack_keys(&s);
    for (i64 i = 0; i < rel->calls.count && !l->status; i++) {
        words_add(&s.w, &s.calls[i]);
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
        bind_value(f, rel->calls.items[i].col, words_finish(f, &s.calls[i], s.w.row_bits));
    }
    return f;
}
