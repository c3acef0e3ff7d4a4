/* tablet_seal.c: rows to a sealed tablet: chooses each column's encoding and writes its segment.
 *
 * A column is scanned once for its facts, which decide the encoding, and read once more to write
 * it. All of a segment (data, validity, bytes) lies in one buffer of exactly the size needed. Text
 * goes to the dictionary as long as that pays; a column found too varied is switched off for
 * whoever seals next and written as offsets and bytes. Plain tables keep integers at the width of
 * their type, to have something to compare the narrow encodings with. */
#include "store/frames_int.h"

/* Where the parts of a segment lie in its buffer. */
struct layout {
    i64 data_bytes, valid_at, valid_bytes, bytes_at, text_bytes;
};

/* Memory for a column: of a table that is saved a frame, which can go once it is in the file. */
static struct buffer *column_buffer(const struct seal *seal, struct tablet *tablet, u32 col,
                                    const struct layout *lay, i64 total) {
    const struct table *table = seal->table;
    const struct segment *seg = &tablet->cols[col];
    struct db_file *file = seal->is_passing ? NULL : table->state->file;
    bool small = true;
    if (file) {
        struct frame_form form = {
            .lay = {lay->data_bytes, lay->valid_at, lay->valid_bytes, lay->bytes_at, total},
            .rows = tablet->rows,
            .encoding = seg->encoding,
            .width = seg->width,
            .has_valid = lay->valid_bytes > 0,
            .dict_len = table->dicts[col] ? dict_len(table->dicts[col]) : 0,
            .text_bytes = lay->text_bytes,
            .table = table->name,
            .column = table->cols[col].name};
        struct buffer *frame = frame_new_full(file->frames, &form, &small);
        tablet->framed |= frame != NULL;
        if (!small) {
            return frame;
        }
    }
    return buffer_new_at(tablet->mem, total, BUFFER_STORED);
}

static bool segment_alloc(const struct seal *seal, struct tablet *tablet, u32 col,
                          struct layout *lay, i64 *out_asked) {
    lay->valid_at = ALIGN_UP(lay->data_bytes, 64);
    lay->bytes_at = lay->valid_at + ALIGN_UP(lay->valid_bytes, 64);
    i64 total = lay->bytes_at + lay->text_bytes;
    *out_asked = total;
    if (total == 0) {
        return true;
    }
    struct buffer *buf = column_buffer(seal, tablet, col, lay, total);
    if (!buf) {
        return false;
    }
    /* The gaps between the parts are as defined as the rest: a segment is copied whole. */
    memset(buf->data + lay->data_bytes, 0, (size_t)(lay->valid_at - lay->data_bytes));
    memset(buf->data + lay->valid_at, 0, (size_t)(lay->bytes_at - lay->valid_at));
    tablet->buffers[col] = buf;
    tablet->bytes += total;
    struct segment *seg = &tablet->cols[col];
    seg->data = lay->data_bytes ? buf->data : NULL;
    seg->valid = lay->valid_bytes ? (const u64 *)(const void *)(buf->data + lay->valid_at) : NULL;
    seg->bytes = lay->text_bytes ? buf->data + lay->bytes_at : NULL;
    seg->bytes_len = lay->text_bytes;
    return true;
}

static void segment_set_facts(struct segment *seg, const struct facts *facts) {
    seg->range = facts_range(facts);
    seg->null_count = facts->null_count;
    seg->sorted = facts->sorted && facts->null_count == 0;
    seg->strict = facts->strict && facts->null_count == 0;
}

static struct layout layout_for(const struct column_source *src, const struct facts *facts,
                                u8 width) {
    return (struct layout){.data_bytes = src->rows * width,
                           .valid_bytes = facts->null_count ? (src->rows + 63) / 64 * 8 : 0};
}

static void write_valid(struct segment *seg, const struct column_source *src,
                        const struct buffer *buf, const struct layout *lay) {
    if (seg->valid) {
        valid_write((u64 *)(void *)(buf->data + lay->valid_at), 0, src);
    }
}

