/* bind_table_func.c: functions in FROM, typed.
 *
 * Part of binding. A table function is a line of defs/table_func.def and a case here that gives its
 * arguments and columns their types; its arguments may
 * name columns of the tables before it. */
#include "sql/sql_int.h"

FALLIBLE bind_table_func(struct bind *b, struct query *outer, const struct json *body,
                         bool numbered, struct rel **out, const char **out_name) {
#define X(A, name, text, fewest, most, doc) {fewest, most},
    static const i32 bounds[TABLE_FUNC_END][2] = {WF_TABLE_FUNCS(X, )};
#undef X
    i32 position = json_position(body);
    struct query q = {.clause = "functions in FROM", .outer = outer};
    q.no_sets = "set-returning functions must appear at top level of FROM";
    struct expr **args = NULL;
    i32 count = 0;
    const char *name = "";
    TRY(bind_only(b, body, "funcname args funcformat location", position));
    JSON_EACH(part, json_get(body, "funcname")) {
        name = node_string(part);
    }
    TRY(bind_list(b, &q, json_get(body, "args"), &args, &count));
    for (u32 i = 0; i < TABLE_FUNC_END; i++) {
        if (strcmp(table_func_names[i], name) != 0) {
            continue;
        }
        if (count < bounds[i][0] || count > bounds[i][1]) {
            return bind_undefined_function(b, name, args, count, position);
        }
        *out_name = table_func_names[i];
        return bind_series(b, args, count, position, numbered, out);
    }
    return bind_function_known(name) ? unsupported(b, position, "function %.60s in FROM", name)
                                     : bind_undefined_function(b, name, args, count, position);
}
