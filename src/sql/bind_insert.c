/* bind_insert.c: INSERT: a plan whose columns are the table's, in order.
 *
 * Part of binding. Rows written as VALUES go straight into a VALUES operator, every literal read as
 * its column's type at once, so that a list of a million rows costs one pass; a SELECT is bound as
 * ever and a PROJECT on top casts by the rules of assignment. Columns that are not named get their
 * default. Where that is the next value of a sequence the plan says NULL, and the statement's list
 * of fills says what to put there when the rows are known. */
#include "sql/change_int.h"
#include "sql/ddl_int.h"

struct insert {
    struct snapshot_table found;
    const struct table *table;
    u32 *cols; /* target columns, in the order of the values */
    i32 col_count;
    const i32 *positions;       /* where they are named */
    b8 listed;                  /* INSERT INTO t (a, b) */
    struct column_def *targets; /* their definitions */
    b8 overriding;              /* SYSTEM VALUE 's', USER VALUE 'u' */
    b8 one_row;                 /* VALUES with one row */
    b8 serial;                  /* values of sequences are drawn by the plan, not filled in */
    b8 *after;                  /* per column: its default comes after the values as written */
    VEC(struct fill) fills;     /* in the order the values are drawn */
    const struct cte *ctes;
};

struct table_names {
    const struct table *table;
};

static struct sv next_table_column(void *arg, i64 i) {
    const struct table_names *names = arg;
    return i < names->table->col_count ? sv_from(names->table->cols[i].name) : (struct sv){NULL, 0};
}

static FALLIBLE find_column(struct bind *b, const struct table *table, const char *name,
                            i32 position, u32 *out) {
    for (u32 i = 0; i < table->col_count; i++) {
        if (strcmp(table->cols[i].name, name) == 0) {
            *out = i;
            return ERR_OK;
        }
    }
    error_set(b->err, ERR_UNDEFINED_COLUMN, position,
              "column \"%.100s\" of relation \"%.100s\" does not exist", name, table->name);
    struct table_names names = {table};
    const char *near = nearest_name(b->arena, sv_from(name), next_table_column, &names);
    if (near) {
        error_hint(b->err, "Perhaps you meant \"%s\".", near);
    }
    return ERR_UNDEFINED_COLUMN;
}

FALLIBLE bind_assign(struct bind *b, struct expr *expr, const struct column_def *to,
                     struct expr **out) {
    return coerce_assign(b->t, expr, to->name, to->type, out);
}

FALLIBLE bind_column_list(struct bind *b, const struct table *table, const char *const *names,
                          const i32 *positions, i32 count, u32 *out) {
    b8 *seen = NEW_ARRAY(b->arena, b8, table->col_count + 1);
    for (i32 i = 0; i < count; i++) {
        TRY(find_column(b, table, names[i], positions[i], &out[i]));
        if (seen[out[i]]) {
            FAIL_AT(b->err, DUPLICATE_COLUMN, positions[i],
                    "column \"%.100s\" specified more than once", names[i]);
        }
        seen[out[i]] = 1;
    }
    return ERR_OK;
}

static FALLIBLE bind_insert_columns(struct bind *b, const struct json *list, struct insert *in) {
    in->listed = list != NULL;
    in->col_count = in->listed ? json_count(list) : (i32)in->table->col_count;
    in->cols = NEW_ARRAY(b->arena, u32, in->col_count + 1);
    if (in->listed) {
        const char **names = NEW_ARRAY(b->arena, const char *, in->col_count);
        i32 *positions = NEW_ARRAY(b->arena, i32, in->col_count);
        i32 i = 0;
        JSON_EACH(node, list) {
            const struct json *target = node_body(node);
            TRY(bind_only(b, target, "name location", json_position(target)));
            names[i] = json_text(target, "name");
            names[i] = names[i] ? names[i] : "";
            positions[i++] = json_position(target);
        }
        in->positions = positions;
        TRY(bind_column_list(b, in->table, names, positions, in->col_count, in->cols));
    }
    in->targets = NEW_ARRAY(b->arena, struct column_def, in->col_count + 1);
    for (i32 i = 0; i < in->col_count; i++) {
        in->cols[i] = in->listed ? in->cols[i] : (u32)i;
        in->targets[i] = in->table->cols[in->cols[i]];
    }
    return ERR_OK;
}