/* Exact types, dates, booleans and floats. */
static bool seal_fixed(const struct seal *seal, const struct column_source *src,
                       struct tablet *tablet, u32 col, i64 *out_asked) {
    struct segment *seg = &tablet->cols[col];
    struct facts facts;
    struct sketch *sketch = seal->sketches ? &seal->sketches[col] : NULL;
    column_scan(src, &facts, sketch, (struct zone *)seg->zones);
    segment_set_facts(seg, &facts);
    bool plain = seal->table->plain, none = facts.null_count == facts.rows;
    bool is_float = type_is_float(src->type);
    seg->width = kind_bytes[src->kind];
    seg->encoding = is_float ? ENC_FLOAT : ENC_INT;
    if (is_float) {
        bool same = none || (facts.and_bits == facts.or_bits && !facts.range.may_special);
        seg->encoding = same && !plain ? ENC_CONST : ENC_FLOAT;
        if (same && !none) {
            memcpy(&seg->fbase, &facts.and_bits, sizeof seg->fbase);
        }
        seg->fbase = seg->encoding == ENC_CONST ? seg->fbase : 0;
    } else if (plain) {
        seg->is_signed = 1;
    } else {
        seg->base = none ? 0 : facts.range.lo;
        u128 span = none ? 0 : (u128)facts.range.hi - (u128)facts.range.lo;
        seg->encoding = span ? ENC_INT : ENC_CONST;
        u8 whole = seg->width;
        seg->width = width_for(span);
        if (seg->width == whole && (whole == 4 || whole == 8)) { /* a base that saves nothing */
            seg->base = 0;
            seg->is_signed = 1;
        }
    }
    seg->width = seg->encoding == ENC_CONST ? 0 : seg->width;
    struct layout lay = layout_for(src, &facts, seg->width);
    if (!segment_alloc(seal, tablet, col, &lay, out_asked)) {
        return false;
    }
    if (seg->encoding != ENC_CONST) {
        column_narrow(tablet->buffers[col]->data, seg->width, src, seg->base);
    }
    write_valid(seg, src, tablet->buffers[col], &lay);
    return true;
}

static bool seal_codes(const struct seal *seal, const struct column_source *src,
                       const struct facts *facts, struct tablet *tablet, u32 col, i64 *out_asked) {
    struct segment *seg = &tablet->cols[col];
    const u32 *codes = src->data;
    u32 top = 0;
    for (i64 i = 0; i < src->rows; i++) {
        top = codes[i] > top ? codes[i] : top;
    }
    seg->encoding = ENC_DICT;
    seg->width = seal->table->plain ? 4 : width_for(top);
    struct layout lay = layout_for(src, facts, seg->width);
    if (!segment_alloc(seal, tablet, col, &lay, out_asked)) {
        return false;
    }
    column_narrow(tablet->buffers[col]->data, seg->width, src, 0);
    write_valid(seg, src, tablet->buffers[col], &lay);
    return true;
}

/* Bytes of all non-NULL rows. */
static i64 text_bytes(const struct column_source *src) {
    b8 scratch[CHUNK_ROWS];
    i64 total = 0;
    if (src->form == FORM_CODES) {
        return 0;
    }
    if (src->form == FORM_ENDS) {
        return src->rows ? (i64)((const u32 *)src->data)[src->rows - 1] - src->start : 0;
    }
    const str *v = src->data;
    for (i64 i = 0; !src->nulls && !src->valid && i < src->rows; i++) {
        total += v[i].len;
    }
    for (i64 first = 0; (src->nulls || src->valid) && first < src->rows; first += CHUNK_ROWS) {
        i64 n = MIN_OF(CHUNK_ROWS, src->rows - first);
        const b8 *nulls = source_nulls(src, first, n, scratch);
        for (i64 i = 0; i < n; i++) {
            total += nulls && nulls[i] ? 0 : v[first + i].len;
        }
    }
    return total;
}

static void write_text(u32 *ends, u8 *bytes, const struct column_source *src) {
    b8 scratch[CHUNK_ROWS];
    u32 end = 0;
    for (i64 first = 0; first < src->rows; first += CHUNK_ROWS) {
        i64 n = MIN_OF(CHUNK_ROWS, src->rows - first);
        const b8 *nulls = source_nulls(src, first, n, scratch);
        for (i64 i = 0; i < n; i++) {
            if (!(nulls && nulls[i])) {
                struct sv s = source_text(src, first + i);
                if (s.len) {
                    memcpy(bytes + end, s.ptr, (size_t)s.len);
                }
                end += (u32)s.len;
            }
            ends[first + i] = end;
        }
    }
}

