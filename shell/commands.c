/* commands.c: the shell's own commands: .help .tables .schema .timer .mode .read .devices .explain
 * .quit.
 *
 * A command is one line. psql's \q, \d, \dt, \dv and \? and the bare words help, exit and quit are
 * other names for the same functions. To add a command: one function, one line in the table, a test
 * in tests/shell. */
#include "shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool complain(const char *format, const char *word) {
    fflush(stdout);
    fprintf(stderr, format, word);
    fputc('\n', stderr);
    return false;
}

static bool command_help(struct shell *shell, const char *arg);

static int print_table(void *arg, const char *name) {
    (void)arg;
    printf("%s\n", name);
    return 0;
}

static bool command_tables(struct shell *shell, const char *arg) {
    (void)arg;
    return wf_tables(shell->conn, print_table, NULL) == WF_OK;
}

static bool print_schema(struct shell *shell, const char *table) {
    char *text = NULL;
    if (wf_describe(shell->conn, table, &text) != WF_OK) {
        char error[2000];
        wf_error_text(wf_connection_error(shell->conn), NULL, error, sizeof error);
        return complain("%s", error);
    }
    fputs(text, stdout);
    wf_free(text);
    return true;
}

static int collect_name(void *arg, const char *name) {
    struct candidates *list = arg;
    if (list->count == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 16;
        list->items = shell_grow(list->items, sizeof(char *) * (size_t)list->cap);
    }
    char *copy = shell_alloc(strlen(name) + 1);
    list->items[list->count++] = strcpy(copy, name);
    return 0;
}

static bool command_schema(struct shell *shell, const char *arg) {
    if (arg[0]) {
        return print_schema(shell, arg);
    }
    struct candidates tables = {0};
    bool ok = wf_tables(shell->conn, collect_name, &tables) == WF_OK;
    for (int i = 0; ok && i < tables.count; i++) {
        ok = print_schema(shell, tables.items[i]);
    }
    candidates_free(&tables);
    return ok;
}

static bool command_describe(struct shell *shell, const char *arg) {
    return arg[0] ? command_schema(shell, arg) : command_tables(shell, arg);
}

static bool command_views(struct shell *shell, const char *arg) {
    wf_result *result = NULL;
    const wf_batch *batch = NULL;
    (void)arg;
    if (wf_query(shell->conn, "select viewname from pg_catalog.pg_views order by 1", &result)) {
        return complain("%s", wf_connection_error(shell->conn)->message);
    }
    while (wf_result_next_batch(result, &batch) == WF_OK && batch) {
        for (int64_t i = 0; i < wf_batch_rows(batch); i++) {
            wf_text name = wf_batch_text(batch, 0, i);
            printf("%.*s\n", (int)name.len, name.ptr);
        }
    }
    wf_result_close(result);
    return true;
}

static bool command_timer(struct shell *shell, const char *arg) {
    if (strcasecmp(arg, "on") != 0 && strcasecmp(arg, "off") != 0) {
        return complain(".timer takes on or off, not \"%s\"", arg);
    }
    shell->timer = strcasecmp(arg, "on") == 0;
    return true;
}

static bool command_mode(struct shell *shell, const char *arg) {
    int format = format_find(arg);
    if (format < 0) {
        return complain(
            ".mode takes box, csv, tsv, json, jsonl, markdown, line or none, not \"%s\"", arg);
    }
    shell->format = (enum format)format;
    return true;
}

enum { MAX_READ_DEPTH = 16 };

static bool command_read(struct shell *shell, const char *arg) {
    if (!arg[0]) {
        return complain(".read needs the name of a file%s", "");
    }
    if (shell->read_depth == MAX_READ_DEPTH) {
        return complain("\"%s\": .read is nested too deeply", arg);
    }
    shell->read_depth++;
    bool ok = run_file(shell, arg);
    shell->read_depth--;
    return ok;
}

