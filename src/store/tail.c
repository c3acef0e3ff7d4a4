/* tail.c: the open end of a table: rows that do not fill a tablet yet, plainly encoded.
 *
 * A tail has room for more rows than it holds. Appending writes behind the rows of the base's, then
 * makes a new tablet that shares the same buffers and is longer; readers of older versions never
 * look at what was added. Two writers that start from the same version cannot both write there: the
 * first claims the room (struct tail_room). The other leaves that tail as it is, as a tablet, and
 * begins one of its own, a private one; its commit appends the rows to the table's tail then, as it
 * is by that time. For a while after somebody came second, all do so: a commit that finds
 * the room claimed by a transaction in progress has to copy the tail. When room runs out, the
 * buffers are replaced by larger copies and the old ones live on in old versions.
 *
 * NULL bits need care, since a word holds rows of several appends: a word that readers may be
 * looking at is never written. When an append has to change bits in the last, partly published
 * word, the bitmap is copied first. Words start out with all bits set, so this happens only when a
 * NULL falls into that word. Atomic bit operations would have forced every reader on every device
 * to use atomic loads as well. */
#include "store/store_int.h"

#ifdef WF_HARD
enum { FIRST_CAP = 4 }; /* test builds: growing is not rare */
#else
enum { FIRST_CAP = 64 };
#endif

enum { RIVALS = 256 }; /* appends that keep apart after two have met */

static u8 tail_width(struct type type) {
    return type_is_text(type) ? 4 : kind_bytes[type_kind(type)];
}

/* Replaces *slot by a buffer of `bytes` that begins with the first `used` of the old one. */
static FALLIBLE regrow(struct memory *mem, struct buffer **slot, i64 used, i64 bytes,
                       struct error *err) {
    struct buffer *grown = buffer_new(mem, bytes);
    if (!grown) {
        return memory_refused(mem, err, bytes);
    }
    if (used) {
        memcpy(grown->data, (*slot)->data, (size_t)used);
    }
    buffer_release(*slot);
    *slot = grown;
    return ERR_OK;
}

static i64 valid_bytes(i64 rows) {
    return (rows + 63) / 64 * 8;
}

/* A bitmap of the tail's capacity with the rows so far, nobody else's. */
static FALLIBLE valid_own(struct writer *writer, struct col_draft *col, struct error *err) {
    struct draft *draft = writer->draft;
    i64 used = col->valid ? valid_bytes(draft->tail_rows) : 0, bytes = valid_bytes(draft->tail_cap);
    TRY(regrow(writer->table->mem, &col->valid, used, bytes, err));
    memset(col->valid->data + used, 0xff, (size_t)(bytes - used));
    col->valid_private = 1;
    return ERR_OK;
}

/* All buffers of the tail copied, with room for `cap` rows and a room of their own. */
static FALLIBLE tail_copy(struct writer *writer, u32 cap, struct error *err) {
    struct table *table = writer->table;
    struct draft *draft = writer->draft;
    struct tail_room *room = room_new(table->mem, draft->tail_rows);
    if (!room) {
        return memory_refused(table->mem, err, (i64)sizeof *room);
    }
    draft_unclaim(draft);
    room_release(draft->room);
    draft->room = room;
    draft->claim_from = draft->tail_rows;
    draft->tail_cap = cap;
    for (u32 i = 0; i < table->col_count; i++) {
        struct col_draft *col = &draft->cols[i];
        i64 width = tail_width(table->cols[i].type);
        TRY(regrow(table->mem, &col->data, draft->tail_rows * width, cap * width, err));
        if (col->bytes) {
            TRY(regrow(table->mem, &col->bytes, col->bytes_used, col->bytes->bytes, err));
        }
        if (col->valid) {
            TRY(valid_own(writer, col, err));
        }
    }
    return ERR_OK;
}

/* The base's tail becomes a tablet as it is, and a private one begins. */
static FALLIBLE tail_leave(struct writer *writer, struct error *err) {
    const struct table_version *base = writer->base;
    struct tablet *tablet = base->tablets[base->tablet_count - 1];
    ASSERT(base->slots[base->tablet_count - 1] == writer->draft->tail_slot);
    TRY(writer_add(writer, tablet_retain(tablet), writer->draft->tail_slot, NULL, err));
    tail_reset(writer);
    writer->draft->is_private = 1;
    return ERR_OK;
}

