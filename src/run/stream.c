/* stream.c: answers that are computed as they are read.
 *
 * When the last pipeline of a program feeds nothing but the answer, it need not run before somebody
 * asks for rows: the steps before it run, the pipeline is opened, and each exec_next runs a slice
 * of its source, so that an answer of any size takes the memory of one slice. A device that cannot
 * cut a pipeline into slices runs it whole; then there is no stream and the answer is all there.
 *
 * Errors stay what they were: a fault is only the statement's error when no other fault of the
 * pipeline is smaller, so the first one met makes the rest of the source run without output. Rows
 * handed out before that stay handed out. With a LIMIT only the slice at hand counts: rows behind
 * the limit must not raise. */
#include "run/run_int.h"

struct stream {
    struct device *device;
    struct slices *slices; /* NULL once the source is used up */
    const struct step *step;
    u32 step_no;
    i64 skip;             /* rows of OFFSET still to come */
    i64 left;             /* rows of LIMIT still to come; -1 = no limit */
    struct slice *pieces; /* of the current answer; from mem_alloc */
    i64 piece_cap;
};

enum { SLICE_BYTES = 8 << 20, WORKER_BYTES = 2 << 20, BUDGET_SHARE = 32 };

static bool writes(const struct step *step, u32 var) {
    for (u32 s = 0; step->pipeline && s < step->pipeline->sink_count; s++) {
        if (step->pipeline->sinks[s].var == var) {
            return true;
        }
    }
    return step->kind == STEP_LIMIT && step->dst == var;
}

struct uses {
    u32 var;
    u32 count;
};

static void count_use(void *arg, u32 var) {
    struct uses *uses = arg;
    uses->count += var == uses->var;
}

bool stream_fits(const struct program *program, u32 step_no) {
    const struct step *result = result_step(program);
    u32 no = 0;
    struct uses uses = {result ? result->src : NO_VAR, 0};
    u32 writers = 0;
    const struct step *step = NULL;
    const struct step *after = NULL;
    for (u32 b = 0; b < program->block_count; b++) {
        const struct block *block = &program->blocks[b];
        if (block->loop_var != NO_VAR) {
            return false;
        }
        for (u32 s = 0; s < block->step_count; s++, no++) {
            after = no == step_no + 1 ? &block->steps[s] : after;
            step = no == step_no ? &block->steps[s] : step;
            writers += writes(&block->steps[s], uses.var);
            step_inputs(&block->steps[s], count_use, &uses);
        }
    }
    return step && after && after == result && no == step_no + 2 && writers == 1 &&
           uses.count == 1 && step->kind == STEP_PIPELINE && step->pipeline->sink_count == 1 &&
           step->pipeline->sinks[0].kind == SINK_ROWS && step->pipeline->sinks[0].var == uses.var;
}

wf_status stream_open(struct exec *x, struct device *device, u32 step_no, const struct step *step) {
    struct stream *stream = NEW(x->arena, struct stream);
    *stream = (struct stream){.device = device, .step = step, .step_no = step_no};
    TRY(step_bounds(x, result_step(x->program), &stream->skip, &stream->left));
    TRY(device->slices_open(device, x, step_no, step, &stream->slices));
    x->stream = stream;
    return ERR_OK;
}

static void stream_end(struct stream *stream) {
    if (stream->slices) {
        stream->device->slices_close(stream->slices);
        stream->slices = NULL;
    }
}

void stream_close(struct exec *x) {
    if (x->stream) {
        stream_end(x->stream);
        mem_free(x->mem, x->stream->pieces, x->stream->piece_cap * (i64)sizeof *x->stream->pieces);
        x->stream = NULL;
    }
}

