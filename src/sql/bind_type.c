/* bind_type.c: type names: what we have, what PostgreSQL has and we do not yet, and what nobody
 * has.
 *
 * Part of binding. The grammar rewrites the standard's names (INTEGER, DOUBLE PRECISION, DECIMAL)
 * to pg_catalog.int4 and the like; other names arrive as written. A name PostgreSQL knows is 0A000,
 * any other 42704 with the nearest name. */
#include "sql/sql_int.h"

static const struct {
    const char *name;
    u8 id;
} type_names[] = {
    {"bool", TYPE_BOOLEAN},      {"boolean", TYPE_BOOLEAN}, {"int2", TYPE_SMALLINT},
    {"smallint", TYPE_SMALLINT}, {"int4", TYPE_INTEGER},    {"integer", TYPE_INTEGER},
    {"int", TYPE_INTEGER},       {"int8", TYPE_BIGINT},     {"bigint", TYPE_BIGINT},
    {"numeric", TYPE_DECIMAL},   {"decimal", TYPE_DECIMAL}, {"float4", TYPE_REAL},
    {"real", TYPE_REAL},         {"float8", TYPE_DOUBLE},   {"double", TYPE_DOUBLE},
    {"float", TYPE_DOUBLE},      {"date", TYPE_DATE},       {"text", TYPE_TEXT},
    {"varchar", TYPE_TEXT},      {"string", TYPE_TEXT},
};

static const char *const known_types[] = {
    "time",    "timetz",  "timestamp", "timestamptz", "interval",  "uuid",        "bytea",
    "blob",    "json",    "jsonb",     "xml",         "money",     "inet",        "cidr",
    "bit",     "varbit",  "point",     "name",        "char",      "bpchar",      "oid",
    "serial",  "serial2", "serial4",   "serial8",     "bigserial", "smallserial", "tsvector",
    "macaddr", "box",     "line",      "circle",      "path",      "polygon",     "regclass",
};

static wf_status unknown_type(struct bind *b, const char *name, i32 position) {
    for (i64 i = 0; i < COUNT_OF(known_types); i++) {
        if (strcmp(known_types[i], name) == 0) {
            return unsupported(b, position, "type %s", name);
        }
    }
    const char *names[COUNT_OF(type_names) + COUNT_OF(known_types)];
    i64 count = 0;
    for (i64 i = 0; i < COUNT_OF(type_names); i++) {
        names[count++] = type_names[i].name;
    }
    for (i64 i = 0; i < COUNT_OF(known_types); i++) {
        names[count++] = known_types[i];
    }
    error_set(b->err, ERR_UNDEFINED_OBJECT, position, "type \"%.100s\" does not exist", name);
    const char *near = nearest_of(b, name, names, count);
    if (near) {
        error_hint(b->err, "Perhaps you meant \"%s\".", near);
    }
    return ERR_UNDEFINED_OBJECT;
}

/* An integer between parentheses after a type's name. */
static FALLIBLE modifier(struct bind *b, const struct json *node, i64 *out) {
    const struct json *body = node_body(node);
    if (!node_is(node, "A_Const") || !json_get(body, "ival")) {
        FAIL_AT(b->err, SYNTAX, node_position(node), "type modifiers must be integers");
    }
    const struct json *value = json_get(json_get(body, "ival"), "ival");
    *out = value ? value->number : lex_integer(b->parsed->script, json_position(body));
    return ERR_OK;
}

static FALLIBLE decimal_digits(struct bind *b, const struct json *mods, i32 position,
                               struct type_name *out) {
    i64 digits[2] = {0, 0};
    i32 count = 0;
    if (json_count(mods) > 2) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "decimal takes a precision and a scale");
    }
    JSON_EACH(mod, mods) {
        TRY(modifier(b, mod, &digits[count]));
        count++;
    }
    if (count == 0) {
        out->open_decimal = 1;
        out->type = type_decimal(COLUMN_DIGITS_MAX, 3);
        return ERR_OK;
    }
    if (digits[0] < 1 || digits[0] > 1000) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "decimal precision %lld must be between 1 and %d", digits[0],
                (int)DECIMAL_DIGITS_MAX);
    }
    if (digits[0] > DECIMAL_DIGITS_MAX) {
        return unsupported(b, position, "a decimal precision above %d", (int)DECIMAL_DIGITS_MAX);
    }
    if (digits[1] < 0 || digits[1] > digits[0]) {
        return unsupported(b, position, "a decimal scale outside 0 to the precision (%lld)",
                           digits[0]);
    }
    out->type = type_decimal((i32)digits[0], (i32)digits[1]);
    return ERR_OK;
}

static FALLIBLE interval_fields(struct bind *b, const struct json *mods, struct type_name *out) {
    out->is_interval = 1;
    i64 fields = 0;
    if (json_count(mods) > 1) {
        return unsupported(b, out->position, "an interval's precision");
    }
    JSON_EACH(mod, mods) {
        TRY(modifier(b, mod, &fields));
    }
    out->interval_fields = (i32)fields;
    return ERR_OK;
}

static FALLIBLE sized_text(struct bind *b, const char *name, i32 position) {
    wf_status status = unsupported(b, position, "type %s with a length",
                                   strcmp(name, "bpchar") == 0 ? "char" : name);
    error_hint(b->err, "Use text.");
    return status;
}

FALLIBLE bind_type(struct bind *b, const struct json *body, struct type_name *out) {
    memset(out, 0, sizeof *out);
    out->position = json_position(body);
    TRY(bind_only(b, body, "names typmods typemod location", out->position));
    const struct json *names = json_get(body, "names");
    const struct json *mods = json_get(body, "typmods");
    const char *schema = "pg_catalog";
    const char *name = "";
    JSON_EACH(part, names) {
        schema = json_count(names) > 1 ? name : schema;
        name = node_string(part);
    }
    if (strcmp(schema, "pg_catalog") != 0 || json_count(names) > 2) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, out->position, "type \"%.100s.%.100s\" does not exist",
                schema, name);
    }
    if (strcmp(name, "interval") == 0) {
        return interval_fields(b, mods, out);
    }
    bool sized = strcmp(name, "varchar") == 0 || strcmp(name, "bpchar") == 0;
    if (sized && json_count(mods) > 0) {
        return sized_text(b, name, out->position);
    }
    for (i64 i = 0; i < COUNT_OF(type_names); i++) {
        if (strcmp(type_names[i].name, name) != 0) {
            continue;
        }
        if (type_names[i].id == TYPE_DECIMAL) {
            return decimal_digits(b, mods, out->position, out);
        }
        if (json_count(mods) > 0) {
            FAIL_AT(b->err, SYNTAX, out->position, "type modifier is not allowed for type \"%s\"",
                    name);
        }
        out->type = type_of((enum type_id)type_names[i].id);
        return ERR_OK;
    }
    return unknown_type(b, name, out->position);
}
