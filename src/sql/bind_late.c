/* bind_late.c: values that belong to the session: names of where one is; PREPARE.
 *
 * Part of binding. current_schema() and its kin become parameters of the plan behind the
 * statement's own, whose values are made once, when the statement starts. Sequences may need more
 * than that: bind_serial.c. */
#include "sql/ddl_int.h"

static const struct {
    const char *name;
    u8 kind;
    i32 fewest, most;
} late_names[] = {
    {"nextval", LATE_NEXTVAL, 1, 1},       {"currval", LATE_CURRVAL, 1, 1},
    {"lastval", LATE_LASTVAL, 0, 0},       {"setval", LATE_SETVAL, 2, 3},
    {"current_schema", LATE_SCHEMA, 0, 0}, {"current_database", LATE_DATABASE, 0, 0},
    {"version", LATE_VERSION, 0, 0},
};

struct expr *bind_late_param(struct bind *b, const struct late *late, i32 position) {
    bool number = late->kind <= LATE_SETVAL;
    struct expr *param =
        expr_new(b->arena, EXPR_PARAM, type_of(number ? TYPE_BIGINT : TYPE_TEXT), position);
    param->param = (u32)(b->param_base + b->lates.count);
    VEC_PUSH(b->arena, &b->lates, *late);
    return param;
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
        if (late.kind <= LATE_SETVAL) {
            return bind_serial_call(b, q, late.kind, body, out);
        }
        *out = bind_late_param(b, &late, position);
    }
    return ERR_OK;
}

/* PREPARE, EXECUTE, DEALLOCATE */

struct parsed *parsed_inner(struct arena *arena, const struct parsed *parsed) {
    struct parsed *inner = NEW(arena, struct parsed);
    *inner = *parsed;
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
    out->table_name = keep(b, json_text(body, "name"));
    i32 i = 0;
    JSON_EACH(node, json_get(body, "argtypes")) {
        struct type type;
        TRY(ddl_column_type(b, node_body(node), &type));
        if (i < b->parsed->param_count) {
            b->param_types[i++] = type;
        }
    }
    TRY(bind_statement(b, json_get(body, "query"), &ignored)); /* for its errors and types */
    b->plan->root = NULL;
    b->lates.count = 0;
    return ERR_OK;
}

FALLIBLE bind_execute(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *params = json_get(body, "params");
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr), i = 0;
    TRY(bind_only(b, body, "name params", position));
    out->kind = STATEMENT_EXECUTE;
    out->position = position;
    out->table_name = keep(b, json_text(body, "name"));
    out->arg_count = json_count(params);
    out->args = NEW_ARRAY(b->arena, struct expr *, out->arg_count + 1);
    JSON_EACH(node, params) {
        struct query q = {.clause = "EXECUTE parameters"};
        TRY(bind_expr(b, &q, node, &out->args[i]));
        TRY(coerce_unknown(b, out->args[i], type_of(TYPE_TEXT), &out->args[i]));
        if (out->args[i]->kind != EXPR_CONST) {
            return unsupported(b, node_position(node), "EXECUTE with a value that is not constant");
        }
        i++;
    }
    return ERR_OK;
}

FALLIBLE bind_deallocate(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    TRY(bind_only(b, body, "name", position));
    out->kind = STATEMENT_DEALLOCATE;
    out->position = position;
    out->table_name = keep(b, json_text(body, "name"));
    return ERR_OK;
}
