/* bind_recursive.c: WITH RECURSIVE.
 *
 * Part of binding. A WITH query that names itself is `first UNION [ALL] again`: the rows of the
 * first term, and those the second makes of the rows that were new in the round before, until there
 * are none. It becomes a FIX over both terms; the name inside the second term is a WORK, the rows
 * of the last round. With UNION a row counts once: the first term loses its repeats, and the second
 * also the rows that are in the whole result so far, which is a WORK, too.
 *
 * What may name the query where is checked on the parse tree, with PostgreSQL's rules and errors.
 * The columns have the types of the first term. */
#include "sql/sql_int.h"

struct self {
    struct bind *b;
    const char *name;
    i32 count;
    b8 in_first, in_subquery, in_outer, in_except;
};

/* Reports a place where the query must not be named. */
static FALLIBLE misplaced(const struct self *self, i32 position, const char *where) {
    FAIL_AT(self->b->err, INVALID_RECURSION, position,
            "recursive reference to query \"%.100s\" must not appear %s", self->name, where);
}

static FALLIBLE found(struct self *self, i32 position) {
    if (self->in_first) {
        return misplaced(self, position, "within its non-recursive term");
    }
    if (self->in_subquery) {
        return misplaced(self, position, "within a subquery");
    }
    if (self->in_outer) {
        return misplaced(self, position, "within an outer join");
    }
    if (self->in_except) {
        return misplaced(self, position, "within EXCEPT");
    }
    if (++self->count > 1) {
        return misplaced(self, position, "more than once");
    }
    return ERR_OK;
}

static FALLIBLE search(struct self *self, const struct json *node);

static FALLIBLE search_join(struct self *self, const struct json *body) {
    bool left = json_is(body, "jointype", "JOIN_LEFT");
    bool right = json_is(body, "jointype", "JOIN_RIGHT");
    bool full = json_is(body, "jointype", "JOIN_FULL");
    b8 outer = self->in_outer;
    self->in_outer = outer || right || full;
    TRY(search(self, json_get(body, "larg")));
    self->in_outer = outer || left || full;
    TRY(search(self, json_get(body, "rarg")));
    self->in_outer = outer;
    return search(self, json_get(body, "quals"));
}

static FALLIBLE search_children(struct self *self, const struct json *node) {
    for (const struct json *at = node->first; at; at = at->next) {
        TRY(search(self, at));
    }
    return ERR_OK;
}

/* Every place below a node where the query is named. */
static FALLIBLE search(struct self *self, const struct json *node) {
    if (!node || (node->kind != JSON_OBJECT && node->kind != JSON_ARRAY)) {
        return ERR_OK;
    }
    TRY(bind_enter(self->b, NEST_EXPR, -1));
    wf_status status = ERR_OK;
    const char *relname = json_text(node, "relname");
    bool subquery = strcmp(node->key, "SubLink") == 0;
    b8 in_subquery = self->in_subquery;
    b8 in_except = self->in_except;
    self->in_subquery = in_subquery || subquery;
    if (strcmp(node->key, "RangeVar") == 0 && relname && !json_get(node, "schemaname") &&
        strcmp(relname, self->name) == 0) {
        status = found(self, json_position(node));
    } else if (strcmp(node->key, "JoinExpr") == 0) {
        status = search_join(self, node);
    } else if (json_is(node, "op", "SETOP_EXCEPT") || json_is(node, "op", "SETOP_INTERSECT")) {
        TRY(search(self, json_get(node, "larg")));
        self->in_except = in_except || json_is(node, "op", "SETOP_EXCEPT");
        status = search(self, json_get(node, "rarg"));
    } else {
        status = search_children(self, node);
    }
    self->in_subquery = in_subquery;
    self->in_except = in_except;
    bind_leave(self->b, NEST_EXPR);
    return status;
}

