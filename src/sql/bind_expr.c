/* bind_expr.c: expressions: the dispatch by node type, constants, parameters, logic, IN and
 * BETWEEN.
 *
 * Part of binding. Every function returns an expression whose operands are already cast to the
 * types its operator works on; only quoted literals, NULL and parameters may leave here without a
 * type, for the context to decide (typing/coerce.c). Depth is counted at bind_expr, through which
 * all recursion passes. */
#include "sql/sql_int.h"

#include "codes/func.h"

FALLIBLE bind_list(struct bind *b, struct query *q, const struct json *list, struct expr ***out,
                   i32 *out_count) {
    *out_count = json_count(list);
    *out = NEW_ARRAY(b->arena, struct expr *, *out_count + 1);
    i32 i = 0;
    JSON_EACH(node, list) {
        TRY(bind_expr(b, q, node, &(*out)[i]));
        i++;
    }
    return ERR_OK;
}

static FALLIBLE bind_const(struct bind *b, struct query *q, const struct json *body,
                           struct expr **out) {
    UNUSED(q);
    i32 position = json_position(body);
    TRY(bind_only(b, body, "ival fval sval boolval isnull location", position));
    const struct json *integer = json_get(body, "ival");
    const struct json *text = json_get(body, "sval");
    if (json_flag(body, "isnull")) {
        *out = expr_null(b->t, type_of(TYPE_UNKNOWN), position);
    } else if (integer) {
        const struct json *value = json_get(integer, "ival");
        i64 number = value ? value->number : lex_integer(b->parsed->script, position);
        *out = expr_int(b->t, (i32)number, position);
    } else if (text) {
        const struct json *value = json_get(text, "sval");
        *out = expr_new(b->arena, EXPR_CONST, type_of(TYPE_UNKNOWN), position);
        struct sv view = value ? (struct sv){value->text, (i64)value->len} : SV("");
        (*out)->value.str = str_from(arena_sv(b->arena, view));
    } else if (json_get(body, "boolval")) {
        *out = expr_bool(b->t, json_flag(json_get(body, "boolval"), "boolval"), position);
    } else {
        const char *digits = json_text(json_get(body, "fval"), "fval");
        return literal_number(b->t, digits ? digits : "", position, out);
    }
    return ERR_OK;
}

static FALLIBLE bind_param(struct bind *b, struct query *q, const struct json *body,
                           struct expr **out) {
    UNUSED(q);
    i32 position = json_position(body);
    i64 number = json_number(body, "number");
    if (number < 1 || number > b->parsed->param_count ||
        !b->t->param_types) { /* none in definitions */
        FAIL_AT(b->err, UNDEFINED_PARAMETER, position, "there is no parameter $%lld", number);
    }
    *out = expr_new(b->arena, EXPR_PARAM, b->t->param_types[number - 1], position);
    (*out)->param = (u32)(number - 1);
    return ERR_OK;
}

FALLIBLE bind_condition(struct bind *b, struct query *q, const struct json *node,
                        const char *clause, struct expr **out) {
    struct expr *expr = NULL;
    TRY(bind_expr(b, q, node, &expr));
    return coerce_condition(b->t, expr, clause, out);
}

FALLIBLE bind_choices(struct bind *b, struct query *q, const struct json *list, char how,
                      struct expr ***out, i32 *out_count) {
    i32 count = json_count(list), i = 0;
    struct expr **whens = NEW_ARRAY(b->arena, struct expr *, count + 1);
    *out = NEW_ARRAY(b->arena, struct expr *, count + 1);
    *out_count = count;
    JSON_EACH(node, list) {
        i64 first = q->pending.count;
        TRY(bind_expr(b, q, node, &(*out)[i]));
        if (i > 0 && q->pending.count > first) {
            for (i32 k = 0; k < i; k++) { /* an earlier one decided */
                struct expr *arg = (*out)[k];
                if (how != 'c') {
                    TRY(coerce_condition(b->t, arg, how == 'a' ? "AND" : "OR", &arg));
                }
                whens[k] = how == 'c' ? expr_one(b->t, EXPR_IS_NULL, arg, -1) : arg;
                whens[k] = how == 'o' ? arg : expr_one(b->t, EXPR_NOT, whens[k], -1);
            }
            whens[i] = NULL;
            bind_guard(b, q, first, whens, i + 1);
        }
        i++;
    }
    return ERR_OK;
}

