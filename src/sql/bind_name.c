/* bind_name.c: the name of an output column that has no alias, as PostgreSQL chooses it.
 *
 * Part of binding. A column keeps its name, a function call and the keyword-like expressions give
 * theirs, a cast passes on its argument's name or else gives the type's, everything else is
 * "?column?". */
#include "sql/sql_int.h"

static const char *last_name(const struct json *list) {
    const char *name = "?column?";
    JSON_EACH(part, list) {
        if (node_is(part, "String")) {
            name = node_string(part);
        }
    }
    return name;
}

static const struct {
    const char *node;
    const char *name;
} word_names[] = {
    {"CoalesceExpr", "coalesce"},
    {"A_ArrayExpr", "array"},
    {"RowExpr", "row"},
    {"GroupingFunc", "grouping"},
};

static const struct {
    const char *op;
    const char *name;
} value_names[] = {
    {"SVFOP_CURRENT_DATE", "current_date"},
    {"SVFOP_CURRENT_TIME", "current_time"},
    {"SVFOP_CURRENT_TIME_N", "current_time"},
    {"SVFOP_CURRENT_TIMESTAMP", "current_timestamp"},
    {"SVFOP_CURRENT_TIMESTAMP_N", "current_timestamp"},
    {"SVFOP_LOCALTIME", "localtime"},
    {"SVFOP_LOCALTIME_N", "localtime"},
    {"SVFOP_LOCALTIMESTAMP", "localtimestamp"},
    {"SVFOP_LOCALTIMESTAMP_N", "localtimestamp"},
    {"SVFOP_CURRENT_ROLE", "current_role"},
    {"SVFOP_CURRENT_USER", "current_user"},
    {"SVFOP_USER", "user"},
    {"SVFOP_SESSION_USER", "session_user"},
    {"SVFOP_CURRENT_CATALOG", "current_catalog"},
    {"SVFOP_CURRENT_SCHEMA", "current_schema"},
};

/* EXISTS is called so; a scalar subquery as its only column. */
static const char *sublink_name(const struct json *body) {
    if (json_is(body, "subLinkType", "EXISTS_SUBLINK")) {
        return "exists";
    }
    if (!json_is(body, "subLinkType", "EXPR_SUBLINK")) {
        return NULL;
    }
    const struct json *select = node_body(json_get(body, "subselect"));
    while (json_get(select, "larg")) {
        select = json_get(select, "larg");
    }
    const struct json *target = node_body(json_first(json_get(select, "targetList")));
    const char *alias = json_text(target, "name");
    if (!target) {
        return json_get(select, "valuesLists") ? "column1" : NULL;
    }
    return alias ? alias : output_name(json_get(target, "val"));
}

/* A name that a cast or CASE around it passes on; NULL when the node has none. */
static const char *strong_name(const struct json *node) {
    if (node_is(node, "ColumnRef")) {
        return last_name(json_get(node_body(node), "fields"));
    }
    if (node_is(node, "A_Indirection")) {
        return last_name(json_get(node_body(node), "indirection"));
    }
    if (node_is(node, "FuncCall")) {
        return last_name(json_get(node_body(node), "funcname"));
    }
    if (node_is(node, "A_Expr") && json_is(node_body(node), "kind", "AEXPR_NULLIF")) {
        return "nullif";
    }
    if (node_is(node, "MinMaxExpr")) {
        return json_is(node_body(node), "op", "IS_GREATEST") ? "greatest" : "least";
    }
    if (node_is(node, "SubLink")) {
        return sublink_name(node_body(node));
    }
    for (i64 i = 0; node_is(node, "SQLValueFunction") && i < COUNT_OF(value_names); i++) {
        if (json_is(node_body(node), "op", value_names[i].op)) {
            return value_names[i].name;
        }
    }
    for (i64 i = 0; i < COUNT_OF(word_names); i++) {
        if (node_is(node, word_names[i].node)) {
            return word_names[i].name;
        }
    }
    return NULL;
}

const char *output_name(const struct json *node) {
    const char *weak = NULL; /* the outermost cast's or CASE's own name */
    for (;;) {
        const struct json *body = node_body(node);
        const char *strong = strong_name(node);
        if (strong && strcmp(strong, "wf_try") == 0) { /* try_cast: named like the cast in it */
            node = json_first(json_get(body, "args"));
            continue;
        }
        if (strong) {
            return strong;
        }
        if (node_is(node, "TypeCast")) {
            const struct json *names = json_get(json_get(body, "typeName"), "names");
            weak = weak ? weak : last_name(names);
            node = json_get(body, "arg");
        } else if (node_is(node, "CaseExpr")) {
            weak = weak ? weak : "case";
            node = json_get(body, "defresult");
        } else if (node_is(node, "CollateClause")) {
            node = json_get(body, "arg");
        } else {
            return weak ? weak : "?column?";
        }
    }
}
