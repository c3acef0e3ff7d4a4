/* bind_set.c: set-returning functions in a select list, ROWS FROM and WITH ORDINALITY.
 *
 * Part of binding. A call stands for a column, as an aggregate does, and the joins that make these
 * columns come when everything below is built: every row is joined with the rows the calls give for
 * it. As in PostgreSQL, calls of one depth run in lockstep, the shorter ones padded with NULLs;
 * those in arguments of others come first. A call that a group key or a window's definition names
 * is computed below the groups or windows, all others above both. Lockstep is a FULL JOIN by the
 * number of the element. */
#include "sql/select_int.h"

#include "codes/func.h"

/* calls */

struct level_walk {
    const struct query *q;
    i32 level; /* the greatest of the calls named */
};

static void note_level(u32 col, void *arg) {
    struct level_walk *w = arg;
    for (i64 i = 0; i < w->q->set_calls.count; i++) {
        if (w->q->set_calls.items[i].col == col) {
            w->level = MAX_OF(w->level, w->q->set_calls.items[i].level);
        }
    }
}

FALLIBLE need_no_set(struct bind *b, const struct query *q, struct expr *const *exprs, i32 count,
                     i32 position) {
    struct level_walk w = {q, 0};
    for (i32 i = 0; i < count; i++) {
        expr_each_col(exprs[i], note_level, &w);
    }
    if (w.level) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, position,
                "row comparison operator must not return a set");
    }
    return ERR_OK;
}

static bool is_stable(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return expr->kind != EXPR_CALL || (expr->func != FUNC_RANDOM && expr->func != FUNC_RANDOM_UUID);
}

/* Equal calls give equal rows in lockstep, so one serves for both. */
static bool same_call(const struct set_call *a, const struct set_call *c) {
    bool same = a->func == c->func && a->count == c->count && a->level == c->level;
    for (i32 i = 0; same && i < a->count; i++) {
        same = expr_equal(a->args[i], c->args[i]) && expr_walk(a->args[i], is_stable, NULL);
    }
    return same;
}

static wf_status refuse(struct bind *b, const struct query *q, i32 position) {
    if (q->no_sets) {
        error_set(b->err, ERR_NOT_SUPPORTED, position, "%s", q->no_sets);
        error_hint(
            b->err,
            "You might be able to move the set-returning function into a LATERAL FROM item.");
        return b->err->code;
    }
    FAIL_AT(b->err, NOT_SUPPORTED, position, "set-returning functions are not allowed in %s",
            q->clause);
}

FALLIBLE bind_set_call(struct bind *b, struct query *q, const char *name, const struct json *body,
                       bool *out_is, struct expr **out) {
    struct set_call call = {.position = json_position(body), .level = 1};
    struct expr **args = NULL;
    struct expr *typed[3];
    struct rel *rel = NULL;
    *out_is = bind_is_table_func(name);
    if (!*out_is) {
        return ERR_OK;
    }
    if (!q->sets_allowed || q->no_sets) {
        return refuse(b, q, call.position);
    }
    TRY(bind_list(b, q, json_get(body, "args"), &args, &call.count));
    TRY(bind_table_func_find(b, name, args, call.count, call.position, &call.func));
    for (i32 i = 0; i < call.count; i++) {
        struct level_walk w = {q, 0};
        expr_each_col(args[i], note_level, &w);
        call.level = MAX_OF(call.level, w.level + 1);
        call.args[i] = args[i];
        typed[i] = args[i];
    }
    for (i64 i = 0; i < q->set_calls.count; i++) {
        if (same_call(&q->set_calls.items[i], &call)) {
            *out = expr_col(b->plan, q->set_calls.items[i].col, call.position);
            return ERR_OK;
        }
    }
    TRY(bind_table_call(b, call.func, typed, call.count, call.position, false, &rel));
    struct type type = b->plan->cols.items[rel->out.items[0]].type; /* all that is wanted of it */
    call.col = bind_col_new(b, NULL, keep(b, name), type, true);
    VEC_PUSH(b->arena, &q->set_calls, call);
    *out = expr_col(b->plan, call.col, call.position);
    return ERR_OK;
}

/* lockstep */

static struct expr *either_number(struct bind *b, u32 left, u32 right) {
    struct expr *value = expr_col(b->plan, left, -1);
    struct expr *args[3] = {expr_one(b->t, EXPR_IS_NULL, value, -1), expr_col(b->plan, right, -1),
                            value};
    return expr_many(b->t, EXPR_CASE, value->type, -1, 3, args);
}

