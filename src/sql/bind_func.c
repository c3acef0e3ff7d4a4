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

/* What calls of aggregates may have besides arguments: said of another function, that is an error,
 * once the function is found. */
FALLIBLE bind_call_plain(struct bind *b, const struct json *body, const char *name) {
    static const char *const marks[][2] = {{"agg_distinct", "DISTINCT"},
                                           {"agg_within_group", "WITHIN GROUP"},
                                           {"agg_order", "ORDER BY"},
                                           {"agg_filter", "FILTER"}};
    i32 position = json_position(body);
    if (json_flag(body, "agg_star")) {
        FAIL_AT(b->err, WRONG_OBJECT, position,
                "%.100s(*) specified, but %.100s is not an aggregate function", name, name);
    }
    for (i64 i = 0; i < COUNT_OF(marks); i++) {
        if (json_get(body, marks[i][0])) {
            FAIL_AT(b->err, WRONG_OBJECT, position,
                    "%s specified, but %.100s is not an aggregate function", marks[i][1], name);
        }
    }
    if (json_get(body, "over")) {
        FAIL_AT(b->err, WRONG_OBJECT, position,
                "OVER specified, but %.100s is not a window function nor an aggregate function",
                name);
    }
    return bind_only(b, body, "funcname args funcformat location", position);
}

/* A call whose arguments are those of WITHIN GROUP, too: so a function is looked up. */
const struct json *bind_call_ordered(struct bind *b, const struct json *body) {
    if (!json_flag(body, "agg_within_group")) {
        return body;
    }
    struct json *args = NEW(b->arena, struct json);
    struct json *call = NEW(b->arena, struct json);
    struct json **end = &args->first;
    *args = (struct json){.key = "args", .kind = JSON_ARRAY};
    for (i32 list = 0; list < 2; list++) {
        JSON_EACH(node, json_get(body, list == 0 ? "args" : "agg_order")) {
            const struct json *from = list == 0 ? node : json_get(node_body(node), "node");
            struct json *arg = NEW(b->arena, struct json);
            *arg = *from;
            arg->next = NULL;
            *end = arg;
            end = &arg->next;
            args->len++;
        }
    }
    *call = *body;
    end = &call->first;
    JSON_EACH(field, body) {
        struct json *copy = NEW(b->arena, struct json);
        bool same = strcmp(field->key, "args") != 0;
        *copy = *field;
        copy->next = NULL;
        *end = same ? copy : *end;
        end = same ? &copy->next : end;
    }
    *end = args;
    return call;
}

/* What FILTER says is looked at before the function is looked up, though only some may have it. */
FALLIBLE bind_call_filter(struct bind *b, struct query *q, const struct json *body) {
    const struct json *filter = json_get(body, "agg_filter");
    struct expr *unused = NULL;
    return filter ? bind_condition(b, q, filter, "FILTER", &unused) : ERR_OK;
}

/* A function of a schema: ours are all in pg_catalog. */
static FALLIBLE find_schema(struct bind *b, struct query *q, const struct json *body,
                            struct call *call) {
    const struct json *names = json_get(body, "funcname");
    i32 count = json_count(names);
    const char *schema = count > 1 ? node_string(json_first(names)) : "pg_catalog";
    JSON_EACH(part, names) {
        call->name = node_string(part);
    }
    if (count > 3) {
        FAIL_AT(b->err, SYNTAX, call->position, "improper qualified name (too many dotted names)");
    }
    if (count == 3) {
        return unsupported(b, call->position, "a function in another database");
    }
    if (strcmp(schema, "pg_catalog") == 0) {
        return ERR_OK;
    }
    TRY(snapshot_open(b->snap, b->err));
    if (!edition_find(b->snap->edition, 0, sv_from(schema))) {
        FAIL_AT(b->err, UNDEFINED_SCHEMA, call->position, "schema \"%.100s\" does not exist",
                schema);
    }
    body = bind_call_ordered(b, body);
    TRY(bind_list(b, q, json_get(body, "args"), &call->args, &call->count));
    const char *name = arena_printf(b->arena, "%.100s.%.100s", schema, call->name);
    return call_undefined(b->t, name, call->args, call->count, call->position);
}

/* A function that is neither an aggregate nor a window function. */
static FALLIBLE bind_scalar_call(struct bind *b, struct query *q, const struct json *body,
                                 struct call *call, struct expr **out) {
    bool is_set = false;
    TRY(bind_set_call(b, q, call->name, body, &is_set, out));
    if (is_set) {
        return ERR_OK;
    }
    if (strcmp(call->name, "wf_try") == 0) {
        return bind_try(b, q, body, out);
    }
    if (strcmp(call->name, "make_interval") == 0) {
        return bind_make_interval(b, q, body, out);
    }
    bool late = false;
    TRY(bind_late_call(b, q, call->name, body, &late, out));
    if (late) {
        return ERR_OK;
    }
    TRY(bind_list(b, q, json_get(body, "args"), &call->args, &call->count));
    bool object = false;
    TRY(bind_object_call(b, call, &object, out));
    return object ? ERR_OK : call_named(b->t, call, out);
}

FALLIBLE bind_call(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    struct call call = {.name = "", .position = json_position(body)};
    TRY(find_schema(b, q, body, &call));
    bool is_window = window_find(call.name);
    if (json_get(body, "over") && (agg_find(call.name) || is_window)) {
        return bind_window_call(b, q, call.name, body, out);
    }
    if (agg_find(call.name)) {
        return bind_aggregate(b, q, call.name, body, out);
    }
    if (agg_is_hypothetical(call.name) && json_get(body, "agg_within_group")) {
        return bind_hypothetical(b, q, call.name, body, out);
    }
    if (is_window) {
        return bind_window_bare(b, q, call.name, body);
    }
    TRY(bind_call_filter(b, q, body));
    TRY(bind_scalar_call(b, q, bind_call_ordered(b, body), &call, out));
    return bind_call_plain(b, body, call.name);
}
