/* runner.c: runs sqllogictest scripts over the test matrix.
 *
 *   runner [--full] [--cell NAME] [--cpu] [--allow-unsupported] [--verbose] SCRIPT...
 *
 * The quick cells by default, all with --full, one with --cell. GPU cells run when WARPFOX_CUDA names a CUDA library
 * (the simt driver in tests) and are left out, with a word, when it does not. */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

static bool wanted(const struct cell *cell, bool full, bool cpu_only, const char *only) {
    if (only) {
        return strcmp(only, cell->name) == 0;
    }
    return (full || cell->quick) && !(cpu_only && cell->gpu);
}

int main(int argc, char **argv) {
    struct run_options options = {.max_reports = 3};
    bool full = false, cpu_only = !getenv("WARPFOX_CUDA");
    const char *only = NULL;
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        if (strcmp(argv[first], "--full") == 0) {
            full = true;
        } else if (strcmp(argv[first], "--cpu") == 0) {
            cpu_only = true;
        } else if (strcmp(argv[first], "--allow-unsupported") == 0) {
            options.allow_unsupported = true;
        } else if (strcmp(argv[first], "--verbose") == 0) {
            options.verbose = true;
            options.max_reports = 1000;
        } else if (strcmp(argv[first], "--cell") == 0 && first + 1 < argc) {
            only = argv[++first];
        } else {
            fprintf(stderr, "runner: unknown option %s\n", argv[first]);
            return 2;
        }
    }
    struct tally total = {0};
    for (int c = 0; c < cell_count; c++) {
        if (!wanted(&cells[c], full, cpu_only, only)) {
            continue;
        }
        struct tally tally = {0};
        for (int i = first; i < argc; i++) {
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
