/* generate.c: fills tables from a generator, in parallel, straight into tablets.
 *
 * A task is one tablet of one table: a worker has the generator write its columns, piece by piece
 * so that cancellation is noticed, and seals them (load_tablet). Large ones come first, so that no
 * worker is left with one when the others have ended. Sizes are known beforehand, so all
 * tablets but the last of a table are full and the rows are in order, whoever makes them. Text of
 * few values never is text on the way: the words become the column's dictionary before the first
 * task, and the generator writes codes. Loads are committed only when every task has succeeded. */
#include "io/generate.h"

enum { PIECE_ROWS = 1 << 16 }; /* a few milliseconds */

bool load_progress_over(const struct load_progress *progress) {
    return progress && stop_asked_of(progress->stop);
}

wf_status load_progress_check(const struct load_progress *progress, struct error *err) {
    return progress ? stop_check_of(progress->stop, err) : ERR_OK;
}

void generate_run(struct pool *pool, i64 count, void (*task)(void *arg, i64 i, i32 worker),
                  void *arg) {
    if (pool) {
        pool_run(pool, count, task, arg);
        return;
    }
    for (i64 i = 0; i < count; i++) {
        task(arg, i, 0);
    }
}

struct gen_part { /* one table on its way */
    const struct gen_table *plan;
    struct table *table;
    struct load *load;
    i64 rows;
    i64 first_task;  /* of the job */
    i64 tablet_rows; /* of all but the last */
    i64 block_bytes; /* of one tablet's columns */
    i64 weight;      /* of one tablet: its bytes, with text that lies elsewhere */
};

struct gen_block { /* a worker's, for one tablet after the other */
    u8 *at;
    i64 bytes;
};

struct gen_job {
    struct generator *gen;
    struct memory *mem;
    struct load_progress *progress;
    struct gen_part *parts;
    struct gen_part **by_weight; /* the heaviest tablets first */
    struct gen_block *blocks;  /* by worker */
    i64 task_count;
    b8 alone; /* one worker does all tasks */
    struct mutex lock; /* below */
    struct error stopped;
    _Atomic i32 stop;
};

static void job_stop(struct gen_job *job, const struct error *err) {
    mutex_lock(&job->lock);
    if (!atomic_load(&job->stop)) {
        job->stopped = *err;
        atomic_store(&job->stop, 1);
    }
    mutex_unlock(&job->lock);
}

/* Bytes of a value on its way into the tablet, without the text it points to. */
static i64 value_bytes(const struct gen_column *col, struct type type) {
    return col->word ? (i64)sizeof(u32) : kind_bytes[type_kind(type)];
}

/* Where the wanted columns of `rows` rows lie in a block; cols may be NULL. Returns its bytes. */
static i64 block_layout(const struct gen_part *part, i64 rows, u8 *block, struct gen_target *cols,
                        struct input_col *inputs, b8 *coded) {
    i64 at = 0;
    u32 to = 0; /* the table's columns are the wanted ones, in order */
    for (u32 i = 0; i < part->plan->col_count; i++) {
        const struct gen_column *col = &part->plan->cols[i];
        bool wanted =
            to < part->table->col_count && strcmp(part->table->cols[to].name, col->name) == 0;
        if (cols) {
            cols[i] = (struct gen_target){NULL, NULL};
        }
        if (!wanted) {
            continue;
        }
        i64 data_at = at;
        at += ALIGN_UP(rows * value_bytes(col, part->table->cols[to].type), 64);
        if (cols) {
            cols[i] = (struct gen_target){block + data_at, (char *)block + at};
            inputs[to] = (struct input_col){.data = block + data_at};
            coded[to] = col->word != NULL;
        }
        at += ALIGN_UP(rows * col->text_bytes, 64);
        to++;
    }
    CHECK(to == part->table->col_count);
    return at;
}

/* The columns from row `from` of the block on. */
static void targets_from(const struct gen_part *part, const struct gen_target *cols, i64 from,
                         struct gen_target *out) {
    u32 to = 0;
    for (u32 i = 0; i < part->plan->col_count; i++) {
        const struct gen_column *col = &part->plan->cols[i];
        out[i] = cols[i];
        if (cols[i].data) {
            i64 bytes = value_bytes(col, part->table->cols[to++].type);
            out[i].data = (u8 *)cols[i].data + from * bytes;
            out[i].text = cols[i].text + from * col->text_bytes;
        }
    }
}

