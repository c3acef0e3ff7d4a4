/* csv_load.c: COPY FROM a delimited file: the plan of a load, its two passes, its errors.
 *
 * Rows are counted before they are parsed, at a small part of the cost of parsing, because that
 * makes everything after exact. Each row's tablet and place are known, so all tablets but the last
 * are full, blocks can be parsed in any order, and no thread waits for another. A tablet's columns
 * are allocated when its first block is reached and given back when it is sealed. Of several bad
 * lines the first in the file is reported, however many threads met others: a block is skipped only
 * when it lies behind a known error. Small files go to the table's tail. */
#include "io/csv_int.h"

#include <stdio.h>

enum {
    BLOCK_BYTES = 1 << 20,
    FILE_SHARE = 4 /* of the memory that is left, that pages of the file are no harm in */
};

void csv_stop(struct csv_job *job, const struct error *err) {
    mutex_lock(&job->lock);
    if (!atomic_load(&job->stop)) {
        job->stopped = *err;
        atomic_store(&job->stop, 1);
    }
    mutex_unlock(&job->lock);
}

void csv_refused(struct csv_job *job, i64 bytes) {
    struct error err;
    error_reset(&err);
    wf_status status = memory_refused(job->mem, &err, bytes);
    UNUSED(status);
    csv_stop(job, &err);
}

void csv_changed(struct csv_job *job) {
    struct error err;
    error_reset(&err);
    wf_status status =
        error_set(&err, ERR_IO, -1,
                  "cannot read \"%.300s\": another program changed the file meanwhile", job->path);
    UNUSED(status);
    csv_stop(job, &err);
}

bool csv_stopped(struct csv_job *job) {
    if (atomic_load(&job->stop)) {
        return true;
    }
    struct error err;
    error_reset(&err);
    if (load_progress_check(job->progress, &err)) {
        csv_stop(job, &err);
        return true;
    }
    return false;
}

/* Bytes of a mapped file were looked at, and leave memory where that is short: the system's cache has them when they
 * are looked at again. */
static void pass(const struct csv_job *job, const char *begin, const char *end) {
    const struct file_view *view = job->in ? &job->in->view : NULL;
    bool mapped = view && view->bytes > 0 && begin >= view->data && end <= view->data + view->bytes;
    if (mapped && view->bytes > memory_left(job->mem) / FILE_SHARE) {
        file_view_pass(view, begin - view->data, end - begin);
    }
}

/* What its rows were parsed from, the texts among it. */
static void pass_tablet(const struct csv_job *job, const struct csv_tablet *tablet) {
    i64 lo = 0, hi = job->block_count;
    while (lo < hi) { /* the first block that begins behind the tablet's first row */
        i64 mid = (lo + hi) / 2;
        bool behind = job->blocks[mid].first_row > tablet->first_row;
        lo = behind ? lo : mid + 1;
        hi = behind ? mid : hi;
    }
    i64 first = MAX_OF(lo - 1, 0), end = first;
    while (end < job->block_count && job->blocks[end].first_row < tablet->first_row + tablet->rows) {
        end++;
    }
    pass(job, job->blocks[first].begin, job->blocks[end].begin);
}

static void count_task(void *arg, i64 i, i32 worker) {
    UNUSED(worker);
    struct csv_job *job = arg;
    if (csv_stopped(job)) {
        return;
    }
    const char *begin = job->start + i * job->block_bytes;
    i64 len = MIN_OF(job->block_bytes, job->end - begin);
    csv_count(begin, len, &job->marks, &job->blocks[i].count);
    pass(job, begin, begin + len);
}

/* Every thread may have a tablet of its own under way, and what it is sealed into. */
static bool is_narrow(const struct csv_job *job) {
    enum { AT_ONCE = 4 };
    return memory_left(job->mem) < AT_ONCE * job->tablet_bytes;
}

/* Where memory ends meanwhile, blocks are parsed one at a time: they come about in the file's order,
 * so that few tablets are begun before others are full. */
static void parse_task(void *arg, i64 i, i32 worker) {
    struct csv_job *job = arg;
    UNUSED(worker);
    bool narrow = is_narrow(job);
    if (narrow) {
        mutex_lock(&job->narrow);
    }
    csv_parse_block(job, i);
    if (narrow) {
        mutex_unlock(&job->narrow);
    }
}

