/* runner.c: runs sqllogictest scripts over the test matrix.
 *
 *   runner [--full] [--cell NAME] [--cpu] [--cells] [--again N] [--allow-unsupported] [--verbose] SCRIPT...
 *
 * The quick cells by default, all with --full, one with --cell; --cells lists them. GPU cells run when WARPFOX_CUDA
 * names a CUDA library (the simt driver in tests) and are left out when it does not. A cell, an option or a script
 * that there is not is a mistake: status 2, before anything has run. */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

static bool wanted(const struct cell *cell, bool full, bool cpu_only, const char *only) {
    if (only) {
        return strcmp(only, cell->name) == 0;
    }
    return (full || cell->quick) && !(cpu_only && cell->gpu);
}

static void print_cells(FILE *out) {
    for (int c = 0; c < cell_count; c++) {
        fprintf(out, "%s%s\n", cells[c].name, cells[c].quick ? "" : " (full)");
    }
}

static bool cell_exists(const char *name) {
    for (int c = 0; c < cell_count; c++) {
        if (strcmp(cells[c].name, name) == 0) {
            return true;
        }
    }
    fprintf(stderr, "runner: no cell \"%s\"; there are\n", name);
    print_cells(stderr);
    return false;
}

struct choice {
    bool full, cpu_only;
    const char *only; /* one cell, or NULL */
    int first;        /* the first script in argv */
};

/* -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct run_options *options, struct choice *out) {
    *out = (struct choice){.cpu_only = !getenv("WARPFOX_CUDA"), .first = 1};
    for (; out->first < argc && argv[out->first][0] == '-'; out->first++) {
        const char *word = argv[out->first];
        if (strcmp(word, "--full") == 0) {
            out->full = true;
        } else if (strcmp(word, "--cpu") == 0) {
            out->cpu_only = true;
        } else if (strcmp(word, "--allow-unsupported") == 0) {
            options->allow_unsupported = true;
        } else if (strcmp(word, "--verbose") == 0) {
            options->verbose = true;
            options->max_reports = 1000;
        } else if (strcmp(word, "--cells") == 0) {
            print_cells(stdout);
            return 0;
        } else if (strcmp(word, "--again") == 0 && out->first + 1 < argc) {
            options->again = atoi(argv[++out->first]);
        } else if (strcmp(word, "--cell") == 0 && out->first + 1 < argc) {
            out->only = argv[++out->first];
        } else {
            fprintf(stderr, "runner: unknown option %s\n", word);
            return 2;
        }
    }
    if (out->only && !cell_exists(out->only)) {
        return 2;
    }
    for (int i = out->first; i < argc; i++) {
        FILE *file = fopen(argv[i], "r");
        if (!file) {
            fprintf(stderr, "runner: no script %s\n", argv[i]);
            return 2;
        }
        fclose(file);
    }
    if (out->first == argc) {
        fprintf(stderr, "runner: name a script\n");
        return 2;
    }
    return -1;
}

int main(int argc, char **argv) {
    struct run_options options = {.max_reports = 3};
    struct choice choice;
    int status = parse(argc, argv, &options, &choice);
    if (status >= 0) {
        return status;
    }
    struct tally total = {0};
    for (int c = 0; c < cell_count; c++) {
        if (!wanted(&cells[c], choice.full, choice.cpu_only, choice.only)) {
            continue;
        }
        struct tally tally = {0};
        for (int i = choice.first; i < argc; i++) {
            script_run(argv[i], &cells[c], &options, &tally);
        }
        printf("%-30s %6lld passed %4lld failed %4lld skipped %4lld refused by the GPU\n", cells[c].name,
               (long long)tally.passed, (long long)tally.failed, (long long)tally.skipped,
               (long long)tally.refused);
        fflush(stdout);
        total.passed += tally.passed;
        total.failed += tally.failed;
        total.skipped += tally.skipped + tally.refused;
    }
    printf("%lld passed, %lld failed, %lld skipped\n", (long long)total.passed, (long long)total.failed,
           (long long)total.skipped);
    return total.failed ? 1 : 0;
}
