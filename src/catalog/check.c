/* check.c: all of a database file looked at: every checksum of what the current state lies in.
 *
 * What a file holds is checked for sense when it is opened (store/table_load.c: counts, sizes, codes,
 * offsets, references); this reads it again, for a database that has been open for long. */
#include "catalog/catalog_int.h"
#include "store/saved.h"

/* Rows of a derived predicate, of which the file may have all, some or none. */
static struct checked check_rows(struct db_file *file, struct arena *arena,
                                 const struct rows_item *item, i64 m) {
    struct checked found = {.fault = "fine"};
    struct error err;
    error_reset(&err);
    found.name = arena_printf(arena, "kept rows of %.200s", item->members[m]->name);
    if (version_check(file, item->tables[m], item->rows[m], &found.extents, &found.bytes, &err)) {
        found.fault = arena_printf(arena, "damaged: %s", err.message);
    }
    return found;
}

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
    struct rows_list *rows =
        catalog->rows_collect ? catalog->rows_collect(catalog->rows_arg, catalog->saved) : NULL;
    for (i64 i = 0; rows && i < rows->items.count; i++) {
        const struct rows_item *item = &rows->items.items[i];
        for (i64 m = 0; m < item->member_count; m++) {
            struct checked one = check_rows(file, arena, item, m);
            VEC_PUSH(arena, &list, one);
        }
    }
    for (i64 i = 0; catalog->rows && i < catalog->rows->items.count; i++) {
        struct checked one = {.name = "kept rows", .fault = catalog->rows->items.items[i].fault};
        if (one.fault) {
            VEC_PUSH(arena, &list, one);
        }
    }
    rows_list_close(rows);
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
