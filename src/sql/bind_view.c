/* bind_view.c: definitions other than tables: schemas, views, sequences, indexes, comments; CREATE
 * TABLE AS; DROP.
 *
 * Part of binding. A view is kept as the text of its query and bound at every use under the search
 * path it was made under; binding it here finds its errors, its columns and what it depends on. It
 * also remembers the columns of what it reads, so that `*` stays what it was (bind_from.c). An
 * index is accepted and kept by name only, since scans need none; a unique one is a constraint and
 * refused in favour of ALTER TABLE. */
#include "sql/change_int.h"
#include "sql/ddl_int.h"

static i32 start_position(const struct bind *b) {
    return (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
}

static i64 statement_end(const struct bind *b) {
    return b->parsed->text.ptr + b->parsed->text.len - b->parsed->script.ptr;
}

FALLIBLE bind_create_schema(struct bind *b, const struct json *body, struct statement *out) {
    TRY(bind_only(b, body, "schemaname if_not_exists", start_position(b)));
    out->kind = STATEMENT_CREATE_SCHEMA;
    out->position = start_position(b);
    out->name = keep(b, json_text(body, "schemaname"));
    out->create.if_not_exists = json_flag(body, "if_not_exists");
    if (!out->name) {
        return unsupported(b, out->position, "CREATE SCHEMA AUTHORIZATION");
    }
    return ERR_OK;
}

/* Sequences */

/* The tree has no value for numbers that are not above zero: the next one in the text. */
static i64 written_number(const struct bind *b, i64 at) {
    struct sv script = b->parsed->script, token;
    while (lex_next(script, &at, &token)) {
        if (token.ptr[0] == '-' || (token.ptr[0] >= '0' && token.ptr[0] <= '9')) {
            return lex_integer(script, token.ptr - script.ptr);
        }
    }
    return 0;
}

static FALLIBLE option_number(struct bind *b, const struct json *option, i64 *out) {
    const struct json *node = json_get(option, "arg");
    const struct json *body = node_body(node);
    i32 position = json_position(option);
    if (node_is(node, "Integer")) {
        const struct json *value = json_get(body, "ival");
        *out = value ? value->number : written_number(b, position);
        return ERR_OK;
    }
    const char *text = node_is(node, "Float") ? json_text(body, "fval") : NULL;
    bool minus = text && *text == '-';
    i128 value = 0;
    for (const char *at = text ? text + minus : ""; *at && value < ((i128)1 << 70); at++) {
        if (*at < '0' || *at > '9') {
            text = NULL;
            break;
        }
        value = value * 10 + (*at - '0');
    }
    value = minus ? -value : value;
    if (!text) {
        FAIL_AT(b->err, INVALID_TEXT, position, "a sequence's options are 64-bit integers");
    }
    if (value > I64_MAX || value < I64_MIN) {
        FAIL_AT(b->err, OUT_OF_RANGE, position, "value \"%.40s\" is out of range for type bigint",
                text);
    }
    *out = (i64)value;
    return ERR_OK;
}

static FALLIBLE sequence_type(struct bind *b, const struct json *option, struct ddl_seq *io) {
    struct type type;
    TRY(ddl_column_type(b, node_body(json_get(option, "arg")), &type));
    if (type.id != TYPE_SMALLINT && type.id != TYPE_INTEGER && type.id != TYPE_BIGINT) {
        FAIL_AT(b->err, INVALID_PARAMETER, json_position(option),
                "sequence type must be smallint, integer, or bigint");
    }
    if (io->has_type && io->like.type.id != type.id) { /* limits that were the type's follow it */
        struct range old = range_of_type(io->like.type);
        struct range now = range_of_type(type);
        io->like.max = io->like.max == (i64)old.hi ? (i64)now.hi : io->like.max;
        io->like.min = io->like.min == (i64)old.lo ? (i64)now.lo : io->like.min;
    }
    io->like.type = type;
    return ERR_OK;
}

/* MINVALUE and MAXVALUE are values of the type. */
static FALLIBLE check_limit(struct bind *b, const struct sequence *s, const char *what, i64 value,
                            i32 position) {
    struct range range = range_of_type(s->type);
    char type[32];
    if (value < (i64)range.lo || value > (i64)range.hi) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "%s (%lld) is out of range for sequence data type %s", what, value,
                type_print(s->type, type));
    }
    return ERR_OK;
}

