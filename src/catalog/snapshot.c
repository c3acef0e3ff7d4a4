/* snapshot.c: what one statement sees: an edition, and names resolved along a search path.
 *
 * Everything a statement reads comes from one edition, so several tables are seen as of the same
 * commit. A name without a schema is looked for among the connection's temporary objects, then in
 * pg_catalog, then in the schemas of the search path; those that do not exist are passed over, as
 * in PostgreSQL. Names arrive folded by the parser and are compared byte by byte. */
#include "catalog/catalog_int.h"

void snapshot_init(struct snapshot *snap, struct catalog *catalog, struct arena *arena) {
    memset(snap, 0, sizeof *snap);
    snap->arena = arena;
    snap->catalog = catalog;
}

void snapshot_init_edition(struct snapshot *snap, struct catalog *catalog, struct edition *edition,
                           struct arena *arena) {
    snapshot_init(snap, catalog, arena);
    snap->edition = edition_retain(edition);
}

void snapshot_fini(struct snapshot *snap) {
    for (i64 i = 0; i < snap->tables.count; i++) {
        version_release(snap->tables.items[i].version);
        table_close(snap->tables.items[i].table);
    }
    snap->tables.count = 0;
    edition_release(snap->edition);
    snap->edition = NULL;
}

wf_status snapshot_open(struct snapshot *snap, struct error *err) {
    return snap->edition ? ERR_OK : catalog_edition(snap->catalog, &snap->edition, err);
}

void snapshot_put(struct snapshot *snap, struct table *table, struct table_version *version) {
    struct snapshot_table entry = {table_retain(table), version_retain(version)};
    VEC_PUSH(snap->arena, &snap->tables, entry);
}

void snapshot_set(struct snapshot *snap, struct table *table, struct table_version *version) {
    for (i64 i = 0; i < snap->tables.count; i++) {
        struct snapshot_table *entry = &snap->tables.items[i];
        if (entry->table == table) {
            struct table_version *old = entry->version;
            entry->version = version_retain(version);
            version_release(old);
            return;
        }
    }
    snapshot_put(snap, table, version);
}

struct snapshot_table snapshot_of(const struct snapshot *snap, const struct edition_entry *entry) {
    for (i64 i = snap->tables.count; i-- > 0;) {
        if (snap->tables.items[i].table == entry->object->table) {
            return snap->tables.items[i];
        }
    }
    return (struct snapshot_table){entry->object->table, entry->version};
}

/* The next name of a list such as `a, "B c", d`; false at the end. */
static bool next_schema(const char **io_at, char *out, i64 cap) {
    const char *at = *io_at;
    while (*at == ' ' || *at == ',') {
        at++;
    }
    if (!*at) {
        return false;
    }
    i64 len = 0;
    bool quoted = *at == '"';
    at += quoted;
    while (*at && (quoted ? *at != '"' || at[1] == '"' : *at != ',' && *at != ' ')) {
        at += quoted && *at == '"';
        char c = *at++;
        c = !quoted && c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
        if (len < cap - 1) {
            out[len++] = c;
        }
    }
    out[len] = 0;
    *io_at = at + (quoted && *at == '"');
    return true;
}

i32 snapshot_path(struct snapshot *snap, u32 out[PATH_MAX_SCHEMAS]) {
    i32 count = 0;
    char name[128];
    const char *at = snap->path ? snap->path : "public";
    bool system = false;
    if (snap->temp_schema && edition_find_oid(snap->edition, snap->temp_schema)) {
        out[count++] = snap->temp_schema;
    }
    i32 first = count;
    while (count < PATH_MAX_SCHEMAS - 1 && next_schema(&at, name, (i64)sizeof name)) {
        const struct edition_entry *schema = edition_find_schema(snap->edition, sv_from(name));
        if (schema) {
            system = system || schema->object->oid == OID_PG_CATALOG;
            out[count++] = schema->object->oid;
        }
    }
    if (!system) { /* looked at before the others unless the path says where */
        memmove(out + first + 1, out + first, (size_t)(count - first) * sizeof *out);
        out[first] = OID_PG_CATALOG;
        count++;
    }
    return count;
}

const struct edition_entry *snapshot_lookup(struct snapshot *snap, struct sv schema,
                                            struct sv name) {
    if (schema.len) {
        bool temp = sv_eq(schema, SV("pg_temp"));
        const struct edition_entry *in = temp ? NULL : edition_find_schema(snap->edition, schema);
        u32 oid = temp ? snap->temp_schema : in ? in->object->oid : 0;
        return oid ? edition_find(snap->edition, oid, name) : NULL;
    }
    u32 path[PATH_MAX_SCHEMAS];
    i32 count = snapshot_path(snap, path);
    for (i32 i = 0; i < count; i++) {
        const struct edition_entry *entry = edition_find(snap->edition, path[i], name);
        if (entry) {
            return entry;
        }
    }
    return NULL;
}

