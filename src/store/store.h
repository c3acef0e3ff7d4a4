/* store.h: tables, their versions, and changing them.
 *
 * A table version is immutable: sealed tablets, the published length of one open tail, and a bitmap
 * of deleted rows for those tablets that have any. Every change (append, load, delete, truncate)
 * makes a new version from an old one and touches neither; who makes versions visible to others is
 * the catalog's business (editions and transactions), or table_publish's for a table on its own.
 * Two versions made from the same base are brought together by version_rebase. */
#ifndef WF_STORE_STORE_H
#define WF_STORE_STORE_H

#include "base/thread.h"
#include "store/file.h"
#include "store/frames.h"
#include "store/tablet.h"

struct column_def {
    const char *name;
    struct type type;
    b8 not_null;
    u8 identity;              /* 'a' ALWAYS, 'd' BY DEFAULT, 0 none */
    const char *default_text; /* an SQL expression; NULL = none */
    u32 sequence;             /* oid of the sequence it owns (identity, serial); 0 = none */
};

/* Constraints. Keys are enforced here, when a version is made; the others by those who can evaluate
 * expressions and see other tables. */
struct table_key { /* PRIMARY KEY, UNIQUE */
    const char *name;
    u32 oid;
    b8 primary;
    b8 unnamed;              /* while it is bound: its name is not given but made */
    b8 index;                /* made by CREATE UNIQUE INDEX: no constraint; oid is the index's */
    b8 deferrable, deferred; /* may wait for the end of a transaction; does unless told otherwise */
    u32 col_count;
    u32 *cols;
};
/* They say the same of a table's rows, whatever they are called. */
static inline bool table_key_equal(const struct table_key *a, const struct table_key *b) {
    return a->col_count == b->col_count && a->deferrable == b->deferrable &&
           a->deferred == b->deferred &&
           memcmp(a->cols, b->cols, (size_t)a->col_count * sizeof *a->cols) == 0;
}
struct table_check {
    const char *name;
    u32 oid;
    const char *text; /* an SQL condition */
    b8 unvalidated;   /* NOT VALID: rows that were there before it need not meet it */
};
enum fk_action { FK_NO_ACTION, FK_RESTRICT, FK_CASCADE, FK_SET_NULL, FK_SET_DEFAULT };
struct table_foreign { /* REFERENCES */
    const char *name;
    u32 oid;
    u32 col_count;
    u32 *cols;
    u32 ref_oid; /* the table referred to, by its object's oid; 0 = this one */
    u32 *ref_cols;
    u32 ref_key;             /* the key it rests on, by its oid, though others may be equal */
    u8 on_delete, on_update; /* enum fk_action */
    u32 set_on_delete; /* ON DELETE SET NULL or DEFAULT of these only: bit i is cols[i]; 0 = all */
    b8 match_full;     /* all of its columns are NULL, or none */
    b8 unvalidated;    /* as of a check */
    b8 deferrable, deferred; /* may wait for the end of a transaction; does unless told otherwise */
};
struct table_def {
    const char *name;
    u32 col_count;
    struct column_def *cols;
    u32 key_count;
    struct table_key *keys;
    u32 check_count;
    struct table_check *checks;
    u32 foreign_count;
    struct table_foreign *foreigns;
};

/* Statistics of a column in one version: what lowering and the optimiser may rely on. */
struct column_stats {
    struct range range;
    i64 null_count;
    b8 all_dict; /* every tablet, tail included, holds codes */
    i32 dict_len;
    i64 distinct; /* estimate, at least 1 unless empty */
    b8 unique;    /* known to hold no duplicates: strictly ascending, or a declared key, no NULLs */
    b8 sorted;    /* ascending from row to row, without NULLs */
};

/* What a version knows of one of its table's keys. `index` is made when first needed; where rows are
 * in an order it is not needed: the order proves the key, and finds a row by search. STRICT: keys
 * ascend strictly from row to row. RUNS: the first column never descends, and rows that agree in it,
 * KEY_RUN_MAX at most, differ in the others. Neither has NULLs. */
