/* bench_tpch.h: what the files of the TPC-H experiment share. */
#ifndef BENCH_TPCH_H
#define BENCH_TPCH_H

#include "bench.h"

enum { TPCH_QUERIES = 22 };

/* The texts in bench/tpch, in order; made by tools/embed. */
struct bench_text {
    const char *name, *text;
};
extern const struct bench_text bench_texts[];
extern const int bench_text_count;

enum tpch_verdict { TPCH_UNKNOWN, TPCH_RIGHT, TPCH_WRONG };
/* Reads the result to its end. `scale` as the user wrote it; `folder` of answer files, or NULL.
 * TPCH_UNKNOWN when no answer is known for the scale factor; `why` is set for a wrong one. */
enum tpch_verdict tpch_check(wf_result *result, const char *scale, int query, const char *folder,
                             char *why, size_t cap);

#endif
