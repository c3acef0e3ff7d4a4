/* bind_friendly.c: what friendly.c wrote for lack of syntax: stars with exceptions, GROUP BY and
 * ORDER BY ALL, SUMMARIZE and DESCRIBE.
 *
 * Part of binding. The first two are expanded where they stand. The last two ask about a query: it
 * is bound once to learn its columns; then a statement that computes the answer is written as text
 * and parsed, the query's own tree is put into it, and the whole is bound like any subquery. */
#include "sql/friendly_int.h"
#include "sql/select_int.h"

#include <stdio.h>

/* Of a FuncCall's fields. */
static const char *call_name(const struct json *body) {
    const struct json *name = json_get(body, "funcname");
    return json_count(name) == 1 ? node_string(json_first(name)) : "";
}

static const char *function_name(const struct json *node) {
    return node_is(node, "FuncCall") ? call_name(node_body(node)) : "";
}

bool bind_is_all(const struct json *node) {
    return strcmp(function_name(node), FRIENDLY_ALL) == 0;
}

struct star {
    const struct scope_col *cols;
    i64 count;
    b8 *dropped;
    struct expr **replaced;
    struct seen *seen; /* in those replaced */
};

static const char *last_name(const struct json *column_ref) {
    const char *name = "";
    JSON_EACH(field, json_get(node_body(column_ref), "fields")) {
        name = node_is(field, "String") ? node_string(field) : "";
    }
    return name;
}

