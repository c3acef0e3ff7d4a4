/* replay.c: what led from one version to another as a record of the log, and back.
 *
 * A record has the rows that are new, by slot and first position, as plain values, deleted rows
 * too; the places that were deleted; and the slots that are gone. A sealed tail is no change. So a
 * row has the same place before and after recovery, in whatever encoding. Reading collects what all
 * records say of a table; then one version is made: tablets that got no rows stay as they are in
 * the file, others are sealed anew, the last one becomes the open tail. */
#include "store/saved_int.h"

/* writing */

static void column_rows_save(struct blob *out, const struct table *table, u32 c,
                             const struct tablet *tablet, i64 from, i64 to) {
    const struct segment *seg = &tablet->cols[c];
    struct type type = table->cols[c].type;
    i64 rows = to - from, width = kind_bytes[type_kind(type)];
    bool text = type_is_text(type);
    blob_u8(out, seg->valid != NULL);
    i64 nulls_at = out->len, bytes = seg->valid ? (rows + 7) / 8 : 0;
    u8 *nulls = bytes ? blob_room(out, bytes) : NULL;
    if (nulls) {
        memset(nulls, 0, (size_t)bytes);
    }
    union lit value;
    for (i64 i = 0; i < rows && !out->refused_bytes; i++) {
        memset(&value, 0, sizeof value);
        bool is_null = !segment_get(seg, table->dicts[c], type, from + i, &value);
        if (is_null) {
            memset(&value, 0, sizeof value);
            out->data[nulls_at + i / 8] |= (u8)(1 << i % 8);
        }
        if (text) {
            struct sv s = is_null ? SV("") : sv_of(value.str);
            blob_u32(out, (u32)s.len);
            blob_bytes(out, s.ptr, s.len);
        } else {
            blob_bytes(out, &value, width);
        }
    }
}

/* Rows of tablet t that `before` has not, and what is deleted of it since. */
static bool slot_save(struct blob *out, const struct table *table,
                      const struct table_version *before, const struct table_version *after, i64 t,
                      i64 most_bytes) {
    i64 b = before ? version_find_slot(before, after->slots[t]) : -1;
    const struct tablet *tablet = after->tablets[t];
    i64 from = b >= 0 ? before->tablet_rows[b] : 0, rows = after->tablet_rows[t];
    u32 gone = after->deleted_counts[t], was = b >= 0 ? before->deleted_counts[b] : 0;
    if (b >= 0 && rows == from && gone == was) {
        return true;
    }
    if ((rows - from) * table->col_count > most_bytes) {
        return false;
    }
    blob_u8(out, 1);
    blob_u32(out, after->slots[t]);
    blob_u32(out, (u32)from);
    blob_u32(out, (u32)(rows - from));
    for (u32 c = 0; c < table->col_count && rows > from; c++) {
        struct error ignored; /* saving the state meets it again */
        error_reset(&ignored);
        if (column_hold(tablet, c, HOLD_SHORT, &ignored)) {
            return false;
        }
        column_rows_save(out, table, c, tablet, from, rows);
        column_drop(tablet, c);
        if (out->len > most_bytes) {
            return false;
        }
    }
    if (gone) {
        bits_save(out, version_deleted(after, t), rows, gone);
    } else {
        blob_u32(out, 0);
    }
    return out->len <= most_bytes;
}

bool version_change_save(struct blob *out, const struct table *table,
                         const struct table_version *before, const struct table_version *after,
                         i64 most_bytes) {
    blob_u32(out, after->next_slot);
    for (i64 t = 0; t < after->tablet_count; t++) {
        if (!slot_save(out, table, before, after, t, most_bytes)) {
            return false;
        }
    }
    for (i64 t = 0; before && t < before->tablet_count; t++) {
        if (version_find_slot(after, before->slots[t]) < 0) {
            blob_u8(out, 2);
            blob_u32(out, before->slots[t]);
        }
    }
    if (after->mixed) { /* the order is not that of the slots */
        blob_u8(out, 3);
        blob_u32(out, (u32)after->tablet_count);
        blob_bytes(out, after->slots, after->tablet_count * 4);
    }
    blob_u8(out, 0);
    return out->len <= most_bytes;
}

