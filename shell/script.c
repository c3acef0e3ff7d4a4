/* script.c: runs text: cuts it into statements and commands, runs each, shows results and errors.
 *
 * Text is run statement by statement, not parsed as a whole, so that a mistake spares what came
 * before it. A line that begins, between statements, with `.` or `\` is a command of the shell; so
 * are the words help, exit and quit alone on a line. */
#define _POSIX_C_SOURCE 200809L
#include "shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec ts;
    timespec_get(&ts, TIME_UTC);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct time_text time_text(int64_t ns) {
    struct time_text out;
    wf_duration_text(ns, out.text, sizeof out.text);
    return out;
}

const wf_batch *next_rows(wf_result *result, bool *out_ok) {
    const wf_batch *batch = NULL;
    *out_ok = wf_result_next_batch(result, &batch) == WF_OK && !terminal_cancelled();
    return *out_ok && !ferror(stdout) ? batch : NULL; /* nobody reads it any more */
}

bool render(const struct shell *shell, wf_result *result) {
    if (wf_result_column_count(result) == 0 && wf_result_row_count(result) == 0) {
        if (shell->interactive) {
            fprintf(stderr, "%s (%s)\n", wf_result_tag(result),
                    time_text(wf_result_time_ns(result)).text);
        }
        return true;
    }
    if (shell->format != FORMAT_BOX) {
        return render_text(shell->format, result);
    }
    return shell->expanded && !render_is_plan(result) ? render_text(FORMAT_LINE, result)
                                                      : render_box(shell, result);
}

static void print_error(const wf_error *error, const char *sql, struct origin origin) {
    size_t len = wf_error_text(error, sql, NULL, 0);
    char *text = shell_alloc(len + 1);
    wf_error_text(error, sql, text, len + 1);
    fflush(stdout);
    if (origin.name) {
        long line = origin.line + (error->line > 0 ? (long)error->line - 1 : 0);
        fprintf(stderr, "%s:%ld: ", origin.name, line);
    }
    fprintf(stderr, "%s\n", text);
    free(text);
}

static bool starts_with_word(const char *sql, const char *word) {
    size_t len = strlen(word);
    while (*sql == ' ' || *sql == '\t' || *sql == '\n' || *sql == '(') {
        sql++;
    }
    return strncasecmp(sql, word, len) == 0;
}

/* With .explain on, statements that have a plan are shown instead of run. */
static char *with_explain(const struct shell *shell, const char *sql) {
    struct strbuf out = {0};
    bool query = shell->logiql && sql[strspn(sql, " \t\r\n")] == '_';
    bool has_plan = query || starts_with_word(sql, "select") || starts_with_word(sql, "insert") ||
                    starts_with_word(sql, "with") || starts_with_word(sql, "values");
    if (shell->explain && has_plan) {
        strbuf_print(&out, "EXPLAIN (%s) ", shell->explain);
    }
    strbuf_append(&out, sql, strlen(sql));
    return out.ptr;
}

/* Shows the rows, which may still have to be computed. */
static bool show_result(struct shell *shell, wf_result *result, const char *sql,
                        struct origin origin) {
    bool fine = render(shell, result);
    if (!fine) {
        progress_clear();
        const wf_error *error = wf_result_error(result);
        wf_error stopped = {.status = WF_CANCELLED,
                            .sqlstate = "57014",
                            .message = "output stopped on request",
                            .position = -1};
        print_error(error->status ? error : &stopped, sql, origin);
    }
    return fine;
}

size_t scan_statement(const struct shell *shell, const char *text, size_t len, int *out_blank) {
    return shell->logiql ? wf_scan_clause(text, len, out_blank)
                         : wf_scan_statement(text, len, out_blank);
}

static void keep_recent(struct shell *shell, const char *sql) {
    sql += strspn(sql, " \t\r\n");
    strbuf_clear(&shell->recent);
    strbuf_append(&shell->recent, sql, strlen(sql));
}

/* What a text gives, result by result. */
struct showing {
    struct shell *shell;
    const char *text;
    struct origin origin;
    int64_t computed_ns; /* before results were shown */
    bool fine;
};

