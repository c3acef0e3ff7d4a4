/* commands.c: the shell's own commands: .help and its list, and what psql and SQLite call the same.
 *
 * A command is one line; its argument may stand in quotes. What people are used to from other
 * shells and has another form here is answered with that form; a misspelt name with the nearest
 * one. To add a command: one function, one line in the table, a line in docs/shell.md, a test in
 * tests/shell. */
#include "shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool command_help(struct shell *shell, const char *arg);

static bool command_views(struct shell *shell, const char *arg) {
    return list_objects(shell, "views", arg);
}
static bool command_indexes(struct shell *shell, const char *arg) {
    return list_objects(shell, "indexes", arg);
}
static bool command_sequences(struct shell *shell, const char *arg) {
    return list_objects(shell, "sequences", arg);
}
static bool command_schemas(struct shell *shell, const char *arg) {
    return list_objects(shell, "schemas", arg);
}
static bool command_databases(struct shell *shell, const char *arg) {
    return list_objects(shell, "databases", arg);
}
static bool command_roles(struct shell *shell, const char *arg) {
    return list_objects(shell, "roles", arg);
}
static bool command_types(struct shell *shell, const char *arg) {
    return list_objects(shell, "types", arg);
}

static bool command_describe(struct shell *shell, const char *arg) {
    return arg[0] ? list_schema(shell, arg) : list_tables(shell, arg);
}

/* on, off, or nothing: the other way round. */
static bool set_switch(const char *name, const char *arg, bool *io) {
    if (!arg[0]) {
        *io = !*io;
    } else if (strcasecmp(arg, "on") == 0 || strcasecmp(arg, "off") == 0) {
        *io = strcasecmp(arg, "on") == 0;
    } else {
        fflush(stdout);
        fprintf(stderr, "%s takes on or off, not \"%s\"\n", name, arg);
        return false;
    }
    return true;
}

static bool command_timer(struct shell *shell, const char *arg) {
    return set_switch(".timer", arg, &shell->timer);
}

static bool command_timing(struct shell *shell, const char *arg) {
    bool ok = set_switch("\\timing", arg, &shell->timer);
    if (ok && shell->interactive) {
        printf("Timing is %s.\n", shell->timer ? "on" : "off");
    }
    return ok;
}

static bool command_expanded(struct shell *shell, const char *arg) {
    bool ok = set_switch("\\x", arg, &shell->expanded);
    if (ok && shell->interactive) {
        printf("Expanded display is %s.\n", shell->expanded ? "on" : "off");
    }
    return ok;
}

static bool command_mode(struct shell *shell, const char *arg) {
    if (!arg[0]) {
        printf("mode is %s\n", format_names[shell->format]);
        return true;
    }
    int format = format_find(arg);
    if (format < 0) {
        return complain(
            ".mode takes box, csv, tsv, json, jsonl, markdown, line or none, not \"%s\"", arg);
    }
    shell->format = (enum format)format;
    return true;
}

/* A number from 0 to 1,000,000,000; without one, what it is. */
static bool set_number(const char *name, const char *arg, int32_t *io) {
    if (!arg[0]) {
        printf("%s is %d\n", name + 1, (int)*io);
        return true;
    }
    char *end;
    long value = strtol(arg, &end, 10);
    if (*end || value < 0 || value > 1000000000) {
        fflush(stdout);
        fprintf(stderr, "%s takes a number from 0 to 1000000000, not \"%s\"\n", name, arg);
        return false;
    }
    *io = (int32_t)value;
    return true;
}

static bool command_maxrows(struct shell *shell, const char *arg) {
    return set_number(".maxrows", arg, &shell->max_rows);
}

static bool command_maxwidth(struct shell *shell, const char *arg) {
    return set_number(".maxwidth", arg, &shell->max_width);
}

enum { MAX_READ_DEPTH = 16 };

static bool command_read(struct shell *shell, const char *arg) {
    if (!arg[0]) {
        return complain("%s needs the name of a file", ".read");
    }
    if (shell->read_depth == MAX_READ_DEPTH) {
        return complain("\"%s\": .read is nested too deeply", arg);
    }
    shell->read_depth++;
    bool ok = run_file(shell, arg);
    shell->read_depth--;
    return ok;
}

/* As .read, but the file is looked for beside the script that names it. */
static bool command_read_beside(struct shell *shell, const char *arg) {
    const char *slash = shell->script ? strrchr(shell->script, '/') : NULL;
    if (!arg[0] || arg[0] == '/' || !slash) {
        return command_read(shell, arg);
    }
    struct strbuf path = {0};
    strbuf_append(&path, shell->script, (size_t)(slash - shell->script) + 1);
    strbuf_append(&path, arg, strlen(arg));
    bool ok = command_read(shell, path.ptr);
    strbuf_free(&path);
    return ok;
}