/* reading */

struct replay_rows {
    i64 rows;
    struct input_col *cols;
};
struct replay_slot {
    u32 slot, base_rows, rows;
    struct tablet *tablet; /* borrowed from the base; NULL: new */
    struct buffer *deleted;
    b8 is_gone;
    VEC(struct replay_rows) added;
};
struct replay {
    struct arena *arena;
    struct table *table;
    struct table_version *base;
    u32 next_slot;
    b8 mixed; /* the last record gave an order of its own */
    VEC(struct replay_slot) slots;
};

static void replay_drop(void *arg) {
    struct replay *replay = arg;
    for (i64 i = 0; i < replay->slots.count; i++) {
        buffer_release(replay->slots.items[i].deleted);
    }
    version_release(replay->base);
    table_close(replay->table);
}

struct replay *replay_new(struct arena *arena, struct table *table, struct table_version *base) {
    struct replay *replay = NEW(arena, struct replay);
    replay->arena = arena;
    replay->table = table_retain(table);
    replay->base = version_retain(base);
    replay->next_slot = base->next_slot;
    replay->mixed = base->mixed;
    for (i64 t = 0; t < base->tablet_count; t++) {
        struct replay_slot slot = {.slot = base->slots[t],
                                   .base_rows = base->tablet_rows[t],
                                   .rows = base->tablet_rows[t],
                                   .tablet = base->tablets[t]};
        slot.deleted = base->deleted[t] ? buffer_retain(base->deleted[t]) : NULL;
        VEC_PUSH(arena, &replay->slots, slot);
    }
    arena_on_reset(arena, replay_drop, replay);
    return replay;
}

static struct replay_slot *find_slot(struct replay *replay, u32 number) {
    for (i64 i = replay->slots.count - 1; i >= 0; i--) { /* changes are at the end, mostly */
        if (replay->slots.items[i].slot == number && !replay->slots.items[i].is_gone) {
            return &replay->slots.items[i];
        }
    }
    return NULL;
}

static void texts_read(struct blob_reader *from, str *out, i64 rows) {
    for (i64 i = 0; i < rows && !from->bad; i++) {
        u32 len = read_u32(from);
        const u8 *text = read_bytes(from, len);
        out[i] = text ? str_from((struct sv){(const char *)text, len}) : (str){0};
    }
}

static struct input_col column_rows_read(struct replay *replay, struct blob_reader *from,
                                         struct type type, i64 rows) {
    i64 width = kind_bytes[type_kind(type)];
    bool has_nulls = read_u8(from);
    const u8 *bits = has_nulls ? read_bytes(from, (rows + 7) / 8) : NULL;
    struct input_col col = {NULL, NULL};
    if (from->bad || from->end - from->at < rows * (type_is_text(type) ? 4 : width)) {
        from->bad = 1;
        return col;
    }
    void *data = arena_alloc(replay->arena, rows * width + 16);
    col.data = data;
    if (type_is_text(type)) {
        texts_read(from, data, rows);
    } else {
        memcpy(data, read_bytes(from, rows * width), (size_t)(rows * width));
    }
    b8 *nulls = bits ? NEW_ARRAY(replay->arena, b8, rows) : NULL;
    for (i64 i = 0; nulls && i < rows; i++) {
        nulls[i] = bits[i / 8] >> i % 8 & 1;
    }
    col.nulls = nulls;
    return col;
}

