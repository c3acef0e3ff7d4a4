/* catalog.h: names to objects. One catalog per database; thread-safe.
 *
 * Objects live in schemas and have 32-bit OIDs; until schemas are user-made there is one, "main".
 */
#ifndef WF_CATALOG_CATALOG_H
#define WF_CATALOG_CATALOG_H

#include "base/map.h"
#include "store/store.h"

struct catalog;
struct catalog *catalog_open(struct memory *mem);
void catalog_close(struct catalog *catalog);

/* Counts every change of definition; part of every plan-cache key. */
u64 catalog_version(const struct catalog *catalog);

/* ERR_DUPLICATE_TABLE when the name is taken. `position` is of the name in the statement. */
FALLIBLE catalog_create_table(struct catalog *catalog, struct sv name, u32 col_count,
                              const struct column_def *cols, u32 tablet_shift, bool plain,
                              i32 position, struct error *err);
FALLIBLE catalog_drop_table(struct catalog *catalog, struct sv name, i32 position,
                            struct error *err);
/* Drops all of them or, when one is missing and `if_exists` is false, none. A name may come twice.
 */
FALLIBLE catalog_drop_tables(struct catalog *catalog, i32 count, const char *const *names,
                             const i32 *positions, bool if_exists, struct error *err);

/* A statement's view: every table it names, retained once, with the version it reads. */
struct snapshot_table {
    struct table *table;
    struct table_version *version;
};
/* Files as tables: whoever compiles a statement can read them, and is asked by the binder. */
struct file_request {
    const char *path;
    const char *delimiter, *quote, *escape, *null_text; /* NULL = to be found out */
    i32 header;                                         /* 0, 1; -1 = to be found out */
    i32 position;
};
struct file_reader {
    /* A table with the file's rows; the caller closes it. */
    FALLIBLE (*read)
    (struct file_reader *reader, const struct file_request *request, struct table **out,
     struct error *err);
};

struct snapshot {
    struct file_reader *files; /* NULL: no statement is being compiled */
    struct arena *arena;
    struct catalog *catalog;
    VEC(struct snapshot_table) tables;
};
void snapshot_init(struct snapshot *snap, struct catalog *catalog, struct arena *arena);
/* The statement reads this version of the table, whoever else may know it; retains both. */
void snapshot_put(struct snapshot *snap, struct table *table, struct table_version *version);
void snapshot_fini(struct snapshot *snap); /* releases tables and versions */
/* ERR_UNDEFINED_TABLE, with the nearest name as a hint. The entry stays valid until snapshot_fini.
 */
FALLIBLE snapshot_find(struct snapshot *snap, struct sv name, i32 position,
                       struct snapshot_table *out, struct error *err);
/* By id, for programs; false when the table is gone. */
bool snapshot_find_id(struct snapshot *snap, u64 table_id, struct snapshot_table *out);

/* Names in order, for .tables and completion; views in `arena`. */
i64 catalog_table_names(struct catalog *catalog, struct arena *arena, struct sv **out_names);

#endif
