/* lists.c: what there is: tables, definitions, and by kind what psql's \d commands list.
 *
 * Names of tables come one a line, for people and scripts alike; the other lists are queries on the
 * catalog, shown like any result. A pattern has * and ?, as for file names. */
#include "shell.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

bool complain(const char *format, const char *word) {
    fflush(stdout);
    fprintf(stderr, format, word);
    fputc('\n', stderr);
    return false;
}

bool complain_of_last(struct shell *shell) {
    char error[2000];
    wf_error_text(wf_connection_error(shell->conn), NULL, error, sizeof error);
    return complain("%s", error);
}

static int print_table(void *arg, const char *name) {
    const char *pattern = arg;
    if (!pattern[0] || fnmatch(pattern, name, 0) == 0) {
        printf("%s\n", name);
    }
    return 0;
}

bool list_tables(struct shell *shell, const char *pattern) {
    return wf_tables(shell->conn, print_table, (void *)(size_t)pattern) == WF_OK ||
           complain_of_last(shell);
}

static bool print_schema(struct shell *shell, const char *table) {
    char *text = NULL;
    if (wf_describe(shell->conn, table, &text) != WF_OK) {
        return complain_of_last(shell);
    }
    fputs(text, stdout);
    wf_free(text);
    return true;
}

static int collect_name(void *arg, const char *name) {
    candidates_add(arg, name);
    return 0;
}

bool list_schema(struct shell *shell, const char *name) {
    if (name[0]) {
        return print_schema(shell, name);
    }
    struct candidates tables = {0};
    bool ok = wf_tables(shell->conn, collect_name, &tables) == WF_OK;
    for (int i = 0; ok && i < tables.count; i++) {
        ok = print_schema(shell, tables.items[i]);
    }
    candidates_free(&tables);
    return ok;
}

/* A query for each kind; %s is the condition on "name". */
static const struct {
    const char *kind;
    const char *sql;
} lists[] = {
    {"views", "select schemaname as schema, viewname as name from pg_catalog.pg_views "
              "where schemaname not in ('pg_catalog', 'information_schema')"},
    {"indexes", "select schemaname as schema, indexname as name, tablename as \"table\" "
                "from pg_catalog.pg_indexes"},
    {"sequences", "select n.nspname as schema, c.relname as name from pg_catalog.pg_class c "
                  "join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind = 'S'"},
    {"schemas", "select nspname as name from pg_catalog.pg_namespace "
                "where nspname not like 'pg\\_%' and nspname <> 'information_schema'"},
    {"databases", "select datname as name from pg_catalog.pg_database"},
    {"roles", "select rolname as name from pg_catalog.pg_roles"},
    {"types", "select typname as name from pg_catalog.pg_type where typname not like '\\_%'"},
};

/* The pattern as LIKE reads it, in quotes. */
static void put_like(struct strbuf *sql, const char *pattern) {
    strbuf_append(sql, "'", 1);
    for (const char *at = pattern; *at; at++) {
        switch (*at) {
        case '*':
            strbuf_append(sql, "%", 1);
            break;
        case '?':
            strbuf_append(sql, "_", 1);
            break;
        case '\'':
            strbuf_append(sql, "''", 2);
            break;
        case '%':
        case '_':
        case '\\':
            strbuf_append(sql, "\\", 1);
            strbuf_append(sql, at, 1);
            break;
        default:
            strbuf_append(sql, at, 1);
            break;
        }
    }
    strbuf_append(sql, "'", 1);
}

bool query_sql(struct shell *shell, const char *sql, wf_result **out) {
    bool fine = !shell->logiql || wf_set(shell->conn, "language", "sql") == WF_OK;
    fine = fine && wf_query(shell->conn, sql, out) == WF_OK;
    bool restored = !shell->logiql || wf_set(shell->conn, "language", "logiql") == WF_OK;
    return fine && restored;
}

bool list_objects(struct shell *shell, const char *kind, const char *pattern) {
    struct strbuf sql = {0};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].kind, kind) == 0) {
            strbuf_print(&sql, "select * from (%s) l", lists[i].sql);
        }
    }
    if (pattern[0]) {
        strbuf_print(&sql, " where name like ");
        put_like(&sql, pattern);
    }
    strbuf_print(&sql, " order by %s", strstr(sql.ptr, " as schema") ? "1, 2" : "1");
    wf_result *result = NULL;
    bool ok = query_sql(shell, sql.ptr, &result) ? render(shell, result) : complain_of_last(shell);
    wf_result_close(result);
    strbuf_free(&sql);
    return ok;
}

/* --- rules --- */

/* One row of CALL logiql_rules(). */
struct rule_row {
    char *stratum, *recursive, *predicate, *clause, *kept;
};

