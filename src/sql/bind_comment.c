/* bind_comment.c: COMMENT ON. What is named has to be there; what has comments keeps it. */
#include "sql/change_int.h"
#include "sql/ddl_int.h"

struct named { /* schema.relation.part, as far as there are such */
    const char *schema, *name, *part;
};

/* The last `parts` words of a list belong to something within the relation. */
static struct named name_of(const struct json *list, bool part) {
    struct named out = {"", "", NULL};
    JSON_EACH(item, list) {
        if (part && !item->next) {
            out.part = node_string(item);
            break;
        }
        out.schema = out.name;
        out.name = node_string(item);
    }
    return out;
}

static FALLIBLE no_schema(struct bind *b, const char *name, i32 position) {
    FAIL_AT(b->err, UNDEFINED_SCHEMA, position, "schema \"%.100s\" does not exist", name);
}

static FALLIBLE find_relation(struct bind *b, const struct named *n, i32 position,
                              const struct object **out) {
    if (n->schema[0] && !edition_find(b->snap->edition, 0, sv_from(n->schema))) {
        return no_schema(b, n->schema, position);
    }
    const struct edition_entry *entry =
        snapshot_lookup(b->snap, sv_from(n->schema), sv_from(n->name));
    if (!entry) {
        return snapshot_missing(b->snap, sv_from(n->schema), sv_from(n->name), position, b->err);
    }
    *out = entry->object;
    return ERR_OK;
}

static FALLIBLE find_column(struct bind *b, const struct object *object, const char *name,
                            i32 position) {
    u32 number = 0;
    bool found = object->col_count == 0;
    if (object->table) {
        return bind_column_list(b, object->table, &name, &position, 1, &number);
    }
    for (u32 i = 0; i < object->col_count; i++) {
        found = found || strcmp(object->col_names[i], name) == 0;
    }
    if (!found) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, position,
                "column \"%.100s\" of relation \"%.100s\" does not exist", name, object->name);
    }
    return ERR_OK;
}

static FALLIBLE find_constraint(struct bind *b, const struct object *object, const char *name,
                                i32 position) {
    const struct table *table = object->table;
    for (u32 i = 0; table && i < table->key_count; i++) {
        if (!table->keys[i].index && strcmp(table->keys[i].name, name) == 0) {
            return ERR_OK;
        }
    }
    for (u32 i = 0; table && i < table->check_count; i++) {
        if (strcmp(table->checks[i].name, name) == 0) {
            return ERR_OK;
        }
    }
    for (u32 i = 0; table && i < table->foreign_count; i++) {
        if (strcmp(table->foreigns[i].name, name) == 0) {
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, UNDEFINED_OBJECT, position,
            "constraint \"%.100s\" for table \"%.100s\" does not exist", name, object->name);
}

static FALLIBLE comment_relation(struct bind *b, const struct json *object, u8 kind,
                                 struct statement *out) {
    struct named n = name_of(json_get(node_body(object), "items"), false);
    const struct object *found = NULL;
    if (kind == OBJECT_INDEX && snapshot_key_table(b->snap, sv_from(n.schema), sv_from(n.name))) {
        return ERR_OK; /* a key has no comment to keep */
    }
    TRY(find_relation(b, &n, out->position, &found));
    if (found->kind != kind) {
        FAIL_AT(b->err, WRONG_OBJECT, out->position, "\"%.100s\" is not a%s %s", n.name,
                kind == OBJECT_INDEX ? "n" : "", object_words[kind]);
    }
    out->comment.oid = found->oid;
    return ERR_OK;
}

static FALLIBLE comment_part(struct bind *b, const struct json *object, bool column,
                             struct statement *out) {
    const struct json *items = json_get(node_body(object), "items");
    const struct object *found = NULL;
    if (column && json_count(items) < 2) {
        FAIL_AT(b->err, SYNTAX, out->position, "column name must be qualified");
    }
    struct named n = name_of(items, true);
    TRY(find_relation(b, &n, out->position, &found));
    return column ? find_column(b, found, n.part, out->position)
                  : find_constraint(b, found, n.part, out->position);
}

static FALLIBLE comment_function(struct bind *b, const struct json *object, i32 position) {
    struct named n = name_of(json_get(node_body(object), "objname"), false);
    if (!bind_function_known(n.name)) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "function %.100s does not exist", n.name);
    }
    return ERR_OK;
}

