/* bind_change.c: what UPDATE, DELETE and RETURNING have in common; TRUNCATE; transactions.
 *
 * Part of binding. The rows to change are bound as a FROM clause whose first item is the target;
 * the scan of the target gets one column more, the row's number, which every operator above passes
 * on. RETURNING of an UPDATE or DELETE is computed in the same plan, because it may name columns of
 * the other tables; that of an INSERT is a SELECT of its own over the rows that went in, when those
 * are known to the last default. */
#include "sql/change_int.h"

#include "codes/scalar.h"

const struct json *json_object_of(struct bind *b, const char *key, const struct json *body) {
    struct json *member = NEW(b->arena, struct json);
    *member = *body;
    member->key = key;
    member->next = NULL;
    struct json *object = NEW(b->arena, struct json);
    *object = (struct json){.key = "", .kind = JSON_OBJECT, .first = member, .len = 1};
    return object;
}

const struct json *json_array_of(struct bind *b, const char *key, const struct json *first,
                                 const struct json *rest) {
    struct json *item = NEW(b->arena, struct json);
    *item = *first;
    item->next = (struct json *)(size_t)json_first(rest);
    struct json *array = NEW(b->arena, struct json);
    *array = (struct json){
        .key = key, .kind = JSON_ARRAY, .first = item, .len = (u32)(json_count(rest) + 1)};
    return array;
}

FALLIBLE bind_relation(struct bind *b, const struct json *range_var,
                       const struct edition_entry **out) {
    const char *name = NULL;
    i32 position = json_position(range_var);
    TRY(bind_table_name(b, range_var, &name));
    const char *schema = json_text(range_var, "schemaname");
    struct sv in = schema ? sv_from(schema) : (struct sv){NULL, 0};
    TRY(snapshot_open(b->snap, b->err));
    *out = snapshot_lookup(b->snap, in, sv_from(name));
    if (*out) {
        VEC_PUSH(b->arena, &b->deps, (*out)->object->oid);
    }
    return *out ? ERR_OK : snapshot_missing(b->snap, in, sv_from(name), position, b->err);
}

FALLIBLE bind_table(struct bind *b, const struct json *range_var, const char *what,
                    struct snapshot_table *out) {
    const struct edition_entry *entry = NULL;
    i32 position = json_position(range_var);
    TRY(bind_relation(b, range_var, &entry));
    if (entry->object->kind == OBJECT_VIEW) {
        bool rows = strcmp(what, "insert into") == 0 || strcmp(what, "update") == 0 ||
                    strcmp(what, "delete from") == 0;
        error_set(b->err, rows ? ERR_WRONG_STATE : ERR_WRONG_OBJECT, position,
                  "cannot %s view \"%.100s\"", what, entry->object->name);
        return b->err->code;
    }
    if (entry->object->kind != OBJECT_TABLE) {
        FAIL_AT(b->err, WRONG_OBJECT, position, "\"%.100s\" is not a table", entry->object->name);
    }
    if (entry->object->hidden) {
        FAIL_AT(b->err, WRONG_OBJECT, position, "cannot %s system table \"%.100s\"", what,
                entry->object->name);
    }
    *out = snapshot_of(b->snap, entry);
    return ERR_OK;
}

void bind_row_number(struct bind *b, struct rel *scan, u32 number) {
    struct scan_col col = {.col = number,
                           .table_col = ROWID_COL,
                           .range = range_of_value(0),
                           .no_nulls = 1,
                           .unique = 1,
                           .distinct = scan->scan.table_rows};
    col.range.hi = (i128)1 << 52;
    VEC_PUSH(b->arena, &scan->scan.cols, col);
    VEC_PUSH(b->arena, &scan->out, number);
}

/* Adds the row's number to the scan that makes column `col`, and to all operators above it. A table
 * without columns is the first one scanned. */