enum key_order { KEY_STRICT = 1, KEY_RUNS = 2 };
enum { KEY_RUN_MAX = 16 };
struct key_index;
struct kept_trie;
struct key_state {
    struct key_index *index; /* counted; NULL = not made yet */
    u8 order;                /* bits of enum key_order */
    u8 loaded;               /* the same of rows within each of the last `loaded_count` tablets */
};

struct table_version {
    _Atomic i32 refs;
    u64 id; /* unique in the process: a device may keep what it derived by it */
    i64 commit_no;
    i64 content_no;   /* versions of one number have the same rows, though maybe elsewhere */
    i64 rows;         /* tail and deleted rows included */
    i64 live_rows;    /* without the deleted ones */
    i64 tablet_count; /* sealed, then the tail when tail_rows > 0 */
    struct tablet **tablets;
    u32 *tablet_rows;        /* rows to read of each */
    i64 *row_starts;         /* number of the first row of each */
    u32 *slots;              /* a tablet keeps its slot in later versions, sealed or not */
    b8 mixed;                /* slots do not ascend */
    struct buffer **deleted; /* bit i is 1 where row i is deleted; NULL = no row is */
    u32 *deleted_counts;
    u32 next_slot;
    b8 is_delta; /* shows only a change's new rows, see version_delta */
    struct column_stats *stats;
    struct key_state *keys; /* by the table's keys */
    i64 loaded_count;       /* tablets of a load that made this version: its last ones */
    struct draft *draft;    /* insiders: where an append goes on */
    struct moves *moves;    /* insiders: rows that compactions moved; NULL = none */
    struct extent place;    /* insiders: where it lies in the database file */
    /* What readers made of its rows and keep, where, and how it is dropped; under a lock of theirs. NULL = nothing
     * ever was. */
    struct kept_trie *kept;
    void *kept_in;
    void (*drop_kept)(struct table_version *version);
};
struct table_version *version_retain(struct table_version *version);
/* A version of the first rows of another, in the arena: not counted, valid as long as both. */
struct table_version *version_sample(struct arena *arena, const struct table_version *version,
                                     i64 rows);
void version_release(struct table_version *version);
/* The same for a version that is not and will not be visible to anybody else: what it wrote behind
 * its base's tail can then be written again. */
void version_discard(struct table_version *version);
/* The deleted rows of tablet t, one bit a row; NULL when there are none. */
static inline const u64 *version_deleted(const struct table_version *version, i64 t) {
    return version->deleted[t] ? (const u64 *)(const void *)version->deleted[t]->data : NULL;
}
/* The number of the tablet that a row is in. */
static inline i64 version_find_row(const struct table_version *version, i64 row) {
    return starts_find(version->row_starts, version->tablet_count, row);
}

struct table {
    _Atomic i32 refs;
    u64 id; /* never reused */
    char *name;
    u32 col_count;
    struct column_def *cols;
    u32 key_count; /* PRIMARY KEY and UNIQUE: no two live rows agree in all columns of a key */
    struct table_key *keys;
    u32 check_count;
    struct table_check *checks;
    u32 foreign_count;
    struct table_foreign *foreigns;
    struct dict **dicts; /* per column; NULL for non-text */
    u32 tablet_shift;    /* log2 of rows per tablet */
    b8 plain; /* SET narrow = off at creation: integers at their type's width, for comparison */
    struct memory *mem;
    /* Where the rows come from when they are no tablets (scan.h); released with the table. */
    struct scan_provider *provider;
    struct table_state *state; /* insiders: lock, current version */
};

struct table *table_open(struct memory *mem, u64 id, const char *name, u32 col_count,
                         const struct column_def *cols, u32 tablet_shift,
                         bool plain); /* names are copied; NULL when memory is refused */
/* The same with constraints. `dicts` may be NULL; where it has an entry, that dictionary is used
 * (and retained) instead of a new one. */
struct table *table_open_def(struct memory *mem, u64 id, const struct table_def *def,
                             struct dict *const *dicts, u32 tablet_shift, bool plain);
/* The definition, borrowed from the table. */
struct table_def table_def_view(const struct table *table);
struct table *table_retain(struct table *table);
/* Drops one reference; the last frees. Versions in use by readers stay valid until released, but
 * read text through the table's dictionaries only while the table is retained. */
