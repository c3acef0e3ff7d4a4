/* sql.h: the SQL front end: text -> statements -> plans. */
#ifndef WF_SQL_SQL_H
#define WF_SQL_SQL_H

#include "catalog/catalog.h"
#include "plan/plan.h"

enum statement_kind {
    STATEMENT_SELECT,
    STATEMENT_INSERT,
    STATEMENT_CREATE_TABLE,
    STATEMENT_DROP_TABLE,
    STATEMENT_COPY_FROM,
    STATEMENT_SET,
    STATEMENT_SHOW,
    STATEMENT_EXPLAIN,
    STATEMENT_CALL,
    STATEMENT_UPDATE,
    STATEMENT_DELETE,
    STATEMENT_TRUNCATE,
    STATEMENT_TRANSACTION,
};

enum tx_kind { TX_BEGIN, TX_COMMIT, TX_ROLLBACK, TX_SAVEPOINT, TX_RELEASE, TX_ROLLBACK_TO };

/* A column that gets the next values of a sequence where its value is NULL. */
struct fill {
    u32 col;
    u32 sequence; /* OID */
};

struct copy_options {
    const char *path;
    char delimiter; /* ',' for csv, '|' for tbl */
    char quote;     /* '"'; 0 = none (tbl) */
    char escape;    /* as quote unless given */
    b8 header;
    b8 trailing_delimiter; /* tbl: a line may end with the delimiter */
    const char *null_text; /* csv: "", tbl: "" */
    i32 col_count;         /* 0 = all, in order */
    u32 *cols;
};

enum { EXPLAIN_PLAN = 1, EXPLAIN_PROGRAM = 2, EXPLAIN_OPCODES = 4, EXPLAIN_CUDA = 8, EXPLAIN_ANALYZE = 16 };

struct parsed; /* one statement's syntax tree */
struct statement {
    u8 kind; /* enum statement_kind */
    /* SELECT. INSERT: rows to insert, one column per table column, in order. UPDATE: the row's number,
     * then likewise; DELETE: the row's number; behind them the columns of RETURNING. */
    struct plan *plan;
    i32 returning;           /* INSERT, UPDATE, DELETE: columns of RETURNING; 0 = none */
    i32 fill_count;          /* INSERT */
    struct fill *fills;
    const char *table_name;
    i32 position;            /* of that name */
    u64 table_id;            /* INSERT, COPY */
    u32 col_count;           /* CREATE TABLE */
    struct column_def *cols;
    b8 if_exists; /* DROP IF EXISTS, CREATE IF NOT EXISTS */
    i32 name_count;          /* DROP: several names */
    const char **names;
    i32 *positions;
    u8 tx; /* enum tx_kind; a savepoint's name is in table_name */
    b8 tx_read_only, tx_chain;
    b8 cascade;
    b8 restart; /* TRUNCATE RESTART IDENTITY */
    struct copy_options copy;
    const char *setting;     /* SET, SHOW: name; SHOW ALL: "all" */
    const char *value;       /* SET: text; NULL = default */
    u32 explain;             /* EXPLAIN_… bits */
    struct statement *inner; /* EXPLAIN */
    const char *procedure;   /* CALL: name and arguments (constants) */
    i32 arg_count;
    struct expr **args;
    const char **arg_names;  /* name => value; NULL entries = positional */
};

/* Splits and parses a script. Positions count bytes from the start of `text`, for every statement. On a
 * syntax error nothing is returned but the error, with position. An empty script has count 0. */
struct parsed_list {
    VEC(struct parsed *) items;
};
FALLIBLE sql_parse(struct arena *arena, struct sv text, struct parsed_list *out, struct error *err);
/* The statement's own text within the script. */
struct sv parsed_text(const struct parsed *parsed);
/* Highest parameter number used ($n). */
i32 parsed_param_count(const struct parsed *parsed);

/* Names to columns, types to every expression. `param_types` has parsed_param_count entries; those with id
 * TYPE_UNKNOWN are inferred and filled in. */
FALLIBLE sql_bind(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                  struct type *param_types, struct statement *out, struct error *err);

/* The RETURNING list of an INSERT as a SELECT from its table, of which `snap` holds the new rows. */
FALLIBLE sql_bind_returning(struct arena *arena, const struct parsed *parsed, struct snapshot *snap,
                            struct type *param_types, struct statement *out, struct error *err);
/* SELECT 1 FROM table WHERE NOT (condition). */
FALLIBLE sql_bind_violations(struct arena *arena, const struct table *table, const char *condition,
                             struct snapshot *snap, struct statement *out, struct error *err);
/* BEGIN, COMMIT and their kin. */
bool parsed_is_transaction(const struct parsed *parsed);

/* Keywords, for completion. */
extern const char *const sql_keywords[];

#endif
