/* bind_session.c: SET, RESET, SHOW, EXPLAIN and CALL.
 *
 * Part of binding. None of these makes a plan of its own: SET and SHOW carry a name and a text,
 * EXPLAIN wraps the statement it explains, CALL carries constants. Which settings and procedures
 * exist is decided where the statement runs. */
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_date.h"
#include "defs/fn_time.h"
#include "base/map.h"
#include "sql/sql_int.h"

static i32 start_position(const struct bind *b) {
    return (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
}

/* SET TIME ZONE INTERVAL '…': its time, written as POSIX writes an offset, where west is positive.
 */
static FALLIBLE zone_text_of(struct bind *b, const struct json *node, const char **out) {
    struct query q = {.clause = "SET"};
    struct expr *expr = NULL;
    i32 position = node_position(node);
    TRY(bind_expr(b, &q, node, &expr));
    if (expr->kind != EXPR_CONST || expr->type.id != TYPE_INTERVAL) {
        return unsupported(b, position, "this form of a setting's value");
    }
    fn_span span = fn_iv_parts(expr->value.i128);
    if (expr->is_null || span.months != 0 || span.days != 0) {
        FAIL_AT(b->err, INVALID_PARAMETER, position,
                "interval time zone must not include months or days");
    }
    i64 east = span.us / SECOND_US, size = east < 0 ? -east : east;
    const char *text = arena_printf(b->arena,
                                    size % 60     ? "%02lld:%02lld:%02lld"
                                    : size % 3600 ? "%02lld:%02lld"
                                                  : "%02lld",
                                    size / 3600, size / 60 % 60, size % 60);
    *out = arena_printf(b->arena, "<%s%s>%s%s", east < 0 ? "-" : "+", text, east < 0 ? "+" : "-",
                        text);
    return ERR_OK;
}

/* A constant as the text of a setting. */
static FALLIBLE setting_text_of(struct bind *b, const struct json *node, const char **out) {
    const struct json *body = node_body(node);
    i32 position = node_position(node);
    if (node_is(node, "TypeCast")) {
        return zone_text_of(b, node, out);
    }
    if (!node_is(node, "A_Const")) {
        return unsupported(b, position, "this form of a setting's value");
    }
    const struct json *integer = json_get(body, "ival");
    const struct json *text = json_get(body, "sval");
    const struct json *number = json_get(body, "fval");
    const struct json *boolean = json_get(body, "boolval");
    if (integer) {
        const struct json *value = json_get(integer, "ival");
        i64 i = value ? value->number : lex_integer(b->parsed->script, json_position(body));
        *out = arena_printf(b->arena, "%lld", i);
    } else if (boolean) {
        *out = json_flag(boolean, "boolval") ? "true" : "false";
    } else {
        *out = text ? json_text(text, "sval") : json_text(number, "fval");
        *out = keep(b, *out ? *out : "");
    }
    return ERR_OK;
}

static bool is_plain_name(const char *name) {
    bool plain = (name[0] >= 'a' && name[0] <= 'z') || name[0] == '_';
    for (; *name && plain; name++) {
        plain = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') || *name == '_';
    }
    return plain;
}

/* SET search_path = a, "B": the list again, names quoted that have to be. */
static FALLIBLE set_path(struct bind *b, const struct json *args, struct statement *out) {
    struct text path;
    text_init(&path, b->arena);
    JSON_EACH(node, args) {
        const char *name = "";
        TRY(setting_text_of(b, node, &name));
        text_print(&path, "%s", path.len ? ", " : "");
        if (is_plain_name(name)) {
            text_print(&path, "%s", name);
            continue;
        }
        text_print(&path, "\"");
        for (; *name; name++) {
            text_print(&path, *name == '"' ? "\"\"" : "%c", *name);
        }
        text_print(&path, "\"");
    }
    out->set.value = path.ptr ? path.ptr : "";
    return ERR_OK;
}

FALLIBLE bind_set(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = start_position(b);
    TRY(bind_only(b, body, "kind name args is_local", position));
    out->kind = STATEMENT_SET;
    out->set.local = (b8)json_flag(body, "is_local");
    out->position = position;
    out->set.name = keep(b, json_text(body, "name"));
    if (json_is(body, "kind", "VAR_RESET_ALL")) {
        out->set.name = "all";
        return ERR_OK;
    }
    if (json_is(body, "kind", "VAR_SET_DEFAULT") || json_is(body, "kind", "VAR_RESET")) {
        return ERR_OK;
    }
    const struct json *args = json_get(body, "args");
    if (json_is(body, "kind", "VAR_SET_MULTI") && out->set.name) {
        out->set.local = strcmp(out->set.name, "TRANSACTION") != 0; /* SESSION CHARACTERISTICS */
        out->set.name = NULL;
        JSON_EACH(option, args) {
            TRY(bind_tx_option(b, node_body(option), &out->set.modes));
        }
        return out->set.local && out->set.modes.access == ACCESS_READ
                   ? unsupported(b, position, "READ ONLY for all transactions of a session")
                   : ERR_OK;
    }
    if (!json_is(body, "kind", "VAR_SET_VALUE") || !out->set.name) {
        return unsupported(b, position, "this form of SET");
    }
    if (strcmp(out->set.name, "search_path") == 0) {
        return set_path(b, args, out);
    }
    struct text all;
    text_init(&all, b->arena);
    JSON_EACH(node, args) { /* datestyle = iso, mdy */
        TRY(setting_text_of(b, node, &out->set.value));
        text_print(&all, "%s%s", all.len ? ", " : "", out->set.value);
    }
    out->set.value = all.ptr ? all.ptr : "";
    return ERR_OK;
}

/* VACUUM and ANALYZE. */
FALLIBLE bind_vacuum(struct bind *b, const struct json *body, struct statement *out) {
    TRY(bind_only(b, body, "options rels is_vacuumcmd", start_position(b)));
    out->kind = STATEMENT_VACUUM;
    out->position = start_position(b);
    out->vacuum.what = json_flag(body, "is_vacuumcmd");
    out->vacuum.oids = NEW_ARRAY(b->arena, u32, json_count(json_get(body, "rels")) + 1);
    JSON_EACH(node, json_get(body, "rels")) {
        const struct json *rel = node_body(node), *names = json_get(rel, "va_cols");
        const struct edition_entry *entry = NULL;
        i32 position = json_position(json_get(rel, "relation")), i = 0;
        TRY(bind_relation(b, json_get(rel, "relation"), &entry));
        const char **cols = NEW_ARRAY(b->arena, const char *, json_count(names) + 1);
        i32 *positions = NEW_ARRAY(b->arena, i32, json_count(names) + 1);
        u32 *numbers = NEW_ARRAY(b->arena, u32, json_count(names) + 1);
        JSON_EACH(name, names) {
            cols[i] = node_string(name);
            positions[i++] = position;
        }
        out->vacuum.oids[out->vacuum.count++] = entry->object->oid;
        if (entry->object->table) {
            TRY(bind_column_list(b, entry->object->table, cols, positions, i, numbers));
        }
    }
    return ERR_OK;
}

FALLIBLE bind_checkpoint(struct bind *b, const struct json *body, struct statement *out) {
    TRY(bind_only(b, body, "", start_position(b)));
    out->kind = STATEMENT_VACUUM;
    out->position = start_position(b);
    out->vacuum.what = 2;
    return ERR_OK;
}

FALLIBLE bind_show(struct bind *b, const struct json *body, struct statement *out) {
    TRY(bind_only(b, body, "name", start_position(b)));
    out->kind = STATEMENT_SHOW;
    out->position = start_position(b);
    out->set.name = json_text(body, "name");
    out->set.name = keep(b, out->set.name ? out->set.name : "all");
    return ERR_OK;
}

static const struct {
    const char *name;
    u32 bit; /* 0: of PostgreSQL, about what is shown anyway or does not exist here */
} explain_options[] = {
    {"plan", EXPLAIN_PLAN},
    {"program", EXPLAIN_PROGRAM},
    {"opcodes", EXPLAIN_OPCODES},
    {"cuda", EXPLAIN_CUDA},
    {"analyze", EXPLAIN_ANALYZE},
    {"steps", EXPLAIN_STEPS},
    {"rounds", EXPLAIN_ROUNDS},
    {"standalone", EXPLAIN_STANDALONE},
    {"verbose", 0},
    {"costs", 0},
    {"settings", 0},
    {"buffers", 0},
    {"wal", 0},
    {"timing", 0},
    {"summary", 0},
    {"format", 0},
};

static FALLIBLE explain_format(struct bind *b, const struct json *option) {
    static const char *const others[] = {"json", "xml", "yaml"};
    bool given = false;
    const char *format = option_text(b, option, &given);
    if (sv_eq_nocase(sv_from(format), SV("text"))) {
        return ERR_OK;
    }
    for (i64 i = 0; i < COUNT_OF(others); i++) {
        if (sv_eq_nocase(sv_from(format), sv_from(others[i]))) {
            return unsupported(b, json_position(option), "EXPLAIN in the format %s", others[i]);
        }
    }
    FAIL_AT(b->err, INVALID_PARAMETER, json_position(option),
            "unrecognized value for EXPLAIN option \"format\": \"%.60s\"", format);
}

static FALLIBLE explain_option(struct bind *b, const struct json *option, u32 *io_on, u32 *io_off,
                               const char **io_needs) {
    const char *name = json_text(option, "defname");
    i32 position = json_position(option);
    bool on = false;
    name = name ? name : "";
    for (i64 i = 0; i < COUNT_OF(explain_options); i++) {
        if (strcmp(explain_options[i].name, name) != 0) {
            continue;
        }
        if (strcmp(name, "format") == 0) {
            return explain_format(b, option);
        }
        TRY(option_bool(b, option, &on));
        if (strcmp(name, "costs") == 0) {
            *(on ? io_off : io_on) |= EXPLAIN_BARE;
            return ERR_OK;
        }
        bool needs = strcmp(name, "wal") == 0 || strcmp(name, "timing") == 0;
        *io_needs = needs && on ? name : *io_needs;
        *(on ? io_on : io_off) |= explain_options[i].bit;
        return ERR_OK;
    }
    const char *names[] = {"plan", "program", "opcodes", "cuda", "analyze", "steps", "rounds", "standalone"};
    const char *near = nearest_of(b->arena, name, names, COUNT_OF(names));
    error_set(b->err, ERR_SYNTAX, position, "unrecognized EXPLAIN option \"%.60s\"", name);
    if (near) {
        error_hint(b->err, "Perhaps you meant \"%s\".", near);
    } else {
        error_hint(b->err,
                   "Options are PLAN, PROGRAM, OPCODES, CUDA, STANDALONE, ANALYZE, STEPS and ROUNDS.");
    }
    return ERR_SYNTAX;
}

FALLIBLE bind_explain(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *query = json_get(body, "query");
    u32 levels = EXPLAIN_PLAN | EXPLAIN_PROGRAM | EXPLAIN_OPCODES | EXPLAIN_CUDA;
    u32 on = 0;
    u32 off = 0;
    const char *needs = NULL;
    TRY(bind_only(b, body, "query options", start_position(b)));
    JSON_EACH(option, json_get(body, "options")) {
        TRY(explain_option(b, node_body(option), &on, &off, &needs));
    }
    if (needs && !(on & EXPLAIN_ANALYZE)) {
        FAIL_AT(b->err, INVALID_PARAMETER, start_position(b), "EXPLAIN option %s requires ANALYZE",
                needs);
    }
    u32 tables = on & (EXPLAIN_STEPS | EXPLAIN_ROUNDS);
    if (tables && (on & (levels | EXPLAIN_STANDALONE) || (tables & (tables - 1)))) {
        FAIL_AT(b->err, INVALID_PARAMETER, start_position(b),
                "EXPLAIN option %s goes with ANALYZE only: its answer is a table",
                tables & EXPLAIN_STEPS ? "STEPS" : "ROUNDS");
    }
    if (on & EXPLAIN_STANDALONE &&
        (on & ~(u32)EXPLAIN_BARE) != (EXPLAIN_STANDALONE | EXPLAIN_CUDA)) {
        FAIL_AT(b->err, INVALID_PARAMETER, start_position(b),
                "EXPLAIN option STANDALONE goes with CUDA, and with nothing else");
    }
    if (!(on & (levels | EXPLAIN_STEPS | EXPLAIN_ROUNDS))) {
        on |= EXPLAIN_PLAN & ~off;
    }
    if (node_is(query, "ExecuteStmt")) { /* the statement is known when it runs */
        TRY(bind_execute(b, node_body(query), out));
        out->prepared.explain = on;
        return ERR_OK;
    }
    out->kind = STATEMENT_EXPLAIN;
    out->explain.levels = on;
    out->explain.inner = NEW(b->arena, struct statement);
    if (!node_is(query, "SelectStmt") && !node_is(query, "InsertStmt") &&
        !node_is(query, "UpdateStmt") && !node_is(query, "DeleteStmt") &&
        !node_is(query, "CreateTableAsStmt")) {
        return unsupported(b, start_position(b),
                           "EXPLAIN of anything but SELECT, INSERT, UPDATE, DELETE, CREATE TABLE "
                           "AS and EXECUTE");
    }
    TRY(bind_statement(b, query, out->explain.inner));
    out->plan = out->explain.inner->plan;
    return ERR_OK;
}

static FALLIBLE bind_argument(struct bind *b, const struct json *node, struct statement *out,
                              i32 i) {
    struct query q = {.clause = "CALL arguments"};
    const struct json *value = node;
    i32 position = node_position(node);
    if (node_is(node, "NamedArgExpr")) {
        out->call.names[i] = keep(b, json_text(node_body(node), "name"));
        value = json_get(node_body(node), "arg");
    } else if (i > 0 && out->call.names[i - 1]) {
        FAIL_AT(b->err, SYNTAX, position, "positional argument cannot follow named argument");
    }
    for (i32 k = 0; out->call.names[i] && k < i; k++) {
        if (out->call.names[k] && strcmp(out->call.names[k], out->call.names[i]) == 0) {
            FAIL_AT(b->err, SYNTAX, position, "argument name \"%.60s\" used more than once",
                    out->call.names[i]);
        }
    }
    TRY(bind_expr(b, &q, value, &out->call.args[i]));
    TRY(coerce_unknown(b->t, out->call.args[i], type_of(TYPE_TEXT), &out->call.args[i]));
    if (out->call.args[i]->kind != EXPR_CONST) {
        return unsupported(b, position, "a CALL argument that is not constant");
    }
    return ERR_OK;
}

FALLIBLE bind_procedure(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *call = json_get(body, "funccall");
    i32 position = json_position(call);
    TRY(bind_only(b, body, "funccall", position));
    TRY(bind_only(b, call, "funcname args funcformat location", position));
    if (json_count(json_get(call, "funcname")) != 1) {
        return unsupported(b, position, "a procedure in a schema");
    }
    out->kind = STATEMENT_CALL;
    out->position = position;
    out->call.procedure = keep(b, node_string(json_first(json_get(call, "funcname"))));
    const struct json *args = json_get(call, "args");
    out->call.count = json_count(args);
    out->call.args = NEW_ARRAY(b->arena, struct expr *, out->call.count + 1);
    out->call.names = NEW_ARRAY(b->arena, const char *, out->call.count + 1);
    i32 i = 0;
    JSON_EACH(node, args) {
        TRY(bind_argument(b, node, out, i++));
    }
    return ERR_OK;
}