static FALLIBLE check_value(struct bind *b, const struct sequence *s, const char *what, i64 value,
                            i32 position) {
    if (value < s->min || value > s->max) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "%s value (%lld) cannot be %s (%lld)", what,
                value, value < s->min ? "less than MINVALUE" : "greater than MAXVALUE",
                value < s->min ? s->min : s->max);
    }
    return ERR_OK;
}

static FALLIBLE check_sequence(struct bind *b, struct ddl_seq *seq, i32 position) {
    struct sequence *s = &seq->like;
    struct range range = range_of_type(s->type);
    if (s->increment == 0) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "INCREMENT must not be zero");
    }
    s->max = seq->has_max ? s->max : s->increment > 0 ? (i64)range.hi : -1;
    s->min = seq->has_min ? s->min : s->increment > 0 ? 1 : (i64)range.lo;
    TRY(check_limit(b, s, "MAXVALUE", s->max, position));
    TRY(check_limit(b, s, "MINVALUE", s->min, position));
    if (s->min >= s->max) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "MINVALUE (%lld) must be less than MAXVALUE (%lld)", s->min, s->max);
    }
    s->start = seq->has_start ? s->start : s->increment > 0 ? s->min : s->max;
    TRY(check_value(b, s, "START", s->start, position));
    s->last = s->start;
    if (seq->restart && !seq->has_restart) {
        seq->restart_at = s->start;
    }
    return seq->restart ? check_value(b, s, "RESTART", seq->restart_at, position) : ERR_OK;
}

static FALLIBLE owned_by(struct bind *b, const struct json *option, struct ddl_seq *io) {
    const struct json *names = json_get(node_body(json_get(option, "arg")), "items");
    const char *parts[3] = {NULL, NULL, NULL};
    i32 count = 0;
    JSON_EACH(name, names) {
        if (count < 3) {
            parts[count++] = node_string(name);
        }
    }
    if (count == 1 && strcmp(parts[0], "none") == 0) {
        io->disowned = 1;
        return ERR_OK;
    }
    if (count < 2) {
        FAIL_AT(b->err, SYNTAX, json_position(option), "invalid OWNED BY option");
    }
    TRY(snapshot_open(b->snap, b->err));
    struct sv schema = count == 3 ? sv_from(parts[0]) : (struct sv){NULL, 0};
    const struct edition_entry *entry = snapshot_lookup(b->snap, schema, sv_from(parts[count - 2]));
    if (!entry || entry->object->kind != OBJECT_TABLE) {
        return snapshot_missing(b->snap, schema, sv_from(parts[count - 2]), json_position(option),
                                b->err);
    }
    const struct table *table = entry->object->table;
    u32 col = 0;
    while (col < table->col_count && strcmp(table->cols[col].name, parts[count - 1]) != 0) {
        col++;
    }
    if (col == table->col_count) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, json_position(option),
                "column \"%.100s\" of relation \"%.100s\" does not exist", parts[count - 1],
                table->name);
    }
    io->owner = entry->object->oid;
    io->col = col;
    return ERR_OK;
}

/* Each option is given once. */
static FALLIBLE check_repeated(struct bind *b, const struct json *options, const struct json *own) {
    const char *name = json_text(node_body(own), "defname");
    for (const struct json *node = json_first(options); node && node != own; node = node->next) {
        const char *other = json_text(node_body(node), "defname");
        if (name && other && strcmp(name, other) == 0) {
            FAIL_AT(b->err, SYNTAX, json_position(node_body(own)),
                    "conflicting or redundant options");
        }
    }
    return ERR_OK;
}

