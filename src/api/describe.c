/* describe.c: an object's definition as the statement that would make it, for shells and dumps.
 *
 * Columns with their defaults first, then constraints under their names, then whatever comments
 * there are. A sequence that a column owns is part of the column (serial, identity) and not written
 * out. */
#include "api/api_int.h"

#include <stdlib.h>

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

static void print_name(struct text *out, const char *name) {
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

static void print_names(struct text *out, const struct table *table, u32 count, const u32 *cols) {
    text_print(out, "(");
    for (u32 i = 0; i < count; i++) {
        text_print(out, "%s", i ? ", " : "");
        print_name(out, table->cols[cols[i]].name);
    }
    text_print(out, ")");
}

/* A column whose default still is the next value of the sequence it owns. */
static bool is_serial(const struct edition *edition, const struct column_def *col) {
    const struct edition_entry *own = edition_find_oid(edition, col->sequence);
    return own && col->not_null && !col->identity && col->default_text &&
           strncmp(col->default_text, "nextval(", 8) == 0 &&
           strstr(col->default_text, own->object->name);
}

static void print_column(struct text *out, const struct edition *edition,
                         const struct column_def *col) {
    char type[32];
    print_name(out, col->name);
    if (is_serial(edition, col)) {
        text_print(out, " %sserial",
                   col->type.id == TYPE_BIGINT     ? "big"
                   : col->type.id == TYPE_SMALLINT ? "small"
                                                   : "");
        return;
    }
    text_print(out, " %s%s", type_print(col->type, type), col->not_null ? " NOT NULL" : "");
    if (col->identity) {
        text_print(out, " GENERATED %s AS IDENTITY",
                   col->identity == 'a' ? "ALWAYS" : "BY DEFAULT");
    } else if (col->default_text) {
        text_print(out, " DEFAULT %s", col->default_text);
    }
}

/* With its schema, unless the search path leads to it. */
static void print_place(struct text *out, struct snapshot *snap, const struct object *object) {
    const struct edition_entry *seen =
        snapshot_lookup(snap, (struct sv){NULL, 0}, sv_from(object->name));
    const struct edition_entry *schema = edition_find_oid(snap->edition, object->schema);
    if ((!seen || seen->object->oid != object->oid) && schema) {
        print_name(out, schema->object->name);
        text_print(out, ".");
    }
    print_name(out, object->name);
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
        print_place(out, snap, parent->object);
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
            print_name(out, table->cols[fk->cols[i]].name);
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

static void print_constraints(struct text *out, struct snapshot *snap,
                              const struct object *object) {
    const struct table *table = object->table;
    bool first = table->col_count == 0;
    for (u32 i = 0; i < table->key_count; i++) {
        if (table->keys[i].index) {
            continue;
        }
        print_comma(out, &first);
        text_print(out, "CONSTRAINT ");
        print_name(out, table->keys[i].name);
        text_print(out, table->keys[i].primary ? " PRIMARY KEY " : " UNIQUE ");
        print_names(out, table, table->keys[i].col_count, table->keys[i].cols);
        text_print(out, "%s%s", table->keys[i].deferrable ? " DEFERRABLE" : "",
                   table->keys[i].deferred ? " INITIALLY DEFERRED" : "");
    }
    for (u32 i = 0; i < table->check_count; i++) {
        print_comma(out, &first);
        text_print(out, "CONSTRAINT ");
        print_name(out, table->checks[i].name);
        text_print(out, " CHECK (%s)", table->checks[i].text);
    }
    for (u32 i = 0; i < table->foreign_count; i++) {
        print_comma(out, &first);
        text_print(out, "CONSTRAINT ");
        print_name(out, table->foreigns[i].name);
        text_print(out, " ");
        print_foreign(out, snap, object->oid, table, &table->foreigns[i]);
    }
}

static void print_sequence(struct text *out, const struct sequence *seq) {
    char type[32];
    text_print(out, " AS %s START WITH %lld INCREMENT BY %lld MINVALUE %lld MAXVALUE %lld%s;\n",
               type_print(seq->type, type), seq->start, seq->increment, seq->min, seq->max,
               seq->cycle ? " CYCLE" : "");
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

static void print_object(struct text *out, struct snapshot *snap, const struct object *object) {
    const struct edition *edition = snap->edition;
    if (object->kind == OBJECT_VIEW && object->logical) {
        text_print(out, "CALL logiql($lq$\n%s$lq$);\n", object->text);
    } else if (object->kind == OBJECT_VIEW) {
        text_print(out, "CREATE VIEW ");
        print_place(out, snap, object);
        for (u32 i = 0; i < object->col_count; i++) {
            text_print(out, i ? ", " : " (");
            print_name(out, object->col_names[i]);
        }
        text_print(out, "%s AS %s;\n", object->col_count ? ")" : "", object->text);
    } else if (object->kind == OBJECT_TABLE) {
        text_print(out, "CREATE %sTABLE ", object->temp ? "TEMPORARY " : "");
        print_place(out, snap, object);
        text_print(out, " (");
        bool first = true;
        for (u32 i = 0; i < object->table->col_count; i++) {
            print_comma(out, &first);
            print_column(out, edition, &object->table->cols[i]);
        }
        print_constraints(out, snap, object);
        text_print(out, "\n);\n");
    } else if (object->kind == OBJECT_SEQUENCE) {
        text_print(out, "CREATE SEQUENCE ");
        print_place(out, snap, object);
        print_sequence(out, object->sequence);
    } else {
        const struct edition_entry *owner = edition_find_oid(edition, object->owner);
        text_print(out, "CREATE %sINDEX ", is_unique(owner, object->oid) ? "UNIQUE " : "");
        print_name(out, object->name);
        text_print(out, " ON ");
        print_place(out, snap, owner ? owner->object : object);
        text_print(out, " (%s);\n", object->text ? object->text : "");
    }
    if (object->comment) {
        text_print(out, "-- %s\n", object->comment);
    }
}

/* A name that people type: as it is, else after its schema, else in lower case. */
static const struct edition_entry *find_object(struct snapshot *snap, const char *name) {
    char *lower = arena_printf(snap->arena, "%s", name);
    for (char *at = lower; *at; at++) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at;
    }
    const char *const forms[] = {name, lower};
    const struct edition_entry *entry = NULL;
    for (i32 i = 0; i < 2 && !entry; i++) {
        const char *dot = strchr(forms[i], '.');
        entry = snapshot_lookup(snap, (struct sv){NULL, 0}, sv_from(forms[i]));
        if (!entry && dot) {
            entry = snapshot_lookup(snap, (struct sv){forms[i], dot - forms[i]}, sv_from(dot + 1));
        }
    }
    return entry;
}

static FALLIBLE describe(struct wf_connection *conn, const char *name, char **out_text) {
    struct arena arena;
    struct snapshot snap;
    struct text out;
    arena_init(&arena, &conn->db->mem);
    snapshot_init(&snap, conn->db->catalog, &arena);
    connection_snapshot(conn, &snap);
    text_init(&out, &arena);
    const char *dot = strchr(name, '.');
    struct sv schema = {name, dot ? dot - name : 0}, rest = sv_from(dot ? dot + 1 : name);
    wf_status status = snapshot_open(&snap, &conn->err);
    const struct edition_entry *entry = status ? NULL : find_object(&snap, name);
    if (!status && !entry) {
        status = snapshot_missing(&snap, schema, rest, -1, &conn->err);
    }
    if (!status) {
        print_object(&out, &snap, entry->object);
        status = arena_check(&arena, &conn->err);
    }
    if (!status) {
        *out_text = malloc((size_t)out.len + 1);
        if (*out_text) {
            memcpy(*out_text, out.ptr, (size_t)out.len + 1);
        } else {
            status = error_set(&conn->err, ERR_OUT_OF_MEMORY, -1, "out of memory");
        }
    }
    snapshot_fini(&snap);
    arena_fini(&arena);
    return status;
}

wf_status wf_describe(wf_connection *conn, const char *name, char **out_text) {
    if (!name || !out_text || connection_enter(conn)) {
        return WF_MISUSE;
    }
    *out_text = NULL;
    return connection_leave(conn, describe(conn, name, out_text), (struct sv){NULL, 0});
}