static bool add_row_number(struct bind *b, struct rel *rel, u32 col, u32 number) {
    bool found = rel->kind == REL_SCAN && col == NO_COL;
    for (i64 i = 0; rel->kind == REL_SCAN && i < rel->scan.cols.count && !found; i++) {
        found = rel->scan.cols.items[i].col == col;
    }
    if (found) {
        bind_row_number(b, rel, number);
        return true;
    }
    for (i32 i = 0; i < rel->input_count && !found; i++) {
        found = add_row_number(b, rel->inputs[i], col, number);
    }
    if (found) {
        VEC_PUSH(b->arena, &rel->out, number);
    }
    return found;
}

FALLIBLE change_open(struct bind *b, const struct json *relation, const struct json *others,
                     const struct json *with, const char *what, struct change *out) {
    i32 position = json_position(relation);
    memset(out, 0, sizeof *out);
    TRY(bind_table(b, relation, what, &out->target));
    TRY(bind_with(b, with, NULL, &out->query.ctes));
    const struct json *target = json_object_of(b, "RangeVar", relation);
    const struct json *from = json_array_of(b, "fromClause", target, others);
    TRY(bind_from(b, from, out->query.ctes, NULL, &out->scope));
    out->query.scope = &out->scope;
    out->query.subqueries_allowed = 1;
    out->row_col = bind_col_new(b, NULL, "row", type_of(TYPE_BIGINT), false);
    const struct scope_table *table = &out->scope.tables.items[0];
    bool bare = out->target.table->col_count == 0;
    u32 first = table->col_count > 0 ? table->cols[0].col : bare ? NO_COL : 0;
    if (!add_row_number(b, out->scope.rel, first, out->row_col)) {
        return unsupported(b, position, "a WITH query named like the table to %s", what);
    }
    out->rel = out->scope.rel;
    return ERR_OK;
}

void change_apart(const struct bind *b, struct bind *own, struct typing *typing) {
    *typing = *b->t;
    typing->plan = NEW(b->arena, struct plan);
    *typing->plan = (struct plan){.arena = b->arena,
                                  .sample = b->plan->sample,
                                  .evaluator = b->plan->evaluator,
                                  .param_count = b->plan->param_count,
                                  .param_types = b->plan->param_types};
    *own = (struct bind){.t = typing,
                         .arena = b->arena,
                         .parsed = b->parsed,
                         .snap = b->snap,
                         .plan = typing->plan,
                         .err = b->err,
                         .depth = b->depth,
                         .param_base = b->param_base};
}

FALLIBLE change_where(struct bind *b, struct change *c, const struct json *where) {
    c->query.clause = "WHERE";
    if (where) {
        TRY(bind_where(b, &c->query, where, "WHERE", &c->rel));
    }
    return ERR_OK;
}

static void add_output(struct bind *b, struct change *c, struct expr *expr, const char *name) {
    VEC_PUSH(b->arena, &c->exprs, expr);
    VEC_PUSH(b->arena, &c->names, name);
}

/* The columns of the scope as columns of the projection that was just made, where `map` says so. */
static void remap_scope(struct bind *b, struct scope *scope, const u32 *map) {
    for (i64 t = 0; t < scope->tables.count; t++) {
        struct scope_table *table = &scope->tables.items[t];
        struct scope_col *cols = NEW_ARRAY(b->arena, struct scope_col, table->col_count + 1);
        for (i64 i = 0; i < table->col_count; i++) {
            cols[i] = (struct scope_col){table->cols[i].name, map[table->cols[i].col]};
        }
        table->cols = cols;
    }
    for (i64 i = 0; i < scope->cols.count; i++) {
        scope->cols.items[i].col = map[scope->cols.items[i].col];
    }
}

