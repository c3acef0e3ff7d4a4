/* corpus.c: the statements of sqllogictest scripts, to be changed and run.
 *
 * A piece is the SQL of one record. Files that scripts write lie in the folder of whoever runs
 * them: paths below /tmp lose their folder. */
#define _POSIX_C_SOURCE 200809L
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void *grow(void *ptr, size_t bytes) {
    void *out = realloc(ptr, bytes);
    if (!out) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return out;
}

static void add_piece(struct script *script, char *sql) {
    for (char *at = strstr(sql, "/tmp/"); at; at = strstr(at, "/tmp/")) {
        memmove(at, at + 5, strlen(at + 5) + 1);
    }
    size_t len = strlen(sql) + 1;
    char *text = grow(NULL, len);
    memcpy(text, sql, len);
    script->pieces = grow(script->pieces, ((size_t)script->count + 1) * sizeof *script->pieces);
    script->pieces[script->count++] = text;
}

/* What stands between the first line of a record and a blank line or `----`. */
static bool read_script(const char *path, struct script *script) {
    static char line[20000];
    static char sql[20000];
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return false;
    }
    size_t len = 0;
    bool inside = false;
    while (fgets(line, sizeof line, file)) {
        bool ends = line[0] == '\n' || strncmp(line, "----", 4) == 0;
        size_t count = strlen(line);
        if (inside && ends) {
            add_piece(script, sql);
            inside = false;
        } else if (inside && len + count < sizeof sql) {
            memcpy(sql + len, line, count + 1);
            len += count;
        } else if (strncmp(line, "statement ", 10) == 0 || strncmp(line, "query ", 6) == 0) {
            inside = true;
            len = 0;
            sql[0] = 0;
        }
    }
    if (inside) {
        add_piece(script, sql);
    }
    fclose(file);
    return true;
}

bool corpus_open(struct corpus *c, const char *const *patterns, int count) {
    for (int i = 0; i < count; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) != 0) {
            continue;
        }
        for (size_t k = 0; k < found.gl_pathc; k++) {
            c->scripts = grow(c->scripts, ((size_t)c->count + 1) * sizeof *c->scripts);
            struct script *script = &c->scripts[c->count];
            *script = (struct script){.pieces = NULL};
            snprintf(script->path, sizeof script->path, "%s", found.gl_pathv[k]);
            if (!read_script(script->path, script)) {
                return false;
            }
            c->count += script->count > 0;
        }
        globfree(&found);
    }
    return c->count > 0;
}

void corpus_close(struct corpus *c) {
    for (int i = 0; i < c->count; i++) {
        for (int k = 0; k < c->scripts[i].count; k++) {
            free(c->scripts[i].pieces[k]);
        }
        free(c->scripts[i].pieces);
    }
    free(c->scripts);
}

const char *corpus_piece(const struct corpus *c, struct gen *g) {
    const struct script *script = &c->scripts[below(g, c->count)];
    return script->pieces[below(g, script->count)];
}