static bool command_output(struct shell *shell, const char *arg) {
    return output_to(shell, arg, false);
}

static bool command_once(struct shell *shell, const char *arg) {
    return arg[0] ? output_to(shell, arg, true)
                  : complain("%s needs the name of a file, or | and a command", ".once");
}

static bool command_system(struct shell *shell, const char *arg) {
    (void)shell;
    return run_program(arg);
}

static bool command_print(struct shell *shell, const char *arg) {
    (void)shell;
    printf("%s\n", arg);
    return true;
}

static bool command_devices(struct shell *shell, const char *arg) {
    (void)arg;
    char *text = wf_devices(shell->db);
    fputs(text ? text : "", stdout);
    wf_free(text);
    return true;
}

static bool command_connection(struct shell *shell, const char *arg) {
    (void)shell;
    (void)arg;
    printf("Warpfox %s, a database in the memory of this process.\n", wf_version());
    return true;
}

static bool command_explain(struct shell *shell, const char *arg) {
    static const char *const levels[] = {"plan", "program", "opcodes", "cuda", "analyze", "steps",
                                         "rounds"};
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
    return complain(
        ".explain takes on, off, plan, program, opcodes, cuda, analyze, steps or rounds, not \"%s\"", arg);
}

bool set_language(struct shell *shell, const char *name) {
    bool known = strcasecmp(name, "sql") == 0 || strcasecmp(name, "logiql") == 0;
    if (!known) {
        return complain(".language takes sql or logiql, not \"%s\"", name);
    }
    if (wf_set(shell->conn, "language", name) != WF_OK) {
        return complain("%s", wf_connection_error(shell->conn)->message);
    }
    shell->logiql = strcasecmp(name, "logiql") == 0;
    return true;
}

static bool command_language(struct shell *shell, const char *arg) {
    if (!arg[0]) {
        printf("language is %s\n", shell->logiql ? "logiql" : "sql");
        return true;
    }
    return set_language(shell, arg);
}

static bool command_quit(struct shell *shell, const char *arg) {
    (void)arg;
    shell->quit = true;
    return true;
}

struct command {
    const char *name;
    const char *also; /* other names, separated by blanks; NULL = none */
    const char *args; /* for help and completion */
    bool (*run)(struct shell *shell, const char *arg);
    bool shows; /* what it prints goes where results go */
    bool raw;   /* its argument is the rest of the line as it is */
    const char *help;
};

