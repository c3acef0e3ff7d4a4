/* bind_file.c: read_csv('file', …) and read_trie('file') in FROM: a file as a table.
 *
 * Part of binding. Whoever compiles the statement (snap->files) looks at the file and makes it a
 * table that only this statement's snapshot knows; its provider reads the file when the statement
 * runs. Options are named as in DuckDB, or as in COPY, and take
 * constants: name => value or name = value. Lists are written ['a', 'b'] and {'a': 'b'}; they
 * arrive as text (friendly.c) and are taken apart here. */
#include "sql/sql_int.h"

#include "store/scan.h"

static FALLIBLE text_argument(struct bind *b, const struct expr *arg, const char *function, const char *what,
                              const char **out) {
    bool is_text = arg->kind == EXPR_CONST && !arg->is_null &&
                   (arg->type.id == TYPE_TEXT || arg->type.id == TYPE_UNKNOWN);
    if (!is_text) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "%s: %s must be a constant text", function,
                what);
    }
    *out = arena_sv(b->arena, sv_of(arg->value.str)).ptr;
    return ERR_OK;
}

static FALLIBLE bool_argument(struct bind *b, const struct expr *arg, const char *what, bool *out) {
    if (arg->kind != EXPR_CONST || arg->is_null || arg->type.id != TYPE_BOOLEAN) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be true or false",
                what);
    }
    *out = arg->value.b8;
    return ERR_OK;
}

static FALLIBLE count_argument(struct bind *b, const struct expr *arg, const char *what, i64 least,
                               i64 *out) {
    bool is_number = arg->kind == EXPR_CONST && !arg->is_null &&
                     (arg->type.id == TYPE_INTEGER || arg->type.id == TYPE_BIGINT);
    i64 value = !is_number                     ? least - 1
                : arg->type.id == TYPE_INTEGER ? arg->value.i32
                                               : arg->value.i64;
    if (value < least) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position,
                "read_csv: %s must be a whole number from %lld up", what, least);
    }
    *out = value;
    return ERR_OK;
}

/* --- lists ------------------------------------------------------------------------------------ */

struct list_item {
    const char *key; /* NULL in [ … ] */
    const char *value;
};
typedef VEC(struct list_item) item_list;

/* A word, or a text in quotes of either kind. */
static bool take_word(struct bind *b, struct sv *io, const char **out) {
    i64 at = 0;
    struct text word;
    text_init(&word, b->arena);
    while (at < io->len && strchr(" \t\r\n", io->ptr[at])) {
        at++;
    }
    char quote = at < io->len ? io->ptr[at] : 0;
    bool quoted = quote == '\'' || quote == '"';
    bool closed = !quoted;
    for (at += quoted; at < io->len; at++) {
        char c = io->ptr[at];
        if (quoted && c == quote && !(at + 1 < io->len && io->ptr[at + 1] == quote)) {
            closed = true;
            at++;
            break;
        }
        if (!quoted && strchr(" \t\r\n,:{}[]", c)) {
            break;
        }
        at += quoted && c == quote;
        text_append(&word, (struct sv){&c, 1});
    }
    while (at < io->len && strchr(" \t\r\n", io->ptr[at])) {
        at++;
    }
    io->ptr += at;
    io->len -= at;
    *out = arena_sv(b->arena, (struct sv){word.ptr, word.len}).ptr;
    return closed && (quoted || word.len > 0);
}

static bool take_char(struct sv *io, char c) {
    bool has = io->len > 0 && io->ptr[0] == c;
    io->ptr += has;
    io->len -= has;
    return has;
}

