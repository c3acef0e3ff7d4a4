/* function.c: scalar functions by name: arguments to their types, results, and what is missing.
 *
 * A function is a row of WF_SCALARS (one opcode) or a line of a table in math.c, text.c or time.c
 * with the function that types its arguments. Names PostgreSQL has and we do not yet are 0A000;
 * other names are 42883 with the nearest. */
#include "typing/typing_int.h"

#include "base/map.h"
#include "codes/scalar.h"

FALLIBLE call_undefined(struct typing *t, const char *name, struct expr **args, i32 count,
                        i32 position) {
    struct text types;
    text_init(&types, t->arena);
    for (i32 i = 0; i < count && types.len < 300; i++) {
        char type[32];
        text_print(&types, "%s%s", i > 0 ? ", " : "", type_print(args[i]->type, type));
    }
    FAIL_AT(t->err, UNDEFINED_FUNCTION, position, "function %.100s(%s) does not exist", name,
            types.ptr ? types.ptr : "");
}

wf_status call_mismatch(struct typing *t, const struct call *call) {
    TRY(call_undefined(t, call->name, call->args, call->count, call->position));
    return ERR_OK;
}

FALLIBLE call_argument(struct typing *t, const struct call *call, i32 i, struct type type,
                       struct expr **out) {
    if (!coerce_allowed(call->args[i]->type, type, COERCE_IMPLICIT)) {
        return call_mismatch(t, call);
    }
    return coerce_to(t, call->args[i], type, out);
}

/* The tables of functions, by what they work on. */
typedef const struct func_entry *(*func_table)(i64 *out_count);
static const func_table tables[] = {math_functions, text_functions, time_functions};

static const struct func_entry *find_entry(const char *name) {
    for (i64 k = 0; k < COUNT_OF(tables); k++) {
        i64 count = 0;
        const struct func_entry *entries = tables[k](&count);
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
    "regexp_match", "regexp_matches", "current_setting",       "generate_series", "unnest",
    "array_length", "version",        "string_to_array",       "array_agg",       "json_agg",
    "jsonb_agg",    "any_value",      "regexp_split_to_array", "setseed",         "parse_ident",
    "to_ascii",
};

bool call_is_missing(const char *name) {
    for (i64 i = 0; i < COUNT_OF(known_functions); i++) {
        if (strcmp(known_functions[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool call_is_known(const char *name) {
    return find_entry(name) || scalar_named(name) || call_is_missing(name);
}

static FALLIBLE unknown_function(struct typing *t, const struct call *call) {
    if (call_is_missing(call->name)) {
        FAIL_AT(t->err, NOT_SUPPORTED, call->position, "not supported yet: function %s",
                call->name);
    }
    wf_status status = call_undefined(t, call->name, call->args, call->count, call->position);
    const char *names[FUNC_COUNT + AGG_END + 200];
    i64 count = 0;
    for (i64 k = 0; k < COUNT_OF(tables); k++) {
        i64 entry_count = 0;
        const struct func_entry *entries = tables[k](&entry_count);
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
    const char *near = nearest_of(t->arena, call->name, names, count);
    if (near) {
        error_hint(t->err, "Perhaps you meant \"%s\".", near);
    }
    return status;
}

FALLIBLE call_named(struct typing *t, struct call *call, struct expr **out) {
    const struct func_entry *entry = find_entry(call->name);
    if (entry) {
        if (call->count < entry->least || call->count > entry->most) {
            return call_mismatch(t, call);
        }
        call->func = entry->func;
        return entry->bind(t, call, out);
    }
    bool found = false;
    TRY(call_overload(t, call, &found, out));
    if (found) {
        return ERR_OK;
    }
    return scalar_named(call->name) ? call_mismatch(t, call) : unknown_function(t, call);
}

const char *typing_function(i64 i) {
    for (i64 k = 0; k < COUNT_OF(tables); k++) {
        i64 count = 0;
        const struct func_entry *entries = tables[k](&count);
        if (i < count) {
            return entries[i].name;
        }
        i -= count;
    }
    return NULL;
}