/* Kinds of things of which there are none here. */
static FALLIBLE comment_nothing(struct bind *b, const char *kind, i32 position) {
    static const struct {
        const char *kind, *words;
        b8 relation;
    } none[] = {{"OBJECT_MATVIEW", "materialized view", 1},
                {"OBJECT_FOREIGN_TABLE", "foreign table", 1},
                {"OBJECT_DOMAIN", "domain", 0},
                {"OBJECT_ROLE", "role", 0},
                {"OBJECT_TABLESPACE", "tablespace", 0},
                {"OBJECT_EXTENSION", "extension", 0},
                {"OBJECT_TRIGGER", "trigger", 0},
                {"OBJECT_RULE", "rule", 0},
                {"OBJECT_POLICY", "policy", 0},
                {"OBJECT_PUBLICATION", "publication", 0},
                {"OBJECT_SUBSCRIPTION", "subscription", 0},
                {"OBJECT_CAST", "cast", 0}};
    for (i64 i = 0; i < COUNT_OF(none); i++) {
        if (strcmp(none[i].kind, kind) == 0) {
            error_set(b->err, none[i].relation ? ERR_UNDEFINED_TABLE : ERR_UNDEFINED_OBJECT,
                      position, "the %s does not exist", none[i].words);
            return b->err->code;
        }
    }
    return ERR_OK;
}

FALLIBLE bind_comment(struct bind *b, const struct json *body, struct statement *out) {
    static const struct {
        const char *kind;
        u8 object;
    } relations[] = {{"OBJECT_TABLE", OBJECT_TABLE},
                     {"OBJECT_VIEW", OBJECT_VIEW},
                     {"OBJECT_SEQUENCE", OBJECT_SEQUENCE},
                     {"OBJECT_INDEX", OBJECT_INDEX}};
    const struct json *object = json_get(body, "object");
    const char *kind = json_text(body, "objtype");
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    kind = kind ? kind : "";
    TRY(bind_only(b, body, "objtype object comment", position));
    out->kind = STATEMENT_COMMENT;
    out->position = position;
    out->comment.text = keep(b, json_text(body, "comment"));
    TRY(snapshot_open(b->snap, b->err));
    for (i64 i = 0; i < COUNT_OF(relations); i++) {
        if (strcmp(kind, relations[i].kind) == 0) {
            return comment_relation(b, object, relations[i].object, out);
        }
    }
    if (strcmp(kind, "OBJECT_COLUMN") == 0 || strcmp(kind, "OBJECT_TABCONSTRAINT") == 0) {
        return comment_part(b, object, strcmp(kind, "OBJECT_COLUMN") == 0, out);
    }
    if (strcmp(kind, "OBJECT_SCHEMA") == 0) {
        const char *name = node_string(object);
        const struct edition_entry *entry = edition_find(b->snap->edition, 0, sv_from(name));
        out->comment.oid = entry && !entry->object->hidden ? entry->object->oid : 0;
        return entry ? ERR_OK : no_schema(b, name, position);
    }
    if (strcmp(kind, "OBJECT_TYPE") == 0) {
        struct type_name type = {0};
        return bind_type(b, node_body(object), &type);
    }
    if (strcmp(kind, "OBJECT_FUNCTION") == 0 || strcmp(kind, "OBJECT_AGGREGATE") == 0) {
        return comment_function(b, object, position);
    }
    return comment_nothing(b, kind, position);
}
