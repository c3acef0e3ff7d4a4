/* append.c: rows on their way into a table: INSERT, COPY and wf_append.
 *
 * All end in append_rows: a small number of rows goes to the table's tail, many become sealed
 * tablets made by all workers. Either way the outcome is a version of the transaction's own, so all
 * rows appear or none. INSERT first lays its answer out as one array a column, which costs a copy
 * only where the answer has several chunks or holds codes. An answer that is still being computed
 * becomes tablets slice by slice instead (append_answer), in the memory of a few of them. */
#include "session/session_int.h"

enum { PARALLEL_ROWS = 1 << 18 }; /* fewer rows are not worth waking the workers */

struct tablet_job {
    struct load *load;
    i64 first_sequence;
    const struct table *table;
    i64 row_count;
    i64 tablet_rows;
    const struct input_col *cols;
    struct mutex lock;
    struct watch *watch;
    struct error err; /* the first one met */
};

static void load_one_tablet(void *arg, i64 i, i32 worker) {
    struct tablet_job *job = arg;
    UNUSED(worker);
    i64 first = i * job->tablet_rows;
    i64 rows = MIN_OF(job->tablet_rows, job->row_count - first);
    struct input_col cols[1600];
    struct error err;
    error_reset(&err);
    for (u32 c = 0; c < job->table->col_count; c++) {
        i64 width = kind_bytes[type_kind(job->table->cols[c].type)];
        cols[c] =
            (struct input_col){.data = (const u8 *)job->cols[c].data + first * width,
                               .nulls = job->cols[c].nulls ? job->cols[c].nulls + first : NULL};
    }
    wf_status status = load_tablet(job->load, job->first_sequence + i, rows, cols, &err);
    watch_rows(job->watch, rows);
    if (status) {
        mutex_lock(&job->lock);
        if (!job->err.code) {
            job->err = err;
        }
        mutex_unlock(&job->lock);
    }
}

/* Seals rows into tablets of so many, by all workers; *io_sequence numbers them. */
static FALLIBLE load_rows(struct wf_connection *conn, struct load *load, const struct table *table,
                          i64 row_count, i64 tablet_rows, const struct input_col *cols,
                          i64 *io_sequence) {
    struct tablet_job job = {.load = load,
                             .watch = &conn->watch,
                             .first_sequence = *io_sequence,
                             .table = table,
                             .row_count = row_count,
                             .tablet_rows = tablet_rows,
                             .cols = cols};
    i64 count = (row_count + job.tablet_rows - 1) / job.tablet_rows;
    error_reset(&job.err);
    mutex_init(&job.lock);
    pool_run(conn->db->pool, count, load_one_tablet, &job);
    mutex_fini(&job.lock);
    *io_sequence += count;
    if (job.err.code) {
        conn->err = job.err;
    }
    return job.err.code;
}

static FALLIBLE append_parallel(struct wf_connection *conn, struct table *table,
                                struct table_version *base, i64 row_count, i64 tablet_rows,
                                const struct input_col *cols, struct table_version **out) {
    struct load *load = NULL;
    i64 sequence = 0;
    TRY(load_open(&load, table, &conn->err));
    wf_status status = load_rows(conn, load, table, row_count, tablet_rows, cols, &sequence);
    if (status) {
        load_abort(load);
        return status;
    }
    return load_finish(load, base, out, &conn->err);
}

static i64 bytes_of_rows(const struct table *table, i64 row_count, const struct input_col *cols) {
    i64 bytes = 0;
    for (u32 c = 0; c < table->col_count; c++) {
        enum kind kind = type_kind(table->cols[c].type);
        bytes += row_count * (kind_bytes[kind] + 1);
        for (i64 i = 0; i < row_count && kind == KIND_STR; i++) {
            bool null = cols[c].nulls && cols[c].nulls[i];
            bytes += null ? 0 : ((const str *)cols[c].data)[i].len;
        }
    }
    return bytes;
}

