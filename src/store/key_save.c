/* key_save.c: the parts of tablets' keys to a database file and back.
 *
 * Their extents hang on the parts, as those of columns hang on the tablet. A tablet that is written
 * for the first time gets a part of every key whose rows are in no order; it is made for the file
 * alone where the tablet's rows are in memory, and found by the index. Parts that were made when a
 * tablet of an older file was looked into are written with the next state. */
#include "store/frames_int.h"
#include "store/key_int.h"

enum {
#ifdef WF_HARD
    EARLY_LEAST = 64,
#else
    EARLY_LEAST = 1 << 14, /* bytes: less is written with others when it is saved */
#endif
    CHUNK_BITS_MOST = 4
};

static i64 half_bytes(const struct key_chunk *chunk, const struct key_half *half) {
    return half == &chunk->places ? chunk_place_bytes(chunk->count)
                                  : chunk_hash_bytes(chunk->count);
}

u32 keys_count(const struct tablet_key *first) {
    u32 count = 0;
    for (; first; first = first->next) {
        count++;
    }
    return count;
}

static bool part_keep(struct save *save, struct key_part *part) {
    bool has = true;
    for (i64 c = 0; c < part_chunks(part) && has; c++) {
        has = save_has(save, &part->chunks[c].hashes.place) &&
              save_has(save, &part->chunks[c].places.place);
    }
    return has;
}

bool keys_keep(struct save *save, const struct tablet_key *first) {
    bool has = true;
    for (; first && has; first = first->next) {
        has = part_keep(save, first->part);
    }
    return has;
}

wf_status keys_make(const struct table *table, const struct table_version *version,
                    struct tablet *tablet, const struct tablet *form, struct error *err) {
    for (u32 k = 0; k < table->key_count; k++) {
        const struct table_key *key = &table->keys[k];
        if (version->keys[k].order || tablet_find_part(tablet, key->cols, key->col_count)) {
            continue;
        }
        struct key_part *part;
        TRY(part_build(table, key, form, &part, err));
        if (!tablet_add_part(tablet, key->cols, key->col_count, part)) {
            return memory_refused(table->mem, err, (i64)sizeof *part);
        }
    }
    return ERR_OK;
}

/* What was made for the file alone goes when it is there. */
static void chunk_forget(struct key_chunk *chunk) {
    buffer_release(atomic_exchange(&chunk->hashes.buf, NULL));
    buffer_release(atomic_exchange(&chunk->places.buf, NULL));
}

/* Half a chunk to free pages of the file, and a frame in the place of its buffer. Nobody else knows the part yet. */
static void half_write_early(struct db_file *file, const struct frame_form *form,
                             struct key_half *half) {
    struct buffer *from = atomic_load(&half->buf);
    bool small;
    struct buffer *frame = frame_new_full(file->frames, form, &small);
    if (!frame) {
        return; /* it stays in memory */
    }
    memcpy(frame->data, from->data, (size_t)form->lay.total);
    struct extent made = {.bytes = form->lay.total,
                          .sum = bytes_sum(frame->data, form->lay.total, 0),
                          .stamp = file->frame_stamp},
                  none = {0};
    if (!space_take_frame(file, frame, &made)) {
        buffer_release(frame);
        return;
    }
    if (disk_write_all(file->file, frame->data, made.bytes, made.at)) {
        frame_place(frame, &none);
        buffer_release(frame);
        return;
    }
    disk_now->hurry(file->file, made.at, made.bytes);
    half->place = made;
    atomic_store(&half->buf, frame);
    buffer_release(from);
    frame_saved(frame);
}

void part_write_early(const struct table *table, const struct table_key *key,
                      struct key_part *part) {
    struct db_file *file = table->state->file;
    struct error ignored;
    error_reset(&ignored);
    if (!file || db_file_check(file, &ignored)) {
        return;
    }
    for (i64 c = 0; c < part_chunks(part); c++) {
        struct key_chunk *chunk = &part->chunks[c];
        for (i32 h = 0; h < 2; h++) {
            struct key_half *half = h ? &chunk->places : &chunk->hashes;
            i64 bytes = half_bytes(chunk, half);
            struct frame_form form = {.lay = {.data_bytes = bytes, .total = bytes},
                                      .encoding = ENC_INT,
                                      .is_key = 1,
                                      .table = table->name,
                                      .column = key->name};
            if (bytes >= EARLY_LEAST) {
                half_write_early(file, &form, half);
            }
        }
    }
}

static bool part_is_there(const struct key_part *part) {
    bool there = part->frames != NULL || part->order;
    return there || atomic_load(&part->chunks[0].hashes.buf);
}

/* Half a chunk, unless it is in the file and stays there. `from` has its bytes. */
static FALLIBLE half_write(struct save *save, struct key_half *half, struct buffer *from, i64 bytes,
                           struct error *err) {
    struct pins pins;
    pins_init(&pins, from->mem);
    wf_status status = pins_need_frame(&pins, from)
                           ? save_put(save, from->data, bytes, &half->place, err)
                           : pins_check(&pins, err);
    pins_fini(&pins);
    return status;
}

struct part_out {
    struct save *save;
    const struct table *table;
    const char *key;
};

