/* catalog.c: the current edition, and commits.
 *
 * A commit compares three editions: the one the transaction started from, the one it made, and the
 * current one. What the transaction changed and nobody else did is taken over; what both changed is
 * brought together where that is possible (rows of a table: see version_rebase) and is 40001 where
 * it is not. All of it happens under one lock, and ends with one pointer: so transactions take
 * effect one after the other, completely, and the first one to commit wins.
 *
 * With a database file there are two pointers (saved.c). Under the lock a commit is written to the
 * log, and its edition becomes the newest, with which later ones are merged. Once the log is synced
 * it becomes visible, which is what statements read. So readers never wait for a commit, and commits
 * that come meanwhile share a sync.
 *
 * Tables may also be published on their own (table_publish: tests, generators). They count an epoch
 * of the catalog then, by which the current edition is known to be out of date.
 * See decision 0012. */
#include "catalog/catalog.h"

#include "catalog/catalog_int.h"

struct memory *catalog_memory(const struct catalog *catalog) {
    return catalog->mem;
}

_Atomic u64 *catalog_epoch(struct catalog *catalog) {
    return &catalog->epoch;
}

u32 catalog_new_oid(struct catalog *catalog) {
    return atomic_fetch_add(&catalog->last_oid, 1) + 1;
}

u64 catalog_new_id(struct catalog *catalog) {
    return atomic_fetch_add(&catalog->last_id, 1) + 1;
}

u64 catalog_new_definitions(struct catalog *catalog) {
    return atomic_fetch_add(&catalog->definitions, 1) + 1;
}

static struct edition *first_edition(struct memory *mem) {
    static const struct {
        u32 oid;
        const char *name;
    } schemas[] = {{OID_PG_CATALOG, "pg_catalog"},
                   {OID_PUBLIC, "public"},
                   {OID_INFORMATION, "information_schema"}};
    struct edition *edition = edition_new(mem);
    bool fine = edition != NULL;
    for (i64 i = 0; i < COUNT_OF(schemas) && fine; i++) {
        struct object like = {.kind = OBJECT_SCHEMA,
                              .oid = schemas[i].oid,
                              .name = schemas[i].name,
                              .hidden = schemas[i].oid != OID_PUBLIC};
        struct object *object = object_new(mem, &like);
        fine = object && edition_put(edition, object->oid, object, NULL);
        object_release(object);
    }
    if (!fine) {
        edition_release(edition);
        return NULL;
    }
    edition->definitions = 1;
    return edition;
}

struct catalog *catalog_open(struct memory *mem) {
    struct catalog *catalog = mem_alloc(mem, (i64)sizeof *catalog);
    if (!catalog) {
        return NULL;
    }
    memset(catalog, 0, sizeof *catalog);
    catalog->mem = mem;
    mutex_init(&catalog->lock);
    mutex_init(&catalog->commit_lock);
    cond_init(&catalog->save_done);
    cond_init(&catalog->keeper_wakes);
    atomic_init(&catalog->last_oid, OID_FIRST - 1);
    atomic_init(&catalog->definitions, 1);
    catalog->edition = first_edition(mem);
    if (!catalog->edition) {
        catalog_close(catalog);
        return NULL;
    }
    catalog->visible = edition_retain(catalog->edition);
    return catalog;
}

struct db_file *catalog_file(struct catalog *catalog) {
    return catalog->file;
}

void catalog_set_edition(struct catalog *catalog, struct edition *edition) {
    edition->number = ++catalog->last_number;
    edition->epoch = atomic_load(&catalog->epoch);
    edition_release(catalog->edition);
    edition_release(catalog->visible);
    catalog->edition = edition;
    catalog->visible = edition_retain(edition);
}

void catalog_close(struct catalog *catalog) {
    if (!catalog) {
        return;
    }
    ASSERT(!catalog->file); /* catalog_detach comes before */
    edition_release(catalog->edition);
    edition_release(catalog->visible);
    cond_fini(&catalog->keeper_wakes);
    cond_fini(&catalog->save_done);
    mutex_fini(&catalog->commit_lock);
    mutex_fini(&catalog->lock);
    mem_free(catalog->mem, catalog, (i64)sizeof *catalog);
}

