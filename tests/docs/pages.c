/* pages.c: runs what documents show, and compares.
 *
 *   pages [--update] WARPFOX PAGE...
 *
 * Of a page in Markdown, fenced blocks are run from top to bottom, in a scratch folder of the page's own:
 *
 *   ```LANGUAGE NAME   a file of that name is written
 *   ```sql             statements for one shell that lives as long as the page; what they print is in the ```text block
 *                      that follows, or they print nothing
 *   ```sh              lines that begin with `$ ` are commands, the lines below each what it prints
 *
 * Other blocks are only read. Times differ from run to run: a number before ms, s or GB/s is any number; behind
 * ```text varies all numbers are. `…` in an expected line stands for anything, a line of nothing else for any number
 * of lines. --update writes what was printed into the page where it differs. Ends with `N passed, N failed`. */
#define _GNU_SOURCE
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char dots[] = "…";
static int passed, failed;
static bool varies; /* all numbers of the block at hand */

struct text {
    char *ptr;
    size_t len;
};

static void add(struct text *to, const char *from, size_t len) {
    to->ptr = realloc(to->ptr, to->len + len + 1);
    if (!to->ptr) {
        exit(2);
    }
    memcpy(to->ptr + to->len, from, len);
    to->len += len;
    to->ptr[to->len] = 0;
}

static void add_text(struct text *to, const char *from) {
    add(to, from, strlen(from));
}

static struct text read_stream(FILE *in) {
    struct text out = {0};
    char piece[4096];
    add(&out, "", 0);
    for (size_t got; (got = fread(piece, 1, sizeof piece, in)) > 0;) {
        add(&out, piece, got);
    }
    return out;
}

/* --- comparing --- */

static size_t line_len(const char *at) {
    return strcspn(at, "\n");
}

/* The length of a number at `at` that may differ; 0 when there is none. */
static size_t measured(const char *at, const char *end) {
    static const char *const units[] = {" ms", " s", " min", " GB/s", " GiB", " MiB"};
    size_t n = varies && at[0] == '-' && (at + 1 == end || at[1] == ' '); /* no number */
    while (at + n < end && (isdigit((unsigned char)at[n]) || at[n] == '.')) {
        n++;
    }
    for (size_t i = 0; n && i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i]);
        if ((size_t)(end - at) >= n + len && memcmp(at + n, units[i], len) == 0 &&
            (at + n + len == end || !isalnum((unsigned char)at[n + len]))) {
            return units[i][1] == 'G' || units[i][1] == 'M' ? n : n + len; /* ms may be s the next time */
        }
    }
    return varies ? n : 0;
}

static bool line_matches(const char *want, const char *want_end, const char *got, const char *got_end) {
    while (want < want_end) {
        if ((size_t)(want_end - want) >= strlen(dots) && memcmp(want, dots, strlen(dots)) == 0) {
            want += strlen(dots);
            for (; got <= got_end; got++) {
                if (line_matches(want, want_end, got, got_end)) {
                    return true;
                }
            }
            return false;
        }
        size_t a = measured(want, want_end), b = measured(got, got_end);
        if (a && b) {
            want += a;
            got += b;
        } else if (got < got_end && *want == ' ' && *got == ' ') { /* columns are filled up with blanks */
            want += strspn(want, " ");
            got += strspn(got, " ");
        } else if (got < got_end && *want == *got) {
            want++;
            got++;
        } else {
            return false;
        }
    }
    return got == got_end;
}

/* Blanks at the end of both do not count. */
static bool matches(const char *want, const char *got) {
    while (*want == '\n' && !want[strspn(want, "\n")]) {
        want++;
    }
    if (!*want) {
        return got[strspn(got, "\n")] == 0;
    }
    size_t w = line_len(want);
    if (w == strlen(dots) && memcmp(want, dots, w) == 0) {
        const char *rest = want + w + (want[w] == '\n');
        for (const char *at = got;; at += line_len(at) + 1) {
            if (matches(rest, at)) {
                return true;
            }
            if (!at[line_len(at)]) {
                return !*rest;
            }
        }
    }
    size_t g = line_len(got);
    return line_matches(want, want + w, got, got + g) &&
           matches(want + w + (want[w] == '\n'), got + g + (got[g] == '\n'));
}