const struct object *snapshot_key_table(struct snapshot *snap, struct sv schema, struct sv name) {
    u32 path[PATH_MAX_SCHEMAS];
    i32 count = schema.len ? 1 : snapshot_path(snap, path);
    if (schema.len) {
        const struct edition_entry *in = edition_find_schema(snap->edition, schema);
        path[0] = sv_eq(schema, SV("pg_temp")) ? snap->temp_schema : in ? in->object->oid : 0;
    }
    for (i32 i = 0; i < count; i++) {
        const struct object *holder =
            path[i] ? edition_name_holder(snap->edition, path[i], name) : NULL;
        if (holder) {
            return edition_find(snap->edition, path[i], name) ? NULL : holder;
        }
    }
    return NULL;
}

wf_status snapshot_target(struct snapshot *snap, struct sv schema, i32 position, u32 *out,
                          struct error *err) {
    TRY(snapshot_open(snap, err));
    if (schema.len) {
        const struct edition_entry *in = edition_find_schema(snap->edition, schema);
        if (!in) {
            FAIL_AT(err, UNDEFINED_SCHEMA, position, "schema \"%.*s\" does not exist",
                    (int)MIN_OF(schema.len, 100), schema.ptr);
        }
        *out = in->object->oid;
        return ERR_OK;
    }
    u32 path[PATH_MAX_SCHEMAS];
    i32 count = snapshot_path(snap, path);
    for (i32 i = 0; i < count; i++) {
        if (path[i] != snap->temp_schema && path[i] != OID_PG_CATALOG) {
            *out = path[i];
            return ERR_OK;
        }
    }
    FAIL_AT(err, UNDEFINED_SCHEMA, position, "no schema has been selected to create in");
}

struct candidates {
    struct edition_walk walk;
    u32 path[PATH_MAX_SCHEMAS];
    i32 path_count;
};

static struct sv next_candidate(void *arg, i64 i) {
    struct candidates *c = arg;
    UNUSED(i); /* asked for in order */
    while (edition_step(&c->walk)) {
        const struct object *object = c->walk.entry->object;
        for (i32 p = 0; p < c->path_count && !object->hidden; p++) {
            if (object->schema == c->path[p]) {
                return sv_from(object->name);
            }
        }
    }
    return (struct sv){NULL, 0};
}

void snapshot_hint(struct snapshot *snap, struct sv name, struct error *err) {
    struct candidates list = {.walk = edition_walk(snap->edition)};
    list.path_count = snapshot_path(snap, list.path);
    struct arena scratch;
    arena_init(&scratch, catalog_memory(snap->catalog));
    const char *nearest = nearest_name(&scratch, name, next_candidate, &list);
    if (nearest) {
        error_hint(err, "Perhaps you meant \"%s\".", nearest);
    }
    arena_fini(&scratch);
}

wf_status snapshot_missing(struct snapshot *snap, struct sv schema, struct sv name, i32 position,
                           struct error *err) {
    if (snapshot_key_table(snap, schema, name)) {
        FAIL_AT(err, WRONG_OBJECT, position, "\"%.*s\" is an index", (int)MIN_OF(name.len, 100),
                name.ptr);
    }
    if (schema.len) {
        FAIL_AT(err, UNDEFINED_TABLE, position, "relation \"%.*s.%.*s\" does not exist",
                (int)MIN_OF(schema.len, 100), schema.ptr, (int)MIN_OF(name.len, 100), name.ptr);
    }
    error_set(err, ERR_UNDEFINED_TABLE, position, "relation \"%.*s\" does not exist",
              (int)MIN_OF(name.len, 100), name.ptr);
    snapshot_hint(snap, name, err);
    return ERR_UNDEFINED_TABLE;
}

wf_status snapshot_find(struct snapshot *snap, struct sv name, i32 position,
                        struct snapshot_table *out, struct error *err) {
    TRY(snapshot_open(snap, err));
    const struct edition_entry *entry = snapshot_lookup(snap, (struct sv){NULL, 0}, name);
    if (!entry) {
        return snapshot_missing(snap, (struct sv){NULL, 0}, name, position, err);
    }
    if (entry->object->kind != OBJECT_TABLE) {
        FAIL_AT(err, WRONG_OBJECT, position, "\"%.100s\" is not a table", entry->object->name);
    }
    *out = snapshot_of(snap, entry);
    return ERR_OK;
}

bool snapshot_find_id(struct snapshot *snap, u64 table_id, struct snapshot_table *out) {
    struct error ignored;
    error_reset(&ignored);
    if (snapshot_open(snap, &ignored)) {
        return false;
    }
    const struct edition_entry *entry = edition_find_table(snap->edition, table_id);
    if (entry) {
        *out = snapshot_of(snap, entry);
        return true;
    }
    for (i64 i = 0; i < snap->tables.count; i++) {
        if (snap->tables.items[i].table->id == table_id) {
            *out = snap->tables.items[i];
            return true;
        }
    }
    return false;
}
