/* early.c: a program's columns come from the disk while its device is started.
 *
 * A GPU's driver takes a quarter of a second and the host has nothing to do meanwhile; a program that
 * was planned knows which columns it reads. Threads read them as their steps will ask for them, one
 * column after the other, until the device is there: what has not come until then is read when it is
 * needed, as always. Nothing depends on what they do, so their errors are nobody's, and memory that
 * is short ends them (column_help). See decision 0092. */
#include "run/early.h"

/* The step at which `early` is, or NULL when none is left. */
static const struct step *early_step(const struct early *early) {
    const struct program *program = early->x->program;
    return early->block < program->block_count ? &program->blocks[early->block].steps[early->step]
                                               : NULL;
}

static void next_step(struct early *early) {
    const struct program *program = early->x->program;
    early->tablet = early->row = 0;
    early->col = 0;
    early->step++;
    while (early->block < program->block_count &&
           early->step >= program->blocks[early->block].step_count) {
        early->block++;
        early->step = 0;
    }
}

static bool reads_table(const struct exec *x, const struct step *step) {
    return step->kind == STEP_PIPELINE && step->pipeline->source.kind == SOURCE_TABLE &&
           !exec_provider(x, step->pipeline);
}

/* Whether zones or a key's index exclude all rows of the tablet. */
static bool is_excluded(const struct early *early, const struct pipeline *pipe,
                        const struct tablet *tablet) {
    const struct exec *x = early->x;
    bool all = pipe->prune_count > 0;
    for (i64 zone = 0; all && zone << ZONE_SHIFT < tablet->rows; zone++) {
        bool one = false;
        for (u32 i = 0; i < pipe->prune_count && !one; i++) {
            const struct prune *p = &pipe->prunes[i];
            one = exec_zone_excluded(x, &tablet->cols[pipe->source.cols[p->col]], p, zone);
        }
        all = one;
    }
    return all || early->row >= early->end || early->row + tablet->rows <= early->first;
}

/* The next column of the file; false: there is none. The lock is held. */
static bool take_column(struct early *early, const struct tablet **out, u32 *out_col,
                        bool *out_packed) {
    const struct exec *x = early->x;
    for (const struct step *step; (step = early_step(early));) {
        if (!reads_table(x, step)) {
            next_step(early);
            continue;
        }
        const struct source *source = &step->pipeline->source;
        const struct table_version *version = x->versions[source->ref];
        if (early->tablet >= version->tablet_count) {
            next_step(early);
            continue;
        }
        const struct tablet *tablet = version->tablets[early->tablet];
        if (early->tablet == 0 && early->col == 0) {
            exec_row_range(x, step->pipeline, &early->first, &early->end);
        }
        bool over = early->col >= source->col_count || !tablet->framed ||
                    (early->col == 0 && is_excluded(early, step->pipeline, tablet));
        if (over) {
            early->row += version->tablet_rows[early->tablet++];
            early->col = 0;
            continue;
        }
        *out = tablet;
        *out_col = source->cols[early->col++];
        /* The host, to which steps over few rows and others may go, wants what is unpacked, and so do kernels that
         * read over the bus. */
        *out_packed = x->settings->device == DEVICE_GPU && version->rows > x->settings->host_rows &&
                      x->settings->gpu_placement != PLACE_MAPPED;
        return true;
    }
    return false;
}

static void read_columns(void *arg) {
    struct early *early = arg;
    const struct tablet *tablet = NULL;
    u32 col = 0;
    bool packed = false;
    mutex_lock(&early->lock);
    while (!early->stop && take_column(early, &tablet, &col, &packed)) {
        mutex_unlock(&early->lock);
        column_help(tablet, col, packed);
        mutex_lock(&early->lock);
        early->count++;
    }
    mutex_unlock(&early->lock);
}

/* Before the first step of a program: whether one of its tables lies in a file. */
static bool has_framed(const struct exec *x) {
    for (u32 t = 0; t < x->program->table_count; t++) {
        const struct table_version *version = x->versions[t];
        if (version && version->tablet_count > 0 && version->tablets[0]->framed) {
            return true;
        }
    }
    return false;
}

void early_begin(struct early *early, const struct exec *x) {
    *early = (struct early){.x = x};
    mutex_init(&early->lock);
    for (i32 i = 0; i < EARLY_READERS && has_framed(x); i++) {
        early->threads[i] = thread_start(read_columns, early);
    }
}

void early_end(struct early *early) {
    mutex_lock(&early->lock);
    early->stop = 1;
    mutex_unlock(&early->lock);
    for (i32 i = 0; i < EARLY_READERS; i++) {
        thread_join(early->threads[i]);
    }
    mutex_fini(&early->lock);
}
