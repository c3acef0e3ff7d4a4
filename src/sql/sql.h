/* sql.h: the SQL front end: text -> statements -> plans. */
#ifndef WF_SQL_SQL_H
#define WF_SQL_SQL_H

#include "catalog/catalog.h"
#include "plan/plan.h"

enum statement_kind {
    STATEMENT_SELECT,
    STATEMENT_INSERT,
    STATEMENT_CREATE_TABLE,
    STATEMENT_DROP,
    STATEMENT_COPY_FROM,
    STATEMENT_COPY_TO,
    STATEMENT_SET,
    STATEMENT_SHOW,
    STATEMENT_VACUUM, /* or ANALYZE */
    STATEMENT_EXPLAIN,
    STATEMENT_CALL,
    STATEMENT_UPDATE,
    STATEMENT_DELETE,
    STATEMENT_TRUNCATE,
    STATEMENT_TRANSACTION,
    STATEMENT_CREATE_SCHEMA,
    STATEMENT_CREATE_VIEW,
    STATEMENT_CREATE_SEQUENCE,
    STATEMENT_ALTER_SEQUENCE,
    STATEMENT_CREATE_TABLE_AS,
    STATEMENT_CREATE_INDEX,
    STATEMENT_COMMENT,
    STATEMENT_ALTER_TABLE,
    STATEMENT_RENAME, /* and SET SCHEMA */
    STATEMENT_SET_CONSTRAINTS,
    STATEMENT_PREPARE, /* the statement is parsed_inner's */
    STATEMENT_EXECUTE,
    STATEMENT_DEALLOCATE, /* name NULL = all */
};

enum tx_kind { TX_BEGIN, TX_COMMIT, TX_ROLLBACK, TX_SAVEPOINT, TX_RELEASE, TX_ROLLBACK_TO };

/* A column that gets the next values of a sequence where its value is NULL. */
struct fill {
    u32 col;
    u32 sequence; /* OID */
};

/* A value that is known when the statement starts: parameter number parsed_param_count + i. */
enum late_kind {
    LATE_NEXTVAL,
    LATE_CURRVAL,
    LATE_LASTVAL,
    LATE_SETVAL,
    LATE_SLEEP,      /* pg_sleep: `value` is the bits of a double, seconds */
    LATE_LAST_VALUE, /* where a sequence is, and whether that was handed out */
    LATE_IS_CALLED,
    LATE_SCHEMA,   /* current_schema() */
    LATE_DATABASE, /* current_database() */
    LATE_USER,
    LATE_VERSION,
    LATE_SETTING, /* current_setting(name, missing_ok: `called`) */
    LATE_CONFIG   /* set_config(name, text, local: `called`) */
};
struct late {
    u8 kind;      /* enum late_kind */
    b8 called;    /* SETVAL */
    u32 sequence; /* OID */
    i64 value;    /* SETVAL */
    const char *name;
    const char *text; /* CONFIG */
};

/* A sequence to be made: by itself, or for a column of the new table. */
struct ddl_seq {
    const char *name;
    u32 col;
    b8 named;             /* SEQUENCE NAME; else the name is made when the statement runs */
    b8 owned;             /* by column `col` of the statement's table */
    b8 disowned;          /* OWNED BY NONE */
    u32 owner;            /* OWNED BY: OID of the table */
    struct sequence like; /* its options; no lock */
    b8 has_min, has_max, has_start, has_type, restart, has_restart;
    bool cycle;
    i64 restart_at;
};

/* Where a column of an altered table comes from. */
struct alter_col {
    i32 old;            /* number in the old table; -1 = new */
    b8 fills;           /* from its sequence */
    struct expr *value; /* when not simply the old column */
};

