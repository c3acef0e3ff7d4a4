/* window.c: window functions.
 *
 * The input ends in a variable with the columns read above, the partition and order keys, and what
 * the functions read; it is sorted, and STEP_WINDOW appends a column for each function. Where a
 * window follows another one, many columns that it does not read stay in the variable of that one,
 * and the numbers of their rows are sorted instead: so many windows, each in an order of its own,
 * do not all move what the ones before them made. Aggregates
 * are words as in grouping (agg_words.c): the step adds them up by frame instead of by group, and
 * the pipeline behind it turns them into values. The bounds of RANGE frames with an offset are
 * computed here, a column of the least or greatest key in the frame, so that the step only
 * compares. */
#include "lower/agg_int.h"

#include "codes/op.h"
#include "codes/scalar.h"

struct win {
    struct lower *l;
    const struct rel *rel;
    struct words w;
    VEC(struct out_col) cols;
    VEC(u32) col_of;  /* by register: its last column + 1; 0 = none */
    VEC(u32) next_of; /* by column: another one of its register */
    struct sort_key *keys;
    u32 key_count;
    struct value *order; /* values of the order keys */
    u32 *order_cols;
    struct call_state *calls; /* aggregates */
    struct value (*args)[3];
    struct window_fn *frames; /* per call: what its functions have in common */
    VEC(struct window_fn) fns;
    u32 *fn_of;    /* per call: its column, counted from the first that the step appends */
    u32 *out_cols; /* per column of the input: where it is; NO_VAR: it stays behind */
    VEC(const struct left *) lefts;
    VEC(u32) left_rows; /* per item of lefts: the column of its rows' numbers */
};

/* Column i is found by its register from now on. */
static void index_col(struct win *s, u32 i) {
    u16 reg = s->cols.items[i].value.reg;
    while (s->col_of.count <= (i64)reg) {
        VEC_PUSH(s->l->arena, &s->col_of, 0);
    }
    VEC_PUSH(s->l->arena, &s->next_of, s->col_of.items[reg]);
    s->col_of.items[reg] = i + 1;
}

static u32 add_col(struct win *s, struct value v, struct type type) {
    u32 i = v.reg < s->col_of.count ? s->col_of.items[v.reg] : 0;
    while (i > 0 && s->cols.items[i - 1].value.null != v.null) {
        i = s->next_of.items[i - 1];
    }
    if (i > 0) {
        return i - 1;
    }
    struct out_col col = {.value = v, .type = type};
    VEC_PUSH(s->l->arena, &s->cols, col);
    index_col(s, (u32)s->cols.count - 1);
    return (u32)s->cols.count - 1;
}

/* Whether a column of the input lies in a variable where it can stay. */
static bool may_stay(const struct win *s, u32 col) {
    const struct binding *bind = bind_at(s->w.b, col);
    return rel_input(s->rel)->kind == REL_WINDOW && !rel_is_serial(s->rel) &&
           s->w.b->source.kind == SOURCE_VAR && bind->kind == BIND_SOURCE && !bind->lazy;
}

static void keep_rows(struct win *s, const struct left *left, u16 row) {
    VEC_PUSH(s->l->arena, &s->lefts, left);
    VEC_PUSH(s->l->arena, &s->left_rows,
             add_col(s, (struct value){row, NO_REG}, type_of(TYPE_BIGINT)));
}

/* Columns that may stay, all in the variable that the pipeline reads. */
static void leave_cols(struct win *s, const b8 *stays, u32 count) {
    struct lower *l = s->l;
    struct builder *b = s->w.b;
    const struct rel *input = rel_input(s->rel);
    struct left *left = NEW(l->arena, struct left);
    left->cols = NEW_ARRAY(l->arena, u32, count);
    left->binds = NEW_ARRAY(l->arena, struct binding, count);
    for (i64 i = 0; i < input->out.count; i++) {
        if (stays[i]) {
            struct binding bind = *bind_at(b, input->out.items[i]);
            bind.kind = BIND_VAR;
            bind.var = b->source.ref;
            bind.col = b->cols.items[bind.col];
            left->cols[left->count] = input->out.items[i];
            left->binds[left->count++] = bind;
        }
    }
    struct op number = {.code = OP_ROWNO, .a = NO_REG, .b = NO_REG, .c = NO_REG};
    keep_rows(s, left, build_ctl(b, number, KIND_I64, range_exact(0, b->max_rows), 0));
}

