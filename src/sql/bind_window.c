/* bind_window.c: window functions: OVER, the WINDOW clause, frames.
 *
 * Part of binding. A call becomes a column at once and waits in the query's list; when the select
 * list is complete, calls with equal partitions and orders share one WINDOW operator, which stands
 * above groups and HAVING. The frame belongs to the call. Aggregates inside a window's expressions
 * are those of the query's groups: sum(sum(x)) OVER () is fine, a window within a window is not. */
#include "sql/select_int.h"

#include "codes/scalar.h"

#include <math.h>

/* PostgreSQL's frame option bits, as its parser hands them over. */
enum {
    OPTION_NONDEFAULT = 0x1,
    OPTION_RANGE = 0x2,
    OPTION_ROWS = 0x4,
    OPTION_GROUPS = 0x8,
    OPTION_FROM_FIRST = 0x20,
    OPTION_TO_LAST = 0x100,
    OPTION_FROM_CURRENT = 0x200,
    OPTION_TO_CURRENT = 0x400,
    OPTION_FROM_BEFORE = 0x800,
    OPTION_TO_BEFORE = 0x1000,
    OPTION_FROM_AFTER = 0x2000,
    OPTION_TO_AFTER = 0x4000,
    OPTION_NO_CURRENT = 0x8000,
    OPTION_NO_GROUP = 0x10000,
    OPTION_NO_TIES = 0x20000,
};

void bind_window_each_expr(struct window_item *item, expr_slot_fn fn, void *arg) {
    for (i64 i = 0; i < item->partition.count; i++) {
        fn(&item->partition.items[i], arg);
    }
    for (i64 i = 0; i < item->order.count; i++) {
        fn(&item->order.items[i].expr, arg);
    }
    window_each_expr(&item->call, fn, arg);
}

