/* verify.c: the structural check of a plan: every rule that plan.h states and lowering relies on.
 *
 * Runs after the front end and after every optimiser pass in test builds. A failure is a
 * programming error of ours, reported as XX000 with what is wrong, so that a fuzzer or a test sees
 * it at the pass that broke the plan and not three stages later. */
#include "plan/plan_int.h"

#include "codes/func.h"

struct verify {
    const struct plan *plan;
    u8 *seen;   /* per column: defined by some operator already */
    u32 *scope; /* per column: stamp of the operator whose expressions may use it */
    u32 stamp;
    u16 *outer; /* per column: how many enclosing dependent joins hand it to their right input */
    VEC(const struct rel *) shared; /* inputs of SHARED already checked */
    struct error *err;
};

static FALLIBLE check_expr(struct verify *v, const struct expr *expr);

static FALLIBLE check_args(struct verify *v, const struct expr *expr) {
    for (i32 i = 0; i < expr->arg_count; i++) {
        if (!expr->args[i]) {
            FAIL(v->err, INTERNAL, "plan: argument %d is missing", (int)i);
        }
        TRY(check_expr(v, expr->args[i]));
    }
    return ERR_OK;
}

static FALLIBLE check_booleans(struct verify *v, const struct expr *expr, i32 first, i32 end,
                               i32 step) {
    for (i32 i = first; i < end; i += step) {
        if (expr->args[i]->type.id != TYPE_BOOLEAN) {
            FAIL(v->err, INTERNAL, "plan: argument %d of a logical expression is not boolean",
                 (int)i);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_call(struct verify *v, const struct expr *expr) {
    if (!func_is_one(expr->func)) {
        FAIL(v->err, INTERNAL, "plan: no function %d", (int)expr->func);
    }
    i32 want = func_arg_count(expr->func);
    bool fewer = expr->func == FUNC_SUBSTRING && expr->arg_count == 2;
    if (want >= 0 && expr->arg_count != want && !fewer) {
        FAIL(v->err, INTERNAL, "plan: %s has %d arguments", func_names[expr->func],
             (int)expr->arg_count);
    }
    bool compares = expr->func >= FUNC_EQ && expr->func <= FUNC_GE;
    if (compares &&
        (expr->type.id != TYPE_BOOLEAN || expr->args[0]->type.id != expr->args[1]->type.id)) {
        FAIL(v->err, INTERNAL, "plan: comparison of different types");
    }
    return ERR_OK;
}

static FALLIBLE check_expr(struct verify *v, const struct expr *expr) {
    TRY(check_args(v, expr));
    switch (expr->kind) {
    case EXPR_COL:
        if (expr->col >= v->plan->cols.count) {
            FAIL(v->err, INTERNAL, "plan: no column %u", expr->col);
        }
        if (v->scope[expr->col] != v->stamp && v->outer[expr->col] == 0) {
            FAIL(v->err, INTERNAL, "plan: column %u (%s) is not available here", expr->col,
                 v->plan->cols.items[expr->col].name);
        }
        if (!type_eq(expr->type, v->plan->cols.items[expr->col].type)) {
            FAIL(v->err, INTERNAL, "plan: column %u has another type", expr->col);
        }
        return ERR_OK;
    case EXPR_PARAM:
        if (expr->param >= v->plan->param_count) {
            FAIL(v->err, INTERNAL, "plan: no parameter %u", expr->param + 1);
        }
        return ERR_OK;
    case EXPR_CALL:
        return check_call(v, expr);
    case EXPR_AND:
    case EXPR_OR:
    case EXPR_NOT:
        return check_booleans(v, expr, 0, expr->arg_count, 1);
    case EXPR_CASE:
        if (expr->arg_count % 2 != 1 || expr->arg_count < 3) {
            FAIL(v->err, INTERNAL, "plan: CASE with %d arguments", (int)expr->arg_count);
        }
        return check_booleans(v, expr, 0, expr->arg_count - 1, 2);
    case EXPR_IN:
        for (i32 i = 1; i < expr->arg_count; i++) {
            if (expr->args[i]->type.id != expr->args[0]->type.id) {
                FAIL(v->err, INTERNAL, "plan: IN list of different types");
            }
        }
        return ERR_OK;
    default:
        return ERR_OK;
    }
}

/* Makes the columns of inputs first up to end the scope of the next expressions. */
static void open_scope(struct verify *v, const struct rel *rel, i32 first, i32 end) {
    v->stamp++;
    for (i32 i = first; i < end; i++) {
        for (i64 k = 0; k < rel->inputs[i]->out.count; k++) {
            v->scope[rel->inputs[i]->out.items[k]] = v->stamp;
        }
    }
}

static void open_where(struct verify *v, const struct rel *rel, u8 where) {
    if (where == WHERE_ALL) {
        open_scope(v, rel, 0, rel->input_count);
    } else {
        open_scope(v, rel, where, where + 1);
    }
}

static FALLIBLE define(struct verify *v, u32 col) {
    if (col >= v->plan->cols.count) {
        FAIL(v->err, INTERNAL, "plan: no column %u", col);
    }
    if (v->seen[col]) {
        FAIL(v->err, INTERNAL, "plan: column %u (%s) is made twice", col,
             v->plan->cols.items[col].name);
    }
    v->seen[col] = 1;
    return ERR_OK;
}

static FALLIBLE check_exprs(struct verify *v, struct expr *const *items, i64 count) {
    for (i64 i = 0; i < count; i++) {
        TRY(check_expr(v, items[i]));
    }
    return ERR_OK;
}

static FALLIBLE check_conds(struct verify *v, const expr_list *conds) {
    for (i64 i = 0; i < conds->count; i++) {
        TRY(check_expr(v, conds->items[i]));
        if (conds->items[i]->type.id != TYPE_BOOLEAN) {
            FAIL(v->err, INTERNAL, "plan: condition is not boolean");
        }
    }
    return ERR_OK;
}

/* An operator copies all its columns from every input, a recursion each from those of a relation. */
static FALLIBLE check_copies(struct verify *v, const struct rel *rel, i32 input) {
    const col_list *cols = rel_cols(rel, input);
    const u32 *out = rel_copied(rel, input);
    i64 made = rel->out.count;
    if (rel->kind == REL_FIX) {
        bool last = input / 2 == rel->input_count / 2 - 1;
        made = last ? rel->out.items + rel->out.count - out : rel_cols(rel, input / 2 * 2)->count;
    }
    if (cols->count != made) {
        FAIL(v->err, INTERNAL, "plan: %s of %lld columns makes %lld", rel_names[rel->kind],
             cols->count, made);
    }
    for (i64 i = 0; i < cols->count; i++) {
        u32 col = cols->items[i];
        bool known = col < v->plan->cols.count && out[i] < v->plan->cols.count;
        if (!known || v->scope[col] != v->stamp) {
            FAIL(v->err, INTERNAL, "plan: %s takes column %u, which it does not get",
                 rel_names[rel->kind], col);
        }
        struct type from = v->plan->cols.items[col].type;
        struct type to = v->plan->cols.items[out[i]].type;
        bool open = to.id != TYPE_DECIMAL && type_eq(to, type_of((enum type_id)from.id));
        if (!type_eq(from, to) && !open) { /* a length or precision may be left open */
            FAIL(v->err, INTERNAL, "plan: %s changes the type of column %u", rel_names[rel->kind],
                 col);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_order(struct verify *v, const order_list *order) {
    for (i64 i = 0; i < order->count; i++) {
        TRY(check_expr(v, order->items[i].expr));
    }
    return ERR_OK;
}

static FALLIBLE check_filter(struct verify *v, const struct expr *filter) {
    if (!filter) {
        return ERR_OK;
    }
    TRY(check_expr(v, filter));
    if (filter->type.id != TYPE_BOOLEAN) {
        FAIL(v->err, INTERNAL, "plan: FILTER is not boolean");
    }
    return ERR_OK;
}

static FALLIBLE check_windows(struct verify *v, const window_list *calls) {
    for (i64 i = 0; i < calls->count; i++) {
        const struct window_call *call = &calls->items[i];
        i32 end = call->is_agg ? (i32)AGG_END : call->is_serial ? (i32)SERIAL_END : (i32)WINDOW_END;
        if (call->is_serial != calls->items[0].is_serial || call->func >= end) {
            FAIL(v->err, INTERNAL, "plan: no window function %d", (int)call->func);
        }
        TRY(check_exprs(v, call->args, call->arg_count));
        TRY(check_filter(v, call->filter));
        TRY(check_exprs(v, &call->frame.from_offset, call->frame.from_offset != NULL));
        TRY(check_exprs(v, &call->frame.to_offset, call->frame.to_offset != NULL));
    }
    return ERR_OK;
}

/* Aggregates; their results are the columns of `out` from `first`. */
static FALLIBLE check_calls(struct verify *v, const struct rel *rel, const agg_list *calls,
                            i64 first) {
    for (i64 i = 0; i < calls->count; i++) {
        const struct agg_call *call = &calls->items[i];
        if (call->agg >= AGG_END || (call->agg == AGG_COUNT_STAR) != (call->arg == NULL)) {
            FAIL(v->err, INTERNAL, "plan: aggregate without its argument");
        }
        TRY(check_exprs(v, &call->arg, call->arg != NULL));
        TRY(check_exprs(v, &call->arg2, call->arg2 != NULL));
        TRY(check_filter(v, call->filter));
        TRY(check_order(v, &call->order));
        if (first + i < rel->out.count && rel->out.items[first + i] != call->col) {
            FAIL(v->err, INTERNAL, "plan: aggregate column %u is out of place", call->col);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_bound(struct verify *v, const struct expr *expr) {
    if (expr && expr->kind != EXPR_CONST && expr->kind != EXPR_PARAM) {
        FAIL(v->err, INTERNAL, "plan: LIMIT is neither constant nor parameter");
    }
    return expr ? check_expr(v, expr) : ERR_OK;
}

static FALLIBLE check_flags(struct verify *v, const struct rel *rel, const flag_list *flags,
                            i64 count) {
    if (flags->count != 0 && flags->count != count) {
        FAIL(v->err, INTERNAL, "plan: %s has %lld flags for %lld expressions", rel_names[rel->kind],
             flags->count, count);
    }
    return ERR_OK;
}

struct counts {
    i64 before; /* of the list before the field */
    i64 made;   /* columns that expressions and aggregates make so far */
    bool makes;
};

static FALLIBLE check_field(struct verify *v, const struct rel *rel, const struct rel_field *field,
                            struct counts *c) {
    const void *at = field_in(rel, field);
    const expr_list *exprs = at;
    const agg_list *calls = at;
    switch (field->class) {
    case FIELD_EXPRS:
    case FIELD_MAKES:
        c->before = exprs->count;
        c->makes = c->makes || field->class == FIELD_MAKES;
        c->made += field->class == FIELD_MAKES ? exprs->count : 0;
        return check_exprs(v, exprs->items, exprs->count);
    case FIELD_CONDS:
        return check_conds(v, at);
    case FIELD_ORDER:
        return check_order(v, at);
    case FIELD_BOUND:
        return check_bound(v, *(struct expr *const *)at);
    case FIELD_CALLS:
        TRY(check_calls(v, rel, calls, c->made));
        c->makes = true;
        c->made += calls->count;
        return ERR_OK;
    case FIELD_WINDOWS:
        return check_windows(v, at);
    case FIELD_COLS:
        for (i32 i = 0; i < rel->input_count; i++) {
            open_scope(v, rel, i, i + 1);
            TRY(check_copies(v, rel, i));
        }
        return ERR_OK;
    case FIELD_FLAGS:
    case FIELD_NOTES:
        return check_flags(v, rel, at, c->before);
    default:
        return ERR_OK;
    }
}

static FALLIBLE check_join(struct verify *v, const struct rel_JOIN *join) {
    if (join->left_keys.count != join->right_keys.count) {
        FAIL(v->err, INTERNAL, "plan: join keys do not pair up");
    }
    for (i64 i = 0; i < join->left_keys.count; i++) {
        if (join->left_keys.items[i]->type.id != join->right_keys.items[i]->type.id) {
            FAIL(v->err, INTERNAL, "plan: join keys of different types");
        }
    }
    if ((join->kind == JOIN_MARK) != (join->mark_col != NO_COL)) {
        FAIL(v->err, INTERNAL, "plan: join with a mark that it does not make");
    }
    return ERR_OK;
}

static FALLIBLE check_values(struct verify *v, const struct rel *rel) {
    if (rel->out.count > 0 ? rel->values.exprs.count % rel->out.count != 0
                           : rel->values.exprs.count != 0) {
        FAIL(v->err, INTERNAL, "plan: VALUES rows of different lengths");
    }
    return ERR_OK;
}

static FALLIBLE check_agg(struct verify *v, const struct rel *rel) {
    bool decides = rel->agg.implied.count == 0;
    for (i64 i = 0; i < rel->agg.implied.count; i++) {
        decides = decides || !rel->agg.implied.items[i];
    }
    if (!decides) {
        FAIL(v->err, INTERNAL, "plan: group keys that nothing decides");
    }
    return ERR_OK;
}

/* Columns that a SHARED takes of a recursion are one relation's. */
static FALLIBLE check_shared(struct verify *v, const struct rel *rel) {
    const struct rel *fix = rel_input(rel);
    if (fix->kind != REL_FIX) {
        return ERR_OK;
    }
    if (rel->shared.relation >= (u32)fix->input_count / 2) {
        FAIL(v->err, INTERNAL, "plan: no relation %u", rel->shared.relation);
    }
    i32 input = 2 * (i32)rel->shared.relation;
    const u32 *out = rel_copied(fix, input);
    v->stamp++;
    for (i64 i = 0; i < rel_cols(fix, input)->count; i++) {
        v->scope[out[i]] = v->stamp;
    }
    for (i64 i = 0; i < rel->shared.cols->count; i++) {
        if (v->scope[rel->shared.cols->items[i]] != v->stamp) {
            FAIL(v->err, INTERNAL, "plan: column %u is another relation's",
                 rel->shared.cols->items[i]);
        }
    }
    return ERR_OK;
}

/* What the table of operators does not say. */
static FALLIBLE check_own(struct verify *v, const struct rel *rel) {
    switch (rel->kind) {
    case REL_JOIN:
        return check_join(v, &rel->join);
    case REL_VALUES:
        return check_values(v, rel);
    case REL_AGG:
        return check_agg(v, rel);
    case REL_SHARED:
        return check_shared(v, rel);
    default:
        return ERR_OK;
    }
}

struct defining {
    struct verify *v;
    wf_status status;
};

static void define_col(u32 col, void *arg) {
    struct defining *d = arg;
    d->status = d->status ? d->status : define(d->v, col);
    if (!d->status) {
        d->v->scope[col] = d->v->stamp;
    }
}

/* What an operator hands up it makes, or gets from its inputs. */
static FALLIBLE check_out(struct verify *v, const struct rel *rel, const struct counts *c) {
    struct defining d = {v, ERR_OK};
    if (c->makes && rel->out.count != c->made) {
        FAIL(v->err, INTERNAL, "plan: %s lists %lld columns for %lld expressions",
             rel_names[rel->kind], rel->out.count, c->made);
    }
    open_scope(v, rel, 0, rel_visible(rel));
    rel_each_made(rel, define_col, &d);
    TRY(d.status);
    for (i64 i = 0; i < rel->out.count; i++) {
        if (rel->out.items[i] >= v->plan->cols.count || v->scope[rel->out.items[i]] != v->stamp) {
            FAIL(v->err, INTERNAL, "plan: %s passes on column %u, which it does not get",
                 rel_names[rel->kind], rel->out.items[i]);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_rel(struct verify *v, const struct rel *rel);

static bool checked_before(struct verify *v, const struct rel *input) {
    for (i64 i = 0; i < v->shared.count; i++) {
        if (v->shared.items[i] == input) {
            return true;
        }
    }
    VEC_PUSH(v->plan->arena, &v->shared, input);
    return false;
}

/* Both inputs; the left one's columns are open to the right of a dependent join. */
static FALLIBLE check_inputs(struct verify *v, const struct rel *rel) {
    for (i32 i = 0; i < rel->input_count; i++) {
        const struct rel *input = rel->inputs[i];
        if (!input) {
            FAIL(v->err, INTERNAL, "plan: %s without input", rel_names[rel->kind]);
        }
        if (input->kind == REL_FIX && input->input_count > 2 && !rel_shares(rel)) {
            FAIL(v->err, INTERNAL, "plan: %s of several relations", rel_names[rel->kind]);
        }
        if (rel_shares(rel) && checked_before(v, input)) {
            continue;
        }
        bool open = i == 1 && rel->kind == REL_JOIN && rel->join.dependent;
        for (i64 k = 0; open && k < rel_left(rel)->out.count; k++) {
            v->outer[rel_left(rel)->out.items[k]]++;
        }
        TRY(check_rel(v, input));
        for (i64 k = 0; open && k < rel_left(rel)->out.count; k++) {
            v->outer[rel_left(rel)->out.items[k]]--;
        }
    }
    return ERR_OK;
}

static FALLIBLE check_rel(struct verify *v, const struct rel *rel) {
    if (rel->kind >= REL_COUNT) {
        FAIL(v->err, INTERNAL, "plan: no operator %d", (int)rel->kind);
    }
    i32 inputs = rel_infos[rel->kind].inputs;
    if (inputs == PAIRS ? rel->input_count % 2 || !rel->input_count : rel->input_count != inputs) {
        FAIL(v->err, INTERNAL, "plan: %s with %d inputs", rel_names[rel->kind],
             (int)rel->input_count);
    }
    TRY(check_inputs(v, rel));
    struct counts c = {0};
    i32 open = -1;
    EACH_FIELD(field, rel) {
        if (field->where != open) {
            open_where(v, rel, field->where);
            open = field->where;
        }
        TRY(check_field(v, rel, field, &c));
        open = field->class == FIELD_COLS ? -1 : open;
    }
    TRY(check_own(v, rel));
    return check_out(v, rel, &c);
}

FALLIBLE plan_verify(const struct plan *plan, struct error *err) {
    if (!plan->root) {
        FAIL(err, INTERNAL, "plan: no root");
    }
    if (plan->names.count != plan->root->out.count) {
        FAIL(err, INTERNAL, "plan: %lld names for %lld columns", plan->names.count,
             plan->root->out.count);
    }
    struct verify v = {.plan = plan, .err = err};
    v.seen = NEW_ARRAY(plan->arena, u8, plan->cols.count + 1);
    v.scope = NEW_ARRAY(plan->arena, u32, plan->cols.count + 1);
    v.outer = NEW_ARRAY(plan->arena, u16, plan->cols.count + 1);
    return check_rel(&v, plan->root);
}
