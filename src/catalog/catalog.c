/* catalog.c: names to tables, and the snapshots through which statements see them.
 *
 * Tables lie in one array ordered by name, under one lock: definitions change rarely and are few.
 * A statement's snapshot retains every table it names and the version it reads, so a table that is
 * dropped meanwhile stays readable for it and goes with its last snapshot. Names arrive folded by
 * the parser and are compared byte by byte. */
#include "catalog/catalog.h"

struct catalog {
    struct memory *mem;
    struct mutex lock; /* tables, count, cap, last_id */
    struct table **tables;
    i64 count, cap;
    u64 last_id;
    _Atomic u64 version;
};

struct catalog *catalog_open(struct memory *mem) {
    struct catalog *catalog = mem_alloc(mem, (i64)sizeof *catalog);
    if (!catalog) {
        return NULL;
    }
    memset(catalog, 0, sizeof *catalog);
    catalog->mem = mem;
    mutex_init(&catalog->lock);
    return catalog;
}

void catalog_close(struct catalog *catalog) {
    if (!catalog) {
        return;
    }
    for (i64 i = 0; i < catalog->count; i++) {
        table_close(catalog->tables[i]);
    }
    mem_free(catalog->mem, catalog->tables, catalog->cap * (i64)sizeof *catalog->tables);
    mutex_fini(&catalog->lock);
    mem_free(catalog->mem, catalog, (i64)sizeof *catalog);
}

u64 catalog_version(const struct catalog *catalog) {
    return atomic_load(&catalog->version);
}

