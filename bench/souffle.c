/* souffle.c: a program of `bench datalog` by Soufflé, compiled.
 *
 * Its facts and its text are written to a folder of their own, which is removed afterwards.
 * Compiling does not count; reading the facts does. Relations print how many tuples they have. */
#define _GNU_SOURCE
#include "bench_datalog.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_BYTES = 600 };

bool souffle_found(void) {
    return system("command -v souffle >/dev/null 2>&1") == 0;
}

static FILE *file_in(const char *folder, const char *name, const char *end) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    return fopen(path, "w");
}

static bool write_facts(const struct datalog_program *program, const struct graph *graph, const char *folder) {
    bool fine = true;
    for (int kind = 0; kind < FACT_KINDS && fine; kind++) {
        FILE *file = program->tables >> kind & 1 ? file_in(folder, fact_tables[kind].name, ".facts") : NULL;
        struct facts facts;
        fine = file || !(program->tables >> kind & 1);
        if (!file) {
            continue;
        }
        facts_make(&facts, (enum fact_kind)kind, graph);
        for (int64_t i = 0; i < facts.rows; i++) {
            for (int c = 0; c < fact_tables[kind].columns; c++) {
                fprintf(file, c ? "\t%lld" : "%lld", (long long)facts.cols[c][i]);
            }
            fputc('\n', file);
        }
        facts_free(&facts);
        fine = fclose(file) == 0;
    }
    return fine;
}

static void declare(FILE *file, const char *name, int columns) {
    fprintf(file, ".decl %s(", name);
    for (int c = 0; c < columns; c++) {
        fprintf(file, "%sc%d:number", c ? ", " : "", c);
    }
    fprintf(file, ")\n");
}

static bool write_program(const struct datalog_program *program, const char *folder) {
    FILE *file = file_in(folder, "program", ".dl");
    struct output o;
    for (int kind = 0; file && kind < FACT_KINDS; kind++) {
        if (program->tables >> kind & 1) {
            declare(file, fact_tables[kind].name, fact_tables[kind].columns);
            fprintf(file, ".input %s\n", fact_tables[kind].name);
        }
    }
    for (int i = 0; file && output_of(program, i, &o); i++) {
        int columns = 1;
        for (const char *at = o.atom; *at; at++) {
            columns += *at == ',';
        }
        declare(file, o.name, columns);
        fprintf(file, ".printsize %s\n", o.name);
    }
    const char *rules = program->souffle ? program->souffle : program->rules;
    for (const char *at = rules; file && *at; at++) {
        bool arrow = strncmp(at, "<-", 2) == 0;
        fputs(arrow ? ":-" : (const char[]){*at, 0}, file);
        at += arrow;
    }
    return file && fclose(file) == 0;
}

static bool read_counts(const struct datalog_program *program, const char *folder, struct souffle_run *out) {
    char path[400], line[200];
    struct output o;
    snprintf(path, sizeof path, "%s/out", folder);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        for (int i = 0; output_of(program, i, &o); i++) {
            size_t len = strlen(o.name);
            if (strncmp(line, o.name, len) == 0 && line[len] == '\t') {
                out->counts[i] = strtoll(line + len, NULL, 10);
            }
        }
    }
    return file && fclose(file) == 0;
}

void souffle_measure(const struct datalog_program *program, const struct graph *graph, const char *threads,
                     struct souffle_run *out) {
    char folder[] = "/tmp/warpfox-souffle-XXXXXX", command[COMMAND_BYTES];
    memset(out, 0, sizeof *out);
    if (!mkdtemp(folder)) {
        snprintf(out->trouble, sizeof out->trouble, "no folder in /tmp");
        return;
    }
    snprintf(command, sizeof command, "cd %s && souffle -j %s -o program program.dl >log 2>&1", folder, threads);
    bool made = write_facts(program, graph, folder) && write_program(program, folder) && system(command) == 0;
    snprintf(command, sizeof command, "cd %s && ./program -j %s -F . -D . >out 2>&1", folder, threads);
    double start = bench_now();
    out->ok = made && system(command) == 0;
    out->seconds = bench_now() - start;
    out->ok = out->ok && read_counts(program, folder, out);
    snprintf(out->trouble, sizeof out->trouble, "souffle fails");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)!system(command);
}
