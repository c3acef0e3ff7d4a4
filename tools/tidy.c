/* tidy.c: the mechanical part of the house style, as a test.
 *
 * Checks every C file below the given root: include layers and places (src/layers.def), lengths of files and lines,
 * leftovers, tabs and trailing blanks, a README in every source folder, and that a .c file with a header of its own
 * name includes it first; lengths of functions and macros, numbers of parameters (tidy_lengths.c); that headers compile
 * alone (tidy_headers.c), and that pages name the files there are (tidy_docs.c). Prints one line per finding,
 * `path:line: what`, and exits 1 when there is any. */
#include "tidy.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layers.def"

enum { FILE_LINES = 1500, LINE_COLUMNS = 120 };

struct layer {
    const char *folder, *folders, *headers;
};
static const struct layer layers[] = {
#define X(A, folder, folders, headers) {folder, folders, headers},
    WF_LAYERS(X, )
#undef X
};
static const struct {
    const char *header, *files;
} places[] = {
#define X(A, header, files) {header, files},
    WF_PLACES(X, )
#undef X
};
/* Spelt in halves so that this file passes its own check. */
static const char *const leftovers[] = {"TO" "DO", "FIX" "ME", "XX" "X ", "#if" " 0", "HA" "CK"};

static int findings;

void found(const char *path, int line, const char *what, const char *detail) {
    printf("%s:%d: %s%s%s\n", path, line, what, *detail ? ": " : "", detail);
    findings++;
}

bool ends_with(const char *name, const char *suffix) {
    size_t len = strlen(name), end = strlen(suffix);
    return len >= end && strcmp(name + len - end, suffix) == 0;
}

/* Is `word` one of the blank-separated words of `list`? */
static bool has_word(const char *list, const char *word, size_t len) {
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, word, len) == 0) {
            return true;
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

static const struct layer *layer_of(const char *path) {
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        size_t len = strlen(layers[i].folder);
        if (strncmp(path, layers[i].folder, len) == 0 && path[len] == '/') {
            return &layers[i];
        }
    }
    return NULL;
}

static void check_own_include(const char *path, int line, const char *header) {
    const struct layer *layer = layer_of(path);
    size_t len = strlen(header);
    const char *slash = strchr(header, '/');
    bool numbers = strncmp(header, "codes/", 6) == 0; /* made from tables */
    if (!layer || numbers || (len > 4 && strcmp(header + len - 4, ".def") == 0)) {
        return;
    }
    const char *own = strrchr(layer->folder, '/');
    own = own ? own + 1 : layer->folder;
    bool is_own = !slash || (strncmp(header, own, strlen(own)) == 0 && header[strlen(own)] == '/');
    bool insider = len > 6 && strcmp(header + len - 6, "_int.h") == 0 && strncmp(header, "defs/", 5) != 0;
    if (!slash && strncmp(layer->folder, "src/", 4) != 0) {
        return; /* shell and bench: local headers and warpfox.h */
    }
    if (is_own && slash) {
        return;
    }
    if (!slash && strcmp(layer->folder, "src/gpu") == 0) {
        return; /* kernel text names its headers without a folder */
    }
    bool allowed = has_word(layer->headers, header, len) ||
                   (slash && !insider && has_word(layer->folders, header, (size_t)(slash - header)));
    if (!allowed) {
        found(path, line, "includes a header its layer may not see", header);
    }
}

static void check_include(const char *path, int line, const char *text) {
    char header[LINE_CAP];
    const char *open = strpbrk(text + 8, "\"<");
    if (!open) {
        return;
    }
    size_t len = strcspn(open + 1, "\">");
    memcpy(header, open + 1, len);
    header[len] = 0;
    if (*open == '"') {
        check_own_include(path, line, header);
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bool scope = strncmp(path, "src/", 4) == 0 || strncmp(path, "shell/", 6) == 0;
        if (scope && strcmp(header, places[i].header) == 0 && !has_word(places[i].files, path, strlen(path))) {
            found(path, line, "system header outside its place", header);
        }
    }
}

