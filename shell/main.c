/* main.c: warpfox: options, subcommands, and which of the three ways to read statements applies.
 *
 * Statements come from -c and -f in the order given; else from a pipe as a script; else from a
 * person. The exit status is 0, 1 after an error, 2 for a wrong command line. Opening the database
 * touches no GPU, so the shell is ready in a few milliseconds. */
#include "shell.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool has_left; /* what is left to do is the operating system's */

static void no_memory(void) {
    fprintf(stderr, "warpfox: out of memory\n");
    exit(EXIT_ERROR);
}

void *shell_alloc(size_t bytes) {
    void *ptr = calloc(1, bytes ? bytes : 1);
    if (!ptr) {
        no_memory();
    }
    return ptr;
}

void *shell_grow(void *ptr, size_t bytes) {
    void *grown = realloc(ptr, bytes);
    if (!grown) {
        no_memory();
    }
    return grown;
}

static void strbuf_reserve(struct strbuf *buf, size_t more) {
    if (buf->len + more + 1 > buf->cap) {
        size_t cap = buf->cap * 2 > buf->len + more + 1 ? buf->cap * 2 : buf->len + more + 64;
        buf->ptr = shell_grow(buf->ptr, cap);
        buf->cap = cap;
    }
}

void strbuf_append(struct strbuf *buf, const char *text, size_t len) {
    strbuf_reserve(buf, len);
    if (len) {
        memcpy(buf->ptr + buf->len, text, len);
    }
    buf->len += len;
    buf->ptr[buf->len] = 0;
}

void strbuf_print(struct strbuf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    strbuf_reserve(buf, (size_t)len);
    va_start(args, format);
    vsnprintf(buf->ptr + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
}

void strbuf_clear(struct strbuf *buf) {
    buf->len = 0;
    if (buf->ptr) {
        buf->ptr[0] = 0;
    }
}

void strbuf_free(struct strbuf *buf) {
    free(buf->ptr);
    *buf = (struct strbuf){0};
}

static void print_error(const wf_error *error) {
    char text[2000];
    wf_error_text(error, NULL, text, sizeof text);
    fprintf(stderr, "%s\n", text);
}

static int devices_main(int argc, char **argv) {
    if (argc > 1) {
        fprintf(stderr, "warpfox: devices takes no \"%s\"\nTry `warpfox --help`.\n", argv[1]);
        return EXIT_USAGE;
    }
    wf_database *db;
    wf_error error;
    if (wf_open(NULL, NULL, &db, &error)) {
        print_error(&error);
        return EXIT_ERROR;
    }
    char *text = wf_devices(db);
    fputs(text ? text : "", stdout);
    wf_free(text);
    wf_close(db);
    return 0;
}

/* Opening reads and verifies everything; nothing is written. */
static int check_main(int argc, char **argv) {
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "warpfox: check takes one database file\nTry `warpfox --help`.\n");
        return EXIT_USAGE;
    }
    wf_database *db;
    wf_error error;
    wf_option options[] = {{"readonly", "on"}, {NULL, NULL}};
    if (wf_open(argv[1], options, &db, &error)) {
        print_error(&error);
        return EXIT_ERROR;
    }
    struct shell shell = {.db = db, .format = FORMAT_BOX, .max_rows = 1000};
    bool fine = wf_connect(db, &shell.conn) == WF_OK &&
                run_script(&shell, "call check_database()", strlen("call check_database()"),
                           (struct origin){0});
    wf_disconnect(shell.conn);
    wf_close(db);
    return fine ? 0 : EXIT_ERROR;
}

static int run_inputs(struct shell *shell, const struct options *options) {
    bool ok = true;
    for (int i = 0; i < options->input_count && !shell->quit && (ok || shell->keep_going); i++) {
        const struct input *in = &options->inputs[i];
        bool fine = in->is_file ? run_file(shell, in->text)
                                : run_script(shell, in->text, strlen(in->text), (struct origin){0});
        ok = ok && fine;
    }
    return ok ? 0 : EXIT_ERROR;
}

/* What a person wants at every prompt; scripts do not depend on it. Its errors stop nothing. */
static void run_rc(struct shell *shell) {
    const char *given = getenv("WARPFOX_RC");
    const char *home = getenv("HOME");
    struct strbuf path = {0};
    if (given) {
        strbuf_print(&path, "%s", given);
    } else if (home) {
        strbuf_print(&path, "%s/.warpfoxrc", home);
    }
    FILE *file = path.len > 0 ? fopen(path.ptr, "rb") : NULL;
    if (file) {
        fclose(file);
        bool keep_going = shell->keep_going;
        shell->keep_going = true;
        (void)run_file(shell, path.ptr);
        shell->keep_going = keep_going;
    } else if (given && given[0]) {
        (void)complain("WARPFOX_RC names \"%s\", which cannot be read", given);
    }
    strbuf_free(&path);
}

static int run_session(struct shell *shell, const struct options *options) {
    if (options->input_count > 0) {
        return run_inputs(shell, options);
    }
    if (terminal_is_tty(0)) {
        shell->interactive = shell->stdin_is_script = true;
        if (!options->no_rc) {
            run_rc(shell);
        }
        return shell->quit ? 0 : repl(shell);
    }
    return run_stream(shell, stdin, NULL) ? 0 : EXIT_ERROR;
}

static void print_notice(void *arg, const char *severity, const char *text) {
    (void)arg;
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "%s:  %s\n", severity, text);
}

/* Giving back memory and a card takes as long as a short statement, and the process ends anyway. Test builds look
 * for what nobody gives back. */
static void leave(wf_database *db) {
#ifdef WF_HARD
    wf_close(db);
#else
    wf_leave(db);
    has_left = true;
#endif
}

static int shell_main(const struct options *options) {
    wf_error error;
    struct shell shell = {
        .format = options->format,
        .timer = options->timer,
        .keep_going = options->keep_going,
        .ascii = options->ascii,
        .max_rows = 40,
    };
    if (wf_open(options->file, options->settings.list, &shell.db, &error)) {
        print_error(&error);
        return options->file ? EXIT_ERROR : EXIT_USAGE;
    }
    int status = EXIT_ERROR;
    if (wf_connect(shell.db, &shell.conn)) {
        fprintf(stderr, "warpfox: out of memory\n");
    } else {
        terminal_watch_interrupt(shell.conn);
        (void)!wf_set_notice(shell.conn, print_notice, NULL);
        progress_start(&shell);
        (void)set_language(&shell, options->language);
        status = run_session(&shell, options);
        terminal_watch_interrupt(NULL);
        output_close(&shell);
        strbuf_free(&shell.recent);
        strbuf_free(&shell.typed);
    }
    wf_disconnect(shell.conn);
    leave(shell.db);
    return status;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the name */
} subcommands[] = {
    {"bench", bench_main},
    {"check", check_main},
    {"devices", devices_main},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof subcommands / sizeof subcommands[0]; i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            return subcommands[i].run(argc - 1, argv + 1);
        }
    }
    struct options options;
    int status = options_parse(argc, argv, &options);
    if (status < 0) {
        status = shell_main(&options);
    }
    options_fini(&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "warpfox: cannot write to standard output\n");
        status = status ? status : EXIT_ERROR;
    }
    if (has_left) {
        _Exit(status);
    }
    return status;
}
