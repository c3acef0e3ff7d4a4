/* bind_ddl.c: CREATE TABLE and DROP TABLE.
 *
 * Part of binding. Definitions are checked here as far as the statement alone allows; whether a
 * name is taken or missing is for the catalog to say when the statement runs. Constraints other
 * than NOT NULL would change what a table accepts, so until they are enforced each is 0A000. */
#include "base/map.h"
#include "sql/sql_int.h"

static const struct {
    const char *type;
    const char *words;
} constraints[] = {
    {"CONSTR_PRIMARY", "PRIMARY KEY"},
    {"CONSTR_UNIQUE", "UNIQUE"},
    {"CONSTR_CHECK", "CHECK"},
    {"CONSTR_DEFAULT", "DEFAULT"},
    {"CONSTR_FOREIGN", "REFERENCES"},
    {"CONSTR_EXCLUSION", "EXCLUDE"},
    {"CONSTR_IDENTITY", "GENERATED AS IDENTITY"},
    {"CONSTR_GENERATED", "GENERATED columns"},
};

static wf_status unsupported_constraint(struct bind *b, const struct json *body) {
    const char *type = json_text(body, "contype");
    i32 position = json_position(body);
    for (i64 i = 0; type && i < COUNT_OF(constraints); i++) {
        if (strcmp(constraints[i].type, type) == 0) {
            return unsupported(b, position, "%s", constraints[i].words);
        }
    }
    return unsupported(b, position, "constraint %s", type ? type : "");
}

static FALLIBLE bind_constraints(struct bind *b, const struct json *list, const char *table,
                                 struct column_def *col) {
    bool nullable = false;
    JSON_EACH(node, list) {
        const struct json *body = node_body(node);
        if (json_is(body, "contype", "CONSTR_NOTNULL")) {
            col->not_null = 1;
        } else if (json_is(body, "contype", "CONSTR_NULL")) {
            nullable = true;
        } else {
            return unsupported_constraint(b, body);
        }
        if (nullable && col->not_null) {
            FAIL_AT(b->err, SYNTAX, json_position(body),
                    "conflicting NULL/NOT NULL declarations for column \"%.100s\" of table "
                    "\"%.100s\"",
                    col->name, table);
        }
    }
    return ERR_OK;
}

static FALLIBLE column_type(struct bind *b, const struct json *body, struct type *out) {
    struct type_name name;
    TRY(bind_type(b, body, &name));
    *out = name.type;
    if (name.is_interval) {
        return unsupported(b, name.position, "type interval");
    }
    if (name.open_decimal) {
        wf_status status = unsupported(b, name.position, "decimal without precision and scale");
        error_hint(b->err, "Say how many digits: decimal(18,3).");
        return status;
    }
    if (out->id == TYPE_DECIMAL && out->precision > COLUMN_DIGITS_MAX) {
        return unsupported(b, name.position, "a decimal column of more than %d digits",
                           (int)COLUMN_DIGITS_MAX);
    }
    return ERR_OK;
}

static FALLIBLE bind_column_def(struct bind *b, const struct json *body, const char *table,
                                struct column_def *out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "colname typeName is_local constraints location", position));
    out->name = json_text(body, "colname");
    out->name = keep(b, out->name ? out->name : "");
    TRY(column_type(b, json_get(body, "typeName"), &out->type));
    return bind_constraints(b, json_get(body, "constraints"), table, out);
}

static FALLIBLE bind_column_defs(struct bind *b, const struct json *list, struct statement *out) {
    struct map names;
    map_init(&names, b->arena);
    i32 count = json_count(list);
    out->cols = NEW_ARRAY(b->arena, struct column_def, count + 1);
    JSON_EACH(node, list) {
        const struct json *body = node_body(node);
        i32 position = node_position(node);
        if (node_is(node, "Constraint")) {
            return unsupported_constraint(b, body);
        }
        if (!node_is(node, "ColumnDef")) {
            return unsupported(b, position, "LIKE in CREATE TABLE");
        }
        struct column_def *col = &out->cols[out->col_count];
        TRY(bind_column_def(b, body, out->table_name, col));
        if (map_find(&names, sv_from(col->name))) {
            FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                    "column \"%.100s\" specified more than once", col->name);
        }
        map_set(&names, sv_from(col->name), col);
        if (++out->col_count > COLUMNS_MAX) {
            FAIL_AT(b->err, TOO_MANY_COLUMNS, position, "tables can have at most %d columns",
                    (int)COLUMNS_MAX);
        }
    }
    return ERR_OK;
}

FALLIBLE bind_create(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    i32 position = json_position(relation);
    TRY(bind_only(b, body, "relation tableElts oncommit if_not_exists", position));
    TRY(bind_table_name(b, relation, &out->table_name));
    if (!json_is(body, "oncommit", "ONCOMMIT_NOOP")) {
        return unsupported(b, position, "ON COMMIT");
    }
    out->kind = STATEMENT_CREATE_TABLE;
    out->position = position;
    out->if_exists = json_flag(body, "if_not_exists");
    out->or_replace = b->parsed->or_replace;
    TRY(bind_column_defs(b, json_get(body, "tableElts"), out));
    if (out->col_count == 0) {
        return unsupported(b, position, "a table without columns");
    }
    return ERR_OK;
}

/* The tree keeps no positions of DROP's names: they are found in the text, in order. */
static void drop_positions(struct bind *b, struct statement *out) {
    struct sv script = b->parsed->script;
    i64 at = b->parsed->text.ptr - script.ptr;
    i64 end = at + b->parsed->text.len;
    struct sv token;
    i32 i = 0;
    bool after_table = false;
    bool at_name = false;
    while (at < end && i < out->name_count && lex_next(script, &at, &token)) {
        bool word = sv_eq_nocase(token, SV("if")) || sv_eq_nocase(token, SV("exists"));
        if (!after_table) {
            after_table = at_name = sv_eq_nocase(token, SV("table"));
        } else if (token.ptr[0] == ',') {
            at_name = true;
        } else if (at_name && !(word && out->if_exists && i == 0)) {
            out->positions[i++] = (i32)(token.ptr - script.ptr);
            at_name = false;
        }
    }
}

FALLIBLE bind_drop(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    TRY(bind_only(b, body, "objects removeType behavior missing_ok", position));
    if (!json_is(body, "removeType", "OBJECT_TABLE")) {
        const char *type = json_text(body, "removeType");
        return unsupported(b, position, "DROP %s",
                           type && strncmp(type, "OBJECT_", 7) == 0 ? type + 7 : "");
    }
    const struct json *objects = json_get(body, "objects");
    out->kind = STATEMENT_DROP_TABLE;
    out->if_exists = json_flag(body, "missing_ok");
    out->name_count = json_count(objects);
    out->names = NEW_ARRAY(b->arena, const char *, out->name_count + 1);
    out->positions = NEW_ARRAY(b->arena, i32, out->name_count + 1);
    drop_positions(b, out);
    i32 i = 0;
    JSON_EACH(object, objects) {
        const struct json *parts = json_get(node_body(object), "items");
        const char *schema = "main";
        const char *name = "";
        JSON_EACH(part, parts) {
            schema = part->next ? node_string(part) : schema;
            name = node_string(part);
        }
        if (json_count(parts) > 2 || strcmp(schema, "main") != 0) {
            FAIL_AT(b->err, UNDEFINED_TABLE, out->positions[i],
                    "table \"%.100s.%.100s\" does not exist", schema, name);
        }
        out->names[i++] = keep(b, name);
    }
    out->table_name = out->names[0];
    out->position = out->positions[0];
    return ERR_OK;
}