static void run(struct pool *pool, i64 count, void (*task)(void *, i64, i32), void *arg) {
    if (pool) {
        pool_run(pool, count, task, arg);
        return;
    }
    for (i64 i = 0; i < count; i++) {
        task(arg, i, 0);
    }
}

/* From the counts of all blocks: where each one's first record begins, and its number. A block in
 * which no record begins has the place of the one behind it: a line of any length is gone over
 * once. */
static void place_blocks(struct csv_job *job) {
    i64 newlines = 0;
    u8 state = QUOTE_OUT;
    for (i64 i = 0; i < job->block_count; i++) {
        struct csv_block *block = &job->blocks[i];
        const char *edge = job->start + i * job->block_bytes;
        bool at_edge = i == 0 || (state == QUOTE_OUT && edge[-1] == job->marks.newline);
        i64 own = block->count.newlines[state];
        block->begin = at_edge ? edge
                       : own   ? csv_next_record(edge, job->end, &job->marks, state)
                               : NULL;
        block->first_row = newlines + !at_edge;
        newlines += own;
        state = block->count.after[state];
    }
    char newline = job->marks.newline;
    bool open = job->end > job->start && (state != QUOTE_OUT || job->end[-1] != newline);
    struct csv_block *last = &job->blocks[job->block_count];
    last->begin = job->end;
    last->first_row = job->total_rows = newlines + open;
    for (i64 i = job->block_count - 1; i >= 0; i--) {
        struct csv_block *block = &job->blocks[i];
        block->begin = block->begin ? block->begin : block[1].begin;
    }
}

/* One allocation per list; all are small next to the file. */
static FALLIBLE alloc(struct csv_job *job, void *out, i64 bytes, struct error *err) {
    void *block = mem_alloc(job->mem, bytes);
    if (!block) {
        return memory_refused(job->mem, err, bytes);
    }
    memset(block, 0, (size_t)bytes);
    memcpy(out, &block, sizeof block);
    return ERR_OK;
}

wf_status csv_plan_fields(struct csv_job *job, const b8 *wanted, struct error *err) {
    const struct table *table = job->table;
    const struct csv_options *options = job->options;
    job->field_count = options->col_count ? (u32)options->col_count : table->col_count;
    TRY(alloc(job, &job->fields, (i64)job->field_count * (i64)sizeof *job->fields, err));
    for (u32 i = 0; i < job->field_count; i++) {
        struct csv_field *field = &job->fields[i];
        u32 col = options->col_count ? options->cols[i] : i;
        struct type type = table->cols[col].type;
        bool small = type.id == TYPE_SMALLINT, big = type.id == TYPE_BIGINT;
        *field = (struct csv_field){.col = col,
                                    .type = type,
                                    .kind = (u8)type_kind(type),
                                    .not_null = table->cols[col].not_null,
                                    .never_null =
                                        options->force_not_null && options->force_not_null[col],
                                    .quoted_null = options->force_null && options->force_null[col],
                                    .guessed = options->guessed && options->guessed[col],
                                    .unread = wanted && !wanted[col],
                                    .name = table->cols[col].name,
                                    .lo = small ? -32768
                                          : big ? I64_MIN
                                                : I32_MIN,
                                    .hi = small ? 32767
                                          : big ? I64_MAX
                                                : I32_MAX};
        if (type.id == TYPE_DECIMAL) {
            field->dec_limit = pow10_i128(type.precision);
        }
    }
    return ERR_OK;
}

static bool is_listed(const struct csv_job *job, u32 col) {
    for (u32 i = 0; i < job->field_count; i++) {
        if (job->fields[i].col == col) {
            return true;
        }
    }
    return false;
}

static bool is_blank_line(const struct csv_job *job, const char *at, const char *next) {
    next -= next > at && next[-1] == job->marks.newline;
    next -= next > at && next[-1] == '\r';
    return next == at;
}

/* Behind the header; blank lines and comments may stand before it. */
static const char *behind_header(const struct csv_job *job, const char *at) {
    for (;;) {
        const char *next = csv_next_record(at, job->end, &job->marks, QUOTE_OUT);
        bool comment = job->options->comment && at < next && *at == job->options->comment;
        bool blank = job->options->lenient && is_blank_line(job, at, next);
        if (next == job->end || !(comment || blank)) {
            return next;
        }
        at = next;
    }
}

