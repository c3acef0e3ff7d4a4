/* tpch.c: the 22 queries of TPC-H with the validation parameters. Answers are known on dbgen's rows
 * (tpch_answers.h). */
#include "bench_suite.h"

#include "tpch_answers.h"

static const char *const labels[TPCH_QUERIES] = {
    "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
    "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22",
};
static const char *const kinds[TPCH_QUERIES] = {
    "EEeeeeaaae", "EEEEeeee", "eEEe", "Ee",  "eE", "e",   "EEEe",  "Ea",
    "EEe",        "eeEeeeee", "eE",   "Eee", "EE", "a",   "Eeeee", "EEEE",
    "a",          "eeeEEe",   "e",    "Ee",  "EE", "Eee",
};

int bench_tpch(const struct bench_options *options) {
    static const struct suite suite = {.name = "tpch",
                                       .title = "TPC-H",
                                       .first_text = 0,
                                       .first_logic = TPCH_QUERIES + SSB_QUERIES,
                                       .count = TPCH_QUERIES,
                                       .labels = labels,
                                       .kinds = kinds,
                                       .known = tpch_answers,
                                       .known_count = sizeof tpch_answers / sizeof *tpch_answers,
                                       .power = true,
                                       .fraction_query = 11 - 1,
                                       .text_queries = "2,10,13,15,20",
                                       .more = ", text => '%s'"};
    return suite_run(&suite, options);
}
