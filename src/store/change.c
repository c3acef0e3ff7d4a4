/* change.c: versions without some rows, and two changes of one version brought together.
 *
 * Deleting copies the bitmaps it changes and nothing else. Rebasing is what a commit does when
 * somebody else has committed to the same table meanwhile. The rows that the change deleted must
 * still be there. The rows it added go behind those of the others: whole tablets as they are, the
 * rest row by row. A row's identity in all this is its tablet's slot and its position, which only a
 * compaction changes; the version says how (moves.c). */
#include "store/saved_int.h"

static i64 tablet_of(const struct table_version *version, i64 row, i64 hint) {
    if (row >= version->row_starts[hint] &&
        row < version->row_starts[hint] + version->tablet_rows[hint]) {
        return hint;
    }
    return version_find_row(version, row);
}

/* A tail that lost its last live row starts anew. */
static void drop_empty_tail(struct writer *writer) {
    const struct table_version *base = writer->base;
    i64 last = base->tablet_count - 1;
    if (writer->deleted && writer->draft->tail_rows > 0 && last >= 0 &&
        base->slots[last] == writer->draft->tail_slot &&
        writer->deleted_counts[last] == base->tablet_rows[last] &&
        writer->draft->tail_rows == base->tablet_rows[last]) {
        tail_reset(writer);
    }
}

static FALLIBLE delete_rows(struct writer *writer, struct deletion *io, struct error *err) {
    const struct table_version *base = writer->base;
    const i64 *rows = io->rows;
    i64 t = 0;
    io->deleted = 0;
    for (i64 i = 0; i < io->count; i++) {
        CHECK(rows[i] >= 0 && rows[i] < base->rows);
        t = tablet_of(base, rows[i], t);
        bool is_fresh;
        TRY(writer_delete(writer, t, (u32)(rows[i] - base->row_starts[t]), &is_fresh, err));
        io->deleted += is_fresh;
        if (io->fresh) {
            io->fresh[i] = is_fresh;
        }
    }
    return ERR_OK;
}

static void carry_keys(const struct table *table, struct table_version *base,
                       struct table_version *next) {
    mutex_lock(&table->state->lock);
    for (u32 k = 0; k < table->key_count; k++) {
        next->keys[k].order = base->keys[k].order;
        next->keys[k].index = key_index_retain(base->keys[k].index);
    }
    mutex_unlock(&table->state->lock);
}

wf_status version_truncate(struct table *table, struct table_version *base,
                           struct table_version **out, struct error *err) {
    *out = version_empty(table, base->next_slot);
    return *out ? ERR_OK : memory_refused(table->mem, err, draft_bytes(table));
}

wf_status version_delete(struct table *table, struct table_version *base, struct deletion *io,
                         struct table_version **out, struct error *err) {
    struct writer writer;
    wf_status status = writer_begin(&writer, table, base, err);
    if (status == ERR_OK) {
        status = delete_rows(&writer, io, err);
    }
    if (status == ERR_OK && io->deleted == base->live_rows) {
        status = version_truncate(table, base, out, err);
    } else if (status == ERR_OK) {
        drop_empty_tail(&writer);
        status = writer_finish(&writer, out, err);
        if (status == ERR_OK) {
            carry_keys(table, base, *out);
        }
    }
    writer_end(&writer);
    return status;
}

wf_status plain_open(struct plain_rows *out, const struct table *table, i64 rows,
                     struct error *err) {
    i64 at = ALIGN_UP((i64)table->col_count * (i64)sizeof(struct input_col), 64);
    for (u32 c = 0; c < table->col_count; c++) {
        at += ALIGN_UP(rows * kind_bytes[type_kind(table->cols[c].type)], 64) + ALIGN_UP(rows, 64);
    }
    *out = (struct plain_rows){.bytes = at, .block = mem_alloc(table->mem, at)};
    pins_init(&out->pins, table->mem);
    if (!out->block) {
        return memory_refused(table->mem, err, at);
    }
    out->cols = (struct input_col *)(void *)out->block;
    at = ALIGN_UP((i64)table->col_count * (i64)sizeof(struct input_col), 64);
    for (u32 c = 0; c < table->col_count; c++) {
        out->cols[c].data = out->block + at;
        at += ALIGN_UP(rows * kind_bytes[type_kind(table->cols[c].type)], 64);
        out->cols[c].nulls = out->block + at;
        at += ALIGN_UP(rows, 64);
    }
    return ERR_OK;
}

void plain_clear(struct plain_rows *plain, const struct table *table) {
    pins_fini(&plain->pins);
    pins_init(&plain->pins, table->mem);
    plain->rows = 0;
}