enum { COLS_MAX = 64 };

static FALLIBLE make_tablet(struct gen_job *job, struct gen_part *part, i64 tablet, u8 *block,
                            struct error *err) {
    struct gen_target cols[COLS_MAX], piece[COLS_MAX];
    struct input_col inputs[COLS_MAX];
    b8 coded[COLS_MAX];
    i64 first = tablet * part->tablet_rows, rows = MIN_OF(part->tablet_rows, part->rows - first);
    block_layout(part, rows, block, cols, inputs, coded);
    for (i64 from = 0, n; from < rows; from += n) {
        TRY(load_progress_check(job->progress, err));
        n = MIN_OF(PIECE_ROWS, rows - from);
        targets_from(part, cols, from, piece);
        struct gen_chunk chunk = {first + from, n, piece};
        job->gen->fill(job->gen, (i32)(part - job->parts), &chunk);
        if (atomic_load(&job->stop)) {
            return ERR_OK; /* somebody else has said why */
        }
    }
    TRY(load_coded_tablet(part->load, tablet, rows, inputs, coded, err));
    if (job->progress) {
        atomic_fetch_add(&job->progress->bytes_done, rows * (i64)part->table->col_count);
    }
    return ERR_OK;
}

/* A worker's block with so much room; false when memory is short. */
static bool block_fit(struct memory *mem, struct gen_block *block, i64 bytes) {
    if (block->bytes < bytes) {
        mem_free(mem, block->at, block->bytes);
        block->at = mem_alloc(mem, bytes);
        block->bytes = block->at ? bytes : 0;
    }
    return block->at != NULL;
}

static void tablet_task(void *arg, i64 task, i32 worker) {
    struct gen_job *job = arg;
    struct error err;
    i32 p = 0;
    while (p + 1 < job->gen->table_count && job->by_weight[p + 1]->first_task <= task) {
        p++;
    }
    struct gen_part *part = job->by_weight[p];
    struct gen_block *block = &job->blocks[worker];
    if (atomic_load(&job->stop)) {
        return;
    }
    error_reset(&err);
    wf_status status = block_fit(job->mem, block, part->block_bytes)
                           ? make_tablet(job, part, task - part->first_task, block->at, &err)
                           : memory_refused(job->mem, &err, part->block_bytes);
    if (status) {
        job_stop(job, &err);
    }
}

/* The dictionaries of columns of few values. */
static FALLIBLE add_words(const struct gen_part *part, struct error *err) {
    u32 to = 0;
    for (u32 i = 0; i < part->plan->col_count; i++) {
        const struct gen_column *col = &part->plan->cols[i];
        if (to == part->table->col_count || strcmp(part->table->cols[to].name, col->name) != 0) {
            continue;
        }
        char scratch[64];
        const char *word;
        for (i32 w = 0; col->word && (word = col->word(w, scratch)); w++) {
            i32 code = dict_add(part->table->dicts[to], sv_from(word));
            if (code < 0) {
                return memory_refused(part->table->mem, err, (i64)strlen(word));
            }
            CHECK(code == w); /* the table was empty */
        }
        to++;
    }
    return ERR_OK;
}

/* Text of the pool counts as long as it can be: it is copied, looked at and packed. */
static i64 pooled_bytes(const struct gen_part *part) {
    i64 bytes = 0;
    u32 to = 0;
    for (u32 i = 0; i < part->plan->col_count && to < part->table->col_count; i++) {
        const struct gen_column *col = &part->plan->cols[i];
        if (strcmp(part->table->cols[to].name, col->name) == 0) {
            bytes += col->pooled ? (i64)part->table->cols[to].type.length : 0;
            to++;
        }
    }
    return bytes;
}

