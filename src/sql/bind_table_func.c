/* bind_table_func.c: functions in FROM, typed.
 *
 * Part of binding. A table function is a line of defs/table_func.def and a case here that gives its
 * arguments and columns their types; its arguments may
 * name columns of the tables before it. */
#include "sql/sql_int.h"

static enum table_func named(const char *name) {
    u32 func = 0;
    while (func < TABLE_FUNC_END && strcmp(table_func_names[func], name) != 0) {
        func++;
    }
    return (enum table_func)func;
}

FALLIBLE bind_table_func_find(struct bind *b, const char *name, struct expr **args, i32 count,
                              i32 position, enum table_func *out) {
#define X(A, name, text, fewest, most, doc) {fewest, most},
    static const i32 bounds[TABLE_FUNC_END][2] = {WF_TABLE_FUNCS(X, )};
#undef X
    *out = named(name);
    if (*out < TABLE_FUNC_END && (count < bounds[*out][0] || count > bounds[*out][1])) {
        return call_undefined(b->t, name, args, count, position);
    }
    return ERR_OK;
}

bool bind_is_table_func(const char *name) {
    return named(name) < TABLE_FUNC_END;
}

FALLIBLE bind_table_call(struct bind *b, enum table_func func, struct expr **args, i32 count,
                         i32 position, bool numbered, struct rel **out) {
    if (func == TABLE_FUNC_GENERATE_SERIES) {
        return bind_series(b, args, count, position, numbered, out);
    }
    return bind_split(b, func, args, count, position, numbered, out);
}

/* Any other expression that is written as a function, in FROM: one row of its value. */
static FALLIBLE one_value(struct bind *b, struct query *q, const struct json *node, bool numbered,
                          struct rel **out, const char **out_name) {
    struct expr *values[2] = {NULL, expr_int(b->t, 1, -1)};
    const char *names[2] = {keep(b, output_name(node)), "ordinality"};
    TRY(bind_expr(b, q, node, &values[0]));
    TRY(coerce_unknown(b->t, values[0], type_of(TYPE_TEXT), &values[0]));
    TRY(coerce_to(b->t, values[1], type_of(TYPE_BIGINT), &values[1]));
    struct rel *row = bind_attach(b, bind_one_row(b), &q->pending);
    *out = bind_project(b, row, values, names, numbered ? 2 : 1);
    *out_name = names[0];
    return ERR_OK;
}

/* The rows a call gives for what its arguments ask of subqueries. */
static struct rel *over_subqueries(struct bind *b, struct query *q, struct rel *rel) {
    if (q->pending.count == 0) {
        return rel;
    }
    struct pending p = {.join = JOIN_CROSS, .rel = rel};
    pending_list one = {0};
    i64 count = rel->out.count;
    const char **names = NEW_ARRAY(b->arena, const char *, count);
    struct expr **values = NEW_ARRAY(b->arena, struct expr *, count);
    for (i64 i = 0; i < count; i++) {
        values[i] = expr_col(b->plan, rel->out.items[i], -1);
        names[i] = b->plan->cols.items[rel->out.items[i]].name;
    }
    VEC_PUSH(b->arena, &one, p);
    struct rel *row = bind_attach(b, bind_one_row(b), &q->pending);
    return bind_project(b, bind_attach(b, row, &one), values, names, count);
}

FALLIBLE bind_table_func(struct bind *b, struct query *outer, const struct cte *ctes,
                         const struct json *node, bool numbered, struct rel **out,
                         const char **out_name) {
    const struct json *body = node_body(node);
    i32 position = json_position(body);
    struct query q = {
        .clause = "functions in FROM", .outer = outer, .subqueries_allowed = 1, .ctes = ctes};
    q.no_sets = "set-returning functions must appear at top level of FROM";
    struct expr **args = NULL;
    i32 count = 0;
    const char *name = "";
    enum table_func func = TABLE_FUNC_END;
    const struct json *path = node_is(node, "FuncCall") ? json_get(body, "funcname") : NULL;
    JSON_EACH(part, path) {
        name = node_string(part);
    }
    bool foreign = json_count(path) > 1 && strcmp(node_string(json_first(path)), "pg_catalog") != 0;
    if (foreign || !bind_is_table_func(name)) {
        return one_value(b, &q, node, numbered, out, out_name);
    }
    TRY(bind_list(b, &q, json_get(bind_call_ordered(b, body), "args"), &args, &count));
    TRY(bind_table_func_find(b, name, args, count, position, &func));
    TRY(bind_call_plain(b, body, name));
    *out_name = table_func_names[func];
    TRY(bind_table_call(b, func, args, count, position, numbered, out));
    *out = over_subqueries(b, &q, *out);
    return ERR_OK;
}