static bool command_devices(struct shell *shell, const char *arg) {
    (void)arg;
    char *text = wf_devices(shell->db);
    fputs(text ? text : "", stdout);
    wf_free(text);
    return true;
}

static bool command_explain(struct shell *shell, const char *arg) {
    static const char *const levels[] = {"plan", "program", "opcodes", "cuda", "analyze"};
    if (!arg[0]) {
        printf("explain is %s\n", shell->explain ? shell->explain : "off");
        return true;
    }
    if (strcasecmp(arg, "off") == 0 || strcasecmp(arg, "on") == 0) {
        shell->explain = strcasecmp(arg, "on") == 0 ? levels[0] : NULL;
        return true;
    }
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(arg, levels[i]) == 0) {
            shell->explain = levels[i];
            return true;
        }
    }
    return complain(".explain takes on, off, plan, program, opcodes, cuda or analyze, not \"%s\"",
                    arg);
}

static bool command_quit(struct shell *shell, const char *arg) {
    (void)arg;
    shell->quit = true;
    return true;
}

struct command {
    const char *name;
    const char *args; /* for help; NULL = not listed */
    bool (*run)(struct shell *shell, const char *arg);
    const char *help;
};

static const struct command commands[] = {
    {".help", "", command_help, "this list"},
    {".tables", "", command_tables, "names of the tables"},
    {".schema", "[TABLE]", command_schema, "definition of a table, or of all"},
    {".timer", "on|off", command_timer, "print the time of each statement on stderr"},
    {".mode", "FORMAT", command_mode, "box, csv, tsv, json, jsonl, markdown, line or none"},
    {".read", "FILE", command_read, "run a script"},
    {".devices", "", command_devices, "processors and GPUs found"},
    {".explain", "[on|off|LEVEL]", command_explain,
     "show statements instead of running them: plan, program, opcodes, cuda, analyze"},
    {".quit", "", command_quit, "leave; also Ctrl-D"},
    {".exit", NULL, command_quit, NULL},
    {"\\q", NULL, command_quit, NULL},
    {"\\d", NULL, command_describe, NULL},
    {"\\dt", NULL, command_tables, NULL},
    {"\\dv", NULL, command_views, NULL},
    {"\\?", NULL, command_help, NULL},
    {"help", NULL, command_help, NULL},
    {"exit", NULL, command_quit, NULL},
    {"quit", NULL, command_quit, NULL},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static bool command_help(struct shell *shell, const char *arg) {
    (void)shell;
    (void)arg;
    printf("Statements end with `;` and may span lines. Ctrl-C cancels, Ctrl-D leaves.\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (commands[i].args) {
            char left[64];
            snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].args);
            printf("  %-26s %s\n", left, commands[i].help);
        }
    }
    printf("Also \\d [TABLE], \\dt, \\dv, \\? and \\q. SHOW ALL lists the settings; SET name = "
           "value changes "
           "one.\n");
    return true;
}

const char *command_name(int i) {
    return i < COMMAND_COUNT && commands[i].args ? commands[i].name : NULL;
}

bool run_command(struct shell *shell, const char *line, size_t len) {
    while (len > 0 && isspace((unsigned char)*line)) {
        line++;
        len--;
    }
    while (len > 0 && (isspace((unsigned char)line[len - 1]) || line[len - 1] == ';')) {
        len--;
    }
    char *copy = shell_alloc(len + 1);
    memcpy(copy, line, len);
    size_t name_len = strcspn(copy, " \t");
    const char *arg = copy + name_len + strspn(copy + name_len, " \t");
    bool ok = false;
    bool found = false;
    for (int i = 0; i < COMMAND_COUNT && !found; i++) {
        if (strlen(commands[i].name) == name_len &&
            strncasecmp(commands[i].name, copy, name_len) == 0) {
            found = true;
            ok = commands[i].run(shell, arg);
        }
    }
    if (!found) {
        complain("unknown command \"%s\": .help lists the commands", copy);
    }
    free(copy);
    return ok;
}
