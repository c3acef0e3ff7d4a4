/* slices.c: a pipeline that runs a slice of its source at a time, so that its rows can be read
 * while the rest has not been computed.
 *
 * The pipeline's workers (their frames, not the threads) stay between slices. How many source rows
 * a slice takes follows from what the slices before gave: a filter that keeps few rows makes it
 * grow, a join that multiplies them makes it shrink, down to one row. So a slice's output stays
 * near what was asked for; only what a single source row expands to cannot be cut. Of a scan, whose
 * rows nobody has counted, a slice has parts instead of rows. */
#include "cpu/cpu_int.h"

#include "codes/control.h"

enum {
    MATCH_START = 64,     /* source rows of the first slice when rows may multiply */
    SOURCE_MAX = 1 << 25, /* source rows of a slice; cancelling looks at morsels anyway */
    GROWTH = 8,
    MORSELS_PER_WORKER = 2
};

struct slices {
    struct pipe_run run;
    u32 step_no;
    i64 row_bytes;
    i64 source_rows; /* or parts, of the next slice; 0 = not known yet */
    i64 at;          /* source rows, or parts, done */
    i64 sink_limit;  /* rows the sink still takes; -1 = all */
    i64 morsel_most;
};

wf_status cpu_slices_open(struct device *dev, struct exec *x, u32 step_no, const struct step *step,
                          struct slices **out) {
    struct slices *slices = NEW(x->arena, struct slices);
    const struct sink *sink = &step->pipeline->sinks[0];
    slices->step_no = step_no;
    slices->sink_limit = sink->limit;
    TRY(pipe_open(dev, x, step, &slices->run));
    slices->run.sliced = 1;
    slices->at = slices->run.rows_first;
    pipe_note_skipped(&slices->run, step_no);
    slices->morsel_most = slices->run.morsel_rows;
    for (u32 c = 0; c < sink->col_count; c++) {
        slices->row_bytes += 1LL << slices->run.pipe.width[sink->cols[c].reg];
        slices->row_bytes += sink->cols[c].null_reg != NO_REG;
    }
    slices->row_bytes = MAX_OF(slices->row_bytes, 1);
    *out = slices;
    return ERR_OK;
}

static i64 first_slice(const struct slices *slices, i64 want_bytes) {
    i64 workers = slices->run.worker_count;
    if (slices->run.provider) {
        return workers;
    }
    i64 rows = MAX_OF(want_bytes / slices->row_bytes, workers);
    const struct pipeline *pipe = slices->run.pipe.pipe;
    for (u32 i = 0; i < pipe->op_count; i++) {
        const struct index *index = pipe->ops[i].code == OP_MATCH || pipe->ops[i].code == OP_RUN
                                        ? slices->run.x->vars[pipe->ops[i].imm].index
                                        : NULL;
        if (index && !index->unique) { /* a row may match every row of the other side */
            rows = MIN_OF(rows / MAX_OF(index->row_count, 1), MATCH_START * workers);
        }
    }
    return MAX_OF(rows, 1);
}

/* The next slice, after one of `rows` source rows that gave `bytes`. */
static i64 next_slice(i64 rows, i64 bytes, i64 want_bytes) {
    if (bytes > want_bytes) {
        return MAX_OF((i64)((f64)rows * (f64)want_bytes / (f64)bytes), 1);
    }
    i64 factor = bytes > 0 ? MIN_OF(want_bytes / bytes, GROWTH) : GROWTH;
    return MIN_OF(rows * factor, SOURCE_MAX);
}

/* The source from slices->at on: so many rows, or parts. */
static i64 slice_source(struct slices *slices) {
    struct pipe_run *run = &slices->run;
    if (run->provider) {
        return slices->source_rows;
    }
    i64 rows = MIN_OF(slices->source_rows, run->rows_end - slices->at);
    i64 tasks = (i64)run->worker_count * MORSELS_PER_WORKER;
    run->morsel_rows = MIN_OF(MAX_OF((rows + tasks - 1) / tasks, 1), slices->morsel_most);
    return rows;
}

wf_status cpu_slices_next(struct slices *slices, i64 want_bytes, i64 limit, bool discard,
                          bool *out_end) {
    struct pipe_run *run = &slices->run;
    u32 var = run->pipe.pipe->sinks[0].var;
    if (!slices->source_rows) {
        slices->source_rows = first_slice(slices, want_bytes);
    }
    i64 rows = slice_source(slices);
    ASSERT(slices->source_rows >= 1 && (run->provider || slices->at + rows <= run->rows_end));
    run->discard = discard;
    if (slices->sink_limit >= 0) {
        limit = limit < 0 ? slices->sink_limit : MIN_OF(limit, slices->sink_limit);
    }
    TRY(pipe_window(run, slices->step_no, slices->at, slices->at + rows, discard ? -1 : limit));
    slices->at += rows;
    i64 given = run->x->vars[var].rows;
    slices->sink_limit -= slices->sink_limit < 0 ? 0 : MIN_OF(given, slices->sink_limit);
    bool used_up = run->provider ? run->scan_ended : slices->at >= run->rows_end;
    *out_end = used_up || slices->sink_limit == 0;
    slices->source_rows =
        next_slice(MAX_OF(rows, 1), given * slices->row_bytes + run->made_bytes, want_bytes);
    return ERR_OK;
}

void cpu_slices_close(struct slices *slices) {
    pipe_close(&slices->run);
}