FALLIBLE bind_sequence_options(struct bind *b, const struct json *options, struct ddl_seq *io) {
    struct sequence *s = &io->like;
    i32 position = node_position(options);
    JSON_EACH(node, options) {
        const struct json *option = node_body(node);
        const char *name = json_text(option, "defname");
        bool given = json_get(option, "arg") != NULL;
        name = name ? name : "";
        TRY(check_repeated(b, options, node));
        if (strcmp(name, "increment") == 0) {
            TRY(option_number(b, option, &s->increment));
        } else if (strcmp(name, "minvalue") == 0) {
            io->has_min = given;
            TRY(given ? option_number(b, option, &s->min) : ERR_OK);
        } else if (strcmp(name, "maxvalue") == 0) {
            io->has_max = given;
            TRY(given ? option_number(b, option, &s->max) : ERR_OK);
        } else if (strcmp(name, "start") == 0) {
            io->has_start = 1;
            TRY(option_number(b, option, &s->start));
        } else if (strcmp(name, "restart") == 0) {
            io->restart = 1;
            io->has_restart = given;
            TRY(given ? option_number(b, option, &io->restart_at) : ERR_OK);
        } else if (strcmp(name, "cycle") == 0) {
            TRY(option_bool(b, option, &io->cycle));
            s->cycle = io->cycle;
        } else if (strcmp(name, "as") == 0) {
            TRY(sequence_type(b, option, io));
        } else if (strcmp(name, "sequence_name") == 0) {
            const struct json *parts = json_get(node_body(json_get(option, "arg")), "items");
            if (json_count(parts) != 1 || !io->owned) {
                return unsupported(b, json_position(option), "SEQUENCE NAME of another schema");
            }
            io->name = keep(b, node_string(json_first(parts)));
            io->named = 1;
        } else if (strcmp(name, "owned_by") == 0) {
            TRY(owned_by(b, option, io));
        } else if (strcmp(name, "cache") == 0) {
            i64 cached = 1;
            TRY(option_number(b, option, &cached));
            if (cached < 1) {
                FAIL_AT(b->err, INVALID_PARAMETER, json_position(option),
                        "CACHE (%lld) must be greater than zero", cached);
            }
        } else {
            return unsupported(b, json_position(option), "sequence option %s", name);
        }
    }
    return check_sequence(b, io, position);
}

FALLIBLE bind_create_sequence(struct bind *b, const struct json *body, struct statement *out) {
    TRY(bind_only(b, body, "sequence options if_not_exists", start_position(b)));
    TRY(ddl_target(b, json_get(body, "sequence"), out));
    out->kind = STATEMENT_CREATE_SEQUENCE;
    out->create.if_not_exists = json_flag(body, "if_not_exists");
    struct ddl_seq *seq = out->create.sequence = NEW(b->arena, struct ddl_seq);
    seq->name = out->name;
    seq->like.increment = 1;
    seq->like.type = type_of(TYPE_BIGINT);
    TRY(bind_sequence_options(b, json_get(body, "options"), seq));
    seq->like.last = seq->like.start;
    return ERR_OK;
}

FALLIBLE bind_sequence_changes(struct bind *b, const struct sequence *now,
                               const struct json *options, struct ddl_seq *out) {
    out->like = (struct sequence){.start = now->start,
                                  .increment = now->increment,
                                  .min = now->min,
                                  .max = now->max,
                                  .cycle = now->cycle,
                                  .type = now->type};
    out->has_min = out->has_max = out->has_start = out->has_type = 1;
    return bind_sequence_options(b, options, out);
}

static bool is_identity(const struct edition *edition, const struct object *sequence) {
    const struct edition_entry *owner = edition_find_oid(edition, sequence->owner);
    const struct table *table = owner ? owner->object->table : NULL;
    u32 col = sequence->owner_col;
    return table && col > 0 && col <= table->col_count && table->cols[col - 1].identity;
}

FALLIBLE bind_alter_sequence(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "sequence");
    const struct edition_entry *entry = NULL;
    bool missing = false;
    TRY(bind_only(b, body, "sequence options missing_ok", start_position(b)));
    TRY(ddl_if_exists(b, body, relation, out, &missing));
    if (missing) {
        return ERR_OK;
    }
    TRY(bind_relation(b, relation, &entry));
    if (entry->object->kind != OBJECT_SEQUENCE) {
        FAIL_AT(b->err, WRONG_OBJECT, json_position(relation), "\"%.100s\" is not a sequence",
                entry->object->name);
    }
    const struct sequence *now = entry->object->sequence;
    out->kind = STATEMENT_ALTER_SEQUENCE;
    out->sequence.oid = entry->object->oid;
    out->sequence.def = NEW(b->arena, struct ddl_seq);
    TRY(bind_sequence_changes(b, now, json_get(body, "options"), out->sequence.def));
    if ((out->sequence.def->owner || out->sequence.def->disowned) &&
        is_identity(b->snap->edition, entry->object)) {
        FAIL_AT(b->err, NOT_SUPPORTED, json_position(relation),
                "cannot change ownership of identity sequence");
    }
    return ERR_OK;
}

