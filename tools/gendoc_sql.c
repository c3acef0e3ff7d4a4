/* gendoc_sql.c: the parts of docs/sql.md that the tables can say. The page is written by hand; what
 * stands between `<!-- made: NAME -->` and `<!-- end -->` is made from src/defs. */
#include "gendoc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "defs/agg.def"
#include "defs/func.def"
#include "defs/setting.def"
#include "defs/table_func.def"
#include "defs/type.def"
#include "defs/window.def"

static const struct {
    const char *name, *type;
} type_names[] = {
#define X(A, name, type, length) {name, #type},
    WF_TYPE_NAMES(X, )
#undef X
};

static void type_row(FILE *out, const char *id, const char *text, int oid, const char *arrow) {
    int others = 0;
    fprintf(out, "| `%s` | ", text);
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++) {
        if (strcmp(type_names[i].type, id) == 0 && strcmp(type_names[i].name, text) != 0) {
            fprintf(out, "%s%s", others++ ? ", " : "", type_names[i].name);
        }
    }
    fprintf(out, " | %d | `%s` |\n", oid, arrow);
}

static void made_types(FILE *out) {
    fputs("| type | other names | OID | Arrow |\n|---|---|---|---|\n", out);
#define X(A, id, text, oid, kind, arrow, category) \
    if (strcmp(#id, "UNKNOWN") != 0) {             \
        type_row(out, #id, text, oid, arrow);      \
    }
    WF_TYPES(X, )
#undef X
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in order, each once; those that the binder writes (wf_..., or with a blank) and operators
 * are left out. */
static void print_names(FILE *out, const char **names, size_t count) {
    int shown = 0;
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i < count; i++) {
        bool letter = (names[i][0] >= 'a' && names[i][0] <= 'z') || names[i][0] == '_';
        if (letter && !strchr(names[i], ' ') && strncmp(names[i], "wf_", 3) != 0 &&
            (i == 0 || strcmp(names[i], names[i - 1]) != 0)) {
            fprintf(out, "%s%s", shown++ ? ", " : "", names[i]);
        }
    }
    fprintf(out, " (%d)\n", shown);
}

#define SQL_NAME(A, name, sql, ...) sql,
#define OWN_NAME(A, name, ...) #name,
static const char *functions[] = {WF_FUNCS(SQL_NAME, ) WF_SCALARS(SQL_NAME, )};
static const char *aggregates[] = {WF_AGGS(SQL_NAME, )};
static const char *windows[] = {WF_WINDOWS(SQL_NAME, )};
static const char *table_functions[] = {WF_TABLE_FUNCS(SQL_NAME, )};
static const char *settings[] = {WF_SETTINGS(OWN_NAME, )};

#define LIST(list) list, sizeof list / sizeof *list
static const struct {
    const char *part;
    const char **names; /* they are sorted when they are written */
    size_t count;
} lists[] = {
    {"functions", LIST(functions)},
    {"aggregates", LIST(aggregates)},
    {"window functions", LIST(windows)},
    {"table functions", LIST(table_functions)},
    {"settings", LIST(settings)},
};

static bool is_part(const char *part, const char *name, int len) {
    return (int)strlen(part) == len && strncmp(name, part, (size_t)len) == 0;
}

static void write_part(FILE *out, const char *name, int len, const char *root) {
    char path[1024];
    if (is_part("types", name, len)) {
        made_types(out);
        return;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (is_part(lists[i].part, name, len)) {
            print_names(out, lists[i].names, lists[i].count);
            return;
        }
    }
    snprintf(path, sizeof path, "%s/include/%.*s", root, len, name);
    if (!write_header(out, path)) {
        fprintf(stderr, "gendoc: there is no part %.*s\n", len, name);
        exit(2);
    }
}

void write_parts(FILE *out, const char *page, const char *root) {
    static const char begin[] = "<!-- made: ", end[] = "<!-- end -->";
    for (const char *at; (at = strstr(page, begin));) {
        const char *name = at + strlen(begin);
        const char *line = strchr(name, '\n');
        const char *after = line ? strstr(line, end) : NULL;
        if (!after) {
            break;
        }
        fwrite(page, 1, (size_t)(line + 1 - page), out);
        write_part(out, name, (int)strcspn(name, ">") - 3, root);
        page = after;
    }
    fputs(page, out);
}