static i32 window_of(const char *name) {
    for (i32 i = 0; i < WINDOW_END; i++) {
        if (strcmp(window_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

bool window_find(const char *name) {
    return window_of(name) >= 0;
}

static const struct json *named_window(const struct query *q, const char *name) {
    JSON_EACH(node, q->window_clause) {
        const char *own = json_text(node_body(node), "name");
        if (own && strcmp(own, name) == 0) {
            return node_body(node);
        }
    }
    return NULL;
}

static FALLIBLE check_window_names(struct bind *b, const struct query *q) {
    JSON_EACH(node, q->window_clause) {
        const char *name = json_text(node_body(node), "name");
        const struct json *first = name ? named_window(q, name) : NULL;
        if (first && first != node_body(node)) {
            FAIL_AT(b->err, WINDOWING, json_position(node_body(node)),
                    "window \"%.100s\" is already defined", name);
        }
    }
    return ERR_OK;
}

static FALLIBLE bind_partition(struct bind *b, struct query *q, const struct json *def,
                               struct window_item *item) {
    JSON_EACH(node, json_get(def, "partitionClause")) {
        struct expr *expr = NULL;
        TRY(bind_expr(b, q, node, &expr));
        TRY(coerce_unknown(b->t, expr, type_of(TYPE_TEXT), &expr));
        if (expr->kind != EXPR_CONST) {
            VEC_PUSH(b->arena, &item->partition, expr);
        }
    }
    return ERR_OK;
}

static FALLIBLE bind_window_order(struct bind *b, struct query *q, const struct json *def,
                                  struct window_item *item) {
    JSON_EACH(node, json_get(def, "orderClause")) {
        const struct json *sort = node_body(node);
        struct order_key key = {0};
        TRY(bind_sort_options(b, sort, &key.descending, &key.nulls_first));
        TRY(bind_expr(b, q, json_get(sort, "node"), &key.expr));
        TRY(coerce_unknown(b->t, key.expr, type_of(TYPE_TEXT), &key.expr));
        VEC_PUSH(b->arena, &item->order, key);
    }
    return ERR_OK;
}

/* Partition and order of a definition, with those of the window it refers to. */
static FALLIBLE bind_definition(struct bind *b, struct query *q, const struct json *def,
                                struct window_item *item) {
    i32 position = json_position(def);
    const char *ref = json_text(def, "refname");
    TRY(bind_only(b, def,
                  "name refname partitionClause orderClause frameOptions startOffset endOffset "
                  "location",
                  position));
    if (ref) {
        const struct json *base = named_window(q, ref);
        if (!base) {
            FAIL_AT(b->err, UNDEFINED_OBJECT, position, "window \"%.100s\" does not exist", ref);
        }
        TRY(bind_enter(b, NEST_EXPR, position));
        TRY(bind_definition(b, q, base, item));
        bind_leave(b, NEST_EXPR);
        if (json_get(def, "partitionClause")) {
            FAIL_AT(b->err, WINDOWING, position,
                    "cannot override PARTITION BY clause of window \"%.100s\"", ref);
        }
        if (json_get(def, "orderClause") && json_get(base, "orderClause")) {
            FAIL_AT(b->err, WINDOWING, position,
                    "cannot override ORDER BY clause of window \"%.100s\"", ref);
        }
        if (json_number(base, "frameOptions") & OPTION_NONDEFAULT) {
            FAIL_AT(b->err, WINDOWING, position,
                    "cannot copy window \"%.100s\" because it has a frame clause", ref);
        }
    }
    TRY(bind_partition(b, q, def, item));
    return bind_window_order(b, q, def, item);
}

static bool visit_other(const struct expr *expr, void *arg) {
    return expr->kind != EXPR_COL || !scope_has(arg, expr->col);
}

/* Whether RANGE takes an offset of a type: exact ones are compared with keys as they are, a whole
 * number's must be whole. */
static bool range_takes(struct type key, struct type offset) {
    if (type_is_integer(key)) {
        return type_is_integer(offset);
    }
    return key.id == TYPE_DECIMAL ? type_is_exact(offset)
           : type_is_float(key)   ? type_is_numeric(offset)
                                  : coerce_allowed(offset, key, COERCE_ASSIGN);
}

static FALLIBLE offset_to(struct bind *b, struct type type, const char *which, struct expr **io) {
    i32 position = (*io)->position;
    bool range = strcmp(which, "RANGE") == 0;
    char name[32];
    char want[32];
    TRY(coerce_unknown(b->t, *io, type, io));
    struct type own = (*io)->type;
    if (range && !range_takes(type, own)) {
        return unsupported(b, position, "RANGE with an offset of type %s, not %s",
                           type_print(own, name), type_print(type, want));
    }
    if (!range && !coerce_allowed(own, type, COERCE_ASSIGN)) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, position, "argument of %s must be type %s, not type %s",
                which, type_print(type, want), type_print(own, name));
    }
    bool counted = (*io)->kind == EXPR_PARAM && type_is_integer(own); /* its digits are seen to */
    if (range ? !type_is_exact(type) : !counted) {
        TRY(coerce_to(b->t, *io, type_is_float(type) ? type_of(TYPE_DOUBLE) : type, io));
    }
    return ERR_OK;
}

static struct expr *frame_fault(struct bind *b, i32 fault, struct type type, i32 position) {
    struct expr *raise =
        scalar_call(b->t, FUNC_RAISE, position, 1, expr_int(b->t, fault, position));
    raise = expr_one(b->t, EXPR_CAST, raise, position);
    raise->type = type_of(TYPE_TEXT); /* which every type can be cast from */
    raise = expr_one(b->t, EXPR_CAST, raise, position);
    raise->type = type;
    return raise;
}

/* A parameter as a distance of values: neither NULL nor negative. */
static struct expr *checked_offset(struct bind *b, struct expr *offset) {
    struct type type = offset->type, flag = type_of(TYPE_BOOLEAN);
    i32 position = offset->position;
    struct expr *zero = expr_new(b->arena, EXPR_CONST, type, position);
    struct expr *bad[2] = {expr_call(b->arena, FUNC_LT, flag, position, 2, offset, zero), NULL};
    if (type.id == TYPE_DOUBLE) {
        struct expr *nan = expr_new(b->arena, EXPR_CONST, type, position);
        nan->value.f64 = NAN;
        bad[1] = expr_call(b->arena, FUNC_EQ, flag, position, 2, offset, nan);
    }
    struct expr *args[5] = {
        expr_one(b->t, EXPR_IS_NULL, offset, position),
        frame_fault(b, FAULT_FRAME_NULL, type, position),
        bad[1] ? expr_many(b->t, EXPR_OR, flag, position, 2, bad) : bad[0],
        frame_fault(b, FAULT_FRAME_OFFSET, type, position),
        offset,
    };
    return expr_many(b->t, EXPR_CASE, type, position, 5, args);
}

static FALLIBLE bind_offset(struct bind *b, struct query *q, const struct json *node,
                            struct type type, const char *which, struct expr **out) {
    i32 position = node_position(node);
    TRY(bind_expr(b, q, node, out));
    if (!expr_walk(*out, visit_other, q->scope)) {
        FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
                "argument of %s must not contain variables", which);
    }
    TRY(offset_to(b, type, which, out));
    *out = expr_fold(b->plan, *out);
    const struct expr *bare = *out;
    while (bare->kind == EXPR_CAST) {
        bare = bare->args[0];
    }
    bool range = strcmp(which, "RANGE") == 0;
    if ((*out)->kind != EXPR_CONST && (range ? bare : *out)->kind != EXPR_PARAM) {
        return unsupported(b, position, "a frame offset that is not constant");
    }
    *out = range && (*out)->kind != EXPR_CONST ? checked_offset(b, *out) : *out;
    return ERR_OK;
}

/* The type an offset has: rows and groups are counted, RANGE measures the order's values. */
static FALLIBLE offset_type(struct bind *b, const struct window_item *item, i32 position,
                            struct type *out) {
    *out = type_of(TYPE_BIGINT);
    if (item->call.frame.mode != FRAME_RANGE) {
        return ERR_OK;
    }
    if (item->order.count != 1) {
        FAIL_AT(b->err, WINDOWING, position,
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column");
    }
    *out = item->order.items[0].expr->type;
    if (out->id == TYPE_DATE || out->id == TYPE_TIME || out->id == TYPE_TIMESTAMP ||
        out->id == TYPE_TIMESTAMPTZ || out->id == TYPE_INTERVAL) {
        *out = type_of(TYPE_INTERVAL);
    } else if (!type_is_numeric(*out)) {
        char name[32];
        return unsupported(b, position, "RANGE with an offset over type %s",
                           type_print(*out, name));
    }
    return ERR_OK;
}

static void set_bounds(struct frame *frame, i64 options) {
    frame->mode = options & OPTION_ROWS     ? FRAME_ROWS
                  : options & OPTION_GROUPS ? FRAME_GROUPS
                                            : FRAME_RANGE;
    frame->from = options & OPTION_FROM_CURRENT  ? BOUND_CURRENT
                  : options & OPTION_FROM_BEFORE ? BOUND_BEFORE
                  : options & OPTION_FROM_AFTER  ? BOUND_AFTER
                                                 : BOUND_UNBOUNDED_BEFORE;
    frame->to = options & OPTION_TO_LAST     ? BOUND_UNBOUNDED_AFTER
                : options & OPTION_TO_BEFORE ? BOUND_BEFORE
                : options & OPTION_TO_AFTER  ? BOUND_AFTER
                                             : BOUND_CURRENT;
    frame->exclude = options & OPTION_NO_CURRENT ? EXCLUDE_CURRENT
                     : options & OPTION_NO_GROUP ? EXCLUDE_GROUP
                     : options & OPTION_NO_TIES  ? EXCLUDE_TIES
                                                 : EXCLUDE_NONE;
}

static FALLIBLE bind_frame(struct bind *b, struct query *q, const struct json *def,
                           struct window_item *item) {
    struct frame *frame = &item->call.frame;
    const struct json *start = json_get(def, "startOffset");
    const struct json *end = json_get(def, "endOffset");
    i32 position = json_position(def);
    struct type type;
    set_bounds(frame, json_number(def, "frameOptions"));
    if (frame->mode == FRAME_GROUPS && item->order.count == 0) {
        FAIL_AT(b->err, WINDOWING, position, "GROUPS mode requires an ORDER BY clause");
    }
    static const char *const words[] = {"ROWS", "RANGE", "GROUPS"};
    if (start || end) {
        TRY(offset_type(b, item, position, &type));
    }
    if (start) {
        TRY(bind_offset(b, q, start, type, words[frame->mode], &frame->from_offset));
    }
    if (end) {
        TRY(bind_offset(b, q, end, type, words[frame->mode], &frame->to_offset));
    }
    return ERR_OK;
}

/* lag and lead: value, offset (integer), default of the value's type. */
static FALLIBLE shift_args(struct bind *b, struct expr **args, i32 count, struct type *out) {
    *out = args[0]->type;
    if (count == 3) {
        struct expr *pair[2] = {args[0], args[2]};
        TRY(coerce_common(b->t, pair, 2, "lag", out));
        args[0] = pair[0];
        args[2] = pair[1];
    }
    *out = type_handed_on(*out);
    if (count >= 2) {
        TRY(coerce_unknown(b->t, args[1], type_of(TYPE_INTEGER), &args[1]));
    }
    return ERR_OK;
}

static FALLIBLE window_type(struct bind *b, const char *name, struct expr **args, i32 count,
                            i32 func, i32 position, struct type *out) {
    i32 integer = -1; /* the argument that must be one */
    bool any = func == WINDOW_FIRST_VALUE || func == WINDOW_LAST_VALUE ||
               func == WINDOW_NTH_VALUE ||
               ((func == WINDOW_LAG || func == WINDOW_LEAD) && count < 3);
    if (any && is_unknown(args[0])) { /* with a default, lag and lead find a common type */
        FAIL_AT(b->err, DATATYPE_MISMATCH, position,
                "could not determine polymorphic type because input has type unknown");
    }
    switch (func) {
    case WINDOW_PERCENT_RANK:
    case WINDOW_CUME_DIST:
        *out = type_of(TYPE_DOUBLE);
        return ERR_OK;
    case WINDOW_NTILE:
        *out = type_of(TYPE_INTEGER);
        integer = 0;
        break;
    case WINDOW_LAG:
    case WINDOW_LEAD:
        TRY(shift_args(b, args, count, out));
        integer = count >= 2 ? 1 : -1;
        break;
    case WINDOW_FIRST_VALUE:
    case WINDOW_LAST_VALUE:
    case WINDOW_NTH_VALUE:
        *out = type_handed_on(args[0]->type);
        integer = func == WINDOW_NTH_VALUE ? 1 : -1;
        break;
    default:
        *out = type_of(TYPE_BIGINT);
        return ERR_OK;
    }
    if (integer < 0) {
        return ERR_OK;
    }
    if (!coerce_allowed(args[integer]->type, type_of(TYPE_INTEGER), COERCE_IMPLICIT)) {
        return call_undefined(b->t, name, args, count, position);
    }
    return coerce_to(b->t, args[integer], type_of(TYPE_INTEGER), &args[integer]);
}

/* What a window function that is no aggregate may not have; a star stands for no arguments. */
static FALLIBLE check_plain_form(struct bind *b, const char *name, const struct json *body) {
    i32 position = json_position(body);
    if (!json_get(body, "over")) {
        FAIL_AT(b->err, WRONG_OBJECT, position, "window function %s requires an OVER clause", name);
    }
    if (json_flag(body, "agg_within_group")) {
        FAIL_AT(b->err, WRONG_OBJECT, position, "window function %s cannot have WITHIN GROUP",
                name);
    }
    if (json_flag(body, "agg_distinct")) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "DISTINCT is not implemented for window functions");
    }
    if (json_get(body, "agg_order")) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "aggregate ORDER BY is not implemented for window functions");
    }
    if (json_get(body, "agg_filter")) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "FILTER is not implemented for non-aggregate window functions");
    }
    return bind_only(b, body, "funcname args funcformat over location agg_star", position);
}

