/* csv_stream.c: a delimited file as a provider of rows: looked at when it is bound, read part by
 * part when it is scanned.
 *
 * A part is the records that begin in a piece of the file, about a megabyte. Whether a piece begins
 * inside quotes depends on all before it, but only through one state: every worker reads and counts
 * its piece for each state it may begin in, waits until those before it have said in which one it
 * does (which they know after counting, not after parsing), says the same to the next, and then
 * parses alone. The last record of a piece may reach into later ones; its worker reads on as far as
 * that goes. An archive is unpacked in order, under the lock, and cut behind its last whole record.
 *
 * Nothing is mapped: pages of a mapping stay with the process, while a piece's memory is used
 * again, so that a file of any size takes some megabytes a worker. Columns that nobody wants are
 * passed over, and their values are not looked at; where lines with errors are left out all are
 * converted, since which lines those are must not depend on the columns asked for. See decision
 * 0023. */
#include "base/stop.h"
#include "io/csv_int.h"
#include "io/pack.h"
#include "store/scan.h"

enum {
    PART_BYTES = 1 << 20,
    PART_LEAST = 1 << 12, /* whatever the budget */
    BUDGET_SHARE = 32,    /* pieces and columns of all workers are some eighth of the budget */
    MORE_BYTES = 1 << 16, /* at first, behind a piece that ends in a record */
    PACKED_RATIO = 4,     /* as an estimate */
};
#define PACKED_ROWS_MOST ((i64)1 << 40) /* what a row number can be */

struct csv_file {
    struct scan_provider provider; /* first: it is all that others know */
    struct memory *mem;
    struct arena arena;
    struct table *table; /* the table it is the provider of */
    const char *path;
    struct csv_sniffed found;
    struct input kept; /* what cannot be read again; of other files, what to know it by */
    _Atomic i64 ignored;
};

struct piece { /* a worker's */
    i64 number;
    i64 first; /* its place in the file */
    const char *data;
    i64 len;
    char *buf; /* where data are unless the file is in memory */
    i64 cap;
    u8 *block; /* columns */
    i64 block_bytes;
    struct csv_count count;
    u8 state;         /* that it begins in */
    b8 at_edge;       /* ... and with a record */
    i64 lines, rows;  /* of the file before it */
    i64 begin, end;   /* its records */
    i64 record_count; /* lines that are no rows included */
    struct csv_tablet tablet;
    struct csv_job job;
    struct load_progress progress;
    struct input_col *cols;
};

struct scan {
    struct csv_file *file;
    struct memory *mem;
    struct csv_job plan; /* fields and marks; every piece's job begins as a copy */
    struct file_in in;
    b8 is_open;
    i64 bytes; /* of the file; -1 = nobody knows */
    i64 start; /* where records begin */
    i64 part_bytes;
    struct unpack *unpack; /* NULL: the file is no archive */
    struct file_bytes pending;
    b8 packed_end;
    struct mutex lock; /* all below */
    struct cond turned;
    i64 taken, turn; /* pieces taken; the one whose state is known */
    u8 state;
    b8 at_edge;
    i64 lines, rows;
    b8 broken;
    struct error err;
    _Atomic i64 ignored;
    i32 worker_count;
    struct piece *pieces;
};

/* --- bytes ------------------------------------------------------------------------------------ */

static FALLIBLE piece_reserve(struct scan *s, struct piece *p, i64 bytes, struct error *err) {
    if (bytes <= p->cap) {
        return ERR_OK;
    }
    i64 cap = MAX_OF(bytes, s->part_bytes + MORE_BYTES);
    char *buf = mem_alloc(s->mem, cap);
    if (!buf) {
        return memory_refused(s->mem, err, cap);
    }
    if (p->len) {
        memcpy(buf, p->data, (size_t)p->len);
    }
    mem_free(s->mem, p->buf, p->cap);
    p->buf = buf;
    p->data = buf;
    p->cap = cap;
    return ERR_OK;
}

/* The piece gets so many more of the file's bytes. */
static FALLIBLE piece_extend(struct scan *s, struct piece *p, i64 more, struct error *err) {
    const struct input *kept = &s->file->kept;
    if (!s->is_open) {
        p->data = kept->data + p->first;
        p->len += more;
        return ERR_OK;
    }
    TRY(piece_reserve(s, p, p->len + more, err));
    p->data = p->buf;
    TRY(file_in_read_at(&s->in, p->buf + p->len, more, p->first + p->len, err));
    p->len += more;
    return ERR_OK;
}

