/* bind_row.c: row values: (a, b) = (c, d), (a, b) IN ((1, 2), (3, 4)), (a, b) = (SELECT …), and
 * lists written as arrays after ANY and ALL.
 *
 * Part of binding. Rows exist only as operands of comparisons, which come apart into comparisons of
 * their fields: = and <> are AND and OR of them, < and its kin compare the first fields that
 * differ. So neither plan nor execution knows rows. */
#include "sql/sql_int.h"

#include "codes/func.h"

static FALLIBLE fields_ordered(struct bind *b, const char *op, struct expr **left,
                               struct expr **right, i32 count, i32 position, struct expr **out) {
    struct type boolean = type_of(TYPE_BOOLEAN);
    char strict[2] = {op[0], '\0'};
    TRY(operator_binary(b->t, op, left[count - 1], right[count - 1], position, out));
    for (i32 i = count - 2; i >= 0; i--) { /* a < c OR (a = c AND rest) */
        struct expr *both[2] = {NULL, *out};
        struct expr *either[2] = {NULL, NULL};
        TRY(operator_binary(b->t, "=", left[i], right[i], position, &both[0]));
        TRY(operator_binary(b->t, strict, left[i], right[i], position, &either[0]));
        either[1] = expr_many(b->t, EXPR_AND, boolean, position, 2, both);
        *out = expr_many(b->t, EXPR_OR, boolean, position, 2, either);
    }
    return ERR_OK;
}

FALLIBLE bind_row_compare(struct bind *b, const char *op, struct expr **left, struct expr **right,
                          i32 count, i32 position, struct expr **out) {
    bool equal = strcmp(op, "=") == 0;
    if (count == 1) {
        if (strcmp(op, "~~") == 0 || strcmp(op, "!~~") == 0) {
            TRY(coerce_to(b->t, left[0], type_of(TYPE_TEXT), &left[0]));
            *out = expr_call(b->arena, FUNC_LIKE, type_of(TYPE_BOOLEAN), position, 2, left[0],
                             right[0]);
            *out = op[0] == '!' ? expr_one(b->t, EXPR_NOT, *out, position) : *out;
            return ERR_OK;
        }
        return operator_binary(b->t, op, left[0], right[0], position, out);
    }
    if (op[0] == '<' || op[0] == '>' || equal) {
        if (!equal && strcmp(op, "<>") != 0) {
            return fields_ordered(b, op, left, right, count, position, out);
        }
        struct expr **parts = NEW_ARRAY(b->arena, struct expr *, count);
        for (i32 i = 0; i < count; i++) {
            TRY(operator_binary(b->t, op, left[i], right[i], position, &parts[i]));
        }
        *out = expr_many(b->t, equal ? EXPR_AND : EXPR_OR, type_of(TYPE_BOOLEAN), position, count,
                         parts);
        return ERR_OK;
    }
    return unsupported(b, position, "operator %s on rows", op);
}

static bool is_scalar_sublink(const struct json *node) {
    return node_is(node, "SubLink") && json_is(node_body(node), "subLinkType", "EXPR_SUBLINK");
}

bool bind_is_star(const struct json *node) {
    bool column = node_is(node, "ColumnRef");
    const struct json *last = column ? json_first(json_get(node_body(node), "fields")) : NULL;
    while (last && last->next) {
        last = last->next;
    }
    return last && node_is(last, "A_Star");
}

/* The items between ROW's parentheses, where t.* is all columns of t. */
static FALLIBLE row_items(struct bind *b, struct query *q, const struct json *list,
                          struct expr ***out, i32 *out_count) {
    VEC(struct expr *) all = {0};
    JSON_EACH(node, list) {
        struct expr **fields = NULL, *one = NULL;
        i32 count = 0;
        if (bind_is_star(node)) {
            TRY(bind_whole_row(b, q, node, &fields, &count));
        }
        for (i32 i = 0; i < count; i++) {
            VEC_PUSH(b->arena, &all, fields[i]);
        }
        if (!fields) {
            TRY(bind_expr(b, q, node, &one));
            VEC_PUSH(b->arena, &all, one);
        }
    }
    *out_count = (i32)all.count;
    *out = all.items ? all.items : NEW_ARRAY(b->arena, struct expr *, 1);
    return ERR_OK;
}