/* Under the lock: the current edition with the versions tables have now. */
static FALLIBLE refresh(struct catalog *catalog, struct error *err) {
    u64 epoch = atomic_load(&catalog->epoch);
    struct edition *old = catalog->edition;
    if (old->epoch == epoch) {
        return ERR_OK;
    }
    struct edition *fresh = NULL;
    TRY(edition_change(catalog, old, NULL, 0, &fresh, err));
    for (struct edition_walk at = edition_walk(old); edition_step(&at);) {
        struct object *object = at.entry->object;
        struct table_version *version = object->table ? table_snapshot(object->table) : NULL;
        bool fine =
            version == at.entry->version || edition_put(fresh, object->oid, object, version);
        version_release(version);
        if (!fine) {
            edition_release(fresh);
            return memory_refused(catalog->mem, err, (i64)sizeof(struct tree));
        }
    }
    fresh->epoch = epoch;
    fresh->number = ++catalog->last_number;
    if (catalog->visible == old) {
        edition_release(catalog->visible);
        catalog->visible = edition_retain(fresh);
    }
    catalog->edition = fresh;
    edition_release(old);
    return ERR_OK;
}

wf_status catalog_edition(struct catalog *catalog, struct edition **out, struct error *err) {
    mutex_lock(&catalog->lock);
    wf_status status = refresh(catalog, err);
    *out = status ? NULL : edition_retain(catalog->visible);
    mutex_unlock(&catalog->lock);
    return status;
}

u64 catalog_version(struct catalog *catalog) {
    mutex_lock(&catalog->lock);
    u64 version = catalog->visible->definitions;
    mutex_unlock(&catalog->lock);
    return version;
}

static FALLIBLE lost(const struct object *object, const char *what, struct error *err) {
    error_set(err, ERR_SERIALIZATION, -1, "could not serialize access due to concurrent update");
    error_hint(err, "Another transaction %s %s \"%s\"; try again.", what,
               object_words[object->kind], object->name);
    return ERR_SERIALIZATION;
}

struct merge {
    struct catalog *catalog;
    const struct edition *base, *mine, *now;
    struct edit *edits;
    i64 count;
    struct error *err;
};

static void note(struct merge *m, u32 oid, struct object *object, struct table_version *version) {
    m->edits[m->count++] = (struct edit){oid, object ? object_retain(object) : NULL,
                                         version ? version_retain(version) : NULL};
}

/* An object this transaction made: its name must still be free, its schema there. */
static bool has_name(const struct object *object, u32 schema, const char *name) {
    bool has = strcmp(object->name, name) == 0;
    for (u32 i = 0; object->table && i < object->table->key_count; i++) {
        has = has || strcmp(object->table->keys[i].name, name) == 0;
    }
    return has && object->schema == schema;
}

/* A name of the object must not be somebody else's, unless that one gives it up. */
static FALLIBLE merge_name(struct merge *m, const struct object *object, const char *name) {
    const struct object *holder = edition_name_holder(m->now, object->schema, sv_from(name));
    if (!holder || holder->oid == object->oid) {
        return ERR_OK;
    }
    const struct edition_entry *had = edition_find_oid(m->base, holder->oid);
    const struct edition_entry *left = edition_find_oid(m->mine, holder->oid);
    bool makes_room = had && has_name(had->object, object->schema, name) &&
                      !(left && has_name(left->object, object->schema, name));
    if (!makes_room) {
        bool schema = object->kind == OBJECT_SCHEMA;
        return error_set(m->err, schema ? ERR_DUPLICATE_SCHEMA : ERR_DUPLICATE_TABLE, -1,
                         "%s \"%.100s\" already exists", schema ? "schema" : "relation", name);
    }
    return ERR_OK;
}

