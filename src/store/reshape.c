/* reshape.c: ALTER TABLE: the rows of a table under other columns, without copying any.
 *
 * A tablet's block is made anew, with the segments of the columns that stay, over the same buffers,
 * and constant segments for new ones. The open tail comes over as an ordinary tablet: below its
 * length nobody ever writes, and the new table starts a tail of its own. */
#include "store/key_int.h"

struct reshape {
    struct table *table;
    const i32 *cols;
    const void *const *values;
};

/* NULL everywhere: codes or numbers of 0, and no bit set. */
static FALLIBLE null_segment(const struct reshape *r, struct tablet *tablet, u32 c,
                             struct error *err) {
    struct segment *seg = &tablet->cols[c];
    struct type type = r->table->cols[c].type;
    i64 data_bytes = type_is_text(type) ? ALIGN_UP((i64)tablet->rows, 64) : 0;
    i64 bytes = data_bytes + ALIGN_UP((i64)tablet->rows + 63, 64) / 8;
    struct buffer *buf = tablet->buffers[c] = buffer_new_at(r->table->mem, bytes, BUFFER_STORED);
    if (!buf) {
        return memory_refused(r->table->mem, err, bytes);
    }
    memset(buf->data, 0, (size_t)bytes);
    seg->encoding = data_bytes ? ENC_DICT : ENC_CONST;
    seg->width = data_bytes ? 1 : 0;
    seg->data = data_bytes ? buf->data : NULL;
    seg->valid = (const u64 *)(void *)(buf->data + data_bytes);
    seg->null_count = tablet->rows;
    struct facts none;
    facts_init(&none, type);
    seg->range = facts_range(&none);
    return ERR_OK;
}

static FALLIBLE text_segment(const struct reshape *r, struct tablet *tablet, u32 c,
                             struct error *err) {
    struct segment *seg = &tablet->cols[c];
    struct buffer *buf = buffer_new_at(r->table->mem, (i64)tablet->rows * 4, BUFFER_STORED);
    i32 code = dict_add(r->table->dicts[c], sv_of(*(const str *)r->values[c]));
    tablet->buffers[c] = buf;
    if (!buf || code < 0) {
        return memory_refused(r->table->mem, err, (i64)tablet->rows * 4);
    }
    u32 *codes = (u32 *)(void *)buf->data;
    for (u32 i = 0; i < tablet->rows; i++) {
        codes[i] = (u32)code;
    }
    seg->encoding = ENC_DICT;
    seg->width = 4;
    seg->data = buf->data;
    return ERR_OK;
}

/* The same value in every row. */
static FALLIBLE const_segment(const struct reshape *r, struct tablet *tablet, u32 c,
                              struct error *err) {
    struct type type = r->table->cols[c].type;
    struct segment *seg = &tablet->cols[c];
    if (type_is_text(type)) {
        return text_segment(r, tablet, c, err);
    }
    struct input_col in = {r->values[c], NULL};
    struct column_source src = source_of_input(type, &in, 0, 1);
    struct facts facts;
    column_scan(&src, &facts, NULL, NULL);
    seg->encoding = ENC_CONST;
    seg->base = facts.range.lo;
    seg->range = facts_range(&facts);
    if (type_is_float(type)) {
        seg->base = 0;
        memcpy(&seg->fbase, r->values[c], sizeof seg->fbase);
        if (type_kind(type) == KIND_F32) {
            f32 narrow;
            memcpy(&narrow, r->values[c], sizeof narrow);
            seg->fbase = narrow;
        }
    } else {
        seg->sorted = 1;
        seg->strict = tablet->rows == 1;
    }
    return ERR_OK;
}

static void same_segment(struct tablet *tablet, u32 c, const struct tablet *from, u32 old,
                         i64 zone_count) {
    struct zone *zones = (struct zone *)(size_t)tablet->cols[c].zones;
    tablet->cols[c] = from->cols[old];
    if (from->cols[old].zones && zones) { /* they lie in the old tablet's block */
        memcpy(zones, from->cols[old].zones, (size_t)zone_count * sizeof *zones);
        tablet->cols[c].zones = zones;
    }
    tablet->framed |= from->framed;
    tablet->filed |= from->filed;
    tablet_place_share(tablet, c, from, old);
    for (u32 part = 0; part * from->col_count + old < from->buffer_count; part++) {
        struct buffer *data = from->buffers[part * from->col_count + old];
        tablet->buffers[part * tablet->col_count + c] = data ? buffer_retain(data) : NULL;
    }
}

static FALLIBLE reshape_tablet(const struct reshape *r, const struct tablet *from,
                               struct tablet **out, struct error *err) {
    struct table *table = r->table;
    u32 count = table->col_count;
    i64 zone_count = from->tail ? 0 : ((i64)from->rows + ZONE_ROWS - 1) / ZONE_ROWS;
    struct tablet *tablet = tablet_new(table->mem, count, (from->tail ? 3 : 1) * count, zone_count);
    if (!tablet) {
        return memory_refused(table->mem, err, (i64)sizeof *tablet);
    }
    *out = tablet;
    tablet->rows = from->rows;
    tablet->tail = from->tail; /* says how the buffers lie */
    for (u32 c = 0; c < count; c++) {
        if (r->cols[c] >= 0) {
            same_segment(tablet, c, from, (u32)r->cols[c], zone_count);
        } else {
            tablet->cols[c].zones = NULL;
            TRY(r->values && r->values[c] ? const_segment(r, tablet, c, err)
                                          : null_segment(r, tablet, c, err));
        }
        tablet->bytes += (i64)tablet->rows * tablet->cols[c].width;
    }
    if (!tablet_share_parts(tablet, from, r->cols)) {
        return memory_refused(table->mem, err, (i64)sizeof *tablet);
    }
    return ERR_OK;
}

static FALLIBLE reshape_all(const struct reshape *r, struct table_version *from,
                            struct writer *writer, struct error *err) {
    for (i64 t = 0; t < from->tablet_count; t++) {
        struct tablet *tablet = NULL;
        wf_status status = reshape_tablet(r, from->tablets[t], &tablet, err);
        if (status) {
            tablet_release(tablet);
            return status;
        }
        writer_count(writer, tablet);
        struct buffer *gone = from->deleted[t];
        TRY(writer_add(writer, tablet, writer->next_slot++, gone ? buffer_retain(gone) : NULL,
                       err));
    }
    for (u32 c = 0; c < r->table->col_count; c++) {
        struct col_draft *col = &writer->draft->cols[c];
        if (r->cols[c] >= 0) {
            const struct col_draft *old = &from->draft->cols[r->cols[c]];
            col->sketch = old->sketch;
            col->dict_on = old->dict_on;
        }
        col->sketch_changed = 1;
        atomic_store(&writer->dict_on[c], col->dict_on);
    }
    return ERR_OK;
}

wf_status version_reshape(struct table *table, const struct table *old, struct table_version *from,
                          const i32 *cols, const void *const *const_values,
                          struct table_version **out, struct error *err) {
    struct reshape r = {table, cols, const_values};
    UNUSED(old);
    struct table_version *empty = table_snapshot(table);
    struct writer writer;
    wf_status status = writer_begin(&writer, table, empty, err);
    if (status == ERR_OK) {
        status = reshape_all(&r, from, &writer, err);
    }
    if (status == ERR_OK) {
        status = writer_finish(&writer, out, err);
    }
    writer_end(&writer);
    if (status == ERR_OK) {
        status = version_check_keys(table, empty, *out, NULL, err);
        if (status) {
            version_discard(*out);
            *out = NULL;
        }
    }
    version_release(empty);
    return status;
}