FALLIBLE bind_row_fields(struct bind *b, struct query *q, const struct json *node,
                         struct expr ***out, i32 *out_count) {
    if (node_is(node, "RowExpr")) {
        return row_items(b, q, json_get(node_body(node), "args"), out, out_count);
    }
    return bind_whole_row(b, q, node, out, out_count);
}

static FALLIBLE row_fields(struct bind *b, struct query *q, const struct json *node,
                           struct expr ***out, i32 *out_count) {
    if (is_scalar_sublink(node)) {
        return bind_row_subquery(b, q, node_body(node), out, out_count);
    }
    return row_items(b, q, json_get(node_body(node), "args"), out, out_count);
}

/* Both sides of an operator on rows. */
struct row_pair {
    struct expr **left, **right;
    i32 left_count, right_count;
    i32 position;
};

static FALLIBLE bind_pair(struct bind *b, struct query *q, const struct json *body,
                          struct row_pair *out) {
    const struct json *right = json_get(body, "rexpr");
    out->position = json_position(body);
    TRY(row_fields(b, q, json_get(body, "lexpr"), &out->left, &out->left_count));
    TRY(row_fields(b, q, right, &out->right, &out->right_count));
    if (is_scalar_sublink(right) && out->right_count != out->left_count) {
        FAIL_AT(b->err, SYNTAX, out->position, "subquery has too %s columns",
                out->right_count > out->left_count ? "many" : "few");
    }
    return ERR_OK;
}

static FALLIBLE need_equal_counts(struct bind *b, const struct row_pair *pair) {
    if (pair->left_count != pair->right_count) {
        FAIL_AT(b->err, SYNTAX, pair->position, "unequal number of entries in row expressions");
    }
    return ERR_OK;
}

static FALLIBLE compare_rows(struct bind *b, const char *op, const struct row_pair *pair,
                             struct expr **out) {
    TRY(need_equal_counts(b, pair));
    if (pair->left_count == 0) {
        return unsupported(b, pair->position, "a row without fields");
    }
    for (i32 i = 0; i < pair->left_count; i++) {
        TRY(typing_sharable(b->t, pair->left[i]));
    }
    return bind_row_compare(b, op, pair->left, pair->right, pair->left_count, pair->position, out);
}

FALLIBLE bind_row_operator(struct bind *b, struct query *q, const struct json *body, const char *op,
                           bool *out_done, struct expr **out) {
    const struct json *left = json_get(body, "lexpr");
    const struct json *right = json_get(body, "rexpr");
    bool left_row = node_is(left, "RowExpr");
    bool right_row = node_is(right, "RowExpr");
    *out_done = (left_row && (right_row || is_scalar_sublink(right))) ||
                (right_row && is_scalar_sublink(left));
    if (!*out_done) {
        return ERR_OK;
    }
    struct row_pair pair = {0};
    TRY(bind_pair(b, q, body, &pair));
    TRY(need_no_set(b, q, pair.left, pair.left_count, pair.position));
    TRY(need_no_set(b, q, pair.right, pair.right_count, pair.position));
    return compare_rows(b, op, &pair, out);
}

FALLIBLE bind_row_distinct(struct bind *b, struct query *q, const struct json *body, bool negated,
                           bool *out_done, struct expr **out) {
    struct row_pair pair = {0};
    *out_done =
        node_is(json_get(body, "lexpr"), "RowExpr") && node_is(json_get(body, "rexpr"), "RowExpr");
    if (!*out_done) {
        return ERR_OK;
    }
    TRY(bind_pair(b, q, body, &pair));
    TRY(need_equal_counts(b, &pair));
    struct expr **tests = pair.left;
    i32 count = pair.left_count;
    for (i32 i = 0; i < count; i++) {
        TRY(choice_distinct(b->t, tests[i], pair.right[i], negated, pair.position, &tests[i]));
    }
    struct type boolean = type_of(TYPE_BOOLEAN);
    *out = count == 0   ? expr_bool(b->t, negated, pair.position)
           : count == 1 ? tests[0]
                        : expr_many(b->t, negated ? EXPR_AND : EXPR_OR, boolean, pair.position,
                                    count, tests);
    return ERR_OK;
}