static const struct command commands[] = {
    {".help", "\\? help", "", command_help, false, false, "this list"},
    {".tables", "\\dt \\dt+", "[PATTERN]", list_tables, true, false, "names of the tables"},
    {".schema", NULL, "[TABLE]", list_schema, true, false, "definition of a table, or of all"},
    {"\\d", "\\d+", "[NAME]", command_describe, true, false,
     "definition of a table, view, sequence; or names"},
    {"\\dv", "\\dv+", "[PATTERN]", command_views, true, false, "views"},
    {"\\di", "\\di+ .indexes", "[PATTERN]", command_indexes, true, false, "indexes"},
    {"\\ds", "\\ds+", "[PATTERN]", command_sequences, true, false, "sequences"},
    {"\\dn", "\\dn+", "[PATTERN]", command_schemas, true, false, "schemas"},
    {"\\df", "\\df+ \\da", "[PATTERN]", list_functions, true, false,
     "functions, with what they give"},
    {"\\dT", "\\dT+", "[PATTERN]", command_types, true, false, "types"},
    {"\\du", "\\dg", "", command_roles, true, false, "users"},
    {"\\l", "\\list .databases", "", command_databases, true, false, "databases"},
    {".mode", NULL, "FORMAT", command_mode, false, false,
     "box, csv, tsv, json, jsonl, markdown, line or none"},
    {"\\x", NULL, "[on|off]", command_expanded, false, false, "boxes as lines, one column a line"},
    {".maxrows", NULL, "[N]", command_maxrows, false, false, "most rows of a box (40); 0 = all"},
    {".maxwidth", NULL, "[N]", command_maxwidth, false, false,
     "most columns a box takes; 0 = the terminal's width"},
    {".output", "\\o \\out", "[FILE]", command_output, false, false,
     "results go to FILE, or into |COMMAND; without one, here again"},
    {".once", NULL, "FILE", command_once, false, false, "the same for the next result only"},
    {".timer", NULL, "[on|off]", command_timer, false, false,
     "print the time of each statement on stderr"},
    {"\\timing", NULL, "[on|off]", command_timing, false, false, "the same, as psql calls it"},
    {".explain", NULL, "[on|off|LEVEL]", command_explain, true, false,
     "show statements instead of running them: plan, program, opcodes, cuda, analyze, steps, rounds"},
    {".language", NULL, "[sql|logiql]", command_language, false, false,
     "what statements are written in"},
    {".rules", NULL, "[PATTERN]", list_rules, true, false, "clauses of LogiQL that are installed"},
    {".strata", NULL, "[PATTERN]", list_strata, true, false,
     "what they derive, in the order it is computed"},
    {".drop", NULL, "PREDICATE", drop_rules, false, false, "removes the clauses that derive it"},
    {".dump", NULL, "", dump, true, false,
     "the whole database as statements, rows included"},
    {".read", "\\i \\include", "FILE", command_read, false, false, "run a script"},
    {"\\ir", NULL, "FILE", command_read_beside, false, false,
     "the same, beside the script that says so"},
    {"\\e", "\\edit .edit", "[FILE]", edit_text, false, false,
     "edit the last statement, or FILE, with $VISUAL or $EDITOR, and run it"},
    {"\\!", ".shell .system", "[COMMAND]", command_system, false, true,
     "run a command of the system"},
    {".print", "\\echo \\qecho", "TEXT", command_print, true, false, "write a line"},
    {".devices", NULL, "", command_devices, true, false, "processors and GPUs found"},
    {"\\conninfo", ".version", "", command_connection, true, false, "what this is connected to"},
    {".quit", ".exit \\q exit quit", "", command_quit, false, false, "leave; also Ctrl-D"},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

/* What other shells have, and how it is done here. */
static const struct {
    const char *names; /* separated by blanks */
    const char *instead;
} elsewhere[] = {
    {"\\copy", "COPY reads and writes this machine's files: COPY t FROM 'file.csv' (HEADER)"},
    {".import", "COPY t FROM 'file.csv' (HEADER) fills a table; CREATE TABLE t AS FROM 'file.csv' "
                "makes it, too"},
    {".save .backup .clone",
     "VACUUM INTO 'file' copies the database, EXPORT DATABASE 'folder' and .dump write all of it as text"},
    {"\\c \\connect .open .attach",
     "a process has one database: start another one with its file, warpfox FILE"},
    {"\\h \\help", "docs/ has what is special to Warpfox; the language is PostgreSQL's"},
    {"\\g \\go \\gexec \\gset \\gdesc \\crosstabview \\watch", "end the statement with `;`"},
    {"\\gx", "switch to lines with \\x, and end the statement with `;`"},
    {"\\set \\unset \\prompt \\gset .parameter",
     "PREPARE and EXECUTE have parameters; SET name = value changes a setting"},
    {"\\pset \\a \\t \\H \\f \\C \\T .headers .separator .nullvalue .width .show",
     "formats are chosen with .mode, sizes with .maxrows and .maxwidth"},
    {"\\s", "the history is in ~/.warpfox_history; Ctrl-R searches it"},
    {"\\p \\r \\w \\reset \\print \\write",
     "\\e edits the last statement, Ctrl-C drops a half one"},
    {"\\encoding", "text is UTF-8"},
    {"\\password \\dp \\z \\ddp \\drds", "there are no users to grant things to"},
    {"\\errverbose", "errors are shown in full"},
    {"\\if \\elif \\else \\endif", "scripts have no conditions"},
    {".bail", "scripts stop at their first error, unless --keep-going"},
    {".eqp", ".explain shows plans"},
    {".fullschema", ".schema shows the definitions"},
    {".cd \\cd", "\\! cannot change the shell's folder: start warpfox there"},
    {".echo .log .changes .progress .stats", "there is no such switch"},
    {"\\dm \\dE \\dx \\dy \\dD \\dC \\do \\dO \\dF \\db \\dA",
     "there are no such objects: \\d, \\dv, \\di, \\ds, \\dn, \\df, \\dT list what there is"},
};

/* Whether the word is one of the names, whatever its case. */
static bool is_among(const char *names, const char *word, size_t len) {
    while (names && *names) {
        size_t size = strcspn(names, " ");
        if (size == len && strncmp(names, word, len) == 0) {
            return true;
        }
        names += size + strspn(names + size, " ");
    }
    return false;
}

static const struct command *find_command(const char *name, size_t len) {
    char lower[32];
    for (int pass = 0; pass < 2 && len < sizeof lower; pass++) { /* \dT is not \dt */
        for (size_t i = 0; i < len; i++) {
            lower[i] = pass ? (char)tolower((unsigned char)name[i]) : name[i];
        }
        for (int i = 0; i < COMMAND_COUNT; i++) {
            if (is_among(commands[i].name, lower, len) || is_among(commands[i].also, lower, len)) {
                return &commands[i];
            }
        }
    }
    return NULL;
}

static bool command_help(struct shell *shell, const char *arg) {
    (void)shell;
    (void)arg;
    printf("Statements end with `;` and may span lines. Ctrl-C cancels, Ctrl-D leaves, Tab "
           "completes, Ctrl-R searches.\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].args);
        printf("  %-26s %s", left, commands[i].help);
        printf(commands[i].also ? "; also %s\n" : "\n", commands[i].also);
    }
    printf("SHOW ALL lists the settings; SET name = value changes one. ~/.warpfoxrc is read when "
           "the prompt starts.\n");
    return true;
}

const char *command_name(int i) {
    return i < COMMAND_COUNT ? commands[i].name : NULL;
}

const char *command_args(const char *name, size_t len) {
    const struct command *command = find_command(name, len);
    return command ? command->args : NULL;
}

/* Changes of one letter that turn one name into the other; swaps of neighbours count once. */
static int distance(const char *a, size_t a_len, const char *b, size_t b_len) {
    enum { MOST = 24 };
    int d[MOST + 1][MOST + 1];
    if (a_len > MOST || b_len > MOST) {
        return MOST;
    }
    for (size_t i = 0; i <= a_len; i++) {
        for (size_t j = 0; j <= b_len; j++) {
            int best = i == 0 ? (int)j : j == 0 ? (int)i : d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (i > 0 && j > 0) {
                best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
                best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = d[i - 2][j - 2] + 1 < best ? d[i - 2][j - 2] + 1 : best;
            }
            d[i][j] = best;
        }
    }
    return d[a_len][b_len];
}

static void unknown_command(const char *name, size_t len) {
    char word[40];
    snprintf(word, sizeof word, "%.*s", (int)len, name);
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        if (is_among(elsewhere[i].names, name, len)) {
            fprintf(stderr, "%s is not here: %s\n", word, elsewhere[i].instead);
            return;
        }
    }
    int best = 3;
    const char *nearest = NULL;
    size_t nearest_len = 0;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *lists[] = {commands[i].name, commands[i].also};
        for (int l = 0; l < 2; l++) {
            for (const char *at = lists[l]; at && *at; at += strspn(at, " ")) {
                size_t size = strcspn(at, " ");
                int far = distance(name, len, at, size);
                if (far < best && (size_t)far * 2 < len) {
                    best = far;
                    nearest = at;
                    nearest_len = size;
                }
                at += size;
            }
        }
    }
    fprintf(stderr, "unknown command \"%s\": ", word);
    if (nearest) {
        fprintf(stderr, "perhaps you meant %.*s; ", (int)nearest_len, nearest);
    }
    fprintf(stderr, ".help lists the commands\n");
}

