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

FALLIBLE bind_table_func(struct bind *b, struct query *outer, const struct json *body,
                         bool numbered, struct rel **out, const char **out_name) {
    i32 position = json_position(body);
    struct query q = {.clause = "functions in FROM", .outer = outer};
    q.no_sets = "set-returning functions must appear at top level of FROM";
    struct expr **args = NULL;
    i32 count = 0;
    const char *name = "";
    enum table_func func = TABLE_FUNC_END;
    TRY(bind_only(b, body, "funcname args funcformat location", position));
    JSON_EACH(part, json_get(body, "funcname")) {
        name = node_string(part);
    }
    TRY(bind_list(b, &q, json_get(body, "args"), &args, &count));
    TRY(bind_table_func_find(b, name, args, count, position, &func));
    if (func < TABLE_FUNC_END) {
        *out_name = table_func_names[func];
        return bind_table_call(b, func, args, count, position, numbered, out);
    }
    return bind_function_known(name) ? unsupported(b, position, "function %.60s in FROM", name)
                                     : call_undefined(b->t, name, args, count, position);
}