FALLIBLE append_rows(struct wf_connection *conn, struct table *table, struct table_version *base,
                     i64 row_count, const struct input_col *cols, struct table_version **out) {
    enum { FEW_ROWS = 1 << 14 };
    i64 most = 1LL << table->tablet_shift, tablet_rows = most;
    if (row_count >= FEW_ROWS && table->col_count <= 1600) {
        i64 workers = pool_worker_count(conn->db->pool);
        i64 row_bytes = bytes_of_rows(table, row_count, cols) / row_count + 1;
        (void)load_plan(table, &conn->db->mem, workers, row_bytes, &tablet_rows);
    }
    /* The tail takes as much memory as its rows do: where that is short, they become smaller tablets. */
    bool tablets = tablet_rows < most ? row_count >= tablet_rows
                                      : row_count >= PARALLEL_ROWS && row_count / most >= 2;
    if (tablets && table->col_count <= 1600) {
        return append_parallel(conn, table, base, row_count, tablet_rows, cols, out);
    }
    return version_append_unchecked(table, base, row_count, cols, out, &conn->err);
}

/* One column of the answer on its way into an array. */
struct copying {
    const struct rowset_col *meta;
    enum kind kind;
    u8 *to;
    b8 *nulls;
    const b8 *keep; /* by answer row; NULL = all */
    i64 at;
};

/* Copies rows [from, from + count) of a chunk's column, the first of them answer row `row`. */
static void copy_values(struct copying *c, const struct column *col, i64 from, i64 count, i64 row) {
    i64 width = kind_bytes[c->kind];
    if (!c->keep && col->kind == c->kind) {
        memcpy(c->to + c->at * width, (const u8 *)col->data + from * width,
               (size_t)(count * width));
        if (c->nulls && col->nulls) {
            memcpy(c->nulls + c->at, col->nulls + from, (size_t)count);
        } else if (c->nulls) {
            memset(c->nulls + c->at, 0, (size_t)count);
        }
        c->at += count;
        return;
    }
    const i32 *codes = col->data;
    for (i64 i = 0; i < count; i++) {
        if (c->keep && !c->keep[row + i]) {
            continue;
        }
        bool is_null = col->nulls && col->nulls[from + i];
        if (col->kind == c->kind) {
            memcpy(c->to + c->at * width, (const u8 *)col->data + (from + i) * width,
                   (size_t)width);
        } else {
            str view = str_from(is_null ? SV("") : dict_get(c->meta->dict, codes[from + i]));
            memcpy(c->to + c->at * width, &view, sizeof view);
        }
        if (c->nulls) {
            c->nulls[c->at] = is_null;
        }
        c->at++;
    }
}

static FALLIBLE gather_column(struct rowset *rows, u32 source, u32 c, enum kind kind,
                              const b8 *keep, struct gathered *out, struct error *err) {
    const struct answer *answer = &rows->answer;
    struct copying copying = {.meta = &rows->cols[source], .kind = kind, .keep = keep};
    bool has_nulls = false;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct column *col = &answer->slices[s].chunk->cols[source];
        has_nulls = has_nulls || col->nulls != NULL;
        ASSERT(col->kind == kind || (kind == KIND_STR && copying.meta->dict));
    }
    i64 bytes = MAX_OF(out->rows, 1) * kind_bytes[kind];
    struct buffer *data = out->buffers[2 * c] = buffer_new(&rows->mem, bytes);
    if (!data) {
        return memory_refused(&rows->mem, err, bytes);
    }
    out->cols[c].data = copying.to = data->data;
    if (has_nulls) {
        struct buffer *buf = out->buffers[2 * c + 1] = buffer_new(&rows->mem, MAX_OF(out->rows, 1));
        if (!buf) {
            return memory_refused(&rows->mem, err, out->rows);
        }
        out->cols[c].nulls = copying.nulls = buf->data;
    }
    i64 row = 0;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        if (slice->rows > 0) {
            copy_values(&copying, &slice->chunk->cols[source], slice->first, slice->rows, row);
            row += slice->rows;
        }
    }
    return ERR_OK;
}

