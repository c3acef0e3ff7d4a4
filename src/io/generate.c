/* generate.c: fills tables from a generator, in parallel, straight into tablets.
 *
 * A task is one tablet of one table: a worker has the generator write its columns, piece by piece
 * so that cancellation is noticed, and seals them (load_tablet). Sizes are known beforehand, so all
 * tablets but the last of a table are full and the rows are in order, whoever makes them. Text of
 * few values never is text on the way: the words become the column's dictionary before the first
 * task, and the generator writes codes. Loads are committed only when every task has succeeded. */
#include "io/generate.h"

enum {
    PIECE_ROWS = 1 << 16, /* a few milliseconds */
    BLOCK_SHARE = 4, /* of the memory that is left, what rows take before they are sealed */
};

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
};

struct gen_job {
    struct generator *gen;
    struct memory *mem;
    struct load_progress *progress;
    struct gen_part *parts;
    i64 task_count;
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

static void tablet_task(void *arg, i64 task, i32 worker) {
    UNUSED(worker);
    struct gen_job *job = arg;
    struct error err;
    i32 p = 0;
    while (p + 1 < job->gen->table_count && job->parts[p + 1].first_task <= task) {
        p++;
    }
    struct gen_part *part = &job->parts[p];
    if (atomic_load(&job->stop)) {
        return;
    }
    error_reset(&err);
    u8 *block = mem_alloc(job->mem, part->block_bytes);
    wf_status status = block ? make_tablet(job, part, task - part->first_task, block, &err)
                             : memory_refused(job->mem, &err, part->block_bytes);
    mem_free(job->mem, block, part->block_bytes);
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

/* Whole tablets, or shorter ones where blocks of so many rows would take more than `most` bytes. */
static void plan_tablets(struct gen_part *part, i64 most) {
    part->tablet_rows = 1LL << part->table->tablet_shift;
    for (;; part->tablet_rows /= 2) {
        i64 rows = MIN_OF(part->rows, part->tablet_rows);
        part->block_bytes = block_layout(part, rows, NULL, NULL, NULL, NULL);
        if (part->block_bytes <= most || part->tablet_rows <= PIECE_ROWS) {
            break;
        }
    }
}

static FALLIBLE plan_parts(struct gen_job *job, struct table *const *tables,
                           const struct pool *pool, struct error *err) {
    i64 values = 0, workers = pool ? pool_worker_count(pool) : 1;
    for (i32 i = 0; i < job->gen->table_count; i++) {
        struct gen_part *part = &job->parts[i];
        part->first_task = job->task_count;
        if (!tables[i]) {
            continue;
        }
        part->plan = &job->gen->tables[i];
        part->table = tables[i];
        CHECK(part->plan->col_count <= COLS_MAX);
        part->rows = job->gen->rows(job->gen, i);
        plan_tablets(part, memory_left(job->mem) / workers / BLOCK_SHARE);
        job->task_count += (part->rows + part->tablet_rows - 1) / part->tablet_rows;
        values += part->rows * (i64)part->table->col_count;
        TRY(load_open(&part->load, part->table, err));
        TRY(add_words(part, err));
    }
    if (job->progress) {
        job->progress->bytes_total = values;
    }
    return ERR_OK;
}

static FALLIBLE run_job(struct gen_job *job, struct table *const *tables, struct pool *pool,
                        i64 *out_rows, struct error *err) {
    TRY(plan_parts(job, tables, pool, err));
    generate_run(pool, job->task_count, tablet_task, job);
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
    i64 bytes = gen->table_count * (i64)sizeof *job.parts;
    *out_rows = 0;
    job.parts = mem_alloc(mem, bytes);
    if (!job.parts) {
        return memory_refused(mem, err, bytes);
    }
    memset(job.parts, 0, (size_t)bytes);
    mutex_init(&job.lock);
    wf_status status = run_job(&job, tables, pool, out_rows, err);
    for (i32 i = 0; i < gen->table_count; i++) {
        if (job.parts[i].load) {
            load_abort(job.parts[i].load);
        }
    }
    mutex_fini(&job.lock);
    mem_free(mem, job.parts, bytes);
    return status;
}
