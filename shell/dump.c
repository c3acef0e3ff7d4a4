/* dump.c: .dump: the whole database as one text of statements, rows included.
 *
 * EXPORT DATABASE writes it to a folder that lives as long as the command: what makes the tables, what fills and
 * ends them, and a file of rows each. Here these are put together: a COPY that reads a file becomes one that
 * reads the lines behind it, as `warpfox FILE <dump.sql` and .read understand them (copy_in.c). */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HERE " FROM /* here */ '"

static char *path_in(const char *folder, const char *name, size_t len) {
    struct strbuf path = {0};
    strbuf_append(&path, folder, strlen(folder));
    strbuf_append(&path, "/", 1);
    strbuf_append(&path, name, len);
    return path.ptr;
}

static void print_quoted(struct strbuf *out, const char *text) {
    strbuf_append(out, "'", 1);
    for (; *text; text++) {
        strbuf_append(out, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
    }
    strbuf_append(out, "'", 1);
}

/* A file goes to stdout, and is no more. */
static bool print_file(const char *path) {
    char block[1 << 16];
    FILE *in = fopen(path, "rb");
    bool fine = in != NULL;
    for (size_t n; in && (n = fread(block, 1, sizeof block, in)) > 0;) {
        fine = fine && fwrite(block, 1, n, stdout) == n;
    }
    fine = fine && !ferror(in);
    if (in) {
        (void)fclose(in);
        (void)remove(path);
    }
    return fine;
}

/* A line of load.sql that reads rows from a file there: with its rows; else as it is. */
static bool print_line(const char *folder, const char *line, size_t len) {
    static const size_t here = sizeof HERE - 1;
    size_t from = 0, name = 0;
    for (size_t at = 5; strncmp(line, "COPY ", 5) == 0 && at + here < len; at++) {
        from = memcmp(line + at, HERE, here) == 0 ? at : from; /* the last one: names may have it, too */
    }
    for (name = from + here; from && name < len && line[name] != '\''; name++) {
    }
    char *path = from && name < len ? path_in(folder, line + from + here, name - from - here) : NULL;
    FILE *rows = path ? fopen(path, "rb") : NULL;
    bool fine = true;
    if (rows) {
        (void)fclose(rows);
        printf("%.*s FROM STDIN%.*s", (int)from, line, (int)(len - name - 1), line + name + 1);
        fine = print_file(path);
        printf("\\.\n");
    } else {
        fine = fwrite(line, 1, len, stdout) == len;
    }
    free(path);
    return fine;
}

static bool print_loads(const char *folder, const char *path) {
    FILE *in = fopen(path, "rb");
    char *line = NULL;
    size_t cap = 0;
    bool fine = in != NULL;
    for (ssize_t n; fine && (n = getline(&line, &cap, in)) > 0;) {
        fine = print_line(folder, line, (size_t)n);
    }
    free(line);
    if (in) {
        (void)fclose(in);
        (void)remove(path);
    }
    return fine;
}

/* With what an export that failed has left there. */
static void remove_folder(const char *folder) {
    DIR *names = opendir(folder);
    for (const struct dirent *name; names && (name = readdir(names));) {
        char *path = path_in(folder, name->d_name, strlen(name->d_name));
        (void)(name->d_name[0] != '.' && remove(path));
        free(path);
    }
    if (names) {
        (void)closedir(names);
    }
    (void)remove(folder);
}

bool dump(struct shell *shell, const char *arg) {
    (void)arg;
    const char *place = getenv("TMPDIR");
    char *folder = path_in(place && place[0] ? place : "/tmp", "warpfox-dump-XXXXXX", 19);
    if (!mkdtemp(folder)) {
        fprintf(stderr, "ERROR 58030: cannot make \"%s\": %s\n", folder, strerror(errno));
        free(folder);
        return false;
    }
    struct strbuf sql = {0};
    strbuf_print(&sql, "EXPORT DATABASE ");
    print_quoted(&sql, folder);
    bool fine = query_sql(shell, sql.ptr, NULL);
    if (!fine) {
        complain_of_last(shell);
    } else {
        char *schema = path_in(folder, "schema.sql", 10), *load = path_in(folder, "load.sql", 8);
        fine = print_file(schema) && print_loads(folder, load) && !fflush(stdout);
        if (!fine) {
            fprintf(stderr, "ERROR 58030: the dump could not be written: %s\n", strerror(errno));
        }
        free(load);
        free(schema);
    }
    remove_folder(folder);
    strbuf_free(&sql);
    free(folder);
    return fine;
}
