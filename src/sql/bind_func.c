/* bind_func.c: scalar functions by name: arguments to their types, results, and what is missing.
 *
 * Part of binding. A function is one line of the table below: its names, how many arguments, and
 * the function that types them. Names PostgreSQL has and we do not yet are 0A000; other names are
 * 42883 with the nearest. */
#include "sql/sql_int.h"

struct call {
    const char *name;
    struct expr **args;
    i32 count;
    i32 position;
    u8 func; /* enum func, from the table */
};

typedef FALLIBLE (*func_handler)(struct bind *b, const struct call *call, struct expr **out);

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

static wf_status mismatch(struct bind *b, const struct call *call) {
    TRY(bind_undefined_function(b, call->name, call->args, call->count, call->position));
    return ERR_OK;
}

/* An argument that must be `type`, or come to it by itself. */
static FALLIBLE argument(struct bind *b, const struct call *call, i32 i, enum type_id id,
                         struct expr **out) {
    struct type type = type_of(id);
    if (!coerce_allowed(call->args[i]->type, type, COERCE_IMPLICIT)) {
        return mismatch(b, call);
    }
    return coerce_to(b, call->args[i], type, out);
}

static FALLIBLE call_of_text(struct bind *b, const struct call *call, enum type_id result,
                             struct expr **out) {
    struct expr *arg = NULL;
    TRY(argument(b, call, 0, TYPE_TEXT, &arg));
    *out = expr_call(b->arena, (enum func)call->func, type_of(result), call->position, 1, arg);
    return ERR_OK;
}

static FALLIBLE call_length(struct bind *b, const struct call *call, struct expr **out) {
    return call_of_text(b, call, TYPE_INTEGER, out);
}

static FALLIBLE call_text(struct bind *b, const struct call *call, struct expr **out) {
    return call_of_text(b, call, TYPE_TEXT, out);
}

static FALLIBLE call_substring(struct bind *b, const struct call *call, struct expr **out) {
    struct expr *args[3] = {NULL, NULL, NULL};
    struct sv literal;
    bool quoted = literal_text(call->args[1], &literal) && strcmp(call->name, "substring") == 0;
    bool pattern = call->count == 2 && (quoted || call->args[1]->type.id == TYPE_TEXT);
    if (pattern) {
        return unsupported(b, call->position, "substring with a pattern");
    }
    TRY(argument(b, call, 0, TYPE_TEXT, &args[0]));
    TRY(argument(b, call, 1, TYPE_INTEGER, &args[1]));
    if (call->count == 3) {
        TRY(argument(b, call, 2, TYPE_INTEGER, &args[2]));
    } else {
        args[2] = expr_int(b, I32_MAX, call->position); /* to the end */
    }
    *out = expr_call(b->arena, FUNC_SUBSTRING, type_of(TYPE_TEXT), call->position, 3, args[0],
                     args[1], args[2]);
    return ERR_OK;
}

static FALLIBLE call_abs(struct bind *b, const struct call *call, struct expr **out) {
    struct expr *arg = NULL;
    TRY(coerce_unknown(b, call->args[0], type_of(TYPE_DOUBLE), &arg));
    if (!type_is_numeric(arg->type)) {
        return mismatch(b, call);
    }
    *out = expr_call(b->arena, FUNC_ABS, arg->type, call->position, 1, arg);
    return ERR_OK;
}

static FALLIBLE call_mod(struct bind *b, const struct call *call, struct expr **out) {
    for (i32 i = 0; i < 2; i++) {
        if (!is_unknown(call->args[i]) && !type_is_exact(call->args[i]->type)) {
            return mismatch(b, call);
        }
    }
    return bind_arithmetic(b, FUNC_MOD, call->args[0], call->args[1], call->position, out);
}