void change_project(struct bind *b, struct change *c, struct expr **values) {
    const struct table *table = c->target.table;
    i64 count = values ? table->col_count : 0, old = b->plan->cols.count;
    i64 width = 1 + count + c->scope.rel->out.count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, width);
    const char **names = NEW_ARRAY(b->arena, const char *, width);
    u32 *from = NEW_ARRAY(b->arena, u32, width);
    i64 at = 0;
    exprs[at] = expr_col(b->plan, c->row_col, -1);
    names[at++] = "row";
    for (i64 i = 0; i < count; i++, at++) {
        exprs[at] = values[i];
        names[at] = keep(b, table->cols[i].name);
        from[at] = c->scope.tables.items[0].cols[i].col;
    }
    for (i64 i = 0; i < c->scope.rel->out.count; i++) {
        u32 col = c->scope.rel->out.items[i];
        bool own = values && table->col_count > 0 && col >= c->scope.tables.items[0].cols[0].col &&
                   col < c->scope.tables.items[0].cols[0].col + table->col_count;
        if (!own && col != c->row_col) {
            exprs[at] = expr_col(b->plan, col, -1);
            names[at] = b->plan->cols.items[col].name;
            from[at++] = col;
        }
    }
    c->rel = bind_project(b, c->rel, exprs, names, at);
    u32 *map = NEW_ARRAY(b->arena, u32, old + 1);
    for (i64 i = 1; i < at; i++) {
        map[from[i]] = c->rel->out.items[i];
    }
    remap_scope(b, &c->scope, map);
    for (i64 i = 0; i <= count; i++) {
        add_output(b, c, expr_col(b->plan, c->rel->out.items[i], -1), names[i]);
    }
}

/* A column of RETURNING as a client sees it: char(n) with blanks at its end, which rows do not keep. */
static void add_returned(struct bind *b, struct change *c, struct expr *expr, const char *name) {
    struct type type = expr->type;
    if (type.id == TYPE_CHAR && type.length) {
        expr = expr_call(b->arena, FUNC_PAD, type, expr->position, 2, expr,
                         expr_int(b->t, (i32)type.length, expr->position));
    }
    add_output(b, c, expr, name);
}

static FALLIBLE returning_item(struct bind *b, struct change *c, const struct json *target) {
    i32 position = json_position(target);
    TRY(bind_only(b, target, "name val location", position));
    const struct json *val = json_get(target, "val");
    const struct scope_col *cols = NULL;
    i64 count = -1;
    TRY(bind_star(b, &c->query, val, &cols, &count));
    for (i64 i = 0; i < count; i++) {
        add_returned(b, c, expr_col(b->plan, cols[i].col, position), cols[i].name);
    }
    if (count >= 0) {
        return ERR_OK;
    }
    struct expr *expr = NULL;
    TRY(bind_expr(b, &c->query, val, &expr));
    TRY(coerce_unknown(b->t, expr, type_of(TYPE_TEXT), &expr));
    const char *alias = json_text(target, "name");
    add_returned(b, c, expr, keep(b, alias ? alias : output_name(val)));
    return ERR_OK;
}

FALLIBLE change_finish(struct bind *b, struct change *c, const struct json *returning,
                       struct statement *out) {
    i64 own = c->exprs.count;
    c->query.clause = "RETURNING";
    c->query.subqueries_allowed = 1;
    JSON_EACH(node, returning) {
        TRY(returning_item(b, c, node_body(node)));
    }
    c->rel = bind_attach(b, c->rel, &c->query.pending);
    out->change.returning = (i32)(c->exprs.count - own);
    if (returning && out->change.returning == 0) {
        FAIL_AT(b->err, SYNTAX, json_position(node_body(json_first(returning))),
                "RETURNING must have at least one column");
    }
    b->plan->root = bind_project(b, c->rel, c->exprs.items, c->names.items, c->exprs.count);
    for (i64 i = 0; i < c->exprs.count; i++) {
        VEC_PUSH(b->arena, &b->plan->names, c->names.items[i]);
    }
    out->plan = b->plan;
    out->change.table_id = c->target.table->id;
    out->name = keep(b, c->target.table->name);
    return bind_with_unused(b, c->query.ctes, NULL);
}