FALLIBLE bind_lockstep(struct bind *b, struct rel **rels, i64 count, struct rel **out) {
    struct rel *all = rels[0];
    const char **names = NEW_ARRAY(b->arena, const char *, count + 1);
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    for (i64 i = 1; i < count; i++) {
        u32 left = all->out.items[i];
        u32 right = rels[i]->out.items[1];
        struct rel *join = rel_join(b->plan, JOIN_FULL, all, rels[i]);
        struct expr *same = NULL;
        TRY(operator_compare(b->t, FUNC_EQ, expr_col(b->plan, left, -1),
                             expr_col(b->plan, right, -1), -1, &same));
        VEC_PUSH(b->arena, &join->join.conds, same);
        join->rows = MAX_OF(all->rows, rels[i]->rows);
        bind_nullable(b, all);
        bind_nullable(b, rels[i]);
        for (i64 k = 0; k <= i; k++) {
            u32 col = k < i ? all->out.items[k] : rels[i]->out.items[0];
            exprs[k] = expr_col(b->plan, col, -1);
            names[k] = b->plan->cols.items[col].name;
        }
        exprs[i + 1] = either_number(b, left, right);
        names[i + 1] = "ordinality";
        all = bind_project(b, join, exprs, names, i + 2);
        b->plan->cols.items[all->out.items[i + 1]].nullable = 0;
    }
    *out = all;
    return ERR_OK;
}

/* The joins */

/* What the calls of one stage and level give for a row. */
static FALLIBLE level_rel(struct bind *b, struct set_call **calls, i64 count, struct rel **out) {
    struct rel **rels = NEW_ARRAY(b->arena, struct rel *, count);
    for (i64 i = 0; i < count; i++) {
        TRY(bind_table_call(b, calls[i]->func, calls[i]->args, calls[i]->count, calls[i]->position,
                            count > 1, &rels[i]));
    }
    TRY(bind_lockstep(b, rels, count, out));
    for (i64 i = 0; i < count; i++) {
        bool null = b->plan->cols.items[(*out)->out.items[i]].nullable;
        b->plan->cols.items[calls[i]->col].nullable = null || count > 1;
        (*out)->out.items[i] = calls[i]->col;
    }
    return ERR_OK;
}

struct stage_walk {
    struct query *q;
    enum set_stage stage;
};

/* The calls that expressions name, and those in their arguments, belong to a stage. */
static void take_stage(u32 col, void *arg) {
    struct stage_walk *w = arg;
    for (i64 i = 0; i < w->q->set_calls.count; i++) {
        struct set_call *call = &w->q->set_calls.items[i];
        if (call->col == col && call->stage < w->stage) {
            call->stage = (u8)w->stage;
            for (i32 k = 0; k < call->count; k++) {
                expr_each_col(call->args[k], take_stage, w);
            }
        }
    }
}

void bind_set_stages(struct select *s) {
    struct query *q = &s->query;
    struct stage_walk groups = {q, SET_BELOW_GROUPS};
    struct stage_walk windows = {q, SET_BELOW_WINDOWS};
    for (i64 i = 0; i < s->keys.count; i++) {
        expr_each_col(s->keys.items[i], take_stage, &groups);
    }
    for (i64 i = 0; i < q->windows.count; i++) {
        const struct window_item *item = &q->windows.items[i];
        for (i64 k = 0; k < item->partition.count; k++) {
            expr_each_col(item->partition.items[k], take_stage, &windows);
        }
        for (i64 k = 0; k < item->order.count; k++) {
            expr_each_col(item->order.items[k].expr, take_stage, &windows);
        }
    }
}

FALLIBLE build_sets(struct bind *b, struct select *s, enum set_stage stage) {
    struct query *q = &s->query;
    i64 left = q->set_calls.count;
    struct set_call **calls = NEW_ARRAY(b->arena, struct set_call *, left + 1);
    for (i32 level = 1; left > 0; level++) {
        i64 count = 0;
        for (i64 i = 0; i < q->set_calls.count; i++) {
            struct set_call *call = &q->set_calls.items[i];
            left -= call->level == level;
            if (call->level == level && call->stage == stage) {
                calls[count++] = call;
            }
        }
        struct pending p = {.join = JOIN_CROSS};
        pending_list one = {0};
        if (count > 0) {
            TRY(level_rel(b, calls, count, &p.rel));
            VEC_PUSH(b->arena, &one, p);
            s->rel = bind_attach(b, s->rel, &one);
        }
    }
    return ERR_OK;
}
