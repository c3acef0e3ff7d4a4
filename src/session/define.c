/* define.c: an object's definition as the statement that would make it, for shells and exports.
 *
 * Columns with their defaults first, then constraints under their names, then whatever comments
 * there are. A sequence that a column owns is part of the column (serial, identity) and not written
 * out; in an export, which has its sequences by themselves, only that of an identity is. */
#include "session/session_int.h"

static bool is_plain(const char *name) {
    bool plain = (*name >= 'a' && *name <= 'z') || *name == '_';
    for (const char *p = name; *p; p++) {
        plain = plain && ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_');
    }
    for (i32 i = 0; plain && sql_keywords[i]; i++) {
        plain = !sv_eq_nocase(sv_from(sql_keywords[i]), sv_from(name));
    }
    return plain;
}

void define_name(struct text *out, const char *name) {
    if (is_plain(name)) {
        text_print(out, "%s", name);
        return;
    }
    text_print(out, "\"");
    for (; *name; name++) {
        text_print(out, *name == '"' ? "\"\"" : "%c", *name);
    }
    text_print(out, "\"");
}

void define_literal(struct text *out, const char *text) {
    if (!text) {
        text_print(out, "NULL");
        return;
    }
    text_print(out, "'");
    for (; *text; text++) {
        text_print(out, *text == '\'' ? "''" : "%c", *text);
    }
    text_print(out, "'");
}

static void print_names(struct text *out, const struct table *table, u32 count, const u32 *cols) {
    text_print(out, "(");
    for (u32 i = 0; i < count; i++) {
        text_print(out, "%s", i ? ", " : "");
        define_name(out, table->cols[cols[i]].name);
    }
    text_print(out, ")");
}

const char *define_nextval(struct arena *arena, const char *schema, const char *name) {
    struct text full, out;
    text_init(&full, arena);
    text_init(&out, arena);
    if (schema) {
        define_name(&full, schema);
        text_print(&full, ".");
    }
    define_name(&full, name);
    text_print(&out, "nextval(");
    define_literal(&out, full.ptr);
    text_print(&out, "::regclass)");
    return out.ptr;
}

/* A column whose default still is the next value of the sequence it owns. */
static bool is_serial(const struct edition *edition, u32 table, const struct column_def *col) {
    const struct edition_entry *own = edition_find_oid(edition, col->sequence);
    return own && own->object->owner == table && col->not_null && !col->identity &&
           col->default_text;
}

static void print_options(struct text *out, const struct sequence *seq) {
    text_print(out, "START WITH %lld INCREMENT BY %lld MINVALUE %lld MAXVALUE %lld%s", seq->start,
               seq->increment, seq->min, seq->max, seq->cycle ? " CYCLE" : "");
}

/* A whole definition says of the sequence what is not usual, the one of an export all. */
static void print_identity(struct text *out, const struct edition *edition,
                           const struct column_def *col, bool whole) {
    const struct edition_entry *own = edition_find_oid(edition, col->sequence);
    const struct sequence *seq = own ? own->object->sequence : NULL;
    text_print(out, " GENERATED %s AS IDENTITY", col->identity == 'a' ? "ALWAYS" : "BY DEFAULT");
    bool usual = !seq || (seq->start == 1 && seq->increment == 1 && seq->min == 1 && !seq->cycle &&
                          seq->max == (i64)range_of_type(col->type).hi);
    if (!seq || (whole && usual)) {
        return;
    }
    text_print(out, " (");
    if (!whole) {
        text_print(out, "SEQUENCE NAME ");
        define_name(out, own->object->name);
        text_print(out, " ");
    }
    print_options(out, seq);
    text_print(out, ")");
}

/* A sequence is named as it is called now; in an export with its schema, since names are looked for
 * elsewhere there. */
static void print_default(struct text *out, const struct edition *edition,
                          const struct column_def *col, bool whole) {
    const struct edition_entry *seq = edition_find_oid(edition, col->sequence);
    const struct edition_entry *schema =
        seq ? edition_find_oid(edition, seq->object->schema) : NULL;
    bool plain = schema && whole && schema->object->oid == OID_PUBLIC;
    text_print(
        out, " DEFAULT %s",
        schema ? define_nextval(out->arena, plain ? NULL : schema->object->name, seq->object->name)
               : col->default_text);
}