struct json;
struct copy_names {
    const char **names;
    i32 count;
};
struct copy_options {
    const char *path; /* NULL: standard output */
    char delimiter;   /* ',' for csv, '|' for tbl */
    char quote;       /* '"'; 0 = none (tbl) */
    char escape;      /* as quote unless given */
    char comment;     /* FROM: begins what is no data; 0 = none */
    b8 header;
    b8 null_padding;          /* FROM: columns that a line lacks are NULL */
    b8 ignore_errors;         /* FROM: lines with errors are left out */
    i64 skip;                 /* FROM: lines */
    const char *compression;  /* none, gzip, zstd; NULL = by the name */
    b8 trailing_delimiter;    /* tbl: a line may end with the delimiter */
    b8 trie;                  /* of rows in order, each once; nothing else but the path counts */
    const char *null_text;    /* csv: "", tbl: "" */
    b8 quote_all;             /* TO: FORCE_QUOTE * */
    b8 *quote_cols;           /* TO: FORCE_QUOTE, by column of the answer; NULL = none */
    const char **quote_names; /* until the columns are known */
    i32 quote_count;
    i32 col_count; /* 0 = all, in order */
    u32 *cols;
    struct copy_names not_null_names, null_names; /* FROM: FORCE_NOT_NULL, FORCE_NULL */
    b8 *force_not_null, *force_null;              /* the same, by column of the table; or NULL */
    const struct json *where;                     /* FROM, of `parsed` */
    const struct parsed *parsed;
    b8 by_row; /* FROM: rows are computed from the file's: sql_bind_copied */
};

enum {
    EXPLAIN_PLAN = 1,
    EXPLAIN_PROGRAM = 2,
    EXPLAIN_OPCODES = 4,
    EXPLAIN_CUDA = 8,
    EXPLAIN_ANALYZE = 16,
    EXPLAIN_BARE = 32,       /* COSTS OFF */
    EXPLAIN_STEPS = 64,      /* what ANALYZE learnt of each step, as a table */
    EXPLAIN_ROUNDS = 256,    /* what ANALYZE learnt of the rules of recursions, as a table */
    EXPLAIN_STANDALONE = 128 /* of CUDA: one file that compiles and runs alone */
};

/* INSERT, UPDATE, DELETE. */
struct change_statement {
    u64 table_id;
    i32 returning;    /* columns of RETURNING; 0 = none */
    u8 conflict;      /* INSERT: 'n' DO NOTHING, 'u' DO UPDATE, 0 none */
    i32 conflict_key; /* number of the table's key; -1 = any */
    i32 fill_count;   /* INSERT */
    struct fill *fills;
};
struct truncate_statement {
    i32 count;
    u64 *ids; /* of tables */
    b8 restart, cascade;
};
struct copy_statement {
    struct copy_options options;
    u64 table_id;           /* FROM */
    struct expr **defaults; /* FROM: by table column; NULL = none */
};

