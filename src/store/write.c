/* write.c: a writer: from one version to the next.
 *
 * A writer copies its base's draft (counters, statistics, references to the tail's buffers), adds
 * rows and marks others deleted, and at the end makes a version of it. The base stays as it is: new
 * rows go behind those of its tail, where nobody looks, and bitmaps are copied before they change;
 * so giving up costs nothing. Full tablets of a large append are sealed straight from the input. */
#include "store/store_int.h"

i64 draft_bytes(const struct table *table) {
    return (i64)sizeof(struct draft) + (i64)table->col_count * (i64)sizeof(struct col_draft);
}

struct tail_room *room_new(struct memory *mem, u32 claimed) {
    struct tail_room *room = mem_alloc(mem, (i64)sizeof *room);
    if (room) {
        atomic_init(&room->refs, 1);
        atomic_init(&room->claimed, claimed);
        room->mem = mem;
    }
    return room;
}

void room_release(struct tail_room *room) {
    if (room && atomic_fetch_sub_explicit(&room->refs, 1, memory_order_acq_rel) == 1) {
        mem_free(room->mem, room, (i64)sizeof *room);
    }
}

void draft_free(struct memory *mem, u32 col_count, struct draft *draft) {
    if (!draft) {
        return;
    }
    for (u32 i = 0; i < col_count; i++) {
        buffer_release(draft->cols[i].data);
        buffer_release(draft->cols[i].valid);
        buffer_release(draft->cols[i].bytes);
    }
    room_release(draft->room);
    mem_free(mem, draft, (i64)sizeof *draft + (i64)col_count * (i64)sizeof(struct col_draft));
}

void draft_unclaim(struct draft *draft) {
    if (draft && draft->room && draft->tail_rows > draft->claim_from) {
        u32 own = draft->tail_rows;
        atomic_compare_exchange_strong(&draft->room->claimed, &own, draft->claim_from);
    }
}

struct draft *draft_new(const struct table *table) {
    struct draft *draft = mem_alloc(table->mem, draft_bytes(table));
    if (!draft) {
        return NULL;
    }
    memset(draft, 0, (size_t)draft_bytes(table));
    for (u32 i = 0; i < table->col_count; i++) {
        facts_init(&draft->cols[i].all, table->cols[i].type);
        facts_init(&draft->cols[i].tail, table->cols[i].type);
        draft->cols[i].dict_on = type_is_text(table->cols[i].type);
    }
    return draft;
}

struct draft *draft_copy(const struct table *table, const struct draft *from) {
    struct draft *draft = mem_alloc(table->mem, draft_bytes(table));
    if (!draft) {
        return NULL;
    }
    memcpy(draft, from, (size_t)draft_bytes(table));
    if (draft->room) {
        atomic_fetch_add_explicit(&draft->room->refs, 1, memory_order_relaxed);
    }
    draft->claim_from = draft->tail_rows;
    for (u32 i = 0; i < table->col_count; i++) {
        struct col_draft *col = &draft->cols[i];
        col->data = col->data ? buffer_retain(col->data) : NULL;
        col->valid = col->valid ? buffer_retain(col->valid) : NULL;
        col->bytes = col->bytes ? buffer_retain(col->bytes) : NULL;
        col->valid_private = 0;
    }
    return draft;
}

static i64 writer_bytes(const struct table *table) {
    return (i64)table->col_count * (i64)(sizeof(struct column_source) + sizeof(_Atomic i32));
}

void table_writer_begin(struct table *table) {
    for (u32 i = 0; i < table->col_count; i++) {
        if (table->dicts[i]) {
            dict_writer_begin(table->dicts[i]);
        }
    }
}

void table_writer_end(struct table *table) {
    for (u32 i = 0; i < table->col_count; i++) {
        if (table->dicts[i]) {
            dict_writer_end(table->dicts[i]);
        }
    }
}

