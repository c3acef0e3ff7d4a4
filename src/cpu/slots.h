/* slots.h: the slots of an index's hash table: a key, and the run of its rows (defs/fn_table.h).
 *
 * One writer a part of the table. A slot is free while it has no rows at all; its memory is zero
 * then, so that a run under construction, whose bounds may be equal for a while, counts as taken. */
#ifndef WF_CPU_SLOTS_H
#define WF_CPU_SLOTS_H

#include "defs/host_words.h"
#include "run/variable.h"

#include "defs/fn_table.h"

static inline bool slot_free(const struct hash_slot *slot) {
    return slot->hi == 0;
}

static inline u64 slot_of(const struct index *index, i64 key) {
    return hash_64((u64)key) & ((u64)index->slot_count - 1);
}

/* From slot `at` on: the one that has the key, or a free one. */
static inline struct hash_slot *slot_walk(struct hash_slot *slots, u64 mask, u64 at, i64 key) {
    struct hash_slot *held = &slots[at];
    TABLE_WALK(at, mask, held, &slots[at], held->key != key && !slot_free(held))
    return held;
}

#endif
