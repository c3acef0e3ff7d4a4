/* saved.h: tables and their versions as extents of a database file, and changes as records of its
 * log. Made and read under the catalog's commit lock, or before anybody else knows the tables. */
#ifndef WF_STORE_SAVED_H
#define WF_STORE_SAVED_H

#include "store/blob.h"
#include "store/file.h"
#include "store/store.h"

/* Definitions: constraints, keys and all. */
void table_def_save(struct blob *out, const struct table *table);
/* Strings live in `arena`; from->bad when it is no definition. */
struct table_def table_def_load(struct blob_reader *from, struct arena *arena, u32 *out_shift,
                                bool *out_plain);
void type_save(struct blob *out, struct type type);
struct type type_load(struct blob_reader *from);

/* The dictionaries of one save. Each is listed once, with its number in the file. */
struct dict_list {
    struct blob out;
    u32 count;
    u64 *last_id; /* numbers that are taken */
};
/* A version with all its extents: those that are not in the file are written. *out says where its
 * own is. */
FALLIBLE version_save(struct save *save, struct dict_list *dicts, struct table *table,
                      struct table_version *version, struct extent *out, struct error *err);
void extent_save(struct blob *out, const struct extent *extent);
struct extent extent_load(struct blob_reader *from, u64 stamp);

/* Dictionaries of a file, by their numbers. */
struct dict_shelf {
    struct arena *arena;
    VEC(struct shelved) items;
};
struct shelved {
    u64 id;
    struct dict *dict;
};
FALLIBLE dict_shelf_load(struct db_file *file, struct memory *mem, struct blob_reader *from,
                         struct dict_shelf *out, struct error *err);
void dict_shelf_fini(struct dict_shelf *shelf);
struct dict *dict_shelf_find(const struct dict_shelf *shelf, u64 id); /* NULL: there is none */

/* The dictionaries that a saved version's columns use: what its table is opened with. */
FALLIBLE version_load_dicts(struct db_file *file, const struct extent *extent,
                            const struct dict_shelf *shelf, struct arena *arena, u32 col_count,
                            struct dict ***out, struct error *err);
FALLIBLE version_load(struct db_file *file, const struct extent *extent, struct table *table,
                      struct table_version **out, struct error *err);

/* earlier.c: a version by what differs from a later one, which is in the file, where that can be said. The one that
 * is read again is for reading and comparing; from->bad when it does not fit. */
bool version_is_earlier(const struct table_version *now, const struct table_version *then);
void version_earlier_save(struct blob *out, const struct table_version *then);
FALLIBLE version_earlier_load(struct blob_reader *from, struct table *table,
                              const struct table_version *now, struct table_version **out,
                              struct error *err);

/* Reads all that the version lies in; XX001. Counts extents and bytes. */
FALLIBLE version_check(struct db_file *file, const struct table *table,
                       const struct table_version *version, i64 *io_extents, i64 *io_bytes,
                       struct error *err);

/* What led from one version to another, as rows and deleted places. False: it is more than a record
 * of the log should have. `before` may be NULL: a table that is new. */
bool version_change_save(struct blob *out, const struct table *table,
                         const struct table_version *before, const struct table_version *after,
                         i64 most_bytes);
/* Changes of one table, read one after the other, and applied all at once. */
struct replay;
struct replay *replay_new(struct arena *arena, struct table *table, struct table_version *base);
/* XX001 when it does not fit what is there. The bytes must stay. */
FALLIBLE replay_read(struct replay *replay, struct blob_reader *from, struct error *err);
FALLIBLE replay_finish(struct replay *replay, struct table_version **out, struct error *err);

#endif
