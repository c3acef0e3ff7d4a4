/* index_grow.c: STEP_BUILD of an index to which rows are added: a recursion's rows so far, by a key.
 *
 * It is a hash table whose keys have runs of row numbers, as index_hash.c makes it, but runs have room to
 * spare: one of n rows has room for the next power of two. A run that is full moves to a place for twice as
 * many; places that runs left are given back when the array of all is made anew, twice as large as what is
 * in use. So all rounds together cost as much as a few builds, and a look-up finds all rows of a key side by
 * side. */
#include "cpu/index_int.h"

enum {
#ifdef WF_HARD
    ROOM_MIN = 4,
#else
    ROOM_MIN = 1 << 12,
#endif
    ROWS_PER_CHECK = STOP_EVERY(1 << 16)
};

static i64 run_room(const struct hash_slot *slot) {
    i64 rows = (i64)slot->hi - slot->lo;
    return rows > 1 ? 1LL << (64 - __builtin_clzll((u64)rows - 1)) : rows;
}

/* The runs side by side again, with room for `more`. */
static FALLIBLE make_room(struct exec *x, struct index *index, i64 more) {
    i64 count = MAX_OF(2 * (index->rows_live + more), (i64)ROOM_MIN);
    if (count >= 1LL << 32) { /* they are numbered by 32 bits */
        count = index->rows_live + more;
    }
    if (count >= 1LL << 32) {
        FAIL(x->err, PROGRAM_LIMIT, "an index that grows over more than 2^32 places for rows");
    }
    u32 *rows = mem_alloc(x->mem, count * (i64)sizeof *rows);
    if (!rows) {
        return memory_refused(x->mem, x->err, count * (i64)sizeof *rows);
    }
    i64 used = 0;
    for (i64 i = 0; i < index->slot_count; i++) {
        struct hash_slot *slot = &index->slots[i];
        i64 length = (i64)slot->hi - slot->lo;
        if (length > 0) {
            i64 room = run_room(slot);
            memcpy(rows + used, index->rows + slot->lo, (size_t)length * sizeof *rows);
            *slot = (struct hash_slot){slot->key, (u32)used, (u32)(used + length)};
            used += room;
        }
    }
    mem_free(x->mem, index->rows, index->row_count * (i64)sizeof *rows);
    index->rows = rows;
    index->row_count = count;
    index->rows_used = used;
    return ERR_OK;
}

/* A run that is full moves to where it has room for twice as many. */
static FALLIBLE move_run(struct exec *x, struct index *index, struct hash_slot *slot) {
    i64 length = (i64)slot->hi - slot->lo;
    i64 room = MAX_OF(2 * length, 1);
    if (index->rows_used + room > index->row_count) {
        TRY(make_room(x, index, room));
    }
    u32 to = (u32)index->rows_used;
    if (length > 0) {
        memcpy(index->rows + to, index->rows + slot->lo, (size_t)length * sizeof(u32));
    }
    slot->lo = to;
    slot->hi = to + (u32)length;
    index->rows_used += room;
    index->rows_live += room - length;
    return ERR_OK;
}

static FALLIBLE add_rows(struct exec *x, struct index *index, const struct column *keys, i64 from,
                         i64 to) {
    const i64 *key = keys->data;
    TRY(index_slots(x, index, index->key_count + to - from));
    for (i64 i = from; i < to; i++) {
        if (keys->nulls && keys->nulls[i]) {
            continue;
        }
        struct hash_slot *slot = slot_walk(index->slots, (u64)index->slot_count - 1,
                                           slot_of(index, key[i]), key[i]);
        bool free = slot_free(slot);
        i64 length = free ? 0 : (i64)slot->hi - slot->lo;
        if ((length & (length - 1)) == 0) { /* full, or new */
            slot->key = key[i];
            slot->lo = free ? 0 : slot->lo;
            TRY(move_run(x, index, slot));
            index->key_count += free;
        }
        index->rows[slot->hi++] = (u32)i;
    }
    return ERR_OK;
}

wf_status index_grow(struct exec *x, const struct step *step) {
    struct variable *from = &x->vars[step->src];
    struct variable *to = &x->vars[step->dst];
    if (!to->index || to->copy || to->index->grown_rows > from->rows) {
        variable_reset(to);
        index_new(x, step->dst)->form = INDEX_HASH;
        TRY(index_slots(x, to->index, 0));
        TRY(make_room(x, to->index, 0));
    }
    if (from->rows >= 0xffffffffLL) {
        FAIL(x->err, PROGRAM_LIMIT, "an index over 2^32 rows or more");
    }
    struct index *index = to->index;
    to->on_host = 1;
    TRY(variable_flatten(x, step->src));
    while (index->grown_rows < from->rows) {
        i64 end = MIN_OF(from->rows, index->grown_rows + ROWS_PER_CHECK);
        TRY(exec_check(x));
        TRY(add_rows(x, index, &from->chunks.items[0]->cols[step->col], index->grown_rows, end));
        index->grown_rows = end;
    }
    to->rows = from->rows;
    index_measure(index);
    return ERR_OK;
}