static const struct {
    const char *field;
    u8 func; /* FUNC_COUNT: known, not supported */
} date_fields[] = {
    {"year", FUNC_YEAR},     {"month", FUNC_MONTH},  {"day", FUNC_DAY},
    {"quarter", FUNC_COUNT}, {"week", FUNC_COUNT},   {"dow", FUNC_COUNT},
    {"isodow", FUNC_COUNT},  {"doy", FUNC_COUNT},    {"epoch", FUNC_COUNT},
    {"century", FUNC_COUNT}, {"decade", FUNC_COUNT}, {"millennium", FUNC_COUNT},
    {"isoyear", FUNC_COUNT}, {"julian", FUNC_COUNT},
};

static FALLIBLE find_field(struct bind *b, const struct expr *field, enum func *out) {
    struct sv name;
    if (!literal_text(field, &name)) {
        return unsupported(b, field->position, "a date field that is not constant");
    }
    for (i64 i = 0; i < COUNT_OF(date_fields); i++) {
        if (!sv_eq_nocase(name, sv_from(date_fields[i].field))) {
            continue;
        }
        *out = (enum func)date_fields[i].func;
        return *out == FUNC_COUNT
                   ? unsupported(b, field->position, "field %s of a date", date_fields[i].field)
                   : ERR_OK;
    }
    FAIL_AT(b->err, INVALID_PARAMETER, field->position,
            "unit \"%.*s\" not recognized for type date", (int)MIN_OF(name.len, 60), name.ptr);
}

/* extract returns decimal, date_part double precision, as in PostgreSQL. */
static FALLIBLE call_extract(struct bind *b, const struct call *call, struct expr **out) {
    struct expr *date = call->args[1];
    if (is_unknown(date) && date->kind == EXPR_CONST) {
        FAIL_AT(b->err, AMBIGUOUS_FUNCTION, call->position,
                "function %s(unknown, unknown) is not unique", call->name);
    }
    TRY(coerce_unknown(b, date, type_of(TYPE_DATE), &date));
    if (date->type.id != TYPE_DATE) {
        return mismatch(b, call);
    }
    enum func func;
    TRY(find_field(b, call->args[0], &func));
    struct type integer = type_of(TYPE_INTEGER);
    struct expr *part = expr_call(b->arena, func, integer, call->position, 1, date);
    bool extract = strcmp(call->name, "extract") == 0;
    return coerce_to(b, part, extract ? type_decimal(10, 0) : type_of(TYPE_DOUBLE), out);
}

/* concat(a, …) takes NULL for empty text. */
static FALLIBLE call_concat(struct bind *b, const struct call *call, struct expr **out) {
    struct type text = type_of(TYPE_TEXT);
    *out = NULL;
    for (i32 i = 0; i < call->count; i++) {
        struct expr *arg = NULL;
        TRY(coerce_to(b, call->args[i], text, &arg));
        if (expr_nullable(b->plan, arg)) {
            TRY(bind_sharable(b, arg));
            struct expr *empty = expr_new(b->arena, EXPR_CONST, text, call->position);
            empty->value.str = str_from(SV(""));
            struct expr *args[3] = {expr_one(b, EXPR_IS_NULL, arg, call->position), empty, arg};
            arg = expr_many(b, EXPR_CASE, text, call->position, 3, args);
        }
        *out = *out ? expr_call(b->arena, FUNC_CONCAT, text, call->position, 2, *out, arg) : arg;
    }
    return ERR_OK;
}

