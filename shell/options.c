/* options.c: the command line.
 *
 * A table of options, each with its help line; long options take their value as the next word or
 * after `=`. Mistakes are told on stderr with exit status 2; values of settings are checked by the
 * library when the database is opened, so that the shell does not repeat its rules. */
#include "shell.h"

#include <stdlib.h>
#include <string.h>

const char *const format_names[FORMAT_COUNT] = {"box",   "csv",      "tsv",  "json",
                                                "jsonl", "markdown", "line", "none"};

int format_find(const char *name) {
    for (int i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(format_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

enum option_id {
    OPTION_COMMAND,
    OPTION_FILE,
    OPTION_LANGUAGE,
    OPTION_DEVICE,
    OPTION_FORMAT,
    OPTION_TIMER,
    OPTION_THREADS,
    OPTION_MEMORY,
    OPTION_GPU_MEMORY,
    OPTION_KEEP_GOING,
    OPTION_ASCII,
    OPTION_NO_RC,
    OPTION_HELP,
    OPTION_VERSION,
};

struct option_def {
    const char *name;
    const char *value; /* what it takes, for help; NULL = nothing */
    enum option_id id;
    const char *help;
};

static const struct option_def defs[] = {
    {"-c", "TEXT", OPTION_COMMAND, "run TEXT and exit; may be given several times"},
    {"-f", "FILE", OPTION_FILE, "run a script and exit; - is standard input"},
    {"-l", "sql|logiql", OPTION_LANGUAGE, "the language of statements (sql)"},
    {"-d", "auto|cpu|gpu|hybrid", OPTION_DEVICE, "where statements run (auto)"},
    {"--format", "NAME", OPTION_FORMAT, "box, csv, tsv, json, jsonl, markdown, line or none (box)"},
    {"--timer", NULL, OPTION_TIMER,
     "print `time 12.345 ms` (or s, min, h) on stderr after each statement"},
    {"--threads", "N", OPTION_THREADS, "worker threads (one per core)"},
    {"--memory", "SIZE", OPTION_MEMORY,
     "host memory budget, as in 512MB or 8GB (80 % of the machine's)"},
    {"--gpu-memory", "SIZE", OPTION_GPU_MEMORY, "GPU memory budget (90 % of what is free)"},
    {"--keep-going", NULL, OPTION_KEEP_GOING, "carry on after errors"},
    {"--ascii", NULL, OPTION_ASCII, "draw boxes with + - | only"},
    {"--no-rc", NULL, OPTION_NO_RC, "do not read ~/.warpfoxrc at the prompt; also -X"},
    {"--help", NULL, OPTION_HELP, "print this and exit"},
    {"--version", NULL, OPTION_VERSION, "print the version and exit"},
};
enum { DEF_COUNT = sizeof defs / sizeof defs[0] };

static const struct {
    const char *name;
    const char *option;
} short_names[] = {{"-h", "--help"}, {"-?", "--help"}, {"-V", "--version"}, {"-X", "--no-rc"}};

static void print_help(void) {
    printf("Usage: warpfox [OPTIONS]           statements from the terminal, a pipe, -c or -f\n"
           "       warpfox bench NAME [--json] run a benchmark\n"
           "       warpfox devices             show processors and GPUs\n\n"
           "Without -c and -f, reads statements from the terminal or from standard input.\n"
           "The database lives in memory.\n\nOptions:\n");
    for (int i = 0; i < DEF_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", defs[i].name, defs[i].value ? " " : "",
                 defs[i].value ? defs[i].value : "");
        printf("  %-24s %s\n", left, defs[i].help);
    }
}

static int usage(const char *format, const char *word) {
    fprintf(stderr, "warpfox: ");
    fprintf(stderr, format, word);
    fprintf(stderr, "\nTry `warpfox --help`.\n");
    return EXIT_USAGE;
}

/* The option a word names; *out_value is what stands after `=`, or NULL. */
static const struct option_def *find_option(const char *word, const char **out_value) {
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    *out_value = equals ? equals + 1 : NULL;
    for (int i = 0; i < DEF_COUNT; i++) {
        if (strlen(defs[i].name) == len && strncmp(defs[i].name, word, len) == 0) {
            return &defs[i];
        }
    }
    for (size_t i = 0; i < sizeof short_names / sizeof short_names[0]; i++) {
        if (strcmp(word, short_names[i].name) == 0) {
            return find_option(short_names[i].option, out_value);
        }
    }
    return NULL;
}

static void add_setting(struct options *out, const char *name, const char *value) {
    for (int i = 0; i < out->database_count; i++) {
        if (strcmp(out->database[i].name, name) == 0) {
            out->database[i].value = value;
            return;
        }
    }
    out->database[out->database_count++] = (wf_option){name, value};
}

static void add_input(struct options *out, bool is_file, const char *text) {
    out->inputs = shell_grow(out->inputs, sizeof(struct input) * (size_t)(out->input_count + 1));
    out->inputs[out->input_count++] = (struct input){is_file, text};
}

static int apply(struct options *out, enum option_id id, const char *value) {
    switch (id) {
    case OPTION_COMMAND:
    case OPTION_FILE:
        add_input(out, id == OPTION_FILE, value);
        return -1;
    case OPTION_LANGUAGE:
        out->language = value;
        return strcmp(value, "sql") && strcmp(value, "logiql")
                   ? usage("unknown language \"%s\": sql or logiql", value)
                   : -1;
    case OPTION_DEVICE:
        add_setting(out, "device", value);
        return -1;
    case OPTION_FORMAT:
        if (format_find(value) < 0) {
            return usage(
                "unknown format \"%s\": box, csv, tsv, json, jsonl, markdown, line or none", value);
        }
        out->format = (enum format)format_find(value);
        return -1;
    case OPTION_TIMER:
        out->timer = true;
        return -1;
    case OPTION_THREADS:
        add_setting(out, "threads", value);
        return -1;
    case OPTION_MEMORY:
        add_setting(out, "memory", value);
        return -1;
    case OPTION_GPU_MEMORY:
        add_setting(out, "gpu_memory", value);
        return -1;
    case OPTION_KEEP_GOING:
        out->keep_going = true;
        return -1;
    case OPTION_ASCII:
        out->ascii = true;
        return -1;
    case OPTION_NO_RC:
        out->no_rc = true;
        return -1;
    case OPTION_HELP:
        print_help();
        return 0;
    case OPTION_VERSION:
        printf("warpfox %s\n", wf_version());
        return 0;
    }
    return -1;
}

int options_parse(int argc, char **argv, struct options *out) {
    memset(out, 0, sizeof *out);
    out->language = "sql";
    bool only_files = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (only_files || word[0] != '-' || word[1] == 0) {
            if (out->file) {
                return usage("more than one database given: \"%s\"", word);
            }
            out->file = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_files = true;
            continue;
        }
        const char *value;
        const struct option_def *def = find_option(word, &value);
        if (!def) {
            return usage("unknown option \"%s\"", word);
        }
        if (!def->value && value) {
            return usage("option \"%s\" takes no value", def->name);
        }
        if (def->value && !value) {
            if (i + 1 >= argc) {
                return usage("option \"%s\" needs a value", word);
            }
            value = argv[++i];
        }
        int status = apply(out, def->id, value);
        if (status >= 0) {
            return status;
        }
    }
    return -1;
}

void options_fini(struct options *options) {
    free(options->inputs);
}