FALLIBLE bind_row_null(struct bind *b, struct expr **fields, i32 count, bool negated, i32 position,
                       struct expr **out) {
    struct expr **tests = NEW_ARRAY(b->arena, struct expr *, count + 1);
    for (i32 i = 0; i < count; i++) {
        TRY(coerce_unknown(b->t, fields[i], type_of(TYPE_TEXT), &tests[i]));
        tests[i] = expr_one(b->t, EXPR_IS_NULL, tests[i], position);
        tests[i] = negated ? expr_one(b->t, EXPR_NOT, tests[i], position) : tests[i];
    }
    *out = count == 0   ? expr_bool(b->t, true, position)
           : count == 1 ? tests[0]
                        : expr_many(b->t, EXPR_AND, type_of(TYPE_BOOLEAN), position, count, tests);
    return ERR_OK;
}

FALLIBLE bind_row_in(struct bind *b, struct query *q, const struct json *body, bool *out_done,
                     struct expr **out) {
    const struct json *left = json_get(body, "lexpr");
    const struct json *items = json_get(node_body(json_get(body, "rexpr")), "items");
    i32 position = json_position(body);
    *out_done = node_is(left, "RowExpr");
    if (!*out_done) {
        return ERR_OK;
    }
    struct row_pair pair = {.position = position};
    TRY(row_fields(b, q, left, &pair.left, &pair.left_count));
    i32 count = 0;
    struct expr **tests = NEW_ARRAY(b->arena, struct expr *, json_count(items) + 1);
    JSON_EACH(item, items) {
        if (!node_is(item, "RowExpr")) {
            return unsupported(b, node_position(item), "IN of a row and something else");
        }
        TRY(row_fields(b, q, item, &pair.right, &pair.right_count));
        TRY(need_no_set(b, q, pair.left, pair.left_count, pair.position));
        TRY(need_no_set(b, q, pair.right, pair.right_count, pair.position));
        TRY(compare_rows(b, "=", &pair, &tests[count++]));
    }
    *out = count == 1 ? tests[0]
                      : expr_many(b->t, EXPR_OR, type_of(TYPE_BOOLEAN), position, count, tests);
    bool negated = strcmp(node_string(json_first(json_get(body, "name"))), "=") != 0;
    *out = negated ? expr_one(b->t, EXPR_NOT, *out, position) : *out;
    return ERR_OK;
}

/* x op ANY (ARRAY[a, b]): OR of the comparisons; ALL: AND. */
FALLIBLE bind_any_array(struct bind *b, struct query *q, const struct json *body,
                        struct expr **out) {
    i32 position = json_position(body);
    bool any = json_is(body, "kind", "AEXPR_OP_ANY");
    const struct json *array = json_get(body, "rexpr");
    if (!node_is(array, "A_ArrayExpr")) {
        struct expr *other = NULL;
        TRY(bind_expr(b, q, array, &other));
        if (!is_unknown(other)) {
            FAIL_AT(b->err, WRONG_OBJECT, position,
                    "op ANY/ALL (array) requires array on right side");
        }
        return unsupported(b, position, "%s of an array that is not written as ARRAY[...]",
                           any ? "ANY" : "ALL");
    }
    const char *op = "";
    JSON_EACH(part, json_get(body, "name")) {
        op = node_string(part);
    }
    struct expr *left = NULL;
    struct expr **items = NULL;
    i32 count = 0;
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    TRY(typing_sharable(b->t, left));
    TRY(bind_list(b, q, json_get(node_body(array), "elements"), &items, &count));
    for (i32 i = 0; i < count; i++) {
        TRY(bind_row_compare(b, op, &left, &items[i], 1, position, &items[i]));
        if (items[i]->type.id != TYPE_BOOLEAN) {
            FAIL_AT(b->err, WRONG_OBJECT, position,
                    "op ANY/ALL (array) requires operator to yield boolean");
        }
    }
    if (count == 0) {
        *out = expr_bool(b->t, !any, position);
        return ERR_OK;
    }
    *out = count == 1 ? items[0]
                      : expr_many(b->t, any ? EXPR_OR : EXPR_AND, type_of(TYPE_BOOLEAN), position,
                                  count, items);
    return ERR_OK;
}