/* Large enough that waking the workers for it costs nothing, small against the budget. */
static i64 slice_bytes(const struct exec *x) {
    if (x->settings->result_bytes > 0) {
        return x->settings->result_bytes;
    }
    i64 workers = x->pool ? pool_worker_count(x->pool) : 1;
    i64 bytes = MAX_OF(SLICE_BYTES, MIN_OF(workers, 32) * WORKER_BYTES);
    for (const struct memory *mem = x->mem; mem; mem = mem->parent) {
        if (mem->limit_bytes > 0) {
            bytes = MIN_OF(bytes, mem->limit_bytes / BUDGET_SHARE);
        }
    }
    return MAX_OF(bytes, 4096);
}

/* A fault was met: finds the smallest one there is. */
static FALLIBLE drain(struct exec *x, struct stream *stream) {
    bool end = stream->left >= 0;
    while (!end) {
        TRY(exec_check(x));
        TRY(stream->device->slices_next(stream->slices, slice_bytes(x), -1, true, &end));
    }
    return raise_fault(x, stream->step);
}

static FALLIBLE run_slice(struct exec *x, struct stream *stream, bool *out_end) {
    TRY(exec_check(x));
    i64 want = stream->left < 0 ? -1 : stream->left + stream->skip;
    i64 start = clock_ns();
    wf_status status =
        stream->device->slices_next(stream->slices, slice_bytes(x), want, false, out_end);
    x->metrics[stream->step_no].ns += clock_ns() - start;
    TRY(status);
    if (atomic_load_explicit(&x->fault, memory_order_relaxed) != ~0ULL) {
        return drain(x, stream);
    }
    refresh_dicts(x);
    return arena_check(x->arena, x->err);
}

/* The rows of the slice that OFFSET and LIMIT leave. */
static FALLIBLE cut_slice(struct exec *x, struct stream *stream, struct answer *out) {
    const struct variable *var = &x->vars[stream->step->pipeline->sinks[0].var];
    if (var->chunks.count > stream->piece_cap) {
        i64 cap = var->chunks.count + 16;
        struct slice *pieces = mem_alloc(x->mem, cap * (i64)sizeof *pieces);
        if (!pieces) {
            return memory_refused(x->mem, x->err, cap * (i64)sizeof *pieces);
        }
        mem_free(x->mem, stream->pieces, stream->piece_cap * (i64)sizeof *pieces);
        stream->pieces = pieces;
        stream->piece_cap = cap;
    }
    *out = (struct answer){.slices = stream->pieces};
    for (i64 i = 0; i < var->chunks.count && stream->left != 0; i++) {
        const struct chunk *chunk = var->chunks.items[i];
        i64 first = MIN_OF(stream->skip, chunk->rows);
        i64 rows = chunk->rows - first;
        rows = stream->left < 0 ? rows : MIN_OF(rows, stream->left);
        stream->skip -= first;
        if (rows > 0) {
            stream->left -= stream->left < 0 ? 0 : rows;
            out->slices[out->slice_count++] = (struct slice){chunk, first, rows};
            out->rows += rows;
        }
    }
    return ERR_OK;
}

/* What only the pipeline needed; the answer's last rows stay, and strings they show. */
static void release_inputs(struct exec *x, u32 answer) {
    for (u32 v = 0; v < x->program->var_count; v++) {
        if (v != answer && x->program->vars[v].kind != VAR_INTERN) {
            variable_reset(&x->vars[v]);
        }
    }
}

wf_status exec_next(struct exec *x, struct answer *out, bool *out_end) {
    struct stream *stream = x->stream;
    *out = (struct answer){0, 0, NULL};
    bool end = !stream || !stream->slices;
    wf_status status = ERR_OK;
    while (!end && !status && out->rows == 0) {
        status = stream->left == 0 ? ERR_OK : run_slice(x, stream, &end);
        status = status ? status : cut_slice(x, stream, out);
        end = end || stream->left == 0;
    }
    *out_end = end;
    if (stream && stream->slices && (end || status)) {
        stream_end(stream);
        release_inputs(x, stream->step->pipeline->sinks[0].var);
        struct step_metric *metric = &x->metrics[stream->step_no + 1];
        metric->rows_in = metric->rows_out = x->metrics[stream->step_no].rows_out;
    }
    return status;
}