void plain_close(struct plain_rows *plain, const struct table *table) {
    if (plain->block) {
        pins_fini(&plain->pins);
        mem_free(table->mem, plain->block, plain->bytes);
        plain->block = NULL;
    }
}

static void plain_row(struct plain_rows *out, const struct table *table, const struct tablet *tablet,
                      i64 pos) {
    for (u32 c = 0; c < table->col_count; c++) {
        i64 width = kind_bytes[type_kind(table->cols[c].type)];
        u8 *value = (u8 *)(size_t)out->cols[c].data + out->rows * width;
        b8 *null = (b8 *)(size_t)out->cols[c].nulls + out->rows;
        *null = !segment_get(&tablet->cols[c], table->dicts[c], table->cols[c].type, pos, value);
        if (*null) {
            memset(value, 0, (size_t)width);
        }
    }
    out->rows++;
}

wf_status plain_fill(struct plain_rows *out, const struct table *table,
                     const struct table_version *version, i64 t, i64 from, i64 to,
                     struct error *err) {
    const u64 *gone = version_deleted(version, t);
    TRY(pins_hold_all(&out->pins, version->tablets[t], err));
    for (i64 pos = from; pos < to; pos++) {
        if (!(gone && gone[pos >> 6] >> (pos & 63) & 1)) {
            plain_row(out, table, version->tablets[t], pos);
        }
    }
    return ERR_OK;
}

wf_status plain_fill_all(struct plain_rows *out, const struct table *table,
                         const struct tablet *tablet, i64 from, i64 to, struct error *err) {
    TRY(pins_hold_all(&out->pins, tablet, err));
    for (i64 pos = from; pos < to; pos++) {
        plain_row(out, table, tablet, pos);
    }
    return ERR_OK;
}

static FALLIBLE conflict(const struct table *table, struct error *err) {
    error_set(err, ERR_SERIALIZATION, -1, "could not serialize access due to concurrent update");
    error_hint(err, "Another transaction changed the same rows of table \"%s\"; try again.",
               table->name);
    return ERR_SERIALIZATION;
}

static u64 word_of(const u64 *bits, i64 word) {
    return bits ? bits[word] : 0;
}

/* What mine deleted of the base's tablet t, deleted in the writer's base too. */
static FALLIBLE rebase_deletes(struct writer *writer, const struct table_version *base, i64 t,
                               const struct table_version *mine, struct error *err) {
    i64 rows = base->tablet_rows[t], mt = version_find_slot(mine, base->slots[t]);
    const u64 *before = version_deleted(base, t);
    const u64 *after = mt >= 0 ? version_deleted(mine, mt) : NULL;
    if (mt >= 0 && (!after || after == before)) {
        return ERR_OK;
    }
    i64 ct = version_find_slot(writer->base, base->slots[t]);
    for (i64 word = 0; word * 64 < rows; word++) {
        u64 all = rows - word * 64 >= 64 ? ~0ULL : (1ULL << (rows & 63)) - 1;
        u64 now = (mt >= 0 ? word_of(after, word) : ~0ULL) & ~word_of(before, word) & all;
        for (; now; now &= now - 1) {
            bool fresh = false;
            u32 pos = (u32)(word * 64 + __builtin_ctzll(now)), slot = base->slots[t];
            i64 at = ct;
            if (ct < 0 && moves_find(writer->base->moves, &slot, &pos)) {
                at = version_find_slot(writer->base, slot);
            }
            if (at >= 0) {
                TRY(writer_delete(writer, at, pos, &fresh, err));
            }
            if (!fresh) {
                return conflict(writer->table, err);
            }
        }
    }
    return ERR_OK;
}

/* The rows of tablet t that base has not, behind those of the writer. */
static FALLIBLE rebase_rows(struct writer *writer, const struct table_version *base,
                            const struct table_version *mine, i64 t, struct error *err) {
    struct table *table = writer->table;
    struct tablet *tablet = mine->tablets[t];
    i64 before = mine->slots[t] < base->next_slot ? version_find_slot(base, mine->slots[t]) : -1;
    i64 from = before >= 0 ? base->tablet_rows[before] : 0, rows = mine->tablet_rows[t];
    if (from == rows) {
        return ERR_OK;
    }
    if (from == 0 && !tablet->tail && rows * 8 >= 1LL << table->tablet_shift) {
        TRY(tail_seal(writer, err));
        writer_count(writer, tablet);
        struct buffer *gone = mine->deleted[t];
        return writer_add(writer, tablet_retain(tablet), writer->next_slot++,
                          gone ? buffer_retain(gone) : NULL, err);
    }
    struct plain_rows plain;
    for (i64 n = 0; from < rows; from += n) {
        n = MIN_OF(rows - from, PIECE_ROWS);
        TRY(plain_open(&plain, table, n, err));
        wf_status status = plain_fill(&plain, table, mine, t, from, from + n, err);
        status = status ? status : writer_rows(writer, plain.rows, plain.cols, err);
        plain_close(&plain, table);
        TRY(status);
    }
    return ERR_OK;
}