/* ['a', 'b'] or {'a': 'b', …}; a text alone is a list of one. */
static FALLIBLE list_argument(struct bind *b, const struct expr *arg, const char *what,
                              item_list *out) {
    const char *text = "";
    TRY(text_argument(b, arg, "read_csv", what, &text));
    struct sv rest = sv_from(text);
    bool pairs = take_char(&rest, '{');
    bool fine = pairs || take_char(&rest, '[');
    if (!fine) {
        struct list_item only = {NULL, text};
        VEC_PUSH(b->arena, out, only);
        return ERR_OK;
    }
    for (bool more = true; fine && more;) {
        struct list_item item = {0};
        fine = !pairs || (take_word(b, &rest, &item.key) && take_char(&rest, ':'));
        fine = fine && take_word(b, &rest, &item.value);
        VEC_PUSH(b->arena, out, item);
        more = take_char(&rest, ',');
    }
    if (!fine || !take_char(&rest, pairs ? '}' : ']')) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be written as %s",
                what, pairs ? "{'name': 'type', ...}" : "['a', 'b', ...]");
    }
    return ERR_OK;
}

static FALLIBLE texts_argument(struct bind *b, const struct expr *arg, const char *what,
                               const char *const **out, i32 *out_count) {
    item_list items = {0};
    TRY(list_argument(b, arg, what, &items));
    const char **texts = NEW_ARRAY(b->arena, const char *, items.count + 1);
    for (i64 i = 0; i < items.count; i++) {
        texts[i] = items.items[i].value;
    }
    *out = texts;
    *out_count = (i32)items.count;
    return ERR_OK;
}

/* The type of that name, as a cast would have it. */
static FALLIBLE named_type(struct bind *b, const char *name, i32 position, struct type *out) {
    struct parsed_list list;
    struct error own;
    error_reset(&own);
    const char *text = arena_printf(b->arena, "SELECT NULL::%.100s", name);
    const struct json *cast = NULL;
    wf_status status = sql_parse(b->arena, sv_from(text), &list, &own);
    if (status && status != ERR_SYNTAX) { /* memory, say */
        *b->err = own;
        return status;
    }
    if (!status && list.items.count == 1 && node_is(list.items.items[0]->node, "SelectStmt")) {
        const struct json *body = node_body(list.items.items[0]->node);
        JSON_EACH(target, json_get(body, "targetList")) {
            cast = json_get(node_body(target), "val");
        }
    }
    if (!node_is(cast, "TypeCast")) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, position, "type \"%.100s\" does not exist", name);
    }
    struct type_name found;
    const struct json *type = json_get(node_body(cast), "typeName");
    if (bind_type(b, type, &found)) {
        b->err->position = position;
        return b->err->code;
    }
    *out = found.type;
    return ERR_OK;
}

static FALLIBLE columns_argument(struct bind *b, const struct expr *arg, const char *what,
                                 struct file_request *request) {
    item_list items = {0};
    TRY(list_argument(b, arg, what, &items));
    struct column_def *cols = NEW_ARRAY(b->arena, struct column_def, items.count + 1);
    for (i64 i = 0; i < items.count; i++) {
        cols[i].name = items.items[i].key;
        TRY(named_type(b, items.items[i].value, arg->position, &cols[i].type));
        if (request->all_cols && !cols[i].name) {
            FAIL_AT(b->err, INVALID_PARAMETER, arg->position,
                    "read_csv: columns must be written as {'name': 'type', ...}");
        }
    }
    request->cols = cols;
    request->col_count = (i32)items.count;
    return ERR_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

enum file_option {
    FILE_HEADER,
    FILE_DELIMITER,
    FILE_QUOTE,
    FILE_ESCAPE,
    FILE_COMMENT,
    FILE_NULL,
    FILE_SKIP,
    FILE_SAMPLE,
    FILE_PADDING,
    FILE_IGNORE,
    FILE_ALL_TEXT,
    FILE_TYPES,
    FILE_COLUMNS,
    FILE_NAMES,
    FILE_COMPRESSION
};
static const struct {
    const char *name;
    u8 option;
} file_options[] = {
    {"header", FILE_HEADER},
    {"delim", FILE_DELIMITER},
    {"delimiter", FILE_DELIMITER},
    {"sep", FILE_DELIMITER},
    {"quote", FILE_QUOTE},
    {"escape", FILE_ESCAPE},
    {"comment", FILE_COMMENT},
    {"nullstr", FILE_NULL},
    {"null", FILE_NULL},
    {"skip", FILE_SKIP},
    {"sample_size", FILE_SAMPLE},
    {"null_padding", FILE_PADDING},
    {"ignore_errors", FILE_IGNORE},
    {"all_varchar", FILE_ALL_TEXT},
    {"types", FILE_TYPES},
    {"dtypes", FILE_TYPES},
    {"column_types", FILE_TYPES},
    {"columns", FILE_COLUMNS},
    {"names", FILE_NAMES},
    {"column_names", FILE_NAMES},
    {"compression", FILE_COMPRESSION},
};

static FALLIBLE unknown_option(struct bind *b, const char *name, i32 position) {
    error_set(b->err, ERR_INVALID_PARAMETER, position, "read_csv has no option \"%.60s\"", name);
    error_hint(b->err, "There are header, delim, quote, escape, comment, nullstr, skip, "
                       "sample_size, null_padding, ignore_errors, all_varchar, types, columns, "
                       "names, compression.");
    return b->err->code;
}

/* A byte, or none. */
static FALLIBLE byte_argument(struct bind *b, const struct expr *arg, const char *what,
                              const char **out) {
    TRY(text_argument(b, arg, "read_csv", what, out));
    if (strlen(*out) > 1 || **out == '\n' || **out == '\r') {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be one character",
                what);
    }
    return ERR_OK;
}