/* A table as it is to be, and the sequences to be made for its columns. */
struct new_table {
    struct table_def def;
    i32 seq_count;
    struct ddl_seq *seqs;
};
struct create_table { /* and CREATE TABLE AS */
    struct new_table table;
    b8 no_data; /* AS */
};
struct create_view {
    b8 turned_temp;   /* because of what it reads */
    const char *text; /* its query */
    i32 col_count;
    const char **names;
    struct type *types;
    i32 dep_count; /* what it reads */
    u32 *deps;
};
struct create_index {
    u64 table_id;
    const char *text; /* its columns */
    i32 col_count;
    const char **names;
    struct table_key *key; /* UNIQUE; NULL = it is not */
};
struct create_statement {
    const char *schema; /* NULL = along the search path */
    b8 temp, if_not_exists, or_replace;
    union { /* by the statement's kind; a schema has no more */
        struct create_table table;
        struct create_view view;
        struct create_index index;
        struct ddl_seq *sequence;
    };
};
struct renamed_index { /* one of whose columns has another name */
    u32 oid;
    const char *text;
    const char **names;
};
struct alter_statement {
    u32 oid; /* 0 = IF EXISTS, and there is none */
    b8 temp;
    struct new_table table;
    struct alter_col *from; /* by column of the definition; `plan` when rows must be computed */
    i32 fill_count;         /* columns of such rows that sequences fill */
    struct fill *fills;
    b8 cascade; /* references of other tables change */
    i32 drop_count;
    u32 *drops;               /* OIDs of what goes with a column */
    struct ddl_seq *identity; /* options of an identity column's sequence; NULL = none change */
    u32 identity_oid;         /* that sequence */
    u32 dropped_seq;          /* the sequence of one that is none any more */
    i32 index_count;
    struct renamed_index *indexes;
};
struct alter_sequence_statement {
    u32 oid;
    struct ddl_seq *def;
};
struct rename_statement { /* the new name is `name` */
    u32 oid;
    u8 object_kind;         /* enum object_kind */
    const char *schema;     /* SET SCHEMA */
    const char **view_cols; /* a column of a view: names of all; NULL = none */
    i32 col_count;
};
struct drop_statement {
    u8 object_kind; /* enum object_kind */
    b8 if_exists, cascade;
    i32 count;
    const char **names;
    const char **schemas; /* of the names; "" = along the search path */
    i32 *positions;
};
struct comment_statement {
    u32 oid;          /* 0 = of an object we keep no comments of */
    const char *text; /* NULL = none */
};
struct constraints_statement { /* SET CONSTRAINTS */
    b8 deferred;
    b8 all;
    i32 count;
    u32 *oids; /* of references and keys */
};
enum tx_access { ACCESS_UNSAID, ACCESS_READ, ACCESS_WRITE };
enum tx_defer { DEFER_UNSAID, DEFER_YES, DEFER_NO };
struct tx_modes {
    u8 access; /* enum tx_access */
    u8 defer;  /* enum tx_defer: a snapshot waits for nobody, so it is only shown */
};
struct tx_statement { /* a savepoint's name is `name` */
    u8 kind;          /* enum tx_kind */
    struct tx_modes modes;
    b8 chain;
};
struct set_statement { /* SET, SHOW */
    const char *name;  /* NULL: SET TRANSACTION; SHOW ALL: "all" */
    const char *value; /* text; NULL = default */
    b8 local;
    struct tx_modes modes; /* SET TRANSACTION */
};
struct explain_statement {
    u32 levels; /* EXPLAIN_… bits */
    struct statement *inner;
};
struct vacuum_statement {
    u8 what;   /* 0 = ANALYZE, 1 = VACUUM, 2 = CHECKPOINT */
    i32 count; /* of tables that were named; 0 = all */
    u32 *oids;
};
struct call_statement {
    const char *procedure;
    i32 count;
    struct expr **args; /* constants */
    const char **names; /* name => value; NULL entries = positional */
};
struct prepared_statement { /* PREPARE, EXECUTE; `name` */
    i32 arg_count;
    struct type *arg_types; /* PREPARE */
    u32 explain;            /* EXPLAIN EXECUTE: EXPLAIN_… bits */
};

struct parsed; /* one statement's syntax tree */
/* What every statement has, and what its kind needs. */
struct statement {
    u8 kind; /* enum statement_kind: says which member of the union there is */
    /* SELECT. INSERT: rows to insert, one column per table column, in order. UPDATE: the row's
     * number, then likewise; DELETE: the row's number; behind them the columns of RETURNING. */
    struct plan *plan;
    i32 late_count;
    struct late *lates;
    const char *name; /* of what it makes, changes or uses; NULL = none, or several */
    i32 position;     /* of that name, or of the statement */
    b8 is_copy;       /* INSERT: COPY was written */
    union {
        struct change_statement change;           /* INSERT, UPDATE, DELETE */
        struct truncate_statement truncate;       /* TRUNCATE */
        struct copy_statement copy;               /* COPY_FROM, COPY_TO */
        struct create_statement create;           /* CREATE_… */
        struct alter_statement alter;             /* ALTER_TABLE */
        struct alter_sequence_statement sequence; /* ALTER_SEQUENCE */
        struct rename_statement rename;           /* RENAME */
        struct drop_statement drop;               /* DROP */
        struct comment_statement comment;         /* COMMENT */
        struct constraints_statement constraints; /* SET_CONSTRAINTS */
        struct tx_statement tx;                   /* TRANSACTION */
        struct set_statement set;                 /* SET, SHOW */
        struct explain_statement explain;         /* EXPLAIN */
        struct call_statement call;               /* CALL */
        struct prepared_statement prepared;       /* PREPARE, EXECUTE */
        struct vacuum_statement vacuum;           /* VACUUM */
    };
};

/* Splits and parses a script. Positions count bytes from the start of `text`, for every statement.
 * On a syntax error nothing is returned but the error, with position. An empty script has count 0.
 */
