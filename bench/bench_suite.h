/* bench_suite.h: a benchmark of queries over generated tables, TPC-H or SSB, and what running one
 * takes. */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include "bench.h"

enum { TPCH_QUERIES = 22, SSB_QUERIES = 13, SUITE_QUERIES = TPCH_QUERIES };

/* The texts in bench/tpch, bench/ssb and bench/tpch/logiql, in order; made by tools/embed. A text begins with its
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
    int first_logic; /* the same queries in LogiQL; 0 = there are none */
    const char *const *labels; /* of the queries, as --queries has them */
    /* Per query and column of its answer: e exact, a an average or quotient; capital: a column of
     * ORDER BY. */
    const char *const *kinds;
    const struct known_answer *known;
    int known_count;
    bool power;         /* has a power figure */
    int fraction_query; /* from 0: its text has a fraction of 0.0001 over the scale factor; -1 */
    const char *text_queries; /* those whose answers are known for dbgen's texts only; "" = none */
    const char *more;   /* arguments of the procedure for --text, with %s; NULL: it has none */
};

/* Makes the tables and runs the queries chosen; the exit status. */
int suite_run(const struct suite *suite, const struct bench_options *options);

/* What one run of a query did. Bytes and counts as doubles, to be added and divided. */
struct query_profile {
    int steps;
    double seconds, kernel_seconds, floor_seconds; /* of all steps */
    double launches, waits, bytes_read, bytes_written;
    double bytes_sent, bytes_fetched; /* over the bus, to the card and back */
    double peak;                      /* of the card's memory */
};
/* Operators of all queries: how often, and their time. */
enum { SUITE_OPERATORS = 24 };
struct operator_share {
    char name[32];
    int count;
    double seconds;
};
struct suite_operators {
    int count;
    struct operator_share list[SUITE_OPERATORS];
    double seconds;
};
/* False when the query failed. */
bool suite_profile(struct bench_db *db, const char *sql, struct query_profile *out,
                   struct suite_operators *operators);
void suite_operators_sort(struct suite_operators *operators); /* most time first */

enum verdict { VERDICT_UNKNOWN, VERDICT_RIGHT, VERDICT_WRONG };
/* Reads the result to its end. `scale` as the user wrote it, NULL where no
 * answer is known; `query` from 0; `folder` of answer
 * files, or NULL. VERDICT_UNKNOWN when no answer is known for the scale factor; `why` is set for a
 * wrong one. */
struct suite_check {
    const struct suite *suite;
    int query;
    const char *scale, *folder;
};
enum verdict suite_check(wf_result *result, const struct suite_check *check, char *why, size_t cap);

#endif