/* How many values a row has must suit the columns it is for. */
static FALLIBLE check_width(struct bind *b, const struct insert *in, i64 width,
                            i32 extra_position) {
    if (width > in->col_count) {
        FAIL_AT(b->err, SYNTAX, extra_position, "INSERT has more expressions than target columns");
    }
    if (in->listed && width < in->col_count) {
        FAIL_AT(b->err, SYNTAX, in->positions[width],
                "INSERT has more target columns than expressions");
    }
    return ERR_OK;
}

static FALLIBLE check_row(struct bind *b, const struct insert *in, const struct json *items) {
    const struct json *extra = json_first(items);
    for (i32 i = 0; extra && i < in->col_count; i++) {
        extra = extra->next;
    }
    return check_width(b, in, json_count(items), node_position(extra));
}

static FALLIBLE check_identity(struct bind *b, const struct insert *in,
                               const struct column_def *def, i32 position) {
    if (def->identity == 'a' && in->overriding != 's') {
        error_set(b->err, ERR_GENERATED_ALWAYS, position,
                  "cannot insert a non-DEFAULT value into column \"%.100s\"", def->name);
        error_hint(b->err, "Use OVERRIDING SYSTEM VALUE to override.");
        return ERR_GENERATED_ALWAYS;
    }
    return ERR_OK;
}

/* What a column gets that the statement gives no value. */
static FALLIBLE insert_default(struct bind *b, struct query *q, struct insert *in, u32 col,
                               struct expr **out) {
    const struct column_def *def = &in->table->cols[col];
    bool fills = false;
    TRY(bind_default_value(b, &q->pending, def, out, &fills));
    if (fills && in->serial) {
        return bind_next_value(b, &q->pending, def, out);
    }
    for (i64 i = 0; i < in->fills.count; i++) {
        fills = fills && in->fills.items[i].col != col;
    }
    if (fills) {
        VEC_PUSH(b->arena, &in->fills, ((struct fill){col, def->sequence}));
    }
    return ERR_OK;
}

/* Whether values of sequences have to be drawn row by row: columns are filled one after the other,
 * so that is wrong where a sequence may serve two of them. */
static bool draws_rows(struct bind *b, const struct table *table) {
    bool draws = false;
    for (u32 i = 0; i < table->col_count; i++) {
        const struct column_def *col = &table->cols[i];
        draws = draws || (!col->sequence && col->default_text && strstr(col->default_text, "val("));
        for (u32 k = 0; k < i && col->sequence; k++) {
            draws = draws || table->cols[k].sequence == col->sequence;
        }
        b->default_effects = b->default_effects || col->sequence;
    }
    b->default_effects = b->default_effects || draws;
    return draws || strstr(arena_sv(b->arena, b->parsed->text).ptr, "val(");
}

/* Where the defaults of the listed columns are drawn. The only row of VALUES is computed column by
 * column of the table, several rows as written and then the columns left. Those include an identity
 * whose values are not taken from the list. A column to fill is NULL in every row, so a sequence
 * that serves some rows only is drawn by the plan. */