/* "kept, stale"; "" where rows are computed whenever they are read. */
static const char *kept_words(const struct rule_row *row) {
    return strcmp(row->kept, "no") == 0      ? ""
           : strcmp(row->kept, "later") == 0 ? "kept, not computed yet"
           : strcmp(row->kept, "stale") == 0 ? "kept, stale"
                                             : "kept, fresh";
}

static void print_predicate(const struct rule_row *row) {
    bool recursive = strcmp(row->recursive, "yes") == 0;
    const char *kept = kept_words(row);
    bool both = recursive && kept[0];
    printf("%s%s%s%s%s%s", row->predicate, recursive || kept[0] ? " (" : "",
           recursive ? "recursive" : "", both ? "; " : "", kept, recursive || kept[0] ? ")" : "");
}

static char *text_of(const wf_batch *batch, int32_t col, int64_t row) {
    wf_text text = wf_batch_text(batch, col, row);
    char *copy = shell_alloc((size_t)text.len + 1);
    memcpy(copy, text.ptr, (size_t)text.len);
    return copy;
}

/* Clauses one a line, the first of a predicate with what is kept of it; `strata`: below the number of
 * each stratum, with names instead. */
static void print_rules(const wf_batch *batch, const char *pattern, bool strata) {
    char *stratum = shell_alloc(1);
    char *predicate = shell_alloc(1);
    for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
        struct rule_row row = {text_of(batch, 0, i), text_of(batch, 1, i), text_of(batch, 2, i),
                               text_of(batch, 3, i), text_of(batch, 4, i)};
        bool shown = !pattern[0] || fnmatch(pattern, row.predicate, 0) == 0;
        shown = shown && !(strata && strcmp(row.stratum, "0") == 0); /* a table's declarations */
        bool fresh = strcmp(predicate, row.predicate) != 0;
        if (strata && shown && fresh) {
            bool first = strcmp(stratum, row.stratum) != 0;
            printf(first ? "%s%s: " : "%s%s, ", first && stratum[0] ? "\n" : "",
                   first ? row.stratum : "");
            print_predicate(&row);
        } else if (!strata && shown) {
            const char *kept = fresh ? kept_words(&row) : "";
            printf("%s%s%s\n", row.clause, kept[0] ? "  // " : "", kept);
        }
        if (shown) {
            free(stratum);
            free(predicate);
            stratum = row.stratum;
            predicate = row.predicate;
        } else {
            free(row.stratum);
            free(row.predicate);
        }
        free(row.recursive);
        free(row.clause);
        free(row.kept);
    }
    printf(strata && stratum[0] ? "\n" : "");
    free(stratum);
    free(predicate);
}

static bool list_clauses(struct shell *shell, const char *pattern, bool strata) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    bool ok = query_sql(shell, "call logiql_rules()", &result);
    ok = ok && wf_result_next_batch(result, &batch) == WF_OK;
    if (ok && batch) {
        print_rules(batch, pattern, strata);
    }
    wf_result_close(result);
    return ok || complain_of_last(shell);
}

bool list_rules(struct shell *shell, const char *pattern) {
    return list_clauses(shell, pattern, false);
}

bool list_strata(struct shell *shell, const char *pattern) {
    return list_clauses(shell, pattern, true);
}

bool drop_rules(struct shell *shell, const char *name) {
    struct strbuf sql = {0};
    strbuf_print(&sql, "drop view \"");
    for (const char *at = name; *at; at++) {
        strbuf_append(&sql, "\"\"", *at == '"' ? 2 : 0);
        strbuf_append(&sql, at, *at == '"' ? 0 : 1);
    }
    strbuf_append(&sql, "\"", 1);
    wf_result *result = NULL;
    bool ok = name[0] ? query_sql(shell, sql.ptr, &result) || complain_of_last(shell)
                      : complain("%s needs the name of a predicate", ".drop");
    wf_result_close(result);
    strbuf_free(&sql);
    return ok;
}

/* --- functions --- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool list_functions(struct shell *shell, const char *pattern) {
    (void)shell;
    struct candidates lines = {0};
    wf_function_info info;
    for (int32_t i = 0; wf_function(i, &info) == WF_OK; i++) {
        if (!pattern[0] || fnmatch(pattern, info.name, 0) == 0) {
            struct strbuf line = {0};
            strbuf_print(&line, "%-28s %s%s%s", info.name, info.kind, info.synopsis[0] ? ": " : "",
                         info.synopsis);
            candidates_add(&lines, line.ptr);
            strbuf_free(&line);
        }
    }
    qsort(lines.items, (size_t)lines.count, sizeof(char *), by_text);
    for (int i = 0; i < lines.count; i++) {
        if (i == 0 || strcmp(lines.items[i], lines.items[i - 1]) != 0) {
            printf("%s\n", lines.items[i]);
        }
    }
    bool found = lines.count > 0;
    candidates_free(&lines);
    return found || complain("there is no function \"%s\"", pattern);
}