/* Whether the name occurs at all; no rules. */
static bool mentions(const struct json *node, const char *name) {
    if (!node || (node->kind != JSON_OBJECT && node->kind != JSON_ARRAY)) {
        return false;
    }
    const char *relname = json_text(node, "relname");
    if (strcmp(node->key, "RangeVar") == 0 && relname && strcmp(relname, name) == 0) {
        return !json_get(node, "schemaname");
    }
    for (const struct json *at = node->first; at; at = at->next) {
        if (mentions(at, name)) {
            return true;
        }
    }
    return false;
}

bool bind_names_itself(const struct cte *cte) {
    return cte->recursive && mentions(json_get(cte->body, "ctequery"), cte->name);
}

static FALLIBLE check_form(struct bind *b, const struct cte *cte, const struct json *query) {
    i32 position = json_position(cte->body);
    struct self self = {.b = b, .name = cte->name, .in_first = 1};
    if (!json_is(query, "op", "SETOP_UNION")) {
        FAIL_AT(b->err, INVALID_RECURSION, position,
                "recursive query \"%.100s\" does not have the form non-recursive-term UNION [ALL] "
                "recursive-term",
                cte->name);
    }
    TRY(search(&self, json_get(query, "larg")));
    self.in_first = 0;
    TRY(search(&self, json_get(query, "rarg")));
    static const char *const clauses[][2] = {
        {"sortClause", "ORDER BY"}, {"limitOffset", "OFFSET"}, {"limitCount", "LIMIT"}};
    for (i64 i = 0; i < COUNT_OF(clauses); i++) {
        if (json_get(query, clauses[i][0])) {
            FAIL_AT(b->err, NOT_SUPPORTED, position, "%s in a recursive query is not implemented",
                    clauses[i][1]);
        }
    }
    return ERR_OK;
}

struct rel *bind_work(struct bind *b, const struct cte_result *result, bool whole) {
    struct rel *work = rel_new(b->plan, REL_WORK, NULL, NULL);
    const struct rel *first = result->first;
    work->work.fix = result->fix;
    work->work.whole = whole;
    work->rows = MAX_OF(first->rows, 100);
    for (i64 i = 0; i < first->out.count; i++) {
        struct plan_col col = b->plan->cols.items[first->out.items[i]];
        u32 to = bind_col_new(b, NULL, result->names[i], col.type, true);
        VEC_PUSH(b->arena, &work->out, to);
    }
    return work;
}

/* Decimals grow from round to round: the first term gives them all digits there are. */
static struct rel *widen_first(struct bind *b, struct rel *first, const char **names) {
    i64 count = first->out.count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    bool wider = false;
    for (i64 i = 0; i < count; i++) {
        struct expr *col = expr_col(b->plan, first->out.items[i], -1);
        struct type wide = type_decimal(38, col->type.scale);
        exprs[i] = col;
        if (col->type.id == TYPE_DECIMAL && !type_eq(col->type, wide)) {
            exprs[i] = expr_one(b->t, EXPR_CAST, col, -1);
            exprs[i]->type = wide;
            wider = true;
        }
    }
    return wider ? bind_project(b, first, exprs, names, count) : first;
}

/* The second term in the types of the first. */
static FALLIBLE match_types(struct bind *b, const struct cte *cte, struct rel **io_again) {
    const struct cte_result *result = cte->result;
    i64 count = result->first->out.count;
    i32 position = json_position(cte->body);
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    bool casts = false;
    if ((*io_again)->out.count != count) {
        FAIL_AT(b->err, SYNTAX, position, "each UNION query must have the same number of columns");
    }
    for (i64 i = 0; i < count; i++) {
        struct type type = b->plan->cols.items[result->first->out.items[i]].type;
        struct expr *col = expr_col(b->plan, (*io_again)->out.items[i], position);
        bool decimals = type.id == TYPE_DECIMAL &&
                        (type_is_integer(col->type) ||
                         (col->type.id == TYPE_DECIMAL && col->type.scale <= type.scale));
        bool smaller = type_is_integer(type) && type_is_integer(col->type) &&
                       type_kind(col->type) <= type_kind(type) && col->type.id <= type.id;
        exprs[i] = col;
        if (type_eq(col->type, type)) {
            continue;
        }
        if (!decimals && !smaller) {
            char had[32];
            char has[32];
            FAIL_AT(b->err, DATATYPE_MISMATCH, position,
                    "recursive query \"%.100s\" column %lld has type %s in non-recursive term but "
                    "type %s overall",
                    cte->name, i + 1, type_print(type, had), type_print(col->type, has));
        }
        exprs[i] = expr_one(b->t, EXPR_CAST, col, position);
        exprs[i]->type = type;
        casts = true;
    }
    if (casts) {
        *io_again = bind_project(b, *io_again, exprs, result->names, count);
    }
    return ERR_OK;
}