/* The text of a constant, behind casts. */
static const char *constant_text(const struct json *node) {
    while (node_is(node, "TypeCast")) {
        node = json_get(node_body(node), "arg");
    }
    const struct json *text = node_is(node, "A_Const") ? json_get(node_body(node), "sval") : NULL;
    return text ? json_text(text, "sval") : NULL;
}

/* One part of a name as PostgreSQL reads it from text: in quotes as it stands, else in lower case.
 * Returns what is behind it, NULL where it is no name. */
static const char *name_part(struct bind *b, const char *text, struct sv *out) {
    char *part = arena_alloc(b->arena, (i64)strlen(text) + 1);
    i64 len = 0;
    bool quoted = *text == '"';
    if (quoted) {
        for (text++; *text && (text[0] != '"' || text[1] == '"'); text++) {
            text += text[0] == '"';
            part[len++] = *text;
        }
        text = *text == '"' ? text + 1 : NULL;
    } else {
        for (; *text && *text != '.'; text++) {
            part[len++] = *text >= 'A' && *text <= 'Z' ? (char)(*text | 0x20) : *text;
        }
    }
    *out = (struct sv){part, len};
    return len > 0 ? text : NULL;
}

static FALLIBLE split_name(struct bind *b, const char *text, i32 position, struct sv *out_schema,
                           struct sv *out_name) {
    const char *at = name_part(b, text, out_name);
    *out_schema = (struct sv){"", 0};
    if (at && *at == '.') {
        *out_schema = *out_name;
        at = name_part(b, at + 1, out_name);
    }
    if (!at || *at) {
        FAIL_AT(b->err, INVALID_NAME, position, "invalid name syntax");
    }
    return snapshot_open(b->snap, b->err);
}

FALLIBLE bind_oid_text(struct bind *b, const char *text, i32 position, u32 *out) {
    struct sv schema, name;
    const struct edition_entry *entry = NULL;
    TRY(split_name(b, text, position, &schema, &name));
    const struct object *keyed = snapshot_key_table(b->snap, schema, name);
    for (u32 i = 0; keyed && i < keyed->table->key_count; i++) {
        const struct table_key *key = &keyed->table->keys[i];
        if (!key->index && sv_eq(sv_from(key->name), name)) {
            *out = key->oid;
            return ERR_OK;
        }
    }
    TRY(bind_relation_text(b, text, position, &entry));
    *out = entry->object->oid;
    return ERR_OK;
}

FALLIBLE bind_relation_text(struct bind *b, const char *text, i32 position,
                            const struct edition_entry **out) {
    struct sv schema, name;
    TRY(split_name(b, text, position, &schema, &name));
    *out = snapshot_lookup(b->snap, schema, name);
    if (!*out) {
        return snapshot_missing(b->snap, schema, name, position, b->err);
    }
    return ERR_OK;
}

FALLIBLE bind_sequence_name(struct bind *b, const char *text, i32 position,
                            const struct edition_entry **out) {
    TRY(bind_relation_text(b, text, position, out));
    if ((*out)->object->kind != OBJECT_SEQUENCE) {
        FAIL_AT(b->err, WRONG_OBJECT, position, "\"%.100s\" is not a sequence", text);
    }
    return ERR_OK;
}

FALLIBLE bind_nextval_of(struct bind *b, const struct json *node,
                         const struct edition_entry **out) {
    const struct json *body = node_body(node);
    const struct json *names = json_get(body, "funcname"), *args = json_get(body, "args");
    *out = NULL;
    if (!node_is(node, "FuncCall") || json_count(args) != 1 ||
        strcmp(node_string(json_first(names)), "nextval") != 0) {
        return ERR_OK;
    }
    const char *text = constant_text(json_first(args));
    return text ? bind_sequence_name(b, text, json_position(body), out) : ERR_OK;
}