/* What goes on above the window: columns, or the numbers of the rows they are found in. */
static void carry(struct win *s) {
    enum {
        NEAR_MOST = 32
    }; /* numbers pay when some columns stay; about the root of many windows */
    struct lower *l = s->l;
    const struct rel *input = rel_input(s->rel);
    struct builder *b = s->w.b;
    b8 *behind = NEW_ARRAY(l->arena, b8, l->plan->cols.count + 1);
    b8 *stays = NEW_ARRAY(l->arena, b8, input->out.count + 1);
    u32 near = 0;
    s->out_cols = NEW_ARRAY(l->arena, u32, input->out.count + 1);
    for (i64 i = 0; i < b->lefts.count; i++) {
        const struct left *left = b->lefts.items[i].left;
        for (u32 k = 0; k < left->count; k++) {
            behind[left->cols[k]] = 1;
        }
        keep_rows(s, left, b->lefts.items[i].row_reg);
    }
    for (i64 i = 0; i < input->out.count; i++) {
        u32 col = input->out.items[i];
        stays[i] = !behind[col] && may_stay(s, col);
        near += stays[i];
    }
    bool leave = near > NEAR_MOST;
    for (i64 i = 0; i < input->out.count && !l->status; i++) {
        u32 col = input->out.items[i];
        s->out_cols[i] = NO_VAR;
        if (!behind[col] && !(leave && stays[i])) {
            struct out_col carried = lower_carry(b, col);
            s->out_cols[i] = add_col(s, carried.value, carried.type);
            s->cols.items[s->out_cols[i]].lazy = carried.lazy;
        }
    }
    if (leave && !l->status) {
        leave_cols(s, stays, near);
    }
}

/* Binds what was carried in the pipeline above the window. */
static void bind_carried(struct win *s, struct builder *f) {
    const struct rel *input = rel_input(s->rel);
    for (i64 i = 0; i < input->out.count && !s->l->status; i++) {
        if (s->out_cols[i] != NO_VAR) {
            bind_source(f, input->out.items[i], s->out_cols[i]);
        }
    }
}

/* Whatever is not bound otherwise is looked for in what stayed behind. */
static void bind_left_rows(struct win *s, struct builder *f) {
    for (i64 i = 0; i < s->lefts.count && !s->l->status; i++) {
        u16 row = lower_source_value(f, s->left_rows.items[i]).reg;
        struct left_row at = {s->lefts.items[i], build_kind(f, row, KIND_I64)};
        VEC_PUSH(s->l->arena, &f->lefts, at);
    }
}

static void lower_keys(struct win *s) {
    const struct rel *rel = s->rel;
    i64 parts = rel->window.keys.count;
    i64 orders = rel->window.order.count;
    s->keys = NEW_ARRAY(s->l->arena, struct sort_key, parts + orders + 1);
    s->order = NEW_ARRAY(s->l->arena, struct value, orders + 1);
    s->order_cols = NEW_ARRAY(s->l->arena, u32, orders + 1);
    for (i64 i = 0; i < parts && !s->l->status; i++) {
        struct value v = lower_expr(s->w.b, rel->window.keys.items[i]);
        v.reg = lower_order(s->w.b, v.reg, rel->window.keys.items[i]->type);
        s->keys[s->key_count++] =
            (struct sort_key){add_col(s, v, rel->window.keys.items[i]->type), 0, 0};
    }
    for (i64 i = 0; i < orders && !s->l->status; i++) {
        const struct order_key *key = &rel->window.order.items[i];
        s->order[i] = lower_expr(s->w.b, key->expr);
        s->order[i].reg = lower_order(s->w.b, s->order[i].reg, key->expr->type);
        s->order_cols[i] = add_col(s, s->order[i], key->expr->type);
        s->keys[s->key_count++] =
            (struct sort_key){s->order_cols[i], key->descending, key->nulls_first};
    }
}

static i32 win_scale(struct type t) {
    return t.id == TYPE_DECIMAL ? t.scale : 0;
}

static bool is_offset(u8 bound) {
    return bound == BOUND_BEFORE || bound == BOUND_AFTER;
}