static void place_defaults(struct bind *b, struct insert *in, const struct json *lists, i64 rows) {
    i64 *defaults = NEW_ARRAY(b->arena, i64, in->col_count + 1);
    in->one_row = rows == 1;
    JSON_EACH(list, lists) {
        i32 i = 0;
        JSON_EACH(item, json_get(node_body(list), "items")) {
            if (i < in->col_count) {
                defaults[i++] += node_is(item, "SetToDefault");
            }
        }
    }
    for (i32 i = 0; i < in->col_count; i++) {
        const struct column_def *def = &in->targets[i];
        bool own = in->overriding == 'u' ||
                   (def->identity == 'a' && in->overriding != 's' && defaults[i] == rows);
        in->after[in->cols[i]] = in->one_row || (def->identity && own);
        in->serial = in->serial || (def->sequence && !in->after[in->cols[i]] && defaults[i] > 0 &&
                                    defaults[i] < rows);
    }
}

void waiting_note(struct bind *b, struct waiting *w, const pending_list *pending, u32 col) {
    while (w->of.count < pending->count) {
        VEC_PUSH(b->arena, &w->of, col);
    }
}

void waiting_order(struct bind *b, const struct waiting *w, u32 col_count, pending_list *pending) {
    pending_list sorted = {0};
    for (u32 col = 0; col < col_count && pending->count > 1; col++) {
        for (i64 i = 0; i < pending->count; i++) {
            if (w->of.items[i] == col) {
                VEC_PUSH(b->arena, &sorted, pending->items[i]);
            }
        }
    }
    *pending = pending->count > 1 ? sorted : *pending;
}

/* A value as written. Where the column's own comes instead, nothing is left of the one of an only
 * row; among several rows it is computed for what it does. */
static FALLIBLE insert_item(struct bind *b, struct query *q, struct insert *in,
                            const struct json *item, i32 i, struct expr **row) {
    const struct column_def *def = &in->targets[i];
    struct expr *expr = NULL, *value = NULL;
    u32 col = in->cols[i];
    i64 waiting = q->pending.count;
    if (node_is(item, "SetToDefault")) {
        return in->after[col] ? ERR_OK : insert_default(b, q, in, col, &row[col]);
    }
    bool dropped = in->overriding == 'u' && def->identity;
    TRY(dropped ? ERR_OK : check_identity(b, in, def, node_position(item)));
    TRY(bind_expr(b, q, item, &expr));
    TRY(bind_assign(b, expr, def, &value));
    row[col] = dropped ? NULL : value;
    q->pending.count = dropped && in->one_row ? waiting : q->pending.count;
    return ERR_OK;
}

static FALLIBLE insert_row(struct bind *b, struct query *q, struct insert *in,
                           const struct json *items, struct expr **row) {
    i32 i = 0;
    struct waiting w = {0};
    TRY(check_row(b, in, items));
    JSON_EACH(item, items) {
        TRY(insert_item(b, q, in, item, i, row));
        waiting_note(b, &w, &q->pending, in->cols[i]);
        i++;
    }
    for (u32 col = 0; col < in->table->col_count; col++) {
        if (!row[col]) {
            TRY(insert_default(b, q, in, col, &row[col]));
            waiting_note(b, &w, &q->pending, col);
        }
    }
    if (in->one_row) {
        waiting_order(b, &w, in->table->col_count, &q->pending);
    }
    return ERR_OK;
}

static void values_columns(struct bind *b, const struct table *table, struct rel *rel, i64 rows) {
    i64 width = table->col_count;
    b8 *nullable = NEW_ARRAY(b->arena, b8, width + 1);
    for (i64 r = 0; r < rows; r++) {
        for (i64 c = 0; c < width; c++) {
            nullable[c] |= expr_nullable(b->plan, rel->values.exprs.items[r * width + c]);
        }
    }
    for (i64 c = 0; c < width; c++) {
        const char *name = arena_sv(b->arena, sv_from(table->cols[c].name)).ptr;
        u32 col = bind_col_new(b, NULL, name, table->cols[c].type, nullable[c]);
        VEC_PUSH(b->arena, &rel->out, col);
    }
}

