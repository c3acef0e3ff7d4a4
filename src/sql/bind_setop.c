/* bind_setop.c: UNION, INTERSECT and EXCEPT, with and without ALL.
 *
 * Part of binding. UNION ALL is an operator. The others are made of it and of joins in which NULL
 * equals NULL. UNION is UNION ALL without repeats. INTERSECT and EXCEPT are the distinct rows of
 * the left with and without a match on the right. Their ALL forms number equal rows on both sides
 * first, so that the n-th matches the n-th.
 *
 * Columns come to one type by the rules of CASE; a quoted literal takes the type of the other side.
 */
#include "sql/sql_int.h"

enum { ARMS_MAX = 4000 };

static const char *op_word(const struct json *body) {
    return json_is(body, "op", "SETOP_UNION")       ? "UNION"
           : json_is(body, "op", "SETOP_INTERSECT") ? "INTERSECT"
                                                    : "EXCEPT";
}

struct rel *bind_union_rel(struct bind *b, struct rel *left, struct rel *right) {
    struct rel *rel = rel_new(b->plan, REL_UNION, left, right);
    for (i64 i = 0; i < left->out.count; i++) {
        struct plan_col l = b->plan->cols.items[left->out.items[i]];
        struct plan_col r = b->plan->cols.items[right->out.items[i]];
        struct type type = type_eq(l.type, r.type) ? l.type : type_of((enum type_id)l.type.id);
        u32 col = bind_col_new(b, NULL, l.name, type, l.nullable || r.nullable);
        VEC_PUSH(b->arena, &rel->arms.cols[0], left->out.items[i]);
        VEC_PUSH(b->arena, &rel->arms.cols[1], right->out.items[i]);
        VEC_PUSH(b->arena, &rel->out, col);
    }
    rel->rows = left->rows + right->rows;
    return rel;
}

/* A literal of the select list that has no type yet. */
static struct expr *open_literal(const struct rel *rel, i64 i) {
    bool open = rel->kind == REL_PROJECT && is_unknown(rel->project.exprs.items[i]) &&
                rel->project.exprs.items[i]->kind == EXPR_CONST;
    return open ? rel->project.exprs.items[i] : NULL;
}

/* Brings column i of both sides to one type; casts[side] gets what a projection must compute. */
static FALLIBLE unify_column(struct bind *b, struct rel *const sides[2], i64 i, const char *word,
                             struct expr *casts[2]) {
    struct expr *both[2];
    struct type type;
    for (i32 k = 0; k < 2; k++) {
        struct expr *literal = open_literal(sides[k], i);
        both[k] = literal ? literal : expr_col(b->plan, sides[k]->out.items[i], -1);
        both[k]->position = both[k]->position < 0 ? sides[k]->position : both[k]->position;
    }
    TRY(coerce_common(b->t, both, 2, word, &type));
    for (i32 k = 0; k < 2; k++) {
        casts[k] = both[k];
        if (open_literal(sides[k], i)) {
            u32 col = sides[k]->out.items[i];
            sides[k]->project.exprs.items[i] = both[k];
            b->plan->cols.items[col].type = both[k]->type;
            casts[k] = expr_col(b->plan, col, -1);
        }
    }
    return ERR_OK;
}

static FALLIBLE unify(struct bind *b, struct rel *sides[2], const char **names, const char *word,
                      i32 position) {
    i64 count = sides[0]->out.count;
    if (sides[1]->out.count != count) {
        FAIL_AT(b->err, SYNTAX, position, "each %s query must have the same number of columns",
                word);
    }
    struct expr **casts[2] = {NEW_ARRAY(b->arena, struct expr *, count + 1),
                              NEW_ARRAY(b->arena, struct expr *, count + 1)};
    bool needed[2] = {false, false};
    for (i64 i = 0; i < count; i++) {
        struct expr *pair[2] = {NULL, NULL};
        TRY(unify_column(b, sides, i, word, pair));
        for (i32 k = 0; k < 2; k++) {
            casts[k][i] = pair[k];
            needed[k] = needed[k] || pair[k]->kind != EXPR_COL;
        }
    }
    for (i32 k = 0; k < 2; k++) {
        sides[k] = needed[k] ? bind_project(b, sides[k], casts[k], names, count) : sides[k];
    }
    return ERR_OK;
}

