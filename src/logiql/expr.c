/* expr.c: expressions of clauses to typed ones.
 *
 * Functions that are predicates have become atoms before (body.c); what is applied here is built
 * in. Integers count in 64 bits, whatever columns hold them. What cannot be computed is undefined:
 * expressions that might raise are wrapped so that they are NULL there, and NULL is no value. */
#include "logiql/bind_int.h"

enum { DEPTH_MOST = 600 };

struct expr *expr_defined(struct lq_bind *b, struct expr *e) {
    return expr_can_raise(e) ? expr_call(b->arena, FUNC_DEFINED, e->type, e->position, 1, e) : e;
}

struct expr *expr_not_null(struct lq_bind *b, struct expr *e) {
    struct expr *is_null = expr_one(b->t, EXPR_IS_NULL, e, e->position);
    is_null->type = type_of(TYPE_BOOLEAN);
    struct expr *not = expr_one(b->t, EXPR_NOT, is_null, e->position);
    not ->type = type_of(TYPE_BOOLEAN);
    return not ;
}

const struct lq_expr *first_unbound(const struct lq_scope *scope, const struct lq_expr *e) {
    if (e->kind == LQ_ANY || (e->kind == LQ_VARIABLE && !variable_find(scope, e->text))) {
        return e;
    }
    for (i64 i = 0; i < e->args.count; i++) {
        const struct lq_expr *found = first_unbound(scope, e->args.items[i]);
        if (found) {
            return found;
        }
    }
    return NULL;
}

bool is_bound(const struct lq_scope *scope, const struct lq_expr *e) {
    return !first_unbound(scope, e);
}

/* Whole numbers may stand for decimals and floats, decimals for floats, where they are written. */
static bool literal_serves(const struct expr *literal, const struct expr *other) {
    enum lq_class is = class_of(literal->type);
    enum lq_class as = class_of(other->type);
    return literal->kind == EXPR_CONST &&
           ((is == CLASS_INT && (as == CLASS_DECIMAL || as == CLASS_FLOAT)) ||
            (is == CLASS_DECIMAL && as == CLASS_FLOAT));
}

FALLIBLE classes_meet(struct lq_bind *b, struct expr *left, struct expr *right, i32 position) {
    enum lq_class l = class_of(left->type);
    enum lq_class r = class_of(right->type);
    bool same = l == r && (l != CLASS_OTHER || left->type.id == right->type.id);
    char left_name[32], right_name[32];
    if (same || literal_serves(left, right) || literal_serves(right, left)) {
        return ERR_OK;
    }
    const char *from = class_name(left->type, left_name);
    const char *to = class_name(right->type, right_name);
    error_set(b->err, ERR_DATATYPE_MISMATCH, position, "type clash: %s and %s", from, to);
    error_hint(b->err, "Convert one of them, as in %s:%s:convert[x].", from, to);
    return b->err->code;
}

static const char *value_name(struct lq_value value, char buf[32]) {
    return value.kind.len > 0 ? value.kind.ptr : class_name(value.expr->type, buf);
}

FALLIBLE values_meet(struct lq_bind *b, struct lq_value left, struct lq_value right, i32 position) {
    char left_name[32], right_name[32];
    if (left.kind.len == 0 && right.kind.len == 0) {
        return classes_meet(b, left.expr, right.expr, position);
    }
    if (!sv_eq(left.kind, right.kind)) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, position, "type clash: %.100s and %.100s",
                value_name(left, left_name), value_name(right, right_name));
    }
    return ERR_OK;
}

FALLIBLE expr_compare(struct lq_bind *b, u8 compare, struct expr *left, struct expr *right,
                      i32 position, struct expr **out) {
    static const u16 funcs[] = {FUNC_EQ, FUNC_NE, FUNC_LT, FUNC_LE, FUNC_GT, FUNC_GE};
    TRY(classes_meet(b, left, right, position));
    TRY(operator_compare(b->t, funcs[compare], left, right, position, out));
    *out = expr_defined(b, *out);
    return ERR_OK;
}