/* An object that is new, or another than before. */
static FALLIBLE merge_defined(struct merge *m, const struct edition_entry *mine) {
    const struct object *object = mine->object;
    if (edition_find_oid(m->base, object->schema) && !edition_find_oid(m->now, object->schema)) {
        return lost(object, "dropped the schema of", m->err);
    }
    TRY(merge_name(m, object, object->name));
    for (u32 i = 0; object->table && i < object->table->key_count; i++) {
        if (!object->table->keys[i].index) {
            TRY(merge_name(m, object, object->table->keys[i].name));
        }
    }
    note(m, object->oid, mine->object, mine->version);
    return ERR_OK;
}

static FALLIBLE merge_version(struct merge *m, const struct edition_entry *base,
                              const struct edition_entry *mine, const struct edition_entry *now) {
    struct table *table = mine->object->table;
    if (now->version == base->version && !version_is_private(mine->version)) {
        note(m, mine->object->oid, mine->object, mine->version);
        return ERR_OK;
    }
    struct table_version *merged;
    TRY(version_rebase(table, base->version, mine->version, now->version, &merged, m->err));
    note(m, mine->object->oid, now->object, merged);
    version_release(merged);
    return ERR_OK;
}

/* An object both the base and this transaction have. */
static FALLIBLE merge_kept(struct merge *m, const struct edition_entry *base,
                           const struct edition_entry *mine) {
    bool altered = base->object != mine->object, rows = base->version != mine->version;
    if (!altered && !rows) {
        return ERR_OK;
    }
    const struct edition_entry *now = edition_find_oid(m->now, mine->object->oid);
    if (!now) {
        return lost(mine->object, "dropped", m->err);
    }
    if (now->object != base->object) {
        return lost(mine->object, "altered", m->err);
    }
    if (!altered) {
        return merge_version(m, base, mine, now);
    }
    if (now->version != base->version &&
        !(now->version && base->version && now->version->content_no == base->version->content_no)) {
        return lost(mine->object, "changed", m->err);
    }
    return merge_defined(m, mine);
}

static FALLIBLE merge_removed(struct merge *m, const struct edition_entry *base) {
    const struct edition_entry *now = edition_find_oid(m->now, base->object->oid);
    if (!now || now->object != base->object) {
        return lost(base->object, now ? "altered" : "dropped", m->err);
    }
    note(m, base->object->oid, NULL, NULL);
    return ERR_OK;
}

static FALLIBLE merge_all(struct merge *m) {
    struct edition_diff diff = edition_diff(m->base, m->mine);
    while (edition_diff_step(&diff)) {
        TRY(!diff.after    ? merge_removed(m, diff.before)
            : !diff.before ? merge_defined(m, diff.after)
                           : merge_kept(m, diff.before, diff.after));
    }
    return ERR_OK;
}

static FALLIBLE merge(struct catalog *catalog, struct edition *base, struct edition *mine,
                      struct edition **out, struct error *err) {
    struct edition *now = catalog->edition;
    i64 changes = 1;
    bool apart = now != base; /* there is something to bring together */
    for (struct edition_diff diff = edition_diff(base, mine); edition_diff_step(&diff);) {
        const struct table_version *version = diff.after ? diff.after->version : NULL;
        apart = apart || (version && version_is_private(version));
        changes++;
    }
    if (!apart) {
        *out = edition_retain(mine);
        return ERR_OK;
    }
    i64 bytes = changes * (i64)sizeof(struct edit);
    struct merge m = {.catalog = catalog, .base = base, .mine = mine, .now = now, .err = err};
    m.edits = mem_alloc(catalog->mem, bytes);
    if (!m.edits) {
        return memory_refused(catalog->mem, err, bytes);
    }
    wf_status status = merge_all(&m);
    if (!status) {
        status = edition_change(catalog, now, m.edits, m.count, out, err);
    }
    for (i64 i = 0; i < m.count; i++) {
        version_release(m.edits[i].version);
        object_release(m.edits[i].object);
    }
    mem_free(catalog->mem, m.edits, bytes);
    return status;
}