FALLIBLE gather(struct rowset *rows, const struct table *table, u32 first, const b8 *keep, i64 kept,
                struct gathered *out, struct error *err) {
    *out = (struct gathered){NEW_ARRAY(&rows->arena, struct buffer *, 2 * table->col_count),
                             NEW_ARRAY(&rows->arena, struct input_col, table->col_count), kept};
    for (u32 c = 0; c < table->col_count; c++) {
        enum kind kind = type_kind(table->cols[c].type);
        const struct slice *only = rows->answer.slices;
        const struct column *col = rows->answer.slice_count ? &only->chunk->cols[first + c] : NULL;
        if (!keep && rows->answer.slice_count == 1 && col->kind == kind) {
            out->cols[c].data = (const u8 *)col->data + only->first * kind_bytes[kind];
            out->cols[c].nulls = col->nulls ? col->nulls + only->first : NULL;
        } else {
            TRY(gather_column(rows, first + c, c, kind, keep, out, err));
        }
    }
    return arena_check(&rows->arena, err);
}

void gather_free(const struct table *table, struct gathered *all) {
    for (u32 i = 0; all->buffers && i < 2 * table->col_count; i++) {
        buffer_release(all->buffers[i]);
    }
}

/* --- an answer that is still being computed -------------------------------------------------- */

struct text_block { /* copies of texts: an answer's own are gone with its next rows */
    struct text_block *next;
    i64 bytes, used;
    char data[];
};

/* Rows on their way from slices of an answer into tablets: whole tablets are sealed as soon as
 * there is one for each worker, so memory does not grow with the answer. */
struct flow {
    struct wf_connection *conn;
    struct rowset *rows;
    struct table *table;
    struct load *load; /* opened when the first tablets are full */
    i64 sequence;
    u8 *block;     /* columns, then their NULL flags, of `cap` rows each */
    i64 *width_at; /* by column: bytes of one row of all columns before it */
    i64 row_bytes; /* of all columns, without flags */
    b8 *has_nulls;
    i64 fill, cap, most;
    i64 tablet_rows;
    struct text_block *texts;
    i64 text_bytes, text_most; /* of texts */
    i64 count; /* rows seen */
    u32 first;      /* the answer's column that is the table's first */
    const b8 *keep; /* by answer row; NULL = all */
    b8 texts_stay;  /* the answer is all there, and with it its texts */
};

static u8 *flow_data(const struct flow *f, u8 *block, i64 cap, u32 c) {
    return block + cap * f->width_at[c];
}

static b8 *flow_nulls(const struct flow *f, u8 *block, i64 cap, u32 c) {
    return block + cap * (f->row_bytes + c);
}

static i64 flow_bytes(const struct flow *f, i64 cap) {
    return cap * (f->row_bytes + f->table->col_count);
}

static void flow_free_texts(struct flow *f) {
    while (f->texts) {
        struct text_block *next = f->texts->next;
        mem_free(&f->rows->mem, f->texts, f->texts->bytes);
        f->texts = next;
    }
    f->text_bytes = 0;
}

static FALLIBLE flow_init(struct flow *f) {
    enum { FIRST_ROWS = 1 << 14, MOST_WORKERS = 8, TEXT_SHARE = 8 };
    u32 count = f->table->col_count;
    f->width_at = NEW_ARRAY(&f->rows->arena, i64, count + 1);
    f->has_nulls = NEW_ARRAY(&f->rows->arena, b8, count + 1);
    for (u32 c = 0; c < count; c++) {
        f->width_at[c] = f->row_bytes; /* 16 bytes first: cap is a multiple of 16 */
        f->row_bytes += kind_bytes[type_kind(f->table->cols[c].type)];
    }
    i64 workers = MIN_OF(pool_worker_count(f->conn->db->pool), MOST_WORKERS);
    struct memory *mem = &f->rows->mem;
    bool all = load_plan(f->table, mem, workers, f->row_bytes + count, &f->tablet_rows);
    f->most = MAX_OF(f->tablet_rows * (all ? workers : 1), 1 << 10);
    f->cap = MIN_OF(f->most, FIRST_ROWS);
    f->text_most = MAX_OF(memory_left(mem) / TEXT_SHARE, 1 << 20);
    TRY(arena_check(&f->rows->arena, &f->conn->err));
    f->block = mem_alloc(&f->rows->mem, flow_bytes(f, f->cap));
    return f->block ? ERR_OK : memory_refused(&f->rows->mem, &f->conn->err, flow_bytes(f, f->cap));
}