/* Rows that are not in the result yet, each once: most of a round's are found first of all. */
static struct rel *new_rows(struct bind *b, const struct cte_result *result, struct rel *again) {
    struct rel *seen = bind_work(b, result, true);
    struct rel *join = rel_join(b->plan, JOIN_ANTI, again, seen);
    for (i64 i = 0; i < again->out.count; i++) {
        VEC_PUSH(b->arena, &join->join.left_keys, expr_col(b->plan, again->out.items[i], -1));
        VEC_PUSH(b->arena, &join->join.right_keys, expr_col(b->plan, seen->out.items[i], -1));
        VEC_PUSH(b->arena, &join->join.null_safe, (b8)1);
    }
    join->rows = again->rows;
    return bind_distinct_rel(b, join);
}

struct rel *bind_fix(struct bind *b, const struct cte_result *result, struct rel *again) {
    struct rel *fix = rel_new(b->plan, REL_FIX, result->first, again);
    fix->fix.number = result->fix;
    for (i64 i = 0; i < again->out.count; i++) {
        struct plan_col col = b->plan->cols.items[result->first->out.items[i]];
        u32 to = bind_col_new(b, NULL, result->names[i], col.type, true);
        VEC_PUSH(b->arena, &fix->fix.cols[0], result->first->out.items[i]);
        VEC_PUSH(b->arena, &fix->fix.cols[1], again->out.items[i]);
        VEC_PUSH(b->arena, &fix->out, to);
    }
    fix->rows = result->first->rows * 10;
    return fix;
}

FALLIBLE bind_recursion(struct bind *b, const struct cte *cte, struct select_out *out) {
    const struct json *query = node_body(json_get(cte->body, "ctequery"));
    struct cte_result *result = cte->result;
    bool all = json_flag(query, "all");
    TRY(check_form(b, cte, query));
    if (json_get(query, "withClause")) {
        return unsupported(b, json_position(cte->body), "WITH inside a recursive query");
    }
    struct select_out first;
    struct select_out again;
    TRY(bind_subselect(b, json_get(query, "larg"), cte->outer, cte->outer_query, false, &first));
    TRY(bind_cte_names(b, cte, &first));
    first.rel = widen_first(b, first.rel, first.names);
    result->first = all ? first.rel : bind_distinct_rel(b, first.rel);
    result->names = first.names;
    result->fix = ++b->plan->fix_count;
    result->recursing = 1;
    TRY(bind_subselect(b, json_get(query, "rarg"), cte, cte->outer_query, false, &again));
    result->recursing = 0;
    TRY(match_types(b, cte, &again.rel));
    struct rel *rows = all ? again.rel : new_rows(b, result, again.rel);
    out->rel = bind_fix(b, result, rows);
    out->names = first.names;
    return ERR_OK;
}

bool bind_reads_work(const struct rel *rel) {
    bool reads = rel && rel->kind == REL_WORK;
    for (i32 i = 0; rel && rel->kind == REL_JOIN && i < rel->input_count && !reads; i++) {
        reads = bind_reads_work(rel->inputs[i]);
    }
    return reads;
}