static FALLIBLE bind_logic(struct bind *b, struct query *q, const struct json *body,
                           struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "boolop args location", position));
    bool is_and = json_is(body, "boolop", "AND_EXPR");
    bool is_not = json_is(body, "boolop", "NOT_EXPR");
    const char *word = is_and ? "AND" : is_not ? "NOT" : "OR";
    struct expr **args = NULL;
    i32 count = 0;
    i64 sets = q->set_calls.count;
    TRY(bind_choices(b, q, json_get(body, "args"), is_and ? 'a' : 'o', &args, &count));
    for (i32 i = 0; i < count; i++) {
        TRY(coerce_condition(b->t, args[i], word, &args[i]));
    }
    if (q->set_calls.count > sets) {
        FAIL_AT(b->err, DATATYPE_MISMATCH, q->set_calls.items[sets].position,
                "argument of %s must not return a set", word);
    }
    enum expr_kind kind = is_and ? EXPR_AND : is_not ? EXPR_NOT : EXPR_OR;
    *out = expr_many(b->t, kind, type_of(TYPE_BOOLEAN), position, count, args);
    return ERR_OK;
}

static FALLIBLE bind_null_test(struct bind *b, struct query *q, const struct json *body,
                               struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "arg nulltesttype argisrow location", position));
    struct expr *arg = NULL;
    struct expr **fields = NULL;
    i32 count = 0;
    TRY(bind_row_fields(b, q, json_get(body, "arg"), &fields, &count));
    if (fields) {
        bool negated = json_is(body, "nulltesttype", "IS_NOT_NULL");
        return bind_row_null(b, fields, count, negated, position, out);
    }
    TRY(bind_expr(b, q, json_get(body, "arg"), &arg));
    TRY(coerce_unknown(b->t, arg, type_of(TYPE_TEXT), &arg));
    *out = expr_one(b->t, EXPR_IS_NULL, arg, position);
    if (json_is(body, "nulltesttype", "IS_NOT_NULL")) {
        *out = expr_one(b->t, EXPR_NOT, *out, position);
    }
    return ERR_OK;
}

static FALLIBLE bind_type_cast(struct bind *b, struct query *q, const struct json *body,
                               struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "arg typeName location", position));
    struct type_name type = {.type = type_of(TYPE_BIGINT), .position = position};
    const char *word = "";
    JSON_EACH(name, json_get(json_get(body, "typeName"), "names")) {
        word = node_string(name);
    }
    struct expr *arg = NULL;
    if (strcmp(word, "regclass") == 0) {
        TRY(bind_expr(b, q, json_get(body, "arg"), &arg));
        return bind_regclass(b, arg, position, out);
    }
    if (strcmp(word, "oid") != 0) { /* which is a number here */
        TRY(bind_type(b, json_get(body, "typeName"), &type));
    }
    TRY(bind_expr(b, q, json_get(body, "arg"), &arg));
    return coerce_cast(b->t, arg, &type, position >= 0 ? position : type.position, out);
}

/* wf_try(x::t): a cast whose faults are NULL. The friendly layer writes it for TRY_CAST(x AS t). A
 * literal stays text until it runs, so that it does not raise here. */
FALLIBLE bind_try(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    const struct json *node = json_first(json_get(body, "args"));
    if (json_count(json_get(body, "args")) != 1 || !node_is(node, "TypeCast")) {
        return unsupported(b, position, "wf_try of anything but a cast");
    }
    struct type_name type;
    struct expr *arg = NULL;
    TRY(bind_type(b, json_get(node_body(node), "typeName"), &type));
    TRY(bind_expr(b, q, json_get(node_body(node), "arg"), &arg));
    TRY(coerce_unknown(b->t, arg, type_of(TYPE_TEXT), &arg));
    TRY(coerce_cast(b->t, arg, &type, position, &arg));
    *out = arg;
    if (arg->kind == EXPR_CAST) {
        *out = expr_call(b->arena, FUNC_TRY, arg->type, position, 1, arg);
    }
    return ERR_OK;
}