static const struct {
    const char *name;
    i32 least, most; /* arguments */
    func_handler bind;
    u8 func;
} functions[] = {
    {"length", 1, 1, call_length, FUNC_LENGTH},
    {"char_length", 1, 1, call_length, FUNC_LENGTH},
    {"character_length", 1, 1, call_length, FUNC_LENGTH},
    {"octet_length", 1, 1, call_length, FUNC_OCTET_LENGTH},
    {"upper", 1, 1, call_text, FUNC_UPPER},
    {"lower", 1, 1, call_text, FUNC_LOWER},
    {"substring", 2, 3, call_substring, FUNC_SUBSTRING},
    {"substr", 2, 3, call_substring, FUNC_SUBSTRING},
    {"abs", 1, 1, call_abs, FUNC_ABS},
    {"mod", 2, 2, call_mod, FUNC_MOD},
    {"extract", 2, 2, call_extract, FUNC_YEAR},
    {"date_part", 2, 2, call_extract, FUNC_YEAR},
    {"concat", 1, 1000, call_concat, FUNC_CONCAT},
};

static const char *const known_functions[] = {
    "round",
    "floor",
    "ceil",
    "ceiling",
    "trunc",
    "sign",
    "sqrt",
    "cbrt",
    "power",
    "pow",
    "exp",
    "ln",
    "log",
    "log10",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "pi",
    "degrees",
    "radians",
    "random",
    "div",
    "gcd",
    "lcm",
    "btrim",
    "ltrim",
    "rtrim",
    "position",
    "strpos",
    "replace",
    "translate",
    "left",
    "right",
    "lpad",
    "rpad",
    "repeat",
    "reverse",
    "split_part",
    "concat_ws",
    "initcap",
    "ascii",
    "chr",
    "md5",
    "format",
    "overlay",
    "regexp_replace",
    "regexp_match",
    "regexp_matches",
    "regexp_like",
    "starts_with",
    "to_char",
    "to_date",
    "to_number",
    "to_timestamp",
    "now",
    "clock_timestamp",
    "current_setting",
    "age",
    "date_trunc",
    "make_date",
    "make_interval",
    "timezone",
    "generate_series",
    "unnest",
    "array_length",
    "pg_typeof",
    "version",
    "similar_to_escape",
    "like_escape",
    "width_bucket",
    "string_to_array",
    "num_nonnulls",
    "isfinite",
    "justify_days",
    "bit_length",
    "encode",
    "decode",
    "quote_literal",
    "array_agg",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_slope",
    "bit_and",
    "bit_or",
    "json_agg",
    "jsonb_agg",
    "any_value",
};

static FALLIBLE unknown_function(struct bind *b, const struct call *call) {
    for (i64 i = 0; i < COUNT_OF(known_functions); i++) {
        if (strcmp(known_functions[i], call->name) == 0) {
            return unsupported(b, call->position, "function %s", call->name);
        }
    }
    wf_status status =
        bind_undefined_function(b, call->name, call->args, call->count, call->position);
    const char *names[COUNT_OF(functions) + AGG_END];
    i64 count = 0;
    for (i64 i = 0; i < COUNT_OF(functions); i++) {
        names[count++] = functions[i].name;
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

static FALLIBLE bind_scalar(struct bind *b, struct call *call, struct expr **out) {
    for (i64 i = 0; i < COUNT_OF(functions); i++) {
        if (strcmp(functions[i].name, call->name) != 0) {
            continue;
        }
        if (call->count < functions[i].least || call->count > functions[i].most) {
            return mismatch(b, call);
        }
        call->func = functions[i].func;
        return functions[i].bind(b, call, out);
    }
    return unknown_function(b, call);
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
    if (window_find(call.name)) {
        FAIL_AT(b->err, WRONG_OBJECT, call.position, "window function %s requires an OVER clause",
                call.name);
    }
    if (json_get(body, "over")) {
        FAIL_AT(b->err, WRONG_OBJECT, call.position,
                "OVER specified, but %s is not a window function nor an aggregate function",
                call.name);
    }
    TRY(bind_only(b, body, "funcname args funcformat location", call.position));
    bool late = false;
    TRY(bind_late_call(b, q, call.name, body, &late, out));
    if (late) {
        return ERR_OK;
    }
    TRY(bind_list(b, q, json_get(body, "args"), &call.args, &call.count));
    return bind_scalar(b, &call, out);
}
