/* keywords.c: the words the shell completes: what a user of the supported SQL types.
 *
 * Not the grammar's keyword list, most of which leads to 0A000 here. Lower case, in order. */
#include "sql/sql.h"

const char *const sql_keywords[] = {
    "abs",     "all",       "analyze",     "and",       "as",       "asc",
    "avg",     "between",   "bigint",      "boolean",   "by",       "call",
    "case",    "cast",      "char_length", "coalesce",  "copy",     "count",
    "create",  "cross",     "csv",         "cuda",      "date",     "decimal",
    "default", "delimiter", "desc",        "describe",  "distinct", "double precision",
    "drop",    "else",      "end",         "escape",    "exclude",  "exists",
    "explain", "extract",   "false",       "fetch",     "first",    "for",
    "format",  "from",      "group by",    "having",    "header",   "if",
    "ilike",   "in",        "inner",       "insert",    "integer",  "interval",
    "into",    "is",        "join",        "last",      "length",   "like",
    "limit",   "lower",     "max",         "min",       "mod",      "natural",
    "not",     "null",      "nullif",      "nulls",     "numeric",  "octet_length",
    "offset",  "on",        "only",        "opcodes",   "or",       "order by",
    "plan",    "program",   "quote",       "read_csv",  "real",     "replace",
    "reset",   "rows",      "select",      "set",       "show",     "smallint",
    "stdout",  "substring", "sum",         "summarize", "table",    "text",
    "then",    "true",      "try_cast",    "upper",     "using",    "values",
    "varchar", "when",      "where",       "with",      NULL,
};