FALLIBLE bind_collation(struct bind *b, const struct json *names, struct type type, i32 position) {
    static const char *const known[] = {"C", "POSIX", "ucs_basic", "default", "C.UTF-8", "C.utf8"};
    const char *name = "";
    bool found = false;
    JSON_EACH(part, names) {
        name = node_string(part);
    }
    for (i64 i = 0; i < COUNT_OF(known); i++) {
        found = found || strcmp(known[i], name) == 0;
    }
    if (!found && (strchr(name, '_') || strchr(name, '-'))) { /* as those of languages are called */
        return unsupported(b, position, "collation \"%.60s\"", name);
    }
    if (!found) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, position,
                "collation \"%.60s\" for encoding \"UTF8\" does not exist", name);
    }
    if (!type_is_string(type)) {
        char text[32];
        FAIL_AT(b->err, DATATYPE_MISMATCH, position, "collations are not supported by type %s",
                type_print(type, text));
    }
    return ERR_OK;
}

static FALLIBLE bind_collate(struct bind *b, struct query *q, const struct json *body,
                             struct expr **out) {
    i32 position = json_position(body);
    TRY(bind_only(b, body, "arg collname location", position));
    TRY(bind_expr(b, q, json_get(body, "arg"), out));
    TRY(coerce_unknown(b->t, *out, type_of(TYPE_TEXT), out));
    return bind_collation(b, json_get(body, "collname"), (*out)->type, position);
}

/* The one name of an operator. */
static FALLIBLE operator_name(struct bind *b, const struct json *body, const char **out) {
    const struct json *names = json_get(body, "name");
    *out = "";
    if (json_count(names) > 1 && strcmp(node_string(json_first(names)), "pg_catalog") != 0) {
        return unsupported(b, json_position(body), "an operator in a schema");
    }
    JSON_EACH(part, names) {
        *out = node_string(part);
    }
    return ERR_OK;
}

static FALLIBLE bind_operator(struct bind *b, struct query *q, const struct json *body,
                              struct expr **out) {
    i32 position = json_position(body);
    const char *op = "";
    TRY(operator_name(b, body, &op));
    bool done = false;
    TRY(bind_row_operator(b, q, body, op, &done, out));
    if (done) {
        return ERR_OK;
    }
    struct expr *left = NULL;
    struct expr *right = NULL;
    if (json_get(body, "lexpr")) {
        TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    }
    TRY(bind_expr(b, q, json_get(body, "rexpr"), &right));
    return left ? operator_binary(b->t, op, left, right, position, out)
                : operator_unary(b->t, op, right, position, out);
}

/* Whether all in an IN list have one type; where not, each is compared on its own. */
static bool in_one_type(struct expr **args, i32 count) {
    const struct expr *first = NULL;
    for (i32 i = 0; i < count; i++) {
        struct type both;
        if (is_unknown(args[i])) {
            continue;
        }
        if (first && !coerce_compared(first->type, args[i]->type, &both)) {
            return false;
        }
        first = first ? first : args[i];
    }
    return true;
}

static bool visit_constant(const struct expr *expr, void *arg) {
    UNUSED(arg);
    return expr->kind != EXPR_COL;
}

static bool is_constant(const struct expr *expr) {
    return expr_walk(expr, visit_constant, NULL);
}

/* Constants are compared with the left side in one type, before the members computed from columns,
 * each of which is compared by itself: in a type of its own, and where a constant decides it raises
 * nothing. Where all are of one type and none can raise that makes no difference. */