/* Tells a difference; true when the page is to be changed. */
static bool differs(const char *page, int line, const char *what, const char *want, const char *got) {
    if (matches(want, got)) {
        passed++;
        return false;
    }
    failed++;
    printf("FAIL %s:%d: %.*s\nexpected:\n%s\ngot:\n%s\n", page, line, (int)line_len(what), what, want, got);
    return true;
}

/* --- the shell of a page --- */

struct shell {
    FILE *in, *out;
    pid_t pid;
};

static bool shell_open(struct shell *shell, const char *program) {
    int to[2], from[2];
    if (pipe(to) || pipe(from)) {
        return false;
    }
    shell->pid = fork();
    if (shell->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        dup2(from[1], 2);
        close(to[0]);
        close(to[1]);
        close(from[0]);
        close(from[1]);
        execl(program, program, "--keep-going", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    shell->in = fdopen(to[1], "w");
    shell->out = fdopen(from[0], "r");
    return shell->pid > 0 && shell->in && shell->out;
}

/* Runs statements; what they print. The mark is printed by a command of the system, after all that came before. */
static struct text shell_run(struct shell *shell, const char *sql) {
    static const char mark[] = "@@end of block@@";
    struct text out = {0};
    char line[8192];
    add(&out, "", 0);
    fprintf(shell->in, "%s\n\\! echo '%s'\n", sql, mark);
    fflush(shell->in);
    while (fgets(line, sizeof line, shell->out)) {
        if (strncmp(line, mark, strlen(mark)) == 0) {
            return out;
        }
        add_text(&out, line);
    }
    add_text(&out, "(the shell has ended)\n");
    return out;
}

static void shell_close(struct shell *shell) {
    int status;
    fclose(shell->in);
    while (fgetc(shell->out) != EOF) {
    }
    fclose(shell->out);
    waitpid(shell->pid, &status, 0);
}

/* --- pages --- */

struct page {
    const char *path;
    char *at;          /* the rest of its text */
    int line;          /* of `at` */
    struct text fresh; /* what the page should be */
    struct shell shell;
};

/* The next line, kept in `fresh`; NULL at the end. */
static const char *next_line(struct page *page, size_t *out_len) {
    const char *line = page->at;
    if (!*line) {
        return NULL;
    }
    *out_len = line_len(line);
    page->at += *out_len + (line[*out_len] == '\n');
    page->line++;
    return line;
}

static void keep(struct page *page, const char *from) {
    add(&page->fresh, from, (size_t)(page->at - from));
}

static bool is_fence(const char *line) {
    return line && strncmp(line, "```", 3) == 0;
}

/* The lines of a block up to its end, which is read too. */
static struct text block_text(struct page *page) {
    struct text out = {0};
    size_t len;
    add(&out, "", 0);
    for (const char *line; (line = next_line(page, &len)) && !is_fence(line);) {
        add(&out, line, len);
        add_text(&out, "\n");
    }
    return out;
}

static void run_sql(struct page *page) {
    const char *from = page->at;
    int line = page->line;
    struct text sql = block_text(page);
    struct text got = shell_run(&page->shell, sql.ptr);
    size_t blank = strspn(page->at, "\n");
    const char *next = page->at + blank;
    varies = strncmp(next, "```text varies\n", 15) == 0;
    if (varies || strncmp(next, "```text\n", 8) == 0) {
        for (size_t i = 0, len; i <= blank; i++) {
            (void)next_line(page, &len);
        }
        keep(page, from);
        from = page->at;
        struct text want = block_text(page);
        if (differs(page->path, line, sql.ptr, want.ptr, got.ptr)) {
            add_text(&page->fresh, got.ptr);
            add_text(&page->fresh, "```\n");
        } else {
            keep(page, from);
        }
        free(want.ptr);
    } else {
        keep(page, from);
        if (differs(page->path, line, sql.ptr, "", got.ptr)) {
            add_text(&page->fresh, "\n```text\n");
            add_text(&page->fresh, got.ptr);
            add_text(&page->fresh, "```\n");
        }
    }
    varies = false;
    free(sql.ptr);
    free(got.ptr);
}

static void run_command(struct page *page, const char *command, int line, const char *want) {
    struct text full = {0};
    add_text(&full, "exec 2>&1\n");
    add_text(&full, command);
    FILE *out = popen(full.ptr, "r");
    struct text got = out ? read_stream(out) : (struct text){0};
    if (out) {
        pclose(out);
    }
    bool other = differs(page->path, line, command, want, got.ptr ? got.ptr : "");
    add_text(&page->fresh, "$ ");
    add_text(&page->fresh, command);
    add_text(&page->fresh, other ? got.ptr : want);
    free(full.ptr);
    free(got.ptr);
}

static void run_commands(struct page *page) {
    struct text command = {0}, want = {0};
    int line = page->line;
    size_t len;
    add(&want, "", 0);
    for (const char *at;;) {
        at = next_line(page, &len);
        bool ends = !at || is_fence(at);
        if (ends || strncmp(at, "$ ", 2) == 0) {
            if (command.len) {
                run_command(page, command.ptr, line, want.ptr);
            }
            command.len = want.len = 0;
            line = page->line;
            add(&want, "", 0);
            if (!ends) {
                add(&command, at + 2, len - 2);
                add_text(&command, "\n");
            }
        } else {
            bool goes_on = command.len > 1 && command.ptr[command.len - 2] == '\\' && !want.len;
            add(goes_on ? &command : &want, at, len);
            add_text(goes_on ? &command : &want, "\n");
        }
        if (ends) {
            add_text(&page->fresh, "```\n");
            break;
        }
    }
    free(command.ptr);
    free(want.ptr);
}

static void write_file(struct page *page, const char *name, size_t len) {
    const char *from = page->at;
    char path[256];
    struct text text = block_text(page);
    snprintf(path, sizeof path, "%.*s", (int)len, name);
    FILE *out = strchr(path, '/') ? NULL : fopen(path, "w");
    if (!out || fwrite(text.ptr, 1, text.len, out) != text.len || fclose(out)) {
        failed++;
        printf("FAIL %s:%d: cannot write %s\n", page->path, page->line, path);
    }
    keep(page, from);
    free(text.ptr);
}

static void run_blocks(struct page *page) {
    size_t len;
    for (const char *line; (line = next_line(page, &len));) {
        keep(page, line);
        if (!is_fence(line)) {
            continue;
        }
        const char *blank = memchr(line, ' ', len);
        if (blank) {
            write_file(page, blank + 1, len - (size_t)(blank + 1 - line));
        } else if (len == 6 && memcmp(line + 3, "sql", 3) == 0) {
            run_sql(page);
        } else if (len == 5 && memcmp(line + 3, "sh", 2) == 0) {
            run_commands(page);
        } else {
            const char *from = page->at;
            free(block_text(page).ptr);
            keep(page, from);
        }
    }
}

static bool run_page(const char *program, const char *path, bool update) {
    char folder[] = "/tmp/pages.XXXXXX", full[PATH_MAX], command[100];
    FILE *in = realpath(path, full) ? fopen(full, "r") : NULL;
    struct page page = {.path = path, .line = 1};
    if (!in || !mkdtemp(folder) || chdir(folder)) {
        printf("FAIL %s cannot be read\n", path);
        return false;
    }
    struct text text = read_stream(in);
    fclose(in);
    page.at = text.ptr;
    int before = failed;
    if (!shell_open(&page.shell, program)) {
        return false;
    }
    run_blocks(&page);
    shell_close(&page.shell);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    bool clean = chdir("/") == 0 && system(command) == 0;
    FILE *out = update && failed > before ? fopen(full, "w") : NULL;
    if (out) {
        fwrite(page.fresh.ptr, 1, page.fresh.len, out);
        fclose(out);
    }
    free(page.fresh.ptr);
    free(text.ptr);
    return clean;
}

int main(int argc, char **argv) {
    bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    int first = update ? 2 : 1;
    char program[PATH_MAX], start[PATH_MAX];
    if (argc < first + 2 || !realpath(argv[first], program) || !getcwd(start, sizeof start)) {
        fprintf(stderr, "usage: pages [--update] WARPFOX PAGE...\n");
        return 2;
    }
    for (int i = first + 1; i < argc; i++) {
        if (chdir(start) || !run_page(program, argv[i], update)) {
            failed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