void table_close(struct table *table);
/* The version published last; retained. */
struct table_version *table_snapshot(struct table *table);
/* Makes a version the table's current one; takes it. *table_epoch, when there is one, counts. */
void table_publish(struct table *table, struct table_version *version);
void table_set_epoch(struct table *table, _Atomic u64 *epoch);
/* The table will be saved there (NULL: nowhere): columns that are made from now on can leave memory once
 * they are, and bulk loads write them at once. */
struct db_file;
void table_set_file(struct table *table, struct db_file *file);
struct db_file *table_file(const struct table *table);

/* Values on their way in: column-major, plain, `rows` of them. Text as str views; their prefixes
 * are not looked at. Data of NULL rows may be anything. */
struct input_col {
    const void *data; /* elements of type_kind(type) */
    const b8 *nulls;  /* 1 = NULL; NULL pointer = none */
};
/* A version with these rows behind the base's: fills the tail, seals full tablets. Checks NOT NULL
 * (23502) and keys (23505). Parallel loaders use load_* instead. */
FALLIBLE version_append(struct table *table, struct table_version *base, i64 rows,
                        const struct input_col *cols, struct table_version **out,
                        struct error *err);
/* The same, without a look at the keys, which version_check_keys does at the end of a change. */
FALLIBLE version_append_unchecked(struct table *table, struct table_version *base, i64 rows,
                                  const struct input_col *cols, struct table_version **out,
                                  struct error *err);
/* The same rows in fewer places: see compact.c. Wanted where much of a tablet is deleted. */
bool version_wants_compaction(const struct table *table, const struct table_version *version);
/* Whether it can remember one more compaction that moves its rows. */
bool version_may_move(const struct table_version *version);
/* `older`: somebody may have begun before earlier compactions, so what they moved is kept. */
FALLIBLE version_compact(struct table *table, struct table_version *base, bool all, bool older,
                         struct table_version **out, struct error *err);
/* Whether there is anything to gain by `all`: rows that are deleted, neighbours that fit into one. */
bool version_wants_vacuum(const struct table *table, const struct table_version *version);
/* 23505 when a row that `mine` has and `base` has not agrees in a key with another one of `mine`.
 * Keeps what it learns in `mine`, which nobody else may see yet. Keys that `waiting` marks (NULL =
 * none) are not looked at: version_check_key does that later. */
FALLIBLE version_check_keys(struct table *table, struct table_version *base,
                            struct table_version *mine, const b8 *waiting, struct error *err);
/* The same of one key of versions that are made; base NULL = every row is new. */
FALLIBLE version_check_key(struct table *table, u32 key, const struct table_version *base,
                           struct table_version *mine, struct error *err);
/* A value as keys compare it: values that are equal have the same bytes then. One zero, one NaN;
 * intervals by their length. Text is left alone. */
union lit;
void key_canonical(struct type type, union lit *io);
void key_append(struct text *out, struct type type, const union lit *v); /* its bytes, ended */
/* The number of the live row of a version that has these values in the key's columns (elements of their
 * kinds, none NULL), or -1. Who looks for many keeps a finder, which holds what it has read. The table and the
 * version outlive it. */
struct key_finder {
    struct table *table;
    struct table_version *version;
    u32 key;
    b8 has_begun;
    u8 order;                /* of all rows: they are searched, and there is no index */
    struct key_index *index; /* counted */
    struct pins pins;
};
void key_finder_open(struct key_finder *finder, struct table *table, struct table_version *version,
                     u32 key);
void key_finder_close(struct key_finder *finder);
/* The same for very many rows that are given, NULLs among them. What `mem` has no room for is temporary space. */
struct key_meets { /* by row given */
    b8 *twin;   /* one that was given before has the key, too */
    i64 *row;   /* the version's live row with it; -1 = none, or the row is a twin */
    i64 *first; /* the first that was given with it, maybe itself; -1: it has a NULL; NULL: nobody asks */
};
FALLIBLE version_meet(struct table *table, u32 key, const struct table_version *version,
                      struct memory *mem, i64 rows, const struct input_col *cols,
                      const struct key_meets *out, struct error *err);