static FALLIBLE check_encoding(const struct csv_job *job, i64 bytes, struct error *err) {
    const char *data = job->data;
    bool marked = bytes >= 2 && (!memcmp(data, "\xff\xfe", 2) || !memcmp(data, "\xfe\xff", 2));
    bool wide = bytes >= 4 && ((!data[0] && data[1] && !data[2] && data[3]) ||
                               (data[0] && !data[1] && data[2] && !data[3]));
    if (!marked && !wide) {
        return ERR_OK;
    }
    error_set(err, ERR_INVALID_ENCODING, -1, "%s: the file is written in UTF-16", job->path);
    error_hint(err, "Convert it: iconv -f UTF-16 -t UTF-8 old.csv > new.csv");
    return err->code;
}

wf_status csv_find_start(struct csv_job *job, i64 bytes, struct error *err) {
    const struct csv_options *options = job->options;
    job->start = job->data;
    job->end = job->data + bytes;
    TRY(check_encoding(job, bytes, err));
    if (bytes >= 3 && !memcmp(job->data, "\xef\xbb\xbf", 3)) {
        job->start += 3;
    }
    char newline = job->marks.newline;
    newline = newline ? newline : csv_line_end(job->start, job->end - job->start, options->quote);
    job->marks = (struct csv_marks){.delimiter = options->delimiter,
                                    .quote = options->quote,
                                    .escape = options->escape,
                                    .comment = options->comment,
                                    .newline = newline};
    job->gaps = options->lenient || options->comment || options->ignore_errors;
    struct csv_marks lines = {.newline = newline};
    for (i64 i = 0; i < options->skip && job->start < job->end; i++) {
        job->start = csv_next_record(job->start, job->end, &lines, QUOTE_OUT);
    }
    if (options->header) {
        job->start = behind_header(job, job->start);
    }
    return ERR_OK;
}

/* The records of the whole file; an empty last line is none of several columns. */
static FALLIBLE find_records(struct csv_job *job, struct error *err) {
    job->data = job->in->data;
    TRY(csv_find_start(job, job->in->bytes, err));
    char newline = job->marks.newline;
    if (job->field_count > 1 && job->end > job->start && job->end[-1] == newline) {
        const char *line = job->end - 1;
        line -= line > job->start && line[-1] == '\r' && newline == '\n';
        if (line == job->start || line[-1] == newline) {
            job->end = line;
        }
    }
    return ERR_OK;
}

void csv_lay_out(struct csv_job *job, i64 rows) {
    const struct table *table = job->table;
    i64 at = 0;
    for (u32 i = 0; i < table->col_count; i++) {
        bool unread = !job->options->col_count && job->fields[i].unread;
        if (unread) {
            job->data_at[i] = job->nulls_at[i] = -1;
            continue;
        }
        job->data_at[i] = at;
        at += ALIGN_UP(rows * kind_bytes[type_kind(table->cols[i].type)], 64);
        job->nulls_at[i] = at;
        at += ALIGN_UP(rows, 64);
    }
    job->gaps_at = at;
    job->tablet_bytes = at + (job->gaps ? ALIGN_UP(rows, 64) : 0);
}

/* *io_pool becomes NULL where one thread does all, for want of memory. */
static FALLIBLE plan_tablets(struct csv_job *job, struct pool **io_pool, struct error *err) {
    const struct table *table = job->table;
    TRY(alloc(job, &job->data_at, (i64)table->col_count * 2 * (i64)sizeof(i64), err));
    job->nulls_at = job->data_at + table->col_count;
    csv_lay_out(job, 64);
    i64 line_bytes = (job->end - job->start) / MAX_OF(job->total_rows, 1);
    i64 workers = *io_pool ? pool_worker_count(*io_pool) : 1;
    bool all = load_plan(table, job->mem, workers, job->tablet_bytes / 64 + line_bytes,
                         &job->tablet_rows);
    *io_pool = all ? *io_pool : NULL;
    job->tablet_count = (job->total_rows + job->tablet_rows - 1) / job->tablet_rows;
    i64 bytes = (i64)sizeof *job->tablets * MAX_OF(job->tablet_count, 1);
    TRY(alloc(job, &job->tablets, bytes, err));
    for (i64 i = 0; i < job->tablet_count; i++) {
        struct csv_tablet *tablet = &job->tablets[i];
        tablet->first_row = i * job->tablet_rows;
        tablet->rows = MIN_OF(job->tablet_rows, job->total_rows - tablet->first_row);
        atomic_init(&tablet->rows_left, tablet->rows);
    }
    csv_lay_out(job, MIN_OF(job->tablet_rows, job->total_rows));
    bool small = job->tablet_count == 1 && job->total_rows * 8 <= job->tablet_rows;
    return small ? ERR_OK : load_open(&job->load, job->table, err);
}

