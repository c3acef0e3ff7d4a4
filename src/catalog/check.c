/* check.c: all of a database file looked at: every checksum of what the current state lies in.
 *
 * What a file holds is checked for sense when it is opened (store/table_load.c: counts, sizes, codes,
 * offsets, references); this reads it again, for a database that has been open for long. */
#include "catalog/catalog_int.h"
#include "store/saved.h"

wf_status catalog_check(struct catalog *catalog, struct arena *arena, struct checked **out,
                        i64 *out_count, struct error *err) {
    VEC(struct checked) list = {0};
    struct db_file *file = catalog->file;
    *out_count = 0;
    if (!file) {
        return ERR_OK;
    }
    TRY(catalog_lock_saved(catalog, err));
    for (struct edition_walk at = edition_walk(catalog->saved); edition_step(&at);) {
        const struct object *object = at.entry->object;
        struct checked item = {.name = object->name, .fault = "fine"};
        struct error found;
        error_reset(&found);
        if (object->temp || !object->table) {
            continue;
        }
        item.name = arena_sv(arena, sv_from(object->name)).ptr;
        if (version_check(file, object->table, at.entry->version, &item.extents, &item.bytes,
                          &found)) {
            item.fault = arena_printf(arena, "damaged: %s", found.message);
        }
        VEC_PUSH(arena, &list, item);
    }
    struct checked root = {.name = "", .extents = 1, .bytes = catalog->root.bytes, .fault = "fine"};
    u8 *block = root.bytes ? arena_alloc(arena, root.bytes) : NULL;
    struct error found;
    error_reset(&found);
    if (block && db_file_read(file, &catalog->root, block, &found)) {
        root.fault = arena_printf(arena, "damaged: %s", found.message);
    }
    mutex_unlock(&catalog->commit_lock);
    VEC_PUSH(arena, &list, root);
    *out = list.items;
    *out_count = list.count;
    return arena_check(arena, err);
}