static bool is_parted(struct expr **args, i32 count) {
    bool columns = false, differ = false;
    const struct expr *first = is_unknown(args[0]) ? NULL : args[0];
    for (i32 i = 1; i < count; i++) {
        bool column = !is_constant(args[i]);
        columns = columns || column;
        differ = differ || (column && expr_can_raise(args[i]));
        differ = differ || (first && !is_unknown(args[i]) && args[i]->type.id != first->type.id);
        first = first || is_unknown(args[i]) ? first : args[i];
    }
    return columns && differ;
}

/* Decimals that 38 digits do not hold at one scale are compared pair by pair; with a float among
 * them all are floats. */
static bool is_wide(struct expr **args, i32 count) {
    bool wide = false, floats = type_is_float(args[0]->type);
    for (i32 i = 1; i < count; i++) {
        wide = wide || operator_is_wide(args[0], args[i]);
        floats = floats || type_is_float(args[i]->type);
    }
    return wide && !floats;
}

static FALLIBLE in_pairs(struct bind *b, struct expr **args, i32 count, i32 position,
                         struct expr **out) {
    struct expr **parts = NEW_ARRAY(b->arena, struct expr *, count);
    TRY(typing_sharable(b->t, args[0]));
    for (i32 i = 1; i < count; i++) {
        TRY(operator_compare(b->t, FUNC_EQ, args[0], args[i], position, &parts[i - 1]));
    }
    *out = expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), position, count - 1, parts);
    return ERR_OK;
}

/* A list of reals, with a number of another type before it: that is compared as a double. */
static FALLIBLE in_doubles(struct bind *b, struct expr *left, struct expr **args, i32 count) {
    if (args[0]->type.id != TYPE_REAL || left->type.id == TYPE_REAL || is_unknown(left)) {
        return ERR_OK;
    }
    args[0] = left;
    for (i32 i = 0; i < count; i++) {
        TRY(coerce_to(b->t, args[i], type_of(TYPE_DOUBLE), &args[i]));
    }
    return ERR_OK;
}

/* The left side and members that are compared with it in one type. */
static FALLIBLE in_list(struct bind *b, struct expr **args, i32 count, i32 position,
                        struct expr **out) {
    struct expr *left = args[0];
    struct type type;
    if (count == 2) {
        return operator_compare(b->t, FUNC_EQ, args[0], args[1], position, out);
    }
    if (is_wide(args, count) || !in_one_type(args, count)) {
        return in_pairs(b, args, count, position, out);
    }
    TRY(coerce_common(b->t, args, count, "IN", &type));
    TRY(in_doubles(b, left, args, count));
    *out = expr_many(b->t, EXPR_IN, type_of(TYPE_BOOLEAN), position, count, args);
    return ERR_OK;
}

static FALLIBLE in_parts(struct bind *b, struct expr **args, i32 count, bool negated, i32 position,
                         struct expr **out) {
    struct expr **known = NEW_ARRAY(b->arena, struct expr *, count);
    struct expr **parts = NEW_ARRAY(b->arena, struct expr *, count);
    i32 known_count = 1;
    i32 part_count = 0;
    TRY(typing_sharable(b->t, args[0]));
    known[0] = args[0];
    for (i32 i = 1; i < count; i++) {
        if (is_constant(args[i])) {
            known[known_count++] = args[i];
        }
    }
    if (known_count > 1) {
        TRY(in_list(b, known, known_count, position, &parts[0]));
        parts[0] = negated ? expr_one(b->t, EXPR_NOT, parts[0], position) : parts[0];
        part_count = 1;
    }
    for (i32 i = 1; i < count; i++) {
        if (!is_constant(args[i])) {
            TRY(operator_compare(b->t, negated ? FUNC_NE : FUNC_EQ, args[0], args[i], position,
                                 &parts[part_count++]));
        }
    }
    *out = expr_many(b->t, negated ? EXPR_AND : EXPR_OR, type_of(TYPE_BOOLEAN), position,
                     part_count, parts);
    return ERR_OK;
}

