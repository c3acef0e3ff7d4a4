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
    u8 length;
} type_names[] = {
#define X(A, name, type, length) {name, TYPE_##type, length},
    WF_TYPE_NAMES(X, )
#undef X
};

static const char *const known_types[] = {
    "timetz",  "json",    "jsonb",   "xml",       "money",       "inet",     "cidr",
    "bit",     "varbit",  "point",   "name",      "oid",         "serial",   "serial2",
    "serial4", "serial8", "tsquery", "bigserial", "smallserial", "tsvector", "regtype",
    "macaddr", "box",     "line",    "circle",    "path",        "polygon",  "regclass",
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
        out->type = type_decimal(PARAM_DIGITS, 3);
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
    if (digits[1] < -1000 || digits[1] > 1000) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "decimal scale %lld must be between -1000 and 1000", digits[1]);
    }
    if (digits[1] < 0 || digits[1] > digits[0]) {
        return unsupported(b, position, "a decimal scale outside 0 to the precision (%lld)",
                           digits[0]);
    }
    out->type = type_decimal((i32)digits[0], (i32)digits[1]);
    return ERR_OK;
}

enum { ALL_FIELDS = 0x7fff, LENGTH_MAX = 10485760, DIGITS_MAX = 6 };

/* interval, its fields (kept in the length until a literal is read) and digits of a second. */
static FALLIBLE interval_fields(struct bind *b, const struct json *mods, struct type_name *out) {
    i64 numbers[2] = {ALL_FIELDS, DIGITS_MAX};
    i32 count = 0;
    JSON_EACH(mod, mods) {
        TRY(modifier(b, mod, &numbers[MIN_OF(count, 1)]));
        count++;
    }
    out->type.length = numbers[0] == ALL_FIELDS ? 0 : (u32)numbers[0];
    out->type.precision = numbers[1] < DIGITS_MAX ? (u8)(numbers[1] + 1) : 0;
    return ERR_OK;
}

/* varchar(n), char(n), timestamp(p), time(p). */
static FALLIBLE one_modifier(struct bind *b, const char *name, const struct json *mods,
                             struct type_name *out) {
    i64 number = 0;
    bool text = type_is_string(out->type);
    bool timed = type_category(out->type) == 'D' && out->type.id != TYPE_DATE;
    if (json_count(mods) != 1 || (!text && !timed) || strcmp(name, "text") == 0) {
        FAIL_AT(b->err, SYNTAX, out->position, "type modifier is not allowed for type \"%s\"",
                name);
    }
    TRY(modifier(b, json_first(mods), &number));
    if (text && (number < 1 || number > LENGTH_MAX)) {
        FAIL_AT(b->err, INVALID_PARAMETER, out->position,
                "length for type %s must be between 1 and %d", name, (int)LENGTH_MAX);
    }
    if (timed && number < 0) {
        FAIL_AT(b->err, INVALID_PARAMETER, out->position, "a precision must not be negative");
    }
    out->type.length = text ? (u32)number : 0;
    out->type.precision = timed && number < DIGITS_MAX ? (u8)(number + 1) : 0;
    return ERR_OK;
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
    for (i64 i = 0; i < COUNT_OF(type_names); i++) {
        if (strcmp(type_names[i].name, name) != 0) {
            continue;
        }
        out->type = type_of((enum type_id)type_names[i].id);
        if (out->type.id == TYPE_DECIMAL) {
            return decimal_digits(b, mods, out->position, out);
        }
        if (out->type.id == TYPE_INTERVAL) {
            return interval_fields(b, mods, out);
        }
        if (json_count(mods) > 0) {
            return one_modifier(b, name, mods, out);
        }
        out->type.length = strcmp(name, "bpchar") == 0 ? 0 : type_names[i].length;
        return ERR_OK;
    }
    return unknown_type(b, name, out->position);
}