/* Where the name is or belongs. Under the lock. */
static i64 place_of(const struct catalog *catalog, struct sv name, bool *out_found) {
    i64 low = 0, high = catalog->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (sv_cmp(sv_from(catalog->tables[middle]->name), name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *out_found = low < catalog->count && sv_eq(sv_from(catalog->tables[low]->name), name);
    return low;
}

static bool make_room(struct catalog *catalog) {
    if (catalog->count < catalog->cap) {
        return true;
    }
    i64 cap = MAX_OF(catalog->cap * 2, 16), item = (i64)sizeof *catalog->tables;
    struct table **grown = mem_alloc(catalog->mem, cap * item);
    if (!grown) {
        return false;
    }
    if (catalog->count) {
        memcpy(grown, catalog->tables, (size_t)(catalog->count * item));
    }
    mem_free(catalog->mem, catalog->tables, catalog->cap * item);
    catalog->tables = grown;
    catalog->cap = cap;
    return true;
}

static FALLIBLE already_there(struct sv name, i32 position, struct error *err) {
    FAIL_AT(err, DUPLICATE_TABLE, position, "table \"%.*s\" already exists", (int)name.len,
            name.ptr);
}

static FALLIBLE create_locked(struct catalog *catalog, struct sv name, u32 col_count,
                              const struct column_def *cols, u32 tablet_shift, bool plain,
                              i32 position, struct error *err) {
    bool found;
    i64 place = place_of(catalog, name, &found);
    if (found) {
        return already_there(name, position, err);
    }
    if (col_count == 0) {
        FAIL_AT(err, INVALID_DEFINITION, position, "a table needs at least one column");
    }
    i64 name_bytes = name.len + 1;
    char *c_name = mem_alloc(catalog->mem, name_bytes); /* the table makes its own copy */
    struct table *table = NULL;
    if (c_name && make_room(catalog)) {
        memcpy(c_name, name.ptr, (size_t)name.len);
        c_name[name.len] = 0;
        table = table_open(catalog->mem, catalog->last_id + 1, c_name, col_count, cols,
                           tablet_shift, plain);
    }
    mem_free(catalog->mem, c_name, name_bytes);
    if (!table) {
        return memory_refused(catalog->mem, err, (i64)sizeof *table);
    }
    catalog->last_id++;
    memmove(catalog->tables + place + 1, catalog->tables + place,
            (size_t)(catalog->count - place) * sizeof *catalog->tables);
    catalog->tables[place] = table;
    catalog->count++;
    atomic_fetch_add(&catalog->version, 1);
    return ERR_OK;
}

wf_status catalog_create_table(struct catalog *catalog, struct sv name, u32 col_count,
                               const struct column_def *cols, u32 tablet_shift, bool plain,
                               i32 position, struct error *err) {
    mutex_lock(&catalog->lock);
    wf_status status =
        create_locked(catalog, name, col_count, cols, tablet_shift, plain, position, err);
    mutex_unlock(&catalog->lock);
    return status;
}

static struct sv name_at(void *catalog, i64 i) {
    const struct catalog *c = catalog;
    return i < c->count ? sv_from(c->tables[i]->name) : (struct sv){NULL, 0};
}

/* Under the lock; so the candidates stay while they are compared. */
static FALLIBLE not_there(struct catalog *catalog, struct sv name, i32 position,
                          struct error *err) {
    struct arena scratch;
    arena_init(&scratch, catalog->mem);
    const char *nearest = nearest_name(&scratch, name, name_at, catalog);
    wf_status status = error_set(err, ERR_UNDEFINED_TABLE, position,
                                 "table \"%.*s\" does not exist", (int)name.len, name.ptr);
    if (nearest) {
        error_hint(err, "Perhaps you meant \"%s\".", nearest);
    }
    arena_fini(&scratch);
    return status;
}

/* Takes the table out of the list; the caller closes it without the lock. */
static struct table *take_out(struct catalog *catalog, i64 place) {
    struct table *table = catalog->tables[place];
    catalog->count--;
    memmove(catalog->tables + place, catalog->tables + place + 1,
            (size_t)(catalog->count - place) * sizeof *catalog->tables);
    atomic_fetch_add(&catalog->version, 1);
    return table;
}

wf_status catalog_drop_table(struct catalog *catalog, struct sv name, i32 position,
                             struct error *err) {
    bool found;
    struct table *table = NULL;
    wf_status status = ERR_OK;
    mutex_lock(&catalog->lock);
    i64 place = place_of(catalog, name, &found);
    if (found) {
        table = take_out(catalog, place);
    } else {
        status = not_there(catalog, name, position, err);
    }
    mutex_unlock(&catalog->lock);
    table_close(table);
    return status;
}

wf_status catalog_drop_tables(struct catalog *catalog, i32 count, const char *const *names,
                              const i32 *positions, bool if_exists, struct error *err) {
    bool found;
    i64 bytes = MAX_OF(count, 1) * (i64)sizeof(struct table *);
    struct table **taken = mem_alloc(catalog->mem, bytes);
    if (!taken) {
        return memory_refused(catalog->mem, err, bytes);
    }
    i32 taken_count = 0;
    wf_status status = ERR_OK;
    mutex_lock(&catalog->lock);
    for (i32 i = 0; i < count && !if_exists && !status; i++) {
        place_of(catalog, sv_from(names[i]), &found);
        status = found ? ERR_OK : not_there(catalog, sv_from(names[i]), positions[i], err);
    }
    for (i32 i = 0; i < count && !status; i++) {
        i64 place = place_of(catalog, sv_from(names[i]), &found);
        if (found) {
            taken[taken_count++] = take_out(catalog, place);
        }
    }
    mutex_unlock(&catalog->lock);
    for (i32 i = 0; i < taken_count; i++) {
        table_close(taken[i]);
    }
    mem_free(catalog->mem, taken, bytes);
    return status;
}

void snapshot_init(struct snapshot *snap, struct catalog *catalog, struct arena *arena) {
    memset(snap, 0, sizeof *snap);
    snap->arena = arena;
    snap->catalog = catalog;
}

void snapshot_put(struct snapshot *snap, struct table *table, struct table_version *version) {
    struct snapshot_table entry = {table_retain(table), version_retain(version)};
    VEC_PUSH(snap->arena, &snap->tables, entry);
}

void snapshot_fini(struct snapshot *snap) {
    for (i64 i = 0; i < snap->tables.count; i++) {
        version_release(snap->tables.items[i].version);
        table_close(snap->tables.items[i].table);
    }
    snap->tables.count = 0;
}

/* The statement's entry for a table; takes the reference to it. */
static struct snapshot_table snapshot_add(struct snapshot *snap, struct table *table) {
    for (i64 i = 0; i < snap->tables.count; i++) {
        if (snap->tables.items[i].table == table) {
            table_close(table);
            return snap->tables.items[i];
        }
    }
    struct snapshot_table entry = {table, table_snapshot(table)};
    VEC_PUSH(snap->arena, &snap->tables, entry);
    return entry;
}

wf_status snapshot_find(struct snapshot *snap, struct sv name, i32 position,
                        struct snapshot_table *out, struct error *err) {
    struct catalog *catalog = snap->catalog;
    for (i64 i = 0; i < snap->tables.count; i++) { /* one statement, one meaning of a name */
        if (sv_eq(sv_from(snap->tables.items[i].table->name), name)) {
            *out = snap->tables.items[i];
            return ERR_OK;
        }
    }
    bool found;
    wf_status status = ERR_OK;
    struct table *table = NULL;
    mutex_lock(&catalog->lock);
    i64 place = place_of(catalog, name, &found);
    if (found) {
        table = table_retain(catalog->tables[place]);
    } else {
        status = not_there(catalog, name, position, err);
    }
    mutex_unlock(&catalog->lock);
    if (table) {
        *out = snapshot_add(snap, table);
    }
    return status;
}

bool snapshot_find_id(struct snapshot *snap, u64 table_id, struct snapshot_table *out) {
    struct catalog *catalog = snap->catalog;
    for (i64 i = 0; i < snap->tables.count; i++) {
        if (snap->tables.items[i].table->id == table_id) {
            *out = snap->tables.items[i];
            return true;
        }
    }
    struct table *table = NULL;
    mutex_lock(&catalog->lock);
    for (i64 i = 0; i < catalog->count && !table; i++) {
        if (catalog->tables[i]->id == table_id) {
            table = table_retain(catalog->tables[i]);
        }
    }
    mutex_unlock(&catalog->lock);
    if (!table) {
        return false;
    }
    *out = snapshot_add(snap, table);
    return true;
}

i64 catalog_table_names(struct catalog *catalog, struct arena *arena, struct sv **out_names) {
    mutex_lock(&catalog->lock);
    i64 count = catalog->count;
    struct sv *names = NEW_ARRAY(arena, struct sv, count);
    for (i64 i = 0; i < count; i++) {
        names[i] = arena_sv(arena, sv_from(catalog->tables[i]->name));
    }
    mutex_unlock(&catalog->lock);
    *out_names = names;
    return count;
}
