/* build.c: small expressions: constants, logic, operands that are used twice. */
#include "typing/typing_int.h"

struct expr *expr_null(struct typing *t, struct type type, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type, position);
    expr->is_null = 1;
    return expr;
}

struct expr *expr_bool(struct typing *t, bool value, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_of(TYPE_BOOLEAN), position);
    expr->value.b8 = value;
    return expr;
}

struct expr *expr_int(struct typing *t, i32 value, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_of(TYPE_INTEGER), position);
    expr->value.i32 = value;
    return expr;
}

struct expr *expr_many(struct typing *t, enum expr_kind kind, struct type type, i32 position,
                       i32 count, struct expr **args) {
    struct expr *expr = expr_new(t->arena, kind, type, position);
    expr->arg_count = count;
    expr->args = NEW_ARRAY(t->arena, struct expr *, count);
    memcpy(expr->args, args, sizeof(struct expr *) * (size_t)count);
    return expr;
}

struct expr *expr_one(struct typing *t, enum expr_kind kind, struct expr *arg, i32 position) {
    return expr_many(t, kind, type_of(TYPE_BOOLEAN), position, 1, &arg);
}

static bool count_node(const struct expr *expr, void *arg) {
    i32 *left = arg;
    UNUSED(expr);
    return --*left > 0;
}

FALLIBLE typing_sharable(struct typing *t, const struct expr *expr) {
    i32 left = SHARED_NODES_MAX;
    if (!expr_walk(expr, count_node, &left)) {
        FAIL_AT(t->err, TOO_COMPLEX, expr->position,
                "statement too complex: an operand of more than %d terms is needed several times",
                (int)SHARED_NODES_MAX);
    }
    return ERR_OK;
}

bool typing_nullable(const struct typing *t, const struct expr *expr) {
    return t->any_null > 0 || expr_nullable(t->plan, expr);
}

bool is_unknown(const struct expr *expr) {
    return expr->type.id == TYPE_UNKNOWN;
}

bool literal_text(const struct expr *expr, struct sv *out) {
    bool text = type_is_string(expr->type) || expr->type.id == TYPE_UNKNOWN;
    if (expr->kind != EXPR_CONST || expr->is_null || !text) {
        return false;
    }
    *out = sv_of(expr->value.str);
    return true;
}

struct expr *expr_text(struct typing *t, struct sv text, i32 position) {
    struct expr *expr = expr_new(t->arena, EXPR_CONST, type_of(TYPE_TEXT), position);
    expr->value.str = str_from(arena_sv(t->arena, text));
    return expr;
}