FALLIBLE key_finder_row(struct key_finder *finder, const void *const *values, i64 *out_row,
                        struct error *err);
/* One alone. */
FALLIBLE version_key_row(struct table *table, struct table_version *version, u32 key,
                         const void *const *values, i64 *out_row, struct error *err);
/* What an error shows of a row: names of columns, and what they hold; of one more column, or of all. */
struct shown_key {
    char cols[120], values[160];
};
void key_show_value(struct shown_key *out, const char *name, struct type type, const union lit *v);
void key_show(const struct table *table, const u32 *cols, u32 count, const struct tablet *tablet,
              i64 pos, struct shown_key *out);
/* 23502 where a column that is NOT NULL has one; all that append rows ask. */
FALLIBLE check_not_null(const struct table *table, i64 rows, const struct input_col *cols,
                        struct error *err);
/* Appends to the current version and publishes. */
FALLIBLE table_append(struct table *table, i64 rows, const struct input_col *cols,
                      struct error *err);

/* Rows that go, by their numbers (as ROWNO counts them in a version); a number may come twice. */
struct deletion {
    i64 count;
    const i64 *rows;
    b8 *fresh;   /* when given: whether rows[i] is the first mention of a live row */
    i64 deleted; /* so many of them */
};
/* A version without them. Tablets without live rows go. */
FALLIBLE version_delete(struct table *table, struct table_version *base, struct deletion *io,
                        struct table_version **out, struct error *err);
FALLIBLE version_truncate(struct table *table, struct table_version *base,
                          struct table_version **out, struct error *err);
/* What led from base to mine, applied to current: 40001 when both took the same row. */
FALLIBLE version_rebase(struct table *table, struct table_version *base, struct table_version *mine,
                        struct table_version *current, struct table_version **out,
                        struct error *err);
/* Its new rows are in a tail that only its transaction knows: a commit rebases it in any case. */
bool version_is_private(const struct table_version *version);
/* A version that shows only those live rows of `mine` that `base` has not. */
FALLIBLE version_delta(struct table *table, struct table_version *base, struct table_version *mine,
                       struct table_version **out, struct error *err);
/* A version that shows only those live rows of `base` that `mine` has no more. */
FALLIBLE version_removed(struct table *table, struct table_version *base,
                         struct table_version *mine, struct table_version **out, struct error *err);
/* The rows of `from`, a version of `old`, as a version of `table`: column i is from[i] of the old
 * table, or, where that is negative, new and the constant const_values[i] (NULL pointer = NULL). No
 * column data are copied; deleted rows stay deleted. */
FALLIBLE version_reshape(struct table *table, const struct table *old, struct table_version *from,
                         const i32 *cols, const void *const *const_values,
                         struct table_version **out, struct error *err);

/* Bulk load: tablets are made by several threads, then put together in the order of their
 * sequence numbers. Every part but those the loader marks may be short; short tablets are legal. */
struct load;
FALLIBLE load_open(struct load **out, struct table *table, struct error *err);
/* How a load should go about it, whose rows take row_bytes each on their way: rows of a tablet, as many as it can
 * have or fewer where memory is short; false: by one thread, since each needs memory for a tablet. */
bool load_plan(const struct table *table, const struct memory *mem, i64 workers, i64 row_bytes,
               i64 *out_rows);
/* Seals `rows` (at most 2^tablet_shift) into one tablet. Thread-safe. */
FALLIBLE load_tablet(struct load *load, i64 sequence, i64 rows, const struct input_col *cols,
                     struct error *err);
/* The same; text columns with coded[i] set are given as u32 codes of the column's dictionary. */
FALLIBLE load_coded_tablet(struct load *load, i64 sequence, i64 rows, const struct input_col *cols,
                           const b8 *coded, struct error *err);
/* Closes; a version with the rows behind the base's. Keys are not looked at. */
FALLIBLE load_finish(struct load *load, struct table_version *base, struct table_version **out,
                     struct error *err);
/* Closes; appends to the current version and publishes; on error nothing changed. */
FALLIBLE load_commit(struct load *load, struct error *err);
void load_abort(struct load *load); /* closes */

#endif
