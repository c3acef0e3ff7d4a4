/* bind_agg.c: aggregates, and the rule that above them only groups exist.
 *
 * Part of binding. An aggregate call becomes a column of the AGG operator at once, equal calls the
 * same one; the expression around it is bound as if over the input. When all of a SELECT is bound,
 * bind_grouped rewrites its expressions: what equals a group key becomes the key's column, and a
 * column of the input that is left over is error 42803. Expressions are rebuilt, never changed:
 * keys and select list may share them. */
#include "sql/sql_int.h"

bool agg_find(const char *name) {
    for (i32 i = 0; i < AGG_END; i++) {
        if (strcmp(agg_names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static enum agg agg_of(const char *name, bool star) {
    if (star) {
        return AGG_COUNT_STAR;
    }
    i32 i = AGG_COUNT;
    while (strcmp(agg_names[i], name) != 0) {
        i++;
    }
    return (enum agg)i;
}

/* The type of the result; false when the aggregate does not take the argument. */
static bool agg_type(enum agg agg, struct type arg, struct type *out) {
    switch (agg) {
    case AGG_COUNT_STAR:
    case AGG_COUNT:
        *out = type_of(TYPE_BIGINT);
        return true;
    case AGG_MIN:
    case AGG_MAX:
        *out = arg;
        return arg.id != TYPE_BOOLEAN;
    case AGG_SUM:
        *out = arg.id == TYPE_DECIMAL  ? type_decimal(DECIMAL_DIGITS_MAX, arg.scale)
               : arg.id == TYPE_BIGINT ? type_decimal(DECIMAL_DIGITS_MAX, 0)
               : type_is_integer(arg)  ? type_of(TYPE_BIGINT)
                                       : arg;
        return type_is_numeric(arg);
    default:
        *out = type_is_float(arg) ? type_of(TYPE_DOUBLE) : type_decimal(DECIMAL_DIGITS_MAX, 16);
        return type_is_numeric(arg);
    }
}

static FALLIBLE check_place(struct bind *b, const struct query *q, i32 position) {
    if (q->in_agg) {
        FAIL_AT(b->err, GROUPING, position, "aggregate function calls cannot be nested");
    }
    if (!q->aggs_allowed) {
        FAIL_AT(b->err, GROUPING, position, "aggregate functions are not allowed in %s", q->clause);
    }
    return ERR_OK;
}

static FALLIBLE check_form(struct bind *b, const char *name, const struct json *body) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "funcname args funcformat agg_star agg_distinct location", position));
    bool extreme = strcmp(name, "min") == 0 || strcmp(name, "max") == 0;
    if (json_flag(body, "agg_distinct") && !extreme) {
        return unsupported(b, position, "DISTINCT in %s", name);
    }
    if (json_flag(body, "agg_star") && strcmp(name, "count") != 0) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "function %s() does not exist", name);
    }
    return ERR_OK;
}

static bool count_node(const struct expr *expr, void *arg) {
    i32 *left = arg;
    UNUSED(expr);
    return --*left > 0;
}

/* The expression's own text, for EXPLAIN; what is long goes by `otherwise`. */
static const char *short_name(struct bind *b, const struct expr *expr, const char *otherwise) {
    enum { NODES_MAX = 12, TEXT_MAX = 40 };
    i32 left = NODES_MAX;
    if (expr->kind == EXPR_COL) {
        return b->plan->cols.items[expr->col].name;
    }
    if (!expr_walk(expr, count_node, &left)) {
        return otherwise;
    }
    struct text text;
    text_init(&text, b->arena);
    expr_print(&text, b->plan, expr);
    return text.len <= TEXT_MAX ? text.ptr : otherwise;
}

static const char *call_name(struct bind *b, enum agg agg, const struct expr *arg) {
    const char *of = arg ? short_name(b, arg, "...") : "*";
    return arena_printf(b->arena, "%s(%s)", agg_names[agg], of);
}

static struct agg_call *add_call(struct bind *b, struct query *q, enum agg agg, struct expr *arg,
                                 struct type type, i32 position) {
    for (i64 i = 0; i < q->calls.count; i++) {
        struct agg_call *call = &q->calls.items[i];
        bool same = call->agg == agg && (arg == NULL || expr_equal(call->arg, arg));
        if (same) {
            return call;
        }
    }
    struct agg_call call = {.agg = (u8)agg, .arg = arg, .position = position};
    bool nullable = agg != AGG_COUNT && agg != AGG_COUNT_STAR;
    call.col = bind_col_new(b, NULL, call_name(b, agg, arg), type, nullable);
    VEC_PUSH(b->arena, &q->calls, call);
    return &q->calls.items[q->calls.count - 1];
}