/* Unpacks until so many bytes wait, or all do. */
static FALLIBLE fill_pending(struct scan *s, i64 bytes, struct error *err) {
    struct load_progress progress = {.stop = stop_current()};
    bool end = false;
    TRY(unpack_fill(s->unpack, &s->pending, bytes, &progress, &end, err));
    s->packed_end = end;
    return ERR_OK;
}

static void drop_pending(struct scan *s, i64 bytes) {
    s->pending.len -= bytes;
    memmove(s->pending.data, s->pending.data + bytes, (size_t)s->pending.len);
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* Waits for the state that the piece begins in, and says what the next begins in. */
static FALLIBLE take_turn(struct scan *s, struct piece *p, struct error *err) {
    mutex_lock(&s->lock);
    while (s->turn != p->number && !s->broken) {
        cond_wait(&s->turned, &s->lock);
    }
    if (s->broken) {
        *err = s->err;
        mutex_unlock(&s->lock);
        return err->code;
    }
    p->state = s->state;
    p->at_edge = s->at_edge;
    p->lines = s->lines;
    p->rows = s->rows + !s->at_edge;
    s->state = p->count.after[p->state];
    s->at_edge = p->count.ends[p->state] == p->len;
    s->lines += p->count.lines;
    s->rows += p->count.newlines[p->state];
    s->turn++;
    cond_broadcast(&s->turned);
    mutex_unlock(&s->lock);
    return ERR_OK;
}

/* Reads on until the record that the piece ends in ends itself. */
static FALLIBLE read_rest(struct scan *s, struct piece *p, struct error *err) {
    u8 state = p->count.after[p->state];
    i64 more = MORE_BYTES;
    for (;; more *= 2) {
        i64 from = p->len;
        i64 left = s->bytes - (p->first + p->len);
        struct csv_count count;
        if (left == 0) {
            p->end = p->len;
            return ERR_OK;
        }
        TRY(piece_extend(s, p, MIN_OF(more, left), err));
        csv_count(p->data + from, p->len - from, &s->plan.marks, &count);
        p->count.plain &= count.plain;
        if (count.newlines[state]) {
            const char *next =
                csv_next_record(p->data + from, p->data + p->len, &s->plan.marks, state);
            p->end = next - p->data;
            return ERR_OK;
        }
        state = count.after[state];
        TRY(stop_check(err));
    }
}

static FALLIBLE read_piece(struct scan *s, struct piece *p, struct error *err) {
    p->first = s->start + p->number * s->part_bytes;
    p->len = 0;
    TRY(piece_extend(s, p, MIN_OF(s->part_bytes, s->bytes - p->first), err));
    csv_count(p->data, p->len, &s->plan.marks, &p->count);
    TRY(take_turn(s, p, err));
    const char *end = p->data + p->len;
    i64 newlines = p->count.newlines[p->state];
    p->begin = p->end = p->len;
    p->record_count = newlines - !p->at_edge;
    if (newlines == 0 && !p->at_edge) { /* all of it belongs to a record before */
        p->record_count = 0;
        return ERR_OK;
    }
    p->begin = p->at_edge ? 0 : csv_next_record(p->data, end, &s->plan.marks, p->state) - p->data;
    if (p->count.ends[p->state] == p->len) {
        return ERR_OK;
    }
    p->record_count++;
    return read_rest(s, p, err);
}

/* The next records of an archive. Under the lock. */
static FALLIBLE unpack_piece(struct scan *s, struct piece *p, bool *out_end, struct error *err) {
    i64 want = s->part_bytes;
    for (;; want *= 2) {
        TRY(fill_pending(s, want, err));
        csv_count(s->pending.data, s->pending.len, &s->plan.marks, &p->count);
        p->end = s->packed_end ? s->pending.len : p->count.ends[QUOTE_OUT];
        if (p->end > 0 || s->packed_end) {
            break;
        }
    }
    *out_end = p->end == 0;
    p->begin = p->len = 0;
    TRY(piece_reserve(s, p, p->end, err));
    if (p->end) {
        memcpy(p->buf, s->pending.data, (size_t)p->end);
    }
    p->data = p->buf;
    p->len = p->end;
    p->lines = s->lines;
    p->rows = s->rows;
    p->record_count = p->count.newlines[QUOTE_OUT] + (p->count.ends[QUOTE_OUT] < p->end);
    s->lines += csv_newlines(p->data, p->len, s->plan.marks.newline);
    s->rows += p->record_count;
    drop_pending(s, p->end);
    return ERR_OK;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* What was sniffed is read leniently, so that any line may be a gap. */
static FALLIBLE reserve_columns(struct scan *s, struct piece *p, struct error *err) {
    ASSERT(p->job.gaps);
    enum { PAD = 64 }; /* vector loops may read behind the last row */
    i64 bytes = p->job.tablet_bytes + PAD;
    if (bytes > p->block_bytes) {
        mem_free(s->mem, p->block, p->block_bytes);
        p->block = mem_alloc(s->mem, bytes);
        p->block_bytes = p->block ? bytes : 0;
        if (!p->block) {
            return memory_refused(s->mem, err, bytes);
        }
    }
    memset(p->block + p->job.gaps_at, 0, (size_t)p->record_count);
    return ERR_OK;
}

static void begin_job(struct scan *s, struct piece *p) {
    struct csv_job *job = &p->job;
    p->progress = (struct load_progress){.stop = stop_current()};
    job->progress = &p->progress;
    job->data = p->data;
    job->start = p->data + p->begin;
    job->end = p->data + p->end;
    job->lines_before = p->lines;
    job->marks = s->plan.marks;
    job->gaps = s->plan.gaps;
    atomic_store(&job->stop, 0);
    atomic_store(&job->bad_record, I64_MAX);
    atomic_store(&job->gap_rows, 0);
    atomic_store(&job->ignored_rows, 0);
    heap_free_all(s->mem, p->tablet.heaps);
    p->tablet.heaps = NULL;
    atomic_store(&p->tablet.gap_rows, 0);
}

static FALLIBLE parse_piece(struct scan *s, struct piece *p, struct scan_part *out,
                            struct error *err) {
    struct csv_job *job = &p->job;
    begin_job(s, p);
    csv_lay_out(job, p->record_count);
    TRY(reserve_columns(s, p, err));
    p->tablet.block = p->block;
    const char *at = job->start;
    i64 done = csv_parse_rows(job, &p->tablet, 0, p->record_count, p->count.plain, &at);
    if (atomic_load(&job->stop)) {
        *err = job->stopped;
        return err->code;
    }
    out->bad = atomic_load(&job->bad_record) != I64_MAX;
    if (out->bad) {
        wf_status status = csv_report_bad(job, &out->err);
        UNUSED(status);
    } else if (at != job->end) {
        FAIL(err, IO, "cannot read \"%.300s\": another program changed the file meanwhile",
             s->file->path);
    }
    p->tablet.rows = done;
    out->rows = csv_close_gaps(job, &p->tablet);
    atomic_fetch_add(&s->ignored, atomic_load(&job->ignored_rows));
    for (u32 c = 0; c < job->table->col_count; c++) {
        bool there = job->data_at[c] >= 0;
        p->cols[c].data = there ? p->block + job->data_at[c] : NULL;
        p->cols[c].nulls = there ? p->block + job->nulls_at[c] : NULL;
    }
    return ERR_OK;
}

/* Nobody waits for a piece whose worker gave up. */
static void scan_break(struct scan *s, const struct error *err) {
    mutex_lock(&s->lock);
    if (!s->broken) {
        s->broken = 1;
        s->err = *err;
    }
    cond_broadcast(&s->turned);
    mutex_unlock(&s->lock);
}

/* The next piece and its records; *out_end: there is none. */
static FALLIBLE take_piece(struct scan *s, struct piece *p, bool *out_end, struct error *err) {
    wf_status status = ERR_OK;
    mutex_lock(&s->lock);
    i64 first = s->start + s->taken * s->part_bytes;
    *out_end = s->unpack ? false : first >= s->bytes;
    if (s->broken) {
        *err = s->err;
        status = err->code;
    } else if (s->unpack) {
        status = unpack_piece(s, p, out_end, err);
    }
    p->number = s->taken;
    s->taken += !*out_end;
    mutex_unlock(&s->lock);
    if (status || *out_end || s->unpack) {
        return status;
    }
    return read_piece(s, p, err);
}

static wf_status csv_next(struct scan *s, i32 worker, struct scan_part *out, struct error *err) {
    struct piece *p = &s->pieces[worker];
    bool end = false;
    *out = (struct scan_part){.cols = p->cols};
    error_reset(&out->err);
    wf_status status = take_piece(s, p, &end, err);
    if (!status && !end) {
        status = parse_piece(s, p, out, err);
    }
    if (status) {
        scan_break(s, err);
        return status;
    }
    out->end = end;
    out->number = p->number;
    out->row_start = p->rows;
    out->bytes = p->end - p->begin;
    return ERR_OK;
}

/* --- opening and closing a scan --------------------------------------------------------------- */

static void csv_scan_close(struct scan *s) {
    struct memory *mem = s->mem;
    u32 cols = s->file->table->col_count;
    atomic_store(&s->file->ignored, atomic_load(&s->ignored));
    for (i32 i = 0; s->pieces && i < s->worker_count; i++) {
        struct piece *p = &s->pieces[i];
        heap_free_all(mem, p->tablet.heaps);
        mem_free(mem, p->buf, p->cap);
        mem_free(mem, p->block, p->block_bytes);
        mem_free(mem, p->cols, (i64)cols * (i64)sizeof *p->cols);
        mem_free(mem, p->job.data_at, 2 * (i64)cols * (i64)sizeof(i64));
        mutex_fini(&p->job.lock);
    }
    mem_free(mem, s->pieces, s->worker_count * (i64)sizeof *s->pieces);
    mem_free(mem, s->plan.fields, (i64)s->plan.field_count * (i64)sizeof *s->plan.fields);
    file_bytes_free(&s->pending);
    unpack_close(s->unpack);
    if (s->is_open) {
        file_in_close(&s->in);
    }
    cond_fini(&s->turned);
    mutex_fini(&s->lock);
    mem_free(mem, s, (i64)sizeof *s);
}

static FALLIBLE check_stamp(const struct csv_file *file, const struct file_stamp *now,
                            struct error *err) {
    if (!file_stamp_eq(now, &file->kept.stamp)) {
        error_set(err, ERR_IO, -1,
                  "cannot read \"%.300s\": the file changed after the statement was compiled",
                  file->path);
        error_hint(err, "Run the statement again when nobody writes to the file.");
        return err->code;
    }
    return ERR_OK;
}

static wf_status check_stopped(void *arg, struct error *err) {
    UNUSED(arg);
    return stop_check(err);
}

static FALLIBLE open_bytes(struct scan *s, struct error *err) {
    const struct csv_file *file = s->file;
    struct file_wait wait = {check_stopped, NULL};
    if (!file->kept.again) {
        s->bytes = file->kept.bytes;
        return ERR_OK;
    }
    TRY(file_in_open(&s->in, file->path, wait, err));
    s->is_open = 1;
    TRY(check_stamp(file, &s->in.stamp, err));
    s->bytes = s->in.bytes;
    if (file->kept.packing) {
        s->bytes = -1;
        TRY(unpack_open(&s->unpack, (enum packing)file->kept.packing, &s->in, s->mem, err));
    }
    return ERR_OK;
}

/* As many bytes of the file as the header may need; all of it in the end. */
static FALLIBLE look_at_first(struct scan *s, i64 want, bool *out_all, i64 *out_len,
                              struct error *err) {
    struct piece *p = &s->pieces[0];
    if (s->unpack) {
        TRY(fill_pending(s, want, err));
        s->plan.data = s->pending.data ? s->pending.data : "";
        *out_len = s->pending.len;
        *out_all = s->packed_end;
        return ERR_OK;
    }
    *out_len = MIN_OF(want, s->bytes);
    *out_all = *out_len == s->bytes;
    p->first = 0;
    TRY(piece_extend(s, p, *out_len - p->len, err));
    s->plan.data = p->data ? p->data : "";
    return ERR_OK;
}

static FALLIBLE find_first(struct scan *s, struct error *err) {
    enum { GROWTH = 4 };
    i64 want = MAX_OF(s->part_bytes, PART_LEAST), len = 0;
    s->plan.marks.newline = s->file->found.newline;
    for (bool all = false; !all && s->plan.start == s->plan.end; want *= GROWTH) {
        TRY(look_at_first(s, want, &all, &len, err));
        TRY(csv_find_start(&s->plan, len, err));
        TRY(stop_check(err));
    }
    s->start = s->plan.start - s->plan.data;
    s->lines = csv_newlines(s->plan.data, s->start, s->plan.marks.newline);
    if (s->unpack) {
        drop_pending(s, s->start);
    }
    return ERR_OK;
}

static FALLIBLE open_pieces(struct scan *s, struct error *err) {
    u32 cols = s->file->table->col_count;
    i64 bytes = s->worker_count * (i64)sizeof *s->pieces;
    s->pieces = mem_alloc(s->mem, bytes);
    if (!s->pieces) {
        return memory_refused(s->mem, err, bytes);
    }
    memset(s->pieces, 0, (size_t)bytes);
    bool fine = true;
    for (i32 i = 0; i < s->worker_count; i++) {
        struct piece *p = &s->pieces[i];
        p->job = s->plan;
        mutex_init(&p->job.lock);
        p->cols = mem_alloc(s->mem, (i64)cols * (i64)sizeof *p->cols);
        p->job.data_at = mem_alloc(s->mem, 2 * (i64)cols * (i64)sizeof(i64));
        p->job.nulls_at = p->job.data_at + cols;
        fine = fine && p->cols && p->job.data_at;
    }
    return fine ? ERR_OK : memory_refused(s->mem, err, bytes);
}

/* What the budget leaves room for, as long as that is worth a piece. */
static i64 usual_part(const struct scan_request *request) {
    i64 bytes = PART_BYTES;
    for (const struct memory *mem = request->mem; mem; mem = mem->parent) {
        if (mem->limit_bytes > 0) {
            bytes = MIN_OF(bytes, mem->limit_bytes / (BUDGET_SHARE * request->worker_count));
        }
    }
    return MAX_OF(bytes, PART_LEAST);
}

static wf_status csv_open(struct scan_provider *provider, const struct scan_request *request,
                          struct scan **out, struct error *err) {
    struct csv_file *file = (struct csv_file *)provider;
    struct scan *s = mem_alloc(request->mem, (i64)sizeof *s);
    if (!s) {
        return memory_refused(request->mem, err, (i64)sizeof *s);
    }
    memset(s, 0, sizeof *s);
    s->file = file;
    s->mem = request->mem;
    s->worker_count = request->worker_count;
    s->part_bytes = usual_part(request);
    if (request->part_bytes) {
        s->part_bytes = MIN_OF(s->part_bytes, request->part_bytes);
    }
    s->pending.mem = s->mem;
    s->at_edge = 1;
    mutex_init(&s->lock);
    cond_init(&s->turned);
    s->plan = (struct csv_job){.table = file->table,
                               .path = file->path,
                               .options = &file->found.options,
                               .mem = s->mem,
                               .null_len = (i64)strlen(file->found.options.null_text)};
    bool all = file->found.options.ignore_errors;
    wf_status status = csv_plan_fields(&s->plan, all ? NULL : request->cols, err);
    status = status ? status : open_pieces(s, err);
    status = status ? status : open_bytes(s, err);
    status = status ? status : find_first(s, err);
    if (status) {
        csv_scan_close(s);
        return status;
    }
    *out = s;
    return ERR_OK;
}

/* --- the file --------------------------------------------------------------------------------- */

wf_status csv_file_load(struct table *table, struct pool *pool, struct load_progress *progress,
                        struct table_version **out, struct error *err) {
    struct csv_file *file = (struct csv_file *)table->provider;
    struct csv_options options = file->found.options;
    struct input again = {0};
    const struct input *in = &file->kept;
    i64 rows = 0, ignored = 0;
    options.out_ignored = &ignored;
    wf_status status = ERR_OK;
    if (file->kept.again) {
        TRY(input_open(&again, file->path, (enum packing)file->kept.packing, false, file->mem,
                       progress, err));
        in = &again;
        status = check_stamp(file, &again.stamp, err);
    }
    struct load_means means = {pool, file->mem, progress};
    status = status ? status : csv_load(file->table, in, &options, &means, &rows, err);
    if (file->kept.again) {
        input_close(&again);
    }
    atomic_store(&file->ignored, ignored);
    TRY(status);
    *out = table_snapshot(file->table);
    return ERR_OK;
}

void csv_file_close(struct csv_file *file) {
    if (file) {
        struct memory *mem = file->mem;
        if (!file->kept.again) {
            input_close(&file->kept);
        }
        arena_fini(&file->arena);
        mem_free(mem, file, (i64)sizeof *file);
    }
}

static void csv_file_release(struct scan_provider *provider) {
    csv_file_close((struct csv_file *)provider);
}

/* How many rows there may be, by the lines of the beginning. */
static void estimate_rows(struct csv_file *file, const struct input *in) {
    i64 look = MIN_OF(in->bytes, PART_BYTES);
    i64 lines = look ? csv_newlines(in->data, look, '\n') + 1 : 0;
    bool packed = in->again && in->packing;
    i64 bytes = packed ? in->stamp.bytes * PACKED_RATIO : in->bytes;
    file->provider.rows = look ? (i64)((f64)bytes / (f64)look * (f64)lines) : 0;
    file->provider.rows_most = packed ? PACKED_ROWS_MOST : in->bytes + 1;
}

/* Texts that the caller need not keep. */
static void keep_texts(struct csv_file *file, struct csv_given *given) {
    const char *const *more = given->options.null_more;
    i64 count = 0;
    while (more && more[count]) {
        count++;
    }
    const char **own = NEW_ARRAY(&file->arena, const char *, count + 1);
    for (i64 i = 0; i < count; i++) {
        own[i] = arena_printf(&file->arena, "%s", more[i]);
    }
    given->options.null_more = more ? own : NULL;
    given->options.null_text = given->options.null_text
                                   ? arena_printf(&file->arena, "%s", given->options.null_text)
                                   : NULL;
}

static FALLIBLE look_at(struct csv_file *file, enum packing packing, const struct csv_given *given,
                        struct load_progress *progress, struct error *err) {
    enum { SAMPLE_BYTES = 1 << 21 };
    struct csv_given own = *given;
    struct input in;
    keep_texts(file, &own);
    TRY(input_open_sample(&in, file->path, packing, SAMPLE_BYTES, file->mem, progress, err));
    estimate_rows(file, &in);
    wf_status status = csv_sniff(&file->arena, &in, &own, progress, &file->found, err);
    status = status ? status : arena_check(&file->arena, err);
    if (in.again) { /* what it is known by stays */
        input_close(&in);
    }
    file->kept = in;
    return status;
}

wf_status csv_file_open(struct memory *mem, const char *path, enum packing packing,
                        const struct csv_given *given, struct load_progress *progress,
                        struct csv_file **out, struct error *err) {
    struct csv_file *file = mem_alloc(mem, (i64)sizeof *file);
    if (!file) {
        return memory_refused(mem, err, (i64)sizeof *file);
    }
    memset(file, 0, sizeof *file);
    file->mem = mem;
    arena_init(&file->arena, mem);
    file->kept.again = 1; /* there is nothing to close yet */
    file->path = arena_printf(&file->arena, "%s", path);
    file->provider = (struct scan_provider){
        .open = csv_open, .next = csv_next, .close = csv_scan_close, .release = csv_file_release};
    wf_status status = look_at(file, packing, given, progress, err);
    if (status) {
        csv_file_close(file);
        return status;
    }
    file->found.options.when = given->options.when;
    *out = file;
    return ERR_OK;
}

const struct csv_sniffed *csv_file_sniffed(const struct csv_file *file) {
    return &file->found;
}

void csv_file_attach(struct csv_file *file, struct table *table) {
    file->table = table;
    table->provider = &file->provider;
}

bool csv_file_is(const struct table *table) {
    return table->provider && table->provider->open == csv_open;
}

i64 csv_file_ignored(const struct table *table, const char **out_path) {
    struct csv_file *file = (struct csv_file *)table->provider;
    *out_path = file->path;
    return atomic_exchange(&file->ignored, 0);
}
