/* bind_op.c: LIKE and SIMILAR TO as the grammar writes them: operands, ESCAPE, and the operator.
 *
 * Part of binding. What the operators take and give is in typing/operator.c. */
#include "sql/sql_int.h"

/* pattern ESCAPE 'c' arrives as like_escape(pattern, 'c'). */
static FALLIBLE bind_escape(struct bind *b, struct query *q, const struct json *body,
                            struct expr **out) {
    struct expr **args = NULL;
    i32 count = 0;
    TRY(bind_list(b, q, json_get(body, "args"), &args, &count));
    return operator_escape(b->t, args, count, json_position(body), out);
}

static bool is_like_escape(const struct json *node) {
    const char *name = "";
    JSON_EACH(part, json_get(node_body(node), "funcname")) {
        name = node_string(part);
    }
    return node_is(node, "FuncCall") && strcmp(name, "like_escape") == 0 &&
           json_count(json_get(node_body(node), "funcname")) == 2;
}

FALLIBLE bind_like(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    const struct json *right_node = json_get(body, "rexpr");
    struct expr *left = NULL;
    struct expr *right = NULL;
    const char *op = "";
    JSON_EACH(part, json_get(body, "name")) {
        op = node_string(part);
    }
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    TRY(is_like_escape(right_node) ? bind_escape(b, q, node_body(right_node), &right)
                                   : bind_expr(b, q, right_node, &right));
    return operator_like(b->t, op, left, right, position, out);
}

/* left SIMILAR TO pattern [ESCAPE e]: the pattern arrives as similar_to_escape(pattern[, e]). */
FALLIBLE bind_similar(struct bind *b, struct query *q, const struct json *body, struct expr **out) {
    i32 position = json_position(body);
    const struct json *call = node_body(json_get(body, "rexpr"));
    struct expr **args = NULL;
    struct expr *left = NULL;
    i32 count = 0;
    const char *op = "";
    JSON_EACH(part, json_get(body, "name")) {
        op = node_string(part);
    }
    TRY(bind_expr(b, q, json_get(body, "lexpr"), &left));
    TRY(bind_list(b, q, json_get(call, "args"), &args, &count));
    return operator_similar(b->t, op, left, args, count, position, out);
}
