/* bind_late.c: values that belong to the session: names of where one is; PREPARE.
 *
 * Part of binding. current_schema() and its kin become parameters of the plan behind the
 * statement's own, whose values are made once, when the statement starts. Sequences may need more
 * than that: bind_serial.c. */
#include "defs/settings.h"
#include "sql/ddl_int.h"

static const struct {
    const char *name;
    u8 kind;
    i32 fewest, most;
} late_names[] = {
    {"nextval", LATE_NEXTVAL, 1, 1},       {"currval", LATE_CURRVAL, 1, 1},
    {"lastval", LATE_LASTVAL, 0, 0},       {"setval", LATE_SETVAL, 2, 3},
    {"current_schema", LATE_SCHEMA, 0, 0}, {"current_database", LATE_DATABASE, 0, 0},
    {"version", LATE_VERSION, 0, 0},       {"current_setting", LATE_SETTING, 1, 2},
    {"set_config", LATE_CONFIG, 3, 3},     {"pg_sleep", LATE_SLEEP, 1, 1},
};

/* current_setting and set_config: of constants. */
static FALLIBLE setting_arguments(struct bind *b, struct query *q, const struct json *args,
                                  const char *name, i32 position, struct late *out) {
    struct expr *values[3] = {NULL};
    i32 count = 0;
    JSON_EACH(node, args) {
        bool flag = !node->next && count > 0;
        TRY(bind_expr(b, q, node, &values[count]));
        TRY(coerce_unknown(b->t, values[count], type_of(flag ? TYPE_BOOLEAN : TYPE_TEXT),
                           &values[count]));
        if (values[count]->type.id != (flag ? TYPE_BOOLEAN : TYPE_TEXT)) {
            return call_undefined(b->t, name, values, count + 1, position);
        }
        if (values[count]->kind != EXPR_CONST || values[count]->is_null) {
            return unsupported(b, position, "%s of what is not constant", name);
        }
        count++;
    }
    out->name = arena_sv(b->arena, sv_of(values[0]->value.str)).ptr;
    if (out->kind == LATE_CONFIG) {
        out->text = arena_sv(b->arena, sv_of(values[1]->value.str)).ptr;
    }
    out->called = count > 1 && values[count - 1]->value.b8;
    return ERR_OK;
}

struct expr *bind_late_param(struct bind *b, const struct late *late, i32 position) {
    bool number = late->kind <= LATE_IS_CALLED;
    struct expr *param =
        expr_new(b->arena, EXPR_PARAM, type_of(number ? TYPE_BIGINT : TYPE_TEXT), position);
    param->param = (u32)(b->param_base + b->lates.count);
    VEC_PUSH(b->arena, &b->lates, *late);
    return param;
}

/* current_schema: NULL where no schema of the search path is there. Plans are made anew when the path
 * or the catalog changes. */
static FALLIBLE current_schema(struct bind *b, i32 position, struct expr **out) {
    struct late late = {.kind = LATE_SCHEMA};
    u32 schema;
    if (!snapshot_target(b->snap, (struct sv){NULL, 0}, -1, &schema, b->err)) {
        *out = bind_late_param(b, &late, position);
        return ERR_OK;
    }
    TRY(b->err->code == ERR_UNDEFINED_SCHEMA ? ERR_OK : b->err->code);
    error_reset(b->err);
    *out = expr_null(b->t, type_of(TYPE_TEXT), position);
    return ERR_OK;
}

FALLIBLE bind_late_call(struct bind *b, struct query *q, const char *name, const struct json *body,
                        bool *out_is, struct expr **out) {
    const struct json *args = json_get(body, "args");
    i32 position = json_position(body);
    *out_is = false;
    for (i64 i = 0; i < COUNT_OF(late_names) && !*out_is; i++) {
        i32 count = json_count(args);
        if (strcmp(late_names[i].name, name) != 0 || count < late_names[i].fewest ||
            count > late_names[i].most) {
            continue;
        }
        struct late late = {.kind = late_names[i].kind};
        *out_is = true;
        if (late.kind == LATE_SLEEP) {
            return bind_sleep(b, q, body, out);
        }
        if (late.kind <= LATE_SETVAL) {
            return bind_serial_call(b, q, late.kind, body, out);
        }
        if (late.kind == LATE_SCHEMA) {
            return current_schema(b, position, out);
        }
        if (late.kind >= LATE_SETTING) {
            TRY(setting_arguments(b, q, args, name, position, &late));
            struct sv setting = sv_from(late.name);
            if (late.kind == LATE_SETTING && late.called && !fixed_value(setting) &&
                setting_find(setting) < 0 && !sv_eq_nocase(setting, SV("search_path"))) {
                *out = expr_null(b->t, type_of(TYPE_TEXT), position);
                return ERR_OK;
            }
        }
        *out = bind_late_param(b, &late, position);
    }
    return ERR_OK;
}

