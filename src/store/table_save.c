/* table_save.c: tables to a database file: definitions, dictionaries, tablets, versions.
 *
 * Extents hang on what they were made from (a tablet's columns, a version, a part of a dictionary),
 * so the next save finds in the file what has not changed, also under another definition: ALTER
 * TABLE shares columns. The open tail is written in the form of a sealed tablet. */
#include "store/saved.h"

#include "store/behind.h"
#include "store/frames_int.h"
#include "store/key_int.h"
#include "store/packed.h"

enum {
    HEAVY_SHARE = 64,
    PACK_LEAST = 4096, /* bytes of a column: less is written as it lies */
#ifdef WF_HARD
    WRITE_LEAST = 1,
#else
    WRITE_LEAST = 1 << 14, /* of a load's column: less is written with others when it is saved */
#endif
};

void type_save(struct blob *out, struct type type) {
    blob_u8(out, type.id);
    blob_u8(out, type.precision);
    blob_u8(out, type.scale);
    blob_u8(out, type.element);
    blob_u32(out, type.length);
}

void extent_save(struct blob *out, const struct extent *extent) {
    blob_u64(out, (u64)extent->at);
    blob_u64(out, (u64)extent->bytes);
    blob_u64(out, extent->sum);
}

static void numbers_save(struct blob *out, u32 count, const u32 *numbers) {
    for (u32 i = 0; i < count; i++) {
        blob_u32(out, numbers[i]);
    }
}

static void key_save(struct blob *out, const struct table_key *key) {
    blob_text(out, key->name);
    blob_u32(out, key->oid);
    blob_u8(out, (u8)(key->primary | key->index << 1 | key->deferrable << 2 | key->deferred << 3));
    blob_u32(out, key->col_count);
    numbers_save(out, key->col_count, key->cols);
}

static void foreign_save(struct blob *out, const struct table_foreign *fk) {
    blob_text(out, fk->name);
    blob_u32(out, fk->oid);
    blob_u32(out, fk->col_count);
    numbers_save(out, fk->col_count, fk->cols);
    numbers_save(out, fk->col_count, fk->ref_cols);
    blob_u32(out, fk->ref_oid);
    blob_u32(out, fk->ref_key);
    blob_u8(out, fk->on_delete);
    blob_u8(out, fk->on_update);
    blob_u32(out, fk->set_on_delete);
    blob_u8(out, (u8)(fk->match_full | fk->unvalidated << 1 | fk->deferrable << 2 |
                      fk->deferred << 3));
}

void table_def_save(struct blob *out, const struct table *table) {
    blob_text(out, table->name);
    blob_u8(out, (u8)table->tablet_shift);
    blob_u8(out, table->plain);
    blob_u32(out, table->col_count);
    for (u32 i = 0; i < table->col_count; i++) {
        const struct column_def *col = &table->cols[i];
        blob_text(out, col->name);
        type_save(out, col->type);
        blob_u8(out, col->not_null);
        blob_u8(out, col->identity);
        blob_text(out, col->default_text);
        blob_u32(out, col->sequence);
    }
    blob_u32(out, table->key_count);
    for (u32 i = 0; i < table->key_count; i++) {
        key_save(out, &table->keys[i]);
    }
    blob_u32(out, table->check_count);
    for (u32 i = 0; i < table->check_count; i++) {
        blob_text(out, table->checks[i].name);
        blob_u32(out, table->checks[i].oid);
        blob_text(out, table->checks[i].text);
        blob_u8(out, table->checks[i].unvalidated);
    }
    blob_u32(out, table->foreign_count);
    for (u32 i = 0; i < table->foreign_count; i++) {
        foreign_save(out, &table->foreigns[i]);
    }
}

/* tablets */

static void range_save(struct blob *out, const struct range *range) {
    blob_i128(out, range->lo);
    blob_i128(out, range->hi);
    blob_f64(out, range->abs_max);
    blob_u32(out, (u32)range->lsb);
    blob_u8(out, range->may_special);
}