static void flow_fini(struct flow *f) {
    mem_free(&f->rows->mem, f->block, f->block ? flow_bytes(f, f->cap) : 0);
    flow_free_texts(f);
    if (f->load) {
        load_abort(f->load);
    }
}

/* Twice as much room; false when memory is refused, and all is as it was. */
static bool flow_grow(struct flow *f) {
    i64 cap = MIN_OF(f->cap * 2, f->most);
    u8 *block = cap > f->cap ? mem_alloc(&f->rows->mem, flow_bytes(f, cap)) : NULL;
    for (u32 c = 0; block && c < f->table->col_count; c++) {
        i64 width = kind_bytes[type_kind(f->table->cols[c].type)];
        memcpy(flow_data(f, block, cap, c), flow_data(f, f->block, f->cap, c),
               (size_t)(f->fill * width));
        memcpy(flow_nulls(f, block, cap, c), flow_nulls(f, f->block, f->cap, c), (size_t)f->fill);
    }
    if (block) {
        mem_free(&f->rows->mem, f->block, flow_bytes(f, f->cap));
        f->block = block;
        f->cap = cap;
    }
    return block != NULL;
}

static void flow_cols(const struct flow *f, struct input_col *out) {
    for (u32 c = 0; c < f->table->col_count; c++) {
        b8 *nulls = f->has_nulls[c] ? flow_nulls(f, f->block, f->cap, c) : NULL;
        out[c] = (struct input_col){.data = flow_data(f, f->block, f->cap, c), .nulls = nulls};
    }
}

/* Makes tablets of what is there. */
static FALLIBLE flow_seal(struct flow *f, struct input_col *cols) {
    flow_cols(f, cols);
    if (!f->load) {
        TRY(load_open(&f->load, f->table, &f->conn->err));
    }
    TRY(load_rows(f->conn, f->load, f->table, f->fill, f->tablet_rows, cols, &f->sequence));
    f->fill = 0;
    memset(f->has_nulls, 0, f->table->col_count);
    flow_free_texts(f);
    return ERR_OK;
}

static FALLIBLE keep_text(struct flow *f, str *io) {
    enum { BLOCK_BYTES = 1 << 20 };
    i64 len = io->len, head = (i64)sizeof(struct text_block);
    struct text_block *block = f->texts;
    if (!block || block->bytes - head - block->used < len) {
        i64 bytes = MAX_OF(BLOCK_BYTES, len + head);
        block = mem_alloc(&f->rows->mem, bytes);
        if (!block) {
            return memory_refused(&f->rows->mem, &f->conn->err, bytes);
        }
        *block = (struct text_block){.next = f->texts, .bytes = bytes};
        f->texts = block;
        f->text_bytes += bytes;
    }
    memcpy(block->data + block->used, sv_of(*io).ptr, (size_t)len);
    *io = str_from((struct sv){block->data + block->used, len});
    block->used += len;
    return ERR_OK;
}

/* Rows [from, from + count) of a slice's column, the first of them answer row `row`, to the places from
 * `fill` on. */
