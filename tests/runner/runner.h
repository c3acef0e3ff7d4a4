/* runner.h: the parts of the script runner. */
#ifndef RUNNER_H
#define RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "warpfox.h"

/* One cell of the test matrix: the settings a script runs under. */
struct cell {
    const char *name;
    bool quick;       /* part of the covering set that `make test` runs */
    bool gpu;         /* needs a CUDA library (WARPFOX_CUDA) */
    bool tiny_memory; /* 53200 is an accepted outcome */
    const char *open[5][2]; /* options of wf_open; "file": the database lies in one, which is closed
                             * and opened now and then, not in memory */
    const char *set[10][2]; /* SET after connecting */
};
extern const struct cell cells[];
extern const int cell_count;

struct tally {
    int64_t passed, failed, skipped, refused;
};

struct run_options {
    bool allow_unsupported; /* 0A000 counts as skipped: for scripts made for other databases */
    bool verbose;
    int max_reports; /* failures printed per script and cell */
    int again;       /* how often a query that only reads is asked again: what is kept of it is used */
};

/* Runs one script under one cell; prints failures. */
void script_run(const char *path, const struct cell *cell, const struct run_options *options,
                struct tally *tally);

/* MD5 as lower-case hex; sqllogictest names long results by it. */
struct md5 {
    uint32_t state[4];
    uint64_t bytes;
    uint8_t block[64];
};
void md5_init(struct md5 *md5);
void md5_add(struct md5 *md5, const void *data, size_t len);
void md5_hex(struct md5 *md5, char out[33]);

#endif