struct parsed_list {
    VEC(struct parsed *) items;
};
FALLIBLE sql_parse(struct arena *arena, struct sv text, struct parsed_list *out, struct error *err);
/* The statement's own text within the script. */
struct sv parsed_text(const struct parsed *parsed);
/* Highest parameter number used ($n). */
i32 parsed_param_count(const struct parsed *parsed);
i32 parsed_param_position(const struct parsed *parsed); /* of one with that number */

/* Names to columns, types to every expression. `param_types` has parsed_param_count entries; those
 * with id TYPE_UNKNOWN are inferred and filled in. */
FALLIBLE sql_bind(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                  struct type *param_types, struct statement *out, struct error *err);

/* The RETURNING list of an INSERT as a SELECT from `rows`, a table of `snap` that holds the new
 * ones. */
FALLIBLE sql_bind_returning(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                            const struct table *rows, struct type *param_types,
                            struct statement *out, struct error *err);
/* The values of an EXECUTE as a SELECT of one row, in the types of the parameters. */
FALLIBLE sql_bind_arguments(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                            const struct type *types, struct statement *out, struct error *err);
/* ON CONFLICT DO UPDATE as an UPDATE of the table from `excluded`, whose last columns are the place
 * in the source and the number of the row in conflict: row numbers and new rows. Both tables are in
 * `snap`. */
FALLIBLE sql_bind_conflict(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                           const struct table *excluded, struct type *param_types,
                           struct statement *out, struct error *err);
/* SELECT 1 FROM table WHERE NOT (condition). */
FALLIBLE sql_bind_violations(struct arena *arena, const struct table *table, const char *condition,
                             struct snapshot *snap, struct statement *out, struct error *err);
/* SELECT of whole rows of the table that COPY st is for, from `file`, which has the columns of its
 * list. */
FALLIBLE sql_bind_copied(struct arena *arena, const struct statement *st, const struct table *file,
                         struct snapshot *snap, struct statement *out, struct error *err);
/* The statement that PREPARE prepares, in `arena`; it borrows the tree. */
struct parsed *parsed_inner(struct arena *arena, const struct parsed *parsed, struct when when);
/* A query, or VALUES. */
bool parsed_is_select(const struct parsed *parsed);
/* BEGIN, COMMIT and their kin. */
bool parsed_is_transaction(const struct parsed *parsed);
bool parsed_is_prepare(const struct parsed *parsed);

/* Where byte `at` of a text literal's value stands in the script: behind a dollar quote, or behind a
 * quote with doubled ones inside. `literal` is where the literal begins. */
i32 sql_literal_place(struct sv script, i32 literal, i32 at);

/* Keywords, for completion. */
/* complete.c: how the text can go on at the cursor. `each` gets every way, until it returns nonzero;
 * of a FILE what stands there of its name. *out_start: where the part begins that they replace. */
enum completion_kind {
    COMPLETE_KEYWORD,
    COMPLETE_TABLE,
    COMPLETE_COLUMN,
    COMPLETE_FUNCTION,
    COMPLETE_TYPE,
    COMPLETE_SCHEMA,
    COMPLETE_SETTING,
    COMPLETE_VALUE,
    COMPLETE_FILE
};
typedef int (*complete_each)(void *arg, const char *text, enum completion_kind kind);
FALLIBLE sql_complete(struct snapshot *snap, struct sv text, i64 cursor, complete_each each,
                      void *arg, i64 *out_start, struct error *err);

/* Functions, for completion; false at the end. A name comes once for each of its forms. */
struct sql_function {
    const char *name;
    const char *kind;     /* "function", "aggregate", "window function", "table function" */
    const char *synopsis; /* may be empty */
};
bool sql_function(i32 i, struct sql_function *out);
/* table_cols_end, or table_end where `cols` is NULL, with a number if it is not 0, in no more bytes
 * than a name may have: PostgreSQL's names for what is given none. */
const char *sql_object_name(struct arena *arena, const char *table, const char *cols,
                            const char *end, i32 number);
extern const char *const sql_keywords[];

/* Whether one of the text's tokens is the name. */
bool lex_names(struct sv text, const char *name);

#endif
