/* copy_in.c: COPY … FROM STDIN: the lines behind the statement, up to one that is `\.` alone, or
 * what comes in on standard input.
 *
 * The library reads files, and knows no statement's lines. So these go into a file that lives as
 * long as the statement, and the statement names it instead of STDIN. A statement of -c or -f with
 * no such lines names /dev/stdin. The format is that of any COPY: csv, unless its options say
 * otherwise. */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next word of the statement, outside quotes and parentheses. */
static bool next_word(const char *sql, size_t len, size_t *io_at, size_t *out_len) {
    size_t at = *io_at, depth = 0;
    while (at < len && (depth > 0 || !is_word_byte(sql[at]))) {
        char quote = sql[at++];
        depth += quote == '(';
        depth -= quote == ')' && depth > 0;
        while ((quote == '\'' || quote == '"') && at < len && sql[at++] != quote) {
        }
    }
    size_t end = at;
    while (end < len && is_word_byte(sql[end])) {
        end++;
    }
    *io_at = at;
    *out_len = end - at;
    return end > at;
}

static bool is_word(const char *sql, size_t at, size_t len, const char *word) {
    return len == strlen(word) && strncasecmp(sql + at, word, len) == 0;
}

/* Where STDIN stands in COPY … FROM STDIN; 0 when the statement is another one. */
static size_t find_stdin(const char *sql, size_t len) {
    size_t at = 0, word = 0;
    bool from = false;
    if (!next_word(sql, len, &at, &word) || !is_word(sql, at, word, "copy")) {
        return 0;
    }
    for (at += word; next_word(sql, len, &at, &word); at += word) {
        if (from && is_word(sql, at, word, "stdin")) {
            return at;
        }
        from = is_word(sql, at, word, "from");
    }
    return 0;
}

bool copy_in_find(const struct shell *shell, const char *text, size_t statement, size_t len,
                  bool at_end, struct copy_in *out) {
    *out = (struct copy_in){.stdin_at = find_stdin(text, statement), .used = statement};
    if (!out->stdin_at) {
        return true;
    }
    const char *end = text + len;
    const char *line = memchr(text + statement, '\n', len - statement);
    line = line ? line + 1 : end;
    out->data = line;
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((newline ? newline : end) - line);
        size -= size > 0 && line[size - 1] == '\r';
        if (size == 2 && line[0] == '\\' && line[1] == '.') {
            out->bytes = (size_t)(line - out->data);
            out->used = (size_t)((newline ? newline + 1 : end) - text);
            return newline || at_end;
        }
        line = newline ? newline + 1 : end;
    }
    if (!shell->stdin_is_script) {
        out->data = NULL;
        return true;
    }
    out->bytes = (size_t)(end - out->data);
    out->used = len;
    return at_end;
}

/* The statement with a file instead of STDIN. */
static bool run_with(struct shell *shell, const char *sql, const struct copy_in *in,
                     const char *path, struct origin origin) {
    struct strbuf text = {0};
    strbuf_append(&text, sql, in->stdin_at);
    strbuf_print(&text, "'%s'", path);
    strbuf_append(&text, sql + in->stdin_at + 5, strlen(sql + in->stdin_at + 5));
    bool fine = run_statement(shell, text.ptr, origin);
    strbuf_free(&text);
    return fine;
}

bool copy_in_run(struct shell *shell, const char *sql, const struct copy_in *in,
                 struct origin origin) {
    if (!in->data) {
        return run_with(shell, sql, in, "/dev/stdin", origin);
    }
    char path[] = "/tmp/warpfox-copy-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool fine = file && fwrite(in->data, 1, in->bytes, file) == in->bytes;
    fine = file && fclose(file) == 0 && fine;
    if (!fine) {
        fflush(stdout);
        fprintf(stderr, "ERROR 58030: cannot keep the lines of COPY in \"%s\"\n", path);
    } else {
        fine = run_with(shell, sql, in, path, origin);
    }
    remove(path);
    return fine;
}