static FALLIBLE agg_argument(struct bind *b, struct query *q, const char *name, enum agg agg,
                             const struct json *body, struct expr **out) {
    struct expr **args = NULL;
    i32 count = 0;
    i32 position = json_position(body);
    q->in_agg = 1;
    TRY(bind_list(b, q, json_get(body, "args"), &args, &count));
    q->in_agg = 0;
    if (count != 1) {
        return bind_undefined_function(b, name, args, count, position);
    }
    if (is_unknown(args[0]) && (agg == AGG_SUM || agg == AGG_AVG)) {
        FAIL_AT(b->err, AMBIGUOUS_FUNCTION, position, "function %s(unknown) is not unique", name);
    }
    TRY(coerce_unknown(b, args[0], type_of(TYPE_TEXT), out));
    struct type type;
    if (!agg_type(agg, (*out)->type, &type)) {
        return bind_undefined_function(b, name, args, count, position);
    }
    return ERR_OK;
}

FALLIBLE bind_aggregate(struct bind *b, struct query *q, const char *name, const struct json *body,
                        struct expr **out) {
    i32 position = json_position(body);
    TRY(check_form(b, name, body));
    TRY(check_place(b, q, position));
    enum agg agg = agg_of(name, json_flag(body, "agg_star"));
    struct expr *arg = NULL;
    struct type type = type_of(TYPE_BIGINT);
    if (agg != AGG_COUNT_STAR) {
        TRY(agg_argument(b, q, name, agg, body, &arg));
        (void)agg_type(agg, arg->type, &type);
    }
    *out = expr_col(b->plan, add_call(b, q, agg, arg, type, position)->col, position);
    return ERR_OK;
}

void bind_count_star(struct bind *b, struct query *q) {
    (void)add_call(b, q, AGG_COUNT_STAR, NULL, type_of(TYPE_BIGINT), -1);
}

struct rel *bind_agg_rel(struct bind *b, struct query *q, struct rel *rel, struct expr **keys,
                         i64 key_count) {
    struct rel *agg = rel_new(b->plan, REL_AGG, rel, NULL);
    for (i64 i = 0; i < key_count; i++) {
        const char *name = short_name(b, keys[i], "key");
        if (strchr(name, ' ')) {
            name = arena_printf(b->arena, "(%s)", name);
        }
        u32 col = bind_col_new(b, NULL, name, keys[i]->type, expr_nullable(b->plan, keys[i]));
        VEC_PUSH(b->arena, &agg->exprs, keys[i]);
        VEC_PUSH(b->arena, &agg->out, col);
    }
    for (i64 i = 0; i < q->calls.count; i++) {
        VEC_PUSH(b->arena, &agg->calls, q->calls.items[i]);
        VEC_PUSH(b->arena, &agg->out, q->calls.items[i].col);
    }
    agg->rows = key_count == 0 ? 1 : MAX_OF(rel->rows / 10, 1);
    return agg;
}

static wf_status ungrouped(struct bind *b, const struct expr *expr) {
    const struct origin *origin = &b->origins.items[expr->col];
    FAIL_AT(b->err, GROUPING, expr->position,
            "column \"%.100s%s%.100s\" must appear in the GROUP BY clause or be used in an "
            "aggregate function",
            origin->table ? origin->table : "", origin->table ? "." : "", origin->name);
}

FALLIBLE bind_grouped(struct bind *b, const struct rel *agg, struct expr *expr, struct expr **out) {
    *out = expr;
    for (i64 i = 0; i < agg->exprs.count; i++) {
        if (expr_equal(expr, agg->exprs.items[i])) {
            *out = expr_col(b->plan, agg->out.items[i], expr->position);
            return ERR_OK;
        }
    }
    if (expr->kind == EXPR_COL) {
        for (i64 i = 0; i < agg->out.count; i++) {
            if (agg->out.items[i] == expr->col) {
                return ERR_OK;
            }
        }
        return ungrouped(b, expr);
    }
    struct expr *copy = NULL;
    for (i32 i = 0; i < expr->arg_count; i++) {
        struct expr *arg = NULL;
        TRY(bind_grouped(b, agg, expr->args[i], &arg));
        if (arg != expr->args[i] && !copy) {
            copy = NEW(b->arena, struct expr);
            *copy = *expr;
            copy->args = NEW_ARRAY(b->arena, struct expr *, expr->arg_count);
            memcpy(copy->args, expr->args, sizeof(struct expr *) * (size_t)expr->arg_count);
        }
        if (copy) {
            copy->args[i] = arg;
        }
    }
    *out = copy ? copy : expr;
    return ERR_OK;
}
