/* gendoc_api.c: a public header as a page: its comments as prose, its declarations as code.
 *
 * The header is the contract, so nothing is said twice. It reads text, not C: behind `extern "C" {`, a line of dashes
 * and the comment below it begin a section; paragraphs between blank lines are a comment and the declarations it is
 * about. What stands between #if and #endif (Arrow's structs) is left out. */
#define _GNU_SOURCE
#include "gendoc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t line_len(const char *at) {
    return strcspn(at, "\n");
}

/* A comment's lines without its signs, as prose; returns what follows it. */
static char *print_comment(FILE *out, char *at) {
    char *end = strstr(at, "*/");
    for (char *line = at + 2; end && line < end;) {
        size_t len = line_len(line);
        len = line + len > end ? (size_t)(end - line) : len;
        size_t skip = strspn(line, " ");
        skip += line[skip] == '*' && line + skip < end;
        skip += line[skip] == ' ' && line + skip < end;
        size_t text = len > skip ? len - skip : 0;
        text -= text && line[skip + text - 1] == ' ';
        fprintf(out, "%.*s\n", (int)text, line + skip);
        line += len + 1;
    }
    return end ? end + 2 + (end[2] == '\n') : at + strlen(at);
}

/* Lines up to the matching #endif. */
static char *skip_condition(char *at) {
    int depth = 0;
    do {
        depth += strncmp(at, "#if", 3) == 0;
        depth -= strncmp(at, "#endif", 6) == 0;
        at += line_len(at) + (at[line_len(at)] == '\n');
    } while (*at && depth > 0);
    return at;
}

/* One paragraph: the comment, then everything up to a blank line that is not inside braces. */
static char *print_paragraph(FILE *out, char *at) {
    int depth = 0;
    if (strncmp(at, "/*", 2) == 0) {
        at = print_comment(out, at);
        fputc('\n', out);
    }
    if (!*at || *at == '\n') {
        return at;
    }
    fputs("```c\n", out);
    while (*at && (*at != '\n' || depth > 0)) {
        size_t len = line_len(at);
        const char *code = strncmp(at, "WF_API ", 7) == 0 ? at + 7 : at;
        fprintf(out, "%.*s\n", (int)(at + len - code), code);
        for (size_t i = 0; i < len; i++) {
            depth += (at[i] == '{') - (at[i] == '}');
        }
        at += len + (at[len] == '\n');
    }
    fputs("```\n\n", out);
    return at;
}

bool write_header(FILE *out, const char *path) {
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t cap = 0;
    bool read = in && getdelim(&text, &cap, 0, in) > 0;
    char *at = read ? strstr(text, "extern \"C\" {\n#endif\n") : NULL;
    char *end = at ? strstr(at, "#ifdef __cplusplus\n}") : NULL;
    at = end ? strchr(strstr(at, "#endif"), '\n') : NULL;
    if (end) {
        *end = 0;
    }
    while (at && *at) {
        if (*at == '\n') {
            at++;
        } else if (strncmp(at, "/* -----", 8) == 0) {
            at += line_len(at) + 1;
            fputs("### ", out);
            at = print_comment(out, at);
            fputc('\n', out);
        } else if (strncmp(at, "#if", 3) == 0) {
            at = skip_condition(at);
        } else if (*at == '#') {
            at += line_len(at) + 1;
        } else {
            at = print_paragraph(out, at);
        }
    }
    free(text);
    if (in) {
        fclose(in);
    }
    return end != NULL;
}
