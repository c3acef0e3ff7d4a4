/* ssb.c: the 13 queries of the Star Schema Benchmark. Answers are known on the rows of CALL ssb
 * (ssb_answers.h). */
#include "bench_suite.h"

#include "ssb_answers.h"

static const char *const labels[SSB_QUERIES] = {"1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1",
                                                "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"};
static const char *const kinds[SSB_QUERIES] = {"e",    "e",    "e",    "eEE", "eEE",  "eEE", "eeEE",
                                               "eeEE", "eeEE", "eeEE", "EEe", "EEEe", "EEEe"};

int bench_ssb(const struct bench_options *options) {
    static const struct suite suite = {.name = "ssb",
                                       .title = "Star Schema Benchmark",
                                       .first_text = TPCH_QUERIES,
                                       .count = SSB_QUERIES,
                                       .labels = labels,
                                       .kinds = kinds,
                                       .known = ssb_answers,
                                       .known_count = sizeof ssb_answers / sizeof *ssb_answers,
                                       .fraction_query = -1,
                                       .text_queries = ""};
    return suite_run(&suite, options);
}
