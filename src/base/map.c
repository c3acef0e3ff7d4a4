/* map.c: the string-keyed map, and the nearest of a list of names. */
#include "base/map.h"

void map_init(struct map *map, struct arena *arena) {
    memset(map, 0, sizeof *map);
    map->arena = arena;
}

/* The slot that holds key, or the free one where it belongs. */
static i64 find_slot(const struct map *map, struct sv key) {
    i64 mask = map->slot_count - 1;
    i64 slot = (i64)(sv_hash(key) & (u64)mask);
    while (map->slots[slot]) {
        const struct map_entry *entry = &map->entries.items[map->slots[slot] - 1];
        if (entry->key.ptr && sv_eq(entry->key, key)) {
            break;
        }
        slot = (slot + 1) & mask;
    }
    return slot;
}

static void grow(struct map *map) {
    map->slot_count = MAX_OF(map->slot_count * 2, 16);
    map->slots = NEW_ARRAY(map->arena, u32, map->slot_count);
    for (i64 i = 0; i < map->entries.count; i++) {
        if (map->entries.items[i].key.ptr) {
            map->slots[find_slot(map, map->entries.items[i].key)] = (u32)i + 1;
        }
    }
}

void *map_find(const struct map *map, struct sv key) {
    if (!map->slot_count) {
        return NULL;
    }
    u32 entry = map->slots[find_slot(map, key)];
    return entry ? map->entries.items[entry - 1].value : NULL;
}

void map_set(struct map *map, struct sv key, void *value) {
    if ((map->entries.count + 1) * 2 > map->slot_count) {
        grow(map);
    }
    i64 slot = find_slot(map, key);
    if (map->slots[slot]) {
        map->entries.items[map->slots[slot] - 1].value = value;
        return;
    }
    struct map_entry entry = {key, value};
    VEC_PUSH(map->arena, &map->entries, entry);
    map->slots[slot] = (u32)map->entries.count;
}

void map_remove(struct map *map, struct sv key) {
    if (!map->slot_count) {
        return;
    }
    u32 entry = map->slots[find_slot(map, key)];
    if (entry) { /* the slot stays taken, so that probing past it still works */
        map->entries.items[entry - 1].key = (struct sv){NULL, 0};
        map->entries.items[entry - 1].value = NULL;
    }
}

static char fold(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

enum { NAME_MAX_LEN = 64 };

/* Edits (insert, remove, replace, swap of neighbours) from a to b. */
static i32 edit_distance(struct sv a, struct sv b) {
    i32 rows[3][NAME_MAX_LEN + 1];
    i32 *before = rows[0], *above = rows[1], *row = rows[2];
    for (i64 j = 0; j <= b.len; j++) {
        above[j] = (i32)j;
    }
    for (i64 i = 1; i <= a.len; i++) {
        row[0] = (i32)i;
        for (i64 j = 1; j <= b.len; j++) {
            bool same = fold(a.ptr[i - 1]) == fold(b.ptr[j - 1]);
            i32 best = MIN_OF(above[j] + 1, row[j - 1] + 1);
            best = MIN_OF(best, above[j - 1] + !same);
            if (i > 1 && j > 1 && fold(a.ptr[i - 1]) == fold(b.ptr[j - 2]) &&
                fold(a.ptr[i - 2]) == fold(b.ptr[j - 1])) {
                best = MIN_OF(best, before[j - 2] + 1);
            }
            row[j] = best;
        }
        i32 *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b.len];
}

const char *nearest_name(struct arena *arena, struct sv name, struct sv (*next)(void *arg, i64 i),
                         void *arg) {
    if (name.len > NAME_MAX_LEN) {
        return NULL;
    }
    i32 best = (i32)(name.len / 3) + 1;
    struct sv found = {NULL, 0};
    for (i64 i = 0;; i++) {
        struct sv candidate = next(arg, i);
        if (!candidate.ptr) {
            break;
        }
        if (candidate.len == 0 || candidate.len > NAME_MAX_LEN) {
            continue;
        }
        i32 distance = edit_distance(name, candidate);
        if (distance < best || (distance == best && !found.ptr)) {
            best = distance;
            found = candidate;
        }
    }
    return found.ptr ? arena_sv(arena, found).ptr : NULL;
}

struct name_list {
    const char *const *names;
    i64 count;
};

static struct sv next_of_list(void *arg, i64 i) {
    const struct name_list *list = arg;
    return i < list->count ? sv_from(list->names[i]) : (struct sv){NULL, 0};
}

const char *nearest_of(struct arena *arena, const char *name, const char *const *names, i64 count) {
    struct name_list list = {names, count};
    return nearest_name(arena, sv_from(name), next_of_list, &list);
}