FALLIBLE bind_session_value(struct bind *b, const struct json *body, struct expr **out) {
    static const struct {
        const char *op;
        u8 kind;
    } kinds[] = {{"SVFOP_CURRENT_USER", LATE_USER},        {"SVFOP_USER", LATE_USER},
                 {"SVFOP_SESSION_USER", LATE_USER},        {"SVFOP_CURRENT_ROLE", LATE_USER},
                 {"SVFOP_CURRENT_CATALOG", LATE_DATABASE}, {"SVFOP_CURRENT_SCHEMA", LATE_SCHEMA}};
    const char *op = json_text(body, "op");
    for (i64 i = 0; i < COUNT_OF(kinds); i++) {
        if (op && strcmp(kinds[i].op, op) == 0) {
            struct late late = {.kind = kinds[i].kind};
            if (late.kind == LATE_SCHEMA) {
                return current_schema(b, json_position(body), out);
            }
            *out = bind_late_param(b, &late, json_position(body));
            return ERR_OK;
        }
    }
    return unsupported(b, json_position(body), "%s", op ? op + 6 : "this function");
}

/* PREPARE, EXECUTE, DEALLOCATE */

struct parsed *parsed_inner(struct arena *arena, const struct parsed *parsed, struct when when) {
    struct parsed *inner = NEW(arena, struct parsed);
    *inner = *parsed;
    inner->prepared = 1;
    inner->when = when;
    inner->node = json_get(node_body(parsed->node), "query");
    return inner;
}

bool parsed_is_prepare(const struct parsed *parsed) {
    return node_is(parsed->node, "PrepareStmt");
}

FALLIBLE bind_prepare(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    struct statement ignored = {0};
    TRY(bind_only(b, body, "name argtypes query", position));
    out->kind = STATEMENT_PREPARE;
    out->position = position;
    out->name = keep(b, json_text(body, "name"));
    i32 i = 0, used = b->parsed->param_count;
    out->prepared.arg_count = MAX_OF(used, json_count(json_get(body, "argtypes")));
    out->prepared.arg_types = NEW_ARRAY(b->arena, struct type, out->prepared.arg_count + 1);
    JSON_EACH(node, json_get(body, "argtypes")) {
        TRY(ddl_column_type(b, node_body(node), &out->prepared.arg_types[i]));
        if (out->prepared.arg_types[i].id != TYPE_DECIMAL) { /* a parameter has no length */
            out->prepared.arg_types[i] = type_of((enum type_id)out->prepared.arg_types[i].id);
        }
        if (i < used) {
            b->t->param_types[i] = out->prepared.arg_types[i];
        }
        i++;
    }
    TRY(bind_statement(b, json_get(body, "query"), &ignored)); /* for its errors and types */
    for (i = 0; i < used; i++) {
        out->prepared.arg_types[i] = b->t->param_types[i];
    }
    b->plan->root = NULL;
    b->lates.count = 0;
    return ERR_OK;
}

FALLIBLE bind_execute(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *params = json_get(body, "params");
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    TRY(bind_only(b, body, "name params", position));
    out->kind = STATEMENT_EXECUTE;
    out->position = position;
    out->name = keep(b, json_text(body, "name"));
    out->prepared.arg_count = json_count(params);
    return ERR_OK;
}

/* One value of EXECUTE in the type of its parameter; what has no form of its own (param.c) as text.
 */
static FALLIBLE bind_argument(struct bind *b, const struct json *node, i32 number, struct type type,
                              struct expr **out) {
    struct query q = {.clause = "EXECUTE parameters"};
    struct expr *expr = NULL;
    char from[32], to[32];
    TRY(bind_expr(b, &q, node, &expr));
    TRY(coerce_unknown(b->t, expr, type, &expr));
    if (!coerce_allowed(expr->type, type, COERCE_ASSIGN)) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, node_position(node),
                "parameter $%d of type %s cannot be coerced to the expected type %s", (int)number,
                type_print(expr->type, from), type_print(type, to));
    }
    struct column_def like = {.name = "parameter", .type = type};
    TRY(bind_assign(b, expr, &like, out));
    bool plain = type_is_exact(type) || type_is_float(type) || type.id == TYPE_TEXT ||
                 type.id == TYPE_CHAR || type.id == TYPE_BOOLEAN || type.id == TYPE_DATE;
    return plain ? ERR_OK : coerce_to(b->t, *out, type_of(TYPE_TEXT), out);
}

FALLIBLE bind_arguments(struct bind *b, const struct json *body, const struct type *types,
                        struct statement *out) {
    const struct json *params = json_get(body, "params");
    i32 count = json_count(params), i = 0;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    const char **names = NEW_ARRAY(b->arena, const char *, count + 1);
    JSON_EACH(node, params) {
        TRY(bind_argument(b, node, i + 1, types[i], &exprs[i]));
        names[i++] = "value";
    }
    b->plan->root = bind_project(b, bind_one_row(b), exprs, names, count);
    for (i = 0; i < count; i++) {
        VEC_PUSH(b->arena, &b->plan->names, names[i]);
    }
    out->kind = STATEMENT_SELECT;
    out->plan = b->plan;
    return ERR_OK;
}

FALLIBLE bind_deallocate(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    TRY(bind_only(b, body, "name", position));
    out->kind = STATEMENT_DEALLOCATE;
    out->position = position;
    out->name = keep(b, json_text(body, "name"));
    return ERR_OK;
}
