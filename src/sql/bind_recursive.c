/* bind_recursive.c: WITH RECURSIVE.
 *
 * Part of binding. A WITH query that names itself is `first UNION [ALL] again`: the rows of the
 * first term, and those the second makes of the rows that were new in the round before, until there
 * are none. It becomes a FIX over both terms; the name inside the second term is a WORK, the rows
 * of the last round. With UNION a row counts once.
 *
 * Queries that name each other are relations of one FIX. Each is a union of terms, or one term; those
 * that name no query of the group are where it begins. With UNION a term may name several of them,
 * or one several times.
 *
 * What may name the query where is checked on the parse tree, with PostgreSQL's rules and errors.
 * The columns have the types of the first term. */
#include "sql/sql_int.h"

/* A name that a WITH further inside has for a query of its own. */
struct hidden {
    const struct hidden *next;
    const char *name;
};
struct self {
    struct bind *b;
    const struct hidden *hidden;
    struct cte *const *ctes; /* whose names are looked for */
    i64 cte_count;
    const char *name; /* the one that was found last */
    i32 count;
    b8 once; /* only one may be named */
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
    if (++self->count > 1 && self->once) {
        return misplaced(self, position, "more than once");
    }
    return ERR_OK;
}

static bool is_hidden(const struct self *self, const char *name) {
    const struct hidden *at = self->hidden;
    while (at && strcmp(at->name, name) != 0) {
        at = at->next;
    }
    return at;
}

