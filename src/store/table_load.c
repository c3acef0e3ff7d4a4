/* table_load.c: tables out of a database file.
 *
 * Checksums say that the bytes are those that were written; still nothing here trusts a count, a
 * size or a place before it is looked at: what cannot be is XX001. */
#include "store/frames_int.h"
#include "store/key_int.h"

struct type type_load(struct blob_reader *from) {
    struct type type = {.id = read_u8(from)};
    type.precision = read_u8(from);
    type.scale = read_u8(from);
    type.element = read_u8(from);
    type.length = read_u32(from);
    from->bad |= type.id >= TYPE_COUNT;
    type.id = type.id >= TYPE_COUNT ? 0 : type.id;
    return type;
}

struct extent extent_load(struct blob_reader *from, u64 stamp) {
    struct extent extent = {.at = (i64)read_u64(from), .stamp = stamp};
    extent.bytes = (i64)read_u64(from);
    extent.sum = read_u64(from);
    from->bad |= extent.bytes < 0 || extent.at < 0;
    return extent;
}

/* Definitions. */

static u32 *numbers_load(struct blob_reader *from, struct arena *arena, u32 count, u32 below) {
    u32 *numbers = NEW_ARRAY(arena, u32, count + 1);
    for (u32 i = 0; i < count; i++) {
        numbers[i] = read_u32(from);
        from->bad |= numbers[i] >= below;
    }
    return numbers;
}

static struct table_key key_load(struct blob_reader *from, struct arena *arena, u32 col_count) {
    struct table_key key = {.name = read_text(from, arena)};
    key.oid = read_u32(from);
    u8 flags = read_u8(from);
    key.primary = flags & 1;
    key.index = flags >> 1 & 1;
    key.deferrable = flags >> 2 & 1;
    key.deferred = flags >> 3 & 1;
    key.col_count = read_count(from, 4);
    key.cols = numbers_load(from, arena, key.col_count, col_count);
    from->bad |= !key.name;
    return key;
}

static struct table_foreign foreign_load(struct blob_reader *from, struct arena *arena,
                                         u32 col_count) {
    struct table_foreign fk = {.name = read_text(from, arena)};
    fk.oid = read_u32(from);
    fk.col_count = read_count(from, 8);
    fk.cols = numbers_load(from, arena, fk.col_count, col_count);
    fk.ref_cols = numbers_load(from, arena, fk.col_count, 1u << 16);
    fk.ref_oid = read_u32(from);
    fk.ref_key = read_u32(from);
    fk.on_delete = read_u8(from);
    fk.on_update = read_u8(from);
    fk.set_on_delete = read_u32(from);
    u8 flags = read_u8(from);
    fk.match_full = flags & 1;
    fk.unvalidated = flags >> 1 & 1;
    fk.deferrable = flags >> 2 & 1;
    fk.deferred = flags >> 3 & 1;
    from->bad |= !fk.name || fk.on_delete > FK_SET_DEFAULT || fk.on_update > FK_SET_DEFAULT;
    return fk;
}

static void constraints_load(struct blob_reader *from, struct arena *arena, struct table_def *def) {
    def->key_count = read_count(from, 13);
    def->keys = NEW_ARRAY(arena, struct table_key, def->key_count + 1);
    for (u32 i = 0; i < def->key_count; i++) {
        def->keys[i] = key_load(from, arena, def->col_count);
    }
    def->check_count = read_count(from, 13);
    def->checks = NEW_ARRAY(arena, struct table_check, def->check_count + 1);
    for (u32 i = 0; i < def->check_count; i++) {
        struct table_check *check = &def->checks[i];
        check->name = read_text(from, arena);
        check->oid = read_u32(from);
        check->text = read_text(from, arena);
        check->unvalidated = read_u8(from) & 1;
        from->bad |= !check->name || !check->text;
    }
    def->foreign_count = read_count(from, 27);
    def->foreigns = NEW_ARRAY(arena, struct table_foreign, def->foreign_count + 1);
    for (u32 i = 0; i < def->foreign_count; i++) {
        def->foreigns[i] = foreign_load(from, arena, def->col_count);
    }
}