static int show_each(void *arg, wf_result *result) {
    struct showing *s = arg;
    progress_clear();
    s->computed_ns -= wf_result_time_ns(result);
    s->fine = show_result(s->shell, result, s->text, s->origin) && s->fine;
    s->computed_ns += wf_result_time_ns(result); /* without the time for output */
    wf_result_close(result);
    return !s->fine;
}

/* A statement of SQL has one result; clauses have one for every query among them. */
static bool run_text(struct showing *s) {
    wf_result *result = NULL;
    if (s->shell->logiql) {
        return wf_query_each(s->shell->conn, s->text, show_each, s) == WF_OK;
    }
    int64_t start_ns = now_ns();
    bool fine = wf_query(s->shell->conn, s->text, &result) == WF_OK;
    s->computed_ns += now_ns() - start_ns;
    if (fine && result) {
        show_each(s, result);
    }
    return fine;
}

bool run_statement(struct shell *shell, const char *sql, struct origin origin) {
    char *text = with_explain(shell, sql);
    struct showing showing = {shell, text, origin, 0, true};
    keep_recent(shell, sql);
    output_begin(shell); /* COPY TO STDOUT writes there by itself */
    terminal_set_running(true);
    bool fine = run_text(&showing);
    progress_clear();
    const wf_error *error = fine ? NULL : wf_connection_error(shell->conn);
    for (int32_t i = 0; error; i++) {
        print_error(error, text, origin);
        error = wf_connection_further_error(shell->conn, i);
    }
    terminal_set_running(false);
    output_end(shell);
    if (shell->timer) {
        fflush(stdout);
        fprintf(stderr, "time %s\n", time_text(showing.computed_ns).text);
    }
    free(text);
    return fine && showing.fine;
}

int shell_columns(const struct shell *shell) {
    return shell->max_width ? shell->max_width : terminal_columns();
}

