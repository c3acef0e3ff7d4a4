/* catalog.h: names to objects, the states of the database, and bringing changes together. One
 * catalog per database; thread-safe.
 *
 * Objects (schemas, tables, views, sequences, indexes) live in schemas and have 32-bit OIDs; an
 * object never changes, ALTER makes another one with the same OID. An edition is an immutable state
 * of the whole database: its objects and, for tables, their versions. A statement reads one
 * edition; a transaction makes editions of its own, one from the other, that nobody else sees; a
 * commit brings what it changed together with what others have committed since it began, and makes
 * the result the current edition. */
#ifndef WF_CATALOG_CATALOG_H
#define WF_CATALOG_CATALOG_H

#include "base/map.h"
#include "store/store.h"

enum {
    OID_PG_CATALOG = 11,
    OID_PUBLIC = 2200, /* the schema where names go by default */
    OID_INFORMATION = 13000,
    OID_FIRST = 16384, /* of objects that users make */
};

enum object_kind { OBJECT_SCHEMA, OBJECT_TABLE, OBJECT_VIEW, OBJECT_SEQUENCE, OBJECT_INDEX };
extern const char *const object_words[]; /* "table" */

/* A sequence's place; shared by all editions and never rolled back, as nobody must get a number
 * twice. Thread-safe. */
struct sequence {
    _Atomic i32 refs;
    struct memory *mem;
    i64 start, increment, min, max;
    b8 cycle;
    struct type type;
    struct mutex lock;
    i64 last;
    b8 called; /* `last` was handed out */
    i64 saved_last; /* both as the database file has them */
    b8 saved_called;
};
struct sequence *sequence_open(struct memory *mem, const struct sequence *like); /* NULL: refused */
void sequence_close(struct sequence *seq);
/* The next `count` values: the first of them; they follow at `increment`. 2200H at the end. */
FALLIBLE sequence_next(struct sequence *seq, const char *name, i64 count, i64 *out,
                       struct error *err);

/* Goes there from where it is, whatever was handed out. */
void sequence_set(struct sequence *seq, i64 last, bool called);
u64 sequence_moves(void); /* counts the changes of all there are */

struct column_names {
    u32 count;
    const char **names;
};
struct object {
    _Atomic i32 refs;
    struct memory *mem;
    struct arena arena;
    u8 kind; /* enum object_kind; from here on the definition */
    u32 oid;
    u32 schema; /* OID; 0 for schemas */
    b8 hidden;  /* made by the system: not dumped or listed with the user's */
    b8 temp;
    b8 logical; /* VIEW: its text is clauses of LogiQL. TABLE: a predicate that LogiQL declared */
    const char *name;
    const char *comment; /* NULL = none */
    struct table *table;
    struct sequence *sequence;
    u32 owner;        /* table that a sequence or an index belongs to; 0 = none */
    u32 owner_col;    /* + 1 */
    const char *text; /* VIEW: its query. INDEX: its columns */
    const char *path; /* VIEW: the search path it was made under */
    u32 col_count;    /* VIEW, INDEX: names of its columns; a view's 0 = the query's own */
    const char **col_names;
    struct type *col_types;
    u32 dep_count; /* OIDs of what a view reads */
    u32 *deps;
    struct column_names *dep_cols; /* the columns that each of them had when the view was made */
};
/* The definition, borrowed from the object, for one that is like it. The object itself may be in
 * use by others: its count is not to be copied. */
struct object object_view(const struct object *object);
/* A copy of `like`, strings included, with references to its table and sequence; NULL: refused. */
struct object *object_new(struct memory *mem, const struct object *like);
struct object *object_retain(struct object *object);
void object_release(struct object *object);

struct tree;
struct edition_entry {
    struct object *object;
    struct table_version *version; /* TABLE */
};
struct edition {
    _Atomic i32 refs;
    struct memory *mem;
    u64 number;      /* of the commit that made it current; 0 = none has */
    u64 epoch;       /* of the catalog when the versions were taken */
    u64 definitions; /* changes with the objects, and with nothing else */
    i64 count;
    struct tree *by_oid, *by_name, *by_table, *uses; /* insiders: see tree.c */
};
struct edition *edition_retain(struct edition *edition);
void edition_release(struct edition *edition);
/* The same for an edition of a transaction that goes back to `keep`. */
void edition_discard(struct edition *edition, const struct edition *keep);
/* NULL when there is none. Tables, views, sequences and indexes share a schema's names. */
const struct edition_entry *edition_find(const struct edition *edition, u32 schema, struct sv name);
/* Who has the name, which keys share with these: the object, or the table of the key. */
const struct object *edition_name_holder(const struct edition *edition, u32 schema, struct sv name);
const struct edition_entry *edition_find_oid(const struct edition *edition, u32 oid);
const struct edition_entry *edition_find_schema(const struct edition *edition, struct sv name);
const struct edition_entry *edition_find_table(const struct edition *edition, u64 table_id);