/* A constant offset must not be NULL or negative; of a parameter the step finds out. */
static bool offset_is_bad(const struct expr *expr) {
    if (expr->kind != EXPR_CONST) {
        return false;
    }
    if (expr->is_null) {
        return true;
    }
    switch (type_kind(expr->type)) {
    case KIND_I32:
        return expr->value.i32 < 0;
    case KIND_I64:
        return expr->value.i64 < 0;
    case KIND_I128:
        return expr->value.i128 < 0; /* an interval's order is in its upper bits */
    case KIND_F32:
        return !(expr->value.f32 >= 0);
    case KIND_F64:
        return !(expr->value.f64 >= 0);
    default:
        return false;
    }
}

static void offset_fail(struct lower *l, const struct expr *expr) {
    lower_fail(l, expr->is_null ? ERR_NULL_NOT_ALLOWED : ERR_FRAME_OFFSET, expr->position,
               "frame offset must not be %s", expr->is_null ? "null" : "negative");
}

static u32 offset_lit(struct win *s, const struct window_call *call, const struct expr *expr) {
    struct lower *l = s->l;
    if (expr->kind == EXPR_PARAM) {
        lower_param_null_lit(l, expr->param);
        return lower_param_lit(l, expr->param);
    }
    if (offset_is_bad(expr)) {
        offset_fail(l, expr);
        return NO_LIT;
    }
    struct builder *scratch = build_new(l, SOURCE_ONE, 0, 1, 1);
    struct value v = lower_expr(scratch, expr);
    union lit lit;
    if (l->status || !build_is_const(scratch, v.reg, &lit)) {
        lower_fail(l, ERR_NOT_SUPPORTED, call->position, "frame offset is not a constant");
        return NO_LIT;
    }
    lit.i64 = (i64)MIN_OF(reg_range(scratch, v.reg).lo, (i128)I64_MAX);
    return lower_lit(l, KIND_I64, lit);
}

/* Key and offset in the same form; false when they have none. */
static bool range_operands(struct win *s, const struct expr *offset, struct value *key,
                           struct value *off) {
    struct builder *b = s->w.b;
    struct type type = s->rel->window.order.items[0].expr->type;
    *key = s->order[0];
    *off = lower_expr(b, offset);
    if (type_is_exact(type) && type_is_exact(offset->type)) {
        i32 scale = MAX_OF(win_scale(type), win_scale(offset->type));
        key->reg = lower_scale(b, key->reg, win_scale(type), scale);
        off->reg = lower_scale(b, off->reg, win_scale(offset->type), scale);
        return true;
    }
    if (type_is_float(type) && (type_is_float(offset->type) || type_is_exact(offset->type))) {
        struct type wide = type_of(TYPE_DOUBLE);
        *key = lower_cast(b, *key, type, wide);
        *off = lower_cast(b, *off, offset->type, wide);
        return true;
    }
    return false;
}

/* The bound of a key that is a date, a time or an interval, in the form of the keys, which are made
 * alike: dates are timestamps then. */
static struct value moment_bound(struct win *s, const struct expr *offset, bool up,
                                 struct value *key) {
    struct builder *b = s->w.b;
    struct expr *at = s->rel->window.order.items[0].expr;
    struct type type = at->type;
    struct type timestamp = type_of(TYPE_TIMESTAMP);
    if (type.id == TYPE_TIME) { /* no day has more hours, so nothing wraps around */
        struct expr *us = expr_call(b->l->arena, FUNC_IV_US, type_of(TYPE_BIGINT), -1, 1, offset);
        struct value v = lower_expr(b, us);
        if (!b->l->status) {
            v.reg = up ? lower_add_exact(b, key->reg, v.reg) : lower_sub_exact(b, key->reg, v.reg);
            v.null = key->null;
        }
        return v;
    }
    u16 func = type.id == TYPE_DATE          ? up ? FUNC_DATE_ADD_IV : FUNC_DATE_SUB_IV
               : type.id == TYPE_TIMESTAMP   ? up ? FUNC_TS_ADD : FUNC_TS_SUB
               : type.id == TYPE_TIMESTAMPTZ ? up ? FUNC_TSTZ_ADD : FUNC_TSTZ_SUB
               : up                          ? FUNC_IV_ADD
                                             : FUNC_IV_SUB;
    struct type result = type.id == TYPE_DATE ? timestamp : type;
    struct value limit =
        lower_expr(b, expr_call(b->l->arena, func, result, offset->position, 2, at, offset));
    if (type.id == TYPE_DATE && !b->l->status) {
        *key = lower_cast(b, *key, type, timestamp);
    }
    if (!b->l->status) {
        limit.reg = lower_order(b, limit.reg, result);
    }
    return limit;
}

