/* json_int.h: the parse tree as libpg_query hands it over: JSON, read into an arena.
 *
 * A node of the tree is an object with one member, named after the node's type, whose value is an
 * object of fields: {"ColumnRef": {"fields": […], "location": 7}}. Fields with a default value
 * (false, 0, NULL) are absent; an absent location is 0. */
#ifndef WF_SQL_JSON_INT_H
#define WF_SQL_JSON_INT_H

#include "base/mem.h"

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    const char *key; /* as a member of an object; "" in an array */
    union {
        i64 number;         /* BOOL, NUMBER */
        const char *text;   /* STRING, NUL-terminated */
        struct json *first; /* ARRAY, OBJECT */
    };
    struct json *next; /* in the same container */
    u32 len;           /* STRING: bytes; ARRAY, OBJECT: members */
    u8 kind;           /* enum json_kind */
};

/* Reads a document without recursion. *out_depth is the deepest nesting of containers. */
FALLIBLE json_read(struct arena *arena, struct sv text, struct json **out, i32 *out_depth,
                   struct error *err);

#define JSON_EACH(it, list) \
    for (const struct json *it = json_first(list); it != NULL; it = it->next)

const struct json *json_first(const struct json *list); /* list may be NULL */
i32 json_count(const struct json *list);                /* list may be NULL */
/* A member of an object, or NULL. */
const struct json *json_get(const struct json *object, const char *key);
const char *json_text(const struct json *object, const char *key); /* NULL when absent */
i64 json_number(const struct json *object, const char *key);       /* 0 when absent */
bool json_flag(const struct json *object, const char *key);
/* An enum member, "" when absent. */
bool json_is(const struct json *object, const char *key, const char *text);
i32 json_position(const struct json *object);

/* Whether two trees of a script say the same, wherever they stand in its text. */
bool json_same(const struct json *a, const struct json *b, struct sv script);

/* {"Type": {…}}: the type's name ("" for an empty node) and the fields. */
const char *node_type(const struct json *node);
const struct json *node_body(const struct json *node); /* NULL for an empty node */
bool node_is(const struct json *node, const char *type);
/* The text of a {"String": {"sval": "…"}} node; "" otherwise. */
const char *node_string(const struct json *node);

#endif
