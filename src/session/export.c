/* export.c: EXPORT DATABASE and IMPORT DATABASE: everything in a folder of texts.
 *
 * `schema.sql` makes schemas, sequences, tables with their keys, and views; `load.sql` fills the tables from a CSV
 * file each and adds what has to wait for rows: references, unique indexes, places of sequences, comments. Both can be
 * read by people and run by hand, from within the folder. What LogiQL derives is made as a view of its columns, which
 * then gets its clauses (logiql_restore), so that those that name each other need no order.
 *
 * An import is one statement: all of it is there afterwards, or nothing. */
#include "session/session_int.h"

#include <stdio.h>

#include "base/file.h"

#define HERE "/* here */ "

struct exporting {
    struct wf_connection *conn;
    struct arena *arena;
    const char *folder;
    struct snapshot snap; /* names without a schema are public's */
    struct text schema, load;
    VEC(const struct edition_entry *) items; /* what is written, by OID */
    i32 files;
};

static const char *schema_name(const struct exporting *e, const struct object *object) {
    const struct edition_entry *schema = edition_find_oid(e->snap.edition, object->schema);
    return schema ? schema->object->name : "public";
}

/* Always with its schema. */
static void put_full(struct exporting *e, struct text *out, const struct object *object) {
    define_name(out, schema_name(e, object));
    text_print(out, ".");
    define_name(out, object->name);
}

/* The column whose identity the sequence is; NULL: it stands on its own. */
static const struct column_def *identity_of(const struct exporting *e, const struct object *seq) {
    const struct edition_entry *owner = edition_find_oid(e->snap.edition, seq->owner);
    const struct table *table = owner ? owner->object->table : NULL;
    for (u32 i = 0; table && i < table->col_count; i++) {
        if (table->cols[i].sequence == seq->oid && table->cols[i].identity) {
            return &table->cols[i];
        }
    }
    return NULL;
}

static void put_comment(struct exporting *e, const struct object *object) {
    static const char *const words[] = {"SCHEMA", "TABLE", "VIEW", "SEQUENCE", "INDEX"};
    if (!object->comment || (object->kind == OBJECT_VIEW && object->logical)) {
        return;
    }
    text_print(&e->load, "COMMENT ON %s ", words[object->kind]);
    if (object->kind == OBJECT_SCHEMA) {
        define_name(&e->load, object->name);
    } else {
        put_full(e, &e->load, object);
    }
    text_print(&e->load, " IS ");
    define_literal(&e->load, object->comment);
    text_print(&e->load, ";\n");
}

/* Without the comment that people are shown. */
static void put_plain(struct exporting *e, struct text *out, const struct object *object) {
    struct object like = object_view(object);
    like.comment = NULL;
    define_object(out, &e->snap, &like);
}

static void put_sequence(struct exporting *e, const struct object *object) {
    struct sequence *seq = object->sequence;
    struct text name;
    text_init(&name, e->arena);
    put_full(e, &name, object);
    if (!identity_of(e, object)) {
        put_plain(e, &e->schema, object);
        const struct edition_entry *owner = edition_find_oid(e->snap.edition, object->owner);
        if (owner && owner->object->table && object->owner_col) {
            text_print(&e->load, "ALTER SEQUENCE %s OWNED BY ", name.ptr);
            put_full(e, &e->load, owner->object);
            text_print(&e->load, ".");
            define_name(&e->load, owner->object->table->cols[object->owner_col - 1].name);
            text_print(&e->load, ";\n");
        }
    }
    mutex_lock(&seq->lock);
    i64 last = seq->last;
    bool called = seq->called;
    mutex_unlock(&seq->lock);
    text_print(&e->load, "SELECT setval(");
    define_literal(&e->load, name.ptr);
    text_print(&e->load, ", %lld, %s);\n", (long long)last, called ? "true" : "false");
}