static FALLIBLE slot_read(struct replay *replay, struct blob_reader *from, struct error *err) {
    const struct table *table = replay->table;
    u32 number = read_u32(from), first = read_u32(from), rows = read_u32(from);
    struct replay_slot *slot = find_slot(replay, number);
    if (!slot) {
        struct replay_slot made = {.slot = number};
        VEC_PUSH(replay->arena, &replay->slots, made);
        slot = &replay->slots.items[replay->slots.count - 1];
    }
    if (from->bad || first != slot->rows || (u64)first + rows > 1ULL << table->tablet_shift ||
        first + rows == 0) {
        from->bad = 1;
        return ERR_OK;
    }
    slot->rows += rows;
    if (rows) {
        struct replay_rows added = {rows,
                                    NEW_ARRAY(replay->arena, struct input_col, table->col_count)};
        for (u32 c = 0; c < table->col_count; c++) {
            added.cols[c] = column_rows_read(replay, from, table->cols[c].type, rows);
        }
        VEC_PUSH(replay->arena, &slot->added, added);
    }
    struct blob_reader ahead = *from;
    if (read_u32(&ahead) == 0) {
        *from = ahead;
        return ERR_OK;
    }
    struct buffer *bits = bits_new(table->mem, slot->rows, slot->deleted);
    if (!bits) {
        return memory_refused(table->mem, err, slot->rows / 8);
    }
    buffer_release(slot->deleted);
    slot->deleted = bits;
    (void)bits_load(from, (u64 *)(void *)bits->data, slot->rows);
    return ERR_OK;
}

static void order_read(struct replay *replay, struct blob_reader *from) {
    u32 count = read_count(from, 4);
    i64 had = replay->slots.count;
    for (u32 i = 0; i < count && !from->bad; i++) {
        struct replay_slot *slot = find_slot(replay, read_u32(from));
        if (!slot || slot - replay->slots.items >= had) { /* not there, or named twice */
            from->bad = 1;
            return;
        }
        struct replay_slot moved = *slot;
        slot->is_gone = 1;
        slot->deleted = NULL;
        VEC_PUSH(replay->arena, &replay->slots, moved);
    }
}

wf_status replay_read(struct replay *replay, struct blob_reader *from, struct error *err) {
    replay->next_slot = read_u32(from);
    replay->mixed = 0;
    for (u8 what = read_u8(from); what && !from->bad; what = read_u8(from)) {
        if (what == 1) {
            TRY(slot_read(replay, from, err));
        } else if (what == 2) {
            struct replay_slot *gone = find_slot(replay, read_u32(from));
            from->bad |= !gone;
            if (gone) {
                gone->is_gone = 1;
            }
        } else if (what == 3) {
            order_read(replay, from);
            replay->mixed = 1;
        } else {
            from->bad = 1;
        }
    }
    return ERR_OK;
}

/* applying */

/* All rows of a slot as plain columns; texts are views of tablets, dictionaries and the log. */
static FALLIBLE slot_plain(struct replay *replay, const struct replay_slot *slot,
                           struct plain_rows *out, struct error *err) {
    const struct table *table = replay->table;
    TRY(plain_open(out, table, slot->rows, err));
    if (slot->tablet) {
        TRY(plain_fill_all(out, table, slot->tablet, 0, slot->base_rows, err));
    }
    for (i64 i = 0; i < slot->added.count; i++) {
        const struct replay_rows *added = &slot->added.items[i];
        for (u32 c = 0; c < table->col_count; c++) {
            i64 width = kind_bytes[type_kind(table->cols[c].type)];
            memcpy((u8 *)(size_t)out->cols[c].data + out->rows * width, added->cols[c].data,
                   (size_t)(added->rows * width));
            b8 *nulls = (b8 *)(size_t)out->cols[c].nulls + out->rows;
            if (added->cols[c].nulls) {
                memcpy(nulls, added->cols[c].nulls, (size_t)added->rows);
            } else {
                memset(nulls, 0, (size_t)added->rows);
            }
        }
        out->rows += added->rows;
    }
    CHECK(out->rows == slot->rows);
    return ERR_OK;
}

/* What is known of all rows of a column, the new ones counted. */
static void count_added(const struct replay *replay, const struct replay_slot *slot,
                        struct col_state *cols) {
    const struct table *table = replay->table;
    for (i64 i = 0; i < slot->added.count; i++) {
        for (u32 c = 0; c < table->col_count; c++) {
            struct type type = table->cols[c].type;
            struct column_source src = source_of_input(type, &slot->added.items[i].cols[c], 0,
                                                       slot->added.items[i].rows);
            struct facts facts;
            column_scan(&src, &facts, &cols[c].sketch, NULL);
            facts_merge(&cols[c].all, &facts, type);
            cols[c].sketch_changed = 1;
        }
    }
}