static FALLIBLE bind_in(struct bind *b, struct query *q, const struct json *body,
                        struct expr **out) {
    i32 position = json_position(body);
    const char *op = "";
    bool done = false;
    TRY(operator_name(b, body, &op));
    TRY(bind_row_in(b, q, body, &done, out));
    if (done) {
        return ERR_OK;
    }
    struct expr *left = NULL;
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    const struct json *items = json_get(node_body(json_get(body, "rexpr")), "items");
    i32 count = json_count(items) + 1;
    struct expr **args = NEW_ARRAY(b->arena, struct expr *, count);
    args[0] = left;
    i32 i = 1;
    JSON_EACH(item, items) {
        TRY(bind_expr(b, q, item, &args[i]));
        i++;
    }
    bool negated = strcmp(op, "=") != 0;
    if (count > 2 && is_parted(args, count)) {
        return in_parts(b, args, count, negated, position, out);
    }
    TRY(in_list(b, args, count, position, out));
    *out = negated ? expr_one(b->t, EXPR_NOT, *out, position) : *out;
    return ERR_OK;
}

/* a low-op low AND a high-op high, or the same with OR. */
static FALLIBLE bind_range(struct bind *b, struct expr **operands, u16 low_op, u16 high_op,
                           enum expr_kind kind, i32 position, struct expr **out) {
    struct expr *sides[2] = {NULL, NULL};
    TRY(operator_compare(b->t, low_op, operands[0], operands[1], position, &sides[0]));
    TRY(operator_compare(b->t, high_op, operands[0], operands[2], position, &sides[1]));
    *out = expr_many(b->t, kind, type_of(TYPE_BOOLEAN), position, 2, sides);
    return ERR_OK;
}

static FALLIBLE bind_between(struct bind *b, struct query *q, const struct json *body,
                             struct expr **out) {
    i32 position = json_position(body);
    const struct json *items = json_get(node_body(json_get(body, "rexpr")), "items");
    struct expr *in_order[3] = {NULL, NULL, NULL};
    if (json_count(items) != 2) {
        FAIL_AT(b->err, INTERNAL, position, "the parse tree is malformed");
    }
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &in_order[0]));
    TRY(typing_sharable(b->t, in_order[0]));
    TRY(bind_expr(b, q, json_first(items), &in_order[1]));
    TRY(bind_expr(b, q, json_first(items)->next, &in_order[2]));
    struct expr *swapped[3] = {in_order[0], in_order[2], in_order[1]};
    const char *kind = json_text(body, "kind");
    bool negated = strncmp(kind, "AEXPR_NOT", 9) == 0;
    bool symmetric = strstr(kind, "SYM") != NULL;
    struct expr *both[2] = {NULL, NULL};
    u16 low = negated ? FUNC_LT : FUNC_GE;
    u16 high = negated ? FUNC_GT : FUNC_LE;
    enum expr_kind inner = negated ? EXPR_OR : EXPR_AND;
    TRY(bind_range(b, in_order, low, high, inner, position, &both[0]));
    *out = both[0];
    if (symmetric) {
        TRY(typing_sharable(b->t, in_order[1]));
        TRY(typing_sharable(b->t, in_order[2]));
        TRY(bind_range(b, swapped, low, high, inner, position, &both[1]));
        *out =
            expr_many(b->t, negated ? EXPR_AND : EXPR_OR, type_of(TYPE_BOOLEAN), position, 2, both);
    }
    return ERR_OK;
}

typedef FALLIBLE (*expr_handler)(struct bind *b, struct query *q, const struct json *body,
                                 struct expr **out);
struct handler {
    const char *name;
    expr_handler bind; /* NULL: not supported, `what` says what it is */
    const char *what;
};

static const struct handler operator_kinds[] = {
    {"AEXPR_OP", bind_operator, ""},
    {"AEXPR_IN", bind_in, ""},
    {"AEXPR_LIKE", bind_like, ""},
    {"AEXPR_ILIKE", bind_like, ""},
    {"AEXPR_BETWEEN", bind_between, ""},
    {"AEXPR_NOT_BETWEEN", bind_between, ""},
    {"AEXPR_BETWEEN_SYM", bind_between, ""},
    {"AEXPR_NOT_BETWEEN_SYM", bind_between, ""},
    {"AEXPR_NULLIF", bind_nullif, ""},
    {"AEXPR_DISTINCT", bind_distinct, ""},
    {"AEXPR_NOT_DISTINCT", bind_distinct, ""},
    {"AEXPR_SIMILAR", bind_similar, ""},
    {"AEXPR_OP_ANY", bind_any_array, ""},
    {"AEXPR_OP_ALL", bind_any_array, ""},
};