static FALLIBLE rebase_all(struct writer *writer, struct table_version *base,
                           struct table_version *mine, struct table_version **out,
                           struct error *err) {
    for (i64 t = 0; t < base->tablet_count; t++) {
        TRY(rebase_deletes(writer, base, t, mine, err));
    }
    drop_empty_tail(writer);
    for (i64 t = 0; t < mine->tablet_count; t++) {
        TRY(rebase_rows(writer, base, mine, t, err));
    }
    for (u32 c = 0; c < writer->table->col_count; c++) {
        writer->draft->cols[c].sketch_changed |=
            sketch_merge(&writer->draft->cols[c].sketch, &mine->draft->cols[c].sketch);
        if (!mine->draft->cols[c].dict_on && writer->draft->cols[c].dict_on) {
            TRY(tail_seal(writer, err));
            writer_stop_dict(writer, c);
        }
    }
    return writer_finish(writer, out, err);
}

wf_status version_rebase(struct table *table, struct table_version *base,
                         struct table_version *mine, struct table_version *current,
                         struct table_version **out, struct error *err) {
    if (current == base && !version_is_private(mine)) {
        *out = version_retain(mine);
        return ERR_OK;
    }
    struct writer writer;
    wf_status status = writer_begin(&writer, table, current, err);
    writer.is_merging = 1;
    if (status == ERR_OK) {
        status = rebase_all(&writer, base, mine, out, err);
    }
    writer_end(&writer);
    if (status == ERR_OK) {
        status = version_check_keys(table, current, *out, NULL, err);
        if (status) {
            version_discard(*out);
            *out = NULL;
        }
    }
    return status;
}

/* Tablets of `from` with the rows outside `show` deleted: shows only what `from` has and `other`
 * has not. */
static FALLIBLE difference(struct table *table, struct table_version *from,
                           const struct table_version *other, const struct table_version *base,
                           struct table_version **out, struct error *err) {
    struct table_version *version = version_alloc(table, from->tablet_count);
    if (!version) {
        return memory_refused(table->mem, err, from->tablet_count * 48);
    }
    version->is_delta = 1;
    version->next_slot = from->next_slot;
    memcpy(version->stats, from->stats, table->col_count * sizeof *version->stats);
    for (i64 t = 0; t < from->tablet_count; t++) {
        u32 slot = from->slots[t];
        i64 rows = from->tablet_rows[t];
        i64 ot = slot < base->next_slot ? version_find_slot(other, slot) : -1;
        if (ot >= 0 && rows <= (i64)other->tablet_rows[ot] && !other->deleted[ot]) {
            continue; /* the other one has them all */
        }
        struct buffer *bits = bits_new(table->mem, rows, from->deleted[t]);
        if (!bits) {
            version_release(version);
            return memory_refused(table->mem, err, rows / 8);
        }
        u64 *words = (u64 *)(void *)bits->data;
        const u64 *gone = ot >= 0 ? version_deleted(other, ot) : NULL;
        i64 shared = ot >= 0 ? MIN_OF(rows, (i64)other->tablet_rows[ot]) : 0;
        for (i64 word = 0; word * 64 < shared; word++) { /* live in the other one: not shown */
            u64 all = shared - word * 64 >= 64 ? ~0ULL : (1ULL << (shared & 63)) - 1;
            words[word] |= all & ~word_of(gone, word);
        }
        i64 hidden = bits_count(words, rows);
        if (hidden == rows) {
            buffer_release(bits);
            continue;
        }
        if (hidden == 0) {
            buffer_release(bits);
            bits = NULL;
        }
        version_push(version, tablet_retain(from->tablets[t]), slot, bits, (u32)hidden);
    }
    *out = version;
    return ERR_OK;
}

wf_status version_delta(struct table *table, struct table_version *base, struct table_version *mine,
                        struct table_version **out, struct error *err) {
    return difference(table, mine, base, base, out, err);
}

wf_status version_removed(struct table *table, struct table_version *base,
                          struct table_version *mine, struct table_version **out,
                          struct error *err) {
    return difference(table, base, mine, base, out, err);
}
