/* map.h: string-keyed hash map in an arena: open addressing, insertion order kept. */
#ifndef WF_BASE_MAP_H
#define WF_BASE_MAP_H

#include "base/mem.h"

struct map_entry {
    struct sv key;
    void *value;
};
struct map {
    struct arena *arena;
    u32 *slots; /* entry index + 1, 0 = free */
    i64 slot_count;
    VEC(struct map_entry) entries; /* removed entries have key.ptr == NULL */
};
void map_init(struct map *map, struct arena *arena);
void *map_find(const struct map *map, struct sv key);      /* NULL when absent */
void map_set(struct map *map, struct sv key, void *value); /* the key's bytes are borrowed */
void map_remove(struct map *map, struct sv key);

/* The candidate nearest to `name` in edit distance (case-insensitive), or NULL when none is close
 * enough to suggest. `next(arg, i)` returns candidate i, or a view with ptr NULL at the end. */
const char *nearest_name(struct arena *arena, struct sv name, struct sv (*next)(void *arg, i64 i),
                         void *arg);
/* The same of a list. */
const char *nearest_of(struct arena *arena, const char *name, const char *const *names, i64 count);

#endif
