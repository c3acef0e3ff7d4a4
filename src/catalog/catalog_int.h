/* catalog_int.h: what the files of catalog/ share. */
#ifndef WF_CATALOG_CATALOG_INT_H
#define WF_CATALOG_CATALOG_INT_H

#include "catalog/catalog.h"

/* A list of `count` entries to be filled; NULL when refused. */
struct edition *edition_alloc(struct memory *mem, i64 count);
void edition_set(struct edition *edition, i64 i, struct object *object,
                 struct table_version *version); /* retains both */
void edition_index(struct edition *edition);     /* makes by_name */
u64 catalog_new_definitions(struct catalog *catalog);

#endif