static void print_column(struct text *out, const struct edition *edition, u32 table,
                         const struct column_def *col, bool whole) {
    char type[32];
    define_name(out, col->name);
    if (whole && is_serial(edition, table, col)) {
        text_print(out, " %sserial",
                   col->type.id == TYPE_BIGINT     ? "big"
                   : col->type.id == TYPE_SMALLINT ? "small"
                                                   : "");
        return;
    }
    text_print(out, " %s%s", type_print(col->type, type), col->not_null ? " NOT NULL" : "");
    if (col->identity) {
        print_identity(out, edition, col, whole);
    } else if (col->default_text) {
        print_default(out, edition, col, whole);
    }
}

void define_place(struct text *out, struct snapshot *snap, const struct object *object) {
    const struct edition_entry *seen =
        snapshot_lookup(snap, (struct sv){NULL, 0}, sv_from(object->name));
    const struct edition_entry *schema = edition_find_oid(snap->edition, object->schema);
    if ((!seen || seen->object->oid != object->oid) && schema) {
        define_name(out, schema->object->name);
        text_print(out, ".");
    }
    define_name(out, object->name);
}

static void print_foreign(struct text *out, struct snapshot *snap, u32 own,
                          const struct table *table, const struct table_foreign *fk) {
    static const char *const actions[] = {"", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"};
    const struct edition_entry *parent =
        edition_find_oid(snap->edition, fk->ref_oid ? fk->ref_oid : own);
    text_print(out, "FOREIGN KEY ");
    print_names(out, table, fk->col_count, fk->cols);
    text_print(out, " REFERENCES ");
    if (parent) {
        define_place(out, snap, parent->object);
        text_print(out, " ");
        print_names(out, parent->object->table, fk->col_count, fk->ref_cols);
    }
    text_print(out, "%s", fk->match_full ? " MATCH FULL" : "");
    if (fk->on_update) {
        text_print(out, " ON UPDATE %s", actions[fk->on_update]);
    }
    if (fk->on_delete) {
        text_print(out, " ON DELETE %s", actions[fk->on_delete]);
    }
    for (u32 i = 0, first = 1; i < fk->col_count && fk->set_on_delete; i++) {
        if (fk->set_on_delete >> i & 1) {
            text_print(out, first ? " (" : ", ");
            define_name(out, table->cols[fk->cols[i]].name);
            first = 0;
        }
        text_print(out, i + 1 == fk->col_count ? ")" : "");
    }
    text_print(out, "%s%s", fk->deferrable ? " DEFERRABLE" : "",
               fk->deferred ? " INITIALLY DEFERRED" : "");
}

/* What stands between the parts of a definition; the first has none before it. */
static void print_comma(struct text *out, bool *io_first) {
    text_print(out, *io_first ? "\n    " : ",\n    ");
    *io_first = false;
}

static void print_check(struct text *out, const struct table_check *check) {
    text_print(out, "CONSTRAINT ");
    define_name(out, check->name);
    text_print(out, " CHECK (%s)", check->text);
}

static void print_reference(struct text *out, struct snapshot *snap, const struct object *object,
                            const struct table_foreign *fk) {
    text_print(out, "CONSTRAINT ");
    define_name(out, fk->name);
    text_print(out, " ");
    print_foreign(out, snap, object->oid, object->table, fk);
}

static void print_key(struct text *out, const struct table *table, const struct table_key *key) {
    text_print(out, "CONSTRAINT ");
    define_name(out, key->name);
    text_print(out, key->primary ? " PRIMARY KEY " : " UNIQUE ");
    print_names(out, table, key->col_count, key->cols);
    text_print(out, "%s%s", key->deferrable ? " DEFERRABLE" : "",
               key->deferred ? " INITIALLY DEFERRED" : "");
}

/* Keys of one definition that say the same would be one: all but the primary key, or the first, are
 * added behind it. */
static bool is_repeated(const struct table *table, u32 idx) {
    const struct table_key *key = &table->keys[idx];
    bool found = false;
    for (u32 i = 0; !found && !key->primary && i < table->key_count; i++) {
        const struct table_key *other = &table->keys[i];
        found = !other->index && (i < idx || other->primary) && table_key_equal(key, other);
    }
    return found;
}

static void print_constraints(struct text *out, struct snapshot *snap, const struct object *object,
                              bool whole) {
    const struct table *table = object->table;
    bool first = table->col_count == 0;
    for (u32 i = 0; i < table->key_count; i++) {
        if (!table->keys[i].index && !is_repeated(table, i)) {
            print_comma(out, &first);
            print_key(out, table, &table->keys[i]);
        }
    }
    for (u32 i = 0; i < table->check_count; i++) {
        if (whole || !table->checks[i].unvalidated) {
            print_comma(out, &first);
            print_check(out, &table->checks[i]);
        }
    }
    for (u32 i = 0; whole && i < table->foreign_count; i++) {
        print_comma(out, &first);
        print_reference(out, snap, object, &table->foreigns[i]);
    }
}

void define_later(struct text *out, struct snapshot *snap, const struct object *object) {
    const struct table *table = object->table;
    for (u32 i = 0; i < table->check_count + table->foreign_count; i++) {
        bool checks = i < table->check_count;
        const struct table_foreign *fk = checks ? NULL : &table->foreigns[i - table->check_count];
        bool unvalidated = checks ? table->checks[i].unvalidated : fk->unvalidated;
        if (checks && !unvalidated) {
            continue;
        }
        text_print(out, "ALTER TABLE ");
        define_place(out, snap, object);
        text_print(out, " ADD ");
        if (checks) {
            print_check(out, &table->checks[i]);
        } else {
            print_reference(out, snap, object, fk);
        }
        text_print(out, unvalidated ? " NOT VALID;\n" : ";\n");
    }
}

static void print_sequence(struct text *out, const struct sequence *seq) {
    char type[32];
    text_print(out, " AS %s ", type_print(seq->type, type));
    print_options(out, seq);
    text_print(out, ";\n");
}

static bool is_unique(const struct edition_entry *owner, u32 oid) {
    const struct table *table = owner ? owner->object->table : NULL;
    for (u32 i = 0; table && i < table->key_count; i++) {
        if (table->keys[i].index && table->keys[i].oid == oid) {
            return true;
        }
    }
    return false;
}

void define_table(struct text *out, struct snapshot *snap, const struct object *object,
                  bool whole) {
    text_print(out, "CREATE %sTABLE ", object->temp ? "TEMPORARY " : "");
    define_place(out, snap, object);
    text_print(out, " (");
    bool first = true;
    for (u32 i = 0; i < object->table->col_count; i++) {
        print_comma(out, &first);
        print_column(out, snap->edition, object->oid, &object->table->cols[i], whole);
    }
    print_constraints(out, snap, object, whole);
    text_print(out, "\n);\n");
    for (u32 i = 0; i < object->table->key_count; i++) {
        if (!object->table->keys[i].index && is_repeated(object->table, i)) {
            text_print(out, "ALTER TABLE ");
            define_place(out, snap, object);
            text_print(out, " ADD ");
            print_key(out, object->table, &object->table->keys[i]);
            text_print(out, ";\n");
        }
    }
}

void define_object(struct text *out, struct snapshot *snap, const struct object *object) {
    const struct edition *edition = snap->edition;
    if (object->kind == OBJECT_VIEW && object->logical) {
        text_print(out, "CALL logiql($lq$\n%s$lq$);\n", object->text);
    } else if (object->kind == OBJECT_VIEW) {
        text_print(out, "CREATE VIEW ");
        define_place(out, snap, object);
        for (u32 i = 0; i < object->col_count; i++) {
            text_print(out, i ? ", " : " (");
            define_name(out, object->col_names[i]);
        }
        text_print(out, "%s AS %s;\n", object->col_count ? ")" : "", object->text);
    } else if (object->kind == OBJECT_TABLE) {
        define_table(out, snap, object, true);
    } else if (object->kind == OBJECT_SEQUENCE) {
        text_print(out, "CREATE SEQUENCE ");
        define_place(out, snap, object);
        print_sequence(out, object->sequence);
    } else {
        const struct edition_entry *owner = edition_find_oid(edition, object->owner);
        text_print(out, "CREATE %sINDEX ", is_unique(owner, object->oid) ? "UNIQUE " : "");
        define_name(out, object->name);
        text_print(out, " ON ");
        define_place(out, snap, owner ? owner->object : object);
        text_print(out, " (%s);\n", object->text ? object->text : "");
    }
    if (object->comment) {
        text_print(out, "-- ");
        for (const char *at = object->comment; *at; at++) {
            text_print(out, *at == '\n' ? "\n-- " : "%c", *at);
        }
        text_print(out, "\n");
    }
}