/* Views and CREATE TABLE AS */

static FALLIBLE output_names(struct bind *b, const struct json *given, const struct select_out *in,
                             i32 position, const char ***out) {
    i64 count = in->rel->out.count, i = 0;
    if (json_count(given) > count) {
        FAIL_AT(b->err, SYNTAX, position, "more column names specified than columns");
    }
    *out = NEW_ARRAY(b->arena, const char *, count + 1);
    for (i64 k = 0; k < count; k++) {
        (*out)[k] = in->names[k];
    }
    JSON_EACH(name, given) {
        (*out)[i++] = keep(b, node_string(name));
    }
    for (i = 0; i < count; i++) {
        for (i64 k = 0; k < i; k++) {
            if (strcmp((*out)[i], (*out)[k]) == 0) {
                FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                        "column \"%.100s\" specified more than once", (*out)[i]);
            }
        }
    }
    return ERR_OK;
}

/* OIDs of the tables and views that binding looked up. */
static void note_deps(struct bind *b, struct create_view *out) {
    out->deps = NEW_ARRAY(b->arena, u32, b->deps.count + 1);
    for (i64 i = 0; i < b->deps.count; i++) {
        bool seen = false;
        for (i32 k = 0; k < out->dep_count; k++) {
            seen = seen || out->deps[k] == b->deps.items[i];
        }
        if (!seen) {
            out->deps[out->dep_count++] = b->deps.items[i];
        }
    }
}

/* A view of what the session alone has is the session's. */
static FALLIBLE follow_temporary(struct bind *b, struct statement *out) {
    struct create_view *made = &out->create.view;
    for (i32 i = 0; i < made->dep_count && !out->create.temp; i++) {
        const struct edition_entry *read = edition_find_oid(b->snap->edition, made->deps[i]);
        made->turned_temp = read && read->object->temp;
        out->create.temp = made->turned_temp;
    }
    if (made->turned_temp && out->create.schema) {
        FAIL_AT(b->err, INVALID_DEFINITION, out->position,
                "cannot create temporary relation in non-temporary schema");
    }
    return ERR_OK;
}

/* CREATE OR REPLACE VIEW: columns there were keep their types. What else must stay the same is
 * looked at when the statement runs. */
static FALLIBLE check_view_types(struct bind *b, const struct json *view,
                                 const struct statement *out) {
    const char *schema = json_text(view, "schemaname"), *name = json_text(view, "relname");
    struct scope old = {0};
    const struct edition_entry *entry =
        snapshot_lookup(b->snap, sv_from(schema ? schema : ""), sv_from(name ? name : ""));
    if (!entry || entry->object->kind != OBJECT_VIEW || entry->object->temp != out->create.temp) {
        return ERR_OK;
    }
    i64 deps = b->deps.count;
    const struct json *from =
        json_array_of(b, "fromClause", json_object_of(b, "RangeVar", view), NULL);
    TRY(bind_from(b, from, NULL, NULL, &old));
    b->deps.count = deps;
    const struct create_view *made = &out->create.view;
    for (i64 i = 0; i < old.cols.count && i < made->col_count; i++) {
        struct type was = b->plan->cols.items[old.cols.items[i].col].type;
        char from_text[32], to_text[32];
        if (strcmp(old.cols.items[i].name, made->names[i]) == 0 && !type_eq(was, made->types[i])) {
            FAIL_AT(b->err, INVALID_DEFINITION, out->position,
                    "cannot change data type of view column \"%.100s\" from %s to %s",
                    made->names[i], type_print(was, from_text),
                    type_print(made->types[i], to_text));
        }
    }
    return ERR_OK;
}

/* CREATE [OR REPLACE] [TEMPORARY] RECURSIVE VIEW */
static bool is_recursive(const struct bind *b) {
    i64 at = start_position(b);
    struct sv token;
    while (lex_next(b->parsed->script, &at, &token) && !sv_eq_nocase(token, SV("view"))) {
        if (sv_eq_nocase(token, SV("recursive"))) {
            return true;
        }
    }
    return false;
}

void ddl_print_name(struct text *out, const char *name) {
    text_append(out, SV("\""));
    for (const char *at = name; *at; at++) {
        text_append(out, *at == '"' ? SV("\"\"") : (struct sv){at, 1});
    }
    text_append(out, SV("\""));
}