/* Adds the number of a row among those equal to it. */
static struct rel *numbered(struct bind *b, struct rel *rel) {
    u32 col = bind_col_new(b, NULL, "row_number", type_of(TYPE_BIGINT), false);
    struct rel *window = rel_numbered(b->plan, rel, col);
    for (i64 i = 0; i < rel->out.count; i++) {
        VEC_PUSH(b->arena, &window->window.keys, expr_col(b->plan, rel->out.items[i], -1));
    }
    return window;
}

/* Rows of the left that do, or do not, occur on the right. */
static struct rel *match_rows(struct bind *b, enum join_kind kind, struct rel *left,
                              struct rel *right) {
    struct rel *join = rel_join(b->plan, kind, left, right);
    for (i64 i = 0; i < left->out.count; i++) {
        VEC_PUSH(b->arena, &join->join.left_keys, expr_col(b->plan, left->out.items[i], -1));
        VEC_PUSH(b->arena, &join->join.right_keys, expr_col(b->plan, right->out.items[i], -1));
        VEC_PUSH(b->arena, &join->join.null_safe, (b8)1);
    }
    join->rows = left->rows;
    return join;
}

static struct rel *combine(struct bind *b, const struct json *body, struct rel *left,
                           struct rel *right, const char **names) {
    bool all = json_flag(body, "all");
    if (json_is(body, "op", "SETOP_UNION")) {
        struct rel *rel = bind_union_rel(b, left, right);
        return all ? rel : bind_distinct_rel(b, rel);
    }
    enum join_kind kind = json_is(body, "op", "SETOP_INTERSECT") ? JOIN_SEMI : JOIN_ANTI;
    if (!all) {
        return match_rows(b, kind, bind_distinct_rel(b, left), right);
    }
    struct rel *join = match_rows(b, kind, numbered(b, left), numbered(b, right));
    i64 count = left->out.count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    for (i64 i = 0; i < count; i++) {
        exprs[i] = expr_col(b->plan, left->out.items[i], -1);
    }
    return bind_project(b, join, exprs, names, count);
}

/* Whether a left operand is a set operation and nothing else: no WITH, ORDER BY or LIMIT. */
static bool is_plain_setop(const struct json *body) {
    bool plain = json_is(body, "op", "SETOP_UNION") || json_is(body, "op", "SETOP_INTERSECT") ||
                 json_is(body, "op", "SETOP_EXCEPT");
    JSON_EACH(field, body) {
        const char *key = field->key;
        plain = plain &&
                (strcmp(key, "op") == 0 || strcmp(key, "all") == 0 || strcmp(key, "larg") == 0 ||
                 strcmp(key, "rarg") == 0 || strcmp(key, "limitOption") == 0);
    }
    return plain;
}

static FALLIBLE bind_arm(struct bind *b, const struct json *node, const struct cte *ctes,
                         struct query *outer, struct select_out *out) {
    i32 position = node_position(node);
    const struct json *into = json_get(node, "intoClause");
    if (into) {
        FAIL_AT(b->err, SYNTAX, json_position(json_get(into, "rel")),
                "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT");
    }
    TRY(bind_subselect(b, node, ctes, outer, true, out));
    out->rel->position = position;
    return ERR_OK;
}

/* a UNION b UNION c … is a chain down the left side, of any length: bound from its end, not by
 * recursion. */
FALLIBLE bind_setop(struct bind *b, const struct json *body, const struct cte *ctes,
                    struct query *outer, struct select_out *out) {
    VEC(const struct json *) chain = {0};
    const struct json *at = body;
    do {
        VEC_PUSH(b->arena, &chain, at);
        at = json_get(at, "larg");
    } while (is_plain_setop(at));
    if (chain.count > ARMS_MAX) {
        FAIL_AT(b->err, TOO_COMPLEX, node_position(body),
                "a statement can have at most %d set operations in a row", (int)ARMS_MAX);
    }
    struct select_out left;
    TRY(bind_arm(b, at, ctes, outer, &left));
    struct rel *rel = left.rel;
    for (i64 i = chain.count; i-- > 0;) {
        const struct json *node = chain.items[i];
        const struct json *rarg = json_get(node, "rarg");
        struct select_out right;
        TRY(bind_arm(b, rarg, ctes, outer, &right));
        struct rel *sides[2] = {rel, right.rel};
        i32 position = node_position(json_get(rarg, "targetList"));
        TRY(unify(b, sides, left.names, op_word(node), position));
        rel = combine(b, node, sides[0], sides[1], left.names);
        rel->position = node_position(node);
    }
    return bind_ordered(b, body, rel, left.names, true, out);
}