struct table_def table_def_load(struct blob_reader *from, struct arena *arena, u32 *out_shift,
                                bool *out_plain) {
    struct table_def def = {.name = read_text(from, arena)};
    *out_shift = read_u8(from);
    *out_plain = read_u8(from);
    def.col_count = read_count(from, 22);
    def.cols = NEW_ARRAY(arena, struct column_def, def.col_count + 1);
    for (u32 i = 0; i < def.col_count; i++) {
        struct column_def *col = &def.cols[i];
        col->name = read_text(from, arena);
        col->type = type_load(from);
        col->not_null = read_u8(from) & 1;
        col->identity = read_u8(from);
        col->default_text = read_text(from, arena);
        col->sequence = read_u32(from);
        from->bad |= !col->name;
    }
    constraints_load(from, arena, &def);
    from->bad |= !def.name || *out_shift > 20;
    return def;
}

/* Dictionaries. */

static FALLIBLE shelf_item(struct db_file *file, struct blob_reader *from, struct dict *dict,
                           u64 id, struct arena *arena, struct error *err) {
    u32 parts = read_count(from, 28);
    dict_set_saved(dict, id);
    struct extent *extents = NEW_ARRAY(arena, struct extent, parts + 1);
    i32 *counts = NEW_ARRAY(arena, i32, parts + 1);
    struct dict_parts *waiting = NEW(arena, struct dict_parts);
    for (u32 i = parts; i-- > 0;) { /* the last one comes first */
        extents[i] = extent_load(from, db_file_stamp(file));
        counts[i] = (i32)read_u32(from);
        from->bad |= counts[i] < 0 || extents[i].bytes < 4LL * counts[i];
    }
    bool noted = true;
    for (u32 i = 0; i < parts && !from->bad; i++) {
        noted = noted && db_file_note(file, &extents[i]);
    }
    *waiting = (struct dict_parts){file, from->bad ? 0 : parts, extents, counts};
    dict_set_parts(dict, waiting);
    return noted ? arena_check(arena, err) : memory_refused(arena->mem, err, 4096);
}

wf_status dict_shelf_load(struct db_file *file, struct memory *mem, struct blob_reader *from,
                          struct dict_shelf *out, struct error *err) {
    u32 count = read_count(from, 12);
    for (u32 i = 0; i < count && !from->bad; i++) {
        u64 id = read_u64(from);
        struct dict *dict = dict_open(mem);
        if (!dict) {
            return memory_refused(mem, err, 4096);
        }
        struct shelved item = {id, dict};
        VEC_PUSH(out->arena, &out->items, item);
        TRY(shelf_item(file, from, dict, id, out->arena, err));
    }
    return ERR_OK;
}

void dict_shelf_fini(struct dict_shelf *shelf) {
    for (i64 i = 0; i < shelf->items.count; i++) {
        dict_set_parts(shelf->items.items[i].dict, NULL);
        dict_release(shelf->items.items[i].dict);
    }
    shelf->items.count = 0;
}

struct dict *dict_shelf_find(const struct dict_shelf *shelf, u64 id) {
    for (i64 i = 0; i < shelf->items.count; i++) {
        if (shelf->items.items[i].id == id) {
            return shelf->items.items[i].dict;
        }
    }
    return NULL;
}

/* Tablets. */

static struct range range_load(struct blob_reader *from) {
    struct range range = {.lo = read_i128(from)};
    range.hi = read_i128(from);
    range.abs_max = read_f64(from);
    range.lsb = (i32)read_u32(from);
    range.may_special = read_u8(from) & 1;
    return range;
}

struct tablet_reader {
    struct db_file *file;
    struct table *table;
    struct tablet *tablet;
    struct blob_reader from;
};

static FALLIBLE damaged(const struct db_file *file, const struct table *table, struct error *err) {
    return error_set(err, ERR_DAMAGED, -1, "table \"%.100s\" of \"%.300s\" is damaged",
                     table->name, db_file_path(file));
}

