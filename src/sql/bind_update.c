/* bind_update.c: UPDATE: a plan of row numbers and whole new rows.
 *
 * Part of binding. A row that changes is deleted and appended, so the plan computes all its
 * columns: those of SET by the rules of assignment, the others as they are. When FROM offers a row
 * several matches the first one counts, as in PostgreSQL; that is decided when the rows are known.
 */
#include "sql/change_int.h"

#include "codes/func.h"

/* One value of SET (a, b) = (x, y). */
static FALLIBLE multi_value(struct bind *b, const struct json *ref, const struct json **out) {
    const struct json *source = json_get(ref, "source");
    i32 position = node_position(ref);
    i64 number = json_number(ref, "colno");
    if (!node_is(source, "RowExpr")) {
        return unsupported(b, position, "SET of several columns from this expression");
    }
    const struct json *args = json_get(node_body(source), "args");
    if (json_count(args) != json_number(ref, "ncolumns")) {
        FAIL_AT(b->err, SYNTAX, position, "number of columns does not match number of values");
    }
    const struct json *value = json_first(args);
    for (i64 i = 1; i < number && value; i++) {
        value = value->next;
    }
    *out = value;
    return ERR_OK;
}

/* One value of SET (a, b) = (SELECT x, y …): the first brings the subquery, the others use it. */
static FALLIBLE multi_subquery(struct bind *b, struct change *c, const struct json *ref,
                               struct expr **out) {
    const struct json *source = json_get(ref, "source");
    i64 number = json_number(ref, "colno");
    if (number == 1) {
        TRY(bind_row_subquery(b, &c->query, node_body(source), &c->multi, &c->multi_count));
        if (c->multi_count != json_number(ref, "ncolumns")) {
            FAIL_AT(b->err, SYNTAX, node_position(source),
                    "number of columns does not match number of values");
        }
    }
    *out = c->multi[number - 1];
    return ERR_OK;
}

static FALLIBLE set_column(struct bind *b, struct change *c, const struct json *target,
                           struct expr **values, b8 *given, u32 *out_col) {
    const struct table *table = c->target.table;
    const char *name = json_text(target, "name");
    i32 position = json_position(target);
    u32 col = 0;
    TRY(bind_only(b, target, "name val location indirection", position));
    name = name ? name : "";
    if (json_get(target, "indirection") && strcmp(name, table->name) == 0) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, position,
                "column \"%.100s\" of relation \"%.100s\" does not exist", name, table->name);
    }
    TRY(bind_only(b, target, "name val location", position));
    TRY(bind_column_list(b, table, &name, &position, 1, &col));
    if (given[col]) {
        FAIL_AT(b->err, SYNTAX, position, "multiple assignments to same column \"%.100s\"", name);
    }
    given[col] = 1;
    *out_col = col;
    const struct json *value = json_get(target, "val");
    const struct column_def *def = &table->cols[col];
    struct expr *expr = NULL;
    if (node_is(value, "MultiAssignRef") &&
        node_is(json_get(node_body(value), "source"), "SubLink")) {
        TRY(multi_subquery(b, c, node_body(value), &expr));
    } else if (node_is(value, "MultiAssignRef")) {
        TRY(multi_value(b, node_body(value), &value));
    }
    if (node_is(value, "SetToDefault")) {
        bool fills = false;
        TRY(bind_default_value(b, &c->query.pending, def, &values[col], &fills));
        return fills ? bind_next_value(b, &c->query.pending, def, &values[col]) : ERR_OK;
    }
    if (def->identity == 'a') {
        FAIL_AT(b->err, GENERATED_ALWAYS, position,
                "column \"%.100s\" can only be updated to DEFAULT", name);
    }
    if (!expr) {
        TRY(bind_expr(b, &c->query, value, &expr));
    }
    return bind_assign(b, expr, def, &values[col]);
}

