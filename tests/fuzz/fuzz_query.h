/* fuzz_query.h: what expressions need of queries. */
#ifndef WF_TESTS_FUZZ_QUERY_H
#define WF_TESTS_FUZZ_QUERY_H

#include "fuzz.h"

/* (select ...) of one row and one column. */
void scalar_make(struct gen *g, const struct place *p, enum sort sort, int depth, double max);
/* EXISTS, IN, NOT IN, ANY, ALL. */
void subquery_cond_make(struct gen *g, const struct place *p, int depth);

#endif
