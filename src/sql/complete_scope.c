/* complete_scope.c: the tables and columns that a statement sees at the cursor.
 *
 * Part of completion. A query is a run of tokens between parentheses; its FROM list is read token
 * by token: names, aliases, subqueries. Outer queries are seen from inner ones. */
#include "sql/complete_int.h"

enum { SCOPE_DEPTH = 8, SCOPE_ITEMS = 64 };

/* An item of FROM: a table by name, or a query between tokens. */
struct item {
    const char *schema; /* NULL = along the path */
    const char *name;   /* NULL = a query */
    i64 lo, hi;
    const char *alias;
};
struct items {
    struct item list[SCOPE_ITEMS];
    i32 count;
};

static void query_columns(struct completion *c, i64 lo, i64 hi, i32 depth);

/* --- the catalog --- */

static void offer_column(struct completion *c, const char *name) {
    complete_offer_name(c, name, COMPLETE_COLUMN);
}

/* A view's columns, from its text: the statement at hand rests meanwhile. */
static void view_columns(struct completion *c, const struct object *view, i32 depth) {
    if (view->col_count > 0) {
        for (u32 i = 0; i < view->col_count; i++) {
            offer_column(c, view->col_names[i]);
        }
        return;
    }
    struct completion inner = *c;
    struct sv text = sv_from(view->text), token;
    i64 at = 0;
    inner.tokens.items = NULL;
    inner.tokens.count = inner.tokens.cap = 0;
    while (lex_next(text, &at, &token)) {
        VEC_PUSH(c->arena, &inner.tokens, token);
    }
    query_columns(&inner, 0, inner.tokens.count, depth + 1);
}

static bool table_columns(struct completion *c, const char *schema, const char *name, i32 depth) {
    struct sv in = schema ? sv_from(schema) : (struct sv){NULL, 0};
    const struct edition_entry *entry = snapshot_lookup(c->snap, in, sv_from(name));
    if (entry && entry->object->kind == OBJECT_TABLE) {
        const struct table *table = snapshot_of(c->snap, entry).table;
        for (u32 i = 0; i < table->col_count; i++) {
            offer_column(c, table->cols[i].name);
        }
        return true;
    }
    if (entry && entry->object->kind == OBJECT_VIEW && entry->object->logical) {
        for (u32 i = 0; i < entry->object->col_count; i++) {
            offer_column(c, entry->object->col_names[i]);
        }
        return true;
    }
    if (entry && entry->object->kind == OBJECT_VIEW) {
        view_columns(c, entry->object, depth);
        return true;
    }
    const char *col;
    bool found = false;
    for (i64 i = 0; (col = system_column(schema, name, i)); i++) {
        offer_column(c, col);
        found = true;
    }
    return found;
}

static void offer_relations(struct completion *c, u32 schema) {
    const char *name;
    u32 in;
    struct edition_walk at = edition_walk_schema(c->snap->edition, schema);
    while (edition_step(&at)) {
        const struct object *object = at.entry->object;
        bool rows = object->kind == OBJECT_TABLE || object->kind == OBJECT_VIEW;
        if (rows && !object->hidden) {
            complete_offer_name(c, object->name, COMPLETE_TABLE);
        }
    }
    for (i64 i = 0; (name = system_relation(i, &in)); i++) {
        if (in == schema) {
            complete_offer_name(c, name, COMPLETE_TABLE);
        }
    }
}

void complete_offer_schemas(struct completion *c) {
    struct edition_walk at = edition_walk(c->snap->edition);
    while (edition_step(&at)) {
        const struct object *object = at.entry->object;
        if (object->kind == OBJECT_SCHEMA && strncmp(object->name, "pg_temp", 7) != 0) {
            complete_offer_name(c, object->name, COMPLETE_SCHEMA);
        }
    }
}

/* --- FROM --- */

static bool ends_item(const struct completion *c, i64 i) {
    return complete_among(c, i,
                          "where on join left right full inner cross natural group order limit "
                          "offset set using having union except intersect returning values window "
                          "fetch for tablesample select from default do with");
}

/* The item that begins at token i; returns the token behind it. */
static i64 read_item(struct completion *c, i64 i, i64 hi, struct items *out) {
    struct item item = {0};
    i += complete_among(c, i, "only lateral");
    if (i >= hi) {
        return hi;
    }
    if (complete_is(c, i, "(")) {
        item.lo = i + 1;
        item.hi = complete_close(c, i, hi);
        i = item.hi + 1;
    } else if (complete_is_name(c->tokens.items[i]) && !ends_item(c, i)) {
        item.name = complete_name(c, i++);
        if (i + 1 < hi && complete_is(c, i, ".") && complete_is_name(c->tokens.items[i + 1])) {
            item.schema = item.name;
            item.name = complete_name(c, i + 1);
            i += 2;
        }
        i = complete_is(c, i, "(") && i < hi ? complete_close(c, i, hi) + 1 : i;
    } else {
        i++; /* a file */
    }
    i += i < hi && complete_is(c, i, "as");
    item.alias = item.name;
    if (i < hi && complete_is_name(c->tokens.items[i]) && !ends_item(c, i)) {
        item.alias = complete_name(c, i++);
    }
    if (out->count < SCOPE_ITEMS) {
        out->list[out->count++] = item;
    }
    return i;
}

