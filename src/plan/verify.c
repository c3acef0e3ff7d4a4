/* verify.c: the structural check of a plan: every rule that plan.h states and lowering relies on.
 *
 * Runs after the front end and after every optimiser pass in test builds. A failure is a
 * programming error of ours, reported as XX000 with what is wrong, so that a fuzzer or a test sees
 * it at the pass that broke the plan and not three stages later. */
#include "plan/plan.h"

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
#define X(A, name, text, arguments, doc) arguments,
    static const i8 func_args[FUNC_COUNT] = {WF_FUNCS(X, )};
#undef X
    if (expr->func >= FUNC_COUNT) {
        FAIL(v->err, INTERNAL, "plan: no function %d", (int)expr->func);
    }
    i32 want = func_args[expr->func];
    const char *scalar = scalar_infos[expr->func].args;
    if (scalar) {
        want = (i32)strcspn(scalar, "@#");
    }
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

/* Makes the columns of up to two inputs the scope of the next expressions. */
static void open_scope(struct verify *v, const struct rel *a, const struct rel *b) {
    v->stamp++;
    for (i64 i = 0; a && i < a->out.count; i++) {
        v->scope[a->out.items[i]] = v->stamp;
    }
    for (i64 i = 0; b && i < b->out.count; i++) {
        v->scope[b->out.items[i]] = v->stamp;
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

static FALLIBLE check_conds(struct verify *v, const struct rel *rel) {
    for (i64 i = 0; i < rel->conds.count; i++) {
        TRY(check_expr(v, rel->conds.items[i]));
        if (rel->conds.items[i]->type.id != TYPE_BOOLEAN) {
            FAIL(v->err, INTERNAL, "plan: condition is not boolean");
        }
    }
    return ERR_OK;
}

static FALLIBLE check_exprs(struct verify *v, struct expr *const *items, i64 count) {
    for (i64 i = 0; i < count; i++) {
        TRY(check_expr(v, items[i]));
    }
    return ERR_OK;
}

/* The columns an operator hands on must be its inputs'. */
static FALLIBLE check_passed(struct verify *v, const struct rel *rel) {
    for (i64 i = 0; i < rel->out.count; i++) {
        if (rel->out.items[i] >= v->plan->cols.count || v->scope[rel->out.items[i]] != v->stamp) {
            FAIL(v->err, INTERNAL, "plan: %s passes on column %u, which it does not get",
                 rel_names[rel->kind], rel->out.items[i]);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_join(struct verify *v, const struct rel *rel) {
    if (rel->left_keys.count != rel->right_keys.count) {
        FAIL(v->err, INTERNAL, "plan: join keys do not pair up");
    }
    open_scope(v, rel->inputs[0], NULL);
    TRY(check_exprs(v, rel->left_keys.items, rel->left_keys.count));
    open_scope(v, rel->inputs[1], NULL);
    TRY(check_exprs(v, rel->right_keys.items, rel->right_keys.count));
    for (i64 i = 0; i < rel->left_keys.count; i++) {
        if (rel->left_keys.items[i]->type.id != rel->right_keys.items[i]->type.id) {
            FAIL(v->err, INTERNAL, "plan: join keys of different types");
        }
    }
    if (rel->null_safe.count != 0 && rel->null_safe.count != rel->left_keys.count) {
        FAIL(v->err, INTERNAL, "plan: join keys with and without NULLs do not pair up");
    }
    open_scope(v, rel->inputs[0], rel->inputs[1]);
    TRY(check_conds(v, rel));
    bool left_only = rel->join == JOIN_SEMI || rel->join == JOIN_ANTI || rel->join == JOIN_MARK;
    if (left_only) {
        open_scope(v, rel->inputs[0], NULL);
    }
    if (rel->join == JOIN_MARK) {
        TRY(define(v, rel->mark_col));
        v->scope[rel->mark_col] = v->stamp;
    }
    return check_passed(v, rel);
}

static FALLIBLE check_made(struct verify *v, const struct rel *rel, i64 want) {
    if (rel->out.count != want) {
        FAIL(v->err, INTERNAL, "plan: %s lists %lld columns for %lld expressions",
             rel_names[rel->kind], rel->out.count, want);
    }
    for (i64 i = 0; i < rel->out.count; i++) {
        TRY(define(v, rel->out.items[i]));
    }
    return ERR_OK;
}

static FALLIBLE check_scan(struct verify *v, const struct rel *rel) {
    open_scope(v, NULL, NULL);
    for (i64 i = 0; i < rel->scan_cols.count; i++) {
        TRY(define(v, rel->scan_cols.items[i].col));
        v->scope[rel->scan_cols.items[i].col] = v->stamp;
    }
    return check_passed(v, rel);
}

static FALLIBLE check_values(struct verify *v, const struct rel *rel) {
    open_scope(v, NULL, NULL);
    TRY(check_exprs(v, rel->exprs.items, rel->exprs.count));
    if (rel->out.count > 0 ? rel->exprs.count % rel->out.count != 0 : rel->exprs.count != 0) {
        FAIL(v->err, INTERNAL, "plan: VALUES rows of different lengths");
    }
    return check_made(v, rel, rel->out.count);
}

static FALLIBLE check_copies(struct verify *v, const struct rel *rel, const struct rel *input,
                             const u32 *cols, i64 count) {
    if (count != rel->out.count) {
        FAIL(v->err, INTERNAL, "plan: %s of %lld columns makes %lld", rel_names[rel->kind], count,
             rel->out.count);
    }
    open_scope(v, input, NULL);
    for (i64 i = 0; i < count; i++) {
        bool known = cols[i] < v->plan->cols.count && rel->out.items[i] < v->plan->cols.count;
        if (!known || v->scope[cols[i]] != v->stamp) {
            FAIL(v->err, INTERNAL, "plan: %s takes column %u, which it does not get",
                 rel_names[rel->kind], cols[i]);
        }
        struct type from = v->plan->cols.items[cols[i]].type;
        struct type to = v->plan->cols.items[rel->out.items[i]].type;
        bool open = to.id != TYPE_DECIMAL && type_eq(to, type_of((enum type_id)from.id));
        if (!type_eq(from, to) && !open) { /* a length or precision may be left open */
            FAIL(v->err, INTERNAL, "plan: %s changes the type of column %u", rel_names[rel->kind],
                 cols[i]);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_union(struct verify *v, const struct rel *rel) {
    TRY(check_copies(v, rel, rel->inputs[0], rel->left_cols.items, rel->left_cols.count));
    TRY(check_copies(v, rel, rel->inputs[1], rel->right_cols.items, rel->right_cols.count));
    return check_made(v, rel, rel->out.count);
}

static FALLIBLE check_shared(struct verify *v, const struct rel *rel) {
    TRY(check_copies(v, rel, rel->inputs[0], rel->left_cols.items, rel->left_cols.count));
    return check_made(v, rel, rel->out.count);
}

static FALLIBLE check_order(struct verify *v, const struct order_key *items, i64 count) {
    for (i64 i = 0; i < count; i++) {
        TRY(check_expr(v, items[i].expr));
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

static FALLIBLE check_window(struct verify *v, const struct rel *rel) {
    TRY(check_exprs(v, rel->exprs.items, rel->exprs.count));
    TRY(check_order(v, rel->order.items, rel->order.count));
    u32 inner = v->stamp;
    for (i64 i = 0; i < rel->windows.count; i++) {
        const struct window_call *call = &rel->windows.items[i];
        i32 end = call->is_agg ? (i32)AGG_END : call->is_serial ? (i32)SERIAL_END : (i32)WINDOW_END;
        if (call->is_serial != rel->windows.items[0].is_serial || call->func >= end) {
            FAIL(v->err, INTERNAL, "plan: no window function %d", (int)call->func);
        }
        TRY(check_exprs(v, call->args, call->arg_count));
        TRY(check_filter(v, call->filter));
        TRY(check_exprs(v, &call->frame.from_offset, call->frame.from_offset != NULL));
        TRY(check_exprs(v, &call->frame.to_offset, call->frame.to_offset != NULL));
    }
    for (i64 i = 0; i < rel->windows.count; i++) {
        TRY(define(v, rel->windows.items[i].col));
        v->scope[rel->windows.items[i].col] = inner;
    }
    return check_passed(v, rel);
}

static FALLIBLE check_agg(struct verify *v, const struct rel *rel) {
    bool decides = rel->implied.count == 0;
    for (i64 i = 0; i < rel->implied.count; i++) {
        decides = decides || !rel->implied.items[i];
    }
    if (!decides || (rel->implied.count > 0 && rel->implied.count != rel->exprs.count)) {
        FAIL(v->err, INTERNAL, "plan: group keys that nothing decides");
    }
    TRY(check_exprs(v, rel->exprs.items, rel->exprs.count));
    for (i64 i = 0; i < rel->calls.count; i++) {
        const struct agg_call *call = &rel->calls.items[i];
        if (call->agg >= AGG_END || (call->agg == AGG_COUNT_STAR) != (call->arg == NULL)) {
            FAIL(v->err, INTERNAL, "plan: aggregate without its argument");
        }
        if (call->arg) {
            TRY(check_expr(v, call->arg));
        }
        if (call->arg2) {
            TRY(check_expr(v, call->arg2));
        }
        TRY(check_filter(v, call->filter));
        TRY(check_order(v, call->order.items, call->order.count));
        i64 at = rel->exprs.count + i;
        if (at < rel->out.count && rel->out.items[at] != call->col) {
            FAIL(v->err, INTERNAL, "plan: aggregate column %u is out of place", call->col);
        }
    }
    return check_made(v, rel, rel->exprs.count + rel->calls.count);
}

static FALLIBLE check_bound(struct verify *v, const struct expr *expr) {
    if (expr && expr->kind != EXPR_CONST && expr->kind != EXPR_PARAM) {
        FAIL(v->err, INTERNAL, "plan: LIMIT is neither constant nor parameter");
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
        if (rel->kind == REL_SHARED && checked_before(v, input)) {
            continue;
        }
        bool open = i == 1 && rel->kind == REL_JOIN && rel->dependent;
        for (i64 k = 0; open && k < rel->inputs[0]->out.count; k++) {
            v->outer[rel->inputs[0]->out.items[k]]++;
        }
        TRY(check_rel(v, input));
        for (i64 k = 0; open && k < rel->inputs[0]->out.count; k++) {
            v->outer[rel->inputs[0]->out.items[k]]--;
        }
    }
    return ERR_OK;
}

static FALLIBLE check_rel(struct verify *v, const struct rel *rel) {
    TRY(check_inputs(v, rel));
    open_scope(v, rel->inputs[0], NULL);
    switch (rel->kind) {
    case REL_SCAN:
        return check_scan(v, rel);
    case REL_VALUES:
        return check_values(v, rel);
    case REL_FILTER:
        TRY(check_conds(v, rel));
        return check_passed(v, rel);
    case REL_PROJECT:
        TRY(check_exprs(v, rel->exprs.items, rel->exprs.count));
        return check_made(v, rel, rel->exprs.count);
    case REL_JOIN:
        return check_join(v, rel);
    case REL_AGG:
        return check_agg(v, rel);
    case REL_SORT:
        TRY(check_order(v, rel->order.items, rel->order.count));
        return check_passed(v, rel);
    case REL_UNION:
    case REL_FIX:
        return check_union(v, rel);
    case REL_WORK:
        return check_made(v, rel, rel->out.count);
    case REL_SHARED:
        return check_shared(v, rel);
    case REL_WINDOW:
        return check_window(v, rel);
    case REL_FUNC:
        TRY(check_exprs(v, rel->exprs.items, rel->exprs.count));
        return check_made(v, rel, rel->out.count);
    case REL_LIMIT:
        TRY(check_bound(v, rel->limit));
        TRY(check_bound(v, rel->offset));
        return check_passed(v, rel);
    default:
        FAIL(v->err, INTERNAL, "plan: no operator %d", (int)rel->kind);
    }
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