static const char *named(const struct self *self, const struct json *node) {
    const char *relname = json_text(node, "relname");
    bool plain = strcmp(node->key, "RangeVar") == 0 && relname && !json_get(node, "schemaname");
    for (i64 i = 0; plain && i < self->cte_count; i++) {
        if (strcmp(relname, self->ctes[i]->name) == 0 && !is_hidden(self, relname)) {
            return self->ctes[i]->name;
        }
    }
    return NULL;
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

static bool is_with(const struct json *node) {
    return strcmp(node->key, "withClause") == 0;
}

static FALLIBLE search_children(struct self *self, const struct json *node) {
    for (const struct json *at = node->first; at; at = at->next) {
        TRY(is_with(at) ? ERR_OK : search(self, at));
    }
    return ERR_OK;
}

static void hide(struct self *self, const struct json *cte) {
    struct hidden *hidden = NEW(self->b->arena, struct hidden);
    const char *name = json_text(cte, "ctename");
    *hidden = (struct hidden){self->hidden, name ? name : ""};
    self->hidden = hidden;
}

/* Queries of a WITH see those before them, of a WITH RECURSIVE all; what stands behind it sees all. */
static FALLIBLE search_with(struct self *self, const struct json *with) {
    bool recursive = json_flag(with, "recursive");
    JSON_EACH(item, json_get(with, "ctes")) {
        if (recursive) {
            hide(self, node_body(item));
        }
    }
    JSON_EACH(item, json_get(with, "ctes")) {
        TRY(search(self, json_get(node_body(item), "ctequery")));
        if (!recursive) {
            hide(self, node_body(item));
        }
    }
    return ERR_OK;
}

static const struct json *with_of(const struct json *node) {
    return node->kind == JSON_OBJECT ? json_get(node, "withClause") : NULL;
}

/* Every place below a node where the query is named. */
static FALLIBLE search(struct self *self, const struct json *node) {
    if (!node || (node->kind != JSON_OBJECT && node->kind != JSON_ARRAY)) {
        return ERR_OK;
    }
    TRY(bind_enter(self->b, NEST_EXPR, -1));
    const struct hidden *hidden = self->hidden;
    wf_status status = search_with(self, with_of(node));
    const char *name = named(self, node);
    bool subquery = strcmp(node->key, "SubLink") == 0;
    b8 in_subquery = self->in_subquery;
    b8 in_except = self->in_except;
    self->in_subquery = in_subquery || subquery;
    if (status) { /* one inside it was misplaced */
    } else if (name) {
        self->name = name;
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
    self->hidden = hidden;
    bind_leave(self->b, NEST_EXPR);
    return status;
}

static bool mentions(const struct json *node, const char *name);

static bool with_defines(const struct json *with, const char *name) {
    JSON_EACH(item, json_get(with, "ctes")) {
        const char *own = json_text(node_body(item), "ctename");
        if (own && strcmp(own, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a query of the WITH names one from outside so. */
static bool with_mentions(const struct json *with, const char *name) {
    bool recursive = json_flag(with, "recursive");
    if (recursive && with_defines(with, name)) {
        return false;
    }
    JSON_EACH(item, json_get(with, "ctes")) {
        const char *own = json_text(node_body(item), "ctename");
        if (mentions(json_get(node_body(item), "ctequery"), name)) {
            return true;
        }
        if (!recursive && own && strcmp(own, name) == 0) {
            return false;
        }
    }
    return false;
}

/* Whether the name occurs at all and means the query outside; no rules. */
static bool mentions(const struct json *node, const char *name) {
    if (!node || (node->kind != JSON_OBJECT && node->kind != JSON_ARRAY)) {
        return false;
    }
    const char *relname = json_text(node, "relname");
    if (strcmp(node->key, "RangeVar") == 0 && relname && strcmp(relname, name) == 0) {
        return !json_get(node, "schemaname");
    }
    const struct json *with = with_of(node);
    if (with_mentions(with, name)) {
        return true;
    }
    bool meant = !with_defines(with, name);
    for (const struct json *at = node->first; at && meant; at = at->next) {
        if (!is_with(at) && mentions(at, name)) {
            return true;
        }
    }
    return false;
}

bool bind_names_itself(const struct cte *cte) {
    return cte->recursive && mentions(json_get(cte->body, "ctequery"), cte->name);
}

/* What may not stand behind the terms of a recursion. */
static FALLIBLE check_clauses(struct bind *b, const struct cte *cte, const struct json *query) {
    i32 position = json_position(cte->body);
    static const char *const clauses[][2] = {
        {"sortClause", "ORDER BY"},
        {"limitOffset", "OFFSET"},
        {"limitCount", "LIMIT"},
        {"lockingClause", "FOR UPDATE/SHARE"}};
    for (i64 i = 0; i < COUNT_OF(clauses); i++) {
        if (json_get(query, clauses[i][0])) {
            FAIL_AT(b->err, NOT_SUPPORTED, position, "%s in a recursive query is not implemented",
                    clauses[i][1]);
        }
    }
    return ERR_OK;
}

static FALLIBLE check_form(struct bind *b, const struct cte *cte, const struct json *query) {
    i32 position = json_position(cte->body);
    struct cte *own = (struct cte *)(size_t)cte;
    struct self self = {.b = b, .ctes = &own, .cte_count = 1, .once = 1, .in_first = 1};
    if (!json_is(query, "op", "SETOP_UNION")) {
        FAIL_AT(b->err, INVALID_RECURSION, position,
                "recursive query \"%.100s\" does not have the form non-recursive-term UNION [ALL] "
                "recursive-term",
                cte->name);
    }
    TRY(search(&self, json_get(query, "larg")));
    self.in_first = 0;
    TRY(search(&self, json_get(query, "rarg")));
    return check_clauses(b, cte, query);
}

/* Columns that were made without the binder have their own names. */
static struct rel *with_origins(struct bind *b, struct rel *rel) {
    bind_origins(b);
    for (i64 i = 0; i < rel->out.count; i++) {
        u32 col = rel->out.items[i];
        b->origins.items[col].name = b->plan->cols.items[col].name;
    }
    return rel;
}

struct rel *bind_fix_atom(struct bind *b, struct fix_draft *draft, u32 relation) {
    return with_origins(b, fix_atom(draft, relation));
}

/* The columns of a relation that begins with `first`. */
static struct plan_col *relation_cols(struct bind *b, const struct rel *first, const char **names) {
    struct plan_col *cols = NEW_ARRAY(b->arena, struct plan_col, first->out.count + 1);
    for (i64 i = 0; i < first->out.count; i++) {
        cols[i] = b->plan->cols.items[first->out.items[i]];
        cols[i].name = names[i];
    }
    return cols;
}

struct fix_draft *bind_fix_open(struct bind *b, struct rel *first, const char **names,
                                bool distinct) {
    struct fix_draft *draft = fix_open(b->plan, 1);
    fix_relation(draft, 0, relation_cols(b, first, names), first->out.count, distinct);
    fix_base(draft, 0, first);
    return draft;
}

struct rel *bind_fix_close(struct bind *b, struct fix_draft *draft, struct rel *again) {
    fix_rule(draft, 0, again);
    return with_origins(b, fix_close(draft));
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

/* Another term in the types of the first. */
static FALLIBLE match_types(struct bind *b, const struct cte *cte, struct rel **io_again) {
    const struct cte_result *result = cte->result;
    i64 count = result->col_count;
    i32 position = json_position(cte->body);
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    bool casts = false;
    if ((*io_again)->out.count != count) {
        FAIL_AT(b->err, SYNTAX, position, "each UNION query must have the same number of columns");
    }
    for (i64 i = 0; i < count; i++) {
        struct type type = result->cols[i].type;
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

/* SEARCH and CYCLE look at one row and the one it comes from. */
static FALLIBLE check_sides(struct bind *b, const struct cte *cte, const struct json *query) {
    static const char *const sides[] = {"larg", "rarg"};
    bool clauses = json_get(cte->body, "search_clause") || json_get(cte->body, "cycle_clause");
    for (i32 i = 0; clauses && i < 2; i++) {
        if (json_get(json_get(query, sides[i]), "larg")) {
            FAIL_AT(b->err, SYNTAX, json_position(cte->body),
                    "with a SEARCH or CYCLE clause, the %s side of the UNION must be a SELECT",
                    i ? "right" : "left");
        }
    }
    return ERR_OK;
}

FALLIBLE bind_recursion(struct bind *b, const struct cte *cte, struct select_out *out) {
    const struct json *query = node_body(json_get(cte->body, "ctequery"));
    struct cte_result *result = cte->result;
    const struct json *with = json_get(query, "withClause");
    if (with_mentions(with, cte->name)) {
        const struct self self = {.b = b, .name = cte->name};
        return misplaced(&self, json_position(cte->body), "within a subquery");
    }
    TRY(check_form(b, cte, query));
    const struct cte *scope = cte->scope;
    struct select_out first;
    struct select_out again;
    struct way *way = NULL;
    TRY(bind_with(b, with, cte->outer_query, &scope));
    TRY(bind_subselect(b, json_get(query, "larg"), scope, cte->outer_query, false, &first));
    TRY(bind_cte_names(b, cte, &first));
    first.rel = widen_first(b, first.rel, first.names);
    result->names = first.names;
    result->cols = relation_cols(b, first.rel, first.names);
    result->col_count = first.rel->out.count;
    TRY(check_sides(b, cte, query));
    TRY(bind_way_begin(b, cte, &first.rel, &way));
    result->cols = relation_cols(b, first.rel, result->names);
    result->col_count = first.rel->out.count;
    result->draft = bind_fix_open(b, first.rel, result->names, !json_flag(query, "all"));
    fix_call(result->draft, 0, cte->name);
    TRY(bind_subselect(b, json_get(query, "rarg"), scope, cte->outer_query, false, &again));
    TRY(bind_with_unused(b, scope, cte->scope));
    TRY(way ? bind_way_on(way, &again.rel) : ERR_OK);
    TRY(match_types(b, cte, &again.rel));
    out->rel = bind_fix_close(b, result->draft, again.rel);
    out->rel = way ? bind_way_end(way, out->rel) : out->rel;
    out->names = result->names;
    result->draft = NULL;
    return ERR_OK;
}

/* queries that name each other */

void bind_find_groups(struct bind *b, struct cte **ctes, i64 count) {
    b8 *reaches = NEW_ARRAY(b->arena, b8, count * count + 1);
    for (i64 i = 0; i < count && count > 1; i++) {
        for (i64 k = 0; k < count; k++) {
            reaches[i * count + k] = mentions(json_get(ctes[i]->body, "ctequery"), ctes[k]->name);
        }
    }
    for (i64 via = 0; via < count; via++) {
        for (i64 i = 0; i < count * count; i++) {
            reaches[i] |= reaches[i / count * count + via] & reaches[via * count + i % count];
        }
    }
    for (i64 i = 0; i < count; i++) {
        struct cte_group *group = NEW(b->arena, struct cte_group);
        group->items = NEW_ARRAY(b->arena, struct cte *, count);
        for (i64 k = 0; k < count && !ctes[i]->group; k++) {
            bool both = reaches[i * count + k] && reaches[k * count + i];
            if (both || k == i) {
                group->items[group->count++] = ctes[k];
            }
        }
        for (i64 k = 0; group->count > 1 && k < group->count; k++) {
            group->items[k]->group = group;
        }
    }
}

struct mutual_term {
    struct cte *cte;
    const struct json *query;
    b8 recursive;
    b8 done;
};

struct mutual {
    struct bind *b;
    const struct cte_group *group;
    struct fix_draft *draft;
    VEC(struct mutual_term) terms;
};

/* The operands of a union, as far as it is one alike. */
static FALLIBLE find_terms(struct mutual *m, struct cte *cte, const struct json *query, bool all) {
    const struct json *body = node_is(query, "SelectStmt") ? node_body(query) : query;
    bool plain = !json_get(body, "withClause") && !json_get(body, "sortClause") &&
                 !json_get(body, "limitCount") && !json_get(body, "limitOffset");
    TRY(bind_enter(m->b, NEST_EXPR, -1));
    wf_status status = ERR_OK;
    if (plain && json_is(body, "op", "SETOP_UNION") && json_flag(body, "all") == all) {
        status = find_terms(m, cte, json_get(body, "larg"), all);
        status = status ? status : find_terms(m, cte, json_get(body, "rarg"), all);
    } else {
        struct self self = {.b = m->b,
                            .ctes = m->group->items,
                            .cte_count = m->group->count,
                            .once = all};
        status = search(&self, body);
        struct mutual_term term = {.cte = cte, .query = body, .recursive = self.count > 0};
        VEC_PUSH(m->b->arena, &m->terms, term);
    }
    bind_leave(m->b, NEST_EXPR);
    return status;
}

/* Whether all that the term names has columns by now. */
static bool is_ready(const struct mutual *m, const struct mutual_term *term) {
    for (i64 i = 0; i < m->group->count; i++) {
        const struct cte *cte = m->group->items[i];
        if (!cte->result->draft && mentions(term->query, cte->name)) {
            return false;
        }
    }
    return true;
}

static FALLIBLE bind_term(struct mutual *m, struct mutual_term *term) {
    struct bind *b = m->b;
    const struct cte *cte = term->cte;
    struct cte_result *result = cte->result;
    const struct json *query = node_body(json_get(cte->body, "ctequery"));
    struct select_out out;
    TRY(bind_subselect(b, term->query, cte->scope, cte->outer_query, false, &out));
    if (!result->draft) { /* the first term decides about the columns */
        TRY(bind_cte_names(b, cte, &out));
        result->names = out.names;
        result->cols = relation_cols(b, out.rel, out.names);
        result->col_count = out.rel->out.count;
        for (i64 i = 0; i < result->col_count; i++) {
            struct type type = result->cols[i].type;
            bool wide = type.id == TYPE_DECIMAL;
            result->cols[i].type = wide ? type_decimal(38, type.scale) : type;
        }
        bool all = json_is(query, "op", "SETOP_UNION") && json_flag(query, "all");
        fix_relation(m->draft, result->relation, result->cols, result->col_count, !all);
        fix_call(m->draft, result->relation, cte->name);
        result->draft = m->draft;
    }
    TRY(match_types(b, cte, &out.rel));
    if (term->recursive) {
        fix_rule(m->draft, result->relation, out.rel);
    } else {
        fix_base(m->draft, result->relation, out.rel);
    }
    term->done = 1;
    return ERR_OK;
}

/* Where nothing begins, no term is ever ready. */
static FALLIBLE bind_terms(struct mutual *m) {
    const struct cte *open = m->group->items[0];
    for (bool goes_on = true; goes_on && open;) {
        goes_on = false;
        open = NULL;
        for (i64 i = 0; i < m->terms.count; i++) {
            struct mutual_term *term = &m->terms.items[i];
            bool ready = !term->done && is_ready(m, term);
            if (ready) {
                TRY(bind_term(m, term));
                goes_on = true;
            }
            open = term->done ? open : term->cte;
        }
    }
    if (open) {
        FAIL_AT(m->b->err, INVALID_RECURSION, json_position(open->body),
                "recursive query \"%.100s\" has no non-recursive term to begin with", open->name);
    }
    return ERR_OK;
}

FALLIBLE bind_mutual(struct bind *b, const struct cte *cte, struct select_out *out) {
    struct mutual m = {.b = b, .group = cte->group};
    m.draft = fix_open(b->plan, (u32)m.group->count);
    for (i64 i = 0; i < m.group->count; i++) {
        struct cte *one = m.group->items[i];
        const struct json *query = node_body(json_get(one->body, "ctequery"));
        if (json_get(query, "withClause")) {
            return unsupported(b, json_position(one->body), "WITH inside a recursive query");
        }
        if (json_get(one->body, "search_clause") || json_get(one->body, "cycle_clause")) {
            return unsupported(b, json_position(one->body), "SEARCH and CYCLE of mutual recursion");
        }
        TRY(check_clauses(b, one, query));
        one->result->relation = (u32)i;
        TRY(find_terms(&m, one, query, json_flag(query, "all")));
    }
    TRY(bind_terms(&m));
    struct rel *fix = with_origins(b, fix_close(m.draft));
    if (rel_free_cols(b->plan, fix, NULL) > 0) {
        return unsupported(b, json_position(cte->body),
                           "mutual recursion that uses columns of an outer query");
    }
    for (i64 i = 0; i < m.group->count; i++) {
        m.group->items[i]->result->draft = NULL;
        m.group->items[i]->result->rel = fix;
    }
    out->names = cte->result->names;
    out->rel = fix;
    return ERR_OK;
}

struct rel *bind_mutual_rows(struct bind *b, const struct cte_result *result) {
    return with_origins(b, fix_read(b->plan, result->rel, result->relation));
}

bool bind_reads_work(const struct rel *rel) {
    bool reads = rel && rel->kind == REL_WORK;
    for (i32 i = 0; rel && rel->kind == REL_JOIN && i < rel->input_count && !reads; i++) {
        reads = bind_reads_work(rel->inputs[i]);
    }
    return reads;
}
