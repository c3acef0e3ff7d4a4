/* shell.h: what the files of the shell share. The shell sees the library through warpfox.h only. */
#ifndef WF_SHELL_SHELL_H
#define WF_SHELL_SHELL_H

#include <stdbool.h>
#include <stdio.h>

#include "option.h"
#include "warpfox.h"

enum format {
    FORMAT_BOX,
    FORMAT_CSV,
    FORMAT_TSV,
    FORMAT_JSON,
    FORMAT_JSONL,
    FORMAT_MARKDOWN,
    FORMAT_LINE,
    FORMAT_NONE,
    FORMAT_COUNT
};
extern const char *const format_names[FORMAT_COUNT];
int format_find(const char *name); /* -1 when unknown */

enum { EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* What -c and -f gave, in order. */
struct input {
    bool is_file;
    const char *text; /* statements, or the file's name */
};

struct options {
    struct input *inputs;
    int input_count;
    const char *file;     /* the database, not supported yet */
    const char *language; /* "sql" */
    enum format format;
    bool timer;
    bool keep_going;
    bool ascii;
    bool no_rc;
    struct option_settings settings; /* for wf_open */
};
/* Returns -1 to go on, else the exit status (help and version print to stdout, mistakes to stderr).
 */
int options_parse(int argc, char **argv, struct options *out);
void options_fini(struct options *options);

/* Growing text; memory failures end the program with a message. */
struct strbuf {
    char *ptr; /* NUL-terminated once anything was appended; NULL before */
    size_t len;
    size_t cap;
};
void strbuf_append(struct strbuf *buf, const char *text, size_t len);
void strbuf_print(struct strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));
void strbuf_clear(struct strbuf *buf);
void strbuf_free(struct strbuf *buf);
void *shell_alloc(size_t bytes); /* zeroed; never NULL */
void *shell_grow(void *ptr, size_t bytes);

struct shell {
    wf_database *db;
    wf_connection *conn;
    enum format format;
    bool timer;
    bool keep_going;
    bool ascii;
    bool interactive;
    bool stdin_is_script;  /* statements come from there, and the lines of COPY FROM STDIN */
    bool logiql;           /* the language of statements: .language */
    bool quit;             /* .quit was given */
    bool expanded;         /* boxes are shown as lines: \x */
    int32_t max_rows;      /* of a box; 0 = all */
    int32_t max_width;     /* of a box; 0 = the terminal's */
    const char *explain;   /* level put before statements, or NULL */
    int read_depth;        /* of nested .read */
    const char *script;    /* the file being read, or NULL */
    struct strbuf recent;  /* the statement run last, for \e */
    struct strbuf typed;   /* statements an editor left for the prompt */
    struct output *output; /* where results go instead of stdout; NULL = there */
};
/* Columns that results may take; 0 = as many as they need. */
int shell_columns(const struct shell *shell);

/* Where the text being run came from, for error messages; name NULL = the command line or a
 * terminal. */
struct origin {
    const char *name;
    long line; /* of the text's first character, from 1 */
};

/* script.c. Each returns false when an error was printed and the script must stop. */
bool run_script(struct shell *shell, const char *text, size_t len, struct origin origin);
bool run_file(struct shell *shell, const char *path);
bool run_stream(struct shell *shell, FILE *in, const char *name);
bool run_statement(struct shell *shell, const char *sql, struct origin origin);
/* Where the first statement ends, in the shell's language; see wf_scan_statement. */
size_t scan_statement(const struct shell *shell, const char *text, size_t len, int *out_blank);
/* Statements are in this language from now on. */
bool set_language(struct shell *shell, const char *name);
/* A query of the shell's own, in SQL. */
bool query_sql(struct shell *shell, const char *sql, wf_result **out);
bool complain_of_last(struct shell *shell); /* its error, on stderr; false */
/* True when the line is a command of the shell (.help, \q, exit, …). */
bool is_command(const char *line, size_t len);

/* copy_in.c: COPY … FROM STDIN and its lines. */
struct copy_in {
    size_t stdin_at;  /* of the word in the statement; 0 = the statement is another one */
    const char *data; /* NULL: what comes in on standard input */
    size_t bytes;
    size_t used; /* of the text: statement, lines, and the end's line */
};
/* Looks behind the statement, the text's first bytes; false when the lines' end is yet to come. */
bool copy_in_find(const struct shell *shell, const char *text, size_t statement, size_t len,
                  bool at_end, struct copy_in *out);
