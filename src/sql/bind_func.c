/* bind_func.c: scalar functions by name: arguments to their types, results, and what is missing.
 *
 * Part of binding. A function is a row of WF_SCALARS (one opcode) or a line of a table in
 * bind_math.c, bind_text.c or bind_time.c with the function that types its arguments. Names
 * PostgreSQL has and we do not yet are 0A000; other names are 42883 with the nearest. */
#include "sql/sql_int.h"

#include "codes/scalar.h"

FALLIBLE bind_undefined_function(struct bind *b, const char *name, struct expr **args, i32 count,
                                 i32 position) {
    struct text types;
    text_init(&types, b->arena);
    for (i32 i = 0; i < count && types.len < 300; i++) {
        char type[32];
        text_print(&types, "%s%s", i > 0 ? ", " : "", type_print(args[i]->type, type));
    }
    FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "function %.100s(%s) does not exist", name,
            types.ptr ? types.ptr : "");
}

wf_status call_mismatch(struct bind *b, const struct call *call) {
    TRY(bind_undefined_function(b, call->name, call->args, call->count, call->position));
    return ERR_OK;
}

FALLIBLE call_argument(struct bind *b, const struct call *call, i32 i, struct type type,
                       struct expr **out) {
    if (!coerce_allowed(call->args[i]->type, type, COERCE_IMPLICIT)) {
        return call_mismatch(b, call);
    }
    return coerce_to(b, call->args[i], type, out);
}

/* The tables of functions, by what they work on. */
typedef const struct func_entry *(*func_table)(i64 *out_count);
static const func_table tables[] = {math_functions, text_functions, time_functions};

static const struct func_entry *find_entry(const char *name) {
    for (i64 t = 0; t < COUNT_OF(tables); t++) {
        i64 count = 0;
        const struct func_entry *entries = tables[t](&count);
        for (i64 i = 0; i < count; i++) {
            if (strcmp(entries[i].name, name) == 0) {
                return &entries[i];
            }
        }
    }
    return NULL;
}

/* PostgreSQL has them; we do not. */
static const char *const known_functions[] = {
    "regexp_match",
    "regexp_matches",
    "current_setting",
    "generate_series",
    "unnest",
    "array_length",
    "version",
    "string_to_array",
    "array_agg",
    "json_agg",
    "jsonb_agg",
    "any_value",
    "regexp_split_to_array",
    "setseed",
    "parse_ident",
    "to_ascii",
    "current_date",
};

static bool is_missing(const char *name) {
    for (i64 i = 0; i < COUNT_OF(known_functions); i++) {
        if (strcmp(known_functions[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool bind_function_known(const char *name) {
    return find_entry(name) || scalar_named(name) || agg_find(name) || window_find(name) ||
           is_missing(name);
}

static FALLIBLE unknown_function(struct bind *b, const struct call *call) {
    if (is_missing(call->name)) {
        return unsupported(b, call->position, "function %s", call->name);
    }
    wf_status status =
        bind_undefined_function(b, call->name, call->args, call->count, call->position);
    const char *names[FUNC_COUNT + AGG_END + 200];
    i64 count = 0;
    for (i64 t = 0; t < COUNT_OF(tables); t++) {
        i64 entry_count = 0;
        const struct func_entry *entries = tables[t](&entry_count);
        for (i64 i = 0; i < entry_count && count < 200; i++) {
            names[count++] = entries[i].name;
        }
    }
    for (i64 i = FUNC_TRY + 1; i < FUNC_COUNT; i++) {
        if (strncmp(func_names[i], "wf_", 3) != 0 && strlen(func_names[i]) > 2) {
            names[count++] = func_names[i];
        }
    }
    for (i64 i = 0; i < AGG_END; i++) {
        names[count++] = agg_names[i];
    }
    const char *near = nearest_of(b, call->name, names, count);
    if (near) {
        error_hint(b->err, "Perhaps you meant \"%s\".", near);
    }
    return status;
}

static FALLIBLE bind_named(struct bind *b, struct call *call, struct expr **out) {
    const struct func_entry *entry = find_entry(call->name);
    if (entry) {
        if (call->count < entry->least || call->count > entry->most) {
            return call_mismatch(b, call);
        }
        call->func = entry->func;
        return entry->bind(b, call, out);
    }
    bool found = false;
    TRY(bind_scalar(b, call, &found, out));
    if (found) {
        return ERR_OK;
    }
    return scalar_named(call->name) ? call_mismatch(b, call) : unknown_function(b, call);
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
    bool is_other = is_missing(call.name) && strstr(call.name, "_agg"); /* of aggregates we lack */
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
    return object ? ERR_OK : bind_named(b, &call, out);
}