/* Under the commit lock: commits are merged with it from here on. Nothing fails. */
static void publish(struct catalog *catalog, struct edition *next) {
    mutex_lock(&catalog->lock);
    struct edition *old = catalog->edition;
    u64 epoch = old->epoch;
    for (struct edition_diff diff = edition_diff(old, next); edition_diff_step(&diff);) {
        const struct edition_entry *entry = diff.after, *before = diff.before;
        if (entry && entry->version && (!before || before->version != entry->version)) {
            if (!before || before->object->table != entry->object->table) {
                table_set_epoch(entry->object->table, &catalog->epoch);
                table_set_file(entry->object->table,
                               entry->object->temp ? NULL : catalog->file);
            }
            table_publish(entry->object->table, version_retain(entry->version));
            epoch++;
        }
    }
    ASSERT(next != old && next->mem == old->mem &&
           epoch >= old->epoch); /* editions are never changed */
    next->epoch = epoch;
    next->number = ++catalog->last_number;
    catalog->edition = edition_retain(next);
    if (!catalog->file) {
        edition_release(catalog->visible);
        catalog->visible = edition_retain(next);
    }
    mutex_unlock(&catalog->lock);
    edition_release(old);
}

/* Takes the edition that was published: once its record is durable, statements read it. */
static FALLIBLE show(struct catalog *catalog, struct edition *next, u64 record,
                     struct error *err) {
    wf_status status = catalog_settle(catalog, record, err);
    struct edition *old = NULL;
    mutex_lock(&catalog->lock);
    if (!status && catalog->visible->number < next->number) {
        old = catalog->visible;
        catalog->visible = edition_retain(next);
    }
    mutex_unlock(&catalog->lock);
    edition_release(old);
    edition_release(next);
    return status;
}

/* Under the commit lock: the newest edition has what tables published on their own. */
static FALLIBLE newest(struct catalog *catalog, struct error *err) {
    mutex_lock(&catalog->lock);
    wf_status status = refresh(catalog, err);
    mutex_unlock(&catalog->lock);
    return status;
}

wf_status catalog_keep_sequences(struct catalog *catalog, struct error *err) {
    if (!catalog->file || sequence_moves() == atomic_load(&catalog->saved_moves)) {
        return ERR_OK;
    }
    wf_status status = ERR_OK;
    mutex_lock(&catalog->commit_lock);
    for (bool again = true; again && !status;) {
        status = catalog_keep(catalog, catalog->edition, &again, err);
    }
    u64 record = catalog->last_record;
    mutex_unlock(&catalog->commit_lock);
    return status ? status : catalog_settle(catalog, record, err);
}

wf_status catalog_commit(struct catalog *catalog, struct edition *base, struct edition *mine,
                         commit_check recheck, void *arg, struct error *err) {
    return catalog_commit_as(catalog, base, mine, false, recheck, arg, err);
}

wf_status catalog_commit_as(struct catalog *catalog, struct edition *base, struct edition *mine,
                            bool lazy, commit_check recheck, void *arg, struct error *err) {
    if (base == mine) {
        return ERR_OK;
    }
    struct edition *next = NULL;
    wf_status status = ERR_OK;
    mutex_lock(&catalog->commit_lock);
    for (bool again = true; again && !status;) {
        edition_release(next);
        next = NULL;
        status = newest(catalog, err);
        if (!status) {
            status = merge(catalog, base, mine, &next, err);
        }
        if (!status && next != mine && recheck) {
            struct meeting meeting = {base, mine, catalog->edition, next};
            status = recheck(arg, &meeting, err);
        }
        if (!status) {
            status = catalog_keep(catalog, next, &again, err);
        }
    }
    if (!status) {
        publish(catalog, next);
    }
    u64 record = lazy ? 0 : catalog->last_record;
    mutex_unlock(&catalog->commit_lock);
    if (status) {
        edition_release(next);
        return status;
    }
    return show(catalog, next, record, err);
}