bool copy_in_run(struct shell *shell, const char *sql, const struct copy_in *in,
                 struct origin origin);

/* commands.c: runs such a line; false when it failed. */
bool run_command(struct shell *shell, const char *line, size_t len);
/* What command number i is called and takes, or NULL at the end; some are other names of others. */
const char *command_name(int i);
const char *command_args(const char *name, size_t len); /* NULL = there is no such command */
bool complain(const char *format, const char *word);    /* on stderr; false */

/* lists.c: \d and its kin: what there is, by kind. */
bool list_tables(struct shell *shell, const char *pattern);
bool list_schema(struct shell *shell, const char *name); /* "" = of all tables */
/* Clauses that derive predicates; the predicates by strata; no more clauses for one. */
bool list_rules(struct shell *shell, const char *pattern);
bool list_strata(struct shell *shell, const char *pattern);
bool drop_rules(struct shell *shell, const char *name);
bool list_objects(struct shell *shell, const char *kind, const char *pattern);
bool list_functions(struct shell *shell, const char *pattern);

/* output.c: results that go to a file or to a command. */
bool output_to(struct shell *shell, const char *target, bool once); /* "" = stdout again */
void output_begin(struct shell *shell);                             /* a statement's, a command's */
void output_end(struct shell *shell);
void output_close(struct shell *shell);

/* dump.c: .dump. */
bool dump(struct shell *shell, const char *arg);

/* editor.c: \e and \!. */
bool edit_text(struct shell *shell, const char *path); /* "" = the statement run last */
bool run_program(const char *command);                 /* "" = the user's shell */

/* A time as people read it. */
struct time_text {
    char text[48];
};
struct time_text time_text(int64_t ns);

/* render_box.c, render_text.c: read the result and write it to stdout. False when it could not be
 * read to its end: because of an error, which wf_result_error has, or of Ctrl-C. */
bool render_box(const struct shell *shell, wf_result *result);
/* The lines of EXPLAIN, which are no table. */
bool render_is_plan(wf_result *result);
bool render_text(enum format format, wf_result *result);
bool render(const struct shell *shell, wf_result *result);
/* The next rows, or NULL at the end, on errors, and after Ctrl-C; *out_ok tells these apart. */
const wf_batch *next_rows(wf_result *result, bool *out_ok);

/* journal.c: what was typed, from one session to the next. */
struct journal;
struct journal *journal_open(void **out_list); /* libedit's list; NULL: no memory */
void journal_close(struct journal *journal);
void journal_add(struct journal *journal, const char *text, size_t len);

/* complete.c: the ways to go on from what stands before the cursor. */
struct candidates {
    char **items;
    int count;
    int cap;
};
/* `command` is where a command of the shell may begin in the text. Returns where the part begins
 * that the candidates stand for. */
size_t complete(struct shell *shell, const char *text, size_t len, size_t cursor, size_t command,
                struct candidates *out);
void candidates_add(struct candidates *list, const char *text);
void candidates_free(struct candidates *list);

/* repl.c: the interactive loop; returns the exit status. */
int repl(struct shell *shell);

/* progress.c: a bar on stderr for statements over a second. */
void progress_start(struct shell *shell); /* once; does nothing unless stderr is a terminal */
void progress_clear(void);

/* terminal.c: the one place that knows terminals and signals. */
bool terminal_is_tty(int fd);
int terminal_columns(void); /* of stdout; 0 = unlimited */
void terminal_watch_interrupt(wf_connection *conn);
void terminal_set_running(bool running); /* Ctrl-C cancels the statement while set */
bool terminal_interrupted(void);         /* Ctrl-C came while nothing ran; clears it */
bool terminal_cancelled(void);           /* Ctrl-C came since a statement was set running */
void terminal_ignore_pipe(bool on);      /* a reader that leaves does not end the program */

/* bench/: `warpfox bench NAME …`, with argv[0] = "bench". Returns the exit status. */
int bench_main(int argc, char **argv);

#endif