struct segment_layout segment_layout(const struct segment *seg, i64 rows, bool has_valid) {
    struct segment_layout lay = {.data_bytes = rows * seg->width};
    lay.valid_at = ALIGN_UP(lay.data_bytes, 64);
    lay.valid_bytes = has_valid ? (rows + 63) / 64 * 8 : 0;
    lay.bytes_at = lay.valid_at + ALIGN_UP(lay.valid_bytes, 64);
    lay.total = lay.bytes_at + seg->bytes_len;
    return lay;
}

/* A column as it is written: packed where that is smaller, else as it lies. */
struct image {
    const u8 *from; /* until the desk is used for the next */
    i64 bytes;
    bool packed;
};

/* What has its parts in several places is put together. */
static void image_join(const struct segment *seg, const struct segment_layout *lay, u8 *to) {
    memset(to, 0, (size_t)lay->total);
    if (lay->data_bytes) {
        memcpy(to, seg->data, (size_t)lay->data_bytes);
    }
    if (seg->valid) {
        memcpy(to + lay->valid_at, seg->valid, (size_t)lay->valid_bytes);
    }
    if (seg->bytes_len) {
        memcpy(to + lay->bytes_at, seg->bytes, (size_t)seg->bytes_len);
    }
}

static struct packed_form form_of(const struct tablet *tablet, u32 c) {
    const struct segment *seg = &tablet->cols[c];
    return (struct packed_form){.rows = tablet->rows,
                                .width = seg->width,
                                .lay = segment_layout(seg, tablet->rows, seg->valid != NULL),
                                .text_bytes = seg->bytes_len};
}

/* The column is held. */
static FALLIBLE image_make(const struct tablet *tablet, u32 c, struct desk *desk,
                           struct image *out, struct error *err) {
    const struct segment *seg = &tablet->cols[c];
    const struct buffer *buf = tablet->buffers[c];
    struct packed_form form = form_of(tablet, c);
    const struct segment_layout *lay = &form.lay;
    bool joined = buf && buf->bytes >= lay->total && (!seg->data || seg->data == buf->data) &&
                  (!seg->valid || (const u8 *)seg->valid == buf->data + lay->valid_at) &&
                  (!seg->bytes_len || seg->bytes == buf->data + lay->bytes_at);
    i64 packed = lay->total >= PACK_LEAST ? column_pack(seg, &form, desk) : 0;
    if (!packed && !joined && lay->total) {
        if (!desk_reserve(desk, lay->total, 0)) {
            return memory_refused(desk->mem, err, lay->total);
        }
        image_join(seg, lay, desk->at);
    }
    *out = (struct image){.from = packed || !joined ? desk->at : buf->data,
                          .bytes = packed ? packed : lay->total,
                          .packed = packed != 0};
    return ERR_OK;
}

static void set_packed(struct extent *extent, bool packed) {
    extents_lock();
    extent->packed = packed;
    extents_unlock();
}

static FALLIBLE segment_save(struct save *save, const struct tablet *tablet, u32 c,
                             struct desk *desk, struct extent *out, struct error *err) {
    struct image image;
    TRY(image_make(tablet, c, desk, &image, err));
    set_packed(out, image.packed);
    return save_put(save, image.from, image.bytes, out, err);
}

static void segment_describe(struct blob *out, const struct segment *seg, i64 zone_count,
                             const struct extent *extent) {
    blob_u8(out, seg->encoding);
    blob_u8(out, seg->width);
    blob_u8(out, (u8)(seg->is_signed | seg->sorted << 1 | seg->strict << 2 |
                      (seg->valid != NULL) << 3 | (seg->zones != NULL) << 4 | extent->packed << 5));
    blob_i128(out, seg->base);
    blob_f64(out, seg->fbase);
    range_save(out, &seg->range);
    blob_u64(out, (u64)seg->null_count);
    blob_u64(out, (u64)seg->bytes_len);
    extent_save(out, extent);
    for (i64 z = 0; seg->zones && z < zone_count; z++) {
        blob_i128(out, seg->zones[z].lo);
        blob_i128(out, seg->zones[z].hi);
        blob_f64(out, seg->zones[z].flo);
        blob_f64(out, seg->zones[z].fhi);
    }
}