/* False: one worker does all, for want of memory. */
static bool plan_tablets(struct gen_part *part, const struct memory *mem, i64 workers) {
    i64 row_bytes = block_layout(part, 64, NULL, NULL, NULL, NULL) / 64, pooled = pooled_bytes(part);
    bool all = load_plan(part->table, mem, workers, row_bytes + pooled, &part->tablet_rows);
    i64 rows = MIN_OF(part->rows, part->tablet_rows);
    part->block_bytes = block_layout(part, rows, NULL, NULL, NULL, NULL);
    part->weight = part->block_bytes + rows * pooled;
    return all;
}

/* Tasks are numbered by the weight of their tablets; tables without rows have none, wherever they are. */
static void number_tasks(struct gen_job *job) {
    for (i32 i = 0; i < job->gen->table_count; i++) {
        i32 at = i;
        for (; at > 0 && job->by_weight[at - 1]->weight < job->parts[i].weight; at--) {
            job->by_weight[at] = job->by_weight[at - 1];
        }
        job->by_weight[at] = &job->parts[i];
    }
    for (i32 i = 0; i < job->gen->table_count; i++) {
        struct gen_part *part = job->by_weight[i];
        part->first_task = job->task_count;
        job->task_count += part->table ? (part->rows + part->tablet_rows - 1) / part->tablet_rows : 0;
    }
}

static FALLIBLE plan_parts(struct gen_job *job, struct table *const *tables, i64 workers,
                           struct error *err) {
    i64 values = 0;
    for (i32 i = 0; i < job->gen->table_count; i++) {
        struct gen_part *part = &job->parts[i];
        if (!tables[i]) {
            continue;
        }
        part->plan = &job->gen->tables[i];
        part->table = tables[i];
        CHECK(part->plan->col_count <= COLS_MAX);
        part->rows = job->gen->rows(job->gen, i);
        job->alone |= !plan_tablets(part, job->mem, workers);
        values += part->rows * (i64)part->table->col_count;
        TRY(load_open(&part->load, part->table, err));
        TRY(add_words(part, err));
    }
    number_tasks(job);
    if (job->progress) {
        job->progress->bytes_total = values;
    }
    return ERR_OK;
}

static FALLIBLE run_job(struct gen_job *job, struct table *const *tables, struct pool *pool,
                        i64 workers, i64 *out_rows, struct error *err) {
    TRY(plan_parts(job, tables, workers, err));
    generate_run(job->alone ? NULL : pool, job->task_count, tablet_task, job);
    for (i64 w = 0; w < workers; w++) {
        mem_free(job->mem, job->blocks[w].at, job->blocks[w].bytes);
    }
    if (atomic_load(&job->stop)) {
        *err = job->stopped;
        return err->code;
    }
    if (job->gen->is_last && job->gen->rest) {
        job->gen->rest(job->gen);
    }
    for (i32 i = 0; i < job->gen->table_count; i++) {
        struct load *load = job->parts[i].load;
        job->parts[i].load = NULL;
        *out_rows += job->parts[i].rows;
        TRY(load ? load_commit(load, err) : ERR_OK);
    }
    return ERR_OK;
}

wf_status generate_load(struct generator *gen, struct table *const *tables, struct pool *pool,
                        struct memory *mem, struct load_progress *progress, i64 *out_rows,
                        struct error *err) {
    struct gen_job job = {.gen = gen, .mem = mem, .progress = progress};
    i64 workers = pool ? pool_worker_count(pool) : 1;
    i64 bytes = gen->table_count * (i64)(sizeof *job.parts + sizeof *job.by_weight) +
                workers * (i64)sizeof *job.blocks;
    *out_rows = 0;
    job.parts = mem_alloc(mem, bytes);
    if (!job.parts) {
        return memory_refused(mem, err, bytes);
    }
    memset(job.parts, 0, (size_t)bytes);
    job.by_weight = (struct gen_part **)(void *)(job.parts + gen->table_count);
    job.blocks = (struct gen_block *)(void *)(job.by_weight + gen->table_count);
    mutex_init(&job.lock);
    wf_status status = run_job(&job, tables, pool, workers, out_rows, err);
    for (i32 i = 0; i < gen->table_count; i++) {
        if (job.parts[i].load) {
            load_abort(job.parts[i].load);
        }
    }
    mutex_fini(&job.lock);
    mem_free(mem, job.parts, bytes);
    return status;
}