/* What the extent must be, by what is said of it. */
static bool segment_fits(const struct tablet_reader *r, u32 c, const struct segment_layout *lay) {
    const struct segment *seg = &r->tablet->cols[c];
    struct type type = r->table->cols[c].type;
    return segment_is_sound(seg, type) && seg->width <= 16 && lay->total >= 0 &&
           (r->tablet->place->cols[c].packed || r->tablet->place->cols[c].bytes == lay->total) &&
           (seg->encoding == ENC_STR || seg->bytes_len == 0) && seg->null_count >= 0 &&
           seg->null_count <= r->tablet->rows;
}

/* Its place in memory; what it holds is read when it is needed. */
static FALLIBLE segment_place(struct tablet_reader *r, u32 c, const struct segment_layout *lay,
                              bool has_valid, struct error *err) {
    struct segment *seg = &r->tablet->cols[c];
    struct table *table = r->table;
    if (lay->total == 0) {
        return ERR_OK;
    }
    if (seg->encoding == ENC_DICT) {
        TRY(dict_fetch(table->dicts[c], err));
    }
    struct frame_form form = {.extent = r->tablet->place->cols[c],
                              .lay = *lay,
                              .rows = r->tablet->rows,
                              .encoding = seg->encoding,
                              .width = seg->width,
                              .has_valid = has_valid,
                              .dict_len = table->dicts[c] ? dict_len(table->dicts[c]) : 0,
                              .text_bytes = seg->bytes_len,
                              .table = table->name,
                              .column = table->cols[c].name};
    struct buffer *buf = r->tablet->buffers[c] = frame_new(r->file->frames, &form);
    if (!buf) {
        return memory_refused(table->mem, err, lay->total);
    }
    r->tablet->framed = 1;
    r->tablet->bytes += lay->total;
    seg->data = lay->data_bytes ? buf->data : NULL;
    seg->valid = has_valid ? (const u64 *)(const void *)(buf->data + lay->valid_at) : NULL;
    seg->bytes = seg->bytes_len ? buf->data + lay->bytes_at : NULL;
    return ERR_OK;
}

static FALLIBLE segment_load(struct tablet_reader *r, u32 c, struct error *err) {
    struct segment *seg = &r->tablet->cols[c];
    struct blob_reader *from = &r->from;
    struct zone *zones = (struct zone *)(size_t)seg->zones;
    seg->encoding = read_u8(from);
    seg->width = read_u8(from);
    u8 flags = read_u8(from);
    seg->is_signed = flags & 1;
    seg->sorted = flags >> 1 & 1;
    seg->strict = flags >> 2 & 1;
    seg->base = read_i128(from);
    seg->fbase = read_f64(from);
    seg->range = range_load(from);
    seg->null_count = (i64)read_u64(from);
    seg->bytes_len = (i64)read_u64(from);
    struct extent *extent = &r->tablet->place->cols[c];
    *extent = extent_load(from, db_file_stamp(r->file));
    extent->packed = flags >> 5 & 1;
    i64 zone_count = ((i64)r->tablet->rows + ZONE_ROWS - 1) / ZONE_ROWS;
    seg->zones = flags >> 4 & 1 ? zones : NULL;
    for (i64 z = 0; seg->zones && z < zone_count; z++) {
        zones[z].lo = read_i128(from);
        zones[z].hi = read_i128(from);
        zones[z].flo = read_f64(from);
        zones[z].fhi = read_f64(from);
    }
    bool has_valid = flags >> 3 & 1;
    struct segment_layout lay = segment_layout(seg, r->tablet->rows, has_valid);
    if (from->bad || !segment_fits(r, c, &lay)) {
        return damaged(r->file, r->table, err);
    }
    if (!db_file_note(r->file, extent)) {
        return memory_refused(r->table->mem, err, 4096);
    }
    return segment_place(r, c, &lay, has_valid, err);
}