/* The rows to a file of their own; what reads it again. */
static FALLIBLE put_rows(struct exporting *e, const struct object *object) {
    struct text sql, file;
    text_init(&sql, e->arena);
    text_init(&file, e->arena);
    text_print(&file, "%d_", ++e->files);
    for (const char *at = object->name; *at && file.len < 60; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= '0' && *at <= '9') || *at == '_';
        text_print(&file, "%c", plain ? *at : '_');
    }
    text_print(&file, ".csv");
    text_print(&sql, "COPY ");
    put_full(e, &sql, object);
    text_print(&sql, " TO ");
    define_literal(&sql, arena_printf(e->arena, "%s/%s", e->folder, file.ptr));
    text_print(&sql, " (FORMAT csv, HEADER)");
    text_print(&e->load, "COPY ");
    put_full(e, &e->load, object);
    text_print(&e->load, " FROM " HERE "'%s' (FORMAT csv, HEADER);\n", file.ptr);
    TRY(arena_check(e->arena, &e->conn->err));
    return session_run_text(e->conn, sql.ptr);
}

static void put_dependent(struct exporting *e, const struct object *object) {
    char type[32];
    text_print(&e->schema, "CREATE VIEW ");
    put_full(e, &e->schema, object);
    for (u32 i = 0; i < object->col_count; i++) {
        text_print(&e->schema, i ? ", " : " (");
        define_name(&e->schema, object->col_names[i]);
    }
    text_print(&e->schema, object->col_count ? ") AS SELECT " : " AS SELECT ");
    for (u32 i = 0; i < object->col_count; i++) {
        text_print(&e->schema, "%sCAST(NULL AS %s)", i ? ", " : "",
                   type_print(object->col_types[i], type));
    }
    text_print(&e->schema, object->col_count ? ";\n" : "1;\n");
}

static void put_restore(struct exporting *e, const struct object *object) {
    struct text *out = &e->schema;
    text_print(out, "CALL logiql_restore(");
    define_literal(out, schema_name(e, object));
    text_print(out, ", ");
    define_literal(out, object->name);
    text_print(out, ", ");
    define_literal(out, object->text);
    text_print(out, ", ");
    define_literal(out, object->comment);
    text_print(out, ", ");
    define_literal(out, object->path);
    for (u32 i = 0; i < object->dep_count; i++) {
        const struct edition_entry *read = edition_find_oid(e->snap.edition, object->deps[i]);
        if (read) {
            text_print(out, ", ");
            define_literal(out, schema_name(e, read->object));
            text_print(out, ", ");
            define_literal(out, read->object->name);
        }
    }
    text_print(out, ");\n");
}

static u32 column_count(const struct object *object) {
    return object->table ? object->table->col_count : object->col_count;
}

static const char *column_name(const struct object *object, u32 idx) {
    return object->table ? object->table->cols[idx].name : object->col_names[idx];
}

/* The columns that it has now and had then, in SQL; the number of those that came later. */
static u32 put_known(struct text *out, const struct object *object,
                     const struct column_names *then) {
    u32 later = 0;
    bool first = true;
    for (u32 i = 0; i < column_count(object); i++) {
        bool known = false;
        for (u32 k = 0; k < then->count && !known; k++) {
            known = strcmp(then->names[k], column_name(object, i)) == 0;
        }
        if (known) {
            text_print(out, first ? "" : ", ");
            define_name(out, column_name(object, i));
            first = false;
        }
        later += !known;
    }
    return later;
}

/* A view's `*` means the columns that there were when it was made. Where some came later, it is made of
 * queries of the tables' names that have those of then. */
static void put_query(struct exporting *e, const struct object *view) {
    bool wraps = false;
    for (u32 d = 0; d < view->dep_count; d++) {
        const struct edition_entry *read = edition_find_oid(e->snap.edition, view->deps[d]);
        struct text known;
        text_init(&known, e->arena);
        if (!read || !lex_names(sv_from(view->text), read->object->name) ||
            !put_known(&known, read->object, &view->dep_cols[d]) || !known.len) {
            continue;
        }
        text_print(&e->schema, wraps ? ", " : "WITH ");
        define_name(&e->schema, read->object->name);
        text_print(&e->schema, " AS (SELECT %s FROM ", known.ptr);
        put_full(e, &e->schema, read->object);
        text_print(&e->schema, ")");
        wraps = true;
    }
    text_print(&e->schema, wraps ? " SELECT * FROM (%s\n) AS " : "%s", view->text);
    if (wraps) {
        define_name(&e->schema, view->name);
    }
}