wf_status writer_begin(struct writer *writer, struct table *table, struct table_version *base,
                       struct error *err) {
    *writer = (struct writer){
        .table = table, .base = base, .sealed.mem = table->mem, .next_slot = base->next_slot};
    CHECK(base->draft != NULL);
    table_writer_begin(table);
    writer->draft = draft_copy(table, base->draft);
    writer->sources = mem_alloc(table->mem, writer_bytes(table));
    if (!writer->draft || !writer->sources) {
        return memory_refused(table->mem, err, draft_bytes(table));
    }
    writer->dict_on = (_Atomic i32 *)(void *)(writer->sources + table->col_count);
    for (u32 i = 0; i < table->col_count; i++) {
        atomic_init(&writer->dict_on[i], writer->draft->cols[i].dict_on);
    }
    return ERR_OK;
}

static i64 deleted_bytes(i64 count) {
    return count * (i64)(sizeof(struct buffer *) + sizeof(u32) + sizeof(b8));
}

void writer_end(struct writer *writer) {
    struct table *table = writer->table;
    i64 count = writer->base->tablet_count;
    for (i64 i = 0; i < writer->sealed.count && writer->sealed_deleted; i++) {
        buffer_release(writer->sealed_deleted[i]);
    }
    i64 cap = writer->sealed.cap;
    mem_free(table->mem, writer->sealed_deleted, cap * (i64)sizeof(struct buffer *));
    mem_free(table->mem, writer->sealed_slots, cap * (i64)sizeof(u32));
    tablet_list_fini(&writer->sealed);
    for (i64 i = 0; writer->deleted && i < count; i++) {
        buffer_release(writer->deleted[i]);
    }
    mem_free(table->mem, writer->deleted, deleted_bytes(count));
    if (writer->draft) {
        draft_unclaim(writer->draft);
        draft_free(table->mem, table->col_count, writer->draft);
    }
    mem_free(table->mem, writer->sources, writer_bytes(table));
    table_writer_end(table);
}

/* Room for one more in the lists beside `sealed`, which grow with it. */
static bool grow_lists(struct writer *writer, i64 old_cap) {
    struct memory *mem = writer->table->mem;
    i64 cap = writer->sealed.cap, count = writer->sealed.count;
    if (cap == old_cap && writer->sealed_slots) {
        return true;
    }
    u32 *slots = mem_alloc(mem, cap * (i64)sizeof *slots);
    struct buffer **deleted = mem_alloc(mem, cap * (i64)sizeof *deleted);
    if (!slots || !deleted) {
        mem_free(mem, slots, cap * (i64)sizeof *slots);
        mem_free(mem, deleted, cap * (i64)sizeof *deleted);
        return false;
    }
    if (count > 1) {
        memcpy(slots, writer->sealed_slots, (size_t)(count - 1) * sizeof *slots);
        memcpy(deleted, writer->sealed_deleted, (size_t)(count - 1) * sizeof(void *));
    }
    mem_free(mem, writer->sealed_slots, old_cap * (i64)sizeof *slots);
    mem_free(mem, writer->sealed_deleted, old_cap * (i64)sizeof *deleted);
    writer->sealed_slots = slots;
    writer->sealed_deleted = deleted;
    return true;
}