static FALLIBLE tablet_read(struct tablet_reader *r, const struct extent *meta, struct error *err) {
    struct table *table = r->table;
    u32 rows = read_u32(&r->from), cols = read_u32(&r->from);
    if (r->from.bad || rows == 0 || rows > 1u << table->tablet_shift || cols != table->col_count) {
        return damaged(r->file, table, err);
    }
    r->tablet = tablet_new(table->mem, cols, cols, ((i64)rows + ZONE_ROWS - 1) / ZONE_ROWS);
    if (r->tablet) {
        r->tablet->place = tablet_place_new(table->mem, cols);
    }
    if (!r->tablet || !r->tablet->place || !db_file_note(r->file, meta)) {
        return memory_refused(table->mem, err, 4096);
    }
    r->tablet->rows = rows;
    r->tablet->filed = 1;
    r->tablet->place->meta = *meta;
    for (u32 c = 0; c < cols; c++) {
        TRY(segment_load(r, c, err));
    }
    TRY(keys_load(r->file, &r->from, r->tablet, err));
    r->tablet->place->meta_keys = keys_count(atomic_load(&r->tablet->keys));
    return r->from.bad ? damaged(r->file, table, err) : ERR_OK;
}

/* An extent in memory; the caller frees it. */
static FALLIBLE extent_read(struct db_file *file, struct memory *mem, const struct extent *extent,
                            u8 **out, struct error *err) {
    *out = mem_alloc(mem, MAX_OF(extent->bytes, 1));
    if (!*out) {
        return memory_refused(mem, err, extent->bytes);
    }
    wf_status status = db_file_read(file, extent, *out, err);
    if (status) {
        mem_free(mem, *out, MAX_OF(extent->bytes, 1));
    }
    return status;
}

static FALLIBLE tablet_load(struct db_file *file, struct table *table, const struct extent *meta,
                            struct tablet **out, struct error *err) {
    u8 *block;
    TRY(extent_read(file, table->mem, meta, &block, err));
    struct tablet_reader r = {file, table, NULL, {block, block + meta->bytes, 0}};
    wf_status status = tablet_read(&r, meta, err);
    mem_free(table->mem, block, MAX_OF(meta->bytes, 1));
    if (status) {
        tablet_release(r.tablet);
        return status;
    }
    *out = r.tablet;
    return ERR_OK;
}

/* Versions. */

static struct facts facts_load(struct blob_reader *from) {
    struct facts facts = {.range = range_load(from)};
    facts.rows = (i64)read_u64(from);
    facts.null_count = (i64)read_u64(from);
    u8 flags = read_u8(from);
    facts.sorted = flags & 1;
    facts.strict = flags >> 1 & 1;
    facts.and_bits = read_u64(from);
    facts.or_bits = read_u64(from);
    from->bad |= facts.rows < 0 || facts.null_count < 0;
    return facts;
}

static u64 column_load(struct blob_reader *from, struct col_state *out) {
    u64 dict = read_u64(from);
    out->all = facts_load(from);
    out->distinct = (i64)read_u64(from);
    u8 flags = read_u8(from);
    out->dict_on = flags & 1;
    out->has_str = flags >> 1 & 1;
    const u8 *sketch = read_bytes(from, (i64)sizeof out->sketch.longest);
    if (sketch) {
        memcpy(out->sketch.longest, sketch, sizeof out->sketch.longest);
    }
    return dict;
}

wf_status version_load_dicts(struct db_file *file, const struct extent *extent,
                             const struct dict_shelf *shelf, struct arena *arena, u32 col_count,
                             struct dict ***out, struct error *err) {
    u8 *block;
    TRY(extent_read(file, arena->mem, extent, &block, err));
    struct blob_reader from = {block, block + extent->bytes, 0};
    struct dict **dicts = *out = NEW_ARRAY(arena, struct dict *, col_count + 1);
    (void)read_u64(&from);
    bool missing = false;
    for (u32 c = 0; c < col_count && !from.bad; c++) {
        struct col_state ignored = {0};
        u64 id = column_load(&from, &ignored);
        dicts[c] = id ? dict_shelf_find(shelf, id) : NULL;
        missing = missing || (id && !dicts[c]);
    }
    mem_free(arena->mem, block, MAX_OF(extent->bytes, 1));
    return from.bad || missing ? error_set(err, ERR_DAMAGED, -1,
                                           "a table of \"%.300s\" is damaged", db_file_path(file))
                               : ERR_OK;
}

