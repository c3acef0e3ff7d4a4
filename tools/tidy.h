/* tidy.h: what the checks of the house style share. */
#ifndef WF_TOOLS_TIDY_H
#define WF_TOOLS_TIDY_H

#include <stdbool.h>
#include <stddef.h>

enum { PATH_CAP = 1024, LINE_CAP = 4096 };

/* One finding: `path:line: what: detail`. */
void found(const char *path, int line, const char *what, const char *detail);

/* A file's name ends with this. */
bool ends_with(const char *name, const char *suffix);

/* tidy_docs.c: pages name the files that there are. First all files are told, then all pages. */
void docs_add_file(const char *path);
void docs_check(const char *root);

/* tidy_headers.c: compiles a header with nothing before it. */
void header_check(const char *root, const char *path);

#endif