static i64 place_bytes(u32 col_count) {
    return (i64)sizeof(struct tablet_place) + (i64)col_count * (i64)sizeof(struct extent);
}

struct tablet_place *tablet_place_new(struct memory *mem, u32 col_count) {
    struct tablet_place *place = mem_alloc(mem, place_bytes(col_count));
    if (place) {
        memset(place, 0, (size_t)place_bytes(col_count));
    }
    return place;
}

void tablet_place_free(struct memory *mem, u32 col_count, struct tablet_place *place) {
    mem_free(mem, place, place ? place_bytes(col_count) : 0);
}

void tablet_place_share(struct tablet *to, u32 c, const struct tablet *from, u32 old) {
    extents_lock();
    bool same = from->place && !from->tail; /* a tail lies there in another form */
    extents_unlock();
    if (same && !to->place) {
        to->place = tablet_place_new(to->mem, to->col_count);
    }
    if (same && to->place) { /* without it the column is written once more */
        extents_lock();
        to->place->cols[c] = from->place->cols[old];
        extents_unlock();
    }
}

/* `form` has the tablet's rows as they are written: itself, or a tail's sealed ones. */
static FALLIBLE tablet_write(struct save *save, const struct table *table, struct tablet *tablet,
                             const struct tablet *form, struct error *err) {
    struct tablet_place *place = tablet->place;
    const struct tablet_key *keys = atomic_load(&tablet->keys);
    struct desk desk = {.mem = tablet->mem};
    struct blob out;
    blob_init(&out, tablet->mem);
    i64 zone_count = ((i64)form->rows + ZONE_ROWS - 1) / ZONE_ROWS;
    blob_u32(&out, form->rows);
    blob_u32(&out, form->col_count);
    wf_status status = ERR_OK;
    for (u32 c = 0; c < form->col_count && !status; c++) {
        if (!save_has(save, &place->cols[c])) {
            status = column_hold(form, c, HOLD_SHORT, err);
            if (!status) {
                status = segment_save(save, form, c, &desk, &place->cols[c], err);
                column_drop(form, c);
            }
            if (!status && form == tablet && form->buffers[c]) {
                status = save_move_frame(save, form->buffers[c], &place->cols[c], err);
            }
        }
        segment_describe(&out, &form->cols[c], zone_count, &place->cols[c]);
    }
    status = status ? status : keys_write(save, &out, table, keys, form, err);
    status = status ? status : blob_check(&out, err);
    status = status ? status : save_put(save, out.data, out.len, &place->meta, err);
    place->meta_keys = keys_count(keys);
    blob_fini(&out);
    desk_fini(&desk);
    return status;
}

static bool tablet_keep(struct save *save, struct tablet *tablet) {
    struct tablet_place *place = tablet->place;
    bool has = place && save_has(save, &place->meta);
    for (u32 c = 0; c < tablet->col_count && has; c++) {
        has = save_has(save, &place->cols[c]);
    }
    const struct tablet_key *keys = atomic_load(&tablet->keys);
    return has && place->meta_keys == keys_count(keys) && keys_keep(save, keys);
}