bool is_command(const char *line, size_t len) {
    static const char *const words[] = {"help", "exit", "quit"};
    while (len > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        len--;
    }
    while (len > 0 && strchr(" \t\r\n;", line[len - 1])) {
        len--;
    }
    if (len > 0 && (line[0] == '.' || line[0] == '\\')) {
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (len == strlen(words[i]) && strncasecmp(line, words[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static long count_lines(const char *text, size_t len) {
    long lines = 0;
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

/* Bytes of white space at the start. */
static size_t blank_prefix(const char *text, size_t len) {
    size_t n = 0;
    while (n < len && strchr(" \t\r\n", text[n]) && text[n]) {
        n++;
    }
    return n;
}

/* A script in LogiQL is one transaction: all clauses up to the next command or the end. */
static size_t scan_clauses(const char *text, size_t len, int *out_blank) {
    size_t at = 0;
    *out_blank = 1;
    while (at < len) {
        int blank;
        size_t next = at + blank_prefix(text + at, len - at);
        const char *newline = next < len ? memchr(text + next, '\n', len - next) : NULL;
        size_t line_len = newline ? (size_t)(newline - text) + 1 - next : len - next;
        bool fresh = next == 0 || text[next - 1] == '\n';
        if (next < len && fresh && is_command(text + next, line_len)) {
            return next;
        }
        size_t used = wf_scan_clause(text + at, len - at, &blank);
        *out_blank = *out_blank && blank;
        at = used ? at + used : len;
    }
    return at;
}

/* One statement or command from the front of the text. Returns the bytes used; 0 when the text
 * holds no whole one and `at_end` is false. */
static size_t run_first(struct shell *shell, const char *text, size_t len, struct origin origin,
                        bool at_end, bool *out_ok) {
    const char *newline = memchr(text, '\n', len);
    size_t line_len = newline ? (size_t)(newline - text) + 1 : len;
    if ((newline || at_end) && is_command(text, line_len)) {
        *out_ok = run_command(shell, text, line_len);
        return line_len;
    }
    if (!newline && !at_end && is_command(text, len)) {
        return 0; /* its line is not whole yet */
    }
    int blank;
    size_t used = shell->logiql && at_end ? scan_clauses(text, len, &blank)
                                          : scan_statement(shell, text, len, &blank);
    if (used == 0 && !at_end) {
        return 0;
    }
    used = used ? used : len;
    struct copy_in copy = {.used = used};
    if (!blank && !shell->logiql && !copy_in_find(shell, text, used, len, at_end, &copy)) {
        return 0;
    }
    if (!blank && memchr(text, 0, used)) {
        fflush(stdout);
        fprintf(stderr, "ERROR 22021: the text holds a NUL byte\n");
        *out_ok = false;
    } else if (!blank) {
        char *sql = shell_alloc(used + 1);
        memcpy(sql, text, used);
        *out_ok = copy.stdin_at ? copy_in_run(shell, sql, &copy, origin)
                                : run_statement(shell, sql, origin);
        free(sql);
    }
    return copy.used;
}

/* Runs what is whole; returns the bytes used. */
static size_t run_whole(struct shell *shell, const char *text, size_t len, struct origin *origin,
                        bool at_end, bool *out_ok) {
    size_t at = 0;
    bool go_on = true;
    while (at < len && go_on && !shell->quit) {
        size_t skip = blank_prefix(text + at, len - at);
        origin->line += count_lines(text + at, skip);
        at += skip;
        if (at == len) {
            break;
        }
        bool fine = true;
        size_t used = run_first(shell, text + at, len - at, *origin, at_end, &fine);
        if (used == 0) {
            break;
        }
        origin->line += count_lines(text + at, used);
        at += used;
        *out_ok = *out_ok && fine;
        go_on = fine || shell->keep_going;
        if (terminal_interrupted()) {
            *out_ok = false;
            go_on = false;
        }
    }
    return at;
}

bool run_script(struct shell *shell, const char *text, size_t len, struct origin origin) {
    bool ok = true;
    run_whole(shell, text, len, &origin, true, &ok);
    return ok;
}

bool run_file(struct shell *shell, const char *path) {
    if (strcmp(path, "-") == 0) {
        return run_stream(shell, stdin, NULL);
    }
    FILE *in = fopen(path, "rb");
    if (!in) {
        fflush(stdout);
        fprintf(stderr, "ERROR 58P01: cannot open \"%s\": %s\n", path, strerror(errno));
        return false;
    }
    struct strbuf text = {0};
    char block[65536];
    size_t got;
    while ((got = fread(block, 1, sizeof block, in)) > 0) {
        strbuf_append(&text, block, got);
    }
    bool ok = !ferror(in);
    if (!ok) {
        fprintf(stderr, "ERROR 58030: cannot read \"%s\": %s\n", path, strerror(errno));
    }
    fclose(in);
    if (ok && text.len > 0) {
        const char *outer = shell->script;
        shell->script = path;
        ok = run_script(shell, text.ptr, text.len, (struct origin){path, 1});
        shell->script = outer;
    }
    strbuf_free(&text);
    return ok;
}

/* Statements run as they arrive, so that a program can talk to the shell through a pipe. */
bool run_stream(struct shell *shell, FILE *in, const char *name) {
    struct strbuf pending = {0};
    struct origin origin = {name, 1};
    char *line = NULL;
    size_t cap = 0;
    bool ok = true;
    bool go_on = true;
    shell->stdin_is_script = shell->stdin_is_script || in == stdin;
    while (go_on && !shell->quit) {
        ssize_t got = getline(&line, &cap, in);
        bool at_end = got <= 0;
        if (!at_end) {
            bool can_end = memchr(line, shell->logiql ? '.' : ';', (size_t)got) ||
                           pending.len == 0 || strncmp(line, "\\.", 2) == 0;
            strbuf_append(&pending, line, (size_t)got);
            if (!can_end) {
                continue;
            }
        }
        if (pending.len > 0) {
            size_t used = run_whole(shell, pending.ptr, pending.len, &origin, at_end, &ok);
            memmove(pending.ptr, pending.ptr + used, pending.len - used);
            pending.len -= used;
            fflush(stdout);
        }
        go_on = !at_end && (ok || shell->keep_going);
    }
    free(line);
    strbuf_free(&pending);
    return ok;
}