static FALLIBLE slot_seal(struct replay *replay, const struct plain_rows *plain,
                          struct col_state *cols, struct tablet **out, struct error *err) {
    struct table *table = replay->table;
    struct column_source *sources = NEW_ARRAY(replay->arena, struct column_source, table->col_count);
    _Atomic i32 *dict_on = NEW_ARRAY(replay->arena, _Atomic i32, table->col_count);
    for (u32 c = 0; c < table->col_count; c++) {
        sources[c] = source_of_input(table->cols[c].type, &plain->cols[c], 0, plain->rows);
        atomic_init(&dict_on[c], cols[c].dict_on);
    }
    struct seal seal = {.table = table,
                        .rows = plain->rows,
                        .column_rows = cols[0].all.rows,
                        .dict_on = dict_on};
    TRY(tablet_seal(&seal, sources, out, err));
    for (u32 c = 0; c < table->col_count; c++) {
        if (cols[c].dict_on && !atomic_load(&dict_on[c])) {
            dict_sketch(table->dicts[c], &cols[c].sketch);
            cols[c].dict_on = 0;
        }
        cols[c].has_str |= (*out)->cols[c].encoding == ENC_STR;
    }
    return ERR_OK;
}

struct replay_out {
    struct version_part *parts;
    i64 count;
    struct tablet **sealed; /* to be released */
    i64 sealed_count;
    struct plain_rows tail;
    struct col_state *cols;
};

static FALLIBLE slot_apply(struct replay *replay, struct replay_slot *slot, bool is_last,
                           struct replay_out *out, struct error *err) {
    struct table *table = replay->table;
    i64 gone = slot->deleted ? bits_count((const u64 *)(void *)slot->deleted->data, slot->rows) : 0;
    struct version_part *part = &out->parts[out->count];
    *part = (struct version_part){.slot = slot->slot, .deleted = gone ? slot->deleted : NULL};
    if (gone && slot->deleted->bytes * 8 < slot->rows) { /* of fewer rows than there are now */
        struct buffer *longer = bits_new(table->mem, slot->rows, slot->deleted);
        if (!longer) {
            return memory_refused(table->mem, err, slot->rows / 8);
        }
        buffer_release(slot->deleted);
        part->deleted = slot->deleted = longer;
    }
    count_added(replay, slot, out->cols);
    if (gone == slot->rows) {
        return ERR_OK; /* no live row: no tablet */
    }
    out->count++;
    bool was_tail = slot->tablet && replay->base->draft->tail_rows &&
                    replay->base->draft->tail_slot == slot->slot;
    if (slot->rows == slot->base_rows && !(is_last && was_tail)) {
        part->tablet = slot->tablet;
        if (!was_tail) {
            return ERR_OK;
        }
    }
    struct plain_rows plain = {0};
    wf_status status = slot_plain(replay, slot, &plain, err);
    if (status) {
        plain_close(&plain, table);
        return status;
    }
    if (is_last && slot->rows < 1u << table->tablet_shift) {
        out->tail = plain;
        part->plain = &out->tail;
        return ERR_OK;
    }
    status = slot_seal(replay, &plain, out->cols, &part->tablet, err);
    plain_close(&plain, table);
    if (!status) {
        out->sealed[out->sealed_count++] = part->tablet;
    }
    return status;
}