/* The query of a recursive view reads the view itself: WITH gives it the name. */
static const char *recursive_text(struct bind *b, const char *name, const struct json *aliases,
                                  const char *query) {
    struct text cols, out;
    text_init(&cols, b->arena);
    text_init(&out, b->arena);
    JSON_EACH(alias, aliases) {
        text_append(&cols, cols.len ? SV(", ") : SV(""));
        ddl_print_name(&cols, node_string(alias));
    }
    text_append(&out, SV("WITH RECURSIVE "));
    ddl_print_name(&out, name);
    text_print(&out, " (%s) AS (%s) SELECT %s FROM ", cols.ptr, query, cols.ptr);
    ddl_print_name(&out, name);
    return out.ptr;
}

FALLIBLE bind_create_view(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *query = json_get(body, "query"), *view = json_get(body, "view");
    TRY(bind_only(b, body, "view aliases query replace withCheckOption", start_position(b)));
    if (!json_is(body, "withCheckOption", "NO_CHECK_OPTION")) {
        return unsupported(b, start_position(b), "WITH CHECK OPTION");
    }
    TRY(ddl_target(b, view, out));
    if (b->parsed->param_count > 0) {
        FAIL_AT(b->err, UNDEFINED_PARAMETER, out->position, "there is no parameter in a view");
    }
    if (bind_into(node_body(query))) {
        FAIL_AT(b->err, NOT_SUPPORTED, out->position, "views must not contain SELECT INTO");
    }
    struct select_out result;
    TRY(bind_select(b, node_body(query), NULL, NULL, 0, &result));
    struct create_view *made = &out->create.view;
    TRY(output_names(b, json_get(body, "aliases"), &result, out->position, &made->names));
    out->kind = STATEMENT_CREATE_VIEW;
    out->create.or_replace = json_flag(body, "replace");
    made->col_count = (i32)result.rel->out.count;
    made->types = NEW_ARRAY(b->arena, struct type, made->col_count + 1);
    for (i32 i = 0; i < made->col_count; i++) {
        made->types[i] = b->plan->cols.items[result.rel->out.items[i]].type;
    }
    i64 at = ddl_after_word(b, out->position, "as");
    made->text = at < 0 ? "" : ddl_text(b, at, statement_end(b));
    if (is_recursive(b)) {
        made->text =
            recursive_text(b, json_text(view, "relname"), json_get(body, "aliases"), made->text);
    }
    note_deps(b, made);
    TRY(follow_temporary(b, out));
    if (out->create.or_replace) {
        TRY(check_view_types(b, view, out));
    }
    b->plan->root = NULL;
    return ERR_OK;
}

FALLIBLE ddl_create_as(struct bind *b, const struct json *into, const struct json *select,
                       bool if_not_exists, struct statement *out) {
    const struct json *relation = json_get(into, "rel");
    i32 position = json_position(relation);
    TRY(bind_only(b, into, "rel colNames onCommit skipData", position));
    TRY(ddl_target(b, relation, out));
    if (!json_is(into, "onCommit", "ONCOMMIT_NOOP") &&
        !(out->create.temp && json_is(into, "onCommit", "ONCOMMIT_PRESERVE_ROWS"))) {
        return ddl_on_commit(b, out, position);
    }
    struct select_out result;
    const char **names = NULL;
    TRY(bind_select(b, select, NULL, NULL, 0, &result));
    TRY(output_names(b, json_get(into, "colNames"), &result, position, &names));
    out->kind = STATEMENT_CREATE_TABLE_AS;
    out->create.or_replace = b->parsed->or_replace;
    out->create.if_not_exists = if_not_exists;
    out->create.table.no_data = json_flag(into, "skipData");
    struct table_def *def = &out->create.table.table.def;
    def->name = out->name;
    def->col_count = (u32)result.rel->out.count;
    def->cols = NEW_ARRAY(b->arena, struct column_def, def->col_count + 1);
    for (u32 i = 0; i < def->col_count; i++) {
        struct type type = b->plan->cols.items[result.rel->out.items[i]].type;
        def->cols[i] = (struct column_def){.name = names[i], .type = type};
        VEC_PUSH(b->arena, &b->plan->names, names[i]);
    }
    b->plan->root = result.rel;
    out->plan = b->plan;
    return ERR_OK;
}

