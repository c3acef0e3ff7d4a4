/* catalog_int.h: what the files of catalog/ share. */
#ifndef WF_CATALOG_CATALOG_INT_H
#define WF_CATALOG_CATALOG_INT_H

#include "catalog/catalog.h"
#include "store/saved.h"

struct catalog {
    struct memory *mem;
    /* One commit at a time, from the merge to the log; then what others see changes under `lock`,
     * which nobody holds for long. */
    struct mutex commit_lock;
    struct mutex lock;       /* edition, visible */
    struct edition *edition; /* the newest: what commits are merged with */
    struct edition *visible; /* the newest that is durable: what statements read */
    u64 last_number;         /* of editions */
    _Atomic u64 epoch;
    _Atomic u64 last_id;
    _Atomic u64 definitions;
    _Atomic u32 last_oid;
    /* The database file; under the commit lock. */
    struct db_file *file;
    struct edition *saved; /* what file and log hold */
    struct extent root;
    u64 last_dict; /* numbers of dictionaries in the file */
    u64 last_record;
    _Atomic u64 saved_moves; /* of sequences */
    /* A state is on its way to the file while commits go on (saved.c). */
    b8 saving;
    _Atomic bool save_stops; /* it is to give up: a commit needs the file */
    struct cond save_done;
    /* The thread that does so by itself. */
    struct thread *keeper;
    struct cond keeper_wakes;
    b8 keeper_wanted, keeper_ends;
    i64 log_most;      /* bytes of the log that wake it */
    i64 log_next_most; /* after it failed: not before there are so many */
    /* rows.c */
    rows_collect_fn rows_collect;
    void *rows_arg;
    struct rows_list *rows; /* that the file had */
    u64 *rows_numbers;      /* that the file holds */
    i64 rows_number_count;
};
/* saved.c, under the commit lock: `next` goes to the log, or to the file. It is durable once
 * catalog_settle has returned for catalog->last_record. *out_again: the lock was given up, and
 * nothing was done; the caller is to look at everything again. */
FALLIBLE catalog_keep(struct catalog *catalog, struct edition *next, bool *out_again,
                      struct error *err);
/* A state on its way to the file. */
struct state_out {
    struct save *save;
    struct extent root;
    bool is_kept; /* nobody can commit meanwhile: sequences are as log and file have them */
    struct dict_list dicts;
    struct blob objects;
    struct rows_list *rows; /* that it holds; the caller closes it */
};
FALLIBLE state_write(struct state_out *out, struct catalog *catalog, struct edition *edition,
                     struct error *err); /* all but the switch */
/* Under the commit lock, when nobody else saves. */
FALLIBLE state_save(struct catalog *catalog, struct edition *edition, bool is_last,
                    struct error *err);
/* rows.c: behind the objects; the state is in the file; whether there are others to be saved. */
FALLIBLE rows_save(struct state_out *out, struct catalog *catalog, struct edition *edition,
                   struct error *err);
void rows_saved(struct catalog *catalog, struct state_out *out);
bool rows_are_new(struct catalog *catalog);
/* Out of the root, behind the objects, which `find` finds by their OIDs, with the versions of tables. */
struct rows_reader {
    struct catalog *catalog;
    struct db_file *file;
    struct blob_reader *from;
    struct dict_shelf *dicts;
    struct object *(*find)(void *arg, u32 oid, struct table_version **out_version); /* NULL: none */
    void *arg;
};
FALLIBLE rows_load(struct rows_reader *r, struct error *err);
/* keeper.c, under the commit lock: a checkpoint in the background, if the log is long enough.
 * Without a thread the log grows until the next try. */
void keeper_wake(struct catalog *catalog);
void keeper_end(struct catalog *catalog);
/* Takes the commit lock, and waits until nobody saves. */
void catalog_lock_idle(struct catalog *catalog);
/* The same, and the file holds the newest edition then. The lock is not taken when that fails. */
FALLIBLE catalog_lock_saved(struct catalog *catalog, struct error *err);
FALLIBLE catalog_settle(struct catalog *catalog, u64 record, struct error *err);
void catalog_set_edition(struct catalog *catalog, struct edition *edition); /* takes it */

/* What a tree is ordered by: OID; schema and name; the table's id; what is used, then by whom. */
enum tree_order { TREE_OID, TREE_NAME, TREE_TABLE, TREE_USE };
struct tree_item {
    struct edition_entry entry; /* versions only by OID */
    u32 used;                   /* USE: an OID. NAME: 0, or a key of the table, by number + 1 */
};
struct tree {
    _Atomic i32 refs;
    struct memory *mem;
    i64 size;
    struct tree *left, *right;
    struct tree_item item;
};
struct tree_key {
    enum tree_order order;
    u64 number;
    struct sv name;
};
extern struct tree *const tree_refused; /* what a change gives when memory is refused */
struct tree *tree_retain(struct tree *tree);
void tree_release(struct tree *tree);
struct tree_key tree_key_of(enum tree_order order, const struct tree_item *item);
/* The tree with the item, which takes the place of one with its key; or without. */
void tree_put(struct memory *mem, struct tree **io_tree, enum tree_order order,
              const struct tree_item *item);
void tree_remove(struct memory *mem, struct tree **io_tree, const struct tree_key *key);
const struct tree *tree_find(const struct tree *tree, const struct tree_key *key);
void tree_walk(struct edition_walk *walk, const struct tree *tree, const struct tree_key *from);
const struct tree_item *tree_next(struct edition_walk *walk);
void tree_diff(struct edition_diff *diff, const struct tree *from, const struct tree *to);

/* The empty edition; NULL when refused. */
struct edition *edition_new(struct memory *mem);
/* Puts the object (NULL: none) in the place of the OID's; false: refused. Only while nobody else
 * knows the edition. */
bool edition_put(struct edition *edition, u32 oid, struct object *object,
                 struct table_version *version);
u64 catalog_new_definitions(struct catalog *catalog);

#endif
