/* postgres_none.c: what stands in for postgres.c where libpq is not installed. */
#include <stdio.h>

#include "fuzz.h"

struct postgres *postgres_open(const char *dsn) {
    fprintf(stderr, "cannot ask %s: built without libpq (package libpq-dev)\n", dsn);
    return NULL;
}

void postgres_close(struct postgres *pg) {
    (void)pg;
}

bool postgres_run(void *pg, const char *sql) {
    (void)pg;
    (void)sql;
    return false;
}

void postgres_ask(struct postgres *pg, const char *sql, const struct gen *g, struct answer *out) {
    (void)pg;
    (void)sql;
    (void)g;
    answer_reset(out);
}
