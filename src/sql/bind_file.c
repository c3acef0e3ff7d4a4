/* bind_file.c: read_csv('file', …) in FROM: a file as a table.
 *
 * Part of binding. The file is read while the statement is compiled, by whoever compiles it
 * (snap->files), into a table that only this statement's snapshot knows; from then on it is a table
 * like any other, with statistics. Options are named as in COPY and take constants. */
#include "sql/sql_int.h"

static FALLIBLE text_argument(struct bind *b, const struct expr *arg, const char *what,
                              const char **out) {
    bool is_text = arg->kind == EXPR_CONST && !arg->is_null &&
                   (arg->type.id == TYPE_TEXT || arg->type.id == TYPE_UNKNOWN);
    if (!is_text) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be a constant text",
                what);
    }
    *out = arena_sv(b->arena, sv_of(arg->value.str)).ptr;
    return ERR_OK;
}

static FALLIBLE bool_argument(struct bind *b, const struct expr *arg, const char *what, i32 *out) {
    if (arg->kind != EXPR_CONST || arg->is_null || arg->type.id != TYPE_BOOLEAN) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be true or false",
                what);
    }
    *out = arg->value.b8;
    return ERR_OK;
}

static FALLIBLE file_option(struct bind *b, const char *name, const struct expr *arg,
                            struct file_request *request) {
    struct sv option = sv_from(name);
    if (sv_eq(option, SV("header"))) {
        return bool_argument(b, arg, name, &request->header);
    }
    bool delimits =
        sv_eq(option, SV("delimiter")) || sv_eq(option, SV("delim")) || sv_eq(option, SV("sep"));
    const char **to = delimits                      ? &request->delimiter
                      : sv_eq(option, SV("quote"))  ? &request->quote
                      : sv_eq(option, SV("escape")) ? &request->escape
                      : sv_eq(option, SV("null"))   ? &request->null_text
                                                    : NULL;
    if (!to) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position,
                "read_csv has no option \"%.60s\": delimiter, quote, escape, header, null", name);
    }
    TRY(text_argument(b, arg, name, to));
    if (to != &request->null_text && strlen(*to) > 1) {
        FAIL_AT(b->err, INVALID_PARAMETER, arg->position, "read_csv: %s must be one character",
                name);
    }
    return ERR_OK;
}

FALLIBLE bind_file(struct bind *b, const struct json *call, struct snapshot_table *out) {
    i32 position = json_position(call);
    struct query q = {.clause = "functions in FROM"};
    struct file_request request = {.header = -1, .position = position};
    TRY(bind_only(b, call, "funcname args funcformat location", position));
    JSON_EACH(node, json_get(call, "args")) {
        const struct json *named = node_is(node, "NamedArgExpr") ? node_body(node) : NULL;
        struct expr *arg = NULL;
        TRY(bind_expr(b, &q, named ? json_get(named, "arg") : node, &arg));
        if (named) {
            TRY(file_option(b, json_text(named, "name"), arg, &request));
        } else if (request.path) {
            FAIL_AT(b->err, INVALID_PARAMETER, arg->position,
                    "read_csv takes one file; options are named, as in header => true");
        } else {
            TRY(text_argument(b, arg, "the file's name", &request.path));
        }
    }
    if (!request.path) {
        FAIL_AT(b->err, INVALID_PARAMETER, position, "read_csv needs the name of a file");
    }
    if (!b->snap->files) {
        return unsupported(b, position, "reading a file here");
    }
    struct table *table = NULL;
    TRY(b->snap->files->read(b->snap->files, &request, &table, b->err));
    *out = (struct snapshot_table){table, table_snapshot(table)};
    snapshot_put(b->snap, table, out->version);
    version_release(out->version);
    table_close(table); /* the snapshot has its own */
    return arena_check(b->snap->arena, b->err);
}