wf_status writer_add(struct writer *writer, struct tablet *tablet, u32 slot, struct buffer *deleted,
                     struct error *err) {
    i64 old_cap = writer->sealed.cap;
    if (!tablet_list_push(&writer->sealed, tablet)) {
        tablet_release(tablet);
        buffer_release(deleted);
        return memory_refused(writer->table->mem, err, writer->sealed.cap * 16);
    }
    if (!grow_lists(writer, old_cap)) {
        tablet_release(writer->sealed.items[--writer->sealed.count]);
        struct memory *mem = writer->table->mem;
        /* The lists keep their old capacity, the tablets' has grown: drop both. */
        for (i64 i = 0; i < writer->sealed.count; i++) {
            buffer_release(writer->sealed_deleted[i]);
        }
        mem_free(mem, writer->sealed_deleted, old_cap * (i64)sizeof(struct buffer *));
        mem_free(mem, writer->sealed_slots, old_cap * (i64)sizeof(u32));
        writer->sealed_deleted = NULL;
        writer->sealed_slots = NULL;
        tablet_list_fini(&writer->sealed);
        buffer_release(deleted);
        return memory_refused(mem, err, writer->sealed.cap * 16);
    }
    writer->sealed_slots[writer->sealed.count - 1] = slot;
    writer->sealed_deleted[writer->sealed.count - 1] = deleted;
    return ERR_OK;
}

void writer_stop_dict(struct writer *writer, u32 col) {
    struct col_draft *draft = &writer->draft->cols[col];
    if (draft->dict_on) { /* the sketch counts from here on; it must know what was there before */
        dict_sketch(writer->table->dicts[col], &draft->sketch);
        draft->sketch_changed = 1;
        draft->dict_on = 0;
    }
    atomic_store(&writer->dict_on[col], 0);
}

wf_status writer_finish(struct writer *writer, struct table_version **out, struct error *err) {
    struct table *table = writer->table;
    struct tablet *tail;
    TRY(tail_view(writer, &tail, err));
    *out = version_new(writer, tail);
    if (!*out) {
        tablet_release(tail);
        return memory_refused(table->mem, err, writer->draft->sealed_count * 24);
    }
    writer->draft = NULL;
    return ERR_OK;
}

wf_status check_not_null(const struct table *table, i64 rows, const struct input_col *cols,
                         struct error *err) {
    for (u32 i = 0; i < table->col_count; i++) {
        if (table->cols[i].not_null && cols[i].nulls && memchr(cols[i].nulls, 1, (size_t)rows)) {
            FAIL(err, NOT_NULL,
                 "null value in column \"%s\" of relation \"%s\" violates not-null constraint",
                 table->cols[i].name, table->name);
        }
    }
    return ERR_OK;
}

void writer_count(struct writer *writer, const struct tablet *tablet) {
    const struct table *table = writer->table;
    for (u32 i = 0; i < table->col_count; i++) {
        struct type type = table->cols[i].type;
        struct facts facts = segment_facts(&tablet->cols[i], type, tablet->rows);
        facts_merge(&writer->draft->cols[i].all, &facts, type);
        writer->draft->cols[i].has_str |= tablet->cols[i].encoding == ENC_STR;
    }
}

/* Seals up to one tablet of rows straight from the input. */
static FALLIBLE append_tablet(struct writer *writer, const struct input_col *cols, i64 first,
                              i64 rows, i64 *out_done, struct error *err) {
    struct table *table = writer->table;
    struct draft *draft = writer->draft;
    for (u32 i = 0; i < table->col_count; i++) {
        writer->sources[i] = source_of_input(table->cols[i].type, &cols[i], first, rows);
    }
    i64 n = seal_rows(table, writer->sources, rows);
    i64 before = table->col_count > 0 ? draft->cols[0].all.rows : 0;
    struct seal seal = {
        .table = table, .rows = n, .column_rows = before + n, .dict_on = writer->dict_on};
    i64 sketch_bytes = (i64)table->col_count * (i64)sizeof(struct sketch);
    seal.sketches = mem_alloc(table->mem, sketch_bytes);
    if (!seal.sketches) {
        return memory_refused(table->mem, err, sketch_bytes);
    }
    memset(seal.sketches, 0, (size_t)sketch_bytes);
    for (u32 i = 0; i < table->col_count; i++) {
        writer->sources[i].rows = n;
    }
    struct tablet *tablet = NULL;
    wf_status status = tablet_seal(&seal, writer->sources, &tablet, err);
    for (u32 i = 0; status == ERR_OK && i < table->col_count; i++) {
        struct col_draft *col = &draft->cols[i];
        if (!atomic_load(&writer->dict_on[i])) {
            writer_stop_dict(writer, i);
        }
        sketch_merge(&col->sketch, &seal.sketches[i]);
        col->sketch_changed = 1;
    }
    mem_free(table->mem, seal.sketches, sketch_bytes);
    TRY(status);
    writer_count(writer, tablet);
    *out_done = n;
    return writer_add(writer, tablet, writer->next_slot++, NULL, err);
}

