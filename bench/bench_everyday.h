/* bench_everyday.h: the tables of `bench everyday`. */
#ifndef BENCH_EVERYDAY_H
#define BENCH_EVERYDAY_H

#include "bench.h"

/* Makes g, x, small, medium, big and e for about `rows` rows: the same ones every time. */
void everyday_tables(struct bench_db *db, int64_t rows);

#endif