/* A column without a field: its default, or NULL. */
static void fill_unlisted(struct csv_job *job, const struct csv_tablet *tablet, u32 col) {
    const struct csv_options *options = job->options;
    i64 width = kind_bytes[type_kind(job->table->cols[col].type)];
    u8 *data = tablet->block + job->data_at[col];
    const void *value = options->defaults ? options->defaults[col] : NULL;
    bool counts = options->sequences && options->sequences[col];
    memset(tablet->block + job->nulls_at[col], !value && !counts, (size_t)tablet->rows);
    for (i64 i = 0; i < tablet->rows && (value || counts); i++) {
        i128 number =
            counts ? (i128)job->seq_first[col] + (i128)job->seq_step[col] * (tablet->first_row + i)
                   : 0;
        memcpy(data + i * width, counts ? (const void *)&number : value, (size_t)width);
    }
}

static FALLIBLE reserve_sequences(struct csv_job *job, struct error *err) {
    const struct csv_options *options = job->options;
    i64 bytes = (i64)job->table->col_count * 2 * (i64)sizeof(i64);
    if (!options->sequences) {
        return ERR_OK;
    }
    TRY(alloc(job, &job->seq_first, bytes, err));
    job->seq_step = job->seq_first + job->table->col_count;
    for (u32 i = 0; i < job->table->col_count; i++) {
        if (options->sequences[i] && !is_listed(job, i) && job->total_rows) {
            TRY(options->reserve(options->reserve_arg, i, job->total_rows, &job->seq_first[i],
                                 &job->seq_step[i], err));
        }
    }
    return ERR_OK;
}

u8 *csv_tablet_block(struct csv_job *job, struct csv_tablet *tablet) {
    mutex_lock(&job->lock);
    if (!tablet->block) {
        tablet->block = job->spare ? job->spare : mem_alloc(job->mem, job->tablet_bytes);
        job->spare = NULL;
        for (u32 i = 0; tablet->block && i < job->table->col_count; i++) {
            if (!is_listed(job, i)) {
                fill_unlisted(job, tablet, i);
            }
        }
        if (tablet->block && job->gaps) {
            memset(tablet->block + job->gaps_at, 0, (size_t)tablet->rows);
        }
    }
    u8 *block = tablet->block;
    mutex_unlock(&job->lock);
    if (!block) {
        csv_refused(job, job->tablet_bytes);
    }
    return block;
}

static void tablet_free(struct csv_job *job, struct csv_tablet *tablet) {
    mutex_lock(&job->lock);
    u8 *block = tablet->block;
    struct heap *heaps = tablet->heaps;
    if (!job->spare) {
        job->spare = block;
        block = NULL;
    }
    tablet->block = NULL;
    tablet->heaps = NULL;
    mutex_unlock(&job->lock);
    mem_free(job->mem, block, job->tablet_bytes);
    heap_free_all(job->mem, heaps);
}

i64 csv_close_gaps(struct csv_job *job, const struct csv_tablet *tablet) {
    const u8 *gaps = tablet->block + job->gaps_at;
    i64 kept = tablet->rows - atomic_load(&tablet->gap_rows);
    for (u32 c = 0; kept < tablet->rows && c < job->table->col_count; c++) {
        if (job->data_at[c] < 0) {
            continue;
        }
        i64 width = kind_bytes[type_kind(job->table->cols[c].type)], to = 0;
        u8 *data = tablet->block + job->data_at[c], *nulls = tablet->block + job->nulls_at[c];
        for (i64 i = 0; i < tablet->rows; i++) {
            memmove(data + to * width, data + i * width, (size_t)width);
            nulls[to] = nulls[i];
            to += !gaps[i];
        }
    }
    return kept;
}