/* Whether the tail is that of others, of which this writer has nothing yet. */
static bool is_shared(const struct writer *writer) {
    const struct draft *draft = writer->draft;
    return draft->tail_rows && draft->room && !draft->is_private && !writer->is_merging &&
           !writer->is_restoring && draft->claim_from == draft->tail_rows &&
           draft->tail_rows == writer->base->draft->tail_rows &&
           draft->tail_slot == writer->base->draft->tail_slot;
}

/* Before the first row: a tail that others append to, too, is left to them. */
static FALLIBLE tail_choose(struct writer *writer, struct error *err) {
    struct table_state *state = writer->table->state;
    if (!is_shared(writer)) {
        return ERR_OK;
    }
    bool rivals = atomic_load_explicit(&state->rivals, memory_order_relaxed) > 0;
    if (rivals) {
        atomic_fetch_sub_explicit(&state->rivals, 1, memory_order_relaxed);
    } else if (atomic_load(&writer->draft->room->claimed) != writer->draft->tail_rows) {
        atomic_store_explicit(&state->rivals, RIVALS, memory_order_relaxed);
        rivals = true;
    }
    return rivals ? tail_leave(writer, err) : ERR_OK;
}

/* Room for tail_rows + `rows` rows, `now` of them claimed. */
static FALLIBLE tail_reserve(struct writer *writer, i64 rows, u32 now, struct error *err) {
    struct draft *draft = writer->draft;
    i64 most = 1LL << writer->table->tablet_shift;
    i64 cap = MAX_OF(MAX_OF(rows, 2LL * draft->tail_cap), FIRST_CAP);
    cap = MIN_OF(cap, most);
    if (rows > draft->tail_cap || !draft->room) {
        TRY(tail_copy(writer, (u32)cap, err));
    }
    u32 expected = draft->tail_rows;
    if (!atomic_compare_exchange_strong(&draft->room->claimed, &expected, expected + now)) {
        atomic_store_explicit(&writer->table->state->rivals, RIVALS, memory_order_relaxed);
        TRY(tail_copy(writer, draft->tail_cap, err));
        atomic_store(&draft->room->claimed, draft->tail_rows + now);
    }
    return ERR_OK;
}

/* Writing the source's bits would change the word that readers may see. */
static bool shared_word_changes(const u64 *words, i64 first, const struct column_source *src) {
    i64 n = MIN_OF(64 - (first & 63), src->rows);
    u64 word = words[first >> 6];
    struct column_source head = *src;
    head.rows = n;
    valid_write(&word, first & 63, &head);
    return word != words[first >> 6];
}

static FALLIBLE append_valid(struct writer *writer, struct col_draft *col,
                             const struct column_source *src, i64 null_count, struct error *err) {
    i64 first = writer->draft->tail_rows;
    if (!col->valid && null_count == 0) {
        return ERR_OK;
    }
    if (!col->valid) {
        TRY(valid_own(writer, col, err));
    }
    u64 *words = (u64 *)(void *)col->valid->data;
    struct column_source rest = *src;
    if ((first & 63) && !col->valid_private) {
        if (shared_word_changes(words, first, src)) {
            TRY(valid_own(writer, col, err));
            words = (u64 *)(void *)col->valid->data;
        } else { /* that word is right already and must not even be rewritten */
            i64 skip = MIN_OF(64 - (first & 63), src->rows);
            rest.nulls = src->nulls ? src->nulls + skip : NULL;
            rest.rows -= skip;
            first += skip;
        }
    }
    ASSERT(rest.rows == 0 || col->valid_private || (first & 63) == 0); /* no word that readers see */
    valid_write(words, first, &rest);
    return ERR_OK;
}

static i64 input_text_bytes(const struct column_source *src) {
    const str *v = src->data;
    i64 total = 0;
    for (i64 i = 0; i < src->rows; i++) {
        total += src->nulls && src->nulls[i] ? 0 : v[i].len;
    }
    return total;
}

