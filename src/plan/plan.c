/* plan.c: makes the parts of a plan: columns, operators, and the name tables.
 *
 * A plan lives in one arena and is never freed piece by piece. Operators that pass rows on
 * unchanged (filter, sort, limit) and joins start with the columns of their inputs in `out`,
 * because that is what they produce unless a later pass narrows it; scans, values, projections and
 * aggregates start empty, and their maker lists what they compute. */
#include "plan/plan.h"

#define X(A, name, text, arguments, doc) text,
#define XS(A, name, text, arguments, result, op, doc) text,
const char *const func_names[FUNC_COUNT] = {WF_FUNCS(X, ) WF_SCALARS(XS, )};
#undef X
#undef XS
#define X(A, name, text, arguments, result, op, doc) [FUNC_##name] = {arguments, result, op},
const struct scalar_info scalar_infos[FUNC_COUNT] = {WF_SCALARS(X, )};
#undef X
#define X(A, name, text, arguments, how, doc) text,
const char *const agg_names[AGG_END] = {WF_AGGS(X, )};
#undef X
#define X(A, name, text, fewest, most, doc) text,
const char *const window_names[WINDOW_END] = {WF_WINDOWS(X, )};
const char *const serial_names[SERIAL_END] = {"nextval", "currval", "lastval", "setval",
                                                 "pg_sleep"};
#undef X
#define X(A, name, text, fewest, most, doc) text,
const char *const table_func_names[TABLE_FUNC_END] = {WF_TABLE_FUNCS(X, )};
#undef X
#define X(A, name, text, inputs) text,
const char *const rel_names[REL_COUNT] = {WF_RELS(X, )};
#undef X

#define X(A, name, text, inputs) inputs,
static const u8 rel_inputs[REL_COUNT] = {WF_RELS(X, )};
#undef X

u32 plan_col_new(struct plan *plan, const char *name, struct type type, bool nullable) {
    struct plan_col col = {name, type, nullable};
    VEC_PUSH(plan->arena, &plan->cols, col);
    return (u32)(plan->cols.count - 1);
}

struct rel *rel_new(struct plan *plan, enum rel_kind kind, struct rel *left, struct rel *right) {
    struct rel *rel = NEW(plan->arena, struct rel);
    rel->kind = (u8)kind;
    rel->position = -1;
    rel->inputs[0] = left;
    rel->inputs[1] = right;
    rel->input_count = (left ? 1 : 0) + (right ? 1 : 0);
    CHECK(rel->input_count == rel_inputs[kind]);
    bool passes = kind == REL_FILTER || kind == REL_SORT || kind == REL_LIMIT || kind == REL_JOIN ||
                  kind == REL_WINDOW;
    for (i32 i = 0; passes && i < rel->input_count; i++) {
        for (i64 k = 0; k < rel->inputs[i]->out.count; k++) {
            VEC_PUSH(plan->arena, &rel->out, rel->inputs[i]->out.items[k]);
        }
    }
    return rel;
}

struct rel *rel_join(struct plan *plan, enum join_kind kind, struct rel *left, struct rel *right) {
    struct rel *rel = rel_new(plan, REL_JOIN, left, right);
    rel->join = (u8)kind;
    if (kind == JOIN_SEMI || kind == JOIN_ANTI || kind == JOIN_MARK) {
        rel->out.count = left->out.count;
    }
    if (kind == JOIN_MARK) {
        rel->mark_col = plan_col_new(plan, "mark", type_of(TYPE_BOOLEAN), false);
        VEC_PUSH(plan->arena, &rel->out, rel->mark_col);
    }
    return rel;
}

struct rel *rel_numbered(struct plan *plan, struct rel *rel, u32 col) {
    struct rel *window = rel_new(plan, REL_WINDOW, rel, NULL);
    struct window_call call = {.func = WINDOW_ROW_NUMBER, .position = -1, .col = col};
    call.frame =
        (struct frame){.mode = FRAME_ROWS, .from = BOUND_UNBOUNDED_BEFORE, .to = BOUND_CURRENT};
    VEC_PUSH(plan->arena, &window->windows, call);
    VEC_PUSH(plan->arena, &window->out, col);
    window->rows = rel->rows;
    return window;
}

static u32 rel_number(struct rel *rel, u32 next) {
    if (rel->number) {
        return next;
    }
    rel->number = next++;
    for (i32 i = 0; i < rel->input_count; i++) {
        next = rel_number(rel->inputs[i], next);
    }
    return next;
}

u32 plan_number(struct plan *plan) {
    return rel_number(plan->root, 0);
}