static FALLIBLE flag_option(struct bind *b, u8 option, const char *name, const struct expr *arg,
                            struct file_request *request) {
    bool on = false;
    TRY(bool_argument(b, arg, name, &on));
    if (option == FILE_HEADER) {
        request->header = on;
    } else if (option == FILE_PADDING) {
        request->null_padding = on;
    } else if (option == FILE_IGNORE) {
        request->ignore_errors = on;
    } else {
        request->all_text = on;
    }
    return ERR_OK;
}

static FALLIBLE list_option(struct bind *b, u8 option, const char *name, const struct expr *arg,
                            struct file_request *request) {
    i32 count = 0;
    if (option == FILE_NAMES) {
        return texts_argument(b, arg, name, &request->names, &request->name_count);
    }
    if (option == FILE_NULL) {
        TRY(texts_argument(b, arg, name, &request->null_more, &count));
        request->null_text = *request->null_more++;
        return ERR_OK;
    }
    request->all_cols = option == FILE_COLUMNS;
    return columns_argument(b, arg, name, request);
}

static FALLIBLE compression_option(struct bind *b, const char *name, const struct expr *arg,
                                   struct file_request *request) {
    TRY(text_argument(b, arg, "read_csv", name, &request->compression));
    struct sv text = sv_from(request->compression);
    if (sv_eq_nocase(text, SV("auto")) || sv_eq_nocase(text, SV("auto_detect"))) {
        request->compression = NULL;
    } else if (!sv_eq_nocase(text, SV("none")) && !sv_eq_nocase(text, SV("gzip")) &&
               !sv_eq_nocase(text, SV("zstd"))) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position,
                "read_csv: compression must be none, gzip or zstd");
    }
    return ERR_OK;
}

static FALLIBLE file_option(struct bind *b, const char *name, const struct expr *arg,
                            struct file_request *request) {
    i64 at = 0;
    while (at < COUNT_OF(file_options) && strcmp(file_options[at].name, name) != 0) {
        at++;
    }
    if (at == COUNT_OF(file_options)) {
        return unknown_option(b, name, arg->position);
    }
    u8 option = file_options[at].option;
    switch (option) {
    case FILE_DELIMITER:
        TRY(byte_argument(b, arg, name, &request->delimiter));
        if (!request->delimiter[0]) {
            FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be one character",
                    name);
        }
        return ERR_OK;
    case FILE_QUOTE:
        return byte_argument(b, arg, name, &request->quote);
    case FILE_ESCAPE:
        return byte_argument(b, arg, name, &request->escape);
    case FILE_COMMENT:
        return byte_argument(b, arg, name, &request->comment);
    case FILE_SKIP:
        return count_argument(b, arg, name, 0, &request->skip);
    case FILE_SAMPLE:
        return count_argument(b, arg, name, -1, &request->sample_rows);
    case FILE_COMPRESSION:
        return compression_option(b, name, arg, request);
    case FILE_NULL:
    case FILE_TYPES:
    case FILE_COLUMNS:
    case FILE_NAMES:
        return list_option(b, option, name, arg, request);
    default:
        return flag_option(b, option, name, arg, request);
    }
}

