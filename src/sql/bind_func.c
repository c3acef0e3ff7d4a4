/* bind_func.c: calls of functions: which kind of function a name is, and the forms only some allow.
 *
 * Part of binding. Aggregates, windows, sets and calls of sequences go to files of their own; scalar
 * functions to typing/function.c. */
#include "sql/sql_int.h"

bool bind_function_known(const char *name) {
    return call_is_known(name) || agg_find(name) || window_find(name);
}

FALLIBLE bind_value_function(struct bind *b, struct query *q, const struct json *body,
                             struct expr **out) {
    UNUSED(q);
    static const struct {
        const char *op;
        u8 type;
    } kinds[] = {{"SVFOP_CURRENT_DATE", TYPE_DATE},
                 {"SVFOP_CURRENT_TIMESTAMP", TYPE_TIMESTAMPTZ},
                 {"SVFOP_CURRENT_TIMESTAMP_N", TYPE_TIMESTAMPTZ},
                 {"SVFOP_LOCALTIMESTAMP", TYPE_TIMESTAMP},
                 {"SVFOP_LOCALTIMESTAMP_N", TYPE_TIMESTAMP},
                 {"SVFOP_LOCALTIME", TYPE_TIME},
                 {"SVFOP_LOCALTIME_N", TYPE_TIME}};
    i32 position = json_position(body);
    const char *op = json_text(body, "op");
    for (i64 i = 0; i < COUNT_OF(kinds); i++) {
        if (op && strcmp(kinds[i].op, op) == 0) {
            struct type type = type_of((enum type_id)kinds[i].type);
            i64 digits = json_number(body, "typmod");
            bool rounded = op[strlen(op) - 1] == 'N' && digits < 6;
            type.precision = rounded ? (u8)(digits + 1) : 0;
            return call_moment(b->t, type, position, out);
        }
    }
    return bind_session_value(b, body, out);
}

static FALLIBLE interval_place(struct bind *b, const struct json *node, i32 *io_place) {
    const char *name = json_text(node_body(node), "name");
    if (!node_is(node, "NamedArgExpr")) {
        ++*io_place;
        return ERR_OK;
    }
    for (i32 i = 0; i < INTERVAL_ARGS; i++) {
        if (strcmp(interval_args[i], name) == 0) {
            *io_place = i;
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, UNDEFINED_FUNCTION, node_position(node),
            "make_interval has no argument \"%.60s\"", name);
}

/* make_interval's arguments, by place and by name. */
static FALLIBLE bind_make_interval(struct bind *b, struct query *q, const struct json *body,
                                   struct expr **out) {
    i32 position = json_position(body);
    struct expr *args[INTERVAL_ARGS] = {NULL};
    i32 place = -1;
    JSON_EACH(node, json_get(body, "args")) {
        bool named = node_is(node, "NamedArgExpr");
        TRY(interval_place(b, node, &place));
        if (place >= INTERVAL_ARGS || args[place]) {
            FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "make_interval takes 7 arguments");
        }
        TRY(bind_expr(b, q, named ? json_get(node_body(node), "arg") : node, &args[place]));
    }
    return call_make_interval(b->t, args, position, out);
}

FALLIBLE bind_call(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    struct call call = {.name = "", .position = json_position(body)};
    const struct json *names = json_get(body, "funcname");
    if (json_count(names) > 2 ||
        (json_count(names) == 2 && strcmp(node_string(json_first(names)), "pg_catalog") != 0)) {
        return unsupported(b, call.position, "a function in a schema");
    }
    JSON_EACH(part, names) {
        call.name = node_string(part);
    }
    if (json_get(body, "over") && (agg_find(call.name) || window_find(call.name))) {
        return bind_window_call(b, q, call.name, body, out);
    }
    if (agg_find(call.name)) {
        return bind_aggregate(b, q, call.name, body, out);
    }
    if (agg_is_hypothetical(call.name) && json_get(body, "agg_within_group")) {
        return bind_hypothetical(b, q, call.name, body, out);
    }
    if (window_find(call.name)) {
        FAIL_AT(b->err, WRONG_OBJECT, call.position, "window function %s requires an OVER clause",
                call.name);
    }
    if (json_get(body, "over")) {
        FAIL_AT(b->err, WRONG_OBJECT, call.position,
                "OVER specified, but %s is not a window function nor an aggregate function",
                call.name);
    }
    const char *aggregates_only[][2] = {{"agg_distinct", "DISTINCT"},
                                        {"agg_filter", "FILTER"},
                                        {"agg_order", "ORDER BY"},
                                        {"agg_within_group", "WITHIN GROUP"}};
    bool is_other = call_is_missing(call.name) && strstr(call.name, "_agg"); /* of aggregates we lack */
    for (i64 i = 0; i < COUNT_OF(aggregates_only) && bind_function_known(call.name) && !is_other;
         i++) {
        if (json_get(body, aggregates_only[i][0])) {
            FAIL_AT(b->err, WRONG_OBJECT, call.position,
                    "%s specified, but %s is not an aggregate function", aggregates_only[i][1],
                    call.name);
        }
    }
    TRY(bind_only(b, body, "funcname args funcformat location", call.position));
    bool is_set = false;
    TRY(bind_set_call(b, q, call.name, body, &is_set, out));
    if (is_set) {
        return ERR_OK;
    }
    if (strcmp(call.name, "wf_try") == 0) {
        return bind_try(b, q, body, out);
    }
    if (strcmp(call.name, "make_interval") == 0) {
        return bind_make_interval(b, q, body, out);
    }
    bool late = false;
    TRY(bind_late_call(b, q, call.name, body, &late, out));
    if (late) {
        return ERR_OK;
    }
    TRY(bind_list(b, q, json_get(body, "args"), &call.args, &call.count));
    bool object = false;
    TRY(bind_object_call(b, &call, &object, out));
    return object ? ERR_OK : call_named(b->t, &call, out);
}