static FALLIBLE flow_column(struct flow *f, u32 c, const struct column *col, i64 from, i64 count,
                            i64 row) {
    struct copying copying = {.meta = &f->rows->cols[f->first + c],
                              .keep = f->keep,
                              .kind = type_kind(f->table->cols[c].type),
                              .to = flow_data(f, f->block, f->cap, c),
                              .nulls = flow_nulls(f, f->block, f->cap, c),
                              .at = f->fill};
    ASSERT(col->kind == copying.kind || (copying.kind == KIND_STR && copying.meta->dict));
    copy_values(&copying, col, from, count, row);
    f->has_nulls[c] = f->has_nulls[c] || col->nulls != NULL;
    bool own_text = col->kind == KIND_STR && !f->texts_stay;
    for (i64 i = f->fill; own_text && i < copying.at; i++) {
        if (!copying.nulls[i]) {
            TRY(keep_text(f, (str *)(void *)copying.to + i));
        }
    }
    return ERR_OK;
}

static i64 flow_kept(const struct flow *f, i64 row, i64 count) {
    i64 kept = f->keep ? 0 : count;
    for (i64 i = 0; f->keep && i < count; i++) {
        kept += f->keep[row + i];
    }
    return kept;
}

/* Takes the rows of the answer that are there now. */
static FALLIBLE flow_take(struct flow *f, struct input_col *cols) {
    enum { PART_ROWS = 1 << 13 }; /* how much text they have is known afterwards */
    const struct answer *answer = &f->rows->answer;
    i64 row = 0;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        for (i64 done = 0, part; done < slice->rows; done += part, row += part) {
            bool full = f->fill > 0 && f->text_bytes > f->text_most;
            if (full || (f->fill == f->cap && !flow_grow(f))) {
                TRY(flow_seal(f, cols));
            }
            part = MIN_OF(MIN_OF(f->cap - f->fill, slice->rows - done), PART_ROWS);
            for (u32 c = 0; c < f->table->col_count; c++) {
                const struct column *col = &slice->chunk->cols[f->first + c];
                TRY(flow_column(f, c, col, slice->first + done, part, row));
            }
            i64 kept = flow_kept(f, row, part);
            f->fill += kept;
            f->count += kept;
        }
    }
    return connection_check(f->conn);
}

/* A version with what has been taken. */
static FALLIBLE flow_end(struct flow *f, struct input_col *cols, struct table_version *base,
                         struct table_version **out) {
    if (!f->load) {
        flow_cols(f, cols);
        return f->count ? append_rows(f->conn, f->table, base, f->fill, cols, out) : ERR_OK;
    }
    TRY(f->fill ? flow_seal(f, cols) : ERR_OK);
    struct load *load = f->load;
    f->load = NULL;
    return load_finish(load, base, out, &f->conn->err);
}

static FALLIBLE flow_run(struct flow *f, struct table_version *base, struct table_version **out) {
    struct input_col *cols = NEW_ARRAY(&f->rows->arena, struct input_col, f->table->col_count + 1);
    TRY(arena_check(&f->rows->arena, &f->conn->err));
    TRY(flow_take(f, cols));
    while (f->rows->more) {
        TRY(rowset_step(f->conn, f->rows));
        TRY(flow_take(f, cols));
    }
    return flow_end(f, cols, base, out);
}

static FALLIBLE flow_all(struct flow *f, struct table_version *base, struct table_version **out) {
    f->texts_stay = !f->rows->more;
    wf_status status = flow_init(f);
    status = status ? status : flow_run(f, base, out);
    flow_fini(f);
    return status;
}

FALLIBLE append_answer(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       struct table_version *base, i64 *out_count, struct table_version **out) {
    struct flow f = {.conn = conn, .rows = rows, .table = table};
    wf_status status = flow_all(&f, base, out);
    *out_count = f.count;
    rows->answer_first = 0; /* they are the table's, not the reader's */
    return status;
}