static FALLIBLE append_strings(struct writer *writer, struct col_draft *col,
                               const struct column_source *src, struct error *err) {
    i64 used = col->bytes_used, need = used + input_text_bytes(src);
    if (!col->bytes || need > col->bytes->bytes) {
        i64 cap = MAX_OF(need, used * 2);
        TRY(regrow(writer->table->mem, &col->bytes, used, cap, err));
    }
    u32 *ends = (u32 *)(void *)col->data->data + writer->draft->tail_rows;
    for (i64 i = 0; i < src->rows; i++) {
        if (!(src->nulls && src->nulls[i])) {
            struct sv s = source_text(src, i);
            if (s.len) {
                memcpy(col->bytes->data + col->bytes_used, s.ptr, (size_t)s.len);
            }
            col->bytes_used += s.len;
        }
        ends[i] = (u32)col->bytes_used;
    }
    return ERR_OK;
}

static FALLIBLE append_codes(struct writer *writer, u32 i, const struct column_source *src,
                             struct error *err) {
    struct dict *dict = writer->table->dicts[i];
    u32 *codes = (u32 *)(void *)writer->draft->cols[i].data->data + writer->draft->tail_rows;
    for (i64 row = 0; row < src->rows; row++) {
        codes[row] = 0;
        if (!(src->nulls && src->nulls[row])) {
            struct sv s = source_text(src, row);
            i32 code = dict_add(dict, s);
            if (code < 0) {
                return memory_refused(writer->table->mem, err, s.len);
            }
            codes[row] = (u32)code;
        }
    }
    return ERR_OK;
}

static FALLIBLE append_column(struct writer *writer, u32 i, const struct column_source *src,
                              struct error *err) {
    struct col_draft *col = &writer->draft->cols[i];
    bool codes = type_is_text(src->type) && col->dict_on;
    struct facts facts;
    column_scan(src, &facts, codes ? NULL : &col->sketch, NULL);
    col->sketch_changed |= !codes;
    TRY(append_valid(writer, col, src, facts.null_count, err));
    if (codes) {
        TRY(append_codes(writer, i, src, err));
    } else if (type_is_text(src->type)) {
        TRY(append_strings(writer, col, src, err));
        col->has_str = 1;
    } else {
        u8 width = tail_width(src->type);
        column_narrow(col->data->data + (i64)writer->draft->tail_rows * width, width, src, 0);
    }
    facts_merge(&col->tail, &facts, src->type);
    facts_merge(&col->all, &facts, src->type);
    return ERR_OK;
}

/* How many of `rows` input rows the tail's plain text columns can take. */
static i64 rows_that_fit(struct writer *writer, const struct input_col *cols, i64 first, i64 rows) {
    const struct table *table = writer->table;
    i64 fits = rows;
    for (u32 i = 0; i < table->col_count; i++) {
        const struct col_draft *col = &writer->draft->cols[i];
        if (!type_is_text(table->cols[i].type) || col->dict_on) {
            continue;
        }
        struct column_source src = source_of_input(table->cols[i].type, &cols[i], first, fits);
        while (src.rows > 0 && col->bytes_used + input_text_bytes(&src) > table->state->str_limit) {
            src.rows /= 2;
        }
        fits = src.rows;
    }
    return fits;
}

/* Dictionaries that have grown too large are left: the tail is sealed as it is. */
static FALLIBLE check_dicts(struct writer *writer, struct error *err) {
    const struct table *table = writer->table;
    for (u32 i = 0; i < table->col_count; i++) {
        struct col_draft *col = &writer->draft->cols[i];
        if (writer->is_restoring && writer->draft->tail_rows) {
            return ERR_OK;
        }
        if (table->dicts[i] && col->dict_on && dict_overfull(table->dicts[i], col->all.rows)) {
            TRY(tail_seal(writer, err));
            writer_stop_dict(writer, i);
        }
    }
    return ERR_OK;
}

wf_status tail_append(struct writer *writer, const struct input_col *cols, i64 first, i64 rows,
                      i64 *out_done, struct error *err) {
    struct table *table = writer->table;
    struct draft *draft = writer->draft;
    i64 most = 1LL << table->tablet_shift;
    TRY(tail_choose(writer, err));
    TRY(check_dicts(writer, err));
    i64 n = MIN_OF(MIN_OF(rows, PIECE_ROWS), most - draft->tail_rows);
    n = rows_that_fit(writer, cols, first, n);
    if (n == 0) { /* the strings are full before the rows are */
        TRY(tail_seal(writer, err));
        n = MAX_OF(rows_that_fit(writer, cols, first, MIN_OF(rows, MIN_OF(PIECE_ROWS, most))), 1);
    }
    if (draft->tail_rows == 0) {
        draft->tail_slot = writer->next_slot++;
    }
    TRY(tail_reserve(writer, MIN_OF(draft->tail_rows + MAX_OF(n, rows), most), (u32)n, err));
    for (u32 i = 0; i < table->col_count; i++) {
        struct column_source src = source_of_input(table->cols[i].type, &cols[i], first, n);
        TRY(append_column(writer, i, &src, err));
    }
    draft->tail_rows += (u32)n;
    *out_done = n;
    return draft->tail_rows == most ? tail_seal(writer, err) : ERR_OK;
}