static FALLIBLE plain_call(struct bind *b, struct query *q, const char *name,
                           const struct json *body, struct window_item *item,
                           struct type *out_type) {
#define X(A, word, text, fewest, most, doc) {fewest, most},
    static const i32 bounds[WINDOW_END][2] = {WF_WINDOWS(X, )};
#undef X
    i32 position = json_position(body);
    i32 func = window_of(name);
    struct expr **args = NULL;
    i32 count = 0;
    TRY(bind_list(b, q, json_get(bind_call_ordered(b, body), "args"), &args, &count));
    TRY(bind_call_filter(b, q, body));
    if (count > 0 && agg_is_hypothetical(name) && !json_get(body, "agg_within_group")) {
        FAIL_AT(b->err, WRONG_OBJECT, position,
                "WITHIN GROUP is required for ordered-set aggregate %s", name);
    }
    if (count < bounds[func][0] || count > bounds[func][1]) {
        return call_undefined(b->t, name, args, count, position);
    }
    TRY(window_type(b, name, args, count, func, position, out_type));
    TRY(check_plain_form(b, name, body));
    item->call.func = (u8)func;
    item->call.arg_count = count;
    for (i32 i = 0; i < count; i++) {
        item->call.args[i] = args[i];
    }
    return ERR_OK;
}