FALLIBLE append_chosen(struct wf_connection *conn, struct rowset *rows, struct table *table,
                       struct table_version *base, const struct chosen *chosen,
                       struct table_version **out) {
    if (chosen->count >= PARALLEL_ROWS) {
        struct flow f = {.conn = conn,
                         .rows = rows,
                         .table = table,
                         .first = chosen->first,
                         .keep = chosen->keep};
        return flow_all(&f, base, out);
    }
    struct gathered all = {0};
    wf_status status =
        gather(rows, table, chosen->first, chosen->keep, chosen->count, &all, &conn->err);
    status = status ? status : append_rows(conn, table, base, chosen->count, all.cols, out);
    gather_free(table, &all);
    return status;
}

/* Marks the rows of the answer that are the first to name a row of the table, and notes which. */
static FALLIBLE mark_first(struct flow *f, u64 *seen, struct buffer **io_keep,
                           struct replaced *io) {
    const struct answer *answer = &f->rows->answer;
    if (!*io_keep || (*io_keep)->bytes < answer->rows) {
        buffer_release(*io_keep);
        *io_keep = buffer_new(&f->rows->mem, MAX_OF(answer->rows, 1 << 16));
        if (!*io_keep) {
            return memory_refused(&f->rows->mem, &f->conn->err, answer->rows);
        }
    }
    b8 *keep = (*io_keep)->data;
    i64 at = 0;
    for (i64 s = 0; s < answer->slice_count; s++) {
        const struct slice *slice = &answer->slices[s];
        const i64 *ids = (const i64 *)slice->chunk->cols[0].data + slice->first;
        for (i64 i = 0; i < slice->rows; i++, at++) {
            u64 bit = 1ULL << (ids[i] & 63);
            keep[at] = !(seen[ids[i] >> 6] & bit);
            seen[ids[i] >> 6] |= bit;
            io->ids[io->count] = ids[i];
            io->count += keep[at];
        }
    }
    f->keep = keep;
    return ERR_OK;
}

static FALLIBLE replace_rows(struct flow *f, u64 *seen, struct buffer **io_keep,
                             struct table_version *base, struct replaced *io) {
    struct input_col *cols = NEW_ARRAY(&f->rows->arena, struct input_col, f->table->col_count + 1);
    TRY(arena_check(&f->rows->arena, &f->conn->err));
    TRY(mark_first(f, seen, io_keep, io));
    TRY(flow_take(f, cols));
    while (f->rows->more) {
        TRY(rowset_step(f->conn, f->rows));
        TRY(mark_first(f, seen, io_keep, io));
        TRY(flow_take(f, cols));
    }
    struct deletion gone = {.count = io->count, .rows = io->ids};
    TRY(version_delete(f->table, base, &gone, &io->less, &f->conn->err));
    return flow_end(f, cols, io->less, &io->mine);
}

FALLIBLE append_replacing(struct wf_connection *conn, struct rowset *rows, struct table *table,
                          struct table_version *base, struct replaced *out) {
    i64 seen_bytes = (base->rows / 64 + 1) * 8, id_bytes = (base->rows + 1) * (i64)sizeof(i64);
    struct buffer *seen = buffer_new(&rows->mem, seen_bytes), *keep = NULL;
    *out = (struct replaced){.buffer = buffer_new(&rows->mem, id_bytes)};
    wf_status status = ERR_OK;
    if (!seen || !out->buffer) {
        status = memory_refused(&rows->mem, &conn->err, id_bytes);
    } else {
        struct flow f = {.conn = conn, .rows = rows, .table = table, .first = 1};
        memset(seen->data, 0, (size_t)seen_bytes);
        out->ids = (i64 *)(void *)out->buffer->data;
        status = flow_init(&f);
        status = status ? status
                        : replace_rows(&f, (u64 *)(void *)seen->data, &keep, base, out);
        flow_fini(&f);
    }
    rows->answer_first = 0;
    buffer_release(keep);
    buffer_release(seen);
    return status;
}

void replaced_fini(struct replaced *replaced) {
    version_release(replaced->less);
    buffer_release(replaced->buffer);
}