/* `lists` is NULL for DEFAULT VALUES. */
static FALLIBLE insert_values(struct bind *b, struct insert *in, const struct json *lists,
                              struct rel **out) {
    i64 width = in->table->col_count;
    i64 rows = lists ? json_count(lists) : 1;
    i64 first = -1;
    place_defaults(b, in, lists, rows);
    struct rel *rel = rel_new(b->plan, REL_VALUES, NULL, NULL);
    struct query q = {.clause = "VALUES", .ctes = in->ctes, .subqueries_allowed = 1};
    pending_list *pending_of = NEW_ARRAY(b->arena, pending_list, rows + 1);
    bool plain = true;
    rel->rows = rows;
    rel->values.exprs.items = NEW_ARRAY(b->arena, struct expr *, rows * width + 1);
    rel->values.exprs.count = rows * width;
    rel->values.exprs.cap = rows * width;
    i64 at = 0;
    JSON_EACH(list, lists) {
        const struct json *items = json_get(node_body(list), "items");
        first = first < 0 ? json_count(items) : first;
        if (json_count(items) != first) {
            FAIL_AT(b->err, SYNTAX, node_position(items),
                    "VALUES lists must all be the same length");
        }
        TRY(insert_row(b, &q, in, items, rel->values.exprs.items + at));
        pending_of[at / width] = q.pending;
        plain = plain && bind_values_late(b, &q.pending);
        memset(&q.pending, 0, sizeof q.pending);
        at += width;
    }
    for (; at < rows * width; at++) {
        TRY(insert_default(b, &q, in, (u32)(at % width), &rel->values.exprs.items[at]));
    }
    if (!lists) {
        pending_of[0] = q.pending;
        plain = bind_values_late(b, &q.pending);
    }
    values_columns(b, in->table, rel, rows);
    for (i64 r = 0; plain && r < rows; r++) {
        bind_values_params(b, &pending_of[r], rel->values.exprs.items + r * width, width);
    }
    *out = plain ? rel : bind_values_union(b, rel, pending_of, rows, width);
    return ERR_OK;
}

/* Where column i of `count` is written in the SELECT, or in the first of a set operation. One star
 * may stand for several columns. */
static i32 target_position(const struct json *select, i64 i, i64 count) {
    i32 position = node_position(select);
    while (json_get(select, "larg")) {
        select = json_get(select, "larg");
    }
    i64 extra = count - json_count(json_get(select, "targetList"));
    JSON_EACH(item, json_get(select, "targetList")) {
        const struct json *val = json_get(node_body(item), "val");
        i64 made = bind_is_star(val) ? extra + 1 : 1;
        if (i < made) {
            return json_position(node_body(item));
        }
        i -= made;
    }
    return position;
}

static FALLIBLE insert_select(struct bind *b, struct insert *in, const struct json *select,
                              struct rel **out) {
    struct select_out result = {0};
    struct query q = {.clause = "DEFAULT", .subqueries_allowed = 1};
    TRY(bind_select(b, select, in->ctes, in->targets, (u32)in->col_count, &result));
    i64 count = result.rel->out.count;
    TRY(check_width(b, in, count, target_position(select, in->col_count, count)));
    u32 width = in->table->col_count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, width + 1);
    const char **names = NEW_ARRAY(b->arena, const char *, width + 1);
    for (i64 i = 0; i < count; i++) {
        i32 at = target_position(select, i, count);
        struct expr *expr = expr_col(b->plan, result.rel->out.items[i], at);
        if (in->overriding == 'u' && in->targets[i].identity) {
            continue;
        }
        TRY(check_identity(b, in, &in->targets[i], at));
        TRY(bind_assign(b, expr, &in->targets[i], &exprs[in->cols[i]]));
    }
    for (u32 c = 0; c < width; c++) {
        names[c] = arena_sv(b->arena, sv_from(in->table->cols[c].name)).ptr;
        if (!exprs[c]) {
            TRY(insert_default(b, &q, in, c, &exprs[c]));
        }
    }
    struct rel *rows = bind_attach(b, result.rel, &q.pending);
    *out = bind_project(b, rows, exprs, names, width);
    return ERR_OK;
}