/* The open tail's rows as a sealed tablet, with the codes they have. */
static FALLIBLE seal_tail(struct table *table, const struct tablet *tail, struct tablet **out,
                          struct error *err) {
    i64 bytes = (i64)table->col_count * (i64)(sizeof(struct column_source) + sizeof(_Atomic i32));
    struct column_source *sources = mem_alloc(table->mem, bytes);
    if (!sources) {
        return memory_refused(table->mem, err, bytes);
    }
    memset(sources, 0, (size_t)bytes);
    for (u32 c = 0; c < table->col_count; c++) {
        const struct segment *seg = &tail->cols[c];
        sources[c] = (struct column_source){.type = table->cols[c].type,
                                            .kind = (u8)type_kind(table->cols[c].type),
                                            .form = seg->encoding == ENC_DICT  ? FORM_CODES
                                                    : seg->encoding == ENC_STR ? FORM_ENDS
                                                                               : FORM_PLAIN,
                                            .data = seg->data,
                                            .bytes = seg->bytes,
                                            .valid = seg->valid,
                                            .rows = tail->rows};
    }
    struct seal seal = {.table = table,
                        .rows = tail->rows,
                        .column_rows = tail->rows,
                        .is_passing = 1,
                        .dict_on = (_Atomic i32 *)(void *)(sources + table->col_count)};
    wf_status status = tablet_seal(&seal, sources, out, err);
    mem_free(table->mem, sources, bytes);
    return status;
}

static bool is_open_tail(const struct table_version *version, i64 t) {
    return version->draft->tail_rows && t == version->tablet_count - 1 &&
           version->slots[t] == version->draft->tail_slot;
}

static FALLIBLE tablet_save(struct save *save, struct table *table,
                            const struct table_version *version, i64 t, struct error *err) {
    struct tablet *tablet = version->tablets[t];
    if (tablet_keep(save, tablet)) {
        return ERR_OK;
    }
    bool is_new = !tablet->place || !save_knows(save, &tablet->place->meta);
    if (!tablet->place) {
        struct tablet_place *place = tablet_place_new(tablet->mem, tablet->col_count);
        extents_lock();
        tablet->place = place;
        extents_unlock();
    }
    if (!tablet->place) {
        return memory_refused(tablet->mem, err, place_bytes(tablet->col_count));
    }
    struct tablet *form = tablet;
    if (is_open_tail(version, t)) {
        TRY(seal_tail(table, tablet, &form, err));
    }
    bool keyed = is_new && form == tablet; /* a tail's come when it has been read as a tablet */
    wf_status status = keyed ? keys_make(table, version, tablet, form, err) : ERR_OK;
    status = status ? status : tablet_write(save, table, tablet, form, err);
    if (form != tablet) {
        tablet_release(form);
    }
    return status;
}

/* loads */

/* One column to free pages of the file. */
static void column_write(struct db_file *file, struct tablet *tablet, u32 c, struct desk *desk,
                         i32 *left) {
    struct error ignored;
    struct image image;
    error_reset(&ignored);
    if (!frame_of_file(tablet->buffers[c], file) || image_make(tablet, c, desk, &image, &ignored)) {
        return;
    }
    /* however short it is, where what it takes in memory is no small part of what is left */
    bool heavy = tablet->buffers[c]->bytes > memory_left(tablet->mem) / HEAVY_SHARE;
    if (image.bytes >= WRITE_LEAST || heavy) {
        struct column_write write = {.frame = tablet->buffers[c],
                                     .made = {.bytes = image.bytes,
                                              .sum = bytes_sum(image.from, image.bytes, 0),
                                              .stamp = file->frame_stamp,
                                              .packed = image.packed},
                                     .place = &tablet->place->cols[c],
                                     .from = image.from,
                                     .left = left};
        if (space_take_frame(file, tablet->buffers[c], &write.made)) {
            column_put(file->behind, &write, desk);
        }
    }
}

void tablet_write_early(struct table *table, struct tablet *tablet, i32 *left) {
    struct db_file *file = table->state->file;
    struct error ignored;
    error_reset(&ignored);
    if (!file || !tablet->framed || db_file_check(file, &ignored)) {
        return;
    }
    struct desk desk = {.mem = tablet->mem};
    tablet->place = tablet_place_new(tablet->mem, tablet->col_count);
    for (i32 pass = 0; pass < 2 && tablet->place; pass++) { /* nobody waits for the long ones, then */
        for (u32 c = 0; c < tablet->col_count; c++) {
            if ((tablet->cols[c].encoding == ENC_STR) == (pass == 0)) {
                column_write(file, tablet, c, &desk, left);
            }
        }
    }
    desk_fini(&desk);
}