FALLIBLE bind_delete(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    struct change c;
    out->kind = STATEMENT_DELETE;
    out->position = json_position(relation);
    TRY(bind_only(b, body, "relation usingClause whereClause returningList withClause",
                  out->position));
    TRY(change_open(b, relation, json_get(body, "usingClause"), json_get(body, "withClause"),
                    "delete from", &c));
    TRY(change_where(b, &c, json_get(body, "whereClause")));
    change_project(b, &c, NULL);
    return change_finish(b, &c, json_get(body, "returningList"), out);
}

FALLIBLE bind_truncate(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relations = json_get(body, "relations");
    i32 position = node_position(relations);
    TRY(bind_only(b, body, "relations restart_seqs behavior", position));
    out->kind = STATEMENT_TRUNCATE;
    out->position = position;
    out->truncate.restart = json_flag(body, "restart_seqs");
    out->truncate.cascade = json_is(body, "behavior", "DROP_CASCADE");
    out->truncate.ids = NEW_ARRAY(b->arena, u64, json_count(relations) + 1);
    JSON_EACH(node, relations) {
        struct snapshot_table found;
        TRY(bind_table(b, node_body(node), "truncate", &found));
        out->truncate.ids[out->truncate.count++] = found.table->id;
    }
    return ERR_OK;
}

static const struct {
    const char *kind;
    u8 tx;
} tx_kinds[] = {
    {"TRANS_STMT_BEGIN", TX_BEGIN},
    {"TRANS_STMT_START", TX_BEGIN},
    {"TRANS_STMT_COMMIT", TX_COMMIT},
    {"TRANS_STMT_ROLLBACK", TX_ROLLBACK},
    {"TRANS_STMT_SAVEPOINT", TX_SAVEPOINT},
    {"TRANS_STMT_RELEASE", TX_RELEASE},
    {"TRANS_STMT_ROLLBACK_TO", TX_ROLLBACK_TO},
};

FALLIBLE bind_tx_option(struct bind *b, const struct json *option, struct tx_modes *out) {
    i32 position = json_position(option);
    const char *name = json_text(option, "defname");
    const struct json *arg = node_body(json_get(option, "arg"));
    const struct json *text = json_get(arg, "sval"), *number = json_get(arg, "ival");
    name = name ? name : "";
    if (strcmp(name, "transaction_isolation") == 0) {
        const char *level = text ? json_text(text, "sval") : NULL;
        if (level && strcmp(level, "serializable") == 0) {
            return unsupported(b, position, "ISOLATION LEVEL SERIALIZABLE");
        }
        return ERR_OK;
    }
    if (strcmp(name, "transaction_read_only") == 0) {
        out->access = json_number(number, "ival") ? ACCESS_READ : ACCESS_WRITE;
        return ERR_OK;
    }
    if (strcmp(name, "transaction_deferrable") == 0) {
        out->defer = json_number(number, "ival") ? DEFER_YES : DEFER_NO;
        return ERR_OK;
    }
    return unsupported(b, position, "transaction option %s", name);
}

FALLIBLE bind_transaction(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    const char *kind = json_text(body, "kind");
    TRY(bind_only(b, body, "kind options savepoint_name chain gid", position));
    out->kind = STATEMENT_TRANSACTION;
    out->position = position;
    out->name = keep(b, json_text(body, "savepoint_name"));
    out->tx.chain = json_flag(body, "chain");
    JSON_EACH(option, json_get(body, "options")) {
        TRY(bind_tx_option(b, node_body(option), &out->tx.modes));
    }
    for (i64 i = 0; kind && i < COUNT_OF(tx_kinds); i++) {
        if (strcmp(tx_kinds[i].kind, kind) == 0) {
            out->tx.kind = tx_kinds[i].tx;
            return ERR_OK;
        }
    }
    return unsupported(b, position, "%s", command_tag(b->arena, "TransactionStmt", body));
}

bool parsed_is_select(const struct parsed *parsed) {
    return node_is(parsed->node, "SelectStmt");
}

bool parsed_is_transaction(const struct parsed *parsed) {
    return node_is(parsed->node, "TransactionStmt");
}