static FALLIBLE replay_apply(struct replay *replay, struct replay_out *out, struct error *err) {
    const struct table *table = replay->table;
    const struct draft *draft = replay->base->draft;
    i64 last = replay->slots.count - 1;
    while (last >= 0 && replay->slots.items[last].is_gone) {
        last--;
    }
    for (u32 c = 0; c < table->col_count; c++) {
        const struct col_draft *col = &draft->cols[c];
        out->cols[c] = (struct col_state){.all = col->all,
                                          .sketch = col->sketch,
                                          .distinct = col->distinct,
                                          .dict_on = col->dict_on,
                                          .has_str = col->has_str,
                                          .sketch_changed = col->sketch_changed};
    }
    for (i64 i = 0; i <= last; i++) {
        struct replay_slot *slot = &replay->slots.items[i];
        if (!slot->is_gone) {
            TRY(slot_apply(replay, slot, i == last, out, err));
        }
    }
    return ERR_OK;
}

/* Slots ascend: so they must where the last record did not give another order. */
static bool in_order(const struct replay *replay) {
    u32 last = 0;
    bool fine = true;
    for (i64 i = 0; i < replay->slots.count && fine; i++) {
        const struct replay_slot *slot = &replay->slots.items[i];
        fine = slot->is_gone || slot->slot > last;
        last = slot->is_gone ? last : slot->slot;
    }
    return fine;
}

wf_status replay_finish(struct replay *replay, struct table_version **out, struct error *err) {
    struct table *table = replay->table;
    i64 most = replay->slots.count + 1;
    struct replay_out parts = {.parts = NEW_ARRAY(replay->arena, struct version_part, most),
                               .sealed = NEW_ARRAY(replay->arena, struct tablet *, most),
                               .cols = NEW_ARRAY(replay->arena, struct col_state,
                                                 table->col_count + 1)};
    ASSERT(replay->mixed || in_order(replay));
    wf_status status = arena_check(replay->arena, err);
    status = status ? status : replay_apply(replay, &parts, err);
    status = status ? status
                    : version_restore(table, replay->next_slot, parts.parts, parts.count,
                                      parts.cols, out, err);
    for (i64 i = 0; i < parts.sealed_count; i++) {
        tablet_release(parts.sealed[i]);
    }
    plain_close(&parts.tail, table);
    TRY(status);
    struct error ignored;
    error_reset(&ignored);
    if (version_check_keys(table, replay->base, *out, NULL, &ignored)) {
        for (u32 k = 0; k < table->key_count; k++) { /* of a deferred key, or memory */
            (*out)->keys[k].order = 0;
        }
    }
    table_publish(table, version_retain(*out));
    return ERR_OK;
}

wf_status version_restore(struct table *table, u32 next_slot, const struct version_part *parts,
                          i64 count, const struct col_state *cols, struct table_version **out,
                          struct error *err) {
    struct writer writer;
    struct table_version *empty = version_empty(table, 1);
    if (!empty) {
        return memory_refused(table->mem, err, draft_bytes(table));
    }
    wf_status status = writer_begin(&writer, table, empty, err);
    writer.is_restoring = 1;
    for (u32 c = 0; c < table->col_count && !status; c++) {
        writer.draft->cols[c].dict_on = cols[c].dict_on;
        writer.draft->cols[c].all = cols[c].all;
        atomic_store(&writer.dict_on[c], cols[c].dict_on);
    }
    for (i64 i = 0; i < count && !status; i++) {
        const struct version_part *part = &parts[i];
        struct buffer *gone = part->deleted ? buffer_retain(part->deleted) : NULL;
        if (!part->plain) {
            status = writer_add(&writer, tablet_retain(part->tablet), part->slot, gone, err);
            continue;
        }
        CHECK(i == count - 1);
        buffer_release(gone);
        writer.next_slot = part->slot;
        writer.tail_deleted = part->deleted;
        status = writer_rows(&writer, part->plain->rows, part->plain->cols, err);
    }
    for (u32 c = 0; c < table->col_count && !status; c++) { /* the tail has been counted twice */
        struct col_draft *col = &writer.draft->cols[c];
        col->all = cols[c].all;
        col->sketch = cols[c].sketch;
        col->distinct = cols[c].distinct;
        col->sketch_changed = cols[c].sketch_changed;
        col->has_str |= cols[c].has_str;
    }
    writer.next_slot = next_slot;
    status = status ? status : writer_finish(&writer, out, err);
    writer_end(&writer);
    version_release(empty);
    return status;
}