/* Walks: `for (struct edition_walk at = edition_walk(e); edition_step(&at);)`, at.entry is the
 * object. All by OID; those of a schema by name; those that use an object: views that read it,
 * tables that refer to it, what belongs to it. The edition must stay. */
enum { TREE_DEPTH = 128 };
struct edition_walk {
    const struct edition *edition;
    const struct edition_entry *entry;
    b8 names;   /* items have no version: look it up */
    i64 within; /* the schema, or what is used; -1 = all */
    const struct tree *stack[TREE_DEPTH];
    i32 depth;
};
struct edition_walk edition_walk(const struct edition *edition);
struct edition_walk edition_walk_schema(const struct edition *edition, u32 schema);
struct edition_walk edition_walk_users(const struct edition *edition, u32 oid);
bool edition_step(struct edition_walk *walk);

/* What is different in two editions, by OID: `before` or `after` is NULL where there is none. Takes
 * time for the differences, not for what is the same. */
struct tree_parts {
    const struct tree *stack[3 * TREE_DEPTH];
    b8 whole[3 * TREE_DEPTH];
    i32 depth;
};
struct edition_diff {
    const struct edition_entry *before, *after;
    struct tree_parts from, to;
};
struct edition_diff edition_diff(const struct edition *from, const struct edition *to);
bool edition_diff_step(struct edition_diff *diff);

struct catalog;
struct catalog *catalog_open(struct memory *mem);
void catalog_close(struct catalog *catalog);
/* From here on the catalog is what the file holds, log included, and commits go there; takes the file.
 * Before anybody else knows the catalog. */
struct db_file;
FALLIBLE catalog_attach(struct catalog *catalog, struct db_file *file, i64 log_most,
                        struct error *err);
/* Saves the current state, so that the log is empty; nothing without a file. */
FALLIBLE catalog_checkpoint(struct catalog *catalog, struct error *err);
/* A statement has failed, a transaction was rolled back: what their loads wrote need not take room. */
void catalog_tidy(struct catalog *catalog);
/* The file as short as it can be. */
FALLIBLE catalog_shrink(struct catalog *catalog, struct error *err);
/* The state that all commits so far have made, as a database file of its own. */
FALLIBLE catalog_copy(struct catalog *catalog, const char *path, struct error *err);
/* The same for good: the log goes, the file is closed. */
FALLIBLE catalog_detach(struct catalog *catalog, struct error *err);
/* What looking at all of the file found, a table a line, the catalog last, without a name. */
struct checked {
    const char *name;
    i64 extents, bytes;
    const char *fault; /* "fine", or what is damaged */
};
FALLIBLE catalog_check(struct catalog *catalog, struct arena *arena, struct checked **out,
                       i64 *out_count, struct error *err);
struct db_file *catalog_file(struct catalog *catalog); /* NULL: in memory */

/* rows.c: rows of derived predicates, component by component, with the versions that they follow from. All
 * that a list names is retained. */
struct rows_input {
    struct object *object;
    struct table_version *version;
    b8 is_earlier;    /* to be saved: than the edition's */
    b8 is_derived;    /* it is rows of an item before it: */
    u32 item, member; /* which */
};
struct rows_item {
    struct rows_list *list;
    const char *path; /* names were looked up by */
    i64 member_count, input_count;
    struct object **members;
    struct table **tables; /* by member */
    struct table_version **rows;
    struct rows_input *inputs;
    u64 number;        /* rows of one number are the same ones */
    const char *fault; /* why it was left out when the file was opened; NULL = it was not */
};
struct rows_list {
    struct arena arena;
    VEC(struct rows_item) items; /* each behind those that it follows from */
};
struct rows_list *rows_list_new(struct memory *mem); /* NULL: refused */
struct rows_item *rows_list_add(struct rows_list *list, i64 members, i64 inputs);
void rows_list_close(struct rows_list *list);
/* Whoever keeps rows: those that follow from an edition, whenever it goes to the file; NULL = none. */
typedef struct rows_list *(*rows_collect_fn)(void *arg, struct edition *edition);
void catalog_set_rows(struct catalog *catalog, rows_collect_fn collect, void *arg);
/* Those that the file had when it was opened, NULL = none, until the catalog is detached; whoever keeps rows lets go of
 * an item when it has what it needs of it. */
struct rows_list *catalog_rows(struct catalog *catalog);
void rows_item_drop(struct rows_item *item); /* it has no members then */

