/* plan.c: makes the parts of a plan: columns, operators, and the name tables.
 *
 * A plan lives in one arena and is never freed piece by piece. Operators that pass rows on
 * unchanged (filter, sort, limit) and joins start with the columns of their inputs in `out`,
 * because that is what they produce unless a later pass narrows it; scans, values, projections and
 * aggregates start empty, and their maker lists what they compute. */
#include "plan/plan.h"

#include <stddef.h>

#include "plan/plan_int.h"

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
#define X(A, name, own, text, inputs, flags, first, others) text,
const char *const rel_names[REL_COUNT] = {WF_RELS(X, )};
#undef X

#define F(A, class, type, field, where, before) \
    {FIELD_##class, WHERE_##where, (u16)offsetof(struct A, field), (u16)sizeof(type), before},
#define X(A, name, own, text, inputs, flags, first, others)          \
    static const struct rel_field fields_##name[] = { \
        WF_REL_##name(F, rel_##name){0, 0, 0, 0, NULL}};
WF_RELS(X, )
#undef X
#undef F
#define X(A, name, own, text, inputs, flags, first, others) \
    {fields_##name, offsetof(struct rel, own), inputs, flags, WAITS_##first, WAITS_##others},
const struct rel_info rel_infos[REL_COUNT] = {WF_RELS(X, )};
#undef X

u32 plan_col_new(struct plan *plan, const char *name, struct type type, bool nullable) {
    struct plan_col col = {name, type, nullable};
    VEC_PUSH(plan->arena, &plan->cols, col);
    return (u32)(plan->cols.count - 1);
}

u32 plan_col_like(struct plan *plan, u32 col) {
    struct plan_col like = plan->cols.items[col];
    return plan_col_new(plan, like.name, like.type, like.nullable);
}

static void set_kind(struct plan *plan, struct rel *rel, enum rel_kind kind, struct rel **inputs,
                     i32 count) {
    CHECK(rel_infos[kind].inputs == PAIRS ? count % 2 == 0 : count == rel_infos[kind].inputs);
    rel->kind = (u8)kind;
    rel->inputs = inputs;
    rel->input_count = count;
    EACH_FIELD(field, rel) {
        memset(field_in(rel, field), 0, field->bytes);
        if (field->class == FIELD_MARK) {
            *(u32 *)field_in(rel, field) = NO_COL;
        }
        if (field->class == FIELD_COLS) {
            *(col_list **)field_in(rel, field) = NEW_ARRAY(plan->arena, col_list, count);
        }
    }
}

static void *field_of(const struct rel *rel, enum field_class class) {
    EACH_FIELD(field, rel) {
        if (field->class == class) {
            return field_in(rel, field);
        }
    }
    return NULL;
}

expr_list *rel_conds(const struct rel *rel) {
    return field_of(rel, FIELD_CONDS);
}

expr_list *rel_exprs(const struct rel *rel) {
    return field_of(rel, FIELD_MAKES);
}

col_list *rel_cols(const struct rel *rel, i32 input) {
    col_list **cols = field_of(rel, FIELD_COLS);
    ASSERT(input < rel->input_count);
    return cols ? *cols + input : NULL;
}

const u32 *rel_copied(const struct rel *rel, i32 input) {
    i64 first = 0;
    for (i32 i = 0; rel->kind == REL_FIX && i + 1 < input; i += 2) {
        first += rel_cols(rel, i)->count;
    }
    return rel->out.items + first;
}

struct rel *rel_over(struct plan *plan, enum rel_kind kind, struct rel *const *inputs, i32 count) {
    struct rel *rel = NEW(plan->arena, struct rel);
    struct rel **own = NEW_ARRAY(plan->arena, struct rel *, count);
    memcpy(own, inputs, sizeof(struct rel *) * (size_t)count);
    rel->position = -1;
    set_kind(plan, rel, kind, own, count);
    for (i32 i = 0; rel_passes(rel) && i < count; i++) {
        for (i64 k = 0; k < inputs[i]->out.count; k++) {
            VEC_PUSH(plan->arena, &rel->out, inputs[i]->out.items[k]);
        }
    }
    return rel;
}

struct rel *rel_new(struct plan *plan, enum rel_kind kind, struct rel *left, struct rel *right) {
    struct rel *inputs[2] = {left, right};
    return rel_over(plan, kind, inputs, (left ? 1 : 0) + (right ? 1 : 0));
}

void rel_become(struct plan *plan, struct rel *rel, enum rel_kind kind, struct rel *input) {
    struct rel **inputs = NEW_ARRAY(plan->arena, struct rel *, 1);
    *inputs = input;
    set_kind(plan, rel, kind, inputs, 1);
}

struct rel *rel_body(struct plan *plan, const struct rel *place) {
    struct rel *body = NEW(plan->arena, struct rel);
    *body = *place;
    body->inputs = NEW_ARRAY(plan->arena, struct rel *, place->input_count);
    memcpy(body->inputs, place->inputs, sizeof(struct rel *) * (size_t)place->input_count);
    return body;
}

struct rel *rel_shared(struct plan *plan, struct rel *input, const u32 *cols, const u32 *as,
                       i64 count) {
    struct rel *shared = rel_new(plan, REL_SHARED, input, NULL);
    for (i64 i = 0; i < count; i++) {
        u32 col = as ? as[i] : plan_col_like(plan, cols[i]);
        VEC_PUSH(plan->arena, shared->shared.cols, cols[i]);
        VEC_PUSH(plan->arena, &shared->out, col);
    }
    shared->rows = input->rows;
    return shared;
}

void rel_unshare(struct plan *plan, struct rel *shared) {
    const col_list *cols = shared->shared.cols;
    if (rel_input(shared)->kind == REL_FIX && rel_input(shared)->input_count > 2) {
        return; /* it has one relation of several */
    }
    rel_become(plan, shared, REL_PROJECT, rel_input(shared));
    for (i64 i = 0; i < cols->count; i++) {
        VEC_PUSH(plan->arena, &shared->project.exprs, expr_col(plan, cols->items[i], -1));
    }
}

bool rel_passes(const struct rel *rel) {
    return (rel_infos[rel->kind].flags & PASSES) != 0;
}

bool rel_shares(const struct rel *rel) {
    return (rel_infos[rel->kind].flags & SHARES) != 0;
}

enum rel_waits rel_kind_waits(enum rel_kind kind) {
    return (enum rel_waits)rel_infos[kind].first;
}

enum rel_waits rel_waits(const struct rel *rel, i32 input) {
    const struct rel_info *info = &rel_infos[rel->kind];
    enum rel_waits waits = (enum rel_waits)(input == 0 ? info->first : info->others);
    bool finds_one = rel->kind == REL_JOIN && rel->join.kind != JOIN_FULL &&
                     (rel->join.right_unique || rel->join.kind == JOIN_SINGLE || rel_visible(rel) == 1);
    return waits == WAITS_BLOCK && finds_one ? WAITS_ELEMENT : waits;
}

i32 rel_visible(const struct rel *rel) {
    bool tests =
        rel->kind == REL_JOIN &&
        (rel->join.kind == JOIN_SEMI || rel->join.kind == JOIN_ANTI || rel->join.kind == JOIN_MARK);
    return tests ? 1 : rel->input_count;
}

struct rel *rel_join(struct plan *plan, enum join_kind kind, struct rel *left, struct rel *right) {
    struct rel *rel = rel_new(plan, REL_JOIN, left, right);
    rel->join.kind = (u8)kind;
    if (rel_visible(rel) == 1) {
        rel->out.count = left->out.count;
    }
    if (kind == JOIN_MARK) {
        rel->join.mark_col = plan_col_new(plan, "mark", type_of(TYPE_BOOLEAN), false);
        VEC_PUSH(plan->arena, &rel->out, rel->join.mark_col);
    }
    return rel;
}

struct rel *rel_numbered(struct plan *plan, struct rel *rel, u32 col) {
    struct rel *window = rel_new(plan, REL_WINDOW, rel, NULL);
    struct window_call call = {.func = WINDOW_ROW_NUMBER, .position = -1, .col = col};
    call.frame =
        (struct frame){.mode = FRAME_ROWS, .from = BOUND_UNBOUNDED_BEFORE, .to = BOUND_CURRENT};
    VEC_PUSH(plan->arena, &window->window.calls, call);
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
