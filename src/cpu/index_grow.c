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

static i64 places_most(const struct index *part) {
    return index_rows_most(part->base) + 1;
}

static i64 run_room(const struct hash_slot *slot) {
    i64 rows = (i64)slot->hi - slot->lo;
    return rows > 1 ? 1LL << (64 - __builtin_clzll((u64)rows - 1)) : rows;
}

/* The runs side by side again, with room for `more`. *out_full: they would leave less than a quarter of all
 * numbers that places can have, and soon be put side by side again. */
static FALLIBLE make_room(struct exec *x, struct index *part, i64 more, bool *out_full) {
    i64 least = part->rows_live + more;
    i64 count = MIN_OF(MAX_OF(2 * least, (i64)ROOM_MIN), places_most(part));
    *out_full = least > places_most(part) / 4 * 3;
    if (*out_full) {
        return ERR_OK;
    }
    u32 *rows = mem_alloc(x->mem, count * (i64)sizeof *rows);
    if (!rows) {
        return memory_refused(x->mem, x->err, count * (i64)sizeof *rows);
    }
    i64 used = 0;
    for (i64 i = 0; i < part->slot_count; i++) {
        struct hash_slot *slot = &part->slots[i];
        i64 length = (i64)slot->hi - slot->lo;
        if (length > 0) {
            i64 room = run_room(slot);
            memcpy(rows + used, part->rows + slot->lo, (size_t)length * sizeof *rows);
            *slot = (struct hash_slot){slot->key, (u32)used, (u32)(used + length)};
            used += room;
        }
    }
    mem_free(x->mem, part->rows, part->row_count * (i64)sizeof *rows);
    part->rows = rows;
    part->row_count = count;
    part->rows_used = used;
    return ERR_OK;
}

/* A run that is full moves to where it has room for twice as many. */
static FALLIBLE move_run(struct exec *x, struct index *part, struct hash_slot *slot, bool *out_full) {
    i64 length = (i64)slot->hi - slot->lo;
    i64 room = MAX_OF(2 * length, 1);
    *out_full = false;
    if (part->rows_used + room > part->row_count) {
        TRY(make_room(x, part, room, out_full));
    }
    if (*out_full) {
        return ERR_OK;
    }
    u32 to = (u32)part->rows_used;
    if (length > 0) {
        memcpy(part->rows + to, part->rows + slot->lo, (size_t)length * sizeof(u32));
    }
    slot->lo = to;
    slot->hi = to + (u32)length;
    part->rows_used += room;
    part->rows_live += room - length;
    return ERR_OK;
}

/* Rows from `from` on, before `to`, as many as the part has numbers for; *out_end: behind the last. */
static FALLIBLE add_rows(struct exec *x, struct index *part, const struct column *keys, i64 from,
                         i64 to, i64 *out_end) {
    const i64 *key = keys->data;
    bool full = false;
    to = MIN_OF(to, part->base + index_rows_most(part->base));
    *out_end = to;
    TRY(index_slots(x, part, part->key_count + to - from));
    for (i64 i = from; i < to; i++) {
        if (keys->nulls && keys->nulls[i]) {
            continue;
        }
        struct hash_slot *slot =
            slot_walk(part->slots, (u64)part->slot_count - 1, slot_of(part, key[i]), key[i]);
        bool free = slot_free(slot);
        i64 length = free ? 0 : (i64)slot->hi - slot->lo;
        if ((length & (length - 1)) == 0) { /* full, or new */
            struct hash_slot had = *slot;
            slot->key = key[i];
            slot->lo = free ? 0 : slot->lo;
            TRY(move_run(x, part, slot, &full));
            if (full) {
                *slot = had;
                *out_end = i;
                return ERR_OK;
            }
            part->key_count += free;
        }
        part->rows[slot->hi++] = (u32)(i - part->base);
    }
    return ERR_OK;
}

static FALLIBLE begin_part(struct exec *x, struct index *part) {
    bool full;
    part->form = INDEX_HASH;
    TRY(index_slots(x, part, 0));
    return make_room(x, part, 0, &full);
}

/* The part that takes rows from `from` on. */
static FALLIBLE part_for(struct exec *x, struct index *index, i64 from, bool full, struct index **out) {
    bool chain = index->form == INDEX_CHAIN;
    struct index *last = chain ? &index->parts[index->part_count - 1] : index;
    *out = last;
    if (full || from - last->base >= index_rows_most(last->base)) {
        TRY(index_add_part(x, index, from, out));
        return begin_part(x, *out);
    }
    return ERR_OK;
}

wf_status index_grow(struct exec *x, const struct step *step) {
    struct variable *from = &x->vars[step->src];
    struct variable *to = &x->vars[step->dst];
    if (!to->index || to->copy || to->index->grown_rows > from->rows) {
        variable_reset(to);
        TRY(begin_part(x, index_new(x, step->dst)));
    }
    struct index *index = to->index;
    to->on_host = 1;
    TRY(variable_flatten(x, step->src));
    bool full = false;
    while (index->grown_rows < from->rows) {
        i64 end = MIN_OF(from->rows, index->grown_rows + ROWS_PER_CHECK);
        struct index *part;
        TRY(exec_check(x));
        TRY(part_for(x, index, index->grown_rows, full, &part));
        TRY(add_rows(x, part, &from->chunks.items[0]->cols[step->col], index->grown_rows, end,
                     &end));
        full = end == index->grown_rows; /* not one had a place */
        index->grown_rows = end;
    }
    to->rows = from->rows;
    index_measure(index);
    return ERR_OK;
}