FALLIBLE bind_window_bare(struct bind *b, struct query *q, const char *name,
                          const struct json *body) {
    struct window_item ignored = {0};
    struct type type;
    return plain_call(b, q, name, body, &ignored, &type);
}

static FALLIBLE agg_window(struct bind *b, struct query *q, const char *name,
                           const struct json *body, struct window_item *item,
                           struct type *out_type) {
    struct agg_call call = {0};
    i32 position = json_position(body);
    TRY(bind_agg_call(b, q, name, body, &call, out_type));
    if (agg_is_ordered_set(call.agg)) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "OVER is not supported for ordered-set aggregate %s", name);
    }
    if (call.distinct) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "DISTINCT is not implemented for window functions");
    }
    if (json_get(body, "agg_order")) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "aggregate ORDER BY is not implemented for window functions");
    }
    item->call.is_agg = 1;
    item->call.func = call.agg;
    item->call.filter = call.filter;
    item->call.args[0] = call.arg;
    item->call.args[1] = call.arg2;
    item->call.arg_count = (call.arg != NULL) + (call.arg2 != NULL);
    return ERR_OK;
}

static bool never_null(const struct window_item *item) {
    if (item->call.is_agg) {
        return item->call.func == AGG_COUNT || item->call.func == AGG_COUNT_STAR;
    }
    return item->call.func < WINDOW_NTILE;
}

