/* bind_type.c: type names as the grammar writes them.
 *
 * Part of binding. The grammar rewrites the standard's names (INTEGER, DOUBLE PRECISION, DECIMAL) to
 * pg_catalog.int4 and the like; other names arrive as written. What they mean: typing/type_name.c. */
#include "sql/sql_int.h"

/* The integers between parentheses after a type's name. */
static void modifiers(struct bind *b, const struct json *list, struct type_modifiers *out) {
    *out = (struct type_modifiers){.bad_position = -1};
    JSON_EACH(node, list) {
        const struct json *body = node_body(node);
        const struct json *value = json_get(json_get(body, "ival"), "ival");
        bool integer = node_is(node, "A_Const") && json_get(body, "ival");
        if (!integer && out->bad_position < 0) {
            out->bad_position = MAX_OF(node_position(node), 0);
        } else if (integer && out->count < COUNT_OF(out->numbers)) {
            out->numbers[out->count] =
                value ? value->number : lex_integer(b->parsed->script, json_position(body));
        }
        out->count++;
    }
}

FALLIBLE bind_type(struct bind *b, const struct json *body, struct type_name *out) {
    memset(out, 0, sizeof *out);
    out->position = json_position(body);
    TRY(bind_only(b, body, "names typmods typemod location", out->position));
    const struct json *names = json_get(body, "names");
    struct type_modifiers mods;
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
    modifiers(b, json_get(body, "typmods"), &mods);
    return type_named(b->t, name, &mods, out->position, out);
}