/* The FROM items of the query between two tokens, of the branch of a union that `here` is in. */
static void read_from(struct completion *c, i64 lo, i64 hi, i64 here, struct items *out) {
    bool from = false;
    for (i64 i = lo; i < hi;) {
        if (complete_among(c, i, "union except intersect")) {
            if (i >= here) {
                return;
            }
            out->count = 0;
            from = false;
        }
        bool names = complete_among(c, i, "from join into update") ||
                     (from && complete_is(c, i, ",")) || (i == 0 && complete_is(c, i, "copy"));
        bool wraps = complete_among(c, i - 1, "do for") ||
                     (complete_is(c, i, "from") && complete_is(c, i - 1, "distinct"));
        if (names && !wraps) {
            from = from || complete_is(c, i, "from");
            i = read_item(c, i + 1, hi, out);
            continue;
        }
        from = from && !complete_among(c, i, "where group order having limit window set select");
        i = complete_is(c, i, "(") ? complete_close(c, i, hi) + 1 : i + 1;
    }
}

/* A WITH query of the name, anywhere in the statement. */
static bool find_with(struct completion *c, const char *name, struct item *out) {
    for (i64 i = 1; i + 2 < c->tokens.count; i++) {
        if (!complete_among(c, i - 1, "with recursive ,") ||
            !complete_is_name(c->tokens.items[i]) || strcmp(complete_name(c, i), name) != 0) {
            continue;
        }
        i64 at = i + 1;
        at = complete_is(c, at, "(") ? complete_close(c, at, c->tokens.count) + 1 : at;
        if (!complete_is(c, at, "as")) {
            continue;
        }
        at += 1;
        while (complete_among(c, at, "not materialized")) {
            at++;
        }
        if (complete_is(c, at, "(")) {
            *out = (struct item){.lo = at + 1, .hi = complete_close(c, at, c->tokens.count)};
            return true;
        }
    }
    return false;
}

static void item_columns(struct completion *c, const struct item *item, i32 depth) {
    struct item with;
    if (depth > SCOPE_DEPTH) {
        return;
    }
    if (!item->name) {
        query_columns(c, item->lo, item->hi, depth + 1);
    } else if (!item->schema && find_with(c, item->name, &with)) {
        query_columns(c, with.lo, with.hi, depth + 1);
    } else {
        (void)table_columns(c, item->schema, item->name, depth);
    }
}

/* --- what a query gives --- */

/* One item of a select list, tokens lo to hi. */
static void output_columns(struct completion *c, const struct items *from, i64 lo, i64 hi,
                           i32 depth) {
    i64 last = hi - 1;
    if (complete_is(c, last, "*") && (last == lo || complete_is(c, last - 1, "."))) {
        const char *only = last > lo + 1 ? complete_name(c, last - 2) : NULL;
        for (i32 i = 0; i < from->count; i++) {
            if (!only || (from->list[i].alias && strcmp(from->list[i].alias, only) == 0)) {
                item_columns(c, &from->list[i], depth);
            }
        }
    } else if (last >= lo && complete_is_name(c->tokens.items[last])) {
        offer_column(c, complete_name(c, last));
    } else if (last > lo && complete_is(c, last, ")") && complete_is(c, lo + 1, "(") &&
               complete_is_name(c->tokens.items[lo])) {
        offer_column(c, complete_name(c, lo));
    }
}

static void query_columns(struct completion *c, i64 lo, i64 hi, i32 depth) {
    struct items from = {.count = 0};
    if (depth > SCOPE_DEPTH || lo >= hi) {
        return;
    }
    if (complete_is(c, lo, "(")) {
        query_columns(c, lo + 1, complete_close(c, lo, hi), depth + 1);
        return;
    }
    i64 i = lo;
    while (i < hi && !complete_is(c, i, "select")) {
        i = complete_is(c, i, "(") ? complete_close(c, i, hi) + 1 : i + 1;
    }
    read_from(c, i, hi, i + 1, &from);
    i += 1 + complete_among(c, i + 1, "distinct all");
    i64 start = i;
    for (; i <= hi; i++) {
        bool ends = i >= hi || complete_among(c, i, ", from where group order limit union into");
        if (ends) {
            output_columns(c, &from, start, MIN_OF(i, hi), depth);
            start = i + 1;
            if (!complete_is(c, i, ",")) {
                return;
            }
        } else if (complete_is(c, i, "(")) {
            i = complete_close(c, i, hi);
        }
    }
}