u32 bits_load(struct blob_reader *from, u64 *bits, i64 rows) {
    u32 count = read_u32(from);
    if ((i64)count > rows || from->bad) {
        from->bad = 1;
        return 0;
    }
    if ((i64)count * 32 >= rows) {
        i64 words = (rows + 63) / 64;
        const u8 *at = read_bytes(from, words * 8);
        for (i64 w = 0; at && w < words; w++) {
            u64 word, all = rows - w * 64 >= 64 ? ~0ULL : (1ULL << (rows & 63)) - 1;
            memcpy(&word, at + w * 8, 8);
            bits[w] |= word & all;
        }
        return count;
    }
    for (u32 i = 0; i < count && !from->bad; i++) {
        u32 pos = read_u32(from);
        from->bad |= pos >= rows;
        if (!from->bad) {
            bits[pos >> 6] |= 1ULL << (pos & 63);
        }
    }
    return count;
}

struct version_reader {
    struct db_file *file;
    struct table *table;
    struct blob_reader from;
    struct col_state *cols;
    struct version_part *parts;
    u32 next_slot, count, done;
    struct plain_rows plain;
};

static FALLIBLE part_load(struct version_reader *r, struct error *err) {
    struct version_part *part = &r->parts[r->done];
    struct table *table = r->table;
    part->slot = read_u32(&r->from);
    u32 rows = read_u32(&r->from);
    bool is_open = read_u8(&r->from) & 1;
    struct extent meta = extent_load(&r->from, db_file_stamp(r->file));
    if (r->from.bad || rows > 1u << table->tablet_shift || part->slot >= r->next_slot) {
        return damaged(r->file, table, err);
    }
    TRY(tablet_load(r->file, table, &meta, &part->tablet, err));
    r->done++;
    struct blob_reader ahead = r->from;
    u32 gone = read_u32(&ahead);
    if (gone) {
        part->deleted = bits_new(table->mem, rows, NULL);
        if (!part->deleted) {
            return memory_refused(table->mem, err, rows / 8);
        }
        (void)bits_load(&r->from, (u64 *)(void *)part->deleted->data, rows);
    } else {
        (void)read_u32(&r->from);
    }
    if (r->from.bad || part->tablet->rows != rows ||
        (gone && bits_count((const u64 *)(void *)part->deleted->data, rows) != gone)) {
        return damaged(r->file, table, err);
    }
    bool is_short = rows <= OPEN_TAIL_ROWS && rows < 1u << table->tablet_shift;
    if (is_open && r->done == r->count && is_short) {
        TRY(plain_open(&r->plain, table, rows, err));
        TRY(plain_fill_all(&r->plain, table, part->tablet, 0, rows, err));
        part->plain = &r->plain;
    }
    return ERR_OK;
}

static FALLIBLE version_read(struct version_reader *r, struct arena *arena, struct error *err) {
    struct table *table = r->table;
    r->next_slot = read_u32(&r->from);
    r->count = read_u32(&r->from);
    r->cols = NEW_ARRAY(arena, struct col_state, table->col_count + 1);
    for (u32 c = 0; c < table->col_count; c++) {
        (void)column_load(&r->from, &r->cols[c]);
        if (table->dicts[c] && r->cols[c].dict_on) {
            TRY(dict_fetch(table->dicts[c], err));
        }
    }
    const u8 *order = read_bytes(&r->from, table->key_count);
    if (r->from.bad || (i64)r->count * 37 > r->from.end - r->from.at) {
        r->count = 0;
        return damaged(r->file, table, err);
    }
    r->parts = NEW_ARRAY(arena, struct version_part, r->count + 1);
    while (r->done < r->count) {
        TRY(part_load(r, err));
    }
    struct table_version *made;
    TRY(version_restore(table, r->next_slot, r->parts, r->count, r->cols, &made, err));
    for (u32 k = 0; k < table->key_count; k++) {
        made->keys[k].order = order[k] & (KEY_STRICT | KEY_RUNS);
    }
    if (r->plain.block) { /* the tail lies where its tablet does */
        struct tablet *tail = r->parts[r->count - 1].tablet;
        struct tablet *open = made->tablets[made->tablet_count - 1];
        open->place = tail->place;
        tail->place = NULL;
        atomic_store(&open->keys, atomic_exchange(&tail->keys, NULL));
    }
    table_publish(table, made);
    return arena_check(arena, err);
}

