/* gendoc_sql.c: the parts of docs/sql.md that the tables can say. The page is written by hand; what
 * stands between
 * `<!-- made: NAME -->` and `<!-- end -->` is made from src/defs. */
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

static void made_functions(FILE *out) {
    const char *names[] = {
#define X(A, name, sql, arguments, text) sql,
        WF_FUNCS(X, )
#undef X
#define X(A, name, sql, arguments, result, op, text) sql,
            WF_SCALARS(X, )
#undef X
    };
    print_names(out, names, sizeof names / sizeof *names);
}

static void made_aggregates(FILE *out) {
    const char *names[] = {
#define X(A, name, sql, arguments, how, text) sql,
        WF_AGGS(X, )
#undef X
    };
    print_names(out, names, sizeof names / sizeof *names);
}

static void made_windows(FILE *out) {
    const char *names[] = {
#define X(A, name, sql, fewest, most, text) sql,
        WF_WINDOWS(X, )
#undef X
    };
    print_names(out, names, sizeof names / sizeof *names);
}

static void made_table_functions(FILE *out) {
    const char *names[] = {
#define X(A, name, sql, fewest, most, text) sql,
        WF_TABLE_FUNCS(X, )
#undef X
    };
    print_names(out, names, sizeof names / sizeof *names);
}

static void made_settings(FILE *out) {
    const char *names[] = {
#define X(A, name, kind, value, least, most, scope, text) #name,
        WF_SETTINGS(X, )
#undef X
    };
    print_names(out, names, sizeof names / sizeof *names);
}

static const struct {
    const char *name;
    void (*write)(FILE *out);
} parts[] = {
    {"types", made_types},           {"functions", made_functions},
    {"aggregates", made_aggregates}, {"window functions", made_windows},
    {"settings", made_settings},     {"table functions", made_table_functions},
};

static void write_part(FILE *out, const char *name, int len, const char *root) {
    char path[1024];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if ((int)strlen(parts[i].name) == len && strncmp(name, parts[i].name, (size_t)len) == 0) {
            parts[i].write(out);
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
