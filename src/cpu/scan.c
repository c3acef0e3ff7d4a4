/* scan.c: pipelines whose rows come from a provider, part by part.
 *
 * A task takes the next part of the scan and runs it through the pipeline as one morsel, so that
 * reading and computing share the workers and a part's columns are still in the cache. The morsel's
 * number is the part's: rows keep the order of the source, and LIMIT takes the same ones on any
 * number of threads. How many parts there are is known when one is asked for that is not there.
 *
 * A part may end before something that cannot be read. That is an error only when the rows before
 * it do not suffice: all parts with smaller numbers have been taken by then, so nothing but the
 * source decides. It comes before faults of the pipeline, of which other threads may have met some
 * behind it. See decision 0023. */
#include "cpu/cpu_int.h"
#include "codes/control.h"
#include "store/scan.h"

enum { ROW_BYTES = 32, EXPANDING_BYTES = 1 << 16 };

/* A join that may give many rows for one is handed little at a time: a slice has whole parts. */
static i64 part_bytes(const struct pipe_run *run) {
    const struct pipeline *pipe = run->pipe.pipe;
    i64 bytes = run->x->settings->morsel_rows < I64_MAX / ROW_BYTES ? run->morsel_rows * ROW_BYTES
                                                                    : I64_MAX;
    for (u32 i = 0; i < pipe->op_count; i++) {
        bytes = pipe->ops[i].code == OP_MATCH || pipe->ops[i].code == OP_MEET
                    ? MIN_OF(bytes, EXPANDING_BYTES)
                    : bytes;
    }
    return bytes;
}

wf_status scan_begin(struct pipe_run *run) {
    struct exec *x = run->x;
    if (!run->provider) {
        return ERR_OK;
    }
    const struct source *source = &run->pipe.pipe->source;
    b8 *cols = NEW_ARRAY(x->arena, b8, x->tables[source->ref]->col_count + 1);
    for (u32 c = 0; c < source->col_count; c++) {
        cols[source->cols[c]] = 1;
    }
    struct scan_request request = {.cols = cols,
                                   .mem = x->mem,
                                   .worker_count = run->worker_count,
                                   .part_bytes = part_bytes(run)};
    TRY(arena_check(x->arena, x->err));
    wf_status status = run->provider->open(run->provider, &request, &run->scan, x->err);
    if (status && status != ERR_OUT_OF_MEMORY && status != ERR_CANCELLED) {
        x->err->position = run->position;
    }
    return status;
}

void scan_window(struct pipe_run *run) {
    run->scan_first = run->window_first;
    run->morsel_count = MIN_OF(run->window_end, I64_MAX - 1) - run->window_first;
}

/* No part from this one on is there, or wanted. */
static void stop_at(struct pipe_run *run, i64 morsel) {
    if (morsel < atomic_load_explicit(&run->stop_from, memory_order_relaxed)) {
        atomic_store_explicit(&run->stop_from, morsel, memory_order_relaxed);
    }
}

static void set_part(struct worker *w, const struct scan_part *part) {
    const struct table *table = w->run->x->tables[w->run->pipe.pipe->source.ref];
    struct chunk *chunk = &w->scanned;
    if (!chunk->cols) {
        chunk->cols = NEW_ARRAY(&w->arena, struct column, table->col_count + 1);
        chunk->col_count = table->col_count;
    }
    for (u32 c = 0; c < table->col_count; c++) {
        chunk->cols[c] = (struct column){.kind = (u8)type_kind(table->cols[c].type),
                                         .data = (void *)(size_t)part->cols[c].data,
                                         .nulls = (b8 *)(size_t)part->cols[c].nulls};
    }
    chunk->rows = part->rows;
    w->tablet = NULL;
    w->deleted = NULL;
    w->chunk = chunk;
    w->chunk_first = 0;
    w->row_start = part->row_start;
    w->bytes_read += part->bytes;
}

static void note_bad(struct pipe_run *run, const struct scan_part *part, i64 morsel) {
    mutex_lock(&run->x->lock);
    if (morsel < run->bad_morsel) {
        run->bad_morsel = morsel;
        run->bad = part->err;
        stop_at(run, morsel + 1);
    }
    mutex_unlock(&run->x->lock);
}

wf_status scan_morsel(struct worker *w) {
    struct pipe_run *run = w->run;
    struct scan_part part;
    TRY(run->provider->next(run->scan, w->number, &part, &w->err));
    i64 morsel = part.number - run->scan_first;
    if (part.end) {
        mutex_lock(&run->x->lock);
        run->scan_ended = 1;
        stop_at(run, morsel);
        mutex_unlock(&run->x->lock);
        return ERR_OK;
    }
    set_part(w, &part);
    w->part = part.number;
    w->morsel = morsel;
    w->morsel_out = 0;
    w->enough = run->limit == 0;
    TRY(run_vectors(w, 0, part.rows));
    if (part.bad) {
        note_bad(run, &part, morsel);
    }
    if (run->limit >= 0) {
        TRY(note_output(run, w, morsel));
    }
    work_rows(run->x, part.rows);
    return ERR_OK;
}

wf_status scan_check(struct pipe_run *run) {
    bool enough = run->limit >= 0 && run->prefix_rows >= run->limit;
    if (run->bad_morsel == I64_MAX || enough) {
        return ERR_OK;
    }
    *run->x->err = run->bad;
    run->x->err->position = run->position;
    return run->bad.code;
}

void scan_end(struct pipe_run *run) {
    if (run->scan) {
        run->provider->close(run->scan);
        run->scan = NULL;
    }
}