static FALLIBLE bind_literal(struct lq_bind *b, const struct lq_expr *e, i32 position,
                             struct expr **out) {
    const char *text = arena_sv(b->arena, e->text).ptr;
    switch (e->kind) {
    case LQ_INT:
        TRY(literal_number(b->t, text, position, out));
        if (!type_is_integer((*out)->type)) {
            FAIL_AT(b->err, OUT_OF_RANGE, position, "\"%.60s\" is out of range for int", text);
        }
        return ERR_OK;
    case LQ_DECIMAL:
        TRY(literal_number(b->t, text, position, out));
        return type_is_integer((*out)->type) ? coerce_to(b->t, *out, decimal_of((*out)->type), out)
                                             : ERR_OK;
    case LQ_FLOAT:
        TRY(coerce_unknown(b->t, expr_text(b->t, e->text, position), type_of(TYPE_TEXT), out));
        return coerce_to(b->t, *out, type_of(TYPE_DOUBLE), out);
    case LQ_STRING:
        *out = expr_text(b->t, arena_sv(b->arena, e->text), position);
        return coerce_unknown(b->t, *out, type_of(TYPE_TEXT), out);
    case LQ_BOOL:
        *out = expr_bool(b->t, e->truth, position);
        return ERR_OK;
    default: {
        bool clock = memchr(e->text.ptr, ':', (size_t)e->text.len) != NULL;
        struct type type = type_of(clock ? TYPE_TIMESTAMP : TYPE_DATE);
        struct expr *literal = expr_text(b->t, arena_sv(b->arena, e->text), position);
        literal->type = type_of(TYPE_UNKNOWN);
        return coerce_unknown(b->t, literal, type, out);
    }
    }
}

static FALLIBLE to_int(struct lq_bind *b, struct expr **io) {
    return type_is_integer((*io)->type) ? coerce_to(b->t, *io, type_of(TYPE_BIGINT), io) : ERR_OK;
}

static FALLIBLE bind_binary(struct lq_bind *b, const struct lq_expr *e, i32 position,
                            struct expr *left, struct expr *right, struct expr **out) {
    char op[2] = {e->op, 0};
    char name[32];
    TRY(classes_meet(b, left, right, position));
    if (class_of(left->type) == CLASS_STRING && e->op == '+') {
        return operator_binary(b->t, "||", left, right, position, out);
    }
    if (!type_is_numeric(left->type)) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "%s has no operator %s",
                class_name(left->type, name), op);
    }
    if (type_is_integer(left->type) && type_is_integer(right->type)) {
        TRY(to_int(b, &left));
        TRY(to_int(b, &right));
    }
    return operator_binary(b->t, op, left, right, position, out);
}

static FALLIBLE bind_negated(struct lq_bind *b, struct expr *arg, i32 position, struct expr **out) {
    char name[32];
    if (!type_is_numeric(arg->type)) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "%s has no operator -",
                class_name(arg->type, name));
    }
    TRY(to_int(b, &arg));
    return operator_unary(b->t, "-", arg, position, out);
}

/* Without the wrapping that undefined values need. */
static FALLIBLE bind_raw(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e,
                         i32 depth, struct expr **out) {
    i32 position = lq_at(b, e->position);
    struct expr *args[8] = {NULL};
    if (depth > DEPTH_MOST) {
        FAIL_AT(b->err, TOO_COMPLEX, position, "the expression is nested too deep");
    }
    if (e->kind == LQ_ANY) {
        FAIL_AT(b->err, SYNTAX, position, "_ has no value here");
    }
    if (e->kind == LQ_VARIABLE) {
        *out = variable_find(scope, e->text);
        if (!*out) {
            FAIL_AT(b->err, UNDEFINED_COLUMN, position, "variable %.*s is not bound",
                    (int)MIN_OF(e->text.len, 100), e->text.ptr);
        }
        struct sv kind = variable_kind(scope, e->text);
        if (kind.len > 0 && depth > 0) {
            FAIL_AT(b->err, DATATYPE_MISMATCH, position,
                    "nothing can be computed of an entity of %.*s", (int)MIN_OF(kind.len, 100),
                    kind.ptr);
        }
        return ERR_OK;
    }
    if (e->kind == LQ_PREDICATE) {
        FAIL_AT(b->err, NOT_SUPPORTED, position, "predicates are no values");
    }
    if (e->kind < LQ_PREDICATE) {
        return bind_literal(b, e, position, out);
    }
    if (e->kind == LQ_APPLY && sv_eq(e->text, SV("lang:new"))) {
        return entity_call(b, scope, e, out);
    }
    if (e->args.count > COUNT_OF(args)) {
        FAIL_AT(b->err, UNDEFINED_FUNCTION, position, "too many arguments");
    }
    for (i64 i = 0; i < e->args.count; i++) {
        TRY(bind_raw(b, scope, e->args.items[i], depth + 1, &args[i]));
    }
    if (e->kind == LQ_NEGATE) {
        return bind_negated(b, args[0], position, out);
    }
    return e->kind == LQ_BINARY ? bind_binary(b, e, position, args[0], args[1], out)
                                : builtin_call(b, e, args, out);
}

FALLIBLE expr_bind(struct lq_bind *b, const struct lq_scope *scope, const struct lq_expr *e,
                   struct expr **out) {
    return bind_raw(b, scope, e, 0, out);
}