static void put_view(struct exporting *e, const struct object *object) {
    bool elsewhere = object->path && object->path[0] && strcmp(object->path, "public") != 0;
    if (elsewhere) {
        text_print(&e->schema, "SET search_path = %s;\n", object->path);
    }
    text_print(&e->schema, "CREATE VIEW ");
    put_full(e, &e->schema, object);
    for (u32 i = 0; i < object->col_count; i++) {
        text_print(&e->schema, i ? ", " : " (");
        define_name(&e->schema, object->col_names[i]);
    }
    text_print(&e->schema, "%s AS ", object->col_count ? ")" : "");
    put_query(e, object);
    text_print(&e->schema, ";\n");
    if (elsewhere) {
        text_print(&e->schema, "SET search_path = public;\n");
    }
}

static bool is_view(const struct object *object) {
    return object->kind == OBJECT_VIEW && !object->logical;
}

/* What a view reads comes before it. */
static void put_views(struct exporting *e) {
    b8 *done = NEW_ARRAY(e->arena, b8, e->items.count + 1);
    for (bool more = true; more && !e->arena->refused_bytes;) {
        more = false;
        for (i64 i = 0; i < e->items.count; i++) {
            const struct object *object = e->items.items[i]->object;
            bool ready = is_view(object) && !done[i];
            for (u32 d = 0; ready && d < object->dep_count; d++) {
                for (i64 k = 0; ready && k < e->items.count; k++) {
                    const struct object *read = e->items.items[k]->object;
                    ready = read->oid != object->deps[d] || !is_view(read) || done[k];
                }
            }
            if (ready) {
                put_view(e, object);
                put_comment(e, object);
                done[i] = more = true;
            }
        }
    }
}

static void put_schemas(struct exporting *e) {
    for (i64 i = 0; i < e->items.count; i++) {
        const struct object *object = e->items.items[i]->object;
        if (object->kind == OBJECT_SCHEMA && object->oid != OID_PUBLIC) {
            text_print(&e->schema, "CREATE SCHEMA ");
            define_name(&e->schema, object->name);
            text_print(&e->schema, ";\n");
        }
    }
}

static void put_kind(struct exporting *e, enum object_kind kind) {
    for (i64 i = 0; i < e->items.count; i++) {
        const struct object *object = e->items.items[i]->object;
        if (object->kind != kind) {
            continue;
        }
        if (kind == OBJECT_SEQUENCE) {
            if (!identity_of(e, object)) {
                put_sequence(e, object);
            }
        } else if (kind == OBJECT_TABLE) {
            define_table(&e->schema, &e->snap, object, false);
        } else if (kind == OBJECT_INDEX) {
            put_plain(e, &e->load, object);
        } else if (object->logical) {
            put_dependent(e, object);
        }
    }
}

/* Sequences that come with their tables, behind the others as an import makes them. */
static void put_identities(struct exporting *e) {
    for (i64 i = 0; i < e->items.count; i++) {
        const struct object *object = e->items.items[i]->object;
        if (object->kind == OBJECT_SEQUENCE && identity_of(e, object)) {
            put_sequence(e, object);
        }
    }
}

static FALLIBLE put_all(struct exporting *e) {
    put_schemas(e);
    for (i64 i = 0; i < e->items.count; i++) { /* rows first */
        const struct object *object = e->items.items[i]->object;
        if (object->kind == OBJECT_TABLE) {
            TRY(put_rows(e, object));
        }
    }
    put_kind(e, OBJECT_SEQUENCE);
    put_identities(e);
    put_kind(e, OBJECT_TABLE);
    put_kind(e, OBJECT_VIEW);
    put_views(e);
    put_kind(e, OBJECT_INDEX);
    for (i64 i = 0; i < e->items.count; i++) {
        const struct object *object = e->items.items[i]->object;
        if (object->kind == OBJECT_TABLE) {
            define_later(&e->load, &e->snap, object);
        }
        if (object->logical) {
            put_restore(e, object);
        }
        if (!is_view(object)) {
            put_comment(e, object);
        }
    }
    return arena_check(e->arena, &e->conn->err);
}