static bool seal_strings(const struct seal *seal, const struct column_source *src,
                         const struct facts *facts, struct tablet *tablet, u32 col,
                         i64 *out_asked) {
    struct segment *seg = &tablet->cols[col];
    seg->encoding = ENC_STR;
    seg->width = 4;
    struct layout lay = layout_for(src, facts, seg->width);
    lay.text_bytes = text_bytes(src);
    CHECK(lay.text_bytes <= STR_LIMIT);
    if (!segment_alloc(seal, tablet, col, &lay, out_asked)) {
        return false;
    }
    struct buffer *buf = tablet->buffers[col];
    write_text((u32 *)(void *)buf->data, buf->data + lay.bytes_at, src);
    write_valid(seg, src, buf, &lay);
    return true;
}

static bool seal_text(const struct seal *seal, const struct column_source *src,
                      struct tablet *tablet, u32 col, i64 *out_asked) {
    struct facts facts;
    column_scan(src, &facts, NULL, NULL);
    segment_set_facts(&tablet->cols[col], &facts);
    tablet->cols[col].zones = NULL;
    if (src->form == FORM_CODES) {
        return seal_codes(seal, src, &facts, tablet, col, out_asked);
    }
    if (src->form == FORM_PLAIN && atomic_load(&seal->dict_on[col])) {
        i64 bytes = src->rows * (i64)sizeof(u32);
        u32 *codes = mem_alloc(tablet->mem, bytes);
        *out_asked = bytes;
        if (!codes) {
            return false;
        }
        bool full = false;
        struct dict *dict = seal->table->dicts[col];
        bool ok = text_codes(src, dict, seal->column_rows, codes, &full);
        if (ok && !full) {
            struct column_source coded = *src;
            coded.form = FORM_CODES;
            coded.data = codes;
            ok = seal_codes(seal, &coded, &facts, tablet, col, out_asked);
        }
        mem_free(tablet->mem, codes, bytes);
        if (!ok || !full) {
            return ok;
        }
        atomic_store(&seal->dict_on[col], 0);
    }
    if (seal->sketches) {
        column_scan(src, &facts, &seal->sketches[col], NULL);
    }
    return seal_strings(seal, src, &facts, tablet, col, out_asked);
}

wf_status tablet_seal(const struct seal *seal, const struct column_source *sources,
                      struct tablet **out, struct error *err) {
    const struct table *table = seal->table;
    i64 rows = seal->rows, zone_count = (rows + ZONE_ROWS - 1) / ZONE_ROWS;
    CHECK(rows > 0 && rows <= 1LL << table->tablet_shift);
    struct tablet *tablet = tablet_new(table->mem, table->col_count, table->col_count, zone_count);
    if (!tablet) {
        return memory_refused(table->mem, err, (i64)sizeof *tablet);
    }
    tablet->rows = (u32)rows;
    for (u32 i = 0; i < table->col_count; i++) {
        i64 asked = 0;
        bool ok = type_is_text(sources[i].type) ? seal_text(seal, &sources[i], tablet, i, &asked)
                                                : seal_fixed(seal, &sources[i], tablet, i, &asked);
        if (!ok) {
            tablet_release(tablet);
            return memory_refused(table->mem, err, asked);
        }
        ASSERT(segment_is_sound(&tablet->cols[i], sources[i].type));
    }
    *out = tablet;
    return ERR_OK;
}

wf_status tablet_seal_some(struct seal *seal, struct column_source *sources, struct tablet **out,
                           struct error *err) {
    enum { LEAST = 1 << 12 };
    const struct table *table = seal->table;
    for (;; seal->rows /= 2) {
        for (u32 i = 0; i < table->col_count; i++) {
            sources[i].rows = seal->rows;
        }
        wf_status status = tablet_seal(seal, sources, out, err);
        if (status != ERR_OUT_OF_MEMORY || seal->rows <= LEAST || !table->state->file) {
            return status;
        }
        error_reset(err);
    }
}

i64 seal_rows(const struct table *table, const struct column_source *sources, i64 rows) {
    i64 fits = rows;
    for (u32 i = 0; i < table->col_count; i++) {
        struct column_source src = sources[i];
        src.rows = fits;
        while (type_is_text(src.type) && src.rows > 1 &&
               text_bytes(&src) > table->state->str_limit) {
            src.rows /= 2;
        }
        fits = src.rows;
    }
    return fits;
}