wf_status writer_rows(struct writer *writer, i64 rows, const struct input_col *cols,
                      struct error *err) {
    i64 most = 1LL << writer->table->tablet_shift;
    for (i64 first = 0, done = 0; first < rows; first += done) {
        i64 left = rows - first;
        if (writer->draft->tail_rows == 0 && left >= most) {
            TRY(append_tablet(writer, cols, first, most, &done, err));
        } else {
            TRY(tail_append(writer, cols, first, left, &done, err));
        }
    }
    return ERR_OK;
}

wf_status version_append_unchecked(struct table *table, struct table_version *base, i64 rows,
                                   const struct input_col *cols, struct table_version **out,
                                   struct error *err) {
    TRY(check_not_null(table, rows, cols, err));
    struct writer writer;
    wf_status status = writer_begin(&writer, table, base, err);
    if (status == ERR_OK) {
        status = writer_rows(&writer, rows, cols, err);
    }
    if (status == ERR_OK) {
        status = writer_finish(&writer, out, err);
    }
    writer_end(&writer);
    return status;
}

wf_status version_append(struct table *table, struct table_version *base, i64 rows,
                         const struct input_col *cols, struct table_version **out,
                         struct error *err) {
    struct table_version *next;
    TRY(version_append_unchecked(table, base, rows, cols, &next, err));
    wf_status status = version_check_keys(table, base, next, NULL, err);
    if (status) {
        version_discard(next);
        return status;
    }
    *out = next;
    return ERR_OK;
}

/* The lists of bitmaps, as the base has them. */
static FALLIBLE own_deleted(struct writer *writer, struct error *err) {
    i64 count = writer->base->tablet_count;
    if (writer->deleted) {
        return ERR_OK;
    }
    writer->deleted = mem_alloc(writer->table->mem, deleted_bytes(count));
    if (!writer->deleted) {
        return memory_refused(writer->table->mem, err, deleted_bytes(count));
    }
    writer->deleted_counts = (u32 *)(void *)(writer->deleted + count);
    writer->deleted_own = (b8 *)(writer->deleted_counts + count);
    memset(writer->deleted_own, 0, (size_t)count);
    for (i64 i = 0; i < count; i++) {
        struct buffer *bits = writer->base->deleted[i];
        writer->deleted[i] = bits ? buffer_retain(bits) : NULL;
        writer->deleted_counts[i] = writer->base->deleted_counts[i];
    }
    return ERR_OK;
}

wf_status writer_delete(struct writer *writer, i64 t, u32 pos, bool *out_fresh, struct error *err) {
    TRY(own_deleted(writer, err));
    if (!writer->deleted_own[t]) {
        struct memory *mem = writer->table->mem;
        i64 rows = writer->base->tablet_rows[t];
        struct buffer *own = bits_new(mem, rows, writer->deleted[t]);
        if (!own) {
            return memory_refused(mem, err, rows / 8);
        }
        buffer_release(writer->deleted[t]);
        writer->deleted[t] = own;
        writer->deleted_own[t] = 1;
    }
    u64 *words = (u64 *)(void *)writer->deleted[t]->data;
    u64 bit = 1ULL << (pos & 63);
    *out_fresh = !(words[pos >> 6] & bit);
    words[pos >> 6] |= bit;
    writer->deleted_counts[t] += *out_fresh;
    return ERR_OK;
}