/* Numbers that sequences handed out outside of any commit are durable. */
FALLIBLE catalog_keep_sequences(struct catalog *catalog, struct error *err);
/* The current edition; retained. */
FALLIBLE catalog_edition(struct catalog *catalog, struct edition **out, struct error *err);
u32 catalog_new_oid(struct catalog *catalog);
u64 catalog_new_id(struct catalog *catalog); /* of tables; never used again */
struct memory *catalog_memory(const struct catalog *catalog);
_Atomic u64 *catalog_epoch(struct catalog *catalog);

/* One difference between two editions: an object that is new, another, or gone (object NULL), or
 * only another version of it. References are the caller's. */
struct edit {
    u32 oid;
    struct object *object;
    struct table_version *version;
};
/* `from` with the edits. */
FALLIBLE edition_change(struct catalog *catalog, const struct edition *from,
                        const struct edit *edits, i64 count, struct edition **out,
                        struct error *err);
/* Three editions that are brought together, and the outcome. */
struct meeting {
    struct edition *base, *mine; /* where a transaction began; what it made */
    struct edition *now;         /* what others have made meanwhile */
    struct edition *merged;
};

/* Makes what led from base to mine part of the current edition. 40001 when somebody else was faster
 * with something that excludes it; 42P07 and its kin for a name taken meanwhile. `recheck` is
 * called when the outcome is not simply `mine`, before anybody sees it; it may refuse it. Nobody else
 * commits while it runs. */
typedef wf_status (*commit_check)(void *arg, const struct meeting *meeting, struct error *err);
FALLIBLE catalog_commit(struct catalog *catalog, struct edition *base, struct edition *mine,
                        commit_check recheck, void *arg, struct error *err);
/* The same; `lazy`: it does not wait until it is durable, which a later commit sees to. */
FALLIBLE catalog_commit_as(struct catalog *catalog, struct edition *base, struct edition *mine,
                           bool lazy, commit_check recheck, void *arg, struct error *err);

/* Another form of a table's rows in place of `old`, unless that is not current any more. */
FALLIBLE catalog_replace(struct catalog *catalog, u32 oid, const struct table_version *old,
                         struct table_version *version, struct error *err);

/* Counts every change of definition; part of every plan-cache key. */
u64 catalog_version(struct catalog *catalog);

/* Each a transaction of its own. ERR_DUPLICATE_TABLE when the name is taken. `position` is of the
 * name in the statement. */
FALLIBLE catalog_create_table(struct catalog *catalog, const struct table_def *def,
                              u32 tablet_shift, bool plain, i32 position, struct error *err);
FALLIBLE catalog_drop_table(struct catalog *catalog, struct sv name, i32 position,
                            struct error *err);
/* A table's object for edition_change; takes one reference to the table. NULL: refused. */
struct object *catalog_table_object(struct catalog *catalog, u32 schema, const char *name, u32 oid,
                                    struct table *table);

/* A statement's view: one edition, and the tables it names with the versions it reads. */
struct snapshot_table {
    struct table *table;
    struct table_version *version;
};
/* Files as tables: whoever compiles a statement can read them, and is asked by the binder. */
struct file_request {
    const char *path;
    const char *delimiter, *quote, *escape, *comment; /* NULL = to be found out; "" = none */
    const char *null_text;                            /* NULL = "" */
    const char *const *null_more;                     /* further ones, up to a NULL; or NULL */
    const char *compression;                          /* none, gzip, zstd; NULL = by the name */
    i32 header;                                       /* 0, 1; -1 = to be found out */
    b8 null_padding, ignore_errors, all_text;
    b8 all_cols;                   /* `cols` are all columns there are */
    i64 skip;                      /* lines; -1 = to be found out */
    i64 sample_rows;               /* 0 = as many as usual, -1 = all */
    const struct column_def *cols; /* types, by name or, where that is NULL, by place */
    i32 col_count;
    const char *const *names; /* of the first columns */
    i32 name_count;
    i32 position;
    b8 trie; /* a trie file: of all the others only its path and position count */
};
struct file_reader {
    /* A table whose provider reads the file; the caller closes it. */
    FALLIBLE(*read)
    (struct file_reader *reader, const struct file_request *request, struct table **out,
     struct error *err);
};

/* Rules as relations: whoever compiles a statement knows their language, and is asked by the
 * binder. */