static FALLIBLE write_texts(struct exporting *e) {
    struct error *err = &e->conn->err;
    const char *schema = arena_printf(e->arena, "%s/schema.sql", e->folder);
    const char *load = arena_printf(e->arena, "%s/load.sql", e->folder);
    TRY(arena_check(e->arena, err));
    TRY(file_write_all(load, e->load.ptr ? e->load.ptr : "", e->load.len, err));
    return file_write_all(schema, e->schema.ptr ? e->schema.ptr : "", e->schema.len, err);
}

FALLIBLE export_database(struct wf_connection *conn, struct arena *arena, const char *folder) {
    struct exporting e = {.conn = conn, .arena = arena, .folder = folder};
    const char *schema = arena_printf(arena, "%s/schema.sql", folder);
    TRY(arena_check(arena, &conn->err));
    if (file_exists(schema)) {
        error_set(&conn->err, ERR_DUPLICATE_OBJECT, -1, "\"%.300s\" has an export already", folder);
        error_hint(&conn->err, "Nothing was written. Name a folder that is new or empty.");
        return conn->err.code;
    }
    TRY(file_make_dirs(folder, &conn->err));
    text_init(&e.schema, arena);
    text_init(&e.load, arena);
    snapshot_init(&e.snap, conn->db->catalog, arena);
    connection_snapshot(conn, &e.snap);
    e.snap.path = "public";
    e.snap.temp_schema = 0;
    wf_status status = snapshot_open(&e.snap, &conn->err);
    if (!status) {
        for (struct edition_walk at = edition_walk(e.snap.edition); edition_step(&at);) {
            if (!at.entry->object->temp && !at.entry->object->hidden) {
                VEC_PUSH(arena, &e.items, at.entry);
            }
        }
        status = put_all(&e);
    }
    status = status ? status : write_texts(&e);
    snapshot_fini(&e.snap);
    return status;
}

/* import */

/* A text of the folder behind the others, files of rows with the folder's name before theirs. */
static FALLIBLE add_text(struct wf_connection *conn, struct arena *arena, const char *folder,
                         const char *name, struct text *out) {
    struct file_view view;
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    struct sv here = SV(HERE "'"), copy = SV("COPY ");
    struct text quoted;
    text_init(&quoted, arena);
    define_literal(&quoted, folder);
    TRY(arena_check(arena, &conn->err));
    TRY(file_view_open(&view, path, &conn->err));
    i64 from = 0;
    bool copies = false; /* a line that reads rows: nowhere else is the mark ours */
    for (i64 i = 0; i + here.len <= view.bytes; i++) {
        if (i == 0 || view.data[i - 1] == '\n') {
            copies = memcmp(view.data + i, copy.ptr, (size_t)copy.len) == 0;
        }
        if (copies && memcmp(view.data + i, here.ptr, (size_t)here.len) == 0) {
            text_append(out, (struct sv){(const char *)view.data + from, i - from});
            text_append(out, (struct sv){quoted.ptr, quoted.len - 1});
            text_print(out, "/");
            from = i + here.len;
        }
    }
    text_append(out, (struct sv){(const char *)view.data + from, view.bytes - from});
    text_print(out, "\n");
    file_view_close(&view);
    return arena_check(arena, &conn->err);
}

FALLIBLE import_database(struct wf_connection *conn, struct arena *arena, const char *folder) {
    struct text all;
    char path[sizeof conn->search_path];
    text_init(&all, arena);
    TRY(add_text(conn, arena, folder, "schema.sql", &all));
    TRY(add_text(conn, arena, folder, "load.sql", &all));
    memcpy(path, conn->search_path, sizeof path);
    (void)snprintf(conn->search_path, sizeof conn->search_path, "public");
    wf_status status = session_run_text(conn, all.ptr);
    memcpy(conn->search_path, path, sizeof path);
    if (status) {
        conn->err.position = -1; /* of a text that nobody sees */
    }
    return status;
}