/* The argument without the quotes around it; a doubled quote inside stands for one. */
static void unquote(char *arg) {
    char quote = arg[0];
    size_t len = strlen(arg);
    if ((quote != '\'' && quote != '"') || len < 2 || arg[len - 1] != quote) {
        return;
    }
    size_t to = 0;
    for (size_t i = 1; i + 1 < len; i++) {
        arg[to++] = arg[i];
        i += arg[i] == quote && i + 2 < len && arg[i + 1] == quote;
    }
    arg[to] = 0;
}

bool run_command(struct shell *shell, const char *line, size_t len) {
    while (len > 0 && isspace((unsigned char)*line)) {
        line++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)line[len - 1])) {
        len--;
    }
    char *copy = shell_alloc(len + 1);
    memcpy(copy, line, len);
    size_t name_len = strcspn(copy, " \t;");
    if (strncmp(copy, "\\!", 2) == 0) { /* \!ls */
        name_len = 2;
    }
    const struct command *command = find_command(copy, name_len);
    char *arg = copy + name_len + strspn(copy + name_len, " \t");
    bool ok = false;
    if (!command) {
        fflush(stdout);
        unknown_command(copy, name_len);
    } else {
        for (size_t end = strlen(arg); !command->raw && end > 0 && strchr(" \t;", arg[end - 1]);
             end--) {
            arg[end - 1] = 0;
        }
        if (!command->raw && arg[0] != '|') {
            unquote(arg);
        }
        if (command->shows) {
            output_begin(shell);
        }
        ok = command->run(shell, arg);
        if (command->shows) {
            output_end(shell);
        }
    }
    free(copy);
    return ok;
}