/* `last`: of the two ends of the values, the one that is greater. */
static struct value number_bound(struct builder *b, struct value key, struct value off, bool up,
                                 bool last) {
    struct value limit = {0, key.null};
    if (reg_kind(b, key.reg) == KIND_F64) {
        struct range all = range_of_type(type_of(TYPE_DOUBLE));
        all.may_special = 1;
        limit.reg = build_op(b, up ? OP_FRAME_UP : OP_FRAME_DOWN, key.reg, off.reg,
                             build_i32(b, last), all);
    } else {
        limit.reg =
            up ? lower_add_exact(b, key.reg, off.reg) : lower_sub_exact(b, key.reg, off.reg);
    }
    return limit;
}

/* The column of bounds, and that of the keys they are compared with. */
static void range_bound(struct win *s, const struct window_call *call, u8 bound,
                        const struct expr *offset, bool is_hi, u32 *out_col, u32 *out_key) {
    struct lower *l = s->l;
    struct builder *b = s->w.b;
    struct value key = {0};
    struct value off = {0};
    struct value limit = {0};
    if (s->rel->window.order.count != 1) {
        lower_fail(l, ERR_WINDOWING, call->position,
                   "RANGE with offset requires exactly one ORDER BY column");
        return;
    }
    if (offset_is_bad(offset)) {
        offset_fail(l, offset);
        return;
    }
    bool up = (bound == BOUND_AFTER) != (bool)s->rel->window.order.items[0].descending;
    if (offset->type.id == TYPE_INTERVAL) {
        key = s->order[0];
        limit = moment_bound(s, offset, up, &key);
    } else if (!range_operands(s, offset, &key, &off)) {
        lower_fail(l, ERR_NOT_SUPPORTED, call->position,
                   "RANGE with offset is not supported for this type");
    } else if (!l->status) {
        limit =
            number_bound(b, key, off, up, is_hi != (bool)s->rel->window.order.items[0].descending);
    }
    if (l->status) {
        return;
    }
    enum kind kind = reg_kind(b, limit.reg);
    if (kind != KIND_F64) { /* one kind for the bounds of both ends and the keys */
        limit.reg = build_kind(b, limit.reg, KIND_I128);
        key.reg = build_kind(b, key.reg, KIND_I128);
    }
    *out_col = add_col(s, limit, type_of(TYPE_BIGINT));
    *out_key = add_col(s, key, type_of(TYPE_BIGINT));
}

static struct window_fn frame_of(struct win *s, const struct window_call *call) {
    const struct frame *frame = &call->frame;
    struct window_fn fn = {.mode = frame->mode,
                           .from = frame->from,
                           .to = frame->to,
                           .exclude = frame->exclude,
                           .from_lit = NO_LIT,
                           .to_lit = NO_LIT,
                           .from_col = NO_VAR,
                           .to_col = NO_VAR,
                           .key = NO_VAR,
                           .args = {NO_VAR, NO_VAR, NO_VAR},
                           .position = call->position};
    bool range = frame->mode == FRAME_RANGE;
    if (is_offset(frame->from) && range) {
        range_bound(s, call, frame->from, frame->from_offset, false, &fn.from_col, &fn.key);
    } else if (is_offset(frame->from)) {
        fn.from_lit = offset_lit(s, call, frame->from_offset);
    }
    if (is_offset(frame->to) && range) {
        range_bound(s, call, frame->to, frame->to_offset, true, &fn.to_col, &fn.key);
    } else if (is_offset(frame->to)) {
        fn.to_lit = offset_lit(s, call, frame->to_offset);
    }
    return fn;
}