wf_status catalog_replace(struct catalog *catalog, u32 oid, const struct table_version *old,
                          struct table_version *version, struct error *err) {
    struct edition *next = NULL;
    wf_status status = ERR_OK;
    mutex_lock(&catalog->commit_lock);
    for (bool again = true; again && !status;) {
        edition_release(next);
        next = NULL;
        again = false;
        status = newest(catalog, err);
        const struct edition_entry *entry = status ? NULL : edition_find_oid(catalog->edition, oid);
        if (entry && entry->version == old) {
            struct edit edit = {oid, entry->object, version};
            status = edition_change(catalog, catalog->edition, &edit, 1, &next, err);
        }
        if (next) {
            status = catalog_keep(catalog, next, &again, err);
        }
    }
    if (next && !status) {
        publish(catalog, next);
    }
    u64 record = catalog->last_record;
    mutex_unlock(&catalog->commit_lock);
    if (status || !next) {
        edition_release(next);
        return status;
    }
    return show(catalog, next, record, err);
}

struct object *catalog_table_object(struct catalog *catalog, u32 schema, const char *name, u32 oid,
                                    struct table *table) {
    struct object like = {
        .kind = OBJECT_TABLE, .oid = oid, .schema = schema, .name = name, .table = table};
    struct object *object = object_new(catalog->mem, &like);
    table_close(table);
    return object;
}

static FALLIBLE commit_edit(struct catalog *catalog, struct edition *base, const struct edit *edit,
                            struct error *err) {
    struct edition *mine = NULL;
    TRY(edition_change(catalog, base, edit, 1, &mine, err));
    wf_status status = catalog_commit(catalog, base, mine, NULL, NULL, err);
    edition_release(mine);
    return status;
}

static FALLIBLE create_table(struct catalog *catalog, struct edition *base, const char *name,
                             struct table *table, i32 position, struct error *err) {
    if (edition_name_holder(base, OID_PUBLIC, sv_from(name))) {
        table_close(table);
        FAIL_AT(err, DUPLICATE_TABLE, position, "relation \"%.100s\" already exists", name);
    }
    struct table_version *version = table_snapshot(table);
    struct object *object =
        catalog_table_object(catalog, OID_PUBLIC, name, catalog_new_oid(catalog), table);
    struct edit edit = {object ? object->oid : 0, object, version};
    wf_status status = object ? commit_edit(catalog, base, &edit, err)
                              : memory_refused(catalog->mem, err, (i64)sizeof *object);
    object_release(object);
    version_release(version);
    return status;
}

wf_status catalog_create_table(struct catalog *catalog, const struct table_def *def,
                               u32 tablet_shift, bool plain, i32 position, struct error *err) {
    if (def->col_count == 0) {
        FAIL_AT(err, INVALID_DEFINITION, position, "a table needs at least one column");
    }
    struct edition *base = NULL;
    TRY(catalog_edition(catalog, &base, err));
    struct table *table = table_open(catalog->mem, catalog_new_id(catalog), def->name,
                                     def->col_count, def->cols, tablet_shift, plain);
    wf_status status = table ? create_table(catalog, base, def->name, table, position, err)
                             : memory_refused(catalog->mem, err, (i64)sizeof *table);
    edition_release(base);
    return status;
}

wf_status catalog_drop_table(struct catalog *catalog, struct sv name, i32 position,
                             struct error *err) {
    struct edition *base = NULL;
    TRY(catalog_edition(catalog, &base, err));
    const struct edition_entry *entry = edition_find(base, OID_PUBLIC, name);
    struct edit edit = {entry ? entry->object->oid : 0, NULL, NULL};
    wf_status status = entry ? commit_edit(catalog, base, &edit, err)
                             : error_set(err, ERR_UNDEFINED_TABLE, position,
                                         "table \"%.*s\" does not exist", (int)name.len, name.ptr);
    edition_release(base);
    return status;
}

i64 catalog_table_names(struct catalog *catalog, struct arena *arena, struct sv **out_names) {
    mutex_lock(&catalog->lock);
    struct edition *edition = edition_retain(catalog->visible);
    mutex_unlock(&catalog->lock);
    i64 count = edition_table_names(edition, OBJECT_TABLE, arena, out_names);
    edition_release(edition);
    return count;
}
