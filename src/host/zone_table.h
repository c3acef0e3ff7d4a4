/* zone_table.h: the changes of a zone's clocks as a table: for devices that cannot ask for them. */
#ifndef WF_HOST_ZONE_TABLE_H
#define WF_HOST_ZONE_TABLE_H

#include "base/mem.h"

/* A struct zone_table of defs/fn_zone.h and what follows it, kept while the process runs, like a zone
 * with a name; that of an offset is in `arena`. Empty: the zone is a word, whose meaning changed by
 * itself, or memory is short. */
struct sv zone_table_get(struct arena *arena, i32 zone);

#endif
