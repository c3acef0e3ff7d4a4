/* options.c: the command line of the shell: what its options of option.def do. */
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

static void print_help(void) {
    printf("Usage: warpfox [OPTIONS] [FILE]    statements from the terminal, a pipe, -c or -f\n"
           "       warpfox check FILE          look at all of a database file\n"
           "       warpfox bench NAME          run an experiment; `warpfox bench --help`\n"
           "       warpfox devices             show processors and GPUs\n\n"
           "Without -c and -f, reads statements from the terminal or from standard input.\n"
           "FILE is the database, made when it is not there; without one it lives in memory.\n\n"
           "Options:\n");
    option_print_help(option_ids(PART_SHELL));
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
                   ? option_complain(PART_SHELL, "unknown language \"%s\": sql or logiql", value)
                   : -1;
    case OPTION_FORMAT:
        if (format_find(value) < 0) {
            return option_complain(PART_SHELL,
                "unknown format \"%s\": box, csv, tsv, json, jsonl, markdown, line or none", value);
        }
        out->format = (enum format)format_find(value);
        return -1;
    case OPTION_TIMER:
        out->timer = true;
        return -1;
    case OPTION_KEEP_GOING:
        out->keep_going = true;
        return -1;
    case OPTION_ASCII:
        out->ascii = true;
        return -1;
    case OPTION_READONLY:
        (void)option_settle(&out->settings, id, "on");
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
    default:
        (void)option_settle(&out->settings, id, value);
        return -1;
    }
}

int options_parse(int argc, char **argv, struct options *out) {
    memset(out, 0, sizeof *out);
    out->language = "sql";
    struct option_reader reader = {.argc = argc, .argv = argv, .at = 1, .part = PART_SHELL};
    for (;;) {
        const char *value;
        enum option_id id = option_next(&reader, &value);
        int status = -1;
        if (id == OPTION_END) {
            return -1;
        } else if (id == OPTION_MISTAKE) {
            return EXIT_USAGE;
        } else if (id != OPTION_WORD) {
            status = apply(out, id, value);
        } else if (out->file) {
            status = option_complain(PART_SHELL, "more than one database given: \"%s\"", value);
        } else {
            out->file = value;
        }
        if (status >= 0) {
            return status;
        }
    }
}

void options_fini(struct options *options) {
    free(options->inputs);
}
