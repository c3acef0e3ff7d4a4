/* tidy_docs.c: pages say which files there are, and files say which decisions they follow.
 *
 * A README names every file of its folder (itself and module.cmake excepted): by name, or by a pattern with `*` that
 * begins with a letter. The first cell of its tables names files of that folder only. Anywhere in a page a name
 * with the ending of a source file is a file that exists: from the root, from src/ or from the page's folder when it
 * has a folder, anywhere when it has none. docs/decisions/README.md is an index of the decisions; a number cited
 * anywhere exists, and every decision is cited by a source. */
#define _GNU_SOURCE
#include "tidy.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers.def"

enum { FILES = 8192 };
static char *files[FILES]; /* paths from the root */
static int file_count;

void docs_add_file(const char *path) {
    if (file_count < FILES) {
        files[file_count++] = strdup(path);
    }
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool in_folder(const char *path, const char *folder) {
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && path[len] == '/' && !strchr(path + len + 1, '/');
}

static bool matches(const char *word, const char *name) {
    return strchr(word, '*') ? isalpha((unsigned char)word[0]) && fnmatch(word, name, 0) == 0 : !strcmp(word, name);
}

/* The next word of a line that could be the name of a file; NULL at the end. */
static char *next_word(char **at) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./*";
    char *start = *at + strcspn(*at, letters);
    size_t len = strspn(start, letters);
    *at = start + len + (start[len] != 0);
    if (!len) {
        return NULL;
    }
    start[len] = 0;
    while (len && (start[len - 1] == '.' || start[len - 1] == '/')) {
        start[--len] = 0;
    }
    return start;
}

static const char *const system_headers[] = {
#define X(A, header, files) header,
    WF_PLACES(X, )
#undef X
};

static bool names_source(const char *word) {
    for (size_t i = 0; i < sizeof system_headers / sizeof *system_headers; i++) {
        if (strcmp(word, system_headers[i]) == 0) {
            return false;
        }
    }
    static const char *const endings[] = {".c", ".h", ".def", ".py", ".sh", ".cmake", ".cu", ".test"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (ends_with(word, endings[i]) && isalnum((unsigned char)word[0])) {
            return true;
        }
    }
    return false;
}

static bool exists(const char *word, const char *folder) {
    char path[3][2 * PATH_CAP];
    snprintf(path[0], sizeof path[0], "%s", word);
    snprintf(path[1], sizeof path[1], "src/%s", word);
    snprintf(path[2], sizeof path[2], "%s/%s", folder, word);
    for (int f = 0; f < file_count; f++) {
        if (!strchr(word, '/') && matches(word, base_name(files[f]))) {
            return true;
        }
        for (int i = 0; i < 3; i++) {
            if (matches(path[i], files[f])) {
                return true;
            }
        }
    }
    return false;
}

static bool here(const char *word, const char *folder) {
    for (int f = 0; f < file_count; f++) {
        if (in_folder(files[f], folder) && matches(word, base_name(files[f]))) {
            return true;
        }
    }
    return false;
}

/* Files that the page at hand writes itself: blocks with a name (tests/docs). */
static char own_files[16][64];
static int own_count;

static bool is_own(const char *word) {
    for (int i = 0; i < own_count; i++) {
        if (strcmp(own_files[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static void read_own(FILE *in) {
    char text[LINE_CAP];
    own_count = 0;
    while (fgets(text, sizeof text, in)) {
        const char *name = strncmp(text, "```", 3) == 0 ? strchr(text, ' ') : NULL;
        if (name && own_count < 16) {
            snprintf(own_files[own_count++], sizeof own_files[0], "%.*s", (int)strcspn(name + 1, "\n"), name + 1);
        }
    }
    rewind(in);
}

/* Words of one line of a page; marks the files of `folder` that it names. */
static void check_line(const char *page, int line, char *text, const char *folder, bool *named) {
    bool table = text[0] == '|';
    char *cell_end = table ? strchr(text + 1, '|') : NULL;
    char *at = text;
    for (char *word; (word = next_word(&at));) {
        bool first_cell = cell_end && word < cell_end;
        for (int f = 0; named && f < file_count; f++) {
            named[f] = named[f] || (in_folder(files[f], folder) && matches(word, base_name(files[f])));
        }
        if (!names_source(word) || is_own(word)) {
            continue;
        }
        if (named && first_cell && !strchr(word, '/') && !here(word, folder)) {
            found(page, line, "names a file that is not in this folder", word);
        } else if (!exists(word, folder)) {
            found(page, line, "names a file that there is not", word);
        }
    }
}

static void check_page(const char *root, const char *page) {
    static char text[1 << 16];
    static bool named[FILES];
    char full[2 * PATH_CAP + 8], folder[PATH_CAP];
    bool readme = ends_with(page, "/README.md");
    snprintf(full, sizeof full, "%s/%s", root, page);
    snprintf(folder, sizeof folder, "%.*s", (int)(base_name(page) - page > 0 ? base_name(page) - page - 1 : 0), page);
    FILE *in = fopen(full, "r");
    if (!in) {
        found(page, 0, "cannot be read", "");
        return;
    }
    memset(named, 0, sizeof named);
    read_own(in);
    bool block = false; /* code is not prose */
    for (int line = 1; fgets(text, sizeof text, in); line++) {
        block = block != (strncmp(text, "```", 3) == 0);
        if (!block) {
            check_line(page, line, text, folder, readme ? named : NULL);
        }
    }
    fclose(in);
    for (int f = 0; readme && f < file_count; f++) {
        const char *name = base_name(files[f]);
        bool plain = strcmp(name, "README.md") == 0 || strcmp(name, "module.cmake") == 0;
        if (in_folder(files[f], folder) && !named[f] && !plain) {
            found(page, 0, "does not name a file of its folder", name);
        }
    }
}

enum { DECISIONS = 10000 };
static bool decided[DECISIONS], cited[DECISIONS];

/* Numbers behind `decision `, `decisions ` and `decisions/` in a file. */
static void read_citations(const char *root, const char *path) {
    static char text[1 << 16];
    char full[2 * PATH_CAP + 8];
    snprintf(full, sizeof full, "%s/%s", root, path);
    FILE *in = fopen(full, "r");
    for (int line = 1; in && fgets(text, sizeof text, in); line++) {
        for (const char *at = text; (at = strstr(at, "decision"));) {
            at += strlen("decision");
            at += *at == 's';
            char *end;
            long number = *at == ' ' || *at == '/' ? strtol(at + 1, &end, 10) : 0;
            if (number <= 0 || end - at != 5 || number >= DECISIONS) {
                continue;
            }
            if (!decided[number]) {
                char detail[20];
                snprintf(detail, sizeof detail, "%04ld", number);
                found(path, line, "cites a decision that there is not", detail);
            }
            cited[number] = cited[number] || strncmp(path, "docs/", 5) != 0;
        }
    }
    if (in) {
        fclose(in);
    }
}

static void check_decisions(const char *root) {
    for (int f = 0; f < file_count; f++) {
        if (in_folder(files[f], "docs/decisions") && isdigit((unsigned char)base_name(files[f])[0])) {
            decided[strtol(base_name(files[f]), NULL, 10) % DECISIONS] = true;
        }
    }
    for (int f = 0; f < file_count; f++) {
        read_citations(root, files[f]);
    }
    for (int f = 0; f < file_count; f++) {
        const char *name = base_name(files[f]);
        if (in_folder(files[f], "docs/decisions") && isdigit((unsigned char)name[0]) &&
            !cited[strtol(name, NULL, 10) % DECISIONS]) {
            found(files[f], 0, "no source cites it", "");
        }
    }
}

void docs_check(const char *root) {
    for (int f = 0; f < file_count; f++) {
        /* what they name is of their day, and may be gone */
        bool record = strncmp(files[f], "bench/results/", 14) == 0 ||
                      strncmp(files[f], "docs/decisions/0", 16) == 0;
        if (ends_with(files[f], ".md") && !record && strcmp(files[f], "CHANGELOG.md") != 0) {
            check_page(root, files[f]);
        }
    }
    check_decisions(root);
    for (int f = 0; f < file_count; f++) {
        free(files[f]);
    }
}