static FALLIBLE tablet_store(struct csv_job *job, i64 tablet_no, struct error *err) {
    struct table *table = job->table;
    struct csv_tablet *tablet = &job->tablets[tablet_no];
    i64 bytes = (i64)table->col_count * (i64)sizeof(struct input_col);
    struct input_col *cols = mem_alloc(job->mem, bytes);
    if (!cols) {
        return memory_refused(job->mem, err, bytes);
    }
    for (u32 i = 0; i < table->col_count; i++) {
        cols[i] = (struct input_col){
            .data = tablet->block + job->data_at[i],
            .nulls = table->cols[i].not_null ? NULL : tablet->block + job->nulls_at[i]};
    }
    const struct csv_options *options = job->options;
    i64 rows = csv_close_gaps(job, tablet);
    wf_status status = rows == 0       ? ERR_OK
                       : job->load     ? load_tablet(job->load, tablet_no, rows, cols, err)
                       : options->base ? version_append_unchecked(table, options->base, rows, cols,
                                                                  options->out_version, err)
                                       : table_append(table, rows, cols, err);
    mem_free(job->mem, cols, bytes);
    return status;
}

void csv_tablet_parsed(struct csv_job *job, i64 tablet_no, i64 rows) {
    struct csv_tablet *tablet = &job->tablets[tablet_no];
    if (atomic_fetch_sub(&tablet->rows_left, rows) != rows) {
        return;
    }
    bool wanted = !csv_stopped(job) && atomic_load(&job->bad_record) == I64_MAX;
    if (wanted && job->load) {
        struct error err;
        error_reset(&err);
        if (tablet_store(job, tablet_no, &err)) {
            csv_stop(job, &err);
        }
        pass_tablet(job, tablet);
    }
    if (!wanted || job->load) { /* the rows of a small file wait for the end */
        tablet_free(job, tablet);
    }
}

/* The option that would help, in the writing of FROM or of COPY. */
static void hint_bad(const struct csv_job *job, struct error *err) {
    bool from = job->options->lenient;
    const char *ignore = from ? "ignore_errors => true" : "IGNORE_ERRORS";
    switch (job->bad_why) {
    case BAD_ONE:
        if (!from) { /* nobody has looked for the delimiter */
            error_hint(err, "DELIMITER ';' names another delimiter; NULL_PADDING fills the missing "
                            "columns with NULL; IGNORE_ERRORS leaves out such lines.");
            break;
        }
        /* fall through */
    case BAD_FEW:
        error_hint(err, "%s fills the missing columns with NULL; %s leaves out such lines.",
                   from ? "null_padding => true" : "NULL_PADDING", ignore);
        break;
    case BAD_MANY:
        error_hint(err, "%s leaves out such lines; %s names another delimiter.", ignore,
                   from ? "delim => ';'" : "DELIMITER ';'");
        break;
    case BAD_QUOTE:
        error_hint(err, "%s reads the file without quotes.",
                   from ? "quote => ''" : "QUOTE E'\\x01'");
        break;
    case BAD_ENCODING:
        error_hint(err, "%s leaves out such lines; iconv -t UTF-8 converts the file.", ignore);
        break;
    default:
        if (from && job->fields[MAX_OF(job->bad_field, 0)].guessed) {
            error_hint(
                err,
                "The type is that of the file's beginning: sample_size => -1 looks at all "
                "lines first, types => {'%.60s': 'text'} reads the column as text, %s leaves "
                "out such lines.",
                job->fields[MAX_OF(job->bad_field, 0)].name, ignore);
        } else if (from && job->bad.code != ERR_NOT_NULL) {
            error_hint(err,
                       "%s leaves out such lines; types => {'%.60s': 'text'} reads the column "
                       "as text.",
                       ignore, job->fields[MAX_OF(job->bad_field, 0)].name);
        } else {
            error_hint(err, "%s leaves out such lines.", ignore);
        }
    }
}

wf_status csv_report_bad(struct csv_job *job, struct error *err) {
    long long line =
        job->lines_before + csv_newlines(job->data, job->bad_at, job->marks.newline) + 1;
    i64 field = job->bad_field;
    if (field < 0) {
        error_set(err, job->bad.code, -1, "%s, line %lld: %s", job->path, line, job->bad.message);
    } else {
        error_set(err, job->bad.code, -1, "%s, line %lld, column %lld (%s): %s", job->path, line,
                  field + 1, job->fields[field].name, job->bad.message);
    }
    hint_bad(job, err);
    return err->code;
}