FALLIBLE change_set(struct bind *b, struct change *c, const struct json *list,
                    struct expr ***out_values) {
    u32 count = c->target.table->col_count;
    struct expr **values = NEW_ARRAY(b->arena, struct expr *, count + 1);
    b8 *given = NEW_ARRAY(b->arena, b8, count + 1);
    struct waiting waiting = {0};
    c->query.clause = "UPDATE";
    JSON_EACH(node, list) {
        u32 col = 0;
        TRY(set_column(b, c, node_body(node), values, given, &col));
        waiting_note(b, &waiting, &c->query.pending, col);
    }
    waiting_order(b, &waiting, count, &c->query.pending);
    for (u32 i = 0; i < count; i++) {
        if (!values[i]) {
            values[i] = expr_col(b->plan, c->scope.tables.items[0].cols[i].col, -1);
        }
    }
    c->rel = bind_attach(b, c->rel, &c->query.pending);
    *out_values = values;
    return ERR_OK;
}

FALLIBLE bind_update(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    struct change c;
    struct expr **values = NULL;
    out->kind = STATEMENT_UPDATE;
    out->position = json_position(relation);
    TRY(bind_only(b, body, "relation targetList whereClause fromClause returningList withClause",
                  out->position));
    TRY(change_open(b, relation, json_get(body, "fromClause"), json_get(body, "withClause"),
                    "update", &c));
    TRY(change_where(b, &c, json_get(body, "whereClause")));
    TRY(change_set(b, &c, json_get(body, "targetList"), &values));
    change_project(b, &c, values);
    return change_finish(b, &c, json_get(body, "returningList"), out);
}

/* INSERT INTO target … ON CONFLICT DO UPDATE: both have every name, and so without qualification it
 * is ambiguous. */
static void see_excluded(struct bind *b, struct change *c, struct scope_table excluded,
                         i64 col_count) {
    excluded.col_count = col_count;
    VEC_PUSH(b->arena, &c->scope.tables, excluded);
    for (i64 i = 0; i < col_count; i++) {
        VEC_PUSH(b->arena, &c->scope.cols, excluded.cols[i]);
    }
}

FALLIBLE bind_conflict_check(struct bind *b, const struct json *body) {
    const struct json *clause = json_get(body, "onConflictClause");
    struct typing typing;
    struct bind own;
    struct change c;
    struct scope other = {0};
    struct expr **values = NULL;
    change_apart(b, &own, &typing);
    TRY(change_open(&own, json_get(body, "relation"), NULL, NULL, "insert into", &c));
    TRY(bind_table_scope(&own, &c.target, "excluded", -1, &other));
    see_excluded(&own, &c, other.tables.items[0], other.tables.items[0].col_count);
    TRY(change_where(&own, &c, json_get(clause, "whereClause")));
    return change_set(&own, &c, json_get(clause, "targetList"), &values);
}

FALLIBLE bind_conflict_update(struct bind *b, const struct json *body,
                              const struct snapshot_table *excluded, struct statement *out) {
    const struct json *clause = json_get(body, "onConflictClause");
    struct change c;
    struct scope other = {0};
    struct expr **values = NULL, *same = NULL;
    TRY(change_open(b, json_get(body, "relation"), NULL, NULL, "insert into", &c));
    TRY(bind_table_scope(b, excluded, "excluded", -1, &other));
    const struct scope_table *table = &other.tables.items[0];
    struct expr *row = expr_col(b->plan, c.row_col, -1);
    struct expr *its = expr_col(b->plan, table->cols[table->col_count - 1].col, -1);
    TRY(operator_compare(b->t, FUNC_EQ, row, its, -1, &same));
    c.rel = rel_join(b->plan, JOIN_INNER, c.rel, other.rel);
    c.rel->rows = other.rel->rows;
    VEC_PUSH(b->arena, &c.rel->join.conds, same);
    if (bind_has_effects(b)) { /* drawn in the order of the source */
        struct rel *sort = rel_new(b->plan, REL_SORT, c.rel, NULL);
        struct order_key key = {
            .expr = expr_col(b->plan, table->cols[table->col_count - 2].col, -1)};
        VEC_PUSH(b->arena, &sort->sort.order, key);
        sort->rows = c.rel->rows;
        c.rel = sort;
    }
    i64 own = c.scope.cols.count;
    see_excluded(b, &c, *table, table->col_count - 2);
    TRY(change_where(b, &c, json_get(clause, "whereClause")));
    TRY(change_set(b, &c, json_get(clause, "targetList"), &values));
    c.scope.tables.count--;
    c.scope.cols.count = own;
    change_project(b, &c, values);
    TRY(change_finish(b, &c, NULL, out));
    out->kind = STATEMENT_SELECT;
    return ERR_OK;
}
