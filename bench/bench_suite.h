/* bench_suite.h: a benchmark of queries over generated tables, TPC-H or SSB, and what running one
 * takes. */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include "bench.h"

enum { TPCH_QUERIES = 22, SSB_QUERIES = 13, SUITE_QUERIES = TPCH_QUERIES };

/* The texts in bench/tpch and then bench/ssb, in order; made by tools/embed. A text begins with its
 * title, in a comment, up to a semicolon. */
struct bench_text {
    const char *name, *text;
};
extern const struct bench_text bench_texts[];
extern const int bench_text_count;

/* What an answer is at a scale factor, as checksums: see suite_check.c. */
struct known_answer {
    const char *scale;
    const char *query;
    int64_t rows;
    uint64_t sum, order;
};

struct suite {
    const char *name; /* of the experiment and of the procedure that makes the tables */
    const char *title;
    int first_text, count;
    const char *const *labels; /* of the queries, as --queries has them */
    /* Per query and column of its answer: e exact, a an average or quotient; capital: a column of
     * ORDER BY. */
    const char *const *kinds;
    const struct known_answer *known;
    int known_count;
    bool power;         /* has a power figure */
    int fraction_query; /* from 0: its text has a fraction of 0.0001 over the scale factor; -1 */
    const char *more;   /* arguments of the procedure for --text, with %s; NULL: it has none */
};

/* Makes the tables and runs the queries chosen; the exit status. */
int suite_run(const struct suite *suite, const struct bench_options *options);

enum verdict { VERDICT_UNKNOWN, VERDICT_RIGHT, VERDICT_WRONG };
/* Reads the result to its end. `scale` as the user wrote it; `query` from 0; `folder` of answer
 * files, or NULL. VERDICT_UNKNOWN when no answer is known for the scale factor; `why` is set for a
 * wrong one. */
struct suite_check {
    const struct suite *suite;
    int query;
    const char *scale, *folder;
};
enum verdict suite_check(wf_result *result, const struct suite_check *check, char *why, size_t cap);

#endif