void tail_reset(struct writer *writer) {
    struct draft *draft = writer->draft;
    for (u32 i = 0; i < writer->table->col_count; i++) {
        struct col_draft *col = &draft->cols[i];
        buffer_release(col->data);
        buffer_release(col->valid);
        buffer_release(col->bytes);
        col->data = col->valid = col->bytes = NULL;
        col->bytes_used = 0;
        col->valid_private = 0;
        facts_init(&col->tail, writer->table->cols[i].type);
    }
    draft_unclaim(draft);
    room_release(draft->room);
    draft->room = NULL;
    draft->tail_rows = draft->tail_cap = draft->claim_from = 0;
}

wf_status tail_seal(struct writer *writer, struct error *err) {
    const struct table *table = writer->table;
    struct draft *draft = writer->draft;
    if (draft->tail_rows == 0) {
        return ERR_OK;
    }
    for (u32 i = 0; i < table->col_count; i++) {
        const struct col_draft *col = &draft->cols[i];
        struct type type = table->cols[i].type;
        u8 form = !type_is_text(type) ? FORM_PLAIN : col->dict_on ? FORM_CODES : FORM_ENDS;
        writer->sources[i] = (struct column_source){
            .type = type,
            .kind = (u8)type_kind(type),
            .form = form,
            .data = col->data->data,
            .bytes = col->bytes ? col->bytes->data : NULL,
            .valid = col->valid ? (const u64 *)(void *)col->valid->data : NULL,
            .rows = draft->tail_rows};
    }
    struct seal seal = {
        .table = writer->table, .rows = draft->tail_rows, .dict_on = writer->dict_on};
    struct tablet *tablet;
    TRY(tablet_seal(&seal, writer->sources, &tablet, err));
    TRY(writer_add(writer, tablet, draft->tail_slot, NULL, err));
    tail_reset(writer);
    return ERR_OK;
}

static void view_segment(struct tablet *tablet, u32 i, struct type type,
                         const struct col_draft *col) {
    struct segment *seg = &tablet->cols[i];
    u32 count = tablet->col_count;
    bool text = type_is_text(type);
    seg->encoding = type_is_float(type) ? ENC_FLOAT
                    : !text             ? ENC_INT
                    : col->dict_on      ? ENC_DICT
                                        : ENC_STR;
    seg->width = tail_width(type);
    seg->is_signed = seg->encoding == ENC_INT;
    tablet->buffers[i] = buffer_retain(col->data);
    seg->data = col->data->data;
    if (col->valid && col->tail.null_count) {
        tablet->buffers[count + i] = buffer_retain(col->valid);
        seg->valid = (const u64 *)(const void *)col->valid->data;
    }
    if (col->bytes) {
        tablet->buffers[2 * count + i] = buffer_retain(col->bytes);
        seg->bytes = col->bytes->data;
        seg->bytes_len = col->bytes_used;
    }
    seg->range = facts_range(&col->tail);
    seg->null_count = col->tail.null_count;
    seg->sorted = col->tail.sorted;
    seg->strict = col->tail.strict;
    tablet->bytes += (i64)tablet->rows * seg->width + seg->bytes_len;
    ASSERT(segment_is_sound(seg, type));
}

wf_status tail_view(struct writer *writer, struct tablet **out, struct error *err) {
    const struct table *table = writer->table;
    *out = NULL;
    if (writer->draft->tail_rows == 0) {
        return ERR_OK;
    }
    struct tablet *tablet = tablet_new(table->mem, table->col_count, 3 * table->col_count, 0);
    if (!tablet) {
        return memory_refused(table->mem, err, (i64)sizeof *tablet);
    }
    tablet->rows = writer->draft->tail_rows;
    tablet->tail = 1;
    for (u32 i = 0; i < table->col_count; i++) {
        view_segment(tablet, i, table->cols[i].type, &writer->draft->cols[i]);
    }
    *out = tablet;
    return ERR_OK;
}
