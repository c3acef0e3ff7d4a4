/* bind_alter.c: ALTER TABLE and its kin.
 *
 * Part of binding. The commands of one statement are applied one after the other to a copy of the
 * table's definition, so that each sees what those before it did. The outcome is a new definition
 * and, for every column of it, where its values come from: a column of the old table, a constant,
 * or an expression over the old row. What that means for the rows is for the statement's execution.
 */
#include "sql/change_int.h"
#include "sql/ddl_int.h"

struct alter {
    struct bind *b;
    struct statement *out;
    struct table_def *def;
    const struct object *object;
    struct scope scope;   /* of the old table */
    pending_list pending; /* what defaults of new columns draw from sequences */
    i64 at;               /* in the text: the table, before all commands */
    b8 rewrite;           /* values of a column change */
    char word[32];
};

static FALLIBLE find_column(struct alter *a, const char *name, u32 *out) {
    for (u32 i = 0; i < a->def->col_count; i++) {
        if (strcmp(a->def->cols[i].name, name) == 0) {
            *out = i;
            return ERR_OK;
        }
    }
    FAIL_AT(a->b->err, UNDEFINED_COLUMN, a->out->position,
            "column \"%.100s\" of relation \"%.100s\" does not exist", name, a->def->name);
}

static FALLIBLE add_column(struct alter *a, const struct json *cmd) {
    const struct json *body = node_body(json_get(cmd, "def"));
    const char *name = json_text(body, "colname");
    struct bind *b = a->b;
    u32 at = a->def->col_count;
    for (u32 i = 0; name && i < at; i++) {
        if (strcmp(a->def->cols[i].name, name) == 0) {
            if (json_flag(cmd, "missing_ok")) {
                return ERR_OK;
            }
            FAIL_AT(b->err, DUPLICATE_COLUMN, a->out->position,
                    "column \"%.100s\" of relation \"%.100s\" already exists", name, a->def->name);
        }
    }
    if (at >= COLUMNS_MAX) {
        FAIL_AT(b->err, TOO_MANY_COLUMNS, a->out->position, "tables can have at most %d columns",
                (int)COLUMNS_MAX);
    }
    struct column_def *cols = NEW_ARRAY(b->arena, struct column_def, at + 2);
    struct alter_col *from = NEW_ARRAY(b->arena, struct alter_col, at + 2);
    memcpy(cols, a->def->cols, at * sizeof *cols);
    memcpy(from, a->out->alter.from, at * sizeof *from);
    a->def->cols = cols;
    a->out->alter.from = from;
    from[at].old = -1;
    TRY(ddl_column(b, body, &a->out->alter.table, at));
    a->def->col_count = at + 1;
    bool fills = false;
    const struct new_table *made = &a->out->alter.table;
    for (i32 i = 0; i < made->seq_count; i++) { /* made when the statement runs */
        fills = fills || made->seqs[i].col == at;
    }
    if (fills) {
        from[at].value = expr_null(b->t, cols[at].type, -1);
    } else {
        TRY(bind_default_value(b, &a->pending, &cols[at], &from[at].value, &fills));
    }
    from[at].fills = fills;
    return ddl_column_keys(b, body, a->def, NULL);
}

static bool key_uses(u32 count, const u32 *cols, u32 col) {
    for (u32 i = 0; i < count; i++) {
        if (cols[i] == col) {
            return true;
        }
    }
    return false;
}

static bool names_column(const char *text, const char *name) {
    struct sv token;
    i64 at = 0;
    return lex_column(sv_from(text), name, &at, &token);
}

static void renumber(u32 count, u32 **cols, u32 gone, struct arena *arena) {
    u32 *next = NEW_ARRAY(arena, u32, count + 1);
    for (u32 i = 0; i < count; i++) {
        next[i] = (*cols)[i] - ((*cols)[i] > gone);
    }
    *cols = next;
}

/* Constraints that name the column go with it. */
static void drop_its_constraints(struct alter *a, u32 col) {
    struct table_def *def = a->def;
    struct arena *arena = a->b->arena;
    u32 kept = 0;
    for (u32 i = 0; i < def->key_count; i++) {
        struct table_key key = def->keys[i];
        if (!key_uses(key.col_count, key.cols, col)) {
            renumber(key.col_count, &key.cols, col, arena);
            def->keys[kept++] = key;
        }
    }
    def->key_count = kept;
    kept = 0;
    for (u32 i = 0; i < def->check_count; i++) {
        if (!names_column(def->checks[i].text, def->cols[col].name)) {
            def->checks[kept++] = def->checks[i];
        }
    }
    def->check_count = kept;
    kept = 0;
    for (u32 i = 0; i < def->foreign_count; i++) {
        struct table_foreign fk = def->foreigns[i];
        if (!key_uses(fk.col_count, fk.cols, col)) {
            renumber(fk.col_count, &fk.cols, col, arena);
            if (!fk.ref_oid) {
                renumber(fk.col_count, &fk.ref_cols, col, arena);
            }
            def->foreigns[kept++] = fk;
        }
    }
    def->foreign_count = kept;
}

/* Whether a view takes all columns of something: a star that is neither count(*) nor a product. */
static bool has_star(const char *text) {
    static const char *const before[] = {"select", "distinct", "all", ",", ".", ")"};
    struct sv token, last = {"", 0};
    for (i64 at = 0; lex_next(sv_from(text), &at, &token); last = token) {
        for (i64 i = 0; sv_eq(token, SV("*")) && i < COUNT_OF(before); i++) {
            if (sv_eq_nocase(last, sv_from(before[i]))) {
                return true;
            }
        }
    }
    return false;
}

/* Whether a view that reads the table may use the column: it names it, or all there are. One that
 * reads it through another view, and does not name the table, uses that view's columns. */