/* VALUES and nothing else. */
static bool is_plain_values(const struct json *select) {
    return json_get(select, "valuesLists") && !json_get(select, "sortClause") &&
           !json_get(select, "limitCount") && !json_get(select, "limitOffset") &&
           !json_get(select, "withClause");
}

/* Where a name next stands in the text; -1 = nowhere. */
static i32 lex_after(struct sv script, i64 at, const char *name) {
    struct sv token;
    while (at >= 0 && lex_next(script, &at, &token)) {
        if (sv_eq_nocase(token, sv_from(name))) {
            return (i32)(token.ptr - script.ptr);
        }
    }
    return -1;
}

/* ON CONFLICT (…) WHERE: any key serves, since none is partial; looked at for its errors. */
static FALLIBLE conflict_predicate(struct bind *b, const struct table *table,
                                   const struct json *where) {
    struct scope scope = {0};
    struct expr *cond = NULL;
    struct table_def def = table_def_view(table);
    if (!where) {
        return ERR_OK;
    }
    ddl_scope(b, &def, &scope);
    struct query q = {.scope = &scope, .clause = "WHERE"};
    return bind_condition(b, &q, where, "WHERE", &cond);
}

/* Whether the list names all columns of the key and no others, some perhaps twice. */
static bool conflict_names(const struct table *table, const struct table_key *key,
                           const struct json *elems) {
    u64 found = 0;
    JSON_EACH(node, elems) {
        const char *col = json_text(node_body(node), "name");
        bool own = false;
        for (u32 i = 0; i < key->col_count; i++) {
            if (col && strcmp(table->cols[key->cols[i]].name, col) == 0) {
                found |= 1ULL << i;
                own = true;
            }
        }
        if (!own) {
            return false;
        }
    }
    return found == (1ULL << key->col_count) - 1;
}

/* The key that ON CONFLICT (columns) or ON CONSTRAINT name means. */
static FALLIBLE conflict_key(struct bind *b, const struct table *table, const struct json *infer,
                             i32 position, i32 *out) {
    const struct json *elems = json_get(infer, "indexElems");
    const char *name = json_text(infer, "conname");
    TRY(bind_only(b, infer, "indexElems conname whereClause location", position));
    TRY(conflict_predicate(b, table, json_get(infer, "whereClause")));
    for (u32 k = 0; k < table->key_count; k++) {
        const struct table_key *key = &table->keys[k];
        bool columns = elems && conflict_names(table, key, elems);
        if (name ? strcmp(key->name, name) == 0 && !key->index : columns) {
            *out = (i32)k;
            return ERR_OK;
        }
    }
    JSON_EACH(node, elems) { /* a column that is not there comes first */
        const char *col = json_text(node_body(node), "name");
        u32 number = 0;
        if (col) {
            i32 at = lex_after(b->parsed->script, position, col);
            TRY(find_column(b, table, col, at < 0 ? position : at, &number));
        }
    }
    for (u32 i = 0; name && i < table->check_count + table->foreign_count; i++) {
        const char *other = i < table->check_count ? table->checks[i].name
                                                   : table->foreigns[i - table->check_count].name;
        if (strcmp(other, name) == 0) {
            FAIL_AT(b->err, WRONG_OBJECT, position,
                    "constraint in ON CONFLICT clause has no associated index");
        }
    }
    if (name) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, position,
                "constraint \"%.100s\" for table \"%.100s\" does not exist", name, table->name);
    }
    FAIL_AT(b->err, INVALID_COLUMN_REFERENCE, position,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification");
}

