/* zone_table.c: all changes of a zone's clocks, listed once: from the first timestamp there is to the
 * end of the second cycle of 400 years, behind which they repeat themselves. */
#include "host/zone_table.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/zone.h"
#include "defs/host_words.h"
/* after the words they are written in */
#include "defs/fn_int.h"
#include "defs/fn_date.h"
#include "defs/fn_float.h"
#include "defs/fn_time.h"
#include "defs/fn_str.h"
#include "defs/fn_str2.h"
#include "defs/fn_make.h"
#include "defs/fn_format.h"
#include "defs/fn_zone.h"

enum { TABLES_MAX = 1024 }; /* zones with a name */

static _Atomic(struct zone_table *) tables[TABLES_MAX];

static i64 table_bytes(const struct zone_table *t) {
    return (i64)sizeof *t + t->count * (i64)sizeof(struct zone_change);
}

static struct zone_table *make_table(i32 zone) {
    const i64 begin = TS_MIN / SECOND_US - 400 * ZONE_DAY;
    const i64 end = 2 * ZONE_CYCLE + 400 * ZONE_DAY;
    u32 room = 64;
    struct zone_table *t = malloc(sizeof *t + room * sizeof(struct zone_change));
    i32 told = 0;
    if (!t) {
        return NULL;
    }
    *t = (struct zone_table){0, zone_offset(zone, begin)};
    for (i64 at = zone_next(zone, begin, &told); at < end; at = zone_next(zone, at, &told)) {
        if (t->count == room) {
            struct zone_table *more =
                realloc(t, sizeof *t + (size_t)(room *= 2) * sizeof(struct zone_change));
            if (!more) {
                free(t);
                return NULL;
            }
            t = more;
        }
        ((struct zone_change *)(t + 1))[t->count++] =
            (struct zone_change){at, zone_offset(zone, at), told};
    }
    return t;
}

struct sv zone_table_get(struct arena *arena, i32 zone) {
    i32 at = zone - ZONE_NAMED;
    if (!zone_is_named(zone)) {
        struct zone_table *offset = NEW(arena, struct zone_table);
        *offset = (struct zone_table){0, zone};
        return (struct sv){(const char *)offset, table_bytes(offset)};
    }
    if (zone >= ZONE_WORDS || at >= TABLES_MAX) {
        return (struct sv){NULL, 0};
    }
    _Atomic(struct zone_table *) *place = &tables[at];
    struct zone_table *t = atomic_load(place);
    if (!t) {
        struct zone_table *made = make_table(zone);
        if (made && atomic_compare_exchange_strong(place, &t, made)) {
            t = made;
        } else {
            free(made); /* another thread was first */
        }
    }
    return t ? (struct sv){(const char *)t, table_bytes(t)} : (struct sv){NULL, 0};
}
