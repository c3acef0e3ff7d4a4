/* store.h: tables, their versions, and appending to them.
 *
 * A table version is immutable: sealed tablets, plus the published length of one open tail. A
 * statement reads one snapshot of versions; writers make new versions and publish them under the
 * table's lock with a commit number. An append that fails publishes nothing. */
#ifndef WF_STORE_STORE_H
#define WF_STORE_STORE_H

#include "base/thread.h"
#include "store/tablet.h"

struct column_def {
    const char *name;
    struct type type;
    b8 not_null;
};

/* Statistics of a column in one version: what lowering and the optimiser may rely on. */
struct column_stats {
    struct range range;
    i64 null_count;
    b8 all_dict; /* every tablet, tail included, holds codes */
    i32 dict_len;
    i64 distinct; /* estimate, at least 1 unless empty */
    b8 unique;    /* known to hold no duplicates (strictly ascending through all tablets) */
};

struct table_version {
    _Atomic i32 refs;
    i64 commit_no;
    i64 rows;         /* tail included */
    i64 tablet_count; /* sealed, then the tail when tail_rows > 0 */
    struct tablet **tablets;
    u32 *tablet_rows; /* rows to read of each */
    i64 *row_starts;  /* number of the first row of each */
    struct column_stats *stats;
};
struct table_version *version_retain(struct table_version *version);
void version_release(struct table_version *version);

struct table {
    _Atomic i32 refs;
    u64 id; /* never reused */
    char *name;
    u32 col_count;
    struct column_def *cols;
    struct dict **dicts; /* per column; NULL for non-text */
    u32 tablet_shift;    /* log2 of rows per tablet */
    b8 plain; /* SET narrow = off at creation: integers at their type's width, for comparison */
    struct memory *mem;
    struct table_state *state; /* insiders: lock, current version, tail */
};

struct table *table_open(struct memory *mem, u64 id, const char *name, u32 col_count,
                         const struct column_def *cols, u32 tablet_shift,
                         bool plain); /* names are copied; NULL when memory is refused */
struct table *table_retain(struct table *table);
/* Drops one reference; the last frees. Versions in use by readers stay valid until released, but
 * read text through the table's dictionaries only while the table is retained. */
void table_close(struct table *table);
struct table_version *table_snapshot(struct table *table); /* retained */

/* Values on their way in: column-major, plain, `rows` of them. Text as str views; their prefixes
 * are not looked at. Data of NULL rows may be anything. */
struct input_col {
    const void *data; /* elements of type_kind(type) */
    const b8 *nulls;  /* 1 = NULL; NULL pointer = none */
};
/* Appends all rows or none: fills the tail, seals full tablets. Checks NOT NULL (23502). Parallel
 * loaders use table_load_* instead. */
FALLIBLE table_append(struct table *table, i64 rows, const struct input_col *cols,
                      struct error *err);

/* Bulk load: tablets are made by several threads, then published together in the order of their
 * sequence numbers. Every part but those the loader marks may be short; short tablets are legal. */
struct load;
FALLIBLE load_open(struct load **out, struct table *table, struct error *err);
/* Seals `rows` (at most 2^tablet_shift) into one tablet. Thread-safe. */
FALLIBLE load_tablet(struct load *load, i64 sequence, i64 rows, const struct input_col *cols,
                     struct error *err);
/* The same; text columns with coded[i] set are given as u32 codes of the column's dictionary. */
FALLIBLE load_coded_tablet(struct load *load, i64 sequence, i64 rows, const struct input_col *cols,
                           const b8 *coded, struct error *err);
FALLIBLE load_commit(struct load *load, struct error *err); /* closes; on error nothing changed */
void load_abort(struct load *load);                         /* closes */

/* Row i of a segment, decoded to the kind of its type; for tests, results and single look-ups. */
bool segment_get(const struct segment *seg, const struct dict *dict, struct type type, i64 i,
                 void *out); /* false: NULL */

#endif