/* An aggregate made from others: a call for each of them over the same window. */
static FALLIBLE window_of_parts(struct bind *b, struct query *q, const struct window_item *item,
                                const struct agg_call *call, struct expr **out) {
    struct expr *parts[AGG_PARTS] = {NULL};
    for (i32 i = 0; i < AGG_PARTS; i++) {
        struct window_item one = *item;
        struct agg_call part;
        struct type type;
        if (!agg_part(b->t, call, i, &part, &type)) {
            continue;
        }
        one.call.func = part.agg;
        one.call.args[0] = part.arg;
        one.call.args[1] = part.arg2;
        one.call.arg_count = 1 + (part.arg2 != NULL);
        one.call.col = bind_col_new(b, NULL, "part", type, part.agg != AGG_COUNT);
        VEC_PUSH(b->arena, &q->windows, one);
        parts[i] = expr_col(b->plan, one.call.col, call->position);
    }
    return agg_of_parts(b->t, (enum agg)call->agg, parts, call->position, out);
}

FALLIBLE bind_window_call(struct bind *b, struct query *q, const char *name,
                          const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    const struct json *over = json_get(body, "over");
    TRY(check_window_names(b, q));
    if (q->in_window) {
        FAIL_AT(b->err, WINDOWING, position, "window function calls cannot be nested");
    }
    if (q->in_agg) {
        FAIL_AT(b->err, GROUPING, position,
                "aggregate function calls cannot contain window function calls");
    }
    if (!q->windows_allowed) {
        FAIL_AT(b->err, WINDOWING, position, "window functions are not allowed in %s", q->clause);
    }
    if (json_flag(body, "agg_within_group") && agg_is_hypothetical(name)) {
        FAIL_AT(b->err, NOT_SUPPORTED, position,
                "OVER is not supported for ordered-set aggregate %s", name);
    }
    q->seen.window = q->seen.window ? q->seen.window : position + 1;
    struct window_item item = {.call = {.position = position}};
    struct type type;
    const char *no_sets = q->no_sets;
    i64 first = q->pending.count;
    q->in_window = 1;
    q->no_sets = "window function calls cannot contain set-returning function calls";
    TRY(window_find(name) ? plain_call(b, q, name, body, &item, &type)
                          : agg_window(b, q, name, body, &item, &type));
    q->no_sets = no_sets;
    const char *given = json_text(over, "name");
    const struct json *def = given ? named_window(q, given) : over;
    if (!def) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, json_position(over), "window \"%.100s\" does not exist",
                given);
    }
    TRY(bind_definition(b, q, def, &item));
    TRY(bind_frame(b, q, def, &item));
    q->in_window = 0;
    for (i64 i = first; i < q->pending.count; i++) {
        q->pending.items[i].early = 1;
    }
    struct agg_call call = {.agg = item.call.func,
                            .arg = item.call.args[0],
                            .arg2 = item.call.args[1],
                            .position = position};
    if (item.call.is_agg && agg_is_of_parts(&call)) {
        return window_of_parts(b, q, &item, &call, out);
    }
    item.call.col = bind_col_new(b, NULL, keep(b, name), type, !never_null(&item));
    VEC_PUSH(b->arena, &q->windows, item);
    *out = expr_col(b->plan, item.call.col, position);
    return ERR_OK;
}

