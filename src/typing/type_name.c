/* type_name.c: type names: what we have, what PostgreSQL has and we do not yet, and what nobody
 * has.
 *
 * A name PostgreSQL knows is 0A000, any other 42704 with the nearest name. */
#include "typing/typing_int.h"

#include "base/map.h"

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

static wf_status unknown_type(struct typing *t, const char *name, i32 position) {
    for (i64 i = 0; i < COUNT_OF(known_types); i++) {
        if (strcmp(known_types[i], name) == 0) {
            FAIL_AT(t->err, NOT_SUPPORTED, position, "not supported yet: type %s", name);
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
    error_set(t->err, ERR_UNDEFINED_OBJECT, position, "type \"%.100s\" does not exist", name);
    const char *near = nearest_of(t->arena, name, names, count);
    if (near) {
        error_hint(t->err, "Perhaps you meant \"%s\".", near);
    }
    return ERR_UNDEFINED_OBJECT;
}

/* Those between parentheses must be integers, where there may be any. */
static FALLIBLE check_numbers(struct typing *t, const struct type_modifiers *mods) {
    if (mods->bad_position >= 0) {
        FAIL_AT(t->err, SYNTAX, mods->bad_position, "type modifiers must be integers");
    }
    return ERR_OK;
}

static FALLIBLE decimal_digits(struct typing *t, const struct type_modifiers *mods,
                               struct type_name *out) {
    if (mods->count > 2) {
        FAIL_AT(t->err, INVALID_PARAMETER, out->position, "decimal takes a precision and a scale");
    }
    TRY(check_numbers(t, mods));
    if (mods->count == 0) {
        out->open_decimal = 1;
        out->type = type_decimal(PARAM_DIGITS, 3);
        return ERR_OK;
    }
    i64 precision = mods->numbers[0], scale = mods->count > 1 ? mods->numbers[1] : 0;
    if (precision < 1 || precision > 1000) {
        FAIL_AT(t->err, INVALID_PARAMETER, out->position,
                "decimal precision %lld must be between 1 and %d", precision,
                (int)DECIMAL_DIGITS_MAX);
    }
    if (precision > DECIMAL_DIGITS_MAX) {
        FAIL_AT(t->err, NOT_SUPPORTED, out->position,
                "not supported yet: a decimal precision above %d", (int)DECIMAL_DIGITS_MAX);
    }
    if (scale < -1000 || scale > 1000) {
        FAIL_AT(t->err, INVALID_PARAMETER, out->position,
                "decimal scale %lld must be between -1000 and 1000", scale);
    }
    if (scale < 0 || scale > precision) {
        FAIL_AT(t->err, NOT_SUPPORTED, out->position,
                "not supported yet: a decimal scale outside 0 to the precision (%lld)", precision);
    }
    out->type = type_decimal((i32)precision, (i32)scale);
    return ERR_OK;
}

enum { ALL_FIELDS = 0x7fff, LENGTH_MAX = 10485760, DIGITS_MAX = 6 };

/* interval, its fields (kept in the length until a literal is read) and digits of a second. */
static FALLIBLE interval_fields(struct typing *t, const struct type_modifiers *mods,
                                struct type_name *out) {
    TRY(check_numbers(t, mods));
    i64 fields = mods->count > 0 ? mods->numbers[0] : ALL_FIELDS;
    i64 digits = mods->count > 1 ? mods->numbers[1] : DIGITS_MAX;
    out->type.length = fields == ALL_FIELDS ? 0 : (u32)fields;
    out->type.precision = digits < DIGITS_MAX ? (u8)(digits + 1) : 0;
    return ERR_OK;
}

/* varchar(n), char(n), timestamp(p), time(p). */
static FALLIBLE one_modifier(struct typing *t, const char *name, const struct type_modifiers *mods,
                             struct type_name *out) {
    bool text = type_is_string(out->type);
    bool timed = type_category(out->type) == 'D' && out->type.id != TYPE_DATE;
    if (mods->count != 1 || (!text && !timed) || strcmp(name, "text") == 0) {
        FAIL_AT(t->err, SYNTAX, out->position, "type modifier is not allowed for type \"%s\"",
                name);
    }
    TRY(check_numbers(t, mods));
    i64 number = mods->numbers[0];
    if (text && (number < 1 || number > LENGTH_MAX)) {
        FAIL_AT(t->err, INVALID_PARAMETER, out->position,
                "length for type %s must be between 1 and %d", name, (int)LENGTH_MAX);
    }
    if (timed && number < 0) {
        FAIL_AT(t->err, INVALID_PARAMETER, out->position, "a precision must not be negative");
    }
    out->type.length = text ? (u32)number : 0;
    out->type.precision = timed && number < DIGITS_MAX ? (u8)(number + 1) : 0;
    return ERR_OK;
}

FALLIBLE type_named(struct typing *t, const char *name, const struct type_modifiers *mods,
                    i32 position, struct type_name *out) {
    *out = (struct type_name){.position = position};
    for (i64 i = 0; i < COUNT_OF(type_names); i++) {
        if (strcmp(type_names[i].name, name) != 0) {
            continue;
        }
        out->type = type_of((enum type_id)type_names[i].id);
        if (out->type.id == TYPE_DECIMAL) {
            return decimal_digits(t, mods, out);
        }
        if (out->type.id == TYPE_INTERVAL) {
            return interval_fields(t, mods, out);
        }
        if (mods->count > 0) {
            return one_modifier(t, name, mods, out);
        }
        out->type.length = strcmp(name, "bpchar") == 0 ? 0 : type_names[i].length;
        return ERR_OK;
    }
    return unknown_type(t, name, position);
}
