/* edition.c: editions: immutable states of the whole database, and making one from another.
 *
 * An edition is a set of trees that share what they have in common with those of other editions:
 * its objects by OID, with the version of every table, by name and by their tables; and which
 * object uses which. Making one from another takes time for what is different, however many
 * objects there are. */
#include "catalog/catalog_int.h"

struct edition *edition_retain(struct edition *edition) {
    if (edition) {
        atomic_fetch_add_explicit(&edition->refs, 1, memory_order_relaxed);
    }
    return edition;
}

void edition_release(struct edition *edition) {
    if (!edition || atomic_fetch_sub_explicit(&edition->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    tree_release(edition->by_oid);
    tree_release(edition->by_name);
    tree_release(edition->by_table);
    tree_release(edition->uses);
    mem_free(edition->mem, edition, (i64)sizeof *edition);
}

/* Versions that nobody has any more once the edition is gone are given up for good. */
void edition_discard(struct edition *edition, const struct edition *keep) {
    enum { AT_ONCE = 16 };
    struct table_version *gone[AT_ONCE];
    i32 count = 0;
    if (!edition || atomic_load(&edition->refs) != 1) {
        edition_release(edition);
        return;
    }
    struct edition_diff diff = edition_diff(keep, edition);
    while (count < AT_ONCE && edition_diff_step(&diff)) {
        struct table_version *version = diff.after ? diff.after->version : NULL;
        if (version && !(diff.before && diff.before->version == version)) {
            gone[count++] = version_retain(version);
        }
    }
    edition_release(edition);
    for (i32 i = 0; i < count; i++) {
        version_discard(gone[i]);
    }
}

struct edition *edition_new(struct memory *mem) {
    struct edition *edition = mem_alloc(mem, (i64)sizeof *edition);
    if (edition) {
        memset(edition, 0, sizeof *edition);
        atomic_init(&edition->refs, 1);
        edition->mem = mem;
    }
    return edition;
}

static const struct tree_item *find(const struct tree *tree, enum tree_order order, u64 number,
                                    struct sv name) {
    struct tree_key key = {order, number, name};
    const struct tree *found = tree_find(tree, &key);
    return found ? &found->item : NULL;
}

const struct edition_entry *edition_find_oid(const struct edition *edition, u32 oid) {
    const struct tree_item *item = find(edition->by_oid, TREE_OID, oid, (struct sv){NULL, 0});
    return item ? &item->entry : NULL;
}

const struct edition_entry *edition_find(const struct edition *edition, u32 schema,
                                         struct sv name) {
    const struct tree_item *item = find(edition->by_name, TREE_NAME, schema, name);
    return item && !item->used ? edition_find_oid(edition, item->entry.object->oid) : NULL;
}

const struct object *edition_name_holder(const struct edition *edition, u32 schema,
                                         struct sv name) {
    const struct tree_item *item = find(edition->by_name, TREE_NAME, schema, name);
    return item ? item->entry.object : NULL;
}

const struct edition_entry *edition_find_table(const struct edition *edition, u64 table_id) {
    const struct tree_item *item =
        find(edition->by_table, TREE_TABLE, table_id, (struct sv){NULL, 0});
    return item ? edition_find_oid(edition, item->entry.object->oid) : NULL;
}

const struct edition_entry *edition_find_schema(const struct edition *edition, struct sv name) {
    const struct edition_entry *entry = edition_find(edition, 0, name);
    if (!entry && sv_eq(name, SV("main"))) { /* what other databases call it */
        entry = edition_find(edition, 0, SV("public"));
    }
    return entry;
}

/* walks */

struct edition_walk edition_walk(const struct edition *edition) {
    struct edition_walk walk = {.edition = edition, .within = -1};
    tree_walk(&walk, edition->by_oid, NULL);
    return walk;
}

struct edition_walk edition_walk_schema(const struct edition *edition, u32 schema) {
    struct edition_walk walk = {.edition = edition, .names = 1, .within = schema};
    struct tree_key from = {TREE_NAME, schema, SV("")};
    tree_walk(&walk, edition->by_name, &from);
    return walk;
}

struct edition_walk edition_walk_users(const struct edition *edition, u32 oid) {
    struct edition_walk walk = {.edition = edition, .within = oid};
    struct tree_key from = {TREE_USE, (u64)oid << 32, {NULL, 0}};
    tree_walk(&walk, edition->uses, &from);
    return walk;
}

bool edition_step(struct edition_walk *walk) {
    const struct tree_item *item = tree_next(walk);
    while (item && walk->names && item->used) { /* a key is no object */
        item = tree_next(walk);
    }
    bool within = item && (walk->within < 0 ||
                           walk->within == (walk->names ? item->entry.object->schema : item->used));
    walk->entry = !within            ? NULL
                  : walk->within < 0 ? &item->entry
                                     : edition_find_oid(walk->edition, item->entry.object->oid);
    return walk->entry != NULL;
}

struct edition_diff edition_diff(const struct edition *from, const struct edition *to) {
    struct edition_diff diff;
    diff.before = diff.after = NULL;
    tree_diff(&diff, from->by_oid, to->by_oid);
    return diff;
}

/* changes */

static void set_use(struct edition *edition, struct object *object, u32 used, bool add) {
    struct tree_item item = {.entry = {.object = object}, .used = used};
    struct tree_key key = tree_key_of(TREE_USE, &item);
    if (used && used != object->oid && add) {
        tree_put(edition->mem, &edition->uses, TREE_USE, &item);
    } else if (used && used != object->oid) {
        tree_remove(edition->mem, &edition->uses, &key);
    }
}

static void set_name(struct edition *edition, const struct tree_item *item, bool add) {
    struct tree_key name = tree_key_of(TREE_NAME, item);
    if (add) {
        tree_put(edition->mem, &edition->by_name, TREE_NAME, item);
        return;
    }
    const struct tree *named = tree_find(edition->by_name, &name);
    if (named && named->item.entry.object == item->entry.object) { /* nobody else has taken it */
        tree_remove(edition->mem, &edition->by_name, &name);
    }
}

/* Enters an object's names and uses, or takes them out. */
static void set_names(struct edition *edition, struct object *object, bool add) {
    struct tree_item item = {.entry = {.object = object}};
    const struct table *table = object->table;
    set_use(edition, object, object->owner, add);
    for (u32 i = 0; i < object->dep_count; i++) {
        set_use(edition, object, object->deps[i], add);
    }
    for (u32 i = 0; table && i < table->foreign_count; i++) {
        set_use(edition, object, table->foreigns[i].ref_oid, add);
    }
    for (u32 i = 0; table && i < table->col_count; i++) {
        set_use(edition, object, table->cols[i].sequence, add);
    }
    set_name(edition, &item, add);
    for (u32 i = 0; table && i < table->key_count; i++) {
        if (!table->keys[i].index) { /* that one's name is an object's */
            struct tree_item key = {.entry = {.object = object}, .used = i + 1};
            set_name(edition, &key, add);
        }
    }
    if (table && add) {
        tree_put(edition->mem, &edition->by_table, TREE_TABLE, &item);
    } else if (table) {
        struct tree_key id = tree_key_of(TREE_TABLE, &item);
        tree_remove(edition->mem, &edition->by_table, &id);
    }
}

bool edition_put(struct edition *edition, u32 oid, struct object *object,
                 struct table_version *version) {
    const struct edition_entry *entry = edition_find_oid(edition, oid);
    struct object *old = entry ? entry->object : NULL;
    if (old && old != object) {
        set_names(edition, old, false);
    }
    if (object && old != object) {
        set_names(edition, object, true);
    }
    edition->count += (object != NULL) - (old != NULL);
    if (object) {
        struct tree_item item = {.entry = {object, version}};
        tree_put(edition->mem, &edition->by_oid, TREE_OID, &item);
    } else if (old) {
        struct tree_key key = {TREE_OID, oid, {NULL, 0}};
        tree_remove(edition->mem, &edition->by_oid, &key);
    }
    return edition->by_oid != tree_refused && edition->by_name != tree_refused &&
           edition->by_table != tree_refused && edition->uses != tree_refused;
}

wf_status edition_change(struct catalog *catalog, const struct edition *from,
                         const struct edit *edits, i64 count, struct edition **out,
                         struct error *err) {
    struct memory *mem = catalog_memory(catalog);
    struct edition *to = edition_new(mem);
    bool fine = to != NULL, same = true;
    if (to) {
        to->epoch = from->epoch;
        to->definitions = from->definitions;
        to->count = from->count;
        to->by_oid = tree_retain(from->by_oid);
        to->by_name = tree_retain(from->by_name);
        to->by_table = tree_retain(from->by_table);
        to->uses = tree_retain(from->uses);
    }
    for (i64 i = 0; i < count && fine; i++) {
        const struct edition_entry *entry = edition_find_oid(to, edits[i].oid);
        same = same && (entry ? entry->object : NULL) == edits[i].object;
        fine = edition_put(to, edits[i].oid, edits[i].object, edits[i].version);
    }
    if (!fine) {
        edition_release(to);
        return memory_refused(mem, err, (i64)sizeof(struct tree));
    }
    if (!same) {
        to->definitions = catalog_new_definitions(catalog);
    }
    *out = to;
    return ERR_OK;
}

i64 edition_table_names(const struct edition *edition, u32 kind, struct arena *arena,
                        struct sv **out_names) {
    struct sv *names = NEW_ARRAY(arena, struct sv, edition->count + 1);
    i64 count = 0;
    struct edition_walk walk = {.edition = edition};
    tree_walk(&walk, edition->by_name, NULL);
    for (const struct tree_item *item; (item = tree_next(&walk));) {
        const struct object *object = item->entry.object;
        if (object->kind == kind && !object->hidden && !item->used) {
            names[count++] = arena_sv(arena, sv_from(object->name));
        }
    }
    *out_names = names;
    return count;
}
