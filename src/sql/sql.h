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
    STATEMENT_COPY_TO,
    STATEMENT_SET,
    STATEMENT_SHOW,
    STATEMENT_EXPLAIN,
    STATEMENT_CALL,
};

struct copy_options {
    const char *path; /* NULL: standard output */
    char delimiter; /* ',' for csv, '|' for tbl */
    char quote;     /* '"'; 0 = none (tbl) */
    char escape;    /* as quote unless given */
    b8 header;
    b8 trailing_delimiter; /* tbl: a line may end with the delimiter */
    const char *null_text; /* csv: "", tbl: "" */
    b8 quote_all;          /* TO: FORCE_QUOTE * */
    b8 *quote_cols;        /* TO: FORCE_QUOTE, by column of the answer; NULL = none */
    const char **quote_names; /* until the columns are known */
    i32 quote_count;
    i32 col_count;         /* 0 = all, in order */
    u32 *cols;
};

enum { EXPLAIN_PLAN = 1, EXPLAIN_PROGRAM = 2, EXPLAIN_OPCODES = 4, EXPLAIN_CUDA = 8, EXPLAIN_ANALYZE = 16 };

struct parsed; /* one statement's syntax tree */
struct statement {
    u8 kind; /* enum statement_kind */
    struct plan *plan;       /* SELECT; INSERT: rows to insert, one column per table column, in order */
    const char *table_name;
    i32 position;            /* of that name */
    u64 table_id;            /* INSERT, COPY */
    u32 col_count;           /* CREATE TABLE */
    struct column_def *cols;
    b8 if_exists; /* DROP IF EXISTS, CREATE IF NOT EXISTS */
    b8 or_replace; /* CREATE OR REPLACE TABLE */
    i32 name_count;          /* DROP: several names */
    const char **names;
    i32 *positions;
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

/* Keywords, for completion. */
extern const char *const sql_keywords[];

#endif
