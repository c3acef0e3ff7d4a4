/* bind_table_func.c: functions in FROM, typed.
 *
 * Part of binding. A table function is a line of defs/table_func.def and a case here that gives its
 * arguments and columns their types; its arguments are expressions without columns. */
#include "sql/sql_int.h"

/* Rows of a series whose arguments are constants; a guess otherwise. */
static i64 series_rows(const struct rel *rel) {
    i128 value[3] = {0, 0, 1};
    for (i64 i = 0; i < rel->exprs.count; i++) {
        const struct expr *arg = rel->exprs.items[i];
        if (arg->kind != EXPR_CONST || arg->is_null || !type_is_exact(arg->type)) {
            return 1000;
        }
        value[i] = const_exact(arg);
    }
    if (value[2] == 0) {
        return 1;
    }
    i128 rows = (value[1] - value[0]) / value[2] + 1;
    return rows < 0 ? 0 : rows > I64_MAX ? I64_MAX : (i64)rows;
}

static FALLIBLE bind_series(struct bind *b, struct expr **args, i32 count, i32 position,
                            struct rel *rel) {
    struct type type;
    bool typed = false;
    for (i32 i = 0; i < count; i++) {
        typed = typed || !is_unknown(args[i]);
        if (!is_unknown(args[i]) && !type_is_exact(args[i]->type)) {
            return bind_undefined_function(b, "generate_series", args, count, position);
        }
    }
    if (!typed) {
        FAIL_AT(b->err, AMBIGUOUS_FUNCTION, position, "function generate_series is not unique");
    }
    TRY(coerce_common(b, args, count, "generate_series", &type));
    if (type.id == TYPE_SMALLINT) {
        type = type_of(TYPE_INTEGER);
    }
    for (i32 i = 0; i < count; i++) {
        TRY(coerce_to(b, args[i], type, &args[i]));
        VEC_PUSH(b->arena, &rel->exprs, expr_fold(b->arena, args[i]));
    }
    u32 col = bind_col_new(b, NULL, "generate_series", type, false);
    VEC_PUSH(b->arena, &rel->out, col);
    rel->rows = series_rows(rel);
    return ERR_OK;
}

FALLIBLE bind_table_func(struct bind *b, const struct json *body, struct rel **out,
                         const char **out_name) {
#define X(A, name, text, fewest, most, doc) {fewest, most},
    static const i32 bounds[TABLE_FUNC_END][2] = {WF_TABLE_FUNCS(X, )};
#undef X
    i32 position = json_position(body);
    struct query q = {.clause = "functions in FROM"};
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
        *out = rel_new(b->plan, REL_FUNC, NULL, NULL);
        (*out)->table_func = i;
        (*out)->position = position;
        *out_name = table_func_names[i];
        return bind_series(b, args, count, position, *out);
    }
    return bind_function_known(name) ? unsupported(b, position, "function %.60s in FROM", name)
                                     : bind_undefined_function(b, name, args, count, position);
}
