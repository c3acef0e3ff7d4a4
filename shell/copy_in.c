/* copy_in.c: COPY … FROM STDIN: the lines behind the statement, up to one that is `\.` alone.
 *
 * The library reads files, and knows no standard input of its own. So the lines go into a file that
 * lives as long as the statement, and the statement names it instead of STDIN. Their format is that
 * of any COPY: csv, unless its options say otherwise. */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next word of the statement, outside quotes. */
static bool next_word(const char *sql, size_t len, size_t *io_at, size_t *out_len) {
    size_t at = *io_at;
    while (at < len && !is_word_byte(sql[at])) {
        char quote = sql[at++];
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

bool copy_in_find(const char *text, size_t statement, size_t len, bool at_end,
                  struct copy_in *out) {
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
    out->bytes = (size_t)(end - out->data);
    out->used = len;
    return at_end;
}

bool copy_in_run(struct shell *shell, const char *sql, const struct copy_in *in,
                 struct origin origin) {
    char path[] = "/tmp/warpfox-copy-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    bool fine = file && fwrite(in->data, 1, in->bytes, file) == in->bytes;
    fine = file && fclose(file) == 0 && fine;
    if (!fine) {
        fflush(stdout);
        fprintf(stderr, "ERROR 58030: cannot keep the lines of COPY in \"%s\"\n", path);
    } else {
        struct strbuf text = {0};
        strbuf_append(&text, sql, in->stdin_at);
        strbuf_print(&text, "'%s'", path);
        strbuf_append(&text, sql + in->stdin_at + 5, strlen(sql + in->stdin_at + 5));
        fine = run_statement(shell, text.ptr, origin);
        strbuf_free(&text);
    }
    remove(path);
    return fine;
}
