/* edition.c: editions: immutable states of the whole database, and making one from another.
 *
 * An edition lists its objects by OID, with the version of every table, and has an index by name.
 * Making one from another copies the list and takes references: definitions are few, and a commit
 * that only changes rows touches nothing but that list. */
#include "catalog/catalog_int.h"

#include <stdlib.h>

struct edition *edition_retain(struct edition *edition) {
    if (edition) {
        atomic_fetch_add_explicit(&edition->refs, 1, memory_order_relaxed);
    }
    return edition;
}

static i64 edition_bytes(i64 count) {
    return (i64)sizeof(struct edition) + count * (i64)(sizeof(struct edition_entry) + sizeof(u32));
}

void edition_release(struct edition *edition) {
    if (!edition || atomic_fetch_sub_explicit(&edition->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (i64 i = 0; i < edition->count; i++) {
        version_release(edition->entries[i].version);
        object_release(edition->entries[i].object);
    }
    mem_free(edition->mem, edition, edition_bytes(edition->count));
}

void edition_discard(struct edition *edition, const struct edition *keep) {
    bool alone = edition && atomic_load(&edition->refs) == 1;
    for (i64 i = 0; alone && i < edition->count; i++) {
        struct edition_entry *entry = &edition->entries[i];
        const struct edition_entry *kept = edition_find_oid(keep, entry->object->oid);
        if (entry->version && (!kept || kept->version != entry->version)) {
            version_discard(entry->version);
            entry->version = NULL;
        }
    }
    edition_release(edition);
}

struct edition *edition_alloc(struct memory *mem, i64 count) {
    struct edition *edition = mem_alloc(mem, edition_bytes(count));
    if (edition) {
        memset(edition, 0, (size_t)edition_bytes(count));
        atomic_init(&edition->refs, 1);
        edition->mem = mem;
        edition->count = count;
        edition->entries = (struct edition_entry *)(void *)(edition + 1);
        edition->by_name = (u32 *)(void *)(edition->entries + count);
    }
    return edition;
}

void edition_set(struct edition *edition, i64 i, struct object *object,
                 struct table_version *version) {
    edition->entries[i].object = object_retain(object);
    edition->entries[i].version = version ? version_retain(version) : NULL;
}

static int compare_names(const struct object *a, u32 schema, struct sv name) {
    if (a->schema != schema) {
        return a->schema < schema ? -1 : 1;
    }
    return sv_cmp(sv_from(a->name), name);
}

/* Shell sort: editions are short, and C's own has no place for the list. */
void edition_index(struct edition *edition) {
    i64 count = edition->count;
    for (i64 i = 0; i < count; i++) {
        edition->by_name[i] = (u32)i;
    }
    i64 gap = 1;
    while (gap < count / 3) {
        gap = gap * 3 + 1;
    }
    for (; gap > 0; gap /= 3) {
        for (i64 i = gap; i < count; i++) {
            u32 moved = edition->by_name[i];
            const struct object *object = edition->entries[moved].object;
            i64 at = i;
            while (at >= gap && compare_names(edition->entries[edition->by_name[at - gap]].object,
                                              object->schema, sv_from(object->name)) > 0) {
                edition->by_name[at] = edition->by_name[at - gap];
                at -= gap;
            }
            edition->by_name[at] = moved;
        }
    }
}

const struct edition_entry *edition_find(const struct edition *edition, u32 schema,
                                         struct sv name) {
    i64 low = 0, high = edition->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        const struct object *object = edition->entries[edition->by_name[middle]].object;
        if (compare_names(object, schema, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == edition->count) {
        return NULL;
    }
    const struct edition_entry *entry = &edition->entries[edition->by_name[low]];
    return compare_names(entry->object, schema, name) == 0 ? entry : NULL;
}

const struct edition_entry *edition_find_schema(const struct edition *edition, struct sv name) {
    const struct edition_entry *entry = edition_find(edition, 0, name);
    if (!entry && sv_eq(name, SV("main"))) { /* what other databases call it */
        entry = edition_find(edition, 0, SV("public"));
    }
    return entry;
}

/* Where the OID is or belongs. */
static i64 place_of(const struct edition *edition, u32 oid) {
    i64 low = 0, high = edition->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (edition->entries[middle].object->oid < oid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct edition_entry *edition_find_oid(const struct edition *edition, u32 oid) {
    i64 at = place_of(edition, oid);
    return at < edition->count && edition->entries[at].object->oid == oid ? &edition->entries[at]
                                                                          : NULL;
}

const struct edition_entry *edition_find_table(const struct edition *edition, u64 table_id) {
    for (i64 i = 0; i < edition->count; i++) {
        const struct object *object = edition->entries[i].object;
        if (object->table && object->table->id == table_id) {
            return &edition->entries[i];
        }
    }
    return NULL;
}

static const struct edit *edit_of(const struct edit *edits, i64 count, u32 oid) {
    for (i64 i = count; i-- > 0;) { /* the last word counts */
        if (edits[i].oid == oid) {
            return &edits[i];
        }
    }
    return NULL;
}

static bool is_first(const struct edit *edits, i64 i) {
    for (i64 k = 0; k < i; k++) {
        if (edits[k].oid == edits[i].oid) {
            return false;
        }
    }
    return true;
}

/* Puts an object into the list, kept in order of OIDs. */
static void insert_entry(struct edition *edition, struct object *object,
                         struct table_version *version) {
    i64 at = edition->count++;
    while (at > 0 && edition->entries[at - 1].object->oid > object->oid) {
        edition->entries[at] = edition->entries[at - 1];
        at--;
    }
    edition_set(edition, at, object, version);
}

static struct edition *change(const struct edition *from, const struct edit *edits, i64 count,
                              struct memory *mem) {
    i64 added = 0, removed = 0;
    for (i64 i = 0; i < count; i++) {
        const struct edit *last = edit_of(edits, count, edits[i].oid);
        if (is_first(edits, i)) {
            bool there = edition_find_oid(from, edits[i].oid) != NULL;
            added += !there && last->object;
            removed += there && !last->object;
        }
    }
    struct edition *to = edition_alloc(mem, from->count + added - removed);
    if (!to) {
        return NULL;
    }
    bool same = added == 0 && removed == 0;
    i64 total = to->count;
    to->count = 0;
    for (i64 i = 0; i < from->count; i++) {
        const struct edition_entry *entry = &from->entries[i];
        const struct edit *edit = edit_of(edits, count, entry->object->oid);
        struct object *object = edit ? edit->object : entry->object;
        if (object) {
            same = same && object == entry->object;
            edition_set(to, to->count++, object, edit ? edit->version : entry->version);
        }
    }
    for (i64 i = 0; i < count; i++) {
        const struct edit *last = edit_of(edits, count, edits[i].oid);
        if (is_first(edits, i) && last->object && !edition_find_oid(from, edits[i].oid)) {
            insert_entry(to, last->object, last->version);
        }
    }
    CHECK(to->count == total);
    to->epoch = from->epoch;
    to->definitions = same ? from->definitions : 0;
    if (same) {
        memcpy(to->by_name, from->by_name, (size_t)total * sizeof *to->by_name);
    } else {
        edition_index(to);
    }
    return to;
}

wf_status edition_change(struct catalog *catalog, const struct edition *from,
                         const struct edit *edits, i64 count, struct edition **out,
                         struct error *err) {
    struct memory *mem = catalog_memory(catalog);
    *out = change(from, edits, count, mem);
    if (!*out) {
        return memory_refused(mem, err, edition_bytes(from->count));
    }
    if ((*out)->definitions == 0) {
        (*out)->definitions = catalog_new_definitions(catalog);
    }
    return ERR_OK;
}

i64 edition_table_names(const struct edition *edition, u32 kind, struct arena *arena,
                        struct sv **out_names) {
    struct sv *names = NEW_ARRAY(arena, struct sv, edition->count + 1);
    i64 count = 0;
    for (i64 i = 0; i < edition->count; i++) {
        const struct object *object = edition->entries[edition->by_name[i]].object;
        if (object->kind == kind && !object->hidden) {
            names[count++] = arena_sv(arena, sv_from(object->name));
        }
    }
    *out_names = names;
    return count;
}