static FALLIBLE star_find(struct bind *b, const struct star *star, const char *name,
                          const char *list, i32 position, i64 *out) {
    for (i64 i = 0; i < star->count; i++) {
        if (strcmp(star->cols[i].name, name) == 0) {
            *out = i;
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, UNDEFINED_COLUMN, position, "column \"%.100s\" in the %s list does not exist",
            name, list);
}

static FALLIBLE star_exclude(struct bind *b, struct star *star, const struct json *items) {
    JSON_EACH(node, items) {
        const struct json *item = node_body(node);
        const struct json *val = json_get(item, "val");
        if (!node_is(val, "ColumnRef") || json_text(item, "name")) {
            FAIL_AT(b->err, SYNTAX, node_position(val), "EXCLUDE takes names of columns");
        }
        i64 at = -1;
        TRY(star_find(b, star, last_name(val), "EXCLUDE", node_position(val), &at));
        for (i64 i = at; i < star->count; i++) { /* a join may show a name twice */
            star->dropped[i] |= strcmp(star->cols[i].name, star->cols[at].name) == 0;
        }
    }
    return ERR_OK;
}

static FALLIBLE star_replace(struct bind *b, struct select *s, struct star *star,
                             const struct json *items) {
    JSON_EACH(node, items) {
        const struct json *item = node_body(node);
        const struct json *val = json_get(item, "val");
        const char *name = json_text(item, "name");
        if (!name) {
            FAIL_AT(b->err, SYNTAX, node_position(val), "REPLACE takes expressions AS columns");
        }
        i64 at = -1;
        TRY(star_find(b, star, name, "REPLACE", node_position(val), &at));
        s->query.seen = (struct seen){0, 0};
        TRY(bind_expr(b, &s->query, val, &star->replaced[at]));
        star->seen[at] = s->query.seen;
        TRY(coerce_unknown(b->t, star->replaced[at], type_of(TYPE_TEXT), &star->replaced[at]));
    }
    return ERR_OK;
}

FALLIBLE bind_star_but(struct bind *b, struct select *s, const struct json *node, bool *out_is) {
    *out_is = strcmp(function_name(node), FRIENDLY_STAR) == 0;
    if (!*out_is) {
        return ERR_OK;
    }
    const struct json *args = json_get(node_body(node), "args");
    i32 position = node_position(node);
    struct star star = {.cols = s->scope.cols.items, .count = s->scope.cols.count};
    if (node_is(json_first(args), "ColumnRef")) {
        TRY(bind_star(b, &s->query, json_first(args), &star.cols, &star.count));
    } else if (s->scope.tables.count == 0) {
        FAIL_AT(b->err, SYNTAX, position, "SELECT * with no tables specified is not valid");
    }
    star.dropped = NEW_ARRAY(b->arena, b8, star.count + 1);
    star.replaced = NEW_ARRAY(b->arena, struct expr *, star.count + 1);
    star.seen = NEW_ARRAY(b->arena, struct seen, star.count + 1);
    JSON_EACH(arg, args) {
        const struct json *body = node_body(arg);
        const struct json *items = json_get(node_body(json_get(body, "arg")), "named_args");
        if (json_is(body, "name", "exclude")) {
            TRY(star_exclude(b, &star, items));
        } else if (json_is(body, "name", "replace")) {
            TRY(star_replace(b, s, &star, items));
        }
    }
    for (i64 i = 0; i < star.count; i++) {
        struct expr *expr =
            star.replaced[i] ? star.replaced[i] : expr_col(b->plan, star.cols[i].col, position);
        if (!star.dropped[i]) {
            s->query.seen = star.seen[i];
            select_add_target(b, s, expr, star.cols[i].name);
        }
    }
    return ERR_OK;
}

/* --- SUMMARIZE, DESCRIBE --------------------------------------------------------------------- */

static void put_literal(struct text *out, const char *text) {
    text_print(out, "'");
    for (; *text; text++) {
        text_print(out, *text == '\'' ? "''" : "%c", *text);
    }
    text_print(out, "'");
}

static void write_describe(struct text *out, const struct bind *b, const struct select_out *query) {
    text_print(out, "SELECT * FROM (VALUES %s", query->rel->out.count ? "" : "('', '')");
    for (i64 i = 0; i < query->rel->out.count; i++) {
        const struct plan_col *col = &b->plan->cols.items[query->rel->out.items[i]];
        char type[32];
        text_print(out, "%s(", i ? ", " : "");
        put_literal(out, query->names[i]);
        text_print(out, ", ");
        put_literal(out, type_print(col->type, type));
        text_print(out, ")");
    }
    text_print(out, ") AS d (column_name, column_type)%s",
               query->rel->out.count ? "" : " WHERE false");
}

static bool is_number(struct type type) {
    return type_is_exact(type) || type_is_float(type);
}

/* The aggregates of column i. */
static void write_aggregates(struct text *out, struct type type, i64 i) {
    char col[40]; /* what has an order */
    snprintf(col, sizeof col, type.id == TYPE_BOOLEAN ? "CAST(c%lld AS text)" : "c%lld", i);
    text_print(out,
               ", CAST(min(%s) AS text) AS lo%lld, CAST(max(%s) AS text) AS hi%lld, "
               "count(DISTINCT c%lld) AS d%lld, count(c%lld) AS k%lld",
               col, i, col, i, i, i, i, i);
    if (is_number(type)) {
        text_print(out,
                   ", avg(CAST(c%lld AS double precision)) AS a%lld, "
                   "stddev(CAST(c%lld AS double precision)) AS v%lld",
                   i, i, i, i);
    }
}

/* The row about column i. No number below 1 is written: the tree does not keep those. */
static void write_summary(struct text *out, const char *name, struct type type, i64 i) {
    char text[32];
    text_print(out, "%sSELECT ", i ? " UNION ALL " : "");
    put_literal(out, name);
    text_print(out, " AS column_name, ");
    put_literal(out, type_print(type, text));
    text_print(out, " AS column_type, lo%lld AS min, hi%lld AS max, d%lld AS distinct_count, ", i,
               i, i);
    if (is_number(type)) {
        text_print(out, "a%lld AS avg, v%lld AS std, ", i, i);
    } else {
        text_print(out, "CAST(NULL AS double precision) AS avg, "
                        "CAST(NULL AS double precision) AS std, ");
    }
    text_print(out,
               "n AS count, CAST(100.0 * (n - k%lld) / nullif(n, n - n) AS decimal(5,2)) AS "
               "null_percentage FROM s",
               i);
}

/* One aggregation over the query, then a row for each of its columns. */
static void write_summarize(struct text *out, const struct bind *b,
                            const struct select_out *query) {
    i64 count = query->rel->out.count;
    text_print(out, "WITH q (");
    for (i64 i = 0; i < count; i++) {
        text_print(out, "%sc%lld", i ? ", " : "", i);
    }
    text_print(out, ") AS (SELECT 1), s AS (SELECT count(*) AS n");
    for (i64 i = 0; i < count; i++) {
        write_aggregates(out, b->plan->cols.items[query->rel->out.items[i]].type, i);
    }
    text_print(out, " FROM q) ");
    for (i64 i = 0; i < count; i++) {
        write_summary(out, query->names[i], b->plan->cols.items[query->rel->out.items[i]].type, i);
    }
}

void bind_place(struct bind *b, const struct json *statement, i32 position) {
    VEC(const struct json *) todo = {0};
    VEC_PUSH(b->arena, &todo, statement);
    while (todo.count > 0) {
        const struct json *node = todo.items[--todo.count];
        if (node->kind == JSON_NUMBER && strcmp(node->key, "location") == 0) {
            ((struct json *)(size_t)node)->number = position;
        } else if (node->kind >= JSON_ARRAY) {
            JSON_EACH(child, node) {
                VEC_PUSH(b->arena, &todo, child);
            }
        }
    }
}

/* Puts the user's query in the place of the one the first WITH item was written with. */
static FALLIBLE put_query(struct bind *b, const struct json *statement, const struct json *query) {
    VEC(const struct json *) todo = {0};
    VEC_PUSH(b->arena, &todo, statement);
    while (todo.count > 0) {
        const struct json *node = todo.items[--todo.count];
        if (strcmp(node->key, "CommonTableExpr") == 0 && json_is(node, "ctename", "q")) {
            struct json *slot = (struct json *)(size_t)json_get(node, "ctequery");
            slot->first = query->first;
            slot->len = query->len;
            return ERR_OK;
        }
        JSON_EACH(child, node) {
            if (child->kind >= JSON_ARRAY) {
                VEC_PUSH(b->arena, &todo, child);
            }
        }
    }
    FAIL(b->err, INTERNAL, "the statement written for SUMMARIZE has no place for the query");
}

FALLIBLE bind_about(struct bind *b, const struct json *call, const struct cte *ctes,
                    struct query *outer, struct select_out *out, bool *out_is) {
    const char *name = call_name(call);
    bool summarizes = strcmp(name, FRIENDLY_SUMMARIZE) == 0;
    *out_is = summarizes || strcmp(name, FRIENDLY_DESCRIBE) == 0;
    if (!*out_is) {
        return ERR_OK;
    }
    const struct json *link = node_body(json_first(json_get(call, "args")));
    const struct json *query = json_get(link, "subselect");
    struct select_out bound;
    TRY(bind_subselect(b, node_body(query), ctes, outer, false, &bound));
    struct text text;
    text_init(&text, b->arena);
    if (summarizes && bound.rel->out.count == 0) {
        return unsupported(b, json_position(call), "SUMMARIZE without columns");
    }
    if (summarizes) {
        write_summarize(&text, b, &bound);
    } else {
        write_describe(&text, b, &bound);
    }
    struct parsed_list list;
    TRY(sql_parse(b->arena, (struct sv){text.ptr, text.len}, &list, b->err));
    const struct json *statement = list.items.items[0]->node;
    bind_place(b, statement, json_position(call));
    if (summarizes) {
        TRY(put_query(b, statement, query));
    }
    return bind_subselect(b, node_body(statement), ctes, outer, false, out);
}