/* A column that the file does not fill and that forbids NULL. */
static FALLIBLE check_unlisted(struct csv_job *job, struct error *err) {
    for (u32 i = 0; job->total_rows && i < job->table->col_count; i++) {
        bool fills = (job->options->defaults && job->options->defaults[i]) ||
                     (job->options->sequences && job->options->sequences[i]);
        if (job->table->cols[i].not_null && !is_listed(job, i) && !fills) {
            FAIL(err, NOT_NULL, "%s, line %lld: no value for column \"%s\", which is NOT NULL",
                 job->path, csv_newlines(job->data, job->start - job->data, job->marks.newline) + 1,
                 job->table->cols[i].name);
        }
    }
    return ERR_OK;
}

static FALLIBLE load_file(struct csv_job *job, struct pool *pool, struct error *err) {
    job->block_count = (job->end - job->start + job->block_bytes - 1) / job->block_bytes;
    TRY(alloc(job, &job->blocks, (job->block_count + 1) * (i64)sizeof *job->blocks, err));
    run(pool, job->block_count, count_task, job);
    if (!atomic_load(&job->stop)) {
        place_blocks(job);
        TRY(check_unlisted(job, err));
        TRY(reserve_sequences(job, err));
        TRY(plan_tablets(job, &pool, err));
        run(is_narrow(job) ? NULL : pool, job->block_count, parse_task, job);
    }
    if (input_torn(job->in)) {
        csv_changed(job);
        atomic_store(&job->bad_record, I64_MAX); /* a line of zeros says nothing to the user */
    }
    if (atomic_load(&job->bad_record) != I64_MAX) {
        return csv_report_bad(job, err);
    }
    if (atomic_load(&job->stop)) {
        *err = job->stopped;
        return err->code;
    }
    if (job->load) {
        struct load *load = job->load;
        job->load = NULL;
        const struct csv_options *options = job->options;
        return options->base ? load_finish(load, options->base, options->out_version, err)
                             : load_commit(load, err);
    }
    return job->total_rows ? tablet_store(job, 0, err) : ERR_OK;
}

static void job_fini(struct csv_job *job) {
    struct memory *mem = job->mem;
    if (job->load) {
        load_abort(job->load);
    }
    for (i64 i = 0; job->tablets && i < job->tablet_count; i++) {
        tablet_free(job, &job->tablets[i]);
    }
    mem_free(mem, job->spare, job->tablet_bytes);
    mem_free(mem, job->data_at, (i64)job->table->col_count * 2 * (i64)sizeof(i64));
    mem_free(mem, job->tablets, (i64)sizeof *job->tablets * MAX_OF(job->tablet_count, 1));
    mem_free(mem, job->blocks, (job->block_count + 1) * (i64)sizeof *job->blocks);
    mem_free(mem, job->seq_first, (i64)job->table->col_count * 2 * (i64)sizeof(i64));
    mem_free(mem, job->fields, (i64)job->field_count * (i64)sizeof *job->fields);
    mutex_fini(&job->lock);
    mutex_fini(&job->narrow);
}

wf_status csv_load_blocks(struct table *table, const struct input *in,
                          const struct csv_options *options, const struct load_means *means,
                          i64 block_bytes, i64 *out_rows, struct error *err) {
    struct csv_job job = {.table = table,
                          .path = in->path,
                          .in = in,
                          .options = options,
                          .mem = means->mem,
                          .progress = means->progress,
                          .block_bytes = block_bytes,
                          .null_len = (i64)strlen(options->null_text)};
    atomic_init(&job.bad_record, I64_MAX);
    mutex_init(&job.lock);
    mutex_init(&job.narrow);
    wf_status status = csv_plan_fields(&job, NULL, err);
    if (status == ERR_OK) {
        status = find_records(&job, err);
    }
    if (status == ERR_OK) {
        if (means->progress) {
            means->progress->bytes_total = job.end - job.start;
        }
        status = load_file(&job, means->pool, err);
    }
    *out_rows = status == ERR_OK ? job.total_rows - atomic_load(&job.gap_rows) : 0;
    if (options->out_ignored) {
        *options->out_ignored = atomic_load(&job.ignored_rows);
    }
    job_fini(&job);
    return status;
}

wf_status csv_load(struct table *table, const struct input *in, const struct csv_options *options,
                   const struct load_means *means, i64 *out_rows, struct error *err) {
    return csv_load_blocks(table, in, options, means, BLOCK_BYTES, out_rows, err);
}