static FALLIBLE dispatch(struct bind *b, struct query *q, const struct handler *table, i64 count,
                         const char *name, const struct json *body, struct expr **out) {
    i32 position = node_position(body);
    for (i64 i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return table[i].bind ? table[i].bind(b, q, body, out)
                                 : unsupported(b, position, "%s", table[i].what);
        }
    }
    return unsupported(b, position, "%s", name);
}

static FALLIBLE bind_a_expr(struct bind *b, struct query *q, const struct json *body,
                            struct expr **out) {
    const char *kind = json_text(body, "kind");
    TRY(bind_only(b, body, "kind name lexpr rexpr location", json_position(body)));
    return dispatch(b, q, operator_kinds, COUNT_OF(operator_kinds), kind ? kind : "", body, out);
}

static FALLIBLE bind_default(struct bind *b, struct query *q, const struct json *body,
                             struct expr **out) {
    UNUSED(q);
    UNUSED(out);
    FAIL_AT(b->err, SYNTAX, json_position(body), "DEFAULT is not allowed in this context");
}

static const struct handler node_kinds[] = {
    {"ColumnRef", bind_column, ""},
    {"A_Const", bind_const, ""},
    {"A_Expr", bind_a_expr, ""},
    {"FuncCall", bind_call, ""},
    {"BoolExpr", bind_logic, ""},
    {"TypeCast", bind_type_cast, ""},
    {"NullTest", bind_null_test, ""},
    {"CaseExpr", bind_case, ""},
    {"ParamRef", bind_param, ""},
    {"CoalesceExpr", bind_coalesce, ""},
    {"MinMaxExpr", bind_min_max, ""},
    {"BooleanTest", bind_bool_test, ""},
    {"CollateClause", bind_collate, ""},
    {"SetToDefault", bind_default, ""},
    {"SubLink", bind_sublink, ""},
    {"A_ArrayExpr", NULL, "ARRAY"},
    {"A_Indirection", bind_indirection, ""},
    {"RowExpr", NULL, "a row value"},
    {"SQLValueFunction", bind_value_function, ""},
    {"GroupingFunc", bind_grouping, ""},
    {"XmlExpr", NULL, "XML"},
    {"XmlSerialize", NULL, "XML"},
    {"CurrentOfExpr", NULL, "CURRENT OF"},
    {"MultiAssignRef", NULL, "assignment of several columns"},
    {"NamedArgExpr", NULL, "a named argument"},
};

/* Nodes that compute some operands for some rows only: subqueries there get conditions. */
static bool is_choice(const struct json *body) {
    return strcmp(body->key, "CaseExpr") == 0 || strcmp(body->key, "BoolExpr") == 0 ||
           strcmp(body->key, "CoalesceExpr") == 0;
}

FALLIBLE bind_expr(struct bind *b, struct query *q, const struct json *node, struct expr **out) {
    const struct json *body = node_body(node);
    if (!body) {
        FAIL(b->err, INTERNAL, "the parse tree is malformed");
    }
    bool choice = is_choice(body);
    i64 first = q->pending.count;
    if (choice && q->sublinks.count > 0 && bind_met_before(b, q, body, out)) {
        return ERR_OK;
    }
    TRY(bind_enter(b, NEST_EXPR, json_position(body)));
    TRY(dispatch(b, q, node_kinds, COUNT_OF(node_kinds), body->key, body, out));
    bind_leave(b, NEST_EXPR);
    if (choice && q->pending.count > first) {
        bind_note_met(b, q, body, *out);
    }
    return ERR_OK;
}