void tablet_write_wait(struct table *table, const i32 *left) {
    struct db_file *file = table->state->file;
    if (file && file->behind) {
        write_wait(file->behind, left);
    }
}

/* versions */

static void facts_save(struct blob *out, const struct facts *facts) {
    range_save(out, &facts->range);
    blob_u64(out, (u64)facts->rows);
    blob_u64(out, (u64)facts->null_count);
    blob_u8(out, (u8)(facts->sorted | facts->strict << 1));
    blob_u64(out, facts->and_bits);
    blob_u64(out, facts->or_bits);
}

static FALLIBLE columns_save(struct save *save, struct dict_list *dicts, struct table *table,
                             struct table_version *version, struct blob *out, struct error *err) {
    for (u32 c = 0; c < table->col_count; c++) {
        const struct col_draft *col = &version->draft->cols[c];
        u64 id = 0;
        if (table->dicts[c]) {
            TRY(dict_save(save, dicts, table->dicts[c], &id, err));
        }
        blob_u64(out, id);
        facts_save(out, &col->all);
        blob_u64(out, (u64)col->distinct);
        blob_u8(out, (u8)(col->dict_on | col->has_str << 1));
        blob_bytes(out, col->sketch.longest, (i64)sizeof col->sketch.longest);
    }
    for (u32 k = 0; k < table->key_count; k++) {
        blob_u8(out, version->keys[k].order);
    }
    return ERR_OK;
}

/* Bits that are set, as positions where they are few. */
void bits_save(struct blob *out, const u64 *bits, i64 rows, i64 count) {
    blob_u32(out, (u32)count);
    if (count * 32 >= rows) {
        blob_bytes(out, bits, (rows + 63) / 64 * 8);
        return;
    }
    for (i64 w = 0; w * 64 < rows && count; w++) {
        u64 all = rows - w * 64 >= 64 ? ~0ULL : (1ULL << (rows & 63)) - 1;
        for (u64 word = bits[w] & all; word; word &= word - 1) {
            blob_u32(out, (u32)(w * 64 + __builtin_ctzll(word)));
        }
    }
}

static FALLIBLE version_write(struct save *save, struct dict_list *dicts, struct table *table,
                              struct table_version *version, struct blob *out, struct error *err) {
    blob_u32(out, version->next_slot);
    blob_u32(out, (u32)version->tablet_count);
    TRY(columns_save(save, dicts, table, version, out, err));
    for (i64 t = 0; t < version->tablet_count; t++) {
        struct tablet *tablet = version->tablets[t];
        TRY(tablet_save(save, table, version, t, err));
        blob_u32(out, version->slots[t]);
        blob_u32(out, tablet->rows);
        blob_u8(out, is_open_tail(version, t));
        extent_save(out, &tablet->place->meta);
        if (version->deleted_counts[t]) {
            bits_save(out, version_deleted(version, t), tablet->rows, version->deleted_counts[t]);
        } else {
            blob_u32(out, 0);
        }
    }
    TRY(blob_check(out, err));
    return save_put(save, out->data, out->len, &version->place, err);
}

/* Whether all of it is in the file. */
static bool version_keep(struct save *save, struct table_version *version) {
    bool has = save_has(save, &version->place);
    for (i64 t = 0; t < version->tablet_count && has; t++) {
        has = tablet_keep(save, version->tablets[t]);
    }
    return has;
}

wf_status version_save(struct save *save, struct dict_list *dicts, struct table *table,
                       struct table_version *version, struct extent *out, struct error *err) {
    wf_status status = ERR_OK;
    if (version_keep(save, version)) {
        for (u32 c = 0; c < table->col_count && !status; c++) {
            u64 id;
            status = table->dicts[c] ? dict_save(save, dicts, table->dicts[c], &id, err) : ERR_OK;
        }
    } else {
        struct blob blob;
        blob_init(&blob, table->mem);
        status = version_write(save, dicts, table, version, &blob, err);
        blob_fini(&blob);
    }
    *out = version->place;
    return status;
}