static void check_text(const char *path, int line, const char *text, size_t len) {
    if (strchr(text, '\t')) {
        found(path, line, "tab", "");
    }
    if (len && text[len - 1] == ' ') {
        found(path, line, "trailing blank", "");
    }
    size_t columns = 0;
    for (size_t i = 0; i < len; i++) {
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    if (columns > LINE_COLUMNS) {
        found(path, line, "line too long", "");
    }
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++) {
        if (strstr(text, leftovers[i])) {
            found(path, line, "leftover", leftovers[i]);
        }
    }
}

static void check_first_include(const char *path, int line, const char *text, const char *root) {
    char header[PATH_CAP + 8], file[2 * PATH_CAP + 16];
    size_t len = strlen(path);
    if (strncmp(path, "src/", 4) != 0 || len < 6 || strcmp(path + len - 2, ".c") != 0) {
        return;
    }
    snprintf(header, sizeof header, "%.*s.h", (int)(len - 6), path + 4);
    snprintf(file, sizeof file, "%s/src/%s", root, header);
    struct stat info;
    if (stat(file, &info) == 0 && !strstr(text, header)) {
        found(path, line, "its own header must come first", header);
    }
}

static void check_file(const char *root, const char *path) {
    char full[2 * PATH_CAP + 8];
    static char text[LINE_CAP];
    snprintf(full, sizeof full, "%s/%s", root, path);
    FILE *in = fopen(full, "r");
    if (!in) {
        found(path, 0, "cannot be read", "");
        return;
    }
    struct lengths lengths = {0};
    int line = 0;
    bool first_include = true;
    bool generated = false;
    while (fgets(text, sizeof text, in)) {
        line++;
        size_t len = strcspn(text, "\n");
        text[len] = 0;
        generated = generated || (line == 1 && strstr(text, "Generated"));
        if (generated) {
            continue;
        }
        check_text(path, line, text, len);
        lengths_line(&lengths, path, line, text, len);
        if (strncmp(text, "#include", 8) == 0) {
            if (first_include) {
                check_first_include(path, line, text, root);
                first_include = false;
            }
            check_include(path, line, text);
        }
    }
    if (line > FILE_LINES && !generated) {
        found(path, line, "file too long", "");
    }
    fclose(in);
}

static bool is_source(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".c") || !strcmp(dot, ".h") || !strcmp(dot, ".def") || !strcmp(dot, ".cu"));
}

static void walk(const char *root, const char *folder) {
    char full[PATH_CAP], path[PATH_CAP];
    snprintf(full, sizeof full, "%s/%s", root, folder);
    DIR *dir = opendir(full);
    if (!dir) {
        return;
    }
    bool has_source = false, has_readme = false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "%.500s/%.500s", folder, entry->d_name);
        snprintf(full, sizeof full, "%.500s/%.510s", root, path);
        struct stat info;
        if (stat(full, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode)) {
            walk(root, path);
        } else if (is_source(entry->d_name)) {
            has_source = true;
            check_file(root, path);
        }
        if (S_ISREG(info.st_mode)) {
            docs_add_file(path);
        }
        if (ends_with(path, ".h")) {
            header_check(root, path);
        }
        has_readme = has_readme || !strcmp(entry->d_name, "README.md");
    }
    closedir(dir);
    if (has_source && !has_readme && strcmp(folder, "src") != 0 && strcmp(folder, "include") != 0) {
        found(folder, 0, "has no README.md", "");
    }
}

int main(int argc, char **argv) {
    const char *root = argc > 1 ? argv[1] : ".";
    static const char *const tops[] = {"include", "src", "shell", "bench", "examples", "tests", "tools", "docs"};
    static const char *const pages[] = {"README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md"};
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++) {
        walk(root, tops[i]);
    }
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        docs_add_file(pages[i]);
    }
    docs_check(root);
    printf("tidy: %d finding%s\n", findings, findings == 1 ? "" : "s");
    return findings ? 1 : 0;
}