static bool view_uses(const struct alter *a, const struct object *view, const char *column) {
    if (view->logical) { /* rules name columns by their places */
        return true;
    }
    bool own = !view->text || lex_names(sv_from(view->text), a->object->name);
    bool known = false; /* columns that came later are not in its `*` */
    for (u32 d = 0; d < view->dep_count; d++) {
        const struct column_names *cols = &view->dep_cols[d];
        for (u32 c = 0; view->deps[d] == a->object->oid && c < cols->count; c++) {
            known = known || strcmp(cols->names[c], column) == 0;
        }
    }
    return own && known &&
           (!view->text || lex_names(sv_from(view->text), column) || has_star(view->text) ||
            lex_names(sv_from(view->text), "natural"));
}

static FALLIBLE depended_on(struct alter *a, const char *what, const struct object *other,
                            bool is_key) {
    bool drops = strncmp(what, "drop", 4) == 0 || is_key;
    error_set(a->b->err, drops ? ERR_DEPENDENT_OBJECTS : ERR_NOT_SUPPORTED, a->out->position,
              "cannot %s of table %.100s because other objects depend on it", what, a->def->name);
    error_hint(a->b->err, "%s \"%s\" depends on it; drop that first.", object_words[other->kind],
               other->name);
    return a->b->err->code;
}

static void also_drop(struct alter *a, u32 oid) {
    struct alter_statement *out = &a->out->alter;
    u32 *drops = NEW_ARRAY(a->b->arena, u32, out->drop_count + 2);
    if (out->drop_count) {
        memcpy(drops, out->drops, (size_t)out->drop_count * sizeof *drops);
    }
    drops[out->drop_count++] = oid;
    out->drops = drops;
}

/* Views that read a column; those go too where `cascade` is set. */
static FALLIBLE check_views(struct alter *a, const char *what, const char *column, bool cascade) {
    struct edition_walk at = edition_walk_users(a->b->snap->edition, a->object->oid);
    while (edition_step(&at)) {
        const struct object *other = at.entry->object;
        if (other->kind != OBJECT_VIEW || !view_uses(a, other, column)) {
            continue;
        }
        if (!cascade) {
            return depended_on(a, what, other, false);
        }
        also_drop(a, other->oid);
        a->out->alter.cascade = 1;
    }
    return ERR_OK;
}

/* Indexes that name the column go with it. */
static void drop_its_indexes(struct alter *a, const char *column) {
    struct edition_walk at = edition_walk_users(a->b->snap->edition, a->object->oid);
    while (edition_step(&at)) {
        const struct object *other = at.entry->object;
        if (other->kind == OBJECT_INDEX && other->text && names_column(other->text, column)) {
            also_drop(a, other->oid);
        }
    }
}

/* The table's own references to one of its keys; with `cascade` they go. Those that have `col`
 * among their columns go with it anyway. */
static FALLIBLE check_own_references(struct alter *a, const char *what, const struct table_key *key,
                                     i64 col, bool cascade) {
    struct table_def *def = a->def;
    u32 kept = 0;
    for (u32 f = 0; f < def->foreign_count; f++) {
        const struct table_foreign *fk = &def->foreigns[f];
        bool rests =
            fk->ref_key == key->oid && !(col >= 0 && key_uses(fk->col_count, fk->cols, (u32)col));
        if (rests && !cascade) {
            return depended_on(a, what, a->object, true);
        }
        def->foreigns[kept] = def->foreigns[f];
        kept += !rests;
    }
    def->foreign_count = kept;
    return ERR_OK;
}

/* Other tables that refer to a key; with `cascade` their references go. */
static FALLIBLE check_referrers(struct alter *a, const char *what, const struct table_key *key,
                                bool cascade) {
    struct edition_walk at = edition_walk_users(a->b->snap->edition, a->object->oid);
    while (edition_step(&at)) {
        const struct object *other = at.entry->object;
        for (u32 f = 0; other->table && f < other->table->foreign_count; f++) {
            if (other == a->object || other->table->foreigns[f].ref_key != key->oid) {
                continue;
            }
            if (!cascade) {
                return depended_on(a, what, other, true);
            }
            a->out->alter.cascade = 1;
        }
    }
    return ERR_OK;
}

/* All that hangs on a column. */
static FALLIBLE check_dependents(struct alter *a, const char *what, const char *what_key, u32 col,
                                 bool cascade) {
    TRY(check_views(a, what, a->def->cols[col].name, cascade));
    for (u32 i = 0; i < a->def->key_count; i++) {
        const struct table_key *key = &a->def->keys[i];
        if (key_uses(key->col_count, key->cols, col)) {
            TRY(check_referrers(a, what_key, key, cascade));
        }
    }
    return ERR_OK;
}