FALLIBLE bind_create_as(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *query = json_get(body, "query");
    TRY(bind_only(b, body, "query into objtype is_select_into if_not_exists", start_position(b)));
    if (!json_is(body, "objtype", "OBJECT_TABLE")) {
        return unsupported(b, start_position(b), "CREATE MATERIALIZED VIEW");
    }
    if (!node_is(query, "SelectStmt")) {
        return unsupported(b, start_position(b), "CREATE TABLE AS EXECUTE");
    }
    return ddl_create_as(b, json_get(body, "into"), node_body(query),
                         json_flag(body, "if_not_exists"), out);
}

/* Indexes and comments */

static FALLIBLE index_method(struct bind *b, const char *method, i32 position) {
    static const char *const methods[] = {"btree", "hash", "gin", "gist", "spgist", "brin"};
    for (i64 i = 0; i < COUNT_OF(methods); i++) {
        if (!method || strcmp(method, methods[i]) == 0) {
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, UNDEFINED_OBJECT, position, "access method \"%.100s\" does not exist", method);
}

/* Only for what is wrong with it. */
static FALLIBLE index_expression(struct bind *b, const struct snapshot_table *table,
                                 const struct json *elem, i32 position) {
    struct scope scope = {0};
    struct expr *expr = NULL;
    TRY(bind_table_scope(b, table, table->table->name, position, &scope));
    struct query q = {.scope = &scope, .clause = "index expressions"};
    return bind_expr(b, &q, json_get(elem, "expr"), &expr);
}

static FALLIBLE index_predicate(struct bind *b, const struct snapshot_table *table,
                                const struct json *where, i32 position) {
    struct scope scope = {0};
    struct expr *cond = NULL;
    TRY(bind_table_scope(b, table, table->table->name, position, &scope));
    struct query q = {.scope = &scope, .clause = "index predicates"};
    return bind_condition(b, &q, where, "WHERE", &cond);
}

/* A name for an index that has none, which no relation of its schema has. */
static const char *free_name(struct bind *b, const struct table *table, const char *cols) {
    const struct edition_entry *entry = edition_find_table(b->snap->edition, table->id);
    const char *name = sql_object_name(b->arena, table->name, cols, "idx", 0);
    for (i32 n = 1;
         entry && edition_name_holder(b->snap->edition, entry->object->schema, sv_from(name));
         n++) {
        name = sql_object_name(b->arena, table->name, cols, "idx", n);
    }
    return name;
}

FALLIBLE bind_create_index(struct bind *b, const struct json *body, struct statement *out) {
    struct snapshot_table found;
    i32 position = start_position(b);
    TRY(bind_only(b, body,
                  "idxname relation accessMethod indexParams unique if_not_exists concurrent "
                  "whereClause indexIncludingParams",
                  position));
    TRY(bind_table(b, json_get(body, "relation"), "index", &found));
    out->kind = STATEMENT_CREATE_INDEX;
    out->position = position;
    out->create.index.table_id = found.table->id;
    out->create.if_not_exists = json_flag(body, "if_not_exists");
    TRY(index_method(b, json_text(body, "accessMethod"), position));
    struct table_key *key = NEW(b->arena, struct table_key);
    key->cols = NEW_ARRAY(b->arena, u32, json_count(json_get(body, "indexParams")) + 1);
    key->index = 1;
    struct create_index *index = &out->create.index;
    index->names = NEW_ARRAY(b->arena, const char *, json_count(json_get(body, "indexParams")) + 1);
    struct text name;
    text_init(&name, b->arena);
    JSON_EACH(node, json_get(body, "indexParams")) {
        const char *col = json_text(node_body(node), "name");
        u32 number = 0;
        if (col) {
            TRY(bind_column_list(b, found.table, &col, &position, 1, &number));
            key->cols[key->col_count++] = number;
        } else {
            TRY(index_expression(b, &found, node_body(node), position));
        }
        index->names[index->col_count++] = col ? keep(b, col) : "expr";
        text_print(&name, "%s%s", name.len ? "_" : "", col ? col : "expr");
    }
    if (json_get(body, "whereClause")) {
        TRY(index_predicate(b, &found, json_get(body, "whereClause"), position));
    }
    out->name = keep(b, json_text(body, "idxname"));
    out->name = out->name ? out->name : free_name(b, found.table, name.ptr);
    i64 from = ddl_after_word(b, json_position(json_get(body, "relation")), "(");
    index->text = from < 0 ? "" : ddl_text(b, from, ddl_list_end(b, from));
    if (!json_flag(body, "unique")) {
        return ERR_OK;
    }
    if (json_get(body, "whereClause") ||
        key->col_count != (u32)json_count(json_get(body, "indexParams"))) {
        return unsupported(b, position, "CREATE UNIQUE INDEX of expressions or with WHERE");
    }
    key->name = out->name;
    out->create.index.key = key;
    return ERR_OK;
}

/* DROP */

static const struct {
    const char *type;
    u8 kind;
} drop_kinds[] = {
    {"OBJECT_TABLE", OBJECT_TABLE},       {"OBJECT_VIEW", OBJECT_VIEW},
    {"OBJECT_SEQUENCE", OBJECT_SEQUENCE}, {"OBJECT_SCHEMA", OBJECT_SCHEMA},
    {"OBJECT_INDEX", OBJECT_INDEX},
};

/* The tree keeps no positions of DROP's names: they are found in the text, in order. */
static void drop_positions(struct bind *b, struct drop_statement *out) {
    struct sv script = b->parsed->script;
    i64 at = b->parsed->text.ptr - script.ptr;
    i64 end = at + b->parsed->text.len;
    struct sv token;
    i32 i = 0;
    bool after_kind = false;
    bool at_name = false;
    while (at < end && i < out->count && lex_next(script, &at, &token)) {
        bool word = sv_eq_nocase(token, SV("if")) || sv_eq_nocase(token, SV("exists"));
        if (!after_kind) {
            after_kind = at_name = sv_eq_nocase(token, sv_from(object_words[out->object_kind]));
        } else if (token.ptr[0] == ',') {
            at_name = true;
        } else if (at_name && !(word && out->if_exists && i == 0)) {
            out->positions[i++] = (i32)(token.ptr - script.ptr);
            at_name = false;
        }
    }
}

FALLIBLE bind_drop(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = start_position(b);
    const char *type = json_text(body, "removeType");
    bool known = false;
    TRY(bind_only(b, body, "objects removeType behavior missing_ok", position));
    for (i64 i = 0; i < COUNT_OF(drop_kinds); i++) {
        if (type && strcmp(drop_kinds[i].type, type) == 0) {
            out->drop.object_kind = drop_kinds[i].kind;
            known = true;
        }
    }
    if (!known) {
        return unsupported(b, position, "%s", command_tag(b->arena, "DropStmt", body));
    }
    const struct json *objects = json_get(body, "objects");
    out->kind = STATEMENT_DROP;
    out->drop.if_exists = json_flag(body, "missing_ok");
    out->drop.cascade = json_is(body, "behavior", "DROP_CASCADE");
    out->drop.count = json_count(objects);
    out->drop.names = NEW_ARRAY(b->arena, const char *, out->drop.count + 1);
    out->drop.schemas = NEW_ARRAY(b->arena, const char *, out->drop.count + 1);
    out->drop.positions = NEW_ARRAY(b->arena, i32, out->drop.count + 1);
    drop_positions(b, &out->drop);
    i32 i = 0;
    JSON_EACH(object, objects) {
        const struct json *parts = json_get(node_body(object), "items");
        const char *schema = "", *name = node_string(object);
        JSON_EACH(part, parts) {
            schema = part->next ? node_string(part) : schema;
            name = node_string(part);
        }
        if (json_count(parts) > 3) {
            FAIL_AT(b->err, SYNTAX, out->drop.positions[i],
                    "improper relation name (too many dotted names)");
        }
        if (json_count(parts) > 2) {
            return unsupported(b, out->drop.positions[i], "a database name before a table");
        }
        out->drop.schemas[i] = keep(b, schema);
        out->drop.names[i++] = keep(b, name);
    }
    out->name = out->drop.names[0];
    out->position = out->drop.positions[0];
    return ERR_OK;
}
