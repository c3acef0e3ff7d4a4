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

/* tidy_lengths.c: functions and macros of a file, told line by line. Zero at its first line. */
struct lengths {
    int head;  /* first line of what may be a function's head; 0: outside one */
    int start; /* last line of the head of the function we are in; 0: outside one */
    int macro; /* first line of a macro; 0: outside one */
    int depth, parameters;
    bool in_comment, macro_long, why_long, many; /* the last two: the comment above says why */
    char name[128];
};
void lengths_line(struct lengths *l, const char *path, int line, const char *text, size_t len);

/* tidy_docs.c: pages name the files that there are. First all files are told, then all pages. */
void docs_add_file(const char *path);
void docs_check(const char *root);

/* tidy_headers.c: compiles a header with nothing before it. */
void header_check(const char *root, const char *path);

#endif