static bool is_system_column(const char *name) {
    static const char *const names[] = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"};
    for (i64 i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static FALLIBLE drop_column(struct alter *a, const struct json *cmd) {
    const char *name = json_text(cmd, "name");
    bool cascade = json_is(cmd, "behavior", "DROP_CASCADE");
    u32 col = 0;
    for (u32 i = 0; i < a->def->col_count; i++) {
        col += strcmp(a->def->cols[i].name, name) == 0;
    }
    if (col == 0 && json_flag(cmd, "missing_ok")) {
        return ERR_OK;
    }
    if (col == 0 && is_system_column(name)) {
        FAIL_AT(a->b->err, NOT_SUPPORTED, a->out->position, "cannot drop system column \"%.100s\"",
                name);
    }
    TRY(find_column(a, name, &col));
    TRY(check_dependents(a, "drop a column", "drop a key", col, cascade));
    for (u32 i = 0; i < a->def->key_count; i++) {
        const struct table_key *key = &a->def->keys[i];
        if (key_uses(key->col_count, key->cols, col)) {
            TRY(check_own_references(a, "drop a key", key, col, cascade));
        }
    }
    drop_its_indexes(a, name);
    drop_its_constraints(a, col);
    u32 after = a->def->col_count - col - 1;
    memmove(a->def->cols + col, a->def->cols + col + 1, after * sizeof *a->def->cols);
    struct alter_col *from = a->out->alter.from;
    memmove(from + col, from + col + 1, after * sizeof *from);
    a->def->col_count--;
    return ERR_OK;
}

/* Behind `name SET DEFAULT`, the last of them: the tree does not say where. */
static i64 after_set_default(struct bind *b, i64 at, const char *name) {
    struct sv token, before[2] = {{"", 0}, {"", 0}};
    i64 found = -1, end = b->parsed->text.ptr + b->parsed->text.len - b->parsed->script.ptr;
    while (at < end && lex_next(b->parsed->script, &at, &token)) {
        if (sv_eq_nocase(token, SV("default")) && sv_eq_nocase(before[1], SV("set")) &&
            lex_is_name(before[0], name)) {
            found = at;
        }
        before[0] = before[1];
        before[1] = token;
    }
    return found;
}

static FALLIBLE column_default(struct alter *a, const struct json *cmd) {
    struct bind *b = a->b;
    u32 col = 0;
    TRY(find_column(a, json_text(cmd, "name"), &col));
    struct column_def *def = &a->def->cols[col];
    if (def->identity) {
        FAIL_AT(b->err, SYNTAX, a->out->position,
                "column \"%.100s\" of relation \"%.100s\" is an identity column", def->name,
                a->def->name);
    }
    def->default_text = NULL;
    def->sequence = 0;
    const struct json *expr = json_get(cmd, "def");
    if (!expr) {
        return ERR_OK;
    }
    i64 at = after_set_default(b, a->at, def->name);
    at = at < 0 ? a->at : at;
    const i64 span[2] = {at, ddl_item_end(b, at)};
    return ddl_default(b, expr, span, def);
}

static FALLIBLE set_not_null(struct alter *a, const struct json *cmd, bool on) {
    u32 col = 0;
    TRY(find_column(a, json_text(cmd, "name"), &col));
    for (u32 i = 0; !on && i < a->def->key_count; i++) {
        const struct table_key *key = &a->def->keys[i];
        if (key->primary && key_uses(key->col_count, key->cols, col)) {
            FAIL_AT(a->b->err, INVALID_DEFINITION, a->out->position,
                    "column \"%.100s\" is in a primary key", a->def->cols[col].name);
        }
    }
    if (!on && a->def->cols[col].identity) {
        FAIL_AT(a->b->err, SYNTAX, a->out->position,
                "column \"%.100s\" of relation \"%.100s\" is an identity column",
                a->def->cols[col].name, a->def->name);
    }
    a->def->cols[col].not_null = on;
    return ERR_OK;
}

static FALLIBLE drop_constraint(struct alter *a, const struct json *cmd) {
    const char *name = json_text(cmd, "name");
    struct table_def *def = a->def;
    u32 before = def->key_count + def->check_count + def->foreign_count, kept = 0;
    for (u32 i = 0; i < def->key_count; i++) {
        if (strcmp(def->keys[i].name, name) != 0 || def->keys[i].index) {
            def->keys[kept++] = def->keys[i];
        } else {
            bool cascade = json_is(cmd, "behavior", "DROP_CASCADE");
            struct table_key key = def->keys[i];
            TRY(check_referrers(a, "drop a key", &key, cascade));
            TRY(check_own_references(a, "drop a key", &key, -1, cascade));
        }
    }
    def->key_count = kept;
    kept = 0;
    for (u32 i = 0; i < def->check_count; i++) {
        if (strcmp(def->checks[i].name, name) != 0) {
            def->checks[kept++] = def->checks[i];
        }
    }
    def->check_count = kept;
    kept = 0;
    for (u32 i = 0; i < def->foreign_count; i++) {
        if (strcmp(def->foreigns[i].name, name) != 0) {
            def->foreigns[kept++] = def->foreigns[i];
        }
    }
    def->foreign_count = kept;
    if (before == def->key_count + def->check_count + def->foreign_count &&
        !json_flag(cmd, "missing_ok")) {
        FAIL_AT(a->b->err, UNDEFINED_OBJECT, a->out->position,
                "constraint \"%.100s\" of relation \"%.100s\" does not exist", name, def->name);
    }
    return ERR_OK;
}

static FALLIBLE validate_constraint(struct alter *a, const struct json *cmd) {
    const char *name = json_text(cmd, "name");
    struct table_def *def = a->def;
    bool found = false;
    for (u32 i = 0; i < def->check_count; i++) {
        bool is = strcmp(def->checks[i].name, name) == 0;
        def->checks[i].unvalidated = def->checks[i].unvalidated && !is;
        found = found || is;
    }
    for (u32 i = 0; i < def->foreign_count; i++) {
        bool is = strcmp(def->foreigns[i].name, name) == 0;
        def->foreigns[i].unvalidated = def->foreigns[i].unvalidated && !is;
        found = found || is;
    }
    for (u32 i = 0; i < def->key_count && !found; i++) {
        if (strcmp(def->keys[i].name, name) == 0 && !def->keys[i].index) {
            FAIL_AT(a->b->err, WRONG_OBJECT, a->out->position,
                    "constraint \"%.100s\" of relation \"%.100s\" is not a foreign key or check "
                    "constraint",
                    name, def->name);
        }
    }
    if (!found) {
        FAIL_AT(a->b->err, UNDEFINED_OBJECT, a->out->position,
                "constraint \"%.100s\" of relation \"%.100s\" does not exist", name, def->name);
    }
    return ERR_OK;
}

/* The column's DEFAULT, which is of its old type, under the new one. */
static FALLIBLE default_fits(struct alter *a, const struct column_def *column, struct type type) {
    if (column->default_text && !column->sequence &&
        !coerce_allowed(column->type, type, COERCE_ASSIGN)) {
        FAIL_AT(a->b->err, DATATYPE_MISMATCH, a->out->position,
                "default for column \"%.100s\" cannot be cast automatically to type %.40s",
                column->name, type_print(type, a->word));
    }
    return ERR_OK;
}

/* ALTER COLUMN TYPE: the column's values become an expression over the old row. */
static FALLIBLE column_type(struct alter *a, const struct json *cmd) {
    struct bind *b = a->b;
    const struct json *def = node_body(json_get(cmd, "def"));
    u32 col = 0;
    TRY(find_column(a, json_text(cmd, "name"), &col));
    struct column_def *column = &a->def->cols[col];
    if (column->identity || a->out->alter.from[col].old < 0) {
        return unsupported(b, a->out->position, "ALTER COLUMN TYPE of this column");
    }
    struct type_name name;
    struct type type;
    TRY(ddl_column_type(b, json_get(def, "typeName"), &type));
    TRY(bind_type(b, json_get(def, "typeName"), &name));
    struct query q = {.scope = &a->scope, .clause = "USING"};
    const struct json *using = json_get(def, "raw_default");
    struct expr *value = NULL;
    if (using) {
        TRY(bind_expr(b, &q, using, &value));
    } else {
        value =
            expr_col(b->plan, a->scope.tables.items[0].cols[a->out->alter.from[col].old].col, -1);
        if (!coerce_allowed(value->type, type, COERCE_ASSIGN)) {
            error_set(b->err, ERR_DATATYPE_MISMATCH, a->out->position,
                      "column \"%.100s\" cannot be cast automatically to type %.40s", column->name,
                      type_print(type, a->word));
            error_hint(b->err, "You might need to specify \"USING %s::%s\".", column->name,
                       a->word);
            return ERR_DATATYPE_MISMATCH;
        }
    }
    TRY(check_dependents(a, "change a column", "change a key", col, false));
    TRY(default_fits(a, column, type));
    column->type = type;
    a->rewrite = 1;
    return bind_assign(b, value, column, &a->out->alter.from[col].value);
}

static FALLIBLE wrong_identity(struct alter *a, u32 col, const char *what) {
    FAIL_AT(a->b->err, WRONG_STATE, a->out->position, "column \"%.100s\" of relation \"%.100s\" %s",
            a->def->cols[col].name, a->def->name, what);
}

static FALLIBLE add_identity(struct alter *a, const struct json *cmd) {
    u32 col = 0;
    TRY(find_column(a, json_text(cmd, "name"), &col));
    struct column_def *def = &a->def->cols[col];
    if (def->type.id == TYPE_INTEGER || def->type.id == TYPE_BIGINT ||
        def->type.id == TYPE_SMALLINT) {
        if (!def->not_null) {
            return wrong_identity(a, col, "must be declared NOT NULL before identity can be added");
        }
        if (def->identity) {
            return wrong_identity(a, col, "is already an identity column");
        }
        if (def->default_text || def->sequence) {
            return wrong_identity(a, col, "already has a default value");
        }
    }
    return ddl_add_identity(a->b, node_body(json_get(cmd, "def")), &a->out->alter.table, col);
}

/* SET GENERATED, and options of the sequence behind it. */
static FALLIBLE set_identity(struct alter *a, const struct json *cmd) {
    struct bind *b = a->b;
    u32 col = 0;
    TRY(find_column(a, json_text(cmd, "name"), &col));
    struct column_def *def = &a->def->cols[col];
    if (!def->identity) {
        return wrong_identity(a, col, "is not an identity column");
    }
    const struct json *list = json_get(node_body(json_get(cmd, "def")), "items");
    struct json *rest = NEW(b->arena, struct json);
    *rest = (struct json){.key = "options", .kind = JSON_ARRAY};
    struct json **end = &rest->first;
    JSON_EACH(node, list) {
        const struct json *option = node_body(node);
        const char *name = json_text(option, "defname");
        if (name && strcmp(name, "generated") == 0) {
            i64 kind = json_number(node_body(json_get(option, "arg")), "ival");
            def->identity = kind == 'a' ? 'a' : 'd';
            continue;
        }
        struct json *copy = NEW(b->arena, struct json);
        *copy = *node;
        copy->next = NULL;
        *end = copy;
        end = &copy->next;
        rest->len++;
    }
    const struct edition_entry *entry = edition_find_oid(b->snap->edition, def->sequence);
    if (!rest->first || !entry || !entry->object->sequence) {
        return ERR_OK;
    }
    a->out->alter.identity = NEW(b->arena, struct ddl_seq);
    a->out->alter.identity_oid = def->sequence;
    return bind_sequence_changes(b, entry->object->sequence, rest, a->out->alter.identity);
}

static FALLIBLE drop_identity(struct alter *a, const struct json *cmd) {
    u32 col = 0;
    TRY(find_column(a, json_text(cmd, "name"), &col));
    struct column_def *def = &a->def->cols[col];
    if (!def->identity) {
        return json_flag(cmd, "missing_ok") ? ERR_OK
                                            : wrong_identity(a, col, "is not an identity column");
    }
    a->out->alter.dropped_seq = def->sequence;
    def->identity = 0;
    def->sequence = 0;
    return ERR_OK;
}

static FALLIBLE alter_command(struct alter *a, const struct json *cmd) {
    const char *kind = json_text(cmd, "subtype");
    struct bind *b = a->b;
    kind = kind ? kind : "";
    if (strcmp(kind, "AT_AddColumn") == 0) {
        return add_column(a, cmd);
    }
    if (strcmp(kind, "AT_DropColumn") == 0) {
        return drop_column(a, cmd);
    }
    if (strcmp(kind, "AT_ColumnDefault") == 0) {
        return column_default(a, cmd);
    }
    if (strcmp(kind, "AT_SetNotNull") == 0 || strcmp(kind, "AT_DropNotNull") == 0) {
        return set_not_null(a, cmd, kind[3] == 'S');
    }
    if (strcmp(kind, "AT_AddConstraint") == 0) {
        const struct json *body = node_body(json_get(cmd, "def"));
        return ddl_add_constraint(b, a->def, body, NULL, NULL);
    }
    if (strcmp(kind, "AT_DropConstraint") == 0) {
        return drop_constraint(a, cmd);
    }
    if (strcmp(kind, "AT_ValidateConstraint") == 0) {
        return validate_constraint(a, cmd);
    }
    if (strcmp(kind, "AT_AlterColumnType") == 0) {
        return column_type(a, cmd);
    }
    if (strcmp(kind, "AT_AddIdentity") == 0) {
        return add_identity(a, cmd);
    }
    if (strcmp(kind, "AT_SetIdentity") == 0) {
        return set_identity(a, cmd);
    }
    if (strcmp(kind, "AT_DropIdentity") == 0) {
        return drop_identity(a, cmd);
    }
    if (strcmp(kind, "AT_ChangeOwner") == 0) {
        return ERR_OK;
    }
    return unsupported(b, a->out->position, "ALTER TABLE command %s",
                       strncmp(kind, "AT_", 3) == 0 ? kind + 3 : kind);
}

/* The definition as lists that may be changed; every column comes from itself. */
static void start_from(struct alter *a, const struct table *table) {
    struct bind *b = a->b;
    struct table_def *def = a->def = &a->out->alter.table.def;
    *def = table_def_view(table);
    struct table_def old = *def;
    def->cols = NEW_ARRAY(b->arena, struct column_def, old.col_count + 1);
    memcpy(def->cols, old.cols, old.col_count * sizeof *def->cols);
    def->keys = NEW_ARRAY(b->arena, struct table_key, old.key_count + 1);
    def->checks = NEW_ARRAY(b->arena, struct table_check, old.check_count + 1);
    def->foreigns = NEW_ARRAY(b->arena, struct table_foreign, old.foreign_count + 1);
    if (old.key_count) {
        memcpy(def->keys, old.keys, old.key_count * sizeof *def->keys);
    }
    if (old.check_count) {
        memcpy(def->checks, old.checks, old.check_count * sizeof *def->checks);
    }
    if (old.foreign_count) {
        memcpy(def->foreigns, old.foreigns, old.foreign_count * sizeof *def->foreigns);
    }
    a->out->alter.from = NEW_ARRAY(b->arena, struct alter_col, old.col_count + 1);
    for (u32 i = 0; i < old.col_count; i++) {
        a->out->alter.from[i].old = (i32)i;
    }
}

/* Rows that must be computed anew: a PROJECT over the old table. */
static void rewrite_plan(struct alter *a) {
    struct bind *b = a->b;
    u32 count = a->def->col_count;
    struct expr **exprs = NEW_ARRAY(b->arena, struct expr *, count + 1);
    const char **names = NEW_ARRAY(b->arena, const char *, count + 1);
    for (u32 i = 0; i < count; i++) {
        const struct alter_col *from = &a->out->alter.from[i];
        names[i] = keep(b, a->def->cols[i].name);
        exprs[i] = from->value
                       ? from->value
                       : expr_col(b->plan, a->scope.tables.items[0].cols[from->old].col, -1);
        VEC_PUSH(b->arena, &b->plan->names, names[i]);
    }
    struct rel *rows = bind_attach(b, a->scope.rel, &a->pending);
    b->plan->root = bind_project(b, rows, exprs, names, count);
    a->out->plan = b->plan;
}

/* A new column whose default is not a constant is computed row by row too. */
static bool needs_rewrite(const struct alter *a) {
    for (u32 i = 0; i < a->def->col_count; i++) {
        const struct alter_col *from = &a->out->alter.from[i];
        if (from->old < 0 && (from->fills || from->value->kind != EXPR_CONST)) {
            return true;
        }
    }
    return a->rewrite;
}

static void alter_fills(struct alter *a) {
    struct alter_statement *out = &a->out->alter;
    out->fills = NEW_ARRAY(a->b->arena, struct fill, a->def->col_count + 1);
    for (u32 i = 0; i < a->def->col_count; i++) {
        if (out->from[i].fills) {
            out->fills[out->fill_count++] = (struct fill){i, a->def->cols[i].sequence};
        }
    }
}

/* The order in which PostgreSQL does what one statement asks for. */
enum { PASS_DROP, PASS_TYPE, PASS_ADD, PASS_ATTRIBUTE, PASS_LAST };
static i32 pass_of(const struct json *cmd) {
    static const struct {
        const char *kind;
        i32 pass;
    } passes[] = {
        {"AT_DropColumn", PASS_DROP},      {"AT_DropConstraint", PASS_DROP},
        {"AT_DropNotNull", PASS_DROP},     {"AT_DropIdentity", PASS_DROP},
        {"AT_AlterColumnType", PASS_TYPE}, {"AT_AddColumn", PASS_ADD},
        {"AT_SetNotNull", PASS_ATTRIBUTE}, {"AT_SetIdentity", PASS_ATTRIBUTE},
    };
    for (i64 i = 0; i < COUNT_OF(passes); i++) {
        if (json_is(cmd, "subtype", passes[i].kind)) {
            return passes[i].pass;
        }
    }
    return json_is(cmd, "subtype", "AT_ColumnDefault") && !json_get(cmd, "def") ? PASS_DROP
                                                                                : PASS_LAST;
}

/* Columns of another type still refer to what they did. */
static FALLIBLE check_references(struct alter *a) {
    for (u32 f = 0; f < a->def->foreign_count; f++) {
        const struct table_foreign *fk = &a->def->foreigns[f];
        const struct edition_entry *entry =
            fk->ref_oid ? edition_find_oid(a->b->snap->edition, fk->ref_oid) : NULL;
        struct table_def parent =
            entry && entry->object->table ? table_def_view(entry->object->table) : *a->def;
        TRY(ddl_check_pairs(a->b, a->def, fk, &parent, a->out->position));
    }
    return ERR_OK;
}

FALLIBLE ddl_if_exists(struct bind *b, const struct json *body, const struct json *relation,
                       struct statement *out, bool *out_missing) {
    const char *schema = json_text(relation, "schemaname"), *name = json_text(relation, "relname");
    TRY(snapshot_open(b->snap, b->err));
    *out_missing = json_flag(body, "missing_ok") && name &&
                   !snapshot_lookup(b->snap, sv_from(schema ? schema : ""), sv_from(name));
    if (*out_missing) { /* an ALTER of nothing */
        out->kind = STATEMENT_ALTER_TABLE;
        out->alter.oid = 0;
    }
    return ERR_OK;
}

FALLIBLE bind_alter(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    const struct edition_entry *entry = NULL;
    struct alter a = {.b = b, .out = out};
    TRY(bind_only(b, body, "relation cmds objtype missing_ok", json_position(relation)));
    out->kind = STATEMENT_ALTER_TABLE;
    out->position = json_position(relation);
    a.at = out->position;
    bool missing = false;
    TRY(ddl_if_exists(b, body, relation, out, &missing));
    if (missing) {
        return ERR_OK;
    }
    TRY(bind_relation(b, relation, &entry));
    if (entry->object->kind != OBJECT_TABLE || entry->object->hidden) {
        FAIL_AT(b->err, WRONG_OBJECT, out->position, "\"%.100s\" is not a table",
                entry->object->name);
    }
    a.object = entry->object;
    b->home = entry->object->schema;
    b->home_temp = entry->object->temp;
    out->alter.oid = entry->object->oid;
    out->name = keep(b, entry->object->name);
    out->alter.temp = entry->object->temp;
    struct snapshot_table found = snapshot_of(b->snap, entry);
    start_from(&a, found.table);
    TRY(bind_table_scope(b, &found, out->name, out->position, &a.scope));
    for (i32 pass = 0; pass <= PASS_LAST; pass++) {
        JSON_EACH(node, json_get(body, "cmds")) {
            if (pass_of(node_body(node)) == pass) {
                TRY(alter_command(&a, node_body(node)));
            }
        }
    }
    TRY(check_references(&a));
    alter_fills(&a);
    if (needs_rewrite(&a)) {
        rewrite_plan(&a);
    }
    return ERR_OK;
}

static const struct {
    const char *type;
    u8 kind;
} rename_kinds[] = {
    {"OBJECT_TABLE", OBJECT_TABLE},   {"OBJECT_VIEW", OBJECT_VIEW},
    {"OBJECT_INDEX", OBJECT_INDEX},   {"OBJECT_SEQUENCE", OBJECT_SEQUENCE},
    {"OBJECT_SCHEMA", OBJECT_SCHEMA},
};

static FALLIBLE rename_object(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    const struct edition_entry *entry = NULL;
    for (i64 i = 0; i < COUNT_OF(rename_kinds); i++) {
        if (json_is(body, "renameType", rename_kinds[i].type)) {
            out->rename.object_kind = rename_kinds[i].kind;
        }
    }
    TRY(snapshot_open(b->snap, b->err));
    if (out->rename.object_kind == OBJECT_SCHEMA) {
        const char *name = json_text(body, "subname");
        entry = edition_find(b->snap->edition, 0, sv_from(name ? name : ""));
        if (!entry || entry->object->hidden) {
            FAIL_AT(b->err, UNDEFINED_SCHEMA, out->position, "schema \"%.100s\" does not exist",
                    name ? name : "");
        }
    } else {
        out->position = json_position(relation);
        TRY(bind_relation(b, relation, &entry));
        if (out->rename.object_kind != OBJECT_TABLE &&
            out->rename.object_kind != entry->object->kind) {
            FAIL_AT(b->err, WRONG_OBJECT, out->position, "\"%.100s\" is not a%s %s",
                    entry->object->name, out->rename.object_kind == OBJECT_INDEX ? "n" : "",
                    object_words[out->rename.object_kind]);
        }
    }
    out->rename.oid = entry->object->oid;
    return ERR_OK;
}

/* Identifiers of a condition that name the old column name the new one. */
static const char *renamed_text(struct bind *b, const char *text, const char *from,
                                const char *to) {
    struct text out;
    struct sv script = sv_from(text), token;
    i64 at = 0, done = 0;
    text_init(&out, b->arena);
    while (lex_column(script, from, &at, &token)) {
        text_append(&out, (struct sv){text + done, token.ptr - (text + done)});
        ddl_print_name(&out, to);
        done = at;
    }
    text_append(&out, (struct sv){text + done, script.len - done});
    return out.ptr;
}

/* The same view under another column's name. */
static FALLIBLE rename_view_column(struct bind *b, const struct object *view, const char *from,
                                   const char *to, struct statement *out) {
    i32 found = -1;
    const char **names = NEW_ARRAY(b->arena, const char *, view->col_count + 1);
    for (u32 i = 0; i < view->col_count; i++) {
        names[i] = keep(b, view->col_names[i]);
        found = strcmp(view->col_names[i], from) == 0 ? (i32)i : found;
    }
    if (found < 0) {
        FAIL_AT(b->err, UNDEFINED_COLUMN, out->position, "column \"%.100s\" does not exist", from);
    }
    for (u32 i = 0; i < view->col_count; i++) {
        if (strcmp(view->col_names[i], to) == 0) {
            FAIL_AT(b->err, DUPLICATE_COLUMN, out->position,
                    "column \"%.100s\" of relation \"%.100s\" already exists", to, view->name);
        }
    }
    names[found] = to;
    out->kind = STATEMENT_RENAME;
    out->name = keep(b, view->name);
    out->rename = (struct rename_statement){.oid = view->oid,
                                            .object_kind = OBJECT_VIEW,
                                            .view_cols = names,
                                            .col_count = (i32)view->col_count};
    return ERR_OK;
}

/* An ALTER TABLE whose definition is that of the table, so far. */
static void alter_same(struct alter *a, const struct object *object) {
    struct statement *out = a->out;
    out->kind = STATEMENT_ALTER_TABLE;
    out->alter.oid = object->oid;
    out->name = keep(a->b, object->name);
    a->object = object;
    start_from(a, object->table);
}

static FALLIBLE rename_constraint(struct alter *a, const char *from, const char *to) {
    struct bind *b = a->b;
    i32 position = a->out->position;
    for (u32 i = 0; i < a->def->key_count; i++) {
        if (strcmp(a->def->keys[i].name, from) == 0 && !a->def->keys[i].index) {
            TRY(ddl_check_name(b, a->def, to, true, position));
            a->def->keys[i].name = to;
            return ERR_OK;
        }
    }
    for (u32 i = 0; i < a->def->check_count; i++) {
        if (strcmp(a->def->checks[i].name, from) == 0) {
            TRY(ddl_check_name(b, a->def, to, false, position));
            a->def->checks[i].name = to;
            return ERR_OK;
        }
    }
    for (u32 i = 0; i < a->def->foreign_count; i++) {
        if (strcmp(a->def->foreigns[i].name, from) == 0) {
            TRY(ddl_check_name(b, a->def, to, false, position));
            a->def->foreigns[i].name = to;
            return ERR_OK;
        }
    }
    FAIL_AT(b->err, UNDEFINED_OBJECT, position,
            "constraint \"%.100s\" for table \"%.100s\" does not exist", from, a->def->name);
}

/* Indexes name their columns by text. */
static void rename_in_indexes(struct alter *a, const char *from, const char *to) {
    struct bind *b = a->b;
    struct alter_statement *out = &a->out->alter;
    i64 count = 0;
    struct edition_walk at = edition_walk_users(b->snap->edition, a->object->oid);
    while (edition_step(&at)) {
        count += at.entry->object->kind == OBJECT_INDEX;
    }
    out->indexes = NEW_ARRAY(b->arena, struct renamed_index, count + 1);
    at = edition_walk_users(b->snap->edition, a->object->oid);
    while (edition_step(&at)) {
        const struct object *index = at.entry->object;
        if (index->kind != OBJECT_INDEX || !index->text || !names_column(index->text, from)) {
            continue;
        }
        struct renamed_index *now = &out->indexes[out->index_count++];
        now->oid = index->oid;
        now->text = renamed_text(b, index->text, from, to);
        now->names = NEW_ARRAY(b->arena, const char *, index->col_count + 1);
        for (u32 i = 0; i < index->col_count; i++) {
            bool same = strcmp(index->col_names[i], from) != 0;
            now->names[i] = same ? keep(b, index->col_names[i]) : to;
        }
    }
}

static FALLIBLE rename_column(struct alter *a, const char *from, const char *to) {
    struct bind *b = a->b;
    i32 position = a->out->position;
    u32 col = 0, taken = 0;
    TRY(find_column(a, from, &col));
    for (u32 i = 0; i < a->def->col_count; i++) {
        taken += strcmp(a->def->cols[i].name, to) == 0;
    }
    if (taken) {
        FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                "column \"%.100s\" of relation \"%.100s\" already exists", to, a->def->name);
    }
    if (is_system_column(to)) {
        FAIL_AT(b->err, DUPLICATE_COLUMN, position,
                "column name \"%.100s\" conflicts with a system column name", to);
    }
    TRY(check_views(a, "rename a column", from, false));
    a->def->cols[col].name = to;
    for (u32 i = 0; i < a->def->check_count; i++) {
        a->def->checks[i].text = renamed_text(b, a->def->checks[i].text, from, to);
    }
    rename_in_indexes(a, from, to);
    return ERR_OK;
}

static FALLIBLE rename_part(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *relation = json_get(body, "relation");
    const char *from = json_text(body, "subname"), *to = keep(b, json_text(body, "newname"));
    const struct edition_entry *entry = NULL;
    struct alter a = {.b = b, .out = out};
    TRY(bind_relation(b, relation, &entry));
    if (entry->object->kind == OBJECT_VIEW && !entry->object->hidden) {
        return rename_view_column(b, entry->object, from, to, out);
    }
    if (entry->object->kind != OBJECT_TABLE || entry->object->hidden) {
        FAIL_AT(b->err, WRONG_OBJECT, json_position(relation), "\"%.100s\" is not a table",
                entry->object->name);
    }
    out->position = json_position(relation);
    alter_same(&a, entry->object);
    return json_is(body, "renameType", "OBJECT_TABCONSTRAINT") ? rename_constraint(&a, from, to)
                                                               : rename_column(&a, from, to);
}

/* ALTER INDEX, or TABLE, of what is the index of a key; *out_done: it is. */
static FALLIBLE rename_key(struct bind *b, const struct json *body, struct statement *out,
                           bool *out_done) {
    const struct json *relation = json_get(body, "relation");
    const char *schema = json_text(relation, "schemaname"), *name = json_text(relation, "relname");
    struct alter a = {.b = b, .out = out};
    TRY(snapshot_open(b->snap, b->err));
    const struct object *table =
        json_is(body, "renameType", "OBJECT_INDEX") || json_is(body, "renameType", "OBJECT_TABLE")
            ? snapshot_key_table(b->snap, sv_from(schema ? schema : ""), sv_from(name ? name : ""))
            : NULL;
    *out_done = table != NULL;
    if (!table) {
        return ERR_OK;
    }
    out->position = json_position(relation);
    alter_same(&a, table);
    return rename_constraint(&a, name, keep(b, json_text(body, "newname")));
}

FALLIBLE bind_rename(struct bind *b, const struct json *body, struct statement *out) {
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    TRY(bind_only(b, body,
                  "renameType relationType relation subname newname behavior missing_ok object",
                  position));
    out->position = position;
    bool done = false;
    TRY(rename_key(b, body, out, &done));
    if (!done) {
        TRY(ddl_if_exists(b, body, json_get(body, "relation"), out, &done));
    }
    if (done) {
        return ERR_OK;
    }
    if (json_is(body, "renameType", "OBJECT_COLUMN") ||
        json_is(body, "renameType", "OBJECT_TABCONSTRAINT")) {
        return rename_part(b, body, out);
    }
    bool known = false;
    for (i64 i = 0; i < COUNT_OF(rename_kinds); i++) {
        known = known || json_is(body, "renameType", rename_kinds[i].type);
    }
    if (!known) {
        return unsupported(b, position, "%s", command_tag(b->arena, "RenameStmt", body));
    }
    out->kind = STATEMENT_RENAME;
    out->name = keep(b, json_text(body, "newname"));
    return rename_object(b, body, out);
}

/* SET CONSTRAINTS: names of references and keys. */
static FALLIBLE named_constraint(struct bind *b, const struct json *name, struct statement *out) {
    const char *text = json_text(name, "relname");
    i32 position = json_position(name);
    const struct edition *edition = b->snap->edition;
    bool found = false;
    struct edition_walk at = edition_walk(edition);
    while (text && edition_step(&at)) {
        const struct table *table = at.entry->object->table;
        for (u32 f = 0; table && f < table->foreign_count; f++) {
            const struct table_foreign *fk = &table->foreigns[f];
            if (strcmp(fk->name, text) == 0) {
                if (!fk->deferrable) {
                    FAIL_AT(b->err, WRONG_OBJECT, position,
                            "constraint \"%.100s\" is not deferrable", text);
                }
                out->constraints.oids[out->constraints.count++] = fk->oid;
                found = true;
            }
        }
        for (u32 k = 0; table && k < table->key_count; k++) {
            const struct table_key *key = &table->keys[k];
            if (strcmp(key->name, text) == 0 && !key->index) {
                if (!key->deferrable) {
                    FAIL_AT(b->err, WRONG_OBJECT, position,
                            "constraint \"%.100s\" is not deferrable", text);
                }
                out->constraints.oids[out->constraints.count++] = key->oid;
                found = true;
            }
        }
    }
    if (!found) {
        FAIL_AT(b->err, UNDEFINED_OBJECT, position, "constraint \"%.100s\" does not exist",
                text ? text : "");
    }
    return ERR_OK;
}

FALLIBLE bind_set_constraints(struct bind *b, const struct json *body, struct statement *out) {
    const struct json *names = json_get(body, "constraints");
    i32 position = (i32)(b->parsed->text.ptr - b->parsed->script.ptr);
    TRY(bind_only(b, body, "constraints deferred", position));
    TRY(snapshot_open(b->snap, b->err));
    const struct edition *edition = b->snap->edition;
    i64 most = json_count(names);
    for (struct edition_walk at = edition_walk(edition); edition_step(&at);) {
        const struct table *table = at.entry->object->table;
        most += table ? table->foreign_count + table->key_count : 0;
    }
    out->kind = STATEMENT_SET_CONSTRAINTS;
    out->position = position;
    out->constraints.deferred = (b8)json_flag(body, "deferred");
    out->constraints.oids = NEW_ARRAY(b->arena, u32, most + 1);
    JSON_EACH(node, names) {
        TRY(named_constraint(b, node_body(node), out));
    }
    out->constraints.all = !names;
    return ERR_OK;
}

FALLIBLE bind_set_schema(struct bind *b, const struct json *body, struct statement *out) {
    const struct edition_entry *entry = NULL;
    const struct json *relation = json_get(body, "relation");
    if (!relation) {
        return unsupported(b, (i32)(b->parsed->text.ptr - b->parsed->script.ptr), "%s",
                           command_tag(b->arena, "AlterObjectSchemaStmt", body));
    }
    bool missing = false;
    TRY(bind_only(b, body, "objectType relation newschema missing_ok", json_position(relation)));
    TRY(ddl_if_exists(b, body, relation, out, &missing));
    if (missing) {
        return ERR_OK;
    }
    TRY(bind_relation(b, relation, &entry));
    out->kind = STATEMENT_RENAME;
    out->position = json_position(relation);
    out->name = keep(b, entry->object->name);
    out->rename = (struct rename_statement){.oid = entry->object->oid,
                                            .object_kind = entry->object->kind,
                                            .schema = keep(b, json_text(body, "newschema"))};
    return ERR_OK;
}
