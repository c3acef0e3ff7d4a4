/* tidy_lengths.c: how long functions and macros are, and how many parameters functions have.
 *
 * It reads text, not C. A head begins in column 0 with a letter and goes on until a line ends in `{` or `;`; with a
 * parenthesis in it, it is a function's, which the next `}` in column 0 ends. Its parameters are the commas of its last
 * parenthesis. What is beyond a limit has a comment above it that says why: `Long because …` for a macro, `Many
 * because …` for parameters; functions that may be long are named in src/layers.def. Tables (*.def) are as long as
 * what they list. */
#include "tidy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "layers.def"

enum { FUNCTION_LINES = 70, PARAMETERS = 7 };

static const char *const long_functions[] = {
#define X(A, name) name,
    WF_LONG(X, )
#undef X
};

static bool may_be_long(const char *name) {
    for (size_t i = 0; i < sizeof long_functions / sizeof *long_functions; i++) {
        if (strcmp(name, long_functions[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void too_many(const char *path, int line, const char *what, int count, const char *unit) {
    char detail[64];
    snprintf(detail, sizeof detail, "%d %s", count, unit);
    found(path, line, what, detail);
}

/* One line of a head: parentheses, commas between parameters, the name before the last parenthesis. */
static void read_head(struct lengths *l, const char *text) {
    for (const char *at = text; *at; at++) {
        if (l->in_comment || strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at, "*/");
            l->in_comment = !end;
            if (!end) {
                return;
            }
            at = end + 1;
        } else if (*at == '(' && l->depth++ == 0) {
            const char *from = at;
            while (from > text && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) {
                from--;
            }
            snprintf(l->name, sizeof l->name, "%.*s", (int)(at - from), from);
            l->parameters = 1;
        } else if (*at == ')') {
            l->depth--;
        } else {
            l->parameters += *at == ',' && l->depth == 1;
        }
    }
}

static void check_head(struct lengths *l, const char *path, int line, const char *text, size_t len) {
    if (!l->head && (isalpha((unsigned char)text[0]) || text[0] == '_')) {
        l->head = line;
        l->depth = l->parameters = 0;
    }
    if (!l->head) {
        return;
    }
    read_head(l, text);
    char last = len ? text[len - 1] : ';';
    if (last == '{' && l->parameters) {
        l->start = line;
        if (l->parameters > PARAMETERS && !l->many) {
            too_many(path, l->head, "too many, without a comment that says why (`Many because`)", l->parameters,
                     "parameters");
        }
    }
    if (last == '{' || last == ';' || text[0] == '#') {
        l->head = 0;
    }
}

static void check_macro(struct lengths *l, const char *path, int line, const char *text, bool goes_on) {
    if (!l->macro) {
        l->macro = strncmp(text, "#define", 7) == 0 && goes_on ? line : 0;
        l->macro_long = l->macro && l->why_long;
    } else if (!goes_on) {
        if (line - l->macro + 1 > FUNCTION_LINES && !l->macro_long && !ends_with(path, ".def")) {
            too_many(path, l->macro, "macro too long, without a comment that says why (`Long because`)",
                     line - l->macro + 1, "lines");
        }
        l->macro = 0;
    }
}

void lengths_line(struct lengths *l, const char *path, int line, const char *text, size_t len) {
    bool in_macro = l->macro;
    bool comment = strncmp(text, "/*", 2) == 0 || strncmp(text, " *", 2) == 0;
    check_macro(l, path, line, text, len && text[len - 1] == '\\');
    if (in_macro || l->macro || comment) {
        l->why_long = comment && (l->why_long || strstr(text, "Long because"));
        l->many = comment && (l->many || strstr(text, "Many because"));
        return;
    }
    if (l->start && text[0] == '}') {
        if (line - l->start - 1 > FUNCTION_LINES && !may_be_long(l->name)) {
            too_many(path, l->start, "function too long", line - l->start - 1, "lines");
        }
        l->start = 0;
    } else if (!l->start) {
        check_head(l, path, line, text, len);
    }
    l->why_long = false;
    l->many = l->many && l->head;
}