static bool same_window(const struct window_item *a, const struct window_item *c) {
    bool same = a->partition.count == c->partition.count && a->order.count == c->order.count;
    for (i64 i = 0; same && i < a->partition.count; i++) {
        same = expr_equal(a->partition.items[i], c->partition.items[i]);
    }
    for (i64 i = 0; same && i < a->order.count; i++) {
        const struct order_key *x = &a->order.items[i];
        const struct order_key *y = &c->order.items[i];
        same = expr_equal(x->expr, y->expr) && x->descending == y->descending &&
               x->nulls_first == y->nulls_first;
    }
    return same;
}

FALLIBLE build_windows(struct bind *b, struct select *s) {
    i64 count = s->query.windows.count;
    u8 *done = NEW_ARRAY(b->arena, u8, count + 1);
    for (i64 i = 0; i < count; i++) {
        const struct window_item *first = &s->query.windows.items[i];
        if (done[i]) {
            continue;
        }
        struct rel *rel = rel_new(b->plan, REL_WINDOW, s->rel, NULL);
        rel->rows = s->rel->rows;
        for (i64 k = 0; k < first->partition.count; k++) {
            VEC_PUSH(b->arena, &rel->window.keys, first->partition.items[k]);
        }
        for (i64 k = 0; k < first->order.count; k++) {
            VEC_PUSH(b->arena, &rel->window.order, first->order.items[k]);
        }
        for (i64 k = i; k < count; k++) {
            const struct window_item *item = &s->query.windows.items[k];
            if (!done[k] && same_window(first, item)) {
                done[k] = 1;
                VEC_PUSH(b->arena, &rel->window.calls, item->call);
                VEC_PUSH(b->arena, &rel->out, item->call.col);
            }
        }
        s->rel = rel;
    }
    return ERR_OK;
}