struct plan;
struct snapshot;
struct rel;
struct rule_claim { /* something that must hold of the rows that rules derive */
    const char *what;
    const char *query; /* a clause behind the text's that gives what violates it */
    i32 col_count;     /* of that */
    i32 position;
};
struct rule_check {
    struct sv text;      /* clauses */
    const char *clauses; /* with a query behind them that has a row when a claim does not hold */
    const char *path;    /* that names in clauses are looked up by; "" = public */
    struct rule_claim *claims;
    i64 count;
};
struct bound_relation {
    struct rel *rel;
    const char **names;       /* of rel->out */
    struct rule_check *check; /* what has to hold for it; NULL = nothing */
};
struct view_binder { /* what the one who asks knows: views of its own language */
    FALLIBLE(*bind)
    (struct view_binder *binder, const struct object *view, struct bound_relation *out);
};
struct rule_request {
    struct sv text;            /* clauses, of which those for _ make the relation; or */
    const struct object *view; /* a derived predicate */
    struct view_binder *views; /* NULL: the columns of views are all that is needed */
};
struct rule_binder {
    /* An error's position is one of the text; -1 for what stands elsewhere. */
    FALLIBLE(*bind)
    (struct rule_binder *binder, struct plan *plan, struct snapshot *snap,
     const struct rule_request *request, struct bound_relation *out, struct error *err);
};

/* Derived predicates whose rows somebody keeps, and is asked for by whoever makes plans of rules. */
struct kept_rows {
    b8 are_kept; /* the rows of the view are those of a table that the snapshot reads; then: */
    struct snapshot_table table;
    const struct sv *kinds; /* of entities that its columns hold; empty = values; NULL = all are */
};
struct rule_keeper {
    FALLIBLE(*find)
    (struct rule_keeper *keeper, struct snapshot *snap, const struct object *view,
     struct kept_rows *out, struct error *err);
};

enum { PATH_MAX_SCHEMAS = 16 };
struct snapshot {
    struct file_reader *files;   /* NULL: no statement is being compiled */
    struct rule_binder *rules;   /* NULL, too */
    struct rule_keeper *keeper;  /* NULL: derived predicates are computed */
    struct evaluator *evaluator; /* of constants; NULL, too */
    struct arena *arena;
    struct catalog *catalog;
    struct edition *edition;           /* NULL until first needed */
    const char *path;                  /* names of schemas, separated by commas; NULL = public */
    u32 temp_schema;                   /* looked at first; 0 = none */
    struct when when;                  /* of the transaction: what definitions mean by "now" */
    VEC(struct snapshot_table) tables; /* versions that differ from the edition's */
};
void snapshot_init(struct snapshot *snap, struct catalog *catalog, struct arena *arena);
/* The same over a given edition, which is retained. */
void snapshot_init_edition(struct snapshot *snap, struct catalog *catalog, struct edition *edition,
                           struct arena *arena);
void snapshot_fini(struct snapshot *snap); /* releases what it holds */
/* Gets the current edition, unless there is one already. */
FALLIBLE snapshot_open(struct snapshot *snap, struct error *err);
/* The statement reads this version of the table instead of the edition's; retains both. */
void snapshot_put(struct snapshot *snap, struct table *table, struct table_version *version);
/* The same; a version that was put before gives way. */
void snapshot_set(struct snapshot *snap, struct table *table, struct table_version *version);

/* The object a name means: in the schema, or, when that is empty, along the search path. NULL when
 * there is none. Call snapshot_open first. */
const struct edition_entry *snapshot_lookup(struct snapshot *snap, struct sv schema,
                                            struct sv name);
/* The table a key of which has the name, where no relation before it on the path has; or NULL. */
const struct object *snapshot_key_table(struct snapshot *snap, struct sv schema, struct sv name);
/* OIDs of the schemas of the path, temporary first. */
i32 snapshot_path(struct snapshot *snap, u32 out[PATH_MAX_SCHEMAS]);
/* Where a new object goes that names no schema: the first schema of the path that exists. 3F000. */
FALLIBLE snapshot_target(struct snapshot *snap, struct sv schema, i32 position, u32 *out,
                         struct error *err);
/* 42P01 with the nearest name as a hint. */
FALLIBLE snapshot_missing(struct snapshot *snap, struct sv schema, struct sv name, i32 position,
                          struct error *err);
/* Adds the nearest name as a hint to the error at hand. */
void snapshot_hint(struct snapshot *snap, struct sv name, struct error *err);
struct snapshot_table snapshot_of(const struct snapshot *snap, const struct edition_entry *entry);
/* A table; ERR_UNDEFINED_TABLE, with the nearest name as a hint. The entry stays valid until
 * snapshot_fini. */
FALLIBLE snapshot_find(struct snapshot *snap, struct sv name, i32 position,
                       struct snapshot_table *out, struct error *err);
/* By id, for programs; false when the table is gone. */
bool snapshot_find_id(struct snapshot *snap, u64 table_id, struct snapshot_table *out);

/* Names of tables along the path in order, for .tables and completion; views in `arena`. */
i64 catalog_table_names(struct catalog *catalog, struct arena *arena, struct sv **out_names);
i64 edition_table_names(const struct edition *edition, u32 kind, struct arena *arena,
                        struct sv **out_names);

#endif
