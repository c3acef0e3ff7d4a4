/* bench_virginian.h: the ten queries of `bench virginian` and their answers. */
#ifndef BENCH_VIRGINIAN_H
#define BENCH_VIRGINIAN_H

#include "bench.h"

enum { VIRGINIAN_QUERIES = 10, VIRGINIAN_COLUMNS = 4 };
/* Columns of each answer, as numbers of the table's, -1 for none. */
extern const int virginian_columns[VIRGINIAN_QUERIES][VIRGINIAN_COLUMNS];
/* Whether a query gives row i. */
bool virginian_keeps(const struct virginian_data *data, int query, int64_t i);

struct virginian_answers {
    int64_t rows[VIRGINIAN_QUERIES];
    uint64_t sums[VIRGINIAN_QUERIES][VIRGINIAN_COLUMNS];
};
/* By a loop over the first `rows` rows; false without memory. */
bool virginian_expect(struct virginian_answers *out, int64_t rows);
/* Runs a query and compares every column; tells what is wrong. */
bool virginian_right(struct bench_db *db, const char *sql, int query,
                     const struct virginian_answers *expected);

#endif