/* Arguments: of an aggregate the one that is summed; else as the step wants them. */
static void lower_args(struct win *s, i64 i) {
    const struct window_call *call = &s->rel->window.calls.items[i];
    struct builder *b = s->w.b;
    for (i32 a = 0; a < call->arg_count && !s->l->status; a++) {
        s->args[i][a] = call->is_agg ? words_input(b, call->args[a], call->filter)
                                     : lower_expr(b, call->args[a]);
    }
    if (s->l->status) {
        return;
    }
    if (call->is_agg) {
        struct call_state *c = &s->calls[i];
        c->agg = call->func;
        c->position = call->position;
        c->type = s->l->plan->cols.items[call->col].type;
        c->arg_type = call->arg_count > 0 ? call->args[0]->type : c->type;
        c->arg = call->arg_count > 0 ? s->args[i][0] : words_input(b, NULL, call->filter);
        if (words_too_wide(b, c)) {
            words_narrow(b, c);
        }
        if (words_need_ranks(b, c)) {
            u32 values = lower_var(s->l, VAR_INTERN, "strings");
            u32 dict = lower_dict(s->l, (struct dict_ref){NO_VAR, 0, values});
            c->arg.reg = string_intern(b, c->arg.reg, values, false);
            b->regs.items[c->arg.reg].dict = s->l->status ? 0 : dict;
            c->ranked = true;
        }
        return;
    }
    if (call->is_serial) {
        return;
    }
    if (call->arg_count == 3) { /* lag, lead: the default looks like the value */
        lower_same_kind(b, &s->args[i][0], &s->args[i][2]);
    }
    i32 number = call->func == WINDOW_NTILE ? 0 : 1; /* the argument that counts */
    if (call->arg_count > number && !s->l->status) {
        struct value *v = &s->args[i][number];
        v->reg = build_kind(b, v->reg, KIND_I64);
    }
}

/* A call of a sequence reads whether to, then its own arguments. */
static void add_serial(struct win *s, i64 i) {
    const struct window_call *call = &s->rel->window.calls.items[i];
    struct builder *b = s->w.b;
    struct window_fn fn = s->frames[i];
    fn.form = WINDOW_SERIAL;
    fn.func = call->func;
    fn.sequence = call->sequence;
    fn.name = call->sequence_name;
    if (call->filter) {
        struct value v = lower_expr(b, call->filter);
        fn.args[0] = add_col(s, v, type_of(TYPE_BOOLEAN));
    }
    for (i32 a = 0; a < call->arg_count && !s->l->status; a++) {
        struct value v = s->args[i][a];
        enum kind kind = call->func == SERIAL_SLEEP ? KIND_F64 : KIND_I64;
        v.reg = a == 0 ? build_kind(b, v.reg, kind) : v.reg;
        fn.args[1 + a] = add_col(s, v, call->args[a]->type);
    }
    s->fn_of[i] = (u32)s->fns.count;
    VEC_PUSH(s->l->arena, &s->fns, fn);
}

static void add_func(struct win *s, i64 i) {
    const struct window_call *call = &s->rel->window.calls.items[i];
    struct window_fn fn = s->frames[i];
    fn.form = call->is_agg ? WINDOW_TEXT : WINDOW_FUNC;
    fn.func = call->func;
    for (i32 a = 0; a < call->arg_count && !s->l->status; a++) {
        struct value v = s->args[i][a];
        if (call->is_agg) {
            v.reg = string_view(s->w.b, v.reg);
        }
        fn.args[a] = add_col(s, v, call->args[a]->type);
    }
    s->fn_of[i] = (u32)s->fns.count;
    VEC_PUSH(s->l->arena, &s->fns, fn);
}

/* The words of one call become functions of their own, since frames differ between calls. */
static void add_words(struct win *s, i64 i) {
    const struct window_call *call = &s->rel->window.calls.items[i];
    struct words w = {.l = s->l, .b = s->w.b, .row_bits = s->w.row_bits};
    s->calls[i].arg2 = call->arg_count > 1 ? s->args[i][1] : (struct value){NO_REG, NO_REG};
    words_add(&w, &s->calls[i]);
    struct window_fn fn = s->frames[i];
    fn.form = WINDOW_WORD;
    s->fn_of[i] = (u32)s->fns.count;
    for (i64 k = 0; k < w.ops.count && !s->l->status; k++) {
        fn.func = w.ops.items[k];
        fn.args[0] = add_col(s, (struct value){w.regs.items[k], NO_REG}, type_of(TYPE_BIGINT));
        VEC_PUSH(s->l->arena, &s->fns, fn);
    }
}