/* Makes it the table's current one, too. */
wf_status version_load(struct db_file *file, const struct extent *extent, struct table *table,
                       struct table_version **out, struct error *err) {
    struct arena arena;
    u8 *block;
    if (!db_file_note(file, extent)) {
        return memory_refused(table->mem, err, 4096);
    }
    TRY(extent_read(file, table->mem, extent, &block, err));
    arena_init(&arena, table->mem);
    struct version_reader r = {.file = file, .table = table};
    r.from = (struct blob_reader){block, block + extent->bytes, 0};
    wf_status status = version_read(&r, &arena, err);
    for (u32 i = 0; i < r.done; i++) {
        tablet_release(r.parts[i].tablet);
    }
    for (u32 i = 0; r.parts && i < r.count; i++) {
        buffer_release(r.parts[i].deleted);
    }
    plain_close(&r.plain, table);
    arena_fini(&arena);
    mem_free(table->mem, block, MAX_OF(extent->bytes, 1));
    TRY(status);
    *out = table_snapshot(table);
    (*out)->place = *extent;
    return ERR_OK;
}

/* Reads an extent that is in the file again. */
static FALLIBLE extent_check(struct db_file *file, struct memory *mem, const struct extent *extent,
                             i64 *io_extents, i64 *io_bytes, struct error *err) {
    u8 *block;
    if (extent->stamp != db_file_stamp(file) || extent->bytes == 0) {
        return ERR_OK;
    }
    TRY(extent_read(file, mem, extent, &block, err));
    mem_free(mem, block, extent->bytes);
    *io_extents += 1;
    *io_bytes += extent->bytes;
    return ERR_OK;
}

wf_status version_check(struct db_file *file, const struct table *table,
                        const struct table_version *version, i64 *io_extents, i64 *io_bytes,
                        struct error *err) {
    struct memory *mem = table->mem;
    TRY(extent_check(file, mem, &version->place, io_extents, io_bytes, err));
    for (i64 t = 0; t < version->tablet_count; t++) {
        const struct tablet_place *place = version->tablets[t]->place;
        for (u32 c = 0; place && c <= table->col_count; c++) {
            TRY(extent_check(file, mem, c ? &place->cols[c - 1] : &place->meta, io_extents,
                             io_bytes, err));
        }
        for (u32 c = 0; c < table->col_count; c++) { /* and what its codes can be */
            TRY(column_hold(version->tablets[t], c, HOLD_SHORT, err));
            column_drop(version->tablets[t], c);
        }
        const struct extent *part = NULL;
        while ((part = keys_next_extent(version->tablets[t], part))) {
            TRY(extent_check(file, mem, part, io_extents, io_bytes, err));
        }
        const struct tablet_key *key = atomic_load(&version->tablets[t]->keys);
        for (; key; key = key->next) {
            TRY(part_check(table, key, version->tablets[t], err));
        }
    }
    for (u32 c = 0; c < table->col_count; c++) {
        const struct extent *part = NULL;
        while (table->dicts[c] && (part = dict_saved_next(table->dicts[c], part))) {
            TRY(extent_check(file, mem, part, io_extents, io_bytes, err));
        }
    }
    return ERR_OK;
}