/* name => value, and name = value, which the grammar takes for a comparison. */
static const struct json *option_node(const struct json *node, const char **out_name) {
    const struct json *body = node_body(node);
    const char *name = NULL;
    *out_name = NULL;
    if (node_is(node, "NamedArgExpr")) {
        *out_name = json_text(body, "name");
        return json_get(body, "arg");
    }
    const struct json *left = json_get(body, "lexpr");
    const struct json *parts = json_get(node_body(left), "fields");
    bool equal = node_is(node, "A_Expr") && json_is(body, "kind", "AEXPR_OP") &&
                 node_is(left, "ColumnRef") && json_count(parts) == 1;
    JSON_EACH(part, parts) {
        name = node_is(part, "String") ? node_string(part) : NULL;
    }
    const char *sign = "";
    JSON_EACH(part, json_get(body, "name")) {
        sign = equal ? node_string(part) : "";
    }
    if (!equal || !name || strcmp(sign, "=") != 0) {
        return node;
    }
    *out_name = name;
    return json_get(body, "rexpr");
}

static FALLIBLE read_file(struct bind *b, const struct file_request *request, struct snapshot_table *out) {
    if (!b->snap->files) {
        return unsupported(b, request->position, "reading a file here");
    }
    struct table *table = NULL;
    TRY(b->snap->files->read(b->snap->files, request, &table, b->err));
    *out = (struct snapshot_table){table, table_snapshot(table)};
    snapshot_put(b->snap, table, out->version);
    version_release(out->version);
    table_close(table); /* the snapshot has its own */
    return arena_check(b->snap->arena, b->err);
}

FALLIBLE bind_trie_file(struct bind *b, const struct json *call, struct snapshot_table *out) {
    i32 position = json_position(call);
    struct query q = {.clause = "functions in FROM"};
    struct file_request request = {.trie = 1, .position = position};
    const struct json *args = json_get(call, "args");
    struct expr *arg = NULL;
    TRY(bind_only(b, call, "funcname args funcformat location", position));
    if (json_count(args) != 1 || node_is(json_first(args), "NamedArgExpr")) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "read_trie takes the name of a file and nothing else");
    }
    TRY(bind_expr(b, &q, json_first(args), &arg));
    TRY(text_argument(b, arg, "read_trie", "the file's name", &request.path));
    for (i64 i = 0; i < b->snap->tables.count; i++) { /* named twice it is read once */
        const struct scan_provider *provider = b->snap->tables.items[i].table->provider;
        if (provider && provider->levels && strcmp(b->snap->tables.items[i].table->name, request.path) == 0) {
            *out = b->snap->tables.items[i];
            return ERR_OK;
        }
    }
    return read_file(b, &request, out);
}

FALLIBLE bind_file(struct bind *b, const struct json *call, struct snapshot_table *out) {
    i32 position = json_position(call);
    struct query q = {.clause = "functions in FROM"};
    struct file_request request = {.header = -1, .skip = -1, .position = position};
    TRY(bind_only(b, call, "funcname args funcformat location", position));
    JSON_EACH(node, json_get(call, "args")) {
        const char *name = NULL;
        const struct json *value = option_node(node, &name);
        struct expr *arg = NULL;
        TRY(bind_expr(b, &q, value, &arg));
        if (name) {
            TRY(file_option(b, name, arg, &request));
        } else if (request.path) {
            FAIL_AT(b->err, INVALID_PARAMETER, arg->position,
                    "read_csv takes one file; options are named, as in header => true");
        } else {
            TRY(text_argument(b, arg, "read_csv", "the file's name", &request.path));
            if (request.path[0] == '[') {
                return unsupported(b, position, "reading several files at once");
            }
        }
    }
    if (!request.path) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "read_csv needs the name of a file");
    }
    return read_file(b, &request, out);
}