static bool is_words(const struct window_call *call) {
    return call->is_agg && call->func != AGG_STRING_AGG;
}

/* Strings whose least or greatest is asked for are numbered; their ranks are known one pipeline
 * later. */
static void cut_for_ranks(struct win *s) {
    struct lower *l = s->l;
    const struct rel *rel = s->rel;
    bool ranked = false;
    for (i64 i = 0; i < rel->window.calls.count; i++) {
        ranked = ranked || s->calls[i].ranked;
    }
    if (!ranked || l->status) {
        return;
    }
    VEC(struct value *) to = {0};
    for (i64 i = 0; i < rel->window.calls.count; i++) {
        const struct window_call *call = &rel->window.calls.items[i];
        struct value *of[4] = {&s->args[i][0], &s->args[i][1], &s->args[i][2],
                               is_words(call) ? &s->calls[i].arg : NULL};
        for (i32 a = 0; a < 4; a++) {
            bool used = of[a] && (a == 3 || a < call->arg_count) && of[a]->reg != NO_REG;
            if (used) {
                VEC_PUSH(l->arena, &to, of[a]);
            } else if (a == 3 && of[a] && of[a]->null != NO_REG) { /* count(*) with a filter */
                of[a]->reg = build_bool(s->w.b, false);
                VEC_PUSH(l->arena, &to, of[a]);
            }
        }
    }
    for (i64 i = 0; i < rel->window.order.count; i++) {
        struct value *v = &s->order[i];
        VEC_PUSH(l->arena, &to, v);
    }
    i64 old = s->cols.count;
    u32 *at = NEW_ARRAY(l->arena, u32, to.count + 1);
    for (i64 i = 0; i < to.count; i++) {
        at[i] = add_col(s, *to.items[i], type_of(TYPE_BIGINT));
    }
    u32 count = (u32)s->cols.count;
    u32 var = lower_rows(s->w.b, "rows", s->cols.items, count, false, -1);
    s->w.b = lower_over(l, var, rel_input(rel)->rows);
    for (u32 i = 0; i < count && !l->status; i++) {
        s->cols.items[i].value = lower_source_value(s->w.b, i);
    }
    for (i64 i = 0; i < to.count && !l->status; i++) {
        *to.items[i] = s->cols.items[at[i]].value;
    }
    s->cols.count = old;
    s->col_of.count = s->next_of.count = 0;
    for (u32 i = 0; i < (u32)old; i++) {
        index_col(s, i);
    }
}

/* The rows with what the step appends to them. */
static u32 result_var(struct win *s, u32 rows) {
    struct lower *l = s->l;
    u32 old = l->vars.items[rows].col_count;
    u32 dst = lower_rows_var(l, "windows", old + (u32)s->fns.count);
    struct var *to = &l->vars.items[dst];
    struct var_info *to_info = &l->var_infos.items[dst];
    const struct var *from = &l->vars.items[rows];
    const struct var_info *from_info = &l->var_infos.items[rows];
    to_info->max_rows = from_info->max_rows;
    to->in_order = from->in_order;
    for (u32 c = 0; c < old; c++) {
        to->types[c] = from->types[c];
        to->kinds[c] = from->kinds[c];
        to->dicts[c] = from->dicts[c];
        to_info->ranges[c] = from_info->ranges[c];
        to_info->nullable[c] = from_info->nullable[c];
        to_info->lazy[c] = from_info->lazy[c];
    }
    for (u32 i = 0; i < (u32)s->fns.count; i++) {
        const struct window_fn *fn = &s->fns.items[i];
        u32 c = old + i;
        to->types[c] = type_of(TYPE_BIGINT);
        to->kinds[c] = KIND_I64;
        to_info->ranges[c] = range_exact(I64_MIN, I64_MAX);
        if (fn->form == WINDOW_TEXT) {
            to->types[c] = type_of(TYPE_TEXT);
            to->kinds[c] = KIND_STR;
            to_info->nullable[c] = 1;
        } else if (fn->form == WINDOW_SERIAL) {
            to_info->nullable[c] = fn->args[0] != NO_VAR || fn->func >= SERIAL_SET;
        } else if (fn->form == WINDOW_FUNC && fn->func >= WINDOW_LAG) {
            u32 arg = fn->args[0];
            to->types[c] = from->types[arg];
            to->kinds[c] = from->kinds[arg];
            to->dicts[c] = from->dicts[arg];
            to_info->ranges[c] = range_union(from_info->ranges[arg], range_exact(0, 0));
            if (fn->args[2] != NO_VAR) {
                to_info->ranges[c] =
                    range_union(to_info->ranges[c], from_info->ranges[fn->args[2]]);
            }
            to_info->nullable[c] = 1;
        } else if (fn->form == WINDOW_FUNC) {
            bool share = fn->func == WINDOW_PERCENT_RANK || fn->func == WINDOW_CUME_DIST;
            bool tile = fn->func == WINDOW_NTILE;
            to->kinds[c] = share ? KIND_F64 : tile ? KIND_I32 : KIND_I64;
            to->types[c] = type_of(share ? TYPE_DOUBLE : tile ? TYPE_INTEGER : TYPE_BIGINT);
            to_info->ranges[c] = share  ? range_float(1, -1074, false)
                                 : tile ? range_exact(0, I32_MAX)
                                        : range_exact(0, to_info->max_rows);
            to_info->nullable[c] = tile;
        }
    }
    return dst;
}

