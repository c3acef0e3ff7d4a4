/* table.c: a table: opening, snapshots, appending, publishing.
 *
 * A writer copies the table's draft (counters, statistics, references to the tail's buffers), works
 * on the copy and swaps it in together with the new version. Until then nothing of the table has
 * changed but bytes behind the published rows of the tail, so giving up costs nothing. Full tablets
 * of a large append are sealed straight from the input. */
#include "store/store_int.h"

#include <stdlib.h>

static i64 draft_bytes(const struct table *table) {
    return (i64)sizeof(struct draft) + (i64)table->col_count * (i64)sizeof(struct col_draft);
}

void draft_free(struct table *table, struct draft *draft) {
    for (u32 i = 0; draft && i < table->col_count; i++) {
        buffer_release(draft->cols[i].data);
        buffer_release(draft->cols[i].valid);
        buffer_release(draft->cols[i].bytes);
    }
    mem_free(table->mem, draft, draft_bytes(table));
}

static struct draft *draft_new(const struct table *table) {
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

static struct draft *draft_copy(const struct table *table, const struct draft *from) {
    struct draft *draft = mem_alloc(table->mem, draft_bytes(table));
    if (!draft) {
        return NULL;
    }
    memcpy(draft, from, (size_t)draft_bytes(table));
    for (u32 i = 0; i < table->col_count; i++) {
        struct col_draft *col = &draft->cols[i];
        col->data = col->data ? buffer_retain(col->data) : NULL;
        col->valid = col->valid ? buffer_retain(col->valid) : NULL;
        col->bytes = col->bytes ? buffer_retain(col->bytes) : NULL;
        col->valid_private = 0;
    }
    return draft;
}

/* The table's own block: struct, state, columns, dictionary pointers, names. */
static i64 table_bytes(u32 col_count, i64 name_bytes, i64 *out_state, i64 *out_cols, i64 *out_dicts,
                       i64 *out_names) {
    *out_state = ALIGN_UP((i64)sizeof(struct table), 64);
    *out_cols = *out_state + ALIGN_UP((i64)sizeof(struct table_state), 64);
    *out_dicts = *out_cols + (i64)col_count * (i64)sizeof(struct column_def);
    *out_names = *out_dicts + (i64)col_count * (i64)sizeof(struct dict *);
    return *out_names + name_bytes;
}

static char *copy_name(char **next, const char *name) {
    size_t bytes = strlen(name) + 1;
    char *copy = memcpy(*next, name, bytes);
    *next += bytes;
    return copy;
}

static struct table *table_alloc(struct memory *mem, const char *name, u32 col_count,
                                 const struct column_def *cols) {
    i64 name_bytes = (i64)strlen(name) + 1, state_at, cols_at, dicts_at, names_at;
    for (u32 i = 0; i < col_count; i++) {
        name_bytes += (i64)strlen(cols[i].name) + 1;
    }
    i64 bytes = table_bytes(col_count, name_bytes, &state_at, &cols_at, &dicts_at, &names_at);
    u8 *block = mem_alloc(mem, bytes);
    if (!block) {
        return NULL;
    }
    memset(block, 0, (size_t)bytes);
    struct table *table = (struct table *)(void *)block;
    char *names = (char *)block + names_at;
    table->mem = mem;
    table->col_count = col_count;
    table->state = (struct table_state *)(void *)(block + state_at);
    table->cols = (struct column_def *)(void *)(block + cols_at);
    table->dicts = (struct dict **)(void *)(block + dicts_at);
    table->name = copy_name(&names, name);
    for (u32 i = 0; i < col_count; i++) {
        table->cols[i] = cols[i];
        table->cols[i].name = copy_name(&names, cols[i].name);
    }
    table->state->name_bytes = name_bytes;
    table->state->str_limit = STR_LIMIT;
    atomic_init(&table->refs, 1);
    mutex_init(&table->state->write_lock);
    mutex_init(&table->state->lock);
    return table;
}

struct table *table_open(struct memory *mem, u64 id, const char *name, u32 col_count,
                         const struct column_def *cols, u32 tablet_shift, bool plain) {
    CHECK(col_count > 0 && tablet_shift <= 20);
    struct table *table = table_alloc(mem, name, col_count, cols);
    if (!table) {
        return NULL;
    }
    table->id = id;
    table->tablet_shift = tablet_shift;
    table->plain = plain;
    bool ok = true;
    for (u32 i = 0; ok && i < col_count; i++) {
        if (type_is_text(cols[i].type)) {
            table->dicts[i] = dict_open(mem);
            ok = table->dicts[i] != NULL;
        }
    }
    table->state->draft = ok ? draft_new(table) : NULL;
    if (table->state->draft) {
        struct writer empty = {.table = table, .draft = table->state->draft};
        table->state->current = version_new(&empty, NULL);
    }
    if (!table->state->current) {
        table_close(table);
        return NULL;
    }
    return table;
}

struct table *table_retain(struct table *table) {
    atomic_fetch_add_explicit(&table->refs, 1, memory_order_relaxed);
    return table;
}

void table_close(struct table *table) {
    if (!table || atomic_fetch_sub_explicit(&table->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct table_state *state = table->state;
    version_release(state->current);
    draft_free(table, state->draft);
    for (u32 i = 0; i < table->col_count; i++) {
        dict_release(table->dicts[i]);
    }
    mutex_fini(&state->lock);
    mutex_fini(&state->write_lock);
    i64 a, b, c, d;
    mem_free(table->mem, table, table_bytes(table->col_count, state->name_bytes, &a, &b, &c, &d));
}

struct table_version *table_snapshot(struct table *table) {
    mutex_lock(&table->state->lock);
    struct table_version *version = version_retain(table->state->current);
    mutex_unlock(&table->state->lock);
    return version;
}

static i64 writer_bytes(const struct table *table) {
    return (i64)table->col_count * (i64)(sizeof(struct column_source) + sizeof(_Atomic i32));
}

wf_status writer_begin(struct writer *writer, struct table *table, struct error *err) {
    *writer = (struct writer){.table = table, .sealed.mem = table->mem};
    mutex_lock(&table->state->write_lock);
    writer->draft = draft_copy(table, table->state->draft);
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

void writer_end(struct writer *writer) {
    struct table *table = writer->table;
    tablet_list_fini(&writer->sealed);
    if (writer->draft) {
        draft_free(table, writer->draft);
    }
    mem_free(table->mem, writer->sources, writer_bytes(table));
    mutex_unlock(&table->state->write_lock);
}

wf_status writer_add(struct writer *writer, struct tablet *tablet, struct error *err) {
    if (!tablet_list_push(&writer->sealed, tablet)) {
        tablet_release(tablet);
        return memory_refused(writer->table->mem, err, writer->sealed.cap * 16);
    }
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

wf_status writer_publish(struct writer *writer, struct error *err) {
    struct table *table = writer->table;
    struct table_state *state = table->state;
    struct tablet *tail;
    TRY(tail_view(writer, &tail, err));
    struct table_version *version = version_new(writer, tail);
    if (!version) {
        tablet_release(tail);
        return memory_refused(table->mem, err, writer->draft->sealed_count * 24);
    }
    writer->draft->sealed_count += writer->sealed.count;
    struct draft *old_draft = state->draft;
    state->draft = writer->draft;
    writer->draft = old_draft;
    mutex_lock(&state->lock);
    struct table_version *old = state->current;
    state->current = version;
    mutex_unlock(&state->lock);
    version_release(old);
    return ERR_OK;
}

wf_status check_not_null(const struct table *table, i64 rows, const struct input_col *cols,
                         struct error *err) {
    for (u32 i = 0; i < table->col_count; i++) {
        if (table->cols[i].not_null && cols[i].nulls && memchr(cols[i].nulls, 1, (size_t)rows)) {
            FAIL(err, NOT_NULL, "null value in column \"%s\" of table \"%s\", which is NOT NULL",
                 table->cols[i].name, table->name);
        }
    }
    return ERR_OK;
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
    struct seal seal = {
        .table = table, .column_rows = draft->cols[0].all.rows + n, .dict_on = writer->dict_on};
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
        struct type type = table->cols[i].type;
        struct col_draft *col = &draft->cols[i];
        if (!atomic_load(&writer->dict_on[i])) {
            writer_stop_dict(writer, i);
        }
        struct facts facts = segment_facts(&tablet->cols[i], type, n);
        facts_merge(&col->all, &facts, type);
        sketch_merge(&col->sketch, &seal.sketches[i]);
        col->sketch_changed = 1;
        col->has_str |= tablet->cols[i].encoding == ENC_STR;
    }
    mem_free(table->mem, seal.sketches, sketch_bytes);
    TRY(status);
    *out_done = n;
    return writer_add(writer, tablet, err);
}

static FALLIBLE append_all(struct writer *writer, i64 rows, const struct input_col *cols,
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
    return writer_publish(writer, err);
}

wf_status table_append(struct table *table, i64 rows, const struct input_col *cols,
                       struct error *err) {
    if (rows == 0) {
        return ERR_OK;
    }
    TRY(check_not_null(table, rows, cols, err));
    struct writer writer;
    wf_status status = writer_begin(&writer, table, err);
    if (status == ERR_OK) {
        status = append_all(&writer, rows, cols, err);
    }
    writer_end(&writer);
    return status;
}