/* --- the cursor --- */

/* The query around the cursor, `level` queries out; false when there are not so many. */
static bool query_around(const struct completion *c, i32 level, i64 *out_lo, i64 *out_hi,
                         i64 *out_here) {
    i64 lo = c->here, hi = c->here;
    for (;; level--) {
        i64 depth = 0;
        *out_here = lo;
        while (lo > 0 && depth >= 0) {
            lo--;
            depth += complete_is(c, lo, ")") - complete_is(c, lo, "(");
        }
        bool outermost = depth >= 0;
        lo += !outermost;
        for (depth = 0; hi < c->tokens.count; hi++) {
            depth += complete_is(c, hi, "(") - complete_is(c, hi, ")");
            if (depth < 0) {
                break;
            }
        }
        if (level == 0) {
            *out_lo = lo;
            *out_hi = hi;
            return true;
        }
        if (outermost) {
            return false;
        }
        lo--;
        hi++;
    }
}

static void read_scope(struct completion *c, i32 level, struct items *out, bool *out_more) {
    i64 lo, hi, here;
    out->count = 0;
    *out_more = query_around(c, level, &lo, &hi, &here);
    if (*out_more) {
        read_from(c, lo, MIN_OF(hi, c->tokens.count), here, out);
    }
}

void complete_offer_tables(struct completion *c) {
    u32 path[PATH_MAX_SCHEMAS];
    i32 count = snapshot_path(c->snap, path);
    for (i32 i = 0; i < count; i++) {
        if (path[i] != OID_PG_CATALOG || c->prefix.len > 0) {
            offer_relations(c, path[i]);
        }
    }
    for (i64 i = 1; i + 2 < c->tokens.count; i++) {
        struct item with;
        if (complete_among(c, i - 1, "with recursive ,") && complete_is_name(c->tokens.items[i]) &&
            find_with(c, complete_name(c, i), &with)) {
            complete_offer_name(c, complete_name(c, i), COMPLETE_TABLE);
        }
    }
    struct sql_function f;
    bool reads = complete_among(c, c->here - 1, "from join lateral , (") &&
                 !complete_is(c, c->here - 2, "delete");
    for (i32 i = 0; reads && c->prefix.len > 0 && sql_function(i, &f); i++) {
        if (strcmp(f.kind, "table function") == 0) {
            complete_offer_word(c, f.name, COMPLETE_FUNCTION);
        }
    }
    if (c->prefix.len > 0) {
        complete_offer_schemas(c);
    }
    if (c->prefix.len > 0 && complete_is(c, c->here - 1, "(")) {
        complete_offer_word(c, "select", COMPLETE_KEYWORD);
    }
}

void complete_offer_columns(struct completion *c) {
    struct items items;
    bool more = true, any = false;
    for (i32 level = 0; more && level < SCOPE_DEPTH; level++) {
        read_scope(c, level, &items, &more);
        for (i32 i = 0; i < items.count; i++) {
            item_columns(c, &items.list[i], 0);
            any = true;
            if (c->prefix.len > 0 && items.list[i].alias) {
                complete_offer_name(c, items.list[i].alias, COMPLETE_TABLE);
            }
        }
    }
    struct edition_walk at = edition_walk(c->snap->edition);
    while (!any && c->prefix.len > 0 && edition_step(&at)) {
        const struct object *object = at.entry->object;
        if (object->kind == OBJECT_TABLE && !object->hidden) { /* FROM is yet to come */
            (void)table_columns(c, NULL, object->name, 0);
        }
    }
}

void complete_offer_columns_of(struct completion *c, i64 name) {
    if (name < 0 || name >= c->tokens.count || !complete_is_name(c->tokens.items[name])) {
        return;
    }
    bool dotted = name > 1 && complete_is(c, name - 1, ".");
    (void)table_columns(c, dotted ? complete_name(c, name - 2) : NULL, complete_name(c, name), 0);
}

void complete_offer_qualified(struct completion *c, i64 name) {
    struct items items;
    bool more = true;
    if (!complete_is_name(c->tokens.items[name])) {
        return;
    }
    const char *qualifier = complete_name(c, name);
    const struct edition_entry *schema = edition_find_schema(c->snap->edition, sv_from(qualifier));
    if (schema && complete_among(c, name - 1, "from join into update table copy only references")) {
        offer_relations(c, schema->object->oid);
        return;
    }
    for (i32 level = 0; more && level < SCOPE_DEPTH; level++) {
        read_scope(c, level, &items, &more);
        for (i32 i = 0; i < items.count; i++) {
            const struct item *item = &items.list[i];
            if (item->alias && strcmp(item->alias, qualifier) == 0) {
                item_columns(c, item, 0);
                return;
            }
        }
    }
    if (schema) {
        offer_relations(c, schema->object->oid);
    } else {
        complete_offer_columns_of(c, name);
    }
}