static u32 window_step(struct win *s, u32 rows) {
    struct lower *l = s->l;
    if (s->key_count > 0) {
        struct step *sort = lower_step(l, STEP_SORT, "Sort");
        sort->src = rows;
        sort->key_count = s->key_count;
        sort->keys = s->keys;
    }
    u32 dst = result_var(s, rows);
    struct step *step = lower_step(l, STEP_WINDOW, rel_names[REL_WINDOW]);
    step->src = rows;
    step->dst = dst;
    step->key_count = s->key_count;
    step->keys = s->keys;
    step->part_count = (u32)s->rel->window.keys.count;
    step->window_count = (u32)s->fns.count;
    step->windows = s->fns.items;
    return dst;
}

struct builder *lower_window(struct lower *l, const struct rel *rel) {
    struct win s = {.l = l, .rel = rel};
    const struct rel *input = rel_input(rel);
    i64 count = rel->window.calls.count;
    s.w.l = l;
    b8 before = l->unordered;
    l->unordered = 0;
    l->drawing += rel_is_serial(rel);
    s.w.b = lower_rel(l, input);
    l->drawing -= rel_is_serial(rel);
    l->unordered = before;
    s.calls = NEW_ARRAY(l->arena, struct call_state, count + 1);
    s.args = arena_alloc(l->arena, (i64)sizeof *s.args * (count + 1));
    s.fn_of = NEW_ARRAY(l->arena, u32, count + 1);
    s.frames = NEW_ARRAY(l->arena, struct window_fn, count + 1);
    carry(&s);
    lower_keys(&s);
    for (i64 i = 0; i < count && !l->status; i++) {
        lower_args(&s, i);
        s.frames[i] = frame_of(&s, &rel->window.calls.items[i]);
    }
    cut_for_ranks(&s);
    s.w.row_bits = l->status ? 0 : words_row_bits(s.w.b->max_rows);
    for (i64 i = 0; i < count && !l->status; i++) {
        if (is_words(&rel->window.calls.items[i])) {
            add_words(&s, i);
        } else if (rel_is_serial(rel)) {
            add_serial(&s, i);
        } else {
            add_func(&s, i);
        }
    }
    if (l->status) {
        return s.w.b;
    }
    if (s.cols.count == 0) {
        add_col(&s, (struct value){build_bool(s.w.b, false), NO_REG}, type_of(TYPE_BOOLEAN));
    }
    u32 width = (u32)s.cols.count;
    build_label(s.w.b, rel_names[REL_WINDOW]);
    u32 rows = lower_rows(s.w.b, "rows", s.cols.items, width, false, -1);
    u32 var = l->status ? 0 : window_step(&s, rows);
    struct builder *f = lower_over(l, var, rel->rows);
    bind_carried(&s, f);
    for (i64 i = 0; i < count && !l->status; i++) {
        const struct window_call *call = &rel->window.calls.items[i];
        if (is_words(call)) {
            s.calls[i].first_col = width + s.fn_of[i];
            bind_value(f, call->col, words_finish(f, &s.calls[i], s.w.row_bits));
        } else {
            bind_source(f, call->col, width + s.fn_of[i]);
        }
    }
    bind_left_rows(&s, f);
    return f;
}