/* What is to leave its place gets a frame first, which has that place as long as it needs it. */
static FALLIBLE part_write(const struct part_out *out, struct key_part *part, struct key_part *from,
                           struct error *err) {
    for (i64 c = 0; c < part_chunks(part); c++) {
        struct key_chunk *to = &part->chunks[c], *source = &from->chunks[c];
        if (to != source) { /* others may be reading it */
            to->count = source->count;
        }
        for (i32 h = 0; h < 2; h++) {
            struct key_half *half = h ? &to->places : &to->hashes;
            struct key_half *has = h ? &source->places : &source->hashes;
            if (save_has(out->save, &half->place)) {
                continue;
            }
            struct buffer *buf = half_buffer(from, has, out->table->name, out->key);
            i64 bytes = half_bytes(to, half);
            TRY(buf ? half_write(out->save, half, buf, bytes, err)
                    : memory_refused(part->mem, err, bytes));
            TRY(save_move_frame(out->save, buf, &half->place, err));
        }
    }
    return ERR_OK;
}

/* A part that is nowhere but in another file is made once more. */
static FALLIBLE part_save(struct save *save, const struct table *table, const struct tablet_key *at,
                          const struct tablet *form, struct error *err) {
    struct key_part *part = at->part, *made = NULL;
    struct part_out out = {save, table, key_name_of(table, at->cols, at->col_count)};
    if (part_is_there(part) || part_keep(save, part)) {
        TRY(part_write(&out, part, part, err));
    } else {
        struct table_key key = {
            .name = out.key, .col_count = at->col_count, .cols = (u32 *)(size_t)at->cols};
        TRY(part_build(table, &key, form, &made, err));
        wf_status status = part_write(&out, part, made, err);
        part_release(made);
        TRY(status);
    }
    bool for_file = !part->frames && !form->filed;
    for (i64 c = 0; c < part_chunks(part) && for_file; c++) {
        chunk_forget(&part->chunks[c]);
    }
    return ERR_OK;
}

wf_status keys_write(struct save *save, struct blob *out, const struct table *table,
                     const struct tablet_key *first, const struct tablet *form, struct error *err) {
    if (first) {
        blob_u32(out, keys_count(first));
    }
    for (; first; first = first->next) {
        struct key_part *part = first->part;
        TRY(part_save(save, table, first, form, err));
        blob_u32(out, first->col_count);
        for (u32 i = 0; i < first->col_count; i++) {
            blob_u32(out, first->cols[i]);
        }
        blob_u8(out, part->order);
        blob_u8(out, part->chunk_bits);
        for (i64 c = 0; c < part_chunks(part); c++) {
            blob_u32(out, part->chunks[c].count);
            extent_save(out, &part->chunks[c].hashes.place);
            extent_save(out, &part->chunks[c].places.place);
        }
    }
    return ERR_OK;
}

/* and back */

static bool half_load(struct db_file *file, struct blob_reader *from, struct key_chunk *chunk,
                      struct key_half *half) {
    half->home = half->place = extent_load(from, db_file_stamp(file));
    from->bad |= !from->bad && half->home.bytes != half_bytes(chunk, half);
    return from->bad || db_file_note(file, &half->home);
}

static FALLIBLE part_load(struct db_file *file, struct blob_reader *from, struct tablet *tablet,
                          struct key_part **out, struct error *err) {
    u8 order = read_u8(from), bits = read_u8(from);
    from->bad |= order > (KEY_STRICT | KEY_RUNS) || bits > CHUNK_BITS_MOST;
    if (from->bad) {
        return ERR_OK;
    }
    struct key_part *part = *out = part_new(tablet->mem, order, bits, tablet->rows);
    if (!part) {
        return memory_refused(tablet->mem, err, (i64)sizeof *part);
    }
    i64 left = tablet->rows;
    part->frames = order ? NULL : frames_retain(file->frames);
    for (i64 c = 0; c < part_chunks(part) && !from->bad; c++) {
        struct key_chunk *chunk = &part->chunks[c];
        chunk->count = read_u32(from);
        left -= chunk->count;
        from->bad |= left < 0;
        if (!half_load(file, from, chunk, &chunk->hashes) ||
            !half_load(file, from, chunk, &chunk->places)) {
            return memory_refused(tablet->mem, err, 4096);
        }
    }
    return ERR_OK;
}

/* Those of a description that ends behind its columns are none. */
wf_status keys_load(struct db_file *file, struct blob_reader *from, struct tablet *tablet,
                    struct error *err) {
    u32 count = from->at < from->end ? read_count(from, 10) : 0;
    for (u32 i = 0; i < count && !from->bad; i++) {
        u32 cols[KEY_COLS_MAX], col_count = read_count(from, 4);
        from->bad |= col_count == 0 || col_count > KEY_COLS_MAX;
        for (u32 c = 0; c < col_count && !from->bad; c++) {
            cols[c] = read_u32(from);
            from->bad |= cols[c] >= tablet->col_count;
        }
        struct key_part *part = NULL;
        wf_status status = part_load(file, from, tablet, &part, err);
        from->bad |= !from->bad && !status && tablet_find_part(tablet, cols, col_count);
        if (status || from->bad) {
            part_release(part);
            return status;
        }
        if (!tablet_add_part(tablet, cols, col_count, part)) {
            return memory_refused(tablet->mem, err, 4096);
        }
    }
    return ERR_OK;
}

const struct extent *keys_next_extent(const struct tablet *tablet, const struct extent *extent) {
    bool found = extent == NULL;
    for (const struct tablet_key *at = atomic_load(&tablet->keys); at; at = at->next) {
        for (i64 h = 0; h < 2 * part_chunks(at->part); h++) {
            struct key_chunk *chunk = &at->part->chunks[h / 2];
            const struct extent *now = h & 1 ? &chunk->places.place : &chunk->hashes.place;
            if (found) {
                return now;
            }
            found = now == extent;
        }
    }
    return NULL;
}