static FALLIBLE insert_conflict(struct bind *b, const struct json *clause, const struct insert *in,
                                struct statement *out) {
    const struct json *infer = json_get(clause, "infer");
    i32 position = json_position(clause);
    out->change.conflict_key = -1;
    if (!clause) {
        return ERR_OK;
    }
    TRY(bind_only(b, clause, "action infer targetList whereClause location", position));
    out->change.conflict = json_is(clause, "action", "ONCONFLICT_UPDATE") ? 'u' : 'n';
    if (infer) {
        return conflict_key(b, in->table, infer, position, &out->change.conflict_key);
    }
    if (out->change.conflict == 'u') {
        FAIL_AT(b->err, SYNTAX, position,
                "ON CONFLICT DO UPDATE requires inference specification or constraint name");
    }
    return ERR_OK;
}

static FALLIBLE insert_open(struct bind *b, const struct json *body, struct insert *in,
                            struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    i32 position = json_position(relation);
    struct snapshot_table found;
    TRY(bind_only(b, body,
                  "relation cols selectStmt override withClause returningList onConflictClause",
                  position));
    in->overriding = json_is(body, "override", "OVERRIDING_SYSTEM_VALUE") ? 's'
                     : json_is(body, "override", "OVERRIDING_USER_VALUE") ? 'u'
                                                                          : 0;
    TRY(bind_with(b, json_get(body, "withClause"), NULL, &in->ctes));
    TRY(bind_table(b, relation, "insert into", &found));
    in->found = found;
    in->table = found.table;
    in->serial = draws_rows(b, in->table);
    in->after = NEW_ARRAY(b->arena, b8, in->table->col_count + 1);
    out->change.table_id = found.table->id;
    out->name = keep(b, found.table->name);
    out->position = position;
    return bind_insert_columns(b, json_get(body, "cols"), in);
}

/* SELECT returningList FROM rows. Subqueries see the table as it was before. */
FALLIBLE bind_insert_returning(struct bind *b, const struct json *body,
                               const struct snapshot_table *rows, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    const char *alias = json_text(json_get(relation, "alias"), "aliasname");
    struct change c = {.target = *rows};
    alias = alias ? alias : json_text(relation, "relname");
    TRY(bind_table_scope(b, rows, keep(b, alias), json_position(relation), &c.scope));
    c.query.scope = &c.scope;
    c.rel = c.scope.rel;
    TRY(change_finish(b, &c, json_get(body, "returningList"), out));
    out->kind = STATEMENT_SELECT;
    return ERR_OK;
}

static FALLIBLE check_returning(struct bind *b, const struct json *body,
                                const struct snapshot_table *rows) {
    struct typing typing;
    struct bind own;
    struct statement ignored = {0};
    change_apart(b, &own, &typing);
    return bind_insert_returning(&own, body, rows, &ignored);
}

FALLIBLE bind_insert(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *select = node_body(json_get(body, "selectStmt"));
    struct insert in = {0};
    TRY(insert_open(b, body, &in, out));
    if (!select || is_plain_values(select)) {
        TRY(insert_values(b, &in, json_get(select, "valuesLists"), &b->plan->root));
    } else {
        TRY(insert_select(b, &in, select, &b->plan->root));
    }
    TRY(bind_with_unused(b, in.ctes, NULL));
    for (u32 i = 0; i < in.table->col_count; i++) {
        const char *name = arena_sv(b->arena, sv_from(in.table->cols[i].name)).ptr;
        VEC_PUSH(b->arena, &b->plan->names, name);
    }
    out->change.fills = in.fills.items;
    out->change.fill_count = (i32)in.fills.count;
    TRY(insert_conflict(b, json_get(body, "onConflictClause"), &in, out));
    TRY(out->change.conflict == 'u' ? bind_conflict_check(b, body) : ERR_OK);
    out->change.returning = json_count(json_get(body, "returningList"));
    TRY(out->change.returning ? check_returning(b, body, &in.found) : ERR_OK);
    out->kind = STATEMENT_INSERT;
    out->plan = b->plan;
    return ERR_OK;
}
